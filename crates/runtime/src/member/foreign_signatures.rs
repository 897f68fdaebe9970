//! What else is on a drive: signatures of other software, or bytes without a name. Never writes.
//!
//! libblkid names the signatures. It is asked by `wipefs`, a program of every Linux with util-linux, in a process of its own:
//! what it makes of hostile bytes cannot harm this one. It sees a sparse copy of the drive's ends in memory, so that
//! remote and modelled members are judged as devices are. Without the program all that is not zero has no name, and is not
//! taken as blank either.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use openraid_format::{detect_foreign, ForeignKind, ReadStretch, FOREIGN_HEAD, FOREIGN_TAIL};
use openraid_sys::memory_file;
use openraid_units::{Bytes, DriveLba, Sectors};

use super::probe::{read_range, ProbeError, SectorReader, ALIGN};

/// The places of `wipefs`. Users have no sbin in their path.
const PROGRAMS: [&str; 3] = ["/usr/sbin/wipefs", "/sbin/wipefs", "wipefs"];
/// Maximum number of signatures in the list of one drive. A ZFS label alone has more than a hundred.
const SIGNATURES_MAX: usize = 512;
/// Length of one read of an end that cannot be read as a whole.
const PART: Sectors = Sectors::kib(256);
/// Bytes that are compared with zeroes at once.
const BLOCK: usize = 4096;

/// What a signature belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SignatureKind {
    /// openraid knows it.
    Own(ForeignKind),
    /// libblkid knows it.
    Other {
        /// libblkid's name.
        name: String,
        /// libblkid's word for the kind of content; may be empty.
        usage: String,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// What it belongs to.
    pub kind: SignatureKind,
    /// Byte offset on the drive.
    pub at: Bytes,
}

impl Signature {
    /// Is it of this kind?
    #[must_use]
    pub fn is(&self, kind: ForeignKind) -> bool {
        self.kind == SignatureKind::Own(kind)
    }

    /// The name that `blkid` and `wipefs` use.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.kind {
            SignatureKind::Own(kind) => kind.name(),
            SignatureKind::Other { name, .. } => name,
        }
    }

    /// For readers.
    #[must_use]
    pub fn description(&self) -> String {
        match &self.kind {
            SignatureKind::Own(kind) => kind.description().into(),
            SignatureKind::Other { name, usage } => match usage.as_str() {
                "filesystem" => format!("{name} file system"),
                "partition-table" => format!("{name} partition table"),
                "raid" => format!("{name} (RAID or volume manager)"),
                "crypto" => format!("{name} (encrypted)"),
                _ => name.clone(),
            },
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.description(), self.at.get())
    }
}

/// What was found on a drive besides metadata of md.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Foreign {
    /// The signatures, openraid's own first.
    pub signatures: Vec<Signature>,
    /// The first block at an end of the drive that is not zero.
    pub data_at: Option<Bytes>,
}

/// Look at both ends of a drive.
pub(super) fn look(capacity: Sectors, read: &mut SectorReader<'_>) -> Result<Foreign, ProbeError> {
    let size = capacity.bytes();
    let head = Bytes(size.get().min(FOREIGN_HEAD.get()));
    let (head, bad_head) = read_end(DriveLba(0), head.sectors_floor(), capacity, read)?;
    let tail = Bytes(size.get().min(FOREIGN_TAIL.get()));
    let start = (size - tail).round_down(ALIGN.bytes());
    let tail_lba = DriveLba(start.sectors_floor().get());
    let (tail, bad_tail) = read_end(tail_lba, (size - start).sectors_floor(), capacity, read)?;
    let stretches = [ReadStretch { start: Bytes::ZERO, bytes: &head }, ReadStretch { start, bytes: &tail }];
    let data_at = stretches.iter().find_map(first_data).or(bad_head).or(bad_tail);
    let found = detect_foreign(size, &stretches);
    let found = found.list().iter().map(|finding| Signature { kind: SignatureKind::Own(finding.kind), at: finding.at });
    let mut signatures: Vec<Signature> = found.collect();
    if data_at.is_some() {
        // A missing program is no reason to refuse the drive: it may be a member, and its content is not taken as blank.
        let named = copy_of(size, &stretches).map(|copy| named(&copy)).unwrap_or_default();
        let is_new = |signature: &Signature, known: &[Signature]| {
            !known
                .iter()
                .any(|other| other.name() == signature.name() && other.at.get() / 512 == signature.at.get() / 512)
        };
        let new: Vec<Signature> = named.into_iter().filter(|signature| is_new(signature, &signatures)).collect();
        signatures.extend(new);
    }
    Ok(Foreign { signatures, data_at })
}

