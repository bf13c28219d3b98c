//! Faults in the registers that ptrace shows as one structure.

use libc::user_regs_struct;

use crate::fault::{Gpr, Target};

/// Where the structure has a general register.
pub fn gpr(regs: &mut user_regs_struct, register: Gpr) -> &mut u64 {
    match register {
        Gpr::Rax => &mut regs.rax,
        Gpr::Rbx => &mut regs.rbx,
        Gpr::Rcx => &mut regs.rcx,
        Gpr::Rdx => &mut regs.rdx,
        Gpr::Rsi => &mut regs.rsi,
        Gpr::Rdi => &mut regs.rdi,
        Gpr::Rbp => &mut regs.rbp,
        Gpr::Rsp => &mut regs.rsp,
        Gpr::R8 => &mut regs.r8,
        Gpr::R9 => &mut regs.r9,
        Gpr::R10 => &mut regs.r10,
        Gpr::R11 => &mut regs.r11,
        Gpr::R12 => &mut regs.r12,
        Gpr::R13 => &mut regs.r13,
        Gpr::R14 => &mut regs.r14,
        Gpr::R15 => &mut regs.r15,
    }
}

/// Make the fault. False: it is not one of these registers.
///
/// A crash is an instruction pointer of zero: the signal comes from the processor then, so that no
/// mask holds it back.
pub fn strike(regs: &mut user_regs_struct, target: &Target) -> bool {
    match *target {
        Target::Gpr { register, bit } => *gpr(regs, register) ^= 1 << bit,
        Target::Flags { bit } => regs.eflags ^= 1 << bit,
        Target::Ip { bit } => regs.rip ^= 1 << bit,
        Target::Stuck {
            register, value, ..
        } => *gpr(regs, register) = value,
        Target::Crash => regs.rip = 0,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeroes() -> user_regs_struct {
        user_regs_struct {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbp: 0,
            rbx: 0,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rax: 0,
            rcx: 0,
            rdx: 0,
            rsi: 0,
            rdi: 0,
            orig_rax: 0,
            rip: 0,
            cs: 0,
            eflags: 0,
            rsp: 0,
            ss: 0,
            fs_base: 0,
            gs_base: 0,
            ds: 0,
            es: 0,
            fs: 0,
            gs: 0,
        }
    }

    #[test]
    fn every_register_is_one_of_its_own() {
        let mut regs = zeroes();
        for (i, register) in Gpr::ALL.into_iter().enumerate() {
            assert_eq!(*gpr(&mut regs, register), 0, "{}", register.name());
            *gpr(&mut regs, register) = i as u64 + 1;
        }
        assert_eq!((regs.rax, regs.rsp, regs.r15), (1, 8, 16));
    }

    #[test]
    fn one_bit_flips() {
        let mut regs = zeroes();
        let target = Target::Gpr {
            register: Gpr::Rbx,
            bit: 13,
        };
        assert!(strike(&mut regs, &target));
        assert_eq!(regs.rbx, 1 << 13);
        assert!(strike(&mut regs, &target));
        assert_eq!(regs.rbx, 0);
        assert!(strike(&mut regs, &Target::Ip { bit: 63 }));
        assert_eq!(regs.rip, 1 << 63);
        assert!(strike(&mut regs, &Target::Crash));
        assert_eq!(regs.rip, 0);
    }

    #[test]
    fn other_targets_are_left_alone() {
        let mut regs = zeroes();
        assert!(!strike(&mut regs, &Target::Heap { number: 1, bit: 1 }));
        assert!(!strike(&mut regs, &Target::Skip));
    }
}
