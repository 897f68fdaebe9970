//! Writing the superblocks of the journal: first all first copies, then all last ones, so that one of them is complete at
//! any time.

use openraid_format::{journal_superblock_lba, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveLba, Sectors};

/// See the module header. A generation that was requested while another one is being written is written next.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SuperblockWrite {
    /// Generations: the last one that was requested, the one that is being written or was written last, the last one that
    /// is durable in both copies.
    wanted: u64,
    writing: u64,
    durable: u64,
    /// The epoch that is durable with it.
    epoch: u64,
    /// The number of the durable generation in the superblocks.
    number: u64,
    /// The last copies are being written.
    is_last: bool,
    /// Commands under way.
    pending: u32,
}

/// What follows a written copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextCopy {
    /// Other devices are still being written.
    Waits,
    /// The last copies are to be written.
    Last,
    /// The generation is durable.
    Durable,
}

impl SuperblockWrite {
    /// The journal was opened with this epoch and number of the generation.
    pub(super) fn attach(&mut self, epoch: u64, number: u64) {
        (self.epoch, self.number) = (epoch, number);
    }

    /// Request that the present superblock is written. Returns its generation.
    pub(super) fn request(&mut self) -> u64 {
        self.wanted = self.writing + 1;
        self.wanted
    }

    /// Is a generation to be written now?
    pub(super) const fn is_due(&self) -> bool {
        self.pending == 0 && self.wanted > self.writing
    }

    /// The generation that was requested last is being written: its first copies.
    pub(super) fn begin(&mut self) {
        (self.writing, self.is_last) = (self.wanted, false);
    }

    /// The generation that is being written.
    pub(super) const fn writing(&self) -> u64 {
        self.writing
    }

    /// A copy is being written to a device.
    pub(super) fn issued(&mut self) {
        self.pending += 1;
    }

    /// That has ended.
    pub(super) fn ended(&mut self) {
        self.pending -= 1;
    }

    /// Go on after a copy was written. Epoch and number are those of the generation that is being written.
    pub(super) fn advance(&mut self, epoch: u64, number: u64) -> NextCopy {
        if self.pending > 0 {
            return NextCopy::Waits;
        }
        if !self.is_last {
            self.is_last = true;
            return NextCopy::Last;
        }
        (self.durable, self.epoch, self.number) = (self.writing, epoch, number);
        NextCopy::Durable
    }

    /// Is a copy being written?
    pub(super) const fn is_out(&self) -> bool {
        self.pending > 0
    }

    /// Is this generation durable in both copies?
    pub(super) const fn is_durable(&self, generation: u64) -> bool {
        self.durable >= generation
    }

    /// Is everything durable that was requested?
    pub(super) const fn is_all_durable(&self) -> bool {
        self.durable >= self.wanted
    }

    /// The epoch that is durable.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number, in the superblocks, of the generation that is durable.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }
}

/// The superblock of a device that is being brought up to date: it does not count.
pub(super) fn unfinished(whole: JournalSuperblock, generation: u64) -> JournalSuperblock {
    JournalSuperblock { generation, clean: false, unfinished: true, kept: Sectors::ZERO, ..whole }
}

/// A copy of a superblock: its place on the device, and its bytes.
pub(crate) fn encoded(superblock: &JournalSuperblock, copy: SuperblockCopy) -> (DriveLba, [u8; JOURNAL_BLOCK_BYTES]) {
    let mut bytes = [0; JOURNAL_BLOCK_BYTES];
    superblock.encode(copy, &mut bytes);
    (journal_superblock_lba(copy, superblock.device_sectors).expect("checked when it was attached"), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_is_durable_after_both_copies_on_all_devices() {
        let mut write = SuperblockWrite::default();
        assert!(!write.is_due() && write.is_all_durable());
        assert_eq!((write.request(), write.request()), (1, 1), "both changes are in the same one");
        assert!(write.is_due());
        write.begin();
        assert!(!write.is_due());
        for copy in [NextCopy::Last, NextCopy::Durable] {
            (0..2).for_each(|_| write.issued());
            write.ended();
            assert_eq!(write.advance(5, 20), NextCopy::Waits);
            assert!(write.is_out() && !write.is_durable(1));
            write.ended();
            assert_eq!(write.advance(5, 20), copy);
        }
        assert_eq!((write.is_durable(1), write.is_durable(2), write.epoch(), write.is_out()), (true, false, 5, false));
    }

    #[test]
    fn a_change_during_a_write_is_in_the_next_generation() {
        let mut write = SuperblockWrite::default();
        write.attach(3, 19);
        assert_eq!((write.request(), write.epoch(), write.number()), (1, 3, 19));
        write.begin();
        write.issued();
        assert_eq!((write.request(), write.is_due()), (2, false), "one write at a time");
        write.ended();
        assert_eq!(write.advance(4, 21), NextCopy::Last);
        write.issued();
        write.ended();
        assert_eq!(write.advance(4, 21), NextCopy::Durable);
        assert!(write.is_due() && write.is_durable(1) && !write.is_all_durable());
        assert_eq!((write.epoch(), write.number()), (4, 21));
        write.begin();
        assert_eq!(write.writing(), 2);
    }
}
