//! Every place of [`FaultPoint`] where something can go wrong has it go wrong, at its first passing and
//! at later ones, in both orders: the output is right, the run ends as the program does natively, nothing
//! hangs and nothing is left behind. A place that no run passes is a failure.

mod children;
#[allow(dead_code)] // this test knows how its guest is run
#[path = "../support/guest.rs"]
mod guest;
mod losses;
mod one_order;
mod runs;
mod signals;
#[allow(dead_code)] // numbers of replicas matter to the other tests only
#[path = "../support/mod.rs"]
mod support;

use geryon_abi::point::FaultPoint;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use support::{Ended, Outcome, Program, TempDir, Verdicts, difference, quoted, settings, tail};

/// A run hangs when it takes longer: the watchdog's verdict comes after some seconds.
const LIMIT_S: u64 = 40;
/// Geryon's own failure.
const OWN_FAILURE: i32 = 125;
/// Later passings are chosen among so many.
const LATER: u64 = 24;

/// How a place is come to.
#[derive(Clone, Copy)]
struct Way {
    /// What goes wrong before: a loss that is to be repaired.
    before: &'static [&'static str],
    /// The most passings that there are for certain.
    most: u64,
    /// The run may end with a message and status 125.
    may_stop: bool,
    /// Only in this order.
    order: Option<&'static str>,
}

const USUAL: Way = Way {
    before: &[],
    most: LATER,
    may_stop: false,
    order: None,
};

fn way(point: FaultPoint) -> Way {
    use FaultPoint as P;
    let in_order = |order| Way {
        order: Some(order),
        ..USUAL
    };
    let behind = |before| Way {
        before,
        most: 1,
        ..USUAL
    };
    match point {
        P::TickUnpublished | P::TickUnadvanced | P::TickFollowed | P::SignalInLock => {
            in_order("clocks")
        }
        P::OutcomeUnpublished => Way {
            most: 1,
            ..in_order("clocks")
        },
        P::AtomicUnpublished | P::AtomicUnadvanced => in_order("clocks"),
        P::OrderChanges => in_order("clocks"),
        P::TurnReleased | P::TurnUnpublished | P::TurnTaken => in_order("serial"),
        // Which of its parts are short is the program's and the kernel's affair.
        P::RestBegun | P::RestSummed => behind(&["write-halved:1"]),
        P::RoomAwaited => Way { most: 1, ..USUAL },
        P::WriteHalved => Way { most: 3, ..USUAL },
        P::BirthUnlogged | P::BirthTorn | P::BirthUnborn | P::DeathUnticked | P::ThreadFails => {
            Way { most: 4, ..USUAL }
        }
        P::ForkUnlogged | P::ChildNew | P::ChildUnmapped | P::ChildUngreeted | P::SegmentFails => {
            Way { most: 6, ..USUAL }
        }
        P::ForkFails | P::FetchFails => Way { most: 3, ..USUAL },
        P::ExecConfirmed => Way { most: 2, ..USUAL },
        P::ExitConfirmed => Way { most: 6, ..USUAL },
        P::SignalUnlogged | P::SignalQueued | P::SignalRead => Way { most: 7, ..USUAL },
        P::FollowerSleepy => Way { most: 2, ..USUAL },
        // (A follower that keeps up is never waited for so long.)
        P::LeaderSleepy => Way {
            before: &["record-delayed:20"],
            most: 2,
            ..USUAL
        },
        P::PromotionBegun | P::PromotionPrepared => behind(&["rendezvous-confirmed:9"]),
        P::AddresseeKilled => Way { most: 2, ..USUAL },
        P::WaitAnswered => Way {
            most: 2,
            ..behind(&["call-returned:40:0"])
        },
        // (A call that only looks is made again: this one maps a library. And no other loss behind it: it
        // might be the last replica's.)
        P::LegacyTaken => behind(&["call-unlogged:34:0"]),
        P::OpenFails | P::SegmentUnmapped | P::MemfdFails => Way {
            most: 3,
            may_stop: true,
            ..USUAL
        },
        P::LaunchFails => Way {
            most: 1,
            may_stop: true,
            ..USUAL
        },
        P::CopyFails
        | P::SourceHalted
        | P::SourceCopied
        | P::LeaderBeside
        | P::CopyForked
        | P::CopyJoined => behind(&["acknowledged:9:1"]),
        // (When it has several threads: the first ones are the loader's.)
        P::CopyThreadFails => behind(&["memory-repeated:22:1"]),
        P::SecondLost
        | P::SuccessorChosen
        | P::SuccessorExamined
        | P::SuccessorReplayed
        | P::SuccessorAsked
        | P::SuccessorLeads => behind(&["call-returned:40:0"]),
        P::ReportFails => behind(&["acknowledged:5:1"]),
        P::JournalFails => Way { most: 1, ..USUAL },
        _ => USUAL,
    }
}

