//! A change of shape in the superblock: what md wrote in the middle is read field by field, an impossible value is refused
//! with its reason, and the fields for a begin, a position, a turn and an end are those of md.

mod common;

use common::{case, fix_checksum};
use openraid_format::{
    ChangeBegin, FeatureMap, MdLevel, MetadataArea, ReshapeDirection, ReshapeFault, ReshapeView, ShapeFields,
    Superblock, SuperblockError,
};
use openraid_units::{DriveLba, Sectors, SetLba};

/// The superblock of a member of a golden array, with some bytes replaced.
fn with(name: &str, member: usize, changes: &[(usize, &[u8])]) -> Result<Superblock, SuperblockError> {
    let member = &case(name)[member];
    let mut bytes = [0; 4096];
    bytes[..member.superblock_bytes().len()].copy_from_slice(member.superblock_bytes());
    for (at, field) in changes {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    fix_checksum(&mut bytes);
    Superblock::decode(&bytes, member.minor(), member.size)
}

fn fault(name: &str, changes: &[(usize, &[u8])]) -> ReshapeFault {
    match with(name, 0, changes) {
        Err(SuperblockError::BadReshape(fault)) => {
            assert!(!fault.to_string().is_empty());
            fault
        }
        other => panic!("{name} {changes:?}: {other:?}"),
    }
}

fn shape(level: MdLevel, raid_disks: u16, layout: u32, chunk: u64) -> ShapeFields {
    ShapeFields { level, layout, chunk: Sectors(chunk), raid_disks }
}

const LEFT_SYMMETRIC: u32 = 2;
const LEFT_SYMMETRIC_6: u32 = 18;
const NEAR_2: u32 = 0x102;
const GROW: &str = "change-raid5-4-to-5";

/// Offsets of fields.
const FEATURES: usize = 8;
const SIZE: usize = 80;
const NEW_LEVEL: usize = 100;
const POSITION: usize = 104;
const DELTA: usize = 112;
const NEW_LAYOUT: usize = 116;
const NEW_CHUNK: usize = 120;
const NEW_OFFSET: usize = 124;

#[test]
fn the_middle_of_a_change_is_read_as_md_meant_it() {
    use MdLevel::{Raid10, Raid4, Raid5, Raid6};
    use ReshapeDirection::{Backward, Forward};
    let ls = LEFT_SYMMETRIC;
    let six = LEFT_SYMMETRIC_6;
    // Both shapes, the direction, the position, and how far the data of the first and the last member move.
    let cases = [
        (GROW, shape(Raid5, 4, ls, 128), shape(Raid5, 5, ls, 128), Forward, 32768, -512),
        ("change-raid5-3-to-5", shape(Raid5, 3, ls, 128), shape(Raid5, 5, ls, 128), Forward, 32768, -256),
        ("change-raid6-4-to-5", shape(Raid6, 4, ls, 128), shape(Raid6, 5, ls, 128), Forward, 24576, -384),
        ("change-raid4-3-to-4", shape(Raid4, 3, 0, 128), shape(Raid4, 4, 0, 128), Forward, 24576, -384),
        ("change-raid5-to-raid6", shape(Raid6, 4, six, 128), shape(Raid6, 4, ls, 128), Forward, 16384, -1024),
        ("change-raid6-to-raid5", shape(Raid6, 5, ls, 128), shape(Raid6, 5, six, 128), Forward, 24576, -1024),
        ("change-raid5-chunk-128", shape(Raid5, 4, ls, 128), shape(Raid5, 4, ls, 256), Forward, 24576, -1024),
        ("change-raid5-layout", shape(Raid5, 4, ls, 128), shape(Raid5, 4, 3, 128), Forward, 24576, -1024),
        ("change-raid5-layout-backwards", shape(Raid5, 4, ls, 128), shape(Raid5, 4, 3, 128), Backward, 172032, 512),
        ("change-raid5-5-to-4", shape(Raid5, 5, ls, 128), shape(Raid5, 4, ls, 128), Backward, 172032, 512),
        // RAID 0 is RAID 4 without a parity member meanwhile.
        ("change-raid0-3-to-4", shape(Raid4, 4, 5, 128), shape(Raid4, 5, 5, 128), Forward, 32768, -512),
        ("change-raid10-4-to-5", shape(Raid10, 4, NEAR_2, 128), shape(Raid10, 5, NEAR_2, 128), Forward, 7296, -128),
        ("change-raid10-chunk-128", shape(Raid10, 4, NEAR_2, 128), shape(Raid10, 4, NEAR_2, 256), Forward, 6144, -1024),
    ];
    for (name, old, new, direction, position, shift) in cases {
        for member in case(name) {
            let superblock = member.superblock().expect("md wrote it");
            let change = superblock.change().expect("md was in the middle");
            let size = superblock.size.round_down(old.chunk.max(new.chunk));
            assert_eq!(change, ReshapeView { old, new, direction, position: SetLba(position), size }, "{name}");
            let moved = superblock.data_offset.get().checked_add_signed(shift).map(DriveLba);
            assert_eq!(Some(superblock.new_data_offset()), moved, "{name} {}", member.index);
        }
    }
}

#[test]
fn the_member_that_a_change_fills_says_how_far_it_is() {
    let members = case("change-raid5-to-raid6");
    let filled = members[1].superblock().expect("md wrote it");
    let change = filled.change().expect("in the middle");
    // Sectors of the member in the new shape, and the position in sectors of the array: two data columns.
    assert_eq!(filled.recovery_offset().map(|at| at.get() * 2), Some(change.position.get()));
    assert_eq!(members[0].superblock().expect("md wrote it").recovery_offset(), None);
}

#[test]
fn stale_fields_of_an_earlier_change_mean_nothing() {
    for member in case("change-raid5-4-to-5-after") {
        let superblock = member.superblock().expect("md wrote it");
        assert_ne!((superblock.reshape.delta_disks, superblock.reshape.new_offset), (0, 0));
        assert_eq!((superblock.change(), superblock.new_data_offset()), (None, superblock.data_offset));
    }
    let nonsense = [(NEW_LEVEL, &[0xff; 4][..]), (POSITION, &[0xff; 8]), (DELTA, &[0x7f; 4]), (NEW_OFFSET, &[0x7f; 4])];
    assert_eq!(with("raid5-left-symmetric", 0, &nonsense).expect("without a meaning").change(), None);
    // The two bits of a change have no meaning alone.
    for bit in [FeatureMap::RESHAPE_BACKWARDS, FeatureMap::NEW_OFFSET] {
        let alone = with("raid5-left-symmetric", 0, &[(FEATURES, &bit.0.to_le_bytes())]);
        assert_eq!(alone, Err(SuperblockError::ContradictingFeatures(bit)));
    }
}

#[test]
fn a_change_does_not_go_together_with_a_log() {
    for log in [FeatureMap::JOURNAL, FeatureMap::PPL, FeatureMap::MULTIPLE_PPLS] {
        let both = FeatureMap::RESHAPE_ACTIVE | log;
        // The place of a partial parity log: eight sectors, 32 after the superblock.
        let place = [32, 0, 8, 0];
        let features = both | FeatureMap::NEW_OFFSET;
        let read = with(GROW, 0, &[(FEATURES, &features.0.to_le_bytes()), (96, &place)]);
        assert_eq!(read, Err(SuperblockError::ContradictingFeatures(both)));
    }
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    for (delta, raid_disks) in [(4i32, 5u16), (5, 5), (i32::MAX, 5), (i32::MIN, 5), (-1916, 5)] {
        assert_eq!(fault(GROW, &[(DELTA, &delta.to_le_bytes())]), ReshapeFault::Members { raid_disks, delta });
    }
    let new_level = ReshapeFault::NewLevel { level: MdLevel::Raid5, new_level: 6 };
    assert_eq!(fault(GROW, &[(NEW_LEVEL, &6i32.to_le_bytes())]), new_level);
    assert_eq!(fault(GROW, &[(NEW_LAYOUT, &6u32.to_le_bytes())]), ReshapeFault::NewLayout(6));
    for chunk in [0u32, 4, 96, 1 << 22, u32::MAX] {
        let refused = ReshapeFault::NewChunk(Sectors(chunk.into()));
        assert_eq!(fault(GROW, &[(NEW_CHUNK, &chunk.to_le_bytes())]), refused);
    }
    // The size does not hold one of the larger chunks.
    let size = fault(GROW, &[(NEW_CHUNK, &(1u32 << 17).to_le_bytes())]);
    assert_eq!(size, ReshapeFault::Size { size: Sectors(79872), chunk: Sectors(1 << 17) });
    let bits = FeatureMap::RESHAPE_ACTIVE | FeatureMap::NEW_OFFSET | FeatureMap::RESHAPE_BACKWARDS;
    assert_eq!(fault(GROW, &[(FEATURES, &bits.0.to_le_bytes())]), ReshapeFault::Direction { delta: 1 });
    let active = FeatureMap::RESHAPE_ACTIVE.0.to_le_bytes();
    assert_eq!(fault("raid1", &[(FEATURES, &active)]), ReshapeFault::Level(MdLevel::Raid1));
    assert_eq!(fault("raid0-equal", &[(FEATURES, &active)]), ReshapeFault::Level(MdLevel::Raid0));
    assert_eq!(fault("linear3", &[(FEATURES, &active)]), ReshapeFault::Level(MdLevel::Linear));
}

#[test]
fn copies_keep_their_number_and_are_not_far() {
    let begin = |new_layout: u32, position: u64| {
        let chunk = case("raid10-n2")[0].superblock().expect("md wrote it").chunk.get();
        let chunk = u32::try_from(chunk).expect("32 bits on the drive");
        let fields = [
            (FEATURES, FeatureMap::RESHAPE_ACTIVE.0.to_le_bytes().to_vec()),
            (NEW_LEVEL, 10i32.to_le_bytes().to_vec()),
            (POSITION, position.to_le_bytes().to_vec()),
            (NEW_LAYOUT, new_layout.to_le_bytes().to_vec()),
            (NEW_CHUNK, chunk.to_le_bytes().to_vec()),
        ];
        let fields: Vec<(usize, &[u8])> = fields.iter().map(|(at, field)| (*at, &field[..])).collect();
        with("raid10-n2", 0, &fields)
    };
    let offset_2 = 0x1_0201;
    // RAID 10 has no unit of positions.
    let change = begin(offset_2, 1).expect("near to offset").change().expect("in the middle");
    assert_eq!((change.step(), change.new.layout), (None, offset_2));
    assert_eq!(begin(0x103, 0), Err(SuperblockError::BadReshape(ReshapeFault::Copies { old: 2, new: 3 })));
    assert_eq!(begin(0x201, 0), Err(SuperblockError::BadReshape(ReshapeFault::FarCopies(0x201))));
    let position = SetLba(u64::MAX);
    let refused = SuperblockError::BadReshape(ReshapeFault::PositionBeyondEnd { position });
    assert_eq!(begin(NEAR_2, position.get()), Err(refused));
}

#[test]
fn positions_are_between_stripes_and_not_after_the_end() {
    let at = |position: u64| with(GROW, 0, &[(POSITION, &position.to_le_bytes())]);
    let step = with(GROW, 0, &[]).expect("md wrote it").change().expect("in the middle").step().expect("RAID 5");
    assert_eq!(step, Sectors(512));
    let end = 79872 * 4;
    for position in [0, 512, end] {
        assert_eq!(at(position).expect("possible").change().expect("in the middle").position, SetLba(position));
    }
    for position in [1, 511, 384, end - 1] {
        let refused = ReshapeFault::Position { position: SetLba(position), step };
        assert_eq!(at(position), Err(SuperblockError::BadReshape(refused)));
    }
    for position in [end + 512, 1 << 62, u64::MAX] {
        let refused = ReshapeFault::PositionBeyondEnd { position: SetLba(position) };
        assert_eq!(at(position), Err(SuperblockError::BadReshape(refused)));
    }
    // The larger chunk counts.
    let chunk = [(NEW_CHUNK, &256u32.to_le_bytes()[..]), (POSITION, &512u64.to_le_bytes())];
    let refused = ReshapeFault::Position { position: SetLba(512), step: Sectors(1024) };
    assert_eq!(fault(GROW, &chunk), refused);
    // A size that no drive has: the end of the set is beyond all numbers.
    let spare = [(160, &[0xff; 4][..]), (SIZE, &u64::MAX.to_le_bytes())];
    assert!(with(GROW, 0, &spare).expect("a spare uses nothing").change().is_some());
}

#[test]
fn the_data_move_in_the_right_direction_and_over_nothing_else() {
    let shifted = |shift: i32| with(GROW, 0, &[(NEW_OFFSET, &shift.to_le_bytes())]);
    // The bad-block log is in sectors 24 to 31, the data begin at 2048.
    for shift in [0, -1, -2016] {
        let superblock = shifted(shift).expect("possible");
        assert_eq!(
            superblock.new_data_offset(),
            DriveLba(2048).get().checked_add_signed(shift.into()).map(DriveLba).unwrap()
        );
    }
    let refused = |fault| Err(SuperblockError::BadReshape(fault));
    for shift in [-2017, -2030] {
        assert_eq!(shifted(shift), refused(ReshapeFault::NewDataOver(MetadataArea::BadBlocks)), "{shift}");
    }
    for shift in [-2040, -2048, -2049, i32::MIN] {
        assert_eq!(shifted(shift), refused(ReshapeFault::NewDataArea { shift: shift.into() }), "{shift}");
    }
    for shift in [1, 512, i32::MAX] {
        let direction = ReshapeDirection::Forward;
        assert_eq!(shifted(shift), refused(ReshapeFault::Shift { shift: shift.into(), direction }), "{shift}");
    }
    // Backwards with as many members: up only, and not out of the drive.
    let bits = FeatureMap::RESHAPE_ACTIVE | FeatureMap::RESHAPE_BACKWARDS | FeatureMap::NEW_OFFSET;
    let backwards = |shift: i32, size: u64| {
        let fields: [(usize, &[u8]); 4] = [
            (FEATURES, &bits.0.to_le_bytes()),
            (SIZE, &size.to_le_bytes()),
            (NEW_OFFSET, &shift.to_le_bytes()),
            (POSITION, &0u64.to_le_bytes()),
        ];
        with("change-raid6-to-raid5", 0, &fields)
    };
    assert_eq!(backwards(1024, 79872 - 1024).expect("room after the data").new_data_offset(), DriveLba(3072));
    assert_eq!(backwards(1025, 79872 - 1024), refused(ReshapeFault::NewDataArea { shift: 1025 }));
    assert_eq!(backwards(i32::MAX, 79872), refused(ReshapeFault::NewDataArea { shift: i32::MAX.into() }));
    let down = ReshapeFault::Shift { shift: -8, direction: ReshapeDirection::Backward };
    assert_eq!(backwards(-8, 79872 - 1024), refused(down));
    // Without the bit the data stay.
    let active = FeatureMap::RESHAPE_ACTIVE.0.to_le_bytes();
    let stays = with(GROW, 0, &[(FEATURES, &active), (NEW_OFFSET, &i32::MIN.to_le_bytes())]).expect("a stale shift");
    assert_eq!(stays.new_data_offset(), stays.data_offset);
}

#[test]
fn the_room_of_a_bitmap_ends_where_the_data_will_be() {
    let mut superblock = with("change-raid5-4-to-5", 0, &[]).expect("md wrote it");
    superblock.set_bitmap_offset(Some(32));
    let drive = case(GROW)[0].size;
    assert_eq!(superblock.bitmap_room(drive), Some((DriveLba(40), Sectors(1536 - 40))));
    superblock.end_change();
    assert_eq!(superblock.bitmap_room(drive), Some((DriveLba(40), Sectors(1536 - 40))));
}

/// Encodes, and reads what was encoded.
fn written(superblock: &Superblock) -> Superblock {
    let mut bytes = [0; 4096];
    superblock.encode(&mut bytes);
    Superblock::decode(&bytes, superblock.minor, case(GROW)[0].size).expect("it was set with checks")
}

/// A change from begin to end, by our fields and by those of md, on the same members.
#[test]
fn a_begin_a_position_and_an_end_are_those_of_md() {
    for name in [GROW, "change-raid5-chunk-128", "change-raid5-5-to-4"] {
        let (before, after) = (case(&format!("{name}-before")), case(&format!("{name}-after")));
        for ((before, middle), after) in before.iter().zip(case(name)).zip(&after) {
            let [ours, middle, after] =
                [before, &middle, after].map(|member| member.superblock().expect("md wrote it"));
            begin_and_end(ours, &middle, &after);
        }
    }
}

fn begin_and_end(mut ours: Superblock, middle: &Superblock, after: &Superblock) {
    let ReshapeView { old, new, direction, size, .. } = middle.change().expect("in the middle");
    let position = match direction {
        ReshapeDirection::Forward => SetLba::ZERO,
        ReshapeDirection::Backward => SetLba(size.get() * u64::from(new.data_columns().expect("parity"))),
    };
    let begin = ChangeBegin { new, direction, position, new_data_offset: middle.new_data_offset() };
    ours.begin_change(&begin).expect("md did it");
    ours.roles = middle.roles.clone();
    assert_eq!(written(&ours).change(), Some(ReshapeView { old, new, direction, position, size }));
    ours.set_change_position(SetLba(middle.reshape.position)).expect("md did it");
    (ours.events, ours.updated) = (middle.events, middle.updated);
    assert_eq!(&written(&ours), middle);
    ours.set_change_position(SetLba(after.reshape.position)).expect("md did it");
    ours.end_change();
    (ours.events, ours.updated) = (after.events, after.updated);
    ours.roles = after.roles.clone();
    assert_eq!(&written(&ours), after);
    let same = ours.clone();
    ours.end_change();
    assert_eq!(ours, same, "an end without a change is none");
}

#[test]
fn what_a_reader_would_refuse_is_not_set() {
    let before = case("change-raid5-4-to-5-before")[0].superblock().expect("md wrote it");
    let begin = ChangeBegin {
        new: shape(MdLevel::Raid5, 5, LEFT_SYMMETRIC, 128),
        direction: ReshapeDirection::Forward,
        position: SetLba::ZERO,
        new_data_offset: DriveLba(1536),
    };
    let refused = |begin: ChangeBegin| {
        let mut superblock = before.clone();
        let error = superblock.begin_change(&begin).expect_err("refused");
        assert_eq!(superblock, before, "nothing has changed");
        match error {
            SuperblockError::BadReshape(fault) => fault,
            other => panic!("{other:?}"),
        }
    };
    let with_shape = |new| refused(ChangeBegin { new, ..begin });
    assert_eq!(
        refused(ChangeBegin { direction: ReshapeDirection::Backward, ..begin }),
        ReshapeFault::Direction { delta: 1 }
    );
    let fewer = with_shape(shape(MdLevel::Raid5, 3, LEFT_SYMMETRIC, 128));
    assert_eq!(fewer, ReshapeFault::Direction { delta: -1 });
    let other = with_shape(shape(MdLevel::Raid6, 5, LEFT_SYMMETRIC, 128));
    assert_eq!(other, ReshapeFault::NewLevel { level: MdLevel::Raid5, new_level: 6 });
    let chunk = Sectors(1 << 33);
    assert_eq!(with_shape(ShapeFields { chunk, ..begin.new }), ReshapeFault::NewChunk(chunk));
    let place = |new_data_offset| refused(ChangeBegin { new_data_offset, ..begin });
    assert_eq!(place(DriveLba(0)), ReshapeFault::NewDataArea { shift: -2048 });
    assert!(matches!(place(DriveLba(u64::MAX)), ReshapeFault::NewDataArea { shift: i64::MAX }));
    assert!(matches!(place(DriveLba(2056)), ReshapeFault::Shift { shift: 8, .. }));
    let mut begun = before.clone();
    begun.begin_change(&begin).expect("possible");
    let inside = begun.set_change_position(SetLba(100));
    assert!(matches!(inside, Err(SuperblockError::BadReshape(ReshapeFault::Position { .. }))));
    assert_eq!(begun.change().expect("begun").position, SetLba::ZERO);
}

#[test]
fn a_change_turns_around_at_a_position_of_both_directions_and_back_again() {
    for name in [GROW, "change-raid5-3-to-5", "change-raid4-3-to-4", "change-raid5-to-raid6", "change-raid6-to-raid5"] {
        let mut superblock = case(name)[0].superblock().expect("md wrote it");
        let there = superblock.change().expect("in the middle");
        let columns = |shape: ShapeFields| u64::from(shape.data_columns().expect("parity"));
        // A multiple of the stripes of both shapes.
        let unit = 128 * columns(there.old) * columns(there.new);
        superblock.set_change_position(SetLba(unit)).expect("a multiple of the step");
        let first = superblock.clone();
        let place = superblock.new_data_offset();
        superblock.turn_change(SetLba(superblock.reshape.position)).expect("a unit");
        let back = written(&superblock).change().expect("still in the middle");
        let turned = ReshapeView { old: there.new, new: there.old, direction: there.direction.reversed(), ..there };
        assert_eq!(back, ReshapeView { position: SetLba(unit), ..turned }, "{name}");
        assert_eq!((superblock.data_offset, superblock.new_data_offset()), (place, first.data_offset));
        superblock.turn_change(SetLba(superblock.reshape.position)).expect("a unit");
        assert_eq!(superblock, first, "{name}");
    }
    // 5 to 4 members: 512 sectors are one stripe of five members, and no whole stripes of four.
    let mut superblock = case(GROW)[0].superblock().expect("md wrote it");
    superblock.set_change_position(SetLba(512)).expect("a multiple of the step");
    let before = superblock.clone();
    let refused = ReshapeFault::Position { position: SetLba(512), step: Sectors(384) };
    assert_eq!(superblock.turn_change(SetLba(superblock.reshape.position)), Err(SuperblockError::BadReshape(refused)));
    assert_eq!(superblock, before);
    // Without a change there is nothing to turn.
    let mut still = case("raid1")[0].superblock().expect("md wrote it");
    assert_eq!(still.turn_change(SetLba(still.reshape.position)), Ok(()));
}
