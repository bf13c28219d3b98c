//! A leader and its followers without a monitor: forked processes that share a segment, run the
//! same threads, and reach the agent's stub for atomics as a trampoline does.

extern crate std;

use super::stub::{RSP, through_stub, value_through_stub};
use super::{Memory, R10, RAX, RBX, RCX, RDX, STATUS, State, WORDS, forms, open_flags, wide_form};
use crate::atomic::decode::{mask, op};
use crate::log::{
    acknowledge, confirmed, get, publish, put, register_barrier, resume_stream, tell_tail,
};
use crate::state::{block, block_at, header, leads, private};
use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use geryon_abi::layout::{
    BLOCK_BYTES, BLOCKS_BASE, Header, MAX_REPLICAS, MAX_THREADS, PRIVATE_BASE, PRIVATE_BYTES,
    Private, RING_WORDS, SEGMENT_BASE, role, segment_bytes,
};
use geryon_ring::roll::By;
use std::boxed::Box;
use std::string::{String, ToString};
use std::sync::{Mutex, MutexGuard};
use std::vec::Vec;

/// Seconds after which a replica that does not end is killed: it hangs, or has diverged.
const PATIENCE_S: u32 = 60;

fn map(address: u64, bytes: u64, sharing: i32) {
    let flags = sharing | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: takes no address that is in use.
    let at = unsafe {
        libc::mmap(
            address as *mut _,
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    assert_eq!(at as u64, address, "{}", std::io::Error::last_os_error());
}

/// The segment, mapped where the replicas expect it. One at a time.
pub(super) struct Group {
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Group {
    pub(super) fn new(replicas: u32) -> Group {
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        map(SEGMENT_BASE, segment_bytes(RING_WORDS), libc::MAP_SHARED);
        // SAFETY: just mapped, and seen by nobody else yet.
        unsafe { (*(SEGMENT_BASE as *mut Header)).ring_words = RING_WORDS as u64 };
        header().alive.store((1 << replicas) - 1, Ordering::SeqCst);
        Group { _alone: alone }
    }

    /// Fork replica `index`, replica 0 leads. It fails when `life` panics.
    fn start(&self, index: u32, life: impl FnOnce()) -> libc::pid_t {
        // SAFETY: the child uses locks of this process only through the allocator, which libc
        // keeps usable, and leaves by _exit.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid > 0 {
            return pid;
        }
        // SAFETY: as above.
        unsafe { libc::alarm(PATIENCE_S) };
        map(PRIVATE_BASE, PRIVATE_BYTES, libc::MAP_PRIVATE);
        map(
            BLOCKS_BASE,
            BLOCK_BYTES * MAX_THREADS as u64,
            libc::MAP_PRIVATE,
        );
        let p = private();
        p.replica.set(index);
        p.role.set(match index {
            0 => role::LEADER,
            _ => role::FOLLOWER,
        });
        let lived = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            if leads() {
                register_barrier();
            }
            life();
        }));
        if let Err(e) = &lived {
            let text = e.downcast_ref::<String>().cloned();
            let text = text
                .or(e.downcast_ref::<&str>().map(ToString::to_string))
                .unwrap_or_default()
                + "\n";
            // SAFETY: writes a string that lives.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
        }
        // SAFETY: ends the process.
        unsafe { libc::_exit(lived.is_err() as i32) }
    }

    /// Fork all replicas and wait for their end.
    pub(super) fn run(&self, replicas: u32, life: impl Fn()) {
        let children: Vec<_> = (0..replicas).map(|i| self.start(i, &life)).collect();
        let ends: Vec<_> = children
            .into_iter()
            .map(|pid| {
                let mut status = 0;
                // SAFETY: an own child.
                assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
                status
            })
            .collect();
        assert!(
            ends.iter().all(|s| *s == 0),
            "wait statuses {ends:x?} (e: did not end, 100: see above)"
        );
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nothing refers to any more.
        unsafe { libc::munmap(SEGMENT_BASE as *mut _, segment_bytes(RING_WORDS) as usize) };
    }
}

