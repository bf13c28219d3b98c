//! What the journal of a run says, also while it is being written.

use serde_json::Value;
use std::fs;
use std::path::Path;

/// The lines of a journal.
pub struct Journal(Vec<Value>);

impl Journal {
    /// Read it; a last line that is only half written is not there yet, and neither is any before the
    /// run has begun.
    pub fn read(path: &Path) -> Journal {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|l| serde_json::from_str(l).ok());
        Journal(lines.collect())
    }

    /// All of it.
    pub fn lines(&self) -> &[Value] {
        &self.0
    }

    /// The events of this name.
    pub fn told<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |l| l["event"] == event)
    }

    /// How often an event stands there.
    pub fn count(&self, event: &str) -> usize {
        self.told(event).count()
    }

    /// Is it there?
    pub fn has(&self, event: &str) -> bool {
        self.count(event) != 0
    }

    /// Which line tells it first.
    pub fn at(&self, event: &str) -> Option<usize> {
        self.0.iter().position(|l| l["event"] == event)
    }

    /// Is the one told behind the other's first time?
    pub fn has_behind(&self, first: &str, then: &str) -> bool {
        self.at(first)
            .is_some_and(|at| self.0[at..].iter().any(|l| l["event"] == then))
    }
}

impl std::fmt::Display for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|l| writeln!(f, "{l}"))
    }
}
