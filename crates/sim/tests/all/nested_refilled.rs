//! RAID 50 with a mirrored journal: the power is cut repeatedly while members are being filled.
//!
//! A cut takes a member of one span or of both. The drive returns wiped or as it was, and is added to a span with a
//! vacant slot. The power is cut again while the drive is being filled. Devices of the journal are lost and join again
//! meanwhile. In every second run the power is cut while a start brings one of them up to date. Every acknowledged
//! write must stay. A filled member must be a member after the next start.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::support::journalled::{attach_journal, limits_with_journal, JOURNAL};
use crate::support::{seeds, two_at_a_time, Case};
use openraid_core::admin::{AdminCommand, AdminOutcome, Health, MemberState, Policy, WriteCache};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_format::{superblock_lba, MinorVersion, Superblock, Uuid, SUPERBLOCK_BYTES_MAX};
use openraid_sim::drive::{DriveSpec, FreshContent};
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::{Content, HostSession, Members};
use openraid_sim::random::Random;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::test_arrays::MEMBER_DATA;
use openraid_sim::world::journal::ResyncResult;
use openraid_sim::{ArrayShape, RigOptions, World};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors};

const SPANS: u16 = 2;
const SLOTS: u16 = 3;
/// Number of power cuts of a run.
const CUTS: u32 = 15;
/// Runs with a power cut after the journal's tail has moved between the two superblock copies of a joining device.
const TAIL_MOVED: [u64; 2] = [22, 28];
/// Limit of the tries until the array accepts a drive, a millisecond apart.
const TRIES: u32 = 50;

/// The cases that the runs met.
#[derive(Default, Debug)]
struct Tally {
    /// Number of lost members, and of members that returned wiped.
    lost: u32,
    wiped: u32,
    /// Cuts while a member was being filled, and the part of them in which some of it was filled.
    filling: u32,
    filled_in_part: u32,
    /// Number of journal devices that began to join.
    joins: u32,
    /// Cuts while a start brought a device of the journal up to date.
    heals: u32,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.wiped += other.wiped;
        self.filling += other.filling;
        self.filled_in_part += other.filled_in_part;
        self.joins += other.joins;
        self.heals += other.heals;
    }
}

struct Machine {
    world: World,
    session: HostSession,
    spans: Vec<ArrayId>,
    sets: Vec<Uuid>,
    drives: Vec<DriveId>,
    journal: Vec<DriveId>,
    /// Drives that were lost with the power, and have not returned.
    away: BTreeSet<DriveId>,
    policy: Policy,
    random: Random,
    /// The random choices of power cuts during the resync of a journal device, in runs with such cuts.
    heals: Option<Random>,
    tally: Tally,
}

impl Machine {
    fn new(seed: u64) -> Self {
        let mut random = Random::derived(seed, 31);
        let mut options = RigOptions::new(seed);
        options.world.limits = limits_with_journal(*random.pick(&[Bytes::kib(256), Bytes::mib(1)]));
        options.world.limits.checkpoint_interval = *random.pick(&[Nanos::from_millis(1), Nanos::from_secs(10)]);
        let shape = ArrayShape::raid5(SLOTS, *random.pick(&[Sectors::kib(16), Sectors::kib(64)]));
        let mut world = World::new(options.world.clone());
        let mut drives = Vec::new();
        let mut spans = Vec::new();
        for number in 0..SPANS {
            options.world.seed = seed * 100 + u64::from(number);
            let spec = DriveSpec::new(BEFORE_DATA + MEMBER_DATA);
            let drives_of_span: Vec<DriveId> = (0..SLOTS).map(|_| world.add_drive(spec)).collect();
            spans.push(world.create(&shape, &drives_of_span, &options));
            drives.extend(drives_of_span);
        }
        let journal = world.make_journal(2, JOURNAL);
        attach_journal(&mut world, &journal);
        let outer = world.create_nested(&spans, Sectors::kib(64), seed);
        world.flush(outer).expect("the outer superblocks are durable");
        let sets = spans.iter().map(|span| superblock_of(&world, *span).set_uuid).collect();
        let session = HostSession::new(&world, outer, seed, Content::Zeroes, false);
        let rebuild_rate = *random.pick(&[Sectors::ZERO, Sectors::mib(4), Sectors::mib(40)]);
        let policy = Policy { write_cache: WriteCache::Journal, rebuild_rate, ..Policy::default() };
        let away = BTreeSet::new();
        let tally = Tally::default();
        let heals = (seed % 2 == 1).then(|| Random::derived(seed, 42));
        let mut machine = Self { world, session, spans, sets, drives, journal, away, policy, random, heals, tally };
        machine.protect();
        machine
    }

