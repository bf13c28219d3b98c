//! Made-up replicas that replay a made-up log, and who of them is wrong in truth.

use crate::event::{Copies, Dice, Event, Race, Setup, Trouble};
use crate::replay::{Arbitration, Replay, Sleepers};
use geryon_vote::crash::InAgent;
use geryon_vote::{Budget, Found, Races};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A run's end by itself, or its stop.
pub type Broken = String;

/// What a replica says instead of what is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub says: u32,
    pub always: bool,
}

/// What a replica does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Runs,
    Hangs,
    Dead,
    Exited,
}

#[derive(Clone, Copy, Debug)]
pub struct Replica {
    pub dropped: bool,
    pub given_up: bool,
    pub asked_out: bool,
    pub state: State,
    /// So many records it has agreed with.
    pub pos: u64,
    /// It has come to the end of the log and waits there.
    pub waits: bool,
    pub mark: Option<Mark>,
    /// It was hit since it was made, or its source was.
    pub guilty: bool,
    /// Since when it does nothing.
    pub still: Instant,
    /// Before which record it stood when it failed.
    pub failed_at: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// 0 is right.
    pub says: u32,
    pub is_nonsense: bool,
    /// Followers that find something else, and what.
    pub astray: u8,
    pub race: Race,
}

#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub replica: usize,
    pub pos: u64,
    pub ours: u32,
    pub of_order: bool,
    pub when: Instant,
}

#[derive(Clone, Copy, Debug)]
pub struct Crash {
    pub replica: usize,
    pub pos: u64,
    pub place: u64,
    pub in_agent: bool,
    pub others_done: u64,
    pub when: Instant,
}

#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    pub former: usize,
    pub since: Instant,
}

#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub replica: usize,
    pub since: Instant,
    pub tried: Option<Instant>,
}

/// Leader that others stand against, and what replays have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    pub leader: usize,
    pub found: Option<Found>,
}

/// The place of a crash to which a race leads.
pub const LED_AWAY: u64 = u64::MAX - 1;
/// The place of a crash that is the program's.
pub const BUG: u64 = u64::MAX;

/// So many records a leader is ahead at most.
const ROOM: u64 = 20;

/// The run.
pub struct World {
    pub setup: Setup,
    pub now: Instant,
    pub replicas: Vec<Replica>,
    pub leader: usize,
    pub log: Vec<Record>,
    /// So many outputs have left: all before this position.
    pub left: u64,
    pub serial: bool,
    pub bug_at: Option<u64>,
    pub next_race: Option<(u8, Race)>,
    pub next_nonsense: bool,
    pub copies: Copies,
    // What the monitor knows.
    pub reports: Vec<Report>,
    pub crashes: Vec<Crash>,
    pub agent_crash: Option<InAgent>,
    pub takeover: Option<Takeover>,
    pub wanted: Vec<Wanted>,
    pub budget: Budget,
    pub made: Vec<Instant>,
    pub races: Races,
    pub sleepers: Option<Sleepers>,
    pub replay: Option<Replay>,
    pub doubt: Option<Doubt>,
    pub has_raced: bool,
    pub accused: Option<usize>,
    pub arbitration: Option<Arbitration>,
    pub outcome: Option<String>,
    // What is true, and what was allowed for.
    /// Two were wrong at a time, or a copy was made of one that was.
    pub many: bool,
    /// The program has raced in truth.
    pub raced: bool,
    /// The leader was believed, right or wrong, as the user wants it.
    pub believed: bool,
    /// When followers seemed to go astray.
    pub strayed: Vec<Instant>,
    pub broken: Option<Broken>,
    pub seen: BTreeSet<&'static str>,
}

