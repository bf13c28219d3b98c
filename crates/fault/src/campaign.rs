//! A campaign: what is run, and which fault each of its trials makes.

use serde::{Deserialize, Serialize};

use crate::fault::{BYTE_BITS, Fault, Gpr, Target, Vector, WORD_BITS, When, Width};
use crate::kind::Kind;
use crate::point::Point;
use crate::random::Random;

/// Raised when a reader of older results would misunderstand newer ones, and when the same seed
/// would mean other faults.
pub const SCHEMA: u32 = 1;
/// A run has so many instants at which a fault may strike: few enough digits for every reader of
/// JSON to read the same number.
const PARTS: u64 = 1_000_000;
/// A stuck register is set so often at most.
const STUCK_SAMPLES_MAX: u64 = 10;
/// A slow replica stops for so long at most, in milliseconds.
const SLOW_MS_MAX: u64 = 1000;
/// Bits of the flags that a program can feel: CF, PF, AF, ZF, SF, TF, DF, OF.
const FLAGS: [u32; 8] = [0, 2, 4, 6, 7, 8, 10, 11];
/// Bits of an instruction pointer that a program's addresses have.
const IP_BITS: u64 = 47;

/// What a campaign is: the first line of its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// The program, as it is run.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Number of replicas.
    pub replicas: u32,
    /// Number of trials.
    pub trials: u64,
    /// Of all random numbers.
    pub seed: u64,
    /// What is hit, in turn.
    pub targets: Vec<Kind>,
    /// When it is hit.
    #[serde(default)]
    pub times: Times,
    /// Files that the program writes, and that are compared.
    pub files: Vec<String>,
    /// A trial that takes so many times longer than the golden run hangs.
    pub timeout_factor: f64,
    /// Digest of what the golden run wrote.
    pub golden: u64,
    /// How long the golden run takes as replicas, in microseconds; faults strike within.
    pub span_us: u64,
    /// How long it takes bare.
    pub bare_span_us: u64,
    /// How many words the golden run writes to the log of its first process.
    #[serde(default)]
    pub span_events: u64,
}

/// When the faults of a campaign strike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Times {
    /// At any instant of the run.
    #[default]
    Delay,
    /// At any word of the log of the first process.
    Event,
    /// When an instruction is executed, for the n-th time.
    Address {
        /// Which one.
        point: Point,
        /// The largest n.
        most: u64,
    },
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Counted from 0.
    pub number: u64,
    /// When the fault strikes, as a part of the golden run, from 0 to 1.
    pub part: f64,
    /// The fault of the run as replicas.
    pub fault: Fault,
    /// The same for the bare run: it differs in the time only.
    pub bare: Fault,
}

impl Campaign {
    /// A trial. It depends on the seed, its number, and what is hit and how long the program runs;
    /// never on other trials.
    pub fn trial(&self, number: u64) -> Trial {
        let mut random = Random::for_trial(self.seed, number);
        // In turn, so that all have their share in a short campaign as well.
        let turn = number.checked_rem(self.targets.len() as u64).unwrap_or(0);
        let kind = self.targets.get(turn as usize).copied();
        let part = random.below(PARTS) as f64 / PARTS as f64;
        let replica = random.below(u64::from(self.replicas)) as u32;
        let thread = random.next();
        let target = target(kind.unwrap_or(Kind::Crash), &mut random);
        let share = |whole: u64| (part * whole as f64) as u64;
        let delay = |span_us: u64| When::Delay { us: share(span_us) };
        let (when, bare) = match self.times {
            Times::Delay => (delay(self.span_us), delay(self.bare_span_us)),
            // Nobody counts them in a bare run.
            Times::Event => {
                let nth = 1 + share(self.span_events);
                (When::Event { nth }, delay(self.bare_span_us))
            }
            Times::Address { point, most } => {
                let nth = 1 + share(most);
                (When::Address { point, nth }, When::Address { point, nth })
            }
        };
        let fault = |when| Fault {
            replica,
            thread,
            when,
            target,
        };
        Trial {
            number,
            part,
            fault: fault(when),
            bare: fault(bare),
        }
    }

