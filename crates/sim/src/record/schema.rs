//! The encoding of each value of a record. New variants get new codes; a code is never used again.

use openraid_core::admin::{
    AdminCommand, FoundEntry, FoundJournal, KeptEntry, MirrorRule, NewMember, PartialWritePolicy, Policy, ReadAhead,
    WriteCache,
};
use openraid_core::array::assemble::{
    layout_of, Assembly, FoundGuard, PlannedBitmap, PlannedMember, PlannedPpl, PplRedo,
};
use openraid_core::array::membership::Membership;
use openraid_core::array::used_size::UsedSize;
use openraid_core::array::BadRange;
use openraid_core::check_results::ScrubMode;
use openraid_core::events::{BlockRequest, Completion, DriveError, DriveInfo, HostGone, ParityVerdict, RequestKind};
use openraid_core::limits::Limits;
use openraid_core::slot_set::SlotSet;
use openraid_format::{
    BadBlockPlace, BitmapHeader, BitmapState, BitmapVersion, DeviceFlags, DeviceRole, FeatureMap, JournalReached,
    JournalRecord, JournalSuperblock, LogPlace, MdLevel, MinorVersion, Reshape, RingSector, RoleTable, SetName,
    ShapeFields, Superblock, SuperblockCopy, Timestamp, Unassigned, Uuid, JOURNAL_BLOCK_BYTES, ROLES_MAX,
};
use openraid_units::{
    ArrayId, ArrayOffset, BlockSize, Bytes, DriveId, DriveLba, Instant, MemberLba, Nanos, Sectors, SetLba, Slot,
    StripeIndex, Tag, Token,
};

use super::codec::{choice, fields, put_number, wrapper, Codec, DecodeError, Input};
use super::RecordEntry;

wrapper!(
    ArrayId,
    ArrayOffset,
    BitmapState,
    Bytes,
    DeviceFlags,
    DriveId,
    DriveLba,
    FeatureMap,
    Instant,
    MemberLba,
    Nanos,
    RingSector,
    Sectors,
    SetLba,
    SetName,
    Slot,
    StripeIndex,
    Tag,
    Timestamp,
    Token,
    Uuid,
);

/// Pass the fields of a [`Policy`] to a macro, in the order of recorded and saved runs. A new setting comes last.
macro_rules! policy_fields {
    ($then:ident) => {
        $then! {
            partial_write, rebuild_rate, rebuild_minimum, scrub_rate, background_depth, write_cache, read_cache, sorting, read_ahead,
            read_ahead_max, mirror_read, split_above, split_section, split_streams, adaptive
        }
    };
}
pub(crate) use policy_fields;

macro_rules! policy {
    ($($field:ident),*) => {
        fields! { Policy { $($field,)* } }
    };
}
policy_fields!(policy);

fields! {
    BlockRequest { token, array, kind, offset, len }
    DriveInfo { capacity, block, rotational, discard, discard_zeroes, write_zeroes, room_wait, flush_waits }
    NewMember { drive, superblock, returning }
    BadRange { at, len }
    LogPlace { sequence, position }
    FoundEntry { position, sectors, tail, records }
    KeptEntry { sequence, at, entry }
    FoundJournal { devices, superblock, tail, head, epoch, entries, kept }
    PlannedMember { drive, superblock, verdict, bad }
    PlannedBitmap { header, bits, valid, alike }
    PlannedPpl { redo, generation, covers, dirty, force }
    PplRedo { slot, at, stripe, lo, hi, first, columns, checksum }
    BadBlockPlace { shift, size, offset }
    ShapeFields { level, layout, chunk, raid_disks }
    Reshape { new_level, position, delta_disks, new_layout, new_chunk, new_offset }
    Unassigned { pad_12, pad_228 }
    JournalReached { entry, generation }
    BitmapHeader {
        version, set_uuid, events, events_cleared, sync_size, state, chunk, daemon_sleep, write_behind,
        sectors_reserved, nodes, cluster_name,
    }
    Superblock {
        minor, features, set_uuid, set_name, created, level, layout, size, chunk, raid_disks, bitmap_or_ppl, reshape,
        data_offset, data_size, super_offset, recovery_or_tail, dev_number, corrected_reads, device_uuid,
        device_flags, bad_blocks, updated, events, resync_offset, logical_block_size, roles, journal,
        journal_reached, unassigned,
    }
    Limits {
        pool, work, requests_max, pieces_max, piece_bytes_max, ops_max, commands_max, drive_depth_max, drives_max,
        rows_max, command_timeout, clean_delay, bitmap_clear_delay, checkpoint_interval,
        position_interval, media_errors_max,
        trace_entries, cache, dirty_max_percent, dirty_high_percent, dirty_low_percent, destage_delay,
        destage_units_max, queue_age_max, journal, journal_entries_max,
        destage_beside_reads, destage_zones, destage_units_calm, background_unit_max, background_window_max,
        background_skips_max, range_piece_bytes_max,
    }
}

