//! Content that can be recomputed: the bytes of a write need not be stored.

use std::rc::Rc;

use crate::random::mix;

/// The content of a version of a range.
#[derive(Clone, Debug)]
pub enum Content {
    Zeroes,
    /// A stamp: every eight bytes are a function of this number and of their place in the array.
    Stamp(u64),
    /// A copy of the whole array from an earlier time.
    Image(Rc<Vec<u8>>),
    /// No promise: any content is right.
    Anything,
    /// Later faults exceed the promise. Like [`Content::Anything`], but a read without a better explanation is counted.
    Beyond,
}

impl Content {
    /// The bytes of the array from `offset`, for contents with bytes of their own.
    ///
    /// # Panics
    /// A content without bytes of its own, or a range beyond the end of an image.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        match self {
            Self::Zeroes => out.fill(0),
            Self::Stamp(stamp) => fill_stamp(*stamp, offset, out),
            Self::Image(image) => out.copy_from_slice(&image[index(offset)..][..out.len()]),
            Self::Anything | Self::Beyond => panic!("anything has no bytes of its own"),
        }
    }

    /// Whether the content allows these bytes of the array from `offset`.
    #[must_use]
    pub fn matches(&self, offset: u64, bytes: &[u8]) -> bool {
        match self {
            Self::Anything | Self::Beyond => true,
            Self::Zeroes => bytes.iter().all(|byte| *byte == 0),
            Self::Image(image) => &image[index(offset)..][..bytes.len()] == bytes,
            Self::Stamp(stamp) => {
                const STEP: usize = 512;
                let mut expected = [0; STEP];
                (offset..).step_by(STEP).zip(bytes.chunks(STEP)).all(|(at, piece)| {
                    let expected = &mut expected[..piece.len()];
                    fill_stamp(*stamp, at, expected);
                    expected == piece
                })
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // images are in memory
fn index(offset: u64) -> usize {
    offset as usize
}

/// The bytes of a stamp at a place of the array, with any alignment.
pub fn fill_stamp(stamp: u64, offset: u64, out: &mut [u8]) {
    let turned = stamp.rotate_left(32);
    let word = |number: u64| mix(turned ^ number).to_le_bytes();
    let within = index(offset % 8);
    let mut number = offset / 8;
    let mut rest = out;
    if within > 0 {
        let (first, more) = rest.split_at_mut((8 - within).min(rest.len()));
        first.copy_from_slice(&word(number)[within..within + first.len()]);
        rest = more;
        number += 1;
    }
    let (words, rest) = rest.as_chunks_mut::<8>();
    for place in words {
        *place = word(number);
        number += 1;
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&word(number)[..rest.len()]);
    }
}

/// The bytes of a stamp for one request.
#[must_use]
pub fn stamped(stamp: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill_stamp(stamp, offset, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_same_from_whichever_byte_it_is_begun() {
        let whole = stamped(5, 1000, 3000);
        for start in [0, 1, 7, 8, 100, 511] {
            assert_eq!(stamped(5, 1000 + start as u64, 1500), whole[start..start + 1500]);
        }
        assert!(Content::Stamp(5).matches(1003, &whole[3..]));
        assert!(!Content::Stamp(6).matches(1003, &whole[3..]));
        let mut hurt = whole.clone();
        hurt[2999] ^= 1;
        assert!(!Content::Stamp(5).matches(1000, &hurt));
    }
}
