//! Before an operation writes to members, the journal has its redo records, complete: no redo record depends on the content
//! of a member.
//!
//! A destaged column is in the journal already, as host data, and its redo record refers to it. If the line was written
//! again after it was staged, or consists of several parts, the staged bytes are logged again.

use alloc::vec::Vec;
use openraid_format::{JournalRecord, RingSector, JOURNAL_ALIGN, JOURNAL_RECORDS_MAX};
use openraid_units::{Instant, MemberLba, Nanos, PoolOffset, Sectors, SetId, SetLba, Slot};

use super::redo_plan::{plan_redo, InLog, RedoPlan, RedoView, REDOS_MAX};
use super::Journal;
use crate::actions::{JobColumn, JobKind};
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::cache::lines::Line;
use crate::cache::Cache;
use crate::call::Call;
use crate::geometry::cache_units::lines_of;
use crate::geometry::shape::Shape;
use crate::geometry::COPIES_MAX;
use crate::io::state::footprint::{stripe_slots, Extent};
use crate::io::state::gate_marks::end_write;
use crate::io::state::job::Job;
use crate::io::state::op::{EntryState, Op, OpKind, OpPayload, WorksFor};
use crate::io::state::ops::Ops;
use crate::io::state::row_frames::RowFrames;
use crate::io::state::wait::Wait;
use crate::io::state::wait::{Gate, Hindrance};
use crate::journal::session::ask_for_session;
use crate::journal::set_journal::{Session, SetState};
use crate::planted::{Flaw, Planted};
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::slot_set::SlotSet;
use crate::trace::Trace;

/// Members of a set with parity that the journal protects: a write past the cache over all columns has a revoke and a redo
/// record for each.
pub(crate) const COLUMNS_MAX: u16 = 60;
const _: () = assert!(2 * COLUMNS_MAX as usize <= JOURNAL_RECORDS_MAX && COLUMNS_MAX as usize <= REDOS_MAX);
const _: () = assert!(REDOS_MAX <= JOURNAL_RECORDS_MAX);

/// Place of staged lines in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Logged {
    sequence: u64,
    /// Sectors from the start of the entry's payload.
    payload_at: Sectors,
    len: Sectors,
}

impl Journal {
    /// The redo records of an operation are on the members, or were not needed.
    pub(crate) fn unlog(&mut self, sets: &mut Sets, op: &mut Op) {
        let Some(sequence) = op.entry().sequence() else { return };
        op.set_entry(EntryState::None);
        let set = op.set();
        sets.get_mut(set).journal.logged -= 1;
        // A stripe of a failed set was not written completely, and will be written when the set comes back: its entries
        // stay for that.
        self.log.unpin_if_held(sequence);
        sets.look();
    }

    /// Rule 1 of the write gate: hold a write while the journal session of its set begins or ends. If the session is off
    /// and the set should have one, ask for it. Destage is not held: a session ends only after destage is through.
    pub(crate) fn await_session(&self, sets: &mut Sets, op: &mut Op, (now, delay): (Instant, Nanos)) -> Gate {
        if op.is_destage() {
            return Ok(());
        }
        let set = sets.get(op.set());
        // A session that begins sets the active mark together with its own mark. If a write set the active mark before and
        // the power failed, a degraded array would start only by force. A failed set begins no session.
        // Ending a session also clears the active mark. A write already counted would keep the mark set; if a new session
        // started first, the superblocks would say "dirty, no journal", and a crash would force a resync.
        let moves = matches!(
            set.journal.session(),
            Session::Settling | Session::Entering | Session::Leaving | Session::Unmarking
        );
        if !self.is_lacked_by(set) && (set.has_failed() || !moves) {
            return Ok(());
        }
        end_write(sets, op, now, delay);
        ask_for_session(sets, op.set());
        Err(Hindrance::Waits(Wait::Session))
    }

    /// Is the session of a set off although the set should have one? Dirty data that the journal does not hold is destaged
    /// first, and destage may wait for the range of a write.
    fn is_lacked_by(&self, set: &Set) -> bool {
        !set.journal.has_session() && set.dirty.all() == 0 && self.is_wanted_by(set)
    }

