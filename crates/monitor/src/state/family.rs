//! The processes of the program as one another know them: who is yet to be born, who has ended, what they have sent one
//! another. Where another replica leads than they were born in, the kernel does not know that any more.

use super::{Group, GroupId};
use crate::jobs::Jobs;
use crate::stand_in::StandIns;
use crate::takeover::{Ended, Post};
use geryon_tracee::Pid;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

/// So many processes that have led are remembered when they are gone.
const MOST_GONE: usize = 4096;

/// All of them.
pub struct Family {
    /// The process that was launched, whose end is the run's.
    pub root: Pid,
    /// When the program's first process was found to have ended, and others to live on; and whether the user
    /// knows.
    pub outlived: Option<(Instant, bool)>,
    /// The program has had more than one process.
    pub has_forked: bool,
    /// The next group's name; none is used twice.
    pub next_group: GroupId,
    /// Threads and processes that stopped before their creator's event: they wait for it.
    pub early: HashSet<Pid>,
    /// Groups that nobody is in any more, and that forked children still look for.
    pub retired: HashMap<GroupId, Group>,
    /// A process of the run goes on in another replica than it began in.
    pub taken_over: bool,
    /// Processes of the program that have ended and that their parents may still wait for.
    pub ended: Vec<Ended>,
    /// Processes that have led and are gone, by their own ids, and what the program calls them, where that is another id.
    pub(crate) gone: VecDeque<(Pid, Pid)>,
    /// Signals that its processes have sent one another.
    pub(crate) post: Post,
    /// Its process groups.
    pub(crate) jobs: Jobs,
    /// Processes that were killed because their replica had lost a leader.
    pub deposed: HashSet<Pid>,
    /// Who has the ids of leaders that are gone.
    pub stand_ins: StandIns,
}

impl Family {
    /// There is the one that was launched.
    pub(crate) fn new(root: Pid) -> Family {
        Family {
            root,
            outlived: None,
            has_forked: false,
            next_group: 0,
            early: HashSet::new(),
            retired: HashMap::new(),
            taken_over: false,
            ended: Vec::new(),
            gone: VecDeque::new(),
            post: Post::default(),
            jobs: Jobs::default(),
            deposed: HashSet::new(),
            stand_ins: StandIns::default(),
        }
    }

    /// A process that has led is gone. (Messages that nobody has received yet, and sockets, name it still.)
    pub(crate) fn note_gone(&mut self, pid: Pid, shown: Pid) {
        if pid == shown {
            return;
        }
        if self.gone.len() == MOST_GONE {
            self.gone.pop_front();
        }
        self.gone.push_back((pid, shown));
    }
}
