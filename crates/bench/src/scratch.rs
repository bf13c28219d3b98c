//! A directory for the files of one bench or campaign, removed with it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;

const PREFIX: &str = "geryon-scratch-";
/// A file in the directory that is locked for as long as its maker lives.
const LOCK: &str = "lock";

/// A new directory below TMPDIR that only we can enter; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Makes the directory.
    ///
    /// # Errors
    /// When TMPDIR cannot be written.
    pub fn new() -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Fails when somebody else has made it: then it is not ours to use.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| {
                format!(
                    "cannot make {}; TMPDIR chooses another place",
                    path.display()
                )
            })?;
        let lock = File::create(path.join(LOCK))?;
        lock.lock()?;
        Ok(Scratch { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing can be done about an error; the next one tries again.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what benches and campaigns of this user left behind that were killed.
pub fn remove_stale() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    let user = rustix::process::getuid().as_raw();
    for entry in entries.flatten() {
        let ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX))
            && entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == user);
        if ours && is_stale(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether nobody holds the lock any more. False for a directory without one: it
/// may be just being made.
fn is_stale(directory: &Path) -> bool {
    File::open(directory.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_when_dropped() {
        let scratch = Scratch::new().expect("scratch");
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").expect("a file");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn only_what_nobody_holds_is_stale() {
        let scratch = Scratch::new().expect("scratch");
        assert!(!is_stale(scratch.path()));
        let left = scratch.path().join("left");
        fs::create_dir(&left).expect("a directory");
        assert!(!is_stale(&left));
        fs::write(left.join(LOCK), "").expect("a lock");
        assert!(is_stale(&left));
    }
}
