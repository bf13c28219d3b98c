//! What came of a trial: a run with a fault, compared with the golden run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::journal::Told;

/// Geryon's own failures, and runs that it stopped, end with this status.
pub const STOPPED_STATUS: i32 = 125;

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The fault was not made: the program had ended, or has nothing of that kind.
    Missed,
    /// No effect that anybody saw.
    Masked,
    /// With two replicas: the run stopped with a report.
    Detected,
    /// The replica was left out; the output is right.
    Dropped,
    /// The replica was replaced; the output is right.
    Replaced,
    /// A follower took the leader's place; the output is right.
    TakenOver,
    /// Noticed, but the program did not go on.
    Due,
    /// The program died of a signal, without redundancy.
    Crash,
    /// The run did not end in time.
    Hang,
    /// Wrong output, and nobody noticed.
    Sdc,
}

impl Outcome {
    /// From the best to the worst.
    pub const ALL: [Outcome; 10] = [
        Outcome::Missed,
        Outcome::Masked,
        Outcome::Detected,
        Outcome::Dropped,
        Outcome::Replaced,
        Outcome::TakenOver,
        Outcome::Due,
        Outcome::Crash,
        Outcome::Hang,
        Outcome::Sdc,
    ];

    /// In tables.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Missed => "missed",
            Outcome::Masked => "masked",
            Outcome::Detected => "detected",
            Outcome::Dropped => "dropped",
            Outcome::Replaced => "replaced",
            Outcome::TakenOver => "taken over",
            Outcome::Due => "DUE",
            Outcome::Crash => "crash",
            Outcome::Hang => "hang",
            Outcome::Sdc => "SDC",
        }
    }

    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            Outcome::Missed => "not injected: the program had ended, or has nothing of that kind",
            Outcome::Masked => "no effect",
            Outcome::Detected => "stopped with a report (two replicas)",
            Outcome::Dropped => "the replica was left out, the output is right",
            Outcome::Replaced => "the replica was replaced, the output is right",
            Outcome::TakenOver => "a follower took the leader's place, the output is right",
            Outcome::Due => "noticed, but the program did not go on",
            Outcome::Crash => "the program died of a signal",
            Outcome::Hang => "not done in time",
            Outcome::Sdc => "wrong output, unnoticed",
        }
    }

    /// Whether the fault had an effect that somebody could see.
    pub fn is_manifest(self) -> bool {
        !matches!(self, Outcome::Missed | Outcome::Masked)
    }

    /// Whether redundancy has done its duty by a fault that had an effect.
    pub fn is_survived(self) -> bool {
        matches!(
            self,
            Outcome::Detected | Outcome::Dropped | Outcome::Replaced | Outcome::TakenOver
        )
    }

    /// Whether redundancy has failed in what a user expects of it.
    pub fn is_bad(self) -> bool {
        matches!(self, Outcome::Due | Outcome::Hang | Outcome::Sdc)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited with a status.
    Exited(i32),
    /// It died of a signal.
    Killed(i32),
    /// It was killed because it took too long.
    TimedOut,
}

/// All that is compared of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: Vec<u8>,
    /// The named output files; None: there was none.
    pub files: BTreeMap<String, Option<Vec<u8>>>,
}

impl Written {
    /// A digest that tells whether an earlier golden run was the same.
    pub fn digest(&self) -> u64 {
        let mut digest = Fnv::new();
        digest.add(format!("{:?}", self.end).as_bytes());
        digest.add(&self.stdout);
        digest.add(&own_stderr(&self.stderr));
        for (name, content) in &self.files {
            digest.add(name.as_bytes());
            digest.add(&[u8::from(content.is_some())]);
            digest.add(content.as_deref().unwrap_or_default());
        }
        digest.0
    }

    /// What differs from the other, if anything does.
    pub fn difference(&self, other: &Written) -> Option<String> {
        if self.end != other.end {
            return Some(format!("it ended with {:?}, not {:?}", other.end, self.end));
        }
        if self.stdout != other.stdout {
            return Some("stdout".into());
        }
        if own_stderr(&self.stderr) != own_stderr(&other.stderr) {
            return Some("stderr".into());
        }
        let mut files = self.files.iter();
        files
            .find(|(name, content)| other.files.get(*name) != Some(content))
            .map(|(name, _)| format!("the file {name}"))
    }
}

