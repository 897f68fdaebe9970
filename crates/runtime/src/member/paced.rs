//! Paced members: memory or a file that answers when a model of a drive says so, in real time.
//!
//! ```text
//!  command -+-> store (memory at once, a file by the kernel) -+-> answered when both are through
//!           +-> model of the drive: when it would be done ----+
//! ```
//!
//! So the engine, its exports and clients run on modelled drives. A paced member never answers before its drive would,
//! and the delay after that time is measured. The models are not of this crate: a program that has some names them once
//! ([`set_models`]). In a program without models such a member cannot be opened.

use std::sync::{Arc, OnceLock};

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_sys::{FramePool, MemberFile, MemberSlot, PoolRange};
use openraid_units::{BlockSize, Bytes, DriveId, DriveLba, Instant, Nanos, Sectors, Tag};

use super::known_content::KnownContent;
use super::remote::EndedCommand;
use super::sparse_memory::SparseMemory;
use super::ModelSpec;
use crate::limits::PACED_MEMORY_MAX;

/// The model of one drive: when its commands end. It has no payload and no clock.
pub trait DriveTiming: Send {
    /// Submit a command. Its payload is ignored.
    fn submit(&mut self, now: Instant, command: &DriveCommand);
    /// The time at which `advance` next has work; `None` if no command will end before another is submitted.
    fn next(&self) -> Option<Instant>;
    /// Advance the time to `now`. Commands that end by then are added to `done` in order.
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>);
}

/// The profile of a drive, from which models are built.
pub trait TimingProfile: Send + Sync {
    fn title(&self) -> &str;
    /// Does the drive spin?
    fn rotational(&self) -> bool;
    /// The drive's size.
    fn sectors(&self) -> Sectors;
    /// A drive of this profile. The write cache is on, off, or as in the profile; the drive's number gives it its phase.
    fn build(&self, write_cache: Option<bool>, drive: DriveId) -> Box<dyn DriveTiming>;
}

/// Finds a profile by its name or by the path of its file; the error is in words.
pub type FindProfile = fn(&str) -> Result<Arc<dyn TimingProfile>, String>;

static MODELS: OnceLock<FindProfile> = OnceLock::new();

/// Let members of this process have the timing of modelled drives. Only the first call has an effect.
pub fn set_models(find: FindProfile) {
    let _ = MODELS.set(find);
}

fn profile(name: &str) -> Result<Arc<dyn TimingProfile>, String> {
    let find = MODELS.get().ok_or("this program has no models of drives; use `openraid-lab` in place of `openraid`")?;
    find(name)
}

/// A paced member that is open.
pub struct PacedMember {
    profile: Arc<dyn TimingProfile>,
    write_cache: Option<bool>,
    sectors: Sectors,
    /// The place of its bytes.
    pub store: Store,
}

/// The place of the bytes of a paced member.
#[derive(Debug)]
pub enum Store {
    Memory(SparseMemory),
    /// In a file or on a device.
    File(Arc<MemberFile>),
}

impl std::fmt::Debug for PacedMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PacedMember({}, {} sectors, {:?})", self.profile.title(), self.sectors.get(), self.store)
    }
}

impl ModelSpec {
    /// Is there such a profile?
    ///
    /// # Errors
    /// In words: no such profile, or a file that is not a profile.
    pub fn check_profile(&self) -> Result<(), String> {
        profile(&self.profile).map(drop)
    }
}

impl PacedMember {
    /// Find the model of a drive, and make it a member. `file` has its content, if the content is not in memory.
    ///
    /// # Errors
    /// In words: no such profile, or a size that does not fit.
    pub fn new(spec: &ModelSpec, file: Option<Arc<MemberFile>>) -> Result<Self, String> {
        let profile = profile(&spec.profile)?;
        let whole = profile.sectors();
        let content = file.as_ref().map_or(whole, |file| file.facts().size);
        let sectors = spec.size.unwrap_or(whole.min(content));
        if sectors > whole {
            let (size, have) = (sectors.bytes(), whole.bytes());
            return Err(format!("size={size} is more than the {have} that a {} has; leave it out", profile.title()));
        }
        if sectors > content {
            return Err(format!("the file holds {} only, less than size={}", content.bytes(), sectors.bytes()));
        }
        let store = file.map_or_else(|| Store::Memory(SparseMemory::new(Bytes(PACED_MEMORY_MAX))), Store::File);
        Ok(Self { profile, write_cache: spec.cache, sectors, store })
    }

    /// The engine's facts about the drive.
    #[must_use]
    pub fn info(&self) -> DriveInfo {
        let block = match &self.store {
            Store::Memory(_) => BlockSize::B512,
            Store::File(file) => file.facts().logical_block,
        };
        DriveInfo {
            capacity: self.sectors,
            block,
            rotational: self.profile.rotational(),
            discard: false,
            discard_zeroes: false,
            write_zeroes: false,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        }
    }

    /// The file with its content, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&MemberFile> {
        match &self.store {
            Store::Memory(_) => None,
            Store::File(file) => Some(file),
        }
    }

    /// Notes for the administrator.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("answers as a {} would", self.profile.title())];
        if matches!(self.store, Store::Memory(_)) && self.sectors.bytes().get() > PACED_MEMORY_MAX {
            let most = Bytes(PACED_MEMORY_MAX);
            notes.push(format!("in memory, which holds at most {most} of content; file=PATH holds more"));
        }
        notes
    }

    /// Read a member that is not in service, for probing; the model adds no time.
    ///
    /// # Errors
    /// In words.
    pub fn read_at(&self, lba: DriveLba, into: &mut [u8]) -> Result<(), String> {
        match &self.store {
            Store::Memory(memory) => {
                memory.read(lba, into);
                Ok(())
            }
            Store::File(file) => file.read_exact_at(lba, into).map_err(|error| error.to_string()),
        }
    }
}

