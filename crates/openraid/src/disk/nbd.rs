//! The kernel's NBD client by netlink. Requests wait in the kernel while the server is away; the keeper brings another socket.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use openraid_nbd::client::{ClientError, ClientEvent, ClientHandshake, ClientOptions, ClientSession, Goal};
use openraid_nbd::{NbdUri, Transport};
use openraid_sys::{FaultKind, NbdControl, NbdDevice};
use openraid_units::Bytes;

use super::{attached_disks, in_sysfs, load, reachable, ArrayOffer, AttachWay, AttachedDisk, DiskRecord};

/// Seconds without an answer, after which a connection is given up and its requests are sent again.
const SILENT_SECONDS: u64 = 2;
/// Seconds for which requests wait for a server that is away; then they fail.
pub const SERVER_AWAY_SECONDS: u64 = 300;
/// A disk has blocks of this size, unless its array has larger ones: a file system knows the size that it was made with.
const BLOCK_BYTES_MIN: u32 = 512;
/// The kernel has no more devices.
const DEVICES_MAX: u32 = 1024;
/// How often a negotiation that waits for a server asks whether it is still wanted.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A server that runs answers the first connection of a disk within this time.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// The kernel releases a device that has ended within this time.
const END_TIME_MAX: Duration = Duration::from_secs(10);
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A connection to a server.
#[derive(Debug)]
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(place: &Transport) -> io::Result<Self> {
        Ok(match place {
            Transport::Unix { socket } => Self::Unix(UnixStream::connect(socket)?),
            Transport::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                stream.set_nodelay(true)?;
                Self::Tcp(stream)
            }
        })
    }

    /// The kernel uses the same socket later, and must not inherit a limit of time.
    fn set_patience(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(time),
            Self::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(into),
            Self::Tcp(stream) => stream.read(into),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Unix(stream) => stream.into(),
            Stream::Tcp(stream) => stream.into(),
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub enum NoSession {
    /// No server is there, or it went away.
    Away(io::Error),
    /// It does not offer the export.
    Refused(ClientError),
    /// It is not wanted any more.
    GivenUp,
}

impl fmt::Display for NoSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(error) => write!(f, "{error}"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::GivenUp => write!(f, "the server did not answer in {} s", ANSWER_TIME_MAX.as_secs()),
        }
    }
}

impl From<io::Error> for NoSession {
    fn from(error: io::Error) -> Self {
        Self::Away(error)
    }
}

/// Connects to an export. A server that keeps its sockets may answer much later; `is_wanted` is asked meanwhile.
///
/// # Errors
/// See [`NoSession`].
pub fn negotiate(uri: &NbdUri, is_wanted: &mut dyn FnMut() -> bool) -> Result<(Stream, ClientSession), NoSession> {
    let mut stream = Stream::connect(&uri.transport)?;
    stream.set_patience(Some(LOOK_INTERVAL))?;
    // The kernel's client understands simple replies only.
    let options = ClientOptions { goal: Goal::Use(uri.export.clone()), structured: false, contexts: Vec::new() };
    let mut handshake = ClientHandshake::start(options).map_err(NoSession::Refused)?;
    let (mut inbox, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(count) => inbox.extend(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                if is_wanted() {
                    continue;
                }
                return Err(NoSession::GivenUp);
            }
            Err(error) => return Err(error.into()),
        }
        let mut out = Vec::new();
        let step = handshake.receive(&inbox, &mut out);
        inbox.drain(..step.consumed);
        stream.write(&out)?;
        match step.event {
            ClientEvent::NeedMore => {}
            ClientEvent::Ready(session) => {
                stream.set_patience(None)?;
                return Ok((stream, session));
            }
            ClientEvent::Failed(error) => return Err(NoSession::Refused(error)),
            ClientEvent::Listed(_) => {
                return Err(NoSession::Refused(ClientError::Protocol("a list was not asked for")))
            }
        }
    }
}

