//! An array uses another part of each member: more after smaller drives were replaced, or less.
//!
//! As with mdadm, the end of the array is cut off for hosts first, which loses nothing: an administrator can look whether all
//! is there.

use openraid_core::admin::{AdminCommand, ArrayStatus};
use openraid_core::array::reshape_plan::{ReshapeGoal, ReshapePlan};
use openraid_core::array::used_size::UsedSize;
use openraid_status::shell_quoting::{command_with, words};
use openraid_units::{ArrayId, Bytes};

use super::array_model::ServedArray;
use super::joining_members::set_status;
use super::orders::outcome_of;
use super::reshape::{only_set, plan_model, ReshapeOrder};
use super::Server;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::output::shape as text;
use crate::quantity::{human, sectors};

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
        let to = match size {
            "max" => UsedSize::Max,
            _ => UsedSize::Of(sectors(size).map_err(|why| Failure::usage(format!("--size {size}: {why}")))?),
        };
        if !members.is_empty() || raid_devices.is_some() || level.is_some() || chunk.is_some() || layout.is_some() {
            return Err(Failure::usage("--size changes nothing else: change the shape before or after it"));
        }
        let status = self.status()?;
        let planned = self.handle.plan_reshape(set, ReshapeGoal::Used(to), Vec::new());
        let planned = planned.map_err(|error| Failure::from(error).of(name))?;
        let mut model = plan_model(name, &status, array, &planned, &[], order);
        let cut_off_first = cut_off_first(name, array, &planned);
        let is_refused = cut_off_first.is_some();
        model.steps.splice(0..0, cut_off_first);
        model.text = text::plan(&model);
        if order.plan {
            return Ok(ServerAnswer::ReshapePlan(Box::new(model)));
        }
        if !order.yes && !is_refused {
            return Ok(ServerAnswer::Confirm { text: text::question(&model), name: name.into() });
        }
        outcome_of(name, self.handle.admin(AdminCommand::Resize { array: set, to }))?;
        self.note(name);
        let (size, follow) = (human(Bytes(model.to.size_bytes)), command_with("show", [name], "--follow"));
        let text = match planned.cuts_to() {
            Some(_) => format!("{name} has {size} now"),
            None => format!("{name} gets {size}; a resync of the new part follows: watch it with `{follow}`"),
        };
        self.done(text, name)
    }

    /// Let hosts have no more than the first part of an array, or all of it again.
    pub(super) fn limit_size(&self, name: &str, size: &str, yes: bool) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let set = only_set(&served)?;
        let to = match size {
            "max" => None,
            _ => Some(sectors(size).map_err(|why| Failure::usage(format!("--array-size {size}: {why}")))?),
        };
        let now = set_status(&self.status()?, set)?.capacity;
        if let Some(left) = to.filter(|left| *left < now && !yes) {
            let [now, left] = [now, left].map(|size| human(size.bytes()));
            let text = format!(
                "{name}: hosts have {now}, and will have {left}: requests beyond that are refused, and nothing there is lost"
            );
            return Ok(ServerAnswer::Confirm { text, name: name.into() });
        }
        outcome_of(name, self.handle.admin(AdminCommand::LimitCapacity { array: set, to }))?;
        let size = human(set_status(&self.status()?, set)?.capacity.bytes());
        let text = match to {
            None => format!("hosts have all of {name} again: {size}"),
            Some(_) => format!(
                "hosts have {size} of {name} until it is served again; look whether all is there, then make the array smaller; \
                 {} gives all of it back",
                words(["openraid", "reshape", name, "--array-size", "max"])
            ),
        };
        self.done(text, name)
    }
}

/// What an administrator does first, if a change takes the end of the array from hosts.
pub(super) fn cut_off_first(name: &str, array: &ArrayStatus, plan: &ReshapePlan) -> Option<String> {
    plan.cuts_to().filter(|left| *left < array.capacity).map(|left| text::cut_off_first(name, left))
}
