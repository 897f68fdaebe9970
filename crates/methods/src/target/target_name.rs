//! Parses the name of a target, and checks the permission to destroy its data.

use super::TargetError;
use openraid_nbd::NbdUri;
use openraid_units::Bytes;
use std::path::{Path, PathBuf};

/// Size of a null target if the name gives none.
const NULL_DEFAULT: Bytes = Bytes(1 << 40);

/// The kinds of target that a name can mean.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// `sim:PROFILE`: a simulated machine.
    Simulated(String),
    /// `null:` or `null:SIZE`: every request ends at once, and no data are stored.
    Null(Bytes),
    /// An NBD address.
    Nbd(NbdUri),
    /// A file or block device.
    Path(PathBuf),
}

impl Choice {
    /// Parses a target's name.
    ///
    /// # Errors
    /// The fault in the name.
    pub fn parse(word: &str) -> Result<Self, TargetError> {
        let wrong = |reason: String| TargetError::Open { name: word.into(), reason };
        if let Some(profile) = word.strip_prefix("sim:") {
            if profile.is_empty() {
                return Err(wrong("name a controller's profile after sim:, as in sim:3ware-9650se".into()));
            }
            return Ok(Self::Simulated(profile.into()));
        }
        if let Some(size) = word.strip_prefix("null:") {
            if size.is_empty() {
                return Ok(Self::Null(NULL_DEFAULT));
            }
            let gib = size.strip_suffix('G').and_then(|digits| digits.parse::<u64>().ok());
            let gib = gib.filter(|gib| (1..=1 << 20).contains(gib));
            return match gib {
                Some(gib) => Ok(Self::Null(Bytes::gib(gib))),
                None => Err(wrong("give the size of a null target in GiB, as in null:100G".into())),
            };
        }
        if word.contains("://") {
            return word.parse().map(Self::Nbd).map_err(|error| wrong(format!("{error}")));
        }
        if word.is_empty() {
            return Err(wrong("name a file, a block device, an NBD address or sim:PROFILE".into()));
        }
        Ok(Self::Path(word.into()))
    }

    /// The name that the user must type before the data may be destroyed: the last part of a path, or the name of an
    /// export.
    #[must_use]
    pub fn short_name(&self) -> String {
        match self {
            Self::Simulated(profile) => format!("sim:{profile}"),
            Self::Null(_) => "null:".into(),
            Self::Nbd(uri) if uri.export.is_empty() => uri.to_string(),
            Self::Nbd(uri) => uri.export.clone(),
            Self::Path(path) => last_part(path),
        }
    }

    /// Can a measurement destroy data of a user?
    #[must_use]
    pub const fn holds_data(&self) -> bool {
        matches!(self, Self::Nbd(_) | Self::Path(_))
    }
}

fn last_part(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The user's request to destroy a target's data, with the typed name. A target that holds data can be opened for
/// writing only with this request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destruction {
    name: String,
}

impl Destruction {
    /// Checks that the typed name is that of the target.
    ///
    /// # Errors
    /// The name is another one.
    pub fn confirmed(choice: &Choice, typed: &str) -> Result<Self, TargetError> {
        let name = choice.short_name();
        if typed.trim() == name {
            return Ok(Self { name });
        }
        let reason = format!(
            "nothing was written: the name typed is {:?}, the target's is {name:?}; type that to destroy its data",
            typed.trim()
        );
        Err(TargetError::Open { name, reason })
    }

    /// Does the request apply to this target?
    pub(super) fn covers(&self, choice: &Choice) -> bool {
        self.name == choice.short_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_or_refused_with_a_remedy() {
        assert_eq!(Choice::parse("sim:rst"), Ok(Choice::Simulated("rst".into())));
        assert_eq!(Choice::parse("null:2G"), Ok(Choice::Null(Bytes::gib(2))));
        assert!(matches!(Choice::parse("nbd://host/x"), Ok(Choice::Nbd(_))));
        assert!(matches!(Choice::parse("/dev/sdz"), Ok(Choice::Path(_))));
        for (word, text) in [
            ("sim:", "name a controller"),
            ("null:x", "in GiB"),
            ("", "name a file"),
            ("http://a/b", "not an NBD address"),
        ] {
            let error = Choice::parse(word).unwrap_err().to_string();
            assert!(error.contains(text), "{word}: {error}");
        }
    }

    #[test]
    fn data_is_destroyed_only_under_the_targets_own_name() {
        let disk = Choice::parse("/dev/disk/by-id/ata-X").unwrap();
        let other = Choice::parse("/dev/sdb").unwrap();
        let proof = Destruction::confirmed(&disk, "ata-X\n").unwrap();
        assert!(proof.covers(&disk) && !proof.covers(&other));
        let error = Destruction::confirmed(&disk, "yes").unwrap_err().to_string();
        assert!(error.contains("nothing was written") && error.contains("\"ata-X\""), "{error}");
        assert_eq!(Choice::parse("nbd://h/data").unwrap().short_name(), "data");
    }
}
