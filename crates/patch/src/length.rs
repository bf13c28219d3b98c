//! The length of one instruction, for who leaves one out.

use iced_x86::{Decoder, DecoderOptions};

/// Bytes of the longest instruction.
pub const INSTRUCTION_MAX: usize = 15;

/// How long the instruction is with which these bytes begin; None when they begin with none.
///
/// ```
/// assert_eq!(geryon_patch::instruction_len(&[0x0f, 0x05, 0x90]), Some(2));
/// assert_eq!(geryon_patch::instruction_len(&[0x48]), None);
/// ```
pub fn instruction_len(bytes: &[u8]) -> Option<usize> {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| instruction.len())
}
