//! The sets that members form: the members of each array together, planned without a start.
//!
//! The core numbers drives; users name them. All results here have names.

use openraid_core::array::assemble::{self, AssembleError, AssembleOptions, Assembly, Candidate};
use openraid_core::array::membership::Membership;
use openraid_core::array::new_array::CreateError;
use openraid_core::geometry::GeometryError;
use openraid_core::slot_set::SlotSet;
use openraid_format::{FeatureMap, ForeignKind, MdLevel, Superblock, Uuid};
use openraid_runtime::member::ProbedMember;
use openraid_units::DriveId;

use crate::failure::{ArrayLabel, Failure};
use crate::members::contents::contents;
use crate::on_disk::split_brain::at_text;
use crate::quantity::counted;
use crate::service_exit::Cause;

/// The members of one array.
#[derive(Debug)]
pub struct SetPlan {
    pub uuid: Uuid,
    /// The newest superblock.
    pub newest: Superblock,
    /// Its members, as places in the list they came from.
    pub members: Vec<usize>,
    /// The array that they make, or why they make none.
    pub plan: Result<Assembly, AssembleError>,
}

/// The map of a RAID 0, for a member whose superblock does not say it.
pub fn say_layout(member: &mut ProbedMember, layout: u32) {
    let superblock = member.look.superblock.as_mut();
    let superblock =
        superblock.filter(|superblock| superblock.level == MdLevel::Raid0 && superblock.raid0_layout().is_none());
    if let Some(superblock) = superblock {
        superblock.layout = layout;
        superblock.features.set(FeatureMap::RAID0_LAYOUT, true);
    }
}

/// The arrays that these members make, and the members that belong to none.
pub fn plan(members: &[ProbedMember], force: bool) -> (Vec<SetPlan>, Vec<usize>) {
    plan_as(members, AssembleOptions { force, ..AssembleOptions::default() })
}

/// The same by other rules.
pub fn plan_as(members: &[ProbedMember], options: AssembleOptions) -> (Vec<SetPlan>, Vec<usize>) {
    let mut sets: Vec<(Uuid, Vec<usize>)> = Vec::new();
    let mut strangers = Vec::new();
    for (place, member) in members.iter().enumerate() {
        let Some(superblock) = &member.look.superblock else {
            strangers.push(place);
            continue;
        };
        match sets.iter_mut().find(|(uuid, _)| *uuid == superblock.set_uuid) {
            Some((_, set)) => set.push(place),
            None => sets.push((superblock.set_uuid, vec![place])),
        }
    }
    let plans = sets.into_iter().map(|(uuid, set)| {
        let candidates: Vec<Candidate> =
            set.iter().filter_map(|place| members[*place].candidate(number(*place))).collect();
        let newest =
            candidates.iter().map(|candidate| &candidate.superblock).max_by_key(|superblock| superblock.events);
        let newest = newest.expect("a set has a member").clone();
        SetPlan { uuid, newest, members: set, plan: assemble::plan(&candidates, options) }
    });
    (plans.collect(), strangers)
}

/// The engine's number for a place in the list.
pub fn number(place: usize) -> DriveId {
    DriveId(u16::try_from(place).expect("fewer members than the command line takes"))
}

impl SetPlan {
    /// The array or span that these members are of.
    pub fn label(&self, members: &[ProbedMember]) -> ArrayLabel {
        let members = self.members.iter().map(|place| members[*place].spec.text.clone()).collect();
        ArrayLabel { members, ..ArrayLabel::new(&array_name(&self.newest), Some(self.uuid)) }
    }

    /// What became of a member, by its place in the list.
    pub fn verdict(&self, place: usize) -> Option<Membership> {
        let plan = self.plan.as_ref().ok()?;
        plan.verdicts.iter().find(|(drive, _)| *drive == number(place)).map(|(_, verdict)| *verdict)
    }
}

