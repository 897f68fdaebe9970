//! Verdicts on members that are not served (`examine`, `scan`, `doctor`, `assemble`), as text and as JSON.

use openraid_core::array::membership::Membership;
use openraid_format::DeviceFlags;
use openraid_runtime::member::{DeviceNames, ProbedMember};
use openraid_status::VerdictWord;
use serde::Serialize;

use crate::model::LevelWord;
use crate::on_disk::bad_blocks;
use crate::on_disk::kernels_before_6_19;
use crate::on_disk::sets::{self, SetPlan};
use crate::on_disk::split_brain::SplitBrain;
use crate::output::array::unsynced_words;
use crate::quantity::counted;
use crate::words::level_word;

/// What md's flag of a member means here.
pub const WRITE_MOSTLY: &str = "write-mostly: it is read only where no other copy can be";
/// What becomes of a bitmap that cannot be used.
pub const BITMAP_REMADE: &str =
    "the bitmap is damaged or out of date on all members, and is made again with all regions marked";

/// A member and its verdict.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct MemberVerdict {
    /// Path or address of the member.
    pub member: String,
    /// A word: `member`, `rebuilding`, `replacement`, `spare`, `stale`, `failed`, `replaced`, `split`, `duplicate`, `forced`,
    /// `stranger`, `unreadable`, `refused`.
    #[schema(value_type = String)]
    pub verdict: VerdictWord,
    /// Slot of the member, if it has one.
    pub slot: Option<u16>,
    /// The drive's serial number; null if the kernel does not know one, as for a file.
    pub serial: Option<String>,
    /// The drive's model.
    pub model: Option<String>,
    /// The drive's place in an enclosure.
    pub bay: Option<String>,
    /// The verdict in a sentence, with the remedy.
    pub text: String,
}

/// A member that is missing in a started array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct LeftOut {
    /// Name of the array.
    pub array: String,
    /// The member, and why it is missing.
    #[serde(flatten)]
    pub member: MemberVerdict,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} is left out: {}", self.array, self.member.member, self.member.text)
    }
}

/// The array that some members form, or fail to form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct SetVerdict {
    /// Name of the array, from its superblocks.
    pub name: String,
    /// UUID of the set.
    pub uuid: String,
    /// Name of the level, such as `raid5`.
    #[schema(value_type = String)]
    pub level: LevelWord,
    /// Number of slots of the set.
    pub slots: u16,
    /// Numbers of the slots without a usable member.
    pub missing: Vec<u16>,
    /// Would the set start with these members, without force?
    pub starts: bool,
    /// Would it start with a slot vacant?
    pub degraded: bool,
    /// Why it does not start, or the risk of a forced start.
    pub problem: Option<String>,
    /// Is parity in sync, or are the copies? If not, a resync follows the start. Rows that it has not reached yet may have
    /// no redundancy.
    pub synced: bool,
    /// Does a journal hold acknowledged writes of the array? It starts with that journal, or without the writes by an
    /// option.
    pub needs_journal: bool,
    /// The logical block in its superblocks, as written by kernels since 6.19; older kernels refuse the array then.
    pub logical_block_bytes: Option<u64>,
    /// Both halves of a split array are there: the commands that choose the half to serve.
    pub halves: Option<String>,
    /// Bytes of the set that cannot be read because of the bad-block logs of its members.
    pub unreadable_bytes: u64,
    /// Further facts about the set, a sentence each.
    pub notes: Vec<String>,
    /// The members that belong to the set, with a verdict on each.
    pub members: Vec<MemberVerdict>,
}

pub fn set_verdict(set: &SetPlan, members: &[ProbedMember]) -> SetVerdict {
    let name = |drive: openraid_units::DriveId| members[drive.index()].spec.text.clone();
    let (starts, missing, problem) = match &set.plan {
        Ok(plan) => (true, plan.missing.iter().map(|slot| slot.0).collect(), plan.forced.clone()),
        Err(error) => (false, missing_of(error), Some(sets::assemble_error(error, &name).text())),
    };
    let lines = set.members.iter().map(|place| match set.verdict(*place) {
        Some(verdict) => of_verdict(&members[*place], verdict, set, members),
        None => unplanned(&members[*place], set, members),
    });
    SetVerdict {
        name: set.newest.set_name.to_string(),
        uuid: set.uuid.to_string(),
        level: level_word(&set.newest),
        slots: set.newest.raid_disks,
        degraded: !missing.is_empty(),
        missing,
        starts,
        problem,
        synced: set.plan.as_ref().map_or(true, |plan| plan.resync_from.is_none()),
        needs_journal: set.newest.journal.is_some(),
        logical_block_bytes: kernels_before_6_19::logical_block(set, members).map(|block| block.bytes().get()),
        halves: SplitBrain::of(set, members).map(|halves| halves.choice("serve")),
        unreadable_bytes: bad_blocks::unreadable(set, members).get(),
        notes: kernels_before_6_19::note(set, members)
            .into_iter()
            .chain(bad_blocks::note(set, members))
            .chain(bitmap_note(set))
            .collect(),
        members: lines.collect(),
    }
}

