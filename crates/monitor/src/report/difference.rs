//! The first argument or byte in which two replicas that stand at the same call differ.

use super::json::Difference;
use super::variants::{AROUND, are_addresses};
use crate::rules::differing;
use crate::state::{Monitor, ReportWords};
use geryon_abi::record::{self, kind};
use geryon_abi::row::{Kind, Len, Row};
use geryon_abi::table;
use geryon_tracee::Pid;

/// The longest path that is compared.
const PATH_MAX: u64 = 4096;
const PAGE: u64 = 4096;

/// So many bytes of one argument are looked through for the first that differs.
const LOOKED_AT: u64 = 1 << 26;

impl Monitor {
    /// Compare scalars, then the in-buffers of both replicas, which still stand at the call.
    pub(super) fn first_difference(
        &mut self,
        leader: Pid,
        follower: Pid,
        w: &ReportWords,
    ) -> Option<Difference> {
        let k = record::kind_of(w.ours[0]);
        if k != kind::BEGIN && k != kind::CALL {
            return None;
        }
        let row = table::row(u64::from(record::short_of(w.ours[0])))?;
        let layouts = [leader, follower].map(|pid| self.layout(pid));
        // Of different programs a length says less than what differs in what is so long.
        if layouts[0].is_unrelated()
            && let Some(found) = self.differing_buffer([leader, follower], row, w)
        {
            return Some(found);
        }
        for (i, a) in row.args.iter().enumerate() {
            let (mut x, mut y) = (w.theirs[2 + i], w.ours[2 + i]);
            if a.kind == Kind::Addr {
                (x, y) = (layouts[0].name(x), layouts[1].name(y));
            }
            let scalar = matches!(
                a.kind,
                Kind::Int
                    | Kind::Int32
                    | Kind::Fd
                    | Kind::Addr
                    | Kind::Id
                    | Kind::IdIf(..)
                    | Kind::Group
            );
            if scalar && x != y && k == kind::BEGIN {
                return Some(Difference {
                    argument: a.name.into(),
                    offset: 0,
                    values: vec![format!("{x:#x}"), format!("{y:#x}")],
                    around: Vec::new(),
                    single_bit: single_bit(x, y),
                    of_address: false,
                });
            }
        }
        self.differing_buffer([leader, follower], row, w)
    }

    /// The same of what the arguments point to.
    fn differing_buffer(
        &mut self,
        [leader, follower]: [Pid; 2],
        row: &Row,
        w: &ReportWords,
    ) -> Option<Difference> {
        let layouts = [leader, follower].map(|pid| self.layout(pid));
        let is_known = record::kind_of(w.ours[0]) == kind::BEGIN;
        for (i, a) in row.args.iter().enumerate() {
            let len = in_bytes(a.kind, &w.ours);
            let ours = w.ours[2 + i];
            if layouts[0].is_unrelated() && is_known {
                let others = (leader, w.theirs[2 + i], in_bytes(a.kind, &w.theirs));
                let found = self.differing_text([others, (follower, ours, len)], a.kind);
                if let Some(found) = found {
                    return Some(Difference {
                        argument: a.name.into(),
                        ..found
                    });
                }
                continue;
            }
            // (Of a call that the leader did not wait at it says nothing else.)
            let theirs = layouts[0].place(layouts[1].name(ours));
            let both = [(leader, theirs), (follower, ours)];
            let text = a.kind == Kind::Path;
            if let Some((offset, x, y)) = self.differing_byte(both, len, text) {
                let around = both.map(|(pid, at)| self.around(pid, at.wrapping_add(offset)));
                let shown = [&around[0][..], &around[1][..]];
                return Some(Difference {
                    of_address: layouts[0] != layouts[1] && are_addresses(layouts, shown),
                    argument: a.name.into(),
                    offset,
                    values: vec![format!("{x:#04x}"), format!("{y:#04x}")],
                    around: Vec::new(),
                    single_bit: single_bit(x.into(), y.into()),
                });
            }
        }
        None
    }

    /// The same of different programs: where that differs which rules do not tolerate, and what stands there. (Where, and how
    /// many bytes, in the leader and in the follower.)
    fn differing_text(&mut self, places: [(Pid, u64, u64); 2], kind: Kind) -> Option<Difference> {
        let mut bytes = Vec::new();
        for (pid, at, len) in places {
            let mut own = vec![0; len.min(LOOKED_AT) as usize];
            // (A path may end with a mapping.)
            let memory = self.memory(pid).ok()?;
            match kind {
                Kind::Path => own = memory.string(at, PATH_MAX as usize),
                _ => memory.read(at, &mut own).ok()?,
            }
            bytes.push(own);
        }
        let rules = places.map(|(pid, ..)| {
            let replica = self.membership(pid).map_or(0, |(_, replica)| replica);
            self.options.tolerated.of(replica)
        });
        let (x, y) = differing([&bytes[0], &bytes[1]], [&rules[0], &rules[1]])?;
        let at = [x, y];
        let own = |i: usize| bytes[i].get(at[i]).copied();
        let value = |i: usize| own(i).map_or("nothing".into(), |byte| format!("{byte:#04x}"));
        Some(Difference {
            argument: String::new(),
            offset: x as u64,
            values: vec![value(0), value(1)],
            around: vec![shown(&bytes[0], x), shown(&bytes[1], y)],
            single_bit: None,
            of_address: false,
        })
    }

