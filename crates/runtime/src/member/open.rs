//! Opening and probing members, each on its own thread and all at once: hanging drives, addresses that never answer and
//! members that other processes hold cost one time limit together.
//!
//! Nothing is written here, for any use of the member.

use std::fmt;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use openraid_core::actions::{Data, DriveCommand, DriveOp, IoClass};
use openraid_core::events::DriveInfo;
use openraid_format::Superblock;
use openraid_nbd::{NbdUri, Transport};
use openraid_sys::{
    clock, DeviceNames, Direct, Epoll, Events, FramePool, MemberError, MemberFile, PoolOptions, PoolRange, Use,
};
use openraid_units::{Bytes, DriveId, DriveLba, Instant, Nanos, PoolOffset, Tag, TagKind};

use super::paced::{PacedMember, Store};
use super::probe::{self, ProbeError, ProbedMember};
use super::remote::{Address, Remote, RemoteError, RemoteOptions, Surroundings};
use super::{disk, MemberSpec, Place, RamDisk};
use crate::limits::{HELD_PAUSE, HELD_TIME_MAX, LEAVING_HELD_TIME_MAX, PROBE_TIME_MAX};

/// How to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenOptions {
    /// The use.
    pub usage: Use,
    /// Bypass of the page cache.
    pub direct: Direct,
    /// Accept remote servers without flush.
    pub without_flush: bool,
    /// The engine's limit for a command, after which a remote member that is not connected has failed.
    pub command_timeout: Nanos,
    /// How long opening and looking may take.
    pub patience: Nanos,
}

impl OpenOptions {
    /// For this use, without the page cache, with the engine's default time limit.
    #[must_use]
    pub fn new(usage: Use) -> Self {
        let command_timeout = openraid_core::limits::Limits::default().command_timeout;
        Self { usage, direct: Direct::Try, without_flush: false, command_timeout, patience: PROBE_TIME_MAX }
    }

    /// A time within the time for the whole opening, so that the reason can be reported: as long as it is by default,
    /// or longer or shorter by the same factor as the whole.
    #[must_use]
    pub fn share_of(&self, time: Nanos) -> Nanos {
        let share = u128::from(time.get()) * u128::from(self.patience.get()) / u128::from(PROBE_TIME_MAX.get());
        Nanos(u64::try_from(share).unwrap_or(u64::MAX))
    }
}

/// The store of a member.
#[derive(Debug)]
pub enum Medium {
    /// A file or block device.
    Disk(Arc<MemberFile>),
    /// Memory.
    Ram(RamDisk),
    /// An export of another server.
    Remote(Box<Remote>),
    /// Memory or a file that answers as a drive would.
    Paced(Box<PacedMember>),
    /// One of the above whose writes are kept in memory.
    Overlaid(Box<Medium>),
}

impl Medium {
    /// The kernel's names for it.
    #[must_use]
    pub fn names(&self) -> DeviceNames {
        match self {
            Self::Disk(member) => {
                let facts = member.facts().clone();
                let rotates = facts.rotational.filter(|_| facts.block_device);
                let identity = Some(member.identity());
                let (model, serial) = (facts.model, facts.serial);
                DeviceNames { model, serial, zoned: facts.zoned, bay: facts.bay, rotates, identity }
            }
            Self::Overlaid(medium) => medium.names(),
            Self::Paced(member) => DeviceNames {
                rotates: Some(member.info().rotational),
                identity: member.file().map(|file| file.identity()),
                ..DeviceNames::default()
            },
            Self::Ram(_) | Self::Remote(_) => DeviceNames::default(),
        }
    }
}

#[derive(Debug)]
pub struct OpenedMember {
    pub spec: MemberSpec,
    /// The engine's facts about the drive.
    pub info: DriveInfo,
    /// Notes about fallbacks.
    pub notes: Vec<String>,
    /// The place of its bytes.
    pub medium: Medium,
}

impl OpenedMember {
    /// The file or device that has its bytes, if writes go to one.
    #[must_use]
    pub fn storage(&self) -> Option<Storage> {
        let file = match &self.medium {
            Medium::Disk(file) => file,
            Medium::Paced(paced) => match &paced.store {
                Store::File(file) => file,
                Store::Memory(_) => return None,
            },
            Medium::Ram(_) | Medium::Remote(_) | Medium::Overlaid(_) => return None,
        };
        Some(Storage { member: self.spec.text.clone(), file: Arc::clone(file) })
    }
}

