//! What comes of what a person asks of a run ([`ask`](crate::ask)). It is looked for where the watchdog looks: nothing waits for it.

use crate::ask::{Command, peer};
use crate::journal::Event;
use crate::options::OnDivergence;
use crate::state::{GroupId, Monitor, Otherwise};
use geryon_tracee::kill;
use std::io::Write;
use std::os::unix::net::UnixStream;

impl Monitor {
    /// Do what is asked for.
    pub(crate) fn hear(&mut self) {
        for (mut stream, text) in self.console.desk.requests() {
            let done = match self.may_ask(&stream) {
                true => text.parse().and_then(|c| self.obey(c)),
                false => Err("only whoever runs it may ask, and nobody of the run itself".into()),
            };
            let answer = match done {
                Ok(said) => format!("ok {said}\n"),
                Err(why) => format!("no {why}\n"),
            };
            // (Whoever has gone away needs no answer.)
            let _ = stream.write_all(answer.as_bytes());
        }
    }

    /// The user whose run it is, and root; but no process of the program.
    fn may_ask(&self, stream: &UnixStream) -> bool {
        // SAFETY: plain call.
        let own = unsafe { libc::geteuid() };
        peer(stream).is_some_and(|(pid, user)| {
            let is_own = self.processes.contains_key(&pid) || self.threads.contains_key(&pid);
            (user == own || user == 0) && !is_own
        })
    }

    fn obey(&mut self, command: Command) -> Result<String, String> {
        self.may_obey(command)?;
        let said = match command {
            Command::Replace(r) => self.replace_as_asked(r)?,
            Command::Drop(r) => self.drop_as_asked(r)?,
            Command::Add => self.add_as_asked()?,
            Command::Serial => self.descend_as_asked()?,
            Command::PauseCheckpoints => self.pause_checkpoints(true)?,
            Command::ResumeCheckpoints => self.pause_checkpoints(false)?,
        };
        self.console.journal.tell(&Event::Asked {
            what: command.to_string(),
        });
        eprintln!("geryon: as geryon ctl asks: {said}");
        Ok(said)
    }

    /// Nothing is done while something else is being done to replicas.
    fn may_obey(&self, command: Command) -> Result<(), String> {
        let is_about_replicas = !matches!(
            command,
            Command::PauseCheckpoints | Command::ResumeCheckpoints
        );
        if self.outcome.is_some() {
            return Err("the run is about to end".into());
        }
        if self.options.replicas == 1 {
            return Err("the run has one replica only".into());
        }
        if self.kit.programs.is_some() {
            return match command {
                Command::Drop(_) if !self.has_takeovers() => Ok(()),
                Command::Drop(_) => Err("a replica is being replaced, or judged: ask again".into()),
                _ => Err("replicas run different programs, and one of them can be dropped only (--variant)".into()),
            };
        }
        if is_about_replicas && self.has_variants() {
            return Err("replicas of different layouts cannot be copied (--variants)".into());
        }
        if is_about_replicas && self.options.on_divergence == OnDivergence::Stop {
            return Err("the run stops when a replica is lost (--on-divergence stop)".into());
        }
        let is_busy = self.recovers()
            || self.descends()
            || self.has_takeovers()
            || self.has_open_verdicts()
            || self.replays_again()
            || self.groups.keys().any(|id| self.is_arbitrating(*id));
        match is_about_replicas && is_busy {
            true => Err("a replica is being replaced, or judged: ask again".into()),
            false => Ok(()),
        }
    }

    /// The replica of this number, if it takes part, and others that can go on without it do.
    fn one_of_several(&self, number: u32) -> Result<usize, String> {
        let all = self.options.replicas;
        if !(1..=all).contains(&number) {
            return Err(format!("there is no replica {number}: they are 1 to {all}"));
        }
        let replica = number as usize - 1;
        if self.is_dropped(replica) {
            return Err(format!("replica {number} was taken out"));
        }
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        let leads = |id: &GroupId| self.leads(*id, replica);
        let is_alone = self.alive_mask().count_ones() < 2;
        if is_alone || ids.iter().any(|id| leads(id) && !self.has_survivors(*id)) {
            return Err(format!("there is nobody but replica {number}"));
        }
        Ok(replica)
    }

    fn replace_as_asked(&mut self, number: u32) -> Result<String, String> {
        let replica = self.one_of_several(number)?;
        if !self.options.on_divergence.replaces() {
            return Err("nobody is replaced in this run (--on-divergence drop)".into());
        }
        self.end_as_asked(replica);
        Ok(format!("replica {number} is taken out, and replaced"))
    }

    fn drop_as_asked(&mut self, number: u32) -> Result<String, String> {
        let replica = self.one_of_several(number)?;
        if self.kit.programs.is_some() {
            self.part_from(replica)?;
        }
        self.tell_given_up(replica, "geryon ctl asked for it".into());
        self.end_as_asked(replica);
        Ok(format!("replica {number} is taken out"))
    }

    /// The replica ends as one that is killed from outside does, but that is no fault.
    fn end_as_asked(&mut self, replica: usize) {
        self.replicas[replica].asked_out = true;
        let of_it = self.processes.iter().filter(|(_, p)| p.replica == replica);
        for (pid, _) in of_it {
            kill(*pid, libc::SIGKILL);
        }
    }

    fn descend_as_asked(&mut self) -> Result<String, String> {
        if let Some(why) = self.hinders_descent() {
            return Err(why.into());
        }
        self.descend("geryon ctl asks for it", Otherwise::Stays);
        Ok("one thread of a replica runs at a time from now on".into())
    }

    fn add_as_asked(&mut self) -> Result<String, String> {
        let all = 0..self.options.replicas as usize;
        let out: Vec<usize> = all.filter(|r| self.replicas[*r].given_up).collect();
        if out.is_empty() {
            return Err("no replica was taken out for good".into());
        }
        for replica in &out {
            self.replicas[*replica].given_up = false;
            self.recovery.want(*replica);
        }
        let names: Vec<String> = out.iter().map(|r| (r + 1).to_string()).collect();
        Ok(format!("made anew: replica {}", names.join(", ")))
    }
}
