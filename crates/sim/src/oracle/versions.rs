//! The possible content of each byte of an array: the versions that writes have left or may have left.
//!
//! Writes begin and end at points of one order. V is *under* W if V ended before W began, and W ended with success:
//! then W's bytes hide V's. If neither version is under the other, a byte may have either of them, so
//!
//! - a read sees, in each sector, one version that was not under another one that had ended before the read began;
//! - a power cut leaves, in each sector, one version that was not under a *durable* one: flushed, or with FUA.
//!
//! Versions left by a cut are alternatives. The first read decides, and later reads must agree with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::content::Content;
use openraid_units::SECTOR_BYTES;

/// Identifies a version.
pub type VersionId = u32;

#[derive(Clone, Debug)]
struct Version {
    content: Content,
    /// The written range, for reports only.
    range: Range<u64>,
    begun: u64,
    ended: Option<u64>,
    /// The write ended with success, so its data is on the array.
    sure: bool,
    /// A power cut cannot undo the version.
    durable: bool,
    /// The version was not durable at a power cut: it is kept or lost.
    left: bool,
    /// The version of the write. After a power cut, its remains get another identifier.
    origin: VersionId,
}

/// A range of bytes with one history.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Extent {
    end: u64,
    /// In ascending order, so that equal histories are equal lists.
    versions: Vec<VersionId>,
}

/// A read with a wrong result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// First byte of the sector, or of the part that was read.
    pub offset: u64,
    /// The result, with the whole record of that sector, for readers of this file.
    pub text: String,
    /// The first bytes that the read found.
    pub head: Vec<u8>,
    /// The latest version with these bytes at this place, if there ever was one.
    pub whose: Option<VersionView>,
    /// The versions that the read could have found.
    pub expected: Vec<VersionView>,
}

/// A version in a public form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionView {
    /// Its first identifier, from [`Versions::begin_write`].
    pub origin: VersionId,
    /// Whether its bytes are zeroes.
    pub zeroes: bool,
    /// Whether any content is right.
    pub anything: bool,
    /// The reason for which it may or must be present.
    pub standing: VersionStanding,
}

/// The standing of a version in a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionStanding {
    /// A power cut may undo the version, or the version may not be present.
    Open,
    /// No power cut may undo the version: it was answered, and flushed or written with FUA.
    Promised,
    /// A power cut has kept or lost the version.
    Left,
}

/// The histories of all bytes of an array.
#[derive(Clone, Debug)]
pub struct Versions {
    capacity: u64,
    clock: u64,
    versions: Vec<Version>,
    extents: BTreeMap<u64, Extent>,
    /// The beginnings of the reads that have not ended.
    reads: BTreeSet<u64>,
    /// Answered versions that are not durable.
    undurable: Vec<VersionId>,
    /// Every end of a write makes it durable: for runs without power cuts, and cheaper.
    durable_on_end: bool,
    /// Whether a read decides what a power cut has left.
    decides: bool,
    /// Number of sectors read that only [`Content::Beyond`] explains.
    beyond: u64,
}

impl Versions {
    /// The initial state: all `capacity` bytes contain `initial`.
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

    /// Set whether reads decide what a cut has left. They do not if copies that are not yet equal may be read in turn.
    pub fn set_decides(&mut self, decides: bool) {
        self.decides = decides;
    }

    /// Drop the promise for this range until it is written again.
    pub fn give_up(&mut self, range: Range<u64>) {
        let id = self.begin_write(range.clone(), Content::Beyond);
        self.end_write(id, range, false, true);
    }

    /// Ranges that are being written or may not be durable, in whole blocks of `block` bytes. If only the parity of the
    /// other data was logged, a lost member loses its part of these ranges.
    #[must_use]
    pub fn in_flight(&self, block: u64) -> Vec<Range<u64>> {
        let known: BTreeSet<VersionId> =
            self.extents.values().flat_map(|extent| extent.versions.iter().copied()).collect();
        let open = known.into_iter().map(|id| self.version(id)).filter(|v| v.ended.is_none() || !v.durable);
        let blocks =
            |range: &Range<u64>| range.start / block * block..range.end.next_multiple_of(block).min(self.capacity);
        open.map(|version| blocks(&version.range)).collect()
    }

    /// The identifier of the next write. Writes with lower ones have begun before now.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a run has fewer than 2^32 writes
    pub fn next_id(&self) -> VersionId {
        self.versions.len() as VersionId
    }

    /// Number of sectors read so far whose content is no longer promised.
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

    /// The latest beginning of the writes with success among `versions` for which `hides` holds. A version is under one of them just
    /// if it is under this one.
    fn newest_begin(&self, versions: &[VersionId], hides: impl Fn(&Version) -> bool) -> u64 {
        let hiding = versions.iter().map(|id| self.version(*id)).filter(|upper| upper.sure && hides(upper));
        hiding.map(|upper| upper.begun).max().unwrap_or(0)
    }

    /// Whether a version is under a write with success that began at `begun`.
    fn is_under(&self, lower: VersionId, begun: u64) -> bool {
        self.version(lower).ended.is_some_and(|ended| ended < begun)
    }

    /// Make `at` a boundary between extents.
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

