//! A result names the part that limits an array: the part with the highest load, whichever it is.

use openraid_methods::cell::{run_cell, Axes, CacheMode, CellResult, CellSpec, Direction, Effort, PartName, Pattern};
use openraid_models::Library;

fn result(system: &str, subject: &str, pattern: Pattern, axes: Axes) -> CellResult {
    let cell = CellSpec::new(system, subject.parse().unwrap(), pattern).with(axes);
    let cell = CellSpec { effort: Effort { requests: 4_000, ..Effort::QUICK }, ..cell };
    run_cell(&Library::builtin(), &cell).unwrap_or_else(|error| panic!("{system} {subject}: {error}"))
}

fn share(result: &CellResult, name: PartName) -> f64 {
    result.busy(name).unwrap_or(0.0)
}

/// Checks that `name` is the limit, and that no other part is as close to its limit.
fn limited_by(result: &CellResult, name: PartName) {
    let limit = result.bottleneck().expect("a simulated machine tells");
    assert!(limit.name == name && limit.busy >= 0.95, "{name}: {:?}", result.components);
}

#[test]
fn every_data_path_is_named_where_it_makes_the_plateau() {
    let library = Library::builtin();
    let mut found = 0;
    for controller in library.controllers() {
        let Some(path) = &controller.data_path else { continue };
        found += 1;
        let name = &controller.head.name;
        for (op, rate) in [(Direction::Read, path.read.value.0), (Direction::Write, path.write.value.0)] {
            let axes = Axes { op: Some(op), bs: Some(1 << 20), qd: Some(4), ..Axes::default() };
            let result = result(name, "raid0x4", Pattern::Sequential, axes.clone());
            // The rate shows that the path is the limit.
            let mbps = rate as f64 / 1e6;
            assert!((result.mbps / mbps - 1.0).abs() < 0.02, "{name} {op}: {} of {mbps} MB/s", result.mbps);
            limited_by(&result, PartName::DataPath);
        }
    }
    assert!(found > 0, "no profile has a data path");
}

#[test]
fn a_data_path_is_distinguished_from_a_bus_with_two_directions() {
    let axes = Axes {
        op: Some(Direction::Read),
        bs: Some(1 << 20),
        qd: Some(4),
        bus: Some("pcie1_x8".into()),
        ..Axes::default()
    };
    let result = result("3ware-8506-8", "raid0x4", Pattern::Sequential, axes);
    limited_by(&result, PartName::DataPath);
    let library = Library::builtin();
    let bus = library.bus("pcie1_x8").unwrap().read.value.0 as f64 / 1e6;
    let expected = result.mbps / bus;
    assert!(
        (share(&result, PartName::Bus) / expected - 1.0).abs() < 0.05,
        "{} of {expected}",
        share(&result, PartName::Bus)
    );
}

#[test]
fn the_port_of_an_expander_is_named_where_it_is_full_in_either_direction() {
    for op in [Direction::Read, Direction::Write] {
        let axes = Axes {
            op: Some(op),
            bs: Some(4 << 20),
            qd: Some(8),
            drive: Some("pm893_960".into()),
            cache: Some(CacheMode::WriteThrough),
            ..Axes::default()
        };
        let result = result("openraid-expander", "raid0x16", Pattern::Sequential, axes);
        limited_by(&result, PartName::Channel);
    }
}

#[test]
fn a_solid_state_drive_at_its_plateau_is_busy() {
    for (op, subject) in [(Direction::Read, "single"), (Direction::Read, "s3500"), (Direction::Read, "s3700")] {
        let at = |qd| {
            let axes = Axes { op: Some(op), bs: Some(4096), qd: Some(qd), workers: Some(2), ..Axes::default() };
            result("intel-rst", subject, Pattern::Random, axes)
        };
        let (less, more) = (at(16), at(32));
        assert!(more.iops < less.iops * 1.02, "{subject}: {} and {} requests/s are no plateau", less.iops, more.iops);
        assert!(more.members[0].busy >= 0.95, "{subject}: {:?}", more.members);
    }
}

#[test]
fn threads_of_the_host_that_are_full_are_named() {
    let axes = Axes {
        op: Some(Direction::Read),
        bs: Some(4096),
        qd: Some(64),
        workers: Some(2),
        drive: Some("s3500_480".into()),
        ..Axes::default()
    };
    let result = result("intel-rst", "raid0x6", Pattern::Random, axes);
    let library = Library::builtin();
    let most = 2e9 / library.host("win7-haswell").unwrap().read.value.0 as f64;
    assert!((result.iops / most - 1.0).abs() < 0.02, "{} of {most} requests/s", result.iops);
    limited_by(&result, PartName::Worker);
    assert!(share(&result, PartName::Host) < 0.6, "two of four processors: {:?}", result.components);
}

#[test]
fn stripes_that_a_controller_puts_together_are_named_where_writes_wait_for_them() {
    let axes = Axes { rd: Some(0), qd: Some(64), ..Axes::default() };
    let result = result("3ware-9650se", "raid5x4", Pattern::Database, axes);
    limited_by(&result, PartName::OpenStripes);
    // An array without parity has no open stripes.
    let axes = Axes { rd: Some(0), qd: Some(64), ..Axes::default() };
    assert_eq!(share(&self::result("3ware-9650se", "raid0x4", Pattern::Database, axes), PartName::OpenStripes), 0.0);
}
