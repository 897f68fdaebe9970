//! First sync, spares, replacement, re-adding, checks: background work while hosts make requests.

use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, AdminError, Health, MemberState, Policy, TaskKind};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::check_results::{AbortReason, MismatchRange, NotComparable, ScrubEnd, ScrubMode, ScrubOutcome};
use openraid_core::geometry::{Geometry, Level, StripeRole};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::oracle::Members;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, DriveLba, MemberLba, Nanos, Sectors, Slot};

fn load(rig: &Rig) -> Workload {
    Workload { len_max: 64 << 10, depth: 8, ..Workload::mixed(rig.session.capacity()) }
}

fn redundant() -> impl Iterator<Item = ArrayShape> {
    ArrayShape::all().into_iter().filter(ArrayShape::is_redundant)
}

#[test]
fn used_drives_are_made_consistent_while_hosts_work_and_what_was_read_stays() {
    for seed in seeds(1, 10) {
        for shape in ArrayShape::some(redundant().collect(), seed, 30) {
            let _case = Case::new(seed, shape);
            let mut rig =
                Rig::new(shape, RigOptions { junk: true, bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) });
            assert!(rig.status().task.is_some(), "used drives need a resync");
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 60);
            rig.rest();
            assert_eq!(rig.status().consistent_to, Sectors::MAX);
            rig.judge();
        }
    }
}

#[test]
fn a_hot_spare_takes_over_by_itself() {
    for seed in seeds(1, 10) {
        for shape in ArrayShape::some(redundant().filter(|s| !s.unequal).collect(), seed, 16) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { spares: 1, ..RigOptions::new(seed) });
            let load = load(&rig);
            rig.session.run_on(&mut rig.world, &load, 40);
            let slot = Slot(u16::try_from(rig.random.below(u64::from(shape.members))).unwrap());
            rig.lose(slot, Loss::Pulled);
            rig.session.run(&mut rig.world, &load, 60);
            rig.session.run(&mut rig.world, &Workload { mix: [0, 1, 0, 0, 0], ..load }, 20);
            rig.rest();
            assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
            assert_eq!(rig.drive_in(slot), rig.drives.last().copied());
            rig.judge();
        }
    }
}

#[test]
fn a_working_member_is_replaced_without_losing_redundancy() {
    for seed in seeds(1, 10) {
        for shape in ArrayShape::some(redundant().filter(|s| !s.unequal).collect(), seed, 16) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { spares: 1, ..RigOptions::new(seed) });
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 40);
            let slot = Slot(u16::try_from(rig.random.below(u64::from(shape.members))).unwrap());
            let (array, spare) = (rig.array, rig.drives.last().copied());
            rig.world.admin(AdminCommand::Replace { array, slot, with: spare }).unwrap();
            assert_eq!(rig.health(), Health::Optimal);
            rig.session.run(&mut rig.world, &load, 60);
            rig.rest();
            assert_eq!((rig.health(), rig.drive_in(slot)), (Health::Optimal, spare), "{}", rig.world.dump());
            rig.judge();
        }
    }
}

/// At every possible power cut, the superblocks name a full member for the slot: the old one or the new one.
#[test]
fn the_slot_of_a_member_that_is_replaced_is_never_empty() {
    for seed in seeds(1, 10) {
        for shape in [
            ArrayShape::raid5(4, Sectors::kib(16)),
            ArrayShape::raid1(2),
            ArrayShape::raid10(0x102, 4, Sectors::kib(16)),
        ] {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { spares: 1, ..RigOptions::new(seed) });
            rig.rest();
            let (array, spare) = (rig.array, rig.drives.last().copied());
            rig.world.admin(AdminCommand::Replace { array, slot: Slot(1), with: spare }).unwrap();
            let mut looks = 0;
            while rig.world.step() {
                let plan = assemble::plan(&rig.world.candidates(), AssembleOptions::default()).unwrap();
                assert!(plan.missing.is_empty(), "{:?}\n{}", plan.verdicts, rig.world.dump());
                looks += 1;
            }
            assert!(looks > 20);
            assert_eq!((rig.health(), rig.drive_in(Slot(1))), (Health::Optimal, spare));
        }
    }
}

