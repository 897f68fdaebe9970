//! Members as the user names them: made absolute, opened, probed.

pub mod array_locks;
pub mod contents;
pub mod lack_of_room;
pub mod taken_by_md;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use openraid_core::limits::Limits;
use openraid_format::{ForeignKind, Uuid};
use openraid_runtime::member::remote::RemoteError;
use openraid_runtime::member::{self, Medium, MemberSpec, ModelSpec, OpenError, OpenedMember, Place, ProbedMember};
use openraid_status::shell_quoting::command;
use openraid_sys::{Direct, Facts, MemberError, Use};
use openraid_units::{Bytes, Nanos, Sectors};

use crate::failure::{Exit, Failure, Obstacle};
use crate::quantity::counted;
use crate::registry::{RegisteredArray, Registry};

/// The word for a slot without a member.
pub const MISSING: &str = "missing";

/// A member's name with an absolute path, so that it means the same to a server and in the registry. Links stay: a name
/// like `/dev/disk/by-id/...` is better than its target.
///
/// # Errors
/// The name is not valid.
pub fn spec(text: &str) -> Result<MemberSpec, Failure> {
    let spec: MemberSpec = text.parse().map_err(Failure::usage)?;
    match &spec.place {
        Place::Path(path) => {
            let absolute = absolute(path, text)?;
            let text = absolute.to_str().expect("just seen").to_owned();
            Ok(MemberSpec { text, place: Place::Path(absolute) })
        }
        Place::Model(model) => {
            let mut model = model.clone();
            if let Some(file) = &model.file {
                model.file = Some(absolute(file, text)?);
            }
            if ModelSpec::is_path(&model.profile) {
                let path = absolute(Path::new(&model.profile), text)?;
                model.profile = path.to_str().expect("just seen").into();
            }
            Ok(MemberSpec { text: model.to_string(), place: Place::Model(model) })
        }
        Place::Ram(_) | Place::Remote(_) => Ok(spec),
    }
}

/// The same for a name that a user has just written: a drive's profile that does not exist is a typing error. A name in
/// the registry is not checked, because the array may start without that member.
///
/// # Errors
/// As [`spec`], or there is no such profile.
pub fn written_spec(text: &str) -> Result<MemberSpec, Failure> {
    let spec = spec(text)?;
    if let Place::Model(model) = &spec.place {
        model.check_profile().map_err(|why| Failure::usage(format!("{spec}: {why}")))?;
    }
    Ok(spec)
}

/// An absolute path in UTF-8.
fn absolute(path: &Path, text: &str) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Failure::failed(format!("{text}: the path cannot be made absolute: {error}")))?;
    if absolute.to_str().is_none() {
        let shown = absolute.display();
        return Err(Failure::usage(format!("{shown}: the path is not UTF-8; give the member another name")));
    }
    Ok(absolute)
}

/// Does it spin? Known for block devices only, and only if the kernel says so.
pub fn spins(member: &OpenedMember) -> Option<bool> {
    match &member.medium {
        Medium::Disk(file) => spins_by(file.facts()),
        _ => None,
    }
}

/// The same from the kernel's facts.
pub fn spins_by(facts: &Facts) -> Option<bool> {
    facts.rotational.filter(|_| facts.block_device)
}

/// Is a member's content lost when this process ends?
pub fn is_memory(spec: &MemberSpec) -> bool {
    matches!(&spec.place, Place::Ram(_) | Place::Model(ModelSpec { file: None, .. }))
}

/// The same for members of an array that outlives the command; memory is refused.
///
/// # Errors
/// As [`written_spec`], or it is memory.
pub fn lasting_spec(text: &str) -> Result<MemberSpec, Failure> {
    let spec = written_spec(text)?;
    if is_memory(&spec) {
        return Err(Failure::usage(format!(
            "{text}: this memory ends with the command; use `{} ...`",
            command("serve --level LEVEL --name NAME", [text])
        )));
    }
    Ok(spec)
}

/// Maximum time to open a member in this process, if it was set.
static PATIENCE: OnceLock<Nanos> = OnceLock::new();

