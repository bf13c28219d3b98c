//! Bounds, and what is beyond them; files that a run leaves.

use crate::command::{OWN, geryon, says, shell, stdout};
use crate::guest::built;

/// Threads alive in one process.
const THREADS: u32 = 512;

fn one_thread_too_many_is_refused() {
    let script = format!(
        "import threading
end, alive = threading.Event(), []
try:
    while len(alive) < {THREADS} + 10:
        thread = threading.Thread(target=end.wait)
        thread.start()
        alive.append(thread)
except RuntimeError as refused:
    print(refused)
end.set()
for thread in alive:
    thread.join()
print(len(alive) + 1)"
    );
    for n in ["1", "2"] {
        let outcome = geryon(&["run", "-n", n, "--", "/usr/bin/python3", "-c", &script]);
        says(&outcome, 0, &[]);
        let expected = format!("can't start new thread\n{THREADS}\n");
        assert_eq!(stdout(&outcome), expected, "-n {n}");
    }
}

fn too_little_address_space() {
    says(
        &shell("ulimit -v 100000; exec $G run -n 2 -- true"),
        OWN,
        &[
            "geryon:",
            "mapping the log",
            "`ulimit -v`",
            "Cannot allocate memory",
        ],
    );
}

fn own_files_lie_in_the_cache() {
    let outcome = shell(
        "mkdir cache work; cd work; echo mine >file
         XDG_CACHE_HOME=$PWD/../cache HOME=/nonexistent $G run -n 2 -- cat file || exit
         cd ..; test -n \"$(find cache/geryon -type f)\" || echo nothing
         find . -type f | grep -v '^./cache/geryon/'",
    );
    says(&outcome, 0, &[]);
    assert_eq!(stdout(&outcome), "mine\n./work/file\n");
}

crate::command::in_both_orders! {
    too_little_address_space,
    own_files_lie_in_the_cache,
}

/// See the agent's enter.rs.
#[test]
fn ids_of_several_threads_need_serial_order() {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let guest = built("priv_threads").to_string_lossy().into_owned();
    let outcome = geryon(&["run", "-n", "2", "--order", "clocks", "--", &guest]);
    says(
        &outcome,
        OWN,
        &["changed its user or group", "--order serial"],
    );
}

crate::command::in_serial! {
    one_thread_too_many_is_refused: "Python's threads pass their lock on by plain loads"
}
