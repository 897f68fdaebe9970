//! How to read or write one row segment of a parity set: a pure function of the request and the state of the stripe.
//!
//! A row segment is a range of rows of one stripe in which the same columns are written in every row. With
//! k written columns of D and m parities that are there (healthy: m = 1 or 2):
//!
//! ```text
//!  method             reads               writes   possible when
//!  full stripe        0                   D + m    k = D
//!  read-modify-write  k + m               k + m    the written columns and the parities can be read and are trusted
//!  reconstruct-write  D - k               k + m    the columns not written can be read
//!  recover            all that is there   k + m    neither of the two, but what is lost can be recovered
//!  data only          0                   k        no parity member is there
//! ```
//!
//! The method with the fewest member reads is chosen (the number of writes is the same). If read-modify-write and
//! reconstruct-write need the same number, reconstruct-write is chosen, because it computes parity from data alone.

use crate::reason::Reason;
use crate::settings::PartialWritePolicy;
use crate::slot_set::SlotSet;
use openraid_units::Slot;

/// The members of one stripe by role, and their condition for the rows in work.
#[derive(Clone, Copy, Debug)]
pub struct StripeView {
    /// Slots of all data columns.
    pub data: SlotSet,
    /// Slot of P.
    pub p: Slot,
    /// Slot of Q, on RAID 6.
    pub q: Option<Slot>,
    /// Slots whose bytes on disk are good here.
    pub readable: SlotSet,
    /// Slots that take writes here.
    pub writable: SlotSet,
    /// Slots of `writable` whose members are being filled: parity that is left out there is computed later. On any
    /// other member it would stay old, and be trusted.
    pub filling: SlotSet,
    /// Does parity on disk match the data here?
    pub trusted: bool,
}

impl StripeView {
    /// The slots of P and Q.
    #[must_use]
    pub fn parities(&self) -> SlotSet {
        let p = SlotSet::one(self.p);
        self.q.map_or(p, |q| p.with(q))
    }
}

/// How parity is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteMethod {
    /// From new data alone.
    FullStripe,
    /// From the old parity, old data and new data.
    ReadModifyWrite,
    /// From the new data and the columns that are not written.
    ReconstructWrite,
    /// As [`WriteMethod::ReconstructWrite`], after missing columns were recovered from all available data.
    RecoverThenWrite,
    /// No parity is written.
    DataOnly,
}

/// The reads, computations and writes of a row segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WritePlan {
    /// The method.
    pub method: WriteMethod,
    /// Slots to read.
    pub read: SlotSet,
    /// Data slots to recover from the reads.
    pub lost: SlotSet,
    /// Parity slots to compute.
    pub parity: SlotSet,
    /// Slots to write.
    pub write: SlotSet,
    /// The reason for the method.
    pub reason: Reason,
    /// Number of reads of the rejected method (0 if there was none).
    pub rejected_reads: u32,
}

/// The remaining redundancy does not cover the missing slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotRecoverable;

/// Plan the write of the data slots `written`.
///
/// # Errors
/// [`NotRecoverable`] if a column that is needed can be neither read nor recovered, or if a written column has
/// no member and the new parity could not restore it.
pub fn plan_write(
    view: &StripeView,
    written: SlotSet,
    policy: PartialWritePolicy,
) -> Result<WritePlan, NotRecoverable> {
    let plan = plan_any(view, written, policy)?;
    let placeless = view.data.minus(view.writable);
    if written.intersects(placeless) && placeless.len() > plan.parity.len() {
        return Err(NotRecoverable);
    }
    Ok(plan)
}

