//! Servers of remote members that are restarted while an array uses them, and have lost what their caches held.

mod support;

use std::path::PathBuf;
use std::time::Duration;

use openraid_core::admin::{AdminCommand, Health, MemberState, Policy, WriteCache};
use openraid_core::check_results::{ScrubMode, ScrubOutcome};
use openraid_core::limits::Limits;
use openraid_core::reason::FailReason;
use openraid_format::MdLevel;
use openraid_nbd::NbdCommand;
use openraid_runtime::ServiceConfig;
use openraid_units::{ArrayId, Bytes, Nanos, Sectors};
use support::client::Client;
use support::forgetful::{Forgetful, Mood};
use support::random::Random;
use support::{noise, request, small_limits, uri, Folder, Server};

const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const WRITE: NbdCommand = NbdCommand::Write { fua: false };
const BLOCK: usize = 4096;
/// Few stripes, so that most writes read what was written a moment ago.
const BLOCKS: usize = 96;
const MEMBER_BYTES: usize = 16 << 20;

/// An array whose members are all on such servers.
struct Rig {
    far: Vec<Forgetful>,
    server: Server,
    array: ArrayId,
    is_redundant: bool,
    random: Random,
    /// The generation of each block that was acknowledged last.
    acknowledged: Vec<u64>,
    generation: u64,
    _folder: Folder,
}

fn patient(config: ServiceConfig) -> ServiceConfig {
    let base = small_limits();
    let cache = Bytes::mib(8);
    let limits = Limits { command_timeout: Nanos::from_secs(60), cache, pool: base.pool + cache, ..base };
    ServiceConfig { limits, ..config }
}

fn block(number: usize, generation: u64) -> Vec<u8> {
    noise(generation * 1000 + number as u64, BLOCK)
}

impl Rig {
    fn new(name: &str, level: MdLevel, members: usize, ppl: bool) -> Self {
        let folder = Folder::new(name);
        let sockets: Vec<PathBuf> = (0..members).map(|nth| folder.path(&format!("far{nth}"))).collect();
        let far = sockets.iter().map(|socket| Forgetful::start(socket, MEMBER_BYTES)).collect();
        let server = Server::with(name, patient);
        let names: Vec<String> = sockets.iter().map(|socket| uri(socket, "")).collect();
        let chunk = if level == MdLevel::Raid1 { Sectors(0) } else { Sectors::kib(16) };
        let mut wanted = request(level, chunk, &names);
        wanted.ppl = ppl;
        // The copies or the parity of all zeroes fit.
        let array = server.create(wanted);
        let random = Random::new(members as u64 + 7);
        let is_redundant = level != MdLevel::Raid0;
        Self { far, server, array, is_redundant, random, acknowledged: vec![0; BLOCKS], generation: 0, _folder: folder }
    }

    fn fill(&mut self, client: &mut Client) {
        self.generation = 1;
        for number in 0..BLOCKS {
            self.acknowledged[number] = 1;
            let answer = client.call(WRITE, (number * BLOCK) as u64, BLOCK as u64, &block(number, 1));
            assert_eq!(answer.result, Ok(()));
        }
    }

    /// Writes to this many different blocks at once, not waited for; `settle` does.
    fn begin_writes(&mut self, client: &mut Client, count: usize) {
        self.generation += 1;
        let first = self.random.below(BLOCKS);
        for nth in 0..count {
            let number = (first + nth * 5) % BLOCKS;
            self.acknowledged[number] = self.generation;
            let write = client.request(WRITE, (number * BLOCK) as u64, BLOCK as u64);
            client.send(write, &block(number, self.generation));
        }
    }

    fn settle(client: &mut Client, count: usize) {
        (0..count).for_each(|_| assert_eq!(client.wait().1.result, Ok(())));
    }

    fn look(&self, client: &mut Client, when: &str) {
        for number in 0..BLOCKS {
            let answer = client.call(READ, (number * BLOCK) as u64, BLOCK as u64, &[]);
            assert_eq!(answer.result, Ok(()));
            let wanted = self.acknowledged[number];
            if answer.data != block(number, wanted) {
                let older = (0..wanted).rev().find(|old| answer.data == block(number, *old));
                panic!("{when}: block {number} is not what was acknowledged as {wanted}, but {older:?}");
            }
        }
    }

    fn states(&self) -> Vec<MemberState> {
        let status = self.server.handle.status().expect("it runs");
        let view = status.arrays.into_iter().find(|view| view.status.array == self.array).expect("the array runs");
        view.status.members.into_iter().map(|member| member.state).collect()
    }

