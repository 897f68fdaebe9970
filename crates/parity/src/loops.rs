//! The kernels, written once over [`Lane`]; each variant compiles them with its own instructions.
//!
//! Every kernel computes all results of one group of bytes in registers, so that each data byte is loaded
//! once, and goes from the highest data index down: Q by Horner's rule needs only doublings. Loads and
//! stores need no alignment. The end of the slices is handled by part loads, never by reading beyond.
//!
//! XOR, and P+Q of small rows, are compiled once for each usual number of blocks. With one load instruction
//! for each block the CPU's stride prefetcher sees straight runs, with one for all it is easily misled (Zen 5,
//! 64 KiB blocks, k = 8, XOR: 122 GB/s in ascending order, 221 descending, 200 to 230 this way in any order).
//! Tried on the same machine and left out, being slower or no faster: software prefetch of sources or
//! destinations at 128 to 1024 bytes, and non-temporal stores (a third of the speed in cache).

use crate::gf;
use crate::kernel_table::{ParityChange, Sources};
use crate::lane::Lane;

/// Lanes worked on together: enough independent chains to hide the latency of Horner's rule, and few enough
/// that P, Q and the loaded lanes stay in registers (16 of them with AVX2).
const GROUP: usize = 4;
/// The same for XOR of many blocks, which has no Q to keep: longer runs from each block served the L1 prefetcher
/// of Zen 5 better from six blocks on (64 KiB blocks, k = 8: 228 GB/s against 200), and worse below.
const XOR_GROUP: usize = 8;
const XOR_GROUP_FROM: usize = 6;
/// Rows that fit a first-level cache of 48 KiB together with little else. P+Q of larger rows, which wait for memory
/// more than they compute, are faster in the plain loop (k = 8, 64 KiB: 190 GB/s against 182; k = 12: 143, 133).
const L1_BYTES: usize = 40 << 10;

/// A kernel's work on the lanes from one offset on.
trait Pass<L: Lane> {
    /// Work on `N` whole lanes at offset `at` or, with `part`, on that many bytes of one lane. False stops.
    ///
    /// # Safety
    /// The CPU has the lane's instructions and the bytes lie within the pass's slices.
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool;
}

/// Run a pass from offset `start` to `length`. Returns whether it went to the end.
///
/// # Safety
/// The CPU has the lane's instructions and all slices of the pass are `length` long.
#[inline(always)]
unsafe fn run<L: Lane>(mut pass: impl Pass<L>, start: usize, length: usize) -> bool {
    let mut at = start;
    // SAFETY: each step stays below `length`.
    unsafe {
        while length - at >= GROUP * L::BYTES {
            if !pass.step::<GROUP>(at, None) {
                return false;
            }
            at += GROUP * L::BYTES;
        }
        while length - at >= L::BYTES {
            if !pass.step::<1>(at, None) {
                return false;
            }
            at += L::BYTES;
        }
        at == length || pass.step::<1>(at, Some(length - at))
    }
}

/// Run a pass that never stops over all whole groups of `N` lanes. Returns the offset of the rest.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn run_groups<L: Lane, const N: usize>(mut pass: impl Pass<L>, length: usize) -> usize {
    let rest = length - length % (N * L::BYTES);
    for group in 0..rest / (N * L::BYTES) {
        // SAFETY: each step stays below `length`.
        unsafe { pass.step::<N>(group * (N * L::BYTES), None) };
    }
    rest
}

/// # Safety
/// As [`Pass::step`], for the slice that begins at `from`.
#[inline(always)]
unsafe fn load<L: Lane, const N: usize>(from: *const u8, at: usize, part: Option<usize>) -> [L; N] {
    // SAFETY: the caller vouches for the CPU and for the bytes at `at`.
    unsafe {
        let mut lanes = [L::zero(); N];
        match part {
            None => {
                for (i, lane) in lanes.iter_mut().enumerate() {
                    *lane = L::load(from.add(at + i * L::BYTES));
                }
            }
            Some(length) => lanes[0] = L::load_part(from.add(at), length),
        }
        lanes
    }
}

