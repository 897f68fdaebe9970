//! One processor for each guest. Its kernel stops its own processes at every system call and page fault, and a switch to
//! another processor costs more than most of these calls: on one processor a guest takes a third less processor time. It
//! uses no second one anyway.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A processor that this process may use: the next one for each guest, and not the same one first in every process.
pub(crate) fn next() -> Option<String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let allowed = allowed(&fs::read_to_string("/proc/self/status").ok()?);
    let number = usize::try_from(std::process::id()).ok()?.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    allowed.get(number % allowed.len().max(1)).map(usize::to_string)
}

/// The processors that the status of a process names.
fn allowed(status: &str) -> Vec<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let range = |words: &str| {
        let (first, last) = words.split_once('-').unwrap_or((words, words));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_are_all_that_the_kernel_allows() {
        assert_eq!(allowed("Name:\tx\nCpus_allowed_list:\t0-2,5,8-9\nMems_allowed:\t1\n"), [0, 1, 2, 5, 8, 9]);
        assert_eq!(allowed("Name:\tx\n"), [0; 0]);
        let both = [next(), next()].map(|name| name.expect("this process runs").parse::<usize>().expect("a number"));
        assert!(both.iter().all(|number| allowed(&fs::read_to_string("/proc/self/status").unwrap()).contains(number)));
    }
}
