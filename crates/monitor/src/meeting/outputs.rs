//! Where the kernel, or the agent behind it, may put what calls under way give: one replica has it in its memory,
//! and another one does not have it yet. Nothing else may differ between threads whose states are equal.

use super::Side;
use crate::block::{HEAD, Piece, arguments};
use crate::block_field;
use geryon_abi::layout::MAX_THREADS;
use geryon_abi::row::{FLOCK_BYTES, Kind, Len, SIGINFO_BYTES, futex_has_second};
use geryon_abi::table::{kind_of, row};
use geryon_tracee::RemoteMemory;
use std::ops::Range;

/// More elements of an array than the kernel takes.
const IOVEC_MAX: u64 = 1024;
/// Bytes of struct iovec, struct msghdr and struct mmsghdr.
const IOVEC: u64 = 16;
const MSGHDR: u64 = 56;
const MMSGHDR: u64 = 64;
const EPOLL_EVENT: u64 = 12;

/// What threads of these two processes have under way may be put into these bytes (by their names). A thread's call is known by
/// its frame, in whichever replica it has not returned. (A thread that waits for a turn at a look, or for its first one, has a
/// frame, too, and is in no call: its registers name no memory.)
pub fn outputs(sides: [Side; 2]) -> Vec<Range<u64>> {
    let mut out = Vec::new();
    for side in sides {
        for slot in 0..MAX_THREADS {
            let head = Piece::read(side.memory, slot, HEAD);
            if head.word(block_field!(this)) == 0 {
                break;
            }
            let frame = head.word(block_field!(frame));
            let called = head.word(block_field!(called)).checked_sub(1);
            if let Some(nr) = called.filter(|_| frame != 0)
                && head.word(block_field!(free)) as u32 == 0
            {
                let mut own = Vec::new();
                // (Of one that cannot be read nothing is known: what it changes differs.)
                let _ = of_call(side.memory, nr, frame, &mut own);
                let named = |r: Range<u64>| {
                    let start = side.writing.layout.name(r.start);
                    start..start + (r.end - r.start)
                };
                out.extend(own.into_iter().map(named));
            }
        }
    }
    out
}

/// (The frame does not say its number: where the call is over, its result stands there.)
fn of_call(
    memory: &RemoteMemory,
    nr: u64,
    frame: u64,
    out: &mut Vec<Range<u64>>,
) -> anyhow::Result<()> {
    let args = arguments(memory, frame)?;
    let Some(row) = row(nr) else {
        return Ok(());
    };
    let length = |len: Len| -> anyhow::Result<u64> {
        match len {
            Len::Word(i) => Ok(u64::from(memory.word(args[i as usize])? as u32)),
            len => Ok(row.given(len, &args)),
        }
    };
    let count = |i: u8| args[i as usize].min(IOVEC_MAX);
    for (i, at) in args.iter().enumerate().take(row.args.len()) {
        match kind_of(row, i, &args) {
            _ if *at == 0 => {}
            Kind::Out(len) | Kind::InOut(len) | Kind::OutAlways(len) => {
                add(out, *at, length(len)?);
            }
            Kind::SockaddrOut(len) => {
                add(out, *at, length(Len::Word(len))?);
                add(out, args[len as usize], 4);
            }
            Kind::EpollEvents(n) => add(out, *at, count(n).saturating_mul(EPOLL_EVENT)),
            Kind::IovecOut(n) => of_iovec(memory, *at, count(n), out)?,
            Kind::MsghdrOut => of_message(memory, *at, out)?,
            Kind::MmsghdrOut(n) => {
                for k in 0..count(n) {
                    of_message(memory, at + k * MMSGHDR, out)?;
                    add(out, at + k * MMSGHDR + MSGHDR, 4);
                }
            }
            Kind::MmsghdrIn(n) => {
                for k in 0..count(n) {
                    add(out, at + k * MMSGHDR + MSGHDR, 4);
                }
            }
            Kind::FdSet(bits) => add(out, *at, args[bits as usize].min(1 << 20).div_ceil(64) * 8),
            Kind::Ifconf => {
                add(out, *at, 16);
                add(out, memory.word(at + 8)?, memory.word(*at)? as u32 as u64);
            }
            Kind::CapHeader => add(out, *at, 4),
            // The word of a futex, or where an id is put.
            Kind::FutexSecond(op) if !futex_has_second(args[op as usize] as u32) => {}
            Kind::Special | Kind::FutexSecond(_) => add(out, *at, 4),
            Kind::SiginfoOut => add(out, *at, u64::from(SIGINFO_BYTES)),
            Kind::FlockBack(_) => add(out, *at, u64::from(FLOCK_BYTES)),
            Kind::Int | Kind::Int32 | Kind::Fd | Kind::Addr | Kind::Unused | Kind::ByCommand => {}
            Kind::Id | Kind::IdIf(..) | Kind::Group | Kind::InId(..) | Kind::FutexThird(_) => {}
            Kind::Path | Kind::Strings | Kind::In(_) | Kind::IovecIn(_) | Kind::MsghdrIn => {}
            Kind::Sigmask | Kind::SigmaskPair | Kind::Sigevent | Kind::EpollEvent => {}
            Kind::SockaddrIn(_) | Kind::Siginfo | Kind::Flock(_) => {}
        }
    }
    Ok(())
}

