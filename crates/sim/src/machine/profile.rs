//! From profiles to [`MachineParts`]: a controller, its bus, its host and its drives in numbers.
//!
//! Physical values come from the profiles' tables, quirks from their table of quirks. A controller's rules (levels,
//! members, ports) are checked here. An error includes the reason that the profile gives.

use openraid_core::admin::{MirrorRule, PartialWritePolicy, Policy, ReadAhead, WriteCache};
use openraid_models::{
    ArrayLevel, BusProfile, ControllerKind, ControllerProfile, DriveKind, DriveProfile, Duplex, HostProfile, Library,
    QueueKind,
};
use openraid_units::{Bytes, Nanos, Sectors};

use openraid_drives::DriveState;

use super::array::{ArraySpec, LevelFacts};
use super::error::MachineError;
use super::journal::{JOURNAL_DEVICE, JOURNAL_DEVICES_MAX};
use super::parts::{HostCost, MachineParts, ParityCost, ProcessorCost, WayCost, WayParts, REQUESTS_MAX};
use super::queue_server::TransferCost;

/// The moment at which the controller acknowledges writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheMode {
    /// After the data is in the controller's cache. A controller without a usable cache writes through.
    WriteBack,
    /// After the members have the data.
    WriteThrough,
}

/// The caches that are on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CachePolicy {
    /// The controller's cache.
    pub controller: CacheMode,
    /// The drives' write caches. If one switch of a controller works on both, this value follows the other.
    pub drives: bool,
}

/// The learned state from earlier arrays. It matters for a controller that adapts to its load (quirk
/// `adapt_mode_state`) and keeps that state (`adapt_persist_across_arrays`). A machine learns by itself from its first
/// requests. A new machine is one that was just switched on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum LoadHistory {
    /// The controller has learned nothing.
    #[default]
    Fresh,
    /// The controller has learned from random loads.
    Random,
}

/// The specification of a machine.
#[derive(Clone, Debug)]
pub struct MachineSpec {
    pub controller: ControllerProfile,
    /// A drive for each member, or one for all.
    pub drives: Vec<DriveProfile>,
    pub array: ArraySpec,
    /// Devices of a journal: none, one, or two with equal content. The journal acknowledges writes in place of the
    /// cache.
    pub journal: Vec<DriveProfile>,
    /// The caches that are on.
    pub cache: CachePolicy,
    /// The drives' write caches, switched explicitly; `None` leaves them to the profiles and the controller.
    pub drive_cache: Option<bool>,
    /// Switches the drives' read-ahead on or off. `None` leaves each drive's factory setting.
    pub drive_read_ahead: Option<bool>,
    /// Another size of the controller's cache.
    pub cache_bytes: Option<Bytes>,
    /// Another bus.
    pub bus: Option<BusProfile>,
    /// Another link of the ports.
    pub link: Option<BusProfile>,
    /// Another host.
    pub host: Option<HostProfile>,
    /// Speed of the host's processors in percent of the profile's value.
    pub host_speed_percent: u32,
    /// The controller's learned state.
    pub history: LoadHistory,
    /// The fill state of the SSDs.
    pub drive_state: DriveState,
    /// The seed of all random choices.
    pub seed: u64,
}

impl MachineSpec {
    /// A healthy array with all caches on.
    #[must_use]
    pub fn new(controller: ControllerProfile, drive: DriveProfile, array: ArraySpec) -> Self {
        Self {
            controller,
            drives: vec![drive],
            array,
            journal: Vec::new(),
            cache: CachePolicy { controller: CacheMode::WriteBack, drives: true },
            drive_cache: None,
            drive_read_ahead: None,
            cache_bytes: None,
            bus: None,
            link: None,
            host: None,
            host_speed_percent: 100,
            history: LoadHistory::default(),
            drive_state: DriveState::default(),
            seed: 1,
        }
    }

    /// Whether the write cache of any drive is on.
    #[must_use]
    pub fn drive_caches(&self) -> bool {
        self.drives.iter().any(|drive| self.drive_cache_of(drive))
    }

