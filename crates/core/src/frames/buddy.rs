//! One zone of frames, with the owner of each part. Buddy allocation, so that a run is contiguous and naturally
//! aligned, and neighbours merge when they are returned.
//!
//! A run can have several holders: the operation that asked for it, and each drive command that timed out while it
//! pointed there. It is free, and may be used again, when the last holder has released it.

use alloc::vec::Vec;
use openraid_units::{Bytes, PoolOffset};

use crate::limits::FRAME_BYTES;
use crate::slab::NONE;

/// log2 of the largest run, in frames: 2^13 frames are 32 MiB.
const ORDER_MAX: u32 = 13;
/// Size of the largest run.
pub(crate) const RUN_BYTES_MAX: Bytes = Bytes(FRAME_BYTES << ORDER_MAX);
const ORDERS: usize = ORDER_MAX as usize + 1;
/// Runs below this order (up to 32 KiB) are kept ready when they are returned. Merging them at once and splitting them
/// again for the next request would be most of the cost of a small request here.
const READY_ORDERS: usize = 4;
/// Maximum number of runs that are kept ready for each of these orders.
const READY_MAX: usize = 64;

/// A run of frames with a holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// First byte in the pool.
    pub at: PoolOffset,
    /// A whole word like the other one: the rest next to a narrow field would be copied in parts, for which a processor
    /// waits.
    order: u64,
}

impl Run {
    /// Is this byte of the pool in it?
    pub(crate) const fn holds(&self, at: PoolOffset) -> bool {
        self.at.get() <= at.get() && at.get() - self.at.get() < FRAME_BYTES << self.order
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not the first frame of anything.
    Inside,
    /// First frame of a free run of this order.
    Free(u8),
    /// First frame of a free run that is kept ready.
    Ready,
    /// First frame of a run with this number of holders.
    Held { order: u8, holds: u16 },
}

/// First frames of free runs of one order that are kept ready, the most recent first.
#[derive(Debug)]
struct ReadyRuns {
    frames: [u32; READY_MAX],
    len: usize,
}

impl ReadyRuns {
    const NONE: Self = Self { frames: [NONE; READY_MAX], len: 0 };

    /// Keep one more; false if there is no room.
    #[inline]
    fn keep(&mut self, frame: u32) -> bool {
        let Some(place) = self.frames.get_mut(self.len) else { return false };
        *place = frame;
        self.len += 1;
        true
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        Some(self.frames[self.len])
    }
}

/// The order of the smallest run with at least `bytes` bytes.
#[inline(always)]
fn order_of(bytes: u64) -> u32 {
    bytes.div_ceil(FRAME_BYTES).max(1).next_power_of_two().trailing_zeros()
}

/// One zone of the pool.
#[derive(Debug)]
pub(super) struct Buddy {
    /// First byte of the zone in the pool.
    base: u64,
    states: Vec<State>,
    next: Vec<u32>,
    previous: Vec<u32>,
    heads: [u32; ORDERS],
    ready: [ReadyRuns; READY_ORDERS],
    free_frames: u32,
}

impl Buddy {
    /// A zone of `bytes` bytes that starts at `base`.
    #[allow(clippy::cast_possible_truncation)] // limits bound the pool to 2^42 bytes: 2^30 frames
    pub fn new(base: u64, bytes: u64) -> Self {
        let frames = bytes / FRAME_BYTES;
        assert!(frames > 0 && frames < u64::from(NONE));
        let n = frames as usize;
        let mut this = Self {
            base,
            states: alloc::vec![State::Inside; n],
            next: alloc::vec![NONE; n],
            previous: alloc::vec![NONE; n],
            heads: [NONE; ORDERS],
            ready: [ReadyRuns::NONE; READY_ORDERS],
            free_frames: frames as u32,
        };
        let mut at = 0u32;
        while u64::from(at) < frames {
            let left = frames as u32 - at;
            let order = left.ilog2().min(ORDER_MAX).min(if at == 0 { ORDER_MAX } else { at.trailing_zeros() });
            this.link(at, order);
            at += 1 << order;
        }
        this
    }

    /// Is this run in the zone?
    #[inline]
    pub fn has(&self, run: Run) -> bool {
        let frames = self.states.len() as u64;
        (self.base..self.base + frames * FRAME_BYTES).contains(&run.at.get())
    }
    /// Number of free frames.
    pub fn free_frames(&self) -> u32 {
        self.free_frames
    }
    /// Is every frame free?
    #[cfg(test)]
    pub fn all_free(&self) -> bool {
        self.free_frames as usize == self.states.len()
    }

    #[allow(clippy::cast_possible_truncation)] // orders are at most ORDER_MAX
    fn link(&mut self, frame: u32, order: u32) {
        let head = self.heads[order as usize];
        self.states[frame as usize] = State::Free(order as u8);
        self.next[frame as usize] = head;
        self.previous[frame as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = frame;
        }
        self.heads[order as usize] = frame;
    }

