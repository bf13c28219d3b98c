//! Where a thread's control block says whether it may be cancelled at any moment. glibc tells nobody; the code of
//! pthread_setcanceltype does, which changes that word.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, OpKind, Register};

/// So many instructions are looked at.
const LOOKED_AT: usize = 32;
/// Where the block has its own address, in all versions.
const SELF: u64 = 0x10;
/// Before that lies what all code may use of it (the canary, what guards addresses: older versions have a function here that
/// leads to another library's by such an address). No block is as large as the end.
const OWN: core::ops::Range<u64> = 0x100..0x1000;

/// How far behind the beginning of a thread's control block the word lies, by the code of that function. None where it does not
/// show.
#[must_use]
pub fn cancel_word(code: &[u8]) -> Option<u64> {
    let mut own = Register::None;
    for i in Decoder::new(64, code, DecoderOptions::NONE)
        .iter()
        .take(LOOKED_AT)
    {
        if matches!(
            i.flow_control(),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::UnconditionalBranch
        ) {
            return None;
        }
        let has_memory = i.op_kinds().any(|kind| kind == OpKind::Memory);
        if !has_memory || i.memory_index() != Register::None {
            continue;
        }
        let (base, at) = (i.memory_base(), i.memory_displacement64());
        let is_own = i.segment_prefix() == Register::FS && base == Register::None;
        if is_own && at == SELF && i.code() == Code::Mov_r64_rm64 {
            own = i.op0_register();
        } else if is_own || own != Register::None && base == own {
            return Some(at).filter(|at| OWN.contains(at) && at % 4 == 0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::cancel_word;

    #[test]
    fn it_is_what_is_loaded_of_the_block() {
        // cmp edi, 1; ja ..; mov rax, fs:[0x10]; lea rcx, [rax + 0x308]
        let of_self = [
            0x83, 0xff, 0x01, 0x77, 0x53, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0, 0x48, 0x8d,
            0x88, 0x08, 0x03, 0, 0,
        ];
        assert_eq!(cancel_word(&of_self), Some(0x308));
        // mov eax, fs:[0x304]
        assert_eq!(
            cancel_word(&[0x64, 0x8b, 0x04, 0x25, 0x04, 0x03, 0, 0]),
            Some(0x304)
        );
        // mov rax, fs:[0x10]; mov [rsi], edx; ret
        let nothing = [
            0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0, 0x89, 0x16, 0xc3,
        ];
        assert_eq!(cancel_word(&nothing), None);
        // mov rax, [rip]; ror rax, 0x11; xor rax, fs:[0x30]; jmp rax
        let leads_elsewhere = [
            0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x48, 0xc1, 0xc8, 0x11, 0x64, 0x48, 0x33, 0x04, 0x25,
            0x30, 0, 0, 0, 0xff, 0xe0,
        ];
        assert_eq!(cancel_word(&leads_elsewhere), None);
        // mov rax, fs:[0x10]; mov eax, [rax + 0x8000]
        let too_far = [
            0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0, 0x8b, 0x80, 0, 0x80, 0, 0,
        ];
        assert_eq!(cancel_word(&too_far), None);
    }
}
