//! A thread group whose replicas are brought to the same state in the midst of computation: who takes part,
//! and how far it is. What is done with them, see `converge.rs`.

mod alike;
mod compare;
mod course;
mod outputs;
mod patience;
mod writing;

pub use compare::{Side, Word, differing, general, vectors};
pub use course::{Act, Course, Sample};
pub use outputs::outputs;
pub use patience::{Aim, CALLS_SOON};
pub use writing::Writing;

use crate::code::SENTRY_BYTES;
use geryon_abi::layout::Layout;
use geryon_tracee::Pid;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often it is looked whether a thread that runs to a breakpoint has come to a call instead.
pub const LOOK: Duration = Duration::from_millis(1);

/// A thread group: its process group, and its slot.
pub type Key = (u32, u32);

/// The thread groups that are to be interrupted.
#[derive(Debug, Default)]
pub struct Convergences(pub HashMap<Key, Convergence>);

impl Convergences {
    /// How long there is nothing to do here.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let now = Instant::now();
        let due = |c: &Convergence| match &c.meeting {
            Some(m) => m.patience(now),
            None => c.due.saturating_duration_since(now),
        };
        self.0.values().map(due).min()
    }

    /// Are threads of the group held? (Then they stand still for a reason.)
    pub(crate) fn holds(&self, id: u32) -> bool {
        let all = &self.0;
        all.iter()
            .any(|(key, c)| key.0 == id && c.meeting.is_some())
    }
}

/// One of them.
#[derive(Debug)]
pub struct Convergence {
    /// Since when there is something to do that waits for it.
    pub since: Instant,
    /// Where the leader's thread was in the log when it was first found computing since then.
    pub pos: Option<u64>,
    /// When it is looked at next.
    pub due: Instant,
    /// Until then it is left alone for the time that it was held. (A signal does not wait for that.)
    pub rests: bool,
    /// How often it was tried in vain.
    pub failed: u32,
    /// Its threads, while they are held.
    pub meeting: Option<Meeting>,
}

impl Convergence {
    /// The leader's thread computes, at this place in the log. If it has come there since it was last found, it has not
    /// been waited for as long as that.
    pub fn is_found_at(&mut self, pos: u64) {
        if self.pos.replace(pos).is_some_and(|before| before != pos) {
            self.since = Instant::now();
        }
    }

    /// There is a signal to take.
    pub fn hurry(&mut self) {
        if std::mem::take(&mut self.rests) {
            self.due = self.due.min(Instant::now() + CALLS_SOON);
        }
    }
}

/// A replica's thread.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its replica.
    pub replica: usize,
    /// Its process.
    pub pid: Pid,
    /// Its id.
    pub tid: Pid,
    /// Where it is in the log.
    pub pos: u64,
    /// How it writes what all mean. What is compared are names.
    pub writing: Writing,
}

impl Part {
    /// Where its memory lies.
    pub fn layout(&self) -> Layout {
        self.writing.layout
    }
}

/// What the thread that runs does.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// It stands, and this is next.
    Next(Act),
    /// It computes for so long.
    Runs(Span),
    /// It comes to the point's instruction so many times more, for so long at most.
    Approaches(u32, Span),
}

/// A span of a thread's processor time: on a busy machine it may wait for a core for far longer.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    time: Duration,
    /// What the thread had used before; None where the kernel does not count it.
    from: Option<Duration>,
    /// It cannot be over before.
    until: Instant,
}

impl Span {
    /// From now on.
    pub fn new(time: Duration, used: Option<Duration>) -> Span {
        Span {
            time,
            from: used,
            until: Instant::now() + time,
        }
    }

    /// How long it takes at least.
    pub fn rest(&self, now: Instant) -> Duration {
        self.until.saturating_duration_since(now)
    }

    /// Is most of it over, when the thread has used so much by now? If not, it takes a while longer.
    pub fn is_over(&mut self, used: Option<Duration>) -> bool {
        let now = Instant::now();
        if now < self.until {
            return false;
        }
        let (Some(from), Some(used)) = (self.from, used) else {
            return true;
        };
        let left = self.time.saturating_sub(used.saturating_sub(from));
        let is_over = left < self.time / 2;
        if !is_over {
            self.until = now + left;
        }
        is_over
    }
}

/// The threads.
#[derive(Debug)]
pub struct Meeting {
    /// The leader's first.
    pub parts: Vec<Part>,
    /// Whose state is the point, by index.
    pub point: usize,
    /// Whose are equal to it.
    pub met: Vec<bool>,
    /// Who runs, by index.
    pub runs: usize,
    /// What that one does.
    pub phase: Phase,
    /// It does not run at the moment.
    pub stands: bool,
    /// The point's thread was let go for a moment, and has not come back: what it has come to is somebody else's.
    pub point_left: bool,
    /// Its way to the point.
    pub course: Course,
    /// Names of the words by which the course is told, behind the registers.
    pub words: Vec<u64>,
    /// The process has this thread only.
    pub alone: bool,
    /// Other threads run beside it: its stack and its registers are compared.
    pub in_parallel: bool,
    /// Why they are held.
    pub purpose: Purpose,
    /// What stops the thread that runs, if it is code.
    pub sentry: Sentry,
    /// How the thread that runs comes to the point.
    pub approach: Approach,
}

