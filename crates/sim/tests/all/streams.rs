//! Sequential writes of several requests at once: the bytes that members read and write for each byte of the host.

use openraid_core::actions::ReplyStatus;
use openraid_core::admin::MemberState;
use openraid_core::events::RequestKind;
use openraid_core::geometry::{Geometry, Level};
use openraid_core::limits::Limits;
use openraid_core::reason::Reason;
use openraid_sim::drive::{Defect, DriveRoom, DriveSpec};
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::oracle::Members;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions, World};
use openraid_units::{ArrayId, DriveId, Nanos, Sectors, StripeIndex, Token};

const CHUNK: Sectors = Sectors::kib(64);
const KIB: u64 = 1024;
const WRITE: RequestKind = RequestKind::Write { fua: false };
/// Room for 12 MiB of data at least.
const DATA: Sectors = Sectors::mib(5);

/// An array, or spans under a stripe.
struct Array {
    world: World,
    array: ArrayId,
    spans: Vec<ArrayId>,
    drives: Vec<DriveId>,
    name: String,
    /// Data columns and parities of a set, and number of sets.
    columns: (u64, u64),
    sets: u64,
}

/// The number of times that the engine noted one of these reasons for an array.
fn count_of(world: &World, array: ArrayId, reasons: &[Reason]) -> u64 {
    let status = world.status(array).expect("the array runs");
    status.reasons.iter().filter(|(reason, _)| reasons.contains(reason)).map(|(_, count)| *count).sum()
}

impl Array {
    fn new(shape: ArrayShape, spans: u16) -> Self {
        let shape = ArrayShape { data: DATA, ..shape };
        let mut options = RigOptions::new(1);
        options.world.limits = Limits::default();
        let mut world = World::new(options.world.clone());
        let mut drives = Vec::new();
        let mut all = Vec::new();
        for span in 0..spans {
            options.world.seed = 10 + u64::from(span);
            let drives_of_span: Vec<DriveId> =
                (0..shape.members).map(|_| world.add_drive(DriveSpec::new(BEFORE_DATA + DATA))).collect();
            all.push(world.create(&shape, &drives_of_span, &options));
            drives.extend(drives_of_span);
        }
        let array = if spans == 1 { all[0] } else { world.create_nested(&all, CHUNK, 1) };
        world.run_until_idle();
        let geometry = shape.geometry();
        let data = geometry.full_stripe().get() / CHUNK.get();
        let name = format!("{spans} x {shape}");
        let columns = (data, u64::from(shape.members) - data);
        Self { world, array, spans: all, drives, name, columns, sets: spans.into() }
    }

    /// Bytes that all drives have read and written so far.
    fn bytes(&self) -> (u64, u64) {
        let each = self.drives.iter().map(|drive| self.world.drive(*drive).counters());
        each.fold((0, 0), |(reads, writes), c| (reads + c.sectors_read * 512, writes + c.sectors_written * 512))
    }

    /// Write from the start on, with `depth` requests of this length at once. Returns the bytes that members read and
    /// write for each hundred bytes of the host.
    fn write_in_order(&mut self, len: u64, depth: u64) -> (u64, u64) {
        let total = 12 * KIB * KIB * self.sets / len * len;
        // Marked active, so that only the requests cause commands.
        self.world.write(self.array, total, &[1; 512]).unwrap();
        let before = self.bytes();
        let places: Vec<u64> = (0..total / len).map(|number| number * len).collect();
        write_at(&mut self.world, self.array, &places, len, depth);
        let after = self.bytes();
        for at in &places {
            let read = self.world.read(self.array, *at, len).unwrap();
            assert_eq!(read, payload(*at, len), "{}: {len} bytes at {at}, depth {depth}", self.name);
        }
        ((after.0 - before.0) * 100 / total, (after.1 - before.1) * 100 / total)
    }

    /// The number of times that writes were held or gathered.
    fn held(&self) -> u64 {
        self.spans.iter().map(|span| count_of(&self.world, *span, &[Reason::WriteHeld, Reason::WriteGathered])).sum()
    }
}

