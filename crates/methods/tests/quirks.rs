//! Every quirk that a profile may have changes the result of some machine.

use openraid_methods::cell::{machine_spec, run_cell_with, Axes, CellSpec, Direction, Effort, Pattern, Recreated};
use openraid_models::{Library, Quirk, QuirkKind, QuirkValue, Sourced, QUIRKS};

/// A cell in which a quirk has an effect: its name, its value there (if it is a number), the array and the load.
type Row = (&'static str, f64, &'static str, &'static str, Pattern, Axes);

fn rows() -> Vec<Row> {
    let depth = |qd| Axes { qd: Some(qd), ..Axes::default() };
    let stream = |op, bs, qd| Axes { op: Some(op), bs: Some(bs), ..depth(qd) };
    let streams = |op, th| Axes { op: Some(op), th: Some(th), ..Axes::default() };
    let mixed = |rd, qd| Axes { rd: Some(rd), ..depth(qd) };
    let (read, write) = (Direction::Read, Direction::Write);
    let streaming = stream(write, 1 << 20, 4);
    let recreated = Axes { after: Some(Recreated::Recreate), ..streaming.clone() };
    let (in_order, at_random, clients) = (Pattern::Sequential, Pattern::Database, Pattern::MultiThreaded);
    vec![
        ("ra_window_kib", 128.0, "3ware-9650se", "raid0x4", clients.clone(), streams(read, 2)),
        ("ra_restart_on_stripe_hop", 0.0, "areca-1220", "raid0x4", in_order.clone(), stream(read, 65_536, 1)),
        ("mirror_split_min_kib", 1024.0, "3ware-9650se", "raid1x2", in_order.clone(), stream(read, 512 << 10, 4)),
        ("parity_open_stripes", 3.0, "3ware-9650se", "raid5x4", clients, streams(write, 3)),
        ("partial_stripes_through", 0.0, "3ware-8506-8", "raid5x4", at_random.clone(), mixed(0, 1)),
        ("xor_op_us", 2_000.0, "lsi-9260-8i", "raid5x8", in_order.clone(), stream(write, 65_536, 4)),
        ("parity_width_cost_us", 500.0, "lsi-9260-8i", "raid5x8", in_order.clone(), stream(write, 65_536, 4)),
        ("stripe_map_overhead_us", 2_000.0, "lsi-9260-8i", "raid0x8", at_random.clone(), mixed(100, 64)),
        ("width_us", 50.0, "3ware-9650se", "raid0x4", in_order.clone(), stream(read, 65_536, 1)),
        ("read_kib_us", 13.5, "3ware-9650se", "raid0x4", in_order.clone(), stream(read, 65_536, 1)),
        ("nested_level_overhead_us", 500.0, "lsi-9260-8i", "raid50x8", in_order.clone(), stream(read, 65_536, 1)),
        ("redundancy_stage_mbs", 410.0, "lsi-9260-8i", "raid5x8", in_order.clone(), stream(write, 65_536, 4)),
        ("partial_stripe_us", 500.0, "intel-rst", "raid5x4", at_random.clone(), mixed(0, 64)),
        ("nested_qd_cap", 4.0, "lsi-9260-8i", "raid50x8", at_random.clone(), mixed(100, 64)),
        ("write_pipeline_depth", 1.0, "3ware-9650se", "raid0x4", at_random.clone(), mixed(0, 16)),
        ("adapt_mode_state", 0.0, "lsi-9260-8i", "raid5x8", in_order.clone(), recreated.clone()),
        ("adapt_after_requests", 200.0, "lsi-9260-8i", "raid5x8", in_order.clone(), streaming),
        ("adapt_persist_across_arrays", 0.0, "lsi-9260-8i", "raid5x8", in_order.clone(), recreated),
        ("host_cpu_us_per_io", 500.0, "intel-rst", "raid0x6", at_random.clone(), mixed(100, 64)),
        ("hba_fc_write_penalty", 0.0, "lsi-sas3041e-r", "single", in_order, stream(write, 65_536, 1)),
        ("command_slots", 2.0, "3ware-9650se", "raid0x4", at_random, mixed(100, 64)),
    ]
}

/// Requests per second with and without the quirk.
fn with_and_without(library: &Library, (name, strength, system, subject, pattern, axes): &Row) -> [f64; 2] {
    let subject = subject.parse().unwrap_or_else(|error| panic!("{error}"));
    let cell = CellSpec::new(system, subject, pattern.clone()).with(axes.clone());
    let cell = CellSpec { effort: Effort { requests: 2_000, ..Effort::QUICK }, ..cell };
    let (_, kind, _) = QUIRKS.iter().find(|(known, ..)| known == name).expect("a quirk that there is");
    let value = match kind {
        QuirkKind::Number => QuirkValue::Number(Sourced::exact(*strength)),
        QuirkKind::Truth => QuirkValue::Truth(true),
        QuirkKind::Text => QuirkValue::Text("a test".into()),
    };
    [Some(value), None].map(|value| {
        let mut spec = machine_spec(library, &cell).unwrap_or_else(|error| panic!("{error}"));
        spec.controller.quirks.retain(|quirk| quirk.name != *name);
        let quirk = |value| Quirk { name: (*name).into(), value, explains: "a test".into() };
        spec.controller.quirks.extend(value.map(quirk));
        run_cell_with(library, &cell, &spec).unwrap_or_else(|error| panic!("{name}: {error}")).iops
    })
}

#[test]
fn every_quirk_has_an_effect() {
    let (library, rows) = (Library::builtin(), rows());
    let known: Vec<&str> = QUIRKS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), known, "each has a cell here, in the same order");
    for row in &rows {
        let [with, without] = with_and_without(&library, row);
        println!("{}: {with:.1} with, {without:.1} without", row.0);
        assert!((with / without - 1.0).abs() > 0.02, "{}: {with} with, {without} without", row.0);
    }
}

#[test]
fn learned_state_outlives_an_array_only_if_the_firmware_keeps_it() {
    let library = Library::builtin();
    let row = |name| rows().into_iter().find(|row: &Row| row.0 == name).expect("a row of this name");
    let [kept, forgotten] = with_and_without(&library, &row("adapt_persist_across_arrays"));
    let [_, never] = with_and_without(&library, &row("adapt_mode_state"));
    // Without the quirk, an array that is created again is written as slowly as by a controller that never learns. With
    // the quirk, streams make the controller trust them.
    assert!(kept < 0.5 * forgotten, "{kept} {forgotten}");
    assert!((forgotten / never - 1.0).abs() < 0.02, "{forgotten} {never}");
}
