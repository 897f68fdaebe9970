//! The number of sets of failures that an array survives, and the place of its parity.
//!
//! All sets of k failures among n members count equally:
//!
//! ```text
//!  RAID 0   none but the empty one          RAID 10  at most one of each pair: C(n/2, k) 2^k
//!  RAID 1   all but all members             RAID 1E  no two neighbours in a circle, where n is odd:
//!  RAID 5   k <= 1                                   n / (n - k) C(n - k, k); pairs, where n is even
//!  RAID 6   k <= 2                          RAID 50, 60  at most p of each span: [x^k] (sum C(m, i) x^i, i <= p)^g
//! ```

use super::small_write::spans;
use crate::metric::NotApplicable;
use crate::subject::Level;

/// n over k.
fn choose(n: u16, k: u16) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k.min(n - k)).fold(1.0, |product, i| (product * f64::from(n - i) / f64::from(i + 1)).round())
}

/// The coefficient of x^k in (1 + C(m, 1) x + ... + C(m, p) x^p)^g: sets of k with at most p in each of g groups of m.
fn grouped(groups: u16, size: u16, most: u16, k: u16) -> f64 {
    let mut counts = vec![0.0; usize::from(k) + 1];
    counts[0] = 1.0;
    for _ in 0..groups {
        for total in (0..=usize::from(k)).rev() {
            let reach = usize::from(most.min(size)).min(total);
            counts[total] = (0..=reach)
                .map(|here| counts[total - here] * choose(size, u16::try_from(here).unwrap_or(u16::MAX)))
                .sum();
        }
    }
    counts[usize::from(k)]
}

/// Number of sets of k without two neighbours in a circle of n.
fn scattered(n: u16, k: u16) -> f64 {
    match k {
        0 => 1.0,
        _ if 2 * k > n => 0.0,
        _ => f64::from(n) / f64::from(n - k) * choose(n - k, k),
    }
}

/// Share of the sets of `k` failures among `n` members that a level survives, 0 to 1.
///
/// # Errors
/// Such an array or such a set is not possible.
pub fn survive_fraction(level: Level, n: u16, k: u16) -> Result<f64, NotApplicable> {
    super::data_members(level, n)?;
    if k > n {
        return Err(NotApplicable::new(format!("{k} of {n} members cannot fail")));
    }
    let survived = match level {
        Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => f64::from(u8::from(k == 0)),
        Level::Raid1 => grouped(1, n, n - 1, k),
        Level::Raid4 | Level::Raid5 => grouped(1, n, 1, k),
        Level::Raid6 => grouped(1, n, 2, k),
        Level::Raid10 => grouped(n / 2, 2, 1, k),
        Level::Raid1e if n.is_multiple_of(2) => grouped(n / 2, 2, 1, k),
        Level::Raid1e => scattered(n, k),
        Level::Raid50 => {
            let spans = spans(level, n)?;
            grouped(spans, n / spans, 1, k)
        }
        Level::Raid60 => {
            let spans = spans(level, n)?;
            grouped(spans, n / spans, 2, k)
        }
    };
    Ok((survived / choose(n, k)).min(1.0))
}

/// The same share for drives without redundancy: data survives only if no drive fails.
///
/// # Errors
/// Such a set is not possible.
pub fn survive_nothing(n: u16, k: u16) -> Result<f64, NotApplicable> {
    if k > n {
        return Err(NotApplicable::new(format!("{k} of {n} drives cannot fail")));
    }
    Ok(f64::from(u8::from(k == 0)))
}

