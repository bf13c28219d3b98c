//! All places that are known on this machine.

use crate::built_in;
use crate::folders::{self, ENDING};
use crate::{BuildId, Damaged, Module, parse};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file of places that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It cannot be read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It says nothing.
    #[error("{}, {error}", file.display())]
    Damaged {
        /// Which.
        file: PathBuf,
        /// Where, and what.
        error: Damaged,
    },
}

/// Files, and what they say of which builds.
#[derive(Debug, Default)]
pub struct Known {
    /// Each file with its modules.
    pub files: Vec<(PathBuf, Vec<Module>)>,
}

impl Known {
    /// What Geryon brings along, and what lies in the folders of the user and the machine ([`folders::all`]).
    ///
    /// # Errors
    /// A file that cannot be used.
    pub fn read() -> Result<Known, Unusable> {
        let mut known = Known::built_in();
        for folder in folders::all() {
            known.read_folder(&folder)?;
        }
        Ok(known)
    }

    /// What Geryon brings along.
    #[must_use]
    pub fn built_in() -> Known {
        let name = |name: &str| PathBuf::from(format!("built in: {name}"));
        Known {
            files: built_in::all().map(|(n, m)| (name(n), m)).collect(),
        }
    }

    /// What lies in this folder, too. One that is not there is empty.
    ///
    /// # Errors
    /// As [`Known::read`].
    pub fn read_folder(&mut self, folder: &Path) -> Result<(), Unusable> {
        let unreadable = |file: &Path, error| Unusable::Unreadable {
            file: file.into(),
            error,
        };
        let entries = match std::fs::read_dir(folder) {
            // (Whose home is another one's reads what it may.)
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                return Ok(());
            }
            entries => entries.map_err(|e| unreadable(folder, e))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let file = entry.map_err(|e| unreadable(folder, e))?.path();
            if file.extension().is_some_and(|e| e == ENDING) {
                files.push(file);
            }
        }
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|e| unreadable(&file, e))?;
            let modules = parse(&text).map_err(|error| Unusable::Damaged {
                file: file.clone(),
                error,
            })?;
            self.files.push((file, modules));
        }
        Ok(())
    }

    /// Addresses of the places of each build.
    #[must_use]
    pub fn by_build(&self) -> HashMap<BuildId, Vec<u64>> {
        let mut all: HashMap<BuildId, Vec<u64>> = HashMap::new();
        for m in self.files.iter().flat_map(|f| &f.1) {
            let of = all.entry(m.build.clone()).or_default();
            of.extend(m.sites.iter().map(|s| s.vaddr));
        }
        for of in all.values_mut() {
            of.sort_unstable();
            of.dedup();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_are_read_and_a_damaged_one_is_named() {
        let folder = std::env::temp_dir().join(format!("geryon-sites-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let put =
            |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
        put("a.sites", "build-id 12 a\n0x20 load\n0x10 store\n");
        put(
            "b.sites",
            "build-id 12 a\n0x20 load\n0x30 load\nbuild-id 13 b\n",
        );
        put("c.txt", "anything\n");
        let mut known = Known::default();
        known.read_folder(&folder).expect("they are good");
        let all = known.by_build();
        assert_eq!(all[&BuildId(vec![0x12])], [0x10, 0x20, 0x30]);
        assert_eq!(known.files.len(), 2);
        put("d.sites", "0x20 load\n");
        let e = Known::default()
            .read_folder(&folder)
            .expect_err("d is damaged");
        assert!(e.to_string().contains("d.sites, line 1: "), "{e}");
        std::fs::remove_dir_all(&folder).expect("it is there");
        Known::default()
            .read_folder(&folder)
            .expect("one that is not there is empty");
    }
}
