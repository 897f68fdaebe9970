//! A hard disk: its rotation, its seeks, its cache.

use crate::drive::{slow_time, small};
use crate::reader::ProfileSection;
use crate::sourced::{Rate, Sourced};
use crate::unit::Dimension;
use openraid_units::{Bytes, Nanos, Sectors};

/// Greatest number of rows of a seek table.
const TABLE_MAX: usize = 512;
/// Greatest number of zones of recording density.
const ZONES_MAX: u64 = 64;
/// Greatest number of cache segments.
const SEGMENTS_MAX: u64 = 64;
/// Greatest number of dirty extents in a drive's write cache.
const DIRTY_MAX: u64 = 4096;
/// Greatest number of commands that a drive takes at once.
const DEPTH_MAX: u64 = 256;
/// Longest seek, in nanoseconds: 200 ms, as in floppy disks.
const SEEK_MAX: u64 = 200_000_000;
/// Greatest number of cylinders: a thousand times the number of any drive.
const CYLINDERS_MAX: u64 = 1 << 28;

/// A hard disk. Times are of the drive alone. Rates are sustained ones, with the switches of heads and cylinders
/// included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskProfile {
    /// Speed of the spindle in turns per minute.
    pub spindle_rpm: Sourced<u32>,
    /// Recording surfaces.
    pub heads: Sourced<u32>,
    /// Number of zones; they have equal width, and their density falls linearly.
    pub zones: Sourced<u32>,
    /// Bytes of a sector on the medium: 512, or 4096 with addresses in units of 512 bytes.
    pub physical_block: Sourced<Bytes>,
    /// Sustained rate at the outer edge.
    pub rate_outer: Sourced<Rate>,
    /// Sustained rate at the inner edge.
    pub rate_inner: Sourced<Rate>,
    /// Seeks before a read.
    pub seek_read: SeekPoints,
    /// Seeks before a write, settling included.
    pub seek_write: SeekPoints,
    /// A measured curve for reads instead of the three points.
    pub seek_table: Option<SeekTable>,
    /// From one head to the next of a cylinder.
    pub head_switch: Sourced<Nanos>,
    /// Firmware time of a command that needs the medium, before the arm moves.
    pub command: Sourced<Nanos>,
    /// Firmware time of a command that the buffer answers.
    pub cached_command: Sourced<Nanos>,
    /// Like `command`, for writes. If the profile does not have it, the time for reads.
    pub write_command: Sourced<Nanos>,
    /// Like `cached_command`, for writes that the cache takes. If the profile does not have it, the time for reads.
    pub cached_write_command: Sourced<Nanos>,
    /// Rate of the drive's link.
    pub link_rate: Sourced<Rate>,
    /// Segments of the read buffer.
    pub segments: Sourced<u32>,
    /// Greatest length of reading on after a read.
    pub read_ahead: Sourced<Bytes>,
    /// Length that the drive reads ahead after a sequential read before it serves another waiting command.
    pub read_ahead_least: Sourced<Bytes>,
    /// Whether the factory setting of read-ahead is on. If the profile does not say so, it is.
    pub reads_ahead: bool,
    /// Whether the factory setting of the write cache is on.
    pub write_cache: bool,
    /// Greatest size of written data in the cache.
    pub dirty: Sourced<Bytes>,
    /// Greatest number of pieces of written data in the cache.
    pub dirty_extents: Sourced<u32>,
    /// Time without commands after which the drive destages its cache.
    pub destage_idle: Sourced<Nanos>,
    /// Age from which written data is destaged even while reads wait.
    pub destage_age: Sourced<Nanos>,
    /// The kind of the command queue.
    pub queue: QueueKind,
    /// Number of commands that the drive takes at once.
    pub queue_depth: Sourced<u32>,
    /// Number of commands that the firmware compares in its search for the nearest.
    pub sorting_window: Sourced<u32>,
    /// A command that has waited longer than this is served next.
    pub queue_age: Sourced<Nanos>,
    /// Time that the firmware adds to its estimate of the way to a sector.
    pub positioning_margin: Sourced<Nanos>,
    /// Firmware time of a flush.
    pub flush: Sourced<Nanos>,
    /// Whether other commands continue during a flush (SCSI); otherwise they wait (ATA).
    pub flush_queued: bool,
    /// Overlapping tracks that the drive manages itself (drive-managed SMR), if it has them.
    pub shingled: Option<ShingledProfile>,
}

