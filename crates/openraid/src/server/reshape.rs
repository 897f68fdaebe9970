//! Changes of an array's shape: their plan, and the order to begin.

use std::time::Instant;

use openraid_core::actions::{Notice, NoticeKind};
use openraid_core::admin::{AdminCommand, AdminError, ArrayStatus, MemberState, Policy, WriteCache};
use openraid_core::array::new_array::{superblock_for_new_member, NewDrive};
use openraid_core::array::reshape_plan::{next_step, PlanKind, ReshapeGoal, ReshapePlan};
use openraid_format::{MdLevel, ShapeFields, Superblock};
use openraid_runtime::member;
use openraid_runtime::service::{ServiceError, ServiceStatus};
use openraid_status::shell_quoting::{command, command_with};
use openraid_status::{EventName, NewSlotModel, ReshapePlanModel, ShapeModel};
use openraid_sys::Use;
use openraid_units::{ArrayId, DriveId, Sectors, Slot};

use super::array_model::{survives_losses, ServedArray};
use super::joining_members::{check_free, set_status, JoinOutcome};
use super::member_names::ServedMembers;
use super::member_orders::Consent;
use super::orders::{outcome_of, wait_while};
use super::resize::cut_off_first;
use super::Server;
use crate::control::ServerAnswer;
use crate::events::{plain, News};
use crate::failure::Failure;
use crate::members::{options, spec};
use crate::on_disk::sets;
use crate::output::shape as text;
use crate::words;
use openraid_core::slot_set::SlotSet;

/// Bytes a second of a rotating drive, and of another one, for a plan: reads and writes of a member take turns on a rotating drive.
const ROTATING_RATE: u64 = 150_000_000;
const SSD_RATE: u64 = 400_000_000;

/// A change has at most this many steps after the first one.
const STEPS_MAX: usize = 4;

/// What a user asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReshapeOrder {
    pub members: Vec<String>,
    pub raid_devices: Option<u16>,
    pub level: Option<String>,
    pub chunk: Option<String>,
    pub layout: Option<String>,
    pub size: Option<String>,
    /// Only say what would happen.
    pub plan: bool,
    pub overwrite: bool,
    pub yes: bool,
}

/// A drive that is to join, with the superblock that it would get.
pub(super) struct NewMemberSeen {
    pub spec: String,
    superblock: Superblock,
    rotates: Option<bool>,
}

