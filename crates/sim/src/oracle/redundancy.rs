//! Checks of redundancy on the members' bytes: parity matches, copies are equal, data is at its places.
//!
//! The engine gives only the list of its members. The superblocks on the drives describe the set. The layout comes from
//! the geometry, which separate tests compare with the real md driver. The plain reference kernels compute parity.

use openraid_core::admin::MemberState;
use openraid_core::geometry::{Geometry, Level, Mirror, Parity, SetSpec};
use openraid_format::{superblock_lba, MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_parity::Kernels;
use openraid_units::{ArrayId, DriveId, DriveLba, MemberLba, Sectors, SetLba, Slot, StripeIndex, SECTOR_BYTES};

use crate::world::World;

/// Limit of the complaints that are kept; one is enough for a failure.
const COMPLAINTS_MAX: usize = 8;

/// A place where redundancy does not match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The slot whose bytes do not match the others.
    pub slot: Slot,
    /// The first such sector of its data area.
    pub row: MemberLba,
    /// The mismatch in words.
    pub text: String,
}

/// The members of an array with their present bytes.
pub struct Members<'a> {
    world: &'a World,
    geometry: Geometry,
    /// Drive and start of the data area, for slots whose member is in sync.
    places: Vec<Option<(DriveId, DriveLba)>>,
}

/// The present superblock of a drive.
#[must_use]
pub fn superblock_on(world: &World, drive: DriveId) -> Option<Superblock> {
    let drive = world.drive(drive);
    let capacity = drive.spec().capacity;
    MinorVersion::ALL.into_iter().find_map(|minor| {
        let lba = superblock_lba(minor, capacity)?;
        let len = SUPERBLOCK_BYTES_MAX as u64 / 512;
        let len = len.min(capacity.get() - lba.get());
        let mut bytes = vec![0; byte_count(Sectors(len))];
        drive.peek(lba, &mut bytes);
        Superblock::decode(&bytes, minor, capacity).ok()
    })
}

impl<'a> Members<'a> {
    /// The members of a running array that is not nested.
    ///
    /// # Panics
    /// The array does not run, or its drives contradict it.
    #[must_use]
    pub fn of(world: &'a World, array: ArrayId) -> Self {
        let status = world.status(array).expect("the array runs");
        assert!(status.spans.is_empty(), "a nested array has no members of its own");
        let members: Vec<_> = status.members.iter().filter(|member| !member.replacement).collect();
        let slots = members.iter().filter_map(|member| member.slot).map(|slot| slot.0 + 1).max().unwrap_or(0);
        let mut places = vec![None; usize::from(slots)];
        let mut sizes = vec![Sectors(0); usize::from(slots)];
        let mut common = None;
        for member in members {
            let (Some(slot), Some(drive), MemberState::InSync) = (member.slot, member.drive, member.state) else {
                continue;
            };
            match superblock_on(world, drive) {
                Some(superblock) => {
                    places[slot.index()] = Some((drive, superblock.data_offset));
                    sizes[slot.index()] = superblock.data_size;
                    common = Some(superblock);
                }
                None => places[slot.index()] = Some((drive, DriveLba(0))),
            }
        }
        let geometry = match &common {
            Some(superblock) => Geometry::new(&SetSpec {
                level: Level::from_md(superblock.level.number()).expect("a level of md"),
                members: superblock.raid_disks,
                chunk: superblock.chunk,
                layout: superblock.layout,
                member_size: superblock.size,
                member_sizes: &sizes,
            }),
            None => Geometry::new(&SetSpec {
                level: Level::Passthrough,
                members: 1,
                chunk: Sectors(0),
                layout: 0,
                member_size: status.capacity,
                member_sizes: &[],
            }),
        };
        let geometry = geometry.unwrap_or_else(|error| panic!("the superblocks describe no array: {error}"));
        assert_eq!(geometry.capacity(), status.capacity, "the array is as large as its superblocks say");
        Self { world, geometry, places }
    }

    /// The members of a known set. Only the bytes of its drives are used, because their superblocks may be damaged.
    #[must_use]
    pub fn known(world: &'a World, geometry: Geometry, members: &[(Slot, DriveId, DriveLba)]) -> Self {
        let mut places = vec![None; usize::from(geometry.members())];
        for (slot, drive, start) in members {
            places[slot.index()] = Some((*drive, *start));
        }
        Self { world, geometry, places }
    }

