//! Computes the maximum rates of a simulated machine's parts under a load, by closed formulas.
//!
//! ```text
//!   bus          of a card: the bytes of hosts; of software: the bytes that members read and write for them, unless
//!                each member has a slot for itself
//!   data path    of a card: the bytes of hosts
//!   links        each drive's own or its port's, the slower one; if drives share channels, the channels
//!   media        a disk in its outermost zone, an SSD's controller
//!   firmware     of SSDs: the time in which a command excludes others
//!   positions    of disks, with one request at a time at random addresses: a seek and half a turn each
//! ```
//!
//! The traffic of members for one byte of the host. There are n members, of which m are missing. In a stripe, d members hold data and p parities; d' members hold data of a stripe in one span.
//!
//! ```text
//!   any load           read 1; written (n - m) / d: all present members, for a stripe that is written whole
//!   random reads       parity: ((n - m) + m d') / n, because a lost chunk is read from d' others
//!   random writes      parity, no missing member, no cache: the smaller traffic of two ways
//!                      1 + p reads and 1 + p writes, or d' - 1 reads and 1 + p writes
//! ```
//!
//! The formulas assume that a missing member is the slowest one, and that reads can use a member that is being filled.
//! Both assumptions can only raise a ceiling.

use super::ceiling::Ceiling;
use super::error::CellError;
use super::plan::CellPlan;
use super::spec::CellSpec;
use super::subject::Level;
use openraid_models::{
    BusProfile, ControllerKind, DiskProfile, DriveKind, DriveProfile, Duplex, Library, LookupError, Rate,
};
use openraid_sim::machine::{ArraySpec, MachineSpec};

/// Addresses are drawn evenly, and the outer tracks of a disk have more of them. The mean seek is therefore shorter
/// than the data sheet's, by at most this percentage of the whole time.
const POSITIONS_PERCENT: f64 = 10.0;

/// Converts bytes per second to MB/s.
fn mbps(rate: Rate) -> f64 {
    rate.0 as f64 / 1e6
}

/// The bus of a machine.
///
/// # Errors
/// No profile has this name.
pub(crate) fn bus<'a>(library: &'a Library, spec: &'a MachineSpec) -> Result<&'a BusProfile, LookupError> {
    spec.bus.as_ref().map_or_else(|| library.bus(&spec.controller.bus), Ok)
}

/// The ceilings of a machine's bus, if its drives share one, and of its controller's data path. They do not depend on the
/// array.
///
/// # Errors
/// A profile does not exist.
pub fn ways(library: &Library, spec: &MachineSpec) -> Result<Vec<Ceiling>, CellError> {
    let bus = bus(library, spec)?;
    let ceiling = |name: &str, read: Rate, write: Rate, shared| Ceiling {
        name: name.into(),
        read_mbps: mbps(read),
        write_mbps: mbps(write),
        shared,
    };
    let mut found = Vec::new();
    if !spec.has_slots() {
        found.push(ceiling(&bus.title, bus.read.value, bus.write.value, bus.duplex == Duplex::Half));
    }
    if let Some(path) = &spec.controller.data_path {
        found.push(ceiling("data path", path.read.value, path.write.value, false));
    }
    Ok(found)
}

/// All ceilings of a cell's machine under the load of the cell.
///
/// # Errors
/// A profile does not exist.
pub fn ceilings(library: &Library, spec: &MachineSpec, cell: &CellSpec) -> Result<Vec<Ceiling>, CellError> {
    let load = CellPlan::of(cell, u64::MAX >> 1, 512).ok();
    let array = Array::of(spec, cell, load.as_ref());
    let mut found = ways(library, spec)?;
    if let Some(bus) = found.first_mut().filter(|_| spec.controller.kind == ControllerKind::Software) {
        let whole = Rates { read: bus.read_mbps, write: bus.write_mbps };
        *bus = array.carried(&bus.name, whole, whole, bus.shared);
    }
    found.extend(links(library, spec, &array)?);
    let media: Option<Vec<Rates>> = spec.drives.iter().map(medium).collect();
    found.extend(media.map(|media| array.ceiling("members", &media, true)));
    if let Some(load) = load.filter(is_random) {
        found.extend(firmware(spec, &array, load.spec.bytes_max()));
        found.extend(positions(spec, &array, &load));
    }
    Ok(found)
}

/// Rates in MB/s.
#[derive(Clone, Copy, Debug)]
struct Rates {
    read: f64,
    write: f64,
}

