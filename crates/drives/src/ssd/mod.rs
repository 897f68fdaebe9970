//! A solid-state drive in virtual time.
//!
//! ```text
//!  read:   firmware -> die (tR) -> channel -> path, link -> done
//!  write:  firmware -> link -> buffer -> done ... -> page -> channel -> die (program, collecting)
//! ```
//!
//! The model has no translation table. The die of a page follows from the page's number. The cost of collecting is a
//! factor on written pages. The dies do this work in bursts, which other commands meet as stalls. A drive is fresh
//! until all its capacity has been written once. A fresh drive collects nothing. Servers that many commands share
//! (firmware, link, path, channel) keep their rate, but not an order.

mod dies;

pub use dies::{DieTables, Dies};

use super::future_completions::Outbox;
use super::{CommandCounts, DriveOptions, DriveState, Passing, VirtualDrive};
use crate::random::Random;
use openraid_core::actions::{DriveCommand, DriveOp};
use openraid_models::{Rate, SsdProfile};
use openraid_units::{Bytes, Instant, Nanos, Sectors, Tag};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of streams that the drive follows.
const STREAMS: usize = 8;
/// Length up to which a write at a random place has the cost of random writing in the profile. The cost of a longer
/// write is nearer to that of sequential writing, by its sequential share. An assumption: no data sheet states it.
const RANDOM_BYTES: u64 = 128 << 10;
/// Limit of the doublings of an outlier. One outlier in four is doubled again.
const DOUBLINGS_MAX: u32 = 6;
/// Pages above which a read uses all dies at once and is not followed page by page.
const PAGES_MAX: u64 = 4096;

/// Values that all SSDs of one profile share; times in nanoseconds.
#[derive(Debug)]
pub struct SsdTables {
    dies: DieTables,
    sectors: u64,
    raw: u64,
    page_sectors: u64,
    read: Path,
    write: Path,
    link_command: u64,
    link_rate: Rate,
    link_duplex: bool,
    ahead: u64,
    reads_ahead: bool,
    buffer_pages: usize,
    protected: bool,
    queue_depth: usize,
    flush: u64,
    flush_queued: bool,
    amplification_random: u64,
    amplification_sequential: u64,
    slc: Option<(u64, Rate)>,
}

/// One direction through the controller.
#[derive(Debug)]
struct Path {
    latency: u64,
    serial: u64,
    rate: Rate,
    outliers: u64,
    outlier: u64,
}

impl SsdTables {
    /// Compute the values that follow from the profile alone.
    #[must_use]
    pub fn new(profile: &SsdProfile, capacity: Sectors) -> Self {
        let page = profile.page.value.0;
        Self {
            dies: DieTables::new(profile),
            sectors: capacity.0,
            raw: profile.raw.value.0,
            page_sectors: page / 512,
            read: Path {
                latency: profile.controller_read.value.0,
                serial: profile.serial_read.value.0,
                rate: profile.path_read.value,
                outliers: u64::from(profile.outlier_read.value),
                outlier: profile.outlier_read_time.value.0,
            },
            write: Path {
                latency: profile.controller_write.value.0,
                serial: profile.serial_write.value.0,
                rate: profile.path_write.value,
                outliers: u64::from(profile.outlier_write.value),
                outlier: profile.outlier_write_time.value.0,
            },
            link_command: profile.link_command.value.0,
            link_rate: profile.link_rate.value,
            link_duplex: profile.link_duplex,
            ahead: u64::from(profile.read_ahead_pages.value),
            reads_ahead: profile.reads_ahead,
            buffer_pages: usize::try_from(profile.buffer.value.0 / page).unwrap_or(usize::MAX).max(1),
            protected: profile.protected,
            queue_depth: profile.queue_depth.value as usize,
            flush: profile.flush.value.0,
            flush_queued: profile.flush_queued,
            amplification_random: profile.amplification_random.value,
            amplification_sequential: profile.amplification_sequential.value,
            slc: profile.slc.as_ref().map(|slc| (slc.size.value.0, slc.fold.value)),
        }
    }
}

