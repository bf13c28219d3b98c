//! The table of all system calls, and how to find a row in it.
//!
//! The rows stand in files by topic; here they are joined, and the compiler checks that every
//! number of the kernel has exactly one row.

use crate::row::{Command, Kind, Property, Row};

/// Writes a part of the table: number, name, class, support, arguments, `-> Id` where the result is one, properties, note.
macro_rules! rows {
    ($vis:vis $part:ident: $($nr:literal $name:ident $class:ident $support:ident
        ($($arg:ident: $kind:expr),*) $(-> $result:ident)? $([$($property:ident),*])? $($note:literal)?;)*) => {
        $vis const $part: &[Row] = &[$(Row {
            nr: $nr,
            name: stringify!($name),
            class: $crate::row::Class::$class,
            support: $crate::row::Support::$support,
            args: &[$($crate::row::Arg { name: stringify!($arg), kind: $kind }),*],
            gives_id: $crate::table::is_id(&[$(stringify!($result))?]),
            nests: $crate::table::nests($nr, &[$($kind),*]),
            properties: $crate::row::Properties::of(&[$($($crate::row::Property::$property),*)?]),
            note: concat!($($note)?),
        }),*];

        $crate::table::numbers! { $($nr $name)* }
    };
}

/// The numbers of a part's calls.
macro_rules! numbers {
    ($($nr:literal $name:ident)*) => {
        #[allow(missing_docs, non_upper_case_globals)] // names are those of the kernel
        pub mod numbers {
            $(pub const $name: u64 = $nr;)*
        }
    };
}
use numbers;

/// Does the row say that the result is an id? It says nothing else of results.
const fn is_id(said: &[&str]) -> bool {
    assert!(said.is_empty() || matches!(said[0].as_bytes(), b"Id"));
    !said.is_empty()
}

/// May one of these arguments hold addresses?
const fn nests(nr: u16, kinds: &[Kind]) -> bool {
    const IOCTL: u16 = nr::ioctl as u16;
    const SETSOCKOPT: u16 = nr::setsockopt as u16;
    if matches!(nr, IOCTL | SETSOCKOPT) {
        // It depends on what is asked for.
        return true;
    }
    let mut i = 0;
    while i < kinds.len() {
        if kinds[i].nests() {
            return true;
        }
        i += 1;
    }
    false
}

/// Writes a part of the table whose calls are refused: number, name, errno, remedy.
macro_rules! refused {
    ($vis:vis $part:ident: $($nr:literal $name:ident $errno:ident $note:literal;)*) => {
        $vis const $part: &[Row] = &[$(Row {
            nr: $nr,
            name: stringify!($name),
            class: $crate::row::Class::Refused,
            support: $crate::row::Support::Refused($errno),
            args: &[],
            gives_id: false,
            nests: false,
            properties: $crate::row::Properties::of(&[]),
            note: $note,
        }),*];

        $crate::table::numbers! { $($nr $name)* }
    };
}

/// Writes a sub-table: value, name, class, meaning of the argument that depends on it, note.
macro_rules! commands {
    ($vis:vis $table:ident: $($value:literal $name:ident $class:ident ($kind:expr)
        $($note:literal)?;)*) => {
        $vis const $table: &[Command] = &[$(Command {
            value: $value,
            name: stringify!($name),
            class: $crate::row::Class::$class,
            kind: $kind,
            note: concat!($($note)?),
        }),*];
    };
}

mod commands;
pub mod content;
mod descriptors;
mod files;
mod ioctl;
mod ipc;
mod memory;
mod processes;
mod refused;
mod sockets;
mod system;
mod time;

/// The numbers of all calls, by name.
pub mod nr {
    pub use super::descriptors::numbers::*;
    pub use super::files::numbers::*;
    pub use super::ipc::numbers::*;
    pub use super::memory::numbers::*;
    pub use super::processes::numbers::*;
    pub use super::refused::numbers::*;
    pub use super::sockets::numbers::*;
    pub use super::system::numbers::*;
    pub use super::time::numbers::*;
}

/// The kernel whose calls the table knows.
pub const KERNEL: &str = "6.18";

/// First and last number of each run of numbers that the kernel gave out.
pub const RUNS: [(u16, u16); 2] = [(0, 336), (424, 469)];

/// One more than the highest number.
pub const MAX: usize = RUNS[1].1 as usize + 1;

/// How many rows there are.
pub const COUNT: usize = (RUNS[0].1 - RUNS[0].0 + 1 + RUNS[1].1 - RUNS[1].0 + 1) as usize;

const PARTS: [&[Row]; 9] = [
    files::FILES,
    descriptors::DESCRIPTORS,
    sockets::SOCKETS,
    memory::MEMORY,
    processes::PROCESSES,
    time::TIME,
    ipc::IPC,
    system::SYSTEM,
    refused::REFUSED,
];

/// Merges the parts by number; each is in ascending order, so that a reader finds a row in it.
const fn merged() -> [Row; COUNT] {
    let mut rows = [PARTS[0][0]; COUNT];
    let mut next = [0; PARTS.len()];
    let mut filled = 0;
    while filled < COUNT {
        let expected = number(filled);
        let mut part = 0;
        while part < PARTS.len()
            && (next[part] == PARTS[part].len() || PARTS[part][next[part]].nr != expected)
        {
            part += 1;
        }
        assert!(
            part < PARTS.len(),
            "a number has no row, has two, or a part is not in ascending order"
        );
        rows[filled] = PARTS[part][next[part]];
        next[part] += 1;
        filled += 1;
    }
    let mut part = 0;
    while part < PARTS.len() {
        assert!(
            next[part] == PARTS[part].len(),
            "a part has a row twice, out of order or beyond the last number"
        );
        part += 1;
    }
    rows
}

