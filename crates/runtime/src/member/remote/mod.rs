//! A member on another machine, or in another process: the export of an NBD server.
//!
//! Commands become requests, several where the server's limits demand it. Payload goes from frames to the socket
//! and back without a copy. While the server is away commands wait; who waits longer than the engine's command
//! timeout is told that the member is gone.
//!
//! It must never answer a flush with success when writes before it may be lost: a server that went away with
//! writes that were answered and not flushed may have forgotten them, so the next flush fails, and with it the
//! member. The engine then restores what was in doubt.

mod link;
mod replies;
mod send;

use std::collections::VecDeque;

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_nbd::client::{ClientSession, Pending};
use openraid_nbd::{Command, Cookie, ExportFlags, Request};
use openraid_sys::{Epoll, FramePool};
use openraid_units::{ArrayOffset, BlockSize, Bytes, Instant, Nanos, PoolOffset, Tag};

use link::Link;
pub use link::{Address, RemoteError};

use crate::limits::REMOTE_RANGE_BYTES_MAX;
use crate::slab::{Key, Slab};

/// A command that ended.
pub type Done = (Tag, Result<(), DriveError>);

/// What a remote member works with.
pub struct Surroundings<'a> {
    /// The place to wait, and the member's name there.
    pub epoll: &'a Epoll,
    /// See `epoll`.
    pub token: u64,
    /// Where payload is.
    pub pool: &'a mut FramePool,
    /// The time.
    pub now: Instant,
}

/// How to treat a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteOptions {
    /// Commands that wait longer than this while the server is away have failed.
    pub command_timeout: Nanos,
    /// Take a server that has no flush: what it answers must be durable by itself.
    pub without_flush: bool,
    /// Take a server that does not take writes.
    pub read_only: bool,
}

/// A command of the engine.
#[derive(Debug)]
struct Task {
    tag: Tag,
    command: DriveCommand,
    /// The payload where it is not in frames.
    metadata: Vec<u8>,
    since: Instant,
    /// Requests not ended.
    parts: u32,
    error: Option<DriveError>,
    /// A flush has to follow, because the server does not know FUA.
    then_flush: bool,
}

/// One request of a command.
#[derive(Debug)]
struct Part {
    task: Key,
    pending: Pending,
    /// Where in the command's payload its own begins.
    offset: u64,
    order: u64,
    /// Writes that were answered when this flush was sent.
    covers: u64,
}

/// The member.
#[derive(Debug)]
pub struct Remote {
    options: RemoteOptions,
    addresses: Vec<Address>,
    export: String,
    link: Link,
    info: Option<DriveInfo>,
    flags: ExportFlags,
    payload_max: u64,
    tasks: Slab<Task>,
    parts: Slab<Part>,
    /// Parts to be sent, oldest first.
    queue: VecDeque<Key>,
    /// Parts sent and not answered.
    outstanding: usize,
    order: u64,
    /// Writes answered, and how many of them are known to be durable.
    answered_writes: u64,
    durable_writes: u64,
    /// The server was away and may have forgotten writes.
    in_doubt: bool,
    /// The server is not what it was: the member never comes back by itself.
    lost: Option<RemoteError>,
    /// Attempts to reach the server that failed since it was there last.
    failures: u32,
}

impl Remote {
    /// A member that has not been reached yet; it begins with the first call of [`Remote::on_time`].
    #[must_use]
    pub fn new(addresses: Vec<Address>, export: String, options: RemoteOptions) -> Self {
        Self {
            options,
            addresses,
            export,
            link: Link::fresh(),
            info: None,
            flags: ExportFlags::NONE,
            payload_max: 0,
            tasks: Slab::default(),
            parts: Slab::default(),
            queue: VecDeque::new(),
            outstanding: 0,
            order: 0,
            answered_writes: 0,
            durable_writes: 0,
            in_doubt: false,
            lost: None,
            failures: 0,
        }
    }

