//! The stripe map: which members hold a byte of an array.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The place of one byte.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlaceModel {
    /// The byte, counted from the start of the array.
    pub offset_bytes: u64,
    /// The span of a nested array.
    pub span: Option<usize>,
    /// The number of the stripe, if the array has stripes.
    pub stripe: Option<u64>,
    /// The members of that stripe, in the order of their slots.
    pub members: Vec<LocationModel>,
}

/// A member's part in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LocationModel {
    /// Its slot.
    pub slot: u16,
    /// Its name; none if it is missing.
    pub member: Option<String>,
    /// `data`, `copy`, `p`, `q`, or `other` data of the same stripe.
    pub role: String,
    /// The byte in the member's data area; of parity and of other data, the one of the same row.
    pub member_offset_bytes: u64,
}
