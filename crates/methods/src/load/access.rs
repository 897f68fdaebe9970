//! Access specifications: sizes, their shares, and the shares of reads and of random positions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of lines in one specification; Iometer allows 100.
pub const LINES_MAX: usize = 256;
/// Maximum size of a request in bytes.
pub const REQUEST_BYTES_MAX: u32 = 16 << 20;

/// One size.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessLine {
    /// Size of a request, bytes.
    pub bytes: u32,
    /// Percentage of all requests that have this size.
    pub share: u8,
    /// Percentage of reads among the requests of this size.
    pub read: u8,
    /// Percentage of the requests of this size that are at random positions. The others follow the worker's previous
    /// request.
    pub random: u8,
    /// Random positions are multiples of this; if it is absent, of the largest power of two that divides the size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<u32>,
}

impl AccessLine {
    /// A line whose positions are aligned to the size.
    #[must_use]
    pub const fn new(bytes: u32, share: u8, read: u8, random: u8) -> Self {
        Self { bytes, share, read, random, align: None }
    }

    /// Sets the alignment of random positions in bytes.
    #[must_use]
    pub const fn alignment(&self) -> u32 {
        match self.align {
            Some(align) => align,
            None => 1 << self.bytes.trailing_zeros(),
        }
    }
}

/// The times of requests and the part of the target, if a specification has more than sizes. The default: each worker
/// issues requests as soon as it may, everywhere.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(default, deny_unknown_fields)]
pub struct AccessManner {
    /// Number of requests after whose end a worker pauses, and the pause in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<(u32, u64)>,
    /// Number of requests each second, at equal intervals, whether or not earlier ones have ended; the depth is the
    /// maximum that the target gets at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// A worker requests a flush after this many writes. Its next request waits for the flush only at depth one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_every: Option<u32>,
    /// The first byte of the target that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Number of bytes that are used; absent: up to the target's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<u64>,
}

impl AccessManner {
    /// Does the load have only default values?
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// A list of sizes whose shares add up to 100 %.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, utoipa::ToSchema)]
pub struct AccessSpec {
    /// Name of the access specification.
    name: String,
    /// Sizes of requests, with the share of each.
    lines: Vec<AccessLine>,
    /// The times of the requests, if they are not issued one after the other.
    #[serde(skip_serializing_if = "AccessManner::is_plain")]
    manner: AccessManner,
}

/// The specification as parsed, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    name: String,
    lines: Vec<AccessLine>,
    #[serde(default)]
    manner: AccessManner,
}

impl<'de> Deserialize<'de> for AccessSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let unchecked = Unchecked::deserialize(deserializer)?;
        let spec = Self::new(&unchecked.name, unchecked.lines).map_err(serde::de::Error::custom)?;
        Ok(spec.in_manner(unchecked.manner))
    }
}

/// The reason why a list is not a valid specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessError {
    /// The list has no lines, or too many.
    Lines(usize),
    /// The sum of the shares is not 100 %.
    Shares(u32),
    /// A percentage is above 100.
    Percent {
        /// Number of the line, from 1.
        line: usize,
        /// Name of the figure.
        what: &'static str,
        value: u8,
    },
    /// No request can have this size.
    Size {
        /// Number of the line, from 1.
        line: usize,
        bytes: u32,
    },
    /// The alignment is not a whole number of sectors.
    Align {
        /// Number of the line, from 1.
        line: usize,
        bytes: u32,
    },
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(count) => write!(f, "{count} lines; an access specification has 1 to {LINES_MAX}"),
            Self::Shares(sum) => {
                write!(f, "the shares of the sizes add to {sum} %; correct them, together they must be 100 %")
            }
            Self::Percent { line, what, value } => {
                write!(f, "line {line}: {value} % {what} is not possible; give 0 to 100")
            }
            Self::Size { line, bytes } => write!(
                f,
                "line {line}: requests of {bytes} bytes are not possible; give a multiple of 512 up to \
                 {REQUEST_BYTES_MAX}"
            ),
            Self::Align { line, bytes } => {
                write!(f, "line {line}: an alignment of {bytes} bytes is not possible; give a multiple of 512")
            }
        }
    }
}

impl std::error::Error for AccessError {}

