//! Marks that a program's author has put before loads and stores by which threads meet (`geryon.h`): a `nop` with a number of ours.
//! They are ordered as those are that somebody asks for (`asked.rs`).

use crate::elf::Image;
use memchr::memmem;

/// `nopl 0x47655279(%rax,%rax,1)`. Eight bytes, so that there is room for a jump whatever comes behind it.
pub const MARK: [u8; 8] = [0x0f, 0x1f, 0x84, 0x00, 0x79, 0x52, 0x65, 0x47];

/// Where the instructions lie that come behind marks.
pub fn marked(image: &Image) -> Vec<u64> {
    let code = image.segments.iter().filter(|s| s.exec);
    code.flat_map(|s| {
        let bytes = image.tail(s.vaddr).unwrap_or_default();
        let found = memmem::find_iter(bytes, &MARK);
        found.map(|at| s.vaddr + (at + MARK.len()) as u64)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header says so, too.
    #[test]
    fn a_mark_is_a_nop_of_eight_bytes() {
        use iced_x86::{Decoder, DecoderOptions, Mnemonic};
        let i = Decoder::with_ip(64, &MARK, 0, DecoderOptions::NONE).decode();
        assert_eq!((i.mnemonic(), i.len()), (Mnemonic::Nop, MARK.len()));
        let header = include_str!("../../../include/geryon.h");
        let bytes: Vec<String> = MARK.iter().map(|b| format!("0x{b:02x}")).collect();
        assert!(header.contains(&bytes.join(", ")));
    }
}
