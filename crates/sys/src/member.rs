//! Opens regular files and block devices as members, without damage to data of others, and reads facts about them.
//!
//! Steps of an exclusive open. The order ensures that no step can do damage:
//!
//! 1. follow the path, look at the inode without opening it (`O_PATH`: no FIFO hangs, no tape rewinds)
//! 2. refuse everything except regular files and block devices
//! 3. refuse a file or device that this process already uses, under any path
//! 4. refuse one that the kernel uses (mount, swap, md, device mapper, loop), naming the holder
//! 5. open: block devices with `O_EXCL` (the kernel's own claim, which keeps md and mount out as long as it is
//!    held), regular files with a lock of the whole file
//! 6. check that it is still the same inode, read its facts, try `O_DIRECT`
//!
//! Opening never writes.

use crate::buffer::{AlignedBuffer, METADATA_BYTES_MAX};
use crate::command::IoError;
use crate::ending_processes::is_ending;
use crate::errno::{check, check_size, Errno, Note};
use crate::holders::{lock_owner, opener, process_text, LockKind};
use crate::member_error::{MemberError, NotAMember};
use crate::member_facts::{holder_of_device, holder_of_file, in_sysfs, Facts, Sysfs};
use crate::room_wait::room_wait;
use openraid_units::{BlockSize, BlockSizeError, Bytes, DriveLba, Sectors};
use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of further attempts for a busy block device. After a ring has closed, a device is busy for a short time,
/// until the ring's workers have released it.
const BUSY_TRIES: u32 = 10;
/// The pause before each attempt.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// The purpose for which a member is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Examine the member, even if others use it. The member is never written.
    Examine,
    /// Read the member with exclusive use. The member is never written.
    ReadExclusive,
    /// Read and write the member with exclusive use.
    Exclusive,
}

/// Should transfers bypass the page cache?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direct {
    /// `O_DIRECT` if the file system supports it, otherwise the page cache, with a note.
    Try,
    /// The page cache.
    Never,
}

/// The identity of a member. It is the same for every path to the member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// A regular file.
    File {
        /// The file system's device number.
        device: u64,
        /// The inode number.
        inode: u64,
    },
    /// A block device.
    Block {
        /// Its device number.
        device: u64,
    },
}

/// An open member.
#[derive(Debug)]
pub struct MemberFile {
    file: File,
    path: PathBuf,
    resolved: PathBuf,
    identity: Identity,
    usage: Use,
    facts: Facts,
    notes: Vec<Note>,
    /// The folder of the device in sysfs, if the kernel showed one when it was opened.
    in_sysfs: Option<PathBuf>,
    _claim: Option<Claim>,
}

/// All files and devices that this process has open for exclusive use.
static CLAIMS: Mutex<Vec<(Identity, PathBuf)>> = Mutex::new(Vec::new());

/// One entry of [`CLAIMS`], removed on drop.
#[derive(Debug)]
struct Claim(Identity);

impl Claim {
    fn take(identity: Identity, path: &Path) -> Result<Self, MemberError> {
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, open_as)) = claims.iter().find(|(claimed, _)| *claimed == identity) {
            return Err(MemberError::AlreadyOpen { path: path.into(), open_as: open_as.clone() });
        }
        claims.push((identity, path.into()));
        Ok(Self(identity))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claims = CLAIMS.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|(claimed, _)| *claimed != self.0);
    }
}

impl MemberFile {
    /// Opens a regular file or block device.
    ///
    /// # Errors
    /// See [`MemberError`]. Nothing was written, and nothing stays open or locked.
    pub fn open(path: &Path, usage: Use, direct: Direct) -> Result<Self, MemberError> {
        let resolved = path.canonicalize().map_err(|e| refused(path, usage, "follow this path", e.into()))?;
        let identity = look(path, &resolved, usage)?;
        let claim = match usage {
            Use::Examine => None,
            Use::ReadExclusive | Use::Exclusive => {
                let claim = Claim::take(identity, path)?;
                if let Some(holder) = holder(identity, &resolved) {
                    return Err(MemberError::HeldByKernel { path: path.into(), holder });
                }
                Some(claim)
            }
        };
        let file = open(path, &resolved, identity, usage)?;
        let metadata = file.metadata().map_err(|e| refused(path, usage, "look at this file", e.into()))?;
        if identify(&metadata).ok() != Some(identity) {
            return Err(MemberError::Replaced { path: path.into() });
        }
        settle(&file).map_err(|e| refused(path, usage, "set the flags of this file", e))?;
        if let (true, Identity::File { device, inode }) = (claim.is_some(), identity) {
            lock(&file, LockRequest { path, resolved: &resolved, usage }, device, inode)?;
        }
        let mut notes = Vec::new();
        let facts = facts(&file, path, usage, &metadata, direct, &mut notes)?;
        let in_sysfs = match identity {
            Identity::Block { device } => Some(in_sysfs(device)).filter(|place| place.exists()),
            Identity::File { .. } => None,
        };
        Ok(Self { file, path: path.into(), resolved, identity, usage, facts, notes, in_sysfs, _claim: claim })
    }

