//! A small ELF file around given code, and checks of any plan against its file.
#![allow(dead_code)]

use geryon_patch::{AgentEntries, Emitted, Plan, SiteKind, Window};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use std::collections::HashMap;

/// Where the code of [`elf`] starts.
pub const CODE: u64 = 0x1000;

/// A position-independent file: one executable segment at [`CODE`], a symbol for each function
/// (name, offset in the code, length).
pub fn elf(code: &[u8], functions: &[(&str, u64, u64)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut symbols = vec![0; 24];
    for (name, start, len) in functions {
        symbols.extend((names.len() as u32).to_le_bytes());
        symbols.extend([0x12, 0, 1, 0]); // global function, in section 1
        symbols.extend((CODE + start).to_le_bytes());
        symbols.extend(len.to_le_bytes());
        names.extend(name.bytes());
        names.push(0);
    }
    let code_at = CODE as usize;
    let symbols_at = (code_at + code.len()).next_multiple_of(8);
    let names_at = symbols_at + symbols.len();
    let sections_at = (names_at + names.len()).next_multiple_of(8);
    let mut file = vec![0; sections_at];
    let half = |v: u16| v.to_le_bytes();
    file[..8].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0]);
    file[16..18].copy_from_slice(&half(3));
    file[18..20].copy_from_slice(&half(62));
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[40..48].copy_from_slice(&(sections_at as u64).to_le_bytes());
    for (at, value) in [(52, 64), (54, 56), (56, 1), (58, 64), (60, 3), (62, 0)] {
        file[at..at + 2].copy_from_slice(&half(value));
    }
    let mut segment = vec![1, 0, 0, 0, 5, 0, 0, 0];
    let len = code.len() as u64;
    for value in [CODE, CODE, CODE, len, len, 4096] {
        segment.extend(value.to_le_bytes());
    }
    file[64..120].copy_from_slice(&segment);
    file[code_at..code_at + code.len()].copy_from_slice(code);
    file[symbols_at..names_at].copy_from_slice(&symbols);
    file[names_at..names_at + names.len()].copy_from_slice(&names);
    file.extend([0; 64]);
    for (kind, at, len, link) in [
        (2u32, symbols_at, symbols.len(), 2u32),
        (3, names_at, names.len(), 0),
    ] {
        let mut section = vec![0; 64];
        section[4..8].copy_from_slice(&kind.to_le_bytes());
        section[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        section[32..40].copy_from_slice(&(len as u64).to_le_bytes());
        section[40..44].copy_from_slice(&link.to_le_bytes());
        file.extend(section);
    }
    file
}

pub fn decode(bytes: &[u8], ip: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE)
        .into_iter()
        .collect()
}

/// An agent at recognisable addresses.
pub fn agent() -> AgentEntries {
    AgentEntries {
        syscall: 0x1111_0000,
        rdtsc: 0x2222_0000,
        rdtscp: 0x3333_0000,
        rdrand: 0x4444_0000,
        rmw: 0x5555_0000,
        load: 0x7777_0000,
        xsavec: 0x8888_0000,
        hooks: vec![0x6666_0000; 64],
    }
}

/// Behind the jump there are traps, but for the stepping stones of other windows.
fn is_filled(plan: &Plan, window: &Window, mut rest: &[u8]) {
    let mut at = window.start + 5;
    while plan.windows.iter().any(|w| w.stone == Some(at)) {
        assert_eq!(rest[0], 0xe9);
        (rest, at) = (&rest[5..], at + 5);
    }
    assert!(rest.iter().all(|&b| b == 0xcc));
}

