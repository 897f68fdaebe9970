//! P, Q and CRC-32C against an implementation by other people: ISA-L, where it is installed.

#[path = "common/isal.rs"]
mod isal;

mod common;

use common::{slices, Block, Noise};
use isal::{generate, Isal, ALIGNMENT};
use openraid_parity::Kernels;

#[test]
fn p_and_q_are_those_of_isal() {
    let Some(isal) = Isal::load() else {
        println!("skipped: {}", isal::MISSING);
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
fn crc32c_is_that_of_isal() {
    let Some(isal) = Isal::load() else {
        println!("skipped: {}", isal::MISSING);
        return;
    };
    let bytes = Noise::new(32).bytes(70_000);
    for length in (0..1100).chain([4079, 4080, 4096, 4097, 65_535, 65_536, 65_537, 69_990]) {
        for (name, kernels) in Kernels::all_supported() {
            let text = &bytes[length % 7..][..length];
            assert_eq!(kernels.crc32c(7, text), isal.crc32c(7, text), "{name}, {length} bytes");
        }
    }
}
