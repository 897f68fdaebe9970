//! One redundancy set of a run: its members, its rows in doubt, and the places of its sectors in the array.
//!
//! A row is *in doubt* after a power cut that may have left it old on one member and new on another, until a resync has
//! made it match. A column that is lost from such a row cannot be reconstructed: the write hole. The rows in doubt are
//! computed from the drives' own lists of writes under way, never from the engine's state.

use std::collections::BTreeMap;

mod change;

use openraid_core::admin::{ArrayStatus, Health, MemberState, TaskKind};
use openraid_core::array::assemble::Assembly;
use openraid_core::array::membership::Membership;
use openraid_core::geometry::{Geometry, StripeRole};
use openraid_core::slot_set::SlotSet;
use openraid_format::{DeviceRole, PplPlace, SetName, Superblock, Uuid};
use openraid_units::{ArrayId, DriveId, DriveLba, MemberLba, Sectors, SetLba, Slot};

pub use change::{fields_of, Differing, SetChange};

use super::row_set::SectorSet;
use crate::oracle::redundancy::superblock_on;
use crate::oracle::Members;
use crate::world::World;

/// A piece of the layout of a set with one copy of all data.
#[derive(Clone, Copy, Debug)]
struct Piece {
    at: SetLba,
    slot: Slot,
    lba: MemberLba,
    len: Sectors,
}

/// The place of a set below the outer stripe of a nested array.
#[derive(Clone, Copy, Debug)]
pub struct Outer {
    /// Number of spans.
    pub spans: u64,
    /// Number of this span.
    pub span: u64,
    /// Chunk of the outer stripe.
    pub chunk: Sectors,
    /// The start of the outer array's data in the span.
    pub start: Sectors,
}

#[derive(Clone, Debug)]
pub struct RunSet {
    /// Its number in the running controller.
    pub array: ArrayId,
    /// Its identity; `None` for a drive without metadata.
    pub uuid: Option<Uuid>,
    /// Its layout; of a set whose shape changes, the old one.
    pub geometry: Geometry,
    /// The other side of a set whose shape changes.
    pub change: Option<SetChange>,
    /// Slots that the change fills. They are empty in the old layout.
    fills: SlotSet,
    pieces: Vec<Piece>,
    /// The largest data area of a member.
    extent: Sectors,
    /// Its place in the array, if the set is a span.
    pub outer: Option<Outer>,
    /// Rows in doubt.
    pub doubt: SectorSet,
    /// Rows with a silent error of a drive, and rows that a drive was writing when it was lost.
    pub suspect: SectorSet,
    /// Copies or parity may differ since a cut.
    pub dirty: bool,
    /// The set was started by force, and no resync makes its rows match.
    pub unfit: bool,
    /// The set is whole, and no member has had a fault since. Then a power cut alone must not cost a member.
    pub whole: bool,
    /// The set has been at rest since it became consistent, and its partial parity logs record that.
    pub armed: bool,
    /// Drives that call themselves members and are not, each with the number of writes answered when it was first seen
    /// outside of the set.
    pub left: BTreeMap<DriveId, u64>,
    /// The names that the set may have: the last one, and older ones until it is at rest.
    pub names: Vec<SetName>,
    /// The places of the bitmap on drives from which it was removed.
    pub bitmaps: BTreeMap<DriveId, Option<i32>>,
    /// The set has partial parity logs.
    pub logged: bool,
    /// The place of the logs that the set has or had.
    pub log_place: Option<PplPlace>,
    /// Whether the journal had all writes under way when the last controller ended.
    pub journalled: bool,
    /// The members by place, as of the last run of the set.
    places: Vec<MemberPlace>,
    /// The start of the data of each drive that was ever a member.
    starts: BTreeMap<DriveId, DriveLba>,
    /// The drives that the newest superblock called members when the last controller ended.
    current: Vec<DriveId>,
    /// The event count of that superblock.
    newest: u64,
    /// A controller began to start the set with drives that were not members when the previous one ended. That
    /// controller may have recorded them as members before its own end.
    taken_stale: bool,
}

