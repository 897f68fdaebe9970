//! A heat map: a table whose cells are shaded by their value.

use super::data::{Heat, ReportCell};
use super::format::{fixed, MISSING};
use super::markup::Markup;
use super::table;

/// A heat map: the table itself, shaded.
pub fn draw(m: &mut Markup, heat: &Heat) {
    let table = table::of_heat(heat);
    m.inside(
        "div",
        &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", &table.caption)],
        |m| {
            m.inside("table", &[("class", "heat")], |m| {
                m.text("caption", &[], &table.caption);
                table::head(m, &table);
                m.inside("tbody", &[], |m| {
                    for row in &table.rows {
                        m.inside("tr", &[], |m| {
                            m.text("th", &[("scope", "row")], &row.head);
                            row.cells.iter().for_each(|cell| shaded(m, cell));
                        });
                    }
                });
            });
        },
    );
}

fn shaded(m: &mut Markup, cell: &ReportCell) {
    let ReportCell::Number(share) = cell else { return m.text("td", &[("class", "none")], MISSING) };
    // Steps that matter to a reader: more than nothing, a hundredth, a tenth, a third, most.
    let class = match share {
        s if !s.is_finite() => "none",
        s if *s <= 0.0 => return m.text("td", &[], ""),
        s if *s < 1.0 => "h1",
        s if *s < 10.0 => "h2",
        s if *s < 33.0 => "h3",
        s if *s < 67.0 => "h4",
        _ => "h5",
    };
    let text = if *share < 0.1 { "<0.1".to_owned() } else { fixed(*share, usize::from(*share < 10.0)) };
    m.text("td", &[("class", class)], &text);
}
