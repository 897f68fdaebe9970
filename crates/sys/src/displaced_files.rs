//! Files and devices that are open here, and are not at their paths any more.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::member::{identify, Identity};
use crate::member_error::NotAMember;

/// What a path leads to now, instead of the file or device that was opened there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Displaced {
    /// Nothing: it was deleted, moved or unmounted, or a device's node is gone.
    Nothing,
    /// Another file or device.
    Other,
    /// A thing that is neither.
    NotAMember(NotAMember),
    /// The path cannot be followed.
    Unknown(ErrorKind),
}

impl fmt::Display for Displaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing is at its path any more"),
            Self::Other => f.write_str("another file or device is at its path"),
            Self::NotAMember(kind) => write!(f, "{kind} is at its path"),
            Self::Unknown(error) => write!(f, "its path cannot be followed any more ({error})"),
        }
    }
}

impl Identity {
    /// The finding at this path; none if it is there.
    #[must_use]
    pub fn displaced_from(self, path: &Path) -> Option<Displaced> {
        match fs::metadata(path) {
            Ok(metadata) => match identify(&metadata) {
                Ok(found) => (found != self).then_some(Displaced::Other),
                Err(kind) => Some(Displaced::NotAMember(kind)),
            },
            Err(error) => Some(match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Displaced::Nothing,
                kind => Displaced::Unknown(kind),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_is_told_from_one_that_does_not() {
        let folder = std::env::temp_dir().join(format!("openraid-displaced-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("room");
        let [named, other, link] = ["own", "other", "link"].map(|name| folder.join(name));
        fs::write(&named, "a").expect("room");
        fs::write(&other, "b").expect("room");
        symlink(&named, &link).expect("a link");
        let identity = identify(&fs::metadata(&named).expect("it is there")).expect("a file");
        assert_eq!([&named, &link].map(|path| identity.displaced_from(path)), [None, None]);
        fs::remove_file(&link).and_then(|()| symlink(&other, &link)).expect("a link");
        assert_eq!(identity.displaced_from(&link), Some(Displaced::Other));
        let aside = folder.join("aside");
        fs::rename(&named, &aside).expect("it is there");
        assert_eq!(identity.displaced_from(&named), Some(Displaced::Nothing));
        assert_eq!(identity.displaced_from(&aside.join("below")), Some(Displaced::Nothing));
        fs::create_dir(&named).expect("room");
        assert_eq!(identity.displaced_from(&named), Some(Displaced::NotAMember(NotAMember::Directory)));
        fs::remove_dir(&named).and_then(|()| fs::rename(&aside, &named)).expect("it is there");
        assert_eq!(identity.displaced_from(&named), None);
        assert_eq!(
            identity.displaced_from(Path::new("/dev/null")),
            Some(Displaced::NotAMember(NotAMember::CharacterDevice))
        );
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