    /// Is there a reason for an operation to wait for the session of its set, by rule 1 or by rule 5?
    pub(crate) fn holds_for_session(&self, set: &Set, op: &Op) -> bool {
        let is_changing = !matches!(set.journal.session(), Session::Off | Session::On);
        is_changing || (!op.is_destage() && self.is_lacked_by(set))
    }

    /// Hold a destage to members without parity until the entries of its lines are durable. If a crash leaves copies that
    /// differ, replay makes them equal.
    fn await_data_entries(&mut self, cache: &Cache, ops: &mut Ops, index: u32, planted: Planted) -> Gate {
        let op = &mut ops[index];
        let extent = op.extent();
        let newest = lines_of(extent.at, extent.len)
            .filter_map(|(number, ..)| cache.newest_entry_of(op.set(), number))
            .max()
            .unwrap_or(0);
        if newest <= self.durable || planted.has(Flaw::DestageBeforeEntry) {
            return Ok(());
        }
        let group = if newest == self.flying.sequence { &mut self.flying } else { &mut self.open };
        group.ops.push(index);
        op.set_entry(EntryState::AwaitsData);
        Err(Hindrance::Waits(Wait::Entry))
    }

    /// The records of an operation are in the open group: it waits for the entry.
    fn join_group(&mut self, index: u32, ops: &mut Ops, sets: &mut Sets, trace: &mut Trace) -> Gate {
        let sequence = self.open.sequence;
        let op = &mut ops[index];
        op.set_entry(EntryState::InGroup(sequence));
        self.open.ops.push(index);
        self.log.pin(sequence);
        sets.get_mut(op.set()).journal.logged += 1;
        let stripe = op.stripe().map_or(0, |stripe| stripe.0);
        trace.note_op(sets, ops, index, Reason::RedoLogged, stripe, 0);
        trace.op(ops, index, || StepEvent::Logged { entry: sequence });
        Err(Hindrance::Waits(Wait::Entry))
    }

    fn revoke(&mut self, array: u8, (set_lba, sectors): (SetLba, Sectors), now: Instant) {
        self.append_record(JournalRecord::Revoke { array, set_lba, sectors }, now);
    }

    /// Append the records of rows to the open group, which has room for them. The bytes of `plan.inline` are to be copied as
    /// `columns` say. `known` is a slot that needs one reference, and that reference.
    fn append_rows(
        &mut self,
        rows: &Rows,
        plan: &RedoPlan,
        known: Option<(Slot, Logged)>,
        columns: &mut Vec<JobColumn>,
        now: Instant,
    ) {
        let (op, set) = (rows.op, rows.set);
        let (array, sectors) = (set.journal.index(), rows.sectors());
        let (member_lba, _) = op.member_rows(set);
        rows.columns().for_each(|set_lba| self.revoke(array, (set_lba, sectors), now));
        // The members get the other columns with this entry, so that a replay has nothing to destage there.
        let mut run: Option<(SetLba, Sectors)> = None;
        for (at, len) in plan.revoked.iter().map(|slot| op.band_extent(set, slot)) {
            match &mut run {
                Some((start, so_far)) if *start + *so_far == at => *so_far += len,
                _ => {
                    if let Some(full) = run.replace((at, len)) {
                        self.revoke(array, full, now);
                    }
                }
            }
        }
        if let Some(last) = run {
            self.revoke(array, last, now);
        }
        for slot in plan.outdated {
            self.append_record(JournalRecord::Outdated { array, slot, member_lba, sectors }, now);
        }
        for slot in plan.referred {
            match known {
                Some((single, logged)) if single == slot => self.refer(array, slot, member_lba, logged, now),
                _ => {
                    let (at, len) = op.band_extent(set, slot);
                    let mut done = Sectors::ZERO;
                    while done < len {
                        let logged = rows.logged_at(at + done, len - done).expect("counted before");
                        self.refer(array, slot, member_lba + done, logged, now);
                        done += logged.len;
                    }
                }
            }
        }
        if plan.inline.is_empty() {
            return;
        }
        let (parities, frames) = (op.computed_slots(), RowFrames::of(op));
        for slot in plan.inline {
            let (payload_at, at) = self.append_payload(sectors);
            let old = frames.written(op.geometry(set), parities, slot);
            columns.push(JobColumn { index: 0, at, old });
            self.append_record(JournalRecord::Redo { array, slot, member_lba, sectors, payload_at }, now);
        }
    }

