//! Ends of a drive's work from outside: lost connections, pulled drives, power cuts.

use openraid_core::actions::{DriveCommand, DriveOp};
use openraid_units::{Sectors, Tag};

use super::{CachedWrite, Content, MemoryDrive};

impl MemoryDrive {
    /// Release all stuck commands. Returns their tags, which must be finished soon. New commands are answered again.
    pub fn release(&mut self) -> Vec<Tag> {
        self.faults.hang = false;
        let stuck = self.issued.values_mut().filter(|issued| issued.stuck);
        stuck
            .map(|issued| {
                issued.stuck = false;
                issued.command.tag
            })
            .collect()
    }

    /// There is room for everything. Returns the tags of commands that its storage has kept, which must be finished soon.
    pub fn give_room(&mut self) -> Vec<Tag> {
        self.faults.room = None;
        let kept = self.issued.values_mut().filter(|issued| issued.kept && !issued.stuck);
        kept.map(|issued| {
            issued.kept = false;
            issued.command.tag
        })
        .collect()
    }

    /// The connection to the drive is lost, and commands under way are repeated on the next one. Some of them are
    /// carried out now, and then once more.
    pub fn disconnect(&mut self) {
        let repeated: Vec<(DriveCommand, Box<[u8]>)> =
            self.issued.values().filter_map(|issued| Some((issued.command, issued.bytes.clone()?))).collect();
        let writes = repeated.into_iter().filter(|(command, _)| matches!(command.op, DriveOp::Write { .. }));
        for (command, bytes) in writes.collect::<Vec<_>>() {
            if self.random.chance(1, 2) {
                let written = CachedWrite {
                    sequence: self.sequence,
                    lba: command.lba,
                    len: command.len,
                    content: Content::Bytes(bytes),
                };
                self.sequence += 1;
                written.apply(&mut self.current);
                self.cached.push(written);
            }
        }
        self.faults.hang = true;
        // No answer of the old connection arrives.
        self.issued.values_mut().for_each(|issued| issued.stuck = true);
    }

    /// Pull the drive: stuck commands end as well. Returns their tags, which must be finished.
    pub fn pull(&mut self) -> Vec<Tag> {
        let stuck = self.release();
        self.faults.gone = true;
        stuck
    }

    /// Return the same drive with its content. Its cache had power all the time.
    pub fn put_back(&mut self) {
        self.faults.gone = false;
    }

    /// The controller that issued the commands has ended, but the drive runs: each command in flight is carried out or
    /// not.
    pub fn forget_commands(&mut self) {
        for tag in self.issued.keys().copied().collect::<Vec<_>>() {
            if self.issued[&tag].command.op != DriveOp::Read && self.random.chance(1, 2) {
                // No receiver is left for the result.
                let _ = self.finish(Tag(tag), None);
            }
        }
        self.issued.clear();
        self.faults.hang = false;
    }

    /// Cut the power: every command is forgotten, and every unflushed sector is kept or lost.
    pub fn cut_power(&mut self) {
        self.interrupt();
        self.issued.clear();
        self.faults.hang = false;
    }

    /// Cut the power of this drive alone: the drive is absent, and commands in flight and later ones end with an error.
    /// Returns the tags of stuck commands, which must be finished.
    pub fn vanish(&mut self) -> Vec<Tag> {
        let lost: Vec<_> = self.in_doubt().collect();
        self.faults.torn.extend(lost);
        self.interrupt();
        self.pull()
    }

    /// Add the writes in flight to the writes that a power cut may undo, and cut the power.
    fn interrupt(&mut self) {
        for issued in self.issued.values() {
            let command = issued.command;
            let content = match command.op {
                DriveOp::Read | DriveOp::Flush => continue,
                DriveOp::Write { .. } => Content::Bytes(issued.bytes.clone().expect("a write has bytes")),
                DriveOp::Discard if !self.spec.discard_zeroes => Content::Junk(self.random.bits()),
                DriveOp::WriteZeroes { .. } | DriveOp::Discard => Content::Zeroes,
            };
            self.cached.push(CachedWrite { sequence: self.sequence, lba: command.lba, len: command.len, content });
            self.sequence += 1;
        }
        self.lose_cached();
    }

    /// Each sector of the cache reaches the medium or is lost. The share of kept sectors is drawn first, so that the
    /// cases all and none happen, too.
    pub(super) fn lose_cached(&mut self) {
        let kept = *self.random.pick(&[0, 1, 4, 7, 8]);
        let cached = std::mem::take(&mut self.cached);
        for cached in &cached {
            for sector in 0..cached.len.get() {
                if self.random.chance(kept, 8) {
                    cached.part(cached.lba + Sectors(sector), Sectors(1)).apply(&mut self.durable);
                }
            }
        }
        for cached in &cached {
            self.current.copy_from(&self.durable, cached.lba, cached.len);
        }
    }
}
