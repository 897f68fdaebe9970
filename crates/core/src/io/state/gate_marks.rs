//! The marks that the write gate asks for: no member is written before its superblock says, durably, that the array is
//! active, and before the bitmap's bit is durable.

use openraid_units::{Instant, Nanos, SetId};

use crate::array::sets::Sets;
use crate::call::Call;
use crate::events::Wake;
use crate::io::state::op::Op;
use crate::io::state::ops::Ops;
use crate::io::state::wait::{Gate, Hindrance, Wait};
use crate::planted::{Flaw, Planted};
use crate::reason::Reason;
use crate::trace::Trace;

/// Rules 2 and 3 of the write gate: count the operation as a writer of its set, and hold it until the active mark
/// and its bitmap bits are durable.
///
/// The operation fails if the array has failed, or if the mark cannot be written: after a crash no resync would
/// follow.
pub(crate) fn begin_write(sets: &mut Sets, ops: &mut Ops, index: u32, call: &mut Call) -> Gate {
    let op = &mut ops[index];
    let (set_id, begun) = (op.set(), op.is_writer());
    let set = sets.get_mut(set_id);
    let needs_mark = set.needs_mark();
    if set.has_failed() || (needs_mark && set.has_stale_metadata()) {
        return Err(Hindrance::Failed);
    }
    if !begun {
        let range = set.bitmap.is_some().then(|| op.marked_range(set));
        op.count_as_writer(true);
        set.mark.begin_write(call.now());
        if let (Some(bitmap), Some((from, to))) = (&mut set.bitmap, range) {
            bitmap.begin(from, to);
            // The first bit that is set makes the next search for quiet bits due, perhaps at once.
            let look = bitmap.next_look();
            sets.look_at(look, Wake::Bitmap);
        }
    }
    if !needs_mark {
        return Ok(());
    }
    if !sets.mark_active(call.planted(), set_id) {
        note_first_wait(sets, ops, call.trace(), index, Reason::WaitedForActiveMark, !begun);
        return Err(Hindrance::Waits(Wait::ActiveMark));
    }
    if !call.planted().has(Flaw::BitmapLate) && !ops[index].are_bits_durable(sets.get(set_id)) {
        if !begun {
            sets.look();
        }
        note_first_wait(sets, ops, call.trace(), index, Reason::WaitedForBitmap, !begun);
        return Err(Hindrance::Waits(Wait::Bitmap));
    }
    Ok(())
}

fn note_first_wait(sets: &mut Sets, ops: &Ops, trace: &mut Trace, index: u32, reason: Reason, is_first: bool) {
    if is_first {
        trace.note_op(sets, ops, index, reason, u64::from(index), 0);
    }
}

/// An operation that may have counted as a writer has ended.
pub(crate) fn end_write(sets: &mut Sets, op: &mut Op, now: Instant, clean_delay: Nanos) {
    if !op.is_writer() {
        return;
    }
    let set = sets.get_mut(op.set());
    let range = set.bitmap.is_some().then(|| op.marked_range(set));
    op.count_as_writer(false);
    set.mark.end_write(now);
    // A session begins after the last write without the journal has ended.
    let is_at_rest = set.journal.is_asked() && set.is_at_rest();
    let quiet_at = now + clean_delay;
    if let (Some(bitmap), Some((from, to))) = (&mut set.bitmap, range) {
        bitmap.end(from, to);
    }
    sets.look_at(quiet_at, Wake::CleanMark);
    if is_at_rest {
        sets.look();
    }
}

/// Rule 4 of the write gate: hold a host write until the failure of each member is durable on the other members.
///
/// After a crash a log (journal or partial parity log) or a bitmap resync restores consistency. Neither covers writes
/// that a member missed when it failed, or parity that was left out: after a power cut the member would rejoin as in
/// sync with stale data. It fails if the failure cannot be recorded.
#[inline]
pub(crate) fn await_failure_marks(sets: &Sets, id: SetId, planted: Planted) -> Gate {
    let set = sets.get(id);
    let has_logs = || set.ppl.is_some() || set.bitmap.is_some() || set.journal.has_session();
    if set.is_failure_durable() || !has_logs() || planted.has(Flaw::WriteGateOpen) {
        return Ok(());
    }
    if set.has_stale_metadata() {
        return Err(Hindrance::Failed);
    }
    Err(Hindrance::Waits(Wait::FailureMark))
}
