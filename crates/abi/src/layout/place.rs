//! Layouts: replicas whose memory lies at different addresses (`--variants`), so that an address that is good
//! in one of them is nothing in the others. Source: seed 0, chapter 3 (disjoint code layouts); here all that moves
//! moves by one distance, so that a place in one replica is told from its address in another one by adding a
//! number.
//!
//! A place's *name* is its address in the first layout, where the kernel has put it. What replicas tell each
//! other of addresses are names.

/// Distance between two layouts. Its lower bits are zeros: what programs derive from an address's lower bits, such as
/// the order of a hash table, is the same in all.
pub const DISTANCE: u64 = 1 << 41;
/// Bits of a page's number that the kernel may choose by chance (vm.mmap_rnd_bits), if all that it chooses is to
/// be found where it is expected here. That is how many it chooses where nobody has asked for more.
pub const RANDOM_BITS: u32 = 28;

/// From here on, for one distance at most, position-independent programs and the heaps behind them lie.
const PROGRAM: u64 = 0x5500_0000_0000;
/// From here on, likewise, what the kernel chooses an address for: libraries, mappings, and above them the stack.
const MAPPED: u64 = 0x7e00_0000_0000;
/// The stack may grow to so many bytes. (The kernel keeps 128 MiB free of mappings below where it starts.)
pub const STACK_BYTES: u64 = 100 << 20;
/// Where mappings without a file go that do not move.
pub const STILL: u64 = 0x3000_0000_0000;
/// One past the last of them.
pub const STILL_END: u64 = 0x3600_0000_0000;

/// Entries of the auxiliary vector that are addresses: AT_PHDR, AT_BASE, AT_ENTRY, AT_PLATFORM, AT_BASE_PLATFORM,
/// AT_RANDOM, AT_EXECFN.
pub const VECTOR_ADDRESSES: [u64; 7] = [3, 7, 9, 15, 24, 25, 31];

/// Where a replica's memory lies: what moves, so many distances below where the kernel would have put it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// So many.
    pub number: u64,
    /// Up to where the program moves: with its heap or without.
    program_end: u64,
    /// Up to where mappings move: with the stack or without.
    mapped_end: u64,
}

/// [`Layout::number`] of [`Layout::UNRELATED`].
const NO_NUMBER: u64 = u64::MAX;
/// Below this a word is a number: there the kernel maps nothing of a program's by itself.
const LOWEST_ADDRESS: u64 = 0x40_0000;
/// And from here on.
const END_OF_ADDRESSES: u64 = 1 << 47;

/// What lies elsewhere in each layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// Programs and libraries; the heap and the stack stay, as do mappings without a file.
    Images {
        /// Where the heap starts, in the first layout.
        heap: u64,
        /// Where the stack does, which grows down.
        stack: u64,
    },
    /// All that the kernel chooses an address for.
    All,
}

impl Layout {
    /// Replicas run different programs (`--variant`): an address in one says nothing of any in another.
    pub const UNRELATED: Layout = Layout {
        number: NO_NUMBER,
        program_end: 0,
        mapped_end: 0,
    };

    /// Is it [`Layout::UNRELATED`]?
    #[inline(always)]
    pub const fn is_unrelated(self) -> bool {
        self.number == NO_NUMBER
    }

    /// The first one is where the kernel has put everything; `number`: how many distances below that.
    pub const fn new(number: u32, moves: Moves) -> Layout {
        let (program_end, mapped_end) = match moves {
            Moves::Images { heap, stack } => {
                let below = stack.saturating_sub(STACK_BYTES);
                (within(PROGRAM, heap), within(MAPPED, below))
            }
            Moves::All => (PROGRAM + DISTANCE, MAPPED + DISTANCE),
        };
        Layout {
            number: number as u64,
            program_end,
            mapped_end,
        }
    }

    /// Does what has this name lie elsewhere in each layout?
    #[inline(always)]
    pub const fn moves(self, name: u64) -> bool {
        (name >= PROGRAM && name < self.program_end) || (name >= MAPPED && name < self.mapped_end)
    }

