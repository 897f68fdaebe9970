//! The partial parity log: after a power cut with the loss of a member, only data that was being written may be wrong.

mod support;

use std::collections::BTreeSet;
use std::panic::{catch_unwind, AssertUnwindSafe};

use openraid_core::admin::{AdminCommand, Health};
use openraid_core::array::assemble::{self, AssembleOptions, PplArea};
use openraid_core::events::RequestKind;
use openraid_core::geometry::{Geometry, Level};
use openraid_core::reason::Reason;
use openraid_format::{DeviceRole, MinorVersion, PplEntry, PplHeader, Superblock, PPL_AREA, PPL_HEADER_BYTES};
use openraid_sim::drive::DriveSpec;
use openraid_sim::fault::planted::Bug;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::{Content, HostSession, Members};
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::test_arrays::{Blocks, MEMBER_DATA};
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions, World};
use openraid_units::{ArrayId, DriveId, Sectors, SetLba, Slot, StripeIndex};
use support::{seeds, Case};

fn shapes() -> Vec<ArrayShape> {
    ArrayShape::all().into_iter().filter(|shape| shape.level == Level::Raid5).collect()
}

fn with_log(shape: ArrayShape, seed: u64, cuts: bool) -> Rig {
    Rig::new(shape, RigOptions { cuts, ppl: true, ..RigOptions::new(seed) })
}

/// Writes at nearby places, so that stripes are written repeatedly.
fn load(rig: &mut Rig) -> Workload {
    let range = if rig.random.chance(1, 2) { 0..(128 << 10) } else { 0..rig.session.capacity() };
    let align = if rig.random.chance(1, 3) { 1 } else { 512 };
    Workload { len_max: 48 << 10, align, range, mix: [2, 10, 1, 1, 1], ..Workload::mixed(rig.session.capacity()) }
}

