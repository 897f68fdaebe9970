//! Bytes for tests: reproducible noise in slices that begin at odd addresses.
#![allow(dead_code)] // each test file uses its part

/// A small generator of noise (xorshift64*); the seed names the run.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next().to_be_bytes()[0]).collect()
    }
}

/// Bytes around the slice that must survive every kernel.
const GUARD: u8 = 0xa5;
const GUARDS: usize = 80;

/// A block at a chosen misalignment, with guard bytes on both sides.
#[derive(Clone)]
pub struct Block {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl Block {
    pub fn new(bytes: &[u8], shift: usize) -> Self {
        let mut storage = vec![GUARD; bytes.len() + 2 * GUARDS + 64];
        let aligned = storage.as_ptr().align_offset(64);
        let start = aligned + shift % 64;
        let start = if start < 16 { start + 64 } else { start };
        storage[start..start + bytes.len()].copy_from_slice(bytes);
        Self { storage, start, length: bytes.len() }
    }
    pub fn noise(noise: &mut Noise, length: usize) -> Self {
        let shift = noise.below(64);
        Self::new(&noise.bytes(length), shift)
    }
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.length]
    }
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.length]
    }
    /// Nothing outside the slice has been written.
    pub fn assert_guards(&self) {
        let inside = self.start..self.start + self.length;
        let outside = self.storage.iter().enumerate().filter(|(at, _)| !inside.contains(at));
        assert!(outside.into_iter().all(|(_, &byte)| byte == GUARD), "a kernel wrote outside its slice");
    }
}

pub fn blocks(noise: &mut Noise, count: usize, length: usize) -> Vec<Block> {
    (0..count).map(|_| Block::noise(noise, length)).collect()
}

pub fn slices(blocks: &[Block]) -> Vec<&[u8]> {
    blocks.iter().map(Block::bytes).collect()
}

/// Around every width a kernel works in, and the sizes of sectors and pages.
pub const LENGTHS: [usize; 27] = [
    0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 4096, 4097,
];

/// A row's P and Q from the definition alone, with a product of its own: no code of the crate under test.
pub fn parity_by_definition(data: &[&[u8]], length: usize) -> (Vec<u8>, Vec<u8>) {
    let (mut p, mut q) = (vec![0; length], vec![0; length]);
    let mut coefficient = 1_u16;
    for block in data {
        for at in 0..length {
            p[at] ^= block[at];
            q[at] ^= product(coefficient, u16::from(block[at]));
        }
        coefficient = coefficient << 1 ^ if coefficient & 0x80 == 0 { 0 } else { 0x11d };
    }
    (p, q)
}

/// Polynomial product, then long division by 0x11d.
fn product(a: u16, b: u16) -> u8 {
    let mut long = (0..8).fold(0, |sum, bit| if b >> bit & 1 == 1 { sum ^ a << bit } else { sum });
    for bit in (8..15).rev() {
        if long >> bit & 1 == 1 {
            long ^= 0x11d << (bit - 8);
        }
    }
    u8::try_from(long).unwrap()
}
