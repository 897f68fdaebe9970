//! Dates in UTC, by H. Hinnant's "chrono-compatible low-level date algorithms": years begin in March, so that the leap day is the
//! last one, and eras have 400 years.

const DAYS_TO_0000_03_01: u64 = 719_468;
const DAYS_OF_ERA: u64 = 146_097;

/// Year, month and day of the month of a day, which is counted from the first of January 1970.
#[must_use]
pub const fn of_day(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_0000_03_01;
    let (era, of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + (month <= 2) as u64, month, day)
}

/// Days from the first of January 1970 to a date that is not before it. Days beyond the end of a month run on into the next.
#[must_use]
pub const fn day_of(year: u64, month: u64, day: u64) -> u64 {
    let year = year - (month <= 2) as u64;
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * DAYS_OF_ERA + of_era - DAYS_TO_0000_03_01
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_has_a_date_and_each_date_its_day() {
        // The program date gives these: the first day, both ends of February in years with and without a leap day.
        for (day, date) in [
            (0, (1970, 1, 1)),
            (11_015, (2000, 2, 28)),
            (11_016, (2000, 2, 29)),
            (19_783, (2024, 3, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!((of_day(day), day_of(date.0, date.1, date.2)), (date, day));
        }
        let (mut before, days) = ((1969, 12, 31), 146_097);
        for day in 0..days {
            let date = of_day(day);
            assert!(date > before && day_of(date.0, date.1, date.2) == day, "{date:?}");
            before = date;
        }
    }
}
