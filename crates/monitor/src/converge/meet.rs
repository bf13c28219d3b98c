//! The threads of one thread group, held until their states are equal.

use crate::meeting::{
    Act, Course, LOOK, Meeting, Part, Phase, Sample, Side, Span, Word, differing, general, outputs,
    vectors,
};
use crate::state::Monitor;
use anyhow::{Context, Result};
use geryon_abi::layout::{BLOCK_BYTES, BLOCKS_BASE};
use geryon_tracee::{Pid, Regs, Stop, Stopped, await_report, poll_for, processor_time};
use std::time::{Duration, Instant};

/// The loop serves others again after so long.
const SLICE: Duration = Duration::from_millis(4);

/// What came of going on.
pub enum Step {
    /// There is something to wait for.
    Waits,
    /// All states are equal.
    Met,
    /// A thread has come to a call, or is gone.
    Disturbed,
    /// It comes to nothing.
    Failed,
}

impl Monitor {
    /// Go on.
    pub(super) fn meet(&mut self, m: &mut Meeting) -> Result<Step> {
        if m.runs == m.point && !m.choose() {
            return Ok(Step::Met);
        }
        if m.is_over() {
            return Ok(Step::Failed);
        }
        let slice = Instant::now() + SLICE;
        loop {
            match m.phase {
                Phase::Next(act) => {
                    let step = self.act(m, act)?;
                    if !matches!(step, Step::Waits) {
                        return Ok(step);
                    }
                }
                Phase::Runs(span) if !span.rest(Instant::now()).is_zero() => {
                    return Ok(Step::Waits);
                }
                Phase::Runs(mut span) => {
                    if !self.hold(m.runner().tid)? {
                        return Ok(Step::Waits);
                    }
                    m.stands = true;
                    if !self.still_computes(m)? {
                        return Ok(Step::Disturbed);
                    }
                    if !span.is_over(processor_time(m.runner().tid)) {
                        // It had to wait for a core.
                        Stopped(m.runner().tid).resume(0)?;
                        m.stands = false;
                        m.phase = Phase::Runs(span);
                        return Ok(Step::Waits);
                    }
                    let now = self.sample(m)?;
                    m.phase = Phase::Next(m.course.sampled(now));
                }
                Phase::Approaches(left, span) => {
                    let step = self.approach(m, left, span, slice)?;
                    if !matches!(step, Step::Waits) {
                        return Ok(step);
                    }
                    if matches!(m.phase, Phase::Approaches(..)) {
                        return Ok(Step::Waits);
                    }
                }
            }
            if Instant::now() > slice {
                return Ok(Step::Waits);
            }
        }
    }

    /// The thread that runs stands: do what is next.
    fn act(&mut self, m: &mut Meeting, act: Act) -> Result<Step> {
        match act {
            Act::Compare => {
                let goal = self.state_of(m.parts[m.point])?;
                let (equal, words) = self.compare(m, &goal)?;
                if equal {
                    return Ok(self.has_met(m));
                }
                m.words = words.iter().map(|w| w.0).collect();
                let mut values = general(&goal, m.point().writing).to_vec();
                values.extend(words.iter().map(|w| w.1[0]));
                let now = self.sample(m)?;
                m.phase = Phase::Next(m.course.compared(values, now));
            }
            Act::Run(time) => {
                Stopped(m.runner().tid).set_breakpoint(None)?;
                Stopped(m.runner().tid).resume(0)?;
                m.stands = false;
                let used = processor_time(m.runner().tid);
                m.phase = Phase::Runs(Span::new(time, used));
            }
            Act::Approach(most, time) => {
                if !self.move_to_site(m)? || (!self.post(m)? && !self.watch_for_point(m)?) {
                    return Ok(Step::Disturbed);
                }
                if matches!(m.phase, Phase::Next(Act::Compare)) {
                    return Ok(Step::Waits);
                }
                Stopped(m.runner().tid).resume(0)?;
                m.stands = false;
                let used = processor_time(m.runner().tid);
                m.approaches(used);
                m.phase = Phase::Approaches(most, Span::new(time, used));
            }
            Act::Swap => {
                Stopped(m.runner().tid).set_breakpoint(None)?;
                std::mem::swap(&mut m.point, &mut m.runs);
                m.met.fill(false);
                m.met[m.point] = true;
                m.sentry.moved = false;
                m.phase = Phase::Next(m.course.swapped());
            }
            Act::GiveUp => return Ok(Step::Failed),
        }
        Ok(Step::Waits)
    }

