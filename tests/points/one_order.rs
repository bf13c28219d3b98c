//! Leaders that are lost in states which once were not survived, or of which something wrong was said, and that only one
//! order has.

use super::runs::{fail_at, right_of};
use super::{guest, one, support};
use support::{Ended, settings};

/// A leader that has given up what it maps, since it is about to end, is not copied any more, and its replica is made anew
/// when it has ended. (Of two replicas the one left was said to share memory with other programs. What the guest prints
/// is another thing each time.)
#[test]
fn who_is_about_to_end_shares_nothing_with_others() {
    let guest = guest::built("kin_segment").to_string_lossy().into_owned();
    let geryon = settings::geryon();
    for nth in 7..=14 {
        let at = format!("rendezvous-published:{nth}:0");
        let run = [
            "run",
            "-n",
            "2",
            "--order",
            "serial",
            "--fail-at",
            &at,
            "--",
        ];
        let argv: Vec<&str> = [&[geryon.as_str()], &run[..], &[guest.as_str()]].concat();
        let outcome = one(&argv, Some(())).expect("it starts");
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(matches!(outcome.ended, Ended::Exit(0)), "{at}: {said}");
        assert!(!said.contains("shares memory with other"), "{at}: {said}");
    }
}

/// A leader is lost with a fork that it has not made; its successor's child is born, and has not yet said who it is, when
/// files change hands: it maps what its parent maps. (It went on in the follower's object, which nobody else looked at: each run.)
#[test]
fn a_newborn_maps_what_its_parent_maps() {
    let guest = guest::built("mem_sysv_posix_shm");
    let argv = [&*guest.to_string_lossy()];
    let places = (9..=13).map(|nth| vec![format!("rendezvous-published:{nth}:0")]);
    let lost = right_of(
        "2",
        &["serial"],
        &argv,
        fail_at(places),
        "leads from now on",
    );
    assert!(lost > 0, "no leader was lost");
}

/// A thread is in a call that all have confirmed when its replica comes to lead, and takes the turn there. A copy of it goes
/// on behind that turn (it began the call anew, and waited for that turn for ever: each run), and the leader waits for
/// nobody's confirmation of it (until the watchdog said that a follower's line was damaged: each run with three).
#[test]
fn who_comes_to_lead_in_a_call_has_taken_a_turn() {
    let guest = guest::built("th_call_behind_turn");
    let argv = [&*guest.to_string_lossy()];
    for n in ["2", "3"] {
        let places = (4..=6).map(|nth| vec![format!("rendezvous-published:{nth}:0")]);
        let flags = fail_at(places);
        let lost = right_of(
            n,
            &["serial", "clocks"],
            &argv,
            flags.clone(),
            "leads from now on",
        );
        assert!(lost > 0, "no leader was lost");
        let damaged = right_of(n, &["serial"], &argv, flags, "was damaged");
        assert_eq!(damaged, 0, "a line was put right");
    }
}

/// A leader is lost when processes have begun to map what they share, and its successor's have not come there yet: none of
/// them leads before. (The first one did, since nobody took turns yet: others found no object of theirs to map any more, or
/// turns counted anew. 7 of 20 runs. What the guest prints is another thing each time.)
#[test]
fn who_is_to_be_kin_is_waited_for() {
    let guest = guest::built("kin_first_look")
        .to_string_lossy()
        .into_owned();
    let geryon = settings::geryon();
    for nth in [10, 13, 16].repeat(3) {
        let run = format!(
            "run -n 3 --order serial --fail-at rendezvous-published:{nth}:0 --shared-files map --"
        );
        let mut argv = vec![geryon.as_str()];
        argv.extend(run.split(' '));
        argv.push(&guest);
        let outcome = one(&argv, Some(())).expect("it starts");
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(matches!(outcome.ended, Ended::Exit(0)), "{nth}: {said}");
        assert!(said.contains("1 fault seen"), "{nth}: {said}");
    }
}

/// A process whose first thread has ended is killed at its place, and that is seen at once. (Its thread stayed stopped
/// there, and was said to stand still after 4 s.)
#[test]
fn who_has_no_first_thread_is_killed() {
    let guest = guest::built("th_pthread_exit_main");
    let argv = [&*guest.to_string_lossy()];
    let places = [vec!["rendezvous-published:5:0".to_owned()]].into_iter();
    let killed = right_of(
        "3",
        &["serial"],
        &argv,
        fail_at(places),
        "replica 1 was killed by signal 9",
    );
    assert_eq!(killed, 1, "the kill was not seen");
}

/// A follower comes to lead while a handler runs in the midst of a semaphore's wait: behind that handler there is nothing
/// left to read. (It read what lay in its ring behind the log's end, and differed from that: 5 of 6 runs. And one of several
/// signals of a number was lost, for which the program waited for ever: 6 of 262.)
#[test]
fn who_comes_to_lead_in_a_handler_reads_no_more() {
    let guest = guest::built("sig_together_threads")
        .to_string_lossy()
        .into_owned();
    let geryon = settings::geryon();
    let run = "run -n 3 --order clocks --fail-at atomic-unpublished:202:0 --";
    let mut argv = vec![geryon.as_str()];
    argv.extend(run.split(' '));
    argv.push(&guest);
    for _ in 0..3 {
        let outcome = one(&argv, None).expect("it starts");
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(
            said.contains("leads from now on"),
            "no leader was lost: {said}"
        );
        assert!(!said.contains("differs from the log"), "{said}");
        assert!(matches!(outcome.ended, Ended::Exit(0)), "{said}");
    }
}

/// A leader is lost when it has said that it is about to kill its child, and has not: its own child is gone as well.
/// (That one led its group on, and its parent's successor waited for its end for ever: 3 of 4 runs.)
#[test]
fn who_was_about_to_kill_a_child_has() {
    let guest = guest::built("proc_killed_newborn");
    let argv = [&*guest.to_string_lossy()];
    let places = (0..8).map(|_| vec!["call-begun:15:0".to_owned()]);
    let lost = right_of(
        "2",
        &["clocks"],
        &argv,
        fail_at(places),
        "leads from now on",
    );
    assert!(lost > 0, "no leader was lost");
}

/// A forked process has a record lock, which its leader's kernel lets go of: the run says so. (Nobody did. Whether the program
/// has asked for it before, or behind that, is another thing each time: so is what becomes of it.)
#[test]
fn record_locks_are_not_lost_in_silence() {
    let guest = guest::built("ids_lock").to_string_lossy().into_owned();
    let geryon = settings::geryon();
    let told = (20..=22).filter(|nth| {
        let run = format!("run -n 3 --order serial --fail-at call-begun:{nth}:0 --");
        let mut argv = vec![geryon.as_str()];
        argv.extend(run.split(' '));
        argv.push(&guest);
        let outcome = one(&argv, None).expect("it starts");
        let said = String::from_utf8_lossy(&outcome.stderr);
        said.contains("record locks (fcntl with F_SETLK, lockf) of a forked process are lost")
    });
    assert!(told.count() > 0, "nobody said so");
}
