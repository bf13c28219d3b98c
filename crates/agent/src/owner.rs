//! Who gets a descriptor's signals (F_SETOWN): the kernel keeps a process or a thread of the replica that led then.

use crate::gate::real;
use crate::ids::{mine, shown_as};
use geryon_abi::table::nr;

const F_SETOWN_EX: u64 = 15;
const F_GETOWN_EX: u64 = 16;
/// A thread or a process, in struct f_owner_ex. (A group stays what it is.)
const OF_ONE: [i32; 2] = [0, 1];

/// New leader, before anybody leads: if the descriptor's signals went to one of the former's, they go to that of this one.
pub fn is_followed(fd: u64) {
    let mut owner = [0i32; 2];
    let at = owner.as_mut_ptr() as u64;
    if real(nr::fcntl, [fd, F_GETOWN_EX, at, 0, 0, 0]) != 0 {
        return;
    }
    // SAFETY: the kernel has written it.
    let [kind, theirs] = unsafe { (&raw const owner).read_volatile() };
    if theirs <= 0 || !OF_ONE.contains(&kind) {
        return;
    }
    if let Some(own) = mine(shown_as(theirs as u32)).filter(|own| *own != theirs as u32) {
        let new = [kind, own as i32];
        let at = new.as_ptr() as u64;
        real(nr::fcntl, [fd, F_SETOWN_EX, at, 0, 0, 0]);
    }
}
