//! Divergence: the verdict, and what a person is told about it.

use crate::block_field;
use crate::options::Outcome;
use crate::run::Monitor;
use crate::state::{Crash, End, GroupId, ReportWords, Reported};
use anyhow::Result;
use geryon_abi::frame::{FRAME_BYTES, Frame};
use geryon_abi::layout::{Report, block_address, wait, why};
use geryon_abi::record::{self, kind};
use geryon_abi::row::Kind;
use geryon_abi::{hooks::HOOKS, table};
use geryon_symbols::{Memory, Regs};
use geryon_tracee::{Pid, RemoteMemory, Stopped, kill};
use serde::Serialize;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::time::{Duration, Instant};

/// Frames shown of each backtrace.
const FRAMES: usize = 12;

/// What the JSON report holds.
#[derive(Debug, Default, Serialize)]
struct Written {
    verdict: String,
    cause: String,
    thread_group: u32,
    position: u64,
    outvoted: Vec<usize>,
    replicas: Vec<Side>,
    first_difference: Option<Difference>,
    last_events: Vec<String>,
    message: String,
}

/// One replica's side.
#[derive(Debug, Default, Serialize)]
struct Side {
    replica: usize,
    role: String,
    operation: String,
    arguments: Vec<String>,
    backtrace: Vec<String>,
}

/// The first byte that differs.
#[derive(Debug, Serialize)]
struct Difference {
    argument: String,
    offset: u64,
    values: Vec<String>,
    single_bit: Option<u32>,
}

struct Remote<'a>(&'a RemoteMemory);

impl Memory for Remote<'_> {
    fn read(&self, addr: u64, buf: &mut [u8]) -> bool {
        self.0.read(addr, buf).is_ok()
    }
}

impl Monitor {
    /// A follower says that it differs. Its thread stays stopped.
    pub(crate) fn on_divergence(&mut self, tid: Pid, pid: Pid, at: u64) -> Result<()> {
        let m = self.memory(pid)?;
        let half = |w: u64, n: u32| (w >> (32 * n)) as u32;
        let first = m.word(at)?;
        let report = ReportWords {
            why: half(first, 0),
            slot: half(first, 1),
            pos: m.word(at + offset_of!(Report, pos) as u64)?,
            theirs: m.words(at + offset_of!(Report, theirs) as u64)?,
            ours: m.words(at + offset_of!(Report, ours) as u64)?,
        };
        let Some((group, replica)) = self
            .processes
            .get(&pid)
            .and_then(|p| Some((p.group?, p.replica)))
        else {
            return Ok(());
        };
        if self.watch.ends(group) {
            return Ok(());
        }
        if let Some(g) = self.groups.get_mut(&group) {
            g.reports.push(Reported {
                replica,
                tid,
                report,
                when: Instant::now(),
            });
        }
        self.judge_reports(group, Duration::MAX)
    }

