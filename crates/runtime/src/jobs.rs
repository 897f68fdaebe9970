//! Parity jobs of the engine, carried out on the frame pool in place.
//!
//! Nothing is decided here: the job names columns, places and kinds, and the kernels of `openraid-parity` do the
//! arithmetic. Allocates nothing.

use openraid_core::actions::{JobColumn, JobKind, ParityJob};
use openraid_core::events::Verdict;
use openraid_parity::{Change, Kernels, PqVerdict, SECTOR_BYTES};
use openraid_sys::{FramePool, PoolRange, DISJOINT_READS_MAX};
use openraid_units::{Bytes, PoolOffset};

/// Columns for which the smaller of two sizes of lists on the stack does: clearing the larger costs more than
/// the arithmetic of a small job.
const FEW: usize = 16;
/// Columns of any job: the members of the widest set.
const MANY: usize = DISJOINT_READS_MAX;
/// Sectors of one step where a result must be computed beside the pool to be compared.
const CHECK_BYTES: usize = 4096;

/// Carry out a job.
///
/// # Panics
/// A job that makes no sense, or frames that are in the kernel's hands: bugs of the engine.
pub fn run(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) -> Verdict {
    assert!(job.len > 0 && !columns.is_empty(), "bug: an empty job: {job:?}");
    let sectors = (job.len as usize).is_multiple_of(SECTOR_BYTES);
    assert!(sectors || job.kind == JobKind::Copy, "bug: a job on part of a sector: {job:?}");
    let coefficients = columns.iter().map(|column| usize::from(column.index) + 1).max().unwrap_or(0);
    if columns.len() * 2 + 2 <= FEW && coefficients <= FEW {
        run_sized::<FEW>(kernels, pool, job, columns)
    } else {
        run_sized::<MANY>(kernels, pool, job, columns)
    }
}

fn run_sized<const N: usize>(
    kernels: Kernels,
    pool: &mut FramePool,
    job: &ParityJob,
    columns: &[JobColumn],
) -> Verdict {
    match job.kind {
        JobKind::Generate => generate::<N>(kernels, pool, job, columns),
        JobKind::Update => update::<N>(kernels, pool, job, columns),
        JobKind::Recover { lost } => recover::<N>(kernels, pool, job, columns, usize::from(lost)),
        JobKind::Check => return check::<N>(kernels, pool, job, columns),
        JobKind::Compare => return compare(kernels, pool, job, columns),
        JobKind::Checksum => {
            let at = range(columns[0].at, job);
            let mut crc = 0;
            pool.disjoint(&[at], &[], |from, _| crc = !kernels.crc32c(!0, from[0]));
            return Verdict::Checksum(crc);
        }
        JobKind::Copy => {
            for column in columns {
                let (from, to) = (range(column.old, job), range(column.at, job));
                pool.disjoint(&[from], &[to], |from, to| to[0].copy_from_slice(from[0]));
            }
        }
    }
    Verdict::Done
}

fn range(at: PoolOffset, job: &ParityJob) -> PoolRange {
    PoolRange::new(at, Bytes(u64::from(job.len)))
}

/// The ranges of the columns, in their order.
fn ranges<const N: usize>(
    columns: &[JobColumn],
    job: &ParityJob,
    of: impl Fn(&JobColumn) -> PoolOffset,
) -> ([PoolRange; N], usize) {
    let mut ranges = [PoolRange::default(); N];
    for (range_of, column) in ranges.iter_mut().zip(columns) {
        *range_of = range(of(column), job);
    }
    (ranges, columns.len())
}

