//! Sockets of hosts: listeners and non-blocking streams. Payload is received directly into frames and sent directly from
//! them.
//!
//! Every call does at most one system call and never waits. A fault of the network is an error value. If the peer
//! closes the connection, the result is [`Progress::Closed`], not an error.

use crate::closing_thread::{close_elsewhere, is_late};
use crate::ending_processes::is_ending;
use crate::errno::{check, check_size, Errno};
use crate::frame_pool::{FramePool, PoolRange};
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Permissions};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Maximum number of connections that wait to be accepted; the kernel reduces it to `net.core.somaxconn`.
const BACKLOG: libc::c_int = 1024;
/// Maximum number of pieces that one send passes to the kernel (its limit, `IOV_MAX`). The next send passes the others.
pub const PIECES_PER_SEND_MAX: usize = 1024;
/// Maximum number of connections that one accept skips because they failed before they were accepted.
const FAILED_ACCEPTS_MAX: usize = 64;
/// Seconds without a packet from a client of TCP, after which the kernel sends it a probe; and seconds between probes.
const PROBE_AFTER_SECONDS: libc::c_int = 30;
const PROBE_EVERY_SECONDS: libc::c_int = 10;
/// Milliseconds without an answer to data or probes, after which the kernel ends a connection: a machine that has lost its
/// power holds its requests and its place no longer. The kernel's default is about 15 minutes with data under way, and none
/// without.
const UNANSWERED_MS_MAX: libc::c_int = 120_000;
/// Maximum length of a unix socket's path in bytes, without the zero at its end.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// The reason why a listener or connection could not be made, with the requested address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NetError {
    /// Another program already listens at the address.
    InUse {
        address: String,
        /// The other program.
        holder: Holder,
    },
    /// The path exists and is not a socket.
    NotASocket { path: PathBuf },
    /// The path is too long for a unix socket.
    PathTooLong { path: PathBuf },
    /// The kernel's error.
    Failed {
        address: String,
        /// The attempt, as in "cannot ...".
        attempt: &'static str,
        /// The kernel's error.
        error: Errno,
    },
}

/// The program that listens at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// This process, which is running.
    Running(u32),
    /// This process, which is ending.
    Leaving(u32),
    /// Unknown: the kernel does not say.
    Unknown,
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { address, holder: Holder::Running(process) } => {
                write!(f, "{address}: process {process} serves there; stop it or choose another address")
            }
            Self::InUse { address, holder: Holder::Leaving(process) } => {
                write!(f, "{address}: process {process}, which served there, is still ending; try again in a moment")
            }
            Self::InUse { address, holder: Holder::Unknown } => {
                write!(f, "{address}: another program serves there; stop it or choose another address")
            }
            Self::NotASocket { path } => {
                write!(f, "{}: this exists and is not a socket; remove it or choose another path", path.display())
            }
            Self::PathTooLong { path } => write!(
                f,
                "{}: a unix socket's path has at most {UNIX_PATH_BYTES_MAX} bytes; choose a shorter one",
                path.display()
            ),
            Self::Failed { address, attempt, error } => write!(f, "{address}: cannot {attempt}: {error}"),
        }
    }
}

impl std::error::Error for NetError {}

/// The other side of a connection, for logs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A process on this machine.
    Unix {
        /// Number of the process; 0 if it is in another namespace.
        process: u32,
        /// User of the process.
        user: u32,
    },
    /// Unknown: the kernel does not say.
    Unknown,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix { process, user } => write!(f, "process {process} of user {user}"),
            Self::Unknown => write!(f, "an unknown peer"),
        }
    }
}

/// The result of a receive or send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Number of transferred bytes, at least one.
    Bytes(usize),
    /// No transfer is possible now; wait for the socket.
    Blocked,
    /// The other side has closed the connection, or the connection is broken.
    Closed,
}

/// A piece of a message to send.
#[derive(Clone, Copy, Debug)]
pub enum MessagePiece<'a> {
    /// Bytes of the program: headers.
    Bytes(&'a [u8]),
    /// Bytes of the pool: payload. The kernel reads them only during the call.
    Pool(PoolRange),
}

impl<'a> MessagePiece<'a> {
    fn bytes(self, pool: &'a FramePool) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Pool(range) => pool.slice(range),
        }
    }
}

