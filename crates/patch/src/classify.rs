//! What an instruction is to us.

use crate::SiteKind;
use crate::descriptor::{Op, Source};
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::sync::LazyLock;

/// Coarse class of an opcode, for the sweep over all code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Plain,
    /// May have a near branch target as its first operand.
    Branch,
    Lea,
    /// May be a site, if prefix and operands say so.
    Candidate,
}

static CLASSES: LazyLock<Vec<Class>> = LazyLock::new(|| {
    let class = |code: Code| match code.flow_control() {
        _ if matches!(code.mnemonic(), Mnemonic::Lea) => Class::Lea,
        _ if operation(code.mnemonic()).is_some() => Class::Candidate,
        _ if other_site(code.mnemonic()).is_some() => Class::Candidate,
        _ if matches!(code.mnemonic(), Mnemonic::Pause | Mnemonic::Mfence) => Class::Candidate,
        FlowControl::UnconditionalBranch
        | FlowControl::ConditionalBranch
        | FlowControl::Call
        | FlowControl::XbeginXabortXend => Class::Branch,
        _ => Class::Plain,
    };
    Code::values().map(class).collect()
});

/// The table of classes; look it up once, index it by `Code as usize`.
pub fn classes() -> &'static [Class] {
    &CLASSES
}

fn other_site(mnemonic: Mnemonic) -> Option<SiteKind> {
    Some(match mnemonic {
        Mnemonic::Syscall => SiteKind::Syscall,
        Mnemonic::Rdtsc => SiteKind::Rdtsc,
        Mnemonic::Rdtscp => SiteKind::Rdtscp,
        Mnemonic::Rdrand | Mnemonic::Rdseed => SiteKind::Rdrand,
        Mnemonic::Xsavec | Mnemonic::Xsavec64 => SiteKind::Xsavec,
        _ => return None,
    })
}

pub fn operation(mnemonic: Mnemonic) -> Option<Op> {
    Some(match mnemonic {
        Mnemonic::Xadd => Op::Xadd,
        Mnemonic::Xchg => Op::Xchg,
        Mnemonic::Cmpxchg => Op::Cmpxchg,
        Mnemonic::Add => Op::Add,
        Mnemonic::Sub => Op::Sub,
        Mnemonic::And => Op::And,
        Mnemonic::Or => Op::Or,
        Mnemonic::Xor => Op::Xor,
        Mnemonic::Inc => Op::Inc,
        Mnemonic::Dec => Op::Dec,
        Mnemonic::Neg => Op::Neg,
        Mnemonic::Not => Op::Not,
        Mnemonic::Bts => Op::Bts,
        Mnemonic::Btr => Op::Btr,
        Mnemonic::Btc => Op::Btc,
        Mnemonic::Cmpxchg8b => Op::Cmpxchg8b,
        Mnemonic::Cmpxchg16b => Op::Cmpxchg16b,
        Mnemonic::Adc => Op::Adc,
        Mnemonic::Sbb => Op::Sbb,
        _ => return None,
    })
}

/// What kind of site the instruction is, if it is one.
pub fn site(i: &Instruction) -> Option<SiteKind> {
    if let Some(kind) = other_site(i.mnemonic()) {
        let is_seen = kind != SiteKind::Xsavec || is_on_stack(i);
        return is_seen.then_some(kind);
    }
    operation(i.mnemonic())?;
    let atomic = i.has_lock_prefix() || i.mnemonic() == Mnemonic::Xchg;
    (atomic && i.op0_kind() == OpKind::Memory).then_some(SiteKind::Rmw)
}

/// Is its operand at a fixed place on the stack? (That of all that ld.so saves is.)
fn is_on_stack(i: &Instruction) -> bool {
    i.memory_base() == Register::RSP && i.memory_index() == Register::None
}

/// An atomic that the agent can do in the program's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rmw {
    pub op: Op,
    pub size: u8,
    pub source: Source,
}

/// What becomes of an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Atomic {
    Ordered(Rmw),
    /// On fs or gs memory.
    ThreadLocal,
    /// Changes nothing, on the stack.
    Fence,
    Odd(&'static str),
}

