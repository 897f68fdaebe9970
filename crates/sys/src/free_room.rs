//! The free space of file systems.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that programs without privileges may still take on the file system of a file; none if the kernel does not say.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut about = MaybeUninit::<libc::statvfs64>::uninit();
    // SAFETY: the path ends with a zero byte, and the kernel writes one structure of this type at most.
    if unsafe { libc::statvfs64(path.as_ptr(), about.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it has written the structure.
    let about = unsafe { about.assume_init() };
    #[allow(clippy::useless_conversion)] // the width of the field depends on the machine
    Some(u64::from(about.f_bavail).saturating_mul(u64::from(about.f_frsize)))
}
