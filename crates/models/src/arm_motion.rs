//! The seek time of an arm, from the three times of a data sheet.

use crate::disk::SeekPoints;

/// The motion of an arm. Over a short way it accelerates with full force and decelerates as fast. Over a long way it
/// moves at its highest speed in between. Then it settles. A share x of the full stroke takes `settle + 2 t sqrt(x /
/// k)` up to the share `k`, at which the arm just reaches its highest speed after the time `t`. A longer way takes
/// `settle + t (1 + x / k)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ArmMotion {
    next: f64,
    settle: f64,
    speed_up: f64,
    knee: f64,
}

/// The least share of the stroke at which an arm reaches its highest speed; a lesser one makes no difference.
const KNEE_MIN: f64 = 1e-6;

impl ArmMotion {
    /// The motion with the three times of a data sheet.
    ///
    /// The distance x of two random places has the density 2 (1 - x), so the mean time, without settling, is `t (1 + 1
    /// / 3k - k / 3 + k^2 / 15)`. It is between 1/3 and 8/15 of the longest, `t (1 + 1 / k)`. If the mean of a sheet is
    /// greater, the arm never reaches its highest speed, and settles for longer than after a move to the next track.
    #[must_use]
    pub fn of(points: &SeekPoints) -> Self {
        let next = points.track_to_track.value.0 as f64;
        let most = points.full_stroke.value.0 as f64 - next;
        let mean = points.average.value.0 as f64 - next;
        if mean * 15.0 >= most * 8.0 {
            let longer = (15.0 * mean - 8.0 * most) / 7.0;
            return Self { next, settle: next + longer, speed_up: (most - longer) / 2.0, knee: 1.0 };
        }
        let share = |k: f64| (k + 1.0 / 3.0 - k * k / 3.0 + k * k * k / 15.0) / (k + 1.0);
        let (mut least, mut knee) = (KNEE_MIN, 1.0);
        while knee - least > knee * 1e-9 {
            let middle = f64::midpoint(least, knee);
            if share(middle) * most < mean {
                least = middle;
            } else {
                knee = middle;
            }
        }
        Self { next, settle: next, speed_up: most * knee / (1.0 + knee), knee }
    }

    /// Nanoseconds for a share of the full stroke, 0 to 1; zero is the way to the next track.
    #[must_use]
    pub fn time(&self, share: f64) -> f64 {
        let Self { next, settle, speed_up, knee } = *self;
        if share <= 0.0 {
            next
        } else if share < knee {
            settle + 2.0 * speed_up * (share / knee).sqrt()
        } else {
            settle + speed_up * (1.0 + share / knee)
        }
    }
}
