//! Metrics without measurements: links by their standards, survivors by counting, parity by its layout, the cost of a
//! small write by its level.
//!
//! This module uses no profile; a controller's decisions are arguments.

mod link;
mod small_write;
mod survive;

pub use link::link_mbps;
pub use small_write::{data_members, small_write, spans, ParityUpdate, SmallWrite};
pub use survive::{parity_share, survive_fraction, survive_nothing};

use crate::axis_arguments::Axis;
use crate::metric::{Metric, MetricCall, MetricTarget, MetricValue, NotApplicable};
use crate::subject::{Level, Subject};

/// Answer a metric that needs no profile.
///
/// # Errors
/// The metric has no meaning for these arguments.
pub fn answer(call: &MetricCall) -> Result<MetricValue, NotApplicable> {
    let number = match (call.metric, &call.target) {
        (Metric::Cap, MetricTarget::Link(link)) => link_mbps(link)?,
        (Metric::SurviveFraction, MetricTarget::Level(level)) => {
            survive_fraction(*level, narrow(call, Axis::N)?, narrow(call, Axis::K)?)?
        }
        (Metric::ParityShare, MetricTarget::Subject(Subject::Array { level, members })) if *level != Level::Jbod => {
            parity_share(*level, *members, narrow(call, Axis::Member)?)?
        }
        (Metric::SurviveFraction, MetricTarget::Subject(_)) => {
            survive_nothing(narrow(call, Axis::N)?, narrow(call, Axis::K)?)?
        }
        (Metric::ParityShare, MetricTarget::Subject(drives)) => {
            let (member, members) = (narrow(call, Axis::Member)?, drives.members());
            if member >= members {
                return Err(NotApplicable::new(format!("there is no member {member} of {members}; they count from 0")));
            }
            0.0
        }
        (metric, target) => panic!("bug: {} of {target} is not arithmetic", metric.name()),
    };
    Ok(MetricValue::Number(number))
}

fn narrow(call: &MetricCall, axis: Axis) -> Result<u16, NotApplicable> {
    let given = call.axes.whole(axis).or_else(|| call.workload.defaults.whole(axis));
    let value = given.and_then(|value| u16::try_from(value).ok());
    value.ok_or_else(|| NotApplicable::new(format!("{} is missing", axis.word())))
}
