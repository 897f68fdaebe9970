//! The data that is lost when the journal entries of an array are discarded: in words, and for documents and the control socket.

use openraid_core::admin::FoundJournal;
use openraid_format::Uuid;
use openraid_runtime::service::journal::{lost_ranges, sum, ArrayTally, LostRange};

use crate::model::{LossModel, LostRangeModel};
use crate::quantity::{counted, human};

/// Maximum number of places in words.
const PLACES_TOLD: usize = 4;
/// Maximum number in documents, which are one line of the control socket: a log has room for more.
const RANGES_MAX: usize = 10_000;

/// The data that a log holds for some sets.
pub struct LossEstimate {
    /// The amount.
    pub tally: ArrayTally,
    /// The ranges of the lost host writes.
    ranges: Vec<LostRange>,
    /// Are the places in spans?
    has_spans: bool,
}

impl LossEstimate {
    /// Compute the loss.
    #[must_use]
    pub fn of(journal: &FoundJournal, sets: &[Uuid]) -> Self {
        Self { tally: sum(journal, sets), ranges: lost_ranges(journal, sets), has_spans: sets.len() > 1 }
    }

    /// The loss in words: the amount, and the places.
    #[must_use]
    pub fn text(&self) -> String {
        let ArrayTally { entries, data, redos, .. } = self.tally;
        let (sectors, bytes, places) = (data.get(), human(data.bytes()), self.places());
        format!(
            "{} with {} of host data ({bytes}{places}) and {} to members",
            counted(entries, "entry", "entries"),
            counted(sectors, "sector", "sectors"),
            counted(redos, "write", "writes")
        )
    }

    fn places(&self) -> String {
        let mut places = Vec::new();
        let mut before = None;
        for range in &self.ranges[..self.ranges.len().min(PLACES_TOLD)] {
            let (from, to) = (range.at.offset().bytes().get(), (range.at + range.len).offset().bytes().get());
            let is_next_span = self.has_spans && before.replace(range.set_uuid) != Some(range.set_uuid);
            let span = if is_next_span { format!("span {}: ", range.set_uuid) } else { String::new() };
            places.push(format!("{span}{from} to {to}"));
        }
        match self.ranges.len().saturating_sub(PLACES_TOLD) {
            _ if places.is_empty() => String::new(),
            0 => format!("; bytes {}", places.join(", ")),
            more => format!("; bytes {} and {}", places.join(", "), counted(more as u64, "more place", "more places")),
        }
    }

    /// The loss for documents and the control socket.
    #[must_use]
    pub fn model(&self, given_up: bool, text: String) -> LossModel {
        let range = |range: &LostRange| LostRangeModel {
            set: range.set_uuid.to_string(),
            offset_bytes: range.at.offset().bytes().get(),
            bytes: range.len.bytes().get(),
        };
        LossModel {
            given_up,
            entries: Some(self.tally.entries),
            data_sectors: Some(self.tally.data.get()),
            data_bytes: Some(self.tally.data.bytes().get()),
            member_writes: Some(self.tally.redos),
            ranges: self.ranges.iter().take(RANGES_MAX).map(range).collect(),
            more_ranges: self.ranges.len().saturating_sub(RANGES_MAX) as u64,
            damage: None,
            text,
        }
    }
}
