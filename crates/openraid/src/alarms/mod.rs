//! Alarms: states that need an administrator's attention, with their begin.
//!
//! ```text
//!  ArrayModel --conditions--> Vec<Condition>   faults that exist now: a pure function of the model
//!                                  |
//!                              Book::observe   since when, until when, acknowledged?
//!                                  |
//!                            AlarmStore         next to the registry: two halves of a file of a fixed size
//! ```
//!
//! An event reports a change; an alarm reports a fault, also one that existed before the server started.

pub mod book;
pub mod conditions;
pub mod keeper;
pub mod sinks;
pub mod store;
pub mod test;

pub use book::AlarmSubject;
pub use keeper::{AlarmServer, Keeper};
pub use openraid_status::alarm::{AlarmModel, Condition};
pub use store::AlarmStore;
