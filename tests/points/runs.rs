//! Runs in which a place goes wrong, compared with what the program does natively.

use super::{one, support};
use support::settings;

pub(super) const BOTH: [&str; 2] = ["serial", "clocks"];
/// What a run says when a successor is lost that has been asked.
pub(super) const SUCCESSOR: &str = "fault point successor-asked";

/// The guest is right in both orders, whichever of these places go wrong together, and leaders are lost.
pub(super) fn all_right(argv: &[&str], places: impl Iterator<Item = Vec<String>> + Clone) {
    all_right_with(argv, fail_at(places));
}

/// The same with these flags.
pub(super) fn all_right_with(argv: &[&str], flags: impl Iterator<Item = Vec<String>> + Clone) {
    all_right_in(&BOTH, argv, flags);
}

/// The same in these orders.
pub(super) fn all_right_in(
    orders: &[&str],
    argv: &[&str],
    flags: impl Iterator<Item = Vec<String>> + Clone,
) {
    let lost = right_in(orders, argv, flags, "leads from now on");
    assert!(lost > 0, "no leader was lost");
}

/// The flags that have these places go wrong.
pub(super) fn fail_at(
    places: impl Iterator<Item = Vec<String>> + Clone,
) -> impl Iterator<Item = Vec<String>> + Clone {
    let flags = |at: Vec<String>| at.into_iter().flat_map(|at| ["--fail-at".into(), at]);
    places.map(move |at| flags(at).collect())
}

/// The program is right in these orders, with each of these flags. How many runs have said these words.
pub(super) fn right_in(
    orders: &[&str],
    argv: &[&str],
    flags: impl Iterator<Item = Vec<String>> + Clone,
    words: &str,
) -> usize {
    right_of("3", orders, argv, flags, words)
}

/// The same of so many replicas.
pub(super) fn right_of(
    replicas: &str,
    orders: &[&str],
    argv: &[&str],
    flags: impl Iterator<Item = Vec<String>> + Clone,
    words: &str,
) -> usize {
    support::no_core_files();
    let geryon = settings::geryon();
    let native = one(argv, None).expect("it starts");
    let (mut said_so, mut failures) = (0, Vec::new());
    for order in orders {
        for flags in flags.clone() {
            let mut all = vec![geryon.as_str(), "run", "-n", replicas, "--order", order];
            all.extend(flags.iter().map(String::as_str));
            all.push("--");
            all.extend(argv);
            let outcome = one(&all, Some(())).unwrap_or_else(|e| panic!("{all:?}: {e}"));
            let said = String::from_utf8_lossy(&outcome.stderr);
            said_so += usize::from(said.contains(words));
            if outcome.ended != native.ended || outcome.stdout != native.stdout {
                let printed = String::from_utf8_lossy(&outcome.stdout);
                let ended = &outcome.ended;
                failures.push(format!("{all:?}: {ended}\nprinted: {printed:?}\n{said}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    said_so
}
