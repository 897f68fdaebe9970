//! Reads fio's job files: the options that describe a load. An unknown option that would change the load is an error.
//! Options about fio's own operation are skipped. The command line names the target, so `filename` is also skipped.
//! `stonewall` is skipped because only one job is measured at a time.

use super::words::{size, time};
use super::{second, shown, Lines, ReadError};
use crate::load::{AccessError, AccessLine, AccessSpec, Manner};
use openraid_units::Nanos;
use std::io::BufRead;

/// Maximum number of jobs in one file.
const JOBS_MAX: usize = 256;

/// A job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioJob {
    /// Name of the job.
    pub name: String,
    /// The load, with its pauses (`thinktime`, `thinktime_blocks`), its rate (`rate_iops`) and its part of the target
    /// (`offset`, `size`).
    pub spec: AccessSpec,
    /// Number of workers (`numjobs`).
    pub workers: u16,
    /// Outstanding requests of each worker (`iodepth`).
    pub depth: u32,
    /// Length of the measurement (`runtime`).
    pub runtime: Option<Nanos>,
    /// Time before the measurement (`ramp_time`).
    pub ramp: Nanos,
}

/// Options that do not change the load.
const PASSED_OVER: &[&str] = &[
    "filename",
    "stonewall",
    "group_reporting",
    "thread",
    "invalidate",
    "norandommap",
    "randrepeat",
    "allrandrepeat",
    "description",
    "gtod_reduce",
    "fallocate",
    "time_based",
    "disk_util",
    "cpus_allowed",
    "cpumask",
    "numa_cpu_nodes",
    "refill_buffers",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "log_avg_msec",
    "percentile_list",
    "clat_percentiles",
    "lat_percentiles",
    "new_group",
    "exitall",
    "create_on_open",
    "create_serialize",
    "unified_rw_reporting",
    "randseed",
    "random_generator",
    "userspace_reap",
    "fixedbufs",
    "registerfiles",
    "sqthread_poll",
    "hipri",
    "nice",
    "prio",
    "buffer_compress_percentage",
    "scramble_buffers",
    "zero_buffers",
    "per_job_logs",
    "status-interval",
    "size_unit",
    "overwrite",
    "continue_on_error",
    "disable_lat",
    "disable_clat",
    "disable_slat",
    "output",
    "output-format",
    "eta",
    "unlink",
    "write_iolog",
    "write_hist_log",
    "log_hist_msec",
    "log_max_value",
    "iomem",
    "mem",
    "lockmem",
    "clocksource",
    "gtod_cpu",
    "cpus_allowed_policy",
    "prioclass",
    "unit_base",
    "kb_base",
];

/// Options that change the load unless they have this value, and the remedy.
const PLAIN_ONLY: &[(&str, &str, &str)] = &[
    ("direct", "1", "the page cache is not a part of the target"),
    ("buffered", "0", "the page cache is not a part of the target"),
    ("nrfiles", "1", "the target is one file or device"),
    ("openfiles", "1", "the target is one file or device"),
    ("iodepth_batch", "1", "requests are asked one by one"),
    ("iodepth_batch_submit", "1", "requests are asked one by one"),
    ("iodepth_batch_complete", "1", "requests are taken back one by one"),
    ("end_fsync", "0", "flushes are not counted"),
    ("wait_for_previous", "0", "one job is measured at a time"),
];