/// Set the maximum time to open a member.
pub fn set_patience(patience: Nanos) {
    // It is set once, at the start.
    let _ = PATIENCE.set(patience);
}

/// Options to open members.
pub fn options(usage: Use) -> member::OpenOptions {
    let mut options = member::OpenOptions::new(usage);
    options.patience = PATIENCE.get().copied().unwrap_or(options.patience);
    options.command_timeout = Limits::default().command_timeout;
    if usage != Use::Exclusive {
        // A few reads: the page cache is sufficient, and does not change the flags of the file.
        options.direct = Direct::Never;
    }
    options
}

/// Opened members, and for each of the others the reason why not.
pub type OpenReport = (Vec<(OpenedMember, ProbedMember)>, Vec<(String, Failure)>);

/// Open as many of these as can be opened.
pub fn open_some(specs: &[MemberSpec], options: member::OpenOptions) -> OpenReport {
    let mut opened = Vec::new();
    let mut failed = Vec::new();
    for (spec, result) in specs.iter().zip(member::open_all(specs, options)) {
        match result {
            Ok(member) => opened.push(member),
            Err(error) => failed.push((spec.text.clone(), not_opened(error).of_member(&spec.text))),
        }
    }
    (opened, failed)
}

/// Does the drive carry md 0.90, and no superblock of md 1.x?
pub fn is_md0(probed: &ProbedMember) -> bool {
    let has = |kind| probed.look.foreign.signatures.iter().any(|signature| signature.is(kind));
    has(ForeignKind::Md0) && !has(ForeignKind::Md1)
}

/// Read superblocks of md 0.90, for a command that writes to no member. Returns why some cannot be used.
pub fn read_md0(opened: &mut [(OpenedMember, ProbedMember)]) -> Vec<String> {
    let old = opened.iter_mut().filter(|(_, probed)| is_md0(probed));
    let faults = old.filter_map(|(spec, probed)| Some((member::probe_md0(spec, probed).err()?, &probed.spec.text)));
    faults.map(|(error, name)| format!("{name}: its superblock of md 0.90 cannot be used: {error}")).collect()
}

/// The same member with writes kept in memory.
pub fn in_memory((opened, probed): (OpenedMember, ProbedMember)) -> (OpenedMember, ProbedMember) {
    let opened = opened.overlaid();
    let probed = ProbedMember { info: opened.info, ..probed };
    (opened, probed)
}

/// Refuse to start an array if a member is readable but write-protected: the array would run without it, and it would
/// miss later writes.
///
/// # Errors
/// The member's name, and the remedy.
pub fn refuse_protected(
    specs: &[MemberSpec],
    opened: &[(OpenedMember, ProbedMember)],
    failed: &[(String, Failure)],
) -> Result<(), Failure> {
    let refusals: Vec<Failure> = protected(specs, opened, failed).into_iter().map(|(_, failure)| failure).collect();
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Failure::joined(&refusals, Exit::Refused))
}

/// The sets with write-protected members, and why each is not started.
pub fn protected(
    specs: &[MemberSpec],
    opened: &[(OpenedMember, ProbedMember)],
    failed: &[(String, Failure)],
) -> Vec<(Uuid, Failure)> {
    let is_protected = |spec: &&MemberSpec| {
        failed.iter().any(|(text, failure)| *text == spec.text && failure.obstacle == Obstacle::WriteProtected)
    };
    let again: Vec<MemberSpec> = specs.iter().filter(is_protected).cloned().collect();
    let set_of = |probed: &ProbedMember| {
        probed.look.superblock.as_ref().map(|superblock| (superblock.set_uuid, superblock.set_name))
    };
    let (protected, _) = open_some(&again, options(Use::ReadExclusive));
    let refusal = |(member, probed): &(OpenedMember, ProbedMember)| {
        let (uuid, name) = set_of(probed)?;
        let others = opened.iter().any(|(_, other)| set_of(other).is_some_and(|(set, _)| set == uuid));
        others.then(|| {
            let failure = Failure::refused(format!("it is write-protected and a member of array {name}")).remedy(
                "without it the array would run degraded, and it would miss later writes. Make it writable, serve the array \
                 with --read-only, or start without this member with --degraded",
            );
            (uuid, failure.of_member(&member.spec.text))
        })
    };
    protected.iter().filter_map(refusal).collect()
}

