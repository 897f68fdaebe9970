//! The steps on a connection that was made again, before any command is sent.
//!
//! ```text
//!  Recognizing --it is the same member--> Repeating --all are answered--> Serving
//! ```
//!
//! First the superblock is read: another drive may have the name by now, or the server may have gone back to a state
//! older than its acknowledged writes. Then the writes that were answered and not flushed are repeated, in their old
//! order. Only then are commands sent, unanswered ones first. So no read returns data that the server has lost.

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_format::MemberIdentity;
use openraid_nbd::{ExportFlags, NbdCommand};
use openraid_sys::{FramePool, PoolRange};
use openraid_units::{Bytes, DriveLba};

use super::answered_writes::AnsweredData;
use super::link::RemoteError;
use super::{Remote, Work};
use crate::limits::{REMOTE_REPEATS_MAX, REMOTE_REQUESTS_MAX};
use crate::slab::SlabKey;

/// The stage of a connection; without a connection it has no meaning.
#[derive(Debug)]
pub(super) enum LinkStage {
    /// The superblock is read, to check that this is the same member.
    Recognizing,
    /// Writes are repeated: the next one, and the running ones.
    Repeating { next: u64, under_way: Vec<u64> },
    /// Commands are sent.
    Serving,
}

/// Writes that the server has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// No flush has succeeded yet. The server's cache may hold writes of an earlier user, and nothing can repeat those.
    Unflushed,
    /// Every write that may not be durable is kept, and can be repeated.
    Repeatable,
    /// A flush of this module failed. The writes before it are in doubt, and the engine's next flush must fail.
    FlushFailed,
}

impl Remote {
    /// Does the server have a cache that must be flushed?
    fn has_cache(&self) -> bool {
        self.flags.contains(ExportFlags::FLUSH) && !self.options.read_only
    }

    /// A connection in use was lost. If a write that the server may have lost cannot be repeated, the member is lost.
    pub(super) fn note_what_may_be_forgotten(&mut self) {
        if self.has_cache() && self.standing != Standing::Repeatable {
            self.lost = Some(RemoteError::Forgotten);
        }
    }

    /// There is a connection again.
    pub(super) fn begin_to_resume(&mut self) {
        let Some((lba, _)) = self.identity else { return self.begin_to_repeat() };
        self.stage = LinkStage::Recognizing;
        let block = self.info.expect("a session was agreed on").block.bytes();
        self.sector = vec![0; usize::try_from(block.get()).expect("blocks are small")];
        let key =
            self.make_part(Work::Identity, NbdCommand::Read { dont_fragment: false }, lba.get() * 512, block.get());
        self.send_own(key);
    }

    fn begin_to_repeat(&mut self) {
        self.note_repeats(self.kept.end() - self.kept.start());
        self.stage = LinkStage::Repeating { next: self.kept.start(), under_way: Vec::new() };
    }

    /// The superblock has been read again.
    pub(super) fn recognize(&mut self) {
        let found = MemberIdentity::of_sector(&std::mem::take(&mut self.sector));
        let same = self.identity.is_none_or(|(_, known)| found.is_some_and(|found| known.is_followed_by(&found)));
        if same {
            self.begin_to_repeat();
        } else {
            self.lost = Some(RemoteError::Another);
        }
    }

    /// Send a request of this module.
    fn send_own(&mut self, key: SlabKey) {
        let refused = self.send_part(key);
        // The server has the same limits as before, and accepted such requests then.
        assert!(refused.is_none(), "bug: a request that a remote member cannot be sent: {refused:?}");
    }

    /// Repeat the writes that can be repeated now: writes that overlap go one after the other.
    pub(super) fn repeat(&mut self) {
        loop {
            let LinkStage::Repeating { next, under_way } = &self.stage else { return };
            let number = *next;
            let Some(write) = self.kept.get(number) else {
                if under_way.is_empty() {
                    self.stage = LinkStage::Serving;
                }
                return;
            };
            let (offset, length) = (write.offset, write.data.len());
            let waits = |other: &u64| self.kept.get(*other).is_some_and(|other| other.overlaps(offset, length));
            if under_way.len() >= REMOTE_REPEATS_MAX || under_way.iter().any(waits) {
                return;
            }
            let command = match &write.data {
                AnsweredData::Bytes(_) => NbdCommand::Write { fua: false },
                AnsweredData::Zeroes { no_hole, .. } => {
                    NbdCommand::WriteZeroes { fua: false, no_hole: *no_hole, fast: false }
                }
            };
            if let LinkStage::Repeating { next, under_way } = &mut self.stage {
                *next += 1;
                under_way.push(number);
            }
            let key = self.make_part(Work::Repeat { number }, command, offset, length);
            self.send_own(key);
        }
    }

