//! What is told of replicas that differ on purpose: whose address it is that one of them was led to, and whether
//! what differs are addresses.

use crate::options::Variants;
use crate::state::{GroupId, Monitor};
use geryon_abi::layout::Layout;

/// What a run with variants ends with when they do not do the same.
const ALARM: &str = "stopped before it had an effect: replicas that differ on purpose were led to do different things\n  an attack does that; so does a program that shows addresses, or orders things by them (see --variants)";

/// The same where they run different programs.
const DIFFERENT: &str = "stopped before it had an effect: the replicas run different programs, which do different things here (see --variant)";

/// The same, when one of them was killed from outside.
pub(crate) const LOST: &str = "stopped: no replica takes the place of one that has another layout\n  try: without --variants, where one that is lost is replaced";

impl Monitor {
    /// Are replicas meant to differ?
    pub(crate) fn has_variants(&self) -> bool {
        self.options.variants != Variants::None || self.kit.programs.is_some()
    }

    /// What such a run ends with when they do not do the same.
    pub(crate) fn alarm(&self) -> &'static str {
        match self.kit.programs {
            Some(_) => DIFFERENT,
            None => ALARM,
        }
    }

    /// Whose address it is, if not that of the replica that was led there, as a line for the report.
    pub(crate) fn whose_address(&self, id: GroupId, replica: usize, address: u64) -> String {
        let Some(g) = self.groups.get(&id).filter(|_| self.has_variants()) else {
            return String::new();
        };
        let owner = |(r, pid)| {
            let layout = self.layout(pid);
            (r != replica && layout.is_own(address)).then_some(r)
        };
        match g.living().find_map(owner) {
            Some(owner) => format!(
                "geryon:   {address:#x} is an address of replica {}; replica {} was given something that was made for the other one's memory\n",
                owner + 1,
                replica + 1
            ),
            None => String::new(),
        }
    }
}

/// So many bytes before the first that differs, and from it on, are looked at.
pub(super) const AROUND: usize = 16;

/// Do these bytes of two replicas, of which the one behind [`AROUND`] is the first that differs, show an address in
/// each, of one and the same place? As it lies in memory, or as it is printed.
pub(super) fn are_addresses(layouts: [Layout; 2], sides: [&[u8]; 2]) -> bool {
    let same = |numbers: [Option<u64>; 2]| {
        let names = [0, 1].map(|i| numbers[i].map(|n| layouts[i].name(n)));
        names[0].is_some() && names[0] == names[1]
    };
    same(sides.map(in_memory)) || same(sides.map(printed))
}

/// Addresses of two layouts differ in the sixth of their bytes.
fn in_memory(bytes: &[u8]) -> Option<u64> {
    const BYTE: usize = 5;
    let word = bytes.get(AROUND - BYTE..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

fn printed(bytes: &[u8]) -> Option<u64> {
    let is_digit = |b: &&u8| b.is_ascii_hexdigit();
    let (before, behind) = bytes.split_at_checked(AROUND)?;
    let start = AROUND - before.iter().rev().take_while(is_digit).count();
    let end = AROUND + behind.iter().take_while(is_digit).count();
    let text = std::str::from_utf8(&bytes[start..end]).ok()?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::place::Moves;

    const NAME: u64 = 0x7f2a_4c07_a2f8;

    fn differs(show: impl Fn(u64) -> Vec<u8>) -> bool {
        let layouts = [0, 1].map(|n| Layout::new(n, Moves::All));
        let shown = layouts.map(|l| show(l.place(NAME)));
        let first = shown[0].iter().zip(&shown[1]).position(|(a, b)| a != b);
        let from = first.expect("they differ") - AROUND;
        are_addresses(layouts, [&shown[0][from..], &shown[1][from..]])
    }

    #[test]
    fn an_address_is_seen_in_either_form() {
        assert!(differs(|at| format!(
            "{:32} at {at:#x}, and so on, to the end",
            ""
        )
        .into_bytes()));
        assert!(differs(
            |at| [&[7; 32][..], &at.to_le_bytes(), &[7; 32]].concat()
        ));
        assert!(!differs(|at| format!(
            "{:32} {at}, and so on, to the end of it",
            ""
        )
        .into_bytes()));
    }
}
