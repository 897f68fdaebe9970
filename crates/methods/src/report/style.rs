//! The style of a subject: its level determines the colour, its member count the mark, its write cache the line. All
//! three are the same in every chart of every report. If arrays of one report differ in something else, too, dashes show
//! that.
//!
//! The colours differ in lightness as well as in hue, so that readers with colour blindness can distinguish them. Their
//! contrast with the background, light and dark, is at least 4.5 to 1 (WCAG 2.2, 1.4.3).

use super::data::{Chart, Level, ReportCache, ReportSubject, Review};
use super::format::capital;
use super::markup::{px, Markup};

/// Dashes of the other differences, after the first one.
const OTHER_DASHES: [&str; 3] = ["3 3", "6 3 2 3 2 3", "1.5 3.5"];
/// Half of the width of a mark, pixels.
const MARK: f64 = 3.6;
/// Length of the sample of a line in the key, pixels.
const LINE_SAMPLE: f64 = 46.0;
/// Width of the sample of a mark in the key, pixels.
const MARK_SAMPLE: f64 = 14.0;

/// The form of a mark.
enum MarkForm {
    Circle,
    /// Corners, in half widths.
    Closed(&'static [(f64, f64)]),
    /// Strokes, in half widths. They have no inside.
    Open(&'static [[(f64, f64); 2]]),
}

/// The mark of each member count; another count has the mark of the next lower one.
const MARKS: [(u16, MarkForm); 12] = [
    (1, MarkForm::Circle),
    (2, MarkForm::Closed(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)])),
    (3, MarkForm::Closed(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)])),
    (4, MarkForm::Closed(&[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)])),
    (5, MarkForm::Closed(&[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)])),
    (6, MarkForm::Open(&[[(-1.0, -1.0), (1.0, 1.0)], [(-1.0, 1.0), (1.0, -1.0)]])),
    (7, MarkForm::Open(&[[(-1.3, 0.0), (1.3, 0.0)], [(0.0, -1.3), (0.0, 1.3)]])),
    (8, MarkForm::Open(&[[(0.0, -1.3), (0.0, 1.3)], [(-1.15, -0.65), (1.15, 0.65)], [(-1.15, 0.65), (1.15, -0.65)]])),
    (10, MarkForm::Closed(&[(-1.0, -1.1), (1.0, -1.1), (-1.0, 1.1), (1.0, 1.1)])),
    (12, MarkForm::Closed(&[(-1.1, -1.0), (-1.1, 1.0), (1.1, -1.0), (1.1, 1.0)])),
    (16, MarkForm::Closed(&[(1.15, 0.0), (-0.85, 1.1), (-0.85, -1.1)])),
    (24, MarkForm::Closed(&[(-1.15, 0.0), (0.85, 1.1), (0.85, -1.1)])),
];

/// Draws the mark of a member count. The mark is hollow if the result was not steady. Strokes cannot be hollow, so a
/// circle replaces them.
pub fn mark(m: &mut Markup, members: u16, (x, y): (f64, f64), hollow: bool) {
    let dot = if hollow { "hollow" } else { "dot" };
    let at = |(dx, dy): &(f64, f64)| format!("{} {}", px(x + dx * MARK), px(y + dy * MARK));
    let known = MARKS.iter().rev().find(|(least, _)| *least <= members);
    let (class, path) = match known.map_or(&MarkForm::Circle, |(_, form)| form) {
        MarkForm::Closed(corners) => (dot, format!("M{}Z", corners.iter().map(at).collect::<Vec<_>>().join("L"))),
        MarkForm::Open(strokes) if !hollow => {
            ("cross", strokes.iter().map(|[from, to]| format!("M{}L{}", at(from), at(to))).collect())
        }
        MarkForm::Circle | MarkForm::Open(_) => {
            return m.empty("circle", &[("class", dot), ("cx", &px(x)), ("cy", &px(y)), ("r", "3.4")]);
        }
    };
    m.empty("path", &[("class", class), ("d", &path)]);
}

/// The levels, member counts, write caches and other differences in a report, in the order of the key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyleKey {
    levels: Vec<Level>,
    members: Vec<u16>,
    caches: Vec<ReportCache>,
    /// Differences other than the write cache; the first one, often none, has no dashes.
    others: Vec<String>,
}

