//! One drive under a closed load, without a controller. The result is compared with the data sheet.

use super::{DriveKit, DriveOptions, DriveState, VirtualDrive};
use crate::random::Random;
use openraid_core::actions::{Data, DriveCommand, DriveOp, IoClass};
use openraid_models::{DriveProfile, SheetKey};
use openraid_units::{DriveId, DriveLba, Instant, Sectors, Tag, TagKind};

/// Commands before the measured ones, for each outstanding command.
const WARM_PER_DEPTH: u64 = 64;
/// Sectors of a page of an index, the unit of random loads.
const RANDOM_SECTORS: u64 = 8;
/// Sectors of a sequential request.
const ORDERED_SECTORS: u64 = 256;

/// The result of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trial {
    /// Time of each measured command, in nanoseconds, in order of completion.
    pub times: Vec<u64>,
    /// Time from the first to the last of them, in nanoseconds.
    pub span: u64,
    /// Sectors that the measured commands moved.
    pub sectors: u64,
}

impl Trial {
    /// Mean time of a command in nanoseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.times.iter().map(|&time| time as f64).sum::<f64>() / self.times.len() as f64
    }
    /// Commands per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 * 1e9 / self.span as f64
    }
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.sectors as f64 * 512e9 / self.span as f64
    }
    /// The time that this share of the commands does not exceed, in nanoseconds.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an index into the times
    pub fn percentile(&self, percent: f64) -> u64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        let index = (percent / 100.0 * times.len() as f64) as usize;
        times[index.min(times.len() - 1)]
    }
}

/// A command for a drive.
#[must_use]
pub fn command(number: u32, op: DriveOp, lba: u64, sectors: u64) -> DriveCommand {
    DriveCommand {
        tag: Tag::new(TagKind::Drive, number, 0),
        drive: DriveId(0),
        op,
        lba: DriveLba(lba),
        len: Sectors(sectors),
        data: Data::None,
        class: IoClass::Foreground,
    }
}

/// Keep `depth` commands outstanding until `warm + count` have ended. The last `count` are measured. `next` gives each
/// command: operation, first sector, sectors.
///
/// # Panics
/// The drive does not answer.
pub fn closed(
    drive: &mut impl VirtualDrive,
    depth: u32,
    warm: u64,
    count: u64,
    mut next: impl FnMut() -> (DriveOp, u64, u64),
) -> Trial {
    let mut now = Instant::ZERO;
    let mut begun = vec![(0u64, 0u64); depth as usize];
    let mut trial = Trial { times: Vec::new(), span: 0, sectors: 0 };
    let (mut ended, mut from) = (0, 0);
    let mut done = Vec::new();
    let mut give = |drive: &mut dyn VirtualDrive, now: Instant, slot: u32, begun: &mut [(u64, u64)]| {
        let (op, lba, sectors) = next();
        begun[slot as usize] = (now.0, sectors);
        drive.submit(now, &command(slot, op, lba, sectors));
    };
    for slot in 0..depth {
        give(drive, now, slot, &mut begun);
    }
    while ended < warm + count {
        now = drive.next().expect("a drive with commands has something to do");
        drive.advance(now, &mut done);
        for tag in done.drain(..) {
            let (since, sectors) = begun[tag.index() as usize];
            ended += 1;
            if ended == warm {
                from = now.0;
            } else if ended > warm && ended <= warm + count {
                trial.times.push(now.0 - since);
                trial.sectors += sectors;
                trial.span = now.0 - from;
            }
            give(drive, now, tag.index(), &mut begun);
        }
    }
    trial
}

/// The model's value for a figure of its data sheet: commands per second, bytes per second or nanoseconds, depending on
/// the key. `count` commands are measured.
#[must_use]
pub fn sheet(profile: &DriveProfile, key: SheetKey, seed: u64, count: u64) -> f64 {
    let kit = DriveKit::new(profile);
    let mut options = DriveOptions { seed, ..DriveOptions::default() };
    let mut random = Random::derived(seed, 1 << 32);
    match key {
        SheetKey::Random { write, depth, fresh, time } => {
            options.state = if fresh { DriveState::Fresh } else { DriveState::Steady };
            options.write_cache = Some(true);
            let mut drive = kit.build(&options);
            let places = drive.sectors() / RANDOM_SECTORS;
            let op = if write { DriveOp::Write { fua: false } } else { DriveOp::Read };
            // Caches must be full, and collecting active.
            let warm = if write { count } else { WARM_PER_DEPTH * u64::from(depth) };
            let trial =
                closed(&mut drive, depth, warm, count, || (op, random.below(places) * RANDOM_SECTORS, RANDOM_SECTORS));
            if time {
                trial.mean()
            } else {
                trial.rate()
            }
        }
        SheetKey::Sequential { write } => {
            options.write_cache = Some(true);
            let mut drive = kit.build(&options);
            let op = if write { DriveOp::Write { fua: false } } else { DriveOp::Read };
            let mut at = 0;
            let trial = closed(&mut drive, 32, count / 4, count, || {
                let lba = at;
                at += ORDERED_SECTORS;
                (op, lba, ORDERED_SECTORS)
            });
            trial.bytes_per_second()
        }
        SheetKey::Flush => {
            let mut drive = kit.build(&options);
            let places = drive.sectors() / RANDOM_SECTORS;
            let mut flush = false;
            let trial = closed(&mut drive, 1, 0, count, || {
                flush = !flush;
                if flush {
                    (DriveOp::Write { fua: false }, random.below(places) * RANDOM_SECTORS, RANDOM_SECTORS)
                } else {
                    (DriveOp::Flush, 0, 0)
                }
            });
            let flushes = trial.times.iter().skip(1).step_by(2);
            flushes.clone().map(|&time| time as f64).sum::<f64>() / flushes.count() as f64
        }
    }
}
