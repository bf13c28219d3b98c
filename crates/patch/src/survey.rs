//! What a plan says of each of its sites, for people.

use crate::{Plan, SiteKind};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};

/// One site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Link-time address of the instruction.
    pub vaddr: u64,
    /// What it is to Geryon.
    pub kind: SiteKind,
    /// The instruction, as an assembler names it; empty where the plan does not have it.
    pub instruction: String,
    /// Why it stays as it is, if it does.
    pub left: Option<String>,
}

/// All sites of a plan, by address.
pub fn survey(plan: &Plan) -> Vec<Found> {
    let rewritten = plan.sites.iter().map(|s| Found {
        vaddr: s.vaddr,
        kind: s.kind,
        instruction: plan
            .windows
            .get(s.window as usize)
            .and_then(|w| instruction(&w.bytes, w.start, s.vaddr))
            .unwrap_or_default(),
        left: None,
    });
    let left = plan.unpatched.iter().map(|u| Found {
        vaddr: u.vaddr,
        kind: u.kind,
        instruction: String::new(),
        left: Some(u.reason.clone()),
    });
    let mut all: Vec<Found> = rewritten.chain(left).collect();
    all.sort_by_key(|f| f.vaddr);
    all
}

/// The name of the instruction at `vaddr`, in code that begins at `start`.
fn instruction(code: &[u8], start: u64, vaddr: u64) -> Option<String> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let i = decoder.into_iter().find(|i| i.ip() == vaddr)?;
    (!i.is_invalid()).then(|| name(&i))
}

fn name(i: &Instruction) -> String {
    // (`xchg` with memory is locked without a prefix.)
    let lock = match i.has_lock_prefix() {
        true => "lock ",
        false => "",
    };
    let loads = matches!(
        i.mnemonic(),
        Mnemonic::Mov
            | Mnemonic::Movzx
            | Mnemonic::Movsx
            | Mnemonic::Movsxd
            | Mnemonic::Cmp
            | Mnemonic::Test
    );
    let rest = match loads {
        true if i.op0_kind() == OpKind::Memory && i.mnemonic() == Mnemonic::Mov => " (store)",
        true => " (load)",
        false => "",
    };
    format!("{lock}{:?}{rest}", i.mnemonic()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_their_names() {
        // nop; lock cmpxchg [rdi], esi; mov eax, [rdi]; pause
        let code = [0x90, 0xf0, 0x0f, 0xb1, 0x37, 0x8b, 0x07, 0xf3, 0x90];
        let at = |vaddr| instruction(&code, 0x10, vaddr);
        assert_eq!(at(0x11).as_deref(), Some("lock cmpxchg"));
        assert_eq!(at(0x15).as_deref(), Some("mov (load)"));
        assert_eq!(at(0x17).as_deref(), Some("pause"));
        assert_eq!(at(0x16), None, "in the midst of one");
    }
}
