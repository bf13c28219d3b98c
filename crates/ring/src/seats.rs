//! The monitor's side: replicas that come (a copy takes its seat and joins) and replicas that go.

use crate::memory::{Control, Group};
use crate::word::Atom;
use core::sync::atomic::Ordering;

/// A copy stands in this ring where its source stands. In all rings, before it [`takes`] its seat.
pub fn stands<C: Control>(ring: &C, replica: usize, pos: u64, verified: u64) {
    ring.tail(replica).store(pos, Ordering::SeqCst);
    ring.ack(replica).store(verified, Ordering::SeqCst);
}

/// Nothing that it has still to read is overwritten from now on. Its source must not read on before.
pub fn takes<G: Group>(group: &G, replica: usize, sleeps: bool) {
    if sleeps {
        group.sleeping().fetch_or(1 << replica, Ordering::SeqCst);
    }
    group.joining().fetch_or(1 << replica, Ordering::SeqCst);
}

/// Does this replica's thread sleep at the end of this ring?
pub fn sleeps<C: Control>(ring: &C, replica: usize) -> bool {
    ring.follower_sleeps().load(Ordering::SeqCst) & (1 << replica) != 0
}

/// The copy's thread will. Before it [`joins`]; and as where any follower goes to sleep, a barrier on all
/// cores that run a leader follows, before the copy's thread does.
pub fn wants_waking<C: Control>(ring: &C, replica: usize) {
    ring.follower_sleeps()
        .fetch_or(1 << replica, Ordering::SeqCst);
}

/// The copy takes part from now on.
pub fn joins<G: Group>(group: &G, replica: usize) {
    group
        .sleeping()
        .fetch_and(!(1 << replica), Ordering::SeqCst);
    group.alive().fetch_or(1 << replica, Ordering::SeqCst);
    group.joining().fetch_and(!(1 << replica), Ordering::SeqCst);
}

/// It does not come after all: before it [`goes`], and [`vacates`] the rings.
pub fn leaves<G: Group>(group: &G, replica: usize) {
    // Before its words change, which wakes whoever waits for it.
    group
        .sleeping()
        .fetch_and(!(1 << replica), Ordering::SeqCst);
    group.joining().fetch_and(!(1 << replica), Ordering::SeqCst);
}

/// Nobody waits for this replica any more. Before it [`vacates`] the rings.
pub fn goes<G: Group>(group: &G, replica: usize) {
    group.alive().fetch_and(!(1 << replica), Ordering::SeqCst);
}

/// Its words in this ring change, and a leader which is just going to sleep until it writes there looks again.
pub fn vacates<C: Control>(ring: &C, replica: usize, wake: impl Fn(&C::Flags)) {
    ring.follower_sleeps()
        .fetch_and(!(1 << replica), Ordering::SeqCst);
    for word in [ring.ack(replica), ring.tail(replica)] {
        word.store(u64::MAX, Ordering::SeqCst);
    }
    let sleeps = ring.leader_sleeps();
    sleeps.store(0, Ordering::SeqCst);
    wake(sleeps);
}
