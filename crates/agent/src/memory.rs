//! Calls that choose addresses: one order for the whole process, and in followers the
//! leader's addresses.

mod own;
mod still;
mod undone;

use crate::call;
use crate::clock::MEMORY;
use crate::compare::expect;
use crate::diverge::{diverged, diverged_for_good};
use crate::event;
use crate::gate::{real, real_in_flight, rpc};
use crate::log::{append, get, publish, remember, word_at};
use crate::marshal;
use crate::passage::Passage;
use crate::raise;
use crate::shared;
use crate::state::{Here, block, header, layout, leads, private, tell_kin};
use crate::stop::{broken, refused};
use crate::wait::{Patience, announce, announce_end};
use core::hint::black_box;
use core::sync::atomic::Ordering;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{
    INJECTED_ENV, MAX_REPLICAS, enclosed, outdated, rpc as number, touches_reserved, wait, why,
};
use geryon_abi::outcome;
use geryon_abi::record::{detail_of, kind, low_of, seal, unseal, word};
use geryon_abi::row::Row;
use geryon_abi::table::nr;

/// Above this no program has memory.
const END: u64 = crate::access::END;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const PROT_EXEC: u64 = 4;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
/// Detail of a record: followers map an object of their own, which the word behind the result names.
const OF_OBJECT: u8 = 1;
/// It has failed, but first it has unmapped what was where it should have mapped something,
const CLEARED: u8 = 2;
/// or the end of what it should have made shorter.
const CUT: u8 = 4;
const EINVAL: i64 = -22;
const EEXIST: i64 = -17;

/// mmap, munmap, mremap, brk.
pub fn ordered(frame: &mut Frame, row: &Row) {
    let args = frame.args();
    let nr = row.nr as u64;
    let digest = marshal::digest(row, &args);
    let b = block();
    if claims_reserved(nr, &args) {
        if nr == nr::mmap && args[3] & MAP_FIXED_NOREPLACE != 0 {
            // That something is there already is what such a call asks for.
            frame.rax = EEXIST as u64;
            return;
        }
        refused(nr, 0);
        frame.rax = EINVAL as u64;
        return;
    }
    if nr == nr::brk && private().env_injected.get() != 0 {
        remove_injected_env();
    }
    if layout().is_unrelated() && !uses_file(nr, &args) {
        frame.rax = own::map(row, args) as u64;
        return;
    }
    let agreed = shared::is_agreed(nr, &args);
    if agreed && call::rendezvous(frame, row.nr, digest, args) {
        shared::agreed(nr, &args);
    }
    let followed = if leads() {
        None
    } else {
        follow(b, frame, row, digest)
    };
    let result = followed.unwrap_or_else(|| {
        if !agreed {
            raise::lead_signal_before(b, frame);
        }
        lead(b, row, args, digest)
    });
    crate::access::mappings_change();
    frame.rax = result as u64;
}

/// Has code that was mapped rewritten. Trampolines lie where nothing is mapped: what is so is alike in all replicas as long
/// as nobody makes the next memory call.
fn rewrite(nr: u64, args: &[u64; 6], result: i64) {
    // (What is written into a shared mapping would be written into the file: code there is not rewritten.)
    let is_private = nr == nr::mmap && uses_file(nr, args) && !shared::is_shared(args[3]);
    if is_private && args[2] & PROT_EXEC != 0 {
        rpc(number::MAPPED, result as u64, args[1], 0);
    }
}

fn lead(mut b: Here, row: &Row, args: [u64; 6], digest: u64) -> i64 {
    if !leads() {
        broken();
    }
    let nr = row.nr as u64;
    let tick = MEMORY.enter(b.this);
    let object = match nr {
        nr::shmat => shared::segment::ask(&args),
        _ if uses_file(nr, &args) => shared::ask(&args),
        _ => 0,
    };
    let result = if object < 0 {
        object
    } else if (object > 0 && nr == nr::shmat) || (nr == nr::shmdt && private().replicas > 1) {
        let result = shared::segment::lead(nr, &args, object as u32);
        b.flight_result = [result as u64; 2];
        noted(b)
    } else {
        call::check_asked(row, &args);
        b.flight_nr = row.nr as u32;
        let given = still::given(nr, &unreserved(nr, args));
        real_in_flight(call::number_of(row), &given, true);
        noted(b)
    };
    if object > 0 {
        tell_kin();
    }
    let of_object = if object > 0 { OF_OBJECT } else { 0 };
    let detail = of_object | undone::lead(nr, &args, result);
    let first = word(kind::MEMORY, detail, row.nr, tick);
    let start = *black_box(&b.pos);
    point!(MemoryUnlogged);
    let named = own::logged(layout(), result);
    append(b, [first, digest, named]);
    if object > 0 {
        append(b, [seal(first, object as u32, named)]);
    }
    // (All will believe what is logged, and registers hold it on the way there.)
    let meant = word(kind::MEMORY, detail, row.nr, MEMORY.now());
    let in_log = layout().place(word_at(b, start + 2)) as i64;
    let of_now = own::logged(layout(), noted(b)) as i64;
    if word_at(b, start) != meant || (object >= 0 && in_log != layout().place(of_now as u64) as i64)
    {
        broken();
    }
    let result = match layout().is_unrelated() {
        true => noted(b),
        false => in_log,
    };
    remember(b, first);
    if uses_file(nr, &args) {
        let maps = &private().file_maps;
        maps.set(maps.get() + 1);
    }
    publish(b);
    point!(MemoryUnticked);
    if !failed(result) {
        still::changed(nr, &args, result as u64);
        shared::changed(nr, &args, result as u64, object > 0);
        rewrite(nr, &args, result);
    }
    MEMORY.tick();
    MEMORY.leave();
    if object > 0 {
        // From here on the monitor finds in each replica who maps what.
        await_file_maps();
        rpc(number::SETTLED, object as u64, 0, 0);
        shared::is_mapped();
    }
    result
}

