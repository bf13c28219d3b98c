//! Calls that only look.

/// Does this call change nothing, and tell what replicas of different programs need not ask in the same order? (What it tells
/// does not depend on what the program has read or written before through a descriptor.)
pub const fn only_looks(nr: u16) -> bool {
    matches!(
        nr,
        // stat, fstat, lstat, access, getpid, uname, getcwd, readlink
        4..=6 | 21 | 39 | 63 | 79 | 89
        // gettimeofday, getrlimit, getrusage, sysinfo, times, getuid, getgid, geteuid, getegid
        | 96..=100 | 102 | 104 | 107 | 108
        // gettid, time, sched_getaffinity, clock_gettime, clock_getres
        | 186 | 201 | 204 | 228 | 229
        // newfstatat, readlinkat, faccessat, getcpu, getrandom, statx, faccessat2
        | 262 | 267 | 269 | 309 | 318 | 332 | 439
    )
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::only_looks;
    use crate::row::{Class, Kind};
    use crate::table::row;
    use std::vec::Vec;

    #[test]
    fn they_are_inputs_with_their_own_names() {
        let names: Vec<&str> = (0..1024)
            .filter(|nr| only_looks(*nr))
            .map(|nr| {
                let row = row(nr.into()).expect("it is in the table");
                assert!(
                    matches!(row.class, Class::Input | Class::Local),
                    "{}",
                    row.name
                );
                let is_told_by_arguments = |k: Kind| k != Kind::ByCommand;
                assert!(row.args.iter().all(|a| is_told_by_arguments(a.kind)));
                row.name
            })
            .collect();
        assert_eq!(
            names.join(" "),
            "stat fstat lstat access getpid uname getcwd readlink gettimeofday getrlimit getrusage sysinfo times getuid getgid \
             geteuid getegid gettid time sched_getaffinity clock_gettime clock_getres newfstatat readlinkat faccessat getcpu \
             getrandom statx faccessat2"
        );
    }
}
