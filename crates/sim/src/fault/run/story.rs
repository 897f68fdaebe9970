//! The story of a run in words: the members, the losses by a power cut, the basis of a verdict.

use std::ops::Range;

use openraid_core::actions::Notice;
use openraid_units::{DriveId, SECTOR_BYTES};

use super::{drive_id, Run, Stop};
use crate::fault::scenario::Action;
use crate::number_words::count;
use crate::oracle::history::at;
use crate::oracle::redundancy::Misfit;
use crate::oracle::Mismatch;

/// Limit of the reported errors in redundancy.
const MISFITS_SHOWN_MAX: usize = 8;

impl Run<'_> {
    /// Add a line to the story, with the present time.
    pub(super) fn log(&self, line: impl FnOnce() -> String) {
        let line = format!("{}  {}", at(self.world.now()), line());
        self.account.borrow_mut().story.push(line);
    }

    /// The name of a drive by its place: a slot for members, a number for the devices of the journal.
    pub(super) fn name(&self, drive: DriveId) -> String {
        if let Some(number) = self.journal.number_of(drive) {
            return format!("journal device {number}");
        }
        for (span, set) in self.sets.iter().enumerate() {
            if let Some(place) = set.places().find(|place| place.drive == drive) {
                return match self.sets.len() {
                    1 => format!("slot {} (drive {drive})", place.slot),
                    _ => format!("span {span}, slot {} (drive {drive})", place.slot),
                };
            }
        }
        format!("drive {drive} (in no slot)")
    }

    pub(super) fn set_name(&self, set: usize) -> String {
        if self.sets.len() > 1 {
            format!("span {set}")
        } else {
            "the array".into()
        }
    }

    /// Add the engine's notice, in its own words.
    pub(super) fn log_notice(&self, notice: &Notice) {
        self.log(|| {
            let set = self.sets.iter().position(|set| set.array == notice.array).filter(|_| self.sets.len() > 1);
            let mut place: Vec<String> = Vec::new();
            if notice.kind.is_about_journal() {
                place.push("journal".into());
            } else {
                place.extend(set.map(|set| format!("span {set}")));
                place.extend(notice.slot.map(|slot| format!("slot {slot}")));
            }
            place.extend(notice.drive.map(|drive| format!("drive {drive}")));
            let place = if place.is_empty() { "array".into() } else { place.join(", ") };
            format!("  notice: {place}: {}", notice.kind)
        });
    }

    /// Add the hosts' requests of a step.
    pub(super) fn log_requests(&self, before: usize) {
        let asked = self.session.history.asked_since(before);
        if !asked.is_empty() {
            let open = match self.session.outstanding() {
                0 => "all are answered".into(),
                open => format!("{open} not answered yet"),
            };
            self.log(|| format!("  {asked}; {open}"));
        }
    }

    /// Add a step that changed nothing.
    pub(super) fn log_passed_over(&self, action: Action, lines: usize) {
        let plain = matches!(
            action,
            Action::Ask(_)
                | Action::Until(..)
                | Action::Happen(_)
                | Action::Wait(_)
                | Action::Rest
                | Action::Flush
                | Action::Look
                | Action::Late
        );
        if !plain && self.account.borrow().story.len() == lines {
            self.log(|| "  passed over: it cannot be, or changes nothing".into());
        }
    }

    /// Add the writes that the end of a controller may undo, while all parts still run. `goes` says whether a drive
    /// loses its power.
    pub(super) fn log_unanswered(&self, goes: impl Fn(DriveId) -> bool) {
        let parts = (0..self.world.drives_len()).map(drive_id).filter_map(|drive| {
            let known = self.world.drive(drive);
            let writes = match goes(drive) {
                true => known.in_doubt().count(),
                false => known.commands_that_change().count(),
            };
            let writes = u64::try_from(writes).unwrap_or(u64::MAX);
            (writes > 0).then(|| format!("{} {}", self.name(drive), count(writes, "write", "writes")))
        });
        let parts: Vec<String> = parts.collect();
        let open = u64::try_from(self.session.outstanding()).unwrap_or(u64::MAX);
        self.log(|| format!("  {} without an answer", count(open, "request is", "requests are")));
        if !parts.is_empty() {
            self.log(|| {
                format!("  not flushed or under way, so each sector stays old or gets new: {}", parts.join("; "))
            });
        }
    }

    /// Add a power cut of some drives.
    pub(super) fn log_partial_cut(&self, goes: impl Fn(DriveId) -> bool) {
        let (gone, kept): (Vec<DriveId>, Vec<DriveId>) =
            (0..self.world.drives_len()).map(drive_id).partition(|drive| goes(*drive));
        let names = |drives: &[DriveId]| match drives {
            [] => "none".into(),
            drives => drives.iter().map(|drive| self.name(*drive)).collect::<Vec<_>>().join(", "),
        };
        self.log(|| format!("  without power: {}; with power: {}", names(&gone), names(&kept)));
        self.log_unanswered(goes);
    }

    /// Add a loss. The engine's own lines are added to the details.
    pub(super) fn lost(&self, text: impl Into<String>) -> Stop {
        self.account.borrow_mut().details = self.world.dump();
        Stop::Lost(text.into())
    }

    /// Add a read with a wrong result, and the story of its sector.
    pub(super) fn lost_by_read(&self, mismatch: &Mismatch) -> Stop {
        let sector = mismatch.offset / SECTOR_BYTES;
        let places: Vec<String> =
            self.sets.iter().enumerate().filter_map(|(set, judged)| self.place(set, judged.stands(sector))).collect();
        let places = if places.is_empty() { String::new() } else { format!("; {}", places.join("; ")) };
        let sentence = self.session.explain(mismatch);
        let head = format!(
            "a read found what no write explains: byte {} of the array (sector {sector}{places}) {sentence}",
            mismatch.offset
        );
        let start = sector * SECTOR_BYTES;
        let stop =
            self.lost(self.with_story(head, std::slice::from_ref(&(start..start + SECTOR_BYTES)), "that sector"));
        self.account.borrow_mut().details.push_str(&mismatch.text);
        stop
    }

    fn place(&self, set: usize, stands: Vec<(openraid_units::Slot, openraid_units::MemberLba)>) -> Option<String> {
        let span = if self.sets.len() > 1 { format!("span {set}, ") } else { String::new() };
        let parts: Vec<String> =
            stands.iter().map(|(slot, row)| format!("{span}sector {} of slot {slot}", row.0)).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Add a mismatch of redundancy, and the story of its first row.
    pub(super) fn lost_by_members(&self, set: usize, misfits: &[Misfit]) -> Stop {
        let first = &misfits[0];
        let span = if self.sets.len() > 1 { format!("span {set}, ") } else { String::new() };
        let head = format!("redundancy does not fit ({span}row {}): {}", first.row.0, first.text);
        let sectors = self.sets[set].of_row(first.slot, first.row);
        let ranges: Vec<Range<u64>> =
            sectors.iter().map(|sector| sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES).collect();
        let mut text = self.with_story(head, &ranges, "that row");
        for other in misfits.iter().take(MISFITS_SHOWN_MAX).skip(1) {
            text.push_str(&format!("\n  also: {}", other.text));
        }
        self.lost(text)
    }

    fn with_story(&self, head: String, ranges: &[Range<u64>], what: &str) -> String {
        let lines = self.session.history.of(ranges);
        if lines.is_empty() {
            return format!("{head}\nno request ever touched {what}");
        }
        format!("{head}\nthe requests that touched {what}, and the ends of the server:\n{}", lines.join("\n"))
    }
}
