//! Faults in memory: which byte of a process a random number means, by its /proc/PID/maps.

use std::ops::Range;

use crate::fault::{STACK_BYTES, Target};

/// Size of a page, and of the guard below a thread's stack at least.
const PAGE_BYTES: u64 = 4096;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<u64>,
    write: bool,
    execute: bool,
    /// No access at all.
    guard: bool,
    shared: bool,
    path: String,
}

/// What is mapped in a process.
#[derive(Clone, Debug)]
pub struct Maps(Vec<Mapping>);

impl Maps {
    /// Read /proc/PID/maps. Lines that are not understood are left out.
    pub fn parse(text: &str) -> Maps {
        Maps(text.lines().filter_map(mapping).collect())
    }

    /// The byte and its bit that a target in memory means; `exe` is the program's path (the link
    /// /proc/PID/exe), `sp` the stack pointer of the thread that is hit. `reserved` are addresses
    /// that are not the program's (the agent's). None: the process has nothing of that kind, or the
    /// target is none in memory.
    pub fn place(
        &self,
        target: &Target,
        exe: &str,
        sp: u64,
        reserved: &[Range<u64>],
    ) -> Option<(u64, u32)> {
        let (ranges, number, bit) = match *target {
            Target::Stack { number, bit } => (self.stack(sp), number, bit),
            Target::Heap { number, bit } => (self.heap(exe, sp), number, bit),
            Target::Data { number, bit } => (self.data(exe), number, bit),
            Target::Code { number, bit } => (self.code(exe), number, bit),
            _ => return None,
        };
        let free = |range: &Range<u64>| {
            let apart = |r: &Range<u64>| range.end <= r.start || r.end <= range.start;
            reserved.iter().all(apart)
        };
        nth_byte(ranges.into_iter().filter(free).collect(), number).map(|at| (at, bit))
    }

    /// From the stack pointer upwards.
    fn stack(&self, sp: u64) -> Vec<Range<u64>> {
        let holds = |m: &&Mapping| m.range.contains(&sp) && m.write;
        let found = self.0.iter().find(holds);
        found
            .map(|m| sp..m.range.end.min(sp.saturating_add(STACK_BYTES)))
            .into_iter()
            .collect()
    }

    /// The brk heap and private anonymous memory that is neither a stack nor bss.
    fn heap(&self, exe: &str, sp: u64) -> Vec<Range<u64>> {
        let bss = self.data(exe);
        let mut found = Vec::new();
        for (i, m) in self.0.iter().enumerate() {
            let below = i.checked_sub(1).map(|b| &self.0[b]);
            // glibc puts a page without access below a thread's stack.
            let guarded = below.is_some_and(|b| {
                b.guard
                    && b.range.end == m.range.start
                    && b.range.end - b.range.start == PAGE_BYTES
                    && b.path.is_empty()
            });
            let anonymous = m.path.is_empty() && !guarded && !bss.contains(&m.range);
            let ours = m.write && !m.shared && !m.range.contains(&sp);
            if ours && (m.path == "[heap]" || anonymous) {
                found.push(m.range.clone());
            }
        }
        found
    }

    /// Writable pages of the executable, and the anonymous ones right behind them: its bss.
    fn data(&self, exe: &str) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for m in self.0.iter().filter(|m| m.write && !m.shared) {
            let follows = found.last().is_some_and(|last| last.end == m.range.start);
            if m.path == exe || (m.path.is_empty() && follows) {
                found.push(m.range.clone());
            }
        }
        found
    }

    fn code(&self, exe: &str) -> Vec<Range<u64>> {
        let ours = |m: &&Mapping| m.execute && m.path == exe;
        self.0
            .iter()
            .filter(ours)
            .map(|m| m.range.clone())
            .collect()
    }
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?.as_bytes();
    // The path is the rest of the line behind offset, device and inode; it may have blanks.
    let path = line.splitn(6, ' ').nth(5).unwrap_or("").trim_start();
    Some(Mapping {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        write: rights.get(1)? == &b'w',
        execute: rights.get(2)? == &b'x',
        guard: rights.starts_with(b"---"),
        shared: rights.get(3)? == &b's',
        path: path.to_owned(),
    })
}

