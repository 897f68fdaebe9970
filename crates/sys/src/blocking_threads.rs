//! Commands by blocking calls on threads. This is the engine if io_uring is refused, and the helper for ioctls if it is
//! not.
//!
//! Each member has a few threads and a queue of its own. This needs more threads than a shared pool, but a member that
//! does not answer can block only its own threads.
//!
//! A thread owns the objects that it works on (the member, the pool's mapping). Therefore an engine can be dropped
//! while a thread waits in the kernel: the thread ends when its call returns.

use crate::command::{Answer, MemberCommand, Opcode, WORKERS_PER_MEMBER};
use crate::errno::{check, check_size, Errno};
use crate::frame_pool::Mapping;
use crate::member::MemberFile;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// From linux/fs.h: `_IO(0x12, 119)`, takes two u64: start and length in bytes.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// Finished commands, and the eventfd that signals them.
struct AnswerQueue {
    answers: Mutex<Vec<Answer>>,
    event: OwnedFd,
}

impl AnswerQueue {
    fn add(&self, answer: Answer) {
        let mut answers = lock(&self.answers);
        let first = answers.is_empty();
        answers.push(answer);
        drop(answers);
        if first {
            ring_event(self.event.as_fd());
        }
    }
}

/// The queue of one member.
struct Lane {
    member: Arc<MemberFile>,
    shared: Arc<LaneShared>,
    workers: Vec<JoinHandle<()>>,
    staged: Vec<MemberCommand>,
}

struct LaneShared {
    state: Mutex<LaneState>,
    work: Condvar,
}

#[derive(Default)]
struct LaneState {
    queue: VecDeque<MemberCommand>,
    idle: usize,
    closed: bool,
}

/// The thread engine.
pub(crate) struct Threads {
    lanes: Vec<Option<Lane>>,
    finished: Arc<AnswerQueue>,
    mapping: Arc<Mapping>,
    outstanding: usize,
}

impl Threads {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Result<Self, Errno> {
        let finished = Arc::new(AnswerQueue { answers: Mutex::new(Vec::new()), event: event_fd()? });
        Ok(Self { lanes: Vec::new(), finished, mapping, outstanding: 0 })
    }

    /// Number of commands that were accepted and not yet collected.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding
    }

    pub(crate) fn attach(&mut self, slot: usize, member: Arc<MemberFile>) {
        if self.lanes.len() <= slot {
            self.lanes.resize_with(slot + 1, || None);
        }
        let shared = Arc::new(LaneShared { state: Mutex::default(), work: Condvar::new() });
        self.lanes[slot] = Some(Lane { member, shared, workers: Vec::new(), staged: Vec::new() });
    }

    /// Detaches a member that has no commands in flight.
    pub(crate) fn detach(&mut self, slot: usize) {
        if let Some(lane) = self.lanes.get_mut(slot).and_then(Option::take) {
            lane.close(true);
        }
    }

    pub(crate) fn start(&mut self, command: MemberCommand) {
        let lane = self.lanes[command.slot].as_mut().expect("bug: a command to a member that is not attached");
        lane.staged.push(command);
        self.outstanding += 1;
    }

    pub(crate) fn submit(&mut self) {
        for lane in self.lanes.iter_mut().flatten().filter(|lane| !lane.staged.is_empty()) {
            lane.submit(&self.finished, &self.mapping);
        }
    }

    pub(crate) fn collect(&mut self, answers: &mut Vec<Answer>) {
        drain_event(self.finished.event.as_fd());
        let before = answers.len();
        answers.append(&mut lock(&self.finished.answers));
        self.outstanding -= answers.len() - before;
    }

    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        self.finished.event.as_fd()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let idle = self.outstanding == 0;
        for lane in self.lanes.drain(..).flatten() {
            lane.close(idle);
        }
    }
}

impl Lane {
    fn submit(&mut self, finished: &Arc<AnswerQueue>, mapping: &Arc<Mapping>) {
        let mut state = lock(&self.shared.state);
        state.queue.extend(self.staged.drain(..));
        let waiting = state.queue.len();
        let wanted = waiting.saturating_sub(state.idle).min(WORKERS_PER_MEMBER - self.workers.len());
        for _ in 0..state.idle.min(waiting) {
            self.shared.work.notify_one();
        }
        drop(state);
        for _ in 0..wanted {
            if !self.spawn(finished, mapping) {
                break;
            }
        }
        if self.workers.is_empty() {
            // No thread could be made, so the commands fail instead of waiting for one.
            for command in lock(&self.shared.state).queue.drain(..) {
                finished.add(Answer { key: command.key, result: Err(Errno(libc::EAGAIN)) });
            }
        }
    }