    /// Is the device gone? The kernel sets the capacity of a disk that was pulled to zero, and forgets its
    /// number. A file is never gone while it is open.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let is_device = matches!(self.identity, Identity::Block { .. });
        let forgotten = || self.in_sysfs.as_ref().is_some_and(|place| !place.exists());
        is_device && (!matches!(device_size(&self.file), Ok(1..)) || forgotten())
    }

    /// The facts about the member.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The path by which the member was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the member with all symbolic links followed, as it was when the member was opened.
    #[must_use]
    pub fn resolved(&self) -> &Path {
        &self.resolved
    }

    /// The identity of the member, which is the same for every path.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The purpose for which the member was opened.
    #[must_use]
    pub fn usage(&self) -> Use {
        self.usage
    }

    /// Notes about fallbacks when the member was opened.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Is the other member the same file or device, possibly under another path?
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// The kernel's present user of the member, in words. Only a member that was opened to examine it can have one.
    #[must_use]
    pub fn kernel_holder(&self) -> Option<String> {
        holder(self.identity, &self.resolved)
    }

    /// Reads `into` completely from `at`, and waits. The length may be any. For tools, not for serving.
    ///
    /// # Errors
    /// The kernel's error, or [`IoError::Truncated`] if the member ends before `into` is full.
    ///
    /// # Panics
    /// The end is above 2^64 bytes.
    pub fn read_exact_at(&self, at: DriveLba, into: &mut [u8]) -> Result<(), IoError> {
        let block = self.facts.logical_block.bytes().get();
        let mut done = 0;
        while done < into.len() {
            let place = at.offset().bytes().get() + done as u64;
            let first = place - place % block;
            let skip = small(place - first);
            let want = (into.len() - done).min(METADATA_BYTES_MAX - skip);
            let span = (skip + want).next_multiple_of(small(block));
            let mut bounce = AlignedBuffer::zeroed(span);
            let got = self.read_some(first, &mut bounce, skip + want)?;
            if got < skip + want {
                let whole = done + got.saturating_sub(skip);
                return Err(IoError::Truncated { done: u32::try_from(whole).unwrap_or(u32::MAX) });
            }
            into[done..done + want].copy_from_slice(&bounce[skip..skip + want]);
            done += want;
        }
        Ok(())
    }

    /// Reads at least `enough` bytes into `into`, unless the member ends before.
    fn read_some(&self, at: u64, into: &mut AlignedBuffer, enough: usize) -> Result<usize, IoError> {
        let mut got = 0;
        while got < enough {
            let rest = &mut into[got..];
            // SAFETY: `rest` is a writable slice of the length that is passed.
            let read = check_size(unsafe {
                libc::pread64(self.file.as_raw_fd(), rest.as_mut_ptr().cast(), rest.len(), offset(at + got as u64)?)
            });
            match read {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(IoError::Os(error)),
            }
        }
        Ok(got)
    }

    /// Writes all of `bytes` at `at`, and waits until the kernel has them. They are not yet durable: see
    /// [`MemberFile::sync`]. For tools.
    ///
    /// # Errors
    /// The kernel's error; `EINVAL` if address or length are not whole logical blocks; `EBADF` if the member was not
    /// opened for writing; [`IoError::Truncated`] if the write would extend past the end of the member.
    pub fn write_all_at(&self, at: DriveLba, bytes: &[u8]) -> Result<(), IoError> {
        let block = small(self.facts.logical_block.bytes().get());
        let start = at.offset().bytes().get();
        if !start.is_multiple_of(block as u64) || !bytes.len().is_multiple_of(block) {
            return Err(IoError::Os(Errno(libc::EINVAL)));
        }
        if start + bytes.len() as u64 > self.facts.size.bytes().get() {
            return Err(IoError::Truncated { done: 0 });
        }
        let mut place = start;
        for piece in bytes.chunks(METADATA_BYTES_MAX) {
            let bounce = AlignedBuffer::copy_of(piece);
            let mut rest = &bounce[..];
            while !rest.is_empty() {
                // SAFETY: `rest` is a readable slice of the length that is passed.
                let wrote = check_size(unsafe {
                    libc::pwrite64(self.file.as_raw_fd(), rest.as_ptr().cast(), rest.len(), offset(place)?)
                });
                match wrote {
                    Ok(0) => return Err(IoError::Os(Errno(libc::ENOSPC))),
                    Ok(more) => {
                        rest = &rest[more..];
                        place += more as u64;
                    }
                    Err(Errno(libc::EINTR)) => {}
                    Err(error) => return Err(IoError::Os(error)),
                }
            }
        }
        Ok(())
    }

    /// Makes the file system allocate space for these sectors of a file. Holes of a file have no space. The content
    /// does not change. A block device counts as fully allocated. Sectors past the end of the member are ignored.
    ///
    /// # Errors
    /// The kernel's error, mostly `ENOSPC`.
    ///
    /// # Panics
    /// The end is above 2^64 bytes.
    pub fn allocate(&self, at: DriveLba, len: Sectors) -> Result<(), IoError> {
        let len = len.min(self.facts.size.saturating_sub(at.offset()));
        if self.facts.block_device || len.is_zero() {
            return Ok(());
        }
        let (from, bytes) = (offset(at.offset().bytes().get())?, offset(len.bytes().get())?);
        loop {
            // SAFETY: fallocate touches no memory of ours.
            match check(unsafe { libc::fallocate64(self.file.as_raw_fd(), 0, from, bytes) }) {
                Ok(_) => return Ok(()),
                Err(Errno(libc::EINTR)) => {}
                // A file system that does not support this call allocates space at each write.
                Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => {
                    let mut present = vec![0; small(len.bytes().get())];
                    self.read_exact_at(at, &mut present)?;
                    return self.write_all_at(at, &present);
                }
                Err(error) => return Err(IoError::Os(error)),
            }
        }
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// The kernel's error. After an error earlier writes may be lost, even if a second call succeeds.
    pub fn sync(&self) -> Result<(), Errno> {
        self.file.sync_data().map_err(Errno::from)
    }
}

