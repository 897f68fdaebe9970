//! What every verb gets: the form of its output, the registry, the servers that can be asked.

use std::process::ExitCode;

use openraid_units::Nanos;

use crate::arguments::Common;
use crate::control::ControlServers;
use crate::failure::Outcome;
use crate::members;
use crate::output::Output;
use crate::registry::Registry;

/// The context that every verb gets.
#[derive(Debug)]
pub struct Context {
    /// Form of the output.
    pub output: Output,
    pub registry: Registry,
    /// The servers to which requests can be sent.
    pub servers: ControlServers,
    /// Options that apply to every verb.
    pub common: Common,
}

impl Context {
    /// The context of a verb, by the options that apply to every verb, its name and the verb as the user types it.
    pub fn new(common: Common, verb: &'static str, typed: &'static str) -> Self {
        if let Some(seconds) = common.open_seconds {
            members::set_patience(Nanos::from_secs(seconds));
        }
        let registry = Registry::at(common.registry.as_deref());
        let servers = ControlServers::new(common.control.as_deref(), registry.clone());
        Self { output: Output { json: common.json, verb, typed }, registry, servers, common }
    }

    /// The end of the process after the verb.
    pub fn end(&self, outcome: Outcome) -> ExitCode {
        outcome.unwrap_or_else(|failure| self.output.fail(&failure)).into()
    }
}
