//! The report of a run with its verdict. A panic of the engine or of the simulation is also a verdict.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

use super::planted::Bug;
use super::run::{run, Account};
use super::scenario::Scenario;
use super::verdict::{Report, Verdict};

/// Carry out a scenario and report.
#[must_use]
pub fn report(scenario: &Scenario, bug: Option<Bug>) -> Report {
    report_into(scenario, bug, &Rc::default())
}

/// Like [`report`], with an account that a panic hook can read. If panics end the process, only the hook can read it.
#[must_use]
pub fn report_into(scenario: &Scenario, bug: Option<Bug>, account: &Rc<RefCell<Account>>) -> Report {
    let end = catch_unwind(AssertUnwindSafe(|| run(scenario, bug, account)));
    let verdict = end.unwrap_or_else(|panic| panicked(text_of(&*panic), account));
    closed(scenario.seed, verdict, account)
}

/// The report of a run with this verdict.
#[must_use]
pub fn closed(seed: u64, verdict: Verdict, account: &Rc<RefCell<Account>>) -> Report {
    let Account { counts, story, details } = account.borrow().clone();
    Report { seed, verdict, counts, story, details }
}

/// The verdict of a panic. The first line of the text is the verdict, the others are details.
pub fn panicked(text: &str, account: &Rc<RefCell<Account>>) -> Verdict {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    // A panic during a line of the story leaves the account borrowed.
    if let Ok(mut account) = account.try_borrow_mut() {
        rest.clone_into(&mut account.details);
    }
    Verdict::Lost(format!("panic: {first}"))
}

/// The text of a panic.
#[must_use]
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}
