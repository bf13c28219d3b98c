//! Every program in `tests/guests` natively first, then as 1, 2 and 3 replicas, in both orders.
//! See `support/settings.rs` for the variables that choose and repeat, and
//! `support/guest.rs` for what a guest's header may say.

#[allow(dead_code)] // other tests want a single one
#[path = "support/guest.rs"]
mod guest;
mod support;

use guest::Guest;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::path::Path;
use std::sync::Mutex;
use support::{Load, Outcome, Program, TempDir, Verdicts, settings, tail};

/// A guest that takes longer hangs.
const LIMIT_S: u64 = 60;
/// A guest with `delayed` is also run with threads that sleep at one record out of so many.
const DELAYS: &[u64] = &[0, 50];
/// Once more with replicas that differ on purpose: how, how many, and in which order. (Of two levels a guest has one in each
/// order, and which, its name says.)
const VARIANTS: &[(&[&str], u32, &str)] = &[
    (&["code"], 2, "serial"),
    (&["code"], 3, "clocks"),
    (&["data", "full"], 3, "serial"),
    (&["full", "data"], 2, "clocks"),
];
/// In place of such a level: a guest with `async`, compared after the fact.
const ASYNC: &str = "async";
/// The same: a guest that goes over from clocks to serial order, at one of the first moments of so many.
const DESCENDING: &str = "descending";
const MOMENTS: u64 = 40;
/// The same: a guest whose leader is lost, at one of the first passings of so many of one of these places.
const LOSING: &str = "losing";
const PASSINGS: u64 = 60;
const PLACES: &[&str] = &[
    "call-begun",
    "call-returned",
    "call-noted",
    "record-published",
    "rendezvous-published",
    "rendezvous-confirmed",
    "signal-unlogged",
    "signal-queued",
    "outcome-unpublished",
    "atomic-unpublished",
    "turn-released",
];
/// What Geryon says of that.
const LOSS: &[&str] = &[
    "geryon: fault point ",
    "geryon: divergence: replica 1 was killed by signal 9",
    "geryon: replica 1 led; another one takes over",
    "geryon: replica 2 leads from now on",
    "geryon: replica 3 leads from now on",
    "geryon: replica 1 is replaced by",
    "geryon: 1 fault seen",
];
/// What Geryon says of that.
const DESCENT: &[&str] = &[
    "geryon: fault point order-changes",
    "geryon: from clocks to serial order",
    "geryon: in serial order after",
    "geryon: replica 1 is replaced by",
    "geryon: replica 2 is replaced by",
    "geryon: replica 3 is replaced by",
    "geryon: 0 faults seen",
];
/// What it says where the program does what clocks do not repeat, and what stands in another order's place: as on a machine with
/// so many cores.
const TURNS: &str = "geryon: threads take turns from here on";
const AUTO: &str = "auto";
const CORES: &str = "64";
/// Within so many native runs, the output of a `varies` guest must differ.
const VARIES_RUNS: usize = 40;
/// What a report of a divergence must name.
const REPORT_NAMES: &str = "thread group";

#[test]
fn guests() {
    support::no_core_files();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests");
    std::fs::create_dir_all(&out).expect("target/guests can be made");
    let mut verdicts = Verdicts::default();
    let (found, headers) = guest::find(&folder);
    let mut chosen = Vec::new();
    for guest in found {
        match guest {
            Ok(guest) if settings::selected(&guest.name) => chosen.push(guest),
            Ok(_) => {}
            Err(e) => verdicts.add("header", "", &[e]),
        }
    }
    let binaries = support::beside(&chosen, |guest| guest.build(&out, headers));
    let built: Vec<_> = chosen.iter().zip(binaries).collect();
    let _load = Load::from_settings();
    let verdicts = Mutex::new(verdicts);
    support::beside(&built, |(guest, binary)| {
        let mut notes = Vec::new();
        let failures: Vec<String> = match binary {
            Err(e) => vec![format!("does not build: {e}")],
            Ok(binary) => guest
                .args
                .iter()
                .flat_map(|args| try_guest(guest, binary, args, &mut notes))
                .collect(),
        };
        let mut verdicts = verdicts.lock().expect("no guest panics");
        verdicts.add(&guest.name, &notes.join("  "), &failures);
    });
    verdicts.into_inner().expect("no guest panics").finish();
}

