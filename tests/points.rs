//! Every place of [`FaultPoint`] where something can go wrong has it go wrong, at its first passing and
//! at later ones, in both orders: the output is right, the run ends as the program does natively, nothing
//! hangs and nothing is left behind. A place that no run passes is a failure.

#[allow(dead_code)] // this test knows how its guest is run
#[path = "support/guest.rs"]
mod guest;
#[allow(dead_code)] // numbers of replicas matter to the other tests only
mod support;

use geryon_abi::point::FaultPoint;
use std::fs;
use std::path::PathBuf;
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
    let mut verdicts = Verdicts::default();
    let mut chance = settings::seed();
    for point in FaultPoint::ALL {
        if !settings::selected(point.name()) {
            continue;
        }
        let (mut runs, mut passed) = (0, 0);
        let mut failures = Vec::new();
        for order in ["clocks", "serial"] {
            let way = way(*point);
            if way.order.is_some_and(|o| o != order) {
                continue;
            }
            for round in 0..=settings::repeat() {
                let nth = match round {
                    0 => 1,
                    _ => 1 + draw(&mut chance) % way.most,
                };
                if round > 0 && way.most == 1 && settings::repeat() == 1 {
                    continue;
                }
                runs += 1;
                match trial(&guest, *point, way, order, nth, &native) {
                    Ok(true) => passed += 1,
                    Ok(false) => {}
                    Err(e) => {
                        passed += 1;
                        failures.push(e);
                    }
                }
            }
        }
        if passed == 0 {
            failures.push("it is not passed".to_owned());
        }
        verdicts.add(
            point.name(),
            &format!("{runs} runs, {passed} failed there"),
            &failures,
        );
    }
    let left: Vec<PathBuf> = shared_memory()
        .into_iter()
        .filter(|p| !shared.contains(p))
        .collect();
    assert!(left.is_empty(), "left in /dev/shm: {left:?}");
    verdicts.finish();
}

