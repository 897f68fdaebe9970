//! Listening sockets that outlive a server: another process keeps them, and hands them to each server that it starts.
//!
//! ```text
//!  keeper (systemd, or `serve --keep-listening`) --LISTEN_PID, LISTEN_FDS, descriptors from 3 on--> server
//! ```
//!
//! While no server runs, clients wait in the queue of the socket. Source: sd_listen_fds(3).

use crate::errno::{check, Errno};
use crate::net::{address_of, unix_path_of, Listener};
use crate::signals::ProcessSignal;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// The number of the first descriptor that is handed over.
pub const FIRST_INHERITED: RawFd = 3;

/// The place where a socket listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenPlace {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A unix socket with a file.
    Unix(PathBuf),
}

impl fmt::Display for ListenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Why a descriptor is not taken as a listener.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotInherited {
    /// The descriptor is not open.
    Closed,
    /// It is a file, a pipe or a device.
    NoSocket,
    /// The socket does not listen for streams.
    NotListening,
    /// It listens at a name or in a family that the server does not know.
    Elsewhere,
    /// The kernel's error.
    Failed(Errno),
}

impl fmt::Display for NotInherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(f, "it is not open"),
            Self::NoSocket => write!(f, "it is not a socket"),
            Self::NotListening => write!(f, "it is not a listening stream socket"),
            Self::Elsewhere => write!(f, "it listens neither at a TCP address nor at the path of a unix socket"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// A listener that another process made and keeps, and its place.
#[derive(Debug)]
pub struct InheritedListener {
    /// The listener. Dropped, it leaves the file of a unix socket alone.
    pub listener: Listener,
    /// Where it listens.
    pub place: ListenPlace,
}

impl InheritedListener {
    /// Takes over a descriptor that this process got at its start.
    ///
    /// # Errors
    /// See [`NotInherited`]. The descriptor stays open then.
    pub fn take(number: RawFd) -> Result<Self, NotInherited> {
        let known = |error| match error {
            Errno(libc::EBADF) => NotInherited::Closed,
            Errno(libc::ENOTSOCK) => NotInherited::NoSocket,
            error => NotInherited::Failed(error),
        };
        let listens = option(number, libc::SO_ACCEPTCONN).map_err(known)?;
        if listens == 0 || option(number, libc::SO_TYPE).map_err(known)? != libc::SOCK_STREAM {
            return Err(NotInherited::NotListening);
        }
        // SAFETY: open, as was just seen, for the length of these calls.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let tcp = address_of(&borrowed, libc::getsockname).map(ListenPlace::Tcp);
        let place = tcp.or_else(|| unix_path_of(&borrowed).map(ListenPlace::Unix)).ok_or(NotInherited::Elsewhere)?;
        // SAFETY: no memory involved.
        let status = check(unsafe { libc::fcntl(number, libc::F_GETFL) }).map_err(NotInherited::Failed)?;
        for (command, flags) in [(libc::F_SETFL, status | libc::O_NONBLOCK), (libc::F_SETFD, libc::FD_CLOEXEC)] {
            // SAFETY: no memory involved.
            check(unsafe { libc::fcntl(number, command, flags) }).map_err(NotInherited::Failed)?;
        }
        // SAFETY: it is open, and was given to this process at its start: nothing else in it has it as its own.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Self { listener: Listener::kept(fd), place })
    }

    /// The same socket for the standard library.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn to_std(&self) -> io::Result<TcpListener> {
        self.listener.as_fd().try_clone_to_owned().map(TcpListener::from)
    }
}

/// An option of a socket that is a number.
pub(crate) fn option(number: RawFd, option: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("a small size");
    // SAFETY: fills one int.
    check(unsafe { libc::getsockopt(number, libc::SOL_SOCKET, option, (&raw mut value).cast(), &raw mut len) })?;
    Ok(value)
}

/// A server that was started with kept listeners. Readable when it has ended.
#[derive(Debug)]
pub struct ServerWithSockets {
    process: libc::pid_t,
    end: OwnedFd,
}

