//! The service's state in words, with the names of arrays and members.

use std::time::Instant;

use openraid_config::Access;
use openraid_core::admin::{
    ArrayStatus, BitmapStatus, CacheFigures, Health, MemberState, MemberStatus, Policy, Session, TaskStatus,
    Unprotected, WriteCache,
};
use openraid_core::geometry::{Geometry, Level, SetSpec};
use openraid_core::reason::FailReason;
use openraid_core::slot_set::SlotSet;
use openraid_format::{DeviceFlags, FeatureMap, MdLevel, Superblock};
use openraid_runtime::member::DeviceNames;
use openraid_runtime::service::{ArrayView, DriveView, PathState, ServiceStatus, StartedArray};
use openraid_status::OtherSizeModel;
use openraid_units::{ArrayId, ArrayLevel, Bytes, Nanos, Sectors, Slot};

use super::change_settings::never_protected;
use super::refused_hosts::{LostWith, MarkTrouble};
use super::task_rates::TaskRates;
use crate::failure::ArrayLabel;
use crate::kept_settings::Readd;
use crate::model::{
    AccessWord, ArrayModel, BitmapModel, CacheModel, ChangeModel, DegradedModel, DriveClass, HealthWord, HostModel,
    LevelWord, MemberModel, PathWord, PolicyWord, ProfileModel, ProtectionModel, ReasonModel, SessionWord, StateWord,
    TaskModel,
};
use crate::on_disk::sets;
use crate::output::verdicts::WRITE_MOSTLY;
use crate::quantity::eta_seconds;
use crate::words::{from_md, layout_text, level_word};

/// Combinations of losses that are looked at to say what an array survives; with more of them the answer is what
/// has been shown so far, which errs on the safe side.
const COMBINATIONS_MAX: u64 = 100_000;

/// An array that runs in a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedArray {
    pub name: String,
    pub array: ArrayId,
    /// What it was started from; nothing for a raw drive.
    pub started: Option<StartedArray>,
    /// The names under which clients are to find it; they do unless it is blocked.
    pub exports: Vec<String>,
    /// What hosts may do.
    pub access: Access,
    /// The profile that was set, if one was.
    pub profile: Option<String>,
    /// Do members that vanished come back by themselves?
    pub readd: Readd,
    /// How NVMe hosts reach it.
    pub path: PathState,
    /// The crash that would lose acknowledged writes, as it is marked.
    pub mark: Option<LostWith>,
    /// Why the mark does not follow the writes, if so.
    pub mark_trouble: Option<MarkTrouble>,
    /// Since when nothing in the cache is dirty.
    pub clean_since: Option<Instant>,
    /// Why hosts are refused, if acknowledged writes may be lost.
    pub refused: Option<String>,
    /// Hosts are served although acknowledged writes may be lost: the reason.
    pub admitted: Option<String>,
}

impl ServedArray {
    /// An array that was started.
    pub fn of(started: StartedArray) -> Self {
        let name = sets::array_name(&started.superblock);
        let array = started.array;
        Self { started: Some(started), ..Self::raw(&name, array) }
    }

    /// A raw drive.
    pub fn raw(name: &str, array: ArrayId) -> Self {
        let (exports, access, profile) = (vec![name.into()], Access::default(), None);
        let (started, refused, admitted) = (None, None, None);
        Self {
            name: name.into(),
            array,
            started,
            exports,
            access,
            profile,
            readd: Readd::default(),
            path: PathState::Optimized,
            mark: None,
            mark_trouble: None,
            clean_since: None,
            refused,
            admitted,
        }
    }

    /// Its identity, as the registry has it; a raw drive has none.
    pub fn uuid(&self) -> Option<String> {
        self.started.as_ref().map(|started| started.superblock.set_uuid.to_string())
    }

    /// The key of values that are kept for it: its UUID, which outlives a rename, or the name of a raw drive.
    pub fn key(&self) -> String {
        self.uuid().unwrap_or_else(|| self.name.clone())
    }