/// One guest with one argument list: natively, then with each number of
/// replicas as often as asked. Stops at the first failing number.
fn try_guest(
    guest: &Guest,
    binary: &Path,
    args: &[String],
    notes: &mut Vec<String>,
) -> Vec<String> {
    let dir = TempDir::new();
    let mut program = Program {
        argv: vec![binary.to_string_lossy().into_owned()],
        env: guest.env.clone(),
        stdin: guest.stdin.clone(),
        dir: dir.path().to_owned(),
        send: guest.send,
        limit: settings::limit(LIMIT_S),
    };
    program.argv.extend(args.iter().cloned());
    let native = match native(guest, &program, notes) {
        Ok(native) => native,
        Err(failures) => return failures,
    };
    let mut failures = Vec::new();
    for (order, why) in &guest.not_in {
        notes.push(format!("not in {order}: {why}"));
    }
    let usual = settings::replicas_and_orders(&[1, 2, 3]).into_iter();
    let ways = usual.flat_map(|(n, order)| {
        let delays = if guest.delayed && n > 1 { DELAYS } else { &[0] };
        let usual = delays.iter().map(move |every| (n, order, *every, "none"));
        let usual = usual.chain((guest.unconfirmed && n > 1).then_some((n, order, 0, ASYNC)));
        let descends =
            n > 1 && order == "clocks" && (guest.descends || settings::descend().is_some());
        let usual = usual.chain(descends.then_some((n, order, 0, DESCENDING)));
        let loses = n > 1 && settings::lose().is_some();
        usual.chain(loses.then_some((n, order, 0, LOSING)))
    });
    let numbers = settings::replicas(&[2, 3]);
    let is_usual = settings::orders().len() > 1;
    let ascends = numbers
        .iter()
        .filter(|n| guest.ascends && is_usual && **n > 1);
    let ways = ways.chain(ascends.map(|n| (*n, AUTO, 0, "none")));
    let ways = ways.chain(way_to_lose(guest));
    let (numbers, orders) = (settings::replicas(&[2, 3]), settings::orders());
    let asked = |(_, n, order): &&(_, u32, &str)| numbers.contains(n) && orders.contains(order);
    let variants = VARIANTS.iter().filter(asked);
    let turn = of_guest(guest, "level") as usize;
    let variants = variants.map(|(levels, n, order)| (*n, *order, 0, levels[turn % levels.len()]));
    let mut ways: Vec<_> = ways.chain(variants).collect();
    if let Some(level) = settings::variants() {
        let all = settings::replicas_and_orders(&[2, 3]).into_iter();
        ways = all.map(|(n, order)| (n, order, 0, level)).collect();
    }
    for (n, order, every, level) in ways {
        let without = |(what, _): &(String, String)| {
            what == order || what == level || (level == "full" && what == "data")
        };
        // (Refused together.)
        let maps_files = !matches!(level, "none" | DESCENDING | LOSING)
            && guest.env.contains_key("GERYON_SHARED_FILES");
        let descends = level == DESCENDING;
        let is_excluded = |(what, _): &(String, String)| descends && what == "serial";
        let is_asked = match (settings::descend(), settings::lose()) {
            (Some(_), _) => descends,
            (_, Some(_)) => level == LOSING,
            (None, None) => true,
        };
        if !is_asked || guest.not_in.iter().any(is_excluded) {
            continue;
        }
        if n > guest.most || maps_files || guest.not_in.iter().any(without) {
            continue;
        }
        let mut program = program.clone();
        if every > 0 && !guest.delayed_args.is_empty() {
            program.argv.truncate(1);
            program.argv.extend(guest.delayed_args.iter().cloned());
        }
        let mut program = program.in_order(n, order);
        if order == AUTO {
            program.env.insert("GERYON_CORES".into(), CORES.into());
        }
        let mut way = format!("{n} {order}");
        match level {
            "none" => {}
            DESCENDING => {
                let moment = 1 + by_chance() % settings::descend().unwrap_or(MOMENTS);
                program.option("--fail-at", &format!("order-changes:{moment}"));
            }
            LOSING => {
                let (place, nth) = match settings::lose() {
                    Some(most) => (by_chance(), by_chance() % most),
                    None => (of_guest(guest, "place"), of_guest(guest, "nth") % PASSINGS),
                };
                let (place, nth) = (PLACES[place as usize % PLACES.len()], 1 + nth);
                program.option("--fail-at", &format!("{place}:{nth}:0"));
            }
            ASYNC => program.option("--verify", level),
            _ => program.option("--variants", level),
        }
        if level != "none" {
            way += &format!(" {level}");
        }
        if every > 0 {
            program.delay(every);
            way += &format!(" delayed:{every}");
        }
        let mut slowest = 0;
        for round in 1..=settings::repeat() {
            let wrong = match program.run() {
                Err(e) => vec![e],
                Ok(mut outcome) => {
                    let has_said = outcome.stderr.starts_with(TURNS.as_bytes());
                    let is_silent = guest.turns && n > 1 && order == "clocks" && !has_said;
                    if order == AUTO || guest.turns {
                        outcome.forget(&[TURNS]);
                    }
                    if descends {
                        outcome.forget(DESCENT);
                    } else if level == LOSING {
                        outcome.forget(LOSS);
                    }
                    slowest = slowest.max(outcome.took.as_millis());
                    let wrong = if guest.beyond {
                        beyond_faults(guest, &outcome)
                    } else if let Some(call) = &guest.refused {
                        refused_faults(guest, call, &outcome)
                    } else {
                        faults(guest, &outcome, native.as_ref())
                    };
                    if wrong.is_empty() && is_silent {
                        vec!["it did not say that threads take turns".into()]
                    } else if wrong.is_empty() {
                        wrong
                    } else {
                        with_tail(wrong, &outcome)
                    }
                }
            };
            if !wrong.is_empty() {
                failures.push(format!("-n {way}, run {round}: {}", wrong.join("\n")));
                failures.push(format!("repeat: {}", repeat_line(&program, &dir)));
                break;
            }
        }
        notes.push(format!("n{way} {slowest} ms"));
    }
    failures
}

