//! What one row of the system-call table says.

mod property;

pub use property::{Properties, Property};

/// How the replicas treat a call (design: classes of section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Private to the address space and without outside effect: every replica executes it.
    Local,
    /// Like `Local`, but it chooses or changes addresses (mmap, brk, ...): executed by every
    /// replica in one process-wide order, followers at the leader's addresses.
    Memory,
    /// The leader executes; result and out-buffers travel through the log.
    Input,
    /// Changes the world outside: confirmed by the replicas, then executed by the leader.
    Output,
    /// Changes an attribute of a process or thread (niceness, capabilities): confirmed as an output and
    /// executed by the leader. If it succeeds, each follower does the same to the one of its own that the
    /// id names, if there is one. All get the leader's result.
    Each,
    /// Creates, replaces, signals or ends processes and threads: hand-written.
    Lifecycle,
    /// Answered with an errno and a message, never executed.
    Refused,
}

/// How far the call is implemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Behaves as the kernel's, in every replica.
    Full,
    /// Works within the limits that the row's note names.
    Partial,
    /// Answered with the named errno (positive); the note says what to do instead.
    Refused(u16),
}

/// Length of a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Len {
    /// Always this many bytes.
    Fixed(u32),
    /// The value of argument `.0` (counted from 0) in bytes.
    Arg(u8),
    /// The value of argument `.0` times `.1` bytes.
    ArgTimes(u8, u32),
    /// The value of argument `.0` in bytes, and `.1` more.
    ArgPlus(u8, u32),
    /// Out-buffers only: the call's result in bytes, and `.1` more; never more than argument `.0` and these.
    RetPlus(u8, u32),
    /// Out-buffers only: the call's result in bytes, never more than argument `.0`.
    Ret(u8),
    /// Out-buffers only: the call's result times `.1` bytes, never more than argument `.0` elements.
    RetTimes(u8, u32),
    /// The 32-bit word that argument `.0` points to (socklen_t, value-result: the smaller of the
    /// word before and after the call is what the kernel wrote).
    Word(u8),
}

/// What one argument means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number, compared by value.
    Int,
    /// A 32-bit number whose upper register half means nothing (int, flags, mode_t).
    Int32,
    /// Id of a process or thread as the program knows it; 0 is the caller, and a number below -1 a process
    /// group (negated). The kernel is given the id of whom it names in the replica that asks.
    Id,
    /// An id if argument `.0` has the value `.1`, else a number (a group, a user).
    IdIf(u8, u32),
    /// Id of a process group, which is that of the process that has made it.
    Group,
    /// A file descriptor (32-bit, sign-extended).
    Fd,
    /// An address that names a place in the program's own memory and is not followed
    /// (mmap hint, futex word, stack); equal in all replicas with equal layout.
    Addr,
    /// Nothing: the kernel ignores it.
    Unused,
    /// NUL-terminated string that the kernel reads (at most 4096 bytes).
    Path,
    /// NULL-terminated array of pointers to strings (argv, envp).
    Strings,
    /// Buffer that the kernel reads; NULL is allowed and compared as NULL.
    In(Len),
    /// Buffer that the kernel writes when the call succeeds; NULL is allowed.
    Out(Len),
    /// Structure of `.0` bytes that the kernel reads, with an id at byte `.1`.
    InId(u8, u8),
    /// struct __user_cap_header_struct: version and id. The kernel writes the version that it knows where
    /// it does not know the one that is asked for.
    CapHeader,
    /// Read and, when the call succeeds, written.
    InOut(Len),
    /// Out-buffer that the kernel may write although the call fails (remaining time of
    /// nanosleep, poll's revents): copied whatever the result is.
    OutAlways(Len),
    /// Array of iovec that the kernel reads from (writev); its count is argument `.0`.
    IovecIn(u8),
    /// Array of iovec that the kernel fills (readv) up to the call's result; count in argument `.0`.
    IovecOut(u8),
    /// struct msghdr to send: name, iovec, control.
    MsghdrIn,
    /// struct msghdr to receive into: name, iovec, control, lengths, flags.
    MsghdrOut,
    /// Array of struct mmsghdr to send; count in argument `.0`; msg_len of each is written.
    MmsghdrIn(u8),
    /// Array of struct mmsghdr to receive into; count in argument `.0`.
    MmsghdrOut(u8),
    /// struct sockaddr of so many bytes as argument `.0` says; behind a Unix socket's path, and behind an IPv4
    /// address, the kernel looks at nothing.
    SockaddrIn(u8),
    /// struct sockaddr that the kernel writes, of length `Word(.0)`.
    SockaddrOut(u8),
    /// fd_set read and written; number of bits is argument `.0`.
    FdSet(u8),
    /// Signal mask of 8 bytes that is in force while the call waits; NULL: the thread's own.
    Sigmask,
    /// pselect6's pointer to {such a mask's address, size}.
    SigmaskPair,
    /// struct sigevent (timer_create, mq_notify): 64 bytes; its value is opaque.
    Sigevent,
    /// struct epoll_event that the kernel reads; its data is opaque, and may be an address.
    EpollEvent,
    /// Array of struct epoll_event that the kernel writes: as many as the result says, and never more than
    /// argument `.0`. What they hold is what was given as [`Kind::EpollEvent`], by the replica that leads.
    EpollEvents(u8),
    /// struct flock that the kernel reads: type, start, length, and its id if `.0` (else it knows better). It has
    /// padding.
    Flock(bool),
    /// The same, and the kernel writes who holds such a lock.
    FlockBack(bool),
    /// siginfo_t that the kernel reads; its value is opaque, and may be an address.
    Siginfo,
    /// siginfo_t that the kernel writes, the value as it was given.
    SiginfoOut,
    /// Address of a futex operation's second word, where the operation (argument `.0`) has one.
    FutexSecond(u8),
    /// A futex operation's third value, where the operation (argument `.0`) has one.
    FutexThird(u8),
    /// struct ifconf: length and pointer to a buffer that the kernel fills.
    Ifconf,
    /// The meaning depends on a command argument: see the sub-table of the call
    /// (fcntl, ioctl, prctl, ...).
    ByCommand,
    /// Hand-written treatment in the agent.
    Special,
}