/// Emits the plan somewhere and checks all of it; returns what was emitted.
pub fn check(plan: &Plan, bias: u64) -> Emitted {
    let end = plan.segments.iter().map(|s| s.end).max().unwrap_or(0) + bias;
    let tramp = end.next_multiple_of(4096) + 0x100_0000;
    let emitted = plan.emit(bias, tramp, &agent(), None).expect("emit");
    assert!(emitted.trampolines.len() <= plan.trampoline_len());
    assert_eq!(emitted.writes.len(), plan.windows.len());
    for pair in plan.windows.windows(2) {
        assert!(
            pair[0].end() <= pair[1].start,
            "windows overlap at {:#x}",
            pair[1].start
        );
    }
    let mut places: HashMap<u64, Vec<u64>> = HashMap::new();
    for &(there, original) in &emitted.pc_map {
        places.entry(original).or_default().push(there);
    }
    let view = View {
        bias,
        tramp,
        emitted: &emitted,
        places,
    };
    for (number, (window, (at, bytes))) in plan.windows.iter().zip(&emitted.writes).enumerate() {
        assert_eq!(*at, window.start + bias);
        assert_eq!(bytes.len(), window.bytes.len());
        let target = match window.stone {
            None => {
                assert!(bytes.len() >= 5);
                is_filled(plan, window, &bytes[5..]);
                decode(&bytes[..5], *at)[0].near_branch_target()
            }
            Some(stone) => {
                let stone = stone + bias;
                assert!(bytes.len() < 5 && bytes[2..].iter().all(|&b| b == 0xcc));
                assert_eq!(decode(&bytes[..2], *at)[0].near_branch_target(), stone);
                let host = |w: &&(u64, Vec<u8>)| (w.0..w.0 + w.1.len() as u64).contains(&stone);
                let (from, host) = emitted.writes.iter().find(host).expect("in a window");
                let from = (stone - from) as usize;
                decode(&host[from..from + 5], stone)[0].near_branch_target()
            }
        };
        assert!(
            target >= tramp && view.code(target).is_some(),
            "jump into the area"
        );
        let sites: Vec<_> = plan
            .sites
            .iter()
            .filter(|s| s.window == number as u32)
            .collect();
        let is_host = plan.windows.iter().any(|w| {
            w.stone
                .is_some_and(|s| (window.start..window.end()).contains(&s))
        });
        assert!(!sites.is_empty() || window.loops_to.is_some() || is_host);
        view.check_window(window, &|ip| {
            sites
                .iter()
                .any(|s| s.vaddr == ip && !matches!(s.kind, SiteKind::Entry(_)))
        });
    }
    for &(ret, original) in &emitted.syscall_returns {
        let word = view
            .code(ret - geryon_patch::SITE_WORD_OFFSET)
            .expect("word");
        assert_eq!(word[..8], original.to_le_bytes());
        let again = decode(
            &view.code(ret - geryon_patch::REISSUE_OFFSET).expect("jump")[..2],
            ret - 2,
        )[0];
        let reissue = decode(
            view.code(again.near_branch_target()).expect("reissue"),
            again.near_branch_target(),
        );
        assert_eq!(reissue[0].ip_rel_memory_address(), ret);
        assert_eq!(emitted.original_pc(ret), Some(original));
    }
    emitted
}

struct View<'a> {
    bias: u64,
    tramp: u64,
    emitted: &'a Emitted,
    places: HashMap<u64, Vec<u64>>,
}

