//! Numbers with units, as fio writes them.

/// A size: a number with k, m, g or t (also kb, kib and so on), all of them binary.
pub(super) fn size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &lower[digits.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" | "ki" => 10,
        "m" | "mb" | "mib" | "mi" => 20,
        "g" | "gb" | "gib" | "gi" => 30,
        "t" | "tb" | "tib" | "ti" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A time in nanoseconds: a number with us, ms, s, m, h or d; a plain number is in the option's own unit.
pub(super) fn time(text: &str, plain_ns: u64) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &lower[digits.len()..] {
        "" => plain_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Seconds with a fraction, as nanoseconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if fraction.len() > 18 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    let mut nanos = 0;
    for digit in fraction.bytes().chain(std::iter::repeat(b'0')).take(9) {
        nanos = nanos * 10 + u64::from(digit - b'0');
    }
    whole.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(
            (size("4k"), size("1G"), size("512"), size("2MiB")),
            (Some(4096), Some(1 << 30), Some(512), Some(2 << 20))
        );
        assert_eq!((size("4x"), size(""), size("-1k"), size("99999999999t")), (None, None, None, None));
        assert_eq!(
            (time("30", 1_000_000_000), time("5ms", 1), time("2m", 1)),
            (Some(30_000_000_000), Some(5_000_000), Some(120_000_000_000))
        );
        assert_eq!(
            (seconds("1.5"), seconds("0.000000001"), seconds("2"), seconds("1.x")),
            (Some(1_500_000_000), Some(1), Some(2_000_000_000), None)
        );
    }
}
