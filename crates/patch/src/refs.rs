//! The set of addresses that code may be entered at other than from above.

use std::ops::Range;

/// Branches shorter than this remember where they come from: if they and their target
/// move together, the target is no obstacle.
const LOCAL_REACH: u64 = 64;

/// One bit for each byte of the executable segments.
struct Bits {
    segments: Vec<(Range<u64>, Vec<u64>)>,
}

impl Bits {
    fn new(segments: &[Range<u64>]) -> Bits {
        let words = |r: &Range<u64>| vec![0; ((r.end - r.start) as usize).div_ceil(64)];
        Bits {
            segments: segments.iter().map(|r| (r.clone(), words(r))).collect(),
        }
    }

    #[inline]
    fn set(&mut self, addr: u64) {
        for (range, words) in &mut self.segments {
            if range.contains(&addr) {
                let bit = addr - range.start;
                words[(bit / 64) as usize] |= 1 << (bit % 64);
                return;
            }
        }
    }

    fn get(&self, addr: u64) -> bool {
        self.segments.iter().any(|(range, words)| {
            let bit = addr.wrapping_sub(range.start);
            range.contains(&addr) && words[(bit / 64) as usize] >> (bit % 64) & 1 != 0
        })
    }
}

/// Possible branch targets, and where instructions start.
pub struct Refs {
    targets: Bits,
    starts: Bits,
    /// (target, source) of short branches, sorted once complete.
    local: Vec<(u64, u64)>,
    sorted: bool,
}

impl Refs {
    pub fn new(segments: &[Range<u64>]) -> Refs {
        let (targets, starts) = (Bits::new(segments), Bits::new(segments));
        Refs {
            targets,
            starts,
            local: Vec::new(),
            sorted: true,
        }
    }

    /// An instruction starts here.
    #[inline]
    pub fn add_start(&mut self, addr: u64) {
        self.starts.set(addr);
    }

    /// Whether the sweep found an instruction here.
    pub fn is_start(&self, addr: u64) -> bool {
        self.starts.get(addr)
    }

    /// Whether the address is in an executable segment.
    pub fn is_code(&self, addr: u64) -> bool {
        self.targets.segments.iter().any(|s| s.0.contains(&addr))
    }

    /// Something may enter at `target`. Addresses outside code are ignored.
    #[inline]
    pub fn add(&mut self, target: u64) {
        self.targets.set(target);
    }

    /// The instruction at `source` branches to `target`.
    #[inline]
    pub fn add_branch(&mut self, source: u64, target: u64) {
        if source.abs_diff(target) < LOCAL_REACH {
            self.local.push((target, source));
            self.sorted = false;
        } else {
            self.add(target);
        }
    }

    /// To be called when all are added.
    pub fn finish(&mut self) {
        self.local.sort_unstable();
        self.sorted = true;
    }

    /// Short branches to addresses inside the range, as (target, source).
    pub fn local_into(&self, targets: Range<u64>) -> &[(u64, u64)] {
        assert!(self.sorted, "finish() comes before questions");
        let begin = self.local.partition_point(|l| l.0 < targets.start);
        let end = self.local.partition_point(|l| l.0 < targets.end);
        &self.local[begin..end.max(begin)]
    }

    /// The first address behind `start` and before `end` at which something from outside
    /// `start..end` may enter.
    pub fn entered(&self, start: u64, end: u64) -> Option<u64> {
        let inside = start..end;
        let local = self.local_into(start + 1..end);
        let local = local.iter().find(|l| !inside.contains(&l.1)).map(|l| l.0);
        let far = (start + 1..end).find(|&a| self.targets.get(a));
        local.into_iter().chain(far).min()
    }
}