/// Reads one end of a drive. A part that cannot be read is left out and counts as data: a drive with a bad sector may be a
/// member. Returns the bytes, and the place of the first such part. The first part has to be readable.
fn read_end(
    lba: DriveLba,
    len: Sectors,
    capacity: Sectors,
    read: &mut SectorReader<'_>,
) -> Result<(Vec<u8>, Option<Bytes>), ProbeError> {
    if let Ok(bytes) = read_range(lba, len, capacity, read) {
        return Ok((bytes, None));
    }
    let (mut bytes, mut bad) = (Vec::new(), None);
    let mut done = Sectors::ZERO;
    while done < len {
        let (at, part) = (DriveLba(lba.0 + done.get()), PART.min(len - done));
        match read_range(at, part, capacity, read) {
            Ok(read) => bytes.extend_from_slice(&read),
            Err(error) if done == Sectors::ZERO => return Err(error),
            Err(_) => {
                bytes.resize(bytes.len() + usize::try_from(part.bytes().get()).expect("a small part"), 0);
                bad = bad.or(Some(Bytes(at.0 * 512)));
            }
        }
        done += part;
    }
    Ok((bytes, bad))
}

/// The first block of a stretch that is not zero.
fn first_data(stretch: &ReadStretch<'_>) -> Option<Bytes> {
    const ZEROES: [u8; BLOCK] = [0; BLOCK];
    let block = stretch.bytes.chunks(BLOCK).position(|block| block != &ZEROES[..block.len()])?;
    Some(stretch.start + Bytes((block * BLOCK) as u64))
}

/// A sparse copy of the parts that are not zero.
fn copy_of(size: Bytes, stretches: &[ReadStretch<'_>]) -> io::Result<File> {
    let file = memory_file(size.get())?;
    for stretch in stretches.iter().filter(|stretch| first_data(stretch).is_some()) {
        file.write_all_at(stretch.bytes, stretch.start.get())?;
    }
    Ok(file)
}

/// The signatures that `wipefs` finds; none without the program.
fn named(copy: &File) -> Vec<Signature> {
    let run = |program: &&str| {
        let stdin = Stdio::from(copy.try_clone().ok()?);
        let mut command = Command::new(program);
        command.args(["--no-act", "--noheadings", "--output", "OFFSET,TYPE,USAGE", "/dev/stdin"]);
        command.stdin(stdin).stderr(Stdio::null()).output().ok()
    };
    let output = PROGRAMS.iter().find_map(run).map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().filter_map(parsed).take(SIGNATURES_MAX).collect()
}

/// A line of `wipefs`: offset, name, and mostly the kind of content.
fn parsed(line: &str) -> Option<Signature> {
    let mut words = line.split_whitespace();
    let at = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    let (name, usage) = (words.next()?.to_string(), words.next().unwrap_or_default().to_string());
    Some(Signature { kind: SignatureKind::Other { name, usage }, at: Bytes(at) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_wipefs_is_a_signature_and_any_other_line_is_none() {
        let words = |line| parsed(line).map(|signature| signature.to_string());
        assert_eq!(
            words("0xffffffff03c drbd  raid").as_deref(),
            Some("drbd (RAID or volume manager) (at byte 17592186040380)")
        );
        assert_eq!(words("0x400 ocfs2 filesystem").as_deref(), Some("ocfs2 file system (at byte 1024)"));
        assert_eq!(words("0x1fe dos partition-table").as_deref(), Some("dos partition table (at byte 510)"));
        assert_eq!(words("0xff6 swap").as_deref(), Some("swap (at byte 4086)"));
        for line in ["", "offset type", "0x", "0x10", "12 ext4 filesystem", "0xfffffffffffffffff ext4 filesystem"] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }
}
