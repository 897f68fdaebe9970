//! Drive channels: commands on their way to a drive, in order, with a depth limit and a time limit.
//!
//! A command that is not answered in time is given up: whoever asked for it is told, and its member fails. But
//! the drive may still carry it out, so it stays in the table, quarantined, and its frames stay held, until
//! the driver reports its end after all.

use alloc::vec::Vec;
use openraid_units::{DriveId, DriveLba, Instant, Nanos, Sectors, SetId, Slot, Tag, TagKind};

use crate::actions::{Actions, Data, DriveCommand, DriveOp, IoClass, MetadataRange};
use crate::events::DriveInfo;
use crate::frames::Run;
use crate::limits::METADATA_BYTES_MAX;
use crate::slab::{Slab, NONE};
use crate::slots::SlotSet;

/// Who asked for a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// An operation.
    Op(u32),
    /// The superblocks of a set.
    Superblock,
    /// A page of a set's bitmap.
    BitmapPage(u32),
    /// A member's bad-block log.
    BadBlocks,
    /// A flush before the clean mark.
    CleanFlush,
    /// A flush before bitmap bits are cleared.
    BitmapFlush,
    /// A flush before a task's progress is stored.
    CheckpointFlush,
    /// Nobody any more.
    Quarantined,
}

/// A command known to the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub owner: Owner,
    pub drive: DriveId,
    pub op: DriveOp,
    pub lba: DriveLba,
    pub len: Sectors,
    pub data: Data,
    pub class: IoClass,
    pub set: SetId,
    /// Index of the member in its set.
    pub member: u32,
    pub slot: Slot,
    /// Copies that were tried before (reads of mirrors).
    pub tried: SlotSet,
    /// Held while the command is out.
    pub hold: Option<Hold>,
    /// Metadata of a command that waits.
    pub parked: u32,
    // The channel's own bookkeeping.
    pub deadline: Instant,
    pub issued: bool,
    pub previous: u32,
    pub next: u32,
}

/// Frames that a quarantined command points at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    /// Of the host area.
    Host(Run),
    /// Of the work area.
    Work(Run),
}

impl Command {
    pub(crate) fn new(owner: Owner, set: SetId, member: u32, slot: Slot, drive: DriveId) -> Self {
        Self {
            owner,
            drive,
            op: DriveOp::Flush,
            lba: DriveLba::ZERO,
            len: Sectors::ZERO,
            data: Data::None,
            class: IoClass::Foreground,
            set,
            member,
            slot,
            tried: SlotSet::EMPTY,
            hold: None,
            parked: NONE,
            deadline: Instant::NEVER,
            issued: false,
            previous: NONE,
            next: NONE,
        }
    }
}

/// A list linked through the command table.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    fn push(&mut self, commands: &mut Slab<Command>, index: u32) {
        let command = &mut commands[index];
        command.previous = self.tail;
        command.next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            commands[self.tail].next = index;
        }
        self.tail = index;
    }

    fn remove(&mut self, commands: &mut Slab<Command>, index: u32) {
        let (previous, next) = (commands[index].previous, commands[index].next);
        if previous == NONE {
            self.head = next;
        } else {
            commands[previous].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            commands[next].previous = previous;
        }
    }
}

/// An attached drive.
#[derive(Debug)]
pub(crate) struct Channel {
    pub info: DriveInfo,
    /// The set that uses it.
    pub set: Option<SetId>,
    /// Issued and not answered, quarantined ones not counted.
    pub issued: u32,
    /// Given up and not answered.
    pub quarantined: u32,
    /// Metadata first, then the foreground, the background last.
    queues: [List; 3],
    out: List,
}

impl Channel {
    /// What the drive has to do.
    pub(crate) fn pending(&self) -> u32 {
        self.issued + self.quarantined
    }
}

/// Metadata commands of one drive that wait at the most: a superblock, a bitmap page, a bad-block log.
const PARKED_PER_DRIVE: u32 = 3;

#[derive(Debug)]
struct Parked {
    bytes: [u8; METADATA_BYTES_MAX],
    len: u32,
}

