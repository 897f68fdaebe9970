//! Bringing superblocks, bitmap pages and bad-block logs to the members.

use openraid_format::{
    BadBlockTable, BitmapHeader, DeviceRole, FeatureMap, Superblock, Timestamp, BITMAP_HEADER_BYTES,
    SUPERBLOCK_BYTES_MAX,
};
use openraid_units::{Bytes, DriveLba, Sectors, SetId, SECTOR_SHIFT};

use super::bad_blocks::writable_log;
use super::member::Member;
use super::metadata::Wave;
use super::set::{Life, Set};
use super::write_intent_bitmap::{Bitmap, PAGE_BYTES};
use crate::actions::{Data, DriveOp, IoClass, MetadataRange};
use crate::array::awaited_changes::AwaitedChange;
use crate::array::sets::{Sets, Signal};
use crate::call::Call;
use crate::events::CommandError;
use crate::events::DriveError;
use crate::io::state::command::{ChannelCommand, Owner};
use crate::reason::FailReason;
use crate::set_status::{Health, MemberState};

/// The superblock of one member: the common part as fixed for this generation, and the member's own.
pub(crate) fn member_superblock(common: &Superblock, member: &Member) -> Superblock {
    let of_member = member.superblock.as_ref().expect("members of sets with metadata have a superblock");
    let mut superblock = common.clone();
    superblock.minor = of_member.minor;
    superblock.data_offset = of_member.data_offset;
    superblock.data_size = of_member.data_size;
    superblock.super_offset = of_member.super_offset;
    superblock.dev_number = of_member.dev_number;
    superblock.device_uuid = of_member.device_uuid;
    superblock.device_flags = of_member.device_flags;
    superblock.bad_blocks = of_member.bad_blocks;
    superblock.corrected_reads = of_member.corrected_reads;
    superblock.unassigned = of_member.unassigned;
    superblock.bitmap_or_ppl = of_member.bitmap_or_ppl;
    superblock.features.set(FeatureMap::REPLACEMENT, of_member.features.contains(FeatureMap::REPLACEMENT));
    superblock.features.set(FeatureMap::BAD_BLOCKS, member.bad.is_announced());
    superblock.set_new_data_offset(member.new_start());
    superblock.set_recovery_offset(of_member.recovery_offset());
    superblock
}

/// The place of a page of the bitmap on a member; `None` if the member keeps no bitmap.
fn bitmap_page_lba(member: &Member, page: usize) -> Option<DriveLba> {
    let superblock = member.superblock.as_ref().filter(|_| member.is_active())?;
    let start = superblock.place(superblock.bitmap_offset()?)?;
    Some(start + Bytes((page * PAGE_BYTES) as u64).sectors_floor())
}

impl Set {
    /// Bring the common superblock in line with the state of the set, for the next generation.
    fn update_common(&mut self, wall_clock: u64, events_step: u64) {
        let resync = self.resync_mark();
        let (journal, behind) = self.journal.mark();
        // Data that a change of shape moves, and writes to the other side, set no bits of the rows that they will have. A member
        // that lacks the change must not return by the bits, although the shape can be the same again.
        let is_bitmap_new = self.health() == Health::Optimal || self.shape.is_changing();
        let Some(metadata) = &mut self.metadata else { return };
        metadata.record_absence();
        let common = &mut metadata.common;
        common.events += events_step;
        common.resync_offset = resync;
        common.set_journal(journal, behind);
        common.updated = Timestamp::new(wall_clock, 0);
        // A device number may be used again after its drive was removed. The member that has the number now decides.
        for number in self.members.iter().filter(|member| member.is_removed()).filter_map(Member::number) {
            if (number as usize) < common.roles.len() {
                common.roles.set(number as usize, DeviceRole::Faulty);
            }
        }
        for member in self.members.iter_mut().filter(|member| !member.is_removed()) {
            let (slot, is_replacement) = (member.slot(), member.is_replacement());
            let Some(superblock) = member.superblock.as_mut() else { continue };
            let number = superblock.dev_number as usize;
            let role = match member.state {
                MemberState::InSync | MemberState::Rebuilding { .. } => {
                    slot.map_or(DeviceRole::Spare, DeviceRole::Active)
                }
                MemberState::Spare | MemberState::Missing => DeviceRole::Spare,
                MemberState::Failing(_) | MemberState::Faulty(_) => DeviceRole::Faulty,
            };
            if number < common.roles.len() {
                common.roles.set(number, role);
            }
            superblock.features.set(FeatureMap::REPLACEMENT, is_replacement);
            superblock.set_recovery_offset(match member.state {
                // A complete replacement has no position.
                MemberState::Rebuilding { to } if to != Sectors::MAX => Some(openraid_units::MemberLba(to.get())),
                _ => None,
            });
        }
        if let Some(bitmap) = &mut self.bitmap {
            if let Ok(mut header) = BitmapHeader::decode(bitmap.header()) {
                header.events = common.events;
                if is_bitmap_new {
                    header.events_cleared = common.events;
                }
                let mut bytes = [0; BITMAP_HEADER_BYTES];
                header.encode(&mut bytes);
                bitmap.set_header(&bytes);
            }
        }
        let mut snapshot = common.clone();
        snapshot.features.set(metadata.marks(), true);
        metadata.snapshot = snapshot;
    }