    /// Append a reference to bytes of the log.
    fn refer(&mut self, array: u8, slot: Slot, member_lba: MemberLba, logged: Logged, now: Instant) {
        let sectors = logged.len;
        let record = if logged.sequence == self.open.sequence {
            JournalRecord::Redo { array, slot, member_lba, sectors, payload_at: logged.payload_at }
        } else {
            let entry = self.log.get(logged.sequence);
            let at = RingSector(entry.position + JOURNAL_ALIGN.get() + logged.payload_at.get());
            JournalRecord::RedoRef { array, slot, member_lba, sectors, at }
        };
        self.append_record(record, now);
    }

    /// Append the records of an extent of a set without parity, past the cache, if the open group has room for them.
    /// Returns where its bytes are to be copied, or the reason to wait for.
    fn append_extent(&mut self, set: &Set, extent: Extent, now: Instant) -> Result<PoolOffset, Reason> {
        self.group_takes(fragments(set, extent).count() + 1, extent.len.get(), 0)?;
        let array = set.journal.index();
        self.revoke(array, (extent.at, extent.len), now);
        let (start, to) = self.append_payload(extent.len);
        for (slot, member_lba, done, sectors) in fragments(set, extent) {
            let payload_at = start + done;
            self.append_record(JournalRecord::Redo { array, slot, member_lba, sectors, payload_at }, now);
        }
        Ok(to)
    }

    /// Rule 5 of the write gate: if the set is in a session, put the redo records of the operation into the journal, and
    /// hold it until they are durable.
    pub(crate) fn log_write(
        &mut self,
        index: u32,
        ops: &mut Ops,
        sets: &mut Sets,
        cache: &Cache,
        call: &mut Call,
    ) -> Gate {
        let op = &ops[index];
        // If the journal was lost before the entry was durable, the operation is written as if it had none.
        match op.entry() {
            EntryState::AwaitsData | EntryState::InGroup(_) => return Err(Hindrance::Waits(Wait::Entry)),
            EntryState::Through(entry) if self.is_live() || entry <= self.durable => return Ok(()),
            EntryState::None | EntryState::Through(_) => {}
        }
        match sets.get(op.set()).journal.session() {
            Session::Off => Ok(()),
            Session::On if !self.is_live() => write_without(sets, op, call.planted()),
            // The write is logged even if the set does not want its session any more: destage may wait for the range that
            // this operation holds, and the session ends only after destage is through.
            Session::On => match op.kind() {
                OpKind::Destage => self.await_data_entries(cache, ops, index, call.planted()),
                OpKind::RowDestage | OpKind::RowWrite => self.log_rows(index, ops, sets, cache, call),
                _ => self.log_extent(index, ops, sets, call),
            },
            _ => Err(Hindrance::Waits(Wait::Session)),
        }
    }

    fn log_rows(&mut self, index: u32, ops: &mut Ops, sets: &mut Sets, cache: &Cache, call: &mut Call) -> Gate {
        let op = &ops[index];
        let rows = Rows { op, set: sets.get(op.set()), cache };
        let (plan, known) = rows.plan();
        let payload = rows.sectors().get() * u64::from(plan.inline.len());
        if let Err(reason) = self.group_takes(plan.records, payload, 0) {
            return Err(Hindrance::Waits(Wait::JournalRoom(reason)));
        }
        let (now, actions) = (call.now(), call.actions());
        let (columns, bytes) = (actions.columns.len(), op.row_bytes());
        self.append_rows(&rows, &plan, known, &mut actions.columns, now);
        if !plan.inline.is_empty() {
            ops.push_job(index, Job::new(JobKind::Copy, bytes, columns), call);
        }
        self.join_group(index, ops, sets, call.trace())
    }