/// All drives and all their commands.
#[derive(Debug)]
pub(crate) struct Channels {
    pub drives: Vec<Option<Channel>>,
    pub commands: Slab<Command>,
    /// Bytes of metadata commands that wait: they have to outlive the actions in which they were made.
    parked: Slab<Parked>,
    depth_max: u32,
    timeout: Nanos,
    /// No command is overdue before this.
    look_at: Instant,
    /// Commands issued and not answered or given up.
    out: u32,
}

impl Channels {
    pub(crate) fn new(drives_max: u16, commands_max: u32, depth_max: u32, timeout: Nanos) -> Self {
        let mut drives = Vec::new();
        drives.resize_with(drives_max as usize, || None);
        let parked = Slab::new(PARKED_PER_DRIVE * u32::from(drives_max));
        Self { drives, commands: Slab::new(commands_max), parked, depth_max, timeout, look_at: Instant::NEVER, out: 0 }
    }

    pub(crate) fn attach(&mut self, drive: DriveId, info: DriveInfo) -> bool {
        match self.drives.get_mut(drive.index()) {
            Some(place @ None) => {
                *place = Some(Channel {
                    info,
                    set: None,
                    issued: 0,
                    quarantined: 0,
                    queues: [List::EMPTY; 3],
                    out: List::EMPTY,
                });
                true
            }
            _ => false,
        }
    }

    pub(crate) fn get(&self, drive: DriveId) -> Option<&Channel> {
        self.drives.get(drive.index())?.as_ref()
    }
    pub(crate) fn get_mut(&mut self, drive: DriveId) -> Option<&mut Channel> {
        self.drives.get_mut(drive.index())?.as_mut()
    }
    fn channel(&mut self, drive: DriveId) -> &mut Channel {
        self.drives[drive.index()].as_mut().expect("commands go to attached drives")
    }

    /// Commands that the drive has not answered, given-up ones included.
    pub(crate) fn outstanding(&self, drive: DriveId) -> u32 {
        self.get(drive).map_or(0, Channel::pending)
    }

    /// Take a command: issue it now, or when the drive has room.
    pub(crate) fn push(&mut self, now: Instant, mut command: Command, actions: &mut Actions) {
        let (drive, class) = (command.drive, command.class);
        if self.channel(drive).issued >= self.depth_max {
            if let Data::Metadata(range) = command.data {
                command.parked = self.park(range, actions);
            }
            let key = self.commands.insert(command).expect("room was asked for before commands are made");
            let queue = match class {
                IoClass::Metadata => 0,
                IoClass::Foreground | IoClass::ReadAhead => 1,
                IoClass::Destage | IoClass::Rebuild | IoClass::Scrub => 2,
            };
            let channel = self.drives[drive.index()].as_mut().expect("commands go to attached drives");
            channel.queues[queue].push(&mut self.commands, key.index);
        } else {
            let key = self.commands.insert(command).expect("room was asked for before commands are made");
            self.issue(now, key.index, actions);
        }
    }

    fn park(&mut self, range: MetadataRange, actions: &mut Actions) -> u32 {
        let mut parked = Parked { bytes: [0; METADATA_BYTES_MAX], len: range.len };
        parked.bytes[..range.len as usize].copy_from_slice(actions.metadata_of(range));
        // They were put there for this command: nobody else refers to them.
        debug_assert_eq!(actions.metadata.len(), (range.start + range.len) as usize);
        actions.metadata.truncate(range.start as usize);
        let Ok(key) = self.parked.insert(parked) else { panic!("a drive has few metadata commands at once") };
        key.index
    }

    /// The bytes of a command that waited, among the actions of now.
    fn unpark(&mut self, index: u32, actions: &mut Actions) {
        let parked = core::mem::replace(&mut self.commands[index].parked, NONE);
        if parked == NONE {
            return;
        }
        let parked = self.parked.remove(parked);
        let start = u32::try_from(actions.metadata.len()).expect("the arena is small");
        actions.metadata.extend_from_slice(&parked.bytes[..parked.len as usize]);
        self.commands[index].data = Data::Metadata(MetadataRange { start, len: parked.len });
    }

