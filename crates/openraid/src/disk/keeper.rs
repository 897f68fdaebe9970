//! The keeper of a disk by the kernel's NBD client: it notices that the server is gone, connects again, and hands the kernel the new
//! socket. Data never pass it, so it may be killed and started again.
//!
//! ```text
//!  own socket of the device --hang-up--> connect every 20 ms --negotiated--> hand over --taken--> own socket
//!                                                                                 \--not needed--> spare
//!  spare (a new keeper has no copy of the device's socket) --1 s, or hang-up--> hand over
//! ```
//!
//! A spare connection hangs up with the server, as the device's does. It is offered each second, because the kernel gives a silent
//! connection up while the server lives.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use openraid_nbd::client::ClientSession;
use openraid_sys::{help_writing_back, Epoll, Errno, Events, HandedOver, Interest, NbdControl, ProcessSignal, Signals};
use openraid_units::Nanos;

use super::nbd::{self, NoSession, Stream};
use super::{attached_disks, reachable, ArrayOffer, AttachedDisk};
use crate::control::ControlServers;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::warn;

/// Pause between two attempts to connect.
const PAUSE: Nanos = Nanos::from_millis(20);
/// The same if the server is there and refuses, and how often a spare connection is offered.
const LONG_PAUSE: Nanos = Nanos::from_secs(1);

/// Offers of a spare connection before the pause grows.
const QUICK_OFFERS: u32 = 50;

const SIGNALS: u64 = 0;
const SOCKET: u64 = 1;

/// Is a keeper at work for this device?
pub fn runs(disk: &AttachedDisk) -> bool {
    let file = File::open(attached_disks::keeper_file(&disk.device));
    file.is_ok_and(|file| file.try_lock_shared().is_err())
}

/// Starts the keeper of a disk as a process of its own, unless one is at work. Its standard input is a copy of the device's socket if there
/// is one, and its standard output the lock, so that it is at work at once.
///
/// # Errors
/// The program cannot be started.
pub fn start(disk: &AttachedDisk, stream: Option<Stream>, control: Option<&Path>) -> io::Result<()> {
    let lock = File::create(attached_disks::keeper_file(&disk.device))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["attach", "--keep", "--inherits", "--", disk.record.name()]);
    // The server may be one that is found by its socket only.
    command.envs(control.map(|path| ("OPENRAID_CONTROL", path)));
    command.stdin(stream.map_or_else(Stdio::null, |stream| OwnedFd::from(stream).into()));
    // A signal to the terminal's processes is not for it.
    command.stdout(lock).stderr(Stdio::null()).process_group(0).spawn().map(drop)
}

/// What the keeper waits for.
enum News {
    Stop,
    HungUp,
    Nothing,
}

/// A connection that the keeper has.
enum KeeperStream {
    /// A copy of the device's own socket.
    Device(Stream),
    /// One that the kernel did not need so far, and how often it was offered.
    Spare(Stream, ClientSession, u32),
}

impl KeeperStream {
    const fn stream(&self) -> &Stream {
        match self {
            Self::Device(stream) | Self::Spare(stream, ..) => stream,
        }
    }

    /// After this time it is offered again. The kernel may notice the end of its socket a moment later than the keeper.
    const fn time(&self) -> Option<Nanos> {
        match self {
            Self::Device(_) => None,
            Self::Spare(_, _, ..=QUICK_OFFERS) => Some(PAUSE),
            Self::Spare(..) => Some(LONG_PAUSE),
        }
    }
}

struct Keeper<'a> {
    disk: &'a AttachedDisk,
    index: u32,
    control: NbdControl,
    signals: Signals,
    epoll: Epoll,
    servers: &'a ControlServers,
    /// Where the export is: the array may have another name by now.
    address: String,
    /// The fault that was reported last.
    reported: String,
}

/// Keeps a disk until it is detached, or until a signal. Only one that [`start`] has started inherits.
///
/// # Errors
/// The kernel's error.
pub fn run(disk: &AttachedDisk, inherits: bool, servers: &ControlServers) -> Outcome {
    let failed = |error: Errno| Failure::failed(format!("{}: {error}", disk.device));
    let lock = || File::create(attached_disks::keeper_file(&disk.device)).and_then(|file| file.lock().map(|()| file));
    let lock = if inherits { Ok(None) } else { lock().map(Some) };
    let _lock = lock.map_err(|error| Failure::failed(format!("{}: {error}", attached_disks::FOLDER)))?;
    let signals = Signals::take_over().map_err(failed)?;
    help_writing_back();
    let index = nbd::index_of(disk).ok_or_else(|| Failure::failed(format!("{} is no device of NBD", disk.device)))?;
    let control = nbd::control().map_err(Failure::failed)?;
    let epoll = Epoll::new().map_err(failed)?;
    epoll.add(&signals, SIGNALS, Interest::READ).map_err(failed)?;
    let address = disk.record.address.clone();
    let mut keeper = Keeper { disk, index, control, signals, epoll, servers, address, reported: String::new() };
    keeper.attend(if inherits { inherited() } else { None }).map_err(failed)
}

/// The socket that came as standard input.
fn inherited() -> Option<Stream> {
    fs::metadata("/proc/self/fd/0").ok().filter(|input| input.file_type().is_socket())?;
    let socket = io::stdin().as_fd().try_clone_to_owned().ok()?;
    // Only its end is waited for: which kind of socket it is does not matter.
    Some(Stream::Unix(UnixStream::from(socket)))
}

