//! What is learned of a thread that spins in code that does not show it: an instruction of its loop is counted from now on
//! in all replicas, and the thread looks there by itself who waits for its turn. All of them stand at the same point when
//! that begins.

use crate::code::{SENTRY_BYTES, sentry_pages};
use crate::maps::AddressSpace;
use crate::meeting::{Meeting, Part};
use crate::setup::map_area;
use crate::state::Monitor;
use anyhow::Result;
use geryon_patch::{Emitted, Plan, learnable};
use geryon_tracee::Stopped;

/// So many bytes behind the point the instruction is looked for.
const NEAR: usize = 64;

impl Monitor {
    /// The threads have met at a point where they spin.
    ///
    /// # Errors
    /// When one of them is gone.
    pub(super) fn learn_place(&mut self, m: &Meeting) -> Result<()> {
        let point = m.point();
        let rip = Stopped(point.tid).regs()?.rip;
        let named = |part: Part, at: u64| part.layout().place(point.layout().name(at));
        let mut code = [0; NEAR];
        let memory = self.memory(point.pid)?;
        // (A mapping may end there.)
        let read = [NEAR, NEAR / 4]
            .into_iter()
            .find(|n| memory.read(rip, &mut code[..*n]).is_ok());
        let Some((before, len)) = read.and_then(|n| learnable(&code[..n])) else {
            return Ok(());
        };
        let (site, code) = (rip + before as u64, &code[before..before + len]);
        let mut spaces = Vec::new();
        for part in &m.parts {
            let space = AddressSpace::open(part.pid)?;
            let at = named(*part, site);
            // What a program makes itself it may look at, and change.
            if space.code(at, at + 1)?.is_empty() {
                return Ok(());
            }
            spaces.push((*part, space));
        }
        let is_free = |page: &u64| {
            let mut all = spaces.iter();
            all.all(|(part, space)| space.is_free(named(*part, *page), SENTRY_BYTES))
        };
        let Some(page) = sentry_pages(site).find(is_free) else {
            return Ok(());
        };
        let Ok(plan) = Plan::learned(point.layout().name(site), code) else {
            return Ok(());
        };
        let mut made: Vec<(Part, u64, Emitted)> = Vec::new();
        for part in &m.parts {
            let (site, page) = (named(*part, site), named(*part, page));
            let bias = site.wrapping_sub(point.layout().name(site));
            let Ok(emitted) = plan.emit(bias, page, &self.kit.image.entries, None) else {
                return Ok(());
            };
            if !map_area(Stopped(part.tid), &self.kit.image, page, SENTRY_BYTES)? {
                return Ok(());
            }
            made.push((*part, page, emitted));
        }
        // From here on in all of them: who cannot be written to is gone.
        let group = self.membership(point.pid).map(|(id, _)| id);
        for (part, page, emitted) in made {
            if let Ok(memory) = self.memory(part.pid) {
                let _ = memory.write(page, &emitted.trampolines);
                for (at, bytes) in &emitted.writes {
                    let _ = memory.write(*at, bytes);
                }
            }
            if let Some(g) = group.and_then(|id| self.groups.get_mut(&id)) {
                g.areas.add_pcs(page, emitted.pc_map);
            }
        }
        Ok(())
    }
}
