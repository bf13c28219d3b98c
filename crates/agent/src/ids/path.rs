//! Paths below /proc that name a process or a thread by its id.

use crate::gate::guarded;
use geryon_abi::row::{Kind, Len, Row};

const PROC: &[u8] = b"/proc/";
const TASK: &[u8] = b"task/";

/// The path with the ids that `named` gives for those in it; where there are none, or it is no such path, as
/// it is. `copy` holds it then.
pub fn with(at: u64, copy: &mut [u8], named: &impl Fn(u32) -> Option<u32>) -> u64 {
    let mut path = [0u8; 128];
    let Some(path) = read(at, &mut path) else {
        return at;
    };
    super::content::opened();
    match translated(path, copy, named) {
        Some(true) => copy.as_ptr() as u64,
        _ => at,
    }
}

/// Leader: a call has read a link, and has written so many bytes: where that is a link of /proc which says who
/// asks, it says so with the ids that `shown` gives. The new length.
pub fn shown_link(
    row: &Row,
    args: &[u64; 6],
    result: i64,
    shown: impl Fn(u32) -> u32,
) -> Option<i64> {
    let out = |i: &usize| matches!(row.args[*i].kind, Kind::Out(Len::Ret(_)));
    let into = (0..row.args.len()).find(out)?;
    let from = into.checked_sub(1)?;
    let Kind::Out(Len::Ret(room)) = row.args[into].kind else {
        return None;
    };
    let mut name = [0u8; 32];
    let name = read(args[from], &mut name).filter(|_| row.args[from].kind == Kind::Path)?;
    if name != b"/proc/self" && name != b"/proc/thread-self" {
        return None;
    }
    let mut link = [0u8; 64];
    let link = link.get_mut(..result as usize)?;
    let mut text = [0u8; 64];
    let mut out = Text {
        to: &mut text,
        len: 0,
    };
    let whole = guarded(|| {
        // SAFETY: inside `guarded`; the kernel has just written so much.
        unsafe {
            link.as_mut_ptr()
                .copy_from(args[into] as *const u8, link.len())
        };
    });
    for (k, part) in link.split(|c| *c == b'/').enumerate() {
        if k != 0 {
            out.put(b"/")?;
        }
        match number(part) {
            Some(id) => out.put_number(shown(id))?,
            None => out.put(part)?,
        }
    }
    let len = out.len.min(args[room as usize] as usize);
    let there = whole
        && guarded(|| {
            // SAFETY: inside `guarded`.
            unsafe { (args[into] as *mut u8).copy_from(text.as_ptr(), len) };
        });
    there.then_some(len as i64)
}

/// A path below /proc that is not longer than so.
pub fn read(at: u64, to: &mut [u8]) -> Option<&[u8]> {
    let mut len = None;
    guarded(|| {
        for (i, byte) in to.iter_mut().enumerate() {
            // SAFETY: inside `guarded`.
            *byte = unsafe { ((at + i as u64) as *const u8).read() };
            if i < PROC.len() && *byte != PROC[i] {
                return;
            }
            if *byte == 0 {
                len = Some(i);
                return;
            }
        }
    });
    len.map(|len| &to[..len])
}

/// Writes a path with other ids. Was any of them another? None: it is too long.
fn translated(path: &[u8], to: &mut [u8], named: &impl Fn(u32) -> Option<u32>) -> Option<bool> {
    let mut out = Text { to, len: 0 };
    let mut changed = false;
    let mut rest = path.strip_prefix(PROC)?;
    out.put(PROC)?;
    let mut wants_id = true;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|c| *c == b'/')
            .map_or(rest.len(), |i| i + 1);
        let (part, behind) = rest.split_at(end);
        let name = part.strip_suffix(b"/").unwrap_or(part);
        match number(name).filter(|_| wants_id) {
            Some(id) => {
                let own = named(id).unwrap_or(id);
                changed |= own != id;
                out.put_number(own)?;
                out.put(&part[name.len()..])?;
            }
            None => out.put(part)?,
        }
        wants_id = part == TASK;
        rest = behind;
    }
    out.put(&[0])?;
    Some(changed)
}

/// An id, as it stands in a path.
pub fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 9 || digits[0] == b'0' {
        return None;
    }
    digits.iter().try_fold(0, |n, c| {
        c.is_ascii_digit().then(|| n * 10 + u32::from(c - b'0'))
    })
}

/// A text that is put together.
pub struct Text<'a> {
    /// Where it lies.
    pub to: &'a mut [u8],
    /// How much of it there is.
    pub len: usize,
}

impl Text<'_> {
    /// Append bytes, if there is room.
    pub fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len + bytes.len();
        self.to.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }

    /// Append a number.
    pub fn put_number(&mut self, number: u32) -> Option<()> {
        let mut digits = [0; 10];
        let count = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut rest = number;
        for digit in digits[..count].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.put(&digits[..count])
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    /// Does the path become the other one? None: it stays as it is.
    fn becomes(path: &str, other: Option<&str>) -> bool {
        let mut to = [0; 64];
        let named = |id| (id == 17 || id == 18).then_some(id + 1000);
        match (translated(path.as_bytes(), &mut to, &named), other) {
            (Some(true), Some(other)) => to.starts_with(other.as_bytes()) && to[other.len()] == 0,
            (Some(true), None) => false,
            (_, other) => other.is_none(),
        }
    }

    #[test]
    fn processes_and_threads_are_named_by_their_ids() {
        for (path, other) in [
            ("/proc/17/stat", "/proc/1017/stat"),
            ("/proc/17", "/proc/1017"),
            ("/proc/self/task/18/comm", "/proc/self/task/1018/comm"),
            ("/proc/17/task/18", "/proc/1017/task/1018"),
            ("/proc/17/fd/18", "/proc/1017/fd/18"),
        ] {
            assert!(becomes(path, Some(other)), "{path}");
        }
    }

    #[test]
    fn other_numbers_are_none_of_them() {
        for path in [
            "/proc/self/fd/17",
            "/proc/16/fd/17",
            "/tmp/17",
            "/proc/017",
            "/proc/170",
        ] {
            assert!(becomes(path, None), "{path}");
        }
        const LONG: &str = "/proc/17/a-path-that-is-longer-than-the-room-that-there-is-for-it-here";
        assert!(becomes(LONG, None));
    }
}
