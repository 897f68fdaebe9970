//! Makes the load of a job from its options.

use super::super::fio_numbers::{size, time};
use super::super::{shown, ReadError};
use super::options::{default_only, engine, is_passed_over, Engine, DEFAULT_ENGINE};
use super::JobOption;
use crate::load::{AccessLine, AccessManner, AccessSpec};
use openraid_units::Nanos;
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioJob {
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

/// An option with its value.
#[derive(Clone, Copy)]
struct Word<'a> {
    given: &'a JobOption,
    value: &'a str,
}

/// The options that a load is made from.
#[derive(Default)]
struct Options<'a> {
    rw: Option<Word<'a>>,
    sizes: Option<Word<'a>>,
    split: Option<Word<'a>>,
    read_percent: Option<u8>,
    random_percent: Option<Word<'a>>,
    align: Option<u32>,
    workers: Option<u16>,
    depth: Option<(u64, u32)>,
    offset: Option<u64>,
    /// Does `filename` name a device, so that `size` is its first part?
    is_device: bool,
    size: Option<u64>,
    runtime: Option<Nanos>,
    ramp: Nanos,
    think: Nanos,
    think_blocks: u32,
    rate: Option<Word<'a>>,
    fsync: Option<u32>,
    fdatasync: Option<u32>,
    engine: Option<Word<'a>>,
    /// The line that says whether the page cache is used, and whether it says no.
    direct: Option<(u64, bool)>,
}

/// The sizes of one direction, with their shares in percent.
type Sizes = Vec<(u32, u8)>;

/// The load of a job that begins in a line.
///
/// # Errors
/// The first option that is not understood; then one that contradicts another.
pub(super) fn job(line: u64, name: &str, given: &[JobOption]) -> Result<FioJob, ReadError> {
    // As in fio, the last of several counts, whatever its name.
    let last: BTreeMap<&str, &JobOption> = given.iter().map(|given| (canonical(&given.key), given)).collect();
    let mut last: Vec<(&str, &JobOption)> = last.into_iter().collect();
    last.sort_by_key(|(_, given)| given.line);
    let mut options = Options::default();
    for (key, given) in last {
        options.take(key, given)?;
    }
    let spec = options.spec(line, name)?;
    options.check(line, name)?;
    Ok(FioJob {
        spec,
        workers: options.workers.unwrap_or(1),
        depth: options.depth.map_or(1, |(_, depth)| depth),
        runtime: options.runtime,
        ramp: options.ramp,
    })
}

/// What to do with a load that fio can make and openraid cannot.
const RECORD: &str = "this load is not supported; record it with fio's write_iolog and use the trace";

/// One name for the options that set the same value.
fn canonical(key: &str) -> &str {
    match key {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "blockalign" => "ba",
        "fileoffset" => "offset",
        "timeout" => "runtime",
        "rwmixwrite" => "rwmixread",
        "buffered" => "direct",
        "iodepth_batch_submit" => "iodepth_batch",
        "iodepth_batch_complete" => "iodepth_batch_complete_min",
        "io_limit" => "io_size",
        "blocksize_range" => "bsrange",
        "nr_files" => "nrfiles",
        "fill_fs" => "fill_device",
        other => other,
    }
}

impl<'a> Word<'a> {
    fn error(&self, reason: impl Into<String>) -> ReadError {
        ReadError::at(self.given.line, reason)
    }

    fn number<T: TryFrom<u64>>(&self, least: u64, most: u64) -> Result<T, ReadError> {
        self.number_of(self.value, least, most)
    }

    fn number_of<T: TryFrom<u64>>(&self, text: &str, least: u64, most: u64) -> Result<T, ReadError> {
        let parsed = size(text, self.given.prefixes);
        let parsed = parsed.filter(|n| (least..=most).contains(n)).and_then(|n| T::try_from(n).ok());
        parsed.ok_or_else(|| {
            let key = &self.given.key;
            self.error(format!("{key}={} is not possible; give {least} to {most}", shown(self.value)))
        })
    }

