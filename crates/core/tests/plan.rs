//! Every way to write part of a stripe, against algebra that knows nothing of methods: a plan may read only
//! good members, its reads must determine the parities that it writes, no good parity may be left out, and no smaller set of
//! reads would have done.

use openraid_core::admin::PartialWritePolicy;
use openraid_core::plan::{plan_write, StripeView, WriteMethod, WritePlan};
use openraid_core::slot_set::SlotSet;
use openraid_units::Slot;

/// Multiplication in the field of RAID 6: x^8 + x^4 + x^3 + x^2 + 1.
fn times(a: u8, b: u8) -> u8 {
    let (mut a, mut product) = (u16::from(a), 0_u16);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            product ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= 0x11d;
        }
    }
    product.to_le_bytes()[0]
}

fn inverse(a: u8) -> u8 {
    (1..=255).find(|b| times(a, *b) == 1).expect("a field")
}

type Row = Vec<u8>;

/// Is `target` a combination of `rows`?
fn spans(rows: &[Row], target: &Row) -> bool {
    let mut rows = rows.to_vec();
    let mut target = target.clone();
    for column in 0..target.len() {
        let Some(pivot) = rows.iter().position(|row| row[column] != 0 && row[..column].iter().all(|c| *c == 0)) else {
            if target[column] != 0 {
                return false;
            }
            continue;
        };
        let pivot = rows.swap_remove(pivot);
        let scale = inverse(pivot[column]);
        let clear = |row: &mut Row| {
            let factor = times(row[column], scale);
            row.iter_mut().zip(&pivot).for_each(|(cell, of_pivot)| *cell ^= times(*of_pivot, factor));
        };
        rows.iter_mut().for_each(clear);
        clear(&mut target);
    }
    target.iter().all(|cell| *cell == 0)
}

struct Case {
    view: StripeView,
    written: SlotSet,
    columns: u16,
}

impl Case {
    /// What reading a slot tells of the old data: one equation.
    fn equation(&self, slot: Slot) -> Row {
        (0..self.columns)
            .map(|column| match slot {
                slot if slot == self.view.p => 1,
                slot if Some(slot) == self.view.q => (0..column).fold(1, |power, _| times(power, 2)),
                slot => u8::from(slot == Slot(column)),
            })
            .collect()
    }

    /// The part of the old data that this parity needs: the columns that stay.
    fn wanted(&self, parity: Slot) -> Row {
        let mut row = self.equation(parity);
        for column in self.written {
            row[column.index()] = 0;
        }
        row
    }

    fn suffices(&self, read: SlotSet, parities: SlotSet) -> bool {
        let rows: Vec<Row> = read.iter().map(|slot| self.equation(slot)).collect();
        parities.iter().all(|parity| spans(&rows, &self.wanted(parity)))
    }

    /// The fewest reads from which all these parities can be made; parity is read only where it is trusted, or where
    /// nothing else is left.
    fn fewest(&self, parities: SlotSet) -> Option<u32> {
        let all = self.columns + 1 + u16::from(self.view.q.is_some());
        let sets = (0..1_u32 << all).map(|bits| (0..all).filter(|n| bits >> n & 1 == 1).map(Slot).collect());
        sets.filter(|read: &SlotSet| read.minus(self.view.readable).is_empty())
            .filter(|read| self.suffices(*read, parities))
            .map(SlotSet::len)
            .min()
    }

    fn judge(&self, plan: &WritePlan, what: &str) {
        let Self { view, written, .. } = self;
        assert!(plan.read.minus(view.readable).is_empty(), "{what}: reads what is not good: {plan:?}");
        assert!(plan.write.minus(view.writable).is_empty(), "{what}: writes to a slot without a member: {plan:?}");
        assert_eq!(plan.write & view.data, *written & view.writable, "{what}: all that is written, nothing else");
        assert_eq!(plan.write & view.parities(), plan.parity, "{what}: what is computed is written");
        // A rebuild makes stale parity on the member that it fills. On any other member it would be believed.
        let believed = (view.parities() & view.writable).minus(view.filling) | (view.parities() & view.readable);
        assert!(believed.minus(plan.parity).is_empty(), "{what}: a parity stays old: {plan:?}");
        assert!(self.suffices(plan.read, plan.parity), "{what}: the parity cannot be known: {plan:?}");
        // Data that has no place of its own lives in the parity, which brings back as many columns as it has.
        let placeless = view.data.minus(view.writable);
        if written.intersects(placeless) {
            assert!(placeless.len() <= plan.parity.len(), "{what}: data is dropped: {plan:?}");
        }
        if !view.trusted && plan.method != WriteMethod::RecoverThenWrite {
            assert!(!plan.read.intersects(view.parities()), "{what}: believes parity that is not trusted: {plan:?}");
        }
    }
}

