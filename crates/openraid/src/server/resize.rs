//! An array uses all room of its members, after smaller drives were replaced.

use openraid_core::admin::{AdminCommand, ArrayStatus};
use openraid_core::array::reshape_plan::ReshapeGoal;
use openraid_status::shell::command_with;
use openraid_units::{ArrayId, Bytes};

use super::orders::outcome_of;
use super::reshape::{plan_model, ReshapeOrder};
use super::view::ServedArray;
use super::Server;
use crate::control::ServerAnswer;
use crate::exit::Failure;
use crate::output::shape as text;
use crate::quantity::human;

impl Server {
    /// Say what that would do, or do it.
    pub(super) fn resize(
        &self,
        served: &ServedArray,
        (set, array): (ArrayId, &ArrayStatus),
        size: &str,
        order: &ReshapeOrder,
    ) -> Result<ServerAnswer, Failure> {
        let name = &served.name;
        let ReshapeOrder { members, raid_devices, level, chunk, layout, .. } = order;
        if size != "max" {
            return Err(Failure::usage(format!("--size {size}: use --size max, all room of the members")));
        }
        if !members.is_empty() || raid_devices.is_some() || level.is_some() || chunk.is_some() || layout.is_some() {
            return Err(Failure::usage("--size changes nothing else: change the shape before or after it"));
        }
        let status = self.status()?;
        let planned = self.handle.plan_reshape(set, ReshapeGoal::AllRoom, Vec::new());
        let planned = planned.map_err(|error| Failure::from(error).of(name))?;
        let mut model = plan_model(name, &status, array, &planned, &[], order);
        model.text = text::plan(&model);
        if order.plan {
            return Ok(ServerAnswer::ReshapePlan(Box::new(model)));
        }
        if !order.yes {
            return Ok(ServerAnswer::Confirm { text: text::question(&model), name: name.into() });
        }
        outcome_of(name, self.handle.admin(AdminCommand::Resize { array: set }))?;
        self.note(name);
        let (size, follow) = (human(Bytes(model.to.size_bytes)), command_with("show", [name], "--follow"));
        let text = format!("{name} gets {size}; a resync of the new part follows: watch it with `{follow}`");
        self.done(text, name)
    }
}
