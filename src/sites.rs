//! `geryon sites`: what is known of places at which threads race.

use crate::OWN_FAILURE;
use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use geryon_abi::hooks::HOOKS;
use geryon_patch::{Options, Plan};
use geryon_sites::{BuildId, Kind, Known, Module, build_id, folders, forget, keep, parse};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `geryon sites`
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the builds of which places are known.
    List {
        /// Each place, too, as it stands in its file.
        #[arg(long, short)]
        verbose: bool,
    },
    /// Tell whether all files can be used, and whether the places of these programs can be ordered.
    Check {
        /// Programs and libraries.
        files: Vec<PathBuf>,
    },
    /// Take in a file of places, from another machine or by hand.
    Add {
        /// Lines "build-id ID NAME", each followed by lines "0xADDRESS load|store|update".
        file: PathBuf,
    },
    /// Forget the places of a build.
    Remove {
        /// A build-id, or the first digits of one; a program or library; or a name that `list` shows.
        build: String,
    },
}

/// Does it.
///
/// # Errors
/// Files that cannot be used.
pub fn main(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::List { verbose } => list(*verbose)?,
        What::Check { files } => return check(files),
        What::Add { file } => add(file)?,
        What::Remove { build } => remove(build)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder into which new files go.
///
/// # Errors
/// There is none.
pub fn folder() -> Result<PathBuf> {
    folders::own().ok_or_else(|| {
        anyhow!("there is no folder for them: HOME is not set\n  try: GERYON_SITES=FOLDER")
    })
}

fn count(module: &Module, kind: Kind) -> usize {
    module.sites.iter().filter(|s| s.kind == kind).count()
}

/// Places of a module, counted.
pub fn counts(module: &Module) -> String {
    format!(
        "{} loads, {} stores, {} updates",
        count(module, Kind::Load),
        count(module, Kind::Store),
        count(module, Kind::Update)
    )
}

fn list(verbose: bool) -> Result<()> {
    let known = Known::read()?;
    for (file, modules) in &known.files {
        for m in modules {
            match verbose {
                true => print!("# {}\n{m}", file.display()),
                false => println!("{}  {}  {}  {}", m.build, m.name, counts(m), file.display()),
            }
        }
    }
    Ok(())
}

fn check(programs: &[PathBuf]) -> Result<ExitCode> {
    let mut known = Known::built_in();
    let mut code = ExitCode::SUCCESS;
    for folder in folders::all() {
        // (Each folder's first damaged file is named.)
        if let Err(e) = known.read_folder(&folder) {
            eprintln!("geryon: {e}");
            code = ExitCode::from(OWN_FAILURE);
        }
    }
    let builds: usize = known.files.iter().map(|f| f.1.len()).sum();
    println!("{} files, {builds} builds", known.files.len());
    let by_build = known.by_build();
    for program in programs {
        let build = build_id(program)
            .with_context(|| format!("{}: no ELF file with a build-id", program.display()))?;
        let asked = by_build.get(&build).map_or(&[][..], Vec::as_slice);
        let left = not_ordered(program, asked)?;
        println!(
            "{}: {} places, {} of them ordered",
            program.display(),
            asked.len(),
            asked.len() - left.len()
        );
        left.iter()
            .for_each(|(at, why)| println!("  {at:#x} is not: {why}"));
    }
    Ok(code)
}

/// Which of these places in a file are not ordered, and why.
///
/// # Errors
/// A file that cannot be scanned.
pub fn not_ordered(file: &Path, asked: &[u64]) -> Result<Vec<(u64, String)>> {
    let bytes =
        std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let options = Options {
        entries: HOOKS,
        rmw: true,
        waits: false,
        loads: true,
        asked,
    };
    let plan = Plan::new(&bytes, &options)
        .with_context(|| format!("{} cannot be scanned", file.display()))?;
    let why = |at: &u64| {
        let left = plan.unpatched.iter().find(|u| u.vaddr == *at);
        left.map_or("no load, store or update that can be", |u| &u.reason)
            .to_owned()
    };
    let left = asked.iter().filter(|at| plan.site_at(**at).is_none());
    Ok(left.map(|at| (*at, why(at))).collect())
}

fn add(file: &Path) -> Result<()> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("{shown} cannot be read"))?;
    let modules = parse(&text).map_err(|e| anyhow!("{shown}, {e}"))?;
    if modules.is_empty() {
        bail!("{shown}: no line 'build-id ID NAME'");
    }
    for module in modules {
        println!("{}", put(module)?);
    }
    Ok(())
}

/// Keeps a module's places; what is to be said of it.
///
/// # Errors
/// A file that cannot be written.
pub fn put(module: Module) -> Result<String> {
    let (name, counted) = (module.name.clone(), counts(&module));
    let (file, added) = keep(&folder()?, module)?;
    let file = file.display();
    Ok(format!(
        "{name}: {counted}; {added} of them new, kept in {file}"
    ))
}

fn remove(build: &str) -> Result<()> {
    let known = Known::read()?;
    let of_file = build_id(Path::new(build));
    let is_meant = |m: &Module| match &of_file {
        Some(id) => m.build == *id,
        None => m.name == build || m.build.to_string().starts_with(build),
    };
    let modules = known.files.iter().flat_map(|f| &f.1);
    let mut builds: Vec<BuildId> = modules
        .filter(|m| is_meant(m))
        .map(|m| m.build.clone())
        .collect();
    builds.sort_unstable();
    builds.dedup();
    match builds.as_slice() {
        [] => bail!("'{build}' is no build that is known\n  try: geryon sites list"),
        [one] => {
            let had = forget(&folder()?, one, &known.files)?;
            if had.is_empty() {
                bail!(
                    "{one} is built in, or stands in files of the machine, which are not changed"
                );
            }
            had.iter()
                .for_each(|f| println!("{one}: forgotten, was in {}", f.display()));
            Ok(())
        }
        several => bail!(
            "'{build}' may be {} builds\n  try: one of the build-ids that geryon sites list shows",
            several.len()
        ),
    }
}