    pub(super) fn repeated(&mut self, number: u64) {
        if let LinkStage::Repeating { under_way, .. } = &mut self.stage {
            under_way.retain(|other| *other != number);
        }
    }

    /// Flush early if that frees memory, and once at the beginning.
    pub(super) fn flush_early(&mut self) {
        let due = match self.standing {
            Standing::Unflushed => true,
            Standing::Repeatable => self.kept.wants_flush(),
            Standing::FlushFailed => false,
        };
        if due && self.has_cache() && !self.flushing_early && self.outstanding < REMOTE_REQUESTS_MAX {
            let key = self.make_part(Work::Flush, NbdCommand::Flush, 0, 0);
            self.flushing_early = true;
            self.send_own(key);
        }
    }

    /// A flush of this module ended.
    pub(super) fn flushed_early(&mut self, is_good: bool) {
        self.flushing_early = false;
        if !is_good {
            self.standing = Standing::FlushFailed;
            self.kept.let_go(self.kept.end());
        }
    }

    /// A request was answered without error: its data is kept until it is durable.
    pub(super) fn keep(&mut self, key: SlabKey, pool: &FramePool) {
        if !self.has_cache() || self.standing == Standing::FlushFailed {
            return;
        }
        let Some(part) = self.parts.get(key) else { return };
        let Work::Command { task, offset: from } = part.work else { return };
        let request = *part.pending.request();
        let (offset, length) = (request.offset.get(), request.length.get());
        let data = match request.command {
            // A durable write is repeated only if an older kept write overlaps it.
            NbdCommand::Write { fua: true } if !self.kept.overlaps(offset, length) => return,
            NbdCommand::Write { .. } => {
                let task = self.tasks.get(task).expect("a command stays while it has parts");
                match task.command.data {
                    Data::Frames(at) => {
                        let range = PoolRange::new(at + Bytes(from), request.length);
                        AnsweredData::Bytes(pool.slice(range).to_vec())
                    }
                    Data::Metadata(_) | Data::None => {
                        let from = usize::try_from(from).expect("metadata is small");
                        let len = usize::try_from(length).expect("metadata is small");
                        AnsweredData::Bytes(task.metadata[from..from + len].to_vec())
                    }
                }
            }
            NbdCommand::WriteZeroes { no_hole, .. } => AnsweredData::Zeroes { length, no_hole },
            // A discarded range may have any content.
            _ => return,
        };
        self.kept.push(offset, data);
    }

    /// The member has this superblock.
    pub fn know_as(&mut self, lba: DriveLba, identity: MemberIdentity) {
        self.identity = Some((lba, identity));
    }

    /// A command will be sent: until its answer, its change of the superblock may or may not be done.
    pub(super) fn note_change_of_identity(&mut self, command: &DriveCommand, metadata: &[u8]) {
        let Some((lba, known)) = self.identity else { return };
        let within = command.lba <= lba && lba < command.lba + command.len;
        let changes = matches!(command.op, DriveOp::Write { .. } | DriveOp::WriteZeroes { .. } | DriveOp::Discard);
        if within && changes {
            let follows = |new: MemberIdentity| command.lba == lba && known.is_followed_by(&new);
            if !MemberIdentity::of_sector(metadata).is_some_and(follows) {
                self.identity = None;
            }
        }
    }

    /// A durable command ended without error: if it wrote a superblock, that one is the member's.
    pub(super) fn note_identity(&mut self, command: &DriveCommand, metadata: &[u8]) {
        if command.op == (DriveOp::Write { fua: true }) {
            if let Some(identity) = MemberIdentity::of_sector(metadata) {
                self.identity = Some((command.lba, identity));
            }
        }
    }
}