fn plan_any(view: &StripeView, written: SlotSet, policy: PartialWritePolicy) -> Result<WritePlan, NotRecoverable> {
    let parity = view.parities() & view.writable;
    let write = (written | parity) & view.writable;
    let others = view.data.minus(written);
    let plan = WritePlan {
        method: WriteMethod::FullStripe,
        read: SlotSet::EMPTY,
        lost: SlotSet::EMPTY,
        parity,
        write,
        reason: Reason::FullStripe,
        rejected_reads: 0,
    };
    if others.is_empty() {
        return Ok(plan);
    }
    if parity.is_empty() {
        return Ok(WritePlan { method: WriteMethod::DataOnly, reason: Reason::WriteNoParity, ..plan });
    }
    // On a complete stripe both methods are possible, and only the chosen one is worked out.
    let modifiable = modified_parity(view, written, parity);
    let reconstructible = others.minus(view.readable).is_empty();
    if let (Some(old), true) = (modifiable, reconstructible) {
        let (modify, reconstruct) = ((written | old).len(), others.len());
        return Ok(match choose(modify, reconstruct, policy) {
            Choice::Modify(reason) => {
                WritePlan { reason, rejected_reads: reconstruct, ..plan_modify(view, written, old, plan) }
            }
            Choice::Reconstruct(reason) => {
                let reconstruct = plan_reconstruct(view, written, others, plan);
                WritePlan { reason: reason.unwrap_or(reconstruct.reason), rejected_reads: modify, ..reconstruct }
            }
        });
    }
    let modify = modifiable.map(|old| plan_modify(view, written, old, plan));
    let reconstruct = reconstructible.then(|| plan_reconstruct(view, written, others, plan));
    match (modify, reconstruct) {
        (Some(_), Some(_)) => unreachable!("chosen above"),
        (Some(modify), None) => match plan_recover(view, others, plan) {
            // If few columns are left, recovering the lost one costs less than modifying both parities.
            Ok(recover) if view.trusted && recover.read.len() < modify.read.len() => {
                Ok(WritePlan { rejected_reads: modify.read.len(), ..recover })
            }
            _ => Ok(modify),
        },
        (None, Some(reconstruct)) => Ok(reconstruct),
        (None, None) => plan_recover(view, others, plan),
    }
}

/// The chosen method, and why; without a reason, the method's own reason applies.
enum Choice {
    Modify(Reason),
    Reconstruct(Option<Reason>),
}

fn choose(modify: u32, reconstruct: u32, policy: PartialWritePolicy) -> Choice {
    match policy {
        PartialWritePolicy::ReadModifyWrite => Choice::Modify(Reason::ReadModifyWriteForced),
        PartialWritePolicy::Fewest if modify < reconstruct => Choice::Modify(Reason::ReadModifyWriteFewer),
        PartialWritePolicy::Fewest if modify == reconstruct => Choice::Reconstruct(Some(Reason::ReconstructEqual)),
        PartialWritePolicy::Fewest => Choice::Reconstruct(None),
    }
}

/// The parity slots that can be modified in place; `None` if read-modify-write is impossible.
fn modified_parity(view: &StripeView, written: SlotSet, parity: SlotSet) -> Option<SlotSet> {
    let old = parity & view.readable;
    // The parity of a member that is being rebuilt and is not filled here is not written: its rebuild comes later.
    let all = parity.minus(old | view.filling).is_empty();
    let possible = all && view.trusted && written.minus(view.readable).is_empty() && !old.is_empty();
    possible.then_some(old)
}

fn plan_modify(view: &StripeView, written: SlotSet, old: SlotSet, plan: WritePlan) -> WritePlan {
    WritePlan {
        method: WriteMethod::ReadModifyWrite,
        read: written | old,
        parity: old,
        write: (written & view.writable) | old,
        reason: Reason::ReadModifyWriteFewer,
        ..plan
    }
}

fn plan_reconstruct(view: &StripeView, written: SlotSet, others: SlotSet, plan: WritePlan) -> WritePlan {
    let reason = if !view.trusted {
        Reason::ReconstructUntrusted
    } else if written.minus(view.readable).is_empty() {
        Reason::ReconstructFewer
    } else {
        Reason::ReconstructDegraded
    };
    WritePlan { method: WriteMethod::ReconstructWrite, read: others, reason, ..plan }
}

fn plan_recover(view: &StripeView, others: SlotSet, plan: WritePlan) -> Result<WritePlan, NotRecoverable> {
    let recovery = plan_recovery(view)?;
    debug_assert!(recovery.lost.intersects(others));
    Ok(WritePlan {
        method: WriteMethod::RecoverThenWrite,
        read: recovery.read,
        lost: recovery.lost,
        reason: Reason::RecoverThenWrite,
        ..plan
    })
}

/// The reads that recover every unreadable data column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecoveryPlan {
    /// Slots to read: all available data, and one parity for each lost column.
    pub read: SlotSet,
    /// Data slots to recover; at most two.
    pub lost: SlotSet,
}

/// Plan the recovery of every data column of the row.
///
/// # Errors
/// [`NotRecoverable`] if more columns are lost than parities can be read.
pub fn plan_recovery(view: &StripeView) -> Result<RecoveryPlan, NotRecoverable> {
    let lost = view.data.minus(view.readable);
    let parity = view.parities() & view.readable;
    if lost.len() > parity.len() {
        return Err(NotRecoverable);
    }
    // P before Q: its recovery is an XOR.
    let mut read = view.data & view.readable;
    let mut needed = lost.len();
    for slot in [Some(view.p), view.q].into_iter().flatten() {
        if needed > 0 && parity.contains(slot) {
            read.insert(slot);
            needed -= 1;
        }
    }
    Ok(RecoveryPlan { read, lost })
}
