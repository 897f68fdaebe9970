//! What the engine tells of, in words. The words of mdadm's monitor are kept where it has one.

use openraid_core::actions::{Notice, NoticeKind};
use openraid_core::admin::{Policy, WriteCache};
use openraid_runtime::service::ServiceEvent;
use openraid_units::DriveId;
use serde::Serialize;

use super::view::fail_reason;
use super::Server;
use crate::model::ChangeModel;
use crate::output::array::VOLATILE;

/// A piece of news.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct News {
    /// A word: mdadm's where it has one.
    pub event: &'static str,
    /// The array.
    pub array: Option<String>,
    /// The leg of a nested array.
    pub leg: Option<usize>,
    /// The slot.
    pub slot: Option<u16>,
    /// The member.
    pub member: Option<String>,
    /// Settings that were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeModel>,
    /// In words.
    pub text: String,
}

impl Server {
    /// A piece of news with names; nothing where the event is none.
    pub fn news(&self, event: &ServiceEvent) -> Option<News> {
        match event {
            ServiceEvent::Notice(notice) => self.notice(notice),
            ServiceEvent::NoticesLost(count) => Some(plain("NoticesLost", format!("{count} notices were lost"))),
            ServiceEvent::StopFailed(array, error) => {
                let name = self.name_of(*array).map_or_else(|| array.to_string(), |(name, _)| name);
                Some(plain("StopFailed", format!("{name} did not stop cleanly: {error}")))
            }
            ServiceEvent::Signal(_) | ServiceEvent::Stopped => None,
        }
    }

    fn notice(&self, notice: &Notice) -> Option<News> {
        let (array, mut leg) = self.name_of(notice.array).map_or((None, None), |(name, leg)| (Some(name), leg));
        let mut changes = Vec::new();
        if let NoticeKind::PolicyChanged { from, to } = notice.kind {
            // All legs of a nested array are set alike: the first one speaks for the array.
            if leg.take().is_some_and(|leg| leg > 0) {
                return None;
            }
            changes = super::settings::changes(&from, &to);
        }
        if let NoticeKind::AdaptiveSwitched { from, to, load } = notice.kind {
            changes = super::reading::switched(from, to, &load).0;
        }
        let member = notice.drive.and_then(|drive| self.member_name(drive));
        let about_journal = matches!(
            notice.kind,
            NoticeKind::JournalDegraded
                | NoticeKind::JournalMirrored
                | NoticeKind::JournalUnreadable
                | NoticeKind::JournalLost
                | NoticeKind::JournalFull
        );
        let (array, leg) = if about_journal { (None, None) } else { (array, leg) };
        let mut place = match &array {
            _ if about_journal => "journal".into(),
            Some(array) => array.clone(),
            None => format!("array {}", notice.array),
        };
        if let Some(leg) = leg {
            place.push_str(&format!(", leg {leg}"));
        }
        if let Some(slot) = notice.slot {
            place.push_str(&format!(", slot {slot}"));
        }
        if let Some(member) = &member {
            place.push_str(&format!(" ({member})"));
        }
        let (event, what) = words(notice.kind);
        let text = format!("{place}: {what}");
        Some(News { event, array, leg, slot: notice.slot.map(|slot| slot.0), member, changes, text })
    }

    fn member_name(&self, drive: DriveId) -> Option<String> {
        let status = self.handle.status().ok()?;
        status.drives.into_iter().find(|view| view.drive == drive).map(|view| view.member)
    }
}

pub(super) fn plain(event: &'static str, text: String) -> News {
    News { event, array: None, leg: None, slot: None, member: None, changes: Vec::new(), text }
}

/// Settings that were changed, in words; a cache that forgets is warned of.
fn changed(from: &Policy, to: &Policy) -> String {
    let changes = super::settings::changes(from, to);
    let changes: Vec<String> =
        changes.iter().map(|change| format!("{} {} -> {}", change.setting, change.from, change.to)).collect();
    let volatile = to.write_cache == WriteCache::Volatile && from.write_cache != WriteCache::Volatile;
    let warning = if volatile { format!("; write cache {VOLATILE}") } else { String::new() };
    format!("settings changed: {}{warning}", changes.join(", "))
}

