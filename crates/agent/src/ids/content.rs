//! What files below /proc say of a process (stat, status): the kernel calls it, its parent and its groups by other ids than
//! the program does, where another replica leads than at first. Who reads such a file from somewhere reads on there in
//! the text that the program would have been given.

use super::descriptor::{is_of_proc, link_of};
use super::path::{Text, number as id_in};
use crate::gate::{guarded, real};

use crate::undo::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};
use geryon_abi::table::nr;

const READ: u16 = nr::read as u16;
const PREAD: u16 = nr::pread64 as u16;
const LSEEK: u64 = nr::lseek;
const SET: u64 = 0;
/// A file that is longer than this is none of them.
const LONGEST: usize = 2048;
/// Each of a few ids may have more digits.
const MORE: usize = 128;

/// May the process have a descriptor of a file below /proc?
static OPENED: AtomicBool = AtomicBool::new(false);

/// Whom an id in such a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A process or thread.
    Itself,
    /// Its parent.
    Parent,
    /// A process group or session.
    Group,
}

/// A file below /proc was opened, or is open.
pub fn opened() {
    OPENED.store(true, Ordering::Relaxed);
}

/// May a descriptor be of such a file?
pub fn may_be_open() -> bool {
    OPENED.load(Ordering::Relaxed)
}

/// Leader: a call has read so many bytes. If they are of such a file they are what the program is to see, which `shown` gives
/// for each id, as is the number of them.
pub fn shown(
    nr: u16,
    args: &[u64; 6],
    result: i64,
    shown: impl Fn(Whom, u32) -> u32,
) -> Option<i64> {
    if !may_be_open() || !matches!(nr, READ | PREAD) || !is_of_proc(args[0]) {
        return None;
    }
    let [fd, buffer, most, at, ..] = *args;
    let mut link = [0u8; 64];
    let len = link_of(fd, &mut link)?;
    let name = link.get(..len)?.rsplit(|c| *c == b'/').next()?;
    let (mut raw, mut text) = ([0u8; LONGEST], [0u8; LONGEST + MORE]);
    let len = real(
        PREAD.into(),
        [fd, raw.as_mut_ptr() as u64, LONGEST as u64, 0, 0, 0],
    );
    let raw = raw.get(..usize::try_from(len).ok().filter(|n| *n < LONGEST)?)?;
    let mut out = Text {
        to: &mut text,
        len: 0,
    };
    match name {
        b"stat" => in_stat(raw, &mut out, shown)?,
        b"status" => in_status(raw, &mut out, shown)?,
        _ => return None,
    }
    let len = out.len;
    let from = match nr {
        READ => offset_of(fd) - result,
        _ => at as i64,
    };
    let rest = text.get(usize::try_from(from).ok()?.min(len)..len)?;
    let rest = rest.get(..rest.len().min(most as usize))?;
    let there = guarded(|| {
        // SAFETY: inside `guarded`.
        unsafe { (buffer as *mut u8).copy_from(rest.as_ptr(), rest.len()) };
    });
    if !there {
        return None;
    }
    let count = rest.len() as i64;
    if nr == READ && count != result {
        real(LSEEK, [fd, (from + count) as u64, SET, 0, 0, 0]);
    }
    Some(count)
}

/// "pid (name) state parent group session terminal foreground ...": the name may hold anything.
fn in_stat(raw: &[u8], out: &mut Text, shown: impl Fn(Whom, u32) -> u32) -> Option<()> {
    let end = raw.iter().rposition(|c| *c == b')')?;
    let (before, behind) = raw.split_at(end);
    let space = before.iter().position(|c| *c == b' ')?;
    out.put_number(shown(Whom::Itself, id_in(&before[..space])?))?;
    out.put(&before[space..])?;
    for (i, field) in behind.split(|c| *c == b' ').enumerate() {
        if i != 0 {
            out.put(b" ")?;
        }
        let whom = match i {
            2 => Some(Whom::Parent),
            3 | 4 | 6 => Some(Whom::Group),
            _ => None,
        };
        match whom.zip(id_in(field)) {
            Some((whom, id)) => out.put_number(shown(whom, id))?,
            None => out.put(field)?,
        }
    }
    Some(())
}

/// Lines of "Key:\tvalue". (Of a namespace in another one the values are several.)
fn in_status(raw: &[u8], out: &mut Text, shown: impl Fn(Whom, u32) -> u32) -> Option<()> {
    for line in raw.split_inclusive(|c| *c == b'\n') {
        let colon = line.iter().position(|c| *c == b':').unwrap_or(0);
        let whom = match &line[..colon] {
            b"Tgid" | b"Pid" | b"NStgid" | b"NSpid" => Some(Whom::Itself),
            b"PPid" => Some(Whom::Parent),
            b"NSpgid" | b"NSsid" => Some(Whom::Group),
            _ => None,
        };
        let value = line.get(colon + 2..line.len().saturating_sub(1));
        match whom.zip(value.and_then(id_in)) {
            Some((whom, id)) => {
                out.put(&line[..colon + 2])?;
                out.put_number(shown(whom, id))?;
                out.put(b"\n")?;
            }
            None => out.put(line)?,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rewrite = fn(&[u8], &mut Text, fn(Whom, u32) -> u32) -> Option<()>;

    /// Each id is 1000 more, a parent's 2000, a group's 3000.
    fn becomes(with: Rewrite, raw: &str, other: &str) {
        let shown = |whom, id| match whom {
            Whom::Itself => id + 1000,
            Whom::Parent => id + 2000,
            Whom::Group => id + 3000,
        };
        let mut to = [0u8; 256];
        let mut out = Text {
            to: &mut to,
            len: 0,
        };
        assert_eq!(with(raw.as_bytes(), &mut out, shown), Some(()));
        let len = out.len;
        assert_eq!(core::str::from_utf8(&to[..len]), Ok(other));
    }

    #[test]
    fn a_stat_has_its_ids_in_the_first_fields() {
        becomes(
            in_stat,
            "17 (a b) 9) S 16 15 14 34816 15 4194304 17\n",
            "1017 (a b) 9) S 2016 3015 3014 34816 3015 4194304 17\n",
        );
        becomes(
            in_stat,
            "17 (x) S 0 15 14 0 -1 4194304 17\n",
            "1017 (x) S 0 3015 3014 0 -1 4194304 17\n",
        );
    }

    #[test]
    fn a_status_has_them_in_its_lines() {
        becomes(
            in_status,
            "Name:\t17\nTgid:\t17\nPid:\t18\nPPid:\t16\nTracerPid:\t5\nNSpid:\t18\t2\nNSsid:\t14\nThreads:\t2\n",
            "Name:\t17\nTgid:\t1017\nPid:\t1018\nPPid:\t2016\nTracerPid:\t5\nNSpid:\t18\t2\nNSsid:\t3014\nThreads:\t2\n",
        );
    }
}
