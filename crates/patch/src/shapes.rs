//! The code of one trampoline: the instructions of a window, moved, with something
//! else in the place of its sites.

mod rmw;

use crate::asm::Asm;
use crate::classify::{Atomic, Rmw, atomic, condition, falls_through, is_call, number, site};
use crate::descriptor::Descriptor;
use crate::{Error, SITE_WORD_OFFSET, SiteKind, Window, asked, loads, spin};
use iced_x86::{Code, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, OpKind};
use std::collections::HashMap;

/// Number of each slot (8-byte address of an agent entry) at the start of the area;
/// the hooks follow.
pub const SLOT_SYSCALL: u64 = 0;
pub const SLOT_RDTSC: u64 = 1;
pub const SLOT_RDTSCP: u64 = 2;
pub const SLOT_RDRAND: u64 = 3;
pub const SLOT_RMW: u64 = 4;
pub const SLOT_LOAD: u64 = 5;
pub const SLOT_XSAVEC: u64 = 6;
pub const SLOT_HOOKS: u64 = 7;

/// `lea rsp, [rsp - 128]`
const SKIP_RED_ZONE: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80];
/// `lea rsp, [rsp + 128]`
const BACK_OVER_RED_ZONE: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];

/// Where things are, and which tables the code goes into.
pub struct Ground<'a> {
    pub bias: u64,
    pub area: u64,
    pub rmw: bool,
    /// Whether the entry with this id has a hook.
    pub hooked: &'a dyn Fn(u16) -> bool,
    /// Run-time address of the relocated original of each redirected entry, by link-time address.
    pub originals: HashMap<u64, u64>,
    pub syscall_returns: Vec<(u64, u64)>,
    pub pc_map: Vec<(u64, u64)>,
}

/// One moved instruction.
struct Item<'a> {
    i: Instruction,
    bytes: &'a [u8],
    displacement: Option<usize>,
    site: Option<SiteKind>,
}

/// The trampoline of one window while it is written.
struct Shape<'a, 'g> {
    asm: &'a mut Asm,
    ground: &'a mut Ground<'g>,
    items: Vec<Item<'a>>,
    window: &'a Window,
    /// Link-time address of moved instructions (or their second byte) and where they are now.
    labels: Vec<(u64, u64)>,
    /// Distances to fill in: position, end, link-time target.
    open: Vec<(u64, u64, u64)>,
    /// Constants before the code, by link-time address: return addresses, and descriptors.
    returns: HashMap<u64, u64>,
    descriptors: HashMap<u64, u64>,
}

/// Appends the trampoline of a window; returns the address to jump to.
pub fn emit(asm: &mut Asm, ground: &mut Ground, window: &Window) -> Result<u64, Error> {
    let items = items(window, ground.rmw)?;
    let (labels, open) = (Vec::new(), Vec::new());
    Shape {
        asm,
        ground,
        items,
        window,
        labels,
        open,
        returns: HashMap::new(),
        descriptors: HashMap::new(),
    }
    .emit()
}

fn items(window: &Window, rmw: bool) -> Result<Vec<Item<'_>>, Error> {
    let bad = || Error::BadPlan(window.start);
    let moved = window
        .bytes
        .get(..usize::from(window.moved))
        .ok_or_else(bad)?;
    let mut decoder = Decoder::with_ip(64, moved, window.start, DecoderOptions::NONE);
    let mut items = Vec::new();
    while decoder.can_decode() {
        let from = decoder.position();
        let i = decoder.decode();
        if i.is_invalid() {
            return Err(bad());
        }
        let offsets = decoder.get_constant_offsets(&i);
        let rip = i.is_ip_rel_memory_operand();
        let kept =
            |k: &SiteKind| *k != SiteKind::Rmw || rmw && matches!(atomic(&i), Atomic::Ordered(_));
        items.push(Item {
            i,
            bytes: &moved[from..decoder.position()],
            displacement: rip.then_some(offsets.displacement_offset()),
            site: match () {
                () if window.waits.contains(&i.ip()) => Some(SiteKind::Wait),
                () if window.asked.contains(&i.ip()) => asked::orderable(&i).filter(kept),
                () => site(&i).filter(kept),
            },
        });
    }
    if items.is_empty() {
        Err(bad())
    } else {
        Ok(items)
    }
}

