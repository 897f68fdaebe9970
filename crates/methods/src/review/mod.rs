//! A review measures several methods over several subjects. Its results can be stored; [`crate::report`] shows them.

mod join;
mod merge;
mod perform;

pub use join::{join, PartOf};
pub use merge::{merge, ReviewPart};
pub use perform::{Ended, Performance};

use crate::cell::CellSpec;
use crate::method::{find, rules, Method, Suite};
use crate::metrics::Scheme;
use crate::report::assemble::{ratings, CellTrial, Chapter, Rating};
use crate::run::Measurement;
use crate::target::{BedLine, TargetFacts};
use serde::{Deserialize, Serialize};

/// The schema name of a review's results.
pub const REVIEW_SCHEMA: &str = "openraid/lab-review/1";

/// A cell and its result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CellOutcome {
    pub cell: CellSpec,
    pub outcome: Measurement,
}

impl CellOutcome {
    fn trial(&self) -> CellTrial {
        CellTrial { spec: self.cell.clone(), outcome: self.outcome.clone() }
    }
}

/// A method and its cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MethodOutcome {
    /// `M01`.
    pub id: String,
    /// `database`.
    pub name: String,
    /// The title for readers.
    pub title: String,
    /// The question that the method answers.
    pub question: String,
    /// The reason why the method was refused, if it was.
    pub refusal: Option<String>,
    pub cells: Vec<CellOutcome>,
    /// Ratings by every formula whose depths were measured; none if the method does not vary depths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratings: Vec<Rating>,
}

impl MethodOutcome {
    /// A method that was refused.
    #[must_use]
    pub fn refused(method: &Method, reason: String) -> Self {
        Self { refusal: Some(reason), ..Self::new(method, Vec::new()) }
    }

    /// A method with its cells.
    #[must_use]
    pub fn new(method: &Method, cells: Vec<CellOutcome>) -> Self {
        let trials: Vec<CellTrial> = cells.iter().map(CellOutcome::trial).collect();
        Self {
            id: method.id.into(),
            name: method.name.word().into(),
            title: method.title.into(),
            question: method.question.into(),
            refusal: None,
            ratings: ratings(method, &trials),
            cells,
        }
    }
}

/// The results of a review.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReviewResults {
    /// Always [`REVIEW_SCHEMA`].
    pub schema: String,
    /// The version of this program and of the profiles.
    pub stamp: String,
    /// The target as the user named it.
    pub target: String,
    /// The description of the test bed.
    pub bed: Vec<BedLine>,
    /// Is the target simulated? Otherwise a clock measured it.
    pub simulated: bool,
    /// The run's seed.
    pub seed: u64,
    /// Rules that applied to all methods: number and text.
    pub rules: Vec<(String, String)>,
    /// The formula that ranks the arrays, if the user chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Scheme>,
    /// The part of the review that these results are, if other parts ran elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartOf>,
    pub methods: Vec<MethodOutcome>,
}

impl ReviewResults {
    /// A review without methods.
    #[must_use]
    pub fn new(suite: &Suite, facts: &TargetFacts, stamp: &str) -> Self {
        Self {
            schema: REVIEW_SCHEMA.into(),
            stamp: stamp.into(),
            target: facts.name.clone(),
            bed: facts.bed.clone(),
            simulated: facts.simulated,
            seed: suite.seed,
            rules: rules().iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect(),
            rank: None,
            part: None,
            methods: Vec::new(),
        }
    }

    /// The methods for a report. A method that this version does not know is left out.
    #[must_use]
    pub fn chapters(&self) -> Vec<Chapter> {
        let known = self.methods.iter().filter_map(|method| Some((find(&method.name)?, method)));
        let chapters = known.map(|(known, method)| Chapter {
            method: known,
            trials: method.cells.iter().map(CellOutcome::trial).collect(),
            refusal: method.refusal.clone().unwrap_or_default(),
            rank: self.rank,
        });
        chapters.collect()
    }

    /// All cells for a report.
    #[must_use]
    pub fn trials(&self) -> Vec<CellTrial> {
        self.methods.iter().flat_map(|method| &method.cells).map(CellOutcome::trial).collect()
    }

    /// All results that exist.
    pub fn results(&self) -> impl Iterator<Item = &crate::cell::CellResult> {
        self.methods.iter().flat_map(|method| &method.cells).filter_map(|cell| cell.outcome.result())
    }
}
