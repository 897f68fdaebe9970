//! The arrays of tests: every level and layout, on few small members.

use openraid_core::geometry::{Geometry, Level, SetSpec};
use openraid_core::slot_set::SlotSet;
use openraid_units::{BlockSize, Sectors, Slot};

use crate::random::Random;

/// The data area of a member of ordinary size.
pub const MEMBER_DATA: Sectors = Sectors::kib(1536);

/// The smallest description of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayShape {
    pub level: Level,
    /// md's layout number.
    pub layout: u32,
    /// Slots.
    pub members: u16,
    pub chunk: Sectors,
    /// Logical blocks of the members: all 512, all 4096, or one 4096 among 512.
    pub blocks: Blocks,
    /// Whether the members have unequal sizes.
    pub unequal: bool,
    /// The data area of the smallest member.
    pub data: Sectors,
}

/// Logical blocks of the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blocks {
    /// All 512 bytes.
    Small,
    /// All 4096 bytes.
    Large,
    /// The last one 4096 bytes, the others 512.
    Mixed,
}

impl ArrayShape {
    /// An array on 512-byte blocks.
    #[must_use]
    pub const fn new(level: Level, layout: u32, members: u16, chunk: Sectors) -> Self {
        Self { level, layout, members, chunk, blocks: Blocks::Small, unequal: false, data: MEMBER_DATA }
    }
    /// RAID 5, left-symmetric.
    #[must_use]
    pub const fn raid5(members: u16, chunk: Sectors) -> Self {
        Self::new(Level::Raid5, 2, members, chunk)
    }
    /// RAID 6, left-symmetric.
    #[must_use]
    pub const fn raid6(members: u16, chunk: Sectors) -> Self {
        Self::new(Level::Raid6, 2, members, chunk)
    }
    /// RAID 1.
    #[must_use]
    pub const fn raid1(members: u16) -> Self {
        Self::new(Level::Raid1, 0, members, Sectors(0))
    }
    /// RAID 10 with this layout: near, far or offset copies.
    #[must_use]
    pub const fn raid10(layout: u32, members: u16, chunk: Sectors) -> Self {
        Self::new(Level::Raid10, layout, members, chunk)
    }

    /// The logical block of a member.
    #[must_use]
    pub fn block(&self, slot: u16) -> BlockSize {
        match self.blocks {
            Blocks::Small => BlockSize::B512,
            Blocks::Large => BlockSize::B4096,
            Blocks::Mixed if slot + 1 == self.members => BlockSize::B4096,
            Blocks::Mixed => BlockSize::B512,
        }
    }

    /// The data area of a member.
    #[must_use]
    pub fn member_data(&self, slot: u16) -> Sectors {
        if self.unequal {
            // No step is a multiple of a chunk: 292 KiB for members of ordinary size.
            let step = (self.data * 73 / 384).round_down(Sectors::kib(4)).get().max(8);
            self.data + Sectors(step) * u64::from(slot % 3)
        } else {
            self.data
        }
    }

    /// Whether the shape survives the loss of a member.
    #[must_use]
    pub fn is_redundant(&self) -> bool {
        !matches!(self.level, Level::Passthrough | Level::Linear | Level::Raid0) && self.members > 1
    }

    /// Whether the shape is a raw drive without metadata.
    #[must_use]
    pub fn is_passthrough(&self) -> bool {
        self.level == Level::Passthrough
    }

    /// The layout for members of [`ArrayShape::member_data`], without rounding by md.
    ///
    /// # Panics
    /// An impossible shape.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let sizes: Vec<Sectors> = (0..self.members).map(|slot| self.member_data(slot)).collect();
        let least = sizes.iter().min().copied().unwrap_or(MEMBER_DATA);
        let spec = SetSpec {
            level: self.level,
            members: self.members,
            chunk: self.chunk,
            layout: self.layout,
            member_size: if self.chunk.is_zero() { least } else { least.round_down(self.chunk) },
            member_sizes: &sizes,
        };
        Geometry::new(&spec).unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    /// All non-empty sets of slots whose loss leaves all data readable.
    #[must_use]
    pub fn survivable_losses(&self) -> Vec<SlotSet> {
        let geometry = self.geometry();
        (1u32..1 << self.members)
            .map(|mask| (0..self.members).filter(|slot| mask >> slot & 1 == 1).map(Slot).collect())
            .filter(|missing| geometry.survives(*missing))
            .collect()
    }

