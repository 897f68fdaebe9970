//! The test bed of a simulated system, and the limits of its data paths.

use super::super::data::Fact;
use crate::cell::{bus, drive_state, machine_spec, ways, Caches, Ceiling, CellError, CellSpec};
use crate::metrics::Scheme;
use crate::plan::uncertain;
use crate::target::{shared_way, ssd_state};
use openraid_models::{BusProfile, DriveKind, Library};
use openraid_sim::machine::MachineSpec;
use openraid_units::Bytes;

/// Converts bytes per second to MB/s.
fn mbps(rate: openraid_models::Rate) -> f64 {
    rate.0 as f64 / 1e6
}

/// The ceilings of the bus of a cell's machine and of its controller's data path.
///
/// # Errors
/// A profile does not exist.
pub fn limits(library: &Library, cell: &CellSpec) -> Result<Vec<Ceiling>, CellError> {
    ways(library, &machine_spec(library, cell)?)
}

/// The parts of a simulated system, for the block at the end of a report. They are those of the machine that runs the
/// cell.
///
/// # Errors
/// A profile does not exist.
pub fn bed(library: &Library, cell: &CellSpec) -> Result<Vec<Fact>, CellError> {
    let spec = machine_spec(library, cell)?;
    let (controller, drive) = (&spec.controller, &spec.drives[0]);
    let host = library.host(&controller.host)?;
    let mut facts = vec![
        Fact::new("target", format!("simulated: the engine itself on models, profile {}", controller.head.name)),
        Fact::new("controller", format!("{} ({})", controller.head.title, controller.head.year)),
        Fact::new("drives", drive.head.title.clone()),
        Fact::new("bus", bus_words(library, &spec)?),
        Fact::new("host", host.head.title.clone()),
        Fact::new("cache", Caches::of(&spec).to_string()),
        Fact::new("chunk", amount(spec.chunk())),
        Fact::new("seed", cell.seed.to_string()),
        Fact::new("version", crate::run::build(library)),
    ];
    if matches!(drive.kind, DriveKind::Ssd(_)) {
        facts.insert(3, Fact::new("state of the SSDs", ssd_state(drive_state(cell))));
    }
    let way = shared_way(&spec, library).map_err(|error| CellError::Unknown(error.to_string()))?;
    if let Some((name, way)) = way {
        // The card's bus comes after the host bus, because it is between that bus and the drives.
        let bus = facts.iter().position(|fact| fact.name == "bus").map_or(facts.len(), |place| place + 1);
        facts.insert(bus, Fact::new(name, way));
    }
    let uncertain: Vec<String> = uncertain(library, cell)?.iter().map(ToString::to_string).collect();
    if !uncertain.is_empty() {
        facts.push(Fact::new("estimated parameters", uncertain.join(", ")));
    }
    Ok(facts)
}

/// The bus as slot and card have agreed on it, with its rates, and the card's own if that is another; for drives in slots
/// that share no bus, their link.
///
/// # Errors
/// The bus does not exist.
pub fn bus_words(library: &Library, spec: &MachineSpec) -> Result<String, CellError> {
    if spec.has_slots() {
        return Ok(format!("{} of its own for each drive", library.bus(&spec.drives[0].link)?.title));
    }
    let bus = bus(library, spec)?;
    let (read, write) = (mbps(bus.read.value), mbps(bus.write.value));
    Ok(format!("{}: {read:.0} MB/s read, {write:.0} MB/s written{}", bus.title, card_bus(library, spec, bus)))
}

/// The card's own bus, if slot and card have agreed on a lower rate.
fn card_bus(library: &Library, spec: &MachineSpec, agreed: &BusProfile) -> String {
    let card = spec.controller.card_bus.as_ref().and_then(|name| library.bus(name).ok());
    card.filter(|card| card.name != agreed.name)
        .map_or_else(String::new, |card| format!("; the card has {}", card.title))
}

fn amount(bytes: Bytes) -> String {
    super::super::format::bytes(bytes.get() as f64)
}

/// The name and formula of a rating, for printing with its figures.
pub fn formula(scheme: Scheme, pattern: &crate::cell::Pattern) -> String {
    format!("rating {} = {}; qN is IOPS at depth N", scheme.name(), scheme.formula(pattern))
}
