//! Arrays: the exported volumes, the sets below them, their members and their metadata.

pub(crate) mod active_mark;
pub mod adaptive;
pub(crate) mod append_drive;
pub mod assemble;
pub(crate) mod awaited_changes;
pub(crate) mod bad_blocks;
pub(crate) mod consistency;
mod defects;
pub(crate) mod dirty_count;
#[cfg(test)]
pub(crate) mod fixture;
mod lack_of_room;
pub(crate) mod member;
mod member_failure;
mod member_places;
pub(crate) mod member_status;
pub mod membership;
pub(crate) mod metadata;
mod metadata_io;
pub mod new_array;
pub(crate) mod numbered_table;
pub(crate) mod op_epochs;
mod record_bad_blocks;
pub(crate) mod recorded_before_write;
pub mod reshape_plan;
pub(crate) mod reshaping_set;
mod returning_member;
mod revival;
pub(crate) mod sector_rewrite;
pub(crate) mod set;
pub(crate) mod set_start;
mod set_tuning;
pub(crate) mod sets;
pub(crate) mod suitable_drive;
pub mod used_size;
pub(crate) mod volume;
pub(crate) mod write_intent_bitmap;

pub use bad_blocks::BadRange;
