//! Sentries: code in the way of the thread that runs, which stops it where its registers are those of the
//! point (`geryon_patch::sentry`). Only where no other thread of its process runs the program's code.

use crate::block_field;
use crate::code::{SENTRY_BYTES, sentry_pages};
use crate::maps::AddressSpace;
use crate::meeting::{LOOK, Meeting, Part, Posted};
use crate::setup::map_area;
use crate::signals::is_trap;
use crate::state::Monitor;
use anyhow::{Result, bail};
use geryon_patch::{Expected, INSTRUCTION_MAX, sentry, sentry_flags, sentry_len, sentry_site};
use geryon_tracee::{Pid, Queue, Regs, Stop, Stopped, await_report, poll_for};
use std::time::{Duration, Instant};

/// The next instruction at which one can stand is not farther away.
const STEPS: u32 = 64;
/// From anywhere in a sentry a thread is out within so many instructions.
const STEPS_OUT: u32 = 128;
/// On a busy machine a step may have to wait for a core.
const STEP: Duration = Duration::from_secs(5);
/// So many words of memory are looked at besides the registers.
const WORDS: usize = 4;
const _: () = assert!(sentry_len(WORDS) as u64 <= SENTRY_BYTES);

impl Monitor {
    /// Put a sentry in the way of the thread that runs. False: none can stand there.
    pub(super) fn post(&mut self, m: &mut Meeting) -> Result<bool> {
        let point = m.point();
        if m.in_parallel {
            return Ok(false);
        }
        let regs = Stopped(point.tid).regs()?;
        let mut code = [0; INSTRUCTION_MAX];
        let Some(len) = self.site_len(point, regs.rip, &mut code)? else {
            return Ok(false);
        };
        let runs = m.runner();
        let there = |address| runs.layout.place(point.layout.name(address));
        let site = there(regs.rip);
        let Some(page) = self.sentry_page(m, site)? else {
            return Ok(false);
        };
        let words = m.own_words().iter().take(WORDS);
        let words: Vec<u64> = words.map(|name| point.layout.place(*name)).collect();
        let memory = self.memory(point.pid)?;
        let expected = Expected {
            registers: by_number(&regs).map(there),
            words: words
                .iter()
                .filter_map(|at| Some((there(*at), there(memory.word(*at).ok()?))))
                .collect(),
        };
        let scratch = block_field!(scratch) as u32;
        let old = code[..len].to_vec();
        let Ok(code) = sentry(site, &old, page, &expected, [scratch, scratch + 8]) else {
            return Ok(false);
        };
        Stopped(runs.tid).set_breakpoint(None)?;
        let memory = self.memory(runs.pid)?;
        memory.write(page, &code.code)?;
        memory.write(site, &code.jump)?;
        m.posted = Some(Posted {
            site,
            old,
            page,
            code,
        });
        m.has_sentry();
        Ok(true)
    }

    /// Let the point's thread go on to an instruction at which a sentry can stand, if there is one soon. False: it has
    /// come to something else.
    pub(super) fn move_to_site(&mut self, m: &mut Meeting) -> Result<bool> {
        if m.in_parallel || m.moved || !m.is_first() {
            return Ok(true);
        }
        m.moved = true;
        let point = m.point();
        let slot = self.slot_at(m)?;
        for _ in 0..STEPS {
            let at = Stopped(point.tid).regs()?.rip;
            let site = self.site_len(point, at, &mut [0; INSTRUCTION_MAX])?;
            if site.is_some() {
                break;
            }
            m.point_left = true;
            if !self.step(point.tid)? {
                return Ok(false);
            }
            m.point_left = false;
            if !self.is_computing(&point, slot)? {
                break;
            }
        }
        Ok(true)
    }