    fn log_extent(&mut self, index: u32, ops: &mut Ops, sets: &mut Sets, call: &mut Call) -> Gate {
        let op = &ops[index];
        let to = match self.append_extent(sets.get(op.set()), op.extent(), call.now()) {
            Ok(to) => to,
            Err(reason) => return Err(Hindrance::Waits(Wait::JournalRoom(reason))),
        };
        let from = if let OpPayload::Host(base) = op.payload() { base } else { PoolOffset::ZERO };
        let bytes = u32::try_from(op.extent().len.bytes().get()).expect("an extent is small");
        ops.push_copy(index, (to, from), bytes, call);
        self.join_group(index, ops, sets, call.trace())
    }
}

/// Members have refused rows of which the log has records. Later records of these rows do not know them, so a replay of
/// both leaves parity that does not fit: the next start makes all rows consistent. True if the superblocks say so.
pub(crate) fn mark_refusal(sets: &mut Sets, op: &Op, planted: Planted) -> bool {
    let set = sets.get(op.set());
    let is_logged = matches!(op.entry(), EntryState::Through(_)) && set.journal.is_on();
    if !is_logged || set.has_stale_metadata() || planted.has(Flaw::RefusalUnmarked) {
        return true;
    }
    request_stale_mark(sets, op.set(), planted)
}

/// Request that the superblocks record that the journal lacks later writes; true if they do. If a stale journal is
/// found again after a crash, it does not replace a resync.
fn request_stale_mark(sets: &mut Sets, id: SetId, planted: Planted) -> bool {
    let set = sets.get_mut(id);
    if planted.has(Flaw::StaleJournalUnmarked) || !set.needs_mark() {
        return true;
    }
    let metadata = set.metadata.as_mut().expect("sets that are marked have metadata");
    if let Some(generation) = set.journal.stale() {
        return metadata.durable() >= generation;
    }
    let generation = metadata.request();
    set.journal.set_stale(generation);
    sets.look();
    false
}

/// The rows that an operation writes, its set, and the cache with the lines that it destages.
struct Rows<'a> {
    op: &'a Op,
    set: &'a Set,
    cache: &'a Cache,
}

impl Rows<'_> {
    fn sectors(&self) -> Sectors {
        Sectors(u64::from(self.op.rows()))
    }

    /// The redo plan, and a shortcut: the last slot that one reference covers. Most writes have only this slot.
    fn plan(&self) -> (RedoPlan, Option<(Slot, Logged)>) {
        let view = RedoView {
            named: self.op.named_slots(self.set),
            write: self.op.written_slots(),
            parities: self.parity_slots(),
            revokes: usize::from(self.op.rows_of().named().1),
        };
        let mut known = None;
        let plan = plan_redo(&view, |slot| {
            let found = self.references_of(slot);
            if let Some((1, first)) = found {
                known = Some((slot, first));
            }
            let is_staged = found.is_some() || self.is_staged(slot);
            InLog { references: found.map(|(count, _)| count), is_staged }
        });
        (plan, known)
    }

    /// The slots of P and Q of the stripe.
    fn parity_slots(&self) -> SlotSet {
        let (parity, computed) = (self.op.parity(self.set), self.op.computed_slots());
        // Usually the operation writes all of them.
        if computed.len() == u32::from(parity.parities()) {
            return computed;
        }
        let (_, p, q) = stripe_slots(parity, parity.row(self.op.rows_of().stripe));
        let p = SlotSet::one(p);
        q.map_or(p, |q| p.with(q))
    }

    /// The rows in each column of a write past the cache: older entries mean nothing there any more.
    fn columns(&self) -> impl Iterator<Item = SetLba> + '_ {
        let rows = self.op.rows_of();
        let (first, count) = rows.named();
        let from = Sectors(u64::from(rows.part.from()));
        (first..first + count).map(move |column| self.op.parity(self.set).set_lba(rows.stripe, column, from))
    }

    /// Does a destage write everything to a slot that hosts have written there so far?
    fn is_staged(&self, slot: Slot) -> bool {
        if self.op.kind() != OpKind::RowDestage {
            return false;
        }
        let (at, len) = self.op.band_extent(self.set, slot);
        lines_of(at, len).all(|(number, ..)| self.line(number).is_some_and(Line::is_staged))
    }

    fn line(&self, number: u64) -> Option<&Line> {
        self.cache.line_of_unit(self.op.destage().unit, self.op.set(), number)
    }

    /// How many references give the bytes that a destage writes to a slot, and the first of them; `None` if the log does
    /// not have just these bytes.
    fn references_of(&self, slot: Slot) -> Option<(usize, Logged)> {
        if self.op.kind() != OpKind::RowDestage {
            return None;
        }
        let (at, len) = self.op.band_extent(self.set, slot);
        let first = self.logged_at(at, len)?;
        let mut count = 1;
        let mut done = first.len;
        while done < len {
            done += self.logged_at(at + done, len - done)?.len;
            count += 1;
        }
        Some((count, first))
    }

    /// The first part of a staged extent in the log.
    fn logged_at(&self, at: SetLba, len: Sectors) -> Option<Logged> {
        let mut found: Option<Logged> = None;
        for (number, first, last) in lines_of(at, len) {
            let Some((sequence, place)) = self.line(number)?.staged_place() else { return found };
            let payload_at = Sectors(u64::try_from(i64::from(place) + i64::try_from(first).ok()?).ok()?);
            match &mut found {
                None => found = Some(Logged { sequence, payload_at, len: Sectors(last - first) }),
                Some(run) if run.sequence == sequence && run.payload_at + run.len == payload_at => {
                    run.len += Sectors(last - first);
                }
                Some(_) => return found,
            }
        }
        found
    }
}