    /// The layout of the array.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The drive and the sector of a place of a member; `None` if the member is not in sync.
    #[must_use]
    pub fn place(&self, slot: Slot, at: MemberLba) -> Option<(DriveId, DriveLba)> {
        self.places[slot.index()].map(|(drive, start)| (drive, start + at.offset()))
    }

    fn read(&self, slot: Slot, at: MemberLba, len: Sectors) -> Option<Vec<u8>> {
        let (drive, lba) = self.place(slot, at)?;
        let mut bytes = vec![0; byte_count(len)];
        self.world.drive(drive).peek(lba, &mut bytes);
        Some(bytes)
    }

    /// Like [`Members::misfits`], in words.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        self.misfits().into_iter().map(|misfit| misfit.text).collect()
    }

    /// All mismatches; empty for an intact array. Rows with a member that is not in sync are checked as far as
    /// possible.
    #[must_use]
    pub fn misfits(&self) -> Vec<Misfit> {
        match &self.geometry {
            Geometry::Parity(parity) => self.parity_misfits(parity),
            Geometry::Mirror(mirror) => self.mirror_misfits(mirror),
            Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => Vec::new(),
        }
    }

    /// The sectors that do not match, each with the slot that has it: of parity, the parity. It is fast, so that it can
    /// be asked for often, and shares its kernels with the engine.
    #[must_use]
    pub fn differing_rows(&self) -> Vec<(Slot, MemberLba)> {
        match &self.geometry {
            Geometry::Parity(parity) => self.differing_parity(parity),
            Geometry::Mirror(mirror) => self.differing_copies(mirror),
            Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) => Vec::new(),
        }
    }

    fn differing_parity(&self, parity: &Parity) -> Vec<(Slot, MemberLba)> {
        let (kernels, mut rows) = (Kernels::detect(), Vec::new());
        let len = byte_count(parity.chunk());
        let (mut p, mut q) = (vec![0; len], vec![0; len]);
        for stripe in (0..parity.stripes()).map(StripeIndex) {
            let at = parity.member_lba(stripe, Sectors(0));
            let mut row = vec![vec![0; len]; usize::from(parity.members())];
            let whole = (0..parity.data_columns()).all(|column| {
                let bytes = self.read(parity.slot_of(stripe, column), at, parity.chunk());
                bytes.map(|bytes| row[usize::from(parity.coefficient(stripe, column))] = bytes).is_some()
            });
            if !whole {
                continue;
            }
            let data: Vec<&[u8]> = row.iter().map(Vec::as_slice).collect();
            kernels.pq(&mut p, &mut q, &data);
            let found_q = parity.q_slot(stripe).map(|slot| (slot, &q));
            for (slot, expected) in [Some((parity.p_slot(stripe), &p)), found_q].into_iter().flatten() {
                if let Some(found) = self.read(slot, at, parity.chunk()) {
                    rows.extend(differing_sectors(&found, expected).map(|sector| (slot, at + Sectors(sector))));
                }
            }
        }
        rows
    }

    fn differing_copies(&self, mirror: &Mirror) -> Vec<(Slot, MemberLba)> {
        const STEP: Sectors = Sectors::kib(64);
        let (mut rows, mut at) = (Vec::new(), SetLba(0));
        while at.offset() < mirror.capacity() {
            let mut len = Sectors(STEP.get().min((mirror.capacity() - at.offset()).get()));
            let copies: Vec<_> = mirror.copies(at).collect();
            copies.iter().for_each(|copy| len = Sectors(len.get().min(copy.len.get())));
            let mut first: Option<Vec<u8>> = None;
            for copy in copies {
                let Some(bytes) = self.read(copy.slot, copy.lba, len) else { continue };
                match &first {
                    None => first = Some(bytes),
                    Some(expected) => {
                        let sectors = differing_sectors(&bytes, expected);
                        rows.extend(sectors.map(|sector| (copy.slot, copy.lba + Sectors(sector))));
                    }
                }
            }
            at += len;
        }
        rows
    }

    fn parity_misfits(&self, parity: &Parity) -> Vec<Misfit> {
        let mut complaints = Vec::new();
        for stripe in (0..parity.stripes()).map(StripeIndex) {
            let at = parity.member_lba(stripe, Sectors(0));
            let read = |slot| self.read(slot, at, parity.chunk());
            // Some layouts leave out coefficients: their blocks count as zeroes.
            let len = byte_count(parity.chunk());
            let mut row = vec![vec![0; len]; usize::from(parity.members())];
            let mut whole = true;
            for column in 0..parity.data_columns() {
                match read(parity.slot_of(stripe, column)) {
                    Some(bytes) => row[usize::from(parity.coefficient(stripe, column))] = bytes,
                    None => whole = false,
                }
            }
            if !whole {
                continue;
            }
            let data: Vec<&[u8]> = row.iter().map(Vec::as_slice).collect();
            let (mut p, mut q) = (vec![0; len], vec![0; len]);
            let q_slot = parity.q_slot(stripe);
            match q_slot {
                Some(_) => Kernels::reference().pq(&mut p, &mut q, &data),
                None => Kernels::reference().xor(&mut p, &data),
            }
            let expected_q = q_slot.map(|slot| ("Q", slot, q));
            for (name, slot, expected) in [Some(("P", parity.p_slot(stripe), p)), expected_q].into_iter().flatten() {
                if let Some(wrong) = read(slot).and_then(|found| first_difference(&found, &expected)) {
                    let text = format!("{name} of stripe {stripe} (slot {slot}) is wrong from byte {wrong} on");
                    complaints.push(Misfit { slot, row: row_of(at, wrong), text });
                }
            }
            if complaints.len() >= COMPLAINTS_MAX {
                break;
            }
        }
        complaints
    }

    fn mirror_misfits(&self, mirror: &Mirror) -> Vec<Misfit> {
        const STEP: Sectors = Sectors::kib(64);
        let mut complaints = Vec::new();
        let mut at = SetLba(0);
        while at.offset() < mirror.capacity() && complaints.len() < COMPLAINTS_MAX {
            let mut len = Sectors(STEP.get().min((mirror.capacity() - at.offset()).get()));
            let mut first: Option<(Slot, Vec<u8>)> = None;
            for copy in mirror.copies(at) {
                len = Sectors(len.get().min(copy.len.get()));
                let Some(bytes) = self.read(copy.slot, copy.lba, len) else {
                    continue;
                };
                match &first {
                    None => first = Some((copy.slot, bytes)),
                    Some((other, expected)) => {
                        if let Some(wrong) = first_difference(&bytes, expected) {
                            let (slot, sector) = (copy.slot, at.0 + wrong as u64 / SECTOR_BYTES);
                            let text = format!("slots {other} and {slot} differ from sector {sector} of the set on");
                            complaints.push(Misfit { slot, row: row_of(copy.lba, wrong), text });
                        }
                    }
                }
            }
            at += len;
        }
        complaints
    }

    /// The array's bytes, read from the members by the layout alone; of copies, the first. All members must be in sync.
    ///
    /// # Panics
    /// A member is missing.
    #[must_use]
    pub fn data(&self, offset: Sectors, len: Sectors) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(byte_count(len));
        let (mut at, end) = (SetLba(offset.get()), offset + len);
        while at.offset() < end {
            let (slot, lba, run) = self.map(at);
            let run = Sectors(run.get().min((end - at.offset()).get()));
            bytes.extend(self.read(slot, lba, run).expect("all members are in sync"));
            at += run;
        }
        bytes
    }

    fn map(&self, at: SetLba) -> (Slot, MemberLba, Sectors) {
        let fragment = match &self.geometry {
            Geometry::Passthrough(map) => map.map(at),
            Geometry::Linear(map) => map.map(at),
            Geometry::Striped(map) => map.map(at),
            Geometry::Mirror(map) => map.copies(at).next().expect("there is a first copy"),
            Geometry::Parity(parity) => {
                let (stripe, column, within) = parity.locate(at);
                let run = parity.chunk() - within;
                return (parity.slot_of(stripe, column), parity.member_lba(stripe, within), run);
            }
        };
        (fragment.slot, fragment.lba, fragment.len)
    }
}

/// The numbers of the sectors in which two ranges differ.
fn differing_sectors<'a>(one: &'a [u8], other: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
    let sectors = (0..).zip(one.chunks(512).zip(other.chunks(512)));
    sectors.filter(|(_, (one, other))| one != other).map(|(sector, _)| sector)
}

/// The sector of a byte, counted from a sector.
fn row_of(at: MemberLba, byte: usize) -> MemberLba {
    MemberLba(at.0 + byte as u64 / SECTOR_BYTES)
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    a.iter().zip(b).position(|(a, b)| a != b)
}

#[allow(clippy::cast_possible_truncation)] // in memory
fn byte_count(len: Sectors) -> usize {
    len.bytes().get() as usize
}