/// A member that is missing at its path was moved in most cases.
fn not_opened(error: OpenError) -> Failure {
    let is_missing = matches!(error, OpenError::Local(MemberError::Missing { .. }));
    let of_md = match &error {
        OpenError::Local(MemberError::HeldByKernel { path, .. } | MemberError::Busy { path, .. }) => {
            path.to_str().and_then(taken_by_md::advice)
        }
        _ => None,
    };
    let obstacle = match &error {
        error if error.is_in_use() => Obstacle::InUse,
        OpenError::Local(MemberError::ReadOnly { .. } | MemberError::Denied { .. })
        | OpenError::Remote { error: RemoteError::ReadOnly, .. } => Obstacle::WriteProtected,
        _ => Obstacle::Other,
    };
    let member = error.member();
    let failure = Failure::from(error).hindered_by(obstacle);
    if let Some(advice) = of_md {
        return failure.worded(advice).of(member);
    }
    if is_missing {
        return failure
            .remedy("if it was moved, `openraid scan DIR` finds it, and `openraid assemble` remembers its new path");
    }
    failure
}

/// Why a path can never be a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// It does not exist.
    Missing,
    /// The file has less than one sector.
    TooSmall,
}

/// Why a member that could not be opened can never be one; `None` if that is not the reason.
pub fn unfit(spec: &MemberSpec) -> Option<Unfit> {
    let Place::Path(path) = &spec.place else { return None };
    match fs::metadata(path) {
        Ok(metadata) => (metadata.is_file() && metadata.len() < Sectors(1).bytes().get()).then_some(Unfit::TooSmall),
        Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(Unfit::Missing),
    }
}

/// The members among which some could not be opened.
#[derive(Clone, Copy, Debug)]
pub enum Among<'a> {
    /// An unknown number of members.
    Some,
    /// This number of members of an array that the sentence is about.
    Its(usize),
    /// This number of members; the text is empty or ` of NAME`.
    All(usize, &'a str),
}

/// How many members could not be opened.
pub fn unopened(failed: usize, among: Among) -> String {
    let (all, article, whose) = match among {
        Among::Some => return format!("{} could not be opened", counted(failed as u64, "member", "members")),
        Among::Its(all) => (all, "its", ""),
        Among::All(all, whose) => (all, "the", whose),
    };
    match all {
        1 => format!("{article} only member{whose} could not be opened"),
        _ if failed == all => format!("none of {article} {all} members{whose} could be opened"),
        _ => format!("{failed} of {article} {all} members{whose} could not be opened"),
    }
}

/// The error if no member could be opened: their number, and the reason for each. `whose` is empty or ` of NAME`.
///
/// If the user has given paths that can never be members, the names are wrong; otherwise the state is unknown.
pub fn none_opened(
    whose: &str,
    names: &[String],
    specs: &[MemberSpec],
    failed: &[(String, Failure)],
    registry: &Registry,
) -> Failure {
    let head = unopened(failed.len(), Among::All(failed.len(), whose));
    let head =
        if are_in_use(failed) { format!("{head}:") } else { format!("{head}; `openraid scan DIR` looks for them:") };
    let reasons = failed.iter().map(|(_, failure)| failure.text());
    let lines: Vec<String> = std::iter::once(head).chain(reasons).collect();
    Failure::new(exit_of_none(names, specs, registry), lines.join("\n  "))
}

/// Are all of these members in use by another program or by the kernel?
pub fn are_in_use(failed: &[(String, Failure)]) -> bool {
    !failed.is_empty() && failed.iter().all(|(_, failure)| failure.obstacle == Obstacle::InUse)
}

