//! Line charts: lines with their names at one end, spread as bands, thin guides for ideals and limits.
//!
//! The names stand at the end where the lines are farther apart. Whatever the data are, nothing is drawn outside the
//! canvas, and no name covers another.

use super::data::{Better, ChartAxis, Guide, GuideKind, LineChart, Mark, Point, Scale, Series, Unit};
use super::format::{bytes_tick, drawable, tick, value};
use super::labels::{apart, cut, cut_to, width, LETTERS, LINE_HEIGHT};
use super::markup::{px, Markup};
use super::scale::{range_x, range_y, ScaleMapping};
use super::split_charts::SplitPart;
use super::style::{mark, StyleKey};
use super::LINES_MAX;

/// Width of a chart in pixels; a page has room for a table next to it.
pub const CANVAS_WIDTH: f64 = 600.0;
const CANVAS_HEIGHT: f64 = 320.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
/// Space between the plot and the names at the ends of lines, for the strokes that connect them.
const LEADER: f64 = 20.0;
/// Minimum space between two numbers of an axis.
const TICK_GAP: f64 = 5.0;
/// Maximum number of guides in one chart.
pub const GUIDES_MAX: usize = 4;
/// Maximum number of letters in the name of a guide.
const GUIDE_LETTERS_MAX: usize = 30;
/// A guide extends the range of y to at most this multiple of the data. A higher guide leaves the chart at the top.
const GUIDE_STRETCH: f64 = 1.5;
/// A series with more points has no marks.
const MARKS_MAX: usize = 40;
/// If a series has more points than this, only the extremes of each of this number of columns are drawn.
const COLUMNS: u32 = 400;

/// The ranges that charts for comparison share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    x: (f64, f64),
    y: (f64, f64),
}

/// The ranges that contain all of these lines.
#[must_use]
pub fn ranges(all: &[&LineChart]) -> Option<Ranges> {
    let first = all.first()?;
    let points = || all.iter().flat_map(|lines| &lines.series).flat_map(|series| shown(series, first));
    let x = range_x(&first.x, points().map(|point| point.x));
    let mut ys: Vec<f64> = points().flat_map(|point| [point.y, spread(point).0, spread(point).1]).collect();
    let top = ys.iter().copied().filter(|&y| drawable(y, first.y.scale)).fold(f64::NEG_INFINITY, f64::max);
    for guide in all.iter().flat_map(|lines| &lines.guides) {
        let high = guide.corners.iter().map(|corner| corner.1).fold(f64::NEG_INFINITY, f64::max);
        if high <= top * GUIDE_STRETCH && high > 0.0 {
            ys.push(high);
        }
    }
    Some(Ranges { x, y: range_y(&first.y, ys.into_iter()) })
}

/// Points that can be drawn, in their order, which is that of rising x.
fn shown<'a>(series: &'a Series, lines: &LineChart) -> Vec<&'a Point> {
    let (x, y) = (lines.x.scale, lines.y.scale);
    series.points.iter().filter(|point| drawable(point.x, x) && drawable(point.y, y)).collect()
}

/// Lowest and highest run. If these are not numbers, the median.
#[must_use]
pub fn spread(point: &Point) -> (f64, f64) {
    let low = if point.low.is_finite() { point.low.min(point.y) } else { point.y };
    let high = if point.high.is_finite() { point.high.max(point.y) } else { point.y };
    (low, high)
}

/// The name of an axis in its chart.
#[must_use]
pub fn axis_name(axis: &ChartAxis) -> String {
    let unit = match &axis.unit {
        Unit::None => String::new(),
        Unit::Bytes => ", bytes".into(),
        Unit::Percent => ", %".into(),
        Unit::Named(name) => format!(", {name}"),
    };
    let log = if matches!(axis.scale, Scale::Log2 | Scale::Log10) { " (log scale)" } else { "" };
    let better = match axis.better {
        Better::Higher => ": higher is better",
        Better::Lower => ": lower is better",
        Better::Neither => "",
    };
    format!("{}{unit}{log}{better}", axis.name)
}

/// The names stand at the left if they are closer to their lines there by this factor.
const LEFT_GAIN: f64 = 2.0;
/// Names that are farther from their lines than this on average, in pixels, may stand at the left.
const FAR: f64 = 4.0;

/// The end of the lines at which their names stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameSide {
    Left,
    Right,
}

impl NameSide {
    /// One of several points in the order of x: the one whose name stands here.
    fn of<T>(self, points: &[T]) -> Option<&T> {
        match self {
            Self::Left => points.first(),
            Self::Right => points.last(),
        }
    }

