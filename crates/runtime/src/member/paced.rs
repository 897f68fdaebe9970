//! Paced members: memory or a file that answers when a model of a drive says so, in real time.
//!
//! ```text
//!  command -+-> store (memory at once, a file by the kernel) -+-> answered when both are through
//!           +-> model of the drive: when it would be done ----+
//! ```
//!
//! So the engine, its exports and clients run on modelled drives. A paced member never answers before its drive would,
//! and the delay after that time is measured. The model is that of the simulation, with the same seed, and each drive
//! has its own phase by its number.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_drives::{AnyDrive, DriveKit, DriveModel, DriveOptions};
use openraid_models::{DriveProfile, Library};
use openraid_sys::{FramePool, Member, MemberSlot, PoolRange};
use openraid_units::{BlockSize, Bytes, DriveId, DriveLba, Instant, Nanos, Sectors, Tag};

use super::remote::Done;
use super::sparse::SparseMemory;
use super::ModelSpec;
use crate::limits::PACED_MEMORY_MAX;

/// The seed of all paced drives: the first seed of simulations.
const SEED: u64 = 1;

/// A paced member that is open.
pub struct PacedMember {
    kit: DriveKit,
    title: String,
    rotational: bool,
    write_cache: Option<bool>,
    sectors: Sectors,
    /// The place of its bytes.
    pub store: Store,
}

/// The place of the bytes of a paced member.
#[derive(Debug)]
pub enum Store {
    /// In memory.
    Memory(SparseMemory),
    /// In a file or on a device.
    File(Arc<Member>),
}

impl std::fmt::Debug for PacedMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PacedMember({}, {} sectors, {:?})", self.title, self.sectors.get(), self.store)
    }
}

/// The drive of a profile, by name or by the path of its file.
fn profile(name: &str) -> Result<DriveProfile, String> {
    static BUILTIN: OnceLock<Library> = OnceLock::new();
    if !ModelSpec::is_path(name) {
        return BUILTIN.get_or_init(Library::builtin).drive(name).cloned().map_err(|error| error.to_string());
    }
    let text = std::fs::read_to_string(Path::new(name)).map_err(|error| format!("{name}: {error}"))?;
    DriveProfile::parse(name, &text).map_err(|errors| errors.to_string())
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
    pub fn new(spec: &ModelSpec, file: Option<Arc<Member>>) -> Result<Self, String> {
        let profile = profile(&spec.profile)?;
        let kit = DriveKit::new(&profile);
        let whole = Sectors(kit.build(&DriveOptions::default()).sectors());
        let content = file.as_ref().map_or(whole, |file| file.facts().size);
        let sectors = spec.size.unwrap_or(whole.min(content));
        if sectors > whole {
            let (size, have) = (sectors.bytes(), whole.bytes());
            return Err(format!("size={size} is more than the {have} that a {} has; leave it out", profile.head.title));
        }
        if sectors > content {
            return Err(format!("the file holds {} only, less than size={}", content.bytes(), sectors.bytes()));
        }
        let store = file.map_or_else(|| Store::Memory(SparseMemory::new(Bytes(PACED_MEMORY_MAX))), Store::File);
        let (title, rotational) = (profile.head.title.clone(), profile.rotational());
        Ok(Self { kit, title, rotational, write_cache: spec.cache, sectors, store })
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
            rotational: self.rotational,
            discard: false,
            discard_zeroes: false,
            write_zeroes: false,
        }
    }

    /// The file with its content, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Member> {
        match &self.store {
            Store::Memory(_) => None,
            Store::File(file) => Some(file),
        }
    }

    /// Notes for the administrator.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("answers as a {} would", self.title)];
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
}

impl std::fmt::Display for Lateness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millis = |time: u64| format!("{}.{:03} ms", time / 1_000_000, time / 1000 % 1000);
        let mean = self.sum.get() / self.answers.max(1);
        let most = millis(self.most.get());
        let answers = if self.answers == 1 { "answer" } else { "answers" };
        write!(f, "{} {answers}, late by {} on average, {most} at most", self.answers, millis(mean))
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
    model: AnyDrive,
    content: Content,
    under: Vec<Under>,
    ended: Vec<Tag>,
    lateness: Lateness,
}

