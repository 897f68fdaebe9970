//! Jobs against arithmetic done here byte by byte.

use super::*;
use openraid_sys::PoolOptions;
use openraid_units::{Tag, TagKind};

const LEN: u64 = 8192;
const BYTES: usize = 8192;

fn pool(blocks: u64) -> FramePool {
    let mut pool = FramePool::new(PoolOptions::of(Bytes(blocks * LEN))).expect("memory for a small pool");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for byte in pool.slice_mut(PoolRange::new(PoolOffset(0), Bytes(blocks * LEN))) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    pool
}
fn place(block: u64) -> PoolOffset {
    PoolOffset(block * LEN)
}
fn block(pool: &FramePool, at: u64) -> Vec<u8> {
    pool.slice(PoolRange::new(place(at), Bytes(LEN))).to_vec()
}
fn column(index: u8, at: u64, old: u64) -> JobColumn {
    JobColumn { index, at: place(at), old: place(old) }
}
fn job(kind: JobKind, p: Option<u64>, q: Option<u64>, columns: &[JobColumn]) -> ParityJob {
    let columns_len = u16::try_from(columns.len()).expect("few");
    let tag = Tag::new(TagKind::Job, 0, 0);
    let len = u32::try_from(LEN).expect("small");
    ParityJob { tag, kind, len, columns_start: 0, columns_len, p: p.map(place), q: q.map(place) }
}
/// Multiplication in the field of RAID 6, bit by bit.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}
fn power(index: u8) -> u8 {
    (0..index).fold(1, |value, _| times(value, 2))
}
fn syndromes(pool: &FramePool, columns: &[JobColumn]) -> (Vec<u8>, Vec<u8>) {
    let (mut p, mut q) = (vec![0; BYTES], vec![0; BYTES]);
    for column in columns {
        let data = block(pool, column.at.get() / LEN);
        let factor = power(column.index);
        for at in 0..data.len() {
            p[at] ^= data[at];
            q[at] ^= times(factor, data[at]);
        }
    }
    (p, q)
}

#[test]
fn syndromes_are_generated_updated_and_checked_as_by_hand_on_few_and_many_columns() {
    for members in [2u8, 5, 20] {
        let mut pool = pool(64);
        let (p, q) = (60, 61);
        let columns: Vec<_> = (0..members).map(|index| column(index, u64::from(index), 0)).collect();
        let kernels = Kernels::detect();
        let go = |pool: &mut FramePool, kind, p, q, columns: &[JobColumn]| {
            run(kernels, pool, &job(kind, p, q, columns), columns)
        };
        let (by_hand_p, by_hand_q) = syndromes(&pool, &columns);
        go(&mut pool, JobKind::Generate, Some(p), None, &columns);
        assert_eq!(block(&pool, p), by_hand_p);
        go(&mut pool, JobKind::Generate, None, Some(q), &columns);
        assert_eq!(block(&pool, q), by_hand_q);
        go(&mut pool, JobKind::Generate, Some(p), Some(q), &columns);
        assert_eq!((block(&pool, p), block(&pool, q)), (by_hand_p, by_hand_q));
        for (p, q) in [(Some(p), Some(q)), (Some(p), None), (None, Some(q))] {
            assert_eq!(go(&mut pool, JobKind::Check, p, q, &columns), ParityVerdict::Match);
        }
        // Block 50 takes the place of block 1.
        go(&mut pool, JobKind::Update, Some(p), None, &[column(1, 50, 1)]);
        go(&mut pool, JobKind::Update, None, Some(q), &[column(1, 50, 1)]);
        let mut now = columns.clone();
        now[1] = column(1, 50, 0);
        assert_eq!(go(&mut pool, JobKind::Check, Some(p), Some(q), &now), ParityVerdict::Match);
        go(&mut pool, JobKind::Update, Some(p), Some(q), &[column(1, 1, 50)]);
        assert_eq!((block(&pool, p), block(&pool, q)), syndromes(&pool, &columns));
        let at = PoolRange::new(place(1) + Bytes(700), Bytes(1));
        pool.slice_mut(at)[0] ^= 1;
        assert_eq!(go(&mut pool, JobKind::Check, Some(p), Some(q), &columns), ParityVerdict::ColumnWrong(1));
        assert_eq!(go(&mut pool, JobKind::Check, Some(p), None, &columns), ParityVerdict::Unknown);
        assert_eq!(go(&mut pool, JobKind::Check, None, Some(q), &columns), ParityVerdict::Unknown);
    }
}

#[test]
fn lost_columns_come_back_from_the_remaining_ones() {
    let kernels = Kernels::detect();
    let mut pool = pool(16);
    let columns = [column(0, 0, 0), column(1, 1, 0), column(2, 2, 0)];
    run(kernels, &mut pool, &job(JobKind::Generate, Some(10), Some(11), &columns), &columns);
    for (p, q, lost) in [(Some(10), Some(11), 2), (Some(10), None, 1), (None, Some(11), 1)] {
        let mut gone = columns;
        gone[1].at = place(12);
        gone[2].at = place(13);
        if lost == 1 {
            gone[1].at = place(1);
        }
        let kind = JobKind::Recover { lost };
        run(kernels, &mut pool, &job(kind, p, q, &gone), &gone);
        assert_eq!(block(&pool, 13), block(&pool, 2));
        if lost == 2 {
            assert_eq!(block(&pool, 12), block(&pool, 1));
        }
    }
}

#[test]
fn copies_are_judged_by_majority_and_copied_by_bytes() {
    let kernels = Kernels::detect();
    let mut pool = pool(8);
    let copy = [column(0, 1, 0), column(0, 2, 0)];
    run(kernels, &mut pool, &job(JobKind::Copy, None, None, &copy), &copy);
    let three = [column(0, 0, 0), column(1, 1, 0), column(2, 2, 0)];
    let judge = |pool: &mut FramePool, columns: &[JobColumn]| {
        run(kernels, pool, &job(JobKind::Compare, None, None, columns), columns)
    };
    assert_eq!(judge(&mut pool, &three), ParityVerdict::Match);
    pool.slice_mut(PoolRange::new(place(1) + Bytes(513), Bytes(1)))[0] ^= 8;
    assert_eq!(judge(&mut pool, &three), ParityVerdict::ColumnWrong(1));
    assert_eq!(judge(&mut pool, &three[..2]), ParityVerdict::Unknown);
    pool.slice_mut(PoolRange::new(place(2), Bytes(1)))[0] ^= 8;
    assert_eq!(judge(&mut pool, &three), ParityVerdict::Unknown);

    let odd = [JobColumn { index: 0, at: PoolOffset(5), old: PoolOffset(20_001) }];
    let short = ParityJob { len: 3, ..job(JobKind::Copy, None, None, &odd) };
    run(kernels, &mut pool, &short, &odd);
    let bytes = |at| pool.slice(PoolRange::new(PoolOffset(at), Bytes(3)));
    assert_eq!(bytes(5), bytes(20_001));
}

#[test]
fn a_list_of_columns_ends_with_the_last_one_that_the_job_names() {
    let blocks = [[1_u8; 8], [2; 8], [3; 8]];
    let data: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
    let columns = [column(4, 0, 0), column(0, 1, 1), column(2, 2, 2)];
    let mut row = BlockList::new();
    by_coefficient(&mut row, &columns, &data);
    assert_eq!(row.as_slice(), [Some(data[1]), None, Some(data[2]), None, Some(data[0])]);
}