    /// Whether the write cache of this drive is on. It has its factory setting, unless `drive_cache` sets it, or the
    /// controller switches it off with its own cache.
    #[must_use]
    pub fn drive_cache_of(&self, drive: &DriveProfile) -> bool {
        self.drive_cache.unwrap_or_else(|| self.leaves_drive_caches() && drive.write_cache())
    }

    /// Whether this drive reads ahead: its factory setting, unless `drive_read_ahead` sets it.
    #[must_use]
    pub fn drive_reads_ahead(&self, drive: &DriveProfile) -> bool {
        self.drive_read_ahead.unwrap_or_else(|| drive.reads_ahead())
    }

    fn leaves_drive_caches(&self) -> bool {
        if self.controller.quirk_truth("hba_fc_write_penalty") {
            false
        } else if self.controller.drive_cache_follows {
            self.cache.controller == CacheMode::WriteBack
        } else {
            self.cache.drives
        }
    }

    /// Bytes of the controller's cache.
    #[must_use]
    pub fn cache_size(&self) -> Bytes {
        self.cache_bytes.unwrap_or(self.controller.cache.value)
    }

    /// Whether the controller acknowledges writes from its cache. It never does for a JBOD, whose drives are raw
    /// drives.
    #[must_use]
    pub fn writes_back(&self) -> bool {
        let may = self.controller.write_back && self.array.level != ArrayLevel::Jbod;
        may && self.cache.controller == CacheMode::WriteBack && !self.cache_size().is_zero()
    }

    /// Check the array against the controller's rules.
    ///
    /// # Errors
    /// The rule that is broken, with the controller's reason.
    pub fn check(&self) -> Result<(), MachineError> {
        let Self { controller, array, .. } = self;
        let rule_of = |level| {
            controller.level(level).ok_or_else(|| MachineError::LevelNotOffered {
                level,
                controller: controller.head.title.clone(),
                offered: controller.levels.iter().map(|rule| rule.level).collect(),
            })
        };
        let rule = rule_of(array.level)?;
        array.change.map(|change| rule_of(change.level)).transpose()?;
        if array.members < rule.members_min {
            let reason = if rule.reason.is_empty() { "the level needs more".into() } else { rule.reason.clone() };
            let (level, have, need) = (array.level, array.members, rule.members_min);
            return Err(MachineError::TooFewMembers { level, have, need, reason });
        }
        let ports = u16::try_from(controller.ports.value).unwrap_or(u16::MAX);
        let title = &controller.head.title;
        for (most, reason) in [
            (rule.members_max, format!("{title} makes {} of no more", array.level)),
            (ports, format!("{title} has no more ports")),
        ] {
            if array.drives() > most {
                return Err(MachineError::TooManyMembers { have: array.drives(), most, reason });
            }
        }
        if self.drives.len() != 1 && self.drives.len() != usize::from(array.drives()) {
            return Err(MachineError::Drives { have: self.drives.len(), members: array.drives() });
        }
        let chunk = self.chunk();
        if !chunk.get().is_power_of_two() || !(4096..=64 << 20).contains(&chunk.get()) {
            let text = format!("a chunk of {chunk} cannot be; use a power of two from 4 KiB to 64 MiB");
            return Err(MachineError::Part(text));
        }
        if self.host_speed_percent == 0 {
            return Err(MachineError::Part("a host of no speed never asks; give it at least 1 percent".into()));
        }
        self.check_journal()?;
        array.check()
    }

