//! A hard disk in virtual time.
//!
//! ```text
//!  command -> queue -+-> read buffer, write cache -> link -> done
//!                    +-> arm -> rotation -> transfer -> link -> done
//!                             ^ reads on, destages while nothing waits
//! ```
//!
//! The mechanism does one thing at a time. When it is free, it chooses the work with the shortest way to its first
//! sector, with a limit on waiting. The angle of the platters follows from the time. Drives of an array do not turn
//! together, so each drive has its own phase, and a spindle that is slower than nominal by up to [`SPINDLE_TOLERANCE`].

mod geometry;
mod next_work;
mod read_buffer;
mod seek_tables;
mod shingles;
mod write_cache;

pub use geometry::{DiskGeometry, DiskPlace, Span};
pub use seek_tables::SeekCurve;

use super::future_completions::Outbox;
use super::{CommandCounts, DriveOptions, Passing, VirtualDrive};
use crate::random::Random;
use openraid_core::actions::{DriveCommand, DriveOp};
use openraid_models::{DiskProfile, Rate};
use openraid_units::{Bytes, Instant, Nanos, Sectors, Tag};
use read_buffer::{Lookup, Segments};
use shingles::Shingles;
use std::collections::VecDeque;
use std::sync::Arc;
use write_cache::Dirty;

/// Limit of how much slower than nominal a spindle turns, in parts of 2^20: one in a thousand. Data sheets state 0.1 to
/// 0.5 percent.
const SPINDLE_TOLERANCE: u64 = 1 << 10;
/// Sectors of a transfer whose time is looked up; the time of a longer transfer is computed.
const SHORT_TRANSFER: u64 = 256;
/// Sectors in one piece of data that is destaged, at most. Small pieces free room gradually.
const DESTAGE_SECTORS: u64 = 512;

/// The time of an event that will not happen.
const NOTHING_DUE: u64 = u64::MAX;

/// Values that all disks of one profile share.
#[derive(Debug)]
pub struct DiskTables {
    geometry: DiskGeometry,
    seek_read: SeekCurve,
    seek_write: SeekCurve,
    head_switch: u32,
    command: u64,
    cached_command: u64,
    write_command: u64,
    cached_write_command: u64,
    link_rate: Rate,
    /// Times of transfers by sectors, up to [`SHORT_TRANSFER`].
    transfers: Vec<u64>,
    /// Time of a transfer of one sector.
    last_transfer: u64,
    flush: u64,
    flush_queued: bool,
    margin: u32,
    queue_depth: usize,
    sorting_window: usize,
    queue_age: u64,
    destage_idle: u64,
    destage_age: u64,
    ahead_least: u64,
    physical: u64,
    segments: usize,
    ahead: u64,
    /// Sectors of one read that the buffer holds before the host gets them.
    buffer: u64,
    dirty: u64,
    dirty_extents: usize,
    write_cache: bool,
    reads_ahead: bool,
    /// Sectors of a band, sectors and pieces of its cache, and the idle time after which bands are rewritten.
    shingled: Option<(u64, u64, u64, u64)>,
}

impl DiskTables {
    /// Compute the values that follow from the profile alone.
    #[must_use]
    pub fn new(profile: &DiskProfile, capacity: Sectors) -> Self {
        let geometry = DiskGeometry::new(profile, capacity);
        let cylinders = geometry.cylinders();
        let [seek_read, seek_write] = SeekCurve::of(profile, cylinders);
        let segments = u64::from(profile.segments.value);
        let ahead = profile.read_ahead.value.sectors_floor().0;
        let short = |time: Nanos| u32::try_from(time.0).unwrap_or(u32::MAX / 4);
        let track = geometry.track();
        Self {
            geometry,
            seek_read,
            seek_write,
            head_switch: short(profile.head_switch.value),
            command: profile.command.value.0,
            cached_command: profile.cached_command.value.0,
            write_command: profile.write_command.value.0,
            cached_write_command: profile.cached_write_command.value.0,
            link_rate: profile.link_rate.value,
            transfers: (0..=SHORT_TRANSFER).map(|n| profile.link_rate.value.time(Bytes(n * 512)).0).collect(),
            last_transfer: profile.link_rate.value.time(Bytes(512)).0,
            flush: profile.flush.value.0,
            flush_queued: profile.flush_queued,
            // A margin of more than one turn has the effect of one turn.
            margin: short(profile.positioning_margin.value.min(profile.turn())),
            queue_depth: profile.queue_depth.value as usize,
            sorting_window: profile.sorting_window.value as usize,
            queue_age: profile.queue_age.value.0,
            destage_idle: profile.destage_idle.value.0,
            destage_age: profile.destage_age.value.0,
            ahead_least: profile.read_ahead_least.value.sectors_floor().0,
            physical: profile.physical_block.value.0 / 512,
            segments: profile.segments.value as usize,
            ahead,
            // Every disk buffers at least a track.
            buffer: (segments * Segments::sectors_each(ahead)).max(track),
            dirty: profile.dirty.value.sectors_floor().0,
            dirty_extents: profile.dirty_extents.value as usize,
            write_cache: profile.write_cache,
            reads_ahead: profile.reads_ahead,
            shingled: profile.shingled.as_ref().map(|shingled| {
                let sectors = |bytes: Bytes| bytes.sectors_floor().0;
                (
                    sectors(shingled.band.value),
                    sectors(shingled.cache.value),
                    u64::from(shingled.extents.value),
                    shingled.idle.value.0,
                )
            }),
        }
    }