/// Share of all parity that a member has, over one cycle of the left-symmetric layout.
///
/// # Errors
/// Such an array or such a member is not possible.
pub fn parity_share(level: Level, members: u16, member: u16) -> Result<f64, NotApplicable> {
    super::data_members(level, members)?;
    let parities = match level {
        // One member has all parity.
        Level::Raid4 => return Ok(f64::from(u8::from(member + 1 == members))),
        Level::Raid5 | Level::Raid50 => 1,
        Level::Raid6 | Level::Raid60 => 2,
        _ => 0,
    };
    if member >= members {
        return Err(NotApplicable::new(format!("there is no member {member} of {members}; they count from 0")));
    }
    if parities == 0 {
        return Ok(0.0);
    }
    let spans = spans(level, members)?;
    let span = members / spans;
    let within = member % span;
    // P moves down from the last slot, Q is next to P.
    let held = |stripe: u16| {
        let first = span - 1 - stripe % span;
        u32::from((0..parities).any(|parity| (first + parity) % span == within))
    };
    let units: u32 = (0..span).map(held).sum();
    Ok(f64::from(units) / f64::from(u32::from(parities) * u32::from(span) * u32::from(spans)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the array survives without these members. From the definition of each level, without counting formulas.
    fn lives(level: Level, n: u16, gone: u32) -> bool {
        let is_gone = |slot: u16| gone >> slot & 1 == 1;
        let lost = |slots: &[u16]| slots.iter().filter(|slot| is_gone(**slot)).count();
        let all: Vec<u16> = (0..n).collect();
        match level {
            Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => lost(&all) == 0,
            Level::Raid1 => lost(&all) < all.len(),
            Level::Raid4 | Level::Raid5 => lost(&all) <= 1,
            Level::Raid6 => lost(&all) <= 2,
            // Chunk c is on slots 2c and 2c + 1, in a circle: every chunk keeps a copy.
            Level::Raid10 | Level::Raid1e => (0..n).all(|chunk| lost(&[2 * chunk % n, (2 * chunk + 1) % n]) < 2),
            Level::Raid50 | Level::Raid60 => {
                let spans = spans(level, n).expect("spans");
                let most = if level == Level::Raid50 { 1 } else { 2 };
                all.chunks(usize::from(n / spans)).all(|span| lost(span) <= most)
            }
        }
    }

    #[test]
    fn shares_of_survived_failures_are_those_of_trying_all() {
        for level in crate::subject::LEVELS {
            for n in 1..=12_u16 {
                let least = match level {
                    Level::Raid0 => 1,
                    Level::Raid1 => 2,
                    Level::Raid1e | Level::Raid5 => 3,
                    _ => 4,
                };
                let possible = n >= least && !(level == Level::Raid10 && n % 2 == 1) && spans(level, n).is_ok();
                if !possible {
                    assert!(survive_fraction(level, n, 0).is_err(), "{level:?} of {n}");
                    continue;
                }
                for k in 0..=n {
                    let sets: Vec<u32> = (0..1_u32 << n).filter(|set| set.count_ones() == u32::from(k)).collect();
                    let survived = sets.iter().filter(|set| lives(level, n, **set)).count();
                    let share = survived as f64 / sets.len() as f64;
                    let given = survive_fraction(level, n, k).expect("a share");
                    assert!((given - share).abs() < 1e-12, "{level:?} of {n}, {k} gone: {given} against {share}");
                    assert!(share != 1.0 || given == 1.0, "certainty is exact");
                }
                assert!(survive_fraction(level, n, n + 1).is_err());
            }
        }
    }

    #[test]
    fn wide_arrays_stay_numbers() {
        let share = survive_fraction(Level::Raid10, 384, 192).expect("a share");
        assert!(share > 0.0 && share < 1e-50);
        assert_eq!(survive_fraction(Level::Raid6, 384, 2), Ok(1.0));
    }

    #[test]
    fn parity_is_shared_evenly() {
        for (level, members) in
            [(Level::Raid5, 3), (Level::Raid5, 7), (Level::Raid6, 8), (Level::Raid50, 9), (Level::Raid60, 8)]
        {
            let shares: Vec<f64> =
                (0..members).map(|member| parity_share(level, members, member).expect("a share")).collect();
            for share in &shares {
                assert!((share - 1.0 / f64::from(members)).abs() < 1e-12, "{level:?} {shares:?}");
            }
        }
        assert_eq!(parity_share(Level::Raid0, 4, 3), Ok(0.0));
        assert!(parity_share(Level::Raid0, 4, 4).is_err());
        assert!(parity_share(Level::Raid5, 4, 4).is_err());
    }
}