/// Why threads are held, and for how long they may be.
#[derive(Debug)]
pub struct Purpose {
    /// What for.
    pub aim: Aim,
    /// For how long that had been waited for before.
    pub waited: Duration,
    /// Since when they are held.
    pub began: Instant,
}

impl Purpose {
    /// Have they been held for long enough, where the one that runs is stopped each time, or is not?
    fn is_over(&self, stops_each_time: bool) -> bool {
        self.began.elapsed() > self.aim.longest(stops_each_time, self.waited)
    }
}

/// Code that stops the thread that runs.
#[derive(Debug, Default)]
pub struct Sentry {
    /// It, where it is in the thread's way.
    pub posted: Option<Posted>,
    /// The point has been moved to where such code can stand, or cannot be.
    pub moved: bool,
}

/// The thread that runs comes to the point's instruction again and again.
#[derive(Debug, Default)]
pub struct Approach {
    /// How often it was stopped, and had not met the point.
    pub misses: u32,
    /// What it had used when its last approach began, and how often it had been stopped before.
    last: (Option<Duration>, u32),
}

impl Approach {
    /// The next one begins, when the thread has used so much.
    fn begins(&mut self, used: Option<Duration>) {
        self.last = (used, self.misses);
    }

    /// It ends. Was the thread stopped seldom on its way?
    fn was_smooth(&self, used: Option<Duration>) -> bool {
        /// A stop takes it some ten microseconds, and everybody else some more.
        const SELDOM: Duration = Duration::from_micros(200);
        let (Some(from), Some(used)) = (self.last.0, used) else {
            return false;
        };
        SELDOM * (self.misses - self.last.1) < used.saturating_sub(from)
    }
}

impl Meeting {
    /// Of threads that stand, for what has been waited for so long.
    pub fn new(
        parts: Vec<Part>,
        alone: bool,
        in_parallel: bool,
        aim: Aim,
        waited: Duration,
    ) -> Meeting {
        let mut met = vec![false; parts.len()];
        met[0] = true;
        Meeting {
            met,
            parts,
            point: 0,
            runs: 0,
            phase: Phase::Next(Act::Compare),
            stands: true,
            point_left: false,
            course: Course::new(aim.is_only_spinning()),
            words: Vec::new(),
            alone,
            in_parallel,
            purpose: Purpose {
                aim,
                waited,
                began: Instant::now(),
            },
            sentry: Sentry::default(),
            approach: Approach::default(),
        }
    }

    /// Have they been held for long enough? (A sentry compares registers and a few words: where these are the same in each round, and
    /// other memory is not, it stops the thread as often as a breakpoint does.)
    pub fn is_over(&self) -> bool {
        const OFTEN: u32 = 200;
        let approaches = matches!(self.phase, Phase::Approaches(..));
        let stops_each_time =
            approaches && (self.sentry.posted.is_none() || self.approach.misses > OFTEN);
        self.purpose.is_over(stops_each_time)
    }

    /// How long there is nothing to do.
    pub fn patience(&self, now: Instant) -> Duration {
        match self.phase {
            Phase::Next(_) => Duration::ZERO,
            Phase::Runs(span) => span.rest(now),
            Phase::Approaches(..) if self.stands => Duration::ZERO,
            Phase::Approaches(..) => LOOK,
        }
    }

    /// Note that this thread has come to a breakpoint; to a sentry, if it stands there. True: it is the one
    /// that was to.
    pub fn stands_at_breakpoint(&mut self, tid: Pid, at_sentry: Option<u64>) -> bool {
        let approaches = matches!(self.phase, Phase::Approaches(..));
        let is_there = match (&self.sentry.posted, at_sentry) {
            (Some(posted), Some(at)) => posted.stopped == at,
            (Some(posted), None) => matches!(posted.way, Way::Sent(_)),
            (None, at) => at.is_none(),
        };
        let is_it = approaches && self.parts[self.runs].tid == tid && is_there;
        self.stands |= is_it;
        is_it
    }

    /// Those that stand still.
    pub fn standing(&self) -> impl Iterator<Item = &Part> {
        let is_there = |i: usize| match i {
            _ if i == self.runs => self.stands,
            _ => i != self.point || !self.point_left,
        };
        let parts = self.parts.iter().enumerate();
        parts.filter(move |(i, _)| is_there(*i)).map(|(_, p)| p)
    }