    fn unlink(&mut self, frame: u32, order: u32) {
        let (next, previous) = (self.next[frame as usize], self.previous[frame as usize]);
        if previous == NONE {
            self.heads[order as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        self.states[frame as usize] = State::Inside;
    }

    /// A run of at least `bytes` bytes, with one holder; `None` if no such run is free.
    #[allow(clippy::cast_possible_truncation)] // bounded by ORDER_MAX
    pub fn take(&mut self, bytes: u64) -> Option<Run> {
        let order = order_of(bytes);
        assert!(order <= ORDER_MAX, "no run is larger than 32 MiB");
        let ready = self.ready.get_mut(order as usize).and_then(ReadyRuns::take);
        let frame = match ready {
            Some(frame) => frame,
            None => self.find(order)?,
        };
        self.states[frame as usize] = State::Held { order: order as u8, holds: 1 };
        self.free_frames -= 1 << order;
        Some(Run { at: PoolOffset(self.base + u64::from(frame) * FRAME_BYTES), order: order.into() })
    }

    /// Is a run of at least `bytes` bytes free, without merging others?
    pub fn has_run(&self, bytes: u64) -> bool {
        let order = order_of(bytes) as usize;
        let is_ready = self.ready.get(order).is_some_and(|ready| ready.len > 0);
        is_ready || self.heads[order..].iter().any(|head| *head != NONE)
    }

    /// A run of this order, of which none is ready.
    #[inline(never)]
    fn find(&mut self, order: u32) -> Option<u32> {
        self.split(order).or_else(|| if self.merge_ready() { self.split(order) } else { None })
    }

    /// Take a run of this order out of the lists, or out of a larger run.
    fn split(&mut self, order: u32) -> Option<u32> {
        let mut from = order;
        while self.heads[from as usize] == NONE {
            from += 1;
            if from > ORDER_MAX {
                return None;
            }
        }
        let frame = self.heads[from as usize];
        self.unlink(frame, from);
        while from > order {
            from -= 1;
            self.link(frame + (1 << from), from);
        }
        Some(frame)
    }

    /// Merge the runs that are kept ready; false if there is none.
    fn merge_ready(&mut self) -> bool {
        let mut any = false;
        for (order, kept) in (0..).zip(0..READY_ORDERS) {
            while let Some(frame) = self.ready[kept].take() {
                any = true;
                self.merge(frame, order);
            }
        }
        any
    }

    #[allow(clippy::cast_possible_truncation)] // a zone has less than 2^32 frames
    fn frame_of(&self, run: Run) -> u32 {
        ((run.at.get() - self.base) / FRAME_BYTES) as u32
    }

    /// Add a holder to `run`.
    pub fn hold(&mut self, run: Run) {
        let frame = self.frame_of(run) as usize;
        match &mut self.states[frame] {
            State::Held { holds, .. } => *holds += 1,
            other => panic!("held a run that is not in hand: {other:?}"),
        }
    }

    /// Release `run`; true if it has no other holder and its frames are free now.
    #[allow(clippy::cast_possible_truncation)] // a zone has less than 2^32 frames
    pub fn release(&mut self, run: Run) -> bool {
        let frame = self.frame_of(run);
        match &mut self.states[frame as usize] {
            State::Held { order, holds } => {
                assert_eq!(u64::from(*order), run.order);
                *holds -= 1;
                if *holds > 0 {
                    return false;
                }
            }
            other => panic!("released a run that is not in hand: {other:?}"),
        }
        self.free_frames += 1 << run.order;
        if self.ready.get_mut(run.order as usize).is_some_and(|ready| ready.keep(frame)) {
            self.states[frame as usize] = State::Ready;
        } else {
            self.merge(frame, run.order as u32);
        }
        true
    }

    /// Return a run to the lists, merged with its free neighbours.
    #[allow(clippy::cast_possible_truncation)] // orders are at most ORDER_MAX
    #[inline(never)]
    fn merge(&mut self, mut frame: u32, mut order: u32) {
        while order < ORDER_MAX {
            let buddy = frame ^ (1 << order);
            if self.states.get(buddy as usize) != Some(&State::Free(order as u8)) {
                break;
            }
            self.unlink(buddy, order);
            self.states[frame as usize] = State::Inside;
            frame = frame.min(buddy);
            order += 1;
        }
        self.link(frame, order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_possible_truncation)] // a thousand frames
    fn runs_never_overlap_and_all_comes_back() {
        let frames_total = 1000u64;
        let mut frames = Buddy::new(4096 * 7, frames_total * FRAME_BYTES);
        let mut owner = alloc::vec![0u32; frames_total as usize];
        let mut runs: Vec<(u32, Run)> = Vec::new();
        let mut seed = 1u64;
        for id in 1..20_000u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if seed >> 60 < 8 || runs.is_empty() {
                let bytes = (seed >> 33) % (64 * FRAME_BYTES) + 1;
                if let Some(run) = frames.take(bytes) {
                    let first = (run.at.get() / FRAME_BYTES - 7) as usize;
                    for o in &mut owner[first..first + (1 << run.order)] {
                        assert_eq!(*o, 0, "a frame was handed out twice");
                        *o = id;
                    }
                    assert!((FRAME_BYTES << run.order) >= bytes);
                    runs.push((id, run));
                }
            } else {
                let (id, run) = runs.swap_remove((seed >> 33) as usize % runs.len());
                for o in &mut owner {
                    if *o == id {
                        *o = 0;
                    }
                }
                frames.hold(run);
                assert!(!frames.release(run));
                assert!(frames.release(run));
            }
        }
        for (_, run) in runs {
            frames.release(run);
        }
        assert!(frames.all_free());
        assert!(frames.take(512 * FRAME_BYTES).is_some(), "neighbours merged again");
    }
}
