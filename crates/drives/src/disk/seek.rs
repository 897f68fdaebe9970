//! The time of a seek: `t(x) = next + a*sqrt(x) + b*x` over the share x of the full stroke.
//!
//! It settles, and before that it speeds up and slows down with all its force, and between the two it goes at its
//! highest speed if the way is long enough for that ([`ArmMotion`]). A measured curve replaces that if there is one.
//! The times are in two tables of whole nanoseconds: every short distance, and steps with linear interpolation for long
//! ones.

use openraid_models::{ArmMotion, DiskProfile, SeekTable};

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
    /// The curves of a disk with this many cylinders, for reads and for writes. A measured curve is one of reads; the
    /// arm moves for a write likewise, and settles for longer.
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

    /// The curve of a disk with this many cylinders, by the nanoseconds for a share of the full stroke; a share of
    /// nothing is the next cylinder.
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

fn from_table(table: &SeekTable, share: f64) -> f64 {
    let rows = &table.0;
    let place = share * 1e6;
    let after = rows.partition_point(|row| f64::from(row.0) <= place).clamp(1, rows.len() - 1);
    let (from, to) = (rows[after - 1], rows[after]);
    let part = (place - f64::from(from.0)) / f64::from(to.0 - from.0);
    from.1 .0 as f64 + (to.1 .0 as f64 - from.1 .0 as f64) * part.clamp(0.0, 1.0)
}
