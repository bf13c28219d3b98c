//! Programs that cannot be run, and scripts, which can.

use crate::command::{NOT_FOUND, NOT_RUNNABLE, file, geryon, program, run, says, stderr, stdout};
use crate::support::{Ended, TempDir};
use std::fs;

/// The first bytes of an ELF file: class, type, machine.
fn elf_head(class: u8, kind: u16, machine: u16) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    head[16..18].copy_from_slice(&kind.to_le_bytes());
    head[18..20].copy_from_slice(&machine.to_le_bytes());
    head
}

fn no_such_program() {
    says(
        &geryon(&["run", "--", "no-such-program-here"]),
        NOT_FOUND,
        &["geryon: no-such-program-here", "try:"],
    );
    says(
        &geryon(&["run", "--", "./missing"]),
        NOT_FOUND,
        &["./missing", "No such file"],
    );
    says(
        &geryon(&["run", "--", "/bin/sh/x"]),
        NOT_RUNNABLE,
        &["/bin/sh/x", "Not a directory"],
    );
}

fn empty_name() {
    says(
        &geryon(&["run", "--", ""]),
        NOT_FOUND,
        &["name is empty", "try:"],
    );
}

fn name_that_is_too_long() {
    let name = format!("./{}", "x".repeat(300));
    says(&geryon(&["run", "--", &name]), NOT_RUNNABLE, &["too long"]);
}

fn directory() {
    says(
        &geryon(&["run", "--", "/tmp"]),
        NOT_RUNNABLE,
        &["/tmp", "directory"],
    );
}

fn not_executable() {
    let dir = TempDir::new();
    let path = file(&dir, "plain", b"#!/bin/sh\n", 0o644);
    says(
        &geryon(&["run", "--", &path]),
        NOT_RUNNABLE,
        &[&path, "not executable", "chmod +x"],
    );
}

fn wrong_architecture() {
    let dir = TempDir::new();
    let i386 = file(&dir, "i386", &elf_head(1, 2, 3), 0o755);
    says(
        &geryon(&["run", "--", &i386]),
        NOT_RUNNABLE,
        &[&i386, "architecture", "32-bit"],
    );
    let arm = file(&dir, "arm", &elf_head(2, 2, 183), 0o755);
    says(
        &geryon(&["run", "--", &arm]),
        NOT_RUNNABLE,
        &[&arm, "architecture", "183"],
    );
}

fn damaged_elf_and_object_file() {
    let dir = TempDir::new();
    let cut = file(
        &dir,
        "cut",
        &fs::read("/bin/true").expect("it is there")[..64],
        0o755,
    );
    says(
        &geryon(&["run", "--", &cut]),
        NOT_RUNNABLE,
        &[&cut, "cut off"],
    );
    let tiny = file(&dir, "tiny", b"\x7fELF", 0o755);
    says(
        &geryon(&["run", "--", &tiny]),
        NOT_RUNNABLE,
        &[&tiny, "cut off"],
    );
    let object = file(&dir, "object", &elf_head(2, 1, 62), 0o755);
    says(
        &geryon(&["run", "--", &object]),
        NOT_RUNNABLE,
        &[&object, "not a program"],
    );
}

fn neither_elf_nor_script() {
    let dir = TempDir::new();
    for (name, content) in [("text", "echo hello\n"), ("empty", ""), ("hash", "#")] {
        let path = file(&dir, name, content.as_bytes(), 0o755);
        says(
            &geryon(&["run", "--", &path]),
            NOT_RUNNABLE,
            &[&path, "neither", "try:"],
        );
    }
}

fn script_without_its_interpreter() {
    let dir = TempDir::new();
    let gone = file(&dir, "gone", b"#!/no/such/interpreter -x\n", 0o755);
    says(
        &geryon(&["run", "--", &gone]),
        NOT_FOUND,
        &[&gone, "/no/such/interpreter"],
    );
    let none = file(&dir, "none", b"#! \nhello\n", 0o755);
    says(
        &geryon(&["run", "--", &none]),
        NOT_RUNNABLE,
        &[&none, "no interpreter"],
    );
    let own = dir.path().join("own").to_string_lossy().into_owned();
    file(&dir, "own", format!("#!{own}\n").as_bytes(), 0o755);
    says(
        &geryon(&["run", "--", &own]),
        NOT_RUNNABLE,
        &["interpreters"],
    );
}

fn scripts_run() {
    let dir = TempDir::new();
    let inner = file(
        &dir,
        "inner",
        b"#!/bin/sh -e\necho \"$0|$*\"\nexit 3\n",
        0o755,
    );
    let outer = file(&dir, "outer", format!("#!{inner}\n").as_bytes(), 0o755);
    for script in [&inner, &outer] {
        let native = run(&program(dir.path(), &[script, "a b"]));
        let replicas = run(&program(dir.path(), &[script, "a b"]).under(3));
        assert_eq!(native.ended, Ended::Exit(3));
        assert_eq!(replicas.ended, native.ended, "{}", stderr(&replicas));
        assert_eq!(stdout(&replicas), stdout(&native));
    }
}

crate::command::in_both_orders! {
    no_such_program,
    empty_name,
    name_that_is_too_long,
    directory,
    not_executable,
    wrong_architecture,
    damaged_elf_and_object_file,
    neither_elf_nor_script,
    script_without_its_interpreter,
    scripts_run,
}