impl Keeper<'_> {
    fn attend(&mut self, inherited: Option<Stream>) -> Result<Exit, Errno> {
        let mut held = inherited.map(KeeperStream::Device);
        loop {
            let now = match held.take() {
                None => match self.connected()? {
                    Some((stream, session)) => KeeperStream::Spare(stream, session, 0),
                    None => return Ok(Exit::Fine),
                },
                Some(held) => match self.wait(Some(held.stream()), held.time())? {
                    News::Stop => return Ok(Exit::Fine),
                    News::HungUp => continue,
                    News::Nothing => held,
                },
            };
            held = match now {
                KeeperStream::Device(stream) => Some(KeeperStream::Device(stream)),
                KeeperStream::Spare(stream, session, offers) => match self.offer(&stream, &session)? {
                    HandedOver::Taken => Some(KeeperStream::Device(stream)),
                    HandedOver::NotNeeded => Some(KeeperStream::Spare(stream, session, offers.saturating_add(1))),
                    // It is being detached, or another program has ended it under a mount: then there is nothing to keep, or not yet.
                    HandedOver::NoDevice => match self.wait(None, Some(PAUSE))? {
                        News::Nothing if self.disk.is_alive() => None,
                        _ => return Ok(Exit::Fine),
                    },
                },
            };
        }
    }

    fn offer(&mut self, stream: &Stream, session: &ClientSession) -> Result<HandedOver, Errno> {
        let device = nbd::device(self.index, &self.disk.record, session);
        self.control.hand_over(&device, stream.as_fd())
    }

    /// Waits for a signal, for the end of the socket, or for this time.
    fn wait(&mut self, stream: Option<&Stream>, time: Option<Nanos>) -> Result<News, Errno> {
        // The kernel reads what arrives. A hang-up is always reported.
        let mut events = Events::new();
        if let Some(stream) = stream {
            self.epoll.add(stream, SOCKET, Interest::NONE)?;
        }
        let waited = self.epoll.wait(&mut events, time);
        if let Some(stream) = stream {
            self.epoll.remove(stream)?;
        }
        waited?;
        if is_stopped(&self.signals) {
            return Ok(News::Stop);
        }
        Ok(if events.iter().any(|event| event.token == SOCKET) { News::HungUp } else { News::Nothing })
    }

    /// A connection to the export, as soon as there is one. None if the disk has been detached, or after a signal.
    fn connected(&mut self) -> Result<Option<(Stream, ClientSession)>, Errno> {
        loop {
            let (disk, signals) = (self.disk, &self.signals);
            let mut is_stopping = false;
            let is_wanted = &mut || {
                is_stopping |= is_stopped(signals);
                disk.is_alive() && !is_stopping
            };
            let Some(uri) = reachable(&self.address) else { return Ok(None) };
            let pause = match nbd::negotiate(&uri, is_wanted) {
                Ok((stream, session)) => match self.mistaken(&session) {
                    None => {
                        self.report(String::new());
                        return Ok(Some((stream, session)));
                    }
                    Some(why) => {
                        self.report(why);
                        LONG_PAUSE
                    }
                },
                Err(NoSession::GivenUp) => return Ok(None),
                Err(NoSession::Away(_)) => PAUSE,
                Err(refused @ NoSession::Refused(_)) => {
                    self.report(refused.to_string());
                    self.look_for_address();
                    LONG_PAUSE
                }
            };
            if matches!(self.wait(None, Some(pause))?, News::Stop) || !self.disk.is_alive() {
                return Ok(None);
            }
        }
    }

    /// Why this export is not what the disk has: its data would be mixed with those of another array.
    fn mistaken(&self, session: &ClientSession) -> Option<String> {
        let (size, known) = (session.size.get(), self.disk.size_bytes());
        if size < known {
            return Some(format!("the export has {size} bytes, and the disk {known}: the kernel does not get it"));
        }
        let identity = self.disk.record.identity();
        let offer = self.offers().into_iter().find(|offer| offer.nbd.contains(&self.address))?;
        let is_other = offer.identity.uuid.is_some() && identity.uuid.is_some() && !offer.identity.is(&identity);
        is_other.then(|| format!("{} is another array now: the kernel does not get it", self.address))
    }

    /// The array may have been renamed.
    fn look_for_address(&mut self) {
        let identity = self.disk.record.identity();
        let offer = self.offers().into_iter().find(|offer| identity.uuid.is_some() && offer.identity.is(&identity));
        if let Some(address) = offer.and_then(|offer| offer.nbd.into_iter().next()) {
            self.address = address;
        }
    }

    fn offers(&self) -> Vec<ArrayOffer> {
        let servers = self.servers.connect().unwrap_or_default();
        let arrays = servers.into_iter().flat_map(|mut server| server.list().unwrap_or_default());
        arrays.map(|array| ArrayOffer::of(&array)).collect()
    }

    /// A fault that lasts is reported once.
    fn report(&mut self, fault: String) {
        if !fault.is_empty() && fault != self.reported {
            warn(&format!("{}: {}: {fault}", self.disk.record.name(), self.address));
        }
        self.reported = fault;
    }
}

fn is_stopped(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.next_signal()).any(|signal| signal != ProcessSignal::HangUp)
}
