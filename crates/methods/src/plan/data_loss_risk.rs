//! The probability of data loss while a failed drive is rebuilt.
//!
//! The model has these assumptions. Drives fail independently of each other and at a constant rate (exponential
//! lifetimes: Patterson, Gibson and Katz, SIGMOD 1988); the annual failure rate gives that rate. Unreadable bits are
//! independent of each other, too. The rebuild begins at once and takes a fixed time T. A redundancy group that has
//! lost one drive has m other drives and survives the failure of t of them.
//!
//! ```text
//!   q = 1 - exp(-lambda T)                          a drive fails within T
//!   array   P(more than t of m fail within T)       binomial in q
//!   sector  P(exactly t of m fail) x E[1 - exp(-u B Y)]
//!           B  bits that are read without redundancy, u  unreadable sectors for each bit
//!           Y  share still to be rebuilt when the last of the t fails: 1 for t = 0, else 1 - max of t uniform numbers
//!   year    1 - exp(-n lambda_year (array + sector)), and the same of each alone
//! ```
//!
//! The model leaves out some cases. Two unreadable sectors in one stripe, and another group that loses drives at the
//! same time, are rare in comparison. Failures with a common cause (a batch, heat, a power supply) raise all of these
//! probabilities.

use crate::cell::Level;
use serde::Serialize;

pub(super) const YEAR_HOURS: f64 = 8760.0;
/// Number of steps for the mean over the rest of a rebuild.
const STEPS: u32 = 512;

/// The redundancy of a group that has lost one drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Group {
    /// Number of drives whose failure matters.
    others: u32,
    /// Number of these drives that may fail without data loss.
    spare: u32,
    /// Number of whole drives that are read when no redundancy is left.
    read: u32,
}

impl Group {
    /// The group of a level with this number of members. There is none if the first failure loses data.
    fn of(level: Level, members: u16) -> Option<Self> {
        let members = u32::from(members);
        let parity = |members: u32, spare: u32| Self { others: members - 1, spare, read: members - 1 - spare };
        Some(match level {
            Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => return None,
            Level::Raid1 => Self { others: members - 1, spare: members - 2, read: 1 },
            // With an odd number of members each drive shares one half of its data with each of its neighbours.
            Level::Raid1e if members % 2 == 1 => Self { others: 2, spare: 0, read: 1 },
            Level::Raid1e | Level::Raid10 => Self { others: 1, spare: 0, read: 1 },
            Level::Raid4 | Level::Raid5 => parity(members, 0),
            Level::Raid6 => parity(members, 1),
            Level::Raid50 => parity(members / 2, 0),
            Level::Raid60 => parity(members / 2, 1),
        })
    }
}

/// The failure rates and the size of a drive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frailty {
    /// Share of drives that fail in a year.
    pub afr: f64,
    /// Unreadable sectors for each bit read.
    pub errors_per_bit: f64,
    /// Size of the drive in bytes.
    pub bytes: f64,
}

/// Probabilities from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Risk {
    /// Probability that, after one drive has failed, too many others fail before it is rebuilt, and the array is lost.
    pub array: f64,
    /// Probability that, after one drive has failed, the array survives and some of its sectors are lost, because a
    /// drive cannot read its copy.
    pub sector: f64,
    /// Probability of either loss within a year, for a healthy array.
    pub year: f64,
    /// Probability that the array is lost within a year.
    pub array_year: f64,
    /// Probability that sectors are lost within a year.
    pub sector_year: f64,
}

/// The probabilities for an array whose rebuilds take `hours` hours. There are none if the first failure loses data.
#[must_use]
pub fn risk(level: Level, members: u16, drive: Frailty, hours: f64) -> Option<Risk> {
    let group = Group::of(level, members)?;
    let year = -(-drive.afr).ln_1p();
    let fails = -(-year * hours / YEAR_HOURS).exp_m1();
    let within = |failures: u32| binomial(group.others, failures, fails);
    // The sum runs over the rare cases, because one minus the sum of the frequent ones would lose digits.
    let array: f64 = (group.spare + 1..=group.others).map(within).sum();
    let mean_errors = drive.errors_per_bit * drive.bytes * 8.0 * f64::from(group.read);
    let sector = within(group.spare) * unreadable(mean_errors, group.spare);
    let a_year = |loss: f64| -(-f64::from(members) * year * loss).exp_m1();
    let (array_year, sector_year) = (a_year(array), a_year(sector));
    Some(Risk { array, sector, year: a_year(array + sector), array_year, sector_year })
}

