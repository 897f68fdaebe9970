//! Which slot is filled next, and by which member: a spare for a vacant slot, or the replacement of a working member.

use openraid_units::{SetId, Slot};

use crate::array::member::Member;
use crate::array::sets::Sets;
use crate::io::state::drive_queues::Channels;
use crate::set_status::MemberState;

/// A slot without a full member, and the member that can fill it: one whose rebuild has begun, or a spare.
pub(super) fn find_rebuild(sets: &Sets, channels: &Channels, id: SetId) -> Option<(Slot, u32)> {
    let set = sets.get(id);
    let free = |m: &Member| m.state() == MemberState::Spare && channels.outstanding(m.drive()) == 0;
    let fits = |m: &Member, slot: Slot| free(m) && set.new_start_of(m, slot).is_some();
    // A returning member goes to the slot where it has the least to restore.
    let back = |m: &Member| m.returns_to().filter(|slot| !set.is_held(*slot));
    if let Some(spare) = set.find_member(|m| back(m).is_some_and(|slot| fits(m, slot))) {
        return back(set.member(spare)).map(|slot| (slot, spare));
    }
    for slot in set.missing().minus(set.joined()) {
        if let Some(here) = set.place(slot).member() {
            if matches!(set.member(here).state(), MemberState::Rebuilding { .. }) {
                return Some((slot, here));
            }
            // Failing: the failure is not recorded yet.
            continue;
        }
        if let Some(spare) = set.find_member(|m| fits(m, slot)) {
            return Some((slot, spare));
        }
    }
    None
}

/// The slot of a working member that has a replacement.
pub(super) fn find_replacement(sets: &Sets, id: SetId) -> Option<Slot> {
    // If the old member is about to fail, its replacement will soon continue as a rebuild.
    let set = sets.get(id);
    set.in_sync().iter().find(|slot| set.place(*slot).replacement().is_some())
}
