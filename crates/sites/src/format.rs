//! The files: text, a line for a build, then one for each of its places.
//!
//! ```text
//! # What stands behind a # is for people.
//! build-id 3f2a... sort
//! 0x6b20 load   # heap_insert
//! 0x6b34 store
//! 0x6b40 update
//! ```

use crate::{BuildId, Kind, Module, Site};
use std::fmt;

/// A line that says nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Damaged {
    /// Which one, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Reads a file's text.
///
/// # Errors
/// The first line that is no line of such a file.
pub fn parse(text: &str) -> Result<Vec<Module>, Damaged> {
    let mut modules: Vec<Module> = Vec::new();
    for (number, whole) in (1..).zip(text.lines()) {
        let damaged = |what: String| Damaged { line: number, what };
        let (line, note) = whole.split_once('#').unwrap_or((whole, ""));
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            continue;
        };
        if first == "build-id" {
            let id = words.next().unwrap_or_default();
            let build = BuildId::parse(id).ok_or_else(|| {
                damaged(format!(
                    "'{id}' is no build-id (pairs of hexadecimal digits)"
                ))
            })?;
            modules.push(Module {
                build,
                name: words.collect::<Vec<_>>().join(" "),
                sites: Vec::new(),
            });
            continue;
        }
        let module = modules
            .last_mut()
            .ok_or_else(|| damaged("a place before the first line 'build-id ID NAME'".into()))?;
        let digits = first.strip_prefix("0x");
        let vaddr = digits
            .and_then(|d| u64::from_str_radix(d, 16).ok())
            .ok_or_else(|| {
                damaged(format!(
                    "'{first}' is neither 'build-id' nor an address like 0x1a2b"
                ))
            })?;
        let kind = match words.next() {
            Some("load") => Kind::Load,
            Some("store") => Kind::Store,
            Some("update") => Kind::Update,
            other => {
                let what = other.unwrap_or_default();
                return Err(damaged(format!("'{what}' is none of load, store, update")));
            }
        };
        if let Some(more) = words.next() {
            return Err(damaged(format!(
                "'{more}' is too much (a note begins with #)"
            )));
        }
        let site = Site {
            vaddr,
            kind,
            note: note.trim().into(),
        };
        if let Err(at) = module.sites.binary_search_by_key(&vaddr, |s| s.vaddr) {
            module.sites.insert(at, site);
        }
    }
    Ok(modules)
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // (A name is one line, and no note.)
        let name: String = self
            .name
            .chars()
            .filter(|c| !c.is_control() && *c != '#')
            .collect();
        writeln!(f, "build-id {} {name}", self.build)?;
        for s in &self.sites {
            let note: String = s.note.chars().filter(|c| !c.is_control()).collect();
            match note.is_empty() {
                true => writeln!(f, "{:#x} {}", s.vaddr, s.kind.name())?,
                false => writeln!(f, "{:#x} {:6} # {note}", s.vaddr, s.kind.name())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let text = "# by hand\nbuild-id 3f2a a program\n0x6b20 load # heap, insert\n0x6b10 store\n\nbuild-id 11 b\n0x1 update\n";
        let modules = parse(text).expect("good");
        assert_eq!(modules.len(), 2);
        assert_eq!(modules[0].name, "a program");
        assert_eq!(
            modules[0].sites.iter().map(|s| s.vaddr).collect::<Vec<_>>(),
            [0x6b10, 0x6b20]
        );
        assert_eq!(modules[0].sites[1].note, "heap, insert");
        assert_eq!(modules[1].sites[0].kind, Kind::Update);
        let written: String = modules.iter().map(Module::to_string).collect();
        assert_eq!(parse(&written), Ok(modules));
    }

    #[test]
    fn a_line_that_says_nothing_is_named() {
        let at = |text| parse(text).map_err(|e| e.line);
        assert_eq!(at("0x10 load\n"), Err(1));
        assert_eq!(at("build-id xyz a\n"), Err(1));
        assert_eq!(at("build-id 12 a\n10 load\n"), Err(2));
        assert_eq!(at("build-id 12 a\n\n0x10 look\n"), Err(3));
        assert_eq!(at("build-id 12 a\n0x10 load twice\n"), Err(2));
        assert_eq!(at("build-id 12\n0x10\n"), Err(2));
        let e = parse("build-id 12 a\n0x10 look\n").expect_err("bad");
        assert_eq!(
            e.to_string(),
            "line 2: 'look' is none of load, store, update"
        );
    }
}
