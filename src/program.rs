//! Finding the program, and saying clearly why it cannot be run.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a program cannot be run, with the status that `env` would exit with.
#[derive(Debug)]
pub struct Refusal {
    /// For a person.
    pub message: String,
    /// 126: found but not executable; 127: not found.
    pub status: u8,
}

fn refuse(status: u8, message: String) -> Refusal {
    Refusal { message, status }
}

/// Resolve a name as execvp does and check that the kernel and Geryon can run it.
pub fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    let shown = name.to_string_lossy();
    if name.is_empty() {
        return Err(refuse(127, "the program's name is empty\n  try: geryon run -- PROGRAM ARGS".into()));
    }
    if name.as_bytes().contains(&b'/') {
        return check(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut denied = None;
    for dir in std::env::split_paths(&path) {
        let dir = if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir };
        let candidate = dir.join(name);
        if !candidate.is_file() {
            continue;
        }
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(e) => {
                denied.get_or_insert(e);
            }
        }
    }
    Err(denied.unwrap_or_else(|| {
        refuse(127, format!("{shown}: no such program in PATH\n  try: give its path, as in ./{shown}, or install it"))
    }))
}

fn check(path: &Path) -> Result<(), Refusal> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| {
        let status = if e.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        refuse(status, format!("{shown}: {}", plain(&e)))
    })?;
    if meta.is_dir() {
        return Err(refuse(126, format!("{shown}: is a directory, not a program")));
    }
    if !executable(path) {
        return Err(refuse(126, format!("{shown}: not executable\n  try: chmod +x {shown}")));
    }
    let mut head = Vec::new();
    // A program that may be executed but not read is rewritten from the memory it is loaded to;
    // the kernel forbids tracing it.
    std::fs::File::open(path).and_then(|f| f.take(64).read_to_end(&mut head)).map_err(|e| {
        refuse(126, format!("{shown}: cannot be read: {}\n  Geryon has to read a program to rewrite it\n  try: chmod +r {shown}", plain(&e)))
    })?;
    if head.starts_with(b"#!") {
        return Ok(());
    }
    if !head.starts_with(b"\x7fELF") {
        return Err(refuse(126, format!("{shown}: neither an ELF program nor a script that starts with #!\n  try: geryon run -- sh {shown}, if it is a shell script")));
    }
    // e_ident[EI_CLASS] and e_machine.
    let class = head.get(4).copied().unwrap_or(0);
    let machine = u16::from_le_bytes([head.get(18).copied().unwrap_or(0), head.get(19).copied().unwrap_or(0)]);
    if class != 2 || machine != 62 {
        return Err(refuse(126, format!("{shown}: built for another architecture ({}-bit, ELF machine {machine}); Geryon runs x86-64 programs", if class == 1 { 32 } else { 64 })));
    }
    Ok(())
}

fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn executable(path: &Path) -> bool {
    let Ok(c) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: plain call on a NUL-terminated string.
    unsafe { libc::access(c.as_ptr(), libc::X_OK) == 0 }
}
