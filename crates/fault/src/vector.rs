//! Faults in vector registers: a bit in the area that XSAVE writes and ptrace shows (register set
//! NT_X86_XSTATE).

use crate::fault::{Vector, Width};

/// Where the area says which components it holds.
const STATE_BV: usize = 512;
/// Where it has the low halves of xmm0 to xmm15.
const XMM: usize = 160;
/// Components by their number in the processor's numbering.
const SSE: u32 = 1;
/// Upper halves of ymm0 to ymm15.
const AVX: u32 = 2;
/// Upper halves of zmm0 to zmm15.
const ZMM_HIGH: u32 = 6;
/// zmm16 to zmm31.
const HIGH_ZMM: u32 = 7;

/// Flip the bit. `offset` tells where the area has a component (CPUID leaf 0xd, EBX). False: this
/// processor has no such register.
pub fn strike(area: &mut [u8], vector: Vector, offset: impl Fn(u32) -> Option<usize>) -> bool {
    let Vector { width, number, bit } = vector;
    if number >= width.registers() || bit >= width.bits() {
        return false;
    }
    let (number, byte) = (number as usize, bit as usize / 8);
    // An operating system that has not switched the width on has no room for it.
    let component = match width {
        Width::Xmm => SSE,
        Width::Ymm => AVX,
        Width::Zmm => ZMM_HIGH,
    };
    if component != SSE && offset(component).is_none() {
        return false;
    }
    let place = match (number, byte) {
        (16.., _) => offset(HIGH_ZMM).map(|at| (HIGH_ZMM, at + (number - 16) * 64 + byte)),
        (_, 0..16) => Some((SSE, XMM + number * 16 + byte)),
        (_, 16..32) => offset(AVX).map(|at| (AVX, at + number * 16 + byte - 16)),
        _ => offset(ZMM_HIGH).map(|at| (ZMM_HIGH, at + number * 32 + byte - 32)),
    };
    let Some((component, at)) = place else {
        return false;
    };
    if at >= area.len() || area.len() < STATE_BV + 8 {
        return false;
    }
    area[at] ^= 1 << (bit % 8);
    // A component that is not marked is taken for zeroes, whatever the area holds.
    area[STATE_BV] |= 1 << component;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on Intel's processors.
    fn intel(component: u32) -> Option<usize> {
        match component {
            AVX => Some(576),
            ZMM_HIGH => Some(1152),
            HIGH_ZMM => Some(1664),
            _ => None,
        }
    }

    fn struck(width: Width, number: u32, bit: u32) -> Option<(usize, u8, u8)> {
        let mut area = vec![0; 2696];
        if !strike(&mut area, Vector { width, number, bit }, intel) {
            return None;
        }
        let state = std::mem::take(&mut area[STATE_BV]);
        let at = area.iter().position(|b| *b != 0)?;
        Some((at, area[at], state))
    }

    #[test]
    fn bits_lie_where_the_processor_has_them() {
        assert_eq!(struck(Width::Xmm, 0, 0), Some((160, 1, 1 << SSE)));
        assert_eq!(struck(Width::Xmm, 15, 127), Some((415, 0x80, 1 << SSE)));
        assert_eq!(struck(Width::Ymm, 1, 9), Some((177, 2, 1 << SSE)));
        assert_eq!(struck(Width::Ymm, 1, 128), Some((592, 1, 1 << AVX)));
        assert_eq!(struck(Width::Zmm, 2, 256), Some((1216, 1, 1 << ZMM_HIGH)));
        assert_eq!(
            struck(Width::Zmm, 31, 511),
            Some((2687, 0x80, 1 << HIGH_ZMM))
        );
    }

    #[test]
    fn what_the_processor_lacks_is_not_hit() {
        let vector = |width| Vector {
            width,
            number: 0,
            bit: 0,
        };
        let mut area = vec![0; 576];
        assert!(!strike(&mut area, vector(Width::Ymm), |_| None));
        assert!(!strike(&mut area, vector(Width::Zmm), |_| None));
        assert!(area.iter().all(|b| *b == 0));
        assert!(strike(&mut area, vector(Width::Xmm), |_| None));
    }

    #[test]
    fn an_area_that_is_too_short_is_not_hit() {
        let high = Vector {
            width: Width::Ymm,
            number: 15,
            bit: 255,
        };
        assert!(!strike(&mut [0; 600], high, intel));
        assert!(!strike(&mut [], high, intel));
    }
}