    /// All members are in use, and parity or copies fit.
    fn expect_whole(&self) {
        let status = self.server.handle.status().expect("it runs");
        assert_eq!(status.arrays[0].status.health, Health::Optimal);
        assert!(self.states().iter().all(|state| *state == MemberState::InSync), "{:?}", self.states());
        if !self.is_redundant {
            return;
        }
        let order = AdminCommand::Scrub { array: self.array, mode: ScrubMode::Check };
        self.server.handle.admin(order).expect("it can be checked");
        for _ in 0..1200 {
            let status = self.server.handle.status().expect("it runs");
            if let Some(scrub) = &status.arrays[0].status.last_scrub {
                return assert_eq!(scrub.outcome, ScrubOutcome::Clean);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the check does not end");
    }
}

/// Restarts in the middle of writes, between them, and one after the other.
fn members_are_restarted(mut rig: Rig) {
    let mut client = rig.server.connect();
    rig.fill(&mut client);
    for round in 0..12 {
        let count = 24;
        rig.begin_writes(&mut client, count);
        if round % 3 == 0 {
            Rig::settle(&mut client, count);
        }
        let victim = rig.random.below(rig.far.len());
        let other = rig.random.below(rig.far.len());
        rig.far[victim].restart(&mut rig.random);
        if round % 4 == 1 {
            rig.far[other].restart(&mut rig.random);
        }
        if round % 3 != 0 {
            Rig::settle(&mut client, count);
        }
        rig.look(&mut client, "after a restart");
        rig.begin_writes(&mut client, count);
        Rig::settle(&mut client, count);
        if round % 2 == 0 {
            assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
        }
        rig.far[victim].restart(&mut rig.random);
        rig.look(&mut client, "after one more restart");
    }
    rig.expect_whole();
}

#[test]
fn nothing_acknowledged_is_lost_with_the_cache_of_a_mirrors_member() {
    members_are_restarted(Rig::new("far-mirror", MdLevel::Raid1, 2, false));
}

#[test]
fn nothing_acknowledged_is_lost_with_the_cache_of_a_member_with_parity() {
    members_are_restarted(Rig::new("far-parity", MdLevel::Raid5, 4, false));
}

#[test]
fn nothing_acknowledged_is_lost_with_the_cache_of_a_member_with_a_partial_parity_log() {
    members_are_restarted(Rig::new("far-ppl", MdLevel::Raid5, 3, true));
}

#[test]
fn nothing_acknowledged_is_lost_with_the_cache_of_a_stripes_member() {
    members_are_restarted(Rig::new("far-stripe", MdLevel::Raid0, 2, false));
}

#[test]
fn nothing_acknowledged_is_lost_when_destage_meets_a_restart() {
    let rig = Rig::new("far-cached", MdLevel::Raid6, 5, false);
    let policy = Policy { write_cache: WriteCache::Volatile, ..Policy::default() };
    rig.server.handle.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("it may");
    members_are_restarted(rig);
}

#[test]
fn a_server_that_announces_its_end_is_waited_for() {
    let mut rig = Rig::new("far-leaving", MdLevel::Raid1, 2, false);
    let mut client = rig.server.connect();
    rig.fill(&mut client);
    rig.far[1].set_mood(Mood::Leaving);
    rig.begin_writes(&mut client, 8);
    std::thread::sleep(Duration::from_millis(50));
    rig.far[1].restart(&mut rig.random);
    Rig::settle(&mut client, 8);
    rig.look(&mut client, "after the end");
    rig.expect_whole();
}

#[test]
fn early_flushes_bound_the_writes_that_are_kept() {
    let mut rig = Rig::new("far-bounded", MdLevel::Raid0, 2, false);
    let mut client = rig.server.connect();
    let before: u64 = rig.far.iter().map(Forgetful::flushes).sum();
    let bytes = noise(3, 1 << 20);
    for nth in 0..200 {
        let answer = client.call(WRITE, (nth % 16 + 4) << 20, 1 << 20, &bytes);
        assert_eq!(answer.result, Ok(()));
    }
    let flushes = rig.far.iter().map(Forgetful::flushes).sum::<u64>() - before;
    // 100 MiB went to each, and 16 MiB ask for a flush.
    assert!(flushes >= 8, "{flushes} flushes");
    rig.far[0].restart(&mut rig.random);
    for nth in 0..16 {
        assert!(client.call(READ, (nth + 4) << 20, 1 << 20, &[]).data == bytes);
    }
}

#[test]
fn an_early_flush_that_fails_is_no_secret() {
    let rig = Rig::new("far-failing", MdLevel::Raid1, 2, false);
    let mut client = rig.server.connect();
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
    rig.far[1].set_mood(Mood::FailingFlushes);
    let bytes = noise(5, 1 << 20);
    for nth in 0..40 {
        assert_eq!(client.call(WRITE, (nth % 8) << 20, 1 << 20, &bytes).result, Ok(()));
    }
    rig.far[1].set_mood(Mood::Serving);
    assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()), "the other copy is flushed");
    assert!(rig.states().contains(&MemberState::Faulty(FailReason::FlushFailed)), "{:?}", rig.states());
}

#[test]
fn another_drive_under_the_same_name_and_an_older_state_are_not_taken_for_the_member() {
    for is_older in [false, true] {
        let mut rig = Rig::new("far-other", MdLevel::Raid1, 2, false);
        let mut client = rig.server.connect();
        let empty = rig.far[1].exchange(vec![0; MEMBER_BYTES]);
        rig.far[1].exchange(empty.clone());
        rig.fill(&mut client);
        assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
        std::thread::sleep(Duration::from_millis(500));
        rig.far[1].kill(&mut rig.random);
        rig.far[1].exchange(if is_older { empty } else { vec![0; MEMBER_BYTES] });
        rig.far[1].start_again();
        rig.begin_writes(&mut client, 4);
        Rig::settle(&mut client, 4);
        rig.look(&mut client, "with another drive");
        assert!(rig.states().contains(&MemberState::Faulty(FailReason::Gone)), "older: {is_older}: {:?}", rig.states());
    }
}