impl View<'_> {
    fn code(&self, addr: u64) -> Option<&[u8]> {
        self.emitted
            .trampolines
            .get(addr.checked_sub(self.tramp)? as usize..)
    }

    fn at(&self, addr: u64) -> Instruction {
        let bytes = self.code(addr).unwrap_or_default();
        Decoder::with_ip(64, bytes, addr, DecoderOptions::NONE).decode()
    }

    fn check_window(&self, window: &Window, is_site: &dyn Fn(u64) -> bool) {
        let lines = decode(&window.bytes[..usize::from(window.moved)], window.start);
        for i in &lines {
            let places = &self.places[&(i.ip() + self.bias)];
            if !is_site(i.ip()) {
                let same = places.iter().any(|&p| self.same(i, p, window));
                assert!(same, "moved {:#x} {:?} is something else", i.ip(), i.code());
            }
        }
        let last = lines.last().expect("not empty");
        let behind = last.next_ip() + self.bias;
        let goes_back = self.places.get(&behind).is_some_and(|places| {
            places.iter().any(|&p| {
                let jump = self.at(p);
                jump.is_jmp_short_or_near() && jump.near_branch_target() == behind
            })
        });
        let ends = !matches!(
            last.flow_control(),
            iced_x86::FlowControl::Next | iced_x86::FlowControl::ConditionalBranch
        );
        assert!(
            goes_back || ends && !is_site(last.ip()),
            "no way back from {:#x}",
            window.start
        );
    }

    fn leads_to(&self, from: u64, target: u64) -> bool {
        let target = target + self.bias;
        from == target || self.emitted.original_pc(from) == Some(target)
    }

    /// Whether the code at `place` does what the original instruction did.
    fn same(&self, old: &Instruction, place: u64, window: &Window) -> bool {
        let new = self.at(place);
        if old.is_loop() || old.is_loopcc() || old.is_jcx_short() {
            let taken = self.at(new.near_branch_target());
            return new.mnemonic() == old.mnemonic()
                && self.at(new.next_ip()).near_branch_target() == taken.next_ip()
                && self.leads_to(taken.near_branch_target(), old.near_branch_target());
        }
        if old.is_call_near() || old.is_call_near_indirect() {
            let Some(word) = self.code(new.ip_rel_memory_address()) else {
                return false;
            };
            let jump = self.at(new.next_ip());
            let back = old.next_ip() + self.bias;
            return new.mnemonic() == iced_x86::Mnemonic::Push
                && word[..8] == back.to_le_bytes()
                && self.operands(old, &jump, window);
        }
        new.mnemonic() == old.mnemonic() && self.operands(old, &new, window)
    }

    fn operands(&self, old: &Instruction, new: &Instruction, window: &Window) -> bool {
        old.op_count() == new.op_count()
            && old.has_lock_prefix() == new.has_lock_prefix()
            && (0..old.op_count()).all(|op| match (old.op_kind(op), new.op_kind(op)) {
                (OpKind::NearBranch64, OpKind::NearBranch64) => {
                    let (target, now) = (old.near_branch_target(), new.near_branch_target());
                    let inside = (window.start + 1..window.end()).contains(&target);
                    let original = || self.emitted.entry_origs.iter().any(|o| o.1 == now);
                    self.leads_to(now, target)
                        && (window.loops_to != Some(target) || original())
                        && (!inside || now >= self.tramp)
                }
                (OpKind::Register, OpKind::Register) => old.op_register(op) == new.op_register(op),
                (OpKind::Memory, OpKind::Memory) if old.is_ip_rel_memory_operand() => {
                    old.ip_rel_memory_address() + self.bias == new.ip_rel_memory_address()
                }
                (OpKind::Memory, OpKind::Memory) => {
                    old.memory_base() == new.memory_base()
                        && old.memory_index() == new.memory_index()
                        && old.memory_index_scale() == new.memory_index_scale()
                        && old.memory_displacement64() == new.memory_displacement64()
                        && old.memory_segment() == new.memory_segment()
                        && old.memory_size() == new.memory_size()
                }
                (a, b) if a == b => {
                    let constant = !matches!(
                        a,
                        OpKind::MemorySegSI
                            | OpKind::MemorySegESI
                            | OpKind::MemorySegRSI
                            | OpKind::MemoryESDI
                            | OpKind::MemoryESEDI
                            | OpKind::MemoryESRDI
                            | OpKind::MemorySegDI
                            | OpKind::MemorySegEDI
                            | OpKind::MemorySegRDI
                    );
                    !constant || old.immediate(op) == new.immediate(op)
                }
                _ => false,
            })
    }
}
