//! How one thread that computes is brought to where another one of the same course stands: which of the two
//! is behind, and for how long it has to run, told by the words of their states that count something.
//!
//! Nothing here makes a call: what was seen goes in, what is to be done comes out.

use std::time::Duration;

/// What is to be done next with the thread that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// See in which words its state differs from the other one's: [`Course::compared`].
    Compare,
    /// Let it compute for so long, stop it, and look at these words again: [`Course::sampled`].
    Run(Duration),
    /// Let it come to the other one's instruction, and compare each time, so often and for so long at most:
    /// [`Course::missed`] if the states were never equal.
    Approach(u32, Duration),
    /// It is beyond: the other one is to come to where it stands.
    Swap,
    /// They do not come to meet.
    GiveUp,
}

/// The words in which two states differ, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Processor time that the thread had used by then.
    pub at: Duration,
    /// What the words held.
    pub words: Vec<u64>,
}

/// A state that comes again and again is met at once.
const QUICK: Act = Act::Approach(256, Duration::from_millis(15));
/// The same where it may well compute.
const SHORT: Act = Act::Approach(64, Duration::from_millis(2));
/// The last stretch.
const NEAR: Act = Act::Approach(100_000, Duration::from_secs(2));
/// Where nothing tells how far it is.
const BLIND: Act = Act::Approach(20_000, Duration::from_millis(500));
/// A thread stops some 50 us after it was told to.
const PRECISION: Duration = Duration::from_micros(120);
/// From so far away a thread comes up in a second at worst, where it need not stop each time.
const NEAR_FOR_A_SENTRY: Duration = Duration::from_millis(5);
/// It never runs for longer without a look.
const LONGEST: Duration = Duration::from_millis(200);
/// How long it runs between two samples: what counts in an outer loop changes seldom.
const INTERVALS: [Duration; 3] = [
    Duration::from_micros(200),
    Duration::from_millis(2),
    Duration::from_millis(20),
];
/// So many intervals have to agree on the pace of a word.
const AGREEING: usize = 4;
/// Of these the fastest is so many times as fast as the slowest, at most.
const EVEN: f64 = 4.0;
/// Who spins, and counts that, changes few words, registers included.
const FEW: usize = 18 + 32;
/// After so many changes of roles, and so many approaches in vain, nothing will come of it.
const MOST_SWAPS: u32 = 6;
const MOST_MISSES: u32 = 8;

/// Where the pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing is known.
    New,
    /// Does the state come again at once?
    Quick,
    /// How fast do the words change?
    Sampling(usize),
    /// It runs towards the other one.
    Closing,
    /// It is there, or nearly.
    Near,
    /// Nothing tells.
    Blind,
}

/// The way of a pair.
#[derive(Debug)]
pub struct Course {
    stage: Stage,
    /// The other one's words.
    goal: Vec<u64>,
    samples: Vec<Sample>,
    swaps: u32,
    misses: u32,
    /// It is left alone unless it spins.
    only_spinning: bool,
    /// The thread need not stop each time that it comes to the instruction.
    has_sentry: bool,
}

impl Course {
    /// A pair that stands at different places, or in different rounds of a loop. `only_spinning`: it is worth
    /// nothing but a short look if the thread does more than to look at something and count.
    pub fn new(only_spinning: bool) -> Course {
        Course {
            stage: Stage::New,
            goal: Vec::new(),
            samples: Vec::new(),
            swaps: 0,
            misses: 0,
            only_spinning,
            has_sentry: false,
        }
    }

    /// From now on an approach takes little longer than the computation.
    pub fn may_come_from_far(&mut self) {
        self.has_sentry = true;
    }

    /// The roles were changed, as [`Act::Swap`] asked for: the distance is known, and small.
    pub fn swapped(&mut self) -> Act {
        self.swaps += 1;
        if self.swaps > MOST_SWAPS {
            return Act::GiveUp;
        }
        self.stage = Stage::Near;
        NEAR
    }

