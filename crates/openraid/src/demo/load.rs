//! Clients that write and read at random and know the right value of every byte.
//!
//! Every block of 4 KiB has a version; its bytes are computed from its number and version, so only the versions are
//! stored. Each client has its own part of the array.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::client::DemoClient;

/// A block of the model.
const BLOCK_BYTES: usize = 4096;
/// The longest request, in blocks.
const REQUEST_BLOCKS_MAX: u64 = 32;
/// One request in this many writes; the others read and compare.
const WRITE_SHARE: u64 = 2;
/// Blocks read at once in the final comparison.
const VERIFY_BLOCKS: usize = 256;

/// What clients have done together.
#[derive(Debug, Default)]
pub struct DemoCounters {
    pub requests: AtomicU64,
    /// Bytes written.
    pub written: AtomicU64,
    /// Bytes read and found right.
    pub verified: AtomicU64,
}

/// A number from a number: splitmix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The bytes of a block; version 0 is a block that was never written.
fn fill(block: u64, version: u32, into: &mut [u8]) {
    if version == 0 {
        return into.fill(0);
    }
    let mut state = mix(block << 32 | u64::from(version));
    for word in into.chunks_exact_mut(8) {
        state = mix(state);
        word.copy_from_slice(&state.to_le_bytes());
    }
}

/// The expected content of a part of the array.
#[derive(Debug)]
pub struct Model {
    /// Its first block.
    first: u64,
    versions: Vec<u32>,
}

impl Model {
    fn new(first: u64, blocks: u64) -> Self {
        Self { first, versions: vec![0; usize::try_from(blocks).expect("a small array")] }
    }

    fn expected(&self, at: usize, blocks: usize) -> Vec<u8> {
        let mut bytes = vec![0; blocks * BLOCK_BYTES];
        for (nth, block) in bytes.chunks_exact_mut(BLOCK_BYTES).enumerate() {
            fill(self.first + (at + nth) as u64, self.versions[at + nth], block);
        }
        bytes
    }

    fn offset(&self, at: usize) -> u64 {
        (self.first + at as u64) * BLOCK_BYTES as u64
    }

    fn compare(&self, at: usize, bytes: &[u8]) -> Result<(), String> {
        let expected = self.expected(at, bytes.len() / BLOCK_BYTES);
        match expected.iter().zip(bytes).position(|(expected, found)| expected != found) {
            None => Ok(()),
            Some(place) => Err(format!("WRONG DATA at byte {} of the array", self.offset(at) + place as u64)),
        }
    }
}

/// A client at work.
#[derive(Debug)]
pub struct Worker {
    thread: JoinHandle<Result<Model, String>>,
}

/// Clients, each with a part of the array.
#[derive(Debug)]
pub struct DemoLoad {
    workers: Vec<Worker>,
    stop: Arc<AtomicBool>,
    /// What they have done.
    pub counters: Arc<DemoCounters>,
    socket: PathBuf,
    export: String,
}

impl DemoLoad {
    /// Start this many clients.
    ///
    /// # Errors
    /// The export cannot be reached.
    pub fn start(socket: &Path, export: &str, clients: u64) -> Result<Self, String> {
        let size = DemoClient::connect(socket, export)?.size();
        let blocks = size / BLOCK_BYTES as u64;
        let (stop, counters) = (Arc::new(AtomicBool::new(false)), Arc::new(DemoCounters::default()));
        let workers = (0..clients).map(|number| {
            let (first, next) = (blocks * number / clients, blocks * (number + 1) / clients);
            let model = Model::new(first, next - first);
            let (stop, counters) = (Arc::clone(&stop), Arc::clone(&counters));
            let (socket, export) = (socket.to_path_buf(), export.to_owned());
            let work = move || work(&socket, &export, model, &stop, &counters);
            Worker { thread: thread::spawn(work) }
        });
        let workers = workers.collect();
        Ok(Self { workers, stop, counters, socket: socket.into(), export: export.into() })
    }

    /// Has a client ended by itself? Only errors do that.
    pub fn has_failed(&self) -> bool {
        self.workers.iter().any(|worker| worker.thread.is_finished())
    }

    /// Stop the clients, then read the whole array and compare every byte. Returns how many were compared.
    ///
    /// # Errors
    /// The first byte that is wrong, or what else went wrong.
    pub fn verify(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut compared = 0;
        let mut client = DemoClient::connect(&self.socket, &self.export)?;
        for worker in self.workers {
            let model = worker.thread.join().map_err(|_| "a client has panicked".to_owned())??;
            let mut at = 0;
            while at < model.versions.len() {
                let blocks = VERIFY_BLOCKS.min(model.versions.len() - at);
                let bytes = client.read(model.offset(at), blocks * BLOCK_BYTES)?;
                model.compare(at, &bytes)?;
                at += blocks;
                compared += bytes.len() as u64;
            }
        }
        client.flush()?;
        Ok(compared)
    }
}

fn work(
    socket: &Path,
    export: &str,
    mut model: Model,
    stop: &AtomicBool,
    counters: &DemoCounters,
) -> Result<Model, String> {
    let mut client = DemoClient::connect(socket, export)?;
    let mut random = mix(model.first);
    while !stop.load(Ordering::Relaxed) {
        random = mix(random);
        let blocks = 1 + random % REQUEST_BLOCKS_MAX;
        let room = model.versions.len() as u64 - blocks;
        let at = usize::try_from((random >> 20) % room).expect("a small array");
        let blocks = usize::try_from(blocks).expect("a short request");
        let bytes = (blocks * BLOCK_BYTES) as u64;
        if (random >> 10).is_multiple_of(WRITE_SHARE) {
            for version in &mut model.versions[at..at + blocks] {
                *version += 1;
            }
            client.write(model.offset(at), &model.expected(at, blocks))?;
            counters.written.fetch_add(bytes, Ordering::Relaxed);
        } else {
            let found = client.read(model.offset(at), blocks * BLOCK_BYTES)?;
            model.compare(at, &found)?;
            counters.verified.fetch_add(bytes, Ordering::Relaxed);
        }
        counters.requests.fetch_add(1, Ordering::Relaxed);
    }
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_wrong_byte_is_found_and_named() {
        let mut model = Model::new(10, 4);
        model.versions = vec![1, 0, 7, 7];
        let mut bytes = model.expected(0, 4);
        assert_eq!(model.compare(0, &bytes), Ok(()));
        assert!(bytes[BLOCK_BYTES..2 * BLOCK_BYTES].iter().all(|byte| *byte == 0));
        assert_ne!(bytes[2 * BLOCK_BYTES..3 * BLOCK_BYTES], bytes[3 * BLOCK_BYTES..], "blocks differ by their number");
        bytes[2 * BLOCK_BYTES + 5] ^= 1;
        let place = 12 * BLOCK_BYTES + 5;
        assert_eq!(model.compare(0, &bytes), Err(format!("WRONG DATA at byte {place} of the array")));
    }
}