choice!(RequestKind {
    0 => Read,
    1 => Write { fua },
    2 => Flush,
    3 => Trim { fua },
    4 => WriteZeroes { fua, may_discard },
});
choice!(DriveError {
    0 => Media { lba },
    1 => Gone,
    2 => Protocol,
    3 => FlushFailed,
    4 => NoSpace,
    5 => ReadOnly,
    6 => Unsupported,
});
choice!(ParityVerdict {
    0 => Done,
    1 => Match,
    2 => PWrong,
    3 => QWrong,
    4 => ColumnWrong(column),
    5 => Unknown,
    6 => Checksum(crc),
});
choice!(Completion {
    0 => Drive { tag, result },
    1 => Transfer { tag, result },
    2 => Job { tag, verdict },
});
choice!(WriteCache {
    0 => Through,
    1 => Volatile,
    2 => Journal,
});
choice!(ReadAhead {
    0 => None,
    1 => Always,
    2 => Adaptive,
});
choice!(MirrorRule {
    0 => Primary,
    1 => RoundRobin,
    2 => LeastPending,
    3 => NearestHead,
    4 => TwinStor,
});
choice!(PartialWritePolicy {
    0 => Fewest,
    1 => ReadModifyWrite,
});
choice!(Membership {
    0 => Member(slot),
    1 => Rebuilding(slot, to),
    2 => Replacement(slot, to),
    3 => Spare,
    4 => Stale { events, newest },
    5 => Failed,
    6 => SlotTaken(slot),
    7 => Forced(slot),
    8 => Split { events, newest },
    9 => Replaced,
});
choice!(MinorVersion {
    0 => V1_0,
    1 => V1_1,
    2 => V1_2,
});
choice!(BitmapVersion {
    3 => HostEndian,
    4 => LittleEndian,
});
choice!(ScrubMode {
    0 => Check,
    1 => Repair,
    2 => TrustData,
});
choice!(AdminCommand {
    0 => AttachDrive { drive, info },
    1 => DetachDrive { drive },
    2 => StartSet(assembly),
    3 => StartStriped { spans, superblocks },
    4 => StartPassthrough { drive },
    5 => Stop { array },
    6 => Fail { array, drive, unsynced },
    7 => Remove { array, drive },
    8 => Add { array, member },
    9 => Replace { array, slot, with },
    10 => Scrub { array, mode },
    11 => Pause { array },
    12 => Resume { array },
    13 => StopScrub { array },
    14 => SetPolicy { array, policy },
    15 => AttachJournal(found),
    16 => DetachJournal,
    17 => DiscardJournalled { set_uuid },
    18 => ResetAdaptive { array },
    19 => JoinJournal { drive, generation, epoch },
    20 => ReleaseJournalDevice,
    21 => CountHosts { array },
    22 => Rename { array, name },
    23 => Return { array, drive },
    24 => Lose { drive },
    25 => Reshape { array, new },
    26 => CancelReshape { array },
    28 => Resize { array, to },
    29 => LimitCapacity { array, to },
    30 => Append { array, member },
});
choice!(UsedSize {
    0 => Max,
    1 => Of(sectors),
});
choice!(JournalRecord {
    1 => Data { array, set_lba, sectors, payload_at },
    2 => Redo { array, slot, member_lba, sectors, payload_at },
    3 => RedoRef { array, slot, member_lba, sectors, at },
    4 => Zero { array, set_lba, sectors },
    5 => Revoke { array, set_lba, sectors },
    6 => Release { array },
    7 => Outdated { array, slot, member_lba, sectors },
});
choice!(RecordEntry {
    0 => WallClock(at_zero),
    1 => Submit(request),
    2 => Complete(completion),
    3 => Admin(token, command),
    4 => Advance(now),
});

