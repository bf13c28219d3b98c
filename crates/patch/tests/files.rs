//! Plans of the files this machine has: all of each plan is checked, and how much is covered.

mod common;

use geryon_patch::{Options, Plan, SiteKind};
use std::path::Path;

const ENTRIES: &[(&str, u16)] = &[
    ("pthread_mutex_lock", 0),
    ("pthread_mutex_unlock", 1),
    ("pthread_cond_wait", 2),
    ("pthread_spin_lock", 3),
    ("pthread_spin_trylock", 4),
    ("pthread_once", 5),
    ("pthread_create", 6),
    ("sem_post", 7),
    ("pthread_rwlock_rdlock", 8),
    ("pthread_barrier_wait", 9),
    ("pthread_mutex_trylock", 10),
    ("pthread_cond_destroy", 11),
    ("sem_getvalue", 12),
];

struct Counts {
    all: usize,
    left: usize,
}

fn counts(plan: &Plan, kind: SiteKind) -> Counts {
    let patched = plan.sites.iter().filter(|s| s.kind == kind).count();
    let left = plan.unpatched.iter().filter(|u| u.kind == kind).count();
    Counts {
        all: patched + left,
        left,
    }
}

/// The plan of a file, checked; `None` if the machine does not have it.
fn plan(path: &str) -> Option<Plan> {
    if !Path::new(path).exists() {
        println!("{path} is not here");
        return None;
    }
    let file = std::fs::read(path).expect("read");
    let plan = Plan::new(
        &file,
        &Options {
            entries: ENTRIES,
            rmw: true,
            waits: true,
            loads: true,
            asked: &[],
        },
    )
    .expect("plan");
    for bias in [0, 0x7fff_1234_5000] {
        common::check(&plan, bias);
    }
    for left in &plan.unpatched {
        println!("{path}: {:#x} {:?} {}", left.vaddr, left.kind, left.reason);
    }
    let text = serde_json::to_string(&plan).expect("a plan can be cached");
    assert_eq!(
        serde_json::from_str::<Plan>(&text).expect("and read back"),
        plan
    );
    Some(plan)
}

#[test]
fn libc_is_covered() {
    let Some(plan) = plan("/lib/x86_64-linux-gnu/libc.so.6") else {
        return;
    };
    let syscalls = counts(&plan, SiteKind::Syscall);
    assert!(
        syscalls.all > 400 && syscalls.left == 1,
        "only rt_sigreturn stays"
    );
    let atomics = counts(&plan, SiteKind::Rmw);
    assert!(atomics.all > 600 && atomics.left == 0);
    for (name, id) in ENTRIES {
        let patched = plan
            .sites
            .iter()
            .filter(|s| s.kind == SiteKind::Entry(*id))
            .count();
        assert_eq!(patched, 1, "{name}");
    }
    let catomic = plan.windows.iter().filter(|w| {
        let lines = common::decode(&w.bytes, w.start);
        lines.iter().any(|i| {
            lines.iter().any(|l| {
                l.has_lock_prefix() && i.is_jcc_short() && i.near_branch_target() == l.ip() + 1
            })
        })
    });
    assert!(
        catomic.count() >= 4,
        "malloc's jumps over the lock prefix move along"
    );
}

#[test]
fn the_loader_is_covered() {
    let Some(plan) = plan("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2") else {
        return;
    };
    assert_eq!(counts(&plan, SiteKind::Syscall).left, 1);
    assert_eq!(counts(&plan, SiteKind::Rmw).left, 0);
    assert_eq!(counts(&plan, SiteKind::Rdtsc).left, 0);
}

#[test]
fn libraries_and_programs_are_covered() {
    let files = [
        "/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/lib/x86_64-linux-gnu/libcrypto.so.3",
        "/lib/x86_64-linux-gnu/libgomp.so.1",
        "/lib/x86_64-linux-gnu/libglib-2.0.so.0",
        "/lib/x86_64-linux-gnu/libgobject-2.0.so.0",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/bin/bash",
        "/bin/busybox",
        "/usr/bin/python3",
        "/usr/sbin/nginx",
        "/usr/bin/redis-server",
        "/usr/sbin/mariadbd",
    ];
    for path in files {
        let Some(plan) = plan(path) else { continue };
        let atomics = counts(&plan, SiteKind::Rmw);
        assert!(
            atomics.left <= 2 + atomics.all / 500,
            "{path}: almost all atomics"
        );
        let kept = counts(&plan, SiteKind::Syscall).left;
        assert!(
            kept <= 1,
            "{path}: all but rt_sigreturn of a static program"
        );
    }
}

#[test]
fn what_is_not_an_elf_file_is_refused() {
    for bytes in [
        &b""[..],
        b"#!/bin/sh\n",
        &[0x7f, b'E', b'L', b'F', 1, 1, 1, 0][..],
        &[0; 64][..],
    ] {
        assert!(Plan::new(bytes, &Options::default()).is_err());
    }
}

/// Cut and damaged files give an error or a plan, never a panic.
#[test]
fn damaged_files_do_no_harm() {
    let Ok(file) = std::fs::read("/lib/x86_64-linux-gnu/libgomp.so.1") else {
        return;
    };
    let options = Options {
        entries: ENTRIES,
        rmw: true,
        waits: true,
        loads: true,
        asked: &[],
    };
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    for round in 0..60 {
        let mut damaged = file.clone();
        let reach = if round % 2 == 0 { 0x400 } else { file.len() };
        for _ in 0..20 {
            let at = random() % reach;
            damaged[at] = random() as u8;
        }
        if round % 5 == 0 {
            damaged.truncate(random() % file.len());
        }
        let _ = Plan::new(&damaged, &options);
    }
}
