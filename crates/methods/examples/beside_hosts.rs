//! What hosts of RAID 5 of four wait while it changes to five members, and while it is rebuilt: the 99th percentile of reads and of
//! writes, divided by the one without the work, and MB/s of the work.
//!
//! `cargo run --profile hunt -p openraid-methods --example beside_hosts -- DRIVE LOAD DEPTH...`

use openraid_methods::cell::{machine_spec, run_cell_with, ArrayState, Axes, CellResult, CellSpec, Effort, Pattern};
use openraid_models::Library;

/// Percentages of the work that are done: a change writes beyond the old end of the array from 75 on.
const PLACES: [u8; 3] = [0, 50, 90];

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [drive, load, depths @ ..] = words.as_slice() else { return Err("DRIVE LOAD DEPTH...".into()) };
    let pattern = match load.as_str() {
        "file-server" => Pattern::FileServer,
        "database" => Pattern::Database,
        other => return Err(format!("{other}: file-server or database")),
    };
    let library = Library::builtin();
    println!("{:>5} {:<9} {:>3} %  {:>6} {:>6} {:>7}", "DEPTH", "WORK", "AT", "READS", "WRITES", "MB/S");
    for word in depths {
        let depth = word.parse().map_err(|error| format!("{word}: {error}"))?;
        let axes = Axes { qd: Some(depth), drive: Some(drive.clone()), ..Axes::default() };
        let base = CellSpec::new("openraid", "raid5x4".parse().expect("an array"), pattern.clone()).with(axes);
        let run = |state, percent: u8| {
            let cell = CellSpec { state, effort: Effort::NORMAL, ..base.clone() };
            let mut spec = machine_spec(&library, &cell).map_err(|error| error.to_string())?;
            spec.array.rebuilt_percent = percent;
            spec.array.change.iter_mut().for_each(|change| change.moved_percent = percent);
            run_cell_with(&library, &cell, &spec).map_err(|error| error.to_string())
        };
        let slow = |result: &CellResult| [&result.reads, &result.writes].map(|of| of.latency.percentile(99.0) as f64);
        let changing = ArrayState::Changing("raid5x5".parse().expect("an array"));
        for (name, without, with) in
            [("change", ArrayState::Healthy, changing), ("rebuild", ArrayState::Degraded(1), ArrayState::Rebuilding)]
        {
            let alone = slow(&run(without, 0)?);
            let ms = alone.map(|nanos| nanos / 1e6);
            println!("{depth:>5} {name:<9} {:>3} ms {:>6.2} {:>6.2}", "", ms[0], ms[1]);
            for place in PLACES {
                let result = run(with, place)?;
                let [reads, writes] = slow(&result);
                let rate = result.reshape_mbps.or(result.rebuild_mbps).unwrap_or(0.0);
                let (reads, writes) = (reads / alone[0], writes / alone[1]);
                println!("{depth:>5} {name:<9} {place:>3}    {reads:>6.2} {writes:>6.2} {rate:>7.1}");
            }
        }
    }
    Ok(())
}
