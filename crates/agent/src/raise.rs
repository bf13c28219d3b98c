//! Asynchronous signals: the monitor takes them from the leader as they come and queues them
//! in the thread's block; the leader's thread logs them at its next safe point (the start or
//! the end of a call), and every replica's thread has its monitor-made delivery there.

use crate::call::after;
use crate::compare::same_kind;
use crate::gate::{guarded, real, rpc, rpc_on_user_stack};
use crate::log::{publish, put, remember};
use crate::state::{Here, block, block_anew, leads};
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{Interruption, MAX_INTERRUPTIONS, rpc as number};
use geryon_abi::record::{detail_of, kind, kind_of, word};
use geryon_abi::row::Row;
use geryon_abi::table::nr;
use together::Together;

pub mod together;

const SIG_SETMASK: u64 = 2;
const SA_RESTART: u64 = 0x1000_0000;
/// Detail of a SIGNAL record: the handler interrupts computation (see `converged.rs`).
pub(crate) const CONVERGED: u8 = 2;
/// The same, before a load that is the last record's again.
pub(crate) const POLLS: u8 = 3;
/// In the record of a signal that has come during a wait which is not logged: the wait is over.
pub(crate) const ENDED: u32 = 1;
/// Is it at an instruction, not at a call?
pub(crate) const fn interrupts(detail: u8) -> bool {
    matches!(detail, CONVERGED | POLLS)
}

/// A signal waits for this thread's next safe point (leader only).
#[inline(always)]
pub fn pending(b: Here) -> bool {
    b.pending_count.load(Ordering::Acquire) != 0
}

/// The first word of what this thread is about to do, after signals that come first. None when
/// this replica leads by now.
pub fn begin_record(b: Here, frame: &mut Frame) -> Option<u64> {
    let first = crate::log::first(b)?;
    if kind_of(first) == kind::SIGNAL && !interrupts(detail_of(first)) {
        follow_signal_before(b, first, frame);
    }
    remember(b, first);
    Some(first)
}

/// Leader, at the start of a call: if a signal waits, log it and let its handler run; the
/// call is issued again when the handler returns, so this does not return. A call that the former leader
/// has made already comes first: the handler runs when it has shown its result.
#[inline(always)]
pub fn lead_signal_before(b: Here, frame: &mut Frame) {
    if pending(b) && b.given.load(Ordering::Acquire) == 0 {
        if crate::serial::active() {
            // A thread of a new leader, which waited for a record, may not have the turn.
            crate::serial::acquire(b);
        }
        let first = word(kind::SIGNAL, 0, 0, 0);
        put(b, first);
        remember(b, first);
        reissue(frame);
        lead(b, frame);
    }
}

/// Follower, at the start of a call, having read a SIGNAL record: as the leader did.
pub fn follow_signal_before(b: Here, first: u64, frame: &mut Frame) -> ! {
    remember(b, first);
    reissue(frame);
    follow(b, frame)
}

/// The call is issued again after the handler.
pub fn reissue(frame: &mut Frame) {
    frame.resume -= REISSUE;
    block().back = REISSUE;
}

/// At the end of a call: deliver the signal whose words come next in the log.
pub fn deliver_now(b: Here, frame: &mut Frame) -> ! {
    if leads() {
        lead(b, frame)
    } else {
        follow(b, frame)
    }
}

fn lead(b: Here, frame: &mut Frame) -> ! {
    let taken = together::take_queued(b);
    deliver(frame, &taken)
}

fn follow(b: Here, frame: &mut Frame) -> ! {
    let taken = together::take_logged(b);
    deliver(frame, &taken)
}

/// Length of a `syscall` instruction, and of the jump that stands for it in a trampoline.
const REISSUE: u64 = 2;

/// Have the handlers of signals run at the application state in the frame.
pub fn deliver(frame: &mut Frame, signals: &Together) -> ! {
    crate::sleep::wake(frame);
    crate::nowhere::show(frame);
    // The handler's frame shows the program's own code (it may unwind from there); its
    // rt_sigreturn finds the trampoline again.
    let mut b = block();
    let shown = frame.rcx - b.back;
    b.back = 0;
    let at = b.interruption_count as usize % MAX_INTERRUPTIONS;
    b.interruptions[at] = Interruption {
        shown,
        resume: frame.resume,
        rsp: frame.rsp,
    };
    b.interruption_count += 1;
    frame.resume = shown;
    frame.pad = frame.rflags();
    // The monitor loads the application's state from the frame and lets the kernel build the
    // signal frame on it; control never comes back here.
    crate::gate::deliver(
        frame as *mut Frame as u64,
        signals.address(),
        signals.more(),
        false,
    )
}

