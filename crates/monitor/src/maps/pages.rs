//! The pages of a process that it shares with others until one writes to them.

use super::AddressSpace;
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Pages that are looked at at once.
const WINDOW_PAGES: u64 = 4096;
/// So many windows in which there is nothing are looked at before others are served again.
const WINDOWS: u32 = 64;
/// Bytes of an entry of /proc/PID/pagemap.
const ENTRY_BYTES: u64 = 8;
/// No other process maps the page.
const EXCLUSIVE: u64 = 1 << 56;
const SWAPPED: u64 = 1 << 62;
const PRESENT: u64 = 1 << 63;

/// Pages that are there, that are writable, and that other processes have, too.
#[derive(Debug)]
pub struct Pages {
    pagemap: File,
    /// Start and length of what was not looked at yet.
    mappings: VecDeque<(u64, u64)>,
    /// Start and length of what was found.
    found: VecDeque<(u64, u64)>,
}

impl Pages {
    /// Of a process, in the mappings that it has now.
    ///
    /// # Errors
    /// When it is gone, or /proc does not show its pages.
    pub fn writable_of(pid: i32) -> Result<Pages> {
        let pagemap = File::open(format!("/proc/{pid}/pagemap")).context("its pages")?;
        Ok(Pages {
            pagemap,
            mappings: AddressSpace::open(pid)?.own_writable()?.into(),
            found: VecDeque::new(),
        })
    }

    /// Start and length of the pages of a process that are there, that are writable, and that no other
    /// process has.
    ///
    /// # Errors
    /// When it is gone, or /proc does not show its pages.
    pub fn own_of(pid: i32) -> Result<Vec<(u64, u64)>> {
        let mut pages = Pages::writable_of(pid)?;
        let mut out = Vec::new();
        while let Some((start, len)) = pages.mappings.pop_front() {
            for at in (start..start + len).step_by((WINDOW_PAGES * PAGE_BYTES) as usize) {
                let window = (start + len - at).min(WINDOW_PAGES * PAGE_BYTES);
                out.extend(runs(at, &pages.entries(at, window), |e| e & EXCLUSIVE != 0));
            }
        }
        Ok(out)
    }

    /// Start and length of the next ones. Of length 0 when there were none in what was looked at; None
    /// at the end.
    pub fn next(&mut self) -> Option<(u64, u64)> {
        for _ in 0..WINDOWS {
            if let Some(found) = self.found.pop_front() {
                return Some(found);
            }
            let (start, len) = self.mappings.pop_front()?;
            let window = len.min(WINDOW_PAGES * PAGE_BYTES);
            if window < len {
                self.mappings.push_front((start + window, len - window));
            }
            self.found = runs(start, &self.entries(start, window), |e| e & EXCLUSIVE == 0);
        }
        Some((0, 0))
    }

    /// Is there still a page at this address?
    pub fn are_mapped(&self, at: u64) -> bool {
        let entries = self.entries(at, PAGE_BYTES);
        entries.first().is_some_and(|e| is_there(*e))
    }

    /// What the kernel says of these pages; nothing, once the process is gone.
    fn entries(&self, start: u64, len: u64) -> Vec<u64> {
        let mut bytes = vec![0; (len / PAGE_BYTES * ENTRY_BYTES) as usize];
        let at = start / PAGE_BYTES * ENTRY_BYTES;
        if self.pagemap.read_exact_at(&mut bytes, at).is_err() {
            return Vec::new();
        }
        let (entries, _) = bytes.as_chunks();
        entries.iter().map(|e| u64::from_le_bytes(*e)).collect()
    }
}

fn is_there(entry: u64) -> bool {
    entry & (PRESENT | SWAPPED) != 0
}

/// The pages that are there and wanted, neighbours together.
fn runs(start: u64, entries: &[u64], wanted: impl Fn(u64) -> bool) -> VecDeque<(u64, u64)> {
    let mut out: VecDeque<(u64, u64)> = VecDeque::new();
    for (i, entry) in entries.iter().enumerate() {
        if !is_there(*entry) || !wanted(*entry) {
            continue;
        }
        let at = start + i as u64 * PAGE_BYTES;
        match out.back_mut() {
            Some((from, len)) if *from + *len == at => *len += PAGE_BYTES,
            _ => out.push_back((at, PAGE_BYTES)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_run() {
        let (shared, own, none) = (PRESENT, PRESENT | EXCLUSIVE, 0);
        let entries = [shared, SWAPPED, own, none, shared, none];
        let p = PAGE_BYTES;
        let others_have = |e| e & EXCLUSIVE == 0;
        assert_eq!(
            runs(8 * p, &entries, others_have),
            [(8 * p, 2 * p), (12 * p, p)]
        );
        assert!(runs(0, &[], others_have).is_empty());
    }

    #[test]
    fn what_only_this_process_has_is_not_found() {
        let own = vec![1u8; 64 * PAGE_BYTES as usize];
        let inside = own.as_ptr() as u64 + PAGE_BYTES;
        let mut pages = Pages::writable_of(std::process::id() as i32).expect("it lives");
        assert!(pages.are_mapped(inside));
        while let Some((start, len)) = pages.next() {
            assert!(!(start..start + len).contains(&inside));
        }
    }
}
