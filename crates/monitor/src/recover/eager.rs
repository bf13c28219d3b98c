//! `--eager-copy`: a copy that was made by fork shares each page with its source until one of them
//! writes to it, and a fault in that page hits both. So a thread is made in the copy that runs none of
//! the program's code: call by call, it has the kernel give the copy pages of its own
//! (MADV_POPULATE_WRITE, which changes no content and cannot come between a store and what it stores),
//! while the copy's threads run, and the monitor does other things.
//!
//! Pages that the program may not write (code, constants behind relocations) stay shared, as they are
//! between all replicas.

use super::thread;
use crate::journal::Event;
use crate::maps::{PAGE_BYTES, Pages};
use crate::state::Monitor;
use anyhow::Result;
use geryon_tracee::{Event as Ptrace, Pid, Stop, Stopped};
use std::time::Instant;

/// Linux 5.14.
const MADV_POPULATE_WRITE: u64 = 23;

/// A copy whose memory is being made its own.
#[derive(Debug)]
pub struct Unsharing {
    replica: usize,
    pages: Pages,
    /// What the call under way is for; length 0: for nothing.
    under_way: (u64, u64),
    /// Parts of what could not be done as a whole.
    pieces: Vec<(u64, u64)>,
    /// The helper is inside a call.
    inside: bool,
    since: Instant,
    /// Bytes that are its own now.
    done: u64,
    /// Bytes that could not be made so.
    left: u64,
}

/// Can a copy be given pages of its own: does the kernel know the call?
///
/// # Errors
/// EINVAL when it does not.
pub fn can_populate() -> std::io::Result<()> {
    // SAFETY: a page of this process's own, mapped for the question and unmapped behind it.
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            PAGE_BYTES as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if page == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let result = libc::madvise(page, PAGE_BYTES as usize, MADV_POPULATE_WRITE as i32);
        let error = std::io::Error::last_os_error();
        libc::munmap(page, PAGE_BYTES as usize);
        if result == 0 { Ok(()) } else { Err(error) }
    }
}

impl Monitor {
    /// The copy is complete and halted: have its memory made its own.
    pub(crate) fn begin_unsharing(&mut self, replica: usize, copy: Pid) {
        match self.make_helper(copy) {
            Ok((helper, pages)) => {
                let work = Unsharing {
                    replica,
                    pages,
                    under_way: (0, 0),
                    pieces: Vec::new(),
                    inside: false,
                    since: Instant::now(),
                    done: 0,
                    left: 0,
                };
                self.recovery.unsharing.insert(helper, work);
                self.next_pages(helper);
            }
            Err(e) => self.say(&format!(
                "the memory of replica {} stays shared with its source: {e:#}",
                replica + 1
            )),
        }
    }

    /// A thread of the copy that takes no signal. It is in none of the monitor's books: it neither
    /// follows nor leads.
    fn make_helper(&self, copy: Pid) -> Result<(Pid, Pages)> {
        let pages = Pages::writable_of(copy)?;
        let helper = thread::make(Stopped(copy), &self.kit.image, 0)?;
        Stopped(helper).set_mask(u64::MAX)?;
        Ok((helper, pages))
    }

    /// The helper has stopped: the next step.
    pub(crate) fn unshare(&mut self, stop: Stop) {
        let helper = stop.pid();
        let Some(u) = self.recovery.unsharing.get_mut(&helper) else {
            return;
        };
        let thread = Stopped(helper);
        let goes_on = match stop {
            Stop::Syscall(_) if !u.inside => {
                u.inside = true;
                thread.resume_to_syscall()
            }
            Stop::Syscall(_) => {
                u.inside = false;
                match thread.regs() {
                    Ok(regs) => {
                        u.take(regs.rax as i64);
                        self.next_pages(helper);
                        return;
                    }
                    Err(e) => Err(e),
                }
            }
            // With the whole process, by a signal for job control.
            Stop::Event(_, Ptrace::Stop(s)) if s != libc::SIGTRAP => thread.listen(),
            _ => thread.resume_to_syscall(),
        };
        if goes_on.is_err() {
            // It is gone, with the replica.
            self.recovery.unsharing.remove(&helper);
        }
    }

    /// Have the helper make its next call, or end.
    fn next_pages(&mut self, helper: Pid) {
        let Some(u) = self.recovery.unsharing.get_mut(&helper) else {
            return;
        };
        let gate = self.kit.image.symbol("geryon_blocking_syscall");
        let next = u.next();
        let (nr, args) = match next {
            Some((start, len)) if len != 0 => {
                (libc::SYS_madvise, [start, len, MADV_POPULATE_WRITE])
            }
            Some(_) => (libc::SYS_getpid, [0; 3]),
            None => (libc::SYS_exit, [0; 3]),
        };
        let thread = Stopped(helper);
        let called = thread.regs().and_then(|mut regs| {
            regs.rip = gate;
            regs.rax = nr as u64;
            regs.orig_rax = u64::MAX;
            (regs.rdi, regs.rsi, regs.rdx) = (args[0], args[1], args[2]);
            thread.set_regs(&regs)?;
            match next {
                Some(_) => thread.resume_to_syscall(),
                None => thread.resume(0),
            }
        });
        if called.is_ok() && next.is_some() {
            return;
        }
        let Some(u) = self
            .recovery
            .unsharing
            .remove(&helper)
            .filter(|_| called.is_ok())
        else {
            return;
        };
        if u.left != 0 {
            self.say(&format!(
                "a part of the memory of replica {} stays shared with its source: the kernel has no memory left for it",
                u.replica + 1
            ));
        }
        self.console.journal.tell(&Event::Unshared {
            replica: u.replica,
            bytes: u.done,
            left: u.left,
            took_us: u.since.elapsed().as_micros() as u64,
        });
    }
}

impl Unsharing {
    /// The next range; of length 0 when one is still being looked for.
    fn next(&mut self) -> Option<(u64, u64)> {
        let next = self.pieces.pop().map_or_else(|| self.pages.next(), Some);
        self.under_way = next.unwrap_or((0, 0));
        next
    }

    /// What came of the call.
    fn take(&mut self, result: i64) {
        let (start, len) = std::mem::take(&mut self.under_way);
        if result == 0 {
            self.done += len;
        } else if len > PAGE_BYTES {
            // The program has unmapped or protected a part of it meanwhile.
            let half = len / PAGE_BYTES / 2 * PAGE_BYTES;
            self.pieces.push((start + half, len - half));
            self.pieces.push((start, half));
        } else if result == -i64::from(libc::ENOMEM) && self.pages.are_mapped(start) {
            self.left += len;
        }
    }
}