/// The probability over `years` years from that of one year. The rate of losses stays the same, because failed drives
/// are replaced.
#[must_use]
pub fn over_years(year: f64, years: f64) -> f64 {
    -(years * (-year).ln_1p()).exp_m1()
}

/// The probability that exactly `some` of `all` events happen, each with the probability `chance`.
fn binomial(all: u32, some: u32, chance: f64) -> f64 {
    let ways: f64 = (0..some).map(|done| f64::from(all - done) / f64::from(done + 1)).product();
    ways * chance.powf(f64::from(some)) * (1.0 - chance).powf(f64::from(all - some))
}

/// The probability of at least one unreadable sector. `errors` are expected in a whole rebuild. Only errors count that
/// come after the last of `failures` drives has failed; each drive fails at a random time of the rebuild.
fn unreadable(errors: f64, failures: u32) -> f64 {
    if failures == 0 {
        return -(-errors).exp_m1();
    }
    // The latest of these times has the density t x^(t-1).
    let (step, last) = (1.0 / f64::from(STEPS), failures.cast_signed() - 1);
    let at = |number: u32| {
        let time = (f64::from(number) + 0.5) * step;
        f64::from(failures) * time.powi(last) * -(-errors * (1.0 - time)).exp_m1() * step
    };
    (0..STEPS).map(at).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: Frailty = Frailty { afr: 0.0035, errors_per_bit: 1e-15, bytes: 18e12 };

    /// The rates of a process with three states, integrated in small steps: one drive is missing, two drives are
    /// missing, data was lost by a failure. `errors` are expected in the reads of one rebuild. They lose data while no
    /// redundancy is left; that loss is counted separately.
    fn integrated(others: u32, spare: u32, read: f64, drive: Frailty, hours: f64) -> (f64, f64) {
        const STEPS: u32 = 200_000;
        let rate = -(1.0 - drive.afr).ln() / YEAR_HOURS * hours / f64::from(STEPS);
        let errors = drive.errors_per_bit * drive.bytes * 8.0 * read / f64::from(STEPS);
        // Indexed by the number of further missing drives: the probability that all data exist, and that sectors are
        // lost.
        let mut whole = vec![0.0; spare as usize + 2];
        let mut hurt = whole.clone();
        whole[0] = 1.0;
        for _ in 0..STEPS {
            let mut next = (whole.clone(), hurt.clone());
            for missing in 0..=spare {
                let at = missing as usize;
                let leaves = f64::from(others - missing) * rate;
                for (from, to) in [(&whole, &mut next.0), (&hurt, &mut next.1)] {
                    to[at] -= from[at] * leaves;
                    to[at + 1] += from[at] * leaves;
                }
                if missing == spare {
                    next.0[at] -= whole[at] * errors;
                    next.1[at] += whole[at] * errors;
                }
            }
            (whole, hurt) = next;
        }
        let lost = spare as usize + 1;
        (whole[lost] + hurt[lost], hurt[..lost].iter().sum())
    }

    #[test]
    fn the_chances_are_those_of_the_process_integrated_step_by_step() {
        let rough = Frailty { afr: 0.3, errors_per_bit: 1e-14, bytes: 4e12 };
        for (level, members, others, spare, read) in [
            (Level::Raid5, 8, 7, 0, 7.0),
            (Level::Raid6, 8, 7, 1, 6.0),
            (Level::Raid10, 8, 1, 0, 1.0),
            (Level::Raid50, 8, 3, 0, 3.0),
            (Level::Raid60, 12, 5, 1, 4.0),
            (Level::Raid1, 2, 1, 0, 1.0),
            (Level::Raid1, 3, 2, 1, 1.0),
            (Level::Raid1e, 5, 2, 0, 1.0),
        ] {
            for (drive, hours) in [(DRIVE, 30.0), (rough, 200.0)] {
                let found = risk(level, members, drive, hours).unwrap();
                let (array, sector) = integrated(others, spare, read, drive, hours);
                // If data is lost first by an error and then by a failure, both computations count it as lost by the
                // failure.
                let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 5e-3;
                assert!(near(found.array, array), "{level:?} {hours}: {} is not {array}", found.array);
                assert!(near(found.sector, sector), "{level:?} {hours}: {} is not {sector}", found.sector);
            }
        }
        assert_eq!(risk(Level::Raid0, 8, DRIVE, 30.0), None);
    }

    #[test]
    fn for_short_rebuilds_they_are_the_published_mean_times_to_data_loss() {
        // MTTF^2 / (N (G - 1) MTTR), Patterson, Gibson and Katz 1988; N drives in groups of G.
        let perfect = Frailty { errors_per_bit: 0.0, ..DRIVE };
        let mttf = YEAR_HOURS / -(1.0 - DRIVE.afr).ln();
        let mttdl = |level, members| YEAR_HOURS / -(-risk(level, members, perfect, 10.0).unwrap().year).ln_1p();
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-3, "{found}: {expected}");
        near(mttdl(Level::Raid5, 8), mttf * mttf / (8.0 * 7.0 * 10.0));
        near(mttdl(Level::Raid50, 8), mttf * mttf / (8.0 * 3.0 * 10.0));
        near(mttdl(Level::Raid10, 8), mttf * mttf / (8.0 * 10.0));
        // MTTF^3 / (N (G - 1) (G - 2) MTTR^2), Chen et al. 1994, holds for repairs of exponential length. In a fixed
        // time two failures are half as likely: T^2 / 2 instead of MTTR^2.
        near(mttdl(Level::Raid6, 8), 2.0 * mttf * mttf * mttf / (8.0 * 7.0 * 6.0 * 100.0));
    }

    #[test]
    fn five_years_are_those_of_a_constant_rate_of_losses() {
        // R(t) = exp(-t / MTTDL), with the MTTDL of the paper above.
        let perfect = Frailty { errors_per_bit: 0.0, ..DRIVE };
        let mttf = YEAR_HOURS / -(1.0 - DRIVE.afr).ln();
        for (level, mttdl) in [
            (Level::Raid5, mttf * mttf / (8.0 * 7.0 * 10.0)),
            (Level::Raid10, mttf * mttf / (8.0 * 10.0)),
            (Level::Raid6, 2.0 * mttf * mttf * mttf / (8.0 * 7.0 * 6.0 * 100.0)),
        ] {
            let found = over_years(risk(level, 8, perfect, 10.0).unwrap().year, 5.0);
            let expected = 1.0 - (-5.0 * YEAR_HOURS / mttdl).exp();
            assert!((found / expected - 1.0).abs() < 1e-3, "{level:?}: {found} is not {expected}");
        }
        // Large probabilities do not add up: for five times one half the result is 1 - (1/2)^5.
        assert!((over_years(0.5, 5.0) - 0.96875).abs() < 1e-12);
    }

    #[test]
    fn seven_drives_of_18_tb_read_whole_meet_an_error_more_often_than_not() {
        // 7 x 18e12 x 8 bits and one error in 10^15: 1 - exp(-1.008).
        let raid5 = risk(Level::Raid5, 8, DRIVE, 30.0).unwrap();
        assert!((raid5.sector / (1.0 - (-1.008f64).exp()) - 1.0).abs() < 1e-3, "{raid5:?}");
        let raid6 = risk(Level::Raid6, 8, DRIVE, 30.0).unwrap();
        assert!(raid6.sector < raid5.sector / 1000.0 && raid6.array < raid5.array / 1000.0, "{raid6:?}");
    }
}
