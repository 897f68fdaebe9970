//! Completions whose time is known but has not come, in order of time.

use openraid_units::{Instant, Tag};

/// Completions by their time; equal times in the order in which they were added. The first completion is at the end of
/// the list. The list most often has one or two.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    line: Vec<(Instant, Tag)>,
}

impl Outbox {
    /// Add the completion of a command at this time.
    #[inline]
    pub fn push(&mut self, at: Instant, tag: Tag) {
        match self.line.last() {
            Some((first, _)) if *first <= at => {
                let place = self.line.partition_point(|(other, _)| *other > at);
                self.line.insert(place, (at, tag));
            }
            _ => self.line.push((at, tag)),
        }
    }
    /// The time of the first completion.
    #[must_use]
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        self.line.last().map(|(at, _)| *at)
    }
    /// Take the first completion that is due, with its time.
    #[inline]
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, Tag)> {
        if self.next()? > now {
            return None;
        }
        self.line.pop()
    }
    /// Number of completions that were not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.line.len()
    }
    /// Whether no completion is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use openraid_units::TagKind;

    /// Compared with a list that is sorted by time and then by order of arrival.
    #[test]
    fn completions_come_by_time_and_equal_ones_as_they_were_decided() {
        let (mut random, mut outbox, mut plain) = (Random::new(3), Outbox::default(), Vec::new());
        for number in 0..20_000 {
            if random.chance(1, 2) {
                let (at, tag) = (Instant(random.below(40)), Tag::new(TagKind::Drive, number, 0));
                outbox.push(at, tag);
                plain.push((at, number, tag));
            }
            let now = Instant(random.below(40));
            plain.sort_unstable_by_key(|(at, number, _)| (*at, *number));
            assert_eq!((outbox.next(), outbox.len()), (plain.first().map(|due| due.0), plain.len()));
            let is_due = plain.first().is_some_and(|due| due.0 <= now);
            let first = is_due.then(|| plain.remove(0)).map(|(at, _, tag)| (at, tag));
            assert_eq!(outbox.pop_due(now), first);
        }
    }
}
