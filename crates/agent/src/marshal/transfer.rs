//! Where what came out of a call goes to, and where it comes from: the log, memory, the former leader.

use super::outgoing::{Before, walk};
use super::{EPOLL_DATA, EPOLL_EVENT, bytes};
use crate::access::{self, put_what_differs, readable};
use crate::digest::Digest;
use crate::gate::guarded;
use crate::log::{get_torn, get_words_torn, put, put_again, put_words, reserve};
use crate::state::{Here, layout};
use crate::stop::broken;
use geryon_abi::layout::MAX_PIECES;
use geryon_abi::row::{Kind, Len, Row, SIGINFO_BYTES};
use geryon_abi::table::kind_of;

/// Where out-bytes go to or come from.
pub(super) trait Transfer {
    /// Is the memory that the kernel has written to this replica's own, so that it tells how much that was?
    const LOOKS: bool = true;
    /// All of them can be read here, or are the log's.
    fn move_bytes(&mut self, address: u64, len: u64);
    /// How many bytes there are to be moved, of `len` that lie there and `most` for which there is room: no
    /// more than can be read.
    fn extent(&mut self, address: u64, len: u64, most: u64) -> u64;
    /// A number that the others have to know before they see what it counts.
    fn number(&mut self, number: u64) -> u64;
}

struct ToLog {
    b: Here,
    digest: Digest,
    /// What [`noted`] has kept of each piece, where it has.
    pieces: Option<Pieces>,
}
/// What came of reading a record's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// All is as the leader says that it was.
    Whole,
    /// The log ended in the middle of the record.
    Torn,
    /// It is not what the leader says that it wrote.
    Damaged,
}
struct FromLog {
    b: Here,
    digest: Digest,
    state: Received,
}
/// To the log, where the beginning may be already.
struct ToLogAgain {
    b: Here,
    digest: Digest,
}
/// To nowhere: what lies there now.
struct Written(Digest);
/// The same, piece by piece as well.
struct Noted {
    digest: Digest,
    pieces: Pieces,
}
/// To nowhere: how many words that takes in the log.
struct Counted(u64);
/// From the memory of the former leader.
struct FromLeader;

/// The last bytes of a buffer, which fill no word, as a word.
#[inline(always)]
fn rest_of(address: u64, len: u64) -> Option<u64> {
    let rest = len % 8;
    if rest == 0 {
        return None;
    }
    let mut w = [0u8; 8];
    // SAFETY: inside `guarded`.
    guarded(|| w[..rest as usize].copy_from_slice(unsafe { bytes(address + len - rest, rest) }));
    Some(u64::from_le_bytes(w))
}

/// What lies in memory now, where a call has written.
fn note(digest: &mut Digest, address: u64, len: u64) {
    digest.number(len);
    each_piece(address, len, |at, part| digest.number(digest_of(at, part)));
}

/// Of so many bytes in memory; of what is not there no digest has the same.
fn digest_of(address: u64, len: u64) -> u64 {
    let mut digest = 0;
    guarded(|| {
        let mut of_bytes = Digest::new(0);
        // SAFETY: inside `guarded`.
        of_bytes.bytes(unsafe { bytes(address, len) });
        digest = of_bytes.finish();
    });
    digest
}

/// Call `each` with address and length of the pieces of so many bytes: none is larger than half of the ring.
fn each_piece(address: u64, len: u64, mut each: impl FnMut(u64, u64)) {
    const LEAST: u64 = 64 << 10;
    let size = if len > MAX_PIECES as u64 * LEAST {
        2 * LEAST
    } else {
        LEAST
    };
    let mut done = 0;
    while done < len {
        let part = (len - done).min(size);
        each(address + done, part);
        done += part;
    }
}

/// Digests of the pieces of what a call has written. A record that is larger than half of the ring is seen
/// before it is whole: so each piece is compared, once it is in the ring and before anybody may see it. What
/// followers have read of a leader that finds its buffer changed is right, and its successor adds the rest.
struct Pieces {
    b: Here,
    next: usize,
}

impl Pieces {
    fn of(b: Here) -> Pieces {
        Pieces { b, next: 0 }
    }

    /// The place for the digest of the next piece, as long as there are any.
    fn next(&mut self) -> Option<&mut u64> {
        let place = self.b.pieces.get_mut(self.next);
        self.next += 1;
        place
    }
}

