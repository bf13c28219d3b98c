//! The programs whose replicas are killed, and what each is to have put out.

use super::guest::built;
use super::kills::Case;
use super::support::settings;
use std::path::Path;

pub fn cases(inputs: &Path) -> Vec<Case> {
    let text = inputs.join("text").to_string_lossy().into_owned();
    let case = |name, argv: &[&str], check| Case {
        name,
        argv: argv.iter().map(|w| (*w).to_owned()).collect(),
        check,
    };
    let patchwork = built("recover_patchwork");
    vec![
        case(
            "patchwork",
            &[&patchwork.to_string_lossy()],
            "tail -1 stdout | grep -qx 'GUEST-OK recover_patchwork'",
        ),
        blocked(64, 40),
        case(
            "pbzip2",
            &["pbzip2", "-p4", "-c", &text],
            "bzip2 -dc stdout | cmp - $IN/text",
        ),
        case(
            "xz",
            &["xz", "-T4", "-1", "--block-size=1MiB", "-c", &text],
            "xz -dc <stdout | cmp - $IN/text",
        ),
        case(
            "python",
            &["/usr/bin/python3", "-c", include_str!("../real/json.py")],
            "tail -1 stdout | grep -qx done",
        ),
    ]
}

/// So many threads, each blocked in its own way, and so many rounds of that.
pub fn blocked(threads: u32, rounds: u32) -> Case {
    let guest = built("recover_blocked");
    Case {
        name: "blocked",
        argv: vec![
            guest.to_string_lossy().into_owned(),
            threads.to_string(),
            rounds.to_string(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_blocked'",
    }
}

/// Threads that meet at barriers made of conditions, whose waiters look at nothing when they wake: a new
/// leader's threads must not be let through by the loss of the former one.
pub fn barrier() -> Case {
    as_natively("barrier", "recover_barrier", 60_000)
}

/// Loops that are divided by a static schedule.
pub fn openmp() -> Case {
    as_natively("openmp", "recover_openmp", 12_000)
}

/// A guest whose output, which is always the same, must be that of a native run.
pub fn as_natively(name: &'static str, guest: &str, rounds: u32) -> Case {
    let guest = built(guest).to_string_lossy().into_owned();
    let check = format!("{guest} {rounds} | cmp - stdout");
    Case {
        name,
        argv: vec![guest, rounds.to_string()],
        check: Box::leak(check.into_boxed_str()),
    }
}

/// One of C++20's ways to meet. (In clocks plain loads may decide.)
pub fn cpp20(how: &'static str) -> Case {
    let guest = built("recover_cpp20").to_string_lossy().into_owned();
    let check = format!("{guest} {how} 8000 | cmp - stdout");
    Case {
        name: how,
        argv: vec![guest, how.into(), "8000".into()],
        check: Box::leak(check.into_boxed_str()),
    }
}

/// Processes that fork processes, all the time.
pub fn tree() -> Case {
    let guest = built("recover_tree");
    Case {
        name: "tree",
        argv: vec![guest.to_string_lossy().into_owned(), "120".into()],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_tree'",
    }
}

/// Processes that begin in the memory of those that make them, all the time.
pub fn spawn() -> Case {
    let guest = built("recover_spawn");
    Case {
        name: "spawn",
        argv: vec![
            guest.to_string_lossy().into_owned(),
            "40".into(),
            "4".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_spawn'",
    }
}

/// Much memory: `LARGE_MIB`.
pub fn memory() -> Case {
    let guest = built("recover_memory");
    Case {
        name: "memory",
        argv: vec![
            guest.to_string_lossy().into_owned(),
            settings::large_mib().to_string(),
            "100".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_memory'",
    }
}

/// Signals that are pending and blocked.
pub fn signals() -> Case {
    let guest = built("recover_signals");
    Case {
        name: "signals",
        argv: vec![
            guest.to_string_lossy().into_owned(),
            "12".into(),
            "60".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_signals'",
    }
}

/// The ends of children, of which a signal tells that is blocked most of the time.
pub fn children() -> Case {
    let guest = built("recover_children");
    Case {
        name: "children",
        argv: vec![guest.to_string_lossy().into_owned(), "100".into()],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_children'",
    }
}

/// Signals of children's ends that the program sends itself.
pub fn own_chld() -> Case {
    let guest = built("recover_own_chld");
    Case {
        name: "own_chld",
        argv: vec![guest.to_string_lossy().into_owned(), "60".into()],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_own_chld'",
    }
}

/// Timers that ring once, or are to ring much later.
pub fn timers() -> Case {
    let guest = built("recover_timers");
    Case {
        name: "timers",
        argv: vec![guest.to_string_lossy().into_owned(), "5".into()],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_timers'",
    }
}

/// Signals that come in during calls with a mask of their own: as natively.
pub fn call_mask() -> Case {
    let guest = built("sig_call_mask").to_string_lossy().into_owned();
    let check = format!("{guest} | cmp - stdout");
    Case {
        name: "call_mask",
        argv: vec![guest],
        check: Box::leak(check.into_boxed_str()),
    }
}

/// Threads and children with seccomp filters of their own.
pub fn filters() -> Case {
    let guest = built("recover_filters");
    Case {
        name: "filters",
        argv: vec![
            guest.to_string_lossy().into_owned(),
            "40".into(),
            "40".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_filters'",
    }
}

/// What was set by the ids of processes and threads, and the ids themselves.
pub fn ids() -> Case {
    let guest = built("recover_ids");
    Case {
        name: "ids",
        argv: vec![
            guest.to_string_lossy().into_owned(),
            "60".into(),
            "40".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_ids'",
    }
}

/// A forked process of one thread, whose parent has had several, and which vforks all the time.
pub fn forked() -> Case {
    let guest = built("recover_forked");
    Case {
        name: "forked",
        argv: vec![guest.to_string_lossy().into_owned(), "60".into()],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_forked'",
    }
}
