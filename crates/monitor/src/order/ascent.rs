//! `--order auto`: a program begins in serial order, and its threads run in parallel from the second one on, where there are
//! cores for that and as long as it does nothing that clocks do not repeat. Sleepers are kept meanwhile, so that a race can be
//! told from a fault. The agent's part is in `agent/thread/ascent.rs`.

use crate::checkpoint::Checkpoints;
use crate::journal::Event;
use crate::options::OnRace;
use crate::private_field;
use crate::state::{Ascent, Monitor, Otherwise, Running};
use geryon_abi::layout::{LONG_RING_WORDS, RING_WORDS, ascent};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Between two checkpoints that nobody has asked for. A program that stores everywhere pays for each with a copy of each
/// page; and a replay takes as long as what it replays has taken.
const EVERY: Duration = Duration::from_secs(5);

/// Before the second thread no longer than that is waited for copies.
const REST: Duration = Duration::from_millis(200);
/// Between two looks whether they have been made.
const LOOK: Duration = Duration::from_millis(1);

impl Running {
    /// How long nothing has to be done for those who wait there; None: for ever.
    pub(crate) fn ascent_patience(&self) -> Option<Duration> {
        self.rests.or(self.returns).map(|_| LOOK)
    }
}

impl Monitor {
    /// Do a new program's threads run in parallel from the second one on, as far as is known?
    pub(crate) fn ascends(&self) -> bool {
        self.running.ascent == Ascent::Open
    }

    /// Words in a new group's rings: where there may be checkpoints they hold what sleeping replicas have not read.
    pub(crate) fn ring_words(&self) -> usize {
        match self.options.checkpoint.is_some() || self.ascends() {
            true => LONG_RING_WORDS,
            false => RING_WORDS,
        }
    }

    /// The program is another one from here on, with one thread.
    pub(crate) fn begins_anew(&mut self) {
        if self.running.ascent == Ascent::Done {
            self.ends_own_checkpoints();
            self.running.serial = true;
            self.running.ascent = Ascent::Open;
        }
    }

    /// There is a second process: nobody sleeps beside several, so it stays in serial order. Or it is known from the start that
    /// clocks do not repeat what it does.
    pub(crate) fn stays_serial(&mut self) {
        if self.running.ascent == Ascent::Open {
            self.running.ascent = Ascent::Never;
            self.kit.plans = self.kit.plans.for_serial();
        }
    }

    /// A replica's program is about to have a second thread, see `rpc::ASCENT`.
    pub(crate) fn on_ascent(&mut self) {
        if self.running.ascent != Ascent::Open {
            return;
        }
        self.running.ascent = Ascent::Done;
        self.running.serial = false;
        if self.options.checkpoint.is_none() {
            self.checkpoints = Some(Checkpoints::new(EVERY).at_once());
        }
        self.running.rests = Some(Instant::now());
        self.console.journal.tell(&Event::Clocks);
    }

    /// Let replicas that wait before their second thread go on, once all that is to sleep has been copied; and one of the leader that
    /// waits for others to follow in serial order.
    pub(crate) fn ascend_on(&mut self) {
        let is_over = |since: &mut Instant| since.elapsed() > REST;
        let has_copies = self.has_first_copies();
        let has_followers = !self.recovery.wanted.iter().any(|w| w.is_foreseen);
        let running = &mut self.running;
        let rested = running.rests.take_if(|s| has_copies || is_over(s));
        let is_down = running.descent.is_none();
        let returned = running
            .returns
            .take_if(|s| is_down && (has_followers || is_over(s)));
        if rested.or(returned).is_some() {
            self.let_on(1);
        }
    }

    /// May those go on who wait for copies to be made?
    fn let_on(&self, may: u32) {
        for g in self.groups.values() {
            g.segment.header().ascended.store(may, Ordering::Release);
        }
    }

    /// The leader is about to make a call that clocks do not repeat, see `rpc::DESCENT`.
    pub(crate) fn on_descent(&mut self, what: u64) -> i64 {
        if self.is_serial() {
            return 0;
        }
        let is_chosen = what == ascent::CANCELS && self.options.on_race == OnRace::Serial;
        if !is_chosen && self.running.ascent != Ascent::Done || self.hinders_descent().is_some() {
            return -i64::from(libc::EPERM);
        }
        let why = match what {
            ascent::CODE => "the program makes code while it runs, whose loads are not seen",
            ascent::SHARES => "the program maps what other processes may store to",
            ascent::PROCESS => "the program makes another process",
            ascent::CANCELS => "the program cancels a thread",
            ascent::FILTERS => "the program gives a seccomp filter to all threads at once",
            _ => "the program changes user or group in all threads",
        };
        self.say(&format!(
            "threads take turns from here on, as with --order serial: {why}"
        ));
        self.running.returns = Some(Instant::now());
        self.let_on(0);
        self.begin_descent(why, Otherwise::Stays, true);
        0
    }

    /// Checkpoints that nobody has asked for tell races from faults, and are of no use in serial order.
    pub(crate) fn ends_own_checkpoints(&mut self) {
        if self.running.ascent == Ascent::Done && self.options.checkpoint.is_none() {
            self.end_all_replays();
            self.checkpoints = None;
        }
    }

    /// The run stays with clocks: whoever waits for serial order goes on.
    pub(crate) fn let_go_on(&mut self) {
        let leaders = self.groups.values().filter_map(|g| g.leader_pid());
        for pid in leaders.collect::<Vec<_>>() {
            if let Ok(memory) = self.memory(pid) {
                // (One that is gone waits for nothing.)
                let _ = memory.write(private_field!(ascent), &ascent::NEVER.to_le_bytes());
            }
        }
    }
}
