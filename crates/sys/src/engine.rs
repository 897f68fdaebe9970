//! Asynchronous commands to members: one interface with two engines.
//!
//! ```text
//!   push   mark the pool's sectors, enter the command in the table, queue it      (no system call)
//!   submit hand everything queued to the kernel                                   (one system call)
//!   event_fd becomes readable
//!   reap   continue short transfers, unmark the sectors, report finished commands (none or one)
//! ```
//!
//! An engine belongs to the thread that made it. It never retries a failed command, has no timeouts and keeps no order
//! between commands; the core does all this. Commands that are in flight together may complete in any order.
//!
//! If a command does not return, it stays in the table, its sectors stay marked and its member stays attached, until
//! the kernel returns it. If the engine is dropped before that, this memory and the members are kept until the process
//! ends.

use crate::blocking_threads::Threads;
use crate::buffer::{AlignedBuffer, METADATA_BYTES_MAX};
use crate::command::{
    Answer, MemberCommand, Opcode, DONE_PER_REAP_HINT, IN_FLIGHT_MAX, MEMBERS_MAX, TRANSFER_BYTES_MAX,
};
use crate::commands_in_flight::{CommandEntry, CommandTable, Memory, Next};
use crate::epoll::wait_readable;
use crate::errno::{Errno, Note};
use crate::frame_pool::{FramePool, Mapping, PoolRange};
use crate::member::MemberFile;
use crate::ring::Ring;
use openraid_units::{Bytes, DriveLba, Nanos, Sectors, SECTOR_BYTES};
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

pub use crate::command::IoError;

/// Maximum number of free metadata buffers that the engine keeps for later commands.
const SPARE_BUFFERS_MAX: usize = 64;

const PUNCH_HOLE: libc::c_int = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
const ZERO_RANGE: libc::c_int = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;

/// The engine to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefer {
    /// io_uring. If the kernel refuses it: threads, with a note.
    Best,
    /// io_uring. If the kernel refuses it: an error.
    Uring,
    Threads,
}

/// How the engine's thread waits for completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitMode {
    /// By epoll, which can wait for [`IoEngine::event_fd`] and for other descriptors.
    #[default]
    Among,
    /// The thread waits only in [`IoEngine::submit_and_wait`]. No command finishes before that call, and
    /// [`IoEngine::event_fd`] may never become readable. This mode costs the kernel less.
    Alone,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineOptions {
    /// The engine to use.
    pub prefer: Prefer,
    /// Register members and the pool with io_uring, so that the kernel does not look them up for each command. If the
    /// kernel refuses, the engine adds a note and works without registration.
    pub register: bool,
    /// Maximum number of bytes of the pool to register, from its start on. The system allocates and pins this memory
    /// while the engine is made, which takes seconds for each GiB. Commands with memory after it are not registered.
    pub register_pool_max: Bytes,
    /// How the thread waits for completions.
    pub waiting: WaitMode,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { prefer: Prefer::Best, register: true, register_pool_max: Bytes(u64::MAX), waiting: WaitMode::Among }
    }
}

/// The engine that is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineKind {
    /// io_uring.
    Uring,
    /// Blocking calls on threads.
    Threads,
}

/// The name of an attached member. After the member is detached, another one may get the same name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MemberSlot(u16);

