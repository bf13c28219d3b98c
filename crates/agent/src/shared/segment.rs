//! Segments of System V. Each replica maps an object of its own, the leader, too: the segment itself is the monitor's
//! to fill, when nobody of the program has it attached any more. (What is stored there by processes that are not
//! Geryon's nobody sees.)

use super::ranges::Ranges;
use crate::gate::{real, rpc};
use crate::state::private;
use core::sync::atomic::{AtomicU64, Ordering};
use geryon_abi::layout::rpc as number;
use geryon_abi::table::nr;

const SHM_RDONLY: u64 = 0o10000;
const SHM_RND: u64 = 0o20000;
const SHM_REMAP: u64 = 0o40000;
const SHMLBA: u64 = 4096;
const EAGAIN: i64 = -11;
const EINVAL: i64 = -22;

/// Where this process has some attached.
static ATTACHED: Ranges = Ranges::new();
/// How long the one is that is being attached.
static BYTES: AtomicU64 = AtomicU64::new(0);

/// How many bytes are attached there.
pub fn bytes_at(start: u64) -> Option<u64> {
    ATTACHED.bytes_at(start)
}

/// Nothing is any more.
pub fn forget(start: u64, len: u64) {
    ATTACHED.remove(start, len);
}

/// The length of an object.
pub fn bytes_of(fd: u64) -> u64 {
    const SIZE_WORD: usize = 6;
    let mut status = [0u64; 18];
    real(nr::fstat, [fd, status.as_mut_ptr() as u64, 0, 0, 0, 0]);
    BYTES.store(status[SIZE_WORD], Ordering::SeqCst);
    status[SIZE_WORD]
}

/// Leader: which object is to be attached? 0: the segment itself; negative: an errno. (May it be? The kernel is
/// asked for the segment itself.)
pub fn ask(args: &[u64; 6]) -> i64 {
    const MOMENT: u64 = 5_000_000;
    if private().replicas == 1 {
        return 0;
    }
    if args[2] & SHM_REMAP != 0 || (!args[1].is_multiple_of(SHMLBA) && args[2] & SHM_RND == 0) {
        return EINVAL;
    }
    let tried = real(nr::shmat, [args[0], 0, args[2] & !SHM_RND, 0, 0, 0]);
    if (-4095..0).contains(&tried) {
        return tried;
    }
    real(nr::shmdt, [tried as u64, 0, 0, 0, 0, 0]);
    loop {
        let answer = rpc(number::ATTACH, args[0], args[2], 0);
        if answer != EAGAIN {
            return answer;
        }
        crate::wait::pause(MOMENT);
    }
}

/// Leader: attach it, or detach what begins there.
pub fn lead(nr: u64, args: &[u64; 6], object: u32) -> i64 {
    const FIXED_NOREPLACE: u64 = 0x10_0000;
    if nr == nr::shmdt {
        return detach(args[0]);
    }
    let at = args[1] & !(SHMLBA - 1);
    let how = if at == 0 { 0 } else { FIXED_NOREPLACE };
    match attach(at, how, args[2], object) {
        // As shmat says it.
        -17 => EINVAL,
        result => result,
    }
}

/// Follower: attach it where the leader has.
pub fn attach_at(at: u64, flags: u64, object: u32) -> i64 {
    const FIXED: u64 = 0x10;
    attach(at, FIXED, flags, object)
}

fn attach(at: u64, how: u64, flags: u64, object: u32) -> i64 {
    const SHARED: u64 = 1;
    const READ: u64 = 1;
    const READ_WRITE: u64 = 3;
    let protection = if flags & SHM_RDONLY != 0 {
        READ
    } else {
        READ_WRITE
    };
    let result = super::map([at, 0, protection, SHARED | how, u64::MAX, 0], object);
    if !(-4095..0).contains(&result) {
        ATTACHED.add(result as u64, BYTES.load(Ordering::SeqCst));
    }
    result
}

/// Detach what begins there.
pub fn detach(at: u64) -> i64 {
    match bytes_at(at) {
        Some(len) => real(nr::munmap, [at, len, 0, 0, 0, 0]),
        None => EINVAL,
    }
}
