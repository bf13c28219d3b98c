//! What systemd does for a service, seen from the service: a socket for its messages, the variables that name the
//! process which was started, a listening socket as descriptor 3, and signals to that process.

use crate::support::{TempDir, settings};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing that is waited for takes longer.
const LIMIT_S: u64 = 120;
/// How often a run is looked at.
const POLL: Duration = Duration::from_millis(5);
/// As systemd would, a shell puts its own id into the variables, and becomes what is started.
const START: &str = r#"exec 3<&0 0</dev/null
export LISTEN_FDS=1 LISTEN_PID=$$ WATCHDOG_PID=$$
exec "$@""#;

/// A datagram of the service's.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its lines.
    pub text: String,
    /// Who has sent it, as the kernel says.
    pub pid: i32,
}

/// A running service. It does not outlive the test.
pub struct Service {
    child: Child,
    socket: UnixDatagram,
    /// Where it runs; its stdout, stderr and journal lie here.
    pub dir: TempDir,
    /// All that it has said so far.
    pub said: Vec<Message>,
    name: String,
}

impl Service {
    /// Start `program` as so many replicas, or natively for 0. Signs of life are asked for at this distance.
    pub fn start(
        dir: TempDir,
        program: &[&str],
        order: &str,
        replicas: u32,
        listener: TcpListener,
        watchdog: Duration,
    ) -> Service {
        let file = |name: &str| dir.path().join(name);
        let output = |name: &str| Stdio::from(fs::File::create(file(name)).expect("a file"));
        let socket = UnixDatagram::bind(file("notify")).expect("a socket");
        pass_credentials(&socket).expect("they can be asked for");
        let mut command = Command::new("sh");
        command.args(["-c", START, "sh"]);
        if replicas > 0 {
            let n = replicas.to_string();
            command.args([&settings::geryon(), "run", "-n", &n, "--order", order]);
            command.arg("--journal").arg(file("journal")).arg("--");
        }
        let child = command
            .args(program)
            .current_dir(dir.path())
            .env("NOTIFY_SOCKET", file("notify"))
            .env("WATCHDOG_USEC", watchdog.as_micros().to_string())
            .stdin(OwnedFd::from(listener))
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("it starts");
        Service {
            child,
            socket,
            dir,
            said: Vec::new(),
            name: format!("{order}, {replicas} replicas"),
        }
    }

    /// systemd's MAINPID: the process that was started.
    pub fn main_pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("an id fits")
    }

    /// A file of the run's.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Send a signal to the main process, as `kill` with $MAINPID does.
    pub fn signal(&self, number: i32) {
        // SAFETY: kill takes no pointer; the process is the test's own child, and has not been waited for.
        assert_eq!(unsafe { libc::kill(self.main_pid(), number) }, 0);
    }

    /// Wait until it has said so in a line of a message from `from` on.
    pub fn await_line(&mut self, line: &str, from: usize) -> Message {
        self.await_message(line, from, |_| true)
    }

    /// The same, in a message that is right.
    pub fn await_message(
        &mut self,
        line: &str,
        from: usize,
        is_right: impl Fn(&Message) -> bool,
    ) -> Message {
        let start = Instant::now();
        loop {
            let new = self.said.get(from..).unwrap_or_default().iter();
            let has = |m: &&Message| m.text.lines().any(|l| l == line) && is_right(m);
            if let Some(message) = new.clone().find(has) {
                return message.clone();
            }
            self.go_on(start, line);
        }
    }

    /// Wait until something is so.
    pub fn await_that(&mut self, what: &str, is: impl Fn() -> bool) {
        let start = Instant::now();
        while !is() {
            self.go_on(start, what);
        }
    }

    fn go_on(&mut self, start: Instant, what: &str) {
        let status = self.child.try_wait().expect("a child");
        self.listen();
        if status.is_some() || start.elapsed() > settings::limit(LIMIT_S) {
            self.fail(&format!("no sign of {what} ({status:?})"));
        }
        thread::sleep(POLL);
    }

    /// Take what has come.
    pub fn listen(&mut self) {
        while let Some(message) = receive(&self.socket).expect("the socket is good") {
            self.said.push(message);
        }
    }

    /// How often it has said so.
    pub fn count(&self, line: &str) -> usize {
        let lines = self.said.iter().flat_map(|m| m.text.lines());
        lines.filter(|l| *l == line).count()
    }

    /// Who has said anything.
    pub fn senders(&self) -> HashSet<i32> {
        self.said.iter().map(|m| m.pid).collect()
    }

    /// Wait for its end.
    pub fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                self.listen();
                return status;
            }
            self.listen();
            if start.elapsed() > settings::limit(LIMIT_S) {
                self.fail("it does not end");
            }
            thread::sleep(POLL);
        }
    }

    /// With all that is known of the run.
    #[track_caller]
    pub fn fail(&self, why: &str) -> ! {
        let text = |name| fs::read_to_string(self.file(name)).unwrap_or_default();
        panic!(
            "{}: {why}\nmessages: {:?}\nstdout: {}\nstderr: {}\njournal: {}",
            self.name,
            self.said,
            text("stdout"),
            text("stderr"),
            text("journal")
        );
    }

    /// Or else fail.
    #[track_caller]
    pub fn check(&self, is: bool, why: &str) {
        if !is {
            self.fail(why);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // (One that has ended is none any more.)
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pass_credentials(socket: &UnixDatagram) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let yes: libc::c_int = 1;
    // SAFETY: the option is an int, which outlives the call.
    let result = unsafe {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        let value = (&raw const yes).cast();
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PASSCRED,
            value,
            length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The next datagram, if one is there.
fn receive(socket: &UnixDatagram) -> io::Result<Option<Message>> {
    let mut text = [0u8; 4096];
    let mut control = [0u64; 16];
    // SAFETY: the buffers outlive the call, and are as long as is said; a control message that is there is whole.
    unsafe {
        let mut part = libc::iovec {
            iov_base: text.as_mut_ptr().cast(),
            iov_len: text.len(),
        };
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        let length = libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0);
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(None),
                _ => Err(error),
            };
        };
        let first = libc::CMSG_FIRSTHDR(&raw const header);
        let is_theirs = !first.is_null() && (*first).cmsg_type == libc::SCM_CREDENTIALS;
        assert!(is_theirs, "the kernel says who has sent it");
        let credentials: libc::ucred = libc::CMSG_DATA(first)
            .cast::<libc::ucred>()
            .read_unaligned();
        Ok(Some(Message {
            text: String::from_utf8_lossy(&text[..length]).into_owned(),
            pid: credentials.pid,
        }))
    }
}
