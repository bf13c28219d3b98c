//! What a thread block keeps several of.

/// A signal that waits for a safe point, with the kernel's siginfo.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Siginfo(pub [u64; 16]);

/// Calls that one thread of a leader has made last and that a mistaken leader cannot simply leave to
/// its successor, see [`Taken`].
pub const MAX_TAKEN: usize = 64;

/// A call that has changed something outside the process's memory before the others have followed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Position of the record of its completion.
    pub start: u64,
    /// Position behind it.
    pub end: u64,
    /// Its result.
    pub result: i64,
    /// Its first argument.
    pub first: u64,
    /// Where the file stood before, for calls that set its offset.
    pub was: i64,
    /// Digest of what it was given.
    pub digest: u64,
    /// Number of the call.
    pub nr: u32,
    /// 1: it was confirmed before it happened.
    pub confirmed: u32,
}

/// A point at which a handler was started: what its frame shows, and where the thread really
/// goes on (in a trampoline).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Interruption {
    /// Program counter in the signal frame: the original code's.
    pub shown: u64,
    /// Where to go on.
    pub resume: u64,
    /// Stack pointer there.
    pub rsp: u64,
}

/// Handlers that may be active at one time in one thread, for the translation of their frames.
pub const MAX_INTERRUPTIONS: usize = 32;