    /// What it is, once it was reached.
    #[must_use]
    pub fn info(&self) -> Option<DriveInfo> {
        self.info
    }
    /// Is the server there now?
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.link, Link::Up(_))
    }
    /// Attempts to reach the server that failed since it was there last.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
    /// Why it is of no use any more.
    #[must_use]
    pub fn lost(&self) -> Option<&RemoteError> {
        self.lost.as_ref()
    }
    /// Why the last attempt to reach it failed.
    #[must_use]
    pub fn trouble(&self) -> Option<&RemoteError> {
        self.lost.as_ref().or(match &self.link {
            Link::Down { why, .. } => why.as_ref(),
            _ => None,
        })
    }

    /// Take a command; `metadata` is its payload where that is not in frames.
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
        let key = self.tasks.insert(task);
        self.cut(key);
    }

    /// Make the requests of a command. The server's limits are known: it was up when the member was opened.
    fn cut(&mut self, key: Key) {
        let task = self.tasks.get_mut(key).expect("the caller has just put it in");
        let fua_known = self.flags.contains(ExportFlags::FUA);
        let (command, unit) = match task.command.op {
            DriveOp::Read => (Command::Read { dont_fragment: false }, self.payload_max),
            DriveOp::Write { fua } => {
                task.then_flush = fua && !fua_known;
                (Command::Write { fua: fua && fua_known }, self.payload_max)
            }
            DriveOp::Flush => (Command::Flush, 0),
            DriveOp::Discard => (Command::Trim { fua: false }, REMOTE_RANGE_BYTES_MAX),
            DriveOp::WriteZeroes { may_discard } => {
                (Command::WriteZeroes { fua: false, no_hole: !may_discard, fast: false }, REMOTE_RANGE_BYTES_MAX)
            }
        };
        if command == Command::Flush {
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

    fn push_part(&mut self, task_key: Key, command: Command, offset: u64, len: u64) {
        let task = self.tasks.get_mut(task_key).expect("parts are made for commands that are there");
        task.parts += 1;
        let start = if command == Command::Flush { 0 } else { task.command.lba.get() * 512 + offset };
        let request = Request { cookie: Cookie(0), command, offset: ArrayOffset(start), length: Bytes(len) };
        self.order += 1;
        let part = Part { task: task_key, pending: Pending::new(request), offset, order: self.order, covers: 0 };
        let key = self.parts.insert(part);
        let part = self.parts.get_mut(key).expect("just inserted");
        part.pending = Pending::new(Request { cookie: Cookie(key.token().0), ..request });
        self.queue.push_back(key);
    }

    /// A part ended: so does its command, perhaps.
    fn end_part(&mut self, key: Key, result: Result<(), DriveError>, done: &mut Vec<Done>) {
        let part = self.parts.remove(key).expect("a part ends once");
        let command = part.pending.request().command;
        if result.is_ok() {
            match command {
                Command::Write { fua: false } | Command::Trim { .. } | Command::WriteZeroes { .. } => {
                    self.answered_writes += 1;
                }
                Command::Flush => self.durable_writes = self.durable_writes.max(part.covers),
                _ => {}
            }
        }
        let task = self.tasks.get_mut(part.task).expect("a command stays while it has parts");
        task.parts -= 1;
        task.error = task.error.or(result.err());
        if task.parts > 0 {
            return;
        }
        if task.then_flush && task.error.is_none() {
            task.then_flush = false;
            return self.push_part(part.task, Command::Flush, 0, 0);
        }
        let task = self.tasks.remove(part.task).expect("just seen");
        done.push((task.tag, task.error.map_or(Ok(()), Err)));
    }

    /// The link is gone: everything that was sent is to be sent again, in its old order.
    fn on_link_lost(&mut self) {
        self.outstanding = 0;
        if self.answered_writes > self.durable_writes {
            self.in_doubt = true;
        }
        let mut parts: Vec<(u64, Key)> = self.parts.iter().map(|(key, part)| (part.order, key)).collect();
        parts.sort_unstable();
        self.queue = parts.into_iter().map(|(_, key)| key).collect();
        for key in &self.queue {
            if let Some(part) = self.parts.get_mut(*key) {
                // What came of a read before is read again.
                part.pending = Pending::new(*part.pending.request());
            }
        }
    }

    /// Commands that have waited too long, or all if the member is lost, end.
    fn give_up(&mut self, now: Instant, done: &mut Vec<Done>) {
        let lost = self.lost.is_some();
        let overdue: Vec<Key> = self
            .tasks
            .iter()
            .filter(|(_, task)| lost || now.since(task.since) >= self.options.command_timeout)
            .map(|(key, _)| key)
            .collect();
        for key in overdue {
            let task = self.tasks.remove(key).expect("just listed");
            done.push((task.tag, Err(DriveError::Gone)));
            let parts: Vec<Key> = self.parts.iter().filter(|(_, p)| p.task == key).map(|(k, _)| k).collect();
            for part in parts {
                self.parts.remove(part);
            }
        }
        let parts = &self.parts;
        self.queue.retain(|key| parts.get(*key).is_some());
    }

    /// Take over what a session offers; the first sets the measure for the later ones.
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

    /// Where the payload of a part is in the pool, if it is there.
    fn frames_of(&self, key: Key) -> Option<PoolOffset> {
        let part = self.parts.get(key)?;
        match self.tasks.get(part.task)?.command.data {
            Data::Frames(at) => Some(at + Bytes(part.offset)),
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
        // The protocol promises nothing about what trimmed ranges read as.
        discard_zeroes: false,
        write_zeroes: session.flags.contains(ExportFlags::WRITE_ZEROES),
    })
}
