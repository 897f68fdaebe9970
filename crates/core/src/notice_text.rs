//! The engine's notices in words, with the names of mdadm's monitor events if there is one.
//!
//! They are written for an administrator, and say what to do if something must be done. The reader adds the names of
//! array and member, which the engine does not know.

use core::fmt;

use crate::actions::NoticeKind;
use crate::check_results::{Remedy, ScrubEnd, ScrubOutcome};
use crate::reason::FailReason;
use crate::settings::WriteCache;

/// The consequence of a volatile write cache.
pub const VOLATILE: &str = "VOLATILE: unflushed data is lost if the power fails or the server ends";

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl FailReason {
    /// The text for users.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Administrator => "by administrator",
            Self::Replaced => "its replacement has taken its slot",
            Self::Gone => "it vanished",
            Self::Timeout => "it did not answer in time",
            Self::WriteError => "a write failed",
            Self::FlushFailed => "a flush failed: data that it had acknowledged may be lost",
            Self::ErrorBudget => "too many media errors",
            Self::Protocol => "I/O error: unexpected reply, or the drive became smaller",
            Self::NoSpace => "no space: its file system or thin pool is full",
            Self::ReadOnly => "it refuses writes",
            Self::BadBlockLogFull => "more of its sectors were lost than its bad-block log can hold",
        }
    }
}

