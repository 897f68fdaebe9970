//! Ratings: one figure from several queue depths. Each review used its own formula, so the formula is printed with the
//! figure.
//!
//! `qN` is the number of requests per second at queue depth N.

use crate::cell::Pattern;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Scheme {
    /// The mean over all depths.
    R1,
    /// Depths 1 to 16, each divided by the depth.
    R2,
    /// Depths 1 to 32, each divided by the depth.
    R3,
    /// Weights of their own for file, web and workstation loads.
    R4,
    /// An index: the mean of depths 16, 64 and 256, each as a ratio to the single drive at that depth.
    R5,
    /// Its variant for light loads: the same over depths 1, 4 and 16.
    #[serde(rename = "R5-light")]
    R5Light,
}

/// A queue depth that the formula needs was not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RatingError {
    /// The formula.
    pub scheme: Scheme,
    /// The queue depth.
    pub depth: u32,
    /// Is the missing figure that of the single drive?
    pub of_single: bool,
}

impl fmt::Display for RatingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, depth) = (self.scheme.name(), self.depth);
        let whose = if self.of_single { "the single drive at " } else { "" };
        write!(f, "rating {scheme} needs {whose}depth {depth}, which was not measured; measure it too")
    }
}

impl std::error::Error for RatingError {}

/// Queue depths and their divisors.
type Terms = &'static [(u32, f64)];

const R2: Terms = &[(1, 1.0), (2, 2.0), (4, 4.0), (8, 8.0), (16, 16.0)];
const R3: Terms = &[(1, 1.0), (2, 2.0), (4, 4.0), (8, 8.0), (16, 16.0), (32, 32.0)];
const R4_FILE: Terms = &[(1, 1.0), (4, 2.0), (16, 4.0), (64, 6.0), (256, 8.0)];
const R4_WEB: Terms = &[(1, 1.0), (4, 1.0), (16, 2.0), (64, 4.0), (256, 6.0)];
const R4_WORK: Terms = &[(1, 1.0), (2, 1.0), (4, 2.0), (8, 3.0), (16, 4.0)];
const R5: Terms = &[(16, 3.0), (64, 3.0), (256, 3.0)];
const R5_LIGHT: Terms = &[(1, 3.0), (4, 3.0), (16, 3.0)];

impl Scheme {
    /// All values.
    pub const ALL: [Self; 6] = [Self::R1, Self::R2, Self::R3, Self::R4, Self::R5, Self::R5Light];

    /// The scheme in a text. Its first word, up to any character except letters, digits and hyphens, is `R1` to `R5`. A
    /// text without a formula means R4 if it gives a weight by depth, because R4 is the published formula of that kind.
    /// If it names a mean, it means R1.
    #[must_use]
    pub fn from_words(text: &str) -> Option<Self> {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let first = text.trim_start().split(|c| !part(c)).next().unwrap_or_default();
        if let Some(named) = Self::ALL.into_iter().find(|scheme| scheme.name() == first) {
            return Some(named);
        }
        let numbered = first.strip_prefix('R').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
        match text {
            // The text has a number but no known scheme, so its other words are ignored.
            _ if numbered => None,
            _ if text.contains("weighted") => Some(Self::R4),
            _ if text.contains("mean") => Some(Self::R1),
            _ => None,
        }
    }

