//! Functions by which libraries have programs load what is atomic: a plain load of what the first argument points to, in a function
//! with no sign of it but its name. (Apache's event threads ask so how many of them are idle.)

use crate::elf::Symbol;
use crate::info::Info;
use crate::look::load;
use iced_x86::{Instruction, Register};

const NAMES: [&[u8]; 5] = [
    b"apr_atomic_read32",
    b"apr_atomic_read64",
    b"g_atomic_int_get",
    b"g_atomic_pointer_get",
    b"CRYPTO_atomic_load",
];

/// Where those of a file begin; sorted.
pub fn of(symbols: &[Symbol]) -> Vec<u64> {
    let named = symbols.iter().filter(|s| NAMES.contains(&s.name));
    let mut found: Vec<u64> = named.map(|s| s.value).collect();
    found.sort_unstable();
    found
}

/// The load of such a function, if these are its instructions.
pub fn loaded(lines: &[Instruction], getters: &[u64], info: &mut Info) -> Option<usize> {
    let first = lines.first()?;
    getters.binary_search(&first.ip()).ok()?;
    let is_one = |i: &Instruction| load(i).is_some() && i.memory_base() == Register::RDI;
    let at = lines.iter().position(is_one)?;
    // (The argument is still there.)
    let stays = !lines[..at].iter().any(|i| info.writes(i, Register::RDI));
    stays.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn a_getter_loads_what_its_argument_points_to() {
        // mov eax, [rdi]; ret
        let code = [0x8b, 0x07, 0xc3];
        let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        let lines: Vec<Instruction> = decoder.into_iter().collect();
        let found = |getters: &[u64]| loaded(&lines, getters, &mut Info::new());
        assert_eq!(found(&[0x1000]), Some(0));
        assert_eq!(found(&[0x2000]), None);
    }
}
