//! Sets get the tuning that suits their policy and their members.

use crate::array::adaptive::Adaptive;
use crate::array::adaptive::FLASH_PATIENCE;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::call::Base;
use crate::limits::Limits;
use crate::settings::Tuning;
use openraid_units::{Nanos, SetId};

impl Sets {
    /// Whether the waiting commands of a set's members are sorted by position depends on the policy and on the members.
    pub(crate) fn sort_members(&mut self, arrays: &mut Arrays, base: &mut Base, id: SetId) {
        let set = self.get_mut(id);
        let was_flash = core::mem::replace(&mut set.is_flash, true);
        for member in set.members.iter().filter(|member| !member.is_removed()) {
            base.channels.sort(member.drive, set.policy.sorting);
            set.is_flash &= base.channels.get(member.drive).is_some_and(|channel| !channel.info().rotational);
        }
        if set.is_flash != was_flash {
            self.reset_adaptive(arrays, base, id);
        }
    }

    /// The arrays over a set start learning again. Until they have learned, all their sets follow their settings.
    pub(crate) fn reset_adaptive(&mut self, arrays: &mut Arrays, base: &Base, id: SetId) {
        self.reset_tuning(&base.limits, id);
        for array_id in arrays.numbers() {
            let Some(array) = arrays.find_mut(array_id) else { continue };
            let count = array.volume.set_count();
            if !(0..count).any(|number| array.volume.set(number) == id) {
                continue;
            }
            *array.adaptive = Adaptive::new(base.now);
            let first = self.find(array.volume.set(0));
            array.is_adaptive = first.is_some_and(|set| set.policy.adaptive);
            for number in 0..count {
                let set = arrays.get(array_id).volume.set(number);
                self.reset_tuning(&base.limits, set);
            }
        }
    }

    pub(super) fn reset_tuning(&mut self, limits: &Limits, id: SetId) {
        let delay = self.get(id).usual_delay(limits);
        let set = self.get_mut(id);
        set.tuning = Tuning::of(&set.policy, delay);
    }
}

impl Set {
    /// The usual time that dirty data of a set waits, whatever its load.
    pub(crate) fn usual_delay(&self, limits: &Limits) -> Nanos {
        Nanos(limits.destage_delay.get() * if self.is_flash { FLASH_PATIENCE } else { 1 })
    }
}
