//! The answer of a chart as one sentence: the best subject, the positions where it is best, and its lead.

use super::super::bar_chart::sorted;
use super::super::data::{Bar, Bars, Better, Chart, Level, LineChart, Mark, Point, ReportSubject, Scale, Series, Unit};
use super::super::format::{capital, list, percent, place, value};
use super::super::predicted_and_measured::{errors, Errors};
use super::super::split_charts::{by_cache, SplitPart};
use super::compare::times;
use super::{drawn, finite, steady, value_at, TIE};
use std::collections::BTreeSet;

/// Up to this number of successive leaders each change of the lead is reported.
const REIGNS_TOLD: usize = 4;
/// The percentile at which distributions are compared.
const RARE: f64 = 99.0;

/// The answer from the data, one for each write cache. It is empty if there is nothing to compare.
#[must_use]
pub fn answer(chart: &Chart) -> String {
    match chart {
        Chart::Lines(lines) => {
            let of_part = |part: &SplitPart| (part.title.clone(), steady::told_of_lines(&part.lines, of_lines));
            let answers =
                by_cache(lines).iter().map(of_part).filter(|(_, words)| !words.is_empty()).collect::<Vec<_>>();
            let words = answers.iter().map(
                |(title, words)| {
                    if title.is_empty() {
                        words.clone()
                    } else {
                        format!("{title}: {words}")
                    }
                },
            );
            words.collect::<Vec<_>>().join(" ")
        }
        Chart::Bars(bars) => steady::told_of_bars(bars, of_bars),
        Chart::Heat(_) => String::new(),
    }
}

fn of_lines(lines: &LineChart) -> String {
    if let Some(words) = of_overlay(lines) {
        return words;
    }
    let all: Vec<&Series> = drawn(lines).filter(|series| !finite(series).is_empty()).collect();
    match all.as_slice() {
        [] => String::new(),
        [one] => course(lines, one),
        _ if lines.y.better == Better::Neither => String::new(),
        many if lines.x.scale == Scale::Nines => at_rare(lines, many),
        many => leaders(lines, many),
    }
}

/// The variant that all drawn lines of an overlay share and that distinguishes them from its points.
fn shared_variant(lines: &LineChart) -> Option<String> {
    let mut variants = drawn(lines).map(|series| series.subject.variant.differences().next_back());
    let first = variants.next()??;
    variants.all(|variant| variant == Some(first)).then(|| capital(first))
}

/// The difference between a line and the points that are compared with it.
fn of_overlay(lines: &LineChart) -> Option<String> {
    let mut worst: Option<(Errors, &Series)> = None;
    let (mut sum, mut places) = (0.0, 0_u32);
    for measured in lines.series.iter().filter(|series| series.mark == Mark::Points) {
        let shape = |one: &Series| (one.subject.level, one.subject.members);
        let Some(predicted) = drawn(lines).find(|one| shape(one) == shape(measured)) else { continue };
        let Some(errors) = errors(predicted, measured) else { continue };
        sum += errors.mean * f64::from(errors.places);
        places += errors.places;
        if worst.as_ref().is_none_or(|(known, _)| errors.worst.abs() > known.worst.abs()) {
            worst = Some((errors, predicted));
        }
    }
    let (worst, series) = worst?;
    Some(format!(
        "{} differs from its counterpart by {} on average over {places} places, at worst by {} ({} at {}).",
        shared_variant(lines).unwrap_or_else(|| "Prediction".into()),
        percent(sum / f64::from(places)),
        percent(worst.worst.abs()),
        series.subject,
        place(&lines.x, worst.worst_at)
    ))
}

/// The course of a single line: its first and its last value.
fn course(lines: &LineChart, series: &Series) -> String {
    let points = finite(series);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let top = points.iter().rev().max_by(|a, b| a.y.total_cmp(&b.y)).unwrap_or(last);
    let at = |point: &Point| format!("{} at {}", value(&lines.y.unit, point.y), place(&lines.x, point.x));
    if points.len() == 1 {
        return format!("{}: {}.", series.subject, at(first));
    }
    let over = if top.x > first.x && top.x < last.x && lines.y.better == Better::Higher {
        format!(", with a peak of {}", at(top))
    } else {
        String::new()
    };
    format!("{} goes from {} to {}{over}.", series.subject, at(first), at(last))
}

/// Distributions: the subject that is best for the slowest requests.
fn at_rare(lines: &LineChart, many: &[&Series]) -> String {
    let mut known: Vec<(f64, &Series)> =
        many.iter().filter_map(|series| value_at(series, RARE).map(|y| (y, *series))).collect();
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ([low, .., high], true) = (known.as_slice(), lines.y.better == Better::Lower) else { return String::new() };
    if high.0 - low.0 <= TIE * high.0 {
        return format!("99 of 100 requests take at most {} on all of them.", value(&lines.y.unit, high.0));
    }
    format!(
        "99 of 100 requests take at most {} on {}, {} on {}.",
        value(&lines.y.unit, low.0),
        low.1.subject,
        value(&lines.y.unit, high.0),
        high.1.subject
    )
}

