//! The parts of a sparse file that can hold data.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::errno::Errno;

/// The first part of the file at or after `from` that can hold data. Everything between `from` and its start reads as
/// zeroes. None if only zeroes follow. A file system that knows no holes answers with all of the rest.
///
/// # Errors
/// The kernel's error.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, from, libc::SEEK_DATA) {
        Err(Errno(libc::ENXIO)) => return Ok(None),
        // Not every file system has this kind of seek.
        Err(Errno(libc::EINVAL | libc::EOPNOTSUPP)) => {
            let size = file.metadata()?.len();
            return Ok((from < size).then_some(from..size));
        }
        Err(error) => return Err(io::Error::from_raw_os_error(error.0)),
        Ok(start) => start,
    };
    match seek(file, start, libc::SEEK_HOLE) {
        // The end of the file counts as a hole, so this means that the file became shorter.
        Err(Errno(libc::ENXIO)) => Ok(None),
        Err(error) => Err(io::Error::from_raw_os_error(error.0)),
        Ok(end) => Ok(Some(start..end)),
    }
}

fn seek(file: &File, from: u64, whence: libc::c_int) -> Result<u64, Errno> {
    let from = i64::try_from(from).map_err(|_| Errno(libc::ENXIO))?;
    // SAFETY: the descriptor is open as long as `file` is borrowed; no memory is passed.
    let at = unsafe { libc::lseek64(file.as_raw_fd(), from, whence) };
    u64::try_from(at).map_err(|_| Errno::last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_written_byte_lies_in_a_part_and_a_hole_is_skipped() {
        let path = std::env::temp_dir().join(format!("openraid-extents-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("made");
        std::fs::remove_file(&path).expect("unnamed");
        assert_eq!(next_data(&file, 0).expect("seek"), None);
        file.set_len(1 << 32).expect("sparse");
        for at in [5_000_000, 3_000_000_000] {
            file.write_all_at(b"xyz", at).expect("written");
        }
        let mut parts = Vec::new();
        let mut from = 0;
        while let Some(part) = next_data(&file, from).expect("seek") {
            assert!(part.start >= from && part.end > part.start, "{part:?}");
            from = part.end;
            parts.push(part);
        }
        for at in [5_000_000, 3_000_000_000] {
            assert!(parts.iter().any(|part| part.contains(&at) && part.contains(&(at + 2))), "{at}: {parts:?}");
        }
        assert_eq!(next_data(&file, 1 << 32).expect("seek"), None);
    }
}
