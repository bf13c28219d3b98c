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
    // In this order: who joins is in the other word before it is out of this one.
    let joining = t.group().joining().load(Ordering::Acquire);
    joining | followers(t)
}

/// Has nobody come to the readers since they were `mask`? To be asked behind the look at their words: a
/// copy may have taken its seat before that look, and its source read on.
pub fn are_all<T: Thread>(t: T, mask: u32) -> bool {
    readers(t) & !mask == 0
}

/// Those among the readers that stand still until they are needed (a checkpoint).
pub fn sleepers<T: Thread>(t: T) -> u32 {
    t.group().sleeping().load(Ordering::Acquire)
}

/// Whose confirmation is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Every living follower's.
    All,
    /// That of so many that they and the leader are more than half of the living replicas: of three, one
    /// follower's.
    Majority,
}

impl By {
    /// Is it confirmed when `late` of so many followers have not come there?
    #[inline(always)]
    pub const fn is_enough(self, followers: u32, late: u32) -> bool {
        match self {
            By::All => late == 0,
            By::Majority => late <= followers / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::By;

    #[test]
    fn a_majority_is_more_than_half() {
        for followers in 0..16 {
            for late in 0..=followers {
                let agreed = 1 + followers - late;
                let is_majority = 2 * agreed > 1 + followers;
                assert_eq!(By::Majority.is_enough(followers, late), is_majority);
                assert_eq!(By::All.is_enough(followers, late), late == 0);
            }
        }
    }
}