/// Options that describe a load which is not supported, unless they have this value (empty if every value does), and
/// what the load would be.
const OTHER_LOADS: &[(&str, &str, &str)] = &[
    ("zonemode", "none", "requests inside one zone after another"),
    ("zonesize", "0", "requests inside one zone after another"),
    ("zonerange", "0", "requests inside one zone after another"),
    ("zoneskip", "0", "requests inside one zone after another"),
    ("zonecapacity", "0", "requests inside one zone after another"),
    ("max_open_zones", "0", "writes to a limited number of zones"),
    ("random_distribution", "random", "some places are requested more often than others"),
    ("rate", "0", "a limited number of bytes each second"),
    ("rate_min", "0", "a least number of bytes each second"),
    ("rate_iops_min", "0", "a least number of requests each second"),
    ("rate_process", "linear", "requests at other than even times"),
    ("bsrange", "", "sizes from a range"),
    ("blocksize_range", "", "sizes from a range"),
    ("bs_unaligned", "0", "sizes that are no whole sectors"),
    ("blocksize_unaligned", "0", "sizes that are no whole sectors"),
    ("bs_is_seq_rand", "0", "other sizes for sequential than for random requests"),
    ("sync", "0", "each write is durable before it is acknowledged"),
    ("write_barrier", "0", "a write that waits for all before it"),
    ("sync_file_range", "", "parts of a file are flushed"),
    ("loops", "1", "the same requests several times"),
    ("number_ios", "0", "an end after a number of requests"),
    ("io_size", "", "an end after a number of bytes, over and over inside size"),
    ("io_limit", "", "an end after a number of bytes, over and over inside size"),
    ("fill_device", "0", "writes until the device is full"),
    ("startdelay", "0", "a job that begins later"),
    ("offset_increment", "0", "each worker in a part of its own"),
    ("verify", "0", "blocks are read back and compared"),
    ("trim_percentage", "0", "discards between the writes"),
    ("dedupe_percentage", "0", "writes of equal data"),
    ("latency_target", "0", "a depth that follows the latency"),
    ("iodepth_low", "", "requests sent in groups"),
    ("iodepth_batch_complete_min", "1", "requests taken back in groups"),
    ("iodepth_batch_complete_max", "1", "requests taken back in groups"),
    ("file_service_type", "", "several files in turn"),
    ("directory", "", "files of a file system"),
    ("rw_sequencer", "sequential", "several requests at the same place"),
    ("thinktime_spin", "0", "work of the processor during the pauses"),
    ("thinktime_iotime", "0", "pauses after a time"),
    ("flow", "0", "jobs that wait for one another"),
    ("read_iolog", "", "a trace: name the trace itself as the load"),
    ("replay_no_stall", "0", "a trace without its times"),
];

/// Engines of fio that keep only one request outstanding, whatever the depth.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

#[derive(Clone, Default)]
struct Options {
    rw: Option<(u64, String)>,
    /// The sizes, with the number of their line.
    sizes: (u64, Vec<(u32, u8)>),
    read_percent: Option<u8>,
    random_percent: Option<u8>,
    align: Option<u32>,
    workers: Option<u16>,
    depth: Option<u32>,
    offset: Option<u64>,
    size: Option<u64>,
    runtime: Option<Nanos>,
    ramp: Nanos,
    think: Nanos,
    think_blocks: u32,
    rate: Option<(u64, u32)>,
    flush_every: Option<u32>,
    /// Number of the line and name of an engine that keeps one request outstanding.
    synchronous: Option<(u64, String)>,
}

/// Reads a job file.
///
/// # Errors
/// The first invalid line.
pub fn read_fio_job(from: impl BufRead) -> Result<Vec<FioJob>, ReadError> {
    let mut lines = Lines::new(from);
    let mut global = Options::default();
    let mut jobs: Vec<FioJob> = Vec::new();
    let mut section: Option<(u64, String, Options)> = None;
    let mut in_global = false;
    while let Some((number, line)) = lines.next()? {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let Some(name) = name.strip_suffix(']') else {
                return Err(ReadError::at(number, format!("{} has no closing bracket", shown(line))));
            };
            finish(&mut section, &mut jobs)?;
            in_global = name.eq_ignore_ascii_case("global");
            section = (!in_global).then(|| (number, name.to_owned(), global.clone()));
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let options = match &mut section {
            Some((_, _, options)) => options,
            None if in_global => &mut global,
            None => return Err(ReadError::at(number, unknown_kind(line))),
        };
        options.take(number, &key, value)?;
    }
    finish(&mut section, &mut jobs)?;
    if lines.is_empty() {
        return Err(ReadError::at(0, "the file is empty; record it again"));
    }
    if jobs.is_empty() {
        return Err(ReadError::at(
            0,
            "no job in it; a job file has a section such as [job1], and a trace has a request on each line",
        ));
    }
    Ok(jobs)
}

