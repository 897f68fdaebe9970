//! The methods of the reviews, M01 to M33: the cells of each, the question that it answers, and the common rules.
//!
//! A method gives cells for each subject; the report decides how to draw them. If a method does not apply to a target,
//! it gives the reason.

mod cells;
mod table;

pub use table::{find, methods, rules, MethodName, ReportShape, OWN};

use crate::cell::{Axes, CellSpec, Effort, Pattern, Subject};
use crate::target::TargetFacts;

/// The settings that all methods of a run share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suite {
    /// The system: a controller's profile.
    pub system: String,
    pub subjects: Vec<Subject>,
    /// Length of each measurement.
    pub effort: Effort,
    /// The run's seed.
    pub seed: u64,
    /// Number of repetitions of each cell, numbered from 1. With 1, cells have no repetition number.
    pub repeat: u32,
    /// Maximum number of drives side by side.
    pub drives: u16,
    /// The load of the method [`OWN`], if there is one.
    pub given: Option<(Pattern, Axes)>,
    /// Drives, bus, cache and chunk of a simulated machine, unless a method sets them.
    pub machine: Axes,
}

impl Suite {
    /// A suite that measures everything once.
    #[must_use]
    pub fn new(system: &str, subjects: Vec<Subject>, effort: Effort, seed: u64) -> Self {
        Self {
            system: system.into(),
            subjects,
            effort,
            seed,
            repeat: 1,
            drives: cells::JBOD_MAX,
            given: None,
            machine: Axes::default(),
        }
    }
}

/// The requirements of a method on its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetNeeds {
    /// None: the method reads, or can work with only its cells that read.
    Reads,
    /// The method writes.
    Writes,
    /// Several drives side by side. The text is the reason for a target that is not several drives.
    Drives(&'static str),
    /// Another cache, a missing member or a fresh start for each cell. Only a simulated machine, or an array that the
    /// review creates from members, allows this. The text is the reason for other targets.
    Remade(&'static str),
}

/// The kind of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetKind {
    /// One existing target.
    Given,
    /// An array that the review creates, and can create again in another state.
    Made,
    /// Drives side by side.
    Drives,
}

impl Method {
    /// Does the method measure drives side by side, and not an array?
    #[must_use]
    pub const fn is_of_drives(&self) -> bool {
        matches!(self.needs, TargetNeeds::Drives(_))
    }
}

#[derive(Clone, Copy)]
pub struct Method {
    /// `M01`.
    pub id: &'static str,
    /// The name on the command line.
    pub name: MethodName,
    /// The title for readers.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Its requirements.
    pub needs: TargetNeeds,
    /// The form of its results.
    pub shape: ReportShape,
    cells: fn(&Suite) -> Vec<CellSpec>,
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Method({} {})", self.id, self.name)
    }
}

impl Method {
    /// Cells of the method, subject by subject. If the method itself repeats its cells, they are not repeated again.
    #[must_use]
    pub fn cells(&self, suite: &Suite) -> Vec<CellSpec> {
        let mut cells = (self.cells)(suite);
        for cell in &mut cells {
            cell.axes = std::mem::take(&mut cell.axes).or(&suite.machine);
        }
        if suite.repeat <= 1 {
            return cells;
        }
        let repeated = cells.into_iter().flat_map(|cell| {
            let rep = cell.axes.rep;
            let repetitions = if rep.is_some() { 1 } else { suite.repeat };
            (1..=repetitions).map(move |number| {
                let axes = Axes { rep: rep.or(Some(number)), ..cell.axes.clone() };
                CellSpec { axes, ..cell.clone() }
            })
        });
        repeated.collect()
    }

    /// The reason why the method does not apply to a target, if it does not.
    #[must_use]
    pub fn refusal(&self, facts: &TargetFacts) -> Option<String> {
        self.refusal_of(facts, TargetKind::Given)
    }