/// # Safety
/// As [`Pass::step`], for the slice that begins at `to`.
#[inline(always)]
unsafe fn store<L: Lane, const N: usize>(lanes: [L; N], to: *mut u8, at: usize, part: Option<usize>) {
    // SAFETY: the caller vouches for the bytes at `at`.
    unsafe {
        match part {
            None => {
                for (i, lane) in lanes.into_iter().enumerate() {
                    lane.store(to.add(at + i * L::BYTES));
                }
            }
            Some(length) => lanes[0].store_part(to.add(at), length),
        }
    }
}

// Plain loops, no closures: the compiler must inline these into the functions that name the CPU's features, and
// a closure that it leaves outside runs at a hundredth of the speed.

/// `sums[i] ^= lanes[i]`.
#[inline(always)]
fn add<L: Lane, const N: usize>(sums: &mut [L; N], lanes: [L; N]) {
    for (sum, lane) in sums.iter_mut().zip(lanes) {
        *sum = sum.xor(lane);
    }
}

/// `sums[i] ^= a[i] ^ b[i]`.
#[inline(always)]
fn add_both<L: Lane, const N: usize>(sums: &mut [L; N], a: [L; N], b: [L; N]) {
    for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
        *sum = sum.xor3(a, b);
    }
}

/// Horner's step: `sums[i] = sums[i] * 2 ^ lanes[i]`.
#[inline(always)]
fn double_and_add<L: Lane, const N: usize>(sums: &mut [L; N], lanes: [L; N]) {
    for (sum, lane) in sums.iter_mut().zip(lanes) {
        *sum = sum.double_and_add(lane);
    }
}

#[inline(always)]
fn multiply<L: Lane, const N: usize>(lanes: &mut [L; N], factor: L::Factor) {
    for lane in lanes {
        *lane = lane.multiply(factor);
    }
}

#[inline(always)]
fn all_zero<L: Lane, const N: usize>(lanes: [L; N]) -> bool {
    let mut sum = lanes[0];
    for lane in &lanes[1..] {
        sum = sum.or(*lane);
    }
    sum.is_zero()
}

/// The blocks a kernel reads, by index.
trait Blocks: Copy {
    fn count(self) -> usize;
    /// Start of block `index`, null for a block of zeroes.
    fn start(self, index: usize) -> *const u8;
}

/// A number of blocks known when compiling, none missing: the pointers stay in registers.
#[derive(Clone, Copy)]
struct Fixed<const K: usize>([*const u8; K]);

impl<const K: usize> Fixed<K> {
    /// `None` where the number differs or a block is missing.
    #[inline(always)]
    fn new(blocks: impl Blocks) -> Option<Self> {
        let mut starts = [core::ptr::null(); K];
        if blocks.count() != K {
            return None;
        }
        for (index, start) in starts.iter_mut().enumerate() {
            *start = blocks.start(index);
            if start.is_null() {
                return None;
            }
        }
        Some(Self(starts))
    }
}

impl<const K: usize> Blocks for Fixed<K> {
    #[inline(always)]
    fn count(self) -> usize {
        K
    }
    #[inline(always)]
    fn start(self, index: usize) -> *const u8 {
        self.0[index]
    }
}

impl Blocks for Sources<'_> {
    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn start(self, index: usize) -> *const u8 {
        match self[index] {
            Some(block) => block.as_ptr(),
            None => core::ptr::null(),
        }
    }
}

impl Blocks for &[&[u8]] {
    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn start(self, index: usize) -> *const u8 {
        self[index].as_ptr()
    }
}

/// P and Q of the blocks at one place.
///
/// # Safety
/// As [`Pass::step`].
#[inline(always)]
unsafe fn syndromes<L: Lane, const N: usize>(blocks: impl Blocks, at: usize, part: Option<usize>) -> ([L; N], [L; N]) {
    // SAFETY: the caller vouches for the CPU and for the bytes of every block that is there.
    unsafe {
        let mut rest = blocks.count();
        let mut p = [L::zero(); N];
        // Horner's rule begins with the highest block that is there.
        while rest > 0 {
            rest -= 1;
            let start = blocks.start(rest);
            if !start.is_null() {
                p = load(start, at, part);
                break;
            }
        }
        let mut q = p;
        while rest > 0 {
            rest -= 1;
            let start = blocks.start(rest);
            if start.is_null() {
                double_and_add(&mut q, [L::zero(); N]);
            } else {
                let data = load(start, at, part);
                add(&mut p, data);
                double_and_add(&mut q, data);
            }
        }
        (p, q)
    }
}

