//! The fault simulation: arrays, loads and faults drawn from one seed, and a judge that knows all acknowledged writes.
//!
//! ```text
//!  seed --> Scenario --> run --> Verdict { Survived, NotPromised(why), Lost(story) }
//!                         ^
//!                  Planted bug (to see the swarm find it)
//! ```
//!
//! Drives do everything that `docs/media-assumptions.md` allows and nothing that it excludes. *Bounded* runs have only
//! faults that the level promises to survive: no request may fail and no data may be lost. *Unbounded* runs have any
//! fault: data loss must be reported. In both kinds of run, data returned as good must be right. The exception is wrong
//! data that no engine on that level could detect. The judge knows what the drives did, and reports that case.

pub mod aimed_runs;
pub mod changing_runs;
mod enum_words;
pub mod fault_names;
pub mod judged_set;
pub mod phase;
pub mod planted;
mod rare_actions;
pub mod report;
pub mod row_set;
pub mod run;
pub mod run_words;
pub mod saved_run;
pub mod scenario;
pub mod shrink;
pub mod swarm_runs;
pub mod verdict;

pub use fault_names::Fault;
pub use phase::Phase;
pub use planted::{Bug, BugRun};
pub use report::report;
pub use run::{run, Account};
pub use saved_run::{RunCondition, SavedRun};
pub use scenario::{Mode, Scenario};
pub use verdict::{Excuse, Report, RunTally, Verdict};