fn of_iovec(
    memory: &RemoteMemory,
    at: u64,
    count: u64,
    out: &mut Vec<Range<u64>>,
) -> anyhow::Result<()> {
    for k in 0..count.min(IOVEC_MAX) {
        let [base, len] = memory.words(at + k * IOVEC)?;
        add(out, base, len);
    }
    Ok(())
}

/// struct msghdr: name and its length, iovec and count, control and its length, flags.
fn of_message(memory: &RemoteMemory, at: u64, out: &mut Vec<Range<u64>>) -> anyhow::Result<()> {
    let [name, name_len, iovec, count, control, control_len] = memory.words(at)?;
    add(out, at, MSGHDR);
    add(out, name, u64::from(name_len as u32));
    add(out, control, control_len);
    of_iovec(memory, iovec, count, out)
}

/// Whole words: that is what is compared.
fn add(out: &mut Vec<Range<u64>>, at: u64, bytes: u64) {
    if at != 0 && bytes != 0 {
        let end = at.saturating_add(bytes);
        out.push(at & !7..end.checked_next_multiple_of(8).unwrap_or(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::frame::Frame;
    use geryon_abi::table::nr;

    /// What this process's calls with these arguments would put where.
    fn outputs_of(nr: u64, args: [u64; 6]) -> Vec<(u64, u64)> {
        let frame = Frame {
            rdi: args[0],
            rsi: args[1],
            rdx: args[2],
            r10: args[3],
            r8: args[4],
            r9: args[5],
            ..Frame::default()
        };
        let memory = RemoteMemory::open(std::process::id() as i32).expect("own memory");
        let mut out = Vec::new();
        of_call(&memory, nr, &raw const frame as u64, &mut out).expect("readable");
        out.into_iter().map(|r| (r.start, r.end)).collect()
    }

    #[test]
    fn a_buffer_is_as_long_as_was_asked_for() {
        const READ: u64 = nr::read;
        assert_eq!(
            outputs_of(READ, [3, 0x1003, 10, 0, 0, 0]),
            [(0x1000, 0x1010)]
        );
        assert_eq!(outputs_of(READ, [3, 0x1000, 0, 0, 0, 0]), []);
    }

    #[test]
    fn what_goes_in_does_not_change() {
        const WRITE: u64 = nr::write;
        assert_eq!(outputs_of(WRITE, [3, 0x1000, 10, 0, 0, 0]), []);
        const NANOSLEEP: u64 = nr::nanosleep;
        // (Only the rest of the time.)
        let rest = outputs_of(NANOSLEEP, [0x1000, 0x2000, 0, 0, 0, 0]);
        assert_eq!(rest, [(0x2000, 0x2010)]);
    }

    #[test]
    fn arrays_and_messages_are_followed() {
        const READV: u64 = nr::readv;
        const RECVMSG: u64 = nr::recvmsg;
        let iovec: [u64; 4] = [0x1000, 8, 0x3000, 24];
        let at = iovec.as_ptr() as u64;
        assert_eq!(
            outputs_of(READV, [3, at, 2, 0, 0, 0]),
            [(0x1000, 0x1008), (0x3000, 0x3018)]
        );
        let message: [u64; 7] = [0x5000, 16, at, 1, 0x6000, 64, 0];
        let own = message.as_ptr() as u64;
        assert_eq!(
            outputs_of(RECVMSG, [3, own, 0, 0, 0, 0]),
            [
                (own, own + 56),
                (0x5000, 0x5010),
                (0x6000, 0x6040),
                (0x1000, 0x1008)
            ]
        );
    }

    #[test]
    fn a_length_that_is_pointed_to_is_read() {
        const ACCEPT: u64 = nr::accept;
        let len = [16u32, 0];
        let at = len.as_ptr() as u64;
        let given = outputs_of(ACCEPT, [3, 0x1000, at, 0, 0, 0]);
        assert!(given.contains(&(0x1000, 0x1010)), "{given:x?}");
        assert!(
            given.iter().any(|(from, to)| (*from..*to).contains(&at)),
            "{given:x?}"
        );
    }
}