    /// Let a thread that stands where instructions of the program's run with others before them (one that only spins is
    /// there nearly always) go on until it is back in the program. False: something else came first.
    pub(super) fn leave_trampoline(&mut self, part: &Part) -> Result<bool> {
        let group = self.membership(part.pid).map(|(id, _)| id);
        for _ in 0..STEPS_OUT {
            let at = Stopped(part.tid).regs()?.rip;
            let group = group.and_then(|id| self.groups.get(&id));
            if !group.is_some_and(|g| g.areas.contain(at)) {
                break;
            }
            if !self.step(part.tid)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How long the instruction is, if a sentry can stand there.
    fn site_len(&mut self, part: Part, at: u64, code: &mut [u8]) -> Result<Option<usize>> {
        let memory = self.memory(part.pid)?;
        // The last instruction of a mapping may be shorter.
        let readable = (1..=code.len()).rev();
        let readable = readable
            .into_iter()
            .find(|n| memory.read(at, &mut code[..*n]).is_ok());
        Ok(readable.and_then(|n| sentry_site(&code[..n])))
    }

    /// One instruction. False: something else came first.
    fn step(&mut self, tid: Pid) -> Result<bool> {
        Stopped(tid).step(0)?;
        let start = Instant::now();
        loop {
            match poll_for(tid)? {
                Some(Stop::Signal(_, libc::SIGTRAP)) => return Ok(true),
                Some(other) => {
                    self.on_stop(other)?;
                    return Ok(false);
                }
                None if start.elapsed() > STEP => bail!("a step of thread {tid} does not end"),
                None => await_report(LOOK),
            }
        }
    }

    /// A page within reach of the thread that runs. All replicas have one at the same place.
    fn sentry_page(&mut self, m: &Meeting, site: u64) -> Result<Option<u64>> {
        let group = self.membership(m.point().pid).map(|(id, _)| id);
        let Some(g) = group.and_then(|id| self.groups.get(&id)) else {
            return Ok(None);
        };
        if let Some(page) = g.areas.sentry_near(site) {
            return Ok(Some(page));
        }
        let mut spaces = Vec::new();
        for part in &m.parts {
            spaces.push((part.layout, AddressSpace::open(part.pid)?));
        }
        let runner = m.runner().layout;
        let is_free = |at: &u64| {
            let name = runner.name(*at);
            let mut all = spaces.iter();
            all.all(|(layout, space)| space.is_free(layout.place(name), SENTRY_BYTES))
        };
        let Some(page) = sentry_pages(site).find(is_free) else {
            return Ok(None);
        };
        let places = m
            .parts
            .iter()
            .map(|p| (p.tid, p.layout.place(runner.name(page))));
        for (tid, at) in places.clone() {
            if !map_area(Stopped(tid), &self.image, at, SENTRY_BYTES)? {
                return Ok(None);
            }
        }
        if let Some(g) = group.and_then(|id| self.groups.get_mut(&id)) {
            for (_, at) in places {
                g.areas.add_sentry(at);
            }
        }
        Ok(Some(page))
    }

    /// The program's registers of the thread that runs, which stands.
    pub(super) fn regs_of_runner(&mut self, m: &Meeting) -> Result<Regs> {
        let part = m.runner();
        let mut regs = Stopped(part.tid).regs()?;
        if let Some(p) = m.posted.as_ref().filter(|p| p.stopped() == regs.rip) {
            let scratch = regs.gs_base + block_field!(scratch);
            let [rax, flags] = self.memory(part.pid)?.words(scratch)?;
            regs.rax = rax;
            regs.eflags = sentry_flags(flags, regs.eflags);
            regs.rip = p.site;
        }
        Ok(regs)
    }

    /// Take the sentry away; the thread that runs stands, and does so at an instruction of the program's
    /// afterwards.
    pub(super) fn relieve(&mut self, m: &mut Meeting) -> Result<()> {
        let part = m.runner();
        let thread = Stopped(part.tid);
        let Some(posted) = &m.posted else {
            return Ok(());
        };
        for _ in 0..STEPS_OUT {
            let at = thread.regs()?.rip;
            if at == posted.stopped() || !posted.contains(at) || !self.step(part.tid)? {
                break;
            }
        }
        let regs = self.regs_of_runner(m)?;
        // Halted before it could report that it has come to the sentry's end: it would do so from elsewhere.
        let queued = thread.queued(Queue::Thread).unwrap_or_default();
        if queued.iter().any(is_trap)
            && let Some(t) = self.threads.get_mut(&part.tid)
        {
            t.trap_left = true;
        }
        thread.set_regs(&regs)?;
        if let Some(posted) = m.posted.take() {
            self.memory(part.pid)?.write(posted.site, &posted.old)?;
        }
        Ok(())
    }

    /// The same for a thread that may run, or have come to a call.
    pub(super) fn relieve_anywhere(&mut self, m: &mut Meeting) -> Result<()> {
        let part = m.runner();
        if !m.is_standing() {
            // (The code has to go: it is not left behind for a busy machine.)
            let start = Instant::now();
            while !self.hold(part.tid)? {
                let is_gone = self.threads.get(&part.tid).is_none_or(|t| t.ends);
                if is_gone || self.outcome.is_some() || start.elapsed() > STEP {
                    return Ok(());
                }
            }
            self.note_halt(part.pid, &[part.tid]);
            m.has_stopped();
        }
        self.relieve(m)
    }
}

/// General registers as instructions number them.
fn by_number(r: &Regs) -> [u64; 16] {
    [
        r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15,
    ]
}
