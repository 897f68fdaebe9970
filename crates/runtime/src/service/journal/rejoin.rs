//! A device joins a journal that is in use: the one that was dropped when it answers again, or a new one in its place.
//!
//! Its superblock is read first, with a time limit, so that a hung device delays no command; the engine then brings it
//! up to date. A device that may have carried the journal alone is refused: it may hold acknowledged writes that the
//! journal lacks.

use openraid_core::admin::{AdminCommand, JournalState, JournalStatus};
use openraid_format::{JournalError, JournalSuperblock, Uuid};

use super::find::DeviceLook;
use super::JournalStartError;
use crate::limits::PROBE_TIME_MAX;
use crate::member::{MemberSpec, OpenOptions};
use crate::service::ServiceHandle;

/// The device that joins, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinRequest {
    /// A file, partition or drive.
    pub device: MemberSpec,
    /// The controller that the journal belongs to.
    pub controller: Uuid,
    /// Its content may be lost: it was checked before.
    pub overwrite: bool,
    /// How to open it.
    pub open: OpenOptions,
}

impl ServiceHandle {
    /// Let a device join the journal. It works when the engine has brought it up to date ([`JournalStatus::joining`]
    /// has the progress).
    ///
    /// # Errors
    /// Why it may not; nothing was written to it.
    pub fn join_journal(&self, request: &JoinRequest) -> Result<(), JournalStartError> {
        let status = self.status()?.journal.filter(|journal| journal.state == JournalState::Live);
        let status = status.ok_or(JournalStartError::NotLive)?;
        check_time(&status)?;
        if let Some((dropped, _)) = status.devices.iter().find(|(_, works)| !works) {
            self.admin(AdminCommand::ReleaseJournalDevice)?;
            self.detach_all(&[*dropped])?;
        }
        let held = self.held()?;
        let (opened, found) = DeviceLook::begin(&request.device, request.open, &held).wait(PROBE_TIME_MAX)?;
        let (generation, epoch) = check(&found, &status, request)?;
        let drive = self.attach(opened)?;
        if let Err(error) = self.admin(AdminCommand::JoinJournal { drive, generation, epoch }) {
            self.detach_all(&[drive])?;
            return Err(JournalStartError::JoinRefused { device: request.device.text.clone(), error });
        }
        Ok(())
    }
}

/// May any device join now?
fn check_time(status: &JournalStatus) -> Result<(), JournalStartError> {
    if status.joining.is_some() {
        return Err(JournalStartError::Joining);
    }
    // Until then a device that was just dropped seems to be as new as the working one.
    if status.epoch_pending {
        return Err(JournalStartError::EpochPending);
    }
    Ok(())
}

/// May it join? Returns its generation and epoch.
fn check(
    found: &Result<JournalSuperblock, JournalError>,
    status: &JournalStatus,
    request: &JoinRequest,
) -> Result<(u64, u64), JournalStartError> {
    let device = || request.device.text.clone();
    match found {
        Ok(superblock) if superblock.journal == status.uuid => {
            superblock
                .check_controller(request.controller)
                .map_err(|error| JournalStartError::Device { device: device(), error })?;
            let has_been_alone = superblock.mirrors == 1 || superblock.epoch >= status.epoch;
            if !superblock.unfinished && has_been_alone && !request.overwrite {
                return Err(JournalStartError::MayHoldMore(device()));
            }
            Ok((superblock.generation, superblock.epoch))
        }
        _ if request.overwrite => Ok((0, 0)),
        Ok(superblock) => {
            let error = JournalError::NotMirrors { one: status.uuid, other: superblock.journal };
            Err(JournalStartError::Device { device: device(), error })
        }
        Err(error) => Err(JournalStartError::Device { device: device(), error: *error }),
    }
}

#[cfg(test)]
mod tests {
    use openraid_core::journal::JournalCounters;
    use openraid_units::{DriveId, Sectors};

    use super::*;

    fn status(epoch_pending: bool) -> JournalStatus {
        JournalStatus {
            state: JournalState::Live,
            uuid: Uuid([2; 16]),
            epoch: 5,
            epoch_pending,
            devices: vec![(DriveId(0), true), (DriveId(1), false)],
            joining: None,
            ring: Sectors::ZERO,
            used: Sectors::ZERO,
            entries: 0,
            kept: Sectors::ZERO,
            keep_room: Sectors::ZERO,
            durable: 0,
            arrays: Vec::new(),
            pending_redos: 0,
            counters: JournalCounters::default(),
        }
    }

    #[test]
    fn a_device_must_try_again_while_a_higher_epoch_is_not_durable() {
        assert_eq!(check_time(&status(true)), Err(JournalStartError::EpochPending));
        assert_eq!(check_time(&status(false)), Ok(()));
        assert!(JournalStartError::EpochPending.to_string().contains("try again in a moment"));
    }
}
