//! A follower becomes the leader: the former one is gone, everything that it had published was
//! replayed, and whoever waits for a record that will not come makes one instead. (Design, section
//! 6: survivors first replay what any of them has consumed; what was in flight is done exactly once.)

use crate::call::writing;
use crate::gate::rpc;
use crate::marshal;
use crate::state::{Here, block, block_anew, header, is_to_lead, leads, private};
use crate::stop::broken;
use crate::wait::{Patience, announce, announce_end};
use core::sync::atomic::{AtomicU32, Ordering};
use geryon_abi::layout::{
    flight, owes, promotion, repeat, role, rpc as number, vforked, wait, why,
};
use geryon_abi::outcome::{self, changes};
use geryon_abi::row::{Class, Row};
use geryon_ring::succeed::{self, Heir};

/// Is this process, which was made to follow, to lead? It does when this returns true.
#[inline(always)]
pub fn promoted() -> bool {
    succeed::promoted(block())
}

/// (A vfork's child has descriptors and timers of its own. Where the process has threads that may need
/// the process's before its parent is there again, one of them is waited for.)
fn is_guest() -> bool {
    block_anew().vforked != vforked::NOT
}

impl Heir for Here {
    type Word = AtomicU32;

    #[inline(always)]
    fn promotion(&self) -> &AtomicU32 {
        &private().promotion
    }

    fn may_prepare(self) -> bool {
        !is_guest() || private().shares_files.get() != 0 || crate::thread::is_single()
    }

    fn prepare(self) {
        let p = private();
        if !is_to_lead() {
            broken();
        }
        point!(PromotionBegun);
        let maps = &header().open.file_maps[p.replica.get() as usize];
        p.file_maps.set(maps.load(Ordering::SeqCst));
        // Nobody is inside a section: what a copied process shows of that is its source's.
        crate::clock::unlock_all();
        let guest = is_guest();
        match guest {
            true => {
                p.owes.store(owes::REST, Ordering::SeqCst);
                crate::files::clothe();
            }
            false => crate::files::inherit(),
        }
        if crate::state::have_own_programs() {
            marshal::events::register_again();
        }
        // Whoever has still to map a file finds it here.
        header()
            .open
            .leader_pid
            .store(p.own_pid.get(), Ordering::SeqCst);
        crate::children::tell();
        crate::orphan::tell();
        if !guest {
            crate::timer::set_again();
        }
        if crate::serial::is_serial() {
            crate::serial::promoted();
        }
        crate::proc_files::give_names();
        crate::settings::apply();
        if !guest {
            crate::jobs::join();
        }
        p.role.set(role::LEADER);
        point!(PromotionPrepared);
    }

    #[inline(always)]
    fn settle(self) {
        crate::files::clothe();
    }

    fn linger(self, patience: &mut Patience) {
        patience.spend();
    }
}

/// A thread is back from a vfork, whose child may have taken over meanwhile: what it could not do for its
/// parent is done now. (If it is such a child itself, that is its parent's.)
pub fn settle() {
    if block_anew().vforked != vforked::NOT {
        return;
    }
    let owed = &private().owes;
    let mine = owed.compare_exchange(
        owes::REST,
        owes::UNDER_WAY,
        Ordering::SeqCst,
        Ordering::SeqCst,
    );
    if mine.is_ok() {
        crate::files::inherit();
        crate::timer::set_again();
        owed.store(owes::NOTHING, Ordering::SeqCst);
    }
}

/// Has this replica taken over from another one?
#[inline(always)]
pub fn has_taken_over() -> bool {
    leads() && private().promotion.load(Ordering::Relaxed) == promotion::DONE
}

/// A record that has to be whole ends in its middle: the log is damaged.
#[cold]
#[inline(never)]
pub fn torn_record(b: Here) -> ! {
    crate::diverge::diverged_for_good(why::KIND, b.pos, [0; 8])
}