/// rt_sigreturn: signals that the restored mask lets in are delivered before the interrupted code
/// goes on, at the stack where it is (else one handler upon the other would fill the stack where
/// signals come faster than handlers run).
pub fn sigreturn(frame: &mut Frame, row: &Row) {
    const UC_RIP: u64 = 168;
    const UC_RSP: u64 = 160;
    const UC_MASK: u64 = 296;
    let mut b = block();
    let uc = frame.rsp;
    let (mut rip, mut rsp, mut mask) = (0, 0, 0u64);
    let there = guarded(|| {
        // SAFETY: inside `guarded`; offsets of struct ucontext.
        unsafe {
            rip = ((uc + UC_RIP) as *const u64).read_unaligned();
            rsp = ((uc + UC_RSP) as *const u64).read_unaligned();
            mask = ((uc + UC_MASK) as *const u64).read_unaligned();
        }
    });
    if !there {
        // The kernel will say SIGSEGV.
        crate::gate::sigreturn(uc);
    }
    let first = word(kind::CALL, 0, row.nr, 0);
    let set_mask = || {
        real(
            nr::rt_sigprocmask,
            [SIG_SETMASK, &raw const mask as u64, 0, 8, 0, 0],
        )
    };
    let mut followed = None;
    while !leads()
        && let Some(theirs) = begin_record(b, frame)
    {
        if same_kind(b.pos - 1, theirs, first, [first, 0, uc, 0, 0, 0, 0, 0]) {
            set_mask();
            followed = Some(detail_of(theirs) & after::SIGNAL != 0);
            break;
        }
    }
    let signal = followed.unwrap_or_else(|| {
        lead_signal_before(b, frame);
        set_mask();
        let signal = pending(b);
        if signal && crate::timer::is_ours(&b.pending[0]) {
            crate::timer::put_off(b.rings);
            b.rings += 1;
        } else {
            b.rings = 0;
        }
        let detail = if signal { after::SIGNAL } else { 0 };
        let first = word(kind::CALL, detail, row.nr, 0);
        put(b, first);
        remember(b, first);
        // The signal's words belong to the record.
        if !signal {
            publish(b);
        }
        signal
    });
    if signal {
        // What it interrupts is what this one has interrupted.
        let taken = if leads() {
            together::take_queued(b)
        } else {
            together::take_logged(b)
        };
        rpc(number::DELIVER_BEYOND, uc, taken.address(), taken.more());
    }
    crate::hook::resume_interrupted(uc);
    // From the youngest entry on: is it the point that this frame shows?
    let newest = b.interruption_count as usize;
    for k in 1..=newest.min(MAX_INTERRUPTIONS) {
        let e = b.interruptions[(newest - k) % MAX_INTERRUPTIONS];
        if e.shown == rip && e.rsp == rsp {
            // SAFETY: inside `guarded`.
            guarded(|| unsafe { ((uc + UC_RIP) as *mut u64).write_unaligned(e.resume) });
            b.interruption_count = (newest - k) as u64;
            break;
        }
    }
    crate::gate::sigreturn(uc)
}

/// The result that an interrupted call shows, or None when it is to be issued again after
/// the handler (SA_RESTART). `result` may be one of the kernel's internal restart codes.
pub fn interrupted(b: Here, result: i64) -> Option<i64> {
    match result {
        // ERESTARTSYS: depends on the handler.
        -512 => {
            let signal = b.pending[0].0[0] as u32 as u64;
            let mut action = [0u64; 4];
            real(
                nr::rt_sigaction,
                [signal, 0, action.as_mut_ptr() as u64, 8, 0, 0],
            );
            if action[1] & SA_RESTART != 0 {
                None
            } else {
                Some(-4)
            }
        }
        // ERESTARTNOINTR: always.
        -513 => None,
        // ERESTARTNOHAND and ERESTART_RESTARTBLOCK: a handler runs, so EINTR.
        -516..=-514 => Some(-4),
        other => Some(other),
    }
}

/// Follower, whose call the signal has ended as it ended the leader's.
pub fn follow_signal_behind(b: Here, first: u64, frame: &mut Frame) -> ! {
    remember(b, first);
    follow(b, frame)
}

/// Leader, in a futex wait that is not logged: log the signal, and what it means for the wait, and run its
/// handler.
pub fn lead_signal_in_hook(b: Here, frame: &mut Frame, ended: u32) -> ! {
    let first = word(kind::SIGNAL, 1, 0, ended);
    put(b, first);
    remember(b, first);
    lead(b, frame)
}

/// Follower, in a hooked function, on the user's stack, having read a SIGNAL record: run the
/// handler here.
pub fn follow_signal_here(b: Here, first: u64) {
    remember(b, first);
    let taken = together::take_logged(b);
    rpc_on_user_stack(number::DELIVER_HERE, taken.more(), taken.address());
    let mut b = block_anew();
    if leads() {
        // (It has come to lead in the handler. How far a leader may write is not how far there is anything to read.)
        b.limit = b.pos;
    }
}