/// Overlapping tracks: a band is written as a whole. Other writes wait in a cache on the medium until their band is
/// rewritten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShingledProfile {
    /// Bytes of a band.
    pub band: Sourced<Bytes>,
    /// Bytes of the cache on the medium.
    pub cache: Sourced<Bytes>,
    /// Greatest number of pieces in the cache: the size of its map.
    pub extents: Sourced<u32>,
    /// Time without commands after which the drive rewrites bands.
    pub idle: Sourced<Nanos>,
}

impl ShingledProfile {
    fn read(section: &ProfileSection<'_>) -> Self {
        let profile = Self {
            band: section.quantity("band", Dimension::Size, 1 << 20, 1 << 32).map(Bytes),
            cache: section.quantity("cache", Dimension::Size, 1 << 20, 1 << 42).map(Bytes),
            extents: small(&section.quantity("extents", Dimension::Count, 1, 1 << 24)),
            idle: section.quantity("idle", Dimension::Time, 0, u64::MAX).map(Nanos),
        };
        if profile.cache.value < profile.band.value {
            section.complain("cache", "is smaller than a band", "check the units");
        }
        section.finish();
        profile
    }
}

/// Kinds of command queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueKind {
    /// One command at a time.
    None,
    /// Tagged queueing of ATA/ATAPI-5 through a bridge; most controllers never use it.
    LegacyTcq,
    /// Native command queueing of Serial ATA.
    Ncq,
    /// Tagged queueing of SCSI and SAS.
    ScsiTcq,
}

/// Seek times of a data sheet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeekPoints {
    /// To the next cylinder.
    pub track_to_track: Sourced<Nanos>,
    /// Mean over two random places.
    pub average: Sourced<Nanos>,
    /// From edge to edge.
    pub full_stroke: Sourced<Nanos>,
}

/// A measured seek curve. Each row has a distance, in parts per million of the full stroke, and a time. Distances rise
/// from 0 to a million; times do not fall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeekTable(pub Vec<(u32, Nanos)>);

