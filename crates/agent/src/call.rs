//! Calls that the table describes completely: inputs and outputs.

use crate::compare::{self, expect};
use crate::digest::CONFIRMED;
use crate::event;
use crate::gate::{real_blocking_taken_off, real_in_flight};
use crate::ids;
use crate::log::{
    acknowledge, append, confirmed, first as first_word, get, is_end, publish, remember, word_at,
};
use crate::marshal::{self, Before, Received};
use crate::proc_files;
use crate::promotion;
use crate::raise;
use crate::state::{Here, block, block_anew, is_to_lead, leads, private};
use crate::stop::broken;
use crate::undo;
use crate::wait::{announce, announce_end, intend_call};
use core::hint::black_box;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{flight, repeat, verify, wait, why};
use geryon_abi::outcome::{self, NOTHING, is_plausible};
use geryon_abi::record::{kind, kind_of, short_of, word};
use geryon_abi::row::{Class, Kind, Row};

pub mod copied;
mod reading;
mod whose;
pub mod writing;

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
    // (Who has followed until here has come to what is behind that.)
    b.call_start = if led { start } else { b.pos };
    let before = marshal::before(row, &args);
    undo::before(b, row.nr, &args);
    crate::timer::sleeps(b, row.nr, &args);
    let result = execute(row, args, digest, &before);
    complete(b, frame, row, kind::CALL, Some(digest), result, &before);
}

