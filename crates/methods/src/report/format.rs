//! Numbers for readers: about three digits, thousands separated, units after the number.

use super::data::{ChartAxis, Scale, Unit};

/// Larger numbers are not drawn. No value of a storage device comes near this limit, and differences would be lost in
/// rounding.
pub const VALUE_MAX: f64 = 1e15;
/// Smaller numbers have no place on an axis by powers.
const VALUE_MIN: f64 = 1e-9;
/// Larger percentages and ratios are written like any number, because their digits have no meaning.
const DIGITS_MAX: f64 = 1e6;
/// Text for a missing number.
pub const MISSING: &str = "n/a";

/// Can this value be placed on an axis of this scale?
#[must_use]
pub fn drawable(value: f64, scale: Scale) -> bool {
    value.is_finite()
        && value.abs() <= VALUE_MAX
        && match scale {
            Scale::Linear => true,
            Scale::Log2 | Scale::Log10 => value >= VALUE_MIN,
            Scale::Nines => (0.0..=100.0).contains(&value),
        }
}

/// A number with about three digits: `12,345`, `203`, `71.4`, `7.04`, `0.0123`.
#[must_use]
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let size = value.abs();
    let decimals = match size {
        s if s > VALUE_MAX => return format!("{value:.2e}"),
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.09995 => 3,
        s if s >= 0.009_995 => 4,
        s if s >= 0.000_5 => 5,
        0.0 => 0,
        _ => return format!("{value:.2e}"),
    };
    fixed(value, decimals)
}

/// A number with this number of decimal places, and commas between thousands.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (sign, digits) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, rest) = digits.find('.').map_or((digits, ""), |point| digits.split_at(point));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    format!("{}{grouped}{rest}", if zero { "" } else { sign })
}