/// The result of an accept.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, non-blocking.
    Socket(Socket),
    /// No client is waiting.
    NoConnection,
    /// A client is waiting, but there are no free descriptors or no memory. The listener stays readable, so the caller
    /// must close something, or stop waiting for the listener for a while.
    Exhausted(Errno),
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    /// It is removed before the socket is closed.
    file: Option<SocketFile>,
    fd: OwnedFd,
}

/// Path, device and inode of a unix socket's file. Only this file is removed at the end.
#[derive(Debug)]
struct SocketFile(PathBuf, u64, u64);

impl Listener {
    /// Listens on a TCP address; port 0 selects a free port.
    ///
    /// # Errors
    /// [`NetError::InUse`], or the kernel's error.
    pub fn tcp(address: SocketAddr) -> Result<Self, NetError> {
        let fail = |attempt, error| match error {
            Errno(libc::EADDRINUSE) => NetError::InUse { address: address.to_string(), holder: Holder::Unknown },
            error => NetError::Failed { address: address.to_string(), attempt, error },
        };
        let fd = socket(family(address)).map_err(|e| fail("make a socket", e))?;
        // A server that restarts must not wait until the kernel has forgotten its old connections.
        set(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).map_err(|e| fail("set up the socket", e))?;
        let (raw, len) = sockaddr(address);
        // SAFETY: `raw` holds `len` bytes of a valid address.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), len) }).map_err(|e| fail("bind", e))?;
        listen(&fd).map_err(|e| fail("listen", e))?;
        Ok(Self { fd, file: None })
    }

    /// Listens on a unix socket to which only this user can connect. A socket file of a server that has ended is
    /// replaced.
    ///
    /// # Errors
    /// [`NetError::InUse`] if a server answers at the path, [`NetError::NotASocket`], or the kernel's error.
    pub fn unix(path: &Path) -> Result<Self, NetError> {
        Self::unix_for(path, false)
    }

    /// Listens on a unix socket for clients. If the folder has the set-group-ID bit, its files get the folder's group,
    /// and the members of this group can connect, too. Otherwise only this user can connect.
    ///
    /// # Errors
    /// As of [`Self::unix`].
    pub fn unix_of_folder(path: &Path) -> Result<Self, NetError> {
        let folder = path.parent().and_then(|folder| fs::metadata(folder).ok());
        let is_shared = folder.is_some_and(|folder| folder.mode() & libc::S_ISGID != 0);
        Self::unix_for(path, is_shared)
    }

