//! The shape of an array changes while its superblocks are written for another reason: after a cut at any event the array
//! starts.

use crate::support::Case;
use openraid_core::admin::{AdminCommand, Health};
use openraid_core::array::reshape_plan::next_step;
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_format::{MdLevel, SetName, ShapeFields};
use openraid_sim::oracle::Content;
use openraid_sim::rig::Loss;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);
/// More events than the superblocks of two generations need.
const EVENTS: u32 = 30;

/// The moments of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    Begin,
    Turn,
    End,
}

fn ask(rig: &mut Rig, to: &ShapeFields) {
    rig.world.start_admin(AdminCommand::Reshape { array: rig.array, new: *to });
}

fn rig_of(from: ArrayShape, to: &ShapeFields) -> Rig {
    let spares = to.raid_disks.saturating_sub(from.members);
    let mut rig = Rig::new(from, RigOptions { bitmap: true, spares, far: Sectors(512), ..RigOptions::new(1) });
    if to.level == MdLevel::Raid0 {
        let _ = rig.lose(Slot(from.members - 1), Loss::Failed);
    }
    rig.rest();
    rig
}

/// Number of events of the whole change.
fn events_of(from: ArrayShape, to: &ShapeFields) -> u32 {
    let mut rig = rig_of(from, to);
    ask(&mut rig, to);
    (0..).find(|_| !rig.world.step()).expect("it ends")
}

/// The array gets another name `early` events before that moment, and the power goes `left` events later.
fn cut_while_renamed(from: ArrayShape, to: &ShapeFields, (moment, at): (Moment, u32), early: u32, left: u32) {
    let mut rig = rig_of(from, to);
    let name = SetName::new(None, "other").expect("it fits");
    if moment == Moment::Begin {
        rig.world.start_admin(AdminCommand::Rename { array: rig.array, name });
        rig.rest_or(early);
        ask(&mut rig, to);
    } else {
        ask(&mut rig, to);
        rig.rest_or(at.saturating_sub(early));
        rig.world.start_admin(AdminCommand::Rename { array: rig.array, name });
        if moment == Moment::Turn {
            rig.rest_or(early);
            rig.world.start_admin(AdminCommand::CancelReshape { array: rig.array });
        }
    }
    rig.rest_or(left);
    rig.cut_and_boot();
    rig.rest();
    let expected = if to.level == MdLevel::Raid0 { [Health::Degraded, Health::Optimal] } else { [Health::Optimal; 2] };
    assert!(expected.contains(&rig.health()), "{:?}", rig.health());
    rig.session.learn_capacity(&rig.world, Content::Zeroes);
    rig.judge_members();
}

#[test]
fn a_cut_while_the_shape_changes_and_another_record_is_written_leaves_an_array_that_starts() {
    let small = |shape| ArrayShape { data: Sectors::kib(512), ..shape };
    let three = small(ArrayShape::raid5(3, CHUNK));
    let to = |level, layout, chunk, raid_disks| ShapeFields { level, layout, chunk, raid_disks };
    let cases = [
        (three, to(MdLevel::Raid5, 2, Sectors::kib(32), 3), Moment::Turn),
        (three, to(MdLevel::Raid5, 2, CHUNK, 4), Moment::Turn),
        (three, to(MdLevel::Raid5, 2, CHUNK, 4), Moment::End),
        (small(ArrayShape::new(Level::Raid5, 5, 3, CHUNK)), to(MdLevel::Raid0, 0, CHUNK, 2), Moment::Begin),
    ];
    for (from, to, moment) in cases {
        let at = match moment {
            Moment::Begin => 0,
            Moment::Turn => events_of(from, &to) / 2,
            Moment::End => events_of(from, &to) - EVENTS / 2,
        };
        for (early, left) in (0..EVENTS / 2).step_by(3).flat_map(|early| (0..EVENTS).map(move |left| (early, left))) {
            let _case = Case::new(1, format!("{from} to {to:?}, {moment:?}: {early} before it, {left} after it"));
            cut_while_renamed(from, &to, (moment, at), early, left);
        }
    }
}

#[test]
fn a_begin_of_another_level_that_is_cut_leaves_all_data_in_the_level_before_or_after() {
    let shape = |level, layout, members| ArrayShape {
        data: Sectors::kib(512),
        ..ArrayShape::new(level, layout, members, CHUNK)
    };
    let to = |level, layout, raid_disks| ShapeFields { level, layout, chunk: CHUNK, raid_disks };
    for (from, to) in [
        (shape(Level::Raid5, 5, 4), to(MdLevel::Raid4, 0, 4)),
        (shape(Level::Raid4, 0, 4), to(MdLevel::Raid5, 2, 4)),
        (shape(Level::Raid5, 2, 3), to(MdLevel::Raid6, 2, 4)),
        (shape(Level::Raid6, 18, 4), to(MdLevel::Raid5, 2, 3)),
    ] {
        for left in 0..2 * EVENTS {
            let _case = Case::new(1, format!("{from} to {to:?}, cut after {left} events"));
            let mut rig = rig_of(from, &to);
            let capacity = rig.session.capacity();
            rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, capacity / 2..capacity);
            rig.rest();
            let now = rig.status().superblock.expect("it has one");
            ask(&mut rig, &next_step(now.shape(), now.size, to));
            rig.rest_or(left);
            rig.cut_and_boot();
            rig.rest();
            assert_eq!((rig.health(), rig.status().capacity.bytes().get()), (Health::Optimal, capacity));
            rig.judge();
        }
    }
}

#[test]
fn a_move_that_begins_with_another_level_than_raid_6_is_refused() {
    let to = |level, layout| ShapeFields { level, layout, chunk: CHUNK, raid_disks: 4 };
    for (from, to) in [
        (ArrayShape::new(Level::Raid4, 0, 4, CHUNK), to(MdLevel::Raid5, 2)),
        (ArrayShape::new(Level::Raid5, 5, 4, CHUNK), to(MdLevel::Raid4, 5)),
    ] {
        let _case = Case::new(1, format!("{from} to {to:?}"));
        let mut rig = rig_of(from, &to);
        let refused = rig.world.admin(AdminCommand::Reshape { array: rig.array, new: to }).expect_err("two steps");
        assert!(refused.to_string().contains("change the level to that one first"), "{refused}");
    }
}
