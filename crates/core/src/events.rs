//! The controller's input: host requests, completions, drives.

use openraid_units::{ArrayId, ArrayOffset, BlockSize, DriveLba, Nanos, Sectors, Tag, Token};

use crate::actions::{DriveOp, JobColumn};

/// The kind of a host request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// A read.
    Read,
    /// Write; with `fua` the reply means that the data is on stable media.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Every write replied before this request was submitted becomes durable.
    Flush,
    /// The range is not needed; its content afterwards is undefined.
    Trim {
        /// Force unit access.
        fua: bool,
    },
    /// The range reads as zero afterwards.
    WriteZeroes {
        /// Force unit access.
        fua: bool,
        /// May members free the space?
        may_discard: bool,
    },
}

/// A host request. Offsets and lengths are in bytes; any alignment is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRequest {
    /// The host's own name for it, returned with every action that belongs to it.
    pub token: Token,
    /// Number of the array.
    pub array: ArrayId,
    /// Kind of the request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: ArrayOffset,
    /// Bytes; zero is allowed and does nothing.
    pub len: u64,
}

/// The controller has its maximum number of requests: try again after the next completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueFull(
    /// The request that was refused.
    pub BlockRequest,
);

/// The error of a drive command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveError {
    /// This sector (of the command's range) could not be read or written; others may be good.
    Media {
        /// First bad sector, as far as the drive says; the start of the command otherwise.
        lba: DriveLba,
    },
    /// The drive is not there any more.
    Gone,
    /// The drive gave an invalid answer, or refused a valid command.
    Protocol,
    /// A FLUSH failed: all unflushed writes may be lost.
    FlushFailed,
    /// The storage of the member is full (a thin volume, or a sparse file on a full file system).
    NoSpace,
    /// The drive refuses writes.
    ReadOnly,
    /// The drive does not support this command.
    Unsupported,
}

impl core::fmt::Display for DriveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Media { lba } => write!(f, "unreadable sector {}", lba.get()),
            Self::Gone => f.write_str("the drive is gone"),
            Self::Protocol => f.write_str("an I/O error: unexpected reply"),
            Self::FlushFailed => f.write_str("a flush failed"),
            Self::NoSpace => f.write_str("no space left"),
            Self::ReadOnly => f.write_str("read-only"),
            Self::Unsupported => f.write_str("not supported"),
        }
    }
}

/// The host disconnected during a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostGone;

/// The result of a parity job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParityVerdict {
    /// None: the job only computed.
    Done,
    /// Everything matches.
    Match,
    /// P is wrong and everything else matches.
    PWrong,
    /// Q is wrong and everything else matches.
    QWrong,
    /// This column (its place in the job's columns) is wrong in every row that does not match.
    ColumnWrong(u16),
    /// It does not match, and no single column explains it.
    Unknown,
    /// The requested checksum.
    Checksum(u32),
}

impl ParityVerdict {
    /// The combined verdict of two rows: if only one of them has mismatches, or both have the same verdict, that one.
    #[must_use]
    pub fn and(self, row: Self) -> Self {
        match (self, row) {
            (Self::Match, row) => row,
            (before, Self::Match) => before,
            (before, row) if before == row => before,
            _ => Self::Unknown,
        }
    }

    /// The verdict on copies of one sector: the copy that differs is named if all others agree and are the majority.
    #[must_use]
    pub fn of_copies<'a>(copies: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let count = copies.clone().count();
        let votes = |wanted: &[u8]| copies.clone().filter(|copy| *copy == wanted).count();
        let Some(majority) = copies.clone().find(|copy| votes(copy) * 2 > count) else { return Self::Unknown };
        let mut odd = (0..).zip(copies).filter(|(_, copy)| *copy != majority);
        match (odd.next(), odd.next()) {
            (None, _) => Self::Match,
            (Some((place, _)), None) => Self::ColumnWrong(place),
            (Some(_), Some(_)) => Self::Unknown,
        }
    }

    /// The verdict on one row with P and Q: which of them differ from the data, and the index of the column that explains
    /// both differences, if a single one does.
    #[must_use]
    pub fn of_row(p_differs: bool, q_differs: bool, explains: Option<u8>, columns: &[JobColumn]) -> Self {
        match (p_differs, q_differs) {
            (false, false) => Self::Match,
            (true, false) => Self::PWrong,
            (false, true) => Self::QWrong,
            (true, true) => explains.map_or(Self::Unknown, |index| Self::of_column(index, columns)),
        }
    }

    /// The verdict on rows of which only P or only Q is there: a difference names neither parity nor a column.
    #[must_use]
    pub const fn of_one_parity(matches: bool) -> Self {
        if matches {
            Self::Match
        } else {
            Self::Unknown
        }
    }

    /// The column of this index is wrong.
    #[must_use]
    pub fn of_column(index: u8, columns: &[JobColumn]) -> Self {
        let place = columns.iter().position(|column| column.index == index);
        place.and_then(|place| u16::try_from(place).ok()).map_or(Self::Unknown, Self::ColumnWrong)
    }
}

