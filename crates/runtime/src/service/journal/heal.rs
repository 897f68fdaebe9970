//! Of two devices of a journal, the one that is behind gets what the other one has: first it is marked as unfinished, then
//! the log, then the superblocks, each durable before the next.
//!
//! A thread of its own does it, which may take as long as it likes while the devices answer. A device may well be read and
//! answer no write, ever, and that must not keep a start waiting.

use openraid_format::{journal_superblock_lba, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveId, DriveLba, Nanos, Sectors};

use super::find::{unanswered_by, FoundDevices};
use super::hanging::Held;
use super::lent::Lent;
use super::make::{sync, write, write_superblock};
use super::patience::{ask, Pulse, Unanswered};
use super::JournalStartError;
use crate::member::OpenedMember;

/// The log is copied in pieces of this size.
const PIECE: Sectors = Sectors::mib(1);
/// So many pieces are made durable together: few enough for a slow device to be heard of meanwhile.
const PIECES_AT_ONCE: usize = 32;

/// Bring a device that is behind up to date, so that both are used. One that cannot be written, or does not answer for so
/// long, is left out: both were read, so the other one has everything.
///
/// # Errors
/// The better device cannot be read or written, or does not answer.
pub fn heal(
    found: &mut FoundDevices,
    notes: &mut Vec<String>,
    held: &Held,
    silence_max: Nanos,
) -> Result<(), JournalStartError> {
    if found.devices.len() != 2 {
        return Ok(());
    }
    let Some(plan) = Plan::of(found) else { return Ok(()) };
    let lent = Lent::new(std::mem::take(&mut found.devices));
    match carry_out(&plan, &lent, held, silence_max)? {
        Healed::Both(devices) => {
            let device = &devices[plan.behind].spec.text;
            notes.push(format!("{device}: this device of the journal was behind and has been brought up to date"));
            found.devices = devices;
            for (number, mirror) in plan.mirrors() {
                found.superblocks[number] = plan.finished(mirror);
            }
            found.journal.superblock = plan.finished(plan.mirror);
            let drive = DriveId(u16::try_from(plan.behind).expect("two devices"));
            found.journal.devices.push((drive, plan.other()));
        }
        Healed::Alone(whole, error) => {
            let name = &whole.spec.text;
            notes.push(format!("{error}; this device of the journal is behind, and {name} is used alone"));
            found.devices = vec![*whole];
            found.superblocks.remove(plan.behind);
            found.journal.devices[0].0 = DriveId(0);
        }
    }
    Ok(())
}

/// What is to be done.
#[derive(Clone)]
struct Plan {
    best: usize,
    behind: usize,
    /// Which of the two the better device is.
    mirror: u8,
    /// The superblock of the better device, and the highest generation of both.
    superblock: JournalSuperblock,
    generation: u64,
    /// What the log fills: entries that are kept before the ring, and those from the tail to the head.
    log: Vec<(DriveLba, Sectors)>,
}

impl Plan {
    /// None where no device is behind.
    fn of(found: &FoundDevices) -> Option<Self> {
        let [(best, mirror)] = found.journal.devices[..] else { return None };
        let journal = &found.journal;
        let ring = journal.superblock.ring();
        let mut log = vec![(journal.superblock.keep_area().0, journal.superblock.kept)];
        let mut at = journal.tail.position;
        let mut left = ring.distance(at, journal.head.position);
        // Entries that fill the whole ring begin and end at one place.
        if left.is_zero() && !journal.entries.is_empty() {
            left = ring.sectors;
        }
        while !left.is_zero() {
            let len = left.min(ring.to_end(at));
            log.push((ring.drive_lba(at), len));
            at = ring.behind(at, len);
            left -= len;
        }
        Some(Self {
            best: best.index(),
            behind: 1 - best.index(),
            mirror,
            superblock: journal.superblock.clone(),
            generation: found.superblocks.iter().map(|own| own.generation).max().unwrap_or(0),
            log,
        })
    }

    /// Which of the two the device is that is behind.
    fn other(&self) -> u8 {
        1 - self.mirror.min(1)
    }

    /// The devices, and which of the two they are, in the order in which they are told that there are two.
    fn mirrors(&self) -> [(usize, u8); 2] {
        [(self.behind, self.other()), (self.best, self.mirror)]
    }

    /// Until the device that is behind has everything nothing on it counts, whoever looks at it alone.
    fn unfinished(&self) -> JournalSuperblock {
        JournalSuperblock {
            mirrors: 2,
            mirror: self.other(),
            generation: self.generation + 1,
            clean: false,
            unfinished: true,
            kept: Sectors::ZERO,
            ..self.superblock.clone()
        }
    }

    fn finished(&self, mirror: u8) -> JournalSuperblock {
        JournalSuperblock { mirrors: 2, mirror, generation: self.generation + 2, ..self.superblock.clone() }
    }
}

/// What came of it.
enum Healed {
    /// Both devices are up to date.
    Both(Vec<OpenedMember>),
    /// One has everything, and why the other one has not.
    Alone(Box<OpenedMember>, JournalStartError),
}

