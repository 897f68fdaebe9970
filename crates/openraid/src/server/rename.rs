//! Another name for an array that is served: in the superblocks, the registry and the exports. Its UUID stays, with all that the registry keeps.

use openraid_config::ArrayId as WishId;
use openraid_core::admin::AdminCommand;
use openraid_format::SetName;

use super::Server;
use crate::control::Answer;
use crate::exit::Failure;
use crate::words::array_name;

impl Server {
    pub(super) fn rename(&self, name: &str, to: &str) -> Result<Answer, Failure> {
        array_name(to).map_err(Failure::usage)?;
        let served = self.find(name)?;
        let Some(started) = &served.started else {
            return Err(Failure::refused(format!(
                "{name} is a raw drive: it has no superblock in which a name could stand"
            )));
        };
        if !started.spans.is_empty() {
            let why =
                "its name stands in the data of its spans; stop it, and rename the spans' array with mdadm on Linux";
            return Err(Failure::refused(format!("{name} is a nested array: {why}")));
        }
        if name == to {
            return self.done(format!("the name is {to} already"), name);
        }
        self.refuse_taken(to)?;
        let host = started.superblock.set_name;
        let host = host.text().split_once(':').map(|(host, _)| host.to_owned());
        let label = SetName::new(host.as_deref(), to).map_err(Failure::usage)?;
        // Clients find the new name before the old one is taken away; connected ones stay.
        let has_own = served.exports.iter().any(|export| export == name);
        if has_own && served.access != openraid_config::Access::Blocked {
            self.open_export(&served, to)?;
        }
        let command = AdminCommand::Rename { array: served.array, name: label };
        if let Err(error) = self.handle.admin(command) {
            self.handle.retract(to)?;
            return Err(Failure::from(error).of(name));
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
        if let Some(line) = self.line_of_file(name) {
            text.push_str(&format!(
                "\nnote: line {line} of the configuration file still says {name}; write {to}, or the array's UUID, before the next start"
            ));
        }
        self.done(text, to)
    }

    /// Refuse a name that another array has.
    fn refuse_taken(&self, to: &str) -> Result<(), Failure> {
        let is_served = self.state().arrays.iter().any(|own| own.name == to || own.exports.iter().any(|own| own == to));
        if is_served || self.registry.find(to)?.is_some() {
            return Err(Failure::refused(format!("{to}: another array has this name; see `openraid list`")));
        }
        Ok(())
    }

    fn take_name(&self, name: &str, to: &str, label: SetName) {
        self.change_served(name, |served| {
            served.exports.iter_mut().filter(|export| *export == name).for_each(|export| to.clone_into(export));
            if let Some(started) = &mut served.started {
                started.superblock.set_name = label;
            }
            to.clone_into(&mut served.name);
        });
        let mut state = self.state();
        state.arrays.sort_by(|a, b| a.name.cmp(&b.name));
        state.drive_caches.rename(name, to);
        state.scheduled.rename(name, to);
    }

    /// The line of the configuration file that knows an array by its name.
    fn line_of_file(&self, name: &str) -> Option<u32> {
        let in_force = self.in_force()?;
        let is_it = |id: &WishId| matches!(id, WishId::Name(own) if own == name);
        in_force.desired.arrays.iter().find(|wish| is_it(&wish.id)).map(|wish| wish.line)
    }
}