/// Encoded as on disk.
impl Codec for JournalSuperblock {
    fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + JOURNAL_BLOCK_BYTES, 0);
        self.encode(SuperblockCopy::First, &mut out[start..]);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let bytes = input.bytes(JOURNAL_BLOCK_BYTES)?;
        Self::decode(bytes, SuperblockCopy::First).or_else(|_| input.error("a journal superblock that cannot be"))
    }
}

impl Codec for HostGone {
    fn put(&self, _: &mut Vec<u8>) {}
    fn take(_: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

impl<E: Codec> Codec for Result<(), E> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().err().is_some().put(out);
        if let Err(error) = self {
            error.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok(if bool::take(input)? { Err(E::take(input)?) } else { Ok(()) })
    }
}

impl Codec for BlockSize {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.bytes().get(), out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let bytes = input.number()?;
        Self::new(bytes).or_else(|_| input.error("a block size that no drive has"))
    }
}

impl Codec for MdLevel {
    fn put(&self, out: &mut Vec<u8>) {
        self.number().put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let number = i32::take(input)?;
        Self::from_number(number).map_or_else(|| input.error("a level that md does not have"), Ok)
    }
}

impl Codec for RoleTable {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.len() as u64, out);
        self.iter().for_each(|role| role.code().put(out));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let len = input.len()?;
        if len > ROLES_MAX {
            return input.error("more roles than a superblock holds");
        }
        let mut roles = Self::new(len);
        for index in 0..len {
            roles.set(index, DeviceRole::from_code(u16::take(input)?));
        }
        Ok(roles)
    }
}

impl Codec for SlotSet {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(u64::from(self.len()), out);
        self.iter().for_each(|slot| slot.put(out));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let mut set = Self::EMPTY;
        for slot in Vec::<Slot>::take(input)? {
            if slot.0 >= openraid_core::limits::MEMBERS_MAX {
                return input.error("a slot that no set has");
            }
            set.insert(slot);
        }
        Ok(set)
    }
}

/// The layout is not encoded: it follows from the superblocks.
impl Codec for Assembly {
    fn put(&self, out: &mut Vec<u8>) {
        self.common.put(out);
        self.members.put(out);
        self.verdicts.put(out);
        self.missing.put(out);
        self.resync_from.put(out);
        self.bitmap.put(out);
        self.ppl.put(out);
        let origin = match (self.newly_created, self.mark) {
            (true, _) => 1_u8,
            (false, FoundGuard::None) => 0,
            (false, FoundGuard::TakenBack) => 2,
            (false, FoundGuard::Kept(FeatureMap::SHAPE_GUARD)) => 3,
            (false, FoundGuard::Kept(_)) => 4,
        };
        out.push(origin);
        self.forced.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let common = Superblock::take(input)?;
        let members = Vec::<PlannedMember>::take(input)?;
        let verdicts = Codec::take(input)?;
        let missing = Codec::take(input)?;
        let resync_from = Codec::take(input)?;
        let bitmap = Codec::take(input)?;
        let ppl = Codec::take(input)?;
        let kept = FeatureMap::SHAPE_GUARD;
        let (newly_created, mark) = match input.bytes(1)? {
            [0] => (false, FoundGuard::None),
            [1] => (true, FoundGuard::None),
            [2] => (false, FoundGuard::TakenBack),
            [3] => (false, FoundGuard::Kept(kept)),
            [4] => (false, FoundGuard::Kept(kept | FeatureMap::TURN_GUARD)),
            _ => return input.error("no such origin of an array"),
        };
        let forced = Codec::take(input)?;
        let Ok((geometry, change)) = layout_of(&common, &members) else {
            return input.error("superblocks that describe no array");
        };
        Ok(Self {
            common,
            geometry,
            change,
            members,
            verdicts,
            missing,
            resync_from,
            bitmap,
            ppl,
            newly_created,
            mark,
            forced,
        })
    }
}
