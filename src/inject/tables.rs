//! `geryon campaigns`: results files of `geryon inject` as tables.

use anyhow::{Context, Result};
use geryon_fault::overview::{self, Done, Table};
use geryon_fault::results;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What was typed.
#[derive(clap::Args)]
pub struct Args {
    /// Write the tables to this file as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Files that `geryon inject --results` wrote.
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
}

/// Print them as Markdown.
///
/// # Errors
/// A file that cannot be read or written, or that has no results.
pub fn main(args: &Args) -> Result<ExitCode> {
    let done = args
        .results
        .iter()
        .map(|path| read(path).with_context(|| format!("cannot read {}", path.display())))
        .collect::<Result<Vec<_>>>()?;
    let tables = overview::tables(&done);
    if let Some(path) = &args.json {
        let mut text = serde_json::to_string_pretty(&tables)?;
        text.push('\n');
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let texts: Vec<String> = tables.iter().map(Table::markdown).collect();
    print!("{}", texts.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Done> {
    let text = std::fs::read_to_string(path)?;
    // A campaign that is under way may be in the middle of a line.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let (campaign, records) = results::read(&text[..whole])?;
    let name = path.file_stem().unwrap_or_default();
    Ok(Done {
        name: name.to_string_lossy().into_owned(),
        campaign,
        records,
    })
}
