//! The exact number of member commands for one host request: the figures of Linux md 6.1, measured with a chunk of 64
//! KiB.

use openraid_core::admin::{AdminCommand, PartialWritePolicy, Policy};
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{Sectors, Slot};

const CHUNK: Sectors = Sectors::kib(64);
const KIB: u64 = 1024;

/// Commands to all drives so far.
fn counts(rig: &Rig) -> (u64, u64) {
    let each = rig.drives.iter().map(|drive| rig.world.drive(*drive).counters());
    each.fold((0, 0), |(reads, writes), counters| (reads + counters.reads, writes + counters.writes))
}

/// Limits of a service: a stripe is one piece.
fn service() -> RigOptions {
    let mut options = RigOptions::new(1);
    options.world.limits = Limits::default();
    options
}

/// An array that is marked active: for a while, only requests cause drive commands.
fn warmed(shape: ArrayShape) -> Rig {
    let mut rig = Rig::new(shape, service());
    rig.rest();
    rig.world.write(rig.array, 0, &[1; 512]).unwrap();
    rig
}

/// Reads and writes for one write at each of these places; all must be equal.
fn per_write(rig: &mut Rig, len: u64, places: impl Iterator<Item = u64>) -> (u64, u64) {
    let mut seen = Vec::new();
    for at in places {
        // Each write is separate and soon follows another write, so that no clean mark comes between.
        rig.world.write(rig.array, at, &[1; 512]).unwrap();
        let before = counts(rig);
        rig.world.write(rig.array, at, &vec![at.to_le_bytes()[1]; usize::try_from(len).unwrap()]).unwrap();
        let after = counts(rig);
        seen.push((after.0 - before.0, after.1 - before.1));
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "the figures differ from place to place: {seen:?}");
    seen[0]
}

fn chunks(rig: &Rig) -> impl Iterator<Item = u64> {
    (0..rig.session.capacity()).step_by(64 * 1024)
}

#[test]
fn small_writes_of_healthy_parity_arrays_cost_what_they_cost_on_md() {
    for (shape, expected) in [
        (ArrayShape::raid5(4, CHUNK), (2, 2)),
        (ArrayShape::raid5(8, CHUNK), (2, 2)),
        (ArrayShape::raid6(4, CHUNK), (1, 3)),
        (ArrayShape::raid6(8, CHUNK), (3, 3)),
    ] {
        let mut rig = warmed(shape);
        let places = chunks(&rig);
        assert_eq!(per_write(&mut rig, 4 * KIB, places), expected, "{shape}, 4 KiB");
        let places = chunks(&rig);
        assert_eq!(per_write(&mut rig, 64 * KIB, places), split_rows(expected, &rig), "{shape}, 64 KiB");
    }
}

/// A chunk is processed in several pieces of rows, by the limits; each piece costs the same.
fn split_rows((reads, writes): (u64, u64), rig: &Rig) -> (u64, u64) {
    let pieces = CHUNK.get().div_ceil(rig.world.limits().rows_max.get());
    (reads * pieces, writes * pieces)
}

#[test]
fn a_full_stripe_needs_no_reads() {
    for shape in [
        ArrayShape::raid5(4, CHUNK),
        ArrayShape::raid5(8, CHUNK),
        ArrayShape::raid6(4, CHUNK),
        ArrayShape::raid6(8, CHUNK),
        ArrayShape::new(Level::Raid4, 0, 5, CHUNK),
    ] {
        let mut rig = warmed(shape);
        let stripe = shape.geometry().full_stripe().bytes().get();
        let places = (0..rig.session.capacity() - stripe + 1).step_by(usize::try_from(stripe).unwrap());
        let (reads, writes) = per_write(&mut rig, stripe, places);
        assert_eq!(reads, 0, "{shape}");
        assert_eq!(writes, split_rows((0, u64::from(shape.members)), &rig).1, "{shape}");
    }
}

#[test]
fn writes_without_parity_cost_one_command_a_copy() {
    for (shape, expected) in [
        (ArrayShape::new(Level::Raid0, 2, 4, CHUNK), (0, 1)),
        (ArrayShape::new(Level::Linear, 0, 3, Sectors(0)), (0, 1)),
        (ArrayShape::raid1(2), (0, 2)),
        (ArrayShape::raid1(3), (0, 3)),
        (ArrayShape::raid10(0x102, 4, CHUNK), (0, 2)),
        (ArrayShape::raid10(0x201, 3, CHUNK), (0, 2)),
        (ArrayShape::raid10(0x1_0201, 5, CHUNK), (0, 2)),
    ] {
        let mut rig = warmed(shape);
        let places = chunks(&rig);
        assert_eq!(per_write(&mut rig, 4 * KIB, places), expected, "{shape}");
    }
}

#[test]
fn one_chunk_of_a_read_is_one_command() {
    for shape in ArrayShape::all().into_iter().filter(|shape| !shape.unequal) {
        let mut rig = warmed(shape);
        let before = counts(&rig).0;
        rig.world.read(rig.array, 0, 4 * KIB).unwrap();
        assert_eq!(counts(&rig).0 - before, 1, "{shape}");
    }
}

#[test]
fn forced_read_modify_write_reads_two_and_writes_two_even_on_three_members() {
    let mut rig = warmed(ArrayShape::raid5(3, CHUNK));
    let places = chunks(&rig);
    let (reads, writes) = per_write(&mut rig, 4 * KIB, places);
    assert_eq!((reads, writes), (1, 2), "by itself: the other column is one read");
    let policy = Policy { partial_write: PartialWritePolicy::ReadModifyWrite, ..rig.status().policy };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
    let places = chunks(&rig);
    assert_eq!(per_write(&mut rig, 4 * KIB, places), (2, 2));
}

#[test]
fn degraded_small_writes_cost_no_more_than_on_md() {
    // Means over all places in hundredths: reads, writes; one member is missing.
    for (shape, md) in [
        (ArrayShape::raid5(4, CHUNK), (199, 150)),
        (ArrayShape::raid5(8, CHUNK), (303, 175)),
        // 147 on md: its places were random; the mean of one cycle is 150.
        (ArrayShape::raid6(4, CHUNK), (150, 225)),
        (ArrayShape::raid6(8, CHUNK), (373, 263)),
    ] {
        let mut rig = Rig::new(shape, service());
        rig.lose(Slot(1), Loss::Failed);
        rig.rest();
        let stripe = shape.geometry().full_stripe().bytes().get();
        // One cycle of the rotation, every column of it.
        let places: Vec<u64> = (0..stripe * u64::from(shape.members)).step_by(64 << 10).collect();
        let mut total = (0, 0);
        for at in &places {
            rig.world.write(rig.array, *at, &[1; 512]).unwrap();
            let before = counts(&rig);
            rig.world.write(rig.array, *at, &[2; 4096]).unwrap();
            let after = counts(&rig);
            total = (total.0 + after.0 - before.0, total.1 + after.1 - before.1);
        }
        let mean = (total.0 * 100 / places.len() as u64, total.1 * 100 / places.len() as u64);
        assert!(mean.0 <= md.0 && mean.1 <= md.1, "{shape}: {mean:?} against {md:?} of md");
    }
}
