//! Shapes of arrays, changes of them and their plans, in words.

use openraid_core::admin::{ReshapeStage, ReshapeStatus, WriteCache};
use openraid_core::array::reshape_plan::PlanKind;
use openraid_core::geometry::{Geometry, Level, SetSpec};
use openraid_format::{MdLevel, ReshapeDirection, ShapeFields, Superblock};
use openraid_status::shell_quoting::command_with;
use openraid_status::{DirectionWord, OtherSizeModel, ReshapeModel, ReshapePlanModel, ReshapeStageWord, ShapeModel};
use openraid_units::{Bytes, Sectors};

use super::array::survives_text;
use super::table::TextTable;
use crate::model::ArrayModel;
use crate::quantity::{counted, human, human_seconds};
use crate::words::layout_text;

/// What Linux md can do with an array whose shape changes.
pub const MD_IN_THE_MIDDLE: &str =
    "after `openraid stop`, Linux md can assemble the array at any recorded position and continue";

/// A shape, in the model.
pub fn shape(fields: &ShapeFields, size: Sectors) -> ShapeModel {
    let chunk_bytes = fields.chunk.bytes().get();
    let layout = layout_text(fields.level, fields.layout);
    let mut parts = vec![format!("{} of {} members", fields.level, fields.raid_disks)];
    parts.extend(layout.clone());
    parts.push(format!("chunk {}", human(Bytes(chunk_bytes))));
    ShapeModel {
        level: fields.level.to_string(),
        layout,
        members: fields.raid_disks,
        chunk_bytes,
        size_bytes: size.bytes().get(),
        text: parts.join(", "),
    }
}

/// The geometry of a shape whose members use this size each.
pub fn geometry(fields: &ShapeFields, member_size: Sectors) -> Option<Geometry> {
    // Only RAID 0 asks for each one.
    let member_sizes = vec![member_size; usize::from(fields.raid_disks)];
    let spec = SetSpec {
        level: Level::from_md(fields.level.number())?,
        members: fields.raid_disks,
        chunk: fields.chunk,
        layout: fields.layout,
        member_size,
        member_sizes: &member_sizes,
    };
    Geometry::new(&spec).ok()
}

/// A change that is under way, in the model.
pub fn change(status: &ReshapeStatus) -> ReshapeModel {
    let [before, after] = status.capacities;
    let mut model = ReshapeModel {
        from: shape(&status.from, before),
        to: shape(&status.to, after),
        direction: match status.direction {
            ReshapeDirection::Forward => DirectionWord::Forwards,
            ReshapeDirection::Backward => DirectionWord::Backwards,
        },
        stage: match status.stage {
            ReshapeStage::Draining => ReshapeStageWord::Draining,
            ReshapeStage::Beginning => ReshapeStageWord::Beginning,
            ReshapeStage::Moving => ReshapeStageWord::Moving,
            ReshapeStage::Ending => ReshapeStageWord::Ending,
        },
        moved_bytes: status.moved.bytes().get(),
        recorded_bytes: status.recorded.bytes().get(),
        position_bytes: status.position.offset().bytes().get(),
        total_bytes: status.total.bytes().get(),
        text: String::new(),
    };
    model.text = change_text(&model);
    model
}

/// The change that a member's superblock describes, in the model.
pub fn recorded(superblock: &Superblock) -> Option<ReshapeModel> {
    let found = superblock.change()?;
    let size = |shape| geometry(shape, found.size).map_or(Sectors::ZERO, |of| of.capacity());
    let total = match found.direction {
        ReshapeDirection::Forward => size(&found.new),
        ReshapeDirection::Backward => size(&found.old).min(size(&found.new)),
    };
    let moved = match found.direction {
        ReshapeDirection::Forward => found.position.offset().min(total),
        ReshapeDirection::Backward => total - found.position.offset().min(total),
    };
    let status = ReshapeStatus {
        from: found.old,
        to: found.new,
        capacities: [size(&found.old), size(&found.new)],
        direction: found.direction,
        stage: ReshapeStage::Moving,
        moved,
        recorded: moved,
        total,
        position: found.position,
    };
    Some(change(&status))
}

/// The change that the newest of these superblocks describes for an array. A trial start in memory goes on with the change.
pub fn set_recorded<'a>(array: &mut ArrayModel, superblocks: impl Iterator<Item = &'a Superblock>) {
    let newest =
        superblocks.filter(|found| Some(found.set_uuid.to_string()) == array.uuid).max_by_key(|found| found.events);
    array.shape = newest.and_then(recorded);
}

/// The share that has moved, in percent.
pub fn percent(change: &ReshapeModel) -> u64 {
    let share = u128::from(change.moved_bytes) * 100 / u128::from(change.total_bytes.max(1));
    u64::try_from(share).unwrap_or(100)
}

