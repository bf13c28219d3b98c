//! How far a takeover has come, for whoever watches over it.

use super::Takeover;
use geryon_tracee::Pid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The former leader's threads come to their ends.
    Dying,
    /// The successor replays what is left.
    Replaying,
    /// The successor was asked.
    Asked,
}

impl Takeover {
    /// What the former leader has logged last is in doubt: it is cut off where the survivors stand.
    pub(crate) fn distrust(&mut self) {
        self.outvoted = true;
    }

    /// Nobody gets on who is to replay the log's end: it says something that cannot be, and is cut off
    /// where the survivors stand.
    pub(crate) fn doubts(&mut self) {
        self.outvoted |= self.stage == Stage::Replaying;
    }

    /// The successor is in its process group from now on.
    pub(crate) fn joins(&mut self) {
        self.session.joined = true;
    }

    /// Is it?
    pub(super) fn is_in_group(&self) -> bool {
        self.session.joined
    }

    /// The process group that the program's process is in, if the successor is in none yet.
    pub(crate) fn group(&self) -> Option<Pid> {
        (!self.session.joined).then_some(self.session.group)
    }

    /// The session that the lost leader was in.
    pub(crate) fn session(&self) -> Pid {
        self.session.id
    }

    /// Was the successor asked, and is not in its process group yet?
    pub(super) fn is_late_for_group(&self) -> bool {
        self.stage == Stage::Asked && !self.session.joined
    }

    /// How many stages are over.
    pub(crate) fn stages_over(&self) -> u64 {
        self.stage as u64 + u64::from(self.told)
    }

    /// Processor time that the former leader had used, as long as all follow still.
    pub(crate) fn former_ticks(&self) -> Option<u64> {
        (self.stage != Stage::Asked).then_some(self.used)
    }

    /// What it waits for, for messages.
    pub(crate) fn awaits(&self) -> &'static str {
        match self.stage {
            Stage::Dying => "its threads are to end",
            Stage::Replaying if self.outvoted => "its log is to be cut off where all stand",
            Stage::Replaying => "its log is to be replayed to the end",
            Stage::Asked if !self.told => "a thread is to come to a call and lead",
            Stage::Asked => "what it had under way is to be completed",
        }
    }
}