/// The place of the bytes of a paced member in service.
#[derive(Debug)]
pub enum Content {
    /// In memory.
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
    /// Put a member into service as this drive.
    #[must_use]
    pub fn new(kit: &PacedKit, content: Content, drive: DriveId) -> Self {
        let options =
            DriveOptions { write_cache: kit.write_cache, seed: SEED, index: drive.0.into(), ..DriveOptions::default() };
        let model = kit.kit.build(&options);
        Self { model, content, under: Vec::new(), ended: Vec::new(), lateness: Lateness::default() }
    }

    /// The kernel's name of its file.
    #[must_use]
    pub fn file(&self) -> Option<MemberSlot> {
        match self.content {
            Content::Memory(_) => None,
            Content::File(slot) => Some(slot),
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
        done: &mut Vec<Done>,
    ) {
        self.ripen(now, done);
        let stored = match &mut self.content {
            Content::Memory(memory) => Some(execute(memory, command, metadata, pool)),
            Content::File(_) => None,
        };
        self.under.push(Under { tag: command.tag, stored, due: None });
        self.model.submit(now, command);
    }

    /// The kernel has finished a command.
    pub fn stored(&mut self, now: Instant, tag: Tag, result: Result<(), DriveError>, done: &mut Vec<Done>) {
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
    pub fn ripen(&mut self, now: Instant, done: &mut Vec<Done>) {
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

    fn answer(&mut self, place: usize, now: Instant, done: &mut Vec<Done>) {
        let Under { tag, stored: Some(result), due: Some(due) } = self.under[place] else { return };
        self.under.swap_remove(place);
        self.lateness.note(now.since(due));
        done.push((tag, result));
    }
}

/// The parts of a [`PacedMember`] without its store.
pub struct PacedKit {
    kit: DriveKit,
    write_cache: Option<bool>,
}

impl PacedMember {
    /// The model without the store.
    #[must_use]
    pub fn kit(&self) -> PacedKit {
        PacedKit { kit: self.kit.clone(), write_cache: self.write_cache }
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

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_core::actions::IoClass;
    use openraid_sys::PoolOptions;
    use openraid_units::{PoolOffset, TagKind};

    fn member(text: &str) -> Result<PacedMember, String> {
        let spec: super::super::MemberSpec = text.parse().expect("a name");
        let super::super::Place::Model(model) = spec.place else { panic!("{text}") };
        PacedMember::new(&model, None)
    }

    fn command(index: u32, op: DriveOp, lba: u64, at: u64) -> DriveCommand {
        DriveCommand {
            tag: Tag::new(TagKind::Drive, index, 0),
            drive: DriveId(3),
            op,
            lba: DriveLba(lba),
            len: Sectors(8),
            data: Data::Frames(PoolOffset(at)),
            class: IoClass::Foreground,
        }
    }

    /// Requests one after the other, some side by side, and when the model alone would have ended each.
    #[test]
    fn answers_come_when_the_model_alone_would_give_them_and_with_the_bytes_that_were_written() {
        for profile in ["wd740gd", "s3700_400", "service-fixed"] {
            let member = member(&format!("model:{profile},cache=off")).expect("a profile");
            let kit = member.kit();
            let mut pool = FramePool::new(PoolOptions::of(Bytes::mib(1))).expect("memory");
            let memory = SparseMemory::new(Bytes::mib(64));
            let mut paced = Paced::new(&kit, Content::Memory(memory), DriveId(3));
            let options = DriveOptions { write_cache: Some(false), seed: SEED, index: 3, ..DriveOptions::default() };
            let mut alone = kit.kit.build(&options);
            let mut now = Instant(1_000_000_000_000);
            for round in 0_u32..60 {
                let (byte, lba) = (u8::try_from(round).expect("small"), u64::from(round * 7919 % 1000) * 128);
                pool.slice_mut(PoolRange::new(PoolOffset(0), Bytes(4096))).fill(byte);
                let (write, read) = (DriveOp::Write { fua: false }, DriveOp::Read);
                let ops = [command(2 * round, write, lba, 0), command(2 * round + 1, read, lba, 4096)];
                let mut done = Vec::new();
                for op in &ops {
                    paced.submit(now, op, &[], &mut pool, &mut done);
                    alone.submit(now, op);
                }
                let (mut ended, mut expected) = (Vec::new(), Vec::new());
                while ended.len() < 2 {
                    assert_eq!(paced.next(), alone.next(), "{profile}");
                    now = alone.next().expect("something is under way");
                    alone.advance(now, &mut expected);
                    paced.ripen(now, &mut done);
                    ended.append(&mut done);
                    assert_eq!(ended.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), expected, "{profile}");
                }
                assert!(ended.iter().all(|(_, result)| result.is_ok()));
                assert!(pool.slice(PoolRange::new(PoolOffset(4096), Bytes(4096))).iter().all(|own| *own == byte));
                now = now + Nanos::from_micros(10);
            }
            let lateness = paced.lateness();
            assert_eq!(
                (lateness.answers, lateness.sum),
                (120, Nanos::ZERO),
                "asked at the very moment, it is not late"
            );
        }
    }

    #[test]
    fn a_late_answer_reports_its_lateness_and_waits_for_the_file() {
        let kit = member("model:service-fixed").expect("a profile").kit();
        let mut pool = FramePool::new(PoolOptions::of(Bytes::mib(1))).expect("memory");
        let mut paced = Paced::new(&kit, Content::Memory(SparseMemory::new(Bytes::mib(1))), DriveId(0));
        let (mut done, start) = (Vec::new(), Instant(5_000_000_000));
        paced.submit(start, &command(1, DriveOp::Read, 0, 0), &[], &mut pool, &mut done);
        let due = paced.next().expect("it is under way");
        let late = Nanos::from_micros(70);
        paced.ripen(due + late, &mut done);
        assert_eq!(done.len(), 1);
        assert_eq!(paced.lateness(), Lateness { answers: 1, sum: late, most: late });
        assert_eq!(paced.lateness().to_string(), "1 answer, late by 0.070 ms on average, 0.070 ms at most");
        done.clear();
        let path = std::env::temp_dir().join(format!("openraid-paced-{}", std::process::id()));
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a file");
        let file = Member::open(&path, openraid_sys::Use::Exclusive, openraid_sys::Direct::Never).expect("it opens");
        let mut engine = openraid_sys::IoEngine::new(&pool, openraid_sys::EngineOptions::default()).expect("an engine");
        let slot = engine.attach(Arc::new(file)).expect("the only one");
        std::fs::remove_file(&path).expect("it was made");
        let mut paced = Paced::new(&kit, Content::File(slot), DriveId(0));
        let read = command(2, DriveOp::Read, 0, 0);
        paced.submit(start, &read, &[], &mut pool, &mut done);
        paced.ripen(due + late, &mut done);
        assert!(done.is_empty(), "the drive would be done, the file is not");
        paced.stored(due + late, read.tag, Err(DriveError::Gone), &mut done);
        assert_eq!(done, [(read.tag, Err(DriveError::Gone))]);
    }

    #[test]
    fn an_impossible_paced_member_is_refused_with_a_reason() {
        for (text, words) in [
            ("model:wd9999", "there is no drive profile 'wd9999'; known are: "),
            ("model:wd740gd,size=100T", "is more than the"),
            ("model:/nowhere/my.toml", "/nowhere/my.toml: "),
        ] {
            let error = member(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
        let whole = member("model:wd740gd").expect("a profile");
        assert!(whole.notes().iter().any(|note| note.contains("file=PATH holds more")), "{:?}", whole.notes());
        let part = member("model:wd740gd,size=64M").expect("a part of it");
        assert_eq!((part.info().capacity, part.info().rotational), (Sectors::mib(64), true));
        assert!(whole.info().capacity > Sectors::mib(64 << 10), "all of 74 GB");
    }
}
