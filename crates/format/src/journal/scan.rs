//! Follows the log from its tail to its head, and decides whether the end is a torn last entry or damage.
//!
//! ```text
//!   Header --fits, no payload--> Header          Sweep --a later tail is found--> Header (once)
//!     | \--fits--> Payload --matches--> Header     \--otherwise--> Done
//!     |               |
//!     +--does not fit-+--does not match--> Sweep
//! ```
//!
//! The log ends at the first place that does not have the next entry complete. That alone does not tell a torn last
//! entry, which was never acknowledged, from damage in the middle. So the rest of the ring is swept for headers of this
//! journal: each has the highest number that had been acknowledged when it was made. A log that ends below that is
//! damaged. If a header has a tail after the end that was found, the superblock's tail is out of date or the damage no
//! longer matters, and the log is followed from that tail. Headers of an abandoned log do not count for this.
//!
//! The scan does no I/O: it says which sectors it needs, and accepts them in pieces of any size. While it follows the
//! log it must never take a payload for a header. In the sweep it looks at every 4 KiB, because headers can be
//! anywhere.

use super::entry::{EntryHeader, Envelope, JournalEntry};
use super::error::{EntryFault, JournalError};
use super::ring::{JournalRing, LogPlace, RingSector};
use super::superblock::JournalSuperblock;
use super::{JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES};
use crate::crc32c;
use openraid_units::Sectors;

/// The next need of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanNeed {
    /// The [`JOURNAL_BLOCK_BYTES`] at this position. Give them to [`JournalScan::header`].
    Header(RingSector),
    /// The CRC-32C of these sectors. Give it to [`JournalScan::payload`].
    Payload {
        /// Position of the first sector.
        at: RingSector,
        /// Number of sectors.
        sectors: Sectors,
    },
    /// These sectors, in pieces of whole headers, in order. Give them to [`JournalScan::sweep`].
    Sweep {
        /// Position of the first sector.
        at: RingSector,
        /// Number of sectors; they do not extend past the end of the ring.
        sectors: Sectors,
    },
    /// Nothing more: [`JournalScan::outcome`] is ready.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Header,
    Payload(EntryHeader),
    Sweep,
    Done,
}

/// A scan of one journal device.
#[derive(Clone, Debug)]
pub struct JournalScan {
    ring: JournalRing,
    epoch: u64,
    epoch_start: u64,
    phase: Phase,
    /// The expected next entry.
    next: LogPlace,
    /// Number of sectors of the accepted entries.
    walked: Sectors,
    entries: u64,
    /// The highest tail so far.
    tail: LogPlace,
    /// Tail and epoch of the previous entry.
    before: (u64, u64),
    epoch_seen: u64,
    promised: u64,
    highest: u64,
    stop: EntryFault,
    /// Number of sectors of the refused entry, as far as known.
    stop_sectors: Sectors,
    sweep_at: RingSector,
    sweep_left: Sectors,
    /// The highest tail that the sweep has found.
    later_tail: LogPlace,
    restarted: bool,
}

/// The result of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanOutcome {
    /// The ring that was scanned.
    pub ring: JournalRing,
    /// The first entry that counts. The caller must forget entries with smaller numbers that the scan returned.
    pub tail: LogPlace,
    /// The position of the next entry to write.
    pub head: LogPlace,
    /// Number of accepted entries, from the position where the scan began to follow the log.
    pub entries: u64,
    /// The highest epoch in the superblock and the entries. The next writer uses a higher one.
    pub epoch: u64,
    /// Number of the newest entry that is known to have been acknowledged.
    pub promised: u64,
    /// The highest number in any header that was found, even of an incomplete entry. A log that was given up continues
    /// after this number.
    pub highest: u64,
    /// The reason why the log ends at `head`.
    pub stop: EntryFault,
    /// Number of affected sectors from `head` on: the header, or the whole entry if its header is valid.
    pub stop_sectors: Sectors,
    /// Did the scan follow the log from a later tail, because the tail of the superblock was out of date?
    pub restarted: bool,
}