    fn protect(&mut self) {
        for array in self.spans.clone() {
            self.world.admin(AdminCommand::SetPolicy { array, policy: self.policy }).expect("it has a journal");
            assert_eq!(self.world.controller().journal_protection(array), Ok(()));
        }
    }

    fn load(&self) -> Workload {
        Workload { len_max: 64 << 10, align: 512, mix: [10, 85, 5, 0, 0], ..Workload::mixed(self.session.capacity()) }
    }

    /// Hosts write; the power is cut at some moment, for all drives at once or for a part first.
    fn work_until_cut(&mut self) {
        let load = self.load();
        let requests = self.random.between(1, 150);
        self.session.run_on(&mut self.world, &load, requests);
        let steps = self.random.below(60);
        self.steps(steps);
        let first = self.lose_a_part();
        self.note_filling();
        if self.random.chance(1, 8) && first.is_empty() {
            self.session.kill(&mut self.world);
        } else {
            self.session.cut_power(&mut self.world);
        }
        self.session.tolerate_errors = false;
        first.iter().for_each(|drive| self.world.drive_mut(*drive).put_back());
    }

    /// Before the other drives, all members lose their power, or a device of the journal, or no drive. Returns these
    /// drives.
    fn lose_a_part(&mut self) -> Vec<DriveId> {
        let first: Vec<DriveId> = match self.random.below(10) {
            0..=1 => self.drives.iter().copied().filter(|drive| !self.away.contains(drive)).collect(),
            2..=3 => vec![*self.random.pick(&self.journal)],
            _ => Vec::new(),
        };
        if first.is_empty() {
            return first;
        }
        self.session.tolerate_errors = first.len() > 1;
        first.iter().for_each(|drive| self.world.vanish(*drive));
        let steps = self.random.below(60);
        self.steps(steps);
        if let ([device], true) = (&first[..], self.random.chance(1, 2)) {
            self.rejoin(*device);
        }
        first
    }

    fn note_filling(&mut self) {
        for span in &self.spans {
            for member in self.world.status(*span).expect("it runs").members {
                if let MemberState::Rebuilding { to } = member.state {
                    self.tally.filling += 1;
                    self.tally.filled_in_part += u32::from(!to.is_zero());
                }
            }
        }
    }

    /// The device of the journal returns, and joins the one that continued alone, while hosts write.
    fn rejoin(&mut self, device: DriveId) {
        let journal = self.world.journal().expect("it was attached");
        if journal.epoch_pending || journal.devices.iter().all(|(_, works)| *works) {
            return;
        }
        self.world.drive_mut(device).put_back();
        // While the redo backlog is being written, the journal accepts no device.
        if self.world.join_journal(device).is_ok() {
            self.tally.joins += 1;
            let (load, requests) = (self.load(), self.random.below(40));
            self.session.run_on(&mut self.world, &load, requests);
            let steps = self.random.below(200);
            self.steps(steps);
        }
    }

    fn steps(&mut self, steps: u64) {
        for _ in 0..steps {
            self.world.step();
            self.session.hear(&mut self.world);
        }
    }

    /// A member of one span or of each is lost with the power, if all spans are whole.
    fn lose(&mut self, full: &[Vec<DriveId>]) {
        let is_whole = full.iter().all(|members| members.len() == usize::from(SLOTS)) && self.is_whole();
        if !is_whole || !self.random.chance(3, 4) {
            return;
        }
        let both = self.random.chance(1, 2);
        let first = self.random.index(full.len());
        for (number, members) in full.iter().enumerate() {
            if both || number == first {
                let drive = *self.random.pick(members);
                self.world.drive_mut(drive).faults.gone = true;
                self.tally.lost += 1;
                self.away.insert(drive);
            }
        }
    }

