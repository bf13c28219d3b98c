//! `geryon run`: flags to options, outcome to exit status.

use crate::{OWN_FAILURE, USAGE, program, streams};
use clap::{ValueEnum, ValueHint};
use geryon_abi::layout::place::STACK_BYTES;
use geryon_abi::layout::{MAX_REPLICAS, sabotage};
use geryon_fault::Fault;
use geryon_monitor::{
    Often, OnDivergence, OnRace, Options, Order, Outcome, Replacements, Rules, Sabotage,
    SharedFiles, Variants, Verify, cores,
};
use geryon_sites::Known;
use geryon_tracee::points::FailAt;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What was typed.
#[derive(clap::Args)]
pub struct Args {
    /// Number of replicas. One: no redundancy, for comparison. Two: differences are detected.
    /// Three or more: the faulty replica is named and left out. (3 if not said; with --variant one more than are given.)
    #[arg(short = 'n', long = "replicas", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=MAX_REPLICAS as i64))]
    replicas: Option<u32>,
    /// What has to be confirmed by the replicas before it happens.
    #[arg(long, value_enum, default_value_t = VerifyFlag::Majority)]
    verify: VerifyFlag,
    /// How the leader's thread order is repeated in the followers.
    #[arg(long, value_enum, default_value_t = OrderFlag::Auto, env = "GERYON_ORDER", hide_env = true)]
    order: OrderFlag,
    /// What follows where threads run in parallel (--order clocks) and the program races: its threads meet by loads and
    /// stores that Geryon does not order, and replicas come to differ without a fault.
    #[arg(long, value_enum, default_value_t = OnRaceFlag::Serial, value_name = "POLICY")]
    on_race: OnRaceFlag,
    /// What follows when replicas differ: `replace` if not said, with variants `stop`. (Two that differ are
    /// stopped, but for `leader`.)
    #[arg(long, value_enum, value_name = "POLICY")]
    on_divergence: Option<OnDivergenceFlag>,
    /// Let replicas differ on purpose, so that an exploit that needs an address works in one of them at most, and is
    /// stopped before it has an effect.
    #[arg(long, value_enum, default_value_t = VariantsFlag::None, value_name = "LEVEL", env = "GERYON_VARIANTS", hide_env = true)]
    variants: VariantsFlag,
    /// What a replica runs instead of PROGRAM, with the same arguments and input: another release or another build of it. The
    /// first one is the second replica's, and so on; there are as many replicas as programs.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    variant: Vec<OsString>,
    /// What such programs may say differently, by rules in a file: `same "the leader's text" "the follower's"`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "variant")]
    tolerate: Option<PathBuf>,
    /// With two replicas: every so many seconds copies of both are put to sleep. When the two differ,
    /// the copies replay what has happened since and decide who is right, and the run goes on. With more and
    /// --order clocks copies of followers, which tell a race from a fault.
    #[arg(long, value_name = "SECONDS", value_parser = parse_checkpoint)]
    checkpoint: Option<Duration>,
    /// Replicas may be made anew so often within so many seconds (3600 if not said). The next one
    /// that is lost is given up, and the run goes on with what is left.
    #[arg(long, default_value_t = Replacements::USUAL, value_name = "N[/SECONDS]")]
    max_replacements: Replacements,
    /// Give a copy that replaces a replica memory of its own at once, in the background. Else it
    /// shares each page with its source until one of the two writes to it.
    #[arg(long)]
    eager_copy: bool,
    /// Which files the program may map to be shared and writable; others are refused (ENODEV). What is stored there is
    /// compared before the program synchronises or unmaps the file, or ends. With --order clocks a lost leader stops
    /// the run as long as one is mapped, and a lost follower is not replaced.
    #[arg(long, value_enum, default_value_t = SharedFilesFlag::Memory, env = "GERYON_SHARED_FILES", hide_env = true)]
    shared_files: SharedFilesFlag,
    /// Write the report of a divergence to this file, too, as JSON.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    /// Write what happens in the run (faults, replacements, the end) to this file, as JSON lines.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    journal: Option<PathBuf>,
    /// Make a fault: replica=R,thread=T,when=delay:US,target=gpr:rbx:13 (`inject` uses it).
    #[arg(long, hide = true, value_name = "SPEC")]
    fault: Option<Fault>,
    /// Do not rewrite code: every call traps (slow; for comparison and for finding faults).
    #[arg(long, hide = true)]
    no_patch: bool,
    /// Make one replica misbehave at an output call: REPLICA:KIND:N; or at each from the N-th on,
    /// on one core, and so many of its copies, too: REPLICA:KIND:N:CORE:TIMES (for tests).
    #[arg(long, hide = true, value_parser = parse_sabotage)]
    sabotage: Vec<Sabotage>,
    /// Have something go wrong at the N-th passing of a place: POINT[:N[:REPLICA]] (for tests).
    #[arg(long, hide = true, value_name = "POINT")]
    fail_at: Vec<FailAt>,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM",
          value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

impl Args {
    fn replicas(&self) -> u32 {
        /// Where nothing is said.
        const USUAL: u32 = 3;
        match self.variant.len() as u32 {
            0 => self.replicas.unwrap_or(USUAL),
            programs => self.replicas.unwrap_or(1 + programs),
        }
    }

