//! Loads and stores: which ones the agent can do in the program's place, what is compared, and what is changed in between.

use crate::classify::{Rmw, is_call, number};
use crate::descriptor::{Op, Source};
use crate::info::Info;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// So many instructions behind a load, or a call, its value is compared.
pub const NEAR: usize = 3;
/// So many instructions behind one that sets flags they are asked for.
const SOON: usize = 6;

/// A load that the agent can do in the program's place, and that others than this function may change.
pub fn load(i: &Instruction) -> Option<Rmw> {
    any_load(i).filter(|_| i.memory_base() != Register::RSP)
}

/// The same, on the stack, too.
pub fn any_load(i: &Instruction) -> Option<Rmw> {
    let size = shared_operand(i)?;
    let of = |r: Register| (r.full_register() != Register::RSP).then(|| whole(r))?;
    let (op, source) = match (i.mnemonic(), i.op0_kind(), i.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register, OpKind::Memory) => (Op::Load, of(i.op0_register())?),
        (Mnemonic::Movzx, OpKind::Register, OpKind::Memory) if i.op0_register().size() >= 4 => {
            (Op::LoadZero, of(i.op0_register())?)
        }
        (Mnemonic::Movsx | Mnemonic::Movsxd, OpKind::Register, OpKind::Memory) => {
            let op = match i.op0_register().size() {
                4 => Op::LoadSign4,
                8 => Op::LoadSign8,
                _ => return None,
            };
            (op, of(i.op0_register())?)
        }
        (Mnemonic::Cmp, OpKind::Register, OpKind::Memory) => (Op::CompareTo, of(i.op0_register())?),
        (Mnemonic::Cmp, OpKind::Memory, OpKind::Register) => (Op::Compare, of(i.op1_register())?),
        (Mnemonic::Test, OpKind::Memory, OpKind::Register) => (Op::Test, of(i.op1_register())?),
        (Mnemonic::Cmp, OpKind::Memory, _) => {
            (Op::Compare, Source::Immediate(i.immediate(1) as i64))
        }
        (Mnemonic::Test, OpKind::Memory, _) => (Op::Test, Source::Immediate(i.immediate(1) as i64)),
        _ => return None,
    };
    Some(Rmw { op, size, source })
}

/// How large the operand is that lies in memory which threads may share, if the agent can do something with one of that size.
fn shared_operand(i: &Instruction) -> Option<u8> {
    let thread_local = matches!(i.memory_segment(), Register::FS | Register::GS);
    let short = matches!(i.memory_base(), Register::ESP | Register::EIP);
    let size = i.memory_size().size();
    (!thread_local && !short && matches!(size, 1 | 2 | 4 | 8)).then_some(size as u8)
}

/// A register that its number says all about.
fn whole(register: Register) -> Option<Source> {
    let high = matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    );
    (register.is_gpr() && !high).then(|| Source::Register(number(register)))
}

/// Arithmetic on a register and what is loaded, on the stack, too.
pub fn arithmetic(i: &Instruction) -> Option<Rmw> {
    let op = match i.mnemonic() {
        Mnemonic::Add => Op::LoadAdd,
        Mnemonic::Sub => Op::LoadSub,
        Mnemonic::And => Op::LoadAnd,
        Mnemonic::Or => Op::LoadOr,
        Mnemonic::Xor => Op::LoadXor,
        _ => return None,
    };
    let loads = i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Memory;
    let of_stack = i.op0_register().full_register() == Register::RSP;
    if !loads || of_stack {
        return None;
    }
    Some(Rmw {
        op,
        size: shared_operand(i)?,
        source: whole(i.op0_register())?,
    })
}

/// A plain store that the agent can do, on the stack, too.
pub fn any_store(i: &Instruction) -> Option<Rmw> {
    let size = shared_operand(i)?;
    if i.mnemonic() != Mnemonic::Mov || i.op0_kind() != OpKind::Memory {
        return None;
    }
    let source = match i.op1_kind() {
        OpKind::Register => whole(i.op1_register())?,
        _ => Source::Immediate(i.immediate(1) as i64),
    };
    Some(Rmw {
        op: Op::Store,
        size,
        source,
    })
}

/// Does it do nothing but compare?
pub fn compares(i: &Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Bt)
}

/// Does it compare, or does a branch, or what else depends on flags, depend on those that the first of these instructions sets?
pub fn is_asked(rest: &[Instruction]) -> bool {
    if compares(&rest[0]) {
        return true;
    }
    let mut open = rest[0].rflags_modified();
    for i in rest.iter().skip(1).take(SOON) {
        if open & i.rflags_read() != 0 {
            return true;
        }
        open &= !i.rflags_modified();
        if open == 0 || i.flow_control() != FlowControl::Next {
            return false;
        }
    }
    false
}

/// Does it store something? (Not what a call stores.)
pub fn stores(i: &Instruction, info: &mut Info) -> bool {
    // What a call stores nobody sees here; a push is for one.
    if is_call(i) {
        return false;
    }
    info.stores(i)
}

/// Is its value compared at once, or soon?
pub fn is_compared(rest: &[Instruction], info: &mut Info) -> bool {
    let first = &rest[0];
    if matches!(first.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) {
        return true;
    }
    let to = first.op0_register().full_register();
    for l in rest.iter().skip(1).take(NEAR) {
        if compares(l) && info.uses(l, to) {
            return true;
        }
        if clobbers(l, to, info) {
            return false;
        }
    }
    false
}

/// Does it write the register, or may the function that it calls?
pub fn clobbers(i: &Instruction, register: Register, info: &mut Info) -> bool {
    const KEPT: [Register; 6] = [
        Register::RBX,
        Register::RBP,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    if is_call(i) && !KEPT.contains(&register) {
        return true;
    }
    info.writes(i, register)
}
