//! How members are named: paths, remote exports, memory.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use openraid_nbd::{NbdUri, UriError};
use openraid_units::{Bytes, Sectors};

/// The minimum size of a RAM member: its metadata and a little data.
const RAM_BYTES_MIN: u64 = 64 << 10;

/// A member by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberSpec {
    /// The text as it was written.
    pub text: String,
    pub place: Place,
}

/// The address of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A regular file or a block device.
    Path(PathBuf),
    /// Memory of this process: `ram:64M`.
    Ram(Sectors),
    /// Memory or a file that answers as a drive of a profile would: `model:wd740gd,size=2G`.
    Model(ModelSpec),
    /// An export of an NBD server.
    Remote(NbdUri),
}

/// A paced member: `model:PROFILE[,size=SIZE][,file=PATH][,cache=on|off]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelSpec {
    /// The drive's profile: its name, or the path of its file, which ends in `.toml`.
    pub profile: String,
    /// How much of the drive is used; all of it by default.
    pub size: Option<Sectors>,
    /// The place of the content; memory by default.
    pub file: Option<PathBuf>,
    /// The drive's write cache; by default as the factory sets it.
    pub cache: Option<bool>,
}

impl ModelSpec {
    /// Does this name a file with a profile?
    #[must_use]
    pub fn is_path(profile: &str) -> bool {
        profile.ends_with(".toml")
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut words = text.split(',');
        let profile = words.next().unwrap_or_default().to_owned();
        if profile.is_empty() {
            return Err("name a drive's profile, as in model:wd740gd; `openraid-lab simulate --list` shows them");
        }
        let mut spec = Self { profile, size: None, file: None, cache: None };
        for word in words {
            match word.split_once('=') {
                Some(("size", size)) => {
                    let sectors = ram_size(size).ok_or("the size must be a number with K, M, G or T, from 64K")?;
                    spec.size = Some(sectors);
                }
                Some(("file", path)) if !path.is_empty() => spec.file = Some(path.into()),
                Some(("cache", "on")) => spec.cache = Some(true),
                Some(("cache", "off")) => spec.cache = Some(false),
                _ => return Err("only size=SIZE, file=PATH and cache=on or cache=off can follow the profile"),
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model:{}", self.profile)?;
        if let Some(size) = self.size {
            write!(f, ",size={}", size.bytes().get())?;
        }
        if let Some(file) = &self.file {
            write!(f, ",file={}", file.display())?;
        }
        match self.cache {
            None => Ok(()),
            Some(true) => f.write_str(",cache=on"),
            Some(false) => f.write_str(",cache=off"),
        }
    }
}

/// A member's name that is not valid. The text says how names are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// An empty name.
    Empty,
    /// A size that is not valid, or too small; the text.
    RamSize(String),
    /// A paced member that is not valid; the text, and why.
    Model(String, &'static str),
    /// An address that is not valid.
    Uri(String, UriError),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("a member has no name; give a path, nbd://HOST/EXPORT, ram:SIZE or model:PROFILE")
            }
            Self::RamSize(text) => {
                write!(
                    f,
                    "ram:{text}: the size must be a number of bytes, or with K, M, G or T, from 64K; as in ram:64M"
                )
            }
            Self::Model(text, why) => write!(f, "model:{text}: {why}"),
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
        } else if let Some(model) = text.strip_prefix("model:") {
            Place::Model(ModelSpec::parse(model).map_err(|why| SpecError::Model(model.into(), why))?)
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
        for text in ["model:wd740gd", "model:./my.toml,size=1048576,file=/srv/d0,cache=off"] {
            let Ok(Place::Model(spec)) = place(text) else { panic!("{text}") };
            assert_eq!(spec.to_string(), text);
        }
        for bad in ["model:", "model:,size=1G", "model:x,size=1", "model:x,speed=2", "model:x,file=", "model:x,cache=1"]
        {
            assert!(matches!(place(bad), Err(SpecError::Model(..))), "{bad}");
        }
        assert!(matches!(place("nbd://host/x"), Ok(Place::Remote(_))));
        assert!(matches!(place("nbd+unix:///x?socket=/s"), Ok(Place::Remote(_))));
        for bad in ["http://host/x", "nbd:host:1", "nbds://host/", "nbd://"] {
            assert!(matches!(place(bad), Err(SpecError::Uri(..))), "{bad}");
        }
        assert_eq!(place(""), Err(SpecError::Empty));
    }
}
