//! What the drives of a set can do.

use crate::array::set::Set;
use crate::io::state::drive_queues::Channels;

impl Channels {
    /// Does every active member of a set support discards, and read zeroes after one? Then redundancy still matches after
    /// a discard.
    pub(crate) fn discards_to_zeroes(&self, set: &Set) -> bool {
        let mut active = set.members().iter().filter(|member| member.is_active());
        active.all(|member| {
            self.get(member.drive()).is_some_and(|channel| channel.info().discard && channel.info().discard_zeroes)
        })
    }

    /// Does every active member of a set write zeroes without data?
    pub(crate) fn zeroes_fast(&self, set: &Set) -> bool {
        let mut active = set.members().iter().filter(|member| member.is_active());
        active.all(|member| self.get(member.drive()).is_some_and(|channel| channel.info().write_zeroes))
    }
}