struct Pq<B> {
    blocks: B,
    p: *mut u8,
    q: *mut u8,
}

impl<L: Lane, B: Blocks> Pass<L> for Pq<B> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let (p, q) = syndromes::<L, N>(self.blocks, at, part);
            store(p, self.p, at, part);
            store(q, self.q, at, part);
        }
        true
    }
}

struct Q<B> {
    blocks: B,
    q: *mut u8,
}

impl<L: Lane, B: Blocks> Pass<L> for Q<B> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe { store(syndromes::<L, N>(self.blocks, at, part).1, self.q, at, part) };
        true
    }
}

struct SolveWithQ<'a> {
    blocks: Sources<'a>,
    q: *const u8,
    factor: u8,
    lost: *mut u8,
}

impl<L: Lane> Pass<L> for SolveWithQ<'_> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let factor = L::factor(self.factor);
            let (_, mut q) = syndromes::<L, N>(self.blocks, at, part);
            add(&mut q, load(self.q, at, part));
            multiply(&mut q, factor);
            store(q, self.lost, at, part);
        }
        true
    }
}

struct SolveWithPq<'a> {
    blocks: Sources<'a>,
    p: *const u8,
    q: *const u8,
    factors: [u8; 2],
    lost: [*mut u8; 2],
}

impl<L: Lane> Pass<L> for SolveWithPq<'_> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let [by_p, by_q] = [L::factor(self.factors[0]), L::factor(self.factors[1])];
            let (mut p, mut q) = syndromes::<L, N>(self.blocks, at, part);
            add(&mut p, load(self.p, at, part));
            add(&mut q, load(self.q, at, part));
            let mut first = p;
            multiply(&mut first, by_p);
            multiply(&mut q, by_q);
            add(&mut first, q);
            store(first, self.lost[0], at, part);
            add(&mut p, first);
            store(p, self.lost[1], at, part);
        }
        true
    }
}

struct PqAgrees<'a> {
    blocks: Sources<'a>,
    p: *const u8,
    q: *const u8,
}

impl<L: Lane> Pass<L> for PqAgrees<'_> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let (mut p, mut q) = syndromes::<L, N>(self.blocks, at, part);
            add(&mut p, load(self.p, at, part));
            add(&mut q, load(self.q, at, part));
            all_zero(p) && all_zero(q)
        }
    }
}

/// Add all blocks to `sums`, two at a time.
///
/// # Safety
/// As [`Pass::step`].
#[inline(always)]
unsafe fn add_blocks<L: Lane, const N: usize>(sums: &mut [L; N], blocks: impl Blocks, at: usize, part: Option<usize>) {
    // SAFETY: the caller vouches for the CPU and for the bytes of every block.
    unsafe {
        let mut rest = blocks.count();
        while rest >= 2 {
            rest -= 2;
            add_both(sums, load(blocks.start(rest + 1), at, part), load(blocks.start(rest), at, part));
        }
        if rest == 1 {
            add(sums, load(blocks.start(0), at, part));
        }
    }
}

struct Xor<B> {
    blocks: B,
    destination: *mut u8,
    keep: bool,
}

impl<L: Lane, B: Blocks> Pass<L> for Xor<B> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let mut sums = if self.keep { load(self.destination, at, part) } else { [L::zero(); N] };
            add_blocks(&mut sums, self.blocks, at, part);
            store(sums, self.destination, at, part);
        }
        true
    }
}

struct PAgrees<'a> {
    blocks: &'a [&'a [u8]],
    p: *const u8,
}

impl<L: Lane> Pass<L> for PAgrees<'_> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let mut sums = load::<L, N>(self.p, at, part);
            add_blocks(&mut sums, self.blocks, at, part);
            all_zero(sums)
        }
    }
}

/// With `WITH_P`, `WITH_Q`: whether that parity is there.
struct Update<'a, const WITH_P: bool, const WITH_Q: bool> {
    changes: &'a [ParityChange<'a>],
    p: *mut u8,
    q: *mut u8,
}