/// A member of a set.
#[derive(Clone, Copy, Debug)]
pub struct MemberPlace {
    pub slot: Slot,
    pub drive: DriveId,
    /// The start of its data.
    pub start: DriveLba,
    /// Its state in the set.
    pub standing: MemberStanding,
}

/// The standing of a drive in a slot of its set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberStanding {
    Full,
    /// The member is being filled.
    Filling,
    /// The member has failed.
    Out,
}

impl MemberPlace {
    /// Whether the place has a full member.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.standing == MemberStanding::Full
    }
}

impl RunSet {
    /// A set that was just started.
    #[must_use]
    pub fn new(world: &World, array: ArrayId) -> Self {
        let geometry = Members::of(world, array).geometry().clone();
        let end = extent(world, array, &geometry);
        let mut set = Self {
            array,
            uuid: None,
            pieces: pieces(&geometry),
            geometry,
            change: None,
            fills: SlotSet::EMPTY,
            extent: end,
            outer: None,
            doubt: SectorSet::new(end),
            suspect: SectorSet::new(end),
            dirty: false,
            unfit: false,
            whole: false,
            armed: false,
            left: BTreeMap::new(),
            names: Vec::new(),
            bitmaps: BTreeMap::new(),
            logged: false,
            log_place: None,
            journalled: false,
            places: Vec::new(),
            starts: BTreeMap::new(),
            current: Vec::new(),
            newest: 0,
            taken_stale: false,
        };
        set.note_places(world);
        if world.status(array).is_some_and(|status| status.consistent_to != Sectors::MAX) {
            set.dirty = true;
            set.doubt.insert(MemberLba(0), end);
        }
        let drive = set.places.first().map(|place| place.drive);
        let superblock = drive.and_then(|drive| superblock_on(world, drive));
        set.log_place = superblock.as_ref().and_then(Superblock::ppl);
        set.logged = set.log_place.is_some();
        set.uuid = superblock.map(|superblock| superblock.set_uuid);
        set
    }

    /// Whether the set has parity.
    #[must_use]
    pub fn has_parity(&self) -> bool {
        matches!(self.geometry, Geometry::Parity(_))
    }
    /// Whether the set survives the loss of a member.
    #[must_use]
    pub fn is_redundant(&self) -> bool {
        self.geometry.losses_survived() > 0
    }

    /// Record the members by place while the set runs.
    pub fn note_places(&mut self, world: &World) {
        let Some(status) = world.status(self.array) else { return };
        let members = status.members.iter().filter(|member| !member.replacement);
        let here: Vec<_> = members.filter_map(|member| Some((member.slot?, member.drive?, member.state))).collect();
        self.note_shape(world, &status);
        for (_, drive, _) in &here {
            // A drive with a damaged superblock has its data at the recorded start. A new drive may have no superblock
            // yet.
            if let Some(superblock) = superblock_on(world, *drive) {
                self.starts.insert(*drive, self.start_on(&superblock));
            }
        }
        let failed = status.health == Health::Failed;
        let place = |(slot, drive, state)| MemberPlace {
            slot,
            drive,
            start: self.starts.get(&drive).copied().unwrap_or(DriveLba(0)),
            standing: match state {
                MemberState::InSync | MemberState::Failing(_) => MemberStanding::Full,
                // A failed array records nothing: the next controller treats the member that it lost last as a member.
                MemberState::Faulty(_) if failed => MemberStanding::Full,
                MemberState::Rebuilding { .. } => MemberStanding::Filling,
                MemberState::Faulty(_) | MemberState::Missing | MemberState::Spare => MemberStanding::Out,
            },
        };
        self.places = here.into_iter().map(place).collect();
    }

