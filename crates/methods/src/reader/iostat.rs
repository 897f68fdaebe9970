//! Reads the output of `iostat -x` of sysstat about devices, as text or as JSON (`-o JSON`): means over a time, from
//! which a load is made.
//!
//! The output has the rates of reads and writes, their bytes and the mean queue, but no addresses. The addresses are
//! assumed to be random, which is the harder case for disks. Flushes and discards are left out. The first report of a
//! recording covers the time since the start of the machine: it is left out, and the others are averaged. With `-y` iostat leaves it out
//! itself; in its text an empty line more shows that. A device that such a report does not name did nothing in its time (`-z`).

use super::{shown, NumberedLines, ReadError};
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
/// Number of empty lines after the head of a recording without the report since the start of the machine (`-y`).
const EMPTY_WITHOUT_FIRST: u64 = 2;

/// A device's load.
#[derive(Clone, PartialEq, Debug)]
pub struct IostatDevice {
    /// Name of the device.
    pub name: String,
    /// Reads and writes with their mean sizes, at random addresses.
    pub spec: AccessSpec,
    /// The mean queue, at least one.
    pub depth: u32,
    /// Requests that ended each second.
    pub rate: f64,
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

/// What the reports say about one device.
#[derive(Default)]
struct DeviceReports {
    /// The sum over all reports of a time.
    sum: Sample,
    /// The last line about the device, and the number of its report.
    line: u64,
    report: u64,
}

/// All reports of a file.
#[derive(Default)]
struct Reports {
    devices: BTreeMap<String, DeviceReports>,
    /// Number of reports so far; the last is the present one.
    count: u64,
    /// Number of reports that cover the time since the start of the machine.
    since_start: u64,
    /// Does the present one?
    is_since_start: bool,
}

/// Does the first line of a file look like iostat's output?
#[must_use]
pub fn is_iostat(first_line: &str) -> bool {
    let line = first_line.trim();
    let begins = ["Linux ", "Device", "avg-cpu", "{"].iter().any(|word| line.starts_with(word));
    begins || (line.starts_with("r/s") && line.ends_with("Device"))
}

/// Reads the output of `iostat -x`.
///
/// # Errors
/// The first invalid line. A device without requests is left out, but a file in which no device has requests is an
/// error.
pub fn read_iostat(mut from: impl BufRead) -> Result<Vec<IostatDevice>, ReadError> {
    let first = from.fill_buf().map_err(|error| ReadError::at(0, format!("it cannot be read: {error}")))?;
    let json = first.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let reports = if json { from_json(from)? } else { from_text(NumberedLines::new(from))? };
    if reports.count == 0 {
        let reason = "no table of devices in it (Device, r/s, ...); record it with LC_ALL=C iostat -x 10";
        return Err(ReadError::at(0, reason));
    }
    let devices = reports.devices()?;
    if devices.is_empty() {
        let reason =
            "no device has done anything in it, apart from the first report, which covers the time since the start \
                      of the machine; record it while the load runs: iostat -x 10";
        return Err(ReadError::at(0, reason));
    }
    Ok(devices)
}

impl Reports {
    /// A report begins. The first of a recording covers the time since the start of the machine.
    fn begin(&mut self, is_first: bool) {
        self.count += 1;
        self.is_since_start = is_first;
        self.since_start += u64::from(is_first);
    }

    fn note(&mut self, line: u64, name: &str, sample: Sample) -> Result<(), ReadError> {
        if self.devices.len() == DEVICES_MAX && !self.devices.contains_key(name) {
            let reason = format!("more than {DEVICES_MAX} devices; name only the interesting ones to iostat");
            return Err(ReadError::at(line, reason));
        }
        let device = self.devices.entry(name.to_owned()).or_default();
        if device.report == self.count {
            let reason = format!("a second line about {} in one report; record it again, whole", shown(name));
            return Err(ReadError::at(line, reason));
        }
        (device.line, device.report) = (line, self.count);
        if !self.is_since_start {
            device.sum = device.sum.plus(sample);
        }
        Ok(())
    }

    /// The file ends without the empty line after a report. Is a device missing that the report before has?
    fn check_end(&self, line: u64) -> Result<(), ReadError> {
        match self.devices.iter().find(|(_, seen)| self.count > 1 && seen.report == self.count - 1) {
            Some((name, _)) => {
                let name = shown(name);
                let reason = format!(
                    "the file ends here without an empty line, and its last report has no {name}, so it may \
                                      have been cut off; remove the last report, or end it with an empty line"
                );
                Err(ReadError::at(line, reason))
            }
            None => Ok(()),
        }
    }

