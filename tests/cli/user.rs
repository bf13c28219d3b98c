//! Run by an ordinary user.

use crate::command::{NOT_RUNNABLE, program, run, says, stderr, stdout};
use crate::guest::built;
use crate::support::{Program, quoted, settings};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// An ordinary user that every Debian has.
const NOBODY: [&str; 4] = [
    "setpriv",
    "--reuid=nobody",
    "--regid=nogroup",
    "--clear-groups",
];

/// A folder that everybody may enter, with a copy of the binary that everybody may run;
/// None, with a message, when this test does not run as root.
fn for_nobody() -> Option<(PathBuf, String)> {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become another user");
        return None;
    }
    let name = format!(
        "geryon-cli-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let dir = std::env::temp_dir().join(name.replace(['(', ')'], ""));
    fs::create_dir_all(&dir).expect("the temporary folder is writable");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let binary = dir.join("geryon");
    fs::copy(settings::geryon(), &binary).expect("the binary can be copied");
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("it is ours");
    Some((dir, binary.to_string_lossy().into_owned()))
}

/// A program of that user's, who cannot write where the others' plans are.
fn of_nobody(dir: &Path, words: &[&str]) -> Program {
    let mut p = program(dir, words);
    let plans = dir.join(".cache").to_string_lossy().into_owned();
    p.env.insert("XDG_CACHE_HOME".into(), plans);
    p.prefix(&NOBODY);
    p
}

fn unreadable_program() {
    let Some((dir, binary)) = for_nobody() else {
        return;
    };
    let hidden = dir.join("hidden");
    fs::copy("/bin/true", &hidden).expect("it can be copied");
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o711)).expect("it is ours");
    let p = of_nobody(&dir, &[&binary, "run", "--", &hidden.to_string_lossy()]);
    let outcome = run(&p);
    fs::remove_dir_all(&dir).expect("it is ours");
    says(
        &outcome,
        NOT_RUNNABLE,
        &["hidden", "cannot be read", "chmod +r"],
    );
}

fn ordinary_user() {
    let Some((dir, binary)) = for_nobody() else {
        return;
    };
    let script = format!(
        "id -un; {0} doctor >/dev/null || exit 9; {0} run -n 3 -- sh -c 'id -un' &&\
         head -c 3000000 {0} >in && {0} run -n 3 -- xz -T2 -0 -c --block-size=500000 in | xz -dc | cmp - in && echo same",
        quoted(&binary)
    );
    let p = of_nobody(&dir, &["sh", "-c", &script]);
    let outcome = run(&p);
    fs::remove_dir_all(&dir).expect("it is ours");
    assert_eq!(
        stdout(&outcome),
        "nobody\nnobody\nsame\n",
        "{}",
        stderr(&outcome)
    );
    says(&outcome, 0, &[]);
}

/// Its monitor may not look into a process that is not dumpable.
fn undumpable() {
    let Some((dir, binary)) = for_nobody() else {
        return;
    };
    let mut script = "set -e".to_owned();
    for guest in ["priv_fork", "priv_exec"] {
        let copy = dir.join(guest);
        fs::copy(built(guest), &copy).expect("it can be copied");
        for n in [1, 3] {
            let copy = quoted(&copy.to_string_lossy());
            script += &format!(
                "; {} run -n {n} -- {copy} undumpable | tail -1",
                quoted(&binary)
            );
        }
    }
    let p = of_nobody(&dir, &["sh", "-c", &script]);
    let outcome = run(&p);
    fs::remove_dir_all(&dir).expect("it is ours");
    says(&outcome, 0, &[]);
    assert_eq!(
        stdout(&outcome),
        "GUEST-OK priv_fork\nGUEST-OK priv_fork\nGUEST-OK priv_exec\nGUEST-OK priv_exec\n",
        "{}",
        stderr(&outcome)
    );
}

/// Root without the capability to trace everybody: what fails says why.
fn changes_its_user_without_ptrace() {
    let Some((dir, binary)) = for_nobody() else {
        return;
    };
    let guest = built("priv_fork").to_string_lossy().into_owned();
    let mut p = program(&dir, &[&binary, "run", "-n", "2", "--", &guest, "setuid"]);
    p.prefix(&[
        "setpriv",
        "--bounding-set=-sys_ptrace",
        "--inh-caps=-sys_ptrace",
    ]);
    let outcome = run(&p);
    fs::remove_dir_all(&dir).expect("it is ours");
    says(&outcome, 125, &["cannot be served", "CAP_SYS_PTRACE"]);
}

crate::command::in_both_orders! {
    unreadable_program,
    ordinary_user,
    undumpable,
    changes_its_user_without_ptrace,
}
