//! docs/syscalls.md is what the table says.

#[allow(dead_code)] // only the page is compared here
#[path = "../src/syscalls.rs"]
mod syscalls;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/syscalls.md");

#[test]
fn the_page_is_the_table() {
    let page = std::fs::read_to_string(PAGE).unwrap_or_default();
    let table = syscalls::markdown();
    let differing = page
        .lines()
        .zip(table.lines())
        .position(|(old, new)| old != new)
        .map_or("the end".to_owned(), |line| format!("line {}", line + 1));
    assert!(
        page == table,
        "{PAGE} is stale from {differing} on; run: geryon syscalls --markdown > docs/syscalls.md"
    );
}

#[test]
fn an_unknown_name_is_answered_with_near_ones() {
    let error = syscalls::run(Some("opneat"), false).expect_err("no such call");
    assert!(error.to_string().contains("openat"), "{error}");
    assert!(syscalls::run(Some("100000"), false).is_err());
}
