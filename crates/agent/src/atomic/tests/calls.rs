//! What the kernel wrote for the leader, and nothing else, appears in the follower's memory.

extern crate std;

use super::replicas::{Group, Random, become_thread, meet};
use crate::digest::Digest;
use crate::gate::real;
use crate::log::{get, publish, put};
use crate::marshal;
use crate::state::{block, leads};
use core::cell::UnsafeCell;
use geryon_abi::table;
use std::vec::Vec;

const ARENA_BYTES: usize = 1 << 15;

/// All memory that the calls work on, at one address in all replicas.
#[repr(C, align(64))]
struct Arena(UnsafeCell<[u8; ARENA_BYTES]>);

// SAFETY: each replica is a process with one thread that uses it.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; ARENA_BYTES]));

/// Hands out pieces of the arena.
struct Ground {
    used: usize,
}

impl Ground {
    /// A fresh arena, full of a byte that the kernel rarely writes.
    fn new(filler: u8) -> Ground {
        // SAFETY: no reference into the arena lives.
        unsafe { (*ARENA.0.get()).fill(filler) };
        Ground { used: 64 }
    }

    fn room(&mut self, bytes: u64) -> u64 {
        let at = ARENA.0.get() as u64 + self.used as u64;
        // The gap shows what was written beyond the end.
        self.used += bytes.next_multiple_of(16) as usize + 64;
        assert!(self.used < ARENA_BYTES);
        at
    }

    fn words(&mut self, words: &[u64]) -> u64 {
        let at = self.room(8 * words.len() as u64);
        for (i, w) in words.iter().enumerate() {
            // SAFETY: `room` has just reserved these words.
            unsafe { ((at + 8 * i as u64) as *mut u64).write(*w) };
        }
        at
    }

    fn halves(&mut self, halves: &[u32]) -> u64 {
        let words: Vec<u64> = halves
            .chunks(2)
            .map(|c| c[0] as u64 | (c.get(1).copied().unwrap_or(0) as u64) << 32)
            .collect();
        self.words(&words)
    }

    fn text(&mut self, text: &str) -> u64 {
        let at = self.room(text.len() as u64 + 1);
        // SAFETY: `room` has just reserved these bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), at as *mut u8, text.len());
            ((at + text.len() as u64) as *mut u8).write(0);
        }
        at
    }

    fn iovec(&mut self, lengths: &[u64]) -> u64 {
        let pieces: Vec<u64> = lengths.iter().flat_map(|n| [self.room(*n), *n]).collect();
        self.words(&pieces)
    }

    /// A struct msghdr to receive into, 56 bytes, and the struct mmsghdr's 8 behind it.
    fn message(&mut self, name: u64, lengths: &[u64], control: u64) -> [u64; 8] {
        let at = if name == 0 { 0 } else { self.room(name) };
        let iovec = self.iovec(lengths);
        let control_at = if control == 0 { 0 } else { self.room(control) };
        [
            at,
            name,
            iovec,
            lengths.len() as u64,
            control_at,
            control,
            0,
            0,
        ]
    }
}

/// The call in the leader, its echo in the follower; the arena must be the same then. The result.
fn call(nr: u64, args: [u64; 6]) -> i64 {
    let row = table::row(nr).expect("a row");
    let b = block();
    let digest = marshal::digest(row, &args);
    let result = if leads() {
        let before = marshal::before(row, &args);
        let result = real(nr, args);
        put(b, digest);
        put(b, result as u64);
        marshal::send(b, row, &args, digest, result, &before, false);
        publish(b);
        result
    } else {
        assert_eq!(get(b), digest, "digest of {}", row.name);
        let result = get(b) as i64;
        let received = marshal::receive(b, row, &args, digest, result);
        assert_eq!(received, marshal::Received::Whole, "{}", row.name);
        result
    };
    let mut arena = Digest::new(nr);
    // SAFETY: nobody writes to the arena meanwhile.
    arena.bytes(unsafe { &*ARENA.0.get() });
    if leads() {
        put(b, row.nr as u64);
    } else {
        assert_eq!(
            get(b),
            row.nr as u64,
            "the follower has not taken all of {} ({result})",
            row.name
        );
    }
    meet(arena.finish());
    result
}

/// Let the leader do something to the world between two calls.
fn aside(f: impl FnOnce() -> i64) {
    if leads() {
        assert!(f() >= 0, "{}", std::io::Error::last_os_error());
    }
}

fn pair(kind: i32) -> [i32; 2] {
    let mut fds = [0; 2];
    let kind = kind | libc::SOCK_NONBLOCK;
    // SAFETY: room for two descriptors.
    let result = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) };
    assert_eq!(result, 0);
    fds
}

fn write(fd: i32, len: usize, random: &mut Random) {
    let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
    // SAFETY: a buffer that lives.
    aside(|| unsafe { libc::write(fd, bytes.as_ptr().cast(), len) as i64 });
}

/// Send a datagram with a descriptor attached.
fn send_descriptor(fd: i32, bytes: &[u8]) {
    aside(|| {
        let iovec = libc::iovec {
            iov_base: bytes.as_ptr() as *mut _,
            iov_len: bytes.len(),
        };
        let control = [20u64, 1 | 1 << 32, fd as u64];
        // SAFETY: a message of zeros is an empty one; the pointers live until the call ends.
        unsafe {
            let mut m: libc::msghdr = core::mem::zeroed();
            m.msg_iov = &raw const iovec as *mut _;
            m.msg_iovlen = 1;
            m.msg_control = control.as_ptr() as *mut _;
            m.msg_controllen = 24;
            libc::sendmsg(fd, &m, 0) as i64
        }
    });
}