    /// A time; a plain number is in the option's own unit.
    fn time(&self, plain_ns: u64) -> Result<Nanos, ReadError> {
        let key = &self.given.key;
        let bad = || self.error(format!("{key}={} is not a time; write it as 30s or 5m", shown(self.value)));
        time(self.value, plain_ns).map(Nanos).ok_or_else(bad)
    }

    fn flag(&self) -> Result<bool, ReadError> {
        self.number::<u8>(0, 1).map(|value| value == 1)
    }

    /// The value for writes or reads of `both`, `reads,writes` or `reads,writes,trims`.
    fn of(&self, write: bool) -> Result<&'a str, ReadError> {
        let parts: Vec<&str> = self.value.split(',').collect();
        if parts.len() > 3 || parts.iter().any(|part| part.is_empty() || part.trim() != *part) {
            let key = &self.given.key;
            let reason = format!("{key}={} is not a value for each direction; write READS,WRITES", shown(self.value));
            return Err(self.error(reason));
        }
        Ok(if write && parts.len() > 1 { parts[1] } else { parts[0] })
    }
}

impl<'a> Options<'a> {
    fn take(&mut self, key: &str, given: &'a JobOption) -> Result<(), ReadError> {
        let error = |reason: String| Err(ReadError::at(given.line, reason));
        if is_passed_over(key) || key == "kb_base" {
            return Ok(());
        }
        let value = given.value.as_str();
        if value.contains('$') {
            let reason = "fio replaces a word with $ by a value of the machine or the environment; write the value";
            return error(format!("{key}={}: {reason}", shown(value)));
        }
        let word = Word { given, value };
        match key {
            "filename" if value.replace("\\:", "").contains(':') => {
                return error(format!("filename={}: several files in turn are not supported; name one", shown(value)));
            }
            "filename" => self.is_device = value.starts_with("/dev/"),
            "rw" => self.rw = Some(word),
            "bs" => self.sizes = Some(word),
            "bssplit" => self.split = Some(word),
            "rwmixread" if given.key == "rwmixwrite" => self.read_percent = Some(100 - word.number::<u8>(0, 100)?),
            "rwmixread" => self.read_percent = Some(word.number(0, 100)?),
            "percentage_random" => self.random_percent = Some(word),
            "ba" => self.align = Some(word.number(512, u64::from(u32::MAX))?),
            "numjobs" => self.workers = Some(word.number(1, 256)?),
            "iodepth" => self.depth = Some((given.line, word.number(1, 4096)?)),
            "offset" | "size" if value.ends_with('%') => {
                return error(format!("{key}={}: shares of the target are not understood; give bytes", shown(value)));
            }
            "offset" => self.offset = Some(word.number(0, u64::MAX)?),
            "size" => self.size = Some(word.number(512, u64::MAX)?),
            "runtime" => self.runtime = Some(word.time(1_000_000_000)?),
            "ramp_time" => self.ramp = word.time(1_000_000_000)?,
            "thinktime" => self.think = word.time(1_000)?,
            "thinktime_blocks" => self.think_blocks = word.number(1, 1 << 20)?,
            // As in fio, zero means never. On a device both options cause the same flush.
            "fsync" => self.fsync = Some(word.number(0, 1 << 30)?).filter(|writes| *writes > 0),
            "fdatasync" => self.fdatasync = Some(word.number(0, 1 << 30)?).filter(|writes| *writes > 0),
            "rate_iops" => self.rate = Some(word),
            "ioengine" => self.engine = Some(word),
            "direct" => self.direct = Some((given.line, word.flag()? != (given.key == "buffered"))),
            _ => return default_only(&given.key, value).or_else(error),
        }
        Ok(())
    }

