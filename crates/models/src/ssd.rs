//! A solid-state drive: dies, channels, a buffer, and the cost of garbage collection.

use crate::drive::{slow_time, small};
use crate::reader::ProfileSection;
use crate::sourced::{Rate, Sourced};
use crate::unit::Dimension;
use openraid_units::{Bytes, Nanos, Sectors};

/// Greatest number of dies.
const DIES_MAX: u64 = 1024;
/// Greatest number of commands that a drive takes at once.
const DEPTH_MAX: u64 = 4096;
/// Greatest number of page types of one cell (penta-level).
const PAGE_TYPES_MAX: usize = 5;
/// A second, in nanoseconds: no step of a drive takes longer.
const STEP_MAX: u64 = 1_000_000_000;

/// A solid-state drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SsdProfile {
    /// Bytes of flash, spare area included.
    pub raw: Sourced<Bytes>,
    /// Channels between controller and dies.
    pub channels: Sourced<u32>,
    pub channel_rate: Sourced<Rate>,
    /// Dies, which work independently.
    pub dies: Sourced<u32>,
    /// Bytes that one die reads or programs at once.
    pub page: Sourced<Bytes>,
    /// Mean time of a page read.
    pub read: Sourced<Nanos>,
    /// Mean time of a page program.
    pub program: Sourced<Nanos>,
    /// Time of a page read for each type of page, in parts of a thousand of the mean.
    pub read_types: Vec<u32>,
    /// Time of a page program for each type of page, in parts of a thousand of the mean.
    pub program_types: Vec<u32>,
    /// Time of an erase.
    pub erase: Sourced<Nanos>,
    /// Pages of an erase block.
    pub block_pages: Sourced<u32>,
    /// Time after which a read interrupts a program; absent if a read must wait for the end of the program.
    pub suspend: Option<Sourced<Nanos>>,
    /// Firmware time of a read that does not delay other commands.
    pub controller_read: Sourced<Nanos>,
    /// Firmware time of a write that does not delay other commands.
    pub controller_write: Sourced<Nanos>,
    /// Firmware time of a read that delays other commands.
    pub serial_read: Sourced<Nanos>,
    /// Firmware time of a write that delays other commands.
    pub serial_write: Sourced<Nanos>,
    /// Time for which a command occupies the link, without the time for its data.
    pub link_command: Sourced<Nanos>,
    /// Rate of the drive's link.
    pub link_rate: Sourced<Rate>,
    /// Whether the link carries data in both directions at once (NVMe, SAS); Serial ATA does not.
    pub link_duplex: bool,
    /// Rate of the controller's path out of the drive.
    pub path_read: Sourced<Rate>,
    /// Rate of the controller's path into the drive.
    pub path_write: Sourced<Rate>,
    /// Pages that the drive reads ahead after sequential reads.
    pub read_ahead_pages: Sourced<u32>,
    /// Whether the factory setting of read-ahead is on. If the profile does not say so, it is.
    pub reads_ahead: bool,
    /// Greatest size of written data in the buffer.
    pub buffer: Sourced<Bytes>,
    /// Whether the buffer's content survives a power cut.
    pub protected: bool,
    /// Number of commands that the drive takes at once.
    pub queue_depth: Sourced<u32>,
    /// Firmware time of a flush.
    pub flush: Sourced<Nanos>,
    /// Whether other commands continue during a flush (NVMe, SCSI); otherwise they wait (ATA).
    pub flush_queued: bool,
    /// Pages programmed for each page written at random places of a full drive, in thousandths.
    pub amplification_random: Sourced<u64>,
    /// Pages programmed for each page written sequentially on a full drive, in thousandths.
    pub amplification_sequential: Sourced<u64>,
    /// Time for which collecting occupies a die without a pause.
    pub collection_burst: Sourced<Nanos>,
    /// Reads with an outlier, in parts of a million.
    pub outlier_read: Sourced<u32>,
    /// Writes with an outlier, in parts of a million.
    pub outlier_write: Sourced<u32>,
    /// Least time of an outlier of a read. One outlier in four takes twice the time, one in four of these twice again,
    /// and so on.
    pub outlier_read_time: Sourced<Nanos>,
    /// Least time of an outlier of a write. One outlier in four takes twice the time, one in four of these twice again,
    /// and so on.
    pub outlier_write_time: Sourced<Nanos>,
    /// Part of the flash that takes writes faster at first.
    pub slc: Option<SlcCache>,
}

/// A cache of flash cells that hold one bit each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlcCache {
    pub size: Sourced<Bytes>,
    /// Time of a page program in the cache.
    pub program: Sourced<Nanos>,
    /// Rate at which the cache is emptied while the drive is idle.
    pub fold: Sourced<Rate>,
}

