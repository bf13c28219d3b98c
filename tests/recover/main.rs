//! Replicas that are killed from outside, again and again, while programs run: what comes out is
//! right, and each that was killed is replaced. See `support/settings.rs` for the variables.

mod cases;
#[allow(dead_code)] // guests are run by another test
#[path = "../support/guest.rs"]
mod guest;
#[allow(dead_code)] // the smaller inputs are for repetitions of the real programs
#[path = "../support/inputs.rs"]
mod inputs;
#[allow(dead_code)] // each test asks it something else
#[path = "../support/journal.rs"]
mod journal;
#[allow(dead_code)] // the two tests of recovery use other parts of it
#[path = "../support/kills.rs"]
mod kills;
#[allow(dead_code)] // checkpoints matter to another test
#[path = "../support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // numbers of replicas and differences matter to the other tests only
#[path = "../support/mod.rs"]
mod support;

use cases::{
    as_natively, barrier, blocked, call_mask, cases, children, cpp20, filters, forked, ids, memory,
    openmp, own_chld, signals, spawn, timers, tree,
};
use guest::built;
use kills::{Case, Choice, Scene};
use std::path::{Path, PathBuf};
use support::{Load, Verdicts, settings};

/// Anybody, as soon as the last is replaced.
const OFTEN: Scene = Scene {
    replicas: 3,
    order: "serial",
    every_ms: (40, 200),
    strikes: 6,
    seconds: 0,
    runs: 1,
    choice: Choice::One,
    may_stop: false,
};
/// A fault, and another one elsewhere more than a second later.
const APART: Scene = Scene {
    every_ms: (1050, 1300),
    strikes: 2,
    choice: Choice::Another,
    ..OFTEN
};
/// While the program is still being loaded, and its code rewritten.
const EARLY: Scene = Scene {
    every_ms: (0, 60),
    strikes: 2,
    runs: 10,
    ..OFTEN
};
/// Two at once, of five.
const TOGETHER: Scene = Scene {
    replicas: 5,
    strikes: 4,
    ..OFTEN
};

#[test]
fn killed_replicas_are_replaced() {
    support::no_core_files();
    let inputs = inputs_made();
    let _load = Load::from_settings();
    let mut verdicts = Verdicts::default();
    let two = Scene {
        replicas: 2,
        ..OFTEN
    };
    for case in cases(&inputs) {
        try_case(&case, case.name, OFTEN, &inputs, &mut verdicts);
    }
    // Only the leader is left to be copied.
    let blocked = blocked(64, 40);
    try_case(&blocked, "blocked, two", two, &inputs, &mut verdicts);
    try_case(&barrier(), "barrier", OFTEN, &inputs, &mut verdicts);
    try_case(&barrier(), "barrier, two", two, &inputs, &mut verdicts);
    try_case(&openmp(), "openmp", OFTEN, &inputs, &mut verdicts);
    try_case(&memory(), "memory", OFTEN, &inputs, &mut verdicts);
    try_case(&tree(), "tree", OFTEN, &inputs, &mut verdicts);
    let shared = as_natively("shared", "recover_shared", 240);
    try_case(&shared, "shared", OFTEN, &inputs, &mut verdicts);
    try_case(&shared, "shared, two", two, &inputs, &mut verdicts);
    try_case(&spawn(), "spawn", OFTEN, &inputs, &mut verdicts);
    try_case(&spawn(), "spawn, two", two, &inputs, &mut verdicts);
    let leaders = Scene {
        choice: Choice::Leader,
        ..OFTEN
    };
    try_case(&forked(), "forked", leaders, &inputs, &mut verdicts);
    try_case(&signals(), "signals", leaders, &inputs, &mut verdicts);
    try_case(&children(), "children", leaders, &inputs, &mut verdicts);
    try_case(&own_chld(), "own_chld", leaders, &inputs, &mut verdicts);
    try_case(&timers(), "timers", leaders, &inputs, &mut verdicts);
    try_case(&timers(), "timers, two", two, &inputs, &mut verdicts);
    try_case(&call_mask(), "call_mask", leaders, &inputs, &mut verdicts);
    try_case(&ids(), "ids", leaders, &inputs, &mut verdicts);
    try_case(&ids(), "ids, anybody", OFTEN, &inputs, &mut verdicts);
    try_case(&filters(), "filters", leaders, &inputs, &mut verdicts);
    try_case(&filters(), "filters, two", two, &inputs, &mut verdicts);
    verdicts.finish();
}