impl NoticeKind {
    /// As one word: mdadm's if it has one.
    #[must_use]
    pub const fn event(&self) -> &'static str {
        match self {
            Self::Fail(_) => "Fail",
            Self::SpareActive => "SpareActive",
            Self::RebuildStarted(_) => "RebuildStarted",
            Self::RebuildFinished(_) => "RebuildFinished",
            Self::ResyncStarted => "ResyncStarted",
            Self::ResyncFinished => "ResyncFinished",
            Self::ReshapeBegun => "ReshapeBegun",
            Self::ReshapeCancelled => "ReshapeCancelled",
            Self::ReshapeFinished => "ReshapeFinished",
            Self::CapacityLimited { .. } => "CapacityLimited",
            Self::CheckStarted(_) => "CheckStarted",
            Self::CheckEnded(ScrubEnd { outcome: ScrubOutcome::Aborted { .. }, .. }) => "CheckStopped",
            Self::CheckEnded(_) => "CheckFinished",
            Self::RebuildAborted(_) => "RebuildStopped",
            Self::ResyncAborted => "ResyncStopped",
            Self::SectorRepaired(_) => "SectorRepaired",
            Self::SectorLost(_) => "SectorLost",
            Self::RowCorrected(_) => "RowCorrected",
            Self::RowMismatch(_) => "RowMismatch",
            Self::Degraded { .. } => "DegradedArray",
            Self::Failed => "FailedArray",
            Self::Returned => "ArrayReturned",
            Self::Timeout => "Timeout",
            Self::DirtyLost { .. } => "DirtyLost",
            Self::JournalDegraded => "JournalDegraded",
            Self::JournalMirrored => "JournalMirrored",
            Self::JournalUnreadable => "JournalUnreadable",
            Self::JournalLost => "JournalLost",
            Self::JournalFull => "JournalFull",
            Self::JournalTableFull => "JournalTableFull",
            Self::AdaptiveSwitched { .. } | Self::PolicyChanged { .. } => "PolicyChanged",
            Self::FlushFailed => "FlushFailed",
            Self::NoRoom => "NoRoom",
            Self::RoomAgain => "RoomAgain",
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

    /// The texts of notices without figures.
    const fn fixed(&self) -> &'static str {
        match self {
            Self::SpareActive => "the spare is a full member now",
            Self::ResyncStarted => "resync begins",
            Self::ResyncFinished => "resync is finished",
            Self::ReshapeBegun => "the change of shape has begun",
            Self::ReshapeCancelled => "the change of shape is cancelled: what has moved moves back",
            Self::ReshapeFinished => "the change of shape is finished",
            Self::ResyncAborted => "resync aborted",
            Self::Failed => "FAILED: its data cannot be read; see `openraid doctor` for what can be done",
            Self::Returned => {
                "it works again: its members were only out of reach, and have every write that was acknowledged"
            }
            Self::Timeout => "a command was not answered in time",
            Self::FlushFailed => {
                "a flush, or a write of a superblock, failed on this member, which the array needs: every flush fails \
                 until the array is stopped and served again; data written since the last good flush may be lost"
            }
            Self::JournalDegraded => {
                "this device of the journal does not work; the other one carries the journal alone: replace this one"
            }
            Self::JournalMirrored => "this device of the journal is up to date: either of the two is enough again",
            Self::JournalUnreadable => {
                "a part of the log cannot be read, so the other device cannot be brought up to date; the server tries \
                 again when that part is not needed any more. If this is reported repeatedly, stop the arrays while \
                 they are optimal, and make a new journal"
            }
            Self::JournalLost => {
                "no device of the journal works any more: the cache destages the writes that the journal protected, \
                 and new writes are acknowledged when they are on the members"
            }
            Self::JournalFull => {
                "the journal is full of entries that their array cannot take: the other arrays work without the journal; \
                 bring that array back, or discard its entries (openraid journal discard)"
            }
            Self::JournalTableFull => {
                "the journal's table of arrays is full: writes are acknowledged when they are on the members; discard \
                 the entries of an array that does not come back (openraid journal discard)"
            }
            Self::NoRoom => {
                "no room: the storage of this member is full. Writes that need room there are refused, reads continue; \
                 make room, and writing continues by itself"
            }
            Self::RoomAgain => "there is room on this member again",
            Self::Fail(_)
            | Self::Degraded { .. }
            | Self::RebuildStarted(_)
            | Self::RebuildFinished(_)
            | Self::RebuildAborted(_)
            | Self::CheckStarted(_)
            | Self::CheckEnded(_)
            | Self::SectorRepaired(_)
            | Self::SectorLost(_)
            | Self::RowCorrected(_)
            | Self::RowMismatch(_)
            | Self::DirtyLost { .. }
            | Self::CapacityLimited { .. }
            | Self::AdaptiveSwitched { .. }
            | Self::PolicyChanged { .. } => "",
        }
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail(why) => write!(f, "failed ({why})"),
            Self::Degraded { tolerated: 0 } => f.write_str("degraded: no further failure tolerated"),
            Self::Degraded { tolerated: 1 } => f.write_str("degraded: one more failure tolerated"),
            Self::Degraded { tolerated } => write!(f, "degraded: {tolerated} more failures tolerated"),
            Self::RebuildStarted(fill) => write!(f, "{} begins", fill.name()),
            Self::RebuildFinished(fill) => write!(f, "{} is finished", fill.name()),
            Self::RebuildAborted(fill) => write!(f, "{} aborted", fill.name()),
            Self::CheckStarted(mode) => write!(f, "{} begins", mode.name()),
            Self::CapacityLimited { to } => {
                write!(f, "hosts have {} of the array until it is served again", to.readable())
            }
            Self::CheckEnded(end) => match end.outcome {
                ScrubOutcome::Aborted { .. } => write!(f, "{} {end}", end.mode.name()),
                _ => write!(f, "{} finished: {end}", end.mode.name()),
            },
            Self::SectorRepaired(lba) => {
                write!(f, "sector {} could not be read and was rewritten from redundancy", lba.get())
            }
            Self::SectorLost(lba) => write!(f, "sector {} is lost: no redundancy was left to restore it", lba.get()),
            Self::RowCorrected(range) => match range.remedy {
                Remedy::Copies => write!(f, "copies differ at {range}: the first was copied to the others"),
                Remedy::Parity => write!(f, "stripe mismatch at {range}: parity made again from the data"),
                Remedy::Corrected | Remedy::Left | Remedy::CopiesLeft => write!(f, "{range} did not match: corrected"),
            },
            Self::RowMismatch(range) if range.slot.is_some() => {
                write!(f, "{} do not match the other members, left unchanged", range)
            }
            Self::RowMismatch(range) if range.remedy == Remedy::CopiesLeft => {
                write!(f, "copies differ at {}: cannot tell which member is wrong, left unchanged", range)
            }
            Self::RowMismatch(range) => {
                write!(f, "stripe mismatch at {}: cannot tell which member is wrong, left unchanged", range)
            }
            Self::DirtyLost { sectors } => write!(
                f,
                "{} of acknowledged writes are lost: they were in the cache and could not be written to the members",
                openraid_units::Sectors(*sectors)
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
    use crate::actions::Fill;
    use crate::check_results::{AbortReason, MismatchRange, ScrubMode};
    use crate::settings::Policy;
    use alloc::string::ToString;
    use openraid_units::{DriveLba, Sectors, Slot};

    #[test]
    fn a_change_of_settings_names_the_ones_that_differ_and_warns_of_a_volatile_cache() {
        let from = Policy::default();
        let to = Policy { write_cache: WriteCache::Volatile, sorting: false, ..from };
        let text = NoticeKind::PolicyChanged { from, to }.to_string();
        assert_eq!(
            text,
            "settings changed: write.cache through -> volatile, sorting on -> off; write cache VOLATILE: unflushed \
             data is lost if the power fails or the server ends"
        );
    }

    #[test]
    fn news_say_which_sector_and_why() {
        let (slot, remedy) = (Some(Slot(2)), Remedy::Left);
        let mismatch = MismatchRange { from: Sectors(8), len: Sectors(8), count: 8, slot, remedy };
        let corrected = |remedy| NoticeKind::RowCorrected(MismatchRange { slot: None, remedy, ..mismatch });
        let aborted = ScrubOutcome::Aborted { why: AbortReason::MemberFailed, percent: 12, count: 0, repaired: 0 };
        let ended = |mode, outcome| NoticeKind::CheckEnded(ScrubEnd { mode, outcome });
        let cases = [
            (NoticeKind::Fail(FailReason::Gone), "Fail", "failed (it vanished)"),
            (
                NoticeKind::SectorLost(DriveLba(77)),
                "SectorLost",
                "sector 77 is lost: no redundancy was left to restore it",
            ),
            (ended(ScrubMode::Check, ScrubOutcome::Clean), "CheckFinished", "check finished: no mismatches"),
            (
                ended(ScrubMode::Repair, ScrubOutcome::Mismatches { count: 2048, repaired: 48 }),
                "CheckFinished",
                "repair finished: repaired 48, 2000 mismatches left",
            ),
            (ended(ScrubMode::Check, aborted), "CheckStopped", "check aborted at 12 %: a member failed"),
            (
                NoticeKind::RowMismatch(MismatchRange { slot: None, ..mismatch }),
                "RowMismatch",
                "stripe mismatch at sectors 8 to 15: cannot tell which member is wrong, left unchanged",
            ),
            (
                NoticeKind::RowMismatch(MismatchRange { slot: None, remedy: Remedy::CopiesLeft, ..mismatch }),
                "RowMismatch",
                "copies differ at sectors 8 to 15: cannot tell which member is wrong, left unchanged",
            ),
            (
                NoticeKind::RowMismatch(mismatch),
                "RowMismatch",
                "sectors 8 to 15 do not match the other members, left unchanged",
            ),
            (
                corrected(Remedy::Parity),
                "RowCorrected",
                "stripe mismatch at sectors 8 to 15: parity made again from the data",
            ),
            (
                corrected(Remedy::Copies),
                "RowCorrected",
                "copies differ at sectors 8 to 15: the first was copied to the others",
            ),
            (
                NoticeKind::RowMismatch(MismatchRange { len: Sectors(24), slot: None, ..mismatch }),
                "RowMismatch",
                "stripe mismatch at sectors 8 to 31 (8 of them): cannot tell which member is wrong, left unchanged",
            ),
            (NoticeKind::CheckStarted(ScrubMode::Repair), "CheckStarted", "repair begins"),
            (NoticeKind::RebuildStarted(Fill::Rebuild), "RebuildStarted", "rebuild begins"),
            (NoticeKind::RebuildStarted(Fill::Replacement), "RebuildStarted", "replacement begins"),
            (NoticeKind::RebuildAborted(Fill::Replacement), "RebuildStopped", "replacement aborted"),
            (NoticeKind::Degraded { tolerated: 0 }, "DegradedArray", "degraded: no further failure tolerated"),
            (NoticeKind::Degraded { tolerated: 1 }, "DegradedArray", "degraded: one more failure tolerated"),
        ];
        for (kind, event, text) in cases {
            assert_eq!((kind.event(), kind.to_string().as_str()), (event, text));
        }
    }
}
