//! One defect of a drive counts as one error, whatever request meets it. The search for its bounds has a limit in
//! commands.

use crate::support::Case;
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Health, MemberState, MemberStatus};
use openraid_core::check_results::ScrubMode;
use openraid_core::events::RequestKind;
use openraid_core::geometry::{Geometry, StripeRole};
use openraid_core::limits::{Limits, SEARCH_COMMANDS_MAX};
use openraid_sim::drive::Defect;
use openraid_sim::oracle::Members;
use openraid_sim::rig::RigOptions;
use openraid_sim::world::WorldSpec;
use openraid_sim::{ArrayShape, Loss, Rig};
use openraid_units::{Bytes, DriveId, MemberLba, Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(512);
/// 4 KiB of a member at the beginning of a large read, in its middle and at its end.
const PLACES: [u64; 4] = [1024, 1024 + 8, 1024 + 296, 1024 + 504];
const DEFECT: Sectors = Sectors(8);

fn shapes() -> [ArrayShape; 6] {
    let large = |shape| ArrayShape { data: Sectors::mib(4), ..shape };
    [
        ArrayShape::raid1(2),
        ArrayShape::raid1(3),
        ArrayShape::raid10(0x102, 4, CHUNK),
        ArrayShape::raid10(0x201, 4, CHUNK),
        ArrayShape::raid5(4, CHUNK),
        ArrayShape::raid6(5, CHUNK),
    ]
    .map(large)
}

/// A fully written array of this shape, with the limits of the service.
fn rig(shape: ArrayShape) -> Rig {
    let limits = Limits { pool: Bytes::mib(48), work: Bytes::mib(24), ..Limits::default() };
    let world = WorldSpec { limits, ..WorldSpec::new(1) };
    let mut rig = Rig::new(shape, RigOptions { world, ..RigOptions::new(1) });
    let capacity = rig.session.capacity();
    for start in (0..capacity).step_by(1 << 20) {
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, start..(start + (1 << 20)).min(capacity));
    }
    rig.session.drain(&mut rig.world);
    rig.rest();
    rig.world.take_notices();
    rig
}

/// A member whose drive has one bad place, or none.
struct Victim {
    slot: Slot,
    drive: DriveId,
    reads: u64,
}

impl Victim {
    fn new(rig: &mut Rig, slot: Slot, at: u64, is_bad: bool) -> Self {
        let (drive, lba) = Members::of(&rig.world, rig.array).place(slot, MemberLba(at)).unwrap();
        if is_bad {
            rig.world.drive_mut(drive).faults.add_defects(lba, DEFECT, Defect::UntilWritten);
        }
        Self { slot, drive, reads: rig.world.drive(drive).counters().reads }
    }
    /// Reads of the drive since the victim was chosen.
    fn reads(&self, rig: &Rig) -> u64 {
        rig.world.drive(self.drive).counters().reads - self.reads
    }
    fn status(&self, rig: &Rig) -> MemberStatus {
        rig.status().members.into_iter().find(|member| member.slot == Some(self.slot)).unwrap()
    }
}

/// Lose as many members as the array survives, from slot 1 on, so that slot 0 has no redundancy left.
fn lose_all_redundancy(rig: &mut Rig) -> u16 {
    // With two near copies the second copy of slot 0 is in slot 1.
    let losses = rig.geometry_losses();
    for slot in 1..=losses {
        rig.lose(Slot(slot), Loss::Failed);
    }
    losses
}

/// Do the same without and with the defect. The difference in commands to the drive is the search.
fn searched(shape: ArrayShape, at: u64, act: impl Fn(&mut Rig, &Victim), degraded: bool) -> (Rig, Victim, u64) {
    let run = |is_bad| {
        let mut rig = rig(shape);
        if degraded {
            lose_all_redundancy(&mut rig);
        }
        rig.world.take_notices();
        let victim = Victim::new(&mut rig, Slot(0), at, is_bad);
        act(&mut rig, &victim);
        rig.rest();
        let reads = victim.reads(&rig);
        (rig, victim, reads)
    };
    let (_, _, without) = run(false);
    let (rig, victim, with) = run(true);
    (rig, victim, with.saturating_sub(without))
}

fn repaired(rig: &mut Rig) -> usize {
    let notices = rig.world.take_notices();
    notices.iter().filter(|notice| matches!(notice.kind, NoticeKind::SectorRepaired(_))).count()
}

