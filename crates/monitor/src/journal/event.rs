//! What is told of a run, one line of the journal each.

use super::Totals;
use crate::cores::CoreSet;
use serde::Serialize;

/// What happened. Replicas are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The program's exec: its replicas are let go. Time counts from here.
    Start {
        /// CLOCK_MONOTONIC at that moment.
        clock_us: u64,
        /// Their processes, the leader's first.
        pids: Vec<i32>,
    },
    /// A fault was made (`--fault`).
    FaultInjected {
        /// In which replica.
        replica: usize,
        /// What was hit.
        target: String,
    },
    /// Something went wrong at a place that a test has chosen (`--fail-at`).
    PointFailed {
        /// Its name.
        point: &'static str,
        /// Whose it is, if it is in an agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        replica: Option<usize>,
    },
    /// A fault could not be made.
    FaultMissed {
        /// In which replica it should have been.
        replica: usize,
        /// Why not.
        why: String,
    },
    /// There is a verdict: a replica differs, crashed, is lost or stuck.
    FaultSeen {
        /// Which; None when no majority says who is wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        replica: Option<usize>,
        /// On which cores it ran.
        #[serde(skip_serializing_if = "CoreSet::is_empty")]
        cores: CoreSet,
        /// In one sentence.
        why: String,
    },
    /// Replicas differ, no majority says who is wrong, and the leader is believed
    /// (`--on-divergence leader`).
    LeaderBelieved {
        /// Who leads.
        replica: usize,
        /// Who is taken out.
        against: Vec<usize>,
    },
    /// `geryon ctl` has asked for something, and it is done.
    Asked {
        /// For what.
        what: String,
    },
    /// The program is about to have a second thread, and its threads run in parallel from there on.
    Clocks,
    /// All went on from the leader's state, in serial order instead of with clocks.
    Serial {
        /// Why.
        why: String,
        /// How long that took.
        took_us: u64,
    },
    /// A copy follows again behind such a change that the program was the cause of.
    Followed {
        /// Which.
        replica: usize,
        /// Of whom.
        source: usize,
        /// Without it for so long.
        total_us: u64,
    },
    /// A replica was taken out.
    Dropped {
        /// Which.
        replica: usize,
    },
    /// A replica was made anew.
    Replaced {
        /// Which.
        replica: usize,
        /// Of whom it is a copy.
        source: usize,
        /// That one leads, too.
        source_leads: bool,
        /// How long its source stood still.
        pause_us: u64,
        /// Since it was found missing, or free again after a takeover.
        total_us: u64,
        /// Its process in the group that goes on for longest: that of the program that was launched.
        #[serde(skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    /// A replica that was taken out will not be replaced.
    GivenUp {
        /// Which.
        replica: usize,
        /// On which cores it ran last.
        cores: CoreSet,
        /// Why not.
        why: String,
    },
    /// A replica's new copy shares no page with its source any more that the program may write
    /// (`--eager-copy`).
    Unshared {
        /// Which.
        replica: usize,
        /// That were made its own.
        bytes: u64,
        /// That could not be.
        left: u64,
        /// How long that took, while it ran.
        took_us: u64,
    },
    /// A replica's new copy keeps away from cores on which it failed again and again.
    Moved {
        /// Which.
        replica: usize,
        /// Where it does not run any more.
        from: CoreSet,
        /// Where it may run.
        to: CoreSet,
    },
    /// A replica fails again and again wherever it may run.
    NoOtherCore {
        /// Which.
        replica: usize,
        /// Where it failed.
        cores: CoreSet,
    },
    /// A follower has become the leader.
    Promoted {
        /// Which.
        replica: usize,
        /// Its process.
        pid: i32,
        /// Since the former leader was found missing.
        total_us: u64,
    },
    /// What the program has stored in files that it maps to be shared and writable could not be compared.
    NotCompared {
        /// What, and why not.
        what: String,
    },
    /// Copies of both replicas sleep from now on; or, with more than two whose threads run in parallel, one of the leader, which
    /// others have come to.
    Checkpoint {
        /// Words that the log had had by then.
        position: u64,
        /// How long the leader stood still.
        pause_us: u64,
    },
    /// Two replicas differ, and their sleeping copies were woken.
    Rollback {
        /// How old the copies are.
        age_ms: u64,
    },
    /// The copies have said who is right.
    Arbitrated {
        /// Who is wrong.
        outvoted: usize,
        /// How long they needed for it.
        took_us: u64,
        /// How old they were when they were woken.
        age_ms: u64,
    },
    /// A follower differed from its leader; its copy, which has replayed the log in the order of time, does not.
    RaceReplayed {
        /// Which.
        replica: usize,
        /// How often the log was replayed.
        tries: u32,
        /// How long that took.
        took_us: u64,
        /// It differed in the order of operations on memory that threads share. If not, it may have been a fault.
        sure: bool,
        /// In what.
        why: String,
    },
    /// The run was stopped, with a report.
    Stopped {
        /// Why.
        why: String,
    },
    /// The run is over.
    End {
        /// What happened in it.
        #[serde(flatten)]
        totals: Totals,
        /// Words in the log of the first process.
        events: u64,
        /// Geryon's exit status; 128 and the signal's number if the program died of one.
        status: i32,
    },
}
