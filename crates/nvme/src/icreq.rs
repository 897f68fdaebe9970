//! The first PDU of each direction: version, digests, alignment.

use crate::connection_rules::ConnectionRules;
use crate::limits::H2C_DATA_BYTES_MAX;
use crate::violation::ProtocolViolation;
use crate::wire::{pdu, put, u16_at, Header, IC_BYTES};

/// Maximum alignment, in words of four bytes less one.
const ALIGNMENT_MAX: u8 = 31;
const HEADER_DIGEST: u8 = 1 << 0;
const DATA_DIGEST: u8 = 1 << 1;

/// Take the connection request: set the rules of the line, and append the answer.
pub fn open(request: &[u8; IC_BYTES], line: &mut ConnectionRules, out: &mut Vec<u8>) -> Result<(), ProtocolViolation> {
    let version = u16_at(request, 8);
    if version != 0 {
        return Err(ProtocolViolation::Version(version));
    }
    let alignment = request[10];
    if alignment > ALIGNMENT_MAX {
        return Err(ProtocolViolation::Alignment(alignment));
    }
    let digests = request[11] & (HEADER_DIGEST | DATA_DIGEST);
    let mut answer = [0; IC_BYTES];
    let header = Header { kind: pdu::IC_RESP, flags: 0, header_len: 128, data_offset: 0, len: 128 };
    put(&mut answer, 0, &header.bytes());
    answer[11] = digests;
    put(&mut answer, 12, &H2C_DATA_BYTES_MAX.to_le_bytes());
    out.extend_from_slice(&answer);
    line.header_digest = digests & HEADER_DIGEST != 0;
    line.data_digest = digests & DATA_DIGEST != 0;
    line.alignment = 4 * (usize::from(alignment) + 1);
    Ok(())
}
