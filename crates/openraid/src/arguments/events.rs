//! `openraid events`.

use clap::Args;

use crate::events::Severity;

/// What `events` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A server writes events next to the registry, at most 4 MiB of them; the oldest go first. A fault that exists when a server \
starts is an event at its start: an array that is degraded, was started by force, or could not be started.

An acknowledged event stays in the log; --unacknowledged leaves it out.

Examples:
  openraid events --since 24h --level warning
  openraid events --array data --follow
  openraid events --unacknowledged
  openraid events --acknowledge 17
  openraid events --acknowledge all")]
pub struct EventsArguments {
    /// Events since then: how long ago (90s, 30m, 2h, 7d), or a date in UTC (2026-11-24, "2026-11-24 18:00")
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Events of this array
    #[arg(long, value_name = "NAME")]
    pub array: Option<String>,
    /// Events of this level and above
    #[arg(long, value_name = "LEVEL", value_parser = super::event_level())]
    pub level: Option<Severity>,
    /// Only the last COUNT events
    #[arg(long, value_name = "COUNT")]
    pub last: Option<usize>,
    /// Only events that are not acknowledged
    #[arg(long)]
    pub unacknowledged: bool,
    /// Keep running and print new events, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// Acknowledge the event with this number, or all events
    #[arg(long, value_name = "NUMBER|all", conflicts_with_all = ["since", "array", "level", "last", "unacknowledged", "follow"])]
    pub acknowledge: Option<String>,
}
