//! Decides when a load has become steady: its rate and the content of the caches no longer change.

/// Number of windows that must be alike.
const STEADY_WINDOWS: u32 = 3;
/// A smaller change of the dirty data between two windows counts as none. The change is measured as a fraction of the
/// bytes written in that time. A cache whose dirty data grow faster is still filling, and answers faster than it can in
/// the long run.
pub(super) const DIRTY_CHANGE_SHARE: u64 = 16;

/// Decides window by window whether a load has become steady.
pub(super) struct Steadiness {
    /// Dirty data in the controller's cache, and in all caches.
    pub dirty: u64,
    pub all: u64,
    rate: u64,
    /// Number of consecutive windows in which the dirty data did not change, and in which the rate did not change.
    still: u32,
    alike: u32,
    /// Number of windows in which the dirty data grew, and in which they shrank.
    ups: u32,
    downs: u32,
    /// Number of windows, and number of those in which the data in the controller's cache grew too much to count as
    /// unchanged.
    windows: u32,
    filling: u32,
    /// Number of windows in which the data in the controller's cache shrank too much to count as unchanged.
    emptying: u32,
}

impl Steadiness {
    pub const fn new(dirty: u64, all: u64) -> Self {
        Self { dirty, all, rate: 0, still: 0, alike: 0, ups: 0, downs: 0, windows: 0, filling: 0, emptying: 0 }
    }

    pub fn window(&mut self, (dirty, all): (u64, u64), written: u64, rate: u64) {
        let some = written / DIRTY_CHANGE_SHARE;
        self.still = if all.abs_diff(self.all) <= some { self.still + 1 } else { 0 };
        self.alike = if rate.abs_diff(self.rate) <= rate / 4 { self.alike + 1 } else { 0 };
        self.ups += u32::from(all > self.all);
        self.downs += u32::from(all < self.all);
        self.windows += 1;
        self.filling += u32::from(dirty > self.dirty + some);
        self.emptying += u32::from(dirty + some < self.dirty);
        (self.dirty, self.all, self.rate) = (dirty, all, rate);
    }

    /// Has the content of the controller's cache only grown, for at least `windows` windows?
    pub const fn only_up(&self, windows: u32) -> bool {
        self.filling >= windows && self.filling == self.windows
    }

    /// Has the content of the controller's cache only shrunk?
    pub const fn only_down(&self) -> bool {
        self.windows > 0 && self.emptying == self.windows
    }

    pub const fn reached(&self) -> bool {
        let level = self.still >= STEADY_WINDOWS || (self.ups >= STEADY_WINDOWS && self.downs >= STEADY_WINDOWS);
        level && self.alike >= STEADY_WINDOWS
    }
}