    /// The layout.
    #[must_use]
    pub fn geometry(&self) -> &DiskGeometry {
        &self.geometry
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // an index of more than 32 bits is beyond the table anyway
    fn transfer(&self, sectors: u64) -> u64 {
        match self.transfers.get(sectors as usize) {
            Some(time) => *time,
            None => self.long_transfer(sectors),
        }
    }

    #[cold]
    #[inline(never)]
    fn long_transfer(&self, sectors: u64) -> u64 {
        self.link_rate.time(Bytes(sectors * 512)).0
    }
}

/// The values of a place that the choice of the next command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spot {
    cylinder: u32,
    angle: u32,
    head: u32,
}

impl Spot {
    fn of(place: &DiskPlace) -> Self {
        Self { cylinder: place.cylinder, angle: place.angle, head: place.head }
    }
}

/// A host's command that needs the medium.
#[derive(Clone, Copy, Debug)]
struct MediumCommand {
    tag: Tag,
    write: bool,
    lba: u64,
    len: u64,
    place: DiskPlace,
    arrived: u64,
    /// The time at which the firmware has processed the command.
    ready: u64,
    /// The time at which the drive has the data of a write.
    data: u64,
}

/// The work of the mechanism, and its position afterwards.
#[derive(Clone, Copy, Debug)]
struct Work {
    kind: WorkKind,
    /// Media time at the end of the work.
    media: u64,
    cylinder: u32,
    head: u32,
    /// The sector after the work.
    end: u64,
}

#[derive(Clone, Copy, Debug)]
enum WorkKind {
    Nothing,
    /// A read: the link needs `transfer` for the data, and the first sector is in the buffer at `begins`.
    Read {
        tag: Tag,
        lba: u64,
        begins: u64,
        transfer: u64,
    },
    Write {
        tag: Tag,
    },
    /// A destage of sectors from the write cache, and the number of the write that brought the oldest of them.
    Destage {
        sectors: u64,
        number: u64,
    },
    /// The rewriting of a band of overlapping tracks.
    Rewrite,
}

#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: Tag,
    /// Writes up to this number must be on the medium.
    number: u64,
}

/// A hard disk.
#[derive(Clone, Debug)]
pub struct Disk {
    tables: Arc<DiskTables>,
    phase: u64,
    slowness: u64,
    write_cache: bool,
    window: Vec<MediumCommand>,
    /// Number of writes in `window`.
    window_writes: u32,
    /// Writes that wait for room in the write cache.
    blocked: VecDeque<MediumCommand>,
    /// Commands beyond the queue, or after a flush.
    beyond: VecDeque<DriveCommand>,
    flushes: Vec<Flush>,
    work: Work,
    /// The time at which the mechanism ends its work; without work, the time at which it next looks for some.
    due: u64,
    segments: Segments,
    dirty: Dirty,
    shingles: Option<Shingles>,
    cylinder: u32,
    head: u32,
    last: u64,
    last_read: u64,
    last_write: u64,
    processor_free: u64,
    link_free: u64,
    outbox: Outbox,
    busy: u64,
    /// Number of works begun.
    works: u64,
    /// The firmware's time for commands that it answered without the medium.
    answered: u64,
}

