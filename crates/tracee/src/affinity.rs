//! On which cores threads run, and may run.

use crate::Pid;
use std::collections::BTreeSet;
use std::io::{Error, Result};

/// Masks for so many cores are enough for every kernel.
const MASK_WORDS: usize = 128;
const WORD_BITS: usize = u64::BITS as usize;

/// The cores that a thread (0: this one) may run on.
///
/// # Errors
/// ESRCH when it is gone.
pub fn affinity(tid: Pid) -> Result<BTreeSet<usize>> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the kernel writes within the mask, which outlives the call.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    if written == -1 {
        return Err(Error::last_os_error());
    }
    let is_set = |c: &usize| mask[c / WORD_BITS] & (1 << (c % WORD_BITS)) != 0;
    Ok((0..MASK_WORDS * WORD_BITS).filter(is_set).collect())
}

/// Let a thread run on these cores only.
///
/// # Errors
/// ESRCH when it is gone, EINVAL when none of them is there, EPERM when it belongs to another user.
pub fn set_affinity(tid: Pid, cores: &BTreeSet<usize>) -> Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    for c in cores.iter().filter(|c| **c < MASK_WORDS * WORD_BITS) {
        mask[c / WORD_BITS] |= 1 << (c % WORD_BITS);
    }
    // SAFETY: the kernel reads the mask, which outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid,
            size_of_val(&mask),
            mask.as_ptr(),
        )
    };
    if result == -1 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_of;

    #[test]
    fn a_thread_runs_where_it_may() {
        // A thread of its own, so that others are not bound.
        let test = || {
            let all = affinity(0).expect("this thread lives");
            assert!(!all.is_empty());
            for core in &all {
                let one = BTreeSet::from([*core]);
                set_affinity(0, &one).expect("it is one of them");
                assert_eq!(affinity(0).expect("it lives"), one);
                // SAFETY: asks for a number.
                let tid = unsafe { libc::gettid() };
                assert_eq!(core_of(tid), Some(*core));
            }
            assert!(set_affinity(0, &BTreeSet::new()).is_err());
        };
        std::thread::spawn(test).join().expect("it does not panic");
    }
}