/// What the gate has noted of the call just made.
fn noted(b: Here) -> i64 {
    match outcome::noted(b.flight_result) {
        Ok(Some(result)) => result,
        _ => broken(),
    }
}

/// None when this replica leads by now.
fn follow(b: Here, frame: &mut Frame, row: &Row, digest: u64) -> Option<i64> {
    let args = frame.args();
    let nr = row.nr as u64;
    loop {
        let (first, [result]) = expect(b, frame, kind::MEMORY, row.nr, digest, &args)?;
        let start = b.pos - 3;
        let mut object = 0;
        let detail = detail_of(first);
        if detail & OF_OBJECT != 0 {
            let Some(named) = unseal(first, get(b), result) else {
                diverged(why::DAMAGED, start, event::plain(first));
                continue;
            };
            object = named;
        }
        let result = layout().place(result) as i64;
        crate::log::verified(b);
        let tick = low_of(first);
        if !MEMORY.await_turn_at(b, start, tick) {
            continue;
        }
        let mut result = result;
        if !failed(result) {
            let own = point!(RepeatFails, repeat(nr, args, result, object));
            if layout().is_unrelated() && !failed(own) {
                result = own;
            } else if own != result {
                diverged_for_good(
                    why::LOCAL,
                    start,
                    [
                        word(kind::MEMORY, 0, row.nr, 0),
                        digest,
                        own as u64,
                        result as u64,
                        args[0],
                        args[1],
                        args[2],
                        args[3],
                    ],
                );
            }
        }
        undone::follow(nr, &args, detail);
        if uses_file(nr, &args) {
            tell_mapped(b, |done| done.saturating_add(1));
        }
        if !failed(result) {
            still::changed(nr, &args, result as u64);
            shared::changed(nr, &args, result as u64, object != 0);
            rewrite(nr, &args, result);
        }
        point!(MemoryRepeated);
        MEMORY.turn_done(tick);
        if object != 0 {
            shared::is_mapped();
        }
        return Some(result);
    }
}

/// Is the call made at all? (Else nothing is logged of it.)
pub fn is_made(nr: u64, args: &[u64; 6]) -> bool {
    !claims_reserved(nr, args)
}

/// Would the call take memory that belongs to Geryon?
fn claims_reserved(nr: u64, a: &[u64; 6]) -> bool {
    // (What is beyond all memory the kernel refuses itself.)
    let touches_reserved =
        |start: u64, len: u64| touches_reserved(start, len) && start.saturating_add(len) <= END;
    match nr {
        nr::mmap => a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 && touches_reserved(a[0], a[1]),
        nr::mremap => {
            touches_reserved(a[0], a[1])
                || (a[3] & MREMAP_FIXED != 0 && touches_reserved(a[4], a[2]))
        }
        nr::shmat => a[1] != 0 && touches_reserved(a[1], 1),
        nr::shmdt => touches_reserved(a[0], 1),
        nr::brk => false,
        _ => touches_reserved(a[0], a[1]),
    }
}

/// Without a hint into Geryon's memory, which is not full: the kernel would map something in a hole of it, as for the
/// heaps of V8, which asks for random places.
fn unreserved(nr: u64, mut a: [u64; 6]) -> [u64; 6] {
    if nr == nr::mmap && a[3] & MAP_FIXED == 0 && touches_reserved(a[0], a[1]) {
        a[0] = 0;
    }
    a
}

fn failed(result: i64) -> bool {
    (-4095..0).contains(&result)
}

fn uses_file(nr: u64, args: &[u64; 6]) -> bool {
    nr == nr::mmap && args[3] & MAP_ANONYMOUS == 0 || nr == nr::shmat
}

