//! Results that were not steady when they were measured. No sentence is made from them: it leaves them out, or says that
//! there is no answer.

use super::super::data::{Bars, Better, LineChart, Mark, Point};
use std::borrow::Cow;

/// The number of unsteady results, and the number of all results.
fn count<'a>(points: impl Iterator<Item = &'a Point>) -> (usize, usize) {
    points
        .filter(|point| point.y.is_finite())
        .fold((0, 0), |(unsteady, all), point| (unsteady + usize::from(point.unsteady), all + 1))
}

fn of_lines(lines: &LineChart) -> (usize, usize) {
    count(lines.series.iter().flat_map(|series| &series.points))
}

/// Were at least half of the results steady? Otherwise nothing is told about the lines.
pub fn are_telling(all: &LineChart) -> bool {
    let (unsteady, count) = of_lines(all);
    unsteady * 2 <= count || all.series.iter().any(|series| series.mark == Mark::Points)
}

/// Lines without unsteady points. All points are kept if none was steady. All are also kept if measured points are
/// drawn over predicted lines, because neither has a meaning without the other.
pub fn lines(all: &LineChart) -> Cow<'_, LineChart> {
    let (unsteady, points) = of_lines(all);
    let is_overlay = all.series.iter().any(|series| series.mark == Mark::Points);
    if unsteady == 0 || unsteady == points || is_overlay {
        return Cow::Borrowed(all);
    }
    let mut kept = all.clone();
    kept.series.iter_mut().for_each(|series| series.points.retain(|point| !point.unsteady));
    Cow::Owned(kept)
}

/// A sentence about lines. It tells all predicted lines and measured points.
pub fn told_of_lines(all: &LineChart, tell: impl Fn(&LineChart) -> String) -> String {
    let (unsteady, count) = of_lines(all);
    let is_overlay = all.series.iter().any(|series| series.mark == Mark::Points);
    let words = if is_overlay { tell(all) } else { String::new() };
    if words.is_empty() || unsteady == 0 {
        return without_unsteady((unsteady, count), || left(decided(all), &tell), || tell(all));
    }
    format!("{words} Not steady when they were measured: {unsteady} of {count} results.")
}

/// Lines without unsteady points, and without the positions at which an unsteady point is better than all steady ones:
/// the best line there is not known.
fn decided(all: &LineChart) -> Cow<'_, LineChart> {
    let mut kept = lines(all);
    let is_better = |a: f64, b: f64| match all.y.better {
        Better::Lower => a < b,
        Better::Higher => a > b,
        Better::Neither => false,
    };
    let points = || all.series.iter().flat_map(|series| &series.points).filter(|point| point.y.is_finite());
    let is_open = |unsteady: &&Point| {
        let mut steady = points().filter(|other| other.x == unsteady.x && !other.unsteady).peekable();
        steady.peek().is_some() && steady.all(|other| is_better(unsteady.y, other.y))
    };
    if let Cow::Owned(kept) = &mut kept {
        let open: Vec<f64> = points().filter(|point| point.unsteady).filter(is_open).map(|point| point.x).collect();
        kept.series.iter_mut().for_each(|series| series.points.retain(|point| !open.contains(&point.x)));
    }
    kept
}

/// A sentence about two charts of lines.
pub fn told_of_both(one: &LineChart, other: &LineChart, tell: impl Fn(&LineChart, &LineChart) -> String) -> String {
    let (a, b) = (of_lines(one), of_lines(other));
    without_unsteady((a.0 + b.0, a.1 + b.1), || tell(&lines(one), &lines(other)), || tell(one, other))
}

/// A sentence about the remaining lines; none if no point was left out.
fn left(kept: Cow<'_, LineChart>, tell: impl Fn(&LineChart) -> String) -> String {
    match kept {
        Cow::Borrowed(_) => String::new(),
        Cow::Owned(kept) => tell(&kept),
    }
}

/// A sentence about bars.
pub fn told_of_bars(all: &Bars, tell: impl Fn(&Bars) -> String) -> String {
    let without = || {
        let bars = all.bars.iter().filter(|bar| !bar.value.unsteady).cloned().collect();
        tell(&Bars { bars, ..all.clone() })
    };
    without_unsteady(count(all.bars.iter().map(|bar| &bar.value)), without, || tell(all))
}

/// A sentence about results, of which each is given with `true` if it was not steady.
pub fn told_of_some<T: Clone>(all: &[(bool, T)], tell: impl Fn(&[T]) -> String) -> String {
    let only = |wanted: fn(bool) -> bool| -> Vec<T> {
        all.iter().filter(|(unsteady, _)| wanted(*unsteady)).map(|(_, one)| one.clone()).collect()
    };
    let unsteady = only(|unsteady| unsteady).len();
    without_unsteady((unsteady, all.len()), || tell(&only(|unsteady| !unsteady)), || tell(&only(|_| true)))
}

/// A sentence that is made without the unsteady results, and says how many these are. If they are more than half, or if
/// the others decide nothing, it says that there is no answer.
fn without_unsteady(
    (unsteady, count): (usize, usize),
    without: impl FnOnce() -> String,
    with: impl FnOnce() -> String,
) -> String {
    if unsteady == 0 {
        return with();
    }
    let words = if unsteady * 2 <= count { without() } else { String::new() };
    if !words.is_empty() {
        let what = if unsteady == 1 { "1 result that was".into() } else { format!("{unsteady} results that were") };
        return format!("{words} Left out: {what} not steady.");
    }
    let is_told = !with().is_empty();
    match unsteady {
        _ if !is_told => String::new(),
        all if all == count => "No answer: none of this was steady when it was measured.".into(),
        some => format!("No answer: {some} of {count} results were not steady when they were measured."),
    }
}
