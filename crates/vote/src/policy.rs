//! What the user wants to follow when replicas differ or are lost.

use std::fmt;
use std::str::FromStr;

/// What follows when replicas differ (`--on-divergence`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDivergence {
    /// A replica that is outvoted is replaced by a copy of a healthy one.
    Replace,
    /// The same; and where no majority says who is wrong, the leader is believed.
    Leader,
    /// It is left out, and the rest go on.
    Drop,
    /// The run stops.
    Stop,
}

impl OnDivergence {
    /// Is one that is lost made anew?
    pub fn replaces(self) -> bool {
        matches!(self, OnDivergence::Replace | OnDivergence::Leader)
    }
}

/// What follows when a program is found to race where its threads run in parallel (`--on-race`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRace {
    /// Who has gone astray is put right, as often as it happens; where that cannot be, the run stops.
    Retry,
    /// The same; and where that cannot be, or when it has happened again and again, all go on from the leader's state in
    /// serial order.
    #[default]
    Serial,
    /// The run stops.
    Stop,
}

/// How many replicas may be made anew within how long (`--max-replacements`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacements {
    /// So many.
    pub most: u32,
    /// In any time of this length, in seconds.
    pub within_s: u32,
}

impl Replacements {
    /// Five a second for a minute. That is more than anything kills from outside, while each takes a
    /// few milliseconds of a healthy replica's time; a replica that dies as soon as it is made comes
    /// to this bound within seconds.
    pub const USUAL: Replacements = Replacements {
        most: 300,
        within_s: 60,
    };
    /// Where only a number is given.
    const HOUR_S: u32 = 3600;
}

impl FromStr for Replacements {
    type Err = String;

    /// `N` or `N/SECONDS`.
    fn from_str(text: &str) -> Result<Replacements, String> {
        let (most, within) = match text.split_once('/') {
            Some((most, within)) => (most, within.parse()),
            None => (text, Ok(Replacements::HOUR_S)),
        };
        match (most.parse(), within) {
            (Ok(most), Ok(within_s @ 1..)) => Ok(Replacements { most, within_s }),
            _ => Err("expected N or N/SECONDS, with SECONDS of at least 1".into()),
        }
    }
}

impl fmt::Display for Replacements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.most, self.within_s)
    }
}

#[cfg(test)]
mod tests {
    use super::Replacements;

    #[test]
    fn bounds_on_replacements_are_read() {
        let read = |text: &str| text.parse::<Replacements>().map(|r| (r.most, r.within_s));
        assert_eq!(read("300/60"), Ok((300, 60)));
        assert_eq!(read("4"), Ok((4, 3600)));
        assert_eq!(read("0"), Ok((0, 3600)));
        for wrong in ["", "x", "1/", "/60", "1/0", "-1", "1/-1", "1/2/3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            Replacements::USUAL.to_string().parse(),
            Ok(Replacements::USUAL)
        );
    }
}
