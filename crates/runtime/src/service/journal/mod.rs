//! The journal of a service: made, found, used, and brought back after a loss.
//!
//! ```text
//!  make           superblocks on one or two devices
//!  age            a journal that is older than what others know of it is refused
//!  find           superblocks and log are read, on threads that may be silent for a limited time; nothing is written
//!  mirror_resync  the stale one of two devices gets the data of the other
//!  attach         the devices go to the shard, the log to the engine (in this file)
//!  rejoin         a device comes (back) to a journal that is in use
//!  keeper         a journal that was lost, or one of its devices, is looked for again
//!  hanging        devices that are still open because they do not answer
//!  lost           places of discarded log data in its array
//!  device_lease   devices that are read and written on threads which may hang
//!  heartbeat      waiting for such a thread, for a limited time without a sign of it
//! ```
//!
//! It must never use the journal of another controller, or one of two devices alone that may lack writes which the
//! other one acknowledged.

mod bring_back;
mod device_lease;
mod discard_loss;
mod error;
mod find;
mod hanging_devices;
mod heartbeat;
mod mirror_resync;
mod older_copy;
mod rejoin;
#[cfg(test)]
mod test_pair;
mod write_superblocks;

pub use bring_back::{missing, JournalKeeper, JournalNews};
pub use discard_loss::{lost_ranges, LostRange};
pub use error::JournalStartError;
pub use find::{look, sum, tally, ArrayTally, FoundDevices, LookFor};
pub(crate) use hanging_devices::Hanging;
pub use older_copy::{JournalSighting, Witness};
pub use rejoin::JoinRequest;
pub use write_superblocks::{adopt, discard, make};

use std::sync::PoisonError;

use openraid_core::admin::{AdminCommand, JournalState};
use openraid_format::Uuid;
use openraid_units::DriveId;

use super::{ServiceHandle, ServiceStatus};
use crate::limits::JOURNAL_SILENCE_MAX;
use crate::member::{MemberSpec, OpenOptions, OpenedMember};
use find::look_beside;

/// The journal to use, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalRequest {
    /// Its devices, one or two: files, partitions, drives.
    pub devices: Vec<MemberSpec>,
    /// The controller that it must belong to.
    pub controller: Uuid,
    /// Use one of two devices without the other one, although that one may hold more acknowledged writes.
    pub alone: bool,
    /// The controller's last use of each journal.
    pub last_uses: Vec<LastUse>,
    /// What others know of journals.
    pub seen: Vec<JournalSighting>,
    /// How to open the devices.
    pub open: OpenOptions,
}

/// The last use of a journal: a device that was left out then is stale, whatever its superblock says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastUse {
    pub journal: Uuid,
    /// Its epoch after that opening.
    pub epoch: u64,
    /// Maximum number of its devices.
    pub devices: u8,
    /// The last entry of it that is known to be durable.
    pub entry: u64,
}

impl JournalRequest {
    fn last_use(&self, journal: Uuid) -> Option<&LastUse> {
        self.last_uses.iter().find(|known| known.journal == journal)
    }
}

/// Number of epochs that each opening takes. The first is the epoch of the opening. Each of the others is used when a
/// device of the two is dropped. Two devices that are used one without the other never have the same epoch, as long as
/// their registries remember it.
const EPOCHS_OF_AN_OPENING: u64 = 1 << 20;

/// The last epoch before the next opening.
fn end_of_opening(epoch: u64) -> u64 {
    epoch / EPOCHS_OF_AN_OPENING * EPOCHS_OF_AN_OPENING + (EPOCHS_OF_AN_OPENING - 1)
}

/// A journal that is in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JournalStarted {
    /// Notes for the administrator: a missing or stale device, fallbacks.
    pub notes: Vec<String>,
    /// The device that had lost entries which the other one has, and its damage in words.
    pub damaged_half: Option<(String, String)>,
}

