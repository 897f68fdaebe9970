//! Arrays: created, assembled from the content of drives, given new members.

use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, NewMember};
use openraid_core::array::assemble::{self, AssembleError, AssembleOptions, Assembly, Candidate};
use openraid_core::array::new_array::{self, CreateError, CreateSpec, NewDrive};
use openraid_format::{BitmapHeader, MdLevel, MinorVersion, SetName, Superblock, Timestamp, Uuid};
use openraid_units::{ArrayId, DriveId, Sectors, Slot, Token};

use super::{World, WALL_CLOCK_AT_ZERO};
use crate::probe::{probe, CandidateError};
use crate::random::mix;
use crate::rig::RigOptions;
use crate::test_arrays::ArrayShape;

/// Sectors from the superblock to the bitmap of a member with its data far away: beyond all other metadata.
const FAR_BITMAP: i32 = 8192;

/// The reason for which an array does not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArrayStartError {
    /// The drives do not form an array.
    Assemble(AssembleError),
    /// The controller refuses the array.
    Refused(AdminError),
}

impl std::fmt::Display for ArrayStartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Assemble(error) => write!(f, "{error}"),
            Self::Refused(error) => write!(f, "{error}"),
        }
    }
}

/// An identity that is equal in every run.
fn identity(seed: u64, number: u64) -> Uuid {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mix(seed).to_le_bytes());
    bytes[8..].copy_from_slice(&mix(number).to_le_bytes());
    Uuid(bytes)
}

/// The plan of a new array of this shape. The drives are in the order of slots, followed by the spares, each with its
/// size.
///
/// # Errors
/// The reason for which the array is not possible.
///
/// # Panics
/// A shape without metadata.
pub fn plan_new(
    shape: &ArrayShape,
    drives: &[(DriveId, Sectors)],
    options: &RigOptions,
) -> Result<Assembly, CreateError> {
    let seed = options.world.seed;
    let new = |(drive, capacity): &(DriveId, Sectors)| NewDrive {
        drive: *drive,
        capacity: *capacity - options.far,
        uuid: identity(seed, 1 + u64::from(drive.0)),
    };
    let (members, spares) = drives.split_at(usize::from(shape.members));
    let slots = (0..shape.members).map(Slot).zip(members);
    let mut plan = new_array::plan(&CreateSpec {
        uuid: identity(seed, 0),
        name: SetName::new(None, "array").expect("a short name"),
        created: Timestamp::new(WALL_CLOCK_AT_ZERO, 0),
        level: MdLevel::from_number(shape.level.md_number().expect("a shape with metadata")).expect("a level of md"),
        layout: shape.layout,
        chunk: shape.chunk,
        minor: options.metadata,
        slots: slots.map(|(slot, drive)| (!options.missing.contains(slot)).then(|| new(drive))).collect(),
        spares: spares.iter().map(new).collect(),
        size: options.used,
        assume_clean: !options.junk,
        bitmap: options.bitmap,
        ppl: options.ppl,
    })?;
    for member in &mut plan.members {
        move_data(&mut member.superblock, options.far);
    }
    move_data(&mut plan.common, options.far);
    if let (Some(bitmap), Some(chunk)) = (&mut plan.bitmap, options.bitmap_chunk) {
        let header = &bitmap.header;
        bitmap.header = BitmapHeader::new(header.set_uuid, header.events, header.sync_size, chunk);
    }
    Ok(plan)
}

/// Let the data begin `far` sectors later. The bitmap moves into the room before them, which has pages enough.
fn move_data(superblock: &mut Superblock, far: Sectors) {
    if far.is_zero() {
        return;
    }
    superblock.data_offset += far;
    // With less room, the bitmap stays before the first place of the data.
    if superblock.bitmap_offset().is_some() && far.get() > 2 * u64::from(FAR_BITMAP.unsigned_abs()) {
        superblock.set_bitmap_offset(Some(FAR_BITMAP));
    }
}

impl World {
    /// Create an array of this shape and start it. The drives are in the order of slots, followed by the spares.
    ///
    /// # Panics
    /// The array cannot be created.
    pub fn create(&mut self, shape: &ArrayShape, drives: &[DriveId], options: &RigOptions) -> ArrayId {
        let command = if shape.is_passthrough() {
            AdminCommand::StartPassthrough { drive: drives[0] }
        } else {
            let sized: Vec<_> = drives.iter().map(|drive| (*drive, self.drive(*drive).spec().capacity)).collect();
            let plan = plan_new(shape, &sized, options).unwrap_or_else(|error| panic!("{shape}: {error}"));
            AdminCommand::StartSet(plan)
        };
        self.start(command).unwrap_or_else(|error| panic!("{shape}: {error}"))
    }