/// The end of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// A drive command ended.
    Drive {
        /// Tag of the command.
        tag: Tag,
        /// Result of the command.
        result: Result<(), DriveError>,
    },
    /// A transfer ended.
    Transfer {
        /// Tag of the transfer.
        tag: Tag,
        /// Result of the transfer.
        result: Result<(), HostGone>,
    },
    /// A parity job ended.
    Job {
        /// Tag of the job.
        tag: Tag,
        /// What it found.
        verdict: ParityVerdict,
    },
}

/// Properties of a drive when it is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveInfo {
    /// Size of the drive.
    pub capacity: Sectors,
    /// Smallest unit that can be read or written.
    pub block: BlockSize,
    /// Does it rotate?
    pub rotational: bool,
    /// Does it support [`crate::actions::DriveOp::Discard`]?
    pub discard: bool,
    /// Does a discarded range read as zero, guaranteed?
    pub discard_zeroes: bool,
    /// Does it support [`crate::actions::DriveOp::WriteZeroes`]?
    pub write_zeroes: bool,
    /// How long its storage keeps a write or a zeroing that has no room before it refuses the command, which is overdue
    /// that much later. Zero: it refuses at once.
    pub room_wait: Nanos,
    /// Does its storage keep flushes and discards as well? A file system needs room for its own records then.
    pub flush_waits: bool,
}

impl DriveInfo {
    /// How long its storage may keep such a command for lack of room.
    #[must_use]
    pub const fn keeps(&self, op: DriveOp) -> Nanos {
        match op {
            DriveOp::Read => Nanos::ZERO,
            DriveOp::Flush | DriveOp::Discard if !self.flush_waits => Nanos::ZERO,
            _ => self.room_wait,
        }
    }
}

/// The reason for the next call of the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wake {
    /// There was no room for all actions: drain, then call again.
    MoreToDo,
    /// A drive will be overdue.
    CommandTimeout,
    /// An idle array is to be marked clean.
    CleanMark,
    /// Bitmap bits must be checked.
    Bitmap,
    /// Background work may continue.
    Background,
    /// Dirty data has waited long enough.
    Destage,
    /// The journal's tail may move.
    Journal,
    /// A part of a stripe has waited long enough for adjoining writes.
    Gather,
}

/// The reason why a command failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandError {
    /// The drive reported it.
    Drive(DriveError),
    /// It did not answer in time.
    Timeout,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use openraid_units::PoolOffset;

    use super::JobColumn;
    use super::ParityVerdict::{self, ColumnWrong, Match, PWrong, QWrong, Unknown};

    /// The meaning of combined verdicts, independent of order: the one verdict, or unknown.
    #[test]
    fn rows_name_a_column_only_if_they_agree() {
        let all = [Match, PWrong, ColumnWrong(0), ColumnWrong(1), Unknown];
        for number in 0..all.len().pow(3) {
            let rows = [number / 25, number / 5 % 5, number % 5].map(|place| all[place]);
            let mut wrong: Vec<ParityVerdict> = rows.into_iter().filter(|row| *row != Match).collect();
            wrong.dedup();
            let expected = match wrong[..] {
                [] => Match,
                [one] => one,
                _ => Unknown,
            };
            assert_eq!(rows.into_iter().fold(Match, ParityVerdict::and), expected, "{rows:?}");
        }
    }

    #[test]
    fn a_column_is_named_only_if_p_and_q_differ_and_one_parity_alone_names_nothing() {
        let column = |index| JobColumn { index, at: PoolOffset(0), old: PoolOffset(0) };
        let columns = [column(5), column(2)];
        let of = |p, q, explains| ParityVerdict::of_row(p, q, explains, &columns);
        assert_eq!([of(false, false, None), of(true, false, None), of(false, true, None)], [Match, PWrong, QWrong]);
        assert_eq!(
            [of(true, true, Some(2)), of(true, true, Some(3)), of(true, true, None)],
            [ColumnWrong(1), Unknown, Unknown]
        );
        assert_eq!([ParityVerdict::of_one_parity(true), ParityVerdict::of_one_parity(false)], [Match, Unknown]);
    }

    #[test]
    fn a_faulty_copy_is_named_only_by_a_majority() {
        for (copies, expected) in [
            (&["a", "a"][..], Match),
            (&["a", "b"], Unknown),
            (&["a", "a", "b"], ColumnWrong(2)),
            (&["b", "a", "a"], ColumnWrong(0)),
            (&["a", "b", "c"], Unknown),
            (&["a", "a", "a", "b", "c"], Unknown),
            (&["a", "a", "b", "b"], Unknown),
        ] {
            assert_eq!(ParityVerdict::of_copies(copies.iter().map(|copy| copy.as_bytes())), expected, "{copies:?}");
        }
    }
}