    /// What lies there, and [`AROUND`] it; zeros where nothing does.
    fn around(&mut self, pid: Pid, at: u64) -> [u8; 2 * AROUND] {
        let mut bytes = [0; 2 * AROUND];
        if let Ok(memory) = self.memory(pid) {
            // (Two halves: a buffer may begin or end with a mapping.)
            let (before, behind) = bytes.split_at_mut(AROUND);
            let _ = memory.read(at.wrapping_sub(AROUND as u64), before);
            let _ = memory.read(at, behind);
        }
        bytes
    }

    /// `text` ends with its NUL.
    fn differing_byte(
        &mut self,
        [(a, from), (b, address)]: [(Pid, u64); 2],
        len: u64,
        text: bool,
    ) -> Option<(u64, u8, u8)> {
        // (A length from a replica's memory may be any number.)
        let len = len.min(LOOKED_AT);
        let mut offset = 0;
        while offset < len {
            let at = address.checked_add(offset)?;
            let n = (len - offset).min(PAGE - at % PAGE) as usize;
            let (mut x, mut y) = (vec![0; n], vec![0; n]);
            let there = from.checked_add(offset)?;
            self.memory(a).ok()?.read(there, &mut x).ok()?;
            self.memory(b).ok()?.read(at, &mut y).ok()?;
            if let Some(i) = differing_bytes(&x, &y, text) {
                return Some((offset + i as u64, x[i], y[i]));
            }
            if text && x.contains(&0) {
                return None;
            }
            offset += n as u64;
        }
        None
    }
}

/// How many bytes the call reads at an argument, where that is simply said.
fn in_bytes(of: Kind, record: &[u64; 8]) -> u64 {
    match of {
        Kind::Path => PATH_MAX,
        Kind::SockaddrIn(k) => u64::from(record[2 + k as usize] as u32),
        Kind::In(l) | Kind::InOut(l) => match l {
            Len::Fixed(n) => u64::from(n),
            Len::Arg(k) => record[2 + k as usize],
            Len::ArgTimes(k, n) => record[2 + k as usize].saturating_mul(u64::from(n)),
            Len::ArgPlus(k, n) => record[2 + k as usize].saturating_add(u64::from(n)),
            _ => 0,
        },
        _ => 0,
    }
}

/// Where the two begin to differ; of texts, before both end.
fn differing_bytes(x: &[u8], y: &[u8], text: bool) -> Option<usize> {
    let pairs = || x.iter().zip(y);
    let end = pairs().position(|(x, y)| text && *x == 0 && *y == 0);
    let found = pairs().position(|(x, y)| x != y)?;
    end.is_none_or(|end| found < end).then_some(found)
}

/// What stands around this place, for a person.
fn shown(bytes: &[u8], at: usize) -> String {
    const BEFORE: usize = 32;
    const BEHIND: usize = 24;
    let (start, end) = (at.saturating_sub(BEFORE), bytes.len().min(at + BEHIND));
    let dots = |is: bool| if is { "..." } else { "" };
    format!(
        "{}\"{}\"{}",
        dots(start > 0),
        bytes[start..end].escape_ascii(),
        dots(end < bytes.len())
    )
}

fn single_bit(x: u64, y: u64) -> Option<u32> {
    let d = x ^ y;
    d.is_power_of_two().then(|| d.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::{differing_bytes as differing, shown};

    #[test]
    fn texts_are_compared_up_to_their_end() {
        assert_eq!(differing(b"a\0x", b"a\0y", true), None);
        assert_eq!(differing(b"a\0x", b"a\0y", false), Some(2));
        assert_eq!(differing(b"a\0x", b"ab\0", true), Some(1));
        assert_eq!(differing(b"ab", b"ac", true), Some(1));
    }

    #[test]
    fn what_stands_around_is_cut_out() {
        assert_eq!(shown(b"a\r\nb", 2), r#""a\r\nb""#);
        assert_eq!(
            shown(&[b'x'; 200], 100),
            format!("...\"{}\"...", "x".repeat(56))
        );
        assert_eq!(shown(b"", 0), "\"\"");
    }
}
