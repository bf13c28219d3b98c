//! From names to addresses: where a process has a symbol, or an address that its file names.

use std::path::{Path, PathBuf};

use object::elf as raw;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _};

use crate::elf::load_segments;
use crate::maps::Maps;
use crate::module::bias;

/// Where the process has this: `offset` bytes behind the symbol, or at this address of the file.
/// The file is named by its last component; None: the program. Undefined symbols are not found.
///
/// # Errors
/// Why there is no such place, in words: the file is not mapped (yet), or has no such symbol.
pub fn locate(
    pid: i32,
    module: Option<&str>,
    symbol: Option<&str>,
    offset: u64,
) -> Result<u64, String> {
    let file = Mapped::find(pid, module)?;
    let base = match symbol {
        None => 0,
        Some(name) => file.symbol(name)?,
    };
    Ok(file.bias.wrapping_add(base).wrapping_add(offset))
}

/// Where the process's program begins, when its libraries are loaded.
///
/// # Errors
/// As of [`locate`].
pub fn entry(pid: i32) -> Result<u64, String> {
    let file = Mapped::find(pid, None)?;
    let parsed = file.parsed()?;
    Ok(file.bias.wrapping_add(parsed.entry()))
}

/// A mapped file.
struct Mapped {
    path: PathBuf,
    content: Vec<u8>,
    bias: u64,
}

impl Mapped {
    fn find(pid: i32, module: Option<&str>) -> Result<Mapped, String> {
        let failed = |e: std::io::Error| format!("the process cannot be looked at: {e}");
        let maps = Maps::of_process(pid).map_err(failed)?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).map_err(failed)?;
        let is_it = |path: &Path| match module {
            None => path == program,
            Some(name) => path.file_name().is_some_and(|n| n == name),
        };
        let mapping = maps
            .iter()
            .filter(|m| m.executable && m.is_file())
            .find(|m| m.path().is_some_and(|p| is_it(&p)))
            .ok_or_else(|| format!("no file {} is mapped", module.unwrap_or("of the program")))?;
        let path = mapping.path().unwrap_or_default();
        let content = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut file = Mapped {
            path,
            content,
            bias: 0,
        };
        let segments = load_segments(&file.parsed()?);
        file.bias = bias(&segments, mapping)
            .ok_or_else(|| format!("{} is not mapped as it says", file.path.display()))?;
        Ok(file)
    }

    fn parsed(&self) -> Result<ElfFile64<'_, LittleEndian>, String> {
        ElfFile64::parse(&*self.content).map_err(|e| format!("{}: {e}", self.path.display()))
    }

    fn symbol(&self, name: &str) -> Result<u64, String> {
        let file = self.parsed()?;
        let mut symbols = file.symbols().chain(file.dynamic_symbols());
        let found = symbols.find(|s| {
            s.is_definition()
                && s.name() == Ok(name)
                && s.elf_symbol().st_type() != raw::STT_TLS
                && s.elf_symbol().st_type() != raw::STT_GNU_IFUNC
        });
        let found = found.ok_or_else(|| format!("{} has no symbol {name}", self.path.display()))?;
        Ok(found.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found() {
        let own = std::process::id() as i32;
        let here = entry(own).expect("an entry");
        let at = |offset| locate(own, None, Some("_start"), offset);
        assert_eq!(at(0), Ok(here));
        assert_eq!(at(3), Ok(here + 3));
        let bias = locate(own, None, None, 0).expect("the program");
        assert_eq!(locate(own, None, None, here - bias), Ok(here));
        let abs = libc::abs as *const () as u64;
        assert_eq!(locate(own, Some("libc.so.6"), Some("abs"), 0), Ok(abs));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let own = std::process::id() as i32;
        let wrong = |module, symbol| locate(own, module, symbol, 0).expect_err("no such place");
        assert!(wrong(Some("libnone.so"), None).contains("libnone.so"));
        assert!(wrong(None, Some("no_such_symbol")).contains("no_such_symbol"));
    }
}
