//! Reads Iometer's configuration files (`.icf`): access specifications, run time, queue depth.
//!
//! Lines that begin with an apostrophe are labels for the lines after them. In Iometer an alignment of 0 means sector
//! boundaries.

use super::{second, shown, NumberedLines, ReadError};
use crate::load::{AccessLine, AccessManner, AccessSpec};
use openraid_units::Nanos;
use std::io::BufRead;

/// Maximum number of specifications in one file.
const SPECS_MAX: usize = 1000;

/// The content of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IometerFile {
    /// Specifications with their pauses, in order.
    pub specs: Vec<AccessSpec>,
    /// Length of a run.
    pub runtime: Option<Nanos>,
    /// Time before the measurement.
    pub ramp: Nanos,
    /// Outstanding requests, if a worker gives a number.
    pub depth: Option<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Below {
    Nothing,
    RunTime,
    Ramp,
    Name,
    Sizes,
    Depth,
}

struct Open {
    line: u64,
    name: String,
    lines: Vec<AccessLine>,
    think: Option<(u32, Nanos)>,
}

/// Reads a configuration.
///
/// # Errors
/// The first invalid line.
pub fn read_icf(from: impl BufRead) -> Result<IometerFile, ReadError> {
    let mut lines = NumberedLines::new(from);
    let mut file = IometerFile::default();
    let mut below = Below::Nothing;
    let mut open: Option<Open> = None;
    let mut any = false;
    while let Some((number, line)) = lines.next()? {
        let text = line.trim();
        if !any {
            if !text.starts_with("Version") {
                return Err(ReadError::at(
                    number,
                    format!("{} is not the first line of an Iometer file (Version ...)", shown(text)),
                ));
            }
            any = true;
            continue;
        }
        if let Some(label) = text.strip_prefix('\'') {
            below = below_label(label, below);
            if below == Below::Name || label.starts_with("End access") {
                close(&mut open, &mut file)?;
            }
            continue;
        }
        if text.is_empty() && below != Below::Name {
            continue;
        }
        match below {
            Below::Nothing => {}
            Below::RunTime => file.runtime = Some(run_time(number, text)?),
            Below::Ramp => file.ramp = Nanos::from_secs(field(number, text, "ramp-up time", 0, 86_400)?),
            Below::Depth => {
                file.depth = Some(depth(number, text, file.depth)?);
                below = Below::Nothing;
            }
            Below::Name => {
                let name = text.rsplit_once(',').map_or(text, |(name, _)| name);
                open = Some(Open { line: number, name: name.trim().into(), lines: Vec::new(), think: None });
            }
            Below::Sizes => match &mut open {
                Some(open) => sizes(number, text, open)?,
                None => return Err(ReadError::at(number, "sizes without a specification's name above them")),
            },
        }
    }
    close(&mut open, &mut file)?;
    if file.specs.is_empty() {
        return Err(ReadError::at(0, "no access specification in it"));
    }
    Ok(file)
}

fn below_label(label: &str, before: Below) -> Below {
    let label = label.trim();
    match label {
        "Run Time" => Below::RunTime,
        "Ramp Up Time (s)" => Below::Ramp,
        _ if label.starts_with("hours") => before,
        _ if label.starts_with("Access specification name") => Below::Name,
        _ if label.starts_with("size,% of size") => Below::Sizes,
        _ if label.starts_with("Number of outstanding IOs") => Below::Depth,
        _ => Below::Nothing,
    }
}

fn close(open: &mut Option<Open>, file: &mut IometerFile) -> Result<(), ReadError> {
    let Some(Open { line, name, lines, think }) = open.take() else { return Ok(()) };
    if file.specs.len() == SPECS_MAX {
        return Err(ReadError::at(line, format!("more than {SPECS_MAX} access specifications; split the file")));
    }
    if file.specs.iter().any(|known| known.name() == name) {
        return Err(second(line, "access specification", &name));
    }
    let spec = AccessSpec::new(&name, lines);
    let spec = spec.map_err(|error| ReadError::at(line, format!("access specification {}: {error}", shown(&name))))?;
    let think = think.map(|(burst, time)| (burst, time.get()));
    file.specs.push(spec.in_manner(AccessManner { think, ..AccessManner::default() }));
    Ok(())
}

