//! Copying the data of one journal device to the stale other one. The order of the steps is that of
//! [`openraid_core::journal::mirror_resync`].
//!
//! A thread of its own does it, for as long as the devices answer. A device may answer reads and never answer a write,
//! and that must not block a start.

use openraid_core::journal::mirror_resync::{MirrorClaim, ResyncPlan, ResyncStep};
use openraid_format::{journal_superblock_lba, JournalError, SuperblockCopy};
use openraid_units::{DriveId, DriveLba, Nanos, Sectors};

use super::device_lease::Leased;
use super::find::{unanswered_by, FoundDevices};
use super::hanging_devices::HangCheck;
use super::heartbeat::{ask, Heartbeat, Unanswered};
use super::write_superblocks::{sync, write, write_copy};
use super::JournalStartError;
use crate::member::OpenedMember;

/// Bring a stale device up to date, so that both are used. A device that cannot be written, or does not answer for too
/// long, is left out: both were read, so the other one has everything.
///
/// # Errors
/// The better device cannot be read or written, or does not answer.
pub fn resync(
    found: &mut FoundDevices,
    notes: &mut Vec<String>,
    held: &HangCheck,
    silence_max: Nanos,
) -> Result<(), JournalStartError> {
    if found.devices.len() != 2 {
        return Ok(());
    }
    let Some(plan) = plan_of(found) else { return Ok(()) };
    let leased = Leased::new(std::mem::take(&mut found.devices));
    match carry_out(&plan, &leased, held, silence_max)? {
        Resynced::Both(devices) => {
            let device = &devices[plan.stale].spec.text;
            notes.push(match damage_of(found, plan.stale) {
                Some(damage) => format!("{device}: {damage}; it has the data of the other device again"),
                None => format!("{device}: this device of the journal was stale, and is up to date again"),
            });
            found.devices = devices;
            for (number, superblock) in found.superblocks.iter_mut().enumerate() {
                *superblock = plan.superblock(number, MirrorClaim::Whole);
            }
            let drive = DriveId(u16::try_from(plan.stale).expect("two devices"));
            plan.finish(&mut found.journal, drive);
        }
        Resynced::Alone(whole, error) => {
            let name = &whole.spec.text;
            let state =
                damage_of(found, plan.stale).unwrap_or_else(|| "this device of the journal is out of date".into());
            notes.push(format!("{error}; {state}, and {name} is used alone"));
            found.devices = vec![*whole];
            found.superblocks.remove(plan.stale);
            found.journal.devices[0].0 = DriveId(0);
        }
    }
    Ok(())
}

/// The damage of this device, if it is not merely stale.
fn damage_of(found: &FoundDevices, device: usize) -> Option<String> {
    found.damaged_half.as_ref().filter(|(damaged, _)| *damaged == device).map(|(_, error)| half_text(error))
}

/// The damage of one of two devices in words. The remedies for a journal without a whole device do not belong here.
pub(super) fn half_text(error: &JournalError) -> String {
    match error {
        JournalError::Damaged { sequence, at, fault, .. } => format!(
            "this device of the journal has lost acknowledged entries, which the other one has: entry {sequence} should be at \
             byte {}, but {fault}",
            u128::from(at.get()) * 512
        ),
        other => format!("this device of the journal is damaged, and the other one is whole: {other}"),
    }
}

fn plan_of(found: &FoundDevices) -> Option<ResyncPlan> {
    ResyncPlan::of(&found.journal, [DriveId(0), DriveId(1)], &found.superblocks)
}

enum Resynced {
    /// Both devices are up to date.
    Both(Vec<OpenedMember>),
    /// One has everything; why the other one does not.
    Alone(Box<OpenedMember>, JournalStartError),
}

fn carry_out(
    plan: &ResyncPlan,
    leased: &Leased,
    held: &HangCheck,
    silence_max: Nanos,
) -> Result<Resynced, JournalStartError> {
    let (planned, lent_to) = (plan.clone(), leased.clone());
    let asked =
        ask("journal-resync", move |heartbeat| ResyncThread { plan: planned, leased: lent_to, heartbeat }.all());
    let answer = asked.and_then(|asked| held.wait(asked, silence_max, leased.specs.iter()));
    let name = |device: usize| leased.specs[device].text.clone();
    let (failed, error) = match answer {
        Ok(Ok(())) => return Ok(Resynced::Both(leased.take_back())),
        Ok(Err(failed)) => failed,
        Err(unanswered) => {
            // A device that is not returned hangs. If that is the stale one, nothing was written to the other one.
            let (best, behind) = (leased.take(plan.best), leased.take(plan.stale));
            let silent = if best.is_some() { plan.stale } else { plan.best };
            let is_behind = unanswered == Unanswered::Silent && behind.is_none();
            let error = unanswered_by(name(silent), unanswered, silence_max);
            return match best {
                Some(best) if is_behind => Ok(Resynced::Alone(Box::new(best), error)),
                _ => Err(error),
            };
        }
    };
    match leased.take(plan.best) {
        Some(best) if failed == plan.stale => Ok(Resynced::Alone(Box::new(best), error)),
        _ => Err(error),
    }
}

