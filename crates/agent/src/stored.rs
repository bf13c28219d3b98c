//! Errors that a socket keeps. What recvmmsg could not do behind packets that it has is told by the next call that asks
//! the socket for its error, once: a send is told that it was given a bad address, and is made if it is asked again.

use core::sync::atomic::{AtomicU32, Ordering};

/// 1: a socket of this process may have such an error, or may have had.
static STORED: AtomicU32 = AtomicU32::new(0);

/// All: a call may have left its error with the socket.
pub fn note() {
    STORED.store(1, Ordering::Relaxed);
}

/// May an error be another call's? (For good: sockets may have several descriptors. Few programs come to that.)
pub fn may_be_anothers() -> bool {
    STORED.load(Ordering::Relaxed) != 0
}
