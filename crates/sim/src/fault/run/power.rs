//! The end of a controller, regular or not, and the start of the next.

use std::collections::BTreeSet;

use openraid_core::admin::{AdminCommand, AdminOutcome, Health, MemberState, MemberStatus, Session, TaskKind};
use openraid_core::array::assemble::{self, AssembleOptions, Assembly};
use openraid_core::array::membership::Membership;
use openraid_core::events::RequestKind;
use openraid_core::slot_set::SlotSet;
use openraid_units::{ArrayId, DriveId, Nanos, Sectors, Slot, SECTOR_BYTES};

use super::journal::BeginResult;
use super::{outer_superblock, Run, RunResult, Stop};
use crate::fault::fault_names::Fault;
use crate::fault::scenario::ControllerEnd;
use crate::fault::verdict::Excuse;

/// Limit of the wait for an array to become clean, in steps of [`CLEAN_STEP`].
const CLEAN_STEPS: u32 = 40;
/// A step of that wait.
const CLEAN_STEP: Nanos = Nanos::from_millis(250);
/// Limit of the events of an assembly before a late power cut.
const CUT_AFTER_MAX: u64 = 800;
/// Limit of consecutive power cuts during one assembly.
const CUTS_IN_ASSEMBLY_MAX: u64 = 3;

/// The fate of lost drives and journal devices while the power is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LostDriveFate {
    /// They stay away.
    StayAway,
    /// All return with their content.
    ComeBack,
}