    /// Whether results of the other campaign are results of this one: all but the number of trials
    /// and the measured times is the same.
    ///
    /// # Errors
    /// What differs.
    pub fn continues(&self, other: &Campaign) -> Result<(), String> {
        let differences = [
            ("the format", self.schema != other.schema),
            ("the program", self.program != other.program),
            ("the program's arguments", self.args != other.args),
            ("the number of replicas", self.replicas != other.replicas),
            ("the seed", self.seed != other.seed),
            ("the targets", self.targets != other.targets),
            ("the time of the faults", self.times != other.times),
            ("the output files", self.files != other.files),
            ("the timeout", self.timeout_factor != other.timeout_factor),
            ("what the program writes", self.golden != other.golden),
        ];
        match differences.iter().find(|(_, differs)| *differs) {
            Some((what, _)) => Err(format!("{what} was another one")),
            None => Ok(()),
        }
    }
}

fn target(kind: Kind, random: &mut Random) -> Target {
    let word = |random: &mut Random| random.below(WORD_BITS.into()) as u32;
    let byte = |random: &mut Random| (random.next(), random.below(BYTE_BITS.into()) as u32);
    let register = |random: &mut Random| Gpr::ALL[random.below(Gpr::ALL.len() as u64) as usize];
    match kind {
        Kind::Gpr => Target::Gpr {
            register: register(random),
            bit: word(random),
        },
        Kind::Flags => Target::Flags {
            bit: FLAGS[random.below(FLAGS.len() as u64) as usize],
        },
        Kind::Ip => Target::Ip {
            bit: random.below(IP_BITS) as u32,
        },
        Kind::Xmm => vector(Width::Xmm, random),
        Kind::Ymm => vector(Width::Ymm, random),
        Kind::Zmm => vector(Width::Zmm, random),
        Kind::Stack => bytes(byte(random), |number, bit| Target::Stack { number, bit }),
        Kind::Heap => bytes(byte(random), |number, bit| Target::Heap { number, bit }),
        Kind::Data => bytes(byte(random), |number, bit| Target::Data { number, bit }),
        Kind::Code => bytes(byte(random), |number, bit| Target::Code { number, bit }),
        Kind::Log => bytes(byte(random), |number, bit| Target::Log { number, bit }),
        Kind::Progress => bytes(byte(random), |number, bit| Target::Progress { number, bit }),
        Kind::Stuck => Target::Stuck {
            register: register(random),
            // Lines that stick are low or high more often than anything else.
            value: match random.below(3) {
                0 => 0,
                1 => u64::MAX,
                _ => random.next(),
            },
            samples: 1 + random.below(STUCK_SAMPLES_MAX) as u32,
        },
        Kind::Skip => Target::Skip,
        Kind::Crash => Target::Crash,
        Kind::Stop => Target::Stop,
        Kind::Slow => Target::Slow {
            ms: 1 + random.below(SLOW_MS_MAX),
        },
        Kind::Monitor => Target::Monitor,
        Kind::Canary => Target::Canary,
    }
}

fn bytes((number, bit): (u64, u32), make: impl Fn(u64, u32) -> Target) -> Target {
    make(number, bit)
}

