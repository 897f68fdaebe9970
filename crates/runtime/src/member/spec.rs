//! How members are named: paths, remote exports, memory.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use openraid_nbd::{NbdUri, UriError};
use openraid_units::{Bytes, Sectors};

/// The smallest RAM member: what holds metadata and a little.
const RAM_BYTES_MIN: u64 = 64 << 10;

/// A member by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberSpec {
    /// As it was written.
    pub text: String,
    /// What it names.
    pub place: Place,
}

/// Where a member is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A regular file or a block device.
    Path(PathBuf),
    /// Memory of this process: `ram:64M`.
    Ram(Sectors),
    /// An export of an NBD server.
    Remote(NbdUri),
}

/// A name that names nothing. The text says how names are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// Nothing at all.
    Empty,
    /// A size that is none, or too small; what stands there.
    RamSize(String),
    /// An address that is none.
    Uri(String, UriError),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a member has no name; give a path, nbd://HOST/EXPORT or ram:SIZE"),
            Self::RamSize(text) => {
                write!(
                    f,
                    "ram:{text}: the size must be a number of bytes, or with K, M, G or T, from 64K; as in ram:64M"
                )
            }
            Self::Uri(text, error) => write!(f, "{text}: {error}"),
        }
    }
}
impl std::error::Error for SpecError {}

impl FromStr for MemberSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let place = if text.is_empty() {
            return Err(SpecError::Empty);
        } else if let Some(size) = text.strip_prefix("ram:") {
            Place::Ram(ram_size(size).ok_or_else(|| SpecError::RamSize(size.into()))?)
        } else if text.contains("://") || text.starts_with("nbd:") {
            Place::Remote(text.parse().map_err(|error| SpecError::Uri(text.into(), error))?)
        } else {
            Place::Path(text.into())
        };
        Ok(Self { text: text.into(), place })
    }
}

fn ram_size(text: &str) -> Option<Sectors> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text.get(digits.len()..)? {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    let fits = bytes >= RAM_BYTES_MIN && isize::try_from(bytes).is_ok();
    fits.then(|| Bytes(bytes).sectors_floor())
}

impl fmt::Display for MemberSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_name_and_wrong_ones_say_why() {
        let place = |text: &str| text.parse::<MemberSpec>().map(|spec| spec.place);
        assert_eq!(place("/dev/sdb"), Ok(Place::Path("/dev/sdb".into())));
        assert_eq!(place("./ram:1"), Ok(Place::Path("./ram:1".into())));
        assert_eq!(place("ram:64M"), Ok(Place::Ram(Sectors::mib(64))));
        assert_eq!(place("ram:1048576"), Ok(Place::Ram(Sectors::mib(1))));
        for bad in ["ram:", "ram:M", "ram:1", "ram:64X", "ram:-1M", "ram:99999999T", "ram:1e9"] {
            assert!(matches!(place(bad), Err(SpecError::RamSize(_))), "{bad}");
        }
        assert!(matches!(place("nbd://host/x"), Ok(Place::Remote(_))));
        assert!(matches!(place("nbd+unix:///x?socket=/s"), Ok(Place::Remote(_))));
        for bad in ["http://host/x", "nbd:host:1", "nbds://host/", "nbd://"] {
            assert!(matches!(place(bad), Err(SpecError::Uri(..))), "{bad}");
        }
        assert_eq!(place(""), Err(SpecError::Empty));
    }
}
