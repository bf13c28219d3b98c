//! Where this process maps objects. (The same in all replicas, where they come to the same call.)

use core::sync::atomic::{AtomicU64, Ordering};

/// Known at one moment; if there are more, all memory counts as such.
const ROOM: usize = 512;

/// First addresses and those behind the last byte; 0 and 0 where there is none.
pub struct Ranges {
    starts: [AtomicU64; ROOM],
    ends: [AtomicU64; ROOM],
    /// So many places were ever taken.
    used: AtomicU64,
    /// How many did not find room.
    beyond: AtomicU64,
}

/// Those of this process.
pub static RANGES: Ranges = Ranges::new();

const PAGE: u64 = 4096;

fn end_of(start: u64, len: u64) -> u64 {
    start
        .saturating_add(len)
        .checked_next_multiple_of(PAGE)
        .unwrap_or(u64::MAX)
}

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges {
            starts: [const { AtomicU64::new(0) }; ROOM],
            ends: [const { AtomicU64::new(0) }; ROOM],
            used: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
        }
    }

    fn all(&self) -> impl Iterator<Item = (&AtomicU64, &AtomicU64)> {
        let used = self.used.load(Ordering::SeqCst) as usize;
        self.starts.iter().zip(&self.ends).take(used)
    }

    /// An object is mapped there.
    pub fn add(&self, start: u64, len: u64) {
        let free = self.starts.iter().position(|s| {
            s.compare_exchange(0, start, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        });
        match free {
            Some(at) => {
                self.ends[at].store(end_of(start, len), Ordering::SeqCst);
                self.used.fetch_max(at as u64 + 1, Ordering::SeqCst);
            }
            None => _ = self.beyond.fetch_add(1, Ordering::SeqCst),
        }
    }

    /// Is one mapped in these bytes?
    pub fn touch(&self, start: u64, len: u64) -> bool {
        let end = end_of(start, len);
        let touches = |s: u64, e: u64| s < end && start < e;
        self.beyond.load(Ordering::SeqCst) != 0
            || self
                .all()
                .any(|(s, e)| touches(s.load(Ordering::SeqCst), e.load(Ordering::SeqCst)))
    }

    /// How many bytes of one that begins there.
    pub fn bytes_at(&self, start: u64) -> Option<u64> {
        let found = self
            .all()
            .map(|(s, e)| (s.load(Ordering::SeqCst), e.load(Ordering::SeqCst)));
        let mut those = found.filter(|(s, e)| *s == start && *e > start);
        those.next().map(|(s, e)| e - s)
    }

    /// Nothing is mapped there any more. (Of one that is still mapped in part all is kept.)
    pub fn remove(&self, start: u64, len: u64) {
        let end = end_of(start, len);
        for (s, e) in self.all() {
            let (first, last) = (s.load(Ordering::SeqCst), e.load(Ordering::SeqCst));
            if last != 0 && start <= first && last <= end {
                e.store(0, Ordering::SeqCst);
                s.store(0, Ordering::SeqCst);
            }
        }
    }

    /// None is mapped.
    pub fn clear(&self) {
        for (s, e) in self.all() {
            e.store(0, Ordering::SeqCst);
            s.store(0, Ordering::SeqCst);
        }
        self.beyond.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_and_removed() {
        let r = Ranges::new();
        assert!(!r.touch(0, u64::MAX));
        r.add(0x10000, 100);
        assert!(r.touch(0x10fff, 1) && !r.touch(0x11000, 1) && !r.touch(0xf000, 0x1000));
        r.remove(0x10000, 10);
        assert!(!r.touch(0, u64::MAX));
        for i in 1..=ROOM as u64 + 1 {
            r.add(i << 20, 4096);
        }
        assert!(r.touch(5, 1));
        r.clear();
        assert!(!r.touch(0, u64::MAX));
    }
}
