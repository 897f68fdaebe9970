//! A simulated machine as a target: the engine of the server, on models of all other parts.

use super::{BedLine, BedName, HostIo, IoDone, Late, MemberWork, Target, TargetCounters, TargetError, TargetFacts};
use crate::cell::{Caches, PartName};
use openraid_drives::{DriveState, Passing};
use openraid_models::{BusProfile, DriveKind, Library, Rate};
use openraid_sim::machine::{Machine, MachineCounters, MachineError, MachineSpec};
use openraid_units::{Bytes, Instant, Nanos, SECTOR_BYTES};

/// A simulated machine as a target; see the module's description.
pub struct SimTarget {
    machine: Machine,
    facts: TargetFacts,
    kept_descriptions: Option<Bytes>,
}

/// The text for a state of SSDs in a test bed.
#[must_use]
pub(crate) const fn ssd_state(state: DriveState) -> &'static str {
    match state {
        DriveState::Fresh => "fresh: never written full",
        DriveState::Steady => "steady: written over at least once",
    }
}

/// What several drives share, with its name for a test bed: the link of an expander or a channel, or a host adapter. None
/// if each drive has a link of its own to the one controller.
///
/// # Errors
/// No profile has such a link.
pub(crate) fn shared_way(
    spec: &MachineSpec,
    library: &Library,
) -> Result<Option<(&'static str, String)>, MachineError> {
    let mbps = |rate: Rate| rate.0 as f64 / 1e6;
    let words = |way: &BusProfile, each: u32| {
        let (read, write) = (mbps(way.read.value), mbps(way.write.value));
        format!("{}, up to {each} drives on each: {read:.0} MB/s read, {write:.0} MB/s written", way.title)
    };
    if spec.shares_links() {
        let each = spec.controller.drives_per_link.value;
        return Ok(Some(("shared port", words(spec.port(library)?, each))));
    }
    let Some(adapters) = &spec.controller.adapters else { return Ok(None) };
    let way = library.bus(&adapters.bus).map_err(|error| MachineError::Part(error.to_string()))?;
    Ok(Some(("host adapters", words(way, adapters.drives.value))))
}

impl SimTarget {
    /// Makes the machine of a specification.
    ///
    /// # Errors
    /// The reason why the machine is impossible, with the controller's rule.
    pub fn new(name: &str, spec: &MachineSpec, library: &Library) -> Result<Self, MachineError> {
        let machine = Machine::in_library(spec, library)?;
        let drive = spec.drives.first().map_or("no drive", |drive| drive.head.title.as_str());
        let mut bed = vec![
            format!("simulated: {}", spec.controller.head.title).into(),
            BedLine::new(BedName::ArrayDrives(spec.array.members), drive),
            BedLine::new(BedName::Bus, spec.bus_name()),
        ];
        bed.extend(shared_way(spec, library)?.map(|(name, way)| format!("{name}: {way}").into()));
        bed.push(BedLine::new(BedName::Cache, Caches::of(spec).to_string()));
        bed.push(BedLine::new(BedName::Chunk, spec.chunk().to_string()));
        if spec.drives.iter().any(|drive| matches!(drive.kind, DriveKind::Ssd(_))) {
            bed.push(BedLine::new(BedName::SsdState, ssd_state(spec.drive_state)));
        }
        let facts = TargetFacts {
            name: name.into(),
            capacity: machine.capacity(),
            block: Bytes(SECTOR_BYTES),
            simulated: true,
            writable: true,
            page_cache: false,
            link_mbps: None,
            bed,
        };
        let kept_descriptions = spec.host_profile(library)?.kept_descriptions.as_ref().map(|size| size.value);
        Ok(Self { machine, facts, kept_descriptions })
    }

    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Makes the engine keep the last `count` steps of requests.
    pub fn keep_steps(&mut self, count: u32) {
        self.machine.keep_steps(count);
    }

    /// All counters of the machine.
    #[must_use]
    pub fn machine_counters(&self) -> MachineCounters {
        self.machine.counters()
    }
}

impl Target for SimTarget {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn kept_descriptions(&self) -> Option<Bytes> {
        self.kept_descriptions
    }

    fn now(&self) -> Instant {
        self.machine.now()
    }

    fn submit(&mut self, io: HostIo) {
        self.machine.submit(io);
    }

    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        let before = done.len();
        self.machine.advance(until, done);
        if done.len() == before && until == Instant::NEVER {
            let reason = "the simulated machine has nothing more to do, and requests are outstanding: a bug".into();
            return Err(TargetError::Gone { name: self.facts.name.clone(), reason });
        }
        Ok(())
    }

    fn counters(&self) -> Option<TargetCounters> {
        let found = self.machine.counters();
        let each = |time: Nanos, count: u32| Nanos(time.get() / u64::from(count.max(1)));
        let host = each(found.host_processor, u32::try_from(found.host_threads.len()).expect("few processors"));
        let mut components = vec![
            (PartName::Controller, each(found.processor, found.processors)),
            (PartName::Host, host),
            (PartName::Xor, found.parity),
        ];
        let paths = found.data_path.unwrap_or_default();
        let groups = [
            (PartName::Bus, &found.bus[..]),
            (PartName::Channel, &found.channels),
            (PartName::Worker, &found.host_threads),
        ];
        let path = found.data_path.is_some().then_some((PartName::DataPath, &paths[..]));
        for (name, times) in groups.into_iter().chain(path) {
            components.extend(times.iter().map(|time| (name, *time)));
        }
        components.extend(found.memory.map(|time| (PartName::Memory, time)));
        components.extend(found.journal_busy.map(|busy| (PartName::Journal, busy)));
        if found.open_stripes.is_some() {
            components.push((PartName::OpenStripes, found.cache.crowded));
        }
        let member = |member: &openraid_sim::machine::MemberCounters| {
            let Passing { firmware, path, link } = member.passing;
            MemberWork {
                reads: member.reads,
                writes: member.writes,
                sectors: member.sectors_read + member.sectors_written,
                written: member.sectors_written,
                busy: [member.busy, firmware, path[0], path[1], link[0], link[1]],
            }
        };
        let cache = &found.cache;
        let dirty = cache.written.saturating_sub(cache.overwritten + cache.destaged);
        Some(TargetCounters {
            members: found.members.iter().map(member).collect(),
            components,
            host: Some(host),
            dirty: Some(Bytes(dirty * SECTOR_BYTES)),
            held: Some(Bytes(found.members.iter().map(|member| member.held).sum::<u64>() * SECTOR_BYTES)),
            read_hits: Some(Bytes(cache.read_hits.saturating_sub(cache.ahead_used) * SECTOR_BYTES)),
            rebuilt: found.rebuilt.map(|sectors| Bytes(sectors * SECTOR_BYTES)),
            moved: found.moved.map(|moved| moved.map(|sectors| Bytes(sectors * SECTOR_BYTES))),
            reasons: found.reasons.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
        })
    }

    fn make_again(&mut self) {
        self.machine.make_again();
    }

    fn destage(&self) -> Option<Late> {
        self.machine.destage_age().map(|age| Late { age })
    }
}
