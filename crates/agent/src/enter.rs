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
use geryon_abi::table::{self, nr};

const SIGCHLD: u32 = 17;
const ENOSYS: i64 = -38;
/// What is said where the table does not know better.
const EINVAL: i64 = -22;
const PR_SET_NAME: u32 = 15;
const DONTFORK: u32 = 10;
const WIPEONFORK: u32 = 18;

/// Called from the assembly entry with the application's registers.
#[unsafe(no_mangle)]
extern "C" fn geryon_on_syscall(frame: &mut Frame) {
    // The kernel looks at 32 bits.
    let number = frame.rax as u32 as u64;
    frame.rax = number;
    block().called = number + 1;
    if block().suspend != 0 && number != nr::futex && number != nr::rt_sigreturn {
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
    crate::secrets::before(frame);
    if !filtered::passes(frame) {
        frame.pad = frame.rflags();
        return;
    }
    thread::ascent::before(frame);
    match table::row(number) {
        // (Calls that change mappings are refused there; a hook gives a pthread function a time of ours.)
        Some(row) if is_ordered(number) || number == nr::futex => dispatch(frame, row),
        Some(row) => {
            if matches!(number, nr::nanosleep | nr::clock_nanosleep) {
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
        nr::mmap | nr::munmap | nr::brk | nr::mremap | nr::shmat | nr::shmdt
    )
}

/// Is nothing outside this replica changed by this call? (A thread may be cancelled where it waits.)
fn is_own_affair(number: u64, args: &[u64; 6]) -> bool {
    number == nr::exit
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
        nr::rt_sigreturn => raise::sigreturn(frame, row),
        nr::clone => thread::clone(frame, row),
        nr::fork => process::fork(frame, row),
        nr::vfork => process::vfork(frame, row),
        nr::clone3 => frame.rax = ENOSYS as u64,
        nr::exit => thread::exit(frame, row),
        nr::exit_group => process::exit_group(frame, row),
        nr::execve | nr::execveat => process::exec(frame, row),
        nr::wait4 | nr::waitid => process::wait(frame, row),
        nr::futex => thread::futex(frame, row),
        nr::futex_waitv | nr::futex_wake | nr::futex_wait | nr::futex_requeue
            if thread::repeats_futex(frame, row) => {}
        nr::sched_yield if crate::serial::active() => {
            crate::serial::yield_turn(block());
            frame.rax = 0;
        }
        nr::set_tid_address => thread::set_tid_address(frame, row),
        nr::rt_sigprocmask => thread::sigprocmask(frame, row),
        nr::rt_sigaction => {
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
        nr::sigaltstack => sigaltstack(frame),
        nr::alarm | nr::setitimer | nr::timer_create | nr::timer_settime | nr::timer_delete => {
            crate::timing::set(frame, row);
        }
        nr::setrlimit | nr::prlimit64 | nr::sched_setaffinity => {
            crate::settings::ask(&frame.args(), row);
            call::input(frame, row);
        }
        nr::nanosleep | nr::clock_nanosleep => {
            crate::sleep::begin(frame, row);
            call::input(frame, row);
            crate::sleep::wake(frame);
        }
        nr::prctl if crate::annotation::prctl(frame) => {}
        nr::prctl if crate::orphan::prctl(frame) => {}
        nr::prctl if crate::dumpable::prctl(frame) || crate::seccomp::prctl(frame) => {}
        nr::seccomp => crate::seccomp::seccomp(frame),
        nr::tgkill if changes_ids_of_threads(frame) => {
            crate::gate::rpc(number::FAILED, failed::IDS_OF_THREADS, 0, 0);
            by_class(frame, row);
        }
        nr::chroot => {
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
        nr::mprotect | nr::pkey_mprotect if crate::shared::is_protected(frame) => {}
        nr::open if only_reads(frame.rsi) => call::input(frame, row),
        nr::openat if only_reads(frame.rdx) => call::input(frame, row),
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
            if row.nr as u64 == nr::prctl && args[0] as u32 == PR_SET_NAME {
                crate::proc_files::named_by_itself();
            }
        }
        Class::Memory => {
            if row.nr as u64 == nr::madvise && matches!(args[2] as u32, DONTFORK | WIPEONFORK) {
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
    real(nr::sigaltstack, [0, now.as_mut_ptr() as u64, 0, 0, 0, 0]);
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
    let result = real(nr::sigaltstack, args);
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
