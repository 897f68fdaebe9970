//! Numbers that no honest superblock has: an error, never a panic, and a text that helps.

use super::{equal, CHUNK};
use openraid_core::geometry::{Geometry, GeometryError, Level, Rotation, SetSpec, SECTORS_MAX};
use openraid_units::{MemberLba, Sectors, SetLba, Slot, StripeIndex};
use proptest::prelude::*;

const LEVELS: [Level; 8] = [
    Level::Passthrough,
    Level::Linear,
    Level::Raid0,
    Level::Raid1,
    Level::Raid4,
    Level::Raid5,
    Level::Raid6,
    Level::Raid10,
];

#[test]
fn sets_that_md_refuses_are_refused() {
    let many = CHUNK * 100;
    let members = |level, members| matches!(equal(level, members, 2, many), Err(GeometryError::Members { .. }));
    assert!(members(Level::Raid6, 3) && !members(Level::Raid6, 4));
    assert!(members(Level::Raid5, 1) && !members(Level::Raid5, 2));
    assert!(members(Level::Raid4, 1) && !members(Level::Raid4, 2));
    assert!(members(Level::Raid1, 0) && members(Level::Raid1, 129) && !members(Level::Raid1, 128));
    for layout in (0..30).chain([0x102, u32::MAX]) {
        assert_eq!(equal(Level::Raid5, 4, layout, many).is_ok(), layout < 6, "RAID 5 layout {layout}");
        let raid6 = matches!(layout, 0..=5 | 8..=10 | 16..=20);
        assert_eq!(equal(Level::Raid6, 4, layout, many).is_ok(), raid6, "RAID 6 layout {layout}");
        assert!(equal(Level::Raid4, 4, layout, many).is_ok());
    }
    let copies = |layout| matches!(equal(Level::Raid10, 4, layout, many), Err(GeometryError::Copies { .. }));
    assert!(copies(0x101) && copies(0x105) && copies(0x203) && copies(0) && copies(2) && copies(0x200));
    assert!(matches!(equal(Level::Raid10, 4, 0x6_0102, many), Err(GeometryError::Layout { .. })));
    assert!(matches!(equal(Level::Raid10, 4, 0x8_0102, many), Err(GeometryError::Layout { .. })));
}

#[test]
fn every_layout_number_returns_from_its_name_and_number() {
    for rotation in Rotation::ALL {
        assert_eq!(Rotation::from_md(Level::Raid6, rotation.md_number()), Some(rotation));
        assert_eq!(Rotation::ALL.into_iter().filter(|other| other.name() == rotation.name()).count(), 1);
    }
    for level in LEVELS {
        assert_eq!(level.md_number().map_or(Some(level), Level::from_md), Some(level));
    }
    assert_eq!(Level::from_md(-4), None);
}

#[test]
fn chunks_are_powers_of_two_from_4_kib_where_md_wants_it() {
    for level in [Level::Raid4, Level::Raid5, Level::Raid6, Level::Raid10] {
        for (chunk, good) in [(0, false), (4, false), (8, true), (12, false), (1 << 20, true), (u64::MAX, false)] {
            let size = Sectors(1 << 30);
            let layout = if level == Level::Raid10 { 0x102 } else { 2 };
            let spec =
                SetSpec { level, members: 4, chunk: Sectors(chunk), layout, member_size: size, member_sizes: &[] };
            assert_eq!(Geometry::new(&spec).is_ok(), good, "{level} chunk {chunk}");
        }
    }
}

#[test]
fn members_too_small_are_named() {
    let spec = SetSpec {
        level: Level::Raid0,
        members: 2,
        chunk: Sectors(128),
        layout: 0,
        member_size: Sectors::ZERO,
        member_sizes: &[Sectors(1000), Sectors(100)],
    };
    let error = Geometry::new(&spec).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the member in slot 1 has 100 sectors for data, and this layout needs at least 128 sectors: \
         use a larger member or a smaller chunk"
    );
    let error = Geometry::new(&SetSpec { member_sizes: &[], ..spec }).unwrap_err();
    assert_eq!(error, GeometryError::SizeCount { given: 0, members: 2 });
    let error = Geometry::new(&SetSpec { level: Level::Raid6, ..spec }).unwrap_err();
    assert_eq!(error.to_string(), "RAID 6 cannot have 2 members: give 4 to 128");
    let error = equal(Level::Raid1, 2, 0, SECTORS_MAX + Sectors(1)).unwrap_err();
    assert!(error.to_string().contains("the superblock is damaged"));
    let error = equal(Level::Raid5, 12, 2, SECTORS_MAX).unwrap_err();
    assert!(matches!(error, GeometryError::CapacityTooLarge { .. }));
    assert!(equal(Level::Raid5, 2, 2, SECTORS_MAX).is_ok());
}

/// Numbers near the edges of their types, small ones, and any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0_u64..300,
        (0_u32..64, -2_i64..3).prop_map(|(shift, by)| (1_u64 << shift).wrapping_add_signed(by)),
    ]
}

/// Ask everything at the edges of an accepted set: arithmetic that overflows panics.
fn probe(set: &Geometry) {
    let capacity = set.capacity().0;
    assert!(capacity > 0 && capacity <= SECTORS_MAX.0);
    assert!(set.full_stripe() >= set.io_min());
    for at in [0, capacity / 2, capacity - 1].map(SetLba) {
        match set {
            Geometry::Passthrough(set) => assert_eq!(set.map(at).lba.0, at.0),
            Geometry::Linear(set) => {
                let found = set.map(at);
                assert_eq!(set.inverse(found.slot, found.lba), Some((at, found.len)));
            }
            Geometry::Striped(set) => {
                let found = set.map(at);
                assert_eq!(set.inverse(found.slot, found.lba), Some((at, found.len)));
                assert_eq!(set.inverse(found.slot, MemberLba(u64::MAX)), None);
            }
            Geometry::Mirror(set) => {
                for found in set.copies(at) {
                    assert_eq!(set.inverse(found.slot, found.lba), Some((at, found.len)));
                }
                assert_eq!(set.inverse(Slot(0), MemberLba(u64::MAX)), None);
            }
            Geometry::Parity(set) => {
                let (stripe, column, within) = set.locate(at);
                assert_eq!(set.set_lba(stripe, column, within), at);
                assert!(set.row(stripe).slot_of(column).0 < set.members());
                assert_eq!(set.stripe_at(MemberLba(u64::MAX)), None);
                let last = StripeIndex(set.stripes() - 1);
                assert_eq!(set.member_lba(last, set.chunk()).offset(), set.member_extent());
                assert!(set.split(at, Sectors(capacity - at.0), set.chunk()).next().is_some());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn absurd_numbers_are_errors_and_accepted_ones_work(
        level in prop::sample::select(&LEVELS[..]),
        members in prop_oneof![any::<u16>(), 0_u16..10],
        chunk in number(),
        layout in prop_oneof![any::<u32>(), 0_u32..0x8_0000, 0_u32..24],
        member_size in number(),
        sizes in prop::collection::vec(number(), 0..10),
        fit in any::<bool>(),
    ) {
        let member_sizes: Vec<Sectors> = sizes.iter().copied().map(Sectors).collect();
        let members = if fit && !sizes.is_empty() { u16::try_from(sizes.len()).unwrap() } else { members };
        let spec = SetSpec {
            level,
            members,
            chunk: Sectors(chunk),
            layout,
            member_size: Sectors(member_size),
            member_sizes: &member_sizes,
        };
        match Geometry::new(&spec) {
            Ok(set) => probe(&set),
            Err(error) => prop_assert!(error.to_string().len() > 20),
        }
    }
}