/// What a command does. The lengths of pool ranges and metadata are whole sectors. For members in direct mode they must
/// be whole logical blocks, or the kernel answers `EINVAL`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationKind<'a> {
    /// Reads from the member into the pool.
    Read {
        /// Address on the member.
        at: DriveLba,
        /// Destination in the pool.
        into: PoolRange,
    },
    /// Writes from the pool to the member.
    Write {
        /// Address on the member.
        at: DriveLba,
        /// Source in the pool.
        from: PoolRange,
        /// Must the write be durable when it completes (forced unit access)?
        fua: bool,
    },
    /// Makes all writes durable that were complete before this command was pushed.
    Flush,
    /// Says that the range is no longer needed. Its content afterwards: see `Facts::discard_zeroes`.
    Discard {
        /// Address on the member.
        at: DriveLba,
        len: Sectors,
    },
    /// Makes the range read as zeroes without sending them. The result is `Unsupported` if the member cannot do that.
    Zero {
        /// Address on the member.
        at: DriveLba,
        len: Sectors,
        /// Must the space stay allocated, so that a later write cannot fail for lack of space?
        keep: bool,
    },
    /// Reads metadata; the completion has the bytes.
    ReadMetadata {
        /// Address on the member.
        at: DriveLba,
        /// Length, at most [`METADATA_BYTES_MAX`].
        len: Bytes,
    },
    /// Writes metadata. The bytes are copied during the push.
    WriteMetadata {
        /// Address on the member.
        at: DriveLba,
        /// The bytes, at most [`METADATA_BYTES_MAX`].
        bytes: &'a [u8],
        /// Must the write be durable when it completes (forced unit access)?
        fua: bool,
    },
}

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation<'a> {
    /// The member that gets it.
    pub member: MemberSlot,
    /// The caller's number for the command, returned unchanged.
    pub user_data: u64,
    /// What the command does.
    pub verb: OperationKind<'a>,
}

/// A finished command. The caller may use its pool range again.
#[derive(Debug)]
pub struct Completed {
    /// The caller's number for the command.
    pub user_data: u64,
    /// Number of bytes transferred: always all of them, and 0 for commands without bytes. Or the reason of the failure.
    pub result: Result<u32, IoError>,
    /// The bytes of a metadata read that succeeded.
    pub metadata: Option<AlignedBuffer>,
}

/// The reason why a command was not accepted. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PushError {
    /// [`IN_FLIGHT_MAX`] commands are in flight. Call [`IoEngine::reap`] first.
    Full,
    /// The helper thread for this command cannot be made.
    Helper(Errno),
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "{IN_FLIGHT_MAX} drive commands are in flight, the most there may be"),
            Self::Helper(error) => write!(f, "no helper for this drive command: {error}; free memory or descriptors"),
        }
    }
}

impl std::error::Error for PushError {}

enum Backend {
    Ring(Box<Ring>),
    Threads(Threads),
}

struct AttachedMember {
    member: Arc<MemberFile>,
    outstanding: usize,
}

/// Sends a shard's commands to its members. See the module's description.
pub struct IoEngine {
    backend: Backend,
    table: CommandTable,
    members: Vec<Option<AttachedMember>>,
    mapping: Arc<Mapping>,
    spare: Vec<AlignedBuffer>,
    answers: Vec<Answer>,
    notes: Vec<Note>,
    /// The ring accepts commands only from the thread that made it.
    _this_thread_only: PhantomData<*const ()>,
}

impl IoEngine {
    /// Makes an engine for the members of `pool`. Call this on the thread that will use the engine.
    ///
    /// # Errors
    /// With [`Prefer::Uring`], the reason why io_uring is refused. With the others, only lack of resources (`EMFILE`,
    /// `ENOMEM`).
    pub fn new(pool: &FramePool, options: EngineOptions) -> Result<Self, Errno> {
        let mapping = pool.mapping();
        let mut notes = Vec::new();
        let ring = match options.prefer {
            Prefer::Threads => None,
            Prefer::Best | Prefer::Uring => match Ring::new(Arc::clone(mapping), options, &mut notes) {
                Ok(ring) => Some(ring),
                Err(error) if options.prefer == Prefer::Uring => return Err(error),
                Err(error) => {
                    let remedy = match error {
                        Errno(libc::ENOMEM) => "raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)",
                        _ => "kernel.io_uring_disabled or the container's seccomp profile may forbid it",
                    };
                    notes.push(Note(format!(
                        "io_uring is refused here ({error}); using threads, which cost more CPU; {remedy}"
                    )));
                    None
                }
            },
        };
        let backend = match ring {
            Some(ring) => Backend::Ring(Box::new(ring)),
            None => Backend::Threads(Threads::new(Arc::clone(mapping))?),
        };
        Ok(Self {
            backend,
            table: CommandTable::new(),
            members: Vec::new(),
            mapping: Arc::clone(mapping),
            spare: Vec::new(),
            answers: Vec::with_capacity(DONE_PER_REAP_HINT),
            notes,
            _this_thread_only: PhantomData,
        })
    }