    /// The side where names are closer to their lines. On the other side stand the numbers of the y axis.
    fn choose(lines: &LineChart, y: &ScaleMapping) -> Self {
        let moved = |side: Self| {
            let ends = lines.series.iter().filter_map(|series| Some(y.place(side.of(&shown(series, lines))?.y)));
            let ends: Vec<f64> = ends.collect();
            let places = name_places(&ends);
            ends.iter().zip(places).map(|(end, place)| (end - place).abs()).sum::<f64>() / ends.len().max(1) as f64
        };
        let (left, right) = (moved(Self::Left), moved(Self::Right));
        if right > FAR && left * LEFT_GAIN < right {
            Self::Left
        } else {
            Self::Right
        }
    }
}

/// The heights of names near those of their lines. The numbers of the x axis are below the plot.
fn name_places(wanted: &[f64]) -> Vec<f64> {
    apart(wanted, TOP - LINE_HEIGHT / 2.0, Frame::LOW)
}

/// A name, and the end of its line.
struct Tag {
    text: String,
    class: String,
    end: (f64, f64),
    /// Is there a stroke from the end to the name? If a line leaves the chart, a stroke would look like a horizontal
    /// part of it.
    led: bool,
}

/// The positions of all parts of a chart.
struct Frame {
    left: f64,
    right: f64,
    names: NameSide,
    x: ScaleMapping,
    y: ScaleMapping,
}

impl Frame {
    const LOW: f64 = CANVAS_HEIGHT - BOTTOM;

    fn new(lines: &LineChart, ranges: &Ranges) -> Self {
        let y = ScaleMapping::new(lines.y.scale, ranges.y, (Self::LOW, TOP));
        let widest =
            |texts: &mut dyn Iterator<Item = String>| texts.map(|text| width(&text, LETTERS)).fold(0.0_f64, f64::max);
        let ticks = widest(&mut y.ticks(&[]).into_iter().map(|at| axis_tick(&lines.y, at)));
        let side = NameSide::choose(lines, &y);
        let names = lines.series.iter().map(|series| cut(&series.subject.to_string()));
        let guides = guides(lines).into_iter().take(GUIDES_MAX).map(|guide| label(guide, ranges, side));
        // Names are bold, and bold letters are wider.
        let names = (widest(&mut names.chain(guides)) * 1.08 + LEADER + 4.0).clamp(40.0, 330.0);
        // On a narrow screen the ticks have letters of 14 pixels in place of 12.
        let ticks = (ticks * 14.0 / 12.0 + 7.0).clamp(30.0, 160.0);
        let (left, right) = match side {
            NameSide::Left => (names, CANVAS_WIDTH - ticks),
            NameSide::Right => (ticks, CANVAS_WIDTH - names),
        };
        Self { left, right, names: side, x: ScaleMapping::new(lines.x.scale, ranges.x, (left, right)), y }
    }

    fn at(&self, point: &Point) -> (f64, f64) {
        (self.x.place(point.x), self.y.place(point.y))
    }
}

/// Draws at most [`LINES_MAX`] lines. Returns sentences about lines that could not be drawn.
pub fn draw(m: &mut Markup, part: &SplitPart, ranges: &Ranges, key: &StyleKey, title: &str, id: &str) -> Vec<String> {
    let lines = &part.lines;
    assert!(lines.series.len() <= LINES_MAX, "a chart with {} lines; split it", lines.series.len());
    let frame = Frame::new(lines, ranges);
    let mut notes = Vec::new();
    let mut tags = Vec::new();
    let view = format!("0 0 {} {}", px(CANVAS_WIDTH), px(CANVAS_HEIGHT));
    let (heading, about) = (format!("{id}-t"), format!("{id}-d"));
    let labelled = format!("{heading} {about}");
    let attributes = [("class", "chart"), ("viewBox", &*view), ("role", "img"), ("aria-labelledby", &*labelled)];
    m.inside("svg", &attributes, |m| {
        m.text("title", &[("id", &heading)], title);
        m.text("desc", &[("id", &about)], &describe(lines));
        grid(m, lines, &frame);
        for (number, guide) in guides(lines).into_iter().enumerate() {
            if number >= GUIDES_MAX {
                notes.push(format!("Not drawn for want of room: {}.", guide.label));
            } else if !draw_guide(m, guide, (&frame, ranges), lines, &mut tags) {
                notes.push(format!("{} lies outside of the chart.", guide.label));
            }
        }
        for series in &lines.series {
            draw_series(m, series, part, &frame, key, &mut tags, &mut notes);
        }
        draw_tags(m, &tags, &frame);
    });
    notes
}

