//! Random bytes from the kernel, for UUIDs. Never for anything the core decides: the core is deterministic.

use crate::errno::{check_size, Errno};

/// Fills `bytes` with random bytes from the kernel's generator.
///
/// # Errors
/// The kernel's error; since Linux 3.17 only a sandbox that forbids `getrandom` causes one.
pub fn fill_random(bytes: &mut [u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: `rest` is a writable slice of the length that is passed.
        match check_size(unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) }) {
            Ok(more) => done += more,
            Err(Errno(libc::EINTR)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_filled_and_two_calls_differ() {
        // One call of getrandom returns at most 32 MiB - 1; a call for more than 256 bytes may also be interrupted.
        let mut first = vec![0u8; 4096];
        let mut second = vec![0u8; 4096];
        assert_eq!(fill_random(&mut first), Ok(()));
        assert_eq!(fill_random(&mut second), Ok(()));
        assert_ne!(first, second);
        assert!(first.chunks(64).all(|chunk| chunk.iter().any(|&b| b != 0)), "64 zero bytes in a row: not filled");
    }
}
