//! Recovery of every combination of losses in every variant: the bytes come back.

mod common;

use common::{blocks, parity_by_definition, slices, Block, Noise, LENGTHS};
use openraid_parity::{Kernels, TooManyLost};

/// Lose the blocks of `lost` and get them back from P and Q as given.
fn assert_comes_back(kernels: Kernels, row: &[Block], lost: &[usize], p: Option<&[u8]>, q: Option<&[u8]>) {
    let length = row[0].bytes().len();
    let number = |index: usize| u8::try_from(index).unwrap();
    // Not in the order of the indices: the caller's order must not matter.
    let present: Vec<(u8, &[u8])> = (0..row.len())
        .rev()
        .filter(|index| !lost.contains(index))
        .map(|index| (number(index), row[index].bytes()))
        .collect();
    let mut found: Vec<Block> = lost.iter().map(|index| Block::new(&vec![0xee; length], 13 * index)).collect();
    let mut outputs: Vec<(u8, &mut [u8])> =
        lost.iter().map(|index| number(*index)).zip(found.iter_mut().map(Block::bytes_mut)).collect();
    assert_eq!(kernels.recover(&present, p, q, &mut outputs), Ok(()));
    for (found, index) in found.iter().zip(lost) {
        let name = kernels.name();
        assert!(found.bytes() == row[*index].bytes(), "{name}: {lost:?} of {} blocks of {length}", row.len());
        found.assert_guards();
    }
}

fn assert_losses_come_back(
    kernels: Kernels,
    noise: &mut Noise,
    count: usize,
    length: usize,
    losses: impl IntoIterator<Item = (usize, usize)>,
) {
    let row = blocks(noise, count, length);
    let (p, q) = parity_by_definition(&slices(&row), length);
    let shift = noise.below(64);
    let (p, q) = (Block::new(&p, shift), Block::new(&q, 63 - shift));
    for (x, y) in losses {
        if x == y {
            assert_comes_back(kernels, &row, &[x], Some(p.bytes()), Some(q.bytes()));
            assert_comes_back(kernels, &row, &[x], Some(p.bytes()), None);
            assert_comes_back(kernels, &row, &[x], None, Some(q.bytes()));
        } else {
            assert_comes_back(kernels, &row, &[x, y], Some(p.bytes()), Some(q.bytes()));
        }
    }
}

#[test]
fn every_loss_of_one_or_two_comes_back() {
    for (_, kernels) in Kernels::all_supported() {
        let mut noise = Noise::new(11);
        for count in 1..=16 {
            let all = (0..count).flat_map(|x| (0..count).map(move |y| (x, y)));
            assert_losses_come_back(kernels, &mut noise, count, 321, all);
        }
    }
}

#[test]
fn losses_come_back_at_every_length() {
    for (_, kernels) in Kernels::all_supported() {
        let mut noise = Noise::new(12);
        for length in LENGTHS {
            for count in [1, 2, 3, 7, 16] {
                let losses = [(0, 0), (count - 1, count - 1), (0, count - 1), (count - 1, count / 2)];
                assert_losses_come_back(kernels, &mut noise, count, length, losses);
            }
        }
    }
}

#[test]
fn losses_come_back_in_wide_rows() {
    for (_, kernels) in Kernels::all_supported() {
        let mut noise = Noise::new(13);
        for count in [17, 40, 128, 250, 255] {
            let losses = [(0, 0), (count - 1, count - 1), (0, count - 1), (16, 3), (count - 2, count - 1)];
            assert_losses_come_back(kernels, &mut noise, count, 67, losses);
        }
    }
}

#[test]
fn every_pair_of_the_widest_row_comes_back() {
    let mut noise = Noise::new(14);
    let all = (0..255).flat_map(|x| (0..x).map(move |y| (x, y)));
    assert_losses_come_back(Kernels::detect(), &mut noise, 255, 3, all);
}

#[test]
fn an_index_in_neither_list_is_a_block_of_zeroes() {
    for (_, kernels) in Kernels::all_supported() {
        let data = Noise::new(15).bytes(100);
        let zeroes = [0; 100];
        let (p, q) = parity_by_definition(&[&zeroes, &data, &zeroes, &zeroes, &data], 100);
        let (mut x, mut y) = ([1; 100], [1; 100]);
        kernels.recover(&[(4, &data)], Some(&p), Some(&q), &mut [(2, &mut x), (1, &mut y)]).unwrap();
        assert!(x == zeroes && y == data[..], "{}", kernels.name());
        kernels.recover(&[(1, &data)], None, Some(&q), &mut [(4, &mut x)]).unwrap();
        assert!(x == data[..], "{}", kernels.name());
    }
}

#[test]
fn an_impossible_recovery_is_refused_and_changes_nothing() {
    let kernels = Kernels::detect();
    let p = [1; 8];
    let [mut a, mut b, mut c] = [[9; 8]; 3];
    assert_eq!(kernels.recover(&[], None, None, &mut []), Ok(()));
    assert_eq!(kernels.recover(&[], None, None, &mut [(0, &mut a)]), Err(TooManyLost::NoParity));
    for (p, q) in [(Some(&p[..]), None), (None, Some(&p[..])), (None, None)] {
        let lost = &mut [(0, &mut a[..]), (1, &mut b[..])];
        assert_eq!(kernels.recover(&[], p, q, lost), Err(TooManyLost::OneParity));
    }
    let lost = &mut [(0, &mut a[..]), (1, &mut b[..]), (2, &mut c[..])];
    let refused = kernels.recover(&[], Some(&p), Some(&p), lost);
    assert_eq!(refused, Err(TooManyLost::TooMany { lost: 3 }));
    assert!(refused.unwrap_err().to_string().starts_with("3 data blocks of the row are lost"));
    assert_eq!([a, b, c], [[9; 8]; 3]);
}

#[test]
#[should_panic(expected = "lost twice")]
fn the_same_block_lost_twice_is_a_bug() {
    let [mut a, mut b] = [[0; 4]; 2];
    let _ = Kernels::detect().recover(&[], Some(&[0; 4]), Some(&[0; 4]), &mut [(3, &mut a), (3, &mut b)]);
}

#[test]
#[should_panic(expected = "present twice")]
fn the_same_block_present_twice_is_a_bug() {
    let _ = Kernels::detect().recover(&[(1, &[0; 4]), (1, &[0; 4])], Some(&[0; 4]), None, &mut [(3, &mut [0; 4])]);
}

#[test]
#[should_panic(expected = "both present and lost")]
fn a_block_both_present_and_lost_is_a_bug() {
    let _ = Kernels::detect().recover(&[(3, &[0; 4])], Some(&[0; 4]), None, &mut [(3, &mut [0; 4])]);
}
