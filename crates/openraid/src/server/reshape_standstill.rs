//! Changes of shape that stand still, although nothing that is known holds them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use openraid_status::shell_quoting::command;
use openraid_status::{EventName, ReshapeModel};
use openraid_units::ArrayId;

use crate::alarms::Condition;
use crate::model::{ArrayModel, TaskWord};
use crate::quantity::human_seconds;

/// A change that has not moved for this time stands still. At a rate of 4 KiB/s, a unit of 1 MiB takes less than half of it.
const STILL_TIME: Duration = Duration::from_secs(600);

/// A change of shape, as it was last seen.
#[derive(Debug)]
struct SeenChange {
    model: ReshapeModel,
    /// The time since which it has been where it is.
    since: Instant,
}

/// The changes of shape of arrays that are served. At its end, a change is no longer in the status.
#[derive(Debug, Default)]
pub(super) struct SeenChanges(HashMap<ArrayId, SeenChange>);

impl SeenChanges {
    /// The change of an array is there now.
    pub(super) fn see(&mut self, array: ArrayId, model: ReshapeModel, now: Instant) {
        let place = |change: &ReshapeModel| (change.stage, change.moved_bytes, change.recorded_bytes);
        let before = self.0.get(&array).filter(|seen| place(&seen.model) == place(&model)).map(|seen| seen.since);
        self.0.insert(array, SeenChange { model, since: before.unwrap_or(now) });
    }

    /// The change of an array.
    pub(super) fn of(&self, array: ArrayId) -> Option<&ReshapeModel> {
        self.0.get(&array).map(|seen| &seen.model)
    }

    /// The change of an array, which has ended.
    pub(super) fn end(&mut self, array: ArrayId) -> Option<ReshapeModel> {
        self.0.remove(&array).map(|seen| seen.model)
    }

    /// The alarm of an array whose change stands still. A pause has its own alarm, and other tasks go first.
    pub(super) fn condition(&self, model: &ArrayModel, sets: &[ArrayId], now: Instant) -> Option<Condition> {
        let held = model.task.as_ref().is_some_and(|task| task.paused || task.kind != TaskWord::Reshape);
        let seen = sets.iter().find_map(|set| self.0.get(set)).filter(|_| model.shape.is_some() && !held)?;
        let still = now.duration_since(seen.since);
        (still >= STILL_TIME).then(|| {
            let text = format!(
                "{}: the change of shape has not moved for {}: members that do not flush or take writes, or too little memory (--memory), hold it",
                model.name,
                human_seconds(still.as_secs())
            );
            Condition {
                array: Some(model.name.clone()),
                uuid: model.uuid.clone(),
                next_step: Some(command("show", [&model.name])),
                ..Condition::of_server(EventName::ReshapeStill, text)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::shape;
    use openraid_core::admin::{ReshapeStage, ReshapeStatus};
    use openraid_format::{MdLevel, ReshapeDirection, ShapeFields};
    use openraid_status::LevelWord;
    use openraid_units::{Sectors, SetLba};

    fn change(moved: u64) -> ReshapeModel {
        let fields = |raid_disks| ShapeFields { level: MdLevel::Raid5, layout: 2, chunk: Sectors(128), raid_disks };
        let status = ReshapeStatus {
            from: fields(3),
            to: fields(4),
            capacities: [Sectors(2 << 20), Sectors(3 << 20)],
            direction: ReshapeDirection::Forward,
            stage: ReshapeStage::Moving,
            moved: Sectors(moved),
            recorded: Sectors(moved),
            total: Sectors(1 << 20),
            position: SetLba(moved),
        };
        shape::change(&status)
    }

    #[test]
    fn a_change_that_has_not_moved_for_ten_minutes_has_an_alarm_until_it_moves() {
        let (mut seen, begin, array) = (SeenChanges::default(), Instant::now(), ArrayId(3));
        let array_model = ArrayModel::offline("data".into(), None, LevelWord::Unknown, 3, String::new());
        let model = |moved| ArrayModel { shape: Some(change(moved)), ..array_model.clone() };
        let alarm =
            |seen: &SeenChanges, seconds| seen.condition(&model(8), &[array], begin + Duration::from_secs(seconds));
        for seconds in [0, 1, 400] {
            seen.see(array, change(8), begin + Duration::from_secs(seconds));
        }
        assert!(alarm(&seen, 599).is_none());
        let still = alarm(&seen, 660).expect("it stands still");
        assert!(still.text.starts_with("data: the change of shape has not moved for 11 min"), "{}", still.text);
        assert_eq!(seen.condition(&model(8), &[ArrayId(4)], begin + Duration::from_secs(660)), None);
        seen.see(array, change(16), begin + Duration::from_secs(700));
        assert!(alarm(&seen, 1299).is_none());
    }
}
