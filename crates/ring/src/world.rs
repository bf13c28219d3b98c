//! What the protocol asks of who runs it. In a replica the agent answers, with the thread's block, futex
//! calls and barriers of the kernel; under a model a checker does, which tries every order.

use crate::memory::{Control, Group, Log};
use geryon_abi::point::FaultPoint;

/// Waiting.
pub trait Waits: Copy {
    /// How long one has waited already.
    type Patience;
    /// Not at all yet.
    fn patience(self) -> Self::Patience;
    /// Wait a moment; true when it is time to sleep in the kernel instead.
    fn spend(self, patience: &mut Self::Patience) -> bool;
    /// Say what is waited for, for the watchdog and for reports (see `geryon_abi::layout::wait`).
    fn announce(self, why: u32, what: u64, value: u64);
    /// The wait is over.
    fn announce_end(self);
    /// A place where things can go wrong: a [`FaultPoint`]'s number.
    fn passes<const POINT: u32>(self);
    /// A full fence.
    fn fence(self);
    /// This replica contradicts itself, and ends before anybody sees more of it.
    fn broken(self) -> !;
}

/// The number of a point, for [`Waits::passes`].
pub const fn at(point: FaultPoint) -> u32 {
    point as u32
}

/// A position of a thread's ring.
pub type Word<T> = <<<T as Thread>::Ring as Log>::Control as Control>::Word;
/// Its ring's flags.
pub type Flags<T> = <<<T as Thread>::Ring as Log>::Control as Control>::Flags;

/// A thread of a replica, with its place in its ring. A handle: what it names may change while a function
/// holds it (a handler runs, the monitor writes).
pub trait Thread: Waits {
    /// Its ring.
    type Ring: Log;
    /// Its process group.
    type Group: Group;
    /// A follower tells the leader how far it is at least this often, in words.
    const TAIL_EVERY: u64;

    /// Its ring.
    fn ring(self) -> Self::Ring;
    /// Who takes part.
    fn group(&self) -> &Self::Group;
    /// This replica's index. Asked anew each time: a copy of a replica gets another one while it stands in
    /// the middle of anything.
    fn replica(self) -> usize;
    /// The same thread, asked of the processor and not of a register.
    fn anew(self) -> Self;
    /// Is this the thread that asks, and does its replica lead?
    fn is_own_and_leads(self) -> bool;

    /// Its position.
    fn pos(self) -> u64;
    /// Move it.
    fn set_pos(self, pos: u64);
    /// Up to where it may write or read without looking again.
    fn limit(self) -> u64;
    /// Change that.
    fn set_limit(self, limit: u64);
    /// Leader: up to where it has shown its ring to the others.
    fn set_published(self, pos: u64);
    /// Follower: everything below this was compared and found equal.
    fn set_verified(self, pos: u64);
    /// Follower: between this and [`Thread::ends_telling`] it writes to its line of the ring, where no copy
    /// may be made of it.
    fn begins_telling(self);
    /// See there.
    fn ends_telling(self);

    /// Sleep while the word is `seen` (its low half); wake-ups without cause happen.
    fn sleep(self, word: &Word<Self>, seen: u64);
    /// The same, but not for long: what is waited for may come without a wake-up.
    #[inline(always)]
    fn sleep_shortly(self, word: &Word<Self>, seen: u64) {
        self.sleep(word, seen);
    }
    /// Wake all that sleep on it, in all replicas.
    fn wake(self, word: &Word<Self>);
    /// Sleep while the flags are 1; wake-ups without cause happen.
    fn sleep_flagged(self, flags: &Flags<Self>);
    /// Wake who sleeps on them, in all replicas.
    fn wake_flagged(self, flags: &Flags<Self>);
    /// A barrier on all cores that run a leader, issued by who is about to sleep.
    fn heavy_barrier(self);
    /// What the leader has in the place of a fence, since [`Thread::heavy_barrier`] makes it one where it
    /// has to be: the compiler's.
    fn light_barrier(self);

    /// Follower: the log has been published up to `head`, beyond `at`. Up to where this thread may read it now. (Who is
    /// strict waits here for other threads.)
    #[inline(always)]
    fn admitted(self, at: u64, head: u64) -> u64 {
        let _ = at;
        head
    }

    /// Follower: is this replica to lead, and ready to?
    fn promoted(self) -> bool;
    /// Follower: it has read all that there is, and is going to wait.
    fn stands_at_end(self);
    /// Leader: there should be younger sleepers soon (`geryon_abi::layout::outdated::SOON`), or those that
    /// are there must go at once (`NOW`).
    fn outdated(self, how: u64);
}