impl Disk {
    /// A disk of a profile.
    #[must_use]
    pub fn new(tables: Arc<DiskTables>, options: &DriveOptions, random: &mut Random) -> Self {
        let reads_ahead = options.read_ahead.unwrap_or(tables.reads_ahead);
        let segments = Segments::new(tables.segments, tables.ahead, reads_ahead);
        let dirty = Dirty::new(tables.geometry.sectors(), tables.dirty, tables.dirty_extents);
        Self {
            phase: random.below(u64::from(tables.geometry.turn())),
            slowness: random.below(SPINDLE_TOLERANCE),
            write_cache: options.write_cache.unwrap_or(tables.write_cache) && tables.dirty > 0,
            window: Vec::with_capacity(tables.queue_depth),
            window_writes: 0,
            blocked: VecDeque::new(),
            beyond: VecDeque::new(),
            flushes: Vec::new(),
            work: Work { kind: WorkKind::Nothing, media: 0, cylinder: 0, head: 0, end: 0 },
            due: NOTHING_DUE,
            segments,
            dirty,
            shingles: tables.shingled.map(|(band, sectors, pieces, idle)| Shingles::new(band, (sectors, pieces), idle)),
            cylinder: 0,
            head: 0,
            last: u64::MAX,
            last_read: 0,
            last_write: 0,
            processor_free: 0,
            link_free: 0,
            outbox: Outbox::default(),
            busy: 0,
            works: 0,
            answered: 0,
            tables,
        }
    }

    /// The rotation of the spindle so far, in nanoseconds at its nominal speed.
    fn rotation(&self, now: u64) -> u64 {
        self.phase + now - (((now >> 10) * self.slowness) >> 10)
    }

    fn inside(&self) -> usize {
        let working = matches!(self.work.kind, WorkKind::Read { .. } | WorkKind::Write { .. });
        self.window.len() + self.blocked.len() + usize::from(working)
    }

    /// Answer a command without the medium: the firmware takes `command`, then the link transfers the data. The first
    /// sector is available at `data`. Returns when the answer is complete.
    fn answer(&mut self, now: u64, command: u64, data: u64, sectors: u64) -> u64 {
        self.processor_free = now.max(self.processor_free) + command;
        self.answered += command;
        let end = self.processor_free.max(data).max(self.link_free) + self.tables.transfer(sectors);
        self.link_free = end;
        end
    }

    /// Answer a read from the buffer. The medium reads its first sector at `begins` and its last one at `ready`. The link
    /// transfers data while the medium reads it. No sector is sent before it is read.
    fn answer_hit(&mut self, now: u64, tag: Tag, (begins, ready): (u64, u64), sectors: u64) {
        let command = self.tables.cached_command;
        let end = self.answer(now, command, begins, sectors).max(ready + self.tables.last_transfer);
        self.link_free = end;
        self.outbox.push(Instant(end), tag);
    }

    /// Take a command from the host.
    fn take(&mut self, now: u64, command: &DriveCommand) {
        let (lba, len) = (command.lba.0, command.len.0);
        match command.op {
            DriveOp::Read => self.take_read(now, command.tag, lba, len),
            DriveOp::Write { fua } => self.take_write(now, command.tag, (lba, len), fua, true),
            DriveOp::WriteZeroes { .. } => self.take_write(now, command.tag, (lba, len), false, false),
            DriveOp::Flush => {
                self.flushes.push(Flush { tag: command.tag, number: self.dirty.number() });
            }
            DriveOp::Discard => {
                let end = self.answer(now, self.tables.cached_command, now, 0);
                self.outbox.push(Instant(end), command.tag);
            }
        }
    }

    fn take_read(&mut self, now: u64, tag: Tag, lba: u64, len: u64) {
        self.last_read = now;
        let rotation = self.rotation(now);
        let mut first = lba;
        let found = if self.dirty.covers(lba, len) {
            Lookup::Hit { begins: now, ready: now }
        } else if self.waits_for_visit(now, lba, lba + len) {
            Lookup::Miss
        } else {
            self.segments.lookup(&self.tables.geometry, now, rotation, lba, len)
        };
        match found {
            Lookup::Hit { begins, ready } => {
                return self.answer_hit(now, tag, (begins, ready), len);
            }
            Lookup::Part { from } => {
                // The buffered part is sent at once.
                self.link_free = self.link_free.max(now) + self.tables.transfer(from - lba);
                first = from;
            }
            Lookup::Miss => {}
        }
        let place = self.tables.geometry.place(first);
        let ready = now + self.tables.command;
        let len = lba + len - first;
        self.window.push(MediumCommand { tag, write: false, lba: first, len, place, arrived: now, ready, data: now });
    }