/// A bitmap that no member has in a usable form.
fn bitmap_note(set: &SetPlan) -> Option<String> {
    let bitmap = set.plan.as_ref().ok()?.bitmap.as_ref()?;
    (!bitmap.valid).then(|| format!("{BITMAP_REMADE} at the next start"))
}

fn missing_of(error: &openraid_core::array::assemble::AssembleError) -> Vec<u16> {
    use openraid_core::array::assemble::AssembleError::{DirtyDegraded, TooFew};
    match error {
        TooFew { missing, .. } | DirtyDegraded { missing } => missing.iter().map(|slot| slot.0).collect(),
        _ => Vec::new(),
    }
}

/// The verdict by a member's own superblock, if the array as a whole could not be planned.
fn unplanned(member: &ProbedMember, set: &SetPlan, members: &[ProbedMember]) -> MemberVerdict {
    let superblock = member.look.superblock.as_ref().expect("members of a set have superblocks");
    let verdict = match set.newest.roles.get(superblock.dev_number) {
        openraid_format::DeviceRole::Active(_) if superblock.events.saturating_add(1) < set.newest.events => {
            Membership::Stale { events: superblock.events, newest: set.newest.events }
        }
        openraid_format::DeviceRole::Active(slot) => Membership::Member(slot),
        openraid_format::DeviceRole::Spare => Membership::Spare,
        _ => Membership::Failed,
    };
    of_verdict(member, verdict, set, members)
}

/// The members that are missing at a start of a set, and why.
pub fn left_out(set: &SetPlan, members: &[ProbedMember]) -> Vec<LeftOut> {
    let places = set.members.iter().filter_map(|place| Some((*place, set.verdict(*place)?)));
    let lines = places.filter(|(_, verdict)| verdict.is_left_out()).map(|(place, verdict)| LeftOut {
        array: sets::array_name(&set.newest),
        member: of_verdict(&members[place], verdict, set, members),
    });
    lines.collect()
}

/// The text of a verdict that concerns two members, with the name of the other one.
fn between_two(member: &ProbedMember, verdict: Membership, set: &SetPlan, members: &[ProbedMember]) -> Option<String> {
    let superblock = member.look.superblock.as_ref()?;
    match verdict {
        Membership::Split { .. } => Some(sets::split_text(superblock, &set.plan.as_ref().ok()?.common)),
        Membership::SlotTaken(slot) => {
            let is_copy = |other: &&ProbedMember| {
                other.spec != member.spec
                    && other.look.superblock.as_ref().is_some_and(|other| other.device_uuid == superblock.device_uuid)
            };
            let taken = |place: &&usize| set.verdict(**place).is_some_and(|verdict| !verdict.is_left_out());
            let others = set.members.iter().filter(taken).map(|place| &members[*place]);
            let original = others.clone().find(is_copy)?;
            Some(format!("a copy of {} (same device UUID), which is the member of slot {slot}", original.spec))
        }
        _ => None,
    }
}

fn of_verdict(member: &ProbedMember, verdict: Membership, set: &SetPlan, members: &[ProbedMember]) -> MemberVerdict {
    let (word, slot) = match verdict {
        Membership::Member(slot) => (VerdictWord::Member, Some(slot)),
        Membership::Rebuilding(slot, _) => (VerdictWord::Rebuilding, Some(slot)),
        Membership::Replacement(slot, _) => (VerdictWord::Replacement, Some(slot)),
        Membership::Spare => (VerdictWord::Spare, None),
        Membership::Stale { .. } => (VerdictWord::Stale, None),
        Membership::Failed => (VerdictWord::Failed, None),
        Membership::Replaced => (VerdictWord::Replaced, None),
        Membership::Split { .. } => (VerdictWord::Split, None),
        Membership::SlotTaken(slot) => (VerdictWord::Duplicate, Some(slot)),
        Membership::Forced(slot) => (VerdictWord::Forced, Some(slot)),
    };
    let mut text = between_two(member, verdict, set, members).unwrap_or_else(|| verdict.to_string());
    if member
        .look
        .superblock
        .as_ref()
        .is_some_and(|superblock| superblock.device_flags.contains(DeviceFlags::WRITE_MOSTLY))
    {
        text.push_str(&format!("; {WRITE_MOSTLY}"));
    }
    if let Some(error) = &member.look.bitmap_error {
        text.push_str(&format!("; its bitmap is not usable: {error}"));
    }
    if let Some(error) = &member.look.bad_blocks_error {
        text.push_str(&format!("; its bad-block log is not usable: {error}"));
    }
    if !member.look.bad.is_empty() {
        text.push_str(&format!("; {} known", counted(member.look.bad.len() as u64, "bad range is", "bad ranges are")));
    }
    of_member(member, word, slot.map(|slot| slot.0), text)
}