impl Transfer for ToLog {
    fn extent(&mut self, address: u64, len: u64, _most: u64) -> u64 {
        let there = readable(address, len);
        put(self.b, there);
        there
    }
    fn number(&mut self, number: u64) -> u64 {
        put(self.b, number);
        number
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        let b = self.b;
        self.digest.number(len);
        each_piece(address, len, |at, part| {
            reserve(b, part.div_ceil(8));
            // SAFETY: inside `guarded`. There is room, so nothing else happens in there.
            if !guarded(|| unsafe { put_words(b, at, part / 8) }) {
                // Another thread has taken away what was there a moment ago.
                broken();
            }
            if let Some(w) = rest_of(at, part) {
                put(b, w);
            }
            // From memory, not from what went into the log: the two must agree at the other end.
            let now = digest_of(at, part);
            let kept = self.pieces.as_mut().and_then(Pieces::next);
            if kept.is_some_and(|kept| *kept != now) {
                broken();
            }
            self.digest.number(now);
        });
    }
}

impl Transfer for ToLogAgain {
    fn extent(&mut self, address: u64, len: u64, _most: u64) -> u64 {
        let there = readable(address, len);
        put_again(self.b, there);
        there
    }
    fn number(&mut self, number: u64) -> u64 {
        put_again(self.b, number);
        number
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        for k in 0..len / 8 {
            put_again(self.b, access::word64(address + 8 * k).unwrap_or(0));
        }
        if let Some(w) = rest_of(address, len) {
            put_again(self.b, w);
        }
        note(&mut self.digest, address, len);
    }
}

impl Transfer for Written {
    fn extent(&mut self, address: u64, len: u64, _most: u64) -> u64 {
        readable(address, len)
    }
    fn number(&mut self, number: u64) -> u64 {
        number
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        note(&mut self.0, address, len);
    }
}

impl Transfer for Counted {
    fn extent(&mut self, address: u64, len: u64, _most: u64) -> u64 {
        self.0 += 1;
        readable(address, len)
    }
    fn number(&mut self, number: u64) -> u64 {
        self.0 += 1;
        number
    }
    fn move_bytes(&mut self, _address: u64, len: u64) {
        self.0 += len.div_ceil(8);
    }
}

impl Transfer for Noted {
    fn extent(&mut self, address: u64, len: u64, _most: u64) -> u64 {
        readable(address, len)
    }
    fn number(&mut self, number: u64) -> u64 {
        number
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        self.digest.number(len);
        each_piece(address, len, |at, part| {
            let now = digest_of(at, part);
            if let Some(kept) = self.pieces.next() {
                *kept = now;
            }
            self.digest.number(now);
        });
    }
}

impl Transfer for FromLeader {
    fn extent(&mut self, address: u64, len: u64, _most: u64) -> u64 {
        readable(address, len)
    }
    fn number(&mut self, number: u64) -> u64 {
        number
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        crate::promotion::inherit(address, len);
    }
}

impl FromLog {
    fn word(&mut self) -> Option<u64> {
        if self.state != Received::Whole {
            return None;
        }
        let word = get_torn(self.b);
        if word.is_none() {
            self.state = Received::Torn;
        }
        word
    }
}

impl Transfer for FromLog {
    const LOOKS: bool = false;
    fn number(&mut self, _number: u64) -> u64 {
        self.word().unwrap_or(0)
    }
    /// No more than there is room for: a damaged length must not spread.
    fn extent(&mut self, _address: u64, _len: u64, most: u64) -> u64 {
        let len = self.word().unwrap_or(0);
        if len > most {
            self.state = Received::Damaged;
            return 0;
        }
        len
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        if self.state != Received::Whole {
            return;
        }
        // SAFETY: the arguments were verified to be the leader's, whose kernel wrote to the same addresses, in
        // memory that is laid out alike; where the kernel has not written either, it is looked at only.
        if !unsafe { get_words_torn(self.b, address, len / 8) } {
            self.state = Received::Torn;
            return;
        }
        let rest = len % 8;
        if rest != 0 {
            let Some(w) = self.word() else {
                return;
            };
            let (w, at) = (w.to_le_bytes(), address + len - rest);
            let w = &w[..rest as usize];
            // SAFETY: inside `guarded`.
            let put =
                || unsafe { core::ptr::copy_nonoverlapping(w.as_ptr(), at as *mut u8, w.len()) };
            if !guarded(put) {
                put_what_differs(at, w);
            }
        }
        note(&mut self.digest, address, len);
    }
}

/// The check word of a record: over its first word, the result, and what lies in memory where the call
/// has written.
fn check(first: u64, result: i64, written: u64) -> u64 {
    let mut digest = Digest::new(first);
    digest.number(result as u64);
    digest.number(written);
    digest.finish()
}

