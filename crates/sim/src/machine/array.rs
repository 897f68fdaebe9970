//! Arrays of a machine: the sets and layouts of a level, the missing members, the commands to the engine.
//!
//! Arrays are new and clean, without a first sync. Setting up the engine takes no time: the clock is at zero and the
//! drives have done nothing when the first request arrives.

use openraid_core::actions::{Actions, JobKind};
use openraid_core::admin::{AdminCommand, AdminOutcome, Policy};
use openraid_core::array::assemble::{self, AssembleOptions, Assembly, Candidate, PlannedMember};
use openraid_core::array::membership::Membership;
use openraid_core::array::new_array::{self, CreateSpec, NewDrive};
use openraid_core::array::reshape_plan::{plan_reshape, PlanKind, Present};
use openraid_core::events::{Completion, DriveInfo, ParityVerdict};
use openraid_core::journal::JournalState;
use openraid_core::slot_set::SlotSet;
use openraid_core::Controller;
use openraid_format::{
    DeviceRole, MdLevel, MemberPlacement, MinorVersion, PlacementRequest, SetName, ShapeFields, Superblock, Timestamp,
    Uuid,
};
use openraid_models::ArrayLevel;
use openraid_units::{ArrayId, BlockSize, Bytes, DriveId, Instant, MemberLba, Nanos, Sectors, Slot, Token};

use super::error::MachineError;
use super::journal::empty_journal;

/// Facts of a level that hold for every controller.
pub(super) trait LevelFacts {
    /// Whether the level consists of two levels, one above the other, for the controller.
    fn is_nested(&self) -> bool;
    /// Whether the level stripes.
    fn has_chunks(&self) -> bool;
}

impl LevelFacts for ArrayLevel {
    fn is_nested(&self) -> bool {
        matches!(self, Self::Raid10 | Self::Raid50 | Self::Raid60)
    }
    fn has_chunks(&self) -> bool {
        !matches!(self, Self::Single | Self::Jbod | Self::Linear | Self::Raid1)
    }
}

/// The array of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArraySpec {
    pub level: ArrayLevel,
    /// Members, the missing ones included.
    pub members: u16,
    /// Chunk; by default the controller's own.
    pub chunk: Option<Bytes>,
    /// Missing members: the first of each span or pair, in turn.
    pub degraded: u16,
    /// New drives replace the missing ones, and are filled while requests arrive.
    pub rebuilding: bool,
    /// Percentage of the new drives that is already filled, as after an interrupted rebuild.
    pub rebuilt_percent: u8,
    /// The array changes its shape while requests arrive.
    pub change: Option<ArrayChange>,
}

/// The end of a change of shape, and how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayChange {
    pub level: ArrayLevel,
    pub members: u16,
    /// Percentage of the data that has moved already.
    pub moved_percent: u8,
}

impl ArraySpec {
    /// A healthy array with the controller's own chunk.
    #[must_use]
    pub const fn new(level: ArrayLevel, members: u16) -> Self {
        Self { level, members, chunk: None, degraded: 0, rebuilding: false, rebuilt_percent: 0, change: None }
    }

    /// Number of drives: members, and drives that a change of shape adds.
    #[must_use]
    pub fn drives(&self) -> u16 {
        self.change.map_or(self.members, |change| change.members.max(self.members))
    }

    /// The redundant sets that a nested array stripes over.
    #[must_use]
    pub fn spans(&self) -> u16 {
        match self.level {
            ArrayLevel::Raid50 | ArrayLevel::Raid60 => 2,
            _ => 1,
        }
    }

    /// Members of a stripe that hold its redundancy.
    #[must_use]
    pub fn parities(&self) -> u16 {
        match self.level {
            ArrayLevel::Raid4 | ArrayLevel::Raid5 | ArrayLevel::Raid50 => 1,
            ArrayLevel::Raid6 | ArrayLevel::Raid60 => 2,
            _ => 0,
        }
    }

    /// Copies of each block.
    #[must_use]
    pub fn copies(&self) -> u16 {
        if matches!(self.level, ArrayLevel::Raid1 | ArrayLevel::Raid1e | ArrayLevel::Raid10) {
            2
        } else {
            1
        }
    }

    /// Members of a span that hold different data of a stripe.
    pub(super) fn data_columns(&self) -> u16 {
        (self.members / self.spans() / self.copies() - self.parities()).max(1)
    }