    /// The program and its arguments, for people.
    pub fn program(&self) -> Vec<String> {
        let words = self.command.iter();
        words.map(|w| w.to_string_lossy().into_owned()).collect()
    }
}

/// `--variants`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VariantsFlag {
    /// They are copies of each other.
    None,
    /// Programs and libraries lie at other addresses in each.
    Code,
    /// Stack, heap and mappings, too.
    Data,
    /// The same, and other values guard their return addresses and jump buffers (canary, pointer guard).
    Full,
}

/// `--on-divergence`.
#[derive(Clone, Copy, ValueEnum)]
enum OnDivergenceFlag {
    /// The outvoted replica is replaced by a copy of a healthy one, while the program goes on.
    Replace,
    /// The same; and where no majority says who is wrong, the leader is believed, right or wrong.
    Leader,
    /// It is left out, and the others go on.
    Drop,
    /// The run stops with a report.
    Stop,
}

/// `--on-race`.
#[derive(Clone, Copy, ValueEnum)]
enum OnRaceFlag {
    /// Who has gone astray is put right as often as it happens: by replaying the log (--checkpoint), or as a copy of another
    /// one. Where that cannot be the run stops.
    Retry,
    /// The same. But where that cannot be, and it is proved to be a race, or when it has happened twice within a
    /// minute, all go on from the leader's state in serial order.
    Serial,
    /// The run stops at the first one.
    Stop,
}

/// `--order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SharedFilesFlag {
    /// None.
    Refuse,
    /// Those in memory (POSIX shared memory and semaphores, memfd_create), unless it is with --order clocks.
    Memory,
    /// All.
    Map,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OrderFlag {
    /// `serial`; and with two cores for each replica, `clocks` from the second thread on, until the program does what `clocks`
    /// does not repeat (it makes code or processes, shares memory, races)
    Auto,
    /// Locks and atomics carry clocks; the threads of a replica run in parallel. For programs whose
    /// threads synchronise through pthread functions and atomic instructions only.
    Clocks,
    /// One thread of a replica runs at a time: repeats any race exactly.
    Serial,
}

/// `--verify`.
#[derive(Clone, Copy, ValueEnum)]
enum VerifyFlag {
    /// Outputs are confirmed before they happen: what is written or sent by more than half of the
    /// replicas, others by all. Inputs run ahead.
    Majority,
    /// The same, and all confirm each.
    Output,
    /// Every call but those private to a process is a rendezvous.
    All,
    /// The leader runs ahead; differences are found after the fact.
    Async,
}

/// Seconds between two checkpoints.
fn parse_checkpoint(text: &str) -> Result<Duration, String> {
    const LEAST: f64 = 0.01;
    const MOST: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(s) if (LEAST..=MOST).contains(&s) => Ok(Duration::from_secs_f64(s)),
        _ => Err(format!("SECONDS is a number from {LEAST} to {MOST}")),
    }
}

/// With more there are no seats left for copies.
const CHECKPOINT_AT_MOST: u32 = 10;

/// What does not go together with `--checkpoint`.
fn checkpoint_conflict(args: &Args) -> Option<&'static str> {
    args.checkpoint?;
    if args.replicas() == 1 {
        Some("--checkpoint is for two replicas: one has nobody to differ from\n  try: -n 2")
    } else if args.replicas() > 2 && !matches!(args.order, OrderFlag::Clocks) {
        Some(
            "--checkpoint is for two replicas, or for more with --order clocks: in serial order three and more decide by themselves who is right\n  try: -n 2, or no --checkpoint",
        )
    } else if args.replicas() > CHECKPOINT_AT_MOST {
        Some("--checkpoint is for ten replicas at most: copies of them need room\n  try: fewer")
    } else if !matches!(args.on_divergence, None | Some(OnDivergenceFlag::Replace)) {
        Some(
            "--checkpoint is for --on-divergence replace, and what leader, drop and stop say does without it\n  try: one of the two options alone",
        )
    } else {
        None
    }
}

fn stack_limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack);
    limit.current.unwrap_or(u64::MAX)
}