#[test]
fn a_bad_block_met_in_a_rebuild_counts_once_and_the_next_one_costs_no_member() {
    for shape in shapes() {
        for at in PLACES {
            let _case = Case::new(at, shape);
            let fill = |rig: &mut Rig, _: &Victim| {
                for _ in 0..rig.geometry_losses() {
                    let drive = rig.new_drive();
                    rig.world.add_member(rig.array, drive).unwrap();
                }
            };
            let (mut rig, victim, more) = searched(shape, at, fill, true);
            let status = victim.status(&rig);
            let lost = rig.status().members.iter().map(|member| member.bad_blocks).sum::<u32>();
            assert_eq!((rig.health(), status.media_errors), (Health::Optimal, 1), "{}", rig.world.dump());
            let tasks = u64::from(rig.geometry_losses());
            assert!(more <= tasks * u64::from(SEARCH_COMMANDS_MAX), "the search took {more} commands");
            // The drive with the defect records it, and so do the drives that could not be filled at that place.
            assert_eq!((status.bad_blocks, lost), (1, 1 + u32::from(rig.geometry_losses())));
            assert_eq!(repaired(&mut rig), 0, "nothing was there to rewrite it from");
            // The next defect is correctable, and the member stays.
            let (drive, lba) = Members::of(&rig.world, rig.array).place(victim.slot, MemberLba(at + 2048)).unwrap();
            rig.world.drive_mut(drive).faults.add_defects(lba, DEFECT, Defect::UntilWritten);
            let array = rig.array;
            rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check }).unwrap();
            rig.rest();
            let status = victim.status(&rig);
            assert_eq!((status.state, status.media_errors), (MemberState::InSync, 2));
            assert_eq!(repaired(&mut rig), 1);
            assert_eq!(rig.world.drive(drive).faults.first_defect(lba, DEFECT), None);
        }
    }
}

#[test]
fn a_bad_block_met_in_a_check_counts_once_and_is_rewritten_at_once() {
    for shape in shapes() {
        for at in PLACES {
            let _case = Case::new(at, shape);
            let check = |rig: &mut Rig, _: &Victim| {
                let array = rig.array;
                rig.world.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check }).unwrap();
            };
            let (mut rig, victim, more) = searched(shape, at, check, false);
            assert_eq!((rig.health(), victim.status(&rig).media_errors), (Health::Optimal, 1));
            assert!(more <= 1, "the drive was asked {more} times more");
            assert_eq!((repaired(&mut rig), rig.world.drive(victim.drive).faults.defects()), (1, 0));
            rig.judge();
        }
    }
}

/// The byte of the array at that place of the victim.
fn hosts_place(shape: ArrayShape, slot: Slot, at: u64) -> u64 {
    let place = match shape.geometry() {
        Geometry::Parity(parity) => {
            let (stripe, within) = parity.stripe_at(MemberLba(at)).unwrap();
            let StripeRole::Data(column) = parity.role_of(stripe, slot) else { panic!("no data stand there") };
            parity.set_lba(stripe, column, within)
        }
        Geometry::Mirror(mirror) => mirror.inverse(slot, MemberLba(at)).unwrap().0,
        other => panic!("not redundant: {other:?}"),
    };
    place.get() * 512
}

#[test]
fn a_bad_block_that_a_host_reads_counts_once_however_often_it_is_read() {
    for degraded in [false, true] {
        for shape in shapes() {
            let _case = Case::new(u64::from(degraded), shape);
            let at = 1024 + 296;
            let place = hosts_place(shape, Slot(0), at);
            let whole = (place / (1 << 20)) << 20;
            let read = |rig: &mut Rig, _: &Victim| {
                let _ = rig.world.read(rig.array, whole, 1 << 20);
                rig.rest();
            };
            let (mut rig, victim, more) = searched(shape, at, read, degraded);
            assert!(more <= 2 * u64::from(SEARCH_COMMANDS_MAX), "{more} commands");
            for sector in 0..DEFECT.get() {
                let answer = rig.world.read(rig.array, place + sector * 512, 512);
                assert_eq!(answer.is_err(), degraded);
                rig.rest();
            }
            let _ = rig.world.read(rig.array, whole, 1 << 20);
            rig.rest();
            assert_eq!(victim.status(&rig).media_errors, 1, "{}", rig.world.dump());
            assert_eq!(repaired(&mut rig), usize::from(!degraded));
            let asked = victim.reads(&rig);
            let _ = rig.world.read(rig.array, place, 4096);
            assert_eq!(victim.reads(&rig) == asked, degraded, "a place that is known to be bad is not asked for again");
        }
    }
}
