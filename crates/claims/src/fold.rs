//! Five folds of claims, by cause: a change that was tuned on four folds is judged by the fifth.
//!
//! A cause is a mechanism within one review. All claims of a cause are in one fold. So a constant that was chosen by
//! one claim is not judged by a similar one. The division must never use a number, an id or a verdict of a claim.

use crate::claim::Claim;
use crate::evaluate::ClaimOutcome;
use crate::metric::Metric;
use crate::summary::{calls, Basis, VerdictTally};
use openraid_methods::cell::Pattern;
use std::collections::BTreeMap;

/// Number of folds.
pub const FOLDS: usize = 5;

/// The subject of a claim, by its check and its method.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mechanism {
    /// An application score, or the gain of one by a cache.
    Applications,
    /// Arithmetic of levels and links, without measurements.
    Arithmetic,
    /// Comparison of loads before and after others, or of the cycles of the order test.
    Order,
    /// Comparison of caches: write-back with write-through, or sizes.
    Caches,
    /// Comparison of controllers, buses or hosts, or the load of the host's processor.
    Paths,
    /// Several sequential clients.
    Clients,
    /// One sequential stream.
    Streams,
    /// File-sets.
    Files,
    /// The mixes of File-Server, Web-Server and Workstation.
    Mixes,
    /// Random blocks, from only reads to only writes.
    Database,
    /// Random access by block size, and response time.
    Access,
}

/// Metrics without measurements.
const PURE: [Metric; 7] = [
    Metric::Capacity,
    Metric::Cap,
    Metric::SurviveFraction,
    Metric::ParityShare,
    Metric::MemberOps,
    Metric::MemberDisks,
    Metric::MinMembers,
];

impl Mechanism {
    /// All values.
    pub const ALL: [Self; 11] = [
        Self::Arithmetic,
        Self::Database,
        Self::Access,
        Self::Streams,
        Self::Clients,
        Self::Mixes,
        Self::Files,
        Self::Applications,
        Self::Caches,
        Self::Order,
        Self::Paths,
    ];

    /// The name as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Database => "database",
            Self::Access => "access",
            Self::Streams => "streams",
            Self::Clients => "clients",
            Self::Mixes => "mixes",
            Self::Files => "files",
            Self::Applications => "applications",
            Self::Caches => "caches",
            Self::Order => "order",
            Self::Paths => "paths",
        }
    }

    /// The mechanism of a claim: the first that applies, in the order of [`Mechanism`]'s list.
    #[must_use]
    pub fn of(claim: &Claim) -> Self {
        let check = claim.check.as_str();
        let asked: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| calls(check, metric.name())).collect();
        let any = |metrics: &[Metric]| asked.iter().any(|metric| metrics.contains(metric));
        let axes = |names: &[&str]| names.iter().any(|name| gives(check, name));
        if any(&[Metric::Score, Metric::Gain]) {
            return Self::Applications;
        }
        if !asked.is_empty() && asked.iter().all(|metric| PURE.contains(metric)) {
            return Self::Arithmetic;
        }
        if axes(&["cyc", "after"]) {
            return Self::Order;
        }
        if any(&[Metric::Wbwt]) || axes(&["cache", "cache_mib"]) {
            return Self::Caches;
        }
        if any(&[Metric::Cpu, Metric::Cap]) || axes(&["bus", "ctl", "host_speed"]) {
            return Self::Paths;
        }
        match claim.workload.load.as_ref().map(|load| &load.pattern) {
            Some(Pattern::MultiThreaded) => Self::Clients,
            Some(Pattern::Sequential | Pattern::SsdSequential | Pattern::TransferGraph) => Self::Streams,
            Some(Pattern::FcTest) => Self::Files,
            Some(Pattern::FileServer | Pattern::WebServer | Pattern::Workstation) => Self::Mixes,
            Some(Pattern::Application) => Self::Applications,
            Some(Pattern::Database) => Self::Database,
            _ => Self::Access,
        }
    }

    /// The folds of its causes, one for each review of [`SYSTEMS`]. They were chosen so that each fold has a fifth of
    /// the physics claims and of the quirk claims, before any fold was evaluated.
    const fn folds(self) -> [u8; SYSTEMS.len()] {
        match self {
            Self::Arithmetic => [2, 4, 0, 0, 2],
            Self::Database => [2, 1, 1, 3, 0],
            Self::Access => [3, 2, 4, 1, 0],
            Self::Streams => [4, 3, 1, 2, 0],
            Self::Clients => [4, 0, 1, 3, 2],
            Self::Mixes => [3, 4, 1, 2, 0],
            Self::Files => [2, 1, 4, 0, 3],
            Self::Applications => [3, 1, 2, 0, 4],
            Self::Caches => [4, 1, 0, 2, 3],
            Self::Order => [1, 2, 0, 3, 4],
            Self::Paths => [1, 3, 2, 4, 2],
        }
    }
}