    /// Is an operation of the set, or a command of its own, under way? When it ends, it needs the set.
    pub(crate) fn is_busy(&self) -> bool {
        let of_bitmap = self.bitmap.as_ref().map_or(0, Bitmap::flushes);
        let flushes = self.mark.flushes() + of_bitmap + self.journal.flushes();
        self.ops().all() > 0
            || flushes > 0
            || self.tasks.has_flushes()
            || self.journal.is_redoing()
            || self.ppl.as_ref().is_some_and(|ppl| ppl.is_busy())
            || self.metadata.as_ref().is_some_and(|metadata| metadata.pending > 0)
            || self.bitmap.as_ref().is_some_and(Bitmap::is_writing)
            || self.members.iter().any(|member| member.bad.writing)
    }
}

impl Sets {
    /// Write metadata with FUA: the first `len` bytes, or as many more as the drive's block needs.
    pub(crate) fn write_metadata(
        &mut self,
        (id, index): (SetId, usize),
        owner: Owner,
        lba: DriveLba,
        (bytes, len): (&[u8], usize),
        call: &mut Call,
    ) {
        let member = &self.get(id).members[index];
        let (drive, slot) = (member.drive, member.slot().unwrap_or_default());
        let block = call.channels().get(drive).map_or(512, |c| c.info().block.bytes().get());
        let len = (len as u64).next_multiple_of(block);
        let start = u32::try_from(call.actions().metadata.len()).expect("the arena is small");
        let narrow = usize::try_from(len).expect("at most a page");
        call.actions().metadata.extend_from_slice(&bytes[..narrow]);
        let range = MetadataRange { start, len: u32::try_from(len).expect("at most a page") };
        let member_index = u32::try_from(index).expect("few members");
        let command = ChannelCommand::new(owner, id, member_index, slot, drive)
            .doing(DriveOp::Write { fua: true }, (lba, Bytes(len).sectors_floor()), Data::Metadata(range))
            .of_class(IoClass::Metadata);
        call.push(&command);
    }
    /// Flush all members of a set for its own purposes. Returns the number of flushes that were issued.
    pub(crate) fn flush_members(&mut self, id: SetId, owner: Owner, call: &mut Call) -> u32 {
        let mut issued = 0;
        for index in 0..self.get(id).members.len() {
            if !self.begin_flush(id, index) {
                continue;
            }
            let member = &self.get(id).members[index];
            let member_index = u32::try_from(index).expect("few members");
            let command = ChannelCommand::new(owner, id, member_index, member.slot().unwrap_or_default(), member.drive);
            // A new flush command.
            call.push(&command.of_class(IoClass::Metadata));
            issued += 1;
        }
        issued
    }
    /// Does this member need a flush for the data that was written so far? If so, a flush is counted.
    ///
    /// A flush that is under way may have been issued before the last write, so another one is needed then.
    pub(crate) fn begin_flush(&mut self, set: SetId, member: usize) -> bool {
        let member = &mut self.get_mut(set).members[member];
        if !member.is_active() || !(member.unflushed || member.flushing > 0) {
            return false;
        }
        member.unflushed = false;
        member.flushing += 1;
        member.counters.flushes += 1;
        true
    }

