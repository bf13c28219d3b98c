//! `--order auto`, as on a machine with cores for threads in parallel, and as on one without.

use crate::command::{events, file, program, run, says, stderr, stdout};
use crate::guest::built;
use crate::support::{Outcome, TempDir, settings};

/// So many cores are as good as any.
const MANY: &str = "64";

/// A program under so many replicas on a machine of so many cores: what came of it, and what happened.
fn on_cores(cores: &str, n: &str, program_words: &[&str]) -> (Outcome, Vec<String>) {
    let dir = TempDir::new();
    let path = file(&dir, "journal", b"", 0o644);
    let binary = settings::geryon();
    let mut words = vec![&*binary, "run", "-n", n, "--journal", &path, "--"];
    words.extend(program_words);
    let mut program = program(dir.path(), &words);
    program.env.insert("GERYON_CORES".into(), cores.into());
    let outcome = run(&program);
    let journal = std::fs::read_to_string(&path).expect("the journal was written");
    (outcome, events(&journal))
}

fn has(events: &[String], name: &str) -> bool {
    events.iter().any(|e| e == name)
}

#[test]
fn where_there_are_cores_threads_run_in_parallel() {
    let guest = built("lock_bench").to_string_lossy().into_owned();
    for n in ["2", "3"] {
        let (outcome, events) = on_cores(MANY, n, &[&guest, "2", "20000"]);
        says(&outcome, 0, &[]);
        assert_eq!(stderr(&outcome), "");
        assert!(has(&events, "clocks"), "{events:?}");
        let (outcome, events) = on_cores(n, n, &[&guest, "2", "20000"]);
        says(&outcome, 0, &[]);
        assert!(!has(&events, "clocks"), "{events:?}");
    }
}

#[test]
fn what_clocks_do_not_repeat_leads_back_and_is_told() {
    const MAKES_CODE: &str = "
import mmap, threading
end = threading.Event()
thread = threading.Thread(target=end.wait)
thread.start()
mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
end.set()
thread.join()
print('GUEST-OK')";
    let forks = built("fork_threads_in_child")
        .to_string_lossy()
        .into_owned();
    let forks: &[&str] = &[&forks];
    let makes_code: &[&str] = &["/usr/bin/python3", "-c", MAKES_CODE];
    let cases = [
        (forks, "the program makes another process"),
        (makes_code, "the program makes code while it runs"),
    ];
    for (words, why) in cases {
        for n in ["2", "3"] {
            let (outcome, events) = on_cores(MANY, n, words);
            says(&outcome, 0, &["threads take turns from here on", why]);
            assert_eq!(stderr(&outcome).lines().count(), 1, "{}", stderr(&outcome));
            assert!(stdout(&outcome).contains("GUEST-OK"));
            let of_order = events.iter().filter(|e| *e == "clocks" || *e == "serial");
            assert_eq!(of_order.collect::<Vec<_>>(), ["clocks", "serial"]);
            assert!(!has(&events, "replaced"), "nobody was lost: {events:?}");
        }
    }
}

/// (Whose second process has threads stays, too: nobody sleeps beside several.)
#[test]
fn who_has_forked_stays_in_serial_order() {
    let guest = built("lock_bench").to_string_lossy().into_owned();
    let script = format!("true | cat; {guest} 2 1000; exec {guest} 2 1000");
    let (outcome, events) = on_cores(MANY, "2", &["sh", "-c", &script]);
    says(&outcome, 0, &[]);
    assert_eq!(stderr(&outcome), "");
    assert!(!has(&events, "clocks"), "{events:?}");
}

#[test]
fn who_executes_another_program_begins_anew() {
    let guest = built("lock_bench").to_string_lossy().into_owned();
    let script = format!("exec {guest} 2 20000");
    let (outcome, events) = on_cores(MANY, "2", &["sh", "-c", &script]);
    says(&outcome, 0, &[]);
    assert!(has(&events, "clocks"), "{events:?}");
}

/// Where threads would only wait for one another: on two cores that are said to be many.
#[test]
fn a_crowd_of_threads_takes_turns() {
    let guest = built("lock_bench").to_string_lossy().into_owned();
    let (outcome, events) = on_cores(MANY, "2", &[&guest, "4", "200000"]);
    says(&outcome, 0, &[]);
    assert!(has(&events, "clocks"), "{events:?}");
    let told = stderr(&outcome);
    assert!(
        told.is_empty() || told.contains("threads take turns from here on"),
        "{told}"
    );
}
