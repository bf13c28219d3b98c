//! Backtraces of guests: small C programs, compiled here, that stop themselves at a known place.

mod guest;

use geryon_symbols::{Frame, Memory as _, Regs, Symbolizer, backtrace, symbol_at};
use guest::{FRAMES_MAX, Guest, compile, ptrace, wait};

/// More instructions than the stepped guest needs.
const STEPS_MAX: usize = 100_000;
const FAST: &[&str] = &["-O2", "-fomit-frame-pointer"];

fn show(frames: &[Frame]) -> String {
    frames.iter().map(|frame| format!("{frame}\n")).collect()
}

/// The frames from the first one named `wanted[0]` on must be named as wanted; `"*"` stands for
/// any number of frames.
fn assert_names(frames: &[Frame], wanted: &[&str]) {
    let mut names = frames
        .iter()
        .map(|frame| frame.function_name().unwrap_or("??"));
    let mut skip = true;
    for want in wanted {
        if *want == "*" {
            skip = true;
            continue;
        }
        let found = if skip {
            names.any(|name| name == *want)
        } else {
            names.next() == Some(want)
        };
        assert!(found, "no {want} of {wanted:?} in\n{}", show(frames));
        skip = false;
    }
}

fn assert_unguessed(frames: &[Frame]) {
    assert!(
        frames.iter().all(|frame| !frame.guessed),
        "{}",
        show(frames)
    );
}

#[test]
fn through_a_qsort_callback() {
    for (name, flags) in [
        ("fast", &["-O2", "-fomit-frame-pointer", "-g"][..]),
        ("plain", &["-O0", "-g"]),
        (
            "compressed",
            &["-O1", "-g", "-gz=zlib", "-fomit-frame-pointer"],
        ),
        (
            "fixed_address",
            &["-O2", "-g", "-no-pie", "-fomit-frame-pointer"],
        ),
        ("static", &["-O2", "-g", "-static", "-fomit-frame-pointer"]),
    ] {
        let guest = Guest::start(
            &compile(&format!("qsort_{name}"), "qsort.c", "guest", flags),
            false,
        );
        let frames = guest.backtrace();
        assert_names(
            &frames,
            &[
                "raise",
                "stop_here",
                "compare",
                "*",
                "sort_all",
                "main",
                "*",
                "_start",
            ],
        );
        assert_unguessed(&frames);
        let compare = frames
            .iter()
            .find(|frame| frame.function_name() == Some("compare"))
            .unwrap();
        let source = compare.source.as_deref().unwrap();
        assert!(source.ends_with("qsort.c:13"), "{source}");
        assert!(compare.module.as_deref().unwrap().ends_with("/guest"));
        if name != "static" {
            let from = frames.iter().position(|frame| frame == compare).unwrap();
            let libc = frames[from + 1].module.as_deref().unwrap();
            assert!(libc.contains("libc.so"), "{}", show(&frames));
        }
    }
}

#[test]
fn names_survive_without_debug_information_and_go_with_strip() {
    let guest = Guest::start(
        &compile("qsort_stripped", "qsort.c", "guest", &["-O2", "-s"]),
        false,
    );
    let frames = guest.backtrace();
    let own = |frame: &&Frame| {
        frame
            .module
            .as_deref()
            .is_some_and(|module| module.ends_with("/guest"))
    };
    // stop_here, compare, sort_all, main, _start: still unwound, no longer named.
    assert_eq!(frames.iter().filter(own).count(), 5, "{}", show(&frames));
    assert!(
        frames
            .iter()
            .filter(own)
            .all(|frame| frame.function.is_none() && frame.offset != 0)
    );
    assert_unguessed(&frames);
}

#[test]
fn recursion_frame_pointers_and_a_mangled_name() {
    for (name, flags) in [("fast", FAST), ("plain", &["-O0"])] {
        let guest = Guest::start(
            &compile(&format!("recurse_{name}"), "recurse.c", "guest", flags),
            false,
        );
        let frames = guest.backtrace();
        let pairs = ["even", "odd"].repeat(10);
        let all = [
            &["raise"][..],
            &pairs,
            &["even", "space::deep(int)", "main", "*", "_start"],
        ]
        .concat();
        assert_names(&frames, &all);
        assert_unguessed(&frames);
        let few = backtrace(guest.pid(), &guest.regs(guest.pid()), &guest.memory(), 7);
        assert_eq!(few, frames[..7]);
        let none = backtrace(guest.pid(), &guest.regs(guest.pid()), &guest.memory(), 0);
        assert!(none.is_empty());
    }
}

