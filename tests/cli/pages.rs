//! `geryon man` and `geryon completions`.

use crate::command::{OWN, USAGE, geryon, says, stdout};
use crate::support::TempDir;
use std::fs;

#[test]
fn there_is_a_page_for_each_command_that_says_what_help_says() {
    let dir = TempDir::new();
    let folder = dir.path().to_string_lossy().into_owned();
    says(&geryon(&["man", &folder]), 0, &[]);
    let help = stdout(&geryon(&["help"]));
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).expect(name);
    for command in [
        "run", "inject", "doctor", "syscalls", "scan", "ps", "top", "trace", "ctl", "metrics",
        "bench",
    ] {
        assert!(help.contains(command), "{command}");
        assert!(
            page(&format!("geryon-{command}.1")).contains(".TH"),
            "{command}"
        );
    }
    let run = page("geryon-run.1");
    for option in ["variants", "on\\-divergence", "verify", "order"] {
        assert!(run.contains(option), "{option}");
    }
    assert!(!run.contains("fail\\-at"), "hooks for tests are nobody's");
    assert!(page("geryon.1").contains("geryon\\-run"));
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named() {
    says(&geryon(&["man", "/proc/nowhere"]), OWN, &["/proc/nowhere"]);
}

#[test]
fn shells_that_are_known_complete_options() {
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&geryon(&["completions", shell]));
        assert!(
            text.contains("variants") && text.contains("shared-files"),
            "{shell}"
        );
    }
    says(&geryon(&["completions", "csh"]), USAGE, &["csh", "bash"]);
}