impl Server {
    /// Say what a change of shape would do, or begin it.
    pub(super) fn reshape(&self, name: &str, order: &ReshapeOrder) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let set = only_set(&served)?;
        let status = self.status()?;
        let array = set_status(&status, set)?;
        let common = array.superblock.as_ref().ok_or_else(|| {
            Failure::refused(format!(
                "{name} is a raw drive: its data has all of it, and an array needs room for metadata on each member; make an array \
                 of other drives (openraid create), copy the data, and add this drive to it then"
            ))
        })?;
        if let Some(size) = &order.size {
            return self.resize(&served, (set, array), size, order);
        }
        let fresh = self.fresh_members(&status, &served, order)?;
        let asked = asked_shape(common, order).map_err(|failure| failure.of(name))?;
        let step = next_step(common.shape(), common.size, asked);
        let plan = |superblocks| {
            let planned = self.handle.plan_reshape(set, ReshapeGoal::Shape(step), superblocks);
            planned.map_err(|error| Failure::from(error).of(name))
        };
        // A RAID 0 takes no drive: drives join what it becomes.
        let joined = if common.level == MdLevel::Raid0 { plan(Vec::new())?.after(common) } else { common.clone() };
        let joining = fresh.iter().map(|text| self.look_at_new(text, &joined, order.overwrite));
        let joining = joining.collect::<Result<Vec<_>, _>>()?;
        let planned = plan(joining.iter().map(|new| new.superblock.clone()).collect())?;
        let mut model = plan_model(&served.name, &status, array, &planned, &joining, order);
        model.steps.extend(later_steps(&planned.after(common), step, asked, &mut model.to));
        let unnamed = self.unnamed_in_file(&served, &model);
        model.risks.extend(unnamed.clone());
        let cut_off_first = cut_off_first(name, array, &planned);
        let is_refused = cut_off_first.is_some();
        model.steps.splice(0..0, cut_off_first);
        model.text = text::plan(&model);
        if order.plan {
            return Ok(ServerAnswer::ReshapePlan(Box::new(model)));
        }
        if !order.yes && !is_refused {
            return Ok(ServerAnswer::Confirm { text: text::question(&model), name: name.into() });
        }
        let (has_more, changes_level) = (step != asked, common.level != asked.level);
        let goal = (has_more || changes_level).then_some(asked);
        match common.level {
            MdLevel::Raid0 => self.begin_on_striped(&served, set, (step, goal), order, &joining, unnamed),
            MdLevel::Linear => self.begin_on_linear(&served, set, order, &joining, unnamed),
            _ => self.begin_reshape(&served, set, (step, goal), order, &joining, unnamed),
        }
    }

    /// The named drives that are no spares of the array yet.
    fn fresh_members(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        order: &ReshapeOrder,
    ) -> Result<Vec<String>, Failure> {
        let members = ServedMembers::of(status, served);
        let mut fresh: Vec<String> = Vec::new();
        for text in &order.members {
            if fresh.contains(text) {
                return Err(Failure::usage(format!("{text} is named twice")));
            }
            if !members.knows(text)? {
                fresh.push(text.clone());
                continue;
            }
            let found = members.find(text)?;
            if found.member.state != MemberState::Spare {
                return Err(Failure::refused(members.already(&found)));
            }
        }
        Ok(fresh)
    }

    /// The configuration file names the members of the array, and not all of the new ones: the next start would lack them.
    fn unnamed_in_file(&self, served: &ServedArray, plan: &ReshapePlanModel) -> Option<String> {
        let (file, desired) = (self.in_force()?, self.desired_of(served)?);
        let is_unnamed = |join: &&NewSlotModel| !desired.members.contains(&join.member);
        let unnamed: Vec<&str> = plan.joins.iter().filter(is_unnamed).map(|join| join.member.as_str()).collect();
        (!desired.members.is_empty() && !unnamed.is_empty()).then(|| {
            let (path, name) = (file.path.display(), &served.name);
            format!(
                "{path} names the members of {name}: add {} there, or the next start lacks them",
                unnamed.join(", ")
            )
        })
    }

    /// Look at a drive that is to join; nothing is written.
    fn look_at_new(&self, text: &str, array: &Superblock, overwrite: bool) -> Result<NewMemberSeen, Failure> {
        let spec = spec(text)?;
        let mut options = options(Use::Exclusive);
        options.without_flush = self.without_flush;
        let (opened, probed) = member::open_and_probe(&spec, options)?;
        let is_of_array = |found: &&Superblock| found.set_uuid == array.set_uuid;
        if probed.look.superblock.as_ref().filter(is_of_array).is_none() {
            check_free(&probed, overwrite)?;
        }
        let new = NewDrive {
            drive: DriveId(u16::MAX),
            capacity: opened.info.capacity,
            uuid: openraid_runtime::service::random_uuid(),
        };
        let superblock = superblock_for_new_member(array, &new)
            .map_err(|error| Failure::refused(sets::create_error(&error, &|_| spec.text.clone())))?;
        Ok(NewMemberSeen { rotates: crate::members::spins(&opened), spec: spec.text, superblock })
    }

    fn begin_reshape(
        &self,
        served: &ServedArray,
        set: ArrayId,
        (step, goal): (ShapeFields, Option<ShapeFields>),
        order: &ReshapeOrder,
        joining: &[NewMemberSeen],
        unnamed: Option<String>,
    ) -> Result<ServerAnswer, Failure> {
        let name = &served.name;
        let consent = Consent { overwrite: order.overwrite, split: order.yes };
        let mut joined = Vec::new();
        for new in joining {
            match self.join(served, set, &new.spec, consent).and_then(JoinOutcome::or_refused) {
                Ok(member) => joined.push(member.drive),
                Err(failure) => return Err(self.not_begun(served, set, &joined, failure)),
            }
        }
        let begin = AdminCommand::Reshape { array: set, new: step };
        // Writes that make a new member a spare may still be under way.
        let is_busy = |begun: &Result<_, ServiceError>| {
            matches!(begun, Err(ServiceError::Admin(AdminError::CommandsOutstanding(_) | AdminError::PreparingLog)))
        };
        let begun =
            wait_while(|| Ok(self.handle.admin(begin.clone())), is_busy).and_then(|begun| outcome_of(name, begun));
        begun.map_err(|failure| self.not_begun(served, set, &joined, failure))?;
        self.keep_shape_goal(served, goal);
        self.note(name);
        joining.iter().for_each(|new| self.let_in(&new.spec));
        let model = self.array(name)?;
        let new_slots = model.shape.as_ref().map_or(model.slots, |shape| u32::from(shape.from.members))..;
        let is_new = |slot: u16| new_slots.contains(&u32::from(slot));
        let became = model.members.iter().filter_map(|member| {
            let slot = member.slot.filter(|slot| is_new(*slot))?;
            Some(format!("\n  {} is the member of slot {slot}", member.member.as_deref()?))
        });
        let became: String = became.chain(unnamed.map(|note| format!("\n  {note}"))).collect();
        let follow = command_with("show", [name], "--follow");
        self.done(format!("the change of shape of {name} has begun; watch it with `{follow}`{became}"), name)
    }

    /// A RAID 0 gets its new level, and then the named drives join it. A drive that cannot join changes nothing of the level.
    fn begin_on_striped(
        &self,
        served: &ServedArray,
        set: ArrayId,
        (step, goal): (ShapeFields, Option<ShapeFields>),
        order: &ReshapeOrder,
        joining: &[NewMemberSeen],
        unnamed: Option<String>,
    ) -> Result<ServerAnswer, Failure> {
        let name = &served.name;
        outcome_of(name, self.handle.admin(AdminCommand::Reshape { array: set, new: step }))?;
        self.keep_shape_goal(served, goal);
        let consent = Consent { overwrite: order.overwrite, split: order.yes };
        for new in joining {
            let joined = self.join(served, set, &new.spec, consent);
            let Err(why) = joined.and_then(JoinOutcome::or_refused) else { continue };
            let order = command("add", [name, &new.spec]);
            let text = format!(
                "{name} is {} now, and {} does not join it: {}; without a drive in each slot there is no redundancy: `{order}`",
                step.level, new.spec, why.text()
            );
            return Err(why.worded(text));
        }
        self.note(name);
        joining.iter().for_each(|new| self.let_in(&new.spec));
        let unnamed: String = unnamed.map(|note| format!("\n  {note}")).into_iter().collect();
        let follow = command_with("show", [name], "--follow");
        let text = match joining {
            [] => format!("{name} is {} now, without redundancy until `openraid add` has filled each slot", step.level),
            _ => format!("{name} is {} now, and is filled: watch it with `{follow}`", step.level),
        };
        self.done(text + &unnamed, name)
    }

    /// What has moved moves back.
    pub(super) fn cancel_reshape(&self, name: &str) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let set = only_set(&served)?;
        let cancelled = self.handle.admin(AdminCommand::CancelReshape { array: set });
        outcome_of(name, cancelled)?;
        self.keep_shape_goal(&served, None);
        let follow = command_with("show", [name], "--follow");
        self.done(
            format!("the change of shape of {name} turns around, and data moves back; watch it with `{follow}`"),
            name,
        )
    }

    /// An event of an array whose shape changes, with the progress.
    pub(super) fn tell_of_reshape(&self, name: &str, event: EventName, what: &str) {
        let Ok(model) = self.array(name) else { return };
        let changes = model.sets().into_iter().filter_map(|set| set.shape.as_ref());
        let news = changes.map(|change| {
            let text = format!("{name}: {what}; {}", change.text);
            News { array: Some(name.to_owned()), ..plain(event, text) }
        });
        self.add_news(news.collect());
    }

    /// Note the changes of shape that are under way: at its end, a change is no longer in the status.
    pub(super) fn note_reshapes(&self, status: &ServiceStatus) {
        let found = status
            .arrays
            .iter()
            .filter_map(|view| Some((view.status.array, text::change(view.status.reshape.as_ref()?))));
        let (mut state, now) = (self.state(), Instant::now());
        found.for_each(|(array, change)| state.reshapes.see(array, change, now));
    }

    /// Shapes and sizes, for the notice of a change's begin or end.
    pub(super) fn about_reshape(&self, notice: &Notice) -> String {
        if !matches!(notice.kind, NoticeKind::ReshapeBegun | NoticeKind::ReshapeFinished) {
            return String::new();
        }
        let Ok(status) = self.status() else { return String::new() };
        self.note_reshapes(&status);
        let view = status.arrays.iter().find(|view| view.status.array == notice.array);
        let is_cached = view.is_some_and(|view| view.status.policy.write_cache != WriteCache::Through);
        let known = match notice.kind {
            NoticeKind::ReshapeFinished => self.state().reshapes.end(notice.array),
            _ => self.state().reshapes.of(notice.array).cloned(),
        };
        let Some(change) = known else { return String::new() };
        let is_begun = notice.kind == NoticeKind::ReshapeBegun;
        format!(": {}", text::notice(&change, is_begun, is_cached))
    }

    /// The change did not begin: drives that were added for it are taken out again.
    fn not_begun(&self, served: &ServedArray, set: ArrayId, joined: &[DriveId], failure: Failure) -> Failure {
        let after: String = joined.iter().map(|drive| self.take_out_again(&served.name, set, *drive)).collect();
        let text = failure.text() + &after;
        failure.worded(text)
    }
}

