//! Units: the valid endings of a key, and their values.
//!
//! A value is a whole number of its dimension's base unit. The upper bounds keep all later sums from overflow.

/// The dimension of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dimension {
    /// Nanoseconds.
    Time,
    Size,
    /// Bytes per second.
    Rate,
    /// Turns per minute.
    Spin,
    /// Commands per second.
    Commands,
    /// Parts in a million.
    Share,
    /// Thousandths of a ratio.
    Factor,
    /// Milliwatts.
    Power,
    /// A number of things, without a unit: the key names the things.
    Count,
}

impl Dimension {
    /// Endings of keys, and their factors to the base unit.
    pub(crate) const fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Time => &[("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)],
            Self::Size => &[
                ("_bytes", 1.0),
                ("_sectors", 512.0),
                ("_kb", 1e3),
                ("_kib", 1024.0),
                ("_mb", 1e6),
                ("_mib", 1_048_576.0),
                ("_gb", 1e9),
                ("_gib", 1_073_741_824.0),
                ("_tb", 1e12),
                ("_tib", 1_099_511_627_776.0),
            ],
            Self::Rate => &[("_kbs", 1e3), ("_mbs", 1e6), ("_mibs", 1_048_576.0), ("_gbs", 1e9)],
            Self::Spin => &[("_rpm", 1.0)],
            Self::Commands => &[("_iops", 1.0)],
            Self::Share => &[("_percent", 1e4), ("_ppm", 1.0)],
            Self::Factor => &[("_factor", 1e3)],
            Self::Power => &[("_mw", 1.0), ("_w", 1e3)],
            Self::Count => &[("", 1.0)],
        }
    }

    /// The greatest value in base units: 1000 s, 2^60 bytes, 1 TB/s, and so on.
    pub(crate) const fn largest(self) -> u64 {
        match self {
            Self::Time | Self::Rate => 1_000_000_000_000,
            Self::Size => 1 << 60,
            Self::Spin | Self::Share => 1_000_000,
            Self::Commands => 1_000_000_000,
            Self::Factor => 1_000_000,
            Self::Power => 100_000,
            Self::Count => 1 << 32,
        }
    }

    /// The meaning of the endings in words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Size => "size",
            Self::Rate => "rate of data",
            Self::Spin => "speed of a spindle",
            Self::Commands => "rate of commands",
            Self::Share => "share",
            Self::Factor => "factor",
            Self::Power => "power",
            Self::Count => "number",
        }
    }
}

/// The ending of `key`, of any dimension.
pub(crate) fn ending(key: &str) -> Option<&'static str> {
    const ALL: [Dimension; 8] = [
        Dimension::Time,
        Dimension::Size,
        Dimension::Rate,
        Dimension::Spin,
        Dimension::Commands,
        Dimension::Share,
        Dimension::Factor,
        Dimension::Power,
    ];
    let mut endings = ALL.iter().flat_map(|dimension| dimension.units()).map(|(ending, _)| *ending);
    endings.find(|ending| key.len() > ending.len() && key.ends_with(ending))
}
