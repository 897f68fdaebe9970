//! A host that knows its writes: every answer of the array is compared with the possible content.

use std::collections::BTreeMap;
use std::ops::Range;

use openraid_core::actions::ReplyStatus;
use openraid_core::events::RequestKind;
use openraid_units::{ArrayId, Token, SECTOR_BYTES};

use super::content::{stamped, Content};
use super::history::History;
use super::versions::{Mismatch, VersionId, VersionStanding, VersionView, Versions};
use crate::random::Random;
use crate::world::{FinishedRequest, World};

/// Bytes of each read that checks a whole array.
const LOOK_BYTES: u64 = 256 << 10;
/// Limit of the expected versions that a report names.
const EXPECTED_TOLD_MAX: usize = 3;

/// The oracle's view of a request.
#[derive(Clone, Debug)]
enum OracleRequest {
    Read { begun: u64 },
    Write { id: VersionId, range: Range<u64>, fua: bool, sure: bool },
    Flush { begun: u64 },
}

/// The mix of requests.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Requests in the controller at once.
    pub depth: usize,
    /// Longest request in bytes.
    pub len_max: u64,
    /// Offsets and lengths are multiples of this.
    pub align: u64,
    /// The part of the array that is used.
    pub range: Range<u64>,
    /// Shares of reads, writes, flushes, trims, zeroings.
    pub mix: [u64; 5],
}

impl Workload {
    /// All kinds of requests, at any place and of any length.
    #[must_use]
    pub fn mixed(capacity: u64) -> Self {
        Self { depth: 16, len_max: 96 << 10, align: 1, range: 0..capacity, mix: [40, 50, 4, 3, 3] }
    }
}

/// A host with its record of writes.
#[derive(Debug)]
pub struct HostSession {
    /// The array of the host.
    pub array: ArrayId,
    versions: Versions,
    asked: BTreeMap<Token, (OracleRequest, usize)>,
    random: Random,
    next_stamp: u64,
    /// Whether errors are accepted answers; otherwise they end the test.
    pub tolerate_errors: bool,
    /// Whether a lack of room is an accepted answer to a write.
    pub bears_no_room: bool,
    /// The list of wrong reads; without a list, a wrong read ends the test.
    pub wrong: Option<Vec<Mismatch>>,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Requests that ended.
    pub answers: u64,
    /// Writes that were answered with success.
    pub writes: u64,
    /// The requests and their times.
    pub history: History,
    /// The content of a range after a trim that was answered.
    pub trimmed: Content,
    /// The ranges of all trims.
    pub trims: Vec<Range<u64>>,
}

impl HostSession {
    /// A host of an array that contains `initial`. `cuts` says whether the power may be cut.
    ///
    /// # Panics
    /// There is no such array.
    #[must_use]
    pub fn new(world: &World, array: ArrayId, seed: u64, initial: Content, cuts: bool) -> Self {
        let capacity = world.controller().capacity(array).expect("the array runs").get();
        Self {
            array,
            versions: Versions::new(capacity, initial, !cuts),
            asked: BTreeMap::new(),
            random: Random::derived(seed, 1),
            next_stamp: seed << 32 | 1,
            tolerate_errors: false,
            bears_no_room: false,
            wrong: None,
            errors: 0,
            answers: 0,
            writes: 0,
            history: History::default(),
            trimmed: Content::Zeroes,
            trims: Vec::new(),
        }
    }