impl JournalScan {
    /// Begins a scan at the superblock's tail.
    ///
    /// # Panics
    /// [`JournalSuperblock::decode`] would not return this superblock: the ring is not a whole number of headers, or
    /// the tail is outside the ring. A ring that is shorter than decode accepts is allowed here.
    #[must_use]
    pub fn new(superblock: &JournalSuperblock) -> Self {
        let ring = superblock.ring();
        let tail = superblock.tail;
        assert!(!ring.sectors.is_zero() && (ring.sectors % JOURNAL_ALIGN).is_zero(), "a ring of whole headers");
        assert!(ring.holds(tail.position) && tail.sequence > 0, "a tail in the ring");
        Self {
            ring,
            epoch: superblock.epoch,
            epoch_start: superblock.epoch_start,
            phase: if superblock.clean { Phase::Done } else { Phase::Header },
            next: tail,
            walked: Sectors::ZERO,
            entries: 0,
            tail,
            before: (0, 0),
            epoch_seen: superblock.epoch,
            promised: tail.sequence - 1,
            highest: tail.sequence - 1,
            stop: EntryFault::EndOfLog,
            stop_sectors: Sectors::ZERO,
            sweep_at: RingSector(0),
            sweep_left: Sectors::ZERO,
            later_tail: tail,
            restarted: false,
        }
    }

    /// The next need of the scan.
    #[must_use]
    pub fn need(&self) -> ScanNeed {
        match self.phase {
            Phase::Header => ScanNeed::Header(self.next.position),
            Phase::Payload(header) => {
                let at = header.payload_at().expect("asked for only where there is one");
                ScanNeed::Payload { at, sectors: header.payload }
            }
            Phase::Sweep => {
                let to_end = self.ring.to_end(self.sweep_at);
                ScanNeed::Sweep { at: self.sweep_at, sectors: to_end.min(self.sweep_left) }
            }
            Phase::Done => ScanNeed::Done,
        }
    }