    /// The reason why the method does not apply to a target of this kind, if it does not.
    #[must_use]
    pub fn refusal_of(&self, facts: &TargetFacts, kind: TargetKind) -> Option<String> {
        match self.needs {
            TargetNeeds::Reads => None,
            TargetNeeds::Writes if facts.writable => None,
            TargetNeeds::Writes => Some(format!(
                "{} was opened for reading, and this method writes; give --destroy-data and type the target's name",
                facts.name
            )),
            TargetNeeds::Drives(_) | TargetNeeds::Remade(_) if facts.simulated => None,
            TargetNeeds::Remade(_) if kind == TargetKind::Made => None,
            TargetNeeds::Drives(_) if kind == TargetKind::Drives => None,
            TargetNeeds::Remade(reason) | TargetNeeds::Drives(reason) => Some(reason.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Bytes;
    use std::collections::BTreeSet;

    fn suite() -> Suite {
        let subjects = vec!["single".parse().unwrap(), "raid5x4".parse().unwrap()];
        Suite::new("3ware-9650se", subjects, Effort::QUICK, 1)
    }

    #[test]
    fn every_number_from_1_to_33_is_a_method_or_a_rule() {
        let mut ids: BTreeSet<String> = methods().iter().map(|method| method.id.to_owned()).collect();
        ids.extend(rules().iter().map(|(id, _)| (*id).to_owned()));
        let expected: BTreeSet<String> = (1..=33).map(|number| format!("M{number:02}")).collect();
        assert_eq!(ids, expected);
        let names: BTreeSet<MethodName> = methods().iter().map(|method| method.name).collect();
        assert_eq!(names.len(), methods().len());
    }

    #[test]
    fn methods_have_the_cells_that_are_written_down() {
        let count = |name: &str| find(name).unwrap().cells(&suite()).len();
        // Per subject: 11 shares by 5 depths, 13 sizes both ways at 2 depths, 2, 12 sizes both ways, 4 clients by 8 depths
        // both ways.
        assert_eq!(count("database"), 2 * 55);
        assert_eq!(count("random-by-block"), 2 * 52);
        assert_eq!(count("response-time"), 2 * 2);
        assert_eq!(count("sequential"), 2 * 24);
        assert_eq!(count("multi-threaded"), 2 * 64);
        assert_eq!(count("file-server"), 2 * 9);
        assert_eq!(count("web-server"), 2 * 9);
        assert_eq!(count("workstation"), 2 * 12);
        assert_eq!(count("fc-test"), 2 * 40);
        assert_eq!(count("wb-wt"), 2 * 110);
        assert_eq!(count("best-of-seven"), 2 * 21);
        for method in methods() {
            for cell in method.cells(&suite()) {
                assert_eq!(cell.check(), Ok(()), "{} {}", method.id, cell.identity());
            }
        }
    }

    #[test]
    fn repetitions_multiply_cells_except_repetitions() {
        let thrice = Suite { repeat: 3, ..suite() };
        let count = |name: &str| find(name).unwrap().cells(&thrice).len();
        assert_eq!((count("response-time"), count("best-of-seven")), (3 * 2 * 2, 2 * 21));
        let reps: BTreeSet<Option<u32>> =
            find("response-time").unwrap().cells(&thrice).iter().map(|cell| cell.axes.rep).collect();
        assert_eq!(reps, BTreeSet::from([Some(1), Some(2), Some(3)]));
    }

    #[test]
    fn a_machine_goes_with_every_cell_that_says_nothing_else() {
        let axes = Axes { drive: Some("wd740gd".into()), cache_mib: Some(64), ..Axes::default() };
        let changed = Suite { machine: axes, ..suite() };
        let sizes = |name: &str| -> BTreeSet<Option<u32>> {
            let cells = find(name).unwrap().cells(&changed);
            assert!(cells.iter().all(|cell| cell.axes.drive.as_deref() == Some("wd740gd")));
            cells.iter().map(|cell| cell.axes.cache_mib).collect()
        };
        assert_eq!(sizes("database"), BTreeSet::from([Some(64)]));
        assert_eq!(sizes("cache-sizes").len(), 7);
    }

    #[test]
    fn a_larger_cache_has_more_time_to_become_steady() {
        let cells = find("cache-sizes").unwrap().cells(&suite());
        let seconds: BTreeSet<(Option<u32>, u32)> =
            cells.iter().map(|cell| (cell.axes.cache_mib, cell.effort.warm_seconds_max)).collect();
        let wanted = [(0, 600), (32, 600), (64, 600), (128, 600), (256, 600), (512, 1200), (1024, 2400)];
        assert_eq!(seconds, wanted.map(|(mib, seconds)| (Some(mib), seconds)).into());
    }

    #[test]
    fn a_load_of_ones_own_is_a_cell_for_each_subject() {
        let axes = Axes { qd: Some(4), ..Axes::default() };
        let with_load = Suite { given: Some((Pattern::WebServer, axes)), ..suite() };
        let cells = OWN.cells(&with_load);
        assert_eq!(cells.iter().map(|cell| cell.subject).collect::<Vec<_>>(), with_load.subjects);
        assert!(cells.iter().all(|cell| cell.pattern == Pattern::WebServer && cell.axes.qd == Some(4)));
        assert!(OWN.cells(&suite()).is_empty() && find(OWN.name.word()).is_some());
    }

    #[test]
    fn methods_say_why_they_make_no_sense_on_a_target() {
        let facts = |simulated, writable| TargetFacts {
            page_cache: false,
            link_mbps: None,
            name: "/dev/sdx".into(),
            capacity: Bytes::gib(1),
            block: Bytes(512),
            simulated,
            writable,
            bed: Vec::new(),
        };
        let refusal = |name: &str, facts: &TargetFacts| find(name).unwrap().refusal(facts);
        for reads in ["web-server", "sequential", "response-time", "rst-raid", "latency", "repeatability"] {
            assert_eq!(refusal(reads, &facts(false, false)), None, "{reads}");
        }
        assert!(refusal("database", &facts(false, false)).unwrap().contains("--destroy-data"));
        assert_eq!(refusal("database", &facts(false, true)), None);
        assert!(refusal("two-cycles", &facts(false, false)).unwrap().contains("--destroy-data"));
        assert_eq!(refusal("two-cycles", &facts(false, true)), None);
        assert_eq!(refusal("winmarks", &facts(false, true)), None, "with smaller sets");
        assert!(refusal("winmarks", &facts(false, false)).unwrap().contains("--destroy-data"));
        assert!(refusal("cold-repetitions", &facts(false, true)).unwrap().contains("power"));
        for name in ["applications", "cold-repetitions", "wb-wt", "cache-sizes", "degraded"] {
            let method = find(name).unwrap();
            assert!(method.refusal(&facts(false, true)).unwrap().contains("--members"), "{name}");
            assert_eq!(method.refusal_of(&facts(false, true), TargetKind::Made), None, "{name}");
        }
        let drives = find("rst-jbod").unwrap();
        assert!(drives.refusal_of(&facts(false, true), TargetKind::Made).is_some());
        assert_eq!(drives.refusal_of(&facts(false, true), TargetKind::Drives), None);
        assert!(methods().iter().all(|method| method.refusal(&facts(true, true)).is_none()));
    }
}