/// Otherwise the slot would have no owner: writes would bypass the replacement, and its copy would continue without
/// them.
#[test]
fn a_replacement_of_a_member_that_is_gone_at_the_next_start_has_its_slot() {
    let shapes = [
        (ArrayShape::raid5(4, Sectors::kib(16)), false),
        (ArrayShape::raid6(5, Sectors::kib(16)), false),
        (ArrayShape::raid1(2), false),
        (ArrayShape::raid1(3), true),
    ];
    for (shape, cut) in shapes {
        let _case = Case::new(7, shape);
        let mut rig = Rig::new(shape, RigOptions { spares: 1, cuts: cut, ..RigOptions::new(7) });
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 40);
        rig.rest();
        let policy = Policy { rebuild_rate: Sectors::kib(128), background_depth: 1, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
        let (old, spare) = (rig.drive_in(Slot(1)).unwrap(), rig.drives.last().copied().unwrap());
        rig.world.admin(AdminCommand::Replace { array: rig.array, slot: Slot(1), with: Some(spare) }).unwrap();
        rig.run_for(Nanos::from_secs(2));
        if cut {
            rig.session.run(&mut rig.world, &load, 20);
            rig.session.cut_power(&mut rig.world);
        } else {
            rig.session.drain(&mut rig.world);
            rig.world.admin(AdminCommand::Stop { array: rig.array }).unwrap();
            rig.world.run_until_idle();
        }
        rig.world.vanish(old);
        rig.boot();
        assert_eq!(rig.drive_in(Slot(1)), Some(spare), "{}", rig.world.dump());
        let MemberState::Rebuilding { to } = rig.state_of(Slot(1)) else { panic!("{}", rig.world.dump()) };
        // After a cut the two may differ in the data that was being written. A degraded array with parity then does not
        // start at all.
        assert_eq!(to.is_zero(), cut, "{to}");
        rig.session.run(&mut rig.world, &load, 60);
        rig.rest();
        assert_eq!((rig.health(), rig.drive_in(Slot(1))), (Health::Optimal, Some(spare)), "{}", rig.world.dump());
        rig.judge();
    }
}

/// md records any position up to which a member is filled. If the position is within a stripe, writes of that stripe
/// skip the part that is not filled. The skipped sectors must not be read as filled.
#[test]
fn a_member_that_is_filled_to_the_midst_of_a_stripe_counts_up_to_the_stripe() {
    let shape = ArrayShape::raid6(8, Sectors::kib(64));
    for (seed, into) in (1..).zip([8, 64, 120]) {
        let _case = Case::new(seed, into);
        let mut rig = Rig::new(shape, RigOptions { spares: 1, cuts: false, ..RigOptions::new(seed) });
        let all = load(&rig);
        rig.session.run(&mut rig.world, &all, 60);
        let policy = Policy { rebuild_rate: Sectors::kib(128), background_depth: 1, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
        rig.lose(Slot(2), Loss::Failed);
        rig.run_for(Nanos::from_secs(8));
        rig.session.drain(&mut rig.world);
        rig.world.admin(AdminCommand::Stop { array: rig.array }).unwrap();
        rig.world.run_until_idle();
        let spare = *rig.drives.last().unwrap();
        let mut superblock = superblock_on(&rig.world, spare).expect("it is a member");
        let filled = superblock.recovery_offset().expect("it is being filled").offset() / shape.chunk;
        // The last stripe whose P is in slot 2: writes leave out only parity.
        let has_p = |stripe: &u64| stripe % u64::from(shape.members) == 5;
        let stripe = shape.chunk * (1..filled).rev().find(has_p).expect("six stripes are filled");
        superblock.set_recovery_offset(Some(MemberLba(stripe.get() + into)));
        let mut bytes = vec![0; superblock.encoded_len().next_multiple_of(512)];
        superblock.encode(&mut bytes);
        rig.world.drive_mut(spare).poke(superblock.super_offset, &bytes);
        rig.boot();
        rig.world.admin(AdminCommand::Pause { array: rig.array }).unwrap();
        // Writes of all lengths in that stripe alone.
        let data = shape.chunk.bytes().get() * 6;
        let begin = stripe.bytes().get() * 6;
        let load = Workload { range: begin..begin + data, mix: [0, 1, 0, 0, 0], len_max: data, ..all.clone() };
        rig.session.run(&mut rig.world, &load, 40);
        rig.lose(Slot(0), Loss::Failed);
        rig.session.look_at_all(&mut rig.world);
        rig.world.admin(AdminCommand::Resume { array: rig.array }).unwrap();
        rig.session.run(&mut rig.world, &load, 20);
        rig.rest();
        assert_eq!(rig.health(), Health::Degraded, "{}", rig.world.dump());
        rig.judge();
    }
}

#[test]
fn a_member_that_comes_back_is_brought_up_to_date_by_the_bitmap_alone() {
    for seed in seeds(2, 10) {
        for shape in [
            ArrayShape::raid5(4, Sectors::kib(16)),
            ArrayShape::raid6(5, Sectors::kib(16)),
            ArrayShape::raid1(2),
            ArrayShape::raid10(0x102, 4, Sectors::kib(16)),
        ] {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { bitmap: true, ..RigOptions::new(seed) });
            let load = load(&rig);
            rig.session.run(&mut rig.world, &load, 40);
            rig.rest();
            let drive = rig.lose(Slot(1), Loss::Failed);
            rig.session.run(&mut rig.world, &load, 40);
            let array = rig.array;
            rig.world.run_until_idle();
            rig.world.admin(AdminCommand::Remove { array, drive }).unwrap();
            rig.world.re_add_member(array, drive).unwrap();
            rig.session.run(&mut rig.world, &load, 20);
            rig.rest();
            assert_eq!((rig.health(), rig.drive_in(Slot(1))), (Health::Optimal, Some(drive)), "{}", rig.world.dump());
            rig.judge();
        }
    }
}

