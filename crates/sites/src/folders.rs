//! Where the files are.

use std::path::PathBuf;

/// Files are those with this ending.
pub const ENDING: &str = "sites";
/// Of the machine.
const MACHINE: [&str; 2] = ["/etc/geryon/sites", "/usr/share/geryon/sites"];

/// The user's folder, into which new ones go: `$GERYON_SITES`, or `geryon/sites` in `$XDG_CONFIG_HOME` or `~/.config`. None:
/// there is no such variable.
#[must_use]
pub fn own() -> Option<PathBuf> {
    let given = std::env::var_os("GERYON_SITES").filter(|v| !v.is_empty());
    if let Some(given) = given {
        return Some(given.into());
    }
    let config = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".config"));
    Some(config.or_else(home)?.join("geryon/sites"))
}

/// All folders that are read: the user's, then those of the machine.
#[must_use]
pub fn all() -> Vec<PathBuf> {
    own()
        .into_iter()
        .chain(MACHINE.map(PathBuf::from))
        .collect()
}