    /// Decide the oldest report of a group, if it can be decided.
    pub(crate) fn judge_reports(&mut self, id: GroupId, limit: Duration) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(());
        };
        let Some(first) = g.reports.first().cloned() else {
            return Ok(());
        };
        let leader = g.leader;
        let alive: Vec<(usize, Pid)> = g
            .members
            .iter()
            .enumerate()
            .filter_map(|(r, p)| Some((r, (*p)?)))
            .collect();
        let at = (first.report.slot, first.report.pos);
        let differing: Vec<usize> = g
            .reports
            .iter()
            .filter(|r| (r.report.slot, r.report.pos) == at && r.report.ours == first.report.ours)
            .map(|r| r.replica)
            .collect();
        let total = g
            .members
            .iter()
            .zip(&g.ends)
            .filter(|(m, e)| m.is_some() || e.is_some())
            .count();
        let others: Vec<(usize, Pid)> = alive
            .iter()
            .filter(|(r, _)| *r != leader && g.reports.iter().all(|x| x.replica != *r))
            .copied()
            .collect();
        let mut passed = 1;
        for (_, pid) in &others {
            let block = block_address(at.0 as usize);
            if self
                .memory(*pid)
                .and_then(|m| Ok(m.word(block + block_field!(verified))?))
                .is_ok_and(|p| p > at.1)
            {
                passed += 1;
            }
        }
        if total >= 3 && passed * 2 > total {
            let text = self.describe(
                id,
                &first,
                &format!("replica {} of {total} is outvoted", first.replica + 1),
            );
            self.tell(
                &text,
                &format!("going on with {} replicas", alive.len() - 1),
            );
            self.drop_replica(first.replica);
        } else if total >= 3 && differing.len() * 2 > total {
            let text = self.describe(
                id,
                &first,
                &format!("replica {} (the leader) of {total} is outvoted", leader + 1),
            );
            self.tell(
                &text,
                "stopped: taking over from an outvoted leader is not implemented yet",
            );
            self.stop();
        } else if total < 3 || others.is_empty() || first.when.elapsed() > limit {
            let text = self.describe(
                id,
                &first,
                &format!("{total} replicas differ, and no majority says who is wrong"),
            );
            self.tell(&text, "stopped before the unconfirmed output left; run with -n 3 to name the faulty replica");
            self.stop();
        }
        Ok(())
    }

    fn tell(&mut self, text: &str, end: &str) {
        eprint!("{text}");
        eprintln!("geryon: {end}");
    }

    fn stop(&mut self) {
        self.outcome = Some(Outcome::Diverged);
    }

    /// Take a replica out of the run, with all its processes.
    pub(crate) fn drop_replica(&mut self, replica: usize) {
        self.dropped.insert(replica);
        let pids: Vec<Pid> = self
            .processes
            .iter()
            .filter(|(_, p)| p.replica == replica && p.group.is_some())
            .map(|(p, _)| *p)
            .collect();
        for g in self.groups.values_mut() {
            g.segment.drop_replica(replica);
            g.members[replica] = None;
            g.reports.retain(|r| r.replica != replica);
            g.crashes.retain(|c| c.replica != replica);
        }
        for p in pids {
            kill(p, libc::SIGKILL);
        }
    }

    /// A replica died of its own fault; perhaps the others will, too.
    pub(crate) fn on_crash(&mut self, id: GroupId, crash: Crash) -> Result<()> {
        if let Some(g) = self.groups.get_mut(&id) {
            g.crashes.push(crash);
        }
        self.judge_crashes(id, Duration::MAX)
    }

    /// Everybody crashed alike: the program is what dies. Some did not: they are the verdict.
    pub(crate) fn judge_crashes(&mut self, id: GroupId, limit: Duration) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(());
        };
        let alive = g.members.iter().flatten().count();
        let Some(first) = g.crashes.first().cloned() else {
            return Ok(());
        };
        let leader = g.leader;
        let alike = g
            .crashes
            .iter()
            .filter(|c| (c.slot, c.signal, c.pc) == (first.slot, first.signal, first.pc))
            .count();
        if alike == alive {
            let lead = g.crashes.iter().find(|c| c.replica == leader).cloned();
            let followers: Vec<Pid> = g
                .members
                .iter()
                .enumerate()
                .filter(|(r, _)| *r != leader)
                .filter_map(|(_, p)| *p)
                .collect();
            self.watch.expect_end(id);
            for f in followers {
                kill(f, libc::SIGKILL);
            }
            if let Some(c) = lead {
                Stopped(c.tid).resume(c.signal)?;
            }
            return Ok(());
        }
        if first.when.elapsed() <= limit {
            return Ok(());
        }
        let what = format!(
            "replica {} got signal {} ({}) at {} (address {:#x}) and the others did not",
            first.replica + 1,
            first.signal,
            signal_name(first.signal),
            self.place(first.tid, first.pc),
            first.address
        );
        let trace = self.backtrace_of(first.tid, None);
        let mut text = format!("geryon: divergence: {what}\n");
        for f in &trace {
            let _ = writeln!(text, "geryon:       {f}");
        }
        self.finish_loss(id, first.replica, &what, text, trace)
    }

    /// A replica is gone, or must go; decide what that means for the run.
    fn finish_loss(
        &mut self,
        id: GroupId,
        replica: usize,
        what: &str,
        text: String,
        trace: Vec<String>,
    ) -> Result<()> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(());
        };
        let total = g.members.len() - self.dropped.len();
        let leads = g.leader == replica;
        eprint!("{text}");
        self.write_report(&Written {
            verdict: if total >= 3 {
                "outvoted"
            } else {
                "no majority"
            }
            .into(),
            cause: what.to_owned(),
            outvoted: vec![replica],
            replicas: vec![Side {
                replica,
                backtrace: trace,
                ..Side::default()
            }],
            message: text,
            ..Written::default()
        });
        if leads {
            eprintln!("geryon: stopped: taking over from a lost leader is not implemented yet");
            self.stop();
        } else if total >= 3 {
            eprintln!(
                "geryon: replica {} of {total} is outvoted; going on with {} replicas",
                replica + 1,
                total - 1
            );
            self.drop_replica(replica);
        } else {
            eprintln!(
                "geryon: stopped: two replicas differ, and no majority says who is wrong; run with -n 3 to name the faulty replica"
            );
            self.stop();
        }
        Ok(())
    }

    /// A follower ended although its leader lives.
    pub(crate) fn lost(&mut self, id: GroupId, replica: usize, end: End) {
        if self.watch.ends(id) {
            return;
        }
        let what = match end {
            End::Exited(c) => format!(
                "replica {} exited with {c} and the leader did not",
                replica + 1
            ),
            End::Killed(s) => format!(
                "replica {} was killed by signal {s} ({})",
                replica + 1,
                signal_name(s)
            ),
        };
        let text = format!("geryon: divergence: {what}\n");
        // Reporting cannot fail the run any further.
        let _ = self.finish_loss(id, replica, &what, text, Vec::new());
    }

    /// The replicas disagree about the end itself.
    pub(crate) fn diverged_after(&mut self, _id: GroupId, replica: usize, what: &str) {
        eprintln!("geryon: divergence: replica {} {what}", replica + 1);
        self.stop();
    }

    /// The watchdog's verdict on a follower.
    pub(crate) fn stuck(&mut self, id: GroupId, replica: usize, what: &str) -> Result<()> {
        let mut text = format!("geryon: divergence: replica {} {what}\n", replica + 1);
        let Some(pid) = self.groups.get(&id).and_then(|g| g.members[replica]) else {
            return Ok(());
        };
        let leader = self.groups.get(&id).and_then(|g| g.members[g.leader]);
        for v in self.views(pid) {
            let _ = writeln!(
                text,
                "geryon:   thread group {}: {}; last: {}",
                v.slot,
                waiting(v.waiting, v.waiting_for, v.waiting_value),
                last_event(&v)
            );
        }
        if let Some(l) = leader {
            for v in self.views(l) {
                let _ = writeln!(
                    text,
                    "geryon:   leader's thread group {}: {}; last: {}",
                    v.slot,
                    waiting(v.waiting, v.waiting_for, v.waiting_value),
                    last_event(&v)
                );
            }
        }
        text.push_str("geryon:   likely cause: a race in the program that no lock orders (plain loads and stores)\n");
        let cause = format!("replica {} {what}", replica + 1);
        self.finish_loss(id, replica, &cause, text, Vec::new())
    }

    /// The text of a divergence, and the JSON report.
    fn describe(&mut self, id: GroupId, r: &Reported, verdict: &str) -> String {
        let mut text = format!("geryon: divergence: {verdict}\n");
        let w = r.report;
        let _ = writeln!(
            text,
            "geryon:   thread group {}, position {}: {}",
            w.slot,
            w.pos,
            why_text(w.why)
        );
        let leader = self.groups.get(&id).map_or(0, |g| g.leader);
        let leader_pid = self.groups.get(&id).and_then(|g| g.members[leader]);
        let pid = self.threads.get(&r.tid).map_or(0, |t| t.pid);
        let mut sides = Vec::new();
        let leader_view =
            leader_pid.and_then(|p| self.views(p).into_iter().find(|v| v.slot == w.slot));
        let mut out = Written {
            verdict: verdict.to_owned(),
            cause: why_text(w.why).to_owned(),
            thread_group: w.slot,
            position: w.pos,
            outvoted: vec![r.replica],
            ..Written::default()
        };
        for (replica, who, words, p, tid) in [
            (
                leader,
                "leader",
                w.theirs,
                leader_pid,
                leader_view.map(|v| v.tid),
            ),
            (r.replica, "follower", w.ours, Some(pid), Some(r.tid)),
        ] {
            let operation = operation(words[0]);
            let arguments = p.map_or_else(Vec::new, |p| self.arguments(p, &words, p == pid, r));
            let _ = writeln!(
                text,
                "geryon:   replica {} ({who}): {operation}({})",
                replica + 1,
                arguments.join(", ")
            );
            let trace = match tid {
                Some(t) => self.trace_in_agent(t, p.unwrap_or(0), w.slot),
                None => Vec::new(),
            };
            for f in &trace {
                let _ = writeln!(text, "geryon:       {f}");
            }
            sides.push(Side {
                replica,
                role: who.into(),
                operation,
                arguments,
                backtrace: trace,
            });
        }
        if let (Some(lp), true) = (leader_pid, w.why == why::DIGEST) {
            out.first_difference = self.first_difference(lp, pid, &w);
            if let Some(d) = &out.first_difference {
                let _ = writeln!(
                    text,
                    "geryon:   first difference: argument {}, offset {}: {}{}",
                    d.argument,
                    d.offset,
                    d.values.join(" against "),
                    d.single_bit
                        .map_or(String::new(), |b| format!(" (a single flipped bit: {b})"))
                );
            }
        }
        for v in self.views(pid).into_iter().filter(|v| v.slot == w.slot) {
            let n = v.events.min(16);
            out.last_events = (0..n)
                .map(|i| event(v.last[((v.events - n + i) & 15) as usize]))
                .collect();
            let _ = writeln!(
                text,
                "geryon:   last events of the thread group: {}",
                out.last_events.join(", ")
            );
        }
        let race = matches!(w.why, why::KIND | why::SITE | why::OUTCOME)
            && self.threads.values().filter(|t| t.pid == pid).count() > 1;
        if race {
            text.push_str("geryon:   looks like a race in the program (another operation came next), not like a flipped bit\n");
        }
        out.replicas = sides;
        out.message.clone_from(&text);
        self.write_report(&out);
        text
    }

    fn write_report(&mut self, w: &Written) {
        let Some(path) = self.options.report.clone() else {
            return;
        };
        let written = serde_json::to_vec_pretty(w)
            .map_err(std::io::Error::other)
            .and_then(|mut b| {
                b.push(b'\n');
                std::fs::write(&path, b)
            });
        if let Err(e) = written {
            eprintln!(
                "geryon: cannot write the report to {}: {e} (the text above is all of it)",
                path.display()
            );
        }
    }

    /// The arguments of a call as text.
    fn arguments(&mut self, pid: Pid, words: &[u64; 8], own: bool, r: &Reported) -> Vec<String> {
        let k = record::kind_of(words[0]);
        if !matches!(k, kind::CALL | kind::BEGIN | kind::MEMORY) {
            return words[1..4].iter().map(|w| format!("{w:#x}")).collect();
        }
        let Some(row) = table::row(u64::from(record::short_of(words[0]))) else {
            return Vec::new();
        };
        // Followers report their arguments; the leader logs them for outputs only.
        if k != kind::BEGIN && !own {
            return vec![format!("digest {:#018x}", words[1])];
        }
        let _ = r;
        let Ok(m) = self.memory(pid) else {
            return Vec::new();
        };
        row.args
            .iter()
            .enumerate()
            .map(|(i, a)| {
                let v = words[2 + i];
                let shown = match a.kind {
                    Kind::Fd => format!("{}", v as i32),
                    Kind::Path if v != 0 => {
                        format!("{:?}", String::from_utf8_lossy(&m.string(v, 80)))
                    }
                    Kind::In(_) if v != 0 => {
                        let mut b = [0u8; 24];
                        if m.read(v, &mut b).is_ok() {
                            format!("{v:#x} {:?}...", String::from_utf8_lossy(&b))
                        } else {
                            format!("{v:#x}")
                        }
                    }
                    Kind::Int | Kind::Int32 => format!("{v}"),
                    _ => format!("{v:#x}"),
                };
                format!("{}={shown}", a.name)
            })
            .collect()
    }

    /// Compare the in-buffers of both replicas, which still stand at the call.
    fn first_difference(
        &mut self,
        leader: Pid,
        follower: Pid,
        w: &ReportWords,
    ) -> Option<Difference> {
        if record::kind_of(w.ours[0]) != kind::BEGIN && record::kind_of(w.ours[0]) != kind::CALL {
            return None;
        }
        let row = table::row(u64::from(record::short_of(w.ours[0])))?;
        for (i, a) in row.args.iter().enumerate() {
            let (x, y) = (w.theirs[2 + i], w.ours[2 + i]);
            let scalar = matches!(a.kind, Kind::Int | Kind::Int32 | Kind::Fd | Kind::Addr);
            if scalar && x != y && record::kind_of(w.ours[0]) == kind::BEGIN {
                let bit = (x ^ y).is_power_of_two().then(|| (x ^ y).trailing_zeros());
                return Some(Difference {
                    argument: a.name.into(),
                    offset: 0,
                    values: vec![format!("{x:#x}"), format!("{y:#x}")],
                    single_bit: bit,
                });
            }
        }
        for (i, a) in row.args.iter().enumerate() {
            let len = match a.kind {
                Kind::Path => 4096,
                Kind::In(l) | Kind::InOut(l) => match l {
                    geryon_abi::row::Len::Fixed(n) => u64::from(n),
                    geryon_abi::row::Len::Arg(k) => w.ours[2 + k as usize],
                    geryon_abi::row::Len::ArgTimes(k, n) => w.ours[2 + k as usize] * u64::from(n),
                    _ => 0,
                },
                _ => 0,
            };
            let address = w.ours[2 + i];
            if let Some((offset, x, y)) = self.differing_byte(leader, follower, address, len) {
                let bit = (x ^ y).is_power_of_two().then(|| (x ^ y).trailing_zeros());
                return Some(Difference {
                    argument: a.name.into(),
                    offset,
                    values: vec![format!("{x:#04x}"), format!("{y:#04x}")],
                    single_bit: bit,
                });
            }
        }
        None
    }

    fn differing_byte(&mut self, a: Pid, b: Pid, address: u64, len: u64) -> Option<(u64, u8, u8)> {
        let mut offset = 0;
        while offset < len {
            let n = (len - offset).min(4096 - (address + offset) % 4096) as usize;
            let (mut x, mut y) = (vec![0; n], vec![0; n]);
            self.memory(a).ok()?.read(address + offset, &mut x).ok()?;
            self.memory(b).ok()?.read(address + offset, &mut y).ok()?;
            if let Some(i) = (0..n).find(|i| x[*i] != y[*i]) {
                return Some((offset + i as u64, x[i], y[i]));
            }
            offset += n as u64;
        }
        None
    }

    /// Where a program counter is.
    fn place(&mut self, tid: Pid, pc: u64) -> String {
        if let Some(n) = self.image.name_of(pc).filter(|_| self.image.contains(pc)) {
            return format!("{pc:#x} in the agent ({n})");
        }
        let pid = self.threads.get(&tid).map_or(tid, |t| t.pid);
        self.symbolizer.symbol_at(pid, pc).to_string()
    }

    /// Backtrace of a stopped thread, from its registers or from given ones.
    fn backtrace_of(&mut self, tid: Pid, regs: Option<Regs>) -> Vec<String> {
        let pid = self.threads.get(&tid).map_or(tid, |t| t.pid);
        let regs = match regs {
            Some(r) => r,
            None => match Stopped(tid).regs() {
                Ok(r) => Regs {
                    rip: r.rip,
                    rsp: r.rsp,
                    rbp: r.rbp,
                    rbx: r.rbx,
                    r12: r.r12,
                    r13: r.r13,
                    r14: r.r14,
                    r15: r.r15,
                },
                Err(_) => return Vec::new(),
            },
        };
        if self.memory(pid).is_err() {
            return Vec::new();
        }
        let p = &self.processes[&pid];
        let Some(memory) = p.memory.as_ref() else {
            return Vec::new();
        };
        let pcs = p
            .group
            .and_then(|g| self.groups.get(&g))
            .map(|g| &g.areas.pcs);
        let translate = |a: u64| pcs.and_then(|m| m.get(&a).copied());
        self.symbolizer
            .backtrace(pid, &regs, &Remote(memory), &translate, FRAMES)
            .iter()
            .enumerate()
            .map(|(i, f)| format!("#{i} {f}"))
            .collect()
    }

    /// Backtrace of a thread that stands in the agent: from the application state it saved.
    fn trace_in_agent(&mut self, tid: Pid, pid: Pid, slot: u32) -> Vec<String> {
        let Ok(m) = self.memory(pid) else {
            return Vec::new();
        };
        let frame = m
            .word(block_address(slot as usize) + block_field!(frame))
            .unwrap_or(0);
        let mut bytes = [0u8; FRAME_BYTES];
        if frame == 0 || m.read(frame, &mut bytes).is_err() {
            return self.backtrace_of(tid, None);
        }
        let word = |o: usize| u64::from_le_bytes(bytes[o..o + 8].try_into().expect("8 bytes"));
        let regs = Regs {
            rip: word(offset_of!(Frame, rcx)),
            rsp: word(offset_of!(Frame, rsp)),
            rbp: word(offset_of!(Frame, rbp)),
            rbx: word(offset_of!(Frame, rbx)),
            r12: word(offset_of!(Frame, r12)),
            r13: word(offset_of!(Frame, r13)),
            r14: word(offset_of!(Frame, r14)),
            r15: word(offset_of!(Frame, r15)),
        };
        self.backtrace_of(tid, Some(regs))
    }

    /// A message of the agent: a refused call.
    pub(crate) fn on_message(&mut self, pid: Pid, regs: &geryon_tracee::Regs) {
        let Some((group, replica)) = self
            .processes
            .get(&pid)
            .and_then(|p| Some((p.group?, p.replica)))
        else {
            return;
        };
        if self.groups.get(&group).is_none_or(|g| g.leader != replica) {
            return;
        }
        let (nr, detail) = (regs.rsi, regs.rdx);
        let block = regs.gs_base;
        let pc = self
            .memory(pid)
            .ok()
            .and_then(|m| {
                let frame = m.word(block + block_field!(frame)).ok()?;
                m.word(frame + offset_of!(Frame, rcx) as u64).ok()
            })
            .unwrap_or(0);
        let place = self.place(pid, pc);
        let text = match table::row(nr) {
            Some(row) => {
                let command = table::command(nr, detail)
                    .map(|c| format!(" with {}", c.name))
                    .unwrap_or_default();
                let note = if row.note.is_empty() {
                    "see: geryon syscalls"
                } else {
                    row.note
                };
                format!("{}{command} is refused (at {place}): {note}", row.name)
            }
            None => format!(
                "system call {nr} is unknown and refused (at {place}); see: geryon syscalls"
            ),
        };
        self.say(&text);
    }
}

