//! A drive with its bytes in memory, a volatile cache and every fault of [`Faults`].
//!
//! The drive is stricter than real drives, because it must find bugs of the engine:
//!
//! - It panics on a command outside its range, off its block grid, of an unsupported kind, or beyond its queue depth.
//!   It also panics on a write that overlaps another write in flight, because their order is undefined.
//! - It copies a write's bytes when the command is issued, and compares them when the command completes. A difference
//!   means that the frames were reused too early.
//! - It fills a read's frames with junk when the command is issued, so that their early use is detected.
//!
//! The drive also has silent faults: a write that is lost or changes another place, a read that returns another place,
//! a bit that flips on the medium or on the way. It keeps a list of its silent faults, for the oracle only.
//!
//! In a power cut each unflushed sector is kept or lost by a random draw of its own, regardless of the order of the
//! writes. So writes are torn and reordered sector by sector. A flush covers only the writes that completed before it
//! was issued.

mod power;

use std::collections::BTreeMap;

use openraid_core::actions::{DriveCommand, DriveOp};
use openraid_core::events::DriveError;
use openraid_units::{DriveLba, Nanos, Sectors, Tag, SECTOR_BYTES};

use super::drive_faults::{Faults, Wrong, WrongAnswer};
use super::image::{FreshContent, Image};
use super::DriveSpec;
use crate::random::Random;

/// Writes in the volatile cache, at most. Beyond that the oldest writes reach the medium without a flush.
const CACHED_WRITES_MAX: usize = 4096;

/// One flush or discard in this number needs room for records of a full file system.
const RECORDS_NEED_ROOM: u64 = 4;

/// The result of a write on the medium.
#[derive(Clone, Debug)]
enum Content {
    Bytes(Box<[u8]>),
    Zeroes,
    Junk(u64),
}

/// A write that a power cut may undo.
#[derive(Clone, Debug)]
struct CachedWrite {
    /// Place in the order of completion.
    sequence: u64,
    lba: DriveLba,
    len: Sectors,
    content: Content,
}

impl CachedWrite {
    fn overlaps(&self, lba: DriveLba, len: Sectors) -> bool {
        self.lba < lba + len && lba < self.lba + self.len
    }
    fn part(&self, lba: DriveLba, len: Sectors) -> Self {
        let content = match &self.content {
            Content::Bytes(bytes) => Content::Bytes(bytes[byte_count(lba - self.lba)..][..byte_count(len)].into()),
            other => other.clone(),
        };
        Self { sequence: self.sequence, lba, len, content }
    }
    fn apply(&self, image: &mut Image) {
        match &self.content {
            Content::Bytes(bytes) => image.write(self.lba, bytes),
            Content::Zeroes => image.zero(self.lba, self.len),
            Content::Junk(seed) => {
                let mut bytes = vec![0; byte_count(self.len)];
                Image::new(FreshContent::Junk(*seed)).read(self.lba, &mut bytes);
                image.write(self.lba, &bytes);
            }
        }
    }
}

/// A command that was issued and has not ended.
#[derive(Clone, Debug)]
struct IssuedCommand {
    command: DriveCommand,
    /// Bytes to write, copied at issue. For a read: the medium's bytes at issue, if the read will return them.
    bytes: Option<Box<[u8]>>,
    /// A flush covers the writes with a lower sequence.
    covers: u64,
    /// No scheduled event ends the command.
    stuck: bool,
    /// Its storage has no room for it and keeps it for a while.
    kept: bool,
}

/// Completed commands by kind, and their sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DriveCounters {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    /// Discards and zeroings.
    pub ranges: u64,
    pub sectors_read: u64,
    pub sectors_written: u64,
}

#[derive(Debug)]
pub struct MemoryDrive {
    spec: DriveSpec,
    /// The content that reads return.
    current: Image,
    /// The content that certainly survives a power cut.
    durable: Image,
    cached: Vec<CachedWrite>,
    sequence: u64,
    issued: BTreeMap<u64, IssuedCommand>,
    depth_max: u32,
    random: Random,
    counters: DriveCounters,
    /// The drive's faults.
    pub faults: Faults,
}