/// The set whose shape is to change.
pub(super) fn only_set(served: &ServedArray) -> Result<ArrayId, Failure> {
    match served.sets().as_slice() {
        [only] => Ok(*only),
        _ => Err(Failure::refused(format!(
            "{} is nested: the shape of its spans cannot change while it is served; make a second array and copy",
            served.name
        ))),
    }
}

/// The shape that a user asks for. Fields that are not named stay.
fn asked_shape(common: &Superblock, order: &ReshapeOrder) -> Result<ShapeFields, Failure> {
    let named = order.members.len();
    let ReshapeOrder { raid_devices, level, chunk, layout, .. } = order;
    if named == 0 && raid_devices.is_none() && level.is_none() && chunk.is_none() && layout.is_none() {
        return Err(Failure::usage(
            "say what shall change: --members DRIVE..., --raid-devices N, --level, --chunk, --layout, --size or --array-size",
        ));
    }
    let md_level = match level {
        None => common.level,
        Some(word) => {
            let level = words::level(word).map_err(Failure::usage)?;
            words::md_level(level).ok_or_else(|| Failure::usage("jbod has no metadata, and no array becomes one"))?
        }
    };
    // Without another word the data columns stay.
    let kept = match (common.level, md_level) {
        (MdLevel::Raid4 | MdLevel::Raid5, MdLevel::Raid6) => common.raid_disks + 1,
        (MdLevel::Raid6, MdLevel::Raid4 | MdLevel::Raid5) => common.raid_disks - 1,
        (MdLevel::Raid0, MdLevel::Raid4 | MdLevel::Raid5) => common.raid_disks + 1,
        (MdLevel::Raid0, MdLevel::Raid6) => common.raid_disks + 2,
        (MdLevel::Raid0, MdLevel::Raid10) => 2 * common.raid_disks,
        (MdLevel::Raid4 | MdLevel::Raid5, MdLevel::Raid0) => common.raid_disks - 1,
        (MdLevel::Raid10, MdLevel::Raid0) => common.raid_disks / 2,
        (MdLevel::Raid1, MdLevel::Raid0) => 1,
        _ => common.raid_disks,
    };
    let freed = usize::from(common.raid_disks.saturating_sub(kept));
    let needed = usize::from(kept.saturating_sub(common.raid_disks));
    let grown = usize::from(kept) + named.saturating_sub(needed) + if named > 0 { freed } else { 0 };
    let grown = u16::try_from(grown).unwrap_or(u16::MAX);
    let layout = match layout {
        None => default_layout(common, md_level),
        Some(word) => openraid_format::layout_from_word(md_level, word)
            .ok_or_else(|| Failure::usage(format!("{md_level} has no layout {word:?}")))?,
    };
    let chunk = match chunk {
        None => default_chunk(common, md_level),
        Some(text) => crate::quantity::sectors(text).map_err(Failure::usage)?,
    };
    Ok(ShapeFields { level: md_level, layout, chunk, raid_disks: raid_devices.unwrap_or(grown) })
}

