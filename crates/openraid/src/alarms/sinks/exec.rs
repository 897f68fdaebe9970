//! A program with the arguments of mdadm's PROGRAM: the event, the array, and the member if there is one.
//!
//! mdadm has no event for most ends of states: the program is called for an end only if mdadm has one. A state that was over before the
//! program could be called is one call, in which `OPENRAID_STATE` is `over`. The environment variables have further details.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use openraid_status::EventName;

use super::{line, Batch, SEND_TIME_MAX, SINGLES_MAX};
use crate::alarms::AlarmModel;
use crate::events::Severity;

/// Interval of the checks for the end of the program.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn send(program: &Path, batch: &Batch) -> Result<(), String> {
    let calls = batch.with_known().flat_map(|(alarm, known)| events(alarm, known).map(move |event| (event, alarm)));
    let calls: Vec<(&str, &AlarmModel)> = calls.collect();
    if calls.len() > SINGLES_MAX {
        let summary = batch.summary();
        return call(
            program,
            Command::new(program)
                .args([EventName::AlarmSummary.word(), "server", &summary])
                .env("OPENRAID_TEXT", &summary),
        );
    }
    for (event, alarm) in calls {
        let mut command = Command::new(program);
        command.arg(event).arg(alarm.what.array.as_deref().unwrap_or("server"));
        command.args(&alarm.what.member);
        command.env("OPENRAID_ALARM", &alarm.id).env("OPENRAID_LEVEL", alarm.what.level.word());
        command.env("OPENRAID_TEXT", line(alarm)).env("OPENRAID_HOST", &batch.host);
        command.env("OPENRAID_STATE", if alarm.until_seconds.is_some() { "over" } else { "holds" });
        command.env("OPENRAID_NEXT_STEP", alarm.what.next_step.as_deref().unwrap_or_default());
        call(program, &mut command)?;
    }
    Ok(())
}

/// The words for the beginning of a state, if the program was not called for it, and for its end.
fn events(alarm: &AlarmModel, known: Option<Severity>) -> impl Iterator<Item = &str> {
    let is_over = alarm.until_seconds.is_some();
    let is_rebuild = matches!(alarm.what.event.as_str(), "RebuildStarted" | "ResyncStarted");
    let begins = if is_rebuild { EventName::RebuildStarted.word() } else { &alarm.what.event };
    let begins = (!is_over || known.is_none()).then_some(begins);
    begins.into_iter().chain((is_over && is_rebuild).then_some(EventName::RebuildFinished.word()))
}

fn call(program: &Path, command: &mut Command) -> Result<(), String> {
    let shown = program.display();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{shown} cannot be started: {error}"))?;
    match wait(&mut child).map_err(|error| format!("{shown}: {error}"))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("{shown} ended with {status}")),
        None => Err(format!("{shown} did not end within {} s and was killed", SEND_TIME_MAX.as_secs())),
    }
}

fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + SEND_TIME_MAX;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}
