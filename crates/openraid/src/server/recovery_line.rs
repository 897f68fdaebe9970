//! One line about the recovery of an array that was not clean at its start, until its redundancy is complete again.

use openraid_core::admin::JournalStatus;
use openraid_core::array::assemble::{Assembly, PlannedBitmap};
use openraid_format::Superblock;
use openraid_units::Bytes;

use crate::on_disk::sets::{self, SetPlan};
use crate::output::verdicts::BITMAP_REMADE;
use crate::quantity::{counted, human};

/// Events of an array whose initial sync was due when `create` stopped it, and that nothing has started since.
const EVENTS_OF_CREATION: u64 = 3;
/// `create` stops an array this many seconds after it has made it, at the latest.
const CREATION_SECONDS_MAX: u64 = 60;

/// The line for an array of these members; `None` if it is clean, no journal has entries for it, and its bitmap is good.
pub(super) fn line(set: &SetPlan, journal: Option<&JournalStatus>) -> Option<String> {
    let plan = set.plan.as_ref().ok()?;
    let waiting = journal.into_iter().flat_map(|journal| &journal.arrays).filter(|array| array.set_uuid == set.uuid);
    let entries: u64 = waiting.map(|array| array.waiting).sum();
    let logged = plan.ppl.as_ref().filter(|log| log.dirty).map(|log| log.redo.len() as u64);
    if entries == 0 && logged.is_none() && plan.resync_from.is_none() {
        let damaged = plan.bitmap.as_ref().filter(|bitmap| !bitmap.valid);
        return damaged.map(|_| format!("{}: {BITMAP_REMADE}", sets::array_name(&set.newest)));
    }
    if entries == 0 && plan.resync_from.is_some() && is_new(&set.newest) {
        return Some(format!("{}: new: the initial sync follows", sets::array_name(&set.newest)));
    }
    let mut parts = Vec::new();
    if entries > 0 {
        parts.push(format!("{} of the journal replayed", counted(entries, "entry", "entries")));
    }
    parts.extend(
        logged.map(|count| format!("{} of the partial parity log replayed", counted(count, "entry", "entries"))),
    );
    // Only a clean stop records a position to continue from: that of a new array's first sync, for example.
    let stopped_in_a_sync =
        parts.is_empty() && plan.bitmap.is_none() && plan.resync_from.is_some_and(|at| !at.is_zero());
    let state = if stopped_in_a_sync { "not in sync yet" } else { "not clean at the start" };
    parts.push(resync_text(plan));
    Some(format!("{}: {state}: {}", sets::array_name(&set.newest), parts.join(", ")))
}

/// Has `create` made this array, and nothing started it since? A crash since then would have left more events, or less.
fn is_new(newest: &Superblock) -> bool {
    let took = newest.updated.seconds().saturating_sub(newest.created.seconds());
    newest.events == EVENTS_OF_CREATION && took <= CREATION_SECONDS_MAX
}

fn resync_text(plan: &Assembly) -> String {
    match (plan.resync_from, &plan.bitmap) {
        (None, _) => "no resync needed".into(),
        (Some(_), Some(bitmap)) if bitmap.valid => bitmap_text(bitmap),
        (Some(_), Some(_)) => format!("{BITMAP_REMADE}; everything is resynced"),
        (Some(from), None) if from.is_zero() => "everything is resynced (no bitmap)".into(),
        (Some(from), None) => format!("the sync continues from {} of each member", human(from.bytes())),
    }
}

fn bitmap_text(bitmap: &PlannedBitmap) -> String {
    let chunk = Bytes(u64::from(bitmap.header.chunk));
    let regions = bitmap.header.sync_size.bytes().get().div_ceil(chunk.get());
    // Bits after the last region have no meaning.
    let ones: u64 = bitmap.bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let marked = ones.min(regions);
    let size = human(Bytes(marked.saturating_mul(chunk.get()).min(bitmap.header.sync_size.bytes().get())));
    format!("bitmap: {marked} of {} resynced ({size} of each member)", counted(regions, "region", "regions"))
}
