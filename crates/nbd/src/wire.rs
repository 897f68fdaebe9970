//! The protocol's numbers, and a reader of big-endian fields for input that may be too short.

/// The first eight bytes that every server sends: "NBDMAGIC".
pub const MAGIC_SERVER: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": newstyle negotiation, and the start of every option.
pub const MAGIC_OPTION: u64 = 0x4948_4156_454f_5054;
/// The number that an oldstyle server sends instead of [`MAGIC_OPTION`].
pub const MAGIC_OLDSTYLE: u64 = 0x0000_4202_8186_1253;
/// Start of every reply to an option.
pub const MAGIC_OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Start of every request.
pub const MAGIC_REQUEST: u32 = 0x2560_9513;
/// Start of a simple reply.
pub const MAGIC_SIMPLE_REPLY: u32 = 0x6744_6698;
/// Start of a structured reply chunk.
pub const MAGIC_STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Handshake flag, and client flag of the same value: the server can answer options.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag, and client flag of the same value: no padding after `EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Number of padding bytes after the reply to `EXPORT_NAME`, if the client did not set [`FLAG_NO_ZEROES`].
pub const EXPORT_NAME_PADDING: usize = 124;
/// Bytes of the greeting: two magics and the handshake flags.
pub const GREETING_BYTES: usize = 18;
/// Bytes of an option header: magic, option, length.
pub const OPTION_BYTES: usize = 16;
/// Bytes of an option reply header: magic, option, type, length.
pub const OPTION_REPLY_BYTES: usize = 20;
/// Bytes of a simple reply: magic, error, cookie.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of a chunk header: magic, flags, type, cookie, length.
pub const CHUNK_BYTES: usize = 20;

/// Moves input to `held` until `held` has `wanted` bytes; true if it has. Memory grows with received bytes, never with an
/// announced length, and to at most `limit` bytes.
pub fn hold(held: &mut Vec<u8>, (wanted, limit): (usize, usize), input: &[u8], used: &mut usize) -> bool {
    let take = (wanted - held.len()).min(input.len() - *used);
    let needed = held.len() + take;
    if needed > held.capacity() {
        held.reserve_exact(needed.max(2 * held.len()).min(limit) - held.len());
    }
    held.extend_from_slice(&input[*used..*used + take]);
    *used += take;
    held.len() == wanted
}

/// Option numbers.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Option reply types. Bit 31 marks an error.
pub mod rep {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERROR_BIT: u32 = 1 << 31;
    pub const ERR_UNSUP: u32 = ERROR_BIT + 1;
    pub const ERR_POLICY: u32 = ERROR_BIT + 2;
    pub const ERR_INVALID: u32 = ERROR_BIT + 3;
    pub const ERR_PLATFORM: u32 = ERROR_BIT + 4;
    pub const ERR_TLS_REQD: u32 = ERROR_BIT + 5;
    pub const ERR_UNKNOWN: u32 = ERROR_BIT + 6;
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT + 7;
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT + 8;
    pub const ERR_TOO_BIG: u32 = ERROR_BIT + 9;
}

/// Information types of `INFO` and `GO`.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Request types.
pub mod cmd {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Command flags.
pub mod cmd_flag {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunk types of structured replies. Bit 15 marks an error.
pub mod chunk {
    pub const FLAG_DONE: u16 = 1 << 0;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR_BIT: u16 = 1 << 15;
    pub const ERROR: u16 = ERROR_BIT + 1;
    pub const ERROR_OFFSET: u16 = ERROR_BIT + 2;
}

/// Reads fields from the start of a payload. Every read reports whether there were enough bytes.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A 32-bit length followed by that number of bytes.
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.bytes(usize::try_from(length).ok()?)
    }
}

/// The length of a byte string that a limit keeps far below 4 GiB.
pub fn length_u32(length: usize) -> u32 {
    u32::try_from(length).expect("limits keep protocol strings and chunks below 4 GiB")
}

/// A 32-bit length as an index. Every supported target has addresses of at least 32 bits.
pub const fn to_usize(length: u32) -> usize {
    length as usize
}

/// Copies `bytes` to `out` at `at`. For headers of fixed shape.
pub fn put<const N: usize>(out: &mut [u8], at: usize, bytes: [u8; N]) {
    out[at..at + N].copy_from_slice(&bytes);
}
