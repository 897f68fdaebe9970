//! A run: the steps of a scenario in order, and a judge that follows them.

mod absent_drives;
mod copied_drives;
mod drive_properties;
mod finish;
mod journal;
mod journal_read_again;
mod judges;
mod lack_of_room;
mod media_errors;
mod members;
mod older_copies;
mod orders;
mod phase_watch;
mod power;
mod read_only_server;
mod reshape;
mod second_array;
mod story;
mod superblock_judges;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use openraid_core::actions::NoticeKind;
use openraid_core::admin::{
    AdminCommand, AdminError, AdminOutcome, ArrayStatus, Health, MemberState, MemberStatus, Policy,
    Session as JournalSession, WriteCache,
};
use openraid_core::events::RequestKind;
use openraid_format::{superblock_lba, MinorVersion, Superblock};
use openraid_units::{ArrayId, DriveId, Instant, Nanos, Sectors, Slot, SECTOR_BYTES};

use journal::RunJournal;
use older_copies::Older;
use second_array::SecondArray;

use super::fault_names::Fault;
use super::judged_set::{Outer, RunSet};
use super::phase::Phase;
use super::planted::Bug;
use super::scenario::{Action, Mode, Scenario, ScenarioStep};
use super::verdict::{Counts, Excuse, Verdict};
use crate::drive::WrongAnswer;
use crate::oracle::knowing_host::Workload;
use crate::oracle::versions::VersionId;
use crate::oracle::{Content, HostSession};
use crate::random::{mix, Random};
use crate::rig::RigOptions;
use crate::world::{World, WorldSpec};

/// Limit of the drives of a world: the limit of [`openraid_core::limits::Limits::small`], less a few.
const DRIVES_MAX: usize = 30;
/// Chunk of the outer stripe of nested arrays.
const OUTER_CHUNK: Sectors = Sectors::kib(16);
/// Largest size of a superblock.
const OUTER_SUPERBLOCK_BYTES: u64 = 4096;
/// Limit of the events of a run; the longest runs have a tenth of it.
const EVENTS_MAX: u64 = 1_000_000;
/// Time after which the run no longer waits for an array to come to rest: longer than a drive may be silent.
const REST_MOST: Nanos = Nanos::from_secs(40);
/// Number of notices of each step that a story keeps.
const NOTICES_TOLD_MAX: usize = 12;
/// Number of events for which an aimed phase still counts as the present one.
const HAPPENS_AIMED: u64 = 3;

/// The results of the run so far; they outlive a run that panics.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The counters.
    pub counts: Counts,
    /// The story, line by line.
    pub story: Vec<String>,
    /// The engine's own lines at the end.
    pub details: String,
}

/// The reason for which a run ends early.
#[derive(Debug)]
enum Stop {
    /// A promise is broken.
    Lost(String),
    /// No promise is left.
    Over(Excuse),
}

pub use drive_properties::{drives_of, value_of_each_property};

type RunResult = Result<(), Stop>;

/// Carry out a scenario, with a bug in the driver loop if one is given.
///
/// # Panics
/// The engine breaks a rule of the simulation, or panics itself. The account has the results up to that moment.
#[must_use]
pub fn run(scenario: &Scenario, bug: Option<Bug>, account: &Rc<RefCell<Account>>) -> Verdict {
    let mut run = Run::new(scenario, bug, account.clone());
    let result = run.all();
    run.note_counts();
    match result {
        Err(Stop::Lost(text)) => Verdict::Lost(text),
        Err(Stop::Over(excuse)) => Verdict::NotPromised(excuse),
        Ok(()) => match run.excuses.first() {
            Some(excuse) => Verdict::NotPromised(*excuse),
            None => Verdict::Survived,
        },
    }
}

