//! `serve --keep-listening`: a parent that keeps the listening sockets, starts the server with them, and starts it again when it dies.
//! Hosts that connect meanwhile wait in the queues of the sockets.
//!
//! ```text
//!  bind --start--> server --ended by itself--> the same exit code
//!           ^         \--killed--> 100 ms --+--too often--> failure
//!           +-----------------------------<-+
//! ```

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use openraid_sys::{listen_patiently, Epoll, Errno, Events, Interest, ListenPlace, Listener, ServerWithSockets};
use openraid_sys::{NetError, ProcessSignal, Signals, FIRST_INHERITED};

use super::super::Context;
use super::listening_sockets::Addresses;
use crate::failure::{Exit, Failure, Outcome};

/// Pause between the end of a server and the next start.
const PAUSE: Duration = Duration::from_millis(100);
/// A server is not started again after this number of starts within this time. openraid.service has the same limit.
const STARTS_MAX: (usize, Duration) = (20, Duration::from_secs(30));

/// Only the first server gets these: the descriptor is closed afterwards, and a later loss needs another consent.
const READY: &str = "--ready-fd";
const AFTER_LOSS: &str = "--after-loss";

/// The times of the last starts.
#[derive(Debug, Default)]
struct Starts(VecDeque<Instant>);

impl Starts {
    /// Count a start. Returns `false` if there were too many.
    fn count(&mut self, now: Instant) -> bool {
        let (count, time) = STARTS_MAX;
        self.0.retain(|start| now.duration_since(*start) < time);
        self.0.push_back(now);
        self.0.len() <= count
    }
}

/// What a server's end means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It ended by itself.
    Done(Exit),
    /// It died, or could not start after another one had died.
    Died,
}

fn end_of(status: ExitStatus, stopping: bool, died_before: bool) -> End {
    match status.code().map(|code| u8::try_from(code).map_or(Exit::Error, Exit::from_code)) {
        None if stopping => End::Done(Exit::Error),
        None => End::Died,
        Some(exit @ (Exit::Fine | Exit::Usage)) => End::Done(exit),
        // What the killed server used may not be released yet.
        Some(_) if died_before && !stopping => End::Died,
        Some(exit) => End::Done(exit),
    }
}

/// Binds the addresses, and keeps a server running until it ends by itself.
///
/// # Errors
/// An address is in use, or the server dies too often.
pub fn keep(addresses: &Addresses, ready: Option<File>, signals: Signals, context: &Context) -> Outcome {
    let sockets = bind(addresses).map_err(|error| Failure::failed(error.to_string()))?;
    let program = std::env::current_exe().map_err(|error| Failure::failed(format!("this program: {error}")))?;
    let starts = Starts::default();
    let mut keeper = Keeper { program, sockets, ready, signals, starts, is_first: true, stopping: false };
    let mut died = false;
    loop {
        let status = keeper.serve_once().map_err(|why| Failure::failed(format!("--keep-listening: {why}")))?;
        match end_of(status, keeper.stopping, died) {
            End::Done(exit) => return Ok(exit),
            End::Died => {
                died = true;
                context.output.warn(&format!("the server died ({status}); it is started again, and hosts wait"));
                thread::sleep(PAUSE);
            }
        }
    }
}

fn bind(addresses: &Addresses) -> Result<Vec<Listener>, NetError> {
    let bind = |place| match place {
        ListenPlace::Tcp(address) => listen_patiently(|| Listener::tcp(address)),
        ListenPlace::Unix(path) => listen_patiently(|| Listener::unix_of_folder(&path)),
    };
    addresses.places().into_iter().map(bind).collect()
}

/// Refuses a descriptor that has the number of a socket.
///
/// # Errors
/// It has.
pub fn check_ready(number: Option<i32>, addresses: &Addresses) -> Result<(), Failure> {
    let sockets = i32::try_from(addresses.places().len()).unwrap_or(i32::MAX - FIRST_INHERITED);
    let taken = FIRST_INHERITED..FIRST_INHERITED + sockets;
    match number.filter(|number| taken.contains(number)) {
        None => Ok(()),
        Some(number) => Err(Failure::usage(format!(
            "{READY} {number}: with --keep-listening this number is that of a listening socket; take {} or a higher one",
            taken.end
        ))),
    }
}

