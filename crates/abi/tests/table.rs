//! The table against the kernel's own numbers, and against itself.

use geryon_abi::row::{Arg, Class, Kind, Len, Row, Support};
use geryon_abi::table::{BY_NUMBER, COUNT, MAX, ROWS, RUNS, SUB_TABLES, command, row, sub_table};

const HEADER: &str = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";

#[test]
fn numbers_are_ascending_and_complete() {
    assert_eq!(ROWS.len(), COUNT);
    let expected = RUNS.iter().flat_map(|&(first, last)| first..=last);
    assert!(ROWS.iter().map(|row| row.nr).eq(expected));
}

#[test]
fn every_call_of_the_header_has_its_row() {
    let Ok(header) = std::fs::read_to_string(HEADER) else {
        eprintln!("skipped: {HEADER} is not installed");
        return;
    };
    let mut seen = 0;
    for line in header.lines() {
        let Some(definition) = line.strip_prefix("#define __NR_") else {
            continue;
        };
        let (name, number) = definition.split_once(' ').expect("name and number");
        let number: u64 = number.trim().parse().expect("a decimal number");
        if number >= MAX as u64 {
            continue; // a header newer than the table
        }
        assert_eq!(
            row(number).map(|row| row.name),
            Some(name),
            "number {number}"
        );
        seen += 1;
    }
    assert!(seen > 300, "only {seen} definitions understood");
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ROWS.len());
}

#[test]
fn lookup_finds_each_row_and_nothing_else() {
    for nr in 0..MAX as u64 {
        let found = row(nr);
        let given = RUNS
            .iter()
            .any(|&(first, last)| (u64::from(first)..=u64::from(last)).contains(&nr));
        assert_eq!(found.is_some(), given, "{nr}");
        assert!(found.is_none_or(|row| u64::from(row.nr) == nr));
        assert_eq!(found, BY_NUMBER[nr as usize]);
    }
    assert_eq!(row(MAX as u64), None);
    assert_eq!(row(0x4000_0000), None, "x32");
    assert_eq!(row(u64::MAX), None);
}

/// The length of a buffer and whether the kernel writes it.
fn buffer(kind: Kind) -> Option<(Len, bool)> {
    match kind {
        Kind::In(len) => Some((len, false)),
        Kind::Out(len) | Kind::InOut(len) | Kind::OutAlways(len) => Some((len, true)),
        _ => None,
    }
}

fn len_index(len: Len) -> Option<u8> {
    match len {
        Len::Fixed(_) => None,
        Len::Arg(index) | Len::ArgTimes(index, _) | Len::ArgPlus(index, _) => Some(index),
        Len::Ret(index) | Len::RetTimes(index, _) | Len::RetPlus(index, _) => Some(index),
        Len::Word(index) => Some(index),
    }
}

fn is_number(arg: Arg) -> bool {
    matches!(arg.kind, Kind::Int | Kind::Int32)
}

fn check_len(row: &Row, kind: Kind) {
    let Some((len, written)) = buffer(kind) else {
        return;
    };
    if let Some(index) = len_index(len) {
        let given = row.args.get(usize::from(index));
        let given = given.unwrap_or_else(|| panic!("{}: {len:?} names no argument", row.name));
        let pointer = matches!(len, Len::Word(_));
        assert_eq!(!pointer, is_number(*given), "{}: {len:?}", row.name);
    }
    if matches!(len, Len::Ret(_) | Len::RetTimes(..) | Len::RetPlus(..)) {
        assert!(
            written,
            "{}: only the kernel's buffers have a result's length",
            row.name
        );
    }
    if let Len::Fixed(bytes) | Len::ArgTimes(_, bytes) | Len::RetTimes(_, bytes) = len {
        assert_ne!(bytes, 0, "{}", row.name);
    }
}