/// The file or device of a member that is in use.
#[derive(Debug)]
pub struct Storage {
    member: String,
    file: Arc<MemberFile>,
}

impl Storage {
    /// Let the file system allocate space for everything around this superblock: a sparse member on a full file system
    /// must still accept the record that says it is full.
    ///
    /// # Errors
    /// In words.
    pub fn allocate_metadata(&self, superblock: &Superblock) -> Result<(), String> {
        let Some((at, len)) = superblock.metadata_extent() else { return Ok(()) };
        self.file.allocate(at, len).map_err(|error| {
            format!(
                "{}: its file system has no space for the {} of metadata ({error}); make room there, or use another member",
                self.member,
                len.bytes()
            )
        })
    }
}

/// Why a member cannot be opened. The text names it and says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// A file or device is refused.
    Local(MemberError),
    /// A remote export is refused.
    Remote {
        /// The address.
        member: String,
        error: RemoteError,
    },
    /// The text of a paced member is wrong.
    Model { member: String, why: String },
    /// It did not answer in time.
    Silent {
        member: String,
        /// The time.
        patience: Nanos,
    },
    /// It was named twice.
    Twice { member: String },
    /// It is open, but cannot be read.
    Probe { member: String, error: ProbeError },
    /// The system has no room for another thread, or no memory.
    Exhausted {
        member: String,
        /// The kernel's words.
        error: String,
    },
}

impl OpenError {
    /// Does another program or the kernel hold the file or device?
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Local(error) if is_in_use(error))
    }
}

impl OpenError {
    /// The path or address of the member.
    #[must_use]
    pub fn member(&self) -> String {
        match self {
            Self::Local(error) => error.path().display().to_string(),
            Self::Remote { member, .. }
            | Self::Model { member, .. }
            | Self::Silent { member, .. }
            | Self::Twice { member }
            | Self::Probe { member, .. }
            | Self::Exhausted { member, .. } => member.clone(),
        }
    }

    /// The fault, without the member and the remedy.
    #[must_use]
    pub fn fault(&self) -> String {
        match self {
            Self::Local(error) => error.fault(),
            Self::Remote { error, .. } => error.fault(),
            Self::Model { why, .. } => why.clone(),
            Self::Silent { patience, .. } => format!("no answer within {} s", patience.as_secs()),
            Self::Twice { .. } => "named twice".into(),
            Self::Probe { error, .. } => error.to_string(),
            Self::Exhausted { error, .. } => format!("cannot be opened just now: {error}"),
        }
    }

    /// What to do about it, if this can be said.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Local(error) => error.remedy(),
            Self::Remote { error, .. } => error.remedy(),
            Self::Silent { .. } => Some("check the drive or the server, or leave it out".into()),
            Self::Twice { .. } => Some("each member can be used once".into()),
            Self::Model { .. } | Self::Probe { .. } | Self::Exhausted { .. } => None,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.member(), self.fault())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}
impl std::error::Error for OpenError {}

fn is_in_use(error: &MemberError) -> bool {
    matches!(error, MemberError::Locked { .. } | MemberError::Busy { .. } | MemberError::HeldByKernel { .. })
}

/// Open a member on this thread. It takes as long as the drive does; see [`open_and_probe`].
///
/// # Errors
/// Why it cannot be used; nothing has been written.
pub fn open(spec: &MemberSpec, options: OpenOptions) -> Result<OpenedMember, OpenError> {
    open_telling(spec, options, &|_| {})
}

/// Receives the result of each attempt to open a file or device.
type Tell<'a> = &'a dyn Fn(&Result<MemberFile, MemberError>);

