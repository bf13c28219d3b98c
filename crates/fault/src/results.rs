//! The results file: JSON lines, of which the first is the campaign and each other one a trial. A
//! line is written in one piece, so that a campaign which was killed can be continued.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::campaign::Campaign;
use crate::fault::Fault;
use crate::outcome::{End, Outcome};

/// How a program was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// As replicas.
    Geryon,
    /// Alone.
    Bare,
}

impl Side {
    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Side::Geryon => "Geryon",
            Side::Bare => "bare",
        }
    }
}

/// What came of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its number, from 0.
    pub trial: u64,
    /// How the program was run.
    pub side: Side,
    /// What was done to it.
    pub fault: Fault,
    /// When, as a part of the golden run, from 0 to 1.
    pub part: f64,
    /// What came of it.
    pub outcome: Outcome,
    /// How it ended.
    pub end: End,
    /// How long it took, in microseconds.
    pub wall_us: u64,
    /// From the fault to its being noticed, in microseconds.
    pub detection_us: Option<u64>,
    /// From there to the replacement, in microseconds.
    pub replacement_us: Option<u64>,
    /// What differs, or why the fault was not made.
    pub note: Option<String>,
}

/// A results file that is written.
#[derive(Debug)]
pub struct Results(File);

impl Results {
    /// Begin a file; there must be none, so that nobody's results are lost.
    ///
    /// # Errors
    /// As of files.
    pub fn create(path: &Path, campaign: &Campaign) -> io::Result<Results> {
        let file = File::options().append(true).create_new(true).open(path)?;
        let mut results = Results(file);
        results.line(campaign)?;
        Ok(results)
    }

    /// Go on with a file: its campaign and records. A last line that was cut off is removed.
    ///
    /// # Errors
    /// As of files; InvalidData when it is none of ours.
    pub fn resume(path: &Path) -> io::Result<(Results, Campaign, Vec<Record>)> {
        let text = std::fs::read_to_string(path)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let (campaign, records) = read(&text[..whole])?;
        let file = File::options().append(true).open(path)?;
        file.set_len(whole as u64)?;
        Ok((Results(file), campaign, records))
    }

    /// Add what came of a trial.
    ///
    /// # Errors
    /// As of files.
    pub fn add(&mut self, record: &Record) -> io::Result<()> {
        self.line(record)
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
}

/// Whole lines of a results file.
///
/// # Errors
/// InvalidData, with the number of the line.
pub fn read(text: &str) -> io::Result<(Campaign, Vec<Record>)> {
    let wrong = |i: usize, e: serde_json::Error| {
        io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {e}", i + 1))
    };
    let mut lines = text.lines();
    let campaign = serde_json::from_str(lines.next().unwrap_or("")).map_err(|e| wrong(0, e))?;
    let records = lines
        .enumerate()
        .map(|(i, line)| serde_json::from_str(line).map_err(|e| wrong(i + 1, e)))
        .collect::<io::Result<_>>()?;
    Ok((campaign, records))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::campaign::tests::campaign;

    /// A record of this trial of [`campaign`].
    pub fn record(trial: u64, side: Side, outcome: Outcome) -> Record {
        let made = campaign().trial(trial);
        Record {
            trial,
            side,
            fault: made.fault,
            part: made.part,
            outcome,
            end: End::Exited(0),
            wall_us: 1234,
            detection_us: Some(500 + trial),
            replacement_us: None,
            note: Some("stdout".into()),
        }
    }

    /// A path that nobody else has.
    fn path(name: &str) -> std::path::PathBuf {
        let name = format!("geryon-fault-test-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn a_campaign_that_was_cut_off_goes_on() {
        let path = path("resume");
        let mut results = Results::create(&path, &campaign()).expect("a file");
        let first = record(0, Side::Geryon, Outcome::Masked);
        results.add(&first).expect("a line");
        drop(results);
        let mut torn = File::options().append(true).open(&path).expect("the file");
        torn.write_all(b"{\"trial\":1,\"si").expect("half a line");
        let (mut results, read, records) = Results::resume(&path).expect("the file");
        assert_eq!(read, campaign());
        assert_eq!(records.first(), Some(&first));
        let second = record(1, Side::Bare, Outcome::Sdc);
        results.add(&second).expect("a line");
        let (.., records) = Results::resume(&path).expect("the file");
        assert_eq!(records, [first, second]);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn nobodys_results_are_overwritten() {
        let path = path("create");
        std::fs::write(&path, "mine").expect("a file");
        let error = Results::create(&path, &campaign()).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let error = Results::resume(&path).expect_err("it is none of ours");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "mine");
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let good = serde_json::to_string(&campaign()).expect("json");
        let error = read(&format!("{good}\n{{}}\n")).expect_err("no record");
        assert!(error.to_string().starts_with("line 2"), "{error}");
        assert!(read("").is_err());
    }
}