    /// Do all replicas have this layout's mappings without a file at the same addresses?
    #[inline(always)]
    pub const fn keeps_anonymous(self) -> bool {
        self.mapped_end != 0 && self.mapped_end < MAPPED + DISTANCE
    }

    /// The address in this layout of what has this name.
    #[inline(always)]
    pub const fn place(self, name: u64) -> u64 {
        match self.number != 0 && self.moves(name) {
            true => name - self.distance(),
            false => name,
        }
    }

    /// The name of what is at this address in this layout. (Of unrelated ones: whether it is one.)
    #[inline(always)]
    pub const fn name(self, address: u64) -> u64 {
        if self.number == 0 {
            address
        } else if self.is_unrelated() {
            (address != 0) as u64
        } else if self.is_own(address) {
            address + self.distance()
        } else {
            address
        }
    }

    /// What all replicas have in common of a word of which nobody knows whether it is an address, a number, or the
    /// half of each: where it looks like an address of any layout, all but the bits in which layouts differ.
    pub const fn opaque(self, word: u64) -> u64 {
        const DIFFER: u64 = (1 << 48) - DISTANCE;
        let lowest = (super::MAX_REPLICAS as u64 - 1) * DISTANCE;
        if self.is_unrelated() {
            match word >= LOWEST_ADDRESS && word < END_OF_ADDRESSES {
                true => LOWEST_ADDRESS,
                false => word,
            }
        } else if self.program_end == 0 {
            word
        } else if word >= PROGRAM - lowest && word < PROGRAM + DISTANCE {
            word & !DIFFER | DISTANCE
        } else if word >= MAPPED - lowest && word < MAPPED + DISTANCE {
            word & !DIFFER | DISTANCE << 1
        } else {
            word
        }
    }

    /// Is this an address that means something in this layout only?
    pub const fn is_own(self, address: u64) -> bool {
        self.moves(address.wrapping_add(self.distance()))
    }

    /// The same program's layout of another number.
    pub const fn with_number(self, number: u32) -> Layout {
        Layout {
            number: number as u64,
            ..self
        }
    }

    #[inline(always)]
    const fn distance(self) -> u64 {
        self.number.wrapping_mul(DISTANCE)
    }
}

/// This end of what begins there, or all of it where the end lies elsewhere.
const fn within(start: u64, end: u64) -> u64 {
    if end >= start && end < start + DISTANCE {
        end
    } else {
        start + DISTANCE
    }
}

