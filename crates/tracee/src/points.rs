//! Which of the places where something can go wrong a test has chosen, and how often they were passed
//! (`geryon run --fail-at`).

use geryon_abi::point::{Deed, FaultPoint};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::str::FromStr;

/// A place, and which of its passings fails: `POINT[:N[:REPLICA]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailAt {
    /// Where.
    pub point: FaultPoint,
    /// At the n-th passing, counted from 1; at one of n on average, where it [delays](Deed::Delays).
    pub nth: u64,
    /// By this replica only, counted from 0 (of places in the agent).
    pub replica: Option<usize>,
}

impl FromStr for FailAt {
    type Err = String;

    fn from_str(text: &str) -> Result<FailAt, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let point = FaultPoint::named(name).ok_or_else(|| {
            let names: Vec<&str> = FaultPoint::ALL.iter().map(|p| p.name()).collect();
            format!("POINT is one of {}", names.join(", "))
        })?;
        let number = |n: Option<&str>| n.map(str::parse::<usize>).transpose();
        let wrong = |_| "expected POINT[:N[:REPLICA]]".to_owned();
        let nth = number(parts.next()).map_err(wrong)?.unwrap_or(1) as u64;
        let replica = number(parts.next()).map_err(wrong)?;
        if parts.next().is_some() || nth == 0 {
            return Err("expected POINT[:N[:REPLICA]], with N of at least 1".into());
        }
        Ok(FailAt {
            point,
            nth,
            replica,
        })
    }
}

impl fmt::Display for FailAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.point.name(), self.nth)?;
        self.replica.map_or(Ok(()), |r| write!(f, ":{r}"))
    }
}

/// One that is armed.
#[derive(Clone, Copy, Debug)]
struct Armed {
    at: FailAt,
    passed: u64,
}

impl Armed {
    /// Is its time still to come?
    fn is_due_again(&self) -> bool {
        self.passed < self.at.nth || self.at.point.deed() == Deed::Delays
    }

    /// Does this passing, the last one counted, fail?
    fn is_due(&self) -> bool {
        match self.at.point.deed() {
            Deed::Delays => by_chance(self.passed).is_multiple_of(self.at.nth),
            _ => self.passed == self.at.nth,
        }
    }
}

/// The same for the same number, and without a pattern otherwise (the finalizer of splitmix64).
fn by_chance(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// For how many nanoseconds a thread that is delayed sleeps.
pub fn delay_ns() -> u64 {
    const MOST: u64 = 1_000_000;
    let passed: u64 = ARMED.with_borrow(|all| all.iter().map(|a| a.passed).sum());
    1 + by_chance(u64::MAX - passed) % MOST
}

/// A passing that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Where.
    pub point: FaultPoint,
    /// Whose, if it was in an agent.
    pub replica: Option<usize>,
}

thread_local! {
    /// Is anything armed? (Looked at first: it is asked before each access to a replica's memory.)
    static ANY: Cell<bool> = const { Cell::new(false) };
    static STARTED: Cell<bool> = const { Cell::new(false) };
    /// Was any thread delayed?
    static DELAYED: Cell<bool> = const { Cell::new(false) };
    static ARMED: RefCell<Vec<Armed>> = const { RefCell::new(Vec::new()) };
    static FAILED: RefCell<Vec<Failed>> = const { RefCell::new(Vec::new()) };
}

/// Choose the places.
pub fn arm(places: &[FailAt]) {
    let armed = |at: &FailAt| Armed { at: *at, passed: 0 };
    ARMED.set(places.iter().map(armed).collect());
    ANY.set(!places.is_empty());
}

/// The program starts.
pub fn start() {
    STARTED.set(true);
}

/// Is a place chosen whose time has not come yet?
#[inline]
pub fn any() -> bool {
    ANY.get()
}

/// Is this one chosen, for this replica, and has its time not come yet?
pub fn is_armed(point: FaultPoint, replica: usize) -> bool {
    let waits = |a: &Armed| a.at.point == point && a.at.replica.is_none_or(|r| r == replica);
    ANY.get() && ARMED.with_borrow(|all| all.iter().any(|a| waits(a) && a.is_due_again()))
}

/// The monitor passes the place. True: this is the time at which it fails.
#[inline]
pub fn fails(point: FaultPoint) -> bool {
    ANY.get() && passed(point, None)
}

/// A replica passes the place.
pub fn fails_in(point: FaultPoint, replica: usize) -> bool {
    ANY.get() && passed(point, Some(replica))
}

#[cold]
fn passed(point: FaultPoint, replica: Option<usize>) -> bool {
    if point.waits_for_start() && !STARTED.get() {
        return false;
    }
    let due = ARMED.with_borrow_mut(|all| {
        let mut due = false;
        for a in all.iter_mut().filter(|a| a.at.point == point) {
            if a.at.replica.is_none() || replica.is_none() || a.at.replica == replica {
                a.passed += 1;
                due |= a.is_due();
            }
        }
        ANY.set(all.iter().any(Armed::is_due_again));
        due
    });
    // (Delays are said once.)
    let again = due && point.deed() == Deed::Delays && DELAYED.replace(true);
    if due && !again {
        FAILED.with_borrow_mut(|f| f.push(Failed { point, replica }));
        let of = replica.map_or_else(String::new, |r| format!(", in replica {}", r + 1));
        eprintln!("geryon: fault point {}{of}", point.name());
    }
    due
}

/// The oldest passing that failed and was not asked for yet.
pub fn take_failed() -> Option<Failed> {
    FAILED.with_borrow_mut(|f| (!f.is_empty()).then(|| f.remove(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for p in FaultPoint::ALL {
            let at: FailAt = format!("{}:3:1", p.name()).parse().expect("a place");
            assert_eq!((at.point, at.nth, at.replica), (*p, 3, Some(1)));
            assert_eq!(at.to_string().parse(), Ok(at));
        }
        assert!("memory-short:0".parse::<FailAt>().is_err());
        assert!("nowhere".parse::<FailAt>().is_err());
        assert!("memory-short:1:2:3".parse::<FailAt>().is_err());
    }

    #[test]
    fn delays_come_again_and_again() {
        let point = FaultPoint::RecordDelayed;
        arm(&[FailAt {
            point,
            nth: 4,
            replica: None,
        }]);
        let delayed = (0..1000).filter(|_| fails_in(point, 1)).count();
        assert!((150..350).contains(&delayed), "{delayed} of 1000");
        assert!(is_armed(point, 1) && (1..=1_000_000).contains(&delay_ns()));
        assert!(take_failed().is_some() && take_failed().is_none());
    }

    #[test]
    fn the_nth_passing_fails_once() {
        let point = FaultPoint::MemoryShort;
        arm(&[FailAt {
            point,
            nth: 2,
            replica: None,
        }]);
        assert_eq!([(); 4].map(|()| fails(point)), [false; 4]);
        start();
        assert!(is_armed(point, 0));
        assert_eq!([(); 4].map(|()| fails(point)), [false, true, false, false]);
        assert!(!any() && !is_armed(point, 0));
        assert_eq!(
            take_failed(),
            Some(Failed {
                point,
                replica: None
            })
        );
        assert_eq!(take_failed(), None);
    }
}