/// Digest of what a call has written; never 0.
pub fn written(row: &Row, args: &[u64; 6], result: i64, before: &Before) -> u64 {
    let mut seen = Written(Digest::new(0));
    walk(&mut seen, row, args, result, before);
    seen.0.finish() | 1
}

/// How many words [`send`] will append.
pub fn words(row: &Row, args: &[u64; 6], result: i64, before: &Before) -> u64 {
    /// The check word.
    const CHECK: u64 = 1;
    let mut counted = Counted(CHECK);
    walk(&mut counted, row, args, result, before);
    counted.0
}

/// The same of what the leader is about to [`send`], which compares each piece of it with what it is now.
pub fn noted(b: Here, row: &Row, args: &[u64; 6], result: i64, before: &Before) -> u64 {
    let mut seen = Noted {
        digest: Digest::new(0),
        pieces: Pieces::of(b),
    };
    walk(&mut seen, row, args, result, before);
    seen.digest.finish() | 1
}

/// Leader: append what the call wrote, and a check word over the record. What [`written`] would give.
/// (`is_noted`: it is [`noted`] what that was.)
pub fn send(
    b: Here,
    row: &Row,
    args: &[u64; 6],
    first: u64,
    result: i64,
    before: &Before,
    is_noted: bool,
) -> u64 {
    let mut to = ToLog {
        b,
        digest: Digest::new(0),
        pieces: is_noted.then(|| Pieces::of(b)),
    };
    walk(&mut to, row, args, result, before);
    let written = to.digest.finish() | 1;
    put(b, check(first, result, written));
    written
}

/// Follower: write what the leader's call wrote.
pub fn receive(b: Here, row: &Row, args: &[u64; 6], first: u64, result: i64) -> Received {
    let mut from = FromLog {
        b,
        digest: Digest::new(0),
        state: Received::Whole,
    };
    walk(&mut from, row, args, result, &Before::UNLIMITED);
    let written = from.digest.finish() | 1;
    let received = match from.word() {
        Some(theirs) if theirs != check(first, result, written) => Received::Damaged,
        _ => from.state,
    };
    if received == Received::Whole && layout().number != 0 && !layout().is_unrelated() {
        find_places(row, args, result);
    }
    if received == Received::Whole && layout().is_unrelated() {
        super::events::given(row, args, result);
    }
    received
}

/// What the leader has been given back of what it had given the kernel may be addresses: here they are others.
fn find_places(row: &Row, args: &[u64; 6], result: i64) {
    let count = result.max(0) as u64;
    for i in 0..row.args.len() {
        let at = args[i];
        match kind_of(row, i, args) {
            Kind::EpollEvents(n) if at != 0 => {
                for k in 0..count.min(args[n as usize]) {
                    find_place(at + u64::from(EPOLL_EVENT) * k + EPOLL_DATA);
                }
            }
            Kind::SiginfoOut if at != 0 && result >= 0 => {
                for word in (at..at + u64::from(SIGINFO_BYTES)).step_by(8) {
                    find_place(word);
                }
            }
            _ => {}
        }
    }
}

fn find_place(at: u64) {
    if let Some(name) = access::word64(at) {
        put_what_differs(at, &access::here(name).to_le_bytes());
    }
}

/// New leader: append what its predecessor's call wrote, and had begun to append.
pub fn send_again(b: Here, row: &Row, args: &[u64; 6], first: u64, result: i64) {
    let mut to = ToLogAgain {
        b,
        digest: Digest::new(0),
    };
    walk(&mut to, row, args, result, &Before::UNLIMITED);
    put_again(b, check(first, result, to.digest.finish() | 1));
}

/// New leader: fetch what its predecessor's call wrote.
pub fn inherit(row: &Row, args: &[u64; 6], result: i64) {
    // First the lengths that say how much of the rest there is.
    for i in 0..row.args.len() {
        let p = args[i];
        if p == 0 {
            continue;
        }
        let (at, len) = match kind_of(row, i, args) {
            Kind::SockaddrOut(n) | Kind::Out(Len::Word(n)) | Kind::OutAlways(Len::Word(n)) => {
                (args[n as usize], 4)
            }
            Kind::MsghdrOut => (p, 56),
            Kind::MmsghdrOut(_) => (p, 64 * result.max(0) as u64),
            Kind::Ifconf => (p, 4),
            _ => continue,
        };
        if at != 0 && result >= 0 {
            crate::promotion::inherit(at, readable(at, len));
        }
    }
    walk(&mut FromLeader, row, args, result, &Before::UNLIMITED);
}
