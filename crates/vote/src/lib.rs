//! Verdicts, from what is known of replicas to what follows. Pure: no clock but a time that is given, no system call.
//!
//! - [`Difference`]: a follower has reported that it differs. [`Crash`]: a replica has got a fatal signal.
//! - [`Loss`]: a replica is gone or must go. [`remedy()`]: what a verdict does to the run.
//! - [`Case`]: may a majority against the leader be believed? [`Races`], [`race::descends`]: does the program race?
//! - [`TakenOut`], [`due`], [`Failed`], [`Budget`]: a replica that was taken out is made anew, or done without.
//!
//! Whoever knows the facts puts them into one of these, asks it, and does what it says: the monitor, which reads them in the replicas'
//! memory, and the simulator in `tests/simulate`, which makes them up and knows who is wrong.
//!
//! Below is the simplest of them: what N replicas recorded at one position of one thread group, to a verdict.
//!
//! # What counts as a vote
//!
//! | record | why it is one |
//! | --- | --- |
//! | [`Vote::Digest`] | the call the replica is about to make: number, arguments, content of its in-buffers |
//! | [`Vote::Crash`], [`Vote::Exit`] | a replica that dies where the others go on votes against itself; when all die alike, the program is what dies |
//! | [`Vote::Missing`] | the watchdog ran out before the replica came: a vote against that replica, and never a vote *for* anything |
//!
//! # The rule
//!
//! A verdict needs an absolute majority: more than half of **all** replicas,
//! those that are missing included, must have recorded the same. A relative
//! majority (two alike of five) is not enough, since the three others may be the
//! healthy ones that a race has driven apart. Two replicas can therefore only
//! agree or not; three and more can name the outvoted.
//!
//! That several replicas are missing is no agreement among them: they may be slow
//! for different reasons. So missing replicas can be outvoted but cannot outvote.
//!
//! # Sources
//!
//! Section 6 of the design. The papers it unifies:
//!
//! - Replicant (Pool, 2007, section 3.3): an output leaves when a majority of
//!   replicas has *confirmed* it, that is, produced it independently. [`confirmed`]
//!   is that test; it does not wait for the slow ones.
//! - ELK Herder (Pester, 2014): absolute majority or stop, and a watchdog verdict
//!   once a majority has arrived. It also kills a minority that has arrived alone;
//!   Geryon does not, for the reason above, and says [`Verdict::NoMajority`].
//! - RomainMT (Döbel and Härtig): only the erroneous thread group is compared,
//!   since the others were stopped at arbitrary points. So one position of one
//!   group is all that is handed to [`judge`].
#![forbid(unsafe_code)]

mod ballot;
mod budget;
mod charge;
pub mod crash;
mod difference;
pub mod loss;
mod policy;
pub mod race;
mod remedy;
mod replace;
pub mod sentence;

pub use ballot::{Ballot, Blame, NAMING};
pub use budget::Budget;
pub use charge::{Case, Charge, Found};
pub use crash::{Crash, Crashed};
pub use difference::{Difference, PAIR, Ruling, VOTERS, Verdict as Spoken};
pub use loss::{Loss, Settlement};
pub use policy::{OnDivergence, OnRace, Replacements};
pub use race::Races;
pub use remedy::{Remedy, remedy};
pub use replace::{AGAIN, DESCENDS, Due, Failed, GIVE_UP, Sequel, TakenOut, Then, due};

use std::fmt;

/// Names a replica; stable for its life, and never given to its replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaId(pub u32);

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What one replica did at the position under vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vote {
    /// It arrived with a call of this digest.
    Digest(u64),
    /// It died of this signal.
    Crash(i32),
    /// It exited with this code.
    Exit(i32),
    /// It had not arrived when the deadline passed.
    Missing,
}

/// One replica's vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whose vote it is.
    pub replica: ReplicaId,
    /// What that replica did.
    pub vote: Vote,
}

impl Record {
    /// The record of `replica`, by number.
    pub fn new(replica: u32, vote: Vote) -> Self {
        Record {
            replica: ReplicaId(replica),
            vote,
        }
    }
}

/// What the vote makes of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every replica recorded this.
    Agree(Vote),
    /// More than half recorded the same, the others did not.
    Outvoted {
        /// What the majority recorded; never [`Vote::Missing`].
        majority: Vote,
        /// The replicas that did not, ascending; never empty.
        minority: Vec<ReplicaId>,
    },
    /// No record is shared by more than half: nobody can be named.
    NoMajority,
}

/// Judges the records of **all** replicas at one position. The order of the
/// records has no influence.
///
/// ```
/// use geryon_vote::{judge, Record, ReplicaId, Verdict, Vote};
///
/// let verdict = judge(&[
///     Record::new(0, Vote::Digest(7)),
///     Record::new(1, Vote::Crash(11)),
///     Record::new(2, Vote::Digest(7)),
/// ]);
/// let minority = vec![ReplicaId(1)];
/// assert_eq!(verdict, Verdict::Outvoted { majority: Vote::Digest(7), minority });
/// ```
///
/// # Panics
///
/// When a replica appears twice: it would vote twice.
pub fn judge(records: &[Record]) -> Verdict {
    let Some(majority) = confirmed(records, records.len()) else {
        return Verdict::NoMajority;
    };
    let mut minority: Vec<ReplicaId> = records
        .iter()
        .filter(|r| r.vote != majority)
        .map(|r| r.replica)
        .collect();
    if minority.is_empty() {
        return Verdict::Agree(majority);
    }
    minority.sort_unstable();
    Verdict::Outvoted { majority, minority }
}

/// The vote that more than half of `replicas` share already, whatever those that
/// are not among `arrived` will record; `None` while there is no such vote.
///
/// A result never changes when further records arrive, so an output may leave as
/// soon as there is one.
///
/// # Panics
///
/// When a replica appears twice, or more have arrived than there are.
pub fn confirmed(arrived: &[Record], replicas: usize) -> Option<Vote> {
    assert!(
        arrived.len() <= replicas,
        "{} records of {replicas} replicas",
        arrived.len()
    );
    assert_distinct(arrived);
    arrived
        .iter()
        .map(|record| record.vote)
        .filter(|vote| *vote != Vote::Missing)
        .find(|vote| is_majority(arrived.iter().filter(|r| r.vote == *vote).count(), replicas))
}

/// Whether `votes` are more than half of `replicas`.
pub fn is_majority(votes: usize, replicas: usize) -> bool {
    votes > replicas / 2
}

fn assert_distinct(records: &[Record]) {
    for (i, record) in records.iter().enumerate() {
        let again = records[..i]
            .iter()
            .any(|earlier| earlier.replica == record.replica);
        assert!(!again, "replica {} votes twice", record.replica);
    }
}

#[cfg(test)]
mod tests;
