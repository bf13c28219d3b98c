//! Who takes part, as a leader's thread sees it.

use crate::memory::Group;
use crate::word::Atom;
use crate::world::Thread;
use core::sync::atomic::Ordering;

/// The living followers, as a mask of replica indices.
#[inline(always)]
pub fn followers<T: Thread>(t: T) -> u32 {
    t.group().alive().load(Ordering::Acquire) & !(1 << t.replica())
}

/// Those whose unread records must not be overwritten.
pub fn readers<T: Thread>(t: T) -> u32 {
    followers(t) | t.group().joining().load(Ordering::Acquire)
}

/// Those among the readers that stand still until they are needed (a checkpoint).
pub fn sleepers<T: Thread>(t: T) -> u32 {
    t.group().sleeping().load(Ordering::Acquire)
}
