//! Parity jobs as the service runs them ([`parity_jobs::run`]), and CRC-32C, next to Intel's ISA-L in one run:
//! `cargo bench -p openraid-runtime --bench jobs [-- VARIANT]`.
//!
//! Figures are nanoseconds of thread CPU time for one job whose data is in the cache: medians of alternating turns. The
//! ratio is the median of the ratios of turns. A variant without VPCLMULQDQ computes CRC-32C next to the function that
//! ISA-L takes on such CPUs.

#[path = "../../parity/tests/common/isal.rs"]
mod isal;

use core::ffi::c_void;
use isal::{generate, Generate, Isal};
use openraid_core::actions::{JobColumn, JobKind, ParityJob};
use openraid_parity::Kernels;
use openraid_runtime::parity_jobs;
use openraid_sys::{FramePool, PoolOptions, PoolRange};
use openraid_units::{Bytes, PoolOffset, Tag, TagKind};
use std::hint::black_box;

const TURNS: usize = 31;
/// Bytes of data that one turn consumes.
const TURN_BYTES: u64 = 64 << 20;
/// The least ratio to ISA-L that the project wants for CRC-32C.
const CRC_GOAL: f64 = 0.8;

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

/// One line: a job on `blocks` columns of `len` bytes, and a verdict if there is a goal. False if the goal is missed.
fn report(
    name: &str,
    (blocks, len): (u64, u64),
    goal: Option<f64>,
    ours: &mut dyn FnMut(),
    theirs: &mut dyn FnMut(),
) -> bool {
    let rounds = TURN_BYTES / (len * blocks);
    let (mut mine, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (a, b) = (turn(rounds, ours), turn(rounds, theirs));
        mine.push(a);
        other.push(b);
        ratios.push(b / a);
    }
    let ratio = median(ratios);
    let verdict = goal.map_or("", |goal| if ratio >= goal { "ok" } else { "SHORT" });
    println!("{name:10} {blocks:3} {:5}K {:9.0} {:9.0} {ratio:6.2} {verdict}", len >> 10, median(mine), median(other));
    verdict != "SHORT"
}

/// Blocks of ISA-L: data, P and Q, each aligned.
struct Peer {
    _memory: Vec<Vec<u8>>,
    starts: Vec<*mut c_void>,
    len: usize,
}

impl Peer {
    fn new(width: u64, len: u64) -> Self {
        let len = usize::try_from(len).unwrap();
        let mut memory: Vec<Vec<u8>> = (0..width + 2).map(|_| vec![7; len + 64]).collect();
        let aligned = |block: &mut Vec<u8>| {
            let padding = block.as_ptr().align_offset(64);
            block[padding..].as_mut_ptr().cast()
        };
        let starts = memory.iter_mut().map(aligned).collect();
        Self { _memory: memory, starts, len }
    }

    fn run(&mut self, function: Generate, blocks: usize) {
        // SAFETY: aligned blocks of `len` bytes each, a multiple of the alignment, which nothing else uses.
        unsafe { generate(function, &mut self.starts[..blocks], self.len) };
    }
}

/// Jobs over `width` data columns of `len` bytes.
fn jobs_of(kernels: Kernels, isal: Isal, width: u64, len: u64) {
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
    let mut run = |job: &ParityJob| _ = black_box(parity_jobs::run(kernels, &mut pool, job, &columns));
    let mut peer = Peer::new(width, len);
    let all = peer.starts.len();
    let shape = (width, len);
    let pq = job(JobKind::Generate);
    _ = report("P+Q", shape, None, &mut || run(&pq), &mut || peer.run(isal.pq_gen, all));
    let check = job(JobKind::Check);
    _ = report("check", shape, None, &mut || run(&check), &mut || peer.run(isal.pq_check, all));
    // One lost block is the sum of the others and P: as many sources as columns.
    let recover = ParityJob { q: None, ..job(JobKind::Recover { lost: 1 }) };
    _ = report("recover", shape, None, &mut || run(&recover), &mut || peer.run(isal.xor_gen, all - 1));
}

/// False if it is slower than the goal.
fn crc32c_of(kernels: Kernels, isal: Isal, len: usize) -> bool {
    let bytes = vec![9_u8; len];
    let theirs =
        if kernels.name() == "gfni" { isal.crc32_iscsi } else { isal.crc32_iscsi_sse.unwrap_or(isal.crc32_iscsi) };
    report("crc32c", (1, len as u64), Some(CRC_GOAL), &mut || _ = black_box(kernels.crc32c(!0, &bytes)), &mut || {
        _ = black_box(isal::crc32c(theirs, !0, &bytes))
    })
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let kernels = match &wanted {
        None => Kernels::detect(),
        Some(name) => Kernels::by_name(name).unwrap_or_else(|| panic!("this CPU has no variant {name}")),
    };
    let Some(isal) = Isal::load() else {
        println!("jobs: {}", isal::MISSING);
        return;
    };
    println!(
        "variant {}; nanoseconds of CPU a job, next to ISA-L's pq_gen, pq_check, xor_gen and crc32_iscsi",
        kernels.name()
    );
    println!("job          k   size      ours     ISA-L  ratio");
    for width in [4, 8, 12] {
        for kib in [4, 16, 64] {
            jobs_of(kernels, isal, width, kib << 10);
        }
    }
    let is_fast = [4, 64].map(|kib| crc32c_of(kernels, isal, kib << 10));
    if is_fast.contains(&false) {
        std::process::exit(1);
    }
}