#[test]
fn an_array_with_a_log_holds_what_was_written_whatever_fails() {
    for seed in seeds(1, 20) {
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

/// The only remaining member after a cut was just filled, and no log was ever written to it.
#[test]
fn the_log_of_a_new_member_is_as_good_as_the_others() {
    let shape = ArrayShape::raid5(2, Sectors::kib(16));
    let mut rig = with_log(shape, 1, true);
    rig.lose(Slot(1), Loss::Failed);
    rig.rest();
    let drive = rig.new_drive();
    rig.world.add_member(rig.array, drive).unwrap();
    rig.rest();
    assert_eq!(rig.drive_in(Slot(1)), Some(drive));
    let geometry = Members::of(&rig.world, rig.array).geometry().clone();
    let Geometry::Parity(parity) = geometry else { unreachable!("RAID 5 has parity") };
    let stripe = (0..2).map(StripeIndex).find(|stripe| parity.p_slot(*stripe) == Slot(0)).expect("parity goes round");
    let at = parity.set_lba(stripe, 0, Sectors(0)).offset().bytes().get();
    rig.world.write(rig.array, at, &[5; 4096]).unwrap();
    rig.world.cut_power();
    let mut left = rig.world.candidates();
    left.retain(|candidate| candidate.drive == drive);
    assert_eq!(left[0].superblock.resync_position(), Some(Sectors::ZERO), "it was not stopped cleanly");
    let plan = assemble::plan(&left, AssembleOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.resync_from, plan.forced), (None, None));
}

#[test]
fn after_a_power_cut_parity_fits_without_a_resync() {
    for seed in seeds(2, 60) {
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
fn an_interrupted_first_sync_continues() {
    for seed in seeds(2, 20) {
        let shape = ArrayShape::raid5(4, Sectors::kib(16));
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

/// Only writes, on the same few stripes repeatedly.
fn close_writes(rig: &Rig) -> Workload {
    Workload {
        len_max: 16 << 10,
        align: 512,
        range: 0..(96 << 10),
        mix: [0, 1, 0, 0, 0],
        ..Workload::mixed(rig.session.capacity())
    }
}

/// Run some requests, and stop in the middle of the last ones.
fn run_into(rig: &mut Rig, load: &Workload) {
    let requests = rig.random.between(1, 40);
    rig.session.run_on(&mut rig.world, load, requests);
    let steps = u32::try_from(rig.random.below(40)).unwrap();
    rig.rest_or(steps);
}

/// Cut the power in the middle of writes, and lose a member with it. Returns the slot.
fn cut_and_lose(rig: &mut Rig, load: &Workload, single: bool) -> Slot {
    run_into(rig, load);
    let slot = Slot(u16::try_from(rig.random.below(u64::from(rig.shape.members))).unwrap());
    let lost = rig.drive_in(slot).unwrap();
    cut(rig, slot, single);
    rig.world.drive_mut(lost).faults.gone = true;
    slot
}

/// Cut the power; the lost slot's part of the writes under way is lost with it.
fn cut(rig: &mut Rig, lost: Slot, single: bool) {
    if !single {
        let members = Members::of(&rig.world, rig.array);
        let Geometry::Parity(parity) = members.geometry() else { unreachable!("it has parity") };
        let goes = |sector: &u64| {
            let (stripe, column, _) = parity.locate(SetLba(*sector));
            parity.slot_of(stripe, column) == lost
        };
        let in_flight = rig.session.versions_mut().in_flight(512);
        let sectors: BTreeSet<u64> =
            in_flight.into_iter().flat_map(|range| range.start / 512..range.end / 512).collect();
        for sector in sectors.iter().filter(|sector| goes(sector)) {
            rig.session.versions_mut().give_up(sector * 512..sector * 512 + 512);
        }
    }
    rig.session.cut_power(&mut rig.world);
}

#[test]
fn a_member_that_is_lost_with_the_power_takes_nothing_along_that_was_not_being_written() {
    for seed in seeds(20, 1000) {
        for shape in ArrayShape::some(shapes(), seed, 3) {
            let _case = Case::new(seed, shape);
            let mut rig = with_log(shape, seed, true);
            // In a write within one chunk, even the bytes in flight are old or new.
            let single = rig.random.chance(1, 2);
            // Writes are whole blocks of the array.
            let small = shape.blocks == Blocks::Small;
            let load = Workload {
                len_max: if single { 4096 } else { 40 << 10 },
                align: if single || !small { 4096 } else { 512 },
                range: 0..(96 << 10),
                mix: [1, 10, 1, 0, 0],
                ..Workload::mixed(rig.session.capacity())
            };
            let lost = cut_and_lose(&mut rig, &load, single);
            rig.boot();
            assert_eq!(rig.health(), Health::Degraded);
            rig.session.look_at_all(&mut rig.world);
            rig.session.run_on(&mut rig.world, &load, 20);
            cut(&mut rig, lost, single);
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

/// During the replay of the logs a flush fails, and the drive drops the writes that it covered. The logs must be
/// present at the next start.
#[test]
fn logs_whose_parity_was_not_made_durable_are_kept() {
    let mut refused = 0;
    for seed in seeds(60, 2000) {
        let shape = ArrayShape::raid5(4, Sectors::kib(16));
        let _case = Case::new(seed, shape);
        let mut rig = with_log(shape, seed, true);
        let load = close_writes(&rig);
        let lost = cut_and_lose(&mut rig, &load, false);
        let others: Vec<DriveId> =
            rig.drives.iter().copied().filter(|drive| *drive != rig.drives[usize::from(lost.0)]).collect();
        rig.world.boot();
        others.iter().for_each(|drive| rig.world.drive_mut(*drive).faults.flushes = true);
        match rig.world.assemble(false) {
            Ok(array) => (rig.array, rig.session.array) = (array, array),
            Err(_) => refused += 1,
        }
        others.iter().for_each(|drive| rig.world.drive_mut(*drive).faults.flushes = false);
        rig.session.cut_power(&mut rig.world);
        rig.boot();
        rig.session.look_at_all(&mut rig.world);
    }
    assert!(refused > 20, "only {refused} starts had anything to make durable");
}

/// During the replay of the logs, one of all members fails to flush, and the power is cut meanwhile. A member returns
/// with the power that lacks the data from which the parity was made. No log that records it may be lost.
#[test]
fn logs_stay_until_the_failure_of_a_member_is_durable() {
    let mut taken_back = 0;
    for seed in seeds(200, 4000) {
        let shape = ArrayShape::raid5(4, Sectors::kib(16));
        let _case = Case::new(seed, shape);
        let mut rig = with_log(shape, seed, true);
        let load = close_writes(&rig);
        run_into(&mut rig, &load);
        let failing = rig.drives[usize::try_from(rig.random.below(4)).unwrap()];
        rig.session.kill(&mut rig.world);
        rig.world.boot();
        rig.world.drive_mut(failing).faults.flushes = true;
        let plan = assemble::plan(&rig.world.candidates(), AssembleOptions::default()).unwrap();
        rig.world.start_admin(AdminCommand::StartSet(plan));
        let has_failed = |rig: &Rig| rig.world.status(rig.array).is_some_and(|set| set.health != Health::Optimal);
        while !has_failed(&rig) && rig.world.step() {}
        let steps = rig.random.below(12);
        for _ in 0..steps {
            rig.world.step();
        }
        rig.session.cut_power(&mut rig.world);
        rig.world.drive_mut(failing).faults.flushes = false;
        rig.boot();
        taken_back += u32::from(rig.health() == Health::Optimal);
        rig.rest();
        rig.judge();
    }
    assert!(taken_back > 10, "only {taken_back} members came back as good");
}

#[test]
fn whole_stripes_are_recorded_without_partial_parity_and_others_with() {
    let shape = ArrayShape::raid5(4, Sectors::kib(16));
    let mut rig = with_log(shape, 1, false);
    let written = |rig: &Rig| rig.status().members.iter().map(|m| m.sectors_written).sum::<u64>();
    rig.rest();
    let before = written(&rig);
    let write = RequestKind::Write { fua: false };
    rig.session.ask(&mut rig.world, write, 0..48 << 10);
    rig.rest();
    let whole = written(&rig);
    assert_eq!(whole - before, 4 * 32 + 8, "the stripe and a header");
    rig.session.ask(&mut rig.world, write, 0..4096);
    rig.rest();
    assert_eq!(written(&rig) - whole, 2 * 8 + 8 + 8, "data, parity, partial parity and a header");
    let reasons = rig.status().reasons;
    let logged = reasons.iter().find(|(reason, _)| *reason == Reason::PartialParityLogged);
    assert_eq!(logged.map(|(_, count)| *count), Some(2));
    rig.judge();
}

// ---- RAID 50

/// A stripe over spans with logs.
struct Nested {
    world: World,
    session: HostSession,
    spans: Vec<ArrayId>,
}

fn nested(span: ArrayShape, seed: u64) -> Nested {
    let mut world = World::new(RigOptions::new(seed).world);
    let mut spans = Vec::new();
    for number in 0..2 {
        let mut options = RigOptions { ppl: true, ..RigOptions::new(seed) };
        options.world.seed = seed * 100 + number;
        let drive = || DriveSpec::new(BEFORE_DATA + PPL_AREA + MEMBER_DATA);
        let drives: Vec<DriveId> = (0..span.members).map(|_| world.add_drive(drive())).collect();
        spans.push(world.create(&span, &drives, &options));
    }
    let outer = world.create_nested(&spans, Sectors::kib(64), seed);
    let session = HostSession::new(&world, outer, seed, Content::Zeroes, true);
    Nested { world, session, spans }
}

impl Nested {
    /// Start the spans of the drives, and the stripe over them.
    fn boot(&mut self) {
        self.world.boot();
        let mut candidates = self.world.candidates();
        candidates.sort_by_key(|candidate| candidate.superblock.set_uuid.0);
        let mut found = Vec::new();
        for span in candidates.chunk_by(|a, b| a.superblock.set_uuid == b.superblock.set_uuid) {
            let plan = assemble::plan(span, AssembleOptions::default()).unwrap_or_else(|error| panic!("{error}"));
            let array = self.world.start(AdminCommand::StartSet(plan)).unwrap();
            let capacity = self.world.controller().capacity(array).unwrap().sectors_floor();
            let bytes = self.world.read(array, 4096, 4096).unwrap();
            found.push((Superblock::decode(&bytes, MinorVersion::V1_2, capacity).unwrap(), array));
        }
        found.sort_by_key(|(outer, _)| match outer.role() {
            DeviceRole::Active(slot) => slot,
            role => panic!("a span is {role:?}"),
        });
        self.spans = found.iter().map(|(_, span)| *span).collect();
        let superblocks = found.into_iter().map(|(outer, _)| outer).collect();
        let command = AdminCommand::StartStriped { spans: self.spans.clone(), superblocks };
        self.session.array = self.world.start(command).unwrap();
    }
}

#[test]
fn spans_of_a_stripe_lose_nothing_either() {
    for seed in seeds(10, 1000) {
        let span = ArrayShape::raid5(3 + u16::try_from(seed % 3).unwrap(), Sectors::kib(16));
        let _case = Case::new(seed, format!("2 x {span}"));
        let mut rig = nested(span, seed);
        rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
        rig.session.rest(&mut rig.world);
        let whole = Workload::mixed(rig.session.capacity());
        let load = Workload { len_max: 48 << 10, align: 512, range: 0..(256 << 10), mix: [1, 10, 1, 0, 1], ..whole };
        rig.session.run_on(&mut rig.world, &load, 10 + seed % 40);
        for _ in 0..seed * 7 % 40 {
            rig.world.step();
            rig.session.hear(&mut rig.world);
        }
        for range in rig.session.versions_mut().in_flight(512) {
            rig.session.versions_mut().give_up(range);
        }
        rig.session.cut_power(&mut rig.world);
        // One member of each span is lost with the power.
        for number in 0..2 {
            let lost = DriveId(number * span.members + u16::try_from(seed % 3).unwrap());
            rig.world.drive_mut(lost).faults.gone = true;
        }
        rig.boot();
        rig.session.look_at_all(&mut rig.world);
        for span in &rig.spans {
            assert_eq!(rig.world.status(*span).unwrap().health, Health::Degraded);
        }
        rig.session.run(&mut rig.world, &load, 20);
        rig.session.rest(&mut rig.world);
        rig.session.look_at_all(&mut rig.world);
    }
}

// ---- what must be found

/// Set every entry's checksum to match its bytes, as for an engine that does not check partial parity.
fn make_checksums_fit(rig: &mut Rig) -> usize {
    let mut wrong = 0;
    for candidate in rig.world.candidates() {
        let (Some(PplArea::Log(log)), Some((start, _))) = (&candidate.ppl, candidate.superblock.ppl_area()) else {
            continue;
        };
        let mut header = PplHeader::new(candidate.superblock.set_uuid, log.header.generation);
        let mut at = log.at + openraid_format::PPL_HEADER_SECTORS;
        for entry in log.header.entries() {
            let mut bytes = vec![0; entry.pp_size as usize];
            rig.world.drive(candidate.drive).peek(start + at, &mut bytes);
            let checksum = openraid_parity::Kernels::detect().crc32c(!0, &bytes);
            let checksum = if bytes.is_empty() { 0 } else { !checksum };
            wrong += usize::from(checksum != entry.checksum);
            header.push(PplEntry { checksum, ..*entry }).unwrap();
            at += Sectors(u64::from(entry.pp_size) / 512);
        }
        let mut bytes = [0; PPL_HEADER_BYTES];
        header.encode(&mut bytes);
        rig.world.drive_mut(candidate.drive).poke(start + log.at, &bytes);
    }
    wrong
}

/// Whether parity mismatches, or a read returns data that was never written, after a cut with this change.
fn goes_wrong(seed: u64, bug: Option<Bug>, unchecked: bool) -> bool {
    let shape = ArrayShape::raid5(4, Sectors::kib(16));
    let run = || {
        let mut rig = with_log(shape, seed, true);
        if let Some(bug) = bug {
            rig.world.plant(bug);
        }
        let whole = Workload::mixed(rig.session.capacity());
        let load = Workload { len_max: 16 << 10, align: 512, range: 0..(96 << 10), mix: [0, 1, 0, 0, 0], ..whole };
        let requests = rig.random.between(1, 40);
        rig.session.run_on(&mut rig.world, &load, requests);
        let steps = u32::try_from(rig.random.below(40)).unwrap();
        rig.rest_or(steps);
        rig.session.cut_power(&mut rig.world);
        if unchecked {
            make_checksums_fit(&mut rig);
        }
        rig.boot();
        rig.rest();
        let array = rig.array;
        assert!(Members::of(&rig.world, array).complaints().is_empty());
    };
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

#[test]
fn a_log_with_unchecked_checksums_and_one_without_flushes_or_force_are_found() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found = |bug, unchecked| (1..=40).find(|seed| goes_wrong(*seed, bug, unchecked));
    let unchecked = found(None, true);
    let (unflushed, unforced) = (found(Some(Bug::SkipFlush), false), found(Some(Bug::ForgetFua), false));
    let right = (1..=10).find(|seed| goes_wrong(*seed, None, false));
    std::panic::set_hook(hook);
    assert!(unchecked.is_some(), "checksums that are not checked are not found");
    assert!(unflushed.is_some(), "logs that are written over too early are not found");
    assert!(unforced.is_some(), "logs that are not durable are not found");
    assert_eq!(right, None, "what is right is found wrong");
}

#[test]
fn small_writes_at_depth_32_cost_less_than_on_md() {
    // md: five writes and three flushes for each write.
    let (chunk, stripes) = (Sectors::kib(64), 2048);
    let mut rig = with_log(ArrayShape { data: chunk * stripes, ..ArrayShape::raid5(4, chunk) }, 3, false);
    rig.rest();
    let count = |rig: &Rig, of: fn(&openraid_core::admin::MemberStatus) -> u64| {
        rig.status().members.iter().map(of).sum::<u64>()
    };
    let before = (count(&rig, |m| m.writes), count(&rig, |m| m.flushes));
    let stripe = rig.session.capacity() / stripes;
    let requests = 512;
    // Each write is in a separate stripe: no two share parity.
    let mut begun = 0;
    while begun < requests || rig.session.outstanding() > 0 {
        while begun < requests && rig.session.outstanding() < 32 {
            let at = begun * 389 % stripes * stripe + begun * 7 * 4096 % stripe;
            rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, at..at + 4096);
            begun += 1;
        }
        rig.session.step(&mut rig.world);
    }
    rig.rest();
    let (writes, flushes) = (count(&rig, |m| m.writes) - before.0, count(&rig, |m| m.flushes) - before.1);
    println!("{requests} writes: {writes} member writes, {flushes} flushes");
    assert!(writes < 5 * requests && flushes < 3 * requests, "{writes} writes, {flushes} flushes");
    rig.judge();
}

#[test]
fn force_does_not_skip_what_the_logs_say() {
    for seed in seeds(10, 200) {
        let shape = ArrayShape::raid5(4, Sectors::kib(16));
        let _case = Case::new(seed, shape);
        let mut rig = with_log(shape, seed, true);
        let whole = Workload::mixed(rig.session.capacity());
        let load = Workload { len_max: 4096, align: 4096, range: 0..(96 << 10), mix: [0, 1, 0, 0, 0], ..whole };
        let _ = cut_and_lose(&mut rig, &load, true);
        rig.world.boot();
        rig.array = rig.world.assemble(true).unwrap();
        rig.session.array = rig.array;
        rig.session.look_at_all(&mut rig.world);
    }
}
