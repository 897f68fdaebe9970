//! The possible content of each byte of an array: the versions that writes left or may have left there.
//!
//! A write begins and ends at points of one order. V is *under* W when V ended before W began and W ended well:
//! then W's bytes hide V's. Between the two a byte may hold either, so
//!
//! - a read sees, in each sector, one version that was not under another one that had ended before the read began;
//! - a power cut leaves, in each sector, one version that was not under a *durable* one: flushed, or forced.
//!
//! Versions of a cut are alternatives; the first read decides, and later reads must agree with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::content::Content;
use openraid_units::SECTOR_BYTES;

/// Names a version.
pub type VersionId = u32;

#[derive(Clone, Debug)]
struct Version {
    content: Content,
    /// The written range; only for complaints.
    range: Range<u64>,
    begun: u64,
    ended: Option<u64>,
    /// It ended well: its data is there.
    sure: bool,
    /// A power cut cannot undo it.
    durable: bool,
    /// It was not durable when the power went: it is there or not.
    left: bool,
    /// The version that a write made: after a power cut its remains get another name.
    origin: VersionId,
}

/// A stretch of bytes with one history.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Extent {
    end: u64,
    /// Rising, so that equal histories are equal lists.
    versions: Vec<VersionId>,
}

/// A read that found what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// First byte of the sector, or the part of it that was read.
    pub offset: u64,
    /// The finding, with the whole record of that sector: for readers of this file.
    pub text: String,
    /// The first bytes that were found.
    pub head: Vec<u8>,
    /// Whose they are, if anybody ever wrote them there: the last one.
    pub whose: Option<Seen>,
    /// The versions that might have been found.
    pub expected: Vec<Seen>,
}

/// A version in a public form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Its first name: [`Versions::begin_write`] gave it.
    pub origin: VersionId,
    /// Are its bytes zeroes?
    pub zeroes: bool,
    /// Is anything right?
    pub anything: bool,
    /// Why it may be there, or must be.
    pub standing: Standing,
}

/// The standing of a version in a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// One that comes may undo it, or it is not known to be there.
    Open,
    /// None may undo it: it was answered, and flushed or forced.
    Promised,
    /// One that came has left it or not.
    Left,
}

/// The histories of all bytes of an array.
#[derive(Clone, Debug)]
pub struct Versions {
    capacity: u64,
    clock: u64,
    versions: Vec<Version>,
    extents: BTreeMap<u64, Extent>,
    /// When the reads that have not ended began.
    reads: BTreeSet<u64>,
    /// Replied, not durable.
    undurable: Vec<VersionId>,
    /// Every end makes durable: for runs without power cuts, and cheaper.
    durable_on_end: bool,
    /// May a read decide what a power cut has left?
    decides: bool,
    /// Sectors read that only [`Content::Beyond`] explains.
    beyond: u64,
}

impl Versions {
    /// All `capacity` bytes hold `initial`.
    #[must_use]
    pub fn new(capacity: u64, initial: Content, durable_on_end: bool) -> Self {
        let first = Version {
            content: initial,
            range: 0..capacity,
            begun: 0,
            ended: Some(0),
            sure: true,
            durable: true,
            left: false,
            origin: 0,
        };
        Self {
            capacity,
            clock: 1,
            versions: vec![first],
            extents: BTreeMap::from([(0, Extent { end: capacity, versions: vec![0] })]),
            reads: BTreeSet::new(),
            undurable: Vec::new(),
            durable_on_end,
            decides: true,
            beyond: 0,
        }
    }

    /// From now on reads decide what a cut has left, or do not: copies that are not yet made equal may be read one
    /// after the other.
    pub fn set_decides(&mut self, decides: bool) {
        self.decides = decides;
    }

    /// This range has no promised content any more, until it is written again.
    pub fn give_up(&mut self, range: Range<u64>) {
        let id = self.begin_write(range.clone(), Content::Beyond);
        self.end_write(id, range, false, true);
    }

    /// Ranges being written, or possibly not durable, in whole blocks of this many bytes. A lost member takes its part of
    /// them along if only the parity of the rest was logged.
    #[must_use]
    pub fn in_flight(&self, block: u64) -> Vec<Range<u64>> {
        let known: BTreeSet<VersionId> =
            self.extents.values().flat_map(|extent| extent.versions.iter().copied()).collect();
        let open = known.into_iter().map(|id| self.version(id)).filter(|v| v.ended.is_none() || !v.durable);
        let blocks =
            |range: &Range<u64>| range.start / block * block..range.end.next_multiple_of(block).min(self.capacity);
        open.map(|version| blocks(&version.range)).collect()
    }

