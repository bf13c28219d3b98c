//! Calls that the table describes completely: inputs and outputs.

use crate::compare::{self, expect};
use crate::digest::CONFIRMED;
use crate::event;
use crate::ids;
use crate::log::{append, first as first_word, get, passed, publish, remember, word_at};
use crate::marshal::{self, Before, Received};
use crate::proc_files;
use crate::promotion;
use crate::raise;
use crate::state::{Here, block, block_anew, have_own_programs, leads, private};
use crate::stop::broken;
use crate::undo;
use crate::wait::intend_call;
use core::hint::black_box;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{flight, verify, why};
use geryon_abi::outcome;
use geryon_abi::record::{kind, kind_of, short_of, word};
use geryon_abi::row::{Class, Property, Row};

pub mod copied;
mod execute;
mod limit;
mod looks;
mod reading;
mod rendezvous;
mod whose;
pub mod writing;

pub use execute::{check_asked, execute, made, number_of, take_off};
pub use rendezvous::{begin, led_behind, rendezvous};

/// Bits of a completion record's detail.
pub mod after {
    /// A signal record follows; deliver it when the call returns.
    pub const SIGNAL: u8 = 1;
    /// The call was interrupted before it did anything and is issued again afterwards.
    pub const RESTART: u8 = 2;
}

/// A call whose result is an input of the program.
pub fn input(frame: &mut Frame, row: &Row) {
    input_begun(frame, row, block().pos);
}

/// The same, of which something is logged already, from `start` on: a copy of this thread that makes the call anew
/// comes to that first.
pub fn input_begun(frame: &mut Frame, row: &Row, start: u64) {
    let args = frame.args();
    let mut b = block();
    let led = leads();
    if private().verify == verify::ALL && private().replicas > 1 {
        return output(frame, row);
    }
    let digest = marshal::digest(row, &args);
    if have_own_programs() && row.is(Property::Unordered) && !leads() {
        let record = word(kind::CALL, 0, row.nr, 0);
        if passed::find(b, record, Some(digest)) == Some(false) {
            frame.rax = looks::answer(b, row.nr, args);
            return;
        }
    }
    while !leads()
        && let Some((first, [])) = expect(b, frame, kind::CALL, row.nr, digest, &args)
    {
        if finish(b, frame, row, first) {
            return;
        }
    }
    if !raise::pending(b) || !crate::mask::comes_within(b, row, &args) {
        raise::lead_signal_before(b, frame);
    }
    let mut start = start;
    if b.pos == start && crate::serial::active() && execute::keeps_turn_at_all(row, &args) {
        crate::serial::gives_way(b);
        start = b.pos;
    }
    // (Who has followed until here has come to what is behind that.)
    b.call_start = if led { start } else { b.pos };
    let before = marshal::before(row, &args);
    undo::before(b, row.nr, &args);
    let result = execute(row, args, digest, &before);
    complete(b, frame, row, kind::CALL, Some(digest), result, &before);
}

/// A call that has to be confirmed before it happens.
pub fn output(frame: &mut Frame, row: &Row) {
    if !leads() && marshal::same::is_written_alone(row, &frame.args()) {
        frame.rax = marshal::same::all_of(row, &frame.args());
        return;
    }
    let executes = begin(frame, row);
    let b = block();
    while !executes && let Some(first) = expect_end(b, frame, row.nr) {
        if finish(b, frame, row, first) {
            return;
        }
    }
    let args = frame.args();
    if !executes {
        led_behind(row.nr, &args);
    }
    if !executes && private().replicas > 1 && !is_still_agreed(b, row, &args) {
        // Confirmed long ago: this replica has followed until now.
        broken();
    }
    crate::shared::confirmed(row.nr, &args);
    let before = marshal::before(row, &args);
    let spoilt = crate::sabotage::unchecked(row, &copied::given(b, &args));
    let target = proc_files::target(row, &args);
    let is_given = b.given.load(Ordering::Relaxed) != 0;
    let result = execute(row, args, CONFIRMED, &before);
    crate::sabotage::flip_back(spoilt);
    if let Some(target) = target.filter(|_| result >= 0) {
        if is_given {
            target.repeat(row, &args, result);
        }
        append(b, target.words(row.nr));
    }
    complete(b, frame, row, kind::END, None, result, &before);
}

