//! What the processor would make of it: new value, results and flags, from the value observed.
//! The tests compare every form with the processor itself.

use super::decode::{Descriptor, Saved, mask, op, set_source, source};

pub(super) const CF: u64 = 1;
pub(super) const PF: u64 = 4;
pub(super) const AF: u64 = 0x10;
pub(super) const ZF: u64 = 0x40;
pub(super) const SF: u64 = 0x80;

/// What the operation makes of the old value.
pub(super) fn new_value(d: &Descriptor, s: &Saved, old: u64) -> u64 {
    let src = source(d, s);
    let carry = s.rflags().0 & CF;
    let bit = 1u64 << (src & (8 * d.size as u64 - 1));
    let v = match d.op {
        op::XADD | op::ADD => old.wrapping_add(src),
        op::ADC => old.wrapping_add(src).wrapping_add(carry),
        op::SUB => old.wrapping_sub(src),
        op::SBB => old.wrapping_sub(src).wrapping_sub(carry),
        op::XCHG => src,
        op::AND => old & src,
        op::OR => old | src,
        op::XOR => old ^ src,
        op::INC => old.wrapping_add(1),
        op::DEC => old.wrapping_sub(1),
        op::NEG => old.wrapping_neg(),
        op::NOT => !old,
        op::BTS => old | bit,
        op::BTR => old & !bit,
        op::BTC => old ^ bit,
        _ => src,
    };
    v & mask(d.size)
}

fn parity(v: u64) -> u64 {
    if (v as u8).count_ones().is_multiple_of(2) {
        PF
    } else {
        0
    }
}

fn sign_zero(v: u64, size: u8) -> u64 {
    let v = v & mask(size);
    let mut f = parity(v);
    if v == 0 {
        f |= ZF;
    }
    if v >> (8 * size as u32 - 1) & 1 != 0 {
        f |= SF;
    }
    f
}

fn after_add(s: &mut Saved, a: u64, b: u64, carry: u64, size: u8) {
    let (a, b) = (a & mask(size), b & mask(size));
    let wide = a as u128 + b as u128 + carry as u128;
    let v = wide as u64 & mask(size);
    let mut f = sign_zero(v, size) | (a ^ b ^ v) & AF;
    f |= (wide >> (8 * size as u32)) as u64 & CF;
    let top = 8 * size as u32 - 1;
    s.set_flags(f, (!(a ^ b) & (a ^ v)) >> top & 1 != 0);
}

fn after_sub(s: &mut Saved, a: u64, b: u64, borrow: u64, size: u8) {
    let (a, b) = (a & mask(size), b & mask(size));
    let v = a.wrapping_sub(b).wrapping_sub(borrow) & mask(size);
    let mut f = sign_zero(v, size) | (a ^ b ^ v) & AF;
    if (a as u128) < b as u128 + borrow as u128 {
        f |= CF;
    }
    let top = 8 * size as u32 - 1;
    s.set_flags(f, ((a ^ b) & (a ^ v)) >> top & 1 != 0);
}

/// Results and flags of the operation, from the value it observed.
pub(super) fn apply(d: &Descriptor, s: &mut Saved, old: u64) {
    let src = source(d, s);
    let (flags, overflow) = s.rflags();
    let carry = flags & CF;
    match d.op {
        op::XADD => {
            after_add(s, old, src, 0, d.size);
            set_source(d, s, old);
        }
        op::ADD => after_add(s, old, src, 0, d.size),
        op::ADC => after_add(s, old, src, carry, d.size),
        op::SUB => after_sub(s, old, src, 0, d.size),
        op::SBB => after_sub(s, old, src, carry, d.size),
        op::NEG => after_sub(s, 0, old, 0, d.size),
        op::XCHG => set_source(d, s, old),
        op::AND | op::OR | op::XOR => {
            let v = new_value(d, s, old);
            s.set_flags(sign_zero(v, d.size), false);
        }
        op::INC => {
            after_add(s, old, 1, 0, d.size);
            s.flags = s.flags & !(CF << 8) | carry << 8;
        }
        op::DEC => {
            after_sub(s, old, 1, 0, d.size);
            s.flags = s.flags & !(CF << 8) | carry << 8;
        }
        op::BTS | op::BTR | op::BTC => {
            let bit = old >> (src & (8 * d.size as u64 - 1)) & 1;
            s.set_flags(flags & !CF | bit, overflow);
        }
        _ => {}
    }
}

/// Result or flags of an instruction that loads, from what it has found.
pub(super) fn apply_load(d: &Descriptor, s: &mut Saved, found: u64) {
    let found = found & mask(d.size);
    let src = source(d, s);
    match d.op {
        op::LOAD => set_source(d, s, found),
        op::LOAD_ZERO => s.r[d.register as usize & 15] = found,
        op::LOAD_SIGN4 => s.r[d.register as usize & 15] = signed(found, d.size) & mask(4),
        op::LOAD_SIGN8 => s.r[d.register as usize & 15] = signed(found, d.size),
        op::COMPARE => after_sub(s, found, src, 0, d.size),
        op::COMPARE_TO => after_sub(s, src, found, 0, d.size),
        op::TEST => s.set_flags(sign_zero(found & src, d.size), false),
        op::LOAD_ADD => {
            after_add(s, src, found, 0, d.size);
            set_source(d, s, src.wrapping_add(found));
        }
        op::LOAD_SUB => {
            after_sub(s, src, found, 0, d.size);
            set_source(d, s, src.wrapping_sub(found));
        }
        op::LOAD_AND | op::LOAD_OR | op::LOAD_XOR => {
            let v = match d.op {
                op::LOAD_AND => src & found,
                op::LOAD_OR => src | found,
                _ => src ^ found,
            };
            s.set_flags(sign_zero(v, d.size), false);
            set_source(d, s, v);
        }
        _ => {}
    }
}

/// A value of so many bytes, with its sign in all of the higher bits.
fn signed(value: u64, size: u8) -> u64 {
    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
    ((value << unused) as i64 >> unused) as u64
}

/// Accumulator, flags and success of a compare-and-exchange.
pub(super) fn apply_cmpxchg(d: &Descriptor, s: &mut Saved, expected: u64, seen: u64) {
    if d.op == op::CMPXCHG8B {
        let (flags, overflow) = s.rflags();
        s.set_flags(
            if seen == expected {
                flags | ZF
            } else {
                flags & !ZF
            },
            overflow,
        );
        if seen != expected {
            s.r[0] = seen & 0xffff_ffff;
            s.r[2] = seen >> 32;
        }
        return;
    }
    after_sub(s, expected, seen, 0, d.size);
    if seen != expected & mask(d.size) {
        match d.size {
            8 => s.r[0] = seen,
            4 => s.r[0] = seen & 0xffff_ffff,
            n => s.r[0] = s.r[0] & !mask(n) | seen,
        }
    }
}
