//! Before an operation writes to members, the journal has its redo records, complete: no redo record depends on the content
//! of a member.
//!
//! A destaged column is in the journal already, as host data, and its redo record refers to it. If the line was written
//! again after it was staged, or consists of several parts, the staged bytes are logged again.

use openraid_format::{JournalRecord, RingSector, JOURNAL_ALIGN, JOURNAL_RECORDS_MAX};
use openraid_units::{MemberLba, PoolOffset, Sectors, SetId, SetLba, Slot};

use super::redo_plan::{plan_redo, InLog, RedoView, REDOS_MAX};
use super::session::Session;
use super::Journal;
use crate::actions::{Actions, JobColumn, JobKind};
use crate::array::sets::Sets;
use crate::cache::lines::{lines_of, Line};
use crate::controller::Controller;
use crate::geometry::Geometry;
use crate::io::footprint::{stripe_slots, Extent};
use crate::io::gate::Gate;
use crate::io::op::{EntryState, Op, OpKind};
use crate::io::row::RowFrames;
use crate::io::wait::Wait;
use crate::planted::Flaw;
use crate::reason::Reason;
use crate::requests::piece::PieceEntry;
use crate::slots::SlotSet;
use crate::steps::What;

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
}

impl Controller {
    /// Rule 1 of the write gate: hold a write while the journal session of its set begins or ends. If the session is off
    /// and the set should have one, ask for it. Destage is not held: a session ends only after destage is through.
    pub(crate) fn await_session(&mut self, index: u32) -> Gate {
        let op = &self.ops[index];
        if op.is_destage() {
            return Gate::Open;
        }
        let id = op.set();
        let set = self.sets.get(id);
        let lacks = self.lacks_session(id);
        // A session that begins sets the active mark together with its own mark. If a write set the active mark before and
        // the power failed, a degraded array would start only by force. A failed set begins no session.
        // Ending a session also clears the active mark. A write already counted would keep the mark set; if a new session
        // started first, the superblocks would say "dirty, no journal", and a crash would force a resync.
        let moves = matches!(
            set.journal.session(),
            Session::Settling | Session::Entering | Session::Leaving | Session::Unmarking
        );
        if !lacks && (set.has_failed() || !moves) {
            return Gate::Open;
        }
        self.sets.end_write(&mut self.ops[index], self.now, self.limits.clean_delay);
        self.sets.ask_for_session(id);
        Gate::Waits(Wait::Session)
    }

    /// Is the session of a set off although the set should have one? Dirty data that the journal does not hold is destaged
    /// first, and destage may wait for the range of a write.
    fn lacks_session(&self, id: SetId) -> bool {
        let set = self.sets.get(id);
        !set.journal.has_session() && set.dirty.all() == 0 && self.journal.is_wanted_by(self.sets.get(id))
    }

    /// Is there a reason for an operation to wait for the session of its set, by rule 1 or by rule 5?
    pub(crate) fn is_held_by_session(&self, op: &Op) -> bool {
        let is_changing = !matches!(self.sets.get(op.set()).journal.session(), Session::Off | Session::On);
        is_changing || (!op.is_destage() && self.lacks_session(op.set()))
    }

    /// Rule 5 of the write gate: if the set is in a session, put the redo records of the operation into the journal, and
    /// hold it until they are durable.
    pub(crate) fn log_write(&mut self, index: u32, actions: &mut Actions) -> Gate {
        let op = &self.ops[index];
        // If the journal was lost before the entry was durable, the operation is written as if it had none.
        match op.entry() {
            EntryState::AwaitsData | EntryState::InGroup(_) => return Gate::Waits(Wait::Entry),
            EntryState::Through(entry) if self.journal.is_live() || entry <= self.journal.durable => return Gate::Open,
            EntryState::None | EntryState::Through(_) => {}
        }
        match self.sets.get(op.set()).journal.session() {
            Session::Off => Gate::Open,
            Session::On if !self.journal.is_live() => self.write_without_journal(index),
            // The write is logged even if the set does not want its session any more: destage may wait for the range that
            // this operation holds, and the session ends only after destage is through.
            Session::On => match op.kind() {
                OpKind::Destage => self.await_data_entries(index),
                OpKind::RowDestage | OpKind::RowWrite => self.log_rows(index, actions),
                _ => self.log_extent(index, actions),
            },
            _ => Gate::Waits(Wait::Session),
        }
    }

