//! Predictions for the wizard: `openraid-lab plan --effort quick` with the nearest profile of the drives.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use openraid_management::lab::{PredictedLevel, PredictedSpeed, PredictionInput, PredictionModel};
use openraid_runtime::member::{OpenedMember, Place};
use openraid_sys::Use;
use serde_json::Value;

use super::child::{self, ChildWatch};
use super::command_line::{check_drive, command, load_of};
use super::Laboratory;
use crate::failure::Failure;
use crate::lab_program::ProfileChoice;
use crate::members::{lasting_spec, open_every, options, spins};

/// Maximum time of a prediction: on a busy machine the lowest priority makes minutes of seconds.
const TIME_MAX: Duration = Duration::from_secs(30 * 60);
/// Maximum number of stored predictions: the last ones.
const KEPT_MAX: usize = 16;
/// Maximum number of drives of a predicted array.
const DRIVES_MAX: usize = 64;
/// Levels that the wizard offers and the simulator knows.
const LEVELS: &[&str] = &["0", "1", "10", "5", "6", "50", "60"];
/// The same for at most [`FEW`] drives, which can all be copies.
const LEVELS_OF_FEW: &[&str] = &["0", "1", "10", "5", "6"];
/// Maximum number of drives for [`LEVELS_OF_FEW`].
const FEW: usize = 3;

/// A prediction: its arguments, its result, and how far it is.
#[derive(Debug)]
struct Prediction {
    arguments: Vec<String>,
    result: Arc<Mutex<Option<Result<Value, String>>>>,
    watch: Arc<ChildWatch>,
}

enum PredictionState {
    Done(Result<Value, String>),
    /// It is being computed: runs that are done, and all, if they are known.
    Computes(Option<(u64, u64)>),
    /// Another one is being computed.
    Waits,
}

/// Computed predictions, and the running one; the last question for a profile with its answer.
#[derive(Debug, Default)]
pub struct Predictions {
    kept: Mutex<VecDeque<Prediction>>,
    profile: Mutex<Option<(Vec<String>, ProfileChoice)>>,
}

impl Predictions {
    /// Forget all answers. A prediction that is being computed stays.
    pub fn forget(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|entry| entry.result.lock().unwrap_or_else(PoisonError::into_inner).is_none());
        *self.profile.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The result, if it is known; otherwise its computation begins, unless another one runs.
    fn get(&self, arguments: &[String]) -> Result<PredictionState, Failure> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let result = |entry: &Prediction| entry.result.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(nth) = kept.iter().position(|entry| entry.arguments == arguments) {
            let Some(came) = result(&kept[nth]) else {
                return Ok(PredictionState::Computes(kept[nth].watch.progress()));
            };
            // A failure is told once: the next question is computed again.
            if came.is_err() {
                kept.remove(nth);
            }
            return Ok(PredictionState::Done(came));
        }
        if kept.iter().any(|entry| result(entry).is_none()) {
            return Ok(PredictionState::Waits);
        }
        let (place, watch) = (Arc::new(Mutex::new(None)), Arc::new(ChildWatch::default()));
        let (answer, words, watched) = (Arc::clone(&place), arguments.to_vec(), Arc::clone(&watch));
        let work = thread::Builder::new().name("prediction".into()).spawn(move || {
            let came = child::run_job(&words, &watched, TIME_MAX);
            let came = came.and_then(|output| {
                serde_json::from_slice(&output).map_err(|error| format!("the prediction cannot be read: {error}"))
            });
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(came);
        });
        work.map_err(|error| Failure::failed(format!("no thread for the prediction: {error}")))?;
        kept.push_front(Prediction { arguments: arguments.to_vec(), result: place, watch });
        kept.truncate(KEPT_MAX);
        Ok(PredictionState::Computes(None))
    }

    /// The profile by these options of `openraid-lab console profile`.
    fn profile(&self, options: Vec<String>) -> Result<ProfileChoice, Failure> {
        let mut last = self.profile.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = last.as_ref().filter(|(asked, _)| *asked == options) {
            return Ok(found.clone());
        }
        let found: ProfileChoice = child::ask(&[&["console".to_owned(), "profile".to_owned()], &options[..]].concat())?;
        *last = Some((options, found.clone()));
        Ok(found)
    }
}