    /// Create a stripe over running arrays: write the outer superblocks to them, as a driver must, and start it.
    ///
    /// # Panics
    /// The stripe cannot be created.
    pub fn create_nested(&mut self, spans: &[ArrayId], chunk: Sectors, seed: u64) -> ArrayId {
        // For the outer array, a span is a drive.
        let slots = spans.iter().map(|span| {
            let capacity = self.controller.capacity(*span).expect("the span runs").sectors_floor();
            Some(NewDrive { drive: DriveId(span.0), capacity, uuid: identity(seed, 1000 + u64::from(span.0)) })
        });
        let plan = new_array::plan(&CreateSpec {
            uuid: identity(seed, 999),
            name: SetName::new(None, "outer").expect("a short name"),
            created: Timestamp::new(WALL_CLOCK_AT_ZERO, 0),
            level: MdLevel::Raid0,
            layout: 2,
            chunk,
            minor: MinorVersion::V1_2,
            slots: slots.collect(),
            spares: Vec::new(),
            size: None,
            assume_clean: true,
            bitmap: false,
            ppl: false,
        });
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let superblocks: Vec<_> = plan.members.iter().map(|member| member.superblock.clone()).collect();
        for (span, superblock) in spans.iter().zip(&superblocks) {
            let mut bytes = vec![0; superblock.encoded_len()];
            superblock.encode(&mut bytes);
            let result = self.write(*span, superblock.super_offset.offset().bytes().get(), &bytes);
            result.unwrap_or_else(|status| panic!("the outer superblock is not written: {status:?}"));
        }
        let started = self.start(AdminCommand::StartStriped { spans: spans.to_vec(), superblocks });
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Carry out a command that starts an array.
    ///
    /// # Errors
    /// The controller's refusal.
    ///
    /// # Panics
    /// The command does not start an array.
    pub fn start(&mut self, command: AdminCommand) -> Result<ArrayId, AdminError> {
        match self.admin(command)? {
            AdminOutcome::Started(array) => Ok(array),
            AdminOutcome::Done => panic!("the command started nothing"),
        }
    }

    /// The superblock of each readable drive.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (index, drive) in self.drives.iter().enumerate() {
            let Some(drive) = drive.as_ref().filter(|drive| !drive.faults.gone) else { continue };
            let number = DriveId(u16::try_from(index).expect("a world has few drives"));
            let read = |lba, bytes: &mut [u8]| {
                drive.peek(lba, bytes);
                Ok::<(), std::convert::Infallible>(())
            };
            match probe(number, drive.spec().capacity, read) {
                Ok(mut candidate) => {
                    if let Some(planted) = &self.planted {
                        planted.found_log(drive, &mut candidate, self.kernels);
                    }
                    candidates.push(candidate);
                }
                Err(CandidateError::NotAMember) => {}
                // A torn superblock: the other superblocks describe the array.
                Err(_) => {}
            }
        }
        candidates
    }

    /// Start the array that the drives form.
    ///
    /// # Errors
    /// The reason for which they do not form one.
    pub fn assemble(&mut self, force: bool) -> Result<ArrayId, ArrayStartError> {
        let all: Vec<DriveId> =
            (0..self.drives.len()).map(|n| DriveId(u16::try_from(n).expect("few drives"))).collect();
        self.assemble_of(&all, force)
    }

    /// Start the array that these drives form.
    ///
    /// # Errors
    /// The reason for which they do not form one.
    pub fn assemble_of(&mut self, drives: &[DriveId], force: bool) -> Result<ArrayId, ArrayStartError> {
        let mut candidates = self.candidates();
        candidates.retain(|candidate| drives.contains(&candidate.drive));
        let plan = assemble::plan(&candidates, AssembleOptions { force, ..AssembleOptions::default() })
            .map_err(ArrayStartError::Assemble)?;
        self.start(AdminCommand::StartSet(plan)).map_err(ArrayStartError::Refused)
    }

    /// Add a new drive to an array.
    ///
    /// # Errors
    /// The controller's refusal.
    ///
    /// # Panics
    /// The array has no superblock, or the drive has no room for a member.
    pub fn add_member(&mut self, array: ArrayId, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let member = self.new_member(array, drive);
        self.admin(AdminCommand::Add { array, member })
    }

    fn new_member(&self, array: ArrayId, drive: DriveId) -> NewMember {
        let of_array = self.status(array).and_then(|status| status.superblock).expect("the array has a superblock");
        let capacity = self.drive(drive).spec().capacity - self.far;
        let new = NewDrive { drive, capacity, uuid: identity(self.spec.seed, 1 + u64::from(drive.0)) };
        let made = new_array::superblock_for_new_member(&of_array, &new);
        let mut superblock = made.unwrap_or_else(|error| panic!("{error}"));
        move_data(&mut superblock, self.far);
        NewMember { drive, superblock, returning: false }
    }

    /// Begin to give a linear array a new drive.
    ///
    /// # Panics
    /// The array has no superblock, or the drive has no room for a member.
    pub fn start_append(&mut self, array: ArrayId, drive: DriveId) -> Token {
        let member = self.new_member(array, drive);
        self.start_admin(AdminCommand::Append { array, member })
    }

    /// Add a former member to its array again.
    ///
    /// # Errors
    /// The controller's refusal.
    ///
    /// # Panics
    /// The drive has no superblock.
    pub fn re_add_member(&mut self, array: ArrayId, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let superblock = crate::oracle::redundancy::superblock_on(self, drive).expect("it was a member");
        self.admin(AdminCommand::Add { array, member: NewMember { drive, superblock, returning: true } })
    }
}