/// The result of issuing a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Issue {
    /// The command ends after this time, by [`MemoryDrive::finish`].
    After(Nanos),
    /// The command is stuck until [`MemoryDrive::release`].
    Never,
}

impl MemoryDrive {
    /// A drive with `random` as its source of chance. It refuses more than `depth_max` commands at once.
    #[must_use]
    pub fn new(spec: DriveSpec, depth_max: u32, random: Random) -> Self {
        let image = Image::new(spec.fresh);
        Self {
            spec,
            current: image.clone(),
            durable: image,
            cached: Vec::new(),
            sequence: 0,
            issued: BTreeMap::new(),
            depth_max,
            random,
            counters: DriveCounters::default(),
            faults: Faults::default(),
        }
    }

    /// The drive's specification.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        &self.spec
    }
    /// Accept `extra` commands more than the engine may issue, because a planted bug adds commands.
    pub fn make_room(&mut self, extra: u32) {
        self.depth_max += extra;
    }
    /// The drive's counters.
    #[must_use]
    pub fn counters(&self) -> DriveCounters {
        self.counters
    }
    /// The content that reads return at present.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.current
    }
    /// Commands that have not ended.
    pub fn outstanding(&self) -> impl Iterator<Item = &DriveCommand> {
        self.issued.values().map(|issued| &issued.command)
    }

    /// Take a command. `payload` has its bytes in the frame pool (for a write) or its metadata bytes. For a read it has
    /// the frames, which are filled with junk.
    ///
    /// # Panics
    /// A command that no engine without a bug issues.
    pub fn issue(&mut self, command: &DriveCommand, payload: Payload<'_>) -> Issue {
        self.check(command);
        let bytes: Option<Box<[u8]>> = match payload {
            Payload::None => None,
            Payload::Write(bytes) => Some(bytes.into()),
            Payload::Read(frames) => {
                let early = self.random.chance(1, 2).then(|| {
                    let mut bytes = vec![0; frames.len()];
                    self.current.read(command.lba, &mut bytes);
                    bytes.into_boxed_slice()
                });
                self.random.fill(frames);
                early
            }
        };
        let stuck = self.faults.hang && !self.faults.gone;
        let kept = !stuck && self.keeps(command);
        let issued = IssuedCommand { command: *command, bytes, covers: self.sequence, stuck, kept };
        let earlier = self.issued.insert(command.tag.0, issued);
        assert!(earlier.is_none(), "{:?} was issued twice", command.tag);
        if stuck {
            Issue::Never
        } else {
            let wait = if kept { self.spec.room_wait } else { Nanos::ZERO };
            Issue::After(wait + self.service_time(command.op))
        }
    }

    /// Whether its storage keeps a command that it has no room for.
    fn keeps(&mut self, command: &DriveCommand) -> bool {
        let Some(room) = self.faults.room.as_ref().filter(|room| !room.waited) else { return false };
        let info = self.spec.info();
        match command.op {
            _ if info.keeps(command.op) == Nanos::ZERO => false,
            DriveOp::Flush | DriveOp::Discard => room.is_used_up() && self.random.chance(1, RECORDS_NEED_ROOM),
            _ => room.lacks(command.lba, command.len),
        }
    }

    fn service_time(&mut self, op: DriveOp) -> Nanos {
        let times = if op == DriveOp::Flush { self.spec.flush_times } else { 1 };
        let usual = Nanos(self.spec.latency.draw(&mut self.random).get() * times);
        match self.faults.late {
            Some(late) if self.random.chance(1, late.one_in) => usual + Nanos(self.random.below(late.most.get())),
            _ => usual,
        }
    }

    fn check(&self, command: &DriveCommand) {
        assert!(self.issued.len() < self.depth_max as usize, "deeper than the drive's queue: {command:?}");
        let block = self.spec.block.sectors();
        if command.op == DriveOp::Flush {
            assert!(command.len.is_zero(), "a flush of a range: {command:?}");
            return;
        }
        assert!(!command.len.is_zero(), "an empty command: {command:?}");
        let end = command.lba.get().checked_add(command.len.get());
        assert!(end.is_some_and(|end| end <= self.spec.capacity.get()), "beyond the drive's end: {command:?}");
        assert!((command.lba.offset() % block).is_zero(), "off the block grid of {block:?}: {command:?}");
        assert!((command.len % block).is_zero(), "not whole blocks of {block:?}: {command:?}");
        match command.op {
            DriveOp::Read => return,
            DriveOp::Write { .. } | DriveOp::Flush => {}
            DriveOp::Discard => assert!(self.spec.discard, "the drive takes no discard: {command:?}"),
            DriveOp::WriteZeroes { .. } => assert!(self.spec.write_zeroes, "the drive zeroes nothing: {command:?}"),
        }
        for other in self.commands_that_change() {
            let apart = other.lba + other.len <= command.lba || command.lba + command.len <= other.lba;
            assert!(apart, "two writes in flight overlap: {command:?} and {other:?}");
        }
    }

    /// Carry out a command at its time. `frames` are the same as at issue.
    ///
    /// # Errors
    /// The error that the drive's faults cause.
    ///
    /// # Panics
    /// No such command, or frames that changed while they were being written.
    pub fn finish(&mut self, tag: Tag, frames: Option<&mut [u8]>) -> Result<(), DriveError> {
        let issued = self.issued.remove(&tag.0).expect("a command that was issued ends once");
        let command = issued.command;
        if let (DriveOp::Write { .. }, Some(frames), Some(bytes)) = (command.op, &frames, &issued.bytes) {
            assert!(**frames == **bytes, "frames changed while they were written: {command:?}");
        }
        let waited = issued.kept;
        let result = self.carry_out(&command, issued, frames);
        if let (true, Err(DriveError::NoSpace), Some(room)) = (waited, result, &mut self.faults.room) {
            room.waited = true;
        }
        if let (Err(error), false) = (result, matches!(command.op, DriveOp::Read | DriveOp::Flush)) {
            let list = if error == DriveError::Gone { &mut self.faults.torn } else { &mut self.faults.refused };
            list.push((command.lba, command.len));
        }
        result
    }

    fn carry_out(
        &mut self,
        command: &DriveCommand,
        issued: IssuedCommand,
        frames: Option<&mut [u8]>,
    ) -> Result<(), DriveError> {
        if self.faults.gone {
            return Err(DriveError::Gone);
        }
        match command.op {
            DriveOp::Read => self.read(&issued, frames.expect("a read has frames")),
            DriveOp::Flush => self.flush(issued.covers),
            DriveOp::Write { fua } => {
                let bytes = issued.bytes.expect("a write has bytes");
                self.counters.writes += 1;
                self.counters.sectors_written += command.len.get();
                self.write(command, Content::Bytes(bytes), fua)
            }
            DriveOp::WriteZeroes { .. } => {
                self.counters.ranges += 1;
                self.write(command, Content::Zeroes, false)
            }
            DriveOp::Discard => {
                self.counters.ranges += 1;
                if let Some(error) = self.faults.discards {
                    let part = Sectors(self.random.below(command.len.get())).round_down(self.spec.block.sectors());
                    if !part.is_zero() {
                        self.write(&DriveCommand { len: part, ..*command }, Content::Zeroes, false)?;
                    }
                    return Err(error);
                }
                let content =
                    if self.spec.discard_zeroes { Content::Zeroes } else { Content::Junk(self.random.bits()) };
                self.write(command, content, false)
            }
        }
    }

    fn read(&mut self, issued: &IssuedCommand, frames: &mut [u8]) -> Result<(), DriveError> {
        let command = &issued.command;
        self.counters.reads += 1;
        self.counters.sectors_read += command.len.get();
        let bad = self.faults.first_defect(command.lba, command.len).or(self.faults.reads.then_some(command.lba));
        let good = bad.map_or(command.len, |bad| bad - command.lba);
        let good = &mut frames[..byte_count(good)];
        match &issued.bytes {
            Some(early) => good.copy_from_slice(&early[..good.len()]),
            None => self.current.read(command.lba, good),
        }
        match bad {
            Some(lba) => Err(DriveError::Media { lba }),
            None => {
                self.misread(command, frames);
                Ok(())
            }
        }
    }

    /// Change the data of a read, if a fault does that.
    fn misread(&mut self, command: &DriveCommand, frames: &mut [u8]) {
        match self.faults.spring(command.lba, command.len, true) {
            Some(WrongAnswer::Misread { from }) => {
                let last = DriveLba((self.spec.capacity - command.len).get());
                self.current.read(from.min(last), frames);
                self.remember(command.lba, command.len);
            }
            Some(WrongAnswer::FlippedOnTheWay { byte, mask }) => {
                frames[byte % SECTOR_LEN] ^= mask;
                self.remember(command.lba, Sectors(1));
            }
            Some(WrongAnswer::Lost | WrongAnswer::Misdirected { .. }) => unreachable!("these are of writes"),
            None => {}
        }
    }

    fn write(&mut self, command: &DriveCommand, content: Content, fua: bool) -> Result<(), DriveError> {
        let failed = self.faults.writes;
        if failed.is_some() && self.random.chance(1, 2) {
            return failed.map_or(Ok(()), Err);
        }
        if let Some(error) = self.faults.next_write.take() {
            return Err(error);
        }
        let inside = |(lba, len): (DriveLba, Sectors)| lba <= command.lba && command.lba + command.len <= lba + len;
        if !matches!(command.op, DriveOp::Discard) && self.faults.refuse_next.is_some_and(inside) {
            self.faults.refuse_next = None;
            return Err(DriveError::Media { lba: command.lba });
        }
        let overlaps = |(lba, len): (DriveLba, Sectors)| command.lba < lba + len && lba < command.lba + command.len;
        if self.faults.no_space.is_some_and(overlaps) {
            return Err(DriveError::NoSpace);
        }
        let grows = command.op != DriveOp::Discard;
        let room = self.faults.room.as_mut().filter(|_| grows);
        if let Some(parts) = room.and_then(|room| room.refuse(command.lba, command.len)) {
            let whole = CachedWrite { sequence: 0, lba: command.lba, len: command.len, content };
            let room = self.faults.room.take();
            let written = parts.into_iter().try_for_each(|(lba, len)| {
                self.write(&DriveCommand { lba, len, ..*command }, whole.part(lba, len).content, fua)
            });
            self.faults.room = room;
            return written.and(Err(DriveError::NoSpace));
        }
        // A write that fails may still have changed the medium.
        let refused = self.faults.write_over(command.lba, command.len);
        let mut written = CachedWrite { sequence: self.sequence, lba: command.lba, len: command.len, content };
        if let Some(effect) = self.faults.spring(command.lba, command.len, false) {
            self.go_wrong(&written);
            match effect {
                WrongAnswer::Lost => return Ok(()),
                WrongAnswer::Misread { .. } | WrongAnswer::FlippedOnTheWay { .. } => unreachable!("these are of reads"),
                WrongAnswer::Misdirected { to } => {
                    let last = DriveLba((self.spec.capacity - command.len).get());
                    written.lba = to.min(last);
                    self.remember(written.lba, written.len);
                }
            }
        }
        if let Some(places) = &mut self.faults.written {
            places.push((command.lba, command.len));
        }
        self.sequence += 1;
        written.apply(&mut self.current);
        if fua || !self.spec.volatile_cache {
            // Older cached content of the range must not overwrite it later.
            self.drop_cached(command.lba, command.len);
            written.apply(&mut self.durable);
        } else {
            self.cached.push(written);
            if self.cached.len() > CACHED_WRITES_MAX {
                let oldest = self.cached[CACHED_WRITES_MAX / 2].sequence;
                self.destage_below(oldest);
            }
        }
        let refused = refused.map(|lba| DriveError::Media { lba });
        failed.or(refused).map_or(Ok(()), Err)
    }

    /// Record that these bytes should have been written at the command's place.
    fn go_wrong(&mut self, write: &CachedWrite) {
        let mut meant = Image::new(FreshContent::Zeroes);
        write.apply(&mut meant);
        let mut right = vec![0; byte_count(write.len)].into_boxed_slice();
        meant.read(write.lba, &mut right);
        self.faults.wrong.push(Wrong { lba: write.lba, len: write.len, right });
    }

    /// Record the present content as the right one.
    fn remember(&mut self, lba: DriveLba, len: Sectors) {
        let mut right = vec![0; byte_count(len)].into_boxed_slice();
        self.current.read(lba, &mut right);
        self.faults.wrong.push(Wrong { lba, len, right });
    }

    /// Repair all silent errors, the latest first.
    pub fn mend(&mut self) {
        while let Some(wrong) = self.faults.wrong.pop() {
            self.poke(wrong.lba, &wrong.right);
        }
    }

    /// Ranges that a power cut at this moment may leave old or new: written and not flushed, or in flight.
    pub fn in_doubt(&self) -> impl Iterator<Item = (DriveLba, Sectors)> + '_ {
        let writes = self.commands_that_change();
        let cached = self.cached.iter().map(|cached| (cached.lba, cached.len));
        cached.chain(writes.map(|command| (command.lba, command.len)))
    }

    /// Commands in flight that change the drive's content.
    pub fn commands_that_change(&self) -> impl Iterator<Item = &DriveCommand> {
        self.outstanding().filter(|issued| !matches!(issued.op, DriveOp::Read | DriveOp::Flush))
    }

    fn flush(&mut self, covers: u64) -> Result<(), DriveError> {
        self.counters.flushes += 1;
        if self.faults.flushes {
            self.faults.torn.extend(self.cached.iter().map(|cached| (cached.lba, cached.len)));
            self.lose_cached();
            return Err(DriveError::FlushFailed);
        }
        self.destage_below(covers);
        Ok(())
    }

    fn destage_below(&mut self, sequence: u64) {
        let split = self.cached.partition_point(|cached| cached.sequence < sequence);
        for cached in self.cached.drain(..split) {
            cached.apply(&mut self.durable);
        }
    }

    /// Drop a range from the cache, and keep the cached data around it.
    fn drop_cached(&mut self, lba: DriveLba, len: Sectors) {
        let end = lba + len;
        for cached in std::mem::take(&mut self.cached) {
            if !cached.overlaps(lba, len) {
                self.cached.push(cached);
                continue;
            }
            let cached_end = cached.lba + cached.len;
            if cached.lba < lba {
                self.cached.push(cached.part(cached.lba, lba - cached.lba));
            }
            if end < cached_end {
                self.cached.push(cached.part(end, cached_end - end));
            }
        }
    }

    /// Flip bits of one byte on the medium, silently.
    pub fn flip(&mut self, lba: DriveLba, byte: usize, mask: u8) {
        self.remember(lba, Sectors(1));
        for image in [&mut self.current, &mut self.durable] {
            let mut sector = [0; SECTOR_LEN];
            image.read(lba, &mut sector);
            sector[byte % SECTOR_LEN] ^= mask;
            image.write(lba, &sector);
        }
    }

    /// The data of a range is lost, silently: it reads as zeroes.
    pub fn lose(&mut self, lba: DriveLba, len: Sectors) {
        self.remember(lba, len);
        self.poke(lba, &vec![0; byte_count(len)]);
    }

    /// Read without a command.
    pub fn peek(&self, lba: DriveLba, out: &mut [u8]) {
        self.current.read(lba, out);
    }

    /// Like [`MemoryDrive::peek`], for the content that remains if power is cut and no cached sector reaches the
    /// medium.
    pub fn peek_durable(&self, lba: DriveLba, out: &mut [u8]) {
        self.durable.read(lba, out);
    }

    /// Write without a command, durable at once.
    pub fn poke(&mut self, lba: DriveLba, bytes: &[u8]) {
        self.drop_cached(lba, Sectors(bytes.len() as u64 / SECTOR_BYTES));
        self.current.write(lba, bytes);
        self.durable.write(lba, bytes);
    }

    /// Write without a command. The bytes are durable only after [`MemoryDrive::settle`]: a power cut keeps or loses
    /// each sector.
    pub fn poke_volatile(&mut self, lba: DriveLba, bytes: &[u8]) {
        let len = Sectors(bytes.len() as u64 / SECTOR_BYTES);
        let _ = self.faults.write_over(lba, len);
        let written = CachedWrite { sequence: self.sequence, lba, len, content: Content::Bytes(bytes.into()) };
        self.sequence += 1;
        written.apply(&mut self.current);
        self.cached.push(written);
    }

    /// The medium has this content from now on, as if another device were in the place of this one.
    pub fn put_image(&mut self, image: &Image) {
        assert!(self.issued.is_empty(), "a drive with commands in flight is not exchanged");
        self.current = image.clone();
        self.durable = image.clone();
        self.cached.clear();
    }

    /// Make all written data durable.
    pub fn settle(&mut self) {
        self.destage_below(self.sequence);
    }

    /// Erase all content, as on a drive from the factory.
    pub fn wipe(&mut self, fresh: FreshContent) {
        assert!(self.issued.is_empty(), "a drive with commands in flight is not wiped");
        self.spec.fresh = fresh;
        self.current = Image::new(fresh);
        self.durable = Image::new(fresh);
        self.cached.clear();
        self.faults = Faults::default();
    }
}

