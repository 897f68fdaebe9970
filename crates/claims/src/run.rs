//! Evaluation of many claims on several threads.
//!
//! The order in which claims end must never be visible: outcomes are in the order of the file.

use crate::claim::Claim;
use crate::evaluate::{evaluate, ClaimOutcome};
use crate::metric::Metrics;
use openraid_methods::run::run_all;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// Number of threads.
    pub jobs: usize,
}

/// Limit of the useful threads.
pub const JOBS_MAX: usize = 256;

/// Evaluate all claims. `ended` gets each claim when it ends, with the number of ended ones.
///
/// # Panics
/// A measurement panicked, which is a bug of the [`Metrics`].
pub fn run(
    claims: &[Claim],
    metrics: &dyn Metrics,
    options: RunOptions,
    ended: &(dyn Fn(usize, &ClaimOutcome) + Sync),
) -> Vec<ClaimOutcome> {
    let one = |claim: &Claim| evaluate(claim, metrics);
    each(claims, options, one, ended)
}

/// Process each item on several threads; the results are in the order of the items.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    options: RunOptions,
    one: impl Fn(&T) -> R + Sync,
    ended: &(dyn Fn(usize, &R) + Sync),
) -> Vec<R> {
    let count = AtomicUsize::new(0);
    let work = |item: &T| {
        let result = one(item);
        ended(count.fetch_add(1, Ordering::Relaxed) + 1, &result);
        result
    };
    let results = run_all(items, options.jobs.clamp(1, JOBS_MAX), work, |_| true);
    results.into_iter().map(|result| result.unwrap_or_else(|| panic!("bug: an item was not worked on"))).collect()
}
