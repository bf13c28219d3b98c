//! Which children are gone: wait4 and waitid.

use super::WALL;
use crate::call::{self, complete, finish_for_good};
use crate::children::{Gone, disown};
use crate::compare::same_kind;
use crate::diverge::diverged;
use crate::event;
use crate::gate::real;
use crate::log::get;
use crate::marshal::{self, Before};
use crate::promotion;
use crate::raise;
use crate::state::{Here, block, leads, private};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{children, why};
use geryon_abi::record::{kind, word};
use geryon_abi::row::Row;
use geryon_abi::table::nr;

const WNOHANG: u64 = 1;

/// wait4, waitid: the leader waits; a follower then reaps its own copy of that child.
pub fn wait(frame: &mut Frame, row: &'static Row) {
    /// The child is gone (not just stopped or continued).
    const GONE: u8 = 4;
    let args = frame.args();
    let mut b = block();
    let digest = marshal::digest(row, &args);
    if !leads()
        && let Some((first, gone)) = expect_wait(b, frame, row, digest)
    {
        if gone != 0 {
            match disown(gone) {
                Gone::Other(own) => drop(real(nr::wait4, [own as u64, 0, WALL, 0, 0, 0])),
                Gone::Same => {}
                Gone::Orphan => {
                    crate::orphan::finds(b, gone);
                    finish_for_good(b, frame, row, first);
                    return crate::orphan::reaped(b);
                }
            }
        }
        return finish_for_good(b, frame, row, first);
    }
    raise::lead_signal_before(b, frame);
    b.call_start = b.pos;
    let by_monitor =
        promotion::has_taken_over() || private().children.get() == children::BY_MONITOR;
    let (result, gone) = if by_monitor {
        crate::reap::wait(b, row, args, digest)
    } else {
        let result = call::execute(row, args, digest, &Before::default());
        let gone = gone_child(row.nr as u64, &args, result);
        if private().children.get() != children::BY_KERNEL {
            crate::reap::forget(gone);
        }
        (result, gone)
    };
    if gone == 0 && private().replicas > 1 && !by_monitor {
        crate::reap::told(row, &args, result);
    }
    let mut is_orphan = false;
    if gone != 0 {
        // What the kernel knows as a child of this process: one that has followed, or its own.
        let whose = disown(gone);
        is_orphan = whose == Gone::Orphan;
        match whose {
            _ if !by_monitor => 0,
            Gone::Other(own) => real(nr::wait4, [own as u64, 0, WALL, 0, 0, 0]),
            _ => real(nr::wait4, [gone as u64, 0, WALL | WNOHANG, 0, 0, 0]),
        };
    }
    let detail = if gone != 0 { GONE } else { 0 };
    crate::log::put(b, word(kind::VALUE, detail, row.nr, gone));
    let k = kind::CALL;
    if is_orphan {
        crate::orphan::finds(b, gone);
    }
    complete(b, frame, row, k, Some(digest), result, &Before::default());
    if is_orphan {
        crate::orphan::reaped(b);
    }
}

/// Follower: the record of a wait: its first word behind the note, and the child that is gone, or 0.
fn expect_wait(b: Here, frame: &mut Frame, row: &Row, digest: u64) -> Option<(u64, u32)> {
    let a = frame.args();
    let shown = [a[0], a[1], a[2], a[3], 0, 0];
    let ours = event::call(kind::CALL, row.nr, digest, &shown);
    loop {
        let note = raise::begin_record(b, frame)?;
        let at = b.pos - 1;
        if !same_kind(at, note, word(kind::VALUE, 0, row.nr, 0), ours) {
            continue;
        }
        let (first, theirs) = (get(b), get(b));
        if theirs == digest {
            return Some((first, geryon_abi::record::low_of(note)));
        }
        diverged(why::DIGEST, at, ours);
    }
}

/// The id of the child that this successful wait has reaped, or 0.
pub fn gone_child(nr: u64, args: &[u64; 6], result: i64) -> u32 {
    if result < 0 {
        return 0;
    }
    if nr == nr::waitid {
        const WNOWAIT: u64 = 0x100_0000;
        if args[2] == 0 || args[3] & WNOWAIT != 0 {
            return 0;
        }
        // SAFETY: the call succeeded and has written the siginfo.
        let (code, pid) = unsafe {
            (
                ((args[2] + 8) as *const u32).read_unaligned(),
                ((args[2] + 16) as *const u32).read_unaligned(),
            )
        };
        // CLD_EXITED, CLD_KILLED, CLD_DUMPED.
        return if (1..=3).contains(&code) { pid } else { 0 };
    }
    if result == 0 {
        return 0;
    }
    if args[1] != 0 {
        // SAFETY: the call succeeded and has written the status.
        let status = unsafe { (args[1] as *const u32).read_unaligned() };
        return if crate::reap::lives(status) {
            0
        } else {
            result as u32
        };
    }
    // WUNTRACED and WCONTINUED report children that live on: those answer kill(pid, 0).
    if args[2] & !(WNOHANG | WALL) != 0 && real(nr::kill, [result as u64, 0, 0, 0, 0, 0]) == 0 {
        return 0;
    }
    result as u32
}
