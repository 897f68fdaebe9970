//! The functions of a check, except for metrics: a part of Python's, and the helpers.
//!
//! A function must never answer for arguments that it cannot judge: it names them.

use super::arguments::CallArguments;
use super::helpers::{is_near, mean_of, pearson, ranks, spread_of};
use super::value::{finite, order, Builtin, CheckValue, StepLimit as _, ITEMS_MAX};
use super::walk::Walk;
use super::{format, wrong, Answer, CheckError, EvaluationStop};
use std::cmp::Ordering;

/// All functions.
pub const ALL: [Builtin; 28] = [
    Builtin { name: "all", run: |walk, arguments| every(walk, arguments, "all", true) },
    Builtin { name: "any", run: |walk, arguments| every(walk, arguments, "any", false) },
    Builtin { name: "bool", run: |_, arguments| Ok(CheckValue::Bool(arguments.all("bool", ["x"])?[0].truth())) },
    Builtin { name: "enumerate", run: enumerate },
    Builtin { name: "float", run: float },
    Builtin { name: "int", run: int },
    Builtin { name: "len", run: len },
    Builtin { name: "list", run: |walk, arguments| Ok(CheckValue::List(listed(walk, arguments, "list")?.into())) },
    Builtin { name: "max", run: |walk, arguments| extreme(walk, arguments, "max", Ordering::Greater) },
    Builtin { name: "min", run: |walk, arguments| extreme(walk, arguments, "min", Ordering::Less) },
    Builtin { name: "range", run: range },
    Builtin {
        name: "reversed",
        run: |walk, arguments| {
            let mut items = listed(walk, arguments, "reversed")?;
            items.reverse();
            Ok(CheckValue::List(items.into()))
        },
    },
    Builtin { name: "sorted", run: sorted },
    Builtin {
        name: "str",
        run: |walk, arguments| {
            let [value] = arguments.all("str", ["x"])?;
            Ok(CheckValue::Text(format::written(walk, &value)?.into()))
        },
    },
    Builtin { name: "tuple", run: |walk, arguments| Ok(CheckValue::Tuple(listed(walk, arguments, "tuple")?.into())) },
    Builtin { name: "zip", run: zip },
    Builtin { name: "approx", run: approx },
    Builtin { name: "within", run: within },
    Builtin { name: "mean", run: mean },
    Builtin { name: "sum", run: sum },
    Builtin { name: "abs", run: abs },
    Builtin { name: "spread", run: |walk, arguments| Ok(finite(spread(walk, arguments, "spread")?)?) },
    Builtin { name: "flat", run: flat },
    Builtin {
        name: "rising",
        run: |walk, arguments| steady(walk, arguments, "rising", |before, after, t| after >= before * (1.0 - t)),
    },
    Builtin {
        name: "falling",
        run: |walk, arguments| steady(walk, arguments, "falling", |before, after, t| after <= before * (1.0 + t)),
    },
    Builtin { name: "slump", run: slump },
    Builtin { name: "corr", run: |walk, arguments| correlation(walk, arguments, "corr", <[f64]>::to_vec) },
    Builtin { name: "rankcorr", run: |walk, arguments| correlation(walk, arguments, "rankcorr", ranks) },
];

/// The arguments of a function that takes none with a name.
///
/// # Errors
/// One has a name.
pub fn unnamed(arguments: CallArguments<'_>) -> Result<Vec<CheckValue<'_>>, CheckError> {
    match arguments.named.first() {
        Some((name, _)) => Err(wrong(format!("there is no argument '{name}' here; leave the name out"))),
        None => Ok(arguments.placed),
    }
}

/// The number of an argument.
fn number(function: &str, value: &CheckValue<'_>) -> Result<f64, CheckError> {
    value.number().ok_or_else(|| wrong(format!("{function} is for numbers, not for {}", value.sort())))
}

/// The items as numbers; true counts 1, false counts 0.
fn numbers<'e>(walk: &mut Walk<'e, '_>, function: &str, value: &CheckValue<'e>) -> Result<Vec<f64>, CheckError> {
    let one = |item: &CheckValue<'e>| match item {
        CheckValue::Bool(yes) => Ok(f64::from(u8::from(*yes))),
        other => number(function, other),
    };
    walk.items(value)?.iter().map(one).collect()
}

/// The items of the only argument.
fn listed<'e>(
    walk: &mut Walk<'e, '_>,
    arguments: CallArguments<'e>,
    name: &str,
) -> Result<Vec<CheckValue<'e>>, EvaluationStop> {
    match arguments.some(name, [], ["x"])? {
        ([], [Some(value)]) => Ok(walk.items(&value)?),
        ([], [None]) => Ok(Vec::new()),
    }
}

/// Whether all items have this truth, or not all have the opposite.
fn every<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>, name: &str, truth: bool) -> Answer<'e> {
    let [items] = arguments.all(name, ["x"])?;
    let is_ended = walk.items(&items)?.iter().any(|item| item.truth() != truth);
    Ok(CheckValue::Bool(is_ended != truth))
}

