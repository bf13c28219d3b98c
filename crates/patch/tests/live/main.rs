//! Trampolines run in this process: registers, flags and memory must come out as from the
//! original instructions.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod agent;
#[path = "../common/mod.rs"]
mod common;

use agent::{FLAGS, LOADS, LOCK, SAVED_RSP, SEEN, Seen, State, agent, run};
use common::CODE;
use geryon_patch::descriptor::{self, Descriptor, Op, Source};
use geryon_patch::{Options, Plan};

/// Memory for code: the image at its start, trampolines and thunks behind.
struct Ground {
    base: u64,
}

const GROUND_BYTES: usize = 0x10_0000;
const TRAMPOLINES: u64 = 0x8_0000;
const THUNK: u64 = 0xf_0000;

impl Ground {
    fn new() -> Ground {
        // SAFETY: a fresh anonymous mapping, checked below.
        let base = unsafe {
            let (protection, flags) = (
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            libc::mmap(std::ptr::null_mut(), GROUND_BYTES, protection, flags, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        Ground { base: base as u64 }
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        assert!(at - self.base + bytes.len() as u64 <= GROUND_BYTES as u64);
        // SAFETY: inside the mapping of new(), which only this thread uses.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // SAFETY: the mapping of new(), no longer used.
        unsafe { libc::munmap(self.base as *mut _, GROUND_BYTES) };
    }
}

fn set_gs(value: u64) {
    const ARCH_SET_GS: u64 = 0x1001;
    // SAFETY: nothing in this process uses GS.
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, value) };
    assert_eq!(result, 0);
}

/// Memory that snippets work on; its address is known to them only.
#[repr(align(64))]
struct Memory([u64; 8]);

/// Runs `code` natively and rewritten with the same start and memory, whose address is in rdi; both
/// states and memories.
fn both(
    code: &[u8],
    mut start: State,
    initial: [u64; 8],
    ordered: bool,
    entry: bool,
) -> [(State, [u64; 8]); 2] {
    let memory = Box::into_raw(Box::new(Memory(initial)));
    start.registers[7] = memory.expose_provenance() as u64;
    let file = common::elf(code, &[("f", 0, code.len() as u64)]);
    let entries: &[(&str, u16)] = if entry { &[("f", 0)] } else { &[] };
    let plan = Plan::new(
        &file,
        &Options {
            entries,
            rmw: true,
            waits: true,
            loads: true,
            asked: &[],
        },
    )
    .expect("plan");
    assert!(plan.unpatched.is_empty(), "{:?}", plan.unpatched);
    common::check(&plan, 0x7000_0000);
    let ground = Ground::new();
    ground.write(ground.base, &file);
    let native = run(ground.base + CODE, start);
    // SAFETY: from the box above.
    let native = (native, unsafe { memory.replace(Memory(initial)) }.0);
    let emitted = plan
        .emit(ground.base, ground.base + TRAMPOLINES, &agent(), None)
        .expect("emit");
    ground.write(ground.base + TRAMPOLINES, &emitted.trampolines);
    emitted
        .writes
        .iter()
        .for_each(|(at, bytes)| ground.write(*at, bytes));
    // The thunk is the site's instruction; tests have at most one atomic.
    let first = common::decode(code, 0).into_iter().find(|i| {
        i.has_lock_prefix()
            || i.code() == iced_x86::Code::Xchg_rm64_r64
            || i.code() == iced_x86::Code::Xchg_rm8_r8
    });
    if let Some(i) = first {
        let mut thunk = code[i.ip() as usize..i.next_ip() as usize].to_vec();
        if i.memory_base() == iced_x86::Register::RSP {
            // The copy runs with another rsp; lock xadd [address], rax it is.
            thunk = vec![0x51, 0x48, 0xb9]; // push rcx; movabs rcx, &SEEN.address
            thunk.extend((&raw const SEEN as u64 + 8).to_le_bytes());
            thunk.extend([0x48, 0x8b, 0x09]); // mov rcx, [rcx]
            thunk.extend([0xf0, 0x48, 0x0f, 0xc1, 0x01, 0x59]); // lock xadd [rcx], rax; pop rcx
        }
        thunk.push(0xc3);
        ground.write(ground.base + THUNK, &thunk);
    }
    let mut thread = [0u8; 64];
    thread[descriptor::PLAIN_GS_OFFSET as usize] = u8::from(!ordered);
    // SAFETY: the lock is held; only the stub reads it.
    unsafe {
        SEEN = Seen {
            descriptor: 0,
            address: 0,
            rsp: 0,
            thunk: ground.base + THUNK,
            rcx: 0,
        }
    };
    // SAFETY: the same.
    unsafe { LOADS = 0 };
    set_gs(thread.as_ptr() as u64);
    let rewritten = run(ground.base + CODE, start);
    set_gs(0);
    // SAFETY: the lock is held.
    let seen = unsafe { (SEEN.descriptor, SEEN.rsp, SAVED_RSP) };
    if let Some(i) = first.filter(|_| ordered) {
        let offset = seen.0 - ground.base - TRAMPOLINES;
        let bytes = &emitted.trampolines[offset as usize..][..descriptor::DESCRIPTOR_LEN];
        let d = Descriptor::decode(bytes.try_into().expect("descriptor")).expect("descriptor");
        assert_eq!(d.vaddr, CODE + i.ip());
        assert_eq!(d.site, ground.base + CODE + i.ip());
        assert_eq!(usize::from(d.len), i.len());
        let pushed = if i.memory_base() == iced_x86::Register::RSP {
            24
        } else {
            0
        };
        assert_eq!(seen.1, seen.2 - 16 - pushed, "rsp as at the instruction");
    } else {
        assert_eq!(seen.0, 0, "the stub was not called");
    }
    // SAFETY: from the box above; the code is done with it.
    let memory = unsafe { Box::from_raw(memory) };
    [native, (rewritten, memory.0)]
}

fn start() -> State {
    let mut registers = std::array::from_fn(|i| 0x0101_0101_0101_0101 * (i as u64 + 1));
    registers[6] = 2;
    State {
        registers,
        flags: 0x202,
    }
}

/// Operations on [rdi + 8] or [rdi + rsi*8 + 8], and so on, then padding so that a window exists.
#[test]
fn atomics_do_what_they_did() {
    let _guard = LOCK.lock();
    let snippets: &[(&[u8], usize)] = &[
        (&[0xf0, 0x48, 0x0f, 0xc1, 0x47, 0x08], 1), // lock xadd [rdi+8], rax
        (&[0xf0, 0x48, 0x0f, 0xc1, 0x4c, 0xf7, 0x08], 3), // lock xadd [rdi+rsi*8+8], rcx
        (&[0xf0, 0x48, 0x0f, 0xb1, 0x17], 0),       // lock cmpxchg [rdi], rdx
        (&[0xf0, 0x83, 0x07, 0x05], 0),             // lock add dword [rdi], 5
        (&[0xf0, 0x0f, 0xba, 0x2f, 0x03], 0),       // lock bts dword [rdi], 3
        (&[0xf0, 0x48, 0xff, 0x4f, 0x10], 2),       // lock dec qword [rdi+16]
        (&[0xf0, 0xf6, 0x17], 0),                   // lock not byte [rdi]
        (&[0x48, 0x87, 0x0f], 0),                   // xchg [rdi], rcx
        (&[0x86, 0x27], 0),                         // xchg [rdi], ah
        (&[0xf0, 0x48, 0x0f, 0xc7, 0x0f], 0),       // lock cmpxchg16b [rdi]
        (&[0xf0, 0x44, 0x09, 0x84, 0xf7, 0x10, 0, 0, 0], 4), // lock or [rdi+rsi*8+16], r8d
    ];
    for (snippet, word) in snippets {
        for ordered in [false, true] {
            for flags in [0x202, 0x202 | FLAGS] {
                let memory = [5, 6, 7, 8, 9, 10, 11, 12];
                let mut first = start();
                first.flags = flags;
                let code = [*snippet, &[0x90, 0x48, 0x8d, 0x5b, 0x01, 0xc3]].concat();
                let [native, rewritten] = both(&code, first, memory, ordered, false);
                assert_eq!(native, rewritten, "{snippet:x?} ordered {ordered}");
                if ordered {
                    // SAFETY: the lock is held.
                    let address = unsafe { SEEN.address };
                    assert_eq!(
                        address,
                        native.0.registers[7] + 8 * *word as u64,
                        "{snippet:x?}"
                    );
                }
            }
        }
    }
}

/// Behind an atomic instruction on the same word, which makes them decide about order.
#[test]
fn loads_are_made_on_what_is_found() {
    let _guard = LOCK.lock();
    let snippets: &[&[u8]] = &[
        &[0x8b, 0x47, 0x20],                   // mov eax, [rdi+32]
        &[0x4c, 0x8b, 0x7f, 0x20],             // mov r15, [rdi+32]
        &[0x66, 0x8b, 0x4f, 0x20],             // mov cx, [rdi+32]
        &[0x8a, 0x5f, 0x20],                   // mov bl, [rdi+32]
        &[0x0f, 0xb6, 0x47, 0x20],             // movzx eax, byte [rdi+32]
        &[0x4c, 0x0f, 0xb7, 0x67, 0x20],       // movzx r12, word [rdi+32]
        &[0x0f, 0xbe, 0x6f, 0x20],             // movsx ebp, byte [rdi+32]
        &[0x48, 0x63, 0x57, 0x20],             // movsxd rdx, [rdi+32]
        &[0x48, 0x39, 0x77, 0x20],             // cmp [rdi+32], rsi
        &[0x3b, 0x4f, 0x20],                   // cmp ecx, [rdi+32]
        &[0x83, 0x7f, 0x20, 0xfe],             // cmp dword [rdi+32], -2
        &[0x81, 0x7f, 0x20, 0xfe, 0xca, 0, 0], // cmp dword [rdi+32], 0xcafe
        &[0xf6, 0x47, 0x20, 0x11],             // test byte [rdi+32], 17
        &[0x4c, 0x85, 0x4f, 0x20],             // test [rdi+32], r9
    ];
    for snippet in snippets {
        for flags in [0x202, 0x202 | FLAGS] {
            for value in [0, 9, 0x8899_aabb_ccdd_eeff, u64::MAX - 1] {
                let memory = [5, 6, 7, 8, value, 10, 11, 12];
                let mut first = start();
                first.flags = flags;
                // lock dec dword [rdi+32]; (the load); nop; nop; ret
                let code = [&[0xf0, 0xff, 0x4f, 0x20], *snippet, &[0x90, 0x90, 0xc3]].concat();
                let [native, rewritten] = both(&code, first, memory, true, false);
                assert_eq!(native, rewritten, "{snippet:x?}");
                // SAFETY: the lock is held.
                assert!(unsafe { LOADS } > 0, "{snippet:x?}: it was no load");
            }
        }
    }
}

#[test]
fn a_stack_operand_keeps_its_address() {
    let _guard = LOCK.lock();
    // sub rsp, 24; mov [rsp+8], rdx; lock xadd [rsp+8], rax; pop rcx; pop rbx; pop rcx; mov ecx, 0; ret
    // (A mov from there is a load in order itself, and this is about the atomic.)
    let code = [
        0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x54, 0x24, 0x08, 0xf0, 0x48, 0x0f, 0xc1, 0x44, 0x24,
        0x08, 0x59, 0x5b, 0x59, 0xb9, 0, 0, 0, 0, 0xc3,
    ];
    let memory = [0; 8];
    let first = start();
    for ordered in [false, true] {
        let mut first = first;
        first.flags = 0x202;
        let [native, rewritten] = both(&code, first, memory, ordered, false);
        assert_eq!(native, rewritten, "ordered {ordered}");
    }
}

#[test]
fn the_lock_prefix_may_be_jumped_over() {
    let _guard = LOCK.lock();
    // test esi, esi; je +1; lock cmpxchg [rdi], rdx; setz bl; ret
    let code = [
        0x85, 0xf6, 0x74, 0x01, 0xf0, 0x48, 0x0f, 0xb1, 0x17, 0x0f, 0x94, 0xc3, 0xc3,
    ];
    for rsi in [0, 2] {
        for old in [5, 0x0101_0101_0101_0101] {
            let memory = [old; 8];
            let mut first = start();
            first.registers[6] = rsi;
            let [native, rewritten] = both(&code, first, memory, false, false);
            assert_eq!(native, rewritten);
        }
    }
}

#[test]
fn calls_of_the_kernel_come_back() {
    let _guard = LOCK.lock();
    // mov eax, 39 (getpid); syscall; test rax, rax; setg bl; ret
    let code = [
        0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x0f, 0x9f, 0xc3, 0xc3,
    ];
    let memory = [0; 8];
    let first = start();
    let [mut native, mut rewritten] = both(&code, first, memory, false, false);
    for result in [&mut native, &mut rewritten] {
        assert_eq!(result.0.registers[0], u64::from(std::process::id()));
        result.0.registers[1] = 0; // rcx: the test's agent does not restore it
        result.0.registers[11] = 0;
    }
    assert_eq!(native, rewritten);
}

#[test]
fn random_numbers_and_time_touch_only_their_results() {
    let _guard = LOCK.lock();
    let value = 0x1122_3344_5566_7788u64;
    let old = 0x0101_0101_0101_0101u64;
    let cases: &[(&[u8], usize, u64)] = &[
        (&[0x48, 0x0f, 0xc7, 0xf0], 0, value),         // rdrand rax
        (&[0x0f, 0xc7, 0xf0], 0, value & 0xffff_ffff), // rdrand eax
        (&[0x66, 0x0f, 0xc7, 0xf0], 0, old & !0xffff | value & 0xffff), // rdrand ax
        (&[0x49, 0x0f, 0xc7, 0xf8], 8, value),         // rdseed r8
        (&[0x0f, 0xc7, 0xf3], 3, value & 0xffff_ffff), // rdrand ebx
        (
            &[0x66, 0x41, 0x0f, 0xc7, 0xf1],
            9,
            (old * 10) & !0xffff | value & 0xffff,
        ), // rdrand r9w
    ];
    for (snippet, register, expected) in cases {
        let code = [*snippet, &[0x90, 0x90, 0xc3]].concat();
        let memory = [0; 8];
        let mut first = start();
        first.flags = 0x202 | FLAGS;
        let [_, (rewritten, _)] = both(&code, first, memory, false, false);
        first.registers[*register] = *expected;
        first.registers[7] = rewritten.registers[7];
        first.flags = 1;
        assert_eq!(rewritten, first, "{snippet:x?}");
    }
    let code = [0x0f, 0x31, 0x90, 0x90, 0x90, 0xc3];
    let memory = [0; 8];
    let first = start();
    let [_, (rewritten, _)] = both(&code, first, memory, false, false);
    assert_eq!(
        (rewritten.registers[0], rewritten.registers[2]),
        (0x1111, 0x2222)
    );
}

#[test]
fn what_xsavec_has_left_is_seen_before_the_program_goes_on() {
    let _guard = LOCK.lock();
    if !std::is_x86_feature_detected!("xsavec") {
        return eprintln!("not tested: the processor has no xsavec");
    }
    let code = [
        &[0x48, 0x89, 0xe5][..],                  // mov rbp, rsp
        &[0x48, 0x83, 0xe4, 0xc0],                // and rsp, -64
        &[0x48, 0x81, 0xec, 0, 16, 0, 0],         // sub rsp, 4096
        &[0x31, 0xd2, 0xb8, 6, 0, 0, 0],          // xor edx, edx; mov eax, 6
        &[0x0f, 0xc7, 0x64, 0x24, 0x40],          // xsavec [rsp + 0x40]
        &[0x48, 0x8b, 0x9c, 0x24, 0x40, 2, 0, 0], // mov rbx, [rsp + 0x240]
        &[0x48, 0x89, 0xec, 0xc3],                // mov rsp, rbp; ret
    ]
    .concat();
    let [(native, _), (rewritten, _)] = both(&code, start(), [0; 8], false, false);
    assert_ne!(native.registers[3], 0x77);
    assert_eq!(rewritten.registers[3], 0x77);
    assert_eq!(rewritten.registers[0], 6, "the mask is kept");
}

#[test]
fn entries_reach_the_hook_and_the_original() {
    let _guard = LOCK.lock();
    // f: lea rax, [rdi+1]; test rdi, rdi; je f; ret -- a branch back to the entry, as in spin locks
    let code = [
        0x48, 0x8d, 0x47, 0x01, 0x48, 0x85, 0xff, 0x74, 0xf7, 0xc3, 0x90, 0x90, 0x90,
    ];
    let memory = [0; 8];
    let first = start();
    let [_, (rewritten, _)] = both(&code, first, memory, false, true);
    assert_eq!(
        rewritten.registers[0],
        rewritten.registers[7].wrapping_mul(9)
    );
    let file = common::elf(&code, &[("f", 0, 10)]);
    let plan = Plan::new(
        &file,
        &Options {
            entries: &[("f", 0)],
            rmw: true,
            waits: true,
            loads: true,
            asked: &[],
        },
    )
    .expect("plan");
    let emitted = common::check(&plan, 0x1000_0000);
    assert_eq!(emitted.entry_origs.len(), 1);
    assert!(plan.windows.iter().any(|w| w.loops_to == Some(CODE)));
}

#[test]
fn descriptors_name_their_operands() {
    let code = [0xf0, 0x48, 0x83, 0x2f, 0xfb, 0xc3]; // lock sub qword [rdi], -5
    let file = common::elf(&code, &[("f", 0, 6)]);
    let plan = Plan::new(
        &file,
        &Options {
            entries: &[],
            rmw: true,
            waits: true,
            loads: true,
            asked: &[],
        },
    )
    .expect("plan");
    let emitted = common::check(&plan, 0);
    let bytes = &emitted.trampolines[56..56 + descriptor::DESCRIPTOR_LEN];
    let d = Descriptor::decode(bytes.try_into().expect("32 bytes")).expect("descriptor");
    assert_eq!(
        d,
        Descriptor {
            site: CODE,
            vaddr: CODE,
            op: Op::Sub,
            size: 8,
            source: Source::Immediate(-5),
            len: 5,
            constant: false,
            spins: false,
        }
    );
}