    fn unix_for(path: &Path, group: bool) -> Result<Self, NetError> {
        let fail = |attempt, error| NetError::Failed { address: path.display().to_string(), attempt, error };
        let (raw, len) = sockaddr_unix(path)?;
        clear_stale(path)?;
        let fd = socket(libc::AF_UNIX).map_err(|e| fail("make a socket", e))?;
        // The socket file takes the mode that the socket has when it is bound: there is no moment with a wider one.
        // SAFETY: no memory involved.
        check(unsafe { libc::fchmod(fd.as_raw_fd(), 0o600) }).map_err(|e| fail("protect the socket", e))?;
        // SAFETY: `raw` holds `len` bytes of a valid address.
        match check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), len) }) {
            Ok(_) => {}
            Err(Errno(libc::EADDRINUSE)) => {
                return Err(NetError::InUse { address: path.display().to_string(), holder: Holder::Unknown })
            }
            Err(error) => return Err(fail("bind", error)),
        }
        if group {
            // The mode is widened only now, because the umask applies when the socket is bound.
            open_to_group(path).map_err(|e| fail("open the socket to its group", e.into()))?;
        }
        listen(&fd).map_err(|e| fail("listen", e))?;
        let metadata = fs::symlink_metadata(path).map_err(|e| fail("look at the socket", e.into()))?;
        Ok(Self { fd, file: Some(SocketFile(path.into(), metadata.dev(), metadata.ino())) })
    }

    /// Listens at an abstract name: it has no file, so it belongs to no folder and no user, and the kernel releases it
    /// with the process. All programs in one network namespace share these names.
    ///
    /// # Errors
    /// [`NetError::InUse`] without the process ([`holder_of_name`] asks for it), or the kernel's error.
    pub(crate) fn abstract_name(name: &str) -> Result<Self, NetError> {
        let fail = |attempt, error| NetError::Failed { address: name.into(), attempt, error };
        let fd = socket(libc::AF_UNIX).map_err(|e| fail("make a socket", e))?;
        let (raw, len) = sockaddr_abstract(name);
        // SAFETY: `raw` holds `len` bytes of a valid address.
        match check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), len) }) {
            Ok(_) => {}
            Err(Errno(libc::EADDRINUSE)) => {
                return Err(NetError::InUse { address: name.into(), holder: Holder::Unknown })
            }
            Err(error) => return Err(fail("bind", error)),
        }
        listen(&fd).map_err(|e| fail("listen", e))?;
        Ok(Self { fd, file: None })
    }

    /// A listener that another process made and keeps: its file stays.
    pub(crate) fn kept(fd: OwnedFd) -> Self {
        Self { fd, file: None }
    }

    /// Remove the file of a unix socket, and close nothing yet.
    #[must_use]
    pub fn without_file(self) -> OwnedFd {
        let Self { file, fd } = self;
        drop(file);
        fd
    }

    /// The TCP address of the listener; `None` for a unix socket.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        address_of(&self.fd, libc::getsockname)
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// The kernel's error: the listener itself cannot be used any more.
    pub fn accept(&self) -> Result<Accepted, Errno> {
        if is_late() && self.tcp_address().is_none() {
            return Ok(Accepted::Exhausted(Errno(libc::EMFILE)));
        }
        for _ in 0..FAILED_ACCEPTS_MAX {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: no address is requested, so none is written.
            let accepted =
                unsafe { libc::accept4(self.fd.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) };
            match check(accepted) {
                // SAFETY: a descriptor just made, without another owner.
                Ok(fd) => return Ok(Accepted::Socket(Socket::of(unsafe { OwnedFd::from_raw_fd(fd) }))),
                Err(Errno(libc::EAGAIN)) => return Ok(Accepted::NoConnection),
                Err(error @ Errno(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)) => {
                    return Ok(Accepted::Exhausted(error))
                }
                Err(error @ Errno(libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EFAULT)) => return Err(error),
                // All other errors belong to one connection that failed before it was accepted. The listener is not
                // affected.
                Err(_) => {}
            }
        }
        Ok(Accepted::NoConnection)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Self(path, device, inode) = self;
        let same = fs::symlink_metadata(&*path).is_ok_and(|m| (m.dev(), m.ino()) == (*device, *inode));
        if same {
            // If the file cannot be removed, the next server replaces it.
            let _ = fs::remove_file(path);
        }
    }
}

/// A connection, non-blocking.
#[derive(Debug)]
pub struct Socket {
    /// There until the end.
    fd: Option<OwnedFd>,
    peer: Peer,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_unix() {
            // The other side sees the end now, and data that were sent before it.
            self.shut_down();
            self.fd.take().into_iter().for_each(close_elsewhere);
        }
    }
}