fn enumerate<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let ([items], [start]) = arguments.some("enumerate", ["x"], ["start"])?;
    let start = match start {
        None => 0,
        Some(CheckValue::Int(start)) => start,
        Some(other) => return Err(wrong(format!("enumerate begins with int, not with {}", other.sort())).into()),
    };
    let items = walk.items(&items)?.into_iter();
    let pair = |(index, item): (usize, CheckValue<'e>)| {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        CheckValue::Tuple([CheckValue::Int(start.saturating_add(index)), item].into())
    };
    Ok(CheckValue::List(items.enumerate().map(pair).collect()))
}

#[allow(clippy::cast_precision_loss)] // as Python does
fn float<'e>(_: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [value] = arguments.all("float", ["x"])?;
    let number = match &value {
        CheckValue::Bool(yes) => f64::from(u8::from(*yes)),
        CheckValue::Text(text) => text.trim().parse().map_err(|_| wrong("float is for texts with a number"))?,
        other => number("float", other)?,
    };
    Ok(finite(number)?)
}

fn int<'e>(_: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [value] = arguments.all("int", ["x"])?;
    let number = match &value {
        CheckValue::Bool(yes) => i64::from(*yes),
        CheckValue::Int(number) => *number,
        #[allow(clippy::cast_possible_truncation)] // within the limits of both
        CheckValue::Float(number) if number.abs() < 9e18 => number.trunc() as i64,
        CheckValue::Text(text) => text.trim().parse().map_err(|_| wrong("int is for texts with a whole number"))?,
        other => {
            return Err(wrong(format!("int is for numbers that are not too large, not for {}", other.sort())).into())
        }
    };
    Ok(CheckValue::Int(number))
}

fn len<'e>(_: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [value] = arguments.all("len", ["x"])?;
    let length = value.length().ok_or_else(|| wrong(format!("{} has no length", value.sort())))?;
    Ok(CheckValue::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn range<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let (start, stop, step) = match unnamed(arguments)?.as_slice() {
        [CheckValue::Int(stop)] => (0, *stop, 1),
        [CheckValue::Int(start), CheckValue::Int(stop)] => (*start, *stop, 1),
        [CheckValue::Int(start), CheckValue::Int(stop), CheckValue::Int(step)] => (*start, *stop, *step),
        _ => return Err(wrong("range takes one to three whole numbers").into()),
    };
    if step == 0 {
        return Err(wrong("range goes on by nothing; take a step other than 0").into());
    }
    let mut numbers = Vec::new();
    let mut next = Some(start);
    while let Some(number) = next.filter(|next| if step > 0 { *next < stop } else { *next > stop }) {
        numbers.push(CheckValue::Int(number));
        if numbers.len() > ITEMS_MAX {
            return Err(wrong(format!("range has more than {ITEMS_MAX} numbers; make it shorter")).into());
        }
        next = number.checked_add(step);
    }
    walk.spend(numbers.len())?;
    Ok(CheckValue::List(numbers.into()))
}

/// The key of an item in a comparison: the item itself, or the result of `key`.
fn rank<'e>(walk: &mut Walk<'e, '_>, item: &CheckValue<'e>, key: Option<&CheckValue<'e>>) -> Answer<'e> {
    match key {
        None | Some(CheckValue::None) => Ok(item.clone()),
        Some(key) => walk.call(key, CallArguments { placed: vec![item.clone()], named: Vec::new() }),
    }
}

fn extreme<'e>(walk: &mut Walk<'e, '_>, mut arguments: CallArguments<'e>, name: &str, wanted: Ordering) -> Answer<'e> {
    let placed = std::mem::take(&mut arguments.placed);
    let ([], [key]) = arguments.some(name, [], ["key"])?;
    let items = match placed.as_slice() {
        [one] => walk.items(one)?,
        _ => placed,
    };
    let mut items = items.into_iter();
    let mut best = items.next().ok_or_else(|| wrong(format!("{name} of nothing; give it a value")))?;
    let mut best_rank = rank(walk, &best, key.as_ref())?;
    for item in items {
        let this = rank(walk, &item, key.as_ref())?;
        if order(walk, &this, &best_rank, 0)? == wanted {
            (best, best_rank) = (item, this);
        }
    }
    Ok(best)
}

fn sorted<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let ([items], [key, reverse]) = arguments.some("sorted", ["x"], ["key", "reverse"])?;
    let is_reverse = reverse.is_some_and(|reverse| reverse.truth());
    let mut ranked = Vec::new();
    for item in walk.items(&items)? {
        ranked.push((rank(walk, &item, key.as_ref())?, item));
    }
    let mut failed = None;
    ranked.sort_by(|(one, _), (other, _)| {
        let found = order(walk, one, other, 0).unwrap_or_else(|error| {
            failed.get_or_insert(error);
            Ordering::Equal
        });
        if is_reverse {
            found.reverse()
        } else {
            found
        }
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(CheckValue::List(ranked.into_iter().map(|(_, item)| item).collect())),
    }
}

