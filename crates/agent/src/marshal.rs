//! One walk over a call's arguments, as its row describes them: digest of what goes in,
//! copy of what comes out.

use crate::digest::Digest;
use crate::gate::guarded;
use crate::log::{get_torn, put, put_again};
use crate::state::Here;
use geryon_abi::row::{Kind, Len, Row};
use geryon_abi::table;

const IOVEC_MAX: u64 = 1024;
const PATH_MAX: usize = 4096;
/// Bytes of the longest address of a socket.
const NAME_MAX: u32 = 128;

/// Read a word of application memory.
///
/// # Safety
/// Only inside [`guarded`], or when the kernel has just accepted the address.
#[inline(always)]
unsafe fn read64(address: u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (address as *const u64).read_unaligned() }
}

#[inline(always)]
unsafe fn read32(address: u64) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { (address as *const u32).read_unaligned() }
}

unsafe fn bytes(address: u64, len: u64) -> &'static [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise, for all `len` bytes; the slice is not kept.
    unsafe { core::slice::from_raw_parts(address as *const u8, len as usize) }
}

/// The kind of argument `i`, with commands of multiplexed calls resolved.
#[inline(always)]
fn kind_of(row: &Row, i: usize, args: &[u64; 6]) -> Kind {
    let kind = row.args[i].kind;
    if let Kind::ByCommand = kind {
        return table::command(row.nr as u64, command_of(row.nr as u64, args))
            .map_or(Kind::Int, |c| c.kind);
    }
    kind
}

/// The argument that carries the command of a multiplexed call.
pub fn command_of(nr: u64, args: &[u64; 6]) -> u64 {
    match nr {
        // prctl, arch_prctl
        157 | 158 => args[0],
        // semctl
        66 => args[2],
        _ => args[1],
    }
}

fn in_len(len: Len, args: &[u64; 6]) -> u64 {
    match len {
        Len::Fixed(n) => n as u64,
        Len::Arg(i) | Len::Ret(i) => args[i as usize],
        Len::ArgTimes(i, n) | Len::RetTimes(i, n) => args[i as usize].saturating_mul(n as u64),
        Len::Word(i) => {
            let p = args[i as usize];
            // SAFETY: called inside `guarded`.
            if p == 0 {
                0
            } else {
                // SAFETY: called inside `guarded`.
                unsafe { read32(p) as u64 }
            }
        }
    }
}

/// The digest of number and arguments; only what the row says the kernel looks at.
pub fn digest(row: &Row, args: &[u64; 6]) -> u64 {
    let mut d = Digest::new(row.nr as u64);
    let mut deep = false;
    for i in 0..row.args.len() {
        let v = args[i];
        match kind_of(row, i, args) {
            Kind::Int | Kind::Addr | Kind::Special | Kind::ByCommand => d.number(v),
            Kind::Int32 | Kind::Fd => d.number(v as u32 as u64),
            Kind::Unused => {}
            Kind::Out(_) | Kind::OutAlways(_) | Kind::IovecOut(_) | Kind::SockaddrOut(_) => {
                d.number((v != 0) as u64)
            }
            _ => {
                d.number((v != 0) as u64);
                deep |= v != 0;
            }
        }
    }
    if deep {
        let whole = guarded(|| {
            for i in 0..row.args.len() {
                if args[i] != 0 {
                    // SAFETY: inside `guarded`.
                    unsafe { digest_memory(&mut d, kind_of(row, i, args), args[i], args) };
                }
            }
        });
        if !whole {
            // The kernel will answer EFAULT in every replica alike.
            d.number(0xfa17);
        }
    }
    d.finish()
}

