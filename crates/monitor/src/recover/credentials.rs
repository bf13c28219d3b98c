//! Users, groups and capabilities of a process's threads. Each thread has its own, and those of a copy are made by one of
//! them: a copy is made where all have the same. (glibc changes them in all threads, one behind the other.)

use geryon_tracee::Pid;

/// What /proc says of them.
const LINES: [&str; 8] = [
    "Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:",
];

/// Have these threads the same ones? (One that is gone is looked at by others.)
pub(super) fn are_the_same(threads: impl Iterator<Item = Pid>) -> bool {
    let status = |tid| geryon_tracee::text(format!("/proc/{tid}/status")).ok();
    let mut all = threads.filter_map(status);
    let Some(first) = all.next() else {
        return true;
    };
    all.all(|other| of(&other).eq(of(&first)))
}

fn of(status: &str) -> impl Iterator<Item = &str> {
    let is_one = |line: &&str| LINES.iter().any(|l| line.starts_with(l));
    status.lines().filter(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn these_lines_are_told_from_others() {
        let status = "Name:\tUid:\nPid:\t7\nUid:\t0\t65534\t0\t65534\nGid:\t0\t0\t0\t0\nThreads:\t7\nCapEff:\t00\n";
        let found: Vec<&str> = of(status).collect();
        assert_eq!(
            found,
            [
                "Uid:\t0\t65534\t0\t65534",
                "Gid:\t0\t0\t0\t0",
                "CapEff:\t00"
            ]
        );
    }

    #[test]
    fn threads_of_one_process_have_them_alike() {
        let own = std::process::id() as Pid;
        assert!(are_the_same([own, own].into_iter()));
    }
}
