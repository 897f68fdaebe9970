//! Compares reports with stored files byte for byte, and checks rules for any data: well-formed, nothing outside its
//! canvas, no overlapping names, at most twelve lines. `OPENRAID_BLESS=1` writes the stored files again.

mod support;

use openraid_methods::report::data::{
    AbsentPoint, Bar, Bars, Better, Chart, ChartAxis, DecisionRate, Effect, Evidence, Fact, Guide, GuideKind, Heat,
    Level, LineChart, MachinePart, Mark, Panel, PartLoad, Point, ReportCell, ReportRow, ReportSection, ReportSubject,
    ReportTable, Review, Scale, Series, Unit,
};
use openraid_methods::report::{findings, render, terminal_text, LINES_MAX};
use std::path::PathBuf;
use support::xml::{read, Element};

/// Number of random reports for which the rules are checked.
const REPORTS: u64 = 100;

fn kept(name: &str, now: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let line = before.lines().zip(now.lines()).position(|(a, b)| a != b);
    assert!(before == now, "{name} differs from line {:?} on; OPENRAID_BLESS=1 keeps the new one", line.map(|n| n + 1));
}

#[test]
fn the_page_is_the_kept_one() {
    let page = render(&support::sample::review());
    held(&page);
    kept("sample.html", &page);
}

#[test]
fn the_text_is_the_kept_one() {
    kept("sample.txt", &terminal_text::render(&support::sample::review(), 110));
}

#[test]
fn the_page_loads_nothing_and_runs_nothing() {
    let page = render(&support::sample::review());
    for element in read(&page) {
        assert!(!["script", "link", "img", "iframe", "object", "use", "image"].contains(&element.tag.as_str()));
        for (name, value) in &element.attributes {
            assert!(!name.starts_with("on") && name != "src" && name != "style", "{name}");
            assert!(name != "href" || value.starts_with('#') || value == "results.json", "{value}");
        }
    }
    assert!(!page.contains("@import") && !page.contains("url("));
}

#[test]
fn an_empty_report_is_a_page() {
    held(&render(&Review::default()));
    assert_eq!(terminal_text::render(&Review::default(), 80), "\n\n");
}

#[test]
fn made_up_reports_hold_what_every_report_must() {
    for seed in 0..REPORTS {
        let mut review = Chance(seed * 2 + 1).review();
        findings::explain(&mut review);
        let page = render(&review);
        held(&page);
        assert_eq!(page, render(&review), "seed {seed}: two pages of one report differ");
        for line in terminal_text::render(&review, 90).lines() {
            assert!(line.chars().count() <= 90 && !line.chars().any(char::is_control), "seed {seed}: {line:?}");
        }
    }
}

#[test]
fn a_guide_outside_of_the_chart_has_a_note_and_no_stroke() {
    let shown = |top: f64| {
        let x = ChartAxis::new("outstanding", Unit::None, Scale::Log2);
        let y = ChartAxis::new("speed", Unit::named("MB/s"), Scale::Linear).better(Better::Higher);
        let points = vec![Point::exact(1.0, 50.0), Point::exact(2.0, 60.0)];
        let series = vec![Series::line(ReportSubject::new(Level::Single, 1), points)];
        let corners = vec![(1.0, 50.0), (2.0, top)];
        let guides =
            vec![Guide { label: "ideal: 4 single drives".into(), kind: GuideKind::Ideal, subject: None, corners }];
        let panel = Panel::new("How fast?", Chart::Lines(LineChart { x, y, series, guides }));
        let section = ReportSection { panels: vec![panel], ..ReportSection::default() };
        let page = render(&Review { sections: vec![section], ..Review::default() });
        held(&page);
        (page.matches("class=\"leader\"").count(), page.contains(">ideal: 4 single drives<"), page.contains(", above<"))
    };
    assert_eq!(shown(70.0), (2, true, false));
    assert_eq!(shown(500.0), (1, false, true));
}