impl ServerWithSockets {
    /// Starts this command with these sockets as its descriptors from [`FIRST_INHERITED`] on. The calling process has one thread.
    ///
    /// # Errors
    /// The kernel has no room for a process. A program that cannot be executed says so itself, and ends with 127.
    pub fn start(command: &mut Command, sockets: &[BorrowedFd<'_>]) -> io::Result<Self> {
        // SAFETY: the caller has one thread, so no lock is held for ever in the new process, which only calls `exec`.
        match check(unsafe { libc::fork() }).map_err(error_of)? {
            0 => {
                let error = become_server(command, sockets);
                eprintln!("openraid: {}: cannot be executed: {error}", command.get_program().to_string_lossy());
                // SAFETY: ends this process without the handlers of the other one.
                unsafe { libc::_exit(127) }
            }
            process => {
                // SAFETY: no memory involved. The process is not waited for yet, so its number is its own.
                let end = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
                let end = check(libc::c_int::try_from(end).unwrap_or(-1)).map_err(error_of)?;
                // SAFETY: a descriptor just made, without another owner.
                Ok(Self { process, end: unsafe { OwnedFd::from_raw_fd(end) } })
            }
        }
    }

    /// Passes a signal on.
    pub fn send(&self, signal: ProcessSignal) {
        let number = match signal {
            ProcessSignal::Interrupt => libc::SIGINT,
            ProcessSignal::Terminate => libc::SIGTERM,
            ProcessSignal::HangUp => libc::SIGHUP,
        };
        // SAFETY: no memory involved. The process is not waited for before `wait`, so its number is its own.
        let _ = unsafe { libc::kill(self.process, number) };
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn wait(self) -> io::Result<ExitStatus> {
        let mut status = 0;
        loop {
            // SAFETY: fills one int.
            match check(unsafe { libc::waitpid(self.process, &raw mut status, 0) }) {
                Ok(_) => return Ok(ExitStatus::from_raw(status)),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error_of(error)),
            }
        }
    }
}

impl AsFd for ServerWithSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

fn error_of(error: Errno) -> io::Error {
    io::Error::from_raw_os_error(error.0)
}

/// Returns only if the program cannot be executed.
fn become_server(command: &mut Command, sockets: &[BorrowedFd<'_>]) -> io::Error {
    if let Err(error) = move_down(sockets) {
        return error_of(error);
    }
    command.env("LISTEN_PID", std::process::id().to_string()).env("LISTEN_FDS", sockets.len().to_string());
    command.env_remove("LISTEN_FDNAMES").exec()
}

/// Give the sockets their numbers. They are copied to higher numbers first, because one may have the number of another.
fn move_down(sockets: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let past = FIRST_INHERITED + RawFd::try_from(sockets.len()).unwrap_or(RawFd::MAX - FIRST_INHERITED);
    let mut copies = Vec::new();
    for socket in sockets {
        // SAFETY: no memory involved.
        copies.push(check(unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD_CLOEXEC, past) })?);
    }
    for (number, copy) in (FIRST_INHERITED..).zip(copies) {
        // SAFETY: no memory involved. What this process had at the number is of no use to the program that follows.
        check(unsafe { libc::dup2(copy, number) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::net::{Ipv4Addr, TcpStream, UdpSocket};
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn listening_sockets_are_taken_with_their_places_and_nothing_else_is() {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = tcp.local_addr().expect("bound");
        let kept = InheritedListener::take(tcp.into_raw_fd()).expect("it listens");
        assert_eq!(kept.place, ListenPlace::Tcp(address));
        let _waits = TcpStream::connect(address).expect("it listens");
        assert!(kept.to_std().is_ok_and(|listener| listener.local_addr().is_ok_and(|same| same == address)));
        let path = std::env::temp_dir().join(format!("openraid-kept-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let unix = InheritedListener::take(UnixListener::bind(&path).expect("room").into_raw_fd()).expect("it listens");
        assert_eq!(unix.place, ListenPlace::Unix(path.clone()));
        drop(unix);
        assert!(std::fs::remove_file(&path).is_ok(), "the file belongs to the process that made it");
        let file = File::open("/proc/self/exe").expect("it is there").into_raw_fd();
        let datagram = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port").into_raw_fd();
        let (one, _other) = UnixStream::pair().expect("room");
        let refused = [file, datagram, one.into_raw_fd(), 1 << 20].map(|number| InheritedListener::take(number).err());
        let wanted =
            [NotInherited::NoSocket, NotInherited::NotListening, NotInherited::NotListening, NotInherited::Closed];
        assert_eq!(refused, wanted.map(Some));
    }
}
