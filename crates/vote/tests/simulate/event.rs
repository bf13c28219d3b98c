//! What may happen to a run, and random programs of that.

use geryon_vote::{OnDivergence, OnRace, Replacements};

/// Numbers that look random, the same for the same seed (xorshift).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        dice.roll(1);
        dice.roll(1);
        dice
    }

    /// One of `0..below`.
    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % below
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// How outputs are confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    Majority,
    All,
    Async,
}

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// One replica at a time is hit, and the next one when all are well again.
    One,
    /// Any.
    Many,
    /// The program races, and nobody is hit. (Only where threads run in parallel.)
    Races,
    /// Both: what is right may not come out.
    All,
}

/// One run's options.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub replicas: usize,
    pub verify: Verify,
    pub in_parallel: bool,
    pub checkpoints: bool,
    pub has_variants: bool,
    pub on_divergence: OnDivergence,
    pub on_race: OnRace,
    pub bound: Replacements,
    pub trouble: Trouble,
    /// Decides which records are outputs, and which are about the order of threads.
    pub seed: u64,
}

/// What happens. Replicas are counted among the seats; one that cannot do what is asked does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A replica gets on by so many records at most.
    Steps(usize, u64),
    /// What it says next is this instead of what is right: once, or from then on.
    Hit(usize, u32, bool),
    /// The leader logs what is no record.
    Nonsense,
    /// A replica crashes, by itself, in the program or in the agent.
    Crash(usize, u64, bool),
    /// The same stop of a thread is seen once more.
    CrashAgain(usize),
    /// The program crashes at the next record.
    Bug,
    /// A replica does nothing any more.
    Hang(usize),
    /// It is killed from outside.
    Kill(usize),
    /// Somebody asks for its end, for good or to have it made anew.
    AskOut(usize, bool),
    /// It exits, alone.
    Exit(usize),
    /// At the next record these followers find something else than the leader.
    Race(u8, Race),
    /// So many milliseconds.
    Time(u64),
    /// Copies can be made from here on, or not: see [`Copies`].
    Copies(Copies),
    /// Copies are put to sleep, if that can be.
    Checkpoint,
    /// They end.
    EndSleepers,
}

/// Where a race leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    /// All that go astray find the same.
    Alike,
    /// Each finds something of its own.
    Unlike,
    /// They crash.
    Crash,
}

/// What comes of attempts to copy a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    Made,
    Later,
    Never,
    /// The source has not come past where the other one failed.
    Unproven,
}

/// The options of a seed.
pub fn setup(seed: u64) -> Setup {
    let mut d = Dice::new(seed);
    let in_parallel = d.one_in(2);
    let trouble = match in_parallel {
        true => d.of(&[
            Trouble::One,
            Trouble::One,
            Trouble::Races,
            Trouble::Many,
            Trouble::All,
        ]),
        false => d.of(&[Trouble::One, Trouble::One, Trouble::Many]),
    };
    let on_divergence = d.of(&[
        OnDivergence::Replace,
        OnDivergence::Replace,
        OnDivergence::Replace,
        OnDivergence::Leader,
        OnDivergence::Drop,
        OnDivergence::Stop,
    ]);
    let may_differ = matches!(on_divergence, OnDivergence::Stop | OnDivergence::Leader);
    let has_variants = may_differ && d.one_in(2);
    Setup {
        replicas: d.of(&[1, 2, 2, 3, 3, 3, 4, 5]),
        verify: d.of(&[
            Verify::Majority,
            Verify::Majority,
            Verify::All,
            Verify::Async,
        ]),
        in_parallel,
        checkpoints: on_divergence == OnDivergence::Replace && d.one_in(2),
        has_variants,
        on_divergence,
        on_race: d.of(&[OnRace::Serial, OnRace::Serial, OnRace::Retry, OnRace::Stop]),
        bound: d.of(&[
            Replacements::USUAL,
            Replacements::USUAL,
            Replacements {
                most: 2,
                within_s: 20,
            },
            Replacements {
                most: 0,
                within_s: 1,
            },
        ]),
        trouble,
        seed,
    }
}

/// A random program for these options.
pub fn program(setup: &Setup) -> Vec<Event> {
    let mut d = Dice::new(setup.seed ^ 0x5eed);
    let count = 10 + d.roll(70);
    let seats = setup.replicas as u64 + u64::from(setup.checkpoints) * 2;
    let mut events = Vec::new();
    for _ in 0..count {
        if d.one_in(12)
            && let Some(last) = events.last().copied()
        {
            // Once more.
            events.push(last);
            continue;
        }
        let r = d.roll(seats) as usize;
        let races = matches!(setup.trouble, Trouble::Races | Trouble::All);
        let faults = setup.trouble != Trouble::Races;
        let event = match d.roll(40) {
            0..=15 => Event::Steps(r, 1 + d.roll(4)),
            16..=21 => Event::Time(d.of(&[1, 2, 5, 50, 500, 1000, 5000, 11_000])),
            22 | 23 => Event::Checkpoint,
            24 if d.one_in(2) => Event::EndSleepers,
            25 => Event::Copies(d.of(&[
                Copies::Made,
                Copies::Made,
                Copies::Later,
                Copies::Never,
                Copies::Unproven,
            ])),
            26 if d.one_in(6) => Event::Bug,
            27 => Event::Kill(r),
            28 if d.one_in(3) => Event::AskOut(r, d.one_in(2)),
            29..=31 if races => Event::Race(
                d.roll(32) as u8,
                d.of(&[Race::Alike, Race::Unlike, Race::Crash]),
            ),
            32..=34 if faults => Event::Hit(r, 1 + d.roll(3) as u32, d.one_in(2)),
            35 if faults => Event::Crash(r, d.roll(1 << 20), d.one_in(3)),
            36 if faults && d.one_in(2) => Event::Hang(r),
            37 if faults && d.one_in(3) => Event::Exit(r),
            38 if faults && d.one_in(3) => Event::Nonsense,
            39 => Event::CrashAgain(r),
            _ => Event::Steps(r, 1 + d.roll(4)),
        };
        events.push(event);
    }
    events
}