#[test]
fn a_rebuild_can_be_paused_slowed_and_resumed() {
    let shape = ArrayShape::raid5(4, Sectors::kib(16));
    let mut rig = Rig::new(shape, RigOptions { junk: true, ..RigOptions::new(3) });
    let array = rig.array;
    let policy = Policy { rebuild_rate: Sectors::kib(64), ..rig.status().policy };
    rig.world.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
    rig.run_for(Nanos::from_secs(3));
    let done = rig.status().task.expect("it is slow").done;
    assert!(done < Sectors::kib(600), "{done:?} in three seconds at 64 KiB a second");
    rig.world.admin(AdminCommand::Pause { array }).unwrap();
    rig.run_for(Nanos::from_secs(1));
    let held = rig.status().task.expect("it is held");
    rig.run_for(Nanos::from_secs(60));
    let later = rig.status().task.expect("it is held");
    assert!(later.paused && later.done == held.done, "{held:?} {later:?}");
    let policy = Policy { rebuild_rate: Sectors::ZERO, ..policy };
    rig.world.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
    rig.world.admin(AdminCommand::Resume { array }).unwrap();
    rig.rest();
    assert!(rig.status().task.is_none());
    rig.judge();
}

/// Flip one byte on a member without the engine's knowledge.
fn flip(rig: &mut Rig, slot: Slot, at: MemberLba, byte: usize) -> DriveId {
    let (drive, lba) = Members::of(&rig.world, rig.array).place(slot, at).unwrap();
    rig.world.drive_mut(drive).flip(lba, byte, 0x10);
    drive
}

fn scrub(rig: &mut Rig, mode: ScrubMode) -> Vec<NoticeKind> {
    rig.world.take_notices();
    rig.world.admin(AdminCommand::Scrub { array: rig.array, mode }).unwrap();
    rig.rest();
    rig.world.take_notices().iter().map(|notice| notice.kind).collect()
}

fn mismatches(notices: &[NoticeKind]) -> u64 {
    let finished = notices.iter().find_map(|kind| match kind {
        NoticeKind::CheckEnded(ScrubEnd { outcome: ScrubOutcome::Clean, .. }) => Some(0),
        NoticeKind::CheckEnded(ScrubEnd { outcome: ScrubOutcome::Mismatches { count, .. }, .. }) => Some(*count),
        _ => None,
    });
    finished.unwrap_or_else(|| panic!("no check finished: {notices:?}"))
}