/// The shape on each side of the boundary.
pub fn sides(change: &ReshapeModel) -> [String; 2] {
    let (below, from) = match change.direction {
        DirectionWord::Forwards => (&change.to, &change.from),
        DirectionWord::Backwards => (&change.from, &change.to),
    };
    let at = human(Bytes(change.position_bytes));
    [format!("below {at} of the array: {}", below.text), format!("from there on: {}", from.text)]
}

/// What `doctor` says of an array whose shape changes.
pub fn advice(change: &ReshapeModel) -> Vec<String> {
    let mut lines = vec![format!("its shape changes: {} % has moved, {}", percent(change), change.direction)];
    lines.extend(sides(change));
    lines.push("a server goes on with the change from there".into());
    lines.push(
        "if Linux md began it (mdadm --grow) and was cut off, md may have spoiled data without a message: the first stripes of a \
         grow, any place if level, chunk or layout change, and more with a backup file. Nothing is repaired: read the array with \
         `openraid copy-out`, and compare it with a backup before you go on"
            .into(),
    );
    lines
}

/// Both shapes.
pub fn from_to(change: &ReshapeModel) -> String {
    if change.from.text == change.to.text {
        let how = if change.to.size_bytes < change.from.size_bytes { "less" } else { "more" };
        return format!("{}, {how} of each member", change.to.text);
    }
    format!("{} -> {}", change.from.text, change.to.text)
}

/// A change in a line.
fn change_text(change: &ReshapeModel) -> String {
    format!(
        "{}: {}, {}; moved {} of {}, recorded up to {}",
        from_to(change),
        change.stage.text(),
        change.direction,
        human(Bytes(change.moved_bytes)),
        human(Bytes(change.total_bytes)),
        human(Bytes(change.position_bytes)),
    )
}

/// The begin or the end of a change, for its event.
pub fn notice(change: &ReshapeModel, is_begun: bool, is_cached: bool) -> String {
    let [before, after] = [&change.from, &change.to].map(|shape| human(Bytes(shape.size_bytes)));
    let sizes = if is_begun {
        format!("the array has {before}, and {after} at the end")
    } else {
        format!("the array had {before} and has {after}; clients learn that when they connect again")
    };
    let cached = match (is_cached, is_begun) {
        (false, _) => "",
        (true, true) => "; writes are acknowledged when they are on the members, until the end",
        (true, false) => "; write.cache holds again",
    };
    format!("{}; {sizes}{cached}", from_to(change))
}

/// The size that the array has after the change, if that is another one.
pub fn size_after(change: &ReshapeModel, size_bytes: u64) -> Option<String> {
    (change.to.size_bytes != size_bytes).then(|| format!("; {} after the reshape", human(Bytes(change.to.size_bytes))))
}

/// Clients that know another size.
pub fn other_sizes(all: &[OtherSizeModel]) -> Option<String> {
    let one = |other: &OtherSizeModel| {
        let clients = counted(other.clients, "client", "clients");
        format!("{clients} of {}", human(Bytes(other.size_bytes)))
    };
    let texts: Vec<String> = all.iter().map(one).collect();
    (!texts.is_empty()).then(|| format!("{}: a client learns the new size when it connects again", texts.join(", ")))
}

/// What a plan does, one step after the other.
pub fn steps(plan: &ReshapePlanModel, kind: PlanKind) -> Vec<String> {
    let mut steps = Vec::new();
    let added: Vec<&str> = plan.joins.iter().filter(|join| !join.is_spare).map(|join| join.member.as_str()).collect();
    if kind == PlanKind::Append {
        steps.extend(
            added.iter().map(|drive| format!("{drive} gets its superblock, and then the others name its slot")),
        );
        steps.push(format!("hosts get {}", human(Bytes(plan.to.size_bytes))));
        return steps;
    }
    if !added.is_empty() && !is_striped(&plan.from) {
        steps.push(format!("{} joins the array as a spare", added.join(", ")));
    }
    steps.push("cached writes go to the members, and writes go through from then on".into());
    if kind == PlanKind::Move {
        steps.push("the superblocks record both shapes".into());
        steps.push(
            "data moves to its new places while hosts read and write; the position is recorded again and again".into(),
        );
    }
    steps.push(match kind {
        PlanKind::Cut(_) => {
            "the superblocks record the smaller size; what was beyond it is no data of the array any longer".into()
        }
        _ => format!("the superblocks record the new shape; hosts get {}", human(Bytes(plan.to.size_bytes))),
    });
    if is_striped(&plan.to) {
        steps.push(
            "a write-intent bitmap goes with the redundancy; from then on the loss of any member loses data".into(),
        );
    }
    if let PlanKind::Resize(_) = kind {
        steps.push("a resync makes parity or copies of the new part agree".into());
    }
    if is_striped(&plan.from) {
        steps.push(match added.as_slice() {
            [] => "no drive is named: there is no redundancy until `openraid add` has filled each new slot".into(),
            _ => format!("{} joins the array and is filled; until then there is no redundancy", added.join(", ")),
        });
    }
    steps
}

