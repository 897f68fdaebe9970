//! Bad-block logs of members that are not served: what of the array they make unreadable, and signs that they are wrong.
//!
//! md copies entries from member to member when a rebuild meets one. So one bad cable can leave equal logs on several
//! drives that have no bad sector.

use openraid_core::array::membership::Membership;
use openraid_core::array::BadRange;
use openraid_core::geometry::{Geometry, Mirror, Parity, StripeRole};
use openraid_core::slot_set::SlotSet;
use openraid_format::FeatureMap;
use openraid_runtime::member::ProbedMember;
use openraid_status::shell_quoting::{command, command_with};
use openraid_units::{Bytes, MemberLba, Sectors, SetLba, Slot};

use crate::on_disk::sets::{plan, SetPlan};

/// A range of addresses that a slot's log excludes: of the members, or of the set.
type ExcludedRange = (u64, u64, Slot);

/// Bytes of the array that the logs of its members make unreadable: too few members have them without an entry.
pub fn unreadable(set: &SetPlan, members: &[ProbedMember]) -> Bytes {
    let Ok(plan) = &set.plan else { return Bytes::ZERO };
    let (mut bad, mut missing) = (Vec::new(), plan.missing);
    for member in &plan.members {
        match member.verdict {
            Membership::Member(slot) | Membership::Forced(slot) => {
                bad.extend(members[member.drive.index()].look.bad.iter().map(|range| (slot, *range)));
            }
            Membership::Rebuilding(slot, _) => missing.insert(slot),
            _ => {}
        }
    }
    let sectors = match &plan.geometry {
        Geometry::Parity(parity) => of_parity(parity, &bad, missing),
        Geometry::Mirror(mirror) => of_mirror(mirror, &bad, missing),
        _ => bad.iter().map(|(_, range)| range.len.get().min(set.newest.size.get())).sum(),
    };
    Sectors(sectors).bytes()
}

/// The slots that are excluded in each stretch between two ends of ranges.
fn stretches(excluded: &[ExcludedRange], step: Option<u64>) -> Vec<(u64, u64, SlotSet)> {
    let mut ends: Vec<u64> = excluded.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    if let Some(step) = step {
        // A stretch does not cross the end of a chunk.
        ends.extend(excluded.iter().flat_map(|(from, to, _)| {
            (from.next_multiple_of(step)..*to).step_by(usize::try_from(step).expect("a chunk"))
        }));
    }
    ends.sort_unstable();
    ends.dedup();
    let within = |from: u64| {
        let covering = excluded.iter().filter(move |(start, end, _)| *start <= from && from < *end);
        covering.map(|(_, _, slot)| *slot).collect::<SlotSet>()
    };
    ends.windows(2).map(|ends| (ends[0], ends[1], within(ends[0]))).filter(|(_, _, slots)| !slots.is_empty()).collect()
}

fn of_parity(parity: &Parity, bad: &[(Slot, BadRange)], missing: SlotSet) -> u64 {
    let end = parity.member_extent().get();
    let excluded = bad
        .iter()
        .map(|(slot, range)| (range.at.get().min(end), range.at.get().saturating_add(range.len.get()).min(end), *slot));
    let excluded: Vec<ExcludedRange> = excluded.collect();
    let lost = |(from, to, slots): (u64, u64, SlotSet)| {
        let slots = slots | missing;
        let Some((stripe, _)) = parity.stripe_at(MemberLba(from)) else { return 0 };
        if slots.len() <= u32::from(parity.parities()) {
            return 0;
        }
        let is_data = |slot: &Slot| matches!(parity.role_of(stripe, *slot), StripeRole::Data(_));
        (to - from) * slots.iter().filter(is_data).count() as u64
    };
    stretches(&excluded, Some(parity.chunk().get())).into_iter().map(lost).sum()
}

fn of_mirror(mirror: &Mirror, bad: &[(Slot, BadRange)], missing: SlotSet) -> u64 {
    let excluded: Vec<ExcludedRange> = bad.iter().flat_map(|(slot, range)| in_set(mirror, *slot, *range)).collect();
    let lost = |(from, to, slots): (u64, u64, SlotSet)| {
        let slots = slots | missing;
        let is_lost = mirror.copies(SetLba(from)).all(|copy| slots.contains(copy.slot));
        if is_lost {
            to - from
        } else {
            0
        }
    };
    stretches(&excluded, mirror.chunk().map(Sectors::get)).into_iter().map(lost).sum()
}

/// The addresses of the set that a range of a member holds.
pub fn in_set(mirror: &Mirror, slot: Slot, range: BadRange) -> Vec<ExcludedRange> {
    let (mut at, end) = (range.at.get(), range.at.get().saturating_add(range.len.get()));
    let mut found = Vec::new();
    while at < end {
        let Some((place, run)) = mirror.inverse(slot, MemberLba(at)) else { break };
        let len = run.get().min(end - at);
        found.push((place.get(), place.get() + len, slot));
        at += len;
    }
    found
}

/// Members whose logs have the same entries, which no two drives have by chance.
pub fn equal_logs<'a>(set: &SetPlan, members: &'a [ProbedMember]) -> Vec<&'a ProbedMember> {
    let all = || set.members.iter().map(|place| &members[*place]).filter(|member| !member.look.bad.is_empty());
    let has_twin =
        |member: &&ProbedMember| all().any(|other| !std::ptr::eq(*member, other) && other.look.bad == member.look.bad);
    all().filter(has_twin).collect()
}

/// Both in words, with what to do; `None` if nothing is to be said.
pub fn note(set: &SetPlan, members: &[ProbedMember]) -> Option<String> {
    let (lost, equal) = (unreadable(set, members).get(), equal_logs(set, members));
    (lost > 0 || !equal.is_empty()).then(|| text(set, members, lost, equal))
}

fn text(set: &SetPlan, members: &[ProbedMember], lost: u64, equal: Vec<&ProbedMember>) -> String {
    let names = |members: Vec<&ProbedMember>| members.iter().map(|member| member.spec.text.clone()).collect::<Vec<_>>();
    let mut parts = Vec::new();
    if lost > 0 {
        parts.push(format!("{lost} bytes of the array cannot be read because of them"));
    }
    if !equal.is_empty() {
        parts.push(format!(
            "those of {} are equal, which is a sign that the entries were copied and the drives are good",
            names(equal).join(" and ")
        ));
    }
    let all = names(set.members.iter().map(|place| &members[*place]).collect());
    format!(
        "bad-block logs: {}; to read past them: {}; to read those ranges again and clear the entries that are good: {}",
        parts.join("; "),
        command("copy-out --ignore-bad-blocks", &all),
        command_with("update --recheck-bad-blocks", &all, "--yes")
    )
}

/// As [`note`], for sets in which equal logs make data unreadable.
pub fn copied_logs(members: &[ProbedMember]) -> Vec<String> {
    let (plans, _) = plan(members, false);
    let of = |set: &SetPlan| {
        let equal = equal_logs(set, members);
        // This is the slower question.
        let lost = if equal.is_empty() { 0 } else { unreadable(set, members).get() };
        (lost > 0).then(|| text(set, members, lost, equal))
    };
    plans.iter().filter_map(of).collect()
}

/// Take a member as if its log had no entry.
pub fn ignore(member: &mut ProbedMember) {
    member.look.bad.clear();
    member.look.bad_blocks_error = None;
    if let Some(superblock) = &mut member.look.superblock {
        superblock.features.set(FeatureMap::BAD_BLOCKS, false);
    }
}