/// What does not go together with `--variants`.
fn variants_conflict(args: &Args) -> Option<&'static str> {
    if args.variants == VariantsFlag::None {
        None
    } else if args.replicas() == 1 {
        Some("--variants is for two replicas and more: one has nobody to differ from\n  try: -n 2")
    } else if !matches!(args.on_divergence, None | Some(OnDivergenceFlag::Stop)) {
        Some(
            "with --variants a difference stops the run: a replica of one layout cannot take over from, or be copied for, one of another\n  try: without --on-divergence",
        )
    } else if args.checkpoint.is_some() {
        Some("--checkpoint is for replicas that are alike\n  try: without --variants")
    } else if args.shared_files == SharedFilesFlag::Map {
        Some(
            "--shared-files map is for replicas that are alike: what is stored in a mapped file is compared as it is\n  try: without --variants",
        )
    } else if stack_limit() > STACK_BYTES {
        Some(
            "--variants is for programs whose stack is limited to 100 MiB: with more room for it the kernel lays out memory otherwise\n  try: ulimit -s 8192",
        )
    } else if args.no_patch {
        Some("--no-patch is for replicas that are alike\n  try: without --variants")
    } else {
        None
    }
}

/// What does not go together with `--variant`.
fn different_conflict(args: &Args) -> Option<String> {
    let programs = args.variant.len() as u32;
    if programs == 0 {
        None
    } else if args.replicas() != 1 + programs {
        Some(format!(
            "--variant is given {programs} times, and so there are {} replicas, one of which runs PROGRAM\n  try: without -n, or one --variant FILE for each of the others",
            1 + programs
        ))
    } else if 1 + programs > MAX_REPLICAS as u32 {
        Some(format!(
            "there are {MAX_REPLICAS} replicas at most\n  try: fewer --variant FILE"
        ))
    } else if args.order == OrderFlag::Clocks {
        Some("--variant is for serial order: different programs have different locks and atomic instructions\n  try: without --order".into())
    } else if args.variants != VariantsFlag::None {
        Some("--variants lays out one program in different ways, and --variant is for different programs\n  try: one of the two alone".into())
    } else if !matches!(
        args.on_divergence,
        None | Some(OnDivergenceFlag::Stop | OnDivergenceFlag::Leader)
    ) {
        Some("with --variant a difference stops the run: a replica of one program cannot take over from, or be copied for, one of another; or the leader is believed, and goes on without the other one\n  try: without --on-divergence, or --on-divergence leader".into())
    } else if args.checkpoint.is_some() {
        Some("--checkpoint is for replicas that are alike\n  try: without --variant".into())
    } else if args.shared_files == SharedFilesFlag::Map {
        Some("--shared-files map is for replicas that are alike: what is stored in a mapped file is compared as it is\n  try: without --variant".into())
    } else {
        None
    }
}

fn parse_sabotage(text: &str) -> Result<Sabotage, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (replica, what, at, core) = match parts[..] {
        [replica, what, at] => (replica, what, at, None),
        [replica, what, at, core, times] => (replica, what, at, Some((core, times))),
        _ => return Err("expected REPLICA:KIND:N or REPLICA:KIND:N:CORE:TIMES".into()),
    };
    let what = match what {
        "argument" => sabotage::ARGUMENT,
        "content" => sabotage::CONTENT,
        "order" => sabotage::ORDER,
        "extra" => sabotage::EXTRA,
        "crash" => sabotage::CRASH,
        "hang" => sabotage::HANG,
        _ => return Err("KIND is argument, content, order, extra, crash or hang".into()),
    };
    let replica = replica
        .parse()
        .map_err(|_| "REPLICA is a number, counted from 0")?;
    let at = at.parse().map_err(|_| "N is a number, counted from 1")?;
    let number = |n: &str| n.parse().map_err(|_| "CORE (or any) and TIMES are numbers");
    let (often, times) = match core {
        None => (Often::Once, 1),
        Some(("any", times)) => (Often::Always, number(times)?),
        Some((core, times)) => (Often::OnCore(number(core)?), number(times)?),
    };
    Ok(Sabotage {
        replica,
        what,
        at,
        often,
        times,
    })
}