    /// Check whether this machine can have its journal.
    fn check_journal(&self) -> Result<(), MachineError> {
        let Self { controller, array, .. } = self;
        let wrong = |why: String| Err(MachineError::Part(why));
        match self.journal.len() {
            0 => Ok(()),
            count if count > JOURNAL_DEVICES_MAX => {
                wrong(format!("a journal is on one device or on two that hold the same, not on {count}"))
            }
            // Only this project's engine uses memory of the host as a cache.
            _ if controller.cache_on_demand.is_zero() => {
                wrong(format!("{} has no journal; openraid has", controller.head.title))
            }
            _ if matches!(array.level, ArrayLevel::Single | ArrayLevel::Jbod) => {
                wrong(format!("a journal protects arrays; {} is drives as they are", array.level))
            }
            _ if !self.writes_back() => wrong("a journal needs a cache; give it one".into()),
            _ => Ok(()),
        }
    }

    /// The chunk of the array.
    #[must_use]
    pub fn chunk(&self) -> Bytes {
        self.array.chunk.unwrap_or(self.controller.chunk.value)
    }

    /// The parts of this machine. Names of buses and hosts are looked up in `library`.
    ///
    /// # Errors
    /// The rule that is broken, or a name without a profile.
    pub fn parts(&self, library: &Library) -> Result<MachineParts, MachineError> {
        self.check()?;
        let lost = |error: openraid_models::LookupError| MachineError::Part(error.to_string());
        let controller = &self.controller;
        let bus = match &self.bus {
            Some(bus) => bus,
            None => library.bus(&controller.bus).map_err(lost)?,
        };
        let host = self.host_profile(library)?;
        let link = self.port(library)?;
        let way = self.way(bus);
        let software = controller.kind == ControllerKind::Software;
        let (cache, dirty_percent) = self.cache(self.cache_size());
        let mut parts = MachineParts {
            host: self.host_cost(host),
            processor: self.processor_cost(),
            processors: controller.cpu.cores.value,
            host_way: if software { WayCost::default() } else { way },
            member_way: if software && !self.has_slots() { way } else { WayCost::default() },
            way_parts: self.way_parts(bus).filter(|_| !software),
            parity: self.parity_cost(host),
            channels: match &controller.adapters {
                Some(adapters) => self.adapters(library.bus(&adapters.bus).map_err(lost)?, adapters.drives.value),
                None => self.channels(link),
            },
            memory: controller.memory.as_ref().map_or(0, |rate| TransferCost::new(rate.value.0, Nanos::ZERO).picos),
            requests_max: self.requests_max(),
            span_turn: self.chunk() * u64::from(self.array.data_columns()),
            depth_max: self.depth_max(),
            cache,
            journal: if self.journal.is_empty() { Bytes::ZERO } else { JOURNAL_DEVICE },
            // A mirror with its metadata at the end cannot have a journal. A change of shape needs room before the data.
            metadata_in_front: !self.journal.is_empty() || self.array.change.is_some(),
            dirty_percent,
            policy: self.policy(),
            ..MachineParts::default()
        };
        if !software {
            (parts.destage_delay, parts.queue_age) = (CARD_DESTAGE_DELAY, CARD_QUEUE_AGE);
            (parts.destage_zones, parts.destage_beside_reads) = (CARD_DESTAGE_ZONES, CARD_DESTAGE_BESIDE_READS);
        }
        parts.read_kib = micros(quirk_number(controller, "read_kib_us"));
        if self.array.is_redundant() {
            parts.stripe = self.chunk() * u64::from(self.array.data_columns());
            parts.redundancy_stage = quirk(controller, "redundancy_stage_mbs").map_or(0, picos_of);
        }
        if self.array.level.has_parity() {
            parts.partial_stripe = micros(quirk_number(controller, "partial_stripe_us"));
            if controller.quirk_truth("partial_stripes_through") {
                parts.through_below = parts.stripe;
            }
        }
        if let Some(depth) = quirk(controller, "write_pipeline_depth").or((!software).then_some(CARD_DESTAGE_DEPTH)) {
            parts.destage_units = [self.destage_units(depth); 2];
        }
        // A single drive sorts its commands by itself.
        if let Some(stripes) = self.open_stripes() {
            parts.destage_units = parts.destage_units.map(|units| units.min(stripes));
            parts.open_stripes = (parts.destage_units[0] == stripes).then_some(stripes);
        }
        if self.array.level != ArrayLevel::Single && controller.quirk_text("adapt_mode_state").is_some() {
            parts.adapts_after = quirk(controller, "adapt_after_requests").map_or(1, whole).max(1);
            parts.keeps_lessons = controller.quirk_truth("adapt_persist_across_arrays");
            parts.taught = parts.keeps_lessons && self.history == LoadHistory::Random;
        }
        Ok(parts)
    }