/// The exit code if no member could be opened; see [`none_opened`].
pub fn exit_of_none(names: &[String], specs: &[MemberSpec], registry: &Registry) -> Exit {
    let is_written = names.iter().all(|name| matches!(remembered(name, registry), Ok(None)));
    if is_written && specs.iter().all(|spec| unfit(spec).is_some()) {
        Exit::Refused
    } else {
        Exit::CannotTell
    }
}

/// Open all members.
///
/// # Errors
/// One of them cannot be opened; the text has a line for each that cannot.
pub fn open_every(
    specs: &[MemberSpec],
    options: member::OpenOptions,
) -> Result<Vec<(OpenedMember, ProbedMember)>, Failure> {
    let (opened, failed) = open_some(specs, options);
    if failed.is_empty() {
        return Ok(opened);
    }
    let failures: Vec<Failure> = failed.into_iter().map(|(_, failure)| failure).collect();
    Err(Failure::joined(&failures, Exit::Error))
}

/// Members by the names that the user wrote. The name of an array in the registry means its members. If the user writes
/// both an array and a member of it, the member counts once.
///
/// # Errors
/// A name that is not valid, a registry that cannot be read.
pub fn named(names: &[String], registry: &Registry) -> Result<Vec<MemberSpec>, Failure> {
    let mut of_arrays: Vec<MemberSpec> = Vec::new();
    let mut written = Vec::new();
    for name in names {
        match remembered(name, registry)? {
            Some(entry) => {
                of_arrays.extend(entry.members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?)
            }
            None => written.push(written_spec(name)?),
        }
    }
    written.retain(|place| !of_arrays.iter().any(|member| is_same_place(place, member)));
    of_arrays.append(&mut written);
    Ok(of_arrays)
}

/// Do both name the same file or device?
fn is_same_place(one: &MemberSpec, other: &MemberSpec) -> bool {
    match (&one.place, &other.place) {
        (Place::Path(one), Place::Path(other)) => {
            one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
        }
        _ => one.text == other.text,
    }
}

/// The array with this name or UUID in the registry, unless a file has the name. Any name: md accepts more names than `create`
/// does. If the registry cannot be read, paths and addresses are still members.
///
/// # Errors
/// The registry cannot be read, and this may be a name in it.
pub fn remembered(name: &str, registry: &Registry) -> Result<Option<RegisteredArray>, Failure> {
    if Path::new(name).exists() {
        return Ok(None);
    }
    if !looks_like_a_name(name) || name.contains(':') {
        let is_meant = |entry: &RegisteredArray| entry.name == name || entry.uuid.as_deref() == Some(name);
        return Ok(registry.entries_if_readable().into_iter().find(is_meant));
    }
    registry.find(name)
}

/// The word by which a command line in this folder names an array: its name, or its UUID if a file has the name, because then the file is meant.
pub fn word_of<'a>(name: &'a str, uuid: Option<&'a str>) -> &'a str {
    uuid.filter(|_| Path::new(name).exists()).unwrap_or(name)
}

/// May this be an array's name, and is it not a file?
pub fn looks_like_a_name(text: &str) -> bool {
    crate::words::array_name(text).is_ok() && !Path::new(text).exists()
}

/// The path of a member for a new file.
fn new_path<'a>(option: &str, spec: &'a MemberSpec) -> Result<&'a Path, Failure> {
    match &spec.place {
        Place::Path(path) | Place::Model(ModelSpec { file: Some(path), .. }) => Ok(path),
        _ => Err(Failure::usage(format!("{spec}: {option} is for files, and this is not a file"))),
    }
}

fn there_already(option: &str, spec: &MemberSpec) -> Failure {
    let remedy = format!("leave {option} out to use it as it is, or remove it first");
    Failure::refused(format!("{spec}: it exists already; {remedy}"))
}

fn cannot_be_made(spec: &MemberSpec, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{spec}: the file cannot be made: {error}"))
}

/// Number of zero bytes that are written to a new file at once.
const FILL_BYTES: usize = 1 << 20;

/// Files made for a command; they are removed unless it succeeds.
#[derive(Debug, Default)]
pub struct NewFiles {
    paths: Vec<PathBuf>,
}

