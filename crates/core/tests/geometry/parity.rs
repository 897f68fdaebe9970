//! Levels 4, 5 and 6.

use super::{equal, parity, CHUNK};
use openraid_core::geometry::{Level, Parity, Rotation, StripeRole};
use openraid_core::slot_set::SlotSet;
use openraid_units::{MemberLba, Sectors, SetLba, Slot, StripeIndex};
use std::collections::BTreeSet;

/// All level and rotation pairs.
fn kinds() -> Vec<(Level, Rotation)> {
    let mut kinds = vec![(Level::Raid4, Rotation::ParityLast)];
    for rotation in Rotation::ALL {
        kinds.extend((!rotation.only_raid6()).then_some((Level::Raid5, rotation)));
        kinds.push((Level::Raid6, rotation));
    }
    kinds
}

/// A stripe as a line: a letter per column, p and q.
fn draw(set: &Parity, stripe: u64) -> String {
    let letter = |slot| match set.role_of(StripeIndex(stripe), Slot(slot)) {
        StripeRole::Data(column) => char::from(b'A' + u8::try_from(column).unwrap()),
        StripeRole::P => 'p',
        StripeRole::Q => 'q',
    };
    (0..set.members()).map(letter).collect()
}

fn assert_drawn(level: Level, members: u16, layout: u32, drawn: &[&str]) {
    let set = parity(level, members, layout, CHUNK * drawn.len() as u64);
    let found: Vec<String> = (0..set.stripes()).map(|stripe| draw(&set, stripe)).collect();
    assert_eq!(found, drawn, "{level} {}", set.rotation());
}

#[test]
fn raid5_on_four_members_stands_as_drawn() {
    assert_drawn(Level::Raid5, 4, 0, &["ABCp", "ABpC", "ApBC", "pABC", "ABCp"]);
    assert_drawn(Level::Raid5, 4, 1, &["pABC", "ApBC", "ABpC", "ABCp", "pABC"]);
    assert_drawn(Level::Raid5, 4, 2, &["ABCp", "BCpA", "CpAB", "pABC", "ABCp"]);
    assert_drawn(Level::Raid5, 4, 3, &["pABC", "CpAB", "BCpA", "ABCp", "pABC"]);
    assert_drawn(Level::Raid5, 4, 4, &["pABC", "pABC"]);
    assert_drawn(Level::Raid5, 4, 5, &["ABCp", "ABCp"]);
    assert_drawn(Level::Raid4, 4, 2, &["ABCp", "ABCp"]);
}

#[test]
fn raid6_on_five_members_stands_as_drawn() {
    assert_drawn(Level::Raid6, 5, 0, &["qABCp", "ABCpq", "ABpqC", "ApqBC", "pqABC", "qABCp"]);
    assert_drawn(Level::Raid6, 5, 1, &["pqABC", "ApqBC", "ABpqC", "ABCpq", "qABCp", "pqABC"]);
    assert_drawn(Level::Raid6, 5, 2, &["qABCp", "ABCpq", "BCpqA", "CpqAB", "pqABC", "qABCp"]);
    assert_drawn(Level::Raid6, 5, 3, &["pqABC", "CpqAB", "BCpqA", "ABCpq", "qABCp", "pqABC"]);
    assert_drawn(Level::Raid6, 5, 4, &["pqABC", "pqABC"]);
    assert_drawn(Level::Raid6, 5, 5, &["ABCpq", "ABCpq"]);
}

#[test]
fn raid6_of_ddf_on_five_members_stands_as_drawn() {
    assert_drawn(Level::Raid6, 5, 8, &["pqABC", "ApqBC", "ABpqC", "ABCpq", "qABCp", "pqABC"]);
    assert_drawn(Level::Raid6, 5, 9, &["ABCpq", "ABpqC", "ApqBC", "pqABC", "qABCp", "ABCpq"]);
    assert_drawn(Level::Raid6, 5, 10, &["ABCqp", "BCqpA", "CqpAB", "qpABC", "pABCq", "ABCqp"]);
}

#[test]
fn raid6_made_from_raid5_stands_as_drawn() {
    assert_drawn(Level::Raid6, 5, 16, &["ABCpq", "ABpCq", "ApBCq", "pABCq", "ABCpq"]);
    assert_drawn(Level::Raid6, 5, 17, &["pABCq", "ApBCq", "ABpCq", "ABCpq", "pABCq"]);
    assert_drawn(Level::Raid6, 5, 18, &["ABCpq", "BCpAq", "CpABq", "pABCq", "ABCpq"]);
    assert_drawn(Level::Raid6, 5, 19, &["pABCq", "CpABq", "BCpAq", "ABCpq", "pABCq"]);
    assert_drawn(Level::Raid6, 5, 20, &["pABCq", "pABCq"]);
}

/// The rule in words: md goes through the slots beginning after Q and numbers the data slots; in DDF
/// layouts it begins with slot 0 and numbers all.
fn weight_by_walking(set: &Parity, stripe: StripeIndex, wanted: u16) -> u8 {
    let ddf = (8..=10).contains(&set.rotation().md_number());
    let start = if ddf { 0 } else { set.q_slot(stripe).unwrap().0 + 1 };
    let mut number = 0;
    for step in 0..set.members() {
        match set.role_of(stripe, Slot((start + step) % set.members())) {
            StripeRole::Data(column) if column == wanted => return number,
            StripeRole::Data(_) => number += 1,
            StripeRole::P | StripeRole::Q => number += u8::from(ddf),
        }
    }
    panic!("column {wanted} stands nowhere");
}

