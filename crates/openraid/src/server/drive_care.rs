//! Care for drives: idle drives are read, all are asked for their health, slow ones are found, lights are switched.
//!
//! A thread does the slow work, one drive after the other. Its results are stored here; the alarms follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use openraid_config::DesiredCare;
use openraid_core::admin::{MemberState, MemberStatus};
use openraid_core::limits::Limits;
use openraid_runtime::member::{self, Place};
use openraid_runtime::service::{DriveView, ServiceStatus};
use openraid_status::care::SmartModel;
use openraid_status::shell_quoting::{command, word};
use openraid_sys::{Direct, Use};
use openraid_units::DriveId;
use serde::{Deserialize, Serialize};

use super::locate::switch;
use super::{Server, ServerAccess, State};
use crate::alarms::Condition;
use crate::care::slow::{after, judge, DrivePace, Slow, WINDOWS};
use crate::care::{shingled, short_program, smart};
use crate::events::Severity;
use crate::events::{plain, News};
use crate::members::{options, spec};
use crate::model::{ArrayModel, DriveClass, MemberModel, StateWord};
use crate::output;
use openraid_status::EventName;

/// Interval of the checks for due work.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum time of smartctl for one drive. A drive that spins up takes about ten seconds.
const SMART_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum factor by which the interval of health checks grows for a drive that does not answer.
const PATIENCE_MAX: u32 = 64;
/// Paths of smartctl.
const SMARTCTL: &[&str] =
    &["/usr/sbin/smartctl", "/usr/local/sbin/smartctl", "/usr/bin/smartctl", "/usr/local/bin/smartctl"];

/// The known health of a drive. A drive that was away has another number when it is back, and is asked again.
#[derive(Debug)]
struct Health {
    drive: DriveId,
    asked: Instant,
    now: Option<SmartModel>,
    /// The first report.
    first: Option<SmartModel>,
    /// Why it is unknown.
    trouble: Option<String>,
}

/// A drive that may be idle.
#[derive(Debug)]
struct Idle {
    drive: DriveId,
    commands: u64,
    since: Instant,
    /// Number of failed attempts in a row, and why the last one failed.
    failures: u32,
    trouble: Option<String>,
}

/// Health, idle times, speed and lights of all drives, by name.
#[derive(Debug, Default)]
pub(super) struct Care {
    looked: Option<Instant>,
    health: BTreeMap<String, Health>,
    idle: BTreeMap<String, Idle>,
    slow: BTreeMap<String, Slow>,
    lights: BTreeMap<String, &'static str>,
    /// Drives whose light was switched on by order.
    located: BTreeSet<String>,
    window: Option<(Instant, Window)>,
    has_no_smartctl: bool,
}

/// Counters at the beginning of a window: drives, and the writes of members.
#[derive(Debug)]
struct Window {
    drives: Vec<DriveView>,
    writes: BTreeMap<DriveId, u64>,
}

/// The first report of a drive, in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct First {
    /// Its serial number, and its name as a member.
    drive: String,
    first: SmartModel,
}

/// The file of first reports.
const FIRST_FILE: &str = "drives";
const FIRST_FILE_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of drives in it; the oldest entry is dropped for a new one.
const FIRST_MAX: usize = 1024;

impl Server {
    fn desired_care(&self) -> DesiredCare {
        self.in_force().map(|file| file.desired.care.clone()).unwrap_or_default()
    }

    /// Start the care for drives in another thread, if it is due.
    pub fn begin_care(self: &Arc<Self>) {
        let is_time = self.state().care.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if !is_time || self.access == ServerAccess::Untouched || self.caring.swap(true, Ordering::Relaxed) {
            return;
        }
        self.state().care.looked = Some(Instant::now());
        let server = Arc::clone(self);
        let care = move || {
            // An error means that the service is ending.
            if let Ok(status) = server.status() {
                let desired = server.desired_care();
                server.compare_siblings(&status, &desired);
                server.probe_idle(&status, &desired);
                server.ask_health(&status, &desired);
                server.set_lights(&desired);
            }
            server.caring.store(false, Ordering::Relaxed);
        };
        if thread::Builder::new().name("care".into()).spawn(care).is_err() {
            self.caring.store(false, Ordering::Relaxed);
        }
    }

