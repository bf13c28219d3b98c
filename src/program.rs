//! Finding the program, and saying clearly why it cannot be run.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// So much of a program's start is looked at; the kernel cuts `#!` lines there as well.
const HEAD_BYTES: u64 = 256;
/// The kernel follows no more interpreters of interpreters.
const INTERPRETERS_MAX: u32 = 5;
/// The longest path of the kernel.
const PATH_MAX: u64 = 4096;
/// e_ident[EI_CLASS] of a 64-bit file.
const CLASS_64: u8 = 2;
/// e_machine of this architecture.
const MACHINE_X86_64: u16 = 62;
/// e_type of a program at a fixed address.
const TYPE_EXEC: u16 = 2;
/// e_type of a position-independent program.
const TYPE_DYN: u16 = 3;

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
        return Err(refuse(
            127,
            "the program's name is empty\n  try: geryon run -- PROGRAM ARGS".into(),
        ));
    }
    if name.as_bytes().contains(&b'/') {
        return check(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut denied = None;
    for dir in std::env::split_paths(&path) {
        let dir = if dir.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            dir
        };
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
    check_file(path, INTERPRETERS_MAX)
}

/// `depth`: interpreters of interpreters that may still follow.
fn check_file(path: &Path, depth: u32) -> Result<(), Refusal> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| {
        let status = if e.kind() == std::io::ErrorKind::NotFound {
            127
        } else {
            126
        };
        refuse(status, format!("{shown}: {}", plain(&e)))
    })?;
    if meta.is_dir() {
        return Err(refuse(
            126,
            format!("{shown}: is a directory, not a program"),
        ));
    }
    if !executable(path) {
        return Err(refuse(
            126,
            format!("{shown}: not executable\n  try: chmod +x {shown}"),
        ));
    }
    let unreadable = |e: std::io::Error| {
        refuse(
            126,
            format!(
                "{shown}: cannot be read: {}\n  Geryon has to read a program to rewrite it\n  try: chmod +r {shown}",
                plain(&e)
            ),
        )
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut head = Vec::new();
    (&file)
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(unreadable)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next().unwrap_or(line);
        let mut words = line.split(|b| b" \t".contains(b)).filter(|w| !w.is_empty());
        let Some(interpreter) = words.next() else {
            return Err(refuse(
                126,
                format!("{shown}: a script that names no interpreter after #!"),
            ));
        };
        return interpreted(path, interpreter, depth);
    }
    if !head.starts_with(b"\x7fELF") {
        return Err(refuse(
            126,
            format!(
                "{shown}: neither an ELF program nor a script that starts with #!\n  try: geryon run -- sh {shown}, if it is a shell script"
            ),
        ));
    }
    let damaged = || refuse(126, format!("{shown}: a damaged or cut off ELF file"));
    let class = head.get(4).copied().ok_or_else(damaged)?;
    let machine = half(&head, 18).ok_or_else(damaged)?;
    if class != CLASS_64 || machine != MACHINE_X86_64 {
        return Err(refuse(
            126,
            format!(
                "{shown}: built for another architecture ({}-bit, ELF machine {machine}); Geryon runs x86-64 programs",
                if class == 1 { 32 } else { 64 }
            ),
        ));
    }
    if !matches!(half(&head, 16), Some(TYPE_EXEC | TYPE_DYN)) {
        return Err(refuse(
            126,
            format!("{shown}: an object or core file, not a program"),
        ));
    }
    match elf_interpreter(&file, &head) {
        Err(_) => Err(damaged()),
        Ok(None) => Ok(()),
        Ok(Some(interpreter)) => interpreted(path, &interpreter, depth),
    }
}

/// A program that another one runs (a script's shell, an ELF file's ld.so) needs that one.
fn interpreted(path: &Path, interpreter: &[u8], depth: u32) -> Result<(), Refusal> {
    let shown = path.display();
    let Some(depth) = depth.checked_sub(1) else {
        return Err(refuse(
            126,
            format!("{shown}: too many interpreters of interpreters"),
        ));
    };
    let interpreter = Path::new(OsStr::from_bytes(interpreter));
    check_file(interpreter, depth).map_err(|e| {
        refuse(
            e.status,
            format!("{shown}: its interpreter cannot be run\n  {}", e.message),
        )
    })
}

/// What PT_INTERP names. An error: the file ends too early.
fn elf_interpreter(file: &std::fs::File, head: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    const PT_INTERP: u64 = 3;
    const ENTRY_BYTES: u64 = 56;
    let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let table = word(head, 32).ok_or_else(cut)?;
    let count = half(head, 56).ok_or_else(cut)?;
    for i in 0..u64::from(count) {
        let mut entry = [0; ENTRY_BYTES as usize];
        file.read_exact_at(&mut entry, table.saturating_add(i * ENTRY_BYTES))?;
        let (Some(tag), Some(offset), Some(len)) =
            (word(&entry, 0), word(&entry, 8), word(&entry, 32))
        else {
            return Err(cut());
        };
        if tag & 0xffff_ffff == PT_INTERP {
            let mut name = vec![0; len.min(PATH_MAX) as usize];
            file.read_exact_at(&mut name, offset)?;
            name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn executable(path: &Path) -> bool {
    let Ok(c) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: plain call on a NUL-terminated string.
    unsafe { libc::access(c.as_ptr(), libc::X_OK) == 0 }
}
