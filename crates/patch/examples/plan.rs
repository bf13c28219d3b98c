//! Prints what would be rewritten in the given files: `cargo run --release --example plan -- FILE...`

use geryon_patch::{Options, Plan, SiteKind};
use std::collections::BTreeMap;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut verbose = false;
    for path in std::env::args().skip(1) {
        if path == "-v" {
            verbose = true;
            continue;
        }
        let file = std::fs::read(&path)?;
        let entries = [
            ("pthread_mutex_lock", 0),
            ("pthread_spin_lock", 1),
            ("pthread_cond_wait", 2),
        ];
        let options = Options {
            entries: &entries,
            rmw: true,
            waits: true,
            loads: true,
            asked: &[],
        };
        let begin = Instant::now();
        let plan = Plan::new(&file, &options)?;
        let took = begin.elapsed();
        print(&path, &plan, verbose);
        let mb = plan.stats.covered_bytes as f64 / 1e6;
        println!(
            "  {:.1} MB of code in {} ranges, {took:.1?}, {:.0} MB/s; trampolines {} KB",
            mb,
            plan.stats.ranges,
            mb / took.as_secs_f64(),
            plan.trampoline_len() / 1024
        );
    }
    Ok(())
}

fn print(path: &str, plan: &Plan, verbose: bool) {
    println!("{path}");
    // By kind: alone, with what follows, with what precedes, not.
    let mut counts: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for site in &plan.sites {
        let window = &plan.windows[site.window as usize];
        let tactic = match () {
            _ if window.start < site.vaddr => 2,
            _ if plan
                .sites
                .iter()
                .filter(|s| s.window == site.window)
                .count()
                > 1 =>
            {
                1
            }
            _ if window.bytes[0] == 0x0f => 1,
            _ => usize::from(alone(&window.bytes)),
        };
        counts.entry(name(site.kind)).or_default()[tactic] += 1;
    }
    for left in &plan.unpatched {
        counts.entry(name(left.kind)).or_default()[3] += 1;
        if verbose {
            println!("  {:#x} {:?}: {}", left.vaddr, left.kind, left.reason);
        }
    }
    for (kind, n) in counts {
        let all: usize = n.iter().sum();
        let percent = |n: usize| 100.0 * n as f64 / all as f64;
        println!(
            "  {kind:8} {all:5}: alone {:.1}%, with following {:.1}%, with preceding {:.1}%, not {:.1}% ({})",
            percent(n[0]),
            percent(n[1]),
            percent(n[2]),
            percent(n[3]),
            n[3]
        );
    }
    let (local, fences) = (plan.stats.rmw_thread_local, plan.stats.rmw_fences);
    println!("  atomics left alone: {local} thread-local, {fences} fences");
}

/// 0 if the window is one instruction, 1 if there are more.
fn alone(bytes: &[u8]) -> bool {
    let decoder = iced_x86::Decoder::new(64, bytes, iced_x86::DecoderOptions::NONE);
    decoder.into_iter().count() > 1
}

fn name(kind: SiteKind) -> &'static str {
    match kind {
        SiteKind::Syscall => "syscall",
        SiteKind::Rmw => "rmw",
        SiteKind::Wait => "wait",
        SiteKind::Load => "load",
        SiteKind::Store => "store",
        SiteKind::Rdtsc | SiteKind::Rdtscp => "rdtsc",
        SiteKind::Rdrand => "rdrand",
        SiteKind::Xsavec => "xsavec",
        SiteKind::Entry(_) => "entry",
    }
}