impl Laboratory {
    /// Predict the figures of arrays of these drives, or report that the prediction is being computed.
    ///
    /// # Errors
    /// The laboratory is not installed; the drives cannot be opened; there is no such profile or load.
    pub fn predict(&self, input: &PredictionInput) -> Result<PredictionModel, Failure> {
        let catalogue = self.catalogue()?;
        let load = load_of(input.load.as_deref(), &catalogue)?;
        input.drive.iter().try_for_each(|drive| check_drive(drive, &catalogue))?;
        let members = &input.creation.members;
        if members.is_empty() || members.len() > DRIVES_MAX {
            return Err(Failure::usage(format!("members: give 1 to {DRIVES_MAX}")));
        }
        let specs = members.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
        let opened = open_every(&specs, options(Use::Examine))?;
        let bytes = |member: &OpenedMember| member.info.capacity.bytes().get();
        let smallest = opened.iter().map(|(opened, _)| opened).min_by_key(|opened| bytes(opened));
        let (options, bytes) = smallest.map_or_else(Default::default, |drive| (facts(drive), bytes(drive)));
        drop(opened);
        let options = input.drive.as_ref().map_or(options, |name| vec![format!("--chosen={name}")]);
        let profile = self.predictions.profile(options)?;
        let (levels, count) = (if members.len() <= FEW { LEVELS_OF_FEW } else { LEVELS }, members.len().to_string());
        let asked = levels.join(",");
        let words = [
            "plan",
            "--effort",
            "quick",
            "--drives",
            &count,
            "--drive",
            &profile.drive,
            "--levels",
            &asked,
            "--load",
            &load,
        ];
        let mut arguments: Vec<String> = words.map(str::to_owned).into();
        if profile.nearest {
            arguments.extend(["--nearest", "drive"].map(str::to_owned));
        }
        let shown = command(&arguments);
        arguments.push("--json".into());
        let mut prediction = PredictionModel {
            waits: true,
            done: None,
            total: None,
            drive: profile.drive.clone(),
            drive_title: profile.title,
            why: profile.why,
            command: shown,
            levels: Vec::new(),
            error: None,
        };
        match self.predictions.get(&arguments)? {
            PredictionState::Done(came) => {
                prediction.waits = false;
                match came {
                    Ok(plan) => prediction.levels = predicted_levels(&plan, bytes, levels, members.len()),
                    Err(why) => prediction.error = Some(why),
                }
            }
            PredictionState::Computes(runs) => (prediction.done, prediction.total) = runs.unzip(),
            PredictionState::Waits => {}
        }
        Ok(prediction)
    }
}

/// The known facts about a drive, as options of `openraid-lab console profile`.
fn facts(member: &OpenedMember) -> Vec<String> {
    let profile = match &member.spec.place {
        Place::Model(model) => Some(format!("--profile={}", model.profile)),
        Place::Path(_) | Place::Ram(_) | Place::Remote(_) => None,
    };
    let model = member.medium.names().model.map(|model| format!("--model={model}"));
    let spins = spins(member).map(|spins| format!("--spins={spins}"));
    let bytes = format!("--bytes={}", member.info.capacity.bytes().get());
    [profile, model, spins, Some(bytes)].into_iter().flatten().collect()
}

/// These levels of a plan for this number of drives, with the time of a rebuild for drives of this size.
fn predicted_levels(plan: &Value, bytes: u64, levels: &[&str], drives: usize) -> Vec<PredictedLevel> {
    let of_profile = plan["drive_bytes"].as_f64().unwrap_or(0.0);
    let scale = if of_profile > 0.0 { bytes as f64 / of_profile } else { 1.0 };
    let speed = |figures: &Value| {
        Some(PredictedSpeed { iops: figures["iops"].as_f64()?, mean_ms: figures["mean_ms"].as_f64()? })
    };
    let level = |planned: &Value| {
        let (possible, other) = (&planned["possible"], &planned["impossible"]);
        let array = possible["array"].as_str().or_else(|| other["array"].as_str())?;
        let hours = |key: &str| possible["rebuild"][key].as_f64().map(|hours| hours * scale);
        Some(PredictedLevel {
            level: (*levels.iter().find(|level| array == format!("raid{level}x{drives}"))?).to_owned(),
            healthy: speed(&possible["healthy"]),
            degraded: speed(&possible["degraded"]),
            rebuilding: speed(&possible["rebuilding"]),
            rebuild_hours: hours("idle_hours"),
            rebuild_loaded_hours: hours("loaded_hours"),
            limit: possible["bottleneck"]["part"].as_str().map(str::to_owned),
            impossible: other["reason"].as_str().map(str::to_owned),
        })
    };
    plan["levels"].as_array().into_iter().flatten().filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_time_of_a_rebuild_follows_the_size_of_the_drive() {
        let plan = json!({"drive_bytes": 1000, "levels": [
            {"possible": {"array": "raid5x4", "healthy": {"iops": 100.0, "mean_ms": 2.0}, "degraded": null, "rebuilding": null,
                "rebuild": {"idle_hours": 8.0, "loaded_hours": null}, "bottleneck": {"part": "members"}}},
            {"impossible": {"array": "raid60x4", "reason": "too few"}},
        ]});
        let levels = predicted_levels(&plan, 250, LEVELS, 4);
        assert_eq!((levels[0].level.as_str(), levels[0].rebuild_hours), ("5", Some(2.0)));
        assert_eq!(levels[0].rebuild_loaded_hours, None);
        assert_eq!((levels[1].level.as_str(), levels[1].impossible.as_deref()), ("60", Some("too few")));
    }
}