    /// Whether the level stores data more than once, or stores parity.
    pub(super) fn is_redundant(&self) -> bool {
        self.parities() > 0 || self.copies() > 1
    }

    /// Check the number of members, and the number of those missing, against the level alone.
    ///
    /// # Errors
    /// The rule of the level that is broken.
    pub fn check(&self) -> Result<(), MachineError> {
        let Self { level, members, degraded, .. } = *self;
        if members < level.members_min() {
            return Err(MachineError::TooFewMembers {
                level,
                have: members,
                need: level.members_min(),
                reason: "the level needs more".into(),
            });
        }
        let wrong = |must| Err(MachineError::Members { level, have: members, must });
        match level {
            ArrayLevel::Single if members != 1 => return wrong("it is one drive"),
            ArrayLevel::Raid10 if members % 2 != 0 => {
                return wrong("the number must be even; an odd one makes RAID 1E")
            }
            ArrayLevel::Raid50 | ArrayLevel::Raid60 if members % 2 != 0 => {
                return wrong("two spans of the same number of drives make it, so the number must be even");
            }
            _ => {}
        }
        let missing = |reason: &str| Err(MachineError::Missing { level, missing: degraded, reason: reason.into() });
        if degraded >= members {
            return missing("no drive is left");
        }
        if self.rebuilding && degraded == 0 {
            return missing("a rebuild needs a missing drive");
        }
        self.check_change()
    }

    /// Check the change of shape against both levels.
    fn check_change(&self) -> Result<(), MachineError> {
        let Some(change) = self.change else { return Ok(()) };
        let wrong = |why: String| Err(MachineError::Part(why));
        let moves = |level: ArrayLevel| {
            use ArrayLevel::{Raid10, Raid1e, Raid4, Raid5, Raid6};
            matches!(level, Raid4 | Raid5 | Raid6 | Raid10 | Raid1e)
        };
        if let Some(level) = [self.level, change.level].into_iter().find(|level| !moves(*level)) {
            return wrong(format!("data move between RAID 4, 5, 6 and 10, and not from or to {level}"));
        }
        if self.degraded > 0 {
            return wrong("a change of shape needs all drives".into());
        }
        ArraySpec::new(change.level, change.members).check()
    }

    /// The missing slots of one span.
    fn missing_of(&self, span: u16, members: u16) -> Vec<u16> {
        let of_span = (span..self.degraded).step_by(self.spans().into()).map(|n| n / self.spans());
        // Missing members are first one half of every pair, then the other halves.
        let paired = matches!(self.level, ArrayLevel::Raid10 | ArrayLevel::Raid1e);
        of_span.map(|n| if paired { n * 2 % members + n * 2 / members } else { n }).collect()
    }
}

/// The capacity of a drive as the engine sees it. The metadata is added, so that members offer the whole drive.
///
/// # Errors
/// The drive is too small for any member.
pub(super) fn told_capacity(level: ArrayLevel, chunk: Sectors, sectors: Sectors) -> Result<Sectors, MachineError> {
    if matches!(level, ArrayLevel::Single | ArrayLevel::Jbod) {
        return Ok(sectors);
    }
    let md = match level {
        ArrayLevel::Raid0 => MdLevel::Raid0,
        ArrayLevel::Linear => MdLevel::Linear,
        ArrayLevel::Raid1 => MdLevel::Raid1,
        ArrayLevel::Raid1e | ArrayLevel::Raid10 => MdLevel::Raid10,
        ArrayLevel::Raid6 | ArrayLevel::Raid60 => MdLevel::Raid6,
        ArrayLevel::Raid4 => MdLevel::Raid4,
        _ => MdLevel::Raid5,
    };
    let whole = sectors.round_down(SUPERBLOCK_ALIGN);
    let trial = PlacementRequest { minor: MinorVersion::V1_0, level: md, chunk, drive_size: whole + TRIAL_ROOM };
    let placement = MemberPlacement::new(trial).map_err(|error| MachineError::Engine(error.to_string()))?;
    let between = placement.super_offset.offset() - placement.data_size;
    Ok(whole + between + BEHIND_SUPERBLOCK)
}

/// Superblocks at the end are stored at multiples of 4 KiB, at least 8 KiB before the end. The room is larger than all
/// metadata.
const SUPERBLOCK_ALIGN: Sectors = Sectors::kib(4);
const BEHIND_SUPERBLOCK: Sectors = Sectors::kib(8);
const TRIAL_ROOM: Sectors = Sectors::mib(1);

