//! The page: one file that loads nothing and runs nothing. The results come before the method.

use super::data::{
    Absent, Bars, Chart, Fact, FindingKind, LineChart, Panel, Point, ReportFinding, ReportSection, ReportTable, Review,
};
use super::findings;
use super::line_chart::{self, Ranges};
use super::markup::Markup;
use super::split_charts::split;
use super::style::{StyleKey, SHEET};
use super::{bar_chart, heat_map, table};

/// The text in a page that names this program as its origin.
const GENERATOR: &str = "openraid";
/// Number of bytes of a file in which that text must be.
pub const MARK_BYTES_MAX: usize = 1024;

/// Does a file with this beginning come from [`render`]? Then it may be overwritten.
#[must_use]
pub fn is_report(begin: &[u8]) -> bool {
    let mark = format!("<meta name=\"generator\" content=\"{GENERATOR}\"/>");
    let begin = &begin[..begin.len().min(MARK_BYTES_MAX)];
    begin.windows(mark.len()).any(|window| window == mark.as_bytes())
}

/// A report as one HTML file: well-formed XML, pure ASCII, the same bytes for the same data.
#[must_use]
pub fn render(review: &Review) -> String {
    let key = StyleKey::of(review);
    let mut m = Markup::default();
    m.fixed("<!DOCTYPE html>\n");
    m.inside("html", &[("lang", "en")], |m| {
        m.inside("head", &[], |m| {
            m.empty("meta", &[("charset", "utf-8")]);
            m.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
            m.empty("meta", &[("name", "generator"), ("content", GENERATOR)]);
            m.text("title", &[], &review.title);
            m.fixed("<style>\n");
            m.fixed(SHEET);
            m.fixed("</style>\n");
        });
        m.inside("body", &[], |m| {
            m.text("a", &[("class", "skip"), ("href", "#results")], "Skip to the results");
            m.inside("header", &[], |m| top(m, review, &key));
            m.inside("main", &[("id", "results")], |m| {
                for (number, section) in (1..).zip(&review.sections) {
                    draw_section(m, section, number, &key);
                }
            });
            m.inside("footer", &[], |m| bottom(m, review));
        });
    });
    m.finish()
}

fn top(m: &mut Markup, review: &Review, key: &StyleKey) {
    m.text("h1", &[], &review.title);
    if review.brief.is_empty() {
        sentences(m, &review.summary, "summary");
    } else {
        sentences(m, &review.brief, "summary");
        review.standings.iter().for_each(|standings| wide(m, standings));
        facts(m, "Verdicts", &review.verdicts);
        m.text("h2", &[], "Answers");
        sentences(m, &review.summary, "answers");
    }
    if review.sections.len() > 1 {
        m.inside("nav", &[("aria-label", "Questions")], |m| {
            m.inside("ol", &[], |m| {
                for (number, section) in (1..).zip(&review.sections) {
                    m.inside("li", &[], |m| m.text("a", &[("href", &format!("#s{number}"))], name(section)));
                }
            });
        });
    }
    key.draw(m);
}

/// Sentences as a list.
fn sentences(m: &mut Markup, lines: &[String], class: &'static str) {
    if !lines.is_empty() {
        m.inside("ul", &[("class", class)], |m| lines.iter().for_each(|line| m.text("li", &[], line)));
    }
}

/// A table that scrolls horizontally on a narrow screen.
fn wide(m: &mut Markup, one: &ReportTable) {
    let frame = [("class", "scroll"), ("tabindex", "0"), ("role", "group"), ("aria-label", one.caption.as_str())];
    m.inside("div", &frame, |m| table::draw(m, one));
}

/// The heading of a section: its question, or its method if it has none.
fn name(section: &ReportSection) -> &str {
    if section.question.is_empty() {
        &section.method
    } else {
        &section.question
    }
}

/// A heading that can be linked to.
fn heading(m: &mut Markup, tag: &'static str, id: &str, text: &str) {
    m.inside(tag, &[], |m| {
        m.words(text);
        let label = format!("Link to: {text}");
        m.text("a", &[("class", "here"), ("href", &format!("#{id}")), ("aria-label", &label)], "#");
    });
}