/// The same, with a receiver of the attempts.
fn open_telling(spec: &MemberSpec, options: OpenOptions, tried: Tell) -> Result<OpenedMember, OpenError> {
    let (info, notes, medium) = match &spec.place {
        Place::Path(path) => {
            let member = open_patiently(path, options, tried).map_err(OpenError::Local)?;
            let notes = member.notes().iter().map(ToString::to_string).collect();
            (disk::info(member.facts()), notes, Medium::Disk(Arc::new(member)))
        }
        Place::Ram(size) => {
            let ram = RamDisk::new(*size);
            (ram.info(), Vec::new(), Medium::Ram(ram))
        }
        Place::Model(model) => {
            let file = model.file.as_ref().map(|path| open_patiently(path, options, tried).map_err(OpenError::Local));
            let file = file.transpose()?.map(Arc::new);
            let paced = PacedMember::new(model, file);
            let paced = paced.map_err(|why| OpenError::Model { member: spec.text.clone(), why })?;
            (paced.info(), paced.notes(), Medium::Paced(Box::new(paced)))
        }
        Place::Remote(uri) => {
            let remote = open_remote(uri, options);
            let remote = remote.map_err(|error| OpenError::Remote { member: spec.text.clone(), error })?;
            let info = remote.info().expect("a member that was reached is known");
            (info, Vec::new(), Medium::Remote(Box::new(remote)))
        }
    };
    Ok(OpenedMember { spec: spec.clone(), info, notes, medium })
}

fn open_patiently(path: &Path, options: OpenOptions, tried: Tell) -> Result<MemberFile, MemberError> {
    let begun = clock::now();
    loop {
        let result = MemberFile::open(path, options.usage, options.direct);
        tried(&result);
        let patience = match &result {
            // A holder that is not found has just left, or is about to.
            Err(MemberError::Locked { is_ending: true, .. } | MemberError::Locked { owner: None, .. }) => {
                LEAVING_HELD_TIME_MAX
            }
            Err(MemberError::Locked { .. } | MemberError::Busy { .. }) => HELD_TIME_MAX,
            _ => return result,
        };
        if clock::now() >= begun + options.share_of(patience) {
            return result;
        }
        thread::sleep(Duration::from_nanos(HELD_PAUSE.get()));
    }
}

fn open_remote(uri: &NbdUri, options: OpenOptions) -> Result<Remote, RemoteError> {
    let addresses = match &uri.transport {
        Transport::Unix { socket } => vec![Address::Unix(socket.clone())],
        Transport::Tcp { host, port } => {
            let found = (host.as_str(), *port).to_socket_addrs();
            let found = found.map_err(|error| RemoteError::Unresolved(error.to_string()))?;
            found.map(Address::Tcp).collect()
        }
    };
    if addresses.is_empty() {
        return Err(RemoteError::Unresolved("it has no address".into()));
    }
    let attempts = addresses.len();
    let options = RemoteOptions {
        command_timeout: options.command_timeout + Nanos::from_secs(1),
        without_flush: options.without_flush,
        read_only: options.usage != Use::Exclusive,
    };
    let mut remote = Remote::new(addresses, uri.export.clone(), options);
    let mut waiting = RemoteWait::new()?;
    // Each address is tried once; the caller's time limit ends an attempt without an answer.
    while !remote.is_up() {
        waiting.step(&mut remote)?;
        if let Some(error) = remote.trouble().filter(|_| remote.failures() as usize >= attempts) {
            return Err(error.clone());
        }
    }
    waiting.leave(&mut remote);
    Ok(remote)
}

/// A place to wait for one remote member that is not in service.
pub(super) struct RemoteWait {
    epoll: Epoll,
    events: Events,
    pool: FramePool,
    done: Vec<super::remote::EndedCommand>,
}

/// Bytes of one read of a remote member while it is probed.
const READ_BYTES_MAX: usize = 1 << 20;
const SOCKET: u64 = 1;

impl RemoteWait {
    fn new() -> Result<Self, RemoteError> {
        let epoll = Epoll::new().map_err(RemoteError::Connect)?;
        let pool = FramePool::new(PoolOptions::of(Bytes(READ_BYTES_MAX as u64))).map_err(RemoteError::Connect)?;
        Ok(Self { epoll, events: Events::new(), pool, done: Vec::new() })
    }

    /// Wait once, and let the member process its events.
    fn step(&mut self, remote: &mut Remote) -> Result<(), RemoteError> {
        let now = clock::now();
        let mut around = Surroundings { epoll: &self.epoll, token: SOCKET, pool: &mut self.pool, now };
        remote.on_time(&mut around, &mut self.done);
        remote.pump(&mut around, &mut self.done);
        if !self.done.is_empty() {
            return Ok(());
        }
        let timeout = remote.next_deadline().map(|at: Instant| at.since(now));
        self.epoll.wait(&mut self.events, timeout).map_err(RemoteError::Connect)?;
        if !self.events.is_empty() {
            let mut around =
                Surroundings { epoll: &self.epoll, token: SOCKET, pool: &mut self.pool, now: clock::now() };
            remote.on_event(&mut around, &mut self.done);
        }
        Ok(())
    }

