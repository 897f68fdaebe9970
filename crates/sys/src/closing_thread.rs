//! A thread that closes sockets of clients that may have sent files, and these files.
//!
//! A client can send any open file with its bytes. The close of a socket with linger, or of a file whose file system waits, may take
//! as long as that client likes, and the kernel closes such files with the socket in whose queue they are. A loop must never wait
//! for that.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, OnceLock};
use std::thread;

/// Number of descriptors that may wait for their close before new clients of unix sockets have to wait, too.
const UNCLOSED_MAX: usize = 512;

/// The thread's queue; none if it cannot be started.
static QUEUE: OnceLock<Option<mpsc::Sender<OwnedFd>>> = OnceLock::new();
static UNCLOSED: AtomicUsize = AtomicUsize::new(0);

fn start() -> Option<mpsc::Sender<OwnedFd>> {
    let (queue, files) = mpsc::channel::<OwnedFd>();
    let close_all = move || {
        for file in files {
            drop(file);
            UNCLOSED.fetch_sub(1, Ordering::Relaxed);
        }
    };
    thread::Builder::new().name("unix-close".into()).spawn(close_all).ok().map(|_| queue)
}

/// Let the thread close a descriptor. Without the thread it is closed here.
pub fn close_elsewhere(file: OwnedFd) {
    if let Some(queue) = QUEUE.get_or_init(start) {
        UNCLOSED.fetch_add(1, Ordering::Relaxed);
        // The thread never ends.
        let _ = queue.send(file);
    }
}

/// Do too many descriptors wait for their close?
pub fn is_late() -> bool {
    UNCLOSED.load(Ordering::Relaxed) >= UNCLOSED_MAX
}