/// Follower: the same call, at the leader's address.
fn repeat(nr: u64, mut a: [u64; 6], result: i64, object: u32) -> i64 {
    match nr {
        nr::mmap => {
            if !layout().is_unrelated() {
                a[0] = result as u64;
                a[3] = (a[3] & !MAP_FIXED_NOREPLACE) | MAP_FIXED;
            }
            if object != 0 {
                return shared::map(a, object);
            }
            let file = uses_file(nr, &a);
            if file && private().shares_files.get() == 0 {
                let fd = fetch(a[4]);
                if fd < 0 {
                    return fd;
                }
                let mapped = real(nr, [a[0], a[1], a[2], a[3], fd as u64, a[5]]);
                real(nr::close, [fd as u64, 0, 0, 0, 0, 0]);
                return mapped;
            }
            real(nr, a)
        }
        nr::shmat => shared::segment::attach_at(result as u64, a[2], object),
        nr::shmdt => shared::segment::detach(a[0]),
        // It has failed, under a limit of the leader's own, say: the break is where it was.
        nr::brk if result as u64 != a[0] => real(nr, [0; 6]),
        nr::mremap if result as u64 != a[0] => {
            a[3] = MREMAP_MAYMOVE | MREMAP_FIXED | (a[3] & 4);
            a[4] = result as u64;
            real(nr, a)
        }
        _ => real(nr, a),
    }
}

/// The leader's descriptor `fd`, as a descriptor of this process. The monitor fetches it: this process may
/// have no right to.
fn fetch(fd: u64) -> i64 {
    let fetched = Passage::open().and_then(|p| {
        let got = p.fetch(fd, enclosed::LEADERS);
        p.close();
        got
    });
    point!(FetchFails, fetched.map_or_else(|e| e, |fd| fd as i64))
}

/// Follower: so many files are mapped as its leader has. (A leader that is about to lose a descriptor waits for that.)
fn tell_mapped(b: Here, next: impl Fn(u64) -> u64) {
    b.publishing.store(1, Ordering::SeqCst);
    let done = &header().open.file_maps[private().replica.get() as usize];
    let _ = done.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |done| Some(next(done)));
    b.publishing.store(0, Ordering::SeqCst);
    crate::wait::wake_at(done as *const _ as u64, true);
}

/// Follower: its process ends, and maps no more. Other threads may have been about to.
pub fn maps_no_more() {
    tell_mapped(block(), |_| u64::MAX);
}

/// Leader: before a descriptor goes away, let the followers have mapped what they have to.
pub fn await_file_maps() {
    let issued = private().file_maps.get();
    let mut patience = Patience::new();
    loop {
        // Those that are being made have still to fetch what they replay, too.
        let readers = crate::log::readers(block());
        let mask = readers & !crate::log::sleepers(block());
        let late = (0..MAX_REPLICAS).find(|i| {
            mask & (1 << i) != 0 && header().open.file_maps[*i].load(Ordering::Acquire) < issued
        });
        let Some(i) = late else {
            if crate::log::are_all(block(), readers) {
                break;
            }
            continue;
        };
        announce(wait::MAPS, i as u64, issued);
        if patience.spend() {
            let word = &header().open.file_maps[i];
            let seen = word.load(Ordering::SeqCst);
            if seen < issued {
                crate::wait::sleep64(word, seen, true);
            }
        }
    }
    announce_end();
}

/// Leader: before a descriptor goes away, neither a follower nor one that sleeps has still to map it. (Twice: a follower that was
/// waited for may have been copied meanwhile, before it had.)
pub fn let_files_be_mapped() {
    for _ in 0..2 {
        outdate_sleepers();
        await_file_maps();
    }
}

/// Leader: before a descriptor goes away that a sleeping replica would have to map when it wakes up:
/// there have to be younger ones.
fn outdate_sleepers() {
    let mask = crate::log::sleepers(block());
    let issued = private().file_maps.get();
    let late = |i: &usize| {
        mask & (1 << i) != 0 && header().open.file_maps[*i].load(Ordering::Acquire) < issued
    };
    if mask != 0 && (0..MAX_REPLICAS).any(|i| late(&i)) {
        rpc(number::OUTDATED, outdated::FILE, 0, 0);
    }
}

/// ld.so has read its tunables: take our strings out of the environment again. Behind its NULL the auxiliary
/// vector follows, as it must: what is left over becomes an entry of it that says nothing.
fn remove_injected_env() {
    const AT_IGNORE: u64 = 1;
    let p = private();
    let envp = p.envp as *mut u64;
    let count = p.env_injected.get() as usize;
    p.env_injected.set(0);
    // SAFETY: the monitor put `count` strings at the end of the array that starts at `envp`
    // on this process's initial stack; the program's code has not run yet.
    unsafe {
        let mut n = 0;
        while *envp.add(n) != 0 {
            n += 1;
        }
        for i in 0..count {
            *envp.add(n - 1 - i) = 0;
        }
        // The strings' words and the NULL behind them: now NULL, AT_IGNORE and its value.
        const { assert!(INJECTED_ENV == 2) };
        *envp.add(n - 1) = AT_IGNORE;
    }
}