fn field(line: u64, text: &str, what: &str, least: u64, most: u64) -> Result<u64, ReadError> {
    let parsed = text.trim().parse::<u64>().ok().filter(|n| (least..=most).contains(n));
    parsed
        .ok_or_else(|| ReadError::at(line, format!("{what}: {} is not possible; give {least} to {most}", shown(text))))
}

/// Number of outstanding requests of a worker. It must be equal to that of the earlier workers.
fn depth(line: u64, text: &str, before: Option<u32>) -> Result<u32, ReadError> {
    let first = text.split(',').next().unwrap_or_default();
    let depth = u32::try_from(field(line, first, "outstanding requests", 1, 4096)?).expect("4096 fits");
    match before {
        Some(before) if before != depth => {
            let reason = format!(
                "{depth} outstanding requests of this worker and {before} of one above are not understood; give all \
                 workers the same number"
            );
            Err(ReadError::at(line, reason))
        }
        _ => Ok(depth),
    }
}

fn run_time(line: u64, text: &str) -> Result<Nanos, ReadError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [hours, minutes, seconds] = parts[..] else {
        return Err(ReadError::at(line, format!("run time: {} is not hours, minutes, seconds", shown(text))));
    };
    let part = |text: &str| field(line, text, "run time", 0, 100_000);
    Ok(Nanos::from_secs(part(hours)? * 3600 + part(minutes)? * 60 + part(seconds)?))
}

