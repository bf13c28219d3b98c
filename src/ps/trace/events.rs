//! Events of a trace, in the format of Chrome's trace viewer ("Trace Event Format"): a JSON array, times in microseconds.

use serde_json::{Value, json};
use std::collections::HashMap;

/// A thread: its process, and its place in the log.
type Who = (i32, usize);

/// What has been seen so far.
#[derive(Default)]
pub struct Events {
    /// What is over.
    all: Vec<Value>,
    /// What each thread does, since when, and when it was seen last.
    open: HashMap<Who, (String, u64, u64)>,
    names: HashMap<i32, String>,
    /// When somebody was seen last.
    seen: u64,
}

impl Events {
    /// A thread does this.
    pub fn does(&mut self, at: u64, who: Who, what: &str) {
        self.seen = at;
        if let Some((now, _, last)) = self.open.get_mut(&who)
            && now == what
        {
            *last = at;
            return;
        }
        if let Some((before, since, _)) = self.open.insert(who, (what.to_owned(), at, at)) {
            self.all.push(span(who, &before, since, at));
        }
    }

    /// A process is called so from now on.
    pub fn named(&mut self, pid: i32, name: &str) {
        self.names.insert(pid, name.to_owned());
    }

    /// A number of a process.
    pub fn counts(&mut self, at: u64, pid: i32, what: &str, value: u64) {
        self.all
            .push(json!({"ph": "C", "name": what, "pid": pid, "ts": at, "args": {what: value}}));
    }

    /// Something has happened to the run.
    pub fn happened(&mut self, at: u64, what: &str) {
        self.all
            .push(json!({"ph": "i", "s": "g", "name": what, "pid": 0, "tid": 0, "ts": at}));
    }

    /// All of it, as text.
    pub fn end(mut self, at: u64) -> String {
        for (who, (what, since, last)) in std::mem::take(&mut self.open) {
            // (Who was seen no more has ended.)
            let end = if last == self.seen { at } else { last };
            self.all.push(span(who, &what, since, end));
        }
        self.all.sort_by_key(|e| e["ts"].as_u64());
        let name = |(pid, name): (&i32, &String)| json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}});
        let mut lines: Vec<String> = self.names.iter().map(|n| name(n).to_string()).collect();
        lines.sort();
        lines.extend(self.all.iter().map(Value::to_string));
        format!("[\n{}\n]\n", lines.join(",\n"))
    }
}

fn span((pid, slot): Who, what: &str, since: u64, until: u64) -> Value {
    json!({"ph": "X", "name": what, "pid": pid, "tid": slot, "ts": since, "dur": until - since})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_goes_on_doing_is_one_span() {
        let mut e = Events::default();
        e.named(7, "replica 1, leads: cat");
        for (at, what) in [(0, "is in read"), (500, "is in read"), (1000, "computes")] {
            e.does(at, (7, 0), what);
        }
        e.happened(1200, "promotion");
        e.counts(1300, 7, "words behind", 5);
        let text = e.end(1500);
        let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            all,
            [
                json!({"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "replica 1, leads: cat"}}),
                json!({"ph": "X", "name": "is in read", "pid": 7, "tid": 0, "ts": 0, "dur": 1000}),
                json!({"ph": "X", "name": "computes", "pid": 7, "tid": 0, "ts": 1000, "dur": 500}),
                json!({"ph": "i", "s": "g", "name": "promotion", "pid": 0, "tid": 0, "ts": 1200}),
                json!({"ph": "C", "name": "words behind", "pid": 7, "ts": 1300, "args": {"words behind": 5}}),
            ]
        );
    }

    #[test]
    fn who_is_seen_no_more_has_ended() {
        let mut e = Events::default();
        e.does(0, (7, 0), "computes");
        e.does(100, (7, 0), "computes");
        e.does(300, (7, 1), "computes");
        let text = e.end(1000);
        assert!(text.contains("\"dur\":100,"), "{text}");
        assert!(text.contains("\"dur\":700,"), "{text}");
    }
}
