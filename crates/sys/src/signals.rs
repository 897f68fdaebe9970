//! Signals as descriptors to wait for. Signal handlers could interrupt the program at any place.

use crate::errno::{check, check_size, Errno};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signals that a server handles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessSignal {
    /// Ctrl-C: stop.
    Interrupt,
    /// A service manager's stop.
    Terminate,
    /// The terminal was closed, or "read the configuration again".
    HangUp,
}

/// A queue of these signals. While it exists, they do not end the process.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM and SIGHUP. Call this before any other thread is made: signals are blocked in the
    /// calling thread and in threads that it makes later. A signal that another thread does not block would still end
    /// the process.
    ///
    /// # Errors
    /// The kernel's error: no descriptors or no memory left.
    pub fn take_over() -> Result<Self, Errno> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set, sigaddset changes it.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            set.assume_init()
        };
        // SAFETY: reads the set; the old mask is not requested, so nothing is written.
        let masked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if masked != 0 {
            return Err(Errno(masked));
        }
        // SAFETY: reads the set.
        let fd = check(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: a descriptor just made, without another owner.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// The next signal that has arrived, if any. Does not wait.
    pub fn next_signal(&self) -> Option<ProcessSignal> {
        loop {
            let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
            let size = size_of::<libc::signalfd_siginfo>();
            // SAFETY: `info` has room for the `size` bytes that are asked for.
            match check_size(unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) }) {
                Ok(read) if read == size => {}
                Err(Errno(libc::EINTR)) => continue,
                _ => return None,
            }
            // SAFETY: the kernel filled all of it.
            let number = unsafe { info.assume_init() }.ssi_signo;
            match libc::c_int::try_from(number) {
                Ok(libc::SIGINT) => return Some(ProcessSignal::Interrupt),
                Ok(libc::SIGTERM) => return Some(ProcessSignal::Terminate),
                Ok(libc::SIGHUP) => return Some(ProcessSignal::HangUp),
                _ => {}
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
