//! The file of alarms: two halves of a fixed size, written in turns.
//!
//! ```text
//!  | 0a1b2c3d 00000000000000000017 0000004711\n{"alarms":[...]}\n 0 0 0 ... | the other half |
//!    \CRC-32C  \sequence            \bytes of JSON      of what follows the checksum
//! ```
//!
//! A write goes to the half with the lower sequence, so a torn write leaves the other one. The zeroes are written when
//! the file is made, so alarms can be stored on a full disk.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use openraid_format::crc32c;
use openraid_sys::lock_file;
use serde::de::DeserializeOwned;
use serde::Serialize;

/// Size of a half.
pub const HALF_BYTES: usize = 1 << 20;
/// Checksum, sequence and length, with blanks and the line's end.
const HEAD_BYTES: usize = 8 + 1 + 20 + 1 + 10 + 1;

/// The file.
#[derive(Clone, Debug)]
pub struct AlarmStore {
    path: PathBuf,
}

/// The content of a half.
struct Half {
    sequence: u64,
    json: Vec<u8>,
}

impl AlarmStore {
    /// The file with this path; it may not exist yet.
    pub const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The last stored value; the default if there is none, or none that can be read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read<T: Default + DeserializeOwned>(&self) -> io::Result<T> {
        match File::open(&self.path) {
            Ok(file) => {
                lock_file(&file, &self.path, true)?;
                Ok(value_of(&halves(&file)?))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(error) => Err(error),
        }
    }

    /// Has the file a content of which nothing can be read?
    pub fn is_damaged(&self) -> bool {
        let Ok(file) = File::open(&self.path) else { return false };
        let is_unread = halves(&file).is_ok_and(|halves| halves.iter().all(Option::is_none));
        is_unread && fs::read(&self.path).is_ok_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    }

    /// Change the value under the file's lock, and make the change durable.
    ///
    /// # Errors
    /// The file cannot be made, read or written.
    pub fn change<T: Default + DeserializeOwned + Serialize>(&self, change: impl FnOnce(T) -> T) -> io::Result<()> {
        let file = self.open()?;
        lock_file(&file, &self.path, false)?;
        let halves = halves(&file)?;
        let value = change(value_of(&halves));
        let json = serde_json::to_vec(&value).map_err(io::Error::other)?;
        if HEAD_BYTES + json.len() > HALF_BYTES {
            return Err(io::Error::other(format!("{} bytes do not fit", json.len())));
        }
        let sequence = |half: &Option<Half>| half.as_ref().map_or(0, |half| half.sequence);
        let place = u64::from(sequence(&halves[0]) > sequence(&halves[1]));
        let next = halves.iter().map(sequence).max().unwrap_or(0) + 1;
        let rest = format!(" {next:020} {:010}\n", json.len());
        let rest = [rest.as_bytes(), &json].concat();
        let bytes = [format!("{:08x}", crc32c(&rest)).as_bytes(), &rest].concat();
        file.write_all_at(&bytes, place * HALF_BYTES as u64)?;
        file.sync_data()
    }

    /// The file in its full size. It is made under another name, so a file that is too short is not used.
    fn open(&self) -> io::Result<File> {
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        match open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => return file,
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let fresh = self.path.with_extension(format!("new-{}", std::process::id()));
        let made = || {
            let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
            file.write_all_at(&vec![0; 2 * HALF_BYTES], 0)?;
            file.sync_all()?;
            // Another process may have made it in the meantime: that one stays.
            match fs::hard_link(&fresh, &self.path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => File::open(folder)?.sync_all(),
            }
        };
        let result = made();
        let _ = fs::remove_file(&fresh);
        result?;
        open(&self.path)
    }
}

fn halves(file: &File) -> io::Result<[Option<Half>; 2]> {
    let read = |place: u64| {
        let mut bytes = vec![0; HALF_BYTES];
        let mut len = 0;
        while len < bytes.len() {
            match file.read_at(&mut bytes[len..], place * HALF_BYTES as u64 + len as u64)? {
                0 => break,
                more => len += more,
            }
        }
        Ok::<_, io::Error>(half(&bytes[..len]))
    };
    Ok([read(0)?, read(1)?])
}

fn half(bytes: &[u8]) -> Option<Half> {
    let head = std::str::from_utf8(bytes.get(..HEAD_BYTES)?).ok()?;
    let sum = u32::from_str_radix(head.get(..8)?, 16).ok()?;
    let sequence = head.get(9..29)?.parse().ok()?;
    let len: usize = head.get(30..40)?.parse().ok()?;
    let checked = bytes.get(8..HEAD_BYTES.checked_add(len)?)?;
    (crc32c(checked) == sum).then(|| Half { sequence, json: checked[HEAD_BYTES - 8..].to_vec() })
}

/// The newer half, or the other one if the newer one cannot be read.
fn value_of<T: Default + DeserializeOwned>(halves: &[Option<Half>; 2]) -> T {
    let mut known: Vec<&Half> = halves.iter().flatten().collect();
    known.sort_by_key(|half| std::cmp::Reverse(half.sequence));
    known.into_iter().find_map(|half| serde_json::from_slice(&half.json).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(name: &str) -> (PathBuf, AlarmStore) {
        let folder = std::env::temp_dir().join(format!("openraid-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        (folder.clone(), AlarmStore::at(folder.join("deep/alarms")))
    }

    #[test]
    fn a_torn_write_leaves_what_was_before() {
        let (folder, store) = store("torn");
        assert_eq!(store.read::<Vec<u64>>().unwrap(), [0; 0]);
        for number in 1..=3 {
            store.change(|all: Vec<u64>| [all, vec![number]].concat()).unwrap();
        }
        let path = folder.join("deep/alarms");
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), 2 * HALF_BYTES);
        let len = whole.iter().position(|byte| *byte == 0).unwrap();
        for cut in 0..len {
            let mut torn = whole.clone();
            torn[cut] ^= 0x10;
            fs::write(&path, &torn).unwrap();
            assert_eq!(store.read::<Vec<u64>>().unwrap(), [1, 2], "byte {cut}");
        }
        store.change(|all: Vec<u64>| [all, vec![9]].concat()).unwrap();
        assert_eq!(store.read::<Vec<u64>>().unwrap(), [1, 2, 9]);
        fs::write(&path, [0xff; 100]).unwrap();
        assert_eq!(store.read::<Vec<u64>>().unwrap(), [0; 0], "it is something else");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_text_that_is_too_long_changes_nothing() {
        let (folder, store) = store("large");
        store.change(|_: Vec<u64>| vec![1]).unwrap();
        assert!(store.change(|_: Vec<u64>| vec![u64::MAX; HALF_BYTES / 20]).is_err());
        assert_eq!(store.read::<Vec<u64>>().unwrap(), [1]);
        let _ = fs::remove_dir_all(&folder);
    }
}
