//! The leader makes a call, which must happen exactly once whatever becomes of it.

use super::{copied, is_unchanged, limit, looks, reading, writing};
use crate::digest::CONFIRMED;
use crate::gate::{real_blocking_taken_off, real_in_flight};
use crate::ids;
use crate::marshal::{self, Before};
use crate::promotion;
use crate::raise;
use crate::serial;
use crate::state::{Here, block, block_anew, is_to_lead, leads, private};
use crate::stop::broken;
use crate::undo;
use crate::wait::{announce, announce_end, intend_call};
use core::hint::black_box;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{flight, repeat, wait};
use geryon_abi::outcome::{self, NOTHING, is_plausible};
use geryon_abi::row::{Kind, Property, Row};
use geryon_abi::table::nr;

/// Is the turn kept while this call is made?
fn keeps_turn(row: &Row, args: &[u64; 6]) -> bool {
    crate::shared::keeps_turn(row, args) || looks::keeps_turn(row)
}

/// The same, also where it is too soon over for anybody to ask.
pub fn keeps_turn_at_all(row: &Row, args: &[u64; 6]) -> bool {
    never_blocks(row, args) || crate::shared::keeps_turn(row, args)
}

/// Execute a call in the leader, unless its predecessor has; interruptions without a signal for the
/// program are hidden.
pub fn execute(row: &Row, args: [u64; 6], digest: u64, before: &Before) -> i64 {
    let nr = row.nr as u64;
    let mut b = block();
    if let Some(result) = promotion::given(b, row, &args, digest) {
        // (Or a register says so that has changed: then nobody has made the call.)
        let is_made = block_anew().flight.load(Ordering::Relaxed) != flight::NONE;
        if !promotion::has_taken_over() || !is_made {
            broken();
        }
        if serial::active() {
            serial::acquire(b);
        }
        ids::repeat(row, &args, result);
        if ids::is_the_programs(row, &args, result) {
            return result;
        }
    }
    if row.is(Property::Closes) && private().file_maps.get() != 0 && private().replicas > 1 {
        // Only here, where it is certain that this replica makes the call: its thread may have come
        // to it as a follower's.
        crate::memory::let_files_be_mapped();
    }
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
    if never_blocks(row, &args) {
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
    let mut limit = limit::Limit::new();
    loop {
        b.repeatable = match digest {
            CONFIRMED => repeat::END,
            _ => repeat::CALL,
        };
        if serial::active() && !keeps_turn(row, &args) {
            serial::release_for(b, row, &args);
        }
        if row.is(Property::Closes) {
            promotion::let_go();
        }
        intend_call(b, row.nr, digest);
        announce(wait::KERNEL, nr, 0);
        b.halted.store(0, Ordering::Relaxed);
        let checked = digest != CONFIRMED;
        let room = match checked {
            true => None,
            false => writing::begin(b, row, &meant),
        };
        if serial::active() && !checked && !is_unchanged(row, &meant) {
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
        let told = limit.applied(row.nr, now);
        let mut result = real_blocking_taken_off(number_of(row), &told, checked);
        if blames_its_caller(row, &args, result) {
            take_off(b, row.nr, digest);
            if room.is_none() {
                check_told(row, &now, &meant, &shown);
            }
            result = real_blocking_taken_off(number_of(row), &told, checked);
        }
        b = block_anew();
        ids::give_back(row, &shown, &now);
        result = ids::rewritten(row, &shown, result);
        crate::sent::was_read(row.nr, &shown, result);
        if room.is_some() || writing::was_halted(b) {
            result = writing::complete(b, row, &args, checked, result);
        }
        announce_end();
        if !checked {
            check_written(b, row, &meant, result);
        }
        // (Beside other threads, what is small may change at any time by the program's own doing.)
        let is_alone = serial::active() || private().multi.get() == 0;
        if is_alone || reading.is_some() {
            b.flight_written = marshal::noted(b, row, &shown, result, before);
        }
        if let Some(reading) = reading {
            reading.confirm(result, || {
                b.flight_written = marshal::noted(b, row, &shown, result, before);
            });
        }
        if serial::active() {
            serial::acquire(b);
            result = noted(b, result);
        }
        if result == BEFORE_IT_BEGAN
            && (!row.is(Property::Interruptible) || writing::need_not_wait(nr, &now))
        {
            result = MADE_ANEW;
        }
        if !is_plausible(nr, result) {
            broken();
        }
        result = crate::mask::shown(b, row, &shown, result);
        b.repeatable = repeat::NOTHING;
        if checked {
            b.call_start = b.pos;
        }
        // The monitor stops threads; epoll_wait and others show that as EINTR (design, 10).
        if result == -4 && !raise::pending(block()) {
            take_off(b, row.nr, digest);
            limit.stopped(row.nr, &meant);
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
        EINVAL if row.nr as u64 == nr::timer_create => false,
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
    /// Less is copied at once.
    const LEAST: i64 = 4096;
    let is_large = result >= LEAST && row.is(Property::WritesAgain);
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

/// Does it answer at once, whatever happens? The watchdog need not know of such a call, and in serial
/// order the thread keeps its turn. (A thread that wakes others with each row that it has done would
/// otherwise hand its turn to and fro with each.)
fn never_blocks(row: &Row, args: &[u64; 6]) -> bool {
    match row.nr as u64 {
        nr::futex => !crate::thread::waits(args),
        _ => row.is(Property::Prompt),
    }
}
