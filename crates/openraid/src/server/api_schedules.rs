//! Schedules made by the API: a file next to the registry. The configuration file belongs to the administrator and is
//! not changed; a schedule in it has priority over a kept one of the same name.
//!
//! The words are those of a table `[schedules.NAME]`, and the same reader checks them.

use openraid_config::{DesiredSchedule, SCHEDULES_MAX};
use openraid_management::ScheduleInput as Asked;

use super::Server;
use crate::desired;
use crate::failure::Failure;

/// The name of the file after the registry's own.
const FILE: &str = "schedules";
/// Maximum size of the file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum length of a name, in characters.
const NAME_MAX: usize = 64;

/// A schedule in the words of the request, and its meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ApiSchedule {
    asked: Asked,
    means: DesiredSchedule,
}

/// A TOML string; a JSON string is a valid one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn understood(asked: &Asked) -> Result<ApiSchedule, Failure> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if asked.name.is_empty() || asked.name.len() > NAME_MAX || !asked.name.bytes().all(is_plain) {
        let why = format!("use letters, digits, - and _, {NAME_MAX} at most");
        return Err(Failure::usage(format!("name: {:?} is not a valid name for a schedule; {why}", asked.name)));
    }
    let mut text = format!("[schedules.{}]\ntask = {}\n", quoted(&asked.name), quoted(&asked.task));
    let arrays: Vec<String> = asked.arrays.iter().map(|name| quoted(name)).collect();
    text.push_str(&format!("arrays = [{}]\nevery = {}\n", arrays.join(", "), quoted(&asked.every)));
    let more = [("window", &asked.window), ("rate", &asked.rate)];
    let more = more.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}\n", quoted(value.as_ref()?))));
    text.extend(more);
    text.extend(asked.ssd.map(|ssd| format!("ssd = {ssd}\n")));
    let read = desired::parse(&text).map_err(|problems| {
        let problem = &problems.0[0];
        let key = problem.key.rsplit('.').next().unwrap_or_default();
        Failure::usage(format!("{key}: {}; {}", problem.what, problem.remedy))
    })?;
    let means = read.schedules.into_iter().next().expect("the text has one");
    // It has no line in a file.
    Ok(ApiSchedule { asked: asked.clone(), means: DesiredSchedule { line: 0, ..means } })
}

impl Server {
    /// Schedules of the configuration file, then kept ones.
    pub(super) fn schedules(&self) -> Vec<DesiredSchedule> {
        let mut all = self.in_force().map(|file| file.desired.schedules.clone()).unwrap_or_default();
        let kept = self.api_schedules().into_iter().map(|schedule| schedule.means);
        let more: Vec<DesiredSchedule> =
            kept.filter(|schedule| all.iter().all(|other| other.name != schedule.name)).collect();
        all.extend(more);
        all
    }

    fn api_schedules(&self) -> Vec<ApiSchedule> {
        if let Some(kept) = &self.state().api_schedules {
            return kept.clone();
        }
        let text = self.registry.read_beside(FILE, FILE_BYTES_MAX);
        let read = text.map_or_else(|| Ok(Vec::new()), |text| serde_json::from_str(&text));
        let asked: Vec<Asked> = read.unwrap_or_else(|error| {
            let path = self.registry.folder_beside(FILE);
            crate::output::warn(&format!("{}: no schedules can be read: {error}; make them again", path.display()));
            Vec::new()
        });
        let kept: Vec<ApiSchedule> = asked.iter().filter_map(|given| understood(given).ok()).collect();
        self.state().api_schedules = Some(kept.clone());
        kept
    }

    fn write_schedules(&self, kept: Vec<ApiSchedule>) -> Result<(), Failure> {
        let asked: Vec<&Asked> = kept.iter().map(|schedule| &schedule.asked).collect();
        let text = serde_json::to_string_pretty(&asked).map_err(Failure::failed)?;
        self.registry.change_beside(FILE, || text)?;
        self.state().api_schedules = Some(kept);
        Ok(())
    }

