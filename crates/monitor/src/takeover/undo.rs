//! What an outvoted leader has done outside its memory behind the place where it went wrong: files
//! that it has read on are set back, so that its successor reads the same; what was confirmed is done
//! once; what cannot be taken back ends the run.

use super::Takeover;
use super::flight::{Call, Legacy};
use crate::block_field;
use crate::segment::Segment;
use geryon_abi::layout::{MAX_TAKEN, Taken, block_address};
use geryon_abi::outcome::changes;
use geryon_abi::record::{kind, kind_of};
use geryon_tracee::{Pid, RemoteMemory, descriptor_of};
use std::collections::HashMap;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The digest of a call that was agreed on beforehand, as agents note it.
const CONFIRMED: u64 = 0;

/// What is to be done about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Move the file's offset by so much.
    Back(i64),
    /// The same, where the call moved it from wherever it was. It is not set to what it was: others that
    /// have the file open, the monitor with its messages among them, may have written to it meanwhile.
    Return(i64),
    /// Set the file's offset.
    SetTo(i64),
    /// Set the file's flags.
    Flags(i32),
    /// The successor is given the outcome.
    Give,
    /// It may stay as it is: nobody but its maker can see it.
    Leave,
    /// There is none.
    None,
}

/// Does the call make something new that nobody else knows? (Not dup: a second writer that is left over keeps
/// a pipe's reader from its end.)
pub(super) fn makes_descriptors(nr: u32) -> bool {
    matches!(
        i64::from(nr),
        libc::SYS_socket
            | libc::SYS_socketpair
            | libc::SYS_pipe
            | libc::SYS_pipe2
            | libc::SYS_epoll_create
            | libc::SYS_epoll_create1
            | libc::SYS_inotify_init
            | libc::SYS_inotify_init1
            | libc::SYS_timerfd_create
            | libc::SYS_eventfd
            | libc::SYS_eventfd2
            | libc::SYS_memfd_create
            | libc::SYS_pidfd_open
    )
}

/// What to do about a call behind a cut; `next`: where the thread's first own record behind it starts.
pub(super) fn remedy(note: &Taken, next: u64) -> Remedy {
    if note.confirmed != 0 {
        return if note.start == next {
            Remedy::Give
        } else {
            Remedy::None
        };
    }
    match i64::from(note.nr) {
        libc::SYS_read | libc::SYS_readv => Remedy::Back(note.result.wrapping_neg()),
        libc::SYS_lseek => Remedy::Return(note.was.wrapping_sub(note.result)),
        libc::SYS_getdents | libc::SYS_getdents64 => Remedy::SetTo(note.was),
        // (What its other commands have done is not known.)
        libc::SYS_fcntl if note.was >= 0 => Remedy::Flags(note.was as i32),
        _ if makes_descriptors(note.nr) => Remedy::Leave,
        _ => Remedy::None,
    }
}

/// Undo what the former leader has done behind the cuts (position by slot).
///
/// # Errors
/// What cannot be undone, in words.
pub(super) fn undo(
    t: &mut Takeover,
    cuts: &HashMap<u32, u64>,
    segment: &Segment,
) -> Result<(), String> {
    let memory = t.estate.memories.first().ok_or("its memory is gone")?;
    let mut given = Vec::new();
    let mut acts = Vec::new();
    for l in t
        .estate
        .legacy
        .iter_mut()
        .filter(|l| cuts.contains_key(&l.slot))
    {
        // A call that was under way, behind where it went wrong. All have agreed on an output before.
        let Some(call) = l.call.take_if(|c| c.digest != CONFIRMED) else {
            continue;
        };
        let (note, args) = under_way(memory, l.slot, call)?;
        let row = geryon_abi::table::row(u64::from(note.nr));
        if row.is_none_or(|r| changes(r, &args, note.result)) {
            acts.push((l.slot, note, remedy(&note, u64::MAX)));
        }
    }
    for (slot, cut) in cuts {
        let word = |pos| segment.log_word(*slot as usize, pos).load(Ordering::SeqCst);
        let next = behind_turns(*cut, segment.ring_words() as u64, word);
        for note in notes(memory, *slot, *cut)?.iter().rev() {
            match remedy(note, next) {
                Remedy::Give => given.push((*slot, *note)),
                other => acts.push((*slot, *note, other)),
            }
        }
    }
    if clash(&acts) {
        return Err("two of its threads have moved on in one file".to_owned());
    }
    for (slot, note, what) in acts {
        carry_out(t.predecessor(Some(u64::from(slot))), &note, what)?;
    }
    for (slot, note) in given {
        t.estate.legacy.push(Legacy {
            slot,
            whose: 0,
            call: Some(Call {
                nr: note.nr,
                digest: note.digest,
                result: note.result,
                written: 0,
            }),
            signals: Vec::new(),
        });
    }
    Ok(())
}

