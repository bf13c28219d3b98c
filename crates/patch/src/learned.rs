//! A place at which a thread was found waiting, though nothing in the code shows that it does: it is counted from then on,
//! as those are that `spin.rs` finds.

use crate::sentry::sentry_site;
use crate::{Error, Plan, Site, SiteKind, Stats, Window, emit};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};

/// The first instruction of these that can be such a place, all before it running into it: offset and length. It has room for a
/// jump of its own, so no branch leads into what is overwritten.
#[must_use]
pub fn learnable(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    while decoder.can_decode() {
        let at = decoder.position();
        if let Some(len) = sentry_site(&bytes[at..]) {
            return Some((at, len));
        }
        let i = decoder.decode();
        if i.is_invalid() || i.flow_control() != FlowControl::Next || i.code() == Code::Syscall {
            return None;
        }
    }
    None
}

impl Plan {
    /// Of this place alone. `bytes`: the instruction there.
    ///
    /// # Errors
    /// [`Error::BadPlan`] where it is none of [`learnable`].
    pub fn learned(vaddr: u64, bytes: &[u8]) -> Result<Plan, Error> {
        if learnable(bytes) != Some((0, bytes.len())) {
            return Err(Error::BadPlan(vaddr));
        }
        let window = Window {
            start: vaddr,
            bytes: bytes.to_vec(),
            moved: bytes.len() as u8,
            stone: None,
            entry: None,
            loops_to: None,
            constants: Vec::new(),
            spins: Vec::new(),
            waits: vec![vaddr],
            asked: Vec::new(),
        };
        let mut plan = Plan {
            version: crate::PLAN_VERSION,
            sites: vec![Site {
                vaddr,
                kind: SiteKind::Wait,
                window: 0,
            }],
            windows: vec![window],
            unpatched: Vec::new(),
            segments: std::iter::once(vaddr..vaddr + bytes.len() as u64).collect(),
            stats: Stats::default(),
            rmw: true,
            trampoline_bytes: 0,
        };
        plan.trampoline_bytes = emit::length(&plan)?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEntries;

    #[test]
    fn an_instruction_with_room_is_found_in_what_runs_into_it() {
        // add qword [rdi], 1; mov eax, [rip+0x100]
        let code = [0x48, 0x83, 0x07, 1, 0x8b, 0x05, 0, 1, 0, 0];
        assert_eq!(learnable(&code), Some((4, 6)));
        // test eax, eax; je 0; mov eax, [rip+0x100]
        let branch = [0x85, 0xc0, 0x74, 0, 0x8b, 0x05, 0, 1, 0, 0];
        assert_eq!(learnable(&branch), None);
        // jmp: one that is counted already.
        assert_eq!(learnable(&[0xe9, 0, 0, 0, 0]), None);
    }

    #[test]
    fn it_jumps_to_a_trampoline_that_goes_on_behind_it() {
        const AT: u64 = 0x40_1000;
        let code = [0x8b, 0x05, 0, 1, 0, 0];
        let plan = Plan::learned(AT, &code).expect("it has room");
        let agent = AgentEntries::default();
        let emitted = plan.emit(0, 0x50_0000, &agent, None).expect("it is near");
        assert_eq!(emitted.writes.len(), 1);
        assert_eq!(emitted.writes[0].0, AT);
        assert_eq!(emitted.writes[0].1.len(), code.len());
        let originals: Vec<u64> = emitted.pc_map.iter().map(|e| e.1).collect();
        assert!(originals.contains(&AT) && originals.contains(&(AT + 6)));
        assert!(emitted.trampolines.len() < 4096);
        assert!(Plan::learned(AT, &code[..5]).is_err());
    }
}
