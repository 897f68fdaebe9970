//! Sockets for NBD: listeners, non-blocking streams, bytes straight into frames and straight out of them.
//!
//! Every call does at most one system call and never waits. A fault of the network is an error value; a peer that goes
//! away is [`Progress::Closed`], not an error.

use crate::errno::{check, check_size, Errno};
use crate::pool::{FramePool, PoolRange};
use crate::process::is_ending;
use std::fmt;
use std::fs::{self, Permissions};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Connections that may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: libc::c_int = 1024;
/// Pieces handed to the kernel by one send (its limit, `IOV_MAX`); more are sent by the next.
pub const PIECES_PER_SEND_MAX: usize = 1024;
/// Connections that failed before they were accepted and are passed over by one accept.
const FAILED_ACCEPTS_MAX: usize = 64;
/// Bytes of a unix socket's path, without the zero at its end.
const UNIX_PATH_BYTES_MAX: usize = 107;

/// Why a listener or connection cannot be had, with the address that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NetError {
    /// Another program serves there already.
    InUse {
        /// The address.
        address: String,
        /// Which.
        holder: Holder,
    },
    /// The path exists and is no socket.
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path is too long for a unix socket.
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// The kernel's error.
    Failed {
        /// The address.
        address: String,
        /// The attempt, as in "cannot ...".
        attempt: &'static str,
        /// The kernel's answer.
        error: Errno,
    },
}

/// The program that serves at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// This process, which continues.
    Running(u32),
    /// This process, which the kernel is about to take apart.
    Leaving(u32),
    /// The kernel does not say.
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
        /// Its number, 0 if it is in another namespace.
        process: u32,
        /// Its user.
        user: u32,
    },
    /// The kernel does not say.
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
    /// This many bytes, at least one.
    Bytes(usize),
    /// Nothing now; wait for the socket.
    Blocked,
    /// The other side is gone, orderly or not.
    Closed,
}

/// A piece of a message to send.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Bytes of the program: headers.
    Bytes(&'a [u8]),
    /// Bytes of the pool: payload. Read by the kernel during the call only.
    Pool(PoolRange),
}

impl<'a> Piece<'a> {
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
    /// No client waits.
    Nobody,
    /// A client waits, but descriptors or memory are used up. The listener stays readable: stop waiting for it for a
    /// while, or close something.
    Exhausted(Errno),
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    /// The file of a unix socket, by device and inode, to remove it and nothing else at the end.
    file: Option<(PathBuf, u64, u64)>,
}

impl Listener {
    /// Listen on a TCP address; port 0 takes a free one.
    ///
    /// # Errors
    /// [`NetError::InUse`], or the kernel's error.
    pub fn tcp(address: SocketAddr) -> Result<Self, NetError> {
        let fail = |attempt, error| match error {
            Errno(libc::EADDRINUSE) => NetError::InUse { address: address.to_string(), holder: Holder::Unknown },
            error => NetError::Failed { address: address.to_string(), attempt, error },
        };
        let fd = socket(family(address)).map_err(|e| fail("make a socket", e))?;
        // A server that restarts must not wait for its old connections to be forgotten.
        set(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).map_err(|e| fail("set up the socket", e))?;
        let (raw, len) = sockaddr(address);
        // SAFETY: `raw` holds `len` bytes of a valid address.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), len) }).map_err(|e| fail("bind", e))?;
        listen(&fd).map_err(|e| fail("listen", e))?;
        Ok(Self { fd, file: None })
    }

    /// Listen on a unix socket that only this user can connect to. A socket left by a dead server is replaced.
    ///
    /// # Errors
    /// [`NetError::InUse`] if a server answers there, [`NetError::NotASocket`], or the kernel's error.
    pub fn unix(path: &Path) -> Result<Self, NetError> {
        Self::unix_for(path, false)
    }

