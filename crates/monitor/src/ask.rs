//! Where a run can be asked for something while it goes on (`geryon ctl`): a socket of the monitor's, in the abstract name space,
//! and what can be asked. What comes of it: [`obey`](crate::obey).

mod client;
mod command;

pub use client::ask;
pub use command::Command;

use geryon_tracee::Pid;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Whoever has said nothing by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// No request is longer.
const LONGEST: usize = 64;
/// So many are listened to at once.
const AT_ONCE: usize = 16;

/// Where a run is asked.
fn address(monitor: u32) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("geryon-ctl-{monitor}"))
}

/// The socket, and those who have not said yet what they want.
#[derive(Debug, Default)]
pub struct Desk {
    listener: Option<UnixListener>,
    coming: Vec<(UnixStream, Instant, Vec<u8>)>,
}

impl Desk {
    /// Listen. (Where that cannot be, nobody can ask: the run does not need it.)
    pub fn open() -> Desk {
        let listener = address(std::process::id()).and_then(|a| UnixListener::bind_addr(&a));
        let listener = listener.and_then(|l| l.set_nonblocking(true).map(|()| l));
        Desk {
            listener: listener.ok(),
            coming: Vec::new(),
        }
    }

    /// Who has come to the end of a line, and the line.
    pub fn requests(&mut self) -> Vec<(UnixStream, String)> {
        while self.coming.len() < AT_ONCE
            && let Some(Ok((stream, _))) = self.listener.as_ref().map(UnixListener::accept)
        {
            if stream.set_nonblocking(true).is_ok() {
                self.coming.push((stream, Instant::now(), Vec::new()));
            }
        }
        let mut whole = Vec::new();
        for (mut stream, since, mut text) in std::mem::take(&mut self.coming) {
            let mut bytes = [0; LONGEST];
            let read = stream.read(&mut bytes);
            text.extend(&bytes[..*read.as_ref().unwrap_or(&0)]);
            let waits = read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
            if text.ends_with(b"\n") {
                whole.push((stream, String::from_utf8_lossy(&text).trim().to_owned()));
            } else if (waits || !text.is_empty())
                && text.len() < LONGEST
                && since.elapsed() < PATIENCE
            {
                self.coming.push((stream, since, text));
            }
        }
        whole
    }
}

/// Who is at the other end: process and user.
pub fn peer(stream: &UnixStream) -> Option<(Pid, u32)> {
    let mut cred = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel fills the structure, whose size it is told.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut len,
        )
    };
    (result == 0).then_some((cred.pid, cred.uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_request_may_come_in_pieces_or_never() {
        let mut desk = Desk::open();
        let connect = || UnixStream::connect_addr(&address(std::process::id()).expect("short"));
        let mut slow = connect().expect("somebody listens");
        let mut quick = connect().expect("somebody listens");
        slow.write_all(b"repl").expect("written");
        quick.write_all(b"add\n").expect("written");
        let text = |r: Vec<(UnixStream, String)>| r.into_iter().map(|r| r.1).collect::<Vec<_>>();
        assert_eq!(text(desk.requests()), ["add"]);
        slow.write_all(b"ace 2\n").expect("written");
        assert_eq!(text(desk.requests()), ["replace 2"]);
        assert!(desk.coming.is_empty());
        // One that goes away, and one that talks on and on.
        drop(connect().expect("somebody listens"));
        let mut long = connect().expect("somebody listens");
        long.write_all(&[b'x'; 2 * LONGEST]).expect("written");
        assert!(desk.requests().is_empty() && desk.coming.is_empty());
    }
}
