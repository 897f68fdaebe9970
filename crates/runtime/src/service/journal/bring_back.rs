//! The thread that tries to bring back a lost journal, or a dropped device of it, until it is back. It is a thread of
//! its own because an open may take long.

use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use openraid_core::admin::{JournalLoss, JournalState};

use super::{JoinRequest, JournalRequest, JournalStartError, LastUse};
use crate::limits::{JOURNAL_RETRY_LOOKS_MAX, JOURNAL_RETRY_PAUSE};
use crate::member::MemberSpec;
use crate::service::{ServiceHandle, ServiceStatus};

/// News of the keeper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalNews {
    /// The journal is back, with notes for the administrator.
    Back(Vec<String>),
    /// The journal is still lost, for another reason than before.
    StillAway(String),
    /// One of its two devices is still lost, for another reason than before.
    DeviceAway(String),
}

/// The keeper of a service's journal.
#[derive(Debug)]
pub struct JournalKeeper {
    news: Mutex<mpsc::Receiver<JournalNews>>,
    shared: Arc<Shared>,
}

/// State that the keeper's thread and others share.
#[derive(Debug)]
struct Shared {
    request: Mutex<JournalRequest>,
    trouble: Mutex<Option<String>>,
}

impl Shared {
    fn request(&self) -> JournalRequest {
        self.request.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl JournalKeeper {
    /// Watch over the journal of a service until the service ends.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(handle: ServiceHandle, request: JournalRequest) -> Result<Self, JournalStartError> {
        let (sender, news) = mpsc::channel();
        let shared = Arc::new(Shared { request: Mutex::new(request), trouble: Mutex::new(None) });
        let for_keeper = Arc::clone(&shared);
        let spawned = thread::Builder::new().name("journal-keeper".into()).spawn(move || {
            let mut keeper =
                Keeping { handle, shared: for_keeper, sender, whole: Pace::default(), device: Pace::default() };
            while keeper.look() {
                thread::sleep(Duration::from_nanos(JOURNAL_RETRY_PAUSE.get()));
            }
        });
        match spawned {
            Ok(_) => Ok(Self { news: Mutex::new(news), shared }),
            Err(error) => Err(JournalStartError::Service(crate::service::ServiceError::Thread(error.to_string()))),
        }
    }

    /// News since the last call.
    #[must_use]
    pub fn news(&self) -> Vec<JournalNews> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).try_iter().collect()
    }

    /// Why the last attempt to bring back the journal, or its other device, failed.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The journal that is watched.
    #[must_use]
    pub fn request(&self) -> JournalRequest {
        self.shared.request()
    }

    /// The journal was opened: a device that was left out before is not valid any more.
    pub fn remember_use(&self, used: LastUse) {
        let mut request = self.shared.request.lock().unwrap_or_else(PoisonError::into_inner);
        let devices = request.last_use(used.journal).map_or(0, |known| known.devices).max(used.devices);
        request.last_uses.retain(|known| known.journal != used.journal);
        request.last_uses.push(LastUse { devices, ..used });
    }

    /// The journal is on these devices from now on.
    pub fn set_devices(&self, devices: Vec<MemberSpec>) {
        self.shared.request.lock().unwrap_or_else(PoisonError::into_inner).devices = devices;
    }
}

/// The devices of a request that do not carry the journal now.
#[must_use]
pub fn missing(status: &ServiceStatus, request: &JournalRequest) -> Vec<MemberSpec> {
    let Some(journal) = &status.journal else { return request.devices.clone() };
    let joining = journal.joining.map(|join| join.drive);
    let carries = |spec: &&MemberSpec| {
        let mut used = journal.devices.iter().filter(|(drive, works)| *works || joining == Some(*drive));
        used.any(|(drive, _)| status.drives.iter().any(|view| view.drive == *drive && view.member == spec.text))
    };
    request.devices.iter().filter(|spec| !carries(spec)).cloned().collect()
}

struct Keeping {
    handle: ServiceHandle,
    shared: Arc<Shared>,
    sender: mpsc::Sender<JournalNews>,
    /// How often the whole journal is brought back.
    whole: Pace,
    /// The pace for one of its two devices.
    device: Pace,
}

impl Keeping {
    /// Look at the journal, and try to bring lost devices back; false when the service has ended.
    fn look(&mut self) -> bool {
        let Ok(status) = self.handle.status() else { return false };
        match status.journal.as_ref().map(|journal| journal.state) {
            Some(JournalState::Live) => {
                self.whole.works();
                self.look_at_devices(&status);
            }
            Some(JournalState::Opening | JournalState::Closing) => {}
            // It works. It is full of the writes of a failed array, and would be full again at once unless that array
            // is back.
            Some(JournalState::Lost(JournalLoss::Full)) if !is_room(&status) => {}
            Some(JournalState::Lost(_) | JournalState::None) | None => {
                if self.whole.count_look() {
                    let back = self.bring_back();
                    self.tell(back, JournalNews::StillAway);
                }
            }
        }
        true
    }

