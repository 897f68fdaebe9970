//! The pages of file descriptions that a host keeps in its memory. It keeps the pages that it used last.

use std::collections::BTreeMap;

/// A number of pages, of which the one that was not used for the longest time makes room for another.
pub struct PageCache {
    most: u64,
    uses: u64,
    /// The last use of each page, by the page.
    used: BTreeMap<u64, u64>,
    /// The pages by their last use.
    order: BTreeMap<u64, u64>,
}

impl PageCache {
    /// Room for this number of pages.
    #[must_use]
    pub const fn new(most: u64) -> Self {
        Self { most, uses: 0, used: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// Uses a page. Returns whether it was kept, so that nothing must be read.
    pub fn uses(&mut self, page: u64) -> bool {
        self.uses += 1;
        let before = self.used.insert(page, self.uses);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.uses, page);
        if self.used.len() as u64 > self.most {
            let (_, oldest) = self.order.pop_first().expect("a page was just used");
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_sim::Random;

    const PAGES: u64 = 400;

    /// The share of uses that find their page, after as many uses as a cache needs to become steady.
    fn found(most: u64, mut page: impl FnMut(&mut Random) -> u64) -> f64 {
        let (mut kept, mut random) = (PageCache::new(most), Random::derived(1, 1));
        for _ in 0..20_000 {
            kept.uses(page(&mut random));
        }
        let uses = 400_000;
        let found = (0..uses).filter(|_| kept.uses(page(&mut random))).count();
        found as f64 / f64::from(uses)
    }

    /// Che's approximation for independent uses: a page is kept for a time after each use, and that time is so long
    /// that the mean number of kept pages is the room. A quarter of the pages gets `hot` of the uses, and its share of
    /// the others.
    fn che(most: u64, hot: f64) -> f64 {
        let all = PAGES as f64;
        let classes = [(all / 4.0, hot / (all / 4.0) + (1.0 - hot) / all), (all * 0.75, (1.0 - hot) / all)];
        let kept = |time: f64| classes.iter().map(|(pages, rate)| pages * (1.0 - (-rate * time).exp())).sum::<f64>();
        let (mut low, mut high) = (0.0, 1e9);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if kept(middle) < most as f64 {
                low = middle;
            } else {
                high = middle;
            }
        }
        classes.iter().map(|(pages, rate)| pages * rate * (1.0 - (-rate * low).exp())).sum()
    }

    #[test]
    fn pages_that_are_used_alike_are_found_by_the_share_of_them_that_is_kept() {
        for most in [0, 40, 200, 360] {
            let share = found(most, |random| random.below(PAGES));
            assert!((share - most as f64 / PAGES as f64).abs() < 0.005, "{most}: {share}");
        }
    }

    #[test]
    fn hot_pages_are_found_as_often_as_the_approximation_says() {
        for (most, hot) in [(40, 50), (100, 50), (200, 50), (100, 80), (300, 80)] {
            let page = |random: &mut Random| {
                let all = if random.chance(hot, 100) { PAGES / 4 } else { PAGES };
                random.below(all)
            };
            let (share, expected) = (found(most, page), che(most, hot as f64 / 100.0));
            assert!((share - expected).abs() < 0.005, "{most} {hot}: {share} is not {expected}");
        }
    }
}