unsafe fn digest_memory(d: &mut Digest, kind: Kind, p: u64, args: &[u64; 6]) {
    // SAFETY: all reads of this function happen inside `guarded`.
    unsafe {
        match kind {
            Kind::Path => {
                let mut n = 0;
                while n < PATH_MAX && *((p + n as u64) as *const u8) != 0 {
                    n += 1;
                }
                d.bytes(bytes(p, n as u64));
            }
            Kind::Strings => {
                let mut at = p;
                loop {
                    let s = read64(at);
                    if s == 0 {
                        break;
                    }
                    let mut n = 0;
                    while *((s + n) as *const u8) != 0 {
                        n += 1;
                    }
                    d.bytes(bytes(s, n));
                    at += 8;
                }
            }
            Kind::In(len) | Kind::InOut(len) => d.bytes(bytes(p, in_len(len, args))),
            Kind::FdSet(n) => d.bytes(bytes(p, fdset_bytes(args[n as usize]))),
            Kind::IovecIn(n) => digest_iovec(d, p, args[n as usize]),
            Kind::MsghdrIn => digest_message(d, p),
            Kind::MmsghdrIn(n) => {
                for k in 0..args[n as usize].min(IOVEC_MAX) {
                    digest_message(d, p + 64 * k);
                }
            }
            Kind::MsghdrOut | Kind::MmsghdrOut(_) => d.number(read32(p + 8) as u64),
            Kind::SigmaskPair => {
                let set = read64(p);
                if set != 0 {
                    d.bytes(bytes(set, 8));
                }
            }
            Kind::Ifconf => d.number(read32(p) as u64),
            // sigev_value is opaque; signal number and way of notification are not.
            Kind::Sigevent => d.number(read64(p + 8)),
            _ => {}
        }
    }
}

unsafe fn digest_iovec(d: &mut Digest, p: u64, count: u64) {
    for k in 0..count.min(IOVEC_MAX) {
        // SAFETY: inside `guarded`, as the caller is.
        unsafe { d.bytes(bytes(read64(p + 16 * k), read64(p + 16 * k + 8))) };
    }
}

unsafe fn digest_message(d: &mut Digest, p: u64) {
    // SAFETY: inside `guarded`, as the caller is. Offsets are those of struct msghdr.
    unsafe {
        let (name, name_len) = (read64(p), read32(p + 8) as u64);
        if name != 0 {
            d.bytes(bytes(name, name_len));
        }
        digest_iovec(d, read64(p + 16), read64(p + 24));
        let (control, control_len) = (read64(p + 32), read64(p + 40));
        if control != 0 {
            d.bytes(bytes(control, control_len));
        }
    }
}

fn fdset_bytes(bits: u64) -> u64 {
    bits.min(1 << 20).div_ceil(64) * 8
}

/// Where out-bytes go to or come from.
trait Transfer {
    fn move_bytes(&mut self, address: u64, len: u64);
    fn checked_len(&mut self, len: u64) -> u64;
    /// As `checked_len`, of bytes for which the buffers of a message limit the room.
    fn received(&mut self, len: u64) -> u64 {
        self.checked_len(len)
    }
}