    /// The host of the machine.
    ///
    /// # Errors
    /// A name without a profile.
    pub fn host_profile<'a>(&'a self, library: &'a Library) -> Result<&'a HostProfile, MachineError> {
        match &self.host {
            Some(host) => Ok(host),
            None => library.host(&self.controller.host).map_err(|error| MachineError::Part(error.to_string())),
        }
    }

    /// The link of the controller's ports.
    ///
    /// # Errors
    /// A name without a profile.
    pub fn port<'a>(&'a self, library: &'a Library) -> Result<&'a BusProfile, MachineError> {
        match &self.link {
            Some(link) => Ok(link),
            None => library.bus(&self.controller.link).map_err(|error| MachineError::Part(error.to_string())),
        }
    }

    /// Whether the port limits the rate of the drive. A drive in a slot of the host has no such port. Drives that share
    /// a channel are modelled by that channel. Drives that share a wide port have one lane each at a time.
    #[must_use]
    pub fn is_held_back(&self, drive: &DriveProfile, port: &BusProfile) -> bool {
        let one = self.controller.drives_per_link.value <= 1 || port.lanes > 1;
        one && !self.is_in_slot(drive) && drive.exceeds(port)
    }

    /// Whether the drives share the links of the ports.
    #[must_use]
    pub fn shares_links(&self) -> bool {
        self.controller.drives_per_link.value > 1 && !self.drives.iter().any(|drive| self.is_in_slot(drive))
    }

    /// Whether each drive has a slot of the host for itself, so that the drives share no bus. Drives on a chipset share
    /// its uplink, and a bus that the user names is that of all drives.
    #[must_use]
    pub fn has_slots(&self) -> bool {
        let is_unnamed = self.bus.is_none() && self.controller.bus.starts_with("pcie");
        is_unnamed && self.drives.iter().all(|drive| self.is_in_slot(drive))
    }

    /// The name of the bus between drives and host; `slots` if each drive has one for itself.
    #[must_use]
    pub fn bus_name(&self) -> &str {
        match &self.bus {
            Some(bus) => &bus.name,
            None if self.has_slots() => "slots",
            None => &self.controller.bus,
        }
    }

    fn is_in_slot(&self, drive: &DriveProfile) -> bool {
        drive.has_slot() && self.controller.kind == ControllerKind::Software
    }

    /// The array's part of the cache, the limit of its dirty data, and the marks of destage. If a controller limits the
    /// number of open stripes, the dirty data of an array with parity is limited to these stripes. Read data keeps its
    /// room.
    fn cache(&self, whole_cache: Bytes) -> (Bytes, [u64; 3]) {
        let usual = MachineParts::default().dirty_percent;
        let Some(stripes) = self.open_stripes() else { return (whole_cache, usual) };
        let columns = self.array.members / self.array.spans() - self.array.parities();
        let dirty = self.chunk() * u64::from(columns) * u64::from(stripes);
        let needed = Bytes(dirty.get() * 100 / usual[0]).max(CACHE_LEAST);
        if needed * OPEN_STRIPES_SHARE > whole_cache {
            return (whole_cache.min(needed), usual);
        }
        (needed * OPEN_STRIPES_SHARE, usual.map(|percent| percent / OPEN_STRIPES_SHARE))
    }

    /// Stripes of an array with parity that a controller with such a limit works on at once: the number that it
    /// gathers, and on wide arrays one for each data member. A small write keeps two members at work, so the drives are
    /// equally busy at every width.
    fn open_stripes(&self) -> Option<u32> {
        let least = quirk(&self.controller, "parity_open_stripes").filter(|_| self.array.level.has_parity())?;
        let data = self.array.members - self.array.spans() * self.array.parities();
        Some(whole(least).max(u32::from(data)).max(1))
    }

