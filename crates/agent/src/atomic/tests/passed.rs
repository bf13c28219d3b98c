//! Has another thread stored all that a load of its leader's time can have found?

extern crate std;

use super::replicas::{Group, become_thread};
use crate::atomic::passed::Passed;
use crate::clock::LIFE;
use crate::log::marks;
use crate::state::{Here, block, block_at, header, reach};
use crate::thread;
use core::sync::atomic::Ordering;
use geryon_abi::layout::{Poll, wait};
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

/// Has everybody passed, if it is asked for the first time?
fn all_passed() -> bool {
    Passed::default().is_all(block(), 7)
}

/// A thread of this replica in that slot, which computes.
fn computes(slot: usize) -> Here {
    let mut b = block_at(slot);
    b.this = geryon_abi::layout::block_address(slot);
    b.slot = slot as u32;
    b.free.store(0, Ordering::SeqCst);
    b.waiting.store(wait::NONE, Ordering::SeqCst);
    reach(slot);
    b
}

/// It waits for its leader to log something.
fn waits(b: Here) {
    b.waiting.store(wait::RECORD, Ordering::SeqCst);
}

#[test]
fn who_polls_has_passed_when_it_has_come_as_far_as_its_leader_was() {
    Group::new(1).run(1, || {
        become_thread(0);
        let mut other = computes(1);
        let pos = other.pos;
        other.poll.logged((pos, pos), (1, 1), 0, (0, 0), 0);
        let tells = |count| {
            let ring = other.ring();
            ring.control()
                .again
                .store(Poll::tells(pos, count), Ordering::SeqCst);
        };
        tells(2);
        let mut passed = Passed::default();
        assert!(!passed.is_all(block(), 7), "it is behind that");
        // Its leader polls on, and it is behind for ever.
        tells(1_000_000);
        other.poll.found_again(0);
        other.poll.found_again(0);
        assert!(!passed.is_all(block(), 7), "what it did then is not over");
        other.poll.found_again(0);
        assert!(passed.is_all(block(), 7));
        assert!(!all_passed(), "if it is asked anew it is behind again");
    });
}

#[test]
fn who_polls_makes_marks() {
    Group::new(1).run(1, || {
        become_thread(0);
        let mut other = computes(1);
        let pos = other.pos;
        other.poll.logged((pos, pos), (1, 1), 0, (0, 0), 0);
        let place = |count| Poll::tells(pos, count);
        header().open.loads.0.store(7, Ordering::SeqCst);
        assert!(!marks::note_poll(other));
        assert_eq!(marks::before(other, place(1)), 0, "it is too soon");
        let loads = 7 + marks::SOON;
        header().open.loads.0.store(loads, Ordering::SeqCst);
        marks::note_poll(other);
        assert_eq!(marks::before(other, place(0)), 0);
        assert_eq!(marks::before(other, place(1)), loads);
        let gives_way = (1..=marks::OFTEN).filter(|_| {
            header().open.loads.0.fetch_add(1, Ordering::SeqCst);
            other.noted = header().open.loads.0.load(Ordering::SeqCst) - 1;
            let gives_way = marks::note_poll(other);
            other.poll.found_again(0);
            gives_way
        });
        let times = gives_way.count() as u64;
        assert_eq!(times, marks::OFTEN / marks::GIVES_WAY);
        let end = place(marks::OFTEN);
        let all = loads + marks::OFTEN;
        assert_eq!(marks::before(other, end), all);
        // The next record comes behind all that was found again before it.
        header().open.loads.0.fetch_add(1, Ordering::SeqCst);
        marks::note(other);
        assert_eq!(marks::before(other, end), all);
        assert_eq!(marks::before(other, marks::record(pos)), all);
        assert_eq!(marks::before(other, marks::record(pos) + 1), all + 1);
    });
}

#[test]
fn who_is_born_meanwhile_is_asked() {
    Group::new(1).run(1, || {
        become_thread(2);
        reach(2);
        let maker = computes(1);
        let mut passed = Passed::default();
        assert!(!passed.is_all(block(), 7), "the maker computes");
        let born = computes(0);
        LIFE.turn_done(LIFE.next());
        waits(maker);
        assert!(!passed.is_all(block(), 7), "it may store what is awaited");
        waits(born);
        assert!(passed.is_all(block(), 7));
        // The slot is another one's.
        let mut passed = Passed::default();
        maker.waiting.store(wait::NONE, Ordering::SeqCst);
        assert!(!passed.is_all(block(), 7));
        computes(0);
        LIFE.turn_done(LIFE.next());
        waits(maker);
        assert!(!passed.is_all(block(), 7));
    });
}

#[test]
fn who_waits_for_the_end_of_a_thread_that_ends_is_asked_again() {
    Group::new(1).run(1, || {
        become_thread(0);
        let mut waiter = computes(1);
        let mut ends = computes(2);
        let mut id = 33_u32;
        ends.clear_tid = core::ptr::from_mut(&mut id) as u64;
        (waiter.waiting_for, waiter.waiting_value) = (0, ends.clear_tid);
        waiter.waiting.store(wait::KERNEL, Ordering::SeqCst);
        waits(ends);
        assert!(all_passed(), "neither gets on before its leader does");
        thread::announce_exit(ends);
        LIFE.turn_done(LIFE.next());
        ends.free.store(1, Ordering::SeqCst);
        assert!(
            !all_passed(),
            "it is about to end, and the other one to go on"
        );
        // SAFETY: this thread's.
        unsafe { core::ptr::from_mut(&mut id).write_volatile(0) };
        assert!(!all_passed(), "who has waited computes");
        waiter.waiting.store(wait::NONE, Ordering::SeqCst);
        waits(waiter);
        assert!(all_passed());
    });
}

#[test]
fn who_waits_where_its_leader_has_gone_on_has_not_passed() {
    Group::new(1).run(1, || {
        reach(1);
        become_thread(0);
        let mut other = block_at(1);
        other.this = geryon_abi::layout::block_address(1);
        other.slot = 1;
        let pos = other.pos;
        other.waiting.store(wait::RECORD, Ordering::SeqCst);
        assert!(all_passed(), "its leader has logged nothing more");
        // It has logged a load, and waits where it comes to it again.
        other.poll.logged((pos, pos), (1, 1), 0, (0, 0), 0);
        assert!(all_passed(), "nor found the same again");
        let mut leader = other.poll;
        leader.found_again(0);
        let ring = other.ring();
        ring.control().again.store(leader.told(), Ordering::SeqCst);
        assert!(!all_passed(), "its leader has, and gone on");
        other.poll.found_again(0);
        assert!(all_passed());
    });
}