impl StyleKey {
    /// The key of a report.
    #[must_use]
    pub fn of(review: &Review) -> Self {
        let mut key = Self::default();
        for panel in review.sections.iter().flat_map(|section| &section.panels) {
            match &panel.chart {
                Chart::Lines(lines) => lines.series.iter().for_each(|series| key.see(&series.subject)),
                Chart::Bars(bars) => bars.bars.iter().for_each(|bar| key.levels.push(bar.subject.level)),
                Chart::Heat(_) => (),
            }
        }
        let rows = review.sections.iter().flat_map(|section| &section.tables).flat_map(|table| &table.rows);
        key.levels.extend(rows.filter_map(|row| row.level));
        key.levels.sort_unstable();
        key.levels.dedup();
        key.members.sort_unstable();
        key.members.dedup();
        key.caches.sort_unstable();
        key.caches.dedup();
        key.others.sort_unstable();
        key.others.dedup();
        key
    }

    fn see(&mut self, subject: &ReportSubject) {
        self.levels.push(subject.level);
        self.members.push(subject.members);
        self.caches.extend(subject.variant.cache());
        self.others.push(subject.variant.without_cache().to_string());
    }

    /// The `stroke-dasharray` of a subject's line, in the chart of a write cache or with its own.
    #[must_use]
    pub fn dash(&self, subject: &ReportSubject, cache: Option<ReportCache>) -> &'static str {
        let other = subject.variant.without_cache().to_string();
        match self.others.iter().position(|known| *known == other) {
            None | Some(0) => cache.or_else(|| subject.variant.cache()).map_or("", of_cache),
            Some(place) => OTHER_DASHES[(place - 1) % OTHER_DASHES.len()],
        }
    }

    /// The legend of the colours, marks and dashes of this report.
    pub fn draw(&self, m: &mut Markup) {
        if self.levels.is_empty() {
            return;
        }
        m.inside("ul", &[("class", "key"), ("aria-label", "Colours, marks and dashes")], |m| {
            for &level in &self.levels {
                m.inside("li", &[], |m| {
                    patch(m, level);
                    m.words(level.title());
                });
            }
            for &members in &self.members {
                let words = if members == 1 { "1 drive".to_owned() } else { format!("{members} drives") };
                let middle = (MARK_SAMPLE / 2.0, 6.0);
                sample(m, MARK_SAMPLE, &words, |m| mark(m, members, middle, false));
            }
            let line = |m: &mut Markup, words: &str, dash: &str| {
                let path = format!("M1 6L{} 6", px(LINE_SAMPLE - 1.0));
                let style = [("class", "line"), ("d", &*path), ("stroke-dasharray", dash)];
                let shown = if dash.is_empty() { 2 } else { 3 };
                sample(m, LINE_SAMPLE, words, |m| m.empty("path", &style[..shown]));
            };
            self.caches.iter().for_each(|cache| line(m, &capital(cache.words()), of_cache(*cache)));
            if self.others.len() > 1 {
                for other in self.others.iter().filter(|words| !words.is_empty()) {
                    line(m, other, self.dash(&ReportSubject::new(Level::Raid0, 2).variant(other.as_str()), None));
                }
            }
        });
    }
}

/// The dashes of a write cache.
const fn of_cache(cache: ReportCache) -> &'static str {
    match cache {
        ReportCache::Back => "",
        ReportCache::Through => "9 4",
        ReportCache::Journal => "12 4 3 4",
    }
}

/// An entry of the key: a drawing in a frame of this width, and its meaning.
fn sample(m: &mut Markup, width: f64, words: &str, draw: impl FnOnce(&mut Markup)) {
    m.inside("li", &[], |m| {
        let (view, width) = (format!("0 0 {} 12", px(width)), px(width));
        let frame =
            [("viewBox", &*view), ("width", &*width), ("height", "12"), ("class", "c-none"), ("aria-hidden", "true")];
        m.inside("svg", &frame, draw);
        m.words(words);
    });
}

/// A patch of a level's colour.
pub fn patch(m: &mut Markup, level: Level) {
    m.text("span", &[("class", &format!("patch c-{}", level.word())), ("aria-hidden", "true")], "");
}