#[test]
fn weights_are_counted_from_the_slot_after_q() {
    for rotation in Rotation::ALL {
        for members in [4, 5, 6, 8, 16, 128] {
            let set = parity(Level::Raid6, members, rotation.md_number(), CHUNK * u64::from(members * 2));
            for stripe in (0..set.stripes()).map(StripeIndex) {
                let weights: BTreeSet<u8> = (0..set.data_columns())
                    .map(|column| {
                        let weight = set.coefficient(stripe, column);
                        assert_eq!(weight, weight_by_walking(&set, stripe, column), "{rotation} {stripe:?} {column}");
                        weight
                    })
                    .collect();
                assert_eq!(weights.len(), usize::from(set.data_columns()), "weights differ");
            }
        }
    }
}

#[test]
fn every_chunk_of_every_member_has_exactly_one_role() {
    for (level, rotation) in kinds() {
        for members in level.members_min()..=8 {
            // Three turns of the longest pattern, and a member that ends in the middle of a chunk.
            let stripes = u64::from(members * 3);
            let set = parity(level, members, rotation.md_number(), CHUNK * stripes + Sectors(7));
            assert_eq!(set.stripes(), stripes);
            assert_eq!(set.capacity(), CHUNK * (stripes * u64::from(set.data_columns())));
            let mut places = BTreeSet::new();
            for number in 0..set.capacity() / CHUNK {
                let start = SetLba(number * CHUNK.0);
                for within in (0..CHUNK.0).map(Sectors) {
                    let (stripe, column, row) = set.locate(start + within);
                    assert_eq!((stripe.0 * u64::from(set.data_columns()) + u64::from(column), row), (number, within));
                    assert_eq!(set.set_lba(stripe, column, row), start + within);
                }
                let (stripe, column, _) = set.locate(start);
                let slot = set.slot_of(stripe, column);
                assert_eq!(set.role_of(stripe, slot), StripeRole::Data(column));
                assert!(places.insert((stripe, slot)), "{level} {rotation}: {stripe:?} {slot:?} twice");
            }
            for stripe in (0..stripes).map(StripeIndex) {
                assert_eq!(set.role_of(stripe, set.p_slot(stripe)), StripeRole::P);
                assert!(places.insert((stripe, set.p_slot(stripe))));
                assert_eq!(set.q_slot(stripe).is_some(), level == Level::Raid6);
                if let Some(q) = set.q_slot(stripe) {
                    assert_eq!(set.role_of(stripe, q), StripeRole::Q);
                    assert!(places.insert((stripe, q)));
                }
            }
            assert_eq!(places.len() as u64, stripes * u64::from(members), "no place is left over");
        }
    }
}

#[test]
fn places_on_members_lead_back_to_their_stripe() {
    let set = parity(Level::Raid5, 3, 2, CHUNK * 5 + Sectors(3));
    assert_eq!(set.member_lba(StripeIndex(4), Sectors(7)), MemberLba(39));
    assert_eq!(set.stripe_at(MemberLba(39)), Some((StripeIndex(4), Sectors(7))));
    assert_eq!(set.stripe_at(MemberLba(40)), None);
    assert_eq!(set.member_extent(), Sectors(40));
}

#[test]
fn beyond_two_tib_nothing_wraps() {
    // The boundary of 2^32 sectors, in the set and on the members.
    for (level, members, layout) in [(Level::Raid5, 5, 2), (Level::Raid6, 8, 9), (Level::Raid4, 3, 0)] {
        let set = parity(level, members, layout, Sectors(1 << 34));
        let columns = u128::from(set.data_columns());
        for boundary in [1_u64 << 32, (1 << 32) * u64::from(set.data_columns())] {
            for at in boundary - 20..boundary + 20 {
                let (stripe, column, within) = set.locate(SetLba(at));
                let chunk = u128::from(at) / 8;
                assert_eq!(u128::from(stripe.0), chunk / columns);
                assert_eq!(u128::from(column), chunk % columns);
                assert_eq!(set.member_lba(stripe, within).0, stripe.0 * 8 + at % 8);
                assert_eq!(set.set_lba(stripe, column, within), SetLba(at));
            }
        }
        assert_eq!(set.capacity(), Sectors((1 << 34) * u64::from(set.data_columns())));
    }
}

#[test]
fn parity_survives_as_many_losses_as_it_has_parities() {
    for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
        let set = equal(level, 6, 2, CHUNK * 9).unwrap();
        for bits in 0..1_u64 << 7 {
            let missing: SlotSet = (0..7).filter(|slot| bits >> slot & 1 == 1).map(Slot).collect();
            let lost = (bits & 0x3f).count_ones(); // slot 6 is none of the set's
            assert_eq!(set.survives(missing), lost <= u32::from(set.losses_survived()), "{level} {missing:?}");
        }
    }
}