impl DiskProfile {
    pub(crate) fn read(top: &ProfileSection<'_>, interface: &ProfileSection<'_>, capacity: Sectors) -> Self {
        let mechanics = top.section("mechanics");
        let media = top.section("media");
        let seek = top.section("seek");
        let cache = top.section("cache");
        let queue = top.section("queue");
        let time =
            |section: &ProfileSection<'_>, base: &str| section.quantity(base, Dimension::Time, 0, u64::MAX).map(Nanos);
        let (command, cached_command) = (time(interface, "command"), time(interface, "cached_command"));
        let of_writes = |base: &str, of_reads: &Sourced<Nanos>| {
            let time = interface.optional_quantity(base, Dimension::Time, 0, u64::MAX);
            time.map_or_else(|| of_reads.clone(), |time| time.map(Nanos))
        };
        let kinds = [QueueKind::None, QueueKind::LegacyTcq, QueueKind::Ncq, QueueKind::ScsiTcq];
        let profile = Self {
            spindle_rpm: small(&mechanics.quantity("spindle", Dimension::Spin, 1_000, 50_000)),
            heads: small(&mechanics.quantity("heads", Dimension::Count, 1, 64)),
            head_switch: mechanics.quantity("head_switch", Dimension::Time, 1_000, 20_000_000).map(Nanos),
            zones: small(&media.quantity("zones", Dimension::Count, 1, ZONES_MAX)),
            physical_block: media.quantity("physical_block", Dimension::Size, 512, 4096).map(Bytes),
            rate_outer: media.quantity("rate_outer", Dimension::Rate, 1_000_000, u64::MAX).map(Rate),
            rate_inner: media.quantity("rate_inner", Dimension::Rate, 1_000_000, u64::MAX).map(Rate),
            seek_read: SeekPoints::read(&seek, "read"),
            seek_write: SeekPoints::read(&seek, "write"),
            seek_table: read_table(&seek),
            write_command: of_writes("write_command", &command),
            cached_write_command: of_writes("cached_write_command", &cached_command),
            command,
            cached_command,
            link_rate: interface.quantity("link_rate", Dimension::Rate, 1_000_000, u64::MAX).map(Rate),
            segments: small(&cache.quantity("segments", Dimension::Count, 1, SEGMENTS_MAX)),
            read_ahead: cache.quantity("read_ahead", Dimension::Size, 0, 1 << 32).map(Bytes),
            read_ahead_least: cache.quantity("read_ahead_least", Dimension::Size, 0, 1 << 32).map(Bytes),
            reads_ahead: cache.truth_or("reads_ahead", true),
            write_cache: cache.truth("write_cache"),
            dirty: cache.quantity("dirty", Dimension::Size, 0, 1 << 34).map(Bytes),
            dirty_extents: small(&cache.quantity("dirty_extents", Dimension::Count, 1, DIRTY_MAX)),
            destage_idle: time(&cache, "destage_idle"),
            destage_age: time(&cache, "destage_age"),
            queue: kinds[queue.word("kind", &["none", "legacy-tcq", "ncq", "scsi-tcq"]).unwrap_or(0)],
            queue_depth: small(&queue.quantity("depth", Dimension::Count, 1, DEPTH_MAX)),
            sorting_window: small(&queue.quantity("sorting_window", Dimension::Count, 1, DEPTH_MAX)),
            queue_age: time(&queue, "age_limit"),
            positioning_margin: time(&queue, "positioning_margin"),
            flush: time(&queue, "flush"),
            flush_queued: queue.truth("flush_queued"),
            shingled: top.optional_section("shingled").map(|section| ShingledProfile::read(&section)),
        };
        profile.check(&mechanics, &media, &queue, capacity);
        for section in [mechanics, media, seek, cache, queue] {
            section.finish();
        }
        profile
    }

    /// Time of a turn, to the nearest nanosecond.
    #[must_use]
    pub fn turn(&self) -> Nanos {
        let rpm = u64::from(self.spindle_rpm.value);
        Nanos((60_000_000_000 + rpm / 2) / rpm)
    }

    fn check(
        &self,
        mechanics: &ProfileSection<'_>,
        media: &ProfileSection<'_>,
        queue: &ProfileSection<'_>,
        capacity: Sectors,
    ) {
        if !media.clean() {
            return;
        }
        if self.rate_inner.value > self.rate_outer.value {
            let reason = format!(
                "the inner rate of {} is above the outer rate of {}",
                self.rate_inner.value, self.rate_outer.value
            );
            media.complain("rate_inner", &reason, "tracks are longer outside: swap the two, or check the sheet");
        }
        if self.rate_outer.value > self.link_rate.value {
            let (outer, link) = (self.rate_outer.value, self.link_rate.value);
            let reason = format!("the outer rate of {outer} is above the link's rate of {link}");
            media.complain(
                "rate_outer",
                &reason,
                "a disk cannot sustain what its link does not carry: check both rates",
            );
        }
        if ![512, 4096].contains(&self.physical_block.value.0) {
            media.complain("physical_block", "a sector is 512 or 4096 bytes", "write one of the two");
        }
        let depth = self.queue_depth.value;
        if self.queue == QueueKind::None && depth != 1 {
            queue.complain("depth", "a drive without a queue takes one command", "write 1, or name the queue's kind");
        }
        if self.sorting_window.value > depth {
            queue.complain("sorting_window", "is larger than the queue", &format!("write at most {depth}"));
        }
        if self.head_switch.value > self.turn() {
            mechanics.complain("head_switch", "takes longer than a turn", "check the unit");
        }
        // The smallest track must hold a sector, and there must be a cylinder.
        let heads = u64::from(self.heads.value);
        let inner = self.rate_inner.value.0 / 1000 * self.turn().0 / 1_000_000 * heads;
        let outer = self.rate_outer.value.0 / 1000 * (2 * self.turn().0) / 1_000_000 * heads;
        if inner < 4096 * heads || capacity.0 * 512 < outer * u64::from(self.zones.value) {
            let reason = format!("the capacity of {capacity} is not enough for {} zones", self.zones.value);
            return media.complain("zones", &reason, "check capacity, rates, heads and zones");
        }
        if capacity.0 * 512 / inner > CYLINDERS_MAX {
            let reason = format!("the capacity of {capacity} needs more than {CYLINDERS_MAX} cylinders");
            media.complain("rate_inner", &reason, "check capacity, rates and heads");
        }
    }

