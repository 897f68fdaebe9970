//! NVMe qualified names.

use core::fmt;

use crate::limits::NQN_BYTES_MAX;

/// The name of the subsystem that lists all others.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Bytes of a name's field in a PDU or a page.
pub(crate) const NQN_FIELD_BYTES: usize = 256;

/// The name of a host or a subsystem.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nqn(String);

/// A text that is no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NqnError {
    /// It is empty, or longer than 223 bytes.
    Length(usize),
    /// It has a control character, or bytes that are no UTF-8.
    Characters,
    /// Its field has no zero byte at the end.
    Unterminated,
}

impl fmt::Display for NqnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(len) => write!(f, "an NVMe name of {len} bytes; 1 to {NQN_BYTES_MAX} are allowed"),
            Self::Characters => f.write_str("an NVMe name must be UTF-8 without control characters"),
            Self::Unterminated => f.write_str("an NVMe name does not end in its field"),
        }
    }
}

impl std::error::Error for NqnError {}

impl Nqn {
    /// Check a name.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn new(text: &str) -> Result<Self, NqnError> {
        if text.is_empty() || text.len() > NQN_BYTES_MAX {
            return Err(NqnError::Length(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(NqnError::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// The name of the subsystem of the array with this UUID.
    #[must_use]
    pub fn of_uuid(uuid: [u8; 16]) -> Self {
        Self(format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid_text(uuid)))
    }

    /// The name in a field of a PDU.
    pub(crate) fn from_field(field: &[u8]) -> Result<Self, NqnError> {
        let end = field.iter().position(|byte| *byte == 0).ok_or(NqnError::Unterminated)?;
        Self::new(core::str::from_utf8(&field[..end]).map_err(|_| NqnError::Characters)?)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Nqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A UUID in its usual form.
pub(crate) fn uuid_text(uuid: [u8; 16]) -> String {
    let digits: Vec<String> = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..4], &digits[4..6], &digits[6..8], &digits[8..10], &digits[10..]].map(<[String]>::concat).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_array_has_its_uuid() {
        let uuid = core::array::from_fn(|n| u8::try_from(n * 17).unwrap());
        let name = Nqn::of_uuid(uuid);
        assert_eq!(name.as_str(), "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn names_of_other_forms_are_refused() {
        assert_eq!(Nqn::new(""), Err(NqnError::Length(0)));
        assert_eq!(Nqn::new(&"n".repeat(224)), Err(NqnError::Length(224)));
        assert!(Nqn::new(&"n".repeat(223)).is_ok());
        assert_eq!(Nqn::new("nqn\n"), Err(NqnError::Characters));
        assert_eq!(Nqn::from_field(&[b'n'; 256]), Err(NqnError::Unterminated));
        assert_eq!(Nqn::from_field(&[0; 256]), Err(NqnError::Length(0)));
        assert_eq!(Nqn::from_field(&[0xff, 0]), Err(NqnError::Characters));
        assert_eq!(Nqn::from_field(b"nqn.x\0\x01").unwrap().as_str(), "nqn.x");
    }
}
