//! Arrays that this process uses: members are opened for writing only by the one process that holds the lock of their
//! array, and only if no other program holds another member of it
//! ([decision](../../../../docs/decisions/array-start.md#one-process-for-an-array)).
//!
//! ```text
//!  look at the members --> lock the arrays --> open --> refuse arrays of which a member is held elsewhere
//! ```
//!
//! The locks come first. Otherwise two processes that start one array together would each open some of its members and
//! miss the others.

use openraid_format::Uuid;
use openraid_runtime::limits::HELD_TIME_MAX;
use openraid_runtime::member::{self, MemberSpec, OpenedMember, ProbedMember};
use openraid_runtime::service::StartedArray;
use openraid_sys::{NameError, NameLock, Use};
use openraid_units::Nanos;

use crate::failure::{About, ArrayLabel, Failure, Obstacle};
use crate::members::{is_memory, open_some, options, spec, OpenReport};
use crate::on_disk::sets;
use crate::registry::Registry;

/// Maximum time to look at members before their arrays are locked. Slower members are opened, closed for the lock, and opened
/// again.
const LOOK_TIME_MAX: Nanos = Nanos::from_secs(2);

/// The locks of the arrays that this process uses.
#[derive(Debug, Default)]
pub struct ArrayLocks {
    held: Vec<(Uuid, NameLock)>,
}

/// An array by its identity and its name.
type ArrayKey = (Uuid, String);

impl ArrayLocks {
    /// Lock these arrays, in the order of their identities. Returns the arrays that another process uses, and why.
    fn take(&mut self, mut arrays: Vec<ArrayKey>, patience: Nanos) -> Vec<(Uuid, Failure)> {
        arrays.sort();
        arrays.dedup_by_key(|(uuid, _)| *uuid);
        arrays.retain(|(uuid, _)| !self.has(*uuid));
        let mut refused = Vec::new();
        for (uuid, name) in arrays {
            match NameLock::take(&format!("openraid/array/{uuid}"), patience) {
                Ok(lock) => self.held.push((uuid, lock)),
                Err(error) => refused.push((uuid, not_locked(&(uuid, name), &error))),
            }
        }
        refused
    }

    /// Is this array locked here?
    fn has(&self, uuid: Uuid) -> bool {
        self.held.iter().any(|(held, _)| *held == uuid)
    }

    /// Lock an array that was started, and its spans.
    ///
    /// # Errors
    /// Another process uses it.
    pub fn take_started(&mut self, started: &StartedArray) -> Result<(), Failure> {
        let arrays = started.spans.iter().chain([started]);
        let named = arrays.map(|array| (array.superblock.set_uuid, sets::array_name(&array.superblock)));
        let refused = self.take(named.collect(), HELD_TIME_MAX);
        refused.into_iter().next().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Release all locks but those of these arrays and their spans.
    pub fn keep_only<'a>(&mut self, started: impl Iterator<Item = &'a StartedArray>) {
        let used: Vec<Uuid> = started
            .flat_map(|array| array.spans.iter().chain([array]))
            .map(|member| member.superblock.set_uuid)
            .collect();
        self.held.retain(|(uuid, _)| used.contains(uuid));
    }
}

fn not_locked((uuid, name): &ArrayKey, error: &NameError) -> Failure {
    match error {
        NameError::Held { owner } => {
            let remedy = "stop that first. One process at a time may use an array, whichever of its members are named";
            busy(*uuid, name, Failure::refused(format!("busy: {owner} uses it")).remedy(remedy))
        }
        NameError::Failed { .. } => {
            let label = ArrayLabel::new(name, Some(*uuid));
            Failure::failed(format!("it cannot be locked: {error}")).of_array(label)
        }
    }
}

fn busy(uuid: Uuid, name: &str, why: Failure) -> Failure {
    why.hindered_by(Obstacle::InUse).of_array(ArrayLabel::new(name, Some(uuid)))
}

/// Add the members that were seen of it to the failure of an array.
fn with_members((uuid, mut failure): (Uuid, Failure), seen: &[ArrayMember]) -> (Uuid, Failure) {
    if let About::Array(array) = &mut failure.about {
        let members = seen.iter().filter(|member| member.array.0 == uuid);
        array.members = members.map(|seen| seen.member.clone()).collect();
    }
    (uuid, failure)
}

/// Members that were opened for the start of their arrays.
#[derive(Debug, Default)]
pub struct OpenForStart {
    /// The members that are open.
    pub opened: Vec<(OpenedMember, ProbedMember)>,
    /// The other members of arrays that may start, and why each is not open.
    pub failed: Vec<(String, Failure)>,
    /// The arrays that may not start, because another program has them or a member of them. None of their members is
    /// open.
    pub busy: Vec<(Uuid, Failure)>,
}

