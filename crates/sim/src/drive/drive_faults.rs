//! Faults of a drive, which can be changed while it runs.

use std::collections::BTreeMap;

use openraid_core::events::DriveError;
use openraid_units::{DriveLba, Nanos, Sectors};

/// Whether a write heals a bad sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A latent error: a write heals the sector.
    UntilWritten,
    /// Writes of the sector fail, too.
    Permanent,
}

/// A wrong answer without an error: the effect on a write or read that the drive answers with success but does not carry
/// out as requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrongAnswer {
    /// The write does not reach the medium.
    Lost,
    /// The write changes another place.
    Misdirected {
        /// The place that the write changes.
        to: DriveLba,
    },
    /// The read returns the data of another place.
    Misread {
        /// The place of the returned data.
        from: DriveLba,
    },
    /// Bits of a byte flip on the way to the reader; the medium is good.
    FlippedOnTheWay {
        /// The index of the byte in the command's first sector.
        byte: usize,
        /// The flipped bits.
        mask: u8,
    },
}

impl WrongAnswer {
    /// Whether it affects reads.
    const fn is_of_reads(self) -> bool {
        match self {
            Self::Misread { .. } | Self::FlippedOnTheWay { .. } => true,
            Self::Lost | Self::Misdirected { .. } => false,
        }
    }
}

/// A fault that waits for the next write or read that is completely inside a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Start of the window.
    pub from: DriveLba,
    pub len: Sectors,
    /// The effect.
    pub effect: WrongAnswer,
}

/// A place with silently wrong content, or a place for which a read has silently returned wrong data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// First sector.
    pub lba: DriveLba,
    pub len: Sectors,
    /// The right content.
    pub right: Box<[u8]>,
}

/// Commands that take longer than usual for such a drive, and less time than the engine's timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateCommands {
    /// One command in this number is late.
    pub one_in: u64,
    /// The longest delay.
    pub most: Nanos,
}

/// The faults of one drive. A good drive has none.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Bad sectors.
    defects: BTreeMap<u64, Defect>,
    /// The drive is absent: every command ends with [`DriveError::Gone`].
    pub gone: bool,
    /// Commands are taken and not answered until the fault is ended.
    pub hang: bool,
    /// Every write, discard and zeroing ends with this error.
    pub writes: Option<DriveError>,
    /// The next write, discard or zeroing ends with this error and has no effect.
    pub next_write: Option<DriveError>,
    /// The next write inside of this range ends with a media error and has no effect; the one after it is carried out.
    pub refuse_next: Option<(DriveLba, Sectors)>,
    /// There is no space left for these sectors, as in a sparse file on a full file system: a write to any of them is
    /// refused.
    pub no_space: Option<(DriveLba, Sectors)>,
    /// There is not room for everything.
    pub room: Option<super::DriveRoom>,
    /// Every discard ends with this error, carried out in part or not at all.
    pub discards: Option<DriveError>,
    /// Every flush fails, and unflushed writes are in doubt from then on.
    pub flushes: bool,
    /// Every read ends with a media error at its first sector.
    pub reads: bool,
    /// Some answers are late.
    pub late: Option<LateCommands>,
    /// The next write or read in this window fails silently.
    pub trap: Option<Trap>,
    /// Interrupted writes of a lost drive, and writes dropped by a failed flush. Their sectors are old, new, or a
    /// mixture.
    pub torn: Vec<(DriveLba, Sectors)>,
    /// Writes that the drive refused with an error.
    pub refused: Vec<(DriveLba, Sectors)>,
    /// Silent errors so far.
    pub wrong: Vec<Wrong>,
    /// The places of writes, if a reader has asked for them. That reader empties the list.
    pub written: Option<Vec<(DriveLba, Sectors)>>,
}

impl Faults {
    /// Make a range bad.
    pub fn add_defects(&mut self, lba: DriveLba, len: Sectors, defect: Defect) {
        self.defects.extend((lba.get()..(lba + len).get()).map(|sector| (sector, defect)));
    }
    /// Forget half-done writes.
    pub fn forget_torn(&mut self) {
        self.torn.clear();
        self.refused.clear();
    }
    /// Take the trap that a write or a read meets; it works once.
    pub(super) fn spring(&mut self, lba: DriveLba, len: Sectors, is_read: bool) -> Option<WrongAnswer> {
        let inside = |trap: &Trap| trap.from <= lba && lba + len <= trap.from + trap.len;
        let hit = |trap: &Trap| trap.effect.is_of_reads() == is_read && inside(trap);
        let trap = self.trap.filter(hit)?;
        self.trap = None;
        Some(trap.effect)
    }
    /// Whether any fault is active that sooner or later takes the drive out of service.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.gone || self.hang || self.writes.is_some() || self.flushes || self.reads || self.refuse_next.is_some()
    }
    /// Make every sector good.
    pub fn clear_defects(&mut self) {
        self.defects.clear();
    }
    /// Number of bad sectors.
    #[must_use]
    pub fn defects(&self) -> usize {
        self.defects.len()
    }
    /// The bad sectors.
    pub fn defective(&self) -> impl Iterator<Item = DriveLba> + '_ {
        self.defects.keys().copied().map(DriveLba)
    }
    /// The first bad sector of a range.
    #[must_use]
    pub fn first_defect(&self, lba: DriveLba, len: Sectors) -> Option<DriveLba> {
        self.defects.range(lba.get()..(lba + len).get()).next().map(|(sector, _)| DriveLba(*sector))
    }
    /// A range was written as far as the medium allows: heal sectors that can be healed. Returns the first sector that
    /// refused the write.
    pub fn write_over(&mut self, lba: DriveLba, len: Sectors) -> Option<DriveLba> {
        let range = lba.get()..(lba + len).get();
        let bad: Vec<u64> = self.defects.range(range).map(|(sector, _)| *sector).collect();
        let mut permanent = None;
        for sector in bad {
            match self.defects[&sector] {
                Defect::UntilWritten => {
                    self.defects.remove(&sector);
                }
                Defect::Permanent => permanent = permanent.or(Some(DriveLba(sector))),
            }
        }
        permanent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_heals_latent_errors_and_names_lasting_ones() {
        let mut faults = Faults::default();
        faults.add_defects(DriveLba(10), Sectors(3), Defect::UntilWritten);
        faults.add_defects(DriveLba(20), Sectors(1), Defect::Permanent);
        assert_eq!(faults.first_defect(DriveLba(0), Sectors(10)), None);
        assert_eq!(faults.first_defect(DriveLba(11), Sectors(50)), Some(DriveLba(11)));
        assert_eq!(faults.write_over(DriveLba(12), Sectors(20)), Some(DriveLba(20)));
        assert_eq!(faults.first_defect(DriveLba(0), Sectors(100)), Some(DriveLba(10)));
        assert_eq!(faults.defects(), 3);
    }
}