#[test]
fn out_of_a_handler_on_another_stack() {
    let guest = Guest::start(&compile("handler", "handler.c", "guest", FAST), false);
    let frames = guest.backtrace();
    assert_names(
        &frames,
        &[
            "raise", "handler", "*", "leaf", "caller", "main", "*", "_start",
        ],
    );
    assert_unguessed(&frames);
    // The interrupted instruction itself, and not one behind a call.
    let leaf = frames
        .iter()
        .find(|frame| frame.function_name() == Some("leaf"))
        .unwrap();
    assert_eq!(symbol_at(guest.pid(), leaf.pc).function, leaf.function);
}

#[test]
fn every_thread_ends_where_it_began() {
    let guest = Guest::start(&compile("thread", "thread.c", "guest", FAST), false);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", guest.pid())).unwrap();
    let tids = tasks.map(|task| {
        task.unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .parse::<i32>()
            .unwrap()
    });
    let worker = tids.into_iter().find(|&tid| tid != guest.pid()).unwrap();
    guest.seize(worker);
    let frames = backtrace(worker, &guest.regs(worker), &guest.memory(), FRAMES_MAX);
    assert_names(&frames, &["worker"]);
    assert!(frames.len() < 6, "{}", show(&frames));
    assert_unguessed(&frames);
    assert_names(&guest.backtrace(), &["main", "*", "_start"]);
}

#[test]
fn at_every_instruction() {
    // Without indirect-branch tracking and with lazy binding: the plainest PLT, described by a
    // DWARF expression.
    let flags = [
        "-O2",
        "-fomit-frame-pointer",
        "-Wl,-z,lazy",
        "-fcf-protection=none",
    ];
    let guest = Guest::start(&compile("step", "step.c", "guest", &flags), false);
    let mut symbolizer = Symbolizer::new();
    let memory = guest.memory();
    let (mut seen, mut finished) = (std::collections::BTreeSet::new(), false);
    let mut steps = 0;
    while !finished && steps < STEPS_MAX {
        ptrace(libc::PTRACE_SINGLESTEP, guest.pid(), 0);
        let status = wait(guest.pid());
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        let regs = guest.regs(guest.pid());
        let frames = symbolizer.backtrace(guest.pid(), &regs, &memory, &|_| None, FRAMES_MAX);
        assert_names(&frames, &["main", "*", "_start"]);
        assert_unguessed(&frames);
        let names = frames
            .iter()
            .filter_map(|frame| frame.function_name().map(str::to_owned));
        finished = frames
            .iter()
            .any(|frame| frame.function_name() == Some("finish"));
        seen.extend(names);
        steps += 1;
    }
    assert!(finished && steps > 1000, "{steps} steps");
    for name in ["work", "tail", "compare", "snprintf", "random", "free"] {
        assert!(seen.contains(name), "{name} was not seen in {seen:?}");
    }
}

#[test]
fn code_in_a_trampoline() {
    let guest = Guest::start(&compile("trampoline", "trampoline.c", "guest", FAST), true);
    let mut addresses = guest
        .first_line
        .split_whitespace()
        .map(|text| u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap());
    let (copy, original) = (addresses.next().unwrap(), addresses.next().unwrap());
    let translate = |pc: u64| {
        (copy..copy + 64)
            .contains(&pc)
            .then(|| pc - copy + original)
    };
    let (regs, memory) = (guest.regs(guest.pid()), guest.memory());
    assert!((copy..copy + 64).contains(&regs.rip));
    let frames = Symbolizer::new().backtrace(guest.pid(), &regs, &memory, &translate, FRAMES_MAX);
    assert_names(&frames, &["original", "call_copy", "main", "*", "_start"]);
    assert_eq!(frames[0].pc, regs.rip);
    assert_unguessed(&frames);
    // Not translated, there is nothing that says where the caller is.
    let lost = guest.backtrace();
    assert_eq!(
        (lost[0].pc, &lost[0].module, &lost[0].function),
        (regs.rip, &None, &None)
    );
    assert!(
        lost[1..].iter().take(1).all(|frame| frame.guessed),
        "{}",
        show(&lost)
    );
}