fn why_text(w: u32) -> &'static str {
    match w {
        why::KIND => "another operation than the leader's",
        why::DIGEST => "the same call with other arguments or content",
        why::SITE => "the same kind of operation on another object or at another place",
        why::OUTCOME => "the same operation with another result",
        why::LOCAL => "an operation that succeeded in the leader failed",
        _ => "unknown",
    }
}

fn operation(first: u64) -> String {
    let k = record::kind_of(first);
    match k {
        kind::CALL | kind::BEGIN | kind::MEMORY | kind::END => {
            table::row(u64::from(record::short_of(first)))
                .map_or_else(|| record::name(k).to_owned(), |r| r.name.to_owned())
        }
        kind::LOCK | kind::OUTCOME => hook_name(record::detail_of(first)).to_owned(),
        kind::ATOMIC => format!(
            "atomic instruction (site hash {:#06x})",
            record::short_of(first)
        ),
        _ => record::name(k).to_owned(),
    }
}

fn hook_name(id: u8) -> &'static str {
    HOOKS
        .iter()
        .find(|(_, n)| *n == u16::from(id))
        .map_or("lock operation", |(n, _)| n)
}

fn event(first: u64) -> String {
    operation(first)
}

fn last_event(v: &crate::watch::View) -> String {
    if v.events == 0 {
        "nothing yet".into()
    } else {
        event(v.last[((v.events - 1) & 15) as usize])
    }
}

fn waiting(what: u32, place: u64, value: u64) -> String {
    match what {
        wait::RECORD => "waits for the leader".into(),
        wait::TURN => format!("waits for its turn {value} on the clock at {place:#x}"),
        wait::CONFIRM => "waits for confirmation".into(),
        wait::ROOM => "waits for room in the log".into(),
        wait::KERNEL => {
            let name = table::row(place).map_or("a system call", |r| r.name);
            format!("is in {name}")
        }
        wait::VALUE => format!("waits for the word at {place:#x} to become {value:#x}"),
        wait::MAPS => "waits for a file to be mapped".into(),
        wait::DIVERGED => "is stopped by a divergence".into(),
        _ => "computes".into(),
    }
}

/// Name of a signal.
pub(crate) fn signal_name(s: i32) -> &'static str {
    match s {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        _ => "signal",
    }
}