/// Run and exit as the program did.
pub fn main(args: Args) -> ExitCode {
    let why = checkpoint_conflict(&args).or_else(|| variants_conflict(&args));
    if let Some(why) = why.map(Into::into).or_else(|| different_conflict(&args)) {
        eprintln!("geryon: {why}");
        return ExitCode::from(USAGE);
    }
    let found = program::find(&args.command[0]).and_then(|program| {
        let others = args.variant.iter().map(|v| program::find(v));
        Ok((program, others.collect::<Result<Vec<_>, _>>()?))
    });
    let (program, others) = match found {
        Ok(found) => found,
        Err(e) => {
            eprintln!("geryon: {}", e.message);
            return ExitCode::from(e.status);
        }
    };
    if let Some(e) = args.report.as_deref().and_then(unwritable) {
        eprintln!("geryon: {e}");
        return ExitCode::from(OWN_FAILURE);
    }
    let known = match args.order {
        OrderFlag::Clocks => Known::read().map(|known| known.by_build()),
        OrderFlag::Auto if Order::Auto.ascends(args.replicas(), cores()) => {
            Known::read().map(|known| known.by_build())
        }
        // (Nothing else orders single places.)
        OrderFlag::Auto | OrderFlag::Serial => Ok(Default::default()),
    };
    let asked = match known {
        Ok(asked) => asked,
        Err(e) => {
            eprintln!("geryon: {e}\n  try: geryon sites check");
            return ExitCode::from(OWN_FAILURE);
        }
    };
    let is_alike = args.variants == VariantsFlag::None && others.is_empty();
    let tolerated = match tolerated(args.tolerate.as_deref()) {
        Ok(rules) => rules,
        Err(why) => {
            eprintln!("geryon: {why}");
            return ExitCode::from(USAGE);
        }
    };
    let options = Options {
        replicas: args.replicas(),
        program,
        args: args.command,
        verify: match args.verify {
            VerifyFlag::Majority => Verify::Majority,
            VerifyFlag::Output => Verify::Output,
            VerifyFlag::All => Verify::All,
            VerifyFlag::Async => Verify::Async,
        },
        on_race: match args.on_race {
            OnRaceFlag::Retry => OnRace::Retry,
            OnRaceFlag::Serial => OnRace::Serial,
            OnRaceFlag::Stop => OnRace::Stop,
        },
        order: match args.order {
            OrderFlag::Auto => Order::Auto,
            OrderFlag::Clocks => Order::Clocks,
            OrderFlag::Serial => Order::Serial,
        },
        variants: match args.variants {
            VariantsFlag::None => Variants::None,
            VariantsFlag::Code => Variants::Code,
            VariantsFlag::Data => Variants::Data,
            VariantsFlag::Full => Variants::Full,
        },
        on_divergence: match args.on_divergence {
            // Who differs from others that differ on purpose was attacked, as likely as not.
            None if !is_alike => OnDivergence::Stop,
            None | Some(OnDivergenceFlag::Replace) => OnDivergence::Replace,
            Some(OnDivergenceFlag::Leader) => OnDivergence::Leader,
            Some(OnDivergenceFlag::Drop) => OnDivergence::Drop,
            Some(OnDivergenceFlag::Stop) => OnDivergence::Stop,
        },
        others,
        tolerated,
        checkpoint: args.checkpoint,
        max_replacements: args.max_replacements,
        eager_copy: args.eager_copy,
        shared_files: match args.shared_files {
            SharedFilesFlag::Map => SharedFiles::Map,
            SharedFilesFlag::Memory if is_alike => SharedFiles::Memory,
            SharedFilesFlag::Memory | SharedFilesFlag::Refuse => SharedFiles::Refuse,
        },
        report: args.report,
        journal: args.journal,
        fault: args.fault,
        sabotage: args.sabotage,
        fail_at: args.fail_at,
        patch: !args.no_patch,
        asked,
        ignore_sigpipe: streams::pipe_was_ignored(),
    };
    streams::close_again_at_exec();
    match geryon_monitor::run(options) {
        Ok(Outcome::Exited(code)) => ExitCode::from(code as u8),
        Ok(Outcome::Killed(signal)) => die_of(signal),
        Ok(Outcome::Diverged) => ExitCode::from(OWN_FAILURE),
        Err(e) => {
            eprintln!("geryon: {e:#}");
            ExitCode::from(OWN_FAILURE)
        }
    }
}

/// The rules in this file.
fn tolerated(file: Option<&std::path::Path>) -> Result<Rules, String> {
    let Some(file) = file else {
        return Ok(Rules::default());
    };
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| format!("--tolerate {shown}: {e}"))?;
    text.parse().map_err(|e| format!("--tolerate {shown}, {e}"))
}

/// A report that could not be written at the end would be lost: look before starting.
fn unwritable(path: &std::path::Path) -> Option<String> {
    let existed = path.exists();
    let opened = std::fs::File::options()
        .append(true)
        .create(true)
        .open(path);
    if !existed && opened.is_ok() {
        // Nothing to report yet: leave no empty file behind.
        let _ = std::fs::remove_file(path);
    }
    opened.err().map(|e| {
        format!("cannot write the report to {}: {e}\n  try: another --report FILE, in a directory that you may write to", path.display())
    })
}

/// Die as the program did, so that a shell sees the same.
fn die_of(signal: i32) -> ExitCode {
    // SAFETY: plain calls; the process has nothing left to do.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    ExitCode::from((128 + signal) as u8)
}
