//! The alert rules over the metrics of a real server: promtool says which of them fire.

use std::fs;
use std::process::Command;

use super::web::Web;
use super::{missing, Lab};

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus/alerts.yml");

/// Number of times that the metrics are read for one state.
const TRIES_MAX: u32 = 20;
/// Between two readings.
const BETWEEN_TRIES: std::time::Duration = std::time::Duration::from_millis(250);

/// Metrics that stay as they are for hours, as promtool's series.
fn series(metrics: &str) -> String {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        format!("      - {{ series: '{series}', values: \"{value}x300\" }}\n")
    };
    lines.map(entry).collect()
}

/// Exactly these rules fire, each for this many series. Metrics may be older than the answer to an order: they are read again
/// until they have the state.
#[track_caller]
pub fn fire(lab: &Lab, web: &Web, state: &str, wanted: &[(&str, u32)]) {
    until_they_fire(state, || try_rules(lab, web, state, wanted));
}

/// The same, once all events are acknowledged: an event may come to the log after the state that it tells of.
#[track_caller]
pub fn fire_acknowledged(lab: &Lab, web: &Web, state: &str, wanted: &[(&str, u32)]) {
    until_they_fire(state, || {
        lab.line("events --acknowledge all").expect(0);
        try_rules(lab, web, state, wanted)
    });
}

#[track_caller]
fn until_they_fire(state: &str, mut attempt: impl FnMut() -> Result<(), String>) {
    let mut tries = 0;
    while let Err(why) = attempt() {
        tries += 1;
        assert!(tries < TRIES_MAX, "{state}: {why}");
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn try_rules(lab: &Lab, web: &Web, state: &str, wanted: &[(&str, u32)]) -> Result<(), String> {
    let metrics = web.get("/metrics").expect(200).text();
    let sample =
        |(name, count): &(&str, u32)| format!("          - {{ labels: '{{alertname=\"{name}\"}}', value: {count} }}\n");
    let samples: String = wanted.iter().map(sample).collect();
    let samples = if samples.is_empty() { " []\n".to_owned() } else { format!("\n{samples}") };
    let text = format!(
        "rule_files: [{RULES}]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    name: {state}\n    input_series:\n{}\
         \n    promql_expr_test:\n      - expr: count by (alertname) (ALERTS{{alertstate=\"firing\"}})\n        eval_time: 3h\n        \
         exp_samples:{samples}",
        series(&metrics)
    );
    let path = lab.path("rules.yml");
    fs::write(&path, text).expect("room");
    let ran = Command::new("promtool").args(["test", "rules"]).arg(&path).output().expect("promtool");
    match ran.status.success() {
        true => Ok(()),
        false => Err(format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))),
    }
}

/// Is promtool there?
pub fn has_promtool() -> bool {
    let is_there = Command::new("promtool").arg("--version").output().is_ok();
    if !is_there {
        missing("promtool is not installed (package prometheus)");
    }
    is_there
}
