//! A member that left an array comes back to it: its slot, and whether the regions that the bitmap marks are all that it needs.

use openraid_format::{BitmapHeader, DeviceRole, FeatureMap, Superblock};
use openraid_units::{SetId, Slot};

use super::assemble::is_split_off;
use super::member::{Member, Seat};
use super::sets::Sets;

impl Member {
    /// It came back, and needs only what the bitmap marks if it gets this slot.
    pub(crate) fn returning_to(self, slot: Option<Slot>) -> Self {
        Self { seat: slot.map_or(Seat::None, Seat::Returns), ..self }
    }
}

impl Sets {
    /// The slot to which a member can return with only the regions that the bitmap marks: it must have been in this
    /// array before the bits of the writes that it missed were cleared, and its slot must still be vacant.
    pub(crate) fn slot_by_bitmap(&self, id: SetId, superblock: &Superblock) -> Option<Slot> {
        let set = self.get(id);
        let header = BitmapHeader::decode(set.bitmap.as_ref()?.header()).ok()?;
        let metadata = set.metadata.as_ref()?;
        let DeviceRole::Active(slot) = superblock.role() else { return None };
        let common = metadata.common();
        let shape = |of: &Superblock| (of.level, of.layout, of.chunk, of.raid_disks, of.size);
        let returns = superblock.set_uuid == common.set_uuid
            // A change of shape moves data and sets no bits.
            && shape(superblock) == shape(common)
            && superblock.change().is_none()
            && !set.shape.is_changing()
            && slot.0 < set.slots()
            && !set.is_held(slot)
            && superblock.recovery_offset().is_none()
            // The bits say what the array wrote without it, not what it wrote without the array.
            && !is_split_off(superblock, metadata.common(), set.in_sync())
            // What its bad-block log names is bad there whatever the bits say: all of it is restored.
            && !superblock.features.contains(FeatureMap::BAD_BLOCKS)
            && superblock.events >= header.events_cleared;
        returns.then_some(slot)
    }
}
