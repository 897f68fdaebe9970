//! XOR, P, Q and their update in every variant, against the definition.

mod common;

use common::{blocks, parity_by_definition, slices, Block, Noise, LENGTHS};
use openraid_parity::{Kernels, ParityChange};

fn every_variant(mut test: impl FnMut(&str, Kernels, &mut Noise)) {
    for (name, kernels) in Kernels::all_supported() {
        test(name, kernels, &mut Noise::new(7));
    }
}

fn counts() -> impl Iterator<Item = usize> {
    (0..=17).chain([31, 32, 33, 100, 250, 255])
}

/// Long lengths only for few blocks, or the scalar oracle takes minutes.
fn lengths(count: usize) -> impl Iterator<Item = usize> {
    LENGTHS.into_iter().filter(move |&length| count <= 17 || length < 600)
}

#[test]
fn a_known_row_gives_the_known_parity() {
    // Worked by hand: Q = 1*01 ^ 2*80 ^ 4*ff ^ 8*1d, with 2*80 = 1d, 4*ff = db, 8*1d = e8.
    every_variant(|name, kernels, _| {
        let data: [&[u8]; 4] = [&[0x01], &[0x80], &[0xff], &[0x1d]];
        let (mut p, mut q) = ([0], [0]);
        kernels.pq(&mut p, &mut q, &data);
        assert_eq!((p, q), ([0x01 ^ 0x80 ^ 0xff ^ 0x1d], [0x01 ^ 0x1d ^ 0xdb ^ 0xe8]), "{name}");
    });
}

#[test]
fn p_and_q_are_those_of_the_definition() {
    every_variant(|name, kernels, noise| {
        for count in counts() {
            for length in lengths(count) {
                let data = blocks(noise, count, length);
                let data = slices(&data);
                let (expected_p, expected_q) = parity_by_definition(&data, length);
                let [mut p, mut q, mut q_alone, mut xor] = [(); 4].map(|()| Block::noise(noise, length));
                kernels.pq(p.bytes_mut(), q.bytes_mut(), &data);
                kernels.q(q_alone.bytes_mut(), &data);
                kernels.xor(xor.bytes_mut(), &data);
                for (block, expected) in
                    [(&p, &expected_p), (&q, &expected_q), (&q_alone, &expected_q), (&xor, &expected_p)]
                {
                    assert!(block.bytes() == expected, "{name}, {count} blocks of {length}");
                    block.assert_guards();
                }
            }
        }
    });
}

#[test]
fn xor_into_adds_to_the_old_content() {
    every_variant(|name, kernels, noise| {
        for count in counts().chain([256, 300, 1000]) {
            for length in lengths(count).filter(|&length| length < 600) {
                let data = blocks(noise, count, length);
                let data = slices(&data);
                let mut destination = Block::noise(noise, length);
                let (mut expected, _) = parity_by_definition(&data, length);
                expected.iter_mut().zip(destination.bytes()).for_each(|(sum, old)| *sum ^= old);
                kernels.xor_into(destination.bytes_mut(), &data);
                assert!(destination.bytes() == expected, "{name}, {count} blocks of {length}");
                destination.assert_guards();
            }
        }
    });
}

#[test]
fn missing_blocks_count_as_zeroes() {
    every_variant(|name, kernels, noise| {
        for count in counts() {
            for length in lengths(count).filter(|&length| length < 600) {
                let mut data = blocks(noise, count, length);
                let there: Vec<bool> = (0..count).map(|_| noise.below(3) > 0).collect();
                for (block, there) in data.iter_mut().zip(&there) {
                    if !there {
                        block.bytes_mut().fill(0);
                    }
                }
                let sparse: Vec<_> =
                    data.iter().zip(&there).map(|(block, &there)| there.then(|| block.bytes())).collect();
                let (expected_p, expected_q) = parity_by_definition(&slices(&data), length);
                let [mut p, mut q, mut q_alone] = [(); 3].map(|()| Block::noise(noise, length));
                kernels.pq_sparse(p.bytes_mut(), q.bytes_mut(), &sparse);
                kernels.q_sparse(q_alone.bytes_mut(), &sparse);
                assert!(p.bytes() == expected_p && q.bytes() == expected_q, "{name}, {count} blocks of {length}");
                assert!(q_alone.bytes() == expected_q, "{name}, {count} blocks of {length}");
                [p, q, q_alone].iter().for_each(Block::assert_guards);
            }
        }
    });
}