    /// `R1` to `R5`, `R5-light`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::R1 => "R1",
            Self::R2 => "R2",
            Self::R3 => "R3",
            Self::R4 => "R4",
            Self::R5 => "R5",
            Self::R5Light => "R5-light",
        }
    }

    /// Does the formula divide by the rate of the single drive?
    #[must_use]
    pub const fn is_index(self) -> bool {
        matches!(self, Self::R5 | Self::R5Light)
    }

    fn terms(self, pattern: &Pattern) -> Option<Terms> {
        match self {
            Self::R1 => None,
            Self::R2 => Some(R2),
            Self::R3 => Some(R3),
            Self::R4 => Some(match pattern {
                Pattern::WebServer => R4_WEB,
                Pattern::Workstation => R4_WORK,
                _ => R4_FILE,
            }),
            Self::R5 => Some(R5),
            Self::R5Light => Some(R5_LIGHT),
        }
    }

    /// The queue depths that the formula needs for a pattern.
    #[must_use]
    pub fn depths(self, pattern: &Pattern) -> Vec<u32> {
        match self.terms(pattern) {
            Some(terms) => terms.iter().map(|(depth, _)| *depth).collect(),
            None => pattern.depths().to_vec(),
        }
    }

    /// The formula, for printing next to the figure.
    #[must_use]
    pub fn formula(self, pattern: &Pattern) -> String {
        let terms = match (self, self.terms(pattern)) {
            (Self::R5, _) => return "(q16/s16 + q64/s64 + q256/s256) / 3, sN: the single drive at depth N".into(),
            (Self::R5Light, _) => return "(q1/s1 + q4/s4 + q16/s16) / 3, sN: the single drive at depth N".into(),
            (_, Some(terms)) => terms,
            (_, None) => {
                let depths: Vec<String> = pattern.depths().iter().map(|depth| format!("q{depth}")).collect();
                return format!("({}) / {}", depths.join(" + "), depths.len());
            }
        };
        let terms: Vec<String> = terms.iter().map(|(depth, divisor)| format!("q{depth}/{divisor}")).collect();
        terms.join(" + ")
    }

    /// The figure, from the requests per second at each queue depth. Only an index also needs the rates of the single
    /// drive.
    ///
    /// # Errors
    /// A queue depth is missing, or the single drive has no rate at it.
    pub fn rate(
        self,
        pattern: &Pattern,
        iops: impl Fn(u32) -> Option<f64>,
        single: impl Fn(u32) -> Option<f64>,
    ) -> Result<f64, RatingError> {
        let at = |depth: u32| {
            let missing = |of_single| RatingError { scheme: self, depth, of_single };
            let of_array = iops(depth).ok_or(missing(false))?;
            if !self.is_index() {
                return Ok(of_array);
            }
            Ok(of_array / single(depth).filter(|one| *one > 0.0).ok_or(missing(true))?)
        };
        match self.terms(pattern) {
            Some(terms) => terms.iter().map(|(depth, divisor)| Ok(at(*depth)? / divisor)).sum(),
            None => {
                let depths = pattern.depths();
                let sum: f64 = depths.iter().map(|depth| at(*depth)).sum::<Result<f64, _>>()?;
                Ok(sum / depths.len() as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_are_their_printed_formulas() {
        // With qN = N each term of R2 is 1; the others are computed by hand.
        let linear = |depth: u32| Some(f64::from(depth));
        let none = |_| None;
        let file = Pattern::FileServer;
        assert_eq!(Scheme::R1.rate(&file, linear, none).unwrap(), 511.0 / 9.0);
        assert_eq!(Scheme::R2.rate(&file, linear, none), Ok(5.0));
        assert_eq!(Scheme::R3.rate(&file, linear, none), Ok(6.0));
        assert_eq!(Scheme::R4.rate(&file, linear, none).unwrap(), 1.0 + 2.0 + 4.0 + 64.0 / 6.0 + 32.0);
        assert_eq!(Scheme::R4.rate(&Pattern::WebServer, linear, none).unwrap(), 1.0 + 4.0 + 8.0 + 16.0 + 256.0 / 6.0);
        assert_eq!(Scheme::R4.rate(&Pattern::Workstation, linear, none).unwrap(), 1.0 + 2.0 + 2.0 + 8.0 / 3.0 + 4.0);
        // An index needs the single drive, which has 8 at all depths here: the mean of 2, 8 and 32.
        assert_eq!(Scheme::R5.rate(&file, linear, |_| Some(8.0)), Ok(14.0));
        assert_eq!(Scheme::R5.rate(&file, linear, linear), Ok(1.0));
        // Depths 1, 4 and 16, and a single drive with 2 at all depths: the mean of a half, 2 and 8.
        assert_eq!(Scheme::R5Light.rate(&file, linear, |_| Some(2.0)), Ok(3.5));
        assert_eq!(Scheme::R2.formula(&file), "q1/1 + q2/2 + q4/4 + q8/8 + q16/16");
        assert_eq!(Scheme::R1.formula(&Pattern::Workstation), "(q1 + q2 + q4 + q8 + q16 + q32) / 6");
    }

    #[test]
    fn a_missing_depth_is_named() {
        let few = |depth: u32| (depth < 16).then_some(1.0);
        let error = Scheme::R2.rate(&Pattern::Workstation, few, |_| None).unwrap_err();
        assert_eq!(error.to_string(), "rating R2 needs depth 16, which was not measured; measure it too");
        for single in [None, Some(0.0)] {
            let error = Scheme::R5.rate(&Pattern::FileServer, |_| Some(1.0), |_| single).unwrap_err();
            let words = "rating R5 needs the single drive at depth 16, which was not measured; measure it too";
            assert_eq!(error.to_string(), words);
        }
    }

    #[test]
    fn schemes_are_found_in_the_words_of_claims() {
        for (text, scheme) in [
            ("R1 mean", Some(Scheme::R1)),
            ("R2 (to queue 16)", Some(Scheme::R2)),
            ("R2(mean)", Some(Scheme::R2)),
            ("R3 (to queue 32)", Some(Scheme::R3)),
            ("R3, to 32", Some(Scheme::R3)),
            ("R4: depth-weighted", Some(Scheme::R4)),
            (" R5", Some(Scheme::R5)),
            ("R5-light, as an index", Some(Scheme::R5Light)),
            ("depth-weighted (formula not printed)", Some(Scheme::R4)),
            ("mean", Some(Scheme::R1)),
            ("R9", None),
            ("R9 (mean)", None),
            ("R22", None),
            ("something", None),
        ] {
            assert_eq!(Scheme::from_words(text), scheme, "{text}");
        }
    }
}
