//! Arrays: the exported volumes, the sets below them, their members and their metadata.

pub(crate) mod active_mark;
pub mod adaptive;
pub(crate) mod append;
pub mod assemble;
pub(crate) mod bad;
mod bad_io;
pub(crate) mod bitmap;
pub(crate) mod changes;
mod conditions;
pub(crate) mod consistency;
pub mod create;
mod defects;
pub(crate) mod dirty_count;
pub(crate) mod epoch;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod intent;
pub(crate) mod member;
pub(crate) mod membership;
pub(crate) mod metadata;
mod metadata_io;
pub(crate) mod repair;
pub(crate) mod reshape;
pub mod reshape_plan;
pub(crate) mod revival;
mod room;
mod roster;
pub(crate) mod set;
pub(crate) mod set_start;
pub(crate) mod sets;
pub(crate) mod status;
pub(crate) mod table;
mod tune;
pub mod used_size;
pub(crate) mod volume;

pub use bad::BadRange;