/// The traffic of an array for its host; see the module's description.
struct Array {
    level: Level,
    /// Number of members that reads and writes can use.
    reading: usize,
    writing: usize,
    read: f64,
    read_before_write: f64,
    write: f64,
    /// Does every member get the same share of the load?
    even: bool,
}

impl Array {
    fn of(spec: &MachineSpec, cell: &CellSpec, load: Option<&CellPlan>) -> Self {
        let array = &spec.array;
        let members = usize::from(array.members.max(cell.subject.members()));
        let writing = members.saturating_sub(array.degraded.into()).max(1);
        let (n, there) = (members as f64, writing as f64);
        let (mut read, mut before, mut write) = (1.0, 0.0, there / data(array, n));
        let chunk = spec.chunk().get();
        let small = load.filter(|load| is_random(load)).is_some_and(|load| {
            let within =
                |bytes: u32, align: u32| bytes.is_power_of_two() && align >= bytes && u64::from(bytes) <= chunk;
            load.spec.lines().iter().all(|line| within(line.bytes, line.alignment()))
        });
        if small && array.parities() > 0 {
            let parities = f64::from(array.parities());
            let of_span = n / f64::from(array.spans()) - parities;
            if !array.rebuilding {
                read = (there + (n - there) * of_span) / n;
            }
            if array.degraded == 0 && !spec.writes_back() {
                (before, write) = ((of_span - 1.0).min(1.0 + parities), 1.0 + parities);
            }
        }
        let sizes: Vec<u64> = spec.drives.iter().map(|drive| drive.capacity.value.get()).collect();
        let one_stream = load.is_some_and(|load| load.spec.random_percent() == 0.0 && load.parts == 1);
        let even = match array.level {
            Level::Single | Level::Jbod | Level::Linear => false,
            // After the end of the smaller members, the stripes cover only the larger ones.
            Level::Raid0 => one_stream || sizes.iter().all(|size| *size == sizes[0]),
            _ => true,
        };
        let reading = if array.rebuilding { members } else { writing };
        Self { level: array.level, reading, writing, read, read_before_write: before, write, even }
    }

    /// The ceiling of a part that every member has. `rates` has one entry for all members, or one for each.
    fn ceiling(&self, name: &str, rates: &[Rates], shared: bool) -> Ceiling {
        // Either of two copies can be read, so the load can avoid a slow member.
        let copies = matches!(self.level, Level::Raid1 | Level::Raid1e | Level::Raid10);
        let sum = |count: usize, even: bool, of: fn(&Rates) -> f64| {
            let all = if rates.len() == 1 { vec![of(&rates[0]); count] } else { rates.iter().map(of).collect() };
            let mut all: Vec<f64> = all;
            all.sort_by(|one, two| two.total_cmp(one));
            all.truncate(count);
            let slowest = all.iter().copied().fold(f64::INFINITY, f64::min);
            if even {
                slowest * all.len() as f64
            } else {
                all.iter().sum()
            }
        };
        let for_reads = Rates { read: sum(self.reading, self.even && !copies, |rates| rates.read), write: 0.0 };
        let for_writes = Rates {
            read: sum(self.writing, self.even, |rates| rates.read),
            write: sum(self.writing, self.even, |rates| rates.write),
        };
        self.carried(name, for_reads, for_writes, shared)
    }

    /// The rate that the host can get if the members carry at most these rates, for its reads and for its writes.
    fn carried(&self, name: &str, for_reads: Rates, for_writes: Rates, shared: bool) -> Ceiling {
        let (before, write) = (self.read_before_write / for_writes.read, self.write / for_writes.write);
        let busy = if shared { before + write } else { before.max(write) };
        Ceiling { name: name.into(), read_mbps: for_reads.read / self.read, write_mbps: 1.0 / busy, shared }
    }
}

/// Number of members that hold the data of a stripe, over all spans.
fn data(array: &ArraySpec, members: f64) -> f64 {
    match array.level {
        Level::Raid1 => 1.0,
        Level::Raid1e | Level::Raid10 => members / 2.0,
        _ => members - f64::from(array.spans() * array.parities()),
    }
}

/// Are all requests at random addresses?
fn is_random(load: &CellPlan) -> bool {
    load.spec.random_percent() >= 100.0
}

