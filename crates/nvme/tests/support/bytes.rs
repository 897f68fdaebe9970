//! Bytes as the specification draws them, without code of the crate.

/// Digits of bytes, with blanks between them.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// CRC-32C, one bit a step.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut register = !0_u32;
    for byte in bytes {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            register = (register >> 1) ^ if register & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !register
}

pub fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub fn set(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The request of a connection: digests, alignment in words less one.
pub fn ic_request(digests: u8, alignment: u8) -> Vec<u8> {
    let mut pdu = vec![0; 128];
    set(&mut pdu, 0, &[0x00, 0x00, 128, 0x00, 128]);
    pdu[10] = alignment;
    pdu[11] = digests;
    pdu
}

/// A submission queue entry with the descriptor form that hosts must use.
pub fn entry(opcode: u8, id: u16, namespace: u32) -> [u8; 64] {
    let mut entry = [0; 64];
    entry[0] = opcode;
    entry[1] = 0x40;
    set(&mut entry, 2, &id.to_le_bytes());
    set(&mut entry, 4, &namespace.to_le_bytes());
    entry
}

/// Data that the transport carries.
pub fn by_transport(entry: &mut [u8; 64], len: u32) {
    set(entry, 32, &len.to_le_bytes());
    entry[39] = 0x5a;
}

/// Data in the capsule.
pub fn in_capsule(entry: &mut [u8; 64], len: u32) {
    set(entry, 32, &len.to_le_bytes());
    entry[39] = 0x01;
}

/// Double word `number` of an entry.
pub fn dword(entry: &mut [u8; 64], number: usize, value: u32) {
    set(entry, 4 * number, &value.to_le_bytes());
}

/// Read, Write or Write Zeroes of `blocks` blocks.
pub fn access(opcode: u8, id: u16, first: u64, blocks: u32) -> [u8; 64] {
    let mut entry = entry(opcode, id, 1);
    set(&mut entry, 40, &first.to_le_bytes());
    dword(&mut entry, 12, blocks - 1);
    entry
}

/// Names in Connect.
#[derive(Clone)]
pub struct Names {
    pub host_id: [u8; 16],
    pub host: String,
    pub subsystem: String,
}

/// Connect, and its data.
pub fn connect(id: u16, queue: u16, entries_less_one: u16, controller: u16, names: &Names) -> ([u8; 64], Vec<u8>) {
    let mut entry = entry(0x7f, id, 0);
    entry[4] = 0x01;
    in_capsule(&mut entry, 1024);
    set(&mut entry, 42, &queue.to_le_bytes());
    set(&mut entry, 44, &entries_less_one.to_le_bytes());
    let mut data = vec![0; 1024];
    set(&mut data, 0, &names.host_id);
    set(&mut data, 16, &controller.to_le_bytes());
    set(&mut data, 256, names.subsystem.as_bytes());
    set(&mut data, 512, names.host.as_bytes());
    (entry, data)
}

/// Property Get of four or eight bytes.
pub fn property_get(id: u16, register: u32, is_long: bool) -> [u8; 64] {
    let mut entry = entry(0x7f, id, 0);
    entry[4] = 0x04;
    entry[40] = u8::from(is_long);
    set(&mut entry, 44, &register.to_le_bytes());
    entry
}

/// Property Set of four bytes.
pub fn property_set(id: u16, register: u32, value: u32) -> [u8; 64] {
    let mut entry = property_get(id, register, false);
    entry[4] = 0x00;
    set(&mut entry, 48, &value.to_le_bytes());
    entry
}

/// Identify.
pub fn identify(id: u16, kind: u32, namespace: u32) -> [u8; 64] {
    let mut entry = entry(0x06, id, namespace);
    by_transport(&mut entry, 4096);
    dword(&mut entry, 10, kind);
    entry
}

/// Get Log Page of `len` bytes from `offset` on.
pub fn get_log(id: u16, log: u8, len: u32, offset: u64) -> [u8; 64] {
    let mut entry = entry(0x02, id, 0xffff_ffff);
    by_transport(&mut entry, len);
    let words = len / 4 - 1;
    dword(&mut entry, 10, u32::from(log) | (words & 0xffff) << 16);
    dword(&mut entry, 11, words >> 16);
    set(&mut entry, 48, &offset.to_le_bytes());
    entry
}

/// Set Features.
pub fn set_feature(id: u16, feature: u8, value: u32) -> [u8; 64] {
    let mut entry = entry(0x09, id, 0);
    dword(&mut entry, 10, u32::from(feature));
    dword(&mut entry, 11, value);
    entry
}

/// Get Features.
pub fn get_feature(id: u16, feature: u8) -> [u8; 64] {
    let mut entry = set_feature(id, feature, 0);
    entry[0] = 0x0a;
    entry
}
