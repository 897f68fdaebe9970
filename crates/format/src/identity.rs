//! Names of sets and members: identifiers, set names, times.

use crate::little_endian;
use core::fmt;
use core::str::FromStr;

/// A 128-bit identifier of a set or of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

/// The error of text that is not an identifier in the form `aaaaaaaa:bbbbbbbb:cccccccc:dddddddd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UuidError;

impl fmt::Display for UuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array UUID has 32 hexadecimal digits, written like 01234567:89abcdef:01234567:89abcdef")
    }
}
impl core::error::Error for UuidError {}

/// Prints mdadm's form: four groups of eight digits, with the bytes in their order on disk.
impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if index > 0 && index % 4 == 0 {
                f.write_str(":")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

/// Parses 32 digits. Colons and hyphens between them are ignored, so the form of mdadm and the usual form are accepted.
impl FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Self, UuidError> {
        const DIGITS: usize = 32;
        let mut bytes = [0u8; DIGITS / 2];
        let mut count = 0;
        for letter in text.chars().filter(|letter| !matches!(letter, ':' | '-')) {
            let digit = letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or(UuidError)?;
            let byte = bytes.get_mut(count / 2).ok_or(UuidError)?;
            *byte = *byte << 4 | digit;
            count += 1;
        }
        if count == DIGITS {
            Ok(Self(bytes))
        } else {
            Err(UuidError)
        }
    }
}

/// The name of a set in a superblock: up to 32 bytes, padded with zeroes. By convention it is `host:name`, or `name`
/// alone for a set that belongs to no host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SetName(pub [u8; SetName::BYTES]);

/// The error of a name that does not fit into a superblock; its length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetNameError(pub usize);

impl fmt::Display for SetNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the array name with its host prefix has {} bytes, at most {} fit", self.0, SetName::BYTES)
    }
}
impl core::error::Error for SetNameError {}

impl SetName {
    /// Number of bytes of the field.
    pub const BYTES: usize = 32;

    /// Builds a name, with the prefix `host:` if a host is given.
    ///
    /// # Errors
    /// More than [`SetName::BYTES`] bytes together.
    pub fn new(host: Option<&str>, name: &str) -> Result<Self, SetNameError> {
        let prefix = host.map_or(0, |host| host.len() + 1);
        let total = prefix + name.len();
        if total > Self::BYTES {
            return Err(SetNameError(total));
        }
        let mut bytes = [0; Self::BYTES];
        if let Some(host) = host {
            little_endian::put(&mut bytes, 0, host.as_bytes());
            bytes[host.len()] = b':';
        }
        little_endian::put(&mut bytes, prefix, name.as_bytes());
        Ok(Self(bytes))
    }

    /// The bytes before the first zero.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(Self::BYTES);
        &self.0[..end]
    }

    /// The whole text, up to the first byte that is not UTF-8.
    #[must_use]
    pub fn text(&self) -> &str {
        let bytes = self.bytes();
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
        }
    }

    /// The part before the first colon: the host to which the set belongs.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.text().split_once(':').map(|(host, _)| host)
    }

    /// The part after the first colon, or the whole name without a colon.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text().split_once(':').map_or(self.text(), |(_, name)| name)
    }
}

impl fmt::Display for SetName {
    /// Control characters are left out, so that a terminal can print the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().chars().try_for_each(|c| fmt::Write::write_char(f, if c.is_control() { '?' } else { c }))
    }
}
impl fmt::Debug for SetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SetName({:?})", self.text())
    }
}

/// A point in time as md writes it down.
///
/// ```text
///  63            40 39                                   0
///  [ microseconds  |     seconds since 1970-01-01 UTC     ]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Timestamp(pub u64);

impl Timestamp {
    const SECOND_BITS: u32 = 40;

    /// Builds a time. Seconds are cut to 40 bits, microseconds are taken modulo one second.
    #[must_use]
    pub const fn new(seconds: u64, microseconds: u32) -> Self {
        Self(((microseconds % 1_000_000) as u64) << Self::SECOND_BITS | seconds & ((1 << Self::SECOND_BITS) - 1))
    }
    /// Seconds since 1970-01-01 UTC.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 & ((1 << Self::SECOND_BITS) - 1)
    }
    /// Microseconds of that second. The field can hold up to 2^24 - 1.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // 24 bits are left
    pub const fn microseconds(self) -> u32 {
        (self.0 >> Self::SECOND_BITS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_uuid_is_written_and_read_in_groups_of_eight() {
        let uuid = Uuid([1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 0, 0, 1, 0xff, 0xfe, 0xfd, 0xfc]);
        assert_eq!(uuid.to_string(), "01234567:89abcdef:00000001:fffefdfc");
        assert_eq!("01234567:89abcdef:00000001:fffefdfc".parse(), Ok(uuid));
        assert_eq!("01234567-89ab-cdef-0000-0001FFFEFDFC".parse(), Ok(uuid));
    }

    #[test]
    fn text_of_another_length_or_with_other_letters_is_no_uuid() {
        for text in ["", "0", "01234567:89abcdef:00000001:fffefdf", "01234567:89abcdef:00000001:fffefdfc0", "g"] {
            assert_eq!(text.parse::<Uuid>(), Err(UuidError), "{text}");
        }
    }

    #[test]
    fn a_set_name_splits_at_the_first_colon() {
        let name = SetName::new(Some("box"), "a:b").unwrap();
        assert_eq!((name.host(), name.name(), name.text()), (Some("box"), "a:b", "box:a:b"));
        let alone = SetName::new(None, "alone").unwrap();
        assert_eq!((alone.host(), alone.name()), (None, "alone"));
        assert_eq!(SetName::new(Some("box"), "0123456789012345678901234567").unwrap().bytes().len(), 32);
        assert_eq!(SetName::new(Some("box"), "01234567890123456789012345678"), Err(SetNameError(33)));
        assert_eq!(SetName([0xff; 32]).text(), "");
    }

    #[test]
    fn seconds_and_microseconds_do_not_touch_each_other() {
        let time = Timestamp::new((1 << 40) - 1, 999_999);
        assert_eq!((time.seconds(), time.microseconds()), ((1 << 40) - 1, 999_999));
        assert_eq!(Timestamp(u64::MAX).microseconds(), (1 << 24) - 1);
    }
}