    /// The array that failures are about.
    pub fn label(&self) -> ArrayLabel {
        ArrayLabel::new(&self.name, self.started.as_ref().map(|started| started.superblock.set_uuid))
    }

    /// Is it this array, or has it this span?
    pub fn has(&self, array: &ArrayLabel) -> bool {
        let mut parts = self.started.iter().flat_map(|started| started.spans.iter().chain([started]));
        match array.uuid {
            Some(uuid) => parts.any(|part| part.superblock.set_uuid == uuid),
            None => self.name == array.name,
        }
    }

    /// The numbers of its spans; none unless nested.
    pub fn spans(&self) -> Vec<ArrayId> {
        self.started.iter().flat_map(|started| started.spans.iter().map(|span| span.array)).collect()
    }

    /// The numbers of the sets that have members: its spans, or itself.
    pub fn sets(&self) -> Vec<ArrayId> {
        let spans = self.spans();
        if spans.is_empty() {
            vec![self.array]
        } else {
            spans
        }
    }
}

/// The model of an array; nothing if it does not run any more.
pub fn model(status: &ServiceStatus, served: &ServedArray, rates: &TaskRates) -> Option<ArrayModel> {
    let view = view_of(status, served.array)?;
    let Some(started) = &served.started else {
        let mut model = set_model(status, view, None, rates);
        add_served(&mut model, served);
        return Some(model);
    };
    if started.spans.is_empty() {
        let mut model = set_model(status, view, Some(&started.superblock), rates);
        model.forced.clone_from(&started.forced);
        model.profile = Some(profile(status, served, &view.status.policy));
        add_served(&mut model, served);
        return Some(model);
    }
    nested_model(status, served, started, view, rates)
}

/// What hosts find.
fn add_served(model: &mut ArrayModel, served: &ServedArray) {
    model.name.clone_from(&served.name);
    (model.access, model.path) = (access_word(served.access), path_word(served.path));
    model.refused.clone_from(&served.refused);
    model.admitted.clone_from(&served.admitted);
}

fn view_of(status: &ServiceStatus, array: ArrayId) -> Option<&ArrayView> {
    status.arrays.iter().find(|view| view.status.array == array)
}

/// The health of an array that runs.
pub fn health_of(status: &ServiceStatus, served: &ServedArray) -> Option<HealthWord> {
    view_of(status, served.array).map(|view| health(view.status.health))
}

fn nested_model(
    status: &ServiceStatus,
    served: &ServedArray,
    started: &StartedArray,
    view: &ArrayView,
    rates: &TaskRates,
) -> Option<ArrayModel> {
    let mut spans = Vec::new();
    for span in &started.spans {
        let mut model = set_model(status, view_of(status, span.array)?, Some(&span.superblock), rates);
        model.name = sets::array_name(&span.superblock);
        model.forced.clone_from(&span.forced);
        spans.push(model);
    }
    let array = &view.status;
    let forced: Vec<&str> = spans.iter().filter_map(|span| span.forced.as_deref()).collect();
    Some(ArrayModel {
        name: served.name.clone(),
        uuid: Some(started.superblock.set_uuid.to_string()),
        level: nested_level(&started.spans[0].superblock),
        layout: spans[0].layout.clone(),
        chunk_bytes: spans[0].chunk_bytes,
        outer_chunk_bytes: Some(started.superblock.chunk.bytes().get()),
        size_bytes: array.capacity.bytes().get(),
        block_bytes: array.block.bytes().get(),
        superblock_block_bytes: started.superblock.logical_block().map(|block| block.bytes().get()),
        metadata: Some(started.superblock.minor.to_string()),
        slots: spans.iter().map(|span| span.slots).sum(),
        health: health(array.health),
        offline: None,
        sentence: String::new(),
        next_step: None,
        check_text: Vec::new(),
        survives: spans.iter().map(|span| span.survives).min().unwrap_or(0),
        survives_later: spans.iter().map(|span| span.survives_later).min().unwrap_or(0),
        active: spans.iter().any(|span| span.active),
        consistent_to_bytes: None,
        bitmap: None,
        consistency_policy: spans[0].consistency_policy,
        journal: protection(view),
        events: started.superblock.events,
        last_check_mismatches: None,
        last_check: None,
        last_complete_check: None,
        task: None,
        shape: None,
        other_sizes: other_sizes(view),
        stopping: array.stopping,
        forced: (!forced.is_empty()).then(|| forced.join(" ")),
        refused: served.refused.clone(),
        admitted: served.admitted.clone(),
        alarms: Vec::new(),
        exports: view.exports.clone(),
        addresses: Vec::new(),
        access: access_word(served.access),
        path: path_word(served.path),
        profile: Some(profile(status, served, &array.policy)),
        members: Vec::new(),
        settings: crate::program_settings::json(&array.policy),
        adaptive: super::adaptive_figures::adaptive(&array.adaptive, status.at),
        host: host(array),
        cache: cache(status, &array.cached),
        reasons: add_reasons(spans.iter().flat_map(|span| &span.reasons)),
        spans,
    })
}