fn describe(lines: &LineChart) -> String {
    let names: Vec<String> = lines.series.iter().map(|series| series.subject.to_string()).collect();
    format!("{} by {}. Lines: {}. The numbers are in the table.", lines.y.name, lines.x.name, names.join("; "))
}

/// Draws the grid, the ticks and the names of the axes.
fn grid(m: &mut Markup, lines: &LineChart, frame: &Frame) {
    for at in frame.y.ticks(&[]) {
        let y = frame.y.place(at);
        m.empty("path", &[("class", "grid"), ("d", &format!("M{} {}H{}", px(frame.left), px(y), px(frame.right)))]);
        let (x, anchor) = match frame.names {
            NameSide::Left => (frame.right + 6.0, "start"),
            NameSide::Right => (frame.left - 6.0, "end"),
        };
        let (x, y) = (px(x), px(y + 4.0));
        m.text("text", &[("class", "quiet"), ("x", &x), ("y", &y), ("text-anchor", anchor)], &axis_tick(&lines.y, at));
    }
    let zero = frame.y.place(0.0);
    let base = if lines.y.scale == Scale::Linear { zero } else { Frame::LOW };
    m.empty("path", &[("class", "axis"), ("d", &format!("M{} {}H{}", px(frame.left), px(base), px(frame.right)))]);
    let mut values: Vec<f64> =
        lines.series.iter().flat_map(|series| shown(series, lines)).map(|point| point.x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let ticks: Vec<(f64, String)> =
        frame.x.ticks(&values).into_iter().map(|at| (frame.x.place(at), axis_tick(&lines.x, at))).collect();
    let stride = stride(&ticks);
    for (number, (x, text)) in ticks.iter().enumerate() {
        m.empty("path", &[("class", "axis"), ("d", &format!("M{} {}v4", px(*x), px(Frame::LOW)))]);
        let half = width(text, LETTERS) / 2.0;
        if number % stride == 0 && x - half >= 0.0 && x + half <= CANVAS_WIDTH {
            let y = px(Frame::LOW + 18.0);
            m.text("text", &[("class", "quiet"), ("x", &px(*x)), ("y", &y), ("text-anchor", "middle")], text);
        }
    }
    let middle = px(f64::midpoint(frame.left, frame.right));
    let bottom = px(CANVAS_HEIGHT - 6.0);
    let name = fitting(&axis_name(&lines.x), frame.right - frame.left);
    m.text("text", &[("class", "quiet"), ("x", &middle), ("y", &bottom), ("text-anchor", "middle")], &name);
    // The reader's font may be wider than the one of the estimate.
    let name = fitting(&axis_name(&lines.y), CANVAS_WIDTH * 0.95 - 8.0);
    m.text("text", &[("class", "quiet"), ("x", "4"), ("y", "14")], &name);
}

/// A number at an axis: bytes are shorter than in other places.
fn axis_tick(axis: &ChartAxis, value: f64) -> String {
    match axis.unit {
        Unit::Bytes => bytes_tick(value),
        _ => tick(axis, value),
    }
}

/// The smallest stride with which no two numbers of an axis touch.
fn stride(ticks: &[(f64, String)]) -> usize {
    let free = |stride: &usize| {
        let kept: Vec<(f64, f64)> = ticks
            .iter()
            .step_by(*stride)
            .map(|(x, text)| (x - width(text, LETTERS) / 2.0, x + width(text, LETTERS) / 2.0))
            .collect();
        kept.windows(2).all(|pair| pair[0].1 + TICK_GAP <= pair[1].0)
    };
    (1..=ticks.len().max(1)).find(free).unwrap_or(1)
}

/// Text, cut to a width.
pub fn fitting(text: &str, room: f64) -> String {
    if width(text, LETTERS) <= room {
        return text.to_owned();
    }
    let mut head = String::new();
    for character in text.chars() {
        head.push(character);
        if width(&format!("{head}..."), LETTERS) > room {
            head.pop();
            break;
        }
    }
    format!("{head}...")
}

/// The guides of a chart. Arrays with the same ideal share one guide.
fn guides(lines: &LineChart) -> Vec<&Guide> {
    let mut kept: Vec<&Guide> = Vec::new();
    for guide in &lines.guides {
        if !kept.iter().any(|known| known.label == guide.label && known.corners == guide.corners) {
            kept.push(guide);
        }
    }
    kept
}

/// Does a guide leave the chart at the top before the end that has its name?
fn leaves(guide: &Guide, ranges: &Ranges, side: NameSide) -> bool {
    guide.corners.len() > 1 && side.of(&guide.corners).is_some_and(|end| end.1 > ranges.y.1)
}

/// The name of a guide in the chart.
fn label(guide: &Guide, ranges: &Ranges, side: NameSide) -> String {
    let above = if leaves(guide, ranges, side) { ", above" } else { "" };
    cut_to(&format!("{}{above}", guide.label), GUIDE_LETTERS_MAX)
}

/// Draws a guide. Returns false if it is completely outside the chart.
fn draw_guide(
    m: &mut Markup,
    guide: &Guide,
    (frame, ranges): (&Frame, &Ranges),
    lines: &LineChart,
    tags: &mut Vec<Tag>,
) -> bool {
    let finite = |&&(x, y): &&(f64, f64)| drawable(x, lines.x.scale) && drawable(y, lines.y.scale);
    let mut corners: Vec<(f64, f64)> =
        guide.corners.iter().filter(finite).map(|&(x, y)| (frame.x.open(x), frame.y.open(y))).collect();
    if let ([_], [(_, y)]) = (guide.corners.as_slice(), guide.corners.as_slice()) {
        if drawable(*y, lines.y.scale) {
            corners = vec![(frame.left, frame.y.open(*y)), (frame.right, frame.y.open(*y))];
        }
    }
    let pieces: Vec<_> = corners.windows(2).filter_map(|pair| clip(pair[0], pair[1], frame)).collect();
    let Some(&(start, end)) = frame.names.of(&pieces) else { return false };
    let end = if frame.names == NameSide::Left { start } else { end };
    let path: String =
        pieces.iter().map(|(a, b)| format!("M{} {}L{} {}", px(a.0), px(a.1), px(b.0), px(b.1))).collect();
    let class = if guide.kind == GuideKind::Ideal { "ideal" } else { "limit" };
    m.empty("path", &[("class", class), ("d", &path)]);
    let (text, led) = (label(guide, ranges, frame.names), !leaves(guide, ranges, frame.names));
    tags.push(Tag { text, class: "quiet".into(), end, led });
    true
}

type Place = (f64, f64);

/// The part of a stroke inside the plot.
fn clip(a: Place, b: Place, frame: &Frame) -> Option<(Place, Place)> {
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let edges = [(-dx, a.0 - frame.left), (dx, frame.right - a.0), (-dy, a.1 - TOP), (dy, Frame::LOW - a.1)];
    for (step, room) in edges {
        if step == 0.0 {
            if room < -1e-9 {
                return None;
            }
        } else if step < 0.0 {
            from = from.max(room / step);
        } else {
            to = to.min(room / step);
        }
    }
    let at = |share: f64| (a.0 + dx * share, a.1 + dy * share);
    (from < to).then(|| (at(from), at(to)))
}

fn draw_series(
    m: &mut Markup,
    series: &Series,
    part: &SplitPart,
    frame: &Frame,
    key: &StyleKey,
    tags: &mut Vec<Tag>,
    notes: &mut Vec<String>,
) {
    let (name, lines) = (series.subject.to_string(), &part.lines);
    let all = shown(series, lines);
    let lost = series.points.len() - all.len();
    if lost > 0 {
        notes.push(format!("{name}: {lost} of {} results cannot be drawn on this scale.", series.points.len()));
    }
    let Some(end) = frame.names.of(&all) else {
        if lost == 0 {
            notes.push(format!("{name} has no results here."));
        }
        return;
    };
    let class = format!("c-{}", series.subject.level.word());
    tags.push(Tag { text: cut(&name), class: format!("tag {class}"), end: frame.at(end), led: true });
    let points = thinned(&all, frame);
    m.inside("g", &[("class", &class)], |m| {
        m.text("title", &[], &name);
        if series.mark == Mark::Line {
            for run in runs(&points, series) {
                draw_line(m, run, frame, key.dash(&series.subject, part.cache));
            }
        } else {
            points.iter().for_each(|point| whisker(m, point, frame));
        }
        // If measured points are drawn over predicted lines, only the points have marks.
        let overlaid = lines.series.iter().any(|one| one.mark == Mark::Points);
        let marked = series.mark == Mark::Points || (points.len() <= MARKS_MAX && !overlaid);
        for point in points.iter().filter(|point| marked || point.unsteady) {
            m.inside("g", &[], |m| {
                m.text("title", &[], &title_of(&name, point, lines));
                mark(m, series.subject.members, frame.at(point), point.unsteady);
            });
        }
    });
}

/// One result as text, for a tooltip.
fn title_of(name: &str, point: &Point, lines: &LineChart) -> String {
    let (low, high) = spread(point);
    let mut words = format!("{name}, {}: {}", super::format::place(&lines.x, point.x), value(&lines.y.unit, point.y));
    if low < high {
        let runs = if point.runs > 1 { format!(", {} runs", point.runs) } else { String::new() };
        words.push_str(&format!(" ({} to {}{runs})", value(&Unit::None, low), value(&Unit::None, high)));
    }
    if point.unsteady {
        words.push_str(", not steady");
    }
    words
}

/// Sequences of points without a missing result between them.
fn runs<'a, 'b>(points: &'b [&'a Point], series: &Series) -> Vec<&'b [&'a Point]> {
    points
        .chunk_by(|a, b| !series.absent.iter().any(|absent| a.x < absent.x && absent.x < b.x))
        .filter(|run| !run.is_empty())
        .collect()
}

