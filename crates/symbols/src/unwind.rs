//! One step of unwinding: from a frame's registers to its caller's, by call frame information.

use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult,
    FrameDescriptionEntry, LittleEndian, Location, RegisterRule, UnwindContext, UnwindSection,
    Value,
};

use crate::image::read_u64;
use crate::{Memory, Regs};

/// The most operations that one DWARF expression may take.
const EXPRESSION_MAX_STEPS: u32 = 1000;

// DWARF's register numbers for x86-64.
const RBX: usize = 3;
const RBP: usize = 6;
const RSP: usize = 7;
const R12: usize = 12;
const RIP: usize = 16;
const REGISTERS: usize = 17;
/// What a function preserves for its caller, unless its table says otherwise.
const PRESERVED: [usize; 6] = [RBX, RBP, R12, 13, 14, 15];

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The registers of one frame, as far as they are known, by DWARF number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers([Option<u64>; REGISTERS]);

impl Registers {
    pub fn new(regs: &Regs) -> Registers {
        let mut known = [None; REGISTERS];
        let values = [regs.rbx, regs.rbp, regs.r12, regs.r13, regs.r14, regs.r15];
        for (number, value) in PRESERVED.into_iter().zip(values) {
            known[number] = Some(value);
        }
        known[RSP] = Some(regs.rsp);
        known[RIP] = Some(regs.rip);
        Registers(known)
    }

    /// A caller of which only these are known.
    pub fn of_guess(pc: u64, sp: u64, rbp: Option<u64>) -> Registers {
        let mut known = [None; REGISTERS];
        (known[RIP], known[RSP], known[RBP]) = (Some(pc), Some(sp), rbp);
        Registers(known)
    }

    pub fn pc(&self) -> u64 {
        self.0[RIP].unwrap_or(0)
    }

    pub fn sp(&self) -> u64 {
        self.0[RSP].unwrap_or(0)
    }

    pub fn rbp(&self) -> Option<u64> {
        self.0[RBP]
    }

    fn get(&self, register: gimli::Register) -> Option<u64> {
        *self.0.get(usize::from(register.0))?
    }
}

/// A section that unwinding reads.
pub(crate) struct TableSection {
    pub address: u64,
    pub bytes: Arc<[u8]>,
}

impl TableSection {
    /// For an `.eh_frame_hdr`: where it says that `.eh_frame` is.
    pub fn eh_frame_address(&self) -> Option<u64> {
        let bases = BaseAddresses::default().set_eh_frame_hdr(self.address);
        let header = EhFrameHdr::new(&self.bytes, LittleEndian)
            .parse(&bases, 8)
            .ok()?;
        match header.eh_frame_ptr() {
            gimli::Pointer::Direct(address) => Some(address),
            gimli::Pointer::Indirect(_) => None,
        }
    }
}

/// The call frame information of one module.
#[derive(Default)]
pub(crate) struct Tables {
    pub eh_frame: Option<TableSection>,
    pub eh_frame_hdr: Option<TableSection>,
    pub debug_frame: Option<TableSection>,
    pub text_address: u64,
    pub got_address: u64,
}

/// The frame to unwind and what it stands in.
pub(crate) struct Site<'a> {
    pub registers: &'a Registers,
    /// An address inside the current instruction, as the module counts it.
    pub lookup: u64,
    /// What the loader added to the module's addresses.
    pub bias: u64,
    pub memory: &'a dyn Memory,
}

/// What a step leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The table says that there is no caller.
    Outermost,
    Caller(Box<Registers>),
    /// The table covers the address, but what it names cannot be read.
    Broken,
}

impl Tables {
    /// Whether the code at `lookup` is the return path from a signal handler, whose "caller" was
    /// interrupted, rather than made a call.
    pub fn is_signal_frame(&self, lookup: u64) -> bool {
        let bases = self.bases();
        self.eh_fde(&bases, lookup)
            .is_some_and(|(_, fde)| fde.is_signal_trampoline())
    }

    /// The caller's registers; none when no table covers the address.
    pub fn step(&self, site: &Site<'_>) -> Option<Step> {
        let bases = self.bases();
        if let Some((section, fde)) = self.eh_fde(&bases, site.lookup) {
            return Some(apply(&section, &fde, &bases, site));
        }
        let section = DebugFrame::new(&self.debug_frame.as_ref()?.bytes, LittleEndian);
        let fde = section
            .fde_for_address(&bases, site.lookup, DebugFrame::cie_from_offset)
            .ok()?;
        Some(apply(&section, &fde, &bases, site))
    }

