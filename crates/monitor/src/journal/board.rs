//! What has happened in a run so far, where others can read it (`geryon ps`): JSON in a file in memory, found
//! among the monitor's descriptors by its name.

use super::Totals;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

const NAME: &std::ffi::CStr = c"geryon-totals";
/// The file's link in /proc/PID/fd.
const LINK: &str = "/memfd:geryon-totals";
/// No totals are longer.
const LONGEST: u64 = 4096;

/// The file, once something has happened.
#[derive(Debug, Default)]
pub struct Board(Option<File>);

impl Board {
    /// Show them. (Where that cannot be, nobody sees them: the run does not need it.)
    pub fn show(&mut self, totals: &Totals) {
        if self.0.is_none() {
            // SAFETY: plain system call.
            let fd = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
            // SAFETY: the descriptor is new, and owned by the File.
            self.0 = (fd >= 0).then(|| unsafe { File::from_raw_fd(fd) });
        }
        // (Numbers only grow: what was there before is never longer.)
        if let (Some(file), Ok(text)) = (&self.0, serde_json::to_vec(totals)) {
            let _ = file.write_all_at(&text, 0);
        }
    }
}

/// What has happened in the run of this monitor. None where nothing has, or it cannot be seen.
pub fn totals_of(monitor: i32) -> Option<Totals> {
    let is_board = |path: &fs::DirEntry| {
        fs::read_link(path.path()).is_ok_and(|to| to.to_string_lossy().starts_with(LINK))
    };
    let found = fs::read_dir(format!("/proc/{monitor}/fd")).ok()?;
    let path = found.flatten().find(is_board)?.path();
    let mut text = Vec::new();
    File::open(path)
        .ok()?
        .take(LONGEST)
        .read_to_end(&mut text)
        .ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_last_is_seen() {
        let own = std::process::id() as i32;
        assert_eq!(totals_of(own), None);
        let mut board = Board::default();
        for faults in [9, 10] {
            let totals = Totals {
                faults,
                ..Totals::default()
            };
            board.show(&totals);
            assert_eq!(totals_of(own), Some(totals));
        }
    }
}
