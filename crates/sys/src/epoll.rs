//! One place to wait: sockets, completions, signals and wake-ups from other threads.

use crate::blocking_threads::{drain_event, event_fd, ring_event};
use crate::errno::{check, Errno};
use openraid_units::Nanos;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Maximum number of events that one call of [`Epoll::wait`] reports. The next call reports further ones.
pub const EVENTS_MAX: usize = 256;

/// Events to wait for. Errors and hang-ups are always reported. Level-triggered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interest {
    /// Bytes, a connection, a completion, or the end of the stream can be received.
    pub readable: bool,
    /// Bytes can be sent, or a connection attempt has ended.
    pub writable: bool,
}

impl Interest {
    /// Only errors and hang-ups.
    pub const NONE: Self = Self { readable: false, writable: false };
    /// Something to read.
    pub const READ: Self = Self { readable: true, writable: false };
    /// Room to write.
    pub const WRITE: Self = Self { readable: false, writable: true };
    /// Something to read, or room to write.
    pub const BOTH: Self = Self { readable: true, writable: true };

    fn bits(self) -> u32 {
        let mut bits = 0;
        if self.readable {
            bits |= libc::EPOLLIN | libc::EPOLLRDHUP;
        }
        if self.writable {
            bits |= libc::EPOLLOUT;
        }
        bits.cast_unsigned()
    }
}

/// An event of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadyEvent {
    /// The caller's number for the descriptor.
    pub token: u64,
    /// Reading will not block (it may report the end or an error).
    pub readable: bool,
    /// Writing will not block (it may report an error).
    pub writable: bool,
    /// The other side has closed the connection or its sending direction, or the descriptor has an error.
    pub closed: bool,
}

/// Memory for the events of one wait.
#[derive(Debug)]
pub struct Events {
    raw: Box<[MaybeUninit<libc::epoll_event>; EVENTS_MAX]>,
    len: usize,
}

impl Events {
    /// No events yet.
    #[must_use]
    pub fn new() -> Self {
        Self { raw: Box::new([const { MaybeUninit::uninit() }; EVENTS_MAX]), len: 0 }
    }

