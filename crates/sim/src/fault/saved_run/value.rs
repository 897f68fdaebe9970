//! Values as words of a file, in both directions.

use openraid_core::admin::{MirrorRule, PartialWritePolicy, ReadAhead, WriteCache};
use openraid_core::geometry::Level;
use openraid_format::MinorVersion;
use openraid_units::{BlockSize, Bytes, Nanos, Sectors};

use crate::drive::FreshContent;
use crate::fault::scenario::{ControllerEnd, Mode};
use crate::rig::Loss;
use crate::test_arrays::Blocks;

/// A value in a file.
pub(super) trait Value: Sized {
    fn words(&self) -> String;
    /// The value with these words.
    fn from_words(words: &str) -> Option<Self>;
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl Value for $kind {
            fn words(&self) -> String {
                self.to_string()
            }
            fn from_words(words: &str) -> Option<Self> {
                words.parse().ok()
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, usize, bool);

macro_rules! enums {
    ($($kind:ident { $($name:ident = $words:literal),* })*) => {$(
        impl Value for $kind {
            fn words(&self) -> String {
                match self { $(Self::$name => $words,)* }.into()
            }
            fn from_words(words: &str) -> Option<Self> {
                match words {
                    $($words => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    )*};
}
enums! {
    Mode { Bounded = "bounded", Unbounded = "unbounded" }
    ControllerEnd { Cut = "cut", CutInPart = "cut-in-part", Kill = "kill", Stop = "stop" }
    Loss {
        Failed = "failed", Pulled = "pulled", ReadOnly = "read-only", Hanging = "hanging", FlushFails = "flush-fails"
    }
    Level {
        Passthrough = "raw", Linear = "linear", Raid0 = "raid0", Raid1 = "raid1", Raid4 = "raid4", Raid5 = "raid5",
        Raid6 = "raid6", Raid10 = "raid10"
    }
    Blocks { Small = "512", Large = "4096", Mixed = "mixed" }
    MinorVersion { V1_0 = "1.0", V1_1 = "1.1", V1_2 = "1.2" }
    PartialWritePolicy { Fewest = "fewest", ReadModifyWrite = "read-modify-write" }
    WriteCache { Through = "through", Journal = "journal", Volatile = "volatile" }
    ReadAhead { None = "none", Always = "always", Adaptive = "adaptive" }
    MirrorRule {
        Primary = "primary", RoundRobin = "round-robin", LeastPending = "least-pending", NearestHead = "nearest-head",
        TwinStor = "twinstor"
    }
}

/// The number in the largest of these units that divides it.
fn in_units(number: u64, units: &[(u64, &str)]) -> String {
    let (size, unit) = units.iter().rev().find(|(size, _)| number.is_multiple_of(*size)).expect("the first one is 1");
    format!("{} {unit}", number / size)
}

fn from_units(words: &str, units: &[(u64, &str)]) -> Option<u64> {
    let (number, unit) = words.split_once(' ')?;
    let (size, _) = units.iter().find(|(_, name)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*size)
}

const BYTES: &[(u64, &str)] = &[(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB")];
const SECTORS: &[(u64, &str)] = &[(1, "sectors"), (2, "KiB"), (2 << 10, "MiB")];
const TIMES: &[(u64, &str)] = &[(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")];

macro_rules! units {
    ($($kind:ident in $units:ident),*) => {$(
        impl Value for $kind {
            fn words(&self) -> String {
                in_units(self.0, $units)
            }
            fn from_words(words: &str) -> Option<Self> {
                from_units(words, $units).map(Self)
            }
        }
    )*};
}
units!(Bytes in BYTES, Sectors in SECTORS, Nanos in TIMES);

impl Value for BlockSize {
    fn words(&self) -> String {
        if *self == Self::B512 { "512" } else { "4096" }.into()
    }
    fn from_words(words: &str) -> Option<Self> {
        match words {
            "512" => Some(Self::B512),
            "4096" => Some(Self::B4096),
            _ => None,
        }
    }
}

impl Value for FreshContent {
    fn words(&self) -> String {
        match self {
            Self::Zeroes => "zeroes".into(),
            Self::Junk(seed) => format!("junk {seed}"),
        }
    }
    fn from_words(words: &str) -> Option<Self> {
        match words.split_once(' ') {
            None => (words == "zeroes").then_some(Self::Zeroes),
            Some(("junk", seed)) => seed.parse().ok().map(Self::Junk),
            Some(_) => None,
        }
    }
}

impl<T: Value> Value for Option<T> {
    fn words(&self) -> String {
        self.as_ref().map_or("none".into(), Value::words)
    }
    fn from_words(words: &str) -> Option<Self> {
        if words == "none" {
            return Some(None);
        }
        T::from_words(words).map(Some)
    }
}

impl Value for [u64; 5] {
    fn words(&self) -> String {
        self.map(|share| share.to_string()).join(" ")
    }
    fn from_words(words: &str) -> Option<Self> {
        let shares: Vec<u64> = words.split(' ').map(|share| share.parse().ok()).collect::<Option<_>>()?;
        shares.try_into().ok()
    }
}
