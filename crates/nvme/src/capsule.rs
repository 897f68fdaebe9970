//! Submission queue entries: fields, and the descriptor of the data.

use crate::limits::IN_CAPSULE_BYTES_MAX;
use crate::status::Status;
use crate::wire::{u16_at, u32_at, u64_at};

/// A submission queue entry.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionEntry<'a>(pub &'a [u8; 64]);

/// A data block in the capsule, from an offset on.
const IN_CAPSULE: u8 = 0x01;
/// A data block that the transport carries.
const TRANSPORT: u8 = 0x5a;
/// Bits of the flags that say that the descriptor is no PRP; the one value that is supported.
const DESCRIPTOR_MASK: u8 = 0xc0;
const DESCRIPTOR_USED: u8 = 0x40;
/// Bits of the flags about fused commands.
const FUSED_MASK: u8 = 0x03;

/// A command capsule: the entry, the data that came with it, and its place in the input.
#[derive(Clone, Copy, Debug)]
pub struct Capsule<'a> {
    pub entry: SubmissionEntry<'a>,
    pub data: &'a [u8],
    pub data_at: usize,
}

/// The place of a command's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Descriptor {
    InCapsule { offset: u64, len: u32 },
    Transport { len: u32 },
}

impl SubmissionEntry<'_> {
    pub fn opcode(self) -> u8 {
        self.0[0]
    }
    pub fn id(self) -> u16 {
        u16_at(self.0, 2)
    }
    pub fn namespace(self) -> u32 {
        u32_at(self.0, 4)
    }
    /// The type of a command of the opcode "fabrics".
    pub fn fabrics_type(self) -> u8 {
        self.0[4]
    }
    /// The double word with this number, as the specification counts.
    pub fn dword(self, number: usize) -> u32 {
        u32_at(self.0, 4 * number)
    }
    /// The two double words from this number on.
    pub fn quad(self, number: usize) -> u64 {
        u64_at(self.0, 4 * number)
    }
    pub fn u16_at(self, at: usize) -> u16 {
        u16_at(self.0, at)
    }
    pub fn is_fused(self) -> bool {
        self.0[1] & FUSED_MASK != 0
    }

    pub fn descriptor(self) -> Result<Descriptor, Status> {
        if self.0[1] & DESCRIPTOR_MASK != DESCRIPTOR_USED {
            return Err(Status::INVALID_FIELD);
        }
        let len = u32_at(self.0, 32);
        match self.0[39] {
            IN_CAPSULE => Ok(Descriptor::InCapsule { offset: u64_at(self.0, 24), len }),
            TRANSPORT => Ok(Descriptor::Transport { len }),
            _ => Err(Status::DESCRIPTOR_INVALID),
        }
    }

    /// The host gives room for exactly this number of bytes of an answer.
    pub fn expects(self, len: u32) -> Result<(), Status> {
        match self.descriptor()? {
            Descriptor::Transport { len: room } if room == len => Ok(()),
            Descriptor::Transport { .. } => Err(Status::DATA_LENGTH_INVALID),
            Descriptor::InCapsule { .. } => Err(Status::DESCRIPTOR_INVALID),
        }
    }
}

impl<'a> Capsule<'a> {
    /// The data that a descriptor of the form "in the capsule" names, and its place in the input.
    pub fn named(&self, offset: u64, len: u32) -> Result<(&'a [u8], usize), Status> {
        if len > IN_CAPSULE_BYTES_MAX {
            return Err(Status::DATA_LENGTH_INVALID);
        }
        let start = usize::try_from(offset).map_err(|_| Status::OFFSET_INVALID)?;
        let rest = self.data.get(start..).ok_or(Status::OFFSET_INVALID)?;
        let bytes = rest.get(..crate::wire::wide(len)).ok_or(Status::DATA_LENGTH_INVALID)?;
        Ok((bytes, self.data_at + start))
    }

    /// Data that has to be in the capsule.
    pub fn required(&self) -> Result<&'a [u8], Status> {
        match self.entry.descriptor()? {
            Descriptor::InCapsule { offset, len } => Ok(self.named(offset, len)?.0),
            Descriptor::Transport { .. } => Err(Status::DESCRIPTOR_INVALID),
        }
    }
}
