//! `.eh_frame`: where functions start and end, and where exceptions land in them.

use crate::elf::{Image, u16_at, u32_at, u64_at};
use std::collections::HashMap;

const OMIT: u8 = 0xff;
const PC_RELATIVE: u8 = 0x10;
const APPLICATION: u8 = 0x70;

/// One function, or one part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub start: u64,
    pub end: u64,
    /// A signal handler's return: starts one byte early.
    pub signal: bool,
    pub lsda: Option<u64>,
}

#[derive(Clone, Copy)]
struct Cie {
    pointer: u8,
    lsda: u8,
    signal: bool,
    augmented: bool,
}

/// A position in bytes whose address is known.
struct Reader<'a> {
    bytes: &'a [u8],
    addr: u64,
    at: usize,
}

impl Reader<'_> {
    fn u8(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }

    fn uleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    fn sleb(&mut self) -> Option<i64> {
        let begin = self.at;
        let value = self.uleb()?;
        let bits = 7 * (self.at - begin) as u32;
        let unused = 64u32.saturating_sub(bits);
        Some((value as i64) << unused >> unused)
    }

    /// A pointer in one of the DW_EH_PE encodings. `Some(None)` is a null pointer.
    fn pointer(&mut self, encoding: u8) -> Option<Option<u64>> {
        let here = self.addr + self.at as u64;
        let mut fixed = |len: usize| {
            self.at += len;
            self.at - len
        };
        let value = match encoding & 0x0f {
            0 | 4 | 0xc => u64_at(self.bytes, fixed(8))?,
            1 => self.uleb()?,
            2 => u64::from(u16_at(self.bytes, fixed(2))?),
            3 => u64::from(u32_at(self.bytes, fixed(4))?),
            9 => self.sleb()? as u64,
            0xa => i64::from(u16_at(self.bytes, fixed(2))? as i16) as u64,
            0xb => i64::from(u32_at(self.bytes, fixed(4))? as i32) as u64,
            _ => return None,
        };
        Some(match encoding & APPLICATION {
            _ if value == 0 => None,
            0 => Some(value),
            PC_RELATIVE => Some(here.wrapping_add(value)),
            _ => return None,
        })
    }
}

/// All frames of a file, in the order of the section. What cannot be read ends the list.
pub fn frames(image: &Image) -> Vec<Frame> {
    let mut out = Vec::new();
    let mut cies = HashMap::new();
    let Some((addr, bytes)) = image.eh_frame() else {
        return out;
    };
    let mut at = 0usize;
    while let Some(length) = u32_at(bytes, at) {
        let (body, length) = match length {
            0 => {
                // A terminator; objects linked behind crtend's may follow.
                at += 4;
                continue;
            }
            u32::MAX => (at + 12, u64_at(bytes, at + 4).unwrap_or(u64::MAX)),
            short => (at + 4, u64::from(short)),
        };
        let end = usize::try_from(length)
            .ok()
            .and_then(|l| body.checked_add(l));
        let Some(end) = end.filter(|&e| e <= bytes.len() && length >= 4) else {
            break;
        };
        let id = u32_at(bytes, body).unwrap_or(0) as usize;
        let mut reader = Reader {
            bytes: &bytes[..end],
            addr,
            at: body + 4,
        };
        if id == 0 {
            if let Some(cie) = read_cie(&mut reader) {
                cies.insert(at, cie);
            }
        } else if let Some(cie) = body.checked_sub(id).and_then(|at| cies.get(&at)) {
            out.extend(read_fde(&mut reader, *cie));
        }
        at = end;
    }
    out
}

fn read_cie(r: &mut Reader) -> Option<Cie> {
    let mut cie = Cie {
        pointer: 0,
        lsda: OMIT,
        signal: false,
        augmented: false,
    };
    let version = r.u8()?;
    let begin = r.at;
    while r.u8()? != 0 {}
    let letters = &r.bytes[begin..r.at - 1];
    r.uleb()?;
    r.sleb()?;
    if version == 1 {
        r.u8()?;
    } else {
        r.uleb()?;
    }
    for letter in letters {
        match letter {
            b'z' => {
                r.uleb()?;
                cie.augmented = true;
            }
            b'R' => cie.pointer = r.u8()?,
            b'L' => cie.lsda = r.u8()?,
            b'S' => cie.signal = true,
            b'B' => {}
            b'P' => {
                let encoding = r.u8()?;
                r.pointer(encoding)?;
            }
            _ => return None,
        }
    }
    Some(cie)
}

fn read_fde(r: &mut Reader, cie: Cie) -> Option<Frame> {
    let start = r.pointer(cie.pointer)??;
    let len = r.pointer(cie.pointer & 0x0f)??;
    let mut lsda = None;
    if cie.augmented {
        r.uleb()?;
        if cie.lsda != OMIT {
            lsda = r.pointer(cie.lsda)?;
        }
    }
    let end = start.checked_add(len)?;
    Some(Frame {
        start,
        end,
        signal: cie.signal,
        lsda,
    })
}

/// Calls `pad` with each address at which an exception continues in this frame.
/// Returns `None` when the table cannot be read to its end.
pub fn landing_pads(image: &Image, frame: &Frame, mut pad: impl FnMut(u64)) -> Option<()> {
    let Some(lsda) = frame.lsda else {
        return Some(());
    };
    let mut r = Reader {
        bytes: image.tail(lsda)?,
        addr: lsda,
        at: 0,
    };
    let base = match r.u8()? {
        OMIT => frame.start,
        encoding => r.pointer(encoding)?.unwrap_or(0),
    };
    if r.u8()? != OMIT {
        r.uleb()?;
    }
    let encoding = r.u8()? & 0x0f;
    let len = r.uleb()? as usize;
    let end = r.at.checked_add(len)?;
    while r.at < end {
        r.pointer(encoding)?;
        r.pointer(encoding)?;
        if let Some(offset) = r.pointer(encoding)? {
            pad(base.wrapping_add(offset));
        }
        r.uleb()?;
    }
    Some(())
}
