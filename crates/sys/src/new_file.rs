//! New files: without a name in memory, without a name on a disk to check whether a file can be created there, and in the
//! place of an old one.

use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// File systems of the kernel that allow no new files, with the error that they give. From linux/magic.h.
const WITHOUT_NEW_FILES: [(i64, i32); 3] = [
    (0x9fa0, libc::ENOENT),      // proc
    (0x6265_6572, libc::EACCES), // sysfs
    (0x1cd1, libc::EACCES),      // devpts
];

/// A sparse file in memory, which programs that this process starts may be given. It ends with its last descriptor.
///
/// # Errors
/// The kernel has no memory, or no room for a file of this size.
pub fn memory_file(bytes: u64) -> io::Result<File> {
    // SAFETY: the name ends with a zero.
    let fd = unsafe { libc::memfd_create(c"openraid".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    Ok(file)
}

/// Write a file so that it is never incomplete: it has its old content or the new one, also after a power cut.
///
/// # Errors
/// The kernel's error; the old content stays.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let fresh = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut file = File::create(&fresh)?;
    file.write_all(bytes).and_then(|()| file.sync_all())?;
    fs::rename(&fresh, path)
}

/// Can a sparse file of this size be created in this folder? If the file system does not support unnamed files, only
/// the permission is checked.
///
/// # Errors
/// The kernel's error, as it would be for the file.
pub fn check_new_file(folder: &Path, bytes: u64) -> io::Result<()> {
    match OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(folder) {
        Ok(file) => file.set_len(bytes),
        Err(error) => {
            let folder = CString::new(folder.as_os_str().as_bytes())?;
            let kind = file_system(&folder);
            if let Some((_, answer)) = WITHOUT_NEW_FILES.iter().find(|(known, _)| Some(*known) == kind) {
                // The kernel checks for a read-only mount first. The exception is proc, which looks up the name before.
                let is_read_only = *answer == libc::EACCES && error.raw_os_error() == Some(libc::EROFS);
                return Err(if is_read_only { error } else { io::Error::from_raw_os_error(*answer) });
            }
            match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EISDIR) => may_write(&folder),
                _ => Err(error),
            }
        }
    }
}

/// The kind of a file system in which this is, as the kernel numbers these kinds.
pub(crate) fn file_system(folder: &CStr) -> Option<i64> {
    let mut about = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero, and the kernel fills the struct if it answers 0.
    let about = unsafe { (libc::statfs(folder.as_ptr(), about.as_mut_ptr()) == 0).then(|| about.assume_init()) };
    #[allow(clippy::useless_conversion)] // the type of the field depends on the platform
    about.and_then(|about| i64::try_from(about.f_type).ok())
}

/// May this user create entries in this folder?
fn may_write(folder: &CStr) -> io::Result<()> {
    // SAFETY: the path ends with a zero.
    let answer = unsafe { libc::access(folder.as_ptr(), libc::W_OK | libc::X_OK) };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_be_made_where_a_folder_is_and_nothing_is_left_of_it() {
        let folder = std::env::temp_dir().join(format!("openraid-new-file-{}", std::process::id()));
        assert_eq!(check_new_file(&folder, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(&folder).expect("a folder among the temporary files");
        check_new_file(&folder, 1 << 20).expect("room for a sparse file");
        fs::remove_dir(&folder).expect("it is empty");
    }

    #[test]
    fn a_file_system_that_takes_no_files_answers_as_it_does_to_the_file_itself() {
        for folder in ["/proc", "/proc/self", "/sys", "/dev/pts"] {
            let folder = Path::new(folder);
            let made = File::create_new(folder.join("openraid-new-file"));
            let wanted = made.expect_err("no file can be made there").raw_os_error();
            assert_eq!(check_new_file(folder, 1).unwrap_err().raw_os_error(), wanted, "{}", folder.display());
        }
    }

    #[test]
    fn a_folder_that_accepts_no_entries_is_distinguished_from_one_that_does() {
        let path = |text: &str| CString::new(text).expect("no zero");
        may_write(&path("/tmp")).expect("everybody may");
        assert_eq!(may_write(&path("/nowhere")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
