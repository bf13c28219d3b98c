//! The journal of a run: one JSON object a line, of which a campaign reads what came of its fault.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names of events.
pub mod event {
    /// The program's exec; time counts from here.
    pub const START: &str = "start";
    /// The fault was made.
    pub const INJECTED: &str = "fault-injected";
    /// The fault could not be made: `why` says the reason.
    pub const MISSED: &str = "fault-missed";
    /// A replica differed from the others, crashed or got stuck.
    pub const SEEN: &str = "fault-seen";
    /// A replica was left out.
    pub const DROPPED: &str = "dropped";
    /// A replica was replaced by a copy of another.
    pub const REPLACED: &str = "replaced";
    /// A follower became the leader.
    pub const PROMOTED: &str = "promoted";
    /// The run was stopped with a report.
    pub const STOPPED: &str = "stopped";
    /// The end, with counts and the exit status.
    pub const END: &str = "end";
}

/// One line. All but the name may be missing; what else a line has is not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the start.
    #[serde(default)]
    pub t_us: u64,
    /// See [`event`].
    pub event: String,
    /// Whom it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<u32>,
    /// Why a fault was missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// At the end: words in the log of the first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

impl fmt::Display for Event {
    /// As a line without its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Numbers and strings can always be written.
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// What a journal says of a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether the fault was made; None: the journal does not say.
    pub injected: Option<bool>,
    /// Why it was not.
    pub why: Option<String>,
    /// It was noticed.
    pub seen: bool,
    /// A replica was left out.
    pub dropped: bool,
    /// A replica was replaced.
    pub replaced: bool,
    /// A follower took the leader's place.
    pub promoted: bool,
    /// The run was stopped with a report.
    pub stopped: bool,
    /// From the fault to its being noticed, in microseconds.
    pub detection_us: Option<u64>,
    /// From there to the replacement, in microseconds.
    pub replacement_us: Option<u64>,
    /// From start to end, in microseconds.
    pub span_us: Option<u64>,
    /// Words in the log of the first process.
    pub events: Option<u64>,
}

impl Told {
    /// Read a journal. Lines that are none, the last one of a killed monitor among them, are left
    /// out.
    pub fn read(text: &str) -> Told {
        let events: Vec<Event> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let has = |name| events.iter().any(|e| e.event == name);
        let at = |name, from: u64| {
            let found = events.iter().find(|e| e.event == name && e.t_us >= from);
            found.map(|e| e.t_us)
        };
        let missed = events.iter().find(|e| e.event == event::MISSED);
        let injected = at(event::INJECTED, 0);
        let seen = injected.and_then(|t| at(event::SEEN, t));
        let replaced = seen.and_then(|t| at(event::REPLACED, t));
        Told {
            injected: (!events.is_empty()).then_some(injected.is_some()),
            why: missed.and_then(|e| e.why.clone()),
            seen: has(event::SEEN),
            dropped: has(event::DROPPED),
            replaced: has(event::REPLACED),
            promoted: has(event::PROMOTED),
            stopped: has(event::STOPPED),
            detection_us: injected.zip(seen).map(|(from, to)| to - from),
            replacement_us: seen.zip(replaced).map(|(from, to)| to - from),
            events: events.iter().find_map(|e| e.events),
            span_us: at(event::END, 0).map(|t| t - at(event::START, 0).unwrap_or(0).min(t)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let told = Told::read(
            r#"{"t_us":10,"event":"start"}
{"t_us":1000,"event":"fault-injected","replica":1,"target":"gpr:rbx:1"}
{"t_us":1500,"event":"fault-seen","replica":1}
{"t_us":4500,"event":"replaced","replica":1,"new":[1,2]}
{"t_us":9010,"event":"end","faults":1,"replaced":1,"promotions":0,"events":77,"status":0}
"#,
        );
        assert_eq!(told.injected, Some(true));
        assert_eq!(told.detection_us, Some(500));
        assert_eq!(told.replacement_us, Some(3000));
        assert_eq!(told.span_us, Some(9000));
        assert_eq!(told.events, Some(77));
        assert!(told.seen && told.replaced && !told.promoted && !told.dropped);
    }

    #[test]
    fn a_value_stuck_counts_from_its_first_sample() {
        let told = Told::read(
            "{\"t_us\":5,\"event\":\"fault-injected\"}\n{\"t_us\":9,\"event\":\"fault-injected\"}\n\
             {\"t_us\":11,\"event\":\"fault-seen\"}\n",
        );
        assert_eq!(told.detection_us, Some(6));
    }

    #[test]
    fn what_was_seen_before_the_fault_is_not_its_detection() {
        let told = Told::read(
            "{\"t_us\":5,\"event\":\"fault-seen\"}\n{\"t_us\":9,\"event\":\"fault-injected\"}\n",
        );
        assert!(told.seen);
        assert_eq!(told.detection_us, None);
    }

    #[test]
    fn nothing_said_is_nothing_known() {
        assert_eq!(Told::read(""), Told::default());
        assert_eq!(Told::read("{\"t_us\":"), Told::default());
        assert_eq!(Told::read("[]\nnull\n{\"event\":7}"), Told::default());
        assert_eq!(Told::read("{\"event\":\"start\"}").injected, Some(false));
    }

    #[test]
    fn a_reason_is_kept() {
        let line = Event {
            t_us: 7,
            event: event::MISSED.into(),
            why: Some("no \"heap\"".into()),
            ..Event::default()
        };
        let told = Told::read(&format!("{line}\n"));
        assert_eq!(told.why.as_deref(), Some("no \"heap\""));
        assert_eq!(told.injected, Some(false));
    }
}
