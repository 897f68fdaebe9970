//! A journal that was lost is looked for again, until it is back. A thread of its own: opening may take its time.

use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use openraid_core::admin::{JournalLoss, JournalState};

use super::{JournalRequest, JournalStartError};
use crate::limits::JOURNAL_RETRY_PAUSE;
use crate::service::ServiceHandle;

/// What the keeper tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalNews {
    /// The journal is back, with what an administrator should know.
    Back(Vec<String>),
    /// It is not, and that for another reason than before.
    StillAway(String),
}

/// The keeper of a service's journal.
#[derive(Debug)]
pub struct JournalKeeper {
    news: Mutex<mpsc::Receiver<JournalNews>>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl JournalKeeper {
    /// Watch over the journal of a service until the service ends.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn start(handle: ServiceHandle, request: JournalRequest) -> Result<Self, JournalStartError> {
        let (sender, news) = mpsc::channel();
        let trouble = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&trouble);
        let spawned = thread::Builder::new().name("journal-keeper".into()).spawn(move || {
            let mut keeper = Keeping { handle, request, sender, trouble: shared };
            while keeper.look() {
                thread::sleep(Duration::from_nanos(JOURNAL_RETRY_PAUSE.get()));
            }
        });
        match spawned {
            Ok(_) => Ok(Self { news: Mutex::new(news), trouble }),
            Err(error) => Err(JournalStartError::Service(crate::service::ServiceError::Thread(error.to_string()))),
        }
    }

    /// News since the last call.
    #[must_use]
    pub fn news(&self) -> Vec<JournalNews> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).try_iter().collect()
    }

    /// Why the journal could not be brought back when that was tried last.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Keeping {
    handle: ServiceHandle,
    request: JournalRequest,
    sender: mpsc::Sender<JournalNews>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Keeping {
    /// Look at the journal, and try to bring it back where it is lost; false when the service has ended.
    fn look(&mut self) -> bool {
        let Ok(status) = self.handle.status() else { return false };
        match status.journal.map(|journal| journal.state) {
            Some(JournalState::Live | JournalState::Opening | JournalState::Closing) => return true,
            // It works. It is full of what a failed array needs, and would be again at once.
            Some(JournalState::Lost(JournalLoss::Full)) => return true,
            Some(JournalState::Lost(JournalLoss::Device) | JournalState::None) | None => {}
        }
        let back = self.bring_back();
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody may listen.
        match back {
            Ok(notes) => {
                *trouble = None;
                let _ = self.sender.send(JournalNews::Back(notes));
            }
            Err(error) => {
                let text = error.to_string();
                if trouble.as_ref() != Some(&text) {
                    let _ = self.sender.send(JournalNews::StillAway(text.clone()));
                    *trouble = Some(text);
                }
            }
        }
        true
    }

    fn bring_back(&self) -> Result<Vec<String>, JournalStartError> {
        self.handle.release_journal()?;
        let started = self.handle.attach_journal(&self.request)?;
        self.handle.wait_for_journal()?;
        Ok(started.notes)
    }
}