    /// Draw from this seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.random = Random::derived(seed, 1);
    }

    /// Size of the array in bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.versions.capacity()
    }
    /// If the array has grown, the host uses all of it from now on. The new part has this content.
    ///
    /// # Panics
    /// The array does not run.
    pub fn learn_capacity(&mut self, world: &World, fresh: Content) {
        let capacity = world.controller().capacity(self.array).expect("the array runs").get();
        if capacity > self.versions.capacity() {
            self.versions.grow(capacity, fresh);
        }
    }

    /// The array ends earlier from now on, and all requests beyond that have been answered.
    ///
    /// # Panics
    /// The array does not run.
    pub fn learn_end(&mut self, world: &World) {
        let capacity = world.controller().capacity(self.array).expect("the array runs").get();
        if capacity < self.versions.capacity() {
            self.versions.shrink(capacity);
        }
    }

    /// The possible content of each place.
    pub fn versions_mut(&mut self) -> &mut Versions {
        &mut self.versions
    }
    /// Requests without an answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.asked.len()
    }

    /// Submit a request; the bytes of a write are a new stamp.
    pub fn ask(&mut self, world: &mut World, kind: RequestKind, range: Range<u64>) -> Token {
        let len = range.end - range.start;
        let mut payload = Vec::new();
        let mut begin = |content: Content, fua: bool, sure: bool| {
            let id = self.versions.begin_write(range.clone(), content);
            OracleRequest::Write { id, range: range.clone(), fua, sure }
        };
        let asked = match kind {
            RequestKind::Read => OracleRequest::Read { begun: self.versions.begin_read() },
            RequestKind::Flush => OracleRequest::Flush { begun: self.versions.begin_flush() },
            RequestKind::Write { fua } => {
                let stamp = self.next_stamp;
                self.next_stamp += 1;
                payload = stamped(stamp, range.start, usize::try_from(len).expect("a payload is in memory"));
                begin(Content::Stamp(stamp), fua, true)
            }
            RequestKind::WriteZeroes { fua, .. } => begin(Content::Zeroes, fua, true),
            RequestKind::Trim { .. } => begin(self.trimmed.clone(), false, false),
        };
        if matches!(kind, RequestKind::Trim { .. }) {
            self.trims.push(range.clone());
        }
        loop {
            match world.try_submit(self.array, kind, range.start, len, payload) {
                Ok(token) => {
                    let version = match &asked {
                        OracleRequest::Write { id, .. } => Some(*id),
                        OracleRequest::Read { .. } | OracleRequest::Flush { .. } => None,
                    };
                    let number = self.history.ask(kind, range, world.now(), version);
                    self.asked.insert(token, (asked, number));
                    return token;
                }
                Err(back) => payload = back,
            }
            assert!(world.step(), "the controller is full and nothing happens\n{}", world.dump());
            self.hear(world);
        }
    }

    /// Take the answers that have arrived.
    ///
    /// # Panics
    /// A wrong answer; the message has the expected one.
    pub fn hear(&mut self, world: &mut World) {
        let finished = world.take_finished_of(self.array);
        for (token, finished) in finished {
            self.judge(world, token, &finished);
        }
    }

    fn judge(&mut self, world: &World, token: Token, finished: &FinishedRequest) {
        let (asked, number) = self.asked.remove(&token).expect("an answer to what was asked");
        self.history.end(number, finished.ended, finished.status);
        let ok = finished.status == ReplyStatus::Ok;
        self.answers += 1;
        let is_borne = self.bears_no_room
            && finished.status == ReplyStatus::NoSpace
            && matches!(asked, OracleRequest::Write { .. });
        if !ok && !is_borne {
            self.errors += 1;
            assert!(self.tolerate_errors, "{:?} ended with {:?}\n{}", finished.request, finished.status, world.dump());
        }
        match asked {
            OracleRequest::Read { begun } if ok => self.compare(world, begun, finished),
            OracleRequest::Read { begun } => self.versions.drop_read(begun),
            OracleRequest::Flush { begun } if ok => self.versions.end_flush(begun),
            OracleRequest::Flush { .. } => {}
            OracleRequest::Write { id, range, fua, sure } => {
                let sure = sure && ok;
                self.writes += u64::from(sure);
                self.versions.end_write(id, range, sure, sure && (fua || finished.promised));
            }
        }
    }

    fn compare(&mut self, world: &World, begun: u64, finished: &FinishedRequest) {
        let offset = finished.request.offset.get();
        let mut at = 0;
        while let Err(wrong) = self.versions.end_read(begun, offset + at as u64, &finished.payload[at..]) {
            let Some(list) = &mut self.wrong else {
                panic!("{:?} read what cannot be: {}\n{}", finished.request, wrong.text, world.dump());
            };
            let next = (wrong.offset / SECTOR_BYTES + 1) * SECTOR_BYTES;
            list.push(wrong);
            at = usize::try_from(next - offset).map_or(finished.payload.len(), |next| next.min(finished.payload.len()));
        }
    }

    /// The bytes that a read found and the expected ones, as the end of a sentence about that byte.
    #[must_use]
    pub fn explain(&self, mismatch: &Mismatch) -> String {
        let found = match &mismatch.whose {
            Some(seen) => self.name(seen),
            None => {
                let bytes: Vec<String> = mismatch.head.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("bytes that were never written there ({} ...)", bytes.join(" "))
            }
        };
        let standing = |seen: &VersionView| match seen.standing {
            VersionStanding::Open => "",
            _ if seen.anything => "",
            VersionStanding::Promised => ", which no power cut may undo",
            // Until a read finds one of several versions, the others are possible too.
            VersionStanding::Left if mismatch.expected.len() == 1 => ", which a read has found since the power went",
            VersionStanding::Left => ", which the power cut may have left",
        };
        let expected = mismatch.expected.iter().take(EXPECTED_TOLD_MAX);
        let mut expected: Vec<String> = expected.map(|seen| format!("{}{}", self.name(seen), standing(seen))).collect();
        let more = mismatch.expected.len().saturating_sub(EXPECTED_TOLD_MAX);
        if more > 0 {
            expected.push(format!("one of {more} more"));
        }
        format!("holds {found}; right is {}", expected.join(", or "))
    }

    fn name(&self, seen: &VersionView) -> String {
        match self.history.writer(seen.origin) {
            _ if seen.anything => "anything".into(),
            Some(writer) if seen.zeroes => format!("the zeroes of {writer}"),
            Some(writer) => format!("what was written by {writer}"),
            None if seen.zeroes => "the zeroes that were there at first".into(),
            None => "what was there at first".into(),
        }
    }

    /// Handle one event.
    pub fn step(&mut self, world: &mut World) {
        assert!(world.step(), "nothing is left to happen\n{}", world.dump());
        self.hear(world);
    }

    /// Run until all requests are answered.
    pub fn drain(&mut self, world: &mut World) {
        while !self.asked.is_empty() {
            self.step(world);
        }
    }

    /// Run until the world is idle.
    pub fn rest(&mut self, world: &mut World) {
        self.drain(world);
        world.run_until_idle();
    }

    /// A random request of a workload.
    pub fn ask_random(&mut self, world: &mut World, load: &Workload) -> Token {
        let total: u64 = load.mix.iter().sum();
        let mut draw = self.random.below(total);
        let mut which = 0;
        while draw >= load.mix[which] {
            draw -= load.mix[which];
            which += 1;
        }
        let fua = self.random.chance(1, 10);
        let kind = match which {
            0 => RequestKind::Read,
            1 => RequestKind::Write { fua },
            2 => return self.ask(world, RequestKind::Flush, 0..0),
            3 => RequestKind::Trim { fua },
            _ => RequestKind::WriteZeroes { fua, may_discard: self.random.chance(1, 2) },
        };
        let range = self.random_range(load);
        self.ask(world, kind, range)
    }

    fn random_range(&mut self, load: &Workload) -> Range<u64> {
        let units = (load.range.end - load.range.start) / load.align;
        let most = (load.len_max / load.align).clamp(1, units);
        // Short requests are as frequent as long ones.
        let top = self.random.between(1, most);
        let len = self.random.between(1, top);
        let start = match self.random.below(16) {
            // The ends of the array are special.
            0 => 0,
            1 => units - len,
            _ => self.random.below(units - len + 1),
        };
        let start = load.range.start + start * load.align;
        start..start + len * load.align
    }

    /// Submit this number of requests of a workload, and take all their answers.
    pub fn run(&mut self, world: &mut World, load: &Workload, requests: u64) {
        self.run_on(world, load, requests);
        self.drain(world);
    }

    /// Submit this number of requests of a workload; up to `depth` of them stay without an answer.
    pub fn run_on(&mut self, world: &mut World, load: &Workload, requests: u64) {
        for _ in 0..requests {
            while self.asked.len() >= load.depth {
                self.step(world);
            }
            self.ask_random(world, load);
            // Several requests sometimes arrive together.
            if self.random.chance(1, 3) {
                self.step(world);
            }
        }
    }

    /// Read the whole array and compare.
    pub fn look_at_all(&mut self, world: &mut World) {
        let mut at = 0;
        while at < self.capacity() {
            let end = (at + LOOK_BYTES).min(self.capacity());
            self.ask(world, RequestKind::Read, at..end);
            at = end;
        }
        self.drain(world);
    }

    /// Cut the power: the results of the requests under way are lost.
    pub fn cut_power(&mut self, world: &mut World) {
        self.hear(world);
        world.cut_power();
        self.asked.clear();
        self.versions.cut();
    }

    /// Lose the results of the requests under way. The caller tells [`HostSession::versions_mut`] the effect on the data.
    pub fn forget(&mut self) {
        self.asked.clear();
    }

    /// Kill the service; the drives keep their power.
    pub fn kill(&mut self, world: &mut World) {
        self.hear(world);
        world.kill();
        self.asked.clear();
        self.versions.cut();
    }
}
