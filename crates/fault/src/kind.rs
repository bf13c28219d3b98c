//! The kinds of targets that a campaign is made of, and their names on the command line.

use serde::{Deserialize, Serialize};

/// A kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// General registers.
    Gpr,
    /// Flags.
    Flags,
    /// The instruction pointer.
    Ip,
    /// SSE registers.
    Xmm,
    /// AVX registers.
    Ymm,
    /// AVX-512 registers.
    Zmm,
    /// The stack.
    Stack,
    /// The heap.
    Heap,
    /// Variables of the program.
    Data,
    /// Code of the program.
    Code,
    /// A stuck register.
    Stuck,
    /// A left-out instruction.
    Skip,
    /// A crash.
    Crash,
    /// A hang.
    Stop,
    /// A delay.
    Slow,
    /// Geryon's log.
    Log,
    /// Geryon's page of progress.
    Progress,
    /// Geryon's monitor.
    Monitor,
    /// Output that is wrong in a way that nobody can notice: it proves that a campaign would see it.
    Canary,
}

/// One row of the table of kinds.
struct Row {
    kind: Kind,
    name: &'static str,
    /// For whom lists them all.
    what: &'static str,
    group: Group,
    /// Whether a bare run can be hit so.
    bare: bool,
}

/// Names for several kinds at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Processor,
    Memory,
    Control,
    Geryon,
    /// Not on every machine, or not to be survived: only when asked for.
    Special,
}

const fn row(kind: Kind, name: &'static str, group: Group, bare: bool, what: &'static str) -> Row {
    Row {
        kind,
        name,
        what,
        group,
        bare,
    }
}

const ROWS: [Row; 19] = {
    use Group::{Control, Geryon, Memory, Processor, Special};
    [
        row(
            Kind::Gpr,
            "gpr",
            Processor,
            true,
            "a bit of a general register",
        ),
        row(Kind::Flags, "flags", Processor, true, "a bit of the flags"),
        row(
            Kind::Ip,
            "ip",
            Processor,
            true,
            "a bit of the instruction pointer",
        ),
        row(
            Kind::Xmm,
            "xmm",
            Processor,
            true,
            "a bit of an SSE register",
        ),
        row(
            Kind::Ymm,
            "ymm",
            Processor,
            true,
            "a bit of an AVX register",
        ),
        row(
            Kind::Zmm,
            "zmm",
            Special,
            true,
            "a bit of an AVX-512 register",
        ),
        row(Kind::Stack, "stack", Memory, true, "a bit of the stack"),
        row(Kind::Heap, "heap", Memory, true, "a bit of the heap"),
        row(
            Kind::Data,
            "data",
            Memory,
            true,
            "a bit of the program's variables",
        ),
        row(
            Kind::Code,
            "code",
            Memory,
            true,
            "a bit of the program's code",
        ),
        row(
            Kind::Stuck,
            "stuck",
            Control,
            true,
            "a register that keeps a value",
        ),
        row(
            Kind::Skip,
            "skip",
            Control,
            false,
            "an instruction left out",
        ),
        row(Kind::Crash, "crash", Control, true, "a crash"),
        row(
            Kind::Stop,
            "stop",
            Control,
            false,
            "threads that stop for ever",
        ),
        row(
            Kind::Slow,
            "slow",
            Control,
            false,
            "threads that stop for a while",
        ),
        row(Kind::Log, "log", Geryon, false, "a bit of Geryon's log"),
        row(
            Kind::Progress,
            "progress",
            Geryon,
            false,
            "a bit of a replica's progress page",
        ),
        row(
            Kind::Monitor,
            "monitor",
            Geryon,
            false,
            "the monitor is killed",
        ),
        row(
            Kind::Canary,
            "canary",
            Special,
            false,
            "a bit of an output that was confirmed already: an SDC",
        ),
    ]
};

/// What is injected when nothing is asked for: all that hits a replica.
pub const DEFAULT: &str = "cpu,memory,control";

impl Kind {
    /// In the order of tables.
    pub fn all() -> impl Iterator<Item = Kind> {
        ROWS.iter().map(|row| row.kind)
    }

    fn row(self) -> &'static Row {
        // The table is in the order of the variants; a test holds it to that.
        &ROWS[self as usize]
    }

    /// On the command line and in tables.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// In words.
    pub fn what(self) -> &'static str {
        self.row().what
    }

    /// Whether a program without Geryon can be hit so.
    pub fn hits_bare(self) -> bool {
        self.row().bare
    }
}

/// A list of names of kinds and groups, in the order of the table and each once.
///
/// # Errors
/// A name that there is not, and those that there are.
pub fn parse_list(text: &str) -> Result<Vec<Kind>, String> {
    let mut wanted = Vec::new();
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let before = wanted.len();
        wanted.extend(ROWS.iter().filter(|row| answers(row, word)).map(|r| r.kind));
        if wanted.len() == before {
            let names: Vec<&str> = Kind::all().map(Kind::name).collect();
            return Err(format!(
                "there is no target {word}; there are {}, and the groups cpu, memory, control, geryon, all",
                names.join(", ")
            ));
        }
    }
    if wanted.is_empty() {
        return Err("no target is named".into());
    }
    Ok(Kind::all().filter(|kind| wanted.contains(kind)).collect())
}

fn answers(row: &Row, word: &str) -> bool {
    match word {
        "cpu" => row.group == Group::Processor,
        "memory" => row.group == Group::Memory,
        "control" => row.group == Group::Control,
        "geryon" => row.group == Group::Geryon,
        "all" => row.group != Group::Special,
        name => row.name == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete_and_in_order() {
        for (i, row) in ROWS.iter().enumerate() {
            assert_eq!(row.kind as usize, i, "{}", row.name);
            assert_eq!(row.kind.name(), row.name);
        }
        assert_eq!(Kind::Canary as usize + 1, ROWS.len());
    }

    #[test]
    fn json_has_the_names_of_the_command_line() {
        for kind in Kind::all() {
            assert_eq!(serde_json::json!(kind), kind.name());
        }
    }

    #[test]
    fn lists_take_names_and_groups() {
        assert_eq!(parse_list("heap, gpr,gpr"), Ok(vec![Kind::Gpr, Kind::Heap]));
        let memory = [Kind::Stack, Kind::Heap, Kind::Data, Kind::Code];
        assert_eq!(parse_list("memory"), Ok(memory.to_vec()));
        for special in [Kind::Zmm, Kind::Canary] {
            assert!(!parse_list("all").expect("a group").contains(&special));
        }
        let all = parse_list(DEFAULT).expect("the default");
        assert!(!all.contains(&Kind::Monitor) && all.contains(&Kind::Skip));
    }

    #[test]
    fn a_name_that_there_is_not_is_told() {
        let error = parse_list("gpr,cache").expect_err("no such target");
        assert!(
            error.contains("no target cache") && error.contains("gpr"),
            "{error}"
        );
        assert!(parse_list(" ,").is_err());
    }
}