    fn devices(self) -> Result<Vec<IostatDevice>, ReadError> {
        let times = self.count - self.since_start;
        if times == 0 {
            let which = if self.since_start == 1 { "its one report" } else { "each of its reports" };
            let reason = format!(
                "{which} covers the time since the start of the machine; record at least two reports while the load runs: \
                 iostat -x 10 2, or without the first one: iostat -xy 10 1 (as text)"
            );
            return Err(ReadError::at(0, reason));
        }
        let mean = |seen: &DeviceReports| seen.sum.divided(times);
        self.devices.into_iter().filter_map(|(name, seen)| device(name, seen.line, mean(&seen)).transpose()).collect()
    }
}

impl Sample {
    fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            queue: self.queue + other.queue,
        }
    }

    fn divided(self, by: u64) -> Self {
        #[allow(clippy::cast_precision_loss)] // a number of reports
        let by = by as f64;
        Self {
            reads: self.reads / by,
            writes: self.writes / by,
            read_bytes: self.read_bytes / by,
            written_bytes: self.written_bytes / by,
            queue: self.queue / by,
        }
    }
}

/// The load of one device; none if it had no requests.
fn device(name: String, line: u64, mean: Sample) -> Result<Option<IostatDevice>, ReadError> {
    let Sample { reads, writes, .. } = mean;
    if reads + writes <= 0.0 {
        return Ok(None);
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 0 to 100
    let share = (reads / (reads + writes) * 100.0).round() as u8;
    let of = |share: u8, read: u8, bytes: f64, requests: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the bounds of a request
        let bytes = ((bytes / requests / SECTOR).round().max(1.0) * SECTOR).min(f64::from(REQUEST_BYTES_MAX)) as u32;
        AccessLine { bytes, share, read, random: 100, align: None }
    };
    let mut lines = Vec::new();
    if share > 0 {
        lines.push(of(share, 100, mean.read_bytes, reads));
    }
    if share < 100 {
        lines.push(of(100 - share, 0, mean.written_bytes, writes));
    }
    let spec = AccessSpec::new(&name, lines).map_err(|error| ReadError::at(line, format!("{name}: {error}")))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // cut off at most
    let depth = mean.queue.round().clamp(1.0, DEPTH_MAX) as u32;
    Ok(Some(IostatDevice { name, spec, depth, rate: reads + writes }))
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

/// The columns of a table that begins in this line, the name of the device left out.
fn columns(number: u64, line: &str) -> Result<Vec<String>, ReadError> {
    let mut names: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if names.last().is_some_and(|name| name == "Device") {
        let reason =
            "the names of the devices stand in the last column: recorded with -h, which rounds the values, or \
                      with --pretty; record it without: iostat -x 10";
        return Err(ReadError::at(number, reason));
    }
    names.remove(0);
    for wanted in [READS, WRITES, READ_BYTES, WRITTEN_BYTES, QUEUE] {
        if !names.iter().any(|name| wanted.iter().any(|(known, _)| known == name)) {
            let reason = format!("this table has no {}; record it with iostat -x, and not with -s", wanted[0].0);
            return Err(ReadError::at(number, reason));
        }
    }
    Ok(names)
}

/// A value of a table. Some languages use a decimal comma.
fn value(word: &str) -> Option<f64> {
    word.replace(',', ".").parse().ok()
}

fn from_text<R: BufRead>(mut lines: NumberedLines<R>) -> Result<Reports, ReadError> {
    let mut reports = Reports::default();
    // The columns after the name of the device; none outside a table.
    let mut table: Option<Vec<String>> = None;
    let mut is_first = true;
    let mut last = 0;
    // Empty lines since the head of a recording, which is before its first report.
    let mut empty: Option<u64> = None;
    while let Some((number, line)) = lines.next()? {
        last = number;
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else {
            table = None;
            empty = empty.map(|count| count + 1);
            continue;
        };
        if empty.take().is_some_and(|count| count >= EMPTY_WITHOUT_FIRST) {
            is_first = false;
        }
        if first.trim_end_matches(':') == "Device" || (words.len() > 1 && words.last() == Some(&"Device")) {
            table = Some(columns(number, line)?);
            reports.begin(std::mem::take(&mut is_first));
            continue;
        }
        let Some(names) = &table else {
            // Each recording has a first report of its own.
            if *first == "Linux" {
                (is_first, empty) = (true, Some(0));
            }
            continue;
        };
        let values = &words[1..];
        if values.len() != names.len() {
            let reason = format!("{} has {} values, and the table {} columns", shown(line), values.len(), names.len());
            return Err(ReadError::at(number, reason + "; record it again, whole"));
        }
        let of = |name: &str| names.iter().position(|known| known == name).and_then(|at| value(values[at]));
        let sample = sample(of).map_err(|name| {
            let is_rounded = |word: &&str| value(word).is_none() && word.ends_with(['k', 'M', 'G', 'T', '%']);
            let why = match values.iter().find(|word| is_rounded(word)) {
                Some(word) => format!("{} is rounded: recorded with --human; record it without", shown(word)),
                None => format!("{name} is not a number from 0 on, or not there"),
            };
            ReadError::at(number, format!("{}: {why}", shown(first)))
        })?;
        reports.note(number, first, sample)?;
    }
    if table.is_some() {
        reports.check_end(last)?;
    }
    Ok(reports)
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
    disk: Option<Vec<BTreeMap<String, serde_json::Value>>>,
}

fn from_json(from: impl BufRead) -> Result<Reports, ReadError> {
    let root: Root = serde_json::from_reader(from.take(JSON_BYTES_MAX)).map_err(|error| {
        let line = u64::try_from(error.line()).unwrap_or(0);
        ReadError::at(line, format!("no output of iostat -x -o JSON: {error}; record it again, whole"))
    })?;
    let mut reports = Reports::default();
    for host in root.sysstat.hosts {
        for (number, disks) in host.statistics.into_iter().filter_map(|report| report.disk).enumerate() {
            reports.begin(number == 0);
            for disk in disks {
                let name = disk.get("disk_device").and_then(serde_json::Value::as_str);
                let name = name.ok_or_else(|| ReadError::at(0, "a disk without its name (disk_device)"))?;
                let value = |key: &str| disk.get(key).and_then(serde_json::Value::as_f64);
                let sample = sample(value).map_err(|key| {
                    let reason = "is not a number from 0 on, or not there; record it with iostat -x, and not with -s";
                    ReadError::at(0, format!("{}: {key} {reason}", shown(name)))
                })?;
                reports.note(0, name, sample)?;
            }
        }
    }
    Ok(reports)
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
                   sdc 0,00 0,00 10,00 0,00 40,00 0,00 8,00 0,40 1,00 1,00 4,00\n\n";
        let devices = read_iostat(old.repeat(2).as_bytes()).unwrap();
        assert_eq!((devices[0].depth, devices[0].spec.lines()), (1, &[line(4096, 100, 100)][..]));
    }

    /// A recording of these reports, each the lines of its table, with the options that other output needs.
    fn recording(head: &str, reports: &[&str]) -> String {
        let report = |lines: &&str| format!("avg-cpu:  %user\n          1.00\n\n{head}\n{lines}\n\n");
        format!("Linux 6.1 (host) \t11/24/2026\n\n{}", reports.iter().map(report).collect::<String>())
    }

    #[test]
    fn a_device_that_a_report_leaves_out_did_nothing_in_its_time() {
        let head = "Device r/s rkB/s w/s wkB/s aqu-sz";
        let read = |reports: &[&str]| read_iostat(recording(head, reports).as_bytes()).unwrap();
        let idle = "sda 0 0 0 0 0\n";
        // One report in which the device worked, then nine in which it did not: with -z, and without.
        let work = "sda 1000 4000 0 0 32\n";
        let short = read(&[&["sda 1 4 0 0 1\n", work][..], &[""; 9]].concat());
        assert_eq!(short, read(&[&["sda 1 4 0 0 1\n", work][..], &[idle; 9]].concat()));
        assert_eq!((short[0].depth, short[0].spec.lines()), (3, &[line(4096, 100, 100)][..]));
        // One that appears later did nothing before, and one that only worked before the recording is no load.
        let later = read(&["sda 1 4 0 0 1\nsdb 9 9 9 9 9\n", "", "sdc 8 64 24 96 12\n", "sda 1 4 0 0 4\n"]);
        let found: Vec<_> = later.iter().map(|one| (one.name.as_str(), one.depth, one.spec.lines().to_vec())).collect();
        let expected =
            [("sda", 1, vec![line(4096, 100, 100)]), ("sdc", 4, vec![line(8192, 25, 100), line(4096, 75, 0)])];
        assert_eq!(found, expected);
        // Each recording of a file begins with the time since the start of the machine.
        let twice = recording(head, &["sda 1 4 0 0 99\n", "sda 10 40 0 0 4\n"]).repeat(2);
        assert_eq!(read_iostat(twice.as_bytes()).unwrap()[0].depth, 4);
    }

    #[test]
    fn options_and_versions_of_iostat_that_say_the_same_are_the_same_load() {
        // From sysstat 12.6.1 and 11.7: -t in three forms, -m, --dec, -d, -p, -N, discards and flushes, decimal commas.
        let full = "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz d/s dkB/s \
                    drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util";
        let values = "140.00 1120.00 0.00 0.00 9.00 8.00 60.00 960.00 0.00 0.00 12.00 16.00 5.00 99.00 1.00 2.00 3.00 \
                      4.00 7.00 0.10 2.60 98.00";
        let plain = recording(full, &["vda 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", &format!("vda {values}\n")]);
        let expected = read_iostat(plain.as_bytes()).unwrap();
        assert!((expected[0].rate - 200.0).abs() < 1e-9, "140 reads and 60 writes: {}", expected[0].rate);
        assert_eq!((expected[0].depth, expected[0].spec.lines()), (3, &[line(8192, 70, 100), line(16_384, 30, 0)][..]));
        let same = |text: &str| assert_eq!(read_iostat(text.as_bytes()).as_ref(), Ok(&expected), "{text}");
        for stamp in ["11/28/26 16:55:51", "11/28/2026 04:55:51 PM", "2026-11-28T16:55:51+0000"] {
            same(&plain.replace("avg-cpu: ", &format!("{stamp}\navg-cpu: ")));
        }
        same(&plain.replace("avg-cpu:  %user\n          1.00\n\n", ""));
        same(&plain.replace(values, &values.replace('.', ",")));
        same(&plain.replace(values, &values.replace(".00", "")));
        same(&plain.trim_end().replace('\n', "\r\n"));
        // -y: the first report is left out by iostat, and a blank line more begins the output.
        same(&recording(full, &[&format!("vda {values}\n")]).replace("\n\navg", "\n\n\navg"));
        let mega = plain.replace("rkB/s", "rMB/s").replace("wkB/s", "wMB/s");
        same(&mega.replace("1120.00", "1.09375").replace("960.00", "0.9375"));
        let partitions = format!("vda {values}\nvda1 {}\n", values.replace("140.00", "70.00"));
        let partitions = recording(full, &["vda 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", &partitions]);
        assert_eq!(read_iostat(partitions.as_bytes()).unwrap().len(), 2);
        let old = "Device: rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util";
        let old = recording(old, &["vda 0 0 1 1 1 1 1 1 1 1 1\n", "vda 0 0 140 60 2240 1920 20.80 2.60 9 1 98\n"]);
        same(&old);
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
            (
                "Device tps kB/s rqm/s await areq-sz aqu-sz %util\n".into(),
                1,
                "no r/s; record it with iostat -x, and not",
            ),
            (format!("{head}sda 0 0 0 0 0\n\n").repeat(2), 0, "no device has done anything in it"),
            (
                format!("{head}sda 1 2 3 4 5\n"),
                0,
                "its one report covers the time since the start of the machine; record at",
            ),
            (
                format!("Linux\n\n{head}sda 1 2 3 4 5\n\n"),
                0,
                "iostat -x 10 2, or without the first one: iostat -xy 10 1",
            ),
            ("Linux 6.1 (host)\n\navg-cpu: %user\n 1.0\n".into(), 0, "no table of devices in it"),
            (
                "r/s rkB/s Device\n1.00 1.1M sda\n".into(),
                1,
                "recorded with -h, which rounds the values, or with --pretty",
            ),
            (format!("{head}sda 1 1.1M 3 4 5\n"), 2, "\"1.1M\" is rounded: recorded with --human"),
            (format!("{head}sda 1 2 3 4 5\nsda 1 2 3 4 5\n"), 3, "a second line about \"sda\" in one report"),
            (format!("{head}sda 1 2 3 4 5\nsdb 1 2 3 4 5\n\n{head}sda 1 2 3 4 5\n"), 6, "has no \"sdb\", so it may"),
            (format!("Linux\n{head}sda 1 2 3 4 5\n\n").repeat(3), 0, "each of its reports covers the time since"),
        ] {
            let error = read_iostat(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.reason.contains(words)), (line, true), "{text}: {error}");
        }
    }
}
