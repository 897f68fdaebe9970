//! Extents taken apart into rectangles.

use super::{parity, CHUNK};
use openraid_core::geometry::{Level, Parity, RowSegment};
use openraid_units::{Sectors, SetLba, StripeIndex};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn set(members: u16) -> Parity {
    parity(Level::Raid5, members, 2, CHUNK * 12)
}

fn shape(pieces: impl Iterator<Item = RowSegment>) -> Vec<(u64, u64, u64, u16, u16)> {
    pieces.map(|p| (p.stripe.0, p.lo.0, p.hi.0, p.first_column, p.columns)).collect()
}

#[test]
fn pieces_are_as_drawn() {
    let set = set(5); // four columns of eight rows
    let split = |at, len| shape(set.split(SetLba(at), Sectors(len), Sectors::MAX));
    assert_eq!(split(3, 4), [(0, 3, 7, 0, 1)], "inside one chunk");
    assert_eq!(split(32, 32), [(1, 0, 8, 0, 4)], "a whole stripe");
    assert_eq!(split(32, 64), [(1, 0, 8, 0, 4), (2, 0, 8, 0, 4)]);
    assert_eq!(split(8, 16), [(0, 0, 8, 1, 2)], "two whole chunks");
    assert_eq!(split(6, 4), [(0, 0, 2, 1, 1), (0, 6, 8, 0, 1)], "less than a chunk, over an edge");
    assert_eq!(split(6, 8), [(0, 0, 6, 1, 1), (0, 6, 8, 0, 1)], "exactly a chunk, shifted");
    assert_eq!(split(4, 10), [(0, 0, 4, 1, 1), (0, 4, 6, 0, 2), (0, 6, 8, 0, 1)]);
    assert_eq!(split(6, 12), [(0, 0, 2, 1, 2), (0, 2, 6, 1, 1), (0, 6, 8, 0, 2)]);
    assert_eq!(split(30, 4), [(0, 6, 8, 3, 1), (1, 0, 2, 0, 1)], "over the edge of a stripe");
    assert_eq!(split(7, 0), []);
}

#[test]
fn rows_max_cuts_pieces() {
    let set = set(3);
    let split = |rows_max| shape(set.split(SetLba(0), Sectors(16), Sectors(rows_max)));
    assert_eq!(split(3), [(0, 0, 3, 0, 2), (0, 3, 6, 0, 2), (0, 6, 8, 0, 2)]);
    assert_eq!(split(8), [(0, 0, 8, 0, 2)]);
}

/// The same extent, sector by sector.
fn rows_by_sector(set: &Parity, at: u64, len: u64) -> BTreeMap<(StripeIndex, u64), BTreeSet<u16>> {
    let mut rows: BTreeMap<_, BTreeSet<u16>> = BTreeMap::new();
    for sector in at..at + len {
        let (stripe, column, within) = set.locate(SetLba(sector));
        rows.entry((stripe, within.0)).or_default().insert(column);
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_cover_exactly_the_extent_in_order(
        members in 2_u16..9, start in 0_u64..1000, len in 0_u64..300, rows_max in 1_u64..12,
    ) {
        let set = set(members);
        let at = start % set.capacity().0;
        let len = len.min(set.capacity().0 - at);
        let mut expected = rows_by_sector(&set, at, len);
        let mut last = None;
        let mut uncut = BTreeMap::new();
        for piece in set.split(SetLba(at), Sectors(len), Sectors(rows_max)) {
            prop_assert!(piece.lo < piece.hi && piece.hi <= CHUNK && piece.rows().0 <= rows_max);
            prop_assert!(piece.columns >= 1);
            let first = set.set_lba(piece.stripe, piece.first_column, piece.lo);
            prop_assert_eq!(piece.set_lba, first);
            prop_assert!(last < Some((piece.stripe, piece.lo)), "rising");
            last = Some((piece.stripe, piece.lo));
            for row in piece.lo.0..piece.hi.0 {
                let columns: BTreeSet<u16> = (piece.first_column..piece.first_column + piece.columns).collect();
                prop_assert_eq!(expected.remove(&(piece.stripe, row)), Some(columns));
            }
        }
        prop_assert!(expected.is_empty(), "rows left out: {:?}", expected);
        for piece in set.split(SetLba(at), Sectors(len), Sectors::MAX) {
            *uncut.entry(piece.stripe).or_insert(0) += 1;
        }
        prop_assert!(uncut.values().all(|pieces| *pieces <= 3));
    }
}
