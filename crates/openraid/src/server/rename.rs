//! A new name for a served array: in the superblocks, the registry and the exports. Its UUID stays, with its record in
//! the registry.

use openraid_config::{ArrayId as DesiredId, SpareFor};
use openraid_core::admin::AdminCommand;
use openraid_format::{SetName, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_runtime::service::StartedArray;
use openraid_units::SECTOR_BYTES;

use super::array_model::ServedArray;
use super::Server;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::on_disk::sets;
use crate::words::array_name;

/// The spans of a nested array whose names follow its own, `NAME.0` and so on, and their new names.
fn span_names(started: &StartedArray, name: &str, to: &str) -> Vec<(usize, SetName)> {
    let renamed = |(number, span): (usize, &StartedArray)| {
        let set_name = span.superblock.set_name;
        let is_after_it = sets::array_name(&span.superblock) == format!("{name}.{number}");
        let host = set_name.text().split_once(':').map(|(host, _)| host.to_owned());
        let label = SetName::new(host.as_deref(), &format!("{to}.{number}")).ok();
        label.filter(|_| is_after_it).map(|label| (number, label))
    };
    started.spans.iter().enumerate().filter_map(renamed).collect()
}

impl Server {
    pub(super) fn rename(&self, name: &str, to: &str) -> Result<ServerAnswer, Failure> {
        array_name(to).map_err(Failure::usage)?;
        let served = self.find(name)?;
        let Some(started) = &served.started else {
            return Err(Failure::refused(format!("{name} is a raw drive: it has no superblock for a name")));
        };
        if name == to {
            return self.done(format!("the name is {to} already"), name);
        }
        self.refuse_taken(to)?;
        self.registry.refuse_if_locked()?;
        let host = started.superblock.set_name;
        let host = host.text().split_once(':').map(|(host, _)| host.to_owned());
        let label = SetName::new(host.as_deref(), to).map_err(Failure::usage)?;
        // Clients find the new name before the old one is withdrawn; connected ones stay.
        let has_own = served.exports.iter().any(|export| export == name);
        if has_own && served.access != openraid_config::Access::Blocked {
            self.open_export(&served, to)?;
        }
        if let Err(failure) = self.write_name(&served, to, label) {
            self.handle.retract(to)?;
            return Err(failure.of(name));
        }
        if has_own {
            self.handle.retract(name)?;
        }
        self.take_name(name, to, label);
        self.rename_in_schedules(name, to);
        self.note(to);
        let mut text = format!("{name} is {to} from now on");
        if has_own {
            text.push_str("; new clients ask for the new name, and connected ones stay");
        }
        for (line, or) in self.lines_of_file(name) {
            text.push_str(&format!(
                "\nnote: line {line} of the configuration file still says {name}; write {to}{or} before the next start"
            ));
        }
        self.done(text, to)
    }

    /// Write the name into all superblocks that have it.
    fn write_name(&self, served: &ServedArray, to: &str, label: SetName) -> Result<(), Failure> {
        let Some(started) = served.started.as_ref().filter(|started| !started.spans.is_empty()) else {
            self.handle.admin(AdminCommand::Rename { array: served.array, name: label })?;
            return Ok(());
        };
        for (span, span_name) in span_names(started, &served.name, to) {
            self.handle.admin(AdminCommand::Rename { array: started.spans[span].array, name: span_name })?;
        }
        // At a start the name of the first span counts: until its block is written, which is one write, nothing has
        // changed.
        for (number, span) in started.spans.iter().enumerate().rev() {
            self.write_outer_name(started, span, label).map_err(|failure| {
                let text = format!(
                    "span {number} could not be given the name, so it stays {}; repair the span and try again: {}",
                    served.name,
                    failure.text()
                );
                failure.worded(text)
            })?;
        }
        Ok(())
    }

    /// The superblock of a stripe over arrays is data of its spans: it is read and written through them, as hosts do.
    fn write_outer_name(&self, array: &StartedArray, span: &StartedArray, label: SetName) -> Result<(), Failure> {
        let status = self.handle.status()?;
        let view = status.arrays.iter().find(|view| view.status.array == span.array);
        let view = view.ok_or_else(|| Failure::failed("it does not run any more"))?;
        let found = self.handle.superblock_inside(span.array, view.status.capacity).map_err(Failure::failed)?;
        let found = found.filter(|outer| outer.set_uuid == array.superblock.set_uuid);
        let outer = found.ok_or_else(|| Failure::failed("the stripe's superblock is not there"))?;
        let at = outer.super_offset.offset().bytes().get();
        let mut encoded = [0; SUPERBLOCK_BYTES_MAX];
        Superblock { set_name: label, ..outer }.encode(&mut encoded);
        // Name and checksum are in its first sector.
        let mut block = vec![0; usize::try_from(view.status.block.bytes().get()).expect("at most 4096")];
        self.handle.read(span.array, at, &mut block)?;
        let sector = usize::try_from(SECTOR_BYTES).expect("512");
        block[..sector].copy_from_slice(&encoded[..sector]);
        self.handle.write(span.array, at, &block, true)?;
        self.handle.flush(span.array)?;
        Ok(())
    }

    /// Refuse a name of another array.
    fn refuse_taken(&self, to: &str) -> Result<(), Failure> {
        let is_served =
            self.state().arrays.iter().any(|array| array.name == to || array.exports.iter().any(|export| export == to));
        if is_served || self.registry.find(to)?.is_some() {
            return Err(Failure::refused(format!("{to}: another array has this name; see `openraid list`")));
        }
        Ok(())
    }

    fn take_name(&self, name: &str, to: &str, label: SetName) {
        self.change_served(name, |served| {
            served.exports.iter_mut().filter(|export| *export == name).for_each(|export| to.clone_into(export));
            if let Some(started) = &mut served.started {
                for (span, span_name) in span_names(started, name, to) {
                    started.spans[span].superblock.set_name = span_name;
                }
                started.superblock.set_name = label;
            }
            to.clone_into(&mut served.name);
        });
        let mut state = self.state();
        state.arrays.sort_by(|a, b| a.name.cmp(&b.name));
        state.drive_caches.rename(name, to);
        state.scheduled.rename(name, to);
    }

    /// The lines of the configuration file with this name, and what else may be written there.
    fn lines_of_file(&self, name: &str) -> Vec<(u32, &'static str)> {
        let Some(in_force) = self.in_force() else { return Vec::new() };
        let desired = &in_force.desired;
        let is_it = |id: &DesiredId| matches!(id, DesiredId::Name(known) if known == name);
        let is_for = |whom: &SpareFor| matches!(whom, SpareFor::Array { name: known, .. } if known == name);
        let arrays =
            desired.arrays.iter().filter(|array| is_it(&array.id)).map(|array| (array.line, ", or the array's UUID,"));
        let spares = desired.spares.iter().filter(|spare| is_for(&spare.whom)).map(|spare| (spare.line, ""));
        let schedules = desired.schedules.iter().filter(|schedule| schedule.arrays.iter().any(|array| array == name));
        let mut lines: Vec<_> = arrays.chain(spares).chain(schedules.map(|schedule| (schedule.line, ""))).collect();
        lines.sort_unstable();
        lines
    }
}
