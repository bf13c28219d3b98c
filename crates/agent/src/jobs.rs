//! Process groups and sessions. A leader makes them as natively; a follower makes each session as its leader does, so
//! that its children are in it. In the session that all share there is one of each group, the leader's, whose number
//! a terminal and other programs know: who takes over enters it. In another session each replica has its own.

use crate::gate::{real, rpc};
use crate::state::{header, leads};
use core::sync::atomic::Ordering;
use geryon_abi::layout::{rpc as number, who};
use geryon_abi::table::nr;

/// setpgid's number.
pub const SETPGID: u16 = nr::setpgid as u16;
/// setsid's.
pub const SETSID: u16 = nr::setsid as u16;
const GETSID: u64 = nr::getsid;

/// Follower: the leader has made a session, or has put a process into a group. (Or the lost leader has, and nobody was
/// told.)
/// `mine`: which process of this replica the program calls so.
pub fn follow(nr: u16, args: &[u64; 6], mine: impl Fn(u32) -> Option<u32>) {
    let own = |id: u64| match id as u32 {
        0 => Some(0),
        id => mine(id).map(u64::from),
    };
    if nr == SETSID {
        real(nr.into(), [0; 6]);
    } else if is_apart()
        && let (Some(process), Some(group)) = (own(args[0]), own(args[1]))
    {
        real(nr.into(), [process, group, 0, 0, 0, 0]);
    }
}

/// Is it in another session than its leader? (Or than that was, in whose place it leads.)
fn is_apart() -> bool {
    let session = |of: u64| real(GETSID, [of, 0, 0, 0, 0, 0]);
    let leader = header().open.leader_pid.load(Ordering::Relaxed);
    let leaders = session(leader.into());
    match leads() || leaders < 0 {
        true => rpc(number::WHO, 0, who::APART, 0) != 0,
        false => leaders != session(0),
    }
}

/// Who has taken over is where the lost leader was.
pub fn join() {
    let group = rpc(number::WHO, 0, who::JOINS, 0);
    if group > 0 {
        real(SETPGID.into(), [0, group as u64, 0, 0, 0, 0]);
        moved(0);
    }
}

/// Leader that has taken over: the process that the program calls so is in a group that it was put into.
pub fn moved(id: u64) {
    rpc(number::WHO, id, who::MOVED, 0);
}
