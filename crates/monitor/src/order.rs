//! The order of a run may change while the program runs, from clocks to serial: then races are repeated, too. Everybody
//! goes on from one state, the leader's. All others are taken out; the leader's threads are halted, wherever they are between
//! two instructions of the program or in a call that can wait for its turn behind it; from there on each waits for its turn; and
//! copies of the leader take the free places, as when all others had been lost.
//!
//! (What is learned of the program's loads, and strict replay, come before that; this is the last step of three on the way
//! down from order in parallel.)

mod ascent;
mod crowd;
mod race;
mod stand;

use crate::journal::Event;
use crate::state::{Ascent, Descent, GroupId, Monitor, Otherwise};
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::{CANCEL_WORD, FIRST_LOOK, Turns, ascent as state, turn};
use geryon_tracee::{Pid, Regs, Stopped};
use stand::Stand;
use std::mem::offset_of;
use std::time::{Duration, Instant};

/// A leader that has not stood where its order can change by then never will.
const GIVE_UP: Duration = Duration::from_secs(30);
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(2);

/// A thread of a halted leader that goes on elsewhere.
struct Moved {
    tid: Pid,
    block: u64,
    regs: Regs,
    /// Where it stood, if that is to be found by the agent.
    from: Option<u64>,
}

impl Monitor {
    /// Is the order of threads that in which races are repeated, too?
    pub(crate) fn is_serial(&self) -> bool {
        self.running.serial
    }

    /// Is the run on its way to serial order?
    pub(crate) fn descends(&self) -> bool {
        self.running.descent.is_some()
    }

