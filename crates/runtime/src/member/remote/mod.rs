//! A member on another machine, or in another process: the export of an NBD server.
//!
//! A command becomes one request, or several if the server's limits require it. Payload goes from frames to the socket
//! and back. While the server is unreachable, commands wait, and are sent again when it is back. A command that waits
//! longer than the engine's command timeout ends: the member is gone.
//!
//! No read may return an older state than a write that was answered, and no flush may succeed if a write before it may
//! be lost. A server that was unreachable may have lost the writes that it had not flushed. So writes are kept until a
//! flush, and repeated before other commands when the server is back ([`resume`], `docs/decisions/remote-members.md`). If that is impossible
//! the member is gone.

mod answered_writes;
mod link;
mod outage;
mod replies;
mod resume;
mod send;

use std::collections::VecDeque;

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_format::MemberIdentity;
use openraid_nbd::client::{ClientSession, Pending};
use openraid_nbd::{Cookie, ExportFlags, NbdCommand, NbdRequest};
use openraid_sys::{Epoll, FramePool};
use openraid_units::{ArrayOffset, BlockSize, Bytes, DriveLba, Instant, Nanos, PoolOffset, Tag};

use answered_writes::AnsweredWrites;
use link::RemoteLink;
pub use link::{Address, RemoteError};
use outage::Outage;
pub use outage::RemoteNews;
use resume::{LinkStage, Standing};

use crate::limits::REMOTE_RANGE_BYTES_MAX;
use crate::slab::{GrowingSlab, SlabKey};

/// A command that ended.
pub type EndedCommand = (Tag, Result<(), DriveError>);

/// What a remote member needs from its shard.
pub struct Surroundings<'a> {
    /// The epoll set, and the member's token in it.
    pub epoll: &'a Epoll,
    /// See `epoll`.
    pub token: u64,
    /// The place of payload.
    pub pool: &'a mut FramePool,
    /// The time of this round.
    pub now: Instant,
}

/// How a server is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteOptions {
    /// Commands that wait longer than this while the server is unreachable fail.
    pub command_timeout: Nanos,
    /// Accept a server without flush: its answered writes must be durable.
    pub without_flush: bool,
    /// Accept a server that refuses writes.
    pub read_only: bool,
}

/// A command of the engine.
#[derive(Debug)]
struct Task {
    tag: Tag,
    command: DriveCommand,
    /// The payload if it is not in frames.
    metadata: Vec<u8>,
    since: Instant,
    /// Requests that have not ended.
    parts: u32,
    error: Option<DriveError>,
    /// A flush must follow, because the server does not know FUA.
    then_flush: bool,
}

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// A command, or a part of it, and the offset of this part in the command's payload.
    Command { task: SlabKey, offset: u64 },
    /// A kept write that is repeated, by its number.
    Repeat { number: u64 },
    /// A flush, so that fewer writes have to be kept.
    Flush,
    /// A read of the superblock's first sector, to check that this is the same member.
    Identity,
}

/// One request.
#[derive(Debug)]
struct Part {
    work: Work,
    pending: Pending,
    order: u64,
    /// The number of the first write that was unanswered when this flush was sent.
    covers: u64,
}

#[derive(Debug)]
pub struct Remote {
    options: RemoteOptions,
    addresses: Vec<Address>,
    export: String,
    link: RemoteLink,
    info: Option<DriveInfo>,
    flags: ExportFlags,
    payload_max: u64,
    tasks: GrowingSlab<Task>,
    parts: GrowingSlab<Part>,
    /// Parts to be sent, oldest first.
    queue: VecDeque<SlabKey>,
    /// Parts sent and not answered.
    outstanding: usize,
    order: u64,
    /// Writes that were answered and may not be durable.
    kept: AnsweredWrites,
    standing: Standing,
    /// A flush of [`Work::Flush`] is running.
    flushing_early: bool,
    stage: LinkStage,
    /// The place of the superblock, and its lowest event count.
    identity: Option<(DriveLba, MemberIdentity)>,
    /// The superblock's first block while it is read again.
    sector: Vec<u8>,
    /// The server changed: the member never comes back by itself.
    lost: Option<RemoteError>,
    /// Failed attempts to reach the server since it was last reachable.
    failures: u32,
    outage: Outage,
}

impl Remote {
    /// A member that has not been reached yet; it begins with the first call of [`Remote::on_time`].
    #[must_use]
    pub fn new(addresses: Vec<Address>, export: String, options: RemoteOptions) -> Self {
        Self {
            options,
            addresses,
            export,
            link: RemoteLink::new(),
            info: None,
            flags: ExportFlags::NONE,
            payload_max: 0,
            tasks: GrowingSlab::default(),
            parts: GrowingSlab::default(),
            queue: VecDeque::new(),
            outstanding: 0,
            order: 0,
            kept: AnsweredWrites::default(),
            standing: Standing::Unflushed,
            flushing_early: false,
            stage: LinkStage::Serving,
            identity: None,
            sector: Vec::new(),
            lost: None,
            failures: 0,
            outage: Outage::default(),
        }
    }

