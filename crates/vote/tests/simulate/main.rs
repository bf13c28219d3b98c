//! A simulator of what verdicts decide: random programs of what may happen to made-up replicas, of which it is known who is
//! wrong. What decides is the crate's own; what gathers facts and carries out decisions is the monitor's in small
//! (`monitor.rs`, `survive.rs`, `replay.rs`). `rules.rs` says what must hold.
//!
//! ```sh
//! cargo test --release -p geryon-vote --test simulate                 # SECONDS=n, FROM=seed
//! SEED=n cargo test --release -p geryon-vote --test simulate          # one seed
//! ```

mod event;
mod monitor;
mod replay;
mod rules;
mod step;
mod survive;
mod world;

use event::{Event, Race, Setup, Trouble, Verify, program, setup};
use geryon_vote::{OnDivergence, OnRace, Replacements};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use world::World;

/// What has happened in all programs.
#[derive(Default)]
struct Tally {
    events: u64,
    seen: BTreeSet<&'static str>,
}

/// What rule a program breaks.
fn run(setup: Setup, events: &[Event], tally: &mut Tally) -> Option<String> {
    let mut world = World::new(setup);
    let broken = run_in(&mut world, events, tally);
    tally.seen.append(&mut world.seen);
    broken.map(|why| format!("{why}: {}", world.picture()))
}

fn run_in(world: &mut World, events: &[Event], tally: &mut Tally) -> Option<String> {
    for event in events {
        world.happens(*event);
        world.check();
        tally.events += 1;
        if world.broken.is_some() {
            return world.broken.take();
        }
    }
    world.comes_to_rest();
    world.broken.take()
}

/// The shortest program found by leaving events out that still breaks a rule.
fn shrink(setup: Setup, events: &[Event]) -> Vec<Event> {
    let mut left = events.to_vec();
    let mut size = left.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < left.len() {
            let mut shorter = left.clone();
            shorter.drain(at..(at + size).min(left.len()));
            match run(setup, &shorter, &mut Tally::default()) {
                Some(_) => left = shorter,
                None => at += size,
            }
        }
        size /= 2;
    }
    left
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_happens_the_rules_hold() {
    let begun = Instant::now();
    let limit = Duration::from_secs(number("SECONDS").unwrap_or(5));
    let (from, one) = (number("FROM").unwrap_or(1), number("SEED"));
    let mut seed = one.unwrap_or(from);
    let mut tally = Tally::default();
    loop {
        let setup = setup(seed);
        let events = program(&setup);
        if run(setup, &events, &mut tally).is_some() {
            let short = shrink(setup, &events);
            let why = run(setup, &short, &mut Tally::default()).unwrap_or_default();
            panic!("SEED={seed}: {why}\n{setup:#?}\n{short:#?}");
        }
        seed += 1;
        if one.is_some() || begun.elapsed() > limit {
            break;
        }
    }
    let rate = tally.events as f64 / begun.elapsed().as_secs_f64() * 60.0;
    println!(
        "{} events, {} programs, {rate:.0} events a minute",
        tally.events,
        seed - from
    );
    if one.is_none() && seed - from > 20_000 {
        let all = rules::DECISIONS.iter();
        let unseen: Vec<_> = all.filter(|d| !tally.seen.contains(**d)).collect();
        assert!(unseen.is_empty(), "never decided: {unseen:?}");
    }
}

/// Programs that have broken a rule once, shrunk; after each what was wrong stands in `docs/CAUSES.md`.
#[test]
fn what_was_found_once_is_mended() {
    let five = Setup {
        replicas: 5,
        verify: Verify::All,
        in_parallel: true,
        checkpoints: true,
        has_variants: false,
        on_divergence: OnDivergence::Replace,
        on_race: OnRace::Retry,
        bound: Replacements::USUAL,
        trouble: Trouble::All,
        seed: 0,
    };
    let one = |seed| Setup {
        trouble: Trouble::One,
        seed,
        ..five
    };
    let all = |seed| Setup { seed, ..five };
    let found = [
        // One has ended, and stands for one that has yet to crash like the others.
        (one(4104), vec![Event::Exit(1), Event::Bug]),
        // A majority crashes in a race, and who has gone on with the leader is outvoted before that.
        (
            all(8892),
            vec![Event::Kill(0), Event::Race(13, Race::Crash)],
        ),
        // Two go on, and each is outvoted and copied from the other one.
        (
            all(82_731),
            vec![
                Event::Hit(0, 1, false),
                Event::Race(23, Race::Crash),
                Event::Steps(0, 4),
                Event::Kill(0),
            ],
        ),
        // One leads in a lost leader's place only when another one is about to be made anew: both were wanted.
        (
            Setup {
                replicas: 2,
                verify: Verify::Async,
                trouble: Trouble::Many,
                ..all(1_892_816)
            },
            vec![
                Event::Checkpoint,
                Event::Steps(0, 3),
                Event::Steps(1, 4),
                Event::Hang(0),
                Event::Time(5000),
                Event::Steps(2, 4),
                Event::Steps(3, 3),
                Event::Time(5),
                Event::Kill(3),
                Event::Kill(1),
            ],
        ),
    ];
    for (setup, events) in found {
        let broken = run(setup, &events, &mut Tally::default());
        assert_eq!(broken, None, "{events:?}");
    }
}
