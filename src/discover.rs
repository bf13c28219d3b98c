//! `geryon discover`: where the threads of a program race, as a detector of races sees it run once.

mod mapped;

use crate::program;
use crate::sites::{not_ordered, put};
use anyhow::{Context, Result, bail};
use geryon_patch::{Asked, SiteKind, asked_at};
use geryon_sites::helgrind::{Access, Race, races};
use geryon_sites::{Kind, Module, Site, build_id};
use geryon_tracee::{Pid, outlive};
use mapped::{Mapped, place, until_end, vaddr};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What valgrind is to do: each process writes a report of its own. (Where it unrolls loops it names jumps, and places in
/// other rounds, as what loads or stores.)
const HELGRIND: [&str; 7] = [
    "--tool=helgrind",
    "--history-level=full",
    "--error-limit=no",
    "--fair-sched=try",
    "--trace-children=yes",
    "--vex-iropt-unroll-thresh=0",
    "--xml=yes",
];

/// `geryon discover`
#[derive(clap::Args)]
pub struct Args {
    /// Run it so many times: what races is not the same each time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Tell what was found, and keep nothing.
    #[arg(long)]
    dry_run: bool,
    /// The program and its arguments. It runs under valgrind, some 50 times slower than alone, and does what it does:
    /// give it little to do. All processes that come from it are looked at, until the last of them has ended. What does not end
    /// by itself, a server say, is ended by Ctrl-C or SIGTERM: what was found until then is kept.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// What was found, in all runs.
#[derive(Default)]
struct Found {
    /// So many have left a report.
    processes: usize,
    /// Places by file.
    places: BTreeMap<PathBuf, BTreeSet<Site>>,
    /// In the C library and the dynamic linker, whose functions are ordered as such.
    in_c_library: usize,
    /// Instructions of other kinds: several words at once, say.
    other: BTreeMap<(PathBuf, u64), String>,
    /// In code that is in no file.
    nowhere: usize,
}

/// Runs the program, and keeps what was found.
///
/// # Errors
/// There is no valgrind, it could not run the program, or what was found cannot be kept.
pub fn main(args: &Args) -> Result<ExitCode> {
    let program = match program::find(&args.command[0]) {
        Ok(program) => program,
        Err(e) => {
            eprintln!("geryon: {}", e.message);
            return Ok(ExitCode::from(e.status));
        }
    };
    if program::find(OsStr::new("valgrind")).is_err() {
        bail!("valgrind is not installed, which finds races\n  try: apt-get install valgrind");
    }
    let folder = std::env::temp_dir().join(format!("geryon-discover-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    eprintln!(
        "geryon: {} runs under valgrind's Helgrind: one thread at a time, and some 20 to 200 times as long as natively",
        program.display()
    );
    let mut found = Found::default();
    let mut number = 0;
    let done = (0..args.runs).try_for_each(|run_of| {
        number += run(&program, args, &folder.join(run_of.to_string()), &mut found)?;
        anyhow::Ok(())
    });
    // (What is left there is of use to nobody.)
    let _ = std::fs::remove_dir_all(&folder);
    done?;
    tell(&found, number, args)
}

/// One run; how many races it had.
fn run(program: &Path, args: &Args, folder: &Path, found: &mut Found) -> Result<usize> {
    std::fs::create_dir(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut xml = OsString::from("--xml-file=");
    xml.push(folder.join("%p"));
    let child = Command::new("valgrind")
        .args(HELGRIND)
        .args([&xml, OsStr::new("--"), program.as_os_str()])
        .args(&args.command[1..])
        .spawn()
        .context("cannot start valgrind")?;
    outlive(child.id() as Pid).context("cannot handle signals")?;
    let report = |pid: i32| folder.join(pid.to_string());
    let ended = until_end(&child, |pid| report(pid).exists())?;
    let mut number = 0;
    for (pid, mapped) in &ended.mapped {
        let text = std::fs::read(report(*pid)).context("valgrind has written no report")?;
        let all = races(&String::from_utf8_lossy(&text))
            .with_context(|| format!("valgrind's report of process {pid} is none"))?;
        for race in &all {
            for access in &race.accesses {
                found.take(race, access, mapped);
            }
        }
        number += all.len();
    }
    if ended.mapped.is_empty() {
        bail!(
            "the program ended with status {}, and valgrind has written no report",
            ended.status
        );
    }
    if ended.status != 0 {
        eprintln!("geryon: the program ended with status {}", ended.status);
    }
    found.processes += ended.mapped.len();
    Ok(number)
}

impl Found {
    fn take(&mut self, race: &Race, access: &Access, mapped: &[Mapped]) {
        let Some((file, offset)) = place(mapped, access.at) else {
            self.nowhere += 1;
            return;
        };
        if is_c_library(file) {
            self.in_c_library += 1;
            return;
        }
        let Some(vaddr) = vaddr(file, offset) else {
            self.nowhere += 1;
            return;
        };
        let elf = std::fs::read(file).unwrap_or_default();
        let kind = match asked_at(&elf, vaddr) {
            Asked::Orderable(SiteKind::Load) => Kind::Load,
            Asked::Orderable(SiteKind::Store) => Kind::Store,
            Asked::Orderable(_) => Kind::Update,
            Asked::Ordered => return,
            Asked::Other => {
                let what = self.other.entry((file.into(), vaddr));
                what.or_insert_with(|| note(race, access));
                return;
            }
        };
        let site = Site {
            vaddr,
            kind,
            note: note(race, access),
        };
        let of = self.places.entry(file.into()).or_default();
        if of.iter().all(|s| s.vaddr != vaddr) {
            of.insert(site);
        }
    }
}

/// Where a place is, and what lies where it loads or stores.
fn note(race: &Race, access: &Access) -> String {
    let parts = [&access.function, &access.line, &race.word];
    let known: Vec<&str> = parts
        .into_iter()
        .map(String::as_str)
        .filter(|p| !p.is_empty())
        .collect();
    known.join(", ")
}

/// Is it a file whose functions are ordered as such, or valgrind's own?
fn is_c_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    ["libc.so.", "libpthread.so.", "ld-linux-", "vgpreload_"]
        .iter()
        .any(|n| name.starts_with(n))
}

fn tell(found: &Found, races: usize, args: &Args) -> Result<ExitCode> {
    let several = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    eprintln!(
        "geryon: {} in {}, {}",
        several(races, "race"),
        several(args.runs as usize, "run"),
        match found.processes {
            1 => "1 process".into(),
            n => format!("{n} processes"),
        }
    );
    for ((file, vaddr), what) in &found.other {
        eprintln!("  cannot be ordered: {} {vaddr:#x}  {what}", file.display());
    }
    for (count, what) in [
        (
            found.in_c_library,
            "in the C library, whose functions are ordered as such",
        ),
        (
            found.nowhere,
            "in code that is in no file, which cannot be ordered",
        ),
    ] {
        if count > 0 {
            eprintln!("  {count} accesses {what}");
        }
    }
    for (file, sites) in &found.places {
        let sites: Vec<Site> = sites.iter().cloned().collect();
        let asked: Vec<u64> = sites.iter().map(|s| s.vaddr).collect();
        for (at, why) in not_ordered(file, &asked)? {
            eprintln!("  cannot be ordered: {} {at:#x}, {why}", file.display());
        }
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(build) = build_id(file) else {
            eprintln!(
                "  {}: {} places, not kept, since it has no build-id\n  try: link it with -Wl,--build-id",
                file.display(),
                sites.len()
            );
            continue;
        };
        let module = Module { build, name, sites };
        match args.dry_run {
            true => print!("{module}"),
            false => eprintln!("  {}", put(module)?),
        }
    }
    if races > 0 && !args.dry_run {
        eprintln!(
            "geryon: `geryon run --order clocks` orders these places from now on (geryon sites list, remove)"
        );
    }
    Ok(ExitCode::SUCCESS)
}