    /// The thread that runs.
    pub fn runner(&self) -> Part {
        self.parts[self.runs]
    }

    /// The thread whose state is the point.
    pub fn point(&self) -> Part {
        self.parts[self.point]
    }

    /// Does the thread that runs stand at the moment?
    pub fn is_standing(&self) -> bool {
        self.stands
    }

    /// It was stopped.
    pub fn has_stopped(&mut self) {
        self.stands = true;
    }

    /// Has nobody met the point yet?
    pub fn is_first(&self) -> bool {
        self.met.iter().filter(|m| **m).count() == 1
    }

    /// The approach begins, when the thread that runs has used so much.
    pub fn approaches(&mut self, used: Option<Duration>) {
        self.approach.begins(used);
    }

    /// It ends. Where the thread was stopped seldom on its way it may come from far next time.
    pub fn has_approached(&mut self, used: Option<Duration>) {
        if self.sentry.posted.is_some() && self.approach.was_smooth(used) {
            self.course.may_come_from_far();
        }
    }

    /// The next one that has not met the point. False: all have.
    pub fn choose(&mut self) -> bool {
        let next = self.met.iter().position(|met| !met);
        self.runs = next.unwrap_or(self.point);
        next.is_some()
    }
}

/// Code that stops the thread that runs where it may have met the point.
#[derive(Debug)]
pub struct Posted {
    /// The program's instruction at which the point is.
    pub site: u64,
    /// Where the code lies.
    pub page: u64,
    /// Where a thread stands that it has stopped.
    pub stopped: u64,
    /// Addresses in it and in the program that mean the same, sorted.
    pub pcs: Vec<(u64, u64)>,
    /// How a thread comes to it.
    pub way: Way,
}

/// How a thread comes to code that may stop it.
#[derive(Debug)]
pub enum Way {
    /// By a jump in the program's code, over these bytes.
    Jump(Vec<u8>),
    /// It is sent here, whenever a breakpoint of the processor's has stopped it at the point's instruction.
    Sent(u64),
}

impl Posted {
    /// The program's address for one where it makes the program's instructions. None: it is in the midst of others.
    pub fn original(&self, pc: u64) -> Option<u64> {
        let at = self.pcs.binary_search_by_key(&pc, |e| e.0).ok()?;
        Some(self.pcs[at].1)
    }

    pub fn contains(&self, pc: u64) -> bool {
        (self.page..self.page + SENTRY_BYTES).contains(&pc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting() -> Meeting {
        let part = |replica: usize| Part {
            replica,
            pid: 10 * replica as Pid,
            tid: 10 * replica as Pid,
            pos: 0,
            writing: Writing::default(),
        };
        let mut m = Meeting::new(
            (0..3).map(part).collect(),
            false,
            false,
            Aim::Signal,
            Duration::ZERO,
        );
        m.choose();
        m
    }

    fn standing(m: &Meeting) -> Vec<usize> {
        m.standing().map(|p| p.replica).collect()
    }

    #[test]
    fn who_is_stopped_by_a_sentry_in_each_round_is_not_held_for_long() {
        let mut m = meeting();
        m.purpose.aim = Aim::TurnOfSpinning;
        m.phase = Phase::Approaches(100_000, Span::new(Duration::from_secs(2), None));
        m.sentry.posted = Some(Posted {
            site: 0,
            page: 0,
            stopped: 0,
            pcs: Vec::new(),
            way: Way::Jump(Vec::new()),
        });
        m.purpose.began = Instant::now() - Duration::from_secs(1);
        assert!(!m.is_over(), "who spins is met within this time");
        m.approach.misses = 1_000;
        assert!(m.is_over());
        m.purpose.aim = Aim::Signal;
        assert!(!m.is_over(), "a signal has to come");
    }

    #[test]
    fn who_has_come_to_a_call_is_waited_for_anew() {
        let mut c = Convergence {
            since: Instant::now() - LOOK,
            pos: None,
            due: Instant::now(),
            rests: false,
            failed: 0,
            meeting: None,
        };
        let long = c.since;
        c.is_found_at(7);
        c.is_found_at(7);
        assert_eq!(c.since, long);
        c.is_found_at(8);
        assert!(c.since > long);
    }

    /// One of them may have crashed in a step, and would crash again.
    #[test]
    fn who_was_let_go_and_has_not_come_back_does_not_stand() {
        let mut m = meeting();
        assert_eq!((m.point, m.runs), (0, 1));
        assert_eq!(standing(&m), [0, 1, 2]);
        m.stands = false;
        assert_eq!(standing(&m), [0, 2]);
        m.point_left = true;
        assert_eq!(standing(&m), [2]);
        m.stands = true;
        assert_eq!(standing(&m), [1, 2]);
    }
}