    /// Starts that end during the resync of a journal device.
    fn heal_in_part(&mut self) {
        let mut cut = || self.heals.as_mut().and_then(|random| random.chance(2, 3).then(|| random.bits()));
        while let Some(cut) = cut() {
            self.world.boot();
            match self.world.find_journal_until(&self.journal, Some(cut)).unwrap_or_else(|fault| panic!("{fault}")) {
                ResyncResult::Part { .. } => self.tally.heals += 1,
                ResyncResult::All(_) => return,
            }
            self.world.cut_power();
        }
    }

    /// Start, in some runs with another power cut meanwhile.
    fn boot(&mut self) {
        self.heal_in_part();
        while self.random.chance(1, 4) {
            let events = self.random.below(400);
            self.world.boot();
            self.start_for(events);
            self.world.cut_power();
        }
        self.world.boot();
        attach_journal(&mut self.world, &self.journal);
        for number in 0..self.sets.len() {
            let command = self.plan(number);
            self.spans[number] = self.world.start(command).unwrap_or_else(|error| panic!("span {number}: {error}"));
        }
        let superblocks = self.spans.iter().map(|span| outer_superblock(&mut self.world, *span)).collect();
        let command = AdminCommand::StartStriped { spans: self.spans.clone(), superblocks };
        self.session.array = self.world.start(command).unwrap_or_else(|error| panic!("{error}"));
        self.protect();
    }

    fn plan(&self, number: usize) -> AdminCommand {
        let mut candidates = self.world.candidates();
        candidates.retain(|candidate| candidate.superblock.set_uuid == self.sets[number]);
        let plan = assemble::plan(&candidates, AssembleOptions::default());
        AdminCommand::StartSet(plan.unwrap_or_else(|error| panic!("span {number}: {error}\n{}", self.world.dump())))
    }

    /// Start the journal and the spans for this number of events.
    fn start_for(&mut self, mut events: u64) {
        let found = self.world.find_journal(&self.journal).unwrap_or_else(|fault| panic!("{fault}"));
        if !self.admin_for(AdminCommand::AttachJournal(found), &mut events) {
            return;
        }
        for number in 0..self.sets.len() {
            let command = self.plan(number);
            if !self.admin_for(command, &mut events) {
                return;
            }
        }
        for _ in 0..events {
            self.world.step();
        }
    }

    fn admin_for(&mut self, command: AdminCommand, events: &mut u64) -> bool {
        let token = self.world.start_admin(command);
        loop {
            if let Some(answer) = self.world.take_answer(token) {
                assert!(matches!(answer.result, Ok(AdminOutcome::Done | AdminOutcome::Started(_))), "{answer:?}");
                return true;
            }
            if *events == 0 {
                return false;
            }
            *events -= 1;
            assert!(self.world.step(), "it is never answered");
        }
    }

    /// The lost drives return, some of them wiped, and are added to a span with a vacant slot.
    fn bring_back(&mut self) {
        for drive in std::mem::take(&mut self.away) {
            self.world.drive_mut(drive).put_back();
            if self.random.chance(1, 2) {
                self.world.drive_mut(drive).wipe(FreshContent::Zeroes);
                self.tally.wiped += 1;
            }
            self.add(drive);
        }
    }

    fn add(&mut self, drive: DriveId) {
        for _ in 0..TRIES {
            for array in self.spans.clone() {
                let members = self.world.status(array).expect("it runs").members;
                if members.iter().any(|member| member.drive == Some(drive)) {
                    let _ = self.world.admin(AdminCommand::Remove { array, drive });
                }
            }
            let vacant: Vec<ArrayId> = self.spans.iter().copied().filter(|span| self.has_room(*span)).collect();
            let span = *self.random.pick(&vacant);
            if self.world.add_member(span, drive).is_ok() {
                return;
            }
            self.world.run_for(Nanos::from_millis(1));
        }
        panic!("drive {drive} is not taken\n{}", self.world.dump());
    }