impl Socket {
    pub(crate) fn of(fd: OwnedFd) -> Self {
        let peer = match address_of(&fd, libc::getpeername) {
            Some(address) => Peer::Tcp(address),
            None => unix_peer(&fd),
        };
        if matches!(peer, Peer::Tcp(_)) {
            // The server collects replies itself, so a delay by the kernel would only add latency. A refusal has no
            // other effect.
            let _ = set(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
            let _ = notice_silence(&fd);
        }
        Self { fd: Some(fd), peer }
    }

    /// Begins to connect to a TCP address. Wait until the socket is writable, then call [`Socket::connected`].
    ///
    /// # Errors
    /// The kernel's error, if it is known at once.
    pub fn connect_tcp(address: SocketAddr) -> Result<Self, NetError> {
        let fail = |attempt, error| NetError::Failed { address: address.to_string(), attempt, error };
        let fd = socket(family(address)).map_err(|e| fail("make a socket", e))?;
        let (raw, len) = sockaddr(address);
        // SAFETY: `raw` holds `len` bytes of a valid address.
        match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), len) }) {
            Ok(_) | Err(Errno(libc::EINPROGRESS | libc::EINTR)) => {}
            Err(error) => return Err(fail("connect", error)),
        }
        let _ = set(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
        Ok(Self { fd: Some(fd), peer: Peer::Tcp(address) })
    }

    /// Connects to a unix socket; [`Socket::connected`] is true at once.
    ///
    /// # Errors
    /// The kernel's error; `EAGAIN` if too many connections wait at the server.
    pub fn connect_unix(path: &Path) -> Result<Self, NetError> {
        let fail = |attempt, error| NetError::Failed { address: path.display().to_string(), attempt, error };
        let (raw, len) = sockaddr_unix(path)?;
        let fd = socket(libc::AF_UNIX).map_err(|e| fail("make a socket", e))?;
        // SAFETY: `raw` holds `len` bytes of a valid address.
        check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), len) })
            .map_err(|e| fail("connect", e))?;
        Ok(Self::of(fd))
    }

    fn fd(&self) -> &OwnedFd {
        self.fd.as_ref().expect("there until the end")
    }

    /// Can the peer send files?
    fn is_unix(&self) -> bool {
        !matches!(self.peer, Peer::Tcp(_))
    }

    /// Has the connection attempt succeeded? `Ok(false)` while it continues.
    ///
    /// # Errors
    /// The reason why it failed.
    pub fn connected(&self) -> Result<bool, Errno> {
        let mut error: libc::c_int = 0;
        let mut len = socklen(size_of::<libc::c_int>());
        // SAFETY: fills one int.
        let returned = unsafe {
            libc::getsockopt(
                self.fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut error).cast(),
                &raw mut len,
            )
        };
        check(returned)?;
        if error != 0 {
            return Err(Errno(error));
        }
        let mut raw = MaybeUninit::<libc::sockaddr_storage>::uninit();
        let mut len = socklen(size_of::<libc::sockaddr_storage>());
        // SAFETY: `raw` has room for `len` bytes.
        match check(unsafe { libc::getpeername(self.fd().as_raw_fd(), raw.as_mut_ptr().cast(), &raw mut len) }) {
            Ok(_) => Ok(true),
            Err(Errno(libc::ENOTCONN)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The TCP address of this side; `None` for a unix socket.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        address_of(self.fd(), libc::getsockname)
    }

    /// The other side.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Requests kernel buffers of these sizes in bytes. The kernel may provide less, or twice as much.
    ///
    /// # Errors
    /// The kernel's error; the socket is unchanged.
    pub fn set_buffers(&self, receive: u32, send: u32) -> Result<(), Errno> {
        let size = |bytes| libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set(self.fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, size(receive))?;
        set(self.fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, size(send))
    }

    /// Receives the available bytes, at most the length of `into`, which must not be empty.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&self, into: &mut [u8]) -> Result<Progress, Errno> {
        assert!(!into.is_empty(), "bug: receiving into nothing would look like the end of the stream");
        if self.is_unix() {
            return self.receive_without_files(into);
        }
        loop {
            // SAFETY: `into` is a writable slice of the length that is passed.
            let received =
                unsafe { libc::recv(self.fd().as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) };
            match check_size(received) {
                Ok(0) => return Ok(Progress::Closed),
                Ok(bytes) => return Ok(Progress::Bytes(bytes)),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return stopped(error),
            }
        }
    }

    /// As [`Socket::receive`], directly into the pool. Panics as [`FramePool::slice_mut`] does.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive_into_pool(&self, pool: &mut FramePool, into: PoolRange) -> Result<Progress, Errno> {
        self.receive(pool.slice_mut(into))
    }

    /// Sends all pieces in order, without their first `skip` bytes, which earlier calls have sent. The result counts
    /// bytes from there. Panics as [`FramePool::slice`] does.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send(&self, pool: &FramePool, pieces: &[MessagePiece<'_>], skip: usize) -> Result<Progress, Errno> {
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; PIECES_PER_SEND_MAX];
        let (mut count, mut skip) = (0, skip);
        for piece in pieces {
            let bytes = piece.bytes(pool);
            if bytes.len() <= skip {
                skip -= bytes.len();
                continue;
            }
            let rest = &bytes[skip..];
            skip = 0;
            vectors[count].write(libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() });
            count += 1;
            if count == PIECES_PER_SEND_MAX {
                break;
            }
        }
        assert!(count > 0, "bug: sending nothing");
        self.send_vectors(&mut vectors, count)
    }

    fn send_vectors(
        &self,
        vectors: &mut [MaybeUninit<libc::iovec>; PIECES_PER_SEND_MAX],
        count: usize,
    ) -> Result<Progress, Errno> {
        // SAFETY: all-zero is a valid msghdr: no address, no vectors, no control data.
        let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_iov = vectors.as_mut_ptr().cast();
        // The field's type differs between C libraries.
        message.msg_iovlen = count as _;
        loop {
            // SAFETY: the first `count` vectors were written and point to slices that the caller still borrows.
            let sent = unsafe {
                libc::sendmsg(self.fd().as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            };
            match check_size(sent) {
                Ok(bytes) => return Ok(Progress::Bytes(bytes)),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return stopped(error),
            }
        }
    }

    /// Ends the sending direction; the other side may still send.
    pub fn finish_sending(&self) {
        // The only errors say that the connection is gone, which the next receive says too.
        // SAFETY: no memory involved.
        let _ = unsafe { libc::shutdown(self.fd().as_raw_fd(), libc::SHUT_WR) };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd().as_fd()
    }
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self::adopt(stream.into())
    }
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self::adopt(stream.into())
    }
}

