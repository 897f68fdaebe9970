//! Which records a write of a row segment puts into the journal: a pure function of the written slots and the state of the
//! log.
//!
//! ```text
//!  slot                                    record
//!  written, data, the log has its bytes    references to them, if there are not too many
//!  written, any other                      redo record with its bytes in the entry
//!  changed, but not written                outdated: older records of the slot do not count
//!  destaged, all that hosts have written   revoke: a replay has nothing to destage there
//! ```
//!
//! A write past the cache also revokes what older entries have for its columns.

use openraid_format::JOURNAL_RECORDS_MAX;
use openraid_units::Slot;

use crate::slot_set::SlotSet;

/// The most redo records of one operation. If references would be more, the bytes go into the entry: one record for each slot.
pub(super) const REDOS_MAX: usize = 80;

/// A write of a row segment, as the journal sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedoView {
    /// Data slots that get new content, with or without a member.
    pub named: SlotSet,
    /// Slots that are written.
    pub write: SlotSet,
    /// Parity slots of the stripe.
    pub parities: SlotSet,
    /// Columns whose older entries mean nothing any more, one revoke record each.
    pub revokes: usize,
}

/// What the log has for a data slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InLog {
    /// References that give the bytes to be written; none if the log does not have just these bytes.
    pub references: Option<usize>,
    /// The bytes to be written are all that hosts have written to the slot.
    pub is_staged: bool,
}

/// The records, in the order in which they go into the entry; within a set by slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RedoPlan {
    /// After the revokes of columns: slots of which older host data is revoked.
    pub revoked: SlotSet,
    /// Slots that get new content and are not written.
    pub outdated: SlotSet,
    /// Slots whose bytes are in the log.
    pub referred: SlotSet,
    /// Slots whose bytes go into the entry.
    pub inline: SlotSet,
    /// Records at most: revoked slots next to each other share one.
    pub records: usize,
}

