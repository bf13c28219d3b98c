//! The replicas of a run while it runs: its processes, and what its journal has said so far.

use crate::guest;
use std::fs;
use std::path::{Path, PathBuf};

/// The processes of a run carry this variable.
pub const MARK: &str = "RECOVER_TEST_RUN";

/// A guest's binary in the folder `out`, built if need be.
pub fn built(name: &str, out: &Path) -> PathBuf {
    fs::create_dir_all(out).expect("target/guests can be made");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests");
    let (found, headers) = guest::find(&folder);
    let guest = found.into_iter().flatten().find(|g| g.name == name);
    guest
        .expect("the guest is there")
        .build(out, headers)
        .expect("it builds")
}

/// How often an event stands in the journal so far.
pub fn count(journal: &Path, event: &str) -> usize {
    let wanted = format!("\"event\":\"{event}\"");
    let text = fs::read_to_string(journal).unwrap_or_default();
    text.lines().filter(|l| l.contains(&wanted)).count()
}

/// The marked processes but for Geryon, which is the oldest.
pub fn replicas(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let mut all: Vec<(u64, u32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if !environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes()) {
            continue;
        }
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |r| r.1);
        let started = rest.split_whitespace().nth(19).and_then(|v| v.parse().ok());
        all.extend(started.map(|s: u64| (s, pid)));
    }
    all.sort_unstable();
    all.into_iter().skip(1).map(|(_, pid)| pid).collect()
}