    /// The journal was lost: let the operation write without it when the superblocks say that the journal is stale.
    ///
    /// Until the session has ended, a crash and a journal that is found again would replay old entries over this write. So
    /// a write past the cache is acknowledged only after that. If the session cannot end, nothing is written: the next
    /// start replays acknowledged data over a part of the row.
    fn write_without_journal(&mut self, index: u32) -> Gate {
        let (set, piece) = (self.ops[index].set(), self.ops[index].piece());
        if self.sets.get(set).has_failed_flush() || self.sets.get(set).is_lost() {
            return Gate::Failed;
        }
        if !self.request_stale_mark(set) {
            return Gate::Waits(Wait::StaleMark);
        }
        if let Some(piece) = piece.filter(|piece| self.requests.piece_mut(*piece).wait_for_entry(PieceEntry::Orphaned))
        {
            self.requests.piece_mut(piece).begin_op();
            self.journal.orphans.push(piece);
        }
        Gate::Open
    }

    /// Request that the superblocks record that the journal lacks later writes; true if they do. If a stale journal is
    /// found again after a crash, it does not replace a resync.
    fn request_stale_mark(&mut self, id: SetId) -> bool {
        let unmarked = self.planted.has(Flaw::StaleJournalUnmarked);
        let set = self.sets.get_mut(id);
        if unmarked || !set.needs_mark() {
            return true;
        }
        let metadata = set.metadata.as_mut().expect("sets that are marked have metadata");
        if let Some(generation) = set.journal.stale() {
            return metadata.durable() >= generation;
        }
        let generation = metadata.request();
        set.journal.set_stale(generation);
        self.sets.look();
        false
    }

    /// Hold a destage to members without parity until the entries of its lines are durable. If a crash leaves copies that
    /// differ, replay makes them equal.
    fn await_data_entries(&mut self, index: u32) -> Gate {
        let op = self.ops[index];
        let own = op.extent();
        let newest = lines_of(own.at, own.len)
            .filter_map(|(number, ..)| self.cache.newest_entry_of(op.set(), number))
            .max()
            .unwrap_or(0);
        if newest <= self.journal.durable || self.planted.has(Flaw::DestageBeforeEntry) {
            return Gate::Open;
        }
        let journal = &mut self.journal;
        let group = if newest == journal.flying.sequence { &mut journal.flying } else { &mut journal.open };
        group.ops.push(index);
        self.ops[index].set_entry(EntryState::AwaitsData);
        Gate::Waits(Wait::Entry)
    }

    /// Note that an operation's records are in the open group.
    fn joins_group(&mut self, index: u32) {
        let sequence = self.journal.open.sequence;
        let op = &mut self.ops[index];
        op.set_entry(EntryState::InGroup(sequence));
        let set = op.set();
        self.journal.open.ops.push(index);
        self.journal.log.pin(sequence);
        self.sets.get_mut(set).journal.logged += 1;
        let stripe = self.ops[index].stripe().map_or(0, |stripe| stripe.0);
        self.trace.note_op(&mut self.sets, &self.ops, index, Reason::RedoLogged, stripe, 0);
        self.trace.op(&self.ops, index, || What::Logged { entry: sequence });
    }

    // ---- rows

    fn log_rows(&mut self, index: u32, actions: &mut Actions) -> Gate {
        let op = &self.ops[index];
        let (set, rows) = (op.set(), Sectors(u64::from(op.rows())));
        let revokes = usize::from(op.rows_of().named().1);
        let named = op.named_slots(self.sets.get(set));
        let view = RedoView { named, write: op.written_slots(), parities: self.parity_slots(op), revokes };
        // The last slot that needs one reference, and that reference: most writes have no other slot.
        let mut known = None;
        let plan = plan_redo(&view, |slot| {
            let found = self.references_of(op, slot);
            if let Some((1, first)) = found {
                known = Some((slot, first));
            }
            let is_staged = found.is_some() || self.is_staged(op, slot);
            InLog { references: found.map(|(count, _)| count), is_staged }
        });
        if let Err(reason) = self.journal.group_takes(plan.records, rows.get() * u64::from(plan.inline.len()), 0) {
            return Gate::Waits(Wait::JournalRoom(reason));
        }
        let array = self.sets.get(set).journal.index();
        let (member_lba, _) = self.ops[index].member_rows(self.sets.get(set));
        if revokes > 0 {
            self.revoke_columns(index, array);
        }
        self.revoke_replaced_columns(index, array, plan.revoked);
        for slot in plan.outdated {
            self.journal.append_record(JournalRecord::Outdated { array, slot, member_lba, sectors: rows }, self.now);
        }
        for slot in plan.referred {
            match known {
                Some((single, logged)) if single == slot => self.append_reference(array, slot, member_lba, logged),
                _ => self.refer(index, array, slot, member_lba),
            }
        }
        self.log_bytes(index, (array, member_lba), plan.inline, actions);
        self.joins_group(index);
        Gate::Waits(Wait::Entry)
    }