#[test]
fn every_place() {
    support::no_core_files();
    let guest = guest::built("points").to_string_lossy().into_owned();
    let native = one(&[&guest], None).expect("it starts");
    assert_eq!(native.ended, Ended::Exit(0), "natively");
    let shared = shared_memory();
    let verdicts = Mutex::new(Verdicts::default());
    let mut chance = settings::seed();
    let points = FaultPoint::ALL.iter().copied();
    let points = points.filter(|p| settings::selected(p.name()));
    let trials: Vec<_> = points.map(|p| (p, passings(p, &mut chance))).collect();
    support::beside(&trials, |(point, passings)| {
        let (mut passed, mut failures) = (0, Vec::new());
        for (order, nth) in passings {
            match trial(&guest, *point, way(*point), order, *nth, &native) {
                Ok(true) => passed += 1,
                Ok(false) => {}
                Err(e) => {
                    passed += 1;
                    failures.push(e);
                }
            }
        }
        if passed == 0 {
            failures.push("it is not passed".to_owned());
        }
        let note = format!("{} runs, {passed} failed there", passings.len());
        let mut verdicts = verdicts.lock().expect("no point panics");
        verdicts.add(point.name(), &note, &failures);
    });
    let left: Vec<PathBuf> = shared_memory()
        .into_iter()
        .filter(|p| !shared.contains(p))
        .collect();
    assert!(left.is_empty(), "left in /dev/shm: {left:?}");
    verdicts.into_inner().expect("no point panics").finish();
}

/// In which orders, and at which of its passings, a place has it go wrong.
fn passings(point: FaultPoint, chance: &mut u64) -> Vec<(&'static str, u64)> {
    let way = way(point);
    let mut passings = Vec::new();
    for order in ["clocks", "serial"] {
        if way.order.is_some_and(|o| o != order) {
            continue;
        }
        passings.push((order, 1));
        for _ in 0..settings::repeat() {
            let nth = 1 + draw(chance) % way.most;
            if way.most > 1 || settings::repeat() > 1 {
                passings.push((order, nth));
            }
        }
    }
    passings
}

/// One run. Whether the place was passed so often; `Err` says what is wrong.
fn trial(
    guest: &str,
    point: FaultPoint,
    way: Way,
    order: &str,
    nth: u64,
    native: &Outcome,
) -> Result<bool, String> {
    let geryon = settings::geryon();
    let at = format!("{}:{nth}", point.name());
    let mut argv = vec![geryon.as_str(), "run", "-n", "3", "--order", order];
    for before in way.before {
        argv.extend(["--fail-at", before]);
    }
    argv.extend(["--fail-at", &at]);
    argv.extend(["--journal", "journal", "--report", "report"]);
    argv.extend(["--", guest]);
    let command: Vec<String> = argv.iter().map(|w| quoted(w)).collect();
    let outcome = one(&argv, Some(()))?;
    let said = String::from_utf8_lossy(&outcome.stderr);
    let mark = format!("geryon: fault point {}", point.name());
    let passed = said.lines().any(|l| {
        l.strip_prefix(&mark)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
    });
    let mut faults = outcome.faults();
    let stopped = way.may_stop && outcome.ended == Ended::Exit(OWN_FAILURE);
    if stopped {
        let named = |l: &String| !l.starts_with("geryon: fault point");
        if !outcome.geryon_lines().iter().any(named) {
            faults.push("stopped without a word".to_owned());
        }
        if !native.stdout.starts_with(&outcome.stdout) {
            faults.push("wrong output before it stopped".to_owned());
        }
    } else {
        if outcome.ended != native.ended {
            faults.push(format!(
                "ended by {}, natively {}",
                outcome.ended, native.ended
            ));
        }
        faults.extend(difference("stdout", &native.stdout, &outcome.stdout));
    }
    if faults.is_empty() {
        return Ok(passed);
    }
    Err(format!(
        "{}\n{}\n{}",
        faults.join("\n"),
        tail(&outcome.stderr),
        command.join(" ")
    ))
}

/// Run it in a folder of its own.
fn one(argv: &[&str], limited: Option<()>) -> Result<Outcome, String> {
    let dir = TempDir::new();
    let program = Program {
        argv: argv.iter().map(|w| (*w).to_owned()).collect(),
        env: std::collections::BTreeMap::new(),
        stdin: None,
        dir: dir.path().to_owned(),
        send: None,
        limit: settings::limit(limited.map_or(10, |()| LIMIT_S)),
    };
    program.run()
}

/// Numbers by chance, the same for the same seed.
fn draw(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Objects in /dev/shm that could be Geryon's.
fn shared_memory() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|e| e.path());
    names
        .filter(|p| p.to_string_lossy().contains("geryon"))
        .collect()
}
