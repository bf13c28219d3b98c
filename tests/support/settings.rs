//! What the environment asks of a test run:
//!
//! | variable | meaning |
//! | --- | --- |
//! | `GUEST=part` | only the cases whose name contains it (also `CASE=part`) |
//! | `REPLICAS=2,3` | these numbers of replicas |
//! | `ORDER=auto` | in the order that changes (guests: as on a machine with many cores) |
//! | `ORDER=clocks` | only in this order (else in both, where there are several replicas) |
//! | `REPEAT=n` | each run n times |
//! | `NATIVE_ONLY=1` | no Geryon at all: are the tests themselves right? |
//! | `TASKSET=0` | everything on these cores |
//! | `RUST_TEST_THREADS=n` | as the harness has it; so many guests, real programs, fault points at once, too (one for each core) |
//! | `LOAD=1` | busy loops on all cores meanwhile |
//! | `SHORT=1` | smaller inputs for the real programs, for many repetitions |
//! | `LIMIT_S=n` | what counts as a hang |
//! | `LARGE_MIB=n` | memory of the large program whose replicas are killed (64) |
//! | `KILL_LOOP_S=n` | seconds for which replicas are killed by chance (6; 600 by hand) |
//! | `SEED=n` | which passings of the fault points fail besides the first ones; of the generated programs, this one only |
//! | `SEEDS=a..b` | these generated programs, both ends included |
//! | `SECONDS=n` | how long new ones are begun (110 if it is not said which) |
//! | `STEPS=n` | how many calls each of them makes |
//! | `KILLS=n` | up to so many replicas are killed while each of them runs (none) |
//! | `DESCEND=n` | all guests, and these runs only: with clocks, going over to serial order at one of the first n moments |
//! | `VARIANTS=level` | guests: with replicas that differ so, and these runs only; in both orders, two and three replicas. Attacks: at this level |
//! | `LOSE=n` | all guests, and these runs only: the leader is lost at one of the first n passings of a place where it is killed |
//! | `GERYON_BIN=path` | another binary than the one cargo just built |

use std::ops::RangeInclusive;
use std::time::Duration;

fn number(name: &str) -> Option<u32> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

fn flag(name: &str) -> bool {
    std::env::var(name).is_ok_and(|v| !v.is_empty() && v != "0")
}

/// The binary under test.
pub fn geryon() -> String {
    std::env::var("GERYON_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_geryon").to_owned())
}

/// The moments among which one is chosen at which guests go over to serial order.
#[allow(dead_code)] // guests do
pub fn descend() -> Option<u64> {
    number("DESCEND").map(u64::from)
}

/// How replicas are to differ on purpose.
#[allow(dead_code)] // guests and attacks do
pub fn variants() -> Option<&'static str> {
    const ALL: [&str; 3] = ["code", "data", "full"];
    let asked = std::env::var("VARIANTS").ok()?;
    let level = ALL.into_iter().find(|level| *level == asked);
    Some(level.unwrap_or_else(|| panic!("VARIANTS={asked} is none of {ALL:?}")))
}

/// At which of so many passings of a place the leaders of guests are lost.
#[allow(dead_code)] // guests do
pub fn lose() -> Option<u64> {
    number("LOSE").map(u64::from)
}

/// Does this case's name pass the filter?
#[allow(dead_code)] // generated programs have numbers
pub fn selected(name: &str) -> bool {
    ["GUEST", "CASE"]
        .iter()
        .filter_map(|variable| std::env::var(variable).ok())
        .all(|part| name.contains(&part))
}

/// Numbers of replicas to try; none with NATIVE_ONLY.
pub fn replicas(usual: &[u32]) -> Vec<u32> {
    if flag("NATIVE_ONLY") {
        return Vec::new();
    }
    let Ok(list) = std::env::var("REPLICAS") else {
        return usual.to_vec();
    };
    let parse = |n: &str| {
        n.trim()
            .parse()
            .unwrap_or_else(|_| panic!("REPLICAS={list}"))
    };
    list.split(',').map(parse).collect()
}

/// The orders to try.
#[allow(dead_code)] // not all tests try several
pub fn orders() -> Vec<&'static str> {
    const ALL: [&str; 2] = ["serial", "clocks"];
    const AUTO: &str = "auto";
    match std::env::var("ORDER") {
        Err(_) => ALL.to_vec(),
        Ok(one) => match ALL.iter().chain([&AUTO]).find(|o| **o == one) {
            Some(order) => vec![order],
            None => panic!("ORDER={one} is none of {ALL:?}, and not {AUTO}"),
        },
    }
}

/// Numbers of replicas, each with the orders to try it in: one replica is run as it usually is.
#[allow(dead_code)] // not all tests try several
pub fn replicas_and_orders(usual: &[u32]) -> Vec<(u32, &'static str)> {
    let orders = |n: u32| if n == 1 { vec!["auto"] } else { orders() };
    let numbers = replicas(usual).into_iter();
    numbers
        .flat_map(|n| orders(n).into_iter().map(move |o| (n, o)))
        .collect()
}

/// Smaller inputs?
#[allow(dead_code)] // only some of the test programs have inputs of their own
pub fn short() -> bool {
    flag("SHORT")
}

/// How often each run is repeated.
pub fn repeat() -> u32 {
    number("REPEAT").unwrap_or(1)
}

/// The cores everything is bound to.
pub fn taskset() -> Option<String> {
    std::env::var("TASKSET").ok().filter(|v| !v.is_empty())
}

/// How many programs are run at once, each as several replicas: they wait for half of their time and more.
#[allow(dead_code)] // guests, real programs, and fault points are
pub fn jobs() -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    number("RUST_TEST_THREADS").map_or_else(cores, |n| n.max(1) as usize)
}

/// Are busy loops wanted meanwhile?
pub fn load() -> bool {
    flag("LOAD")
}

/// What counts as a hang.
pub fn limit(usual_s: u64) -> Duration {
    Duration::from_secs(number("LIMIT_S").map_or(usual_s, u64::from))
}

/// Memory of the program that has much of it, in MiB.
#[allow(dead_code)] // only the tests of recovery have one
pub fn large_mib() -> u32 {
    number("LARGE_MIB").unwrap_or(64)
}

/// How long replicas are killed by chance.
#[allow(dead_code)] // only one of the tests of recovery does
pub fn kill_loop_s() -> u64 {
    number("KILL_LOOP_S").map_or(6, u64::from)
}

/// What the choices of a test that makes some start from.
#[allow(dead_code)] // only the test of the fault points does
pub fn seed() -> u64 {
    number("SEED").map_or(1, u64::from)
}

/// Which generated programs, if that is said.
#[allow(dead_code)] // only their test has some
pub fn seeds() -> Option<RangeInclusive<u64>> {
    if let Some(seed) = number("SEED") {
        let seed = u64::from(seed);
        return Some(seed..=seed);
    }
    let text = std::env::var("SEEDS").ok()?;
    let range = text
        .split_once("..")
        .and_then(|(a, b)| Some(a.parse().ok()?..=b.parse().ok()?));
    Some(range.unwrap_or_else(|| panic!("SEEDS={text} is not first..last")))
}

/// How long new ones are begun.
#[allow(dead_code)] // only their test does
pub fn seconds() -> Option<u64> {
    number("SECONDS").map(u64::from)
}

/// How many replicas are killed meanwhile, at most.
#[allow(dead_code)] // only their test does
pub fn kills() -> usize {
    number("KILLS").unwrap_or(0) as usize
}

/// How many calls each of them makes.
#[allow(dead_code)] // only their test has some
pub fn steps() -> Option<u64> {
    number("STEPS").map(u64::from)
}
