//! RAID 0, linear and the pass-through.

use super::{striped, unequal};
use openraid_core::geometry::{Fragment, Geometry, GeometryError, Level, Linear, SetSpec, Striped};
use openraid_core::slot_set::SlotSet;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};
use std::collections::BTreeSet;

fn linear(chunk: u64, sizes: &[u64]) -> Linear {
    let member_sizes: Vec<Sectors> = sizes.iter().copied().map(Sectors).collect();
    let spec = SetSpec {
        level: Level::Linear,
        members: u16::try_from(sizes.len()).unwrap(),
        chunk: Sectors(chunk),
        layout: 0,
        member_size: Sectors::ZERO,
        member_sizes: &member_sizes,
    };
    match Geometry::new(&spec) {
        Ok(Geometry::Linear(linear)) => linear,
        other => panic!("not linear: {other:?}"),
    }
}

/// Which member each chunk of the set is on, and at which chunk of it.
fn draw(set: &Striped) -> String {
    let mut drawn = String::new();
    for number in 0..set.capacity() / set.chunk() {
        let found = set.map(SetLba(number * set.chunk().0));
        assert_eq!(found.lba.0 % set.chunk().0, 0);
        drawn += &format!("{}{} ", char::from(b'a' + u8::try_from(found.slot.0).unwrap()), found.lba.0 / set.chunk().0);
    }
    drawn
}

#[test]
fn equal_members_take_turns_whatever_the_layout_says() {
    for layout in [0, 1, 2, u32::MAX] {
        assert_eq!(draw(&striped(16, layout, &[47, 47, 40])), "a0 b0 c0 a1 b1 c1 ");
    }
}

#[test]
fn unequal_members_stand_as_drawn() {
    // Three zones: a b c d, then b c d, then c d. After four chunks (and 4 + 3) the original turn goes on.
    let sizes = [8, 16, 24, 24];
    assert_eq!(draw(&striped(8, 1, &sizes)), "a0 b0 c0 d0 c1 d1 b1 d2 c2 ");
    assert_eq!(draw(&striped(8, 2, &sizes)), "a0 b0 c0 d0 b1 c1 d1 c2 d2 ");
}

#[test]
fn unequal_members_need_a_layout_unless_only_one_is_left() {
    assert_eq!(unequal(8, 0, &[8, 16, 16]), Err(GeometryError::StripedLayout { layout: 0 }));
    assert_eq!(unequal(8, 3, &[8, 16, 16]), Err(GeometryError::StripedLayout { layout: 3 }));
    assert_eq!(draw(&striped(8, 0, &[8, 8, 24])), "a0 b0 c0 c1 c2 ");
}

#[test]
fn the_size_of_odd_chunks_is_masked_as_md_does() {
    // 48 KiB is 96 sectors; 95 is 0x5f. Ten chunks are 960 = 0x3c0, less 0x40: 896.
    let set = striped(96, 0, &[1000, 1000]);
    assert_eq!(set.capacity(), Sectors(2 * 896));
    let last = set.map(SetLba(2 * 896 - 1));
    // Chunk 18 of the set, sector 63 of it.
    assert_eq!(last, Fragment { slot: Slot(0), lba: MemberLba(9 * 96 + 63), len: Sectors(1) });
    assert_eq!(set.map(SetLba(18 * 96)).len, Sectors(64), "the last piece ends with the set");
    assert_eq!(set.inverse(Slot(0), MemberLba(9 * 96)), Some((SetLba(18 * 96), Sectors(64))));
    assert_eq!(set.inverse(Slot(0), MemberLba(9 * 96 + 64)), None);
    assert_eq!(set.inverse(Slot(1), MemberLba(9 * 96)), None);
}

/// Every sector has its own place and leads back; no other place leads anywhere.
fn assert_bijection(set: &Striped, sizes: &[u64]) {
    let mut places = BTreeSet::new();
    let mut at = SetLba::ZERO;
    while at.offset() < set.capacity() {
        let found = set.map(at);
        assert!(found.lba.0 + found.len.0 <= sizes[found.slot.index()]);
        assert_eq!(set.inverse(found.slot, found.lba), Some((at, found.len)));
        let middle = found.len.0 / 2;
        let expected = Fragment { lba: found.lba + Sectors(middle), len: Sectors(found.len.0 - middle), ..found };
        assert_eq!(set.map(at + Sectors(middle)), expected);
        for sector in 0..found.len.0 {
            assert!(places.insert((found.slot.0, found.lba.0 + sector)), "{found:?} overlaps");
        }
        at += found.len;
    }
    assert_eq!(places.len() as u64, set.capacity().0);
    for (slot, size) in (0..).zip(sizes) {
        for sector in 0..size + 40 {
            let back = set.inverse(Slot(slot), MemberLba(sector));
            assert_eq!(back.is_some(), places.contains(&(slot, sector)), "slot {slot} sector {sector}");
        }
    }
}

