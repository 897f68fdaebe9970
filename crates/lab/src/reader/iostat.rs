//! Reads the output of `iostat -x` of sysstat about devices, as text or as JSON (`-o JSON`): means over a time, from
//! which a load is made.
//!
//! The output has the rates of reads and writes, their bytes and the mean queue, but no addresses. The addresses are
//! assumed to be random, which is the harder case for disks. The first report covers the time since the start of the
//! machine. If there are further reports, the first is left out and the others are averaged.

use super::{shown, Lines, ReadError};
use crate::load::{AccessLine, AccessSpec, REQUEST_BYTES_MAX};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::BufRead;

/// Maximum size of a JSON file in bytes.
const JSON_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of devices.
const DEVICES_MAX: usize = 4096;
/// Maximum number of outstanding requests of a load.
const DEPTH_MAX: f64 = 4096.0;
const SECTOR: f64 = 512.0;

/// A device's load.
#[derive(Clone, PartialEq, Debug)]
pub struct IostatDevice {
    /// Name of the device.
    pub name: String,
    /// Reads and writes with their mean sizes, at random addresses.
    pub spec: AccessSpec,
    /// The mean queue, at least one.
    pub depth: u32,
}

/// One line of a report.
#[derive(Clone, Copy, Default, Debug)]
struct Sample {
    reads: f64,
    writes: f64,
    read_bytes: f64,
    written_bytes: f64,
    queue: f64,
}

/// The lines of all reports about one device, and the index of the last one.
#[derive(Default)]
struct Seen {
    samples: Vec<Sample>,
    line: u64,
}

/// Does the first line of a file look like iostat's output?
#[must_use]
pub fn is_iostat(first_line: &str) -> bool {
    let line = first_line.trim_start();
    line.starts_with("Linux ") || line.starts_with("Device") || line.starts_with('{')
}

/// Reads the output of `iostat -x`.
///
/// # Errors
/// The first invalid line. A device without requests is left out, but a file in which no device has requests is an
/// error.
pub fn read_iostat(mut from: impl BufRead) -> Result<Vec<IostatDevice>, ReadError> {
    let first = from.fill_buf().map_err(|error| ReadError::at(0, format!("it cannot be read: {error}")))?;
    let json = first.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let seen = if json { from_json(from)? } else { from_text(Lines::new(from))? };
    let mut devices = Vec::new();
    for (name, seen) in seen {
        devices.extend(device(name, &seen)?);
    }
    if devices.is_empty() {
        return Err(ReadError::at(0, "no device in it has done anything; record it while the load runs: iostat -x 10"));
    }
    Ok(devices)
}

/// The load of one device; none if it had no requests.
fn device(name: String, seen: &Seen) -> Result<Option<IostatDevice>, ReadError> {
    let later = if seen.samples.len() > 1 { &seen.samples[1..] } else { &seen.samples[..] };
    let mean = |of: fn(&Sample) -> f64| later.iter().map(of).sum::<f64>() / later.len() as f64;
    let (reads, writes) = (mean(|one| one.reads), mean(|one| one.writes));
    if reads + writes <= 0.0 {
        return Ok(None);
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to 100
    let share = (reads / (reads + writes) * 100.0).round() as u8;
    let line = |share: u8, read: u8, bytes: f64, requests: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the bounds of a request
        let bytes = ((bytes / requests / SECTOR).round().max(1.0) * SECTOR).min(f64::from(REQUEST_BYTES_MAX)) as u32;
        AccessLine { bytes, share, read, random: 100, align: None }
    };
    let mut lines = Vec::new();
    if share > 0 {
        lines.push(line(share, 100, mean(|one| one.read_bytes), reads));
    }
    if share < 100 {
        lines.push(line(100 - share, 0, mean(|one| one.written_bytes), writes));
    }
    let spec = AccessSpec::new(&name, lines).map_err(|error| ReadError::at(seen.line, format!("{name}: {error}")))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // cut off at most
    let depth = mean(|one| one.queue).round().clamp(1.0, DEPTH_MAX) as u32;
    Ok(Some(IostatDevice { name, spec, depth }))
}