#[test]
fn a_check_of_a_good_array_finds_nothing_and_changes_nothing() {
    for shape in ArrayShape::some(redundant().collect(), 5, 24) {
        let _case = Case::new(5, shape);
        let mut rig = Rig::new(shape, RigOptions::new(5));
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 60);
        rig.rest();
        assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Repair)), 0, "{shape}");
        rig.judge();
    }
}

#[test]
fn a_rebuild_or_the_loss_of_a_member_aborts_a_check_with_a_notice() {
    for shape in [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid6(5, Sectors::kib(16)), ArrayShape::raid1(3)]
    {
        let _case = Case::new(5, shape);
        let mut rig = Rig::new(shape, RigOptions::new(5));
        let load = load(&rig);
        rig.session.run(&mut rig.world, &load, 40);
        rig.rest();
        let array = rig.array;
        let slow = Sectors::kib(64);
        let policy = Policy { scrub_rate: slow, rebuild_rate: slow, ..rig.status().policy };
        rig.world.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
        let running = |rig: &Rig| rig.status().task.map(|task| task.kind);
        let aborted = |rig: &Rig| match rig.status().last_scrub.expect("it ended").outcome {
            ScrubOutcome::Aborted { why, .. } => Some(why),
            _ => None,
        };
        let begin = |rig: &mut Rig| {
            rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check }).unwrap();
            rig.run_for(Nanos::from_secs(1));
            assert_eq!(running(rig), Some(TaskKind::Check), "it is slow");
            rig.world.take_notices();
        };
        begin(&mut rig);
        rig.lose(Slot(1), Loss::Failed);
        rig.run_for(Nanos::from_secs(1));
        assert_eq!((running(&rig), aborted(&rig)), (None, Some(AbortReason::MemberFailed)));
        let take_events =
            |rig: &mut Rig| -> Vec<&str> { rig.world.take_notices().iter().map(|n| n.kind.event()).collect() };
        assert_eq!(take_events(&mut rig).iter().filter(|event| **event == "CheckStopped").count(), 1);
        if rig.geometry_losses() == 1 {
            // If a member is missing, its data cannot be compared.
            let refused = rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check });
            assert_eq!(refused, Err(AdminError::NotComparable(NotComparable::Degraded)));
            let ended = rig.status().last_scrub.map(|ended| ended.outcome);
            assert_eq!(ended, Some(ScrubOutcome::NotComparable(NotComparable::Degraded)));
            continue;
        }
        begin(&mut rig);
        let drive = rig.new_drive();
        rig.world.add_member(array, drive).unwrap();
        rig.run_for(Nanos::from_millis(500));
        assert_eq!((running(&rig), aborted(&rig)), (Some(TaskKind::Rebuild), Some(AbortReason::RebuildBegan)));
        let events = take_events(&mut rig);
        assert!(events.starts_with(&["CheckStopped", "RebuildStarted"]), "{events:?}");
        rig.session.run(&mut rig.world, &load, 40);
        rig.rest();
        assert_eq!((rig.health(), running(&rig)), (Health::Optimal, None), "{}", rig.world.dump());
        rig.judge();
    }
}

#[test]
fn a_repair_corrects_the_guilty_member_if_it_can_be_named() {
    for seed in seeds(2, 20) {
        for shape in [
            ArrayShape::raid6(6, Sectors::kib(16)),
            ArrayShape::raid1(3),
            ArrayShape::raid10(0x103, 5, Sectors::kib(16)),
        ] {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
            rig.session.run(&mut rig.world, &load, 60);
            rig.rest();
            for flips in 0..10 {
                let slot = Slot(u16::try_from(rig.random.below(u64::from(shape.members))).unwrap());
                // Separate rows: 64 KiB apart.
                let at = MemberLba(128 * flips + rig.random.below(8));
                flip(&mut rig, slot, at, 77);
            }
            assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Check)), 10, "a check counts");
            assert!(!Members::of(&rig.world, rig.array).complaints().is_empty(), "a check changes nothing");
            let notices = scrub(&mut rig, ScrubMode::Repair);
            let corrected = notices.iter().filter(|kind| matches!(kind, NoticeKind::RowCorrected(_))).count();
            assert_eq!(corrected, 10, "{notices:?}");
            rig.judge();
            assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Check)), 0);
        }
    }
}

