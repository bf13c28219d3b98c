//! A sentry: code that a thread passes at one instruction of the program, and that stops it (by a breakpoint
//! instruction) when its registers, and some words of memory, hold what they are expected to hold. A
//! breakpoint of the processor's stops it each time, which takes some ten thousand times as long.

use crate::asm::Asm;
use crate::{Error, JUMP_LEN};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};

/// What is expected.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The general registers, as instructions number them: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub registers: [u64; 16],
    /// Words of memory, by address; looked at first. They have to be mapped.
    pub words: Vec<(u64, u64)>,
}

/// The code, and what to write where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentry {
    /// Content of the memory that was given for it.
    pub code: Vec<u8>,
    /// Where the thread stands when it was stopped (behind the breakpoint instruction). Rax and the flags are in the scratch
    /// words then.
    pub stopped: u64,
    /// Addresses in the code and in the program that mean the same, sorted.
    pub pcs: Vec<(u64, u64)>,
    /// What to write over the instruction; the rest of it is never executed.
    pub jump: [u8; JUMP_LEN],
}

/// Bytes of code, at most, with so many words.
#[must_use]
pub const fn sentry_len(words: usize) -> usize {
    512 + 32 * words
}

/// Can a sentry stand at the instruction with which these bytes begin? How long it is then: it has to be long
/// enough for a jump, and may neither lead elsewhere nor be one that the kernel or a debugger looks at.
#[must_use]
pub fn sentry_site(bytes: &[u8]) -> Option<usize> {
    let i = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let is_plain = !i.is_invalid()
        && i.flow_control() == FlowControl::Next
        && i.code() != Code::Syscall
        && !i.has_rep_prefix()
        && !i.has_repne_prefix();
    (is_plain && i.len() >= JUMP_LEN).then(|| i.len())
}

/// The sentry for the instruction at `site`, which these bytes begin with, in memory at `area`. `scratch`: two
/// words of the thread's own, by their distances from where its GS register points to.
///
/// # Errors
/// When the two, or what the instruction refers to, are too far from each other; [`Error::BadPlan`] where
/// no sentry can stand.
pub fn sentry(
    site: u64,
    bytes: &[u8],
    area: u64,
    expected: &Expected,
    scratch: [u32; 2],
) -> Result<Sentry, Error> {
    let len = sentry_site(bytes).ok_or(Error::BadPlan(site))?;
    let instruction = &bytes[..len];
    let mut asm = Asm::new(area);
    let check = check(&mut asm, expected, scratch);
    let moved = asm.here();
    move_instruction(&mut asm, site, instruction);
    let (jump, next) = (asm.here(), site + len as u64);
    asm.relative(&[0xe9], next);
    let pcs = vec![(moved, site), (jump, next)];
    let code = asm.finish()?;
    let mut jump = Asm::new(site);
    jump.relative(&[0xe9], check.entry);
    let jump = jump.finish()?;
    Ok(Sentry {
        code,
        stopped: check.stopped,
        pcs,
        jump: jump.try_into().map_err(|_| Error::BadPlan(site))?,
    })
}

/// The code that stops a thread or lets it pass, to what is put behind it.
pub(crate) struct Check {
    /// Where it begins.
    pub entry: u64,
    /// Where a thread stands that it has stopped.
    pub stopped: u64,
}

/// Is everything as expected? What is put behind it is executed with all registers as they were before.
pub(crate) fn check(asm: &mut Asm, expected: &Expected, scratch: [u32; 2]) -> Check {
    let area = asm.here();
    let [rax, flags] = scratch.map(u32::to_le_bytes);
    let constants = expected.words.iter().map(|w| w.1);
    for constant in constants.chain(expected.registers) {
        asm.put(&constant.to_le_bytes());
    }
    let constant = |n: usize| area + 8 * n as u64;
    let entry = asm.here();
    let mut ways_out = Vec::new();
    // mov gs:[rax], rax; lahf; seto al; mov gs:[flags], rax
    asm.put(&[0x65, 0x48, 0x89, 0x04, 0x25]);
    asm.put(&rax);
    asm.put(&[0x9f, 0x0f, 0x90, 0xc0]);
    asm.put(&[0x65, 0x48, 0x89, 0x04, 0x25]);
    asm.put(&flags);
    let mut differs = |asm: &mut Asm| {
        // jne
        asm.put(&[0x0f, 0x85, 0, 0, 0, 0]);
        ways_out.push(asm.here());
    };
    for (n, (address, _)) in expected.words.iter().enumerate() {
        // movabs rax, [address]; cmp rax, [constant]
        asm.put(&[0x48, 0xa1]);
        asm.put(&address.to_le_bytes());
        asm.relative(&[0x48, 0x3b, 0x05], constant(n));
        differs(asm);
    }
    for register in 0..16u8 {
        if register == 0 {
            // mov rax, gs:[rax]
            asm.put(&[0x65, 0x48, 0x8b, 0x04, 0x25]);
            asm.put(&rax);
        }
        // cmp register, [constant]
        let rex = 0x48 | (register >> 3) << 2;
        let modrm = 0x05 | (register & 7) << 3;
        let at = constant(expected.words.len() + usize::from(register));
        asm.relative(&[rex, 0x3b, modrm], at);
        differs(asm);
    }
    asm.put(&[0xcc]);
    let stopped = asm.here();
    for from in ways_out {
        asm.patch(from - 4, from, stopped);
    }
    // mov rax, gs:[flags]; add al, 0x7f; sahf; mov rax, gs:[rax]
    asm.put(&[0x65, 0x48, 0x8b, 0x04, 0x25]);
    asm.put(&flags);
    asm.put(&[0x04, 0x7f, 0x9e]);
    asm.put(&[0x65, 0x48, 0x8b, 0x04, 0x25]);
    asm.put(&rax);
    Check { entry, stopped }
}