/// The systems of the five reviews.
const SYSTEMS: [&str; 5] = ["3ware-9650SE", "3ware-8506-8", "lsi-9260-8i", "icp-90x4ro", "intel-rst-s3500"];

/// The fold of a claim, counted from 0.
#[must_use]
pub fn of(claim: &Claim) -> usize {
    let review = SYSTEMS.iter().position(|system| system.eq_ignore_ascii_case(&claim.system));
    // Another system gets one of the five places, which depends on its name alone.
    let sum = || claim.system.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Mechanism::of(claim).folds()[review.unwrap_or_else(|| sum() % SYSTEMS.len())].into()
}

/// The physics and quirk claims of one fold, without application scores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fold {
    /// Physics claims.
    pub physics: VerdictTally,
    /// Quirks of controllers.
    pub quirks: VerdictTally,
    /// Application scores.
    pub scores: VerdictTally,
}

/// Outcomes by fold. Unexplained claims are in no fold.
#[must_use]
pub fn tally(claims: &[Claim], outcomes: &[ClaimOutcome]) -> [Fold; FOLDS] {
    let mut folds = [Fold::default(); FOLDS];
    for (claim, outcome) in claims.iter().zip(outcomes) {
        let fold = &mut folds[of(claim)];
        match Basis::of(claim) {
            Basis::Physics => fold.physics.add(outcome.verdict),
            Basis::Quirk => fold.quirks.add(outcome.verdict),
            Basis::Application => fold.scores.add(outcome.verdict),
            Basis::Unexplained => {}
        }
    }
    folds
}

/// The causes of a fold: each mechanism, with the systems for which it has claims, in the order of the claims.
#[must_use]
pub fn causes(claims: &[Claim], fold: usize) -> BTreeMap<Mechanism, Vec<String>> {
    let mut causes: BTreeMap<Mechanism, Vec<String>> = BTreeMap::new();
    for claim in claims.iter().filter(|claim| of(claim) == fold) {
        let systems = causes.entry(Mechanism::of(claim)).or_default();
        if !systems.contains(&claim.system) {
            systems.push(claim.system.clone());
        }
    }
    causes
}

/// Whether the check gives this axis.
fn gives(check: &str, axis: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    check.match_indices(axis).any(|(at, _)| {
        let before = check[..at].chars().next_back().is_some_and(is_word);
        let rest = check[at + axis.len()..].trim_start();
        !before && rest.starts_with('=') && !rest.starts_with("==")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, REVIEWS};
    use std::collections::BTreeSet;

    fn claim(system: &str, pattern: &str, check: &str) -> Claim {
        let text =
            serde_json::json!([{ "id": "x", "system": system, "check": check, "workload": { "pattern": pattern } }]);
        read(&text.to_string()).expect("a claim").claims.remove(0)
    }

    #[test]
    fn the_mechanism_is_what_the_check_compares() {
        let of = |pattern, check| Mechanism::of(&claim("lsi-9260-8i", pattern, check));
        assert_eq!(of("database", "iops(single, rd=0) == cap('sata3')"), Mechanism::Paths);
        assert_eq!(of("database", "capacity(single) == cap('sata3')"), Mechanism::Arithmetic);
        assert_eq!(of("database", "iops(single, cache = 'wt') > 1"), Mechanism::Caches);
        assert_eq!(of("database", "iops(single, rd=0) > 1 and 'cache' == 'cache'"), Mechanism::Database);
        assert_eq!(of("multithreaded", "mbps(single, th=2) > mbps(single, th=1, cyc=2)"), Mechanism::Order);
        assert_eq!(of("fc-test", "fct(single, op='create', set='iso') > 1"), Mechanism::Files);
        assert_eq!(of("winbench99", "gain(raid5x8, app='winmark99') > 0"), Mechanism::Applications);
    }

    #[test]
    fn every_fold_of_the_reviews_has_its_part_and_no_cause_is_in_two() {
        let claims = read(REVIEWS).expect("the built-in claims").claims;
        let mut causes: BTreeMap<(Mechanism, String), BTreeSet<usize>> = BTreeMap::new();
        let mut counts = [[0; 2]; FOLDS];
        for claim in &claims {
            causes.entry((Mechanism::of(claim), claim.system.clone())).or_default().insert(of(claim));
            match Basis::of(claim) {
                Basis::Physics => counts[of(claim)][0] += 1,
                Basis::Quirk => counts[of(claim)][1] += 1,
                _ => {}
            }
        }
        assert!(causes.values().all(|folds| folds.len() == 1), "{causes:?}");
        // A fifth of 142 and of 48, or not much less.
        assert!(counts.iter().all(|[physics, quirks]| *physics >= 26 && *quirks >= 7), "{counts:?}");
    }

    #[test]
    fn other_systems_have_folds_by_their_names_alone() {
        let one = claim("my-own-card", "database", "iops(single, rd=0) > 1");
        let other = Claim { id: "y".into(), tolerance: 0.5, ..one.clone() };
        assert!(of(&one) < FOLDS && of(&one) == of(&other));
    }
}