/// Names of a column, the newest first, and the size of its unit.
const READS: &[(&str, f64)] = &[("r/s", 1.0)];
const WRITES: &[(&str, f64)] = &[("w/s", 1.0)];
const READ_BYTES: &[(&str, f64)] = &[("rkB/s", 1024.0), ("rMB/s", 1_048_576.0), ("rsec/s", SECTOR)];
const WRITTEN_BYTES: &[(&str, f64)] = &[("wkB/s", 1024.0), ("wMB/s", 1_048_576.0), ("wsec/s", SECTOR)];
const QUEUE: &[(&str, f64)] = &[("aqu-sz", 1.0), ("avgqu-sz", 1.0)];

/// A sample from the values of named columns.
fn sample(value: impl Fn(&str) -> Option<f64>) -> Result<Sample, &'static str> {
    let of = |names: &'static [(&'static str, f64)]| {
        let found = names.iter().find_map(|(name, unit)| value(name).map(|value| value * unit));
        found.filter(|value| value.is_finite() && *value >= 0.0).ok_or(names[0].0)
    };
    Ok(Sample {
        reads: of(READS)?,
        writes: of(WRITES)?,
        read_bytes: of(READ_BYTES)?,
        written_bytes: of(WRITTEN_BYTES)?,
        queue: of(QUEUE)?,
    })
}

fn note(seen: &mut BTreeMap<String, Seen>, line: u64, name: &str, sample: Sample) -> Result<(), ReadError> {
    if seen.len() == DEVICES_MAX && !seen.contains_key(name) {
        return Err(ReadError::at(
            line,
            format!("more than {DEVICES_MAX} devices; name only the interesting ones to iostat"),
        ));
    }
    let device = seen.entry(name.to_owned()).or_default();
    device.samples.push(sample);
    device.line = line;
    Ok(())
}

fn from_text<R: BufRead>(mut lines: Lines<R>) -> Result<BTreeMap<String, Seen>, ReadError> {
    let mut seen = BTreeMap::new();
    // The columns after the name of the device; none outside a table.
    let mut columns: Option<Vec<String>> = None;
    while let Some((number, line)) = lines.next()? {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else {
            columns = None;
            continue;
        };
        if first.trim_end_matches(':') == "Device" {
            let names: Vec<String> = words.map(str::to_owned).collect();
            if !names.iter().any(|name| name == QUEUE[0].0 || name == QUEUE[1].0) {
                let reason = "this table has no queue (aqu-sz); record it with iostat -x, and not with -s";
                return Err(ReadError::at(number, reason));
            }
            columns = Some(names);
            continue;
        }
        let Some(names) = &columns else { continue };
        // Some languages use a decimal comma.
        let values: Vec<Option<f64>> = words.map(|word| word.replace(',', ".").parse().ok()).collect();
        if values.len() != names.len() {
            let reason = format!("{} has {} values, and the table {} columns", shown(line), values.len(), names.len());
            return Err(ReadError::at(number, reason + "; record it again, whole"));
        }
        let value = |name: &str| names.iter().position(|known| known == name).and_then(|at| values[at]);
        let sample = sample(value).map_err(|name| {
            ReadError::at(number, format!("{}: {name} is not a number from 0 on, or not there", shown(first)))
        })?;
        note(&mut seen, number, first, sample)?;
    }
    Ok(seen)
}

#[derive(Deserialize)]
struct Root {
    sysstat: Sysstat,
}

#[derive(Deserialize)]
struct Sysstat {
    hosts: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    statistics: Vec<Report>,
}

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    disk: Vec<BTreeMap<String, serde_json::Value>>,
}

