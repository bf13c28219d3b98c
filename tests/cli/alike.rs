//! What a shell sees of a program and gives to it, natively and as replicas: streams, and what is
//! inherited.

use crate::command::{program, run, stderr, stdout};
use crate::support::{TempDir, quoted, settings};
use std::fs;

/// Natively and as replicas, what the shell makes of `script` is the same; `$RUN` stands for
/// the replicas, or for nothing.
#[track_caller]
fn alike(script: &str) {
    let dir = TempDir::new();
    let of = |words: &str| {
        // Empty for each, under the same name.
        let folder = dir.path().join("folder");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("the test's own folder is writable");
        let mut p = program(&folder, &["sh", "-c", script]);
        p.env.insert("RUN".into(), words.into());
        run(&p)
    };
    let native = of("");
    let replicas = of(&format!("{} run -n 3 --", quoted(&settings::geryon())));
    assert_eq!(
        replicas.ended,
        native.ended,
        "{script}: {}",
        stderr(&replicas)
    );
    assert_eq!(stdout(&replicas), stdout(&native), "{script}");
    assert_eq!(stderr(&replicas), stderr(&native), "{script}");
}

const OPEN_STREAMS: &str = r#"sh -c 'for i in 0 1 2; do [ -e /proc/self/fd/$i ] && l="$l$i"; done; echo "open:$l" >"$0"' "$PWD/list""#;

fn closed_streams_stay_closed() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"] {
        alike(&format!("$RUN {OPEN_STREAMS} {closed}; echo $?; cat list"));
    }
}

fn writing_to_a_closed_stdout() {
    alike("$RUN /bin/echo hello >&-; echo $?");
    alike("$RUN sh -c 'echo hello >&2' 2>&-; echo $?");
    alike("$RUN cat <&-; echo $?");
}

fn full_device_as_stdout() {
    alike("$RUN /bin/echo hello >/dev/full; echo $?");
    alike("$RUN seq 100000 >/dev/full; echo $?");
}

fn pipes_that_close_early() {
    alike("$RUN seq 1000000 | head -n 3");
    alike("seq 1000000 | $RUN head -n 3");
}

fn input_is_read_once() {
    alike("printf '1\\n2\\n3\\n' | { $RUN sh -c 'read a; echo got $a'; cat; }");
    alike("echo content >file; $RUN sh -c 'cat; echo more >>file' <file; cat file");
}

// What the program inherits.

fn environment_and_arguments() {
    alike("$RUN env | sort | grep -v -e ^RUN= -e ^GERYON_TEST_ID=");
    alike(r#"$RUN /bin/printf '%s|' '' "$(printf '\377\1')" 'a b' '*'"#);
    alike("$RUN head -c 4 /proc/self/cmdline");
    alike("GLIBC_TUNABLES=glibc.malloc.perturb=1 $RUN sh -c 'echo $GLIBC_TUNABLES'");
}

fn ignored_signals_stay_ignored() {
    alike("trap '' PIPE INT; $RUN grep SigIgn /proc/self/status");
    alike("$RUN grep SigBlk /proc/self/status");
}

fn folder_and_limits() {
    alike("cd /; $RUN /bin/pwd");
    alike("umask 027; $RUN sh -c 'umask; : >made; stat -c %a made'");
    alike("ulimit -n 57; $RUN sh -c 'ulimit -n'");
    alike("$RUN sh -c 'mkdir d; cd d; pwd >x; cat x'; cat d/x");
}

crate::command::in_both_orders! {
    closed_streams_stay_closed,
    writing_to_a_closed_stdout,
    full_device_as_stdout,
    pipes_that_close_early,
    input_is_read_once,
    environment_and_arguments,
    ignored_signals_stay_ignored,
    folder_and_limits,
}
