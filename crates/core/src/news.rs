//! What the engine tells of, in words. The words of mdadm's monitor are kept where it has one.
//!
//! They are written for an administrator, and say what to do where something must be done. Who tells them adds the names
//! of array and member, which the engine does not know.

use core::fmt;

use crate::actions::NoticeKind;
use crate::admin::{TaskKind, WriteCache};
use crate::reason::FailReason;

/// What it means that the cache takes writes and forgets them.
pub const VOLATILE: &str = "VOLATILE: what is not flushed is lost when the power goes or the server ends";

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl FailReason {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Administrator => "by command",
            Self::Gone => "it vanished",
            Self::Timeout => "it did not answer in time",
            Self::WriteError => "a write failed",
            Self::FlushFailed => "a flush failed: what it promised to keep is in doubt",
            Self::ErrorBudget => "too many media errors",
            Self::Protocol => "it answered what makes no sense, or became shorter",
            Self::NoSpace => "no space behind it: the file system is full",
            Self::ReadOnly => "it does not take writes any more",
            Self::BadBlockLogFull => "more sectors could not be restored on it than its bad-block log can name",
        }
    }
}

impl NoticeKind {
    /// As one word: mdadm's where it has one.
    #[must_use]
    pub const fn event(&self) -> &'static str {
        match self {
            Self::Fail(_) => "Fail",
            Self::SpareActive => "SpareActive",
            Self::RebuildStarted => "RebuildStarted",
            Self::RebuildFinished => "RebuildFinished",
            Self::ResyncStarted => "ResyncStarted",
            Self::ResyncFinished => "ResyncFinished",
            Self::CheckStarted => "CheckStarted",
            Self::CheckFinished { .. } => "CheckFinished",
            Self::BrokenOff(TaskKind::Rebuild | TaskKind::Replace) => "RebuildStopped",
            Self::BrokenOff(TaskKind::Resync) => "ResyncStopped",
            Self::BrokenOff(TaskKind::Check | TaskKind::Repair) => "CheckStopped",
            Self::SectorRepaired(_) => "SectorRepaired",
            Self::SectorLost(_) => "SectorLost",
            Self::RowCorrected(_) => "RowCorrected",
            Self::RowMismatch(_) => "RowMismatch",
            Self::Degraded => "DegradedArray",
            Self::Failed => "FailedArray",
            Self::Timeout => "Timeout",
            Self::DirtyLost { .. } => "DirtyLost",
            Self::JournalDegraded => "JournalDegraded",
            Self::JournalMirrored => "JournalMirrored",
            Self::JournalUnreadable => "JournalUnreadable",
            Self::JournalLost => "JournalLost",
            Self::JournalFull => "JournalFull",
            Self::JournalTableFull => "JournalTableFull",
            Self::AdaptiveSwitched { .. } | Self::PolicyChanged { .. } => "PolicyChanged",
            Self::FlushInDoubt => "FlushInDoubt",
        }
    }

    /// Is it about the journal, and not about one of its arrays?
    #[must_use]
    pub const fn is_about_journal(&self) -> bool {
        matches!(
            self,
            Self::JournalDegraded
                | Self::JournalMirrored
                | Self::JournalUnreadable
                | Self::JournalLost
                | Self::JournalFull
        )
    }

    /// The words of those that have no figures.
    const fn fixed(&self) -> &'static str {
        match self {
            Self::SpareActive => "the spare is a full member now",
            Self::RebuildStarted => "rebuild begins",
            Self::RebuildFinished => "rebuild is finished",
            Self::ResyncStarted => "resync begins",
            Self::ResyncFinished => "resync is finished",
            Self::CheckStarted => "check begins",
            Self::BrokenOff(TaskKind::Rebuild | TaskKind::Replace) => "rebuild is broken off",
            Self::BrokenOff(TaskKind::Resync) => "resync is broken off",
            Self::BrokenOff(TaskKind::Check | TaskKind::Repair) => "check is broken off: not all was compared",
            Self::Degraded => "degraded: redundancy is reduced",
            Self::Failed => "FAILED: its data cannot be read; see `openraid doctor` for what can be done",
            Self::Timeout => "a command was not answered in time",
            Self::FlushInDoubt => {
                "a flush, or a write of a superblock, failed and the array cannot do without this member: no flush \
                 succeeds until the array is stopped and served again; what was written since the last good flush may \
                 be lost"
            }
            Self::JournalDegraded => {
                "a device of the journal does not work; the other one carries it alone: replace it"
            }
            Self::JournalMirrored => "this device of the journal is up to date: either of the two is enough again",
            Self::JournalUnreadable => {
                "a part of the log cannot be read, so that the other device cannot be brought up to date; that is tried \
                 again when the arrays have moved on. If it is told again and again, stop the arrays while all is well, \
                 and make a new journal"
            }
            Self::JournalLost => {
                "no device of the journal works any more: what it had promised goes to the members, and writes are \
                 acknowledged when they are there"
            }
            Self::JournalFull => {
                "the journal is full of writes of an array that has failed: other arrays go on without it; bring that \
                 array back, or give its writes up (openraid journal discard)"
            }
            Self::JournalTableFull => {
                "the journal knows as many arrays as its table has places: writes are acknowledged when they are on the \
                 members; give up what it holds for an array that does not come back (openraid journal discard)"
            }
            Self::Fail(_)
            | Self::CheckFinished { .. }
            | Self::SectorRepaired(_)
            | Self::SectorLost(_)
            | Self::RowCorrected(_)
            | Self::RowMismatch(_)
            | Self::DirtyLost { .. }
            | Self::AdaptiveSwitched { .. }
            | Self::PolicyChanged { .. } => "",
        }
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail(why) => write!(f, "failed: {why}"),
            Self::CheckFinished { mismatches: 0 } => f.write_str("check is finished: everything fits"),
            Self::CheckFinished { mismatches } => write!(f, "check is finished: {mismatches} rows do not fit"),
            Self::SectorRepaired(lba) => {
                write!(f, "sector {} could not be read and was rewritten from redundancy", lba.get())
            }
            Self::SectorLost(lba) => write!(f, "sector {} is lost: no redundancy was left to restore it", lba.get()),
            Self::RowCorrected(lba) => write!(f, "sector {} was wrong and is corrected", lba.get()),
            Self::RowMismatch(lba) => {
                let row = lba.get();
                write!(f, "the row at sector {row} does not fit and nobody can be blamed; nothing was changed")
            }
            Self::DirtyLost { sectors } => write!(
                f,
                "{sectors} sectors that had been acknowledged were still in the cache and could not be written"
            ),
            Self::AdaptiveSwitched { from, to, load } => {
                f.write_str("the adaptive policy changed ")?;
                list(f, from.changes_to(to))?;
                write!(f, ": {load}")
            }
            Self::PolicyChanged { from, to } => {
                f.write_str("settings changed: ")?;
                list(f, from.changes_to(to))?;
                let forgets = to.write_cache == WriteCache::Volatile && from.write_cache != WriteCache::Volatile;
                if forgets {
                    write!(f, "; write cache {VOLATILE}")?;
                }
                Ok(())
            }
            other => f.write_str(other.fixed()),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, all: impl Iterator<Item = impl fmt::Display>) -> fmt::Result {
    for (place, one) in all.enumerate() {
        f.write_str(if place > 0 { ", " } else { "" })?;
        write!(f, "{one}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Policy;
    use alloc::string::ToString;
    use openraid_units::DriveLba;

    #[test]
    fn a_change_of_settings_names_those_that_differ_and_warns_of_a_cache_that_forgets() {
        let from = Policy::default();
        let to = Policy { write_cache: WriteCache::Volatile, sorting: false, ..from };
        let text = NoticeKind::PolicyChanged { from, to }.to_string();
        assert_eq!(
            text,
            "settings changed: write.cache through -> volatile, sorting on -> off; write cache VOLATILE: what is not \
             flushed is lost when the power goes or the server ends"
        );
    }

    #[test]
    fn news_say_which_sector_and_why() {
        let told = [
            (NoticeKind::Fail(FailReason::Gone), "Fail", "failed: it vanished"),
            (
                NoticeKind::SectorLost(DriveLba(77)),
                "SectorLost",
                "sector 77 is lost: no redundancy was left to restore it",
            ),
            (NoticeKind::CheckFinished { mismatches: 0 }, "CheckFinished", "check is finished: everything fits"),
            (NoticeKind::Degraded, "DegradedArray", "degraded: redundancy is reduced"),
        ];
        for (kind, event, text) in told {
            assert_eq!((kind.event(), kind.to_string().as_str()), (event, text));
        }
    }
}
