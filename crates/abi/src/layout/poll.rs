//! What a thread has found at a load that decides about order, until it does something else: a loop that polls logs what
//! it finds when that changes.

/// The last such load.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Poll {
    /// The place in the log behind its record: who stands there has logged nothing since.
    pos: u64,
    /// The instruction.
    site: u64,
    /// Its operand.
    at: u64,
    /// What was found.
    pub value: u64,
    /// How often it has been made again since, with that result.
    pub count: u64,
}

impl Poll {
    /// Where the place lies in it.
    pub const POS: usize = core::mem::offset_of!(Poll, pos);

    /// It has been logged, up to `pos`.
    pub const fn new(pos: u64, site: u64, at: u64, value: u64) -> Poll {
        Poll {
            pos,
            site,
            at,
            value,
            count: 0,
        }
    }

    /// Is this load, by a thread that stands at `pos`, the last one again?
    pub const fn is_again(&self, pos: u64, site: u64, at: u64) -> bool {
        self.pos == pos && self.site == site && self.at == at
    }
}
