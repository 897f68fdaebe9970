//! Data that names its own place.
//!
//! Every sector has its own address and generation and is otherwise a function of them and of a seed. So a reader can
//! tell: right; right but of another generation; of another place; torn; foreign; zero. Equal checksums of two images
//! could not tell these apart, and a repeated pattern would not reveal a swap.
//!
//! ```text
//!    0        8          16         24         32                        512
//!    [ magic  ][ address ][ generation ][ seed ][ bytes made of all these  ]
//! ```
//! Numbers are little-endian; the address counts sectors of 512 bytes from the start of the device.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of a stamped sector.
pub const SECTOR_BYTES: usize = 512;
const MAGIC: [u8; 8] = *b"ORSTAMP2";
const HEADER_BYTES: usize = 32;
/// Sectors that are handled at once when a device is written or read through.
const BATCH_SECTORS: u64 = 2048;

/// The verdict on a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// It belongs here and is whole.
    Right {
        /// Which write of this sector it is.
        generation: u64,
    },
    /// A whole sector that belongs elsewhere.
    Misplaced {
        /// Where it belongs.
        lba: u64,
        /// Which write of that sector it is.
        generation: u64,
    },
    /// It begins like a stamped sector and has other content after that.
    Torn {
        /// What its header says.
        lba: u64,
        /// What its header says.
        generation: u64,
    },
    /// All bytes are zero.
    Zero,
    /// Anything else, a sector of another seed included.
    Foreign,
}

/// How many sectors were seen, and which of them were not as they should be.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct StampReport {
    /// Sectors looked at.
    pub sectors: u64,
    /// Whole and in place, but of another generation than wanted.
    pub stale: u64,
    /// Whole, but belonging elsewhere.
    pub misplaced: u64,
    pub torn: u64,
    /// Zero where data should be.
    pub zero: u64,
    /// Unrecognisable.
    pub foreign: u64,
    /// Garbage that is excused: under a write that was never acknowledged.
    pub excused: u64,
    /// The first bad sector, the expected generation, and the verdict.
    pub first: Option<(u64, u64, Sight)>,
}

/// Which writes a device was given, as logged by [`crate::churn`]: what must be there after a crash.
#[derive(Clone, Default, Debug)]
pub struct WriteLog {
    /// For each sector that was written: the newest acknowledged generation, and those issued after it.
    sectors: HashMap<u64, WrittenSector>,
}

#[derive(Clone, Default, Debug)]
struct WrittenSector {
    acknowledged: u64,
    issued: Vec<u64>,
}

/// Write the sector with this address and generation into `sector`, which must be [`SECTOR_BYTES`] long.
pub fn stamp_sector(sector: &mut [u8], seed: u64, lba: u64, generation: u64) {
    assert_eq!(sector.len(), SECTOR_BYTES, "a sector has {SECTOR_BYTES} bytes");
    sector[..8].copy_from_slice(&MAGIC);
    for (place, value) in [lba, generation, seed].into_iter().enumerate() {
        sector[8 + place * 8..16 + place * 8].copy_from_slice(&value.to_le_bytes());
    }
    let mut state =
        [lba, generation, seed].into_iter().fold(0x243f_6a88_85a3_08d3, |state, value| scramble(state ^ value));
    for word in sector[HEADER_BYTES..].chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word.copy_from_slice(&scramble(state).to_le_bytes());
    }
}

/// Fill whole sectors with stamps of one generation, beginning at `first_lba`.
pub fn stamp(sectors: &mut [u8], seed: u64, first_lba: u64, generation: u64) {
    assert_eq!(sectors.len() % SECTOR_BYTES, 0, "only whole sectors can be stamped");
    for (sector, lba) in sectors.chunks_exact_mut(SECTOR_BYTES).zip(first_lba..) {
        stamp_sector(sector, seed, lba, generation);
    }
}

