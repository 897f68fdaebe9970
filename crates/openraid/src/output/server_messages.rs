//! The messages of a running server, written by a thread of its own: a reader that stops reading (a terminal after
//! Ctrl-S, a pipe) delays only these lines. The event log has all of them.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::live_state::Live;
use crate::model::ArrayModel;

/// Lines that wait for a reader. Lines that come then are left out.
const LINES_MAX: usize = 1024;
/// How long the end of a server waits for its reader.
const END_WAIT: Duration = Duration::from_secs(2);

/// A message to the thread that writes.
enum Message {
    Line(String),
    /// The newest state is in [`Newest`].
    State,
}

/// The state that is to be drawn next.
type Newest = Arc<Mutex<Option<Vec<ArrayModel>>>>;

/// The way to the thread that writes.
pub struct Voice {
    sender: SyncSender<Message>,
    ended: Receiver<()>,
    /// With a display of the state.
    newest: Option<Newest>,
    left_out: u64,
}

impl Voice {
    /// A voice; with a display, it also draws the state.
    ///
    /// # Errors
    /// The thread does not start.
    pub fn start(live: Option<Live>) -> io::Result<Self> {
        let (sender, lines) = mpsc::sync_channel(LINES_MAX);
        let (at_end, ended) = mpsc::sync_channel(1);
        let newest = live.is_some().then(Newest::default);
        let of_thread = newest.clone();
        thread::Builder::new().name("voice".into()).spawn(move || {
            write(&lines, live, of_thread.as_ref());
            let _ = at_end.send(());
        })?;
        Ok(Self { sender, ended, newest, left_out: 0 })
    }

    /// A line. It is left out if too many wait already.
    pub fn say(&mut self, line: String) {
        if self.sender.try_send(Message::Line(line)).is_err() {
            self.left_out += 1;
        }
    }

    /// Lines that were left out since this was asked before.
    pub fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// The state now.
    pub fn show(&self, arrays: &[ArrayModel]) {
        let Some(newest) = &self.newest else { return };
        let before = newest.lock().unwrap_or_else(PoisonError::into_inner).replace(arrays.to_vec());
        if before.is_none() && self.sender.try_send(Message::State).is_err() {
            // It is drawn when there is room again.
            newest.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// Wait until all is written, but no longer than a reader may take.
    pub fn end(self) {
        drop(self.sender);
        let _ = self.ended.recv_timeout(END_WAIT);
    }
}

fn write(lines: &Receiver<Message>, mut live: Option<Live>, newest: Option<&Newest>) {
    for message in lines {
        match (message, &mut live) {
            (Message::Line(line), Some(live)) => live.say(&line),
            (Message::Line(line), None) => super::print(&line),
            (Message::State, Some(live)) => {
                let state = newest.and_then(|newest| newest.lock().unwrap_or_else(PoisonError::into_inner).take());
                live.update(&state.unwrap_or_default(), &[]);
            }
            (Message::State, None) => {}
        }
    }
}