    /// Read drives that had no command for a while, so that a dead drive is found before it is needed.
    fn probe_idle(&self, status: &ServiceStatus, desired: &DesiredCare) {
        let Some(interval) = desired.idle_probe.map(Duration::from_secs) else {
            self.state().care.idle.clear();
            return;
        };
        self.state().care.idle.retain(|name, _| status.drives.iter().any(|view| view.member == *name));
        for view in &status.drives {
            let Ok(spec) = spec(&view.member) else { continue };
            if !matches!(spec.place, Place::Path(_)) || !self.is_idle(view, interval) {
                continue;
            }
            let mut options = options(Use::Examine);
            // The page cache would hide the drive's state.
            options.direct = Direct::Try;
            let trouble = member::open_and_probe(&spec, options).err().map(|error| error.to_string());
            self.note_probe(&view.member, trouble);
        }
    }

    /// Should a drive be read now?
    fn is_idle(&self, view: &DriveView, interval: Duration) -> bool {
        let commands = view.load.commands;
        let fresh = || Idle { drive: view.drive, commands, since: Instant::now(), failures: 0, trouble: None };
        let mut state = self.state();
        let idle = state.care.idle.entry(view.member.clone()).or_insert_with(fresh);
        if (idle.drive, idle.commands) != (view.drive, commands) {
            *idle = fresh();
        }
        let patience = 1_u32.checked_shl(idle.failures).unwrap_or(PATIENCE_MAX).min(PATIENCE_MAX);
        idle.since.elapsed() >= interval * patience
    }

    fn note_probe(&self, member: &str, trouble: Option<String>) {
        let is_changed = {
            let mut state = self.state();
            let Some(idle) = state.care.idle.get_mut(member) else { return };
            let is_news = idle.trouble.is_some() != trouble.is_some();
            idle.since = Instant::now();
            idle.failures = if trouble.is_some() { idle.failures.saturating_add(1) } else { 0 };
            idle.trouble.clone_from(&trouble);
            is_news
        };
        if is_changed {
            let (event, text) = match trouble {
                Some(why) => (EventName::DriveSilent, format!("{member}: it is idle, and cannot be read: {why}")),
                None => (EventName::DriveAnswers, format!("{member}: it can be read again")),
            };
            self.add_news(vec![News { member: Some(member.to_owned()), ..plain(event, text) }]);
        }
    }

    /// Ask drives for their health.
    fn ask_health(&self, status: &ServiceStatus, desired: &DesiredCare) {
        let is_there = |name: &String, health: &mut Health| {
            status.drives.iter().any(|view| (&view.member, view.drive) == (name, health.drive))
        };
        self.state().care.health.retain(is_there);
        let Some(interval) = desired.smart.map(Duration::from_secs) else {
            self.state().care.health.clear();
            return;
        };
        // A program from the configuration is asked about files as well: they may represent a drive that it knows.
        let is_device = |view: &&DriveView| desired.smartctl.is_some() || is_device(&view.member);
        let drives = status.drives.iter().filter(|view| view.member.starts_with('/')).filter(is_device);
        let due: Vec<&DriveView> = drives.filter(|view| self.is_health_due(&view.member, interval)).collect();
        let program = desired
            .smartctl
            .clone()
            .map(|path| path.value)
            .or_else(|| SMARTCTL.iter().map(PathBuf::from).find(|path| path.exists()));
        self.state().care.has_no_smartctl = program.is_none() && !due.is_empty();
        let Some(program) = program else { return };
        for view in due {
            let found = ask_smartctl(&program, &view.member);
            self.note_health(view, found);
        }
    }

    fn is_health_due(&self, member: &str, interval: Duration) -> bool {
        let state = self.state();
        state.care.health.get(member).is_none_or(|health| health.asked.elapsed() >= interval)
    }

