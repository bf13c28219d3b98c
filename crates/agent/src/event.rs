//! What a thread is about to do, as reports show it.

use geryon_abi::record::word;

/// The first word that the thread would log, the digest, arguments.
pub type Event = [u64; 8];

/// The event of a call.
#[inline(always)]
pub fn call(k: u8, nr: u16, digest: u64, a: &[u64; 6]) -> Event {
    let first = word(k, 0, nr, 0);
    [first, digest, a[0], a[1], a[2], a[3], a[4], a[5]]
}

/// The event that is all in its first word.
#[inline(always)]
pub fn plain(first: u64) -> Event {
    [first, 0, 0, 0, 0, 0, 0, 0]
}
