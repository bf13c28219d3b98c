//! What happens to one system call: look its row up, do what its class says.

mod filtered;

use crate::gate::{guarded, real};
use crate::state::{block, leads, private};
use crate::stop::{broken, refused};
use crate::{call, memory, process, raise, thread};
use geryon_abi::frame::Frame;
use geryon_abi::layout::{failed, kin, rpc as number};
use geryon_abi::outcome::changes;
use geryon_abi::row::{Class, Row, Support};
use geryon_abi::table;

const SIGCHLD: u32 = 17;
const ENOSYS: i64 = -38;
/// What is said where the table does not know better.
const EINVAL: i64 = -22;
const PR_SET_NAME: u32 = 15;
const DONTFORK: u32 = 10;
const WIPEONFORK: u32 = 18;

/// Numbers of the calls that are treated by hand.
pub mod nr {
    #![allow(missing_docs)] // names are those of the kernel
    pub const READ: u64 = 0;
    pub const OPEN: u64 = 2;
    pub const CLOSE: u64 = 3;
    pub const MMAP: u64 = 9;
    pub const MPROTECT: u64 = 10;
    pub const MUNMAP: u64 = 11;
    pub const BRK: u64 = 12;
    pub const RT_SIGACTION: u64 = 13;
    pub const RT_SIGPROCMASK: u64 = 14;
    pub const RT_SIGRETURN: u64 = 15;
    pub const MREMAP: u64 = 25;
    pub const SHMAT: u64 = 30;
    pub const SHMDT: u64 = 67;
    pub const DUP2: u64 = 33;
    pub const CLONE: u64 = 56;
    pub const FORK: u64 = 57;
    pub const VFORK: u64 = 58;
    pub const ALARM: u64 = 37;
    pub const SETITIMER: u64 = 38;
    pub const EXECVE: u64 = 59;
    pub const EXIT: u64 = 60;
    pub const WAIT4: u64 = 61;
    pub const KILL: u64 = 62;
    pub const MADVISE: u64 = 28;
    pub const PRCTL: u64 = 157;
    pub const SETRLIMIT: u64 = 160;
    pub const CHROOT: u64 = 161;
    pub const TKILL: u64 = 200;
    pub const FUTEX: u64 = 202;
    pub const SCHED_SETAFFINITY: u64 = 203;
    pub const SET_TID_ADDRESS: u64 = 218;
    pub const TIMER_CREATE: u64 = 222;
    pub const TIMER_SETTIME: u64 = 223;
    pub const TIMER_DELETE: u64 = 226;
    pub const EXIT_GROUP: u64 = 231;
    pub const TGKILL: u64 = 234;
    pub const SCHED_YIELD: u64 = 24;
    pub const NANOSLEEP: u64 = 35;
    pub const SIGALTSTACK: u64 = 131;
    pub const CLOCK_NANOSLEEP: u64 = 230;
    pub const WAITID: u64 = 247;
    pub const OPENAT: u64 = 257;
    pub const DUP3: u64 = 292;
    pub const PRLIMIT64: u64 = 302;
    pub const SECCOMP: u64 = 317;
    pub const EXECVEAT: u64 = 322;
    pub const CLONE3: u64 = 435;
    pub const CLOSE_RANGE: u64 = 436;
    pub const PKEY_MPROTECT: u64 = 329;
    pub const FUTEX_WAITV: u64 = 449;
    pub const FUTEX_WAKE: u64 = 454;
    pub const FUTEX_WAIT: u64 = 455;
    pub const FUTEX_REQUEUE: u64 = 456;
}

/// Called from the assembly entry with the application's registers.
#[unsafe(no_mangle)]
extern "C" fn geryon_on_syscall(frame: &mut Frame) {
    // The kernel looks at 32 bits.
    let number = frame.rax as u32 as u64;
    frame.rax = number;
    block().called = number + 1;
    if block().suspend != 0 && number != nr::FUTEX && number != nr::RT_SIGRETURN {
        // Inside the original of a hooked function (its clock for a timeout, a yield): how often
        // that asks is each replica's own affair; the function's outcome is what is logged.
        if !is_own_affair(number, &frame.args()) {
            // No such function makes that call: the word says so by a fault.
            broken();
        }
        frame.rax = crate::gate::real_blocking(number, &frame.args(), true) as u64;
        frame.pad = frame.rflags();
        return;
    }
    if !filtered::passes(frame) {
        frame.pad = frame.rflags();
        return;
    }
    thread::ascent::before(frame);
    match table::row(number) {
        // (Calls that change mappings are refused there; a hook gives a pthread function a time of ours.)
        Some(row) if is_ordered(number) || number == nr::FUTEX => dispatch(frame, row),
        Some(row) => {
            if matches!(number, nr::NANOSLEEP | nr::CLOCK_NANOSLEEP) {
                // (A copy of one that slept.)
                crate::sleep::wake(frame);
            }
            crate::nowhere::hide(frame, row, dispatch);
        }
        None => {
            /// Beyond this no kernel will have calls for a long time: not worth a message.
            const PLAUSIBLE: u64 = 1 << 20;
            if number < PLAUSIBLE {
                refused(number, 0);
            }
            frame.rax = ENOSYS as u64;
        }
    }
    frame.pad = frame.rflags();
}

