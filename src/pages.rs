//! Manual pages and shell completions, made from the command line's own definition, so that they cannot say
//! something else than `--help`.

use anyhow::Context as _;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// What `geryon run --help` leaves to the manual: sections behind those that are made from the options.
const RUN_SECTIONS: &str = include_str!("pages/run.roff");
/// The page that they are for.
const RUN_PAGE: &str = "geryon-run";
/// The centre of each page's head.
const MANUAL: &str = "Geryon";

/// What was typed for `completions`.
#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell that is to read them.
    #[arg(value_enum)]
    shell: Shell,
}

/// What was typed for `man`.
#[derive(clap::Args)]
pub struct ManArgs {
    /// An existing folder, for example ~/.local/share/man/man1.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Print the completions.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut command = visible(&crate::Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "geryon", &mut script);
    stdout().write_all(&script).context("cannot print")
}

/// Write a page for `geryon` and one for each of its subcommands.
pub fn man(args: &ManArgs) -> anyhow::Result<()> {
    let mut command = crate::Cli::command().disable_help_subcommand(true);
    command.build();
    let shown = |c: &&Command| !c.is_hide_set();
    for sub in command.get_subcommands().filter(shown) {
        page(sub, &args.folder)?;
    }
    page(&command, &args.folder)
}

fn page(command: &Command, folder: &Path) -> anyhow::Result<()> {
    // (clap gives subcommands no version of their own, and the page's foot names the command with it.)
    let man = Man::new(command.clone())
        .manual(MANUAL)
        .source(format!("geryon {}", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    text.extend(synopsis(command));
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.get_subcommands().any(|c| !c.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    if command.get_display_name() == Some(RUN_PAGE) {
        text.extend_from_slice(RUN_SECTIONS.as_bytes());
    }
    let path = folder.join(man.get_filename());
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// As `--help` has it. (clap_mangen's names options without their values, and a list as one word.)
fn synopsis(command: &Command) -> Vec<u8> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    for line in usage.lines() {
        roff.text([roman(line.trim())]).control("br", []);
    }
    roff.render().into_bytes()
}

/// The command without what is hidden, which completions would offer.
fn visible(command: &Command) -> Command {
    let mut out = Command::new(command.get_name().to_owned());
    if let Some(about) = command.get_about() {
        out = out.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        out = out.version(version.to_owned());
    }
    let arguments = command.get_arguments().filter(|a| !a.is_hide_set());
    let commands = command.get_subcommands().filter(|c| !c.is_hide_set());
    out.args(arguments.cloned())
        .subcommands(commands.map(visible))
}