    /// Listen on a unix socket for clients. A folder with the set-group-ID bit gives its files its group: there, the members of that
    /// group can connect too; elsewhere, only this user.
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
            // Only now: the umask has its say when the socket is bound.
            fs::set_permissions(path, Permissions::from_mode(0o660))
                .map_err(|e| fail("open the socket to its group", e.into()))?;
        }
        listen(&fd).map_err(|e| fail("listen", e))?;
        let metadata = fs::symlink_metadata(path).map_err(|e| fail("look at the socket", e.into()))?;
        Ok(Self { fd, file: Some((path.into(), metadata.dev(), metadata.ino())) })
    }

    /// The TCP address in use; `None` for a unix socket.
    #[must_use]
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        address_of(&self.fd, libc::getsockname)
    }

    /// Take the next connection.
    ///
    /// # Errors
    /// The kernel's error: the listener itself is broken.
    pub fn accept(&self) -> Result<Accepted, Errno> {
        for _ in 0..FAILED_ACCEPTS_MAX {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: the address is not asked for.
            let accepted =
                unsafe { libc::accept4(self.fd.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) };
            match check(accepted) {
                // SAFETY: a descriptor just made, without another owner.
                Ok(fd) => return Ok(Accepted::Socket(Socket::of(unsafe { OwnedFd::from_raw_fd(fd) }))),
                Err(Errno(libc::EAGAIN)) => return Ok(Accepted::Nobody),
                Err(error @ Errno(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)) => {
                    return Ok(Accepted::Exhausted(error))
                }
                Err(error @ Errno(libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EFAULT)) => return Err(error),
                // The rest is what went wrong with one connection before it was accepted: no fault of the listener.
                Err(_) => {}
            }
        }
        Ok(Accepted::Nobody)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((path, device, inode)) = &self.file {
            let same = fs::symlink_metadata(path).is_ok_and(|m| (m.dev(), m.ino()) == (*device, *inode));
            if same {
                // If it cannot be removed, the next server finds it stale.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// A connection, non-blocking.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    peer: Peer,
}

impl Socket {
    fn of(fd: OwnedFd) -> Self {
        let peer = match address_of(&fd, libc::getpeername) {
            Some(address) => Peer::Tcp(address),
            None => unix_peer(&fd),
        };
        if matches!(peer, Peer::Tcp(_)) {
            // Replies are gathered by hand; waiting for more would only add latency. Refusal costs only that.
            let _ = set(&fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
        }
        Self { fd, peer }
    }

    /// Begin to connect to a TCP address. Wait until the socket is writable, then ask [`Socket::connected`].
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
        Ok(Self { fd, peer: Peer::Tcp(address) })
    }

    /// Connect to a unix socket; [`Socket::connected`] says yes at once.
    ///
    /// # Errors
    /// The kernel's error; `EAGAIN` if the server has too many waiting.
    pub fn connect_unix(path: &Path) -> Result<Self, NetError> {
        let fail = |attempt, error| NetError::Failed { address: path.display().to_string(), attempt, error };
        let (raw, len) = sockaddr_unix(path)?;
        let fd = socket(libc::AF_UNIX).map_err(|e| fail("make a socket", e))?;
        // SAFETY: `raw` holds `len` bytes of a valid address.
        check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const raw).cast(), len) })
            .map_err(|e| fail("connect", e))?;
        Ok(Self::of(fd))
    }

    /// Has the connection attempt ended? `Ok(false)` while it continues.
    ///
    /// # Errors
    /// Why it failed.
    pub fn connected(&self) -> Result<bool, Errno> {
        let mut error: libc::c_int = 0;
        let mut len = socklen(size_of::<libc::c_int>());
        // SAFETY: fills one int.
        let returned = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
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
        match check(unsafe { libc::getpeername(self.fd.as_raw_fd(), raw.as_mut_ptr().cast(), &raw mut len) }) {
            Ok(_) => Ok(true),
            Err(Errno(libc::ENOTCONN)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The other side.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Ask for kernel buffers of this many bytes each way. The kernel may give less, or twice.
    ///
    /// # Errors
    /// The kernel's error; nothing has become worse.
    pub fn set_buffers(&self, receive: u32, send: u32) -> Result<(), Errno> {
        let size = |bytes| libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set(&self.fd, libc::SOL_SOCKET, libc::SO_RCVBUF, size(receive))?;
        set(&self.fd, libc::SOL_SOCKET, libc::SO_SNDBUF, size(send))
    }

    /// Receive the available bytes, up to the room in `into`, which must not be empty.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive(&self, into: &mut [u8]) -> Result<Progress, Errno> {
        assert!(!into.is_empty(), "bug: receiving into nothing would look like the end of the stream");
        loop {
            // SAFETY: `into` is a writable slice of the length that is passed.
            let received =
                unsafe { libc::recv(self.fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) };
            match check_size(received) {
                Ok(0) => return Ok(Progress::Closed),
                Ok(bytes) => return Ok(Progress::Bytes(bytes)),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return stopped(error),
            }
        }
    }

    /// The same straight into the pool. Panics as [`FramePool::slice_mut`] does.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive_into_pool(&self, pool: &mut FramePool, into: PoolRange) -> Result<Progress, Errno> {
        self.receive(pool.slice_mut(into))
    }

    /// Send all pieces in their order, without the first `skip` bytes of them (what earlier calls sent). The bytes
    /// reported are counted from there. Panics as [`FramePool::slice`] does.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send(&self, pool: &FramePool, pieces: &[Piece<'_>], skip: usize) -> Result<Progress, Errno> {
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
                libc::sendmsg(self.fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            };
            match check_size(sent) {
                Ok(bytes) => return Ok(Progress::Bytes(bytes)),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return stopped(error),
            }
        }
    }

    /// Say that nothing more will be sent; the other side may still send.
    pub fn finish_sending(&self) {
        // The only errors say that the connection is gone, which the next receive says too.
        // SAFETY: no memory involved.
        let _ = unsafe { libc::shutdown(self.fd.as_raw_fd(), libc::SHUT_WR) };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
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
    /// All calls pass `MSG_DONTWAIT`, so whether the descriptor itself blocks does not matter.
    fn adopt(fd: OwnedFd) -> Self {
        Self::of(fd)
    }
}