/// FNV-1a, with the length of each part so that parts cannot run into one another.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for b in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// What the program itself said: without Geryon's lines and the `try:` lines that belong to them.
pub fn own_stderr(stderr: &[u8]) -> Vec<u8> {
    let mut own = Vec::with_capacity(stderr.len());
    let mut geryons = false;
    for line in stderr.split_inclusive(|b| *b == b'\n') {
        geryons = line.starts_with(b"geryon:") || (geryons && line.starts_with(b"  try:"));
        if !geryons {
            own.extend_from_slice(line);
        }
    }
    own
}

/// How many replicas a run had; 0: it was bare.
pub type Replicas = u32;

/// What came of it.
pub fn classify(golden: &Written, run: &Written, told: &Told, replicas: Replicas) -> Outcome {
    if run.end == End::TimedOut {
        return Outcome::Hang;
    }
    let right = golden.difference(run).is_none();
    if right && !told.stopped {
        return match told.injected {
            _ if told.promoted => Outcome::TakenOver,
            _ if told.replaced => Outcome::Replaced,
            _ if told.dropped || told.seen => Outcome::Dropped,
            Some(false) => Outcome::Missed,
            _ => Outcome::Masked,
        };
    }
    if replicas == 0 {
        return bare(golden, run);
    }
    let stopped = told.stopped
        || (run.end == End::Exited(STOPPED_STATUS) && golden.end != End::Exited(STOPPED_STATUS));
    let killed = matches!(run.end, End::Killed(_)) && run.end != golden.end;
    if !stopped && !killed {
        return Outcome::Sdc;
    }
    // What has left before the end must have been right.
    if !golden.stdout.starts_with(&run.stdout) {
        return Outcome::Sdc;
    }
    match replicas {
        1 if killed => Outcome::Crash,
        2 if stopped => Outcome::Detected,
        _ => Outcome::Due,
    }
}

