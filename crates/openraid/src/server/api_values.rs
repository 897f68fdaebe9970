//! Changes of values that are kept apart from the configuration file. They are applied as a reload of the file is.

use std::sync::PoisonError;

use openraid_config::{DesiredState, EXPORTS_MAX};
use openraid_management::{KeptInput, KeptModel};

use super::array_model::ServedArray;
use super::Server;
use crate::desired::{self, api_values};
use crate::failure::Failure;
use crate::members::lasting_spec;
use crate::on_disk::unused_journals;
use crate::quantity::{human, size};
use crate::words;
use openraid_units::Bytes;

/// The cache may be at most this part of the machine's memory.
const CACHE_PART: u64 = 2;

impl Server {
    /// The kept values.
    pub(super) fn api_values(&self) -> KeptModel {
        api_values::read(&self.registry)
    }

    /// The names that are kept for the exports of an array; none: its own.
    pub(super) fn api_exports(&self, served: &ServedArray) -> Option<Vec<String>> {
        self.api_values().exports.remove(&served.key()).filter(|names| !names.is_empty())
    }

    /// Change kept values, and apply them. Returns the changes in force, the changes for the next start, and the failures.
    ///
    /// # Errors
    /// A value cannot be; the configuration file has it; there is no configuration file; the change cannot be written down.
    pub(super) fn keep_config(&self, input: &KeptInput) -> Result<String, Failure> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.in_force().map(|file| file.path.clone()).ok_or_else(|| {
            Failure::refused(
                "this server has no configuration file, so nothing can be kept next to it; start it with `openraid serve --config FILE`",
            )
        })?;
        let file = desired::load(&path)?;
        let mut new = self.api_values();
        self.take_values(&mut new, input)?;
        refuse_of_file(input, &file)?;
        api_values::understood(&new)?;
        let text = serde_json::to_string_pretty(&new).map_err(Failure::failed)?;
        self.registry.change_beside(api_values::FILE, || text)?;
        self.apply_kept()
    }

    fn take_values(&self, new: &mut KeptModel, input: &KeptInput) -> Result<(), Failure> {
        if let Some(cache) = &input.cache {
            check_cache(cache)?;
            new.cache = Some(cache.clone()).filter(|cache| !cache.is_empty());
        }
        if let Some(devices) = &input.journal {
            let specs = devices.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
            if !specs.is_empty() {
                unused_journals::of_devices(&specs, &self.registry)?;
            }
            new.journal.clone_from(devices);
        }
        new.spares = input.spares.clone().unwrap_or_else(|| std::mem::take(&mut new.spares));
        new.sinks = input.sinks.clone().unwrap_or_else(|| std::mem::take(&mut new.sinks));
        for (name, exports) in input.exports.iter().flatten() {
            let served = self.find(name)?;
            if exports.len() > EXPORTS_MAX {
                return Err(Failure::usage(format!("exports: {EXPORTS_MAX} names at most")));
            }
            for export in exports {
                words::array_name(export).map_err(Failure::usage)?;
            }
            new.exports.insert(served.key(), exports.clone());
        }
        new.exports.retain(|_, names| !names.is_empty());
        Ok(())
    }
}

/// A server with more than half of the memory as its cache might not start.
fn check_cache(text: &str) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let wanted = size(text).map_err(|error| Failure::usage(format!("server.cache: {text}: {error}")))?;
    let most = openraid_sys::free_memory::bound().map(|bound| Bytes(bound.bytes.get() / CACHE_PART));
    match most.filter(|most| wanted > *most) {
        Some(most) => Err(Failure::usage(format!(
            "server.cache: {text}: half of this machine's memory is {}; use less",
            human(most)
        ))),
        None => Ok(()),
    }
}

/// What the configuration file has is changed there.
fn refuse_of_file(input: &KeptInput, file: &DesiredState) -> Result<(), Failure> {
    let refuse = |what: &str| {
        Err(Failure::refused(format!("the configuration file has {what}: change it there, then `openraid reload`")))
    };
    if input.cache.as_ref().is_some_and(|given| !given.is_empty()) && file.server.cache.is_some() {
        return refuse("server.cache");
    }
    if input.journal.as_ref().is_some_and(|given| !given.is_empty()) && file.server.journal.is_some() {
        return refuse("server.journal");
    }
    if let Some(drive) = input.spares.iter().flatten().find(|spare| api_values::names_drive(file, spare)) {
        return refuse(&format!("the drive {drive}"));
    }
    let known = |name: &String| file.sinks.iter().any(|sink| sink.name == *name);
    match input.sinks.iter().flatten().find(|sink| known(&sink.name)) {
        Some(sink) => refuse(&format!("the sink {}", sink.name)),
        None => Ok(()),
    }
}