fn carry_out(plan: &Plan, lent: &Lent, held: &Held, silence_max: Nanos) -> Result<Healed, JournalStartError> {
    let (own, lent_to) = (plan.clone(), lent.clone());
    let asked = ask("journal-heal", move |pulse| Healing { plan: own, lent: lent_to, pulse }.all());
    let answer = asked.and_then(|asked| held.wait(asked, silence_max, lent.specs.iter()));
    let name = |device: usize| lent.specs[device].text.clone();
    let (failed, error) = match answer {
        Ok(Ok(())) => return Ok(Healed::Both(lent.take_back())),
        Ok(Err(failed)) => failed,
        Err(unanswered) => {
            // The one that does not come back hangs. If that is the one that is behind, nothing was written to the other one.
            let (best, behind) = (lent.take(plan.best), lent.take(plan.behind));
            let silent = if best.is_some() { plan.behind } else { plan.best };
            let is_behind = unanswered == Unanswered::Silent && behind.is_none();
            let error = unanswered_by(name(silent), unanswered, silence_max);
            return match best {
                Some(best) if is_behind => Ok(Healed::Alone(Box::new(best), error)),
                _ => Err(error),
            };
        }
    };
    match lent.take(plan.best) {
        Some(best) if failed == plan.behind => Ok(Healed::Alone(Box::new(best), error)),
        _ => Err(error),
    }
}

/// What went wrong, and on which device.
type Failed = (usize, JournalStartError);

/// A thread that brings a device up to date.
struct Healing {
    plan: Plan,
    lent: Lent,
    pulse: Pulse,
}

impl Healing {
    fn all(&self) -> Result<(), Failed> {
        let plan = &self.plan;
        self.with(plan.behind, |device| write_superblock(device, &plan.unfinished()))?;
        self.copy_log()?;
        for (number, mirror) in plan.mirrors() {
            self.with(number, |device| write_superblock(device, &plan.finished(mirror)))?;
        }
        Ok(())
    }

    /// Do something with a device, which has answered then.
    fn with<T>(
        &self,
        device: usize,
        work: impl FnOnce(&mut OpenedMember) -> Result<T, JournalStartError>,
    ) -> Result<T, Failed> {
        let done = self.lent.with(device, work);
        self.pulse.beat();
        // Who waited has given up.
        let done = done.unwrap_or_else(|| Err(JournalStartError::Hangs(self.lent.specs[device].text.clone())));
        done.map_err(|error| (device, error))
    }

    fn copy_log(&self) -> Result<(), Failed> {
        let behind = self.plan.behind;
        let ring = self.plan.superblock.ring();
        let last = journal_superblock_lba(SuperblockCopy::Last, self.lent.numbered[behind].capacity);
        if last.map_or(0, DriveLba::get) < ring.start.get() + ring.sectors.get() {
            let device = self.lent.specs[behind].text.clone();
            let why = "it has become smaller than the other device's log".into();
            return Err((behind, JournalStartError::Io { device, why }));
        }
        let mut copied = 0;
        for (start, sectors) in &self.plan.log {
            let mut done = Sectors::ZERO;
            while done < *sectors {
                let len = (*sectors - done).min(PIECE);
                self.copy_piece(*start + done, len)?;
                done += len;
                copied += 1;
                if copied % PIECES_AT_ONCE == 0 {
                    self.with(behind, |device| sync(device))?;
                }
            }
        }
        self.with(behind, |device| sync(device))
    }

    fn copy_piece(&self, at: DriveLba, len: Sectors) -> Result<(), Failed> {
        let mut buffer = vec![0; usize::try_from(len.bytes().get()).expect("1 MiB")];
        self.with(self.plan.best, |device| {
            let name = device.spec.text.clone();
            let read = device.read_at(at, &mut buffer);
            read.map_err(|error| JournalStartError::Io { device: name, why: error.to_string() })
        })?;
        self.with(self.plan.behind, |device| write(device, at, &buffer))
    }
}

const _: () = assert!(PIECE.get().is_multiple_of(JOURNAL_BLOCK_BYTES as u64 / 512));

#[cfg(test)]
mod tests {
    use super::super::pair::Pair;
    use super::*;

    /// A pair of which the first device is behind, and this one hangs while that is mended.
    fn while_hangs(name: &str, device: usize) -> (Pair, Result<Healed, JournalStartError>) {
        let pair = Pair::new(name);
        let mut found = pair.look(&Held::default()).expect("both can be read");
        let plan = Plan::of(&found).expect("one is behind");
        assert_eq!((plan.best, plan.behind), (1, 0));
        let lent = Lent::new(std::mem::take(&mut found.devices));
        let hangs = lent.devices[device].lock().expect("nobody else is at it");
        let healed = carry_out(&plan, &lent, &Held::default(), Nanos::ZERO);
        drop(hangs);
        (pair, healed)
    }

    #[test]
    fn a_device_that_is_behind_and_does_not_answer_is_left_out() {
        let (pair, healed) = while_hangs("heal-behind", 0);
        let Ok(Healed::Alone(whole, error)) = healed else { panic!("it is not needed") };
        assert_eq!(whole.spec, pair.specs[1]);
        assert_eq!(error, JournalStartError::Silent(pair.specs[0].text.clone(), Nanos::ZERO));
    }

    #[test]
    fn nothing_is_used_where_the_better_device_does_not_answer() {
        let (pair, healed) = while_hangs("heal-best", 1);
        let Err(error) = healed else { panic!("nobody else has it") };
        assert_eq!(error, JournalStartError::Silent(pair.specs[1].text.clone(), Nanos::ZERO));
    }

    #[test]
    fn a_device_that_was_behind_is_as_good_as_the_other_one() {
        let pair = Pair::new("heal");
        let (held, mut notes) = (Held::default(), Vec::new());
        let mut found = pair.look(&held).expect("both can be read");
        heal(&mut found, &mut notes, &held, Nanos::from_secs(3600)).expect("they answer");
        assert_eq!((found.devices.len(), found.journal.devices.len()), (2, 2));
        assert!(notes[0].contains("j0: this device of the journal was behind"), "{notes:?}");
        drop(found);
        let found = pair.look(&held).expect("both can be read");
        assert!(Plan::of(&found).is_none(), "nothing is behind any more");
    }
}