    /// The members, as far as they are known.
    pub fn places(&self) -> impl Iterator<Item = MemberPlace> + '_ {
        self.places.iter().copied()
    }

    /// The content of the full members. The start of their data is recorded, because superblocks may be damaged.
    #[must_use]
    pub fn members<'a>(&mut self, world: &'a World) -> Members<'a> {
        self.note_places(world);
        let full = self.places().filter(|place| place.is_full());
        let full: Vec<_> = full.map(|place| (place.slot, place.drive, place.start)).collect();
        Members::known(world, self.geometry.clone(), &full)
    }

    /// The member in a slot.
    #[must_use]
    pub fn place_of(&self, slot: Slot) -> Option<MemberPlace> {
        self.places().find(|place| place.slot == slot)
    }

    /// Record the members by their drives' superblocks. It is done when a controller ends, or before a superblock is
    /// damaged.
    pub fn note_current(&mut self, world: &World) {
        let drives = (0..world.drives_len()).filter_map(|drive| u16::try_from(drive).ok()).map(DriveId);
        let members = drives.filter_map(|drive| Some((drive, superblock_on(world, drive)?)));
        let members: Vec<_> = members.filter(|(_, superblock)| Some(superblock.set_uuid) == self.uuid).collect();
        let Some((_, newest)) = members.iter().max_by_key(|(_, superblock)| superblock.events) else { return };
        // The drive with the newest superblock may be absent.
        if newest.events < self.newest {
            return;
        }
        self.newest = newest.events;
        // A drive with an older event count was absent and missed writes, even if the others call it a member.
        let member = |superblock: &Superblock| {
            superblock.events + 1 >= newest.events
                && matches!(newest.roles.get(superblock.dev_number), DeviceRole::Active(_))
        };
        self.current = members.iter().filter(|(_, superblock)| member(superblock)).map(|(drive, _)| *drive).collect();
    }

    /// Whether every slot has a full member according to the drives.
    #[must_use]
    pub fn is_whole_on_disk(&self, world: &World) -> bool {
        let full: Vec<Superblock> = self.places().filter_map(|place| superblock_on(world, place.drive)).collect();
        let newest = full.iter().max_by_key(|superblock| superblock.events);
        let Some(newest) = newest else { return self.uuid.is_none() };
        let counts = |superblock: &&Superblock| {
            let role = newest.roles.get(superblock.dev_number);
            let is_filled = matches!(role, DeviceRole::Active(slot) if self.fills.contains(slot));
            superblock.events + 1 >= newest.events
                && (superblock.recovery_offset().is_none() || is_filled)
                && matches!(role, DeviceRole::Active(_))
        };
        full.iter().filter(counts).count() == usize::from(self.slots())
    }

    /// Whether metadata is on its way to a member: superblock, bitmap, log, bad-block log.
    #[must_use]
    pub fn writes_metadata(&self, world: &World) -> bool {
        self.places().any(|place| {
            let Some(superblock) = superblock_on(world, place.drive) else { return false };
            let data = superblock.data_offset..superblock.data_offset + superblock.data_size;
            world.drive(place.drive).commands_that_change().any(|command| !data.contains(&command.lba))
        })
    }

    /// Whether the newest superblock says that writes may be under way.
    #[must_use]
    pub fn is_dirty_on_disk(&self, world: &World) -> bool {
        let superblocks = self.places().filter_map(|place| superblock_on(world, place.drive));
        let newest = superblocks.max_by_key(|superblock| superblock.events);
        newest.is_some_and(|superblock| superblock.resync_position().is_some())
    }

    /// Record that the set is about to be started with these members.
    pub fn note_start(&mut self, plan: &Assembly) {
        let stale = |(drive, judged): &(DriveId, Membership)| {
            matches!(judged, Membership::Member(_)) && !self.current.contains(drive)
        };
        self.taken_stale |= plan.verdicts.iter().any(stale);
    }

    /// Whether a full member of the set was not a full member when the last controller ended, now or during the start.
    /// The former members are then absent, and this cannot be detected.
    #[must_use]
    pub fn has_stale_members(&self) -> bool {
        self.taken_stale
            || self.uuid.is_some() && self.places().any(|place| place.is_full() && !self.current.contains(&place.drive))
    }

    /// Slots without a working member: missing, being filled, or with a drive that has a fault.
    #[must_use]
    pub fn absent(&self, world: &World, status: &ArrayStatus) -> SlotSet {
        let mut absent = SlotSet::first_n(self.slots());
        for member in status.members.iter().filter(|member| !member.replacement) {
            let (Some(slot), Some(drive)) = (member.slot, member.drive) else { continue };
            // A drive that has just been filled is a member only after its superblock says so.
            let recorded = superblock_on(world, drive).is_none_or(|superblock| superblock.recovery_offset().is_none());
            if (member.state == MemberState::InSync && recorded || self.fills.contains(slot))
                && !world.drive(drive).faults.is_failing()
            {
                absent.remove(slot);
            }
        }
        absent
    }

    /// Slots whose drives have bad sectors.
    #[must_use]
    pub fn scarred(&self, world: &World) -> SlotSet {
        let scarred = self.places().filter(|place| world.drive(place.drive).faults.defects() > 0);
        scarred.map(|place| place.slot).collect()
    }

    /// Whether a drive of a working member has a fault that sooner or later fails the member.
    #[must_use]
    pub fn is_losing(&self, world: &World) -> bool {
        let Some(status) = world.status(self.array) else { return false };
        let works = |state| !matches!(state, MemberState::Faulty(_) | MemberState::Missing | MemberState::Spare);
        let mut drives = status.members.iter().filter(|member| works(member.state)).filter_map(|member| member.drive);
        drives.any(|drive| world.drive(drive).faults.is_failing())
    }

    /// Before a power cut, add the rows of writes under way on the drives to the rows in doubt. If the drives keep
    /// their power, only commands in flight count. If the drives record writes, recent writes count too, because the
    /// controller may still have held another member's part of the same row. If a member is being filled, only those
    /// rows count that the next start takes as filled.
    pub fn doubt_what_is_on_its_way(&mut self, world: &World, power_goes: bool) {
        if self.change.is_some() {
            return self.doubt_both_sides(world, power_goes);
        }
        for place in self.places.clone() {
            let drive = world.drive(place.drive);
            let end = place.start + filled_to(world, &place).map_or(self.extent, MemberLba::offset);
            let cached = drive.in_doubt().filter(|_| power_goes);
            let flying = drive.outstanding().map(|command| (command.lba, command.len));
            let faults = &drive.faults;
            let unfinished = faults.torn.iter().chain(&faults.refused);
            let lately = unfinished.chain(faults.written.iter().flatten()).copied();
            for (lba, len) in cached.chain(flying).chain(lately).filter(|(lba, _)| (place.start..end).contains(lba)) {
                self.doubt.insert(MemberLba((lba - place.start).get()), len);
                self.dirty = true;
            }
        }
    }

    /// Add the drives' errors so far to the suspect rows.
    pub fn suspect_what_went_wrong(&mut self, world: &World) {
        for place in self.places.clone() {
            let faults = &world.drive(place.drive).faults;
            if self.change.is_some() && !(faults.wrong.is_empty() && faults.torn.is_empty()) {
                self.suspect.insert(MemberLba(0), self.extent);
            }
            let wrong = faults.wrong.iter().map(|wrong| (wrong.lba, wrong.len));
            for (lba, len) in wrong.chain(faults.torn.iter().copied()).filter(|(lba, _)| *lba >= place.start) {
                self.suspect.insert(MemberLba((lba - place.start).get()), len);
            }
        }
    }

    /// Add the rows with a sector of the set to the suspect rows.
    pub fn suspect_sector(&mut self, at: SetLba) {
        let Some(sector) = self.outside(at) else { return };
        for slot in (0..self.geometry.members()).map(Slot) {
            for row in (0..self.extent.get()).map(MemberLba) {
                if self.of_row(slot, row).contains(&sector) {
                    self.suspect.insert(row, Sectors(1));
                }
            }
        }
    }

    /// If a resync has processed the whole set since the last cut, no row is in doubt any more.
    pub fn settle(&mut self, world: &mut World) {
        if !self.dirty || self.unfit {
            return;
        }
        let Some(status) = world.status(self.array) else { return };
        let resync = status.task.is_some_and(|task| task.kind == TaskKind::Resync);
        if !resync && status.consistent_to == Sectors::MAX {
            self.suspect_what_went_wrong(world);
            self.dirty = false;
            self.doubt.clear();
            for place in self.places.clone() {
                world.drive_mut(place.drive).faults.forget_torn();
            }
        }
    }

    /// The array's sectors that are lost with this slot, because their rows are in doubt.
    #[must_use]
    pub fn hole(&self, slot: Slot) -> Vec<u64> {
        match &self.change {
            Some(change) if !self.doubt.is_empty() => change::sectors_on(slot, &[&self.geometry, &change.new]),
            _ => self.doubt.iter().filter_map(|row| self.in_column(slot, row)).collect(),
        }
    }

    /// The array's sectors in rows in doubt that a drive cannot read, in blocks of `block` sectors.
    #[must_use]
    pub fn hole_of_defects(&self, world: &World, block: Sectors) -> Vec<u64> {
        let mut hole = Vec::new();
        for place in &self.places {
            let mut bad = SectorSet::new(self.extent);
            for lba in world.drive(place.drive).faults.defective().filter(|lba| *lba >= place.start) {
                let row = lba - place.start;
                bad.insert(MemberLba(row.round_down(block).get()), block);
            }
            let in_doubt = bad.iter().filter(|row| self.doubt.contains(*row));
            hole.extend(in_doubt.filter_map(|row| self.in_column(place.slot, row)));
        }
        hole
    }

    /// The array's sector in a row of a slot, if the slot has data there and other slots have parity.
    fn in_column(&self, slot: Slot, row: MemberLba) -> Option<u64> {
        let Geometry::Parity(parity) = &self.geometry else { return None };
        let (stripe, within) = parity.stripe_at(row)?;
        if slot.0 >= parity.members() {
            return None;
        }
        match parity.role_of(stripe, slot) {
            StripeRole::Data(column) => self.outside(parity.set_lba(stripe, column, within)),
            StripeRole::P | StripeRole::Q => None,
        }
    }

    /// The array's sectors in a row. If the set has no rows: at that place of the member.
    #[must_use]
    pub fn of_row(&self, slot: Slot, row: MemberLba) -> Vec<u64> {
        self.of_row_in(&self.geometry, slot, row)
    }

    fn of_row_in(&self, geometry: &Geometry, slot: Slot, row: MemberLba) -> Vec<u64> {
        if slot.0 >= geometry.members() {
            return Vec::new();
        }
        let inside: Vec<SetLba> = match geometry {
            Geometry::Parity(parity) => match parity.stripe_at(row) {
                Some((stripe, within)) => {
                    (0..parity.data_columns()).map(|column| parity.set_lba(stripe, column, within)).collect()
                }
                None => Vec::new(),
            },
            Geometry::Mirror(mirror) => mirror.inverse(slot, row).map(|(at, _)| at).into_iter().collect(),
            _ => {
                let holds = |piece: &&Piece| {
                    piece.slot == slot && piece.lba <= row && row < MemberLba(piece.lba.0 + piece.len.get())
                };
                let piece = self.pieces.iter().find(holds);
                piece.map(|piece| SetLba(piece.at.0 + row.0 - piece.lba.0)).into_iter().collect()
            }
        };
        inside.into_iter().filter_map(|at| self.outside(at)).collect()
    }

    /// The places of an array's sector on the members: one for each copy.
    #[must_use]
    pub fn stands(&self, sector: u64) -> Vec<(Slot, MemberLba)> {
        let Some(at) = self.inside(sector).filter(|at| at.offset() < self.geometry.capacity()) else {
            return Vec::new();
        };
        match &self.geometry {
            Geometry::Parity(parity) => {
                let (stripe, column, within) = parity.locate(at);
                vec![(parity.slot_of(stripe, column), parity.member_lba(stripe, within))]
            }
            Geometry::Mirror(mirror) => mirror.copies(at).map(|copy| (copy.slot, copy.lba)).collect(),
            _ => {
                let holds = |piece: &&Piece| piece.at <= at && at < piece.at + piece.len;
                let piece = self.pieces.iter().find(holds);
                piece.map(|piece| (piece.slot, MemberLba(piece.lba.0 + at.0 - piece.at.0))).into_iter().collect()
            }
        }
    }

    /// Whether a sector of the array is in a suspect row.
    #[must_use]
    pub fn suspects(&self, sector: u64) -> bool {
        self.has_in(&self.suspect, sector)
    }

    /// Whether a sector of the array is in a row in doubt of a parity set.
    #[must_use]
    pub fn doubts(&self, sector: u64) -> bool {
        self.has_parity() && self.has_in(&self.doubt, sector)
    }

    fn has_in(&self, rows: &SectorSet, sector: u64) -> bool {
        let mut slots = (0..self.geometry.members()).map(Slot);
        slots.any(|slot| rows.iter().any(|row| self.of_row(slot, row).contains(&sector)))
    }

    /// The place of an array's sector in this set, if the set has it.
    fn inside(&self, sector: u64) -> Option<SetLba> {
        let Some(outer) = self.outer else { return Some(SetLba(sector)) };
        let chunk = outer.chunk.get();
        let (turn, within) = (sector / chunk, sector % chunk);
        (turn % outer.spans == outer.span).then(|| SetLba(outer.start.get() + turn / outer.spans * chunk + within))
    }

    /// The array's sector at this place of the set.
    fn outside(&self, at: SetLba) -> Option<u64> {
        let Some(outer) = self.outer else { return Some(at.0) };
        let at = at.0.checked_sub(outer.start.get())?;
        let chunk = outer.chunk.get();
        Some((at / chunk * outer.spans + outer.span) * chunk + at % chunk)
    }
}