/// Flip one bit of one member in rows of 4 KiB, in every second row of all members.
fn flip_many(rig: &mut Rig) -> Vec<(DriveId, DriveLba, [u8; 512])> {
    let rows = rig.shape.member_data(0).get() / 16;
    let mut flipped = Vec::new();
    for row in 0..rows {
        let slot = Slot(u16::try_from(rig.random.below(u64::from(rig.shape.members))).unwrap());
        let (at, byte) = (MemberLba(row * 16 + rig.random.below(8)), rig.random.index(512));
        // The layout does not use every place of a member.
        let Some((drive, lba)) = Members::of(&rig.world, rig.array).place(slot, at) else { continue };
        rig.world.drive_mut(drive).flip(lba, byte, 0x10);
        let mut now = [0; 512];
        rig.world.drive(drive).peek(lba, &mut now);
        flipped.push((drive, lba, now));
    }
    flipped
}

#[test]
fn a_patrol_corrects_all_of_many_flips_where_the_guilty_one_can_be_named() {
    for seed in seeds(1, 20) {
        for shape in [ArrayShape::raid6(6, Sectors::kib(16)), ArrayShape::raid1(3)] {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
            rig.session.run(&mut rig.world, &load, 60);
            rig.rest();
            let flipped = flip_many(&mut rig);
            assert!(flipped.len() > 100, "{} flips", flipped.len());
            assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Repair)), flipped.len() as u64, "{shape}: all are found");
            for (drive, lba, wrong) in flipped {
                let mut now = [0; 512];
                rig.world.drive(drive).peek(lba, &mut now);
                assert_ne!(now, wrong, "{shape}: drive {drive}, {lba:?} is as it was");
            }
            assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Check)), 0, "{shape}: all are right");
            rig.session.look_at_all(&mut rig.world);
            rig.judge();
        }
    }
}

#[test]
fn a_patrol_of_two_copies_finds_all_of_many_flips_and_overwrites_nothing() {
    for seed in seeds(1, 20) {
        let shape = ArrayShape::raid1(2);
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
        rig.session.run(&mut rig.world, &load, 60);
        rig.rest();
        let flipped = flip_many(&mut rig);
        let all = |rig: &Rig| {
            let members = Members::of(&rig.world, rig.array);
            let copies = (0..shape.members).map(|slot| members.place(Slot(slot), MemberLba(0)).unwrap());
            let mut bytes = vec![vec![0; usize::try_from(shape.member_data(0).bytes().get()).unwrap()]; 2];
            for ((drive, start), bytes) in copies.zip(&mut bytes) {
                rig.world.drive(drive).peek(start, bytes);
            }
            bytes
        };
        let before = all(&rig);
        for mode in [ScrubMode::Check, ScrubMode::Repair, ScrubMode::Repair] {
            assert_eq!(mismatches(&scrub(&mut rig, mode)), flipped.len() as u64, "each is found, each time");
        }
        assert!(all(&rig) == before, "neither copy is overwritten: the right one is unknown");
    }
}

#[test]
fn without_a_provably_wrong_block_a_repair_names_the_place_and_changes_nothing() {
    for shape in
        [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2), ArrayShape::raid10(0x102, 4, Sectors::kib(16))]
    {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions::new(1));
        let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
        rig.session.run(&mut rig.world, &load, 40);
        rig.rest();
        let drive = flip(&mut rig, Slot(1), MemberLba(200), 5);
        let before = rig.world.drive(drive).counters().sectors_written;
        let notices = scrub(&mut rig, ScrubMode::Repair);
        assert_eq!(mismatches(&notices), 1, "{shape}");
        assert!(notices.iter().any(|kind| matches!(kind, NoticeKind::RowMismatch(_))), "{notices:?}");
        let written = rig.world.drive(drive).counters().sectors_written - before;
        assert!(written < 64, "only metadata may have been written, not {written} sectors");
        flip(&mut rig, Slot(1), MemberLba(200), 5);
        rig.judge();
    }
}