/// A bare run that differs. A status that tells of an error is not silent.
fn bare(golden: &Written, run: &Written) -> Outcome {
    match run.end {
        end if end == golden.end => Outcome::Sdc,
        End::Killed(_) => Outcome::Crash,
        End::Exited(status) if status != 0 => Outcome::Due,
        _ => Outcome::Sdc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(end: End, stdout: &str) -> Written {
        Written {
            end,
            stdout: stdout.into(),
            stderr: b"warning\n".to_vec(),
            files: BTreeMap::from([("out".into(), Some(b"data".to_vec()))]),
        }
    }

    fn golden() -> Written {
        written(End::Exited(0), "hello\n")
    }

    fn injected() -> Told {
        Told {
            injected: Some(true),
            ..Told::default()
        }
    }

    #[test]
    fn right_output_is_told_apart_by_the_journal() {
        let outcome = |told: Told| classify(&golden(), &golden(), &told, 3);
        let told = injected;
        assert_eq!(outcome(Told::default()), Outcome::Masked);
        assert_eq!(outcome(told()), Outcome::Masked);
        let missed = Told {
            injected: Some(false),
            ..told()
        };
        assert_eq!(outcome(missed), Outcome::Missed);
        let seen = Told {
            seen: true,
            ..told()
        };
        let dropped = Told {
            dropped: true,
            ..seen.clone()
        };
        let replaced = Told {
            replaced: true,
            ..dropped.clone()
        };
        let promoted = Told {
            promoted: true,
            ..replaced.clone()
        };
        assert_eq!(outcome(seen), Outcome::Dropped);
        assert_eq!(outcome(dropped), Outcome::Dropped);
        assert_eq!(outcome(replaced), Outcome::Replaced);
        assert_eq!(outcome(promoted), Outcome::TakenOver);
    }

    #[test]
    fn a_stop_is_detection_for_two_and_due_for_more() {
        let stopped = written(End::Exited(125), "hel");
        let outcome = |n| classify(&golden(), &stopped, &injected(), n);
        assert_eq!(outcome(2), Outcome::Detected);
        assert_eq!(outcome(3), Outcome::Due);
        assert_eq!(outcome(1), Outcome::Due);
    }

    #[test]
    fn a_program_that_exits_with_125_by_itself_is_not_stopped() {
        let golden = written(End::Exited(125), "hello\n");
        assert_eq!(classify(&golden, &golden, &injected(), 2), Outcome::Masked);
        let wrong = written(End::Exited(125), "jello\n");
        assert_eq!(classify(&golden, &wrong, &injected(), 2), Outcome::Sdc);
        let told = Told {
            stopped: true,
            ..injected()
        };
        assert_eq!(classify(&golden, &golden, &told, 2), Outcome::Detected);
    }

    #[test]
    fn wrong_output_that_left_is_silent_corruption() {
        let outcome = |run: &Written| classify(&golden(), run, &injected(), 3);
        assert_eq!(outcome(&written(End::Exited(0), "jello\n")), Outcome::Sdc);
        assert_eq!(outcome(&written(End::Exited(0), "hel")), Outcome::Sdc);
        assert_eq!(outcome(&written(End::Exited(1), "hello\n")), Outcome::Sdc);
        assert_eq!(outcome(&written(End::Exited(125), "jel")), Outcome::Sdc);
        assert_eq!(outcome(&written(End::Killed(11), "jel")), Outcome::Sdc);
        let mut run = golden();
        run.files.insert("out".into(), Some(b"dada".to_vec()));
        assert_eq!(outcome(&run), Outcome::Sdc);
        run.files.insert("out".into(), None);
        assert_eq!(outcome(&run), Outcome::Sdc);
        let mut run = golden();
        run.stderr = b"earning\n".to_vec();
        assert_eq!(outcome(&run), Outcome::Sdc);
    }

    #[test]
    fn a_hang_is_a_hang_whatever_was_written() {
        for n in [0, 2, 3] {
            let run = written(End::TimedOut, "hello\n");
            assert_eq!(classify(&golden(), &run, &injected(), n), Outcome::Hang);
        }
    }

    #[test]
    fn death_is_a_crash_without_redundancy() {
        let run = written(End::Killed(11), "");
        let outcome = |n| classify(&golden(), &run, &injected(), n);
        assert_eq!(outcome(0), Outcome::Crash);
        assert_eq!(outcome(1), Outcome::Crash);
        assert_eq!(outcome(3), Outcome::Due);
    }

    #[test]
    fn a_bare_program_may_notice_itself() {
        let outcome = |run: &Written| classify(&golden(), run, &injected(), 0);
        assert_eq!(outcome(&written(End::Exited(1), "")), Outcome::Due);
        assert_eq!(outcome(&written(End::Exited(125), "")), Outcome::Due);
        assert_eq!(outcome(&written(End::Exited(0), "x")), Outcome::Sdc);
        assert_eq!(outcome(&golden()), Outcome::Masked);
    }

    #[test]
    fn geryons_lines_are_not_the_programs() {
        let stderr = b"a\ngeryon: divergence\n  try: this\n  try: that\nb\n  try: ours\ngeryon: x";
        assert_eq!(own_stderr(stderr), b"a\nb\n  try: ours\n");
        let mut run = golden();
        run.stderr = b"geryon: replica 1 left out\nwarning\n".to_vec();
        assert_eq!(golden().difference(&run), None);
        assert_eq!(golden().digest(), run.digest());
    }

    #[test]
    fn digests_tell_parts_apart() {
        let mut run = golden();
        run.stdout = b"hello\nwarning\n".to_vec();
        run.stderr.clear();
        assert_ne!(golden().digest(), run.digest());
        let mut run = golden();
        run.files.insert("out".into(), None);
        assert_ne!(golden().digest(), run.digest());
    }

    #[test]
    fn names_are_their_own() {
        for (i, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, i);
        }
        assert!(Outcome::Sdc.is_bad() && Outcome::Due.is_bad() && Outcome::Hang.is_bad());
        assert_eq!(Outcome::ALL.into_iter().filter(|o| o.is_bad()).count(), 3);
    }
}
