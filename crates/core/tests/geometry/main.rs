//! Tests of the maps: each is compared with a second statement of the same thing, drawn or counted by hand.

mod hostile;
mod mirror;
mod parity;
mod split;
mod striped;

use openraid_core::geometry::{Geometry, GeometryError, Level, Mirror, Parity, SetSpec, Striped};
use openraid_units::Sectors;

/// A chunk that tests use where any would do.
pub(crate) const CHUNK: Sectors = Sectors(8);

/// A set of equal members.
pub(crate) fn equal(level: Level, members: u16, layout: u32, member_size: Sectors) -> Result<Geometry, GeometryError> {
    let member_sizes = vec![member_size; usize::from(members)];
    Geometry::new(&SetSpec { level, members, chunk: CHUNK, layout, member_size, member_sizes: &member_sizes })
}

pub(crate) fn parity(level: Level, members: u16, layout: u32, member_size: Sectors) -> Parity {
    match equal(level, members, layout, member_size) {
        Ok(Geometry::Parity(parity)) => parity,
        other => panic!("not a parity set: {other:?}"),
    }
}

pub(crate) fn mirror(level: Level, members: u16, layout: u32, member_size: Sectors) -> Mirror {
    match equal(level, members, layout, member_size) {
        Ok(Geometry::Mirror(mirror)) => mirror,
        other => panic!("{members} members, layout {layout:#x}: not a mirror: {other:?}"),
    }
}

pub(crate) fn unequal(chunk: u64, layout: u32, sizes: &[u64]) -> Result<Geometry, GeometryError> {
    let member_sizes: Vec<Sectors> = sizes.iter().copied().map(Sectors).collect();
    let members = u16::try_from(sizes.len()).unwrap();
    let spec = SetSpec {
        level: Level::Raid0,
        members,
        chunk: Sectors(chunk),
        layout,
        member_size: Sectors::ZERO,
        member_sizes: &member_sizes,
    };
    Geometry::new(&spec)
}

pub(crate) fn striped(chunk: u64, layout: u32, sizes: &[u64]) -> Striped {
    match unequal(chunk, layout, sizes) {
        Ok(Geometry::Striped(striped)) => striped,
        other => panic!("not a striped set: {other:?}"),
    }
}
