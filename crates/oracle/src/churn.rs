//! Random stamped writes with a log of issued and acknowledged ones: the load of crash tests.
//!
//! Each thread owns a part of the device, so that writes never overlap in flight, and the newest acknowledged
//! generation of a sector must be found later. Each write is direct; its intent is in the log before
//! it is issued, its acknowledgement after it returned. Log lines are `I lba sectors generation` and
//! `A lba sectors generation`, each written in one synchronous append.

use crate::stamp::{stamp, SECTOR_BYTES};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Alignment of direct I/O that suits every drive.
const BLOCK_BYTES: usize = 4096;
const SECTORS_PER_BLOCK: u64 = (BLOCK_BYTES / SECTOR_BYTES) as u64;
/// Write sizes in blocks; small ones are more frequent.
const SIZES_BLOCKS: [u64; 9] = [1, 1, 1, 2, 4, 8, 16, 32, 64];
/// `O_DIRECT` of Linux, which has another value on ARM.
const O_DIRECT: i32 = if cfg!(any(target_arch = "aarch64", target_arch = "arm")) { 0x10000 } else { 0x4000 };
/// `O_DSYNC` of Linux.
const O_DSYNC: i32 = 0x1000;

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    /// The first bytes of the device that are written to.
    pub bytes: u64,
    /// Seed of the stamps and of the choice of places.
    pub seed: u64,
    /// Writers at the same time.
    pub threads: u64,
    /// No write is larger.
    pub write_bytes_max: u64,
    /// When to stop by itself.
    pub time: Duration,
}

impl Churn {
    /// Write until the time is over, and return how many writes were acknowledged.
    ///
    /// # Errors
    /// The device or the log cannot be opened, or a write failed.
    pub fn run(&self, device: &Path, log: &Path) -> io::Result<u64> {
        let log = OpenOptions::new().create(true).append(true).custom_flags(O_DSYNC).open(log)?;
        let shared = Mutex::new((log, 0));
        let end = Instant::now() + self.time;
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..self.threads)
                .map(|t| {
                    scope.spawn({
                        let shared = &shared;
                        move || self.write(t, device, shared, end)
                    })
                })
                .collect();
            let counts: io::Result<Vec<u64>> =
                writers.into_iter().map(|writer| writer.join().expect("a writer panicked")).collect();
            counts.map(|counts| counts.iter().sum())
        })
    }

    fn write(&self, thread: u64, device: &Path, shared: &Mutex<(File, u64)>, end: Instant) -> io::Result<u64> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(device)?;
        let blocks = self.bytes / BLOCK_BYTES as u64;
        let (low, high) = (blocks * thread / self.threads, blocks * (thread + 1) / self.threads);
        let largest = (self.write_bytes_max / BLOCK_BYTES as u64).clamp(1, high - low);
        let mut random = self.seed.wrapping_mul(1000).wrapping_add(thread);
        let mut memory = vec![0u8; usize::try_from(largest + 1).expect("a write fits into memory") * BLOCK_BYTES];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        let mut count = 0;
        while Instant::now() < end {
            let size = SIZES_BLOCKS[pick(&mut random, SIZES_BLOCKS.len() as u64)].min(largest);
            let block = low + pick(&mut random, high - low - size + 1) as u64;
            let (lba, sectors) = (block * SECTORS_PER_BLOCK, size * SECTORS_PER_BLOCK);
            let generation = {
                let mut guard = shared.lock().expect("no writer panicked");
                guard.1 += 1;
                let generation = guard.1;
                guard.0.write_all(format!("I {lba} {sectors} {generation}\n").as_bytes())?;
                generation
            };
            let bytes = usize::try_from(size).expect("a write fits into memory") * BLOCK_BYTES;
            let payload = &mut memory[start..start + bytes];
            stamp(payload, self.seed, lba, generation);
            file.write_all_at(payload, block * BLOCK_BYTES as u64)?;
            let mut guard = shared.lock().expect("no writer panicked");
            guard.0.write_all(format!("A {lba} {sectors} {generation}\n").as_bytes())?;
            count += 1;
        }
        Ok(count)
    }
}

/// A number below `bound`, by xorshift64*.
fn pick(state: &mut u64, bound: u64) -> usize {
    let mut x = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    usize::try_from((x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % bound).expect("below the bound")
}
