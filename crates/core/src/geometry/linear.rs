//! Members one after the other (md's linear).

use super::{check_capacity, Fragment, GeometryError, SetSpec};
use alloc::vec::Vec;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// The concatenation of members in the order of their slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linear {
    /// The ends of the members in the set, rising.
    ends: Vec<SetLba>,
}

impl Linear {
    /// Every member is cut to whole chunks, if there is a chunk: md rounds here too, although nothing is striped.
    pub(super) fn new(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        let unit = spec.chunk.max(Sectors(1));
        spec.check_member_sizes(unit)?;
        let mut end = SetLba::ZERO;
        let mut ends = Vec::with_capacity(spec.member_sizes.len());
        for size in spec.member_sizes {
            end += size.round_down(unit);
            ends.push(end);
        }
        check_capacity(end.offset())?;
        Ok(Self { ends })
    }
    /// Size of the set.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        self.ends.last().map_or(Sectors::ZERO, |end| end.offset())
    }
    /// Number of slots.
    #[must_use]
    pub fn members(&self) -> u16 {
        u16::try_from(self.ends.len()).expect("the constructor checked the number of members")
    }
    /// The piece from `at` to the end of its member.
    #[must_use]
    pub fn map(&self, at: SetLba) -> Fragment {
        let index = self.ends.partition_point(|end| *end <= at);
        assert!(index < self.ends.len(), "{at:?} is outside a linear set of {}", self.capacity());
        let slot = Slot(u16::try_from(index).expect("the constructor checked the number of members"));
        Fragment { slot, lba: MemberLba((at - self.start(index)).0), len: self.ends[index] - at }
    }
    /// The address in the set of `at` on the member in `slot`, and the length for which it continues; `None` for the
    /// unused tail.
    #[must_use]
    pub fn inverse(&self, slot: Slot, at: MemberLba) -> Option<(SetLba, Sectors)> {
        let start = self.start(slot.index());
        let run = (self.ends[slot.index()] - start).saturating_sub(at.offset());
        (!run.is_zero()).then(|| (start + at.offset(), run))
    }

    fn start(&self, index: usize) -> SetLba {
        match index {
            0 => SetLba::ZERO,
            _ => self.ends[index - 1],
        }
    }
}
