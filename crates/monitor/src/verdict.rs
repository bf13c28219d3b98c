//! Verdicts on reports of divergence: who stands with the leader, who against it, who is to blame.

mod crash;
mod loss;
mod remedy;

use remedy::Blame;

use crate::block_field;
use crate::checkpoint::{Charge, REPLICAS, VOTERS, is_about_order};
use crate::cores::CoreSet;
use crate::journal::Event;
use crate::options::OnDivergence;
use crate::report::words::why_text;
use crate::state::{GroupId, Monitor, ReportWords, Reported};
use anyhow::Result;
use geryon_abi::layout::{MAX_THREADS, Report, block_address};
use geryon_abi::record::{kind, kind_of};
use geryon_tracee::{Pid, core_of};
use geryon_vote::is_majority;
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// With fewer replicas no majority can name the one that is wrong.
const NAMING: usize = 3;

const NOBODY: &str = "no majority says who is wrong";

/// How the replicas of a group stand to a report.
#[derive(Clone, Copy, Debug)]
struct Ballot {
    /// All that have a say.
    total: usize,
    /// The leader and those that have passed the position with it.
    with_leader: usize,
    /// Those that reported the same.
    against_leader: usize,
    /// Those followers that have reported nothing, and have not come past it.
    silent: usize,
}

impl Ballot {
    /// Who is to blame for what `replica` reported; None as long as others may still say more.
    fn blame(self, replica: usize, leader: usize, expired: bool) -> Option<Blame> {
        if self.total >= NAMING && is_majority(self.with_leader, self.total) {
            Some(Blame::Follower(replica))
        } else if self.total >= NAMING && is_majority(self.against_leader, self.total) {
            Some(Blame::Leader(leader))
        } else if self.total < NAMING || self.silent == 0 || expired {
            Some(Blame::Unnamed)
        } else {
            None
        }
    }
}

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
        let Some(g) = self.groups.get(&id).filter(|g| g.takeover.is_none()) else {
            return;
        };
        let Some(first) = g.dispute.reports.first().cloned() else {
            return;
        };
        if self.is_replayed_again(id) || self.outcome.is_some() {
            return;
        }
        let leader = g.leader;
        let Some(ballot) = self.ballot(id, &first.report) else {
            return;
        };
        let total = ballot.total;
        let arbitrated = self.is_arbitrating(id);
        let expired = first.when.elapsed() > limit && !arbitrated;
        let Some(blame) = ballot.blame(first.replica, leader, expired) else {
            return;
        };
        let has_logged_nonsense = self.replicas.len() >= NAMING && self.has_logged_nonsense(id);
        let blame = match blame {
            // They have come upon it at different places, or one of them was taken for wrong before.
            Blame::Unnamed if has_logged_nonsense => Blame::Leader(leader),
            blame => blame,
        };
        if self.stops_for_race(&first) {
            let text = self.describe(id, &first, "it looks like a race", None);
            eprint!("{text}");
            return self
                .give_up("stopped before the unconfirmed output left, as --on-race stop says");
        }
        let charge = match blame {
            Blame::Follower(_) => Charge::Proven,
            _ if has_logged_nonsense => Charge::Proven,
            _ => self.charge_against_leader(id, is_about_order(&first)),
        };
        if charge == Charge::Later {
            return;
        }
        if blame == Blame::Unnamed && self.is_arbitrable(id) {
            return;
        }
        let is_open = blame == Blame::Unnamed || charge == Charge::Doubtful;
        if is_open
            && let Some(verdict) = self.is_race(id, &first)
            && self.goes_on_from_race(id, verdict)
        {
            return;
        }
        let is_alone = matches!(blame, Blame::Leader(_));
        let blame = match blame {
            Blame::Leader(_) if charge == Charge::Doubtful => Blame::Unnamed,
            blame => blame,
        };
        let blame = match blame {
            // Who is left may be the accomplices of who is wrong.
            _ if arbitrated && total < VOTERS => Blame::Unnamed,
            blame => blame,
        };
        let left = if arbitrated { REPLICAS } else { total - 1 };
        let differ = match charge {
            Charge::Doubtful if is_alone => {
                format!("of {total} replicas the leader stands alone, which may be a race")
            }
            Charge::Doubtful => format!("{total} replicas differ, which may be a race"),
            _ => format!("{total} replicas differ, and {NOBODY}"),
        };
        let advice = match charge {
            Charge::Doubtful => self.advice_on_race(),
            _ => self.advice(arbitrated),
        };
        let (verdict, consequence) = match blame {
            Blame::Follower(r) => (
                format!("replica {} of {total} is outvoted", r + 1),
                match left {
                    1 => "going on with 1 replica".to_owned(),
                    _ => format!("going on with {left} replicas"),
                },
            ),
            Blame::Leader(r) => (
                format!("replica {} (the leader) of {total} is outvoted", r + 1),
                "another one takes over".to_owned(),
            ),
            Blame::Unnamed if self.options.on_divergence == OnDivergence::Leader => {
                (differ, String::new())
            }
            Blame::Unnamed => (
                differ,
                format!("stopped before the unconfirmed output left; {advice}"),
            ),
        };
        let outvoted = match blame {
            Blame::Follower(r) | Blame::Leader(r) => Some(r),
            Blame::Unnamed => None,
        };
        let cores = outvoted.map_or_else(CoreSet::new, |r| self.cores_at(id, r, &first));
        let text = self.describe(id, &first, &verdict, outvoted);
        eprint!("{text}");
        let why = format!("{verdict}: {}", why_text(first.report.why));
        self.console.journal.tell(&Event::FaultSeen {
            replica: outvoted,
            cores: cores.clone(),
            why,
        });
        match outvoted {
            Some(r) => self.failed_on(r, &cores),
            None if consequence.is_empty() => {
                let g = self.groups.get(&id);
                let against = g
                    .iter()
                    .flat_map(|g| g.dispute.reports.iter().map(|r| r.replica));
                let against: BTreeSet<usize> = against.collect();
                return self.believe(leader, against.into_iter().collect());
            }
            None => {}
        }
        self.remedy(blame, &consequence);
        if let Some(r) = outvoted.filter(|_| arbitrated) {
            self.is_arbitrated(r);
        }
        match blame {
            Blame::Follower(_) if is_about_order(&first) => self.note_race(false),
            Blame::Follower(replica) => self.running.races.is_outvoted(replica, Instant::now()),
            Blame::Leader(_) | Blame::Unnamed => {}
        }
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

    /// What to try where nobody could be named.
    fn advice(&self, arbitrated: bool) -> &'static str {
        if arbitrated {
            "the fault is older than the last checkpoint, or the program does not repeat itself: try again, or run with -n 3"
        } else if self.options.replicas as usize >= NAMING && self.is_serial() {
            "try again, or with --on-divergence leader to go on all the same"
        } else if self.options.replicas as usize >= NAMING {
            self.advice_on_race()
        } else if self.checkpoints.is_some() {
            "there was no checkpoint at that moment: try a shorter --checkpoint, or run with -n 3"
        } else {
            "run with -n 3 to name the faulty replica, with --checkpoint to have two named, too, or with --on-divergence leader to go on all the same"
        }
    }

    /// What to try where the leader may be right, alone against all.
    pub(crate) fn advice_on_race(&self) -> &'static str {
        if self.checkpoints.is_some() {
            "the log could not be replayed: try a shorter --checkpoint, or --order serial, which repeats races; geryon discover finds where they are"
        } else {
            "with --checkpoint the log is replayed to find out whether it is, and --order serial repeats races; geryon discover finds where they are"
        }
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

