//! Descriptors from one process to another: those that the monitor sends to its replicas, and those
//! that it takes from one of them.

use crate::Pid;
use geryon_abi::layout::letter::{self, MAX_ENCLOSED, NAME_BYTES};
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The monitor's socket, from which replicas get descriptors.
#[derive(Debug)]
pub struct Passage {
    socket: OwnedFd,
    name: u64,
}

impl Passage {
    /// A new one, under a name that the kernel finds.
    ///
    /// # Errors
    /// When descriptors are short.
    pub fn open() -> Result<Passage> {
        // SAFETY: plain calls; the addresses outlive them, and the descriptor is new.
        unsafe {
            let fd = libc::socket(libc::AF_UNIX, letter::SOCKET_TYPE as i32, 0);
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            let socket = OwnedFd::from_raw_fd(fd);
            let family = letter::AF_UNIX;
            let bytes = letter::FAMILY_BYTES as libc::socklen_t;
            if libc::bind(fd, (&raw const family).cast(), bytes) != 0 {
                return Err(Error::last_os_error());
            }
            let mut name = 0u64;
            let mut len = NAME_BYTES as libc::socklen_t;
            if libc::getsockname(fd, (&raw mut name).cast(), &raw mut len) != 0 {
                return Err(Error::last_os_error());
            }
            if u64::from(len) != NAME_BYTES {
                return Err(Error::other(
                    "the kernel gives sockets names of another length",
                ));
            }
            Ok(Passage { socket, name })
        }
    }

    /// Its name: what comes from elsewhere is not the monitor's.
    pub fn name(&self) -> u64 {
        self.name
    }

    /// Send descriptors to the socket of this name, which has asked for them so.
    ///
    /// # Errors
    /// ECONNREFUSED when its owner is gone.
    ///
    /// # Panics
    /// For more than [`MAX_ENCLOSED`].
    pub fn send(&self, to: u64, asked: u64, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        assert!(descriptors.len() <= MAX_ENCLOSED);
        let mut control = [0u64; 3];
        let bytes = 16 + 4 * descriptors.len();
        control[0] = bytes as u64;
        control[1] = libc::SOL_SOCKET as u64 | (libc::SCM_RIGHTS as u64) << 32;
        for (n, fd) in descriptors.iter().enumerate() {
            control[2] |= u64::from(fd.as_raw_fd() as u32) << (32 * n);
        }
        let mut payload = libc::iovec {
            iov_base: (&raw const asked).cast_mut().cast(),
            iov_len: 8,
        };
        // SAFETY: everything that the header points to outlives the call.
        let sent = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_name = (&raw const to).cast_mut().cast();
            header.msg_namelen = NAME_BYTES as u32;
            header.msg_iov = &raw mut payload;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = bytes;
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendmsg(self.socket.as_raw_fd(), &raw const header, flags)
        };
        if sent < 0 {
            return Err(Error::last_os_error());
        }
        Ok(())
    }
}

/// A descriptor of another process.
///
/// # Errors
/// EBADF when it has none of that number, ESRCH when it is gone, EPERM where that is not allowed.
pub fn descriptor_of(pid: Pid, fd: i32) -> Result<OwnedFd> {
    // SAFETY: a plain call that makes a descriptor, or fails.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: as above.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })
}

/// What a call has made, or its error.
fn owned(result: i64) -> Result<OwnedFd> {
    if result < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: it has just been made, and is owned here alone.
    Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::letter::{Letter, RECEIVE_FLAGS};
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::fd::AsFd;

    fn receive(by: &Passage) -> Letter {
        let mut boxed = Box::new(Letter::at(0));
        *boxed = Letter::at((&raw const *boxed) as u64);
        // SAFETY: the letter points into itself.
        let got = unsafe {
            libc::syscall(
                libc::SYS_recvmsg,
                by.socket.as_raw_fd(),
                &raw mut *boxed,
                RECEIVE_FLAGS,
            )
        };
        assert_eq!(got, 8, "{}", Error::last_os_error());
        *boxed
    }

    #[test]
    fn what_is_sent_arrives() {
        let (from, to) = (Passage::open().unwrap(), Passage::open().unwrap());
        let (mut a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        from.send(to.name(), 5, &[a.as_fd(), b.as_fd()]).unwrap();
        let letter = receive(&to);
        assert_eq!(letter.enclosed(to.name(), 5, 0), None);
        let fd = letter.enclosed(from.name(), 5, 1).expect("a descriptor");
        // SAFETY: it has just been received.
        let mut got = unsafe { File::from_raw_fd(fd as i32) };
        a.write_all(b"x").unwrap();
        let mut byte = [0];
        got.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_descriptor_is_fetched() {
        let name = c"fetched";
        // SAFETY: a new descriptor.
        let mut file = unsafe { File::from_raw_fd(libc::memfd_create(name.as_ptr(), 0)) };
        file.write_all(b"abc").unwrap();
        let own = std::process::id() as Pid;
        let mut other = File::from(descriptor_of(own, file.as_raw_fd()).unwrap());
        other.seek(SeekFrom::Start(1)).unwrap();
        assert_eq!(file.stream_position().unwrap(), 1);
        let none = descriptor_of(own, -1).expect_err("none has that number");
        assert_eq!(none.raw_os_error(), Some(libc::EBADF));
    }
}
