//! Replicas that are lost while processes are born, waited for, or grouped, one test for each cause.

use super::guest;
use super::runs::{BOTH, SUCCESSOR, all_right, fail_at, right_in, right_of};

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

/// A group that the program has left is gone, whatever is left in it of lost copies and of children that a lost leader has not
/// waited for. (`kill(-group, 0)` found them. And a child that ended in a replica that was about to take over, and
/// was in no group of the program's yet, was not found by a wait for its group.)
#[test]
fn a_group_that_was_left_is_gone() {
    let guest = guest::built("groups_left");
    let behind = |at: [u64; 3], point: &'static str| {
        let first = move |nth| format!("acknowledged:{nth}:1");
        let then = move |nth| (1..4).map(move |n| vec![first(nth), format!("{point}:{n}")]);
        at.into_iter().flat_map(then)
    };
    let copies = behind([10, 30, 60], "copy-joined");
    let leaders = behind([10, 30, 60], "stop-killed");
    let all = copies.chain(leaders);
    let said = "replaced by a copy";
    let argv = [&*guest.to_string_lossy()];
    let replaced = right_of("2", &BOTH, &argv, fail_at(all), said);
    assert!(replaced > 0, "no replica was replaced");
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

/// A leader is lost whose wait has told that a child was stopped, or goes on, before that is in the log: its successor is told,
/// too, and once. (The kernel's answer was not believed, since that child had been lost with its parent, and the monitor knew
/// that the program had been told.) And a child that the program has let go on, and that was lost before the monitor heard that
/// it was stopped, goes on. (6 of 1,500 runs whose replicas were killed again and again waited for ever for one of both.)
#[test]
fn who_is_told_that_a_child_was_stopped_is_told_behind_a_loss() {
    let guest = guest::built("recover_stops");
    let points = ["wait-answered", "call-returned", "call-noted"].into_iter();
    let first = points.flat_map(|p| [1, 3, 8, 9, 11, 12].map(|nth| vec![format!("{p}:{nth}:0")]));
    let answered = |nth| format!("wait-answered:{nth}:2");
    let again = (1..=4).map(move |nth| vec!["call-begun:3:0".to_owned(), answered(nth)]);
    let before = [22, 23, 23, 23, 24].map(|nth| vec![format!("call-begun:{nth}:0")]);
    let argv = [&*guest.to_string_lossy(), "2"];
    all_right(&argv, first.chain(again).chain(before));
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
