//! `geryon ctl`: asks a run for something while it goes on.

use anyhow::Result;
use clap::Subcommand;
use geryon_monitor::{Command, ask};

/// `geryon ctl`
#[derive(clap::Args)]
pub struct Args {
    /// The run: the id of its `geryon run`, as `geryon ps` lists it.
    pid: i32,
    #[command(subcommand)]
    request: Request,
}

#[derive(Clone, Copy, Subcommand)]
enum Request {
    /// Take out a replica and make it anew, as when it is lost; if it leads, another one takes over.
    Replace {
        /// Counted from 1, as in messages.
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        replica: u32,
    },
    /// Take out a replica for good.
    Drop {
        /// Counted from 1, as in messages.
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        replica: u32,
    },
    /// Make all replicas anew that were taken out for good.
    Add,
    /// Go over from --order clocks to serial order: one thread of a replica runs at a time from then on. All
    /// other replicas are made anew from the leader.
    Serial,
    /// Make no checkpoints until they are resumed.
    PauseCheckpoints,
    /// Make checkpoints again.
    ResumeCheckpoints,
}

/// Asks, and prints what the run says.
///
/// # Errors
/// When there is no such run, or it does not do that.
pub fn main(args: &Args) -> Result<()> {
    let command = match args.request {
        Request::Replace { replica } => Command::Replace(replica),
        Request::Drop { replica } => Command::Drop(replica),
        Request::Add => Command::Add,
        Request::Serial => Command::Serial,
        Request::PauseCheckpoints => Command::PauseCheckpoints,
        Request::ResumeCheckpoints => Command::ResumeCheckpoints,
    };
    println!("{}", ask(args.pid, command)?);
    Ok(())
}