/// Ends of streams of reads or of writes.
#[derive(Clone, Copy, Debug)]
struct Streams {
    ends: [u64; STREAMS],
    oldest: usize,
}

impl Streams {
    const fn new() -> Self {
        Self { ends: [u64::MAX; STREAMS], oldest: 0 }
    }
    /// Whether a command follows another one. Its end is remembered.
    fn follows(&mut self, lba: u64, end: u64) -> bool {
        if let Some(known) = self.ends.iter_mut().find(|known| **known == lba) {
            *known = end;
            return true;
        }
        self.ends[self.oldest] = end;
        self.oldest = (self.oldest + 1) % STREAMS;
        false
    }
}

/// A solid-state drive.
#[derive(Clone, Debug)]
pub struct Ssd {
    tables: Arc<SsdTables>,
    dies: Dies,
    random: Random,
    write_cache: bool,
    /// Pages that are read ahead after sequential reads.
    ahead: u64,
    firmware_free: u64,
    link_out: u64,
    link_in: u64,
    path_out: u64,
    path_in: u64,
    reads: Streams,
    writes: Streams,
    /// For each place of the buffer, when the page that had the place is programmed.
    buffer: Vec<u64>,
    /// Number of pages given to the dies.
    pages: u64,
    /// Sectors in the page that is being filled, and their work of collecting.
    filled: u64,
    filled_collecting: u64,
    /// Bytes until the whole drive has been written.
    fresh_left: u64,
    slc_used: u64,
    slc_since: u64,
    flushing: Option<Tag>,
    /// Commands beyond the queue, or after a flush.
    beyond: VecDeque<DriveCommand>,
    outbox: Outbox,
}

impl Ssd {
    /// An SSD of a profile.
    #[must_use]
    pub fn new(tables: Arc<SsdTables>, options: &DriveOptions, random: Random) -> Self {
        let mut random = random;
        let mut dies = Dies::new(&tables.dies);
        dies.spread_debts(&tables.dies, |bound| random.below(bound));
        Self {
            dies,
            random,
            write_cache: options.write_cache.unwrap_or(true),
            ahead: if options.read_ahead.unwrap_or(tables.reads_ahead) { tables.ahead } else { 0 },
            firmware_free: 0,
            link_out: 0,
            link_in: 0,
            path_out: 0,
            path_in: 0,
            reads: Streams::new(),
            writes: Streams::new(),
            buffer: vec![0; tables.buffer_pages],
            pages: 0,
            filled: 0,
            filled_collecting: 0,
            fresh_left: if options.state == DriveState::Fresh { tables.raw } else { 0 },
            slc_used: 0,
            slc_since: 0,
            flushing: None,
            beyond: VecDeque::new(),
            outbox: Outbox::default(),
            tables,
        }
    }

    fn firmware(&mut self, now: u64, serial: u64) -> u64 {
        self.firmware_free = now.max(self.firmware_free) + serial;
        self.firmware_free
    }

    /// The link transfers a command and its data. Returns when the transfer ends, as far as the link's rate determines
    /// it.
    fn link(&mut self, now: u64, sectors: u64, out: bool) -> u64 {
        let time = self.tables.link_command + self.tables.link_rate.time(Bytes(sectors * 512)).0;
        let free = if out || !self.tables.link_duplex { &mut self.link_out } else { &mut self.link_in };
        *free = now.max(*free) + time;
        *free
    }

    fn outlier(random: &mut Random, path: &Path) -> u64 {
        if path.outliers == 0 || !random.chance(path.outliers, 1_000_000) {
            return 0;
        }
        let doublings = (random.bits().trailing_zeros() / 2).min(DOUBLINGS_MAX);
        path.outlier << doublings
    }