/// A call that has to be confirmed before it happens.
pub fn output(frame: &mut Frame, row: &Row) {
    let executes = begin(frame, row);
    let b = block();
    while !executes && let Some(first) = expect_end(b, frame, row.nr) {
        if finish(b, frame, row, first) {
            return;
        }
    }
    let args = frame.args();
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
            Some(_) if crate::serial::active() => return frame.args() == args,
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

/// Is what this call is given what all have agreed on? Whoever has got the turn meanwhile may have got this
/// thread's core with it.
fn is_unchanged(row: &Row, args: &[u64; 6]) -> bool {
    block_anew().agreed == marshal::digest(row, args)
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
    if whose::waits(b) {
        b.repeatable = repeat::CALL;
        point!(SignalInRendezvous);
        whose::wait(b, nr, &args);
        b.repeatable = repeat::NOTHING;
    }
    point!(RendezvousConfirmed);
}

/// Execute a call in the leader, unless its predecessor has; interruptions without a signal for the
/// program are hidden.
pub fn execute(row: &Row, args: [u64; 6], digest: u64, before: &Before) -> i64 {
    let nr = row.nr as u64;
    let mut b = block();
    let serial = crate::serial::active();
    if let Some(result) = promotion::given(b, row, &args, digest) {
        // (Or a register says so that has changed: then nobody has made the call.)
        let is_made = block_anew().flight.load(Ordering::Relaxed) != flight::NONE;
        if !promotion::has_taken_over() || !is_made {
            broken();
        }
        if serial {
            crate::serial::acquire(b);
        }
        ids::repeat(row, &args, result);
        return result;
    }
    if closes(nr) && private().file_maps.get() != 0 && private().replicas > 1 {
        // Only here, where it is certain that this replica makes the call: its thread may have come
        // to it as a follower's.
        crate::memory::let_files_be_mapped();
    }
    let mut first = true;
    let shown = args;
    check_asked(row, &shown);
    // (What is copied before it is confirmed.)
    let meant = match digest {
        CONFIRMED => copied::given(b, &args),
        _ => args,
    };
    let args = ids::translated(row, meant);
    take_off(b, row.nr, digest);
    crate::sent::is_made(row.nr, &shown);
    if never_blocks(nr, &args) {
        check_told(row, &args, &meant, &shown);
        let mut result = real_in_flight(number_of(row), &args, true);
        if blames_its_caller(row, &args, result) {
            take_off(b, row.nr, digest);
            check_told(row, &args, &meant, &shown);
            result = real_in_flight(number_of(row), &args, true);
        }
        ids::give_back(row, &shown, &args);
        result = ids::rewritten(row, &shown, result);
        return ids::shown(row, result);
    }
    loop {
        b.repeatable = if first || digest != CONFIRMED {
            repeat::CALL
        } else {
            repeat::NOTHING
        };
        first = false;
        if serial && !crate::shared::keeps_turn(row.nr, &args) {
            crate::serial::release_for(b, row.nr, &args);
        }
        intend_call(b, row.nr, digest);
        announce(wait::KERNEL, nr, 0);
        b.halted.store(0, Ordering::Relaxed);
        let checked = digest != CONFIRMED;
        let room = match checked {
            true => None,
            false => writing::begin(b, row, &meant),
        };
        if serial && !checked && !is_unchanged(row, &meant) {
            broken();
        }
        let reading = reading::begin(row, &args);
        let mut now = args;
        if let Some(room) = room {
            now = meant;
            now[2] = now[2].min(room);
        }
        if room.is_none() {
            check_told(row, &now, &meant, &shown);
        }
        let mut result = real_blocking_taken_off(number_of(row), &now, checked);
        if blames_its_caller(row, &args, result) {
            take_off(b, row.nr, digest);
            if room.is_none() {
                check_told(row, &now, &meant, &shown);
            }
            result = real_blocking_taken_off(number_of(row), &now, checked);
        }
        b = block_anew();
        ids::give_back(row, &shown, &now);
        result = ids::rewritten(row, &shown, result);
        if room.is_some() || writing::was_halted(b) {
            result = writing::complete(b, row, &args, checked, result);
        }
        announce_end();
        if !checked {
            check_written(b, row, &meant, result);
        }
        // (Beside other threads, what is small may change at any time by the program's own doing.)
        let is_alone = serial || private().multi.get() == 0;
        if is_alone || reading.is_some() {
            b.flight_written = marshal::noted(b, row, &shown, result, before);
        }
        if let Some(reading) = reading {
            reading.confirm(result, || {
                b.flight_written = marshal::noted(b, row, &shown, result, before);
            });
        }
        if serial {
            crate::serial::acquire(b);
            result = noted(b, result);
        }
        if result == BEFORE_IT_BEGAN
            && (!outcome::is_interruptible(nr) || writing::need_not_wait(nr, &now))
        {
            result = MADE_ANEW;
        }
        if !is_plausible(nr, result) {
            broken();
        }
        result = crate::mask::shown(b, row, &shown, result);
        b.repeatable = repeat::NOTHING;
        b.call_start = b.pos;
        // The monitor stops threads; epoll_wait and others show that as EINTR (design, 10).
        if result == -4 && !raise::pending(block()) {
            take_off(b, row.nr, digest);
            continue;
        }
        return ids::shown(row, result);
    }
}

/// Is this the call that the program makes? Its frame says so, which is where its entry has left it: on the
/// way from there registers have held the call's row and its arguments.
#[inline(always)]
pub fn check_asked(row: &Row, args: &[u64; 6]) {
    // SAFETY: this thread's frame is at the top of its agent stack while it makes a call.
    let frame = unsafe { &*(block_anew().frame as *const Frame) };
    if frame.rax != number_of(row) || frame.args() != *black_box(args) {
        broken();
    }
}

/// The bits of a record's first word that say how a call has ended.
const ENDS: u64 = word(0, after::SIGNAL | after::RESTART, 0, 0);

/// Leader: does the log say at `start` that the program's call has ended in that way?
fn check_first(b: Here, start: u64, kind: u8, detail: &u8) {
    // SAFETY: as in `check_asked`.
    let frame = unsafe { &*(block_anew().frame as *const Frame) };
    let first = word_at(b, start);
    let is_its = first & !ENDS == word(kind, 0, frame.rax as u16, 0);
    if !is_its || geryon_abi::record::detail_of(first) != *black_box(detail) {
        broken();
    }
}

/// Leader, right before the kernel is told `args`, which are `meant` with the ids of now; the program knows
/// `shown`: nothing has happened yet, and afterwards the answer counts.
#[inline(always)]
fn check_told(row: &Row, args: &[u64; 6], meant: &[u64; 6], shown: &[u64; 6]) {
    check_asked(row, shown);
    if block_anew().flight_nr as u64 != number_of(row) {
        broken();
    }
    if !ids::are_translated(row, shown) && *black_box(args) != *black_box(meant) {
        broken();
    }
}

/// What the gate says where a signal waits for its handler: ERESTARTSYS.
const BEFORE_IT_BEGAN: i64 = -512;
/// ERESTARTNOINTR: the handler runs, and then the call is made, whatever the handler's flags say.
const MADE_ANEW: i64 = -513;

/// Does this result say that the call, or what it was given, is none? It has done nothing then, and is
/// made once more, with everything taken from memory again: what was wrong may have been a register of
/// this replica. What comes of that counts, be it a signal's interruption.
fn blames_its_caller(row: &Row, args: &[u64; 6], result: i64) -> bool {
    const EBADF: i64 = -9;
    const EFAULT: i64 = -14;
    const EINVAL: i64 = -22;
    const ENOSYS: i64 = -38;
    const ENOTSOCK: i64 = -88;
    match result {
        // (What a socket has kept it tells once.)
        EINVAL | EFAULT if crate::stored::may_be_anothers() => false,
        // (A header of capabilities has been changed by the answer; where there is no room for a peer's address that
        // is found when a packet, or a connection, has been taken. A timer that cannot be made has taken its id.)
        EINVAL if row.nr as u64 == crate::enter::nr::TIMER_CREATE => false,
        EINVAL => row.args.iter().all(|a| {
            !matches!(
                a.kind,
                Kind::CapHeader | Kind::SockaddrOut(_) | Kind::MsghdrOut | Kind::MmsghdrOut(_)
            )
        }),
        EBADF | ENOSYS | ENOTSOCK => true,
        // A packet, a signal, a child may have been taken, bytes sent, time slept, before the place for what is
        // told of that was found to be none.
        EFAULT => !marshal::comes_out(row, args),
        _ => false,
    }
}

/// Leader, behind a large write to a file: a bit that flipped in its buffer while the kernel copied that
/// is in the file. Then all is written once more, by the successor.
fn check_written(mut b: Here, row: &Row, args: &[u64; 6], result: i64) {
    /// write, pwrite64, writev, pwritev.
    const WRITES: [u16; 4] = [1, 18, 20, 296];
    /// Less is copied at once.
    const LEAST: i64 = 4096;
    let is_large = result >= LEAST && WRITES.contains(&row.nr);
    if is_large && private().replicas > 1 && undo::is_file(args[0]) && !is_unchanged(row, args) {
        // (What is no digest of nothing: then the run is stopped.)
        b.flight_written = undo::written_to(row.nr, args, result)
            .and_then(outcome::spoilt_at)
            .unwrap_or(1);
        broken();
    }
}

/// A call's number, from the table again.
pub fn number_of(row: &Row) -> u64 {
    // SAFETY: a word of the table.
    unsafe { core::ptr::from_ref(&row.nr).read_volatile() as u64 }
}

/// The result of a call, after this thread has waited for its turn with it: all replicas are about to
/// be told, and a register that holds it may have changed meanwhile. Of three copies two decide.
fn noted(b: Here, held: i64) -> i64 {
    match outcome::noted(b.flight_result) {
        Ok(Some(result)) => result,
        Err(_) if b.flight_result.contains(&(held as u64)) => held,
        _ => broken(),
    }
}

/// Calls after which a descriptor may be gone that a follower has yet to map.
pub fn closes(nr: u64) -> bool {
    use crate::enter::nr::{CLOSE, CLOSE_RANGE, DUP2, DUP3};
    matches!(nr, CLOSE | DUP2 | DUP3 | CLOSE_RANGE)
}

/// A call begins that must happen exactly once, whatever becomes of this process: the gate notes its
/// result, and its successor finds out how far it is.
pub fn take_off(mut b: Here, nr: u16, digest: u64) {
    if !leads() || !is_to_lead() {
        // A flipped bit has taken a follower's thread to where only leaders come.
        broken();
    }
    b.flight_nr = nr as u32;
    b.flight_digest = digest;
    b.flight_result = [NOTHING; 2];
    b.flight_written = 0;
    b.flight_entered = 0;
    b.flight.store(flight::BEGUN, Ordering::Release);
    point!(CallBegun);
}

/// A call has been made by other ways than the gate's: who takes over next finds its result.
pub fn made(mut b: Here, nr: u16, digest: u64, result: i64) {
    take_off(b, nr, digest);
    b.flight_result = [result as u64; 2];
    b.flight.store(flight::RETURNED, Ordering::Release);
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
    let first = word(k, detail, row.nr, 0);
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
    b.asleep_at = 0;
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