    /// Advance a set's metadata; true if something was issued or became durable.
    pub(crate) fn pump_metadata(&mut self, id: SetId, call: &mut Call) -> bool {
        // Whole seconds, rounded down once, as Linux writes them.
        let wall_clock = call.unix_seconds();
        let set = self.get_mut(id);
        if set.life == Life::Failed {
            return false;
        }
        let mut moved = false;
        if set.metadata.as_ref().is_some_and(super::metadata::Metadata::may_begin) {
            let metadata = set.metadata.as_mut().expect("just seen");
            let step = metadata.begin();
            set.update_common(wall_clock, step);
            set.journal.note_recorded(call.now());
            moved = true;
        }
        moved |= self.pump_bitmap_pages(id, call);
        let set = self.get_mut(id);
        let header_durable = set.bitmap.as_ref().is_none_or(Bitmap::lets_superblocks_go);
        if set.metadata.as_ref().is_some_and(|m| m.wave == Wave::Header) && header_durable {
            self.begin_waves(id, call);
            moved = true;
        }
        moved | self.pump_bad_blocks(id, call)
    }

    /// Issue the first superblocks of a generation: that of a drive that joins with it goes before all others.
    fn begin_waves(&mut self, id: SetId, call: &mut Call) {
        let metadata = self.get_mut(id).metadata.as_mut().expect("waves are of sets with metadata");
        match metadata.joining.filter(|joining| metadata.writing >= joining.generation) {
            Some(joining) => {
                metadata.wave = Wave::Joining;
                self.write_superblock(id, joining.index, call);
            }
            None => self.begin_wave(id, Wave::First, call),
        }
    }

    /// Issue the superblocks of one wave: the first half of the members, then the others. The first wave decides which
    /// members are in which wave. Members of it may fail meanwhile, and the others must not count as written.
    fn begin_wave(&mut self, id: SetId, wave: Wave, call: &mut Call) {
        let set = self.get_mut(id);
        let count = set.members.iter().filter(|m| m.has_metadata()).count();
        let mut with_metadata = (0..).zip(&set.members).filter(|(_, m)| m.has_metadata()).map(|(index, _)| index);
        let last_of_first = with_metadata.nth(count.div_ceil(2).saturating_sub(1));
        let metadata = set.metadata.as_mut().expect("waves are of sets with metadata");
        metadata.wave = wave;
        if wave == Wave::First {
            metadata.second_from = last_of_first.map_or(0, |index: usize| index + 1);
        }
        let second_from = metadata.second_from;
        let joining = metadata.joining.map(|joining| joining.index);
        for index in 0..self.get(id).members.len() {
            let mine = (index < second_from) == (wave == Wave::First);
            if mine && joining != Some(index) && self.get(id).members[index].has_metadata() {
                self.write_superblock(id, index, call);
            }
        }
        self.end_wave_if_done(id, call);
    }

    fn write_superblock(&mut self, id: SetId, index: usize, call: &mut Call) {
        let set = self.get_mut(id);
        let metadata = set.metadata.as_mut().expect("waves are of sets with metadata");
        let superblock = member_superblock(&metadata.snapshot, &set.members[index]);
        metadata.pending += 1;
        let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
        let len = superblock.encode(&mut bytes);
        let lba = superblock.super_offset;
        self.write_metadata((id, index), Owner::Superblock, lba, (&bytes, len), call);
    }

    fn end_wave_if_done(&mut self, id: SetId, call: &mut Call) {
        let set = self.get_mut(id);
        let failed = set.has_failed();
        let metadata = set.metadata.as_mut().expect("waves are of sets with metadata");
        if metadata.pending > 0 {
            return;
        }
        if failed {
            // Nothing is recorded any more: not even the failure of a member that this generation was for.
            metadata.wave = Wave::Idle;
            return;
        }
        match metadata.wave {
            Wave::Joining => {
                let joining = metadata.joining.expect("it joins");
                if joining.is_refused {
                    metadata.wave = Wave::Idle;
                    set.take_back_joining(joining);
                    self.changed(id, AwaitedChange::Marks);
                    self.signal(Signal::ShapeChanged(id));
                    // Requests waited for the new shape.
                    self.signal(Signal::Changed);
                    self.look();
                } else {
                    self.begin_wave(id, Wave::First, call);
                }
            }
            Wave::First => self.begin_wave(id, Wave::Second, call),
            Wave::Second => {
                metadata.wave = Wave::Idle;
                metadata.durable = metadata.writing;
                metadata.joining = metadata.joining.filter(|joining| joining.generation > metadata.durable);
                self.changed(id, AwaitedChange::Marks);
                self.on_generation_durable(id);
            }
            Wave::Idle | Wave::Header => {}
        }
    }

