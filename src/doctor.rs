//! `geryon doctor`: whether kernel, CPU and limits allow what Geryon needs.
//!
//! A check tries the thing itself wherever that leaves nothing behind; what would
//! change this process is tried in a forked child. One line a check, and a line
//! that is not `ok` names the remedy.

mod probe;

use std::fs;
use std::io::{self, Write as _};
use std::thread::available_parallelism;

/// The oldest kernel with all that is used; the youngest of it are FSGSBASE and
/// `close_range` (5.9).
const KERNEL_MIN: (u32, u32) = (5, 10);
/// The fewest replicas that can outvote one.
const REPLICAS_TYPICAL: usize = 3;
/// Fewer processes and threads than this are few for replicas of a server.
const NPROC_MIN: u64 = 1024;
/// Fewer descriptors than this are few for a server and its monitor.
const NOFILE_MIN: u64 = 1024;
/// Less memory than this is little for three replicas of anything.
const MEMORY_MIN_MIB: u64 = 512;

/// How a check went. What is not `Ok` holds what was seen and the remedy.
enum Outcome {
    /// Allowed; with what was seen.
    Ok(String),
    /// Geryon works, with a limit.
    Warn(String, String),
    /// Geryon cannot work.
    Fail(String, String),
}

impl Outcome {
    fn mark(&self) -> &'static str {
        match self {
            Outcome::Ok(_) => "ok",
            Outcome::Warn(..) => "warn",
            Outcome::Fail(..) => "FAIL",
        }
    }

    /// The line that is printed for a check of this name.
    fn line(&self, name: &str) -> String {
        let mark = self.mark();
        match self {
            Outcome::Ok(seen) => format!("{mark:<4}  {name:<14}  {seen}"),
            Outcome::Warn(seen, remedy) | Outcome::Fail(seen, remedy) => {
                format!("{mark:<4}  {name:<14}  {seen}; remedy: {remedy}")
            }
        }
    }
}

/// Prints one line for each check. False when one of them failed.
pub fn run() -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    let mut able = true;
    let mut checks = required();
    checks.extend(wanted());
    for (name, outcome) in checks {
        able &= !matches!(outcome, Outcome::Fail(..));
        writeln!(out, "{}", outcome.line(name))?;
    }
    Ok(able)
}

/// What was tried, as a check without which Geryon cannot work.
fn need(tried: io::Result<()>, what: &str, remedy: &str) -> Outcome {
    match tried {
        Ok(()) => Outcome::Ok(format!("can {what}")),
        Err(error) => Outcome::Fail(format!("cannot {what}: {error}"), remedy.into()),
    }
}

/// What was tried, as a check whose failure is only a limit.
fn want(tried: io::Result<()>, what: &str, remedy: &str) -> Outcome {
    match need(tried, what, remedy) {
        Outcome::Fail(seen, remedy) => Outcome::Warn(seen, remedy),
        other => other,
    }
}

fn required() -> Vec<(&'static str, Outcome)> {
    let tracee = probe::tracee().unwrap_or_else(|error| {
        let not_tried = || Err(io::Error::other(format!("no child to try it on: {error}")));
        probe::Tracee {
            seize: not_tried(),
            memory: not_tried(),
            getfd: not_tried(),
        }
    });
    vec![
        ("kernel", kernel()),
        ("fsgsbase", fsgsbase()),
        (
            "seccomp filter",
            need(
                probe::seccomp(),
                "install a filter that stops in the tracer",
                "a kernel with CONFIG_SECCOMP_FILTER=y; in a container \
                 --security-opt seccomp=unconfined",
            ),
        ),
        (
            "ptrace",
            need(tracee.seize, "seize a child", &ptrace_remedy()),
        ),
        (
            "code rewriting",
            need(
                tracee.memory,
                "write a tracee's read-only code through /proc/PID/mem",
                "boot with proc_mem.force_override=ptrace, and mount /proc",
            ),
        ),
        (
            "pidfd_getfd",
            need(
                tracee.getfd,
                "duplicate a tracee's descriptor",
                "in a container --cap-add=SYS_PTRACE or --security-opt seccomp=unconfined",
            ),
        ),
        (
            "memfd_create",
            need(
                probe::memfd(),
                "map a memfd as code",
                "sysctl vm.memfd_noexec=0, and a SELinux or AppArmor profile that allows it",
            ),
        ),
        (
            "membarrier",
            need(
                probe::membarrier(),
                "use membarrier, global expedited",
                "a kernel with CONFIG_MEMBARRIER=y and a seccomp profile that allows it",
            ),
        ),
        ("/proc", proc_mount()),
    ]
}

fn wanted() -> Vec<(&'static str, Outcome)> {
    vec![
        (
            "processes",
            limit(libc::RLIMIT_NPROC, NPROC_MIN, "ulimit -u"),
        ),
        (
            "descriptors",
            limit(libc::RLIMIT_NOFILE, NOFILE_MIN, "ulimit -n"),
        ),
        ("cores", cores()),
        ("memory", memory()),
        ("overcommit", overcommit()),
        (
            "rdtsc",
            want(
                probe::tsc(),
                "trap rdtsc with PR_SET_TSC",
                "a seccomp profile that allows prctl(PR_SET_TSC); matters only for programs \
                 whose rdtsc cannot be rewritten",
            ),
        ),
        (
            "eager copies",
            want(
                geryon_monitor::can_populate(),
                "give a copy pages of its own (MADV_POPULATE_WRITE)",
                "Linux 5.14 or newer; matters only for run --eager-copy",
            ),
        ),
    ]
}

