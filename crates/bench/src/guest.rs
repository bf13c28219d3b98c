//! The small C programs of the bench: embedded here, compiled when they are used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

const HEADER: &str = include_str!("guests/bench.h");

/// Name and source of every guest.
pub const SOURCES: &[(&str, &str)] = &[
    ("syscall", include_str!("guests/syscall.c")),
    ("io", include_str!("guests/io.c")),
    ("lock", include_str!("guests/lock.c")),
    ("uncontended", include_str!("guests/uncontended.c")),
    ("thread", include_str!("guests/thread.c")),
    ("compute", include_str!("guests/compute.c")),
    ("recovery", include_str!("guests/recovery.c")),
];

/// The compiler, and the packages of Debian that make it work.
pub const COMPILER: &str = "gcc";
/// See [`COMPILER`].
pub const COMPILER_PACKAGES: &str = "gcc libc6-dev";

/// Compiles a guest into `directory`, if that was not done before.
pub fn compile(name: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    let (_, source) = SOURCES
        .iter()
        .find(|(known, _)| *known == name)
        .with_context(|| format!("there is no guest {name}"))?;
    let program = directory.join(format!("guest-{name}"));
    if program.exists() {
        return Ok(program);
    }
    let file = directory.join(format!("{name}.c"));
    fs::write(directory.join("bench.h"), HEADER)?;
    fs::write(&file, source)?;
    let output = Command::new(COMPILER)
        .args([
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-o",
        ])
        .arg(&program)
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {COMPILER}"))?;
    if !output.status.success() {
        bail!(
            "{COMPILER} refuses {name}.c: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(program)
}
