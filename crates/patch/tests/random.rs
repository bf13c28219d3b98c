//! Random functions: whatever they look like, nothing outside a window can enter it, and
//! every moved instruction stays what it was.

mod common;

use geryon_patch::{Options, Plan};
use iced_x86::OpKind;
use proptest::prelude::*;

/// Instructions without and with sites; the last byte of a branch is a random distance.
const PIECES: &[&[u8]] = &[
    &[0x90],
    &[0x48, 0x89, 0xd8],                // mov rax, rbx
    &[0x31, 0xc0],                      // xor eax, eax
    &[0x48, 0x8d, 0x05, 0x10, 0, 0, 0], // lea rax, [rip+16]
    &[0x8b, 0x05, 0x20, 0, 0, 0],       // mov eax, [rip+32]
    &[0x55],                            // push rbp
    &[0xff, 0xd0],                      // call rax
    &[0xe8, 0x00, 0, 0, 0],             // call
    &[0x0f, 0x05],                      // syscall
    &[0x0f, 0x05],
    &[0xf0, 0x0f, 0xc1, 0x07],                   // lock xadd [rdi], eax
    &[0xf0, 0x48, 0x0f, 0xb1, 0x15, 8, 0, 0, 0], // lock cmpxchg [rip+8], rdx
    &[0x87, 0x07],                               // xchg [rdi], eax
    &[0x0f, 0x31],                               // rdtsc
    &[0x0f, 0xc7, 0xf1],                         // rdrand ecx
    &[0xf0, 0x83, 0x0c, 0x24, 0x00],             // lock or [rsp], 0
    &[0xf0, 0x83, 0x44, 0x24, 0x08, 0x01],       // lock add [rsp+8], 1
    &[0x0f, 0xc7, 0x64, 0x24, 0x40],             // xsavec [rsp+0x40]
    &[0x03, 0x07],                               // add eax, [rdi]
    &[0x83, 0x07, 1],                            // add dword [rdi], 1
    &[0x89, 0x44, 0x24, 8],                      // mov [rsp+8], eax
    &[0xc3],
];
const BRANCHES: &[u8] = &[0xeb, 0x74, 0x75, 0x7f, 0xe2, 0xe3];

fn function() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        5 => (0..PIECES.len()).prop_map(|i| PIECES[i].to_vec()),
        1 => (0..BRANCHES.len(), -24i8..24).prop_map(|(i, d)| vec![BRANCHES[i], d as u8]),
    ];
    proptest::collection::vec(piece, 3..40).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn windows_are_entered_only_at_their_start(mut first in function(), second in function(), padding in 0usize..8, picked in any::<u64>()) {
        let end = first.len();
        first.extend(vec![0xcc; padding]);
        let code = [first.as_slice(), &second].concat();
        let functions = [("f", 0, end as u64), ("g", first.len() as u64, second.len() as u64)];
        let file = common::elf(&code, &functions);
        let entries = [("f", 0), ("g", 1)];
        let mut lines = common::decode(&code[..end], common::CODE);
        lines.extend(common::decode(&second, common::CODE + first.len() as u64));
        let asked: Vec<u64> = (0..).zip(&lines).filter(|(k, _)| picked >> (k % 64) & 1 == 1).map(|(_, i)| i.ip()).collect();
        let plan = Plan::new(&file, &Options { entries: &entries, rmw: true, waits: true, loads: true, asked: &asked }).expect("plan");
        common::check(&plan, 0x40_0000);
        for i in &lines {
            let mut targets = Vec::new();
            if i.op0_kind() == OpKind::NearBranch64 {
                targets.push(i.near_branch_target());
            }
            if i.is_ip_rel_memory_operand() && i.mnemonic() == iced_x86::Mnemonic::Lea {
                targets.push(i.ip_rel_memory_address());
            }
            for window in &plan.windows {
                let own = (window.start..window.end()).contains(&i.ip());
                let moved = own && i.op0_kind() == OpKind::NearBranch64;
                for &target in targets.iter().filter(|_| !moved) {
                    let inside = target > window.start && target < window.end();
                    prop_assert!(!inside, "{:#x} enters {:#x}", i.ip(), window.start);
                }
            }
        }
        for window in &plan.windows {
            let (from, to) = (window.start - common::CODE, window.end() - common::CODE);
            prop_assert_eq!(&window.bytes[..], &code[from as usize..to as usize]);
        }
    }
}