/// The style sheet of the page.
pub const SHEET: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2126;--soft:#565d66;--rule:#d9dde2;--grid:#e6e9ec;--shade:#f5f7f9;\
--accent:#00579b;--single:#5b5b5b;--jbod:#7a5c1e;--linear:#75666a;--raid0:#0069ad;--raid1:#00795a;--raid1e:#4f7a00;\
--raid10:#003f38;--raid5:#c24400;--raid50:#7d2a00;--raid6:#a63a8f;--raid60:#5a2080;\
--up1:#e3eefa;--up2:#c4dcf5;--up3:#9cc3ee;--up:#08335c;--down1:#fdeae7;--down2:#f9d0c9;--down3:#f2aba0;--down:#6e1206;\
--h1:#e8eef5;--h2:#c6d6e8;--h3:#93b3d3;--h4:#41729f;--h5:#1d4e7c;--hi:#fff}\n\
@media (prefers-color-scheme:dark){:root{--paper:#14171c;--ink:#e6e9ed;--soft:#a9b1bb;--rule:#3a414a;--grid:#272d35;\
--shade:#1b2027;--accent:#7cc0f5;--single:#b8bcc2;--jbod:#d8b56a;--linear:#b3a0a5;--raid0:#5cb3f0;--raid1:#3fc795;\
--raid1e:#a3cf4a;--raid10:#a5eadc;--raid5:#ff8a4c;--raid50:#ffc29e;--raid6:#e58ad0;--raid60:#c3a2f5;\
--up1:#16304a;--up2:#1b4468;--up3:#225b8c;--up:#d6e9fb;--down1:#43201c;--down2:#64271f;--down3:#8a3226;--down:#fde3de;\
--h1:#1b2530;--h2:#22384d;--h3:#2c5378;--h4:#6aa3d8;--h5:#b5d8f7;--hi:#10151b}}\n\
*{box-sizing:border-box}\n\
body{margin:0 auto;padding:1rem 1.25rem 4rem;max-width:1340px;background:var(--paper);color:var(--ink);\
font:16px/1.5 system-ui,'Segoe UI','DejaVu Sans',Arial,sans-serif}\n\
h1{font-size:1.7rem;line-height:1.25;margin:.6rem 0}h2{font-size:1.35rem;line-height:1.3;margin:2.6rem 0 .2rem;\
padding-top:.9rem;border-top:2px solid var(--rule)}h3{font-size:1.05rem;margin:1.6rem 0 .2rem}\n\
p{margin:.3rem 0;max-width:46rem}p.answer{max-width:62rem}a{color:var(--accent)}a.here{color:var(--soft);text-decoration:none;font-weight:400}\n\
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem}\n\
.method,.note,.formula,figcaption{color:var(--soft);font-size:.875rem}.answer{font-size:1.05rem;font-weight:600}\n\
.formula{font-family:ui-monospace,'DejaVu Sans Mono',monospace}\n\
.summary{padding:.7rem 1rem .7rem 2rem;background:var(--shade);border-left:4px solid var(--accent)}\n\
ul.key{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:0;margin:.6rem 0;list-style:none;font-size:.875rem}\n\
ul.key li{display:flex;align-items:center;gap:.4rem}nav ol{padding-left:1.4rem;margin:.3rem 0}\n\
.patch{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;background:var(--c);margin-right:.4rem;\
vertical-align:-.06rem}ul.key .patch{margin:0}\n\
.pair{display:grid;grid-template-columns:minmax(0,680px) minmax(0,1fr);gap:.5rem 1.5rem;align-items:start}\n\
.sides{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:.5rem 1.5rem;align-items:start}\n\
.tables{display:flex;flex-wrap:wrap;gap:0 2rem;align-items:start}.tables>div{min-width:0;max-width:100%}\n\
figure{margin:.4rem 0}.scroll{overflow-x:auto}svg.chart{display:block;width:100%;min-width:34rem;max-width:680px;\
height:auto}svg.bars{min-width:0;max-width:460px}\n\
table{border-collapse:collapse;font-size:.8125rem;line-height:1.35;margin:.5rem 0;font-variant-numeric:tabular-nums}\n\
caption{text-align:left;color:var(--soft);padding-bottom:.3rem}th,td{padding:.18rem .42rem;border-bottom:1px solid \
var(--rule);text-align:right;vertical-align:baseline}th{font-weight:600}tbody th,thead th:first-child{text-align:left;\
font-weight:400;white-space:nowrap}thead th{vertical-align:bottom;border-bottom:2px solid var(--rule)}\n\
td.words{text-align:left}td small{color:var(--soft);display:block;font-size:.72rem;white-space:nowrap}\
td.none{color:var(--soft)}td.noisy small{font-weight:600;color:var(--ink)}\n\
.up1{background:var(--up1)}.up2{background:var(--up2)}.up3{background:var(--up3)}.up1,.up2,.up3{color:var(--up)}\n\
.down1{background:var(--down1)}.down2{background:var(--down2)}.down3{background:var(--down3)}\
.down1,.down2,.down3{color:var(--down)}\n\
.h1{background:var(--h1)}.h2{background:var(--h2)}.h3{background:var(--h3)}.h4{background:var(--h4)}\
.h5{background:var(--h5)}.h4,.h5{color:var(--hi)}table.heat td{border:1px solid var(--paper);min-width:3rem}\n\
ul.findings{padding-left:1.2rem;margin:.4rem 0 .7rem;max-width:62rem;font-size:.9375rem}ul.findings li{margin:.2rem 0}\n\
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem 1.2rem;margin:.5rem 0;font-size:.9rem}\
dt{color:var(--soft)}dd{margin:0}\n\
svg text{font:12px system-ui,'Segoe UI','DejaVu Sans',Arial,sans-serif;fill:var(--ink)}svg .quiet{fill:var(--soft)}\n\
.grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}.line{fill:none;stroke:var(--c);\
stroke-width:2.2;stroke-linejoin:round}.band{fill:var(--c);opacity:.17}.dot,.bar{fill:var(--c)}.hollow{fill:var(--paper);\
stroke:var(--c);stroke-width:1.6}.through{fill-opacity:.35;stroke:var(--c);stroke-width:1.4;\
stroke-dasharray:5 3}.cross,.whisker{fill:none;\
stroke:var(--c);stroke-width:1.8}.reach{fill:none;stroke:var(--ink);stroke-width:1.4}.leader{fill:none;stroke:var(--soft);\
stroke-width:.8}.ideal,.limit{fill:none;stroke:var(--soft);stroke-width:1.3}.ideal{stroke-dasharray:2 4}\
.limit{stroke-dasharray:10 3 2 3}svg .tag{fill:var(--c);font-weight:600}\n\
.c-none{--c:var(--ink)}.c-single{--c:var(--single)}.c-jbod{--c:var(--jbod)}.c-linear{--c:var(--linear)}\
.c-raid0{--c:var(--raid0)}.c-raid1{--c:var(--raid1)}.c-raid1e{--c:var(--raid1e)}.c-raid10{--c:var(--raid10)}\
.c-raid5{--c:var(--raid5)}.c-raid50{--c:var(--raid50)}.c-raid6{--c:var(--raid6)}.c-raid60{--c:var(--raid60)}\n\
@media (max-width:1000px){.pair,.sides{grid-template-columns:minmax(0,1fr)}}\n\
@media (max-width:640px){svg.chart{min-width:0}svg.chart:not(.bars) .quiet{font-size:14px}}\n\
@media (max-width:500px){dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:.4rem}}\n\
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--rule:#bbb;--grid:#ddd;--shade:#fff;\
--accent:#000;--single:#5b5b5b;--jbod:#7a5c1e;--linear:#75666a;--raid0:#0069ad;--raid1:#00795a;--raid1e:#4f7a00;\
--raid10:#003f38;--raid5:#c24400;--raid50:#7d2a00;--raid6:#a63a8f;--raid60:#5a2080;\
--up1:#e3eefa;--up2:#c4dcf5;--up3:#9cc3ee;--up:#08335c;--down1:#fdeae7;--down2:#f9d0c9;--down3:#f2aba0;--down:#6e1206;\
--h1:#e8eef5;--h2:#c6d6e8;--h3:#93b3d3;--h4:#41729f;--h5:#1d4e7c;--hi:#fff}\
body{max-width:none;padding:0;font-size:10.5pt}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}\
nav,a.here,.skip{display:none}a{text-decoration:none}.pair,.sides,.tables{display:block}.scroll{overflow:visible}svg.chart{min-width:0;\
max-width:150mm}figure,svg,tr,h2,h3,.answer,ul.findings li{break-inside:avoid}h2,h3,.answer,caption,.method\
{break-after:avoid}}\n";