/// Do two threads' calls concern one file, one of them with what it was before? Nobody knows which came
/// first.
pub(super) fn clash(acts: &[(u32, Taken, Remedy)]) -> bool {
    let absolute =
        |r: &Remedy| matches!(r, Remedy::Return(_) | Remedy::SetTo(_) | Remedy::Flags(_));
    let concerns = |r: &Remedy| absolute(r) || matches!(r, Remedy::Back(_));
    acts.iter().any(|(slot, note, what)| {
        absolute(what)
            && acts
                .iter()
                .any(|(s, n, w)| s != slot && n.first == note.first && concerns(w))
    })
}

fn carry_out(pid: Pid, note: &Taken, what: Remedy) -> Result<(), String> {
    match what {
        Remedy::Back(by) | Remedy::Return(by) => seek(pid, note, by, libc::SEEK_CUR),
        Remedy::SetTo(to) => seek(pid, note, to, libc::SEEK_SET),
        Remedy::Flags(flags) => set_flags(pid, note, flags),
        Remedy::Leave => Ok(()),
        Remedy::Give | Remedy::None => Err(format!("it has called {}", name(note.nr))),
    }
}

/// A call that has returned, and that is in no record yet; and its arguments.
pub(super) fn under_way(
    memory: &RemoteMemory,
    slot: u32,
    call: Call,
) -> Result<(Taken, [u64; 6]), String> {
    let block = block_address(slot as usize);
    let word = |at: u64| memory.word(at).map_err(|e| e.to_string());
    let frame = word(block + block_field!(frame))?;
    let args = crate::block::arguments(memory, frame).map_err(|e| e.to_string())?;
    let note = Taken {
        result: call.result,
        first: args[0],
        was: word(block + block_field!(was_before))? as i64,
        nr: call.nr,
        ..Taken::default()
    };
    Ok((note, args))
}

/// The first position from `pos` on with no record of a turn: taking one is nothing that a thread does.
/// (While it made a call that all had agreed on, another one may have gone wrong, whose turn came first.)
/// A lost leader may have left anything there: of turns there are no more than the ring has room for.
pub(super) fn behind_turns(from: u64, words: u64, word: impl Fn(u64) -> u64) -> u64 {
    const TURN_WORDS: u64 = 3;
    let mut pos = from;
    while matches!(kind_of(word(pos)), kind::TURN | kind::KIN) && pos.wrapping_sub(from) < words {
        pos = pos.wrapping_add(TURN_WORDS);
    }
    pos
}

/// The notes of a slot about what lies behind `cut`, oldest first.
pub(super) fn notes(memory: &RemoteMemory, slot: u32, cut: u64) -> Result<Vec<Taken>, String> {
    let block = block_address(slot as usize);
    let word = |at: u64| memory.word(at).map_err(|e| e.to_string());
    let count = word(block + block_field!(taken_count))?;
    let kept = count.min(MAX_TAKEN as u64);
    let mut out = Vec::new();
    for n in count - kept..count {
        let at = block + block_field!(taken) + (n % MAX_TAKEN as u64) * size_of::<Taken>() as u64;
        let numbers = word(at + offset_of!(Taken, nr) as u64)?;
        let note = Taken {
            start: word(at)?,
            end: word(at + offset_of!(Taken, end) as u64)?,
            result: word(at + offset_of!(Taken, result) as u64)? as i64,
            first: word(at + offset_of!(Taken, first) as u64)?,
            was: word(at + offset_of!(Taken, was) as u64)? as i64,
            digest: word(at + offset_of!(Taken, digest) as u64)?,
            nr: numbers as u32,
            confirmed: (numbers >> 32) as u32,
        };
        if note.end > cut {
            out.push(note);
        }
    }
    if out.len() == MAX_TAKEN && count > kept {
        return Err(format!(
            "it has made more than {MAX_TAKEN} calls that change something"
        ));
    }
    Ok(out)
}

/// Set the offset of a file that the process has open.
fn seek(pid: Pid, note: &Taken, offset: i64, whence: i32) -> Result<(), String> {
    let cannot = || {
        format!(
            "it has called {} on something that is no file",
            name(note.nr)
        )
    };
    let fd = descriptor_of(pid, note.first as i32).map_err(|_| cannot())?;
    if is_file(&fd) {
        // SAFETY: a plain call.
        let to = unsafe { libc::lseek(fd.as_raw_fd(), offset, whence) };
        return if to < 0 { Err(cannot()) } else { Ok(()) };
    }
    match status(&fd) {
        // /dev/null, zero and random: what was read is not missing.
        Some(s) if is(&s, libc::S_IFCHR) && libc::major(s.st_rdev) == 1 => Ok(()),
        _ => Err(cannot()),
    }
}