/// The level of a nested array, from the superblock of a span.
pub const fn nested_level(span: &Superblock) -> LevelWord {
    match span.level {
        MdLevel::Raid5 => LevelWord::Of(ArrayLevel::Raid50),
        MdLevel::Raid6 => LevelWord::Of(ArrayLevel::Raid60),
        level => LevelWord::StripeOver(from_md(level)),
    }
}

fn add_reasons<'a>(all: impl Iterator<Item = &'a ReasonModel>) -> Vec<ReasonModel> {
    let mut sums: Vec<ReasonModel> = Vec::new();
    for reason in all {
        match sums.iter_mut().find(|sum| sum.reason == reason.reason) {
            Some(sum) => sum.count += reason.count,
            None => sums.push(reason.clone()),
        }
    }
    sums
}

fn set_model(
    status: &ServiceStatus,
    view: &ArrayView,
    superblock: Option<&Superblock>,
    rates: &TaskRates,
) -> ArrayModel {
    let array = &view.status;
    let superblock = array.superblock.as_ref().or(superblock);
    let chunk = superblock.filter(|s| s.level.is_striped()).map(|s| s.chunk.bytes().get());
    let chunk = chunk.filter(|bytes| *bytes > 0);
    // Parity that is not in sync restores nothing, and copies may differ.
    let is_synced = array.consistent_to == Sectors::MAX;
    let is_full = |state: MemberState| state == MemberState::InSync;
    let is_or_will_be_full = |state| is_full(state) || matches!(state, MemberState::Rebuilding { .. });
    ArrayModel {
        name: superblock.map_or_else(String::new, sets::array_name),
        uuid: superblock.map(|s| s.set_uuid.to_string()),
        level: superblock.map_or(ArrayLevel::Jbod.into(), level_word),
        layout: superblock.and_then(|s| layout_text(s.level, s.layout)),
        chunk_bytes: chunk,
        outer_chunk_bytes: None,
        size_bytes: array.capacity.bytes().get(),
        block_bytes: array.block.bytes().get(),
        superblock_block_bytes: superblock.and_then(Superblock::logical_block).map(|block| block.bytes().get()),
        metadata: superblock.map(|s| s.minor.to_string()),
        slots: superblock.map_or(1, |s| u32::from(s.raid_disks)),
        health: health(array.health),
        offline: None,
        sentence: String::new(),
        next_step: None,
        check_text: Vec::new(),
        survives: superblock.filter(|_| is_synced).map_or(0, |s| losses_left(s, &array.members, is_full)),
        survives_later: superblock.map_or(0, |s| losses_left(s, &array.members, is_or_will_be_full)),
        active: array.active,
        consistent_to_bytes: (array.consistent_to != Sectors::MAX).then(|| array.consistent_to.bytes().get()),
        bitmap: array.bitmap.map(bitmap_model),
        consistency_policy: consistency_policy(array, superblock),
        journal: protection(view),
        events: array.events,
        last_check_mismatches: None,
        last_check: None,
        last_complete_check: None,
        task: array.task.as_ref().map(|task| task_model(task, rates.of(array.array))),
        shape: array.reshape.as_ref().map(crate::output::shape::change),
        other_sizes: other_sizes(view),
        stopping: array.stopping,
        forced: None,
        refused: None,
        admitted: None,
        alarms: Vec::new(),
        exports: view.exports.clone(),
        addresses: Vec::new(),
        access: access_word(Access::default()),
        path: path_word(PathState::Optimized),
        profile: None,
        members: array.members.iter().map(|member| member_model(member, &status.drives)).collect(),
        spans: Vec::new(),
        settings: crate::program_settings::json(&array.policy),
        adaptive: super::adaptive_figures::adaptive(&array.adaptive, status.at),
        host: host(array),
        cache: cache(status, &array.cached),
        reasons: reasons(array),
    }
}

