//! News of machines that are refused: each array's last reason once, and a limited number of lines in a time.

use openraid_units::{ArrayId, Instant};

use crate::limits::{REFUSALS_TOLD_MAX, REFUSALS_TOLD_TIME};

/// Refusals to be told.
#[derive(Debug, Default)]
pub struct Refusals {
    waiting: Vec<(ArrayId, String)>,
    /// The last reason of each array.
    last: Vec<(ArrayId, String)>,
    /// The end of the time in which lines are counted.
    until: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Refusals {
    /// A machine of an array was refused.
    pub fn add(&mut self, array: ArrayId, why: String, now: Instant) {
        match self.last.iter_mut().find(|(known, _)| *known == array) {
            Some((_, last)) if *last == why => return,
            Some((_, last)) => last.clone_from(&why),
            None => self.last.push((array, why.clone())),
        }
        if self.until.is_none_or(|until| until <= now) {
            (self.until, self.told) = (Some(now + REFUSALS_TOLD_TIME), 0);
        }
        if self.told == REFUSALS_TOLD_MAX {
            self.untold += 1;
            return;
        }
        self.told += 1;
        let untold = match std::mem::take(&mut self.untold) {
            0 => String::new(),
            count => format!(" (before this, {count} more were not told)"),
        };
        self.waiting.push((array, why + &untold));
    }

    /// The array is gone.
    pub fn forget(&mut self, array: ArrayId) {
        self.last.retain(|(known, _)| *known != array);
    }

    /// Those since the last call.
    pub fn take(&mut self) -> Vec<(ArrayId, String)> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_and_a_flood_of_reasons_is_counted() {
        let mut refusals = Refusals::default();
        let now = Instant(5);
        for array in [1, 2, 1, 2] {
            refusals.add(ArrayId(array), "full".into(), now);
        }
        assert_eq!(refusals.take(), [(ArrayId(1), "full".into()), (ArrayId(2), "full".into())]);
        (0..100).for_each(|nth| refusals.add(ArrayId(1), nth.to_string(), now));
        assert_eq!(refusals.take().len(), REFUSALS_TOLD_MAX as usize - 2);
        refusals.add(ArrayId(1), "later".into(), now + REFUSALS_TOLD_TIME);
        let untold = 100 - (REFUSALS_TOLD_MAX - 2);
        assert_eq!(refusals.take()[0].1, format!("later (before this, {untold} more were not told)"));
    }
}
