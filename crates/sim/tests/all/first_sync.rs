//! The time of a first sync on models of drives: members with equal content, and members that differ everywhere.

use openraid_core::actions::{Data, DriveCommand, DriveOp, IoClass, JobKind};
use openraid_core::admin::{AdminCommand, Policy};
use openraid_core::array::new_array::{plan, CreateSpec, NewDrive};
use openraid_core::events::{Completion, DriveInfo, ParityVerdict};
use openraid_core::limits::Limits;
use openraid_core::{Actions, Controller};
use openraid_drives::{AnyDrive, DriveKit, DriveOptions, DriveState, VirtualDrive};
use openraid_format::{MdLevel, MinorVersion, SetName, Timestamp, Uuid};
use openraid_models::Library;
use openraid_units::{ArrayId, BlockSize, DriveId, Instant, Nanos, Sectors, Tag, Token};

const MEMBERS: u16 = 4;
const CHUNK: Sectors = Sectors::kib(512);
/// The synced part of each member.
const SIZE: Sectors = Sectors::mib(2048);

/// Controller and drives in virtual time. Parity takes no time.
struct Bench {
    controller: Controller,
    actions: Actions,
    drives: Vec<AnyDrive>,
    now: Instant,
    /// The result of comparisons.
    verdict: ParityVerdict,
    read: Sectors,
    written: Sectors,
}

impl Bench {
    fn new(profile: &str, level: MdLevel, verdict: ParityVerdict) -> Self {
        let profile = Library::builtin().drive(profile).expect("a profile that is built in").clone();
        let kit = DriveKit::new(&profile);
        let drives: Vec<AnyDrive> = (0..MEMBERS)
            .map(|index| {
                kit.build(&DriveOptions { state: DriveState::Fresh, index: index.into(), ..DriveOptions::default() })
            })
            .collect();
        let limits = Limits::default();
        let actions = Actions::new(&limits);
        let controller = Controller::new(limits).expect("the default limits work");
        let mut bench = Self {
            controller,
            actions,
            drives,
            now: Instant::ZERO,
            verdict,
            read: Sectors::ZERO,
            written: Sectors::ZERO,
        };
        for index in 0..MEMBERS {
            let info = DriveInfo {
                capacity: Sectors(bench.drives[usize::from(index)].sectors()),
                block: BlockSize::B512,
                rotational: profile.rotational(),
                discard: false,
                discard_zeroes: false,
                write_zeroes: false,
                room_wait: Nanos::ZERO,
                flush_waits: false,
            };
            bench.controller.admin(Token(0), AdminCommand::AttachDrive { drive: DriveId(index), info });
        }
        let new_drive = |index: u16| NewDrive {
            drive: DriveId(index),
            capacity: Sectors(bench.drives[usize::from(index)].sectors()),
            uuid: Uuid([u8::try_from(index).expect("few") + 1; 16]),
        };
        let spec = CreateSpec {
            uuid: Uuid([9; 16]),
            name: SetName::new(None, "bench").expect("a short name"),
            created: Timestamp::new(0, 0),
            level,
            layout: if level == MdLevel::Raid10 { 0x102 } else { 2 },
            chunk: CHUNK,
            minor: MinorVersion::V1_2,
            slots: (0..MEMBERS).map(|index| Some(new_drive(index))).collect(),
            spares: Vec::new(),
            size: Some(SIZE),
            assume_clean: false,
            bitmap: false,
            ppl: false,
        };
        bench.controller.admin(Token(1), AdminCommand::StartSet(plan(&spec).expect("it can be made")));
        bench
    }

    /// Run the engine and carry out its actions, until it waits for drives.
    fn turn(&mut self) {
        loop {
            self.actions.clear();
            self.controller.advance(self.now, &mut self.actions);
            self.carry_out();
            if self.actions.jobs.is_empty() {
                return;
            }
        }
    }

