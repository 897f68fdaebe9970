//! A host on one connection. It checks every PDU of the target against the specification.

use std::collections::BTreeMap;

use super::bytes::{crc32c, ic_request, le16, le32, le64, set};

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Status type and code with the bits above them.
    pub status: u16,
    pub result: u64,
    pub head: u16,
    pub data: Vec<u8>,
    /// The data themselves were the answer.
    pub by_data: bool,
}

#[derive(Debug)]
struct Running {
    /// Bytes that a read or an administrative command returns.
    wanted: usize,
    data: Vec<u8>,
    /// The payload, and the number of its bytes that the target has asked for.
    payload: Vec<u8>,
    asked: usize,
}

/// The host's side of one connection.
#[derive(Debug)]
pub struct Host {
    pub header_digest: bool,
    pub data_digest: bool,
    pub alignment: usize,
    /// Connect said that the place in the queue is not reported.
    pub no_head: bool,
    /// Maximum data of one PDU that this host sends.
    pub piece: usize,
    /// Bytes to the target.
    pub out: Vec<u8>,
    inbox: Vec<u8>,
    running: BTreeMap<u16, Running>,
    pub ended: BTreeMap<u16, Ended>,
    /// PDUs that came, by type.
    pub seen: Vec<u8>,
    /// The target ended the connection: the PDU.
    pub terminated: Option<Vec<u8>>,
}