fn from_json(from: impl BufRead) -> Result<BTreeMap<String, Seen>, ReadError> {
    let root: Root = serde_json::from_reader(from.take(JSON_BYTES_MAX)).map_err(|error| {
        let line = u64::try_from(error.line()).unwrap_or(0);
        ReadError::at(line, format!("no output of iostat -x -o JSON: {error}"))
    })?;
    let mut seen = BTreeMap::new();
    for disk in root.sysstat.hosts.iter().flat_map(|host| &host.statistics).flat_map(|report| &report.disk) {
        let name = disk.get("disk_device").and_then(serde_json::Value::as_str);
        let name = name.ok_or_else(|| ReadError::at(0, "a disk without its name (disk_device)"))?;
        let value = |key: &str| disk.get(key).and_then(serde_json::Value::as_f64);
        let sample = sample(value).map_err(|key| {
            ReadError::at(
                0,
                format!("{}: {key} is not a number from 0 on, or not there; record it with iostat -x", shown(name)),
            )
        })?;
        note(&mut seen, 0, name, sample)?;
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    // From sysstat 12.6: two reports, the first since the start of the machine.
    const TEXT: &str = "\
Linux 6.1.0-18-amd64 (host) \t11/24/2026 \t_x86_64_\t(2 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    0.00    1.00    1.00    0.00   97.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
sda              1.00      4.00     0.00   0.00    1.00     4.00    1.00      4.00     0.00   0.00    1.00     4.00    0.01   1.00
sdb              0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00   0.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
sda            140.00   1120.00     0.00   0.00    9.00     8.00   60.00    960.00     0.00   0.00   12.00    16.00    2.60  98.00
sdb              0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00   0.00
";

    fn line(bytes: u32, share: u8, read: u8) -> AccessLine {
        AccessLine { bytes, share, read, random: 100, align: None }
    }

    #[test]
    fn means_become_a_load_and_the_report_since_the_start_does_not_count() {
        let devices = read_iostat(TEXT.as_bytes()).unwrap();
        assert_eq!(devices.len(), 1, "one that did nothing is not a load");
        assert_eq!((devices[0].name.as_str(), devices[0].depth), ("sda", 3));
        assert_eq!(devices[0].spec.lines(), [line(8192, 70, 100), line(16_384, 30, 0)]);
        // The column names of sysstat 10, with decimal commas.
        let old = "Device:  rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util\n\
                   sdc 0,00 0,00 10,00 0,00 40,00 0,00 8,00 0,40 1,00 1,00 4,00\n";
        let devices = read_iostat(old.as_bytes()).unwrap();
        assert_eq!((devices[0].depth, devices[0].spec.lines()), (1, &[line(4096, 100, 100)][..]));
    }

    #[test]
    fn json_says_the_same() {
        let disk = |reads: f64, queue: f64| {
            format!(
                r#"{{"disk_device": "sda", "r/s": {reads}, "rkB/s": 1120.0, "w/s": 60.0, "wkB/s": 960.0, "aqu-sz": {queue}}}"#
            )
        };
        let report = |disk: String| format!(r#"{{"avg-cpu": {{"idle": 97.0}}, "disk": [{disk}]}}"#);
        let (first, second) = (report(disk(1.0, 0.01)), report(disk(140.0, 2.6)));
        let json =
            format!(r#"{{"sysstat": {{"hosts": [{{"nodename": "host", "statistics": [{first}, {second}]}}]}}}}"#);
        assert_eq!(read_iostat(json.as_bytes()), read_iostat(TEXT.as_bytes()));
        let error = read_iostat("{\n\"sysstat\": 1}\n".as_bytes()).unwrap_err();
        assert!(error.line == 2 && error.reason.contains("no output of iostat -x -o JSON"), "{error}");
    }

    #[test]
    fn a_bad_line_is_named_with_its_number() {
        let head = "Device r/s rkB/s w/s wkB/s aqu-sz\n";
        for (text, line, words) in [
            (format!("{head}sda 1 2 3\n"), 2, "has 3 values, and the table 5 columns"),
            (format!("{head}sda 1 x 3 4 5\n"), 2, "rkB/s is not a number"),
            (format!("{head}sda 1 -2 3 4 5\n"), 2, "rkB/s is not a number"),
            ("Device tps kB_read/s kB_wrtn/s\nsda 1 2 3\n".into(), 1, "record it with iostat -x"),
            (format!("{head}sda 0 0 0 0 0\n"), 0, "no device in it has done anything"),
        ] {
            let error = read_iostat(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.reason.contains(words)), (line, true), "{text}: {error}");
        }
    }
}