fn payload(at: u64, len: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len.try_into().expect("a request fits memory"));
    for sector in at / 512..(at + len) / 512 {
        bytes.extend_from_slice(&sector.to_le_bytes().repeat(64));
    }
    bytes
}

/// Write at these places, in order, with `depth` requests at once.
fn write_at(world: &mut World, array: ArrayId, places: &[u64], len: u64, depth: u64) {
    let (mut next, mut waiting) = (places.iter(), Vec::<Token>::new());
    loop {
        while (waiting.len() as u64) < depth {
            let Some(at) = next.next() else { break };
            waiting.push(world.try_submit(array, WRITE, *at, len, payload(*at, len)).expect("there is a place"));
        }
        if waiting.is_empty() {
            return;
        }
        assert!(world.step(), "requests have no answer");
        for (token, finished) in world.take_finished().collect::<Vec<_>>() {
            assert_eq!(finished.status, ReplyStatus::Ok);
            waiting.retain(|other| *other != token);
        }
    }
}

/// Percent of [`least_written`] that may be written in a window smaller than a stripe.
const OVER_LEAST_MAX: u64 = 105;

/// All levels with parity, with different numbers of columns.
fn arrays() -> [(ArrayShape, u16); 6] {
    [
        (ArrayShape::new(Level::Raid4, 0, 5, CHUNK), 1),
        (ArrayShape::raid5(4, CHUNK), 1),
        (ArrayShape::raid5(8, CHUNK), 1),
        (ArrayShape::raid6(6, CHUNK), 1),
        (ArrayShape::raid5(4, CHUNK), 2),
        (ArrayShape::raid6(6, CHUNK), 2),
    ]
}

/// What physics leaves, for a window of `window` bytes that are known at once: a row of a stripe has a block in each
/// column, and at most `window / chunk` of them, rounded up, are in the window. All of these, and the parities of the
/// row, are on the members before the window moves on.
fn least_written((data, parities): (u64, u64), window: u64) -> u64 {
    let rounds = data.div_ceil(window.div_ceil(64 * KIB));
    100 + 100 * parities * rounds / data
}

#[test]
fn requests_that_cover_a_stripe_together_cost_what_full_stripes_cost_and_fewer_as_little_as_can_be() {
    let mut reached = 0;
    for (shape, spans) in arrays() {
        for (len, depth) in
            [4, 16, 64, 256, 1024].into_iter().flat_map(|len| [4, 16, 32].map(|depth| (len * KIB, depth)))
        {
            let mut array = Array::new(shape, spans);
            let (data, parities) = array.columns;
            let (reads, writes) = array.write_in_order(len, depth);
            let case = format!("{}: {len} bytes, depth {depth}: read {reads}, written {writes} percent", array.name);
            let (window, stripe) = (len * depth / array.sets, data * 64 * KIB);
            let least = least_written((data, parities), window);
            assert!(writes >= least.min(100 + 100 * parities / data), "{case}: not less than {least}");
            if window >= stripe {
                let ideal = 100 + 100 * parities / data;
                assert!(reads <= 10 && writes <= ideal * 11 / 10, "{case}: ideal are 0 and {ideal}");
                reached += 1;
            } else {
                println!("{case}; at least {least}");
                // As without gathering, or better.
                assert!(reads <= 100 * (1 + parities) && writes <= 100 * (1 + parities), "{case}");
                assert!(writes * 100 <= least * OVER_LEAST_MAX && reads <= writes, "{case}: at least {least}");
            }
        }
    }
    println!("{reached} of 90 cells are at the ideal");
}

#[test]
fn a_host_that_waits_for_each_answer_or_writes_at_random_places_is_never_held() {
    for (shape, spans) in arrays() {
        let mut array = Array::new(shape, spans);
        for len in [4 * KIB, 64 * KIB, 1024 * KIB, 4096 * KIB] {
            array.write_in_order(len, 1);
        }
        // Every second block.
        let places: Vec<u64> = (0..512).map(|number| number * 8 * KIB).collect();
        write_at(&mut array.world, array.array, &places, 4 * KIB, 16);
        assert_eq!(array.held(), 0, "{}", array.name);
    }
}