/// What the kernel says of a process's parent, of a child that stops, and of what is left of a sleep, is said of the
/// program's, whichever replicas are copied and lost, and what it is to leave out of forks is there in copies.
#[test]
fn the_kernel_speaks_of_the_program() {
    support::no_core_files();
    let mut verdicts = Verdicts::default();
    let case = |name, rounds: u32| as_natively(name, name, rounds);
    for (case, strikes) in [
        (case("recover_apart", 3), 4),
        (case("recover_orphans", 10), 4),
        (case("recover_rest", 3), 4),
        (case("recover_stops", 10), 4),
    ] {
        for replicas in [2, 3] {
            let scene = Scene {
                replicas,
                every_ms: (0, 60),
                strikes,
                runs: 4,
                ..OFTEN
            };
            let name = format!("{}, {replicas}", case.name);
            try_case(&case, &name, scene, Path::new("."), &mut verdicts);
        }
    }
    verdicts.finish();
}

#[test]
fn several_faults_are_repaired() {
    support::no_core_files();
    let inputs = inputs_made();
    let mut verdicts = Verdicts::default();
    let long = blocked(16, 90);
    try_case(&long, "apart", APART, &inputs, &mut verdicts);
    let short = blocked(10, 10);
    try_case(&short, "early", EARLY, &inputs, &mut verdicts);
    let case = blocked(20, 50);
    for (name, choice) in [
        ("two followers at once", Choice::TwoFollowers),
        ("leader and follower at once", Choice::LeaderAndFollower),
    ] {
        let scene = Scene { choice, ..TOGETHER };
        try_case(&case, name, scene, &inputs, &mut verdicts);
    }
    verdicts.finish();
}