    /// The approach has come to nothing.
    pub fn missed(&mut self) -> Act {
        self.misses += 1;
        if self.misses > MOST_MISSES {
            return Act::GiveUp;
        }
        match self.stage {
            Stage::Blind => Act::Swap,
            _ => Act::Compare,
        }
    }

    /// The states differ in these words now.
    pub fn compared(&mut self, goal: Vec<u64>, now: Sample) -> Act {
        if self.stage == Stage::New {
            self.stage = Stage::Quick;
            return if self.only_spinning { SHORT } else { QUICK };
        }
        if self.only_spinning && goal.len() > FEW {
            return Act::GiveUp;
        }
        self.goal = goal;
        self.samples = vec![now];
        self.stage = Stage::Sampling(0);
        Act::Run(INTERVALS[0])
    }

    /// It has run, and these words are different now.
    pub fn sampled(&mut self, now: Sample) -> Act {
        self.samples.push(now);
        if let Stage::Sampling(level) = self.stage
            && self.samples.len() <= AGREEING
        {
            return Act::Run(INTERVALS[level]);
        }
        let left = self.seconds_left();
        match (self.stage, left) {
            (_, Some(s)) if s < 0.0 => Act::Swap,
            (_, Some(s)) if s < self.near().as_secs_f64() => {
                self.stage = Stage::Near;
                NEAR
            }
            (_, Some(s)) => {
                self.stage = Stage::Closing;
                let part = Duration::from_secs_f64((s * 0.875).min(LONGEST.as_secs_f64()));
                Act::Run(part.saturating_sub(PRECISION / 2).max(PRECISION / 4))
            }
            (Stage::Sampling(level), None) if level + 1 < INTERVALS.len() => {
                self.stage = Stage::Sampling(level + 1);
                self.samples.drain(..self.samples.len() - 1);
                Act::Run(INTERVALS[level + 1])
            }
            (_, None) => {
                self.stage = Stage::Blind;
                BLIND
            }
        }
    }

    fn near(&self) -> Duration {
        match self.has_sentry {
            true => NEAR_FOR_A_SENTRY,
            false => PRECISION,
        }
    }

