//! What can be asked of a run, as text.

use std::fmt;
use std::str::FromStr;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take out this replica, counted from 1, and make it anew.
    Replace(u32),
    /// Take it out for good.
    Drop(u32),
    /// Make all that were taken out for good anew.
    Add,
    /// Go over from clocks to serial order.
    Serial,
    /// Make no checkpoints,
    PauseCheckpoints,
    /// or do so again.
    ResumeCheckpoints,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Replace(r) => write!(f, "replace {r}"),
            Command::Drop(r) => write!(f, "drop {r}"),
            Command::Add => f.write_str("add"),
            Command::Serial => f.write_str("serial"),
            Command::PauseCheckpoints => f.write_str("pause-checkpoints"),
            Command::ResumeCheckpoints => f.write_str("resume-checkpoints"),
        }
    }
}

impl FromStr for Command {
    type Err = String;

    fn from_str(text: &str) -> Result<Command, String> {
        let unknown = || format!("unknown request {text:?}");
        let number = |text: &str| text.parse().map_err(|_| unknown());
        match text.split_once(' ') {
            Some(("replace", r)) => Ok(Command::Replace(number(r)?)),
            Some(("drop", r)) => Ok(Command::Drop(number(r)?)),
            None if text == "add" => Ok(Command::Add),
            None if text == "serial" => Ok(Command::Serial),
            None if text == "pause-checkpoints" => Ok(Command::PauseCheckpoints),
            None if text == "resume-checkpoints" => Ok(Command::ResumeCheckpoints),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    #[test]
    fn what_is_written_is_read() {
        use Command::{Add, Drop, PauseCheckpoints, Replace, ResumeCheckpoints, Serial};
        for c in [
            Replace(2),
            Drop(16),
            Add,
            Serial,
            PauseCheckpoints,
            ResumeCheckpoints,
        ] {
            assert_eq!(c.to_string().parse(), Ok(c));
        }
        for wrong in ["", "replace", "replace x", "drop -1", "add 1", "stop"] {
            assert!(wrong.parse::<Command>().is_err(), "{wrong}");
        }
    }
}
