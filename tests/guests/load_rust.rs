// build:
// loses
// Proves: the locks, channels and lazily made things of Rust's standard library, whose threads meet in loads, raw futexes
// and atomic instructions, are repeated.
use std::fs::File;
use std::io::Write;
use std::sync::{mpsc, Arc, Condvar, Mutex, OnceLock, RwLock};
use std::thread;

fn mix(h: u64, v: u64) -> u64 {
    (h ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

fn locks() -> u64 {
    let list = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::new(RwLock::new(0u64));
    let body = |i: u64| {
        let (list, shared) = (list.clone(), shared.clone());
        thread::spawn(move || {
            let mut h = i;
            for k in 0..150 {
                list.lock().unwrap().push(i * 1000 + k);
                if k % 10 == 0 {
                    let mut s = shared.write().unwrap();
                    *s = mix(*s, i);
                } else {
                    h = mix(h, *shared.read().unwrap());
                }
            }
            h
        })
    };
    let threads: Vec<_> = (0..4).map(body).collect();
    let h = threads
        .into_iter()
        .fold(0, |h, t| mix(h, t.join().unwrap()));
    let list = list.lock().unwrap();
    assert_eq!(list.len(), 600);
    list.iter().fold(h, |h, v| mix(h, *v))
}

fn channels() -> u64 {
    let (send, receive) = mpsc::channel();
    let (pass, passed) = mpsc::sync_channel(4);
    let mut threads: Vec<_> = (0..3u64)
        .map(|i| {
            let send = send.clone();
            thread::spawn(move || (0..200).for_each(|k| send.send(i * 1000 + k).unwrap()))
        })
        .collect();
    drop(send);
    threads.push(thread::spawn(move || {
        receive.iter().for_each(|v| pass.send(v * 3).unwrap())
    }));
    let h = passed.iter().fold(0, mix);
    threads.into_iter().for_each(|t| t.join().unwrap());
    h
}

fn turns() -> u64 {
    let both = (Mutex::new(0u64), Condvar::new());
    let round = |parity: u64| {
        for _ in 0..80 {
            let mut n = both.0.lock().unwrap();
            while *n % 2 != parity {
                n = both.1.wait(n).unwrap();
            }
            *n += 1;
            both.1.notify_one();
        }
    };
    thread::scope(|s| {
        s.spawn(|| round(1));
        round(0);
    });
    let n = *both.0.lock().unwrap();
    n
}

fn made_once() -> u64 {
    static ONCE: OnceLock<u64> = OnceLock::new();
    thread::scope(|s| {
        let ask = |i| s.spawn(move || *ONCE.get_or_init(|| i));
        let threads: Vec<_> = (0..4).map(ask).collect();
        threads
            .into_iter()
            .fold(0, |h, t| mix(h, t.join().unwrap()))
    })
}

fn main() {
    let found = [locks(), channels(), made_once()];
    assert_eq!(turns(), 160);
    // To where the replicas are compared, and nobody reads it.
    writeln!(File::create("/dev/null").unwrap(), "{found:x?}").unwrap();
    println!("GUEST-OK load_rust");
}