/// A member as the engine sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct EngineDrive {
    /// Sectors that the engine may use.
    pub capacity: Sectors,
    pub rotational: bool,
}

/// The arrays that were started.
#[derive(Debug)]
pub(super) struct StartedArrays {
    /// One array, or one for each drive of a JBOD.
    pub arrays: Vec<ArrayId>,
    /// The sets that have members: spans, or the arrays themselves.
    pub sets: Vec<ArrayId>,
}

/// Limit of turns of the controller during set-up.
const SETUP_TURNS_MAX: u32 = 1_000_000;
/// Seconds since 1970 at the machine's zero: the start of 2026.
const WALL_CLOCK_AT_ZERO: u64 = 1_767_225_600;
/// md's layout numbers: left-symmetric parity; two near copies; the layout of RAID 0 in current Linux.
const LEFT_SYMMETRIC: u32 = 2;
const TWO_NEAR: u32 = 0x102;
const STRIPED: u32 = 2;
/// The step of a rebuild without chunks.
const ROW: Sectors = Sectors::kib(64);

/// Gives commands to a controller whose drives answer at once.
pub(super) struct Setup<'a> {
    pub controller: &'a mut Controller,
    pub actions: &'a mut Actions,
    pub metadata_in_front: bool,
}

fn identity(number: u64) -> Uuid {
    let mut bytes = [0x52; 16];
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    Uuid(bytes)
}

/// The spares have replaced the missing members and are partly rebuilt.
fn half_filled(plan: &mut Assembly, missing: &[u16], percent: u8) {
    let step = if plan.common.chunk.is_zero() { ROW } else { plan.common.chunk };
    let filled = Sectors(plan.common.size.get() / 100 * u64::from(percent)).round_down(step);
    let mut roles = plan.common.roles.clone();
    let spares = plan.members.iter_mut().filter(|member| member.verdict == Membership::Spare);
    for (spare, slot) in spares.zip(missing) {
        spare.verdict = Membership::Rebuilding(Slot(*slot), filled);
        spare.superblock.set_recovery_offset(Some(MemberLba(filled.get())));
        roles.set(spare.superblock.dev_number as usize, DeviceRole::Active(Slot(*slot)));
    }
    plan.common.roles = roles.clone();
    for member in &mut plan.members {
        member.superblock.roles = roles.clone();
    }
}

/// The number, the layout and the chunk of a level in md.
fn md_shape(level: ArrayLevel, chunk: Sectors) -> (MdLevel, u32, Sectors) {
    let (md, layout) = match level {
        ArrayLevel::Linear => (MdLevel::Linear, 0),
        ArrayLevel::Raid0 => (MdLevel::Raid0, STRIPED),
        ArrayLevel::Raid1 => (MdLevel::Raid1, 0),
        ArrayLevel::Raid1e | ArrayLevel::Raid10 => (MdLevel::Raid10, TWO_NEAR),
        ArrayLevel::Raid4 => (MdLevel::Raid4, 0),
        ArrayLevel::Raid5 | ArrayLevel::Raid50 => (MdLevel::Raid5, LEFT_SYMMETRIC),
        ArrayLevel::Raid6 | ArrayLevel::Raid60 => (MdLevel::Raid6, LEFT_SYMMETRIC),
        ArrayLevel::Single | ArrayLevel::Jbod => unreachable!("these have no set description"),
    };
    (md, layout, if level.has_chunks() { chunk } else { Sectors::ZERO })
}

/// The array of a plan in the middle of a change of shape.
fn half_moved(
    plan: &Assembly,
    change: &ArrayChange,
    chunk: Sectors,
    drives: &[EngineDrive],
) -> Result<Assembly, String> {
    let of = |is_spare: bool| {
        let wanted = move |member: &&PlannedMember| (member.verdict == Membership::Spare) == is_spare;
        plan.members.iter().filter(wanted).map(|member| member.superblock.clone()).collect::<Vec<_>>()
    };
    let (members, spares) = (of(false), of(true));
    let (level, layout, chunk) = md_shape(change.level, chunk);
    let new = ShapeFields { level, layout, chunk, raid_disks: change.members };
    let present = Present { common: &plan.common, members: &members, spares: &spares, missing: SlotSet::EMPTY };
    let planned = plan_reshape(&present, new).map_err(|error| error.to_string())?;
    if planned.kind != PlanKind::Move {
        return Err("no data move in this change, so it takes no time".into());
    }
    let superblocks = planned.begun_at(&members, &spares, change.moved_percent).map_err(|error| error.to_string())?;
    let candidate = |superblock: Superblock| {
        let number = superblock.dev_number;
        let drive = DriveId(u16::try_from(number).expect("few drives"));
        let capacity = drives[number as usize].capacity;
        Candidate { drive, capacity, superblock, bitmap: None, bad: Vec::new(), ppl: None }
    };
    let candidates: Vec<Candidate> = superblocks.into_iter().map(candidate).collect();
    assemble::plan(&candidates, AssembleOptions::default()).map_err(|error| error.to_string())
}

