//! The fault simulation: arrays, loads and faults drawn from one seed, and a judge who knows what was promised.
//!
//! ```text
//!  seed --> Scenario --> run --> Verdict { Survived, NotPromised(why), Lost(story) }
//!                         ^
//!                  Planted bug (to see the swarm find it)
//! ```
//!
//! Drives do everything that `docs/media-assumptions.md` allows and nothing that it excludes. In *bounded* runs nothing
//! goes wrong that the level does not promise to survive: no request may fail and nothing may be lost. In *unbounded*
//! runs anything does: what is lost must be told. Bytes given as right must be right in both, except where no engine on
//! that level can tell, and then the judge, who knows what the drives did, says so.

pub mod aim;
pub mod phase;
pub mod planted;
pub mod report;
pub mod rows;
pub mod run;
pub mod scenario;
pub mod set;
pub mod shrink;
pub mod verdict;
pub mod words;

pub use phase::Phase;
pub use planted::Bug;
pub use report::report;
pub use run::{run, Account};
pub use scenario::{Mode, Scenario};
pub use verdict::{Excuse, Fault, Report, Tally, Verdict};
