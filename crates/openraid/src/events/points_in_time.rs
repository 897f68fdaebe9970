//! Points in time as users write them: an age, or a date.

use openraid_status::date;

const DAY_SECONDS: u64 = 86_400;

/// Seconds since 1970 of `90s`, `30m`, `2h` or `7d` ago, or of `2026-11-24`, `2026-11-24 18:00` and
/// `2026-11-24T18:00:30`, in UTC.
///
/// # Errors
/// It is none of these.
pub fn since(text: &str, now: u64) -> Result<u64, String> {
    let wrong =
        || format!("{text:?} is not a time; write how long ago (30m, 2h, 7d), or a date in UTC (2026-11-24 18:00)");
    if let Some((at, unit)) = text.char_indices().next_back() {
        let seconds = match unit {
            's' => Some(1),
            'm' => Some(60),
            'h' => Some(3600),
            'd' => Some(DAY_SECONDS),
            _ => None,
        };
        if let Some(seconds) = seconds {
            let count: u64 = text[..at].parse().map_err(|_| wrong())?;
            return Ok(now.saturating_sub(count.saturating_mul(seconds)));
        }
    }
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, split: char| text.split(split).map(str::parse::<u16>).collect::<Result<Vec<_>, _>>();
    let (date, time) = (numbers(date, '-').map_err(|_| wrong())?, numbers(time, ':').map_err(|_| wrong())?);
    let date: [u16; 3] = date.try_into().map_err(|_| wrong())?;
    let (hour, minute, second) = match time[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return Err(wrong()),
    };
    if date[0] > 9999 || hour > 23 || minute > 59 || second > 60 {
        return Err(wrong());
    }
    let days = date::day_of(date).ok_or_else(wrong)?;
    Ok(days * DAY_SECONDS + u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them_and_nonsense_is_refused() {
        // Figures of `date -u -d TEXT +%s`.
        for (text, wanted) in [
            ("1970-01-01", 0),
            ("2026-11-24 18:00", 1_795_543_200),
            ("2026-11-24T18:00:30", 1_795_543_230),
            ("2000-02-29", 951_782_400),
            ("90s", 999_999_910),
            ("2h", 999_992_800),
            ("7d", 999_395_200),
            ("99999999d", 0),
        ] {
            assert_eq!(since(text, 1_000_000_000), Ok(wanted), "{text}");
        }
        for text in
            ["", "d", "-1d", "yesterday", "2026", "2026-13-01", "2026-01-01 25:00", "2026-01-01 1", "1e3s", "\u{e9}"]
        {
            assert!(since(text, 0).is_err(), "{text}");
        }
    }
}