/// Two writes are gathered. A block in the same rows cannot be read, and one of the members that are written is gone: the
/// block of the row that has no place cannot be written.
#[test]
fn a_block_that_cannot_be_written_fails_only_the_request_that_meets_it() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let mut options = RigOptions::new(1);
    options.world.limits = Limits::default();
    let mut rig = Rig::new(shape, options);
    let Geometry::Parity(parity) = shape.geometry() else { unreachable!("RAID 5 has parity") };
    let stripe = StripeIndex(0);
    let bad = parity.member_lba(stripe, Sectors(16));
    let (drive, lba) = Members::of(&rig.world, rig.array).place(parity.slot_of(stripe, 2), bad).unwrap();
    rig.lose(parity.slot_of(stripe, 0), Loss::Failed);
    rig.rest();
    rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(8), Defect::Permanent);
    let len = 64 * KIB;
    let tokens = [0, len].map(|at| rig.world.try_submit(rig.array, WRITE, at, len, payload(at, len)).unwrap());
    let statuses = tokens.map(|token| rig.world.run_until(token).status);
    assert_eq!(statuses, [ReplyStatus::IoError, ReplyStatus::Ok]);
    assert_eq!(rig.world.read(rig.array, len, len).unwrap(), payload(len, len));
    let count = |reason| count_of(&rig.world, rig.array, &[reason]);
    assert!(count(Reason::WriteGathered) > 0 && count(Reason::WrittenAlone) == 1);
}

/// The member of the second column of a stripe has no room. Whether the writes of the stripe are gathered or come one by
/// one: only the one that needs this room fails, no member does, and the data of the others survives the loss of a member.
#[test]
fn a_gathered_write_without_room_ends_as_single_writes_do() {
    let shape = ArrayShape::raid5(4, CHUNK);
    let Geometry::Parity(parity) = shape.geometry() else { unreachable!("RAID 5 has parity") };
    let slot_of = |column| parity.slot_of(StripeIndex(0), column);
    let len = 64 * KIB;
    for depth in [1, 3] {
        let mut options = RigOptions::new(1);
        options.world.limits = Limits::default();
        let mut rig = Rig::new(shape, options);
        let drive = rig.drive_in(slot_of(1)).expect("it works");
        let superblock = superblock_on(&rig.world, drive).expect("it is a member");
        let area = superblock.data_offset..superblock.data_offset + superblock.data_size;
        rig.world.drive_mut(drive).faults.room = Some(DriveRoom { one_in: 1, ..DriveRoom::half(area, 2, 0) });
        let mut statuses = Vec::new();
        for places in [0, len, 2 * len].chunks(depth) {
            let submit = |at: &u64| rig.world.try_submit(rig.array, WRITE, *at, len, payload(*at, len)).unwrap();
            let tokens: Vec<Token> = places.iter().map(submit).collect();
            statuses.extend(tokens.into_iter().map(|token| rig.world.run_until(token).status));
        }
        assert_eq!(statuses, [ReplyStatus::Ok, ReplyStatus::NoSpace, ReplyStatus::Ok], "depth {depth}");
        let gathered = count_of(&rig.world, rig.array, &[Reason::WriteGathered]);
        assert_eq!(gathered > 0, depth > 1, "depth {depth}: {gathered} gathered writes");
        assert_eq!(rig.state_of(slot_of(1)), MemberState::InSync);
        assert!(rig.status().members[usize::from(slot_of(1).0)].is_full);
        rig.lose(slot_of(2), Loss::Failed);
        // It never rests: a full member is tried again and again.
        rig.world.run_for(Nanos::from_secs(1));
        for at in [0, 2 * len] {
            assert_eq!(rig.world.read(rig.array, at, len), Ok(payload(at, len)), "depth {depth}, {at}");
        }
    }
}