impl Drop for MemberFile {
    fn drop(&mut self) {
        if self.usage != Use::Examine && !self.facts.block_device {
            // Not left to the last close: a ring's worker may hold the file for a moment after its last completion.
            // SAFETY: flock touches no memory of ours.
            let _ = unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
        }
    }
}

impl AsFd for MemberFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn small(n: u64) -> usize {
    usize::try_from(n).expect("bounded by METADATA_BYTES_MAX or a block size")
}

fn offset(at: u64) -> Result<i64, IoError> {
    i64::try_from(at).map_err(|_| IoError::Os(Errno(libc::EFBIG)))
}

/// The error for an error number of the kernel.
fn refused(path: &Path, usage: Use, attempt: &'static str, error: Errno) -> MemberError {
    let path = path.into();
    match error.0 {
        libc::ENOENT | libc::ENOTDIR => MemberError::Missing { path },
        libc::EACCES | libc::EPERM => MemberError::Denied { path, usage },
        libc::EROFS => MemberError::ReadOnly { path },
        _ => MemberError::Failed { path, attempt, error },
    }
}

/// Checks the inode without opening it.
fn look(path: &Path, resolved: &Path, usage: Use) -> Result<Identity, MemberError> {
    let peek = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(resolved);
    let metadata = peek.and_then(|file| file.metadata());
    let metadata = metadata.map_err(|e| refused(path, usage, "look at this file", e.into()))?;
    identify(&metadata).map_err(|kind| MemberError::NotAMember { path: path.into(), kind })
}

pub(crate) fn identify(metadata: &Metadata) -> Result<Identity, NotAMember> {
    let kind = metadata.file_type();
    if kind.is_file() {
        Ok(Identity::File { device: metadata.dev(), inode: metadata.ino() })
    } else if kind.is_block_device() {
        Ok(Identity::Block { device: metadata.rdev() })
    } else if kind.is_dir() {
        Err(NotAMember::Directory)
    } else if kind.is_fifo() {
        Err(NotAMember::Fifo)
    } else if kind.is_socket() {
        Err(NotAMember::Socket)
    } else if kind.is_char_device() {
        Err(NotAMember::CharacterDevice)
    } else {
        Err(NotAMember::Unknown)
    }
}

fn holder(identity: Identity, resolved: &Path) -> Option<String> {
    match identity {
        Identity::Block { device } => holder_of_device(device, resolved),
        Identity::File { device, inode } => holder_of_file(device, inode, resolved),
    }
}

