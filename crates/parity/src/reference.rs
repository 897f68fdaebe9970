//! The kernels in plain scalar code, one block after the other: slow and obviously right.
//!
//! Every other variant is tested against these. Nothing here may be made faster at the price of being
//! harder to read. Lengths have been checked by the caller ([`Kernels`](crate::Kernels)).

use crate::gf;
use crate::kernel_table::{ParityChange, Sources, VariantTable};

pub(crate) static TABLE: VariantTable = VariantTable {
    name: "reference",
    xor,
    pq,
    q,
    update,
    solve_with_q,
    solve_with_pq,
    p_agrees,
    pq_agrees,
    is_zero: |bytes| bytes.iter().all(|&byte| byte == 0),
    equal: |a, b| a == b,
    crc32c: crate::crc32c::by_table,
};

fn xor(destination: &mut [u8], sources: &[&[u8]], keep: bool) {
    if !keep {
        destination.fill(0);
    }
    for source in sources {
        destination.iter_mut().zip(*source).for_each(|(byte, more)| *byte ^= more);
    }
}

/// P and Q of one byte column.
fn syndromes(data: Sources<'_>, at: usize) -> (u8, u8) {
    data.iter().zip(0_u8..).fold((0, 0), |(p, q), (block, index)| match block {
        Some(block) => (p ^ block[at], q ^ gf::multiply(gf::power(index), block[at])),
        None => (p, q),
    })
}

fn pq(p: &mut [u8], q: &mut [u8], data: Sources<'_>) {
    p.fill(0);
    q.fill(0);
    for (block, index) in data.iter().zip(0_u8..) {
        let (block, factor) = (block.unwrap_or_default(), gf::power(index));
        for ((p, q), byte) in p.iter_mut().zip(&mut *q).zip(block) {
            *p ^= byte;
            *q ^= gf::multiply(factor, *byte);
        }
    }
}

fn q(q: &mut [u8], data: Sources<'_>) {
    for (at, byte) in q.iter_mut().enumerate() {
        *byte = syndromes(data, at).1;
    }
}

fn update(mut p: Option<&mut [u8]>, mut q: Option<&mut [u8]>, changes: &[ParityChange<'_>]) {
    for change in changes {
        for (at, (old, new)) in change.old.iter().zip(change.new).enumerate() {
            if let Some(p) = &mut p {
                p[at] ^= old ^ new;
            }
            if let Some(q) = &mut q {
                q[at] ^= gf::multiply(gf::power(change.index), old ^ new);
            }
        }
    }
}

fn solve_with_q(lost: &mut [u8], data: Sources<'_>, q: &[u8], factor: u8) {
    for (at, byte) in lost.iter_mut().enumerate() {
        *byte = gf::multiply(factor, q[at] ^ syndromes(data, at).1);
    }
}

fn solve_with_pq(lost: [&mut [u8]; 2], data: Sources<'_>, p: &[u8], q: &[u8], factors: [u8; 2]) {
    let [first, second] = lost;
    for at in 0..first.len() {
        let (sum, weighted) = syndromes(data, at);
        let (sum, weighted) = (sum ^ p[at], weighted ^ q[at]);
        first[at] = gf::multiply(factors[0], sum) ^ gf::multiply(factors[1], weighted);
        second[at] = sum ^ first[at];
    }
}

fn p_agrees(p: &[u8], data: &[&[u8]]) -> bool {
    p.iter().enumerate().all(|(at, &byte)| data.iter().fold(byte, |sum, block| sum ^ block[at]) == 0)
}

fn pq_agrees(p: &[u8], q: &[u8], data: Sources<'_>) -> bool {
    (0..p.len()).all(|at| syndromes(data, at) == (p[at], q[at]))
}