/// `size,% of size,% reads,% random,delay,burst,align,reply`; older files lack the last fields.
fn sizes(line: u64, text: &str, open: &mut Open) -> Result<(), ReadError> {
    let parts: Vec<&str> = text.split(',').collect();
    if !(6..=8).contains(&parts.len()) {
        let reason = format!(
            "{} has {} figures; size, %, reads, random, delay, burst, align, reply are expected",
            shown(text),
            parts.len()
        );
        return Err(ReadError::at(line, reason));
    }
    let percent = |at: usize, what: &str| field(line, parts[at], what, 0, 100);
    let small = |n: u64| u8::try_from(n).expect("at most 100");
    let bytes = field(line, parts[0], "size", 512, u64::from(crate::load::REQUEST_BYTES_MAX))?;
    let delay = field(line, parts[4], "delay", 0, 3_600_000)?;
    let burst = field(line, parts[5], "burst length", 1, 1 << 20)?;
    let align = parts.get(6).map_or(Ok(0), |text| field(line, text, "alignment", 0, 1 << 30))?;
    if parts.get(7).map_or(Ok(0), |text| field(line, text, "reply size", 0, 1 << 30))? != 0 {
        return Err(ReadError::at(line, "replies are for network targets; set the reply size to none"));
    }
    let think = (delay > 0).then(|| (u32::try_from(burst).expect("bounded"), Nanos::from_millis(delay)));
    if !open.lines.is_empty() && open.think != think {
        let reason =
            "a delay or burst other than in the line above is not understood; give all lines of a specification \
                      the same";
        return Err(ReadError::at(line, reason));
    }
    open.think = think;
    open.lines.push(AccessLine {
        bytes: u32::try_from(bytes).expect("bounded"),
        share: small(percent(1, "% of size")?),
        read: small(percent(2, "% reads")?),
        random: small(percent(3, "% random")?),
        align: Some(u32::try_from(align.max(512)).expect("bounded")),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
Version 1.1.0 \r
'TEST SETUP ====================================================================
'Test Description
\t
'Run Time
'\thours      minutes    seconds
\t0          1          30
'Ramp Up Time (s)
\t15
'Default Disk Workers to Spawn
\tNUMBER_OF_CPUS
'END test setup
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
\tDatabase, 8K,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
\t8192,100,67,100,0,1,0,0
'Access specification name,default assignment
\tTwo sizes,ALL
'size,% of size,% reads,% random,delay,burst,align,reply
\t4096,60,80,100,5,2,4096,0
\t65536,40,80,100,5,2,4096,0
'End access specifications
'MANAGER LIST ==================================================================
'Number of outstanding IOs,test connection rate,transactions per connection
\t16,DISABLED,1
Version 1.1.0
";

    #[test]
    fn specifications_times_and_depth_are_read() {
        let file = read_icf(FILE.as_bytes()).unwrap();
        assert_eq!((file.runtime, file.ramp, file.depth), (Some(Nanos::from_secs(90)), Nanos::from_secs(15), Some(16)));
        assert_eq!(file.specs.len(), 2);
        assert_eq!(file.specs[0].name(), "Database, 8K");
        assert_eq!(file.specs[0].lines()[0], AccessLine { align: Some(512), ..AccessLine::new(8192, 100, 67, 100) });
        assert_eq!(file.specs[1].manner().think, Some((2, 5_000_000)));
        assert!(file.specs[0].manner().is_plain());
        assert_eq!(file.specs[1].lines().len(), 2);
    }

    #[test]
    fn every_line_of_a_specification_has_the_delay_of_the_others() {
        for (first, second) in [("5,2", "0,2"), ("0,1", "5,2"), ("5,2", "5,3"), ("5,2", "6,2")] {
            let lines = |delay: &str| format!("80,100,{delay},4096,0");
            let text = FILE.replacen(&lines("5,2"), &lines(first), 1);
            let text = text.replace(&format!("65536,40,{}", lines("5,2")), &format!("65536,40,{}", lines(second)));
            let error = read_icf(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("line 22: a delay or burst other than in the line above"),
                "{first} {second}: {error}"
            );
        }
        // A burst of any length without a delay has no pauses.
        let none = FILE.replacen("80,100,5,2", "80,100,0,2", 1).replace("40,80,100,5,2", "40,80,100,0,7");
        assert!(read_icf(none.as_bytes()).unwrap().specs[1].manner().is_plain());
    }

    #[test]
    fn workers_with_different_depths_are_refused_with_the_line() {
        let worker = |depth: &str| format!("'Number of outstanding IOs,test connection rate\n\t{depth},DISABLED\n");
        let same = format!("{FILE}{}", worker("16"));
        assert_eq!(read_icf(same.as_bytes()).unwrap().depth, Some(16));
        let error = read_icf(format!("{FILE}{}", worker("4")).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 29: 4 outstanding requests of this worker and 16 of one above"), "{error}");
    }

    #[test]
    fn mixes_that_do_not_add_up_and_garbage_are_refused_with_their_line() {
        let with = |from: &str, to: &str| read_icf(FILE.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(with("65536,40", "65536,30")
            .starts_with("line 19: access specification \"Two sizes\": the shares of the sizes add to 90 %"));
        assert!(with("8192,100,67", "8192,100,167").starts_with("line 17: % reads: \"167\" is not possible"));
        assert!(with("8192,100", "8100,100").contains("requests of 8100 bytes"));
        assert!(with("\t0          1          30", "\tsoon").starts_with("line 7: run time"));
        assert!(with("4096,0\n\t65536", "4096,9\n\t65536").contains("network targets"));
        assert!(
            with("Two sizes,ALL", "Database, 8K,ALL").starts_with("line 19: a second access specification \"Database")
        );
        assert!(read_icf(&b"hello\n"[..])
            .unwrap_err()
            .to_string()
            .starts_with("line 1: \"hello\" is not the first line"));
        assert!(read_icf(&b"Version 1\n"[..]).unwrap_err().to_string().contains("no access specification"));
    }
}
