//! `openraid-lab validate`: its forms, its files, its cache.

use crate::support::Lab;

const CLAIMS: &str = r#"[
  {"id": "a-1", "system": "3ware-9650SE", "kind": "equality", "reproducible": "physics", "tolerance": 0.01,
   "statement": "Two parities survive two losses.", "check": "survive_fraction('raid6', n=5, k=2) == 1.0"},
  {"id": "a-2", "system": "3ware-9650SE", "kind": "numeric", "reproducible": "physics", "tolerance": 0,
   "check": "capacity(raid5x4) > capacity(raid5x3) and capacity(single) > 1000"},
  {"id": "b-1", "system": "3ware-9650SE", "kind": "numeric", "reproducible": "controller-quirk", "tolerance": 0,
   "check": "min_members('raid1e', ctl='9650se') == 3"},
  {"id": "b-2", "system": "3ware-9650SE", "kind": "order", "reproducible": "physics", "tolerance": 0,
   "workload": {"pattern": "database", "qd": 16},
   "check": "iops(raid0x2, rd=100) > iops(single, rd=100)"}
]"#;

#[test]
fn verdicts_are_an_exact_list_and_kept_values_give_the_same() {
    let lab = Lab::new("validate");
    std::fs::write(lab.path("claims.json"), CLAIMS).expect("written");
    let line = "validate --claims claims.json --effort quick --cache kept --json";
    let first = lab.line(line).expect(0).text();
    let list: Vec<serde_json::Value> = serde_json::from_str(&first).expect("a list");
    let verdicts: Vec<(&str, &str)> =
        list.iter().map(|item| (item["id"].as_str().unwrap_or("?"), item["verdict"].as_str().unwrap_or("?"))).collect();
    assert_eq!(verdicts, [("a-1", "pass"), ("a-2", "fail"), ("b-1", "not-applicable"), ("b-2", "pass")]);
    for item in &list {
        let mut keys: Vec<&String> = item.as_object().expect("an object").keys().collect();
        keys.sort();
        assert_eq!(keys, ["id", "measured", "reason", "verdict"]);
        assert!(item["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    }
    let measured = list[3]["measured"].as_object().expect("values");
    assert!(measured["iops(raid0x2, rd=100)"].as_f64() > measured["iops(single, rd=100)"].as_f64());
    assert!(lab.path("kept").join("claims.jsonl").exists());
    assert_eq!(lab.line(&format!("{line} --jobs 1")).expect(0).text(), first);
    let one = lab.line("validate --claims claims.json --only b-2 --effort quick --no-cache --json").expect(0).json();
    assert_eq!(one[0], list[3], "a value does not depend on what else is measured");
    let line = "validate --claims claims.json --only b- --effort quick --cache kept --several-seeds --json";
    let several = lab.line(line).expect(0).json();
    assert_eq!((&several[0]["seeds"], &several[0]["verdict"]), (&1.into(), &"not-applicable".into()));
    let two = &several[1];
    assert_eq!((&two["seeds"], &two["decided"], &two["verdict"]), (&3.into(), &true.into(), &"pass".into()));
    assert_eq!(two["measured"], list[3]["measured"], "the first seed is the one of --seed");
}

#[test]
fn the_text_names_claims_values_and_counts() {
    let lab = Lab::new("validate-text");
    std::fs::write(lab.path("claims.json"), CLAIMS).expect("written");
    let text = lab.line("validate --claims claims.json --only a- --only b-1 --no-cache").expect(0).text();
    for words in [
        "Two parities survive two losses.",
        "FAILED",
        "not applicable",
        "capacity(raid5x4)",
        "controller quirk",
        "50.0 %",
    ] {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
}

#[test]
fn files_that_are_no_claims_are_refused_with_the_place() {
    let lab = Lab::new("validate-wrong");
    lab.line("validate --claims nowhere.json").refused(64, &["nowhere.json"]);
    std::fs::write(lab.path("bad.json"), r#"[{"id": "x", "system": "s"}]"#).expect("written");
    lab.line("validate --claims bad.json").refused(64, &["bad.json", "claim 1 (x)", "field 'check'"]);
    std::fs::write(lab.path("binary.json"), [b"[{\"id\": \"".as_slice(), &[0xff, 0xfe]].concat()).expect("written");
    lab.line("validate --claims binary.json").refused(64, &["binary.json", "UTF-8"]);
    std::fs::write(lab.path("claims.json"), CLAIMS).expect("written");
    lab.line("validate --claims claims.json --only z").refused(64, &["--only z", "claims.json"]);
    lab.line("validate --claims claims.json --only a-1 --models nowhere").refused(64, &["nowhere"]);
    lab.line("validate --jobs 0").refused(64, &["jobs"]);
}