    fn take_read(&mut self, now: u64, lba: u64, len: u64) -> u64 {
        let tables = Arc::clone(&self.tables);
        let begin = self.firmware(now, tables.read.serial);
        let ready = begin + tables.read.latency;
        let (first, last) = (lba / tables.page_sectors, (lba + len - 1) / tables.page_sectors);
        let mut data = ready;
        let mut tail = len;
        for page in first..=last.min(first + PAGES_MAX) {
            let from = lba.max(page * tables.page_sectors);
            tail = (lba + len).min((page + 1) * tables.page_sectors) - from;
            data = data.max(self.dies.read(&tables.dies, ready, page, tail * 512));
        }
        if self.reads.follows(lba, lba + len) && self.ahead > 0 {
            let end = (tables.sectors - 1) / tables.page_sectors;
            for page in last + 1..=(last + self.ahead).min(end) {
                self.dies.load(&tables.dies, ready, page);
            }
        }
        // The path transfers nothing else during the set-up of a command.
        self.path_out = now.max(self.path_out) + tables.link_command + tables.read.rate.time(Bytes(len * 512)).0;
        let held = self.link(now, len, true).max(self.path_out);
        // The link sends pages as they arrive. After the arrival of the last page, that page must still be sent.
        let sent = data + tables.link_command + tables.link_rate.time(Bytes(tail * 512)).0;
        sent.max(held) + Self::outlier(&mut self.random, &tables.read)
    }

    fn take_write(&mut self, now: u64, lba: u64, len: u64, through: bool) -> u64 {
        let tables = Arc::clone(&self.tables);
        let begin = self.firmware(now, tables.write.serial);
        self.path_in = now.max(self.path_in) + tables.link_command + tables.write.rate.time(Bytes(len * 512)).0;
        let link = tables.link_command + tables.link_rate.time(Bytes(len * 512)).0;
        let there = (begin + tables.write.latency + link).max(self.link(now, len, false)).max(self.path_in);
        let amplification = self.amplification(lba, len);
        let mut done = there;
        let mut left = len;
        while left > 0 {
            let part = left.min(tables.page_sectors - self.filled);
            left -= part;
            self.filled += part;
            self.filled_collecting += part * tables.dies.collecting(amplification) / tables.page_sectors;
            // The write's place in the buffer is free when the page that had it is programmed.
            done = done.max(self.buffer[self.place()]);
            if self.filled == tables.page_sectors {
                self.program(done);
            }
        }
        if through && !tables.protected {
            done = self.program(done).max(done);
        }
        // The rare long times of the data sheet are for a drive that collects.
        if self.fresh_left > 0 {
            return done;
        }
        done + Self::outlier(&mut self.random, &tables.write)
    }

    #[allow(clippy::cast_possible_truncation)] // below the number of places
    fn place(&self) -> usize {
        (self.pages % self.buffer.len() as u64) as usize
    }

    /// Give the filled page to a die. Returns when it is programmed.
    fn program(&mut self, now: u64) -> u64 {
        if self.filled == 0 {
            return self.dies.programs_end();
        }
        let bytes = self.tables.page_sectors * 512;
        self.fresh_left = self.fresh_left.saturating_sub(bytes);
        let slc = self.takes_slc(now, bytes);
        let place = self.place();
        let end = self.dies.program(&self.tables.dies, now, bytes, slc, self.filled_collecting);
        self.buffer[place] = end;
        self.pages += 1;
        self.filled = 0;
        self.filled_collecting = 0;
        end
    }

    /// Whether the one-bit cache has room for a page. The cache is emptied while time passes.
    fn takes_slc(&mut self, now: u64, bytes: u64) -> bool {
        let Some((size, fold)) = self.tables.slc else { return false };
        let idle = now.saturating_sub(self.slc_since.max(self.dies.programs_end().min(now)));
        let folded = u128::from(idle) * u128::from(fold.0) / 1_000_000_000;
        self.slc_used = self.slc_used.saturating_sub(u64::try_from(folded).unwrap_or(u64::MAX));
        self.slc_since = now;
        let fits = self.slc_used + bytes <= size;
        self.slc_used += if fits { bytes } else { 0 };
        fits
    }

