//! The kernels, written once over [`Lane`]; each variant compiles them with its own instructions.
//!
//! Every kernel computes all results of one group of bytes in registers, so that each data byte is loaded
//! once, and goes from the highest data index down: Q by Horner's rule needs only doublings. Loads and
//! stores need no alignment. The end of the slices is handled by part loads, never by reading beyond.

use crate::gf;
use crate::lane::Lane;
use crate::table::{Change, Sources};

/// Lanes worked on together: enough independent chains to hide the latency of Horner's rule, and few enough
/// that P, Q and a loaded lane each stay in registers.
const GROUP: usize = 4;

/// A kernel's work on the lanes from one offset on.
trait Pass<L: Lane> {
    /// Work on `N` whole lanes at offset `at` or, with `part`, on that many bytes of one lane. False stops.
    ///
    /// # Safety
    /// The CPU has the lane's instructions and the bytes lie within the pass's slices.
    unsafe fn step<const N: usize>(&mut self, at: usize, part: Option<usize>) -> bool;
}

/// Run a pass over `length` bytes. Returns whether it went to the end.
///
/// # Safety
/// The CPU has the lane's instructions and all slices of the pass are `length` long.
#[inline(always)]
unsafe fn run<L: Lane>(mut pass: impl Pass<L>, length: usize) -> bool {
    let mut at = 0;
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

/// # Safety
/// As [`Pass::step`], for the slice that begins at `from`.
#[inline(always)]
unsafe fn load<L: Lane, const N: usize>(from: *const u8, at: usize, part: Option<usize>) -> [L; N] {
    // SAFETY: the caller vouches for the bytes at `at`.
    unsafe {
        match part {
            None => core::array::from_fn(|lane| L::load(from.add(at + lane * L::BYTES))),
            Some(length) => [L::load_part(from.add(at), length); N],
        }
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

#[inline(always)]
fn each<L: Lane, const N: usize>(a: [L; N], b: [L; N], f: impl Fn(L, L) -> L) -> [L; N] {
    core::array::from_fn(|lane| f(a[lane], b[lane]))
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
    fn new(data: Sources<'_>) -> Option<Self> {
        let data: &[Option<&[u8]>; K] = data.try_into().ok()?;
        let mut starts = [core::ptr::null(); K];
        for (start, block) in starts.iter_mut().zip(data) {
            *start = (*block)?.as_ptr();
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
        self[index].map_or(core::ptr::null(), <[u8]>::as_ptr)
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
        let (mut p, mut q) = ([L::zero(); N], [L::zero(); N]);
        for index in (0..blocks.count()).rev() {
            let start = blocks.start(index);
            if start.is_null() {
                q = q.map(L::double);
            } else {
                let data = load::<L, N>(start, at, part);
                p = each(p, data, L::xor);
                q = each(q, data, |q, data| q.double().xor(data));
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
            let (_, others) = syndromes::<L, N>(self.blocks, at, part);
            let q = load::<L, N>(self.q, at, part);
            store(each(others, q, |a, b| a.xor(b).multiply(factor)), self.lost, at, part);
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
            let factors = self.factors.map(|factor| L::factor(factor));
            let (p, q) = syndromes::<L, N>(self.blocks, at, part);
            let sum = each(p, load::<L, N>(self.p, at, part), L::xor);
            let weighted = each(q, load::<L, N>(self.q, at, part), L::xor);
            let first = each(sum, weighted, |s, t| s.multiply(factors[0]).xor(t.multiply(factors[1])));
            store(first, self.lost[0], at, part);
            store(each(sum, first, L::xor), self.lost[1], at, part);
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
            let (p, q) = syndromes::<L, N>(self.blocks, at, part);
            let p = each(p, load::<L, N>(self.p, at, part), L::xor);
            let q = each(q, load::<L, N>(self.q, at, part), L::xor);
            all_zero(each(p, q, L::or))
        }
    }
}

/// `start` XOR all blocks, two at a time.
///
/// # Safety
/// As [`Pass::step`].
#[inline(always)]
unsafe fn sum<L: Lane, const N: usize>(start: [L; N], blocks: impl Blocks, at: usize, part: Option<usize>) -> [L; N] {
    let mut sum = start;
    // SAFETY: the caller vouches for the CPU and for the bytes of every block.
    unsafe {
        let count = blocks.count();
        for pair in 0..count / 2 {
            let a = load::<L, N>(blocks.start(2 * pair), at, part);
            let b = load::<L, N>(blocks.start(2 * pair + 1), at, part);
            sum = core::array::from_fn(|lane| sum[lane].xor3(a[lane], b[lane]));
        }
        if count % 2 == 1 {
            sum = each(sum, load::<L, N>(blocks.start(count - 1), at, part), L::xor);
        }
    }
    sum
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
            let old = if self.keep { load::<L, N>(self.destination, at, part) } else { [L::zero(); N] };
            store(sum(old, self.blocks, at, part), self.destination, at, part);
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
        unsafe { all_zero(sum(load::<L, N>(self.p, at, part), self.blocks, at, part)) }
    }
}

/// With `WITH_P`, `WITH_Q`: whether that parity is there.
struct Update<'a, const WITH_P: bool, const WITH_Q: bool> {
    changes: &'a [Change<'a>],
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
                let old = load::<L, N>(change.old.as_ptr(), at, part);
                let delta = each(old, load::<L, N>(change.new.as_ptr(), at, part), L::xor);
                if WITH_P {
                    p = each(p, delta, L::xor);
                }
                if WITH_Q {
                    let factor = L::factor(gf::power(change.index));
                    q = each(q, delta, |q, delta| q.xor(delta.multiply(factor)));
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
        unsafe { all_zero(each(load::<L, N>(self.0, at, part), load::<L, N>(self.1, at, part), L::xor)) }
    }
}

/// The functions of a [`Table`](crate::table::Table) over one lane. All are `unsafe` for the table's reason:
/// the CPU has the lane's instructions and the slices of one call have the same length. They are inlined into
/// the variant's own functions, which name the instructions.
pub(crate) mod bodies {
    use super::*;

    /// Call `$then` with the blocks as `Fixed<K>` where their number is one of the list, otherwise as they are.
    macro_rules! by_count {
        ($data:expr, [$($k:literal)*], |$blocks:ident| $then:expr) => {
            match $data.len() {
                $($k if let Some($blocks) = Fixed::<$k>::new($data) => $then,)*
                _ => { let $blocks = $data; $then }
            }
        };
    }

    #[inline(always)]
    pub(crate) unsafe fn xor<L: Lane>(destination: &mut [u8], sources: &[&[u8]], keep: bool) {
        let (length, destination) = (destination.len(), destination.as_mut_ptr());
        // SAFETY: the table's contract.
        unsafe { run::<L>(Xor { blocks: sources, destination, keep }, length) };
    }

    #[inline(always)]
    pub(crate) unsafe fn pq<L: Lane>(p: &mut [u8], q: &mut [u8], data: Sources<'_>) {
        let (length, p, q) = (p.len(), p.as_mut_ptr(), q.as_mut_ptr());
        // SAFETY: the table's contract.
        unsafe { run::<L>(Pq { blocks: data, p, q }, length) };
    }

    #[inline(always)]
    pub(crate) unsafe fn q<L: Lane>(q: &mut [u8], data: Sources<'_>) {
        // SAFETY: the table's contract.
        unsafe { run::<L>(Q { blocks: data, q: q.as_mut_ptr() }, q.len()) };
    }

    #[inline(always)]
    pub(crate) unsafe fn update<L: Lane>(p: Option<&mut [u8]>, q: Option<&mut [u8]>, changes: &[Change<'_>]) {
        let null = core::ptr::null_mut();
        // SAFETY: the table's contract; the null pointers are never used, by the constants beside them.
        unsafe {
            match (p, q) {
                (Some(p), Some(q)) => {
                    run::<L>(Update::<true, true> { changes, p: p.as_mut_ptr(), q: q.as_mut_ptr() }, p.len())
                }
                (Some(p), None) => run::<L>(Update::<true, false> { changes, p: p.as_mut_ptr(), q: null }, p.len()),
                (None, Some(q)) => run::<L>(Update::<false, true> { changes, p: null, q: q.as_mut_ptr() }, q.len()),
                (None, None) => true,
            };
        }
    }

    #[inline(always)]
    pub(crate) unsafe fn solve_with_q<L: Lane>(lost: &mut [u8], data: Sources<'_>, q: &[u8], factor: u8) {
        let (length, lost) = (lost.len(), lost.as_mut_ptr());
        // SAFETY: the table's contract.
        unsafe { run::<L>(SolveWithQ { blocks: data, q: q.as_ptr(), factor, lost }, length) };
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
        unsafe { run::<L>(SolveWithPq { blocks: data, p: p.as_ptr(), q: q.as_ptr(), factors, lost }, p.len()) };
    }

    #[inline(always)]
    pub(crate) unsafe fn p_agrees<L: Lane>(p: &[u8], data: &[&[u8]]) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(PAgrees { blocks: data, p: p.as_ptr() }, p.len()) }
    }

    #[inline(always)]
    pub(crate) unsafe fn pq_agrees<L: Lane>(p: &[u8], q: &[u8], data: Sources<'_>) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(PqAgrees { blocks: data, p: p.as_ptr(), q: q.as_ptr() }, p.len()) }
    }

    #[inline(always)]
    pub(crate) unsafe fn is_zero<L: Lane>(bytes: &[u8]) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(IsZero(bytes.as_ptr()), bytes.len()) }
    }

    #[inline(always)]
    pub(crate) unsafe fn equal<L: Lane>(a: &[u8], b: &[u8]) -> bool {
        // SAFETY: the table's contract.
        unsafe { run::<L>(Equal(a.as_ptr(), b.as_ptr()), a.len()) }
    }
}

/// Compile all kernels for one lane with the named CPU features, and make their table.
macro_rules! variant {
    ($lane:ty, $name:literal, $crc32c:path, [$($feature:literal)*]) => {
        use crate::loops::bodies;
        use crate::table::{Change, Sources, Table};

        pub(crate) static TABLE: Table = Table {
            name: $name, xor, pq, q, update, solve_with_q, solve_with_pq, p_agrees, pq_agrees, is_zero, equal,
            crc32c: $crc32c,
        };

        crate::loops::variant!(@functions $lane, [$($feature)*],
            fn xor(destination: &mut [u8], sources: &[&[u8]], keep: bool) -> ();
            fn pq(p: &mut [u8], q: &mut [u8], data: Sources<'_>) -> ();
            fn q(q: &mut [u8], data: Sources<'_>) -> ();
            fn update(p: Option<&mut [u8]>, q: Option<&mut [u8]>, changes: &[Change<'_>]) -> ();
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
