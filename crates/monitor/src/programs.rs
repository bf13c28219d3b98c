//! Replicas of different programs (`--variant`): another release or another build of the one that leads.

use crate::options::Options;
use crate::setup::program::Program;
use anyhow::{Context, Result};
use geryon_tracee::Pid;

/// What each replica runs.
pub struct Programs {
    /// The leader's.
    first: Program,
    /// The followers', in their order.
    others: Vec<Program>,
}

impl Programs {
    /// None: all run the same.
    ///
    /// # Errors
    /// When one of them cannot be put in the place of the first.
    pub fn of(options: &Options) -> Result<Option<Programs>> {
        if options.others.is_empty() {
            return Ok(None);
        }
        let first = Program::read(&options.program).context("--variant")?;
        let others = options.others.iter().map(|path| {
            let other = Program::read(path)?;
            other.can_replace(&first)?;
            Ok(other)
        });
        let others = others.collect::<Result<_>>().context("--variant")?;
        Ok(Some(Programs { first, others }))
    }

    /// The leader's program, and what this replica has instead, where it is that program which this process has executed.
    pub fn instead(&self, leader: Pid, replica: usize) -> Option<(&Program, &Program)> {
        let other = self.others.get(replica.checked_sub(1)?)?;
        self.is_first(leader).then_some((&self.first, other))
    }

    /// Has this process executed the program of which replicas have different ones?
    pub fn is_first(&self, pid: Pid) -> bool {
        self.first.is_of(pid)
    }
}
