//! One run of one check, on a thread of its own, and its channel to the owner of the metrics.
//!
//! ```text
//!  evaluating thread: Starlark            evaluate(): owner of the metrics
//!    metric function  -- Word::Asked -->  measures, records
//!                     <-- value or stop --
//!    the end          -- Word::Ended -->  verdict
//! ```
//!
//! The thread has a deep stack, because parser and evaluator descend into expressions. A check must never exceed its
//! limits (steps, memory, calls). If a check finds a way around them, the owner stops listening.

use super::syntax::{first_line, prepare};
use super::{functions, guard, helpers, names};
use crate::claim::Claim;
use crate::metric::{MetricCall, MetricValue};
use crate::workload::Workload;
use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use std::cell::RefCell;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::OnceLock;
use std::thread;

/// Limit of the function calls and loop iterations.
const STEPS_MAX: u64 = 5_000_000;
/// Limit of the bytes of values.
const HEAP_BYTES_MAX: usize = 256 << 20;
/// Limit of the metric calls of one check, including repeated ones.
const CALLS_MAX: usize = 20_000;
/// Stack of an evaluating thread. The longest check has a nesting of a few thousand expressions at most.
const STACK_BYTES: usize = 256 << 20;

/// A message of an evaluating thread.
pub enum Word {
    /// The thread needs a value, and waits.
    Asked(MetricCall),
    /// The result of the check, or the reason for which it cannot be evaluated.
    Ended(Result<bool, String>),
}

/// A check that is being evaluated.
pub struct Running {
    /// Messages of the check's thread.
    pub words: Receiver<Word>,
    /// Answers to its questions; `Err` stops the check.
    pub answers: Sender<Result<MetricValue, String>>,
}

/// The data of metric functions about their check. Each thread has one check.
struct Session {
    system: String,
    workload: Workload,
    words: Sender<Word>,
    answers: Receiver<Result<MetricValue, String>>,
    calls: usize,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// Begin the evaluation of a claim's check.
///
/// # Panics
/// The system cannot create a thread.
pub fn start(claim: &Claim) -> Running {
    let (to_owner, words) = channel();
    let (answers, from_owner) = channel();
    let (check, tolerance) = (claim.check.clone(), claim.tolerance);
    let (system, workload) = (claim.system.clone(), claim.workload.clone());
    let work = move || {
        let session = Session { system, workload, words: to_owner.clone(), answers: from_owner, calls: 0 };
        SESSION.with(|place| place.replace(Some(session)));
        // If the owner no longer listens, no answer is needed.
        let _ = to_owner.send(Word::Ended(evaluate(&check, tolerance)));
    };
    let spawned = thread::Builder::new().name("check".into()).stack_size(STACK_BYTES).spawn(work);
    spawned.unwrap_or_else(|error| panic!("no thread for a check: {error}"));
    Running { words, answers }
}

fn evaluate(check: &str, tolerance: f64) -> Result<bool, String> {
    let prepared = prepare(check).map_err(|error| error.to_string())?;
    let outcome = Module::with_temp_heap(|module| {
        let heap = module.heap();
        module.set("T", heap.alloc(tolerance));
        for name in &prepared.subjects {
            module.set(name, heap.alloc(name.as_str()));
        }
        let mut eval = Evaluator::new(&module);
        eval.set_max_tick_count(STEPS_MAX).unwrap_or_else(|error| panic!("bug: limit of steps: {error}"));
        eval.set_max_heap_size(HEAP_BYTES_MAX).unwrap_or_else(|error| panic!("bug: limit of memory: {error}"));
        let value = eval.eval_module(prepared.module, globals())?;
        Ok::<_, starlark::Error>(value.unpack_bool().ok_or_else(|| value.get_type()))
    });
    match outcome {
        Ok(Ok(came)) => Ok(came),
        Ok(Err(sort)) => Err(format!("the check comes to a value of type {sort}, not to true or false")),
        Err(error) => Err(first_line(&error.without_diagnostic().to_string())),
    }
}

/// The system and the workload of the check on this thread.
///
/// # Panics
/// A metric was called outside of a check.
pub fn of_this_claim() -> (String, Workload) {
    with_session(|session| (session.system.clone(), session.workload.clone()))
}

/// Ask for a value.
///
/// # Errors
/// The reason for which the check must stop, in words.
pub fn ask(call: MetricCall) -> Result<MetricValue, String> {
    with_session(|session| {
        session.calls += 1;
        if session.calls > CALLS_MAX {
            return Err(format!("more than {CALLS_MAX} metrics are asked for"));
        }
        let gone = |_| "this check was given up".to_owned();
        session.words.send(Word::Asked(call)).map_err(|_| gone(()))?;
        session.answers.recv().map_err(|_| gone(()))?
    })
}

fn with_session<T>(work: impl FnOnce(&mut Session) -> T) -> T {
    SESSION.with(|place| {
        let mut place = place.borrow_mut();
        work(place.as_mut().unwrap_or_else(|| panic!("bug: a metric outside of a check")))
    })
}

/// All names except the claim's own.
fn globals() -> &'static Globals {
    static GLOBALS: OnceLock<Globals> = OnceLock::new();
    GLOBALS.get_or_init(|| {
        let none: &[LibraryExtension] = &[];
        GlobalsBuilder::extended_by(none)
            .with(names::constants)
            .with(helpers::helpers)
            .with(functions::metrics)
            .with(guard::guards)
            .build()
    })
}
