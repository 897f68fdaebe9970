//! The ratio of two figures, from pairs of runs with the same seed. Both runs of a pair have the same requests at the
//! same addresses, so most of the random variation is in both and cancels out (common random numbers).
//!
//! The interval is Student's interval at 95 %, for the mean of the logarithms of the ratios. The effect of a profile's
//! value on the ratio counts only with the part that exceeds the difference between two runs of one pair.

use super::uncertainty::Runs;
use serde::Serialize;

/// Student's t for 95 % on both sides. The first entry is for one degree of freedom.
const STUDENT: [f64; 15] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131];
/// Student's t for more degrees of freedom than [`STUDENT`] has.
const STUDENT_MANY: f64 = 1.96;

/// The gain of one figure over another, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Gain {
    /// The mean gain of all pairs of runs, percent.
    pub percent: f64,
    /// The gain is at least this in 95 of 100 cases, percent. None if there is only one pair, which does not show
    /// chance.
    pub low_percent: Option<f64>,
    /// The gain is at most this in 95 of 100 cases, percent. None if there is only one pair.
    pub high_percent: Option<f64>,
    /// Number of pairs of runs. The two runs of a pair have the same seed.
    pub pairs: usize,
}

/// The mean of the logarithms of ratios, and half of the width of their interval. A single ratio has no interval.
fn interval(logs: &[f64]) -> (f64, Option<f64>) {
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    if logs.len() < 2 {
        return (mean, None);
    }
    (mean, Some(student(logs) * deviation(logs, mean) / count.sqrt()))
}

fn deviation(logs: &[f64], mean: f64) -> f64 {
    let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
    (squares / (logs.len() as f64 - 1.0)).sqrt()
}

fn student(logs: &[f64]) -> f64 {
    STUDENT.get(logs.len() - 2).copied().unwrap_or(STUDENT_MANY)
}

/// Converts the logarithm of a ratio to the percentage above one.
fn percent(log: f64) -> f64 {
    log.exp_m1() * 100.0
}

/// The gain of the first figure of each pair over the second.
pub(super) fn gain(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Gain> {
    let logs: Vec<f64> = pairs.map(|(one, other)| (one / other).ln()).filter(|log| log.is_finite()).collect();
    if logs.is_empty() {
        return None;
    }
    let (mean, half) = interval(&logs);
    let bound = |sign: f64| half.map(|half| percent(mean + sign * half));
    Some(Gain { percent: percent(mean), low_percent: bound(-1.0), high_percent: bound(1.0), pairs: logs.len() })
}

/// The lead of one level over another.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Lead {
    /// By chance alone.
    #[serde(flatten)]
    pub gain: Gain,
    /// Is it faster regardless of chance and of the profile values that were varied?
    pub clear: bool,
    /// The profile value with the largest effect, and the lead in percent with that value at the end of its range, if
    /// the effect is more than chance.
    pub most: Option<(String, f64)>,
}

