//! P, Q, recovery and CRC-32C against an implementation by other people: ISA-L, if it is installed.

#[path = "common/isal.rs"]
mod isal;

mod common;

use common::{slices, Block, Noise};
use isal::{crc32c, generate, Isal, ALIGNMENT};
use openraid_parity::Kernels;
use std::io::Write;

/// Says past a test's capture that it has done nothing.
fn skipped() {
    let _ = writeln!(std::io::stderr(), "skipped: {}", isal::MISSING);
}

#[test]
fn p_and_q_are_those_of_isal() {
    let Some(isal) = Isal::load() else {
        skipped();
        return;
    };
    let mut noise = Noise::new(31);
    for count in (2..=20).chain([100, 250]) {
        for length in [32, 64, 512, 4096, 4096 + 96] {
            let mut all: Vec<Block> = (0..count + 2).map(|_| Block::new(&noise.bytes(length), 0)).collect();
            let mut starts: Vec<*mut core::ffi::c_void> =
                all.iter_mut().map(|block| block.bytes_mut().as_mut_ptr().cast()).collect();
            assert!(starts.iter().all(|start| start.addr() % ALIGNMENT == 0));
            // SAFETY: aligned blocks of `length`, which is a multiple of the alignment.
            unsafe { generate(isal.pq_gen, &mut starts, length) };
            let (data, parity) = all.split_at(count);
            for (name, kernels) in Kernels::all_supported() {
                let [mut p, mut q] = [vec![0; length], vec![0; length]];
                kernels.pq(&mut p, &mut q, &slices(data));
                assert!(p == parity[0].bytes() && q == parity[1].bytes(), "{name}, {count} blocks of {length}");
            }
            let mut sum = Block::new(&vec![1; length], 0);
            *starts.last_mut().unwrap() = sum.bytes_mut().as_mut_ptr().cast();
            starts.remove(count);
            // SAFETY: as before, with one block written.
            unsafe { generate(isal.xor_gen, &mut starts, length) };
            assert!(sum.bytes() == parity[0].bytes());
        }
    }
}

#[test]
fn lost_blocks_come_back_from_the_parity_of_isal() {
    let Some(isal) = Isal::load() else {
        skipped();
        return;
    };
    let mut noise = Noise::new(33);
    for count in [2_u8, 3, 4, 8, 12, 17, 100, 250] {
        let length = 512 + 96;
        let blocks = usize::from(count);
        let mut all: Vec<Block> = (0..blocks + 2).map(|_| Block::new(&noise.bytes(length), 0)).collect();
        let mut starts: Vec<*mut core::ffi::c_void> =
            all.iter_mut().map(|block| block.bytes_mut().as_mut_ptr().cast()).collect();
        // SAFETY: aligned blocks of `length`, which is a multiple of the alignment.
        unsafe { generate(isal.pq_gen, &mut starts, length) };
        let (data, parity) = all.split_at(blocks);
        let (p, q) = (parity[0].bytes(), parity[1].bytes());
        for (x, y) in [(0, count - 1), (count / 2 - 1, count / 2)] {
            let without = |lost: &[u8]| -> Vec<(u8, &[u8])> {
                let numbered = (0..count).zip(data.iter().map(Block::bytes));
                numbered.filter(|(index, _)| !lost.contains(index)).collect()
            };
            for (name, kernels) in Kernels::all_supported() {
                let [mut one, mut two] = [vec![0; length], vec![0; length]];
                kernels.recover_two(&without(&[x, y]), p, q, (x, &mut one), (y, &mut two));
                let expected = [x, y].map(|index| data[usize::from(index)].bytes());
                assert!([&one[..], &two[..]] == expected, "{name}: blocks {x} and {y} of {count}");
                kernels.recover_one_with_p(&without(&[y]), p, y, &mut one);
                kernels.recover_one_with_q(&without(&[y]), q, y, &mut two);
                assert!(one == expected[1] && two == expected[1], "{name}: block {y} of {count}");
            }
        }
    }
}

#[test]
fn crc32c_is_that_of_isal() {
    let Some(isal) = Isal::load() else {
        skipped();
        return;
    };
    let bytes = Noise::new(32).bytes(70_000);
    // Around the ends of all steps, and the sizes of blocks.
    for length in (0..1100).chain([4079, 4080, 4081, 4096, 4097, 65_535, 65_536, 65_537, 69_990]) {
        let text = &bytes[length % 7..][..length];
        let expected = crc32c(isal.crc32_iscsi, 7, text);
        for (name, kernels) in Kernels::all_supported() {
            assert_eq!(kernels.crc32c(7, text), expected, "{name}, {length} bytes");
        }
    }
}