fn is_linear(shape: &ShapeModel) -> bool {
    shape.level == MdLevel::Linear.to_string()
}

/// Has a shape no redundancy? Then no drive can join before the change.
fn is_striped(shape: &ShapeModel) -> bool {
    shape.level == MdLevel::Raid0.to_string()
}

/// The step before all others, if hosts have the end of the array still.
pub fn cut_off_first(array: &str, left: Sectors) -> String {
    let order = command_with("reshape", [array], &format!("--array-size {}K", left.get() / 2));
    format!("FIRST: `{order}` cuts off the end of the array for hosts; nothing of it is lost yet, so look whether all is there")
}

/// What may go wrong or be slower.
pub fn risks(cache: WriteCache, has_bitmap: bool, can_be_cancelled: bool) -> Vec<String> {
    let mut risks = vec![
        "a power cut, a kill or a lost member that the array survives loses nothing; the change goes on from the recorded position"
            .to_owned(),
        if can_be_cancelled {
            "`openraid reshape ARRAY --cancel` moves the data back; `openraid pause` holds the change".to_owned()
        } else {
            "the change cannot be cancelled; `openraid pause` holds it".to_owned()
        },
        "hosts share the members with the change; rebuild.rate limits it".to_owned(),
    ];
    if cache != WriteCache::Through {
        risks.push("writes are acknowledged when they are on the members until the end, so they are slower".to_owned());
    }
    if !has_bitmap {
        risks.push("after an unclean end all parity is made consistent again before the data is redundant".to_owned());
    }
    risks
}

/// What may go wrong if a linear array gets a drive.
pub fn risks_of_append() -> Vec<String> {
    vec![
        "a power cut leaves the array as it was, or with the drive".to_owned(),
        "the drive cannot be taken out again, and without it the array does not start".to_owned(),
    ]
}

/// A plan, for people.
pub fn plan(plan: &ReshapePlanModel) -> String {
    let mut facts = TextTable::plain().indented(2);
    facts.row(["from", plan.from.text.as_str()]);
    facts.row(["to", &plan.to.text]);
    facts.row(["size", &format!("{} -> {}", human(Bytes(plan.from.size_bytes)), human(Bytes(plan.to.size_bytes)))]);
    for join in &plan.joins {
        let how = match join.is_spare {
            true => "a spare of the array",
            false if is_linear(&plan.from) => "at the end",
            false if is_striped(&plan.from) => "added then",
            false => "added first",
        };
        facts.row([format!("slot {}", join.slot), format!("{} ({how})", join.member)]);
    }
    for (number, step) in plan.steps.iter().enumerate() {
        facts.row([if number == 0 { "steps" } else { "" }, &format!("{}. {step}", number + 1)]);
    }
    if plan.written_bytes == 0 {
        facts.row(["work", "none: the same bytes at the same places mean the same data in the new shape"]);
    } else {
        if plan.shift_bytes > 0 {
            let (room, shift) = (human(Bytes(plan.room_bytes)), human(Bytes(plan.shift_bytes)));
            let room = format!(
                "at least {room} before the data of each member; the start of the data moves by {shift}, so no data is written twice"
            );
            facts.row(["room", &room]);
        }
        facts.row(["work", &work(plan)]);
    }
    facts.row(["time", &time(plan)]);
    facts.row(["survives", &format!("{}, all the time", survives_text(plan.survives))]);
    facts.row(["md", &plan.md]);
    for (number, risk) in plan.risks.iter().enumerate() {
        facts.row([if number == 0 { "risks" } else { "" }, risk]);
    }
    format!(
        "{}: a plan, nothing was changed\n{}\nBegin it with `{}`",
        plan.array,
        facts.text().trim_end(),
        plan.command
    )
}

fn work(plan: &ReshapePlanModel) -> String {
    let (read, written) = (human(Bytes(plan.read_bytes)), human(Bytes(plan.written_bytes)));
    format!("{read} read from each present member, {written} written to each member of the new shape")
}

/// The expected time, and what that is based on.
fn time(plan: &ReshapePlanModel) -> String {
    match plan.seconds {
        Some(seconds) => format!("about {} without load, by {}", human_seconds(seconds.max(1)), plan.rate_basis),
        None => format!("unknown: {}", plan.rate_basis),
    }
}

/// The question before a change begins.
pub fn question(plan: &ReshapePlanModel) -> String {
    let lost = match plan.from.size_bytes.saturating_sub(plan.to.size_bytes) {
        0 => String::new(),
        bytes => format!("; the last {} of the array are lost for good", human(Bytes(bytes))),
    };
    format!(
        "{}: {} -> {} ({} -> {}), {}{lost}",
        plan.array,
        plan.from.text,
        plan.to.text,
        human(Bytes(plan.from.size_bytes)),
        human(Bytes(plan.to.size_bytes)),
        time(plan)
    )
}