/// The finaliser of SplitMix64: one to one, and every bit depends on every bit.
fn scramble(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The verdict on the sector that was read at `lba`.
#[must_use]
pub fn recognise(sector: &[u8], seed: u64, lba: u64) -> Sight {
    assert_eq!(sector.len(), SECTOR_BYTES, "a sector has {SECTOR_BYTES} bytes");
    let number = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
    if sector[..8] != MAGIC || number(24) != seed {
        return if sector.iter().all(|byte| *byte == 0) { Sight::Zero } else { Sight::Foreign };
    }
    let (claimed, generation) = (number(8), number(16));
    let mut whole = [0; SECTOR_BYTES];
    stamp_sector(&mut whole, seed, claimed, generation);
    match (whole == sector, claimed == lba) {
        (false, _) => Sight::Torn { lba: claimed, generation },
        (true, true) => Sight::Right { generation },
        (true, false) => Sight::Misplaced { lba: claimed, generation },
    }
}

/// Stamp the first `bytes` of a device or file with generation 0 and sync it.
///
/// # Errors
/// Errors of the file.
pub fn write_all(file: &File, bytes: u64, seed: u64) -> io::Result<()> {
    let sectors = bytes / SECTOR_BYTES as u64;
    let mut buffer = Vec::new();
    for first in (0..sectors).step_by(step()) {
        resize(&mut buffer, BATCH_SECTORS.min(sectors - first));
        stamp(&mut buffer, seed, first, 0);
        file.write_all_at(&buffer, first * SECTOR_BYTES as u64)?;
    }
    file.sync_all()
}

/// Are the first `bytes` of a device or file stamped with generation 0 throughout?
///
/// # Errors
/// Errors of the file.
pub fn check_all(file: &File, bytes: u64, seed: u64) -> io::Result<StampReport> {
    verify(file, bytes, seed, &WriteLog::default())
}

/// Is every acknowledged write there, or a later one that was issued? Sectors that were never written must be of
/// generation 0. An unrecognisable sector is excused only under a write that was issued and not acknowledged.
///
/// # Errors
/// Errors of the file.
pub fn verify(file: &File, bytes: u64, seed: u64, log: &WriteLog) -> io::Result<StampReport> {
    let sectors = bytes / SECTOR_BYTES as u64;
    let untouched = WrittenSector::default();
    let mut report = StampReport::default();
    let mut buffer = Vec::new();
    for first in (0..sectors).step_by(step()) {
        resize(&mut buffer, BATCH_SECTORS.min(sectors - first));
        file.read_exact_at(&mut buffer, first * SECTOR_BYTES as u64)?;
        for (sector, lba) in buffer.chunks_exact(SECTOR_BYTES).zip(first..) {
            report.judge(lba, recognise(sector, seed, lba), log.sectors.get(&lba).unwrap_or(&untouched));
        }
    }
    Ok(report)
}

fn step() -> usize {
    usize::try_from(BATCH_SECTORS).expect("a batch fits into memory")
}

fn resize(buffer: &mut Vec<u8>, sectors: u64) {
    buffer.resize(usize::try_from(sectors).expect("a batch fits into memory") * SECTOR_BYTES, 0);
}

impl WriteLog {
    /// Read a log. A last line that is cut off is passed over: a crash may have cut it.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let Some((kind, numbers)) = line.split_once(' ') else { continue };
            let numbers: Vec<u64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
            let [first, count, generation] = numbers[..] else { continue };
            for lba in first..first.saturating_add(count) {
                let written = log.sectors.entry(lba).or_default();
                match kind {
                    "A" => written.acknowledged = written.acknowledged.max(generation),
                    _ => written.issued.push(generation),
                }
            }
        }
        log
    }

    /// How many sectors have an acknowledged write.
    #[must_use]
    pub fn acknowledged_sectors(&self) -> usize {
        self.sectors.values().filter(|written| written.acknowledged > 0).count()
    }
}

