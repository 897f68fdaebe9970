//! Attached members by the engine's numbers, and the path of a command to each and back.
//!
//! Members in memory answer at once, files and devices through io_uring, remote members through their sockets. No
//! command may be lost: commands for which the kernel has no room now wait here.

use std::collections::VecDeque;

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_core::occupancy::DriveLoad;
use openraid_sys::{Completed, Epoll, Errno, FaultKind, FramePool, IoEngine, MemberSlot, PoolRange, PushError};
use openraid_units::{DriveId, DriveLba, Instant, Sectors, Tag};

use crate::engine_access::Control;
use crate::limits::BUSY_PAUSE;
use crate::member::paced::{Lateness, Paced, PacedContent, Store};
use crate::member::remote::{EndedCommand, Remote, RemoteNews, Surroundings};
use crate::member::{
    self, DeviceNames, FailedCommand, KnownContent, Medium, MemberSpec, OpenedMember, Overlay, RamDisk,
};

/// The token of a remote member's socket has this in its top byte.
pub const REMOTE_CLASS: u64 = 3 << 56;

#[derive(Debug)]
enum DriveBackend {
    Disk(MemberSlot),
    Ram(RamDisk),
    Remote(Box<Remote>),
    Paced(Box<Paced>),
}

#[derive(Debug)]
struct Drive {
    spec: MemberSpec,
    info: DriveInfo,
    notes: Vec<String>,
    names: DeviceNames,
    backend: DriveBackend,
    /// All writes go here.
    overlay: Option<Overlay>,
    /// Its device was found gone, and the engine knows.
    is_lost: bool,
}

/// A drive in the status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveView {
    /// The engine's number.
    pub drive: DriveId,
    /// The member's name.
    pub member: String,
    /// The engine's facts about it.
    pub info: DriveInfo,
    /// The kernel's information about a device.
    pub names: DeviceNames,
    /// Notes about fallbacks when it was opened; for a paced member also the delay of its answers.
    pub notes: Vec<String>,
    /// The delay of a paced member's answers.
    pub lateness: Option<Lateness>,
    /// Why a remote member is not connected.
    pub trouble: Option<String>,
    /// It is remote, connected, and has every write that it acknowledged.
    pub is_back: bool,
    pub load: DriveLoad,
}

/// All attached members.
#[derive(Debug)]
pub struct ShardDrives {
    engine: IoEngine,
    table: Vec<Option<Drive>>,
    /// Index at which the search for a free number starts: a number that a user may still see on the screen is used
    /// again as late as possible.
    next: usize,
    /// Commands of files and devices, by the index of the tag.
    asked: Vec<Option<DriveCommand>>,
    /// Commands for which io_uring had no room, with their metadata.
    backlog: VecDeque<(DriveCommand, Vec<u8>)>,
    retry_at: Option<Instant>,
    completed: Vec<Completed>,
    done: Vec<EndedCommand>,
    remotes: Vec<DriveId>,
    /// The news, collected after each round.
    news: Vec<(DriveId, RemoteNews)>,
    paced: Vec<DriveId>,
    unsubmitted: bool,
    has_overlays: bool,
}

/// Why a member cannot be attached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// No number is left.
    TooManyDrives(usize),
    /// io_uring has no room.
    TooManyFiles,
    /// The kernel has no room for another socket.
    Exhausted(Errno),
}

impl std::fmt::Display for AttachError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyDrives(most) => {
                write!(f, "{most} members are attached, the most there may be; start the service with larger limits")
            }
            Self::TooManyFiles => write!(f, "no room for another file or device; detach members that are not used"),
            Self::Exhausted(error) => write!(f, "the system has no room for another connection: {error}"),
        }
    }
}
impl std::error::Error for AttachError {}

impl ShardDrives {
    /// No drives yet.
    #[must_use]
    pub fn new(engine: IoEngine, drives_max: usize, commands_max: usize) -> Self {
        Self {
            engine,
            table: (0..drives_max).map(|_| None).collect(),
            next: 0,
            asked: vec![None; commands_max],
            backlog: VecDeque::new(),
            retry_at: None,
            completed: Vec::new(),
            done: Vec::new(),
            remotes: Vec::new(),
            news: Vec::new(),
            paced: Vec::new(),
            unsubmitted: false,
            has_overlays: false,
        }
    }

    /// The I/O engine.
    #[must_use]
    pub fn engine(&self) -> &IoEngine {
        &self.engine
    }

