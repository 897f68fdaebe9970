//! Could a file be made? An unnamed one answers, which no other process ever sees.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Could a sparse file of this size be made in this folder? A file system without unnamed files does not say no.
///
/// # Errors
/// The kernel's answer, as it would be for the file.
pub fn check_new_file(folder: &Path, bytes: u64) -> io::Result<()> {
    match OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(folder) {
        Ok(file) => file.set_len(bytes),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_be_made_where_a_folder_is_and_nothing_is_left_of_it() {
        let folder = std::env::temp_dir().join(format!("openraid-new-file-{}", std::process::id()));
        assert_eq!(check_new_file(&folder, 1).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::create_dir(&folder).expect("a folder among the temporary files");
        check_new_file(&folder, 1 << 20).expect("room for a sparse file");
        std::fs::remove_dir(&folder).expect("it is empty");
    }
}