fn of_member(member: &ProbedMember, verdict: VerdictWord, slot: Option<u16>, text: String) -> MemberVerdict {
    let DeviceNames { serial, model, bay, .. } = member.names.clone();
    MemberVerdict { member: member.spec.text.clone(), verdict, slot, serial, model, bay, text }
}

/// A member that belongs to no array.
pub fn stranger(member: &ProbedMember) -> MemberVerdict {
    let word = if member.look.superblock_error.is_some() { VerdictWord::Refused } else { VerdictWord::Stranger };
    of_member(member, word, None, sets::no_member(member).text())
}

/// A member that could not be opened.
pub fn unreadable(member: &str, why: &str) -> MemberVerdict {
    let text = why.strip_prefix(member).map_or(why, |rest| rest.trim_start_matches([':', ' ']));
    let (serial, model, bay) = (None, None, None);
    let (member, verdict, text) = (member.to_owned(), VerdictWord::Unreadable, text.to_owned());
    MemberVerdict { member, verdict, slot: None, serial, model, bay, text }
}

/// A member's line.
pub fn line(member: &MemberVerdict) -> String {
    let named = [("serial", &member.serial), ("model", &member.model), ("bay", &member.bay)];
    let named = named.into_iter().filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
    let named = named.collect::<Vec<_>>().join(", ");
    let drive = if named.is_empty() { String::new() } else { format!(" ({named})") };
    format!("    {}{drive}: {}", member.member, member.text)
}

/// A set, in lines.
pub fn set_text(set: &SetVerdict) -> String {
    let slots = counted(set.slots.into(), "slot", "slots");
    let mut lines = vec![format!("  array {} ({}, {}, uuid {})", set.name, set.level, slots, set.uuid)];
    lines.extend(set.members.iter().map(line));
    let missing: Vec<String> = set.missing.iter().map(ToString::to_string).collect();
    let missing = missing.join(", ");
    lines.push(match (set.starts, &set.problem) {
        (true, Some(risk)) => format!("    it starts by force: {}", risk.trim_end_matches([';', ' '])),
        (true, None) if set.needs_journal && set.degraded => format!("    slot {missing} has no member"),
        (true, None) if set.needs_journal => "    all members are there".into(),
        (true, None) if set.halves.is_some() => "    it starts with one of its halves only, which you choose".into(),
        (true, None) if set.degraded => format!("    it starts degraded: slot {missing} has no member"),
        (true, None) => "    it starts with all members".into(),
        (false, problem) => {
            format!("    it does not start: {}", problem.as_deref().unwrap_or("the reason is not known"))
        }
    });
    if set.starts && !set.synced {
        lines.push(format!("    {}: a resync follows the start", unsynced_words(&set.level)));
    }
    lines.extend(set.halves.iter().chain(&set.notes).map(|note| format!("    {note}")));
    if set.needs_journal {
        lines.push(
            "    a journal holds writes of this array: it starts with that journal only (serve --journal DEVICE), or \
             without those writes (--journal-lost)"
                .into(),
        );
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_disk::hostile::hostile_sets;
    use crate::on_disk::hostile::member;

    #[test]
    fn lists_of_members_have_the_names_of_their_drives() {
        let mut first = None;
        hostile_sets(1, |superblocks| first = first.take().or_else(|| superblocks.into_iter().next()));
        let mut probed = member("/dev/sdx", first.expect("a superblock"));
        assert!(line(&stranger(&probed)).starts_with("    /dev/sdx: "), "a file has no names");
        let text = |text: &str| Some(text.to_owned());
        probed.names = DeviceNames {
            serial: text("S1"),
            model: text("ST8000DM004-2CX188"),
            zoned: None,
            bay: text("7"),
            rotates: None,
            ..DeviceNames::default()
        };
        let found = stranger(&probed);
        assert_eq!((&found.serial, &found.model, &found.bay), (&text("S1"), &text("ST8000DM004-2CX188"), &text("7")));
        let wanted = "    /dev/sdx (serial S1, model ST8000DM004-2CX188, bay 7): ";
        assert!(line(&found).starts_with(wanted), "{}", line(&found));
    }
}
