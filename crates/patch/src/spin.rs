//! Places to which a thread comes again and again while it waits for another one without a call. Where one thread
//! runs at a time it waits there in vain until it gives its turn away.
//!
//! - Loads of what a loop reads at one place, to see whether somebody has stored there. A loop is a stretch from the
//!   target of a branch back to the branch. It waits when it says so (`pause`, the time stamp counter, which limits how
//!   long), or when it is short and stores nothing itself. Of its loads those count whose address stays the same all
//!   over the loop, and whose value is compared. (Compilers take all others out of such a loop.)
//! - Calls in short loops that go on until the function says something else.
//! - `pause`, and fences.

use crate::SiteKind;
use crate::classify::{Atomic, Rmw, atomic, site};
use crate::descriptor::{Op, Source};
use crate::info::Info;
use crate::loops::Loop;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};

/// Most bytes of a loop for which a function is looked at that has no other site.
const NARROW: u64 = 300;

/// Might the branch close a loop that waits?
pub fn may_wait(i: &Instruction) -> bool {
    let back = i.op0_kind() == OpKind::NearBranch64
        && matches!(
            i.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
    back && i.near_branch_target() <= i.ip() && i.ip() - i.near_branch_target() <= NARROW
}

/// What has no operand that waits: `pause`, a fence, or a call.
pub fn bare(i: &Instruction) -> Rmw {
    Rmw {
        op: match i.mnemonic() {
            Mnemonic::Pause => Op::Pause,
            _ => Op::MayWait,
        },
        size: 8,
        source: Source::None,
    }
}

/// Which of a function's instructions, all of them in order, are such places.
pub fn waits(lines: &[Instruction], loops: &[Loop], info: &mut Info) -> Vec<usize> {
    let mut loops: Vec<&Loop> = loops.iter().collect();
    // An instruction belongs to the innermost.
    loops.sort_by_key(|l| l.body.len());
    let mut owned = vec![false; lines.len()];
    let (mut out, mut waiting): (Vec<usize>, Vec<&Loop>) = (Vec::new(), Vec::new());
    for l in loops {
        let waits = l.says_so() || l.is_short() && l.asks_the_same(info) && l.stores_own(info);
        let whole = l.says_so() || l.stores_nothing(info);
        if waits {
            waiting.push(l);
        }
        if waits && whole {
            out.extend(l.loads(info).into_iter().filter(|k| !owned[*k]));
        }
        owned[l.range()].fill(true);
    }
    let loads = out.clone();
    for l in waiting {
        // Who comes to the agent, or to a load that waits, is counted there.
        let counted =
            l.body.iter().any(|i| site(i).is_some()) || loads.iter().any(|k| l.range().contains(k));
        if l.is_short() && !counted {
            out.extend(l.calls());
        }
    }
    out.extend((0..lines.len()).filter(|at| is_sign(&lines[*at])));
    out.sort_unstable();
    out.dedup();
    out
}

/// A thread that waits comes to these anywhere: `pause`, and a fence between what it stores and what it loads.
pub fn is_sign(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Pause | Mnemonic::Mfence)
        || site(i) == Some(SiteKind::Rmw) && atomic(i) == Atomic::Fence
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn found(code: &[u8]) -> Vec<usize> {
        let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        waits(&lines, &Loop::all(&lines), &mut Info::new())
    }

    #[test]
    fn a_word_that_is_read_until_it_changes() {
        // mov eax, [rip+0x1000]; test eax, eax; je -10
        let plain = [0x8b, 0x05, 0, 0x10, 0, 0, 0x85, 0xc0, 0x74, 0xf6];
        assert_eq!(found(&plain), [0]);
        // mov eax, [rdi]; cmp eax, esi; pause; jne -8
        let pauses = [0x8b, 0x07, 0x39, 0xf0, 0xf3, 0x90, 0x75, 0xf8];
        assert_eq!(found(&pauses), [0, 2]);
    }

    #[test]
    fn a_list_is_followed_and_a_spilt_register_is_nobody_elses() {
        // mov rdi, [rdi]; test rdi, rdi; jne -8
        assert_eq!(found(&[0x48, 0x8b, 0x3f, 0x48, 0x85, 0xff, 0x75, 0xf8]), []);
        // mov eax, [rsp+8]; test eax, eax; je -8
        assert_eq!(found(&[0x8b, 0x44, 0x24, 0x08, 0x85, 0xc0, 0x74, 0xf8]), []);
    }

    #[test]
    fn a_function_that_is_called_until_it_says_yes() {
        // mov rdi, rbx; call 0; test al, al; je -12
        let asks = [0x48, 0x89, 0xdf, 0xe8, 0, 0, 0, 0, 0x84, 0xc0, 0x74, 0xf4];
        assert_eq!(found(&asks), [1]);
        // mov rdi, rbp; call 0; inc rbp; cmp [r12], rbp; jg -17
        let counts = [
            0x48, 0x89, 0xef, 0xe8, 0, 0, 0, 0, 0x48, 0xff, 0xc5, 0x49, 0x39, 0x2c, 0x24, 0x7f,
            0xef,
        ];
        assert_eq!(found(&counts), []);
    }

    #[test]
    fn a_branch_back_to_where_a_function_ends_closes_no_loop() {
        // xor eax, eax; ret; mov eax, [rdi]; test eax, eax; je -9
        let ends = [0x31, 0xc0, 0xc3, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf7];
        assert_eq!(found(&ends), []);
    }

    #[test]
    fn fences_and_pauses_count_anywhere() {
        // lock or dword [rsp], 0; mfence; pause; ret
        let signs = [
            0xf0, 0x83, 0x0c, 0x24, 0, 0x0f, 0xae, 0xf0, 0xf3, 0x90, 0xc3,
        ];
        assert_eq!(found(&signs), [0, 1, 2]);
    }
}