    /// Have the processor stop the thread that runs at the point's instruction. False: somebody has come to a
    /// call, or to something else.
    fn watch_for_point(&mut self, m: &mut Meeting) -> Result<bool> {
        let point = m.point();
        let at = Stopped(point.tid).regs()?.rip;
        if self.repeats(point, at) {
            // In the midst of an instruction that repeats itself: nobody else stops there.
            m.point_left = true;
            Stopped(point.tid).resume(0)?;
            if !self.hold(point.tid)? {
                return Ok(false);
            }
            m.point_left = false;
            let slot = self.slot_at(m)?;
            m.met.fill(false);
            m.met[m.point] = true;
            m.phase = Phase::Next(Act::Compare);
            return self.is_computing(&point, slot);
        }
        let runner = m.runner();
        let at = runner.layout().place(point.layout().name(at));
        Stopped(runner.tid).set_breakpoint(Some(at))?;
        self.post_out_of_line(m)?;
        Ok(true)
    }

    /// Follow the thread to the breakpoint, again and again.
    fn approach(
        &mut self,
        m: &mut Meeting,
        mut left: u32,
        mut span: Span,
        slice: Instant,
    ) -> Result<Step> {
        let goal = self.state_of(m.parts[m.point])?;
        let thread = Stopped(m.runner().tid);
        loop {
            if m.stands {
                let regs = self.regs_of_runner(m)?;
                let named = general(&goal, m.point().writing);
                if general(&regs, m.runner().writing) == named && self.compare(m, &goal)?.0 {
                    self.relieve(m)?;
                    return Ok(self.has_met(m));
                }
                m.approach.misses += 1;
                left = left.saturating_sub(1);
                if left == 0 || span.is_over(processor_time(thread.0)) {
                    return self.has_missed(m);
                }
                self.send_out_of_line(m)?;
                thread.resume(0)?;
                m.stands = false;
                m.phase = Phase::Approaches(left, span);
            }
            match poll_for(m.runner().tid)? {
                Some(Stop::Signal(tid, libc::SIGTRAP)) if self.is_at_breakpoint(m, tid)? => {}
                Some(other) => {
                    self.is_seen_in_the_program(m, other)?;
                    self.on_stop(other)?;
                    return Ok(Step::Disturbed);
                }
                None if span.is_over(processor_time(thread.0)) => {
                    if !self.hold(m.runner().tid)? {
                        return Ok(Step::Disturbed);
                    }
                    m.stands = true;
                    return self.has_missed(m);
                }
                None if Instant::now() > slice => {
                    m.phase = Phase::Approaches(left, span);
                    let part = m.runner();
                    let slot = self.slot_at(m)?;
                    // It may have come to a call, and wait there.
                    let moved = self.looked_at(part.pid, slot)
                        != Some((part.tid, part.pos, super::Doing::Computes));
                    return Ok(match moved {
                        true => Step::Disturbed,
                        false => Step::Waits,
                    });
                }
                None => await_report(LOOK),
            }
        }
    }

    /// Does the thread stand where it was to be stopped?
    fn is_at_breakpoint(&self, m: &mut Meeting, tid: Pid) -> Result<bool> {
        let thread = Stopped(tid);
        let at_sentry = match thread.is_breakpoint(&thread.siginfo()?) {
            true => None,
            false => Some(thread.regs()?.rip),
        };
        Ok(m.stands_at_breakpoint(tid, at_sentry))
    }

    /// The approach is over, and the thread stands.
    fn has_missed(&mut self, m: &mut Meeting) -> Result<Step> {
        m.has_approached(processor_time(m.runner().tid));
        self.relieve(m)?;
        if !self.still_computes(m)? {
            return Ok(Step::Disturbed);
        }
        m.phase = Phase::Next(m.course.missed());
        Ok(Step::Waits)
    }

