//! Waits for a time at most that the kernel ends where the monitor stops their thread. They are made anew, and would begin
//! their time anew, too: a thread that is stopped often enough (somebody waits for the leader to be copied, say) would wait
//! for ever. So the time counts from the first stop on. (Before it, nobody has looked at a clock, which costs a call.)
//!
//! Others need no such care: the kernel makes them anew itself, for the rest of their time (poll, nanosleep, futex), or says
//! what is left where they were told their time (select, ppoll).

use crate::gate::guarded;
use crate::timer;
use geryon_abi::table::nr;

const NR_RT_SIGTIMEDWAIT: u16 = nr::rt_sigtimedwait as u16;
const NR_IO_GETEVENTS: u16 = nr::io_getevents as u16;
const NR_SEMTIMEDOP: u16 = nr::semtimedop as u16;
const NR_EPOLL_WAIT: u16 = nr::epoll_wait as u16;
const NR_EPOLL_PWAIT: u16 = nr::epoll_pwait as u16;
const NR_IO_PGETEVENTS: u16 = nr::io_pgetevents as u16;
const NR_EPOLL_PWAIT2: u16 = nr::epoll_pwait2 as u16;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// How an argument says for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In milliseconds; a negative number has no end.
    Milliseconds,
    /// It is the address of seconds and nanoseconds; 0 has no end.
    Timespec,
}

/// Which argument of this call says so, if the kernel ends it with EINTR.
fn argument(nr: u16) -> Option<(usize, Form)> {
    match nr {
        NR_EPOLL_WAIT | NR_EPOLL_PWAIT => Some((3, Form::Milliseconds)),
        NR_EPOLL_PWAIT2 | NR_SEMTIMEDOP => Some((3, Form::Timespec)),
        NR_RT_SIGTIMEDWAIT => Some((2, Form::Timespec)),
        NR_IO_GETEVENTS | NR_IO_PGETEVENTS => Some((4, Form::Timespec)),
        _ => None,
    }
}

/// The limit of a wait that was stopped.
pub struct Limit {
    /// On the clock that nobody sets, in nanoseconds; 0: it was not stopped yet.
    until: u64,
    /// What is left, where the call finds it.
    rest: [u64; 2],
}

impl Limit {
    /// Of a wait that begins.
    pub const fn new() -> Limit {
        Limit {
            until: 0,
            rest: [0; 2],
        }
    }

    /// The wait was stopped.
    #[cold]
    pub fn stopped(&mut self, nr: u16, args: &[u64; 6]) {
        let Some((which, form)) = argument(nr) else {
            return;
        };
        let now = timer::now(timer::MONOTONIC);
        if self.until == 0 {
            let Some(ns) = limit(args[which], form) else {
                return;
            };
            self.until = now.saturating_add(ns);
        }
        let left = self.until.saturating_sub(now);
        self.rest = [left / SECOND, left % SECOND];
    }

    /// What the kernel is to be asked, instead of `args`.
    #[inline(always)]
    pub fn applied(&self, nr: u16, args: [u64; 6]) -> [u64; 6] {
        match self.until {
            0 => args,
            _ => self.shortened(nr, args),
        }
    }

    #[cold]
    fn shortened(&self, nr: u16, mut args: [u64; 6]) -> [u64; 6] {
        if let Some((which, form)) = argument(nr) {
            args[which] = match form {
                Form::Milliseconds => {
                    let ns = self.rest[0] * SECOND + self.rest[1];
                    ns.div_ceil(MILLISECOND)
                }
                Form::Timespec => &raw const self.rest as u64,
            };
        }
        args
    }
}

/// So many nanoseconds; None: for as long as it takes, or nobody knows.
fn limit(argument: u64, form: Form) -> Option<u64> {
    match form {
        Form::Milliseconds => {
            let ms = u64::try_from(argument as i32).ok()?;
            Some(ms * MILLISECOND)
        }
        Form::Timespec => {
            let mut time = [0u64; 2];
            // SAFETY: inside `guarded`.
            let read = || time = unsafe { (argument as *const [u64; 2]).read_unaligned() };
            let is_told = argument != 0 && guarded(read);
            is_told.then(|| time[0].saturating_mul(SECOND).saturating_add(time[1]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped_until(until: u64, rest: [u64; 2]) -> Limit {
        Limit { until, rest }
    }

    #[test]
    fn who_was_not_stopped_waits_for_what_it_says() {
        let args = [5, 6, 7, 100, 0, 0];
        assert_eq!(Limit::new().applied(NR_EPOLL_WAIT, args), args);
    }

    #[test]
    fn who_was_stopped_waits_for_the_rest() {
        let limit = stopped_until(1, [1, 2 * MILLISECOND - 1]);
        assert_eq!(limit.applied(NR_EPOLL_WAIT, [0; 6])[3], 1002);
        let at = limit.applied(NR_EPOLL_PWAIT2, [0; 6])[3];
        assert_eq!(at, &raw const limit.rest as u64);
        assert_eq!(limit.applied(0, [9; 6]), [9; 6]);
    }

    #[test]
    fn without_a_limit_there_is_no_rest() {
        assert_eq!(limit(-1i64 as u64, Form::Milliseconds), None);
        assert_eq!(limit(u32::MAX.into(), Form::Milliseconds), None);
        assert_eq!(limit(0, Form::Timespec), None);
        assert_eq!(limit(0, Form::Milliseconds), Some(0));
        assert_eq!(limit(30, Form::Milliseconds), Some(30 * MILLISECOND));
    }
}