impl Setup<'_> {
    fn minor(&self) -> MinorVersion {
        if self.metadata_in_front {
            MinorVersion::V1_2
        } else {
            MinorVersion::V1_0
        }
    }

    /// Carry out a command. No time passes.
    fn admin(&mut self, command: AdminCommand) -> Result<AdminOutcome, MachineError> {
        self.controller.admin(Token(0), command);
        for _ in 0..SETUP_TURNS_MAX {
            self.turn();
            if let Some(answer) = self.actions.admin.pop() {
                return answer.result.map_err(|error| MachineError::Engine(error.to_string()));
            }
        }
        panic!("setting up an array does not end");
    }

    pub fn attach(&mut self, drive: DriveId, member: EngineDrive) -> Result<(), MachineError> {
        let info = DriveInfo {
            capacity: member.capacity,
            block: BlockSize::B512,
            rotational: member.rotational,
            discard: false,
            discard_zeroes: false,
            write_zeroes: false,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        };
        self.admin(AdminCommand::AttachDrive { drive, info }).map(|_| ())
    }

    /// Make a journal on `count` drives, beginning with number `first`, and wait until it accepts writes.
    pub fn journal(&mut self, first: u16, count: usize, size: Sectors) -> Result<(), MachineError> {
        let drives: Vec<DriveId> = (first..).take(count).map(DriveId).collect();
        for drive in &drives {
            self.attach(*drive, EngineDrive { capacity: size, rotational: false })?;
        }
        self.admin(AdminCommand::AttachJournal(empty_journal(&drives, size)?))?;
        for _ in 0..SETUP_TURNS_MAX {
            if self.controller.journal_status().is_some_and(|status| status.state == JournalState::Live) {
                return Ok(());
            }
            self.turn();
        }
        panic!("setting up a journal does not end");
    }

    /// One turn of the engine: all its actions end at once.
    fn turn(&mut self) {
        self.actions.clear();
        self.controller.advance(Instant::ZERO, self.actions);
        for command in &self.actions.drive {
            self.controller.complete(Completion::Drive { tag: command.tag, result: Ok(()) });
        }
        for job in &self.actions.jobs {
            let verdict = if job.kind == JobKind::Compare { ParityVerdict::Match } else { ParityVerdict::Done };
            self.controller.complete(Completion::Job { tag: job.tag, verdict });
        }
    }

    fn start(&mut self, command: AdminCommand) -> Result<ArrayId, MachineError> {
        match self.admin(command)? {
            AdminOutcome::Started(array) => Ok(array),
            AdminOutcome::Done => panic!("the command started nothing"),
        }
    }

    fn plan(
        &self,
        number: u64,
        level: MdLevel,
        layout: u32,
        chunk: Sectors,
        slots: Vec<Option<NewDrive>>,
        spares: Vec<NewDrive>,
    ) -> Result<Assembly, MachineError> {
        new_array::plan(&CreateSpec {
            uuid: identity(number),
            name: SetName::new(None, "array").expect("a short name"),
            created: Timestamp::new(WALL_CLOCK_AT_ZERO, 0),
            level,
            layout,
            chunk,
            minor: self.minor(),
            slots,
            spares,
            size: None,
            assume_clean: true,
            bitmap: false,
            ppl: false,
        })
        .map_err(|error| MachineError::Engine(error.to_string()))
    }

    /// Start the array of `spec` on the drives, which are numbered from zero, one for each member.
    pub fn array(
        &mut self,
        spec: &ArraySpec,
        chunk: Sectors,
        drives: &[EngineDrive],
    ) -> Result<StartedArrays, MachineError> {
        spec.check()?;
        match spec.level {
            ArrayLevel::Single | ArrayLevel::Jbod => self.drives_as_they_are(spec, drives),
            ArrayLevel::Raid50 | ArrayLevel::Raid60 => self.nested(spec, chunk, drives),
            _ => {
                let array = self.set(spec, 0, chunk, 0, drives)?;
                Ok(StartedArrays { arrays: vec![array], sets: vec![array] })
            }
        }
    }

    fn drives_as_they_are(&mut self, spec: &ArraySpec, drives: &[EngineDrive]) -> Result<StartedArrays, MachineError> {
        if spec.degraded > 0 {
            let reason = "its data is on that drive alone".into();
            return Err(MachineError::Missing { level: spec.level, missing: spec.degraded, reason });
        }
        let arrays: Result<Vec<_>, _> = (0..drives.len())
            .map(|number| {
                let drive = DriveId(u16::try_from(number).expect("a machine has few drives"));
                self.start(AdminCommand::StartPassthrough { drive })
            })
            .collect();
        let arrays = arrays?;
        Ok(StartedArrays { sets: arrays.clone(), arrays })
    }

    /// One redundant set on `drives`, the first of which has the number `first`.
    fn set(
        &mut self,
        spec: &ArraySpec,
        span: u16,
        chunk: Sectors,
        first: u16,
        drives: &[EngineDrive],
    ) -> Result<ArrayId, MachineError> {
        let (level, layout, chunk) = md_shape(spec.level, chunk);
        let added = spec.drives() - spec.members;
        let members = u16::try_from(drives.len()).expect("few drives") - added;
        let missing = spec.missing_of(span, members);
        let new: Vec<NewDrive> = (first..)
            .zip(drives)
            .map(|(number, drive)| NewDrive {
                drive: DriveId(number),
                capacity: drive.capacity,
                uuid: identity(1000 + u64::from(number)),
            })
            .collect();
        let slots = (0..members).zip(&new).map(|(slot, drive)| (!missing.contains(&slot)).then_some(*drive)).collect();
        let mut spares = new[usize::from(members)..].to_vec();
        if spec.rebuilding {
            spares.extend(missing.iter().map(|slot| new[usize::from(*slot)]));
        }
        let plan = self.plan(u64::from(first), level, layout, chunk, slots, spares);
        let mut plan = plan.map_err(|error| match error {
            MachineError::Engine(_) if spec.degraded > 0 => {
                let reason = "that is more than the level survives; let fewer be missing".into();
                MachineError::Missing { level: spec.level, missing: spec.degraded, reason }
            }
            other => other,
        })?;
        if spec.rebuilding && spec.rebuilt_percent > 0 {
            half_filled(&mut plan, &missing, spec.rebuilt_percent);
        }
        if let Some(change) = &spec.change {
            plan = half_moved(&plan, change, chunk, drives).map_err(MachineError::Part)?;
        }
        self.start(AdminCommand::StartSet(plan))
    }

    fn nested(
        &mut self,
        spec: &ArraySpec,
        chunk: Sectors,
        drives: &[EngineDrive],
    ) -> Result<StartedArrays, MachineError> {
        let per_span = drives.len() / usize::from(spec.spans());
        let mut sets = Vec::new();
        let mut outer = Vec::new();
        for (span, members) in (0..).zip(drives.chunks(per_span)) {
            let first = span * u16::try_from(per_span).expect("few drives");
            let array = self.set(spec, span, chunk, first, members)?;
            let capacity = self.controller.capacity(array).expect("it was started").sectors_floor();
            outer.push(Some(NewDrive { drive: DriveId(span), capacity, uuid: identity(2000 + u64::from(span)) }));
            sets.push(array);
        }
        // The outer stripe moves from span to span by whole inner stripes, so that sequential writes fill the inner
        // stripes.
        let parities = if spec.level == ArrayLevel::Raid60 { 2 } else { 1 };
        let outer_chunk = chunk * (per_span as u64 - parities);
        let plan = self.plan(999, MdLevel::Raid0, STRIPED, outer_chunk, outer, vec![])?;
        let superblocks = plan.members.iter().map(|member| member.superblock.clone()).collect();
        let array = self.start(AdminCommand::StartStriped { spans: sets.clone(), superblocks })?;
        Ok(StartedArrays { arrays: vec![array], sets })
    }

    /// Set the policy of every set.
    pub fn policy(&mut self, started: &StartedArrays, policy: Policy) -> Result<(), MachineError> {
        for array in &started.sets {
            self.admin(AdminCommand::SetPolicy { array: *array, policy })?;
        }
        Ok(())
    }
}