impl Host {
    /// A host that has asked for a connection.
    pub fn new(digests: u8, alignment: u8) -> Self {
        Self {
            header_digest: digests & 1 != 0,
            data_digest: digests & 2 != 0,
            alignment: 4 * (usize::from(alignment) + 1),
            no_head: true,
            piece: 1 << 20,
            out: ic_request(digests, alignment),
            inbox: Vec::new(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            seen: Vec::new(),
            terminated: None,
        }
    }

    fn sealed(&self, header: usize) -> usize {
        header + if self.header_digest { 4 } else { 0 }
    }

    fn seal(&self, header: &[u8]) -> Vec<u8> {
        let mut bytes = header.to_vec();
        if self.header_digest {
            bytes.extend_from_slice(&crc32c(header).to_le_bytes());
        }
        bytes
    }

    /// The capsule of a command with this data in it.
    pub fn capsule(&self, entry: &[u8; 64], data: &[u8]) -> Vec<u8> {
        let start = self.sealed(72);
        let has_digest = self.data_digest && !data.is_empty();
        let len = start + data.len() + if has_digest { 4 } else { 0 };
        let flags = u8::from(self.header_digest) | if has_digest { 2 } else { 0 };
        let mut header = vec![0x04, flags, 72, if data.is_empty() { 0 } else { u8::try_from(start).unwrap() }];
        header.extend_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
        header.extend_from_slice(entry);
        let mut bytes = self.seal(&header);
        bytes.extend_from_slice(data);
        if has_digest {
            bytes.extend_from_slice(&crc32c(data).to_le_bytes());
        }
        bytes
    }

    /// Send a command. `wanted` bytes of data come back; `payload` is sent when the target asks.
    pub fn send(&mut self, entry: &[u8; 64], in_capsule: &[u8], wanted: usize, payload: &[u8]) {
        let bytes = self.capsule(entry, in_capsule);
        self.out.extend_from_slice(&bytes);
        let running = Running { wanted, data: vec![0; wanted], payload: payload.to_vec(), asked: 0 };
        let id = le16(entry, 2);
        assert!(self.running.insert(id, running).is_none(), "the test uses id {id} twice");
        self.ended.remove(&id);
    }

    /// Data for the target, in one PDU.
    pub fn data_pdu(&self, id: u16, tag: u16, (offset, data): (usize, &[u8]), is_last: bool) -> Vec<u8> {
        let start = self.sealed(24);
        let len = start + data.len() + if self.data_digest { 4 } else { 0 };
        let flags = u8::from(self.header_digest) | if self.data_digest { 2 } else { 0 } | if is_last { 4 } else { 0 };
        let mut header = vec![0; 24];
        set(&mut header, 0, &[0x06, flags, 24, u8::try_from(start).unwrap()]);
        set(&mut header, 4, &u32::try_from(len).unwrap().to_le_bytes());
        set(&mut header, 8, &id.to_le_bytes());
        set(&mut header, 10, &tag.to_le_bytes());
        set(&mut header, 12, &u32::try_from(offset).unwrap().to_le_bytes());
        set(&mut header, 16, &u32::try_from(data.len()).unwrap().to_le_bytes());
        let mut bytes = self.seal(&header);
        bytes.extend_from_slice(data);
        if self.data_digest {
            bytes.extend_from_slice(&crc32c(data).to_le_bytes());
        }
        bytes
    }

    /// Commands without an answer.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Take the end of a command.
    pub fn end_of(&mut self, id: u16) -> Ended {
        self.ended.remove(&id).unwrap_or_else(|| panic!("command {id} has no answer"))
    }

    /// Bytes from the target.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        while self.inbox.len() >= 8 {
            let len = usize::try_from(le32(&self.inbox, 4)).unwrap();
            assert!((8..=128 + 4 + (1 << 20)).contains(&len), "a PDU of {len} bytes");
            if self.inbox.len() < len {
                return;
            }
            let rest = self.inbox.split_off(len);
            let pdu = std::mem::replace(&mut self.inbox, rest);
            self.seen.push(pdu[0]);
            self.take(&pdu);
        }
    }

    fn take(&mut self, pdu: &[u8]) {
        match pdu[0] {
            0x01 => self.on_answer_to_request(pdu),
            0x03 => {
                assert_eq!((pdu[1], pdu[2], pdu[3]), (0, 24, 0));
                assert!((24..=152).contains(&pdu.len()));
                self.terminated = Some(pdu.to_vec());
            }
            0x05 => self.on_response(pdu),
            0x07 => self.on_data(pdu),
            0x09 => self.on_r2t(pdu),
            kind => panic!("a target never sends PDUs of type {kind}"),
        }
    }

    fn on_answer_to_request(&self, pdu: &[u8]) {
        assert_eq!((pdu[1], pdu[2], pdu[3], pdu.len()), (0, 128, 0, 128));
        assert_eq!(le16(pdu, 8), 0, "the version");
        let digests = u8::from(self.header_digest) | u8::from(self.data_digest) << 1;
        assert_eq!(pdu[11], digests, "the digests are what the host asked for");
        assert!(le32(pdu, 12) >= 4096 && le32(pdu, 12).is_multiple_of(4), "maximum data of a PDU");
    }

    /// Flags, length and digest of a header of this length.
    fn check_header(&self, pdu: &[u8], header: usize) {
        assert_eq!(usize::from(pdu[2]), header);
        assert_eq!(pdu[1] & 1 != 0, self.header_digest);
        if self.header_digest {
            assert_eq!(le32(pdu, header), crc32c(&pdu[..header]), "the digest of a header");
        }
    }

    fn on_response(&mut self, pdu: &[u8]) {
        self.check_header(pdu, 24);
        assert_eq!(pdu.len(), self.sealed(24));
        let id = le16(pdu, 20);
        let Running { data, payload, asked, .. } = self.running.remove(&id).unwrap_or_else(|| {
            panic!("an answer for command {id}, which does not run: it was answered twice, or never sent")
        });
        let status = le16(pdu, 22) >> 1;
        assert!(status != 0 || asked == payload.len(), "success of a write with {asked} of {} bytes", payload.len());
        let ended = Ended { status, result: le64(pdu, 8), head: le16(pdu, 16), data, by_data: false };
        self.ended.insert(id, ended);
    }

    fn on_data(&mut self, pdu: &[u8]) {
        self.check_header(pdu, 24);
        let start = self.sealed(24).next_multiple_of(self.alignment);
        assert_eq!(usize::from(pdu[3]), start, "the place of the data");
        assert_eq!(pdu[1] & 2 != 0, self.data_digest);
        let (id, offset, len) = (le16(pdu, 8), le32(pdu, 12) as usize, le32(pdu, 16) as usize);
        let end = start + len;
        assert_eq!(pdu.len(), end + if self.data_digest { 4 } else { 0 });
        if self.data_digest {
            assert_eq!(le32(pdu, end), crc32c(&pdu[start..end]), "the digest of data");
        }
        let (is_last, is_success) = (pdu[1] & 4 != 0, pdu[1] & 8 != 0);
        assert!(is_last || !is_success, "only the last data can be the answer");
        assert!(!is_success || self.no_head, "an answer by data cannot report the place in the queue");
        let running = self.running.get_mut(&id).unwrap_or_else(|| panic!("data for command {id}, which does not run"));
        running.data[offset..offset + len].copy_from_slice(&pdu[start..end]);
        assert_eq!(is_last, offset + len == running.wanted, "the last data, and no other, is marked so");
        if is_success {
            let Running { data, .. } = self.running.remove(&id).unwrap();
            self.ended.insert(id, Ended { status: 0, result: 0, head: 0, data, by_data: true });
        }
    }

    fn on_r2t(&mut self, pdu: &[u8]) {
        self.check_header(pdu, 24);
        assert_eq!((pdu.len(), pdu[3]), (self.sealed(24), 0));
        let (id, tag) = (le16(pdu, 8), le16(pdu, 10));
        let (offset, len) = (le32(pdu, 12) as usize, le32(pdu, 16) as usize);
        let running = self.running.get_mut(&id).unwrap_or_else(|| panic!("a question for command {id}"));
        assert_eq!(offset, running.asked, "payload is asked for in order, and once");
        assert!(len > 0 && offset + len <= running.payload.len());
        running.asked += len;
        let payload = running.payload[offset..offset + len].to_vec();
        let mut at = 0;
        for piece in payload.chunks(self.piece) {
            let is_last = at + piece.len() == len;
            let bytes = self.data_pdu(id, tag, (offset + at, piece), is_last);
            self.out.extend_from_slice(&bytes);
            at += piece.len();
        }
    }
}
