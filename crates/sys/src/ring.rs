//! Commands by io_uring: one ring of one thread.
//!
//! Set-up is by trial, not by kernel version, the cheaper mode first: completions that do not interrupt this thread
//! (`COOP_TASKRUN`, 5.19), or as the first kernels did (5.15 is the oldest supported). Each trial must also prove that
//! a completion makes the ring's descriptor readable for epoll, because a mode that loses wake-ups would stall the
//! shard for ever.
//!
//! `DEFER_TASKRUN` (6.1) is for threads that wait for the ring alone ([`WaitMode::Alone`]): it posts completions only
//! inside `io_uring_enter`, so a thread that sleeps in epoll is not woken by the ring's descriptor (a read from tmpfs
//! hung in the first trial); a registered eventfd does wake it, at the price of one write by the kernel and one read by
//! us for each wake-up. Measured once on Linux 6.18, 4 KiB reads with such an eventfd: 2.1 us CPU at depth 1 from the
//! page cache against 1.7 in the cooperative mode, and no difference at depth 32 (0.93 and 0.92). Waiting alone, reads
//! from tmpfs at depth 32, which the kernel hands to threads of its own: 2.5 us against 2.9.

use crate::blocking_threads::Threads;
use crate::clock;
use crate::command::{
    Answer, MemberCommand, Opcode, COMPLETION_ENTRIES, KERNEL_WORKERS_MAX, MEMBERS_MAX, SUBMISSION_ENTRIES,
};
use crate::engine::{EngineOptions, WaitMode};
use crate::epoll::{Epoll, Events, Interest};
use crate::errno::{Errno, Note};
use crate::frame_pool::Mapping;
use crate::member::MemberFile;
use crate::registered_pool::Buffers;
use io_uring::{opcode, squeue, types, IoUring};
use openraid_units::{Nanos, PoolOffset};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// `user_data` of the helper's poll. Commands use their table key of 32 bits, so this value cannot collide.
const HELPER_POLL: u64 = u64::MAX;
/// The `user_data` of the trial during set-up.
const TRIAL: u64 = u64::MAX - 1;
/// Duration of the trial's timer in nanoseconds.
const TRIAL_TIMER_NS: u32 = 200_000;
/// Maximum time that the trial waits for the wake-up. After it the mode counts as broken.
const TRIAL_WAIT: Nanos = Nanos::from_millis(500);
/// Number of trials.
const TRIALS: u32 = 2;

/// The way in which completions reach this thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// The kernel posts completions only while this thread waits inside the ring.
    Deferred,
    Cooperative,
    Plain,
}

/// One member of the ring.
struct RingMember {
    member: Arc<MemberFile>,
    /// Is the file in the kernel's table of registered files, at the index of the slot?
    registered: bool,
}

/// The modes, the cheapest first. The first one is only for callers that wait for the ring alone.
const MODES: [Mode; 3] = [Mode::Deferred, Mode::Cooperative, Mode::Plain];

/// The ring and its registrations.
pub(crate) struct Ring {
    ring: IoUring,
    mapping: Arc<Mapping>,
    members: Vec<Option<RingMember>>,
    files_registered: bool,
    /// The part of the pool that is in the kernel's table of buffers, or will be at its first use.
    buffers: Buffers,
    /// Commands for which the submission queue had no room.
    waiting: VecDeque<MemberCommand>,
    helper: Option<Threads>,
    helper_polled: bool,
    mode: Mode,
}

impl Ring {
    /// Sets up a ring, and registers files and the requested part of the pool.
    pub(crate) fn new(mapping: Arc<Mapping>, options: EngineOptions, notes: &mut Vec<Note>) -> Result<Self, Errno> {
        let (ring, mode) = set_up(options.waiting, notes)?;
        let mut this = Self {
            ring,
            mapping,
            members: Vec::new(),
            files_registered: false,
            buffers: Buffers::default(),
            waiting: VecDeque::new(),
            helper: None,
            helper_polled: false,
            mode,
        };
        if let Err(error) = this.ring.submitter().register_iowq_max_workers(&mut [KERNEL_WORKERS_MAX, 0]) {
            notes.push(Note(format!(
                "io_uring's own threads cannot be raised to {KERNEL_WORKERS_MAX} ({error}): a member that hangs may \
                 slow others down"
            )));
        }
        if options.register {
            this.files_registered = this.register_files(notes);
            this.buffers = Buffers::register(&this.ring.submitter(), &this.mapping, options.register_pool_max, notes);
        }
        Ok(this)
    }