/// Clients that were told another size.
fn other_sizes(view: &ArrayView) -> Vec<OtherSizeModel> {
    let model = |(size, clients): &(Bytes, usize)| OtherSizeModel { size_bytes: size.get(), clients: *clients as u64 };
    view.other_sizes.iter().map(model).collect()
}

fn bitmap_model(bitmap: BitmapStatus) -> BitmapModel {
    let (pages_marked, pages) = bitmap.pages;
    let chunk_bytes = bitmap.chunk.bytes().get();
    BitmapModel { marked: bitmap.marked, regions: bitmap.regions, chunk_bytes, pages, pages_marked }
}

fn consistency_policy(status: &ArrayStatus, superblock: Option<&Superblock>) -> Option<PolicyWord> {
    let superblock = superblock?;
    // An array with a partial parity log has no journal, whatever its policy asks for.
    if superblock.ppl().is_some() {
        Some(PolicyWord::Ppl)
    } else if status.policy.write_cache == WriteCache::Journal {
        Some(PolicyWord::ControllerJournal)
    } else if status.bitmap.is_some() {
        Some(PolicyWord::Bitmap)
    } else {
        superblock.level.is_redundant().then_some(PolicyWord::Resync)
    }
}

/// The journal's part for an array.
fn protection(view: &ArrayView) -> Option<ProtectionModel> {
    let status = &view.status;
    if status.policy.write_cache != WriteCache::Journal && status.session == Session::Off {
        return None;
    }
    let reason = if status.policy.write_cache == WriteCache::Journal {
        view.protection.err().map(|why| unprotected(why).into())
    } else {
        Some("it was switched off".into())
    };
    Some(ProtectionModel {
        protected: reason.is_none(),
        reason,
        session: session_word(status.session),
        text: String::new(),
    })
}

/// Why the journal does not promise an array's writes, in words.
pub const fn unprotected(why: Unprotected) -> &'static str {
    match why {
        Unprotected::NoJournal => "there is no journal that works: writes are acknowledged when they are on the members",
        Unprotected::NotConsistent => {
            "its parity or copies are not consistent yet: it is protected when the first sync or resync is over"
        }
        Unprotected::Shape => "its chunks are not multiples of 4 KiB, or it has more than 60 members with parity or 16 copies",
        Unprotected::PartialParityLog => {
            "it was created with a partial parity log, which closes the write hole too and excludes a journal"
        }
        Unprotected::MetadataAtEnd => {
            "its metadata (1.0) is at the end of the members, so a member could be mounted without the writes in the journal; \
             make the array with metadata 1.2"
        }
        Unprotected::TableFull => {
            "the journal's table of arrays is full: give up the entries of an array that does not come back (openraid \
             journal show, openraid journal discard)"
        }
        Unprotected::NotRunning => "it has failed, or a flush of it has failed",
    }
}

