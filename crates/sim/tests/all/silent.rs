//! Drives that become silent one after another hold memory while they may still carry out their commands. Requests that
//! do not need them wait for a limited time only. They are served again as soon as one of the drives answers.

use openraid_core::actions::ReplyStatus;
use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, MirrorRule, Policy};
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_sim::drive::DriveSpec;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::world::FinishedRequest;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors};

/// Sectors of each member.
const DATA: Sectors = Sectors::mib(4);
const MIB: u64 = 1 << 20;
const WRITE: RequestKind = RequestKind::Write { fua: false };
/// Requests that take all memory for payload, with any length.
const MANY: u64 = 400;

/// Limits for [`MANY`] requests at once, with this memory and these commands.
fn crowded(pool: Bytes, commands_max: u32) -> Limits {
    Limits {
        pool,
        requests_max: 600,
        pieces_max: 600,
        ops_max: 1024,
        commands_max,
        drive_depth_max: 512,
        ..Limits::small()
    }
}

/// This number of arrays, each on one drive or a pair. A drive accepts one command for each frame of the memory.
fn arrays(count: u64, members: u16) -> (Rig, Vec<(ArrayId, DriveId)>) {
    let mut options = RigOptions::new(1);
    options.world.limits = crowded(Limits::small().pool, 4096);
    let level = if members > 1 { Level::Raid1 } else { Level::Raid0 };
    let shape = ArrayShape { data: DATA, ..ArrayShape::new(level, 0, members, Sectors::kib(64)) };
    let shape = if members > 1 {
        ArrayShape { data: DATA, ..ArrayShape::raid1(members) }
    } else {
        ArrayShape { layout: 2, ..shape }
    };
    let mut rig = Rig::new(shape, options.clone());
    rig.rest();
    let mut arrays = vec![(rig.array, rig.drives[0])];
    for _ in 1..count {
        let drives: Vec<_> = (0..members).map(|_| rig.world.add_drive(DriveSpec::new(BEFORE_DATA + DATA))).collect();
        options.world.seed += 1000;
        arrays.push((rig.world.create(&shape, &drives, &options), drives[0]));
    }
    rig.world.run_until_idle();
    (rig, arrays)
}

/// A drive becomes silent, and hosts of its array submit requests for all of the memory.
fn fall_silent(rig: &mut Rig, (array, drive): (ArrayId, DriveId), kind: RequestKind, len: u64) {
    rig.world.drive_mut(drive).faults.hang = true;
    for number in 0..MANY {
        let payload = if kind == WRITE { vec![1; usize::try_from(len).unwrap()] } else { Vec::new() };
        if rig.world.try_submit(array, kind, number * len % (4 * MIB), len, payload).is_err() {
            break;
        }
        rig.world.run_for(Nanos::from_micros(10));
    }
}

/// A read of another array. Returns its status and its time.
fn read(rig: &mut Rig, array: ArrayId, len: u64) -> (ReplyStatus, Nanos) {
    let token = rig.world.submit(array, RequestKind::Read, 0, len, Vec::new());
    let FinishedRequest { status, submitted, ended, .. } = rig.world.run_until(token);
    (status, ended.since(submitted))
}

