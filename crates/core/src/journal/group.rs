//! The groups of records: the open one, which collects, and the flying one, which is being written.

use alloc::vec::Vec;
use openraid_format::{JournalRecord, RingSector, JOURNAL_RECORDS_MAX};
use openraid_units::Sectors;

/// A group of records: one entry.
#[derive(Debug)]
pub(crate) struct Group {
    /// Number of its entry; 0 if there is no group.
    pub(super) sequence: u64,
    /// Position of its header in the ring.
    pub(super) position: RingSector,
    /// Position of a filler before it, if the entry would have crossed the end of the ring.
    pub(super) wrap: Option<RingSector>,
    /// The buffer with its payload.
    pub(super) buffer: usize,
    pub(super) records: Vec<JournalRecord>,
    pub(super) payload: Sectors,
    /// Pieces and operations that wait until it is durable.
    pub(super) pieces: Vec<u32>,
    pub(super) ops: Vec<u32>,
    /// Commands under way, and whether the header was issued.
    pub(super) pending: u32,
    pub(super) header_out: bool,
}

impl Group {
    pub(crate) fn new(pieces: u32, ops: u32) -> Self {
        Self {
            sequence: 0,
            position: RingSector(0),
            wrap: None,
            buffer: 0,
            records: Vec::with_capacity(JOURNAL_RECORDS_MAX),
            payload: Sectors::ZERO,
            pieces: Vec::with_capacity(pieces as usize),
            ops: Vec::with_capacity(ops as usize),
            pending: 0,
            header_out: false,
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.sequence != 0
    }

    /// Does it have a record?
    pub(super) fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Number of the first entry that is written with it: its filler's, or its own.
    pub(crate) fn first(&self) -> u64 {
        self.sequence - u64::from(self.wrap.is_some())
    }

    pub(super) fn reset(&mut self) {
        self.records.clear();
        (self.sequence, self.payload, self.pending) = (0, Sectors::ZERO, 0);
        (self.header_out, self.wrap) = (false, None);
    }
}