    fn note_health(&self, view: &DriveView, found: Result<Option<SmartModel>, String>) {
        let first = match &found {
            Ok(Some(now)) => Some(self.first_of(&view.member, now)),
            _ => None,
        };
        let (drive, asked) = (view.drive, Instant::now());
        let unknown = || Health { drive, asked, now: None, first: None, trouble: None };
        let mut state = self.state();
        let health = state.care.health.entry(view.member.clone()).or_insert_with(unknown);
        health.asked = asked;
        match found {
            Ok(Some(now)) => (health.now, health.first, health.trouble) = (Some(now), first, None),
            // The drive sleeps: keep the last report.
            Ok(None) => health.trouble = None,
            Err(why) => health.trouble = Some(why),
        }
    }

    /// The first report of a drive.
    fn first_of(&self, member: &str, now: &SmartModel) -> SmartModel {
        let drive = key_of(member, now);
        let read = || -> Vec<First> {
            let text = self.registry.read_beside(FIRST_FILE, FIRST_FILE_BYTES_MAX);
            text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
        };
        if let Some(known) = read().into_iter().find(|entry| entry.drive == drive) {
            return known.first;
        }
        let kept = self.registry.change_beside(FIRST_FILE, || {
            let mut all = read();
            let more = (all.len() + 1).saturating_sub(FIRST_MAX);
            all.drain(..more);
            all.push(First { drive, first: now.clone() });
            serde_json::to_string(&all).unwrap_or_else(|error| panic!("bug: no JSON: {error}"))
        });
        if let Err(failure) = kept {
            output::warn(&failure.text());
        }
        now.clone()
    }

    /// Find members that are slower than their siblings.
    fn compare_siblings(&self, status: &ServiceStatus, desired: &DesiredCare) {
        let mut state = self.state();
        let care = &mut state.care;
        let Some(window) = desired.slow_window.map(Duration::from_secs) else {
            (care.window, care.slow) = (None, BTreeMap::new());
            return;
        };
        match &care.window {
            Some((at, _)) if at.elapsed() < window => return,
            _ => {}
        }
        let lines = status.arrays.iter().flat_map(|view| &view.status.members);
        let writes = lines.filter_map(|line| Some((line.drive?, line.writes))).collect();
        let now = Window { drives: status.drives.clone(), writes };
        let Some((_, before)) = care.window.replace((Instant::now(), now)) else { return };
        let Some((_, now)) = &care.window else { return };
        let mut slow = BTreeMap::new();
        for view in &status.arrays {
            // A member that is being rebuilt is written only, and the others are read for it.
            let compared = |line: &&MemberStatus| line.slot.is_some() && line.state == MemberState::InSync;
            let drives = view.status.members.iter().filter(compared).filter_map(|line| line.drive);
            let drives: Vec<&DriveView> =
                drives.filter_map(|drive| status.drives.iter().find(|view| view.drive == drive)).collect();
            let paces: Vec<DrivePace> = drives.iter().map(|drive| pace(&before, now, drive)).collect();
            for (drive, verdict) in drives.iter().zip(judge(&paces)) {
                let row = after(care.slow.get(&drive.member).copied(), verdict);
                slow.extend(row.map(|row| (drive.member.clone(), row)));
            }
        }
        care.slow = slow;
    }

    /// A light was switched by order. When it is off, the next look sets it again if it shows something.
    pub(super) fn note_located(&self, member: &str, is_on: bool) {
        let care = &mut self.state().care;
        if is_on {
            care.located.insert(member.into());
        } else {
            care.located.remove(member);
            care.lights.remove(member);
        }
    }

