//! The pace of a task next to hosts: it has at least `rebuild.minimum`, as far as the drives can.
//!
//! Drives prefer commands of hosts. If hosts always have one that waits, a rebuild would go on only by the age limit of all
//! commands, two seconds for each read and each write of a unit: a drive of 480 GB would take five days or more. So
//! its commands get an age limit of their own, which gives the minimum rate, and every fourth turn of a drive.

use openraid_units::{Nanos, Sectors};

use crate::array::set::Set;
use crate::call::Call;
/// Let commands of this set's task wait no longer than its minimum rate allows: there are `background.depth` units in work,
/// each of `unit` on a member, which first reads and then writes.
pub(super) fn keep_minimum(set: &Set, unit: Sectors, call: &mut Call) {
    let policy = set.policy();
    let most = match policy.rebuild_minimum {
        Sectors::ZERO => u64::MAX,
        rate => {
            let in_work = u128::from(unit.get()) * u128::from(policy.background_depth);
            u64::try_from(in_work * 1_000_000_000 / (2 * u128::from(rate.get()))).unwrap_or(u64::MAX)
        }
    };
    for member in set.members() {
        call.channels_mut().set_rebuild_age(member.drive(), Nanos(most));
    }
}
