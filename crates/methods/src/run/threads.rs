//! Does the work of a list on several threads. The results have the order of the list.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Calls `work` for every item, on this number of threads. After each item `ended` gets the number of finished items.
/// If `ended` returns false, no more items are begun, and the missing results are `None`.
pub fn run_all<I: Sync, R: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> R + Sync,
    ended: impl Fn(usize) -> bool + Sync,
) -> Vec<Option<R>> {
    let results: Mutex<Vec<Option<R>>> = Mutex::new((0..items.len()).map(|_| None).collect());
    let (next, done, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let one = || {
        while !stopped.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return };
            let result = work(item);
            results.lock().expect("no thread panics with the lock")[number] = Some(result);
            let so_far = done.fetch_add(1, Ordering::Relaxed) + 1;
            if !ended(so_far) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, items.len().max(1)) {
            scope.spawn(one);
        }
        one();
    });
    results.into_inner().expect("no thread panics with the lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items_for_any_number_of_threads() {
        let items: Vec<u64> = (0..1000).collect();
        for threads in [1, 2, 7] {
            let results = run_all(&items, threads, |n| n * n, |_| true);
            assert!(results.iter().zip(&items).all(|(result, n)| *result == Some(n * n)));
        }
        assert!(run_all(&[] as &[u8], 4, |n| *n, |_| true).is_empty());
    }

    #[test]
    fn a_stop_begins_nothing_more() {
        let items: Vec<u64> = (0..100).collect();
        let results = run_all(&items, 1, |n| *n, |done| done < 10);
        assert_eq!(results.iter().flatten().count(), 10);
    }
}
