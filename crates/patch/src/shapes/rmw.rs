//! In the place of atomic instructions, and of loads and stores that are ordered like them: a look at the count of those
//! that are the program's, the instruction itself, and the way to the agent's stub.

use super::{BACK_OVER_RED_ZONE, Item, SKIP_RED_ZONE, SLOT_LOAD, SLOT_RMW, Shape};
use crate::look::any_load;
use crate::{Error, RED_ZONE, SiteKind, descriptor, loads};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// `mov qword [rsp - 16], 0`: the value found.
const CLEAR_VALUE: [u8; 9] = [0x48, 0xc7, 0x44, 0x24, 0xf0, 0, 0, 0, 0];
/// `mov qword [rsp - 8], 0`: the stub's return address.
const CLEAR_RETURN: [u8; 9] = [0x48, 0xc7, 0x44, 0x24, 0xf8, 0, 0, 0, 0];
/// Bytes for a load that is made on the value found.
const FOUND: usize = descriptor::FOUND as usize;
/// `nop`
const NOP: u8 = 0x90;
/// Nops of so many bytes.
const NOPS: [&[u8]; 13] = [
    &[],
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0],
    &[0x0f, 0x1f, 0x44, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
    &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
    &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    &[0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    &[0x66, 0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    &[0x66, 0x66, 0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
];
/// What the stub for atomics finds between red zone and return address.
const RMW_WORDS: u64 = 24;

impl Shape<'_, '_> {
    pub(super) fn rmw(&mut self, item: &Item, items: &[Item]) {
        let i = &item.i;
        let behind = i.next_ip().wrapping_add(self.ground.bias);
        let own = i.ip().wrapping_add(self.ground.bias);
        let start = self.asm.here();
        self.asm.put(&SKIP_RED_ZONE);
        self.asm.put(&[0x51]); // push rcx
        self.asm.put(&[0x65, 0x8b, 0x0c, 0x25]); // mov ecx, gs:[..]
        self.asm.put(&descriptor::PLAIN_GS_OFFSET.to_le_bytes());
        let agents = self.asm.short(0xe3); // jrcxz agents
        self.asm.put(&[0x8d, 0x49, 0xff]); // lea ecx, [rcx - 1]
        self.asm.put(&[0x65, 0x89, 0x0c, 0x25]); // mov gs:[..], ecx
        self.asm.put(&descriptor::PLAIN_GS_OFFSET.to_le_bytes());
        self.asm.put(&[0x59]); // pop rcx
        self.asm.put(&BACK_OVER_RED_ZONE);
        let original = self.asm.here();
        self.ground.pc_map.push((original, own));
        self.relocate(item);
        let last = items.last().is_some_and(|l| l.i.ip() == i.ip());
        let over = if last {
            self.ground.pc_map.push((self.asm.here(), behind));
            self.asm.relative(&[0xe9], behind);
            None
        } else {
            Some(self.asm.short(0xeb))
        };
        self.asm.land(agents);
        self.ground.pc_map.push((self.asm.here(), own));
        self.asm.put(&[0x48, 0x8b, 0x0c, 0x24]); // mov rcx, [rsp]
        match item.site == Some(SiteKind::Wait) && loads::plain(i).is_none() {
            true => self.asm.put(&[0xb9, 0, 0, 0, 0]), // mov ecx, 0
            false => self.effective_address(i),
        }
        self.asm.put(&[0x51]); // push rcx
        let constant = self.descriptors[&i.ip()];
        self.asm.relative(&[0x48, 0x8d, 0x0d], constant); // lea rcx, [rip + descriptor]
        self.asm.put(&[0x51]); // push rcx
        self.asm.put(&[0x48, 0x8b, 0x4c, 0x24, 16]); // mov rcx, [rsp + 16]
        match self.on_found(i) {
            Some(found) => {
                self.call_slot(SLOT_LOAD);
                self.asm.put(&found);
            }
            None => self.call_slot(SLOT_RMW),
        }
        let back = self.asm.here();
        self.asm.put(&CLEAR_RETURN);
        self.asm.put(&[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + ..]
        self.asm.put(&((RED_ZONE + RMW_WORDS) as u32).to_le_bytes());
        self.ground.pc_map.push((self.asm.here(), behind));
        self.asm.put(&[0xe9]); // jmp: behind the instruction
        let skips = self.asm.here();
        self.asm.put(&[0; 4]);
        assert_eq!(self.asm.here() - back, descriptor::BY_ITSELF);
        self.ground.pc_map.push((self.asm.here(), own));
        self.asm.relative(&[0xe9], original);
        assert_eq!(self.asm.here() - back, descriptor::AGAIN);
        self.ground.pc_map.push((self.asm.here(), own));
        self.asm.relative(&[0xe9], start);
        let end = match over {
            None => behind,
            Some(over) => {
                self.asm.land(over);
                self.asm.here()
            }
        };
        self.asm.patch(skips, skips + 4, end);
    }

    /// A load as it is made on the value that its stub has found, which then gives way to zeros. None: it cannot be (it uses
    /// rsp), or it is no load.
    fn on_found(&self, i: &Instruction) -> Option<[u8; FOUND]> {
        any_load(i)?;
        let mut there = *i;
        let uses_rsp = |n| i.op_register(n).full_register() == Register::RSP;
        if (0..i.op_count()).any(uses_rsp) {
            return None;
        }
        there.set_segment_prefix(Register::None);
        there.set_memory_base(Register::RSP);
        there.set_memory_index(Register::None);
        there.set_memory_displacement64(descriptor::FOUND_VALUE as u64);
        there.set_memory_displ_size(1);
        let mut encoder = Encoder::new(64);
        encoder.encode(&there, self.asm.here()).ok()?;
        let code = [&encoder.take_buffer()[..], &CLEAR_VALUE].concat();
        let mut out = [NOP; FOUND];
        out.get_mut(..code.len())?.copy_from_slice(&code);
        // (A long nop costs less than many.)
        let mut rest = &mut out[code.len()..];
        while !rest.is_empty() {
            let (nop, behind) = rest.split_at_mut(rest.len().min(NOPS.len() - 1));
            nop.copy_from_slice(NOPS[nop.len()]);
            rest = behind;
        }
        Some(out)
    }

    /// `lea rcx, operand`, with rcx as the application's and rsp 8 below the red zone.
    fn effective_address(&mut self, i: &Instruction) {
        if i.is_ip_rel_memory_operand() {
            let target = i.ip_rel_memory_address().wrapping_add(self.ground.bias);
            self.asm.relative(&[0x48, 0x8d, 0x0d], target);
            return;
        }
        let base = i.memory_base();
        let on_stack = base.full_register() == Register::RSP;
        let moved = if on_stack { RED_ZONE + 8 } else { 0 };
        let operand = MemoryOperand::new(
            base,
            i.memory_index(),
            i.memory_index_scale(),
            (i.memory_displacement64() as i64).wrapping_add(moved as i64),
            if i.memory_displ_size() == 0 && moved == 0 {
                0
            } else {
                8
            },
            false,
            Register::None,
        );
        match Instruction::with2(Code::Lea_r64_m, Register::RCX, operand) {
            Ok(lea) => self.encode(&lea, &Instruction::default()),
            Err(_) => self.asm.fail(Error::BadPlan(i.ip())),
        }
    }

    /// Programs jump over the lock prefix while they have one thread: there is a copy without it.
    pub(super) fn unlocked(&mut self, items: &[Item]) {
        for item in items {
            let target = item.i.ip() + 1;
            let locked = item.site == Some(SiteKind::Rmw) && item.bytes[0] == 0xf0;
            if !locked || !self.open.iter().any(|o| o.2 == target) {
                continue;
            }
            self.labels.push((target, self.asm.here()));
            self.ground
                .pc_map
                .push((self.asm.here(), target.wrapping_add(self.ground.bias)));
            let displacement = item.displacement.map(|d| d - 1);
            self.relocate(&Item {
                i: item.i,
                bytes: &item.bytes[1..],
                displacement,
                site: None,
            });
            let behind = item.i.next_ip();
            let there = self.labels.iter().find(|l| l.0 == behind).map(|l| l.1);
            let there = there.unwrap_or(behind.wrapping_add(self.ground.bias));
            self.ground
                .pc_map
                .push((self.asm.here(), behind.wrapping_add(self.ground.bias)));
            self.asm.relative(&[0xe9], there);
        }
    }
}
