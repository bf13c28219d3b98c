//! `geryon syscalls`: what the table says about each system call, for people.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::bail;
use geryon_abi::row::{Arg, Class, Command, Kind, Len, Row, Support};
use geryon_abi::table::{KERNEL, ROWS, SUB_TABLES, row, sub_table};

/// How many names an error message offers.
const NEAR_NAMES: usize = 5;

/// Prints all rows, the row that `name` (or a number) says, or only the counts.
///
/// # Errors
///
/// When no call has that name or number, or the output cannot be written.
pub fn run(name: Option<&str>, summary: bool) -> anyhow::Result<()> {
    let text = match name {
        Some(name) => detail(find(name)?),
        None if summary => counts(),
        None => list(),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()), // `| head`
        result => Ok(result?),
    }
}

/// The whole table as a page; docs/syscalls.md is this text.
pub fn markdown() -> String {
    let mut page = format!(
        "# System calls\n\n\
         Generated from the table in `crates/abi/src/table` by `geryon syscalls --markdown`; \
         do not edit.\n\n\
         All {} system calls of x86-64 Linux {KERNEL}: {} are supported, {} partly, {} are \
         refused. A number that is not here is answered with ENOSYS and a message.\n\n\
         {CLASSES}\n{KINDS}\n",
        ROWS.len(),
        count(is_full),
        count(is_partial),
        count(is_refused),
    );
    page.push_str(
        "## Calls\n\n| nr | call | class | support | note |\n| --: | --- | --- | --- | --- |\n",
    );
    for row in ROWS {
        put(
            &mut page,
            format_args!(
                "| {} | `{}` | {} | {} | {} |\n",
                row.nr,
                signature(row),
                class(row.class),
                support(row.support),
                cell(row.note),
            ),
        );
    }
    for table in SUB_TABLES {
        let name = name_of(table.nr);
        put(
            &mut page,
            format_args!(
                "\n## Commands of {name}\n\nAny other command is answered with {}.\n\n\
                 | value | command | class | argument | note |\n| --: | --- | --- | --- | --- |\n",
                errno(table.errno),
            ),
        );
        for command in table.commands {
            put(
                &mut page,
                format_args!(
                    "| {} | {} | {} | {} | {} |\n",
                    value(command),
                    command.name,
                    class(command.class),
                    command_kind(table.nr, command.kind),
                    cell(command.note),
                ),
            );
        }
    }
    page
}

const CLASSES: &str = "\
| class | what the replicas do |
| --- | --- |
| local | every replica executes it: it is private to the address space |
| memory | every replica executes it, in one order, followers at the leader's addresses |
| input | the leader executes it; followers get its result and what it wrote |
| output | the replicas must agree on it before the leader executes it |
| each | as output; and each follower does the same to its own process or thread that the id names |
| lifecycle | it makes, replaces, signals or ends threads and processes: treated one by one |
| refused | never executed; the caller gets the errno |
";

const KINDS: &str = "\
In a signature, `in` is what the kernel reads, `out` what it writes when it succeeds, `out!` what \
it may write although it fails, and the brackets hold the length in bytes; `addr` is an address \
that is not followed; `id` is that of a process or thread as the program knows it.
";

