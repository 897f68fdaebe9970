//! A request, as both sides see it.

use crate::wire::{cmd, cmd_flag, put, MAGIC_REQUEST};
use openraid_units::{ArrayOffset, Bytes};

/// Bytes of a request header on the wire.
///
/// ```text
///  0       4     6     8            16           24       28
///  [magic ][flags][type][  cookie   ][  offset   ][length ]     all big-endian
/// ```
pub const REQUEST_BYTES: usize = 28;

/// The client's number for a request, which the server returns unchanged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cookie(pub u64);

/// The command of a request, with its flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NbdCommand {
    /// Reads data; in one piece with `dont_fragment`.
    Read {
        /// At most one content chunk may be sent.
        dont_fragment: bool,
    },
    /// Writes data; with `fua` they are durable before the reply.
    Write {
        /// Must the data be durable before the reply?
        fua: bool,
    },
    /// Makes every acknowledged write of all connections durable.
    Flush,
    /// Says that the range is no longer needed.
    Trim {
        /// Must the change be durable before the reply?
        fua: bool,
    },
    /// Says that the range will be read soon.
    Cache,
    /// Makes the range read as zeroes.
    WriteZeroes {
        /// Must the zeroes be durable before the reply?
        fua: bool,
        /// Must the space stay allocated?
        no_hole: bool,
        /// Must the command fail with [`NbdError::NotSupported`](crate::NbdError) if it is not faster than writing?
        fast: bool,
    },
    /// Reports the state of the range in each negotiated context.
    BlockStatus {
        /// Must the reply have exactly one extent for each context?
        one: bool,
    },
}

impl NbdCommand {
    /// Does the reply carry data?
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read { .. })
    }
    /// Does data follow the request header?
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write { .. })
    }

    const fn wire(self) -> (u16, u16) {
        const fn bit(set: bool, flag: u16) -> u16 {
            if set {
                flag
            } else {
                0
            }
        }
        match self {
            Self::Read { dont_fragment } => (cmd::READ, bit(dont_fragment, cmd_flag::DF)),
            Self::Write { fua } => (cmd::WRITE, bit(fua, cmd_flag::FUA)),
            Self::Flush => (cmd::FLUSH, 0),
            Self::Trim { fua } => (cmd::TRIM, bit(fua, cmd_flag::FUA)),
            Self::Cache => (cmd::CACHE, 0),
            Self::WriteZeroes { fua, no_hole, fast } => (
                cmd::WRITE_ZEROES,
                bit(fua, cmd_flag::FUA) | bit(no_hole, cmd_flag::NO_HOLE) | bit(fast, cmd_flag::FAST_ZERO),
            ),
            Self::BlockStatus { one } => (cmd::BLOCK_STATUS, bit(one, cmd_flag::REQ_ONE)),
        }
    }
}

/// A request. The payload of a write follows the request and is not a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NbdRequest {
    /// The client's number for the request.
    pub cookie: Cookie,
    /// The command.
    pub command: NbdCommand,
    /// Offset from the start of the export in bytes.
    pub offset: ArrayOffset,
    /// Length of the range; zero for a flush. Never above `u32::MAX`.
    pub length: Bytes,
}

impl NbdRequest {
    /// The header to send.
    ///
    /// # Panics
    /// The length does not fit into the 32 bits of the field.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let (kind, flags) = self.command.wire();
        let length = u32::try_from(self.length.get()).expect("a request has a 32-bit length");
        encode_raw(flags, kind, self.cookie, self.offset.get(), length)
    }
}

/// A header with any contents, valid or not.
pub(crate) fn encode_raw(flags: u16, kind: u16, cookie: Cookie, offset: u64, length: u32) -> [u8; REQUEST_BYTES] {
    let mut out = [0; REQUEST_BYTES];
    put(&mut out, 0, MAGIC_REQUEST.to_be_bytes());
    put(&mut out, 4, flags.to_be_bytes());
    put(&mut out, 6, kind.to_be_bytes());
    put(&mut out, 8, cookie.0.to_be_bytes());
    put(&mut out, 16, offset.to_be_bytes());
    put(&mut out, 24, length.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_28_bytes_in_the_order_of_the_protocol_document() {
        let request = NbdRequest {
            cookie: Cookie(0x1122_3344_5566_7788),
            command: NbdCommand::WriteZeroes { fua: true, no_hole: true, fast: true },
            offset: ArrayOffset(0x0102_0304_0506_0708),
            length: Bytes(0x0a0b_0c0d),
        };
        let expected = [
            0x25, 0x60, 0x95, 0x13, 0x00, 0x13, 0x00, 0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 1, 2, 3, 4,
            5, 6, 7, 8, 0x0a, 0x0b, 0x0c, 0x0d,
        ];
        assert_eq!(request.encode(), expected);
    }
}
