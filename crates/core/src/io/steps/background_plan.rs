//! Plans of background work: which members a part of a unit reads, recovers and writes.

use openraid_units::{MemberLba, Sectors, SetLba, Slot};

use crate::array::sets::Sets;
use crate::geometry::Geometry;
use crate::io::state::op::{Op, OpKind, Plan};
use crate::io::state::plan::plan_recovery;
use crate::slot_set::SlotSet;

/// A plan for the rows in work that avoids the parts that are known to be unreadable.
pub(crate) fn plan_of_background(sets: &Sets, op: &Op) -> Option<Plan> {
    if op.background().is_rewrite {
        let remade = op.background().remade.minus(op.excluded);
        return Some(Plan { read: remade, write: remade, ..Plan::default() });
    }
    // A failed large read does not show where the defect is: only the parts that fail again, and the parts that are
    // recorded as bad, are rewritten.
    let (lo, hi) = op.part().range();
    let is_large = hi - lo > sets.get(op.set).rows_max() && !is_recorded_bad(sets, op);
    if op.is_sector_rewrite() && is_large && !op.background().remade.intersects(op.excluded) {
        return Some(Plan { read: op.background().remade, ..Plan::default() });
    }
    let plan = if op.is_by_rows() { plan_rows(sets, op) } else { plan_copies(sets, op) };
    plan.or_else(|| {
        // No other member has the data. Perhaps only some of it is bad: try what the member itself returns.
        let untried = op.is_sector_rewrite() && !op.background().remade.intersects(op.excluded);
        untried.then_some(Plan { read: op.background().remade, ..Plan::default() })
    })
}

/// Is a part of the rows in work recorded as bad on a member that is restored?
fn is_recorded_bad(sets: &Sets, op: &Op) -> bool {
    let (set, len) = (sets.get(op.set), Sectors(u64::from(op.rows())));
    let is_bad = |slot| set.member_of(slot).is_some_and(|m| m.is_bad(op.side(), member_place(sets, op, slot), len));
    set.has_bad() && op.background().remade.iter().any(is_bad)
}

/// The members to be restored are gone, or the set is stopping or has failed.
pub(super) fn is_obsolete(sets: &Sets, op: &Op) -> bool {
    let set = sets.get(op.set);
    if set.life() != crate::array::set::Life::Running {
        return true;
    }
    let gone = |slot: Slot| {
        let place = set.place(slot);
        place.of(op.background().replace).is_none_or(|member| !set.member(member).is_active())
    };
    op.kind == OpKind::Rebuild && op.background().remade.iter().any(gone)
}

/// The place of the rows in work on the member in a slot.
pub(crate) fn member_place(sets: &Sets, op: &Op, slot: Slot) -> MemberLba {
    let set = sets.get(op.set);
    match op.geometry(set) {
        Geometry::Parity(_) => op.member_rows(set).0,
        Geometry::Mirror(mirror) => {
            let at = rows_at(op);
            mirror.copies(at).find(|c| c.slot == slot).expect("the slot has a copy").lba
        }
        _ => unreachable!("background work is on redundant sets"),
    }
}

/// The place of the rows in work in a mirrored set.
pub(super) fn rows_at(op: &Op) -> SetLba {
    op.extent().at
}

fn plan_rows(sets: &Sets, op: &Op) -> Option<Plan> {
    let mut view = op.stripe_view(sets.get(op.set));
    let all = view.data | view.parities();
    match op.kind {
        OpKind::Rebuild => {
            if op.background().replace && op.background().remade.minus(view.readable).is_empty() {
                return Some(Plan { read: op.background().remade, write: op.background().remade, ..Plan::default() });
            }
            if op.is_sector_rewrite() && !view.trusted && !op.background().remade.intersects(op.excluded) {
                // Parity may not match, so only the unreadable rows are recovered from it.
                return Some(Plan { read: op.background().remade, ..Plan::default() });
            }
            view.readable = view.readable.minus(op.background().remade);
            let recovery = plan_recovery(&view).ok()?;
            let parity = op.background().remade & view.parities();
            // Computing parity needs all data; a lost column is recovered from the other reads.
            Some(Plan { read: recovery.read, lost: recovery.lost, parity, write: op.background().remade })
        }
        OpKind::Resync => {
            let parity = view.parities() & view.writable;
            if view.data.minus(view.readable).is_empty() {
                // Parity that matches already is not written.
                let compares = compares(sets, op) && parity.minus(view.readable).is_empty();
                let read = if compares { view.data | parity } else { view.data };
                return Some(Plan { read, lost: SlotSet::EMPTY, parity, write: parity });
            }
            // One parity defines the unreadable data, and the other parity is made to match.
            let recovery = plan_recovery(&view).ok()?;
            let lost = recovery.lost & view.data & view.writable;
            Some(Plan { read: recovery.read, lost: recovery.lost, parity, write: lost | parity })
        }
        _ => {
            let unread = all.minus(view.readable);
            // With one column missing on a double parity, that column is recovered from P and compared with Q.
            let lost = if view.q.is_some() && unread.len() == 1 { unread & view.data } else { SlotSet::EMPTY };
            Some(Plan { read: all.minus(unread), lost, ..Plan::default() })
        }
    }
}

