//! Replicas that are lost in states which once were not survived, one test for each cause: in both orders the
//! program is right.

use super::{guest, one, support};
use geryon_abi::point::FaultPoint;
use support::settings;

const BOTH: [&str; 2] = ["serial", "clocks"];
/// What a run says when a successor is lost that has been asked.
const SUCCESSOR: &str = "fault point successor-asked";

/// A successor is lost as soon as it is asked, before it has fetched any descriptors: the next one must have
/// them from where the first one would have had them. (It fetched from the first one, which had none, and a
/// pipeline ended with nothing printed.)
#[test]
fn successors_lost_before_they_have_descriptors() {
    let script = "seq 1 20000 | tr 0 x | sort | tail -n 3; echo done";
    let calls = [120, 180, 240, 300].into_iter();
    let places = calls.flat_map(|call| (1..=3).map(move |asked| (call, asked)));
    let places = places.map(|(call, asked)| {
        vec![
            format!("call-returned:{call}:0"),
            format!("successor-asked:{asked}"),
        ]
    });
    let lost = right_in(&BOTH, &["bash", "-c", script], fail_at(places), SUCCESSOR);
    assert!(lost >= 8, "a successor was lost in {lost} runs only");
}

/// A leader is lost before its forked child has come to its group, and its successor before that one's has: the
/// child of the third, which has come, leads. (It was told to follow the second one's, which was never born: its
/// parent knew no such child, and it waited for ever. 6 to 14 % of these runs.)
#[test]
fn two_leaders_lost_before_their_children_have_come() {
    let script = "for i in 1 2 3 4 5 6 7 8; do (echo $i); done; echo done";
    let places = (1..=3).flat_map(|every| (1..=8).chain(1..=8).map(move |nth| (every, nth)));
    let places = places.map(|(every, nth)| {
        vec![
            format!("record-delayed:{every}"),
            format!("child-new:{nth}:0"),
            "successor-asked:1".into(),
        ]
    });
    let lost = right_in(&BOTH, &["bash", "-c", script], fail_at(places), SUCCESSOR);
    assert!(lost >= 80, "a successor was lost in {lost} runs only");
}

