//! The rendezvous at the start of a call that has to be confirmed before it happens: all agree on what is asked for.

use super::{copied, whose};
use crate::compare::expect;
use crate::log::{acknowledge, append, confirmed, is_end, passed, publish, remember, word_at};
use crate::marshal;
use crate::raise;
use crate::serial;
use crate::state::{block, block_anew, have_own_programs, leads, private};
use crate::stop::broken;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::repeat;
use geryon_abi::record::{BEGIN_WORDS, kind, word};
use geryon_abi::row::Row;

/// The rendezvous at the start of an output. True: this replica executes the call.
pub fn begin(frame: &mut Frame, row: &Row) -> bool {
    if block().begun.swap(0, Ordering::Relaxed) != 0 {
        // The source of this copy has, as a leader.
        return false;
    }
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
        && word_at(b, start) & !DETAIL == word(kind::BEGIN, 0, nr, 0)
        && word_at(b, start + 1) == digest
}

/// Bits of a record's first word.
const DETAIL: u64 = word(0, 0xff, 0, 0);

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
    let theirs = expect::<6>(b, frame, kind::BEGIN, nr, digest, args);
    let followed = theirs.is_some();
    if let Some((_, theirs)) = theirs {
        if have_own_programs()
            && let Some(row) = geryon_abi::table::row(nr.into())
        {
            marshal::same::note(b, row, &theirs);
        }
        // Should this replica come to make the call: a copy of its thread begins it there.
        b.call_start = b.pos - BEGIN_WORDS;
        acknowledge(b);
    }
    followed
}

/// Leader: its part.
fn lead(frame: &mut Frame, nr: u16, digest: u64, args: [u64; 6]) {
    let mut b = block();
    let mut logged = args;
    let mut detail = 0;
    if have_own_programs()
        && let Some(row) = geryon_abi::table::row(nr.into())
    {
        logged = marshal::same::logged(row, args);
        if marshal::same::is_written_alone(row, &args) {
            detail = passed::ALONE;
        }
    }
    let ours = word(kind::BEGIN, detail, nr, 0);
    raise::lead_signal_before(b, frame);
    if !leads() {
        // A register has said that there is nothing to follow: nothing of the leader's log is touched.
        broken();
    }
    b.call_start = b.pos;
    let [a0, a1, a2, a3, a4, a5] = logged;
    append(b, [ours, digest, a0, a1, a2, a3, a4, a5]);
    if b.pos != b.call_start + BEGIN_WORDS {
        broken();
    }
    remember(b, ours);
    point!(RendezvousUnpublished);
    publish(b);
    point!(RendezvousPublished);
    await_others(nr, &args, block_anew().pos, repeat::CALL);
    point!(RendezvousConfirmed);
}

/// Leader: until those have confirmed what this thread has logged up to there whose confirmation the call needs.
/// `repeatable`: what a copy of the thread can do meanwhile.
fn await_others(nr: u16, args: &[u64; 6], logged: u64, repeatable: u32) {
    let mut b = block();
    if whose::waits(b) {
        b.repeatable = repeatable;
        point!(SignalInRendezvous);
        whose::wait(nr, args, logged);
        b.repeatable = repeat::NOTHING;
    }
}

/// New leader, which is to make a call that it has confirmed as a follower: its predecessor may have been lost before all
/// the others had. (If that one has made the call they had.)
pub fn led_behind(nr: u16, args: &[u64; 6]) {
    let b = block();
    if b.given.load(Ordering::Acquire) == 0 {
        // (Behind that a turn may be logged, which nobody confirms.)
        await_others(nr, args, b.call_start + BEGIN_WORDS, repeat::END);
    }
}
