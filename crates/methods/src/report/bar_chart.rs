//! Bar charts: one bar for each subject, the best first, the spread as a whisker, the value at the end.
//!
//! On a linear scale a bar always begins at zero, because readers compare lengths. On a scale by powers of ten a length
//! has no meaning, so a mark at the value replaces the bar.

use std::cmp::Ordering;

use super::data::{Bar, Bars, Better, ChartAxis, ReportCache, Scale};
use super::format::{drawable, number, tick};
use super::labels::{cut, width, LETTERS};
use super::line_chart::{axis_name, fitting, spread};
use super::markup::{px, Markup};
use super::scale::{range_y, ScaleMapping};

/// Width in units: that of a window of 500 pixels without its margins. A chart of this width fits into such a window
/// without scaling its letters.
const BARS_WIDTH: f64 = 460.0;
/// Maximum number of bars in one chart; the table has all of them.
const BARS_MAX: usize = 30;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 26.0;
const PITCH: f64 = 26.0;
const THICKNESS: f64 = 17.0;

/// The bars from best to worst, and the rule as text. Bars that were not steady have no place in this order and come
/// after it, those without a number last.
#[must_use]
pub fn sorted(bars: &Bars) -> (Vec<&Bar>, String) {
    let mut order: Vec<&Bar> = bars.bars.iter().collect();
    let worst = |bar: &Bar| !bar.value.y.is_finite();
    let rule = match bars.value.better {
        Better::Higher => "highest first, which is best",
        Better::Lower => "lowest first, which is best",
        Better::Neither => "highest first",
    };
    order.sort_by(|a, b| {
        let rising = a.value.y.total_cmp(&b.value.y);
        let by_value = if bars.value.better == Better::Lower { rising } else { rising.reverse() };
        // What was not steady stays in the order of the report.
        let by_value = if a.value.unsteady && b.value.unsteady { Ordering::Equal } else { by_value };
        worst(a).cmp(&worst(b)).then(a.value.unsteady.cmp(&b.value.unsteady)).then(by_value)
    });
    let unsteady = bars.bars.iter().filter(|bar| bar.value.unsteady).count();
    let rule = match unsteady {
        0 => format!("Sorted by {}, {rule}.", bars.value.name),
        all if all == bars.bars.len() => "Not sorted: none of this was steady when it was measured.".into(),
        _ => format!("Sorted by {}, {rule}; after these what was not steady.", bars.value.name),
    };
    (order, rule)
}

/// Draws the bars. Returns sentences about the order and about bars that could not be drawn.
pub fn draw(m: &mut Markup, bars: &Bars, title: &str, id: &str) -> Vec<String> {
    let (order, rule) = sorted(bars);
    let mut notes = vec![rule];
    let powers = bars.value.scale == Scale::Log10;
    let axis = ChartAxis { scale: if powers { Scale::Log10 } else { Scale::Linear }, ..bars.value.clone() };
    let drawn: Vec<&Bar> =
        order.iter().copied().filter(|bar| drawable(bar.value.y, axis.scale)).take(BARS_MAX).collect();
    if drawn.len() < order.len() {
        notes.push(format!("{} of {} are drawn; the table has them all.", drawn.len(), order.len()));
    }
    let values = || drawn.iter().flat_map(|bar| [bar.value.y, spread(&bar.value).0, spread(&bar.value).1]);
    let range = range_y(&axis, values());
    let widest = |texts: Vec<String>| texts.iter().map(|text| width(text, LETTERS)).fold(0.0_f64, f64::max);
    let names = widest(drawn.iter().map(|bar| cut(&bar.subject.to_string())).collect()) * 1.08;
    let figures = widest(drawn.iter().map(|bar| number(bar.value.y)).collect());
    let (left, right) = (names + 12.0, BARS_WIDTH - figures - 14.0);
    let place = ScaleMapping::new(axis.scale, range, (left, right));
    let height = drawn.iter().fold(TOP, |sum, _| sum + PITCH) + BOTTOM;
    let view = format!("0 0 {} {}", px(BARS_WIDTH), px(height));
    let (heading, about) = (format!("{id}-t"), format!("{id}-d"));
    let labelled = format!("{heading} {about}");
    let attributes = [("class", "chart bars"), ("viewBox", &*view), ("role", "img"), ("aria-labelledby", &*labelled)];
    m.inside("svg", &attributes, |m| {
        m.text("title", &[("id", &heading)], title);
        m.text("desc", &[("id", &about)], &format!("Bars of {}. The numbers are in the table.", bars.value.name));
        m.text("text", &[("class", "quiet"), ("x", "4"), ("y", "14")], &fitting(&axis_name(&axis), BARS_WIDTH - 8.0));
        let low = height - BOTTOM;
        let mut covered = f64::NEG_INFINITY;
        for at in place.ticks(&[]) {
            let (x, text) = (place.place(at), tick(&axis, at));
            m.empty("path", &[("class", "grid"), ("d", &format!("M{} {}V{}", px(x), px(TOP), px(low)))]);
            let half = width(&text, LETTERS) / 2.0;
            if x - half < covered + 6.0 || x - half < 0.0 || x + half > BARS_WIDTH {
                continue;
            }
            covered = x + half;
            let (x, y) = (px(x), px(low + 16.0));
            m.text("text", &[("class", "quiet"), ("x", &x), ("y", &y), ("text-anchor", "middle")], &text);
        }
        let mut y = TOP;
        for bar in &drawn {
            draw_bar(m, bar, &place, &axis, (left, y));
            y += PITCH;
        }
    });
    notes
}

