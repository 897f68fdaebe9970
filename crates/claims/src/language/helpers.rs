//! The arithmetic of the helpers: means, shapes of series, correlations.
//!
//! A helper must never return a value that is not a number: a mean of no values, or a spread around zero, is none.

/// |x - y| <= t |y|.
pub fn is_near(x: f64, y: f64, t: f64) -> bool {
    (x - y).abs() <= t * y.abs()
}

/// Arithmetic mean of one value or more.
#[allow(clippy::cast_precision_loss)] // sequences are short
pub fn mean_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// (max - min) / mean: 0 if all values are equal; `None` for no values, or for different values around zero.
pub fn spread_of(values: &[f64]) -> Option<f64> {
    let mean = mean_of(values)?;
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    if most == least {
        return Some(0.0);
    }
    (mean != 0.0).then(|| (most - least) / mean)
}

/// Pearson's coefficient; 0 if a series does not vary, because then there is no correlation.
pub fn pearson(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let (mean_x, mean_y) = (mean_of(xs)?, mean_of(ys)?);
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| -> f64 { xs.iter().zip(ys).map(|(x, y)| of(x - mean_x, y - mean_y)).sum() };
    let both = sum(&|dx, dy| dx * dy);
    let scale = (sum(&|dx, _| dx * dx) * sum(&|_, dy| dy * dy)).sqrt();
    Some(if scale == 0.0 { 0.0 } else { (both / scale).clamp(-1.0, 1.0) })
}

/// Ranks from 1; equal values share the mean of their ranks.
#[allow(clippy::cast_precision_loss)] // sequences are short
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = order[start..].iter().take_while(|index| values[**index] == values[order[start]]).count().max(1);
        let rank = (2 * start + same + 1) as f64 / 2.0;
        for index in &order[start..start + same] {
            ranks[*index] = rank;
        }
        start += same;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_mean_are_their_formulas() {
        assert_eq!(mean_of(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(spread_of(&[90.0, 110.0]), Some(0.2));
        assert_eq!((mean_of(&[]), spread_of(&[]), spread_of(&[-1.0, 1.0])), (None, None, None));
    }

    #[test]
    fn correlations_have_their_known_values() {
        let xs = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(pearson(&xs, &[2.0, 4.0, 6.0, 8.0]), Some(1.0));
        assert_eq!(pearson(&xs, &[8.0, 6.0, 4.0, 2.0]), Some(-1.0));
        // Computed by hand: covariance 4, deviations sqrt(5) and sqrt(5).
        assert_eq!(pearson(&xs, &[1.0, 3.0, 2.0, 4.0]), Some(0.8));
        assert_eq!(pearson(&xs, &[7.0; 4]), Some(0.0));
        assert_eq!(ranks(&[10.0, 30.0, 20.0, 20.0]), [1.0, 4.0, 2.5, 2.5]);
        assert_eq!(ranks(&[5.0, 5.0, 5.0]), [2.0, 2.0, 2.0]);
        // Spearman without ties: 1 - 6 sum d^2 / (n (n^2 - 1)) with d = 0, 1, 1, 0.
        let spearman = pearson(&ranks(&xs), &ranks(&[1.0, 30.0, 20.0, 400.0]));
        assert!(is_near(spearman.unwrap_or_default(), 1.0 - 6.0 * 2.0 / (4.0 * 15.0), 1e-12));
    }
}