impl World {
    pub fn new(setup: Setup) -> World {
        let now = Instant::now();
        let whole = Replica {
            dropped: false,
            given_up: false,
            asked_out: false,
            state: State::Runs,
            pos: 0,
            waits: false,
            mark: None,
            guilty: false,
            still: now,
            failed_at: None,
        };
        let free = Replica {
            dropped: true,
            ..whole
        };
        let mut replicas = vec![whole; setup.replicas];
        replicas.resize(setup.replicas + 2, free);
        World {
            setup,
            now,
            replicas,
            leader: 0,
            log: Vec::new(),
            left: 0,
            serial: !setup.in_parallel,
            bug_at: None,
            next_race: None,
            next_nonsense: false,
            copies: Copies::Made,
            reports: Vec::new(),
            crashes: Vec::new(),
            agent_crash: None,
            takeover: None,
            wanted: Vec::new(),
            budget: Budget::new(setup.bound),
            made: Vec::new(),
            races: Races::default(),
            sleepers: None,
            replay: None,
            doubt: None,
            has_raced: false,
            accused: None,
            arbitration: None,
            outcome: None,
            many: false,
            raced: false,
            believed: false,
            strayed: Vec::new(),
            broken: None,
            seen: BTreeSet::new(),
        }
    }

    /// A rule does not hold.
    pub fn breaks(&mut self, rule: impl Into<String>) {
        self.broken.get_or_insert(rule.into());
    }

    pub fn head(&self) -> u64 {
        self.log.len() as u64
    }

    fn property(&self, pos: u64, of: u64) -> u64 {
        Dice::new(self.setup.seed ^ (pos << 20) ^ (of << 50)).roll(3)
    }

    pub fn is_output(&self, pos: u64) -> bool {
        self.property(pos, 1) == 0
    }

    pub fn is_of_order(&self, pos: u64) -> bool {
        self.setup.in_parallel && self.property(pos, 2) != 0
    }