/// Is the call about the layout of memory?
const fn is_ordered(number: u64) -> bool {
    matches!(
        number,
        nr::MMAP | nr::MUNMAP | nr::BRK | nr::MREMAP | nr::SHMAT | nr::SHMDT
    )
}

/// Is nothing outside this replica changed by this call? (A thread may be cancelled where it waits.)
fn is_own_affair(number: u64, args: &[u64; 6]) -> bool {
    number == nr::EXIT
        || table::row(number).is_none_or(|row| match row.class {
            Class::Local | Class::Memory => true,
            Class::Input => !changes(row, args, 1),
            Class::Output | Class::Each | Class::Lifecycle | Class::Refused => false,
        })
}

fn dispatch(frame: &mut Frame, row: &'static Row) {
    crate::shared::stand();
    if leads() {
        crate::files::clothe();
    }
    match row.nr as u64 {
        nr::RT_SIGRETURN => raise::sigreturn(frame, row),
        nr::CLONE => thread::clone(frame, row),
        nr::FORK => process::fork(frame, row),
        nr::VFORK => process::vfork(frame, row),
        nr::CLONE3 => frame.rax = ENOSYS as u64,
        nr::EXIT => thread::exit(frame, row),
        nr::EXIT_GROUP => process::exit_group(frame, row),
        nr::EXECVE | nr::EXECVEAT => process::exec(frame, row),
        nr::WAIT4 | nr::WAITID => process::wait(frame, row),
        nr::FUTEX => thread::futex(frame, row),
        nr::FUTEX_WAITV | nr::FUTEX_WAKE | nr::FUTEX_WAIT | nr::FUTEX_REQUEUE
            if thread::repeats_futex(frame, row) => {}
        nr::SCHED_YIELD if crate::serial::active() => {
            crate::serial::yield_turn(block());
            frame.rax = 0;
        }
        nr::SET_TID_ADDRESS => thread::set_tid_address(frame, row),
        nr::RT_SIGPROCMASK => thread::sigprocmask(frame, row),
        nr::RT_SIGACTION => {
            let dropped = crate::sent::drops(&frame.args());
            by_class(frame, row);
            if frame.rax == 0 && frame.rdi as u32 == SIGCHLD {
                crate::waits::note_discards();
            }
            if frame.rax == 0
                && let Some(signal) = dropped
            {
                crate::sent::dropped(signal);
            }
        }
        nr::SIGALTSTACK => sigaltstack(frame),
        nr::ALARM | nr::SETITIMER | nr::TIMER_CREATE | nr::TIMER_SETTIME | nr::TIMER_DELETE => {
            crate::timing::set(frame, row);
        }
        nr::SETRLIMIT | nr::PRLIMIT64 | nr::SCHED_SETAFFINITY => {
            crate::settings::ask(&frame.args(), row);
            call::input(frame, row);
        }
        nr::NANOSLEEP | nr::CLOCK_NANOSLEEP => {
            crate::sleep::begin(frame, row);
            call::input(frame, row);
            crate::sleep::wake(frame);
        }
        nr::PRCTL if crate::annotation::prctl(frame) => {}
        nr::PRCTL if crate::orphan::prctl(frame) => {}
        nr::PRCTL if crate::dumpable::prctl(frame) || crate::seccomp::prctl(frame) => {}
        nr::SECCOMP => crate::seccomp::seccomp(frame),
        nr::TGKILL if changes_ids_of_threads(frame) => {
            crate::gate::rpc(number::FAILED, failed::IDS_OF_THREADS, 0, 0);
            by_class(frame, row);
        }
        nr::CHROOT => {
            by_class(frame, row);
            if frame.rax == 0 && !leads() && private().shares_files.get() == 0 {
                crate::files::follow_root();
            }
        }
        number if is_ordered(number) => {
            if leads() && memory::is_made(number, &frame.args()) {
                crate::serial::gives_way(block());
            }
            memory::ordered(frame, row);
            if private().kin.get() == kin::IS_TO_JOIN {
                thread::kin::join(block());
            }
        }
        nr::MPROTECT | nr::PKEY_MPROTECT if crate::shared::is_protected(frame) => {}
        nr::OPEN if only_reads(frame.rsi) => call::input(frame, row),
        nr::OPENAT if only_reads(frame.rdx) => call::input(frame, row),
        _ => by_class(frame, row),
    }
}

