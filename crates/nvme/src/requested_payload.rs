//! Payload that hosts send when they are asked.
//!
//! ```text
//!  Pdus --header of data--> Payload --all bytes came--> Pdus
//!                              |                         ^
//!                              +--all bytes--> Digest ---+   (with data digests)
//! ```

use crate::connection_rules::ConnectionRules;
use crate::engine_command::CommandId;
use crate::in_flight::{CommandWork, InFlight, WantedPart};
use crate::limits::H2C_DATA_BYTES_MAX;
use crate::violation::ProtocolViolation;
use crate::wire::{flag, u16_at, u32_at, wide, Header, DATA_BYTES, DIGEST_BYTES};

/// What the next bytes of a connection are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inbound {
    /// A PDU.
    Pdus,
    /// Payload of this command.
    Payload { id: CommandId, left: u32, register: u32 },
    /// The digest of the payload before.
    Digest { id: CommandId, register: u32 },
}

/// Take the header of data. Returns its length and the state after it; `None` if there are not enough bytes.
pub fn begin<T: Copy>(
    header: Header,
    input: &[u8],
    line: &ConnectionRules,
    commands: &InFlight<T>,
) -> Result<Option<(usize, Inbound)>, ProtocolViolation> {
    if usize::from(header.header_len) != DATA_BYTES {
        return Err(ProtocolViolation::HeaderLength(header.header_len));
    }
    let start = usize::from(header.data_offset);
    if start < line.sealed(DATA_BYTES) || !start.is_multiple_of(4) {
        return Err(ProtocolViolation::DataOffset(header.data_offset));
    }
    let flags = header.flags;
    if (flags & flag::HEADER_DIGEST != 0, flags & flag::DATA_DIGEST != 0) != (line.header_digest, line.data_digest) {
        return Err(ProtocolViolation::DigestFlags(flags));
    }
    let Some(bytes) = input.get(..start) else { return Ok(None) };
    check_digest(line, bytes, DATA_BYTES)?;
    let (id, tag) = (u16_at(bytes, 8), u16_at(bytes, 10));
    let (offset, len) = (u32_at(bytes, 12), u32_at(bytes, 16));
    let is_whole = len <= H2C_DATA_BYTES_MAX && wide(header.len) == start + wide(len) + line.data_digest_bytes();
    if len == 0 || !is_whole {
        return Err(ProtocolViolation::Length(header.len));
    }
    let (id, WantedPart { part, .. }, came) = commands.find(tag, id).ok_or(ProtocolViolation::NotAsked(tag))?;
    if offset != part.offset + came {
        return Err(ProtocolViolation::DataPlace(offset));
    }
    if len > part.len - came {
        return Err(ProtocolViolation::DataLength(len));
    }
    if flags & flag::LAST != 0 && came + len < part.len {
        return Err(ProtocolViolation::EarlyLast);
    }
    Ok(Some((start, Inbound::Payload { id, left: len, register: !0 })))
}

/// Check the digest of a header of this length, if the line has digests.
pub fn check_digest(line: &ConnectionRules, bytes: &[u8], header: usize) -> Result<(), ProtocolViolation> {
    if line.header_digest {
        let digest = u32_at(bytes, header);
        if digest != line.checksum(&bytes[..header]) {
            return Err(ProtocolViolation::HeaderDigest(digest));
        }
    }
    Ok(())
}

/// The bytes of one PDU are there, intact or not. Returns the transfer if it is complete, and asks for the next one.
pub fn end<T: Copy>(
    commands: &mut InFlight<T>,
    (id, is_intact): (CommandId, bool),
    line: &ConnectionRules,
    out: &mut Vec<u8>,
) -> Option<(T, bool)> {
    let tag = commands.transfer_tag(id);
    let (open, host_id) = commands.get(id);
    let CommandWork::Write(incoming) = &mut open.work else { panic!("bug: payload of a command without: {id:?}") };
    incoming.is_damaged |= !is_intact;
    let (wanted, came) = incoming.open.as_ref()?;
    if *came < wanted.part.len {
        return None;
    }
    let transfer = wanted.transfer;
    incoming.open = incoming.waiting.pop_front().map(|next| (next, 0));
    if let Some((next, _)) = &incoming.open {
        line.ask(host_id, tag, next.part, out);
    }
    Some((transfer, !incoming.is_damaged))
}

/// More bytes of a payload. Returns the state after them.
pub fn take<T: Copy>(commands: &mut InFlight<T>, line: &ConnectionRules, inbound: Inbound, bytes: &[u8]) -> Inbound {
    let Inbound::Payload { id, left, register } = inbound else { panic!("bug: payload came where none can be") };
    let count = crate::wire::narrow(bytes.len());
    assert!(count <= left, "bug: {count} bytes of payload came where {left} were left");
    let CommandWork::Write(incoming) = &mut commands.get(id).0.work else {
        panic!("bug: payload of a command without: {id:?}")
    };
    if let Some((_, came)) = &mut incoming.open {
        *came += count;
    }
    let register = if line.data_digest { line.run(register, bytes) } else { register };
    match left - count {
        0 if line.data_digest => Inbound::Digest { id, register },
        left => Inbound::Payload { id, left, register },
    }
}

/// Is this the digest of the payload?
pub fn fits(register: u32, digest: [u8; DIGEST_BYTES]) -> bool {
    u32::from_le_bytes(digest) == !register
}