    /// Whether a read continues the stream that the arm visits, past the end of the visit, while commands for other
    /// places wait.
    /// Reading on ends before such a read.
    fn waits_for_visit(&self, now: u64, lba: u64, end: u64) -> bool {
        let least = self.tables.ahead_least;
        least > 0
            && self.segments.continues(lba)
            && self.segments.is_past_visit(lba, least)
            && self.segments.is_ahead(&self.tables.geometry, now, end)
            && self.do_others_wait()
    }

    fn take_write(&mut self, now: u64, tag: Tag, (lba, len): (u64, u64), fua: bool, payload: bool) {
        self.segments.forget(&self.tables.geometry, now, lba, len);
        let sectors = if payload { len } else { 0 };
        let cached = self.write_cache && !fua && len <= self.dirty.capacity();
        if cached && self.blocked.is_empty() && self.dirty.has_room(lba, len) {
            return self.accept(now, tag, (lba, len), sectors);
        }
        let place = self.tables.geometry.place(lba);
        let ready = now + self.tables.write_command;
        let mut waiting = MediumCommand { tag, write: true, lba, len, place, arrived: now, ready, data: now };
        if cached {
            return self.blocked.push_back(waiting);
        }
        self.link_free = self.link_free.max(now) + self.tables.transfer(sectors);
        waiting.data = self.link_free;
        self.window_writes += 1;
        self.window.push(waiting);
    }

    /// Put a write into the cache and answer it.
    fn accept(&mut self, now: u64, tag: Tag, (lba, len): (u64, u64), sectors: u64) {
        let end = self.answer(now, self.tables.cached_write_command, now, sectors);
        self.dirty.add(&self.tables.geometry, now, lba, len);
        self.outbox.push(Instant(end), tag);
    }

    /// The next time at which the model must be advanced, so that no completion is late. The next advance makes up for
    /// inner steps, each at its own time. An inner step needs no call of its own if it completes nothing, and no
    /// waiting command can complete because of it before the returned time.
    #[inline]
    fn next_stir(&self) -> u64 {
        let due = self.due;
        if due == NOTHING_DUE || self.flushes.len() + self.beyond.len() + self.window_writes as usize > 0 {
            return due;
        }
        // Every answer after a read is sent after it on the link.
        if let WorkKind::Read { begins, transfer, .. } = self.work.kind {
            return self.read_end(due, begins, transfer);
        }
        // The mechanism only writes the cache's content.
        let inside = self.window.is_empty() && self.blocked.is_empty();
        if inside && !matches!(self.work.kind, WorkKind::Write { .. }) {
            return NOTHING_DUE;
        }
        due
    }

    /// When the host has the data of a read. The medium reads the first sector at `begins` and the last one at `now`.
    /// The link sends a sector when it has sent the previous one and the medium has read it. So the slower of the two
    /// decides, and the other adds one sector.
    #[inline]
    fn read_end(&self, now: u64, begins: u64, transfer: u64) -> u64 {
        (now + self.tables.last_transfer).max(self.link_free.max(begins) + transfer)
    }

    /// Carry out all steps that are due by `now`, without returning completions.
    #[inline(always)]
    fn settle(&mut self, now: u64) {
        let now = now.min(NOTHING_DUE - 1);
        while self.due <= now {
            self.settle_step();
        }
    }

    #[inline(never)]
    fn settle_step(&mut self) {
        let now = self.due;
        self.finish(now);
        self.admit(now);
        self.proceed(now);
    }

    #[inline]
    fn finish(&mut self, now: u64) {
        let Work { kind, media, cylinder, head, end } = self.work;
        if matches!(kind, WorkKind::Nothing) {
            return;
        }
        self.work.kind = WorkKind::Nothing;
        (self.cylinder, self.head, self.last) = (cylinder, head, end);
        match kind {
            WorkKind::Read { tag, lba, begins, transfer } => {
                self.last_read = now;
                let at = self.read_end(now, begins, transfer);
                self.link_free = at;
                self.outbox.push(Instant(at), tag);
                self.segments.filled(&self.tables.geometry, now, media, lba, end);
            }
            WorkKind::Write { tag } => {
                self.segments.leave();
                self.outbox.push(Instant(now), tag);
            }
            WorkKind::Destage { sectors, .. } => {
                self.segments.leave();
                self.dirty.written(sectors);
            }
            WorkKind::Rewrite => self.segments.leave(),
            WorkKind::Nothing => {}
        }
    }

