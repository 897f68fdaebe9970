//! The figures of an array's adaptive policy.

use openraid_core::adaptive::{AdaptiveStatus, Switch, Tuning};
use openraid_units::Instant;

use crate::model::{AdaptiveModel, SwitchModel, TuningModel};

/// The figures of the adaptive policy; `None` while it is off.
pub fn adaptive(status: &AdaptiveStatus, now: Instant) -> Option<AdaptiveModel> {
    status.on.then(|| AdaptiveModel {
        now: tuning(status.tuning),
        windows: status.windows,
        switches: status.switches,
        last: status.last.iter().map(|last| switch(last, now)).collect(),
    })
}

fn tuning(tuning: Tuning) -> TuningModel {
    TuningModel {
        read_ahead: tuning.read_ahead.name().into(),
        mirror_read: tuning.mirror_read.name().into(),
        destage_millis: tuning.destage_delay.get() / 1_000_000,
    }
}

fn switch(switch: &Switch, now: Instant) -> SwitchModel {
    SwitchModel {
        ago_seconds: now.since(switch.at).get() / 1_000_000_000,
        from: tuning(switch.from),
        to: tuning(switch.to),
        why: switch.load.to_string(),
    }
}