    pub(crate) fn description(&self) -> String {
        let mode = match self.mode {
            Mode::Deferred => "deferred completions",
            Mode::Cooperative => "cooperative completions",
            Mode::Plain => "plain completions",
        };
        let yes_no = |yes| if yes { "registered" } else { "plain" };
        let (files, buffers) = (yes_no(self.files_registered), yes_no(self.buffers.len() > 0));
        format!("io_uring, {mode}, {files} files, {buffers} buffers")
    }

    pub(crate) fn pool_registered(&self) -> usize {
        self.buffers.len()
    }

    fn register_files(&self, notes: &mut Vec<Note>) -> bool {
        match self.ring.submitter().register_files(&[-1; MEMBERS_MAX]) {
            Ok(()) => true,
            Err(error) => {
                notes.push(Note(format!("io_uring refuses to register files ({error}); a little slower without")));
                false
            }
        }
    }

    pub(crate) fn attach(&mut self, slot: usize, member: Arc<MemberFile>) {
        if self.members.len() <= slot {
            self.members.resize_with(slot + 1, || None);
        }
        let registered = self.files_registered && self.set_file(slot, member.as_fd().as_raw_fd());
        if let Some(helper) = &mut self.helper {
            helper.attach(slot, Arc::clone(&member));
        }
        self.members[slot] = Some(RingMember { member, registered });
    }

    pub(crate) fn detach(&mut self, slot: usize) {
        let attached = self.members[slot].take();
        if attached.is_some_and(|attached| attached.registered) {
            let cleared = self.set_file(slot, -1);
            assert!(cleared, "bug: the kernel does not let go of a registered file of ours");
        }
        if let Some(helper) = &mut self.helper {
            helper.detach(slot);
        }
    }

    fn set_file(&self, slot: usize, fd: RawFd) -> bool {
        let slot = u32::try_from(slot).expect("slots are below MEMBERS_MAX");
        self.ring.submitter().register_files_update(slot, &[fd]).is_ok()
    }

    pub(crate) fn start(&mut self, command: MemberCommand) -> Result<(), Errno> {
        if command.opcode == Opcode::DiscardDevice {
            return self.start_with_helper(command);
        }
        self.waiting.push_back(command);
        self.fill();
        Ok(())
    }