    /// Does the job keep its depth at the drives?
    fn check(&self, line: u64, name: &str) -> Result<(), ReadError> {
        let (at, word) = self.engine.map_or((line, DEFAULT_ENGINE), |word| (word.given.line, word.value));
        let found = engine(word);
        match (found, self.depth) {
            (Engine::Refused(why), _) => {
                let reason = format!("ioengine={} {why}; use libaio, or one that asks the drives", shown(word));
                return Err(ReadError::at(at, reason));
            }
            (Engine::One(why), Some((line, depth @ 2..))) => {
                let remedy = format!("write ioengine=libaio if {depth} shall be outstanding, or iodepth=1");
                return Err(match self.engine {
                    Some(_) => {
                        let word = shown(word);
                        ReadError::at(at, format!("ioengine={word} {why}, and iodepth asks for {depth}; {remedy}"))
                    }
                    None => ReadError::at(
                        line,
                        format!("iodepth={depth} without ioengine: fio takes {DEFAULT_ENGINE}, which {why}; {remedy}"),
                    ),
                });
            }
            (Engine::One(_) | Engine::Depth | Engine::DepthUncached, _) => {}
        }
        let cache = "fio uses the page cache, which is not a part of the target; write direct=1";
        match self.direct {
            Some((_, true)) => {}
            _ if found == Engine::DepthUncached => {}
            Some((at, false)) => return Err(ReadError::at(at, format!("direct=0: {cache}"))),
            None => return Err(ReadError::at(line, format!("job {} has no direct=1: {cache}", shown(name)))),
        }
        if self.fsync.is_some() && self.fdatasync.is_some() {
            return Err(ReadError::at(line, "fsync and fdatasync in one job are not understood; remove one of them"));
        }
        Ok(())
    }

    /// Percent of reads, and whether positions are random.
    fn directions(&self) -> Result<(u8, bool), ReadError> {
        let mixed = self.read_percent.unwrap_or(50);
        let Some(word) = self.rw else { return Ok((100, false)) };
        match word.value {
            "read" => Ok((100, false)),
            "write" => Ok((0, false)),
            "randread" => Ok((100, true)),
            "randwrite" => Ok((0, true)),
            "randrw" => Ok((mixed, true)),
            "rw" | "readwrite" if mixed == 100 || mixed == 0 => Ok((mixed, false)),
            "rw" | "readwrite" => {
                let what = "fio continues reads and writes each where its own last request ended";
                Err(word.error(format!("rw={}: {what}, and {RECORD}", word.value)))
            }
            other => {
                let known = "use read, write, randread, randwrite, rw or randrw";
                Err(word.error(format!("rw={} is not understood; {known}", shown(other))))
            }
        }
    }

    fn spec(&self, line: u64, name: &str) -> Result<AccessSpec, ReadError> {
        let (read, is_random) = self.directions()?;
        let (write_only, is_mixed) = (read == 0, read > 0 && read < 100);
        // As in fio, this option makes no other load random.
        let random = match self.random_percent.filter(|_| is_random) {
            Some(word) => word.number_of(word.of(write_only)?, 0, 100)?,
            None => u8::from(is_random) * 100,
        };
        if let Some(word) =
            self.random_percent.filter(|word| is_mixed && (random < 100 || word.of(true) != word.of(false)))
        {
            let what = "fio continues reads and writes each where its own last request ended";
            return Err(word.error(format!("percentage_random={}: {what}, and {RECORD}", shown(word.value))));
        }
        let (sizes_line, reads, writes) = self.both_sizes(line)?;
        let lines = |sizes: &Sizes, read: u8| {
            // fio places all sizes of a direction at multiples of the smallest.
            let smallest = sizes.iter().map(|(bytes, _)| *bytes).min();
            let place = self.align.or(smallest.filter(|_| random > 0));
            let line = |(bytes, share): &(u32, u8)| {
                let plain = AccessLine::new(*bytes, *share, read, random);
                AccessLine { align: place.filter(|place| *place != plain.alignment()), ..plain }
            };
            sizes.iter().map(line).collect::<Vec<_>>()
        };
        let lines = match (is_mixed && reads != writes, &reads[..], &writes[..]) {
            (false, ..) => lines(if write_only { &writes } else { &reads }, read),
            (true, [(reads, _)], [(writes, _)]) => {
                [lines(&vec![(*reads, read)], 100), lines(&vec![(*writes, 100 - read)], 0)].concat()
            }
            (true, ..) => {
                let reason = "bssplit apart for reads and writes is not understood in a mix; make two jobs of it";
                return Err(ReadError::at(sizes_line, reason));
            }
        };
        let spec = AccessSpec::new(name, lines);
        let spec = spec.map_err(|error| {
            let kib = "; note that KiB is 1000 to fio unless kb_base=1000";
            let of = if [&reads, &writes].iter().any(|all| all.iter().any(|(n, _)| n % 1000 == 0)) { kib } else { "" };
            ReadError::at(sizes_line, format!("job {}: {error}{of}", shown(name)))
        })?;
        Ok(spec.in_manner(self.manner(write_only, is_mixed)?))
    }

