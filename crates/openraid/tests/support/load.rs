//! Clients that keep an array busy, and the cost of a disturbance to them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::client::Client;
use super::{READ, WRITE};

/// Connections.
const CLIENTS: u64 = 2;
/// Requests that each has on the way.
const DEPTH: usize = 16;
/// How long a rate is measured for.
const WINDOW: Duration = Duration::from_millis(500);

/// Clients at work: blocks of 4 KiB at random places, a quarter of them written.
pub struct Load {
    ends: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begin, on the first `bytes` bytes of an export.
    pub fn start(socket: &Path, export: &str, bytes: u64) -> Self {
        let (ends, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |nth: u64| {
            let mut client = Client::open(socket, export);
            let (ends, done) = (Arc::clone(&ends), Arc::clone(&done));
            thread::spawn(move || {
                let mut state = nth + 1;
                let mut draw = || {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state
                };
                while !ends.load(Ordering::Relaxed) {
                    let one = |drawn: u64| {
                        (if drawn.is_multiple_of(4) { WRITE } else { READ }, (drawn >> 8) % (bytes / 4096) * 4096)
                    };
                    let requests: Vec<(u16, u64)> = (0..DEPTH).map(|_| one(draw())).collect();
                    client.burst(&requests, 7).expect("the load is served");
                    done.fetch_add(DEPTH as u64, Ordering::Relaxed);
                }
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { ends, done, clients }
    }

    /// Requests a second in a short window.
    pub fn rate(&self) -> f64 {
        let (before, at) = (self.done.load(Ordering::Relaxed), Instant::now());
        thread::sleep(WINDOW);
        let count = self.done.load(Ordering::Relaxed) - before;
        f64::from(u32::try_from(count).expect("not that fast")) / at.elapsed().as_secs_f64()
    }

    /// Quartiles of the load with a disturbance divided by the load without one, from `turns` turns.
    pub fn ratio<G>(&self, turns: usize, mut disturb: impl FnMut() -> G) -> [f64; 3] {
        let mut ratios: Vec<f64> = Vec::new();
        for nth in 0..turns {
            let mut beside = || {
                let _guard = disturb();
                self.rate()
            };
            ratios.push(if nth % 2 == 0 {
                let alone = self.rate();
                beside() / alone
            } else {
                let beside = beside();
                beside / self.rate()
            });
        }
        ratios.sort_by(f64::total_cmp);
        [ratios[turns / 4], ratios[turns / 2], ratios[turns * 3 / 4]]
    }

    /// Stop the clients. None of them may have failed.
    pub fn stop(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.clients.into_iter().for_each(|client| client.join().expect("the load was served"));
    }
}