    /// The engine that is in use.
    #[must_use]
    pub fn kind(&self) -> EngineKind {
        match self.backend {
            Backend::Ring(_) => EngineKind::Uring,
            Backend::Threads(_) => EngineKind::Threads,
        }
    }

    /// One line for the administrator: the engine and its mode.
    #[must_use]
    pub fn description(&self) -> String {
        match &self.backend {
            Backend::Ring(ring) => ring.description(),
            Backend::Threads(_) => "threads".into(),
        }
    }

    /// Bytes of the pool, from its start on, that are registered with the kernel and pinned.
    #[must_use]
    pub fn registered_bytes(&self) -> Bytes {
        match &self.backend {
            Backend::Ring(ring) => Bytes(ring.pool_registered() as u64),
            Backend::Threads(_) => Bytes(0),
        }
    }

    /// Notes about fallbacks.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Attaches a member. `None` if [`MEMBERS_MAX`] members are attached.
    #[must_use]
    pub fn attach(&mut self, member: Arc<MemberFile>) -> Option<MemberSlot> {
        let slot = match self.members.iter().position(Option::is_none) {
            Some(slot) => slot,
            None if self.members.len() == MEMBERS_MAX => return None,
            None => {
                self.members.push(None);
                self.members.len() - 1
            }
        };
        match &mut self.backend {
            Backend::Ring(ring) => ring.attach(slot, Arc::clone(&member)),
            Backend::Threads(threads) => threads.attach(slot, Arc::clone(&member)),
        }
        self.members[slot] = Some(AttachedMember { member, outstanding: 0 });
        u16::try_from(slot).ok().map(MemberSlot)
    }

    /// Is the device of a member gone? See [`MemberFile::is_gone`].
    ///
    /// # Panics
    /// The member is not attached.
    #[must_use]
    pub fn is_gone(&self, slot: MemberSlot) -> bool {
        self.attached(slot).member.is_gone()
    }

    /// Detaches a member.
    ///
    /// # Errors
    /// The number of its commands that the kernel still holds. The member cannot be detached before they return.
    pub fn detach(&mut self, slot: MemberSlot) -> Result<Arc<MemberFile>, usize> {
        match self.attached(slot).outstanding {
            0 => {}
            outstanding => return Err(outstanding),
        }
        match &mut self.backend {
            Backend::Ring(ring) => ring.detach(slot.0.into()),
            Backend::Threads(threads) => threads.detach(slot.0.into()),
        }
        let attached = self.members[usize::from(slot.0)].take();
        Ok(attached.expect("looked at above").member)
    }