impl<L: Lane, const WITH_P: bool, const WITH_Q: bool> Pass<L> for Update<'_, WITH_P, WITH_Q> {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let mut p = if WITH_P { load::<L, N>(self.p, at, part) } else { [L::zero(); N] };
            let mut q = if WITH_Q { load::<L, N>(self.q, at, part) } else { [L::zero(); N] };
            for change in self.changes {
                let mut delta = load(change.old.as_ptr(), at, part);
                add(&mut delta, load(change.new.as_ptr(), at, part));
                if WITH_P {
                    add(&mut p, delta);
                }
                if WITH_Q {
                    multiply(&mut delta, L::factor(gf::power(change.index)));
                    add(&mut q, delta);
                }
            }
            if WITH_P {
                store(p, self.p, at, part);
            }
            if WITH_Q {
                store(q, self.q, at, part);
            }
        }
        true
    }
}

struct IsZero(*const u8);

impl<L: Lane> Pass<L> for IsZero {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        all_zero(unsafe { load::<L, N>(self.0, at, part) })
    }
}

struct Equal(*const u8, *const u8);

impl<L: Lane> Pass<L> for Equal {
    #[inline(always)]
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool {
        // SAFETY: the same contract.
        unsafe {
            let mut difference = load::<L, N>(self.0, at, part);
            add(&mut difference, load(self.1, at, part));
            all_zero(difference)
        }
    }
}

/// The functions of a [`VariantTable`](crate::kernel_table::Table) over one lane. All are `unsafe` for the table's reason:
/// the CPU has the lane's instructions and the slices of one call have the same length. They are inlined into
/// the variant's own functions, which name the instructions.
pub(crate) mod bodies {
    use super::*;

    /// Run a pass over `$blocks`, the whole groups of it compiled for their number where that is usual; for the
    /// general registers that is not worth the code.
    macro_rules! run_by_count {
        ($lane:ident, |$blocks:ident| $pass:expr, $length:expr, $group:ident) => {
            run_by_count!(@list $lane, $blocks, $pass, $length, $group, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16])
        };
        (@list $lane:ident, $blocks:ident, $pass:expr, $length:expr, $group:ident, [$($k:literal)*]) => {{
            let rest = match $blocks.len() {
                $($k if $lane::BYTES > 8 => match Fixed::<$k>::new($blocks) {
                    Some($blocks) => run_groups::<$lane, { $group($k) }>($pass, $length),
                    None => 0,
                },)*
                _ => 0,
            };
            run::<$lane>($pass, rest, $length)
        }};
    }

    const fn xor_group(count: usize) -> usize {
        if count < XOR_GROUP_FROM {
            GROUP
        } else {
            XOR_GROUP
        }
    }

    const fn pq_group(_count: usize) -> usize {
        GROUP
    }

    #[inline(always)]
    pub(crate) unsafe fn xor<L: Lane>(destination: &mut [u8], blocks: &[&[u8]], keep: bool) {
        let (length, destination) = (destination.len(), destination.as_mut_ptr());
        // SAFETY: the table's contract.
        unsafe { run_by_count!(L, |blocks| Xor { blocks, destination, keep }, length, xor_group) };
    }

    #[inline(always)]
    pub(crate) unsafe fn pq<L: Lane>(p: &mut [u8], q: &mut [u8], blocks: Sources<'_>) {
        let (length, p, q) = (p.len(), p.as_mut_ptr(), q.as_mut_ptr());
        let fits = length.saturating_mul(blocks.len() + 2) <= L1_BYTES;
        // SAFETY: the table's contract.
        unsafe {
            if fits {
                run_by_count!(L, |blocks| Pq { blocks, p, q }, length, pq_group)
            } else {
                run::<L>(Pq { blocks, p, q }, 0, length)
            }
        };
    }

    #[inline(always)]
    pub(crate) unsafe fn q<L: Lane>(q: &mut [u8], data: Sources<'_>) {
        // SAFETY: the table's contract.
        unsafe { run::<L>(Q { blocks: data, q: q.as_mut_ptr() }, 0, q.len()) };
    }

    #[inline(always)]
    pub(crate) unsafe fn update<L: Lane>(p: Option<&mut [u8]>, q: Option<&mut [u8]>, changes: &[ParityChange<'_>]) {
        let null = core::ptr::null_mut();
        // SAFETY: the table's contract; the null pointers are never used, by the constants next to them.
        unsafe {
            match (p, q) {
                (Some(p), Some(q)) => {
                    run::<L>(Update::<true, true> { changes, p: p.as_mut_ptr(), q: q.as_mut_ptr() }, 0, p.len())
                }
                (Some(p), None) => run::<L>(Update::<true, false> { changes, p: p.as_mut_ptr(), q: null }, 0, p.len()),
                (None, Some(q)) => run::<L>(Update::<false, true> { changes, p: null, q: q.as_mut_ptr() }, 0, q.len()),
                (None, None) => true,
            };
        }
    }

    #[inline(always)]
    pub(crate) unsafe fn solve_with_q<L: Lane>(lost: &mut [u8], data: Sources<'_>, q: &[u8], factor: u8) {
        let (length, lost) = (lost.len(), lost.as_mut_ptr());
        // SAFETY: the table's contract.
        unsafe { run::<L>(SolveWithQ { blocks: data, q: q.as_ptr(), factor, lost }, 0, length) };
    }

    #[inline(always)]
    pub(crate) unsafe fn solve_with_pq<L: Lane>(
        lost: [&mut [u8]; 2],
        data: Sources<'_>,
        p: &[u8],
        q: &[u8],
        factors: [u8; 2],
    ) {
        let lost = lost.map(<[u8]>::as_mut_ptr);
        // SAFETY: the table's contract.
        unsafe { run::<L>(SolveWithPq { blocks: data, p: p.as_ptr(), q: q.as_ptr(), factors, lost }, 0, p.len()) };
    }

    #[inline(always)]
    pub(crate) unsafe fn p_agrees<L: Lane>(p: &[u8], data: &[&[u8]]) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(PAgrees { blocks: data, p: p.as_ptr() }, 0, p.len()) }
    }

    #[inline(always)]
    pub(crate) unsafe fn pq_agrees<L: Lane>(p: &[u8], q: &[u8], data: Sources<'_>) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(PqAgrees { blocks: data, p: p.as_ptr(), q: q.as_ptr() }, 0, p.len()) }
    }

    #[inline(always)]
    pub(crate) unsafe fn is_zero<L: Lane>(bytes: &[u8]) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(IsZero(bytes.as_ptr()), 0, bytes.len()) }
    }

    #[inline(always)]
    pub(crate) unsafe fn equal<L: Lane>(a: &[u8], b: &[u8]) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(Equal(a.as_ptr(), b.as_ptr()), 0, a.len()) }
    }
}