    /// Number of events that the last wait reported.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Did the last wait report no event?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The event with index `nth` of the last wait; `None` after the last event. The caller can handle one event while
    /// others wait.
    #[must_use]
    pub fn get(&self, nth: usize) -> Option<ReadyEvent> {
        if nth >= self.len {
            return None;
        }
        // SAFETY: the kernel filled the first `len` entries.
        let raw = unsafe { self.raw[nth].assume_init() };
        let has = |bits: libc::c_int| raw.events & bits.cast_unsigned() != 0;
        Some(ReadyEvent {
            token: raw.u64,
            readable: has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            writable: has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR),
            closed: has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
        })
    }

    /// All events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = ReadyEvent> + '_ {
        (0..self.len).filter_map(|nth| self.get(nth))
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    /// Does the kernel have `epoll_pwait2` (5.11)? Then timeouts are exact; otherwise they are rounded up to
    /// milliseconds.
    has_nanoseconds: bool,
}

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// The kernel's error: no descriptors or no memory left.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: no memory involved.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: a descriptor just made, without another owner.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, has_nanoseconds: true })
    }

    /// Adds `source` with the number `token` to the set. The kernel removes it when its last descriptor is closed.
    ///
    /// # Errors
    /// The kernel's error: `EEXIST` if `source` is already in the set, `ENOSPC` or `ENOMEM` if there are too many.
    pub fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        self.control(libc::EPOLL_CTL_ADD, source.as_fd(), token, interest.bits())
    }

    /// Adds `source` so that each change to readable is reported once, whether it is read or not.
    ///
    /// # Errors
    /// As of [`Epoll::add`].
    pub fn add_changes(&self, source: impl AsFd, token: u64) -> Result<(), Errno> {
        let bits = Interest::READ.bits() | libc::EPOLLET.cast_unsigned();
        self.control(libc::EPOLL_CTL_ADD, source.as_fd(), token, bits)
    }

    /// Changes the events to wait for.
    ///
    /// # Errors
    /// `ENOENT` if `source` is not in the set.
    pub fn modify(&self, source: impl AsFd, token: u64, interest: Interest) -> Result<(), Errno> {
        self.control(libc::EPOLL_CTL_MOD, source.as_fd(), token, interest.bits())
    }

    /// Removes `source` from the set.
    ///
    /// # Errors
    /// `ENOENT` if `source` is not in the set.
    pub fn remove(&self, source: impl AsFd) -> Result<(), Errno> {
        self.control(libc::EPOLL_CTL_DEL, source.as_fd(), 0, 0)
    }

    fn control(&self, change: libc::c_int, source: BorrowedFd<'_>, token: u64, events: u32) -> Result<(), Errno> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: reads one epoll_event.
        let returned = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), change, source.as_raw_fd(), &raw mut event) };
        check(returned).map(drop)
    }

    /// Waits for an event, at most for `timeout` (`None`: without limit). Returns early without events if a signal
    /// handler or the kernel's own work interrupts the wait, so the caller must check the clock afterwards.
    ///
    /// # Errors
    /// None in practice: only an invalid set is refused.
    pub fn wait(&mut self, events: &mut Events, timeout: Option<Nanos>) -> Result<usize, Errno> {
        events.len = 0;
        let room = libc::c_int::try_from(EVENTS_MAX).expect("a small limit");
        let raw = events.raw.as_mut_ptr().cast::<libc::epoll_event>();
        let fd = self.fd.as_raw_fd();
        if self.has_nanoseconds {
            let time = timeout.map(timespec);
            let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: `raw` has room for that many events, `time` is null or a valid timespec, the mask is absent.
            let returned = unsafe {
                libc::syscall(libc::SYS_epoll_pwait2, fd, raw, room, time, std::ptr::null::<libc::sigset_t>(), 0usize)
            };
            match libc::c_int::try_from(returned).map_err(|_| Errno(libc::EINVAL)).and_then(check) {
                Ok(count) => events.len = usize::try_from(count).expect("checked to be positive"),
                Err(Errno(libc::EINTR)) => {}
                // Sandboxes answer EPERM to system calls that they do not know.
                Err(Errno(libc::ENOSYS | libc::EPERM)) => self.has_nanoseconds = false,
                Err(error) => return Err(error),
            }
        }
        if !self.has_nanoseconds {
            // SAFETY: as above.
            match check(unsafe { libc::epoll_wait(fd, raw, room, milliseconds(timeout)) }) {
                Ok(count) => events.len = usize::try_from(count).expect("checked to be positive"),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(events.len)
    }

    #[cfg(test)]
    fn without_nanoseconds(mut self) -> Self {
        self.has_nanoseconds = false;
        self
    }
}

/// A set is readable while something in it has an event, so sets can be in sets.
impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn timespec(time: Nanos) -> libc::timespec {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let rest = libc::c_long::try_from(time.get() % 1_000_000_000).expect("below a second");
    libc::timespec { tv_sec: seconds, tv_nsec: rest }
}

/// Milliseconds, rounded up: if a wait ended before its time, the caller would loop without sleeping.
fn milliseconds(timeout: Option<Nanos>) -> libc::c_int {
    timeout.map_or(-1, |time| libc::c_int::try_from(time.get().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX))
}

/// Wakes an [`Epoll`] from any thread. All clones wake the same set.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    /// Makes a waker. Add it for reading to the set that it must wake.
    ///
    /// # Errors
    /// The kernel's error: no descriptors or no memory left.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self { event: Arc::new(event_fd()?) })
    }

    /// Makes the waker readable. Several wakes before a [`Waker::clear`] count as one.
    pub fn wake(&self) {
        ring_event(self.event.as_fd());
    }

    /// Makes the waker unreadable. The waiting side calls this before it handles the reason of the wake-up.
    pub fn clear(&self) {
        drain_event(self.event.as_fd());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Waits for one descriptor until it is readable or the time is over; may return early.
pub(crate) fn wait_readable(source: BorrowedFd<'_>, timeout: Nanos) -> Result<(), Errno> {
    let mut poll = libc::pollfd { fd: source.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = timespec(timeout);
    // SAFETY: both live across the call, and no signal mask is given.
    match check(unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) }) {
        Ok(_) | Err(Errno(libc::EINTR)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_wakes_from_another_thread_until_it_is_cleared() {
        for nanoseconds in [true, false] {
            let epoll = Epoll::new().expect("epoll");
            let mut epoll = if nanoseconds { epoll } else { epoll.without_nanoseconds() };
            let waker = Waker::new().expect("eventfd");
            epoll.add(&waker, u64::MAX - 7, Interest::READ).expect("add");
            let mut events = Events::new();
            assert_eq!(epoll.wait(&mut events, Some(Nanos::from_micros(10))), Ok(0));
            let other = waker.clone();
            std::thread::spawn(move || other.wake()).join().expect("thread");
            assert_eq!(epoll.wait(&mut events, None), Ok(1));
            let event = events.get(0).expect("one");
            assert_eq!((event.token, event.readable, event.writable), (u64::MAX - 7, true, false));
            assert_eq!(epoll.wait(&mut events, None), Ok(1), "level-triggered");
            waker.clear();
            waker.clear();
            assert_eq!(epoll.wait(&mut events, Some(Nanos::ZERO)), Ok(0));
            epoll.remove(&waker).expect("remove");
            waker.wake();
            assert_eq!(epoll.wait(&mut events, Some(Nanos::ZERO)), Ok(0));
            assert_eq!(epoll.remove(&waker), Err(Errno(libc::ENOENT)));
        }
    }

    #[test]
    fn each_wake_is_a_change_once_through_a_set_in_a_set() {
        let (mut outer, mut inner) = (Epoll::new().expect("epoll"), Epoll::new().expect("epoll"));
        let waker = Waker::new().expect("eventfd");
        inner.add_changes(&waker, 7).expect("add");
        outer.add(&inner, 8, Interest::READ).expect("add");
        let mut events = Events::new();
        for _ in 0..3 {
            waker.wake();
            assert_eq!(outer.wait(&mut events, None), Ok(1));
            assert_eq!(inner.wait(&mut events, Some(Nanos::ZERO)), Ok(1));
            assert_eq!(events.get(0).map(|event| event.token), Some(7));
            assert_eq!(inner.wait(&mut events, Some(Nanos::ZERO)), Ok(0), "it was not read, but reported");
            assert_eq!(outer.wait(&mut events, Some(Nanos::ZERO)), Ok(0));
        }
    }

    #[test]
    fn short_waits_round_up_and_long_ones_do_not_overflow() {
        assert_eq!(milliseconds(Some(Nanos(1))), 1);
        assert_eq!(milliseconds(Some(Nanos(u64::MAX))), libc::c_int::MAX);
        assert_eq!(milliseconds(None), -1);
        assert_eq!(timespec(Nanos(u64::MAX)).tv_nsec, 709_551_615);
    }
}
