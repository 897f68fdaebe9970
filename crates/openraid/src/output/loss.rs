//! What is lost with what a journal holds for an array: in words, and for documents and the control socket.

use openraid_core::admin::FoundJournal;
use openraid_format::Uuid;
use openraid_runtime::service::journal::{lost_ranges, sum, LostRange, Tally};

use crate::model::{LossModel, LostRangeModel};
use crate::quantity::human;

/// So many places are named in words.
const PLACES_TOLD: usize = 4;
/// So many are named in documents, which are one line of the control socket: a log has room for more.
const RANGES_MAX: usize = 10_000;

/// What a log holds for some sets.
pub struct Loss {
    /// How much.
    pub tally: Tally,
    /// Where.
    ranges: Vec<LostRange>,
}

impl Loss {
    /// Look it up.
    #[must_use]
    pub fn of(journal: &FoundJournal, sets: &[Uuid]) -> Self {
        Self { tally: sum(journal, sets), ranges: lost_ranges(journal, sets) }
    }

    /// How much, in words.
    #[must_use]
    pub fn text(&self) -> String {
        let Tally { entries, data, redos, .. } = self.tally;
        let (sectors, bytes) = (data.get(), human(data.bytes()));
        format!("{entries} entries with {sectors} sectors of host data ({bytes}) and {redos} writes to members")
    }

    /// Where, to be added to what is said of the array.
    #[must_use]
    pub fn places(&self) -> String {
        let mut told = Vec::new();
        let mut before = None;
        let of_many = self.ranges.iter().any(|range| range.set_uuid != self.ranges[0].set_uuid);
        for range in &self.ranges[..self.ranges.len().min(PLACES_TOLD)] {
            let (from, to) = (range.at.get() * 512, (range.at + range.len).get() * 512);
            let is_next_leg = of_many && before.replace(range.set_uuid) != Some(range.set_uuid);
            let leg = if is_next_leg { format!("leg {}: ", range.set_uuid) } else { String::new() };
            told.push(format!("{leg}{from} to {to}"));
        }
        let more = match self.ranges.len().saturating_sub(PLACES_TOLD) {
            0 => String::new(),
            more => format!(" and {more} more places (--json names them)"),
        };
        match told.is_empty() {
            true => String::new(),
            false => format!(" (no more than bytes {}{more})", told.join(", ")),
        }
    }

    /// As documents and the control socket have it.
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