/// A guest that loses its leader does so once in each run of the test: with so many replicas, in this order. (Which, its name says.)
fn way_to_lose(guest: &Guest) -> Option<(u32, &'static str, u64, &'static str)> {
    if !guest.loses || settings::lose().is_some() {
        return None;
    }
    let is_run = |(n, order): &(u32, &str)| {
        *n > 1 && *n <= guest.most && !guest.not_in.iter().any(|(what, _)| what == order)
    };
    let ways = settings::replicas_and_orders(&[2, 3]).into_iter();
    let ways: Vec<_> = ways.filter(is_run).collect();
    let at = of_guest(guest, "way").checked_rem(ways.len() as u64)?;
    let (n, order) = ways[at as usize];
    Some((n, order, 0, LOSING))
}

/// Any number, the same for a guest in all runs of the test: what is drawn anew each time is found by those who look for it
/// (`LOSE=n`), and not by those who have changed something else.
fn of_guest(guest: &Guest, what: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&guest.name, what).hash(&mut hasher);
    hasher.finish()
}

/// No two runs of the test are the same here: the line that repeats one says which it was.
fn by_chance() -> u64 {
    RandomState::new().hash_one(())
}

/// The run's own folder will be gone; /tmp is there.
fn repeat_line(program: &Program, dir: &TempDir) -> String {
    program
        .command_line()
        .replace(&*dir.path().to_string_lossy(), "/tmp")
}

