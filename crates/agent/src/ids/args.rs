//! Arguments of calls in which ids stand, with those that the kernel is to be given. What lies in memory is
//! the program's: where an id stands there, the kernel is shown a copy.

use super::credentials;
use crate::gate::{guarded, rpc};
use geryon_abi::layout::{Block, MAX_WITH_ID, rpc as number, who};
use geryon_abi::row::{Kind, Row};
use geryon_abi::table::kind_of;

/// Offset of the thread in struct sigevent, and of what says that there is one.
const SIGEVENT_THREAD: (u64, u64) = (16, 12);
const SIGEV_THREAD_ID: u32 = 4;
const SIGEVENT_BYTES: u64 = 64;
const CAP_HEADER_BYTES: u64 = 8;

/// The call was made: what the kernel has written to a copy belongs to the program.
pub fn give_back(row: &Row, shown: &[u64; 6], given: &[u64; 6]) {
    for i in 0..row.args.len() {
        if given[i] == shown[i] {
            continue;
        }
        if matches!(row.args[i].kind, Kind::MmsghdrIn(_)) {
            credentials::give_back(shown[i], given[i]);
        }
        if row.args[i].kind == Kind::CapHeader {
            let (from, to) = (given[i] as *const u32, shown[i] as *mut u32);
            guarded(|| {
                // SAFETY: inside `guarded`.
                unsafe {
                    let version = from.read_unaligned();
                    if to.read_unaligned() != version {
                        to.write_unaligned(version);
                    }
                }
            });
        }
    }
}

/// May an id stand in the arguments of this call?
pub fn has_ids(row: &Row) -> bool {
    row.args.iter().any(|a| {
        matches!(
            a.kind,
            Kind::Id
                | Kind::IdIf(..)
                | Kind::Group
                | Kind::InId(..)
                | Kind::CapHeader
                | Kind::Sigevent
                | Kind::MsghdrIn
                | Kind::MmsghdrIn(_)
                | Kind::Path
                | Kind::ByCommand
        )
    })
}

/// The arguments with the ids that `named` gives for those that the program knows. (`copies`: the thread's
/// block has room for what lies in memory.) None: it gives none for
/// one of them, or the call is about a group or a user.
pub fn with(
    row: &Row,
    args: &[u64; 6],
    copies: &mut Block,
    named: impl Fn(u32) -> Option<u32>,
) -> Option<[u64; 6]> {
    let mut given = *args;
    for i in 0..row.args.len() {
        let at = args[i];
        let kind = kind_of(row, i, args);
        match kind {
            Kind::Id | Kind::Group => given[i] = whom(at, kind == Kind::Group, &named)?,
            Kind::IdIf(arg, value) if args[arg as usize] as u32 == value => {
                given[i] = whom(at, false, &named)?;
            }
            Kind::IdIf(..) => return None,
            Kind::InId(len, offset) => {
                given[i] = in_copy(at, len as u64, offset as u64, copies, &named)?;
            }
            Kind::CapHeader => given[i] = in_copy(at, CAP_HEADER_BYTES, 4, copies, &named)?,
            Kind::Sigevent if is_for_thread(at) => {
                given[i] = in_copy(at, SIGEVENT_BYTES, SIGEVENT_THREAD.0, copies, &named)?;
            }
            Kind::MsghdrIn => given[i] = credentials::in_message(at, copies, &named).unwrap_or(at),
            Kind::MmsghdrIn(n) => {
                let n = n as usize;
                (given[i], given[n]) = credentials::in_messages(at, args[n], copies, &named);
            }
            Kind::Path => given[i] = super::path::with(at, &mut copies.path, &named),
            _ => {}
        }
    }
    Some(given)
}

/// Whom an argument names. Register halves that the kernel does not look at stay as they are.
fn whom(arg: u64, group: bool, named: &impl Fn(u32) -> Option<u32>) -> Option<u64> {
    let id = arg as u32 as i32;
    match id {
        0 | -1 => Some(arg),
        1.. if group => match group_there(id as u32) {
            // One that is to be made.
            0 => Some(named(id as u32)? as u64),
            there => Some(there.into()),
        },
        1.. => Some(named(id as u32)? as u64),
        _ => Some(-i64::from(group_of(id.unsigned_abs())) as u64),
    }
}

/// Which process group the program means.
fn group_of(id: u32) -> u32 {
    rpc(number::WHO, id.into(), who::GROUP, 0) as u32
}

/// The same; 0: nobody is in it.
pub fn group_there(id: u32) -> u32 {
    rpc(number::WHO, id.into(), who::GROUP_THERE, 0) as u32
}

/// Does a timer ring for one thread?
fn is_for_thread(at: u64) -> bool {
    let mut how = 0;
    guarded(|| {
        // SAFETY: inside `guarded`.
        how = unsafe { ((at + SIGEVENT_THREAD.1) as *const u32).read_unaligned() };
    });
    at != 0 && how == SIGEV_THREAD_ID
}

/// The address of a copy of so many bytes in which the id at `offset` is another. (What cannot be read is
/// left to the kernel.)
fn in_copy(
    at: u64,
    len: u64,
    offset: u64,
    copies: &mut Block,
    named: &impl Fn(u32) -> Option<u32>,
) -> Option<u64> {
    let copy = &mut copies.structure;
    let there = at != 0
        && guarded(|| {
            // SAFETY: inside `guarded`; no structure in the table is larger than the room.
            unsafe {
                copy.as_mut_ptr()
                    .copy_from(at as *const u8, (len as usize).min(MAX_WITH_ID));
            }
        });
    if !there {
        return Some(at);
    }
    let id = copy.get_mut(offset as usize..offset as usize + 4)?;
    let known = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
    let own = whom(known.into(), false, named)? as u32;
    id.copy_from_slice(&own.to_le_bytes());
    Some(if own == known {
        at
    } else {
        copy.as_ptr() as u64
    })
}