const fn session_word(session: Session) -> SessionWord {
    match session {
        Session::Off => SessionWord::Off,
        Session::Settling => SessionWord::Settling,
        Session::Entering => SessionWord::Entering,
        Session::Marking => SessionWord::Marking,
        Session::On => SessionWord::On,
        Session::Leaving => SessionWord::Leaving,
        Session::Unmarking => SessionWord::Unmarking,
    }
}

const fn access_word(access: Access) -> AccessWord {
    match access {
        Access::ReadWrite => AccessWord::ReadWrite,
        Access::ReadOnly => AccessWord::ReadOnly,
        Access::Blocked => AccessWord::Blocked,
    }
}

const fn path_word(path: PathState) -> PathWord {
    match path {
        PathState::Optimized => PathWord::Optimized,
        PathState::NonOptimized => PathWord::NonOptimized,
        PathState::Inaccessible | PathState::Lost => PathWord::Inaccessible,
    }
}

const fn health(health: Health) -> HealthWord {
    match health {
        Health::Optimal => HealthWord::Optimal,
        Health::Degraded => HealthWord::Degraded,
        Health::Failed => HealthWord::Failed,
    }
}

fn task_model(task: &TaskStatus, rate: u64) -> TaskModel {
    let (done, total) = (task.done.bytes().get(), task.total.bytes().get());
    TaskModel {
        kind: task.kind.into(),
        done_bytes: done,
        total_bytes: total,
        paused: task.paused,
        rate,
        eta_seconds: if task.paused { None } else { eta_seconds(done, total, rate) },
        mismatches: task.mismatches,
        text: String::new(),
    }
}

/// The class of a drive, if it is known.
pub fn class_word(names: &DeviceNames) -> Option<DriveClass> {
    names.rotates.map(|rotates| if rotates { DriveClass::Rotating } else { DriveClass::Ssd })
}

pub(super) fn member_model(member: &MemberStatus, drives: &[DriveView]) -> MemberModel {
    let drive = member.drive.and_then(|number| drives.iter().find(|view| view.drive == number));
    let (state, reason, done) = match member.state {
        MemberState::Missing => (StateWord::Missing, None, None),
        MemberState::Spare => (StateWord::Spare, None, None),
        MemberState::Rebuilding { to } => (StateWord::Rebuilding, None, Some(to.bytes().get())),
        MemberState::InSync => (StateWord::InSync, None, None),
        MemberState::Failing(why) => (StateWord::Failing, Some(why.text().into()), None),
        MemberState::Faulty(FailReason::Replaced) => {
            (StateWord::Replaced, Some(FailReason::Replaced.text().into()), None)
        }
        MemberState::Faulty(why) => (StateWord::Faulty, Some(why.text().into()), None),
    };
    let trouble = drive.and_then(|view| view.trouble.clone());
    let mostly = member.flags.contains(DeviceFlags::WRITE_MOSTLY).then(|| WRITE_MOSTLY.to_string());
    MemberModel {
        slot: member.slot.map(|slot| slot.0),
        left_slot: member.left.filter(|_| member.slot.is_none()).map(|slot| slot.0),
        drive: member.drive.map(|drive| drive.0),
        device: member.device.map(|device| device.to_string()),
        serial: drive.and_then(|view| view.names.serial.clone()),
        model: drive.and_then(|view| view.names.model.clone()),
        bay: drive.and_then(|view| view.names.bay.clone()),
        class: drive.and_then(|view| class_word(&view.names)),
        smart: None,
        member: drive.map(|view| view.member.clone()),
        state,
        text: String::new(),
        reason,
        failed: match member.state {
            MemberState::Failing(why) | MemberState::Faulty(why) => Some(why),
            _ => None,
        },
        replacement: member.replacement,
        flags: member.flags.names().map(Into::into).collect(),
        done_bytes: done,
        size_bytes: drive.map(|view| view.info.capacity.bytes().get()),
        media_errors: member.media_errors,
        bad_ranges: member.bad_blocks,
        outstanding: member.outstanding,
        reads: member.reads,
        writes: member.writes,
        flushes: member.flushes,
        read_bytes: Sectors(member.sectors_read).bytes().get(),
        written_bytes: Sectors(member.sectors_written).bytes().get(),
        drive_cache: None,
        displaced: None,
        located: None,
        full: drive.filter(|_| member.is_full).map(|view| crate::members::lack_of_room::full_text(&view.member)),
        notes: drive.into_iter().flat_map(|view| view.notes.iter().cloned()).chain(trouble).chain(mostly).collect(),
    }
}