/// Whether a member has parity at this place, or another copy than the first.
fn is_redundancy(geometry: &Geometry, slot: Slot, at: MemberLba) -> bool {
    match geometry {
        Geometry::Parity(parity) => parity
            .stripe_at(at)
            .is_some_and(|(stripe, _)| !matches!(parity.row(stripe).role_of(slot), StripeRole::Data(_))),
        Geometry::Mirror(mirror) => mirror
            .inverse(slot, at)
            .is_some_and(|(at, _)| mirror.copies(at).next().is_some_and(|first| first.slot != slot)),
        _ => false,
    }
}

/// The content of all members, without metadata.
fn content(rig: &Rig) -> Vec<Vec<u8>> {
    let members = Members::of(&rig.world, rig.array);
    let len = usize::try_from(rig.shape.member_data(0).bytes().get()).unwrap();
    let places = (0..rig.shape.members).map(|slot| members.place(Slot(slot), MemberLba(0)).unwrap());
    let look = |(drive, start)| {
        let mut bytes = vec![0; len];
        rig.world.drive(drive).peek(start, &mut bytes);
        bytes
    };
    places.map(look).collect()
}

#[test]
fn a_repair_that_trusts_the_data_rewrites_parity_and_copies() {
    for seed in seeds(1, 10) {
        for shape in [
            ArrayShape::raid5(4, Sectors::kib(16)),
            ArrayShape::raid6(6, Sectors::kib(16)),
            ArrayShape::raid1(2),
            ArrayShape::raid1(3),
            ArrayShape::raid10(0x102, 4, Sectors::kib(16)),
        ] {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions::new(seed));
            let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
            rig.session.run(&mut rig.world, &load, 60);
            rig.rest();
            // On a mirror only copies other than the first are wrong, so that the data stays as hosts wrote it.
            let mut flips = 0;
            for at in (0..rig.shape.member_data(0).get()).step_by(40).map(MemberLba) {
                let wrong = (0..shape.members).map(Slot).find(|slot| is_redundancy(&shape.geometry(), *slot, at));
                if let Some(slot) = wrong {
                    flip(&mut rig, slot, at, 77);
                    flips += 1;
                }
            }
            let before = content(&rig);
            assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Check)), flips);
            assert!(before == content(&rig), "a check changes nothing");
            let notices = scrub(&mut rig, ScrubMode::TrustData);
            let ended = ScrubOutcome::Mismatches { count: flips, repaired: flips };
            let ended = NoticeKind::CheckEnded(ScrubEnd { mode: ScrubMode::TrustData, outcome: ended });
            assert!(notices.contains(&ended), "{notices:?}");
            assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Check)), 0);
            rig.session.look_at_all(&mut rig.world);
            rig.judge();
        }
    }
}

#[test]
fn a_double_parity_without_one_member_is_compared_with_the_parity_that_is_left() {
    for slot in (0..5).map(Slot) {
        let shape = ArrayShape::raid6(5, Sectors::kib(16));
        let _case = Case::new(7, slot);
        let mut rig = Rig::new(shape, RigOptions::new(7));
        let load = Workload { mix: [0, 1, 0, 0, 0], ..load(&rig) };
        rig.session.run(&mut rig.world, &load, 60);
        rig.rest();
        rig.lose(slot, Loss::Failed);
        rig.rest();
        assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Repair)), 0);
        let other = Slot((slot.0 + 1) % 5);
        for nth in 0..10 {
            flip(&mut rig, other, MemberLba(nth * 64 + 5), 9);
        }
        let notices = scrub(&mut rig, ScrubMode::Repair);
        assert_eq!(mismatches(&notices), 10, "nothing of it can be attributed: {notices:?}");
        assert!(!notices.iter().any(|kind| matches!(kind, NoticeKind::RowCorrected(_))), "{notices:?}");
    }
}