/// Looks closer at an instruction that [`site`] calls an atomic.
pub fn atomic(i: &Instruction) -> Atomic {
    if matches!(i.memory_segment(), Register::FS | Register::GS) {
        return Atomic::ThreadLocal;
    }
    let Some(op) = operation(i.mnemonic()) else {
        return Atomic::Odd("not an atomic operation");
    };
    if i.memory_base() == Register::EIP {
        return Atomic::Odd("32-bit rip-relative operand");
    }
    let size = i.memory_size().size();
    if !matches!(size, 1 | 2 | 4 | 8 | 16) {
        return Atomic::Odd("operand size");
    }
    let source = match i.op_count() {
        1 => Source::None,
        _ => match i.op1_kind() {
            OpKind::Register => register(i.op1_register()),
            _ => Source::Immediate(i.immediate(1) as i64),
        },
    };
    let idle = matches!(source, Source::Immediate(0))
        && matches!(op, Op::Or | Op::Add | Op::Sub | Op::Xor)
        || matches!(source, Source::Immediate(-1)) && op == Op::And;
    if idle && i.memory_base() == Register::RSP {
        return Atomic::Fence;
    }
    Atomic::Ordered(Rmw {
        op,
        size: size as u8,
        source,
    })
}

fn register(r: Register) -> Source {
    match r {
        Register::AH => Source::HighByte(0),
        Register::CH => Source::HighByte(1),
        Register::DH => Source::HighByte(2),
        Register::BH => Source::HighByte(3),
        _ => Source::Register(number(r)),
    }
}

/// Number of a general register, in encoding order.
pub fn number(r: Register) -> u8 {
    r.full_register().number() as u8
}

/// How an instruction can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moving {
    /// Anywhere.
    Free,
    /// Only as the last one: nothing behind it is reached from it.
    Last,
    /// Only as the last one: it returns to the window's end.
    Call,
    /// Not at all.
    Never,
}

/// How an instruction that is not a site can be moved.
pub fn moving(i: &Instruction) -> Moving {
    if i.memory_base() == Register::EIP && i.is_ip_rel_memory_operand() {
        return Moving::Never;
    }
    match i.flow_control() {
        FlowControl::Next => Moving::Free,
        FlowControl::ConditionalBranch => {
            let known = i.is_jcc_short_or_near() || i.is_loop() || i.is_loopcc();
            let known = known || matches!(i.code(), Code::Jrcxz_rel8_64 | Code::Jecxz_rel8_64);
            if known { Moving::Free } else { Moving::Never }
        }
        FlowControl::UnconditionalBranch if i.op0_kind() == OpKind::NearBranch64 => Moving::Last,
        FlowControl::IndirectBranch if i.is_jmp_near_indirect() => Moving::Last,
        FlowControl::Return if i.mnemonic() == Mnemonic::Ret => Moving::Last,
        FlowControl::Exception => Moving::Last,
        FlowControl::Call if i.code() == Code::Call_rel32_64 => Moving::Call,
        // Emulated by a push, which would shift an operand relative to rsp.
        FlowControl::IndirectCall if i.code() == Code::Call_rm64 && !uses_rsp(i) => Moving::Call,
        _ => Moving::Never,
    }
}

fn uses_rsp(i: &Instruction) -> bool {
    match i.op0_kind() {
        OpKind::Register => i.op0_register() == Register::RSP,
        _ => i.memory_base().full_register() == Register::RSP,
    }
}

/// A call that can be moved: pushing its return address, and a jump.
pub fn is_call(i: &Instruction) -> bool {
    matches!(i.code(), Code::Call_rel32_64 | Code::Call_rm64)
}

/// Does what stands behind it come next?
pub fn falls_through(i: &Instruction) -> bool {
    use FlowControl::{Exception, IndirectBranch, Return, UnconditionalBranch};
    let ends = matches!(
        i.flow_control(),
        UnconditionalBranch | IndirectBranch | Return | Exception
    );
    !ends && !is_call(i)
}

/// The condition's number in the opcodes of jcc.
pub fn condition(i: &Instruction) -> u8 {
    use iced_x86::ConditionCode::*;
    match i.condition_code() {
        None | o => 0,
        no => 1,
        b => 2,
        ae => 3,
        e => 4,
        ne => 5,
        be => 6,
        a => 7,
        s => 8,
        ns => 9,
        p => 10,
        np => 11,
        l => 12,
        ge => 13,
        le => 14,
        g => 15,
    }
}
/// Is it an atomic instruction that is ordered?
pub fn is_atomic(i: &Instruction) -> bool {
    site(i) == Some(SiteKind::Rmw) && matches!(atomic(i), Atomic::Ordered(_))
}