    fn leave(&mut self, remote: &mut Remote) {
        let now = clock::now();
        remote.leave(&mut Surroundings { epoll: &self.epoll, token: SOCKET, pool: &mut self.pool, now });
    }
}

impl OpenedMember {
    /// Read, and wait for the data. Not for attached members.
    ///
    /// # Errors
    /// In words: the member cannot be read there.
    pub fn read_at(&mut self, lba: DriveLba, into: &mut [u8]) -> Result<(), ProbeError> {
        self.medium.read_at(lba, into)
    }

    /// The member has this superblock: a remote member is recognized by it after its server was unreachable.
    pub(super) fn know_as(&mut self, superblock: &Superblock) {
        if let Medium::Remote(remote) = &mut self.medium {
            remote.know_as(superblock.super_offset, superblock.into());
        }
    }

    /// The same member, but writes stay in memory and are dropped with it.
    #[must_use]
    pub fn overlaid(self) -> Self {
        let info = DriveInfo { discard: false, discard_zeroes: false, write_zeroes: false, ..self.info };
        Self { info, medium: Medium::Overlaid(Box::new(self.medium)), ..self }
    }
}

impl Medium {
    fn read_at(&mut self, lba: DriveLba, into: &mut [u8]) -> Result<(), ProbeError> {
        let unreadable = |why: String| ProbeError::Unreadable { lba, why };
        match self {
            Medium::Disk(member) => member.read_exact_at(lba, into).map_err(|error| unreadable(error.to_string())),
            Medium::Ram(ram) => ram.read_at(lba, into).map_err(|_| unreadable("beyond the end".into())),
            Medium::Paced(paced) => paced.read_at(lba, into).map_err(unreadable),
            Medium::Remote(remote) => read_remote(remote, lba, into).map_err(|error| unreadable(error.to_string())),
            // Not attached yet: nothing has been written to it.
            Medium::Overlaid(medium) => medium.read_at(lba, into),
        }
    }
}

fn read_remote(remote: &mut Remote, lba: DriveLba, into: &mut [u8]) -> Result<(), RemoteError> {
    let mut waiting = RemoteWait::new()?;
    let now = clock::now();
    let arrived =
        remote.arrive(&mut Surroundings { epoll: &waiting.epoll, token: SOCKET, pool: &mut waiting.pool, now });
    arrived.map_err(RemoteError::Connect)?;
    let mut at = lba;
    for piece in into.chunks_mut(READ_BYTES_MAX) {
        let len = Bytes(piece.len() as u64).sectors_ceil();
        let command = DriveCommand {
            tag: Tag::new(TagKind::Drive, 0, 0),
            drive: DriveId(0),
            op: DriveOp::Read,
            lba: at,
            len,
            data: Data::Frames(PoolOffset::ZERO),
            class: IoClass::Metadata,
        };
        remote.submit(&command, &[], clock::now());
        while waiting.done.is_empty() {
            waiting.step(remote)?;
        }
        let (_, result) = waiting.done.remove(0);
        result.map_err(|error| {
            let why = remote.trouble().map_or_else(|| format!("the server reports: {error}"), ToString::to_string);
            RemoteError::Protocol(why)
        })?;
        piece.copy_from_slice(waiting.pool.slice(PoolRange::new(PoolOffset::ZERO, Bytes(piece.len() as u64))));
        at += len;
    }
    waiting.leave(remote);
    Ok(())
}

/// Open a member and look at it, with a time limit.
///
/// # Errors
/// Why it cannot be used; nothing has been written.
pub fn open_and_probe(spec: &MemberSpec, options: OpenOptions) -> Result<(OpenedMember, ProbedMember), OpenError> {
    begin(spec, options, clock::now() + options.patience)?.wait()
}

/// A member that is being opened.
struct Opening {
    member: String,
    answer: mpsc::Receiver<Result<(OpenedMember, ProbedMember), OpenError>>,
    /// Receives the first attempt, and ends with the thread.
    tried: mpsc::Receiver<()>,
    /// How the last attempt was refused, if another process holds the member.
    held: Arc<Mutex<Option<MemberError>>>,
    until: Instant,
    patience: Nanos,
}