/// The byte that a number means, modulo all there are.
fn nth_byte(ranges: Vec<Range<u64>>, number: u64) -> Option<u64> {
    let length = |r: &Range<u64>| r.end.saturating_sub(r.start);
    let total: u64 = ranges.iter().map(length).sum();
    let mut left = number.checked_rem(total)?;
    for range in ranges {
        if left < length(&range) {
            return Some(range.start + left);
        }
        left -= length(&range);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXE: &str = "/usr/bin/a program";
    const MAPS: &str = "\
55e000000000-55e000001000 r--p 00000000 fe:00 1234                       /usr/bin/a program
55e000001000-55e000003000 r-xp 00001000 fe:00 1234                       /usr/bin/a program
55e000004000-55e000005000 rw-p 00004000 fe:00 1234                       /usr/bin/a program
55e000005000-55e000006000 rw-p 00000000 00:00 0 
55e000800000-55e000821000 rw-p 00000000 00:00 0                          [heap]
2fe500000000-2fe500001000 rw-p 00000000 00:00 0 
7f0000000000-7f0000021000 rw-p 00000000 00:00 0 
7f0000021000-7f0004000000 ---p 00000000 00:00 0 
7f0010000000-7f0010001000 ---p 00000000 00:00 0 
7f0010001000-7f0010801000 rw-p 00000000 00:00 0 
7f0020000000-7f0020001000 rw-s 00000000 00:01 7                          /dev/shm/x
7f0030000000-7f0030001000 r-xp 00000000 fe:00 99                         /lib/libc.so.6
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
not a line
";
    const SP: u64 = 0x7ffd_0002_0ff0;
    const AGENT: Range<u64> = 0x2fe5_0000_0000..0x2fe6_0000_0000;

    fn place(target: Target) -> Option<(u64, u32)> {
        Maps::parse(MAPS).place(&target, EXE, SP, &[AGENT])
    }

    #[test]
    fn code_is_the_programs_own() {
        let code = |number| place(Target::Code { number, bit: 3 });
        assert_eq!(code(0), Some((0x55e0_0000_1000, 3)));
        assert_eq!(code(0x1fff), Some((0x55e0_0000_2fff, 3)));
        assert_eq!(code(0x2000), code(0));
    }

    #[test]
    fn data_goes_on_into_bss() {
        let data = |number| place(Target::Data { number, bit: 0 });
        assert_eq!(data(0), Some((0x55e0_0000_4000, 0)));
        assert_eq!(data(0x1001), Some((0x55e0_0000_5001, 0)));
        assert_eq!(data(0x2000), data(0));
    }

    #[test]
    fn the_heap_has_neither_stacks_nor_the_agent() {
        let heap = |number| place(Target::Heap { number, bit: 0 }).expect("a heap").0;
        assert_eq!(heap(0), 0x55e0_0080_0000);
        assert_eq!(heap(0x21000), 0x7f00_0000_0000);
        assert_eq!(heap(2 * 0x21000), heap(0));
    }

    #[test]
    fn the_stack_is_hit_above_its_pointer() {
        let stack = |number| place(Target::Stack { number, bit: 7 });
        assert_eq!(stack(0), Some((SP, 7)));
        assert_eq!(stack(0x10), stack(0));
        let thread = Maps::parse(MAPS).stack(0x7f00_1000_2000);
        assert_eq!(thread.first(), Some(&(0x7f00_1000_2000..0x7f00_1001_2000)));
    }

    #[test]
    fn what_is_not_there_is_not_hit() {
        let none = |target: Target, sp| Maps::parse("").place(&target, EXE, sp, &[]);
        assert_eq!(none(Target::Heap { number: 5, bit: 0 }, 0), None);
        assert_eq!(none(Target::Stack { number: 5, bit: 0 }, SP), None);
        assert_eq!(place(Target::Skip), None);
    }

    #[test]
    fn nothing_is_read_into_odd_lines() {
        for text in [
            "-",
            "zz-1 rw-p",
            "1-2",
            "1-2 rw",
            "2-1 rwxp 0 0 0 /a",
            " \n\n",
        ] {
            let maps = Maps::parse(text);
            let target = Target::Code { number: 9, bit: 0 };
            assert_eq!(maps.place(&target, "/a", 0, &[]), None, "{text}");
        }
    }
}