impl SsdProfile {
    pub(crate) fn read(top: &ProfileSection<'_>, interface: &ProfileSection<'_>, capacity: Sectors) -> Self {
        let flash = top.section("flash");
        let controller = top.section("controller");
        let upkeep = top.section("upkeep");
        let step =
            |section: &ProfileSection<'_>, base: &str| section.quantity(base, Dimension::Time, 0, STEP_MAX).map(Nanos);
        let rate = |section: &ProfileSection<'_>, base: &str| {
            section.quantity(base, Dimension::Rate, 1_000_000, u64::MAX).map(Rate)
        };
        let factor = |base: &str| upkeep.quantity(base, Dimension::Factor, 1_000, 100_000);
        let share = |base: &str| small(&upkeep.quantity(base, Dimension::Share, 0, 1_000_000));
        let count =
            |section: &ProfileSection<'_>, base: &str, most| small(&section.quantity(base, Dimension::Count, 1, most));
        let profile = Self {
            raw: flash.quantity("raw", Dimension::Size, 1 << 20, u64::MAX).map(Bytes),
            channels: count(&flash, "channels", DIES_MAX),
            channel_rate: rate(&flash, "channel_rate"),
            dies: count(&flash, "dies", DIES_MAX),
            page: flash.quantity("page", Dimension::Size, 4096, 1 << 20).map(Bytes),
            read: flash.quantity("read", Dimension::Time, 1, STEP_MAX).map(Nanos),
            program: flash.quantity("program", Dimension::Time, 1, STEP_MAX).map(Nanos),
            read_types: types(&flash, "read_types_percent"),
            program_types: types(&flash, "program_types_percent"),
            erase: step(&flash, "erase"),
            block_pages: count(&flash, "block_pages", 1 << 20),
            suspend: flash.optional_quantity("suspend", Dimension::Time, 0, STEP_MAX).map(|time| time.map(Nanos)),
            controller_read: step(&controller, "read"),
            controller_write: step(&controller, "write"),
            serial_read: step(&controller, "serial_read"),
            serial_write: step(&controller, "serial_write"),
            path_read: rate(&controller, "path_read"),
            path_write: rate(&controller, "path_write"),
            read_ahead_pages: small(&controller.quantity("read_ahead_pages", Dimension::Count, 0, DIES_MAX)),
            reads_ahead: controller.truth_or("reads_ahead", true),
            buffer: controller.quantity("buffer", Dimension::Size, 1 << 16, 1 << 34).map(Bytes),
            protected: controller.truth("protected"),
            link_command: step(interface, "link_command"),
            link_rate: rate(interface, "link_rate"),
            link_duplex: interface.truth("link_duplex"),
            queue_depth: count(interface, "queue_depth", DEPTH_MAX),
            flush: step(interface, "flush"),
            flush_queued: interface.truth("flush_queued"),
            amplification_random: factor("amplification_random"),
            amplification_sequential: factor("amplification_sequential"),
            collection_burst: step(&upkeep, "collection_burst"),
            outlier_read: share("outlier_read"),
            outlier_write: share("outlier_write"),
            outlier_read_time: step(&upkeep, "outlier_read_time"),
            outlier_write_time: step(&upkeep, "outlier_write_time"),
            slc: top.optional_section("slc").map(|slc| SlcCache::read(&slc)),
        };
        profile.check(&flash, &controller, &upkeep, capacity);
        for section in [flash, controller, upkeep] {
            section.finish();
        }
        profile
    }

    fn check(
        &self,
        flash: &ProfileSection<'_>,
        controller: &ProfileSection<'_>,
        upkeep: &ProfileSection<'_>,
        capacity: Sectors,
    ) {
        if !flash.clean() {
            return;
        }
        if self.raw.value.0 < capacity.0 * 512 {
            let reason =
                format!("{} of flash are less than the capacity of {} bytes", self.raw.value, capacity.0 * 512);
            flash.complain("raw", &reason, "check the two; flash is sold by powers of two, capacity by powers of ten");
        }
        if !self.dies.value.is_multiple_of(self.channels.value) {
            flash.complain("dies", "the channels do not have equally many dies", "give a multiple of the channels");
        }
        if !self.page.value.0.is_multiple_of(4096) {
            flash.complain("page", "is not a multiple of 4096 bytes", "flash pages are 4, 8 or 16 KiB");
        }
        if self.buffer.value < self.page.value {
            controller.complain("buffer", "is smaller than a page of flash", "check the units");
        }
        if self.amplification_sequential.value > self.amplification_random.value {
            let reason = "writing in order costs more than writing at random";
            upkeep.complain("amplification_sequential", reason, "swap the two factors");
        }
    }

    pub(crate) fn slow(&mut self, percent: u32) {
        for time in [
            &mut self.read,
            &mut self.program,
            &mut self.erase,
            &mut self.controller_read,
            &mut self.controller_write,
            &mut self.serial_read,
            &mut self.serial_write,
            &mut self.link_command,
        ] {
            slow_time(time, percent);
        }
        for rate in [&mut self.link_rate, &mut self.path_read, &mut self.path_write, &mut self.channel_rate] {
            *rate = rate.clone().map(|n| Rate((n.0 * 100 / u64::from(percent)).max(1)));
        }
    }
}

impl SlcCache {
    fn read(slc: &ProfileSection<'_>) -> Self {
        let cache = Self {
            size: slc.quantity("size", Dimension::Size, 1 << 20, u64::MAX).map(Bytes),
            program: slc.quantity("program", Dimension::Time, 1, STEP_MAX).map(Nanos),
            fold: slc.quantity("fold", Dimension::Rate, 1_000_000, u64::MAX).map(Rate),
        };
        slc.finish();
        cache
    }
}

/// Times of the page types of a cell, in percent of the mean; if the list is missing, all types take the mean time.
fn types(flash: &ProfileSection<'_>, key: &str) -> Vec<u32> {
    let percents = flash.numbers(key, PAGE_TYPES_MAX);
    let fits = percents.iter().all(|percent| (1.0..=1000.0).contains(percent));
    let mean = percents.iter().sum::<f64>() / percents.len().max(1) as f64;
    if percents.is_empty() {
        return Vec::new();
    }
    if !fits || !(99.0..=101.0).contains(&mean) {
        flash.complain(key, "do not have the mean 100", "give the time of each type in percent of the mean");
        return Vec::new();
    }
    // In the range that was just checked.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    percents.iter().map(|percent| (percent * 10.0).round() as u32).collect()
}
