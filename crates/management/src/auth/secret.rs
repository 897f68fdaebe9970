//! Secrets: 32 random bytes in hexadecimal digits, compared in a time that does not depend on how many digits match.

use std::fmt::Write;

/// A new secret.
///
/// # Panics
/// The system has no random bytes: without them nothing here can be protected.
pub fn secret() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| panic!("the system gives no random bytes: {error}"));
    hexadecimal(&bytes)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The digest under which a secret is stored. A secret has 32 random bytes, so a plain SHA-256 cannot be turned back.
pub fn digest(secret: &str) -> String {
    hexadecimal(ring::digest::digest(&ring::digest::SHA256, secret.as_bytes()).as_ref())
}

/// Are both the same?
pub fn is_same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
