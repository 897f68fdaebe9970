//! The array of a target that a server of this machine serves. The server says whether work in the background runs next to the cells.

use openraid::control::ControlServers;
use openraid::disk::{find, reachable, ArrayIdentity};
use openraid::model::shell_quoting::command;
use openraid::model::{ArrayModel, HealthWord};
use openraid_methods::target::{BedLine, Choice, TargetError};

/// What a server says of a target.
pub(super) struct ServedTarget<'a> {
    servers: &'a ControlServers,
    /// The name of the target, for errors.
    target: String,
    holds_data: bool,
    /// The array, if a server of this machine serves it.
    array: Option<ArrayIdentity>,
}

impl<'a> ServedTarget<'a> {
    /// Looks for the server of a target.
    pub(super) fn of(choice: &Choice, target: &str, servers: &'a ControlServers) -> Self {
        let is_target = |array: &ArrayModel| match choice {
            Choice::Nbd(uri) => array.addresses.iter().filter_map(|text| reachable(text)).any(|known| known == *uri),
            Choice::Path(path) => {
                let disk = find(&ArrayIdentity::of_model(array)).map(|disk| disk.path());
                disk.is_some() && path.canonicalize().ok() == disk
            }
            Choice::Null(_) | Choice::Simulated(_) => false,
        };
        let array = served(servers).iter().find(|array| is_target(array)).map(ArrayIdentity::of_model);
        Self { servers, target: target.into(), holds_data: choice.holds_data(), array }
    }

    /// The array's state as a line of the test bed. Targets without data are no arrays.
    ///
    /// # Errors
    /// Work in the background would be measured with the cells, or the server serves the array no longer.
    pub(super) fn state(&self) -> Result<Option<BedLine>, TargetError> {
        let Some(identity) = &self.array else {
            return Ok(self.holds_data.then(|| {
                "state of the array: not known, because no server that answers here serves this target".into()
            }));
        };
        let other = |reason: String| TargetError::Open { name: self.target.clone(), reason };
        let name = identity.names.first().map_or("", String::as_str);
        let arrays = served(self.servers);
        let array = arrays.iter().find(|array| ArrayIdentity::of_model(array).is(identity));
        let array = array.ok_or_else(|| other(format!("its server serves {name} no longer")))?;
        if let Some((_, task)) = array.tasks().find(|(_, task)| !task.paused) {
            return Err(other(format!(
                "its server works on it in the background ({}), which the cells would measure too: wait for the end, which \
                 `{}` tells, or `{}`",
                task.text,
                command("show", [name]),
                command("pause", [name])
            )));
        }
        let state = match array.health {
            HealthWord::Optimal => "all members are in sync, and nothing runs in the background",
            HealthWord::Degraded => "DEGRADED: every cell is one of an array without all of its members",
            HealthWord::Failed | HealthWord::Offline => return Err(other(format!("{name} is not readable"))),
        };
        Ok(Some(format!("state of the array: {state}; asked of its server after each cell").into()))
    }

    /// Whether a cell that just ended measured the array alone.
    ///
    /// # Errors
    /// Those of [`Self::state`], and a state that is not this one.
    pub(super) fn is_still(&self, state: &Option<BedLine>) -> Result<(), TargetError> {
        let now = self.state()?;
        if now == *state {
            return Ok(());
        }
        let words = |line: &Option<BedLine>| line.as_ref().map_or_else(String::new, ToString::to_string);
        Err(TargetError::Open {
            name: self.target.clone(),
            reason: format!("at first {}; now {}", words(state), words(&now)),
        })
    }
}

/// All arrays that servers of this machine serve.
fn served(servers: &ControlServers) -> Vec<ArrayModel> {
    let connections = servers.connect().unwrap_or_default();
    connections.into_iter().filter_map(|mut connection| connection.list().ok()).flatten().collect()
}