/// A number in its shortest form that is exact to six digits: for ticks and positions.
#[must_use]
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    if value.abs() > VALUE_MAX || (value != 0.0 && value.abs() < 1e-5) {
        return format!("{value:e}");
    }
    let text = fixed(value, 6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An amount of bytes in the largest binary unit that it fills: `512 B`, `64 KiB`, `1.5 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    if !value.is_finite() || value.abs() > VALUE_MAX {
        return number(value);
    }
    let mut rest = value;
    let mut unit = 0;
    while rest.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        rest /= 1024.0;
        unit += 1;
    }
    let digits = if (rest - rest.round()).abs() < 1e-9 { short(rest.round()) } else { number(rest) };
    format!("{digits} {}", UNITS[unit])
}

/// A number of bytes in the short form for ticks: `512`, `64K`, `1.5M`.
#[must_use]
pub fn bytes_tick(value: f64) -> String {
    bytes(value).replace(" B", "").replace(" ", "").replace("iB", "")
}

/// A frequency per request, with two decimal places.
#[must_use]
pub fn rate(value: f64) -> String {
    match value.abs() {
        size if size > DIGITS_MAX || (size > 0.0 && size < 0.01) => number(value),
        _ if !value.is_finite() => MISSING.into(),
        _ => fixed(value, 2),
    }
}

/// Lowest and highest value of a range: `93 to 98 %`, `99 %`.
#[must_use]
pub fn percent_range(low: f64, high: f64) -> String {
    let (low, high) = (percent(low), percent(high));
    if low == high {
        return low;
    }
    format!("{} to {high}", low.trim_end_matches(" %"))
}

/// A measured value with its unit.
#[must_use]
pub fn value(unit: &Unit, value: f64) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    match unit {
        Unit::None => number(value),
        Unit::Bytes => bytes(value),
        Unit::Percent => format!("{} %", number(value)),
        Unit::Named(name) => format!("{} {name}", number(value)),
    }
}

/// A position on an axis, without a unit if the axis has it.
#[must_use]
pub fn tick(axis: &ChartAxis, value: f64) -> String {
    match axis.unit {
        Unit::Bytes => bytes(value),
        _ if axis.scale == Scale::Nines && value >= 100.0 => "max".into(),
        _ if axis.scale == Scale::Nines => short(value),
        _ => where_exact(value),
    }
}

/// A position: exact if that is short, otherwise with three digits.
fn where_exact(value: f64) -> String {
    let exact = short(value);
    let decimals = exact.split_once('.').map_or(0, |(_, rest)| rest.len());
    if decimals <= 2 {
        exact
    } else {
        number(value)
    }
}

/// A position on an axis within a sentence: `at 16 outstanding`, `at 64 KiB`, `at 40 % reads`.
#[must_use]
pub fn place(axis: &ChartAxis, value: f64) -> String {
    match &axis.unit {
        // For the value one, the singular: `1 client`.
        Unit::None if value == 1.0 => format!("1 {}", axis.name.strip_suffix('s').unwrap_or(&axis.name)),
        Unit::None => format!("{} {}", where_exact(value), axis.name),
        Unit::Bytes => bytes(value),
        Unit::Percent if axis.scale == Scale::Nines && value >= 100.0 => "the slowest request".into(),
        Unit::Percent if axis.scale == Scale::Nines => format!("percentile {}", short(value)),
        Unit::Percent => format!("{} % {}", where_exact(value), axis.name),
        Unit::Named(name) => format!("{} {name}", where_exact(value)),
    }
    .trim_end()
    .to_owned()
}

/// A share of 1 as percent.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return MISSING.into();
    }
    if percent.abs() > DIGITS_MAX {
        return format!("{} %", number(percent));
    }
    format!("{} %", if percent.abs() >= 9.95 { fixed(percent, 0) } else { fixed(percent, 1) })
}

/// A change in percent with its sign: `+14 %`, `-3.2 %`, `0.0 %`.
#[must_use]
pub fn change(percent: f64) -> String {
    if !percent.is_finite() {
        return MISSING.into();
    }
    let digits = match percent.abs() {
        size if size > DIGITS_MAX => number(percent),
        size if size >= 9.95 => fixed(percent, 0),
        _ => fixed(percent, 1),
    };
    let plus = if percent > 0.0 && digits != "0.0" { "+" } else { "" };
    format!("{plus}{digits} %")
}

/// A ratio to 1 with one decimal place, or two if it would round to zero: `1.0`, `6.1`, `0.04`.
#[must_use]
pub fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    match value.abs() {
        size if size > DIGITS_MAX => number(value),
        size if size < 0.095 => fixed(value, 2),
        _ => fixed(value, 1),
    }
}

/// A list of words within a sentence: `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// Text with a capital as its first letter.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown: Vec<String> = [0.0, 0.000_6, 0.012_34, 0.5, 7.04, 71.44, 203.5, 12_345.6, -1_234_567.0, 999.96]
            .into_iter()
            .map(number)
            .collect();
        let wanted = ["0", "0.00060", "0.0123", "0.500", "7.04", "71.4", "204", "12,346", "-1,234,567", "1,000"];
        assert_eq!(shown, wanted);
        assert_eq!([number(f64::NAN), number(f64::INFINITY)], [MISSING, MISSING]);
        assert_eq!(fixed(-0.01, 1), "0.0");
    }

    #[test]
    fn places_and_units_read_as_in_a_sentence() {
        let depth = ChartAxis::new("outstanding", Unit::None, Scale::Log2);
        assert_eq!(place(&depth, 16.0), "16 outstanding");
        let clients = ChartAxis::new("clients", Unit::None, Scale::Linear);
        assert_eq!((place(&clients, 1.0), place(&clients, 2.0)), ("1 client".into(), "2 clients".into()));
        let block = ChartAxis::new("block size", Unit::Bytes, Scale::Log2);
        assert_eq!(place(&block, 65536.0), "64 KiB");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(place(&ChartAxis::new("reads", Unit::Percent, Scale::Linear), 40.0), "40 % reads");
        assert_eq!(place(&ChartAxis::new("requests", Unit::Percent, Scale::Nines), 99.9), "percentile 99.9");
        assert_eq!(value(&Unit::named("MB/s"), 71.4), "71.4 MB/s");
        assert_eq!([change(14.2), change(-3.21), change(0.01), change(-0.01)], ["+14 %", "-3.2 %", "0.0 %", "0.0 %"]);
        assert_eq!([ratio(1.04), ratio(0.96), ratio(6.12), ratio(0.04)], ["1.0", "1.0", "6.1", "0.04"]);
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn a_value_without_a_place_on_the_axis_is_not_drawn() {
        assert!(!drawable(f64::NAN, Scale::Linear) && !drawable(1e16, Scale::Linear));
        assert!(!drawable(0.0, Scale::Log2) && !drawable(-1.0, Scale::Log10) && !drawable(100.1, Scale::Nines));
        assert!(drawable(0.0, Scale::Linear) && drawable(100.0, Scale::Nines));
    }
}