    /// Attach a member.
    ///
    /// # Errors
    /// No room; the member is returned.
    pub fn attach(
        &mut self,
        member: OpenedMember,
        epoll: &Epoll,
        pool: &mut FramePool,
        now: Instant,
    ) -> Result<(DriveId, DriveInfo), (AttachError, Box<OpenedMember>)> {
        let count = self.table.len();
        let mut numbers = (self.next..count).chain(0..self.next.min(count));
        let free = numbers.find(|place| self.table[*place].is_none());
        let Some(drive) = free.and_then(|place| u16::try_from(place).ok()).map(DriveId) else {
            return Err((AttachError::TooManyDrives(self.table.len()), Box::new(member)));
        };
        let OpenedMember { spec, info, notes, medium } = member;
        let names = medium.names();
        let (medium, overlay) = match medium {
            Medium::Overlaid(medium) => (*medium, Some(Overlay::default())),
            medium => (medium, None),
        };
        let backend = match medium {
            Medium::Overlaid(_) => panic!("bug: a member with two overlays"),
            Medium::Ram(ram) => DriveBackend::Ram(ram),
            Medium::Disk(disk) => match self.engine.attach(std::sync::Arc::clone(&disk)) {
                Some(slot) => DriveBackend::Disk(slot),
                None => {
                    let member = OpenedMember { spec, info, notes, medium: Medium::Disk(disk) };
                    return Err((AttachError::TooManyFiles, Box::new(member)));
                }
            },
            Medium::Paced(paced) => {
                let model = paced.model(drive);
                let content = match paced.store {
                    Store::Memory(memory) => PacedContent::Memory(memory),
                    Store::File(ref file) => match self.engine.attach(std::sync::Arc::clone(file)) {
                        Some(slot) => PacedContent::File(slot),
                        None => {
                            let member = OpenedMember { spec, info, notes, medium: Medium::Paced(paced) };
                            return Err((AttachError::TooManyFiles, Box::new(member)));
                        }
                    },
                };
                self.paced.push(drive);
                DriveBackend::Paced(Box::new(Paced::new(model, content)))
            }
            Medium::Remote(mut remote) => {
                let token = REMOTE_CLASS | u64::from(drive.0);
                if let Err(error) = remote.arrive(&mut Surroundings { epoll, token, pool, now }) {
                    let member = OpenedMember { spec, info, notes, medium: Medium::Remote(remote) };
                    return Err((AttachError::Exhausted(error), Box::new(member)));
                }
                self.remotes.push(drive);
                DriveBackend::Remote(remote)
            }
        };
        self.has_overlays |= overlay.is_some();
        self.table[drive.index()] = Some(Drive { spec, info, notes, names, backend, overlay, is_lost: false });
        self.next = (drive.index() + 1) % count;
        Ok((drive, info))
    }

    /// Release a member that the engine has detached.
    ///
    /// # Panics
    /// It still has commands: the engine detaches no such drive.
    pub fn detach(&mut self, drive: DriveId, epoll: &Epoll, pool: &mut FramePool, now: Instant) {
        let gone = self.table[drive.index()].take();
        self.remotes.retain(|remote| *remote != drive);
        self.paced.retain(|paced| *paced != drive);
        match gone.map(|drive| drive.backend) {
            Some(DriveBackend::Disk(slot)) => self.let_file_go(drive, slot),
            Some(DriveBackend::Paced(paced)) => {
                if let Some(slot) = paced.file() {
                    self.let_file_go(drive, slot);
                }
            }
            Some(DriveBackend::Remote(mut remote)) => {
                remote.part_in_good_form(pool);
                remote.leave(&mut Surroundings { epoll, token: REMOTE_CLASS | u64::from(drive.0), pool, now });
            }
            Some(DriveBackend::Ram(_)) | None => {}
        }
    }

    fn let_file_go(&mut self, drive: DriveId, slot: MemberSlot) {
        let left = self.engine.detach(slot);
        assert!(left.is_ok(), "bug: drive {drive} was detached with commands outstanding: {left:?}");
    }

    /// Is the device of a drive gone? Never for a file, memory, or a remote member.
    fn is_gone(&self, drive: DriveId) -> bool {
        match self.table[drive.index()].as_ref().map(|entry| &entry.backend) {
            Some(DriveBackend::Disk(slot)) => self.engine.is_gone(*slot),
            Some(DriveBackend::Ram(_) | DriveBackend::Remote(_) | DriveBackend::Paced(_)) | None => false,
        }
    }