impl Shape<'_, '_> {
    fn emit(mut self) -> Result<u64, Error> {
        let items = std::mem::take(&mut self.items);
        let bias = self.ground.bias;
        self.constants(&items);
        let hook = self.window.entry.filter(|&id| (self.ground.hooked)(id));
        let first_is_syscall = items[0].site == Some(SiteKind::Syscall);
        if first_is_syscall && hook.is_none() {
            self.word(items[0].i.next_ip().wrapping_add(bias));
        }
        let begin = self.asm.here();
        if let Some(id) = hook {
            self.ground
                .pc_map
                .push((begin, self.window.start.wrapping_add(bias)));
            let slot = self.slot(SLOT_HOOKS + u64::from(id));
            self.asm.relative(&[0xff, 0x25], slot);
        }
        if self.window.entry.is_some() {
            self.ground
                .originals
                .insert(self.window.start, self.asm.here());
        }
        for (at, item) in items.iter().enumerate() {
            let ip = item.i.ip();
            self.labels.push((ip, self.asm.here()));
            self.ground
                .pc_map
                .push((self.asm.here(), ip.wrapping_add(bias)));
            match item.site {
                Some(SiteKind::Syscall) => self.syscall(item, at == 0 && hook.is_none()),
                Some(SiteKind::Rmw | SiteKind::Wait | SiteKind::Load | SiteKind::Store) => {
                    self.rmw(item, &items);
                }
                Some(SiteKind::Rdtsc) => self.time(SLOT_RDTSC),
                Some(SiteKind::Rdtscp) => self.time(SLOT_RDTSCP),
                Some(SiteKind::Rdrand) => self.random(&item.i),
                Some(SiteKind::Xsavec) => self.saved(item),
                Some(SiteKind::Entry(_)) | None => self.relocate(item),
            }
        }
        let last = &items[items.len() - 1];
        let behind = last.i.next_ip();
        if last.site.is_some() || falls_through(&last.i) {
            self.ground
                .pc_map
                .push((self.asm.here(), behind.wrapping_add(bias)));
            self.asm.relative(&[0xe9], behind.wrapping_add(bias));
        }
        self.unlocked(&items);
        for (at, from, target) in std::mem::take(&mut self.open) {
            let there = self.place_of(target);
            self.asm.patch(at, from, there);
        }
        Ok(begin)
    }

    /// Where a branch to a link-time address goes now.
    fn place_of(&self, target: u64) -> u64 {
        let original = self.ground.originals.get(&target);
        if let Some(&original) = original.filter(|_| self.window.loops_to == Some(target)) {
            return original;
        }
        let hooked = |l: &&(u64, u64)| l.0 == self.window.start && self.window.entry.is_some();
        let moved = self.labels.iter().find(|l| l.0 == target && !hooked(l));
        moved.map_or(target.wrapping_add(self.ground.bias), |l| l.1)
    }

    fn slot(&self, number: u64) -> u64 {
        self.ground.area + number * 8
    }

    fn word(&mut self, value: u64) {
        self.asm.put(&value.to_le_bytes());
    }

    /// Descriptors of atomics and return addresses of moved calls.
    fn constants(&mut self, items: &[Item]) {
        self.asm.align(8);
        for Item { i, site, .. } in items {
            let (vaddr, site_kind) = (i.ip(), *site);
            if is_call(i) && matches!(site_kind, None | Some(SiteKind::Wait)) {
                self.returns.insert(vaddr, self.asm.here());
                self.word(i.next_ip().wrapping_add(self.ground.bias));
            }
            let operation = match site_kind {
                Some(SiteKind::Wait) => Some(loads::plain(i).unwrap_or_else(|| spin::bare(i))),
                Some(SiteKind::Load | SiteKind::Store) => asked::plain(i),
                Some(SiteKind::Rmw) => match atomic(i) {
                    Atomic::Ordered(rmw) => Some(rmw),
                    _ => None,
                },
                _ => None,
            };
            if let Some(Rmw { op, size, source }) = operation {
                self.descriptors.insert(vaddr, self.asm.here());
                let site = vaddr.wrapping_add(self.ground.bias);
                let d = Descriptor {
                    site,
                    vaddr,
                    op,
                    size,
                    source,
                    len: i.len() as u8,
                    constant: self.window.constants.contains(&vaddr),
                    spins: self.window.spins.contains(&vaddr),
                };
                self.asm.put(&d.encode());
            }
        }
    }

    /// A moved instruction that does what it did.
    fn relocate(&mut self, item: &Item) {
        let i = &item.i;
        if is_call(i) {
            // push the original return address, then jump: the callee's unwinder sees the original.
            let word = self.returns[&i.ip()];
            self.asm.relative(&[0xff, 0x35], word);
            if i.op0_kind() == OpKind::NearBranch64 {
                self.branch(&[0xe9], i.near_branch_target());
            } else {
                let mut jump = *i;
                jump.set_code(Code::Jmp_rm64);
                self.encode(&jump, i);
            }
            return;
        }
        if i.op0_kind() == OpKind::NearBranch64 {
            let target = i.near_branch_target();
            match i.flow_control() {
                FlowControl::UnconditionalBranch => self.branch(&[0xe9], target),
                _ if i.is_jcc_short_or_near() => {
                    self.branch(&[0x0f, 0x80 | condition(i)], target);
                }
                // loop and jrcxz only have 8-bit distances: over a jump that is over a jump.
                _ => {
                    self.asm.put(&item.bytes[..item.bytes.len() - 1]);
                    self.asm.put(&[2, 0xeb, 5]);
                    self.branch(&[0xe9], target);
                }
            }
            return;
        }
        let begin = self.asm.here();
        self.asm.put(item.bytes);
        if let Some(offset) = item.displacement {
            let target = i.ip_rel_memory_address().wrapping_add(self.ground.bias);
            self.asm
                .patch(begin + offset as u64, self.asm.here(), target);
        }
    }

