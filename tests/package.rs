//! The Debian package: what is in it, and that what is in it runs. Needs dpkg-dev.

#[allow(dead_code)] // this test makes its own runs
mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{TempDir, settings};

#[test]
fn what_is_packed_runs_three_replicas() {
    let dir = TempDir::new();
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/deb");
    let made = done(
        Command::new(script)
            .arg(at(""))
            .env("BINARY", settings::geryon()),
    );
    let package = String::from_utf8(made.stdout).expect("a path");
    let listed = done(Command::new("dpkg-deb").args(["-c", package.trim()]));
    let listed = String::from_utf8(listed.stdout).expect("names");
    for file in [
        "/usr/bin/geryon\n",
        "/man1/geryon-run.1.gz\n",
        "/bash-completion/completions/geryon\n",
        "/examples/geryon-redis.service\n",
        "/usr/include/geryon.h\n",
        "/pkgconfig/geryon.pc\n",
        "/geryon/copyright\n",
        "/geryon/changelog.gz\n",
    ] {
        assert!(listed.contains(file), "{file} is missing in:\n{listed}");
    }
    done(Command::new("dpkg-deb").args(["-x", package.trim(), &at("root")]));
    let mut run = Command::new(at("root/usr/bin/geryon"));
    run.args(["run", "-n", "3", "echo", "as it was packed"]);
    let run = done(run.current_dir("/"));
    assert_eq!(run.stdout, b"as it was packed\n");
}

fn done(command: &mut Command) -> Output {
    let done = command.output().expect("it can be started");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
    done
}