    fn host_cost(&self, host: &HostProfile) -> HostCost {
        let scale = |time: Nanos| Nanos(time.0 * 100 / u64::from(self.host_speed_percent));
        let extra = micros(quirk_number(&self.controller, "host_cpu_us_per_io"));
        HostCost {
            read: scale(host.read.value + extra),
            write: scale(host.write.value + extra),
            sequential: scale(host.sequential.value + extra),
            kib: scale(host.per_kib.value),
            processors: host.processors.value,
        }
    }

    fn processor_cost(&self) -> ProcessorCost {
        let cpu = &self.controller.cpu;
        // A single drive needs no mapping.
        let mapped = !matches!(self.array.level, ArrayLevel::Single | ArrayLevel::Jbod);
        let map = if mapped { quirk_number(&self.controller, "stripe_map_overhead_us") } else { 0.0 };
        // Parallel columns, not counting copies.
        let columns = u64::from(if mapped { self.array.members / self.array.copies() } else { 1 });
        let width = Nanos(micros(quirk_number(&self.controller, "width_us")).0 * (columns - 1));
        ProcessorCost {
            read: cpu.command.value + width,
            write: cpu.command.value + width,
            nested: micros(quirk_number(&self.controller, "nested_level_overhead_us")),
            command: cpu.member_command.value + micros(map),
            kib: cpu.per_kib.value,
        }
    }

    fn parity_cost(&self, host: &HostProfile) -> ParityCost {
        let (rate, setup) = match &self.controller.xor {
            Some(xor) => (xor.rate.value, xor.setup.value),
            None => (host.xor_rate.value, Nanos::ZERO),
        };
        ParityCost {
            setup: setup + micros(quirk_number(&self.controller, "xor_op_us")),
            member: micros(quirk_number(&self.controller, "parity_width_cost_us")),
            picos: TransferCost::new(rate.0, Nanos::ZERO).picos,
            second_percent: SECOND_SYNDROME_PERCENT,
        }
    }

    /// The controller's own data path and the bus, if it has such a path.
    fn way_parts(&self, bus: &BusProfile) -> Option<WayParts> {
        let path = self.controller.data_path.as_ref()?;
        let parity = path.parity_read.as_ref().filter(|_| self.array.level.has_parity());
        let rate = |bytes: u64| TransferCost::new(bytes, Nanos::ZERO);
        Some(WayParts {
            path: [rate(parity.unwrap_or(&path.read).value.0), rate(path.write.value.0)],
            bus: [rate(bus.read.value.0), rate(bus.write.value.0)],
        })
    }

    /// The bus in combination with the controller's own data path.
    fn way(&self, bus: &BusProfile) -> WayCost {
        let setup = bus.command.value;
        let [read, write] = self.way_parts(bus).map_or([TransferCost::FREE; 2], |parts| parts.path);
        match bus.duplex {
            Duplex::Half => WayCost { read, write, shared: Some(TransferCost::new(bus.read.value.0, setup)) },
            Duplex::Full => {
                let slower = |rate: TransferCost, bus: u64| TransferCost {
                    setup,
                    picos: rate.picos.max(TransferCost::new(bus, setup).picos),
                };
                let read = slower(read, bus.read.value.0);
                WayCost { read, write: slower(write, bus.write.value.0), shared: None }
            }
        }
    }

    /// Channels, if drives share them: commands and data of writes, data of reads.
    fn channels(&self, link: &BusProfile) -> Vec<WayCost> {
        if !self.shares_links() {
            return Vec::new();
        }
        self.adapters(link, self.controller.drives_per_link.value)
    }