    /// Put the bytes of these slots into the open group.
    fn log_bytes(&mut self, index: u32, (array, member_lba): (u8, MemberLba), inline: SlotSet, actions: &mut Actions) {
        if inline.is_empty() {
            return;
        }
        let op = &self.ops[index];
        let (set, rows, parities, frames) =
            (op.set(), Sectors(u64::from(op.rows())), op.computed_slots(), RowFrames::of(op));
        let columns = actions.columns.len();
        for slot in inline {
            let (payload_at, at) = self.journal.append_payload(rows);
            let old = frames.written(self.sets.get(set).geometry(), parities, slot);
            actions.columns.push(JobColumn { index: 0, at, old });
            self.journal
                .append_record(JournalRecord::Redo { array, slot, member_lba, sectors: rows, payload_at }, self.now);
        }
        let bytes = self.ops[index].row_bytes();
        self.ops.push_job(&mut self.trace, index, JobKind::Copy, bytes, columns, None, None, actions);
    }

    /// The slots of P and Q of an operation's stripe.
    fn parity_slots(&self, op: &Op) -> SlotSet {
        let parity = self.sets.get(op.set()).parity();
        // Usually the operation writes all of them.
        if op.computed_slots().len() == u32::from(parity.parities()) {
            return op.computed_slots();
        }
        let (_, p, q) = stripe_slots(parity, parity.row(op.rows_of().stripe));
        let p = SlotSet::one(p);
        q.map_or(p, |q| p.with(q))
    }

    /// Does a destage write everything to a slot that hosts have written there so far?
    fn is_staged(&self, op: &Op, slot: Slot) -> bool {
        if op.kind() != OpKind::RowDestage {
            return false;
        }
        let (at, len) = op.band_extent(self.sets.get(op.set()), slot);
        let line = |number| self.cache.line_of_unit(op.destage().unit, op.set(), number);
        lines_of(at, len).all(|(number, ..)| line(number).is_some_and(Line::is_staged))
    }

    /// Revoke the older host data of these columns: the members get it with this entry, so that a replay has nothing to
    /// destage there.
    fn revoke_replaced_columns(&mut self, index: u32, array: u8, revoked: SlotSet) {
        let mut run: Option<(SetLba, Sectors)> = None;
        for slot in revoked {
            let (at, len) = self.ops[index].band_extent(self.sets.get(self.ops[index].set()), slot);
            run = match run {
                Some((start, so_far)) if start + so_far == at => Some((start, so_far + len)),
                Some((set_lba, sectors)) => {
                    self.journal.append_record(JournalRecord::Revoke { array, set_lba, sectors }, self.now);
                    Some((at, len))
                }
                None => Some((at, len)),
            };
        }
        if let Some((set_lba, sectors)) = run {
            self.journal.append_record(JournalRecord::Revoke { array, set_lba, sectors }, self.now);
        }
    }

    /// Revoke older entries for the columns of a write past the cache.
    fn revoke_columns(&mut self, index: u32, array: u8) {
        let op = self.ops[index];
        let sectors = Sectors(u64::from(op.rows()));
        let rows = op.rows_of();
        let (first, count) = rows.named();
        for column in first..first + count {
            let from = Sectors(u64::from(rows.part.from()));
            let set_lba = self.sets.get(op.set()).parity().set_lba(rows.stripe, column, from);
            self.journal.append_record(JournalRecord::Revoke { array, set_lba, sectors }, self.now);
        }
    }

    /// How many references give the bytes that a destage writes to a slot, and the first of them; `None` if the log does
    /// not have just these bytes.
    fn references_of(&self, op: &Op, slot: Slot) -> Option<(usize, Logged)> {
        if op.kind() != OpKind::RowDestage {
            return None;
        }
        let (at, len) = op.band_extent(self.sets.get(op.set()), slot);
        let first = self.logged_at(op, at, len)?;
        let mut count = 1;
        let mut done = first.len;
        while done < len {
            done += self.logged_at(op, at + done, len - done)?.len;
            count += 1;
        }
        Some((count, first))
    }

