//! The moment at which a load has become steady: its rate and the content of the caches do not change any more.

/// Windows that have to look alike.
const STEADY_WINDOWS: u32 = 3;
/// A change of the dirty data from window to window that counts as none, as a part of the writes in that time. A cache
/// that keeps more is still filling, and answers faster than it will in the long run.
pub(super) const DIRTY_CHANGE_SHARE: u64 = 16;

/// Whether a load has become steady, window by window.
pub(super) struct Steadiness {
    /// Dirty data in the controller's cache, and in all caches.
    dirty: u64,
    pub all: u64,
    rate: u64,
    /// Windows in a row in which the dirty data stood still, and in which the rate did.
    still: u32,
    alike: u32,
    /// Windows in which the dirty data grew and shrank.
    ups: u32,
    downs: u32,
    /// Windows so far, and those in which the controller's cache grew by too much to stand still.
    windows: u32,
    filling: u32,
    /// Windows in which it shrank by too much.
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

    /// Has the controller's cache done nothing but shrink?
    pub const fn only_down(&self) -> bool {
        self.windows > 0 && self.emptying == self.windows
    }

    pub const fn reached(&self) -> bool {
        let level = self.still >= STEADY_WINDOWS || (self.ups >= STEADY_WINDOWS && self.downs >= STEADY_WINDOWS);
        level && self.alike >= STEADY_WINDOWS
    }
}