/// Make the calling thread the replica's thread `slot`.
pub(super) fn become_thread(slot: usize) {
    let mut b = block_at(slot);
    b.this = geryon_abi::layout::block_address(slot);
    b.slot = slot as u32;
    b.set_ordered(true);
    b.stack_top = geryon_abi::layout::stack_top(slot);
    // SAFETY: nothing else in a test's process uses GS.
    unsafe { asm!("wrgsbase {}", in(reg) b.this, options(nostack, preserves_flags)) };
    resume_stream(leads());
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
}

#[test]
fn the_stub_does_what_the_processor_does() {
    Group::new(1).run(1, || {
        become_thread(0);
        let mut random = Random(7);
        for _ in 0..200 {
            for form in forms().into_iter().chain([wide_form()]) {
                let r: [u64; 16] = core::array::from_fn(|_| random.next());
                let mut s = State {
                    memory: Memory([0; WORDS]),
                    r,
                    flags: random.next() & STATUS,
                };
                s.memory.0[WORDS / 2] = if random.below(2) == 0 {
                    r[RAX]
                } else {
                    random.next()
                };
                s.memory.0[WORDS / 2 + 1] = r[RDX];
                if matches!(form.op, op::BTS | op::BTR | op::BTC) {
                    s.r[RCX] = (s.r[RCX] & 0xfff).wrapping_sub(0x800) & mask(form.size);
                }
                let mut ours = s.clone();
                (form.run)(&mut s);
                let operand = ours.operand() as u64;
                through_stub(&form, operand, &mut ours.r, &mut ours.flags);
                assert!(s.memory == ours.memory, "memory of {}", form.text);
                assert_eq!(s.r, ours.r, "registers of {}", form.text);
                let open = open_flags(form.op);
                assert_eq!(
                    s.flags & !open,
                    ours.flags & !open,
                    "flags of {}",
                    form.text
                );
            }
        }
    });
}

#[test]
fn the_stack_pointer_is_an_operand_too() {
    Group::new(1).run(1, || {
        become_thread(0);
        let mut form = forms()
            .into_iter()
            .find(|f| f.op == op::ADD && f.size == 8 && f.source == 1)
            .expect("add");
        form.register = RSP as u8;
        let memory = AtomicU64::new(5);
        let rsp = through_stub(&form, memory.as_ptr() as u64, &mut [0; 16], &mut 0);
        assert_eq!(memory.load(Ordering::SeqCst), rsp + 5);
    });
}

#[test]
fn values_are_the_leaders() {
    Group::new(2).run(2, || {
        become_thread(0);
        // SAFETY: as the monitor does it, before any code of the agent runs.
        unsafe { (*(PRIVATE_BASE as *mut Private)).tsc_mult = 3 << 20 };
        let mut random = Random(3);
        let mut last = 0;
        for turn in 0..3_000 {
            let [a, c, d] = value_through_stub(turn % 3, &mut random);
            let now = a | d << 32;
            match turn % 3 {
                2 => assert_eq!([c, d], [1, 2], "rdrand"),
                which => {
                    assert!(a >> 32 == 0 && now >= last, "time goes back");
                    assert_eq!(c, [1, 0][which], "the number of the core");
                    last = now;
                }
            }
            meet(a ^ d.rotate_left(32));
        }
    });
}

const SHARED_WORDS: usize = 8;
/// What the threads of one replica fight over; a private copy in each replica.
static SHARED: Shared = Shared([const { AtomicU64::new(0) }; SHARED_WORDS]);

/// Aligned as the widest operand wants it.
#[repr(C, align(16))]
struct Shared([AtomicU64; SHARED_WORDS]);

/// What the replicas report: the digest of all that each thread saw, and the memory at the end.
#[repr(C)]
struct Results {
    seen: [[AtomicU64; 4]; MAX_REPLICAS],
    memory: [[AtomicU64; SHARED_WORDS]; MAX_REPLICAS],
    operations: AtomicU32,
}

/// Enough for a ring to be overwritten several times.
const OPERATIONS: usize = 60_000;