    /// Drives whose devices are gone since the last call.
    pub fn take_lost(&mut self) -> Vec<DriveId> {
        let numbers = (0..).map(DriveId).take(self.table.len());
        let fresh = |drive: &DriveId| self.table[drive.index()].as_ref().is_some_and(|entry| !entry.is_lost);
        let lost: Vec<DriveId> = numbers.filter(fresh).filter(|drive| self.is_gone(*drive)).collect();
        for drive in &lost {
            self.table[drive.index()].as_mut().expect("just seen").is_lost = true;
        }
        lost
    }

    /// All drives for the status.
    pub fn views(&self) -> impl Iterator<Item = DriveView> + '_ {
        (0..).map(DriveId).zip(&self.table).filter_map(|(drive, entry)| {
            let Drive { spec, info, notes, names, backend, .. } = entry.as_ref()?;
            let trouble = match backend {
                DriveBackend::Remote(remote) => remote.trouble().map(ToString::to_string),
                DriveBackend::Disk(_) | DriveBackend::Ram(_) | DriveBackend::Paced(_) => None,
            };
            let is_back = matches!(backend, DriveBackend::Remote(remote) if remote.serves());
            let lateness = match backend {
                DriveBackend::Paced(paced) => Some(paced.lateness()),
                DriveBackend::Disk(_) | DriveBackend::Ram(_) | DriveBackend::Remote(_) => None,
            };
            let notes = notes.iter().cloned().chain(lateness.map(|late| late.to_string())).collect();
            let load = DriveLoad::default();
            let names = names.clone();
            let member = spec.text.clone();
            Some(DriveView { drive, member, info: *info, names, notes, lateness, trouble, is_back, load })
        })
    }

    /// What a drive knows of a range.
    #[must_use]
    pub fn known_content(&self, drive: DriveId, lba: DriveLba, len: Sectors) -> KnownContent {
        match self.table[drive.index()].as_ref() {
            Some(Drive { backend: DriveBackend::Ram(ram), overlay: None, .. }) => ram.known_content(lba, len),
            Some(Drive { backend: DriveBackend::Paced(paced), overlay: None, .. }) => paced.known_content(lba, len),
            _ => KnownContent::Unknown,
        }
    }

    /// Begin a command of the engine; members in memory end it at once.
    #[inline]
    pub fn issue(
        &mut self,
        command: &DriveCommand,
        metadata: &[u8],
        pool: &mut FramePool,
        control: &mut Control,
        now: Instant,
    ) {
        let Some(drive) = self.table.get_mut(command.drive.index()).and_then(Option::as_mut) else {
            return control.drive_done(command.tag, Err(DriveError::Gone));
        };
        if let Some(overlay) = &mut drive.overlay {
            if let Some(result) = keep(overlay, command, metadata, pool) {
                return control.drive_done(command.tag, result);
            }
            self.asked[command.tag.index() as usize] = Some(*command);
        }
        match &mut drive.backend {
            DriveBackend::Ram(ram) => {
                let result = ram.execute(command, metadata, pool);
                if let Some(overlay) = &drive.overlay {
                    patch(overlay, command, pool);
                }
                control.drive_done(command.tag, result);
            }
            DriveBackend::Disk(slot) => {
                let slot = *slot;
                self.push(command, metadata, slot, pool, now);
            }
            DriveBackend::Paced(paced) => {
                if command.lba.offset() + command.len > drive.info.capacity {
                    return control.drive_done(command.tag, Err(DriveError::Protocol));
                }
                paced.submit(now, command, metadata, pool, &mut self.done);
                if let Some(slot) = paced.file() {
                    self.push(command, metadata, slot, pool, now);
                }
            }
            DriveBackend::Remote(remote) => {
                remote.submit(command, metadata, now);
                self.unsubmitted = true;
            }
        }
    }

    fn push(&mut self, command: &DriveCommand, metadata: &[u8], slot: MemberSlot, pool: &mut FramePool, now: Instant) {
        self.asked[command.tag.index() as usize] = Some(*command);
        match self.engine.push(pool, member::operation(command, metadata, slot)) {
            Ok(()) => self.unsubmitted = true,
            Err(PushError::Full | PushError::Helper(_)) => {
                let metadata = if matches!(command.data, Data::Metadata(_)) { metadata.to_vec() } else { Vec::new() };
                self.backlog.push_back((*command, metadata));
                self.retry_at.get_or_insert(now + BUSY_PAUSE);
            }
        }
    }

    /// Give all new commands to the kernel and the servers, and collect ended ones.
    pub fn exchange(&mut self, epoll: &Epoll, pool: &mut FramePool, control: &mut Control, now: Instant) {
        if self.unsubmitted {
            self.unsubmitted = false;
            self.submit(now);
            for drive in self.remotes.clone() {
                self.with_remote(drive, epoll, pool, now, |remote, around, done| remote.pump(around, done));
            }
        }
        if self.engine.outstanding() > 0 {
            self.reap(pool, control, now);
        }
        self.hand_over(pool, control);
    }

    fn submit(&mut self, now: Instant) {
        match self.engine.submit() {
            Ok(0) => {}
            Ok(_) => {
                // The kernel lacks memory for a moment.
                self.unsubmitted = true;
                self.retry_at.get_or_insert(now + BUSY_PAUSE);
            }
            Err(error) => panic!("the kernel's ring for member I/O is broken: {error}; restart the service"),
        }
    }

    fn reap(&mut self, pool: &mut FramePool, control: &mut Control, now: Instant) {
        let mut completed = std::mem::take(&mut self.completed);
        if let Err(error) = self.engine.reap(pool, &mut completed) {
            panic!("the kernel's ring for member I/O is broken: {error}; restart the service");
        }
        for end in completed.drain(..) {
            let tag = Tag(end.user_data);
            let result = match end.result {
                Ok(_) => {
                    self.patch_read(tag, pool);
                    Ok(())
                }
                Err(error) => {
                    let asked = self.asked[tag.index() as usize].expect("every command is noted");
                    let is_gone = self.is_gone(asked.drive);
                    if error.fault() == FaultKind::Busy && !is_gone && matches!(asked.data, Data::Frames(_)) {
                        // The drive is not at fault: the kernel lacked a resource for a moment.
                        self.backlog.push_back((asked, Vec::new()));
                        self.retry_at.get_or_insert(now + BUSY_PAUSE);
                        continue;
                    }
                    Err(member::drive_error(error, FailedCommand { op: asked.op, lba: asked.lba }, is_gone))
                }
            };
            if !self.pace_answer(tag, result, now) {
                control.drive_done(tag, result);
            }
        }
        self.completed = completed;
    }

    /// Hand the end of a command of a paced member to its model, which answers when the drive would be done; false if the
    /// member is not paced.
    fn pace_answer(&mut self, tag: Tag, result: Result<(), DriveError>, now: Instant) -> bool {
        if self.paced.is_empty() {
            return false;
        }
        let drive = self.asked[tag.index() as usize].expect("every command is noted").drive;
        match self.table[drive.index()].as_mut().map(|entry| &mut entry.backend) {
            Some(DriveBackend::Paced(paced)) => {
                paced.stored(now, tag, result, &mut self.done);
                true
            }
            _ => false,
        }
    }

    fn hand_over(&mut self, pool: &mut FramePool, control: &mut Control) {
        let mut done = std::mem::take(&mut self.done);
        for (tag, result) in done.drain(..) {
            if result.is_ok() {
                self.patch_read(tag, pool);
            }
            control.drive_done(tag, result);
        }
        self.done = done;
    }

    /// A command ended without error: if it read an overlaid member, put the kept writes over its data.
    fn patch_read(&self, tag: Tag, pool: &mut FramePool) {
        if !self.has_overlays {
            return;
        }
        let Some(command) = self.asked[tag.index() as usize].filter(|asked| asked.tag == tag) else { return };
        if let Some(overlay) = self.table[command.drive.index()].as_ref().and_then(|drive| drive.overlay.as_ref()) {
            patch(overlay, &command, pool);
        }
    }

    fn with_remote(
        &mut self,
        drive: DriveId,
        epoll: &Epoll,
        pool: &mut FramePool,
        now: Instant,
        act: impl FnOnce(&mut Remote, &mut Surroundings<'_>, &mut Vec<EndedCommand>),
    ) {
        if let Some(DriveBackend::Remote(remote)) = self.table[drive.index()].as_mut().map(|entry| &mut entry.backend) {
            let token = REMOTE_CLASS | u64::from(drive.0);
            act(remote, &mut Surroundings { epoll, token, pool, now }, &mut self.done);
            let news = remote.take_news().into_iter().map(|news| (drive, news));
            self.news.extend(news);
        }
    }

    /// News of the connections to remote members since the last call, oldest first.
    pub fn take_news(&mut self) -> Vec<(DriveId, RemoteNews)> {
        std::mem::take(&mut self.news)
    }

    /// The kernel reports an event of a remote member.
    pub fn on_remote(&mut self, drive: DriveId, epoll: &Epoll, pool: &mut FramePool, now: Instant) {
        self.with_remote(drive, epoll, pool, now, |remote, around, done| remote.on_event(around, done));
    }

    /// Is no command outstanding? Always false with a remote or paced member, because these have timers of their own.
    #[must_use]
    pub fn are_quiet(&self) -> bool {
        self.engine.outstanding() == 0 && self.backlog.is_empty() && self.remotes.is_empty() && self.paced.is_empty()
    }

    /// The time of the next call of [`ShardDrives::on_time`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let remotes = self.remotes.iter().filter_map(|drive| match self.table[drive.index()].as_ref()?.backend {
            DriveBackend::Remote(ref remote) => remote.next_deadline(),
            DriveBackend::Disk(_) | DriveBackend::Ram(_) | DriveBackend::Paced(_) => None,
        });
        let paced = self.paced.iter().filter_map(|drive| match self.table[drive.index()].as_ref()?.backend {
            DriveBackend::Paced(ref paced) => paced.next(),
            DriveBackend::Disk(_) | DriveBackend::Ram(_) | DriveBackend::Remote(_) => None,
        });
        remotes.chain(paced).chain(self.retry_at).min()
    }

    /// Carry out the actions that are due.
    pub fn on_time(&mut self, epoll: &Epoll, pool: &mut FramePool, control: &mut Control, now: Instant) {
        for drive in self.remotes.clone() {
            self.with_remote(drive, epoll, pool, now, |remote, around, done| remote.on_time(around, done));
        }
        for drive in &self.paced {
            if let Some(DriveBackend::Paced(paced)) = self.table[drive.index()].as_mut().map(|entry| &mut entry.backend)
            {
                paced.ripen(now, &mut self.done);
            }
        }
        self.hand_over(pool, control);
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.unsubmitted = true;
            for _ in 0..self.backlog.len() {
                let Some((command, metadata)) = self.backlog.pop_front() else { break };
                self.issue_again(&command, &metadata, pool, control, now);
            }
        }
    }

    /// Issue a command again for which the kernel had no room. The model of a paced member already has it.
    fn issue_again(
        &mut self,
        command: &DriveCommand,
        metadata: &[u8],
        pool: &mut FramePool,
        control: &mut Control,
        now: Instant,
    ) {
        let file = match self.table[command.drive.index()].as_ref().map(|entry| &entry.backend) {
            Some(DriveBackend::Paced(paced)) => paced.file(),
            _ => None,
        };
        match file {
            Some(slot) => self.push(command, metadata, slot, pool, now),
            None => self.issue(command, metadata, pool, control, now),
        }
    }

    /// Disconnect from the remote members.
    pub fn part(&self, pool: &FramePool) {
        for entry in self.table.iter().flatten() {
            if let DriveBackend::Remote(remote) = &entry.backend {
                remote.part_in_good_form(pool);
            }
        }
    }
}

/// Carry out a command on the overlay; `None` for reads.
fn keep(
    overlay: &mut Overlay,
    command: &DriveCommand,
    metadata: &[u8],
    pool: &FramePool,
) -> Option<Result<(), DriveError>> {
    match (command.op, command.data) {
        (DriveOp::Read, _) => None,
        (DriveOp::Flush, _) => Some(Ok(())),
        (DriveOp::Write { .. }, Data::Frames(at)) => {
            let bytes = pool.slice(PoolRange::new(at, command.len.bytes()));
            Some(overlay.write(command.lba, bytes))
        }
        (DriveOp::Write { .. }, Data::Metadata(_)) => Some(overlay.write(command.lba, metadata)),
        (DriveOp::Write { .. } | DriveOp::Discard | DriveOp::WriteZeroes { .. }, _) => {
            Some(Err(DriveError::Unsupported))
        }
    }
}

fn patch(overlay: &Overlay, command: &DriveCommand, pool: &mut FramePool) {
    if let (DriveOp::Read, Data::Frames(at)) = (command.op, command.data) {
        overlay.patch(command.lba, pool.slice_mut(PoolRange::new(at, command.len.bytes())));
    }
}