    pub fn living(&self) -> impl Iterator<Item = usize> + '_ {
        let lives = |r: &usize| {
            let m = &self.replicas[*r];
            !m.dropped && !matches!(m.state, State::Dead | State::Exited)
        };
        (0..self.replicas.len()).filter(lives)
    }

    pub fn followers(&self) -> impl Iterator<Item = usize> + '_ {
        self.living().filter(|r| *r != self.leader)
    }

    /// Replicas that were not taken out.
    pub fn total(&self) -> usize {
        self.replicas.iter().filter(|r| !r.dropped).count()
    }

    /// Its thread is stopped until there is a verdict.
    pub fn stands(&self, r: usize) -> bool {
        self.reports.iter().any(|x| x.replica == r) || self.crashes.iter().any(|c| c.replica == r)
    }

    pub fn runs(&self, r: usize) -> bool {
        let m = &self.replicas[r];
        !m.dropped && m.state == State::Runs && !self.stands(r)
    }

    /// Does the leader wait for others to confirm what it is about to do?
    pub fn is_at_output(&self) -> bool {
        self.left < self.head()
    }

    /// Has the log no room for more than what others have not read?
    pub fn is_full(&self) -> bool {
        let others = (0..self.replicas.len()).filter(|r| *r != self.leader);
        let read = others.filter(|r| !self.replicas[*r].dropped);
        let read = read.map(|r| self.replicas[r].pos).min();
        read.is_some_and(|pos| self.head() >= pos + ROOM)
    }

    /// Is it between two records, and uses processor time?
    pub fn computes(&self, r: usize) -> bool {
        let is_led = self.is_at_output() && self.replicas[r].pos == self.head();
        let has_next = match r == self.leader && self.takeover.is_none() {
            true => !self.is_at_output() && !self.is_full(),
            false => !is_led && !self.replicas[r].waits,
        };
        self.runs(r) && has_next
    }

    /// May this one go wrong now?
    fn may_be_hit(&self, r: usize) -> bool {
        let lives = r < self.replicas.len() && self.living().any(|l| l == r);
        let is_well = |r: usize| !self.replicas[r].guilty && self.runs(r);
        // (One at a time: those that are lost are there again, or will never be.)
        let all_well = self.living().all(is_well)
            && self.wanted.is_empty()
            && self.takeover.is_none()
            && self.arbitration.is_none()
            && self.replay.is_none()
            && self.replicas.iter().all(|r| !r.dropped || !r.asked_out);
        let exits = self
            .replicas
            .iter()
            .any(|r| !r.dropped && r.state == State::Exited);
        lives && (self.setup.trouble != Trouble::One || (all_well && !exits))
    }

    fn hit(&mut self, r: usize) -> bool {
        let hit = self.may_be_hit(r);
        if hit {
            self.replicas[r].guilty = true;
            self.count_guilty();
        }
        hit
    }

    pub fn count_guilty(&mut self) {
        let guilty = |r: &usize| self.replicas[*r].guilty;
        self.many |= self.living().filter(guilty).count() > 1;
    }

    /// One event.
    pub fn happens(&mut self, event: Event) {
        if self.outcome.is_some() {
            return;
        }
        let seats = self.replicas.len();
        match event {
            Event::Steps(r, n) => {
                for _ in 0..n {
                    if r < seats && self.outcome.is_none() {
                        self.step(r);
                    }
                }
            }
            Event::Hit(r, says, always) => {
                if r < seats && self.runs(r) && self.hit(r) {
                    self.replicas[r].mark = Some(Mark { says, always });
                }
            }
            Event::Nonsense => {
                let l = self.leader;
                if self.runs(l) && self.hit(l) {
                    self.next_nonsense = true;
                }
            }
            Event::Crash(r, place, in_agent) => {
                if r < seats && self.runs(r) && self.takeover.is_none() && self.hit(r) {
                    self.crashed(r, place, in_agent);
                }
            }
            Event::CrashAgain(r) => {
                if self.crashes.iter().any(|c| c.replica == r) {
                    self.judge_crashes(false);
                }
            }
            Event::Bug => {
                if self.bug_at.is_none() {
                    self.bug_at = Some(self.head() + 1);
                }
            }
            Event::Hang(r) => {
                if r < seats && self.runs(r) && self.hit(r) {
                    self.replicas[r].state = State::Hangs;
                    self.replicas[r].still = self.now;
                }
            }
            Event::Kill(r) => {
                if r < seats && self.may_be_hit(r) {
                    self.killed(r);
                }
            }
            Event::AskOut(r, for_good) => {
                let alone = self.living().count() < 2;
                if r < self.setup.replicas && self.may_be_hit(r) && !alone && !self.is_busy() {
                    self.replicas[r].asked_out = true;
                    self.replicas[r].given_up = for_good;
                    self.killed(r);
                }
            }
            Event::Exit(r) => {
                // (The leader's exit is confirmed, like an output.)
                if r < seats && r != self.leader && self.runs(r) && self.hit(r) {
                    self.replicas[r].state = State::Exited;
                    self.replicas[r].still = self.now;
                }
            }
            Event::Race(astray, race) => {
                if !self.serial && astray != 0 {
                    self.next_race = Some((astray, race));
                }
            }
            Event::Time(ms) => self.passes(Duration::from_millis(ms)),
            Event::Copies(copies) => self.copies = copies,
            Event::Checkpoint => self.put_to_sleep(),
            Event::EndSleepers => self.sleepers = None,
        }
        self.get_on();
        self.leave();
    }

    /// Nothing is asked of a run that is about to do something to replicas.
    fn is_busy(&self) -> bool {
        !self.wanted.is_empty()
            || self.takeover.is_some()
            || self.replay.is_some()
            || self.arbitration.is_some()
            || !self.reports.is_empty()
            || !self.crashes.is_empty()
            || self.setup.has_variants
    }

    fn killed(&mut self, r: usize) {
        self.replicas[r].state = State::Dead;
        self.reports.retain(|x| x.replica != r);
        self.crashes.retain(|c| c.replica != r);
        self.lost(r, true, false);
    }
}