#[test]
fn every_sector_has_its_own_place() {
    for layout in [1, 2] {
        for chunk in [1, 8, 12, 16, 24] {
            for sizes in [
                &[50_u64][..],
                &[50, 50],
                &[50, 100],
                &[100, 50, 75],
                &[40, 80, 80, 120],
                &[200, 30, 77, 30, 99, 180, 45, 200],
                &[100, 99, 98, 97, 96, 95, 94, 93],
            ] {
                assert_bijection(&striped(chunk, layout, sizes), sizes);
            }
        }
    }
}

#[test]
fn capacity_of_power_of_two_chunks_is_all_whole_chunks() {
    let sizes = [200, 30, 77, 30];
    assert_eq!(striped(16, 1, &sizes).capacity(), Sectors(192 + 16 + 64 + 16));
}

#[test]
fn striping_beyond_two_tib_does_not_wrap() {
    let size = 3 << 32;
    let set = striped(128, 2, &[size, size, size + 256, size + 256]);
    for at in (1_u64 << 32) - 300..(1 << 32) + 300 {
        let chunk = at / 128;
        let expected = Fragment {
            slot: Slot(u16::try_from(chunk % 4).unwrap()),
            lba: MemberLba(chunk / 4 * 128 + at % 128),
            len: Sectors(128 - at % 128),
        };
        assert_eq!(set.map(SetLba(at)), expected);
        assert_eq!(set.inverse(expected.slot, expected.lba), Some((SetLba(at), expected.len)));
    }
    let expected = Fragment { slot: Slot(3), lba: MemberLba(size + 1), len: Sectors(127) };
    assert_eq!(set.map(SetLba(size * 4 + 128 + 1)), expected);
}

#[test]
fn linear_members_follow_one_another() {
    let set = linear(0, &[10, 7, 20]);
    assert_eq!(set.capacity(), Sectors(37));
    let piece = |slot, lba, len| Fragment { slot: Slot(slot), lba: MemberLba(lba), len: Sectors(len) };
    assert_eq!(set.map(SetLba(0)), piece(0, 0, 10));
    assert_eq!(set.map(SetLba(9)), piece(0, 9, 1));
    assert_eq!(set.map(SetLba(10)), piece(1, 0, 7));
    assert_eq!(set.map(SetLba(36)), piece(2, 19, 1));
    assert_eq!(set.inverse(Slot(1), MemberLba(6)), Some((SetLba(16), Sectors(1))));
    assert_eq!(set.inverse(Slot(1), MemberLba(7)), None);
    // With a chunk, members count in whole chunks.
    let set = linear(8, &[15, 23, 16]);
    assert_eq!(set.capacity(), Sectors(8 + 16 + 16));
    assert_eq!(set.map(SetLba(8)), piece(1, 0, 16));
    assert_eq!(set.inverse(Slot(0), MemberLba(8)), None);
    let set = linear(128, &[1 << 33, 1 << 33]);
    assert_eq!(set.map(SetLba((1 << 33) + 5)), piece(1, 5, (1 << 33) - 5));
}

#[test]
fn without_redundancy_no_loss_is_survived() {
    let sets = [unequal(8, 1, &[16, 16]).unwrap(), Geometry::Linear(linear(8, &[16, 16]))];
    for set in sets {
        assert!(set.survives(SlotSet::EMPTY));
        assert!(set.survives(SlotSet::one(Slot(2))), "there is no slot 2");
        assert!(!set.survives(SlotSet::one(Slot(1))));
        assert_eq!(set.losses_survived(), 0);
    }
}

#[test]
fn the_pass_through_changes_nothing() {
    let spec = SetSpec {
        level: Level::Passthrough,
        members: 1,
        chunk: Sectors::ZERO,
        layout: 0,
        member_size: Sectors(1001),
        member_sizes: &[],
    };
    let Ok(Geometry::Passthrough(set)) = Geometry::new(&spec) else { panic!("a pass-through") };
    assert_eq!(set.map(SetLba(1000)), Fragment { slot: Slot(0), lba: MemberLba(1000), len: Sectors(1) });
    let two = Geometry::new(&SetSpec { members: 2, ..spec });
    assert!(matches!(two, Err(GeometryError::Members { members: 2, least: 1, most: 1, .. })));
}