fn thread_of_replica(slot: usize, seed: u64, results: &Results) {
    become_thread(slot);
    let mut forms = forms();
    forms.extend([0; 8].map(|_| wide_form()));
    let xadd = forms
        .iter()
        .find(|f| f.op == op::XADD && f.size == 8 && f.register as usize == RCX);
    let xadd = xadd.expect("xadd with rcx");
    let me = private().replica.get() as usize;
    let mut random = Random(seed ^ (slot as u64 + 1) << 32);
    // What the thread has seen decides what it does next.
    let mut mix = 0u64;
    let mut flags = 0;
    for turn in 0..OPERATIONS {
        let form = &forms[random.below(forms.len())];
        if matches!(form.op, op::BTS | op::BTR | op::BTC) && form.source == 1 {
            continue;
        }
        let mut r: [u64; 16] =
            core::array::from_fn(|i| random.next() ^ if i == RDX { mix } else { 0 });
        let word = random.below(SHARED_WORDS) & if form.size == 16 { !1 } else { !0 };
        let address = SHARED.0[word].as_ptr() as u64;
        if matches!(form.op, op::CMPXCHG | op::CMPXCHG8B | op::CMPXCHG16B) && random.below(2) == 0 {
            // Expect what an instruction has just seen there.
            let mut look = |address| {
                let mut seen = [0; 16];
                through_stub(xadd, address, &mut seen, &mut flags);
                seen[RCX]
            };
            r[RAX] = look(address);
            r[RDX] = if form.size == 16 {
                look(address + 8)
            } else {
                r[RAX] >> 32
            };
        }
        through_stub(form, address, &mut r, &mut flags);
        mix = (mix ^ r[RAX] ^ r[RCX].rotate_left(13) ^ r[RBX] ^ r[R10] ^ r[RDX] ^ flags)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // In turns: nobody runs far ahead, and as far as the ring lets them.
        if turn % 500 == 499 && turn / 20_000 % 2 == 0 {
            meet(mix);
        }
        if random.below(2_000) == 0 {
            // The replicas run at different speeds, and fall asleep.
            std::thread::sleep(core::time::Duration::from_millis(
                random.next() % 3 * me as u64,
            ));
        }
    }
    results.seen[me][slot].store(mix, Ordering::SeqCst);
    results
        .operations
        .fetch_add(OPERATIONS as u32, Ordering::SeqCst);
    if !leads() {
        tell_tail(block());
    }
}

/// A rendezvous, as an output has one.
pub(super) fn meet(value: u64) {
    let b = block();
    if leads() {
        put(b, value);
        publish(b);
        confirmed(b, b.pos, By::All);
    } else {
        assert_eq!(get(b), value, "a follower's thread has seen something else");
        acknowledge(b);
    }
}

/// GERYON_SEED repeats a run, or makes another one.
fn threads_agree(replicas: u32, threads: usize) {
    let seed = std::env::var("GERYON_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1u64);
    let group = Group::new(replicas);
    // SAFETY: a new mapping, given back below.
    let results = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let at = libc::mmap(
            core::ptr::null_mut(),
            size_of::<Results>(),
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        &*(at as *const Results)
    };
    group.run(replicas, || {
        let lives: Vec<_> = (0..threads)
            .map(|slot| std::thread::spawn(move || thread_of_replica(slot, seed, results)))
            .collect();
        lives
            .into_iter()
            .for_each(|l| l.join().expect("a thread of a replica"));
        for (word, to) in SHARED
            .0
            .iter()
            .zip(&results.memory[private().replica.get() as usize])
        {
            to.store(word.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    });
    assert_eq!(
        results.operations.load(Ordering::SeqCst),
        replicas * (threads * OPERATIONS) as u32
    );
    let plain = |words: &[AtomicU64]| -> Box<[u64]> {
        words.iter().map(|w| w.load(Ordering::SeqCst)).collect()
    };
    for i in 1..replicas as usize {
        assert_eq!(
            plain(&results.seen[0]),
            plain(&results.seen[i]),
            "what the threads of replica {i} saw"
        );
        assert_eq!(
            plain(&results.memory[0]),
            plain(&results.memory[i]),
            "memory of replica {i}"
        );
    }
    // SAFETY: the mapping made above; `results` is not used any more.
    unsafe { libc::munmap(results as *const _ as *mut _, size_of::<Results>()) };
}

#[test]
fn one_thread_in_two_replicas_agrees() {
    threads_agree(2, 1);
}

#[test]
fn three_threads_in_two_replicas_agree() {
    threads_agree(2, 3);
}

#[test]
fn two_threads_in_three_replicas_agree() {
    threads_agree(3, 2);
}