    /// Call the program for the lights with the changes.
    fn set_lights(&self, desired: &DesiredCare) {
        let Some(program) = desired.led.as_ref().map(|path| &path.value) else { return };
        let Ok(arrays) = self.arrays() else { return };
        let mut wanted = BTreeMap::new();
        for array in &arrays {
            for member in array.sets().into_iter().flat_map(|set| &set.members) {
                if let Some(name) = &member.member {
                    wanted.insert(name.clone(), (light(member), array.name.clone(), member.slot.or(member.left_slot)));
                }
            }
        }
        let before = std::mem::take(&mut self.state().care.lights);
        for (name, (light, array, slot)) in &wanted {
            // A light that shows nothing need not be switched off.
            if before.get(name).copied().unwrap_or("normal") == *light {
                continue;
            }
            let slot = slot.map_or_else(|| "-".into(), |slot| slot.to_string());
            self.state().care.located.remove(name);
            if let Err(why) = switch(program, &[light, name, array, &slot]) {
                self.add_news(vec![plain(EventName::LightFailed, format!("the light of {name} is not set: {why}"))]);
            }
        }
        self.state().care.located.retain(|name| wanted.contains_key(name));
        self.state().care.lights = wanted.into_iter().map(|(name, (light, ..))| (name, light)).collect();
    }
}

fn is_device(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// The state of a light, in ledctl's words.
fn light(member: &MemberModel) -> &'static str {
    match member.state {
        StateWord::Failing | StateWord::Faulty => "failure",
        StateWord::Rebuilding => "rebuild",
        StateWord::InSync | StateWord::Spare | StateWord::Replaced | StateWord::Missing => {
            let fails = member.smart.as_ref().is_some_and(|smart| smart.passed == Some(false));
            if fails {
                "failure"
            } else {
                "normal"
            }
        }
    }
}

/// The health that a drive reports; `None` if it sleeps.
fn ask_smartctl(program: &Path, device: &str) -> Result<Option<SmartModel>, String> {
    let ran = short_program::run(program, &["--json", "--all", "--nocheck=standby", device], SMART_TIME_MAX)?;
    if String::from_utf8_lossy(&ran.output).contains("STANDBY") {
        return Ok(None);
    }
    smart::parse(&ran.output, &ran.status, openraid_sys::clock::wall_seconds()).map(Some)
}

fn pace(before: &Window, now: &Window, drive: &DriveView) -> DrivePace {
    let Some(earlier) =
        before.drives.iter().find(|earlier| earlier.drive == drive.drive && earlier.member == drive.member)
    else {
        return DrivePace { commands: 0, time_ns: 0, writes: 0 };
    };
    let commands = drive.load.commands.saturating_sub(earlier.load.commands);
    let written = |window: &Window| window.writes.get(&drive.drive).copied().unwrap_or_default();
    let writes = written(now).saturating_sub(written(before));
    DrivePace { commands, time_ns: drive.load.working.stays.saturating_sub(earlier.load.working.stays), writes }
}

/// Add the health of drives to the model.
pub(super) fn add_health(model: &mut ArrayModel, state: &State) {
    let has_lights = state.in_force.as_ref().is_some_and(|file| file.desired.care.led.is_some());
    let sets = model.spans.iter_mut().flat_map(|span| &mut span.members).chain(&mut model.members);
    for member in sets {
        let known = member.member.as_ref().and_then(|name| state.care.health.get(name));
        member.located = member.member.as_ref().filter(|_| has_lights).map(|name| state.care.located.contains(name));
        member.smart = known.and_then(|known| known.now.clone()).map(Box::new);
        let by_smart = || member.smart.as_ref().and_then(|smart| smart.serial.clone());
        member.serial = member.serial.take().or_else(by_smart);
    }
}

/// States of an array's drives that need attention.
pub(super) fn conditions(model: &ArrayModel, status: &ServiceStatus, state: &State) -> Vec<Condition> {
    let mut found = Vec::new();
    for (place, set) in model.sets().into_iter().enumerate() {
        let span = (!model.spans.is_empty()).then_some(place);
        for member in &set.members {
            let Some(name) = &member.member else { continue };
            let of = |event: EventName, level, text: String| Condition {
                array: Some(model.name.clone()),
                uuid: model.uuid.clone(),
                span,
                slot: member.slot,
                member: Some(name.clone()),
                next_step: Some(command("replace", [&model.name, name])),
                level,
                ..Condition::of_server(event, format!("{}: {name}: {text}", model.name))
            };
            found.extend(of_member(member, name, status, state).into_iter().map(|(event, level, text)| {
                let condition = of(event, level, text);
                // A spare is not copied, and a silent drive cannot be: add another drive instead.
                let is_spare = member.state == StateWord::Spare || event == EventName::DriveSilent;
                let next_step = if event == EventName::HealthUnknown {
                    Some(format!("smartctl --all {}", word(name)))
                } else if is_spare {
                    Some(command("show", [&model.name]))
                } else {
                    condition.next_step
                };
                Condition { next_step, ..condition }
            }));
        }
    }
    found
}

