//! Controllers: their limits, their costs, and the known behaviour of their firmware.
//!
//! A controller is four servers and a set of rules. The servers are the command processor, the parity engine, the data
//! path to the host, and the drives' ports. Rules that are choices of the firmware are quirks.

use crate::drive::small;
use crate::error::ModelErrors;
use crate::profile_head::Head;
use crate::quirk::{Quirk, QuirkValue};
use crate::reader::{read_file, Edges, ProfileSection};
use crate::sourced::{Rate, Sourced};
use crate::unit::Dimension;
use openraid_units::ArrayLevel;
use openraid_units::{Bytes, Nanos};

/// Greatest number of ports.
const PORTS_MAX: u64 = 1024;
/// Least and greatest chunk.
const CHUNK: (u64, u64) = (4096, 64 << 20);
/// Greatest cache.
const CACHE_MAX: u64 = 1 << 40;
/// A second in nanoseconds: no step of a controller takes longer.
const STEP_MAX: u64 = 1_000_000_000;
/// Greatest number of choices of a chunk or a cache.
const CHOICES_MAX: usize = 16;

#[derive(Clone, PartialEq, Debug)]
pub struct ControllerProfile {
    /// Name and title.
    pub head: Head,
    /// The place where the work is done.
    pub kind: ControllerKind,
    /// Ports for drives.
    pub ports: Sourced<u32>,
    pub ports_per_connector: Sourced<u32>,
    /// Name of the bus profile of a port. A drive uses the slower of this link and its own.
    pub link: String,
    /// Drives that share one link (a channel, an expander); 1 if each drive has its own.
    pub drives_per_link: Sourced<u32>,
    /// Host adapters, or chips with ports, if there are several. Each has some of the drives, and a separate way to the
    /// host.
    pub adapters: Option<Adapters>,
    /// Commands that the controller gives to one drive at once.
    pub drive_queue: Sourced<u32>,
    /// Name of the bus profile towards the host, as agreed by card and slot.
    pub bus: String,
    /// Name of the bus profile of the card itself; `None` if it is not known.
    pub card_bus: Option<String>,
    /// Name of the host profile of the test system.
    pub host: String,
    /// Name of the drive profile of the test system.
    pub drive: String,
    /// Number of drives of the test system.
    pub drive_count: Sourced<u32>,
    /// Its command processor.
    pub cpu: CpuProfile,
    /// Its parity engine; absent if there is none. For [`ControllerKind::Software`], the host's rate counts.
    pub xor: Option<XorProfile>,
    /// Limits of its own data path; absent if the bus is the limit.
    pub data_path: Option<DataPath>,
    /// Size of the cache; zero for no cache.
    pub cache: Sourced<Bytes>,
    /// Rate of its memory, for all data that it receives or gives; `None` if it is not known, or never the limit.
    pub memory: Option<Sourced<Rate>>,
    /// Size of the cache if one is requested without a size; zero if the size is fixed.
    pub cache_on_demand: Bytes,
    /// Other sizes of the cache on sale.
    pub cache_choices: Vec<Bytes>,
    /// Whether the controller may acknowledge writes that are only in its cache.
    pub write_back: bool,
    /// The protection of its cache in a power cut.
    pub protection: Protection,
    /// Whether its switch for write caching also works on the drives' caches.
    pub drive_cache_follows: bool,
    /// The default chunk.
    pub chunk: Sourced<Bytes>,
    /// The available chunks.
    pub chunk_choices: Vec<Bytes>,
    pub levels: Vec<LevelRule>,
    /// The choice of the half of a mirror for reads.
    pub mirror_read: MirrorReadRule,
    /// The rule for read-ahead.
    pub read_ahead: ReadAheadRule,
    /// The known quirks of its firmware.
    pub quirks: Vec<Quirk>,
}

/// Several host adapters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adapters {
    /// Drives on one adapter.
    pub drives: Sourced<u32>,
    /// Name of the bus profile that the drives of one adapter share.
    pub bus: String,
}

/// The place where the work of the array is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControllerKind {
    /// On the card.
    Hardware,
    /// On the host's processor.
    Software,
}

/// A command processor: a server that does one thing at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuProfile {
    /// Time of a host request.
    pub command: Sourced<Nanos>,
    /// Time of a command to a member.
    pub member_command: Sourced<Nanos>,
    /// Time for each KiB of data.
    pub per_kib: Sourced<Nanos>,
    /// Number of processors that work in parallel.
    pub cores: Sourced<u32>,
}

