//! The event loop: every stop of every thread of every replica comes here.

use crate::code::{self, maps};
use crate::image::Image;
use crate::launch::{exec_error, launch};
use crate::options::{Options, Outcome};
use crate::plans::Plans;
use crate::private_field;
use crate::segment::Segment;
use crate::setup::{Identity, Installer};
use crate::signals::Signals;
use crate::state::{End, Group, GroupId, Process, Thread};
use anyhow::{Context, Result, bail};
use geryon_abi::layout::rpc;
use geryon_symbols::Symbolizer;
use geryon_tracee::{Event, Pid, Regs, RemoteMemory, Stop, Stopped, kill, wait_any};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the watchdog looks, in milliseconds.
const WATCH_MS: u64 = 100;

/// Everything.
pub struct Monitor {
    pub(crate) options: Options,
    pub(crate) image: Image,
    pub(crate) plans: Plans,
    pub(crate) groups: HashMap<GroupId, Group>,
    pub(crate) processes: HashMap<Pid, Process>,
    pub(crate) threads: HashMap<Pid, Thread>,
    pub(crate) symbolizer: Symbolizer,
    pub(crate) watch: crate::watch::Watch,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) dropped: HashSet<usize>,
    early: HashSet<Pid>,
    next_group: GroupId,
    root: Pid,
    exec_pipe: Option<File>,
    tsc_mult: u64,
    messages: HashSet<String>,
}

/// Run a program as replicas until it ends.
///
/// # Errors
/// Geryon's own failures; the program's are in the outcome.
pub fn run(options: Options) -> Result<Outcome> {
    let image = Image::load()?;
    become_subreaper();
    let signals = Signals::block()?;
    let (pid, pipe) = launch(&options, image.gate(), signals.original())?;
    let mut m = Monitor {
        options,
        image,
        plans: Plans::new(),
        groups: HashMap::new(),
        processes: HashMap::new(),
        threads: HashMap::new(),
        symbolizer: Symbolizer::new(),
        watch: crate::watch::Watch::default(),
        outcome: None,
        dropped: HashSet::new(),
        early: HashSet::new(),
        next_group: 0,
        root: pid,
        exec_pipe: Some(pipe),
        tsc_mult: tsc_mult(),
        messages: HashSet::new(),
    };
    m.processes.insert(
        pid,
        Process {
            group: None,
            replica: 0,
            memory: None,
            parent: None,
            threads: 1,
            guest: None,
        },
    );
    m.threads.insert(
        pid,
        Thread {
            pid,
            ..Thread::default()
        },
    );
    let result = m.serve(&signals);
    if result.is_err() || m.outcome == Some(Outcome::Diverged) {
        m.kill_all();
    }
    m.reap();
    signals.restore();
    result?;
    m.outcome
        .context("the program vanished without an exit status")
}