/// What an array is called here: its name without the host, whatever md has put into it. Control characters would act
/// on terminals; an array without a name goes by the start of its identity.
pub fn array_name(superblock: &Superblock) -> String {
    let name: String = superblock.set_name.name().chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    if name.is_empty() {
        return superblock.set_uuid.to_string()[..8].into();
    }
    name
}

/// Names of drives by the engine's number.
pub type Names<'a> = &'a dyn Fn(DriveId) -> String;

/// Why members make no array, with their names.
pub fn assemble_error(error: &AssembleError, name: Names<'_>) -> Failure {
    let (fault, remedy) = match error {
        AssembleError::OtherArray { drive, belongs_to, array } => (
            format!("{} belongs to array {belongs_to}, not to {array}", name(*drive)),
            "leave it out, or assemble that array".to_owned(),
        ),
        AssembleError::Unsupported { drive, features } if features.contains(FeatureMap::JOURNAL) => (
            format!(
                "{} has Linux md's own journal ({features}), which may hold writes that the members do not have",
                name(*drive)
            ),
            "start the array with Linux md and the journal's device, which plays it back, take the journal out of it there \
             (docs/journal.md says how), and stop it; then it can be served here"
                .into(),
        ),
        AssembleError::Unsupported { drive, features } => (
            format!("{} uses features that are not served here: {features}", name(*drive)),
            "use Linux md for this array".into(),
        ),
        AssembleError::Disagree { drive, field } => (
            format!("{} disagrees with the newest superblock about the {field}", name(*drive)),
            "compare the members with `openraid examine` and leave it out".into(),
        ),
        AssembleError::Shrunk { drive, need, have } => (
            format!(
                "{} has {}, but its superblock says that it needs {}",
                name(*drive),
                have.readable(),
                need.readable()
            ),
            "it was cut short, or is not the drive it was".into(),
        ),
        AssembleError::AbsurdEvents { drive, events } => (
            format!("{} has an impossible event count ({events}): its superblock is damaged", name(*drive)),
            "leave it out".into(),
        ),
        AssembleError::TooFew { missing, have, stale } => too_few(*missing, *have, *stale),
        AssembleError::DirtyDegraded { missing } => (
            format!(
                "the array was not stopped cleanly (or its first sync is not complete), and {} without a member: rows that \
                 were being written, or not yet synced, may be wrong there",
                slots_are(*missing)
            ),
            "bring the missing members back, or accept that risk with --force".into(),
        ),
        AssembleError::Bitmap { drive, error } => (
            format!("{}: {error}", name(*drive)),
            "`openraid copy-out` reads the array as it is, without a server".into(),
        ),
        AssembleError::Geometry(GeometryError::StripedLayout { .. }) => (
            error.to_string(),
            "name all members after each of these commands, as `mdadm --assemble --update=layout-alternate /dev/mdN MEMBER...`"
                .into(),
        ),
        AssembleError::Nothing | AssembleError::Geometry(_) | AssembleError::Change(_) => {
            return Failure::of_cause(error);
        }
    };
    Failure::new(error.exit(), fault).remedy(remedy)
}

/// The fault and the remedy of an array with too few members.
fn too_few(missing: SlotSet, have: u32, stale: u32) -> (String, String) {
    let good = counted(have.into(), "good one is", "good ones are");
    let remedy = if stale > 0 {
        let stale = counted(stale.into(), "stale member", "stale members");
        format!("--force would use {stale}; writes that they missed are lost")
    } else {
        "find the missing drives, or their replacements".into()
    };
    (format!("not enough members: {good} there, {} without one", slots_are(missing)), remedy)
}

/// Why an array cannot be made, with the names of its members.
pub fn create_error(error: &CreateError, name: Names<'_>) -> String {
    match error {
        CreateError::Placement { drive, error } => format!("{}: {error}", name(*drive)),
        CreateError::SpareTooSmall { drive, .. } => {
            format!("{}: {}", name(*drive), error.too_small_text().expect("it is too small"))
        }
        CreateError::TooManyMissing(missing) => {
            format!("{} missing, which is more than this level survives; name more members", slots_are(*missing))
        }
        _ => error.to_string(),
    }
}