    /// Take writes that waited for room, if there is room now. The mechanism does not wait until the data of the first
    /// one has come: it chooses its next work among the pieces that the cache has.
    fn admit(&mut self, now: u64) {
        let Some(first) = self.admitted() else { return };
        self.start(now);
        self.accept(now, first.tag, (first.lba, first.len), first.len);
        while let Some(next) = self.admitted() {
            self.accept(now, next.tag, (next.lba, next.len), next.len);
        }
    }

    /// The next write that waited for room, if there is room for it now.
    fn admitted(&mut self) -> Option<MediumCommand> {
        let first = self.blocked.front()?;
        if self.dirty.has_room(first.lba, first.len) {
            self.blocked.pop_front()
        } else {
            None
        }
    }

    /// Take commands that wait outside, answer flushes, and give the mechanism work.
    #[inline]
    fn proceed(&mut self, now: u64) {
        if !(self.flushes.is_empty() && self.beyond.is_empty()) {
            self.proceed_outside(now);
        }
        self.start(now);
    }

    #[inline(never)]
    fn proceed_outside(&mut self, now: u64) {
        while !(self.flushes.is_empty() && self.beyond.is_empty()) {
            self.end_flushes(now);
            let closed = !self.flushes.is_empty() && !self.tables.flush_queued;
            if closed || self.inside() >= self.tables.queue_depth {
                break;
            }
            // The host sends a flush of ATA only when no other command is outstanding.
            let alone = matches!(self.beyond.front(), Some(first) if first.op == DriveOp::Flush);
            if alone && !self.tables.flush_queued && self.inside() > 0 {
                break;
            }
            match self.beyond.pop_front() {
                Some(command) => self.take(now, &command),
                None => break,
            }
        }
    }

    fn end_flushes(&mut self, now: u64) {
        let destaging = match self.work.kind {
            WorkKind::Destage { number, .. } => number,
            _ => u64::MAX,
        };
        let mut index = 0;
        while index < self.flushes.len() {
            let flush = self.flushes[index];
            if destaging <= flush.number || self.dirty.has_before(flush.number) {
                index += 1;
            } else {
                self.flushes.remove(index);
                self.outbox.push(Instant(now + self.tables.flush), flush.tag);
            }
        }
    }
}

impl VirtualDrive for Disk {
    fn sectors(&self) -> u64 {
        self.tables.geometry.sectors()
    }

    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        assert!(
            command.lba.0 + command.len.0 <= self.sectors() && (command.len.0 > 0) == (command.op != DriveOp::Flush),
            "a command beyond the drive, or of no length: {command:?}"
        );
        self.settle(now.0);
        let at_once = self.beyond.is_empty() && self.flushes.is_empty() && self.inside() < self.tables.queue_depth;
        if at_once && command.op != DriveOp::Flush {
            self.take(now.0, command);
            self.start(now.0);
        } else {
            self.beyond.push_back(*command);
            self.proceed(now.0);
        }
    }

    #[inline]
    fn next(&self) -> Option<Instant> {
        let next = self.next_stir().min(self.outbox.next().map_or(NOTHING_DUE, |at| at.0));
        (next != NOTHING_DUE).then_some(Instant(next))
    }

    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        self.settle(now.0);
        while let Some((_, tag)) = self.outbox.pop_due(now) {
            done.push(tag);
        }
    }

    fn held(&self, _now: Instant) -> u64 {
        self.dirty.sectors() + self.shingles.as_ref().map_or(0, Shingles::sectors)
    }
    fn busy(&self, now: Instant) -> Nanos {
        if self.due > now.0 {
            return Nanos(self.busy + self.segments.worked());
        }
        let mut settled = self.clone();
        settled.settle(now.0);
        Nanos(settled.busy + settled.segments.worked())
    }

    fn passing(&self, given: &CommandCounts) -> Passing {
        let sectors = given.sectors_read + given.sectors_written;
        Passing {
            firmware: Nanos(self.answered),
            link: [self.tables.link_rate.time(Bytes(sectors * 512)), Nanos::ZERO],
            ..Passing::default()
        }
    }
}

#[cfg(test)]
mod tests;
