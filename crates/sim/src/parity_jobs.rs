//! Carries out parity jobs on the frame pool, with the kernels of `openraid-parity`.
//!
//! Inputs are read in place. Outputs are computed outside the pool and then copied to it, so a job that names one range
//! twice keeps its meaning.

use openraid_core::actions::{JobColumn, JobKind, ParityJob};
use openraid_core::events::ParityVerdict;
use openraid_parity::{Kernels, ParityChange, SECTOR_BYTES};
use openraid_units::PoolOffset;

use crate::bytes_in_flight::{BytesInFlight, Ticket};

/// Claim the bytes that the job reads and writes.
pub fn claim(ticket: Ticket, job: &ParityJob, columns: &[JobColumn], claims: &mut BytesInFlight) {
    let len = u64::from(job.len);
    let syndromes = [job.p, job.q];
    let syndromes = syndromes.iter().flatten();
    match job.kind {
        JobKind::Generate => {
            columns.iter().for_each(|column| claims.read(ticket, column.at, len));
            syndromes.for_each(|at| claims.write(ticket, *at, len));
        }
        JobKind::Update => {
            for column in columns {
                claims.read(ticket, column.at, len);
                claims.read(ticket, column.old, len);
            }
            syndromes.for_each(|at| claims.write(ticket, *at, len));
        }
        JobKind::Recover { lost } => {
            let (present, lost) = columns.split_at(columns.len() - usize::from(lost));
            present.iter().for_each(|column| claims.read(ticket, column.at, len));
            syndromes.for_each(|at| claims.read(ticket, *at, len));
            lost.iter().for_each(|column| claims.write(ticket, column.at, len));
        }
        JobKind::Check => {
            columns.iter().for_each(|column| claims.read(ticket, column.at, len));
            syndromes.for_each(|at| claims.read(ticket, *at, len));
        }
        JobKind::Compare | JobKind::Checksum => {
            columns.iter().for_each(|column| claims.read(ticket, column.at, len));
        }
        JobKind::Copy => {
            for column in columns {
                claims.read(ticket, column.old, len);
                claims.write(ticket, column.at, len);
            }
        }
    }
}