    fn spawn(&mut self, finished: &Arc<AnswerQueue>, mapping: &Arc<Mapping>) -> bool {
        let (shared, member) = (Arc::clone(&self.shared), Arc::clone(&self.member));
        let (finished, mapping) = (Arc::clone(finished), Arc::clone(mapping));
        let thread = std::thread::Builder::new().name("member-io".into());
        let spawned = thread.spawn(move || {
            // The thread only holds the mapping: the memory of the commands must stay mapped while this thread is in
            // the kernel.
            let _mapping = mapping;
            while let Some(command) = shared.next() {
                let result = execute(&command, member.as_fd().as_raw_fd());
                finished.add(Answer { key: command.key, result });
            }
        });
        match spawned {
            Ok(worker) => {
                self.workers.push(worker);
                true
            }
            Err(_) => false,
        }
    }

    /// Ends the threads and drops commands that no thread has begun. If the threads are `idle`, waits for their end, so
    /// that the member is free afterwards. A thread that is in the kernel may never end.
    fn close(self, idle: bool) {
        let mut state = lock(&self.shared.state);
        state.closed = true;
        state.queue.clear();
        drop(state);
        self.shared.work.notify_all();
        if idle {
            for worker in self.workers {
                assert!(worker.join().is_ok(), "bug: a thread of the engine panicked");
            }
        }
    }
}

impl LaneShared {
    fn next(&self) -> Option<MemberCommand> {
        let mut state = lock(&self.state);
        loop {
            if let Some(command) = state.queue.pop_front() {
                return Some(command);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Tries a command once, by blocking calls.
fn execute(command: &MemberCommand, fd: RawFd) -> Result<u32, Errno> {
    let at = i64::try_from(command.at).map_err(|_| Errno(libc::EFBIG))?;
    let len = i64::try_from(command.len).map_err(|_| Errno(libc::EFBIG))?;
    match command.opcode {
        Opcode::Read => {
            let len = command.transfer_len() as usize;
            // SAFETY: the memory of a command is valid, and lent to the kernel to write, until it is collected.
            transferred(check_size(unsafe { libc::pread64(fd, command.address.cast(), len, at) }))
        }
        Opcode::Write { fua } => {
            let vector = libc::iovec { iov_base: command.address.cast(), iov_len: command.transfer_len() as usize };
            let flags = if fua { libc::RWF_DSYNC } else { 0 };
            // SAFETY: the memory of a command is valid, and lent to the kernel to read, until it is collected.
            transferred(check_size(unsafe { libc::pwritev2(fd, &raw const vector, 1, at, flags) }))
        }
        // SAFETY: no memory involved.
        Opcode::Flush => check(unsafe { libc::fdatasync(fd) }).map(|_| 0),
        // SAFETY: no memory involved.
        Opcode::Allocate { mode } => check(unsafe { libc::fallocate64(fd, mode, at, len) }).map(|_| 0),
        Opcode::DiscardDevice => {
            let range = [command.at, command.len];
            // SAFETY: BLKDISCARD reads two u64.
            check(unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) }).map(|_| 0)
        }
    }
}

fn transferred(size: Result<usize, Errno>) -> Result<u32, Errno> {
    size.map(|size| u32::try_from(size).expect("the kernel transfers no more than it was asked to"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that holds one of these locks can panic in the middle of a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A non-blocking event counter.
pub(crate) fn event_fd() -> Result<OwnedFd, Errno> {
    // SAFETY: no memory involved.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: a descriptor just made, without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the counter readable.
pub(crate) fn ring_event(event: BorrowedFd<'_>) {
    let one: u64 = 1;
    // SAFETY: reads eight bytes of `one`.
    let wrote = unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
    // A full counter is readable, and nothing more is needed.
    assert!(wrote == 8 || Errno::last().0 == libc::EAGAIN, "bug: an event counter of ours cannot be written");
}

/// Makes the counter unreadable.
pub(crate) fn drain_event(event: BorrowedFd<'_>) {
    let mut count: u64 = 0;
    // SAFETY: fills eight bytes of `count`.
    let read = unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) };
    assert!(read == 8 || Errno::last().0 == libc::EAGAIN, "bug: an event counter of ours cannot be read");
}
