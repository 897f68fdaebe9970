//! Extents of block status.

/// A range with one status. Its start is the end of the extent before it.
///
/// On the wire: 32 bits length in bytes, 32 bits status, both big-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StatusExtent {
    /// Length in bytes; not zero.
    pub length: u32,
    /// Flags whose meaning the metadata context defines.
    pub status: u32,
}

impl StatusExtent {
    /// Bytes on the wire.
    pub const BYTES: usize = 8;
    /// `base:allocation`: the range is not allocated.
    pub const HOLE: u32 = 1 << 0;
    /// `base:allocation`: the range reads as zeroes.
    pub const ZERO: u32 = 1 << 1;
    /// `openraid:degraded`: the range has reduced redundancy, so the next failure may lose it.
    pub const DEGRADED: u32 = 1 << 0;
    /// `openraid:degraded`: the range cannot be read at present.
    pub const LOST: u32 = 1 << 1;

    pub(crate) fn to_wire(self) -> [u8; Self::BYTES] {
        (u64::from(self.length) << 32 | u64::from(self.status)).to_be_bytes()
    }

    /// Decodes the extents in complete records; an incomplete record at the end is ignored.
    pub fn from_wire(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.chunks_exact(Self::BYTES).map(|record| {
            let mut reader = crate::wire::Reader::new(record);
            let length = reader.u32().expect("a record has eight bytes");
            Self { length, status: reader.u32().expect("a record has eight bytes") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_length_then_status_big_endian() {
        let extent = StatusExtent { length: 0x0102_0304, status: 3 };
        assert_eq!(extent.to_wire(), [1, 2, 3, 4, 0, 0, 0, 3]);
        let wire = [1, 2, 3, 4, 0, 0, 0, 3, 9, 9];
        assert_eq!(StatusExtent::from_wire(&wire).collect::<Vec<_>>(), [extent]);
    }
}