    /// Takes the requested header; `None` if it cannot be read.
    ///
    /// Returns the entry if it is the expected next one. An entry without a payload counts at once. An entry with a
    /// payload counts if [`JournalScan::payload`], which is the next need, accepts the payload.
    ///
    /// # Panics
    /// The scan did not request a header.
    pub fn header<'a>(&mut self, bytes: Option<&'a [u8]>) -> Option<JournalEntry<'a>> {
        assert!(self.phase == Phase::Header, "no header was asked for");
        let entry = match bytes.ok_or(EntryFault::Unreadable).and_then(|bytes| self.judge(bytes)) {
            Ok(entry) => entry,
            Err(fault) => {
                self.stop_at(fault, JOURNAL_ALIGN);
                return None;
            }
        };
        if entry.header.payload.is_zero() {
            self.accept(entry.header);
        } else {
            self.phase = Phase::Payload(entry.header);
        }
        Some(entry)
    }

    /// Takes the CRC-32C of the requested payload; `None` if it cannot be read. Returns true if the entry counts.
    ///
    /// # Panics
    /// The scan did not request a payload.
    pub fn payload(&mut self, crc: Option<u32>) -> bool {
        let Phase::Payload(header) = self.phase else { panic!("no payload was asked for") };
        let fault = match crc {
            Some(computed) if computed == header.payload_crc => {
                self.accept(header);
                return true;
            }
            Some(computed) => EntryFault::PayloadChecksum { stored: header.payload_crc, computed },
            None => EntryFault::Unreadable,
        };
        self.stop_at(fault, header.sectors(&self.ring));
        false
    }

    /// Takes a piece from the start of the requested sectors.
    ///
    /// # Panics
    /// The scan did not request a sweep. Or the piece is empty, longer than the requested sectors, or not a whole
    /// number of headers.
    pub fn sweep(&mut self, piece: &[u8]) {
        let (blocks, rest) = piece.as_chunks::<JOURNAL_BLOCK_BYTES>();
        assert!(rest.is_empty(), "pieces are made of whole headers");
        let start = self.sweep_at;
        for (block, position) in blocks.iter().zip((start.0..).step_by(JOURNAL_BLOCK_BYTES / 512)) {
            self.notice(block, RingSector(position));
        }
        self.swept(JOURNAL_ALIGN * blocks.len() as u64);
    }

    /// Skips a piece of the requested sectors, because it cannot be read.
    ///
    /// # Panics
    /// As [`JournalScan::sweep`].
    pub fn sweep_unreadable(&mut self, sectors: Sectors) {
        assert!((sectors % JOURNAL_ALIGN).is_zero(), "pieces are made of whole headers");
        self.swept(sectors);
    }

    /// The result of the scan.
    ///
    /// # Panics
    /// The scan is not done.
    #[must_use]
    pub fn outcome(&self) -> ScanOutcome {
        assert!(self.phase == Phase::Done, "the scan is not done");
        ScanOutcome {
            ring: self.ring,
            tail: self.tail,
            head: self.next,
            entries: self.entries,
            epoch: self.epoch_seen,
            promised: self.promised,
            highest: self.highest,
            stop: self.stop,
            stop_sectors: self.stop_sectors,
            restarted: self.restarted,
        }
    }

    /// Checks that this is the expected next entry.
    fn judge<'a>(&self, bytes: &'a [u8]) -> Result<JournalEntry<'a>, EntryFault> {
        let envelope = Envelope::open(bytes, &self.ring, self.next.position)?;
        if envelope.sequence != self.next.sequence {
            return Err(EntryFault::OtherSequence(envelope.sequence));
        }
        let (tail_before, epoch_before) = self.before;
        if !self.is_current(envelope.sequence, envelope.epoch) || envelope.epoch < epoch_before {
            return Err(EntryFault::OlderEpoch(envelope.epoch));
        }
        let entry = envelope.entry(&self.ring, self.next.position)?;
        if entry.header.tail.sequence < tail_before {
            return Err(EntryFault::BadField { field: "tail_sequence", value: entry.header.tail.sequence });
        }
        let sectors = entry.header.sectors(&self.ring);
        if self.walked + sectors > self.ring.sectors {
            return Err(EntryFault::BadField { field: "payload_sectors", value: entry.header.payload.get() });
        }
        Ok(entry)
    }

    fn accept(&mut self, header: EntryHeader) {
        self.claims(&header);
        self.entries += 1;
        self.walked += header.sectors(&self.ring);
        self.before = (header.tail.sequence, header.epoch);
        if header.tail.sequence > self.tail.sequence {
            self.tail = header.tail;
        }
        self.next = header.next(&self.ring);
        self.phase = Phase::Header;
        if self.walked == self.ring.sectors {
            self.stop_at(EntryFault::EndOfLog, Sectors::ZERO);
        }
    }

    fn claims(&mut self, header: &EntryHeader) {
        self.promised = self.promised.max(header.promised);
        self.highest = self.highest.max(header.sequence);
        self.epoch_seen = self.epoch_seen.max(header.epoch);
    }

    fn stop_at(&mut self, fault: EntryFault, sectors: Sectors) {
        self.stop = fault;
        self.stop_sectors = sectors;
        self.sweep_at = self.next.position;
        self.sweep_left = self.ring.sectors - self.walked;
        // The first pass has already seen the rest of the ring.
        let nothing_left = self.restarted || self.sweep_left.is_zero();
        self.phase = if nothing_left { Phase::Done } else { Phase::Sweep };
    }

    /// Notes the contents of a block after the end of the log, if the block is a header.
    ///
    /// From the start of the superblock's epoch on, a header with an older epoch belongs to a log that was given up. It
    /// is a torn entry, or an entry from a time in which the device carried the journal alone; the log continued
    /// without it. Such a header still shows that the entries before the start were acknowledged.
    fn notice(&mut self, block: &[u8; JOURNAL_BLOCK_BYTES], position: RingSector) {
        let Ok(JournalEntry { mut header, .. }) = JournalEntry::decode(block, &self.ring, position) else { return };
        if header.sequence < self.next.sequence {
            return;
        }
        if self.is_current(header.sequence, header.epoch) {
            if header.tail.sequence > self.later_tail.sequence {
                self.later_tail = header.tail;
            }
        } else {
            header.promised = header.promised.min(self.epoch_start.saturating_sub(1));
        }
        self.claims(&header);
    }

    /// Does an entry with this number and epoch belong to the superblock's log?
    fn is_current(&self, sequence: u64, epoch: u64) -> bool {
        sequence < self.epoch_start || epoch >= self.epoch
    }

    fn swept(&mut self, sectors: Sectors) {
        let ScanNeed::Sweep { sectors: wanted, .. } = self.need() else { panic!("no stretch was asked for") };
        assert!(!sectors.is_zero() && sectors <= wanted, "a piece of what was asked for");
        self.sweep_at = self.ring.behind(self.sweep_at, sectors);
        self.sweep_left -= sectors;
        if !self.sweep_left.is_zero() {
            return;
        }
        if self.later_tail.sequence > self.next.sequence {
            self.restarted = true;
            self.next = self.later_tail;
            self.tail = self.later_tail;
            self.walked = Sectors::ZERO;
            self.entries = 0;
            self.before = (0, 0);
            self.phase = Phase::Header;
        } else {
            self.phase = Phase::Done;
        }
    }
}