/// A member that was looked at: its name, and the array in its superblock.
struct ArrayMember {
    member: String,
    array: ArrayKey,
}

/// Lock the arrays of these members and open the members. Members that the registry knows of these arrays and that are
/// not named must not be in use either.
pub fn open_for_start(
    specs: &[MemberSpec],
    open: member::OpenOptions,
    locks: &mut ArrayLocks,
    registry: &Registry,
) -> OpenForStart {
    let patience = open.share_of(HELD_TIME_MAX);
    let unnamed = unnamed(specs, registry);
    let mut seen = look(specs.iter().chain(&unnamed), LOOK_TIME_MAX);
    let mut busy = locks.take(seen.iter().map(|entry| entry.array.clone()).collect(), patience);
    let wanted: Vec<MemberSpec> = specs.iter().filter(|spec| !is_busy(&busy, &seen, &spec.text)).cloned().collect();
    let mut report = open_some(&wanted, open);
    let again = close_unlocked(&wanted, &seen, &mut report, locks);
    let (mut opened, mut failed) = report;
    if !again.is_empty() {
        let slow = look(again.iter(), open.patience);
        busy.extend(locks.take(slow.iter().map(|entry| entry.array.clone()).collect(), patience));
        seen.extend(slow);
        let free = again.into_iter().filter(|spec| !is_busy(&busy, &seen, &spec.text));
        let (late, silent) = open_some(&free.collect::<Vec<MemberSpec>>(), open);
        opened.extend(late);
        failed.extend(silent);
    }
    // These are on another machine.
    busy.extend(locks.take(opened.iter().filter_map(|(_, probed)| array_of(probed)).collect(), patience));
    busy.extend(held_with_unnamed(&seen, unnamed, &opened, &failed));
    opened
        .retain(|(_, probed)| array_of(probed).is_none_or(|(uuid, _)| busy.iter().all(|(locked, _)| *locked != uuid)));
    failed.retain(|(text, _)| !is_busy(&busy, &seen, text));
    let busy = busy.into_iter().map(|refused| with_members(refused, &seen)).collect();
    OpenForStart { opened, failed, busy }
}

/// Is this a member of an array that may not start?
fn is_busy(busy: &[(Uuid, Failure)], seen: &[ArrayMember], text: &str) -> bool {
    seen.iter().any(|entry| entry.member == text && busy.iter().any(|(uuid, _)| *uuid == entry.array.0))
}

/// Close members that the look did not see, unless their arrays are locked: another process may have opened other members of
/// these arrays. Returns the members to open again under the lock: closed members, and members that another process holds.
fn close_unlocked(
    wanted: &[MemberSpec],
    seen: &[ArrayMember],
    (opened, failed): &mut OpenReport,
    locks: &ArrayLocks,
) -> Vec<MemberSpec> {
    let is_slow =
        |text: &str| wanted.iter().filter(|spec| is_local(spec)).any(|spec| spec.text == text) && !has_seen(seen, text);
    let is_late = |probed: &ProbedMember| {
        is_slow(&probed.spec.text) && array_of(probed).is_some_and(|(uuid, _)| !locks.has(uuid))
    };
    let is_held = |(text, failure): &(String, Failure)| failure.obstacle == Obstacle::InUse && is_slow(text);
    let late = opened.iter().filter(|(_, probed)| is_late(probed)).map(|(_, probed)| probed.spec.text.clone());
    let held = failed.iter().filter(|failed| is_held(failed)).map(|(text, _)| text.clone());
    let again: Vec<String> = late.chain(held).collect();
    opened.retain(|(_, probed)| !again.contains(&probed.spec.text));
    failed.retain(|(text, _)| !again.contains(text));
    wanted.iter().filter(|spec| again.contains(&spec.text)).cloned().collect()
}

fn has_seen(seen: &[ArrayMember], text: &str) -> bool {
    seen.iter().any(|entry| entry.member == text)
}

/// The arrays of open members that may not start, as [`open_for_start`] finds them, and why. The locks keep the other
/// arrays from another start.
pub fn busy_arrays(
    specs: &[MemberSpec],
    opened: &[(OpenedMember, ProbedMember)],
    failed: &[(String, Failure)],
    registry: &Registry,
) -> (ArrayLocks, Vec<(Uuid, Failure)>) {
    let unnamed = unnamed(specs, registry);
    let seen = look(specs.iter().chain(&unnamed), LOOK_TIME_MAX);
    let mut locks = ArrayLocks::default();
    let patience = options(Use::ReadExclusive).share_of(HELD_TIME_MAX);
    let mut busy = locks.take(opened.iter().filter_map(|(_, probed)| array_of(probed)).collect(), patience);
    busy.extend(held_with_unnamed(&seen, unnamed, opened, failed));
    (locks, busy)
}

