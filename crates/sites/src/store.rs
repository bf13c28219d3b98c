//! The user's own files: one for each build.

use crate::folders::ENDING;
use crate::{BuildId, Module, parse};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// Digits of the build-id in a file's name.
const DIGITS: usize = 12;

fn file_of(folder: &Path, module: &Module) -> PathBuf {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._-+".contains(*c);
    let name: String = module.name.chars().filter(is_plain).collect();
    let id: String = module.build.to_string().chars().take(DIGITS).collect();
    folder.join(format!("{name}-{id}.{ENDING}"))
}

/// Adds what is new of a module to its file in this folder, which is made; its path, and how many places were new.
///
/// # Errors
/// What keeps the file from being read or written; a damaged one is not written over.
pub fn keep(folder: &Path, module: Module) -> Result<(PathBuf, usize)> {
    std::fs::create_dir_all(folder)?;
    let file = file_of(folder, &module);
    let damaged = |e| Error::new(ErrorKind::InvalidData, format!("{}, {e}", file.display()));
    let mut modules = match std::fs::read_to_string(&file) {
        Ok(text) => parse(&text).map_err(damaged)?,
        Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e),
    };
    let added = match modules.iter_mut().find(|m| m.build == module.build) {
        Some(known) => known.merge(module),
        None => {
            let added = module.sites.len();
            modules.push(module);
            added
        }
    };
    write(&file, &modules)?;
    Ok((file, added))
}

/// Takes a build out of all files of this folder; which files had it.
///
/// # Errors
/// What keeps a file from being read or written.
pub fn forget(
    folder: &Path,
    build: &BuildId,
    files: &[(PathBuf, Vec<Module>)],
) -> Result<Vec<PathBuf>> {
    let mut had = Vec::new();
    for (file, modules) in files.iter().filter(|f| f.0.parent() == Some(folder)) {
        let left: Vec<Module> = modules
            .iter()
            .filter(|m| m.build != *build)
            .cloned()
            .collect();
        match left.len() {
            n if n == modules.len() => continue,
            0 => std::fs::remove_file(file)?,
            _ => write(file, &left)?,
        }
        had.push(file.clone());
    }
    Ok(had)
}

/// At once, or not at all.
fn write(file: &Path, modules: &[Module]) -> Result<()> {
    let text: String = modules.iter().map(Module::to_string).collect();
    let temporary = file.with_extension(format!("{}", std::process::id()));
    std::fs::write(&temporary, text)?;
    std::fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Known, Site};

    #[test]
    fn what_is_kept_is_known_until_it_is_forgotten() {
        let folder = std::env::temp_dir().join(format!("geryon-kept-{}", std::process::id()));
        let build = BuildId(vec![0xab; 20]);
        let with = |vaddr| Module {
            build: build.clone(),
            name: "a/b c".into(),
            sites: vec![Site {
                vaddr,
                kind: Kind::Load,
                note: String::new(),
            }],
        };
        let (file, added) = keep(&folder, with(1)).expect("kept");
        assert_eq!(
            (file.file_name().and_then(|n| n.to_str()), added),
            (Some("abc-abababababab.sites"), 1)
        );
        assert_eq!(keep(&folder, with(1)).expect("kept").1, 0);
        assert_eq!(keep(&folder, with(9)).expect("kept").1, 1);
        let mut known = Known::default();
        known.read_folder(&folder).expect("good");
        assert_eq!(known.by_build()[&build], [1, 9]);
        assert_eq!(
            forget(&folder, &build, &known.files).expect("gone"),
            std::slice::from_ref(&file)
        );
        assert!(!file.exists());
        std::fs::remove_dir(&folder).expect("it is empty");
    }
}