/// The delay of answers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lateness {
    /// Number of answers.
    pub answers: u64,
    /// Sum of the delays.
    pub sum: Nanos,
    /// Maximum delay.
    pub most: Nanos,
}

impl Lateness {
    fn note(&mut self, late: Nanos) {
        self.answers += 1;
        self.sum += late;
        self.most = self.most.max(late);
    }

    /// The mean delay.
    #[must_use]
    pub fn mean(&self) -> Nanos {
        Nanos(self.sum.get().checked_div(self.answers).unwrap_or(0))
    }
}

impl std::fmt::Display for Lateness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millis = |time: u64| format!("{}.{:03} ms", time / 1_000_000, time / 1000 % 1000);
        let most = millis(self.most.get());
        let answers = if self.answers == 1 { "answer" } else { "answers" };
        write!(f, "{} {answers}, late by {} on average, {most} at most", self.answers, millis(self.mean().get()))
    }
}

/// A command that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Under {
    tag: Tag,
    /// The result of the store, if it is done.
    stored: Option<Result<(), DriveError>>,
    /// When the drive would be done; `None` if it would not be done yet.
    due: Option<Instant>,
}

/// A paced member in service.
pub struct Paced {
    model: Box<dyn DriveTiming>,
    content: PacedContent,
    under: Vec<Under>,
    ended: Vec<Tag>,
    lateness: Lateness,
}

/// The place of the bytes of a paced member in service.
#[derive(Debug)]
pub enum PacedContent {
    Memory(SparseMemory),
    /// With the kernel's engine.
    File(MemberSlot),
}

impl std::fmt::Debug for Paced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Paced({:?}, {} under way, {})", self.content, self.under.len(), self.lateness)
    }
}

impl Paced {
    /// Put a member with this model into service.
    #[must_use]
    pub fn new(model: Box<dyn DriveTiming>, content: PacedContent) -> Self {
        Self { model, content, under: Vec::new(), ended: Vec::new(), lateness: Lateness::default() }
    }

    /// The known content of a range.
    #[must_use]
    pub fn known_content(&self, lba: DriveLba, len: Sectors) -> KnownContent {
        match &self.content {
            PacedContent::Memory(memory) => memory.known_content(lba, len),
            PacedContent::File(_) => KnownContent::Unknown,
        }
    }

    /// The kernel's name of its file.
    #[must_use]
    pub fn file(&self) -> Option<MemberSlot> {
        match self.content {
            PacedContent::Memory(_) => None,
            PacedContent::File(slot) => Some(slot),
        }
    }

    /// The delays until now.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        self.lateness
    }

    /// Accept a command. If the content is in a file, the caller also gives the command to the kernel, and calls
    /// [`Paced::stored`] when the kernel is done.
    pub fn submit(
        &mut self,
        now: Instant,
        command: &DriveCommand,
        metadata: &[u8],
        pool: &mut FramePool,
        done: &mut Vec<EndedCommand>,
    ) {
        self.ripen(now, done);
        let stored = match &mut self.content {
            PacedContent::Memory(memory) => Some(execute(memory, command, metadata, pool)),
            PacedContent::File(_) => None,
        };
        self.under.push(Under { tag: command.tag, stored, due: None });
        self.model.submit(now, command);
    }

    /// The kernel has finished a command.
    pub fn stored(&mut self, now: Instant, tag: Tag, result: Result<(), DriveError>, done: &mut Vec<EndedCommand>) {
        let Some(place) = self.under.iter().position(|under| under.tag == tag) else { return };
        self.under[place].stored = Some(result);
        self.answer(place, now, done);
    }

    /// The time of its next answer.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.model.next()
    }

    /// Answer the commands that the drive would have finished by now, each at its own time.
    pub fn ripen(&mut self, now: Instant, done: &mut Vec<EndedCommand>) {
        while let Some(at) = self.model.next().filter(|at| *at <= now) {
            self.model.advance(at, &mut self.ended);
            for tag in std::mem::take(&mut self.ended) {
                let place = self.under.iter().position(|under| under.tag == tag);
                let place = place.expect("models end what they were given");
                self.under[place].due = Some(at);
                self.answer(place, now, done);
            }
        }
    }

    fn answer(&mut self, place: usize, now: Instant, done: &mut Vec<EndedCommand>) {
        let Under { tag, stored: Some(result), due: Some(due) } = self.under[place] else { return };
        self.under.swap_remove(place);
        self.lateness.note(now.since(due));
        done.push((tag, result));
    }
}

impl PacedMember {
    /// The model of this drive.
    #[must_use]
    pub fn model(&self, drive: DriveId) -> Box<dyn DriveTiming> {
        self.profile.build(self.write_cache, drive)
    }
}

fn execute(
    memory: &mut SparseMemory,
    command: &DriveCommand,
    metadata: &[u8],
    pool: &mut FramePool,
) -> Result<(), DriveError> {
    let len = command.len.bytes();
    match (command.op, command.data) {
        (DriveOp::Flush, _) => Ok(()),
        (DriveOp::Read, Data::Frames(at)) => {
            memory.read(command.lba, pool.slice_mut(PoolRange::new(at, len)));
            Ok(())
        }
        (DriveOp::Write { .. }, Data::Frames(at)) => memory.write(command.lba, pool.slice(PoolRange::new(at, len))),
        (DriveOp::Write { .. }, Data::Metadata(_)) => memory.write(command.lba, metadata),
        (DriveOp::Discard | DriveOp::WriteZeroes { .. }, _) => {
            memory.zero(command.lba, command.len);
            Ok(())
        }
        _ => panic!("bug: a command without its payload: {command:?}"),
    }
}