fn by_class(frame: &mut Frame, row: &'static Row) {
    if let Support::Refused(errno) = row.support {
        refused(row.nr as u64, 0);
        frame.rax = (-(errno as i64)) as u64;
        return;
    }
    let args = frame.args();
    let mut class = row.class;
    if row
        .args
        .iter()
        .any(|a| a.kind == geryon_abi::row::Kind::ByCommand)
    {
        let value = table::command_of(row.nr as u64, &args);
        match table::command(row.nr as u64, value) {
            Some(c) => class = c.class,
            None => return refuse_command(frame, row, value),
        }
    }
    match class {
        Class::Local => {
            crate::serial::passes(block());
            frame.rax = real(row.nr as u64, args) as u64;
            if row.nr as u64 == nr::PRCTL && args[0] as u32 == PR_SET_NAME {
                crate::proc_files::named_by_itself();
            }
        }
        Class::Memory => {
            if row.nr as u64 == nr::MADVISE && matches!(args[2] as u32, DONTFORK | WIPEONFORK) {
                private().forks_apart.set(1);
            }
            crate::serial::passes(block());
            frame.rax = real(row.nr as u64, args) as u64;
            crate::access::mappings_change();
        }
        Class::Input => call::input(frame, row),
        Class::Output | Class::Each | Class::Lifecycle => call::output(frame, row),
        Class::Refused => refuse_command(frame, row, table::command_of(row.nr as u64, &args)),
    }
}

/// Is this glibc's signal to a thread that is to change its user or group, too? What it does around that in words
/// of the thread's own depends on what each thread waits in, and in a follower a hooked function does not wait
/// as its original does.
fn changes_ids_of_threads(frame: &Frame) -> bool {
    const SIGSETXID: u64 = 33;
    let p = private();
    frame.rdx as u32 as u64 == SIGSETXID && p.serial.get() == 0 && p.replicas > 1
}

/// A command of a multiplexed call that has no row, or is refused.
fn refuse_command(frame: &mut Frame, row: &Row, command: u64) {
    refused(row.nr as u64, command);
    let errno = table::sub_table(row.nr as u64).map_or(EINVAL, |t| -(t.errno as i64));
    frame.rax = errno as u64;
}

/// Opening changes nothing outside unless it writes, creates or truncates.
fn only_reads(flags: u64) -> bool {
    const ACCMODE: u64 = 3;
    const CREAT: u64 = 0o100;
    const TRUNC: u64 = 0o1000;
    const TMPFILE: u64 = 0o20_000_000;
    flags & (ACCMODE | CREAT | TRUNC | TMPFILE) == 0
}

/// The kernel sees the agent's stack pointer: whether the program is on its alternate stack is
/// decided here, by the program's.
fn sigaltstack(frame: &mut Frame) {
    const ON_STACK: u32 = 1;
    const EPERM: i64 = -1;
    let args = frame.args();
    let mut now = [0u64; 3];
    real(nr::SIGALTSTACK, [0, now.as_mut_ptr() as u64, 0, 0, 0, 0]);
    let on_it = now[2] != 0 && frame.rsp.wrapping_sub(now[0]) <= now[2] && frame.rsp > now[0];
    if on_it && args[0] != 0 {
        frame.rax = EPERM as u64;
        return;
    }
    let mut asked = [0u64; 3];
    // (Before the call: the old one may be told in the same place.)
    if args[0] != 0 {
        // (In a handler of SIGSEGV a fault of ours would cost the program its handler.)
        // SAFETY: inside `guarded`.
        guarded(|| asked = unsafe { (args[0] as *const [u64; 3]).read_unaligned() });
    }
    let result = real(nr::SIGALTSTACK, args);
    if result == 0 && args[0] != 0 {
        block().altstack = asked;
    }
    if result == 0 && on_it && args[1] != 0 {
        let flags = (args[1] + 8) as *mut u32;
        // SAFETY: inside `guarded`.
        guarded(|| unsafe { flags.write_unaligned(flags.read_unaligned() | ON_STACK) });
    }
    frame.rax = result as u64;
}
