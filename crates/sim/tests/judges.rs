//! Other simulators as judges: the machine of this project runs their cells, and the results are compared one by one.
//!
//! `tools/judges.py` recorded their results; docs/lab/judges.md explains the differences. `make soak` compares all cells.
//! With `OPENRAID_BLESS=1` it writes the tables of that page.

#![allow(clippy::cast_possible_truncation)] // small numbers of a table

#[path = "judges/cells.rs"]
mod cells;
#[path = "judges/queues.rs"]
mod queues;
#[path = "judges/run.rs"]
mod run;
#[path = "machine/support.rs"]
#[allow(dead_code)] // a part of it
mod support;

use std::fmt::Write;

use cells::{disksim, mqsim, Cell};
use run::{error, Profiles};

/// A cell that ran: its group, and the difference of its mean response from the other simulator's.
struct Run {
    group: String,
    name: String,
    theirs: f64,
    ours: f64,
    error: f64,
}

/// All cells with the parameters of the other simulator, followed by the cells of drives in this project's library.
fn runs(cells: &[Cell]) -> Vec<Run> {
    let profiles = Profiles::new();
    let run = |cell: &Cell, ours: f64, group: String| {
        let error = error(cell, ours) * 100.0;
        Run { group, name: cell.to_string(), theirs: cell.mean_ms, ours, error }
    };
    let equal = cells.iter().map(|cell| run(cell, run::run(cell, &profiles.made_equal(cell), true), cell.group()));
    let shipped = cells.iter().filter_map(|cell| {
        let ours = run::run(cell, profiles.shipped(cell)?, false);
        Some(run(cell, ours, format!("{} as shipped", cell.group())))
    });
    equal.chain(shipped).collect()
}

/// Number of runs with an error of at most `percent`.
fn within<'a>(runs: impl IntoIterator<Item = &'a Run>, percent: f64) -> usize {
    runs.into_iter().filter(|run| run.error.abs() <= percent).count()
}

/// The table of groups.
fn tables(runs: &[Run]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    runs.iter().for_each(|run| match groups.contains(&run.group.as_str()) {
        true => {}
        false => groups.push(&run.group),
    });
    let mut text =
        String::from("| group | cells | within 5 % | within 10 % | from | to |\n|---|---|---|---|---|---|\n");
    for group in groups {
        let of: Vec<&Run> = runs.iter().filter(|run| run.group == group).collect();
        let errors = || of.iter().map(|run| run.error);
        let (least, most) = (errors().fold(f64::MAX, f64::min), errors().fold(f64::MIN, f64::max));
        let (five, ten) = (within(of.iter().copied(), 5.0), within(of.iter().copied(), 10.0));
        writeln!(text, "| {group} | {} | {five} | {ten} | {least:+.1} % | {most:+.1} % |", of.len()).expect("memory");
    }
    text
}

/// Compare all cells of a simulator. `least` has three minimum numbers: cells with the same parameters within 5
/// percent, the same within 10 percent, and cells of library drives within 10 percent. The numbers may be raised, but
/// not lowered.
fn agree(simulator: &str, cells: &[Cell], least: [usize; 3]) {
    let runs = runs(cells);
    for Run { name, theirs, ours, error, .. } in &runs {
        println!("{name:44} {theirs:9.3} {ours:9.3} {error:+6.1} %");
    }
    let (equal, shipped) = runs.split_at(cells.len());
    let found = [within(equal, 5.0), within(equal, 10.0), within(shipped, 10.0)];
    let tables = tables(&runs);
    println!("{simulator}: {found:?} of {} and {}\n{tables}", equal.len(), shipped.len());
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        bless(simulator, &tables);
    }
    assert!(found.iter().zip(least).all(|(found, least)| *found >= least), "{found:?} where {least:?} were");
}

/// Write the tables of a simulator to docs/lab/judges.md.
fn bless(simulator: &str, tables: &str) {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab/judges.md");
    let text = std::fs::read_to_string(page).expect("the page is there");
    let (begin, end) = (format!("<!-- {simulator} -->\n"), format!("<!-- end of {simulator} -->"));
    let (before, rest) = text.split_once(&begin).expect("a place for the tables");
    let (_, after) = rest.split_once(&end).expect("the end of that place");
    std::fs::write(page, format!("{before}{begin}\n{tables}\n{end}{after}")).expect("it can be written");
}

#[test]
#[ignore = "all cells"]
fn as_many_cells_of_disksim_agree_as_before() {
    agree("DiskSim", &disksim(), [212, 219, 70]);
}

#[test]
#[ignore = "all cells"]
fn as_many_cells_of_mqsim_agree_as_before() {
    agree("MQSim", &mqsim(), [12, 13, 0]);
}

#[test]
fn single_requests_take_as_long_as_in_disksim() {
    // A slice of the cells: one request at a time, and fewer requests.
    let profiles = Profiles::new();
    let few = disksim().into_iter().filter(|cell| cell.depth == 1 && cell.group().starts_with("4 KiB"));
    let wrong: Vec<String> = few
        .filter_map(|cell| {
            let cell = Cell { requests: 2000, ..cell };
            let off = error(&cell, run::run(&cell, &profiles.made_equal(&cell), true));
            (off.abs() > 0.03).then(|| format!("{cell}: {:+.1} %", off * 100.0))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_simulator_is_built_in_a_new_folder_from_the_source_that_is_given() {
    let folder = std::env::temp_dir().join(format!("openraid-judges-{}", std::process::id()));
    let source = folder.join("source");
    std::fs::create_dir_all(source.join("src")).expect("made");
    let build = |from: &std::path::Path| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/judges.py");
        let command = std::process::Command::new("python3")
            .args([script, "build-mqsim"])
            .args([from, &folder.join("built")])
            .output();
        let output = command.expect("python3 starts");
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (made, words) = build(&source);
    assert!(!made && words.contains("it has no src/main.cpp; name the folder of the source"), "{words}");
    std::fs::write(source.join("src/main.cpp"), "").expect("written");
    std::fs::write(source.join("old.o"), "").expect("written");
    std::fs::write(source.join("Makefile"), "all:\n\t@test ! -e old.o && touch MQSim\n").expect("written");
    let (made, words) = build(&source);
    let next = format!("next: tools/judges.py mqsim {}/built/MQSim ORIGIN", folder.display());
    assert!(made && words.contains(&next) && folder.join("built/MQSim").exists(), "{words}");
    assert!(!source.join("MQSim").exists() && source.join("old.o").exists(), "the source was changed");
    let (made, words) = build(&source);
    assert!(!made && words.contains("built: it exists; name a new folder"), "{words}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
