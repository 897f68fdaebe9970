//! Claim files: the published one, and wrong ones.

use openraid_claims::summary::{tally_by, to_json, Basis};
use openraid_claims::{
    read, run, Claim, ClaimFileError, ClaimVerdict, Grade, Metric, MetricCall, MetricValue, Metrics, NotApplicable,
    Operations, RunOptions,
};
use std::collections::BTreeMap;

/// Metrics with the answer 1 for every call.
struct Ones;

impl Metrics for Ones {
    fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
        Ok(match call.metric {
            Metric::MemberOps => MetricValue::Operations(Operations { reads: 1, xors: 1, writes: 1 }),
            Metric::MemberDisks | Metric::MinMembers => MetricValue::Count(1),
            _ => MetricValue::Number(1.0),
        })
    }
}

fn published() -> Vec<Claim> {
    let file = read(openraid_claims::REVIEWS).expect("the published claims");
    assert_eq!(file.warnings, Vec::<String>::new());
    file.claims
}

#[test]
fn all_of_the_published_claims_are_read() {
    let claims = published();
    let mut systems: BTreeMap<&str, usize> = BTreeMap::new();
    let mut grades: BTreeMap<Grade, usize> = BTreeMap::new();
    for claim in &claims {
        *systems.entry(&claim.system).or_default() += 1;
        *grades.entry(claim.reproducible).or_default() += 1;
    }
    let counted: Vec<(&str, usize)> = systems.into_iter().collect();
    let expected =
        [("3ware-8506-8", 46), ("3ware-9650SE", 74), ("icp-90x4ro", 25), ("intel-rst-s3500", 18), ("lsi-9260-8i", 63)];
    assert_eq!(counted, expected);
    let expected = [(Grade::Physics, 168), (Grade::ControllerQuirk, 48), (Grade::Unexplained, 10)];
    assert_eq!(grades.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(claims.iter().filter(|claim| !claim.expected).count(), 1);
    assert_eq!(claims.iter().filter(|claim| claim.assumed.is_some()).count(), 1);
}

#[test]
fn every_published_check_can_be_evaluated_and_the_order_is_the_files() {
    let claims = published();
    for jobs in [1, 2] {
        let outcomes = run(&claims, &Ones, RunOptions { jobs }, &|_, _| {});
        assert_eq!(outcomes.len(), claims.len());
        for (claim, outcome) in claims.iter().zip(&outcomes) {
            assert_eq!(claim.id, outcome.id);
            // Differences of ones are zero: a few checks divide by such a difference, or rank equal values.
            let zero = outcome.reason.contains("around zero") || outcome.reason.contains("ivi");
            assert!(!outcome.broken || zero, "{}: {}", claim.id, outcome.reason);
            assert_ne!(outcome.verdict, ClaimVerdict::NotApplicable, "{}: {}", claim.id, outcome.reason);
        }
        let all: usize = tally_by(&claims, &outcomes, |claim| claim.kind.name().to_owned())
            .values()
            .map(|tally| tally.total())
            .sum();
        assert_eq!(all, claims.len());
    }
}

#[test]
fn application_scores_are_counted_apart() {
    let claims = published();
    let applications = claims.iter().filter(|claim| Basis::of(claim) == Basis::Application).count();
    assert_eq!(applications, 29 - 1 + 1, "all claims of the application method");
    let quirks = claims.iter().filter(|claim| Basis::of(claim) == Basis::Quirk).count();
    assert_eq!(quirks, 48);
}

#[test]
fn outcomes_have_four_fields_in_json() {
    let claims = published();
    let claim: Vec<Claim> = claims.into_iter().filter(|claim| claim.id == "9650se-004").collect();
    let outcomes = run(&claim, &Ones, RunOptions { jobs: 1 }, &|_, _| {});
    let expected = serde_json::json!({
        "id": "9650se-004",
        "verdict": "fail",
        "measured": {
            "member_ops(raid5x3)": {"r": 1, "x": 1, "w": 1},
            "member_ops(raid5x4)": {"r": 1, "x": 1, "w": 1},
        },
        "reason": "the check is false",
    });
    assert_eq!(to_json(&outcomes[0]), expected);
}

fn wrong(text: &str) -> String {
    read(text).expect_err("no claim file").to_string()
}

#[test]
fn wrong_files_are_refused_with_claim_and_field() {
    assert!(wrong("").contains("not JSON"));
    assert!(wrong("[1, ").contains("not JSON"));
    assert!(wrong("{}").contains("this is an object"));
    assert!(wrong(&"[".repeat(100_000)).contains("not JSON"));
    assert!(wrong("[1]").contains("claim 1: expected an object, found a number"));
    let long = " ".repeat(openraid_claims::claim::FILE_BYTES_MAX + 1);
    assert!(matches!(read(&long), Err(ClaimFileError::TooLong(_))));
    let good = serde_json::json!({
        "id": "a", "system": "s", "kind": "order", "reproducible": "physics", "check": "True", "tolerance": 0
    });
    assert_eq!(read(&format!("[{good}]")).map(|file| file.claims.len()), Ok(1));
    let with = |field: &str, value: serde_json::Value| {
        let mut claim = good.clone();
        claim[field] = value;
        format!("[{claim}]")
    };
    for (field, value, words) in [
        ("id", serde_json::json!(null), "claim 1: field 'id': it is missing"),
        ("check", serde_json::json!(" "), "claim 1 (a): field 'check': it is missing or empty"),
        ("check", serde_json::json!(5), "field 'check': expected a text, found a number"),
        ("tolerance", serde_json::json!("much"), "field 'tolerance': expected a number, found a text"),
        ("tolerance", serde_json::json!(-1), "field 'tolerance': -1 is not a tolerance"),
        ("workload", serde_json::json!([]), "field 'workload': expected an object, found a list"),
        ("expected", serde_json::json!("no"), "field 'expected': expected true or false"),
    ] {
        let message = wrong(&with(field, value));
        assert!(message.contains(words), "{field}: {message}");
        assert!(message.contains("nothing was run"), "{message}");
    }
    assert!(wrong(&format!("[{good}, {good}]")).contains("claim 2 (a): field 'id': another claim has the same id"));
    let odd = read(&with("expcted", serde_json::json!(false))).expect("a claim");
    assert_eq!(odd.warnings, ["claim 1 (a): field 'expcted' is not known and does nothing"]);
    for (field, value, words) in [
        ("reproducible", serde_json::json!("maybe"), "'maybe' is none of physics, controller-quirk, unexplained"),
        ("subjects", serde_json::json!([1]), "field 'subjects': expected a list of texts"),
        ("workload", serde_json::json!({"pattern": "tape"}), "no method is called 'tape'; known are static-property"),
        ("workload", serde_json::json!({"pat": "tape"}), "no method is called 'tape'; known are static-property"),
        ("workload", serde_json::json!({"drive": "wd740gd"}), "field 'workload.drive' is not known and does nothing"),
        ("workload", serde_json::json!({"rating_scheme": "R9"}), "\"R9\" is none of R1 to R5"),
        ("suite_rank", serde_json::json!(1.5), "field 'suite_rank': expected a whole number"),
        ("exact_pct", serde_json::json!("11"), "field 'exact_pct': expected a number"),
        ("needs_calibration", serde_json::json!(1), "field 'needs_calibration'"),
        ("derived", serde_json::json!(1), "field 'derived'"),
        ("quirk_param", serde_json::json!(1), "field 'quirk_param'"),
        ("assumed", serde_json::json!(true), "field 'assumed': expected a text, found true or false; passed over"),
    ] {
        let file = read(&with(field, value)).expect("a field for readers is never an error");
        assert!(file.claims.len() == 1 && file.warnings.len() == 1, "{:?}", file.warnings);
        assert!(file.warnings[0].contains(words), "{field}: {:?}", file.warnings);
    }
    let many = format!("[{}]", vec!["1"; 100].join(","));
    assert!(wrong(&many).contains("... and 80 errors more"));
}
