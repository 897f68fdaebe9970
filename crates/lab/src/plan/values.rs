//! Values of a machine's profiles that have a range: what every answer about that machine is uncertain by.

use crate::cell::{machine_spec, CellError, CellSpec};
use openraid_models::{BusProfile, DriveKind, Duplex, Edge, Edges, Library, LookupError};
use openraid_sim::machine::MachineSpec;
use std::fmt;

/// Profiles that a machine is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Drive,
    Controller,
    Host,
    Bus,
    Link,
}

/// A value of a profile that has a range: no sheet gives it, or the sheet gives a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uncertain {
    pub(super) part: Part,
    pub(super) whose: String,
    pub(super) field: String,
}

impl fmt::Display for Uncertain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.whose, self.field)
    }
}

impl Uncertain {
    /// Put it to an end of its range.
    pub(super) fn put(&self, library: &Library, spec: &mut MachineSpec, end: Edge) -> Result<(), LookupError> {
        let Self { part, whose, field } = self;
        let edges = Edges::from([(field.clone(), end)]);
        match part {
            Part::Drive => {
                let drive = library.drive_at(whose, &edges)?;
                let same = spec.drives.iter_mut().filter(|own| own.head.name == *whose);
                same.for_each(|own| *own = drive.clone());
            }
            Part::Controller => spec.controller = library.controller_at(whose, &edges)?,
            Part::Host => spec.host = Some(library.host_at(whose, &edges)?),
            Part::Bus => spec.bus = Some(library.bus_at(whose, &edges)?),
            Part::Link => spec.link = Some(library.bus_at(whose, &edges)?),
        }
        Ok(())
    }
}

/// The uncertain values of a cell's machine, profile by profile: drive, controller with its quirks, host, bus, and the
/// link of the controller's ports if drives share it or are faster. A drive's own link is part of its own profile.
/// Values that the machine does not use are left out.
///
/// # Errors
/// A profile does not exist.
pub fn uncertain(library: &Library, cell: &CellSpec) -> Result<Vec<Uncertain>, CellError> {
    let base = machine_spec(library, cell)?;
    let mut drives: Vec<&openraid_models::Head> = base.drives.iter().map(|drive| &drive.head).collect();
    drives.dedup_by_key(|head| &head.name);
    let controller = &base.controller.head;
    let host = &library.host(&base.controller.host)?.head;
    let bus = library.bus(base.bus.as_ref().map_or(&base.controller.bus, |bus| &bus.name))?;
    let link = library.bus(&base.controller.link)?;
    let (bus_fields, link_fields) = (of_way(bus), of_port(&base, link));
    let drives = drives.into_iter().map(|head| (Part::Drive, &head.name, &head.uncertain[..]));
    let parts = [
        (Part::Controller, &controller.name, &controller.uncertain[..]),
        (Part::Host, &host.name, &host.uncertain[..]),
        (Part::Bus, &bus.name, &bus_fields[..]),
        (Part::Link, &link.name, &link_fields[..]),
    ];
    let of_part = |(part, whose, fields): (Part, &String, &[String])| {
        let value = |field: &String| Uncertain { part, whose: whose.clone(), field: field.clone() };
        fields.iter().map(value).collect::<Vec<_>>()
    };
    Ok(drives.chain(parts).flat_map(of_part).collect())
}

/// For a shared way: if its directions take turns it has one rate, the one for reads.
fn of_way(bus: &BusProfile) -> Vec<String> {
    let read = |field: &&String| bus.duplex == Duplex::Full || !field.ends_with(".write_mbs");
    bus.uncertain.iter().filter(read).cloned().collect()
}

/// For the ports' link: all values if drives share it. If it slows a drive down, only the values that the drive then
/// uses: one rate for both directions, and for an SSD the time of a command.
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
