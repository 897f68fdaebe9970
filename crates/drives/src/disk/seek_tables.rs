//! The time of a seek over a share of the full stroke, by [`ArmMotion`], or by a measured curve if the profile has one.
//!
//! The times are in two tables of whole nanoseconds: one with every short distance, one with steps and linear interpolation
//! for long distances.

use openraid_models::{ArmMotion, DiskProfile, SeekTable};

/// Distances, in cylinders, that have a separate entry.
const NEAR: usize = 1024;
/// Limit of the steps over the whole stroke.
const STEPS: u32 = 2048;
/// Places for the steps except the last, a power of two: remainders by it change no value, but remove bounds checks of
/// the compiler.
const PLACES: usize = 4096;
/// Number of times whose reach is known, a power of two.
const REACHES: u32 = 512;

/// Seek times by distance.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    near: Box<[u32; NEAR]>,
    /// The time of each step. Neighbours are adjacent in memory, and all steps fill few lines of the processor's
    /// caches.
    far: Box<[u32; PLACES + 1]>,
    shift: u32,
    /// Mask of the bits below a step.
    rest: u32,
    /// For each interval of `1 << unit` nanoseconds, the least distance that takes longer.
    reaches: Box<[u32; REACHES as usize]>,
    unit: u32,
}

impl SeekCurve {
    /// The curves of a disk with this number of cylinders, for reads and for writes. A measured curve is for reads. For
    /// a write the arm moves the same way, but settles for longer.
    #[must_use]
    pub fn of(profile: &DiskProfile, cylinders: u32) -> [Self; 2] {
        let (read, write) = (&profile.seek_read, &profile.seek_write);
        if let Some(table) = &profile.seek_table {
            let settling = write.track_to_track.value.0 as f64 - read.track_to_track.value.0 as f64;
            let time = |more: f64| move |share| from_table(table, share) + more;
            return [Self::new(cylinders, time(0.0)), Self::new(cylinders, time(settling.max(0.0)))];
        }
        [read, write].map(|points| {
            let arm = ArmMotion::of(points);
            Self::new(cylinders, |share| arm.time(share))
        })
    }

    /// The curve of a disk with this number of cylinders. `nanos` gives the time for a share of the full stroke; share
    /// zero is the next cylinder.
    // Seeks are shorter than four seconds by the bounds of profiles.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn new(cylinders: u32, nanos: impl Fn(f64) -> f64) -> Self {
        let stroke = f64::from(cylinders.saturating_sub(2).max(1));
        let time = |distance: u32| match distance {
            0 => 0,
            _ => nanos((f64::from(distance - 1) / stroke).min(1.0)).round() as u32,
        };
        let mut shift = 0;
        while cylinders >> shift > STEPS {
            shift += 1;
        }
        let (mut near, mut far) = (Box::new([0; NEAR]), Box::new([0; PLACES + 1]));
        near.iter_mut().zip(0..).for_each(|(place, distance)| *place = time(distance));
        let mut last = 0;
        for (place, step) in far.iter_mut().zip(0..=(cylinders >> shift) + 1) {
            // No curve falls; rounding must not make it fall either.
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

    /// The least distance that takes this time or longer. The curve does not fall.
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

    /// A distance that takes longer than `time`, like all greater distances; nearly the least one.
    #[must_use]
    #[inline]
    pub fn reach(&self, time: u32) -> u32 {
        self.reaches[(time >> self.unit).min(REACHES - 1) as usize]
    }

    /// Time in nanoseconds for a move over this number of cylinders; zero for no move.
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

fn from_table(table: &SeekTable, share: f64) -> f64 {
    let rows = &table.0;
    let place = share * 1e6;
    let after = rows.partition_point(|row| f64::from(row.0) <= place).clamp(1, rows.len() - 1);
    let (from, to) = (rows[after - 1], rows[after]);
    let part = (place - f64::from(from.0)) / f64::from(to.0 - from.0);
    from.1 .0 as f64 + (to.1 .0 as f64 - from.1 .0 as f64) * part.clamp(0.0, 1.0)
}
