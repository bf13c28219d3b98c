//! Descriptors of the monitor become descriptors of a process.

use anyhow::{Context, Result};
use geryon_abi::layout::Letter;
use geryon_abi::layout::letter;
use geryon_tracee::{Passage, RemoteMemory};
use std::os::fd::BorrowedFd;

/// Bytes that [`receive`] needs in the process.
pub const SCRATCH_BYTES: u64 = 16 + size_of::<Letter>() as u64;

/// Make a call in the process; the text says what for.
pub type Call<'a> = &'a dyn Fn(i64, [u64; 6], &str) -> Result<u64>;

/// Have a stopped process receive descriptors, through a socket of its own: it may not be allowed to open what
/// is the monitor's. `scratch`: [`SCRATCH_BYTES`] of its memory that nobody uses.
///
/// # Errors
/// When a call fails; the message says which.
pub fn receive<const N: usize>(
    call: Call<'_>,
    memory: &RemoteMemory,
    passage: &Passage,
    scratch: u64,
    from: [BorrowedFd<'_>; N],
) -> Result<[u64; N]> {
    let (name, len, letter) = (scratch, scratch + 8, scratch + 16);
    let kind = [letter::AF_UNIX, letter::SOCKET_TYPE, 0, 0, 0, 0];
    let socket = call(libc::SYS_socket, kind, "make a socket")?;
    memory.set_word(name, letter::AF_UNIX)?;
    memory.set_word(len, letter::NAME_BYTES)?;
    let bind = [socket, name, letter::FAMILY_BYTES, 0, 0, 0];
    call(libc::SYS_bind, bind, "name a socket")?;
    let ask = [socket, name, len, 0, 0, 0];
    call(libc::SYS_getsockname, ask, "name a socket")?;
    passage
        .send(memory.word(name)?, 0, &from)
        .context("cannot send what is the monitor's to the program")?;
    let received = loop {
        let empty = Letter::at(letter).0;
        for (n, word) in empty.iter().enumerate() {
            memory.set_word(letter + 8 * n as u64, *word)?;
        }
        let fetch = [socket, letter, letter::RECEIVE_FLAGS, 0, 0, 0];
        call(libc::SYS_recvmsg, fetch, "get what the monitor has sent")?;
        let letter = Letter(memory.words(letter)?);
        let nth = |n| letter.enclosed(passage.name(), 0, n).map(u64::from);
        let all: Vec<u64> = (0..N).map_while(nth).collect();
        if let Ok(all) = <[u64; N]>::try_from(all) {
            break all;
        }
    };
    call(libc::SYS_close, [socket, 0, 0, 0, 0, 0], "close a socket")?;
    Ok(received)
}