/// Sort the ends of a transfer from its errors.
fn stopped(error: Errno) -> Result<Progress, Errno> {
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

fn set(fd: &OwnedFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> Result<(), Errno> {
    let len = socklen(size_of::<libc::c_int>());
    // SAFETY: reads one int.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) }).map(drop)
}

/// The server at the other end of a unix socket.
fn holder(socket: &Socket) -> Holder {
    match unix_peer(&socket.fd) {
        Peer::Unix { process: 0, .. } | Peer::Tcp(_) | Peer::Unknown => Holder::Unknown,
        Peer::Unix { process, .. } if is_ending(process) => Holder::Leaving(process),
        Peer::Unix { process, .. } => Holder::Running(process),
    }
}

/// Remove the socket at `path` if no server answers there.
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
        // It accepts no client just now because too many wait.
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
    // A path that begins with a zero would be an abstract name, without a file and without a mode.
    if bytes.len() > UNIX_PATH_BYTES_MAX || bytes.is_empty() || bytes.contains(&0) {
        return Err(NetError::PathTooLong { path: path.into() });
    }
    let mut raw = libc::sockaddr_un { sun_family: sa_family(libc::AF_UNIX), sun_path: [0; 108] };
    for (target, &byte) in raw.sun_path.iter_mut().zip(bytes) {
        *target = libc::c_char::from_ne_bytes([byte]);
    }
    Ok((raw, socklen(size_of::<libc::sockaddr_un>())))
}

type AskAddress = unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

/// The TCP address of one end of a socket.
fn address_of(fd: &OwnedFd, ask: AskAddress) -> Option<SocketAddr> {
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
