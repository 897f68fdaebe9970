//! A second array next to the array of the run: it has the same journal, the same cache and the same pool. No drive of
//! it fails, so nothing of it may ever be lost, whatever becomes of the other array.

use openraid_core::admin::{AdminCommand, Session as JournalSession};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_format::Uuid;
use openraid_units::{DriveId, Sectors};

use super::journal::BeginResult;
use super::{Run, RunResult, Stop};
use crate::drive::{DriveSpec, FreshContent};
use crate::fault::scenario::{Scenario, ScenarioLoad};
use crate::oracle::knowing_host::Workload;
use crate::oracle::redundancy::superblock_on;
use crate::oracle::{Content, HostSession, Members};
use crate::random::Random;
use crate::rig::{RigOptions, BEFORE_DATA};
use crate::test_arrays::ArrayShape;
use crate::world::World;

/// The source of its random draws.
const BESIDE: u64 = 223;
/// Data of each member.
pub(super) const DATA: Sectors = Sectors::kib(128);
const CHUNK: Sectors = Sectors::kib(8);

#[derive(Debug)]
pub(super) struct SecondArray {
    pub(super) session: HostSession,
    uuid: Uuid,
    load: Workload,
    random: Random,
}

impl SecondArray {
    pub(super) fn new(world: &mut World, scenario: &Scenario) -> Option<Self> {
        if !scenario.extras.beside {
            return None;
        }
        let mut random = Random::derived(scenario.seed, BESIDE);
        let shape = *random.pick(&[ArrayShape::raid1(2), ArrayShape::raid5(3, CHUNK), ArrayShape::raid6(4, CHUNK)]);
        let shape = ArrayShape { data: DATA, ..shape };
        let spec = DriveSpec { fresh: FreshContent::Zeroes, ..scenario.drive };
        let spec = DriveSpec { capacity: BEFORE_DATA + DATA, block: shape.block(0), ..spec };
        let drives: Vec<DriveId> = (0..shape.members).map(|_| world.add_drive(spec)).collect();
        let array = world.create(&shape, &drives, &RigOptions::new(scenario.seed ^ BESIDE));
        let uuid = superblock_on(world, drives[0]).expect("it was created").set_uuid;
        let session = HostSession::new(world, array, (scenario.seed ^ BESIDE) & 0xffff_ffff, Content::Zeroes, true);
        let ScenarioLoad { depth, align, mix, .. } = scenario.load;
        let align = align.max(512);
        let range = 0..session.capacity() / align * align;
        let load = Workload { depth, len_max: 16 << 10, align, range, mix };
        Some(Self { session, uuid, load, random })
    }
}

impl Run<'_> {
    /// Its hosts make requests, too.
    pub(super) fn ask_second_array(&mut self) {
        let Some(second_array) = &mut self.second_array else { return };
        if second_array.session.outstanding() < second_array.load.depth && second_array.random.chance(1, 2) {
            second_array.session.ask_random(&mut self.world, &second_array.load);
        }
        self.hear_second_array();
    }

    pub(super) fn hear_second_array(&mut self) {
        if let Some(second_array) = &mut self.second_array {
            second_array.session.hear(&mut self.world);
        }
    }

    pub(super) fn drain_second_array(&mut self) -> RunResult {
        while self.second_array.as_ref().is_some_and(|second_array| second_array.session.outstanding() > 0) {
            self.event()?;
        }
        Ok(())
    }

    /// Whether the journal holds acknowledged writes of it.
    pub(super) fn is_second_array_in_session(&self) -> bool {
        let array = self.second_array.as_ref().map(|second_array| second_array.session.array);
        let status = array.and_then(|array| self.world.status(array));
        status.is_some_and(|status| status.session != JournalSession::Off)
    }

    /// The power goes, or the server is killed.
    pub(super) fn end_second_array(&mut self, is_power_cut: bool, cached: bool) {
        let Some(second_array) = &mut self.second_array else { return };
        second_array.session.forget();
        match (is_power_cut, cached) {
            (true, _) => second_array.session.versions_mut().cut(),
            (false, true) => second_array.session.versions_mut().cut_in_part(),
            (false, false) => second_array.session.versions_mut().kill(),
        }
    }

    /// Start it. Returns false if the power must be cut now.
    pub(super) fn start_second_array(&mut self, events: &mut Option<u64>) -> Result<bool, Stop> {
        let Some(uuid) = self.second_array.as_ref().map(|second_array| second_array.uuid) else { return Ok(true) };
        let mut candidates = self.world.candidates();
        candidates.retain(|candidate| candidate.superblock.set_uuid == uuid);
        let plan = assemble::plan(&candidates, AssembleOptions::default())
            .map_err(|error| Stop::Lost(format!("the second array is refused: {error}")))?;
        match self.start(AdminCommand::StartSet(plan), events)? {
            BeginResult::Started(array) => {
                if let Some(second_array) = &mut self.second_array {
                    second_array.session.array = array;
                }
                Ok(true)
            }
            BeginResult::PowerGoes => Ok(false),
            BeginResult::Done => Err(Stop::Lost("the command started nothing".into())),
            BeginResult::Refused(error) => Err(Stop::Lost(format!("the second array is not started: {error}"))),
        }
    }

    /// All of it is read and compared.
    pub(super) fn look_at_second_array(&mut self) -> RunResult {
        let Some(second_array) = &mut self.second_array else { return Ok(()) };
        second_array.session.wrong = Some(Vec::new());
        let (capacity, mut at) = (second_array.session.capacity(), 0);
        while at < capacity {
            let end = (at + (64 << 10)).min(capacity);
            second_array.session.ask(&mut self.world, openraid_core::events::RequestKind::Read, at..end);
            at = end;
        }
        self.drain_second_array()?;
        self.judge_second_array()
    }

    /// Judge its reads.
    pub(super) fn judge_second_array(&mut self) -> RunResult {
        let Some(second_array) = &mut self.second_array else { return Ok(()) };
        match second_array.session.wrong.as_mut().and_then(Vec::pop) {
            Some(wrong) => {
                let text = wrong.text.clone();
                Err(self.lost(format!("a read found what no write explains, in the second array: {text}")))
            }
            None => Ok(()),
        }
    }

    /// At rest its redundancy matches, if its resync has ended.
    pub(super) fn judge_members_of_second_array(&mut self) -> RunResult {
        let Some(array) = self.second_array.as_ref().map(|second_array| second_array.session.array) else {
            return Ok(());
        };
        let rests =
            |status: openraid_core::admin::ArrayStatus| status.task.is_none() && status.consistent_to == Sectors::MAX;
        if !self.world.status(array).is_some_and(rests) {
            return Ok(());
        }
        let misfits = Members::of(&self.world, array).misfits();
        match misfits.first() {
            Some(first) => Err(self.lost(format!("redundancy does not fit (the second array): {}", first.text))),
            None => Ok(()),
        }
    }
}