impl Socket {
    /// All calls pass `MSG_DONTWAIT`, so it does not matter whether the descriptor itself blocks.
    fn adopt(fd: OwnedFd) -> Self {
        Self::of(fd)
    }
}

/// Separates the end of a connection from errors of a transfer.
pub(crate) fn stopped(error: Errno) -> Result<Progress, Errno> {
    match error.0 {
        libc::EAGAIN | libc::ENOBUFS => Ok(Progress::Blocked),
        libc::ECONNRESET | libc::EPIPE | libc::ENOTCONN | libc::ESHUTDOWN | libc::ETIMEDOUT => Ok(Progress::Closed),
        _ => Err(error),
    }
}

fn socket(family: libc::c_int) -> Result<OwnedFd, Errno> {
    // SAFETY: no memory involved.
    let fd = check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: a descriptor just made, without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn listen(fd: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: no memory involved.
    check(unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) }).map(drop)
}

pub(crate) fn set(fd: &OwnedFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    let len = socklen(size_of::<libc::c_int>());
    // SAFETY: reads one int.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) }).map(drop)
}

/// The kernel ends a connection whose peer has vanished.
fn notice_silence(fd: &OwnedFd) -> Result<(), Errno> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, PROBE_AFTER_SECONDS)?;
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, PROBE_EVERY_SECONDS)?;
    set(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, UNANSWERED_MS_MAX)?;
    set(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}

/// The server at the other end of a unix socket.
fn holder(socket: &Socket) -> Holder {
    match unix_peer(socket.fd()) {
        Peer::Unix { process: 0, .. } | Peer::Tcp(_) | Peer::Unknown => Holder::Unknown,
        Peer::Unix { process, .. } if is_ending(process) => Holder::Leaving(process),
        Peer::Unix { process, .. } => Holder::Running(process),
    }
}

/// The process that listens at an abstract name. Each question leaves an entry in the queue of that listener; when the queue
/// is full, the answer is unknown.
pub(crate) fn holder_of_name(name: &str) -> Holder {
    let Ok(fd) = socket(libc::AF_UNIX) else { return Holder::Unknown };
    let (raw, len) = sockaddr_abstract(name);
    // SAFETY: `raw` holds `len` bytes of a valid address.
    match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), len) }) {
        Ok(_) => holder(&Socket::of(fd)),
        Err(_) => Holder::Unknown,
    }
}

/// Lets the group of a folder use a socket of this account. Other accounts with write access to the folder may have put something else there.
fn open_to_group(path: &Path) -> std::io::Result<()> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let about = file.metadata()?;
    // SAFETY: no memory involved.
    if !about.file_type().is_socket() || about.uid() != unsafe { libc::geteuid() } {
        return Err(std::io::Error::other("it is not the socket that was just made"));
    }
    fs::set_permissions(format!("/proc/self/fd/{}", file.as_raw_fd()), Permissions::from_mode(0o660))
}

/// Removes the socket at `path` if no server answers at it.
fn clear_stale(path: &Path) -> Result<(), NetError> {
    let fail = |attempt, error| NetError::Failed { address: path.display().to_string(), attempt, error };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail("look at this path", error.into())),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(NetError::NotASocket { path: path.into() });
        }
        Ok(_) => {}
    }
    match Socket::connect_unix(path) {
        Ok(socket) => Err(NetError::InUse { address: path.display().to_string(), holder: holder(&socket) }),
        // The server accepts no client at the moment, because too many connections wait.
        Err(NetError::Failed { error: Errno(libc::EAGAIN), .. }) => {
            Err(NetError::InUse { address: path.display().to_string(), holder: Holder::Unknown })
        }
        Err(NetError::Failed { error: Errno(libc::ECONNREFUSED), .. }) => {
            fs::remove_file(path).map_err(|e| fail("remove the stale socket", e.into()))
        }
        Err(error) => Err(error),
    }
}