/// Compile all kernels for one lane with the named CPU features, and make their table.
macro_rules! variant {
    ($lane:ty, $name:literal, $crc32c:path, [$($feature:literal)*]) => {
        use crate::loops::bodies;
        use crate::kernel_table::{ParityChange, Sources, VariantTable};

        pub(crate) static TABLE: VariantTable = VariantTable {
            name: $name, xor, pq, q, update, solve_with_q, solve_with_pq, p_agrees, pq_agrees, is_zero, equal,
            crc32c: $crc32c,
        };

        crate::loops::variant!(@functions $lane, [$($feature)*],
            fn xor(destination: &mut [u8], sources: &[&[u8]], keep: bool) -> ();
            fn pq(p: &mut [u8], q: &mut [u8], data: Sources<'_>) -> ();
            fn q(q: &mut [u8], data: Sources<'_>) -> ();
            fn update(p: Option<&mut [u8]>, q: Option<&mut [u8]>, changes: &[ParityChange<'_>]) -> ();
            fn solve_with_q(lost: &mut [u8], data: Sources<'_>, q: &[u8], factor: u8) -> ();
            fn solve_with_pq(lost: [&mut [u8]; 2], data: Sources<'_>, p: &[u8], q: &[u8], factors: [u8; 2]) -> ();
            fn p_agrees(p: &[u8], data: &[&[u8]]) -> bool;
            fn pq_agrees(p: &[u8], q: &[u8], data: Sources<'_>) -> bool;
            fn is_zero(bytes: &[u8]) -> bool;
            fn equal(a: &[u8], b: &[u8]) -> bool;
        );
    };
    (@functions $lane:ty, $features:tt, $(fn $function:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(crate::loops::variant!(@function $lane, $features, $function, ($($argument: $type),*), $result);)*
    };
    (@function $lane:ty, [$($feature:literal)*], $function:ident, ($($argument:ident: $type:ty),*), $result:ty) => {
        $(#[target_feature(enable = $feature)])*
        unsafe fn $function($($argument: $type),*) -> $result {
            // SAFETY: the table's contract holds for this variant.
            unsafe { bodies::$function::<$lane>($($argument),*) }
        }
    };
}
pub(crate) use variant;
