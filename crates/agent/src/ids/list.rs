//! Lists of processes and threads (/proc, and task below it), with the ids that the program knows.

use super::descriptor::{is_of_proc, link_of};
use super::path::{Text, number as id_in};
use crate::gate::{guarded, real};
use geryon_abi::table::nr;

const LSEEK: u64 = nr::lseek;
const SET: u64 = 0;
/// Of struct linux_dirent64.
const OFFSET_AT: usize = 8;
const LEN_AT: usize = 16;
const NAME_AT: usize = 19;
/// An id, and what ends it.
const NAME_BYTES: usize = 11;

/// Leader: a call has read so many bytes of a list. If it is such a list they name whom the program knows as `shown` says, as
/// many as there is room for; what is left out is read next. The number of bytes.
pub fn shown(args: &[u64; 6], result: i64, shown: impl Fn(u32) -> u32) -> Option<i64> {
    let [fd, buffer, most, ..] = *args;
    let mut link = [0u8; 64];
    if !is_of_proc(fd) {
        return None;
    }
    let len = link_of(fd, &mut link)?;
    let path = link.get(..len)?;
    if path != b"/proc" && !path.ends_with(b"/task") {
        return None;
    }
    let mut renamed = (result as usize, None);
    guarded(|| {
        // SAFETY: inside `guarded`; the slice is not kept.
        let list = unsafe {
            core::slice::from_raw_parts_mut(
                buffer as *mut u8,
                (most as u32 as usize).max(renamed.0),
            )
        };
        renamed = renamed_in(list, renamed.0, &shown);
    });
    let (len, rest) = renamed;
    if let Some(offset) = rest {
        real(LSEEK, [fd, offset, SET, 0, 0, 0]);
    }
    Some(len as i64)
}

/// Gives the entries, which are so many bytes of a list with more room, their names. How long it is then, and where it is
/// read on if not all have had room.
fn renamed_in(list: &mut [u8], len: usize, shown: &impl Fn(u32) -> u32) -> (usize, Option<u64>) {
    let (mut len, mut at, mut read_on) = (len, 0, None);
    while let Some((entry, offset)) = entry_in(&list[..len], at) {
        let end = entry.iter().skip(NAME_AT).position(|c| *c == 0);
        let old = entry.len();
        let id = end.and_then(|end| id_in(&entry[NAME_AT..NAME_AT + end]));
        let Some(known) = id.map(shown).filter(|known| Some(*known) != id) else {
            (at, read_on) = (at + old, Some(offset));
            continue;
        };
        let mut name = [0u8; NAME_BYTES];
        let mut text = Text {
            to: &mut name,
            len: 0,
        };
        let _ = text.put_number(known);
        let bytes = text.len + 1;
        let new = (NAME_AT + bytes).next_multiple_of(8).max(old);
        if len + new - old > list.len() {
            // (The kernel takes no buffer that one entry fills.)
            return (at, read_on);
        }
        list.copy_within(at + old..len, at + new);
        let entry = &mut list[at..at + new];
        entry[LEN_AT..LEN_AT + 2].copy_from_slice(&(new as u16).to_ne_bytes());
        entry[NAME_AT..NAME_AT + bytes].copy_from_slice(&name[..bytes]);
        (len, at, read_on) = (len + new - old, at + new, Some(offset));
    }
    (len, None)
}

/// The entry that begins here, and where the list is read on behind it.
fn entry_in(list: &[u8], at: usize) -> Option<(&[u8], u64)> {
    let rest = list.get(at..).filter(|rest| rest.len() > NAME_AT)?;
    let len = u16::from_ne_bytes([rest[LEN_AT], rest[LEN_AT + 1]]);
    let entry = rest.get(..len.into()).filter(|e| e.len() > NAME_AT)?;
    let offset = entry.get(OFFSET_AT..LEN_AT)?.try_into().ok()?;
    Some((entry, u64::from_ne_bytes(offset)))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn list(names: &[&str]) -> Vec<u8> {
        let mut list = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let len = (NAME_AT + name.len() + 1).next_multiple_of(8);
            let mut entry = std::vec![0u8; len];
            entry[OFFSET_AT..LEN_AT].copy_from_slice(&(10 + i as u64).to_ne_bytes());
            entry[LEN_AT..LEN_AT + 2].copy_from_slice(&(len as u16).to_ne_bytes());
            entry[NAME_AT..NAME_AT + name.len()].copy_from_slice(name.as_bytes());
            list.extend(entry);
        }
        list
    }

    /// Each id is 99,990 more; there is so much more room than the list takes.
    fn renamed(names: &[&str], more: usize) -> (Vec<String>, Option<u64>) {
        let mut list = list(names);
        let len = list.len();
        list.resize(len + more, 0xee);
        let (len, read_on) = renamed_in(&mut list, len, &|id| id + 99_990);
        let (mut at, mut found) = (0, Vec::new());
        while let Some((entry, _)) = entry_in(&list[..len], at) {
            let end = entry[NAME_AT..]
                .iter()
                .position(|c| *c == 0)
                .expect("an end");
            found.push(String::from_utf8_lossy(&entry[NAME_AT..NAME_AT + end]).to_string());
            at += entry.len();
        }
        assert_eq!(at, len, "the entries fill the list");
        (found, read_on)
    }

    #[test]
    fn ids_have_other_names_and_nobody_else_has() {
        let (names, read_on) = renamed(&[".", "..", "pagetypeinfo", "12", "34567", "self"], 64);
        let wanted = [".", "..", "pagetypeinfo", "100002", "134557", "self"];
        assert_eq!((names, read_on), (wanted.map(String::from).to_vec(), None));
    }

    #[test]
    fn who_has_no_room_is_read_next() {
        let (names, read_on) = renamed(&["a", "12", "13", "14"], 8);
        assert_eq!(names, ["a", "100002"]);
        assert_eq!(read_on, Some(11));
    }
}