#[test]
fn adjacent_mismatches_are_reported_once() {
    // Near copies over an even and an odd number of members.
    let mirrors =
        [(0x102, 4), (0x102, 3)].map(|(layout, members)| ArrayShape::raid10(layout, members, Sectors::kib(16)));
    for shape in [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2)].into_iter().chain(mirrors) {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions::new(1));
        rig.rest();
        for at in 100..612 {
            flip(&mut rig, Slot(1), MemberLba(at), 5);
        }
        let notices = scrub(&mut rig, ScrubMode::Check);
        assert_eq!(mismatches(&notices), 512);
        let ranges: Vec<MismatchRange> = notices
            .iter()
            .filter_map(|kind| match kind {
                NoticeKind::RowMismatch(range) => Some(*range),
                _ => None,
            })
            .collect();
        assert_eq!(ranges.iter().map(|range| range.count).sum::<u64>(), 512);
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        if !matches!(shape.geometry(), Geometry::Mirror(mirror) if mirror.chunk().is_some()) {
            assert_eq!((ranges[0].from, ranges[0].len, ranges[0].slot), (Sectors(100), Sectors(512), None));
        }
        let kept = rig.status().last_scrub.unwrap();
        assert_eq!((kept.ranges, kept.more_ranges), (ranges, 0));
    }
}

#[test]
fn the_first_sync_writes_what_differs_and_nothing_else() {
    // Near, far and offset copies, and also an odd number of members.
    let raid10 = [(0x102, 4), (0x103, 4), (0x201, 4), (0x10201, 4), (0x102, 3)];
    let mirrors = raid10.map(|(layout, members)| ArrayShape::raid10(layout, members, Sectors::kib(16)));
    let raid4 = ArrayShape::new(Level::Raid4, 0, 4, Sectors::kib(16));
    let others =
        [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid6(5, Sectors::kib(16)), ArrayShape::raid1(3), raid4];
    for shape in others.into_iter().chain(mirrors) {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions { spares: 1, ..RigOptions::new(1) });
        rig.rest();
        assert!(rig.status().consistent_to == Sectors::MAX && rig.status().task.is_none());
        let written: u64 = rig.status().members.iter().map(|member| member.sectors_written).sum();
        assert!(
            written < 64 * u64::from(shape.members),
            "members that hold zeroes agree: {written} sectors were written"
        );
        rig.judge();
        let mut rig = Rig::new(shape, RigOptions { junk: true, ..RigOptions::new(1) });
        rig.rest();
        let written: u64 = rig.status().members.iter().map(|member| member.sectors_written).sum();
        let losses = u64::from(rig.geometry_losses());
        assert!(written >= losses * shape.member_data(0).get(), "all of the redundancy differs: {written}");
        assert_eq!(mismatches(&scrub(&mut rig, ScrubMode::Check)), 0);
        rig.judge();
    }
}

#[test]
fn a_member_that_unsynced_rows_need_is_failed_only_on_purpose() {
    for (shape, slot, needed) in [
        (ArrayShape::raid5(4, Sectors::kib(16)), Slot(2), true),
        (ArrayShape::raid6(5, Sectors::kib(16)), Slot(2), true),
        (ArrayShape::raid1(2), Slot(0), true),
        (ArrayShape::raid1(2), Slot(1), false),
    ] {
        let _case = Case::new(1, shape);
        let mut rig = Rig::new(shape, RigOptions { junk: true, ..RigOptions::new(1) });
        let array = rig.array;
        rig.world.admin(AdminCommand::Pause { array }).unwrap();
        let drive = rig.drive_in(slot).unwrap();
        let failed = rig.world.admin(AdminCommand::Fail { array, drive, unsynced: false });
        assert_eq!(failed.is_err(), needed, "{failed:?}");
        if needed {
            assert_eq!(failed, Err(AdminError::NeededByUnsynced));
            rig.world.admin(AdminCommand::Resume { array }).unwrap();
            rig.rest();
            rig.world.admin(AdminCommand::Fail { array, drive, unsynced: false }).unwrap();
        }
        rig.rest();
        assert_eq!(rig.health(), Health::Degraded);
    }
}

