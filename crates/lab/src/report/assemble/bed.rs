//! The test bed of a simulated system, and what its ways can carry.

use super::super::data::Fact;
use crate::cell::{drive_state, machine_spec, CacheMode, CellError, CellSpec};
use crate::metrics::Scheme;
use crate::plan::uncertain;
use crate::target::{shared_port, ssd_state};
use openraid_models::{BusProfile, DriveKind, Library, LookupError};
use openraid_sim::timing::machine::MachineSpec;
use openraid_units::Bytes;

/// What a way can carry, MB/s, 10^6 bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Ceiling {
    /// Its name.
    pub name: String,
    /// Towards the host.
    pub read_mbps: f64,
    /// From the host.
    pub write_mbps: f64,
}

/// Bytes per second as MB/s.
fn mbps(rate: openraid_models::Rate) -> f64 {
    rate.0 as f64 / 1e6
}

/// The bus that a machine has.
fn bus<'a>(library: &'a Library, spec: &'a MachineSpec) -> Result<&'a BusProfile, LookupError> {
    spec.bus.as_ref().map_or_else(|| library.bus(&spec.controller.bus), Ok)
}

/// What the bus of a cell's machine and its controller's data path can carry.
///
/// # Errors
/// A profile that is not there.
pub fn limits(library: &Library, cell: &CellSpec) -> Result<Vec<Ceiling>, CellError> {
    let spec = machine_spec(library, cell)?;
    let (controller, bus) = (&spec.controller, bus(library, &spec)?);
    let mut found =
        vec![Ceiling { name: bus.title.clone(), read_mbps: mbps(bus.read.value), write_mbps: mbps(bus.write.value) }];
    if let Some(path) = &controller.data_path {
        found.push(Ceiling {
            name: "data path".into(),
            read_mbps: mbps(path.read.value),
            write_mbps: mbps(path.write.value),
        });
    }
    Ok(found)
}

/// What a simulated system consists of, for the block at the end of a report: that of the machine which the cell is run on.
///
/// # Errors
/// A profile that is not there.
pub fn bed(library: &Library, cell: &CellSpec) -> Result<Vec<Fact>, CellError> {
    let spec = machine_spec(library, cell)?;
    let (controller, drive, bus) = (&spec.controller, &spec.drives[0], bus(library, &spec)?);
    let host = library.host(&controller.host)?;
    let cache = spec.cache_bytes.unwrap_or(controller.cache.value);
    let way = match cell.axes.cache {
        Some(CacheMode::WriteThrough) => ", write-through",
        Some(CacheMode::WriteBack) => ", write-back",
        None => "",
    };
    let cache = format!("{}{way}", amount(cache));
    let mut facts = vec![
        Fact::new("target", format!("simulated: the engine itself on models, profile {}", controller.head.name)),
        Fact::new("controller", format!("{} ({})", controller.head.title, controller.head.year)),
        Fact::new("drives", drive.head.title.clone()),
        Fact::new(
            "bus",
            format!("{}: {:.0} MB/s read, {:.0} MB/s written", bus.title, mbps(bus.read.value), mbps(bus.write.value)),
        ),
        Fact::new("host", host.head.title.clone()),
        Fact::new("cache", cache),
        Fact::new("chunk", amount(spec.chunk())),
        Fact::new("seed", cell.seed.to_string()),
        Fact::new("version", crate::run::build(library)),
    ];
    if matches!(drive.kind, DriveKind::Ssd(_)) {
        facts.insert(3, Fact::new("state of the SSDs", ssd_state(drive_state(cell))));
    }
    let port = shared_port(&spec, library).map_err(|error| CellError::Unknown(error.to_string()))?;
    if let Some(port) = port {
        // Behind the bus: it is on the way from there to the drives.
        let bus = facts.iter().position(|fact| fact.name == "bus").map_or(facts.len(), |place| place + 1);
        facts.insert(bus, Fact::new("shared port", port));
    }
    let uncertain: Vec<String> = uncertain(library, cell)?.iter().map(ToString::to_string).collect();
    if !uncertain.is_empty() {
        facts.push(Fact::new("values without a sheet", uncertain.join(", ")));
    }
    Ok(facts)
}

fn amount(bytes: Bytes) -> String {
    super::super::format::bytes(bytes.get() as f64)
}

/// A rating's name and formula, to be printed with its figures.
pub fn formula(scheme: Scheme, pattern: &crate::cell::Pattern) -> String {
    format!("rating {scheme:?} = {}; qN is IOPS at depth N", scheme.formula(pattern))
}
