//! The five published reviews, repeated: the systems, arrays and methods of each.
//!
//! This file has no result of a published review; the figures of a page come only from the models.

use crate::cell::{run_cell, Axes, CellSpec, Effort, Subject};
use crate::method::{find, Method, Suite};
use crate::report::assemble::{CellTrial, Chapter};
use crate::run::{run_all, CellStore, Measurement};
use openraid_models::Library;

/// One review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edition {
    /// Name of its page, without the file name extension.
    pub name: &'static str,
    /// Profile of the controller, which gives drives, bus and host.
    pub system: &'static str,
    /// The measured subjects.
    pub subjects: &'static [&'static str],
    /// Were the SSDs new and never written?
    pub fresh: bool,
    pub methods: &'static [&'static str],
}

/// Up to four drives, as in the first two reviews.
const FOUR: &[&str] = &["single", "raid0x2", "raid0x3", "raid0x4", "raid1x2", "raid10x4", "raid5x3", "raid5x4"];
/// Eight drives.
const EIGHT: &[&str] = &["single", "raid0x8", "raid10x8", "raid5x8", "raid50x8", "raid6x8"];

/// The reviews, in the order of the gallery.
pub const EDITIONS: [Edition; 5] = [
    Edition {
        name: "3ware-9650se",
        system: "3ware-9650se",
        fresh: false,
        subjects: FOUR,
        methods: &[
            "database",
            "response-time",
            "random-by-block",
            "sequential",
            "multi-threaded",
            "file-server",
            "web-server",
            "workstation",
            "fc-subset",
            "transfer-graph",
            "degraded",
        ],
    },
    Edition {
        name: "3ware-8506-8",
        system: "3ware-8506-8",
        fresh: false,
        subjects: FOUR,
        methods: &[
            "database",
            "wb-wt",
            "sequential",
            "file-server",
            "web-server",
            "workstation",
            "winmarks",
            "best-of-seven",
            "transfer-graph",
        ],
    },
    Edition {
        name: "intel-rst",
        system: "intel-rst",
        fresh: true,
        subjects: &["single", "raid0x2", "raid0x3", "raid0x4", "raid0x5", "raid0x6", "raid5x4"],
        methods: &["rst-jbod", "rst-raid", "latency", "degraded"],
    },
    Edition {
        name: "lsi-9260-8i",
        system: "lsi-9260-8i",
        fresh: false,
        subjects: EIGHT,
        methods: &[
            "response-time",
            "random-by-block",
            "sequential",
            "multi-threaded",
            "database",
            "file-server",
            "web-server",
            "workstation",
            "fc-test",
            "two-cycles",
            "repeatability",
            "degraded",
        ],
    },
    Edition {
        name: "icp-9024ro",
        system: "icp-9024ro",
        fresh: false,
        subjects: &["raid0x8", "raid5x8"],
        methods: &["applications", "cold-repetitions", "cache-sizes"],
    },
];

impl Edition {
    /// The settings that all methods of the review share.
    ///
    /// # Panics
    /// Never: a test checks the subjects.
    #[must_use]
    pub fn suite(&self, effort: Effort, seed: u64) -> Suite {
        let subject = |word: &&str| word.parse::<Subject>().expect("tested");
        let machine = Axes { fresh: self.fresh.then_some(true), ..Axes::default() };
        Suite { machine, ..Suite::new(self.system, self.subjects.iter().map(subject).collect(), effort, seed) }
    }

    /// The methods of the review.
    ///
    /// # Panics
    /// Never: a test checks the names.
    pub fn methods(&self) -> impl Iterator<Item = &'static Method> + '_ {
        self.methods.iter().map(|name| find(name).expect("tested"))
    }

    /// Runs all cells of the review. After each cell `ended` gets the number of finished cells and the number of all
    /// cells.
    #[must_use]
    pub fn run(
        &self,
        library: &Library,
        suite: &Suite,
        threads: usize,
        store: &CellStore,
        ended: impl Fn(usize, usize) + Sync,
    ) -> Vec<Chapter> {
        let cells: Vec<(&'static Method, CellSpec)> =
            self.methods().flat_map(|method| method.cells(suite).into_iter().map(move |cell| (method, cell))).collect();
        let one = |(_, cell): &(&Method, CellSpec)| {
            store.get(cell).unwrap_or_else(|| {
                let outcome = Measurement::from(run_cell(library, cell));
                // If a result cannot be stored, the cell only runs again the next time.
                drop(store.put(cell, &outcome));
                outcome
            })
        };
        let all = cells.len();
        let outcomes = run_all(&cells, threads, one, |done| {
            ended(done, all);
            true
        });
        let mut chapters: Vec<Chapter> = self
            .methods()
            .map(|method| Chapter { method, trials: Vec::new(), refusal: String::new(), rank: None })
            .collect();
        for ((method, spec), outcome) in cells.into_iter().zip(outcomes) {
            let chapter = chapters.iter_mut().find(|chapter| chapter.method.id == method.id);
            if let (Some(chapter), Some(outcome)) = (chapter, outcome) {
                chapter.trials.push(CellTrial { spec, outcome });
            }
        }
        chapters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edition_names_systems_arrays_and_methods_that_exist() {
        let library = Library::builtin();
        for edition in EDITIONS {
            assert!(library.controller(edition.system).is_ok(), "{}", edition.system);
            let suite = edition.suite(Effort::QUICK, 1);
            assert_eq!(suite.subjects.len(), edition.subjects.len());
            // Claims about SSDs were measured on new ones.
            let ssds = edition.system == "intel-rst";
            for cell in edition.methods().flat_map(|method| method.cells(&suite)) {
                assert_eq!(cell.axes.fresh, ssds.then_some(true), "{}", edition.name);
            }
            assert!(edition.methods().all(|method| !method.cells(&suite).is_empty()));
        }
    }
}