fn become_subreaper() {
    // SAFETY: plain prctl: orphans of the program are then ours to reap.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Time stamp counter ticks in 2^20 ns, measured over a short while.
fn tsc_mult() -> u64 {
    let (t0, c0) = (Instant::now(), tsc());
    while t0.elapsed() < Duration::from_micros(500) {
        std::hint::spin_loop();
    }
    let (ns, c) = (t0.elapsed().as_nanos(), tsc().wrapping_sub(c0));
    ((u128::from(c) << 20) / ns.max(1)) as u64
}

fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

impl Monitor {
    fn serve(&mut self, signals: &Signals) -> Result<()> {
        let mut watched = Instant::now();
        loop {
            match wait_any() {
                Ok(Some(stop)) => self.on_stop(stop)?,
                Ok(None) => {
                    if let Some(s) = signals.wait(Duration::from_millis(WATCH_MS)) {
                        self.forward(s);
                    }
                }
                Err(_) => return Ok(()),
            }
            if self.outcome == Some(Outcome::Diverged) {
                return Ok(());
            }
            if watched.elapsed() >= Duration::from_millis(WATCH_MS) {
                watched = Instant::now();
                match self.watch() {
                    Err(e) if !is_gone(&e) => return Err(e),
                    _ => {}
                }
            }
        }
    }

    /// Kill every process that belongs to the run.
    pub(crate) fn kill_all(&mut self) {
        for pid in self.processes.keys() {
            kill(*pid, libc::SIGKILL);
        }
        for pid in &self.early {
            kill(*pid, libc::SIGKILL);
        }
    }

    fn reap(&mut self) {
        let start = Instant::now();
        loop {
            match wait_any() {
                Err(_) => return,
                Ok(Some(Stop::Exited(..) | Stop::Killed(..))) => {}
                Ok(Some(s)) => {
                    // A process born while the others died.
                    kill(s.pid(), libc::SIGKILL);
                }
                Ok(None) => {
                    if start.elapsed() > Duration::from_secs(10) {
                        return;
                    }
                    std::thread::yield_now();
                }
            }
        }
    }

    fn forward(&mut self, signal: i32) {
        let leader = self
            .groups
            .values()
            .filter_map(|g| g.members[g.leader])
            .find(|p| *p == self.root)
            .unwrap_or(self.root);
        kill(leader, signal);
    }

    pub(crate) fn say(&mut self, text: &str) {
        if self.messages.insert(text.to_owned()) {
            eprintln!("geryon: {text}");
        }
    }

    fn on_stop(&mut self, stop: Stop) -> Result<()> {
        let pid = stop.pid();
        let result = match stop {
            Stop::Exited(_, code) => {
                self.on_end(pid, End::Exited(code));
                return Ok(());
            }
            Stop::Killed(_, signal, _) => {
                self.on_end(pid, End::Killed(signal));
                return Ok(());
            }
            _ if !self.threads.contains_key(&pid) => {
                self.early.insert(pid);
                return Ok(());
            }
            Stop::Event(_, Event::Clone | Event::Fork | Event::Vfork) => self.on_birth(pid),
            Stop::Event(_, Event::Exec) => return self.on_exec(pid),
            Stop::Event(_, Event::Seccomp) => self.on_call(pid),
            Stop::Event(_, Event::Stop(signal)) => self.on_group_stop(pid, signal),
            Stop::Signal(_, signal) => self.on_signal(pid, signal),
            Stop::Syscall(_) | Stop::Event(_, Event::Other(_)) => {
                Stopped(pid).resume(0).map_err(Into::into)
            }
        };
        // A thread that was killed between its stop and our answer reports its end next.
        match result {
            Err(e) if is_gone(&e) => Ok(()),
            other => other,
        }
    }

    fn on_birth(&mut self, creator: Pid) -> Result<()> {
        let new = Stopped(creator).event_message()? as Pid;
        let is_process = tgid_of(new).is_none_or(|t| t == new);
        let creator_pid = self.threads[&creator].pid;
        if is_process {
            let parent = self
                .processes
                .get(&creator_pid)
                .and_then(|p| Some((p.group?, p.replica)));
            let replica = parent.map_or(0, |p| p.1);
            self.processes.insert(
                new,
                Process {
                    group: None,
                    replica,
                    memory: None,
                    parent,
                    threads: 1,
                    guest: None,
                },
            );
            self.threads.insert(
                new,
                Thread {
                    pid: new,
                    ..Thread::default()
                },
            );
        } else {
            if let Some(p) = self.processes.get_mut(&creator_pid) {
                p.threads += 1;
            }
            self.threads.insert(
                new,
                Thread {
                    pid: creator_pid,
                    ..Thread::default()
                },
            );
        }
        if self.early.remove(&new) {
            Stopped(new).resume(0).ok();
        }
        Stopped(creator).resume(0)?;
        Ok(())
    }

    fn on_end(&mut self, tid: Pid, end: End) {
        self.early.remove(&tid);
        let Some(thread) = self.threads.remove(&tid) else {
            return;
        };
        if thread.pid != tid {
            if let Some(p) = self.processes.get_mut(&thread.pid) {
                p.threads -= 1;
            }
            return;
        }
        let Some(p) = self.processes.remove(&tid) else {
            return;
        };
        self.threads.retain(|_, t| t.pid != tid);
        match p.group {
            Some(g) if p.guest.is_some() => self.on_guest_end(g, p.replica, end),
            Some(g) => self.on_member_end(g, p.replica, tid, end),
            None if tid == self.root && self.exec_pipe.is_some() => {
                let e = self.exec_failure().map_or_else(
                    || "it died before it could be executed".to_owned(),
                    |e| std::io::Error::from_raw_os_error(e).to_string(),
                );
                eprintln!(
                    "geryon: {}: cannot be executed: {e}",
                    self.options.program.display()
                );
                self.outcome = Some(Outcome::Exited(126));
            }
            None if tid == self.root => {
                self.outcome.get_or_insert(match end {
                    End::Exited(c) => Outcome::Exited(c),
                    End::Killed(s) => Outcome::Killed(s),
                });
            }
            None => {}
        }
    }

    /// The message of a failed exec, if that is how the program ended.
    pub(crate) fn on_member_end(&mut self, id: GroupId, replica: usize, pid: Pid, end: End) {
        let root = self.root;
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        g.members[replica] = None;
        g.ends[replica] = Some(end);
        if replica == g.leader {
            g.leader_gone = Some(Instant::now());
            if pid == root {
                self.outcome.get_or_insert(match end {
                    End::Exited(c) => Outcome::Exited(c),
                    End::Killed(s) => Outcome::Killed(s),
                });
            }
            if let End::Killed(_) = end {
                self.watch.expect_end(id);
                for p in g.members.iter().flatten() {
                    kill(*p, libc::SIGKILL);
                }
            }
        } else if self.dropped.contains(&replica) {
            // It was outvoted before.
        } else if let End::Killed(_) = end {
            self.lost(id, replica, end);
        }
        // A follower may end before its leader: an exit is confirmed before it happens. That it
        // ended where the leader did not shows as a missing confirmation.
        self.compare_ends(id);
        if let Some(g) = self.groups.get(&id)
            && g.members.iter().all(Option::is_none)
            && g.leader_gone.is_some()
        {
            self.groups.remove(&id);
        }
    }

    /// A vfork's child has ended without exec.
    fn on_guest_end(&mut self, id: GroupId, replica: usize, end: End) {
        let follows = self
            .groups
            .get(&id)
            .is_some_and(|g| g.leader != replica && g.members[replica].is_some());
        if matches!(end, End::Killed(_)) && follows && !self.dropped.contains(&replica) {
            self.lost(id, replica, end);
        }
    }

    /// A vfork's child says on which slot of its parent's memory it runs.
    fn on_vforked(&mut self, pid: Pid, slot: u64) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.guest = Some(slot);
            p.group = p.parent.map(|(g, _)| g);
        }
    }

    /// Once leader and followers are gone: did they end alike?
    fn compare_ends(&mut self, id: GroupId) {
        let Some(g) = self.groups.get(&id) else {
            return;
        };
        let Some(End::Exited(a)) = g.ends[g.leader] else {
            return;
        };
        let differs = g.ends.iter().enumerate().find_map(|(r, e)| match e {
            Some(End::Exited(b)) if *b != a && !self.dropped.contains(&r) => Some((r, *b)),
            _ => None,
        });
        if let Some((r, b)) = differs {
            self.diverged_after(id, r, &format!("exited with {b}, the leader with {a}"));
        }
    }

    /// A new program was loaded (always in a leader, or at launch).
    fn on_exec(&mut self, pid: Pid) -> Result<()> {
        let tracee = Stopped(pid);
        let former = tracee.event_message()? as Pid;
        if former != pid {
            self.threads.remove(&former);
        }
        self.threads.retain(|tid, t| t.pid != pid || *tid == pid);
        self.threads.entry(pid).or_insert(Thread {
            pid,
            ..Thread::default()
        });
        self.exec_pipe = None;
        tracee.finish_syscall()?;
        let old = self.processes.get_mut(&pid).map(|p| {
            p.memory = None;
            p.threads = 1;
            (p.group.take(), p.replica, p.guest.take())
        });
        match old {
            Some((Some(old), replica, Some(slot))) => self.end_guests(old, replica, slot),
            Some((Some(old), replica, None)) => self.leave_group(old, replica),
            _ => {}
        }
        let made = self.install(pid);
        if let Err(e) = made {
            return Err(e.context("cannot set up replicas"));
        }
        Ok(())
    }

    /// A vfork's child in the leader has its own program now: its followers' children are over,
    /// which lets their parents go on.
    fn end_guests(&mut self, id: GroupId, leader: usize, slot: u64) {
        for (pid, p) in &mut self.processes {
            if p.group == Some(id) && p.guest == Some(slot) && p.replica != leader {
                p.group = None;
                kill(*pid, libc::SIGKILL);
            }
        }
    }

    /// The leader has replaced its program: the old program's followers are over.
    fn leave_group(&mut self, id: GroupId, replica: usize) {
        let Some(g) = self.groups.get_mut(&id) else {
            return;
        };
        g.members[replica] = None;
        g.ends[replica] = Some(End::Exited(0));
        g.leader_gone = Some(Instant::now());
        let mut followers: Vec<Pid> = g.members.iter_mut().filter_map(Option::take).collect();
        for f in &followers {
            kill(*f, libc::SIGKILL);
            if let Some(p) = self.processes.get_mut(f) {
                p.group = None;
            }
        }
        followers.clear();
        self.groups.remove(&id);
    }

    fn install(&mut self, pid: Pid) -> Result<()> {
        let tracee = Stopped(pid);
        let start = tracee.regs()?;
        let replicas = self.options.replicas;
        let alive = (0..replicas)
            .filter(|r| !self.dropped.contains(&(*r as usize)))
            .fold(0, |m, r| m | 1 << r);
        let leader = self.processes.get(&pid).map_or(0, |p| p.replica);
        let segment = Segment::new(replicas, alive, leader as u32)?;
        segment
            .header()
            .leader_pid
            .store(pid as u32, Ordering::Release);
        let memory = RemoteMemory::open(pid)?;
        let identity = Identity {
            replica: leader as u32,
            replicas: alive.count_ones(),
            leader: leader as u32,
            serial: self.options.order.is_serial(self.options.replicas),
            verify: self.options.verify.code(),
            tsc_mult: self.tsc_mult,
        };
        let mut installer = Installer {
            tracee,
            memory: &memory,
            image: &self.image,
            start,
        };
        installer.install(&segment, identity)?;
        let mut areas = code::Areas::default();
        let (maps, taken) = maps(pid)?;
        let glibc = maps
            .iter()
            .any(|m| self.plans.of(&m.path).is_some_and(|p| p.reads_tunables));
        installer.prepare_stack(glibc)?;
        if self.options.patch {
            for map in &maps {
                code::patch(
                    tracee,
                    &memory,
                    &self.image,
                    &mut self.plans,
                    &mut areas,
                    map,
                    &taken,
                )?;
            }
        }
        let gate = self.image.symbol("geryon_blocking_syscall");
        // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, see the agent's log.
        tracee.remote_syscall(gate, libc::SYS_membarrier, [4, 0, 0, 0, 0, 0])?;
        let mut members = vec![None; replicas as usize];
        members[leader] = Some(pid);
        let id = self.next_group;
        self.next_group += 1;
        let start = installer.start;
        let mask = tracee.mask()?;
        for r in (0..replicas as usize).filter(|r| *r != leader && alive & (1 << *r) != 0) {
            let copy = installer.copy()?;
            members[r] = Some(copy);
            let copied = RemoteMemory::open(copy)?;
            Installer {
                tracee: Stopped(copy),
                memory: &copied,
                image: &self.image,
                start,
            }
            .become_copy(
                Identity {
                    replica: r as u32,
                    ..identity
                },
                mask,
            )?;
            self.processes.insert(
                copy,
                Process {
                    group: Some(id),
                    replica: r,
                    memory: Some(copied),
                    parent: None,
                    threads: 1,
                    guest: None,
                },
            );
            self.threads.insert(
                copy,
                Thread {
                    pid: copy,
                    ..Thread::default()
                },
            );
        }
        if let Some(p) = self.processes.get_mut(&pid) {
            p.group = Some(id);
            p.memory = Some(memory);
        }
        self.apply_sabotage(&members)?;
        let resumed: Vec<Pid> = members.iter().flatten().copied().collect();
        self.groups
            .insert(id, group(segment, members, leader, areas));
        for p in resumed {
            Stopped(p).resume(0)?;
        }
        Ok(())
    }

    fn apply_sabotage(&self, members: &[Option<Pid>]) -> Result<()> {
        if let Some(s) = self.options.sabotage {
            let Some(pid) = members.get(s.replica as usize).copied().flatten() else {
                return Ok(());
            };
            if let Some(m) = self.processes.get(&pid).and_then(|p| p.memory.as_ref()) {
                m.write(private_field!(sabotage), &s.what.to_le_bytes())?;
                m.set_word(private_field!(sabotage_at), s.at)?;
            }
        }
        Ok(())
    }

    /// A system call that the filter did not let pass.
    fn on_call(&mut self, tid: Pid) -> Result<()> {
        let tracee = Stopped(tid);
        let mut regs = tracee.regs()?;
        let pid = self.threads[&tid].pid;
        if self
            .processes
            .get(&pid)
            .is_some_and(|p| p.group.is_none() && p.parent.is_none())
        {
            // Before the first exec: the launching child's own calls.
            return Ok(tracee.resume(0)?);
        }
        if (rpc::BASE..rpc::END).contains(&regs.orig_rax) {
            return self.on_rpc(tid, pid, regs);
        }
        if self.image.contains(regs.rip) {
            bail!(
                "the agent made an unexpected system call {} at {:#x}",
                regs.orig_rax,
                regs.rip
            );
        }
        regs.rax = regs.orig_rax;
        regs.orig_rax = u64::MAX;
        regs.rcx = regs.rip;
        regs.rip = self.image.symbol("geryon_entry_trap");
        tracee.set_regs(&regs)?;
        tracee.resume(0)?;
        Ok(())
    }

    fn on_rpc(&mut self, tid: Pid, pid: Pid, mut regs: Regs) -> Result<()> {
        let tracee = Stopped(tid);
        let answer = match regs.orig_rax {
            rpc::MAPPED => {
                // Calls are to be injected: this one has to be over first.
                regs.rax = 0;
                regs.orig_rax = u64::MAX;
                tracee.set_regs(&regs)?;
                tracee.finish_syscall()?;
                self.on_mapped(tid, pid, regs.rdi, regs.rsi)?;
                return Ok(tracee.resume(0)?);
            }
            rpc::VFORKED => {
                self.on_vforked(pid, regs.rdi);
                0
            }
            rpc::EXEC => 0,
            rpc::CHILD => self.on_child(pid, regs.rdi, regs.rsi)?,
            rpc::MESSAGE => {
                self.on_message(pid, &regs);
                0
            }
            rpc::DELIVER => return self.deliver(tid, pid, regs.rdi, regs.rsi),
            rpc::DELIVER_HERE => {
                let info = self.memory(pid)?.words::<16>(regs.rsi)?;
                regs.rax = 0;
                regs.orig_rax = u64::MAX;
                tracee.set_regs(&regs)?;
                return self.inject(tid, pid, info);
            }
            rpc::DIVERGENCE => return self.on_divergence(tid, pid, regs.rdi),
            other => bail!("the agent asked something unknown: {other:#x}"),
        };
        regs.rax = answer as u64;
        regs.orig_rax = u64::MAX;
        tracee.set_regs(&regs)?;
        tracee.resume(0)?;
        Ok(())
    }

    pub(crate) fn memory(&mut self, pid: Pid) -> Result<&RemoteMemory> {
        let p = self.processes.get_mut(&pid).context("unknown process")?;
        if p.memory.is_none() {
            p.memory = Some(RemoteMemory::open(pid)?);
        }
        Ok(p.memory.as_ref().expect("just opened"))
    }

    fn on_mapped(&mut self, tid: Pid, pid: Pid, address: u64, len: u64) -> Result<()> {
        if !self.options.patch {
            return Ok(());
        }
        self.memory(pid)?;
        let p = &self.processes[&pid];
        let memory = p.memory.as_ref().expect("opened above");
        let Some(g) = p.group.and_then(|g| self.groups.get_mut(&g)) else {
            return Ok(());
        };
        let known = g
            .areas
            .mapped
            .get(&(address, len))
            .filter(|_| p.replica != g.leader);
        let (found, taken) = match known {
            Some(known) => (known.clone(), Vec::new()),
            None => {
                let (mut all, taken) = maps(pid)?;
                all.retain(|m| m.start < address + len && m.end > address);
                g.areas.mapped.insert((address, len), all.clone());
                (all, taken)
            }
        };
        for map in &found {
            code::patch(
                Stopped(tid),
                memory,
                &self.image,
                &mut self.plans,
                &mut g.areas,
                map,
                &taken,
            )?;
        }
        Ok(())
    }

    /// A forked child says which fork of its parent it comes from.
    fn on_child(&mut self, pid: Pid, sequence: u64, path_at: u64) -> Result<i64> {
        let Some((parent, replica)) = self.processes.get(&pid).and_then(|p| p.parent) else {
            return Ok(-1);
        };
        let next = self.next_group;
        let Some(pg) = self.groups.get_mut(&parent) else {
            return Ok(-1);
        };
        let n = pg.members.len();
        let leader = pg.leader;
        let alive = pg.segment.header().alive.load(Ordering::Acquire);
        let areas = pg.areas.clone();
        let id = *pg.children.entry(sequence).or_insert(next);
        if id == next {
            self.next_group += 1;
            let segment = Segment::new(n as u32, alive, leader as u32)?;
            self.groups
                .insert(id, group(segment, vec![None; n], leader, areas));
        }
        let Some(g) = self.groups.get_mut(&id) else {
            return Ok(-1);
        };
        g.members[replica] = Some(pid);
        if replica == g.leader {
            g.segment
                .header()
                .leader_pid
                .store(pid as u32, Ordering::Release);
        }
        let mut path = g.segment.path().into_bytes();
        path.push(0);
        self.memory(pid)?.write(path_at, &path)?;
        if let Some(p) = self.processes.get_mut(&pid) {
            p.group = Some(id);
        }
        Ok(0)
    }

    /// Why the program could not be executed, if that is what happened.
    pub(crate) fn exec_failure(&mut self) -> Option<i32> {
        self.exec_pipe.as_mut().and_then(exec_error)
    }
}

fn group(segment: Segment, members: Vec<Option<Pid>>, leader: usize, areas: code::Areas) -> Group {
    let n = members.len();
    Group {
        segment,
        members,
        ends: vec![None; n],
        leader,
        areas,
        children: HashMap::new(),
        crashes: Vec::new(),
        reports: Vec::new(),
        leader_gone: None,
    }
}

fn is_gone(e: &anyhow::Error) -> bool {
    e.downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::raw_os_error)
        == Some(libc::ESRCH)
}

fn tgid_of(tid: Pid) -> Option<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines()
        .find_map(|l| l.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}