fn kernel() -> Outcome {
    let remedy = format!("Linux {}.{} or newer on x86-64", KERNEL_MIN.0, KERNEL_MIN.1);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let seen = format!("Linux {release} {}", std::env::consts::ARCH);
    match version(release) {
        Some(version) if version >= KERNEL_MIN && cfg!(target_arch = "x86_64") => Outcome::Ok(seen),
        _ => Outcome::Fail(seen, remedy),
    }
}

/// Major and minor number of a kernel release such as `6.18.44-fc`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn fsgsbase() -> Outcome {
    /// The bit of AT_HWCAP2 that says user code may use the instructions.
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    if probe::hwcap2() & HWCAP2_FSGSBASE != 0 {
        return Outcome::Ok("wrgsbase is usable".into());
    }
    Outcome::Fail(
        "wrgsbase is not usable".into(),
        "boot without nofsgsbase, on a CPU of 2012 or newer (Intel Ivy Bridge, AMD Zen 2)".into(),
    )
}

/// The remedy when ptrace is refused, by what Yama says.
fn ptrace_remedy() -> String {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "3" => {
            "kernel.yama.ptrace_scope is 3, which lasts until the next boot: \
                set it to 1 in /etc/sysctl.d and reboot"
        }
        "2" => "sysctl kernel.yama.ptrace_scope=1, or grant CAP_SYS_PTRACE",
        _ => "in a container --cap-add=SYS_PTRACE; else look for a SELinux or AppArmor profile",
    }
    .into()
}

fn limit(resource: libc::__rlimit_resource_t, least: u64, command: &str) -> Outcome {
    let show = |value: u64| match value {
        libc::RLIM_INFINITY => "unlimited".to_string(),
        value => value.to_string(),
    };
    match probe::rlimit(resource) {
        Ok((soft, hard)) => {
            let seen = format!("limit {} (hard {})", show(soft), show(hard));
            if soft >= least {
                return Outcome::Ok(seen);
            }
            let remedy = format!("`{command} {least}`, or /etc/security/limits.conf");
            Outcome::Warn(seen, remedy)
        }
        Err(error) => Outcome::Warn(
            format!("unknown: {error}"),
            format!("look at `{command}`; {least} or more are advisable"),
        ),
    }
}

fn cores() -> Outcome {
    let cores = available_parallelism().map_or(1, usize::from);
    let seen = format!("{cores} usable");
    if cores >= REPLICAS_TYPICAL {
        return Outcome::Ok(seen);
    }
    Outcome::Warn(
        format!("{seen}: {REPLICAS_TYPICAL} replicas of a busy program share them"),
        "more cores (widen the taskset or cpuset), or fewer replicas (-n 2)".into(),
    )
}

fn memory() -> Outcome {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| {
        let kib = line.strip_prefix("MemAvailable:")?.trim();
        kib.strip_suffix(" kB")?.parse::<u64>().ok()
    });
    match available.map(|kib| kib / 1024) {
        Some(mib) if mib >= MEMORY_MIN_MIB => Outcome::Ok(format!("{mib} MiB available")),
        Some(mib) => Outcome::Warn(
            format!("{mib} MiB available, and each replica needs the program's own"),
            "free memory, or use fewer replicas".into(),
        ),
        None => Outcome::Warn(
            "/proc/meminfo does not tell".into(),
            "mount /proc without subset=pid".into(),
        ),
    }
}

fn overcommit() -> Outcome {
    let mode = fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    match mode.trim() {
        "2" => Outcome::Warn(
            "vm.overcommit_memory=2: each replica, and each copy of one, is charged in full".into(),
            "sysctl vm.overcommit_memory=0, or raise vm.overcommit_ratio".into(),
        ),
        "" => Outcome::Warn(
            "vm.overcommit_memory is unreadable".into(),
            "mount /proc without subset=pid".into(),
        ),
        mode => Outcome::Ok(format!("vm.overcommit_memory={mode}")),
    }
}

fn proc_mount() -> Outcome {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    // The last mount on a directory is the one that is seen.
    let options = mounts.lines().rev().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        (fields.next()? == "/proc" && fields.next()? == "proc").then(|| fields.next())?
    });
    let Some(options) = options else {
        return Outcome::Fail("not mounted".into(), "mount -t proc proc /proc".into());
    };
    let hidden = options
        .split(',')
        .find(|option| option.starts_with("hidepid=") || option.starts_with("subset="));
    match hidden {
        None | Some("hidepid=0" | "hidepid=off") => Outcome::Ok("mounted, shows all".into()),
        Some(option) => Outcome::Warn(
            format!("mounted with {option}: replicas that change their user are not seen"),
            "mount -o remount,hidepid=0 /proc".into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_version() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.10"), Some((5, 10)));
        assert_eq!(
            version("5.4.0-generic").map(|v| v >= KERNEL_MIN),
            Some(false)
        );
        assert_eq!(version("what"), None);
    }

    #[test]
    fn a_line_that_is_not_ok_names_the_remedy() {
        let refused = || Err(io::Error::from_raw_os_error(libc::EPERM));
        let fail = need(refused(), "do it", "do that").line("thing");
        assert!(fail.starts_with("FAIL  thing "), "{fail}");
        assert!(fail.ends_with("; remedy: do that"), "{fail}");
        assert!(
            want(refused(), "do it", "do that")
                .line("thing")
                .starts_with("warn")
        );
        assert_eq!(
            need(Ok(()), "do it", "").line("thing"),
            "ok    thing           can do it"
        );
    }

    #[test]
    fn every_check_can_be_made() {
        let names: Vec<_> = required()
            .into_iter()
            .chain(wanted())
            .map(|(name, _)| name)
            .collect();
        assert!(names.contains(&"ptrace") && names.contains(&"eager copies"));
    }
}
