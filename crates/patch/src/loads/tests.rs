//! Functions by their bytes, and which of their loads are ordered.

use super::*;
use iced_x86::{Decoder, DecoderOptions};

fn found(code: &[u8], words: &Words) -> Vec<usize> {
    let decoder = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE);
    let lines: Vec<Instruction> = decoder.into_iter().collect();
    ordered(&lines, &Loop::all(&lines), words, &mut Info::new())
}

fn atomic(word: u64) -> Words {
    Words {
        atomic: vec![word],
        ..Words::default()
    }
}

#[test]
fn the_operand_of_an_atomic_is_loaded_elsewhere_in_the_function() {
    // mov eax, [rdi+8]; mov ecx, [rdi+16]; lock xadd [rdi+8], edx; ret
    let code = [
        0x8b, 0x47, 8, 0x8b, 0x4f, 16, 0xf0, 0x0f, 0xc1, 0x57, 8, 0xc3,
    ];
    assert_eq!(found(&code, &Words::default()), [0]);
}

#[test]
fn a_fixed_word_on_which_another_function_is_atomic() {
    // mov rax, [rip+0x100]; ret
    let code = [0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xc3];
    assert_eq!(found(&code, &atomic(0x1107)), [0]);
    assert_eq!(found(&code, &atomic(0x1108)), []);
}

#[test]
fn what_makes_what_a_compare_expects_may_lie_on_the_stack() {
    // mov eax, [rsp+0x40]; lea edx, [rax-1]; lock cmpxchg [rsp+0x40], edx; mov ecx, [rsp+0x48]; ret
    let code = [
        0x8b, 0x44, 0x24, 0x40, 0x8d, 0x50, 0xff, 0xf0, 0x0f, 0xb1, 0x54, 0x24, 0x40, 0x8b, 0x4c,
        0x24, 0x48, 0xc3,
    ];
    assert_eq!(found(&code, &Words::default()), [0]);
}

#[test]
fn a_guard_is_compared_and_given_to_who_makes_what_it_guards() {
    // movzx eax, byte [rip+0x100]; test al, al; je +1; ret
    let code = [0x0f, 0xb6, 0x05, 0, 1, 0, 0, 0x84, 0xc0, 0x74, 1, 0xc3];
    let given = |word| Words {
        given: vec![word],
        ..Words::default()
    };
    assert_eq!(found(&code, &given(0x1107)), [0]);
    assert_eq!(found(&code, &given(0x10f0)), [0], "behind what it guards");
    assert_eq!(found(&code, &given(0x1108)), []);
    let hooked = Words {
        in_c_library: true,
        ..given(0x1107)
    };
    assert_eq!(found(&code, &hooked), []);
}

#[test]
fn what_is_stored_where_it_is_loaded() {
    // mov eax, [rdi+8]; inc eax; mov [rdi+8], eax; mov [rdi+16], eax; cmp eax, 3; lock dec dword [rsi]; ret
    let code = [
        0x8b, 0x47, 8, 0xff, 0xc0, 0x89, 0x47, 8, 0x89, 0x47, 16, 0x83, 0xf8, 3, 0xf0, 0xff, 0x0e,
        0xc3,
    ];
    let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
    let lines: Vec<Instruction> = decoder.into_iter().collect();
    let (words, info) = (Words::default(), &mut Info::new());
    let found = ordered(&lines, &Loop::all(&lines), &words, info);
    assert_eq!(found, [0]);
    let stores = stores(&lines, &found, &words, info);
    assert_eq!(stores, [2]);
}

#[test]
fn what_a_futex_is_expected_to_hold() {
    // mov esi, [r12]; mov rdi, r12; call 0; lock dec dword [rbx]; ret
    let code = [
        0x41, 0x8b, 0x34, 0x24, 0x4c, 0x89, 0xe7, 0xe8, 0, 0, 0, 0, 0xf0, 0xff, 0x0b, 0xc3,
    ];
    assert_eq!(found(&code, &Words::default()), [0]);
    // Of eight bytes: mov rsi, [r12]
    let wide = [&[0x49], &code[1..]].concat();
    assert_eq!(found(&wide, &Words::default()), []);
}