    /// Check whether one of two devices is lost.
    fn look_at_devices(&mut self, status: &ServiceStatus) {
        let request = self.shared.request();
        let away = missing(status, &request);
        // Also wait until the drop of a device is recorded.
        if status.journal.as_ref().is_some_and(|journal| journal.joining.is_some() || journal.epoch_pending) {
            return;
        }
        if away.is_empty() {
            if self.device.works() {
                self.tell(Ok(None), JournalNews::DeviceAway);
            }
            return;
        }
        if !self.device.count_look() {
            return;
        }
        let device = away[0].clone();
        let join = JoinRequest { device, controller: request.controller, overwrite: false, open: request.open };
        let joined = self.handle.join_journal(&join);
        if joined.is_ok() {
            self.device.came();
        }
        self.tell(joined.map(|()| None), JournalNews::DeviceAway);
    }

    /// Report the result of an attempt, if it is new.
    fn tell(&self, result: Result<Option<Vec<String>>, JournalStartError>, away: impl Fn(String) -> JournalNews) {
        let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // There may be no listener.
        match result {
            Ok(notes) => {
                *trouble = None;
                if let Some(notes) = notes {
                    let _ = self.sender.send(JournalNews::Back(notes));
                }
            }
            Err(error) => {
                let text = error.to_string();
                if trouble.as_ref() != Some(&text) {
                    let _ = self.sender.send(away(text.clone()));
                    *trouble = Some(text);
                }
            }
        }
    }

    /// Notes for the administrator about a journal that is back; none if another process has opened it.
    fn bring_back(&mut self) -> Result<Option<Vec<String>>, JournalStartError> {
        let is_away = |state| matches!(state, JournalState::Lost(_) | JournalState::None);
        let back = self.handle.reopen_journal(&self.shared.request(), is_away);
        // A journal that came back and was lost at once counts, too.
        if matches!(back, Ok(Some(_)) | Err(JournalStartError::LostAtOnce)) {
            self.whole.came();
        }
        Ok(back?.map(|started| started.notes))
    }
}

/// The pace of attempts to bring something back. A device that stays away is tried with each look. For a device that
/// comes and goes the pause doubles, until the device has stayed for as long as the pause was.
#[derive(Debug)]
struct Pace {
    /// Number of looks before the next attempt.
    wait: u32,
    /// The same after the next return.
    pause: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { wait: 0, pause: 1 }
    }
}

impl Pace {
    /// Count a look at a device that is away; true if it is tried with this look.
    const fn count_look(&mut self) -> bool {
        let is_due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    /// It came back, or began to.
    fn came(&mut self) {
        (self.wait, self.pause) = (self.pause, (2 * self.pause).min(JOURNAL_RETRY_LOOKS_MAX));
    }

    /// It works; true if it has stayed long enough.
    const fn works(&mut self) -> bool {
        self.wait = self.wait.saturating_sub(1);
        if self.wait == 0 {
            self.pause = 1;
        }
        self.wait == 0
    }
}

/// Is every array there again that has entries in the full journal? Then the entries go to the members.
fn is_room(status: &ServiceStatus) -> bool {
    use openraid_core::admin::Health;
    let Some(journal) = &status.journal else { return false };
    let runs = |uuid| {
        status.arrays.iter().any(|view| {
            let array = &view.status;
            array.health != Health::Failed && array.superblock.as_ref().is_some_and(|s| s.set_uuid == uuid)
        })
    };
    journal.arrays.iter().filter(|array| array.waiting > 0).all(|array| runs(array.set_uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With which of this many looks something is tried that comes each time and is gone at the next look.
    fn tried(pace: &mut Pace, looks: u32) -> Vec<u32> {
        let mut tried = Vec::new();
        for look in 0..looks {
            if pace.count_look() {
                pace.came();
                tried.push(look);
            }
        }
        tried
    }

    #[test]
    fn a_device_that_comes_and_goes_is_attached_ever_less_often_until_it_stays() {
        let mut pace = Pace::default();
        assert_eq!(tried(&mut pace, 40), [0, 2, 5, 10, 19, 36]);
        // For less than it was waited for.
        let mut pace = Pace { wait: 4, pause: 8 };
        assert!((0..3).all(|_| !pace.works()));
        assert_eq!(tried(&mut pace, 20), [1, 10]);
        let mut pace = Pace { wait: 4, pause: 8 };
        assert_eq!([(); 5].map(|()| pace.works()), [false, false, false, true, true]);
        assert_eq!(tried(&mut pace, 6), [0, 2, 5], "as often as at first");
    }

    #[test]
    fn a_device_that_comes_and_goes_is_attached_from_time_to_time_however_often_it_left() {
        let tried = tried(&mut Pace::default(), 2000);
        let pauses = tried.windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(pauses.max(), Some(JOURNAL_RETRY_LOOKS_MAX + 1));
    }

    #[test]
    fn a_device_that_stays_away_is_tried_at_each_check() {
        let mut pace = Pace::default();
        assert!((0..100).all(|_| pace.count_look()));
    }
}