impl StampReport {
    /// Is everything as it should be?
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.stale + self.misplaced + self.torn + self.zero + self.foreign == 0
    }

    fn judge(&mut self, lba: u64, sight: Sight, written: &WrittenSector) {
        self.sectors += 1;
        let wanted = written.acknowledged;
        let mut open = written.issued.iter().filter(|generation| **generation > wanted);
        if let Sight::Right { generation } = sight {
            if generation == wanted || open.any(|issued| *issued == generation) {
                return;
            }
        } else if open.next().is_some() {
            self.excused += 1;
            return;
        }
        match sight {
            Sight::Right { .. } => self.stale += 1,
            Sight::Misplaced { .. } => self.misplaced += 1,
            Sight::Torn { .. } => self.torn += 1,
            Sight::Zero => self.zero += 1,
            Sight::Foreign => self.foreign += 1,
        }
        self.first = self.first.or(Some((lba, wanted, sight)));
    }
}

impl fmt::Display for StampReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sectors, stale, misplaced, torn, zero, foreign, excused, first } = self;
        write!(f, "sectors={sectors} stale={stale} misplaced={misplaced} torn={torn} zero={zero} foreign={foreign} ")?;
        write!(f, "excused={excused}")?;
        match first {
            Some((lba, wanted, sight)) => {
                write!(f, " first: sector {lba}, wanted generation {wanted}, found {sight:?}")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(seed: u64, lba: u64, generation: u64) -> Vec<u8> {
        let mut sector = vec![0; SECTOR_BYTES];
        stamp_sector(&mut sector, seed, lba, generation);
        sector
    }

    #[test]
    fn a_sector_is_recognised_for_what_happened_to_it() {
        let whole = sector(1, 70, 3);
        assert_eq!(recognise(&whole, 1, 70), Sight::Right { generation: 3 });
        assert_eq!(recognise(&whole, 1, 71), Sight::Misplaced { lba: 70, generation: 3 });
        assert_eq!(recognise(&whole, 2, 70), Sight::Foreign);
        assert_eq!(recognise(&[0; SECTOR_BYTES], 1, 70), Sight::Zero);
        assert_eq!(recognise(&[1; SECTOR_BYTES], 1, 70), Sight::Foreign);
        for at in HEADER_BYTES..SECTOR_BYTES {
            let mut torn = whole.clone();
            torn[at] ^= 0x10;
            assert_eq!(recognise(&torn, 1, 70), Sight::Torn { lba: 70, generation: 3 }, "flip at {at}");
        }
        let mut mixed = whole.clone();
        mixed[256..].copy_from_slice(&sector(1, 70, 4)[256..]);
        assert_eq!(recognise(&mixed, 1, 70), Sight::Torn { lba: 70, generation: 3 });
    }

    #[test]
    fn only_writes_that_were_never_acknowledged_excuse_garbage() {
        let log = WriteLog::parse("I 8 2 5\nA 8 2 5\nI 8 1 6\nI 9 1 7\nA 9 1 7\nA 12 1");
        assert_eq!(log.acknowledged_sectors(), 2);
        let judge = |lba: u64, sight| {
            let mut report = StampReport::default();
            report.judge(lba, sight, log.sectors.get(&lba).unwrap_or(&WrittenSector::default()));
            (report.is_good(), report.excused)
        };
        assert_eq!(judge(8, Sight::Right { generation: 5 }), (true, 0));
        assert_eq!(judge(8, Sight::Right { generation: 6 }), (true, 0));
        assert_eq!(judge(8, Sight::Right { generation: 0 }), (false, 0));
        assert_eq!(judge(8, Sight::Foreign), (true, 1));
        assert_eq!(judge(9, Sight::Right { generation: 7 }), (true, 0));
        assert_eq!(judge(9, Sight::Right { generation: 5 }), (false, 0));
        assert_eq!(judge(9, Sight::Foreign), (false, 0));
        assert_eq!(judge(10, Sight::Right { generation: 0 }), (true, 0));
        assert_eq!(judge(10, Sight::Zero), (false, 0));
    }
}
