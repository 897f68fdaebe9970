//! Changes of an array's shape, and the plans of such changes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::DirectionWord;

/// A shape of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ShapeModel {
    /// Name of the level, such as `raid5`.
    pub level: String,
    /// mdadm's name of the layout, if the level has layouts.
    pub layout: Option<String>,
    /// Number of members.
    pub members: u16,
    /// Size of a chunk on a member.
    pub chunk_bytes: u64,
    /// Size of the array for hosts.
    pub size_bytes: u64,
    /// All of it in words.
    pub text: String,
}

/// What a change of shape does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReshapeStageWord {
    /// Writes in the cache and in the journal go to the members first.
    Draining,
    /// The change is being recorded on the members.
    Beginning,
    /// Data moves.
    Moving,
    /// The new shape is being recorded on the members.
    Ending,
}

impl ReshapeStageWord {
    /// The text for users.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Draining => "cached writes go to the members first",
            Self::Beginning => "the change is being recorded on the members",
            Self::Moving => "data moves",
            Self::Ending => "the new shape is being recorded on the members",
        }
    }
}

/// A change of shape that is under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReshapeModel {
    /// The shape before the change.
    pub from: ShapeModel,
    /// The shape after the change.
    pub to: ShapeModel,
    /// `forwards` (from the start of the array) or `backwards` (from the end of the array).
    #[schema(value_type = String)]
    pub direction: DirectionWord,
    /// What the change does now: `draining`, `beginning`, `moving` or `ending`.
    pub stage: ReshapeStageWord,
    /// Bytes of the array that have moved.
    pub moved_bytes: u64,
    /// Bytes of the array that are recorded as moved: after the end of the server or of the power, the change goes on from there.
    pub recorded_bytes: u64,
    /// The recorded boundary, as a byte of the array: forwards, data below the boundary has the new shape; backwards, data from the
    /// boundary on.
    pub position_bytes: u64,
    /// Bytes of the array that move.
    pub total_bytes: u64,
    /// All of it in words.
    #[serde(default)]
    pub text: String,
}

/// Clients that connected before the size of an array changed: the protocol cannot tell them the new size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OtherSizeModel {
    /// The size that they were told.
    pub size_bytes: u64,
    /// Number of these clients.
    pub clients: u64,
}

/// A drive that becomes a member by a change of shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewSlotModel {
    /// Slot of the new member, from 0.
    pub slot: u16,
    /// Path or address of the drive.
    pub member: String,
    /// Is it a spare of the array already? Otherwise it is added first.
    pub is_spare: bool,
}

/// What a change of shape would do. Nothing is changed for a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReshapePlanModel {
    /// Name of the array.
    pub array: String,
    /// The shape now.
    pub from: ShapeModel,
    /// The shape after the change.
    pub to: ShapeModel,
    /// Steps of the change, in their order, a sentence each.
    pub steps: Vec<String>,
    /// The drives that become members.
    pub joins: Vec<NewSlotModel>,
    /// Bytes by which the start of the data moves down on each member, so that no data is written twice.
    pub shift_bytes: u64,
    /// The least room before the data of a member: bytes between metadata and data.
    pub room_bytes: u64,
    /// Bytes that are read from each member of the present shape.
    pub read_bytes: u64,
    /// Bytes that are written to each member of the new shape.
    pub written_bytes: u64,
    /// Expected bytes of the new shape a second, of each member; null if the rate is not limited and the drives are unknown.
    pub rate: Option<u64>,
    /// What the rate is based on.
    pub rate_basis: String,
    /// Expected seconds without load; null if the rate is unknown.
    pub seconds: Option<u64>,
    /// Number of members that can be lost meanwhile, whichever they are.
    pub survives: u32,
    /// What Linux md could do with the array in the middle of the change.
    pub md: String,
    /// What may go wrong or be slower meanwhile, a sentence each.
    pub risks: Vec<String>,
    /// The command line that begins the change.
    pub command: String,
    /// All of it in words, for people.
    pub text: String,
}