fn vector(width: Width, random: &mut Random) -> Target {
    Target::Vector(Vector {
        width,
        number: random.below(width.registers().into()) as u32,
        bit: random.below(width.bits().into()) as u32,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::kind;

    /// A campaign over all that a replica can be hit by.
    pub fn campaign() -> Campaign {
        Campaign {
            schema: SCHEMA,
            program: "gzip".into(),
            args: vec!["-c".into(), "file".into()],
            replicas: 3,
            trials: 100,
            seed: 42,
            targets: kind::parse_list("all").expect("a list"),
            times: Times::Delay,
            files: vec!["out".into()],
            timeout_factor: 5.0,
            golden: 7,
            span_us: 1_000_000,
            bare_span_us: 10_000,
            span_events: 500,
        }
    }

    #[test]
    fn a_trial_depends_on_seed_and_number_only() {
        let whole: Vec<Trial> = (0..200).map(|i| campaign().trial(i)).collect();
        let mut longer = campaign();
        longer.trials = 1000;
        for i in (0..200).rev() {
            assert_eq!(longer.trial(i), whole[i as usize]);
        }
        let mut other = campaign();
        other.seed += 1;
        assert!((0..200).all(|i| other.trial(i).part != whole[i as usize].part));
    }

    #[test]
    fn a_seed_means_the_same_for_ever() {
        // Results name seeds: whoever changes this raises SCHEMA.
        let faults: Vec<String> = (0..3)
            .map(|i| campaign().trial(i).fault.to_string())
            .collect();
        let expected = [
            "replica=0,thread=14609132357826170061,when=delay:384973,target=gpr:r9:52",
            "replica=1,thread=11473254248657186683,when=delay:364411,target=flags:10",
            "replica=0,thread=11521430355782687925,when=delay:93546,target=ip:28",
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn all_targets_have_their_turn_and_all_replicas_are_hit() {
        let campaign = campaign();
        for (i, kind) in campaign.targets.iter().enumerate() {
            assert_eq!(campaign.trial(i as u64).fault.target.kind(), *kind);
        }
        for replica in 0..3 {
            assert!((0..50).any(|i| campaign.trial(i).fault.replica == replica));
        }
    }

    #[test]
    fn faults_can_be_written_and_read_and_strike_in_time() {
        for i in 0..2000 {
            let trial = campaign().trial(i);
            for (fault, span) in [(trial.fault, 1_000_000), (trial.bare, 10_000)] {
                assert_eq!(fault.to_string().parse(), Ok(fault));
                assert!(
                    matches!(fault.when, When::Delay { us } if us < span),
                    "{fault}"
                );
            }
            assert_eq!(trial.fault.target, trial.bare.target);
        }
    }

    #[test]
    fn faults_may_wait_for_events_and_instructions() {
        let mut campaign = campaign();
        campaign.times = Times::Event;
        let mut seen = [false; 2];
        for i in 0..500 {
            let trial = campaign.trial(i);
            let When::Event { nth } = trial.fault.when else {
                panic!("{}", trial.fault);
            };
            assert!((1..=500).contains(&nth));
            seen[usize::from(nth > 250)] = true;
            assert!(matches!(trial.bare.when, When::Delay { us } if us < 10_000));
        }
        assert_eq!(seen, [true; 2]);
        campaign.times = "at:main+0x5:9".parse().expect("times");
        for i in 0..100 {
            let trial = campaign.trial(i);
            assert!(matches!(trial.fault.when, When::Address { nth: 1..=9, .. }));
            assert_eq!(trial.fault, trial.bare);
        }
    }

    #[test]
    fn older_results_are_read() {
        let mut old = serde_json::to_value(campaign()).expect("json");
        let fields = old.as_object_mut().expect("an object");
        assert_eq!(fields.remove("times"), Some("delay".into()));
        fields.remove("span_events");
        let read: Campaign = serde_json::from_value(old).expect("a campaign");
        assert_eq!(read.continues(&campaign()), Ok(()));
    }

    #[test]
    fn nothing_to_hit_is_no_panic() {
        let mut campaign = campaign();
        campaign.targets.clear();
        campaign.replicas = 0;
        campaign.trial(3);
    }

    #[test]
    fn only_the_same_campaign_is_continued() {
        let mut more = campaign();
        (more.trials, more.span_us) = (200, 5);
        assert_eq!(more.continues(&campaign()), Ok(()));
        let mut other = campaign();
        other.seed = 1;
        let error = other.continues(&campaign()).expect_err("another seed");
        assert!(error.contains("seed"), "{error}");
        let mut other = campaign();
        other.args.pop();
        let error = other.continues(&campaign()).expect_err("another program");
        assert!(error.contains("arguments"), "{error}");
    }
}