/// The call that the former leader has made in this thread's place, and that is not in the log: its
/// result. What it wrote is fetched from there.
pub fn given(mut b: Here, row: &Row, args: &[u64; 6], digest: u64) -> Option<i64> {
    if b.given.load(Ordering::Acquire) == 0 {
        return None;
    }
    let ours = [
        geryon_abi::record::word(geryon_abi::record::kind::CALL, 0, row.nr, 0),
        digest,
        args[0],
        args[1],
        args[2],
        args[3],
        args[4],
        args[5],
    ];
    if b.given_nr != row.nr as u32 || b.given_digest != digest {
        // The former leader has done something else.
        // (Of its arguments nothing is known here.)
        let theirs = geryon_abi::table::row(b.given_nr as u64);
        if theirs.is_none_or(|r| changes(r, &[0; 6], b.given_result as i64)) {
            // Something that cannot be undone.
            crate::diverge::diverged_for_good(why::DIGEST, b.pos, ours);
        }
        b.given.store(0, Ordering::Release);
        return None;
    }
    let result = b.given_result as i64;
    let looks = row.class == Class::Input && !changes(row, args, result);
    if looks && (row.gives_id || crate::ids::are_ids_in(row)) {
        // What the kernel has told the former leader of ids are that one's, until it says what the program
        // calls them.
        b.given.store(0, Ordering::Release);
        return None;
    }
    marshal::inherit(row, args, result);
    if let Some(at) = outcome::spoilt(b.given_written) {
        let may = crate::call::is_still_agreed(b, row, args);
        let args = crate::call::copied::given(b, args);
        if !may || !crate::undo::write_again(row.nr, &args, result, at) {
            crate::diverge::diverged_for_good(why::DAMAGED, b.pos, ours);
        }
    } else if b.given_written != 0
        && b.given_written != marshal::written(row, args, result, &marshal::Before::UNLIMITED)
    {
        // The former leader was lost because this has changed in its memory. A call that only looks is made
        // again as it is.
        let looks = digest != crate::digest::CONFIRMED && !changes(row, args, result);
        if !looks && !crate::undo::give_back(row.nr, args[0], result) {
            crate::diverge::diverged_for_good(why::DAMAGED, b.pos, ours);
        }
        b.given.store(0, Ordering::Release);
        return None;
    }
    crate::ids::inherited(row, args, result);
    accept(b, flight::RETURNED);
    crate::timer::was_given(b, row.nr, args, result);
    crate::settings::were_given(b, row.nr, result);
    point!(LegacyTaken);
    if crate::serial::active() && writing::is_cut_short(row.nr as u64, args, result) {
        // The rest may have to wait for another thread of the program. (Who asks takes the turn again.)
        crate::serial::release(b);
    }
    announce(wait::KERNEL, row.nr as u64, 0);
    // (A reader may keep it waiting: a copy of this thread waits for the call's end, as a follower.)
    b.repeatable = match digest {
        crate::digest::CONFIRMED => repeat::END,
        _ => repeat::NOTHING,
    };
    if writing::is_cut_short(row.nr as u64, args, result)
        && !crate::call::is_still_agreed(b, row, args)
    {
        broken();
    }
    let given = crate::call::copied::given(b, args);
    let written = writing::complete(b, row, &given, false, result);
    block_anew().repeatable = repeat::NOTHING;
    announce_end();
    Some(written)
}

/// The call is as good as made here: whoever takes over next finds it under way.
fn accept(mut b: Here, state: u32) {
    b.flight_nr = b.given_nr;
    b.flight_digest = b.given_digest;
    b.flight_result = [b.given_result; 2];
    b.flight_written = 0;
    b.flight.store(state, Ordering::Release);
    b.given.store(0, Ordering::Release);
}

/// Copy what the former leader's call wrote at this address to the same address here.
pub fn inherit(address: u64, len: u64) {
    if len != 0 {
        rpc(number::INHERIT, address, len, 0);
    }
}

/// A completion's record that was larger than the ring was lost in its middle: write the rest.
/// (`payload`: where what the call wrote begins.)
#[cold]
pub fn complete_record(
    mut b: Here,
    payload: u64,
    row: &Row,
    args: &[u64; 6],
    first: u64,
    result: i64,
) {
    if b.given.load(Ordering::Acquire) == 0 {
        torn_record(b);
    }
    marshal::inherit(row, args, result);
    if b.given_written != 0
        && b.given_written != marshal::written(row, args, result, &marshal::Before::UNLIMITED)
        && !crate::undo::read_again(row.nr, args, result)
    {
        let ours = crate::event::call(geryon_abi::record::kind_of(first), row.nr, 0, args);
        crate::diverge::diverged_for_good(why::DAMAGED, payload, ours);
    }
    accept(b, flight::LOGGING);
    b.pos = payload;
    marshal::send_again(b, row, args, first, result);
    crate::call::landed(b);
}

/// Leader, about to close a descriptor: a process that has led may not have ended yet, and have it, too. (Not in a vfork's
/// child, whose parent's thread may have to fetch its own first, and stands still.)
#[inline(always)]
pub fn let_go() {
    if header().remains.load(Ordering::Relaxed) != 0 && !is_guest() {
        await_end_of_former();
    }
}

#[cold]
fn await_end_of_former() {
    const EAGAIN: i64 = -11;
    const MOMENT: u64 = 100_000;
    while rpc(number::LET_GO, 0, 0, 0) == EAGAIN {
        crate::wait::pause(MOMENT);
    }
}
