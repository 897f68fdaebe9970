//! XOR and P+Q next to Intel's ISA-L, in one run: `cargo bench -p openraid-parity --bench isal [-- VARIANT]`.
//!
//! Figures are GB (10^9 bytes) of data consumed per second of thread CPU time. `hot` computes one row again and
//! again, `cold` walks over 1 GiB. Both libraries take turns on the same memory, and each figure is the median of the
//! turns, because the clock and the neighbours of a machine change within a run. Each pair of hot turns has a row of
//! its own: the placement of one row's pages in the cache's sets is worth up to a third. The memory is touched first:
//! fresh pages of a virtual machine cost far more than any kernel.

#[path = "../tests/common/isal.rs"]
mod isal;

use core::ffi::c_void;
use isal::{generate, Isal};
use openraid_parity::{Kernels, ParityChange};
use std::hint::black_box;

/// Memory that a cold run walks over: 32 times a large last-level cache.
const COLD_BYTES: usize = 1 << 30;
/// Data that a hot turn consumes: some milliseconds of work.
const HOT_BYTES: usize = 128 << 20;
/// Rows between those of two turns.
const ROWS_APART: usize = 17;
/// Turns of each side.
const HOT_TURNS: usize = 31;
const COLD_TURNS: usize = 7;
const PAGE: usize = 4096;
const _: () = assert!(PAGE.is_multiple_of(isal::ALIGNMENT));

/// Page-aligned memory that all kernels work on.
struct Arena {
    start: *mut u8,
}

impl Arena {
    fn new() -> Self {
        let layout = std::alloc::Layout::from_size_align(COLD_BYTES, PAGE).unwrap();
        // SAFETY: the layout has a size.
        let start = unsafe { std::alloc::alloc(layout) };
        assert!(!start.is_null(), "no memory for the benchmark");
        for at in (0..COLD_BYTES).step_by(8) {
            let noise = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            // SAFETY: inside the allocation.
            unsafe { start.add(at).cast::<u64>().write(noise) };
        }
        Self { start }
    }

    /// The starts of the `blocks` neighbouring blocks of one row. Rows wrap around.
    fn row(&self, row: usize, blocks: usize, length: usize) -> impl Iterator<Item = *mut u8> {
        let rows = COLD_BYTES / (blocks * length);
        let first = row % rows * blocks * length;
        let start = self.start;
        // SAFETY: rows lie within the allocation.
        (0..blocks).map(move |block| unsafe { start.add(first + block * length) })
    }
}

/// Seconds of CPU time this thread has used.
fn thread_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Xor,
    Pq,
}

#[derive(Clone, Copy)]
struct Case {
    kind: Kind,
    data: usize,
    length: usize,
    cold: bool,
}

impl Case {
    fn parities(self) -> usize {
        if self.kind == Kind::Xor {
            1
        } else {
            2
        }
    }
    /// The least ratio to ISA-L that the project wants.
    fn goal(self) -> Option<f64> {
        match (self.kind, self.data) {
            (Kind::Pq, 8) if !self.cold && self.length <= 64 << 10 => Some(1.4),
            (Kind::Pq, 8) | (Kind::Xor, _) => Some(0.95),
            (Kind::Pq, _) => None,
        }
    }
    fn rows(self) -> usize {
        if self.cold {
            COLD_BYTES / ((self.data + self.parities()) * self.length)
        } else {
            HOT_BYTES / (self.data * self.length)
        }
    }
    /// GB/s of one turn of `work`, which gets the pointers of one row: always `first`,
    /// after one pass that brings it into the cache, or all rows from `first` on.
    fn turn(self, arena: &Arena, first: usize, work: &dyn Fn(&mut [*mut u8], usize)) -> f64 {
        let blocks = self.data + self.parities();
        let mut starts = Vec::with_capacity(blocks);
        let mut one = |row| {
            starts.clear();
            starts.extend(arena.row(if self.cold { first + row } else { first }, blocks, self.length));
            work(&mut starts, self.length);
        };
        if !self.cold {
            one(0);
        }
        let begin = thread_seconds();
        (0..self.rows()).for_each(&mut one);
        (self.rows() * self.data * self.length) as f64 / (thread_seconds() - begin) / 1e9
    }
}

fn ours(kernels: Kernels, kind: Kind, starts: &[*mut u8], length: usize) {
    // SAFETY: blocks of one row do not overlap and have `length` bytes each.
    let slice = |start: &*mut u8| unsafe { core::slice::from_raw_parts_mut(*start, length) };
    let (data, parity) = starts.split_at(starts.len() - if kind == Kind::Xor { 1 } else { 2 });
    let mut blocks: [&[u8]; 16] = [&[]; 16];
    for (block, start) in blocks.iter_mut().zip(data) {
        *block = slice(start);
    }
    let blocks = &blocks[..data.len()];
    match kind {
        Kind::Xor => kernels.xor(slice(&parity[0]), blocks),
        Kind::Pq => kernels.pq(slice(&parity[0]), slice(&parity[1]), blocks),
    }
}