    /// The channels of such a bus; `each` drives share one.
    fn adapters(&self, link: &BusProfile, each: u32) -> Vec<WayCost> {
        let rate = |rate: u64, setup: Nanos| TransferCost::new(rate, setup);
        let cost = match link.duplex {
            // A command occupies the channel for its own time, and its data for the time of the data.
            Duplex::Half => {
                WayCost { shared: Some(rate(link.read.value.0, Nanos(link.command.value.0 / 2))), ..WayCost::default() }
            }
            Duplex::Full => WayCost {
                read: rate(link.read.value.0, Nanos::ZERO),
                write: rate(link.write.value.0, link.command.value),
                shared: None,
            },
        };
        vec![cost; self.controller.ports.value.div_ceil(each) as usize]
    }

    fn requests_max(&self) -> u32 {
        let controller = &self.controller;
        let mut most = f64::from(REQUESTS_MAX);
        if let Some(slots) = quirk(controller, "command_slots") {
            most = most.min(slots);
        }
        // Each span has these slots; pairs of drives are not spans.
        let spans = matches!(self.array.level, ArrayLevel::Raid50 | ArrayLevel::Raid60);
        if let (true, Some(cap)) = (spans, quirk(controller, "nested_qd_cap")) {
            most = most.min(cap);
        }
        whole(most).clamp(1, REQUESTS_MAX / u32::from(self.array.spans()))
    }

    /// Commands that a member gets at once: limited by the controller and by the drive.
    fn depth_max(&self) -> u32 {
        let takes = |drive: &DriveProfile| match &drive.kind {
            DriveKind::Disk(disk) if matches!(disk.queue, QueueKind::None | QueueKind::LegacyTcq) => 1,
            DriveKind::Disk(disk) => disk.queue_depth.value,
            DriveKind::Ssd(ssd) => ssd.queue_depth.value,
            DriveKind::Constant(_) => u32::MAX,
        };
        let drives = self.drives.iter().map(takes).max().unwrap_or(1);
        self.controller.drive_queue.value.min(drives).max(1)
    }

    fn policy(&self) -> Policy {
        let raw = self.array.level == ArrayLevel::Jbod;
        let hardware = self.controller.kind == ControllerKind::Hardware;
        let window = quirk(&self.controller, "ra_window_kib").map(whole);
        let split = quirk(&self.controller, "mirror_split_min_kib").map(whole);
        Policy {
            // Cards read old data and parity at every width. This project's engine chooses the cheaper way.
            partial_write: if hardware { PartialWritePolicy::ReadModifyWrite } else { PartialWritePolicy::Fewest },
            write_cache: match (self.writes_back(), self.journal.is_empty()) {
                (false, _) => WriteCache::Through,
                (true, false) => WriteCache::Journal,
                (true, true) => WriteCache::Volatile,
            },
            read_cache: !raw,
            read_ahead: self.read_ahead(),
            read_ahead_max: window.map_or(Policy::default().read_ahead_max, |kib| Sectors::kib(kib.into())),
            mirror_read: mirror_read(&self.controller),
            split_above: split.map_or(Policy::default().split_above, |kib| Sectors::kib(kib.into())),
            split_streams: split.is_none(),
            // One half of a long read comes from each half of a mirror, for any number of pairs over which it is
            // spread. Each half gives at least a chunk.
            split_section: split.map_or(Policy::default().split_section, |kib| {
                let chunk = self.chunk().sectors_floor();
                Sectors::kib((kib / 2).into()).max(chunk) * u64::from((self.array.members / 2).max(1))
            }),
            ..Policy::default()
        }
    }

    /// The rule for read-ahead of streams. A read-ahead that starts again on each member never gets beyond a chunk.
    /// Then only the drives' own read-ahead remains.
    fn read_ahead(&self) -> ReadAhead {
        if self.array.level == ArrayLevel::Jbod {
            return ReadAhead::None;
        }
        if self.controller.quirk_truth("ra_restart_on_stripe_hop") && self.array.level.has_chunks() {
            return ReadAhead::None;
        }
        match self.controller.read_ahead {
            openraid_models::ReadAheadRule::None => ReadAhead::None,
            openraid_models::ReadAheadRule::Always => ReadAhead::Always,
            openraid_models::ReadAheadRule::Adaptive => ReadAhead::Adaptive,
        }
    }