    /// Begin a write of `content`.
    pub fn begin_write(&mut self, range: Range<u64>, content: Content) -> VersionId {
        let (begun, id) = (self.tick(), self.next_id());
        let range_of_version = range.clone();
        let (ended, sure, durable, left) = (None, false, false, false);
        self.versions.push(Version { content, range: range_of_version, begun, ended, sure, durable, left, origin: id });
        for start in self.starts(&range) {
            self.extents.get_mut(&start).expect("a border").versions.push(id);
        }
        id
    }

    /// End a write. If it is not `sure` (it failed, or it was a trim), it may have happened or not.
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

    /// Remove versions that no read can see any more.
    fn prune(&mut self, range: Range<u64>) {
        let oldest_read = self.reads.first().copied().unwrap_or(u64::MAX);
        for start in self.starts(&range) {
            let mut extent = self.extents.remove(&start).expect("a border");
            let hides = |upper: &Version| upper.durable && upper.ended.is_some_and(|ended| ended < oldest_read);
            let newest = self.newest_begin(&extent.versions, hides);
            extent.versions.retain(|id| !self.is_under(*id, newest));
            self.extents.insert(start, extent);
        }
        self.merge(range);
    }

    /// Merge adjacent extents with one history.
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

    /// The array has grown to `capacity` bytes, which a power cut cannot undo. The new ones have this content.
    pub fn grow(&mut self, capacity: u64, fresh: Content) {
        let (before, origin) = (self.capacity, self.next_id());
        let version = Version {
            content: fresh,
            range: before..capacity,
            begun: 0,
            ended: Some(0),
            sure: true,
            durable: true,
            left: false,
            origin,
        };
        self.versions.push(version);
        self.extents.insert(before, Extent { end: capacity, versions: vec![origin] });
        self.capacity = capacity;
    }

    /// The array ends at `capacity` bytes from now on, and no write beyond that is under way.
    ///
    /// # Panics
    /// A write beyond that is under way.
    pub fn shrink(&mut self, capacity: u64) {
        self.split(capacity);
        drop(self.extents.split_off(&capacity));
        for version in &mut self.versions {
            assert!(version.ended.is_some() || version.range.end <= capacity, "it is under way: {:?}", version.range);
            version.range = version.range.start.min(capacity)..version.range.end.min(capacity);
        }
        self.capacity = capacity;
    }

    /// Begin a read. Returns its identifier.
    pub fn begin_read(&mut self) -> u64 {
        let begun = self.tick();
        self.reads.insert(begun);
        begun
    }

    /// End a read without bytes.
    pub fn drop_read(&mut self, begun: u64) {
        self.reads.remove(&begun);
    }

    /// End a read that began at `begun`, with these bytes from `offset`.
    ///
    /// # Errors
    /// The first sector whose content no version explains.
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
                // The common case: the whole part in one comparison.
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
        let newest = self.newest_begin(versions, |upper| upper.ended.is_some_and(|ended| ended < begun));
        versions.iter().copied().filter(|id| !self.is_under(*id, newest)).collect()
    }

    /// Whether a read may decide between these versions finally. It may not if an older read may still see a discarded
    /// one.
    fn is_settled(&self, visible: &[VersionId], begun: u64) -> bool {
        let begun = self.reads.first().map_or(begun, |oldest| begun.min(*oldest));
        visible.iter().all(|id| {
            let version = self.version(*id);
            version.durable && version.ended.is_some_and(|ended| ended < begun)
        })
    }

    /// The read saw one of `matching`, so the other versions of `visible` are not present.
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

    fn seen(&self, id: VersionId) -> VersionView {
        let Version { content, sure, durable, left, origin, .. } = self.version(id);
        VersionView {
            origin: *origin,
            zeroes: matches!(content, Content::Zeroes),
            anything: matches!(content, Content::Anything | Content::Beyond),
            standing: match (*left, *sure && *durable) {
                (true, _) => VersionStanding::Left,
                (false, true) => VersionStanding::Promised,
                (false, false) => VersionStanding::Open,
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

    /// Begin a flush. Returns the value for [`Versions::end_flush`].
    pub fn begin_flush(&mut self) -> u64 {
        self.tick()
    }

    /// End a flush that began at `begun` with success: writes answered before its beginning are durable.
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

    /// Cut the power: each sector that was not durable is kept or lost, independently.
    pub fn cut(&mut self) {
        self.fall_back(true);
    }

    /// Like [`Versions::cut`], but the present content is not durable either, because a part of the drives kept its
    /// power, or the lost cache was not a drive's.
    pub fn cut_in_part(&mut self) {
        self.fall_back(false);
    }

    /// Kill the process that carried out the writes. Answered writes are on the drives, but durable only if they were
    /// flushed. Each unanswered write has happened or not.
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
            let newest = self.newest_begin(&extent.versions, |upper| upper.durable);
            let left: Vec<VersionId> =
                extent.versions.iter().copied().filter(|id| !self.is_under(*id, newest)).collect();
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

    /// The same content as another alternative.
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

    /// Number of extents, for tests.
    #[must_use]
    pub fn extents(&self) -> usize {
        self.extents.len()
    }
}

#[allow(clippy::cast_possible_truncation)] // bytes of one request
fn index(len: u64) -> usize {
    len as usize
}
