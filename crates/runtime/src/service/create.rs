//! New arrays: superblocks planned by the core and written by the engine when the array starts.
//!
//! The superblocks of an outer stripe are data of its spans: they are written through the spans, by ordinary requests,
//! and are durable before the stripe is used.

use openraid_core::admin::AdminCommand;
use openraid_core::array::new_array::{self, CreateSpec, NewDrive};
use openraid_format::{
    DeviceFlags, MdLevel, MemberFields, MemberPlacement, MinorVersion, NewSet, PlacementRequest, SetName, Superblock,
    Timestamp, Uuid, SUPERBLOCK_BYTES_MAX,
};
use openraid_sys::{clock, fill_random};
use openraid_units::{DriveId, Sectors};

use super::{ServiceHandle, StartError, StartedArray};
use crate::member::OpenedMember;

/// An array to be made.
#[derive(Debug)]
pub struct CreateRequest {
    /// Its name, with the host's in front if it belongs to one.
    pub name: SetName,
    pub level: MdLevel,
    /// md's layout number.
    pub layout: u32,
    /// Chunk; without meaning for RAID 1.
    pub chunk: Sectors,
    /// The place of the superblock.
    pub minor: MinorVersion,
    /// A member for each slot; `None` is a missing one.
    pub slots: Vec<Option<OpenedMember>>,
    pub spares: Vec<OpenedMember>,
    /// Maximum size to use of each member.
    pub size: Option<Sectors>,
    /// The members are known to be consistent.
    pub assume_clean: bool,
    /// Keep a write-intent bitmap.
    pub bitmap: bool,
    /// Keep a partial parity log.
    pub ppl: bool,
}

/// A stripe over several arrays of one kind (50, 60).
#[derive(Debug)]
pub struct NestedRequest {
    pub name: SetName,
    /// Chunk of the stripe.
    pub chunk: Sectors,
    /// The arrays under it, in order.
    pub spans: Vec<CreateRequest>,
}

impl ServiceHandle {
    /// Make an array and start it. On failure its members are released; nothing has been written unless the engine had
    /// begun to write.
    ///
    /// # Errors
    /// Why it cannot be made.
    /// Why it cannot be made.
    pub fn create(&self, request: CreateRequest) -> Result<StartedArray, StartError> {
        let mut attached = Vec::new();
        let result = self.try_create(request, &mut attached);
        if result.is_err() {
            for (drive, _, _) in attached {
                // The drive may have data that the engine has begun to write; then it stays with the engine.
                let _ = self.detach(drive);
            }
        }
        result
    }

    fn try_create(
        &self,
        request: CreateRequest,
        attached: &mut Vec<(DriveId, String, Sectors)>,
    ) -> Result<StartedArray, StartError> {
        let mut files = Vec::new();
        let mut take = |member: OpenedMember| {
            let storage = member.storage();
            let (text, capacity) = (member.spec.text.clone(), member.info.capacity);
            let drive = self.attach(member)?;
            attached.push((drive, text, capacity));
            files.extend(storage.map(|storage| (drive, storage)));
            Ok::<NewDrive, StartError>(NewDrive { drive, capacity, uuid: random_uuid() })
        };
        let mut slots = Vec::new();
        for member in request.slots {
            slots.push(member.map(&mut take).transpose()?);
        }
        let spares = request.spares.into_iter().map(&mut take).collect::<Result<Vec<_>, _>>()?;
        let spec = CreateSpec {
            uuid: random_uuid(),
            name: request.name,
            created: Timestamp::new(clock::wall_seconds(), 0),
            level: request.level,
            layout: request.layout,
            chunk: request.chunk,
            minor: request.minor,
            slots,
            spares,
            size: request.size,
            assume_clean: request.assume_clean,
            bitmap: request.bitmap,
            ppl: request.ppl,
        };
        let plan = new_array::plan(&spec).map_err(StartError::Create)?;
        for (drive, storage) in files {
            let planned = plan.members.iter().find(|member| member.drive == drive).expect("each drive was planned");
            storage.allocate_metadata(&planned.superblock).map_err(StartError::NoSpace)?;
        }
        let superblock = plan.common.clone();
        let verdicts = plan.verdicts.clone();
        let array = self.admin_start(AdminCommand::StartSet(plan))?;
        let text = |drive| {
            attached.iter().find(|(known, _, _)| *known == drive).map_or_else(String::new, |(_, text, _)| text.clone())
        };
        if !spec.assume_clean {
            self.forget_old_stripe(array)?;
        }
        let members = verdicts.into_iter().map(|(drive, verdict)| (drive, text(drive), verdict)).collect();
        let started = StartedArray { array, superblock, spans: Vec::new(), members, forced: None };
        self.count_hosts(&started);
        Ok(started)
    }