const _: () = {
    let last = (super::MAX_REPLICAS as u64 - 1) * DISTANCE;
    // No layout's lies where another one's does, nor where Geryon's own does, nor what does not move.
    assert!(PROGRAM + DISTANCE <= MAPPED - last);
    assert!(PROGRAM - last >= STILL_END && STILL >= super::RESERVED_END);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{AGENT_BASE, MAX_REPLICAS};

    const HEAP: u64 = 0x5655_5567_8000;
    const STACK: u64 = 0x7ffc_5646_0000;
    const KINDS: [Moves; 2] = [
        Moves::All,
        Moves::Images {
            heap: HEAP,
            stack: STACK,
        },
    ];
    const IMAGES: [u64; 4] = [PROGRAM, 0x5555_5555_4000, MAPPED, 0x7fda_f7fc_1234];
    const REST: [u64; 4] = [
        HEAP,
        0x56ff_ffff_ffff,
        STACK - STACK_BYTES,
        0x7fff_ffff_efff,
    ];
    const FIXED: [u64; 7] = [
        0,
        7,
        0x40_1000,
        AGENT_BASE,
        STILL,
        PROGRAM + DISTANCE,
        u64::MAX,
    ];

    fn all(moves: Moves) -> impl Iterator<Item = Layout> + Clone {
        (0..MAX_REPLICAS as u32).map(move |number| Layout::new(number, moves))
    }

    #[test]
    fn a_place_has_one_name() {
        for moves in KINDS {
            for layout in all(moves) {
                for name in IMAGES.into_iter().chain(REST) {
                    let at = layout.place(name);
                    assert_eq!(layout.name(at), name, "{layout:x?} {name:#x}");
                    let stays = layout.number == 0 || !layout.moves(name);
                    assert_eq!(at == name, stays, "{layout:x?} {name:#x}");
                    if layout.moves(name) {
                        let mut owners = all(moves).filter(|l| l.is_own(at));
                        assert_eq!((owners.next(), owners.next()), (Some(layout), None));
                    }
                }
            }
        }
    }

    #[test]
    fn what_moves_is_what_was_asked_for() {
        let [everything, images] = KINDS.map(|moves| Layout::new(3, moves));
        assert!(
            IMAGES
                .iter()
                .all(|a| images.moves(*a) && everything.moves(*a))
        );
        assert!(
            REST.iter()
                .all(|a| !images.moves(*a) && everything.moves(*a))
        );
        assert!(images.keeps_anonymous() && !everything.keeps_anonymous());
    }

    /// (Where the kernel chooses nothing by chance, libraries lie right below what it keeps for the stack.)
    #[test]
    fn the_stack_is_told_from_the_libraries_below_it() {
        let moves = Moves::Images {
            heap: 0x5555_5557_8000,
            stack: 0x7fff_ffff_e5d0,
        };
        let layout = Layout::new(1, moves);
        assert!(layout.moves(0x7fff_f7fc_5000) && layout.moves(0x5555_5555_4000));
        assert!(!layout.moves(0x7fff_fffd_e000) && !layout.moves(0x5555_5557_8000));
        assert!(layout.keeps_anonymous());
    }

    #[test]
    fn what_does_not_move_is_its_own_name() {
        for layout in KINDS.into_iter().flat_map(all).chain([Layout::default()]) {
            for address in FIXED {
                assert_eq!(layout.place(address), address);
                assert_eq!(layout.name(address), address, "{layout:x?}");
            }
        }
    }

    #[test]
    fn other_layouts_addresses_are_names_of_nothing() {
        let [one, two] = [1, 2].map(|number| Layout::new(number, Moves::All));
        for name in IMAGES {
            assert_eq!(two.name(name), name);
            assert_eq!(two.name(one.place(name)), one.place(name));
        }
    }

    #[test]
    fn a_word_that_may_be_an_address_is_the_same_in_all() {
        for moves in KINDS {
            for name in IMAGES.into_iter().chain(REST) {
                let half = |address: u64| address >> 32 << 32 | 7;
                let first = Layout::new(0, moves);
                for l in all(moves) {
                    let at = l.place(name);
                    assert_eq!(l.opaque(at), first.opaque(name), "{name:#x}");
                    assert_eq!(l.opaque(half(at)), first.opaque(half(name)), "{name:#x}");
                    assert_eq!(l.opaque(name), first.opaque(name), "a number, {name:#x}");
                }
            }
            let layout = Layout::new(1, moves);
            for bit in (0..41).chain(48..64) {
                let word = IMAGES[1];
                assert_ne!(
                    layout.opaque(word),
                    layout.opaque(word ^ 1 << bit),
                    "bit {bit}"
                );
            }
        }
    }

    #[test]
    fn unrelated_layouts_have_no_name_for_a_place() {
        let layout = Layout::UNRELATED;
        for address in IMAGES.into_iter().chain(REST) {
            assert_eq!(layout.name(address), layout.name(STILL));
            assert_eq!(layout.opaque(address), layout.opaque(STILL));
            assert!(!layout.moves(address) && !layout.is_own(address));
            assert_eq!(layout.place(address), address);
        }
        assert_ne!(layout.name(0), layout.name(IMAGES[0]));
        for number in [0, 7, 0xffff, u64::MAX] {
            assert_eq!(layout.opaque(number), number);
        }
        assert!(!layout.keeps_anonymous());
    }

    #[test]
    fn without_variants_nothing_moves() {
        let none = Layout::default();
        for name in IMAGES.into_iter().chain(REST) {
            assert_eq!((none.place(name), none.name(name)), (name, name));
            assert_eq!(none.opaque(name), name);
            assert!(!none.moves(name));
        }
    }
}
