//! Results in the form of fio's JSON (version 3), so that programs for fio's output can read them.
//!
//! The keys are fio's. Unknown figures are left out, for example submission latencies and context switches. Bandwidth
//! is in KiB per second in `bw` and in bytes in `bw_bytes`, latencies are in nanoseconds, run times in milliseconds.

use super::histogram::Histogram;
use super::tally::Tally;
use crate::cell::CellResult;
use serde_json::{json, Map, Value};

/// Percentiles that fio prints by default.
const PERCENTILES: [(f64, &str); 17] = [
    (1.0, "1.000000"),
    (5.0, "5.000000"),
    (10.0, "10.000000"),
    (20.0, "20.000000"),
    (30.0, "30.000000"),
    (40.0, "40.000000"),
    (50.0, "50.000000"),
    (60.0, "60.000000"),
    (70.0, "70.000000"),
    (80.0, "80.000000"),
    (90.0, "90.000000"),
    (95.0, "95.000000"),
    (99.0, "99.000000"),
    (99.5, "99.500000"),
    (99.9, "99.900000"),
    (99.95, "99.950000"),
    (99.99, "99.990000"),
];

/// A document with a job for each result.
#[must_use]
pub fn document(results: &[&CellResult]) -> Value {
    let jobs: Vec<Value> = results.iter().map(|result| job(result)).collect();
    json!({
        "fio version": concat!("openraid-", env!("CARGO_PKG_VERSION")),
        "timestamp": 0,
        "global options": {},
        "jobs": jobs,
    })
}

fn job(result: &CellResult) -> Value {
    let spec = &result.spec;
    let name = format!("{} {} {}", spec.subject, spec.pattern.name(), axes_words(result));
    let runtime_ms = result.elapsed_ns / 1_000_000;
    let host = result.host_cpu.unwrap_or(0.0) * 100.0;
    json!({
        "jobname": name.trim_end(),
        "groupid": 0,
        "error": if result.errors == 0 { 0 } else { 5 },
        "eta": 0,
        "elapsed": result.elapsed_ns.div_ceil(1_000_000_000),
        "job options": { "name": name.trim_end() },
        "read": direction(&result.reads, result.elapsed_ns),
        "write": direction(&result.writes, result.elapsed_ns),
        "trim": direction(&Tally::default(), result.elapsed_ns),
        "job_runtime": runtime_ms,
        "usr_cpu": host,
        "sys_cpu": 0.0,
        "total_err": result.errors,
    })
}

fn axes_words(result: &CellResult) -> String {
    let value = serde_json::to_value(&result.spec.axes).unwrap_or_default();
    let Value::Object(axes) = value else { return String::new() };
    let words = axes.iter().map(|(axis, value)| match value {
        Value::String(text) => format!("{axis}={text}"),
        other => format!("{axis}={other}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn direction(tally: &Tally, elapsed_ns: u64) -> Value {
    let seconds = elapsed_ns as f64 / 1e9;
    let rate = |amount: u64| if elapsed_ns == 0 { 0.0 } else { amount as f64 / seconds };
    let bytes = rate(tally.bytes);
    // A rate in bytes is far below 2^63.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = bytes as u64;
    json!({
        "io_bytes": tally.bytes,
        "io_kbytes": tally.bytes >> 10,
        "bw_bytes": whole,
        "bw": whole >> 10,
        "iops": rate(tally.requests),
        "runtime": elapsed_ns / 1_000_000,
        "total_ios": tally.requests,
        "short_ios": 0,
        "drop_ios": 0,
        "clat_ns": latency(&tally.latency, true),
        "lat_ns": latency(&tally.latency, false),
    })
}

fn latency(histogram: &Histogram, percentiles: bool) -> Value {
    let mut fields = Map::new();
    fields.insert("min".into(), histogram.min().into());
    fields.insert("max".into(), histogram.max().into());
    fields.insert("mean".into(), histogram.mean().into());
    fields.insert("stddev".into(), histogram.deviation().into());
    fields.insert("N".into(), histogram.count().into());
    if percentiles && histogram.count() > 0 {
        let values = PERCENTILES.iter().map(|(percent, key)| {
            let value: Value = histogram.percentile(*percent).into();
            ((*key).to_owned(), value)
        });
        fields.insert("percentile".into(), Value::Object(values.collect()));
    }
    Value::Object(fields)
}