#[test]
fn without_unwind_tables_frame_pointers_are_a_guess() {
    let flags = [
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let flags = [&flags[..], &["-fno-optimize-sibling-calls"]].concat();
    let guest = Guest::start(&compile("no_tables", "recurse.c", "guest", &flags), false);
    let frames = guest.backtrace();
    assert_names(
        &frames,
        &[
            "raise",
            "even",
            "odd",
            "even",
            "odd",
            "*",
            "space::deep(int)",
            "main",
        ],
    );
    let caller = frames
        .iter()
        .find(|frame| frame.function_name() == Some("odd"))
        .unwrap();
    assert!(caller.guessed, "{}", show(&frames));
}

#[test]
fn files_that_are_gone_or_replaced() {
    let test = "gone";
    let library = compile(
        test,
        "library.c",
        "liblibrary.so",
        &["-O2", "-shared", "-fPIC"],
    );
    let program = compile(
        test,
        "uses_library.c",
        "guest",
        &["-O2", "-L.", "-llibrary"],
    );
    let guest = Guest::start(&program, false);
    let ours = [
        "exported", "back", "exported", "back", "exported", "main", "*", "_start",
    ];
    let frames = guest.backtrace();
    assert_names(&frames, &["raise", "hidden"]);
    assert_names(&frames, &ours);

    // Gone: the library's exported names come from the process's memory.
    std::fs::rename(&library, library.with_extension("old")).unwrap();
    std::fs::remove_file(library.with_extension("old")).unwrap();
    std::fs::remove_file(&program).unwrap();
    let gone = guest.backtrace();
    assert_names(&gone, &ours);
    assert_unguessed(&gone);

    // Replaced by another build: not taken for the one that is mapped.
    compile(
        test,
        "step.c",
        "liblibrary.so",
        &["-O1", "-shared", "-fPIC"],
    );
    let replaced = guest.backtrace();
    assert_eq!(show(&replaced), show(&gone));
    let offsets = |frames: &[Frame]| frames.iter().map(|frame| frame.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&gone), offsets(&frames));
}

#[test]
fn one_symbolizer_serves_different_programs_under_one_name() {
    let mut symbolizer = Symbolizer::new();
    for (source, name) in [
        ("qsort.c", "compare"),
        ("recurse.c", "even"),
        ("qsort.c", "compare"),
    ] {
        let guest = Guest::start(&compile("one_name", source, "guest", FAST), false);
        let regs = guest.regs(guest.pid());
        let frames =
            symbolizer.backtrace(guest.pid(), &regs, &guest.memory(), &|_| None, FRAMES_MAX);
        assert_names(&frames, &[name]);
    }
}

#[test]
fn garbage_gives_few_frames_and_no_panic() {
    let guest = Guest::start(&compile("garbage", "recurse.c", "guest", FAST), false);
    let (good, memory) = (guest.regs(guest.pid()), guest.memory());
    for rip in [0, 1, u64::MAX, good.rsp, good.rip] {
        for rsp in [0, 1, 7, u64::MAX, u64::MAX - 7, 0x8000_0000_0000, good.rip] {
            for rbp in [0, u64::MAX, u64::MAX - 7, good.rsp] {
                let regs = Regs {
                    rip,
                    rsp,
                    rbp,
                    ..Regs::default()
                };
                let frames = backtrace(guest.pid(), &regs, &memory, FRAMES_MAX);
                assert!(!frames.is_empty() && frames[0].pc == rip);
            }
        }
    }
    // A call through a null pointer: the caller is on the stack's top.
    let mut top = [0; 8];
    let caller = guest.backtrace()[1].pc;
    let slot = (good.rsp..good.rsp + 0x400).step_by(8);
    let slot = slot
        .into_iter()
        .find(|&at| memory.read(at, &mut top) && u64::from_le_bytes(top) == caller);
    let regs = Regs {
        rip: 0,
        rsp: slot.unwrap(),
        ..good
    };
    let frames = backtrace(guest.pid(), &regs, &memory, FRAMES_MAX);
    assert_eq!(
        (frames[0].pc, frames[1].pc, frames[1].guessed),
        (0, caller, true),
        "{}",
        show(&frames)
    );
    // No such process.
    let frames = backtrace(-1, &good, &memory, FRAMES_MAX);
    assert_eq!((frames.len(), &frames[0].module), (1, &None));
}

#[test]
fn a_symbol_of_a_running_process() {
    let main = symbol_at(std::process::id() as i32, libc::getpid as *const () as u64);
    assert_eq!(main.function_name(), Some("getpid"), "{main}");
    assert!(main.module.is_some_and(|module| module.contains("libc")));
    let here = symbol_at(
        std::process::id() as i32,
        a_symbol_of_a_running_process as *const () as u64,
    );
    assert!(
        here.function_name()
            .is_some_and(|name| name.contains("a_symbol_of_a_running_process")),
        "{here}"
    );
}