fn draw_section(m: &mut Markup, section: &ReportSection, number: usize, key: &StyleKey) {
    let id = format!("s{number}");
    m.inside("section", &[("id", &id)], |m| {
        heading(m, "h2", &id, name(section));
        if !section.question.is_empty() {
            m.text("p", &[("class", "method")], &section.method);
        }
        if !section.answer.is_empty() {
            m.text("p", &[("class", "answer")], &section.answer);
        }
        draw_findings(m, &section.findings);
        files(m, &section.links);
        for (index, panel) in (1..).zip(&section.panels) {
            draw_panel(m, panel, section, &format!("{id}-{index}"), key);
        }
        if !section.tables.is_empty() {
            m.inside("div", &[("class", "tables")], |m| {
                section.tables.iter().for_each(|table| m.inside("div", &[], |m| table::draw(m, table)));
            });
        }
        draw_absent(m, &section.absent);
        section.how.iter().for_each(|line| m.text("p", &[("class", "method")], line));
    });
}

fn draw_findings(m: &mut Markup, found: &[ReportFinding]) {
    if found.is_empty() {
        return;
    }
    m.inside("ul", &[("class", "findings"), ("aria-label", "Findings")], |m| {
        for finding in found {
            m.inside("li", &[], |m| {
                m.text("strong", &[], sign(finding.kind));
                m.words(&finding.text);
            });
        }
    });
}

/// The word for a kind of finding.
const fn sign(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Warning => "Beware:",
        FindingKind::Limit => "Limit:",
        FindingKind::Shape => "Shape:",
        FindingKind::Comparison => "Compare:",
    }
}

fn draw_absent(m: &mut Markup, absent: &[Absent]) {
    if absent.is_empty() {
        return;
    }
    m.text("h3", &[], "Not measured, and why");
    m.inside("dl", &[], |m| {
        for one in absent {
            m.text("dt", &[], &one.what);
            m.text("dd", &[], &one.reason);
        }
    });
}

fn draw_panel(m: &mut Markup, panel: &Panel, section: &ReportSection, id: &str, key: &StyleKey) {
    m.inside("section", &[("class", "panel"), ("id", id)], |m| {
        heading(m, "h3", id, &panel.question);
        let answer = if panel.answer.is_empty() { findings::answer(&panel.chart) } else { panel.answer.clone() };
        if !answer.is_empty() {
            m.text("p", &[("class", "answer")], &answer);
        }
        draw_findings(m, &panel.findings);
        match &panel.chart {
            Chart::Lines(all) => draw_lines(m, all, panel, section, id, key),
            Chart::Bars(all) => {
                let numbers = (!is_plain(all)).then(|| table::of_bars(all));
                pair(m, "pair", numbers.as_ref(), |m| bar_chart::draw(m, all, &panel.question, id));
            }
            Chart::Heat(heat) => heat_map::draw(m, heat),
        }
    });
}

fn draw_lines(m: &mut Markup, all: &LineChart, panel: &Panel, section: &ReportSection, id: &str, key: &StyleKey) {
    let Some(ranges) = shared(all, panel, section) else { return };
    let parts = split(all);
    let several = parts.len() > 1;
    // The charts of two write caches stand side by side, each above its numbers.
    let of_caches = several && parts.iter().all(|part| part.cache.is_some());
    let draw = |m: &mut Markup| {
        for (number, part) in (1..).zip(&parts) {
            let id = if several { format!("{id}-{number}") } else { id.to_owned() };
            let title = if several { format!("{} {}", panel.question, part.title) } else { panel.question.clone() };
            let numbers = table::of_lines(&part.lines);
            let chart = |m: &mut Markup| {
                if several {
                    let words = format!("{}; all charts of this group have the same axes.", part.title);
                    m.text("p", &[("class", "method")], &words);
                }
                let class = if of_caches { "side" } else { "pair" };
                pair(m, class, Some(&numbers), |m| line_chart::draw(m, part, &ranges, key, &title, &id));
            };
            if of_caches {
                m.inside("div", &[], chart);
            } else {
                chart(m);
            }
        }
    };
    if of_caches {
        m.inside("div", &[("class", "sides")], draw);
    } else {
        draw(m);
    }
}

