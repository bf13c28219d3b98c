//! Programs that race, or seem to: what a replay of the log shows, and what nobody can know.

use super::command::{says, stderr, stdout};
use super::guest::built;
use super::support::{Ended, Load, settings};
use super::{EVERY, Run, checkpoint_is_there, outcome, play, run};

pub fn a_race_is_replayed() {
    replay_races(&["-n", "2"]);
}

/// Followers that have gone astray in the same way outvote nobody.
pub fn a_race_is_replayed_where_all_others_stand_against_the_leader() {
    replay_races(&["-n", "3"]);
}

/// In so many runs one races for certain.
const MOST_RUNS: usize = 40;

fn replay_races(replicas: &[&str]) {
    let guest = built("race_once").to_string_lossy().into_owned();
    let (mut whole, mut replayed, mut rounds) = (0, 0, 0);
    let enough = 5 * settings::repeat() as usize;
    // (Whether a run races is luck: where the follower is ahead all the time its threads come in their leader's order.)
    while rounds < enough || replayed == 0 && rounds < MOST_RUNS {
        rounds += 1;
        let flags = [&["--order", "clocks", "--on-race", "retry"], replicas].concat();
        let run = play(&flags, &[&guest], &[]);
        let text = stdout(&run.outcome);
        let ends = text.ends_with("20 rounds\nGUEST-OK race_once\n");
        assert_eq!(ends, run.outcome.ended == Ended::Exit(0), "{}", run.tell());
        let is_stopped = run.outcome.ended == Ended::Exit(125);
        assert!(ends || is_stopped, "{}", run.tell());
        assert!(!run.journal.has("promoted"), "{}", run.tell());
        whole += usize::from(ends);
        replayed += usize::from(ends && run.journal.has("race-replayed"));
    }
    assert!(
        replayed > 0 && whole > rounds / 2,
        "{whole} of {rounds}, {replayed} with a race"
    );
}

/// Without checkpoints nobody can tell whether it is the leader that is wrong.
pub fn where_it_may_be_a_race_no_leader_is_outvoted() {
    let guest = built("race_once").to_string_lossy().into_owned();
    let mut stopped = 0;
    for _ in 0..5 * settings::repeat() {
        let words = [
            "-n",
            "3",
            "--order",
            "clocks",
            "--on-race",
            "retry",
            "--",
            &guest,
        ];
        let outcome = outcome(&words);
        let told = stderr(&outcome);
        assert!(!told.contains("(the leader) of 3 is outvoted"), "{told}");
        if outcome.ended != Ended::Exit(0) {
            says(&outcome, 125, &["may be a race", "--checkpoint"]);
            stopped += 1;
        }
    }
    assert!(stopped > 0, "nothing was in doubt");
}

/// It races hundreds of times a second.
pub fn who_races_again_and_again_goes_on_in_serial_order() {
    let guest = built("race_mixed").to_string_lossy().into_owned();
    for n in ["2", "3"] {
        // (So many steps between two locks that time stamps cannot order them, on one processor either.)
        let argv = [&*guest, "3", "4000", "400"];
        let run = play(&["-n", n, "--order", "clocks"], &argv, &[]);
        assert_eq!(run.outcome.ended, Ended::Exit(0), "{}", run.tell());
        assert!(stdout(&run.outcome).ends_with("GUEST-OK race_mixed\n"));
        assert!(run.journal.has("serial"), "{}", run.tell());
        assert!(!run.journal.has("promoted"), "{}", run.tell());
    }
}

/// (Not race_mixed: what that puts out may be the first to differ, which is no sign of a race.)
pub fn a_race_stops_the_run_if_that_is_asked_for() {
    let guest = built("race_flag").to_string_lossy().into_owned();
    for n in ["2", "3"] {
        let words = ["-n", n, "--order", "clocks", "--on-race", "stop"];
        says(
            &outcome(&[&words[..], &["--", &guest]].concat()),
            125,
            &["thread group", "--on-race stop"],
        );
    }
}

/// A leader that has indeed gone wrong, in the order of operations, too.
pub fn a_leader_that_no_replay_agrees_with_is_outvoted() {
    let _load = Load::from_settings();
    for kind in ["argument", "content", "order", "extra"] {
        for replica in 0..2 {
            let sabotage = format!("{replica}:{kind}:2");
            let flags = ["-n", "3", "--order", "clocks", "--sabotage", &sabotage];
            // (Nobody can tell a leader's fault from a race of which there was no copy before.)
            let run = run(&flags, checkpoint_is_there);
            assert!(run.is_right(), "{}", run.tell());
            let mut seen = run.journal.told("fault-seen");
            assert!(seen.any(|l| l["replica"] == replica), "{}", run.tell());
        }
    }
}

