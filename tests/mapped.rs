//! A file that the program maps to be shared and writable: what is stored there is in the file before anybody
//! has confirmed it. In serial order it becomes what a successor has; in clocks nobody leads in a lost leader's place
//! while it is mapped. What the replicas have stored is compared before the mapping goes away.

#[path = "support/command.rs"]
#[allow(dead_code)] // some of it is for other tests
mod command;
#[path = "support/guest.rs"]
#[allow(dead_code)] // guests are run by another test
mod guest;
#[allow(dead_code)] // each test asks it something else
#[path = "support/journal.rs"]
mod journal;
#[allow(dead_code)] // the tests of recovery kill at other moments
#[path = "support/replicas.rs"]
mod replicas;
#[allow(dead_code)] // numbers of replicas and busy loops matter to the other tests only
mod support;

use command::{OWN, program, says, stdout};
use guest::built;
use replicas::{Replicas, kill};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use support::{Ended, Outcome, TempDir, settings};

/// What a test waits for is there by then, or never.
const PATIENCE_S: u64 = 50;

/// A run of the guest that waits.
struct Run {
    dir: TempDir,
}

impl Run {
    /// To its end, with so many replicas; `meanwhile` begins when it has stored to the file.
    fn with(n: &str, flags: &[&str], meanwhile: impl FnOnce(&Run)) -> Outcome {
        Run::of("shared_waits", n, flags, &[], meanwhile)
    }

