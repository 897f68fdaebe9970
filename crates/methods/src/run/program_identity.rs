//! The identity of this program file. Results of another build are not used.

use openraid_sim::random::mix;
use std::sync::OnceLock;

/// A digest of this program's file. If the file cannot be read, the digest is a number that no other run has, so that
/// no stored result is used.
#[must_use]
pub fn program_digest() -> u64 {
    static DIGEST: OnceLock<u64> = OnceLock::new();
    *DIGEST.get_or_init(|| match std::fs::read("/proc/self/exe") {
        Ok(program) => of(&program),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            mix(u64::from(std::process::id()) ^ u64::from(now.subsec_nanos()).rotate_left(32) ^ now.as_secs())
        }
    })
}

/// FNV-1a in steps of eight bytes, followed by one mixing step.
fn of(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(OFFSET, |hash, word| mix((hash ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME)));
    mix(rest.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_program_counts() {
        let program: Vec<u8> = (0..100).collect();
        let whole = of(&program);
        for place in 0..program.len() {
            let mut other = program.clone();
            other[place] ^= 1;
            assert_ne!(of(&other), whole, "byte {place}");
        }
        assert_ne!(of(&program[..99]), whole);
        assert_eq!(program_digest(), program_digest());
    }
}