/// The leaders at each position that at least two lines share.
fn leaders(lines: &LineChart, many: &[&Series]) -> String {
    let mut places: Vec<f64> = many.iter().flat_map(|series| finite(series)).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places.retain(|&x| many.iter().filter(|series| value_at(series, x).is_some()).count() >= 2);
    let Some(&last) = places.last() else { return String::new() };
    let led: Vec<Vec<usize>> = places.iter().map(|&x| best_at(lines, many, x)).collect();
    let always: Vec<usize> = (0..many.len()).filter(|one| led.iter().all(|best| best.contains(one))).collect();
    let (front, back) = (&led[0], &led[led.len() - 1]);
    let names = |who: &[usize]| names(many, who);
    let figure = |who: &[usize], x: f64| figure(lines, many, who, x);
    if always.len() == many.len() {
        return format!("All are level throughout, with {}.", figure(&always, last));
    }
    if !always.is_empty() {
        // The figure is taken where their lead is largest, among positions where no other line is equal.
        let alone = |index: &usize| led[*index].iter().all(|one| always.contains(one));
        let alone: Vec<f64> = (0..places.len()).filter(alone).map(|index| places[index]).collect();
        let Some(place) = most_ahead(lines, many, &always, &alone) else {
            let (who, is, at) = (names(&always), verb(&always), figure(&always, last));
            return format!("{who} {is} best or level with the best throughout, with {at}.");
        };
        let (lead, at) = (factor(lines, many, &always, place), figure(&always, place));
        return format!("{} {} best throughout, with {at}{lead}.", names(&always), verb(&always));
    }
    let stays: Vec<usize> = back.iter().copied().filter(|one| front.contains(one)).collect();
    if !stays.is_empty() {
        let middle = led.iter().position(|best| !best.iter().any(|one| stays.contains(one)));
        let Some(index) = middle else {
            return format!("{} {} best at both ends.", names(&stays), verb(&stays));
        };
        let other = &led[index];
        let (who, at) = (names(other), figure(other, places[index]));
        return format!("{} {} best at both ends, but not in between: {who} makes {at}.", names(&stays), verb(&stays));
    }
    in_turn(lines, many, &led, &places)
}

/// The names of lines.
fn names(many: &[&Series], who: &[usize]) -> String {
    list(&who.iter().map(|&one| many[one].subject.to_string()).collect::<Vec<_>>())
}

const fn verb(who: &[usize]) -> &'static str {
    if who.len() == 1 {
        "is"
    } else {
        "are"
    }
}

/// The value of the first of these lines at a position.
fn figure(lines: &LineChart, many: &[&Series], who: &[usize], x: f64) -> String {
    let y = value_at(many[who[0]], x).unwrap_or(f64::NAN);
    format!("{} at {}", value(&lines.y.unit, y), place(&lines.x, x))
}

/// The answer if the lead changes.
fn in_turn(lines: &LineChart, many: &[&Series], led: &[Vec<usize>], places: &[f64]) -> String {
    let (first, last) = (places[0], places[places.len() - 1]);
    let (front, back) = (&led[0], &led[led.len() - 1]);
    let names = |who: &[usize]| names(many, who);
    let figure = |who: &[usize], x: f64| figure(lines, many, who, x);
    let mut reigns = reigns(led);
    // From this position on the last leaders have led without interruption.
    let held = led.iter().rev().take_while(|best| best.iter().any(|one| back.contains(one))).count();
    if let Some(end) = reigns.last_mut() {
        *end = (places.len() - held, back.clone());
    }
    if reigns.len() > REIGNS_TOLD {
        let others: BTreeSet<usize> = reigns[1..reigns.len() - 1].iter().flat_map(|(_, who)| who.clone()).collect();
        let others: Vec<usize> = others.into_iter().filter(|one| !front.contains(one) && !back.contains(one)).collect();
        let between = if others.is_empty() { String::new() } else { format!(", {} in between", names(&others)) };
        return format!(
            "The lead changes {} times: {} at first ({}){between}, {} in the end ({}{}).",
            reigns.len() - 1,
            names(front),
            figure(front, first),
            names(back),
            figure(back, last),
            factor(lines, many, back, last)
        );
    }
    let mut text = format!("{} {} best at first ({})", names(front), verb(front), figure(front, first));
    for (number, (from, who)) in reigns.iter().enumerate().skip(1) {
        let until = reigns.get(number + 1).map_or(places.len(), |(next, _)| *next);
        let reigned = &places[*from..until];
        let is_last = until == places.len();
        let at = if is_last { Some(last) } else { most_ahead(lines, many, who, reigned) }.unwrap_or(reigned[0]);
        let lead = if is_last { factor(lines, many, who, last) } else { String::new() };
        let begin = place(&lines.x, reigned[0]);
        text.push_str(&match reigned.len() {
            1 => {
                let y = value_at(many[who[0]], at).unwrap_or(f64::NAN);
                format!(", at {begin} {} ({}{lead})", names(who), value(&lines.y.unit, y))
            }
            _ => format!(", from {begin} on {} ({}{lead})", names(who), figure(who, at)),
        });
    }
    text + "."
}