/// The position up to which the next start may take a member as filled, according to its drive alone; `None` for a full
/// member. A superblock that is being written may have any position.
fn filled_to(world: &World, place: &MemberPlace) -> Option<MemberLba> {
    match (place.standing, superblock_on(world, place.drive)) {
        (MemberStanding::Full, _) => None,
        (MemberStanding::Filling, Some(superblock)) => {
            let data = superblock.data_offset..superblock.data_offset + superblock.data_size;
            let mut changing = world.drive(place.drive).commands_that_change();
            let is_changing = changing.any(|command| !data.contains(&command.lba));
            superblock.recovery_offset().filter(|_| !is_changing)
        }
        (MemberStanding::Filling | MemberStanding::Out, _) => Some(MemberLba(0)),
    }
}

/// The largest data area.
fn extent(world: &World, array: ArrayId, geometry: &Geometry) -> Sectors {
    let members = world.status(array).expect("the array runs").members;
    let sizes = members.iter().filter_map(|member| member.drive).map(|drive| match superblock_on(world, drive) {
        Some(superblock) => superblock.data_size,
        None => geometry.capacity(),
    });
    sizes.max().unwrap_or(Sectors::ZERO)
}

/// The pieces of a layout with one copy, in order.
fn pieces(geometry: &Geometry) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), SetLba(0));
    while at.offset() < geometry.capacity() {
        let fragment = match geometry {
            Geometry::Passthrough(map) => map.map(at),
            Geometry::Linear(map) => map.map(at),
            Geometry::Striped(map) => map.map(at),
            Geometry::Mirror(_) | Geometry::Parity(_) => break,
        };
        pieces.push(Piece { at, slot: fragment.slot, lba: fragment.lba, len: fragment.len });
        at += fragment.len;
    }
    pieces
}