    /// The first part of a staged extent in the log.
    fn logged_at(&self, op: &Op, at: SetLba, len: Sectors) -> Option<Logged> {
        let mut found: Option<Logged> = None;
        for (number, first, last) in lines_of(at, len) {
            let line = self.cache.line_of_unit(op.destage().unit, op.set(), number)?;
            let Some((sequence, place)) = line.staged_place() else { return found };
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

    fn refer(&mut self, index: u32, array: u8, slot: Slot, member_lba: MemberLba) {
        let (at, len) = self.ops[index].band_extent(self.sets.get(self.ops[index].set()), slot);
        let mut done = Sectors::ZERO;
        while done < len {
            let logged = self.logged_at(&self.ops[index], at + done, len - done).expect("counted before");
            self.append_reference(array, slot, member_lba + done, logged);
            done += logged.len;
        }
    }

    fn append_reference(&mut self, array: u8, slot: Slot, member_lba: MemberLba, logged: Logged) {
        let sectors = logged.len;
        let record = if logged.sequence == self.journal.open.sequence {
            JournalRecord::Redo { array, slot, member_lba, sectors, payload_at: logged.payload_at }
        } else {
            let entry = self.journal.log.get(logged.sequence);
            let at = RingSector(entry.position + JOURNAL_ALIGN.get() + logged.payload_at.get());
            JournalRecord::RedoRef { array, slot, member_lba, sectors, at }
        };
        self.journal.append_record(record, self.now);
    }

    // ---- extents of sets without parity, past the cache

    fn log_extent(&mut self, index: u32, actions: &mut Actions) -> Gate {
        let op = self.ops[index];
        let Extent { at, len: whole } = op.extent();
        let fragments = self.fragments_of(&op);
        if let Err(reason) = self.journal.group_takes(fragments + 1, whole.get(), 0) {
            return Gate::Waits(Wait::JournalRoom(reason));
        }
        let array = self.sets.get(op.set()).journal.index();
        self.journal.append_record(JournalRecord::Revoke { array, set_lba: at, sectors: whole }, self.now);
        let (payload_at, to) = self.journal.append_payload(whole);
        let from = match op.payload() {
            crate::io::op::Payload::Host(base) => base,
            _ => PoolOffset::ZERO,
        };
        let mut done = Sectors::ZERO;
        while done < whole {
            let (slots, len) = self.places_of(op.set(), at + done, whole - done);
            for (slot, member_lba) in slots.into_iter().flatten() {
                let payload_at = payload_at + done;
                self.journal
                    .append_record(JournalRecord::Redo { array, slot, member_lba, sectors: len, payload_at }, self.now);
            }
            done += len;
        }
        let bytes = u32::try_from(whole.bytes().get()).expect("an extent is small");
        self.ops.push_copy(&mut self.trace, index, to, from, bytes, actions);
        self.joins_group(index);
        Gate::Waits(Wait::Entry)
    }

    fn fragments_of(&self, op: &Op) -> usize {
        let Extent { at, len: whole } = op.extent();
        let (mut done, mut count) = (Sectors::ZERO, 0);
        while done < whole {
            let (slots, len) = self.places_of(op.set(), at + done, whole - done);
            count += slots.iter().flatten().count();
            done += len;
        }
        count
    }

    /// The places of the first part of an extent on the members, one for each copy, and the length of that part.
    fn places_of(&self, set: SetId, at: SetLba, left: Sectors) -> ([Option<(Slot, MemberLba)>; COPIES_MAX], Sectors) {
        let mut places = [None; COPIES_MAX];
        let one = match self.sets.get(set).geometry() {
            Geometry::Passthrough(g) => g.map(at),
            Geometry::Linear(g) => g.map(at),
            Geometry::Striped(g) => g.map(at),
            Geometry::Mirror(g) => {
                let mut len = left;
                for (place, copy) in places.iter_mut().zip(g.copies(at)) {
                    *place = Some((copy.slot, copy.lba));
                    len = len.min(copy.len);
                }
                return (places, len);
            }
            Geometry::Parity(_) => unreachable!("parity sets are written by rows"),
        };
        places[0] = Some((one.slot, one.lba));
        (places, one.len.min(left))
    }
}

/// Maximum number of copies of a mirror that the journal protects.
pub(crate) const COPIES_MAX: usize = 16;

/// May a set of this geometry be protected?
pub(crate) fn is_protectable(geometry: &Geometry) -> bool {
    match geometry {
        Geometry::Mirror(mirror) => usize::from(mirror.copy_count()) <= COPIES_MAX,
        Geometry::Parity(parity) => parity.members() <= COLUMNS_MAX,
        Geometry::Passthrough(_) => false,
        Geometry::Linear(_) | Geometry::Striped(_) => true,
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
            is_protectable(&Geometry::new(&spec).expect("a layout of md"))
        };
        assert!(of(Level::Raid5, 4) && of(Level::Raid6, 5));
        assert!(of(Level::Raid1, 16) && !of(Level::Raid1, 17));
    }
}
