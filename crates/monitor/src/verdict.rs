//! Verdicts on reports of divergence: who stands with the leader, who against it, who is to blame.

mod crash;
mod loss;
mod remedy;

use crate::block_field;
use crate::checkpoint::is_about_order;
use crate::cores::CoreSet;
use crate::journal::Event;
use crate::report::words::why_text;
use crate::state::{GroupId, Monitor, ReportWords, Reported};
use anyhow::Result;
use geryon_abi::layout::{MAX_THREADS, Report, block_address};
use geryon_abi::record::{kind, kind_of};
use geryon_tracee::{Pid, core_of};
use geryon_vote::{Ballot, Blame, Difference, NAMING, Ruling, Spoken};
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Is the place of a report none where its replica can have come to? Once the leader is lost, what one
/// has read may be more than the log shows by then.
fn is_nowhere(report: &ReportWords, is_taken_over: bool, head: impl Fn(usize) -> u64) -> bool {
    let slot = report.slot as usize;
    slot >= MAX_THREADS || (!is_taken_over && report.pos >= head(slot))
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
            pos: m.word(at.wrapping_add(offset_of!(Report, pos) as u64))?,
            theirs: m.words(at.wrapping_add(offset_of!(Report, theirs) as u64))?,
            ours: m.words(at.wrapping_add(offset_of!(Report, ours) as u64))?,
        };
        let Some((group, replica)) = self.membership(pid) else {
            return Ok(());
        };
        if self.ends(group) {
            return Ok(());
        }
        if self.leads(group, replica) && !self.is_replaying(group) {
            self.broken(
                group,
                replica,
                "leads, but says that it differs from the log",
            );
            return Ok(());
        }
        if self.is_made_up(group, &report) {
            self.broken(group, replica, "has read what is not in the log");
            return Ok(());
        }
        if let Some(g) = self.groups.get_mut(&group) {
            g.dispute.reports.push(Reported {
                replica,
                tid,
                report,
                when: Instant::now(),
            });
        }
        self.judge_reports(group, Duration::MAX);
        Ok(())
    }

    /// Is the record that a follower differs from not in the log at all? One that waits for a record
    /// must not go on before it is there; its own damage says otherwise, not the leader's.
    fn is_made_up(&self, id: GroupId, report: &ReportWords) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        let head = |slot: usize| g.segment.ring(slot).head.load(Ordering::SeqCst);
        is_nowhere(report, g.takeover.is_some(), head)
    }

    /// Decide the oldest report of a group, if it can be decided.
    pub(crate) fn judge_reports(&mut self, id: GroupId, limit: Duration) {
        let Some((first, difference)) = self.oldest_report(id, limit) else {
            return;
        };
        let leader = difference.leader;
        let is_arbitrated = difference.is_arbitrating;
        match difference.rule() {
            // Who sleeps is asked when it is looked at checkpoints next.
            Ruling::Wait | Ruling::AskSleepers => {}
            Ruling::AskReplay => self.have_replayed(id),
            Ruling::StopForRace => {
                let text = self.describe(id, &first, "it looks like a race", None);
                eprint!("{text}");
                self.give_up("stopped before the unconfirmed output left, as --on-race stop says");
            }
            Ruling::Descend(why) => {
                self.goes_on_from_race(id, why);
            }
            Ruling::Believe(text, against) => {
                self.tell_verdict(id, &first, Blame::Unnamed, &text);
                self.believe(leader, against);
            }
            Ruling::Verdict(spoken) => self.speak(id, &first, &spoken, is_arbitrated),
        }
    }

    /// What is known of the oldest report of a group; None: there is none, or it is not to be judged now.
    fn oldest_report(&mut self, id: GroupId, limit: Duration) -> Option<(Reported, Difference)> {
        let g = self.groups.get(&id).filter(|g| g.takeover.is_none())?;
        let first = g.dispute.reports.first().cloned()?;
        let against: BTreeSet<usize> = g.dispute.reports.iter().map(|r| r.replica).collect();
        let leader = g.leader;
        if self.is_replayed_again(id) || self.outcome.is_some() {
            return None;
        }
        let ballot = self.ballot(id, &first.report)?;
        let of_order = is_about_order(&first);
        let case = self.case(id, of_order)?;
        let races = &self.running.races;
        let raced_lately = races.is_any(Instant::now());
        let other_outvoted = races.has_outvoted_other(first.replica, Instant::now());
        let is_asked = of_order && case.in_parallel && !raced_lately;
        let difference = Difference {
            ballot,
            reporter: first.replica,
            against: against.into_iter().collect(),
            leader,
            age: first.when.elapsed(),
            limit,
            is_arbitrating: self.is_arbitrating(id),
            is_arbitrable: self.is_arbitrable(id),
            is_nonsense: self.replicas.len() >= NAMING && self.has_logged_nonsense(id),
            contradict: is_asked && self.reports_contradict(id),
            raced_lately,
            other_outvoted,
            may_descend: self.may_descend(),
            has_checkpoints: self.checkpoints.is_some(),
            case,
            on_divergence: self.options.on_divergence,
            on_race: self.options.on_race,
        };
        Some((first, difference))
    }

    /// Tell a verdict, and do what follows from it.
    fn speak(&mut self, id: GroupId, first: &Reported, spoken: &Spoken, is_arbitrated: bool) {
        let cores = self.tell_verdict(id, first, spoken.blame, &spoken.text);
        let outvoted = spoken.blame.outvoted();
        if let Some(r) = outvoted {
            self.failed_on(r, &cores);
        }
        self.remedy(spoken.blame, &spoken.consequence);
        if let Some(r) = outvoted.filter(|_| is_arbitrated) {
            self.is_arbitrated(r);
        }
        if spoken.may_be_race {
            self.note_race(false);
        } else if let Blame::Follower(replica) = spoken.blame {
            self.note_outvoted(replica);
        }
    }

    /// Tell it. On which core runs who is outvoted?
    fn tell_verdict(
        &mut self,
        id: GroupId,
        first: &Reported,
        blame: Blame,
        verdict: &str,
    ) -> CoreSet {
        let outvoted = blame.outvoted();
        let cores = outvoted.map_or_else(CoreSet::new, |r| self.cores_at(id, r, first));
        let text = self.describe(id, first, verdict, outvoted);
        eprint!("{text}");
        let why = format!("{verdict}: {}", why_text(first.report.why));
        self.console.journal.tell(&Event::FaultSeen {
            replica: outvoted,
            cores: cores.clone(),
            why,
        });
        cores
    }

    /// A follower differed, and a copy of it that has replayed the log again does not.
    pub(crate) fn tell_race(&mut self, first: &Reported, tries: u32, took_us: u64) {
        let astray = first.replica;
        let sure = is_about_order(first);
        let what = if sure { "race" } else { "race or fault" };
        let r = &first.report;
        let pid = self.threads.get(&first.tid).map(|t| t.pid);
        let leaders = || self.groups.values().find_map(|g| g.leader_pid());
        let sites = self.sites(pid.or_else(leaders).unwrap_or(0));
        let [theirs, ours] = [r.theirs[0], r.ours[0]].map(|w| self.operation(&sites, w));
        eprintln!(
            "geryon: {what} in replica {}: replayed in the leader's order it agrees (replays: {tries}, {:.1} ms)\ngeryon:   thread group {}, position {}: {}, {} against {}",
            astray + 1,
            took_us as f64 / 1e3,
            r.slot,
            r.pos,
            why_text(r.why),
            theirs,
            ours
        );
        self.console.journal.tell(&Event::RaceReplayed {
            replica: astray,
            tries,
            took_us,
            sure,
            why: why_text(first.report.why).to_owned(),
        });
    }

    /// Is there no record in the log where a follower has found another one than its own? Then it is the
    /// log that is wrong, and whoever writes it.
    fn has_logged_nonsense(&self, id: GroupId) -> bool {
        let Some(g) = self.groups.get(&id) else {
            return false;
        };
        g.dispute.reports.iter().any(|r| {
            let word = g.segment.log_word(r.report.slot as usize, r.report.pos);
            !kind::exists(kind_of(word.load(Ordering::Acquire)))
        })
    }

    /// On which core the replica's thread runs that is at the place of the report.
    fn cores_at(&mut self, id: GroupId, replica: usize, reported: &Reported) -> CoreSet {
        let pid = self.groups.get(&id).and_then(|g| g.members[replica].pid);
        let views = pid.map_or_else(Vec::new, |p| self.views(p));
        let slot = reported.report.slot;
        let thread = views.iter().find(|v| v.slot == slot).map(|v| v.tid);
        thread.and_then(core_of).into_iter().collect()
    }

    /// Who has said what about the position of a report so far.
    fn ballot(&mut self, id: GroupId, report: &ReportWords) -> Option<Ballot> {
        let g = self.groups.get(&id)?;
        let (total, unborn) = (g.voters(), g.unborn());
        let against_leader = g
            .dispute
            .reports
            .iter()
            .filter(|r| r.report.at() == report.at() && r.report.ours == report.ours)
            .count();
        let silent: Vec<Pid> = g
            .followers()
            .filter(|(r, _)| g.dispute.reports.iter().all(|x| x.replica != *r))
            .map(|(_, pid)| pid)
            .collect();
        let ended = g.ended();
        let followers = silent.len();
        let passed = silent.iter().filter(|p| self.has_passed(**p, report));
        let passed = passed.count();
        Some(Ballot {
            total,
            with_leader: 1 + ended + passed,
            against_leader,
            silent: followers - passed + unborn,
        })
    }

    /// Has the process confirmed the record at the report's position?
    fn has_passed(&mut self, pid: Pid, report: &ReportWords) -> bool {
        let block = block_address(report.slot as usize);
        self.memory(pid)
            .and_then(|m| Ok(m.word(block + block_field!(verified))?))
            .is_ok_and(|p| p > report.pos)
    }
}
