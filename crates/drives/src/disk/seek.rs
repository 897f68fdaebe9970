//! How long the arm takes: `t(x) = next + a*sqrt(x) + b*x` over the share x of the full stroke.
//!
//! The two factors follow from a data sheet's three points, as for two random places the mean of x is 1/3 and that of
//! its root 8/15; a measured curve replaces them if there is one. The times are in two tables of whole nanoseconds:
//! every short distance, and steps with linear interpolation for long ones.

use openraid_models::{SeekPoints, SeekTable};

/// Distances, in cylinders, that have an entry of their own.
const NEAR: usize = 1024;
/// Steps over the whole stroke, at most.
const STEPS: u32 = 2048;
/// Places for them but the last, a power of two: remainders by it change nothing but what the compiler has to check.
const PLACES: usize = 4096;
/// Times whose reach is known, a power of two.
const REACHES: u32 = 512;

/// Seek times by distance.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    near: Box<[u32; NEAR]>,
    /// The time of each step; neighbours are adjacent in memory, and all of them fill few lines of the processor's
    /// caches.
    far: Box<[u32; PLACES + 1]>,
    shift: u32,
    /// Ones below the step.
    rest: u32,
    /// For each stretch of `1 << unit` nanoseconds the least distance that takes longer.
    reaches: Box<[u32; REACHES as usize]>,
    unit: u32,
}

impl SeekCurve {
    /// The curve of a disk with this many cylinders.
    #[must_use]
    pub fn new(points: &SeekPoints, table: Option<&SeekTable>, cylinders: u32) -> Self {
        let stroke = f64::from(cylinders.saturating_sub(2).max(1));
        let time = |distance: u32| match distance {
            0 => 0,
            _ => {
                let share = (f64::from(distance - 1) / stroke).min(1.0);
                table.map_or_else(|| from_points(points, share), |table| from_table(table, share))
            }
        };
        let mut shift = 0;
        while cylinders >> shift > STEPS {
            shift += 1;
        }
        let (mut near, mut far) = (Box::new([0; NEAR]), Box::new([0; PLACES + 1]));
        near.iter_mut().zip(0..).for_each(|(place, distance)| *place = time(distance));
        let mut last = 0;
        for (place, step) in far.iter_mut().zip(0..=(cylinders >> shift) + 1) {
            // No curve falls, and not by rounding either.
            last = time(step << shift).max(last);
            *place = last;
        }
        let mut curve =
            Self { near, far, shift, rest: (1 << shift) - 1, reaches: Box::new([u32::MAX; REACHES as usize]), unit: 0 };
        while curve.time(cylinders) >> curve.unit >= REACHES {
            curve.unit += 1;
        }
        for stretch in 0..REACHES - 1 {
            curve.reaches[stretch as usize] = curve.first_above((stretch + 1) << curve.unit, cylinders);
        }
        curve
    }

    /// The least distance that takes this long or longer; the curve does not fall.
    fn first_above(&self, time: u32, cylinders: u32) -> u32 {
        let (mut least, mut most) = (1, cylinders);
        while least < most {
            let middle = least.midpoint(most);
            if self.time(middle) < time {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        if self.time(least) < time {
            u32::MAX
        } else {
            least
        }
    }

    /// A distance that takes longer than `time`, as all beyond it do; nearly the least one.
    #[must_use]
    #[inline]
    pub fn reach(&self, time: u32) -> u32 {
        self.reaches[(time >> self.unit).min(REACHES - 1) as usize]
    }

    /// Time in nanoseconds over this many cylinders; nothing for none.
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // between two entries of 32 bits
    pub fn time(&self, distance: u32) -> u32 {
        if (distance as usize) < NEAR {
            return self.near[distance as usize];
        }
        let step = (distance >> self.shift) as usize % PLACES;
        let (from, to) = (self.far[step], self.far[step + 1]);
        let rest = u64::from(distance & self.rest);
        from + ((u64::from(to.wrapping_sub(from)) * rest) >> self.shift) as u32
    }
}

// Seeks are shorter than four seconds by the bounds of profiles.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn from_points(points: &SeekPoints, share: f64) -> u32 {
    let (root, linear) = points.curve();
    (points.track_to_track.value.0 as f64 + root * share.sqrt() + linear * share).round() as u32
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as above
fn from_table(table: &SeekTable, share: f64) -> u32 {
    let rows = &table.0;
    let place = share * 1e6;
    let after = rows.partition_point(|row| f64::from(row.0) <= place).clamp(1, rows.len() - 1);
    let (from, to) = (rows[after - 1], rows[after]);
    let part = (place - f64::from(from.0)) / f64::from(to.0 - from.0);
    (from.1 .0 as f64 + (to.1 .0 as f64 - from.1 .0 as f64) * part.clamp(0.0, 1.0)).round() as u32
}