fn of_member(
    member: &MemberModel,
    name: &str,
    status: &ServiceStatus,
    state: &State,
) -> Vec<(EventName, Severity, String)> {
    let of = |event: EventName, text| (event, event.level(), text);
    let mut found = Vec::new();
    let care = &state.care;
    if let Some(health) = care.health.get(name) {
        if let (Some(now), Some(first)) = (&health.now, &health.first) {
            found.extend(
                smart::judge(now, first).into_iter().map(|verdict| (verdict.event, verdict.level, verdict.text)),
            );
        }
        found.extend(
            health.trouble.iter().map(|why| of(EventName::HealthUnknown, format!("its health is not known: {why}"))),
        );
    }
    if let Some(why) = care.idle.get(name).and_then(|idle| idle.trouble.as_ref()) {
        found.push(of(EventName::DriveSilent, format!("it is idle, and cannot be read: {why}")));
    }
    if let Some(slow) = care.slow.get(name).filter(|slow| slow.windows >= WINDOWS) {
        let millis = |ns: u64| format!("{}.{} ms", ns / 1_000_000, ns / 100_000 % 10);
        let may_be_shingled = slow.last.writes && member.class != Some(DriveClass::Ssd);
        let hint = if may_be_shingled { "; nearly all were writes: it may have shingled recording" } else { "" };
        let text = format!(
            "it is slow: a command takes {}, {} with most other members{hint}; look at its health and its cable",
            millis(slow.last.mean_ns),
            millis(slow.last.median_ns)
        );
        found.push(of(EventName::DriveSlow, text));
    }
    let budget = Limits::default().media_errors_max;
    let works = matches!(member.state, StateWord::InSync | StateWord::Rebuilding);
    if works && member.media_errors >= budget / 2 {
        let text = format!("{} of {budget} media errors since the start; with more it fails", member.media_errors);
        found.push(of(EventName::ErrorBudget, text));
    }
    let names = status.drives.iter().find(|view| view.member == name).map(|view| &view.names);
    if let Some(text) = names.and_then(|names| shingled::warning(names.model.as_deref(), names.zoned.as_deref())) {
        found.push(of(EventName::DriveShingled, text));
    }
    found
}

/// States of the server itself that need attention.
pub(super) fn of_server(state: &State) -> Option<Condition> {
    let text = "smartctl is not installed, so the health of drives is unknown; install smartmontools, or write \
                smart = \"never\" into [care] of the configuration file";
    state.care.has_no_smartctl.then(|| Condition::of_server(EventName::HealthUnknown, text.into()))
}

/// What a first report is found by. Two drives may have one serial number, and some have none.
fn key_of(member: &str, now: &SmartModel) -> String {
    now.serial.as_ref().map_or_else(|| member.to_owned(), |serial| format!("{serial} at {member}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_with_one_serial_number_have_first_reports_of_their_own() {
        let with = |serial: Option<&str>| SmartModel { serial: serial.map(str::to_owned), ..SmartModel::default() };
        let keys = [("/dev/sdb", Some("1")), ("/dev/sdc", Some("1")), ("/dev/sdc", Some("2")), ("/dev/sdc", None)];
        let keys = keys.map(|(member, serial)| key_of(member, &with(serial)));
        assert_eq!(keys, ["1 at /dev/sdb", "1 at /dev/sdc", "2 at /dev/sdc", "/dev/sdc"]);
    }
}
