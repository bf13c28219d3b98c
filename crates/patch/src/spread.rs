//! Work that is spread over the cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// So many items one thread takes at a time.
const BLOCK: usize = 32;

/// What `work` makes of each item, in the order of the items. Each thread has a state of its own; all of these come back, too.
pub fn spread<T: Sync, S: Send, R: Send>(
    items: &[T],
    state: impl Fn() -> S + Sync,
    work: impl Fn(&T, &mut S) -> R + Sync,
) -> (Vec<R>, Vec<S>) {
    let next = AtomicUsize::new(0);
    let take = || {
        let (mut state, mut done) = (state(), Vec::new());
        loop {
            let from = next.fetch_add(BLOCK, Ordering::Relaxed);
            let Some(block) = items.get(from..items.len().min(from + BLOCK)) else {
                return (state, done);
            };
            if block.is_empty() {
                return (state, done);
            }
            let results: Vec<R> = block.iter().map(|item| work(item, &mut state)).collect();
            done.push((from, results));
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let others = cores.min(items.len().div_ceil(BLOCK)).saturating_sub(1);
    let all = thread::scope(|scope| {
        // (Where there may be no more threads, those that there are do it.)
        let begin = |_| thread::Builder::new().spawn_scoped(scope, take).ok();
        let begun: Vec<_> = (0..others).filter_map(begin).collect();
        let mut all = vec![take()];
        for thread in begun {
            match thread.join() {
                Ok(done) => all.push(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    let (states, done): (Vec<S>, Vec<_>) = all.into_iter().unzip();
    let mut done: Vec<(usize, Vec<R>)> = done.into_iter().flatten().collect();
    done.sort_by_key(|d| d.0);
    (done.into_iter().flat_map(|d| d.1).collect(), states)
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn results_come_in_order_and_states_add_up() {
        for len in [0, 1, 31, 32, 33, 1000] {
            let items: Vec<u64> = (0..len).collect();
            let (results, states) = spread(
                &items,
                || 0,
                |item, sum| {
                    *sum += item;
                    item * 2
                },
            );
            assert_eq!(results, items.iter().map(|i| i * 2).collect::<Vec<_>>());
            assert_eq!(states.iter().sum::<u64>(), items.iter().sum());
        }
    }
}
