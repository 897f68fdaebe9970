//! Numbers with units, as fio writes them.

/// What a prefix of a size means in a job file of fio (`kb_base`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Prefixes {
    /// `kb_base=1024`, the default: k and kb are 1024, and kib is 1000.
    #[default]
    Inverted,
    /// `kb_base=1000`: k and kb are 1000, and kib is 1024.
    Standard,
}

/// A size: a number, decimal or hexadecimal (`0x1000`), or a decimal number with b, or with k, m, g, t or p, which kb
/// or kib may follow.
pub(super) fn size(text: &str, prefixes: Prefixes) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = &lower[digits.len()..];
    let (prefix, is_kib) = match unit.strip_suffix("ib") {
        Some(prefix) => (prefix, true),
        None => (unit.strip_suffix('b').unwrap_or(unit), false),
    };
    let power = match prefix {
        "" if !is_kib => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let kilo = if is_kib == (prefixes == Prefixes::Standard) { 1024u64 } else { 1000 };
    digits.parse::<u64>().ok()?.checked_mul(kilo.pow(power))
}

/// A time in nanoseconds: a number with us, ms, s, m, h or d; a plain number is in the option's own unit. `sec` is not
/// known: fio reads 30sec as 30 microseconds.
pub(super) fn time(text: &str, plain_ns: u64) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &lower[digits.len()..] {
        "" => plain_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
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
        // From fio 3.33: the size, with kb_base=1024, and with 1000.
        for (text, inverted, standard) in [
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4KiB", 4000, 4096),
            ("1m", 1_048_576, 1_000_000),
            ("1mib", 1_000_000, 1_048_576),
            ("1G", 1_073_741_824, 1_000_000_000),
            ("1gib", 1_000_000_000, 1_073_741_824),
            ("1t", 1_099_511_627_776, 1_000_000_000_000),
            ("1p", 1_125_899_906_842_624, 1_000_000_000_000_000),
            ("512", 512, 512),
            ("512b", 512, 512),
            ("0x1000", 4096, 4096),
        ] {
            let read = [size(text, Prefixes::Inverted), size(text, Prefixes::Standard)];
            assert_eq!(read, [Some(inverted), Some(standard)], "{text}");
        }
        // fio reads some of these too: 1.5g as one byte, 4 k as four.
        for text in ["4x", "", "-1k", "99999999999t", "1.5g", "4 k", "4ki", "4ib", "k", "0x", "4kk"] {
            assert_eq!(size(text, Prefixes::Inverted), None, "{text}");
        }
        assert_eq!((time("30sec", 1_000_000_000), time("5min", 1_000_000_000)), (None, None));
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
