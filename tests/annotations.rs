//! What a program says of its threads' order: by `geryon.h`, and by `geryon cc`. (The guests that do so are `racey_marked`,
//! `racey_region`, `racey_region_names` and `lock_relaxed`.)

#[allow(dead_code)] // this test makes its own runs
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{TempDir, settings};

/// A program that threads decide about comes apart in one of so many runs, if nobody tells their order.
const TRIES: usize = 20;
/// With it in none of these.
const RUNS: usize = 5;

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A compiler makes this, by way of Geryon or not.
fn compiled(command: &mut Command, out: &Path) -> PathBuf {
    let said = command.args(["-O2", "-pthread", "-o"]).arg(out).output();
    let said = said.expect("the compiler runs");
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{command:?}\n{text}");
    out.to_owned()
}

fn by_geryon(compiler: &str) -> Command {
    let mut command = Command::new(settings::geryon());
    command.args(["cc", "--", compiler]);
    command
}

fn run(program: &Path, replicas: &str) -> Output {
    let mut command = Command::new(settings::geryon());
    command.args(["run", "-n", replicas, "--order", "clocks", "--"]);
    command.arg(program).output().expect("it runs")
}

/// Without a word of Geryon's.
fn is_whole(said: &Output) -> bool {
    said.status.success() && said.stderr.is_empty()
}

/// What is said then.
#[track_caller]
fn comes_apart(program: &Path) -> String {
    let mut runs = (0..TRIES).map(|_| run(program, "2"));
    let apart = runs.find(|said| !is_whole(said));
    let apart = apart.unwrap_or_else(|| panic!("{} is whole", program.display()));
    String::from_utf8_lossy(&apart.stderr).into_owned()
}

#[track_caller]
fn stays_whole(program: &Path) {
    for replicas in ["2", "3"] {
        for _ in 0..RUNS {
            let said = run(program, replicas);
            let text = String::from_utf8_lossy(&said.stderr);
            assert!(
                is_whole(&said),
                "{}, {replicas} replicas: {text}",
                program.display()
            );
        }
    }
}

#[test]
fn without_its_marks_and_regions_a_program_comes_apart() {
    let dir = TempDir::new();
    for name in ["racey_marked.c", "racey_region.c"] {
        let out = dir.path().join(name);
        let mut gcc = Command::new("gcc");
        gcc.arg(source("tests/guests").join(name));
        comes_apart(&compiled(gcc.arg("-DGERYON_OFF"), &out));
    }
}

#[test]
fn the_header_is_for_c_and_cpp_of_all_years() {
    let dir = TempDir::new();
    let text = "#include <geryon.h>\nint main(void) { geryon_begin(GERYON_DEFAULT_DOMAIN); geryon_end(GERYON_DEFAULT_DOMAIN); return 0; }\n";
    for (compiler, name, years) in [
        ("gcc", "main.c", ["c99", "c11", "gnu17"]),
        ("g++", "main.cpp", ["c++11", "c++17", "c++20"]),
    ] {
        let main = dir.path().join(name);
        std::fs::write(&main, text).expect("written");
        for year in years {
            let mut command = Command::new(compiler);
            command.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
            command.arg("-I").arg(source("include"));
            command.arg(format!("-std={year}")).arg(&main);
            compiled(&mut command, &dir.path().join("main"));
        }
    }
}

/// x265's set of bits. (Clang is not among the packages that the tests need.)
#[test]
fn atomics_are_known_where_the_compiler_was_told_to_call() {
    let dir = TempDir::new();
    let handed = source("tests/cc/handed.cpp");
    let out = |name: &str| dir.path().join(name);
    let said = comes_apart(&compiled(Command::new("g++").arg(&handed), &out("plain")));
    // (The report says where the atomic instructions are, of which records have but a hash.)
    let is_named =
        |l: &str| l.contains("atomic instruction at 0x") && l.contains("__run_exit_handlers+0x");
    assert!(said.lines().any(is_named), "{said}");
    stays_whole(&compiled(by_geryon("g++").arg(&handed), &out("gcc")));
    match Command::new("clang++").arg("--version").output() {
        Ok(_) => stays_whole(&compiled(by_geryon("clang++").arg(&handed), &out("clang"))),
        Err(_) => println!("not tried: clang++ is not there"),
    }
}

/// As make does: objects first, a library of them, and a program that links it.
#[test]
fn steps_of_a_build_fit_together() {
    let dir = TempDir::new();
    let out = |name: &str| dir.path().join(name);
    std::fs::write(
        out("part.c"),
        "#include <stdatomic.h>\nstatic _Atomic __int128 wide;\nstatic atomic_int n;\nint part(int by) { wide = wide + by; return atomic_fetch_add(&n, by) + (int)wide; }\n",
    )
    .expect("written");
    std::fs::write(
        out("main.c"),
        "#include <stdatomic.h>\n#include <stdio.h>\nint part(int);\nint main(void) { _Atomic short s = 3; s -= 5; _Atomic char c = 1; int r = part(2) + part(3);\n\
         int e = 1; atomic_int x = 2; _Bool b = atomic_compare_exchange_strong(&x, &e, 9);\n\
         printf(\"%d %d %d %d %d %d\\n\", s, c++ + c, r, b, e, x); return 0; }\n",
    )
    .expect("written");
    let object = compiled(
        by_geryon("gcc")
            .args(["-mcx16", "-fPIC", "-c"])
            .arg(out("part.c")),
        &out("part.o"),
    );
    let library = compiled(
        by_geryon("gcc").arg("-shared").arg(object),
        &out("libpart.so"),
    );
    let main = compiled(
        by_geryon("gcc").arg("-c").arg(out("main.c")),
        &out("main.o"),
    );
    let mut link = by_geryon("gcc");
    link.arg(main)
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", dir.path().display()));
    let program = compiled(&mut link, &out("main"));
    for said in [
        Command::new(&program).output().expect("it runs"),
        run(&program, "2"),
    ] {
        assert_eq!(String::from_utf8_lossy(&said.stdout), "-2 3 9 0 2 2\n");
    }
}

#[test]
fn what_the_compiler_says_is_said() {
    let said = |command: &mut Command| command.output().expect("it runs");
    let other = said(&mut by_geryon("true"));
    let text = String::from_utf8_lossy(&other.stderr);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        text.contains("neither GCC nor Clang") && text.contains("try: "),
        "{text}"
    );
    let none = said(by_geryon("gcc").arg("/nowhere/main.c"));
    assert_eq!(none.status.code(), Some(1));
    let nothing = said(Command::new(settings::geryon()).arg("cc"));
    assert_eq!(nothing.status.code(), Some(2));
    let header = said(Command::new(settings::geryon()).args(["cc", "--header"]));
    let ours = std::fs::read(source("include/geryon.h")).expect("the header");
    assert_eq!(header.stdout, ours);
}
