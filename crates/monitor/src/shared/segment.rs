//! Segments of System V that the program attaches: each replica has its own. What the kernel keeps is filled when the
//! program has none attached any more.

use super::LATER;
use crate::image::memfd;
use crate::objects::{Object, Segment};
use crate::options::SharedFiles;
use crate::state::Monitor;
use anyhow::{Context, Result, bail};
use geryon_tracee::Pid;

impl Monitor {
    /// A leader is about to attach a segment, see `rpc::ATTACH`.
    pub(crate) fn attach(&mut self, pid: Pid, id: i32, flags: i32) -> i64 {
        let is_allowed = match self.options.shared_files {
            SharedFiles::Map => true,
            SharedFiles::Memory => self.takes_turns(),
            SharedFiles::Refuse => false,
        };
        let refused = -i64::from(libc::EACCES);
        if !is_allowed {
            self.say(
                "shmat is refused (EACCES): segments are attached with --order serial, and unless it is with \
                 --shared-files refuse or --variants",
            );
            return refused;
        }
        self.sweep(pid);
        let found = self
            .shared
            .objects
            .iter()
            .position(|o| o.segment_id() == Some(id));
        let at = match found {
            Some(at) => at,
            None if self.is_replacing() => return LATER,
            None => match self.make_segment(pid, id) {
                Ok(()) => self.shared.objects.len() - 1,
                Err(e) => {
                    self.say(&format!("shmat is refused (EACCES): {e:#}"));
                    return refused;
                }
            },
        };
        let o = &mut self.shared.objects[at];
        o.owners.insert(pid);
        o.is_open |= flags & libc::SHM_RDONLY == 0;
        o.promised += 1;
        i64::from(o.number)
    }

    fn make_segment(&mut self, pid: Pid, id: i32) -> Result<()> {
        if let Some(why) = self.cannot_share((0, 0)) {
            bail!("{why}");
        }
        let segment = Segment::attach(id)?;
        let file = memfd("geryon-segment")?;
        segment.save_to(&file).context("a copy of the segment")?;
        let (group, _) = self.membership(pid).context("it belongs to no group")?;
        let leader = self.groups[&group].leader;
        let number = self.shared.next_number();
        let name = format!("segment {id} of System V");
        let mut made = Object::of_file(number, file, name, pid, self.replicas.len(), leader)?;
        made.of_segment(segment);
        self.shared.objects.push(made);
        Ok(())
    }
}
