//! Sinks: the ways by which alarms leave the machine.
//!
//! ```text
//!  Book --pending(sink)--> a thread for each sink --Batch--> exec | webhook | mail | journald
//!    ^                          |
//!    +------note_sent-----------+   after the sink has taken it
//! ```
//!
//! A sink gets the difference between the present states and the states that it has accepted. So one state is one
//! message, a server that was killed continues from the same point, and a sink that works again gets a summary. Each
//! sink has its own thread: a hanging sink delays neither another sink nor the server. An Alertmanager forgets alerts of which it hears
//! nothing: it gets all states that hold, every minute.

mod exec;
mod journald;
mod mail;
pub mod sink_thread;
mod webhook;

pub use webhook::post;

use std::time::Duration;

use openraid_config::{DesiredSink, SinkKind};

use crate::events::Severity;
use crate::quantity::{counted, one_line};
use openraid_status::alarm::AlarmModel;

/// A sink that has not accepted a message within this time has failed.
pub const SEND_TIME_MAX: Duration = Duration::from_secs(20);
/// Maximum number of alarms with one message each; more are sent as one message.
const SINGLES_MAX: usize = 5;

/// Alarms for one message to a sink.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// The name of this machine.
    pub host: String,
    /// The time of the message: seconds since 1970.
    pub now: u64,
    /// The alarms, the oldest first. There is at least one.
    pub alarms: Vec<AlarmModel>,
    /// For each of them the level at which the sink has it as a state that holds. It has not got the beginning of the others.
    pub known: Vec<Option<Severity>>,
}

impl Batch {
    /// The alarms, and the level at which the sink has each.
    fn with_known(&self) -> impl Iterator<Item = (&AlarmModel, Option<Severity>)> {
        self.alarms.iter().zip(self.known.iter().copied())
    }

    /// A summary in one line.
    fn summary(&self) -> String {
        if let [one] = &self.alarms[..] {
            return line(one);
        }
        let open = self.alarms.iter().filter(|alarm| alarm.until_seconds.is_none());
        let worst = open.clone().max_by_key(|alarm| alarm.what.level);
        let count = counted(self.alarms.len() as u64, "alarm", "alarms");
        let worst = worst.map_or_else(|| "all have ended".into(), line);
        format!("{count}, {} of them ended; the worst: {worst}", self.alarms.len() - open.count())
    }
}

/// An alarm in one line.
fn line(alarm: &AlarmModel) -> String {
    let state = if alarm.until_seconds.is_some() { "over: " } else { "" };
    let text = one_line(&alarm.what.text);
    format!("{state}{} {}: {text}", alarm.what.level.word(), alarm.what.event)
}

/// Send a batch.
///
/// # Errors
/// Why the sink did not accept it, in words.
pub fn send(sink: &DesiredSink, batch: &Batch) -> Result<(), String> {
    match &sink.kind {
        SinkKind::Exec { program } => exec::send(program, batch),
        SinkKind::Webhook { url, form } => webhook::send(url, *form, batch),
        SinkKind::Mail { .. } => mail::send(&sink.kind, batch),
        SinkKind::Journald { socket } => journald::send(socket, batch),
    }
}

/// The name of this machine.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost" } else { name }.to_owned()
}