/// The links of the drives, and the channels that drives share.
fn links(library: &Library, spec: &MachineSpec, array: &Array) -> Result<Vec<Ceiling>, CellError> {
    let port = spec.port(library).map_err(|error| CellError::Unknown(error.to_string()))?;
    let half = port.duplex == Duplex::Half;
    if spec.shares_links() {
        let each = spec.controller.drives_per_link.value.max(1);
        let channels = spec.controller.ports.value.div_ceil(each).min(u32::from(spec.array.members));
        let all = |rate: Rate| mbps(rate) * f64::from(channels);
        let whole = Rates { read: all(port.read.value), write: all(port.write.value) };
        return Ok(vec![array.carried("shared links of the members", whole, whole, half)]);
    }
    let rates_of = |drive: &DriveProfile| {
        let rate = if spec.is_held_back(drive, port) { port.lane_rate().value } else { drive.link_rate()? };
        Some(Rates { read: mbps(rate), write: mbps(rate) })
    };
    let rates: Option<Vec<Rates>> = spec.drives.iter().map(rates_of).collect();
    let duplex = |drive: &DriveProfile| matches!(&drive.kind, DriveKind::Ssd(ssd) if ssd.link_duplex);
    let shared = half && !spec.drives.iter().any(duplex);
    Ok(rates.map(|rates| array.ceiling("links of the members", &rates, shared)).into_iter().collect())
}

/// The maximum rates of a drive's medium. For a disk these are the rates of its outermost zone, for an SSD those of its
/// controller. A drive with synthetic times has no such rates.
fn medium(drive: &DriveProfile) -> Option<Rates> {
    match &drive.kind {
        DriveKind::Disk(disk) => {
            let outer = mbps(disk.rate_outer.value);
            Some(Rates { read: outer, write: outer })
        }
        DriveKind::Ssd(ssd) => {
            let link = ssd.link_rate.value;
            Some(Rates { read: mbps(ssd.path_read.value.min(link)), write: mbps(ssd.path_write.value.min(link)) })
        }
        DriveKind::Constant(_) => None,
    }
}

/// The ceiling of SSDs whose firmware does a part of each command one after the other, for requests of `bytes` bytes at
/// random addresses.
fn firmware(spec: &MachineSpec, array: &Array, bytes: u32) -> Option<Ceiling> {
    let rate = |ns: u64| f64::from(bytes) * 1e3 / ns as f64;
    let rates_of = |drive: &DriveProfile| match &drive.kind {
        DriveKind::Ssd(ssd) => {
            Some(Rates { read: rate(ssd.serial_read.value.get()), write: rate(ssd.serial_write.value.get()) })
        }
        _ => None,
    };
    let rates: Vec<Rates> = spec.drives.iter().map(rates_of).collect::<Option<_>>()?;
    Some(array.ceiling("firmware of the members", &rates, true))
}

/// The ceiling of disks that do one request at a time, each after a seek and half a turn. Reads of mirrors have no such
/// ceiling, because a mirror reads the copy with the shortest seek. Cached writes have none, because a cache sorts them.
fn positions(spec: &MachineSpec, array: &Array, load: &CellPlan) -> Option<Ceiling> {
    let manner = load.spec.manner();
    let whole = load.zone.start == 0 && load.zone.len >= (u64::MAX >> 1) / 4096 * 4096;
    let alone = load.outstanding() == 1 && load.spec.lines().len() == 1 && manner.start.is_none() && whole;
    let copies = matches!(array.level, Level::Raid1 | Level::Raid1e | Level::Raid10);
    if !alone || spec.array.degraded > 0 {
        return None;
    }
    let cached = spec.writes_back() || spec.drive_caches();
    let one = |drive: &DriveProfile| match &drive.kind {
        DriveKind::Disk(disk) if disk.seek_table.is_none() => Some(position(disk, load.spec.bytes_max())),
        _ => None,
    };
    let rates: Vec<Rates> = spec.drives.iter().map(one).collect::<Option<_>>()?;
    let best = |of: fn(&Rates) -> f64| rates.iter().map(of).fold(0.0, f64::max) * (1.0 + POSITIONS_PERCENT / 100.0);
    Some(Ceiling {
        name: "positions of the members".into(),
        read_mbps: if copies { f64::INFINITY } else { best(|rates| rates.read) },
        write_mbps: if cached { f64::INFINITY } else { best(|rates| rates.write) },
        shared: true,
    })
}