#[test]
fn what_cannot_change_decides_nothing() {
    // mov rax, [rip+0x100]; test rax, rax; lock dec dword [rdi]
    let code = [
        0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x48, 0x85, 0xc0, 0xf0, 0xff, 0x0f,
    ];
    assert_eq!(found(&code, &Words::default()), [0]);
    let table = Words {
        constants: vec![0x1100..0x1108, 0x2000..0x3000],
        ..Words::default()
    };
    assert_eq!(found(&code, &table), []);
}

#[test]
fn in_the_c_library_a_word_is_asked_whether_it_is_zero_or_a_limit() {
    let hooked = Words {
        in_c_library: true,
        ..Words::default()
    };
    let beside_atomic = |code: &[u8]| {
        let atomic: &[u8] = &[0xf0, 0xff, 0x0f]; // lock dec dword [rdi]
        found(&[code, atomic].concat(), &hooked)
    };
    // mov eax, [rip+0x100]; test eax, eax
    assert_eq!(beside_atomic(&[0x8b, 0x05, 0, 1, 0, 0, 0x85, 0xc0]), [0]);
    // cmp dword [rip+0x100], 0
    assert_eq!(beside_atomic(&[0x83, 0x3d, 0, 1, 0, 0, 0]), [0]);
    // cmp rcx, [rip+0x100]: a limit, which malloc's free raises in one thread and asks for in another.
    assert_eq!(beside_atomic(&[0x48, 0x3b, 0x0d, 0, 1, 0, 0]), [0]);
    // mov rax, [rip+0x100]; mov rax, fs:[rax]; test rax, rax: where a thread's own word is.
    let own = [
        0x48, 0x8b, 0x05, 0, 1, 0, 0, 0x64, 0x48, 0x8b, 0, 0x48, 0x85, 0xc0,
    ];
    assert_eq!(beside_atomic(&own), []);
}

/// Malloc's limits, which its functions ask for each time: loads of theirs were most of what some programs logged.
#[test]
fn in_the_c_library_what_is_set_once_decides_nothing() {
    // cmp rcx, [rip+0x100]; lock dec dword [rdi]
    let code = [0x48, 0x3b, 0x0d, 0, 1, 0, 0, 0xf0, 0xff, 0x0f];
    let library = |changed| Words {
        in_c_library: true,
        is_shared: true,
        changed,
        ..Words::default()
    };
    assert_eq!(found(&code, &library(vec![])), []);
    assert_eq!(found(&code, &library(vec![0x1107])), [0]);
}

#[test]
fn a_loop_that_stores_nothing_polls() {
    // mov eax, [rdi]; mov ecx, [rsi]; sub eax, ecx; cmp eax, 16; je -11
    let code = [
        0x8b, 0x07, 0x8b, 0x0e, 0x29, 0xc8, 0x83, 0xf8, 16, 0x74, 0xf5,
    ];
    assert_eq!(found(&code, &Words::default()), [0, 1]);
    // The same with mov [rdx], eax in it.
    let stores = [
        0x8b, 0x07, 0x8b, 0x0e, 0x89, 0x02, 0x29, 0xc8, 0x83, 0xf8, 16, 0x74, 0xf3,
    ];
    assert_eq!(found(&stores, &Words::default()), []);
}

#[test]
fn what_is_compared_beside_an_atomic_instruction() {
    // mov eax, [rsi]; lea ecx, [rax+1]; cmp ecx, edx; lock inc dword [rdi]
    let code = [0x8b, 0x06, 0x8d, 0x48, 1, 0x39, 0xd1, 0xf0, 0xff, 0x07];
    assert_eq!(found(&code, &Words::default()), [0]);
    // mov rax, [rsi]; cmp [rax], edx: a load of its own; the pointer itself is not compared.
    let points = [0x48, 0x8b, 0x06, 0x39, 0x10, 0xf0, 0xff, 0x07];
    assert_eq!(found(&points, &Words::default()), [1]);
    // Without an atomic instruction.
    assert_eq!(found(&code[..7], &Words::default()), []);
}
