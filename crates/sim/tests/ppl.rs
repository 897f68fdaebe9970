//! The partial parity log: after a power cut, with a member lost as well, nothing is wrong that was not being written.

mod support;

use openraid_core::admin::Health;
use openraid_core::geometry::Level;
use openraid_core::reason::Reason;
use openraid_sim::oracle::session::Workload;
use openraid_sim::{Loss, Rig, RigOptions, Shape};
use openraid_units::{Sectors, Slot};
use support::{seeds, Case};

fn shapes() -> Vec<Shape> {
    Shape::all().into_iter().filter(|shape| shape.level == Level::Raid5).collect()
}

fn with_log(shape: Shape, seed: u64, cuts: bool) -> Rig {
    Rig::new(shape, RigOptions { cuts, ppl: true, ..RigOptions::new(seed) })
}

/// Writes close together, so that stripes are written again and again.
fn load(rig: &mut Rig) -> Workload {
    let range = if rig.random.chance(1, 2) { 0..(128 << 10) } else { 0..rig.session.capacity() };
    let align = if rig.random.chance(1, 3) { 1 } else { 512 };
    Workload { len_max: 48 << 10, align, range, mix: [2, 10, 1, 1, 1], ..Workload::mixed(rig.session.capacity()) }
}

#[test]
fn an_array_with_a_log_holds_what_was_written_whatever_fails() {
    for seed in seeds(2, 20) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut rig = with_log(shape, seed, false);
            let load = load(&mut rig);
            rig.session.run(&mut rig.world, &load, 60);
            let how = *rig.random.pick(&Loss::ALL);
            rig.lose(Slot(0), how);
            rig.session.run(&mut rig.world, &load, 60);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.session.run_on(&mut rig.world, &load, 60);
            rig.session.drain(&mut rig.world);
            rig.rest();
            rig.restart();
            rig.session.run(&mut rig.world, &load, 30);
            rig.rest();
            rig.judge();
        }
    }
}

#[test]
fn after_a_power_cut_parity_fits_without_a_resync() {
    for seed in seeds(3, 60) {
        for shape in shapes() {
            let _case = Case::new(seed, shape);
            let mut rig = with_log(shape, seed, true);
            let load = load(&mut rig);
            for _ in 0..3 {
                let requests = rig.random.between(1, 60);
                rig.session.run_on(&mut rig.world, &load, requests);
                let steps = u32::try_from(rig.random.below(60)).unwrap();
                rig.rest_or(steps);
                rig.cut_and_boot();
                assert!(rig.status().task.is_none(), "a resync although the logs say what was being written");
                rig.judge();
            }
        }
    }
}

#[test]
fn a_first_sync_that_was_cut_short_goes_on() {
    for seed in seeds(2, 20) {
        let shape = Shape::raid5(4, Sectors::kib(16));
        let _case = Case::new(seed, shape);
        let options = RigOptions { cuts: true, ppl: true, junk: true, ..RigOptions::new(seed) };
        let mut rig = Rig::new(shape, options);
        let load = load(&mut rig);
        rig.session.run_on(&mut rig.world, &load, 5);
        rig.cut_and_boot();
        assert!(rig.status().task.is_some(), "the first sync was not over");
        rig.rest();
        rig.session.run_on(&mut rig.world, &load, 5);
        rig.cut_and_boot();
        assert!(rig.status().task.is_none(), "the first sync is over");
        rig.judge();
    }
}

/// A cut in the middle of writes, and a member is lost with it. True where something was being written.
fn cut_and_lose(rig: &mut Rig, load: &Workload, single: bool) {
    let requests = rig.random.between(1, 40);
    rig.session.run_on(&mut rig.world, load, requests);
    let steps = u32::try_from(rig.random.below(40)).unwrap();
    rig.rest_or(steps);
    let slot = Slot(u16::try_from(rig.random.below(u64::from(rig.shape.members))).unwrap());
    let lost = rig.drive_in(slot).unwrap();
    cut(rig, single);
    rig.world.drive_mut(lost).faults.gone = true;
}

fn cut(rig: &mut Rig, single: bool) {
    if !single {
        rig.session.versions_mut().give_up_in_flight();
    }
    rig.session.cut_power(&mut rig.world);
}

#[test]
fn a_member_that_is_lost_with_the_power_takes_nothing_along_that_was_not_being_written() {
    for seed in seeds(40, 1000) {
        for shape in Shape::some(shapes(), seed, 3) {
            let _case = Case::new(seed, shape);
            let mut rig = with_log(shape, seed, true);
            // Of a write within one chunk even the bytes in flight are old or new.
            let single = rig.random.chance(1, 2);
            let range = 0..(96 << 10);
            let load = Workload {
                len_max: if single { 4096 } else { 40 << 10 },
                align: if single { 4096 } else { 512 },
                range,
                mix: [1, 10, 1, 0, 0],
                ..Workload::mixed(rig.session.capacity())
            };
            cut_and_lose(&mut rig, &load, single);
            rig.boot();
            assert_eq!(rig.health(), Health::Degraded);
            rig.session.look_at_all(&mut rig.world);
            rig.session.run_on(&mut rig.world, &load, 20);
            cut(&mut rig, single);
            rig.boot();
            rig.session.look_at_all(&mut rig.world);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.session.run_on(&mut rig.world, &load, 20);
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal);
            rig.judge();
        }
    }
}

#[test]
fn whole_stripes_are_recorded_without_partial_parity_and_others_with() {
    let shape = Shape::raid5(4, Sectors::kib(16));
    let mut rig = with_log(shape, 1, false);
    let written = |rig: &Rig| rig.status().members.iter().map(|m| m.sectors_written).sum::<u64>();
    rig.rest();
    let before = written(&rig);
    let fua = openraid_core::events::RequestKind::Write { fua: false };
    rig.session.ask(&mut rig.world, fua, 0..48 << 10);
    rig.rest();
    let whole = written(&rig);
    assert_eq!(whole - before, 4 * 32 + 8, "the stripe and a header");
    rig.session.ask(&mut rig.world, fua, 0..4096);
    rig.rest();
    assert_eq!(written(&rig) - whole, 2 * 8 + 8 + 8, "data, parity, partial parity and a header");
    let reasons = rig.status().reasons;
    let logged = reasons.iter().find(|(reason, _)| *reason == Reason::PartialParityLogged);
    assert_eq!(logged.map(|(_, count)| *count), Some(2));
    rig.judge();
}