/// The parts of an extent on the members, one for each copy: slot and address, the sectors of the extent before it, and
/// its length.
pub(super) fn fragments(set: &Set, extent: Extent) -> impl Iterator<Item = (Slot, MemberLba, Sectors, Sectors)> + '_ {
    let mut to = Sectors::ZERO;
    let parts = core::iter::from_fn(move || {
        let from = to;
        (from < extent.len).then(|| {
            let (places, len) = set.shape().on(extent.side()).places_of(extent.at + from, extent.len - from);
            to = from + len;
            (places, from, len)
        })
    });
    parts.flat_map(|(places, from, len)| places.into_iter().flatten().map(move |(slot, at)| (slot, at, from, len)))
}

/// May rule 5 of the write gate hold an operation? Most sets have no session.
#[inline(always)]
pub(crate) fn logs_writes_of(set: &Set, op: &Op) -> bool {
    !matches!((&set.journal.state, op.entry()), (SetState::Off(_), EntryState::None))
}

/// The journal was lost: let the operation write without it when the superblocks say that the journal is stale.
///
/// Until the session has ended, a crash and a journal that is found again would replay old entries over this write. So
/// a write past the cache is acknowledged only after that. If the session cannot end, nothing is written: the next
/// start replays acknowledged data over a part of the row.
fn write_without(sets: &mut Sets, op: &Op, planted: Planted) -> Gate {
    let set = sets.get(op.set());
    // Gathered writes are held before a session begins. If it is lost, their pieces are written one by one.
    if set.has_failed_flush() || set.is_lost() || matches!(op.works_for(), WorksFor::Gather(_)) {
        return Err(Hindrance::Failed);
    }
    if !request_stale_mark(sets, op.set(), planted) {
        return Err(Hindrance::Waits(Wait::StaleMark));
    }
    if let Some(piece) = op.piece() {
        sets.signal(Signal::Orphaned(piece));
    }
    Ok(())
}

/// May a set of this shape be protected?
pub(crate) fn is_protectable(shape: &Shape) -> bool {
    if shape.has_parity() {
        shape.slots() <= COLUMNS_MAX
    } else {
        usize::from(shape.copies()) <= COPIES_MAX && !shape.is_passthrough()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Level, SetSpec};

    #[test]
    fn every_level_is_protected_but_mirrors_of_more_copies_than_a_record_can_name_are_not() {
        let member_size = Sectors(512);
        let of = |level, members: u16| {
            let sizes = alloc::vec![member_size; members.into()];
            let spec = SetSpec { level, members, chunk: Sectors(8), layout: 2, member_size, member_sizes: &sizes };
            is_protectable(&Shape::of(&spec))
        };
        assert!(of(Level::Raid5, 4) && of(Level::Raid6, 5));
        assert!(of(Level::Raid1, 16) && !of(Level::Raid1, 17));
    }
}
