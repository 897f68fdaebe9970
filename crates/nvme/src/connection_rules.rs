//! What was negotiated for one connection, and the PDUs that are sent by these rules.

use openraid_parity::Kernels;

use crate::status::Status;
use crate::wire::{flag, narrow, pdu, put, wide, Header, DATA_BYTES, DIGEST_BYTES, RESPONSE_BYTES};

/// The rules of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionRules {
    kernels: Kernels,
    pub header_digest: bool,
    pub data_digest: bool,
    /// Data that is sent begins at a multiple of this number.
    pub alignment: usize,
    /// The queue's number; 0 for the admin queue.
    pub queue: u16,
    /// Entries of the submission queue.
    pub entries: u16,
    /// Place in that queue after the last command.
    head: u16,
    /// Is the place reported? If not, the last data of a read can be its answer.
    pub is_head_reported: bool,
}

/// A command's part of its own data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataSlice {
    pub offset: u32,
    pub len: u32,
    pub is_last: bool,
}

impl ConnectionRules {
    pub fn new(kernels: Kernels) -> Self {
        Self {
            kernels,
            header_digest: false,
            data_digest: false,
            alignment: 4,
            queue: 0,
            entries: 1,
            head: 0,
            is_head_reported: true,
        }
    }

    /// The usual checksum of these bytes.
    pub fn checksum(&self, bytes: &[u8]) -> u32 {
        !self.kernels.crc32c(!0, bytes)
    }

    /// The register after more bytes.
    pub fn run(&self, register: u32, bytes: &[u8]) -> u32 {
        self.kernels.crc32c(register, bytes)
    }

    /// Length of a header with its digest.
    pub fn sealed(&self, header: usize) -> usize {
        header + if self.header_digest { DIGEST_BYTES } else { 0 }
    }

    pub fn data_digest_bytes(&self) -> usize {
        if self.data_digest {
            DIGEST_BYTES
        } else {
            0
        }
    }

    /// The connection has become a queue. Its first command, Connect, was taken.
    pub fn become_queue(&mut self, queue: u16, entries: u16, is_head_reported: bool) {
        self.queue = queue;
        self.entries = entries;
        self.head = 1;
        self.is_head_reported = is_head_reported;
    }

    /// A command was taken from the queue.
    #[inline]
    pub fn count_command(&mut self) {
        self.head = if self.head + 1 >= self.entries { 0 } else { self.head + 1 };
    }

    #[inline]
    fn push_header(&self, header: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(header);
        if self.header_digest {
            out.extend_from_slice(&self.checksum(header).to_le_bytes());
        }
    }

    fn header_flag(&self) -> u8 {
        if self.header_digest {
            flag::HEADER_DIGEST
        } else {
            0
        }
    }

    /// Append a response capsule.
    #[inline]
    pub fn respond(&self, command: u16, status: Status, result: u64, out: &mut Vec<u8>) {
        let head = if self.is_head_reported { self.head } else { 0 };
        self.respond_with_head(command, status, result, head, out);
    }

    /// Append the response to Connect. Without reports of the queue's place the field has all bits set.
    pub fn respond_to_connect(&self, command: u16, result: u64, out: &mut Vec<u8>) {
        let head = if self.is_head_reported { self.head } else { u16::MAX };
        self.respond_with_head(command, Status::SUCCESS, result, head, out);
    }

    fn respond_with_head(&self, command: u16, status: Status, result: u64, head: u16, out: &mut Vec<u8>) {
        let len = narrow(self.sealed(RESPONSE_BYTES));
        let header = Header { kind: pdu::RESPONSE, flags: self.header_flag(), header_len: 24, data_offset: 0, len };
        let mut bytes = [0; RESPONSE_BYTES];
        put(&mut bytes, 0, &header.bytes());
        put(&mut bytes, 8, &result.to_le_bytes());
        put(&mut bytes, 16, &head.to_le_bytes());
        put(&mut bytes, 18, &self.queue.to_le_bytes());
        put(&mut bytes, 20, &command.to_le_bytes());
        put(&mut bytes, 22, &status.field().to_le_bytes());
        self.push_header(&bytes, out);
    }

    /// Append the question for a part of a command's payload.
    pub fn ask(&self, command: u16, transfer: u16, part: DataSlice, out: &mut Vec<u8>) {
        let len = narrow(self.sealed(DATA_BYTES));
        let header = Header { kind: pdu::R2T, flags: self.header_flag(), header_len: 24, data_offset: 0, len };
        self.push_header(&data_header(header, (command, transfer), part), out);
    }

    /// Append what comes before a part of a read's data.
    #[inline]
    pub fn data_head(&self, command: u16, part: DataSlice, out: &mut Vec<u8>) {
        let start = self.sealed(DATA_BYTES).next_multiple_of(self.alignment);
        let mut flags = self.header_flag();
        if self.data_digest {
            flags |= flag::DATA_DIGEST;
        }
        if part.is_last {
            flags |= flag::LAST;
            if !self.is_head_reported {
                flags |= flag::SUCCESS;
            }
        }
        let len = narrow(start + wide(part.len) + self.data_digest_bytes());
        let data_offset = u8::try_from(start).expect("at most 128");
        let header = Header { kind: pdu::C2H_DATA, flags, header_len: 24, data_offset, len };
        self.push_header(&data_header(header, (command, 0), part), out);
        out.resize(out.len() + start - self.sealed(DATA_BYTES), 0);
    }

    /// Append what comes after a part of a read's data.
    #[inline]
    pub fn data_tail(&self, command: u16, part: DataSlice, data: &[u8], out: &mut Vec<u8>) {
        if self.data_digest {
            out.extend_from_slice(&self.checksum(data).to_le_bytes());
        }
        if part.is_last && self.is_head_reported {
            self.respond(command, Status::SUCCESS, 0, out);
        }
    }

    /// Append a whole answer with data.
    pub fn answer(&self, command: u16, data: &[u8], out: &mut Vec<u8>) {
        let part = DataSlice { offset: 0, len: narrow(data.len()), is_last: true };
        self.data_head(command, part, out);
        out.extend_from_slice(data);
        self.data_tail(command, part, data, out);
    }
}

fn data_header(header: Header, (command, transfer): (u16, u16), part: DataSlice) -> [u8; DATA_BYTES] {
    let mut bytes = [0; DATA_BYTES];
    put(&mut bytes, 0, &header.bytes());
    put(&mut bytes, 8, &command.to_le_bytes());
    put(&mut bytes, 10, &transfer.to_le_bytes());
    put(&mut bytes, 12, &part.offset.to_le_bytes());
    put(&mut bytes, 16, &part.len.to_le_bytes());
    bytes
}
