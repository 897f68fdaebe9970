//! The laboratory of a server: reviews, plans, comparisons and predictions. Each is a child process of the program
//! `openraid-lab` at the lowest priority; there is one job at a time, and one prediction. The data path and the control
//! path never wait for one. If the program is not installed, only the stored reports are there.

mod child;
mod command_line;
mod folder;
mod predict;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use openraid_management::lab::{ChoicesModel, JobInput, JobModel, JobState, LabModel};

use crate::failure::Failure;
use crate::lab_program::{installation, Catalogue, Installation, ABSENT, PROGRAM};
use crate::quantity::figure;
use child::ChildWatch;
use folder::{Origin, ReportFolder, REPORTS_MAX};

/// Maximum number of jobs in the list: the last ones.
const JOBS_MAX: usize = 16;
/// Maximum time of a job.
const JOB_TIME_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// Maximum length of a job's result, in characters.
const TEXT_CHARACTERS_MAX: usize = 2000;

/// A job, and its handle to cancel it.
#[derive(Debug)]
struct Job {
    model: JobModel,
    watch: Arc<ChildWatch>,
}

#[derive(Debug)]
pub struct Laboratory {
    folder: ReportFolder,
    /// The newest first.
    jobs: Mutex<VecDeque<Job>>,
    predictions: predict::Predictions,
    /// The words of the laboratory's program, and the installation that said them.
    catalogue: Mutex<Option<(Installation, Arc<Catalogue>)>>,
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs())
}

impl Laboratory {
    /// A laboratory with this folder of reports, which may not exist yet.
    pub fn at(folder: PathBuf) -> Arc<Self> {
        let (jobs, predictions) = (Mutex::default(), predict::Predictions::default());
        Arc::new(Self { folder: ReportFolder(folder), jobs, predictions, catalogue: Mutex::default() })
    }

    fn jobs(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words of the installed program. After another installation, answers of the old one are forgotten.
    fn catalogue(&self) -> Result<Arc<Catalogue>, Failure> {
        let installed = installation().ok_or_else(|| Failure::refused(ABSENT))?;
        let kept = || self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = kept().as_ref().filter(|(version, _)| *version == installed) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(child::ask::<Catalogue>(&["console", "choices"].map(str::to_owned))?);
        self.predictions.forget();
        *kept() = Some((installed, Arc::clone(&found)));
        Ok(found)
    }

    /// Systems, drives and patterns of the simulator.
    ///
    /// # Errors
    /// The laboratory is not installed.
    pub fn choices(&self) -> Result<ChoicesModel, Failure> {
        Ok(self.catalogue()?.choices.clone())
    }

    /// Jobs and reports.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn look(&self) -> Result<LabModel, Failure> {
        let jobs = self.jobs().iter().map(Job::seen).collect();
        let reports = self.folder.reports()?;
        Ok(LabModel { folder: self.folder.0.display().to_string(), jobs, reports, reports_max: REPORTS_MAX })
    }

    /// Begin a job.
    ///
    /// # Errors
    /// It makes no sense; the laboratory is not installed; another one runs; the report exists already.
    pub fn begin(self: &Arc<Self>, input: &JobInput, user: &str) -> Result<JobModel, Failure> {
        let arguments = command_line::arguments(input, &*self.catalogue()?, &self.folder)?;
        let (command, name) = (command_line::command(&arguments), input.name().to_owned());
        let mut jobs = self.jobs();
        if let Some(other) = jobs.iter().find(|job| job.model.state == JobState::Running) {
            let text =
                format!("{} runs; wait until it has ended, or cancel it: there is one job at a time", other.model.name);
            return Err(Failure::refused(text));
        }
        let origin = Origin { command: command.clone(), user: user.to_owned() };
        if let Some(report) = self.folder.report(name.clone()) {
            // A review that was cancelled continues where it was.
            let is_same = self.folder.origin(&name).is_some_and(|known| {
                // Before the laboratory had a program of its own, its verbs were of `openraid`.
                known.command == command || known.command == command.replacen(PROGRAM, "openraid", 1)
            });
            if report.kind != "part" || !is_same {
                return Err(Failure::refused(format!(
                    "a report {name} exists already; choose another name, or remove it"
                )));
            }
        }
        self.folder.begin(&name, &origin)?;
        let kind = match input {
            JobInput::Review(_) => "review",
            JobInput::Plan(_) => "plan",
            JobInput::Comparison(_) => "comparison",
        };
        let model = JobModel {
            number: jobs.front().map_or(0, |job| job.model.number) + 1,
            kind: kind.into(),
            name,
            user: user.into(),
            command,
            state: JobState::Running,
            began_seconds: now(),
            ended_seconds: None,
            done: None,
            total: None,
            text: String::new(),
        };
        let watch = Arc::new(ChildWatch::default());
        let (lab, seen, of_thread) = (Arc::clone(self), model.clone(), Arc::clone(&watch));
        let work =
            thread::Builder::new().name("laboratory".into()).spawn(move || lab.work(&seen, arguments, &of_thread));
        work.map_err(|error| Failure::failed(format!("no thread for the job: {error}")))?;
        jobs.push_front(Job { model: model.clone(), watch });
        jobs.truncate(JOBS_MAX);
        Ok(model)
    }

