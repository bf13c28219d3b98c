//! Operands in memory, as instructions name them, and what other names they have in a function.

use crate::info::Info;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// So many instructions before one are looked at for what makes its base.
const FAR: usize = 32;
/// So many names of one operand are looked at.
const STEPS: usize = 4;

/// An operand in memory, as an instruction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    base: Register,
    index: Register,
    scale: u32,
    displacement: u64,
}

impl Place {
    /// None on the stack, and in a thread's own memory.
    pub fn of(i: &Instruction) -> Option<Place> {
        let own = matches!(i.memory_segment(), Register::FS | Register::GS);
        if own || i.memory_base().full_register() == Register::RSP {
            return None;
        }
        Some(match fixed_word(i) {
            Some(displacement) => Place {
                base: Register::None,
                index: Register::None,
                scale: 1,
                displacement,
            },
            None => Place {
                base: i.memory_base(),
                index: i.memory_index(),
                scale: i.memory_index_scale(),
                displacement: i.memory_displacement64(),
            },
        })
    }

    /// How far behind a register it lies, if that alone says where.
    pub fn behind(&self) -> Option<u64> {
        (self.base.is_gpr64() && self.index == Register::None).then_some(self.displacement)
    }

    /// What an instruction names it that copies its base to another register.
    pub fn copied(&self, i: &Instruction) -> Option<Place> {
        let copies = i.mnemonic() == Mnemonic::Mov
            && i.op1_kind() == OpKind::Register
            && i.op1_register() == self.base
            && i.op0_register().is_gpr64();
        copies.then(|| Place {
            base: i.op0_register(),
            ..*self
        })
    }

    /// Is what it names the same behind these instructions?
    pub fn stays(&self, lines: &[Instruction], info: &mut Info) -> bool {
        let mut of = [self.base, self.index].into_iter().filter(|r| r.is_gpr());
        of.all(|r| !lines.iter().any(|i| info.writes(i, r)))
    }

    /// What the first argument of a function is made to point to.
    pub fn given(i: &Instruction) -> Option<Place> {
        if i.op0_register() != Register::RDI {
            return None;
        }
        match (i.mnemonic(), i.op1_kind()) {
            (Mnemonic::Lea, _) => Place::of(i),
            (Mnemonic::Mov, OpKind::Register) => Some(Place {
                base: i.op1_register(),
                index: Register::None,
                scale: 1,
                displacement: 0,
            }),
            _ => None,
        }
    }

    /// The names of the operand of the last of these instructions: as it is there, and as it is before what makes its
    /// base, for some steps.
    pub fn names(lines: &[Instruction], info: &mut Info) -> Vec<Place> {
        let mut names: Vec<Place> = lines.last().and_then(Place::of).into_iter().collect();
        let mut end = lines.len().saturating_sub(1);
        while let Some(last) = names
            .last()
            .filter(|n| n.base.is_gpr() && names.len() < STEPS)
        {
            let from = end.saturating_sub(FAR);
            let made = (from..end)
                .rev()
                .find(|at| info.writes(&lines[*at], last.base));
            let Some(made) = made else { break };
            let i = &lines[made];
            let before = match (i.mnemonic(), i.op1_kind()) {
                (Mnemonic::Lea, _) if last.index == Register::None => Place::of(i).map(|p| Place {
                    displacement: p.displacement.wrapping_add(last.displacement),
                    ..p
                }),
                (Mnemonic::Mov, OpKind::Register) if i.op1_register().size() == 8 => Some(Place {
                    base: i.op1_register(),
                    ..*last
                }),
                (Mnemonic::Add, kind) if kind != OpKind::Register && kind != OpKind::Memory => {
                    Some(Place {
                        displacement: last.displacement.wrapping_add(i.immediate(1)),
                        ..*last
                    })
                }
                _ => None,
            };
            let Some(before) = before else { break };
            names.push(before);
            end = made;
        }
        names
    }
}

/// Does it take the address of a word at a fixed place? Which?
pub fn gives(i: &Instruction) -> Option<u64> {
    (i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand())
        .then(|| i.ip_rel_memory_address())
}

/// The link-time address of its operand, if that lies at a fixed place.
pub fn fixed_word(i: &Instruction) -> Option<u64> {
    let own = matches!(i.memory_segment(), Register::FS | Register::GS);
    if i.is_ip_rel_memory_operand() {
        return Some(i.ip_rel_memory_address());
    }
    let is_fixed = i.memory_base() == Register::None && i.memory_index() == Register::None;
    (!own && is_fixed && i.memory_displ_size() != 0).then(|| i.memory_displacement64())
}
