//! The holes of an array, which its members know.
//!
//! A hole is told only if every copy that may be read has zeroes there. What members do not know counts as data.

use openraid_units::{ArrayId, Sectors};

use crate::engine_access::Control;
use crate::limits::{STATUS_PARTS_MAX, STATUS_SEARCH_MAX};
use crate::member::{KnownContent, MemberQuestion};

/// A part of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentExtent {
    /// Length in bytes.
    pub len: u64,
    /// It reads as zeroes, and takes no room on members.
    pub is_hole: bool,
}

/// The extents of a range of bytes from `offset` on, in order. They end before it does if that would take longer.
pub fn extents_of(
    array: ArrayId,
    (offset, len): (u64, u64),
    control: &Control,
    ask: MemberQuestion<'_>,
) -> Vec<ContentExtent> {
    let mut extents = Vec::new();
    let (mut at, end, mut search) = (offset, offset + len, STATUS_SEARCH_MAX);
    while at < end && extents.len() < STATUS_PARTS_MAX && !search.is_zero() {
        let first = at / 512;
        let left = Sectors(end.div_ceil(512) - first);
        let (is_hole, part) = first_part(array, (Sectors(first), left), &mut search, (control, ask));
        let until = ((first + part.get()) * 512).min(end);
        extents.push(ContentExtent { len: until - at, is_hole });
        at = until;
    }
    extents
}

/// Is the first part of these sectors a hole, and how long is it? `search` is the number of sectors that may still be searched.
fn first_part(
    array: ArrayId,
    (at, left): (Sectors, Sectors),
    search: &mut Sectors,
    (control, ask): (&Control, MemberQuestion<'_>),
) -> (bool, Sectors) {
    let places = control.content_places(array, at, left);
    let mut len = places.len.min(*search);
    let mut copies = 0;
    for (drive, lba) in places.copies() {
        copies += 1;
        match ask(drive, lba, len) {
            // The others of its array are of its kind.
            KnownContent::Unknown => return (false, left),
            KnownContent::Data(data) => {
                *search -= data.min(*search);
                return (false, data);
            }
            KnownContent::Zeroes(zeroes) => {
                *search -= zeroes.min(*search);
                len = len.min(zeroes);
            }
        }
    }
    if copies == 0 {
        return (false, places.len);
    }
    (true, len)
}