    /// For how long the thread has still to compute, by the middle one of the words that tell; below zero: it
    /// is beyond. None: no word tells.
    fn seconds_left(&self) -> Option<f64> {
        let paces = (0..self.goal.len()).filter_map(|i| self.left_by(i));
        let mut all: Vec<f64> = paces.collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// The same by one word, if it has kept a steady pace over the last intervals.
    fn left_by(&self, word: usize) -> Option<f64> {
        // What is further from here is no counter.
        const FAR: f64 = (1u64 << 48) as f64;
        let from = self.samples.len().saturating_sub(AGREEING + 1);
        let recent = &self.samples[from..];
        let value = |s: &Sample| s.words.get(word).copied();
        let (mut slowest, mut fastest) = (f64::INFINITY, 0.0f64);
        let mut up = None;
        for pair in recent.windows(2) {
            let moved = value(&pair[1])?.wrapping_sub(value(&pair[0])?) as i64 as f64;
            let time = pair[1].at.checked_sub(pair[0].at)?.as_secs_f64();
            if moved == 0.0 || time <= 0.0 || *up.get_or_insert(moved > 0.0) != (moved > 0.0) {
                return None;
            }
            let pace = moved.abs() / time;
            (slowest, fastest) = (slowest.min(pace), fastest.max(pace));
        }
        let (first, last) = (recent.first()?, recent.last()?);
        let moved = value(last)?.wrapping_sub(value(first)?) as i64 as f64;
        let left = self.goal[word].wrapping_sub(value(last)?) as i64 as f64;
        let time = last.at.checked_sub(first.at)?.as_secs_f64();
        let is_steady = recent.len() > AGREEING && fastest <= EVEN * slowest;
        (is_steady && moved.abs() < FAR && left.abs() < FAR).then(|| left / moved * time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread whose state is a function of its round: one round takes 100 ns.
    struct Thread {
        round: u64,
        ran: Duration,
        state: fn(u64) -> Vec<u64>,
    }

    const ROUND_NS: u64 = 100;

    impl Thread {
        fn run(&mut self, time: Duration) {
            self.ran += time;
            self.round += time.as_nanos() as u64 / ROUND_NS;
        }

        fn sample(&self) -> Sample {
            Sample {
                at: self.ran,
                words: (self.state)(self.round),
            }
        }
    }

    /// Both threads' rounds at the end, if they have met.
    fn meet(rounds: [u64; 2], state: fn(u64) -> Vec<u64>) -> Option<u64> {
        let mut threads = rounds.map(|round| Thread {
            round,
            ran: Duration::from_millis(7),
            state,
        });
        let mut course = Course::new(false);
        let (mut stands, mut runs) = (0, 1);
        let mut act = Act::Compare;
        for _ in 0..1000 {
            let goal = state(threads[stands].round);
            act = match act {
                Act::Compare => {
                    let now = threads[runs].sample();
                    course.compared(goal, now)
                }
                Act::Run(time) => {
                    // It is stopped a little late.
                    threads[runs].run(time + Duration::from_micros(37));
                    course.sampled(threads[runs].sample())
                }
                Act::Approach(most, _) => {
                    for _ in 0..most {
                        threads[runs].round += 1;
                        if state(threads[runs].round) == goal {
                            return Some(threads[runs].round);
                        }
                    }
                    course.missed()
                }
                Act::Swap => {
                    (stands, runs) = (runs, stands);
                    course.swapped()
                }
                Act::GiveUp => return None,
            };
        }
        panic!("it neither meets nor gives up")
    }

    #[test]
    fn a_loop_that_changes_nothing_is_met_at_once() {
        assert_eq!(meet([5_000_000, 9], |_| vec![42]), Some(10));
    }

    #[test]
    fn who_is_behind_comes_up() {
        assert_eq!(meet([5_000_000, 1_000], |n| vec![n, 7]), Some(5_000_000));
    }

    #[test]
    fn who_is_beyond_names_the_point() {
        let met = meet([1_000, 5_000_000], |n| vec![3 * n, 7]).expect("they meet");
        assert!(met > 5_000_000);
    }

    #[test]
    fn a_counter_of_an_outer_loop_tells_as_well() {
        let state = |n: u64| vec![n % 8, n / 80_000, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)];
        assert!(meet([20_000_000, 50_000], state).is_some());
        assert!(meet([50_000, 20_000_000], state).is_some());
    }

    #[test]
    fn what_counts_down_tells_as_well() {
        let state = |n: u64| vec![u64::MAX - n, 5];
        assert_eq!(meet([900_000, 20], state), Some(900_000));
    }

    #[test]
    fn who_does_not_spin_is_left_alone_if_that_was_the_question() {
        let mut course = Course::new(true);
        let many = vec![5; FEW + 1];
        assert_eq!(course.compared(many.clone(), Sample::default()), SHORT);
        assert_eq!(course.missed(), Act::Compare);
        assert_eq!(course.compared(many, Sample::default()), Act::GiveUp);
    }

    #[test]
    fn who_counts_while_it_spins_is_met() {
        let mut course = Course::new(true);
        assert_eq!(course.compared(vec![5], Sample::default()), SHORT);
        assert_eq!(course.missed(), Act::Compare);
        let next = course.compared(vec![5], Sample::default());
        assert_eq!(next, Act::Run(INTERVALS[0]));
    }

    #[test]
    fn noise_alone_is_given_up() {
        let noise = |n: u64| {
            let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            vec![mixed ^ mixed >> 29]
        };
        assert_eq!(meet([40_000_000, 5], noise), None);
    }
}
