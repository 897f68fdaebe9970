//! Quirks: firmware behaviour that does not follow from physics.
//!
//! Physics determines the speed of a bus or a spindle. A quirk is a choice, or a fault, of a firmware. Quirks have a
//! table of their own, and each one has a text about its effect. A quirk is a cause, never a result.

use crate::reader::ProfileSection;
use crate::sourced::Sourced;

/// The kind of a quirk's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuirkKind {
    /// A number, in the unit at the end of the name.
    Number,
    /// Yes or no.
    Truth,
    Text,
}

/// The value of a quirk. A number with a range is uncertain, like any value of a profile.
#[derive(Clone, PartialEq, Debug)]
pub enum QuirkValue {
    /// A number, in the unit at the end of the name.
    Number(Sourced<f64>),
    /// Yes or no.
    Truth(bool),
    Text(String),
}

/// One quirk of one controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Quirk {
    /// Its name, one of [`QUIRKS`].
    pub name: String,
    pub value: QuirkValue,
    /// The visible effect, in words.
    pub explains: String,
}

/// Every quirk that a profile may have, with its kind and meaning. Each one has an effect in the machine. Otherwise
/// readers would take a name without effect for a cause.
pub const QUIRKS: &[(&str, QuirkKind, &str)] = &[
    ("ra_window_kib", QuirkKind::Number, "how far a stream is read ahead"),
    ("ra_restart_on_stripe_hop", QuirkKind::Truth, "read-ahead starts again on each member"),
    (
        "mirror_split_min_kib",
        QuirkKind::Number,
        "reads of a mirror longer than this, alone or several at once, are split",
    ),
    ("parity_open_stripes", QuirkKind::Number, "stripes that are put together at once, at least"),
    (
        "partial_stripes_through",
        QuirkKind::Truth,
        "a write of part of a stripe that continues no other write is not cached",
    ),
    ("xor_op_us", QuirkKind::Number, "cost of one parity operation without its bytes"),
    ("parity_width_cost_us", QuirkKind::Number, "cost of each further member of a parity operation"),
    ("stripe_map_overhead_us", QuirkKind::Number, "cost of each further member command of a request"),
    ("width_us", QuirkKind::Number, "cost of a request for each further member that blocks are spread over"),
    (
        "read_kib_us",
        QuirkKind::Number,
        "time that each KiB of a read waits on its way to the host if its thread asks for one at a time",
    ),
    ("nested_level_overhead_us", QuirkKind::Number, "cost of a request on a nested level"),
    (
        "redundancy_stage_mbs",
        QuirkKind::Number,
        "rate of the stage that writes to an array with redundancy pass before the cache",
    ),
    (
        "partial_stripe_us",
        QuirkKind::Number,
        "time for which each stripe that a write fills in part keeps all other writes away from an array with parity",
    ),
    ("nested_qd_cap", QuirkKind::Number, "requests that each span of a nested array works on at once"),
    ("write_pipeline_depth", QuirkKind::Number, "destage commands outstanding for each member"),
    ("adapt_mode_state", QuirkKind::Text, "the caching policy changes with the load"),
    ("adapt_after_requests", QuirkKind::Number, "requests after which it changes"),
    ("adapt_persist_across_arrays", QuirkKind::Truth, "learned state outlives the array, until power is cut"),
    ("host_cpu_us_per_io", QuirkKind::Number, "host time of a request in addition to the host's own"),
    ("hba_fc_write_penalty", QuirkKind::Truth, "it turns the write caches of its drives off"),
    ("command_slots", QuirkKind::Number, "requests that the controller works on at once"),
];

impl Quirk {
    pub(crate) fn read_all(top: &ProfileSection<'_>) -> Vec<Self> {
        let Some(table) = top.optional_section("quirks") else { return Vec::new() };
        let mut quirks = Vec::new();
        for name in table.keys() {
            let known = QUIRKS.iter().find(|(known, ..)| *known == name);
            quirks.extend(known.and_then(|(name, kind, _)| Self::read(&table, name, *kind)));
        }
        table.finish_known(&QUIRKS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
        quirks
    }

    fn read(table: &ProfileSection<'_>, name: &str, kind: QuirkKind) -> Option<Self> {
        let section = table.optional_section(name)?;
        let explains = section.text("explains");
        let value = match kind {
            QuirkKind::Number => table.number(name, &["explains"]).map(QuirkValue::Number),
            QuirkKind::Truth => Some(QuirkValue::Truth(section.truth("value"))),
            QuirkKind::Text => section.text("value").map(QuirkValue::Text),
        };
        // The reader has already checked the table of a number as a whole.
        if kind != QuirkKind::Number {
            table.source(name, section.optional_text("from").as_deref());
            section.finish();
        }
        Some(Self { name: name.to_owned(), value: value?, explains: explains? })
    }
}
