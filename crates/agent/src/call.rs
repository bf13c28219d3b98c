//! Calls that the table describes completely: inputs and outputs.

use crate::compare::expect;
use crate::gate::{real, real_blocking};
use crate::log::{acknowledge, confirmed, first as first_word, get, publish, put, remember};
use crate::marshal::{self, Before};
use crate::raise;
use crate::state::{Here, block, leads, private};
use crate::wait::{announce, announce_end};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{verify, wait};
use geryon_abi::record::{kind, kind_of, word};
use geryon_abi::row::Row;

/// Bits of a completion record's detail.
pub mod after {
    /// A signal record follows; deliver it when the call returns.
    pub const SIGNAL: u8 = 1;
    /// The call was interrupted before it did anything and is issued again afterwards.
    pub const RESTART: u8 = 2;
}

/// The first word of what this thread is about to do, after signals that come first.
pub fn begin_record(b: Here, frame: &mut Frame) -> u64 {
    let first = first_word(b);
    if kind_of(first) == kind::SIGNAL {
        raise::follow_signal_before(b, first, frame);
    }
    remember(b, first);
    first
}

/// A call whose result is an input of the program.
pub fn input(frame: &mut Frame, row: &Row) {
    let args = frame.args();
    let b = block();
    if private().verify == verify::ALL && private().replicas > 1 {
        return output(frame, row);
    }
    let digest = marshal::digest(row, &args);
    if leads() {
        raise::lead_signal_before(b, frame);
        let before = marshal::before(row, &args);
        let result = execute(row.nr as u64, args);
        complete(b, frame, row, kind::CALL, Some(digest), result, &before);
    } else {
        let (first, []) = expect(b, frame, kind::CALL, row.nr, digest, &args);
        finish(b, frame, row, first);
    }
}

/// A call that has to be confirmed before it happens.
pub fn output(frame: &mut Frame, row: &Row) {
    if begin(frame, row) {
        let args = frame.args();
        let b = block();
        let before = marshal::before(row, &args);
        let result = execute(row.nr as u64, args);
        complete(b, frame, row, kind::END, None, result, &before);
    } else {
        let b = block();
        let first = first_word(b);
        remember(b, first);
        finish(b, frame, row, first);
    }
}

/// The rendezvous at the start of an output. True: this replica executes the call.
pub fn begin(frame: &mut Frame, row: &Row) -> bool {
    crate::sabotage::maybe(frame, row);
    let args = frame.args();
    let digest = marshal::digest(row, &args);
    rendezvous(frame, row.nr, digest, args)
}

/// Agree with the other replicas on a number and a digest.
pub fn rendezvous(frame: &mut Frame, nr: u16, digest: u64, args: [u64; 6]) -> bool {
    let b = block();
    let ours = word(kind::BEGIN, 0, nr, 0);
    if leads() {
        raise::lead_signal_before(b, frame);
        put(b, ours);
        put(b, digest);
        for a in args {
            put(b, a);
        }
        remember(b, ours);
        publish(b);
        if private().verify != verify::ASYNC {
            confirmed(b, b.pos);
        }
        true
    } else {
        expect::<6>(b, frame, kind::BEGIN, nr, digest, &args);
        acknowledge(b);
        false
    }
}

/// Execute a call in the leader; interruptions without a signal for the program are hidden.
pub fn execute(nr: u64, args: [u64; 6]) -> i64 {
    if never_blocks(nr, &args) {
        return real(nr, args);
    }
    let b = block();
    let serial = crate::serial::active();
    loop {
        if serial {
            crate::serial::release(b);
        }
        announce(wait::KERNEL, nr, 0);
        let result = real_blocking(nr, args);
        announce_end();
        if serial {
            crate::serial::acquire(b);
        }
        // The monitor stops threads; epoll_wait and others show that as EINTR (design, 10).
        if result == -4 && !raise::pending(block()) {
            continue;
        }
        return result;
    }
}

/// Calls that answer at once, whatever happens: the watchdog need not know of them, and in serial
/// order the thread keeps its turn. (A thread that wakes others with each row that it has done would
/// otherwise hand its turn to and fro with each.)
fn never_blocks(nr: u64, args: &[u64; 6]) -> bool {
    const FUTEX: u64 = crate::enter::nr::FUTEX;
    match nr {
        FUTEX => !crate::thread::waits(args),
        4 | 5 | 6 | 8 | 21 | 39 | 63 | 96 | 98 | 102 | 104 | 107 | 108 | 110 | 186 | 201 | 228
        | 309 => true,
        _ => false,
    }
}

/// Leader: log the end of a call and set the result.
pub fn complete(
    b: Here,
    frame: &mut Frame,
    row: &Row,
    k: u8,
    digest: Option<u64>,
    result: i64,
    before: &Before,
) {
    let mut detail = 0;
    let mut shown = result;
    if raise::pending(b) {
        detail |= after::SIGNAL;
        if let Some(r) = raise::interrupted(b, result) {
            shown = r;
        } else {
            detail |= after::RESTART;
        }
    } else if (-516..=-512).contains(&result) {
        // Interrupted for a signal that was taken back (ignored meanwhile): issue it again.
        detail |= after::RESTART;
    }
    let first = word(k, detail, row.nr, 0);
    put(b, first);
    if let Some(d) = digest {
        put(b, d);
    }
    put(b, shown as u64);
    if detail & after::RESTART == 0 {
        marshal::send(b, row, &frame.args(), shown, before);
    }
    publish(b);
    remember(b, first);
    settle(b, frame, row.nr, shown, detail);
}

/// Follower: the end of a call, after its first word (and digest).
pub fn finish(b: Here, frame: &mut Frame, row: &Row, first: u64) {
    crate::log::verified(b);
    let result = get(b) as i64;
    let detail = geryon_abi::record::detail_of(first);
    if detail & after::RESTART == 0 {
        marshal::receive(b, row, &frame.args(), result);
    }
    settle(b, frame, row.nr, result, detail);
}

/// Both: set the result (or the restart), then deliver the signal that follows.
fn settle(mut b: Here, frame: &mut Frame, nr: u16, result: i64, detail: u8) {
    if detail & after::RESTART != 0 {
        frame.rax = nr as u64;
        raise::reissue(frame);
    } else {
        frame.rax = result as u64;
    }
    if detail & after::SIGNAL != 0 {
        raise::deliver_now(b, frame);
    }
    b.back = 0;
}
