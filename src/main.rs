//! The command line of Geryon.

mod cc;
mod ctl;
mod discover;
mod doctor;
mod inject;
mod pages;
mod program;
mod ps;
mod run;
mod scan;
mod sites;
mod streams;
mod syscalls;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Geryon's own failures end with this status, as those of `env` and `timeout` do.
pub const OWN_FAILURE: u8 = 125;
/// Exit status for what was typed wrongly.
pub const USAGE: u8 = 2;

/// Runs N replicas of one unmodified multithreaded program: the same input, the leader's thread
/// order in the followers, and only confirmed output leaves.
#[derive(Parser)]
#[command(name = "geryon", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program as replicas.
    Run(run::Args),
    /// Print how each system call is treated.
    Syscalls {
        /// A call's name or number.
        name: Option<String>,
        /// Count what is supported, partly supported and refused.
        #[arg(long, conflicts_with = "name")]
        summary: bool,
        /// Print the page docs/syscalls.md.
        #[arg(long, conflicts_with_all = ["name", "summary"])]
        markdown: bool,
    },
    /// List runs, their replicas and threads.
    Ps(ps::Args),
    /// Show runs as they go on: what their threads do, how much they log, how far followers are behind.
    Top(ps::top::Args),
    /// Print what `ps` and `top` show in the text format of Prometheus, or serve it.
    Metrics(ps::metrics::Args),
    /// Write what the threads of a run do in a window of time, as a trace for Perfetto or Chrome.
    Trace(ps::trace::Args),
    /// Ask a run for something while it goes on: replace a replica, go on without one, bring it back.
    Ctl(ctl::Args),
    /// Tell what would be rewritten in programs and libraries: system calls, atomic instructions, places that wait.
    Scan(scan::Args),
    /// Find where the threads of a program race, for `run --order clocks` to order it.
    Discover(discover::Args),
    /// What is known of places at which threads race, by builds of programs and libraries.
    Sites(sites::Args),
    /// Compile a program so that Geryon knows the order of all its atomic operations: `geryon cc -- gcc main.c`.
    Cc(cc::Args),
    /// Tell whether this machine allows what Geryon needs.
    Doctor,
    /// Measure: native, N uncoordinated copies, and Geryon, interleaved.
    Bench(geryon_bench::Options),
    /// Inject faults into replicas, trial by trial, and tell what came of them.
    Inject(inject::Args),
    /// Tables of campaigns that `inject` has run.
    Campaigns(inject::tables::Args),
    /// Print completions for a shell: bash, zsh, fish, elvish or powershell.
    Completions(pages::CompletionsArgs),
    /// Write the manual pages into a folder.
    Man(pages::ManArgs),
    /// One trial without Geryon: run a program under ptrace and inject a fault (`inject` uses it).
    #[command(hide = true)]
    InjectBare(inject::bare::Args),
    /// One of the programs that GCC runs (`cc` uses it).
    #[command(hide = true)]
    CcStep(cc::StepArgs),
}

fn main() -> ExitCode {
    // clap prints usage errors itself and exits with 2.
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Run(args) => return run::main(args),
        Command::Syscalls { markdown: true, .. } => {
            print!("{}", syscalls::markdown());
            Ok(ExitCode::SUCCESS)
        }
        Command::Syscalls { name, summary, .. } => {
            syscalls::run(name.as_deref(), summary).map(|()| ExitCode::SUCCESS)
        }
        Command::Ps(args) => ps::main(&args).map(|()| ExitCode::SUCCESS),
        Command::Top(args) => ps::top::main(&args).map(|()| ExitCode::SUCCESS),
        Command::Metrics(args) => ps::metrics::main(&args).map(|()| ExitCode::SUCCESS),
        Command::Trace(args) => ps::trace::main(&args).map(|()| ExitCode::SUCCESS),
        Command::Ctl(args) => ctl::main(&args).map(|()| ExitCode::SUCCESS),
        Command::Scan(args) => scan::main(&args),
        Command::Discover(args) => discover::main(&args),
        Command::Sites(args) => sites::main(&args),
        Command::Cc(args) => cc::main(&args),
        Command::CcStep(args) => cc::step(&args),
        Command::Doctor => doctor::run().map(|good| ExitCode::from(u8::from(!good))),
        Command::Bench(options) => geryon_bench::run(options).map(|()| ExitCode::SUCCESS),
        Command::Inject(args) => inject::main(args),
        Command::Campaigns(args) => inject::tables::main(&args),
        Command::Completions(args) => pages::completions(&args).map(|()| ExitCode::SUCCESS),
        Command::Man(args) => pages::man(&args).map(|()| ExitCode::SUCCESS),
        Command::InjectBare(args) => inject::bare::main(args),
    };
    result.unwrap_or_else(|e| {
        eprintln!("geryon: {e:#}");
        ExitCode::from(OWN_FAILURE)
    })
}

/// The program and its arguments in the command line of a `geryon run`, if it is one.
fn program_of(words: &[String]) -> Option<Vec<String>> {
    match Cli::try_parse_from(words).ok()?.command {
        Command::Run(args) => Some(args.program()),
        _ => None,
    }
}