/// New leader: does this thread have what all have agreed on that it writes, in its program's memory, or as
/// its predecessor's copy? (It copies it, too: it has not begun yet.)
pub fn is_still_agreed(b: Here, row: &Row, args: &[u64; 6]) -> bool {
    copied::take(b, row, args, b.call_start);
    is_unchanged(row, &copied::given(b, args))
        || (private().multi.get() != 0
            && copied::inherit(b, args)
            && is_unchanged(row, &copied::given(b, args)))
}

/// Follower: the first word of the end of a call that was confirmed. None when this replica leads by
/// now, and is to make the call.
pub fn expect_end(mut b: Here, frame: &Frame, nr: u16) -> Option<u64> {
    loop {
        intend_call(b, nr, CONFIRMED);
        let mut first = first_word(b)?;
        b.proc_file = 0;
        if kind_of(first) == kind::VALUE && short_of(first) == nr {
            (b.proc_file, b.proc_offset) = (first, get(b));
            first = get(b);
        }
        remember(b, first);
        let ours = event::call(kind::END, nr, 0, &frame.args());
        if compare::same_kind(b.pos - 1, first, ours[0], ours) {
            return Some(first);
        }
    }
}

/// Is what this call is given what all have agreed on? Whoever has got the turn meanwhile may have got this
/// thread's core with it.
fn is_unchanged(row: &Row, args: &[u64; 6]) -> bool {
    block_anew().agreed == marshal::digest(row, args)
}

/// The bits of a record's first word that say how a call has ended.
const ENDS: u64 = word(0, after::SIGNAL | after::RESTART, 0, 0);

/// And those that say how long it is.
const WORDS: u64 = word(0, 0, 0, u32::MAX);

/// Leader: does the log say at `start` that the program's call has ended in that way?
fn check_first(b: Here, start: u64, kind: u8, detail: &u8) {
    // SAFETY: as in `check_asked`.
    let frame = unsafe { &*(block_anew().frame as *const Frame) };
    let first = word_at(b, start);
    let is_its = first & !ENDS & !WORDS == word(kind, 0, frame.rax as u16, 0);
    if !is_its || geryon_abi::record::detail_of(first) != *black_box(detail) {
        broken();
    }
}

/// Leader: log the end of a call and set the result.
pub fn complete(
    mut b: Here,
    frame: &mut Frame,
    row: &Row,
    k: u8,
    digest: Option<u64>,
    result: i64,
    before: &Before,
) {
    crate::shared::mirror(row.nr, &frame.args(), result);
    point!(SignalBehindCall);
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
    let detail = *black_box(&detail);
    let words = match have_own_programs() && (digest.is_none() || row.is(Property::Unordered)) {
        true if detail & after::RESTART != 0 => 2 + u32::from(digest.is_some()),
        true => {
            let written = marshal::words(row, &frame.args(), shown, before) as u32;
            2 + u32::from(digest.is_some()) + written
        }
        false => 0,
    };
    let first = word(k, detail, row.nr, words);
    b.flight_start = b.pos;
    if b.flight.load(Ordering::Relaxed) != flight::NONE {
        b.flight.store(flight::LOGGING, Ordering::Release);
    }
    point!(CallUnlogged);
    match digest {
        Some(d) => append(b, [first, d, shown as u64]),
        None => append(b, [first, shown as u64]),
    }
    check_first(b, b.flight_start, k, &detail);
    if b.pos != b.flight_start + 2 + digest.is_some() as u64 {
        broken();
    }
    let under_way = b.flight.load(Ordering::Relaxed) != flight::NONE;
    if under_way && detail == 0 && !is_as_noted(b, row) {
        broken();
    }
    point!(RecordTorn);
    if detail & after::RESTART == 0 {
        let is_noted = under_way && b.flight_written != 0;
        let written = marshal::send(b, row, &frame.args(), first, shown, before, is_noted);
        if is_noted && b.flight_written != written {
            // It has changed since the call has written it: the others must not be told.
            broken();
        }
        undo::note(b, k, row, &frame.args(), digest, shown);
        proc_files::opened(k, row, &frame.args(), shown);
    }
    // The signal's words belong to the record.
    if detail & after::SIGNAL == 0 {
        landed(b);
    }
    remember(b, first);
    settle(b, frame, row, shown, detail);
}