    /// The engine's facts about the drive, after the server was reached.
    #[must_use]
    pub fn info(&self) -> Option<DriveInfo> {
        self.info
    }
    /// Is the server connected now?
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.link, RemoteLink::Up(_))
    }
    /// Is it connected, and has it every write that it acknowledged?
    #[must_use]
    pub fn serves(&self) -> bool {
        self.is_up() && self.lost.is_none() && matches!(self.stage, LinkStage::Serving)
    }
    /// Failed attempts to reach the server since it was last reachable.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
    /// Why it cannot be used any more.
    #[must_use]
    pub fn lost(&self) -> Option<&RemoteError> {
        self.lost.as_ref()
    }
    /// Why the last attempt to reach it failed.
    #[must_use]
    pub fn trouble(&self) -> Option<&RemoteError> {
        self.lost.as_ref().or(match &self.link {
            RemoteLink::Down { why, .. } => why.as_ref(),
            _ => None,
        })
    }

    /// Accept a command; `metadata` is its payload if that is not in frames.
    pub fn submit(&mut self, command: &DriveCommand, metadata: &[u8], now: Instant) {
        let task = Task {
            tag: command.tag,
            command: *command,
            metadata: if matches!(command.data, Data::Metadata(_)) { metadata.to_vec() } else { Vec::new() },
            since: now,
            parts: 0,
            error: None,
            then_flush: false,
        };
        self.note_change_of_identity(command, metadata);
        let key = self.tasks.insert(task);
        self.cut(key);
    }

    /// Make the requests of a command. The server's limits are known, because it was connected when the member was
    /// opened.
    fn cut(&mut self, key: SlabKey) {
        let task = self.tasks.get_mut(key).expect("the caller has just put it in");
        let fua_known = self.flags.contains(ExportFlags::FUA);
        let (command, unit) = match task.command.op {
            DriveOp::Read => (NbdCommand::Read { dont_fragment: false }, self.payload_max),
            DriveOp::Write { fua } => {
                task.then_flush = fua && !fua_known;
                (NbdCommand::Write { fua: fua && fua_known }, self.payload_max)
            }
            DriveOp::Flush => (NbdCommand::Flush, 0),
            DriveOp::Discard => (NbdCommand::Trim { fua: false }, REMOTE_RANGE_BYTES_MAX),
            DriveOp::WriteZeroes { may_discard } => {
                (NbdCommand::WriteZeroes { fua: false, no_hole: !may_discard, fast: false }, REMOTE_RANGE_BYTES_MAX)
            }
        };
        if command == NbdCommand::Flush {
            return self.push_part(key, command, 0, 0);
        }
        let len = task.command.len.bytes().get();
        let mut offset = 0;
        while offset < len {
            let part = unit.min(len - offset);
            self.push_part(key, command, offset, part);
            offset += part;
        }
    }

    fn push_part(&mut self, task_key: SlabKey, command: NbdCommand, offset: u64, len: u64) {
        let task = self.tasks.get_mut(task_key).expect("parts are made for commands that are there");
        task.parts += 1;
        let start = if command == NbdCommand::Flush { 0 } else { task.command.lba.get() * 512 + offset };
        let key = self.make_part(Work::Command { task: task_key, offset }, command, start, len);
        self.queue.push_back(key);
    }

    fn make_part(&mut self, work: Work, command: NbdCommand, start: u64, len: u64) -> SlabKey {
        let request = NbdRequest { cookie: Cookie(0), command, offset: ArrayOffset(start), length: Bytes(len) };
        self.order += 1;
        let key = self.parts.insert(Part { work, pending: Pending::new(request), order: self.order, covers: 0 });
        let part = self.parts.get_mut(key).expect("just inserted");
        part.pending = Pending::new(NbdRequest { cookie: Cookie(key.token().0), ..request });
        key
    }

    /// A part has ended, and perhaps its command with it. An error of a step that must come before commands closes the
    /// connection.
    fn end_part(
        &mut self,
        key: SlabKey,
        result: Result<(), DriveError>,
        done: &mut Vec<EndedCommand>,
    ) -> Result<(), RemoteError> {
        let part = self.parts.remove(key).expect("a part ends once");
        if result.is_ok() && part.pending.request().command == NbdCommand::Flush {
            self.kept.let_go(part.covers);
            if self.standing == Standing::Unflushed {
                self.standing = Standing::Repeatable;
            }
        }
        match (part.work, result) {
            (Work::Command { task, .. }, result) => self.end_of_task_part(task, result, done),
            (Work::Flush, result) => self.flushed_early(result.is_ok()),
            (Work::Repeat { number }, Ok(())) => self.repeated(number),
            (Work::Identity, Ok(())) => self.recognize(),
            (Work::Repeat { .. } | Work::Identity, Err(error)) => {
                return Err(RemoteError::Resume(error));
            }
        }
        self.lost.clone().map_or(Ok(()), Err)
    }

    fn end_of_task_part(&mut self, key: SlabKey, result: Result<(), DriveError>, done: &mut Vec<EndedCommand>) {
        let task = self.tasks.get_mut(key).expect("a command stays while it has parts");
        task.parts -= 1;
        task.error = task.error.or(result.err());
        if task.parts > 0 {
            return;
        }
        if task.then_flush && task.error.is_none() {
            task.then_flush = false;
            return self.push_part(key, NbdCommand::Flush, 0, 0);
        }
        let task = self.tasks.remove(key).expect("just seen");
        if task.error.is_none() {
            self.note_identity(&task.command, &task.metadata);
        }
        done.push((task.tag, task.error.map_or(Ok(()), Err)));
    }

    /// The connection is lost: every part that was sent is queued again, in its old order.
    fn on_link_lost(&mut self, was_up: bool) {
        self.outstanding = 0;
        self.flushing_early = false;
        if was_up {
            self.note_what_may_be_forgotten();
        }
        let mut parts = Vec::new();
        for key in self.parts.keys() {
            let part = self.parts.get_mut(key).expect("just listed");
            // Data that this read received before is read again.
            part.pending = Pending::new(*part.pending.request());
            match part.work {
                Work::Command { .. } => parts.push((part.order, key)),
                Work::Repeat { .. } | Work::Flush | Work::Identity => drop(self.parts.remove(key)),
            }
        }
        parts.sort_unstable();
        self.queue = parts.into_iter().map(|(_, key)| key).collect();
    }

    /// End commands that have waited too long, or all if the member is lost.
    fn give_up(&mut self, now: Instant, done: &mut Vec<EndedCommand>) {
        let lost = self.lost.is_some();
        let overdue: Vec<SlabKey> = self
            .tasks
            .iter()
            .filter(|(_, task)| lost || now.since(task.since) >= self.options.command_timeout)
            .map(|(key, _)| key)
            .collect();
        for key in overdue {
            let task = self.tasks.remove(key).expect("just listed");
            done.push((task.tag, Err(DriveError::Gone)));
            let is_part = |part: &Part| matches!(part.work, Work::Command { task, .. } if task == key);
            let parts: Vec<SlabKey> = self.parts.iter().filter(|(_, part)| is_part(part)).map(|(k, _)| k).collect();
            for part in parts {
                self.parts.remove(part);
            }
        }
        let parts = &self.parts;
        self.queue.retain(|key| parts.get(*key).is_some());
    }

    /// Check the session's limits; the first session sets them for later ones.
    fn on_session(&mut self, session: &ClientSession) -> Result<(), RemoteError> {
        let info = info_of(session)?;
        let flags = session.flags;
        if flags.contains(ExportFlags::READ_ONLY) && !self.options.read_only {
            return Err(RemoteError::ReadOnly);
        }
        if !flags.contains(ExportFlags::FLUSH) && !self.options.without_flush && !self.options.read_only {
            return Err(RemoteError::NoFlush);
        }
        match self.info {
            None => {
                self.info = Some(info);
                self.flags = flags;
                let most = session.blocks.map_or(openraid_nbd::limits::PAYLOAD_DEFAULT_MAX, |b| b.maximum());
                let unit = info.block.bytes().get();
                self.payload_max =
                    (u64::from(most.min(openraid_nbd::limits::PAYLOAD_HARD_MAX)) / unit * unit).max(unit);
            }
            Some(before) if before == info && self.flags == flags => {}
            Some(_) => return Err(RemoteError::Changed),
        }
        Ok(())
    }

    /// The place of the payload of a part in the pool, if it has one.
    fn frames_of(&self, key: SlabKey) -> Option<PoolOffset> {
        let Work::Command { task, offset } = self.parts.get(key)?.work else { return None };
        match self.tasks.get(task)?.command.data {
            Data::Frames(at) => Some(at + Bytes(offset)),
            Data::Metadata(_) | Data::None => None,
        }
    }
}

fn info_of(session: &ClientSession) -> Result<DriveInfo, RemoteError> {
    let minimum = session.blocks.map_or(1, |blocks| blocks.minimum()).max(512);
    let block = BlockSize::new(u64::from(minimum)).map_err(|_| RemoteError::BlockSize(minimum))?;
    let capacity = session.size.round_down(block.bytes()).sectors_floor();
    if capacity.is_zero() {
        return Err(RemoteError::Empty);
    }
    Ok(DriveInfo {
        capacity,
        block,
        rotational: session.flags.contains(ExportFlags::ROTATIONAL),
        discard: session.flags.contains(ExportFlags::TRIM),
        // The protocol does not guarantee the content of trimmed ranges.
        discard_zeroes: false,
        write_zeroes: session.flags.contains(ExportFlags::WRITE_ZEROES),
        room_wait: Nanos::ZERO,
        flush_waits: false,
    })
}