fn words(kind: NoticeKind) -> (&'static str, String) {
    match kind {
        NoticeKind::Fail(why) => ("Fail", format!("failed: {}", fail_reason(why))),
        NoticeKind::SpareActive => ("SpareActive", "the spare is a full member now".into()),
        NoticeKind::RebuildStarted => ("RebuildStarted", "rebuild begins".into()),
        NoticeKind::RebuildFinished => ("RebuildFinished", "rebuild is finished".into()),
        NoticeKind::ResyncStarted => ("ResyncStarted", "resync begins".into()),
        NoticeKind::ResyncFinished => ("ResyncFinished", "resync is finished".into()),
        NoticeKind::CheckStarted => ("CheckStarted", "check begins".into()),
        NoticeKind::CheckFinished { mismatches: 0 } => ("CheckFinished", "check is finished: everything fits".into()),
        NoticeKind::CheckFinished { mismatches } => {
            ("CheckFinished", format!("check is finished: {mismatches} rows do not fit"))
        }
        NoticeKind::SectorRepaired(lba) => {
            ("SectorRepaired", format!("sector {} could not be read and was rewritten from redundancy", lba.get()))
        }
        NoticeKind::SectorLost(lba) => {
            ("SectorLost", format!("sector {} is lost: no redundancy was left to restore it", lba.get()))
        }
        NoticeKind::RowCorrected(lba) => ("RowCorrected", format!("sector {} was wrong and is corrected", lba.get())),
        NoticeKind::RowMismatch(lba) => (
            "RowMismatch",
            format!("the row at sector {} does not fit and nobody can be blamed; nothing was changed", lba.get()),
        ),
        NoticeKind::Degraded => ("DegradedArray", "degraded: redundancy is reduced".into()),
        NoticeKind::Failed => {
            ("FailedArray", "FAILED: its data cannot be read; see `openraid doctor` for what can be done".into())
        }
        NoticeKind::Timeout => ("Timeout", "a command was not answered in time".into()),
        NoticeKind::DirtyLost { sectors } => (
            "DirtyLost",
            format!("{sectors} sectors that had been acknowledged were still in the cache and could not be written"),
        ),
        NoticeKind::JournalDegraded
        | NoticeKind::JournalMirrored
        | NoticeKind::JournalUnreadable
        | NoticeKind::JournalLost
        | NoticeKind::JournalFull
        | NoticeKind::JournalTableFull => {
            let (event, text) = journal_words(kind);
            (event, text.into())
        }
        NoticeKind::AdaptiveSwitched { from, to, load } => {
            ("PolicyChanged", super::reading::switched(from, to, &load).1)
        }
        NoticeKind::PolicyChanged { from, to } => ("PolicyChanged", changed(&from, &to)),
        NoticeKind::FlushInDoubt => (
            "FlushInDoubt",
            "a flush, or a write of a superblock, failed and the array cannot do without this member: no flush succeeds \
             until the array is stopped and served again; what was written since the last good flush may be lost"
                .into(),
        ),
    }
}

/// What became of the journal.
const fn journal_words(kind: NoticeKind) -> (&'static str, &'static str) {
    match kind {
        NoticeKind::JournalDegraded => (
            "JournalDegraded",
            "a device of the journal does not work; the other one carries it alone: replace it",
        ),
        NoticeKind::JournalMirrored => (
            "JournalMirrored",
            "this device of the journal is up to date: either of the two is enough again",
        ),
        NoticeKind::JournalUnreadable => (
            "JournalUnreadable",
            "a part of the log cannot be read, so that the other device cannot be brought up to date; that is tried \
             again when the arrays have moved on. If it is told again and again, stop the arrays while all is well, and \
             make a new journal",
        ),
        NoticeKind::JournalLost => (
            "JournalLost",
            "no device of the journal works any more: what it had promised goes to the members, and writes are \
             acknowledged when they are there",
        ),
        NoticeKind::JournalFull => (
            "JournalFull",
            "the journal is full of writes of an array that has failed: other arrays go on without it; bring that \
             array back, or give its writes up (openraid journal discard)",
        ),
        NoticeKind::JournalTableFull => (
            "JournalTableFull",
            "the journal knows as many arrays as its table has places: writes are acknowledged when they are on the \
             members; give up what it holds for an array that does not come back (openraid journal discard)",
        ),
        _ => panic!("news of the journal are told here"),
    }
}
