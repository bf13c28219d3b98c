//! Death: announced inside the section LIFE, and complete when the kernel has cleared the thread's
//! id word. Births wait for that.

use super::ALIVE;
use crate::clock::LIFE;
use crate::compare::expect_plain;
use crate::gate::{self, guarded};
use crate::log::{publish, put, remember, tell_tail};
use crate::raise;
use crate::state::{Here, block, leads};
use crate::wait::{Patience, announce, announce_end};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{MAX_EXITING, wait};
use geryon_abi::record::{kind, low_of, word};
use geryon_abi::row::Row;

/// A thread that has announced its exit: the word that the kernel clears, and what it holds till then. (Whatever else is
/// there is another one's: who has waited for the thread may have used its stack for something else since.)
struct Exiting {
    word: AtomicU64,
    held: AtomicU32,
}

/// Those that have (changed inside LIFE).
static EXITING: [Exiting; MAX_EXITING] = [const {
    Exiting {
        word: AtomicU64::new(0),
        held: AtomicU32::new(0),
    }
}; MAX_EXITING];
/// How many of these there are. (The monitor empties the list where the order of a process changes: all are gone then, and
/// the leader's next look at them need not be logged.)
#[unsafe(export_name = "geryon_exiting")]
pub(super) static EXITING_COUNT: AtomicU32 = AtomicU32::new(0);

/// exit: the end of one thread.
pub fn exit(frame: &mut Frame, row: &'static Row) {
    if super::is_single() || block().vforked != 0 {
        return crate::process::exit_group(frame, row);
    }
    let b = block();
    crate::hook::carried::forget(b);
    while !leads()
        && let Some(first) = expect_plain(b, frame, word(kind::DEATH, 0, 0, 0))
    {
        crate::log::verified(b);
        let tick = low_of(first);
        if !LIFE.await_turn(b, tick) {
            continue;
        }
        super::robust::release(b);
        announce_exit(b);
        tell_tail(b);
        LIFE.turn_done(tick);
        if crate::serial::active() {
            crate::serial::pause(b);
        }
        gate::exit(b.this, frame.rdi)
    }
    raise::lead_signal_before(b, frame);
    let tick = LIFE.enter(b.this);
    super::robust::release(b);
    announce_exit(b);
    let first = word(kind::DEATH, 0, 0, tick);
    put(b, first);
    remember(b, first);
    publish(b);
    point!(DeathUnticked);
    LIFE.tick();
    LIFE.leave();
    if crate::serial::active() {
        crate::serial::release(b);
    }
    gate::exit(b.this, frame.rdi)
}

impl Exiting {
    fn is_gone(&self) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        // A word that is not mapped any more belongs to a thread that is gone.
        holds(self.word.load(Ordering::Relaxed)) != Some(held)
    }
}

/// What a word of the program's holds, if it is there.
fn holds(word: u64) -> Option<u32> {
    let mut holds = 0;
    let there = guarded(|| {
        // SAFETY: inside `guarded`.
        holds = unsafe { (word as *const u32).read_volatile() };
    });
    there.then_some(holds)
}

pub(crate) fn announce_exit(b: Here) {
    crate::wait::adapt(ALIVE.fetch_sub(1, Ordering::AcqRel) - 1);
    let Some(held) = holds(b.clear_tid).filter(|id| *id != 0) else {
        return;
    };
    let n = EXITING_COUNT.load(Ordering::Relaxed) as usize;
    let n = if n == MAX_EXITING {
        await_exits();
        0
    } else {
        n
    };
    EXITING[n].word.store(b.clear_tid, Ordering::Relaxed);
    EXITING[n].held.store(held, Ordering::Relaxed);
    EXITING_COUNT.store(n as u32 + 1, Ordering::Release);
}

/// Has a thread announced its exit that is not gone?
pub fn is_any_exiting() -> bool {
    let n = EXITING_COUNT.load(Ordering::Acquire) as usize;
    EXITING.iter().take(n).any(|e| !e.is_gone())
}

/// Inside LIFE: wait until every thread that has announced its exit is really gone, that is,
/// the kernel has cleared its tid word, so that glibc's stack cache decides alike everywhere.
pub fn await_exits() {
    let n = EXITING_COUNT.load(Ordering::Relaxed) as usize;
    if n == 0 {
        return;
    }
    for e in EXITING.iter().take(n) {
        let mut patience = Patience::new();
        while !e.is_gone() {
            announce(wait::WORD, e.word.load(Ordering::Relaxed), 0);
            if patience.spend() {
                patience = Patience::new();
            }
        }
    }
    announce_end();
    EXITING_COUNT.store(0, Ordering::Relaxed);
}