impl NewFiles {
    /// Make sparse files of this size for the members that are paths.
    ///
    /// # Errors
    /// A file exists already, or cannot be made. New files are removed.
    pub fn make(specs: &[MemberSpec], size: Bytes) -> Result<Self, Failure> {
        Self::make_for("--file-size", specs, size)
    }

    /// Could [`NewFiles::make`] make them? No file is made.
    ///
    /// # Errors
    /// As [`NewFiles::make`].
    pub fn check(specs: &[MemberSpec], size: Bytes) -> Result<(), Failure> {
        let mut known: Vec<&Path> = Vec::new();
        for spec in specs {
            let path = new_path("--file-size", spec)?;
            if known.contains(&path) || fs::symlink_metadata(path).is_ok() {
                return Err(there_already("--file-size", spec));
            }
            let folder = path.parent().unwrap_or(path);
            openraid_sys::check_new_file(folder, size.get()).map_err(|error| cannot_be_made(spec, &error))?;
            known.push(path);
        }
        Ok(())
    }

    /// The same for a verb whose option has another name.
    fn make_for(option: &str, specs: &[MemberSpec], size: Bytes) -> Result<Self, Failure> {
        let mut files = Self::default();
        for spec in specs {
            let path = new_path(option, spec)?;
            let made = OpenOptions::new().write(true).create_new(true).open(path);
            let file = made.map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => there_already(option, spec),
                _ => cannot_be_made(spec, &error),
            })?;
            files.paths.push(path.to_path_buf());
            file.set_len(size.get()).map_err(|error| cannot_be_made(spec, &error))?;
        }
        Ok(files)
    }

    /// The same with all bytes written, so that later writes do not fail because the file system is full.
    ///
    /// # Errors
    /// As [`NewFiles::make`], or there is no room.
    pub fn make_filled(option: &str, specs: &[MemberSpec], size: Bytes) -> Result<Self, Failure> {
        use std::io::Write;
        let files = Self::make_for(option, specs, size)?;
        let zeroes = vec![0; FILL_BYTES];
        for path in &files.paths {
            let fill = || {
                let mut file = OpenOptions::new().write(true).open(path)?;
                let mut left = size.get();
                while left > 0 {
                    let len = left.min(FILL_BYTES as u64);
                    file.write_all(&zeroes[..usize::try_from(len).unwrap_or(FILL_BYTES)])?;
                    left -= len;
                }
                file.sync_all()
            };
            fill().map_err(|error: std::io::Error| {
                Failure::failed(format!("{}: the file cannot be filled: {error}", path.display()))
            })?;
        }
        Ok(files)
    }

    pub fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            // They were empty; if one cannot be removed, the user sees an empty file.
            let _ = fs::remove_file(path);
        }
    }
}

/// Files and block devices in a folder, in the order of their names; other entries are skipped.
///
/// # Errors
/// The folder cannot be read.
pub fn in_folder(folder: &Path) -> Result<Vec<MemberSpec>, Failure> {
    use std::os::unix::fs::FileTypeExt;
    let refuse = |error| Failure::failed(format!("{}: the folder cannot be read: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        let kind = fs::metadata(&path).map(|metadata| metadata.file_type());
        if kind.is_ok_and(|kind| kind.is_file() || kind.is_block_device()) {
            paths.push(path);
        }
    }
    paths.sort();
    // Several names in /dev/disk lead to one drive: it is listed once.
    let mut seen = Vec::new();
    paths.retain(|path| {
        let Ok(resolved) = path.canonicalize() else { return false };
        let fresh = !seen.contains(&resolved);
        seen.push(resolved);
        fresh
    });
    Ok(paths.iter().filter_map(|path| path.to_str()).filter_map(|path| spec(path).ok()).collect())
}

/// All block devices with their own content.
pub fn block_devices() -> Vec<MemberSpec> {
    let Ok(partitions) = fs::read_to_string("/proc/partitions") else { return Vec::new() };
    let names = partitions.lines().skip(2).filter_map(|line| line.split_whitespace().nth(3));
    names.filter_map(|name| spec(&format!("/dev/{}", name.replace('!', "/"))).ok()).collect()
}
