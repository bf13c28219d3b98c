//! Whose turn it is among the processes of a replica that share memory: the monitor gives each replica the
//! memory that says so, tells it of processes that are gone, and opens it when the replica comes to lead.

use crate::block_field;
use crate::image::{fd_path, memfd};
use crate::segment::wake_half;
use crate::state::{GroupId, Monitor};
use anyhow::{Context, Result};
use geryon_abi::layout::block_address;
use geryon_abi::layout::commons::{
    COMMONS_BYTES, Commons, GONE, NOBODY, PLACES, ROWS, name, place_of, turn,
};
use geryon_tracee::Pid;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

/// One replica's, as the monitor sees it.
pub struct Common {
    file: File,
    base: *mut Commons,
}

impl Common {
    fn new(leads: bool) -> Result<Common> {
        let file = memfd("geryon-commons")?;
        file.set_len(COMMONS_BYTES)
            .context("sizing what processes have in common")?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                COMMONS_BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("mapping what processes share");
        }
        let new = Common {
            file,
            base: base.cast(),
        };
        let t = &new.get().turns;
        t.turn.store(
            if leads { turn::FREE } else { turn::SHUT },
            Ordering::SeqCst,
        );
        t.owner.store(NOBODY, Ordering::SeqCst);
        t.last.store(u64::from(NOBODY), Ordering::SeqCst);
        Ok(new)
    }

    fn get(&self) -> &Commons {
        // SAFETY: mapped for the life of self, and all of it is atomic.
        unsafe { &*self.base }
    }

    /// As another replica's, of which this one's processes are copies.
    fn copy_from(&self, of: &Common) {
        let (to, from) = (&self.get().turns, &of.get().turns);
        to.number
            .store(from.number.load(Ordering::SeqCst), Ordering::SeqCst);
        to.owner
            .store(from.owner.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn set_row(&self, row: usize, value: u64) {
        for word in &self.get().released[row] {
            if word.load(Ordering::Relaxed) != value {
                word.store(value, Ordering::SeqCst);
            }
        }
    }

    /// Everybody who waits is to look.
    fn wake(&self) {
        let t = &self.get().turns;
        wake_half(&t.turn);
        for p in &t.next[..PLACES] {
            p.events.fetch_add(1, Ordering::SeqCst);
            wake_half(&p.events);
        }
    }

    /// The processes of a group in this replica are gone.
    fn row_ends(&self, row: usize) {
        self.set_row(row, GONE);
        let t = &self.get().turns;
        let holder = turn::holder(t.turn.load(Ordering::SeqCst));
        let holder = holder.filter(|h| place_of(*h).is_some_and(|(r, _)| r == row));
        if let Some(owner) = holder {
            t.last.store(u64::from(owner), Ordering::SeqCst);
            t.last_pos.store(GONE, Ordering::SeqCst);
            t.turn.store(turn::FREE, Ordering::SeqCst);
        }
        self.wake();
    }
}

impl Drop for Common {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.base.cast(), COMMONS_BYTES as usize) };
    }
}

fn row_of(id: GroupId) -> usize {
    id as usize % ROWS
}

impl Monitor {
    /// A process joins the others of its replica that share memory, see `rpc::COMMONS`.
    pub(crate) fn common(&mut self, pid: Pid, path_at: u64) -> Result<i64> {
        let Some((id, replica)) = self.membership(pid) else {
            return Ok(-i64::from(libc::ESRCH));
        };
        self.have_common(id, replica)?;
        let Some(common) = self.commons.get(&replica) else {
            return Ok(-i64::from(libc::ENOMEM));
        };
        common.set_row(row_of(id), 0);
        if path_at != 0 {
            let mut path = fd_path(&common.file).into_bytes();
            path.push(0);
            self.memory(pid)?.write(path_at, &path)?;
        }
        Ok(row_of(id) as i64)
    }

    fn have_common(&mut self, id: GroupId, replica: usize) -> Result<()> {
        if !self.commons.contains_key(&replica) {
            let leads = self.leads(id, replica) && !self.has_takeovers();
            let new = Common::new(leads)?;
            self.commons.insert(replica, new);
        }
        Ok(())
    }

    /// A replica's process of a group is gone, or has left for another program.
    pub(crate) fn left_common(&self, id: GroupId, replica: usize) {
        if let Some(c) = self.commons.get(&replica) {
            c.row_ends(row_of(id));
        }
    }

    /// The replica was made anew, as a copy of another one none of whose processes shares memory.
    pub(crate) fn copy_common(&mut self, replica: usize, source: usize) -> Result<()> {
        self.commons.remove(&replica);
        if self.commons.contains_key(&source) {
            let new = Common::new(false)?;
            new.copy_from(&self.commons[&source]);
            self.commons.insert(replica, new);
        }
        Ok(())
    }

    /// All processes of a new leader have replayed what there is: their turns go on with whom the former
    /// leader has given the last one to, unless that thread has ended.
    pub(crate) fn open_commons(&mut self) {
        let leading = self
            .groups
            .values()
            .map(|g| g.leader)
            .find(|r| self.commons.contains_key(r));
        let Some(replica) = leading else { return };
        let t = &self.commons[&replica].get().turns;
        if t.turn.load(Ordering::SeqCst) != turn::SHUT {
            return;
        }
        let owner = t.owner.load(Ordering::SeqCst);
        let lives = place_of(owner).is_some_and(|(row, slot)| self.has_thread(replica, row, slot));
        let c = &self.commons[&replica];
        let t = &c.get().turns;
        t.waiting.store(0, Ordering::SeqCst);
        t.last.store(u64::from(owner), Ordering::SeqCst);
        let pos = place_of(owner).map_or(0, |(row, slot)| {
            c.get().released[row][slot].load(Ordering::SeqCst)
        });
        t.last_pos.store(pos, Ordering::SeqCst);
        let now = if lives {
            turn::taken_by(owner)
        } else {
            turn::FREE
        };
        t.turn.store(now, Ordering::SeqCst);
        c.wake();
    }

    /// Does the thread with this place still live in the replica?
    fn has_thread(&mut self, replica: usize, row: usize, slot: usize) -> bool {
        let of = self.groups.iter().find(|(id, _)| row_of(**id) == row);
        let Some(pid) = of.and_then(|(_, g)| g.members[replica].pid) else {
            return false;
        };
        let Ok(m) = self.memory(pid) else {
            return false;
        };
        let block = block_address(slot);
        let word = |field: u64| m.word(block + field).unwrap_or(0);
        debug_assert!(name(row as u32, slot as u32) != NOBODY);
        word(block_field!(this)) != 0 && word(block_field!(free)) as u32 == 0
    }
}