/// The layout of an array that gets this level, if none is named: the parity goes through the members as before if the level
/// has such a layout.
fn default_layout(common: &Superblock, level: MdLevel) -> u32 {
    let last = openraid_format::default_layout(MdLevel::Raid5);
    match (common.level, level) {
        (before, after) if before == after => common.layout,
        (MdLevel::Raid5, MdLevel::Raid6) => common.layout,
        (MdLevel::Raid6, MdLevel::Raid5) => match common.layout {
            layout @ 0..=5 => layout,
            layout @ 16..=20 => layout - 16,
            _ => last,
        },
        (_, after) => openraid_format::default_layout(after),
    }
}

/// The chunk of an array that gets this level, if none is named.
fn default_chunk(common: &Superblock, level: MdLevel) -> Sectors {
    let mirror = ShapeFields { raid_disks: 2, ..common.shape() };
    match (common.level, level) {
        (_, MdLevel::Raid1) => Sectors::ZERO,
        // RAID 0 gets the same one as RAID 5.
        (MdLevel::Raid1, _) => next_step(mirror, common.size, ShapeFields { level: MdLevel::Raid5, ..mirror }).chunk,
        _ => common.chunk,
    }
}

/// The steps after the first one, in words. `to` becomes the shape after them.
fn later_steps(common: &Superblock, first: ShapeFields, end: ShapeFields, to: &mut ShapeModel) -> Vec<String> {
    let mut steps = Vec::new();
    let mut now = first;
    while now != end && steps.len() < STEPS_MAX {
        now = next_step(now, common.size, end);
        let size = text::geometry(&now, common.size).map_or(Sectors::ZERO, |geometry| geometry.capacity());
        *to = text::shape(&now, size);
        steps.push(format!("then the next change begins by itself: to {}", to.text));
    }
    steps
}

