//! The superblocks of the journal are written.

use crate::call::Call;
use crate::io::state::command::JournalWrite;
use crate::journal::devices::{has_room, DeviceState};
use crate::journal::superblock_order::{encoded, NextCopy};
use crate::journal::{Journal, JournalState};
use openraid_format::SuperblockCopy;

impl Journal {
    /// Write the superblocks if something has changed; true if that began.
    pub(super) fn pump_superblock(&mut self, call: &mut Call) -> bool {
        let is_attached = !matches!(self.state, JournalState::Lost(_) | JournalState::None);
        if !is_attached || !self.writing.is_due() || !has_room(call) {
            return false;
        }
        self.writing.begin();
        self.table_mut().generation += 1;
        self.snapshot.clone_from(&self.superblock);
        self.devices.iter_mut().for_each(|device| device.written_as = device.mirror);
        self.counters.superblocks += 1;
        self.write_superblocks(SuperblockCopy::First, call);
        true
    }

    pub(super) fn write_superblocks(&mut self, copy: SuperblockCopy, call: &mut Call) {
        let generation = self.writing.writing();
        for number in 0..self.devices.len() {
            let device = self.devices[number];
            let joins = device.state == DeviceState::Joins && self.join.takes_superblock(generation);
            if !(device.state.works() || joins) {
                continue;
            }
            let superblock = self.snapshot.as_mut().expect("taken before");
            superblock.mirror = device.written_as;
            let (lba, bytes) = encoded(superblock, copy);
            self.write_block_to(number, JournalWrite::Superblock, lba, &bytes, call);
        }
    }

    /// A superblock is written, or its device was dropped. True if the generation is durable now.
    pub(super) fn superblock_written(&mut self, call: &mut Call) -> bool {
        self.writing.ended();
        if !self.has_working_device() {
            return false;
        }
        let snapshot = self.snapshot.as_ref().expect("it was written");
        match self.writing.advance(snapshot.epoch, snapshot.generation) {
            NextCopy::Waits => return false,
            NextCopy::Last => {
                self.write_superblocks(SuperblockCopy::Last, call);
                return false;
            }
            NextCopy::Durable => {}
        }
        if self.state == JournalState::Opening {
            self.state = JournalState::Live;
        }
        true
    }
}