/// Checks the rules for any page.
fn held(page: &str) {
    assert!(page.is_ascii() && page.ends_with('\n'));
    for wrong in ["NaN", ">inf", "=\"inf", " inf ", "-inf"] {
        assert!(!page.contains(wrong), "{wrong} in the page");
    }
    let elements = read(page);
    for (index, chart) in elements.iter().enumerate().filter(|(_, element)| element.has_class("chart")) {
        let inside: Vec<&Element> = elements.iter().filter(|element| element.around.contains(&index)).collect();
        canvas(chart, &inside);
        let names: Vec<&str> = inside.iter().filter(|e| e.has_class("tag")).map(|e| e.text.as_str()).collect();
        let bars = chart.has_class("bars");
        assert!(bars || names.len() <= LINES_MAX, "{} lines: {names:?}", names.len());
        if bars {
            // A window of 500 pixels has this width between its margins of 1.25 rem, and the chart does not need more.
            let width: f64 = chart.get("viewBox").unwrap().split(' ').nth(2).unwrap().parse().unwrap();
            assert!(width <= 500.0 - 2.0 * 1.25 * 16.0, "bars of {width} pixels");
            assert!(page.contains("svg.bars{min-width:0;"), "bars that do not shrink");
        } else {
            assert!(page.contains("@media (max-width:640px){svg.chart{min-width:0}"), "lines that do not shrink");
        }
    }
}

/// Checks that nothing is drawn outside the canvas, and that no text covers another.
fn canvas(chart: &Element, inside: &[&Element]) {
    let Some(view) = chart.get("viewBox") else { panic!("a chart without viewBox") };
    let view: Vec<f64> = view.split(' ').map(|n| n.parse().unwrap()).collect();
    let (width, height) = (view[2], view[3]);
    let within = |x: f64, y: f64, what: &str| {
        assert!((-0.6..=width + 0.6).contains(&x) && (-0.6..=height + 0.6).contains(&y), "{what} at {x} {y}");
    };
    let mut boxes: Vec<(f64, f64, f64, f64, &str)> = Vec::new();
    for element in inside {
        match element.tag.as_str() {
            "text" => {
                let (x, y) = (element.number("x"), element.number("y"));
                let wide = text_width(&element.text);
                let left = match element.get("text-anchor") {
                    Some("end") => x - wide,
                    Some("middle") => x - wide / 2.0,
                    _ => x,
                };
                within(left, y - 10.0, &element.text);
                within(left + wide, y + 3.0, &element.text);
                boxes.push((left, left + wide, y - 9.0, y + 2.0, &element.text));
            }
            "path" => path_within(element.get("d").unwrap(), &within),
            "circle" => within(element.number("cx"), element.number("cy"), "a circle"),
            "rect" => {
                let (x, y) = (element.number("x"), element.number("y"));
                within(x, y, "a bar");
                within(x + element.number("width"), y + element.number("height"), "a bar");
            }
            _ => (),
        }
    }
    for (index, a) in boxes.iter().enumerate() {
        for b in &boxes[index + 1..] {
            let apart = a.1 <= b.0 || b.1 <= a.0 || a.3 <= b.2 || b.3 <= a.2;
            assert!(apart, "'{}' covers '{}': {a:?} {b:?}", a.4, b.4);
        }
    }
}

/// The average width in a sans-serif font of twelve pixels, entities counted as one letter. The renderer's own estimate
/// is wider: it holds for wide fonts.
fn text_width(escaped: &str) -> f64 {
    let mut letters = 0.0;
    let mut rest = escaped;
    while let Some(character) = rest.chars().next() {
        let length = if character == '&' { rest.find(';').map_or(1, |end| end + 1) } else { 1 };
        rest = &rest[length..];
        letters += 1.0;
    }
    letters * 6.3
}

