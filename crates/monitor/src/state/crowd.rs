//! Where threads contend for locks, and there are fewer cores than threads, followers spend their time waiting for one another:
//! each lock goes to the thread that had it next in the leader, and that one may have no core. In serial order nobody waits so.
//! A follower makes no calls but to wait, so what it has used of the kernel's time, beyond its leader, is that.
//!
//! And there are programs that do hardly anything but what is logged with clocks, and not in serial order: loads of flags that
//! decide, in the innermost loop (sort's compare asks three of them for each two lines).

use geryon_tracee::{Pid, Used};
use std::time::{Duration, Instant};

/// Looked at this often.
const ROUND: Duration = Duration::from_millis(500);
/// So many rounds in a row are no passing contention.
const ROUNDS: u32 = 3;

/// Has a follower waited more than it has computed, in that time, and on a quarter of a core at least?
fn waits_in_vain(leader: Used, follower: Used, time: Duration) -> bool {
    let waits = follower.system.saturating_sub(leader.system);
    waits > 2 * follower.user && 4 * waits > time
}

/// With so many words in the log for each second of the leader's, a hundred nanoseconds for each, that is what it does.
const WORDS_A_SECOND: u64 = 10_000_000;

/// Does the leader do hardly anything but log?
fn only_logs(leader: Used, words: u64, time: Duration) -> bool {
    let used = leader.user + leader.system;
    4 * used > time && u128::from(words) * 1_000 > u128::from(WORDS_A_SECOND) * used.as_millis()
}

/// Why threads are not to run in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Followers wait.
    Waits,
    /// The leader logs.
    Logs,
}

/// What was seen at one time.
#[derive(Debug)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// The processes of a group, its leader's first, and what each has used.
    pub used: Vec<(Pid, Used)>,
    /// Words in the log.
    pub words: u64,
}

/// What was seen of that.
#[derive(Debug, Default)]
pub struct Crowd {
    last: Option<Seen>,
    rounds: u32,
}

impl Crowd {
    /// Has it been seen a short time ago?
    pub fn is_seen(&self, now: Instant) -> bool {
        let then = self.last.as_ref().map(|seen| seen.at);
        then.is_some_and(|then| now.duration_since(then) < ROUND)
    }

    /// What is seen now. `Some`: it has been so for long.
    pub fn see(&mut self, now: Seen) -> Option<Why> {
        let before = self.last.replace(now)?;
        let now = self.last.as_ref()?;
        let mut spent = now.used.iter().filter_map(|(pid, used)| {
            let known = before.used.iter().find(|(p, _)| p == pid)?;
            Some(used.since(known.1))
        });
        let leader = spent.next().unwrap_or_default();
        let time = now.at.duration_since(before.at);
        let words = now.words.saturating_sub(before.words);
        let why = match spent.any(|follower| waits_in_vain(leader, follower, time)) {
            true => Some(Why::Waits),
            false => only_logs(leader, words, time).then_some(Why::Logs),
        };
        self.rounds = match why {
            Some(_) => self.rounds + 1,
            None => 0,
        };
        why.filter(|_| self.rounds >= ROUNDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(user_ms: u64, system_ms: u64) -> Used {
        Used {
            user: Duration::from_millis(user_ms),
            system: Duration::from_millis(system_ms),
        }
    }

    #[test]
    fn who_takes_pages_as_its_leader_does_waits_for_nobody() {
        const TIME: Duration = Duration::from_millis(500);
        assert!(waits_in_vain(used(100, 50), used(90, 400), TIME));
        assert!(!waits_in_vain(used(100, 350), used(90, 400), TIME), "pages");
        assert!(
            !waits_in_vain(used(400, 0), used(300, 400), TIME),
            "computes, too"
        );
        assert!(
            !waits_in_vain(used(0, 0), used(5, 60), TIME),
            "next to nothing"
        );
    }

    #[test]
    fn who_logs_for_each_step_does_nothing_else() {
        const TIME: Duration = Duration::from_millis(500);
        assert!(only_logs(used(900, 50), 12_000_000, TIME));
        assert!(!only_logs(used(900, 50), 6_000_000, TIME), "computes, too");
        assert!(!only_logs(used(20, 0), 1_000_000, TIME), "hardly ever");
    }

    #[test]
    fn passing_contention_is_let_pass() {
        let (mut crowd, start) = (Crowd::default(), Instant::now());
        let mut look = |n: u32, system_ms: u64| {
            let used = vec![(1, used(100 * u64::from(n), 0)), (2, used(0, system_ms))];
            crowd.see(Seen {
                at: start + ROUND * n,
                used,
                words: 0,
            })
        };
        assert_eq!([look(0, 0), look(1, 400), look(2, 800)], [None; 3]);
        assert_eq!(look(3, 800), None, "an end of that");
        assert_eq!([look(4, 1200), look(5, 1600)], [None; 2]);
        assert_eq!(look(6, 2000), Some(Why::Waits));
    }
}
