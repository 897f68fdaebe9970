//! Faults of a drive, switched on and off while it runs.

use std::collections::BTreeMap;

use openraid_core::events::DriveError;
use openraid_units::{DriveLba, Nanos, Sectors};

/// Whether writing heals a bad sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A latent error: writing the sector makes it good again.
    UntilWritten,
    /// The sector takes no write either.
    Permanent,
}

/// The effect on a write or read that the drive answers with success but does not carry out as requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Silent {
    /// Nothing of a write reaches the medium.
    Lost,
    /// A write goes to another place.
    Misdirected {
        /// Where it goes instead.
        to: DriveLba,
    },
    /// A read brings what stands at another place.
    Misread {
        /// The place of those bytes.
        from: DriveLba,
    },
    /// Bits of a byte flip on the way to the reader; the medium is good.
    FlippedOnTheWay {
        /// Which byte of the command's first sector.
        byte: usize,
        /// Which bits.
        mask: u8,
    },
}

impl Silent {
    /// Does it happen to reads?
    const fn is_of_reads(self) -> bool {
        match self {
            Self::Misread { .. } | Self::FlippedOnTheWay { .. } => true,
            Self::Lost | Self::Misdirected { .. } => false,
        }
    }
}

/// A fault that waits for the next write, or read, that is completely within a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trap {
    /// Start of the window.
    pub from: DriveLba,
    /// Its length.
    pub len: Sectors,
    /// The effect.
    pub silent: Silent,
}

/// A place with silently wrong content, or of which a read has silently returned other data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// First sector.
    pub lba: DriveLba,
    /// Sectors.
    pub len: Sectors,
    /// The right content.
    pub right: Box<[u8]>,
}

/// Commands that take longer than a drive of this kind should, and less than anybody's patience.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// One command in this many.
    pub one_in: u64,
    /// The longest delay.
    pub most: Nanos,
}

/// The faults of one drive. All off is a good drive.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Bad sectors.
    defects: BTreeMap<u64, Defect>,
    /// The drive was pulled: every command ends with [`DriveError::Gone`].
    pub gone: bool,
    /// Commands are taken and never answered, until the fault is switched off.
    pub hang: bool,
    /// Every write, discard and zeroing ends with this.
    pub writes: Option<DriveError>,
    /// The next write, discard or zeroing ends with this, and nothing of it was done.
    pub next_write: Option<DriveError>,
    /// No space is left for these sectors, of a sparse file on a full file system, say: writes to any of them are refused.
    pub no_space: Option<(DriveLba, Sectors)>,
    /// Every discard ends with this, done for a part or not at all.
    pub discards: Option<DriveError>,
    /// Every flush fails, and unflushed writes are in doubt from then on.
    pub flushes: bool,
    /// Every read ends with a media error at its first sector.
    pub reads: bool,
    /// Some answers are late.
    pub late: Option<Late>,
    /// The next write into this window, or read of it, goes wrong without a word.
    pub trap: Option<Trap>,
    /// Writes of a drive that was gone before they ended, and writes dropped by a failed flush: old, new, or in part.
    pub torn: Vec<(DriveLba, Sectors)>,
    /// Writes that it did not take, and said so.
    pub refused: Vec<(DriveLba, Sectors)>,
    /// Silent errors so far.
    pub wrong: Vec<Wrong>,
    /// The places of writes, if a reader wants them; that reader empties the list.
    pub written: Option<Vec<(DriveLba, Sectors)>>,
}

impl Faults {
    /// Make a range bad.
    pub fn add_defects(&mut self, lba: DriveLba, len: Sectors, defect: Defect) {
        self.defects.extend((lba.get()..(lba + len).get()).map(|sector| (sector, defect)));
    }
    /// Half-done writes no longer matter.
    pub fn forget_torn(&mut self) {
        self.torn.clear();
        self.refused.clear();
    }
    /// The trap that a write or a read runs into, once.
    pub(super) fn spring(&mut self, lba: DriveLba, len: Sectors, is_read: bool) -> Option<Silent> {
        let inside = |trap: &Trap| trap.from <= lba && lba + len <= trap.from + trap.len;
        let hit = |trap: &Trap| trap.silent.is_of_reads() == is_read && inside(trap);
        let trap = self.trap.filter(hit)?;
        self.trap = None;
        Some(trap.silent)
    }
    /// Is anything switched on that takes the drive out of service sooner or later?
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.gone || self.hang || self.writes.is_some() || self.flushes || self.reads
    }
    /// Make every sector good.
    pub fn clear_defects(&mut self) {
        self.defects.clear();
    }
    /// Bad sectors left.
    #[must_use]
    pub fn defects(&self) -> usize {
        self.defects.len()
    }
    /// Where they are.
    pub fn defective(&self) -> impl Iterator<Item = DriveLba> + '_ {
        self.defects.keys().copied().map(DriveLba)
    }
    /// The first bad sector of a range.
    #[must_use]
    pub fn first_defect(&self, lba: DriveLba, len: Sectors) -> Option<DriveLba> {
        self.defects.range(lba.get()..(lba + len).get()).next().map(|(sector, _)| DriveLba(*sector))
    }
    /// The range was written as far as the medium lets it: heals what can be healed and names the first sector
    /// that took no write.
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