    /// The thread that runs is where the point is.
    fn has_met(&mut self, m: &mut Meeting) -> Step {
        m.met[m.runs] = true;
        m.course = Course::new(m.purpose.aim.is_only_spinning());
        m.phase = Phase::Next(Act::Compare);
        m.stands = true;
        match m.choose() {
            true => Step::Waits,
            false => Step::Met,
        }
    }

    /// Are the two states equal? And the words in which they differ, the point's first.
    fn compare(&mut self, m: &mut Meeting, goal: &Regs) -> Result<(bool, Vec<Word>)> {
        let (point, runner) = (m.point(), m.runner());
        self.memory(point.pid)?;
        self.memory(runner.pid)?;
        let side = |part: Part| {
            let process = self.processes.get(&part.pid).context("a process is gone")?;
            let memory = process.memory.as_ref().context("just opened")?;
            Ok::<Side, anyhow::Error>(Side {
                pid: part.pid,
                memory,
                writing: part.writing,
            })
        };
        let sides = [side(point)?, side(runner)?];
        let others = match m.alone || m.in_parallel {
            true => Vec::new(),
            false => outputs(sides),
        };
        let words = differing(sides, goal, m.in_parallel, &others)?;
        let regs = self.regs_of_runner(m)?;
        let vector = |part: Part| {
            let area = Stopped(part.tid).xstate();
            area.map(|area| vectors(area, part.writing))
        };
        let equal = general(&regs, runner.writing) == general(goal, point.writing)
            && words.is_empty()
            && vector(point)? == vector(runner)?;
        Ok((equal, words))
    }

    /// What the thread that runs holds in the words of the course.
    fn sample(&mut self, m: &Meeting) -> Result<Sample> {
        let part = m.runner();
        let mut words = general(&Stopped(part.tid).regs()?, part.writing).to_vec();
        let memory = self.memory(part.pid)?;
        let word = |name: &u64| memory.word(part.layout().place(*name)).unwrap_or(0);
        words.extend(m.words.iter().map(|name| part.writing.name(word(name))));
        let at = processor_time(part.tid).unwrap_or_else(|| m.purpose.began.elapsed());
        Ok(Sample { at, words })
    }

    fn state_of(&self, part: Part) -> Result<Regs> {
        Ok(Stopped(part.tid).regs()?)
    }

    pub(super) fn slot_at(&self, m: &Meeting) -> Result<u32> {
        let regs = Stopped(m.parts[m.point].tid).regs()?;
        let block = self
            .kit
            .image
            .block_of(&regs)
            .context("a thread without a block")?;
        Ok(((block - BLOCKS_BASE) / BLOCK_BYTES) as u32)
    }

    /// Has the thread that ran come to no call?
    fn still_computes(&mut self, m: &Meeting) -> Result<bool> {
        let slot = self.slot_at(m)?;
        Ok(self.leave_trampoline(&m.runner())? && self.is_computing(&m.runner(), slot)?)
    }

    /// Is the instruction at this address a string instruction that repeats itself?
    fn repeats(&mut self, part: Part, at: u64) -> bool {
        let mut code = [0u8; 3];
        let read = self.memory(part.pid).map(|m| m.read(at, &mut code));
        let is_string = |c: u8| matches!(c, 0xa4..=0xa7 | 0xaa..=0xaf);
        let has_rex = code[1] & 0xf0 == 0x40;
        matches!(read, Ok(Ok(())))
            && matches!(code[0], 0xf2 | 0xf3)
            && (is_string(code[1]) || (has_rex && is_string(code[2])))
    }

    /// All go on as if nothing had been.
    pub(super) fn part(&mut self, m: &mut Meeting) {
        if m.sentry.posted.is_some() {
            // What cannot be taken away stops nobody, see `on_converging_breakpoint`.
            let _ = self.relieve_anywhere(m);
        }
        for part in m.standing() {
            // One that is gone needs it no more. (Who runs to a breakpoint loses it there.)
            let _ = Stopped(part.tid).set_breakpoint(None);
            let _ = Stopped(part.tid).resume(0);
        }
    }
}
