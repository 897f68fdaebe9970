//! Values of a machine's profiles that have a range: what every answer about that machine is uncertain by.

use crate::cell::{machine_spec, CellError, CellSpec};
use openraid_models::{Edge, Edges, Library, LookupError};
use openraid_sim::timing::machine::MachineSpec;
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
            Part::Drive => spec.drives = vec![library.drive_at(whose, &edges)?],
            Part::Controller => spec.controller = library.controller_at(whose, &edges)?,
            Part::Host => spec.host = Some(library.host_at(whose, &edges)?),
            Part::Bus => spec.bus = Some(library.bus_at(whose, &edges)?),
            Part::Link => spec.link = Some(library.bus_at(whose, &edges)?),
        }
        Ok(())
    }
}

/// Those of a cell's machine, profile by profile: drive, controller with its quirks, host, bus, and the link of the
/// controller's ports where drives share it or are faster. A drive's own link is part of its own profile.
///
/// # Errors
/// A profile that is not there.
pub fn uncertain(library: &Library, cell: &CellSpec) -> Result<Vec<Uncertain>, CellError> {
    let base = machine_spec(library, cell)?;
    let (drive, controller) = (&base.drives[0].head, &base.controller.head);
    let host = &library.host(&base.controller.host)?.head;
    let bus = library.bus(base.bus.as_ref().map_or(&base.controller.bus, |bus| &bus.name))?;
    let link = library.bus(&base.controller.link)?;
    let limits = base.controller.drives_per_link.value > 1 || base.is_held_back(&base.drives[0], link);
    let ports: &[String] = if limits { &link.uncertain } else { &[] };
    let parts = [
        (Part::Drive, &drive.name, &drive.uncertain[..]),
        (Part::Controller, &controller.name, &controller.uncertain[..]),
        (Part::Host, &host.name, &host.uncertain[..]),
        (Part::Bus, &bus.name, &bus.uncertain[..]),
        (Part::Link, &link.name, ports),
    ];
    let of_part = |(part, whose, fields): (Part, &String, &[String])| {
        let value = |field: &String| Uncertain { part, whose: whose.clone(), field: field.clone() };
        fields.iter().map(value).collect::<Vec<_>>()
    };
    Ok(parts.into_iter().flat_map(of_part).collect())
}