/// The same instruction here; what it refers to relative to itself is still meant.
fn move_instruction(asm: &mut Asm, site: u64, bytes: &[u8]) {
    let mut decoder = Decoder::with_ip(64, bytes, site, DecoderOptions::NONE);
    let i = decoder.decode();
    let begin = asm.here();
    asm.put(bytes);
    if i.is_ip_rel_memory_operand() {
        let at = begin + decoder.get_constant_offsets(&i).displacement_offset() as u64;
        asm.patch(at, asm.here(), i.ip_rel_memory_address());
    }
}

/// The flags as the sentry has left them in its second scratch word, put into others.
#[must_use]
pub fn sentry_flags(scratch: u64, others: u64) -> u64 {
    const KEPT: u64 = 0xd5;
    const OVERFLOW: u64 = 1 << 11;
    let low = scratch >> 8 & KEPT;
    (others & !(KEPT | OVERFLOW)) | low | (scratch & 1) << 11
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov eax, [rip + 0x10]`, `add rbx, 1`, `call`, `mov rax, imm64`
    #[test]
    fn where_one_can_stand() {
        assert_eq!(sentry_site(&[0x8b, 0x05, 0x10, 0, 0, 0, 0x90]), Some(6));
        assert_eq!(
            sentry_site(&[0x48, 0x83, 0xc3, 0x01, 0x90]),
            None,
            "too short"
        );
        assert_eq!(sentry_site(&[0xe8, 0, 0, 0, 0]), None, "a call");
        assert_eq!(sentry_site(&[0x0f, 0x84, 0, 0, 0, 0]), None, "a branch");
        assert_eq!(sentry_site(&[0x0f, 0x05]), None);
        assert_eq!(sentry_site(&[]), None);
    }

    #[test]
    fn every_part_decodes_and_meets_the_others() {
        let site = 0x5555_0000_1000;
        let area = 0x5555_4000_0000;
        let mov = [0x8b, 0x05, 0x10, 0, 0, 0];
        let expected = Expected {
            registers: std::array::from_fn(|i| i as u64),
            words: vec![(0x7fff_1234_5678, 9)],
        };
        let s = sentry(site, &mov, area, &expected, [0x40, 0x48]).expect("within reach");
        assert!(s.code.len() <= sentry_len(1));
        let begin = 17 * 8;
        let mut decoder = Decoder::with_ip(64, &s.code[begin..], area + begin as u64, 0);
        let mut seen = Vec::new();
        while decoder.can_decode() {
            seen.push(decoder.decode());
        }
        assert!(seen.iter().all(|i| !i.is_invalid()));
        let jumps = seen.iter().filter(|i| i.is_jcc_short_or_near());
        assert!(jumps.clone().count() == 17);
        assert!(
            jumps
                .into_iter()
                .all(|i| i.near_branch_target() == s.stopped)
        );
        let last = seen.last().expect("a jump");
        assert_eq!(last.near_branch_target(), site + 6);
        let moved = &seen[seen.len() - 2];
        assert_eq!(moved.ip_rel_memory_address(), site + 6 + 0x10);
        assert_eq!(s.pcs, [(moved.ip(), site), (last.ip(), site + 6)]);
        let jump = Decoder::with_ip(64, &s.jump, site, 0).decode();
        assert_eq!(jump.near_branch_target(), area + begin as u64);
    }

    #[test]
    fn what_is_out_of_reach_is_refused() {
        let mov = [0x8b, 0x05, 0x10, 0, 0, 0];
        let far = sentry(0x1000, &mov, 0x7fff_0000_0000, &Expected::default(), [0, 8]);
        assert!(matches!(far, Err(Error::OutOfReach { .. })));
    }

    #[test]
    fn flags_come_back() {
        // SF, ZF, AF, PF, CF in ah; OF in al.
        assert_eq!(
            sentry_flags(0xd7 << 8 | 1, 0x246 & !0x44),
            0x202 | 0xd5 | 0x800
        );
        assert_eq!(sentry_flags(0x02 << 8, 0xfff), 0xfff & !0x8d5);
    }
}