    /// Run a job to its end.
    fn work(&self, job: &JobModel, mut arguments: Vec<String>, watch: &ChildWatch) {
        arguments.push("--json".into());
        let came = child::run_job(&arguments, watch, JOB_TIME_MAX).and_then(|output| self.keep(job, &output));
        let mut jobs = self.jobs();
        let Some(entry) = jobs.iter_mut().find(|entry| entry.model.number == job.number) else { return };
        entry.model.ended_seconds = Some(now());
        (entry.model.state, entry.model.text) = match came {
            Ok(text) => (JobState::Done, text),
            Err(text) if watch.is_cancelled() => (JobState::Cancelled, text),
            Err(text) => (JobState::Failed, text),
        };
        entry.model.text = entry.model.text.chars().take(TEXT_CHARACTERS_MAX).collect();
    }

    /// Keep the answer of a job; the result in words.
    fn keep(&self, job: &JobModel, output: &[u8]) -> Result<String, String> {
        let value: serde_json::Value =
            serde_json::from_slice(output).map_err(|error| format!("its answer cannot be read: {error}"))?;
        let file = match job.kind.as_str() {
            "plan" => "plan.json",
            "comparison" => "comparison.json",
            // A review has written its files itself.
            _ => {
                let count = |key: &str| value[key].as_u64().unwrap_or(0);
                let (cells, failed, idle) = (count("cells"), count("failed"), count("not_applicable"));
                return Ok(format!("{cells} cells measured, {failed} failed, {idle} not applicable"));
            }
        };
        self.folder.write(&job.name, file, output).map_err(|failure| failure.text())?;
        let result = match job.kind.as_str() {
            "plan" => value["recommendation"]["array"].as_str().map(|array| format!("recommended: {array}")),
            _ => {
                let ratio = value["mean_ratio"].as_f64().map(figure);
                ratio.map(|ratio| format!("the second is {ratio} times as fast as the first"))
            }
        };
        Ok(result.unwrap_or_else(|| "done".into()))
    }

    /// End a job.
    pub fn cancel(&self, number: u64) -> Option<JobModel> {
        let jobs = self.jobs();
        let is_own = |job: &&Job| job.model.number == number && job.model.state == JobState::Running;
        let job = jobs.iter().find(is_own)?;
        job.watch.cancel();
        Some(job.seen())
    }

    /// A file of a report.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn report(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.folder.read(name, file)
    }

    /// Remove a report. Was there one?
    ///
    /// # Errors
    /// A job writes it; it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, Failure> {
        let jobs = self.jobs();
        if jobs.iter().any(|job| job.model.state == JobState::Running && job.model.name == name) {
            return Err(Failure::refused(format!("{name}: a job writes it; cancel the job first")));
        }
        self.folder.remove(name)
    }
}

impl Job {
    fn seen(&self) -> JobModel {
        let mut model = self.model.clone();
        if model.state == JobState::Running {
            (model.done, model.total) = self.watch.progress().unzip();
        }
        model
    }
}
