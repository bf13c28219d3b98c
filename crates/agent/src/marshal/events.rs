//! What epoll hands back is what the leader has given it: for a program of its own that is nothing. So the log says with each
//! registration what the leader's is, and a follower finds its own by that. Who comes to lead registers its own.

use super::{EPOLL_DATA, EPOLL_EVENT};
use crate::access::{put_what_differs, word32, word64};
use crate::gate::real;
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::row::{Kind, Row};
use geryon_abi::table::kind_of;
use geryon_abi::table::nr;

const MODIFY: u64 = 3;
/// So many are known.
const MOST: usize = 8192;

/// A descriptor that is registered.
struct Registered {
    /// Of epoll and of what it looks at, 32 bits each.
    descriptors: AtomicU64,
    events: AtomicU64,
    own: AtomicU64,
    theirs: AtomicU64,
}

static ALL: [Registered; MOST] = [const {
    Registered {
        descriptors: AtomicU64::new(0),
        events: AtomicU64::new(0),
        own: AtomicU64::new(0),
        theirs: AtomicU64::new(0),
    }
}; MOST];
/// How many there are. (One thread of a replica runs at a time.)
static COUNT: AtomicU64 = AtomicU64::new(0);

fn all() -> &'static [Registered] {
    &ALL[..(COUNT.load(Ordering::Relaxed) as usize).min(MOST)]
}

/// A descriptor was registered, or registered otherwise, by a call with these arguments, of which the fourth is not null;
/// the leader's data are `theirs`.
pub fn note(args: &[u64; 6], own: u64, theirs: u64) {
    let descriptors = args[0] << 32 | args[2] & 0xffff_ffff;
    let is_same = |r: &&Registered| r.descriptors.load(Ordering::Relaxed) == descriptors;
    let place = all().iter().find(is_same).or_else(|| {
        let next = ALL.get(COUNT.load(Ordering::Relaxed) as usize)?;
        COUNT.fetch_add(1, Ordering::Relaxed);
        Some(next)
    });
    let Some(place) = place else {
        return;
    };
    let events = word32(args[3]).unwrap_or(0).into();
    let words = [
        (&place.descriptors, descriptors),
        (&place.events, events),
        (&place.own, own),
        (&place.theirs, theirs),
    ];
    for (word, value) in words {
        word.store(value, Ordering::Relaxed);
    }
}

/// Follower: it was given the leader's events.
pub fn given(row: &Row, args: &[u64; 6], result: i64) {
    for i in 0..row.args.len() {
        let Kind::EpollEvents(most) = kind_of(row, i, args) else {
            continue;
        };
        for k in 0..(result.max(0) as u64).min(args[most as usize]) {
            let at = args[i] + u64::from(EPOLL_EVENT) * k + EPOLL_DATA;
            let Some(theirs) = word64(at) else {
                continue;
            };
            let is_its = |r: &&Registered| r.theirs.load(Ordering::Relaxed) == theirs;
            if let Some(found) = all().iter().find(is_its) {
                let own = found.own.load(Ordering::Relaxed);
                put_what_differs(at, &own.to_le_bytes());
            }
        }
    }
}

/// New leader: what is registered are its own data from now on. (What was taken away, or closed, is not there any more.)
pub fn register_again() {
    for r in all() {
        let [descriptors, events, own] =
            [&r.descriptors, &r.events, &r.own].map(|w| w.load(Ordering::Relaxed));
        let mut event = [0u8; EPOLL_EVENT as usize];
        event[..4].copy_from_slice(&(events as u32).to_le_bytes());
        event[EPOLL_DATA as usize..].copy_from_slice(&own.to_le_bytes());
        let at = event.as_ptr() as u64;
        let args = [
            descriptors >> 32,
            MODIFY,
            descriptors & 0xffff_ffff,
            at,
            0,
            0,
        ];
        real(nr::epoll_ctl, args);
    }
}