    /// All shapes of the tests. Chunks and blocks vary in a cycle, so each level is combined with each of them.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut shapes = vec![Self::new(Level::Passthrough, 0, 1, Sectors(0))];
        shapes.extend([1, 2, 4].map(|members| Self::new(Level::Linear, 0, members, Sectors(0))));
        for members in [1, 2, 3, 5] {
            shapes.push(Self::new(Level::Raid0, 2, members, Sectors::kib(4)));
        }
        shapes.extend([1, 2, 3, 4].map(Self::raid1));
        let raid10 = [
            (0x102, [2, 3, 4, 5]),
            (0x201, [2, 3, 4, 5]),
            (0x1_0201, [2, 3, 4, 5]),
            (0x103, [3, 4, 5, 6]),
            (0x301, [3, 4, 5, 6]),
            (0x1_0301, [3, 4, 5, 6]),
            (0x202, [4, 5, 6, 7]),
        ];
        for (layout, members) in raid10 {
            shapes.extend(members.map(|members| Self::raid10(layout, members, Sectors::kib(4))));
        }
        shapes.extend([2, 3, 5].map(|members| Self::new(Level::Raid4, 0, members, Sectors::kib(4))));
        for (layout, members) in [(0, [3, 6]), (1, [4, 7]), (2, [3, 8]), (3, [5, 3]), (4, [4, 6]), (5, [5, 2])] {
            shapes.extend(members.map(|members| Self::new(Level::Raid5, layout, members, Sectors::kib(4))));
        }
        for layout in (0..=5).chain(8..=10).chain(16..=20) {
            for members in [4 + (layout % 3) as u16, 7 + (layout % 2) as u16] {
                shapes.push(Self::new(Level::Raid6, layout, members, Sectors::kib(4)));
            }
        }
        for (place, shape) in shapes.iter_mut().enumerate() {
            if !shape.chunk.is_zero() {
                shape.chunk = [4, 16, 64, 8, 32].map(Sectors::kib)[place % 5];
            }
            shape.blocks = [Blocks::Small, Blocks::Large, Blocks::Mixed][place % 3];
        }
        shapes.extend(Self::odd());
        shapes
    }

    /// Special shapes: unequal members, a chunk that is not a power of two.
    fn odd() -> Vec<Self> {
        let raid0 = Self { unequal: true, ..Self::new(Level::Raid0, 1, 4, Sectors::kib(16)) };
        vec![
            raid0,
            Self { layout: 2, ..raid0 },
            Self { layout: 2, members: 3, chunk: Sectors::kib(12), unequal: false, ..raid0 },
            Self { unequal: true, ..Self::new(Level::Linear, 0, 3, Sectors(0)) },
            Self { unequal: true, blocks: Blocks::Mixed, ..Self::raid5(4, Sectors::kib(64)) },
        ]
    }

    /// A part of `shapes` that depends on the seed.
    #[must_use]
    pub fn some(shapes: Vec<Self>, seed: u64, count: usize) -> Vec<Self> {
        let mut shapes = shapes;
        Random::derived(seed, 7).shuffle(&mut shapes);
        shapes.truncate(count);
        shapes
    }
}

impl std::fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { level, layout, members, chunk, blocks, unequal, data } = self;
        write!(f, "{level} layout {layout:#x} on {members}, chunk {chunk}, blocks {blocks:?}")?;
        if *unequal {
            f.write_str(", unequal")?;
        }
        if *data != MEMBER_DATA {
            write!(f, ", {data} each")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_can_be_and_every_redundant_one_survives_something() {
        let shapes = ArrayShape::all();
        assert!(shapes.len() > 80, "{}", shapes.len());
        for shape in shapes {
            assert!(shape.geometry().capacity().get() > 0, "{shape}");
            assert_eq!(shape.is_redundant(), !shape.survivable_losses().is_empty(), "{shape}");
        }
    }
}