impl Run<'_> {
    /// Cut the power. A member is lost with it.
    pub(super) fn cut_and_lose(&mut self, again: Option<u64>) -> RunResult {
        self.note_journal();
        if !self.prepare_end(LostDriveFate::StayAway)? {
            return Ok(());
        }
        let Some((set, slot, drive)) = self.victim() else { return self.end(ControllerEnd::Cut, again) };
        // Parity without a journal or a log has the write hole, and promises nothing against it.
        let closed = self.is_journalled(set) || self.is_recorded(set);
        if self.bounded() && self.sets[set].has_parity() && !closed {
            return self.end(ControllerEnd::Cut, again);
        }
        if self.is_recorded(set) {
            self.give_up_in_flight(set, slot);
        }
        for set in &mut self.sets {
            set.suspect_what_went_wrong(&self.world);
        }
        self.log(|| format!("  {} goes with the power", self.name(drive)));
        self.count(Fault::CutAndLoss);
        self.count_end(ControllerEnd::Cut);
        self.lost.push(drive);
        self.go_down(ControllerEnd::Cut)?;
        self.sets[set].whole = false;
        self.world.drive_mut(drive).faults.gone = true;
        self.boot(again)
    }

    /// Cut the power. Lost drives return with it, as with a loose cable.
    pub(super) fn cut_and_back(&mut self, again: Option<u64>) -> RunResult {
        for set in &mut self.sets {
            set.suspect_what_went_wrong(&self.world);
        }
        if !self.prepare_end(LostDriveFate::ComeBack)? {
            self.log(|| "  passed over: the level does not promise to survive that now".into());
            return Ok(());
        }
        self.give_up_beside_failures();
        self.count_end(ControllerEnd::Cut);
        self.go_down(ControllerEnd::Cut)?;
        for drive in std::mem::take(&mut self.lost) {
            self.log(|| format!("  {} is back", self.name(drive)));
            self.count(Fault::Stale);
            self.heal(drive);
        }
        self.repair_journal_drives();
        self.boot(again)
    }

    /// After the cut, superblocks may say that a member has failed, although its drive has returned.
    fn give_up_beside_failures(&mut self) {
        for set in (0..self.sets.len()).filter(|set| self.is_recorded(*set)).collect::<Vec<_>>() {
            let Some(status) = self.world.status(self.sets[set].array) else { continue };
            let failing = |member: &&MemberStatus| matches!(member.state, MemberState::Failing(_));
            let slots: Vec<Slot> = status.members.iter().filter(failing).filter_map(|member| member.slot).collect();
            slots.into_iter().for_each(|slot| self.give_up_in_flight(set, slot));
        }
    }

    /// A log has the parity of the data that was not being written. From the data that was being written, the part on
    /// the lost member is lost with it, and no other.
    pub(super) fn give_up_in_flight(&mut self, set: usize, slot: Slot) {
        let shape = &self.scenario.shape;
        let block = (0..shape.members).map(|slot| shape.block(slot).bytes().get()).max().unwrap_or(1);
        let in_flight = self.session.versions_mut().in_flight(block);
        let sectors =
            in_flight.into_iter().flat_map(|range| range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES));
        let set = &self.sets[set];
        let goes = |sector: &u64| set.stands(*sector).iter().any(|(place, _)| *place == slot);
        let sectors: BTreeSet<u64> = sectors.filter(goes).collect();
        self.give_up_sectors(sectors);
    }

    /// End the controller, and start the next one.
    pub(super) fn end(&mut self, end: ControllerEnd, again: Option<u64>) -> RunResult {
        for set in &mut self.sets {
            set.suspect_what_went_wrong(&self.world);
        }
        if end == ControllerEnd::Stop {
            self.drain()?;
            self.drain_second_array()?;
            if self.stop() {
                return self.boot(again);
            }
            // A server that does not stop is killed.
        } else if !self.prepare_end(LostDriveFate::StayAway)? {
            self.log(|| "  passed over: the level does not promise to survive that now".into());
            return Ok(());
        }
        self.count_end(end);
        self.go_down(end)?;
        self.boot(again)
    }

    /// Prepare for the end of power. Returns whether it may be cut now. In bounded runs, a set with parity that is not
    /// whole must be clean.
    pub(super) fn prepare_end(&mut self, lost: LostDriveFate) -> Result<bool, Stop> {
        for set in &mut self.sets {
            set.note_places(&self.world);
        }
        if !self.bounded() {
            return Ok(true);
        }
        if !self.await_promises(lost)? {
            return Ok(false);
        }
        if !self.fragile(lost) {
            return Ok(true);
        }
        // A clean array can lose its power at the aimed moment.
        if !self.scenario.aimed || !self.is_clean() {
            self.come_to_be_clean()?;
        }
        for number in 0..self.sets.len() {
            let journalled = self.is_journalled(number) || self.is_recorded(number);
            let set = &mut self.sets[number];
            set.note_places(&self.world);
            if !journalled {
                set.doubt_what_is_on_its_way(&self.world, true);
            }
        }
        let open = self.sets.iter().any(|set| set.has_parity() && !set.doubt.is_empty());
        // Writes after the flush may be about to start.
        let writes = |set| self.is_fragile(set, lost) && !self.is_recorded(set) && self.is_active(set);
        let marked = (0..self.sets.len()).any(writes);
        Ok(!marked && (!open || !self.fragile(lost)))
    }

    /// A host flushes, and the arrays become clean if they can.
    fn come_to_be_clean(&mut self) -> RunResult {
        self.session.ask(&mut self.world, RequestKind::Flush, 0..0);
        self.drain()?;
        for _ in 0..CLEAN_STEPS {
            self.wait(CLEAN_STEP)?;
            if self.is_clean() {
                break;
            }
        }
        if !self.is_clean() {
            self.rest()?;
        }
        // At some moment of the work without hosts.
        let events = self.random.below(4);
        self.happen(events)
    }

    /// Whether a set with parity is not whole.
    fn fragile(&self, lost: LostDriveFate) -> bool {
        (0..self.sets.len()).any(|set| self.is_fragile(set, lost))
    }

    fn is_fragile(&self, set: usize, lost: LostDriveFate) -> bool {
        if self.is_journalled(set) || !self.sets[set].has_parity() {
            return false;
        }
        let recorded = self.is_recorded(set);
        let set = &self.sets[set];
        let Some(status) = self.world.status(set.array) else { return true };
        if !set.scarred(&self.world).is_empty() {
            return true;
        }
        let absent = set.absent(&self.world, &status);
        let comes_back =
            |slot| set.place_of(slot).is_some_and(|place| place.is_full() && self.lost.contains(&place.drive));
        if lost == LostDriveFate::StayAway || !absent.into_iter().all(comes_back) {
            return !absent.is_empty() || !set.is_whole_on_disk(&self.world);
        }
        if recorded {
            // The cut may make superblocks durable that call the member faulty. If logs have the rows, this loses no
            // data.
            return absent.len() > 1 || (absent.is_empty() && !set.is_whole_on_disk(&self.world));
        }
        let noticed = status.members.iter().any(|member| matches!(member.state, MemberState::Failing(_)));
        noticed || !set.is_whole_on_disk(&self.world)
    }

    fn is_clean(&self) -> bool {
        (0..self.sets.len()).all(|set| !self.is_active(set))
    }

    /// Whether the members' superblocks say that writes may be under way, or are about to.
    fn is_active(&self, set: usize) -> bool {
        self.world.status(self.sets[set].array).is_some_and(|status| status.active)
    }

    pub(super) fn count_end(&mut self, end: ControllerEnd) {
        let fault = match end {
            ControllerEnd::Cut => Fault::Cut,
            ControllerEnd::CutInPart => Fault::CutInPart,
            ControllerEnd::Kill | ControllerEnd::Stop => Fault::Kill,
        };
        self.count(fault);
        match fault {
            Fault::Kill => self.account.borrow_mut().counts.kills += 1,
            _ => self.account.borrow_mut().counts.cuts += 1,
        }
        if matches!(end, ControllerEnd::Cut | ControllerEnd::CutInPart)
            && self.sets.iter().any(|set| set.writes_metadata(&self.world))
        {
            self.count(Fault::CutInMetadata);
        }
        let tasks: Vec<_> = self.sets.iter().filter_map(|set| self.world.status(set.array)?.task).collect();
        for task in tasks {
            self.count(match task.kind {
                TaskKind::Rebuild | TaskKind::Replace => Fault::CutInRebuild,
                TaskKind::Resync => Fault::CutInResync,
                TaskKind::Reshape => Fault::CutInReshape,
                TaskKind::Check | TaskKind::Repair => Fault::CutInScrub,
            });
        }
    }

    /// Stop regularly. Returns false if the arrays do not stop.
    pub(super) fn stop(&mut self) -> bool {
        let begun = self.session.versions_mut().begin_flush();
        let outer = Some(self.session.array).filter(|_| self.sets.len() > 1);
        let arrays: Vec<ArrayId> = outer.into_iter().chain(self.sets.iter().map(|set| set.array)).collect();
        let arrays =
            arrays.into_iter().chain(self.second_array.as_ref().map(|second_array| second_array.session.array));
        for array in arrays.collect::<Vec<_>>() {
            let result = self.admin(AdminCommand::Stop { array });
            if result.is_err() {
                assert!(!self.bounded(), "array {array} does not stop: {result:?}\n{}", self.world.dump());
                return false;
            }
        }
        self.world.run_until_idle();
        for set in &mut self.sets {
            set.note_current(&self.world);
            // Including members that are absent when the next controller starts.
            set.suspect_what_went_wrong(&self.world);
            if set.is_dirty_on_disk(&self.world) {
                // The stop failed with rows half written.
                set.doubt_what_is_on_its_way(&self.world, false);
            }
        }
        if self.bounded() {
            self.session.versions_mut().end_flush(begun);
        }
        true
    }

    /// Remove the controller.
    pub(super) fn go_down(&mut self, end: ControllerEnd) -> RunResult {
        self.session.hear(&mut self.world);
        self.hear_second_array();
        self.note_journal();
        self.sets.iter_mut().for_each(|set| set.note_places(&self.world));
        let sound: Vec<_> = (0..self.sets.len()).map(|set| self.sound_members(set)).collect();
        if self.scenario.aimed {
            (0..self.sets.len()).for_each(|set| self.note_whole(set));
        }
        for number in 0..self.sets.len() {
            let journalled = self.is_journalled(number) || self.is_recorded(number);
            if self.scenario.journal.is_some() {
                let session = self.world.status(self.sets[number].array).map(|status| status.session);
                self.log(|| format!("  the journal {} {}", protects(session), self.set_name(number)));
            }
            let set = &mut self.sets[number];
            set.journalled |= journalled;
            if !set.journalled {
                set.doubt_what_is_on_its_way(&self.world, matches!(end, ControllerEnd::Cut | ControllerEnd::CutInPart));
            }
            set.note_current(&self.world);
        }
        self.session.history.mark(self.world.now(), &end.to_string());
        match end {
            ControllerEnd::Cut => {
                self.log_unanswered(|_| true);
                self.session.cut_power(&mut self.world);
            }
            ControllerEnd::CutInPart => {
                let mask = self.random.bits();
                let goes = |drive: DriveId| mask >> (drive.0 % 64) & 1 == 1;
                self.log_partial_cut(goes);
                self.world.cut_power_of(goes);
                self.session.forget();
                self.session.versions_mut().cut_in_part();
            }
            ControllerEnd::Kill | ControllerEnd::Stop => {
                self.log_unanswered(|_| false);
                self.world.kill();
                self.session.forget();
                if self.cached || self.has_dropped_writes() {
                    self.session.versions_mut().cut_in_part();
                } else {
                    self.session.versions_mut().kill();
                }
            }
        }
        let cached = self.cached || self.has_dropped_writes() || end == ControllerEnd::CutInPart;
        self.end_second_array(end == ControllerEnd::Cut, cached);
        for (set, sound) in sound.iter().enumerate() {
            if !self.sets[set].journalled || self.is_recorded_by_log(set) {
                self.judge_cover(set, sound)?;
            }
            self.open_hole_of_defects(set);
        }
        Ok(())
    }

    /// Whether partial parity logs, and no journal, have the rows of a set.
    fn is_recorded_by_log(&self, set: usize) -> bool {
        self.sets[set].logged && self.scenario.journal.is_none()
    }

    /// Whether a flush has failed and dropped the writes that it covered. Until the other members record that, the next
    /// controller takes the drive as a full member, but the unflushed writes are lost.
    fn has_dropped_writes(&self) -> bool {
        let mut places = self.sets.iter().flat_map(|set| set.places());
        places.any(|place| {
            let faults = &self.world.drive(place.drive).faults;
            faults.flushes && !faults.torn.is_empty()
        })
    }

    /// Start a new controller on the content of the drives.
    pub(super) fn boot(&mut self, again: Option<u64>) -> RunResult {
        let mut cuts = again.map_or(0, |_| 1 + self.random.below(CUTS_IN_ASSEMBLY_MAX));
        self.journal.resyncs_cut = 0;
        loop {
            let resyncs_cut = self.journal.resyncs_cut;
            self.cached = false;
            self.world.boot();
            let events = again.filter(|_| cuts > 0).map(|events| self.cut_after(events));
            if self.assemble(events)? {
                break;
            }
            if self.journal.resyncs_cut == resyncs_cut {
                cuts -= 1;
            }
            let replay = self.sets.iter().any(|set| set.journalled);
            self.count(if replay { Fault::CutInReplay } else { Fault::CutInAssembly });
            self.account.borrow_mut().counts.cuts += 1;
            self.log(|| "  the power goes while the array is assembled".into());
            self.go_down(ControllerEnd::Cut)?;
        }
        (0..self.sets.len()).try_for_each(|set| self.judge_name(set, true))?;
        self.judge_replay()?;
        self.judge_whole()?;
        for set in 0..self.sets.len() {
            self.open_holes(set)?;
        }
        self.after()?;
        self.set_policy();
        Ok(())
    }

    /// Number of events of an assembly before the power cut. Most assemblies have few events. An assembly with a long
    /// log or many rows to repair has hundreds.
    fn cut_after(&self, events: u64) -> u64 {
        // From a copy of the generator: later draws do not change.
        let mut late = self.random.clone();
        if late.chance(1, 6) {
            late.below(CUT_AFTER_MAX)
        } else {
            events
        }
    }

    /// Check that journalled data needs no resync.
    fn judge_replay(&mut self) -> RunResult {
        for set in 0..self.sets.len() {
            let journalled = std::mem::take(&mut self.sets[set].journalled);
            let status = self.world.status(self.sets[set].array);
            let resyncs = status.is_some_and(|status| status.consistent_to != Sectors::MAX);
            // Partial parity logs that are being armed may be durable on some members only. Aimed runs cut the power at
            // that moment.
            let arming = self.scenario.aimed && self.sets[set].logged && !self.sets[set].armed;
            if self.bounded() && journalled && resyncs && !arming {
                return Err(self.lost("a resync, although the journal had everything"));
            }
        }
        Ok(())
    }

    /// Missing columns cannot be reconstructed from rows in doubt.
    fn open_holes(&mut self, set: usize) -> RunResult {
        self.sets[set].note_places(&self.world);
        if !self.bounded() && self.sets[set].has_stale_members() {
            // From this point there are two histories.
            return Err(Stop::Over(Excuse::Stale));
        }
        let Some(status) = self.world.status(self.sets[set].array) else { return Ok(()) };
        self.sets[set].dirty |= status.consistent_to != Sectors::MAX;
        let absent = self.sets[set].absent(&self.world, &status) | self.sets[set].scarred(&self.world);
        for slot in absent & SlotSet::first_n(self.sets[set].slots()) {
            self.open_hole(set, slot);
        }
        Ok(())
    }

    /// Start the sets, and the stripe over them. Returns false if the power must be cut after `events` events, and
    /// these have happened.
    fn assemble(&mut self, mut events: Option<u64>) -> Result<bool, Stop> {
        if !self.open_journal(&mut events)? {
            return Ok(false);
        }
        for set in 0..self.sets.len() {
            match self.start_set(set, &mut events)? {
                Some(array) => self.sets[set].array = array,
                None => return Ok(false),
            }
            // At this point, because missing members may be filled from rows in doubt before the next span starts.
            self.open_holes(set)?;
        }
        let array = match self.sets.len() {
            1 => Some(self.sets[0].array),
            _ => self.assemble_outer(&mut events)?,
        };
        let Some(array) = array else { return Ok(false) };
        self.session.array = array;
        self.start_second_array(&mut events)
    }

    fn assemble_outer(&mut self, events: &mut Option<u64>) -> Result<Option<ArrayId>, Stop> {
        let spans: Vec<ArrayId> = self.sets.iter().map(|set| set.array).collect();
        let mut superblocks = Vec::new();
        for span in &spans {
            match outer_superblock(&mut self.world, *span) {
                Some(superblock) => superblocks.push(superblock),
                None if self.bounded() => return Err(Stop::Lost(format!("span {span} has lost its outer superblock"))),
                None => return Err(Stop::Over(Excuse::Errors)),
            }
        }
        self.start_array(AdminCommand::StartStriped { spans, superblocks }, events)
    }

    fn start_set(&mut self, set: usize, events: &mut Option<u64>) -> Result<Option<ArrayId>, Stop> {
        if self.sets[set].uuid.is_none() {
            return self.start_array(AdminCommand::StartPassthrough { drive: super::drive_id(0) }, events);
        }
        let command = AdminCommand::StartSet(self.plan(set, false)?);
        if self.bounded() || self.world.journal().is_some() || self.random.chance(1, 2) {
            return self.start_array(command, events);
        }
        match self.start(command, events)? {
            BeginResult::Started(array) => Ok(Some(array)),
            BeginResult::PowerGoes => Ok(None),
            BeginResult::Done | BeginResult::Refused(_) => {
                self.log(|| "  the journal is lost: what it had promised is given up".into());
                self.excuse(Excuse::Refused);
                let capacity = self.session.capacity();
                self.session.versions_mut().give_up(0..capacity);
                let plan = self.plan(set, true)?;
                self.sets[set].unfit |= plan.resync_from.is_none();
                self.start_array(AdminCommand::StartSet(plan), events)
            }
        }
    }

    fn start_array(&mut self, command: AdminCommand, events: &mut Option<u64>) -> Result<Option<ArrayId>, Stop> {
        match self.start(command, events)? {
            BeginResult::Started(array) => Ok(Some(array)),
            BeginResult::PowerGoes => Ok(None),
            BeginResult::Done => Err(Stop::Lost("the command started nothing".into())),
            BeginResult::Refused(error) => Err(self.refused(&format!("the array is not started: {error}"))),
        }
    }

    pub(super) fn start(&mut self, command: AdminCommand, events: &mut Option<u64>) -> Result<BeginResult, Stop> {
        let token = self.world.start_admin(command);
        loop {
            if let Some(answer) = self.world.take_answer(token) {
                return Ok(match answer.result {
                    Ok(AdminOutcome::Started(array)) => BeginResult::Started(array),
                    Ok(AdminOutcome::Done) => BeginResult::Done,
                    Err(error) => BeginResult::Refused(error),
                });
            }
            match events {
                Some(0) => return Ok(BeginResult::PowerGoes),
                Some(left) => *left -= 1,
                None => {}
            }
            if !self.world.step() {
                return Err(self.lost("an array is never started"));
            }
        }
    }

    fn refused(&self, text: &str) -> Stop {
        self.log(|| format!("  {text}"));
        match self.bounded() {
            true => Stop::Lost(text.into()),
            false => Stop::Over(Excuse::Refused),
        }
    }

    /// The assembly of the drives, with force if that is needed and allowed.
    fn plan(&mut self, set: usize, journal_lost: bool) -> Result<Assembly, Stop> {
        let uuid = self.sets[set].uuid;
        let mut candidates = self.world.candidates();
        candidates.retain(|candidate| Some(candidate.superblock.set_uuid) == uuid);
        let error = match assemble::plan(&candidates, AssembleOptions { journal_lost, ..AssembleOptions::default() }) {
            Ok(plan) => {
                self.tell_plan(&plan);
                self.sets[set].note_start(&plan);
                return Ok(plan);
            }
            Err(error) => error,
        };
        let refused = self.refused(&format!("the array is refused: {error}"));
        if self.bounded() {
            return Err(refused);
        }
        let plan = assemble::plan(&candidates, AssembleOptions { force: true, journal_lost, reads_only: false })
            .map_err(|_| refused)?;
        self.excuse(Excuse::Refused);
        self.sets[set].unfit |= plan.resync_from.is_none();
        self.sets[set].note_start(&plan);
        if plan.has_forced() {
            self.log(|| "  stale members are taken by force: nothing is promised of what there is".into());
            let capacity = self.session.capacity();
            self.session.versions_mut().give_up(0..capacity);
        }
        Ok(plan)
    }

    fn tell_plan(&self, plan: &Assembly) {
        let plain = |judged: &Membership| matches!(judged, Membership::Member(_) | Membership::Spare);
        for (drive, judged) in plan.verdicts.iter().filter(|(_, judged)| !plain(judged)) {
            self.log(|| format!("  {}: {judged}", self.name(*drive)));
        }
        if !plan.missing.is_empty() {
            let slots: Vec<String> = plan.missing.iter().map(|slot| format!("slot {slot}")).collect();
            self.log(|| format!("  without a member: {}", slots.join(", ")));
        }
    }

    /// Whether any set lacks some of its data.
    pub(super) fn has_failed(&self) -> bool {
        (0..self.sets.len()).any(|set| self.health(set) == Health::Failed)
    }
}

/// The effect of a session with the journal on an array.
fn protects(session: Option<Session>) -> &'static str {
    match session {
        Some(Session::On) => "holds promises of",
        Some(Session::Off) | None => "holds nothing of",
        Some(_) => "is taken into or out of use for",
    }
}
