//! `openraid-lab compare`: compares two reviews.

use std::path::Path;

use openraid_methods::compare::{sides, trials, ComparedCell, Comparison};
use openraid_methods::report;
use openraid_methods::review::{ReviewResults, REVIEW_SCHEMA};
use openraid_methods::run::write_atomically;
use serde::Serialize;

use crate::arguments::CompareArguments;
use crate::shared_parts::may_be_written;
use openraid::failure::{Exit, Failure, Outcome};
use openraid::output::table::TextTable;
use openraid::quantity::{counted, figure};
use openraid::verb::Context;

/// Two reviews, cell by cell.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ComparisonBody {
    /// File of the first review.
    a: String,
    /// File of the second review.
    b: String,
    /// Short name of the first review: the part of its name that differs from the other one.
    a_is: String,
    /// Short name of the second review.
    b_is: String,
    /// Geometric mean of second by first, of all pairs; null without pairs.
    mean_ratio: Option<f64>,
    /// The pairs.
    #[serde(flatten)]
    comparison: Comparison,
}

/// Runs the verb.
///
/// # Errors
/// A review cannot be read, or the two reviews have no common cell.
pub fn run(arguments: &CompareArguments, context: &Context) -> Outcome {
    if let Some(file) = &arguments.out {
        may_be_written(file)?;
    }
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    let mut comparison = Comparison::of(&a, &b);
    if comparison.pairs.is_empty() {
        return Err(Failure::usage(
            "the two reviews have no cell in common; run the same methods over the same arrays",
        ));
    }
    let size = |pair: &ComparedCell| pair.change_percent.abs();
    comparison.pairs.sort_by(|one, two| size(two).total_cmp(&size(one)).then_with(|| one.cell.cmp(&two.cell)));
    let (first, second) = trials(&a, &b);
    let given = |path: &Path| path.display().to_string();
    let (a_is, b_is) = sides((&given(&arguments.a), &a), (&given(&arguments.b), &b));
    let body = ComparisonBody { a: a.target, b: b.target, a_is, b_is, mean_ratio: comparison.mean_ratio(), comparison };
    if let Some(file) = &arguments.out {
        let page = report::assemble::comparison((&body.a_is, &body.b_is), &first, &second);
        write_atomically(file, report::render(&page).as_bytes()).map_err(Failure::failed)?;
    }
    let text = text(&body, arguments.top);
    Ok(context.output.answer(Exit::Fine, &body, &text))
}

/// Reads the results of a review from its folder or its file.
///
/// # Errors
/// There are no results, or this program does not know their format.
pub fn read(path: &Path) -> Result<ReviewResults, Failure> {
    let file = if path.is_dir() { path.join("results.json") } else { path.to_path_buf() };
    let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(&file).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let results: ReviewResults = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("no results of a review: {error}; name the folder of one")))?;
    if results.schema != REVIEW_SCHEMA {
        return Err(wrong(format!("its format is {:?}; only {REVIEW_SCHEMA:?} is understood", results.schema)));
    }
    Ok(results)
}

fn text(body: &ComparisonBody, top: usize) -> String {
    let pairs = &body.comparison.pairs;
    let mut lines = vec![
        counted(pairs.len() as u64, "cell in common", "cells in common"),
        format!("  A: {}", body.a_is),
        format!("  B: {}", body.b_is),
    ];
    if let Some(ratio) = body.mean_ratio {
        lines.push(format!("  B is {} times as fast as A in the geometric mean", figure(ratio)));
    }
    let alone = (body.comparison.only_a, body.comparison.only_b);
    if alone != (0, 0) {
        lines.push(format!("  cells in A only: {}, in B only: {}", alone.0, alone.1));
    }
    if pairs.iter().all(|pair| pair.a == pair.b) {
        lines.push("  nothing differs".into());
        return lines.join("\n");
    }
    let mut table = TextTable::new(&["METHOD", "ARRAY", "CELL", "A", "B", "", "CHANGE"]).indented(2);
    for pair in pairs.iter().take(top) {
        let axes = serde_json::to_string(&pair.cell.axes).unwrap_or_default();
        table.row([
            pair.method.clone(),
            pair.cell.subject.to_string(),
            axes.replace(['{', '}', '"'], "").replace(':', "=").replace(',', " "),
            figure(pair.a),
            figure(pair.b),
            pair.unit.to_owned(),
            format!("{:+.1} %", pair.change_percent),
        ]);
    }
    lines.push(table.text().trim_end().into());
    lines.join("\n")
}