fn open(path: &Path, resolved: &Path, identity: Identity, usage: Use) -> Result<File, MemberError> {
    // O_NONBLOCK: if a FIFO has replaced the file after the check, the open call still returns.
    let mut flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    if matches!(identity, Identity::Block { .. }) && usage != Use::Examine {
        flags |= libc::O_EXCL;
    }
    let mut tries = 0;
    let file = loop {
        let opened = OpenOptions::new().read(true).write(usage == Use::Exclusive).custom_flags(flags).open(resolved);
        match opened.map_err(Errno::from) {
            Ok(file) => break file,
            Err(Errno(libc::EBUSY)) if tries < BUSY_TRIES => std::thread::sleep(BUSY_PAUSE),
            Err(Errno(libc::EBUSY)) => {
                return Err(MemberError::Busy { path: path.into(), owner: opener(resolved).map(process_text) })
            }
            Err(error) => return Err(refused(path, usage, "open this", error)),
        }
        tries += 1;
    };
    if usage == Use::Exclusive && matches!(identity, Identity::Block { .. }) {
        let mut read_only: libc::c_int = 0;
        // SAFETY: BLKROGET fills one int.
        let asked = unsafe { libc::ioctl(file.as_raw_fd(), BLKROGET, &raw mut read_only) };
        if asked == 0 && read_only != 0 {
            return Err(MemberError::ReadOnly { path: path.into() });
        }
    }
    Ok(file)
}

/// Clears `O_NONBLOCK`, because with this flag io_uring may answer "try again".
fn settle(file: &File) -> Result<(), Errno> {
    let flags = flags(file)?;
    // SAFETY: F_SETFL takes an int and touches no memory of ours.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) }).map(drop)
}

fn flags(file: &File) -> Result<libc::c_int, Errno> {
    // SAFETY: F_GETFL touches no memory of ours.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })
}

/// A member as it was asked for, and the file that it leads to.
struct LockRequest<'a> {
    path: &'a Path,
    resolved: &'a Path,
    usage: Use,
}

/// Locks the whole file. Programs that lock bytes of it (QEMU) do not meet this lock, so theirs are looked for first.
fn lock(file: &File, asked: LockRequest<'_>, device: u64, inode: u64) -> Result<(), MemberError> {
    let LockRequest { path, resolved, usage } = asked;
    let locked = |kind| {
        let owner = lock_owner(kind, device, inode, resolved);
        let is_ending = owner.as_ref().is_some_and(|(process, _)| is_ending(*process));
        MemberError::Locked { path: path.into(), owner: owner.map(|(_, name)| name), is_ending }
    };
    if has_locked_bytes(file) {
        return Err(locked(LockKind::Bytes));
    }
    // SAFETY: flock touches no memory of ours.
    match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }) {
        Ok(_) => Ok(()),
        Err(Errno(libc::EWOULDBLOCK)) => Err(locked(LockKind::Whole)),
        Err(error) => Err(refused(path, usage, "lock this file", error)),
    }
}

/// Has another program locked any byte of the file? If the file system cannot answer, the answer is no.
fn has_locked_bytes(file: &File) -> bool {
    let first = libc::c_short::try_from(libc::SEEK_SET).expect("a small number");
    let kind = |kind: libc::c_int| libc::c_short::try_from(kind).expect("a small number");
    // A length of 0 means all bytes.
    let mut lock = libc::flock { l_type: kind(libc::F_WRLCK), l_whence: first, l_start: 0, l_len: 0, l_pid: 0 };
    // SAFETY: F_OFD_GETLK reads and fills one `flock`.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    asked == 0 && lock.l_type != kind(libc::F_UNLCK)
}

// From linux/fs.h: _IO(0x12, n), and _IOR(0x12, 114, size_t) for the size.
const BLKROGET: libc::Ioctl = 0x125e;
const BLKSSZGET: libc::Ioctl = 0x1268;
const BLKPBSZGET: libc::Ioctl = 0x127b;
const BLKROTATIONAL: libc::Ioctl = 0x127e;
#[cfg(target_pointer_width = "64")]
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;
#[cfg(target_pointer_width = "32")]
const BLKGETSIZE64: libc::Ioctl = 0x8004_1272_u32 as libc::Ioctl;

