//! Parity jobs of the engine, carried out on the frame pool in place.
//!
//! Nothing is decided here: the job names columns, places and kinds, and the kernels of `openraid-parity` do the
//! arithmetic. Allocates nothing.

use openraid_core::actions::{JobColumn, JobKind, ParityJob};
use openraid_core::events::ParityVerdict;
use openraid_parity::{BlockList, Kernels, ParityChange, SECTOR_BYTES};
use openraid_sys::{FramePool, PoolRange};
use openraid_units::{Bytes, PoolOffset};

/// Bytes of one step if a result must be computed outside of the pool to be compared.
const CHECK_BYTES: usize = 4096;

/// Carry out a job.
///
/// # Panics
/// A job that makes no sense, or frames that the kernel uses: bugs of the engine.
pub fn run(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    assert!(job.len > 0 && !columns.is_empty(), "bug: an empty job: {job:?}");
    let sectors = (job.len as usize).is_multiple_of(SECTOR_BYTES);
    assert!(sectors || job.kind == JobKind::Copy, "bug: a job on part of a sector: {job:?}");
    match job.kind {
        JobKind::Generate => generate(kernels, pool, job, columns),
        JobKind::Update => update(kernels, pool, job, columns),
        JobKind::Recover { lost } => recover(kernels, pool, job, columns, usize::from(lost)),
        JobKind::Check => return check(kernels, pool, job, columns),
        JobKind::Compare => return compare(kernels, pool, job, columns),
        JobKind::Checksum => {
            let at = range(columns[0].at, job);
            let mut crc = 0;
            pool.disjoint(&[at], &[], |from, _| crc = !kernels.crc32c(!0, from[0]));
            return ParityVerdict::Checksum(crc);
        }
        JobKind::Copy => {
            for column in columns {
                let (from, to) = (range(column.old, job), range(column.at, job));
                pool.disjoint(&[from], &[to], |from, to| to[0].copy_from_slice(from[0]));
            }
        }
    }
    ParityVerdict::Done
}

fn range(at: PoolOffset, job: &ParityJob) -> PoolRange {
    PoolRange::new(at, Bytes(u64::from(job.len)))
}

/// The ranges that hold the columns now, in their order.
fn ranges<'a>(columns: &'a [JobColumn], job: &'a ParityJob) -> impl Iterator<Item = PoolRange> + 'a {
    columns.iter().map(|column| range(column.at, job))
}

/// The ranges of the parities at hand.
fn syndromes(job: &ParityJob) -> impl Iterator<Item = PoolRange> + '_ {
    [job.p, job.q].into_iter().flatten().map(|at| range(at, job))
}

/// Puts the columns into `row` by coefficient. `None` stands for one that the job does not name: a block of zeroes.
fn by_coefficient<'a>(row: &mut BlockList<Option<&'a [u8]>>, columns: &[JobColumn], blocks: &[&'a [u8]]) {
    let count = columns.iter().map(|column| usize::from(column.index) + 1).max().unwrap_or(0);
    row.extend((0..count).map(|_| None));
    for (column, block) in columns.iter().zip(blocks) {
        let earlier = row.as_mut_slice()[usize::from(column.index)].replace(*block);
        assert!(earlier.is_none(), "bug: coefficient {} twice in a job", column.index);
    }
}

fn generate(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) {
    let mut reads = BlockList::new();
    reads.extend(ranges(columns, job));
    let reads = reads.as_slice();
    match (job.p, job.q) {
        (Some(p), None) => pool.disjoint(reads, &[range(p, job)], |data, out| kernels.xor(out[0], data)),
        (None, Some(q)) => pool.disjoint(reads, &[range(q, job)], |data, out| {
            let mut row = BlockList::new();
            by_coefficient(&mut row, columns, data);
            kernels.q_sparse(out[0], row.as_slice());
        }),
        (Some(p), Some(q)) => pool.disjoint(reads, &[range(p, job), range(q, job)], |data, out| {
            let mut row = BlockList::new();
            by_coefficient(&mut row, columns, data);
            let [p, q] = out else { unreachable!("two were given") };
            kernels.pq_sparse(p, q, row.as_slice());
        }),
        (None, None) => panic!("bug: a job that computes nothing: {job:?}"),
    }
}

