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

pub mod alarm_file;
pub mod alarm_states;
pub mod conditions;
pub mod running_alarms;
pub mod sinks;
pub mod test_alarm;

pub use alarm_file::AlarmStore;
pub use alarm_states::AlarmSubject;
pub use openraid_status::alarm::{AlarmModel, Condition};
pub use running_alarms::{AlarmServer, Keeper};