/// What it puts out is what tells it; `every`: seconds between checkpoints.
fn latent(who: &str, every: &str, replicas: &str) -> Run {
    let guest = built("race_latent").to_string_lossy().into_owned();
    let flags = ["-n", replicas, "--order", "clocks", "--checkpoint", every];
    play(&flags, &[&guest, who, "800"], &[])
}

/// All followers have gone astray in the same way before those were copied that replay the log.
pub fn what_led_all_others_astray_before_they_were_copied_outvotes_no_leader() {
    let _load = Load::from_settings();
    for _ in 0..settings::repeat() {
        let run = latent("memory", EVERY, "3");
        assert!(!run.journal.has("promoted"), "{}", run.tell());
        assert_eq!(run.outcome.ended, Ended::Exit(125), "{}", run.tell());
        assert_eq!(stdout(&run.outcome), "", "{}", run.tell());
        let told = stderr(&run.outcome);
        assert!(told.contains("copies of the leader come to"), "{told}");
    }
}

/// They have done so since, long before it shows, and a replay does, too, unless threads are placed otherwise far from there.
pub fn a_race_is_replayed_that_shows_much_later() {
    let _load = Load::from_settings();
    for replicas in ["2", "3"] {
        for _ in 0..settings::repeat() {
            let run = latent("between", "3", replicas);
            assert!(!run.journal.has("promoted"), "{}", run.tell());
            assert_eq!(run.outcome.ended, Ended::Exit(0), "{}", run.tell());
            assert!(stdout(&run.outcome).contains("astray: 0"), "{}", run.tell());
            assert!(run.journal.has("race-replayed"), "{}", run.tell());
        }
    }
}

/// Its threads wait for locks, on conditions and so on when it is copied.
pub fn a_leader_that_its_own_copy_does_not_agree_with_is_outvoted() {
    let _load = Load::from_settings();
    for _ in 0..settings::repeat() {
        let run = latent("leader", EVERY, "3");
        assert_eq!(run.outcome.ended, Ended::Exit(0), "{}", run.tell());
        assert!(
            stdout(&run.outcome).contains("6 woken, astray: 0"),
            "{}",
            run.tell()
        );
        assert!(run.journal.has("promoted"), "{}", run.tell());
    }
}

/// The leader's other thread spins for ever, or nearly so, where there are two.
pub fn who_computes_for_ever_is_found_while_the_leader_spins() {
    let guest = built("race_astray").to_string_lossy().into_owned();
    let found = |n: &str, who: &str, yields: &str| {
        let (order, separator) = ("clocks", "--");
        outcome(&["-n", n, "--order", order, separator, &guest, who, yields])
    };
    let said = "computes without end where the others went on";
    says(&found("2", "f", "40"), 125, &[said, "stopped"]);
    // Of three it is made anew, of the one that has come past it.
    let one = found("3", "2", "0");
    says(&one, 0, &["replica 3 computes without end", "replaced"]);
    assert!(stdout(&one).ends_with("GUEST-OK race_astray\n"));
    // All others stand against the leader, in what may be a race.
    says(&found("3", "f", "0"), 125, &["may be a race"]);
}

/// Another of its threads wakes up fifty times a second.
pub fn who_waits_in_a_circle_is_found_and_its_log_replayed() {
    let guest = built("race_circle").to_string_lossy().into_owned();
    let found = |n: &str, who: &str| {
        let separator = "--";
        outcome(&["-n", n, "--order", "clocks", separator, &guest, who])
    };
    let said = "threads of it wait for one another";
    says(&found("2", "1"), 125, &[said, "stopped"]);
    let one = found("3", "2");
    says(&one, 0, &["replica 3 waits for an event", said, "replaced"]);
    assert!(stdout(&one).ends_with("GUEST-OK race_circle\n"));
    // All others stand in the same places.
    says(&found("3", "f"), 125, &["may be a race"]);
    // With checkpoints it was copied before; of what nobody agrees to it is not known whether it is a race the first time.
    for (who, ends, serial) in [
        (&["1"][..], Ended::Exit(0), false),
        (&["1", "f"], Ended::Exit(0), true),
        (&["f"], Ended::Exit(125), false),
    ] {
        let argv = [&[&*guest], who].concat();
        let run = play(&["--order", "clocks"], &argv, &[]);
        assert_eq!(run.outcome.ended, ends, "{}", run.tell());
        assert_eq!(run.journal.has("serial"), serial, "{}", run.tell());
        if ends == Ended::Exit(0) {
            assert!(run.journal.has("race-replayed"), "{}", run.tell());
            assert!(stdout(&run.outcome).ends_with("GUEST-OK race_circle\n"));
        }
        assert!(!run.journal.has("promoted"), "{}", run.tell());
    }
}