fn list() -> String {
    let mut text = String::new();
    let width = ROWS.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in ROWS {
        let line = format!(
            "{:>3}  {:width$}  {:9}  {:18}  {}",
            row.nr,
            row.name,
            class(row.class),
            support(row.support),
            row.note,
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn counts() -> String {
    let mut text = format!(
        "Linux {KERNEL}, x86-64: {} system calls\n  supported {:4}\n  partly    {:4}\n",
        ROWS.len(),
        count(is_full),
        count(is_partial),
    );
    for row in ROWS.iter().filter(|row| is_partial(row)) {
        put(&mut text, format_args!("    {}: {}\n", row.name, row.note));
    }
    put(
        &mut text,
        format_args!("  refused   {:4}\n", count(is_refused)),
    );
    for row in ROWS.iter().filter(|row| is_refused(row)) {
        put(&mut text, format_args!("    {}: {}\n", row.name, row.note));
    }
    text
}

fn detail(row: &Row) -> String {
    let mut text = format!("{}  (number {})\n", signature(row), row.nr);
    put(&mut text, format_args!("  class    {}\n", class(row.class)));
    put(
        &mut text,
        format_args!("  support  {}\n", support(row.support)),
    );
    if !row.note.is_empty() {
        put(&mut text, format_args!("  note     {}\n", row.note));
    }
    for (index, arg) in row.args.iter().enumerate() {
        put(
            &mut text,
            format_args!(
                "  arg {index}    {}: {}\n",
                arg.name,
                kind(row.args, arg.kind)
            ),
        );
    }
    let Some(table) = sub_table(row.nr.into()) else {
        return text;
    };
    put(
        &mut text,
        format_args!("  commands (any other one: {})\n", errno(table.errno)),
    );
    let width = table
        .commands
        .iter()
        .map(|command| command.name.len())
        .max()
        .unwrap_or(0);
    for command in table.commands {
        let line = format!(
            "    {:>10}  {:width$}  {:9}  {:12}  {}",
            value(command),
            command.name,
            class(command.class),
            command_kind(row.nr, command.kind),
            command.note,
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn find(name: &str) -> anyhow::Result<&'static Row> {
    if let Some(found) = ROWS.iter().find(|row| row.name == name) {
        return Ok(found);
    }
    if let Ok(number) = name.parse() {
        match row(number) {
            Some(found) => return Ok(found),
            None => bail!("no system call of Linux {KERNEL} has the number {number}"),
        }
    }
    let near = near(name);
    if near.is_empty() {
        bail!("no system call is called {name:?}; `geryon syscalls` lists all");
    }
    bail!(
        "no system call is called {name:?}; near: {}",
        near.join(", ")
    );
}

/// Names that contain the word or differ from it in few letters, the nearest first.
fn near(name: &str) -> Vec<&'static str> {
    let furthest = name.chars().count() / 3 + 1;
    let mut found: Vec<_> = ROWS
        .iter()
        .filter_map(|row| {
            let distance = distance(name, row.name);
            let contains = name.len() > 2 && (row.name.contains(name) || name.contains(row.name));
            (contains || distance <= furthest).then_some((distance, row.name))
        })
        .collect();
    found.sort_unstable();
    found.truncate(NEAR_NAMES);
    found.into_iter().map(|(_, name)| name).collect()
}

/// Levenshtein's distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.chars().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != *other);
            line.push(replaced.min(above[column + 1] + 1).min(line[column] + 1));
        }
        above = line;
    }
    above[right.len()]
}

fn count(which: fn(&Row) -> bool) -> usize {
    ROWS.iter().filter(|row| which(row)).count()
}

fn is_full(row: &Row) -> bool {
    row.support == Support::Full
}

fn is_partial(row: &Row) -> bool {
    row.support == Support::Partial
}

fn is_refused(row: &Row) -> bool {
    matches!(row.support, Support::Refused(_))
}

fn signature(row: &Row) -> String {
    let args: Vec<_> = row
        .args
        .iter()
        .map(|arg| format!("{}: {}", arg.name, kind(row.args, arg.kind)))
        .collect();
    let result = if row.gives_id { " -> id" } else { "" };
    format!("{}({}){result}", row.name, args.join(", "))
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Local => "local",
        Class::Memory => "memory",
        Class::Input => "input",
        Class::Output => "output",
        Class::Each => "each",
        Class::Lifecycle => "lifecycle",
        Class::Refused => "refused",
    }
}

fn support(support: Support) -> String {
    match support {
        Support::Full => "full".to_owned(),
        Support::Partial => "partly".to_owned(),
        Support::Refused(number) => format!("refused {}", errno(number)),
    }
}

/// The names of the numbers that the table uses.
fn errno(number: u16) -> String {
    match number {
        1 => "EPERM",
        13 => "EACCES",
        22 => "EINVAL",
        25 => "ENOTTY",
        38 => "ENOSYS",
        95 => "EOPNOTSUPP",
        _ => return format!("errno {number}"),
    }
    .to_owned()
}

