//! The rendezvous at the start of a call that has to be confirmed before it happens: all agree on what is asked for.

use super::{copied, whose};
use crate::compare::expect;
use crate::log::{acknowledge, append, confirmed, is_end, publish, remember, word_at};
use crate::marshal;
use crate::raise;
use crate::serial;
use crate::state::{block, block_anew, leads, private};
use crate::stop::broken;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::repeat;
use geryon_abi::record::{kind, word};
use geryon_abi::row::Row;

/// The rendezvous at the start of an output. True: this replica executes the call.
pub fn begin(frame: &mut Frame, row: &Row) -> bool {
    crate::sabotage::maybe(frame, row);
    let args = frame.args();
    let look = || {
        let copy = copied::take(block(), row, &args, block().pos);
        let given = copy.unwrap_or(args);
        let digest = marshal::digest(row, &given);
        block().agreed = digest;
        (copy, given, digest)
    };
    let (mut copy, mut given, mut digest) = look();
    if !leads() {
        if follow(frame, row.nr, digest, &args) {
            return false;
        }
        // This replica leads by now, and other threads may have been here while it waited.
        (copy, given, digest) = look();
    }
    lead(frame, row.nr, digest, args);
    // What was agreed on is what will happen: while this thread waited for the others, its registers
    // and its memory may have changed.
    let is_same = || {
        let again = match copy {
            None => frame.args(),
            // (Where the turn is given away the copy is looked at behind that.)
            Some(_) if serial::active() => return frame.args() == args,
            Some(_) => given,
        };
        marshal::digest(row, &again) == digest
    };
    if private().replicas > 1 && (!is_same() || !is_agreed(row.nr, digest)) {
        broken();
    }
    true
}

/// Is this call what this thread has logged last? It waits for the others to confirm it once more, with
/// nothing that a register has held since: a thread that was sent past the wait would make the call
/// before anybody has seen it.
#[inline(never)]
fn is_agreed(nr: u16, digest: u64) -> bool {
    let b = block_anew();
    let Some(start) = b.pos.checked_sub(BEGIN_WORDS) else {
        return false;
    };
    if whose::waits(b) {
        confirmed(b, b.pos, whose::at_least(nr));
    }
    is_end(b, b.pos)
        && word_at(b, start) == word(kind::BEGIN, 0, nr, 0)
        && word_at(b, start + 1) == digest
}

/// Words of the record of a call's beginning: itself, the digest, six arguments.
pub const BEGIN_WORDS: u64 = 8;

/// Agree with the other replicas on a number and a digest.
pub fn rendezvous(frame: &mut Frame, nr: u16, digest: u64, args: [u64; 6]) -> bool {
    if !leads() && follow(frame, nr, digest, &args) {
        return false;
    }
    lead(frame, nr, digest, args);
    true
}

/// Follower: its part of that. False when this replica leads by now.
fn follow(frame: &mut Frame, nr: u16, digest: u64, args: &[u64; 6]) -> bool {
    let mut b = block();
    let followed = expect::<6>(b, frame, kind::BEGIN, nr, digest, args).is_some();
    if followed {
        // Should this replica come to make the call: a copy of its thread begins it there.
        b.call_start = b.pos - BEGIN_WORDS;
        acknowledge(b);
    }
    followed
}

/// Leader: its part.
fn lead(frame: &mut Frame, nr: u16, digest: u64, args: [u64; 6]) {
    let mut b = block();
    let ours = word(kind::BEGIN, 0, nr, 0);
    raise::lead_signal_before(b, frame);
    if !leads() {
        // A register has said that there is nothing to follow: nothing of the leader's log is touched.
        broken();
    }
    b.call_start = b.pos;
    let [a0, a1, a2, a3, a4, a5] = args;
    append(b, [ours, digest, a0, a1, a2, a3, a4, a5]);
    if b.pos != b.call_start + BEGIN_WORDS {
        broken();
    }
    remember(b, ours);
    point!(RendezvousUnpublished);
    publish(b);
    point!(RendezvousPublished);
    await_others(nr, &args);
    point!(RendezvousConfirmed);
}

/// Leader: until those have confirmed what this thread has logged whose confirmation the call needs.
fn await_others(nr: u16, args: &[u64; 6]) {
    let mut b = block();
    if whose::waits(b) {
        b.repeatable = repeat::CALL;
        point!(SignalInRendezvous);
        whose::wait(b, nr, args);
        b.repeatable = repeat::NOTHING;
    }
}

/// New leader, which is to make a call that it has confirmed as a follower: its predecessor may have been lost before all
/// the others had. (If that one has made the call they had.)
pub fn led_behind(nr: u16, args: &[u64; 6]) {
    if block().given.load(Ordering::Acquire) == 0 {
        await_others(nr, args);
    }
}
