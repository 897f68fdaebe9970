//! The stripe map: which members hold a byte of an array.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The place of one byte.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaceModel {
    /// The byte, counted from the start of the array.
    pub offset_bytes: u64,
    /// Number of the span of a nested array, from 0.
    pub span: Option<usize>,
    /// Number of the stripe in its set; null if the array has no stripes.
    pub stripe: Option<u64>,
    /// The members of that stripe, in the order of their slots.
    pub members: Vec<LocationModel>,
}

/// A member's part in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LocationModel {
    /// Slot of the member.
    pub slot: u16,
    /// Path or address of the member; null if it is missing.
    pub member: Option<String>,
    /// Role of the member's chunk: `data`, `copy`, `p`, `q`, or `other` for other data of the same stripe.
    pub role: String,
    /// The byte in the data area of the member. For parity and for other data it is the byte of the same row.
    pub member_offset_bytes: u64,
}
