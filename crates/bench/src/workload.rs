//! The table of workloads. All else is derived from it: the list, what is
//! compiled, what input is made, and what is said when a program is not there.

/// One thing that is measured in every configuration.
#[derive(Debug)]
pub struct Workload {
    /// How it is called on the command line and in results.
    pub name: &'static str,
    /// What it does, for a reader.
    pub what: &'static str,
    /// What is run.
    pub program: Program,
    /// The arguments before the one that [`Work`] adds.
    pub arguments: &'static [&'static str],
    /// How much it has to do.
    pub work: Work,
    /// What is read off a run.
    pub figure: Figure,
    /// Whether it is also run natively on one core: contended programs speed up
    /// when serialised, so that figure belongs beside the native one.
    pub pinned: bool,
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// A program of ours, compiled when the bench starts.
    Guest(&'static str),
    /// A program that is found in PATH, or installed with a package of Debian.
    Installed {
        /// Its file name.
        name: &'static str,
        /// The package that has it.
        package: &'static str,
    },
}

/// How much a workload has to do at scale 1; becomes the last argument.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// So many operations.
    Operations(u64),
    /// A file of so much text, in KiB.
    TextKib(u64),
    /// A film of so many frames.
    Frames(u64),
}

/// What is read off a run; all are times, less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The program says ns for each operation. In Geryon that is the leader's
    /// figure; of copies it is the slowest one's.
    SelfTimed,
    /// Seconds from the start of the first to the end of the last process. What is
    /// written to stdout must be alike in every run.
    Wall,
}

impl Figure {
    /// The unit, for a table.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::SelfTimed => "ns/op",
            Figure::Wall => "s",
        }
    }
}

impl Workload {
    /// Whether this is the workload, or one of the group, of that name.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.group() == name
    }

    /// `micro` for what times itself, `programs` for the others.
    pub fn group(&self) -> &'static str {
        match self.figure {
            Figure::SelfTimed => "micro",
            Figure::Wall => "programs",
        }
    }

    const fn micro(
        name: &'static str,
        what: &'static str,
        guest: &'static str,
        arguments: &'static [&'static str],
        operations: u64,
    ) -> Self {
        Workload {
            name,
            what,
            program: Program::Guest(guest),
            arguments,
            work: Work::Operations(operations),
            figure: Figure::SelfTimed,
            pinned: false,
        }
    }

    const fn pinned_too(mut self) -> Self {
        self.pinned = true;
        self
    }

    const fn installed(
        name: &'static str,
        what: &'static str,
        package: &'static str,
        arguments: &'static [&'static str],
        work: Work,
    ) -> Self {
        Workload {
            name,
            what,
            program: Program::Installed { name, package },
            arguments,
            work,
            figure: Figure::Wall,
            pinned: false,
        }
    }
}

/// Every workload, in the order of the results.
pub static ALL: &[Workload] = &[
    Workload::micro(
        "null-call",
        "getppid through syscall()",
        "syscall",
        &[],
        4_000_000,
    ),
    Workload::micro(
        "read-64",
        "read 64 B of /dev/zero",
        "io",
        &["read", "64"],
        2_000_000,
    ),
    Workload::micro(
        "read-4k",
        "read 4 KiB of /dev/zero",
        "io",
        &["read", "4096"],
        1_500_000,
    ),
    Workload::micro(
        "read-64k",
        "read 64 KiB of /dev/zero",
        "io",
        &["read", "65536"],
        400_000,
    ),
    Workload::micro(
        "write-64",
        "write 64 B to /dev/null",
        "io",
        &["write", "64"],
        1_500_000,
    ),
    Workload::micro(
        "write-4k",
        "write 4 KiB to /dev/null",
        "io",
        &["write", "4096"],
        1_000_000,
    ),
    Workload::micro(
        "write-64k",
        "write 64 KiB to /dev/null",
        "io",
        &["write", "65536"],
        300_000,
    ),
    Workload::micro(
        "rendezvous",
        "write 1 B to /dev/null",
        "io",
        &["write", "1"],
        1_500_000,
    ),
    Workload::micro(
        "lock-1",
        "lock, increment, unlock: 1 thread",
        "lock",
        &["1"],
        20_000_000,
    )
    .pinned_too(),
    Workload::micro(
        "lock-2",
        "lock, increment, unlock: 2 threads",
        "lock",
        &["2"],
        10_000_000,
    )
    .pinned_too(),
    Workload::micro(
        "lock-4",
        "lock, increment, unlock: 4 threads",
        "lock",
        &["4"],
        10_000_000,
    )
    .pinned_too(),
    Workload::micro(
        "lock-pair",
        "uncontended lock and unlock, a second thread sleeps",
        "uncontended",
        &[],
        30_000_000,
    ),
    Workload::micro("thread", "create and join a thread", "thread", &[], 15_000),
    Workload {
        name: "compute",
        what: "four threads that only compute",
        program: Program::Guest("compute"),
        arguments: &[],
        work: Work::Operations(1_600_000_000),
        figure: Figure::Wall,
        pinned: false,
    },
    Workload::installed(
        "xz",
        "compress text, 4 threads",
        "xz-utils",
        &["-T4", "--block-size=1MiB", "-c"],
        Work::TextKib(5 * 1024),
    ),
    Workload::installed(
        "pigz",
        "compress text, 4 threads",
        "pigz",
        &["-p4", "-c"],
        Work::TextKib(48 * 1024),
    ),
    Workload::installed(
        "pbzip2",
        "compress text, 4 threads",
        "pbzip2",
        &["-p4", "-c"],
        Work::TextKib(40 * 1024),
    ),
    Workload::installed(
        "lbzip2",
        "compress text, 4 threads",
        "lbzip2",
        &["-n4", "-c"],
        Work::TextKib(40 * 1024),
    ),
    Workload::installed(
        "zstd",
        "compress text, 4 threads",
        "zstd",
        &["-T4", "-12", "-q", "-c"],
        Work::TextKib(32 * 1024),
    ),
    Workload::installed(
        "x264",
        "encode a film, 4 threads",
        "x264",
        &["--threads", "4", "--quiet", "--no-progress", "-o", "-"],
        Work::Frames(240),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest;

    #[test]
    fn names_are_distinct_and_no_group() {
        for (i, workload) in ALL.iter().enumerate() {
            assert!(
                ALL[..i].iter().all(|other| other.name != workload.name),
                "{}",
                workload.name
            );
            assert!(!["micro", "programs"].contains(&workload.name));
        }
    }

    #[test]
    fn every_guest_has_a_source_and_a_use() {
        let used = |guest: &str| {
            ALL.iter()
                .any(|w| matches!(w.program, Program::Guest(name) if name == guest))
        };
        for workload in ALL {
            if let Program::Guest(name) = workload.program {
                assert!(
                    guest::SOURCES.iter().any(|(source, _)| *source == name),
                    "{name}"
                );
            }
        }
        for (name, _) in guest::SOURCES {
            // The bench of recovery has it for itself.
            assert!(used(name) || *name == "recovery", "{name}");
        }
    }
}
