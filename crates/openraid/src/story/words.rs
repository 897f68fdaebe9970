//! Words for steps.

use openraid_core::actions::{DriveOp, JobKind, ReplyStatus};
use openraid_core::events::RequestKind;
use openraid_core::reason::Reason;
use openraid_core::request_steps::{StepPlace, Work};
use openraid_core::slot_set::SlotSet;
use openraid_units::{Bytes, DriveId, DriveLba, Sectors, Slot};

use super::model::StepKind;
use super::StoryNames;
use crate::quantity::{counted, human};

/// A request's kind.
pub fn kind_word(kind: RequestKind) -> &'static str {
    match kind {
        RequestKind::Read => "read",
        RequestKind::Write { .. } => "write",
        RequestKind::Flush => "flush",
        RequestKind::Trim { .. } => "trim",
        RequestKind::WriteZeroes { .. } => "write-zeroes",
    }
}

/// How something ended.
pub fn status_word(status: ReplyStatus) -> &'static str {
    match status {
        ReplyStatus::Ok => "ok",
        ReplyStatus::IoError => "I/O error",
        ReplyStatus::OutOfRange => "does not fit the array",
        ReplyStatus::NoSpace => "a member is full",
        ReplyStatus::ReadOnly => "the array takes no writes",
        ReplyStatus::Offline => "the array is stopped, or the client went away",
    }
}

/// A member's name.
pub fn drive_name(names: &StoryNames, drive: DriveId) -> String {
    names.drives.get(&drive).cloned().unwrap_or_else(|| format!("drive {drive}"))
}

/// The purpose of an operation.
pub fn made_text(work: Work, place: StepPlace) -> String {
    let what = match work {
        Work::Read | Work::RowRead => "read",
        Work::Write | Work::RowWrite => "write",
        Work::Discard => "discard",
        Work::Flush => return "flush all members that were written to".into(),
        Work::Destage | Work::RowDestage => "write the dirty data of",
    };
    match place {
        StepPlace::Extent { at, len } => format!("{what} {} at sector {} of the set", human(len.bytes()), at.get()),
        // Destage and discard take whatever columns there are.
        StepPlace::Rows { stripe, lo, hi, columns: (_, 0) } => {
            format!("{what} rows {lo} to {} of stripe {stripe}", hi - 1)
        }
        StepPlace::Rows { stripe, lo, hi, columns: (first, 1) } => {
            format!("{what} rows {lo} to {} of stripe {stripe}, column {first}", hi - 1)
        }
        StepPlace::Rows { stripe, lo, hi, columns: (first, count) } => {
            format!("{what} rows {lo} to {} of stripe {stripe}, columns {first} to {}", hi - 1, first + count - 1)
        }
        StepPlace::Whole => format!("{what} the set"),
    }
}

/// How it will be done, and why.
pub fn planned_text(reason: Reason, rejected: u32, parity: SlotSet, lost: SlotSet) -> String {
    let mut text = reason.text().to_owned();
    if rejected > 0 {
        text.push_str(&format!(" (the other way would have read {rejected})"));
    }
    if !parity.is_empty() {
        text.push_str(&format!("; new parity for {}", slots(parity)));
    }
    if !lost.is_empty() {
        text.push_str(&format!("; {} recovered", slots(lost)));
    }
    text
}

fn slots(set: SlotSet) -> String {
    let all: Vec<String> = set.iter().map(|slot| slot.0.to_string()).collect();
    format!("slot {}", all.join(" and "))
}

/// The kind of step of a member's command.
pub const fn asked_kind(op: DriveOp) -> StepKind {
    match op {
        DriveOp::Read => StepKind::MemberRead,
        DriveOp::Write { .. } => StepKind::MemberWrite,
        DriveOp::Flush => StepKind::MemberFlush,
        DriveOp::Discard => StepKind::MemberDiscard,
        DriveOp::WriteZeroes { .. } => StepKind::MemberWriteZeroes,
    }
}

/// A member's command in words.
pub fn asked_text(op: DriveOp, slot: Slot, member: &str, lba: DriveLba, len: Sectors, parity: bool) -> String {
    let what = match (op, parity) {
        (DriveOp::Read, false) => "read",
        (DriveOp::Read, true) => "read old parity:",
        (DriveOp::Write { .. }, false) => "write",
        (DriveOp::Write { .. }, true) => "write parity:",
        (DriveOp::Flush, _) => return format!("flush slot {slot} ({member})"),
        (DriveOp::Discard, _) => "discard",
        (DriveOp::WriteZeroes { .. }, _) => "write zeroes:",
    };
    format!("{what} {} of slot {slot} ({member}), sector {}", human(len.bytes()), lba.get())
}

/// The kind of step of a computation.
pub const fn job_kind(kind: JobKind) -> StepKind {
    match kind {
        JobKind::Generate | JobKind::Update => StepKind::Parity,
        JobKind::Recover { .. } => StepKind::Recover,
        JobKind::Check | JobKind::Compare => StepKind::Compare,
        JobKind::Checksum => StepKind::Checksum,
        JobKind::Copy => StepKind::Copy,
    }
}

/// A computation in words.
pub fn job_text(kind: JobKind, columns: u16, len: u32) -> String {
    let each = human(Bytes(u64::from(len)));
    let all = counted(columns.into(), "column", "columns");
    match kind {
        JobKind::Generate => format!("parity from {all} of {each}"),
        JobKind::Update => format!("parity changed by old and new bytes of {all} of {each}"),
        JobKind::Recover { lost } => {
            format!("{} of {each} from the others", counted(lost.into(), "lost column", "lost columns"))
        }
        JobKind::Check | JobKind::Compare => format!("{all} of {each} compared"),
        JobKind::Checksum => format!("checksum of {each}"),
        JobKind::Copy => format!("{} of {each} copied", counted(columns.into(), "piece", "pieces")),
    }
}
