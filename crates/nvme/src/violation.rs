//! Reasons to close a connection, and the PDU that tells the host.

use core::fmt;

use crate::wire::{pdu, put, Header, TERM_BYTES, TERM_COPY_BYTES_MAX};

/// A rule of the transport that a host broke. The bytes after it have no meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolViolation {
    /// The first PDU is of this type instead of a connection request.
    NoRequest(u8),
    /// A second connection request.
    SecondRequest,
    /// The connection request asks for this version.
    Version(u16),
    /// The connection request asks for this alignment of data.
    Alignment(u8),
    /// A PDU of a type that hosts do not send, or that does not exist.
    Type(u8),
    /// The header has not the length that the type has.
    HeaderLength(u8),
    /// The PDU is shorter than its header, or longer than is allowed.
    Length(u32),
    /// The data does not begin where data may begin.
    DataOffset(u8),
    /// The flags about digests disagree with the negotiation.
    DigestFlags(u8),
    /// The digest of a header is wrong; the digest that came.
    HeaderDigest(u32),
    /// More commands than the queue has entries.
    TooManyCommands,
    /// Data for a transfer that is not open; its tag.
    NotAsked(u16),
    /// Data for an open transfer, from the wrong place on; the place.
    DataPlace(u32),
    /// Data beyond the transfer that was asked for; its length.
    DataLength(u32),
    /// Data that is marked as the last, and is not.
    EarlyLast,
}

impl ProtocolViolation {
    /// The status, and the offset or number that explains the status.
    fn code(self) -> (u16, u32) {
        const HEADER: u16 = 1;
        const SEQUENCE: u16 = 2;
        const DIGEST: u16 = 3;
        const RANGE: u16 = 4;
        const LIMIT: u16 = 5;
        const UNSUPPORTED: u16 = 6;
        match self {
            Self::NoRequest(_) | Self::SecondRequest | Self::TooManyCommands => (SEQUENCE, 0),
            Self::Version(_) => (UNSUPPORTED, 8),
            Self::Alignment(_) => (HEADER, 10),
            Self::Type(_) => (HEADER, 0),
            Self::DigestFlags(_) | Self::EarlyLast => (HEADER, 1),
            Self::HeaderLength(_) => (HEADER, 2),
            Self::DataOffset(_) => (HEADER, 3),
            Self::Length(_) => (HEADER, 4),
            Self::HeaderDigest(digest) => (DIGEST, digest),
            Self::NotAsked(_) => (HEADER, 10),
            Self::DataPlace(_) => (RANGE, 12),
            Self::DataLength(_) => (LIMIT, 16),
        }
    }

    /// Append the PDU that ends the connection. `faulty` begins with the PDU that caused it.
    #[cold]
    pub(crate) fn tell(self, faulty: &[u8], out: &mut Vec<u8>) {
        let (status, information) = self.code();
        let copy = &faulty[..faulty.len().min(TERM_COPY_BYTES_MAX)];
        let len = crate::wire::narrow(TERM_BYTES + copy.len());
        let mut head = [0; TERM_BYTES];
        let header = Header { kind: pdu::C2H_TERM, flags: 0, header_len: 24, data_offset: 0, len };
        put(&mut head, 0, &header.bytes());
        put(&mut head, 8, &status.to_le_bytes());
        put(&mut head, 10, &information.to_le_bytes());
        out.extend_from_slice(&head);
        out.extend_from_slice(copy);
    }
}

impl fmt::Display for ProtocolViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRequest(kind) => {
                write!(f, "the host began with a PDU of type {kind}, not with a connection request")
            }
            Self::SecondRequest => f.write_str("the host sent a second connection request"),
            Self::Version(version) => write!(f, "the host speaks version {version} of the transport; only 0 is known"),
            Self::Alignment(unit) => write!(f, "the host wants data aligned to {unit} words; 31 is the maximum"),
            Self::Type(kind) => write!(f, "the host sent a PDU of type {kind}, which hosts do not send"),
            Self::HeaderLength(len) => write!(f, "the host sent a header of {len} bytes, which its PDU does not have"),
            Self::Length(len) => write!(f, "the host sent a PDU of {len} bytes, which its type cannot have"),
            Self::DataOffset(at) => {
                write!(f, "the host's data begins at byte {at} of the PDU, where data cannot begin")
            }
            Self::DigestFlags(flags) => {
                write!(f, "the host's flags {flags:#04x} about digests disagree with the negotiation")
            }
            Self::HeaderDigest(digest) => write!(f, "the digest {digest:#010x} of a header is wrong"),
            Self::TooManyCommands => f.write_str("the host has more commands under way than its queue has entries"),
            Self::NotAsked(tag) => write!(f, "the host sent data for transfer {tag}, which is not open"),
            Self::DataPlace(at) => write!(f, "the host sent data from byte {at} on, which is not the next byte"),
            Self::DataLength(len) => write!(f, "the host sent {len} bytes of data, more than it was asked for"),
            Self::EarlyLast => f.write_str("the host ended a transfer before all data of it came"),
        }
    }
}

impl std::error::Error for ProtocolViolation {}
