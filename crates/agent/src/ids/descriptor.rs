//! What a descriptor is open on.

use super::path::Text;
use crate::gate::real;
use geryon_abi::table::nr;

const PROC_MAGIC: u64 = 0x9fa0;

/// Is it a file below /proc?
pub fn is_of_proc(fd: u64) -> bool {
    let mut about = [0u64; 15];
    real(nr::fstatfs, [fd, about.as_mut_ptr() as u64, 0, 0, 0, 0]) == 0 && about[0] == PROC_MAGIC
}

/// What a descriptor is open on: the length of its name.
pub fn link_of(fd: u64, link: &mut [u8]) -> Option<usize> {
    let mut name = [0; 32];
    let mut text = Text {
        to: &mut name,
        len: 0,
    };
    text.put(b"/proc/self/fd/")?;
    text.put_number(fd as u32)?;
    text.put(&[0])?;
    let (at, room) = (link.as_mut_ptr() as u64, link.len() as u64);
    let len = real(nr::readlink, [name.as_ptr() as u64, at, room, 0, 0, 0]);
    Some(len.max(0) as usize)
}
