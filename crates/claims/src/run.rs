//! Many claims, on several threads.
//!
//! It must never let the order in which claims end show: outcomes come in the order of the file.

use crate::claim::Claim;
use crate::evaluate::{evaluate, Outcome};
use crate::metric::Metrics;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunOptions {
    /// Threads.
    pub jobs: usize,
}

/// More threads than this are of no use to claims.
pub const JOBS_MAX: usize = 256;

/// Evaluate all claims. `ended` gets each one as it ends, with the number of ended ones.
///
/// # Panics
/// A measurement panicked: that is a bug of the [`Metrics`].
pub fn run(
    claims: &[Claim],
    metrics: &dyn Metrics,
    options: RunOptions,
    ended: &(dyn Fn(usize, &Outcome) + Sync),
) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let count = AtomicUsize::new(0);
    let places: Vec<Mutex<Option<Outcome>>> = claims.iter().map(|_| Mutex::new(None)).collect();
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(claim) = claims.get(index) else { break };
        let outcome = evaluate(claim, metrics);
        ended(count.fetch_add(1, Ordering::Relaxed) + 1, &outcome);
        *places[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    };
    thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, JOBS_MAX).min(claims.len().max(1)) {
            scope.spawn(work);
        }
    });
    let outcome = |place: Mutex<Option<Outcome>>| {
        let outcome = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.unwrap_or_else(|| panic!("bug: a claim was not evaluated"))
    };
    places.into_iter().map(outcome).collect()
}
