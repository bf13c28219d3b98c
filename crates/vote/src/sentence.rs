//! What is said to the user of verdicts.

use crate::ballot::NAMING;
use crate::charge::Charge;

const NOBODY: &str = "no majority says who is wrong";

/// So many replicas.
pub fn replicas(count: usize) -> String {
    match count {
        1 => "1 replica".to_owned(),
        _ => format!("{count} replicas"),
    }
}

/// Nobody can be named.
pub(crate) fn differ(total: usize, charge: Charge, is_alone: bool) -> String {
    match charge {
        Charge::Doubtful if is_alone => {
            format!("of {total} replicas the leader stands alone, which may be a race")
        }
        Charge::Doubtful => format!("{total} replicas differ, which may be a race"),
        _ => format!("{total} replicas differ, and {NOBODY}"),
    }
}

/// What to try where nobody could be named.
pub(crate) fn advice(
    is_arbitrated: bool,
    replicas: usize,
    in_parallel: bool,
    has_checkpoints: bool,
) -> &'static str {
    if is_arbitrated {
        "the fault is older than the last checkpoint, or the program does not repeat itself: try again, or run with -n 3"
    } else if replicas >= NAMING && !in_parallel {
        "try again, or with --on-divergence leader to go on all the same"
    } else if replicas >= NAMING {
        on_race(has_checkpoints)
    } else if has_checkpoints {
        "there was no checkpoint at that moment: try a shorter --checkpoint, or run with -n 3"
    } else {
        "run with -n 3 to name the faulty replica, with --checkpoint to have two named, too, or with --on-divergence leader to go on all the same"
    }
}

/// What to try where the leader may be right, alone against all.
pub(crate) fn on_race(has_checkpoints: bool) -> &'static str {
    if has_checkpoints {
        "the log could not be replayed: try a shorter --checkpoint, or --order serial, which repeats races; geryon discover finds where they are"
    } else {
        "with --checkpoint the log is replayed to find out whether it is, and --order serial repeats races; geryon discover finds where they are"
    }
}

/// All others stand against the leader, in what may be a race.
pub fn in_doubt(has_checkpoints: bool) -> String {
    let advice = on_race(has_checkpoints);
    format!("stopped before the unconfirmed output left: it may be a race; {advice}")
}

/// A replica is not made anew any more, and so many are left.
pub fn without_it(left: usize) -> String {
    match left {
        1 => "going on with 1 replica: nothing is compared any more".into(),
        _ => format!("going on with {left} replicas"),
    }
}
