//! Replicas that differ on purpose (`--variants`). That programs run so: `guests`; that attacks do not: `exploits`.

use crate::begun::{begun, replicas};
use crate::command::{OWN, USAGE, geryon, in_both_orders, says, shell, stderr};
use crate::support::TempDir;
use std::fs;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

in_both_orders! {
    no_two_replicas_have_code_at_the_same_address,
    an_address_that_is_printed_stops_the_run,
    what_guards_a_return_address_is_each_ones_own,
    a_replica_that_is_killed_stops_the_run,
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (words, why) in [
        (&["-n", "1"][..], "one has nobody to differ from"),
        (
            &["--on-divergence", "replace"],
            "a difference stops the run",
        ),
        (
            &["-n", "2", "--checkpoint", "1"],
            "for replicas that are alike",
        ),
        (&["--shared-files", "map"], "for replicas that are alike"),
    ] {
        let all = [&["run", "--variants", "code"], words, &["true"]].concat();
        says(&geryon(&all), USAGE, &[why, "try: "]);
    }
    let outcome = shell("ulimit -s unlimited; $G run -n 2 --variants data true");
    says(&outcome, USAGE, &["stack is limited", "try: ulimit -s"]);
}

/// (It would run unprotected else, and nobody would know.)
#[test]
fn a_program_of_a_fixed_address_is_named() {
    let dir = TempDir::new();
    let program = built(&dir, "int main(void) { return 7; }", "-no-pie");
    let outcome = geryon(&["run", "-n", "2", "--variants", "code", &program]);
    says(
        &outcome,
        7,
        &[
            "/program is linked for a fixed address",
            "try: build it as a position-independent",
        ],
    );
}

/// (Libraries then lie higher than a stack does that the kernel has put somewhere by chance, and did not move.)
#[test]
fn what_lies_where_need_not_be_chosen_by_chance() {
    for level in ["code", "data", "full"] {
        let outcome = shell(&format!(
            "setarch -R $G run -n 2 --variants {level} cat /proc/version"
        ));
        says(&outcome, 0, &[]);
        assert_eq!(stderr(&outcome), "");
    }
}

fn built(dir: &TempDir, source: &str, flag: &str) -> String {
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    fs::write(at("source.c"), source).expect("the test's own folder is writable");
    let mut gcc = Command::new("gcc");
    gcc.args([flag, "-o", &at("program"), &at("source.c")]);
    assert!(gcc.status().expect("gcc runs").success());
    at("program")
}

const WAITS: &str = "echo begun; read line";

/// Ranges of addresses of a process whose lines in its list of mappings pass; but for Geryon's own.
fn mapped(pid: i32, passes: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
    /// Where Geryon's own lies, and what the kernel has at one address in all processes.
    const OWN_OR_KERNELS: [Range<u64>; 2] =
        [0x2fe5_0000_0000..0x3000_0000_0000, (1 << 63)..u64::MAX];
    let maps = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("maps"));
    let number = |text: &str| u64::from_str_radix(text, 16).expect("a hexadecimal number");
    let range = |line: &str| {
        let (start, rest) = line.split_once('-').expect("a range");
        number(start)..number(rest.split(' ').next().unwrap_or_default())
    };
    let maps = maps.expect("its mappings");
    let all = maps.lines().filter(|line| passes(line)).map(range);
    all.filter(|r| !OWN_OR_KERNELS.iter().any(|own| own.contains(&r.start)))
        .collect()
}

fn no_two_replicas_have_code_at_the_same_address() {
    for level in ["code", "data", "full"] {
        let mut run = begun(&["-n", "3", "--variants", level], WAITS);
        let replicas = replicas(&run);
        assert_eq!(replicas.len(), 3);
        let is_code = |line: &str| line.split(' ').nth(1).is_some_and(|p| p.contains('x'));
        for (i, one) in replicas.iter().enumerate() {
            let code = mapped(*one, is_code);
            assert!(code.len() > 3, "{code:x?}");
            for other in replicas
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != i)
                .map(|(_, p)| *p)
            {
                // Not even data lies there, nor a page that cannot be used.
                for range in mapped(other, |_| true) {
                    let same = code
                        .iter()
                        .find(|c| c.start < range.end && range.start < c.end);
                    assert_eq!(same, None, "{level}: {range:x?}");
                }
            }
            if level != "code" {
                let all = mapped(*one, |_| true);
                let other = mapped(replicas[(i + 1) % 3], |_| true);
                assert!(all.iter().all(|r| !other.contains(r)), "{all:x?}");
            }
        }
        drop(run.stdin.take());
        run.wait().expect("a child");
    }
}

fn an_address_that_is_printed_stops_the_run() {
    let dir = TempDir::new();
    let source =
        "#include <stdio.h>\nint main(void) { printf(\"at %p\\n\", (void *)main); return 0; }";
    let program = built(&dir, source, "-pie");
    for (level, replicas) in [("code", "2"), ("data", "3")] {
        let outcome = geryon(&["run", "-n", replicas, "--variants", level, &program]);
        says(
            &outcome,
            OWN,
            &[
                "an address in each, of the same place",
                "stopped before it had an effect",
            ],
        );
        assert!(!stderr(&outcome).contains("flipped bit"));
        assert_eq!(outcome.stdout, b"", "nothing may leave");
    }
}

/// The canary is put out, or what it is made from: whoever asks for that, in a program that moves and in those that are
/// linked with all they need.
fn what_guards_a_return_address_is_each_ones_own() {
    const SOURCE: &str = "#include <stdio.h>\n#include <sys/auxv.h>\n\
        int main(int n, char **a) { unsigned long canary, *r = (unsigned long *)getauxval(AT_RANDOM);\n\
        __asm__(\"mov %%fs:0x28, %0\" : \"=r\"(canary));\n\
        printf(\"%lx\\n\", n > 1 ? canary : r[0] ^ r[1]); return 0; }";
    for flag in ["-pie", "-static-pie", "-static", "-no-pie"] {
        let dir = TempDir::new();
        let program = built(&dir, SOURCE, flag);
        let run = |level: &str, n: &str, words: &[&str]| {
            let options = ["run", "-n", n, "--variants", level, &program];
            geryon(&[&options[..], words].concat())
        };
        says(&run("data", "2", &["canary"]), 0, &[]);
        says(&run("full", "3", &[]), 0, &[]);
        let outcome = run("full", "2", &["canary"]);
        says(&outcome, OWN, &["stopped before it had an effect"]);
        assert_eq!(outcome.stdout, b"", "nothing may leave");
    }
}

/// (A copy would have its source's layout, and a successor another one than its predecessor.) The leader's end is the
/// program's.
fn a_replica_that_is_killed_stops_the_run() {
    for victim in [0, 1] {
        let run = begun(&["-n", "2", "--variants", "code"], WAITS);
        let replicas = replicas(&run);
        // SAFETY: a signal to a process of this test's.
        unsafe { libc::kill(replicas[victim], libc::SIGKILL) };
        let done = run.wait_with_output().expect("a child");
        let said = String::from_utf8_lossy(&done.stderr);
        if victim == 0 {
            assert_eq!(done.status.signal(), Some(libc::SIGKILL), "{said}");
        } else {
            assert_eq!(done.status.code(), Some(OWN), "{said}");
            let why = "no replica takes the place of one that has another layout";
            assert!(said.contains(why), "{said}");
        }
    }
}