#[test]
fn requests_without_a_silent_drive_wait_for_a_bounded_time() {
    for (kind, len) in [(RequestKind::Read, 128 << 10), (WRITE, 128 << 10), (RequestKind::Read, 4096)] {
        let (mut rig, arrays) = arrays(4, 1);
        let timeout = rig.world.limits().command_timeout;
        let moment = Nanos::from_millis(100);
        let (last, _) = arrays[3];
        rig.world.write(last, 0, &[0x77; 4096]).expect("it is well");
        // First one half of the memory, then the other half. After its drive is given up, more memory is available.
        for silent in &arrays[..2] {
            fall_silent(&mut rig, *silent, kind, len);
            let (status, time) = read(&mut rig, last, 4096);
            assert!(status == ReplyStatus::Ok && time <= timeout + moment, "{kind:?} {len}: {status:?} in {time:?}");
            rig.world.run_until_answered();
        }
        // The third drive takes the rest. After that drive is given up as well, the wait for memory is the same again.
        fall_silent(&mut rig, arrays[2], kind, len);
        let (status, time) = read(&mut rig, last, 4096);
        assert_eq!(status, ReplyStatus::IoError, "{kind:?} {len}");
        assert!(time <= timeout + timeout + moment, "{kind:?} {len}: {time:?}");
        rig.world.run_until_answered();
        let (status, time) = read(&mut rig, last, 4096);
        assert!(status == ReplyStatus::IoError && time < moment, "no request waits any more: {status:?} in {time:?}");
        // One drive answers late: its memory is available again.
        rig.world.release(arrays[0].1);
        rig.world.run_for(moment);
        for len in [4096, MIB] {
            let (status, time) = read(&mut rig, last, len);
            assert!(status == ReplyStatus::Ok && time < moment, "{kind:?}: {status:?} in {time:?}");
        }
        assert_eq!(rig.world.read(last, 0, 4096), Ok(vec![0x77; 4096]));
    }
}

#[test]
fn reads_of_mirrors_that_lack_memory_for_their_second_try_have_an_end() {
    let (mut rig, arrays) = arrays(4, 2);
    let timeout = rig.world.limits().command_timeout;
    let (last, _) = arrays[3];
    for silent in &arrays[..3] {
        // All reads are from the copy that becomes silent.
        let policy = Policy { mirror_read: MirrorRule::Primary, ..rig.world.status(silent.0).unwrap().policy };
        rig.world.admin(AdminCommand::SetPolicy { array: silent.0, policy }).unwrap();
        fall_silent(&mut rig, *silent, RequestKind::Read, 512 << 10);
        rig.world.run_until_answered();
    }
    let mut ends = [0, 0];
    for (_, finished) in rig.world.take_finished() {
        ends[usize::from(finished.status != ReplyStatus::Ok)] += 1;
        assert!(finished.ended.since(finished.submitted) <= timeout + timeout + Nanos::from_secs(1), "{finished:?}");
    }
    // The requests of the last drive get no memory for their second try, and are refused.
    assert_eq!(ends, [2 * MANY, MANY]);
    rig.world.release(arrays[1].1);
    rig.world.run_for(Nanos::from_secs(1));
    assert_eq!(read(&mut rig, last, MIB).0, ReplyStatus::Ok);
}

#[test]
fn the_remaining_memory_serves_in_small_pieces() {
    let (mut rig, arrays) = arrays(4, 1);
    let (last, _) = arrays[3];
    for silent in &arrays[..2] {
        fall_silent(&mut rig, *silent, RequestKind::Read, 128 << 10);
        rig.world.run_until_answered();
    }
    // Every second frame of the last quarter of the memory, so that no two adjacent frames are free.
    let (array, drive) = arrays[2];
    rig.world.drive_mut(drive).faults.hang = true;
    let frames = rig.world.limits().host_bytes().get() / 4 / 4096;
    for number in 0..frames {
        let from = if number % 2 == 0 { array } else { last };
        rig.world.try_submit(from, RequestKind::Read, number * 4096, 4096, Vec::new()).expect("there is a place");
    }
    rig.world.run_until_answered();
    rig.world.write(last, 0, &vec![0x55; 1 << 20]).expect("in small pieces");
    assert_eq!(rig.world.read(last, 0, MIB), Ok(vec![0x55; 1 << 20]));
}

/// A silent drive may still carry out the commands of one array after that array was stopped. No other array gets the
/// drive before it has answered.
#[test]
fn a_silent_drive_is_given_to_no_other_array() {
    let (mut rig, arrays) = arrays(1, 2);
    let (array, silent) = arrays[0];
    fall_silent(&mut rig, arrays[0], WRITE, 4096);
    rig.world.run_until_answered();
    rig.world.admin(AdminCommand::Stop { array }).expect("the other copy is there");
    rig.world.run_until_idle();
    let taken = AdminCommand::StartPassthrough { drive: silent };
    assert_eq!(rig.world.admin(taken.clone()), Err(AdminError::CommandsOutstanding(silent)));
    rig.world.release(silent);
    rig.world.run_until_idle();
    assert!(matches!(rig.world.admin(taken), Ok(AdminOutcome::Started(_))));
}