fn theirs(isal: Isal, kind: Kind, starts: &mut [*mut u8], length: usize) {
    let mut blocks: [*mut c_void; 18] = [core::ptr::null_mut(); 18];
    for (block, start) in blocks.iter_mut().zip(starts.iter()) {
        *block = start.cast();
    }
    let function = if kind == Kind::Xor { isal.xor_gen } else { isal.pq_gen };
    // SAFETY: page-aligned blocks of `length` bytes, a multiple of a page.
    unsafe { generate(function, &mut blocks[..starts.len()], length) };
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn compare(arena: &Arena, kernels: Kernels, isal: Isal, case: Case) {
    let turns = if case.cold { COLD_TURNS } else { HOT_TURNS };
    let (mut our_times, mut their_times, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..turns {
        let first = turn * ROWS_APART;
        let a = case.turn(arena, first, &|starts, length| ours(kernels, case.kind, starts, length));
        let b = case.turn(arena, first, &|starts, length| theirs(isal, case.kind, starts, length));
        our_times.push(a);
        their_times.push(b);
        ratios.push(a / b);
    }
    let ratio = median(ratios);
    let (goal, verdict) = match case.goal() {
        None => ("-".into(), ""),
        Some(goal) => (format!("{goal:.2}"), if ratio >= goal { "ok" } else { "SHORT" }),
    };
    println!(
        "{:6} {:3} {:>5}K  {:4} {:8.1} {:8.1} {:6.2} {:>5}  {verdict}",
        if case.kind == Kind::Xor { "xor" } else { "pq" },
        case.data,
        case.length >> 10,
        if case.cold { "cold" } else { "hot" },
        median(our_times),
        median(their_times),
        ratio,
        goal,
    );
}

/// The kernels that ISA-L has no counterpart for: eight blocks of 64 KiB, hot, in GB/s of bytes read.
fn others(arena: &Arena, kernels: Kernels) {
    const LENGTH: usize = 64 << 10;
    let starts: Vec<_> = arena.row(0, 12, LENGTH).collect();
    // SAFETY: as in `ours`; each slice below is made once.
    let slice = |index: usize| unsafe { core::slice::from_raw_parts_mut(starts[index], LENGTH) };
    let data: Vec<&[u8]> = (0..8).map(|index| &*slice(index)).collect();
    let (p, q, x, y) = (slice(8), slice(9), slice(10), slice(11));
    let numbered: Vec<(u8, &[u8])> = (0..).zip(data.iter().copied()).collect();
    let change = [ParityChange { index: 3, old: data[0], new: data[1] }];
    let report = |name: &str, blocks: usize, work: &mut dyn FnMut()| {
        let rounds = HOT_BYTES / (blocks * LENGTH);
        let figures = (0..HOT_TURNS).map(|_| {
            let begin = thread_seconds();
            (0..rounds).for_each(|_| work());
            (rounds * blocks * LENGTH) as f64 / (thread_seconds() - begin) / 1e9
        });
        println!("{name:28} {:8.1}", median(figures.collect()));
    };
    println!("\nothers, 64K hot                GB/s read");
    report("p_update, one block", 3, &mut || kernels.p_update(p, &change));
    report("pq_update, one block", 4, &mut || kernels.pq_update(p, q, &change));
    kernels.pq(p, q, &data);
    report("check_pq, 8 blocks", 10, &mut || {
        black_box(kernels.check_pq(p, q, &data));
    });
    report("recover one with P, 7 blocks", 8, &mut || kernels.recover_one_with_p(&numbered[1..], p, 0, x));
    report("recover one with Q, 7 blocks", 8, &mut || kernels.recover_one_with_q(&numbered[1..], q, 0, x));
    report("recover two, 6 blocks", 8, &mut || kernels.recover_two(&numbered[2..], p, q, (0, x), (1, y)));
    report("compare", 2, &mut || {
        black_box(kernels.compare(data[0], data[0]));
    });
    report("crc32c", 1, &mut || {
        black_box(kernels.crc32c(0, data[0]));
    });
}

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let kernels = match &wanted {
        None => Kernels::detect(),
        Some(name) => Kernels::by_name(name).unwrap_or_else(|| panic!("this CPU has no variant {name}")),
    };
    let arena = Arena::new();
    println!("variant {}; GB/s of data consumed, thread CPU time, medians", kernels.name());
    if let Some(isal) = Isal::load() {
        println!("kernel   k   size            ours    ISA-L  ratio  goal");
        for kind in [Kind::Xor, Kind::Pq] {
            for data in [4, 8, 12] {
                for (kib, cold) in [(4, false), (16, false), (64, false), (1024, false), (64, true), (1024, true)] {
                    compare(&arena, kernels, isal, Case { kind, data, length: kib << 10, cold });
                }
            }
        }
    } else {
        println!("no comparison: {}", isal::MISSING);
    }
    others(&arena, kernels);
}
