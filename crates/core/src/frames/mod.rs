//! Frames: the controller's cache memory, in runs.
//!
//! An area is cut into zones. The first zone serves everything, as long as no given-up command points into it. The
//! frames of such commands may never come back, and could be the whole zone: then the next zone serves as well, so that
//! others can continue. A zone is closed again when all given-up commands have come back.

mod buddy;
mod pool;

use buddy::Buddy;
pub use buddy::Run;
pub(crate) use buddy::RUN_BYTES_MAX;
pub(crate) use pool::Pool;

use crate::limits::FRAME_BYTES;

/// Shares of the zones, of [`SHARES`]: two members may hang one after the other (RAID 6 survives that), and there is
/// still a zone.
const ZONES: [u64; 3] = [2, 1, 1];
/// Number of shares into which an area is cut.
const SHARES: u64 = 4;

/// One area of the pool.
#[derive(Debug)]
pub struct Frames {
    zones: [Zone; ZONES.len()],
}

#[derive(Debug)]
struct Zone {
    runs: Buddy,
    /// Number of given-up commands that point into it.
    given_up: u32,
}

impl Frames {
    /// An area of `bytes` bytes that starts at `base`.
    pub fn new(base: u64, bytes: u64) -> Self {
        let share = Self::zone_bytes(bytes);
        let mut at = base;
        let zones = ZONES.map(|shares| {
            let end = if at == base { base + bytes - (SHARES - shares) * share } else { at + share * shares };
            let zone = Zone { runs: Buddy::new(at, end - at), given_up: 0 };
            at = end;
            zone
        });
        Self { zones }
    }

    /// Size in bytes of the smallest zone of an area of `area` bytes. A run of this length always fits; a longer one
    /// may not.
    pub const fn zone_bytes(area: u64) -> u64 {
        area / SHARES / FRAME_BYTES * FRAME_BYTES
    }

    /// Number of free frames in all zones.
    pub fn free_frames(&self) -> u32 {
        self.zones.iter().map(|zone| zone.runs.free_frames()).sum()
    }

    /// A run of at least `bytes` bytes, with one holder; `None` if no such run is free in the zones that serve.
    #[inline]
    pub fn take(&mut self, bytes: u64) -> Option<Run> {
        let [first, ..] = &mut self.zones;
        let run = first.runs.take(bytes);
        if run.is_some() || first.given_up == 0 {
            return run;
        }
        self.take_behind(bytes)
    }

    /// Is a run of at least `bytes` bytes certainly there for [`Frames::take`]? Free runs that would have to be merged first
    /// do not count.
    pub fn has_run(&self, bytes: u64) -> bool {
        for zone in &self.zones {
            if zone.runs.has_run(bytes) || zone.given_up == 0 {
                return zone.runs.has_run(bytes);
            }
        }
        false
    }

    /// A run of a later zone, if the first one has none and does not serve alone.
    #[cold]
    fn take_behind(&mut self, bytes: u64) -> Option<Run> {
        for zone in &mut self.zones[1..] {
            let run = zone.runs.take(bytes);
            if run.is_some() || zone.given_up == 0 {
                return run;
            }
        }
        None
    }

    /// Do given-up commands point into every zone?
    pub fn is_spent(&self) -> bool {
        self.zones.iter().all(|zone| zone.given_up > 0)
    }

    #[inline]
    fn zone(&mut self, run: Run) -> &mut Zone {
        if self.zones[0].runs.has(run) {
            return &mut self.zones[0];
        }
        self.zones.iter_mut().find(|zone| zone.runs.has(run)).expect("runs are of this area")
    }

    /// A given-up command points into `run`: add a holder. True if that is the first one of its zone: from now on the
    /// next zone serves too.
    pub fn give_up(&mut self, run: Run) -> bool {
        let zone = self.zone(run);
        zone.runs.hold(run);
        zone.given_up += 1;
        zone.given_up == 1
    }

    /// A given-up command has come back.
    pub fn come_back(&mut self, run: Run) {
        let zone = self.zone(run);
        zone.given_up -= 1;
        zone.runs.release(run);
    }

    /// Release `run`; true if it has no other holder and its frames are free now.
    pub fn release(&mut self, run: Run) -> bool {
        self.zone(run).runs.release(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many frames of the first zones are given up, a run of the last zone's size is available; and when all
    /// have come back, only the first zone serves again.
    #[test]
    fn frames_of_a_given_up_command_leave_their_zone() {
        let mut frames = Frames::new(64 << 10, 1 << 20);
        let zone = Frames::zone_bytes(1 << 20);
        let mut out = alloc::vec::Vec::new();
        for _ in 0..2 {
            let mut taken = alloc::vec::Vec::new();
            while let Some(run) = frames.take(16 << 10) {
                taken.push(run);
            }
            assert!(frames.take(1).is_none());
            for run in taken {
                frames.give_up(run);
                frames.release(run);
                out.push(run);
            }
        }
        let run = frames.take(zone).expect("a zone is left");
        assert!(out.iter().all(|other| other.at != run.at));
        frames.release(run);
        let first = out[0].at;
        for run in out {
            frames.come_back(run);
        }
        assert_eq!(frames.take(2 * zone).map(|run| run.at), Some(first), "the first zone serves, and is whole");
    }
}