/// Leader: is the log's last word the result that the gate has noted? A register has held it since.
fn is_as_noted(b: Here, row: &Row) -> bool {
    let is_kernels = row.class != Class::Lifecycle && !row.gives_id;
    !is_kernels || outcome::noted(b.flight_result) == Ok(Some(word_at(b, b.pos - 1) as i64))
}

/// Leader: the record of a call is whole: let it be seen.
pub fn landed(mut b: Here) {
    // First: where the record cannot be in the log, a successor is to be given the call.
    crate::log::check_place(b);
    b.flight_end = b.pos;
    if b.flight.load(Ordering::Relaxed) != flight::NONE {
        b.flight.store(flight::LOGGED, Ordering::Release);
    }
    point!(RecordUnpublished);
    publish(b);
    point!(RecordPublished);
    b.flight.store(flight::NONE, Ordering::Release);
}

/// Follower: the end of a call, after its first word (and digest). False when the record was damaged
/// and is not in the log any more.
#[must_use]
pub fn finish(b: Here, frame: &mut Frame, row: &Row, first: u64) -> bool {
    let result = get(b) as i64;
    let payload = b.pos;
    let detail = geryon_abi::record::detail_of(first);
    if detail & after::RESTART == 0 {
        match marshal::receive(b, row, &frame.args(), first, result) {
            Received::Whole => {}
            Received::Torn => {
                promotion::complete_record(b, payload, row, &frame.args(), first, result)
            }
            Received::Damaged => {
                let before = if kind_of(first) == kind::CALL { 3 } else { 2 };
                let ours = event::call(kind_of(first), row.nr, 0, &frame.args());
                crate::diverge::diverged(why::DAMAGED, payload - before, ours);
                return false;
            }
        }
    }
    crate::log::verified(b);
    let result = match have_own_programs() && kind_of(first) == kind::END {
        true => marshal::same::result(b, row, &frame.args(), result),
        false => result,
    };
    if detail & after::RESTART == 0 {
        ids::repeat(row, &frame.args(), result);
        proc_files::repeat(b, kind_of(first), row, &frame.args(), result);
        crate::shown::given(row, &frame.args(), result);
    }
    settle(b, frame, row, result, detail);
    true
}

/// As [`finish`], where there is no way back.
pub fn finish_for_good(b: Here, frame: &mut Frame, row: &Row, first: u64) {
    if !finish(b, frame, row, first) {
        crate::diverge::diverged_for_good(why::DAMAGED, b.pos, event::plain(first));
    }
}

/// Both: set the result (or the restart), then deliver the signal that follows.
fn settle(mut b: Here, frame: &mut Frame, row: &Row, result: i64, detail: u8) {
    if detail & after::SIGNAL != 0 {
        let is_over = detail & after::RESTART == 0;
        crate::mask::note(b, row, &frame.args(), if is_over { result } else { 0 });
    }
    if detail & after::RESTART != 0 {
        frame.rax = row.nr as u64;
        raise::reissue(frame);
    } else {
        frame.rax = result as u64;
        crate::timer::was_made(b, row.nr, &frame.args(), result);
        crate::sent::was_made(b, row.nr, &frame.args(), result);
        crate::settings::were_set(b, row.nr, result);
    }
    copied::done(b);
    if detail & after::SIGNAL != 0 {
        raise::deliver_now(b, frame);
    }
    b.back = 0;
}
