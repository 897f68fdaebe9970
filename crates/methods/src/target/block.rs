//! A file or a block device as a target, by io_uring (or threads, if it is refused), without the page cache if
//! possible.
//!
//! The target is opened for exclusive use, so that a device in use by the kernel or another program is never measured,
//! and never written. Without a [`Destruction`] the target is opened for reading, and the kernel itself refuses writes.

use super::link_capacity::link_mbps;
use super::payload_frames::{Patience, TargetFrames, SILENCE_SECONDS_MAX};
use super::target_name::{Choice, Destruction};
use super::{BedLine, BedName, HostIo, IoDone, IoKind, ReplyStatus, Target, TargetCounters, TargetError, TargetFacts};
use crate::cell::PartName;
use openraid_sys::{
    clock, Completed, Direct, EngineOptions, IoEngine, IoError, MemberError, MemberFile, MemberSlot, Operation,
    OperationKind, Use, WaitMode,
};
use openraid_units::{Bytes, DriveLba, Instant, Nanos};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The options of a real target.
#[derive(Clone, Debug)]
pub struct RealOptions {
    /// Maximum number of outstanding requests.
    pub outstanding: u32,
    /// Maximum size of a request in bytes.
    pub bytes_max: u32,
    /// The permission to destroy its data. Without it nothing is ever written.
    pub destroy: Option<Destruction>,
    /// Seed of the payload.
    pub seed: u64,
}

/// A file or block device as a target; see the module's description.
pub struct BlockTarget {
    facts: TargetFacts,
    frames: TargetFrames,
    engine: IoEngine,
    slot: MemberSlot,
    completed: Vec<Completed>,
    patience: Patience,
    queued: bool,
    /// The time of the last answer, or of the first request after all earlier ones were answered.
    heard: Instant,
}

impl BlockTarget {
    /// Opens the target. Nothing is written.
    ///
    /// # Errors
    /// The target does not exist, is in use, is write-protected although it must be written, or is too small for one
    /// request.
    pub fn open(path: &Path, options: &RealOptions) -> Result<Self, TargetError> {
        let choice = Choice::Path(path.into());
        let name = path.display().to_string();
        let wrong = |reason: String| TargetError::Open { name: name.clone(), reason };
        let destroy = options.destroy.as_ref().is_some_and(|proof| proof.covers(&choice));
        let usage = if destroy { Use::Exclusive } else { Use::ReadExclusive };
        let member = MemberFile::open(path, usage, Direct::Try).map_err(|error| match error {
            MemberError::Missing { .. } | MemberError::NotAMember { .. } => {
                TargetError::Named { name: name.clone(), reason: reason(&error) }
            }
            _ => wrong(reason(&error)),
        })?;
        let kernel = member.facts().clone();
        if kernel.size.bytes() < Bytes(u64::from(options.bytes_max)) {
            return Err(wrong(format!(
                "it holds {} only, less than one request of {} bytes; use a larger target",
                kernel.size.bytes(),
                options.bytes_max
            )));
        }
        let mut frames = TargetFrames::new(&name, options.outstanding, options.bytes_max, options.seed)?;
        let mut engine =
            IoEngine::new(&frames.pool, EngineOptions { waiting: WaitMode::Alone, ..EngineOptions::default() })
                .map_err(|error| wrong(format!("no way to put requests to it: {error}")))?;
        let mut bed = bed(path, &member);
        bed.push(format!("generator: {}", engine.description()).into());
        bed.extend(engine.notes().iter().map(|note| note.0.clone().into()));
        let slot = engine.attach(Arc::new(member)).expect("the only member");
        let facts = TargetFacts {
            name: name.clone(),
            capacity: kernel.size.bytes(),
            block: kernel.logical_block.bytes(),
            simulated: false,
            writable: destroy,
            page_cache: !kernel.direct,
            link_mbps: device_name(path).and_then(|device| link_mbps(Path::new("/sys"), &device)),
            bed,
        };
        // This touches the memory of the pool before the first request.
        let _ = frames.pool.slice_mut(frames.of(&HostIo { id: 0, kind: IoKind::Read, offset: 0, len: 512, worker: 0 }));
        let patience = Patience::with(&name);
        Ok(Self { facts, frames, engine, slot, completed: Vec::new(), patience, queued: false, heard: clock::now() })
    }

    /// Collects finished requests. Returns the time at which they were found.
    fn reap(&mut self, done: &mut Vec<IoDone>) -> Result<Instant, TargetError> {
        self.engine
            .reap(&mut self.frames.pool, &mut self.completed)
            .map_err(|error| self.patience.gone(format!("the kernel takes no more requests: {error}")))?;
        let at = clock::now();
        if !self.completed.is_empty() {
            self.heard = at;
        }
        for completed in self.completed.drain(..) {
            let failed = completed.result.err();
            self.patience.answer(failed.as_ref().map(described))?;
            let status = if failed.is_some() { ReplyStatus::IoError } else { ReplyStatus::Ok };
            done.push(IoDone { id: completed.user_data, at, status });
        }
        Ok(at)
    }
}