fn draw_bar(m: &mut Markup, bar: &Bar, place: &ScaleMapping, axis: &ChartAxis, (left, top): (f64, f64)) {
    let powers = axis.scale != Scale::Linear;
    let class = format!("c-{}", bar.subject.level.word());
    let middle = top + PITCH / 2.0;
    // A scale by powers of ten has no zero, so the label comes after the mark.
    let end = place.place(bar.value.y);
    let zero = if powers { end } else { place.place(0.0) };
    m.inside("g", &[("class", &class)], |m| {
        let steady = if bar.value.unsteady { ", not steady" } else { "" };
        let title = format!("{}: {}{steady}", bar.subject, super::format::value(&axis.unit, bar.value.y));
        m.text("title", &[], &title);
        let name = cut(&bar.subject.to_string());
        let (x, y) = (px(left - 8.0), px(middle + 4.0));
        m.text("text", &[("class", "tag"), ("x", &x), ("y", &y), ("text-anchor", "end")], &name);
        let (x, y) = (px(zero.min(end)), px(middle - THICKNESS / 2.0));
        let (wide, high) = (px((end - zero).abs().max(1.0)), px(THICKNESS));
        if powers {
            let class = if bar.value.unsteady { "hollow" } else { "dot" };
            m.empty("circle", &[("class", class), ("cx", &px(end)), ("cy", &px(middle)), ("r", "5")]);
        } else {
            let class = match bar.subject.variant.cache() {
                _ if bar.value.unsteady => "bar hollow",
                Some(ReportCache::Through) => "bar through",
                _ => "bar",
            };
            m.empty("rect", &[("class", class), ("x", &x), ("y", &y), ("width", &wide), ("height", &high)]);
        }
        let (low, high) = spread(&bar.value);
        if low < high {
            let (from, to, up) = (px(place.place(low)), px(place.place(high)), px(middle - 4.0));
            let path = format!("M{from} {}H{to}M{from} {up}v8M{to} {up}v8", px(middle));
            m.empty("path", &[("class", "reach"), ("d", &path)]);
        }
        let reach = end.max(place.place(high)).max(zero);
        m.text(
            "text",
            &[("x", &px(reach + if powers { 10.0 } else { 6.0 })), ("y", &px(middle + 4.0))],
            &number(bar.value.y),
        );
    });
}

#[cfg(test)]
mod tests {
    use super::super::data::{Level, Point, ReportSubject, Unit};
    use super::*;

    #[test]
    fn bars_that_were_not_steady_have_no_place_in_the_order() {
        let value = ChartAxis::new("rating", Unit::None, Scale::Linear).better(Better::Higher);
        let bar = |(members, y, unsteady): (u16, f64, bool)| Bar {
            subject: ReportSubject::new(Level::Raid0, members),
            value: Point { unsteady, ..Point::exact(0.0, y) },
        };
        let told = |all: &[(u16, f64, bool)]| {
            let bars = all.iter().copied().map(bar).collect();
            let bars = Bars { value: value.clone(), bars, formula: String::new() };
            let (order, rule) = sorted(&bars);
            (order.iter().map(|bar| bar.subject.members).collect::<Vec<_>>(), rule)
        };
        let mixed = [(2, 9.0, true), (3, 5.0, false), (4, 10.0, true), (5, 7.0, false)];
        let rule = "Sorted by rating, highest first, which is best; after these what was not steady.";
        assert_eq!(told(&mixed), (vec![5, 3, 2, 4], rule.into()));
        let rule = "Not sorted: none of this was steady when it was measured.";
        assert_eq!(told(&[(2, 1.0, true), (3, 5.0, true)]), (vec![2, 3], rule.into()));
    }
}