fn zip<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let mut lists = Vec::new();
    for list in unnamed(arguments)? {
        lists.push(walk.items(&list)?);
    }
    let length = lists.iter().map(Vec::len).min().unwrap_or(0);
    let one = |index: usize| CheckValue::Tuple(lists.iter().map(|list| list[index].clone()).collect());
    Ok(CheckValue::List((0..length).map(one).collect()))
}

fn approx<'e>(_: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [x, y, t] = arguments.all("approx", ["x", "y", "t"])?;
    Ok(CheckValue::Bool(is_near(number("approx", &x)?, number("approx", &y)?, number("approx", &t)?)))
}

fn within<'e>(_: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [x, lo, hi] = arguments.all("within", ["x", "lo", "hi"])?;
    let (lo, hi) = (number("within", &lo)?, number("within", &hi)?);
    Ok(CheckValue::Bool((lo..=hi).contains(&number("within", &x)?)))
}

fn mean<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [xs] = arguments.all("mean", ["xs"])?;
    let mean = mean_of(&numbers(walk, "mean", &xs)?).ok_or_else(|| wrong("mean of nothing; give it a value"))?;
    Ok(finite(mean)?)
}

fn sum<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [xs] = arguments.all("sum", ["xs"])?;
    let whole = |item: &CheckValue<'e>| match item {
        CheckValue::Bool(yes) => Some(i64::from(*yes)),
        CheckValue::Int(number) => Some(*number),
        _ => None,
    };
    let exact = walk.items(&xs)?.iter().map(whole).try_fold(0_i64, |sum, item| sum.checked_add(item?));
    Ok(match exact {
        Some(sum) => CheckValue::Int(sum),
        None => finite(numbers(walk, "sum", &xs)?.iter().sum())?,
    })
}

fn abs<'e>(_: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [x] = arguments.all("abs", ["x"])?;
    match x {
        CheckValue::Int(whole) => {
            whole.checked_abs().map(CheckValue::Int).ok_or_else(|| wrong("abs of too large a number").into())
        }
        other => Ok(finite(number("abs", &other)?.abs())?),
    }
}

/// The spread of the first argument.
fn spread<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>, name: &str) -> Result<f64, CheckError> {
    let [xs] = arguments.all(name, ["xs"])?;
    let spread = spread_of(&numbers(walk, name, &xs)?);
    spread.ok_or_else(|| wrong(format!("{name} of nothing, or of values around zero; it has no mean to compare with")))
}

fn flat<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [xs, t] = arguments.all("flat", ["xs", "t"])?;
    let spread = spread(walk, CallArguments { placed: vec![xs], named: Vec::new() }, "flat")?;
    Ok(CheckValue::Bool(spread <= number("flat", &t)?))
}

/// Whether each value follows the one before it as it must.
fn steady<'e>(
    walk: &mut Walk<'e, '_>,
    arguments: CallArguments<'e>,
    name: &str,
    follows: impl Fn(f64, f64, f64) -> bool,
) -> Answer<'e> {
    let [xs, t] = arguments.all(name, ["xs", "t"])?;
    let (values, t) = (numbers(walk, name, &xs)?, number(name, &t)?);
    Ok(CheckValue::Bool(values.windows(2).all(|pair| follows(pair[0], pair[1], t))))
}

fn slump<'e>(walk: &mut Walk<'e, '_>, arguments: CallArguments<'e>) -> Answer<'e> {
    let [xs, i, t] = arguments.all("slump", ["xs", "i", "t"])?;
    let (values, t) = (numbers(walk, "slump", &xs)?, number("slump", &t)?);
    let CheckValue::Int(place) = i else { return Err(wrong(format!("slump needs int as i, not {}", i.sort())).into()) };
    let Some(index) = usize::try_from(place).ok().filter(|index| *index < values.len()) else {
        let text = format!("slump: there is no value {place} of {}; they count from 0", values.len());
        return Err(wrong(text).into());
    };
    // A slump needs a value on both sides, so an end is not a slump.
    if index == 0 || index + 1 == values.len() {
        return Ok(CheckValue::Bool(false));
    }
    let below = |neighbour: f64| values[index] < neighbour * (1.0 - t);
    Ok(CheckValue::Bool(below(values[index - 1]) && below(values[index + 1])))
}

fn correlation<'e>(
    walk: &mut Walk<'e, '_>,
    arguments: CallArguments<'e>,
    name: &str,
    of: impl Fn(&[f64]) -> Vec<f64>,
) -> Answer<'e> {
    let [xs, ys] = arguments.all(name, ["xs", "ys"])?;
    let (xs, ys) = (numbers(walk, name, &xs)?, numbers(walk, name, &ys)?);
    let found = if xs.len() == ys.len() { pearson(&of(&xs), &of(&ys)) } else { None };
    let (one, other) = (xs.len(), ys.len());
    let found =
        found.ok_or_else(|| wrong(format!("{name} needs two series of one length, not {one} and {other} values")))?;
    Ok(finite(found)?)
}