    fn refuse_of_file(&self, name: &str) -> Result<(), Failure> {
        let in_force = self.in_force();
        let of_file = in_force.iter().flat_map(|file| &file.desired.schedules).find(|schedule| schedule.name == name);
        match (of_file, &in_force) {
            (Some(schedule), Some(in_force)) => Err(Failure::refused(format!(
                "{name} is in line {} of {}: change it there, then `openraid reload`",
                schedule.line,
                in_force.path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Store a schedule; a stored one with this name is replaced.
    ///
    /// # Errors
    /// A value is not valid; the configuration file has a schedule with this name; there are too many; the file cannot
    /// be written.
    pub(super) fn keep_schedule(&self, asked: &Asked) -> Result<DesiredSchedule, Failure> {
        let schedule = understood(asked)?;
        for name in &asked.arrays {
            if self.find(name).is_err() && self.registry.find(name)?.is_none() {
                let text = format!("arrays: there is no array named {name:?}; see `openraid list`");
                return Err(Failure::usage(text));
            }
        }
        let _one_at_a_time = self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.refuse_of_file(&asked.name)?;
        let mut kept = self.api_schedules();
        kept.retain(|other| other.asked.name != asked.name);
        if kept.len() >= SCHEDULES_MAX {
            return Err(Failure::refused(format!("{SCHEDULES_MAX} schedules are kept already; remove one first")));
        }
        kept.push(schedule.clone());
        kept.sort_by(|a, b| a.asked.name.cmp(&b.asked.name));
        self.write_schedules(kept)?;
        Ok(schedule.means)
    }

    /// Remove a stored schedule; true if there was one.
    ///
    /// # Errors
    /// The configuration file has it; the file cannot be written.
    pub(super) fn forget_schedule(&self, name: &str) -> Result<bool, Failure> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.refuse_of_file(name)?;
        let mut kept = self.api_schedules();
        let before = kept.len();
        kept.retain(|schedule| schedule.asked.name != name);
        if kept.len() == before {
            return Ok(false);
        }
        self.write_schedules(kept).map(|()| true)
    }

    /// An array has a new name: change it in stored schedules.
    pub(super) fn rename_in_schedules(&self, name: &str, to: &str) {
        let mut kept = self.api_schedules();
        let mut is_changed = false;
        for schedule in &mut kept {
            for array in
                schedule.asked.arrays.iter_mut().chain(&mut schedule.means.arrays).filter(|array| *array == name)
            {
                to.clone_into(array);
                is_changed = true;
            }
        }
        if let Some(failure) = is_changed.then(|| self.write_schedules(kept)).and_then(Result::err) {
            crate::output::warn(&failure.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_config::ScheduleTask;

    #[test]
    fn schedules_are_read_like_the_file_and_no_value_escapes_its_quotes() {
        let asked = Asked {
            name: "weekly".into(),
            task: "check".into(),
            arrays: vec!["data".into()],
            every: "7d".into(),
            window: Some("01:00-05:30".into()),
            rate: None,
            ssd: None,
        };
        let means = understood(&asked).expect("it is fine").means;
        assert_eq!((means.every_seconds, means.window, means.line), (7 * 86_400, Some((60, 330)), 0));
        assert_eq!((means.name.as_str(), means.arrays), ("weekly", vec!["data".to_owned()]));
        let refused = |change: &dyn Fn(&mut Asked), words: &str| {
            let mut asked = asked.clone();
            change(&mut asked);
            let text = understood(&asked).expect_err("it is refused").text();
            assert!(text.contains(words), "{text}");
        };
        refused(&|input| input.name = "a]\n[server".into(), "name:");
        refused(&|input| input.task = "scrub".into(), "task: \"scrub\" is not a task");
        refused(&|input| input.every = "1m".into(), "every: \"1m\" is not an interval between checks");
        refused(&|input| input.every = "7d\"\nwindow = \"x".into(), "every:");
        refused(&|input| input.window = Some("1-2".into()), "window: \"1-2\" is not a window of time");
        refused(&|input| input.rate = Some("1M".into()), "rate: unknown key");
        refused(&|input| input.ssd = Some(true), "ssd: unknown key");
        for (asks, reads) in [(None, false), (Some(false), false), (Some(true), true)] {
            let patrol = Asked { task: "patrol".into(), ssd: asks, ..asked.clone() };
            let ScheduleTask::Patrol { ssd, .. } = understood(&patrol).expect("it is fine").means.task else {
                panic!("it is a patrol")
            };
            assert_eq!(ssd, reads);
        }
    }
}
