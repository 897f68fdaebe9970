//! Requests at the limits, hosts that disconnect, and arrays beyond two terabytes.

use crate::support::{seeds, Case};
use openraid_core::actions::ReplyStatus;
use openraid_core::events::RequestKind;
use openraid_core::limits::{RANGE_BYTES_MAX, REQUEST_BYTES_MAX};
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Random, Rig, RigOptions, World, WorldSpec};
use openraid_units::{Bytes, Sectors};

const WRITE: RequestKind = RequestKind::Write { fua: false };
const TRIM: RequestKind = RequestKind::Trim { fua: false };

#[test]
fn requests_that_do_not_fit_are_refused_and_empty_ones_are_answered() {
    for shape in ArrayShape::some(ArrayShape::all(), 3, 12) {
        let _case = Case::new(3, shape);
        let mut rig = Rig::new(shape, RigOptions::new(3));
        let (array, capacity) = (rig.array, rig.session.capacity());
        for (kind, offset, len) in [
            (RequestKind::Read, capacity, 1),
            (RequestKind::Read, capacity - 1, 2),
            (RequestKind::Read, u64::MAX, 1),
            (RequestKind::Read, u64::MAX, u64::MAX),
            (RequestKind::Read, 0, REQUEST_BYTES_MAX + 1),
            (TRIM, 0, RANGE_BYTES_MAX + 1),
            (TRIM, capacity - 511, 512),
        ] {
            let token = rig.world.submit(array, kind, offset, len, Vec::new());
            assert_eq!(rig.world.run_until(token).status, ReplyStatus::OutOfRange, "{kind:?} {offset} {len}");
        }
        for kind in [RequestKind::Read, WRITE, TRIM] {
            for offset in [0, 1, capacity - 1, capacity] {
                let token = rig.world.submit(array, kind, offset, 0, Vec::new());
                assert_eq!(rig.world.run_until(token).status, ReplyStatus::Ok, "{kind:?} {offset}");
            }
        }
        assert_eq!(rig.world.read(array, capacity - 1, 1), Ok(vec![0]));
    }
}

#[test]
fn a_full_controller_refuses_a_request_and_accepts_it_later() {
    let mut rig = Rig::new(ArrayShape::raid5(3, Sectors::kib(16)), RigOptions::new(1));
    let most = rig.world.limits().requests_max;
    for _ in 0..most {
        rig.world.try_submit(rig.array, RequestKind::Read, 0, 4096, Vec::new()).unwrap();
    }
    rig.world.try_submit(rig.array, RequestKind::Read, 0, 4096, Vec::new()).unwrap_err();
    rig.world.run_until_answered();
    rig.world.try_submit(rig.array, RequestKind::Read, 0, 4096, Vec::new()).unwrap();
    rig.world.run_until_answered();
}

#[test]
fn hosts_that_go_away_leave_no_requests() {
    for seed in seeds(2, 20) {
        for shape in ArrayShape::some(ArrayShape::all(), seed, 10) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            let capacity = rig.session.capacity();
            for _ in 0..100 {
                let len = rig.random.between(1, capacity.min(512 << 10));
                let offset = rig.random.below(capacity - len + 1);
                let (kind, payload) = if rig.random.chance(1, 2) {
                    (WRITE, vec![1; usize::try_from(len).unwrap()])
                } else {
                    (RequestKind::Read, Vec::new())
                };
                let token = rig.world.submit(rig.array, kind, offset, len, payload);
                for _ in 0..rig.random.below(6) {
                    rig.world.step();
                }
                rig.world.abandon(token);
            }
            rig.world.run_until_answered();
            for _ in rig.world.take_finished() {}
            // All tables are free again: the array accepts its full amount of work.
            let load = Workload { mix: [0, 1, 0, 0, 0], ..Workload::mixed(capacity) };
            rig.session.run(&mut rig.world, &load, 50);
            rig.rest();
            rig.judge_redundancy();
        }
    }
}

#[test]
fn addresses_beyond_two_terabytes_are_whole() {
    const EDGE: u64 = 1 << 41;
    for shape in
        [ArrayShape::raid5(4, Sectors::kib(64)), ArrayShape::raid10(0x201, 4, Sectors::kib(64)), ArrayShape::raid1(2)]
    {
        let mut world = World::new(WorldSpec::new(1));
        let spec = DriveSpec::new(Bytes::gib(4096).sectors_floor());
        let drives: Vec<_> = (0..shape.members).map(|_| world.add_drive(spec)).collect();
        let options = RigOptions { bitmap: true, ..RigOptions::new(1) };
        let array = world.create(&shape, &drives, &options);
        let capacity = world.controller().capacity(array).unwrap().get();
        assert!(capacity > EDGE + (1 << 30));
        let mut random = Random::new(5);
        let mut written = Vec::new();
        // Around 2^32 sectors of the array and of a member, and at the very end.
        for middle in [EDGE, EDGE * 3 / 2, EDGE * 2, EDGE * 3, capacity - (1 << 20)] {
            for _ in 0..20 {
                let at = middle - (1 << 20) + random.below(2 << 20);
                if at + 100_000 > capacity {
                    continue;
                }
                let mut bytes = vec![0; random.index(100_000) + 1];
                random.fill(&mut bytes);
                world.write(array, at, &bytes).unwrap();
                written.push((at, bytes));
            }
        }
        for (place, (at, bytes)) in written.iter().enumerate() {
            let end = at + bytes.len() as u64;
            let hidden = |(other, over): &(u64, Vec<u8>)| *other < end && *at < other + over.len() as u64;
            if !written[place + 1..].iter().any(hidden) {
                assert_eq!(world.read(array, *at, bytes.len() as u64).unwrap(), *bytes, "{shape} at {at}");
            }
        }
    }
}