/// Plan the records of a write. `in_log` is asked once for each named slot.
pub(super) fn plan_redo(view: &RedoView, mut in_log: impl FnMut(Slot) -> InLog) -> RedoPlan {
    let changed = view.named | view.parities;
    let mut plan = RedoPlan {
        revoked: SlotSet::EMPTY,
        outdated: changed.minus(view.write),
        referred: SlotSet::EMPTY,
        inline: view.write & view.parities,
        records: 0,
    };
    let mut references = 0;
    // One record for each slot that may need no more.
    let mut others = (view.write | view.named).len() as usize + view.parities.len() as usize;
    for slot in view.named {
        let InLog { references: count, is_staged } = in_log(slot);
        if count.is_some() || is_staged {
            plan.revoked.insert(slot);
        }
        if !view.write.contains(slot) {
            continue;
        }
        match count {
            Some(count) if count - 1 + others <= REDOS_MAX => {
                (references, others) = (references + count, others + count - 1);
                plan.referred.insert(slot);
            }
            _ => plan.inline.insert(slot),
        }
    }
    let needed = references + view.revokes + plan.inline.len() as usize + plan.outdated.len() as usize;
    plan.records = needed + plan.revoked.len() as usize;
    // Settled slots save destage after a crash. If there is no room for their records, that is done.
    if plan.records > JOURNAL_RECORDS_MAX {
        (plan.records, plan.revoked) = (needed, SlotSet::EMPTY);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the log may have for a slot, with the limits of an entry on both sides.
    const IN_LOG: [InLog; 8] = [
        InLog { references: None, is_staged: false },
        InLog { references: None, is_staged: true },
        InLog { references: Some(1), is_staged: true },
        InLog { references: Some(2), is_staged: true },
        InLog { references: Some(38), is_staged: true },
        InLog { references: Some(74), is_staged: true },
        InLog { references: Some(75), is_staged: true },
        InLog { references: Some(400), is_staged: true },
    ];

    /// Records that the plan gives, counted one by one.
    fn count(view: &RedoView, plan: &RedoPlan, in_log: &[InLog]) -> usize {
        let references: usize = plan.referred.iter().map(|slot| in_log[slot.index()].references.unwrap()).sum();
        view.revokes
            + [plan.revoked, plan.outdated, plan.inline].map(|slots| slots.len() as usize).iter().sum::<usize>()
            + references
    }

    /// Could the slot refer to the log as well, together with the slots before it that do?
    fn fits(plan: &RedoPlan, slot: Slot, in_log: &[InLog], slots: usize) -> bool {
        let earlier = plan.referred.iter().filter(|other| *other < slot);
        let more: usize = earlier.chain([slot]).map(|slot| in_log[slot.index()].references.unwrap() - 1).sum();
        slots + more <= REDOS_MAX
    }

    /// Replay the plan over members that hold anything: each written slot must have exactly its new bytes, and no member may
    /// get older ones.
    fn judge(view: &RedoView, plan: &RedoPlan, in_log: &[InLog]) {
        let all = || (0..8).map(Slot);
        for slot in all() {
            let (named, written) = (view.named.contains(slot), view.write.contains(slot));
            let has_bytes = |slot: Slot| in_log.get(slot.index()).is_some_and(|log| log.references.is_some());
            let (inline, referred) = (plan.inline.contains(slot), plan.referred.contains(slot));
            assert_eq!(
                u32::from(written),
                u32::from(inline) + u32::from(referred),
                "{slot:?} has its bytes once: {plan:?}"
            );
            assert!(
                !referred || (named && has_bytes(slot)),
                "{slot:?} refers to bytes that the log does not have: {plan:?}"
            );
            let is_changed = named || view.parities.contains(slot);
            assert_eq!(
                plan.outdated.contains(slot),
                is_changed && !written,
                "{slot:?} would get older bytes: {plan:?}"
            );
            let is_over = named && (has_bytes(slot) || in_log[slot.index()].is_staged);
            assert!(!plan.revoked.contains(slot) || is_over, "{slot:?} loses what hosts have written: {plan:?}");
            if inline && named && has_bytes(slot) {
                let slots = ((view.write | view.named).len() + view.parities.len()) as usize;
                assert!(!fits(plan, slot, in_log, slots), "{slot:?} is logged twice for nothing: {plan:?}");
            }
            if is_over && !plan.revoked.contains(slot) {
                let records = count(view, plan, in_log)
                    + all()
                        .filter(|other| {
                            view.named.contains(*other) && (has_bytes(*other) || in_log[other.index()].is_staged)
                        })
                        .count();
                assert!(records > JOURNAL_RECORDS_MAX, "{slot:?} is destaged again for nothing: {plan:?}");
            }
        }
        let redos = count(view, plan, in_log)
            - view.revokes
            - [plan.revoked, plan.outdated].map(|slots| slots.len() as usize).iter().sum::<usize>();
        assert!(redos <= REDOS_MAX);
        assert_eq!(count(view, plan, in_log), plan.records);
        assert!(plan.records <= JOURNAL_RECORDS_MAX, "an entry has room for it: {plan:?}");
    }

    /// Every set of named slots, every set of written ones among them and the parities, everything that the log may have.
    #[test]
    fn each_written_slot_can_be_redone_from_the_log_alone_and_no_other_one_is_changed() {
        let (mut cases, mut dropped) = (0_u32, 0_u32);
        for (data, parities) in [(1_u16, 1_u16), (2, 1), (3, 1), (3, 2)] {
            let slots = data + parities;
            let of = |bits: u32, from: u16, to: u16| {
                (from..to).filter(|n| bits >> n & 1 == 1).map(Slot).collect::<SlotSet>()
            };
            for bits in 0..1_u32 << (slots + data) {
                let named = of(bits >> slots, 0, data);
                let parities = of(u32::MAX, data, slots);
                let write = of(bits, 0, slots);
                if named.is_empty() || !write.minus(named | parities).is_empty() {
                    continue;
                }
                for states in 0..8_usize.pow(u32::from(data)) {
                    let in_log: Vec<InLog> =
                        (0..u32::from(data)).map(|n| IN_LOG[states / 8_usize.pow(n) % 8]).collect();
                    for revokes in [0, named.len() as usize, JOURNAL_RECORDS_MAX - REDOS_MAX] {
                        let view = RedoView { named, write, parities, revokes };
                        let plan = plan_redo(&view, |slot| in_log[slot.index()]);
                        judge(&view, &plan, &in_log);
                        cases += 1;
                        dropped += u32::from(
                            plan.revoked.is_empty() && plan.records + named.len() as usize > JOURNAL_RECORDS_MAX,
                        );
                    }
                }
            }
        }
        assert!(cases > 100_000 && dropped > 100, "{cases} cases, {dropped} at the limit of an entry");
    }

    use alloc::vec::Vec;
}
