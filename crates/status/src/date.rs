//! Dates in UTC. The calendar is that of the crate `time`.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime};

/// The Julian day of the first of January 1970.
const JULIAN_DAY_OF_1970: i32 = 2_440_588;

/// A time of day and date as RFC 3339 has it: `2026-11-26T13:29:56Z`. A time after the year 9999, which RFC 3339 does
/// not have, is shown as its end. One format by hand saves the feature `formatting` of the crate and its errors.
#[must_use]
pub fn rfc3339(seconds_since_1970: u64) -> String {
    let seconds = i64::try_from(seconds_since_1970).unwrap_or(i64::MAX);
    let last = PrimitiveDateTime::MAX.assume_utc();
    let moment = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(last);
    let (year, month, day) = (moment.year(), u8::from(moment.month()), moment.day());
    let (hour, minute, second) = moment.to_hms();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days from the first of January 1970 to this year, month and day; none for an earlier date, and for a month or a day that no
/// calendar has. Days beyond the end of a month run on into the next.
#[must_use]
pub fn day_of([year, month, day]: [u16; 3]) -> Option<u64> {
    let month = u8::try_from(month).ok().and_then(|month| Month::try_from(month).ok())?;
    let first = Date::from_calendar_date(year.into(), month, 1).ok()?.to_julian_day() - JULIAN_DAY_OF_1970;
    let days = (1..=31).contains(&day).then(|| first + i32::from(day) - 1)?;
    u64::try_from(days).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_a_date_and_each_date_its_day() {
        // The program date gives these: the first day, both ends of February in years with and without a leap day.
        for (day, date) in [
            (0, [1970, 1, 1]),
            (11_015, [2000, 2, 28]),
            (11_016, [2000, 2, 29]),
            (19_783, [2024, 3, 1]),
            (47_540, [2100, 2, 28]),
            (47_541, [2100, 3, 1]),
        ] {
            assert_eq!((date_of(day), day_of(date)), (date, Some(day)));
        }
        let (mut before, days) = ([1969, 12, 31], 146_097);
        for day in 0..days {
            let date = date_of(day);
            assert!(date > before && day_of(date) == Some(day), "{date:?}");
            before = date;
        }
    }

    /// The date that is written for a day.
    fn date_of(day: u64) -> [u16; 3] {
        let text = rfc3339(day * 86_400);
        let date = text.strip_suffix("T00:00:00Z").expect("the beginning of a day");
        let numbers = date.split('-').map(|text| text.parse().expect("a number"));
        numbers.collect::<Vec<u16>>().try_into().expect("three numbers")
    }

    #[test]
    fn dates_run_on_to_the_end_of_the_longest_month_and_times_to_the_last_year() {
        assert_eq!(day_of([2026, 2, 31]), day_of([2026, 3, 3]));
        for date in [[1969, 12, 31], [2026, 0, 1], [2026, 13, 1], [2026, 257, 1], [2026, 1, 0], [2026, 1, 32]] {
            assert_eq!(day_of(date), None, "{date:?}");
        }
        // date -u -d @SECONDS
        for (seconds, text) in [
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (253_402_300_800, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