/// The successive leaders. Each leads as long as possible before another one must be named. Positions count from 0.
fn reigns(led: &[Vec<usize>]) -> Vec<(usize, Vec<usize>)> {
    let mut reigns: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, best) in led.iter().enumerate() {
        let both = reigns.last().map(|(_, who)| who.iter().copied().filter(|one| best.contains(one)).collect());
        let both: Vec<usize> = both.unwrap_or_default();
        match reigns.last_mut() {
            Some((_, who)) if !both.is_empty() => *who = both,
            _ => reigns.push((index, best.clone())),
        }
    }
    reigns
}

/// The position with the largest lead in the unit of the axis. If several are equal, it is the last one.
fn most_ahead(lines: &LineChart, many: &[&Series], who: &[usize], places: &[f64]) -> Option<f64> {
    let ahead = |x: f64| {
        let best = value_at(many[who[0]], x).unwrap_or(0.0);
        let lead = lead(lines, many, who, x).map_or(1.0, |(lead, _)| lead);
        if lines.y.better == Better::Lower {
            best * lead - best
        } else {
            best - best / lead
        }
    };
    places.iter().copied().max_by(|one, other| ahead(*one).total_cmp(&ahead(*other)))
}

/// The lines that are equal to the best at a position.
fn best_at(lines: &LineChart, many: &[&Series], x: f64) -> Vec<usize> {
    let values: Vec<Option<f64>> = many.iter().map(|series| value_at(series, x)).collect();
    let lower = lines.y.better == Better::Lower;
    let best = values.iter().flatten().copied().reduce(if lower { f64::min } else { f64::max });
    let Some(best) = best else { return Vec::new() };
    let level = |y: f64| (y - best).abs() <= TIE * best.abs();
    (0..many.len()).filter(|&one| values[one].is_some_and(level)).collect()
}

/// The lead of the leaders over the single drive. If there is no single drive, over the last line.
fn lead<'a>(lines: &LineChart, many: &[&'a Series], who: &[usize], x: f64) -> Option<(f64, &'a Series)> {
    let best = value_at(many[who[0]], x)?;
    let others = || many.iter().enumerate().filter(|(index, _)| !who.contains(index)).map(|(_, series)| *series);
    let single = others().find(|series| series.subject == ReportSubject::new(Level::Single, 1));
    let worst = || {
        let known = others().filter_map(|series| Some((value_at(series, x)?, series)));
        let by_y = |a: &(f64, &Series), b: &(f64, &Series)| a.0.total_cmp(&b.0);
        if lines.y.better == Better::Lower {
            known.max_by(by_y)
        } else {
            known.min_by(by_y)
        }
    };
    let against = single.and_then(|series| Some((value_at(series, x)?, series))).or_else(worst);
    let (other, series) = against?;
    let lead = if lines.y.better == Better::Lower { other / best } else { best / other };
    (lead.is_finite() && lead > 1.0).then_some((lead, series))
}

/// The lead as text.
fn factor(lines: &LineChart, many: &[&Series], who: &[usize], x: f64) -> String {
    let Some((lead, series)) = lead(lines, many, who, x) else { return String::new() };
    let name = if series.subject == ReportSubject::new(Level::Single, 1) {
        "the single drive".into()
    } else {
        series.subject.to_string()
    };
    match lines.y.better {
        Better::Lower => format!("; {name} needs {}", times(lead)),
        _ => format!(", {} {name}", times(lead)),
    }
}

fn of_bars(bars: &Bars) -> String {
    let (order, _) = sorted(bars);
    let known: Vec<_> = order.into_iter().filter(|bar| bar.value.y.is_finite()).collect();
    let (unit, name) = (&bars.value.unit, &bars.value.name);
    let (first, last) = match known.as_slice() {
        [] => return String::new(),
        [one] if *unit == Unit::None => return format!("{}: {name} of {}.", one.subject, value(unit, one.value.y)),
        [one] => return format!("{}: {}.", one.subject, value(unit, one.value.y)),
        [first, .., last] => (first, last),
    };
    if bars.value.better == Better::Neither {
        return String::new();
    }
    let top = first.value.y;
    let is_level = |bar: &&&Bar| (bar.value.y - top).abs() <= TIE * top.abs();
    if is_level(&last) {
        let (from, to) = (value(unit, top), value(unit, last.value.y));
        let words = if from == to { format!("with {from}") } else { format!("from {from} to {to}") };
        return format!("All are level, {words}.");
    }
    let level = known.iter().take_while(is_level);
    let names: Vec<String> = level.map(|bar| bar.subject.to_string()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!(
        "{} {verb} best with {}; {} is last with {}.",
        list(&names),
        value(unit, top),
        last.subject,
        value(unit, last.value.y)
    )
}
