//! The metrics as functions of a check. The arguments become a checked call. The call is answered and recorded.
//!
//! This module must never answer a metric itself, except for pure arithmetic.

use super::guard::{number, wrong};
use super::session;
use crate::axes::{Axes, Axis, AxisValue};
use crate::metric::{Metric, MetricCall, MetricValue, Operations, Target};
use crate::subject::{clip, Subject, JBOD};
use starlark::collections::SmallMap;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::dict::AllocDict;
use starlark::values::tuple::UnpackTuple;
use starlark::values::{Heap, Value};

type Arguments<'v> = UnpackTuple<Value<'v>>;
type Keywords<'v> = SmallMap<String, Value<'v>>;

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

fn target(metric: Metric, value: Value<'_>) -> starlark::Result<Target> {
    // A level may also be a number.
    let level = value.unpack_i32().filter(|_| matches!(metric, Metric::SurviveFraction | Metric::MinMembers));
    let number = level.map(|level| level.to_string());
    let Some(name) = number.as_deref().or_else(|| value.unpack_str()) else {
        return Err(wrong(format!("{} needs the name of an array first, not {}", metric.name(), value.get_type())));
    };
    let wrong_name = |error: crate::subject::SubjectError| wrong(format!("{}: {error}", metric.name()));
    match metric {
        Metric::Cap => Ok(Target::Link(name.to_owned())),
        Metric::SurviveFraction | Metric::MinMembers => match crate::subject::level(name) {
            Ok(level) => Ok(Target::Level(level)),
            Err(error) => drives(name).map(Target::Subject).ok_or_else(|| wrong_name(error)),
        },
        _ => name.parse().map(Target::Subject).map_err(wrong_name),
    }
}

/// The subject of a name for drives without a level.
fn drives(name: &str) -> Option<Subject> {
    if name == JBOD {
        return Some(Subject::Jbod(1));
    }
    name.parse().ok().filter(|subject| !matches!(subject, Subject::Array { .. }))
}

fn axis_value(value: Value<'_>) -> Option<AxisValue> {
    if let Some(word) = value.unpack_str() {
        return Some(AxisValue::Word(word.to_owned()));
    }
    if let Some(yes) = value.unpack_bool() {
        return Some(AxisValue::Number(f64::from(u8::from(yes))));
    }
    number(value).map(AxisValue::Number)
}

fn call<'v>(metric: Metric, arguments: &Arguments<'v>, keywords: &Keywords<'v>) -> starlark::Result<MetricCall> {
    let name = metric.name();
    let named_first = keywords.iter().find(|(word, _)| *word == metric.first()).map(|(_, value)| *value);
    let (first, mut rest) = match (named_first, arguments.items.split_first()) {
        (Some(first), _) => (first, &arguments.items[..]),
        (None, Some((first, rest))) => (*first, rest),
        (None, None) => return Err(wrong(format!("{name} needs the name of an array first"))),
    };
    let target = target(metric, first)?;
    if matches!(metric, Metric::MemberOps | Metric::MemberDisks) {
        match rest.split_first() {
            Some((operation, others)) if operation.unpack_str() == Some(SMALL_WRITE) => rest = others,
            _ => return Err(wrong(format!("{name} takes '{SMALL_WRITE}' as its second argument"))),
        }
    }
    let places = positional(metric);
    if rest.len() > places.len() {
        return Err(wrong(format!("{name} takes {} arguments without names at most", places.len() + 1)));
    }
    let named = keywords.iter().filter(|(word, _)| *word != metric.first()).map(|(word, value)| {
        let axis = Axis::of(word).ok_or_else(|| wrong(format!("{name} has no axis '{}'", clip(word))))?;
        Ok::<_, starlark::Error>((axis, *value))
    });
    let mut axes = Axes::new();
    for pair in places.iter().copied().zip(rest.iter().copied()).map(Ok).chain(named) {
        let (axis, value) = pair?;
        if axes.has(axis) {
            return Err(wrong(format!("{name}: {} is given twice", axis.name())));
        }
        let Some(value) = axis_value(value) else {
            return Err(wrong(format!("{name}: {} is neither a number nor a word", axis.name())));
        };
        axes.set(axis, value).map_err(|error| wrong(format!("{name}: {error}")))?;
    }
    // A name such as raid5x8 includes the number of members.
    let array = first.unpack_str().filter(|name| *name != JBOD).and_then(|name| name.parse::<Subject>().ok());
    if let (Metric::SurviveFraction, false, Some(array)) = (metric, axes.has(Axis::N), array) {
        axes = axes.number(Axis::N, array.members().into());
    }
    let (system, workload) = session::of_this_claim();
    for axis in places {
        if !axes.has(*axis) && !workload.defaults.has(*axis) {
            return Err(wrong(format!("{name} needs {}", axis.name())));
        }
    }
    Ok(MetricCall { system, metric, target, axes, workload })
}

fn ask<'v>(
    metric: Metric,
    arguments: &Arguments<'v>,
    keywords: &Keywords<'v>,
    heap: Heap<'v>,
) -> starlark::Result<Value<'v>> {
    let value = session::ask(call(metric, arguments, keywords)?).map_err(wrong)?;
    Ok(given(value, heap))
}

/// The value in the form for the check.
fn given<'v>(value: MetricValue, heap: Heap<'v>) -> Value<'v> {
    match value {
        MetricValue::Number(number) => heap.alloc(number),
        MetricValue::Count(count) => heap.alloc(i64::try_from(count).unwrap_or(i64::MAX)),
        MetricValue::Operations(Operations { reads, xors, writes }) => {
            heap.alloc(AllocDict([("r", i64::from(reads)), ("x", i64::from(xors)), ("w", i64::from(writes))]))
        }
    }
}

macro_rules! metrics {
    ($($name:ident => $metric:ident),+ $(,)?) => {
        /// The metrics, for checks.
        pub fn metrics(builder: &mut GlobalsBuilder) {
            $(self::$name::register(builder);)+
        }
        $(
            #[allow(non_snake_case)] // M4 is called so
            mod $name {
                use super::*;
                #[starlark_module]
                pub fn register(builder: &mut GlobalsBuilder) {
                    fn $name<'v>(
                        #[starlark(args)] arguments: Arguments<'v>,
                        #[starlark(kwargs)] keywords: Keywords<'v>,
                        heap: Heap<'v>,
                    ) -> starlark::Result<Value<'v>> {
                        ask(Metric::$metric, &arguments, &keywords, heap)
                    }
                }
            }
        )+
    };
}

metrics! {
    iops => Iops,
    mbps => Mbps,
    peak_mbps => PeakMbps,
    lat => Lat,
    mean_us => MeanUs,
    pctl_us => PctlUs,
    rating => Rating,
    score => Score,
    gain => Gain,
    fct => Fct,
    lin => Lin,
    wbwt => Wbwt,
    M4 => M4,
    count => Count,
    cpu => Cpu,
    util => Util,
    capacity => Capacity,
    cap => Cap,
    survive_fraction => SurviveFraction,
    parity_share => ParityShare,
    member_ops => MemberOps,
    member_disks => MemberDisks,
    reads_per_write => ReadsPerWrite,
    min_members => MinMembers,
}
