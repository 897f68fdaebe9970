//! Commands on I/O queues.

use core::ops::Range;

use openraid_units::{ArrayOffset, Bytes};

use crate::capsule::{Capsule, Descriptor, SubmissionEntry};
use crate::engine_command::{CommandKind, PayloadSource};
use crate::identify::{ALL_NAMESPACES, NAMESPACE};
use crate::limits::{RANGE_BYTES_MAX, TRANSFER_BYTES_MAX};
use crate::status::Status;
use crate::subsystem::{PathState, Subsystem};
use crate::target::IoView;
use crate::wire::{u32_at, u64_at, wide};

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const WRITE_ZEROES: u8 = 0x08;
const DATASET_MANAGEMENT: u8 = 0x09;

/// All I/O opcodes of the target.
pub const OPCODES: [u8; 5] = [FLUSH, WRITE, READ, WRITE_ZEROES, DATASET_MANAGEMENT];

/// Bits of double word 12.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 25;
/// The attribute of Dataset Management that is more than a hint about access.
const IS_DEALLOCATION: u32 = 1 << 2;
/// Bytes of a range of Dataset Management.
const RANGE_BYTES: usize = 16;

/// Does the command change what the namespace contains?
pub fn is_writing(opcode: u8) -> bool {
    matches!(opcode, WRITE | WRITE_ZEROES | DATASET_MANAGEMENT)
}

/// A command that keeps all rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Checked {
    /// One command for the engine.
    One(One),
    /// Deallocation of these ranges, at least one: first byte and length.
    Ranges(Vec<(ArrayOffset, Bytes)>),
    /// Nothing to do.
    Nothing,
}

/// One command for the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct One {
    pub kind: CommandKind,
    pub offset: ArrayOffset,
    pub len: Bytes,
    pub payload: PayloadSource,
}

/// Check a command against all rules.
#[inline]
pub fn check(capsule: &Capsule<'_>, view: &IoView<'_>) -> Result<Checked, Status> {
    let entry = capsule.entry;
    if !view.is_enabled {
        return Err(Status::COMMAND_SEQUENCE);
    }
    if entry.is_fused() {
        return Err(Status::INVALID_FIELD);
    }
    let opcode = entry.opcode();
    if !OPCODES.contains(&opcode) {
        return Err(Status::INVALID_OPCODE);
    }
    let is_flush_of_all = opcode == FLUSH && entry.namespace() == ALL_NAMESPACES;
    if entry.namespace() != NAMESPACE && !is_flush_of_all {
        return Err(Status::INVALID_NAMESPACE);
    }
    match view.path {
        PathState::Optimized | PathState::NonOptimized => {}
        PathState::Inaccessible => return Err(Status::PATH_INACCESSIBLE),
        PathState::Lost => return Err(Status::PATH_LOST),
    }
    let subsystem = &view.offered.subsystem;
    if is_writing(opcode) && subsystem.is_read_only {
        return Err(Status::WRITE_PROTECTED);
    }
    let fua = entry.dword(12) & FORCE_UNIT_ACCESS != 0;
    match opcode {
        FLUSH => {
            let (offset, len) = (ArrayOffset::ZERO, Bytes::ZERO);
            Ok(Checked::One(One { kind: CommandKind::Flush, offset, len, payload: PayloadSource::None }))
        }
        READ => {
            let (offset, len) = place(entry, subsystem)?;
            entry.expects(transfer(len)?)?;
            Ok(Checked::One(One { kind: CommandKind::Read, offset, len, payload: PayloadSource::None }))
        }
        WRITE => {
            let (offset, len) = place(entry, subsystem)?;
            let payload = payload(capsule, transfer(len)?)?;
            Ok(Checked::One(One { kind: CommandKind::Write { fua }, offset, len, payload }))
        }
        WRITE_ZEROES => {
            let (offset, len) = place(entry, subsystem)?;
            let kind = CommandKind::WriteZeroes { fua, may_deallocate: entry.dword(12) & DEALLOCATE != 0 };
            Ok(Checked::One(One { kind, offset, len, payload: PayloadSource::None }))
        }
        _ => ranges(capsule, subsystem),
    }
}

/// The place of a command in the array.
fn place(entry: SubmissionEntry<'_>, subsystem: &Subsystem) -> Result<(ArrayOffset, Bytes), Status> {
    let blocks = u64::from(entry.dword(12) & 0xffff) + 1;
    bytes(entry.quad(10), blocks, subsystem)
}

/// Blocks as bytes, if the array has them.
fn bytes(first: u64, blocks: u64, subsystem: &Subsystem) -> Result<(ArrayOffset, Bytes), Status> {
    let end = first.checked_add(blocks).ok_or(Status::LBA_RANGE)?;
    if end > subsystem.blocks() {
        return Err(Status::LBA_RANGE);
    }
    let block = subsystem.block.bytes();
    Ok((ArrayOffset(first * block.get()), block * blocks))
}

/// The length of a payload, if it is not too long.
fn transfer(len: Bytes) -> Result<u32, Status> {
    u32::try_from(len.get()).ok().filter(|len| *len <= TRANSFER_BYTES_MAX).ok_or(Status::INVALID_FIELD)
}

fn payload(capsule: &Capsule<'_>, len: u32) -> Result<PayloadSource, Status> {
    match capsule.entry.descriptor()? {
        Descriptor::Transport { len: sent } | Descriptor::InCapsule { len: sent, .. } if sent != len => {
            Err(Status::DATA_LENGTH_INVALID)
        }
        Descriptor::Transport { .. } => Ok(PayloadSource::Asked),
        Descriptor::InCapsule { offset, len } => {
            let (_, start) = capsule.named(offset, len)?;
            Ok(PayloadSource::Received(range(start, wide(len))))
        }
    }
}

fn range(start: usize, len: usize) -> Range<usize> {
    start..start + len
}

fn ranges(capsule: &Capsule<'_>, subsystem: &Subsystem) -> Result<Checked, Status> {
    let entry = capsule.entry;
    let data = capsule.required()?;
    if entry.dword(11) & IS_DEALLOCATION == 0 {
        return Ok(Checked::Nothing);
    }
    let count = usize::from(entry.dword(10).to_le_bytes()[0]) + 1;
    let data = data.get(..count * RANGE_BYTES).ok_or(Status::DATA_LENGTH_INVALID)?;
    let mut list = Vec::new();
    for range in data.chunks_exact(RANGE_BYTES) {
        let (offset, len) = bytes(u64_at(range, 8), u64::from(u32_at(range, 4)), subsystem)?;
        if !len.is_zero() {
            list.push((offset, len.min(Bytes(RANGE_BYTES_MAX))));
        }
    }
    Ok(if list.is_empty() { Checked::Nothing } else { Checked::Ranges(list) })
}
