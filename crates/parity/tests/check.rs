//! Planted errors are found, and the right block is blamed; every variant.

mod common;

use common::{blocks, parity_by_definition, slices, Block, Noise, LENGTHS};
use openraid_parity::{Difference, Kernels, PqVerdict, SECTOR_BYTES};

fn row(noise: &mut Noise, count: usize, length: usize) -> (Vec<Block>, Block, Block) {
    let data = blocks(noise, count, length);
    let (p, q) = parity_by_definition(&slices(&data), length);
    let shift = noise.below(64);
    (data, Block::new(&p, shift), Block::new(&q, 64 - shift))
}

#[test]
fn one_flipped_bit_is_seen_at_every_place() {
    for (name, kernels) in Kernels::all_supported() {
        let mut noise = Noise::new(21);
        for length in [1, 31, 64, 257, 700] {
            let (mut data, mut p, mut q) = row(&mut noise, 5, length);
            assert_eq!(kernels.check_pq(p.bytes(), q.bytes(), &slices(&data)), PqVerdict::Match, "{name}");
            assert_eq!(kernels.check_p(p.bytes(), &slices(&data)), None, "{name}");
            for at in 0..length {
                let bit = 1 << noise.below(8);
                for index in 0..5_u8 {
                    data[usize::from(index)].bytes_mut()[at] ^= bit;
                    let verdict = kernels.check_pq(p.bytes(), q.bytes(), &slices(&data));
                    assert_eq!(verdict, PqVerdict::DataWrong { index }, "{name}, byte {at} of {length}");
                    let difference = Some(Difference { first: at / SECTOR_BYTES, sectors: 1 });
                    assert_eq!(kernels.check_p(p.bytes(), &slices(&data)), difference, "{name}");
                    data[usize::from(index)].bytes_mut()[at] ^= bit;
                }
                p.bytes_mut()[at] ^= bit;
                assert_eq!(kernels.check_pq(p.bytes(), q.bytes(), &slices(&data)), PqVerdict::PWrong, "{name}");
                p.bytes_mut()[at] ^= bit;
                q.bytes_mut()[at] ^= bit;
                assert_eq!(kernels.check_pq(p.bytes(), q.bytes(), &slices(&data)), PqVerdict::QWrong, "{name}");
                q.bytes_mut()[at] ^= bit;
            }
        }
    }
}

#[test]
fn a_block_of_noise_is_blamed_whichever_it_is() {
    let kernels = Kernels::detect();
    let mut noise = Noise::new(22);
    for count in [1, 2, 3, 8, 250, 255] {
        let (mut data, p, q) = row(&mut noise, count, 512);
        for index in 0..count {
            let wrong = Block::noise(&mut noise, 512);
            let right = core::mem::replace(&mut data[index], wrong);
            let verdict = kernels.check_pq(p.bytes(), q.bytes(), &slices(&data));
            assert_eq!(verdict, PqVerdict::DataWrong { index: u8::try_from(index).unwrap() });
            data[index] = right;
        }
    }
}

#[test]
fn no_block_is_named_for_a_difference_that_one_block_does_not_explain() {
    let kernels = Kernels::detect();
    let mut noise = Noise::new(23);
    let (data, p, q) = row(&mut noise, 6, 512);
    let verdict = |flips: &[(usize, usize)]| {
        let (mut data, mut p, mut q) = (data.clone(), p.clone(), q.clone());
        for &(block, at) in flips {
            let target = match block {
                6 => &mut p,
                7 => &mut q,
                _ => &mut data[block],
            };
            target.bytes_mut()[at] ^= 0x40;
        }
        kernels.check_pq(p.bytes(), q.bytes(), &slices(&data))
    };
    for x in 0..8 {
        for y in 0..x {
            assert_eq!(verdict(&[(x, 17), (y, 400)]), PqVerdict::Unknown, "{x} and {y} in different bytes");
        }
    }
    // Both parities off by the same amount in one byte looks like an error of data block 0; a ratio that belongs to no
    // block of the row names none.
    assert_eq!(verdict(&[(6, 17), (7, 17)]), PqVerdict::DataWrong { index: 0 });
    let mut strange = q.clone();
    strange.bytes_mut()[17] ^= 0x1d; // g^8 times an error of 1, and there are six blocks
    let mut off = p.clone();
    off.bytes_mut()[17] ^= 1;
    assert_eq!(kernels.check_pq(off.bytes(), strange.bytes(), &slices(&data)), PqVerdict::Unknown);
}

#[test]
fn each_sector_is_judged_by_itself() {
    for (name, kernels) in Kernels::all_supported() {
        let mut noise = Noise::new(24);
        let (mut data, ..) = row(&mut noise, 5, 5 * 512 + 100);
        // A block of zeroes may be left out.
        data[1].bytes_mut().fill(0);
        let (in_p, in_q) = parity_by_definition(&slices(&data), 5 * 512 + 100);
        let [mut p, mut q] = [in_p, in_q].map(|bytes| Block::new(&bytes, 3));
        data[2].bytes_mut()[600] ^= 1;
        data[2].bytes_mut()[1000] ^= 7;
        data[0].bytes_mut()[1024] ^= 9;
        data[3].bytes_mut()[1535] ^= 9;
        p.bytes_mut()[1536] ^= 1;
        q.bytes_mut()[2659] ^= 1;
        let mut found = Vec::new();
        let mut blocks: Vec<_> = data.iter().map(|block| Some(block.bytes())).collect();
        blocks[1] = None;
        kernels.check_pq_each(512, p.bytes(), q.bytes(), &blocks, |range, verdict| found.push((range, verdict)));
        let expected = [
            (512..1024, PqVerdict::DataWrong { index: 2 }),
            (1024..1536, PqVerdict::Unknown),
            (1536..2048, PqVerdict::PWrong),
            (2560..2660, PqVerdict::QWrong),
        ];
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn differing_sectors_are_counted() {
    for (name, kernels) in Kernels::all_supported() {
        let mut noise = Noise::new(25);
        let a = Block::noise(&mut noise, 10 * 512 + 3);
        let mut b = Block::new(a.bytes(), 5);
        assert_eq!(kernels.compare(a.bytes(), b.bytes()), None, "{name}");
        b.bytes_mut()[5122] ^= 1;
        assert_eq!(kernels.compare(a.bytes(), b.bytes()), Some(Difference { first: 10, sectors: 1 }), "{name}");
        b.bytes_mut()[1023] ^= 1;
        b.bytes_mut()[1500] ^= 1;
        b.bytes_mut()[1501] ^= 1;
        assert_eq!(kernels.compare(a.bytes(), b.bytes()), Some(Difference { first: 1, sectors: 3 }), "{name}");
        assert_eq!(kernels.check_p(a.bytes(), &[b.bytes()]), Some(Difference { first: 1, sectors: 3 }), "{name}");
        assert_eq!(kernels.check_p(&[], &[]), None, "{name}");
    }
}

#[test]
fn zero_is_zero_up_to_the_last_bit() {
    for (name, kernels) in Kernels::all_supported() {
        for length in LENGTHS {
            let mut block = Block::new(&vec![0; length], length);
            assert!(kernels.is_zero(block.bytes()), "{name}, {length} bytes");
            for at in (0..length).step_by(1 + length / 300) {
                block.bytes_mut()[at] = 1 << (at % 8);
                assert!(!kernels.is_zero(block.bytes()), "{name}, byte {at} of {length}");
                let zero = vec![0; length];
                assert!(kernels.compare(block.bytes(), &zero).is_some(), "{name}, byte {at} of {length}");
                block.bytes_mut()[at] = 0;
            }
        }
    }
}
