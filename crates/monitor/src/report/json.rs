//! The report as JSON: what is in it, and writing it.

use crate::state::Monitor;
use geryon_abi::point::FaultPoint;
use geryon_tracee::points;
use serde::Serialize;
use std::fmt::Write as _;

/// What the JSON report holds.
#[derive(Debug, Default, Serialize)]
pub struct Written {
    /// Who is wrong, as a sentence.
    pub verdict: String,
    /// What was different.
    pub cause: String,
    /// In which thread group.
    pub thread_group: u32,
    /// Position in its ring.
    pub position: u64,
    /// Who is wrong; nobody when no majority says who.
    pub outvoted: Vec<usize>,
    /// Those concerned, the leader first.
    pub replicas: Vec<Side>,
    /// Where their arguments begin to differ.
    pub first_difference: Option<Difference>,
    /// The reporter's last records.
    pub last_events: Vec<String>,
    /// All lines that were written to stderr.
    pub message: String,
}

/// One replica's side.
#[derive(Debug, Default, Serialize)]
pub struct Side {
    /// Replica index.
    pub replica: usize,
    /// Leader or follower.
    pub role: String,
    /// What it does.
    pub operation: String,
    /// With what.
    pub arguments: Vec<String>,
    /// Where.
    pub backtrace: Vec<String>,
}

/// The first byte that differs.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// In which argument.
    pub argument: String,
    /// Where in its buffer.
    pub offset: u64,
    /// The leader's value, the follower's.
    pub values: Vec<String>,
    /// Of different programs: what each of them has there, and around it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<String>,
    /// The number of the bit, if it is only one.
    pub single_bit: Option<u32>,
    /// Both are part of an address, of the same place in two layouts.
    pub of_address: bool,
}

impl Side {
    /// As lines for a person.
    pub fn text(&self) -> String {
        let mut text = format!(
            "geryon:   replica {} ({}): {}({})\n",
            self.replica + 1,
            self.role,
            self.operation,
            self.arguments.join(", ")
        );
        for f in &self.backtrace {
            let _ = writeln!(text, "geryon:       {f}");
        }
        text
    }
}

impl Difference {
    /// For a person.
    pub fn text(&self) -> String {
        format!(
            "argument {}, offset {}: {}{}{}{}",
            self.argument,
            self.offset,
            self.values.join(" against "),
            self.single_bit
                .filter(|_| !self.of_address)
                .map_or(String::new(), |b| format!(" (a single flipped bit: {b})")),
            match self.of_address {
                true =>
                    " (an address in each, of the same place: what the program does depends on where its memory lies)",
                false => "",
            },
            match &self.around[..] {
                [] => String::new(),
                around => format!("\ngeryon:     {}", around.join("\ngeryon:     ")),
            }
        )
    }
}

impl Monitor {
    /// Write the report where the user wants it, if anywhere.
    pub(crate) fn write_report(&self, w: &Written) {
        let Some(path) = &self.options.report else {
            return;
        };
        let written = serde_json::to_vec_pretty(w)
            .map_err(std::io::Error::other)
            .and_then(|mut b| {
                b.push(b'\n');
                if points::fails(FaultPoint::ReportFails) {
                    return Err(std::io::Error::from_raw_os_error(libc::ENOSPC));
                }
                std::fs::write(path, b)
            });
        if let Err(e) = written {
            eprintln!(
                "geryon: cannot write the report to {}: {e} (the text above is all of it)",
                path.display()
            );
        }
    }
}
