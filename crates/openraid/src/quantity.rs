//! Sizes, rates and times: parsing and printing.
//!
//! Suffixes are binary, like mdadm's: `64K` is 65,536 bytes. A plain number of bytes needs no suffix. mdadm's plain
//! numbers are kibibytes, so `--chunk 64` is refused instead of guessed.

use openraid_units::{Bytes, Sectors, SECTOR_BYTES};

/// A number with its noun: `1 entry`, `3 entries`.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Read a size with the suffix K, M, G or T (also `KiB`, `KB` and so on).
///
/// # Errors
/// The text is not of this form; the error says what to write.
pub fn size(text: &str) -> Result<Bytes, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text.get(digits.len()..).unwrap_or_default() {
        "" | "B" => 0,
        "K" | "k" | "KB" | "KiB" => 10,
        "M" | "m" | "MB" | "MiB" => 20,
        "G" | "g" | "GB" | "GiB" => 30,
        "T" | "t" | "TB" | "TiB" => 40,
        _ => return Err(format!("{text:?} is not a size; write a number with K, M, G or T, as in 64K or 1G")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is not a size; write a number, as in 64K or 1G"))?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is larger than any drive"))?;
    Ok(Bytes(bytes))
}

/// The same, in whole sectors and not zero.
///
/// # Errors
/// The text is not of this form; the error says what to write.
pub fn sectors(text: &str) -> Result<Sectors, String> {
    let bytes = size(text)?;
    if bytes.get() < SECTOR_BYTES || !bytes.get().is_multiple_of(SECTOR_BYTES) {
        let unit = if text.bytes().all(|b| b.is_ascii_digit()) { "; did you mean K, as in 64K?" } else { "" };
        return Err(format!("{text:?} is not a whole number of 512-byte sectors{unit}"));
    }
    Ok(bytes.sectors_floor())
}

/// A rate: a size each second, `0` or `none` for no limit.
///
/// # Errors
/// The text is not of this form; the error says what to write.
pub fn rate(text: &str) -> Result<Sectors, String> {
    let plain = text.trim_end_matches("/s");
    match plain {
        "none" | "0" => Ok(Sectors::ZERO),
        _ => sectors(plain).map_err(|why| format!("{why} (a rate is written like 50M)")),
    }
}

/// A size as text: `1.5 GiB`, `64 KiB`, `512 bytes`.
pub fn human(bytes: Bytes) -> String {
    bytes.readable().to_string()
}

/// The size of a drive as text: as drives are sold, in powers of ten, and in powers of two: `18.0 TB (16.3 TiB)`.
pub fn sold(bytes: Bytes) -> String {
    const UNITS: [(u64, &str); 2] = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB")];
    let unit = UNITS.into_iter().find(|(unit, _)| bytes.get() >= *unit);
    match unit {
        None => human(bytes),
        Some((unit, name)) => {
            let tenths = (bytes.get() / (unit / 10)).to_string();
            let (whole, tenth) = tenths.split_at(tenths.len() - 1);
            format!("{whole}.{tenth} {name} ({})", human(bytes))
        }
    }
}

/// Lines as one, with semicolons between them.
pub fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A rate as text.
pub fn human_rate(bytes_per_second: u64) -> String {
    format!("{}/s", human(Bytes(bytes_per_second)))
}

/// A length of time as text, two units at most: `2 h 5 min`, `12 s`.
pub fn human_seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        86_400..172_800 => format!("1 day {} h", seconds % 86_400 / 3600),
        _ => format!("{} days {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A short time as text: `250 ms`, `1.25 s`, `5 s`.
pub fn human_millis(millis: u64) -> String {
    match (millis, millis % 1000 / 10) {
        (0..1000, _) => format!("{millis} ms"),
        (1000..60_000, 0) => format!("{} s", millis / 1000),
        (1000..60_000, hundredths) => format!("{}.{hundredths:02} s", millis / 1000),
        _ => human_seconds(millis / 1000),
    }
}

/// The longest estimate that is shown.
const ETA_SECONDS_MAX: u64 = 365 * 86_400;

/// Seconds that the rest takes at this rate; nothing if that cannot be said.
pub fn eta_seconds(done: u64, total: u64, per_second: u64) -> Option<u64> {
    let left = total.saturating_sub(done);
    if per_second == 0 {
        return None;
    }
    Some(left.div_ceil(per_second)).filter(|seconds| *seconds <= ETA_SECONDS_MAX)
}

/// A time of day and date in UTC, as ISO 8601 has it.
pub fn utc(seconds_since_1970: u64) -> String {
    openraid_status::date::rfc3339(seconds_since_1970).replace('T', " ").replace('Z', " UTC")
}

/// A number as text, with three significant figures.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_binary_suffixes_and_nonsense_is_refused() {
        for (text, bytes) in [("64K", 65_536), ("1G", 1 << 30), ("512", 512), ("2TiB", 2 << 40), ("3m", 3 << 20)] {
            assert_eq!(size(text), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "K", "-1K", "1.5G", "64Q", "0x10", "99999999999T", "1 K", "\u{e9}"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(sectors("64").unwrap_err().contains("did you mean K"));
        assert_eq!(sectors("4K"), Ok(Sectors(8)));
        assert_eq!(rate("none"), Ok(Sectors::ZERO));
        assert_eq!(rate("50M/s"), Ok(Sectors::mib(50)));
    }

    #[test]
    fn sizes_and_times_are_written_shortly() {
        for (bytes, text) in [(0, "0 bytes"), (512, "512 bytes"), (65_536, "64 KiB"), (3 << 29, "1.5 GiB")] {
            assert_eq!(human(Bytes(bytes)), text);
        }
        assert_eq!(human(Bytes(u64::MAX)), "16777215.9 TiB");
        for (bytes, text) in [
            (18_000_207_937_536, "18.0 TB (16.3 TiB)"),
            (480_103_981_056, "480.1 GB (447.1 GiB)"),
            (16 << 20, "16 MiB"),
            (u64::MAX, "18446744.0 TB (16777215.9 TiB)"),
        ] {
            assert_eq!(sold(Bytes(bytes)), text);
        }
        assert_eq!(one_line("two problems\n  line 1: x\r\n\n  line 2: y\n"), "two problems; line 1: x; line 2: y");
        for (seconds, text) in
            [(0, "0 s"), (61, "1 min 1 s"), (7500, "2 h 5 min"), (90_000, "1 day 1 h"), (180_000, "2 days 2 h")]
        {
            assert_eq!(human_seconds(seconds), text);
        }
        for (millis, text) in [(0, "0 ms"), (999, "999 ms"), (1250, "1.25 s"), (5000, "5 s"), (61_000, "1 min 1 s")] {
            assert_eq!(human_millis(millis), text);
        }
    }

    #[test]
    fn an_end_time_is_shown_only_if_it_can_be_estimated() {
        assert_eq!(eta_seconds(50, 100, 10), Some(5));
        assert_eq!(eta_seconds(50, 100, 0), None);
        assert_eq!(eta_seconds(0, u64::MAX, 1), None, "ages are no answer");
        assert_eq!(eta_seconds(200, 100, 10), Some(0));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        // From `date -u -d @N`.
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_763_696_549, "2025-11-21 03:42:29 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!(
            (figure(1234.5), figure(12.34), figure(1.234), figure(0.1234)),
            ("1234".into(), "12.3".into(), "1.23".into(), "0.123".into())
        );
    }
}
