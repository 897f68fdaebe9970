//! The devices of the journal, and the commands to them.

use openraid_format::{JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES};
use openraid_units::{ArrayId, DriveId, DriveLba, Sectors};

use super::Journal;
use crate::actions::{Data, DriveOp, IoClass, MetadataRange, Notice, NoticeKind};
use crate::call::Call;
use crate::io::state::command::WindowUser;
use crate::io::state::command::{ChannelCommand, Hold, Owner};
use crate::io::state::command::{JournalWork, JournalWrite};

/// Commands that one step may need at once: a step begins only if the table of commands has room for them.
const COMMANDS: u32 = 16;

/// A device that carries the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    pub(super) drive: DriveId,
    /// Its number in the superblock.
    pub(super) mirror: u8,
    /// Its number when the present generation of the superblock began. Both copies of the superblock get this number.
    pub(super) written_as: u8,
    pub(super) state: DeviceState,
}

impl Device {
    /// A device with this number in the superblock.
    pub(super) const fn new(drive: DriveId, mirror: u8, state: DeviceState) -> Self {
        Self { drive, mirror, written_as: mirror, state }
    }
}

/// The part of a device in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeviceState {
    /// It works, and has everything.
    Works,
    /// It is being brought up to date: see [`join`](super::join).
    Joins,
    /// It failed, and its drive still belongs to the journal.
    Dropped,
    /// It failed, and its drive was released.
    Released,
}

impl DeviceState {
    pub(super) fn works(self) -> bool {
        self == Self::Works
    }

    /// Does its drive belong to the journal?
    pub(super) fn is_claimed(self) -> bool {
        self != Self::Released
    }
}

/// Has the table of commands room for a step of the journal?
pub(super) fn has_room(call: &Call) -> bool {
    call.channels().room() >= COMMANDS
}

/// Leave a notice about the journal.
pub(super) fn notice_journal(call: &mut Call, drive: Option<DriveId>, kind: NoticeKind) {
    let at = call.now();
    call.actions().notice(Notice { at, array: ArrayId(0), slot: None, drive, kind });
}

impl Journal {
    /// The first device from this number on that works.
    pub(super) fn working_from(&self, first: usize) -> Option<usize> {
        (first..self.devices.len()).find(|number| self.devices[*number].state.works())
    }

    /// The number of the device on this drive.
    pub(crate) fn device_of(&self, drive: DriveId) -> Option<usize> {
        self.devices.iter().position(|device| device.drive == drive && device.state.is_claimed())
    }

    /// The drives that belong to the journal.
    pub(super) fn claimed(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| device.state.is_claimed())
    }

    /// A device has failed. If it was in use, returns its drive, and whether the journal continues on the other one.
    pub(super) fn take_out(&mut self, number: usize) -> Option<(DriveId, bool)> {
        let device = self.devices.get_mut(number)?;
        let (drive, state) = (device.drive, device.state);
        if !matches!(state, DeviceState::Works | DeviceState::Joins) {
            return None;
        }
        device.state = DeviceState::Dropped;
        let continues = self.has_working_device();
        match state {
            DeviceState::Joins if continues => _ = self.leave_out(),
            _ if continues => self.go_alone(),
            _ => {}
        }
        Some((drive, continues))
    }

    /// Write one block to all devices that take new entries.
    pub(super) fn write_block(&mut self, work: JournalWrite, at: DriveLba, bytes: &[u8], call: &mut Call) {
        for number in 0..self.devices.len() {
            if self.is_written(number) {
                self.write_block_to(number, work, at, bytes, call);
            }
        }
    }

    /// Write one block to a device.
    pub(super) fn write_block_to(
        &mut self,
        number: usize,
        work: JournalWrite,
        at: DriveLba,
        bytes: &[u8],
        call: &mut Call,
    ) {
        let start = u32::try_from(call.actions().metadata.len()).expect("the arena is small");
        call.actions().metadata.extend_from_slice(bytes);
        assert_eq!(bytes.len(), JOURNAL_BLOCK_BYTES, "the journal is written in blocks");
        let len = u32::try_from(JOURNAL_BLOCK_BYTES).expect("a page");
        let range = MetadataRange { start, len };
        self.write_to_device(number, work, (at, JOURNAL_ALIGN), Data::Metadata(range), call);
    }

    /// Write to all devices that take new entries.
    pub(super) fn write_to_devices(
        &mut self,
        work: JournalWrite,
        place: (DriveLba, Sectors),
        data: Data,
        call: &mut Call,
    ) {
        for number in 0..self.devices.len() {
            if self.is_written(number) {
                self.write_to_device(number, work, place, data, call);
            }
        }
    }

    /// Write to a device.
    pub(super) fn write_to_device(
        &mut self,
        number: usize,
        work: JournalWrite,
        place: (DriveLba, Sectors),
        data: Data,
        call: &mut Call,
    ) {
        match work {
            JournalWrite::Group => self.flying.pending += 1,
            JournalWrite::Superblock => self.writing.issued(),
            JournalWrite::Spill => self.spill.issued(),
            JournalWrite::Join => self.join.issued(),
        }
        let hold = match (work, data) {
            (_, Data::None | Data::Metadata(_)) => None,
            (JournalWrite::Group, Data::Frames(_)) => Some(Hold::Journal(self.flying.buffer)),
            (_, Data::Frames(_)) => Some(Hold::Window),
        };
        let class = if work == JournalWrite::Join { IoClass::Rebuild } else { IoClass::Metadata };
        let command = self.command_to(number, JournalWork::Write(work));
        call.push(&command.doing(DriveOp::Write { fua: true }, place, data).of_class(class).holding(hold));
    }

    /// Read from a device into the window.
    pub(super) fn read_into_window(
        &mut self,
        user: WindowUser,
        number: usize,
        place: (DriveLba, Sectors),
        call: &mut Call,
    ) {
        let class = if user == WindowUser::Join { IoClass::Rebuild } else { IoClass::Metadata };
        let command = self.command_to(number, JournalWork::Window(user));
        let into = Data::Frames(self.window_of(user));
        call.push(&command.doing(DriveOp::Read, place, into).of_class(class).holding(Some(Hold::Window)));
    }

    /// A command to a device, for this purpose.
    #[inline(always)]
    pub(crate) fn command_to(&self, number: usize, work: JournalWork) -> ChannelCommand {
        let member = u32::try_from(number).expect("two at most");
        ChannelCommand::to_journal(Owner::Journal(work), member, self.devices[number].drive)
    }
}
