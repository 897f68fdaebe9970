//! The state that all requests share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use openraid_status::ArrayModel;

use crate::auth::secret::secret;
use crate::auth::sessions::{Sessions, UserSession};
use crate::auth::sign_in_turns::Turns;
use crate::auth::tokens::Tokens;
use crate::auth::users::Users;
use crate::controller::{Controller, Refusal};
use crate::http::rate_limit::RequestRates;
use crate::limits::SNAPSHOT_AGE_MAX;
use crate::machine_facts::MachineIdentity;
use crate::redfish::events::Listeners;
use crate::redfish::tasks::Tasks;

/// What all requests share.
pub struct ApiState {
    /// The server.
    pub controller: Arc<dyn Controller>,
    pub users: Users,
    /// Sessions and one-time links.
    pub sessions: Sessions,
    /// Turns of sign-ins over the loopback.
    pub turns: Turns,
    /// Tokens that last.
    pub tokens: Tokens,
    /// Requests by address.
    pub rates: RequestRates,
    pub machine: MachineIdentity,
    /// Host names by which clients may come, besides addresses and the machine's own name.
    pub names: Vec<String>,
    /// Connections are encrypted.
    pub is_tls: bool,
    /// Only clients of this machine can come.
    pub is_loopback: bool,
    /// Metrics are given also under the names that node_exporter has for md.
    pub metrics_md: bool,
    /// Drives that new arrays may be made of.
    pub drives: Vec<String>,
    /// Tasks, as Redfish shows them.
    pub tasks: Tasks,
    /// Streams of events that Redfish has opened.
    pub listeners: Listeners,
    /// The identity of this service, as Redfish tells it: another one after each start.
    pub service_uuid: String,
    /// Held during a change with `If-Match`: of two changes for the same version only one succeeds.
    pub conditional: Mutex<()>,
    /// Streams of events now.
    pub streams: AtomicUsize,
    snapshot: Mutex<Option<(Instant, Arc<Vec<ArrayModel>>)>>,
}

/// The parts of a state.
pub struct Parts {
    /// The server.
    pub controller: Arc<dyn Controller>,
    pub users: Users,
    /// Sessions and one-time links.
    pub sessions: Sessions,
    /// Tokens that last.
    pub tokens: Tokens,
    /// Host names.
    pub names: Vec<String>,
    /// Connections are encrypted.
    pub is_tls: bool,
    /// Only clients of this machine can come.
    pub is_loopback: bool,
    pub metrics_md: bool,
    /// Drives that new arrays may be made of.
    pub drives: Vec<String>,
}

impl ApiState {
    /// A state at the start.
    pub fn new(parts: Parts) -> Self {
        let Parts { controller, users, sessions, tokens, names, is_tls, is_loopback, metrics_md, drives } = parts;
        Self {
            controller,
            users,
            sessions,
            turns: Turns::default(),
            tokens,
            rates: RequestRates::default(),
            machine: MachineIdentity::here(),
            names,
            is_tls,
            is_loopback,
            metrics_md,
            drives,
            tasks: Tasks::default(),
            listeners: Listeners::default(),
            service_uuid: secret()[..32].into(),
            conditional: Mutex::default(),
            streams: AtomicUsize::new(0),
            snapshot: Mutex::default(),
        }
    }

    /// Is this session open, or the token that it was made of not revoked?
    pub fn is_signed_in(&self, session: &UserSession) -> bool {
        self.sessions.all().iter().any(|known| known.number == session.number)
            || self.tokens.all().is_ok_and(|all| all.iter().any(|token| session.is_of_token(token)))
    }

    /// All arrays. Readers within a short time share a state, so that many of them cost the server no more than one.
    ///
    /// # Errors
    /// The server is ending.
    pub fn arrays(&self) -> Result<Arc<Vec<ArrayModel>>, Refusal> {
        let mut snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, arrays)) = snapshot.as_ref().filter(|(at, _)| at.elapsed() < SNAPSHOT_AGE_MAX) {
            let _ = at;
            return Ok(Arc::clone(arrays));
        }
        let arrays = Arc::new(self.controller.arrays()?);
        *snapshot = Some((Instant::now(), Arc::clone(&arrays)));
        Ok(arrays)
    }

    /// Something was changed: the next reader asks the server.
    pub fn forget_snapshot(&self) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
