//! Buses and links: their data rates, their directions, and the cost of a command on them.

use crate::error::ModelErrors;
use crate::profile_head::Head;
use crate::reader::{read_file, Edges, ProfileSection};
use crate::sourced::{Rate, Sourced};
use crate::unit::Dimension;
use openraid_units::Nanos;

/// A bus or link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusProfile {
    /// Short name: `pcie1_x4`.
    pub name: String,
    /// Other names of the same bus.
    pub aliases: Vec<String>,
    /// A title of one line.
    pub title: String,
    /// Usable rate towards the host.
    pub read: Sourced<Rate>,
    /// Usable rate away from the host.
    pub write: Sourced<Rate>,
    /// Rate of one direction by the standard.
    pub theory: Sourced<Rate>,
    /// Time for which a command occupies the bus, without the time for its data.
    pub command: Sourced<Nanos>,
    /// Whether both directions work at once, or one after the other.
    pub duplex: Duplex,
    /// The plug of drives on this bus; absent for a bus without drives, such as a bus of hosts.
    pub plug: Option<Plug>,
    /// Lanes of a wide port, of which one drive uses one at a time; 1 if a working drive has the whole port.
    pub lanes: u32,
    /// Its fields with a range, by their keys in the file.
    pub uncertain: Vec<String>,
}

/// The sharing of a bus by its two directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// One direction at a time.
    Half,
    /// Both at once.
    Full,
}

/// The plug of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plug {
    /// Serial ATA.
    Sata,
    /// SAS, on a port of its own or on an expander.
    Sas,
    /// Parallel SCSI.
    Scsi,
    /// PCI Express: NVMe, in a slot.
    Pcie,
}

impl Plug {
    /// All plugs, with their words in files.
    pub const WORDS: [(&'static str, Self); 4] =
        [("sata", Self::Sata), ("sas", Self::Sas), ("scsi", Self::Scsi), ("pcie", Self::Pcie)];

    /// Whether a drive with this plug works on a port. SAS ports accept SATA drives; other ports accept only their own
    /// plug.
    #[must_use]
    pub fn fits(self, port: Self) -> bool {
        self == port || (self, port) == (Self::Sata, Self::Sas)
    }
}

/// A file with buses of one family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusFile {
    /// Name and title of the family.
    pub head: Head,
    pub buses: Vec<BusProfile>,
}

impl BusFile {
    /// Read buses from the text of a file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelErrors> {
        Self::parse_at(file, text, &Edges::new())
    }

    /// Read buses with some values at an end of their range.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse_at(file: &str, text: &str, edges: &Edges) -> Result<Self, ModelErrors> {
        let (mut parsed, fields) = read_file(file, text, edges, Self::read)?;
        for bus in &mut parsed.buses {
            let beginning = format!("bus.{}.", bus.name);
            bus.uncertain = fields.uncertain.iter().filter(|field| field.starts_with(&beginning)).cloned().collect();
        }
        (parsed.head.uncertain, parsed.head.measured) = (fields.uncertain, fields.measured);
        Ok(parsed)
    }

    fn read(top: &ProfileSection<'_>) -> Self {
        let (head, _) = Head::read(top, &["bus"]);
        let table = top.section("bus");
        let buses = table.keys().iter().map(|name| BusProfile::read(&table.section(name), name)).collect();
        table.finish();
        Self { head, buses }
    }
}

impl BusProfile {
    fn read(section: &ProfileSection<'_>, name: &str) -> Self {
        let rate = |base: &str| section.quantity(base, Dimension::Rate, 1_000_000, u64::MAX).map(Rate);
        let bus = Self {
            name: name.to_owned(),
            aliases: section.texts("aliases", 16),
            title: section.text("title").unwrap_or_default(),
            read: rate("read"),
            write: rate("write"),
            theory: rate("theory"),
            command: section.quantity("command", Dimension::Time, 0, 1_000_000_000).map(Nanos),
            duplex: match section.word("duplex", &["half", "full"]) {
                Some(1) => Duplex::Full,
                _ => Duplex::Half,
            },
            plug: read_plug(section),
            lanes: read_lanes(section),
            uncertain: Vec::new(),
        };
        if section.clean() {
            for (key, rate) in [("read", bus.read.value), ("write", bus.write.value)] {
                if rate > bus.theory.value {
                    let reason = format!("{rate} are more than the standard's {}", bus.theory.value);
                    section.complain(key, &reason, "check the two rates");
                }
            }
            bus.check_plug(section);
        }
        section.finish();
        bus
    }

    /// Check the fields about the plug against the others.
    fn check_plug(&self, section: &ProfileSection<'_>) {
        if self.lanes > 1 && (self.plug, self.duplex) != (Some(Plug::Sas), Duplex::Full) {
            let remedy = "say plug = \"sas\" and duplex = \"full\", or leave lanes out: rates are those of all lanes";
            section.complain("lanes", "only the wide port of an expander has lanes that drives share", remedy);
        }
        // The name of the bus shows whether a drive is in a slot of the host.
        if self.plug.is_some_and(|plug| (plug == Plug::Pcie) != self.name.starts_with("pcie")) {
            let remedy = "name it so, or correct the plug";
            section.complain("plug", "the name of a link of PCI Express, and of no other, begins with pcie", remedy);
        }
    }

    /// Whether a host can have the bus. A link for drives only is not a bus of hosts; PCI Express is both.
    #[must_use]
    pub fn is_of_hosts(&self) -> bool {
        matches!(self.plug, None | Some(Plug::Pcie))
    }

    /// Generation and lanes of PCI Express, from the name; `None` for other buses.
    #[must_use]
    pub fn generation_and_lanes(&self) -> Option<(u32, u32)> {
        let (generation, lanes) = self.name.strip_prefix("pcie")?.split_once("_x")?;
        Some((generation.parse().ok()?, lanes.parse().ok()?))
    }

    /// The rate of one drive on the bus: the rate of a lane.
    #[must_use]
    pub fn lane_rate(&self) -> Sourced<Rate> {
        let lanes = u64::from(self.lanes);
        self.read.clone().map(|rate| Rate(rate.0 / lanes))
    }

    /// Time of one drive's command on the bus: lanes work in parallel.
    #[must_use]
    pub fn lane_command(&self) -> Sourced<Nanos> {
        let lanes = u64::from(self.lanes);
        self.command.clone().map(|time| Nanos(time.0 * lanes))
    }

    /// Whether this is the name of the bus, or one of its other names.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Greatest number of lanes of a wide port.
const LANES_MAX: u64 = 16;

fn read_plug(section: &ProfileSection<'_>) -> Option<Plug> {
    // The call registers the key, so an error can name it.
    section.optional_text("plug")?;
    let word = section.word("plug", &Plug::WORDS.map(|(word, _)| word))?;
    Some(Plug::WORDS[word].1)
}

fn read_lanes(section: &ProfileSection<'_>) -> u32 {
    let lanes = section.plain_count_or("lanes", 1);
    if !(1..=LANES_MAX).contains(&lanes) {
        section.complain("lanes", &format!("{lanes} lanes cannot be"), &format!("give 1 to {LANES_MAX}"));
    }
    // Other values were recorded as errors above.
    u32::try_from(lanes.clamp(1, LANES_MAX)).unwrap_or(1)
}