/// At most two points in each column of the chart: its lowest and its highest, in their order.
fn thinned<'a>(points: &[&'a Point], frame: &Frame) -> Vec<&'a Point> {
    if points.len() <= COLUMNS as usize {
        return points.to_vec();
    }
    let column = |point: &Point| {
        ((frame.x.place(point.x) - frame.left) / (frame.right - frame.left) * f64::from(COLUMNS)).floor()
    };
    let mut kept = Vec::new();
    for group in points.chunk_by(|a, b| column(a) == column(b)) {
        let low = (0..group.len()).min_by(|&a, &b| group[a].y.total_cmp(&group[b].y)).unwrap_or(0);
        let high = (0..group.len()).max_by(|&a, &b| group[a].y.total_cmp(&group[b].y)).unwrap_or(0);
        kept.push(group[low.min(high)]);
        if low != high {
            kept.push(group[low.max(high)]);
        }
    }
    // The first and the last point of the line are kept.
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        kept[0] = first;
        kept.push(last);
    }
    kept
}

fn draw_line(m: &mut Markup, run: &[&Point], frame: &Frame, dash: &str) {
    let join = |places: Vec<Place>| {
        let places: Vec<String> = places.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
        format!("M{}", places.join("L"))
    };
    if run.iter().any(|point| spread(point).0 < spread(point).1) {
        let upper = run.iter().map(|point| (frame.x.place(point.x), frame.y.place(spread(point).1)));
        let lower = run.iter().rev().map(|point| (frame.x.place(point.x), frame.y.place(spread(point).0)));
        let path = format!("{}Z", join(upper.chain(lower).collect()));
        m.empty("path", &[("class", "band"), ("d", &path)]);
    }
    let path = join(run.iter().map(|point| frame.at(point)).collect());
    if dash.is_empty() {
        m.empty("path", &[("class", "line"), ("d", &path)]);
    } else {
        m.empty("path", &[("class", "line"), ("d", &path), ("stroke-dasharray", dash)]);
    }
}