    /// The drives of a span whose members have such a state.
    fn holders(&self, span: ArrayId, state: impl Fn(MemberState) -> bool) -> Vec<DriveId> {
        let members = self.world.status(span).expect("it runs").members;
        members.iter().filter(|member| state(member.state)).filter_map(|member| member.drive).collect()
    }

    fn has_room(&self, span: ArrayId) -> bool {
        self.holders(span, is_taken).len() < usize::from(SLOTS)
    }

    fn is_whole(&self) -> bool {
        self.spans.iter().all(|span| {
            let status = self.world.status(*span).expect("it runs");
            status.health == Health::Optimal && status.task.is_none()
        })
    }

    /// A full member stays a member. A drive that had just joined at the power cut may not have recorded it: it is
    /// added again.
    fn judge_members(&mut self, full: &[DriveId]) {
        let taken: Vec<DriveId> = self.spans.iter().flat_map(|span| self.holders(*span, is_taken)).collect();
        for drive in self.drives.iter().filter(|drive| !taken.contains(drive)) {
            let expected = full.contains(drive) && !self.away.contains(drive);
            assert!(!expected, "drive {drive} was a full member\n{}", self.world.dump());
            self.away.insert(*drive);
        }
    }

    fn run(mut self) -> Tally {
        let load = self.load();
        self.session.run(&mut self.world, &load, 200);
        for _ in 0..CUTS {
            self.work_until_cut();
            let full: Vec<Vec<DriveId>> = self.spans.iter().map(|span| self.holders(*span, is_full)).collect();
            self.lose(&full);
            self.boot();
            self.session.look_at_all(&mut self.world);
            self.judge_members(&full.concat());
            if self.random.chance(2, 3) {
                self.bring_back();
                if self.random.chance(1, 2) {
                    self.rest();
                }
            }
        }
        self.bring_back();
        self.rest();
        self.tally
    }

    fn rest(&mut self) {
        self.session.rest(&mut self.world);
        self.session.look_at_all(&mut self.world);
        self.session.rest(&mut self.world);
        for span in &self.spans {
            assert_eq!(
                self.world.status(*span).map(|status| status.health),
                Some(Health::Optimal),
                "{}",
                self.world.dump()
            );
            let complaints = Members::of(&self.world, *span).complaints();
            assert!(complaints.is_empty(), "{complaints:#?}\n{}", self.world.dump());
        }
    }
}

fn is_full(state: MemberState) -> bool {
    state == MemberState::InSync
}

/// Whether the drive is a member, or is about to become one.
fn is_taken(state: MemberState) -> bool {
    matches!(state, MemberState::InSync | MemberState::Rebuilding { .. } | MemberState::Spare)
}

fn superblock_of(world: &World, span: ArrayId) -> Superblock {
    world.status(span).and_then(|status| status.superblock).expect("spans have superblocks")
}

fn outer_superblock(world: &mut World, span: ArrayId) -> Superblock {
    let capacity = world.controller().capacity(span).expect("it runs").sectors_floor();
    let lba = superblock_lba(MinorVersion::V1_2, capacity).expect("it has room");
    let bytes = world.read(span, lba.offset().bytes().get(), SUPERBLOCK_BYTES_MAX as u64).expect("it is read");
    Superblock::decode(&bytes, MinorVersion::V1_2, capacity).unwrap_or_else(|error| panic!("span {span}: {error:?}"))
}

#[test]
fn members_of_both_spans_are_lost_and_filled_again_over_and_over() {
    let tally = Mutex::new(Tally::default());
    two_at_a_time(seeds(8, 400).chain(TAIL_MOVED), |seed| {
        let _case = Case::new(seed, "RAID 50, mirrored journal");
        let found = Machine::new(seed).run();
        tally.lock().expect("nothing panics with it").add(&found);
    });
    let tally = tally.into_inner().expect("nothing panics with it");
    let Tally { lost, wiped, filling, filled_in_part, joins, heals } = tally;
    assert!(
        lost >= 20 && wiped >= 10 && filling >= 20 && filled_in_part >= 5 && joins >= 5 && heals >= 10,
        "{tally:?}"
    );
}