    /// Why the run cannot go over to serial order now; None: it can.
    pub(crate) fn hinders_descent(&self) -> Option<&'static str> {
        if self.is_serial() {
            Some("one thread of a replica runs at a time already (--order serial)")
        } else if self.has_variants() {
            Some("replicas of different layouts cannot be copied (--variants)")
        } else if !self.options.on_divergence.replaces() {
            Some("nobody is replaced in this run (--on-divergence)")
        } else if !self.shared.is_empty() || self.processes.keys().any(|p| self.is_kin(*p)) {
            Some("its processes share memory")
        } else {
            None
        }
    }

    /// Everybody goes on from the leader's state, in serial order. `why` is said to the user; `otherwise`: what if the leader
    /// cannot go over to it.
    pub(crate) fn descend(&mut self, why: &str, otherwise: Otherwise) {
        self.say(&format!(
            "from clocks to serial order, from the leader's state on: {why}"
        ));
        self.begin_descent(why, otherwise, false);
    }

    /// The same. `is_foreseen`: see [`Descent`].
    fn begin_descent(&mut self, why: &str, otherwise: Otherwise, is_foreseen: bool) {
        self.end_all_replays();
        let leaders: Vec<usize> = self.groups.values().map(|g| g.leader).collect();
        let mut lacking: Vec<usize> = self.recovery.wanted.drain(..).map(|w| w.replica).collect();
        for replica in &lacking {
            // Some of its processes may have been made, which are in the order of before.
            self.drop_replica(*replica);
        }
        for replica in (0..self.replicas.len()).filter(|r| !leaders.contains(r)) {
            if !self.is_dropped(replica) {
                self.drop_replica(replica);
                lacking.push(replica);
            }
        }
        lacking.truncate(self.options.replicas as usize - 1);
        self.ends_own_checkpoints();
        self.running.serial = true;
        self.running.ascent = Ascent::Never;
        self.running.descent = Some(Descent {
            since: Instant::now(),
            tried: None,
            why: why.into(),
            otherwise,
            is_foreseen,
            lacking,
        });
    }

    /// Have the leaders go over to serial order that have not yet.
    ///
    /// # Errors
    /// Geryon's own failures.
    pub(crate) fn descend_on(&mut self) -> Result<()> {
        let Some(d) = &mut self.running.descent else {
            return Ok(());
        };
        if d.tried.is_some_and(|t| t.elapsed() < AGAIN) || self.outcome.is_some() {
            return Ok(());
        }
        d.tried = Some(Instant::now());
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            // (What goes wrong with a process is no failure of the run: it may be gone.)
            let hindered = self.try_descent(id);
            if let Some(why) = hindered.unwrap_or_else(|e| Some(format!("{e:#}"))) {
                self.put_off_descent(&why);
                return Ok(());
            }
            if !self.kit.plans.waits() {
                self.kit.plans = self.kit.plans.for_serial();
            }
        }
        let Some(d) = self.running.descent.take() else {
            return Ok(());
        };
        let took_us = d.since.elapsed().as_micros() as u64;
        self.console.journal.tell(&Event::Serial {
            why: d.why,
            took_us,
        });
        if !d.is_foreseen {
            let took_ms = took_us as f64 / 1e3;
            self.say(&format!("in serial order after {took_ms:.1} ms"));
        }
        for replica in d.lacking {
            self.recovery.want_copy(replica, d.is_foreseen);
        }
        Ok(())
    }

    /// A leader cannot go over now: it is tried again, for a while.
    fn put_off_descent(&mut self, why: &str) {
        let over = |d: &mut Descent| d.since.elapsed() > GIVE_UP;
        let Some(d) = self.running.descent.take_if(over) else {
            return;
        };
        let hindered = format!("the leader cannot go over to serial order ({why})");
        // (A process may have gone over before, and goes on with those that have not.)
        if d.otherwise == Otherwise::Stops || self.kit.plans.waits() {
            self.give_up(&format!(
                "stopped: {hindered}; try --order serial from the beginning"
            ));
            return;
        }
        self.say(&format!("{hindered}: the run goes on with clocks"));
        self.running.serial = false;
        self.running.stays = true;
        self.let_go_on();
        d.lacking.into_iter().for_each(|r| self.recovery.want(r));
    }

    /// Let a group's leader go over to serial order, unless it has. The reason when that cannot be now.
    fn try_descent(&mut self, id: GroupId) -> Result<Option<String>> {
        let Some(g) = self.groups.get(&id) else {
            return Ok(None);
        };
        let Some(pid) = g.leader_pid() else {
            return Ok((!g.ending).then(|| "a process has no leader".into()));
        };
        let leader = g.leader;
        if self.memory(pid)?.word(private_field!(serial))? as u32 != 0 {
            return Ok(None);
        }
        let halted = match self.halt_source(id, (leader, pid))? {
            Ok(halted) => halted,
            Err(why) => return Ok(Some(why.into())),
        };
        let changed = self.change_halted(pid, &halted);
        self.release(&halted);
        changed
    }

    /// The leader's threads stand still.
    fn change_halted(&mut self, pid: Pid, halted: &[Pid]) -> Result<Option<String>> {
        let again = self.kit.image.symbol("geryon_again");
        let enter = self.kit.image.symbol("geryon_converged");
        let memory = self.processes.get(&pid).and_then(|p| p.memory.as_ref());
        let Some(memory) = memory else {
            return Ok(Some("its memory cannot be read".into()));
        };
        let has_threads = memory.word(private_field!(multi))? as u32 != 0;
        if memory.word(self.kit.image.symbol("geryon_life"))? as u32 != 0 {
            // It would keep that section while it waits for its turn, and one that has the turn might wait for the section.
            return Ok(Some("a thread is being made, or ends".into()));
        }
        let mut moved = Vec::new();
        let mut blocks = Vec::new();
        for tid in halted {
            let mut regs = Stopped(*tid).regs()?;
            let (block, stand) = match stand::of(&regs, memory, &self.kit.image)? {
                Ok(found) => found,
                Err(why) => return Ok(Some(why.into())),
            };
            blocks.push((block, regs.fs_base));
            let (to, from) = match stand {
                Stand::Waits | Stand::AboutToCall => continue,
                Stand::Computes => (enter, Some(regs.rip)),
                Stand::WaitsUnlogged => (again, None),
            };
            regs.rip = to;
            regs.orig_rax = u64::MAX;
            moved.push(Moved {
                tid: *tid,
                block,
                regs,
                from,
            });
        }
        let Some((first, _)) = blocks.first() else {
            return Ok(Some("it has no threads".into()));
        };
        let word = |at: u64, value: u32| memory.write(at, &value.to_le_bytes());
        if has_threads {
            let slot = memory.word(first + block_field!(slot))? as u32;
            let turns = private_field!(turns);
            let at = |field: usize| turns + field as u64;
            word(at(offset_of!(Turns, state)), turn::FREE)?;
            word(at(offset_of!(Turns, waiting)), 0)?;
            word(at(offset_of!(Turns, lends)), 0)?;
            word(at(offset_of!(Turns, owner)), slot)?;
            word(at(offset_of!(Turns, number)), 0)?;
            memory.set_word(at(offset_of!(Turns, last_slot)), slot.into())?;
            let pos = memory.word(first + block_field!(pos))?;
            memory.set_word(at(offset_of!(Turns, last_pos)), pos)?;
            let cancel = memory.word(private_field!(orig) + 8 * CANCEL_WORD as u64)?;
            for (block, control) in &blocks {
                // (From here on all wait in there, and are copies of this one.)
                let hidden = memory.word(block + block_field!(interrupted_cancel))? as u32;
                if hidden != 0 && cancel != 0 {
                    let at = control.wrapping_add(cancel);
                    word(at, memory.word(at)? as u32 | hidden)?;
                }
                // Those that stand in the original of a hooked function run it as it is from here on.
                for field in [
                    block_field!(ordered),
                    block_field!(suspend),
                    block_field!(interrupted_suspend),
                    block_field!(interrupted_cancel),
                    block_field!(has_turn),
                    block_field!(robbed),
                    block_field!(starves),
                ] {
                    word(block + field, 0)?;
                }
                word(block + block_field!(plain), FIRST_LOOK)?;
            }
            for m in &moved {
                if let Some(from) = m.from {
                    memory.set_word(m.block + block_field!(return_to), from)?;
                }
                Stopped(m.tid).set_regs(&m.regs)?;
            }
        }
        // Whoever has announced its exit is gone, or it would stand in the midst of that. The thread that is first does not log
        // that it goes on, so a copy made before would look later, and find another thread where one of these has been.
        word(self.kit.image.symbol("geryon_exiting"), 0)?;
        word(private_field!(strict), 0)?;
        word(private_field!(stamps), 0)?;
        word(private_field!(ascent), state::NEVER)?;
        word(private_field!(serial), 1)?;
        Ok(None)
    }
}