fn reading(random: &mut Random, stream: [i32; 2]) {
    let [here, there] = stream.map(|fd| fd as u64);
    let mut g = Ground::new(0xa5);
    let (len, sent) = (random.below(3000) as u64, random.below(3000) + 1);
    write(stream[1], sent, random);
    let to = g.room(len);
    call(0, [here, to, len, 0, 0, 0]);
    let lengths: Vec<u64> = (0..random.below(6))
        .map(|_| random.below(700) as u64)
        .collect();
    let iovec = g.iovec(&lengths);
    call(19, [here, iovec, lengths.len() as u64, 0, 0, 0]);
    // poll, ppoll, select, epoll: something to read, or nothing.
    let fds = g.halves(&[here as u32, 0xffff_0005, there as u32, 0xffff_0005]);
    call(7, [fds, 2, 0, 0, 0, 0]);
    let timeout = g.words(&[0, 1000]);
    call(271, [fds, 2, timeout, 0, 8, 0]);
    let set = g.words(&[1 << (here % 64) | 1 << (there % 64), 0]);
    let timeval = g.words(&[0, 500]);
    call(23, [here.max(there) + 1, set, 0, 0, timeval, 0]);
    let rest = g.room(4096);
    while call(0, [here, rest, 4096, 0, 0, 0]) > 0 {}
    call(7, [fds, 2, 0, 0, 0, 0]);
}

fn messages(random: &mut Random, datagrams: [i32; 2]) {
    let here = datagrams[0] as u64;
    let mut g = Ground::new(0x5a);
    for _ in 0..4 {
        let sent = random.below(600) + 1;
        let bytes: Vec<u8> = (0..sent).map(|_| random.next() as u8).collect();
        if random.below(2) == 0 {
            send_descriptor(datagrams[1], &bytes);
        } else {
            write(datagrams[1], sent, random);
        }
    }
    let mut lengths = || {
        (0..random.below(4))
            .map(|_| random.below(300) as u64)
            .collect::<Vec<_>>()
    };
    let (a, b, c) = (lengths(), lengths(), lengths());
    let control = [0, 24, 20, 64][random.below(4)];
    let m = g.message([0, 2, 110][random.below(3)], &a, control);
    let m = g.words(&m[..7]);
    let flags = if random.below(2) == 0 { 0x20 } else { 0 };
    call(47, [here, m, flags, 0, 0, 0]);
    let vector: Vec<u64> = [(110, &b, 64), (0, &c, 0)]
        .into_iter()
        .flat_map(|(name, lengths, control)| g.message(name, lengths, control))
        .collect();
    let vector = g.words(&vector);
    call(299, [here, vector, 2, 0x40, 0, 0]);
    let (to, name, len) = (
        g.room(600),
        g.room(110),
        g.words(&[random.below(110) as u64]),
    );
    call(45, [here, to, 300, flags, name, len]);
    while call(0, [here, to, 600, 0, 0, 0]) >= 0 {}
    call(47, [here, m, 0, 0, 0, 0]);
}

fn asking(random: &mut Random, fds: [i32; 2], named: i32) {
    let fd = fds[0] as u64;
    let mut g = Ground::new(0x33);
    for nr in [51, 52] {
        let (name, len) = (g.room(110), g.words(&[random.below(111) as u64]));
        call(nr, [named as u64, name, len, 0, 0, 0]);
    }
    for option in [3, 4, 13, 17, 20, 31, 9999] {
        let (value, len) = (g.room(64), g.words(&[random.below(65) as u64]));
        call(55, [fd, 1, option, value, len, 0]);
    }
    let path = g.text("/proc/self/exe");
    for (nr, bytes) in [(63, 390), (99, 112), (100, 32)] {
        let to = g.room(bytes);
        call(nr, [to, 0, 0, 0, 0, 0]);
    }
    for (nr, first, bytes) in [
        (97, 7, 16),
        (98, 0, 144),
        (228, 1, 16),
        (229, 1, 16),
        (5, fd, 144),
        (36, 0, 32),
        (5, 9999, 144),
    ] {
        let to = g.room(bytes);
        call(nr, [first, to, 0, 0, 0, 0]);
    }
    let to = g.room(512);
    call(79, [to, random.below(512) as u64, 0, 0, 0, 0]);
    call(89, [path, to, random.below(512) as u64, 0, 0, 0]);
    call(204, [0, 8 * random.below(64) as u64, to, 0, 0, 0]);
    call(318, [to, random.below(512) as u64, 0, 0, 0, 0]);
    call(4, [path, to, 0, 0, 0, 0]);
    call(332, [-100i64 as u64, path, 0, 0xfff, to, 0]);
    call(302, [0, 7, 0, to, 0, 0]);
    call(309, [to, to + 8, 0, 0, 0, 0]);
    call(35, [g.words(&[0, 1000]), to, 0, 0, 0, 0]);
    call(16, [fd, 0x541b, to, 0, 0, 0]);
    call(72, [fd, 3, 0, 0, 0, 0]);
}

#[test]
fn followers_get_what_the_kernel_wrote() {
    let group = Group::new(2);
    let (stream, datagrams) = (pair(libc::SOCK_STREAM), pair(libc::SOCK_DGRAM));
    // SAFETY: an abstract name of four bytes, in a structure that lives.
    let named = unsafe {
        let named = libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0);
        let family = [libc::AF_UNIX as u8, 0];
        assert_eq!(libc::bind(named, family.as_ptr().cast(), 2), 0);
        named
    };
    group.run(2, || {
        become_thread(0);
        let mut random = Random(11);
        for _ in 0..150 {
            reading(&mut random, stream);
            messages(&mut random, datagrams);
            asking(&mut random, stream, named);
        }
    });
    for fd in stream.into_iter().chain(datagrams).chain([named]) {
        // SAFETY: own descriptors.
        unsafe { libc::close(fd) };
    }
}