/// The kernel's name of a block device.
fn device_name(path: &Path) -> Option<String> {
    let path = std::fs::canonicalize(path).ok()?;
    Some(path.file_name()?.to_str()?.to_owned()).filter(|_| path.starts_with("/dev"))
}

/// The reason why a request failed. The remedies for members of arrays do not apply to a target.
fn described(error: &IoError) -> String {
    match error {
        IoError::Truncated { .. } => "it was made shorter while it was measured; restore its size".into(),
        IoError::Os(_) => format!("{error}; look at the log of the kernel"),
    }
}

/// The reason why a path is not a target, without its name. The reasons for members of arrays are worded for targets.
fn reason(error: &MemberError) -> String {
    match error {
        MemberError::NotAMember { kind, .. } => {
            format!("this is {kind}; a target must be a regular file or a block device")
        }
        MemberError::Empty { size, .. } => {
            format!("only {size} long, too short to be measured; name another target")
        }
        other => other.reason(),
    }
}

fn bed(path: &Path, member: &MemberFile) -> Vec<BedLine> {
    let facts = member.facts();
    let kind = match (facts.block_device, facts.rotational) {
        (true, Some(true)) => "hard disk",
        (true, _) => "block device",
        (false, _) => "file",
    };
    let size = format!("{}, blocks of {}", facts.size.bytes(), facts.logical_block.bytes());
    let mut bed = vec![format!("{}: {kind}, {size}", path.display()).into()];
    bed.extend(facts.model.iter().map(|model| BedLine::new(BedName::Model, model)));
    bed.extend(facts.serial.iter().map(|serial| BedLine::new(BedName::Serial, serial)));
    bed.push(
        if facts.direct { "past the page cache" } else { "THROUGH the page cache: memory is measured, too" }.into(),
    );
    bed.extend(member.notes().iter().map(|note| note.0.clone().into()));
    let allocated = path.metadata().map(|metadata| (metadata.blocks() * 512, metadata.len()));
    if let (false, Ok((blocks, len))) = (facts.block_device, allocated) {
        if blocks < len {
            let holes = len - blocks;
            let line = format!("{holes} bytes of the file are holes: reading them costs nothing; write it full first");
            bed.push(line.into());
        }
    }
    bed
}

impl Target for BlockTarget {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn submit(&mut self, io: HostIo) {
        if self.engine.outstanding() == 0 {
            self.heard = clock::now();
        }
        let at = DriveLba(io.offset / 512);
        let verb = match io.kind {
            IoKind::Read => OperationKind::Read { at, into: self.frames.of(&io) },
            IoKind::Write => {
                assert!(self.facts.writable, "bug: a write to a target that was opened for reading");
                OperationKind::Write { at, from: self.frames.of(&io), fua: false }
            }
            IoKind::Flush => OperationKind::Flush,
        };
        let operation = Operation { member: self.slot, user_data: io.id, verb };
        self.engine.push(&mut self.frames.pool, operation).expect("bug: more requests than the engine holds");
        self.queued = true;
    }

    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        const SILENCE: Nanos = Nanos::from_secs(SILENCE_SECONDS_MAX);
        let before = done.len();
        // The clock is read only if the time matters, because this code runs for each completion.
        let mut left = if until == Instant::NEVER { SILENCE } else { until.since(clock::now()) };
        loop {
            // Queued requests are always sent; the same call also sleeps.
            if self.queued || left > Nanos::ZERO {
                let refused = self.engine.submit_and_wait(left.min(SILENCE));
                let refused = refused.map_err(|error| self.patience.gone(format!("the kernel takes none: {error}")))?;
                self.queued = refused > 0;
            }
            let now = self.reap(done)?;
            if done.len() > before || now >= until {
                return Ok(());
            }
            let ends = self.heard + SILENCE;
            if now >= ends && self.engine.outstanding() > 0 {
                return Err(self.patience.silent());
            }
            // Without outstanding requests only the caller's time ends this wait.
            let end = if self.engine.outstanding() > 0 { until.min(ends) } else { until };
            left = end.since(now);
        }
    }

    fn counters(&self) -> Option<TargetCounters> {
        let time = clock::thread_cpu();
        Some(TargetCounters {
            host: Some(time),
            components: vec![(PartName::Generator, time)],
            ..TargetCounters::default()
        })
    }
}