/// The ranges for this panel and all panels of its group.
fn shared(all: &LineChart, panel: &Panel, section: &ReportSection) -> Option<Ranges> {
    let mut group = vec![all];
    if !panel.group.is_empty() {
        for other in section.panels.iter().filter(|other| other.group == panel.group) {
            match &other.chart {
                Chart::Lines(other) if other.x == all.x && other.y == all.y => group.push(other),
                _ => (),
            }
        }
    }
    line_chart::ranges(&group)
}

/// Is it one bar of one run? Then a table would have one row, and no other figure than the bar has.
fn is_plain(all: &Bars) -> bool {
    matches!(all.bars.as_slice(), [one] if one.value.low == one.value.high && all.formula.is_empty())
}

/// A chart with its table next to it, or below it in the class `side`.
fn pair(
    m: &mut Markup,
    class: &'static str,
    numbers: Option<&ReportTable>,
    chart: impl FnOnce(&mut Markup) -> Vec<String>,
) {
    m.inside("div", &[("class", class)], |m| {
        m.inside("figure", &[], |m| {
            let mut notes = Vec::new();
            m.inside(
                "div",
                &[("class", "scroll"), ("tabindex", "0"), ("role", "group"), ("aria-label", "Chart")],
                |m| {
                    notes = chart(m);
                },
            );
            if !notes.is_empty() {
                m.text("figcaption", &[], &notes.join(" "));
            }
        });
        if let Some(numbers) = numbers {
            m.inside("div", &[], |m| table::draw(m, numbers));
        }
    });
}

fn bottom(m: &mut Markup, review: &Review) {
    facts(m, "Test bed", &review.bed);
    if !review.files.is_empty() {
        m.text("h2", &[], "Results as data");
        files(m, &review.files);
    }
    facts(m, "Words", &review.glossary);
    m.text("h2", &[], "How to read this");
    let mut colours =
        "Colour is the level of an array, the mark its number of drives, a solid line write-back and a dashed one \
         write-through where both are compared: the same in every chart of every report."
            .to_owned();
    if any_point(review, |point| point.runs > 1 || point.low < point.high) {
        colours.push_str(
            " Bands and whiskers reach from the lowest to the highest run around the median; a cell is called noisy \
             where they differ by more than 5 % of the median.",
        );
    }
    if any_point(review, |point| point.unsteady) {
        colours.push_str(
            " A hollow mark or bar, and a dagger in a table, is a result whose load was still changing when it was \
             measured: answers are made from the others.",
        );
    }
    let lines = [
        colours.as_str(),
        "Fine dotted lines are what single drives would make together (perfect scaling), dash-dotted lines what a part \
         cannot exceed. In tables of ratios an upward triangle on blue is better than 1, a downward triangle on red is \
         worse; what is shown as 1.0 has neither.",
    ];
    lines.iter().for_each(|line| m.text("p", &[], line));
}

/// Is there a result of this kind in any chart?
fn any_point(review: &Review, wanted: impl Fn(&Point) -> bool) -> bool {
    let panels = || review.sections.iter().flat_map(|section| &section.panels);
    panels().any(|panel| match &panel.chart {
        Chart::Lines(lines) => lines.series.iter().flat_map(|series| &series.points).any(&wanted),
        Chart::Bars(bars) => bars.bars.iter().any(|bar| wanted(&bar.value)),
        Chart::Heat(_) => false,
    })
}

/// Links to files next to the report.
fn files(m: &mut Markup, files: &[Fact]) {
    if files.is_empty() {
        return;
    }
    m.inside("ul", &[], |m| {
        for file in files {
            m.inside("li", &[], |m| {
                if beside(&file.value) {
                    m.text("a", &[("href", &file.value)], &file.name);
                } else {
                    m.words(&format!("{}: {}", file.name, file.value));
                }
            });
        }
    });
}

fn facts(m: &mut Markup, title: &str, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    m.text("h2", &[], title);
    m.inside("dl", &[], |m| {
        for fact in facts {
            m.text("dt", &[], &fact.name);
            m.text("dd", &[], &fact.value);
        }
    });
}

/// Is this the name of a file next to the report, and not a path to another place?
fn beside(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !name.is_empty() && name.chars().all(plain) && !name.starts_with('/') && !name.contains("..")
}
