//! A line on the terminal that says how far the campaign is.

use geryon_fault::summary::{Tally, shown};
use geryon_fault::{Record, Side};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Erases what a longer line has left.
const ERASE: &str = "\x1b[K";
/// No line is shown more often, in milliseconds.
const LINE_MS: u64 = 50;

/// How far the campaign is. Silent where stderr is no terminal.
pub struct Progress {
    terminal: bool,
    begin: Instant,
    shown: Option<Instant>,
    before: usize,
    open: usize,
    records: Vec<Record>,
}

impl Progress {
    /// `before` trials are done already, `open` are to be.
    pub fn new(before: usize, open: usize) -> Progress {
        Progress {
            terminal: std::io::stderr().is_terminal(),
            begin: Instant::now(),
            shown: None,
            before,
            open,
            records: Vec::new(),
        }
    }

    /// A trial is done.
    pub fn add(&mut self, record: &Record) {
        self.records.push(record.clone());
        let pause = Duration::from_millis(LINE_MS);
        if self.terminal && self.shown.is_none_or(|then| then.elapsed() >= pause) {
            self.shown = Some(Instant::now());
            let line = self.line(self.begin.elapsed());
            // A terminal that is gone is no reason to stop.
            let _ = write!(std::io::stderr(), "\r{line}{ERASE}");
        }
    }

    /// The line makes room.
    pub fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r{ERASE}");
        }
    }

    fn line(&self, elapsed: Duration) -> String {
        let done = self.records.len();
        let mut line = format!(
            "geryon: inject: {} of {}",
            self.before + done,
            self.before + self.open
        );
        for side in [Side::Geryon, Side::Bare] {
            let tally = Tally::of(self.records.iter().filter(|r| r.side == side));
            let counts: Vec<String> = shown(&tally)
                .into_iter()
                .map(|o| format!("{} {}", tally.count(o), o.name()))
                .collect();
            if !counts.is_empty() {
                line += &format!("; {}: {}", side.name(), counts.join(", "));
            }
        }
        let left = self.open.saturating_sub(done) as f64;
        let left_s = (elapsed.as_secs_f64() * left / done.max(1) as f64) as u64;
        line + &format!("; {}:{:02} left", left_s / 60, left_s % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_fault::Outcome;
    use geryon_fault::outcome::End;

    #[test]
    fn the_line_says_what_came_and_how_long_it_takes() {
        let mut progress = Progress::new(5, 10);
        progress.terminal = false;
        for side in [Side::Geryon, Side::Bare] {
            progress.add(&Record {
                trial: 1,
                side,
                fault: "when=delay:1,target=crash".parse().expect("a fault"),
                part: 0.5,
                outcome: Outcome::Masked,
                end: End::Exited(0),
                wall_us: 1,
                detection_us: None,
                replacement_us: None,
                note: None,
            });
        }
        assert_eq!(
            progress.line(Duration::from_secs(20)),
            "geryon: inject: 7 of 15; Geryon: 1 masked; bare: 1 masked; 1:20 left"
        );
    }
}