    /// Pages programmed for each page of this write, in thousandths.
    fn amplification(&mut self, lba: u64, len: u64) -> u64 {
        let follows = self.writes.follows(lba, lba + len);
        if self.fresh_left > 0 {
            return 1000;
        }
        let (random, ordered) = (self.tables.amplification_random, self.tables.amplification_sequential);
        if follows {
            return ordered;
        }
        ordered + (random - ordered) * RANDOM_BYTES / RANDOM_BYTES.max(len * 512)
    }

    fn take(&mut self, now: u64, command: &DriveCommand) {
        let (lba, len) = (command.lba.0, command.len.0);
        let through = !self.write_cache;
        let end = match command.op {
            DriveOp::Read => self.take_read(now, lba, len),
            DriveOp::Write { fua } => self.take_write(now, lba, len, fua || through),
            DriveOp::Flush => self.take_flush(now, command.tag),
            DriveOp::Discard | DriveOp::WriteZeroes { .. } => {
                self.firmware(now, self.tables.write.serial) + self.tables.write.latency
            }
        };
        self.outbox.push(Instant(end), command.tag);
    }

    fn take_flush(&mut self, now: u64, tag: Tag) -> u64 {
        if !self.tables.flush_queued {
            self.flushing = Some(tag);
        }
        let programmed = if self.tables.protected { now } else { self.program(now).max(self.dies.programs_end()) };
        programmed.max(now) + self.tables.flush
    }

    /// Take waiting commands, as far as the queue has room.
    fn feed(&mut self, now: u64) {
        while self.flushing.is_none() && self.outbox.len() < self.tables.queue_depth {
            // The host sends a flush of ATA only when no other command is outstanding.
            let alone = matches!(self.beyond.front(), Some(first) if first.op == DriveOp::Flush);
            if alone && !self.tables.flush_queued && !self.outbox.is_empty() {
                return;
            }
            match self.beyond.pop_front() {
                Some(command) => self.take(now, &command),
                None => return,
            }
        }
    }
}

impl VirtualDrive for Ssd {
    fn sectors(&self) -> u64 {
        self.tables.sectors
    }

    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        assert!(
            command.lba.0 + command.len.0 <= self.sectors() && (command.len.0 > 0) == (command.op != DriveOp::Flush),
            "a command beyond the drive, or of no length: {command:?}"
        );
        let room = self.flushing.is_none() && self.outbox.len() < self.tables.queue_depth;
        if room && self.beyond.is_empty() && command.op != DriveOp::Flush {
            self.take(now.0, command);
        } else {
            self.beyond.push_back(*command);
            self.feed(now.0);
        }
    }

    fn next(&self) -> Option<Instant> {
        self.outbox.next()
    }

    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        while let Some((at, tag)) = self.outbox.pop_due(now) {
            if self.flushing == Some(tag) {
                self.flushing = None;
            }
            done.push(tag);
            self.feed(at.0);
        }
    }

    fn held(&self, now: Instant) -> u64 {
        let waiting = self.buffer.iter().filter(|end| **end > now.0).count() as u64;
        self.filled + waiting * self.tables.page_sectors + self.slc_used / 512
    }
    fn busy(&self, _: Instant) -> Nanos {
        Nanos(self.dies.busy())
    }

    fn passing(&self, given: &CommandCounts) -> Passing {
        let tables = &self.tables;
        let time = |rate: Rate, commands: u64, sectors: u64| {
            Nanos(commands * tables.link_command + rate.time(Bytes(sectors * 512)).0)
        };
        let out = time(tables.link_rate, given.reads, given.sectors_read);
        let inward = time(tables.link_rate, given.writes, given.sectors_written);
        Passing {
            firmware: Nanos(given.reads * tables.read.serial + given.writes * tables.write.serial),
            path: [
                time(tables.read.rate, given.reads, given.sectors_read),
                time(tables.write.rate, given.writes, given.sectors_written),
            ],
            link: if tables.link_duplex { [out, inward] } else { [out + inward, Nanos::ZERO] },
        }
    }
}

#[cfg(test)]
mod tests;