    /// Number of commands that were pushed and not yet reaped.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.table.len()
    }

    /// Number of commands of one member that were pushed and not yet reaped. Panics if the member is not attached.
    #[must_use]
    pub fn outstanding_on(&self, slot: MemberSlot) -> usize {
        self.attached(slot).outstanding
    }

    /// Becomes readable (level-triggered, for epoll) when [`IoEngine::reap`] has something to do. The caller must never
    /// read it.
    #[must_use]
    pub fn event_fd(&self) -> BorrowedFd<'_> {
        match &self.backend {
            Backend::Ring(ring) => ring.event_fd(),
            Backend::Threads(threads) => threads.event_fd(),
        }
    }

    /// Queues a command. `pool` is the pool for which the engine was made. The kernel gets the command in
    /// [`IoEngine::submit`].
    ///
    /// # Errors
    /// See [`PushError`].
    ///
    /// # Panics
    /// On bugs of the caller: the sectors of the pool are already in flight; a length is zero, not whole sectors or too
    /// large; a write or discard extends past the end of the member; the member is not attached; the pool is another
    /// one.
    pub fn push(&mut self, pool: &mut FramePool, operation: Operation<'_>) -> Result<(), PushError> {
        assert!(Arc::ptr_eq(pool.mapping(), &self.mapping), "bug: a command with another engine's pool");
        if self.table.is_full() {
            return Err(PushError::Full);
        }
        let slot = usize::from(operation.member.0);
        let facts = self.attached(operation.member).member.facts();
        let (opcode, at, len) = translate(operation.verb, facts.block_device);
        if opcode != Opcode::Read {
            let end = at.checked_add(len);
            let inside = end.is_some_and(|end| end <= facts.size.bytes());
            assert!(inside, "bug: {opcode:?} of {len} at {at:?} beyond the member's end at {:?}", facts.size.bytes());
        }
        let (memory, address) = self.lend(pool, operation.verb);
        let command = MemberCommand { key: 0, slot, opcode, at: at.get(), len: len.get(), address };
        let entry = CommandEntry { user_data: operation.user_data, command, memory, done: 0 };
        let command = self.table.insert(entry);
        let started = match &mut self.backend {
            Backend::Ring(ring) => ring.start(command),
            Backend::Threads(threads) => {
                threads.start(command);
                Ok(())
            }
        };
        if let Err(error) = started {
            let entry = self.table.remove(command.key);
            let _ = self.take_back(pool, entry.memory);
            return Err(PushError::Helper(error));
        }
        if let Some(attached) = &mut self.members[slot] {
            attached.outstanding += 1;
        }
        Ok(())
    }

    /// Submits all queued commands to the kernel. Returns the number of commands that the kernel did not accept for
    /// lack of memory: call again a short time later.
    ///
    /// # Errors
    /// The kernel's error. The ring, and with it the shard, cannot be used any more.
    pub fn submit(&mut self) -> Result<usize, Errno> {
        match &mut self.backend {
            Backend::Ring(ring) => ring.submit(),
            Backend::Threads(threads) => {
                threads.submit();
                Ok(0)
            }
        }
    }

    /// As [`IoEngine::submit`], and then sleeps until [`IoEngine::reap`] has something to do or `timeout` is over. This
    /// is one system call if the engine can do that. For threads that wait for nothing else. May return early.
    ///
    /// # Errors
    /// The kernel's error. The ring, and with it the shard, cannot be used any more.
    pub fn submit_and_wait(&mut self, timeout: Nanos) -> Result<usize, Errno> {
        match &mut self.backend {
            Backend::Ring(ring) => ring.submit_and_wait(timeout),
            Backend::Threads(threads) => {
                threads.submit();
                wait_readable(threads.event_fd(), timeout)?;
                Ok(0)
            }
        }
    }

    /// Appends finished commands to `done` and returns their memory to the pool. Returns the number of appended
    /// commands. Does not wait.
    ///
    /// # Errors
    /// The kernel's error. The ring, and with it the shard, cannot be used any more.
    pub fn reap(&mut self, pool: &mut FramePool, done: &mut Vec<Completed>) -> Result<usize, Errno> {
        assert!(Arc::ptr_eq(pool.mapping(), &self.mapping), "bug: completions with another engine's pool");
        let before = done.len();
        let mut answers = std::mem::take(&mut self.answers);
        match &mut self.backend {
            Backend::Ring(ring) => ring.collect(&mut answers)?,
            Backend::Threads(threads) => threads.collect(&mut answers),
        }
        let mut continued = false;
        for answer in answers.drain(..) {
            match self.table.get_mut(answer.key).judge(answer.result) {
                Next::Finished(result) => done.push(self.finish(pool, answer.key, result)),
                Next::Again(command) => {
                    continued = true;
                    match &mut self.backend {
                        // Only commands of the helper can be refused, and they never need a continuation.
                        Backend::Ring(ring) => ring.start(command)?,
                        Backend::Threads(threads) => threads.start(command),
                    }
                }
            }
        }
        self.answers = answers;
        if continued {
            self.submit()?;
        }
        Ok(done.len() - before)
    }

    fn finish(&mut self, pool: &mut FramePool, key: u32, result: Result<u32, IoError>) -> Completed {
        let entry = self.table.remove(key);
        if let Some(attached) = &mut self.members[entry.command.slot] {
            attached.outstanding -= 1;
        }
        let buffer = self.take_back(pool, entry.memory);
        let metadata = buffer.filter(|_| result.is_ok());
        Completed { user_data: entry.user_data, result, metadata }
    }

    fn attached(&self, slot: MemberSlot) -> &AttachedMember {
        let attached = self.members.get(usize::from(slot.0)).and_then(Option::as_ref);
        attached.expect("bug: a member slot that is not attached")
    }

    /// Lends the memory of a command to the kernel.
    fn lend(&mut self, pool: &mut FramePool, verb: OperationKind<'_>) -> (Memory, *mut u8) {
        match verb {
            OperationKind::Read { into, .. } => {
                pool.lend_to_write(into);
                (Memory::PoolWritten(into), self.mapping.address(into.start))
            }
            OperationKind::Write { from, .. } => {
                pool.lend_to_read(from);
                (Memory::PoolRead(from), self.mapping.address(from.start))
            }
            OperationKind::ReadMetadata { len, .. } => {
                let buffer = AlignedBuffer::zeroed(usize::try_from(len.get()).unwrap_or(usize::MAX));
                let address = buffer.address();
                (Memory::Owned { buffer, deliver: true }, address)
            }
            OperationKind::WriteMetadata { bytes, .. } => {
                let spare = self.spare.pop().and_then(|mut spare| spare.refill(bytes).then_some(spare));
                let buffer = spare.unwrap_or_else(|| AlignedBuffer::copy_of(bytes));
                let address = buffer.address();
                (Memory::Owned { buffer, deliver: false }, address)
            }
            OperationKind::Flush | OperationKind::Discard { .. } | OperationKind::Zero { .. } => {
                (Memory::None, std::ptr::null_mut())
            }
        }
    }

    /// Takes the memory back from the kernel. The buffer of a metadata read is passed to the caller.
    fn take_back(&mut self, pool: &mut FramePool, memory: Memory) -> Option<AlignedBuffer> {
        match memory {
            Memory::None => None,
            Memory::PoolWritten(range) => {
                pool.take_back_write(range);
                None
            }
            Memory::PoolRead(range) => {
                pool.take_back_read(range);
                None
            }
            Memory::Owned { buffer, deliver: true } => Some(buffer),
            Memory::Owned { buffer, deliver: false } => {
                if self.spare.len() < SPARE_BUFFERS_MAX {
                    self.spare.push(buffer);
                }
                None
            }
        }
    }
}

