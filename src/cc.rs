//! `geryon cc`: a compiler, told to make each atomic load, store and update a call of a function whose order Geryon knows
//! (`include/geryon-atomics.c`). That is what the thread sanitizer has compilers do; without its own library.

use anyhow::{Context, bail};
use std::collections::hash_map::DefaultHasher;
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The header for authors of programs.
const HEADER: &str = include_str!("../include/geryon.h");
/// What programs call that were compiled so.
const FUNCTIONS: &str = include_str!("../include/geryon-atomics.c");

#[derive(clap::Args)]
pub struct Args {
    /// Print the header geryon.h, by which a program can say more about the order of its threads.
    #[arg(long, exclusive = true)]
    header: bool,
    /// GCC or Clang, and its arguments.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMPILER",
        required_unless_present = "header"
    )]
    command: Vec<OsString>,
}

/// One of the programs that GCC runs, with its arguments.
#[derive(clap::Args)]
pub struct StepArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the compiler in this process's place.
pub fn main(args: &Args) -> anyhow::Result<ExitCode> {
    if args.header {
        print!("{HEADER}");
        return Ok(ExitCode::SUCCESS);
    }
    let (compiler, rest) = args.command.split_first().expect("clap wants one");
    let Some((family, version)) = family(compiler) else {
        let shown = compiler.to_string_lossy();
        eprintln!("geryon: {shown} is neither GCC nor Clang, or cannot be run");
        eprintln!("  try: geryon cc -- gcc -O2 -pthread main.c -o main");
        return Ok(ExitCode::from(crate::USAGE));
    };
    let mut command = Command::new(compiler);
    match family {
        Family::Gcc => command.arg("-wrapper").arg(wrapper()?),
        Family::Clang => command.args(CLANG),
    };
    command.args(rest);
    if links(rest) {
        let functions = functions(compiler, &version).context("the functions for atomics")?;
        command.args(["-x", "none"]).arg(functions);
    }
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", compiler.to_string_lossy()))
}

/// For the compiler proper, in the midst of Clang's own arguments. Of memory that is not atomic nothing is asked.
const CLANG: [&str; 9] = [
    "-Qunused-arguments",
    "-Xclang",
    "-fsanitize=thread",
    "-mllvm",
    "-tsan-instrument-memory-accesses=0",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    "-mllvm",
    "-tsan-instrument-memintrinsics=0",
];
/// For GCC's. (It has no switch for memory that is not atomic.)
const GCC: [&str; 2] = ["-fsanitize=thread", "-U__SANITIZE_THREAD__"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Gcc,
    Clang,
}

/// What kind of a compiler it is, and what it says of itself.
fn family(compiler: &OsStr) -> Option<(Family, Vec<u8>)> {
    let said = Command::new(compiler).arg("-v").output().ok()?;
    let text = String::from_utf8_lossy(&said.stderr);
    let family = match () {
        () if text.contains("clang version") => Family::Clang,
        () if text.contains("gcc version") => Family::Gcc,
        () => return None,
    };
    Some((family, said.stderr))
}

/// By what GCC runs each of its programs: this one.
fn wrapper() -> anyhow::Result<OsString> {
    let own = std::env::current_exe().context("where geryon lies")?;
    if own.as_os_str().as_bytes().contains(&b',') {
        bail!(
            "GCC takes no wrapper with a comma in its path: {}\n  try: a copy of geryon elsewhere, or Clang",
            own.display()
        );
    }
    let mut wrapper = own.into_os_string();
    wrapper.push(",cc-step");
    Ok(wrapper)
}

/// One program that GCC runs.
pub fn step(args: &StepArgs) -> anyhow::Result<ExitCode> {
    let (program, rest) = args.command.split_first().expect("clap wants one");
    let mut command = Command::new(program);
    command.args(rest);
    if is_compiler_proper(Path::new(program)) {
        command.args(GCC);
    }
    Err(command.exec()).with_context(|| format!("cannot run {}", program.to_string_lossy()))
}

fn is_compiler_proper(program: &Path) -> bool {
    let name = program.file_name().map(OsStr::as_bytes);
    name.is_some_and(|n| n.starts_with(b"cc1"))
}

/// Does a compiler with these arguments link a program or a library?
fn links(args: &[OsString]) -> bool {
    let stops = |a: &OsString| {
        let a = a.as_bytes();
        matches!(
            a,
            b"-c" | b"-S" | b"-E" | b"-M" | b"-MM" | b"-r" | b"-fsyntax-only"
        ) || a.starts_with(b"-###")
    };
    let has_input = args.iter().enumerate().any(|(k, a)| {
        let is_value = k > 0
            && matches!(
                args[k - 1].as_bytes(),
                b"-o" | b"-x" | b"-I" | b"-L" | b"-D" | b"-include"
            );
        !is_value && !a.as_bytes().starts_with(b"-")
    });
    has_input && !args.iter().any(stops)
}

/// The object file with the functions, made by this compiler.
fn functions(compiler: &OsStr, version: &[u8]) -> anyhow::Result<PathBuf> {
    let mut h = DefaultHasher::new();
    (version, HEADER, FUNCTIONS).hash(&mut h);
    let folder = geryon_monitor::cache_folder().context(
        "no folder of this user's to keep them in\n  try: XDG_CACHE_HOME=FOLDER geryon cc -- ...",
    )?;
    let made = folder.join(format!("{:016x}.o", h.finish()));
    if made.is_file() {
        return Ok(made);
    }
    let sources = folder.join(format!("cc-{}", std::process::id()));
    std::fs::create_dir_all(&sources)
        .with_context(|| format!("cannot make {}", sources.display()))?;
    let result = make(compiler, &sources, &made);
    let _ = std::fs::remove_dir_all(&sources);
    result.map(|()| made)
}

fn make(compiler: &OsStr, sources: &Path, made: &Path) -> anyhow::Result<()> {
    std::fs::write(sources.join("geryon.h"), HEADER)?;
    let source = sources.join("geryon-atomics.c");
    std::fs::write(&source, FUNCTIONS)?;
    let object = sources.join("geryon-atomics.o");
    let mut command = Command::new(compiler);
    command.args(["-x", "c", "-O2", "-fPIC", "-c"]);
    let said = command.arg(&source).arg("-o").arg(&object).output()?;
    if !said.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&said.stderr));
    }
    std::fs::rename(&object, made)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn does_link(args: &str) -> bool {
        links(
            &args
                .split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn what_links() {
        assert!(does_link("-O2 -pthread a.c -o a"));
        assert!(does_link("-shared -o a.so a.o"));
        assert!(!does_link("-c a.c -o a.o"));
        assert!(!does_link("-E a.c"));
        assert!(!does_link("--version"));
        assert!(!does_link("-dumpmachine -o a"));
    }

    #[test]
    fn who_compiles() {
        assert!(is_compiler_proper(Path::new(
            "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus"
        )));
        assert!(!is_compiler_proper(Path::new(
            "/usr/lib/gcc/x86_64-linux-gnu/12/collect2"
        )));
    }
}
