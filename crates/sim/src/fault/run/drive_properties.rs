//! The drives of a run: each draws some of its properties for itself.

use openraid_core::events::DriveInfo;
use openraid_format::PPL_AREA;
use openraid_units::{Nanos, Sectors};

use crate::drive::{DriveSpec, FreshContent, Latency};
use crate::fault::scenario::Scenario;
use crate::random::Random;
use crate::rig::BEFORE_DATA;

/// The source of the random draws of a run's drives.
pub(super) const DRIVES: u64 = 12;

/// The drives with which a run begins.
#[must_use]
pub fn drives_of(scenario: &Scenario) -> Vec<DriveSpec> {
    draw(scenario, &mut Random::derived(scenario.seed, DRIVES))
}

/// The properties of a drive, and what the engine gets to know of them. The compiler rejects a new property until it is
/// in this list.
#[must_use]
pub fn value_of_each_property(spec: &DriveSpec) -> Vec<(&'static str, String)> {
    macro_rules! each {
        ($kind:ident $value:expr, $($field:ident),*) => {{
            let $kind { $($field),* } = $value;
            [$((concat!(stringify!($kind), " ", stringify!($field)), format!("{:?}", $field))),*]
        }};
    }
    let properties = each!(
        DriveSpec * spec,
        capacity,
        block,
        latency,
        flush_times,
        rotational,
        discard,
        discard_zeroes,
        write_zeroes,
        volatile_cache,
        fresh,
        room_wait,
        flush_waits
    );
    let known = each!(
        DriveInfo spec.info(),
        capacity, block, rotational, discard, discard_zeroes, write_zeroes, room_wait, flush_waits
    );
    properties.into_iter().chain(known).collect()
}

/// The drives of all sets, and their spares.
pub(super) fn draw(scenario: &Scenario, random: &mut Random) -> Vec<DriveSpec> {
    let of_set = scenario.shape.members + scenario.spares;
    let numbers = (0..scenario.spans).flat_map(|_| 0..of_set);
    numbers.map(|number| spec(scenario, number, scenario.junk, random)).collect()
}

/// A drive for a member of this number.
pub(super) fn spec(scenario: &Scenario, number: u16, junk: bool, random: &mut Random) -> DriveSpec {
    let shape = &scenario.shape;
    let slot = number.min(shape.members - 1);
    let data = shape.member_data(slot);
    let log = if scenario.ppl { PPL_AREA } else { Sectors::ZERO };
    let capacity = if shape.is_passthrough() { data } else { BEFORE_DATA + log + data + scenario.extras.far };
    let fresh = if junk { FreshContent::Junk(random.bits()) } else { FreshContent::Zeroes };
    // Some drives are slower than others.
    let slow = random.chance(1, 4);
    let latency = scenario.drive.latency;
    let latency = Latency { most: if slow { latency.most * 4 } else { latency.most }, ..latency };
    // From a copy of the generator: draws of runs without such storage do not change.
    let waits = scenario.drive.room_wait != Nanos::ZERO && random.clone().chance(1, 2);
    let (room_wait, flush_waits) =
        if waits { (scenario.drive.room_wait, scenario.drive.flush_waits) } else { (Nanos::ZERO, false) };
    let block = shape.block(slot);
    let spec = DriveSpec { capacity, block, fresh, latency, room_wait, flush_waits, ..scenario.drive };
    match scenario.extras.mixed {
        true => of_own_kind(spec, random),
        false => spec,
    }
}

/// A drive that draws each of its properties for itself.
fn of_own_kind(spec: DriveSpec, random: &mut Random) -> DriveSpec {
    let discard = random.chance(5, 6);
    let spins = random.chance(1, 4);
    DriveSpec {
        latency: if spins { Latency::SPINDLE } else { spec.latency },
        flush_times: *random.pick(&[1, 1, 4, 20]),
        rotational: random.chance(1, 2),
        discard,
        discard_zeroes: discard && random.chance(3, 4),
        write_zeroes: random.chance(1, 2),
        volatile_cache: random.chance(3, 4),
        ..spec
    }
}