/// Set the flags of what the process has open.
fn set_flags(pid: Pid, note: &Taken, flags: i32) -> Result<(), String> {
    let set = descriptor_of(pid, note.first as i32).is_ok_and(|fd| {
        // SAFETY: a plain call.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) == 0 }
    });
    match set {
        true => Ok(()),
        false => Err(format!("it has called {}", name(note.nr))),
    }
}

fn status(fd: &OwnedFd) -> Option<libc::stat> {
    // SAFETY: fstat fills the structure that it is given.
    unsafe {
        let mut s: libc::stat = std::mem::zeroed();
        (libc::fstat(fd.as_raw_fd(), &mut s) == 0).then_some(s)
    }
}

fn is(status: &libc::stat, kind: libc::mode_t) -> bool {
    status.st_mode & libc::S_IFMT == kind
}

/// Something with an offset, whose bytes stay where they are when they are read.
pub(super) fn is_file(fd: &OwnedFd) -> bool {
    const FILES: [libc::mode_t; 3] = [libc::S_IFREG, libc::S_IFDIR, libc::S_IFBLK];
    status(fd).is_some_and(|s| FILES.iter().any(|k| is(&s, *k)))
}

fn name(nr: u32) -> &'static str {
    geryon_abi::table::row(u64::from(nr)).map_or("something unknown", |r| r.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(nr: i64) -> Taken {
        Taken {
            start: 10,
            end: 20,
            result: 7,
            was: 100,
            nr: nr as u32,
            ..Taken::default()
        }
    }

    #[test]
    fn what_was_read_is_read_again() {
        assert_eq!(remedy(&note(libc::SYS_read), 5), Remedy::Back(-7));
        assert_eq!(remedy(&note(libc::SYS_lseek), 5), Remedy::Return(93));
        assert_eq!(remedy(&note(libc::SYS_getdents64), 5), Remedy::SetTo(100));
    }

    #[test]
    fn what_others_have_written_meanwhile_is_not_written_over() {
        use std::io::{Seek, SeekFrom, Write};
        let mut file = crate::image::memfd("shared").unwrap();
        file.write_all(b"before").unwrap();
        // A leader asks where it is, and one whose file it is, too, writes.
        let note = Taken {
            first: file.as_raw_fd() as u64,
            was: 6,
            result: 6,
            ..note(libc::SYS_lseek)
        };
        file.write_all(b"a report").unwrap();
        let own = std::process::id() as Pid;
        carry_out(own, &note, remedy(&note, 5)).unwrap();
        assert_eq!(file.stream_position().unwrap(), 14);
        // It went to the beginning.
        file.seek(SeekFrom::Start(0)).unwrap();
        let note = Taken {
            was: 14,
            result: 0,
            ..note
        };
        carry_out(own, &note, remedy(&note, 5)).unwrap();
        assert_eq!(file.stream_position().unwrap(), 14);
    }

    #[test]
    fn flags_that_were_set_are_set_back() {
        assert_eq!(remedy(&note(libc::SYS_fcntl), 5), Remedy::Flags(100));
        let duplicated = Taken {
            was: -1,
            ..note(libc::SYS_fcntl)
        };
        assert_eq!(remedy(&duplicated, 5), Remedy::None);
    }

    #[test]
    fn what_two_threads_did_to_one_file_has_no_order() {
        let read = |slot| (slot, note(libc::SYS_read), Remedy::Back(-7));
        let sought = |slot| (slot, note(libc::SYS_lseek), Remedy::Return(93));
        assert!(!clash(&[read(0), read(1)]));
        assert!(!clash(&[read(0), sought(0)]));
        assert!(clash(&[read(0), sought(1)]));
    }

    #[test]
    fn a_message_cannot_be_given_back() {
        assert_eq!(remedy(&note(libc::SYS_recvfrom), 5), Remedy::None);
    }

    #[test]
    fn turns_are_no_calls() {
        let turn = geryon_abi::record::word(kind::TURN, 0, 0, 5);
        let log = [0, turn, 1, 2, turn, 3, 4, 77];
        let word = |pos: u64| log[pos as usize];
        assert_eq!(behind_turns(0, 64, word), 0);
        assert_eq!(behind_turns(1, 64, word), 7);
        assert_eq!(behind_turns(7, 64, word), 7);
    }

    #[test]
    fn what_was_confirmed_is_done_once() {
        let done = Taken {
            confirmed: 1,
            ..note(libc::SYS_write)
        };
        assert_eq!(remedy(&done, 10), Remedy::Give);
        assert_eq!(remedy(&done, 5), Remedy::None);
    }
}