    fn pump_bitmap_pages(&mut self, id: SetId, call: &mut Call) -> bool {
        let mut moved = false;
        loop {
            let set = self.get_mut(id);
            let Some(bitmap) = &mut set.bitmap else { return moved };
            if !call.check_room() {
                self.look();
                return moved;
            }
            let Some(page) = bitmap.next_page() else { return moved };
            let mut bytes = [0; PAGE_BYTES];
            bytes.copy_from_slice(bitmap.page(page));
            let count = set.members.iter().filter(|m| bitmap_page_lba(m, page).is_some()).count();
            bitmap.page_issued(page, u16::try_from(count).expect("few members"));
            let number = u32::try_from(page).expect("a bitmap has few pages");
            for index in 0..self.get(id).members.len() {
                if let Some(lba) = bitmap_page_lba(&self.get(id).members[index], page) {
                    self.write_metadata((id, index), Owner::BitmapPage(number), lba, (&bytes, PAGE_BYTES), call);
                }
            }
            moved = true;
        }
    }

    fn pump_bad_blocks(&mut self, id: SetId, call: &mut Call) -> bool {
        let mut moved = false;
        for index in 0..self.get(id).members.len() {
            let member = &mut self.get_mut(id).members[index];
            if !member.bad.dirty || member.bad.writing || !member.has_metadata() {
                continue;
            }
            if !call.check_room() {
                self.look();
                return moved;
            }
            let member = &mut self.get_mut(id).members[index];
            member.bad.dirty = false;
            let superblock = member.superblock.as_ref().expect("members with metadata have a superblock");
            let Some(log) = writable_log(superblock) else { continue };
            let Some(lba) = superblock.place(log.offset) else { continue };
            let mut table = BadBlockTable::new();
            for bad in member.bad.ranges() {
                let range = openraid_format::BadBlockRange { start: bad.at(), len: bad.len() };
                table.push(range).expect("as many as fit");
            }
            let mut bytes = [0; PAGE_BYTES];
            let len = (usize::from(log.size) << SECTOR_SHIFT).min(PAGE_BYTES);
            table.encode(log.shift, &mut bytes[..len]).expect("ranges are in sectors");
            self.get_mut(id).members[index].bad.writing = true;
            self.write_metadata((id, index), Owner::BadBlocks, lba, (&bytes, len), call);
            moved = true;
        }
        moved
    }

    /// A command of a set itself ended: if the member refused the command, the member fails.
    pub(crate) fn on_set_command(
        &mut self,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
        call: &mut Call,
    ) {
        let id = command.set();
        if command.is_flush() {
            self.get_mut(id).members[command.member() as usize].flushing -= 1;
        }
        let joins = |set: &mut Set| command.owner() == Owner::Superblock && set.refuse_joining(command.member());
        if let Err(error) = result {
            if joins(self.get_mut(id)) {
                return;
            }
            let reason = match error {
                CommandError::Timeout => FailReason::Timeout,
                CommandError::Drive(DriveError::Gone) => FailReason::Gone,
                CommandError::Drive(_) if command.is_flush() => FailReason::FlushFailed,
                CommandError::Drive(DriveError::NoSpace) => FailReason::NoSpace,
                CommandError::Drive(DriveError::ReadOnly) => FailReason::ReadOnly,
                CommandError::Drive(_) => FailReason::WriteError,
            };
            let failed = self.fail_member((id, command.member()), reason, call);
            if !failed && !command.is_flush() {
                self.note_stale_metadata(id, command.member(), call);
            }
        }
    }

    /// Record what a command of a set itself has written.
    pub(crate) fn on_metadata_written(&mut self, command: &ChannelCommand, is_written: bool, call: &mut Call) {
        let id = command.set();
        let set = self.get_mut(id);
        match command.owner() {
            Owner::Superblock => {
                set.metadata.as_mut().expect("it was written").pending -= 1;
                self.end_wave_if_done(id, call);
            }
            Owner::BitmapPage(page) => {
                // A set that has become RAID 0 has no bitmap any longer.
                set.bitmap.iter_mut().for_each(|bitmap| _ = bitmap.page_written(page as usize));
                self.changed(id, AwaitedChange::Bits);
            }
            Owner::BadBlocks => {
                let member = &mut set.members[command.member() as usize];
                if is_written && member.bad.store() {
                    // From now on the superblock may say that there is a log, and work that depends on the log waits
                    // for that superblock.
                    set.metadata.as_mut().expect("it has a log").request_distrust();
                }
                let member = &mut set.members[command.member() as usize];
                member.bad.writing = false;
                member.bad.urgent &= member.bad.dirty;
                self.changed(id, AwaitedChange::Marks);
            }
            Owner::CleanFlush => set.mark.end_flush(),
            Owner::SessionFlush => set.journal.flush_ended(),
            _ => unreachable!("these go elsewhere"),
        }
    }
}
