//! Changes of level that take several steps. The shape at the end is kept in the registry, and the server takes the next step
//! when the one before is over.

use std::collections::BTreeMap;

use openraid_core::admin::{AdminCommand, AdminError, ArrayStatus, Health};
use openraid_core::array::reshape_plan::next_step;
use openraid_format::ShapeFields;
use openraid_runtime::service::{ServiceError, ServiceStatus};
use openraid_status::EventName;

use super::array_model::ServedArray;
use super::joining_members::set_status;
use super::Server;
use crate::events::{plain, News};
use crate::kept_settings::WantedShape;
use crate::output;

/// The shapes that arrays are to have, by the array's UUID, and why the next step did not begin at the last attempt.
pub(super) type ShapeGoals = BTreeMap<String, ShapeGoal>;

/// The end of a change in several steps.
#[derive(Clone, Debug)]
pub(super) struct ShapeGoal {
    end: ShapeFields,
    refusal: Option<String>,
}

/// What comes next.
enum NextStep {
    /// The array has the shape.
    None,
    /// Something else ends first.
    Later,
    /// A change to this shape.
    Change(ShapeFields),
}

impl Server {
    /// An array begins to run: read the shape that it is to have.
    pub(super) fn load_shape_goal(&self, served: &ServedArray) {
        let Some(uuid) = served.uuid() else { return };
        let known = self.registry.known(Some(&uuid), &served.name).ok().flatten();
        if let Some(end) = known.and_then(|entry| entry.kept.shape?.fields()) {
            self.state().shape_goals.insert(uuid, ShapeGoal { end, refusal: None });
        }
    }

    /// Keep the shape that an array is to have in the end; none if it has that.
    pub(super) fn keep_shape_goal(&self, served: &ServedArray, end: Option<ShapeFields>) {
        let Some(uuid) = served.uuid() else { return };
        let kept = self.registry.keep(Some(&uuid), &served.name, |kept| kept.shape = end.as_ref().map(WantedShape::of));
        if let Err(failure) = kept {
            output::warn(&failure.text());
        }
        match end {
            Some(end) => self.state().shape_goals.insert(uuid, ShapeGoal { end, refusal: None }),
            None => self.state().shape_goals.remove(&uuid),
        };
    }

    /// Take the next steps of changes; call it about once a second.
    pub(super) fn take_shape_steps(&self, status: &ServiceStatus) {
        if self.state().shape_goals.is_empty() {
            return;
        }
        let arrays = self.state().arrays.clone();
        for served in &arrays {
            let goal = served.uuid().and_then(|uuid| self.state().shape_goals.get(&uuid).cloned());
            if let Some(goal) = goal {
                self.take_shape_step(status, served, &goal);
            }
        }
    }

    fn take_shape_step(&self, status: &ServiceStatus, served: &ServedArray, goal: &ShapeGoal) {
        let [set] = served.sets()[..] else { return };
        let Ok(array) = set_status(status, set) else { return };
        let new = match next(array, goal.end) {
            NextStep::None => return self.keep_shape_goal(served, None),
            NextStep::Later => return,
            NextStep::Change(new) => new,
        };
        let refused = match self.handle.admin(AdminCommand::Reshape { array: set, new }) {
            Ok(_) => return,
            Err(ServiceError::Admin(AdminError::Refused(why))) => {
                self.keep_shape_goal(served, None);
                format!("{why}; the array keeps the shape that it has")
            }
            Err(error) => error.to_string(),
        };
        let text = format!("{}: the next step of the change of shape cannot begin: {refused}", served.name);
        let is_new = goal.refusal.as_ref() != Some(&text);
        if let Some(goal) = served.uuid().and_then(|uuid| Some(self.state().shape_goals.get_mut(&uuid)?.clone())) {
            let goal = ShapeGoal { refusal: Some(text.clone()), ..goal };
            self.state().shape_goals.insert(served.uuid().expect("just seen"), goal);
        }
        if is_new {
            let news = News { array: Some(served.name.clone()), ..plain(EventName::ReshapeHeld, text) };
            self.add_news(vec![news]);
        }
    }
}

/// The next step of an array to this shape.
fn next(array: &ArrayStatus, end: ShapeFields) -> NextStep {
    let Some(common) = &array.superblock else { return NextStep::Later };
    if array.reshape.is_some() || common.change().is_some() || array.task.is_some() || array.health != Health::Optimal {
        return NextStep::Later;
    }
    match common.shape() {
        now if now == end => NextStep::None,
        now => NextStep::Change(next_step(now, common.size, end)),
    }
}
