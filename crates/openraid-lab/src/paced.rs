//! The timing of paced members: the models of the simulation, with the same seed. Each drive has its own phase by its
//! number.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use openraid_core::actions::DriveCommand;
use openraid_drives::{AnyDrive, DriveKit, DriveOptions, VirtualDrive};
use openraid_models::{DriveProfile, Library};
use openraid_runtime::member::paced::{DriveTiming, TimingProfile};
use openraid_runtime::member::ModelSpec;
use openraid_units::{DriveId, Instant, Sectors, Tag};

/// The seed of all paced drives: the first seed of simulations.
const SEED: u64 = 1;

/// A prepared profile.
struct Timing {
    kit: DriveKit,
    title: String,
    rotational: bool,
}

/// A drive.
struct Timed(AnyDrive);

/// The drive of a profile, by name or by the path of its file.
///
/// # Errors
/// In words: no such profile, or a file that is not a profile.
pub fn find(name: &str) -> Result<Arc<dyn TimingProfile>, String> {
    Ok(Arc::new(profile_of(name)?))
}

fn profile_of(name: &str) -> Result<Timing, String> {
    static BUILTIN: OnceLock<Library> = OnceLock::new();
    let profile = if ModelSpec::is_path(name) {
        let text = std::fs::read_to_string(Path::new(name)).map_err(|error| format!("{name}: {error}"))?;
        DriveProfile::parse(name, &text).map_err(|errors| errors.to_string())?
    } else {
        BUILTIN.get_or_init(Library::builtin).drive(name).cloned().map_err(|error| error.to_string())?
    };
    Ok(Timing { kit: DriveKit::new(&profile), title: profile.head.title.clone(), rotational: profile.rotational() })
}

impl TimingProfile for Timing {
    fn title(&self) -> &str {
        &self.title
    }

    fn rotational(&self) -> bool {
        self.rotational
    }

    fn sectors(&self) -> Sectors {
        Sectors(self.kit.build(&DriveOptions::default()).sectors())
    }

    fn build(&self, write_cache: Option<bool>, drive: DriveId) -> Box<dyn DriveTiming> {
        let options = DriveOptions { write_cache, seed: SEED, index: drive.0.into(), ..DriveOptions::default() };
        Box::new(Timed(self.kit.build(&options)))
    }
}

impl DriveTiming for Timed {
    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        self.0.submit(now, command);
    }

    fn next(&self) -> Option<Instant> {
        self.0.next()
    }

    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        self.0.advance(now, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_core::actions::{Data, DriveOp, IoClass};
    use openraid_core::events::DriveError;
    use openraid_runtime::member::paced::{set_models, Lateness, Paced, PacedContent, PacedMember};
    use openraid_runtime::member::{MemberSpec, Place, SparseMemory};
    use openraid_sys::{FramePool, MemberFile, PoolOptions, PoolRange};
    use openraid_units::{Bytes, DriveLba, Nanos, PoolOffset, TagKind};

    fn member(text: &str) -> Result<PacedMember, String> {
        set_models(find);
        let spec: MemberSpec = text.parse().expect("a name");
        let Place::Model(model) = spec.place else { panic!("{text}") };
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
            let kit = profile_of(profile).expect("a profile").kit;
            let mut pool = FramePool::new(PoolOptions::of(Bytes::mib(1))).expect("memory");
            let memory = SparseMemory::new(Bytes::mib(64));
            let mut paced = Paced::new(member.model(DriveId(3)), PacedContent::Memory(memory));
            let options = DriveOptions { write_cache: Some(false), seed: SEED, index: 3, ..DriveOptions::default() };
            let mut alone = kit.build(&options);
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
                assert!(pool.slice(PoolRange::new(PoolOffset(4096), Bytes(4096))).iter().all(|one| *one == byte));
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
        let member = member("model:service-fixed").expect("a profile");
        let mut pool = FramePool::new(PoolOptions::of(Bytes::mib(1))).expect("memory");
        let mut paced = Paced::new(member.model(DriveId(0)), PacedContent::Memory(SparseMemory::new(Bytes::mib(1))));
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
        let file =
            MemberFile::open(&path, openraid_sys::Use::Exclusive, openraid_sys::Direct::Never).expect("it opens");
        let mut engine = openraid_sys::IoEngine::new(&pool, openraid_sys::EngineOptions::default()).expect("an engine");
        let slot = engine.attach(Arc::new(file)).expect("the only one");
        std::fs::remove_file(&path).expect("it was made");
        let mut paced = Paced::new(member.model(DriveId(0)), PacedContent::File(slot));
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