/// Writes of one block whose parity, or whose other column, is on the first of three members: an operation needs work
/// memory for both. The chunks are 64 KiB, the layout is left-symmetric. No two writes adjoin, so none are gathered.
fn offsets_next_to_first_member() -> impl Iterator<Item = u64> {
    let chunk = 64 << 10;
    let column = |stripe: u64| u64::from(2 - stripe % 3 == 2);
    (0..MANY).map(move |number| {
        let (stripe, block) = (number / 8, number % 8 * 2);
        (stripe * 2 + column(stripe)) * chunk + block * 4096
    })
}

#[test]
fn operations_without_work_memory_continue_after_a_silent_drive_has_answered() {
    let mut options = RigOptions::new(1);
    options.world.limits = crowded(Bytes::mib(8), 4096);
    let shape = ArrayShape { data: DATA, ..ArrayShape::new(Level::Raid5, 2, 3, Sectors::kib(64)) };
    let mut rig = Rig::new(shape, options.clone());
    rig.rest();
    let timeout = rig.world.limits().command_timeout;
    let mut arrays = vec![(rig.array, rig.drives[0])];
    for _ in 1..4 {
        let drives: Vec<_> = (0..3).map(|_| rig.world.add_drive(DriveSpec::new(BEFORE_DATA + DATA))).collect();
        options.world.seed += 1000;
        arrays.push((rig.world.create(&shape, &drives, &options), drives[0]));
    }
    rig.world.run_until_idle();
    for (array, drive) in &arrays[..3] {
        // The array is active before its drive becomes silent: no superblock goes to the drive first.
        rig.world.write(*array, 0, &[1; 4096]).expect("it is well");
        rig.world.drive_mut(*drive).faults.hang = true;
        for offset in offsets_next_to_first_member() {
            if rig.world.try_submit(*array, WRITE, offset, 4096, vec![1; 4096]).is_err() {
                break;
            }
            rig.world.run_for(Nanos::from_micros(10));
        }
        rig.world.run_for(timeout + timeout);
    }
    // All work memory is held now. A client of the healthy array has one request under way, and nothing else is.
    let (healthy, _) = arrays[3];
    let token = rig.world.submit(healthy, WRITE, 4096, 4096, vec![7; 4096]);
    rig.world.run_for(timeout + timeout);
    assert!(rig.world.take_finished().all(|(ended, _)| ended != token), "there is work memory");
    rig.world.release(arrays[0].1);
    assert_eq!(rig.world.run_until(token).status, ReplyStatus::Ok);
    rig.world.run_until_answered();
    assert_eq!(rig.world.read(healthy, 4096, 4096), Ok(vec![7; 4096]));
}

#[test]
fn operations_without_commands_continue_after_a_silent_drive_has_answered() {
    let mut options = RigOptions::new(1);
    options.world.limits = crowded(Bytes::mib(8), 512);
    let mut rig = Rig::new(ArrayShape { data: DATA, ..ArrayShape::raid1(2) }, options);
    rig.rest();
    let timeout = rig.world.limits().command_timeout;
    let policy = Policy { mirror_read: MirrorRule::Primary, ..rig.world.status(rig.array).unwrap().policy };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).unwrap();
    // More commands than the table may have if one more operation is to begin.
    let primary = (rig.array, rig.drives[0]);
    fall_silent(&mut rig, primary, RequestKind::Read, 4096);
    rig.world.run_for(timeout + timeout);
    let answered = rig.world.take_finished().count() as u64;
    assert!(answered < MANY, "all were read from the other copy: there is room for commands");
    rig.world.release(rig.drives[0]);
    rig.world.run_until_answered();
    let late: Vec<_> = rig.world.take_finished().collect();
    assert_eq!(answered + late.len() as u64, MANY);
    assert!(late.iter().all(|(_, finished)| finished.status == ReplyStatus::Ok));
}