/// Every condition of the slots (good; takes writes, but is not good; not there), every set of written columns.
fn each_case(columns: u16, parities: u16, mut test: impl FnMut(&Case)) {
    let slots = u32::from(columns + parities);
    for state in 0..3_u32.pow(slots) {
        let (mut readable, mut writable) = (SlotSet::EMPTY, SlotSet::EMPTY);
        for slot in 0..columns + parities {
            match state / 3_u32.pow(u32::from(slot)) % 3 {
                0 => {
                    readable.insert(Slot(slot));
                    writable.insert(Slot(slot));
                }
                1 => writable.insert(Slot(slot)),
                _ => {}
            }
        }
        for bits in 1..1_u32 << columns {
            let written = (0..columns).filter(|column| bits >> column & 1 == 1).map(Slot).collect();
            let unread = writable.minus(readable);
            for (trusted, filling) in [(true, unread), (false, unread), (true, SlotSet::EMPTY), (false, SlotSet::EMPTY)]
            {
                let view = StripeView {
                    data: SlotSet::first_n(columns),
                    p: Slot(columns),
                    q: (parities == 2).then_some(Slot(columns + 1)),
                    readable,
                    writable,
                    filling,
                    trusted,
                };
                test(&Case { view, written, columns });
            }
        }
    }
}

#[test]
fn every_plan_is_possible_writes_everything_and_reads_no_more_than_it_must() {
    let (mut plans, mut refused) = (0, 0);
    for parities in [1, 2] {
        for columns in 1..=5 - parities + 1 {
            each_case(columns, parities, |case| {
                let Case { view, written, .. } = case;
                let what = format!("{columns}+{parities}, {view:?}, written {written:?}");
                let parity = view.parities() & view.writable;
                let good = parity.minus(view.filling) | (view.parities() & view.readable);
                let healthy = view.readable == SlotSet::first_n(columns + parities);
                match plan_write(view, *written, PartialWritePolicy::Fewest) {
                    Ok(plan) => {
                        plans += 1;
                        case.judge(&plan, &what);
                        if view.trusted && (healthy || plan.read.is_empty()) {
                            let fewest = case.fewest(plan.parity).expect("the plan is one way");
                            assert_eq!(plan.read.len(), fewest, "{what}: {plan:?}");
                        }
                    }
                    Err(_) => {
                        refused += 1;
                        let placeless = view.data.minus(view.writable);
                        let dropped = written.intersects(placeless) && placeless.len() > parity.len();
                        let unknown = case.fewest(good).is_none() || (good.is_empty() && case.fewest(parity).is_none());
                        assert!(dropped || unknown || !view.trusted, "{what}: this could have been done");
                    }
                }
            });
        }
    }
    assert!(plans > 10_000 && refused > 1_000, "{plans} plans, {refused} refusals");
}

#[test]
fn forced_read_modify_write_is_taken_wherever_it_is_possible() {
    for parities in [1, 2] {
        each_case(3, parities, |case| {
            let Case { view, written, .. } = case;
            let Ok(plan) = plan_write(view, *written, PartialWritePolicy::ReadModifyWrite) else { return };
            case.judge(&plan, &format!("{view:?}, written {written:?}"));
            let healthy = view.readable == SlotSet::first_n(3 + parities);
            if healthy && view.trusted && *written != view.data {
                assert_eq!(plan.method, WriteMethod::ReadModifyWrite);
                assert_eq!(plan.read, *written | view.parities());
            }
        });
    }
}