    fn branch(&mut self, opcode: &[u8], target: u64) {
        self.asm.put(opcode);
        self.asm.put(&[0; 4]);
        let end = self.asm.here();
        self.open.push((end - 4, end, target));
    }

    /// Encodes an instruction here; its rip-relative operand means what it meant in `original`.
    fn encode(&mut self, i: &Instruction, original: &Instruction) {
        let mut i = *i;
        if original.is_ip_rel_memory_operand() {
            let target = original
                .ip_rel_memory_address()
                .wrapping_add(self.ground.bias);
            i.set_memory_displacement64(target);
        }
        let mut encoder = Encoder::new(64);
        match encoder.encode(&i, self.asm.here()) {
            Ok(_) => self.asm.put(&encoder.take_buffer()),
            Err(_) => {
                let (from, to) = (self.asm.here(), i.memory_displacement64());
                self.asm.fail(Error::OutOfReach { from, to });
            }
        }
    }

    fn syscall(&mut self, item: &Item, word_is_there: bool) {
        let behind = item.i.next_ip().wrapping_add(self.ground.bias);
        if !word_is_there {
            let over = self.asm.short(0xeb);
            self.word(behind);
            self.asm.land(over);
            self.ground
                .pc_map
                .push((self.asm.here(), item.i.ip().wrapping_add(self.ground.bias)));
        }
        let reissue = self.asm.here();
        // lea rcx, [rip + 8]: behind the two jumps
        self.asm.put(&[0x48, 0x8d, 0x0d, 8, 0, 0, 0]);
        let slot = self.slot(SLOT_SYSCALL);
        self.asm.relative(&[0xff, 0x25], slot);
        // jmp reissue: where a restarted call continues
        self.ground
            .pc_map
            .push((self.asm.here(), item.i.ip().wrapping_add(self.ground.bias)));
        self.asm
            .put(&[0xeb, (reissue.wrapping_sub(self.asm.here() + 2)) as u8]);
        let ret = self.asm.here();
        assert_eq!(
            ret - SITE_WORD_OFFSET,
            reissue - 8,
            "the agent finds the word there"
        );
        self.ground.syscall_returns.push((ret, behind));
    }

    fn call_slot(&mut self, number: u64) {
        let slot = self.slot(number);
        self.asm.relative(&[0xff, 0x15], slot);
    }

    fn time(&mut self, slot: u64) {
        self.asm.put(&SKIP_RED_ZONE);
        self.call_slot(slot);
        self.asm.put(&BACK_OVER_RED_ZONE);
    }

    /// Registers are saved by the original instruction.
    fn saved(&mut self, item: &Item) {
        self.asm.put(item.bytes);
        self.asm.put(&SKIP_RED_ZONE);
        self.asm.put(&[0x68]); // push displacement
        let displacement = item.i.memory_displacement64() as u32;
        self.asm.put(&displacement.to_le_bytes());
        self.call_slot(SLOT_XSAVEC);
        self.asm.put(&[0x48, 0x8d, 0x64, 0x24, 8]); // lea rsp, [rsp + 8]
        self.asm.put(&BACK_OVER_RED_ZONE);
    }

    fn random(&mut self, i: &Instruction) {
        let register = i.op0_register();
        let (number, size) = (number(register), register.size());
        let rex_b = u8::from(number >= 8);
        self.asm.put(&SKIP_RED_ZONE);
        self.asm.put(&[0x50]); // push rax
        self.call_slot(SLOT_RDRAND);
        match (number, size) {
            (0, 2) => self.asm.put(&[0x66, 0x89, 0x04, 0x24]), // mov [rsp], ax
            (0, 4) => self.asm.put(&[0x89, 0xc0, 0x48, 0x89, 0x04, 0x24]), // mov eax, eax; mov [rsp], rax
            (0, _) => self.asm.put(&[0x48, 0x89, 0x04, 0x24]),             // mov [rsp], rax
            (n, size) => {
                if size == 2 {
                    self.asm.put(&[0x66]);
                }
                let rex = 0x40 | rex_b | u8::from(size == 8) << 3;
                self.asm.put(&[rex, 0x89, 0xc0 | n & 7]); // mov n, rax
            }
        }
        // mov al, 0x10; add al, 0xf1: carry set, the other arithmetic flags clear
        self.asm.put(&[0xb0, 0x10, 0x04, 0xf1]);
        self.asm.put(&[0x58]); // pop rax
        self.asm.put(&BACK_OVER_RED_ZONE);
    }
}
