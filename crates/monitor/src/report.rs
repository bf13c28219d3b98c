//! What a person is told about a divergence: who differs, where, and both sides next to each other.

mod backtrace;
mod difference;
pub mod json;
mod refused;
mod sites;
mod stuck;
pub mod variants;
pub mod words;

use crate::state::{GroupId, Monitor, ReportWords, Reported};
use crate::watch::View;
use geryon_abi::layout::why;
use geryon_abi::record::{self, kind};
use geryon_abi::row::{Arg, Kind};
use geryon_abi::table;
use geryon_tracee::{Pid, RemoteMemory};
use json::{Side, Written};
use std::fmt::Write as _;
use words::why_text;

/// Bytes shown of a path.
const PATH_BYTES: usize = 80;
/// Bytes shown of a buffer.
const SHOWN_BYTES: usize = 24;

/// One side of a difference, before it is read: whose, what it recorded, where it stands.
struct Party {
    replica: usize,
    role: &'static str,
    record: [u64; 8],
    pid: Option<Pid>,
    tid: Option<Pid>,
}

/// Has the leader, whose thread is at `pos`, not waited at the call that is reported?
fn has_gone_on(report: &ReportWords, pos: u64) -> bool {
    /// The record of a call's beginning: itself, the digest, six arguments.
    const BEGIN_WORDS: u64 = 8;
    record::kind_of(report.theirs[0]) == kind::BEGIN && pos > report.pos + BEGIN_WORDS
}

impl Monitor {
    /// Say something that needs saying once.
    pub(crate) fn say(&mut self, text: &str) {
        self.console.say(text);
    }

    /// The text of a divergence, and the JSON report.
    pub(crate) fn describe(
        &mut self,
        id: GroupId,
        r: &Reported,
        verdict: &str,
        outvoted: Option<usize>,
    ) -> String {
        let w = r.report;
        let leader = self.groups.get(&id).map_or(0, |g| g.leader);
        let leader_pid = self.groups.get(&id).and_then(|g| g.members[leader].pid);
        let pid = self.threads.get(&r.tid).map_or(0, |t| t.pid);
        let mut text = format!(
            "geryon: divergence: {verdict}\n\
             geryon:   thread group {}, position {}: {}\n",
            w.slot,
            w.pos,
            why_text(w.why)
        );
        let mut out = Written {
            verdict: verdict.to_owned(),
            cause: why_text(w.why).to_owned(),
            thread_group: w.slot,
            position: w.pos,
            outvoted: outvoted.into_iter().collect(),
            ..Written::default()
        };
        let theirs = Party {
            replica: leader,
            role: "leader",
            record: w.theirs,
            pid: leader_pid,
            tid: leader_pid.and_then(|p| self.view(p, w.slot)).map(|v| v.tid),
        };
        let ours = Party {
            replica: r.replica,
            role: "follower",
            record: w.ours,
            pid: Some(pid),
            tid: Some(r.tid),
        };
        for party in [theirs, ours] {
            let side = self.side(&party, party.pid == Some(pid), w.slot);
            text.push_str(&side.text());
            out.replicas.push(side);
        }
        if let (Some(lp), true) = (leader_pid, w.why == why::DIGEST) {
            out.first_difference = self.first_difference(lp, pid, &w);
            if let Some(d) = &out.first_difference {
                let _ = writeln!(text, "geryon:   first difference: {}", d.text());
            }
        }
        if leader_pid
            .and_then(|p| self.view(p, w.slot))
            .is_some_and(|v| has_gone_on(&w, v.pos))
        {
            text.push_str("geryon:   (a majority has confirmed this; the leader has gone on, and its memory and stack are those of now)\n");
        }
        if let Some(v) = self.view(pid, w.slot) {
            let sites = self.sites(pid);
            out.last_events = self.last_events(&sites, &v);
            text.push_str("geryon:   last events of the thread group, the oldest first:\n");
            for event in &out.last_events {
                let _ = writeln!(text, "geryon:       {event}");
            }
        }
        if self.looks_like_race(pid, &w) {
            text.push_str("geryon:   looks like a race in the program (another operation came next), not like a flipped bit\n");
        }
        let may_race = w.why == why::DIGEST || self.looks_like_race(pid, &w);
        if may_race && self.threads_of(pid) > 1 && !self.is_serial() {
            text.push_str("geryon:   where threads meet by plain loads, --order clocks repeats those that it knows: try geryon discover, which finds more, or --order serial\n");
        }
        out.message.clone_from(&text);
        self.write_report(&out);
        text
    }

    /// The thread of a group in one process.
    fn view(&mut self, pid: Pid, slot: u32) -> Option<View> {
        self.views(pid).into_iter().find(|v| v.slot == slot)
    }

    /// Another operation than a flipped bit would cause, where threads may race.
    fn looks_like_race(&self, pid: Pid, w: &ReportWords) -> bool {
        matches!(w.why, why::KIND | why::SITE | why::OUTCOME) && self.threads_of(pid) > 1
    }

    fn side(&mut self, party: &Party, reporter: bool, slot: u32) -> Side {
        let arguments = party
            .pid
            .map_or_else(Vec::new, |p| self.arguments(p, &party.record, reporter));
        let backtrace = match party.tid {
            Some(t) => self.trace_in_agent(t, party.pid.unwrap_or(0), slot),
            None => Vec::new(),
        };
        let sites = self.sites(party.pid.unwrap_or(0));
        Side {
            replica: party.replica,
            role: party.role.into(),
            operation: self.operation(&sites, party.record[0]),
            arguments,
            backtrace,
        }
    }

    /// The arguments of a call as text. Followers report theirs; the leader logs them for outputs
    /// only.
    fn arguments(&mut self, pid: Pid, words: &[u64; 8], reporter: bool) -> Vec<String> {
        let k = record::kind_of(words[0]);
        if !matches!(k, kind::CALL | kind::BEGIN | kind::MEMORY) {
            return words[1..4].iter().map(|w| format!("{w:#x}")).collect();
        }
        let Some(row) = table::row(u64::from(record::short_of(words[0]))) else {
            return Vec::new();
        };
        if k != kind::BEGIN && !reporter {
            return vec![format!("digest {:#018x}", words[1])];
        }
        let Ok(m) = self.memory(pid) else {
            return Vec::new();
        };
        row.args
            .iter()
            .zip(&words[2..])
            .map(|(a, v)| format!("{}={}", a.name, argument(m, a, *v)))
            .collect()
    }
}

/// One argument as text.
fn argument(m: &RemoteMemory, a: &Arg, v: u64) -> String {
    match a.kind {
        Kind::Fd => format!("{}", v as i32),
        Kind::Path if v != 0 => {
            format!("{:?}", String::from_utf8_lossy(&m.string(v, PATH_BYTES)))
        }
        Kind::In(_) | Kind::SockaddrIn(_) if v != 0 => {
            let mut b = [0u8; SHOWN_BYTES];
            if m.read(v, &mut b).is_ok() {
                format!("{v:#x} {:?}...", String::from_utf8_lossy(&b))
            } else {
                format!("{v:#x}")
            }
        }
        Kind::Int | Kind::Int32 => format!("{v}"),
        _ => format!("{v:#x}"),
    }
}