    fn issue(&mut self, now: Instant, index: u32, actions: &mut Actions) {
        self.unpark(index, actions);
        let tag = Tag::new(TagKind::Drive, index, self.commands.generation(index));
        let command = &mut self.commands[index];
        command.issued = true;
        command.deadline = now + self.timeout;
        let Command { drive, op, lba, len, data, class, .. } = *command;
        let channel = self.drives[drive.index()].as_mut().expect("commands go to attached drives");
        channel.issued += 1;
        channel.out.push(&mut self.commands, index);
        self.out += 1;
        if self.look_at == Instant::NEVER {
            self.look_at = now + self.timeout;
        }
        actions.drive.push(DriveCommand { tag, drive, op, lba, len, data, class });
    }

    /// A command was answered: takes it out of the table and lets the next one go.
    pub(crate) fn answered(&mut self, now: Instant, tag: Tag, actions: &mut Actions) -> Command {
        let key = crate::slab::Key { index: tag.index(), generation: tag.generation() };
        assert!(self.commands.holds(key), "a completion names a command that is out: {tag:?}");
        let drive = self.commands[key.index].drive;
        assert!(self.commands[key.index].issued, "a completion names a command that was issued: {tag:?}");
        if self.commands[key.index].owner == Owner::Quarantined {
            self.channel(drive).quarantined -= 1;
        } else {
            let channel = self.drives[drive.index()].as_mut().expect("commands go to attached drives");
            channel.issued -= 1;
            channel.out.remove(&mut self.commands, key.index);
            self.out -= 1;
        }
        let command = self.commands.remove(key.index);
        self.issue_next(now, drive, actions);
        command
    }

    fn issue_next(&mut self, now: Instant, drive: DriveId, actions: &mut Actions) {
        loop {
            let channel = self.drives[drive.index()].as_mut().expect("commands go to attached drives");
            if channel.issued >= self.depth_max {
                return;
            }
            let Some(queue) = channel.queues.iter_mut().find(|q| q.head != NONE) else { return };
            let index = queue.head;
            queue.remove(&mut self.commands, index);
            self.issue(now, index, actions);
        }
    }

    /// A queued command of this drive that was never issued, taken out of the table: for a drive that is gone.
    pub(crate) fn cancel_queued(&mut self, drive: DriveId) -> Option<Command> {
        let channel = self.drives[drive.index()].as_mut()?;
        let queue = channel.queues.iter_mut().find(|q| q.head != NONE)?;
        let index = queue.head;
        queue.remove(&mut self.commands, index);
        let parked = self.commands[index].parked;
        if parked != NONE {
            self.parked.remove(parked);
        }
        Some(self.commands.remove(index))
    }

    /// A command that is overdue, as it was; it is quarantined now.
    pub(crate) fn give_up_overdue(&mut self, now: Instant) -> Option<Command> {
        if now < self.look_at {
            return None;
        }
        // All commands have the same time, so the first of each drive is its oldest.
        let mut next = Instant::NEVER;
        for number in 0..self.drives.len() {
            let Some(channel) = &self.drives[number] else { continue };
            let index = channel.out.head;
            if index == NONE {
                continue;
            }
            if self.commands[index].deadline <= now {
                return Some(self.give_up(number, index));
            }
            next = next.min(self.commands[index].deadline);
        }
        self.look_at = next;
        None
    }

    fn give_up(&mut self, number: usize, index: u32) -> Command {
        let channel = self.drives[number].as_mut().expect("it has commands");
        channel.out.remove(&mut self.commands, index);
        channel.issued -= 1;
        channel.quarantined += 1;
        self.out -= 1;
        let command = self.commands[index];
        self.commands[index].owner = Owner::Quarantined;
        command
    }

    /// Give up all commands of a drive that is taken for dead, one by one.
    pub(crate) fn give_up_issued(&mut self, drive: DriveId) -> Option<Command> {
        let index = self.get(drive)?.out.head;
        (index != NONE).then(|| self.give_up(drive.index(), index))
    }

    /// Nothing is overdue before this.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.out > 0).then_some(self.look_at)
    }
}