/// The memory of a command.
#[derive(Debug)]
pub enum Payload<'a> {
    /// The command has no payload.
    None,
    /// Bytes to be written.
    Write(&'a [u8]),
    /// Frames that the drive fills.
    Read(&'a mut [u8]),
}

#[allow(clippy::cast_possible_truncation)] // 512
const SECTOR_LEN: usize = SECTOR_BYTES as usize;

#[allow(clippy::cast_possible_truncation)] // the bytes of one command fit the memory
fn byte_count(len: Sectors) -> usize {
    len.bytes().get() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_core::actions::{Data, IoClass};
    use openraid_units::{DriveId, PoolOffset, TagKind};

    struct Bench {
        drive: MemoryDrive,
        next: u32,
    }

    impl Bench {
        fn new(seed: u64, spec: DriveSpec) -> Self {
            Self { drive: MemoryDrive::new(spec, 8, Random::new(seed)), next: 0 }
        }
        fn command(&mut self, op: DriveOp, lba: u64, len: u64) -> DriveCommand {
            self.next += 1;
            let tag = Tag::new(TagKind::Drive, self.next, 0);
            let data = match op {
                DriveOp::Read | DriveOp::Write { .. } => Data::Frames(PoolOffset(0)),
                _ => Data::None,
            };
            let (lba, len) = (DriveLba(lba), Sectors(len));
            DriveCommand { tag, drive: DriveId(0), op, lba, len, data, class: IoClass::Foreground }
        }
        fn issue_write(&mut self, lba: u64, fill: u8, fua: bool) -> Tag {
            let command = self.command(DriveOp::Write { fua }, lba, 1);
            self.drive.issue(&command, Payload::Write(&[fill; 512]));
            command.tag
        }
        fn write(&mut self, lba: u64, fill: u8, fua: bool) -> Result<(), DriveError> {
            let tag = self.issue_write(lba, fill, fua);
            self.drive.finish(tag, Some(&mut [fill; 512]))
        }
        fn read(&mut self, lba: u64) -> Result<u8, DriveError> {
            let command = self.command(DriveOp::Read, lba, 1);
            let mut frames = [0; 512];
            self.drive.issue(&command, Payload::Read(&mut frames));
            self.drive.finish(command.tag, Some(&mut frames)).map(|()| frames[0])
        }
        fn flush(&mut self) -> Result<(), DriveError> {
            let command = self.command(DriveOp::Flush, 0, 0);
            self.drive.issue(&command, Payload::None);
            self.drive.finish(command.tag, None)
        }
    }

    fn spec() -> DriveSpec {
        DriveSpec::new(Sectors::mib(1))
    }

    #[test]
    fn flushed_and_fua_data_survives_every_cut_and_other_data_is_old_or_new() {
        let (mut old, mut new) = (0, 0);
        for seed in 0..200 {
            let mut bench = Bench::new(seed, spec());
            bench.write(1, 1, false).unwrap();
            bench.write(2, 1, false).unwrap();
            bench.flush().unwrap();
            bench.write(1, 2, false).unwrap();
            bench.write(3, 1, false).unwrap();
            bench.write(3, 2, true).unwrap();
            bench.drive.cut_power();
            match bench.read(1) {
                Ok(1) => old += 1,
                Ok(2) => new += 1,
                other => panic!("{other:?}"),
            }
            assert_eq!(bench.read(2), Ok(1));
            assert_eq!(bench.read(3), Ok(2));
        }
        assert!(old > 20 && new > 20, "{old} old, {new} new");
    }

    #[test]
    fn a_flush_does_not_cover_writes_that_end_after_it_was_issued() {
        let lost = (0..50).filter(|seed| {
            let mut bench = Bench::new(*seed, spec());
            let flush = bench.command(DriveOp::Flush, 0, 0);
            bench.drive.issue(&flush, Payload::None);
            bench.write(5, 9, false).unwrap();
            bench.drive.finish(flush.tag, None).unwrap();
            bench.drive.cut_power();
            bench.read(5) == Ok(0)
        });
        assert!(lost.count() > 5);
    }

    #[test]
    fn a_write_in_flight_is_there_or_not_after_a_cut() {
        let there = (0..100).filter(|seed| {
            let mut bench = Bench::new(*seed, spec());
            bench.issue_write(7, 3, true);
            bench.drive.cut_power();
            bench.read(7) == Ok(3)
        });
        let there = there.count();
        assert!((10..90).contains(&there), "{there}");
    }

    #[test]
    fn a_drive_without_a_volatile_cache_loses_nothing_that_completed() {
        for seed in 0..50 {
            let mut bench = Bench::new(seed, DriveSpec { volatile_cache: false, ..spec() });
            bench.write(1, 1, false).unwrap();
            bench.drive.cut_power();
            assert_eq!(bench.read(1), Ok(1));
        }
    }

    #[test]
    fn faults_end_commands_the_way_they_say() {
        let mut bench = Bench::new(1, spec());
        bench.write(4, 8, false).unwrap();
        bench.drive.faults.add_defects(DriveLba(4), Sectors(1), super::super::Defect::UntilWritten);
        assert_eq!(bench.read(4), Err(DriveError::Media { lba: DriveLba(4) }));
        bench.write(4, 9, false).unwrap();
        assert_eq!(bench.read(4), Ok(9));
        bench.drive.faults.flushes = true;
        assert_eq!(bench.flush(), Err(DriveError::FlushFailed));
        bench.drive.faults.writes = Some(DriveError::ReadOnly);
        assert_eq!(bench.write(4, 1, false), Err(DriveError::ReadOnly));
        bench.drive.pull();
        assert_eq!(bench.read(4), Err(DriveError::Gone));
        bench.drive.put_back();
        bench.drive.flip(DriveLba(6), 3, 1);
        assert_eq!(bench.read(6), Ok(0));
        let mut sector = [0; 512];
        bench.drive.peek(DriveLba(6), &mut sector);
        assert_eq!(sector[3], 1);
    }

    #[test]
    fn a_drive_that_hangs_answers_when_it_is_released() {
        let mut bench = Bench::new(1, spec());
        bench.drive.faults.hang = true;
        let command = bench.command(DriveOp::Flush, 0, 0);
        assert_eq!(bench.drive.issue(&command, Payload::None), Issue::Never);
        assert_eq!(bench.drive.release(), [command.tag]);
        bench.drive.finish(command.tag, None).unwrap();
        let command = bench.command(DriveOp::Flush, 0, 0);
        assert!(matches!(bench.drive.issue(&command, Payload::None), Issue::After(_)));
    }

    #[test]
    #[should_panic(expected = "frames changed")]
    fn frames_that_change_under_a_write_are_noticed() {
        let mut bench = Bench::new(1, spec());
        let tag = bench.issue_write(0, 1, false);
        let _ = bench.drive.finish(tag, Some(&mut [2; 512]));
    }

    #[test]
    #[should_panic(expected = "two writes in flight overlap")]
    fn writes_whose_order_is_undefined_are_noticed() {
        let mut bench = Bench::new(1, spec());
        bench.issue_write(0, 1, false);
        bench.issue_write(0, 1, false);
    }

    #[test]
    #[should_panic(expected = "off the block grid")]
    fn half_a_block_is_refused() {
        Bench::new(1, DriveSpec { block: openraid_units::BlockSize::B4096, ..spec() }).issue_write(1, 1, false);
    }
}