struct Keeper {
    program: PathBuf,
    sockets: Vec<Listener>,
    ready: Option<File>,
    signals: Signals,
    starts: Starts,
    is_first: bool,
    /// It was told to stop.
    stopping: bool,
}

impl Keeper {
    /// Start a server, pass signals on, and wait for its end.
    fn serve_once(&mut self) -> Result<ExitStatus, String> {
        if !self.starts.count(Instant::now()) {
            let (count, time) = STARTS_MAX;
            return Err(format!("the server died after each of {count} starts within {} s", time.as_secs()));
        }
        let mut command = Command::new(&self.program);
        command.args(arguments(std::env::args_os().skip(1), self.is_first));
        let sockets: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
        let server = ServerWithSockets::start(&mut command, &sockets).map_err(|error| error.to_string())?;
        (self.ready, self.is_first) = (None, false);
        self.attend(&server).map_err(|error| error.to_string())?;
        server.wait().map_err(|error| error.to_string())
    }

    fn attend(&mut self, server: &ServerWithSockets) -> Result<(), Errno> {
        const SIGNALS: u64 = 0;
        const END: u64 = 1;
        let mut epoll = Epoll::new()?;
        epoll.add(&self.signals, SIGNALS, Interest::READ)?;
        epoll.add(server, END, Interest::READ)?;
        let mut events = Events::new();
        loop {
            epoll.wait(&mut events, None)?;
            while let Some(signal) = self.signals.next_signal() {
                self.stopping |= signal != ProcessSignal::HangUp;
                server.send(signal);
            }
            if events.iter().any(|event| event.token == END) {
                return Ok(());
            }
        }
    }
}

/// The arguments of the server: those of this process, for a later server without those of the first one.
fn arguments(all: impl Iterator<Item = OsString>, is_first: bool) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut is_value = false;
    for argument in all {
        let is_ready = argument == READY;
        let is_both = argument.to_string_lossy().starts_with("--ready-fd=");
        if is_first || !(is_value || is_ready || is_both || argument == AFTER_LOSS) {
            kept.push(argument);
        }
        is_value = is_ready;
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_server_that_dies_at_once_is_not_started_for_ever() {
        let (count, time) = STARTS_MAX;
        let (mut starts, begun) = (Starts::default(), Instant::now());
        assert!((0..count).all(|_| starts.count(begun)));
        assert!(!starts.count(begun));
        let mut starts = Starts::default();
        let pause = time / u32::try_from(count).expect("few");
        assert!((0..1000).all(|nth| starts.count(begun + pause * nth)), "now and then is not too often");
    }

    #[test]
    fn a_death_is_followed_by_a_start_and_an_end_is_not() {
        let (killed, fine, refused, usage) = (9, 0, 65 << 8, 64 << 8);
        let end = |status, stopping, died| end_of(ExitStatus::from_raw(status), stopping, died);
        assert_eq!(end(killed, false, false), End::Died);
        assert_eq!(end(killed, true, false), End::Done(Exit::Error));
        assert_eq!([end(fine, false, false), end(fine, false, true)], [End::Done(Exit::Fine); 2]);
        assert_eq!([end(refused, false, false), end(refused, false, true)], [End::Done(Exit::Refused), End::Died]);
        assert_eq!(
            [end(refused, true, true), end(usage, false, true)],
            [End::Done(Exit::Refused), End::Done(Exit::Usage)]
        );
    }

    #[test]
    fn only_the_first_server_says_that_it_is_ready_and_has_the_consent_to_a_loss() {
        let line = ["serve", "--ready-fd", "9", "data", "--ready-fd=9", "--after-loss", "--keep-listening"];
        let of = |is_first| arguments(line.iter().map(OsString::from), is_first);
        assert_eq!(of(true), line);
        assert_eq!(of(false), ["serve", "data", "--keep-listening"]);
    }
}