/// Translates a verb for the kernel: operation, address and length in bytes. Panics on lengths that are bugs of the
/// caller.
fn translate(verb: OperationKind<'_>, block_device: bool) -> (Opcode, Bytes, Bytes) {
    let transfer = |opcode, at: DriveLba, len: Bytes, max: u64| {
        let fits = !len.is_zero() && len.get().is_multiple_of(SECTOR_BYTES) && len.get() <= max;
        assert!(fits, "bug: {opcode:?} of {len}: whole sectors up to {max} bytes can be transferred");
        (opcode, at.offset().bytes(), len)
    };
    let range = |opcode, at: DriveLba, len: Sectors| {
        assert!(!len.is_zero(), "bug: {opcode:?} of nothing");
        (opcode, at.offset().bytes(), len.bytes())
    };
    let metadata_max = METADATA_BYTES_MAX as u64;
    match verb {
        OperationKind::Read { at, into } => {
            assert!(into.start.get().is_multiple_of(SECTOR_BYTES), "bug: {into:?} does not begin with a sector");
            transfer(Opcode::Read, at, into.len, TRANSFER_BYTES_MAX)
        }
        OperationKind::Write { at, from, fua } => {
            assert!(from.start.get().is_multiple_of(SECTOR_BYTES), "bug: {from:?} does not begin with a sector");
            transfer(Opcode::Write { fua }, at, from.len, TRANSFER_BYTES_MAX)
        }
        OperationKind::ReadMetadata { at, len } => transfer(Opcode::Read, at, len, metadata_max),
        OperationKind::WriteMetadata { at, bytes, fua } => {
            transfer(Opcode::Write { fua }, at, Bytes(bytes.len() as u64), metadata_max)
        }
        OperationKind::Flush => (Opcode::Flush, Bytes::ZERO, Bytes::ZERO),
        OperationKind::Discard { at, len } if block_device => range(Opcode::DiscardDevice, at, len),
        OperationKind::Discard { at, len } => range(Opcode::Allocate { mode: PUNCH_HOLE }, at, len),
        // For block devices the kernel turns these into "write zeroes", with or without permission to unmap.
        OperationKind::Zero { at, len, keep: false } => range(Opcode::Allocate { mode: PUNCH_HOLE }, at, len),
        OperationKind::Zero { at, len, keep: true } => range(Opcode::Allocate { mode: ZERO_RANGE }, at, len),
    }
}

