//! A process becomes one of the kin, is born as one, and leaves them: see `serial/kin.rs`.

use crate::compare::same_kind;
use crate::event::plain;
use crate::log::{get, get_first};
use crate::serial::{self, kin};
use crate::state::{Here, is_kin, leads, private, tell_kin};
use geryon_abi::layout::ascent;
use geryon_abi::layout::kin::JOINED;
use geryon_abi::record::{kind, kind_of, word};

/// The process becomes one of the kin: a child is to share its memory, or it maps what others may map. All replicas
/// come here at the same place of the log, and none goes on before it has the turn: the program may look at what it
/// has mapped without another call.
pub fn join(b: Here) {
    let p = private();
    if p.ascent.get() == ascent::OPEN {
        p.ascent.set(ascent::NEVER);
    }
    if p.serial.get() == 0 || p.replicas == 1 || is_kin() {
        p.kin.set(if is_kin() { JOINED } else { 0 });
        if p.serial.get() == 0 && p.replicas > 1 {
            stops_counting(b);
        }
        return;
    }
    p.kin.set(JOINED);
    tell_kin();
    // Whoever shares its memory with others is treated as if it had several threads.
    super::becomes_many(b);
    first_turn(b);
}

/// With clocks, one thread: a look that comes behind so many atomic instructions would come in one replica only, where
/// more of them were needed to get a lock that another process has.
fn stops_counting(b: Here) {
    let p = private();
    p.uncounted.set(1);
    if p.multi.get() == 0 {
        b.set_ordered(false);
    }
}

/// In a forked child: its parent has the turn.
pub fn born() {
    kin::born();
}

/// The process's first turn, which is always logged: nobody of its group has had one. In a forked child before the
/// program runs there.
pub fn first_turn(b: Here) {
    if !is_kin() {
        return;
    }
    let ours = word(kind::KIN, 0, 0, 0);
    while !leads()
        && let Some(w) = get_first(b)
    {
        if same_kind(b.pos - 1, w, ours, plain(ours)) && kin::take(b, w, false) {
            return;
        }
    }
    serial::acquire(b);
}

/// Leader: the process is about to execute another program.
pub fn leaves(b: Here) {
    if b.vforked == 0 {
        kin::give(b, false);
    }
}

/// Leader: it could not, and goes on.
pub fn stays(b: Here) {
    if serial::active() {
        serial::acquire(b);
    }
}

/// Follower: the next word of the log, without taking it, behind the turns of the kin.
pub fn peek(b: Here) -> Option<u64> {
    loop {
        let next = crate::log::peek(b)?;
        if kind_of(next) != kind::KIN {
            return Some(next);
        }
        let w = get(b);
        kin::take(b, w, false);
    }
}
