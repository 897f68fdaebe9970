//! The metrics as functions of a check. The arguments become a checked call. The call is answered and recorded.
//!
//! This module must never answer a metric itself, except for pure arithmetic.

use super::arguments::CallArguments;
use super::value::CheckValue;
use super::walk::Walk;
use super::{wrong, Answer, CheckError};
use crate::axis_arguments::{axis_named, Axis, AxisValue, AxisValues};
use crate::claim::Claim;
use crate::metric::{Metric, MetricCall, MetricTarget, MetricValue, Operations};
use crate::subject::{clip, subject, Level, Subject, JBOD};

/// Axes that may follow the subject without a name.
const fn positional(metric: Metric) -> &'static [Axis] {
    match metric {
        Metric::PctlUs => &[Axis::P],
        Metric::M4 => &[Axis::Rd],
        Metric::Util | Metric::ParityShare => &[Axis::Member],
        Metric::SurviveFraction => &[Axis::N, Axis::K],
        _ => &[],
    }
}

/// The only operation of the language with a cost.
const SMALL_WRITE: &str = "small_write";

fn target(metric: Metric, value: &CheckValue<'_>) -> Result<MetricTarget, CheckError> {
    let of_level = matches!(metric, Metric::SurviveFraction | Metric::MinMembers);
    let unknown = |error: crate::subject::SubjectNameError| wrong(format!("{}: {error}", metric.name()));
    let name = match value {
        CheckValue::Text(name) => name,
        // A level may also be a number.
        CheckValue::Int(number) if of_level => {
            return crate::subject::level(&number.to_string()).map(MetricTarget::Level).map_err(unknown);
        }
        other => {
            let text = format!("{} needs the name of an array first, not {}", metric.name(), other.sort());
            return Err(wrong(text));
        }
    };
    match metric {
        Metric::Cap => Ok(MetricTarget::Link(name.to_string())),
        _ if of_level => match crate::subject::level(name) {
            Ok(level) => Ok(MetricTarget::Level(level)),
            Err(error) => drives(name).map(MetricTarget::Subject).ok_or_else(|| unknown(error)),
        },
        _ => subject(name).map(MetricTarget::Subject).map_err(unknown),
    }
}

/// The subject of a name for drives without a level.
fn drives(name: &str) -> Option<Subject> {
    if name == JBOD {
        return Some(Subject::Array { level: Level::Jbod, members: 1 });
    }
    subject(name).ok().filter(|drives| drives.level().is_none_or(|level| level == Level::Jbod))
}

fn axis_value(value: &CheckValue<'_>) -> Option<AxisValue> {
    match value {
        CheckValue::Text(word) => Some(AxisValue::Word(word.to_string())),
        CheckValue::Bool(yes) => Some(AxisValue::Number(f64::from(u8::from(*yes)))),
        other => other.number().map(AxisValue::Number),
    }
}

/// The arguments of a metric by their axes, in the order of the check.
fn axes<'a, 'e>(
    metric: Metric,
    placed: &'a [CheckValue<'e>],
    named: impl Iterator<Item = &'a (&'e str, CheckValue<'e>)>,
) -> Result<AxisValues, CheckError>
where
    'e: 'a,
{
    let name = metric.name();
    let places = positional(metric);
    if placed.len() > places.len() {
        return Err(wrong(format!("{name} takes {} arguments without names at most", places.len() + 1)));
    }
    let named = named.map(|(word, value)| match axis_named(word) {
        Some(axis) => Ok((axis, value)),
        None => Err(wrong(format!("{name} has no axis '{}'", clip(word)))),
    });
    let mut axes = AxisValues::new();
    for pair in places.iter().copied().zip(placed).map(Ok).chain(named) {
        let (axis, value) = pair?;
        if axes.has(axis) {
            return Err(wrong(format!("{name}: {} is given twice", axis.word())));
        }
        let Some(value) = axis_value(value) else {
            return Err(wrong(format!("{name}: {} is neither a number nor a word", axis.word())));
        };
        axes.set(axis, value).map_err(|error| wrong(format!("{name}: {error}")))?;
    }
    Ok(axes)
}

fn call(claim: &Claim, metric: Metric, arguments: &CallArguments<'_>) -> Result<MetricCall, CheckError> {
    let name = metric.name();
    let named_first = arguments.named.iter().find(|(word, _)| *word == metric.first()).map(|(_, value)| value);
    let (first, mut rest) = match (named_first, arguments.placed.split_first()) {
        (Some(first), _) => (first, &arguments.placed[..]),
        (None, Some((first, rest))) => (first, rest),
        (None, None) => return Err(wrong(format!("{name} needs the name of an array first"))),
    };
    let target = target(metric, first)?;
    if matches!(metric, Metric::MemberOps | Metric::MemberDisks) {
        match rest.split_first() {
            Some((CheckValue::Text(operation), others)) if &**operation == SMALL_WRITE => rest = others,
            _ => return Err(wrong(format!("{name} takes '{SMALL_WRITE}' as its second argument"))),
        }
    }
    let named = arguments.named.iter().filter(|(word, _)| *word != metric.first());
    let mut axes = axes(metric, rest, named)?;
    // A name such as raid5x8 includes the number of members.
    let array = match first {
        CheckValue::Text(name) if &**name != JBOD => subject(name).ok(),
        _ => None,
    };
    if let (Metric::SurviveFraction, false, Some(array)) = (metric, axes.has(Axis::N), array) {
        axes = axes.number(Axis::N, array.members().into());
    }
    let (system, workload) = (claim.system.clone(), claim.workload.clone());
    for axis in positional(metric) {
        if !axes.has(*axis) && !workload.defaults.has(*axis) {
            return Err(wrong(format!("{name} needs {}", axis.word())));
        }
    }
    Ok(MetricCall { system, metric, target, axes, workload })
}

/// The value of a metric, in the form for the check.
///
/// # Errors
/// The arguments do not fit the metric, or it has no meaning.
pub fn ask<'e>(walk: &mut Walk<'e, '_>, metric: Metric, arguments: &CallArguments<'e>) -> Answer<'e> {
    let call = call(walk.claim, metric, arguments)?;
    Ok(match walk.measured(call)? {
        MetricValue::Number(number) => CheckValue::Float(number),
        MetricValue::Count(count) => CheckValue::Int(i64::try_from(count).unwrap_or(i64::MAX)),
        MetricValue::Operations(Operations { reads, xors, writes }) => {
            let part = |name: &str, count: u32| (CheckValue::text(name), CheckValue::Int(count.into()));
            CheckValue::Dict([part("r", reads), part("x", xors), part("w", writes)].into())
        }
    })
}