    /// Dirty units in work that give `depth` commands to each member. A partly written unit of a parity set uses one
    /// data member and the parity members. A unit of another set is 128 KiB of each copy.
    fn destage_units(&self, depth: f64) -> u32 {
        let (ArraySpec { level, members, .. }, copies) = (self.array, u64::from(self.array.copies()));
        let chunk = if level.has_chunks() { self.chunk().get().min(DIRTY_STRETCH) } else { DIRTY_STRETCH };
        #[allow(clippy::cast_precision_loss)] // a power of two
        let stretch = (DIRTY_STRETCH / chunk * copies) as f64;
        let commands = if level.has_parity() { f64::from(1 + self.array.parities()) } else { stretch };
        whole((depth * f64::from(members) / commands).ceil()).max(1)
    }
}

/// Cards begin to write dirty data soon. Their firmware of the time flushed within seconds, and its queues had
/// deadlines of tenths of a second, so dirty data did not wait longer for reads. An estimate for all cards.
const CARD_DESTAGE_DELAY: Nanos = Nanos::from_secs(1);
const CARD_QUEUE_AGE: Nanos = Nanos::from_millis(150);
/// Cards write dirty data in the order of its age, as far as the reviews show: with long queues their write-back caches
/// gain next to nothing over the drives' own order.
const CARD_DESTAGE_ZONES: u32 = 1;
/// No reviewed card delayed destage while hosts read.
const CARD_DESTAGE_BESIDE_READS: u32 = u32::MAX;
/// Commands of destage that a member has at once, in the card and in the drive: the set that can be sorted. An estimate
/// for all cards.
const CARD_DESTAGE_DEPTH: f64 = 32.0;
/// The least cache, because the engine needs some lines to work with.
const CACHE_LEAST: Bytes = Bytes::kib(128);
/// If the open stripes do not fill the cache, the array's part of the cache is this multiple of their dirty data. The
/// multiple is small, because the marks of dirty data are whole percents.
const OPEN_STRIPES_SHARE: u64 = 20;
/// The engine collects dirty data of sets without parity in ranges of this many bytes.
const DIRTY_STRETCH: u64 = 128 << 10;
/// The second syndrome is another pass over the same bytes, with multiplications.
const SECOND_SYNDROME_PERCENT: u64 = 200;

/// The engine's rule for the choice of a mirror's copy.
fn mirror_read(controller: &ControllerProfile) -> MirrorRule {
    use openraid_models::MirrorReadRule as Known;
    match controller.mirror_read {
        Known::Primary => MirrorRule::Primary,
        Known::RoundRobin => MirrorRule::RoundRobin,
        Known::LeastPending => MirrorRule::LeastPending,
        // At depth 1 a rotational estimate gains nothing over the nearest head, and the engine has none.
        Known::NearestHead | Known::Positioning => MirrorRule::NearestHead,
        Known::TwinStor => MirrorRule::TwinStor,
    }
}

/// The value of a quirk, if it is present and above zero.
fn quirk(controller: &ControllerProfile, name: &str) -> Option<f64> {
    controller.quirk_number(name).filter(|number| *number > 0.0)
}

fn quirk_number(controller: &ControllerProfile, name: &str) -> f64 {
    controller.quirk_number(name).unwrap_or(0.0)
}

/// A whole number; quirks are small, so a value that is too large becomes the largest one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(number: f64) -> u32 {
    number.clamp(0.0, 1e9) as u32
}

/// Picoseconds of a byte at a rate in MB/s; at most a microsecond, which is 1 MB/s.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn picos_of(mbs: f64) -> u64 {
    (1e6 / mbs.max(1.0)) as u64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // cut off at a second
fn micros(number: f64) -> Nanos {
    Nanos((number.clamp(0.0, 1e6) * 1000.0) as u64)
}
