//! Merges several reviews into one: the same methods over several targets, in the same charts.

use super::{CellOutcome, MethodOutcome, ReviewResults};
use crate::cell::Subject;
use crate::method::find;
use crate::run::{Absence, Measurement};
use crate::target::BedLine;

/// A review that becomes a part of a larger one.
#[derive(Clone, Debug)]
pub struct ReviewPart {
    /// A label that distinguishes its cells from those of other parts. Empty if the arrays alone distinguish them.
    pub label: String,
    /// Results of the review.
    pub results: ReviewResults,
}

/// One review of all parts, in their order. If one part refuses a method, only that part lacks it.
///
/// # Panics
/// There is no part.
#[must_use]
pub fn merge(target: &str, parts: &[ReviewPart]) -> ReviewResults {
    let first = &parts.first().expect("at least one part").results;
    let mut whole = ReviewResults {
        target: target.into(),
        simulated: parts.iter().all(|part| part.results.simulated),
        bed: parts.iter().flat_map(bed).collect(),
        methods: Vec::new(),
        ..first.clone()
    };
    for method in methods(parts) {
        let outcomes: Vec<(&str, &MethodOutcome)> = parts
            .iter()
            .filter_map(|part| {
                let known = part.results.methods.iter().find(|known| known.id == method.id)?;
                Some((part.label.as_str(), known))
            })
            .collect();
        whole.methods.push(one_method(method, &outcomes));
    }
    whole
}

/// The methods of all parts, each once: first those of the first part, then the additional ones of other parts.
fn methods(parts: &[ReviewPart]) -> Vec<&MethodOutcome> {
    let mut found: Vec<&MethodOutcome> = Vec::new();
    for method in parts.iter().flat_map(|part| &part.results.methods) {
        if !found.iter().any(|known| known.id == method.id) {
            found.push(method);
        }
    }
    found
}

/// The lines of a part's test bed, each with the part's name.
fn bed(part: &ReviewPart) -> Vec<BedLine> {
    let named = |line: &BedLine| if part.label.is_empty() { line.clone() } else { line.labelled(&part.label) };
    part.results.bed.iter().map(named).collect()
}

fn one_method(method: &MethodOutcome, parts: &[(&str, &MethodOutcome)]) -> MethodOutcome {
    let mut cells: Vec<CellOutcome> = Vec::new();
    for (label, part) in parts {
        let labelled = |known: &CellOutcome| {
            let mut known = known.clone();
            known.cell.label = Some((*label).to_owned());
            known
        };
        match &part.refusal {
            None => cells.extend(part.cells.iter().map(labelled)),
            Some(reason) => {
                let model = parts.iter().find_map(|(_, other)| other.cells.first());
                cells.extend(model.map(|model| {
                    let mut known = labelled(model);
                    known.cell.subject = Subject::Single;
                    known.outcome = Measurement::Absent(Absence { not_applicable: true, reason: reason.clone() });
                    known
                }));
            }
        }
    }
    let refusals = || parts.iter().filter_map(|(_, part)| part.refusal.clone());
    let refusal = if cells.is_empty() { refusals().next() } else { None };
    match find(&method.name) {
        Some(known) => MethodOutcome { refusal, ..MethodOutcome::new(known, cells) },
        None => MethodOutcome { refusal, cells, ..method.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Axes, CellSpec, Effort, Pattern};
    use crate::method::Suite;
    use crate::target::{NullTarget, Target as _};
    use openraid_units::Bytes;

    fn part(label: &str, refusal: Option<&str>) -> ReviewPart {
        let suite = Suite::new(label, vec![Subject::Single], Effort::QUICK, 1);
        let mut results = ReviewResults::new(&suite, NullTarget::new(Bytes::gib(1)).facts(), "");
        results.bed = vec!["kernel: 1".into()];
        let method = find("file-server").expect("a method");
        let cell = CellSpec::new(label, Subject::Single, Pattern::FileServer).with(Axes::default());
        let outcome = Measurement::Absent(Absence { not_applicable: true, reason: "a test".into() });
        let cells = if refusal.is_some() { Vec::new() } else { vec![CellOutcome { cell, outcome }] };
        let refusal = refusal.map(str::to_owned);
        results.methods.push(MethodOutcome { refusal, ..MethodOutcome::new(method, cells) });
        ReviewPart { label: label.into(), results }
    }

    #[test]
    fn cells_of_all_parts_carry_their_labels_and_a_refusal_is_that_of_its_part() {
        let whole = merge("one, two", &[part("one", None), part("two", Some("it only reads"))]);
        assert_eq!(whole.bed, ["one, kernel: 1", "two, kernel: 1"].map(BedLine::from));
        let [method] = whole.methods.as_slice() else { panic!("{:?}", whole.methods) };
        assert_eq!(method.refusal, None);
        let found: Vec<(&str, &str)> = method
            .cells
            .iter()
            .map(|known| {
                let reason = known.outcome.absence().map_or("", |absence| absence.reason.as_str());
                (known.cell.label.as_deref().unwrap_or("none"), reason)
            })
            .collect();
        assert_eq!(found, [("one", "a test"), ("two", "it only reads")]);
        let alone = merge("two", &[part("two", Some("it only reads"))]);
        assert_eq!(alone.methods[0].refusal.as_deref(), Some("it only reads"));
    }
}