/// Carry out a job.
///
/// # Panics
/// An invalid job: impossible lengths, places or losses.
pub fn run(kernels: Kernels, pool: &mut [u8], job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let sectors = (job.len as usize).is_multiple_of(SECTOR_BYTES);
    assert!(sectors || job.kind == JobKind::Copy, "a job on part of a sector: {job:?}");
    assert!(job.len > 0 && !columns.is_empty(), "an empty job: {job:?}");
    match job.kind {
        JobKind::Generate => generate(kernels, pool, job, columns),
        JobKind::Update => update(kernels, pool, job, columns),
        JobKind::Recover { lost } => recover(kernels, pool, job, columns, usize::from(lost)),
        JobKind::Check => check(kernels, pool, job, columns),
        JobKind::Compare => compare(pool, job, columns),
        JobKind::Checksum => ParityVerdict::Checksum(!kernels.crc32c(!0, &pool[range(columns[0].at, job.len)])),
        JobKind::Copy => {
            for column in columns {
                let from = range(column.old, job.len);
                pool.copy_within(from, index(column.at));
            }
            ParityVerdict::Done
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // the pool is in memory
fn index(at: PoolOffset) -> usize {
    at.get() as usize
}
fn range(at: PoolOffset, len: u32) -> std::ops::Range<usize> {
    index(at)..index(at) + len as usize
}
fn bytes(pool: &[u8], at: PoolOffset, len: u32) -> &[u8] {
    &pool[range(at, len)]
}

/// The columns by coefficient; zeroes if the job names no column for one.
fn row<'a>(pool: &'a [u8], job: &ParityJob, columns: &[JobColumn]) -> Vec<Option<&'a [u8]>> {
    let count = columns.iter().map(|column| usize::from(column.index) + 1).max().unwrap_or(0);
    let mut row = vec![None; count];
    for column in columns {
        let earlier = row[usize::from(column.index)].replace(bytes(pool, column.at, job.len));
        assert!(earlier.is_none(), "coefficient {} twice in {job:?}", column.index);
    }
    row
}

fn generate(kernels: Kernels, pool: &mut [u8], job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let (mut p, mut q) = (vec![0; job.len as usize], vec![0; job.len as usize]);
    // Only Q needs distinct coefficients.
    if job.q.is_some() {
        kernels.pq_sparse(&mut p, &mut q, &row(pool, job, columns));
    } else {
        let sources: Vec<&[u8]> = columns.iter().map(|column| bytes(pool, column.at, job.len)).collect();
        kernels.xor(&mut p, &sources);
    }
    put(pool, job.p, &p);
    put(pool, job.q, &q);
    assert!(job.p.is_some() || job.q.is_some(), "a job that computes nothing: {job:?}");
    ParityVerdict::Done
}

fn put(pool: &mut [u8], at: Option<PoolOffset>, result: &[u8]) {
    if let Some(at) = at {
        pool[index(at)..][..result.len()].copy_from_slice(result);
    }
}

fn update(kernels: Kernels, pool: &mut [u8], job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let change = |column: &JobColumn| ParityChange {
        index: column.index,
        old: bytes(pool, column.old, job.len),
        new: bytes(pool, column.at, job.len),
    };
    let changes: Vec<_> = columns.iter().map(change).collect();
    let mut p = job.p.map(|at| bytes(pool, at, job.len).to_vec());
    let mut q = job.q.map(|at| bytes(pool, at, job.len).to_vec());
    match (&mut p, &mut q) {
        (Some(p), Some(q)) => kernels.pq_update(p, q, &changes),
        (Some(p), None) => kernels.p_update(p, &changes),
        (None, Some(q)) => kernels.q_update(q, &changes),
        (None, None) => panic!("a job that updates nothing: {job:?}"),
    }
    put(pool, job.p, p.as_deref().unwrap_or_default());
    put(pool, job.q, q.as_deref().unwrap_or_default());
    ParityVerdict::Done
}

fn recover(kernels: Kernels, pool: &mut [u8], job: &ParityJob, columns: &[JobColumn], lost: usize) -> ParityVerdict {
    assert!(lost <= columns.len(), "more lost than there are columns: {job:?}");
    let (present, missing) = columns.split_at(columns.len() - lost);
    let present: Vec<_> = present.iter().map(|column| (column.index, bytes(pool, column.at, job.len))).collect();
    let mut results = vec![vec![0; job.len as usize]; lost];
    let mut lost: Vec<_> =
        missing.iter().zip(&mut results).map(|(column, out)| (column.index, out.as_mut_slice())).collect();
    let (p, q) = (job.p.map(|at| bytes(pool, at, job.len)), job.q.map(|at| bytes(pool, at, job.len)));
    kernels.recover(&present, p, q, &mut lost).unwrap_or_else(|error| panic!("{error}: {job:?}"));
    for (column, result) in missing.iter().zip(&results) {
        put(pool, Some(column.at), result);
    }
    ParityVerdict::Done
}

fn check(kernels: Kernels, pool: &[u8], job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let row = row(pool, job, columns);
    let (p, q) = (job.p.map(|at| bytes(pool, at, job.len)), job.q.map(|at| bytes(pool, at, job.len)));
    let zeroes = vec![0; job.len as usize];
    let whole: Vec<&[u8]> = row.iter().map(|block| block.unwrap_or(&zeroes)).collect();
    match (p, q) {
        (Some(p), Some(q)) => {
            let mut verdict = ParityVerdict::Match;
            kernels.check_pq_each(SECTOR_BYTES, p, q, &row, |_, found| {
                let (p, q, explains) = found.differences();
                verdict = verdict.and(ParityVerdict::of_row(p, q, explains, columns));
            });
            verdict
        }
        (Some(p), None) => ParityVerdict::of_one_parity(kernels.check_p(p, &whole).is_none()),
        (None, Some(q)) => {
            let mut expected = vec![0; job.len as usize];
            kernels.q(&mut expected, &whole);
            ParityVerdict::of_one_parity(expected == q)
        }
        (None, None) => panic!("a job that checks nothing: {job:?}"),
    }
}

fn compare(pool: &[u8], job: &ParityJob, columns: &[JobColumn]) -> ParityVerdict {
    let copies: Vec<&[u8]> = columns.iter().map(|column| bytes(pool, column.at, job.len)).collect();
    let mut verdict = ParityVerdict::Match;
    for start in (0..job.len as usize).step_by(SECTOR_BYTES) {
        verdict = verdict.and(ParityVerdict::of_copies(copies.iter().map(|copy| &copy[start..start + SECTOR_BYTES])));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use openraid_units::{Tag, TagKind};

    const LEN: u32 = 1024;

    fn column(index: u8, place: u64, old: u64) -> JobColumn {
        JobColumn { index, at: PoolOffset(place * u64::from(LEN)), old: PoolOffset(old * u64::from(LEN)) }
    }
    fn job(kind: JobKind, p: Option<u64>, q: Option<u64>, columns: &[JobColumn]) -> ParityJob {
        let place = |at: Option<u64>| at.map(|at| PoolOffset(at * u64::from(LEN)));
        let columns_len = u16::try_from(columns.len()).unwrap();
        let tag = Tag::new(TagKind::Job, 0, 0);
        ParityJob { tag, kind, len: LEN, columns_start: 0, columns_len, p: place(p), q: place(q) }
    }
    fn pool() -> Vec<u8> {
        let mut pool = vec![0; 16 * LEN as usize];
        Random::new(1).fill(&mut pool);
        pool
    }
    fn block(pool: &[u8], place: usize) -> &[u8] {
        &pool[place * LEN as usize..][..LEN as usize]
    }

    #[test]
    fn generated_parity_is_checked_updated_and_recovered_from() {
        let kernels = Kernels::reference();
        let mut pool = pool();
        let columns = [column(1, 1, 0), column(0, 2, 0), column(2, 3, 0)];
        run(kernels, &mut pool, &job(JobKind::Generate, Some(4), Some(5), &columns), &columns);
        let by_hand: Vec<u8> = (0..LEN as usize).map(|i| (1..4).fold(0, |sum, at| sum ^ block(&pool, at)[i])).collect();
        assert_eq!(block(&pool, 4), by_hand);
        let check = job(JobKind::Check, Some(4), Some(5), &columns);
        assert_eq!(run(kernels, &mut pool, &check, &columns), ParityVerdict::Match);

        // Block 6 replaces block 2.
        let change = [column(0, 6, 2)];
        run(kernels, &mut pool, &job(JobKind::Update, Some(4), Some(5), &change), &change);
        let columns = [column(1, 1, 0), column(0, 6, 0), column(2, 3, 0)];
        assert_eq!(run(kernels, &mut pool, &check, &columns), ParityVerdict::Match);

        let damaged = [column(0, 6, 0), column(1, 8, 0), column(2, 9, 0)];
        run(kernels, &mut pool, &job(JobKind::Recover { lost: 2 }, Some(4), Some(5), &damaged), &damaged);
        assert_eq!(block(&pool, 8), block(&pool, 1));
        assert_eq!(block(&pool, 9), block(&pool, 3));
    }

    #[test]
    fn a_check_names_the_place_of_the_guilty_column() {
        let kernels = Kernels::reference();
        let mut pool = pool();
        let columns = [column(2, 1, 0), column(0, 2, 0), column(1, 3, 0)];
        run(kernels, &mut pool, &job(JobKind::Generate, Some(4), Some(5), &columns), &columns);
        let check = job(JobKind::Check, Some(4), Some(5), &columns);
        for (place, verdict) in
            [(1, ParityVerdict::ColumnWrong(0)), (3, ParityVerdict::ColumnWrong(2)), (5, ParityVerdict::QWrong)]
        {
            let mut hurt = pool.clone();
            hurt[place * LEN as usize + 700] ^= 4;
            assert_eq!(run(kernels, &mut hurt, &check, &columns), verdict);
            // With a second wrong block in another sector, the verdict must name no block.
            hurt[4 * LEN as usize] ^= 1;
            assert_eq!(run(kernels, &mut hurt, &check, &columns), ParityVerdict::Unknown);
        }
    }

    #[test]
    fn copies_are_judged_by_majority_only() {
        let mut pool = vec![7; 16 * LEN as usize];
        let three = [column(0, 1, 0), column(1, 2, 0), column(2, 3, 0)];
        let compare = |pool: &mut Vec<u8>, columns: &[JobColumn]| {
            run(Kernels::reference(), pool, &job(JobKind::Compare, None, None, columns), columns)
        };
        assert_eq!(compare(&mut pool, &three), ParityVerdict::Match);
        pool[2 * LEN as usize + 512] = 0;
        assert_eq!(compare(&mut pool, &three), ParityVerdict::ColumnWrong(1));
        assert_eq!(compare(&mut pool, &three[..2]), ParityVerdict::Unknown);
        pool[3 * LEN as usize] = 0;
        assert_eq!(compare(&mut pool, &three), ParityVerdict::Unknown);
    }

    #[test]
    fn a_copy_takes_any_number_of_bytes() {
        let mut pool = pool();
        let columns = [JobColumn { index: 0, at: PoolOffset(5), old: PoolOffset(2001) }];
        let before = pool[2001..2004].to_vec();
        let job = ParityJob { len: 3, ..job(JobKind::Copy, None, None, &columns) };
        run(Kernels::reference(), &mut pool, &job, &columns);
        assert_eq!(pool[5..8], before);
    }
}
