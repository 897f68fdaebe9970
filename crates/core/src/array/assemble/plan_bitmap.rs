//! The bitmap with which a set starts, from what its members have.

use alloc::vec::Vec;
use openraid_format::{BitmapHeader, FeatureMap, Superblock, BITMAP_HEADER_BYTES};
use openraid_units::Sectors;

use super::{Candidate, Membership};

/// The bitmap of a planned set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedBitmap {
    /// Its header.
    pub header: BitmapHeader,
    /// The bits as on disk, without the header.
    pub bits: Vec<u8>,
    /// Can the bits be trusted? If not, all are set.
    pub valid: bool,
    /// Do all members have these bits? If not, they are written to all, because a write relies on a bit that is set.
    pub alike: bool,
}

impl PlannedBitmap {
    /// The same with every bit set. A bitmap that cannot be used is set as a whole anyway.
    pub(super) fn with_all_set(mut self) -> Self {
        if self.valid {
            let bits = self.header.geometry().bits;
            self.bits.fill(u8::MAX);
            if let Some(last) = self.bits.last_mut().filter(|_| !bits.is_multiple_of(8)) {
                // Bits beyond the last region have no meaning, and are not set.
                *last = (1 << (bits % 8)) - 1;
            }
            self.alike = false;
        }
        self
    }
}

/// The bitmap of the first full member whose bitmap is good. If none is, it is made again with all bits set: the superblocks
/// name one, and Linux md refuses an array whose bitmap it cannot read.
pub(super) fn plan_bitmap(
    candidates: &[Candidate],
    verdicts: &[Membership],
    common: &Superblock,
) -> Option<PlannedBitmap> {
    let covers = openraid_format::sync_size(common)?;
    if !common.features.contains(FeatureMap::BITMAP) {
        return None;
    }
    let mut unusable = None;
    for (candidate, verdict) in candidates.iter().zip(verdicts) {
        let (Membership::Member(_), Some(bytes)) = (verdict, &candidate.bitmap) else { continue };
        let Ok(mut header) = BitmapHeader::decode(bytes) else { continue };
        // A bitmap is made larger before a change of shape, which may be taken back.
        let is_larger = header.sync_size > covers;
        header.sync_size = header.sync_size.min(covers);
        let Some((_, room)) = candidate.superblock.bitmap_room(candidate.capacity) else { continue };
        let Ok(need) = usize::try_from(header.geometry().bytes().get()) else { continue };
        let fits = bytes.len() >= need;
        if fits && header.check(common, covers, room).is_ok() {
            let bits = bytes[BITMAP_HEADER_BYTES..need].to_vec();
            let alike = !is_larger && have_bits(candidates, verdicts, &bits);
            return Some(PlannedBitmap { header, bits, valid: true, alike });
        }
        if header.sync_size == covers && header.geometry().sectors() <= room {
            unusable.get_or_insert(PlannedBitmap { header, bits: Vec::new(), valid: false, alike: false });
        }
    }
    unusable.or_else(|| bitmap_anew(candidates, verdicts, common, covers)).map(|mut bitmap| {
        bitmap.header.events = common.events;
        bitmap
    })
}

/// Do all members have these bits? A power cut may have come between the writes of a page to two members.
fn have_bits(candidates: &[Candidate], verdicts: &[Membership], bits: &[u8]) -> bool {
    let has = |candidate: &Candidate| {
        let bytes = candidate.bitmap.as_deref().and_then(|bytes| bytes.get(BITMAP_HEADER_BYTES..));
        bytes.is_some_and(|bytes| bytes.starts_with(bits))
    };
    let marks = |verdict: &Membership| !verdict.is_left_out() && *verdict != Membership::Spare;
    candidates.iter().zip(verdicts).all(|(candidate, verdict)| !marks(verdict) || has(candidate))
}

/// A bitmap in place of one that no member has any more. A bitmap of another kind is not replaced.
fn bitmap_anew(
    candidates: &[Candidate],
    verdicts: &[Membership],
    common: &Superblock,
    covers: Sectors,
) -> Option<PlannedBitmap> {
    let full = || candidates.iter().zip(verdicts).filter(|(_, verdict)| matches!(verdict, Membership::Member(_)));
    if full().any(|(candidate, _)| candidate.bitmap.is_some()) {
        return None;
    }
    let room = full().map(|(candidate, _)| candidate.superblock.bitmap_room(candidate.capacity).map(|(_, room)| room));
    let room = room.min().flatten()?;
    let chunk = openraid_format::bitmap_chunk_for(covers, room).ok()?;
    let header = BitmapHeader::new(common.set_uuid, common.events, covers, chunk);
    Some(PlannedBitmap { header, bits: Vec::new(), valid: false, alike: false })
}

#[cfg(test)]
mod tests {
    use openraid_format::Uuid;

    use super::*;

    #[test]
    fn all_regions_are_set_and_nothing_beyond_them() {
        for (regions, last) in [(16, 0xff), (13, 0x1f), (9, 1)] {
            let header = BitmapHeader::new(Uuid([1; 16]), 5, Sectors(regions * 8), 4096);
            let bitmap = PlannedBitmap { header, bits: alloc::vec![0x10, 0], valid: true, alike: true };
            let set = bitmap.with_all_set();
            assert_eq!((set.bits.as_slice(), set.valid, set.alike), (&[0xff, last][..], true, false), "{regions}");
        }
    }
}