/// A run in progress.
#[derive(Debug)]
struct Run<'a> {
    scenario: &'a Scenario,
    world: World,
    session: HostSession,
    sets: Vec<RunSet>,
    policy: Policy,
    /// Whether writes may have been acknowledged from a volatile cache since the controller started.
    cached: bool,
    /// Acknowledged writes could not be written, and a notice reported it. The last of them began no later than this
    /// one.
    dirty_lost: VersionId,
    /// Number of requests that had ended with an error at the last check of what reads decide.
    errors_seen: u64,
    /// Drives that were lost.
    lost: Vec<DriveId>,
    /// The drive that was silent last, and when it answered again.
    released: Option<(DriveId, Instant)>,
    excuses: BTreeSet<Excuse>,
    /// The aimed phase that was last reached, until another action happens.
    hit: Option<Phase>,
    /// Whether a drive has refused discards.
    discards_refused: bool,
    second_array: Option<SecondArray>,
    journal: RunJournal,
    /// Copies of devices, for a later start.
    older: Option<Older>,
    random: Random,
    account: Rc<RefCell<Account>>,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, bug: Option<Bug>, account: Rc<RefCell<Account>>) -> Self {
        let mut world = World::new(WorldSpec {
            limits: scenario.limits.clone(),
            events_max: EVENTS_MAX,
            ..WorldSpec::new(scenario.seed)
        });
        world.far = scenario.extras.far;
        let mut random = Random::derived(scenario.seed, drive_properties::DRIVES);
        let mut sets = Vec::new();
        let specs = drive_properties::draw(scenario, &mut random);
        for (span, specs) in specs.chunks(specs.len() / usize::from(scenario.spans)).enumerate() {
            let drives: Vec<DriveId> = specs.iter().map(|spec| world.add_drive(*spec)).collect();
            let seed = mix(scenario.seed) ^ span as u64;
            let options = RigOptions {
                bitmap: scenario.bitmap,
                ppl: scenario.ppl,
                bitmap_chunk: scenario.bitmap_chunk,
                junk: scenario.junk,
                spares: scenario.spares,
                metadata: scenario.metadata,
                far: scenario.extras.far,
                ..RigOptions::new(seed)
            };
            let array = world.create(&scenario.shape, &drives, &options);
            sets.push(RunSet::new(&world, array));
        }
        // In unbounded runs rows may be torn while a member is missing.
        for drive in (0..world.drives_len()).map(drive_id).filter(|_| scenario.mode == Mode::Unbounded) {
            world.drive_mut(drive).faults.written = Some(Vec::new());
        }
        let array = if scenario.spans > 1 { nest(&mut world, scenario, &mut sets) } else { sets[0].array };
        let second_array = SecondArray::new(&mut world, scenario);
        let journal = RunJournal::new(&mut world, scenario);
        let initial = if scenario.junk { Content::Anything } else { Content::Zeroes };
        let mut session = HostSession::new(&world, array, scenario.seed & 0xffff_ffff, initial, true);
        session.tolerate_errors = scenario.mode == Mode::Unbounded;
        session.wrong = Some(Vec::new());
        if scenario.extras.mixed {
            session.trimmed = Content::Anything;
        }
        if let Some(bug) = bug {
            world.plant(bug);
        }
        let mut run = Self {
            scenario,
            world,
            session,
            sets,
            policy: scenario.policy,
            cached: false,
            dirty_lost: 0,
            errors_seen: 0,
            lost: Vec::new(),
            released: None,
            excuses: BTreeSet::new(),
            hit: None,
            discards_refused: false,
            second_array,
            journal,
            older: None,
            random,
            account,
        };
        run.set_policy();
        run
    }

    fn all(&mut self) -> RunResult {
        for step in &self.scenario.steps {
            self.step(*step)?;
        }
        self.random = Random::derived(self.scenario.seed, 13);
        self.finish()
    }

    fn bounded(&self) -> bool {
        self.scenario.mode == Mode::Bounded
    }

    fn count(&self, fault: Fault) {
        let phases = self.phases();
        self.note_reasons();
        let tasks = self.task_names();
        let counts = &mut self.account.borrow_mut().counts;
        for task in tasks {
            *counts.tasks.entry((fault, task)).or_default() += 1;
        }
        *counts.faults.entry(fault).or_default() += 1;
        for phase in phases.iter() {
            *counts.pairs.entry((fault, phase)).or_default() += 1;
        }
    }

    /// Record the kinds of decisions, which the next controller does not know.
    fn note_reasons(&self) {
        let counts = &mut self.account.borrow_mut().counts;
        for status in self.sets.iter().filter_map(|set| self.world.status(set.array)) {
            counts.reasons.extend(status.reasons.iter().filter(|(_, count)| *count > 0).map(|(reason, _)| *reason));
        }
    }

    /// The kinds of the background tasks that run.
    fn task_names(&self) -> BTreeSet<&'static str> {
        let tasks = self.sets.iter().filter_map(|set| self.world.status(set.array)?.task);
        tasks.map(|task| if task.paused { "task that is held" } else { task.kind.name() }).collect()
    }

    /// Count an action by the states of the members.
    fn note_states(&self, action: Action) {
        let statuses = self.sets.iter().filter_map(|set| self.world.status(set.array));
        let states: BTreeSet<&'static str> =
            statuses.flat_map(|status| status.members).map(|member| state_name(&member)).collect();
        let counts = &mut self.account.borrow_mut().counts;
        for state in states {
            *counts.states.entry((state, action.word())).or_default() += 1;
        }
    }

    fn note_counts(&self) {
        let counts = &mut self.account.borrow_mut().counts;
        counts.requests = self.session.answers;
        counts.events = self.world.events();
        counts.decisions = self.world.digest().value();
    }

    fn step(&mut self, step: ScenarioStep) -> RunResult {
        self.random = Random::new(step.seed);
        self.log(|| step.action.to_string());
        self.note_states(step.action);
        let (lines, asked) = (self.account.borrow().story.len(), self.session.history.len());
        self.act(step)?;
        if !matches!(step.action, Action::Until(..) | Action::Happen(..=HAPPENS_AIMED)) {
            self.hit = None;
        }
        if matches!(step.action, Action::Ask(_) | Action::Until(..)) {
            self.log_requests(asked);
        }
        self.after()?;
        self.log_passed_over(step.action, lines);
        Ok(())
    }

    fn act(&mut self, step: ScenarioStep) -> RunResult {
        match step.action {
            Action::Ask(count) => self.ask(count, step.seed)?,
            Action::Happen(count) => self.happen(count)?,
            Action::Wait(time) => self.wait(time)?,
            Action::Rest => self.rest()?,
            Action::Flush => {
                self.session.ask(&mut self.world, RequestKind::Flush, 0..0);
                self.drain()?;
            }
            Action::Look => self.look()?,
            Action::End(end, again) => self.end(end, again)?,
            Action::Lose(how) => self.lose(Some(how))?,
            Action::Vanish => self.lose(None)?,
            Action::Return => self.put_back(),
            Action::Readd => self.readd()?,
            Action::Add => self.add()?,
            Action::Replace => self.replace()?,
            Action::Scrub { repair } => self.scrub(repair)?,
            Action::Latent(count) => self.latent(count, crate::drive::Defect::UntilWritten),
            Action::Dead(count) => self.latent(count, crate::drive::Defect::Permanent),
            Action::Late => self.late(),
            Action::Silence(time) => self.silence(time)?,
            Action::Patrol(places) => self.flip_and_repair(places)?,
            Action::Flip => self.flip(),
            Action::LostWrite => self.trap(Fault::LostWrite, |_, _| WrongAnswer::Lost),
            Action::Misdirect => self.trap(Fault::Misdirected, |to, _| WrongAnswer::Misdirected { to }),
            Action::Misread => self.trap(Fault::Misread, |from, _| WrongAnswer::Misread { from }),
            Action::FlipOnTheWay => self.trap(Fault::FlipOnTheWay, |_, random| WrongAnswer::FlippedOnTheWay {
                byte: random.index(512),
                mask: 1 << random.below(8),
            }),
            Action::FlipSuperblock => self.flip_superblock(),
            Action::KeepImages | Action::OlderMember | Action::OlderJournal | Action::OlderVersion => {
                self.earlier(step.action)?;
            }
            Action::StartReading => self.start_reading()?,
            Action::HalfCopied => self.half_copied()?,
            Action::ShareSpare => self.share_spare()?,
            Action::Fill(count) => self.fill(count, step.seed)?,
            Action::MakeRoom => self.make_room(),
            Action::Policy => self.change_policy(),
            Action::CutAndLose(again) => self.cut_and_lose(again)?,
            Action::CutAndBack(again) => self.cut_and_back(again)?,
            Action::Until(phase, busy) => self.until(phase, busy, step.seed)?,
            Action::Refuse => self.refuse(),
            Action::RefuseDiscards => self.refuse_discards(),
            Action::Reconnect(time) => self.reconnect(time)?,
            Action::Pause | Action::Resume | Action::StopScrub | Action::Rename | Action::Consistency => {
                self.order(step.action)?;
            }
            Action::Reshape(wish) => self.reshape(wish)?,
            Action::CancelReshape => self.cancel_reshape()?,
            Action::StartWithout(mask) => self.start_without(mask)?,
            Action::CheckDegraded(places) => self.check_degraded(places)?,
            Action::JournalJoin => self.join_journal()?,
            Action::JournalAgain => self.take_journal_again()?,
            Action::JournalLose(how) => self.lose_journal_device(how),
            Action::JournalReturn => self.return_journal()?,
            Action::JournalHurt { silent } => self.hurt_journal(silent)?,
        }
        Ok(())
    }

    /// Check the rules after every action.
    fn after(&mut self) -> RunResult {
        self.session.hear(&mut self.world);
        if !self.bounded() {
            self.suspect();
        }
        self.hear_second_array();
        self.judge_reads()?;
        self.judge_second_array()?;
        self.judge_claims()?;
        self.hear_notices()?;
        self.learn_capacity()?;
        self.note_journal();
        self.settle();
        self.note_members()?;
        self.note_reasons();
        self.note_counts();
        Ok(())
    }

    fn hear_notices(&mut self) -> RunResult {
        let notices = self.world.take_notices();
        for notice in notices.iter().take(NOTICES_TOLD_MAX) {
            self.log_notice(notice);
        }
        if notices.iter().any(|notice| matches!(notice.kind, NoticeKind::DirtyLost { .. })) {
            self.dirty_lost = self.session.versions_mut().next_id();
        }
        // Only entries of failed arrays may fill the journal. A bounded run without a failed array must never fill it.
        if self.bounded() && notices.iter().any(|notice| matches!(notice.kind, NoticeKind::JournalFull)) {
            return Err(self.lost("the journal is full, and no array has failed"));
        }
        Ok(())
    }

    /// Clear the doubt of a set whose resync has ended. While no request is in work, no row is half written.
    fn settle(&mut self) {
        let at_rest = |status: ArrayStatus| status.ops == 0 && status.health != Health::Failed;
        if !self.bounded() && self.sets.iter().all(|set| self.world.status(set.array).is_some_and(at_rest)) {
            for drive in (0..self.world.drives_len()).map(drive_id) {
                self.world.drive_mut(drive).faults.written.iter_mut().for_each(Vec::clear);
            }
        }
        for set in &mut self.sets {
            set.settle(&mut self.world);
        }
        self.note_decides();
    }

    /// Record whether reads decide the result of a cut or of a failed write.
    fn note_decides(&mut self) {
        let failed = self.session.errors != self.errors_seen;
        self.errors_seen = self.session.errors;
        let mut differing = self.sets.iter().filter(|set| set.dirty && !set.has_parity() && set.is_redundant());
        let stable = self.scenario.stable_reads;
        // If a part of the first copy cannot be read, the resync may use another copy as the right one. It is enough
        // that the member reports the error. A member with a fault of its own takes reads with it when it fails.
        let steady = |set: &RunSet| !self.has_scars(set) && !set.is_losing(&self.world);
        let decides = differing.all(|set| stable && steady(set));
        // During a session, the journal has the data of a failed write.
        let mut held = self.sets.iter().filter_map(|set| self.world.status(set.array));
        let held = held.any(|status| status.session != JournalSession::Off);
        self.journal.holds_failed = held && (self.journal.holds_failed || failed);
        let decides = decides && !self.journal.holds_failed;
        self.session.versions_mut().set_decides(decides);
    }

    /// Judge reads that no write explains.
    fn judge_reads(&mut self) -> RunResult {
        let wrong = self.session.wrong.replace(Vec::new()).unwrap_or_default();
        if wrong.is_empty() {
            return Ok(());
        }
        self.suspect();
        for mismatch in wrong {
            let sector = mismatch.offset / SECTOR_BYTES;
            let suspect = self.sets.iter().any(|set| set.suspects(sector));
            let torn = self.sets.iter().any(|set| set.doubts(sector));
            let older = |than: VersionId| mismatch.expected.iter().any(|seen| seen.origin < than);
            let excuse = match (self.bounded(), suspect, older(self.dirty_lost)) {
                (false, true, _) if self.something_silent() => Excuse::Silent,
                (false, true, _) | (false, _, true) => Excuse::Unflushed,
                // Data reconstructed from such a row may have been written to it.
                (false, ..) if torn => Excuse::WriteHole,
                (false, ..) if older(self.journal.ends_early) => Excuse::LastEntry,
                _ => return Err(self.lost_by_read(&mismatch)),
            };
            self.excuse(excuse);
            let start = sector * SECTOR_BYTES;
            self.session.versions_mut().give_up(start..start + SECTOR_BYTES);
        }
        Ok(())
    }

    /// Record the drives' errors so far, before the drives leave.
    fn suspect(&mut self) {
        for set in &mut self.sets {
            set.suspect_what_went_wrong(&self.world);
            set.note_places(&self.world);
            set.suspect_what_went_wrong(&self.world);
        }
    }

    fn something_silent(&self) -> bool {
        self.journal.read_wrong
            || (0..self.world.drives_len()).any(|drive| !self.world.drive(drive_id(drive)).faults.wrong.is_empty())
    }

    fn excuse(&mut self, excuse: Excuse) {
        if self.excuses.insert(excuse) {
            self.log(|| format!("  not promised: {excuse}"));
        }
    }

    /// The column of a slot is lost in all rows in doubt.
    fn open_hole(&mut self, set: usize, slot: Slot) {
        let sectors = self.sets[set].hole(slot);
        if sectors.is_empty() {
            return;
        }
        self.log(|| format!("  slot {slot} is not there, and {} of its sectors stand in rows in doubt", sectors.len()));
        self.give_up_sectors(sectors);
    }

    /// Unreadable sectors in rows in doubt are computed from inconsistent parity, maybe before the next start has
    /// ended. The rest of those rows can be read.
    fn open_hole_of_defects(&mut self, set: usize) {
        let shape = &self.scenario.shape;
        let block = (0..shape.members).map(|slot| shape.block(slot).sectors()).max().unwrap_or(Sectors(1));
        let sectors = self.sets[set].hole_of_defects(&self.world, block);
        if sectors.is_empty() {
            return;
        }
        self.log(|| format!("  sectors that cannot be read and stand in rows in doubt: {}", sectors.len()));
        self.give_up_sectors(sectors);
    }

    fn give_up_sectors(&mut self, sectors: impl IntoIterator<Item = u64>) {
        let capacity = self.session.capacity();
        for sector in sectors {
            let range = sector * SECTOR_BYTES..((sector + 1) * SECTOR_BYTES).min(capacity);
            if range.start < range.end {
                self.session.versions_mut().give_up(range);
            }
        }
    }

    // Time and requests.

    fn workload(&self) -> Workload {
        let (load, capacity) = (self.scenario.load, self.session.capacity());
        Workload {
            depth: load.depth,
            len_max: load.len_max,
            align: load.align.min(capacity),
            range: 0..load.span.min(capacity) / load.align * load.align,
            mix: load.mix,
        }
    }

    fn ask(&mut self, count: u64, seed: u64) -> RunResult {
        let load = self.workload();
        self.session.reseed(seed);
        for _ in 0..count {
            while self.session.outstanding() >= load.depth {
                self.event()?;
            }
            self.session.ask_random(&mut self.world, &load);
            self.ask_second_array();
            self.judge_reads()?;
            if self.random.chance(1, 3) {
                self.event()?;
            }
        }
        Ok(())
    }

    /// Handle one event. Returns false if there is none.
    fn event(&mut self) -> Result<bool, Stop> {
        if !self.world.step() {
            if self.session.outstanding() > 0 {
                return Err(self.lost("requests are never answered"));
            }
            return Ok(false);
        }
        self.session.hear(&mut self.world);
        self.hear_second_array();
        if self.session.errors != self.errors_seen {
            self.note_decides();
        }
        self.judge_reads()?;
        Ok(true)
    }

    fn happen(&mut self, count: u64) -> RunResult {
        for _ in 0..count {
            if !self.event()? {
                break;
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> RunResult {
        while self.session.outstanding() > 0 {
            self.event()?;
        }
        Ok(())
    }

    fn rest(&mut self) -> RunResult {
        self.drain()?;
        if self.bounded() {
            self.world.run_until_idle();
            self.after()?;
            self.note_armed();
            return self.judge_rest();
        }
        // Data that no member accepts is written again and again, so there is no rest.
        let end = self.world.now() + REST_MOST;
        while self.world.now() < end && !self.world.is_idle() {
            self.event()?;
        }
        self.after()?;
        self.judge_rest()
    }

    fn wait(&mut self, time: Nanos) -> RunResult {
        self.world.run_for(time);
        self.after()
    }

    fn look(&mut self) -> RunResult {
        self.session.look_at_all(&mut self.world);
        self.judge_reads()?;
        self.look_at_second_array()
    }

    fn admin(&mut self, command: AdminCommand) -> Result<AdminOutcome, AdminError> {
        let result = self.world.admin(command);
        self.session.hear(&mut self.world);
        if let Err(error) = &result {
            self.log(|| format!("  refused: {error}"));
        }
        result
    }

    // Settings.

    fn set_policy(&mut self) {
        self.cached |= self.policy.write_cache == WriteCache::Volatile;
        let second_array = self.second_array.as_ref().map(|second_array| second_array.session.array);
        for array in self.sets.iter().map(|set| set.array).chain(second_array).collect::<Vec<_>>() {
            let policy = self.policy;
            let result = self.admin(AdminCommand::SetPolicy { array, policy });
            assert!(result.is_ok() || !self.bounded(), "the settings are refused: {result:?}");
        }
    }

    fn change_policy(&mut self) {
        let drawn = Scenario::draw(self.random.bits()).policy;
        let write_cache = match drawn.write_cache {
            WriteCache::Journal if self.scenario.journal.is_none() => WriteCache::Through,
            WriteCache::Volatile if self.scenario.limits.cache.is_zero() => WriteCache::Through,
            drawn => drawn,
        };
        self.policy = Policy { write_cache, ..drawn };
        self.account.borrow_mut().counts.switches += 1;
        self.set_policy();
    }

    fn health(&self, set: usize) -> Health {
        self.world.status(self.sets[set].array).map_or(Health::Failed, |status| status.health)
    }

    /// A random set.
    fn some_set(&mut self) -> usize {
        self.random.index(self.sets.len())
    }

    /// A new drive for a set, if the world has room for one.
    fn new_drive(&mut self) -> Option<DriveId> {
        if self.world.drives_len() >= DRIVES_MAX {
            return None;
        }
        let shape = &self.scenario.shape;
        let largest = (0..shape.members).max_by_key(|slot| shape.member_data(*slot)).unwrap_or(0);
        let mut spec = drive_properties::spec(self.scenario, largest, true, &mut self.random);
        // With the finest blocks the drive fits every slot, and the array need not use coarser blocks for it.
        spec.block = shape.block(0);
        let drive = self.world.add_drive(spec);
        self.world.drive_mut(drive).faults.written = (!self.bounded()).then(Vec::new);
        Some(drive)
    }
}

/// The state of a member in a word, for the table.
fn state_name(member: &MemberStatus) -> &'static str {
    match member.state {
        MemberState::Rebuilding { .. } if member.replacement => "replacement",
        MemberState::Missing => "missing",
        MemberState::Spare => "spare",
        MemberState::Rebuilding { .. } => "being filled",
        MemberState::InSync => "in sync",
        MemberState::Failing(_) => "failing",
        MemberState::Faulty(_) => "faulty",
    }
}

/// Make the outer stripe over the sets, durably.
fn nest(world: &mut World, scenario: &Scenario, sets: &mut [RunSet]) -> ArrayId {
    let spans: Vec<ArrayId> = sets.iter().map(|set| set.array).collect();
    let array = world.create_nested(&spans, OUTER_CHUNK, scenario.seed);
    for (number, set) in sets.iter_mut().enumerate() {
        world.flush(set.array).unwrap_or_else(|status| panic!("the outer superblock is not flushed: {status:?}"));
        let superblock = outer_superblock(world, set.array).expect("it was written");
        let start = superblock.data_offset.offset();
        set.outer = Some(Outer { spans: spans.len() as u64, span: number as u64, chunk: OUTER_CHUNK, start });
    }
    array
}

/// The superblock of the outer stripe in a span, as a host reads it.
fn outer_superblock(world: &mut World, span: ArrayId) -> Option<Superblock> {
    let capacity = world.controller().capacity(span)?.sectors_floor();
    let lba = superblock_lba(MinorVersion::V1_2, capacity)?;
    let bytes = world.read(span, lba.offset().bytes().get(), OUTER_SUPERBLOCK_BYTES).ok()?;
    Superblock::decode(&bytes, MinorVersion::V1_2, capacity).ok()
}

fn drive_id(index: usize) -> DriveId {
    DriveId(u16::try_from(index).expect("a world has few drives"))
}