/// A parity engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XorProfile {
    /// Input bytes of the parity computation per second.
    pub rate: Sourced<Rate>,
    /// Time of an operation, without the time for its bytes.
    pub setup: Sourced<Nanos>,
}

/// Limits of the way between host and drives inside the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPath {
    /// Towards the host.
    pub read: Sourced<Rate>,
    /// Away from the host.
    pub write: Sourced<Rate>,
    /// Towards the host, for sets with parity, if that is a different way.
    pub parity_read: Option<Sourced<Rate>>,
}

/// The protection of a cache in a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// No protection.
    None,
    /// A battery or capacitor that is sold as an option.
    Optional,
    /// A battery or capacitor that is always there, or a journal.
    Always,
}

/// The rule of a controller for one level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LevelRule {
    pub level: ArrayLevel,
    /// Least number of members.
    pub members_min: u16,
    /// Greatest number of members.
    pub members_max: u16,
    /// The reason why the controller needs more members than the level; empty if it does not.
    pub reason: String,
}

/// The choice of the half of a mirror for reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MirrorReadRule {
    /// Always the first half that is whole.
    Primary,
    /// Each half in turn.
    RoundRobin,
    /// The half with the fewest commands.
    LeastPending,
    /// The half whose head is nearest, by the addresses of earlier commands; streams stay on their half.
    NearestHead,
    /// The nearest head for short requests, alternating sections of both halves for long ones.
    TwinStor,
    /// The half that a model of its positions predicts to answer first.
    Positioning,
}

/// The rule of a controller for read-ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadAheadRule {
    /// Never.
    None,
    /// After every read.
    Always,
    /// After sequential reads.
    Adaptive,
}

