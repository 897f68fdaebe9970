//! The pace of a task next to hosts: it has at least `rebuild.minimum`, as far as the drives can.
//!
//! Drives prefer commands of hosts. If hosts always have one that waits, a rebuild would go on only by the age limit of all
//! commands, two seconds for each read and each write of a unit: a drive of 480 GB would take five days or more. So
//! its commands get an age limit of their own, which gives the minimum rate, and every fourth turn of a drive.
//!
//! A drive without heads works on all its commands at once, so a command of a host waits for the background commands
//! that the drive already has. Next to hosts they are short, and one at a time.
//!
//! ```text
//!              hosts use flash                 a window below the minimum
//!      Full ------------------> BesideHosts ----------------------------> Minimum
//!       ^ <---------------------            <----------------------------    |
//!       |     hosts pause                         after five seconds          |
//!       +---------------------------------------------------------------------
//! ```

use openraid_units::{Nanos, Sectors};

use crate::array::set::Set;
use crate::call::Call;
use crate::io::state::task_pace::TaskPace;
use crate::limits::PACE_WINDOW;

/// Choose the pace of a set that has a task. If it gets its minimum from now on, its waiting commands are overdue at once: the
/// unit in work has given way long enough.
pub(super) fn choose_pace(set: &mut Set, call: &mut Call) {
    let Some(done) = set.tasks.done_of_member() else { return };
    let channels = call.channels();
    let is_of_hosts = |drive| channels.get(drive).is_some_and(|drive| drive.is_flash_of_hosts(call.now()));
    let is_beside_hosts = set.members().iter().any(|member| is_of_hosts(member.drive()));
    let (rate, minimum) = (set.policy().rebuild_rate, set.policy().rebuild_minimum);
    let minimum = TaskPace::Minimum.rate(rate, minimum);
    let before = set.tasks.pace();
    set.tasks.pacing = set.tasks.pacing.next(is_beside_hosts, (done, minimum), call.now());
    if set.tasks.pace() == TaskPace::Minimum && before != TaskPace::Minimum && !minimum.is_zero() {
        set_age(set, Nanos::ZERO, call);
    }
}

fn set_age(set: &Set, most: Nanos, call: &mut Call) {
    for member in set.members() {
        call.channels_mut().set_background_age(member.drive(), most);
    }
}

/// Let commands of this set's task wait no longer than its minimum rate allows: there are `background.depth` units in work,
/// each of `unit` on a member, which first reads and then writes. Next to hosts on flash they give way until it is known
/// what hosts leave; with less than the minimum, one unit may be all that is in work, and busy drives need half of its time.
pub(super) fn keep_minimum(set: &Set, unit: Sectors, call: &mut Call) {
    let policy = set.policy();
    let most = match (policy.rebuild_minimum, set.tasks.pace()) {
        (Sectors::ZERO, _) => u64::MAX,
        (_, TaskPace::BesideHosts) => PACE_WINDOW.get(),
        (rate, TaskPace::Minimum) => time_of(unit, rate) / 4,
        (rate, TaskPace::Full) => time_of(unit * u64::from(policy.background_depth), rate) / 2,
    };
    set_age(set, Nanos(most), call);
}

/// Nanoseconds for this number of sectors at this rate.
fn time_of(sectors: Sectors, rate: Sectors) -> u64 {
    u64::try_from(u128::from(sectors.get()) * 1_000_000_000 / u128::from(rate.get())).unwrap_or(u64::MAX)
}