/// The device for this session.
pub fn device(index: u32, record: &DiskRecord, session: &ClientSession) -> NbdDevice {
    let block = session.blocks.map_or(BLOCK_BYTES_MIN, |blocks| blocks.minimum().max(BLOCK_BYTES_MIN));
    NbdDevice {
        index,
        size: session.size,
        block: Bytes(block.into()),
        flags: session.flags.bits(),
        backend: record.backend(),
        answer_seconds: SILENT_SECONDS,
        wait_seconds: SERVER_AWAY_SECONDS,
    }
}

/// The kernel's end of its devices, with its module.
///
/// # Errors
/// In words.
pub fn control() -> Result<NbdControl, String> {
    NbdControl::open().or_else(|_| {
        load("nbd");
        NbdControl::open().map_err(|error| match io::Error::from_raw_os_error(error.0).kind() {
            ErrorKind::NotFound => "this kernel has no module nbd".to_owned(),
            _ => format!("the module nbd does not answer: {error}"),
        })
    })
}

/// Attaches the array to the first free device. The record is there before the device.
///
/// # Errors
/// Why not, in words.
pub fn attach(offer: &ArrayOffer) -> Result<(AttachedDisk, Stream), String> {
    let Some(address) = offer.nbd.first() else {
        return Err("the server offers no plain NBD (nbd-unix = [...] in [server], or serve --nbd-unix)".into());
    };
    let uri = reachable(address).ok_or_else(|| format!("{address} is no address of NBD"))?;
    let mut control = control()?;
    let begun = Instant::now();
    let session = negotiate(&uri, &mut || begun.elapsed() < ANSWER_TIME_MAX);
    let (stream, session) = session.map_err(|why| format!("{address}: {why}"))?;
    let record = DiskRecord::new(AttachWay::Nbd, &offer.identity, address.clone());
    for index in (0..DEVICES_MAX).filter(|index| !in_sysfs(&format!("nbd{index}")).join("pid").exists()) {
        let disk = AttachedDisk { device: format!("nbd{index}"), record: record.clone() };
        disk.write().map_err(|error| format!("{}: {error}", attached_disks::FOLDER))?;
        match control.connect(&device(index, &record, &session), stream.as_fd()) {
            Ok(()) => return Ok((disk, stream)),
            Err(error) => {
                attached_disks::remove(&disk.device);
                // Another program was faster, or has a device open that has ended.
                if error.fault() != FaultKind::Busy {
                    return Err(format!("the kernel refuses {}: {error}", disk.path().display()));
                }
            }
        }
    }
    Err("every device of the module nbd is in use".into())
}

/// Ends a device, whichever program has connected it.
///
/// # Errors
/// The kernel's refusal, in words.
pub fn detach(disk: &AttachedDisk) -> Result<(), String> {
    let index = index_of(disk).ok_or_else(|| format!("{} is no device of NBD", disk.device))?;
    let ended = control()?.disconnect(index);
    ended.map_err(|error| format!("the kernel does not end {}: {error}", disk.path().display()))?;
    // What reads it at this moment, or qemu-nbd, lets go of it a moment later.
    let until = Instant::now() + END_TIME_MAX;
    while in_sysfs(&disk.device).join("pid").exists() {
        if Instant::now() > until {
            return Err(format!("{} was ended, and a program still has it open", disk.path().display()));
        }
        thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

/// N of `nbdN`.
pub fn index_of(disk: &AttachedDisk) -> Option<u32> {
    disk.device.strip_prefix("nbd")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_waited_for_as_long_as_the_disk_is_wanted() {
        let path = std::env::temp_dir().join(format!("openraid-silent-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let uri: NbdUri = format!("nbd+unix:///data?socket={}", path.display()).parse().expect("an address");
        let mut asked = 0;
        assert!(matches!(negotiate(&uri, &mut || false), Err(NoSession::Away(_))));
        // It listens, and accepts nothing: a kept socket without a server.
        let listener = UnixListener::bind(&path).expect("a folder among the temporary files");
        let ended = negotiate(&uri, &mut || {
            asked += 1;
            asked < 2
        });
        assert!(matches!(ended, Err(NoSession::GivenUp)) && asked == 2, "{ended:?} {asked}");
        drop(listener);
        std::fs::remove_file(&path).expect("it is ours");
    }
}
