//! Has another thread stored all that a load of its leader's time can have found?

extern crate std;

use super::replicas::{Group, become_thread};
use crate::atomic::passed::all_passed;
use crate::state::{block, block_at, reach};
use core::sync::atomic::Ordering;
use geryon_abi::layout::wait;
use geryon_ring::memory::Log;
use geryon_ring::world::Thread;

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
        assert!(all_passed(block(), 7), "its leader has logged nothing more");
        // It has logged a load, and waits where it comes to it again.
        other.poll.logged((pos, pos), (1, 1), 0, (0, 0), 0);
        assert!(all_passed(block(), 7), "nor found the same again");
        let mut leader = other.poll;
        leader.found_again(0);
        let ring = other.ring();
        ring.control().again.store(leader.told(), Ordering::SeqCst);
        assert!(!all_passed(block(), 7), "its leader has, and gone on");
        other.poll.found_again(0);
        assert!(all_passed(block(), 7));
    });
}