fn whisker(m: &mut Markup, point: &Point, frame: &Frame) {
    let (low, high) = spread(point);
    if low >= high {
        return;
    }
    let x = frame.x.place(point.x);
    let (from, to) = (px(frame.y.place(low)), px(frame.y.place(high)));
    let (left, middle) = (px((x - 3.0).max(0.0)), px(x));
    let path = format!("M{middle} {from}V{to}M{left} {from}h6M{left} {to}h6");
    m.empty("path", &[("class", "whisker"), ("d", &path)]);
}

/// Draws the names at the ends of lines, without overlap, each with a stroke to its line.
fn draw_tags(m: &mut Markup, tags: &[Tag], frame: &Frame) {
    let wanted: Vec<f64> = tags.iter().map(|tag| tag.end.1).collect();
    let (edge, outwards, anchor) = match frame.names {
        NameSide::Left => (frame.left, -1.0, "end"),
        NameSide::Right => (frame.right, 1.0, "start"),
    };
    for (tag, y) in tags.iter().zip(name_places(&wanted)) {
        if tag.led {
            let start = tag.end.0 + 5.0 * outwards;
            let start = px(if outwards > 0.0 { start.min(edge) } else { start.max(edge) });
            let (bend, stop) = (px(edge + 5.0 * outwards), px(edge + (LEADER - 4.0) * outwards));
            let path = format!("M{start} {}H{bend}L{stop} {}", px(tag.end.1), px(y));
            m.empty("path", &[("class", "leader"), ("d", &path)]);
        }
        let (x, y) = (px(edge + LEADER * outwards), px(y + 4.0));
        m.text("text", &[("class", &tag.class), ("x", &x), ("y", &y), ("text-anchor", anchor)], &tag.text);
    }
}