fn facts(
    file: &File,
    path: &Path,
    usage: Use,
    metadata: &Metadata,
    direct: Direct,
    notes: &mut Vec<Note>,
) -> Result<Facts, MemberError> {
    let block_device = metadata.file_type().is_block_device();
    let size = if block_device {
        Bytes(device_size(file).map_err(|e| refused(path, usage, "read the size of this device", e))?)
    } else {
        Bytes(metadata.len())
    };
    if size.sectors_floor().is_zero() {
        return Err(MemberError::Empty { path: path.into(), size });
    }
    let device = if block_device { metadata.rdev() } else { metadata.dev() };
    let sysfs = Sysfs::of(device);
    let mut logical = if block_device { ask(file, BLKSSZGET).unwrap_or(512) } else { 512 };
    let direct = match direct {
        Direct::Never => false,
        Direct::Try => match go_direct(file, logical).map_err(|e| refused(path, usage, "read this", e))? {
            Some(block) => {
                logical = block;
                true
            }
            None => {
                notes.push(Note(format!("{}: O_DIRECT is not possible here; using the page cache", path.display())));
                false
            }
        },
    };
    let logical_block = BlockSize::new(logical).map_err(|size| block_size(path, size))?;
    let queue = |name| sysfs.as_ref().and_then(|s| s.queue(name)).unwrap_or(0);
    let of_device = sysfs.as_ref().filter(|_| block_device);
    Ok(Facts {
        size: Sectors(size.sectors_floor().get() / logical_block.sectors().get() * logical_block.sectors().get()),
        logical_block,
        physical_block: Bytes(if block_device { ask(file, BLKPBSZGET).unwrap_or(logical) } else { metadata.blksize() }),
        rotational: block_device
            .then(|| rotates(file))
            .flatten()
            .or_else(|| sysfs.as_ref().and_then(Sysfs::rotational)),
        block_device,
        direct,
        // After a hole is punched into a regular file, the range always reads as zeroes. The discard of a device does
        // not promise this.
        discard: !block_device || queue("discard_max_bytes") > 0,
        discard_zeroes: !block_device,
        fast_zero: !block_device || queue("write_zeroes_max_bytes") > 0,
        room_wait: room_wait(device),
        model: of_device.and_then(Sysfs::model),
        serial: of_device.and_then(Sysfs::serial),
        zoned: of_device.and_then(Sysfs::zoned),
        bay: of_device.and_then(Sysfs::bay),
    })
}

fn block_size(path: &Path, size: BlockSizeError) -> MemberError {
    MemberError::BlockSize { path: path.into(), size }
}

fn device_size(file: &File) -> Result<u64, Errno> {
    let mut size: u64 = 0;
    // SAFETY: BLKGETSIZE64 fills one u64.
    check(unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &raw mut size) })?;
    Ok(size)
}

/// Asks the kernel for a value by an ioctl that returns an unsigned int.
fn ask(file: &File, question: libc::Ioctl) -> Option<u64> {
    let mut answer: libc::c_uint = 0;
    // SAFETY: both questions asked this way fill one int.
    let asked = unsafe { libc::ioctl(file.as_raw_fd(), question, &raw mut answer) };
    (asked == 0).then_some(u64::from(answer))
}

/// Does a device spin? None if the kernel does not answer: that is not an SSD.
fn rotates(file: &File) -> Option<bool> {
    let mut answer: libc::c_ushort = 0;
    // SAFETY: BLKROTATIONAL fills one unsigned short.
    let asked = unsafe { libc::ioctl(file.as_raw_fd(), BLKROTATIONAL, &raw mut answer) };
    (asked == 0).then_some(answer != 0)
}

/// Switches to `O_DIRECT` and finds the smallest block that works, from `least` on. `None` if no block works; the file
/// then uses the page cache again. The flag alone proves nothing: some file systems accept it and refuse every
/// transfer.
fn go_direct(file: &File, least: u64) -> Result<Option<u64>, Errno> {
    let before = flags(file)?;
    // SAFETY: F_SETFL takes an int and touches no memory of ours.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, before | libc::O_DIRECT) } < 0 {
        return Ok(None);
    }
    let mut probe = AlignedBuffer::zeroed(8192);
    for block in [512, 1024, 2048, 4096u64].into_iter().filter(|&block| block >= least) {
        // The buffer begins one block after a page boundary, as a frame may.
        let place = &mut probe[small(block)..2 * small(block)];
        // SAFETY: `place` is a writable slice of the length that is passed.
        match check_size(unsafe { libc::pread64(file.as_raw_fd(), place.as_mut_ptr().cast(), place.len(), 0) }) {
            Err(Errno(libc::EINVAL)) => {}
            // If the first block cannot be read, this is no reason to refuse the drive; the reader will handle the
            // error.
            Ok(_) | Err(_) => return Ok(Some(block)),
        }
    }
    // SAFETY: as above.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, before) })?;
    Ok(None)
}
