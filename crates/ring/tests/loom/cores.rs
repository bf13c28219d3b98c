//! Cores that a `membarrier` interrupts. The kernel has each core that runs a registered process execute
//! a fence wherever it happens to be, and returns when all have: here a thread that is interrupted
//! executes a fence before its next step, and the caller goes on when it has. A thread that is in the
//! kernel, or not running, has had its fence with the switch.

use loom::sync::atomic::{Ordering, fence};
use loom::thread::{self, Thread, ThreadId};
use std::cell::{Cell, RefCell};

#[derive(Default)]
pub struct Cores {
    cores: RefCell<Vec<Core>>,
    /// Those that wait until all have had their fence.
    callers: RefCell<Vec<Thread>>,
    /// The leader has stored the head, and no barrier of the compiler's is behind that.
    pub is_movable: Cell<bool>,
}

struct Core {
    thread: ThreadId,
    interrupted: bool,
}

impl Cores {
    /// The calling thread runs the registered process from here on.
    pub fn enter(&self) {
        self.cores.borrow_mut().push(Core {
            thread: thread::current().id(),
            interrupted: false,
        });
    }

    /// It does not any more.
    pub fn leave(&self) {
        let me = thread::current().id();
        let before = self.cores.borrow().len();
        self.cores.borrow_mut().retain(|c| c.thread != me);
        if self.cores.borrow().len() != before {
            fence(Ordering::SeqCst);
            self.tell();
        }
    }

    /// Out of it for as long as `sleep` takes.
    pub fn outside(&self, sleep: impl FnOnce()) {
        let me = thread::current().id();
        let ran = self.cores.borrow().iter().any(|c| c.thread == me);
        self.leave();
        sleep();
        if ran {
            self.enter();
            fence(Ordering::SeqCst);
        }
    }

    /// Before each step of a thread.
    pub fn step(&self) {
        if self.cores.borrow().is_empty() {
            return;
        }
        let me = thread::current().id();
        let is_due = |c: &Core| c.thread == me && c.interrupted;
        if self.cores.borrow().iter().any(is_due) {
            fence(Ordering::SeqCst);
            for c in self
                .cores
                .borrow_mut()
                .iter_mut()
                .filter(|c| c.thread == me)
            {
                c.interrupted = false;
            }
            self.tell();
        }
    }

    fn tell(&self) {
        let callers = self.callers.take();
        callers.iter().for_each(Thread::unpark);
    }

    /// A barrier on all of them.
    pub fn barrier(&self) {
        fence(Ordering::SeqCst);
        let me = thread::current().id();
        for c in self
            .cores
            .borrow_mut()
            .iter_mut()
            .filter(|c| c.thread != me)
        {
            c.interrupted = true;
        }
        while self
            .cores
            .borrow()
            .iter()
            .any(|c| c.interrupted && c.thread != me)
        {
            self.callers.borrow_mut().push(thread::current());
            thread::park();
        }
        fence(Ordering::SeqCst);
    }
}