impl AccessSpec {
    /// Checks a list.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub fn new(name: &str, lines: Vec<AccessLine>) -> Result<Self, AccessError> {
        if lines.is_empty() || lines.len() > LINES_MAX {
            return Err(AccessError::Lines(lines.len()));
        }
        for (number, line) in (1..).zip(&lines) {
            for (what, value) in [("of requests", line.share), ("reads", line.read), ("random", line.random)] {
                if value > 100 {
                    return Err(AccessError::Percent { line: number, what, value });
                }
            }
            if line.bytes == 0 || !line.bytes.is_multiple_of(512) || line.bytes > REQUEST_BYTES_MAX {
                return Err(AccessError::Size { line: number, bytes: line.bytes });
            }
            if line.align.is_some_and(|align| align == 0 || !align.is_multiple_of(512)) {
                return Err(AccessError::Align { line: number, bytes: line.align.unwrap_or(0) });
            }
        }
        let sum = lines.iter().map(|line| u32::from(line.share)).sum();
        if sum != 100 {
            return Err(AccessError::Shares(sum));
        }
        Ok(Self { name: name.into(), lines, manner: AccessManner::default() })
    }

    /// The same requests with other times or positions.
    #[must_use]
    pub fn in_manner(self, manner: AccessManner) -> Self {
        Self { manner, ..self }
    }

    /// The times and positions of requests.
    #[must_use]
    pub const fn manner(&self) -> AccessManner {
        self.manner
    }

    /// Name of the specification.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lines of the specification.
    #[must_use]
    pub fn lines(&self) -> &[AccessLine] {
        &self.lines
    }

    /// Mean size of a request in bytes.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        self.lines.iter().map(|line| f64::from(line.bytes) * f64::from(line.share)).sum::<f64>() / 100.0
    }

    /// Percentage of all requests that are reads.
    #[must_use]
    pub fn read_percent(&self) -> f64 {
        self.lines.iter().map(|line| f64::from(line.read) * f64::from(line.share)).sum::<f64>() / 100.0
    }

    /// Percentage of all requests at random positions.
    #[must_use]
    pub fn random_percent(&self) -> f64 {
        self.lines.iter().map(|line| f64::from(line.random) * f64::from(line.share)).sum::<f64>() / 100.0
    }

    /// Does the load write?
    #[must_use]
    pub fn writes(&self) -> bool {
        self.lines.iter().any(|line| line.share > 0 && line.read < 100)
    }

    /// Size of the largest request.
    #[must_use]
    pub fn bytes_max(&self) -> u32 {
        self.lines.iter().map(|line| line.bytes).max().unwrap_or(0)
    }

    /// The largest unit that divides all sizes and positions, at most 4096. The target's block must divide this unit.
    #[must_use]
    pub fn granule(&self) -> u32 {
        let units = self.lines.iter().filter(|line| line.share > 0).map(|line| {
            let size = 1u32 << line.bytes.trailing_zeros();
            let align = line.align.map_or(size, |align| 1 << align.trailing_zeros());
            size.min(align)
        });
        units.min().unwrap_or(512).min(4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_do_not_add_to_a_hundred_are_refused() {
        let line = AccessLine::new(4096, 60, 80, 100);
        assert_eq!(AccessSpec::new("x", vec![line]), Err(AccessError::Shares(60)));
        assert!(AccessSpec::new("x", vec![line; 2]).unwrap_err().to_string().contains("add to 120 %"));
        let json = r#"{"name":"x","lines":[{"bytes":4096,"share":60,"read":0,"random":0}]}"#;
        assert!(serde_json::from_str::<AccessSpec>(json).unwrap_err().to_string().contains("must be 100 %"));
    }

    #[test]
    fn impossible_lines_are_named() {
        let bad = |line: AccessLine| AccessSpec::new("x", vec![line]).unwrap_err().to_string();
        assert!(bad(AccessLine::new(1000, 100, 0, 0)).starts_with("line 1: requests of 1000 bytes"));
        assert!(bad(AccessLine::new(4096, 100, 101, 0)).starts_with("line 1: 101 % reads"));
        assert!(bad(AccessLine { align: Some(100), ..AccessLine::new(512, 100, 0, 0) }).contains("alignment of 100"));
        assert_eq!(AccessSpec::new("x", Vec::new()), Err(AccessError::Lines(0)));
        assert_eq!(AccessSpec::new("x", vec![AccessLine::new(512, 0, 0, 0); 300]), Err(AccessError::Lines(300)));
    }

    #[test]
    fn granules_are_what_sizes_and_places_share() {
        let spec = |lines: Vec<AccessLine>| AccessSpec::new("x", lines).unwrap();
        assert_eq!(spec(vec![AccessLine::new(20 << 10, 100, 0, 100)]).granule(), 4096);
        assert_eq!(spec(vec![AccessLine::new(512, 1, 0, 0), AccessLine::new(8192, 99, 0, 0)]).granule(), 512);
        assert_eq!(AccessLine::new(20 << 10, 100, 0, 100).alignment(), 4096);
    }
}