/// Walks a path of absolute M, L, H, V, relative h, v and Z.
fn path_within(path: &str, within: &dyn Fn(f64, f64, &str)) {
    let (mut x, mut y) = (0.0, 0.0);
    let mut commands: Vec<(char, String)> = Vec::new();
    for character in path.chars() {
        if character.is_ascii_alphabetic() && character != 'e' {
            commands.push((character, String::new()));
        } else {
            commands.last_mut().unwrap().1.push(character);
        }
    }
    for (command, arguments) in commands {
        let numbers: Vec<f64> = arguments.split_whitespace().map(|n| n.parse().unwrap()).collect();
        match (command, numbers.as_slice()) {
            ('M' | 'L', &[to_x, to_y]) => (x, y) = (to_x, to_y),
            ('H', &[to]) => x = to,
            ('V', &[to]) => y = to,
            ('h', &[by]) => x += by,
            ('v', &[by]) => y += by,
            ('Z', []) => (),
            other => panic!("unknown step {other:?} in {path}"),
        }
        within(x, y, path);
    }
}

/// A source of random data, some of them invalid.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn share(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // chance needs no more
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        share
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let index = usize::try_from(self.below(u64::try_from(all.len()).unwrap())).unwrap();
        all[index].clone()
    }

    fn value(&mut self) -> f64 {
        if self.one_in(60) {
            let hostile =
                [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -5.0, 1e300, -1e300, 1e-300, 1e15, f64::MAX];
            return self.pick(&hostile);
        }
        10f64.powf(self.share() * 5.0 - 1.0)
    }

    fn words(&mut self) -> String {
        let words = [
            "",
            "plain words",
            "<script>alert(1)</script>",
            "a & b \" ' >",
            "\u{1b}[31mred\u{0}\u{7f}\u{202e}",
            "\u{5b57}\u{1f4be} mixed",
            "line\nbreak\ttab",
            "a very long name that goes on and on and on and on and on until it is too long for every reader",
            "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
        ];
        self.pick(&words).to_owned()
    }

    fn axis(&mut self, scales: &[Scale]) -> ChartAxis {
        let unit = match self.below(4) {
            0 => Unit::None,
            1 => Unit::Bytes,
            2 => Unit::Percent,
            _ => Unit::Named(self.words()),
        };
        let better = self.pick(&[Better::Higher, Better::Lower, Better::Neither]);
        ChartAxis::new(self.words(), unit, self.pick(scales)).better(better)
    }

    fn subject(&mut self) -> ReportSubject {
        let level = self.pick(&Level::ALL);
        let members = self.pick(&[1, 2, 3, 4, 5, 6, 8, 16, 384]);
        let variant = if self.one_in(4) { self.words() } else { String::new() };
        ReportSubject::new(level, members).variant(variant)
    }

    fn point(&mut self, x: f64) -> Point {
        let y = self.value();
        let point = if self.one_in(2) {
            Point::exact(x, y)
        } else {
            Point::spread(x, y, y * (1.0 - self.share() / 5.0), self.value(), 3)
        };
        let point = Point { unsteady: self.one_in(8), ..point };
        if self.one_in(2) {
            return point;
        }
        let bus = MachinePart::Bus(self.words());
        let part = self.pick(&[MachinePart::Drives, bus, MachinePart::Generator, MachinePart::Parity]);
        let loads = vec![
            PartLoad { part, busy: self.share() * 1.1 },
            PartLoad { part: MachinePart::HostCpu, busy: self.value() },
        ];
        let rates = vec![DecisionRate { what: self.words(), effect: Effect::Cost, per_request: self.value() }];
        point.with(Evidence { loads, rates, commands: None })
    }

    fn series(&mut self, x: &ChartAxis) -> Series {
        let count = if self.one_in(30) { 3000 } else { self.below(14) };
        let mut at = if x.scale == Scale::Nines { 0.0 } else { self.share() * 4.0 };
        let mut points = Vec::new();
        for _ in 0..count {
            at = match x.scale {
                Scale::Linear => at + self.share(),
                Scale::Log2 | Scale::Log10 => (at + 0.1) * self.pick(&[1.5, 2.0, 2.0, 10.0]),
                Scale::Nines => 100.0 - (100.0 - at) * 0.4,
            };
            let x = if self.one_in(80) { self.value() } else { at };
            points.push(self.point(x));
        }
        let absent =
            if self.one_in(3) { vec![AbsentPoint { x: self.value(), reason: self.words() }] } else { Vec::new() };
        let mark = if self.one_in(5) { Mark::Points } else { Mark::Line };
        Series { subject: self.subject(), mark, points, absent }
    }

    fn lines(&mut self) -> LineChart {
        let x = self.axis(&[Scale::Linear, Scale::Log2, Scale::Log10, Scale::Nines]);
        let y = self.axis(&[Scale::Linear, Scale::Linear, Scale::Log2, Scale::Log10]);
        let series = (0..self.below(14)).map(|_| self.series(&x)).collect();
        let guides = (0..self.below(5)).map(|_| {
            let corners = (0..self.below(4)).map(|_| (self.value(), self.value())).collect();
            let kind = self.pick(&[GuideKind::Ideal, GuideKind::Limit]);
            Guide { label: self.words(), kind, subject: Some(self.subject()), corners }
        });
        let guides = guides.collect();
        LineChart { x, y, series, guides }
    }

    fn chart(&mut self) -> Chart {
        match self.below(6) {
            0 => {
                let value = self.axis(&[Scale::Linear, Scale::Log10]);
                let bars =
                    (0..self.below(40)).map(|_| Bar { subject: self.subject(), value: self.point(0.0) }).collect();
                Chart::Bars(Bars { value, bars, formula: self.words() })
            }
            1 => {
                let columns = (0..self.below(5)).map(|_| self.words().into()).collect();
                let rows = (0..self.below(5)).map(|_| self.words()).collect();
                let shares = (0..self.below(6)).map(|_| (0..self.below(6)).map(|_| self.value()).collect()).collect();
                Chart::Heat(Heat { x: self.words(), y: self.words(), columns, rows, shares })
            }
            _ => Chart::Lines(self.lines()),
        }
    }

    fn table(&mut self) -> ReportTable {
        let rows = (0..self.below(6)).map(|_| {
            let cells = (0..self.below(6)).map(|_| match self.below(6) {
                0 => ReportCell::Number(self.value()),
                1 => ReportCell::Spread { value: self.value(), low: self.value(), high: self.value() },
                2 => ReportCell::Ratio(self.value()),
                3 => ReportCell::Change(self.value()),
                4 => ReportCell::Text(self.words()),
                _ => ReportCell::NotApplicable(self.words()),
            });
            let cells = cells.collect();
            ReportRow { head: self.words(), level: Some(self.pick(&Level::ALL)), cells }
        });
        let rows = rows.collect();
        let columns = (0..self.below(6)).map(|_| self.words().into()).collect();
        let notes = vec![self.words()];
        ReportTable { caption: self.words(), corner: self.words(), columns, rows, formula: self.words(), notes }
    }

    fn review(&mut self) -> Review {
        let sections = (0..1 + self.below(3)).map(|_| {
            let panels = (0..self.below(4)).map(|_| {
                let mut panel = Panel::new(self.words(), self.chart());
                panel.group = self.pick(&["", "a"]).to_owned();
                panel
            });
            let panels = panels.collect();
            let tables = (0..self.below(3)).map(|_| self.table()).collect();
            ReportSection { method: self.words(), question: self.words(), panels, tables, ..ReportSection::default() }
        });
        let sections = sections.collect();
        let files = vec![Fact::new(self.words(), self.words()), Fact::new("up", "../secret"), Fact::new("a", "a.json")];
        Review {
            title: self.words(),
            sections,
            files,
            bed: vec![Fact::new(self.words(), self.words())],
            ..Review::default()
        }
    }
}