fn plan_copies(sets: &Sets, op: &Op) -> Option<Plan> {
    let set = sets.get(op.set);
    let mirror = op.mirror(set);
    let at = rows_at(op);
    let rows = Sectors(u64::from(op.rows()));
    let mut all = SlotSet::EMPTY;
    let mut readable = SlotSet::EMPTY;
    let mut first = None;
    for copy in mirror.copies(at) {
        all.insert(copy.slot);
        let good = set.readable(op.side(), copy.lba, copy.lba + rows).contains(copy.slot);
        let is_remade =
            op.kind == OpKind::Rebuild && !op.background().replace && op.background().remade.contains(copy.slot);
        if good && !is_remade && !op.excluded.contains(copy.slot) {
            readable.insert(copy.slot);
            first = first.or(Some(copy.slot));
        }
    }
    match op.kind {
        OpKind::Rebuild => {
            let write = op.background().remade & all;
            let source = if op.background().replace && write.minus(readable).is_empty() {
                write.first()
            } else if set.is_consistent(op.side(), at.get(), (at + rows).get()) {
                // The copy of a member that is not write-mostly, if copies are equal.
                let preferred = mirror.copies(at).map(|copy| copy.slot);
                let mut preferred = preferred.filter(|slot| readable.minus(set.write_mostly()).contains(*slot));
                preferred.next().or(first)
            } else {
                first
            };
            Some(Plan { read: SlotSet::one(source?), write, ..Plan::default() })
        }
        OpKind::Resync => {
            let source = first?;
            let write = (all & set.writable(op.side())).without(source);
            // Copies that are equal already are not written.
            let compares = compares(sets, op) && write.minus(readable).is_empty();
            let read = if compares { write.with(source) } else { SlotSet::one(source) };
            Some(Plan { read, write, ..Plan::default() })
        }
        _ => Some(Plan { read: readable, ..Plan::default() }),
    }
}

/// Does this unit of a resync compare before it writes?
fn compares(sets: &Sets, op: &Op) -> bool {
    let task = sets.get(op.set).tasks.current();
    task.is_some_and(|task| op.background().unit_of(task.id()).is_some_and(|unit| task.is_compared(unit)))
}

/// The source of the bytes for a slot: its own buffer if they are computed, otherwise the copy that counts.
pub(super) fn written_from(sets: &Sets, op: &Op, slot: Slot) -> Slot {
    if op.is_by_rows() {
        return slot;
    }
    let computed = op.kind == OpKind::Scrub && !op.background().remade.contains(slot);
    if computed {
        slot
    } else {
        first_copy(sets, op)
    }
}

