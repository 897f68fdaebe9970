//! The protocol's numbers, and access to little-endian fields.

/// Types of PDUs.
pub mod pdu {
    pub const IC_REQ: u8 = 0;
    pub const IC_RESP: u8 = 1;
    pub const H2C_TERM: u8 = 2;
    pub const C2H_TERM: u8 = 3;
    pub const COMMAND: u8 = 4;
    pub const RESPONSE: u8 = 5;
    pub const H2C_DATA: u8 = 6;
    pub const C2H_DATA: u8 = 7;
    pub const R2T: u8 = 9;
}

/// Flags of PDUs.
pub mod flag {
    pub const HEADER_DIGEST: u8 = 1 << 0;
    pub const DATA_DIGEST: u8 = 1 << 1;
    pub const LAST: u8 = 1 << 2;
    pub const SUCCESS: u8 = 1 << 3;
}

/// Bytes of the common header.
pub const COMMON_BYTES: usize = 8;
/// Bytes of a connection's first PDU in each direction.
pub const IC_BYTES: usize = 128;
/// Header of a command capsule: common header, submission queue entry.
pub const COMMAND_BYTES: usize = 72;
/// Bytes of a response capsule: common header, completion queue entry.
pub const RESPONSE_BYTES: usize = 24;
/// Header of a data PDU in either direction, and of an R2T.
pub const DATA_BYTES: usize = 24;
/// Header of a PDU that ends the connection.
pub const TERM_BYTES: usize = 24;
/// Bytes of the faulty PDU that follow that header at most.
pub const TERM_COPY_BYTES_MAX: usize = 128;
/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 4;

/// The header that all PDUs begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub kind: u8,
    pub flags: u8,
    pub header_len: u8,
    pub data_offset: u8,
    pub len: u32,
}

impl Header {
    #[inline]
    pub fn read(bytes: &[u8; COMMON_BYTES]) -> Self {
        let [kind, flags, header_len, data_offset, a, b, c, d] = *bytes;
        Self { kind, flags, header_len, data_offset, len: u32::from_le_bytes([a, b, c, d]) }
    }

    #[inline]
    pub fn bytes(&self) -> [u8; COMMON_BYTES] {
        let [a, b, c, d] = self.len.to_le_bytes();
        [self.kind, self.flags, self.header_len, self.data_offset, a, b, c, d]
    }
}

#[inline]
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Overwrite the bytes from `at` on.
pub fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Text in a field of fixed length, filled up with `fill`. Text that is too long is cut.
pub fn put_text(page: &mut [u8], (at, len): (usize, usize), text: &str, fill: u8) {
    let used = text.len().min(len);
    put(page, at, &text.as_bytes()[..used]);
    page[at + used..at + len].fill(fill);
}

/// A length as a 32-bit number.
pub fn narrow(len: usize) -> u32 {
    u32::try_from(len).expect("a PDU is below 4 GiB")
}

/// A 32-bit number as a length in memory.
pub fn wide(len: u32) -> usize {
    usize::try_from(len).expect("at least 32-bit indices")
}
