//! Parity jobs as the service carries them out ([`jobs::run`]), beside Intel's ISA-L on memory of the same size, in one
//! run: `cargo bench -p openraid-runtime --bench jobs`. And CRC-32C beside ISA-L's.
//!
//! Nanoseconds of thread CPU time of one job whose data is in the cache; medians of turns that alternate.

#[path = "../../parity/tests/common/isal.rs"]
#[allow(dead_code)] // the tests of parity use the rest
mod isal;

use core::ffi::c_void;
use isal::{generate, Isal};
use openraid_core::actions::{JobColumn, JobKind, ParityJob};
use openraid_parity::Kernels;
use openraid_runtime::jobs;
use openraid_sys::{FramePool, PoolOptions, PoolRange};
use openraid_units::{Bytes, PoolOffset, Tag, TagKind};
use std::hint::black_box;

const TURNS: usize = 31;
/// Bytes of data that one turn consumes.
const TURN_BYTES: u64 = 64 << 20;

/// Nanoseconds of CPU time that this thread has used.
fn thread_nanoseconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn turn(rounds: u64, work: &mut dyn FnMut()) -> f64 {
    work();
    let begin = thread_nanoseconds();
    (0..rounds).for_each(|_| work());
    (thread_nanoseconds() - begin) / rounds as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn report(name: &str, len: u64, blocks: u64, ours: &mut dyn FnMut(), theirs: Option<&mut dyn FnMut()>) {
    let rounds = TURN_BYTES / (len * blocks);
    let (mut own, mut other) = (Vec::new(), Vec::new());
    match theirs {
        None => own.extend((0..TURNS).map(|_| turn(rounds, ours))),
        Some(theirs) => {
            for _ in 0..TURNS {
                own.push(turn(rounds, ours));
                other.push(turn(rounds, theirs));
            }
        }
    }
    let own = median(own);
    let peer = match other.is_empty() {
        true => String::new(),
        false => format!("{:9.0} {:6.2}", median(other.clone()), median(other) / own),
    };
    println!("{name:10} {blocks:3} {:5}K {own:9.0} {peer}", len >> 10);
}

/// Jobs over `width` data columns of `len` bytes.
fn jobs_of(kernels: Kernels, isal: Option<Isal>, width: u64, len: u64) {
    let at = |block: u64| PoolOffset(block * len);
    let mut pool = FramePool::new(PoolOptions { touch: true, ..PoolOptions::of(Bytes((width + 2) * len)) }).unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for byte in pool.slice_mut(PoolRange::new(at(0), Bytes(width * len))) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = state.to_le_bytes()[7];
    }
    let columns: Vec<JobColumn> =
        (0..width).map(|n| JobColumn { index: u8::try_from(n).unwrap(), at: at(n), old: at(n) }).collect();
    let job = |kind| ParityJob {
        tag: Tag::new(TagKind::Job, 0, 0),
        kind,
        len: u32::try_from(len).unwrap(),
        columns_start: 0,
        columns_len: u16::try_from(width).unwrap(),
        p: Some(at(width)),
        q: Some(at(width + 1)),
    };
    let mut memory: Vec<Vec<u8>> = (0..width + 2).map(|_| vec![7; usize::try_from(len).unwrap() + 64]).collect();
    let mut starts: Vec<*mut c_void> = Vec::new();
    for block in &mut memory {
        let padding = block.as_ptr().align_offset(64);
        starts.push(block[padding..].as_mut_ptr().cast());
    }
    let bytes = usize::try_from(len).unwrap();
    // SAFETY: aligned blocks of `len` bytes each, which nothing else uses.
    let mut theirs = isal.map(|isal| move || unsafe { generate(isal.pq_gen, &mut starts, bytes) });
    let peer = theirs.as_mut().map(|theirs| theirs as &mut dyn FnMut());
    let generate_pq = job(JobKind::Generate);
    report("P+Q", len, width, &mut || _ = black_box(jobs::run(kernels, &mut pool, &generate_pq, &columns)), peer);
    let check = job(JobKind::Check);
    report("check", len, width, &mut || _ = black_box(jobs::run(kernels, &mut pool, &check, &columns)), None);
    let recover = ParityJob { q: None, ..job(JobKind::Recover { lost: 1 }) };
    report("recover", len, width, &mut || _ = black_box(jobs::run(kernels, &mut pool, &recover, &columns)), None);
}

fn main() {
    let kernels = Kernels::detect();
    let isal = Isal::load();
    println!("variant {}; nanoseconds of CPU a job, ISA-L's pq_gen and crc32_iscsi beside it", kernels.name());
    println!("job          k   size      ours     ISA-L  ratio");
    for width in [4, 8, 12] {
        for kib in [4, 16, 64] {
            jobs_of(kernels, isal, width, kib << 10);
        }
    }
    for kib in [4, 64] {
        let bytes = vec![9_u8; kib << 10];
        let len = u64::try_from(bytes.len()).unwrap();
        let mut theirs = isal.map(|isal| {
            let bytes = bytes.clone();
            move || _ = black_box(isal.crc32c(!0, &bytes))
        });
        let peer = theirs.as_mut().map(|theirs| theirs as &mut dyn FnMut());
        report("crc32c", len, 1, &mut || _ = black_box(kernels.crc32c(!0, &bytes)), peer);
    }
    if isal.is_none() {
        println!("no comparison: {}", isal::MISSING);
    }
}
