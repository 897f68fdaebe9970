//! Buses and links: their data rates, their directions, and the cost of a command on them.

use crate::error::ModelErrors;
use crate::head::Head;
use crate::reader::{read_file, Edges, Section};
use crate::sourced::{Rate, Sourced};
use crate::unit::Dimension;
use openraid_units::Nanos;

/// A bus or link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusProfile {
    /// Short name: `pcie1_x4`.
    pub name: String,
    /// Other names that mean the same.
    pub aliases: Vec<String>,
    /// One line as text.
    pub title: String,
    /// Rate towards the host that can be had.
    pub read: Sourced<Rate>,
    /// Rate away from the host that can be had.
    pub write: Sourced<Rate>,
    /// Rate of one direction by the standard.
    pub theory: Sourced<Rate>,
    /// Time for which a command occupies it, without its data.
    pub command: Sourced<Nanos>,
    /// Both directions at once, or one after the other.
    pub duplex: Duplex,
    /// What drives are plugged into it by; absent for what no drive is plugged into, as a bus of hosts.
    pub plug: Option<Plug>,
    /// Lanes of a wide port, of which one drive has one at a time; 1 if a drive at work has the whole port.
    pub lanes: u32,
    /// Its fields that have a range, as they stand in its file.
    pub uncertain: Vec<String>,
}

/// How the directions of a bus share it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// One direction at a time.
    Half,
    /// Both at once.
    Full,
}

/// How a drive is plugged in.
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
    /// Every one, as files have it.
    pub const WORDS: [(&'static str, Self); 4] =
        [("sata", Self::Sata), ("sas", Self::Sas), ("scsi", Self::Scsi), ("pcie", Self::Pcie)];

    /// Does a drive with this plug work on such a port? SAS ports take SATA drives; otherwise only the same fits.
    #[must_use]
    pub fn fits(self, port: Self) -> bool {
        self == port || (self, port) == (Self::Sata, Self::Sas)
    }
}

/// A file with buses that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusFile {
    /// Name and title of the family.
    pub head: Head,
    /// Its buses.
    pub buses: Vec<BusProfile>,
}

impl BusFile {
    /// Read buses from the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelErrors> {
        Self::parse_at(file, text, &Edges::new())
    }

    /// Read buses with some values at an end of their range.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse_at(file: &str, text: &str, edges: &Edges) -> Result<Self, ModelErrors> {
        let (mut parsed, uncertain) = read_file(file, text, edges, Self::read)?;
        for bus in &mut parsed.buses {
            let own = format!("bus.{}.", bus.name);
            bus.uncertain = uncertain.iter().filter(|field| field.starts_with(&own)).cloned().collect();
        }
        parsed.head.uncertain = uncertain;
        Ok(parsed)
    }

    fn read(top: &Section<'_>) -> Self {
        let (head, _) = Head::read(top, &["bus"]);
        let table = top.section("bus");
        let buses = table.keys().iter().map(|name| BusProfile::read(&table.section(name), name)).collect();
        table.finish();
        Self { head, buses }
    }
}

impl BusProfile {
    fn read(section: &Section<'_>, name: &str) -> Self {
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

    /// Do the fields about its plug agree with the others?
    fn check_plug(&self, section: &Section<'_>) {
        if self.lanes > 1 && (self.plug, self.duplex) != (Some(Plug::Sas), Duplex::Full) {
            let remedy = "say plug = \"sas\" and duplex = \"full\", or leave lanes out: rates are those of all lanes";
            section.complain("lanes", "only the wide port of an expander has lanes that drives share", remedy);
        }
        // By their names drives are known that hang in a slot of the host's.
        if self.plug.is_some_and(|plug| (plug == Plug::Pcie) != self.name.starts_with("pcie")) {
            let remedy = "name it so, or correct the plug";
            section.complain("plug", "the name of a link of PCI Express, and of no other, begins with pcie", remedy);
        }
    }

    /// Can a host have it? A link of drives alone is no bus of hosts; PCI Express is both.
    #[must_use]
    pub fn is_of_hosts(&self) -> bool {
        matches!(self.plug, None | Some(Plug::Pcie))
    }

    /// Generation and lanes of PCI Express, by its name; none for other buses.
    #[must_use]
    pub fn generation_and_lanes(&self) -> Option<(u32, u32)> {
        let (generation, lanes) = self.name.strip_prefix("pcie")?.split_once("_x")?;
        Some((generation.parse().ok()?, lanes.parse().ok()?))
    }

    /// The rate of one drive on it: the rate of a lane.
    #[must_use]
    pub fn lane_rate(&self) -> Sourced<Rate> {
        let lanes = u64::from(self.lanes);
        self.read.clone().map(|rate| Rate(rate.0 / lanes))
    }

    /// Time that a command of one drive takes on it: lanes work side by side.
    #[must_use]
    pub fn lane_command(&self) -> Sourced<Nanos> {
        let lanes = u64::from(self.lanes);
        self.command.clone().map(|time| Nanos(time.0 * lanes))
    }

    /// Is this its name, or one of its other names?
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Most lanes of a wide port.
const LANES_MAX: u64 = 16;

fn read_plug(section: &Section<'_>) -> Option<Plug> {
    // Asked for, so that it is known where it is not there.
    section.optional_text("plug")?;
    let word = section.word("plug", &Plug::WORDS.map(|(word, _)| word))?;
    Some(Plug::WORDS[word].1)
}

fn read_lanes(section: &Section<'_>) -> u32 {
    let lanes = section.plain_count_or("lanes", 1);
    if !(1..=LANES_MAX).contains(&lanes) {
        section.complain("lanes", &format!("{lanes} lanes cannot be"), &format!("give 1 to {LANES_MAX}"));
    }
    // Complained of above where it is none of these.
    u32::try_from(lanes.clamp(1, LANES_MAX)).unwrap_or(1)
}