/// The profile in force: the profile that was set, or the default, and the settings that differ from it.
fn profile(status: &ServiceStatus, served: &ServedArray, policy: &Policy) -> ProfileModel {
    let can_journal = status.journal.is_some() && never_protected(status, served).is_none();
    let known = served
        .profile
        .as_deref()
        .and_then(|name| crate::program_settings::PROFILES.iter().find(|(known, _)| *known == name));
    let (name, base) = match known {
        Some((name, profile)) => (*name, Policy::of(*profile, can_journal)),
        None => ("balanced", Policy::default()),
    };
    ProfileModel {
        name: name.into(),
        set: known.is_some(),
        changes: base.changes_to(policy).map(ChangeModel::from).collect(),
        degraded: DegradedModel { rebuild_rate: policy.rebuild_rate.bytes().get(), depth: policy.background_depth },
    }
}

/// The cache, and its effect for an array.
fn cache(status: &ServiceStatus, figures: &CacheFigures) -> Option<CacheModel> {
    let cache = status.cache.as_ref()?;
    let bytes = |sectors: u64| Sectors(sectors).bytes().get();
    let millis = |time: Nanos| time.get() / 1_000_000;
    Some(CacheModel {
        size_bytes: cache.size.get(),
        dirty_bytes: cache.dirty.get(),
        dirty_max_bytes: cache.dirty_max.get(),
        ahead_read_bytes: bytes(cache.counters.ahead_read),
        ahead_used_bytes: bytes(cache.counters.ahead_used),
        ahead_wasted_bytes: bytes(cache.counters.ahead_wasted),
        read_hit_bytes: bytes(figures.read_hits),
        read_miss_bytes: bytes(figures.read_misses),
        written_bytes: bytes(figures.written),
        merged_bytes: bytes(figures.merged),
        destaged_bytes: bytes(figures.destaged),
        destaged_units: figures.units,
        waited_mean_ms: millis(figures.waited) / figures.units.max(1),
        waited_max_ms: millis(figures.waited_max),
    })
}

fn host(status: &ArrayStatus) -> HostModel {
    let [reads, writes, flushes, others] = status.requests;
    let [read_bytes, written_bytes] = status.bytes;
    HostModel { reads, writes, flushes, others, read_bytes, written_bytes }
}

fn reasons(status: &ArrayStatus) -> Vec<ReasonModel> {
    let model = |(reason, count): &(openraid_core::reason::Reason, u64)| ReasonModel {
        reason: reason.name().into(),
        text: reason.text().into(),
        count: *count,
    };
    status.reasons.iter().map(model).collect()
}

/// The map of a set, from its superblock.
pub fn geometry(superblock: &Superblock) -> Option<Geometry> {
    let sizes = vec![superblock.size.max(Sectors(superblock.data_size.get())); usize::from(superblock.raid_disks)];
    let said = superblock.level != MdLevel::Raid0 || superblock.features.contains(FeatureMap::RAID0_LAYOUT);
    let spec = SetSpec {
        level: Level::from_md(superblock.level.number())?,
        members: superblock.raid_disks,
        chunk: superblock.chunk,
        layout: if said { superblock.layout } else { 0 },
        member_size: superblock.size,
        member_sizes: &sizes,
    };
    Geometry::new(&spec).ok()
}