    fn carry_out(&mut self) {
        for command in &self.actions.drive {
            match command.op {
                DriveOp::Read => self.read += command.len,
                DriveOp::Flush => {}
                _ => self.written += command.len,
            }
            self.drives[command.drive.index()].submit(self.now, command);
        }
        for job in &self.actions.jobs {
            let compares = matches!(job.kind, JobKind::Check | JobKind::Compare);
            let verdict = if compares { self.verdict } else { ParityVerdict::Done };
            self.controller.complete(Completion::Job { tag: job.tag, verdict });
        }
    }

    /// Run until the first sync has ended. Returns its time.
    fn sync(mut self) -> (Nanos, Sectors, Sectors) {
        loop {
            self.turn();
            let status = self.controller.status(ArrayId(0)).expect("it runs");
            if status.consistent_to == Sectors::MAX {
                return (self.now.since(Instant::ZERO), self.read, self.written);
            }
            let drives = self.drives.iter().filter_map(VirtualDrive::next);
            let engine = self.controller.next_deadline().map(|(at, _)| at);
            self.now = drives.chain(engine).min().expect("a sync goes on").max(self.now);
            let mut done: Vec<Tag> = Vec::new();
            for drive in &mut self.drives {
                drive.advance(self.now, &mut done);
            }
            for tag in done {
                self.controller.complete(Completion::Drive { tag, result: Ok(()) });
            }
        }
    }
}

/// Time for reading this amount sequentially from a drive, in commands of 512 KiB, four at once.
fn reading(profile: &str) -> Nanos {
    let profile = Library::builtin().drive(profile).expect("a profile that is built in").clone();
    let options = DriveOptions { state: DriveState::Fresh, ..DriveOptions::default() };
    let mut drive = DriveKit::new(&profile).build(&options);
    let (mut now, mut asked, mut under_way) = (Instant::ZERO, Sectors::ZERO, 0);
    let first = openraid_units::DriveLba(264_192);
    loop {
        while under_way < 4 && asked < SIZE {
            let command = DriveCommand {
                tag: Tag(asked.get()),
                drive: DriveId(0),
                op: DriveOp::Read,
                lba: first + asked,
                len: CHUNK,
                data: Data::None,
                class: IoClass::Foreground,
            };
            drive.submit(now, &command);
            (asked, under_way) = (asked + CHUNK, under_way + 1);
        }
        let Some(next) = drive.next().filter(|_| under_way > 0) else { return now.since(Instant::ZERO) };
        now = next.max(now);
        let mut done = Vec::new();
        drive.advance(now, &mut done);
        under_way -= done.len();
    }
}

#[test]
fn a_first_sync_of_members_that_agree_reads_all_of_them_once_and_writes_nothing() {
    for profile in ["exos_x18_18tb", "pm893_960"] {
        for level in [MdLevel::Raid5, MdLevel::Raid6, MdLevel::Raid10] {
            let whole = SIZE * u64::from(MEMBERS);
            let (agree, read, written) = Bench::new(profile, level, ParityVerdict::Match).sync();
            assert!(read == whole && written < Sectors::mib(1), "{read:?} read, {written:?} written");
            let (differ, read_too, written_too) = Bench::new(profile, level, ParityVerdict::Unknown).sync();
            let once = reading(profile);
            // Reads are in the order of their places on the drives, so the drives or the limit of the rate determine
            // the speed. That limit counts data of a mirror, and sectors of each member of a parity set.
            let counted = if level == MdLevel::Raid10 { SIZE * 2 } else { SIZE };
            let limited = Nanos(counted.get() * 1_000_000_000 / Policy::default().rebuild_rate.get());
            assert!(
                agree.get() < once.max(limited).get() * 11 / 10,
                "{profile} {level}: {agree} for {once} of reading"
            );
            println!(
                "{profile} {level}: reading {once}, agree {agree}, differ {differ}; then {} of {} MiB are read, {} written",
                read_too.bytes().get() >> 20,
                whole.bytes().get() >> 20,
                written_too.bytes().get() >> 20
            );
            let least = SIZE * if level == MdLevel::Raid6 || level == MdLevel::Raid10 { 2 } else { 1 };
            assert!(written_too >= least, "{written_too:?}");
        }
    }
}
