//! The turn of processes that share memory, as the monitor sees it: see the agent's `serial/kin.rs`.
//!
//! Replicas hand it over among themselves. The monitor does so for a process that has ended with it, sets it up for
//! one that is to lead, and for a copy.

use crate::image::Image;
use anyhow::{Context, Result};
use geryon_abi::layout::kin::{ENDED, FREE, Follower, KIN_BYTES, Kin, OFFERED, RESTS, RUNS, TAKEN};
use geryon_ring::kin::Turn;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

/// The monitor's mapping of its memory.
pub struct KinTurn {
    base: *mut Kin,
    /// The replica whose processes hand it over as leaders; None: one is to take that over.
    led_by: Option<usize>,
}

/// As owners are named.
fn name(group: u32) -> u32 {
    group.wrapping_add(1)
}

impl KinTurn {
    /// Nobody has had it yet; `leader`: whose processes lead.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn new(image: &Image, leader: usize) -> Result<KinTurn> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                KIN_BYTES as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                image.memfd.as_raw_fd(),
                image.kin_offset() as i64,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error()).context("mapping the turn of the kin");
        }
        let turn = KinTurn {
            base: base.cast(),
            led_by: Some(leader),
        };
        turn.memory().last.store(ENDED, Ordering::SeqCst);
        for f in &turn.memory().followers {
            f.stands.store(ENDED, Ordering::SeqCst);
        }
        Ok(turn)
    }

    fn memory(&self) -> &Kin {
        // SAFETY: mapped for the life of self; all of it is atomic.
        unsafe { &*self.base }
    }

    fn follower(&self, replica: usize) -> &Follower {
        &self.memory().followers[replica]
    }

    /// A process is gone: if it had the turn the next one gets it.
    pub fn ended(&self, group: u32, replica: usize) {
        let k = self.memory();
        let seq = Ordering::SeqCst;
        if self.led_by == Some(replica) {
            let had = TAKEN.wrapping_add(name(group));
            if k.turn.load(seq) == had {
                k.last.store(ENDED, seq);
                let next = match k.waiting.load(seq) {
                    0 => FREE,
                    _ => OFFERED,
                };
                // (Nobody else may change it from that.)
                k.turn.store(next, seq);
                crate::segment::wake_half(&k.turn);
            }
        } else {
            let f = self.follower(replica);
            let turn = Turn {
                number: &f.number,
                owner: &f.owner,
                stands: &f.stands,
            };
            if turn.stands_at(name(group), ENDED) {
                changed(f);
            }
        }
    }

    /// The group whose process has it in a replica that follows, or had it last.
    pub fn owner(&self, replica: usize) -> Option<u32> {
        let owner = self.follower(replica).owner.load(Ordering::SeqCst);
        owner.checked_sub(1)
    }

    /// The replica's leaders are gone: the turn rests until another one has come to where they were.
    pub fn rests(&mut self) {
        self.led_by = None;
        self.memory().turn.store(RESTS, Ordering::SeqCst);
    }

    /// Is it set up for this replica to lead?
    pub fn is_led_by(&self, replica: usize) -> bool {
        self.led_by == Some(replica)
    }

    /// The replica leads from now on, all of whose processes have come to the end of the log. `lives`: is there
    /// still one of this group?
    pub fn promote(&mut self, replica: usize, lives: impl Fn(u32) -> bool) {
        let (k, f) = (self.memory(), self.follower(replica));
        let seq = Ordering::SeqCst;
        let owner = f.owner.load(seq);
        k.number.store(f.number.load(seq), seq);
        k.owner.store(owner, seq);
        k.waiting.store(0, seq);
        k.last.store(ENDED, seq);
        let turn = match owner != 0 && lives(owner - 1) {
            true => TAKEN.wrapping_add(owner),
            false => FREE,
        };
        k.turn.store(turn, seq);
        crate::segment::wake_half(&k.turn);
        self.led_by = Some(replica);
    }

    /// Processes of `source` are copied, all of them that are kin and none of which runs: the copies follow.
    pub fn copy(&self, source: usize, replica: usize, lives: impl Fn(u32) -> bool) {
        let (k, to) = (self.memory(), self.follower(replica));
        let seq = Ordering::SeqCst;
        let (number, owner, stands, sleepers) = if self.led_by == Some(source) {
            // The copy of who has it, or had it last, says itself where it stands.
            (k.number.load(seq), k.owner.load(seq), RUNS, 0)
        } else {
            let from = self.follower(source);
            let stands = from.stands.load(seq);
            let (number, owner) = (from.number.load(seq), from.owner.load(seq));
            (number, owner, stands, from.sleepers.load(seq))
        };
        // (Who is dying has no copy, and its end may not have been served yet: nobody would tell of it in this replica.)
        let is_there = owner != 0 && lives(owner - 1);
        to.stands.store(if is_there { stands } else { ENDED }, seq);
        to.owner.store(owner, seq);
        to.number.store(number, seq);
        // (The copies of those who sleep count themselves out.)
        to.sleepers.store(sleepers, seq);
    }
}

impl Drop for KinTurn {
    fn drop(&mut self) {
        // SAFETY: mapped by new, and nobody has a reference any more.
        unsafe { libc::munmap(self.base.cast(), KIN_BYTES as usize) };
    }
}

/// Those who wait in the replica look again.
fn changed(f: &Follower) {
    f.events.fetch_add(1, Ordering::SeqCst);
    crate::segment::wake_half(&f.events);
}
