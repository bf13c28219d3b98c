//! Who has sent a message (SCM_CREDENTIALS), or is at the other end of a socket (SO_PEERCRED). The kernel takes and tells
//! the id that it knows.

use crate::access::{word32, word64};
use crate::gate::guarded;
use geryon_abi::layout::{Block, MAX_CONTROL, MAX_WITH_ID};
use geryon_abi::table::nr;

const RECVMSG: u16 = nr::recvmsg as u16;
const GETSOCKOPT: u16 = nr::getsockopt as u16;
const RECVMMSG: u16 = nr::recvmmsg as u16;
const SOL_SOCKET: u32 = 1;
const SO_PEERCRED: u32 = 17;
const SCM_CREDENTIALS: u32 = 2;
/// Of struct msghdr.
const CONTROL: u64 = 32;
const CONTROL_LEN: u64 = 40;
const MSGHDR_BYTES: usize = 56;
/// Of struct mmsghdr.
const SENT: u64 = 56;
pub const MMSGHDR_BYTES: u64 = 64;
/// What the kernel takes of an array of such.
const MOST_MESSAGES: u64 = 1024;
/// Of struct cmsghdr: length, level, type; data begins behind it.
const CMSGHDR_BYTES: u64 = 16;
const ID_BYTES: u64 = 4;

const _: () = assert!(MAX_WITH_ID >= MSGHDR_BYTES && MAX_WITH_ID >= MMSGHDR_BYTES as usize);

/// May the call tell such an id?
#[inline(always)]
pub fn are_told(nr: u16) -> bool {
    matches!(nr, RECVMSG | GETSOCKOPT | RECVMMSG)
}

/// The call was made, and has said `result`: the ids that it has told are to be those that `shown` gives.
pub fn show(nr: u16, args: &[u64; 6], result: i64, shown: impl Fn(u32) -> u32) {
    match nr {
        RECVMSG => show_message(args[1], &shown),
        RECVMMSG => {
            for k in 0..result as u64 {
                show_message(args[1] + MMSGHDR_BYTES * k, &shown);
            }
        }
        GETSOCKOPT
            if [args[1], args[2]].map(|a| a as u32) == [SOL_SOCKET, SO_PEERCRED]
                && word32(args[4]).is_some_and(|len| u64::from(len) >= ID_BYTES) =>
        {
            show_id(args[3], &shown);
        }
        _ => {}
    }
}

fn show_message(header: u64, shown: &impl Fn(u32) -> u32) {
    let [from, len] = [CONTROL, CONTROL_LEN].map(|at| word64(header + at).unwrap_or(0));
    if from != 0 {
        each_id(from, len, |at| show_id(at, shown));
    }
}

fn show_id(at: u64, shown: &impl Fn(u32) -> u32) {
    let Some(own) = word32(at) else {
        return;
    };
    let known = match own {
        0 => 0,
        own => shown(own),
    };
    if known != own {
        // SAFETY: inside `guarded`; the kernel has just written it.
        guarded(|| unsafe { (at as *mut u32).write_unaligned(known) });
    }
}

/// Where in control data of so many bytes ids of senders stand.
fn each_id(from: u64, len: u64, mut each: impl FnMut(u64)) {
    let mut at = 0;
    while at + CMSGHDR_BYTES <= len {
        let header = from + at;
        let Some(bytes) = word64(header).filter(|n| (CMSGHDR_BYTES..=len - at).contains(n)) else {
            return;
        };
        let kind = [8, 12].map(|offset| word32(header + offset));
        if kind == [Some(SOL_SOCKET), Some(SCM_CREDENTIALS)] && bytes >= CMSGHDR_BYTES + ID_BYTES {
            each(header + CMSGHDR_BYTES);
        }
        at += bytes.next_multiple_of(8);
    }
}

/// A message that is to be sent: a copy of its header, with a copy of its control data, where an id in that has
/// another name now. (What cannot be read, and what is longer than any that the kernel takes, is left to it.)
pub fn in_message(
    header: u64,
    copies: &mut Block,
    named: &impl Fn(u32) -> Option<u32>,
) -> Option<u64> {
    let [from, len] = [CONTROL, CONTROL_LEN].map(|at| word64(header + at).unwrap_or(0));
    if from == 0 || len < CMSGHDR_BYTES || len > MAX_CONTROL as u64 {
        return None;
    }
    let (structure, control) = (copies.structure.as_mut_ptr(), copies.control.as_mut_ptr());
    let there = guarded(|| {
        // SAFETY: inside `guarded`; there is room for both.
        unsafe {
            structure.copy_from(header as *const u8, MSGHDR_BYTES);
            control.copy_from(from as *const u8, len as usize);
        }
    });
    if !there {
        return None;
    }
    let mut differs = false;
    each_id(control as u64, len, |at| {
        // SAFETY: within the copy.
        let id = unsafe { &mut *(at as *mut [u8; ID_BYTES as usize]) };
        let known = u32::from_le_bytes(*id);
        // (None is called so.)
        let own = (known as i32 > 0).then(|| named(known)).flatten();
        if let Some(own) = own.filter(|own| *own != known) {
            *id = own.to_le_bytes();
            differs = true;
        }
    });
    differs.then(|| {
        // SAFETY: within the copy.
        unsafe {
            let to = structure.add(CONTROL as usize).cast::<u64>();
            to.write_unaligned(control as u64);
        }
        structure as u64
    })
}

/// The same of an array of so many: the array, and how many of it are to be sent. Up to the first such message, and then
/// that one alone: who sends several is told how many were sent.
pub fn in_messages(
    array: u64,
    count: u64,
    copies: &mut Block,
    named: &impl Fn(u32) -> Option<u32>,
) -> (u64, u64) {
    for k in 0..(count as u32 as u64).min(MOST_MESSAGES) {
        match in_message(array + MMSGHDR_BYTES * k, copies, named) {
            Some(copy) if k == 0 => return (copy, 1),
            Some(_) => return (array, k),
            None => {}
        }
    }
    (array, count)
}

/// How much of the message was sent, of which the kernel was shown a copy, belongs to the program.
pub fn give_back(shown: u64, given: u64) {
    if let Some(sent) = word32(given + SENT) {
        // SAFETY: inside `guarded`.
        guarded(|| unsafe { ((shown + SENT) as *mut u32).write_unaligned(sent) });
    }
}