impl Drop for IoEngine {
    fn drop(&mut self) {
        if self.table.len() > 0 {
            // The kernel still has addresses of this memory, and may still write to members. The leak is intended: the
            // memory must never be reused, and the locks of the members must not be released.
            Box::leak(Box::new(std::mem::take(&mut self.members)));
            Box::leak(Box::new(Arc::clone(&self.mapping)));
            Box::leak(Box::new(std::mem::replace(&mut self.table, CommandTable::new())));
        } else if let Backend::Ring(ring) = &mut self.backend {
            ring.release();
        }
    }
}

impl fmt::Debug for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoEngine({}, {} in flight)", self.description(), self.outstanding())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_pool::PoolOptions;

    /// Makes the kernel refuse io_uring to this thread, as the sandboxes of containers do.
    fn forbid_uring(errno: i32) {
        let answer = libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
        let setup = u32::try_from(libc::SYS_io_uring_setup).expect("a system call's number");
        let code = |bits: u32| u16::try_from(bits).expect("BPF codes have 16 bits");
        let step = |bits, jt, jf, k| libc::sock_filter { code: code(bits), jt, jf, k };
        let mut program = [
            // The first word of a filter's input is the number of the system call.
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, setup),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, answer),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
        // SAFETY: no memory involved.
        let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(set, 0);
        // SAFETY: the filter and its program are valid during the call.
        let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
        assert_eq!(set, 0);
    }

    #[test]
    fn if_io_uring_is_refused_threads_serve_and_a_note_says_it() {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let sandboxed = std::thread::spawn(move || {
                forbid_uring(errno);
                let pool = FramePool::new(PoolOptions::of(Bytes::mib(2))).expect("pool");
                let forced = EngineOptions { prefer: Prefer::Uring, ..EngineOptions::default() };
                assert_eq!(IoEngine::new(&pool, forced).err(), Some(Errno(errno)));
                let engine = IoEngine::new(&pool, EngineOptions::default()).expect("threads");
                assert_eq!((engine.kind(), engine.description()), (EngineKind::Threads, "threads".to_string()));
                assert_eq!(engine.notes().len(), 1);
                assert!(engine.notes()[0].0.contains("io_uring is refused"), "{:?}", engine.notes());
            });
            sandboxed.join().expect("the test's own thread");
        }
    }
}
