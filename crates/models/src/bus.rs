//! Buses and links: what goes through them, in which directions, and what a command costs on them.

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
    /// One line for people.
    pub title: String,
    /// Rate towards the host that can be had.
    pub read: Sourced<Rate>,
    /// Rate away from the host that can be had.
    pub write: Sourced<Rate>,
    /// Rate of one direction by the standard.
    pub theory: Sourced<Rate>,
    /// Time for which a command keeps it from others, beside its data.
    pub command: Sourced<Nanos>,
    /// Both directions at once, or one after the other.
    pub duplex: Duplex,
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
            uncertain: Vec::new(),
        };
        if section.clean() {
            for (key, rate) in [("read", bus.read.value), ("write", bus.write.value)] {
                if rate > bus.theory.value {
                    let reason = format!("{rate} are more than the standard's {}", bus.theory.value);
                    section.complain(key, &reason, "check the two rates");
                }
            }
        }
        section.finish();
        bus
    }

    /// Is this its name, or one of its other names?
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}
