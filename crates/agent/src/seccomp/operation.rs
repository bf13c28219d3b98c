//! Classic BPF as seccomp has it: what an instruction means, and what a program says of a call.

use geryon_abi::layout::filter::Instruction;

/// Words of struct seccomp_data: number, architecture, the place, six arguments, low halves first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data(pub [u32; DATA_WORDS]);

const DATA_WORDS: usize = 16;
const DATA_BYTES: u32 = 4 * DATA_WORDS as u32;
/// Words that a program may keep.
pub const KEPT: usize = 16;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This word of the call's data.
    Data(usize),
    /// It is this one.
    Number(u32),
    /// This word of what the program keeps.
    Kept(usize),
}

/// The second number of a computation or a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The index register.
    X,
    /// This one.
    K(u32),
}

/// A computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computation {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient; by zero, the program ends with 0.
    Divide,
    /// Bits of both.
    Or,
    /// Bits in both.
    And,
    /// Bits in one of them.
    Xor,
    /// To the left.
    ShiftLeft,
    /// To the right.
    ShiftRight,
}

/// A test of the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal.
    Is,
    /// Above.
    IsAbove,
    /// Not below.
    IsAtLeast,
    /// Have they bits in common?
    Shares,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Load the accumulator.
    Load(Source),
    /// Load the index register.
    LoadX(Source),
    /// Keep the accumulator.
    Keep(usize),
    /// Keep the index register.
    KeepX(usize),
    /// Compute with the accumulator.
    Compute(Computation, Operand),
    /// Change its sign.
    Negate,
    /// Skip so many instructions.
    Skip(u32),
    /// Skip so many, if the test holds or not.
    Branch(Test, Operand, u8, u8),
    /// The program says this.
    Say(u32),
    /// It says what the accumulator holds.
    SayAccumulator,
    /// The index register becomes the accumulator.
    ToX,
    /// And the other way.
    FromX,
}

impl Operation {
    /// What the kernel takes it for; None where seccomp does not allow it.
    #[inline(always)]
    pub fn of(instruction: &Instruction) -> Option<Operation> {
        use Computation::*;
        use Operation::*;
        let Instruction { code, yes, no, k } = *instruction;
        /// The bit of a code that says that the operand is the index register.
        const BY_X: u16 = 8;
        let operand = match code & BY_X {
            0 => Operand::K(k),
            _ => Operand::X,
        };
        let branch = |test| Branch(test, operand, yes, no);
        let kept = (k < KEPT as u32).then_some(k as usize);
        Some(match code {
            0x00 => Load(Source::Number(k)),
            0x01 => LoadX(Source::Number(k)),
            0x20 if k < DATA_BYTES && k.is_multiple_of(4) => Load(Source::Data(k as usize / 4)),
            0x60 => Load(Source::Kept(kept?)),
            0x61 => LoadX(Source::Kept(kept?)),
            0x80 => Load(Source::Number(DATA_BYTES)),
            0x81 => LoadX(Source::Number(DATA_BYTES)),
            0x02 => Keep(kept?),
            0x03 => KeepX(kept?),
            0x04 | 0x0c => Compute(Add, operand),
            0x14 | 0x1c => Compute(Subtract, operand),
            0x24 | 0x2c => Compute(Multiply, operand),
            0x34 if k == 0 => return None,
            0x34 | 0x3c => Compute(Divide, operand),
            0x44 | 0x4c => Compute(Or, operand),
            0x54 | 0x5c => Compute(And, operand),
            0x64 | 0x74 if k >= u32::BITS => return None,
            0x64 | 0x6c => Compute(ShiftLeft, operand),
            0x74 | 0x7c => Compute(ShiftRight, operand),
            0xa4 | 0xac => Compute(Xor, operand),
            0x84 => Negate,
            0x05 => Skip(k),
            0x15 | 0x1d => branch(Test::Is),
            0x25 | 0x2d => branch(Test::IsAbove),
            0x35 | 0x3d => branch(Test::IsAtLeast),
            0x45 | 0x4d => branch(Test::Shares),
            0x06 => Say(k),
            0x16 => SayAccumulator,
            0x07 => ToX,
            0x87 => FromX,
            _ => return None,
        })
    }
}

/// What the program says of a call. None where it is none that has been checked: it ends without a word.
pub fn run(program: &[Instruction], data: &Data) -> Option<u32> {
    let mut kept = [0u32; KEPT];
    let (mut a, mut x) = (0u32, 0u32);
    let mut at = 0usize;
    loop {
        let operation = Operation::of(program.get(at)?)?;
        at += 1;
        let load = |from| match from {
            Source::Data(word) => data.0[word],
            Source::Number(number) => number,
            Source::Kept(word) => kept[word],
        };
        let value = |operand| match operand {
            Operand::X => x,
            Operand::K(k) => k,
        };
        match operation {
            Operation::Load(from) => a = load(from),
            Operation::LoadX(from) => x = load(from),
            Operation::Keep(word) => kept[word] = a,
            Operation::KeepX(word) => kept[word] = x,
            Operation::Compute(what, operand) => match compute(what, a, value(operand)) {
                Some(result) => a = result,
                None => return Some(0),
            },
            Operation::Negate => a = a.wrapping_neg(),
            Operation::Skip(by) => at = at.checked_add(by as usize)?,
            Operation::Branch(test, operand, yes, no) => {
                let by = if holds(test, a, value(operand)) {
                    yes
                } else {
                    no
                };
                at += by as usize;
            }
            Operation::Say(what) => return Some(what),
            Operation::SayAccumulator => return Some(a),
            Operation::ToX => x = a,
            Operation::FromX => a = x,
        }
    }
}

/// None: a division by zero.
fn compute(what: Computation, a: u32, b: u32) -> Option<u32> {
    Some(match what {
        Computation::Add => a.wrapping_add(b),
        Computation::Subtract => a.wrapping_sub(b),
        Computation::Multiply => a.wrapping_mul(b),
        Computation::Divide => a.checked_div(b)?,
        Computation::Or => a | b,
        Computation::And => a & b,
        Computation::Xor => a ^ b,
        // (By the lower bits of the number, as the processor does it.)
        Computation::ShiftLeft => a.wrapping_shl(b),
        Computation::ShiftRight => a.wrapping_shr(b),
    })
}

fn holds(test: Test, a: u32, b: u32) -> bool {
    match test {
        Test::Is => a == b,
        Test::IsAbove => a > b,
        Test::IsAtLeast => a >= b,
        Test::Shares => a & b != 0,
    }
}