impl ScanOutcome {
    /// Is the end of the log valid?
    ///
    /// # Errors
    /// [`JournalError::Damaged`]: acknowledged entries are missing, or a newer program wrote the next entry completely.
    pub fn verdict(&self) -> Result<(), JournalError> {
        self.verdict_with(self.promised)
    }

    /// As [`ScanOutcome::verdict`], if another source says up to which entry all were acknowledged.
    ///
    /// # Errors
    /// As [`ScanOutcome::verdict`].
    pub fn verdict_with(&self, promised: u64) -> Result<(), JournalError> {
        if promised < self.head.sequence && !self.stop.is_refusal() {
            return Ok(());
        }
        Err(JournalError::Damaged {
            sequence: self.head.sequence,
            promised,
            at: self.ring.drive_lba(self.head.position),
            sectors: self.stop_sectors,
            fault: self.stop,
        })
    }
}

/// Scans a ring in memory, and calls `found` with every accepted entry and its payload. Only entries from
/// [`ScanOutcome::tail`] on count. Bytes after the end of `ring` count as unreadable.
pub fn scan_ring<'a>(
    superblock: &JournalSuperblock,
    ring: &'a [u8],
    mut found: impl FnMut(JournalEntry<'a>, &'a [u8]),
) -> ScanOutcome {
    let bytes = |at: RingSector, sectors: Sectors| {
        let start = usize::try_from(at.0.checked_mul(512)?).ok()?;
        let len = usize::try_from(sectors.0.checked_mul(512)?).ok()?;
        ring.get(start..start.checked_add(len)?)
    };
    let mut scan = JournalScan::new(superblock);
    let mut waiting = None;
    loop {
        match scan.need() {
            ScanNeed::Header(at) => {
                let entry = scan.header(bytes(at, JOURNAL_ALIGN));
                match entry {
                    Some(entry) if entry.header.payload.is_zero() => found(entry, &[]),
                    other => waiting = other,
                }
            }
            ScanNeed::Payload { at, sectors } => {
                let payload = bytes(at, sectors);
                let counts = scan.payload(payload.map(|payload| !crc32c::update(!0, payload)));
                if let (true, Some(entry), Some(payload)) = (counts, waiting, payload) {
                    found(entry, payload);
                }
            }
            ScanNeed::Sweep { at, .. } => match bytes(at, JOURNAL_ALIGN) {
                Some(block) => scan.sweep(block),
                None => scan.sweep_unreadable(JOURNAL_ALIGN),
            },
            ScanNeed::Done => return scan.outcome(),
        }
    }
}
