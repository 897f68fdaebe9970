//! Names that one process of this machine holds at a time.
//!
//! A name is an abstract unix socket: it needs no folder, users with different state folders share it, and it ends with the
//! process, whatever ends that process. Programs in another network namespace do not see it.

use std::fmt;
use std::thread;
use std::time::Duration;

use openraid_units::Nanos;

use crate::address_reuse::LEAVING_TIME_MAX;
use crate::clock;
use crate::ending_processes::is_ending;
use crate::errno::Errno;
use crate::holders::process_text;
use crate::net::{holder_of_name, Holder, Listener, NetError};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A name that this process holds until the value is dropped.
#[derive(Debug)]
pub struct NameLock {
    _listener: Listener,
}

/// Why a name could not be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NameError {
    /// A process that runs holds it.
    Held {
        /// The process in words: its number and program, if the kernel tells them.
        owner: String,
    },
    /// The kernel's error.
    Failed {
        /// The attempt, as in "cannot ...".
        attempt: &'static str,
        /// The kernel's error.
        error: Errno,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { owner } => write!(f, "{owner} has it"),
            Self::Failed { attempt, error } => write!(f, "cannot {attempt}: {error}"),
        }
    }
}

impl std::error::Error for NameError {}

impl NameLock {
    /// Take a name. If a process that runs holds it, try for this time. A process that is ending is waited for longer,
    /// as at its addresses.
    ///
    /// # Errors
    /// The name is held, or the kernel refuses sockets.
    pub fn take(name: &str, patience: Nanos) -> Result<Self, NameError> {
        let begun = clock::now();
        let mut holder = None;
        loop {
            match Listener::abstract_name(name) {
                Ok(listener) => return Ok(Self { _listener: listener }),
                Err(NetError::Failed { attempt, error, .. }) => return Err(NameError::Failed { attempt, error }),
                Err(_) => {}
            }
            // Each question remains in the holder's queue, so it is asked again only if the holder may have changed.
            let known = match holder {
                Some(Holder::Running(process)) if is_ending(process) => holder_of_name(name),
                Some(Holder::Leaving(_)) | None => holder_of_name(name),
                Some(known) => known,
            };
            holder = Some(known);
            let longest = if matches!(known, Holder::Leaving(_)) { LEAVING_TIME_MAX.max(patience) } else { patience };
            if clock::now() >= begun + longest {
                return Err(NameError::Held { owner: owner_of(known) });
            }
            thread::sleep(PAUSE);
        }
    }
}

fn owner_of(holder: Holder) -> String {
    match holder {
        Holder::Running(process) => process_text(process),
        Holder::Leaving(process) => format!("{}, which is ending,", process_text(process)),
        Holder::Unknown => "a process that the kernel does not name".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_holder_until_it_is_dropped_and_the_holder_is_named() {
        let name = format!("openraid-test-{}", std::process::id());
        let first = NameLock::take(&name, Nanos::ZERO).expect("it is free");
        let refused = NameLock::take(&name, Nanos::ZERO).expect_err("it is held");
        let NameError::Held { owner } = &refused else { panic!("{refused}") };
        assert!(owner.starts_with(&format!("process {} (", std::process::id())), "{owner}");
        let _longer = NameLock::take(&format!("{name}-more"), Nanos::ZERO).expect("another name");
        drop(first);
        NameLock::take(&name, Nanos::ZERO).expect("it is free again");
    }

    #[test]
    fn many_questions_fill_the_queue_of_the_holder_and_change_nothing_else() {
        let name = format!("openraid-asked-{}", std::process::id());
        let _first = NameLock::take(&name, Nanos::ZERO).expect("it is free");
        let mut unnamed = 0;
        for _ in 0..1100 {
            let refused = NameLock::take(&name, Nanos::ZERO).expect_err("it is held");
            unnamed += usize::from(refused.to_string().starts_with("a process that the kernel does not name"));
        }
        assert!(unnamed < 1100, "the first ones are told the holder");
    }
}