fn begin(spec: &MemberSpec, options: OpenOptions, until: Instant) -> Result<Opening, OpenError> {
    let (sender, answer) = mpsc::channel();
    let (first, tried) = mpsc::sync_channel(1);
    let held = Arc::new(Mutex::new(None));
    let (spec_of_thread, held_of_thread) = (spec.clone(), Arc::clone(&held));
    // If the drive hangs, the thread hangs with it: a thread cannot be recalled from the kernel.
    let spawned = thread::Builder::new().name("open-member".into()).spawn(move || {
        // The channel has room for the first message; later ones are not needed.
        let tell = |result: &Result<MemberFile, MemberError>| {
            let refused = result.as_ref().err().filter(|error| is_in_use(error)).cloned();
            *held_of_thread.lock().unwrap_or_else(PoisonError::into_inner) = refused;
            let _ = first.try_send(());
        };
        let spec = spec_of_thread;
        let result = open_telling(&spec, options, &tell).and_then(|mut member| {
            let probed = probe::probe(&mut member);
            let probed = probed.map_err(|error| OpenError::Probe { member: spec.text.clone(), error })?;
            Ok((member, probed))
        });
        // The caller may have timed out.
        let _ = sender.send(result);
    });
    match spawned {
        Ok(_) => Ok(Opening { member: spec.text.clone(), answer, tried, held, until, patience: options.patience }),
        Err(error) => Err(OpenError::Exhausted { member: spec.text.clone(), error: error.to_string() }),
    }
}

impl Opening {
    fn left(&self) -> Duration {
        Duration::from_nanos(self.until.since(clock::now()).get())
    }

    /// Wait for the first attempt to open it.
    fn wait_for_first_try(&self) {
        // Was it tried, or does it hang? The answer shows it.
        let _ = self.tried.recv_timeout(self.left());
    }

    fn wait(self) -> Result<(OpenedMember, ProbedMember), OpenError> {
        match self.answer.recv_timeout(self.left()) {
            Ok(result) => result,
            // A member that another process holds is never taken for one that is not there.
            Err(_) => Err(match self.held.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(refused) => OpenError::Local(refused),
                None => OpenError::Silent { member: self.member, patience: self.patience },
            }),
        }
    }
}

/// Open and look at many members at once, within one time limit for all of them. The answers come in their order.
///
/// # Errors
/// For each member that cannot be used, why.
pub fn open_all(specs: &[MemberSpec], options: OpenOptions) -> Vec<Result<(OpenedMember, ProbedMember), OpenError>> {
    let until = clock::now() + options.patience;
    let begun = |nth: usize| {
        let spec = &specs[nth];
        let is_remote = matches!(spec.place, Place::Remote(_));
        // Files and devices are identified by their inode or device number, not by the path; addresses only by their
        // text.
        if is_remote && specs[..nth].iter().any(|other| other.place == spec.place) {
            return Err(OpenError::Twice { member: spec.text.clone() });
        }
        let opening = begin(spec, options, until)?;
        if !is_remote {
            // One after the other up to here, so that the later one of two names of one device is always the refused
            // one.
            opening.wait_for_first_try();
        }
        Ok(opening)
    };
    let openings: Vec<Result<Opening, OpenError>> = (0..specs.len()).map(begun).collect();
    openings.into_iter().map(|opening| opening.and_then(Opening::wait)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_member_whose_look_takes_too_long_is_held_and_not_silent() {
        let busy = MemberError::Busy { path: "/dev/a".into(), owner: None };
        for (held, silent) in [(Some(busy), false), (None, true)] {
            let (_answer, answer) = mpsc::channel();
            let (_tried, tried) = mpsc::channel();
            let held = Arc::new(Mutex::new(held));
            let patience = Nanos::from_secs(0);
            let opening = Opening { member: "a".into(), answer, tried, held, until: clock::now(), patience };
            let error = opening.wait().map(|_| ()).expect_err("nothing answers");
            assert_eq!(matches!(error, OpenError::Silent { .. }), silent, "{error}");
            assert_eq!(matches!(error, OpenError::Local(MemberError::Busy { .. })), !silent, "{error}");
        }
    }
}