pub(super) fn plan_model(
    name: &str,
    status: &ServiceStatus,
    array: &ArrayStatus,
    plan: &ReshapePlan,
    joining: &[NewMemberSeen],
    order: &ReshapeOrder,
) -> ReshapePlanModel {
    let [before, after] = plan.capacities();
    let [old, new] = plan.geometries();
    let name_of =
        |drive: DriveId| status.drives.iter().find(|view| view.drive == drive).map(|view| view.member.clone());
    let spares = array.members.iter().filter(|line| line.state == MemberState::Spare);
    let spares = spares.filter_map(|line| Some((name_of(line.drive?)?, true)));
    let added = joining.iter().map(|new| (new.spec.clone(), false));
    let missing: SlotSet = (0..plan.from.raid_disks).map(Slot).filter(|slot| !has_member(array, *slot)).collect();
    let slots: Vec<u16> = match plan.kind {
        PlanKind::Takeover(_) => plan.left_empty(missing).iter().map(|slot| slot.0).collect(),
        _ => (plan.from.raid_disks..plan.new.raid_disks).collect(),
    };
    let joins = slots.into_iter().zip(spares.chain(added));
    let joins: Vec<NewSlotModel> =
        joins.map(|(slot, (member, is_spare))| NewSlotModel { slot, member, is_spare }).collect();
    let size = array.superblock.as_ref().map_or(Sectors::ZERO, |common| common.size);
    let written = plan.written_to_each(size).bytes().get();
    let read = if plan.kind == PlanKind::Move { size.bytes().get() } else { written };
    let pace = pace(&array.policy, rotation(status, array, joining), read, written);
    let survives = [old, new].map(|geometry| survives_losses(geometry, SlotSet::first_n(geometry.members())));
    let mut model = ReshapePlanModel {
        array: name.to_owned(),
        from: text::shape(&plan.from, before),
        to: text::shape(&plan.new, after),
        steps: Vec::new(),
        joins,
        shift_bytes: plan.shift.unsigned_abs() * openraid_units::SECTOR_BYTES,
        room_bytes: plan.room.bytes().get(),
        read_bytes: read,
        written_bytes: written,
        rate: pace.seconds.map(|seconds| written / seconds.max(1)),
        rate_basis: pace.basis,
        seconds: pace.seconds,
        survives: survives.into_iter().min().unwrap_or(0),
        md: text::MD_IN_THE_MIDDLE.to_owned(),
        risks: match plan.kind {
            PlanKind::Append => text::risks_of_append(),
            _ => text::risks(array.policy.write_cache, array.bitmap.is_some(), plan.can_be_cancelled()),
        },
        command: order_line(name, order),
        text: String::new(),
    };
    model.steps = text::steps(&model, plan.kind);
    model
}