/// A file that does not begin with a section is probably not a job file of fio.
fn unknown_kind(line: &str) -> String {
    format!(
        "{} stands before any [section], so this is not a fio job; known are a fio job ([job1] and options), an Iometer .icf \
         (Version ...), iostat -x (Linux ...), a fio iolog (fio version 2 or 3 iolog), the text of blkparse, MSR CSV and SPC \
         traces (numbers with commas)",
        shown(line)
    )
}

fn finish(section: &mut Option<(u64, String, Options)>, jobs: &mut Vec<FioJob>) -> Result<(), ReadError> {
    let Some((line, name, options)) = section.take() else { return Ok(()) };
    if jobs.len() == JOBS_MAX {
        return Err(ReadError::at(line, format!("more than {JOBS_MAX} jobs; split the file")));
    }
    if jobs.iter().any(|known| known.name == name) {
        return Err(second(line, "job", &name));
    }
    jobs.push(options.job(line, name)?);
    Ok(())
}

fn number<T: TryFrom<u64>>(line: u64, key: &str, value: &str, least: u64, most: u64) -> Result<T, ReadError> {
    let parsed = size(value).filter(|n| (least..=most).contains(n)).and_then(|n| T::try_from(n).ok());
    parsed.ok_or_else(|| ReadError::at(line, format!("{key}={} is not possible; give {least} to {most}", shown(value))))
}

impl Options {
    fn take(&mut self, line: u64, key: &str, value: &str) -> Result<(), ReadError> {
        let bad_time = || ReadError::at(line, format!("{key}={} is not a time; write it as 30s or 5m", shown(value)));
        match key {
            "rw" | "readwrite" => self.rw = Some((line, value.to_ascii_lowercase())),
            "bs" | "blocksize" => {
                let one = value.split(',').collect::<Vec<_>>();
                if one.windows(2).any(|pair| pair[0] != pair[1]) {
                    let reason = "different sizes for reads and writes are not understood; make two jobs of it";
                    return Err(ReadError::at(line, reason));
                }
                self.sizes = (line, vec![(number(line, key, one[0], 512, u64::from(u32::MAX))?, 100)]);
            }
            "bssplit" => self.sizes = (line, split(line, value)?),
            "rwmixread" => self.read_percent = Some(number(line, key, value, 0, 100)?),
            "rwmixwrite" => self.read_percent = Some(100 - number::<u8>(line, key, value, 0, 100)?),
            "percentage_random" => self.random_percent = Some(number(line, key, value, 0, 100)?),
            "blockalign" | "ba" => self.align = Some(number(line, key, value, 512, u64::from(u32::MAX))?),
            "numjobs" => self.workers = Some(number(line, key, value, 1, 256)?),
            "iodepth" => self.depth = Some(number(line, key, value, 1, 4096)?),
            "offset" | "size" if value.ends_with('%') => {
                let reason = format!("{key}={}: shares of the target are not understood; give bytes", shown(value));
                return Err(ReadError::at(line, reason));
            }
            "offset" => self.offset = Some(number(line, key, value, 0, u64::MAX)?),
            "size" => self.size = Some(number(line, key, value, 512, u64::MAX)?),
            "runtime" | "timeout" => self.runtime = Some(Nanos(time(value, 1_000_000_000).ok_or_else(bad_time)?)),
            "ramp_time" => self.ramp = Nanos(time(value, 1_000_000_000).ok_or_else(bad_time)?),
            "thinktime" => self.think = Nanos(time(value, 1_000).ok_or_else(bad_time)?),
            "thinktime_blocks" => self.think_blocks = number(line, key, value, 1, 1 << 20)?,
            // As in fio, zero means never. On a device both options cause the same flush.
            "fsync" | "fdatasync" => {
                self.flush_every = Some(number(line, key, value, 0, 1 << 30)?).filter(|writes| *writes > 0);
            }
            "rate_iops" => self.rate = Some((line, number(line, key, value, 1, 100_000_000)?)),
            "ioengine" => {
                let one = SYNCHRONOUS.contains(&value);
                self.synchronous = one.then(|| (line, value.to_owned()));
            }
            "name" => {}
            _ => default_only(key, value).map_err(|reason| ReadError::at(line, reason))?,
        }
        Ok(())
    }

