//! What a lost leader's last calls have put into files that its program has mapped, and of which nobody was told: the
//! successor is given those calls as made, and what it has of the files becomes their content.

use super::Takeover;
use super::undo::under_way;
use crate::descriptor::{identity_of, position_of, written};
use crate::state::Monitor;
use anyhow::{Context, Result, anyhow};
use geryon_abi::table::content::{Changed, changed};

impl Monitor {
    /// It comes into what the replicas have of these files. (The lost leader's processes stand at their ends.)
    pub(super) fn mirror_last_calls(&self, t: &Takeover) -> Result<()> {
        for l in &t.estate.legacy {
            let Some(call) = l.call.filter(|c| c.result >= 0) else {
                continue;
            };
            let memory = t.estate.memory_of(l).context("its memory is gone")?;
            let (_, args) = under_way(memory, l.slot, call).map_err(|e| anyhow!(e))?;
            let of = t.predecessor(Some(u64::from(l.slot)));
            let what = changed(
                u64::from(call.nr),
                &args,
                call.result as u64,
                |fd| position_of(of, fd).unwrap_or(u64::MAX),
                |at| memory.word(at).ok(),
            );
            let Some(what) = what else { continue };
            let written = match what {
                Changed::Length => None,
                Changed::Bytes { fd, at, len } => {
                    let identity = identity_of(of, fd).context("its descriptor is gone")?;
                    Some((identity, written(of, fd, at, len)))
                }
            };
            for o in &self.shared.objects {
                let is_it = written.filter(|(identity, _)| *identity == o.identity);
                let copied = o.set_length().and_then(|()| match is_it {
                    Some((_, (at, len))) => o.copy(at, len),
                    None => Ok(()),
                });
                copied.with_context(|| format!("{} cannot be copied", o.name))?;
            }
        }
        Ok(())
    }
}