impl ServiceHandle {
    /// Open a journal for use, before the arrays that need it are started.
    ///
    /// # Errors
    /// Why it cannot be used; nothing was written except to a stale device.
    pub fn attach_journal(&self, request: &JournalRequest) -> Result<JournalStarted, JournalStartError> {
        let status = self.status()?;
        let wanted = LookFor {
            controller: Some(request.controller),
            void: void_arrays(&status),
            last_uses: request.last_uses.clone(),
            damaged: false,
        };
        let held = self.held()?;
        let mut found = look_beside(&request.devices, request.open, &wanted, &held)?;
        let mut notes = std::mem::take(&mut found.notes);
        if found.is_half() && !request.alone {
            return Err(found.other_missing());
        }
        let last = request.last_use(found.journal.superblock.journal);
        let known = last.map_or(0, |last| last.epoch);
        if found.journal.epoch < known && !request.alone {
            return Err(found.left_behind());
        }
        older_copy::check(&found, request)?;
        let was_half = found.is_half();
        let damaged_half = found
            .damaged_half
            .as_ref()
            .map(|(device, error)| (found.devices[*device].spec.text.clone(), mirror_resync::half_text(error)));
        mirror_resync::resync(&mut found, &mut notes, &held, JOURNAL_SILENCE_MAX)?;
        if found.devices.len() == 1 && (was_half || last.is_some_and(|last| last.devices == 2)) {
            notes.push(
                "one of the journal's two devices is not there, and the other one is used alone; `openraid journal attach \
                 DEVICE` gives it a second one again"
                    .into(),
            );
        }
        notes.extend(found.devices.iter().flat_map(|device| device.notes.clone()));
        let numbers = self.attach_devices(found.devices)?;
        let mut journal = found.journal;
        journal.epoch = end_of_opening(journal.epoch.max(known));
        for (drive, _) in &mut journal.devices {
            *drive = numbers[drive.index()];
        }
        if let Err(error) = self.admin(AdminCommand::AttachJournal(journal)) {
            // The reason why it is not used is reported; a device that cannot be detached yet is known as hanging.
            let _ = self.detach_all(&numbers);
            return Err(error.into());
        }
        Ok(JournalStarted { notes, damaged_half })
    }

    fn attach_devices(&self, devices: Vec<OpenedMember>) -> Result<Vec<DriveId>, JournalStartError> {
        let mut numbers = Vec::new();
        for device in devices {
            match self.attach(device) {
                Ok(drive) => numbers.push(drive),
                Err(error) => {
                    self.detach_all(&numbers)?;
                    return Err(error.into());
                }
            }
        }
        Ok(numbers)
    }

    /// Open the journal again, if its state asks for it; `None` if it no longer does.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn reopen_journal(
        &self,
        request: &JournalRequest,
        wants: impl Fn(JournalState) -> bool,
    ) -> Result<Option<JournalStarted>, JournalStartError> {
        let wants_now = || -> Result<bool, JournalStartError> {
            Ok(wants(self.status()?.journal.map_or(JournalState::None, |journal| journal.state)))
        };
        // A command that does not need the journal does not wait until it is open, which may take minutes.
        if !wants_now()? {
            return Ok(None);
        }
        let _alone = self.reopening.lock().unwrap_or_else(PoisonError::into_inner);
        if !wants_now()? {
            return Ok(None);
        }
        let mut request = request.clone();
        request.seen.extend(self.status()?.journal.as_ref().map(JournalSighting::here));
        self.release_journal()?;
        let started = self.attach_journal(&request)?;
        self.wait_for_journal()?;
        Ok(Some(started))
    }

    /// Release the journal and its devices. A device with commands that it never answered stays attached until it
    /// answers.
    ///
    /// # Errors
    /// Arrays use it.
    pub fn release_journal(&self) -> Result<(), JournalStartError> {
        let Some(journal) = self.status()?.journal else { return Ok(()) };
        self.admin(AdminCommand::DetachJournal)?;
        let drives: Vec<DriveId> = journal.devices.iter().map(|(drive, _)| *drive).collect();
        self.detach_all(&drives)
    }

    /// Wait until the journal can acknowledge writes.
    ///
    /// # Errors
    /// The service has ended, or the journal was lost at once.
    pub fn wait_for_journal(&self) -> Result<(), JournalStartError> {
        loop {
            match self.status()?.journal.map(|journal| journal.state) {
                Some(JournalState::Live) => return Ok(()),
                Some(JournalState::Opening) => std::thread::sleep(OPENING_PAUSE),
                _ => return Err(JournalStartError::LostAtOnce),
            }
        }
    }
}

/// How often a journal that is being opened is looked at.
const OPENING_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// The sets without entries in any journal: all their entries in a journal are void.
fn void_arrays(status: &ServiceStatus) -> Vec<Uuid> {
    let views = status.arrays.iter().map(|view| &view.status);
    let free = views.filter(|status| !status.in_journal);
    free.filter_map(|status| Some(status.superblock.as_ref()?.set_uuid)).collect()
}