/// The rates of requests of this size, one at a time: the mean seek, half a turn, and the transfer in the outermost
/// zone.
fn position(disk: &DiskProfile, bytes: u32) -> Rates {
    let transfer = f64::from(bytes) * 1e9 / disk.rate_outer.value.0 as f64;
    let rate = |seek: u64| f64::from(bytes) * 1e3 / (seek as f64 + disk.turn().get() as f64 / 2.0 + transfer);
    Rates { read: rate(disk.seek_read.average.value.get()), write: rate(disk.seek_write.average.value.get()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{machine_spec, ArrayState, Axes, CacheMode, Pattern};

    /// The ceiling of a part under a load, in MB/s: of reads, then of writes.
    fn found(part: &str, subject: &str, state: ArrayState, pattern: Pattern, axes: Axes) -> [f64; 2] {
        let library = Library::builtin();
        let cell = CellSpec { state, ..CellSpec::new("openraid", subject.parse().unwrap(), pattern).with(axes) };
        let all = ceilings(&library, &machine_spec(&library, &cell).unwrap(), &cell).unwrap();
        let ceiling = all.iter().find(|ceiling| ceiling.name == part).unwrap_or_else(|| panic!("no {part} in {all:?}"));
        [ceiling.read_mbps, ceiling.write_mbps]
    }

    #[track_caller]
    fn same(found: [f64; 2], by_hand: [f64; 2]) {
        let near = |(one, other): (f64, f64)| (one / other - 1.0).abs() < 1e-4;
        assert!(near((found[0], by_hand[0])) && near((found[1], by_hand[1])), "{found:?}, by hand {by_hand:?}");
    }

    fn drive(name: &str) -> Axes {
        Axes { drive: Some(name.into()), ..Axes::default() }
    }

    const HEALTHY: ArrayState = ArrayState::Healthy;
    const DEGRADED: ArrayState = ArrayState::Degraded(1);

    #[test]
    fn the_present_members_carry_whole_stripes() {
        // 270 MB/s for each drive in the outermost zone.
        for (subject, state, read, write) in [
            ("raid5x4", HEALTHY, 4.0, 3.0),
            ("raid5x4", DEGRADED, 3.0, 3.0),
            ("raid6x6", HEALTHY, 6.0, 4.0),
            ("raid6x6", ArrayState::Degraded(2), 4.0, 4.0),
            ("raid1x2", HEALTHY, 2.0, 1.0),
            ("raid1x2", DEGRADED, 1.0, 1.0),
            ("raid10x8", DEGRADED, 7.0, 4.0),
            ("raid50x8", HEALTHY, 8.0, 6.0),
            ("raid50x8", DEGRADED, 7.0, 6.0),
            ("raid0x3", HEALTHY, 3.0, 3.0),
            // The ceiling counts reads from the new member, although the rebuild is still filling it.
            ("raid5x4", ArrayState::Rebuilding, 4.0, 3.0),
        ] {
            let of = |part| found(part, subject, state, Pattern::Sequential, drive("exos_x18_18tb"));
            same(of("members"), [read * 270.0, write * 270.0]);
            same(of("links of the members"), [read * 550.0, write * 550.0]);
        }
    }

    #[test]
    fn the_slowest_of_mixed_members_limits_a_stripe() {
        // The rates of the drives are 72 and 270 MB/s.
        for (subject, state, by_hand) in [
            ("raid0x4", HEALTHY, [4.0 * 72.0, 4.0 * 72.0]),
            ("raid5x4", HEALTHY, [4.0 * 72.0, 3.0 * 72.0]),
            // The missing member may be the slow one.
            ("raid5x4", DEGRADED, [3.0 * 270.0, 3.0 * 270.0]),
            ("raid10x4", HEALTHY, [72.0 + 3.0 * 270.0, 2.0 * 72.0]),
            ("linearx4", HEALTHY, [72.0 + 3.0 * 270.0, 72.0 + 3.0 * 270.0]),
        ] {
            let axes = Axes { qd: Some(1), ..drive("wd740gd+3xexos_x18_18tb") };
            same(found("members", subject, state, Pattern::Sequential, axes), by_hand);
        }
        // In a RAID 0 of unequal members most random addresses are on the large ones.
        let random = found("members", "raid0x4", HEALTHY, Pattern::Random, drive("wd740gd+3xexos_x18_18tb"));
        same(random, [72.0 + 3.0 * 270.0, 72.0 + 3.0 * 270.0]);
    }

    #[test]
    fn at_random_places_lost_chunks_and_parity_cost_reads_and_writes() {
        let random = |part: &str, subject: &str, state, axes: Axes| {
            found(part, subject, state, Pattern::Random, Axes { bs: Some(4096), ..axes })
        };
        // Three of four requests are one read. The fourth is one read of each of the other three members: 6 reads for 4
        // requests.
        assert!((random("members", "raid5x4", DEGRADED, drive("exos_x18_18tb"))[0] - 3.0 * 270.0 / 1.5).abs() < 0.01);
        // Two of eight chunks are lost, and each needs six reads: 18 reads for 8 requests.
        let two = random("members", "raid6x8", ArrayState::Degraded(2), drive("exos_x18_18tb"));
        assert!((two[0] - 6.0 * 270.0 / (18.0 / 8.0)).abs() < 0.01);
        // SSDs with 562 MB/s of reads and 533 MB/s of writes. Each request causes three reads and three writes on eight
        // SSDs, so a byte takes 3 / (8 * 562) + 3 / (8 * 533) us.
        same(random("members", "raid6x8", HEALTHY, drive("pm893_960")), [8.0 * 562.0, 729.49]);
        // With two data members the engine reads the other one instead of old data and old parity: 1 / (3 * 562) + 2 /
        // (3 * 533) us.
        same(random("members", "raid5x3", HEALTHY, drive("pm893_960")), [3.0 * 562.0, 542.33]);
        // The firmware takes 11 us for a write and no time for a read: 2 * 11 / 3 us for 4096 bytes.
        let firmware = random("firmware of the members", "raid5x3", HEALTHY, drive("pm893_960"));
        assert!(firmware[0].is_infinite() && (firmware[1] - 4096.0 * 3.0 / 22.0).abs() < 0.01, "{firmware:?}");
        // A write-back cache may collect whole stripes.
        let cached = Axes { cache: Some(CacheMode::WriteBack), ..drive("pm893_960") };
        same(random("members", "raid5x3", HEALTHY, cached), [3.0 * 562.0, 2.0 * 533.0]);
    }

    #[test]
    fn software_sends_redundancy_over_the_bus_and_a_card_does_not() {
        // A PCI bus of 64 bits and 66 MHz: 420 MB/s, in one direction at a time.
        let on = |subject: &str, state| {
            let axes = Axes { bus: Some("pci64_66".into()), ..drive("exos_x18_18tb") };
            let title = Library::builtin().bus("pci64_66").unwrap().title.clone();
            found(&title, subject, state, Pattern::Sequential, axes)
        };
        same(on("raid5x4", HEALTHY), [420.0, 420.0 * 3.0 / 4.0]);
        same(on("raid1x2", HEALTHY), [420.0, 210.0]);
        same(on("raid1x2", DEGRADED), [420.0, 420.0]);
        let library = Library::builtin();
        let cell = CellSpec::new("3ware-9650se", "raid5x4".parse().unwrap(), Pattern::Sequential);
        let card = ceilings(&library, &machine_spec(&library, &cell).unwrap(), &cell).unwrap();
        // PCI Express of the first generation with four lanes, seen from the host.
        let bus = library.bus("pcie1_x4").unwrap();
        same([card[0].read_mbps, card[0].write_mbps], [mbps(bus.read.value), mbps(bus.write.value)]);
    }

    #[test]
    fn one_request_at_a_time_takes_a_seek_and_half_a_turn() {
        let one = Axes { bs: Some(4096), qd: Some(1), ..drive("wd740gd") };
        let at = |subject: &str, axes: &Axes| {
            found("positions of the members", subject, HEALTHY, Pattern::Random, axes.clone())
        };
        // At 10,000 turns per minute half a turn takes 3 ms. The seek takes 4.5 ms and the transfer 57 us. A tenth more
        // is allowed.
        let read = 4096.0 / (3.0 + 4.5 + 0.056_89) / 1e3 * 1.1;
        for subject in ["single", "raid0x4", "raid5x4"] {
            let [found, written] = at(subject, &one);
            assert!((found / read - 1.0).abs() < 1e-4 && written.is_infinite(), "{subject}: {found} {written}");
        }
        assert!(at("raid1x2", &one)[0].is_infinite(), "the nearer arm may read");
        // Without caches a write takes its seek of 5.9 ms.
        let through = Axes { cache: Some(CacheMode::WriteThrough), drive_cache: Some(false), ..one };
        same(at("single", &through), [read, 4096.0 / (3.0 + 5.9 + 0.056_89) / 1e3 * 1.1]);
    }
}
