//! The helpers of the language: comparisons with tolerance, means, shapes of series, correlations.
//!
//! A helper must never return a value that is not a number: a mean of no values, or a spread around zero, is an error.

use super::guard::{items, number, wrong};
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::float::UnpackFloat;
use starlark::values::{Heap, UnpackValue, Value};

/// Names of all helpers.
pub const NAMES: &[&str] =
    &["approx", "within", "mean", "sum", "abs", "spread", "flat", "rising", "falling", "slump", "corr", "rankcorr"];

/// |x - y| <= t |y|.
fn is_near(x: f64, y: f64, t: f64) -> bool {
    (x - y).abs() <= t * y.abs()
}

/// Arithmetic mean of one value or more.
#[allow(clippy::cast_precision_loss)] // sequences are short
fn mean_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// (max - min) / mean: 0 if all values are equal; `None` for no values, or for different values around zero.
fn spread_of(values: &[f64]) -> Option<f64> {
    let mean = mean_of(values)?;
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    if most == least {
        return Some(0.0);
    }
    (mean != 0.0).then(|| (most - least) / mean)
}

/// Pearson's coefficient; 0 if a series does not vary, because then there is no correlation.
fn pearson(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let (mean_x, mean_y) = (mean_of(xs)?, mean_of(ys)?);
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| -> f64 { xs.iter().zip(ys).map(|(x, y)| of(x - mean_x, y - mean_y)).sum() };
    let both = sum(&|dx, dy| dx * dy);
    let scale = (sum(&|dx, _| dx * dx) * sum(&|_, dy| dy * dy)).sqrt();
    Some(if scale == 0.0 { 0.0 } else { (both / scale).clamp(-1.0, 1.0) })
}

/// Ranks from 1; equal values share the mean of their ranks.
#[allow(clippy::cast_precision_loss)] // sequences are short
fn ranks(values: &[f64]) -> Vec<f64> {
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

/// The items as numbers; true counts 1, false counts 0.
fn floats<'v>(name: &str, xs: Value<'v>, heap: Heap<'v>) -> starlark::Result<Vec<f64>> {
    let value = |item: Value<'v>| number(item).or_else(|| item.unpack_bool().map(|yes| f64::from(u8::from(yes))));
    let numbers: Option<Vec<f64>> = items(xs, heap)?.into_iter().map(value).collect();
    numbers.ok_or_else(|| wrong(format!("{name} is for numbers")))
}

fn pairs<'v>(name: &str, xs: Value<'v>, ys: Value<'v>, heap: Heap<'v>) -> starlark::Result<(Vec<f64>, Vec<f64>)> {
    let (xs, ys) = (floats(name, xs, heap)?, floats(name, ys, heap)?);
    if xs.len() != ys.len() || xs.is_empty() {
        return Err(wrong(format!("{name} needs two series of one length, not {} and {} values", xs.len(), ys.len())));
    }
    Ok((xs, ys))
}

/// The helpers, for checks.
pub fn helpers(builder: &mut GlobalsBuilder) {
    numbers(builder);
    series(builder);
}

#[starlark_module]
fn numbers(builder: &mut GlobalsBuilder) {
    fn approx(x: UnpackFloat, y: UnpackFloat, t: UnpackFloat) -> starlark::Result<bool> {
        Ok(is_near(x.0, y.0, t.0))
    }

    fn within(x: UnpackFloat, lo: UnpackFloat, hi: UnpackFloat) -> starlark::Result<bool> {
        Ok((lo.0..=hi.0).contains(&x.0))
    }

    fn mean<'v>(xs: Value<'v>, heap: Heap<'v>) -> starlark::Result<f64> {
        mean_of(&floats("mean", xs, heap)?).ok_or_else(|| wrong("mean of nothing"))
    }

    fn sum<'v>(xs: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        let values = items(xs, heap)?;
        let whole =
            |item: &Value<'v>| item.unpack_bool().map(i64::from).or_else(|| i64::unpack_value(*item).ok().flatten());
        let exact = values.iter().map(whole).try_fold(0_i64, |sum, item| sum.checked_add(item?));
        match exact {
            Some(sum) => Ok(heap.alloc(sum)),
            None => Ok(heap.alloc(floats("sum", xs, heap)?.iter().sum::<f64>())),
        }
    }

    fn abs<'v>(x: Value<'v>, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        match (i64::unpack_value(x)?, number(x)) {
            (Some(whole), _) => {
                whole.checked_abs().map(|whole| heap.alloc(whole)).ok_or_else(|| wrong("abs of too large a number"))
            }
            (None, Some(number)) => Ok(heap.alloc(number.abs())),
            (None, None) => Err(wrong("abs is for numbers")),
        }
    }
}

#[starlark_module]
fn series(builder: &mut GlobalsBuilder) {
    fn spread<'v>(xs: Value<'v>, heap: Heap<'v>) -> starlark::Result<f64> {
        let values = floats("spread", xs, heap)?;
        spread_of(&values).ok_or_else(|| wrong("spread of nothing, or of values around zero"))
    }

    fn flat<'v>(xs: Value<'v>, t: UnpackFloat, heap: Heap<'v>) -> starlark::Result<bool> {
        let values = floats("flat", xs, heap)?;
        let spread = spread_of(&values).ok_or_else(|| wrong("flat of nothing, or of values around zero"))?;
        Ok(spread <= t.0)
    }

    fn rising<'v>(xs: Value<'v>, t: UnpackFloat, heap: Heap<'v>) -> starlark::Result<bool> {
        let values = floats("rising", xs, heap)?;
        Ok(values.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - t.0)))
    }

    fn falling<'v>(xs: Value<'v>, t: UnpackFloat, heap: Heap<'v>) -> starlark::Result<bool> {
        let values = floats("falling", xs, heap)?;
        Ok(values.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + t.0)))
    }

    fn slump<'v>(xs: Value<'v>, i: i32, t: UnpackFloat, heap: Heap<'v>) -> starlark::Result<bool> {
        let values = floats("slump", xs, heap)?;
        let Some(index) = usize::try_from(i).ok().filter(|index| *index < values.len()) else {
            return Err(wrong(format!("slump: there is no value {i} of {}; they count from 0", values.len())));
        };
        // A slump needs a value on both sides, so an end is not a slump.
        if index == 0 || index + 1 == values.len() {
            return Ok(false);
        }
        let below = |neighbour: f64| values[index] < neighbour * (1.0 - t.0);
        Ok(below(values[index - 1]) && below(values[index + 1]))
    }

    fn corr<'v>(xs: Value<'v>, ys: Value<'v>, heap: Heap<'v>) -> starlark::Result<f64> {
        let (xs, ys) = pairs("corr", xs, ys, heap)?;
        pearson(&xs, &ys).ok_or_else(|| wrong("corr of nothing"))
    }

    fn rankcorr<'v>(xs: Value<'v>, ys: Value<'v>, heap: Heap<'v>) -> starlark::Result<f64> {
        let (xs, ys) = pairs("rankcorr", xs, ys, heap)?;
        pearson(&ranks(&xs), &ranks(&ys)).ok_or_else(|| wrong("rankcorr of nothing"))
    }
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
