//! A journal that was lost is looked for again, until it is back; so is the one of its two devices that was dropped. A
//! thread of its own: opening may take its time.

use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use openraid_core::admin::{JournalLoss, JournalState};

use super::{JoinRequest, JournalRequest, JournalStartError, LastUse};
use crate::limits::{JOURNAL_RETRY_LOOKS_MAX, JOURNAL_RETRY_PAUSE};
use crate::member::MemberSpec;
use crate::service::{ServiceHandle, ServiceStatus};

/// What the keeper tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalNews {
    /// The journal is back, with what an administrator should know.
    Back(Vec<String>),
    /// It is not, and that for another reason than before.
    StillAway(String),
    /// One of its two devices is not, and that for another reason than before.
    DeviceAway(String),
}

/// The keeper of a service's journal.
#[derive(Debug)]
pub struct JournalKeeper {
    news: Mutex<mpsc::Receiver<JournalNews>>,
    shared: Arc<Shared>,
}

/// What the keeper's thread and others look at.
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
        let own = Arc::clone(&shared);
        let spawned = thread::Builder::new().name("journal-keeper".into()).spawn(move || {
            let mut keeper = Keeping { handle, shared: own, sender, wait: 0, pause: 1 };
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

    /// Why the journal, or its other device, could not be brought back when that was tried last.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which journal is watched over.
    #[must_use]
    pub fn request(&self) -> JournalRequest {
        self.shared.request()
    }

    /// The journal was opened: a device that was left before does not count any more.
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
    /// So many looks pass before a device is asked again, and how many it is the next time: one that comes and goes is
    /// asked ever less often.
    wait: u32,
    pause: u32,
}

impl Keeping {
    /// Look at the journal, and try to bring back what is lost; false when the service has ended.
    fn look(&mut self) -> bool {
        let Ok(status) = self.handle.status() else { return false };
        match status.journal.as_ref().map(|journal| journal.state) {
            Some(JournalState::Live) => self.look_at_devices(&status),
            Some(JournalState::Opening | JournalState::Closing) => {}
            // It works. It is full of what a failed array needs, and would be again at once, unless that is back.
            Some(JournalState::Lost(JournalLoss::Full)) if !is_room(&status) => {}
            Some(JournalState::Lost(_) | JournalState::None) | None => {
                let back = self.bring_back();
                self.tell(back.map(Some), JournalNews::StillAway);
            }
        }
        true
    }

    /// One of two devices may be away.
    fn look_at_devices(&mut self, status: &ServiceStatus) {
        let request = self.shared.request();
        let away = missing(status, &request);
        // Also for the moment until it is written down that one was dropped.
        let joins = status.journal.as_ref().is_some_and(|journal| journal.joining.is_some() || journal.epoch_pending);
        if away.is_empty() || joins {
            // It has to stay for as long as it was waited for, before it is asked as often as at first.
            self.wait = self.wait.saturating_sub(1);
            if self.wait == 0 && !joins {
                self.pause = 1;
                self.tell(Ok(None), JournalNews::DeviceAway);
            }
            return;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return;
        }
        (self.wait, self.pause) = (self.pause, (2 * self.pause).min(JOURNAL_RETRY_LOOKS_MAX));
        let device = away[0].clone();
        let join = JoinRequest { device, controller: request.controller, fresh: false, open: request.open };
        let joined = self.handle.join_journal(&join);
        self.tell(joined.map(|()| None), JournalNews::DeviceAway);
    }

    /// Tell what came of an attempt, where that is news.
    fn tell(&self, result: Result<Option<Vec<String>>, JournalStartError>, away: impl Fn(String) -> JournalNews) {
        let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody may listen.
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

    fn bring_back(&self) -> Result<Vec<String>, JournalStartError> {
        self.handle.release_journal()?;
        let started = self.handle.attach_journal(&self.shared.request())?;
        self.handle.wait_for_journal()?;
        Ok(started.notes)
    }
}

/// Is every array that the full journal holds something for there again? Then what it holds goes to the members.
fn is_room(status: &ServiceStatus) -> bool {
    use openraid_core::admin::Health;
    let Some(journal) = &status.journal else { return false };
    let runs = |uuid| {
        status.arrays.iter().any(|view| {
            let own = &view.status;
            own.health != Health::Failed && own.superblock.as_ref().is_some_and(|s| s.set_uuid == uuid)
        })
    };
    journal.arrays.iter().filter(|own| own.waiting > 0).all(|own| runs(own.set_uuid))
}
