//! Replicas that are lost in states which once were not survived, one test for each cause: in both orders the
//! program is right. (For [`super::signals`] and [`super::children`] see there.)

use super::runs::{
    BOTH, SUCCESSOR, all_right, all_right_in, all_right_with, fail_at, right_in, right_of,
};
use super::{guest, one, support};
use geryon_abi::point::FaultPoint;
use support::settings;

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

/// Whoever closes a descriptor behind the loss of a leader has closed it: an address is free, a lock is gone, an epoll set has
/// forgotten. (The dead one still had it open: 18 of 122 runs.)
#[test]
fn what_is_closed_is_closed() {
    let guest = guest::built("files_closed");
    let places = (23..=200).step_by(9);
    let places = places.map(|nth| vec![format!("call-begun:{nth}")]);
    all_right(&[&*guest.to_string_lossy()], places);
}