#[test]
fn a_member_lost_during_a_resync_leaves_data_that_was_read_readable() {
    for seed in seeds(4, 40) {
        let shape = [ArrayShape::raid6(5, Sectors::kib(16)), ArrayShape::raid1(3)][usize::from(seed.is_multiple_of(2))];
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        let load = load(&rig);
        rig.session.run_on(&mut rig.world, &load, 30);
        rig.lose(Slot(0), Loss::Hanging);
        rig.session.run(&mut rig.world, &load, 30);
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).unwrap();
        rig.session.run_on(&mut rig.world, &load, 10);
        // The survivor is lost while the new member is being filled.
        rig.lose(Slot(1), Loss::Pulled);
        rig.session.run(&mut rig.world, &load, 30);
        rig.rest();
        assert_eq!(rig.state_of(Slot(0)), MemberState::InSync);
        rig.judge();
    }
}

#[test]
fn levels_without_redundancy_refuse_what_needs_it() {
    for shape in ArrayShape::all().into_iter().filter(|s| !s.is_redundant() && s.level != Level::Raid1) {
        let mut rig = Rig::new(shape, RigOptions::new(1));
        let array = rig.array;
        assert!(rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Repair }).is_err(), "{shape}");
    }
}

#[test]
fn a_rebuild_reports_its_restored_part_as_complete_and_no_more() {
    let long = ArrayShape::raid5(4, Sectors::kib(256));
    for shape in
        [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2), ArrayShape::raid6(5, Sectors::kib(64)), long]
    {
        let mut rig = Rig::new(shape, RigOptions::new(5));
        rig.rest();
        let capacity = Sectors(rig.session.capacity() / 512);
        assert_eq!(rig.status().whole_to, capacity);
        rig.lose(Slot(1), Loss::Failed);
        rig.rest();
        assert_eq!(rig.status().whole_to, Sectors::ZERO);
        let policy = Policy { rebuild_rate: Sectors::kib(128), background_depth: 1, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).unwrap();
        let mut last = Sectors::ZERO;
        while let Some(task) = rig.status().task {
            let whole = rig.status().whole_to;
            // The same share of the array as of the member, to within a stripe.
            let share = u128::from(task.done.get()) * u128::from(capacity.get()) / u128::from(task.total.get());
            assert!(whole >= last && whole <= capacity, "{shape}: {whole} after {last}");
            let stripe = if shape == long { 3 * 512 } else { 1024 };
            assert!(u128::from(whole.get()).abs_diff(share) <= stripe, "{shape}: {whole} of {capacity} at {task:?}");
            last = whole;
            rig.run_for(Nanos::from_millis(500));
        }
        assert!(last > Sectors::ZERO);
        assert_eq!(rig.status().whole_to, capacity);
    }
}

/// Units of a rebuild are shorter than long chunks, so a write may overlap the position of the rebuild.
#[test]
fn a_write_across_the_frontier_of_a_rebuild_leaves_no_old_parity() {
    const CHUNK: u64 = 256 << 10;
    for seed in seeds(1, 5) {
        let shape = ArrayShape::raid6(8, Sectors(CHUNK / 512));
        let _case = Case::new(seed, shape);
        let mut rig = Rig::new(shape, RigOptions::new(seed));
        rig.rest();
        // The member has P of the first stripe and Q of the second.
        rig.lose(Slot(7), Loss::Failed);
        rig.rest();
        let policy = Policy { rebuild_rate: Sectors::kib(256), background_depth: 1, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).unwrap();
        let (all, stripe) = (Workload::mixed(rig.session.capacity()), 6 * CHUNK);
        while let Some(task) = rig.status().task {
            let begin = task.done.get() * 512 / CHUNK * stripe;
            if begin >= rig.session.capacity() {
                break;
            }
            let range = begin..begin + stripe;
            let load = Workload { len_max: 16 << 10, depth: 8, mix: [0, 1, 0, 0, 0], range, ..all.clone() };
            rig.session.run(&mut rig.world, &load, 20);
        }
        rig.rest();
        assert_eq!(rig.health(), Health::Optimal);
        rig.judge();
    }
}
