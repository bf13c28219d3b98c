//! Numbers of an ELF file's headers and tables replaced by their worst: an error or a plan that can
//! be emitted, never a panic. (`files.rs` damages bytes anywhere.)

use geryon_patch::descriptor::{DESCRIPTOR_LEN, Descriptor};
use geryon_patch::{AgentEntries, Options, Plan};
use std::ops::Range;

const FILE: &str = "/lib64/ld-linux-x86-64.so.2";
const ROUNDS: usize = 150;
const AREA: u64 = 0x7000_0000_0000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn within(&mut self, range: &Range<usize>) -> usize {
        range.start + (self.next() >> 33) as usize % range.len().max(1)
    }
}

/// Numbers at which arithmetic goes wrong, and neighbours of what was there.
fn worst(random: &mut Random, was: u64, file: usize) -> u64 {
    let edges = [
        0,
        1,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 47,
        i64::MAX as u64,
        1 << 63,
        u64::MAX,
        u64::MAX - 0xfff,
        file as u64,
        file as u64 - 1,
        was.wrapping_add(1),
        was.wrapping_sub(1),
        was << 1,
        !was,
    ];
    edges[(random.next() >> 33) as usize % edges.len()]
}

fn number(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"))
}

/// Where the file keeps numbers: header, program headers, section headers and the sections that
/// are tables.
fn tables(file: &[u8]) -> Vec<Range<usize>> {
    let short = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let (programs, sections) = (number(file, 32) as usize, number(file, 40) as usize);
    let mut all = vec![
        16..64,
        programs..programs + 56 * short(56),
        sections..sections + 64 * short(60),
    ];
    for i in 0..short(60) {
        let header = sections + 64 * i;
        let kind = u32::from_le_bytes(file[header + 4..header + 8].try_into().expect("4 bytes"));
        let at = number(file, header + 24) as usize;
        let range = at..at + number(file, header + 32) as usize;
        let code = number(file, header + 8) & 4 != 0;
        if kind != 8 && !code && !range.is_empty() && range.end <= file.len() {
            all.push(range);
        }
    }
    all
}

#[test]
fn the_worst_numbers_do_no_harm() {
    let Ok(file) = std::fs::read(FILE) else {
        println!("{FILE} is not here");
        return;
    };
    let options = Options {
        entries: &[("__tls_get_addr", 0), ("_dl_signal_error", 1)],
        rmw: true,
        waits: true,
        loads: true,
        asked: &[],
    };
    let agent = AgentEntries {
        syscall: 1 << 20,
        rdtsc: 2 << 20,
        rdtscp: 3 << 20,
        rdrand: 4 << 20,
        rmw: 5 << 20,
        load: 8 << 20,
        xsavec: 9 << 20,
        hooks: vec![6 << 20, 7 << 20],
    };
    let tables = tables(&file);
    let mut random = Random(1);
    let (mut plans, mut emitted) = (0, 0);
    for _ in 0..ROUNDS {
        let mut damaged = file.clone();
        for _ in 0..=random.next() >> 61 {
            let table = &tables[(random.next() >> 33) as usize % tables.len()];
            let width = 1 << (random.next() >> 62);
            let at = (random.within(table) & !(width - 1)).min(file.len() - 8);
            let value = worst(&mut random, number(&file, at), file.len()).to_le_bytes();
            damaged[at..at + width].copy_from_slice(&value[..width]);
        }
        let Ok(plan) = Plan::new(&damaged, &options) else {
            continue;
        };
        plans += 1;
        for (bias, range) in [
            (AREA - (1 << 30), None),
            (u64::MAX << 12, Some(0..u64::MAX)),
        ] {
            emitted += usize::from(plan.emit(bias, AREA, &agent, range).is_ok());
        }
    }
    println!("{plans} plans, {emitted} emitted");
    assert!(plans > ROUNDS / 10 && emitted > ROUNDS / 10);
}

#[test]
fn any_bytes_are_a_descriptor_or_none() {
    let mut random = Random(2);
    let mut read = 0;
    for _ in 0..100_000 {
        let mut bytes = [0; DESCRIPTOR_LEN];
        bytes.fill_with(|| random.next() as u8);
        // Half of the time a known operation and source.
        if random.next() >> 63 == 0 {
            bytes[24] %= 19;
            bytes[26] %= 4;
        }
        if let Some(d) = Descriptor::decode(&bytes) {
            read += 1;
            assert_eq!(Descriptor::decode(&d.encode()), Some(d));
        }
    }
    assert!(read > 40_000);
}
