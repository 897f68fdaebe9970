//! Values of a machine's profiles that have a range. They are the sources of uncertainty in every answer about that
//! machine.

use crate::cell::{machine_spec, CellError, CellSpec};
use openraid_models::{BusProfile, DriveKind, DriveProfile, Duplex, Edge, Edges, Library, LookupError};
use openraid_sim::machine::MachineSpec;
use std::fmt;

/// Kinds of profile that describe a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProfilePart {
    Drive,
    Controller,
    Host,
    Bus,
    Link,
    Journal,
}

/// A value of a profile that has a range: no data sheet gives it, or the data sheet gives a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uncertain {
    pub(super) part: ProfilePart,
    pub(super) whose: String,
    pub(super) field: String,
    /// Values that were fitted to the same figure as this value. If this value is at one end of its range, they are at
    /// the other.
    pub(super) against: Vec<String>,
}

/// Values that were fitted to one figure.
///
/// - The rates of a full SSD follow from the time to write a page and from the number of pages that are written for
///   each page of the host. A longer time needs a lower number to give the data sheet's rate.
/// - The rate of a read stream at depth 1 follows from the time of each request and from the time of each KiB. The
///   range of the second was chosen so that the published rate comes out for some time of a request.
const FITTED: [(&str, &[&str]); 2] = [
    ("flash.program_us", &["upkeep.amplification_random_factor", "upkeep.amplification_sequential_factor"]),
    ("quirks.read_kib_us", &["cpu.command_us"]),
];

impl fmt::Display for Uncertain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.whose, self.field)?;
        if self.against.is_empty() {
            return Ok(());
        }
        f.write_str(", and what was fitted with it")
    }
}

impl Uncertain {
    /// Sets the value to an end of its range.
    pub(super) fn put(&self, library: &Library, spec: &mut MachineSpec, end: Edge) -> Result<(), LookupError> {
        let Self { part, whose, field, against } = self;
        let other = if end == Edge::Low { Edge::High } else { Edge::Low };
        let against = against.iter().map(|field| (field.clone(), other));
        let edges: Edges = against.chain([(field.clone(), end)]).collect();
        match part {
            ProfilePart::Drive => {
                let drive = library.drive_at(whose, &edges)?;
                let same = spec.drives.iter_mut().filter(|known| known.head.name == *whose);
                same.for_each(|known| *known = drive.clone());
            }
            ProfilePart::Journal => {
                let drive = library.drive_at(whose, &edges)?;
                let same = spec.journal.iter_mut().filter(|known| known.head.name == *whose);
                same.for_each(|known| *known = drive.clone());
            }
            ProfilePart::Controller => spec.controller = library.controller_at(whose, &edges)?,
            ProfilePart::Host => spec.host = Some(library.host_at(whose, &edges)?),
            ProfilePart::Bus => spec.bus = Some(library.bus_at(whose, &edges)?),
            ProfilePart::Link => spec.link = Some(library.bus_at(whose, &edges)?),
        }
        Ok(())
    }
}

/// The uncertain values of a cell's machine, profile by profile: drive, device of the journal, controller with its
/// quirks, host, bus if the drives share one, and the link of the controller's ports if drives share it or are faster. A
/// drive's own link is part of its own profile. Values that the machine does not use are left out.
///
/// # Errors
/// A profile does not exist.
pub fn uncertain(library: &Library, cell: &CellSpec) -> Result<Vec<Uncertain>, CellError> {
    let base = machine_spec(library, cell)?;
    let mut drives: Vec<&DriveProfile> = base.drives.iter().collect();
    drives.dedup_by_key(|drive| &drive.head.name);
    let mut journal: Vec<&DriveProfile> = base.journal.iter().collect();
    journal.dedup_by_key(|drive| &drive.head.name);
    let controller = &base.controller.head;
    let host = &library.host(&base.controller.host)?.head;
    let bus = library.bus(base.bus.as_ref().map_or(&base.controller.bus, |bus| &bus.name))?;
    let link = library.bus(&base.controller.link)?;
    let bus_fields = if base.has_slots() { Vec::new() } else { of_way(bus) };
    let link_fields = of_port(&base, link);
    let of = |part: ProfilePart, drive: &DriveProfile| fitted(part, &drive.head.name, &drive.head.uncertain);
    let drives = drives.into_iter().flat_map(|drive| of(ProfilePart::Drive, drive));
    let drives = drives.chain(journal.into_iter().flat_map(|drive| of(ProfilePart::Journal, drive)));
    let parts = [
        (ProfilePart::Controller, &controller.name, &controller.uncertain[..]),
        (ProfilePart::Host, &host.name, &host.uncertain[..]),
        (ProfilePart::Bus, &bus.name, &bus_fields[..]),
        (ProfilePart::Link, &link.name, &link_fields[..]),
    ];
    let parts = parts.into_iter().flat_map(|(part, whose, fields)| fitted(part, whose, fields));
    Ok(drives.chain(parts).collect())
}

/// The uncertain fields of a part. Fields that were fitted to one figure count as one.
fn fitted(part: ProfilePart, whose: &str, fields: &[String]) -> Vec<Uncertain> {
    let against = |first: &str| -> Vec<String> {
        let group = FITTED.iter().find(|(field, _)| *field == first).map_or(&[][..], |(_, others)| *others);
        fields.iter().filter(|field| group.contains(&field.as_str())).cloned().collect()
    };
    let follows = |field: &str| {
        FITTED.iter().any(|(first, others)| others.contains(&field) && fields.iter().any(|known| known == first))
    };
    let value = |field: &String| Uncertain { part, whose: whose.into(), field: field.clone(), against: against(field) };
    fields.iter().filter(|field| !follows(field)).map(value).collect()
}

/// The fields of a shared bus. If its directions take turns, it has one rate, the one for reads.
fn of_way(bus: &BusProfile) -> Vec<String> {
    let read = |field: &&String| bus.duplex == Duplex::Full || !field.ends_with(".write_mbs");
    bus.uncertain.iter().filter(read).cloned().collect()
}

/// The fields of the ports' link. All values count if drives share the link. If the link slows a drive down, only the
/// values that the drive then uses count: one rate for both directions, and for an SSD the time of a command.
fn of_port(spec: &MachineSpec, link: &BusProfile) -> Vec<String> {
    let ssd = matches!(spec.drives[0].kind, DriveKind::Ssd(_));
    let agreed = |field: &&String| field.ends_with(".read_mbs") || (ssd && field.ends_with(".command_us"));
    if spec.shares_links() {
        of_way(link)
    } else if spec.is_held_back(&spec.drives[0], link) {
        link.uncertain.iter().filter(agreed).cloned().collect()
    } else {
        Vec::new()
    }
}
