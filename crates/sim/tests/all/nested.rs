//! RAID 50, 60 and 100: a stripe over sets, each span with an outer superblock in its data area.

use openraid_core::admin::{AdminCommand, Health};

use crate::support::{seeds, Case};
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::{Content, HostSession, Members};
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::test_arrays::MEMBER_DATA;
use openraid_sim::{ArrayShape, RigOptions, World};
use openraid_units::{ArrayId, DriveId, Sectors, Slot};

struct Nested {
    world: World,
    session: HostSession,
    spans: Vec<ArrayId>,
}

/// Spans of this shape under one stripe.
fn nested(span: ArrayShape, spans: u16, seed: u64) -> Nested {
    let mut world = World::new(RigOptions::new(seed).world);
    let mut arrays = Vec::new();
    for number in 0..spans {
        let mut options = RigOptions::new(seed);
        options.world.seed = seed * 100 + u64::from(number);
        let drives: Vec<DriveId> = (0..span.members)
            .map(|slot| {
                let block = span.block(slot);
                world.add_drive(DriveSpec { block, ..DriveSpec::new(BEFORE_DATA + MEMBER_DATA) })
            })
            .collect();
        arrays.push(world.create(&span, &drives, &options));
    }
    let outer = world.create_nested(&arrays, Sectors::kib(64), seed);
    let session = HostSession::new(&world, outer, seed, Content::Zeroes, false);
    Nested { world, session, spans: arrays }
}

fn load(session: &HostSession) -> Workload {
    Workload { len_max: 200 << 10, ..Workload::mixed(session.capacity()) }
}

fn shapes() -> [(ArrayShape, u16); 4] {
    [
        (ArrayShape::raid5(3, Sectors::kib(16)), 2),
        (ArrayShape::raid6(4, Sectors::kib(16)), 3),
        (ArrayShape::raid1(2), 3),
        (ArrayShape { blocks: openraid_sim::test_arrays::Blocks::Mixed, ..ArrayShape::raid5(4, Sectors::kib(64)) }, 2),
    ]
}

#[test]
fn a_stripe_over_sets_holds_what_was_written_and_every_span_fits() {
    for seed in seeds(2, 20) {
        for (span, spans) in shapes() {
            let _case = Case::new(seed, format!("{spans} x {span}"));
            let mut rig = nested(span, spans, seed);
            let load = load(&rig.session);
            rig.session.run(&mut rig.world, &load, 150);
            rig.session.look_at_all(&mut rig.world);
            rig.session.rest(&mut rig.world);
            for span in &rig.spans {
                let complaints = Members::of(&rig.world, *span).complaints();
                assert!(complaints.is_empty(), "{complaints:#?}");
            }
        }
    }
}

#[test]
fn each_span_may_lose_a_member() {
    for seed in seeds(2, 20) {
        for (span, spans) in shapes() {
            let _case = Case::new(seed, format!("{spans} x {span}"));
            let mut rig = nested(span, spans, seed);
            let load = load(&rig.session);
            let mut pulled = Vec::new();
            for array in rig.spans.clone() {
                rig.session.run_on(&mut rig.world, &load, 30);
                let members = rig.world.status(array).unwrap().members;
                let drive = members.iter().find(|member| member.slot == Some(Slot(1))).unwrap().drive.unwrap();
                rig.world.pull(drive);
                pulled.push(drive);
            }
            rig.session.run(&mut rig.world, &load, 60);
            rig.session.look_at_all(&mut rig.world);
            // A pulled drive that got no later command still counts as present.
            for (array, drive) in rig.spans.clone().into_iter().zip(pulled) {
                let _ = rig.world.admin(AdminCommand::Fail { array, drive, unsynced: true });
                rig.session.hear(&mut rig.world);
                assert_eq!(rig.world.status(array).unwrap().health, Health::Degraded);
                let spare = rig.world.add_drive(DriveSpec::new(BEFORE_DATA + MEMBER_DATA));
                rig.world.add_member(array, spare).unwrap();
            }
            rig.session.run(&mut rig.world, &load, 30);
            rig.session.rest(&mut rig.world);
            rig.session.look_at_all(&mut rig.world);
            rig.session.rest(&mut rig.world);
            for span in &rig.spans {
                assert_eq!(rig.world.status(*span).unwrap().health, Health::Optimal);
                let complaints = Members::of(&rig.world, *span).complaints();
                assert!(complaints.is_empty(), "{complaints:#?}");
            }
        }
    }
}

#[test]
fn a_span_is_not_stopped_under_its_stripe() {
    let (span, spans) = shapes()[0];
    let mut rig = nested(span, spans, 1);
    let array = rig.spans[0];
    assert!(rig.world.admin(AdminCommand::Stop { array }).is_err());
    let outer = rig.session.array;
    rig.world.admin(AdminCommand::Stop { array: outer }).unwrap();
    rig.world.admin(AdminCommand::Stop { array }).unwrap();
}