#[test]
fn lengths_name_arguments_that_hold_them() {
    for row in ROWS {
        assert!(row.args.len() <= 6, "{}", row.name);
        for arg in row.args {
            check_len(row, arg.kind);
            match arg.kind {
                Kind::IovecIn(index)
                | Kind::IovecOut(index)
                | Kind::MmsghdrIn(index)
                | Kind::MmsghdrOut(index)
                | Kind::EpollEvents(index)
                | Kind::SockaddrIn(index)
                | Kind::FdSet(index) => {
                    assert!(is_number(row.args[usize::from(index)]), "{}", row.name);
                }
                Kind::SockaddrOut(index) => {
                    let length = row.args[usize::from(index)];
                    assert_eq!(length.kind, Kind::InOut(Len::Fixed(4)), "{}", row.name);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn limits_and_refusals_are_explained() {
    for row in ROWS {
        match row.support {
            Support::Full => {}
            Support::Partial => assert!(!row.note.is_empty(), "{}", row.name),
            Support::Refused(errno) => {
                assert!(!row.note.is_empty(), "{}", row.name);
                assert!((1..4096).contains(&errno), "{}", row.name);
            }
        }
        let refused = matches!(row.support, Support::Refused(_));
        assert_eq!(refused, row.class == Class::Refused, "{}", row.name);
        assert!(
            row.note.is_empty() || row.note.ends_with('.'),
            "{}",
            row.name
        );
    }
}

#[test]
fn by_command_arguments_and_sub_tables_belong_together() {
    for row in ROWS {
        let by_command = row
            .args
            .iter()
            .filter(|arg| arg.kind == Kind::ByCommand)
            .count();
        assert!(by_command <= 1, "{}", row.name);
        assert_eq!(
            by_command == 1,
            sub_table(row.nr.into()).is_some(),
            "{}",
            row.name
        );
    }
    for table in SUB_TABLES {
        let row = row(table.nr.into()).expect("a row");
        assert!(is_number(row.args[usize::from(table.arg)]), "{}", row.name);
        for entry in table.commands {
            check_len(row, entry.kind);
            assert_eq!(entry.value & table.modifiers, 0, "{}", entry.name);
            assert_eq!(command(table.nr.into(), entry.value.into()), Some(entry));
            if entry.class == Class::Refused {
                assert!(!entry.note.is_empty(), "{} {}", row.name, entry.name);
            }
        }
    }
}

#[test]
fn commands_are_found_as_the_kernel_reads_them() {
    const FUTEX: u64 = 202;
    const FUTEX_WAIT_BITSET_PRIVATE_REALTIME: u64 = 9 | 128 | 256;
    let found = command(FUTEX, FUTEX_WAIT_BITSET_PRIVATE_REALTIME).expect("a command");
    assert_eq!(found.name, "FUTEX_WAIT_BITSET");
    const IOCTL: u64 = 16;
    assert_eq!(
        command(IOCTL, 0xdead_0000_5401).map(|found| found.name),
        Some("TCGETS")
    );
    assert_eq!(command(IOCTL, 0xffff_fff0), None);
    assert_eq!(command(0, 0), None);
}

// Sizes as this machine's headers have them, for the structures that most programs pass.
#[test]
fn out_buffers_of_known_structures_have_their_size() {
    let expect = [
        ("fstat", "statbuf", 144),
        ("statx", "statxbuf", 256),
        ("statfs", "buf", 120),
        ("uname", "buf", 390),
        ("sysinfo", "info", 112),
        ("getrusage", "usage", 144),
        ("rt_sigaction", "oldact", 32),
        ("clock_gettime", "tp", 16),
        ("timerfd_gettime", "curr_value", 32),
        ("prlimit64", "old_limit", 16),
        ("pipe2", "pipefd", 8),
        ("mq_getsetattr", "oldattr", 64),
    ];
    for (name, argument, bytes) in expect {
        let row = ROWS.iter().find(|row| row.name == name).expect(name);
        let arg = row
            .args
            .iter()
            .find(|arg| arg.name == argument)
            .expect(argument);
        assert_eq!(arg.kind, Kind::Out(Len::Fixed(bytes)), "{name}");
    }
}