#[cfg(test)]
mod tests {
    use super::{Ballot, Blame};

    fn blame(total: usize, with_leader: usize, against_leader: usize) -> Option<Blame> {
        let silent = total - with_leader - against_leader;
        let ballot = Ballot {
            total,
            with_leader,
            against_leader,
            silent,
        };
        ballot.blame(7, 0, false)
    }

    #[test]
    fn a_majority_names_the_one_that_is_wrong() {
        assert_eq!(blame(3, 2, 1), Some(Blame::Follower(7)));
        assert_eq!(blame(3, 1, 2), Some(Blame::Leader(0)));
        assert_eq!(blame(5, 3, 1), Some(Blame::Follower(7)));
        assert_eq!(blame(5, 2, 2), None);
    }

    #[test]
    fn two_name_nobody() {
        assert_eq!(blame(2, 1, 1), Some(Blame::Unnamed));
    }

    #[test]
    fn without_a_majority_there_is_a_limit() {
        assert_eq!(blame(3, 1, 1), None);
        let ballot = Ballot {
            total: 3,
            with_leader: 1,
            against_leader: 1,
            silent: 1,
        };
        assert_eq!(ballot.blame(7, 0, true), Some(Blame::Unnamed));
        let all_spoke = Ballot {
            silent: 0,
            ..ballot
        };
        assert_eq!(all_spoke.blame(7, 0, false), Some(Blame::Unnamed));
        let two_and_two = Ballot {
            total: 4,
            with_leader: 2,
            against_leader: 2,
            silent: 0,
        };
        assert_eq!(two_and_two.blame(7, 0, false), Some(Blame::Unnamed));
    }
}
