//! Reads fio's job files: sections with the options that describe a load. An option that would change the load and is
//! not supported is an error. Options about fio's own operation are skipped. The command line names the target, so
//! `filename` is also skipped. `stonewall` is skipped because only one job is measured at a time.
//!
//! The file is divided into sections here, `job` makes the load of a section, and `options` has the options that no load
//! is made from. Text and options mean what they mean to fio 3.33. `tests/fio.rs` compares both.

mod job;
mod options;

pub use job::FioJob;

use super::fio_numbers::Prefixes;
use super::trace::{includes, is_include, unknown_kind};
use super::{second, shown, NumberedLines, ReadError};
use std::io::BufRead;

/// Maximum number of jobs in one file.
const JOBS_MAX: usize = 256;
/// Maximum number of options of one job, those of `[global]` included.
const OPTIONS_MAX: usize = 4096;

/// A section of a job file that is a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioSection {
    /// The name in brackets.
    pub name: String,
    /// Its load, or the first option that is not understood. Other jobs of the file can be used in spite of that.
    pub job: Result<FioJob, ReadError>,
}

/// An option as it stands in a file.
#[derive(Clone, Debug)]
struct JobOption {
    line: u64,
    key: String,
    /// The text after the equals sign; empty if there is none.
    value: String,
    /// What the prefixes of sizes mean in its section.
    prefixes: Prefixes,
}

/// The sections of a file, while it is read.
#[derive(Default)]
struct Sections {
    /// The options of all `[global]` sections so far; the jobs after them have these.
    global: Vec<JobOption>,
    done: Vec<FioSection>,
    /// Number of the line of each job.
    lines: Vec<u64>,
    current: Option<Section>,
}

/// The section that is being read.
struct Section {
    line: u64,
    /// Name of the job; none for `[global]`.
    job: Option<String>,
    /// Options of the section alone.
    options: Vec<JobOption>,
}

/// Reads a job file.
///
/// # Errors
/// The first line that is no part of a job file. A job with an option that is not understood has its own error.
pub fn read_fio_job(from: impl BufRead) -> Result<Vec<FioSection>, ReadError> {
    let mut lines = NumberedLines::new(from);
    let mut sections = Sections::default();
    while let Some((number, line)) = lines.next()? {
        // As in fio, a comment begins anywhere, in a value too.
        let line = line.split(['#', ';']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        match line.strip_prefix('[') {
            Some(rest) => sections.begin(number, line, rest)?,
            None => sections.option(number, line)?,
        }
    }
    sections.end()?;
    if lines.is_empty() {
        return Err(ReadError::at(0, "the file is empty; record it again"));
    }
    if sections.done.is_empty() {
        return Err(ReadError::at(
            0,
            "no job in it; a job file has a section such as [job1], and a trace has a request on each line",
        ));
    }
    Ok(sections.all())
}

impl Sections {
    /// A line that begins with a bracket; `rest` comes after it.
    fn begin(&mut self, number: u64, line: &str, rest: &str) -> Result<(), ReadError> {
        let wrong = |what: &str| {
            ReadError::at(number, format!("{} {what}; write a section as [name] on a line of its own", shown(line)))
        };
        let name = match rest.split_once(']') {
            None => return Err(wrong("has no closing bracket")),
            Some((name, "")) => name,
            Some(_) => return Err(wrong("has text after the closing bracket, which fio takes for a part of the name")),
        };
        self.end()?;
        if self.done.len() == JOBS_MAX {
            return Err(ReadError::at(number, format!("more than {JOBS_MAX} jobs; split the file")));
        }
        // As in fio, only the beginning of the name counts, in lower case.
        let job = (!name.starts_with("global")).then(|| name.to_owned());
        self.current = Some(Section { line: number, job, options: Vec::new() });
        Ok(())
    }

    fn option(&mut self, line: u64, text: &str) -> Result<(), ReadError> {
        let Some(section) = &mut self.current else { return Err(ReadError::at(line, unknown_kind(text))) };
        if is_include(text) {
            return Err(ReadError::at(line, includes(text)));
        }
        if self.global.len() + section.options.len() == OPTIONS_MAX {
            return Err(ReadError::at(line, format!("more than {OPTIONS_MAX} options of one job; split the file")));
        }
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        section.options.push(JobOption { line, key, value, prefixes: Prefixes::default() });
        Ok(())
    }

    /// The end of the section that is being read.
    fn end(&mut self) -> Result<(), ReadError> {
        let Some(Section { line, job, options: given }) = self.current.take() else { return Ok(()) };
        let start = self.global.len();
        let mut options = if job.is_some() { self.global.clone() } else { std::mem::take(&mut self.global) };
        options.extend(given);
        // The last `kb_base` counts for all sizes of its section, and for the sections after [global].
        let base = options.iter().rev().find(|given| given.key == "kb_base");
        let prefixes = match base.map(|given| (given.line, given.value.as_str())) {
            None | Some((_, "1024")) => Prefixes::Inverted,
            Some((_, "1000")) => Prefixes::Standard,
            Some((line, _)) => return Err(ReadError::at(line, "kb_base is neither 1024 nor 1000; write one of them")),
        };
        options[start..].iter_mut().for_each(|given| given.prefixes = prefixes);
        match job {
            None => self.global = options,
            Some(name) => {
                let job = job::job(line, &name, &options);
                self.done.push(FioSection { name, job });
                self.lines.push(line);
            }
        }
        Ok(())
    }

    /// All jobs. Jobs with the same name cannot be chosen.
    fn all(mut self) -> Vec<FioSection> {
        for at in 0..self.done.len() {
            let name = &self.done[at].name;
            let same = (0..self.done.len()).filter(|other| self.done[*other].name == *name).nth(1);
            if let Some(again) = same {
                self.done[at].job = Err(second(self.lines[again], "job", name));
            }
        }
        self.done
    }
}

#[cfg(test)]
mod tests;