struct ToLog {
    b: Here,
    digest: Digest,
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
/// From the memory of the former leader.
struct FromLeader;

/// Append bytes as words.
#[inline(always)]
fn append(address: u64, len: u64, mut put: impl FnMut(u64)) {
    // SAFETY: the kernel has just written these bytes for the leader.
    unsafe {
        for k in 0..len / 8 {
            put(read64(address + 8 * k));
        }
        let rest = len % 8;
        if rest != 0 {
            let mut w = [0u8; 8];
            w[..rest as usize].copy_from_slice(bytes(address + len - rest, rest));
            put(u64::from_le_bytes(w));
        }
    }
}

/// What lies in memory now, where a call has written.
///
/// # Safety
/// The kernel has accepted the address, or this replica has just written there.
unsafe fn note(digest: &mut Digest, address: u64, len: u64) {
    // SAFETY: the caller's promise.
    digest.bytes(unsafe { bytes(address, len) });
}

impl Transfer for ToLog {
    fn checked_len(&mut self, len: u64) -> u64 {
        put(self.b, len);
        len
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        append(address, len, |w| put(self.b, w));
        // From memory, not from what went into the log: the two must agree at the other end.
        // SAFETY: the kernel has just written these bytes for the leader.
        unsafe { note(&mut self.digest, address, len) };
    }
}

impl Transfer for ToLogAgain {
    fn checked_len(&mut self, len: u64) -> u64 {
        put_again(self.b, len);
        len
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        append(address, len, |w| put_again(self.b, w));
        // SAFETY: these bytes were just copied from the former leader.
        unsafe { note(&mut self.digest, address, len) };
    }
}

impl Transfer for Written {
    fn checked_len(&mut self, len: u64) -> u64 {
        len
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        // SAFETY: the kernel has just written these bytes.
        unsafe { note(&mut self.0, address, len) };
    }
}

impl Transfer for FromLeader {
    fn checked_len(&mut self, len: u64) -> u64 {
        len
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
    fn received(&mut self, _len: u64) -> u64 {
        self.word().unwrap_or(0)
    }
    /// No more than there is room for: a damaged length must not spread.
    fn checked_len(&mut self, room: u64) -> u64 {
        let len = self.word().unwrap_or(0);
        if len > room {
            self.state = Received::Damaged;
            return 0;
        }
        len
    }
    fn move_bytes(&mut self, address: u64, len: u64) {
        // SAFETY: the arguments were verified to be the leader's, whose kernel wrote to the
        // same addresses; the follower's memory is laid out alike.
        unsafe {
            for k in 0..len / 8 {
                let Some(w) = self.word() else {
                    return;
                };
                ((address + 8 * k) as *mut u64).write_unaligned(w);
            }
            let rest = len % 8;
            if rest != 0 {
                let Some(w) = self.word() else {
                    return;
                };
                let w = w.to_le_bytes();
                let to = core::slice::from_raw_parts_mut(
                    (address + len - rest) as *mut u8,
                    rest as usize,
                );
                to.copy_from_slice(&w[..rest as usize]);
            }
            note(&mut self.digest, address, len);
        }
    }
}

/// What has to be remembered from before the call to know how much the kernel wrote.
#[derive(Clone, Copy, Default)]
pub struct Before {
    words: [u32; 2],
    control: u64,
    name: u32,
}

impl Before {
    /// Room for whatever the kernel wrote.
    pub const UNLIMITED: Before = Before {
        words: [u32::MAX; 2],
        control: u64::MAX,
        name: u32::MAX,
    };
}

/// Take down value-result lengths before the call (leader).
pub fn before(row: &Row, args: &[u64; 6]) -> Before {
    let mut b = Before::default();
    for i in 0..row.args.len() {
        let len = match kind_of(row, i, args) {
            Kind::SockaddrOut(n) | Kind::Out(Len::Word(n)) => args[n as usize],
            Kind::MsghdrOut => {
                guarded(|| {
                    // SAFETY: inside `guarded`.
                    unsafe {
                        b.name = read32(args[i] + 8);
                        b.control = read64(args[i] + 40);
                    }
                });
                0
            }
            _ => 0,
        };
        if len != 0 {
            guarded(|| {
                // SAFETY: inside `guarded`.
                b.words[0] = unsafe { read32(len) };
            });
        }
    }
    b
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

/// Leader: append what the call wrote, and a check word over the record. What [`written`] would give.
pub fn send(b: Here, row: &Row, args: &[u64; 6], first: u64, result: i64, before: &Before) -> u64 {
    let mut to = ToLog {
        b,
        digest: Digest::new(0),
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
    match from.word() {
        Some(theirs) if theirs != check(first, result, written) => Received::Damaged,
        _ => from.state,
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
            crate::promotion::inherit(at, len);
        }
    }
    walk(&mut FromLeader, row, args, result, &Before::UNLIMITED);
}

fn walk<T: Transfer>(t: &mut T, row: &Row, args: &[u64; 6], result: i64, before: &Before) {
    let good = result >= 0;
    for i in 0..row.args.len() {
        let p = args[i];
        if p == 0 {
            continue;
        }
        match kind_of(row, i, args) {
            Kind::OutAlways(len) if result != -14 => {
                plain(t, p, out_len(len, args, result, before))
            }
            Kind::Out(len) | Kind::InOut(len) if good => {
                plain(t, p, out_len(len, args, result, before))
            }
            Kind::FdSet(n) if good => plain(t, p, fdset_bytes(args[n as usize])),
            Kind::SockaddrOut(n) if good => {
                let word = args[n as usize];
                // SAFETY: the call succeeded, so the kernel has used the word.
                let after = if word == 0 {
                    0
                } else {
                    // SAFETY: the call succeeded, so the kernel has used the word.
                    unsafe { read32(word) }
                };
                plain(t, p, after.min(before.words[0]) as u64);
            }
            Kind::Ifconf if good => {
                // SAFETY: the call succeeded, so the kernel has used the structure.
                let (len, buffer) = unsafe { (read32(p), read64(p + 8)) };
                plain(t, p, 4);
                if buffer != 0 {
                    plain(t, buffer, len as u64);
                }
            }
            Kind::IovecOut(n) if good => iovec(t, p, args[n as usize], result as u64),
            Kind::MsghdrOut if good => message(t, p, result as u64, before),
            Kind::MmsghdrOut(n) if good => {
                for k in 0..(result as u64).min(args[n as usize]) {
                    // SAFETY: the kernel has written msg_len of the first `result` entries.
                    let n = unsafe { read32(p + 64 * k + 56) } as u64;
                    let b = Before {
                        name: NAME_MAX,
                        control: 1 << 16,
                        ..*before
                    };
                    let n = t.received(n);
                    message(t, p + 64 * k, n, &b);
                    plain(t, p + 64 * k + 56, 4);
                }
            }
            Kind::MmsghdrIn(n) if good => {
                for k in 0..(result as u64).min(args[n as usize]) {
                    plain(t, p + 64 * k + 56, 4);
                }
            }
            _ => {}
        }
    }
}

fn plain<T: Transfer>(t: &mut T, p: u64, len: u64) {
    let len = t.checked_len(len);
    t.move_bytes(p, len);
}

fn out_len(len: Len, args: &[u64; 6], result: i64, before: &Before) -> u64 {
    match len {
        Len::Fixed(n) => n as u64,
        Len::Arg(i) => args[i as usize],
        Len::ArgTimes(i, n) => args[i as usize].saturating_mul(n as u64),
        Len::Ret(i) => (result.max(0) as u64).min(args[i as usize]),
        Len::RetTimes(i, n) => (result.max(0) as u64).min(args[i as usize]) * n as u64,
        Len::Word(i) => {
            let word = args[i as usize];
            // SAFETY: the call succeeded, so the kernel has used the word.
            let after = if word == 0 {
                0
            } else {
                // SAFETY: the call succeeded, so the kernel has used the word.
                unsafe { read32(word) }
            };
            after.min(before.words[0]) as u64
        }
    }
}

fn iovec<T: Transfer>(t: &mut T, p: u64, count: u64, mut left: u64) {
    for k in 0..count.min(IOVEC_MAX) {
        // SAFETY: the kernel has just read the array.
        let (base, len) = unsafe { (read64(p + 16 * k), read64(p + 16 * k + 8)) };
        let n = len.min(left);
        if n > 0 {
            plain(t, base, n);
        }
        left -= n;
    }
}

fn message<T: Transfer>(t: &mut T, p: u64, received: u64, before: &Before) {
    // SAFETY: the kernel has just read and written the header. Offsets of struct msghdr.
    let (name, iov, count, control) =
        unsafe { (read64(p), read64(p + 16), read64(p + 24), read64(p + 32)) };
    // Lengths as the kernel left them, before the header itself is copied.
    // SAFETY: as above.
    let (name_len, control_len) = unsafe { (read32(p + 8), read64(p + 40)) };
    if name != 0 {
        let len = name_len.min(before.name) as u64;
        // Of several messages nobody has noted how much room there was for each name.
        let len = if before.name == NAME_MAX {
            t.received(len).min(NAME_MAX as u64)
        } else {
            t.checked_len(len)
        };
        t.move_bytes(name, len);
    }
    iovec(t, iov, count, received);
    if control != 0 {
        plain(t, control, control_len.min(before.control));
    }
    plain(t, p + 8, 4);
    plain(t, p + 40, 12);
}
