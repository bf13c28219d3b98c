//! The first argument or byte in which two replicas that stand at the same call differ.

use super::json::Difference;
use crate::state::{Monitor, ReportWords};
use geryon_abi::record::{self, kind};
use geryon_abi::row::{Kind, Len};
use geryon_abi::table;
use geryon_tracee::Pid;

/// The longest path that is compared.
const PATH_MAX: u64 = 4096;
const PAGE: u64 = 4096;

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
        for (i, a) in row.args.iter().enumerate() {
            let (x, y) = (w.theirs[2 + i], w.ours[2 + i]);
            let scalar = matches!(a.kind, Kind::Int | Kind::Int32 | Kind::Fd | Kind::Addr);
            if scalar && x != y && k == kind::BEGIN {
                return Some(Difference {
                    argument: a.name.into(),
                    offset: 0,
                    values: vec![format!("{x:#x}"), format!("{y:#x}")],
                    single_bit: single_bit(x, y),
                });
            }
        }
        for (i, a) in row.args.iter().enumerate() {
            let len = in_bytes(a.kind, &w.ours);
            let address = w.ours[2 + i];
            if let Some((offset, x, y)) = self.differing_byte(leader, follower, address, len) {
                return Some(Difference {
                    argument: a.name.into(),
                    offset,
                    values: vec![format!("{x:#04x}"), format!("{y:#04x}")],
                    single_bit: single_bit(x.into(), y.into()),
                });
            }
        }
        None
    }

    fn differing_byte(&mut self, a: Pid, b: Pid, address: u64, len: u64) -> Option<(u64, u8, u8)> {
        let mut offset = 0;
        while offset < len {
            let n = (len - offset).min(PAGE - (address + offset) % PAGE) as usize;
            let (mut x, mut y) = (vec![0; n], vec![0; n]);
            self.memory(a).ok()?.read(address + offset, &mut x).ok()?;
            self.memory(b).ok()?.read(address + offset, &mut y).ok()?;
            if let Some(i) = (0..n).find(|i| x[*i] != y[*i]) {
                return Some((offset + i as u64, x[i], y[i]));
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
        Kind::In(l) | Kind::InOut(l) => match l {
            Len::Fixed(n) => u64::from(n),
            Len::Arg(k) => record[2 + k as usize],
            Len::ArgTimes(k, n) => record[2 + k as usize] * u64::from(n),
            _ => 0,
        },
        _ => 0,
    }
}

fn single_bit(x: u64, y: u64) -> Option<u32> {
    let d = x ^ y;
    d.is_power_of_two().then(|| d.trailing_zeros())
}