    fn job(self, line: u64, name: String) -> Result<FioJob, ReadError> {
        let (rw_line, rw) = self.rw.clone().unwrap_or((line, "read".into()));
        let mixed = self.read_percent.unwrap_or(50);
        let (read, random) = match rw.as_str() {
            "read" => (100, 0),
            "write" => (0, 0),
            "randread" => (100, 100),
            "randwrite" => (0, 100),
            "rw" | "readwrite" => (mixed, 0),
            "randrw" => (mixed, 100),
            other => {
                let reason = format!(
                    "rw={} is not understood; use read, write, randread, randwrite, rw or randrw",
                    shown(other)
                );
                return Err(ReadError::at(rw_line, reason));
            }
        };
        // As in fio, this option applies only to random loads, and makes no other load random.
        let random = self.random_percent.filter(|_| random > 0).unwrap_or(random);
        let (sizes_line, sizes) = if self.sizes.1.is_empty() { (line, vec![(4096, 100)]) } else { self.sizes.clone() };
        let align = self.align;
        let lines = sizes.iter().map(|(bytes, share)| AccessLine { bytes: *bytes, share: *share, read, random, align });
        let spec = AccessSpec::new(&name, lines.collect());
        let spec =
            spec.map_err(|error: AccessError| ReadError::at(sizes_line, format!("job {}: {error}", shown(&name))))?;
        self.check()?;
        let manner = Manner {
            think: (self.think > Nanos::ZERO).then_some((self.think_blocks.max(1), self.think.get())),
            rate: self.rate.map(|(_, rate)| rate),
            flush_every: self.flush_every,
            start: self.offset.filter(|offset| *offset > 0),
            len: self.size,
        };
        Ok(FioJob {
            name,
            spec: spec.in_manner(manner),
            workers: self.workers.unwrap_or(1),
            depth: self.depth.unwrap_or(1),
            runtime: self.runtime,
            ramp: self.ramp,
        })
    }

    /// Are the options of a job compatible with each other?
    fn check(&self) -> Result<(), ReadError> {
        if let (Some((line, engine)), Some(depth @ 2..)) = (&self.synchronous, self.depth) {
            let reason = format!(
                "ioengine={} keeps one request outstanding, and iodepth asks for {depth}; remove one of them",
                shown(engine)
            );
            return Err(ReadError::at(*line, reason));
        }
        if let (Some((line, rate)), Some(writes)) = (self.rate, self.flush_every) {
            let reason =
                format!("rate_iops={rate} with a sync after {writes} writes is not understood; remove one of them");
            return Err(ReadError::at(line, reason));
        }
        if let (Some((line, rate)), Some(workers @ 2..)) = (self.rate, self.workers) {
            let reason = format!(
                "rate_iops={rate} for each of {workers} jobs is not understood; write one job with all the requests"
            );
            return Err(ReadError::at(line, reason));
        }
        Ok(())
    }
}

/// An option that this program does not follow: one that changes no load, or one with its default value. Otherwise the
/// reason against it.
fn default_only(key: &str, value: &str) -> Result<(), String> {
    if PASSED_OVER.contains(&key) {
        return Ok(());
    }
    let find = |table: &[(&str, &'static str, &'static str)]| {
        table.iter().find(|(known, ..)| *known == key).map(|(_, default, what)| (*default, *what))
    };
    let reason = match (find(PLAIN_ONLY), find(OTHER_LOADS)) {
        (Some((default, _)), _) | (_, Some((default, _))) if value == default && !default.is_empty() => return Ok(()),
        (Some((_, why)), _) => format!("{key}={} changes the load, and {why}; remove it", shown(value)),
        (_, Some((_, load))) => format!(
            "{key}={} changes the load ({load}), and this load is not supported; record it with fio's write_iolog and \
             use the trace",
            shown(value)
        ),
        (None, None) => format!("option {} is not known; remove it if it does not change the load", shown(key)),
    };
    Err(reason)
}