/// How many more members can be lost, whichever they are, where those in these states count.
fn losses_left(superblock: &Superblock, members: &[MemberStatus], counts: impl Fn(MemberState) -> bool) -> u32 {
    // Rows in which a member has a bad range lack that member already.
    let is_whole = |member: &&MemberStatus| counts(member.state) && !member.replacement && member.bad_blocks == 0;
    let counting = members.iter().filter(is_whole);
    let present: SlotSet = counting.filter_map(|member| member.slot).collect();
    let Some(geometry) = geometry(superblock) else { return 0 };
    let survived = survives_losses(&geometry, present);
    // Both sides of a change must survive a loss.
    let Some(change) = superblock.change() else { return survived };
    [change.old, change.new].iter().fold(survived, |least, shape| {
        let side = crate::output::shape::geometry(shape, superblock.size);
        let slots = present.minus(present.minus(SlotSet::first_n(shape.raid_disks)));
        least.min(side.map_or(0, |side| survives_losses(&side, slots)))
    })
}

/// How many of these members can be lost, whichever they are.
pub fn survives_losses(geometry: &Geometry, present: SlotSet) -> u32 {
    let missing = SlotSet::first_n(geometry.members()).minus(present);
    let slots: Vec<Slot> = present.iter().collect();
    let mut left = COMBINATIONS_MAX;
    let mut survived = 0;
    while survived < slots.len() && every_loss(geometry, missing, &slots, survived + 1, &mut left) {
        survived += 1;
    }
    u32::try_from(survived).expect("few slots")
}

fn every_loss(geometry: &Geometry, missing: SlotSet, slots: &[Slot], more: usize, left: &mut u64) -> bool {
    if *left == 0 {
        return false;
    }
    if more == 0 {
        *left -= 1;
        return geometry.survives(missing);
    }
    (0..=slots.len().saturating_sub(more))
        .filter(|first| first + more <= slots.len())
        .all(|first| every_loss(geometry, missing.with(slots[first]), &slots[first + 1..], more - 1, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(level: Level, layout: u32, members: u16) -> Geometry {
        let size = Sectors::mib(1);
        let sizes = vec![size; usize::from(members)];
        let spec = SetSpec { level, members, chunk: Sectors::kib(64), layout, member_size: size, member_sizes: &sizes };
        Geometry::new(&spec).expect("a geometry that can be")
    }

    #[test]
    fn the_number_of_survived_losses_is_the_worst_case_of_the_remaining_members() {
        let all = SlotSet::first_n;
        assert_eq!(survives_losses(&made(Level::Raid5, 2, 5), all(5)), 1);
        assert_eq!(survives_losses(&made(Level::Raid6, 2, 6), all(6)), 2);
        assert_eq!(survives_losses(&made(Level::Raid6, 2, 6), all(6).without(Slot(3))), 1);
        assert_eq!(survives_losses(&made(Level::Raid1, 0, 3), all(3)), 2);
        assert_eq!(survives_losses(&made(Level::Raid0, 0, 3), all(3)), 0);
        // Two pairs: any one, and after it the partner must not go.
        assert_eq!(survives_losses(&made(Level::Raid10, 0x102, 4), all(4)), 1);
        assert_eq!(survives_losses(&made(Level::Raid10, 0x102, 4), all(4).without(Slot(0))), 0);
        assert_eq!(survives_losses(&made(Level::Raid10, 0x103, 6), all(6)), 2);
        assert_eq!(survives_losses(&made(Level::Raid5, 2, 100), all(100)), 1, "and it ends");
    }
}
