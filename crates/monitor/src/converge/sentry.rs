//! Sentries: code in the way of the thread that runs, which stops it where its registers are those of the
//! point (`geryon_patch::sentry`). It stands in the program's code only where no other thread of its process runs that;
//! else, and where an instruction has no room for it, the thread runs in a copy of the code around the point
//! (`geryon_patch::out_of_line`), and is sent there whenever it comes to the point from elsewhere.

use crate::block_field;
use crate::code::{SENTRY_BYTES, sentry_pages};
use crate::maps::AddressSpace;
use crate::meeting::{LOOK, Meeting, Part, Posted, Way};
use crate::setup::map_area;
use crate::signals::is_trap;
use crate::state::Monitor;
use anyhow::{Result, bail};
use geryon_patch::{
    Expected, INSTRUCTION_MAX, can_be_out_of_line, out_of_line, out_of_line_len, sentry,
    sentry_flags, sentry_len, sentry_site,
};
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
/// Two words of a thread's own, from where its GS register points to.
const SCRATCH: [u32; 2] = [
    block_field!(scratch) as u32,
    block_field!(scratch) as u32 + 8,
];
const _: () = assert!(sentry_len(WORDS) as u64 <= SENTRY_BYTES);
const _: () = assert!(out_of_line_len(WORDS) as u64 <= SENTRY_BYTES);
/// So many bytes before the point and behind it are looked at for a loop.
const AROUND: u64 = 1024;

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
        let there = |address| runs.layout().place(point.layout().name(address));
        let site = there(regs.rip);
        let Some(page) = self.sentry_page(m, site)? else {
            return Ok(false);
        };
        let expected = self.expected(m, &regs)?;
        let old = code[..len].to_vec();
        let Ok(code) = sentry(site, &old, page, &expected, SCRATCH) else {
            return Ok(false);
        };
        Stopped(runs.tid).set_breakpoint(None)?;
        let memory = self.memory(runs.pid)?;
        memory.write(page, &code.code)?;
        memory.write(site, &code.jump)?;
        m.sentry.posted = Some(Posted {
            site,
            page,
            stopped: code.stopped,
            pcs: code.pcs,
            way: Way::Jump(old),
        });
        Ok(true)
    }

    /// Have a copy of the code around the point for the thread that runs, which a breakpoint stops at the point's instruction.
    /// (Where there is none that is how it is stopped each time.)
    pub(super) fn post_out_of_line(&mut self, m: &mut Meeting) -> Result<()> {
        let (point, runs) = (m.point(), m.runner());
        let regs = Stopped(point.tid).regs()?;
        let site = runs.layout().place(point.layout().name(regs.rip));
        let Some((start, code)) = self.code_around(runs, site)? else {
            return Ok(());
        };
        let Some(page) = self.sentry_page(m, site)? else {
            return Ok(());
        };
        let expected = self.expected(m, &regs)?;
        let Ok(copy) = out_of_line(site, start, &code, page, &expected, SCRATCH) else {
            return Ok(());
        };
        self.memory(runs.pid)?.write(page, &copy.code)?;
        m.sentry.posted = Some(Posted {
            site,
            page,
            stopped: copy.stopped,
            pcs: copy.pcs,
            way: Way::Sent(copy.entry),
        });
        Ok(())
    }

    /// The thread that runs was stopped, has not met the point, and is about to go on.
    pub(super) fn send_out_of_line(&mut self, m: &Meeting) -> Result<()> {
        let Some(posted) = &m.sentry.posted else {
            return Ok(());
        };
        let thread = Stopped(m.runner().tid);
        let mut regs = thread.regs()?;
        if let Way::Sent(entry) = posted.way
            && regs.rip == posted.site
        {
            regs.rip = entry;
            thread.set_regs(&regs)?;
        }
        Ok(())
    }

    /// The thread that runs has stopped for another reason, at an instruction of the program's perhaps: then it stands there, and
    /// not at a copy of it.
    pub(super) fn is_seen_in_the_program(&mut self, m: &Meeting, stop: Stop) -> Result<()> {
        let (Some(posted), Stop::Signal(tid, _)) = (&m.sentry.posted, stop) else {
            return Ok(());
        };
        let thread = Stopped(tid);
        let mut regs = thread.regs()?;
        if let Some(original) = posted.original(regs.rip).filter(|_| tid == m.runner().tid) {
            regs.rip = original;
            thread.set_regs(&regs)?;
        }
        Ok(())
    }

    /// What the thread that runs holds where it meets the point's, which has these registers.
    fn expected(&mut self, m: &Meeting, point_regs: &Regs) -> Result<Expected> {
        let (point, runs) = (m.point(), m.runner());
        let there = |address| runs.layout().place(point.layout().name(address));
        let words = m.words.iter().take(WORDS);
        let words: Vec<u64> = words.map(|name| point.layout().place(*name)).collect();
        let memory = self.memory(point.pid)?;
        let held = |word| runs.writing.place(point.writing.name(word));
        let word = |at: &u64| Some((there(*at), held(memory.word(*at).ok()?)));
        Ok(Expected {
            registers: by_number(point_regs).map(held),
            words: words.iter().filter_map(word).collect(),
        })
    }

    /// The code around an instruction, as far as it is mapped, and where that begins.
    fn code_around(&mut self, part: Part, at: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let page = at & !0xfff;
        let memory = self.memory(part.pid)?;
        let read = |from: u64, to: u64| {
            let mut code = vec![0; (to - from) as usize];
            memory.read(from, &mut code).ok().map(|()| (from, code))
        };
        let before = [
            at.saturating_sub(AROUND),
            page.max(at.saturating_sub(AROUND)),
        ];
        let behind = [at + AROUND, (page + 0x1000).min(at + AROUND)];
        let both = before.iter().flat_map(|b| behind.iter().map(|e| (*b, *e)));
        Ok(both.into_iter().find_map(|(from, to)| read(from, to)))
    }

    /// Let the point's thread go on to an instruction at which a sentry can stand, if there is one soon, or else to one that
    /// can be copied. False: it has come to something else.
    pub(super) fn move_to_site(&mut self, m: &mut Meeting) -> Result<bool> {
        if m.sentry.moved || !m.is_first() {
            return Ok(true);
        }
        m.sentry.moved = true;
        let has_room = |code: &[u8]| sentry_site(code).is_some();
        if !m.in_parallel && !self.move_to(m, has_room)? {
            return Ok(false);
        }
        self.move_to(m, |code| has_room(code) || can_be_out_of_line(code))
    }

    /// The same, to one that fits.
    fn move_to(&mut self, m: &mut Meeting, fits: impl Fn(&[u8]) -> bool) -> Result<bool> {
        let point = m.point();
        let slot = self.slot_at(m)?;
        for _ in 0..STEPS {
            let at = Stopped(point.tid).regs()?.rip;
            let mut code = [0; INSTRUCTION_MAX];
            let readable = self.readable(point, at, &mut code)?;
            if readable.is_some_and(|n| fits(&code[..n])) {
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
        let readable = self.readable(part, at, code)?;
        Ok(readable.and_then(|n| sentry_site(&code[..n])))
    }

    /// The code that begins there. How much of it could be read: the last instruction of a mapping may be shorter.
    fn readable(&mut self, part: Part, at: u64, code: &mut [u8]) -> Result<Option<usize>> {
        let memory = self.memory(part.pid)?;
        let mut lengths = (1..=code.len()).rev();
        Ok(lengths.find(|n| memory.read(at, &mut code[..*n]).is_ok()))
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
        let runs = m.runner().pid;
        let others = self.running.convergences.0.values();
        let others = others.filter_map(|c| c.meeting.as_ref());
        let others = others.filter(|o| o.runner().pid == runs);
        let in_use: Vec<u64> = others
            .filter_map(|o| Some(o.sentry.posted.as_ref()?.page))
            .collect();
        let near = g.areas.sentries_near(site);
        if let Some(page) = { near }.find(|page| !in_use.contains(page)) {
            return Ok(Some(page));
        }
        let mut spaces = Vec::new();
        for part in &m.parts {
            spaces.push((part.layout(), AddressSpace::open(part.pid)?));
        }
        let runner = m.runner().layout();
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
            .map(|p| (p.tid, p.layout().place(runner.name(page))));
        for (tid, at) in places.clone() {
            if !map_area(Stopped(tid), &self.kit.image, at, SENTRY_BYTES)? {
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
        let Some(posted) = &m.sentry.posted else {
            return Ok(regs);
        };
        if regs.rip == posted.stopped {
            let scratch = regs.gs_base + block_field!(scratch);
            let [rax, flags] = self.memory(part.pid)?.words(scratch)?;
            regs.rax = rax;
            regs.eflags = sentry_flags(flags, regs.eflags);
            regs.rip = posted.site;
        } else if let Some(original) = posted.original(regs.rip) {
            regs.rip = original;
        }
        Ok(regs)
    }

    /// Take the sentry away; the thread that runs stands, and does so at an instruction of the program's
    /// afterwards.
    pub(super) fn relieve(&mut self, m: &mut Meeting) -> Result<()> {
        let part = m.runner();
        let thread = Stopped(part.tid);
        let Some(posted) = &m.sentry.posted else {
            return Ok(());
        };
        for _ in 0..STEPS_OUT {
            let at = thread.regs()?.rip;
            let is_out = !posted.contains(at) || posted.original(at).is_some();
            if at == posted.stopped || is_out || !self.step(part.tid)? {
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
        if let Some(posted) = m.sentry.posted.take()
            && let Way::Jump(old) = posted.way
        {
            self.memory(part.pid)?.write(posted.site, &old)?;
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