/// A follower is lost at the birth of a child, when the other one's child sleeps before it has come to its own
/// log: who was copied there shared its socket and its table of descriptors with its copy, and one of the two
/// was lost as well. (4 of these 72 runs.)
#[test]
fn newborns_are_not_copied() {
    let guest = guest::built("recover_children");
    let points = ["child-ungreeted", "child-unmapped"].into_iter();
    let places = points.flat_map(|point| (1..=18).map(move |nth| (point, nth)));
    let places =
        places.map(|(point, nth)| vec!["record-delayed:1".into(), format!("{point}:{nth}:1")]);
    let runs = BOTH.len() * places.clone().count();
    let words = "1 fault seen, 1 replica replaced";
    let argv = [&*guest.to_string_lossy(), "10"];
    let replaced = right_in(&BOTH, &argv, fail_at(places), words);
    assert_eq!(replaced, runs, "runs that said {words:?}");
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

/// The same for what one process has sent another one: both are lost with their leader, or only half of that is made
/// yet. (Without the monitor's post 35 of 60 runs.)
#[test]
fn a_signal_sent_to_another_process_is_not_lost() {
    let guest = guest::built("sent_between");
    let stops = (1..=30).map(|nth| vec![format!("stop-killed:{nth}")]);
    let again =
        [3, 6, 11, 16].map(|nth| vec!["stop-killed:5".into(), format!("stop-killed:{nth}")]);
    let begun = (8..=20).map(|nth| vec![format!("call-begun:{nth}")]);
    all_right(
        &[&*guest.to_string_lossy()],
        stops.chain(again).chain(begun),
    );
}

/// A successor signals the child that it has forked as a follower, and that has not said yet who it is: the handler ran
/// in the midst of the agent. (1 of 100 runs.)
#[test]
fn a_newborn_child_is_signalled_when_it_knows_who_it_is() {
    let guest = guest::built("sent_between");
    let looks = (12..=20).map(|nth| vec![format!("look-killed:{nth}")]);
    let new = (1..=3).map(|nth| vec!["look-killed:16".into(), format!("child-new:{nth}")]);
    all_right(&[&*guest.to_string_lossy()], looks.chain(new));
}

/// A leader is lost when its kernel has given it one of several signals of one number: the next one has that, too, and shows it
/// as it was. (It was taken for one of those that wait: 25 of 25 losses.)
#[test]
fn of_several_signals_none_is_lost() {
    let guest = guest::built("sig_queued");
    let stops = (1..=8).map(|nth| vec![format!("stop-killed:{nth}")]);
    all_right(&[&*guest.to_string_lossy()], stops);
}

/// A pipe that nobody reads is found again by who takes over: the lost leader's end of it is closed where the program closes it,
/// and SIGPIPE comes once, and ends who has raised it anew. (A write went to a pipe that the dead one kept open, or the process
/// that had raised its end went on: 20 and 5 of 240 losses at any time, 7 of 144 at these places.)
#[test]
fn a_broken_pipe_stays_broken() {
    let guest = guest::built("sig_broken_pipe");
    let places = (94..=103).flat_map(|nth| [nth, nth]);
    let places = places.map(|nth| vec![format!("call-begun:{nth}")]);
    all_right(&[&*guest.to_string_lossy()], places);
}

/// A leader's process is on its way out when another one sends it a signal that it blocks: the kernel drops that, and its
/// successor has it. (It had none that ends or does nothing where nobody blocks it: 14 of 16 runs.)
#[test]
fn who_is_dying_is_signalled() {
    let guest = guest::built("recover_watches")
        .to_string_lossy()
        .into_owned();
    let places = (1..=6).map(|nth| vec![format!("addressee-killed:{nth}")]);
    let argv = [&*guest, "6", "1"];
    let lost = right_of("2", &BOTH, &argv, fail_at(places), "leads from now on");
    assert!(lost > 0, "no leader was lost");
}

/// What has been read from a descriptor of signals is not sent to the next leader once more. (It was: 30 of 36 runs.)
#[test]
fn a_signal_that_was_read_is_not_sent_again() {
    let guest = guest::built("recover_watches")
        .to_string_lossy()
        .into_owned();
    let places = [
        "call-noted:40:0",
        "call-noted:44:0",
        "record-published:42:0",
    ];
    let places = places.into_iter().map(|at| vec![at.to_owned()]);
    let argv = [&*guest, "6", "1"];
    let lost = right_of("2", &BOTH, &argv, fail_at(places), "leads from now on");
    assert!(lost > 0, "no leader was lost");
}

/// Groups and sessions of processes stay when another replica leads. (A signal to one ended Geryon, or reached nobody.)
#[test]
fn process_groups_are_kept() {
    let guest = guest::built("groups_kept");
    let stops = [2, 5, 8, 14, 20, 25, 26, 30].map(|nth| vec![format!("stop-killed:{nth}")]);
    let calls = [24, 27, 30, 33, 36].map(|nth| vec![format!("call-begun:{nth}")]);
    let noted = [26, 30, 34].map(|nth| vec![format!("call-noted:{nth}")]);
    let looks = [17, 24].map(|nth| vec![format!("look-killed:{nth}")]);
    let again = [3, 8, 14].map(|nth| vec!["stop-killed:5".into(), format!("stop-killed:{nth}")]);
    let all = stops.into_iter().chain(calls).chain(noted).chain(looks);
    all_right(&[&*guest.to_string_lossy()], all.chain(again));
}

/// Who has taken over answers waits as the kernel does: a child that was stopped was waited for for ever, one whose end
/// nobody wanted to hear of was found, or that a wait had found without a place to say so; and a wait for children of
/// all kinds found a lost replica. (Not here: a SIGSTOP
/// that is lost with who is to be stopped by it.)
#[test]
fn waits_are_answered_as_before() {
    let guest = guest::built("recover_waits");
    let begun = [2, 12, 30, 50].map(|nth| vec![format!("call-begun:{nth}")]);
    let noted = [7, 28, 49, 56, 84].map(|nth| vec![format!("call-noted:{nth}")]);
    let follower = [3, 40].map(|nth| vec![format!("acknowledged:{nth}:1")]);
    // (Behind the waits that have no place to say whom they have found.)
    let untold = [
        "call-begun:172:0",
        "call-begun:177:0",
        "call-noted:191:0",
        "call-noted:196:0",
    ];
    let untold = untold.map(|point| vec![point.into()]);
    let all = begun.into_iter().chain(noted).chain(follower);
    let all = all.chain(untold);
    all_right(&[&*guest.to_string_lossy()], all);
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

/// A replica is copied while one of its threads has made another one and not noted its id, and the copy is to lead. (There the
/// maker noted what its source's thread is called: the copy seemed to have a thread too many, and never led.)
#[test]
fn who_is_copied_in_the_midst_of_making_a_thread_can_lead() {
    let guest = guest::built("th_made_and_wait");
    let lost_again = [1, 2].map(|replica| format!("call-noted:12:{replica}"));
    let places = (5..=13).map(|nth| {
        let first = ["thread-made:1".into(), format!("birth-unborn:{nth}:0")];
        first.into_iter().chain(lost_again.clone()).collect()
    });
    all_right(&[&*guest.to_string_lossy()], places);
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

/// A thread of a follower crashes where the leader's has gone on to a futex call and sleeps, while others get on: that
/// is past the crash. (Nobody saw that, and the leader waited for the crashed one to confirm what it had written, for
/// ever if waiting threads woke up often enough for the watchdog. 3 of 6 of these runs in serial order.)
#[test]
fn who_sleeps_in_a_futex_has_come_past_a_crash() {
    let guest = guest::built("th_compute_then_wait");
    let argv = [&*guest.to_string_lossy()];
    let faults = [1, 2].into_iter();
    let faults = faults.flat_map(|r| [100, 200, 300].map(|ms| (r, ms)));
    let faults = faults.map(|(replica, ms)| {
        // (The last of its threads.)
        let fault = format!("replica={replica},thread=7,when=delay:{ms}000,target=crash");
        vec!["--fault".into(), fault]
    });
    // (In clocks plain loads decide.)
    let lost = right_in(&["serial"], &argv, faults, "did not");
    assert!(lost > 0, "nobody was lost");
}

/// A leader is lost before or behind the record of several signals that are let in together, and a follower while it
/// reads it. What had let them in is the successor's to do: they wait in its kernel until then. (From its block they
/// came before that, under a mask that shut them out.)
#[test]
fn signals_that_come_together_are_not_lost() {
    let guest = guest::built("sig_together");
    let argv = [&*guest.to_string_lossy()];
    let nth = [1, 2, 3, 8, 13, 20, 33].into_iter();
    let points = ["signal-unlogged", "signal-queued"].into_iter();
    let places = points.flat_map(|p| nth.clone().map(move |nth| vec![format!("{p}:{nth}:0")]));
    all_right(&argv, places);
    let places = nth.map(|nth| vec![format!("signal-read:{nth}:1")]);
    let lost = right_in(&BOTH, &argv, fail_at(places), "1 replica replaced");
    assert!(lost > 0, "no follower was lost");
}

/// A leader is lost that has been given the SIGCHLD of a child which the program has not been told of yet: its successor is given
/// it as that, although nothing else is to be said of that child. (It was dropped, and pselect slept on.) And behind a loss
/// a SIGCHLD that is blocked waits, whoever waits for the child meanwhile.
#[test]
fn a_childs_end_is_told_once() {
    let guest = guest::built("recover_children");
    let argv = [&*guest.to_string_lossy(), "4"];
    let nth = (1..=8).map(|nth| vec![format!("signal-unlogged:{nth}:0")]);
    all_right(&argv, nth);
    let guest = guest::built("recover_reaped");
    let argv = [&*guest.to_string_lossy(), "4"];
    let points = ["call-returned", "record-published"].into_iter();
    let places = points.flat_map(|p| [1, 7, 12, 17, 22].map(|nth| (p, nth)));
    let again = ["rendezvous-confirmed:2:1", "signal-unlogged:1:1"];
    let places = places.flat_map(|(p, nth)| again.map(|a| vec![format!("{p}:{nth}:0"), a.into()]));
    all_right(&argv, places);
    let guest = guest::built("recover_waited");
    let argv = [&*guest.to_string_lossy(), "4"];
    let points = ["call-returned", "record-published"].into_iter();
    let places =
        points.flat_map(|p| [1, 12, 20, 26, 31, 36].map(|nth| vec![format!("{p}:{nth}:0")]));
    all_right(&argv, places);
}

/// A leader is lost that has the children which its descendants leave: its successor has them, each once, and also those that
/// its program before had. (It said that there were none. And followers' orphans came to the leader, without any loss.)
#[test]
fn who_has_orphans_has_them_behind_a_loss() {
    let places = |points: &'static [&str], nth: &'static [u64]| {
        let all = points.iter().flat_map(|p| nth.iter().map(move |n| (p, n)));
        all.map(|(p, n)| vec![format!("{p}:{n}:0")])
    };
    let guest = guest::built("proc_late_child");
    let nth = &[20, 32, 40, 71, 76];
    let points = &["call-noted", "record-published", "wait-answered"];
    all_right(&[&*guest.to_string_lossy()], places(points, nth));
    let guest = guest::built("recover_reaper");
    let argv = [&*guest.to_string_lossy(), "2"];
    all_right(&argv, places(points, &[3, 9, 31, 46, 61]));
}

/// A leader is lost when a child and that one's child are on their way out, and have ended in its successor: who has the orphan
/// is told of its end. (It was that of a child of the one who had ended before it, and nobody was: 12 of 98 runs.)
#[test]
fn who_ends_with_its_parent_is_left_to_the_next() {
    let guest = guest::built("proc_late_child");
    let places = [3, 7, 8].repeat(5).into_iter();
    let flags = fail_at(places.map(|nth| vec![format!("exit-confirmed:{nth}:0")]));
    let argv = [&*guest.to_string_lossy()];
    let lost = right_of("2", &BOTH, &argv, flags, "leads from now on");
    assert!(lost > 0, "no leader was lost");
}

/// Behind a loss a wait that asks for no children whose end is told by another signal than SIGCHLD finds none. (It was given
/// one.)
#[test]
fn a_wait_finds_children_of_the_kind_that_it_asks_for() {
    let guest = guest::built("clone_flags");
    let nth = [3, 9, 15, 21, 27, 30, 34];
    let points = ["call-returned", "record-published", "rendezvous-confirmed"].into_iter();
    let places = points.flat_map(|p| nth.map(|nth| vec![format!("{p}:{nth}:0")]));
    all_right(&[&*guest.to_string_lossy()], places);
}

/// A leader is lost when a signal has ended what its thread waits in, and the log does not say so yet: its successor's thread
/// waits no more. (It ran the handler, and then waited for another signal.)
#[test]
fn a_wait_that_a_signal_has_ended_is_over_behind_a_loss() {
    // (The third signal there ends a sleep.)
    for (name, point, nth) in [
        ("sig_eintr_read", "signal-unlogged", [1, 2, 4]),
        ("sig_eintr_sem", "outcome-unpublished", [1, 2, 3]),
    ] {
        let guest = guest::built(name);
        let places = nth.into_iter().map(|nth| vec![format!("{point}:{nth}:0")]);
        all_right(&[&*guest.to_string_lossy()], places);
    }
}

/// A descriptor of a process names the program's child behind a loss as well. (It named the lost leader's: it was ready at
/// once, and a wait found no child.)
#[test]
fn a_descriptor_of_a_process_names_the_same_child() {
    let nth = [6, 14, 18, 24, 30, 42];
    let points = ["call-returned", "record-published", "rendezvous-confirmed"].into_iter();
    let places = points.flat_map(|p| nth.map(|nth| vec![format!("{p}:{nth}:0")]));
    for name in ["recover_pidfd", "io_inotify_memfd"] {
        let guest = guest::built(name);
        let guest = guest.to_string_lossy();
        let argv = match name {
            "recover_pidfd" => vec![&*guest, "4"],
            _ => vec![&*guest],
        };
        all_right(&argv, places.clone());
    }
}

/// The same child is lost in all replicas before it has said who it is: who takes over makes it anew, and is not copied
/// before. (It logged its dead one, and the program went on without that child, and without a word.)
#[test]
fn a_child_that_is_lost_in_all_replicas_is_made_anew() {
    let script = "for i in 1 2 3 4 5 6; do (echo $i); done; echo done";
    let places = (1..=6).flat_map(|nth| [0, 3].map(|every| (nth, every)));
    let places = places.map(|(nth, every)| {
        let delays = (every != 0).then(|| format!("record-delayed:{every}"));
        let lost = (0..3).map(|replica| format!("child-new:{nth}:{replica}"));
        delays.into_iter().chain(lost).collect()
    });
    all_right(&["bash", "-c", script], places);
}

/// A copy of a leader takes over while a child lives that was born before it was made, and of whose end its source had been
/// told without having logged that.
#[test]
fn a_copy_of_a_leader_knows_its_children() {
    let guest = guest::built("reaped_by_copy");
    let places = [vec![
        "call-returned:60:0".into(),
        "acknowledged:80:0".into(),
        "wait-answered:1:1".into(),
    ]]
    .into_iter();
    let words = " 2 promotions,";
    let argv = [&*guest.to_string_lossy()];
    let lost = right_of("2", &BOTH, &argv, fail_at(places), words);
    assert_eq!(lost, BOTH.len(), "runs that said {words:?}");
}

/// A leader is lost when a signal has ended a vfork's child of its: the program's process goes on. (It counted as one that
/// ends, and so was not missed. And where the child kills itself and its leader has taken over, that one was taken for lost.)
#[test]
fn who_has_lost_a_vforks_child_to_a_signal_is_missed() {
    let guest = guest::built("vfork_killed");
    let guest = guest.to_string_lossy();
    for how in ["SIGTERM", "SIGKILL", "crash"] {
        let confirmed = [25, 32, 43].map(|nth| vec![format!("rendezvous-confirmed:{nth}:0")]);
        let noted = [25, 43, 55].map(|nth| vec![format!("call-noted:{nth}:0")]);
        let places = confirmed.into_iter().chain(noted);
        all_right(&[&*guest, how], places);
    }
}

/// A leader is lost when its vfork's child has published that it is about to signal itself, and one follower alone has come
/// there: the other one is to come there, too, before the successor makes that call. (Its child was not there to be
/// ended with the successor's, or was ended before it had stored what its parent goes on with: 19 of 40 runs.)
#[test]
fn what_not_all_had_confirmed_they_confirm_to_the_successor() {
    let guest = guest::built("vfork_killed");
    let nth = (12..=30).step_by(2);
    let places = nth.flat_map(|nth| {
        let late = [1, 2].map(|replica| format!("record-delayed:1:{replica}"));
        late.map(|late| vec![format!("rendezvous-published:{nth}:0"), late])
    });
    all_right(&[&*guest.to_string_lossy(), "SIGTERM"], places);
}

/// Who takes over stands in its predecessor's directory already, which it may not enter any more, for it has given up its
/// privileges since. (It was said to differ from the log: 8 of 10 runs.)
#[test]
fn a_directory_that_may_not_be_entered_is_kept() {
    let guest = guest::built("priv_fork");
    let argv = [&*guest.to_string_lossy(), "empty-root"];
    let native = one(&argv, None).expect("it starts");
    if String::from_utf8_lossy(&native.stdout).contains("SKIP") {
        return;
    }
    let nth = [22, 27, 31, 35, 41].into_iter();
    all_right(
        &argv,
        nth.map(|nth| vec![format!("rendezvous-published:{nth}:0")]),
    );
}

/// A copy finds in a mapped file what its source has found there: the leader waits for it before it writes to that. (The
/// copy was asked when it was complete, and was outvoted in 26 of 88 runs.)
#[test]
fn a_copy_has_looked_before_a_mapped_file_is_written() {
    let guest = guest::built("file_mapped_written");
    let argv = [&*guest.to_string_lossy()];
    let nth = (14..=194).step_by(12);
    let places = nth.map(|nth| vec![format!("acknowledged:{nth}:1")]);
    let astray = right_in(
        &BOTH,
        &argv,
        fail_at(places.clone()),
        "the same call with other",
    );
    assert_eq!(astray, 0, "copies were outvoted");
    let again = right_in(&BOTH, &argv, fail_at(places), "3 replicas again");
    assert!(again > 0, "nobody was made anew");
}

/// The order changes while a lost replica is made anew: some of its processes are there already, and were copied with
/// clocks. (They stayed, and their leaders went over: 8 of 12 runs.)
#[test]
fn who_is_half_made_is_not_left_in_the_order_of_before() {
    let guest = guest::built("dlopen_built");
    let moments = [73, 76, 79, 82, 85].into_iter();
    let places = moments.map(|nth| {
        vec![
            "memory-unlogged:12:0".into(),
            format!("order-changes:{nth}"),
        ]
    });
    let argv = [&*guest.to_string_lossy()];
    let changed = right_of("2", &["clocks"], &argv, fail_at(places), "in serial order");
    assert!(changed > 0, "the order did not change");
}

/// The guest is right in both orders, whichever of these places go wrong together, and leaders are lost.
fn all_right(argv: &[&str], places: impl Iterator<Item = Vec<String>> + Clone) {
    all_right_with(argv, fail_at(places));
}

/// The same with these flags.
fn all_right_with(argv: &[&str], flags: impl Iterator<Item = Vec<String>> + Clone) {
    all_right_in(&BOTH, argv, flags);
}

/// The same in these orders.
fn all_right_in(orders: &[&str], argv: &[&str], flags: impl Iterator<Item = Vec<String>> + Clone) {
    let lost = right_in(orders, argv, flags, "leads from now on");
    assert!(lost > 0, "no leader was lost");
}

/// The flags that have these places go wrong.
pub(super) fn fail_at(
    places: impl Iterator<Item = Vec<String>> + Clone,
) -> impl Iterator<Item = Vec<String>> + Clone {
    let flags = |at: Vec<String>| at.into_iter().flat_map(|at| ["--fail-at".into(), at]);
    places.map(move |at| flags(at).collect())
}

/// The program is right in these orders, with each of these flags. How many runs have said these words.
fn right_in(
    orders: &[&str],
    argv: &[&str],
    flags: impl Iterator<Item = Vec<String>> + Clone,
    words: &str,
) -> usize {
    right_of("3", orders, argv, flags, words)
}

/// The same of so many replicas.
pub(super) fn right_of(
    replicas: &str,
    orders: &[&str],
    argv: &[&str],
    flags: impl Iterator<Item = Vec<String>> + Clone,
    words: &str,
) -> usize {
    support::no_core_files();
    let geryon = settings::geryon();
    let native = one(argv, None).expect("it starts");
    let (mut said_so, mut failures) = (0, Vec::new());
    for order in orders {
        for flags in flags.clone() {
            let mut all = vec![geryon.as_str(), "run", "-n", replicas, "--order", order];
            all.extend(flags.iter().map(String::as_str));
            all.push("--");
            all.extend(argv);
            let outcome = one(&all, Some(())).unwrap_or_else(|e| panic!("{all:?}: {e}"));
            let said = String::from_utf8_lossy(&outcome.stderr);
            said_so += usize::from(said.contains(words));
            if outcome.ended != native.ended || outcome.stdout != native.stdout {
                let printed = String::from_utf8_lossy(&outcome.stdout);
                let ended = &outcome.ended;
                failures.push(format!("{all:?}: {ended}\nprinted: {printed:?}\n{said}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    said_so
}