/// The lead of the runs of one level over those of another.
pub(super) fn lead(one: &Runs, other: &Runs) -> Option<Lead> {
    let seeds = one.seeds.iter().zip(&other.seeds).filter_map(|(one, other)| (*one).zip(*other));
    let pairs: Vec<(f64, f64)> = std::iter::once((one.base, other.base)).chain(seeds).collect();
    let gain = gain(pairs.iter().copied())?;
    let logs: Vec<f64> = pairs.iter().map(|(one, other)| (one / other).ln()).collect();
    let (mean, half) = interval(&logs);
    let Some(half) = half else { return Some(Lead { gain, clear: false, most: None }) };
    let noise = student(&logs) * deviation(&logs, mean) * std::f64::consts::SQRT_2;
    let (mut squares, mut most): (f64, Option<(String, f64)>) = (half * half, None);
    for ((name, ends), (_, same)) in one.values.iter().zip(&other.values) {
        let shift = |(value, its): (&Option<f64>, &Option<f64>)| Some(((*value)? / (*its)?).ln() - logs[0]);
        let shifts = ends.iter().zip(same).filter_map(shift).filter(|shift| shift.abs() > noise);
        let Some(largest) = shifts.max_by(|one, two| one.abs().total_cmp(&two.abs())) else { continue };
        squares += largest * largest;
        if most.as_ref().is_none_or(|(_, known)| largest.abs() > known.abs()) {
            most = Some((name.clone(), largest));
        }
    }
    let most = most.map(|(name, shift)| (name, percent(mean + shift)));
    Some(Lead { gain, clear: mean > squares.sqrt(), most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(base: f64, seeds: &[f64], values: &[(&str, f64, f64)]) -> Runs {
        let values = values.iter().map(|(name, low, high)| ((*name).into(), [Some(*low), Some(*high)]));
        Runs { base, seeds: seeds.iter().copied().map(Some).collect(), values: values.collect() }
    }

    #[test]
    fn the_interval_is_students_of_the_logarithms() {
        // ln 1.1, ln 1.2, ln 1.3: mean 0.18002, deviation 0.08359, t 4.303: half 0.20767.
        let gain = gain([(110.0, 100.0), (120.0, 100.0), (130.0, 100.0)].into_iter()).unwrap();
        let near = |one: f64, two: f64| assert!((one - two).abs() < 0.05, "{one} {two}");
        near(gain.percent, 19.72);
        near(gain.low_percent.unwrap(), -2.73);
        near(gain.high_percent.unwrap(), 47.35);
        let one = super::gain([(3.0, 2.0)].into_iter()).unwrap();
        assert_eq!((one.low_percent, one.high_percent, one.pairs), (None, None, 1));
        assert_eq!(super::gain(std::iter::empty()), None);
    }

    #[test]
    fn noise_that_both_levels_share_hides_no_lead() {
        // The seeds change both figures by a fifth, and the first is always a third higher: 665 and 504 requests per
        // second.
        let (one, other) = (runs(665.0, &[798.0, 560.0], &[]), runs(504.0, &[601.0, 428.0], &[]));
        let found = lead(&one, &other).unwrap();
        assert!(found.clear && found.gain.low_percent.unwrap() > 25.0, "{found:?}");
        assert!(!lead(&other, &one).unwrap().clear);
        // One pair alone proves nothing.
        assert!(!lead(&runs(665.0, &[], &[]), &runs(504.0, &[], &[])).unwrap().clear);
    }

    #[test]
    fn values_count_by_what_they_do_to_the_ratio_beyond_noise() {
        let seek = |base: f64| ("seek", base * 0.8, base * 1.2);
        let one = runs(110.0, &[111.0, 109.0], &[seek(110.0)]);
        let other = runs(100.0, &[101.0, 99.0], &[seek(100.0)]);
        let found = lead(&one, &other).unwrap();
        assert!(found.clear && found.most.is_none(), "it moves both alike: {found:?}");
        // A value that affects only one of the levels can reverse the order.
        let parity = runs(100.0, &[101.0, 99.0], &[("seek", 130.0, 100.0)]);
        let turned = lead(&one, &parity).unwrap();
        assert!(!turned.clear && turned.most.as_ref().is_some_and(|(name, lead)| name == "seek" && *lead < 0.0));
        // Forty values without an effect stay without an effect: two runs of any pair differ by the same amount.
        let noisy: Vec<(&str, f64, f64)> = (0..40).map(|_| ("noise", 103.0, 97.0)).collect();
        let still: Vec<(&str, f64, f64)> = (0..40).map(|_| ("noise", 130.0, 130.0)).collect();
        let found = lead(&runs(130.0, &[133.0, 128.0], &still), &runs(100.0, &[100.0, 101.0], &noisy)).unwrap();
        assert!(found.clear && found.gain.pairs == 3, "{found:?}");
    }
}