/// The error, and the index of its device.
type DeviceFailure = (usize, JournalStartError);

/// A thread that brings a device up to date.
struct ResyncThread {
    plan: ResyncPlan,
    leased: Leased,
    heartbeat: Heartbeat,
}

impl ResyncThread {
    fn all(&self) -> Result<(), DeviceFailure> {
        self.check_size()?;
        for step in self.plan.steps() {
            match step {
                ResyncStep::Superblock { device, copy, claim } => {
                    let superblock = self.plan.superblock(device, claim);
                    self.with(device, |member| write_copy(member, &superblock, copy))?;
                }
                ResyncStep::Copy { at, sectors } => self.copy_piece(at, sectors)?,
                ResyncStep::Flush { device } => self.with(device, |member| sync(member))?,
            }
        }
        Ok(())
    }

    /// Use a device; it has answered when this returns.
    fn with<T>(
        &self,
        device: usize,
        work: impl FnOnce(&mut OpenedMember) -> Result<T, JournalStartError>,
    ) -> Result<T, DeviceFailure> {
        let done = self.leased.with(device, work);
        self.heartbeat.beat();
        // The caller has stopped waiting.
        let done = done.unwrap_or_else(|| Err(JournalStartError::Hangs(self.leased.specs[device].text.clone())));
        done.map_err(|error| (device, error))
    }

    fn check_size(&self) -> Result<(), DeviceFailure> {
        let behind = self.plan.stale;
        let ring = self.plan.superblock(behind, MirrorClaim::Whole).ring();
        let last = journal_superblock_lba(SuperblockCopy::Last, self.leased.numbered[behind].capacity);
        if last.map_or(0, DriveLba::get) < ring.start.get() + ring.sectors.get() {
            let device = self.leased.specs[behind].text.clone();
            let why = "it has become smaller than the other device's log".into();
            return Err((behind, JournalStartError::Io { device, why }));
        }
        Ok(())
    }

    fn copy_piece(&self, at: DriveLba, len: Sectors) -> Result<(), DeviceFailure> {
        let mut buffer = vec![0; usize::try_from(len.bytes().get()).expect("1 MiB")];
        self.with(self.plan.best, |device| {
            let name = device.spec.text.clone();
            let read = device.read_at(at, &mut buffer);
            read.map_err(|error| JournalStartError::Io { device: name, why: error.to_string() })
        })?;
        self.with(self.plan.stale, |device| write(device, at, &buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_pair::Pair;
    use super::*;

    /// A pair with a stale first device; this device hangs during the repair.
    fn while_hangs(name: &str, device: usize) -> (Pair, Result<Resynced, JournalStartError>) {
        let pair = Pair::new(name);
        let mut found = pair.look(&HangCheck::default()).expect("both can be read");
        let plan = plan_of(&found).expect("one is stale");
        assert_eq!((plan.best, plan.stale), (1, 0));
        let leased = Leased::new(std::mem::take(&mut found.devices));
        let hangs = leased.devices[device].lock().expect("no other thread uses it");
        let resynced = carry_out(&plan, &leased, &HangCheck::default(), Nanos::ZERO);
        drop(hangs);
        (pair, resynced)
    }

    #[test]
    fn a_stale_device_that_does_not_answer_is_left_out() {
        let (pair, resynced) = while_hangs("heal-behind", 0);
        let Ok(Resynced::Alone(whole, error)) = resynced else { panic!("it is not needed") };
        assert_eq!(whole.spec, pair.specs[1]);
        assert_eq!(error, JournalStartError::Silent(pair.specs[0].text.clone(), Nanos::ZERO));
    }

    #[test]
    fn if_the_better_device_does_not_answer_no_device_is_used() {
        let (pair, resynced) = while_hangs("heal-best", 1);
        let Err(error) = resynced else { panic!("no other thread has it") };
        assert_eq!(error, JournalStartError::Silent(pair.specs[1].text.clone(), Nanos::ZERO));
    }

    #[test]
    fn a_stale_device_that_was_brought_up_to_date_equals_the_other_one() {
        let pair = Pair::new("heal");
        let (held, mut notes) = (HangCheck::default(), Vec::new());
        let mut found = pair.look(&held).expect("both can be read");
        resync(&mut found, &mut notes, &held, Nanos::from_secs(3600)).expect("they answer");
        assert_eq!((found.devices.len(), found.journal.devices.len()), (2, 2));
        assert!(notes[0].contains("j0: this device of the journal was stale"), "{notes:?}");
        drop(found);
        let found = pair.look(&held).expect("both can be read");
        assert!(plan_of(&found).is_none(), "no device is stale any more");
    }
}
