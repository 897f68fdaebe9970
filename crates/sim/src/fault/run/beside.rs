//! A second array next to the array of the run: it has the same journal, the same cache and the same pool. No drive of
//! it fails, so nothing of it may ever be lost, whatever becomes of the other array.

use openraid_core::admin::{AdminCommand, Session as JournalSession};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_format::Uuid;
use openraid_units::{DriveId, Sectors};

use super::journal::Begun;
use super::{Done, Run, Stop};
use crate::drive::{DriveSpec, Fresh};
use crate::fault::scenario::{Load, Scenario};
use crate::oracle::members::superblock_on;
use crate::oracle::session::Workload;
use crate::oracle::{Content, Members, Session};
use crate::random::Random;
use crate::rig::{RigOptions, BEFORE_DATA};
use crate::shape::Shape;
use crate::world::World;

/// The source of its random draws.
const BESIDE: u64 = 223;
/// Data of each member.
const DATA: Sectors = Sectors::kib(128);
const CHUNK: Sectors = Sectors::kib(8);

/// The second array.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) session: Session,
    uuid: Uuid,
    load: Workload,
    random: Random,
}

impl Beside {
    pub(super) fn new(world: &mut World, scenario: &Scenario) -> Option<Self> {
        if !scenario.extras.beside {
            return None;
        }
        let mut random = Random::derived(scenario.seed, BESIDE);
        let shape = *random.pick(&[Shape::raid1(2), Shape::raid5(3, CHUNK), Shape::raid6(4, CHUNK)]);
        let shape = Shape { data: DATA, ..shape };
        let spec = DriveSpec { fresh: Fresh::Zeroes, ..scenario.drive };
        let spec = DriveSpec { capacity: BEFORE_DATA + DATA, block: shape.block(0), ..spec };
        let drives: Vec<DriveId> = (0..shape.members).map(|_| world.add_drive(spec)).collect();
        let array = world.create(&shape, &drives, &RigOptions::new(scenario.seed ^ BESIDE));
        let uuid = superblock_on(world, drives[0]).expect("it was created").set_uuid;
        let session = Session::new(world, array, (scenario.seed ^ BESIDE) & 0xffff_ffff, Content::Zeroes, true);
        let Load { depth, align, mix, .. } = scenario.load;
        let align = align.max(512);
        let range = 0..session.capacity() / align * align;
        let load = Workload { depth, len_max: 16 << 10, align, range, mix };
        Some(Self { session, uuid, load, random })
    }
}

impl Run<'_> {
    /// Its hosts make requests, too.
    pub(super) fn ask_beside(&mut self) {
        let Some(beside) = &mut self.beside else { return };
        if beside.session.outstanding() < beside.load.depth && beside.random.chance(1, 2) {
            beside.session.ask_random(&mut self.world, &beside.load);
        }
        self.hear_beside();
    }

    pub(super) fn hear_beside(&mut self) {
        if let Some(beside) = &mut self.beside {
            beside.session.hear(&mut self.world);
        }
    }

    pub(super) fn drain_beside(&mut self) -> Done {
        while self.beside.as_ref().is_some_and(|beside| beside.session.outstanding() > 0) {
            self.event()?;
        }
        Ok(())
    }

    /// Whether the journal holds acknowledged writes of it.
    pub(super) fn is_beside_in_session(&self) -> bool {
        let array = self.beside.as_ref().map(|beside| beside.session.array);
        let status = array.and_then(|array| self.world.status(array));
        status.is_some_and(|status| status.session != JournalSession::Off)
    }

    /// The power goes, or the server is killed.
    pub(super) fn end_beside(&mut self, is_power_cut: bool, cached: bool) {
        let Some(beside) = &mut self.beside else { return };
        beside.session.forget();
        match (is_power_cut, cached) {
            (true, _) => beside.session.versions_mut().cut(),
            (false, true) => beside.session.versions_mut().cut_in_part(),
            (false, false) => beside.session.versions_mut().kill(),
        }
    }

    /// Start it. Returns false if the power must be cut now.
    pub(super) fn start_beside(&mut self, events: &mut Option<u64>) -> Result<bool, Stop> {
        let Some(uuid) = self.beside.as_ref().map(|beside| beside.uuid) else { return Ok(true) };
        let mut candidates = self.world.candidates();
        candidates.retain(|candidate| candidate.superblock.set_uuid == uuid);
        let plan = assemble::plan(&candidates, AssembleOptions::default())
            .map_err(|error| Stop::Lost(format!("the second array is refused: {error}")))?;
        match self.start(AdminCommand::StartSet(plan), events)? {
            Begun::Started(array) => {
                if let Some(beside) = &mut self.beside {
                    beside.session.array = array;
                }
                Ok(true)
            }
            Begun::PowerGoes => Ok(false),
            Begun::Done => Err(Stop::Lost("the command started nothing".into())),
            Begun::Refused(error) => Err(Stop::Lost(format!("the second array is not started: {error}"))),
        }
    }

    /// All of it is read and compared.
    pub(super) fn look_at_beside(&mut self) -> Done {
        let Some(beside) = &mut self.beside else { return Ok(()) };
        beside.session.wrong = Some(Vec::new());
        let (capacity, mut at) = (beside.session.capacity(), 0);
        while at < capacity {
            let end = (at + (64 << 10)).min(capacity);
            beside.session.ask(&mut self.world, openraid_core::events::RequestKind::Read, at..end);
            at = end;
        }
        self.drain_beside()?;
        self.judge_beside()
    }

    /// Judge its reads.
    pub(super) fn judge_beside(&mut self) -> Done {
        let Some(beside) = &mut self.beside else { return Ok(()) };
        match beside.session.wrong.as_mut().and_then(Vec::pop) {
            Some(wrong) => {
                let text = wrong.text.clone();
                Err(self.lost(format!("a read found what no write explains, in the second array: {text}")))
            }
            None => Ok(()),
        }
    }

    /// At rest its redundancy matches, if its resync has ended.
    pub(super) fn judge_beside_members(&mut self) -> Done {
        let Some(array) = self.beside.as_ref().map(|beside| beside.session.array) else { return Ok(()) };
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