    /// The name of the next write: lower ones began before now.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a run has fewer than 2^32 writes
    pub fn next_id(&self) -> VersionId {
        self.versions.len() as VersionId
    }

    /// Sectors read so far that hold what was not promised any more.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The size of the array in bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn version(&self, id: VersionId) -> &Version {
        &self.versions[id as usize]
    }

    /// Is `lower` under `upper`?
    fn is_under(&self, lower: VersionId, upper: VersionId) -> bool {
        let (lower, upper) = (self.version(lower), self.version(upper));
        upper.sure && lower.ended.is_some_and(|ended| ended < upper.begun)
    }

    /// Make `at` a border between extents.
    fn split(&mut self, at: u64) {
        if at == 0 || at >= self.capacity || self.extents.contains_key(&at) {
            return;
        }
        let (_, extent) = self.extents.range_mut(..at).next_back().expect("extents cover the array");
        let right = extent.clone();
        extent.end = at;
        self.extents.insert(at, right);
    }

    fn starts(&mut self, range: &Range<u64>) -> Vec<u64> {
        assert!(range.start <= range.end && range.end <= self.capacity, "outside the array: {range:?}");
        if range.is_empty() {
            return Vec::new();
        }
        self.split(range.start);
        self.split(range.end);
        self.extents.range(range.clone()).map(|(start, _)| *start).collect()
    }

    /// A write of `content` begins.
    pub fn begin_write(&mut self, range: Range<u64>, content: Content) -> VersionId {
        let (begun, id) = (self.tick(), self.next_id());
        let own = range.clone();
        let (ended, sure, durable, left) = (None, false, false, false);
        self.versions.push(Version { content, range: own, begun, ended, sure, durable, left, origin: id });
        for start in self.starts(&range) {
            self.extents.get_mut(&start).expect("a border").versions.push(id);
        }
        id
    }

    /// A write ends. If it is not `sure` (it failed, or it was a trim) it may have happened or not.
    pub fn end_write(&mut self, id: VersionId, range: Range<u64>, sure: bool, durable: bool) {
        let now = self.tick();
        let durable = durable || self.durable_on_end;
        let version = &mut self.versions[id as usize];
        version.ended = Some(now);
        version.sure = sure;
        version.durable = durable;
        if !durable {
            self.undurable.push(id);
        }
        self.prune(range);
    }

    /// Forget versions that no read can see any more.
    fn prune(&mut self, range: Range<u64>) {
        let oldest_read = self.reads.first().copied().unwrap_or(u64::MAX);
        for start in self.starts(&range) {
            let extent = self.extents.remove(&start).expect("a border");
            let hidden = |lower: &VersionId| {
                extent.versions.iter().any(|upper| {
                    let by = self.version(*upper);
                    by.durable && by.ended.is_some_and(|ended| ended < oldest_read) && self.is_under(*lower, *upper)
                })
            };
            let versions = extent.versions.iter().copied().filter(|id| !hidden(id)).collect();
            self.extents.insert(start, Extent { end: extent.end, versions });
        }
        self.merge(range);
    }

    /// Neighbours with one history become one extent again.
    fn merge(&mut self, range: Range<u64>) {
        let first = self.extents.range(..range.start).next_back().map_or(0, |(start, _)| *start);
        let starts: Vec<u64> = self.extents.range(first..=range.end).map(|(start, _)| *start).collect();
        let mut left = first;
        for right in starts {
            if right == left {
                continue;
            }
            if self.extents[&left].versions == self.extents[&right].versions {
                let gone = self.extents.remove(&right).expect("a border");
                self.extents.get_mut(&left).expect("a border").end = gone.end;
            } else {
                left = right;
            }
        }
    }

    /// A read begins; returns its name.
    pub fn begin_read(&mut self) -> u64 {
        let begun = self.tick();
        self.reads.insert(begun);
        begun
    }

    /// A read ends without bytes.
    pub fn drop_read(&mut self, begun: u64) {
        self.reads.remove(&begun);
    }

    /// A read that began at `begun` ends with these bytes from `offset` on.
    ///
    /// # Errors
    /// The first sector that holds what no version explains.
    pub fn end_read(&mut self, begun: u64, offset: u64, bytes: &[u8]) -> Result<(), Mismatch> {
        self.reads.remove(&begun);
        let range = offset..offset + bytes.len() as u64;
        let mut at = range.start;
        while at < range.end {
            let (start, extent) = self.extents.range(..=at).next_back().expect("extents cover the array");
            debug_assert!(*start <= at && at < extent.end);
            let stop = extent.end.min(range.end);
            let visible = self.visible(&extent.versions, begun);
            let settled = self.decides && self.is_settled(&visible, begun);
            if let [only] = visible[..] {
                // The common case: everything in one look.
                let here = &bytes[index(at - offset)..index(stop - offset)];
                if self.version(only).content.matches(at, here) {
                    self.count_beyond(&[only], stop - at);
                    at = stop;
                    continue;
                }
            }
            let stop = stop.min((at / SECTOR_BYTES + 1) * SECTOR_BYTES);
            let here = &bytes[index(at - offset)..index(stop - offset)];
            let matching: Vec<VersionId> =
                visible.iter().copied().filter(|id| self.version(*id).content.matches(at, here)).collect();
            if matching.is_empty() {
                return Err(self.mismatch(at, here, &visible));
            }
            self.count_beyond(&matching, stop - at);
            if settled && matching.len() < visible.len() {
                self.decide(at..stop, &visible, &matching);
            }
            at = stop;
        }
        self.merge(range);
        Ok(())
    }

    fn count_beyond(&mut self, matching: &[VersionId], bytes: u64) {
        if matching.iter().all(|id| matches!(self.version(*id).content, Content::Beyond)) {
            self.beyond += bytes.div_ceil(SECTOR_BYTES);
        }
    }

    fn visible(&self, versions: &[VersionId], begun: u64) -> Vec<VersionId> {
        let hidden = |lower: &VersionId| {
            versions.iter().any(|upper| {
                self.version(*upper).ended.is_some_and(|ended| ended < begun) && self.is_under(*lower, *upper)
            })
        };
        versions.iter().copied().filter(|id| !hidden(id)).collect()
    }

    /// May a read decide between these for all time? Not if an older read may still see a discarded one.
    fn is_settled(&self, visible: &[VersionId], begun: u64) -> bool {
        let begun = self.reads.first().map_or(begun, |oldest| begun.min(*oldest));
        visible.iter().all(|id| {
            let version = self.version(*id);
            version.durable && version.ended.is_some_and(|ended| ended < begun)
        })
    }

    /// The read saw one of `matching`: the others of `visible` are not there.
    fn decide(&mut self, range: Range<u64>, visible: &[VersionId], matching: &[VersionId]) {
        for start in self.starts(&range) {
            let extent = self.extents.get_mut(&start).expect("a border");
            extent.versions.retain(|id| matching.contains(id) || !visible.contains(id));
        }
    }

    fn mismatch(&self, at: u64, found: &[u8], visible: &[VersionId]) -> Mismatch {
        let expected: Vec<_> = visible.iter().map(|id| self.describe(*id)).collect();
        let near = at / SECTOR_BYTES * SECTOR_BYTES;
        let near = near..near + SECTOR_BYTES;
        let history: Vec<_> = (0..self.versions.len())
            .filter_map(|id| u32::try_from(id).ok())
            .filter(|id| self.version(*id).range.start < near.end && near.start < self.version(*id).range.end)
            .map(|id| self.describe(id))
            .collect();
        let whose = |id: &VersionId| {
            let content = &self.version(*id).content;
            !matches!(content, Content::Anything | Content::Beyond) && content.matches(at, found)
        };
        let whose = (0..self.versions.len()).filter_map(|id| u32::try_from(id).ok()).rev().find(whose);
        let head = &found[..found.len().min(16)];
        let text = format!(
            "byte {at} and {} more: found {head:02x?}, as left by {:?}; expected one of {expected:#?}; the sector's history: {history:#?}",
            found.len() - 1,
            whose.map(|id| self.describe(id)),
        );
        Mismatch {
            offset: at,
            text,
            head: head.to_vec(),
            whose: whose.map(|id| self.seen(id)),
            expected: visible.iter().map(|id| self.seen(*id)).collect(),
        }
    }

    fn seen(&self, id: VersionId) -> Seen {
        let Version { content, sure, durable, left, origin, .. } = self.version(id);
        Seen {
            origin: *origin,
            zeroes: matches!(content, Content::Zeroes),
            anything: matches!(content, Content::Anything | Content::Beyond),
            standing: match (*left, *sure && *durable) {
                (true, _) => Standing::Left,
                (false, true) => Standing::Promised,
                (false, false) => Standing::Open,
            },
        }
    }

    fn describe(&self, id: VersionId) -> String {
        let version = self.version(id);
        let content = match &version.content {
            Content::Image(_) => "image".to_owned(),
            other => format!("{other:?}"),
        };
        let end = version.ended.map_or("..".to_owned(), |ended| ended.to_string());
        let durable = if version.durable { " durable" } else { "" };
        let sure = if version.sure { "" } else { " unsure" };
        format!("{content} at {:?} [{}..{end}]{durable}{sure}", version.range, version.begun)
    }

    /// A flush begins; returns what [`Versions::end_flush`] wants.
    pub fn begin_flush(&mut self) -> u64 {
        self.tick()
    }

    /// A flush that began at `begun` ended well: writes answered before it are durable.
    pub fn end_flush(&mut self, begun: u64) {
        let (versions, mut covered) = (&mut self.versions, false);
        self.undurable.retain(|id| {
            let version = &mut versions[*id as usize];
            let covers = version.ended.is_some_and(|ended| ended < begun);
            version.durable |= covers;
            covered |= covers;
            !covers
        });
        if covered {
            self.prune(0..self.capacity);
        }
    }

    /// The power went: each sector that was not durable is there or not, independently.
    pub fn cut(&mut self) {
        self.fall_back(true);
    }

    /// As [`Versions::cut`], but the present content is not durable either: a part of the drives kept its power, or the
    /// lost cache was not a drive's.
    pub fn cut_in_part(&mut self) {
        self.fall_back(false);
    }

    /// The process that carried out the writes is gone. Answered writes stay as they are: on the drives, and durable
    /// only if they were flushed. Each unanswered write has happened or not.
    pub fn kill(&mut self) {
        let now = self.tick();
        self.reads.clear();
        let open = (0..self.versions.len()).filter(|id| self.versions[*id].ended.is_none());
        for id in open.collect::<Vec<_>>() {
            self.versions[id].ended = Some(now);
            if !self.durable_on_end {
                self.undurable.push(VersionId::try_from(id).expect("a run has fewer than 2^32 writes"));
            }
            self.versions[id].durable = self.durable_on_end;
        }
    }

    fn fall_back(&mut self, durable: bool) {
        let now = self.tick();
        self.reads.clear();
        self.undurable.clear();
        let mut renamed: BTreeMap<VersionId, VersionId> = BTreeMap::new();
        let starts: Vec<u64> = self.extents.keys().copied().collect();
        for start in starts {
            let extent = self.extents.remove(&start).expect("a border");
            let survives = |lower: &VersionId| {
                !extent.versions.iter().any(|upper| self.version(*upper).durable && self.is_under(*lower, *upper))
            };
            let left: Vec<VersionId> = extent.versions.iter().copied().filter(survives).collect();
            let versions = left.into_iter().map(|id| self.rename(id, now, &mut renamed)).collect();
            self.extents.insert(start, Extent { end: extent.end, versions });
        }
        if !durable {
            for id in renamed.into_values() {
                self.versions[id as usize].durable = false;
                self.undurable.push(id);
            }
        }
        self.merge(0..self.capacity);
    }

    /// The same content as an alternative of equal rank.
    #[allow(clippy::cast_possible_truncation)] // a run has fewer than 2^32 writes
    fn rename(&mut self, id: VersionId, now: u64, renamed: &mut BTreeMap<VersionId, VersionId>) -> VersionId {
        if let Some(new) = renamed.get(&id) {
            return *new;
        }
        let new = self.versions.len() as VersionId;
        let old = self.version(id).clone();
        let left = old.left || !old.durable;
        self.versions.push(Version { begun: now, ended: Some(now), sure: true, durable: true, left, ..old });
        renamed.insert(id, new);
        new
    }

    /// Is this the only possible content of the range? For tests that plant faults.
    #[must_use]
    pub fn extents(&self) -> usize {
        self.extents.len()
    }
}

#[allow(clippy::cast_possible_truncation)] // bytes of one request
fn index(len: u64) -> usize {
    len as usize
}