fn update(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) {
    let mut reads = BlockList::new();
    reads.extend(columns.iter().flat_map(|column| [column.at, column.old]).map(|at| range(at, job)));
    let writes = [job.p, job.q].map(|at| at.map(|at| range(at, job)));
    let run = |data: &[&[u8]], out: &mut [&mut [u8]]| {
        let mut changes = BlockList::new();
        let (pairs, _) = data.as_chunks::<2>();
        changes.extend(columns.iter().zip(pairs).map(|(column, &[new, old])| ParityChange {
            index: column.index,
            old,
            new,
        }));
        let changes = changes.as_slice();
        match out {
            [p, q] => kernels.pq_update(p, q, changes),
            [p] if job.p.is_some() => kernels.p_update(p, changes),
            [q] => kernels.q_update(q, changes),
            _ => panic!("bug: a job that updates nothing: {job:?}"),
        }
    };
    match writes {
        [Some(p), Some(q)] => pool.disjoint(reads.as_slice(), &[p, q], run),
        [Some(only), None] | [None, Some(only)] => pool.disjoint(reads.as_slice(), &[only], run),
        [None, None] => panic!("bug: a job that updates nothing: {job:?}"),
    }
}

fn recover(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn], lost: usize) {
    assert!(lost <= columns.len() && lost <= 2, "bug: {lost} lost columns: {job:?}");
    let (present, missing) = columns.split_at(columns.len() - lost);
    let mut reads = BlockList::new();
    reads.extend(ranges(present, job).chain(syndromes(job)));
    let mut writes = BlockList::new();
    writes.extend(ranges(missing, job));
    pool.disjoint(reads.as_slice(), writes.as_slice(), |data, out| {
        let (data, syndromes) = data.split_at(present.len());
        let mut blocks = BlockList::new();
        blocks.extend(present.iter().zip(data).map(|(column, block)| (column.index, *block)));
        let blocks = blocks.as_slice();
        let (p, q) = match (job.p, job.q) {
            (Some(_), Some(_)) => (Some(syndromes[0]), Some(syndromes[1])),
            (Some(_), None) => (Some(syndromes[0]), None),
            (None, Some(_)) => (None, Some(syndromes[0])),
            (None, None) => (None, None),
        };
        let done = match out {
            [] => Ok(()),
            [one] => kernels.recover(blocks, p, q, &mut [(missing[0].index, one)]),
            [one, two, ..] => kernels.recover(blocks, p, q, &mut [(missing[0].index, one), (missing[1].index, two)]),
        };
        done.unwrap_or_else(|error| panic!("bug: {error}: {job:?}"));
    });
}

fn check(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let mut reads = BlockList::new();
    reads.extend(ranges(columns, job).chain(syndromes(job)));
    pool.disjoint(reads.as_slice(), &[], |data, _| {
        let (data, syndromes) = data.split_at(columns.len());
        match (job.p, job.q) {
            (Some(_), Some(_)) => check_pq(kernels, syndromes[0], syndromes[1], columns, data),
            (Some(_), None) => ParityVerdict::of_one_parity(kernels.check_p(syndromes[0], data).is_none()),
            (None, Some(_)) => check_q(kernels, syndromes[0], columns, data),
            (None, None) => panic!("bug: a job that checks nothing: {job:?}"),
        }
    })
}

fn check_pq(kernels: Kernels, p: &[u8], q: &[u8], columns: &[JobColumn], data: &[&[u8]]) -> ParityVerdict {
    let mut row = BlockList::new();
    by_coefficient(&mut row, columns, data);
    let mut verdict = ParityVerdict::Match;
    kernels.check_pq_each(SECTOR_BYTES, p, q, row.as_slice(), |_, found| {
        let (p, q, explains) = found.differences();
        verdict = verdict.and(ParityVerdict::of_row(p, q, explains, columns));
    });
    verdict
}

fn check_q(kernels: Kernels, q: &[u8], columns: &[JobColumn], data: &[&[u8]]) -> ParityVerdict {
    let mut row = BlockList::new();
    by_coefficient(&mut row, columns, data);
    let mut expected = [0; CHECK_BYTES];
    for (nth, step) in q.chunks(CHECK_BYTES).enumerate() {
        let mut part = BlockList::new();
        part.extend(row.as_slice().iter().map(|block| block.map(|block| &block[nth * CHECK_BYTES..][..step.len()])));
        kernels.q_sparse(&mut expected[..step.len()], part.as_slice());
        if kernels.compare(&expected[..step.len()], step).is_some() {
            return ParityVerdict::of_one_parity(false);
        }
    }
    ParityVerdict::of_one_parity(true)
}

/// Compare copies with the first one, sector by sector if they differ. A faulty copy is named only by a majority.
fn compare(kernels: Kernels, pool: &FramePool, job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let bytes = |column: &JobColumn| pool.slice(range(column.at, job));
    let first = bytes(&columns[0]);
    if columns[1..].iter().all(|column| kernels.compare(first, bytes(column)).is_none()) {
        return ParityVerdict::Match;
    }
    let mut verdict = ParityVerdict::Match;
    for start in (0..job.len as usize).step_by(SECTOR_BYTES) {
        let sector = |column: &JobColumn| &bytes(column)[start..start + SECTOR_BYTES];
        verdict = verdict.and(ParityVerdict::of_copies(columns.iter().map(sector)));
    }
    verdict
}

#[cfg(test)]
mod tests;