/// Linux is the oracle: the guest must pass natively, and vary if it says so.
fn native(
    guest: &Guest,
    program: &Program,
    notes: &mut Vec<String>,
) -> Result<Option<Outcome>, Vec<String>> {
    if guest.geryon_only {
        return Ok(None);
    }
    let program = program.under(0);
    let outcome = program.run().map_err(|e| vec![e])?;
    let wrong = faults(guest, &outcome, None);
    if !wrong.is_empty() {
        let mut wrong = with_tail(wrong, &outcome);
        wrong.push(format!("natively: {}", program.command_line()));
        return Err(wrong);
    }
    notes.push(format!("native {} ms", outcome.took.as_millis()));
    if guest.varies && settings::taskset().is_none() {
        // Random addresses must not be what makes the difference.
        let mut fixed = program.clone();
        fixed.prefix(&["setarch", "-R"]);
        let mut seen = BTreeSet::new();
        for runs in 1.. {
            seen.insert(fixed.run().map_err(|e| vec![e])?.stdout);
            if seen.len() > 1 {
                notes.push(format!("varies after {runs}"));
                break;
            }
            if runs == VARIES_RUNS {
                return Err(vec![format!(
                    "{VARIES_RUNS} native runs gave the same output"
                )]);
            }
        }
    }
    Ok(Some(outcome))
}

/// What is wrong with a run that has to be right.
fn faults(guest: &Guest, outcome: &Outcome, native: Option<&Outcome>) -> Vec<String> {
    let mut faults = outcome.faults();
    if outcome.ended != guest.exit {
        faults.push(format!(
            "ended by {}, expected {}",
            outcome.ended, guest.exit
        ));
    }
    faults.extend(outcome.geryon_lines());
    let token = format!("GUEST-OK {}", guest.name);
    let lines = outcome.stdout.split(|b| *b == b'\n');
    let mut last = lines.rev().skip(1); // behind the last new line is nothing
    let holds = |line: &[u8]| line == token.as_bytes();
    // A guest that waits for a signal prints READY behind its token.
    let found = if guest.send.is_some() {
        last.any(holds)
    } else {
        last.next().is_some_and(holds)
    };
    if !found {
        faults.push(format!("`{token}` is not the last line of stdout"));
    }
    if let Some(native) = native
        && guest.deterministic
    {
        faults.extend(support::difference(
            "stdout",
            &native.stdout,
            &outcome.stdout,
        ));
        faults.extend(support::difference(
            "stderr",
            &native.stderr,
            &outcome.stderr,
        ));
    }
    faults
}

/// What is wrong with a run of a racy program: it may be stopped, or its replicas may be told apart and
/// repaired, if a report says where; but it may neither hang nor be wrong.
fn beyond_faults(guest: &Guest, outcome: &Outcome) -> Vec<String> {
    let right = faults(guest, outcome, None);
    let said = outcome.geryon_lines();
    let reported = said.iter().any(|l| l.contains(REPORT_NAMES));
    let stopped = outcome.faults().is_empty() && outcome.ended != guest.exit;
    let repaired = right.iter().all(|fault| said.contains(fault));
    if right.is_empty() || (reported && (stopped || repaired)) {
        Vec::new()
    } else {
        right
    }
}

/// What is wrong with a run that uses a refused call: the call must be named, and
/// the program, which sees an errno, must be right or fail by itself.
fn refused_faults(guest: &Guest, call: &str, outcome: &Outcome) -> Vec<String> {
    // A single replica needs no protection from itself: some calls pass there.
    if faults(guest, outcome, None).is_empty() {
        return Vec::new();
    }
    let named = format!("geryon: {call} is refused");
    let mut wrong = outcome.faults();
    if !outcome.geryon_lines().iter().any(|l| l.starts_with(&named)) {
        wrong.push(format!("no line says `{named}`"));
    }
    if outcome
        .geryon_lines()
        .iter()
        .any(|l| l.contains("divergence"))
    {
        wrong.push(format!("`{}` diverged", guest.name));
    }
    wrong
}

fn with_tail(mut faults: Vec<String>, outcome: &Outcome) -> Vec<String> {
    for (name, bytes) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !bytes.is_empty() {
            faults.push(format!("end of {name}:\n{}", tail(bytes)));
        }
    }
    faults
}