/// Lock the arrays of these members.
///
/// # Errors
/// Another process uses one of them.
pub fn lock_arrays(specs: &[MemberSpec]) -> Result<ArrayLocks, Failure> {
    let mut locks = ArrayLocks::default();
    let patience = options(Use::Exclusive).share_of(HELD_TIME_MAX);
    let busy = locks.take(look(specs.iter(), LOOK_TIME_MAX).into_iter().map(|entry| entry.array).collect(), patience);
    busy.into_iter().next().map_or(Ok(locks), |(_, failure)| Err(failure))
}

/// The arrays of open members that lack a member because another program holds it, and why they may not start.
pub fn lacking_held(
    specs: &[MemberSpec],
    opened: &[(OpenedMember, ProbedMember)],
    failed: &[(String, Failure)],
) -> Vec<(Uuid, Failure)> {
    let failing = specs.iter().filter(|spec| failed.iter().any(|(text, _)| *text == spec.text));
    held(&look(failing, LOOK_TIME_MAX), opened, failed.iter())
}

/// As [`held`], with the members that the registry knows and that are not named.
fn held_with_unnamed(
    seen: &[ArrayMember],
    unnamed: Vec<MemberSpec>,
    opened: &[(OpenedMember, ProbedMember)],
    failed: &[(String, Failure)],
) -> Vec<(Uuid, Failure)> {
    let quick: Vec<MemberSpec> = unnamed.into_iter().filter(|spec| has_seen(seen, &spec.text)).collect();
    let (_, of_unnamed) = open_some(&quick, options(Use::ReadExclusive));
    held(seen, opened, failed.iter().chain(&of_unnamed))
}

fn held<'a>(
    seen: &[ArrayMember],
    opened: &[(OpenedMember, ProbedMember)],
    failed: impl Iterator<Item = &'a (String, Failure)>,
) -> Vec<(Uuid, Failure)> {
    let is_open = |uuid| opened.iter().filter_map(|(_, probed)| array_of(probed)).any(|(other, _)| other == uuid);
    let refusal = |(text, failure): &(String, Failure)| {
        let ArrayMember { array: (uuid, name), .. } = seen.iter().find(|entry| entry.member == *text)?;
        (failure.obstacle == Obstacle::InUse && is_open(*uuid)).then(|| {
            let why = failure.clone().of("busy").sentence(
                "Another program may write to this member, so the array does not start without it, and --degraded does not \
                 change that",
            );
            (*uuid, busy(*uuid, name, why))
        })
    };
    failed.filter_map(refusal).collect()
}

/// A remote member has no holder on this machine.
fn is_local(spec: &MemberSpec) -> bool {
    !matches!(spec.place, member::Place::Remote(_)) && !is_memory(spec)
}

/// Look at files and devices, held or not, for at most this time.
fn look<'a>(specs: impl Iterator<Item = &'a MemberSpec>, most: Nanos) -> Vec<ArrayMember> {
    let local: Vec<MemberSpec> = specs.filter(|spec| is_local(spec)).cloned().collect();
    let mut open = options(Use::Examine);
    open.patience = open.patience.min(most);
    let (opened, _) = open_some(&local, open);
    let seen = |(_, probed): &(OpenedMember, ProbedMember)| {
        Some(ArrayMember { member: probed.spec.text.clone(), array: array_of(probed)? })
    };
    opened.iter().filter_map(seen).collect()
}

fn array_of(probed: &ProbedMember) -> Option<ArrayKey> {
    probed.look.superblock.as_ref().map(|superblock| (superblock.set_uuid, sets::array_name(superblock)))
}

/// The members that the registry has for the arrays of these members, and that are not among them.
fn unnamed(specs: &[MemberSpec], registry: &Registry) -> Vec<MemberSpec> {
    let is_named = |text: &String| specs.iter().any(|spec| spec.text == *text);
    // Without the registry the named members are all that is known.
    let entries = registry.entries_if_readable();
    let of_arrays = entries.iter().filter(|entry| entry.members.iter().any(is_named));
    let others = of_arrays.flat_map(|entry| &entry.members).filter(|text| !is_named(text));
    others.filter_map(|text| spec(text).ok()).filter(|spec| !is_memory(spec)).collect()
}
