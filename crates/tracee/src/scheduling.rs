//! How threads are scheduled: policy, niceness, priority, and the priority of their input and output.

use crate::Pid;

/// struct sched_attr, and what ioprio_get says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    attributes: Attributes,
    io: i32,
}

/// struct sched_attr of Linux 5.3 and newer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

const IOPRIO_WHO_PROCESS: i32 = 1;

/// How a thread is scheduled. None when it is gone.
pub fn scheduling(tid: Pid) -> Option<Scheduling> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: the kernel writes at most `size` bytes to the structure, which outlives the call.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size, 0) };
    // SAFETY: plain numbers.
    let io = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, tid) };
    let io = i32::try_from(io).ok()?;
    (got == 0 && io >= 0).then_some(Scheduling { attributes, io })
}

/// Schedule a thread so. What may not be granted to it (a lower niceness, without privilege) it goes without.
pub fn set_scheduling(tid: Pid, to: Scheduling) {
    let now = scheduling(tid);
    if now.is_some_and(|n| n.attributes != to.attributes) {
        // SAFETY: the kernel reads the structure, which outlives the call.
        unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const to.attributes, 0) };
    }
    if now.is_some_and(|n| n.io != to.io) {
        // SAFETY: plain numbers.
        unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, to.io) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_scheduled_as_another_one() {
        let test = || {
            let mut wanted = scheduling(0).expect("this thread lives");
            wanted.attributes.nice += 3;
            wanted.attributes.policy = libc::SCHED_BATCH as u32;
            wanted.io = 2 << 13 | 6;
            set_scheduling(0, wanted);
            assert_eq!(scheduling(0), Some(wanted));
        };
        std::thread::spawn(test).join().expect("it does not panic");
        assert_eq!(scheduling(1 << 29), None);
    }
}