#[test]
fn an_update_gives_the_parity_of_the_new_data() {
    every_variant(|name, kernels, noise| {
        for count in counts().filter(|&count| count > 0) {
            for length in lengths(count).filter(|&length| length < 600) {
                let old = blocks(noise, count, length);
                let mut new = old.clone();
                let changed: Vec<usize> = (0..count).filter(|_| noise.below(count.min(4)) == 0).collect();
                for &index in &changed {
                    new[index] = Block::noise(noise, length);
                }
                let changes: Vec<ParityChange> = changed
                    .iter()
                    .map(|&index| ParityChange {
                        index: u8::try_from(index).unwrap(),
                        old: old[index].bytes(),
                        new: new[index].bytes(),
                    })
                    .collect();
                let (old_p, old_q) = parity_by_definition(&slices(&old), length);
                let (new_p, new_q) = parity_by_definition(&slices(&new), length);
                let shift = noise.below(64);
                let [mut p, mut p_alone] = [(); 2].map(|()| Block::new(&old_p, shift));
                let [mut q, mut q_alone] = [(); 2].map(|()| Block::new(&old_q, shift / 2));
                kernels.pq_update(p.bytes_mut(), q.bytes_mut(), &changes);
                kernels.p_update(p_alone.bytes_mut(), &changes);
                kernels.q_update(q_alone.bytes_mut(), &changes);
                for (block, expected) in [(&p, &new_p), (&p_alone, &new_p), (&q, &new_q), (&q_alone, &new_q)] {
                    assert!(block.bytes() == expected, "{name}, {count} blocks of {length}");
                    block.assert_guards();
                }
            }
        }
    });
}

#[test]
fn crc32c_has_the_published_values() {
    let rising: Vec<u8> = (0..32).collect();
    let falling: Vec<u8> = (0..32).rev().collect();
    every_variant(|name, kernels, _| {
        let checksum = |bytes: &[u8]| !kernels.crc32c(!0, bytes);
        assert_eq!(checksum(b"123456789"), 0xe306_9283, "{name}");
        // RFC 3720, section B.4.
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa, "{name}");
        assert_eq!(checksum(&[0xff; 32]), 0x62a8_ab43, "{name}");
        assert_eq!(checksum(&rising), 0x46dd_794e, "{name}");
        assert_eq!(checksum(&falling), 0x113f_db5c, "{name}");
        assert_eq!(kernels.crc32c(5, &[]), 5, "{name}");
    });
}

#[test]
fn crc32c_is_the_same_in_every_variant_and_in_pieces() {
    let bytes = Noise::new(1).bytes(20_000);
    let bit_by_bit = |register: u32, bytes: &[u8]| {
        bytes.iter().fold(register, |register, &byte| {
            (0..8).fold(register ^ u32::from(byte), |r, _| r >> 1 ^ if r & 1 == 1 { 0x82f6_3b78 } else { 0 })
        })
    };
    // The ends of all steps: 8 bytes, registers of 64, 256 of folding, three streams of 1,360.
    let lengths = (0..1100).chain([3071, 3072, 3073, 4079, 4080, 4081, 4096, 6144, 8160, 9216 + 17, 20_000]);
    every_variant(|name, kernels, noise| {
        for length in lengths.clone() {
            let start = noise.below(bytes.len() - length + 1).min(63);
            let text = &bytes[start..start + length];
            let whole = kernels.crc32c(0x1234_5678, text);
            assert_eq!(whole, bit_by_bit(0x1234_5678, text), "{name}, {length} bytes");
            let (first, second) = text.split_at(noise.below(length + 1));
            assert_eq!(kernels.crc32c(kernels.crc32c(0x1234_5678, first), second), whole, "{name}");
        }
    });
}

#[test]
fn names_lead_to_their_variants() {
    assert_eq!(Kernels::reference().name(), "reference");
    assert!(Kernels::by_name("no such variant").is_none());
    for (name, kernels) in Kernels::all_supported() {
        assert_eq!(kernels.name(), name);
        assert_eq!(Kernels::by_name(name).unwrap().name(), name);
    }
    assert_ne!(Kernels::detect().name(), "reference", "the reference is not for service");
}

#[test]
#[should_panic(expected = "different lengths")]
fn blocks_of_different_lengths_are_a_bug() {
    Kernels::detect().xor(&mut [0; 4], &[&[0; 4], &[0; 5]]);
}

#[test]
#[should_panic(expected = "different lengths")]
fn p_and_q_of_different_lengths_are_a_bug() {
    Kernels::detect().pq(&mut [0; 4], &mut [0; 3], &[&[0; 4]]);
}

#[test]
#[should_panic(expected = "more than 255")]
fn more_blocks_than_coefficients_are_a_bug() {
    Kernels::detect().pq(&mut [0; 1], &mut [0; 1], &[&[0_u8; 1] as &[u8]; 256]);
}