/// Threads that meet in barriers, locks and waits of all kinds, most of which sleep in the program's own futex
/// calls: somebody leads again, however they stand.
#[test]
fn threads_that_meet_go_on() {
    support::no_core_files();
    let mut verdicts = Verdicts::default();
    let inputs = Path::new(".");
    let looks = Case {
        name: "looks",
        argv: vec![
            built("recover_looks").to_string_lossy().into_owned(),
            "12000".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_looks'",
    };
    // (Plain loads decide.)
    let two = Scene {
        replicas: 2,
        ..OFTEN
    };
    try_in(&["serial"], &looks, "looks", OFTEN, inputs, &mut verdicts);
    try_in(
        &["serial"],
        &looks,
        "looks, two",
        two,
        inputs,
        &mut verdicts,
    );
    for (name, choice) in [("", Choice::One), (", leaders", Choice::Leader)] {
        let scene = Scene { choice, ..OFTEN };
        let cases = [
            as_natively("pthread barrier", "recover_serial_thread", 6_000),
            as_natively("own futex", "recover_futex", 6_000),
        ];
        for case in cases {
            let name = format!("{}{name}", case.name);
            try_case(&case, &name, scene, inputs, &mut verdicts);
        }
        let scene = Scene {
            may_stop: true,
            ..scene
        };
        for how in ["semaphore", "barrier", "latch", "wait"] {
            let name = format!("C++ {how}{name}");
            try_case(&cpp20(how), &name, scene, inputs, &mut verdicts);
        }
    }
    verdicts.finish();
}

/// Waits for a limited time, beside a thread that waits on a condition, so that the leader cannot be copied in parallel order.
#[test]
fn waits_end_in_time() {
    support::no_core_files();
    let mut verdicts = Verdicts::default();
    let limits = Case {
        name: "limits",
        argv: vec![
            built("recover_limits").to_string_lossy().into_owned(),
            "5".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_limits' && ! grep late stdout",
    };
    for (name, replicas) in [("limits, two", 2), ("limits", 3)] {
        let scene = Scene {
            replicas,
            every_ms: (300, 1500),
            strikes: 1,
            choice: Choice::Leader,
            ..OFTEN
        };
        try_case(&limits, name, scene, Path::new("."), &mut verdicts);
    }
    verdicts.finish();
}

/// Processes that share memory and take turns: what they find there is right, whoever is lost.
#[test]
fn processes_that_share_memory_go_on() {
    support::no_core_files();
    let mut verdicts = Verdicts::default();
    let inputs = Path::new(".");
    let three = Scene {
        strikes: 2,
        ..OFTEN
    };
    let two = Scene {
        replicas: 2,
        ..three
    };
    for (guest, rounds) in [
        ("kin_order", "200000"),
        ("kin_files", "100000"),
        ("kin_segment", "100000"),
    ] {
        let case = Case {
            name: guest,
            argv: vec![built(guest).to_string_lossy().into_owned(), rounds.into()],
            check: Box::leak(
                format!("tail -1 stdout | grep -qx 'GUEST-OK {guest}'").into_boxed_str(),
            ),
        };
        for (how, scene) in [("", three), (", two", two)] {
            let name = format!("{guest}{how}");
            try_in(&["serial"], &case, &name, scene, inputs, &mut verdicts);
        }
    }
    // (Copies are made of followers that are behind those that have ended.)
    let comes_and_goes = Case {
        name: "kin_leaves",
        argv: vec![
            built("kin_leaves").to_string_lossy().into_owned(),
            "6000".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK kin_leaves'",
    };
    for (name, replicas) in [("kin_leaves", 3), ("kin_leaves, two", 2)] {
        let scene = Scene {
            replicas,
            every_ms: (5, 150),
            strikes: 30,
            ..OFTEN
        };
        try_in(
            &["serial"],
            &comes_and_goes,
            name,
            scene,
            inputs,
            &mut verdicts,
        );
    }
    let watches = Case {
        name: "watches",
        argv: vec![
            built("recover_watches").to_string_lossy().into_owned(),
            "600".into(),
            "2".into(),
        ],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_watches'",
    };
    let once = Scene {
        strikes: 1,
        choice: Choice::Leader,
        ..OFTEN
    };
    try_case(&watches, "watches", once, inputs, &mut verdicts);
    verdicts.finish();
}

/// The new leader leads while its first thread waits for a vfork's child that sleeps: nobody does anything
/// for longer than a takeover may last else.
#[test]
fn a_takeover_may_sleep() {
    support::no_core_files();
    let mut verdicts = Verdicts::default();
    let guest = built("recover_nap");
    let case = Case {
        name: "nap",
        argv: vec![guest.to_string_lossy().into_owned(), "18000".into()],
        check: "tail -1 stdout | grep -qx 'GUEST-OK recover_nap'",
    };
    let scene = Scene {
        every_ms: (300, 800),
        strikes: 1,
        choice: Choice::Leader,
        ..OFTEN
    };
    try_case(&case, "nap", scene, Path::new("."), &mut verdicts);
    verdicts.finish();
}

/// Where the inputs lie.
fn inputs_made() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("real");
    inputs::make(&folder, &inputs::USUAL);
    folder
}

/// In both orders, as often as was asked for.
fn try_case(case: &Case, name: &str, scene: Scene, inputs: &Path, verdicts: &mut Verdicts) {
    try_in(&["serial", "clocks"], case, name, scene, inputs, verdicts);
}

/// In these orders.
fn try_in(
    orders: &[&'static str],
    case: &Case,
    name: &str,
    scene: Scene,
    inputs: &Path,
    verdicts: &mut Verdicts,
) {
    if !settings::selected(name) {
        return;
    }
    let (mut killed, mut replaced, mut failures) = (0, 0, Vec::new());
    for &order in orders {
        for round in 1..=settings::repeat() * scene.runs {
            let seed = u64::from(round) * 7919 + name.len() as u64;
            // (Serial order repeats races.)
            let may_stop = scene.may_stop && order == "clocks";
            let scene = Scene {
                order,
                may_stop,
                ..scene
            };
            match kills::run(case, scene, inputs, seed) {
                Ok(n) => (killed, replaced) = (killed + n.killed, replaced + n.replaced),
                Err(e) => failures.push(format!("{order}, run {round}: {e}")),
            }
        }
    }
    if failures.is_empty() && replaced == 0 && !scene.may_stop {
        failures.push(format!("{killed} killed, and nobody was ever replaced"));
    }
    let note = format!("{killed} killed, {replaced} replaced");
    verdicts.add(name, &note, &failures);
}
