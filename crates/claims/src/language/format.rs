//! Values as texts, and texts with places for values.

use super::value::{joined_text, CheckValue, StepLimit, ITEMS_MAX, NESTING_MAX};
use super::{wrong, CheckError};

/// The value as a text, as `str` makes it.
///
/// # Errors
/// The value is too large.
pub fn written(steps: &mut impl StepLimit, value: &CheckValue<'_>) -> Result<String, CheckError> {
    match value {
        CheckValue::Text(text) => steps.spend(text.len()).map(|()| text.to_string()),
        other => {
            let mut text = String::new();
            write(steps, other, 0, &mut text)?;
            Ok(text)
        }
    }
}

fn write(
    steps: &mut impl StepLimit,
    value: &CheckValue<'_>,
    depth: usize,
    text: &mut String,
) -> Result<(), CheckError> {
    steps.spend(1)?;
    if depth > NESTING_MAX || text.len() > ITEMS_MAX {
        return Err(wrong("a value is too large to be written as a text"));
    }
    let mut many =
        |open: &str, items: &mut dyn Iterator<Item = (Option<&CheckValue<'_>>, &CheckValue<'_>)>, close: &str| {
            text.push_str(open);
            for (index, (key, item)) in items.enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                if let Some(key) = key {
                    write(steps, key, depth + 1, text)?;
                    text.push_str(": ");
                }
                write(steps, item, depth + 1, text)?;
            }
            text.push_str(close);
            Ok(())
        };
    match value {
        CheckValue::None => text.push_str("None"),
        CheckValue::Bool(truth) => text.push_str(if *truth { "True" } else { "False" }),
        CheckValue::Int(number) => text.push_str(&number.to_string()),
        CheckValue::Float(number) => text.push_str(&format!("{number:?}")),
        CheckValue::Text(inner) => text.push_str(&format!("{inner:?}")),
        CheckValue::List(items) => many("[", &mut items.iter().map(|item| (None, item)), "]")?,
        CheckValue::Tuple(items) if items.len() == 1 => many("(", &mut items.iter().map(|item| (None, item)), ",)")?,
        CheckValue::Tuple(items) => many("(", &mut items.iter().map(|item| (None, item)), ")")?,
        CheckValue::Dict(pairs) => many("{", &mut pairs.iter().map(|(key, item)| (Some(key), item)), "}")?,
        CheckValue::Metric(metric) => text.push_str(metric.name()),
        CheckValue::Builtin(function) => text.push_str(function.name),
        CheckValue::Lambda(_) => text.push_str("lambda"),
    }
    Ok(())
}

/// `text % value`: `%d` and `%s` are the places of the value, or of the items of a tuple.
///
/// # Errors
/// The places do not fit the values.
pub fn by_percent<'e>(
    steps: &mut impl StepLimit,
    text: &str,
    value: &CheckValue<'e>,
) -> Result<CheckValue<'e>, CheckError> {
    let one = std::slice::from_ref(value);
    let mut values = if let CheckValue::Tuple(items) = value { items.iter() } else { one.iter() };
    let mut made = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            made.push(letter);
            continue;
        }
        let kind = letters.next();
        if kind == Some('%') {
            made.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| wrong("the text has more places than there are values"))?;
        match (kind, value) {
            (Some('s'), value) => made.push_str(&written(steps, value)?),
            (Some('d'), CheckValue::Int(number)) => made.push_str(&number.to_string()),
            #[allow(clippy::cast_possible_truncation)] // the fraction is dropped, as Python does
            (Some('d'), CheckValue::Float(number)) => made.push_str(&(number.trunc() as i64).to_string()),
            (Some('d'), other) => return Err(wrong(format!("%d is for a number, not for {}", other.sort()))),
            _ => return Err(wrong("a text has the places %d, %s and %% only")),
        }
    }
    if values.next().is_some() {
        return Err(wrong("the text has fewer places than there are values"));
    }
    joined_text(steps, &[&made])
}

/// `text.format(values)`: `{}` are the places of the values in their order, `{0}` is the place of the first.
///
/// # Errors
/// The places do not fit the values.
pub fn by_braces<'e>(
    steps: &mut impl StepLimit,
    text: &str,
    values: &[CheckValue<'e>],
) -> Result<CheckValue<'e>, CheckError> {
    let mut made = String::new();
    let (mut rest, mut next) = (text, 0);
    while let Some(at) = rest.find(['{', '}']) {
        made.push_str(&rest[..at]);
        let place = &rest[at..];
        if let Some(doubled) = ["{{", "}}"].into_iter().find(|brace| place.starts_with(brace)) {
            made.push_str(&doubled[1..]);
            rest = &place[2..];
            continue;
        }
        let end = place.find('}').filter(|end| *end > 0);
        let end = end.ok_or_else(|| wrong("a brace has no partner; write {} for a value, {{ or }} for a brace"))?;
        let index = match &place[1..end] {
            "" => {
                next += 1;
                Some(next - 1)
            }
            number => number.parse::<usize>().ok(),
        };
        let value = index.and_then(|index| values.get(index));
        let value = value.ok_or_else(|| wrong("a place of the text has no value; write {} or {0} for values"))?;
        made.push_str(&written(steps, value)?);
        rest = &place[end + 1..];
    }
    made.push_str(rest);
    joined_text(steps, &[&made])
}
