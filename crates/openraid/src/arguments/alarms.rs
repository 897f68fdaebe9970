//! `openraid alarms`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::events::Severity;

/// What `alarms` takes.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
An alarm is a state that needs attention: a degraded array, a forced start, a missing spare. It begins when the state begins, or \
when a server finds the state at its start, and ends with the state. Alarms survive restarts. Without a running server the list is as \
the last server left it.

An acknowledged alarm stays until its state is over. If it becomes worse, it must be acknowledged again. Only the alarm of a forced \
start ends when it is acknowledged.

Examples:
  openraid alarms
  openraid alarms --level warning --array data
  openraid alarms --ended
  openraid alarms acknowledge data:DegradedArray
  openraid alarms acknowledge all
  openraid alarms test mail"
)]
pub struct AlarmsArguments {
    /// The verb; without one, alarms are listed
    #[command(subcommand)]
    pub verb: Option<AlarmsVerb>,
    /// Alarms of this array
    #[arg(long, value_name = "NAME")]
    pub array: Option<String>,
    /// Alarms of this level and above
    #[arg(long, value_name = "LEVEL", value_parser = super::event_level())]
    pub level: Option<Severity>,
    /// List ended alarms, too
    #[arg(long)]
    pub ended: bool,
}

/// The verbs for alarms.
#[derive(Subcommand, Debug)]
pub enum AlarmsVerb {
    /// Acknowledge an alarm, the alarms of an array, or all of them
    Acknowledge {
        /// The name of an alarm as `openraid alarms` prints it, the name of an array, or `all`
        #[arg(value_name = "ALARM|ARRAY|all")]
        which: String,
    },
    /// Send a test alarm to the sinks of the configuration file, and say which of them accepted it
    Test {
        /// The name of a sink; without it, all of them
        #[arg(value_name = "SINK")]
        sink: Option<String>,
        /// The configuration file, if no server runs [default: the one that `openraid serve` reads]
        #[arg(long, value_name = "FILE", env = "OPENRAID_CONFIG")]
        config: Option<PathBuf>,
    },
}