impl ControllerProfile {
    /// Read a controller from the text of a file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelErrors> {
        Self::parse_at(file, text, &Edges::new())
    }

    /// Read a controller with some values at an end of their range.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse_at(file: &str, text: &str, edges: &Edges) -> Result<Self, ModelErrors> {
        let (mut parsed, fields) = read_file(file, text, edges, Self::read)?;
        (parsed.head.uncertain, parsed.head.measured) = (fields.uncertain, fields.measured);
        Ok(parsed)
    }

    fn read(top: &ProfileSection<'_>) -> Self {
        let (head, _) = Head::read(top, &["controller"]);
        let (ports, host, bed) = (top.section("ports"), top.section("host"), top.section("test_bed"));
        let (cache, layout, policy) = (top.section("cache"), top.section("layout"), top.section("policy"));
        let kinds = [ControllerKind::Hardware, ControllerKind::Software];
        let mirrors = [
            MirrorReadRule::Primary,
            MirrorReadRule::RoundRobin,
            MirrorReadRule::LeastPending,
            MirrorReadRule::NearestHead,
            MirrorReadRule::TwinStor,
            MirrorReadRule::Positioning,
        ];
        let mirror_words = ["primary", "round-robin", "least-pending", "nearest-head", "twinstor", "positioning"];
        let aheads = [ReadAheadRule::None, ReadAheadRule::Always, ReadAheadRule::Adaptive];
        let protections = [Protection::None, Protection::Optional, Protection::Always];
        let profile = Self {
            head,
            kind: kinds[top.word("work", &["hardware", "software"]).unwrap_or(0)],
            ports: small(&ports.quantity("drives", Dimension::Count, 1, PORTS_MAX)),
            ports_per_connector: small(&ports.quantity("per_connector", Dimension::Count, 1, PORTS_MAX)),
            link: ports.text("link").unwrap_or_default(),
            drives_per_link: small(&ports.quantity("drives_per_link", Dimension::Count, 1, PORTS_MAX)),
            adapters: Adapters::read(&ports),
            drive_queue: small(&ports.quantity("drive_queue", Dimension::Count, 1, 4096)),
            bus: host.text("bus").unwrap_or_default(),
            card_bus: host.optional_text("card_bus"),
            host: bed.text("host").unwrap_or_default(),
            drive: bed.text("drive").unwrap_or_default(),
            drive_count: small(&bed.quantity("drives", Dimension::Count, 1, PORTS_MAX)),
            cpu: CpuProfile::read(top),
            xor: XorProfile::read(top),
            data_path: DataPath::read(top),
            cache: cache.quantity("size", Dimension::Size, 0, CACHE_MAX).map(Bytes),
            memory: cache.optional_quantity("memory", Dimension::Rate, 1_000_000, u64::MAX).map(|rate| rate.map(Rate)),
            cache_on_demand: cache
                .optional_quantity("on_demand", Dimension::Size, 1, CACHE_MAX)
                .map_or(Bytes::ZERO, |size| Bytes(size.value)),
            cache_choices: sizes(&cache, "choices_kib"),
            write_back: cache.truth("write_back"),
            protection: protections[cache.word("protection", &["none", "optional", "always"]).unwrap_or(0)],
            drive_cache_follows: cache.truth("drive_cache_follows"),
            chunk: layout.quantity("chunk", Dimension::Size, CHUNK.0, CHUNK.1).map(Bytes),
            chunk_choices: sizes(&layout, "choices_kib"),
            levels: LevelRule::read_all(&top.section("levels")),
            mirror_read: mirrors[policy.word("mirror_read", &mirror_words).unwrap_or(0)],
            read_ahead: aheads[policy.word("read_ahead", &["none", "always", "adaptive"]).unwrap_or(0)],
            quirks: Quirk::read_all(top),
        };
        profile.check(top, &cache, &layout);
        profile.check_ways(&ports, &cache);
        for section in [ports, host, bed, cache, layout, policy] {
            section.finish();
        }
        profile
    }

    fn check(&self, top: &ProfileSection<'_>, cache: &ProfileSection<'_>, layout: &ProfileSection<'_>) {
        if !cache.clean() {
            return;
        }
        let parity = self.levels.iter().find(|rule| rule.level.has_parity());
        if let (ControllerKind::Hardware, None, Some(rule)) = (self.kind, &self.xor, parity) {
            let reason = format!("is missing, and {} needs parity from somewhere", rule.level);
            let remedy = "add [xor] with its rate and setup, remove the level, or write work = \"software\"";
            top.complain("xor", &reason, remedy);
        }
        if self.write_back && self.cache.value.is_zero() && self.cache_on_demand.is_zero() {
            cache.complain(
                "write_back",
                "there is no cache to write back from",
                "write false, or give the cache a size, or one on demand",
            );
        }
        if !self.chunk.value.0.is_power_of_two() {
            layout.complain("chunk", "is not a power of two", "write 64, 128, 256 ... KiB");
        }
        if !self.chunk_choices.is_empty() && !self.chunk_choices.contains(&self.chunk.value) {
            layout.complain("chunk", "is not among the choices", "add it to choices_kib");
        }
    }

    /// Check the ways inside the controller against each other.
    fn check_ways(&self, ports: &ProfileSection<'_>, cache: &ProfileSection<'_>) {
        if !cache.clean() {
            return;
        }
        if let Some(adapters) = &self.adapters {
            if self.drives_per_link.value > 1 {
                let remedy = "leave adapters out, or give each drive a link of its own";
                ports.complain("adapter_bus", "drives that share links have no adapters in these models", remedy);
            }
            if adapters.drives.value > self.ports.value {
                let reason = format!("is more than the {} ports", self.ports.value);
                ports.complain("drives_per_adapter", &reason, "write the drives of one adapter");
            }
        }
        if self.kind == ControllerKind::Software && self.memory.is_some() {
            let remedy = "leave it out, or write work = \"hardware\"";
            cache.complain("memory", "the memory of work = \"software\" is the host's", remedy);
        }
        if self.memory.is_some() && self.cache.value.is_zero() {
            cache.complain(
                "memory",
                "is there, but the cache has no size",
                "give the cache a size, or leave the rate out",
            );
        }
    }

    /// The rule of a level, if the controller has the level.
    #[must_use]
    pub fn level(&self, level: ArrayLevel) -> Option<&LevelRule> {
        self.levels.iter().find(|rule| rule.level == level)
    }

    /// The value of a quirk that is a number.
    #[must_use]
    pub fn quirk_number(&self, name: &str) -> Option<f64> {
        self.quirk(name).and_then(|value| match value {
            QuirkValue::Number(number) => Some(number.value),
            _ => None,
        })
    }

    /// Whether the controller has this quirk, with the value true.
    #[must_use]
    pub fn quirk_truth(&self, name: &str) -> bool {
        matches!(self.quirk(name), Some(QuirkValue::Truth(true)))
    }

    /// The value of a quirk that is a text.
    #[must_use]
    pub fn quirk_text(&self, name: &str) -> Option<&str> {
        self.quirk(name).and_then(|value| match value {
            QuirkValue::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn quirk(&self, name: &str) -> Option<&QuirkValue> {
        debug_assert!(crate::QUIRKS.iter().any(|(known, ..)| *known == name), "no profile can have the quirk {name}");
        self.quirks.iter().find(|quirk| quirk.name == name).map(|quirk| &quirk.value)
    }
}

impl Adapters {
    fn read(ports: &ProfileSection<'_>) -> Option<Self> {
        let bus = ports.optional_text("adapter_bus");
        let drives = ports.optional_quantity("drives_per_adapter", Dimension::Count, 1, PORTS_MAX);
        match (bus, drives) {
            (Some(bus), Some(drives)) => Some(Self { drives: small(&drives), bus }),
            (None, None) => None,
            _ => {
                let remedy = "write both drives_per_adapter and adapter_bus, or none of them";
                ports.complain("adapter_bus", "adapters need a number of drives and a bus", remedy);
                None
            }
        }
    }
}

impl CpuProfile {
    fn read(top: &ProfileSection<'_>) -> Self {
        let cpu = top.section("cpu");
        let time = |base: &str| cpu.quantity(base, Dimension::Time, 0, STEP_MAX).map(Nanos);
        let profile = Self {
            command: time("command"),
            member_command: time("member_command"),
            per_kib: time("per_kib"),
            cores: small(&cpu.quantity("cores", Dimension::Count, 1, 1024)),
        };
        cpu.finish();
        profile
    }
}

impl XorProfile {
    fn read(top: &ProfileSection<'_>) -> Option<Self> {
        let xor = top.optional_section("xor")?;
        let profile = Self {
            rate: xor.quantity("rate", Dimension::Rate, 1_000_000, u64::MAX).map(Rate),
            setup: xor.quantity("setup", Dimension::Time, 0, STEP_MAX).map(Nanos),
        };
        xor.finish();
        Some(profile)
    }
}

impl DataPath {
    fn read(top: &ProfileSection<'_>) -> Option<Self> {
        let path = top.optional_section("data_path")?;
        let rate = |base: &str| path.quantity(base, Dimension::Rate, 1_000_000, u64::MAX).map(Rate);
        let parity_read = path.keys().iter().any(|key| key.starts_with("parity_read")).then(|| rate("parity_read"));
        let profile = Self { read: rate("read"), write: rate("write"), parity_read };
        path.finish();
        Some(profile)
    }
}

impl LevelRule {
    fn read_all(table: &ProfileSection<'_>) -> Vec<Self> {
        let mut rules = Vec::new();
        for (word, level) in ArrayLevel::WORDS {
            let Some(section) = table.optional_section(word) else { continue };
            let least = section.plain_count_or("members_min", u64::from(level.members_min()));
            let most = section.plain_count_or("members_max", u64::from(u16::MAX));
            let reason = section.optional_text("reason").unwrap_or_default();
            if least < u64::from(level.members_min()) {
                let remedy = format!("{word} needs {} members", level.members_min());
                section.complain("members_min", "is less than the level needs", &remedy);
            }
            if most < least {
                section.complain("members_max", "is less than the fewest", "swap the two");
            }
            if least > u64::from(level.members_min()) && reason.is_empty() {
                let remedy = "add reason = \"...\": it is shown to users that ask for fewer";
                section.complain("members_min", "is more than the level needs, without a reason", remedy);
            }
            let count = |n: u64| u16::try_from(n).unwrap_or(u16::MAX);
            section.finish();
            rules.push(Self { level, members_min: count(least), members_max: count(most), reason });
        }
        if rules.is_empty() && table.clean() {
            table.complain("single", "the controller has no level at all", "add single = {}, raid0 = {}, ...");
        }
        table.finish();
        rules
    }
}

fn sizes(section: &ProfileSection<'_>, key: &str) -> Vec<Bytes> {
    let numbers = section.numbers(key, CHOICES_MAX);
    if numbers.iter().any(|kib| !(1.0..=1e9).contains(kib) || kib.fract() != 0.0) {
        section.complain(key, "are no whole numbers of KiB", "write whole numbers above zero");
        return Vec::new();
    }
    // In the range that was just checked.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    numbers.iter().map(|kib| Bytes::kib(*kib as u64)).collect()
}
