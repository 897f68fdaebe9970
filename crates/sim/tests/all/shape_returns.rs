//! A member that left as a change of shape began returns after the change has turned around: the array has its old shape
//! again, but no bit of the bitmap says what was written and moved meanwhile.

use crate::support::Case;
use openraid_core::admin::{AdminCommand, Health, MemberState, Policy};
use openraid_core::events::RequestKind;
use openraid_format::{MdLevel, ShapeFields};
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::rig::Loss;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Nanos, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(16);

fn write_all(rig: &mut Rig) {
    for start in (0..rig.session.capacity()).step_by(64 << 10) {
        let end = (start + (64 << 10)).min(rig.session.capacity());
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, start..end);
    }
}

/// The member leaves `wait` events after the order to change. Returns whether it knew nothing of the change.
fn return_after_a_cancel(from: ArrayShape, to: ShapeFields, wait: u32) -> bool {
    let _case = Case::new(1, format!("{from} to {to:?}, lost after {wait} events"));
    let bits = RigOptions { bitmap: true, bitmap_chunk: Some(4096), ..RigOptions::new(1) };
    let mut rig = Rig::new(from, RigOptions { far: Sectors(256), ..bits });
    // So slowly that the positions are recorded on the way.
    let policy = Policy { rebuild_rate: Sectors::kib(512), ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("the policy is taken");
    write_all(&mut rig);
    rig.rest();
    // No bit is left.
    rig.run_for(Nanos::from_secs(60));
    rig.world.start_admin(AdminCommand::Reshape { array: rig.array, new: to });
    rig.rest_or(wait);
    let lost = rig.lose(Slot(1), Loss::Failed);
    let is_stranger = superblock_on(&rig.world, lost).is_some_and(|found| found.change().is_none());
    let has_moved = |rig: &Rig| rig.status().reshape.is_some_and(|now| !now.recorded.is_zero());
    while !has_moved(&rig) {
        assert!(rig.world.step(), "it moves: {}", rig.world.dump());
        rig.session.hear(&mut rig.world);
    }
    // The second chunk of the old shape is on the member that left, and has another row in the new shape.
    rig.session.ask(&mut rig.world, RequestKind::Write { fua: true }, 16 << 10..20 << 10);
    rig.rest_or(40);
    rig.world.admin(AdminCommand::CancelReshape { array: rig.array }).expect("it is in its middle");
    rig.rest();
    let chunk = rig.status().superblock.map(|array| array.shape().chunk);
    assert_eq!((rig.health(), chunk), (Health::Degraded, Some(from.chunk)), "it has its old shape");
    rig.world.admin(AdminCommand::Remove { array: rig.array, drive: lost }).expect("it has failed");
    rig.world.re_add_member(rig.array, lost).expect("it was a member");
    rig.rest();
    assert_eq!(rig.state_of(Slot(1)), MemberState::InSync, "{}", rig.world.dump());
    rig.judge();
    is_stranger
}

#[test]
fn a_member_that_left_as_a_cancelled_change_began_gets_all_of_its_data_when_it_returns() {
    let from = ArrayShape { data: Sectors::kib(2048), ..ArrayShape::raid5(4, CHUNK) };
    let to = ShapeFields { level: MdLevel::Raid5, layout: 2, chunk: Sectors::kib(32), raid_disks: 4 };
    let strangers = (0..6).filter(|wait| return_after_a_cancel(from, to, *wait)).count();
    assert!(strangers > 0, "each one knew of the change");
}
