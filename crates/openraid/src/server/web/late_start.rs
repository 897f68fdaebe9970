//! HTTP interfaces that cannot start: the arrays are served without them, an alarm says why, and it is tried again until it works.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use openraid_management::{Management, Options};
use openraid_status::EventName;

use super::super::Server;
use super::start;
use crate::alarms::Condition;
use crate::events::plain;
use crate::events::Severity;

/// Pause between two attempts to start the interfaces.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Interfaces that do not run yet.
#[derive(Debug)]
pub(in crate::server) struct LateConsole {
    options: Options,
    why: String,
    tried: Instant,
}

/// Start the HTTP interfaces. If they cannot start, the server continues without them, and tries again.
pub fn start_or_retry(server: &Arc<Server>, options: Options) -> Option<Arc<Management>> {
    let failed = match start(server, options.clone()) {
        Ok(management) => return Some(management),
        Err(failure) => failure.text(),
    };
    *server.late_console.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(LateConsole { options, why: failed, tried: Instant::now() });
    None
}

impl Server {
    /// Start interfaces that could not start before, if it is time.
    pub fn start_late_console(self: &Arc<Self>) {
        let mut late = self.late_console.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = late.as_mut().filter(|waiting| waiting.tried.elapsed() >= RETRY_AFTER) else { return };
        waiting.tried = Instant::now();
        match start(self, waiting.options.clone()) {
            Ok(management) => {
                let text = format!("the console runs now: {} (sign in with `openraid login`)", management.url());
                *late = None;
                self.add_news(vec![plain(EventName::Recovered, text)]);
            }
            Err(failure) => waiting.why = failure.text(),
        }
    }

    /// Why the interfaces do not run, and what helps.
    pub fn console_trouble(&self) -> Option<String> {
        let late = self.late_console.lock().unwrap_or_else(PoisonError::into_inner);
        late.as_ref().map(|waiting| {
            format!(
                "{}; free this address (`ss -ltnp` shows the program that has it) and mend the named file, or change listen of \
                 [management] and restart the server; the arrays are served, and the start is tried again",
                waiting.why
            )
        })
    }

    /// Alarms of the interfaces.
    pub(in crate::server) fn console_conditions(&self) -> Vec<Condition> {
        let of = |member: &str, text: String| Condition {
            member: Some(member.to_owned()),
            level: Severity::Critical,
            ..Condition::of_server(EventName::StartProblem, text)
        };
        let late = self.console_trouble().map(|why| of("console", format!("the console does not run: {why}")));
        let unreadable = self.management.get().map(|management| management.unreadable()).unwrap_or_default();
        let unreadable =
            unreadable.into_iter().map(|(about, why)| of(about, format!("sign-ins with {about} do not work: {why}")));
        late.into_iter().chain(unreadable).collect()
    }
}
