//! Is it worth while that threads run in parallel? (See [`Crowd`].)

use crate::state::{Ascent, Crowd, Monitor, Otherwise, Seen, Why};
use geryon_tracee::{Pid, Used, used};
use std::time::Instant;

impl Monitor {
    /// Leave it to serial order if threads in parallel only wait for one another (`--order auto`).
    pub(crate) fn watch_crowd(&mut self) {
        let now = Instant::now();
        let crowd = &self.running.crowd;
        if crowd.is_seen(now) {
            return;
        }
        let is_at_rest = self.running.ascent != Ascent::Done
            || self.hinders_descent().is_some()
            || self.replays_again()
            || self.has_takeovers();
        let mut groups = self.groups.values();
        let group = groups
            .next()
            .filter(|_| groups.next().is_none() && !is_at_rest);
        let Some((group, leader)) = group.and_then(|g| Some((g, g.leader_pid()?))) else {
            self.running.crowd = Crowd::default();
            return;
        };
        let pids = [leader].into_iter().chain(group.followers().map(|f| f.1));
        let used: Vec<(Pid, Used)> = pids.filter_map(|p| Some((p, used(p)?))).collect();
        if used.first().is_none_or(|(p, _)| *p != leader) {
            return;
        }
        let seen = Seen {
            at: now,
            used,
            words: group.segment.ends().iter().sum(),
        };
        let why = match self.running.crowd.see(seen) {
            None => return,
            Some(Why::Waits) => {
                "in parallel they wait for one another for longer than they compute"
            }
            Some(Why::Logs) => "in parallel most of their time goes into logging what they share",
        };
        self.say(&format!(
            "threads take turns from here on, as with --order serial: {why}"
        ));
        self.begin_descent(why, Otherwise::Stays, true);
    }
}
