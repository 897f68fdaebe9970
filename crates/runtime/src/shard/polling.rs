//! Polling: does it pay to poll for the next request before a sleep?
//!
//! A poll costs up to [`crate::limits::LOOK_TIME`] of a processor. It saves the time of a wake-up if the next request
//! comes within that time, so the shard counts the results of its polls.

use crate::limits::{LOOK_CREDIT_MAX, LOOK_HIT, LOOK_PAUSE};

/// The account of polls.
#[derive(Debug)]
pub struct Looks {
    /// Number of polls that may still find nothing; `None` if the machine has only one processor.
    credit: Option<u32>,
    /// Rounds without a poll since the credit was used up.
    paused: u32,
}

impl Looks {
    /// An account with full credit, if the machine has a second processor.
    pub fn new() -> Self {
        let has_spare = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Self { credit: has_spare.then_some(LOOK_CREDIT_MAX), paused: 0 }
    }

    /// Should the shard poll after this round?
    pub fn pays(&mut self) -> bool {
        match self.credit {
            None => false,
            Some(0) => {
                self.paused = (self.paused + 1) % LOOK_PAUSE;
                self.paused == 0
            }
            Some(_) => true,
        }
    }

    /// Note the result of a poll.
    pub fn note(&mut self, found: bool) {
        let credit = self.credit.unwrap_or(0);
        let credit = if found { (credit + LOOK_HIT).min(LOOK_CREDIT_MAX) } else { credit.saturating_sub(1) };
        self.credit = Some(credit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(looks: &mut Looks, count: u32, mut finds: impl FnMut(u32) -> bool) -> u32 {
        (0..count)
            .filter(|round| {
                let pays = looks.pays();
                if pays {
                    looks.note(finds(*round));
                }
                pays
            })
            .count()
            .try_into()
            .expect("few rounds")
    }

    fn with_spare_processor() -> Looks {
        Looks { credit: Some(LOOK_CREDIT_MAX), paused: 0 }
    }

    #[test]
    fn looks_that_find_nothing_become_rare() {
        let looked = rounds(&mut with_spare_processor(), LOOK_CREDIT_MAX + 1000 * LOOK_PAUSE, |_| false);
        assert_eq!(looked, LOOK_CREDIT_MAX + 1000);
    }

    #[test]
    fn looks_go_on_while_one_in_five_finds_something() {
        assert_eq!(rounds(&mut with_spare_processor(), 5000, |round| round % 5 == 0), 5000);
    }

    #[test]
    fn looks_come_back_with_a_client_that_waits_for_each_answer() {
        let mut looks = with_spare_processor();
        rounds(&mut looks, 10_000, |_| false);
        rounds(&mut looks, LOOK_PAUSE, |_| true);
        assert_eq!(rounds(&mut looks, 1000, |_| true), 1000);
    }

    #[test]
    fn a_single_processor_is_never_kept_busy_by_looks() {
        let mut looks = Looks { credit: None, paused: 0 };
        assert_eq!(rounds(&mut looks, 1000, |_| true), 0);
    }
}