/// `4k/10:64k/50:32k/40`; entries without a share divide the rest evenly.
fn split(line: u64, value: &str) -> Result<Vec<(u32, u8)>, ReadError> {
    if value.contains(',') {
        return Err(ReadError::at(line, "bssplit apart for reads and writes is not understood; make two jobs of it"));
    }
    let wrong =
        |part: &str| ReadError::at(line, format!("bssplit: {} is not a size/percent; write 4k/60:64k/40", shown(part)));
    let mut sizes: Vec<(u32, Option<u8>)> = Vec::new();
    for part in value.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let bytes = size(bytes).and_then(|n| u32::try_from(n).ok()).ok_or_else(|| wrong(part))?;
        let share = match share {
            "" => None,
            share => Some(share.parse::<u8>().ok().filter(|n| *n <= 100).ok_or_else(|| wrong(part))?),
        };
        sizes.push((bytes, share));
    }
    let given: u32 = sizes.iter().filter_map(|(_, share)| share.map(u32::from)).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count();
    let mut left = 100u32.saturating_sub(given);
    let mut still = u32::try_from(open).unwrap_or(u32::MAX);
    let share_out = sizes.into_iter().map(|(bytes, share)| {
        let share = share.unwrap_or_else(|| {
            let each = left / still;
            left -= each;
            still -= 1;
            u8::try_from(each).expect("at most 100")
        });
        (bytes, share)
    });
    Ok(share_out.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: &str = "\
# A file server, after the well-known example
[global]
ioengine=libaio
direct=1
rw=randrw
rwmixread=80
bssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10
runtime=30
[light]
iodepth=4
[heavy]
stonewall
iodepth=64
numjobs=2
thinktime=100
offset=1g
size=2g
";

    #[test]
    fn a_job_with_fsync_gives_the_number_of_writes_between_flushes() {
        let read = |option: &str| {
            let jobs = read_fio_job(format!("[log]\nrw=write\nbs=4k\n{option}\n").as_bytes());
            jobs.map(|jobs| jobs[0].spec.manner().flush_every)
        };
        assert_eq!(
            (read("fsync=1"), read("fdatasync=32"), read("fsync=0"), read("iodepth=1")),
            (Ok(Some(1)), Ok(Some(32)), Ok(None), Ok(None))
        );
        let error = read("fsync=often").unwrap_err();
        assert_eq!((error.line, error.reason.contains("fsync=\"often\" is not possible")), (4, true), "{error}");
    }

    #[test]
    fn the_file_server_example_is_the_file_server_mix() {
        let jobs = read_fio_job(JOBS.as_bytes()).unwrap();
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].spec.lines(), crate::load::file_server().lines());
        assert_eq!((jobs[0].depth, jobs[0].workers, jobs[0].runtime), (4, 1, Some(Nanos::from_secs(30))));
        assert_eq!((jobs[1].depth, jobs[1].workers), (64, 2));
        let manner =
            Manner { think: Some((1, 100_000)), start: Some(1 << 30), len: Some(2 << 30), ..Manner::default() };
        assert_eq!((jobs[0].spec.manner(), jobs[1].spec.manner()), (Manner::default(), manner));
    }

    #[test]
    fn percentage_random_makes_a_random_load_less_random_and_no_other_random() {
        for (rw, random) in [("randread", 30), ("randrw", 30), ("read", 0), ("write", 0), ("rw", 0)] {
            let jobs = read_fio_job(format!("[a]\nrw={rw}\npercentage_random=30\n").as_bytes()).unwrap();
            assert_eq!(jobs[0].spec.lines()[0].random, random, "{rw}");
        }
    }

    #[test]
    fn entries_without_a_share_divide_the_rest_evenly() {
        assert_eq!(split(1, "4k/50:8k:16k").unwrap(), [(4096, 50), (8192, 25), (16_384, 25)]);
        assert_eq!(split(1, "4k:8k:16k").unwrap(), [(4096, 33), (8192, 33), (16_384, 34)]);
    }

    #[test]
    fn garbage_is_refused_with_its_line() {
        for (text, expected) in [
            ("bs=4k\n", "line 1: \"bs=4k\" stands before any [section]"),
            ("[a]\nbs=4x\n", "line 2: bs=\"4x\" is not possible"),
            ("[a]\nrw=trim\n", "line 2: rw=\"trim\" is not understood"),
            (
                "[a]\nzonemode=zbd\n",
                "line 2: zonemode=\"zbd\" changes the load (requests inside one zone after another)",
            ),
            ("[a]\nblurb=2\n", "line 2: option \"blurb\" is not known; remove it if it does not change the load"),
            ("[a\n", "line 1: \"[a\" has no closing bracket"),
            ("[global]\nbs=4k\n", "no job in it"),
            ("", "the file is empty"),
            ("[a]\n\nbssplit=4k/60:8k/60\n", "line 3: job \"a\": the shares of the sizes add to 120 %"),
            ("[a]\nbs=4k,8k\n", "line 2: different sizes"),
            ("[a]\nsize=50%\n", "line 2: size=\"50%\": shares of the target are not understood; give bytes"),
            ("[a]\nnrfiles=8\n", "line 2: nrfiles=\"8\" changes the load"),
            ("[a]\ndirect=0\n", "line 2: direct=\"0\" changes the load"),
            ("[a]\nend_fsync=1\n", "line 2: end_fsync=\"1\" changes the load"),
            ("[a]\niodepth_batch=8\n", "line 2: iodepth_batch=\"8\" changes the load"),
            ("[a]\niodepth_low=8\n", "line 2: iodepth_low=\"8\" changes the load ("),
            ("[a]\ndirectory=/x\n", "line 2: directory=\"/x\" changes the load ("),
            ("[a]\nio_size=1g\n", "line 2: io_size=\"1g\" changes the load ("),
            ("[a]\nioengine=psync\niodepth=8\n", "line 2: ioengine=\"psync\" keeps one request"),
            ("[a]\nrate_iops=10\nnumjobs=4\n", "line 2: rate_iops=10 for each of 4 jobs"),
            ("[a]\n[b]\n[a]\nbs=4k\n", "line 3: a second job \"a\"; rename one"),
            ("[a]\nruntime=soon\n", "line 2: runtime=\"soon\" is not a time"),
        ] {
            let error = read_fio_job(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        // Options of fio that change the load and are not supported here: each is refused by name.
        for option in [
            "random_distribution=zipf:1.2",
            "sync=1",
            "loops=4",
            "number_ios=100",
            "rate=10m",
            "rate_min=1m",
            "rate_process=poisson",
            "startdelay=5",
            "bsrange=4k-64k",
            "bs_unaligned",
            "verify=crc32c",
            "zonesize=1g",
            "latency_target=5ms",
            "iodepth_batch_complete_max=8",
            "file_service_type=random",
            "rw_sequencer=identical",
            "write_barrier=32",
            "trim_percentage=10",
            "dedupe_percentage=50",
            "replay_no_stall=1",
        ] {
            let error = read_fio_job(format!("[a]\nrw=randrw\n{option}\n").as_bytes()).unwrap_err();
            let name = option.split('=').next().unwrap_or_default();
            let is_explained =
                error.reason.starts_with(&format!("{name}=")) && error.reason.contains("is not supported; record it");
            assert_eq!((error.line, is_explained), (3, true), "{error}");
            assert!(!error.reason.contains("if it does not change"), "{error}");
        }
        // With their defaults they change nothing.
        let plain = "[a]\nrw=randrw\nzonemode=none\nrandom_distribution=random\nloops=1\nsync=0\nverify=0\nunlink=1\n";
        assert_eq!(read_fio_job(plain.as_bytes()).unwrap(), read_fio_job(&b"[a]\nrw=randrw\n"[..]).unwrap());
        assert!(read_fio_job(&[0xff, 0xfe, 10][..]).unwrap_err().reason.contains("UTF-8"));
        let long = vec![b'a'; super::super::LINE_BYTES_MAX + 10];
        assert!(read_fio_job(&long[..]).unwrap_err().reason.contains("longer than"));
    }
}