/// Two halves of an array that ran without each other: where each of them is, and what it means to bring one to the
/// other.
pub fn split_text(superblock: &Superblock, array: &Superblock) -> String {
    format!(
        "split brain: it ran without the other half of the array. It is at {}; the other half is at {}. Data written \
         to it alone is lost when it is added",
        at_text(superblock),
        at_text(array)
    )
}

/// `slot 2 is`, `slots 1 and 3 are`.
fn slots_are(set: SlotSet) -> String {
    let verb = if set.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", slots_text(set))
}

/// `slot 2`, `slots 1 and 3`, `slots 0, 1 and 2`.
pub fn slots_text(set: SlotSet) -> String {
    let numbers: Vec<String> = set.iter().map(|slot| slot.to_string()).collect();
    match numbers.as_slice() {
        [] => "no slot".into(),
        [one] => format!("slot {one}"),
        [first @ .., last] => format!("slots {} and {last}", first.join(", ")),
    }
}

/// Why a member is of no use to any array.
pub fn no_member(member: &ProbedMember) -> Failure {
    match &member.look.superblock_error {
        Some((minor, error)) => Failure::refused(format!("superblock {minor}: {error}")),
        None if member.look.foreign.signatures.is_empty() => {
            Failure::refused("no md superblock: it belongs to no array")
        }
        None => {
            let failure = Failure::refused(format!("no superblock of md 1.x, but: {}", contents(member)));
            match next_step(member) {
                Some(step) => failure.remedy(step),
                None => failure,
            }
        }
    }
}

/// What to do with metadata that openraid does not read, if this is known.
fn next_step(member: &ProbedMember) -> Option<&'static str> {
    let signatures = &member.look.foreign.signatures;
    let has = |name: &str| signatures.iter().any(|signature| signature.name() == name);
    if signatures.iter().any(|signature| signature.is(ForeignKind::Md0)) {
        Some("openraid only reads md 0.90: copy the data with `openraid copy-out MEMBER... > image`, or convert the array once with \
         `mdadm --assemble --update=metadata /dev/mdN MEMBER...`")
    } else if has("ddf_raid_member") || has("isw_raid_member") {
        Some("openraid does not read the metadata of RAID cards and firmware: assemble it with `mdadm --assemble --scan`, and copy \
         the data to a new array")
    } else if has("PMBR") && !has("gpt") {
        Some("this is the first sector of a GPT, whose header is damaged or overwritten: if its partitions are the members, restore the \
         header from its copy at the end of the disk (`sgdisk --verify DRIVE`; in `gdisk DRIVE`, r and b), then name them; if a \
         partition table was written over members, see docs/recovery.md")
    } else if has("gpt") || has("dos") {
        Some("if its partitions are the members, name them; if a partition table was written over members, see docs/recovery.md")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_disk::hostile::{hostile_sets, member};
    use openraid_units::Slot;

    #[test]
    fn slots_are_named_as_people_do() {
        let set = |numbers: &[u16]| numbers.iter().map(|n| Slot(*n)).collect::<SlotSet>();
        assert_eq!(slots_text(set(&[])), "no slot");
        assert_eq!(slots_are(set(&[2])), "slot 2 is");
        assert_eq!(slots_are(set(&[0, 5, 9])), "slots 0, 5 and 9 are");
    }

    #[test]
    fn superblocks_that_decode_never_break_the_planning_whatever_they_say() {
        let mut planned = 0;
        hostile_sets(3000, |superblocks| {
            let members: Vec<ProbedMember> =
                superblocks.into_iter().map(|superblock| member("/d", superblock)).collect();
            for force in [false, true] {
                for set in plan(&members, force).0 {
                    planned += usize::from(set.plan.is_ok());
                    crate::output::verdicts::set_verdict(&set, &members);
                }
            }
        });
        assert!(planned > 5000, "most changes leave an array that starts: {planned}");
    }
}