    pub(crate) fn slow(&mut self, percent: u32) {
        let rate = |rate: &mut Sourced<Rate>| {
            *rate = rate.clone().map(|n| Rate((n.0 * 100 / u64::from(percent)).max(1)));
        };
        rate(&mut self.rate_outer);
        rate(&mut self.rate_inner);
        rate(&mut self.link_rate);
        self.spindle_rpm = self.spindle_rpm.clone().map(|rpm| (rpm * 100 / percent).max(1));
        for points in [&mut self.seek_read, &mut self.seek_write] {
            slow_time(&mut points.track_to_track, percent);
            slow_time(&mut points.average, percent);
            slow_time(&mut points.full_stroke, percent);
        }
        for row in self.seek_table.iter_mut().flat_map(|table| &mut table.0) {
            row.1 = Nanos(row.1 .0 * u64::from(percent) / 100);
        }
        slow_time(&mut self.head_switch, percent);
        slow_time(&mut self.command, percent);
        slow_time(&mut self.cached_command, percent);
        slow_time(&mut self.write_command, percent);
        slow_time(&mut self.cached_write_command, percent);
    }
}

impl SeekPoints {
    fn read(seek: &ProfileSection<'_>, before: &str) -> Self {
        let time =
            |name: &str| seek.quantity(&format!("{before}_{name}"), Dimension::Time, 10_000, SEEK_MAX).map(Nanos);
        let points =
            Self { track_to_track: time("track_to_track"), average: time("average"), full_stroke: time("full_stroke") };
        if seek.clean() {
            points.check(seek, before);
        }
        points
    }

    /// Check that an arm can have these seek times.
    fn check(&self, seek: &ProfileSection<'_>, before: &str) {
        let field = format!("{before}_average");
        let (least, mean, most) = (self.track_to_track.value, self.average.value, self.full_stroke.value);
        if mean > most {
            let reason = format!("the average seek of {mean} is longer than the full stroke of {most}");
            return seek.complain(&field, &reason, "swap the two, or check the sheet");
        }
        if least > mean {
            let reason = format!("the average seek of {mean} is shorter than the one to the next track, {least}");
            return seek.complain(&field, &reason, "swap the two, or check the sheet");
        }
        let (first, whole) = (mean.0 - least.0, most.0 - least.0);
        if 3 * first < whole || 3 * first > 2 * whole {
            let reason = format!("no arm takes {least} to the next track, {mean} on average and {most} at most");
            let remedy = "the average is to be between 1/3 and 2/3 of the way from the first to the last";
            seek.complain(&field, &reason, remedy);
        }
    }
}

fn read_table(seek: &ProfileSection<'_>) -> Option<SeekTable> {
    let rows = seek.pairs("read_table_percent_ms", TABLE_MAX)?;
    let rising = rows.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    let fits = |&(percent, ms): &(f64, f64)| (0.0..=100.0).contains(&percent) && (0.01..=200.0).contains(&ms);
    let ends = rows.first().is_some_and(|row| row.0 == 0.0) && rows.last().is_some_and(|row| row.0 == 100.0);
    if !(rising && ends && rows.iter().all(fits)) {
        let reason = "is not a seek curve";
        let remedy = "give [percent of the full stroke, ms] from 0 to 100, distances rising, times not falling";
        seek.complain("read_table_percent_ms", reason, remedy);
        return None;
    }
    // In the range that was just checked.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let row = |&(percent, ms): &(f64, f64)| ((percent * 1e4).round() as u32, Nanos((ms * 1e6).round() as u64));
    Some(SeekTable(rows.iter().map(row).collect()))
}