impl Kind {
    /// Does what the argument points to hold addresses itself?
    pub const fn nests(self) -> bool {
        matches!(
            self,
            Kind::IovecIn(_)
                | Kind::IovecOut(_)
                | Kind::MsghdrIn
                | Kind::MsghdrOut
                | Kind::MmsghdrIn(_)
                | Kind::MmsghdrOut(_)
                | Kind::Strings
                | Kind::SigmaskPair
                | Kind::Ifconf
        )
    }
}

/// Bytes of a struct flock.
pub const FLOCK_BYTES: u32 = 32;

/// Bytes of a siginfo_t.
pub const SIGINFO_BYTES: u32 = 128;

/// Has this operation of futex(2) a second word?
pub const fn futex_has_second(op: u32) -> bool {
    /// FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME.
    const FLAGS: u32 = 128 | 256;
    // REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_REQUEUE_PI, CMP_REQUEUE_PI
    matches!(op & !FLAGS, 3 | 4 | 5 | 11 | 12)
}

/// Has this futex operation a third value? (Else a register holds anything there.)
pub const fn futex_has_third(op: u32) -> bool {
    /// FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME.
    const FLAGS: u32 = 128 | 256;
    // CMP_REQUEUE, WAKE_OP, WAIT_BITSET, WAKE_BITSET, WAIT_REQUEUE_PI, CMP_REQUEUE_PI
    matches!(op & !FLAGS, 4 | 5 | 9 | 10 | 11 | 12)
}

/// One argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Name as in the manual page.
    pub name: &'static str,
    /// Meaning.
    pub kind: Kind,
}

/// One system call of x86-64 Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number in rax.
    pub nr: u16,
    /// Name as in the manual page.
    pub name: &'static str,
    /// How replicas treat it.
    pub class: Class,
    /// How far it is implemented.
    pub support: Support,
    /// Its arguments, in order; only these are compared.
    pub args: &'static [Arg],
    /// Its result is the id of a process, thread or group.
    pub gives_id: bool,
    /// What it is given may hold addresses of its own.
    pub nests: bool,
    /// What else is so.
    pub properties: Properties,
    /// What a user should know; empty when there is nothing.
    pub note: &'static str,
}

impl Row {
    /// Has the call this property?
    #[inline(always)]
    pub const fn is(&self, property: Property) -> bool {
        self.properties.has(property)
    }

    /// The bytes of a buffer that the arguments themselves tell, at most those that the call writes; 0 where they
    /// do not.
    pub fn given(&self, len: Len, args: &[u64; 6]) -> u64 {
        // The kernel looks at the lower half of what is an int.
        let arg = |i: u8| match self.args[i as usize].kind {
            Kind::Int32 | Kind::Fd => args[i as usize] as u32 as u64,
            _ => args[i as usize],
        };
        match len {
            Len::Fixed(n) => n as u64,
            Len::Arg(i) | Len::Ret(i) => arg(i),
            Len::ArgTimes(i, n) | Len::RetTimes(i, n) => arg(i).saturating_mul(n as u64),
            Len::ArgPlus(i, n) | Len::RetPlus(i, n) => arg(i).saturating_add(n as u64),
            Len::Word(_) => 0,
        }
    }
}

/// One command of a call that multiplexes (`fcntl`, `ioctl`, `prctl`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Value of the command argument.
    pub value: u32,
    /// Its name in the headers.
    pub name: &'static str,
    /// Class of the call with this command.
    pub class: Class,
    /// Meaning of the argument that depends on the command.
    pub kind: Kind,
    /// What a user should know; empty when there is nothing.
    pub note: &'static str,
}
