//! Names for a person: of records, of what is waited for, of signals.

use crate::watch::View;
use geryon_abi::layout::{wait, why};
use geryon_abi::record::{self, kind};
use geryon_abi::{hooks::HOOKS, table};

/// Records that a thread's block remembers.
const REMEMBERED: u64 = 16;

/// In what a follower's operation differs.
pub fn why_text(w: u32) -> &'static str {
    match w {
        why::KIND => "another operation than the leader's",
        why::DIGEST => "the same call with other arguments or content",
        why::SITE => "the same kind of operation on another object or at another place",
        why::OUTCOME => "the same operation with another result",
        why::LOCAL => "an operation that succeeded in the leader failed",
        why::DAMAGED => "the record of a call's result is damaged",
        _ => "unknown",
    }
}

/// What a record says was done, from its first word.
pub fn operation(first: u64) -> String {
    let k = record::kind_of(first);
    match k {
        kind::CALL | kind::BEGIN | kind::MEMORY | kind::END => {
            table::row(u64::from(record::short_of(first)))
                .map_or_else(|| record::name(k).to_owned(), |r| r.name.to_owned())
        }
        kind::LOCK | kind::OUTCOME => hook_name(record::detail_of(first)).to_owned(),
        kind::ATOMIC => format!(
            "atomic instruction (site hash {:#06x})",
            record::short_of(first)
        ),
        kind::LOAD => format!("load (site hash {:#06x})", record::short_of(first)),
        _ => record::name(k).to_owned(),
    }
}

fn hook_name(id: u8) -> &'static str {
    HOOKS
        .iter()
        .find(|(_, n)| *n == u16::from(id))
        .map_or("lock operation", |(n, _)| n)
}

/// The first words of the last records of a thread, the oldest first.
pub fn last_events(v: &View) -> impl DoubleEndedIterator<Item = u64> {
    let n = v.events.min(REMEMBERED);
    (v.events - n..v.events).map(|i| v.last[(i % REMEMBERED) as usize])
}

/// What a thread does.
pub fn waiting(v: &View) -> String {
    let (place, value) = (v.waiting_for, v.waiting_value);
    match v.waiting {
        wait::RECORD => "waits for the leader".into(),
        wait::TURN => format!("waits for its turn {value} on the clock at {place:#x}"),
        wait::KIN => format!("waits for turn {value} of the processes that share memory"),
        wait::CONFIRM => "waits for confirmation".into(),
        wait::ROOM => "waits for room in the log".into(),
        wait::KERNEL => {
            let name = table::row(place).map_or("a system call", |r| r.name);
            format!("is in {name}")
        }
        wait::VALUE => {
            let (place, _) = wait::place_of(place);
            format!("waits for the word at {place:#x} to become {value:#x}")
        }
        wait::WORD => format!("waits for another thread to change the word at {place:#x}"),
        wait::MAPS => "waits for a file to be mapped".into(),
        wait::ORDER => "waits for what other threads did before that".into(),
        wait::DIVERGED => "is stopped by a divergence".into(),
        _ => "computes".into(),
    }
}

/// Name of a signal.
pub fn signal_name(s: i32) -> &'static str {
    match s {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        _ => "signal",
    }
}