    /// Members of an earlier nested array still hold the superblock of its stripe at the start of the new array's data.
    /// The new array must not be recognized as a span of it.
    fn forget_old_stripe(&self, array: openraid_units::ArrayId) -> Result<(), StartError> {
        let status = self.status()?;
        let view = status.arrays.iter().find(|view| view.status.array == array);
        let capacity = view.map_or(Sectors::ZERO, |view| view.status.capacity);
        if let Ok(Some(old)) = self.superblock_inside(array, capacity) {
            let offset = old.super_offset.offset().bytes().get();
            self.write(array, offset, &[0; SUPERBLOCK_BYTES_MAX], true)?;
        }
        Ok(())
    }

    /// Make a stripe over arrays that are made for it, and start all of them. On failure the started arrays are stopped
    /// again.
    ///
    /// # Errors
    /// Why it cannot be made.
    /// Why it cannot be made.
    pub fn create_nested(&self, request: NestedRequest) -> Result<StartedArray, StartError> {
        if request.spans.is_empty() {
            return Err(StartError::NoMembers);
        }
        let mut spans = Vec::new();
        let mut result = Ok(());
        for span in request.spans {
            match self.create(span) {
                Ok(span) => spans.push(span),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let outer = result.and_then(|()| self.stripe(request.name, request.chunk, &spans));
        match outer {
            Ok((array, superblock)) => {
                let started = StartedArray { array, superblock, spans, members: Vec::new(), forced: None };
                self.count_hosts(&started);
                Ok(started)
            }
            Err(error) => {
                for span in &spans {
                    self.stop_and_release(span)?;
                }
                Err(error)
            }
        }
    }

    fn stripe(
        &self,
        name: SetName,
        chunk: Sectors,
        spans: &[StartedArray],
    ) -> Result<(openraid_units::ArrayId, Superblock), StartError> {
        let superblocks = self.outer_superblocks(name, chunk, spans)?;
        for (span, superblock) in spans.iter().zip(&superblocks) {
            let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
            superblock.encode(&mut bytes);
            let offset = superblock.super_offset.offset().bytes().get();
            self.write(span.array, offset, &bytes, true)?;
            self.flush(span.array)?;
        }
        let numbers = spans.iter().map(|span| span.array).collect();
        let first = superblocks[0].clone();
        let array = self.admin_start(AdminCommand::StartStriped { spans: numbers, superblocks })?;
        Ok((array, first))
    }

    fn outer_superblocks(
        &self,
        name: SetName,
        chunk: Sectors,
        spans: &[StartedArray],
    ) -> Result<Vec<Superblock>, StartError> {
        let status = self.status()?;
        let mut placements = Vec::new();
        for span in spans {
            let view = status.arrays.iter().find(|view| view.status.array == span.array);
            let drive_size = view.map_or(Sectors::ZERO, |view| view.status.capacity);
            let request = PlacementRequest { minor: MinorVersion::V1_2, level: MdLevel::Raid0, chunk, drive_size };
            placements.push(MemberPlacement::new(request).map_err(StartError::Placement)?);
        }
        let unequal = placements.windows(2).any(|pair| pair[0].data_size != pair[1].data_size);
        let set = NewSet {
            uuid: random_uuid(),
            name,
            created: Timestamp::new(clock::wall_seconds(), 0),
            level: MdLevel::Raid0,
            layout: if unequal { openraid_format::Raid0Layout::Alternate.number() } else { 0 },
            chunk,
            size: Sectors::ZERO,
            raid_disks: u16::try_from(spans.len()).map_err(|_| StartError::NoMembers)?,
            resync_from: None,
            bitmap: false,
        };
        let roles = set.roles(0);
        let superblock = |(number, placement): (u32, &MemberPlacement)| {
            let member = MemberFields { dev_number: number, uuid: random_uuid(), flags: DeviceFlags::default() };
            set.superblock(member, placement, roles.clone())
        };
        Ok((0..).zip(&placements).map(superblock).collect())
    }
}

/// A random identity, marked as such (RFC 4122, version 4).
///
/// # Panics
/// The kernel gives no random bytes, which only a broken sandbox does.
pub fn random_uuid() -> Uuid {
    let mut bytes = [0; 16];
    if let Err(error) = fill_random(&mut bytes) {
        panic!("the kernel gives no random bytes for identities: {error}; allow the getrandom call");
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid(bytes)
}