/// The first of the copies that were read, in the order in which hosts read them.
pub(super) fn first_copy(sets: &Sets, op: &Op) -> Slot {
    let mirror = op.mirror(sets.get(op.set));
    let mut copies = mirror.copies(rows_at(op));
    copies.find(|copy| op.plan.read.contains(copy.slot)).expect("a copy was read").slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::consistency::Consistency;
    use crate::array::set::Set;
    use crate::events::ParityVerdict;
    use crate::geometry::shape::Side;
    use crate::geometry::{Level, SetSpec};
    use crate::io::state::footprint::{Columns, Stretch, StripeRows};
    use crate::io::state::op::{BackgroundData, BackgroundKind, UnitRange};
    use crate::io::state::search::Part;
    use crate::io::steps::compare_op::{copies_of_data, culprit};
    use crate::reason::FailReason;
    use openraid_units::{SetId, StripeIndex};

    const SET: SetId = SetId(0);

    fn sets(level: Level, members: u16) -> Sets {
        let member_size = Sectors::kib(1024);
        let sizes = [member_size; 6];
        let layout = if level == Level::Raid1 { 0 } else { 2 };
        let member_sizes = &sizes[..usize::from(members)];
        let spec = SetSpec { level, members, chunk: Sectors::kib(64), layout, member_size, member_sizes };
        let mut sets = Sets::new();
        sets.put(SET, Set::with_members(&spec));
        sets
    }

    fn slots(of: &[u16]) -> SlotSet {
        of.iter().map(|slot| Slot(*slot)).collect()
    }

    fn op(sets: &Sets, kind: BackgroundKind, remade: &[u16], replace: bool) -> Op {
        let part = Part::whole(0, 8);
        let side = Side::Old;
        let range = match sets.get(SET).shape().on(side) {
            Geometry::Parity(_) => {
                UnitRange::Rows(StripeRows { side, stripe: StripeIndex(0), part, columns: Columns::All })
            }
            _ => UnitRange::Stretch(Stretch { side, at: SetLba(0), part }),
        };
        let task = Some(crate::io::state::op::TaskUnit { task: 1, unit: 0 });
        Op::in_background(kind, SET, range, BackgroundData::new(slots(remade), task, replace))
    }

    /// The slots that a plan reads, recovers, computes and writes.
    fn planned(sets: &Sets, op: &Op) -> Option<[SlotSet; 4]> {
        plan_of_background(sets, op).map(|plan| [plan.read, plan.lost, plan.parity, plan.write])
    }

    // In stripe 0 of a left-symmetric RAID 5 of four, slot 3 has parity. In stripe 0 of a RAID 6 of five, slot 4 has P and
    // slot 0 has Q: data is in slots 1, 2 and 3.

    #[test]
    fn a_rebuild_reads_what_defines_the_slot_and_writes_the_slot_alone() {
        let sets5 = sets(Level::Raid5, 4);
        let of = |slot| planned(&sets5, &op(&sets5, BackgroundKind::Rebuild, &[slot], false)).unwrap();
        let none = SlotSet::EMPTY;
        assert_eq!(of(1), [slots(&[0, 2, 3]), slots(&[1]), none, slots(&[1])], "data is recovered");
        assert_eq!(of(3), [slots(&[0, 1, 2]), none, slots(&[3]), slots(&[3])], "parity is computed");
        // A replacement is copied from its member while that can be read.
        let copy = op(&sets5, BackgroundKind::Rebuild, &[1], true);
        assert_eq!(planned(&sets5, &copy), Some([slots(&[1]), none, none, slots(&[1])]));
        let mut unread = copy;
        unread.excluded = slots(&[1]);
        assert_eq!(planned(&sets5, &unread).unwrap()[0], slots(&[0, 2, 3]));
        unread.excluded = slots(&[1, 2]);
        assert_eq!(planned(&sets5, &unread), None, "two columns of four are too many");
    }

    #[test]
    fn a_resync_reads_all_data_and_writes_the_parity_and_one_parity_makes_the_other_match() {
        let sets6 = sets(Level::Raid6, 5);
        let mut resync = op(&sets6, BackgroundKind::Resync, &[], false);
        let (data, parity, none) = (slots(&[1, 2, 3]), slots(&[0, 4]), SlotSet::EMPTY);
        assert_eq!(planned(&sets6, &resync), Some([data, none, parity, parity]));
        resync.excluded = slots(&[2]);
        let [read, lost, made, written] = planned(&sets6, &resync).unwrap();
        assert_eq!((lost, written), (slots(&[2]), parity | slots(&[2])));
        assert!(!read.contains(Slot(2)) && read.len() == 3 && made == parity);
    }

    #[test]
    fn a_check_reads_everything_and_recovers_one_missing_column_of_a_double_parity() {
        let (sets5, sets6) = (sets(Level::Raid5, 4), sets(Level::Raid6, 5));
        let none = SlotSet::EMPTY;
        let mut check = op(&sets6, BackgroundKind::Scrub, &[], false);
        assert_eq!(planned(&sets6, &check), Some([slots(&[0, 1, 2, 3, 4]), none, none, none]));
        check.excluded = slots(&[2]);
        assert_eq!(planned(&sets6, &check), Some([slots(&[0, 1, 3, 4]), slots(&[2]), none, none]));
        check.excluded = slots(&[4]);
        assert_eq!(planned(&sets6, &check).unwrap()[1], none, "it is parity");
        let mut check = op(&sets5, BackgroundKind::Scrub, &[], false);
        check.excluded = slots(&[2]);
        assert_eq!(planned(&sets5, &check).unwrap()[1], none, "there is nothing to compare it with");
    }

    #[test]
    fn copies_are_made_from_the_first_one_that_can_be_read() {
        let sets1 = sets(Level::Raid1, 3);
        let none = SlotSet::EMPTY;
        let mut resync = op(&sets1, BackgroundKind::Resync, &[], false);
        assert_eq!(planned(&sets1, &resync), Some([slots(&[0]), none, none, slots(&[1, 2])]));
        resync.excluded = slots(&[0]);
        assert_eq!(planned(&sets1, &resync), Some([slots(&[1]), none, none, slots(&[0, 2])]));
        let rebuild = op(&sets1, BackgroundKind::Rebuild, &[0], false);
        assert_eq!(planned(&sets1, &rebuild), Some([slots(&[1]), none, none, slots(&[0])]));
        let replace = op(&sets1, BackgroundKind::Rebuild, &[2], true);
        assert_eq!(planned(&sets1, &replace), Some([slots(&[2]), none, none, slots(&[2])]));
        let mut check = op(&sets1, BackgroundKind::Scrub, &[], false);
        check.plan = plan_of_background(&sets1, &check).unwrap();
        assert_eq!((check.plan.read, first_copy(&sets1, &check)), (slots(&[0, 1, 2]), Slot(0)));
        assert_eq!(copies_of_data(&sets1, &check), slots(&[1, 2]));
    }

    #[test]
    fn a_verdict_names_a_slot_only_if_no_other_one_could_be_wrong() {
        let (sets5, sets6, sets1) = (sets(Level::Raid5, 4), sets(Level::Raid6, 5), sets(Level::Raid1, 3));
        let named = |sets: &Sets, verdict| {
            let mut check = op(sets, BackgroundKind::Scrub, &[], false);
            check.plan = plan_of_background(sets, &check).unwrap();
            check.verdict = verdict;
            culprit(sets, &check).map(|slot| slot.0)
        };
        // With P alone any column could be wrong.
        assert_eq!(named(&sets5, ParityVerdict::PWrong), None);
        let of_double = [
            ParityVerdict::PWrong,
            ParityVerdict::QWrong,
            ParityVerdict::ColumnWrong(0),
            ParityVerdict::ColumnWrong(2),
        ];
        assert_eq!(of_double.map(|verdict| named(&sets6, verdict)), [Some(4), Some(0), Some(1), Some(3)]);
        assert_eq!([ParityVerdict::Match, ParityVerdict::Unknown].map(|verdict| named(&sets6, verdict)), [None; 2]);
        assert_eq!(named(&sets1, ParityVerdict::ColumnWrong(1)), Some(1));
        // Recovered data matches one parity by itself.
        let mut check = op(&sets6, BackgroundKind::Scrub, &[], false);
        check.excluded = slots(&[2]);
        check.plan = plan_of_background(&sets6, &check).unwrap();
        check.verdict = ParityVerdict::PWrong;
        assert_eq!(culprit(&sets6, &check), None);
    }

    #[test]
    fn a_unit_is_obsolete_when_its_member_is_gone_or_the_set_does_not_run() {
        let mut sets5 = sets(Level::Raid5, 4);
        let (rebuild, replace) =
            (op(&sets5, BackgroundKind::Rebuild, &[1], false), op(&sets5, BackgroundKind::Rebuild, &[1], true));
        assert_eq!([&rebuild, &replace].map(|op| is_obsolete(&sets5, op)), [false, true], "there is no replacement");
        sets5.get_mut(SET).fail_slot(Slot(1), FailReason::Gone);
        assert!(is_obsolete(&sets5, &rebuild));
        let check = op(&sets5, BackgroundKind::Scrub, &[], false);
        assert!(!is_obsolete(&sets5, &check), "it needs no certain member");
        sets5.get_mut(SET).fail();
        assert!(is_obsolete(&sets5, &check));
    }

    #[test]
    fn parity_that_may_not_match_repairs_only_what_its_member_does_not_return() {
        let mut sets5 = sets(Level::Raid5, 4);
        sets5.get_mut(SET).set_consistency(Consistency::Below { to: Sectors::ZERO, only_marked: false });
        let mut repair = op(&sets5, BackgroundKind::Rebuild, &[1], false);
        repair.background_mut().task = None;
        assert_eq!(planned(&sets5, &repair).unwrap()[0], slots(&[1]));
        repair.excluded = slots(&[1]);
        assert_eq!(planned(&sets5, &repair).unwrap()[0], slots(&[0, 2, 3]));
    }
}