    /// The same of another guest, which gets these words, too.
    fn of(
        guest: &str,
        n: &str,
        flags: &[&str],
        more: &[&str],
        meanwhile: impl FnOnce(&Run),
    ) -> Outcome {
        let run = Run {
            dir: TempDir::new(),
        };
        let path = |name: &str| run.path(name).to_string_lossy().into_owned();
        let (geryon, guest) = (settings::geryon(), built(guest));
        let guest = guest.to_string_lossy();
        let (journal, data, go, end) = (path("journal"), path("data"), path("go"), path("end"));
        let mut words = vec![geryon.as_str(), "run", "-n", n, "--journal", &journal];
        words.extend(["--shared-files", "map"]);
        words.extend(flags);
        words.extend(["--", &guest, &data, &go, &end]);
        words.extend(more);
        let program = program(run.dir.path(), &words);
        let running = thread::spawn(move || command::run(&program));
        run.until(|| run.data().starts_with(b"m") || running.is_finished());
        meanwhile(&run);
        running.join().expect("it ran")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn data(&self) -> Vec<u8> {
        fs::read(self.path("data")).unwrap_or_default()
    }

    /// A run that never comes there fails by what it says.
    fn until(&self, there: impl Fn() -> bool) {
        let begin = Instant::now();
        while !there() && begin.elapsed() < Duration::from_secs(PATIENCE_S) {
            thread::sleep(Duration::from_millis(support::POLL_MS));
        }
    }

    fn replicas(&self) -> Replicas {
        Replicas::read(&self.path("journal"))
    }

    fn touch(&self, name: &str) {
        fs::write(self.path(name), "").expect("the test's own folder is writable");
    }

    fn unmapped(&self) {
        self.touch("go");
        self.until(|| self.data().starts_with(b"mno"));
    }
}

/// In serial order a follower has what the leader had stored as far as it had come, and the file becomes that. In
/// clocks threads may be anywhere when it is to be.
fn a_leader_is_lost_meanwhile() {
    for n in ["2", "3"] {
        let outcome = Run::with(n, &[], |run| {
            let replicas = run.replicas();
            kill(replicas.pid(replicas.leader).expect("it runs"));
            if command::order() == Some("serial") {
                run.until(|| run.replicas().replaced == 1);
            }
            run.touch("go");
            run.touch("end");
        });
        if command::order() == Some("serial") {
            says(&outcome, 0, &["1 replica replaced, 1 promotion"]);
            assert_eq!(stdout(&outcome), "GUEST-OK shared_waits\n");
        } else {
            let words = ["stopped: the lost leader has mapped files (mmap)", "/data"];
            says(&outcome, OWN, &words);
            assert_eq!(stdout(&outcome), "");
        }
    }
}

fn behind_its_end_another_one_leads() {
    let outcome = Run::with("3", &[], |run| {
        run.unmapped();
        let replicas = run.replicas();
        kill(replicas.pid(replicas.leader).expect("it runs"));
        run.until(|| run.replicas().replaced == 1);
        run.touch("end");
    });
    says(&outcome, 0, &["1 replica replaced, 1 promotion"]);
    assert_eq!(stdout(&outcome), "GUEST-OK shared_waits\n");
}

fn a_follower_is_lost_meanwhile() {
    let outcome = Run::with("3", &[], |run| {
        let replicas = run.replicas();
        let follower = (replicas.leader + 1) % 3;
        kill(replicas.pid(follower).expect("it runs"));
        match command::order() {
            Some("serial") => run.until(|| run.replicas().replaced == 1),
            _ => run.until(|| !run.replicas().are_all_there()),
        }
        run.touch("go");
        run.touch("end");
    });
    let replaced: &[&str] = match command::order() {
        Some("serial") => &["1 replica replaced", "0 given up"],
        _ => &["0 replicas replaced", "1 given up"],
    };
    says(&outcome, 0, replaced);
    assert_eq!(stdout(&outcome), "GUEST-OK shared_waits\n");
}

/// As a leader that was wrong would have.
fn what_only_the_leader_has_is_found() {
    for n in ["2", "3"] {
        let outcome = Run::with(n, &[], |run| {
            let file = fs::File::options().write(true).open(run.path("data"));
            let file = file.expect("the program has made it");
            file.write_all_at(b"x", 5000).expect("it is ours");
            run.touch("go");
            run.touch("end");
        });
        let words = ["/data, mapped to be shared", "first at byte 5000"];
        says(&outcome, OWN, &words);
        assert_eq!(stdout(&outcome), "");
    }
}

/// Threads that sleep, wait and take locks: they stand still while all is compared.
fn it_is_found_beside_other_threads() {
    for n in ["2", "3"] {
        let outcome = Run::of("shared_beside", n, &[], &[], |run| {
            let file = fs::File::options().write(true).open(run.path("data"));
            let file = file.expect("the program has made it");
            file.write_all_at(b"x", 5000).expect("it is ours");
            run.touch("go");
            run.touch("end");
        });
        let words = ["/data, mapped to be shared", "first at byte 5000"];
        says(&outcome, OWN, &words);
        assert_eq!(stdout(&outcome), "");
    }
}

/// Before it is on the disk.
fn it_is_found_before_it_is_synchronised() {
    for how in ["msync", "fsync", "fdatasync"] {
        let outcome = Run::of("shared_syncs", "2", &[], &[how], |run| {
            let file = fs::File::options().write(true).open(run.path("data"));
            let file = file.expect("the program has made it");
            file.write_all_at(b"x", 5000).expect("it is ours");
            run.touch("go");
        });
        let words = ["/data, mapped to be shared", "first at byte 5000"];
        says(&outcome, OWN, &words);
        assert_eq!(stdout(&outcome), "", "{how}");
    }
}

/// At the end of who has not unmapped it.
fn it_is_found_at_the_end() {
    for n in ["2", "3"] {
        let outcome = Run::of("shared_beside", n, &[], &[], |run| {
            run.touch("go");
            run.until(|| run.data().get(7) == Some(&b'o'));
            let file = fs::File::options().write(true).open(run.path("data"));
            let file = file.expect("the program has made it");
            file.write_all_at(b"x", 5000).expect("it is ours");
            run.touch("end");
        });
        let words = ["/data, mapped to be shared", "first at byte 5000"];
        says(&outcome, OWN, &words);
    }
}

const LEFT_OUT: &str = "mapped (mmap) to be shared and writable, is not compared: ";

/// What nobody can compare the user is told of.
fn beside_a_thread_that_never_stands_it_is_said() {
    let mut noted = 0;
    let outcome = Run::of("shared_beside", "2", &[], &["computes"], |run| {
        run.touch("go");
        run.touch("end");
        let journal = || fs::read_to_string(run.path("journal")).unwrap_or_default();
        run.until(|| journal().contains(r#""event":"end""#));
        noted = journal().matches(r#""event":"not-compared""#).count();
    });
    let said = format!("{LEFT_OUT}other threads of the process run meanwhile; use --order serial");
    says(&outcome, 0, &[&said, "7 comparisons left out"]);
    assert_eq!(stdout(&outcome), "GUEST-OK shared_beside\n");
    assert_eq!(noted, 7);
}

fn after_an_end_by_a_signal_it_is_said() {
    let outcome = Run::with("3", &[], |run| {
        let replicas = run.replicas();
        let leader = replicas.pid(replicas.leader).expect("it runs");
        // SAFETY: plain system call.
        assert_eq!(unsafe { libc::kill(leader, libc::SIGTERM) }, 0);
    });
    assert_eq!(outcome.ended, Ended::Signal(libc::SIGTERM));
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(
        said.contains(LEFT_OUT) && said.contains("by a signal"),
        "{said}"
    );
    assert!(said.contains("1 comparison left out"), "{said}");
}

fn without_confirmation_it_is_refused() {
    let outcome = Run::with("2", &["--verify", "async"], |_| ());
    says(&outcome, 99, &["geryon: mmap is refused", "--verify async"]);
}

command::in_both_orders! {
    a_leader_is_lost_meanwhile,
    behind_its_end_another_one_leads,
    a_follower_is_lost_meanwhile,
    what_only_the_leader_has_is_found,
    it_is_found_beside_other_threads,
    it_is_found_at_the_end,
    it_is_found_before_it_is_synchronised,
    after_an_end_by_a_signal_it_is_said,
    without_confirmation_it_is_refused,
}

mod clocks_only {
    /// (In serial order who computes for long is interrupted, and all is compared.)
    #[test]
    fn beside_a_thread_that_never_stands_it_is_said() {
        crate::command::in_order(
            "clocks",
            super::beside_a_thread_that_never_stands_it_is_said,
        );
    }
}
