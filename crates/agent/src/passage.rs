//! Descriptors from the monitor, whatever this process may do itself: see `geryon_abi::layout::letter`.

use crate::gate::{real, rpc};
use crate::state::private;
use geryon_abi::layout::letter::{
    self, AF_UNIX, FAMILY_BYTES, Letter, NAME_BYTES, RECEIVE_FLAGS, SOCKET_TYPE,
};
use geryon_abi::layout::{enclosed, rpc as number};
use geryon_abi::table::nr;

/// EAGAIN: there is no letter.
const NONE: i64 = -11;

/// The socket at which this process waits for descriptors.
pub struct Passage {
    socket: u64,
    name: u64,
}

impl Passage {
    /// A new one, or an errno.
    pub fn open() -> Result<Passage, i64> {
        let socket = checked(real(nr::socket, [AF_UNIX, SOCKET_TYPE, 0, 0, 0, 0]))?;
        let mut passage = Passage { socket, name: 0 };
        if let Err(error) = passage.take_name() {
            passage.close();
            return Err(error);
        }
        Ok(passage)
    }

    fn take_name(&mut self) -> Result<(), i64> {
        let family = AF_UNIX;
        let at = &raw const family as u64;
        checked(real(nr::bind, [self.socket, at, FAMILY_BYTES, 0, 0, 0]))?;
        let (at, mut len) = (&raw mut self.name as u64, NAME_BYTES);
        let len = &raw mut len as u64;
        checked(real(nr::getsockname, [self.socket, at, len, 0, 0, 0]))?;
        Ok(())
    }

    /// Its name, for the monitor.
    pub fn name(&self) -> u64 {
        self.name
    }

    /// The descriptor that the monitor has sent to who has asked so, or an errno.
    fn receive(&self, asked: u64) -> Result<u64, i64> {
        let mut letter = Letter::at(0);
        loop {
            letter = Letter::at(&raw mut letter as u64);
            let at = &raw mut letter as u64;
            checked(real(nr::recvmsg, [self.socket, at, RECEIVE_FLAGS, 0, 0, 0]))?;
            // (Anybody may send to it; who is not the monitor sends in vain.)
            let read = core::hint::black_box(&letter);
            if let Some(fd) = read.enclosed(private().monitor.get(), asked, 0) {
                return Ok(fd as u64);
            }
        }
    }

    /// The log, which the monitor has sent unasked when this process has said that it is there.
    pub fn receive_log(&self) -> Result<u64, i64> {
        match self.receive(letter::asked(enclosed::LOG, enclosed::LEADERS)) {
            Err(NONE) => self.fetch(u64::from(enclosed::LOG), enclosed::LEADERS),
            received => received,
        }
    }

    /// The descriptor of which another process has told the monitor this socket's name.
    pub fn take(&self, fd: u32, whose: u64) -> Result<u64, i64> {
        self.receive(letter::asked(fd, whose))
    }

    /// Ask for a descriptor of another process (see `geryon_abi::layout::enclosed`).
    pub fn fetch(&self, fd: u64, whose: u64) -> Result<u64, i64> {
        loop {
            checked(rpc(number::FETCH, fd, self.name, whose))?;
            match self.receive(letter::asked(fd as u32, whose)) {
                // This process was copied meanwhile: both have one socket, and the other has taken the letter.
                Err(NONE) => {}
                received => return received,
            }
        }
    }

    /// Move it to a number above this one.
    pub fn beyond(&mut self, highest: u64) -> Result<(), i64> {
        const F_DUPFD_CLOEXEC: u64 = 1030;
        let args = [self.socket, F_DUPFD_CLOEXEC, highest + 1, 0, 0, 0];
        let moved = checked(real(nr::fcntl, args))?;
        real(nr::close, [self.socket, 0, 0, 0, 0, 0]);
        self.socket = moved;
        Ok(())
    }

    /// It is not needed any more.
    pub fn close(self) {
        real(nr::close, [self.socket, 0, 0, 0, 0, 0]);
    }
}

fn checked(result: i64) -> Result<u64, i64> {
    if result < 0 {
        Err(result)
    } else {
        Ok(result as u64)
    }
}
