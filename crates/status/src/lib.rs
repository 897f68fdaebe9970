//! The state that a server reports, and the commands that it accepts.
//!
//! ```text
//! server/array_model.rs --makes--> ArrayModel, JournalModel ... --shown by--> CLI, --json, HTTP API, console, metrics, Redfish
//! all of those           --send---> Command                      --carried out by--> server/orders.rs
//! ```
//!
//! The crate is plain data: it decides nothing, opens nothing, and asks no server. An interface that shows something
//! about an array takes it from here, so that no two of them can disagree.

#![forbid(unsafe_code)]

pub mod alarm;
pub mod care;
pub mod check_results;
mod command;
pub mod date;
mod event;
mod event_name;
mod exit;
mod level;
mod model;
mod offline;
mod role;
pub mod schedules;
mod server;
mod shape;
pub mod shell_quoting;
pub mod sinks;
pub mod uri;
mod words;

pub use command::Command;
pub use event::EventModel;
pub use event_name::EventName;
pub use exit::Exit;
pub use level::LevelWord;
pub use model::*;
pub use role::Role;
pub use server::ServerModel;
pub use shape::{NewSlotModel, OtherSizeModel, ReshapeModel, ReshapePlanModel, ReshapeStageWord, ShapeModel};
pub use words::{
    AccessWord, DirectionWord, DriveClass, JournalArrayWord, JournalWord, LimitPart, PathWord, PolicyWord,
    ScheduleWord, SessionWord, SinkWord, VerdictWord,
};
