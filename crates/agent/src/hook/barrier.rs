//! Barriers: all wait in every replica; who is told that it was the last is the leader's choice.
//!
//! In each round one thread is told so by the original, here as in the leader, and not always the same one.
//! Where the leader is lost in the midst of a round the new one's threads are told what their own process's
//! barrier has said; but the lost leader may have told another one already, or not the one that was the last
//! here. So a follower keeps account of the difference, which is settled when it leads: in each round one is
//! told, and only one.

use super::ordered::{expect, hash16, intend_hook, log_word, suspended};
use crate::serial::is_serial;
use crate::state::{block, leads};
use core::sync::atomic::{AtomicI32, Ordering};
use geryon_abi::hooks as id;
use geryon_abi::record::{kind, low_of, word};

/// `PTHREAD_BARRIER_SERIAL_THREAD`.
const LAST: i32 = -1;

/// How many barriers are told apart.
const ACCOUNTS: usize = 1024;

/// Of one barrier: how many threads more were the last in this process than the program knows of.
struct Account(AtomicI32);

static OF: [Account; ACCOUNTS] = [const { Account(AtomicI32::new(0)) }; ACCOUNTS];

fn account(barrier: u64) -> &'static Account {
    &OF[usize::from(hash16(barrier)) % ACCOUNTS]
}

impl Account {
    /// Follower: the barrier has said `own` here, and the program is told `told`.
    fn note(&self, own: i32, told: i32) {
        let more = i32::from(own == LAST) - i32::from(told == LAST);
        if more != 0 {
            self.0.fetch_add(more, Ordering::AcqRel);
        }
    }

    /// Leader: what the program is to be told where the barrier has said `own`.
    fn settle(&self, own: i32) -> i32 {
        let open = self.0.load(Ordering::Acquire);
        let (told, step) = match own {
            // Another one was told.
            LAST if open < 0 => (0, 1),
            // Nobody was told, and the one that was the last here has been told that it was not.
            0 if open > 0 => (LAST, -1),
            _ => return own,
        };
        match self
            .0
            .compare_exchange(open, open + step, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => told,
            Err(_) => self.settle(own),
        }
    }
}

pub(super) extern "C" fn barrier_wait(l: u64) -> i32 {
    let b = block();
    crate::shared::stand();
    intend_hook(b, l, id::BARRIER_WAIT);
    let own = suspended(b, id::BARRIER_WAIT, l, 0, 0, 0);
    // (Where the process has gone over to serial order inside, all replicas are told what their barriers say.)
    if !leads()
        && !is_serial()
        && let Some(w) = expect(b, l, id::BARRIER_WAIT)
    {
        let told = low_of(w) as i32;
        account(l).note(own, told);
        return told;
    }
    let told = account(l).settle(own);
    log_word(
        b,
        word(
            kind::OUTCOME,
            id::BARRIER_WAIT as u8,
            hash16(l),
            told as u32,
        ),
    );
    told
}

pub(super) extern "C" fn barrier_destroy(l: u64) -> i32 {
    let b = block();
    suspended(b, id::BARRIER_DESTROY, l, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT: i32 = 0;

    fn empty() -> Account {
        Account(AtomicI32::new(0))
    }

    #[test]
    fn without_a_loss_everybody_is_told_what_the_barrier_says() {
        let a = empty();
        assert_eq!([a.settle(LAST), a.settle(NOT)], [LAST, NOT]);
        a.note(LAST, NOT);
        a.note(NOT, LAST);
        assert_eq!([a.settle(NOT), a.settle(LAST)], [NOT, LAST]);
    }

    #[test]
    fn nobody_is_told_what_the_lost_leader_has_told_another() {
        let a = empty();
        a.note(NOT, LAST);
        assert_eq!([a.settle(NOT), a.settle(LAST), a.settle(NOT)], [NOT; 3]);
        assert_eq!(a.settle(LAST), LAST);
    }

    #[test]
    fn one_is_told_where_the_last_was_told_that_it_was_not() {
        let a = empty();
        a.note(LAST, NOT);
        assert_eq!([a.settle(NOT), a.settle(NOT)], [LAST, NOT]);
        assert_eq!(a.settle(LAST), LAST);
    }
}
