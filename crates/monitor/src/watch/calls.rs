//! Threads that sleep in another call than they were to make. A stop takes a thread out of its call, and
//! the call is issued again with what its registers hold by then. The gate compares when the call
//! returns; one that waits for something else now (a futex in another's key, another descriptor) may
//! never return.

use super::{Monitor, View};
use geryon_abi::layout::wait;
use geryon_tracee::Pid;

/// The call in which a thread sleeps, as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asleep {
    args: [u64; 6],
    sp: u64,
    pc: u64,
}

/// What /proc/PID/syscall says; None while the thread runs.
fn parse(text: &str) -> Option<Asleep> {
    let mut words = text.split_whitespace().skip(1);
    let mut word = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let mut args = [0; 6];
    for a in &mut args {
        *a = word()?;
    }
    Some(Asleep {
        args,
        sp: word()?,
        pc: word()?,
    })
}

fn asleep(tid: Pid) -> Option<Asleep> {
    parse(&geryon_tracee::text(format!("/proc/{tid}/syscall")).ok()?)
}

impl Monitor {
    /// Does a thread of the process sleep in the gate with other arguments than it came with?
    pub(super) fn sleeps_wrongly(&mut self, pid: Pid, views: &[View]) -> bool {
        let behind = self.kit.image.symbol("geryon_blocking_end");
        let Ok(memory) = self.memory(pid) else {
            return false;
        };
        views.iter().filter(|v| v.waiting == wait::KERNEL).any(|v| {
            let Some(now) = asleep(v.tid).filter(|s| s.pc == behind) else {
                return false;
            };
            // The gate leaves on the stack where they are.
            let given = memory.word(now.sp).and_then(|at| memory.words::<6>(at));
            // What was read is of one sleep if it has not ended meanwhile.
            given.is_ok_and(|given| given != now.args) && asleep(v.tid) == Some(now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_are_read() {
        let line =
            "202 0x7f37b161c990 0x109 0x70bd 0x0 0x0 0xffffffff 0x2fe52000fb38 0x2fe500008550\n";
        let expected = Asleep {
            args: [0x7f37_b161_c990, 0x109, 0x70bd, 0, 0, 0xffff_ffff],
            sp: 0x2fe5_2000_fb38,
            pc: 0x2fe5_0000_8550,
        };
        assert_eq!(parse(line), Some(expected));
    }

    #[test]
    fn who_runs_is_in_no_call() {
        assert_eq!(parse("running\n"), None);
        assert_eq!(parse("-1 0x7ffd 0x7f37\n"), None);
        assert_eq!(parse(""), None);
    }
}