fn socklen(len: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(len).expect("a small size")
}

fn family(address: SocketAddr) -> libc::c_int {
    match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    }
}

fn sa_family(family: libc::c_int) -> libc::sa_family_t {
    libc::sa_family_t::try_from(family).expect("address families are small numbers")
}

/// An address in the kernel's form.
fn sockaddr(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero is a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let len = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: sa_family(libc::AF_INET),
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_storage is large and aligned enough for every address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: sa_family(libc::AF_INET6),
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, socklen(len))
}

fn sockaddr_unix(path: &Path) -> Result<(libc::sockaddr_un, libc::socklen_t), NetError> {
    let bytes = path.as_os_str().as_encoded_bytes();
    // A path that begins with a zero byte would be an abstract name, which has no file and no mode.
    if bytes.len() > UNIX_PATH_BYTES_MAX || bytes.is_empty() || bytes.contains(&0) {
        return Err(NetError::PathTooLong { path: path.into() });
    }
    let mut raw = libc::sockaddr_un { sun_family: sa_family(libc::AF_UNIX), sun_path: [0; 108] };
    for (target, &byte) in raw.sun_path.iter_mut().zip(bytes) {
        *target = libc::c_char::from_ne_bytes([byte]);
    }
    Ok((raw, socklen(size_of::<libc::sockaddr_un>())))
}

/// An abstract name: the byte after the family is zero, and the length of the address gives the end of the name.
fn sockaddr_abstract(name: &str) -> (libc::sockaddr_un, libc::socklen_t) {
    assert!(name.len() < UNIX_PATH_BYTES_MAX, "bug: the name {name} is too long");
    let mut raw = libc::sockaddr_un { sun_family: sa_family(libc::AF_UNIX), sun_path: [0; 108] };
    for (target, &byte) in raw.sun_path[1..].iter_mut().zip(name.as_bytes()) {
        *target = libc::c_char::from_ne_bytes([byte]);
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    (raw, socklen(len))
}

type AskAddress = unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

/// The TCP address of one end of a socket.
pub(crate) fn address_of(fd: &impl AsRawFd, ask: AskAddress) -> Option<SocketAddr> {
    // SAFETY: all-zero is a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut len = socklen(size_of::<libc::sockaddr_storage>());
    // SAFETY: `storage` has room for `len` bytes.
    check(unsafe { ask(fd.as_raw_fd(), (&raw mut storage).cast(), &raw mut len) }).ok()?;
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is this kind of address.
            let raw = unsafe { (&raw const storage).cast::<libc::sockaddr_in>().read() };
            let octets = raw.sin_addr.s_addr.to_ne_bytes();
            Some(SocketAddr::from((octets, u16::from_be(raw.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { (&raw const storage).cast::<libc::sockaddr_in6>().read() };
            Some(SocketAddr::from((raw.sin6_addr.s6_addr, u16::from_be(raw.sin6_port))))
        }
        _ => None,
    }
}

/// The path of a unix socket that has a file.
pub(crate) fn unix_path_of(fd: &impl AsRawFd) -> Option<PathBuf> {
    let mut raw = libc::sockaddr_un { sun_family: 0, sun_path: [0; 108] };
    let mut len = socklen(size_of::<libc::sockaddr_un>());
    // SAFETY: `raw` has room for `len` bytes.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut raw).cast(), &raw mut len) }).ok()?;
    if libc::c_int::from(raw.sun_family) != libc::AF_UNIX {
        return None;
    }
    let path: Vec<u8> = raw.sun_path.iter().map(|byte| byte.to_ne_bytes()[0]).take_while(|byte| *byte != 0).collect();
    (!path.is_empty()).then(|| OsString::from_vec(path).into())
}

fn unix_peer(fd: &OwnedFd) -> Peer {
    let mut raw = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = socklen(size_of::<libc::ucred>());
    // SAFETY: fills one ucred.
    let returned = unsafe {
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut raw).cast(), &raw mut len)
    };
    match check(returned) {
        Ok(_) => Peer::Unix { process: u32::try_from(raw.pid).unwrap_or(0), user: raw.uid },
        Err(_) => Peer::Unknown,
    }
}