/// The number of the row at `index`.
const fn number(index: usize) -> u16 {
    let first_run = (RUNS[0].1 - RUNS[0].0) as usize + 1;
    if index < first_run {
        RUNS[0].0 + index as u16
    } else {
        RUNS[1].0 + (index - first_run) as u16
    }
}

static STORE: [Row; COUNT] = merged();

/// All rows, by ascending number.
pub static ROWS: &[Row] = &STORE;

/// The row of each number; none where the kernel gave out no number.
pub static BY_NUMBER: [Option<&'static Row>; MAX] = by_number();

const fn by_number() -> [Option<&'static Row>; MAX] {
    let mut table = [None; MAX];
    let mut index = 0;
    while index < COUNT {
        table[number(index) as usize] = Some(&STORE[index]);
        index += 1;
    }
    table
}

/// The row of a call, from the number in rax. x32 numbers (bit 30) have none.
pub fn row(nr: u64) -> Option<&'static Row> {
    *BY_NUMBER.get(usize::try_from(nr).ok()?)?
}

/// Has the call of this number the property?
pub fn is(nr: u64, property: Property) -> bool {
    row(nr).is_some_and(|row| row.is(property))
}

/// The commands of one multiplexed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubTable {
    /// Number of the call.
    pub nr: u16,
    /// The argument that holds the command.
    pub arg: u8,
    /// Bits of that argument that are no command but modifiers.
    pub modifiers: u32,
    /// What an unknown or refused command is answered with.
    pub errno: u16,
    /// The commands, by ascending value.
    pub commands: &'static [Command],
}

const EINVAL: u16 = 22;
const ENOTTY: u16 = 25;
const ENOSYS: u16 = 38;
const EOPNOTSUPP: u16 = 95;

const FUTEX_PRIVATE_FLAG: u32 = 128;
const FUTEX_CLOCK_REALTIME: u32 = 256;

/// All sub-tables, by ascending number of the call.
pub static SUB_TABLES: &[SubTable] = &SUB_TABLE_STORE;

#[rustfmt::skip] // one line for one call
const SUB_TABLE_STORE: [SubTable; 9] = [
    SubTable { nr: nr::ioctl as u16, arg: 1, modifiers: 0, errno: ENOTTY, commands: ioctl::IOCTL },
    SubTable { nr: nr::shmctl as u16, arg: 1, modifiers: 0, errno: EINVAL, commands: commands::SHMCTL },
    SubTable { nr: nr::semctl as u16, arg: 2, modifiers: 0, errno: EINVAL, commands: commands::SEMCTL },
    SubTable { nr: nr::msgctl as u16, arg: 1, modifiers: 0, errno: EINVAL, commands: commands::MSGCTL },
    SubTable { nr: nr::fcntl as u16, arg: 1, modifiers: 0, errno: EINVAL, commands: commands::FCNTL },
    SubTable { nr: nr::prctl as u16, arg: 0, modifiers: 0, errno: EINVAL, commands: commands::PRCTL },
    SubTable { nr: nr::arch_prctl as u16, arg: 0, modifiers: 0, errno: EINVAL, commands: commands::ARCH_PRCTL },
    SubTable {
        nr: nr::futex as u16,
        arg: 1,
        modifiers: FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME,
        errno: ENOSYS,
        commands: commands::FUTEX,
    },
    SubTable { nr: nr::fsconfig as u16, arg: 1, modifiers: 0, errno: EOPNOTSUPP, commands: commands::FSCONFIG },
];

// Both searches rely on this order.
const _: () = {
    let mut table = 0;
    while table < SUB_TABLE_STORE.len() {
        assert!(table == 0 || SUB_TABLE_STORE[table - 1].nr < SUB_TABLE_STORE[table].nr);
        let commands = SUB_TABLE_STORE[table].commands;
        let mut index = 1;
        while index < commands.len() {
            assert!(
                commands[index - 1].value < commands[index].value,
                "commands are not in ascending order"
            );
            index += 1;
        }
        table += 1;
    }
};

/// The sub-table of a call.
pub fn sub_table(nr: u64) -> Option<&'static SubTable> {
    SUB_TABLES.iter().find(|table| u64::from(table.nr) == nr)
}

/// The command of call `nr` whose command argument is `value`; the register's upper half is
/// ignored, as the kernel ignores it.
pub fn command(nr: u64, value: u64) -> Option<&'static Command> {
    let table = sub_table(nr)?;
    let value = value as u32 & !table.modifiers;
    let index = table
        .commands
        .binary_search_by_key(&value, |command| command.value)
        .ok()?;
    Some(&table.commands[index])
}

/// The argument of call `nr` that carries its command.
pub fn command_of(nr: u64, args: &[u64; 6]) -> u64 {
    sub_table(nr).map_or(0, |table| args[table.arg as usize])
}

/// The kind of argument `i`, with commands of multiplexed calls resolved.
#[inline(always)]
pub fn kind_of(row: &Row, i: usize, args: &[u64; 6]) -> Kind {
    match row.args[i].kind {
        Kind::ByCommand => by_command(row.nr.into(), args),
        kind => kind,
    }
}

fn by_command(nr: u64, args: &[u64; 6]) -> Kind {
    command(nr, command_of(nr, args)).map_or(Kind::Int, |c| c.kind)
}