    /// Moves waiting commands into the submission queue while there is room.
    fn fill(&mut self) {
        while let Some(command) = self.waiting.front().copied() {
            let entry = self.entry(&command);
            // SAFETY: a command's memory and file stay valid until its answer is collected.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn entry(&mut self, command: &MemberCommand) -> squeue::Entry {
        let start = (command.address as usize).checked_sub(self.mapping.address(PoolOffset::ZERO) as usize);
        // A command without memory may be longer than the maximum transfer.
        let buffer = start.and_then(|start| {
            let len = command.transfer_len() as usize;
            self.buffers.of(&self.ring.submitter(), &self.mapping, start, len)
        });
        let attached = self.members[command.slot].as_ref().expect("bug: a command to a member that is not attached");
        let entry = if attached.registered {
            let number = i32::try_from(command.slot).expect("slots are below MEMBERS_MAX");
            build(command, types::Fd(number), buffer).flags(squeue::Flags::FIXED_FILE)
        } else {
            build(command, types::Fd(attached.member.as_fd().as_raw_fd()), buffer)
        };
        entry.user_data(u64::from(command.key))
    }

    /// Gives a command that the ring cannot carry out to a helper thread. That thread waits for the kernel.
    fn start_with_helper(&mut self, command: MemberCommand) -> Result<(), Errno> {
        if self.helper.is_none() {
            let mut helper = Threads::new(Arc::clone(&self.mapping))?;
            for (slot, attached) in self.members.iter().enumerate() {
                if let Some(attached) = attached {
                    helper.attach(slot, Arc::clone(&attached.member));
                }
            }
            self.helper = Some(helper);
        }
        if let Some(helper) = &mut self.helper {
            helper.start(command);
        }
        Ok(())
    }

    /// While the helper has work, the ring also polls the helper's eventfd, so that one descriptor is enough to wait
    /// for both.
    fn poll_helper(&mut self) {
        let Some(helper) = self.helper.as_mut().filter(|helper| helper.outstanding() > 0) else { return };
        helper.submit();
        if !self.helper_polled {
            let event = types::Fd(helper.event_fd().as_raw_fd());
            let mask = u32::try_from(libc::POLLIN).expect("a small constant");
            let entry = opcode::PollAdd::new(event, mask).build().user_data(HELPER_POLL);
            // SAFETY: a poll uses no memory, and the helper lives as long as the ring.
            self.helper_polled = unsafe { self.ring.submission().push(&entry) }.is_ok();
        }
    }

    /// Submits the queue to the kernel. Returns the number of commands that the kernel did not yet accept for lack of
    /// memory; the caller must try again after a while.
    pub(crate) fn submit(&mut self) -> Result<usize, Errno> {
        loop {
            self.poll_helper();
            let queued = self.ring.submission().len();
            let polled = self.helper_polled || self.helper.as_ref().is_none_or(|helper| helper.outstanding() == 0);
            if queued == 0 && self.waiting.is_empty() && polled {
                return Ok(0);
            }
            match self.ring.submit() {
                Ok(taken) => {
                    self.fill();
                    if taken == 0 {
                        return Ok(self.unsubmitted());
                    }
                }
                Err(error) => match Errno::from(error) {
                    Errno(libc::EINTR) => {}
                    Errno(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => return Ok(self.unsubmitted()),
                    other => return Err(other),
                },
            }
        }
    }

    /// As [`Ring::submit`], and sleeps in the same system call until there is a completion or the time is over.
    pub(crate) fn submit_and_wait(&mut self, timeout: Nanos) -> Result<usize, Errno> {
        if !self.waiting.is_empty() || self.helper.is_some() {
            let left = self.submit()?;
            if left > 0 {
                return Ok(left);
            }
        }
        let time = types::Timespec::from(Duration::from_nanos(timeout.get()));
        let arguments = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &arguments).map_err(Errno::from) {
            Ok(_) | Err(Errno(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ENOMEM)) => {
                Ok(self.unsubmitted())
            }
            Err(error) => Err(error),
        }
    }

    fn unsubmitted(&mut self) -> usize {
        self.ring.submission().len() + self.waiting.len()
    }

    pub(crate) fn collect(&mut self, answers: &mut Vec<Answer>) -> Result<(), Errno> {
        let pending = {
            let queue = self.ring.submission();
            queue.taskrun() || queue.cq_overflow()
        };
        if pending {
            // This call runs the kernel's pending work, which posts the completions.
            match self.ring.submit().map_err(Errno::from) {
                Ok(_) | Err(Errno(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ENOMEM)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut helper_ready = false;
        for completion in self.ring.completion() {
            match (completion.user_data(), completion.result()) {
                (HELPER_POLL, _) => helper_ready = true,
                (key, result) => {
                    let key = u32::try_from(key).expect("bug: a completion of nothing that was submitted");
                    let result = u32::try_from(result).map_err(|_| Errno(-result));
                    answers.push(Answer { key, result });
                }
            }
        }
        if helper_ready {
            self.helper_polled = false;
            if let Some(helper) = &mut self.helper {
                helper.collect(answers);
            }
            // Polls the helper again if it still has work.
            self.submit()?;
        }
        Ok(())
    }

    /// Releases members and memory now. If the ring were only closed, the kernel would release them some time later,
    /// and until then the locks of the members and the locked memory would remain. The ring must have no commands,
    /// because this call waits for them.
    pub(crate) fn release(&mut self) {
        // An error only says that there was nothing to release.
        if self.files_registered {
            let _ = self.ring.submitter().unregister_files();
        }
        if self.buffers.len() > 0 {
            let _ = self.ring.submitter().unregister_buffers();
        }
    }

    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the ring, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

/// The entry of a command, with the registered buffer that contains its memory, if there is one.
fn build(command: &MemberCommand, file: types::Fd, buffer: Option<u16>) -> squeue::Entry {
    let MemberCommand { at, len, address, .. } = *command;
    match command.opcode {
        Opcode::Read => match buffer {
            Some(buffer) => opcode::ReadFixed::new(file, address, command.transfer_len(), buffer).offset(at).build(),
            None => opcode::Read::new(file, address, command.transfer_len()).offset(at).build(),
        },
        Opcode::Write { fua } => {
            let flags = if fua { libc::RWF_DSYNC } else { 0 };
            match buffer {
                Some(buffer) => opcode::WriteFixed::new(file, address, command.transfer_len(), buffer)
                    .offset(at)
                    .rw_flags(flags)
                    .build(),
                None => opcode::Write::new(file, address, command.transfer_len()).offset(at).rw_flags(flags).build(),
            }
        }
        Opcode::Flush => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        Opcode::Allocate { mode } => opcode::Fallocate::new(file, len).offset(at).mode(mode).build(),
        Opcode::DiscardDevice => unreachable!("bug: an ioctl on the ring"),
    }
}

/// The cheapest mode that works on this system.
fn set_up(waiting: WaitMode, notes: &mut Vec<Note>) -> Result<(IoUring, Mode), Errno> {
    let mut first_error = None;
    for mode in MODES.into_iter().filter(|mode| *mode != Mode::Deferred || waiting == WaitMode::Alone) {
        match try_mode(mode) {
            Ok(ring) => return Ok((ring, mode)),
            // A kernel that does not know the mode answers EINVAL. This needs no note.
            Err(Errno(libc::EINVAL)) => {}
            Err(error) => {
                first_error.get_or_insert(error);
                if matches!(error.0, libc::EPERM | libc::ENOSYS | libc::EACCES) {
                    break;
                }
                notes.push(Note(format!("io_uring's mode {mode:?} does not work here ({error})")));
            }
        }
    }
    Err(first_error.unwrap_or(Errno(libc::EINVAL)))
}

fn try_mode(mode: Mode) -> Result<IoUring, Errno> {
    let mut builder = IoUring::builder();
    builder.dontfork().setup_cqsize(COMPLETION_ENTRIES);
    match mode {
        Mode::Deferred => drop(builder.setup_single_issuer().setup_defer_taskrun()),
        Mode::Cooperative => drop(builder.setup_coop_taskrun().setup_taskrun_flag()),
        Mode::Plain => {}
    }
    let mut ring = builder.build(SUBMISSION_ENTRIES)?;
    if mode != Mode::Deferred {
        wakes_up(&mut ring)?;
    }
    Ok(ring)
}

/// Does a later completion make the ring's descriptor readable? This is tried twice, because the first wait on a ring
/// also activates the kernel's machinery for it, which hides a missing wake-up.
fn wakes_up(ring: &mut IoUring) -> Result<(), Errno> {
    let mut epoll = Epoll::new()?;
    // SAFETY: the descriptor is open as long as the ring, which outlives this use.
    let wake = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
    epoll.add(wake, TRIAL, Interest::READ)?;
    let mut events = Events::new();
    for _ in 0..TRIALS {
        let time = types::Timespec::new().nsec(TRIAL_TIMER_NS);
        let timer = opcode::Timeout::new(&raw const time).build().user_data(TRIAL);
        // SAFETY: the kernel reads `time` while the entry is submitted, a few lines below.
        let pushed = unsafe { ring.submission().push(&timer) };
        assert!(pushed.is_ok(), "bug: a new ring is full");
        ring.submit()?;
        let deadline = clock::now() + TRIAL_WAIT;
        while epoll.wait(&mut events, Some(TRIAL_WAIT))? == 0 {
            if clock::now() >= deadline {
                return Err(Errno(libc::ETIME));
            }
        }
        ring.submit()?;
        if ring.completion().next().map(|completion| completion.user_data()) != Some(TRIAL) {
            return Err(Errno(libc::ETIME));
        }
    }
    Ok(())
}