/// A successor is lost as soon as it is asked, before it has fetched any descriptors: the next one must have
/// them from where the first one would have had them. (It fetched from the first one, which had none, and a
/// pipeline ended with nothing printed.)
#[test]
fn successors_lost_before_they_have_descriptors() {
    support::no_core_files();
    let script = "seq 1 20000 | tr 0 x | sort | tail -n 3; echo done";
    let native = one(&["bash", "-c", script], None).expect("it starts");
    let geryon = settings::geryon();
    let (mut lost, mut failures) = (0, Vec::new());
    for (order, call, asked) in ["serial", "clocks"].iter().flat_map(|order| {
        let calls = [120, 180, 240, 300].iter();
        calls.flat_map(move |call| (1..=3).map(move |asked| (order, call, asked)))
    }) {
        let (first, second) = (
            format!("call-returned:{call}:0"),
            format!("successor-asked:{asked}"),
        );
        let mut argv = vec![geryon.as_str(), "run", "-n", "3", "--order", order];
        argv.extend(["--fail-at", &first, "--fail-at", &second]);
        argv.extend(["--", "bash", "-c", script]);
        let outcome = one(&argv, Some(())).unwrap_or_else(|e| panic!("{argv:?}: {e}"));
        let said = String::from_utf8_lossy(&outcome.stderr);
        lost += usize::from(said.contains("fault point successor-asked"));
        if outcome.ended != native.ended || outcome.stdout != native.stdout {
            let printed = String::from_utf8_lossy(&outcome.stdout);
            failures.push(format!(
                "{argv:?}: {}\nprinted: {printed:?}\n{said}",
                outcome.ended
            ));
        }
    }
    assert!(lost >= 8, "a successor was lost in {lost} runs only");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A leader is lost before its forked child has come to its group, and its successor before that one's has: the
/// child of the third, which has come, leads. (It was told to follow the second one's, which was never born: its
/// parent knew no such child, and it waited for ever. 6 to 14 % of these runs.)
#[test]
fn two_leaders_lost_before_their_children_have_come() {
    support::no_core_files();
    let script = "for i in 1 2 3 4 5 6 7 8; do (echo $i); done; echo done";
    let native = one(&["bash", "-c", script], None).expect("it starts");
    let geryon = settings::geryon();
    let (mut lost, mut failures) = (0, Vec::new());
    for (order, every, nth) in ["serial", "clocks"].iter().flat_map(|order| {
        (1..=3).flat_map(move |every| (1..=8).chain(1..=8).map(move |nth| (order, every, nth)))
    }) {
        let (delays, first) = (
            format!("record-delayed:{every}"),
            format!("child-new:{nth}:0"),
        );
        let mut argv = vec![geryon.as_str(), "run", "-n", "3", "--order", order];
        for at in [&delays, &first, "successor-asked:1"] {
            argv.extend(["--fail-at", at]);
        }
        argv.extend(["--", "bash", "-c", script]);
        let outcome = one(&argv, Some(())).unwrap_or_else(|e| panic!("{argv:?}: {e}"));
        let said = String::from_utf8_lossy(&outcome.stderr);
        lost += usize::from(said.contains("fault point successor-asked"));
        if outcome.ended != native.ended || outcome.stdout != native.stdout {
            let printed = String::from_utf8_lossy(&outcome.stdout);
            failures.push(format!(
                "{argv:?}: {}\nprinted: {printed:?}\n{said}",
                outcome.ended
            ));
        }
    }
    assert!(lost >= 80, "a successor was lost in {lost} runs only");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A follower is lost at the birth of a child, when the other one's child sleeps before it has come to its own
/// log: who was copied there shared its socket and its table of descriptors with its copy, and one of the two
/// was lost as well. (4 of these 72 runs.)
#[test]
fn newborns_are_not_copied() {
    support::no_core_files();
    let guest = guest::built("recover_children")
        .to_string_lossy()
        .into_owned();
    let geryon = settings::geryon();
    let mut failures = Vec::new();
    for (order, point, nth) in ["serial", "clocks"].iter().flat_map(|order| {
        let points = ["child-ungreeted", "child-unmapped"].iter();
        points.flat_map(move |point| (1..=18).map(move |nth| (order, point, nth)))
    }) {
        let at = format!("{point}:{nth}:1");
        let mut argv = vec![geryon.as_str(), "run", "-n", "3", "--order", order];
        argv.extend(["--fail-at", "record-delayed:1", "--fail-at", &at]);
        argv.extend(["--", &guest, "10"]);
        let outcome = one(&argv, Some(())).unwrap_or_else(|e| panic!("{argv:?}: {e}"));
        let said = String::from_utf8_lossy(&outcome.stderr);
        if outcome.ended != Ended::Exit(0) || !said.contains("1 fault seen, 1 replica replaced") {
            let printed = String::from_utf8_lossy(&outcome.stdout);
            failures.push(format!(
                "{argv:?}: {}\nprinted: {printed:?}\n{said}",
                outcome.ended
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Processes that share memory are copied together, and one of them is lost meanwhile: a source, a copy or the
/// leader. (They were not copied at all.)
#[test]
fn processes_that_share_memory_are_lost_again() {
    support::no_core_files();
    let guest = guest::built("recover_shared")
        .to_string_lossy()
        .into_owned();
    let native = one(&[&guest, "60"], None).expect("it starts");
    let geryon = settings::geryon();
    let points = [
        FaultPoint::SourceHalted,
        FaultPoint::SourceCopied,
        FaultPoint::LeaderBeside,
        FaultPoint::CopyForked,
        FaultPoint::CopyJoined,
        FaultPoint::CopyFails,
    ];
    let (mut lost, mut failures) = (0, Vec::new());
    for (order, point, nth) in ["serial", "clocks"].iter().flat_map(|order| {
        let points = points.iter();
        points.flat_map(move |point| (1..=3).map(move |nth| (order, point, nth)))
    }) {
        let at = format!("{}:{nth}", point.name());
        let mut argv = vec![geryon.as_str(), "run", "-n", "3", "--order", order];
        argv.extend(["--fail-at", "acknowledged:40:1", "--fail-at", &at]);
        argv.extend(["--", &guest, "60"]);
        let outcome = one(&argv, Some(())).unwrap_or_else(|e| panic!("{argv:?}: {e}"));
        let said = String::from_utf8_lossy(&outcome.stderr);
        lost += usize::from(said.contains(&format!("fault point {}", point.name())));
        let is_right = outcome.ended == native.ended && outcome.stdout == native.stdout;
        if !is_right || !said.contains("3 replicas again") {
            let printed = String::from_utf8_lossy(&outcome.stdout);
            failures.push(format!(
                "{argv:?}: {}\nprinted: {printed:?}\n{said}",
                outcome.ended
            ));
        }
    }
    assert!(lost >= 30, "somebody was lost in {lost} runs only");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A leader is lost between a signal's stop and the moment at which it is in the thread's block, known to the
/// monitor or not: the next one has it, and once. (look-killed:11, for one: its handler never ran.)
#[test]
fn a_signal_that_nobody_has_noted_is_not_lost() {
    let guest = guest::built("recover_signals");
    let argv = [&*guest.to_string_lossy(), "2", "5"];
    let looks = (1..=40).map(|nth| vec![format!("look-killed:{nth}")]);
    let stops = (1..=10).map(|nth| vec![format!("stop-killed:{nth}")]);
    all_right(&argv, looks.chain(stops));
}

/// The same for what the program has sent another thread, or itself while any of its threads could take it.
#[test]
fn a_signal_sent_to_one_of_several_threads_is_not_lost() {
    let guest = guest::built("sent_to_threads");
    let stops = (1..=18).map(|nth| vec![format!("stop-killed:{nth}")]);
    let again = (1..=6).map(|nth| vec!["stop-killed:2".into(), format!("stop-killed:{nth}")]);
    all_right(&[&*guest.to_string_lossy()], stops.chain(again));
}

/// A leader that has taken over is lost right behind a call that tells an id or gives a thread its name: what the
/// kernel has told it is not what the program knows, and its descriptors of files below /proc are of a process that
/// is gone. (call-noted:67, for one.)
#[test]
fn what_names_a_lost_leader_names_the_next_one() {
    let guest = guest::built("recover_ids");
    let argv = [&*guest.to_string_lossy(), "2", "1"];
    let places = (60..=90).map(|nth| vec!["call-begun:30:0".into(), format!("call-noted:{nth}")]);
    all_right(&argv, places);
}

/// A process that another replica has taken over sends itself a SIGCHLD.
#[test]
fn a_childs_signal_that_the_program_sends_itself_comes() {
    let guest = guest::built("recover_own_chld");
    let argv = [&*guest.to_string_lossy(), "4"];
    let begun = [20, 40, 60].map(|nth| vec![format!("call-begun:{nth}:0")]);
    let stops = (1..=8).map(|nth| vec!["call-begun:20:0".into(), format!("stop-killed:{nth}")]);
    all_right(&argv, begun.into_iter().chain(stops));
}

/// A leader is lost when it has written by a call to a file that its program has mapped, and nobody knows: the
/// successor is given the call as made, and has the bytes. (They were gone, without a word.)
#[test]
fn what_was_written_to_a_mapped_file_is_not_lost() {
    let guest = guest::built("kin_writes");
    let places = (60..=110).step_by(3);
    let places = places.map(|nth| vec!["--fail-at".into(), format!("call-returned:{nth}:0")]);
    all_right_in(&["serial"], &[&*guest.to_string_lossy()], places);
}

/// A fault takes a thread of the leader out of a sleep which the kernel was about to take up again: the number that
/// it does that by was taken for the call's result (of a futex: glibc aborted the program).
#[test]
fn a_sleep_that_was_to_be_taken_up_again_has_no_result() {
    let guest = guest::built("sleeps_of_all_kinds");
    let argv = [&*guest.to_string_lossy()];
    let threads = 1..=3;
    let faults = threads.flat_map(|t| [60, 90, 130].map(|ms| (t, ms)));
    all_right_with(
        &argv,
        faults.map(|(t, ms)| {
            let fault = format!("replica=0,thread={t},when=delay:{ms}000,target=crash");
            vec!["--fault".into(), fault]
        }),
    );
}

/// The guest is right in both orders, whichever of these places go wrong together.
fn all_right(argv: &[&str], places: impl Iterator<Item = Vec<String>> + Clone) {
    let flags = |at: Vec<String>| at.into_iter().flat_map(|at| ["--fail-at".into(), at]);
    all_right_with(argv, places.map(|at| flags(at).collect()));
}

/// The same with these flags.
fn all_right_with(argv: &[&str], flags: impl Iterator<Item = Vec<String>> + Clone) {
    all_right_in(&["serial", "clocks"], argv, flags);
}

/// The same in these orders.
fn all_right_in(orders: &[&str], argv: &[&str], flags: impl Iterator<Item = Vec<String>> + Clone) {
    support::no_core_files();
    let geryon = settings::geryon();
    let native = one(argv, None).expect("it starts");
    let (mut lost, mut failures) = (0, Vec::new());
    for order in orders {
        for flags in flags.clone() {
            let mut all = vec![geryon.as_str(), "run", "-n", "3", "--order", order];
            all.extend(flags.iter().map(String::as_str));
            all.push("--");
            all.extend(argv);
            let outcome = one(&all, Some(())).unwrap_or_else(|e| panic!("{all:?}: {e}"));
            let said = String::from_utf8_lossy(&outcome.stderr);
            lost += usize::from(said.contains("leads from now on"));
            if outcome.ended != native.ended || outcome.stdout != native.stdout {
                failures.push(format!("{all:?}: {}\n{said}", outcome.ended));
            }
        }
    }
    assert!(lost > 0, "no leader was lost");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
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
