//! A drive of any kind, and the figures of its data sheet for comparison with the model.

use crate::bus::BusProfile;
use crate::disk::DiskProfile;
use crate::error::ModelErrors;
use crate::power::PowerProfile;
use crate::profile_head::Head;
use crate::reader::{read_file, Edges, ProfileSection};
use crate::reliability::ReliabilityProfile;
use crate::sourced::{Rate, Sourced};
use crate::ssd::SsdProfile;
use crate::unit::Dimension;
use openraid_units::{Bytes, Nanos, Sectors};

/// Greatest number of servers of a constant drive.
const SERVERS_MAX: u64 = 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveProfile {
    /// Name and title.
    pub head: Head,
    /// Name of the bus profile of its link (`sata3`), for readers and for checks.
    pub link: String,
    pub capacity: Sourced<Sectors>,
    /// Its kind, with the values of that kind.
    pub kind: DriveKind,
    /// Its failure rates, if they are known or estimated.
    pub reliability: Option<ReliabilityProfile>,
    /// Its electric power, if a data sheet states it.
    pub power: Option<PowerProfile>,
    /// Figures of its data sheet or of a measurement. A model never reads them; they are for comparison.
    pub sheet: Vec<SheetFigure>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DriveKind {
    /// A hard disk.
    Disk(Box<DiskProfile>),
    /// A solid-state drive.
    Ssd(Box<SsdProfile>),
    /// A drive with a given service time, for comparison with queueing theory.
    Constant(ConstantProfile),
}

/// A drive with synthetic service times.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantProfile {
    /// Mean service time of a command.
    pub service: Sourced<Nanos>,
    /// Distribution of the service time.
    pub law: ServiceLaw,
    /// Commands served at once.
    pub servers: Sourced<u32>,
}

/// Distribution of a synthetic service time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceLaw {
    /// Always the mean.
    Fixed,
    Exponential,
    /// Uniform from zero to twice the mean.
    Uniform,
}

/// The subject of a figure of a data sheet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SheetKey {
    /// Random 4 KiB commands per second.
    Random {
        /// True for writes, false for reads.
        write: bool,
        /// Commands outstanding.
        depth: u32,
        /// On a drive that has not been written full.
        fresh: bool,
        /// The figure is a mean time in nanoseconds, not a rate.
        time: bool,
    },
    /// Bytes per second of sequential commands, 128 KiB at depth 32, at the outer edge of a disk.
    Sequential {
        /// True for writes, false for reads.
        write: bool,
    },
    /// Time of a flush after one random 4 KiB write, in nanoseconds.
    Flush,
}

/// One figure of a data sheet. Its unit depends on the key: commands per second, bytes per second or nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SheetFigure {
    /// The subject.
    pub key: SheetKey,
    /// Its key in the file.
    pub name: String,
    /// The figure.
    pub value: Sourced<u64>,
}

impl DriveProfile {
    /// Read a drive from the text of a file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelErrors> {
        Self::parse_at(file, text, &Edges::new())
    }

    /// Read a drive with some values at an end of their range.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse_at(file: &str, text: &str, edges: &Edges) -> Result<Self, ModelErrors> {
        let (mut profile, mut fields) = read_file(file, text, edges, Self::read)?;
        // No model of speed reads the figures of the data sheet, the failure rates or the power, so their ranges do not
        // matter.
        for known in [&mut fields.uncertain, &mut fields.measured] {
            known.retain(|field| !["sheet.", "reliability.", "power."].iter().any(|table| field.starts_with(table)));
        }
        (profile.head.uncertain, profile.head.measured) = (fields.uncertain, fields.measured);
        Ok(profile)
    }

    fn read(top: &ProfileSection<'_>) -> Self {
        let (head, kind) = Head::read(top, &["disk", "ssd", "constant"]);
        let interface = top.section("interface");
        let link = interface.text("link").unwrap_or_default();
        let capacity = top.quantity("capacity", Dimension::Size, 1 << 20, u64::MAX).map(|n| Bytes(n).sectors_floor());
        let kind = match kind {
            "disk" => DriveKind::Disk(Box::new(DiskProfile::read(top, &interface, capacity.value))),
            "ssd" => DriveKind::Ssd(Box::new(SsdProfile::read(top, &interface, capacity.value))),
            _ => DriveKind::Constant(ConstantProfile::read(top)),
        };
        interface.finish();
        let sheet = top.optional_section("sheet").map(|sheet| read_sheet(&sheet)).unwrap_or_default();
        let reliability = top.optional_section("reliability").map(|section| ReliabilityProfile::read(&section));
        let power = top.optional_section("power").map(|section| PowerProfile::read(&section));
        Self { head, link, capacity, kind, reliability, power, sheet }
    }

    /// Rate of the drive's link, if it has one.
    #[must_use]
    pub fn link_rate(&self) -> Option<Rate> {
        match &self.kind {
            DriveKind::Disk(disk) => Some(disk.link_rate.value),
            DriveKind::Ssd(ssd) => Some(ssd.link_rate.value),
            DriveKind::Constant(_) => None,
        }
    }

    /// Whether the factory setting of the write cache is on. The write cache of an SSD is its buffer, which is always
    /// on.
    #[must_use]
    pub fn write_cache(&self) -> bool {
        match &self.kind {
            DriveKind::Disk(disk) => disk.write_cache,
            DriveKind::Ssd(_) | DriveKind::Constant(_) => true,
        }
    }

    /// Whether the factory setting of read-ahead is on.
    #[must_use]
    pub fn reads_ahead(&self) -> bool {
        match &self.kind {
            DriveKind::Disk(disk) => disk.reads_ahead,
            DriveKind::Ssd(ssd) => ssd.reads_ahead,
            DriveKind::Constant(_) => false,
        }
    }

    /// Whether the drive is rotational.
    #[must_use]
    pub const fn rotational(&self) -> bool {
        matches!(self.kind, DriveKind::Disk(_))
    }

    /// Whether the drive is in a slot of PCI Express, and not on a port for drives.
    #[must_use]
    pub fn has_slot(&self) -> bool {
        self.link.starts_with("pcie")
    }

    /// Whether a port, or the drive's lane of it, is slower than the drive's own link.
    #[must_use]
    pub fn exceeds(&self, port: &BusProfile) -> bool {
        self.link_rate().is_some_and(|rate| rate > port.lane_rate().value)
    }

    /// The same drive on a port of a controller: the slower of the two links counts.
    #[must_use]
    pub fn behind(mut self, port: &BusProfile) -> Self {
        if self.exceeds(port) {
            match &mut self.kind {
                DriveKind::Disk(disk) => disk.link_rate = port.lane_rate(),
                DriveKind::Ssd(ssd) => {
                    ssd.link_rate = port.lane_rate();
                    ssd.link_command = port.lane_command();
                }
                DriveKind::Constant(_) => {}
            }
        }
        self
    }

    /// The same drive with every time multiplied by `percent / 100`, from a tenth to ten times. At 200 it has half the
    /// rates and half the commands per second.
    #[must_use]
    pub fn slowed(mut self, percent: u32) -> Self {
        let percent = percent.clamp(10, 1000);
        match &mut self.kind {
            DriveKind::Disk(disk) => disk.slow(percent),
            DriveKind::Ssd(ssd) => ssd.slow(percent),
            DriveKind::Constant(constant) => slow_time(&mut constant.service, percent),
        }
        self.head.name = format!("{}-slowed", self.head.name);
        self
    }
}