/// Has a slot a member in sync?
fn has_member(array: &ArrayStatus, slot: Slot) -> bool {
    array.members.iter().any(|line| line.slot == Some(slot) && line.state == MemberState::InSync)
}

/// The command line that begins the change.
fn order_line(name: &str, order: &ReshapeOrder) -> String {
    let mut options = String::new();
    let number = order.raid_devices.map(|number| number.to_string());
    for (option, value) in [
        ("raid-devices", &number),
        ("level", &order.level),
        ("chunk", &order.chunk),
        ("layout", &order.layout),
        ("size", &order.size),
    ] {
        if let Some(value) = value {
            options.push_str(&format!(" --{option} {}", openraid_status::shell_quoting::words([value])));
        }
    }
    if !order.members.is_empty() {
        options.push_str(&format!(" --members {}", openraid_status::shell_quoting::words(&order.members)));
    }
    command("reshape", [name]) + &options
}

/// Do the drives of the plan rotate? `None` if that is unknown for one of them.
fn rotation(status: &ServiceStatus, array: &ArrayStatus, joining: &[NewMemberSeen]) -> Option<bool> {
    let of_members = array.members.iter().filter_map(|line| line.drive).map(|drive| {
        let view = status.drives.iter().find(|view| view.drive == drive);
        view.and_then(|view| view.names.rotates)
    });
    let all = of_members.chain(joining.iter().map(|new| new.rotates));
    all.collect::<Option<Vec<bool>>>().map(|all| all.contains(&true))
}

/// The expected time, and what it is based on.
struct Pace {
    seconds: Option<u64>,
    basis: String,
}

fn pace(policy: &Policy, rotates: Option<bool>, read: u64, written: u64) -> Pace {
    let setting = policy.rebuild_rate.bytes().get();
    let by_setting = (setting > 0).then(|| written / setting);
    let by_drives = rotates.map(|rotates| {
        if rotates {
            (read / ROTATING_RATE + written / ROTATING_RATE, "rotating drives that read and write in turn at 150 MB/s")
        } else {
            (read.max(written) / SSD_RATE, "SSDs that read and write at 400 MB/s")
        }
    });
    let limit = format!("the setting rebuild.rate, at most {} of each member", crate::quantity::human_rate(setting));
    match (by_setting, by_drives) {
        (None, None) => {
            Pace { seconds: None, basis: "neither a limit (rebuild.rate) nor the class of the drives is known".into() }
        }
        (Some(seconds), None) => {
            Pace { seconds: Some(seconds), basis: format!("{limit}; the class of the drives is not known") }
        }
        (Some(seconds), Some((slower, _))) if seconds >= slower => Pace { seconds: Some(seconds), basis: limit },
        (_, Some((seconds, what))) => {
            Pace { seconds: Some(seconds), basis: format!("{what} (an assumption, not measured)") }
        }
    }
}
