//! Values as bytes: numbers of variable length, and structures as their fields in order.
//!
//! ```text
//!  number   seven bits a byte, lowest first; the top bit says that more follow
//!  list     its length, then its entries
//!  choice   its code in one byte, then its fields
//! ```
//!
//! Reading never panics. It takes no more memory than a small multiple of the input's length.

use std::fmt;

/// The reason for which bytes are not a record. The place is in bytes from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeError {
    pub at: usize,
    /// The fault at that place.
    pub what: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record is damaged at byte {}: {}", self.at, self.what)
    }
}
impl std::error::Error for DecodeError {}

/// Bytes that are being read.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// From the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
    /// Whether no bytes are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }
    /// An error at this place.
    pub fn error<T>(&self, what: &'static str) -> Result<T, DecodeError> {
        Err(DecodeError { at: self.at, what })
    }
    /// The next `len` bytes.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..len)) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => self.error("it ends too early"),
        }
    }
    /// The next number.
    ///
    /// # Errors
    /// No number is left, or it exceeds 64 bits.
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.bytes(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.error("a number is larger than 64 bits")
    }
    /// The length of a list, at most the number of the bytes that are left.
    ///
    /// # Errors
    /// An impossible length.
    pub fn len(&mut self) -> Result<usize, DecodeError> {
        let len = self.number()?;
        match usize::try_from(len) {
            Ok(len) if len <= self.bytes.len() - self.at => Ok(len),
            _ => self.error("a list is longer than the rest of the record"),
        }
    }
}

/// A value in a record.
pub trait Codec: Sized {
    /// Append the value.
    fn put(&self, out: &mut Vec<u8>);
    /// Read a value.
    ///
    /// # Errors
    /// The bytes are not such a value.
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError>;
}

/// Append a number.
#[allow(clippy::cast_possible_truncation)] // seven bits at a time
pub fn put_number(number: u64, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

impl Codec for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(*self, out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        input.number()
    }
}

macro_rules! narrow {
    ($($int:ty),*) => {$(
        impl Codec for $int {
            fn put(&self, out: &mut Vec<u8>) {
                put_number(u64::from(*self), out);
            }
            fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                match Self::try_from(input.number()?) {
                    Ok(number) => Ok(number),
                    Err(_) => input.error("a number is too large for its field"),
                }
            }
        }
    )*};
}
narrow!(u8, u16, u32);

impl Codec for i32 {
    fn put(&self, out: &mut Vec<u8>) {
        u32::from_ne_bytes(self.to_ne_bytes()).put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok(Self::from_ne_bytes(u32::take(input)?.to_ne_bytes()))
    }
}

impl Codec for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        match input.bytes(1)? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => input.error("neither yes nor no"),
        }
    }
}

impl<const N: usize> Codec for [u8; N] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(input.bytes(N)?);
        Ok(array)
    }
}

impl<T: Codec> Codec for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok(if bool::take(input)? { Some(T::take(input)?) } else { None })
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.len() as u64, out);
        self.iter().for_each(|entry| entry.put(out));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let len = input.len()?;
        // The list grows with the actual bytes: an entry takes at least one byte.
        let mut list = Self::new();
        for _ in 0..len {
            list.push(T::take(input)?);
        }
        Ok(list)
    }
}

impl Codec for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.len() as u64, out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let len = input.len()?;
        match std::str::from_utf8(input.bytes(len)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => input.error("text that is not UTF-8"),
        }
    }
}

impl<T: Codec> Codec for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        T::take(input).map(Self::new)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        Ok((A::take(input)?, B::take(input)?))
    }
}

/// Structures with one public number or value.
macro_rules! wrapper {
    ($($name:ty),* $(,)?) => {$(
        impl Codec for $name {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                Ok(Self(Codec::take(input)?))
            }
        }
    )*};
}

/// Structures with named fields, encoded in this order.
macro_rules! fields {
    ($($name:ty { $($field:ident),* $(,)? })*) => {$(
        impl Codec for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                $(let $field = Codec::take(input)?;)*
                Ok(Self { $($field),* })
            }
        }
    )*};
}

/// Enums: each variant with its code and its fields.
macro_rules! choice {
    ($name:ty { $($code:literal => $variant:ident $({ $($field:ident),* })? $(( $($place:ident),* ))?),* $(,)? }) => {
        impl Codec for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $($place),* ))? => {
                        out.push($code);
                        $($($field.put(out);)*)?
                        $($($place.put(out);)*)?
                    })*
                }
            }
            fn take(input: &mut Input<'_>) -> Result<Self, DecodeError> {
                match input.bytes(1)?[0] {
                    $($code => {
                        $($(let $field = Codec::take(input)?;)*)?
                        $($(let $place = Codec::take(input)?;)*)?
                        Ok(Self::$variant $({ $($field),* })? $(( $($place),* ))?)
                    })*
                    _ => input.error(concat!("no such variant of ", stringify!($name))),
                }
            }
        }
    };
}

pub(super) use {choice, fields, wrapper};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_there_and_back_at_every_length() {
        for number in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            put_number(number, &mut bytes);
            let mut input = Input::new(&bytes);
            assert_eq!(input.number(), Ok(number));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn numbers_beyond_64_bits_and_lists_beyond_the_end_are_errors() {
        assert!(Input::new(&[0xff; 10]).number().is_err());
        assert!(Input::new(&[0xff; 3]).number().is_err());
        let mut huge = Vec::new();
        put_number(u64::MAX, &mut huge);
        assert!(Vec::<u64>::take(&mut Input::new(&huge)).is_err());
        assert!(u16::take(&mut Input::new(&[0xff, 0xff, 0x7f])).is_err());
        assert_eq!(i32::take(&mut Input::new(&[0xff, 0xff, 0xff, 0xff, 0x0f])), Ok(-1));
    }
}