    /// The line of the sizes, and those of reads and of writes.
    fn both_sizes(&self, line: u64) -> Result<(u64, Sizes, Sizes), ReadError> {
        // As in fio, bssplit counts wherever bs stands.
        match (self.split, self.sizes) {
            (Some(word), _) => Ok((word.given.line, split(&word, word.of(false)?)?, split(&word, word.of(true)?)?)),
            (None, Some(word)) => {
                let one = |write| -> Result<Sizes, ReadError> {
                    Ok(vec![(word.number_of(word.of(write)?, 512, u64::from(u32::MAX))?, 100)])
                };
                Ok((word.given.line, one(false)?, one(true)?))
            }
            (None, None) => Ok((line, vec![(4096, 100)], vec![(4096, 100)])),
        }
    }

    fn manner(&self, write_only: bool, is_mixed: bool) -> Result<AccessManner, ReadError> {
        let flush_every = self.fsync.or(self.fdatasync);
        let rate = match self.rate {
            None => None,
            Some(word) if is_mixed => {
                let what = "fio limits reads and writes each to the rate, whatever their shares";
                return Err(word.error(format!("rate_iops={}: {what}, and {RECORD}", shown(word.value))));
            }
            Some(word) => Some((word, word.number_of::<u32>(word.of(write_only)?, 1, 100_000_000)?)),
        };
        match (rate, flush_every, self.workers) {
            (Some((word, rate)), Some(writes), _) => {
                let reason =
                    format!("rate_iops={rate} with a sync after {writes} writes is not understood; remove one of them");
                return Err(word.error(reason));
            }
            (Some((word, rate)), None, Some(workers @ 2..)) => {
                let reason = format!(
                    "rate_iops={rate} for each of {workers} jobs is not understood; write one job with all the requests"
                );
                return Err(word.error(reason));
            }
            _ => {}
        }
        Ok(AccessManner {
            think: (self.think > Nanos::ZERO).then_some((self.think_blocks.max(1), self.think.get())),
            rate: rate.map(|(_, rate)| rate),
            flush_every,
            // A file lies anywhere, unless the job says where. A part of a device begins at its beginning.
            start: match (self.offset, self.size) {
                (Some(offset), Some(_)) => Some(offset),
                (None, Some(_)) => self.is_device.then_some(0),
                (offset, None) => offset.filter(|offset| *offset > 0),
            },
            len: self.size,
        })
    }
}

/// `4k/10:64k/50:32k/40`; entries without a share divide the rest evenly.
fn split(word: &Word<'_>, value: &str) -> Result<Sizes, ReadError> {
    let wrong = |part: &str| {
        word.error(format!("bssplit: {} is not a size/percent; write 4k/60:64k/40, in whole percent", shown(part)))
    };
    let mut sizes: Vec<(u32, Option<u8>)> = Vec::new();
    for part in value.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let bytes = size(bytes, word.given.prefixes).and_then(|n| u32::try_from(n).ok()).ok_or_else(|| wrong(part))?;
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