/// The columns by coefficient; nothing where the job names none, which is a block of zeroes.
fn row<'a, const N: usize>(columns: &[JobColumn], blocks: &[&'a [u8]]) -> ([Option<&'a [u8]>; N], usize) {
    let mut row = [None; N];
    let mut count = 0;
    for (column, block) in columns.iter().zip(blocks) {
        let earlier = row[usize::from(column.index)].replace(*block);
        assert!(earlier.is_none(), "bug: coefficient {} twice in a job", column.index);
        count = count.max(usize::from(column.index) + 1);
    }
    (row, count)
}

fn generate<const N: usize>(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) {
    let (reads, count) = ranges::<N>(columns, job, |column| column.at);
    match (job.p, job.q) {
        (Some(p), None) => {
            pool.disjoint(&reads[..count], &[range(p, job)], |data, out| kernels.xor(out[0], data));
        }
        (None, Some(q)) => pool.disjoint(&reads[..count], &[range(q, job)], |data, out| {
            let (row, count) = row::<N>(columns, data);
            kernels.q_sparse(out[0], &row[..count]);
        }),
        (Some(p), Some(q)) => {
            pool.disjoint(&reads[..count], &[range(p, job), range(q, job)], |data, out| {
                let (row, count) = row::<N>(columns, data);
                let [p, q] = out else { unreachable!("two were given") };
                kernels.pq_sparse(p, q, &row[..count]);
            });
        }
        (None, None) => panic!("bug: a job that computes nothing: {job:?}"),
    }
}

fn update<const N: usize>(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) {
    let mut reads = [PoolRange::default(); N];
    let places = columns.iter().flat_map(|column| [column.at, column.old]);
    for (read, at) in reads.iter_mut().zip(places) {
        *read = range(at, job);
    }
    let reads = &reads[..2 * columns.len()];
    let writes = [job.p, job.q].map(|at| at.map(|at| range(at, job)));
    let run = |data: &[&[u8]], out: &mut [&mut [u8]]| {
        let mut changes = [const { Change { index: 0, old: &[], new: &[] } }; N];
        for (nth, (change, column)) in changes.iter_mut().zip(columns).enumerate() {
            *change = Change { index: column.index, new: data[2 * nth], old: data[2 * nth + 1] };
        }
        let changes = &changes[..columns.len()];
        match out {
            [p, q] => kernels.pq_update(p, q, changes),
            [p] if job.p.is_some() => kernels.p_update(p, changes),
            [q] => kernels.q_update(q, changes),
            _ => panic!("bug: a job that updates nothing: {job:?}"),
        }
    };
    match writes {
        [Some(p), Some(q)] => pool.disjoint(reads, &[p, q], run),
        [Some(only), None] | [None, Some(only)] => pool.disjoint(reads, &[only], run),
        [None, None] => panic!("bug: a job that updates nothing: {job:?}"),
    }
}

fn recover<const N: usize>(
    kernels: Kernels,
    pool: &mut FramePool,
    job: &ParityJob,
    columns: &[JobColumn],
    lost: usize,
) {
    assert!(lost <= columns.len() && lost <= 2, "bug: {lost} lost columns: {job:?}");
    let (present, missing) = columns.split_at(columns.len() - lost);
    let (mut reads, mut count) = ranges::<N>(present, job, |column| column.at);
    for syndrome in [job.p, job.q].into_iter().flatten() {
        reads[count] = range(syndrome, job);
        count += 1;
    }
    let (writes, _) = ranges::<2>(missing, job, |column| column.at);
    pool.disjoint(&reads[..count], &writes[..lost], |data, out| {
        let (data, syndromes) = data.split_at(present.len());
        let mut blocks = [(0, &[][..]); N];
        for (block, (column, bytes)) in blocks.iter_mut().zip(present.iter().zip(data)) {
            *block = (column.index, *bytes);
        }
        let blocks = &blocks[..present.len()];
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

fn check<const N: usize>(kernels: Kernels, pool: &mut FramePool, job: &ParityJob, columns: &[JobColumn]) -> Verdict {
    let (mut reads, count) = ranges::<N>(columns, job, |column| column.at);
    let mut all = count;
    for syndrome in [job.p, job.q].into_iter().flatten() {
        reads[all] = range(syndrome, job);
        all += 1;
    }
    pool.disjoint(&reads[..all], &[], |data, _| {
        let (data, syndromes) = data.split_at(count);
        match (job.p, job.q) {
            (Some(_), Some(_)) => check_pq(kernels, syndromes[0], syndromes[1], columns, data),
            (Some(_), None) => kernels.check_p(syndromes[0], data).map_or(Verdict::Match, |_| Verdict::Unknown),
            (None, Some(_)) => check_q::<N>(kernels, syndromes[0], columns, data),
            (None, None) => panic!("bug: a job that checks nothing: {job:?}"),
        }
    })
}

fn check_pq(kernels: Kernels, p: &[u8], q: &[u8], columns: &[JobColumn], data: &[&[u8]]) -> Verdict {
    let zeroes;
    let (row, count) = row::<MANY>(columns, data);
    let whole = if row[..count].iter().all(Option::is_some) {
        &[][..]
    } else {
        zeroes = vec![0; p.len()];
        &zeroes[..]
    };
    let mut blocks = [&[][..]; MANY];
    for (block, column) in blocks.iter_mut().zip(&row[..count]) {
        *block = column.unwrap_or(whole);
    }
    let mut verdict = Verdict::Match;
    kernels.check_pq_each(SECTOR_BYTES, p, q, &blocks[..count], |_, found| {
        verdict = combine(verdict, of_columns(found, columns));
    });
    verdict
}

fn check_q<const N: usize>(kernels: Kernels, q: &[u8], columns: &[JobColumn], data: &[&[u8]]) -> Verdict {
    let (row, count) = row::<N>(columns, data);
    let mut expected = [0; CHECK_BYTES];
    for (nth, step) in q.chunks(CHECK_BYTES).enumerate() {
        let part = row.map(|block| block.map(|block| &block[nth * CHECK_BYTES..][..step.len()]));
        kernels.q_sparse(&mut expected[..step.len()], &part[..count]);
        if kernels.compare(&expected[..step.len()], step).is_some() {
            return Verdict::Unknown;
        }
    }
    Verdict::Match
}

/// The kernels name a coefficient, the engine wants the column's place.
fn of_columns(found: PqVerdict, columns: &[JobColumn]) -> Verdict {
    match found {
        PqVerdict::Match => Verdict::Match,
        PqVerdict::PWrong => Verdict::PWrong,
        PqVerdict::QWrong => Verdict::QWrong,
        PqVerdict::Unknown => Verdict::Unknown,
        PqVerdict::DataWrong { index } => {
            let place = columns.iter().position(|column| column.index == index);
            place.and_then(|place| u16::try_from(place).ok()).map_or(Verdict::Unknown, Verdict::ColumnWrong)
        }
    }
}

/// One verdict for all rows: the same one, or nobody is blamed.
fn combine(before: Verdict, row: Verdict) -> Verdict {
    match (before, row) {
        (Verdict::Match, row) => row,
        (before, Verdict::Match) => before,
        (before, row) if before == row => before,
        _ => Verdict::Unknown,
    }
}

/// Copies against the first, sector by sector where they differ; the odd one out is named by a majority only.
fn compare(kernels: Kernels, pool: &FramePool, job: &ParityJob, columns: &[JobColumn]) -> Verdict {
    let bytes = |column: &JobColumn| pool.slice(range(column.at, job));
    let first = bytes(&columns[0]);
    if columns[1..].iter().all(|column| kernels.compare(first, bytes(column)).is_none()) {
        return Verdict::Match;
    }
    let mut verdict = Verdict::Match;
    for start in (0..job.len as usize).step_by(SECTOR_BYTES) {
        let sector = |column: &JobColumn| &bytes(column)[start..start + SECTOR_BYTES];
        let votes = |wanted: &[u8]| columns.iter().filter(|column| sector(column) == wanted).count();
        let Some(majority) = columns.iter().map(sector).find(|sector| votes(sector) * 2 > columns.len()) else {
            return Verdict::Unknown;
        };
        let mut odd = (0..).zip(columns).filter(|(_, column)| sector(column) != majority);
        let row = match (odd.next(), odd.next()) {
            (None, _) => Verdict::Match,
            (Some((place, _)), None) => Verdict::ColumnWrong(place),
            (Some(_), Some(_)) => Verdict::Unknown,
        };
        verdict = combine(verdict, row);
    }
    verdict
}

#[cfg(test)]
mod tests;
