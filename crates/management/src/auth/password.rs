//! Passwords are kept as argon2id hashes, with the parameters that the crate recommends: 19 MiB, two passes.

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::Argon2;

use crate::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN};

/// A hash that no password has: checking against it takes as long as against a user's.
const NONE: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Check that a new password is one.
///
/// # Errors
/// The rule that it breaks.
pub fn check_new(password: &str) -> Result<(), String> {
    if password.chars().count() < PASSWORD_CHARACTERS_MIN {
        return Err(format!("the password is too short: use {PASSWORD_CHARACTERS_MIN} characters or more"));
    }
    if password.len() > PASSWORD_BYTES_MAX {
        return Err(format!("the password is too long: at most {PASSWORD_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// The hash of a password.
///
/// # Panics
/// The system has no random bytes for the salt.
pub fn hash(password: &str) -> String {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).unwrap_or_else(|error| panic!("the system gives no random bytes: {error}"));
    let salt = SaltString::encode_b64(&salt).unwrap_or_else(|error| panic!("bug: no salt: {error}"));
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    hash.unwrap_or_else(|error| panic!("bug: no hash: {error}")).to_string()
}

/// Does the password belong to this hash? Without a hash the same work is done for nothing.
pub fn fits(password: &str, hash: Option<&str>) -> bool {
    let known = PasswordHash::new(hash.unwrap_or(NONE));
    let fits = known.is_ok_and(|known| Argon2::default().verify_password(password.as_bytes(), &known).is_ok());
    fits && hash.is_some()
}