    fn bases(&self) -> BaseAddresses {
        let address =
            |section: &Option<TableSection>| section.as_ref().map_or(0, |section| section.address);
        BaseAddresses::default()
            .set_eh_frame(address(&self.eh_frame))
            .set_eh_frame_hdr(address(&self.eh_frame_hdr))
            .set_text(self.text_address)
            .set_got(self.got_address)
    }

    fn eh_fde<'a>(
        &'a self,
        bases: &BaseAddresses,
        lookup: u64,
    ) -> Option<(EhFrame<Reader<'a>>, FrameDescriptionEntry<Reader<'a>>)> {
        let section = EhFrame::new(&self.eh_frame.as_ref()?.bytes, LittleEndian);
        if let Some(hdr) = &self.eh_frame_hdr
            && let Ok(hdr) = EhFrameHdr::new(&hdr.bytes, LittleEndian).parse(bases, 8)
            && let Some(table) = hdr.table()
        {
            let fde = table
                .fde_for_address(&section, bases, lookup, EhFrame::cie_from_offset)
                .ok()?;
            return Some((section, fde));
        }
        let fde = section
            .fde_for_address(bases, lookup, EhFrame::cie_from_offset)
            .ok()?;
        Some((section, fde))
    }
}

fn apply<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    fde: &FrameDescriptionEntry<Reader<'a>>,
    bases: &BaseAddresses,
    site: &Site<'_>,
) -> Step {
    try_apply(section, fde, bases, site).unwrap_or(Step::Broken)
}

fn try_apply<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    fde: &FrameDescriptionEntry<Reader<'a>>,
    bases: &BaseAddresses,
    site: &Site<'_>,
) -> Option<Step> {
    let mut context = UnwindContext::new();
    let row = fde
        .unwind_info_for_address(section, bases, &mut context, site.lookup)
        .ok()?;
    let evaluate = |expression: &gimli::UnwindExpression<usize>, cfa| {
        evaluate(
            expression.get(section).ok()?,
            fde.cie().encoding(),
            cfa,
            site,
        )
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            site.registers.get(*register)?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => evaluate(expression, None)?,
    };
    let recover = |number: usize| -> Option<u64> {
        let register = gimli::Register(number as u16);
        match row.register(register) {
            None if number == RSP => Some(cfa),
            None if PRESERVED.contains(&number) => site.registers.0[number],
            None | Some(RegisterRule::Undefined | RegisterRule::Architectural) => None,
            Some(RegisterRule::SameValue) => site.registers.0[number],
            Some(RegisterRule::Offset(offset)) => {
                read_u64(site.memory, cfa.wrapping_add_signed(offset))
            }
            Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => site.registers.get(other),
            Some(RegisterRule::Expression(expression)) => {
                read_u64(site.memory, evaluate(&expression, Some(cfa))?)
            }
            Some(RegisterRule::ValExpression(expression)) => evaluate(&expression, Some(cfa)),
            Some(RegisterRule::Constant(value)) => Some(value),
        }
    };
    let return_address = fde.cie().return_address_register();
    if matches!(
        row.register(return_address),
        None | Some(RegisterRule::Undefined)
    ) {
        return Some(Step::Outermost);
    }
    let mut caller = Registers([None; REGISTERS]);
    for number in 0..REGISTERS {
        caller.0[number] = recover(number);
    }
    caller.0[RIP] = Some(recover(usize::from(return_address.0))?);
    caller.0[RSP]?;
    Some(Step::Caller(Box::new(caller)))
}

/// An address or value, as a DWARF expression computes it.
fn evaluate(
    expression: gimli::Expression<Reader<'_>>,
    encoding: gimli::Encoding,
    initial: Option<u64>,
    site: &Site<'_>,
) -> Option<u64> {
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(EXPRESSION_MAX_STEPS);
    if let Some(initial) = initial {
        evaluation.set_initial_value(initial);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mut word = [0; 8];
                let bytes = word.get_mut(..usize::from(size))?;
                if !site.memory.read(address, bytes) {
                    return None;
                }
                evaluation
                    .resume_with_memory(Value::Generic(u64::from_le_bytes(word)))
                    .ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = site.registers.get(register)?;
                evaluation
                    .resume_with_register(Value::Generic(value))
                    .ok()?
            }
            EvaluationResult::RequiresRelocatedAddress(address) => evaluation
                .resume_with_relocated_address(address.wrapping_add(site.bias))
                .ok()?,
            _ => return None,
        };
    }
    match evaluation.as_result() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            Location::Value { value } => value.to_u64(u64::MAX).ok(),
            _ => None,
        },
        _ => None,
    }
}