/// Multiply a time.
pub(crate) fn slow_time(time: &mut Sourced<Nanos>, percent: u32) {
    *time = time.clone().map(|n| Nanos(n.0 * u64::from(percent) / 100));
}

impl ConstantProfile {
    fn read(top: &ProfileSection<'_>) -> Self {
        let service = top.section("service");
        let laws = ["fixed", "exponential", "uniform"];
        let law = [ServiceLaw::Fixed, ServiceLaw::Exponential, ServiceLaw::Uniform];
        let profile = Self {
            service: service.quantity("mean", Dimension::Time, 1, u64::MAX).map(Nanos),
            law: law[service.word("law", &laws).unwrap_or(0)],
            servers: small(&service.quantity("servers", Dimension::Count, 1, SERVERS_MAX)),
        };
        service.finish();
        profile
    }
}

/// A number that is known to fit into 32 bits.
pub(crate) fn small(count: &Sourced<u64>) -> Sourced<u32> {
    count.clone().map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

fn read_sheet(sheet: &ProfileSection<'_>) -> Vec<SheetFigure> {
    let mut figures = Vec::new();
    for key in sheet.keys() {
        let Some((base, parsed, dimension)) = sheet_key(&key) else { continue };
        if let Some(value) = sheet.optional_quantity(base, dimension, 1, u64::MAX) {
            if !figures.iter().any(|figure: &SheetFigure| figure.name == key) {
                figures.push(SheetFigure { key: parsed, name: key.clone(), value });
            }
        }
    }
    // The errors list the valid keys in place of an invalid one.
    for (base, dimension) in [("read_4k_depth1", Dimension::Commands), ("sequential_read", Dimension::Rate)] {
        let _ = sheet.optional_quantity(base, dimension, 1, u64::MAX);
    }
    sheet.finish();
    figures
}

/// The parts of `read_4k_depth32_iops`, `write_4k_depth1_fresh_us`, `sequential_read_mbs`, `flush_ms`: the name without
/// its unit, the meaning, and the dimension.
fn sheet_key(key: &str) -> Option<(&str, SheetKey, Dimension)> {
    let (base, unit) = key.rsplit_once('_')?;
    let time = matches!(unit, "ns" | "us" | "ms");
    let dimension = if time { Dimension::Time } else { Dimension::Commands };
    let parsed = match base {
        "flush" => return time.then_some((base, SheetKey::Flush, Dimension::Time)),
        "sequential_read" => return Some((base, SheetKey::Sequential { write: false }, Dimension::Rate)),
        "sequential_write" => return Some((base, SheetKey::Sequential { write: true }, Dimension::Rate)),
        _ => base,
    };
    let (write, rest) = match (parsed.strip_prefix("read_4k_depth"), parsed.strip_prefix("write_4k_depth")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return None,
    };
    let (depth, fresh) = rest.strip_suffix("_fresh").map_or((rest, false), |depth| (depth, true));
    let depth = depth.parse().ok().filter(|depth| (1..=4096).contains(depth))?;
    Some((base, SheetKey::Random { write, depth, fresh, time }, dimension))
}