fn kind(args: &[Arg], kind: Kind) -> String {
    let name = |index: u8| args.get(usize::from(index)).map_or("?", |arg| arg.name);
    let text = match kind {
        Kind::Int => "int64",
        Kind::Int32 => "int",
        Kind::Fd => "fd",
        Kind::Id => "id",
        Kind::IdIf(index, value) => return format!("id if {} = {value}", name(index)),
        Kind::Group => "group id",
        Kind::InId(bytes, _) => return format!("in[{bytes}] with an id"),
        Kind::CapHeader => "in out cap_user_header_t",
        Kind::Addr => "addr",
        Kind::Unused => "unused",
        Kind::Path => "string",
        Kind::Strings => "strings",
        Kind::In(length) => return format!("in[{}]", len(args, length)),
        Kind::Out(length) => return format!("out[{}]", len(args, length)),
        Kind::InOut(length) => return format!("in out[{}]", len(args, length)),
        Kind::OutAlways(length) => return format!("out![{}]", len(args, length)),
        Kind::IovecIn(index) => return format!("in iovec[{}]", name(index)),
        Kind::IovecOut(index) => return format!("out iovec[{}]", name(index)),
        Kind::MsghdrIn => "in msghdr",
        Kind::MsghdrOut => "out msghdr",
        Kind::MmsghdrIn(index) => return format!("in mmsghdr[{}]", name(index)),
        Kind::MmsghdrOut(index) => return format!("out mmsghdr[{}]", name(index)),
        Kind::SockaddrIn(index) => return format!("in sockaddr[{}]", name(index)),
        Kind::SockaddrOut(index) => return format!("out sockaddr[*{}]", name(index)),
        Kind::FdSet(index) => return format!("in out fd_set[{} bits]", name(index)),
        Kind::Sigmask => "in sigset",
        Kind::SigmaskPair => "in sigset and size",
        Kind::Sigevent => "in sigevent",
        Kind::EpollEvent => "in epoll_event",
        Kind::EpollEvents(index) => {
            return format!("out epoll_event[result <= {}]", name(index));
        }
        Kind::Flock(_) => "in flock",
        Kind::FlockBack(_) => "in out flock",
        Kind::Siginfo => "in siginfo",
        Kind::SiginfoOut => "out siginfo",
        Kind::FutexSecond(_) => "addr if the operation has two",
        Kind::FutexThird(_) => "int32 if the operation has it",
        Kind::Ifconf => "in out ifconf",
        Kind::ByCommand => "by command",
        Kind::Special => "special",
    };
    text.to_owned()
}

fn len(args: &[Arg], len: Len) -> String {
    let name = |index: u8| args.get(usize::from(index)).map_or("?", |arg| arg.name);
    match len {
        Len::Fixed(bytes) => bytes.to_string(),
        Len::Arg(index) => name(index).to_owned(),
        Len::ArgTimes(index, bytes) => format!("{} * {bytes}", name(index)),
        Len::Ret(index) => format!("result <= {}", name(index)),
        Len::RetTimes(index, bytes) => format!("(result <= {}) * {bytes}", name(index)),
        Len::ArgPlus(index, bytes) => format!("{} + {bytes}", name(index)),
        Len::RetPlus(index, bytes) => format!("(result <= {}) + {bytes}", name(index)),
        Len::Word(index) => format!("*{}", name(index)),
    }
}

fn command_kind(nr: u16, of: Kind) -> String {
    kind(row(nr.into()).map_or(&[], |row| row.args), of)
}

fn value(command: &Command) -> String {
    const LARGEST_DECIMAL: u32 = 0xfff; // above it are ioctl's and prctl's packed values
    if command.value > LARGEST_DECIMAL {
        format!("{:#x}", command.value)
    } else {
        command.value.to_string()
    }
}

fn name_of(nr: u16) -> &'static str {
    row(nr.into()).map_or("?", |row| row.name)
}

/// Text as it may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('_', "\\_")
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(arguments);
}
