//! Have all survivors come to rest, each thread where nothing but a change of the log can lead it on?
//!
//! A thread that naps in the program's own futex call looks at the program's memory between its naps: it
//! rests when it has done so again and again, while all others rested, and come to nothing. If there are
//! records for it still, they are of a path that it does not take, and it is held before them like one that
//! waits for a turn.

use super::quiet::Stand;
use geryon_abi::layout::wait;
use geryon_tracee::{Pid, sleeps, state};

/// So often each napping thread has to have looked. (What it sees may have been stored by another one that
/// napped before.)
const LOOKS: u64 = 3;

/// How the survivors were found when they last moved.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Each thread's position, and what it waits for.
    places: Vec<(Pid, u64, u32)>,
    /// How often those that nap had slept by then.
    slept: Vec<(Pid, u64)>,
}

impl Rest {
    /// Was each of them found at the same place before, and at rest again?
    pub(super) fn is_reached(&mut self, all: &[Stand], head: impl Fn(u32) -> u64) -> bool {
        let places = all.iter().map(|s| (s.tid, s.pos, kept(s))).collect();
        if self.places != places {
            let nap = all.iter().filter(|s| naps(s));
            *self = Rest {
                places,
                slept: nap.map(|s| (s.tid, sleeps(s.tid))).collect(),
            };
            return false;
        }
        let has_looked = |(tid, before): &(Pid, u64)| sleeps(*tid) >= before + LOOKS;
        all.iter().all(|s| rests(s, head(s.slot)) && sleeps_now(s))
            && self.slept.iter().all(has_looked)
    }
}

/// Does it stand before a record that is in doubt?
pub(super) fn is_held(s: &Stand, head: u64) -> bool {
    match s.waiting {
        wait::DIVERGED | wait::TURN | wait::KIN | wait::VALUE => true,
        wait::KERNEL => s.in_futex && s.pos < head,
        _ => false,
    }
}

fn rests(s: &Stand, head: u64) -> bool {
    match s.waiting {
        wait::RECORD => s.pos >= head,
        wait::KERNEL | wait::WORD => !s.midway,
        _ => is_held(s, head),
    }
}

/// Does it sleep, and look at times?
pub(super) fn naps(s: &Stand) -> bool {
    s.in_futex && !s.suspended
}

/// What it waits for, if it does not go on from there and come back.
fn kept(s: &Stand) -> u32 {
    match s.waiting {
        wait::NONE | wait::KERNEL if !s.suspended => wait::KERNEL,
        other => other,
    }
}

/// Does the thread sleep in the kernel? (Who waits for a plain store spins.)
fn sleeps_now(s: &Stand) -> bool {
    match s.waiting {
        wait::DIVERGED | wait::WORD => true,
        wait::VALUE => !s.due,
        wait::KERNEL if s.vforks => true,
        _ => matches!(state(s.tid), Some('S' | 't')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_naps_before_a_record_is_held_there() {
        let naps = Stand {
            waiting: wait::KERNEL,
            in_futex: true,
            pos: 50,
            ..Stand::default()
        };
        assert!(is_held(&naps, 51) && !is_held(&naps, 50));
        let calls = Stand {
            in_futex: false,
            ..naps
        };
        assert!(!is_held(&calls, 51));
    }

    #[test]
    fn what_is_midway_or_computes_does_not_rest() {
        let stand = |waiting, midway| Stand {
            waiting,
            midway,
            pos: 50,
            ..Stand::default()
        };
        assert!(rests(&stand(wait::KERNEL, false), 50));
        assert!(!rests(&stand(wait::KERNEL, true), 50));
        assert!(!rests(&stand(wait::NONE, false), 50));
        assert!(!rests(&stand(wait::RECORD, false), 51));
    }
}
