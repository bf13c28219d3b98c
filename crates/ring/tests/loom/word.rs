//! Words under the model.
//!
//! loom takes a SeqCst access for AcqRel. Here a SeqCst store or exchange is followed by a fence, as the
//! processor has it; a SeqCst load is an acquire.

use crate::cores::Cores;
use crate::fault::{Fault, Name};
use geryon_ring::word::Atom;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread::{self, Thread};
use std::cell::Cell;
use std::rc::Rc;

/// Who sleeps on a word in the kernel, which compares and enqueues under a lock.
pub struct Sleepers(Mutex<Vec<Thread>>);

impl Sleepers {
    fn new() -> Sleepers {
        Sleepers(Mutex::new(Vec::new()))
    }

    fn sleep(&self, cores: &Cores, is_seen: impl Fn() -> bool) {
        let mut sleepers = self.0.lock().unwrap();
        if is_seen() {
            sleepers.push(thread::current());
            // No guard may live where loom finds a deadlock: it would panic again.
            drop(sleepers);
            cores.outside(thread::park);
        }
    }

    fn wake(&self) {
        let sleepers = std::mem::take(&mut *self.0.lock().unwrap());
        sleepers.iter().for_each(Thread::unpark);
    }
}

fn store_order(name: Name, fault: Fault, order: Ordering) -> Ordering {
    match (name, fault, order) {
        (Name::Head, Fault::PublishRelaxed, _)
        | (Name::Tail, Fault::AcknowledgeTailRelaxed, Ordering::Release)
        | (Name::Ack, Fault::AckUnordered, _)
        | (Name::LeaderSleeps, Fault::LeaderSleepsUnordered, _) => Ordering::Relaxed,
        _ => order,
    }
}

fn load_order(name: Name, fault: Fault, order: Ordering) -> Ordering {
    match (name, fault, order) {
        (Name::Head, Fault::HeadRelaxed, _) => Ordering::Relaxed,
        (_, _, Ordering::SeqCst) => Ordering::Acquire,
        _ => order,
    }
}

macro_rules! word {
    ($word:ident, $atomic:ident, $value:ident) => {
        pub struct $word {
            value: $atomic,
            name: Name,
            fault: Fault,
            cores: Rc<Cores>,
            sleepers: Sleepers,
            /// What a fault has held back: see [`Self::catch_up`].
            held: Cell<$value>,
        }

        impl $word {
            pub fn new(value: $value, name: Name, fault: Fault, cores: &Rc<Cores>) -> $word {
                $word {
                    value: $atomic::new(value),
                    name,
                    fault,
                    cores: cores.clone(),
                    sleepers: Sleepers::new(),
                    held: Cell::new(0),
                }
            }

            /// Sleep while the low half is that of `seen`.
            pub fn sleep(&self, seen: $value) {
                self.cores.step();
                self.sleepers.sleep(&self.cores, || {
                    self.value.load(Ordering::Relaxed) as u32 == seen as u32
                });
            }

            pub fn wake(&self) {
                self.cores.step();
                self.sleepers.wake();
            }

            /// Bits that were to be set before.
            pub fn catch_up(&self) {
                let held = self.held.take();
                if held != 0 {
                    self.value.fetch_or(held, Ordering::SeqCst);
                }
            }

            fn exchanged(&self, order: Ordering, old: $value) -> $value {
                if order == Ordering::SeqCst {
                    fence(Ordering::SeqCst);
                }
                old
            }
        }

        impl Atom for $word {
            type Value = $value;

            fn load(&self, order: Ordering) -> $value {
                self.cores.step();
                if self.name == Name::FollowerSleeps && order == Ordering::Relaxed {
                    assert!(!self.cores.is_movable.get(), "the compiler may move this");
                }
                self.value.load(load_order(self.name, self.fault, order))
            }

            fn store(&self, value: $value, order: Ordering) {
                self.cores.step();
                if self.fault == Fault::FlagLeft && self.name == Name::LeaderSleeps && value == 0 {
                    return;
                }
                if self.name == Name::Head {
                    self.cores.is_movable.set(true);
                }
                let ahead = self.fault == Fault::TailAhead && self.name == Name::Tail;
                let value = value + ahead as $value;
                match store_order(self.name, self.fault, order) {
                    Ordering::SeqCst => {
                        let relaxed =
                            self.fault == Fault::TellTailRelaxed && self.name == Name::Tail;
                        let order = if relaxed {
                            Ordering::Relaxed
                        } else {
                            Ordering::Release
                        };
                        self.value.store(value, order);
                        fence(Ordering::SeqCst);
                    }
                    order => self.value.store(value, order),
                }
            }

            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.cores.step();
                self.exchanged(order, self.value.swap(value, order))
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.cores.step();
                if self.fault == Fault::BothPrepare && self.name == Name::Promotion {
                    let old = self.value.load(Ordering::Acquire);
                    self.value.store(new, Ordering::Release);
                    return if old == current { Ok(old) } else { Err(old) };
                }
                let done = self.value.compare_exchange(current, new, success, failure);
                done.map(|old| self.exchanged(success, old))
            }

            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.cores.step();
                self.exchanged(order, self.value.fetch_add(value, order))
            }

            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.cores.step();
                self.exchanged(order, self.value.fetch_sub(value, order))
            }

            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.cores.step();
                if self.fault == Fault::FlagBehindCheck && self.name == Name::FollowerSleeps {
                    self.held.set(value);
                    return 0;
                }
                self.exchanged(order, self.value.fetch_or(value, order))
            }

            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.cores.step();
                self.held.set(0);
                self.exchanged(order, self.value.fetch_and(value, order))
            }
        }
    };
}

word!(Word32, AtomicU32, u32);
word!(Word64, AtomicU64, u64);
