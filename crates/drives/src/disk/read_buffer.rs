//! The read buffer: segments of earlier reads, and the segment that read-ahead fills.
//!
//! After a read the disk reads on while it is idle, up to a limit after the end of the host's request. The model
//! computes nothing for this until the next look-up, because the progress follows from the time.

use super::geometry::DiskGeometry;

/// Reading on: at time `from` the head was at sector `at`, whose media time is `media`.
#[derive(Clone, Copy, Debug)]
struct ReadOn {
    segment: usize,
    from: u64,
    media: u64,
    at: u64,
    limit: u64,
    /// The end of the host's last request.
    asked: u64,
    /// Whether the requests followed each other.
    stream: bool,
}

impl ReadOn {
    /// The time at which the limit is reached.
    fn until(&self, geometry: &DiskGeometry) -> u64 {
        self.from + geometry.media_end(self.limit).saturating_sub(self.media)
    }
}

/// The buffered part of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// The beginning is not buffered.
    Miss,
    /// The whole range is buffered, or will be read without a new command of the mechanism.
    Hit {
        /// The time at which the first sector is available; not before now.
        begins: u64,
        /// The time at which the whole range is available.
        ready: u64,
    },
    /// The beginning is buffered, up to this sector.
    Part {
        /// The first sector that must be read.
        from: u64,
    },
}

/// Number of distinguished regions, a power of two: many times the segments of any disk.
const REGIONS: usize = 1024;

/// The number of segments that begin in each region of the disk. A region is at least as long as a segment, so a
/// segment's content is in the region in which it begins or in the next one. Regions that are [`REGIONS`] apart count
/// as one. Most random requests are in empty regions, in which no segment need be examined.
#[derive(Clone, Debug)]
struct Regions {
    counts: Box<[u16; REGIONS]>,
    shift: u32,
}

/// The regions in which a segment with a part of a range may begin: the first region, and the number of further ones.
#[derive(Clone, Copy)]
struct Around {
    first: u64,
    more: u64,
}

impl Regions {
    fn new(segment_sectors: u64) -> Self {
        Self { counts: Box::new([0; REGIONS]), shift: segment_sectors.next_power_of_two().trailing_zeros() }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // below 2^64 by the number of regions, a power of two
    fn place(region: u64) -> usize {
        region as usize % REGIONS
    }

    /// The regions for `start..end`, which is not empty.
    #[inline]
    fn around(&self, start: u64, end: u64) -> Around {
        let first = (start >> self.shift).wrapping_sub(1);
        let more = ((end - 1) >> self.shift).wrapping_sub(first);
        Around { first, more: more.min(REGIONS as u64 - 1) }
    }

    /// Number of segments that may have a part of the range; all others certainly have none.
    #[inline]
    fn count(&self, Around { first, more }: Around) -> u32 {
        let mut count =
            u32::from(self.counts[Self::place(first)]) + u32::from(self.counts[Self::place(first.wrapping_add(1))]);
        for region in 2..=more {
            count += u32::from(self.counts[Self::place(first.wrapping_add(region))]);
        }
        count
    }

    /// Whether a segment that begins at `start` is one of these.
    #[inline]
    fn is_around(&self, start: u64, Around { first, more }: Around) -> bool {
        Self::place((start >> self.shift).wrapping_sub(first)) as u64 <= more
    }

    /// A segment changes its range from `old` to `new`.
    #[inline]
    fn change(&mut self, old: (u64, u64), new: (u64, u64)) {
        self.counts[Self::place(old.0 >> self.shift)] -= u16::from(old.0 < old.1);
        self.counts[Self::place(new.0 >> self.shift)] += u16::from(new.0 < new.1);
    }
}

/// The neighbours of a segment in the order of last use. A place of the list's own closes the ring; its neighbours are
/// the least and the most recently used segment.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    before: usize,
    after: usize,
}

/// The segments of one disk. Starts and ends are arrays, because a search goes through all of them. The list has the
/// order of their last uses.
#[derive(Clone, Debug)]
pub struct Segments {
    starts: Vec<u64>,
    ends: Vec<u64>,
    regions: Regions,
    uses: Vec<Neighbours>,
    segment_sectors: u64,
    ahead: u64,
    running: Option<ReadOn>,
    /// For each segment, the end of the host's requests in it, and the medium's time for the part that read-ahead
    /// added.
    asked: Vec<u64>,
    worked: u64,
    /// The stream that the arm visits, and the position of its reading when the arm came.
    visit: Option<Visit>,
}

/// A visit of the arm to a stream.
#[derive(Clone, Copy, Debug)]
struct Visit {
    segment: usize,
    came: u64,
}

impl Segments {
    /// Sectors of a segment. A segment also keeps some sectors that the reader has passed.
    #[must_use]
    pub const fn sectors_each(ahead: u64) -> u64 {
        ahead * 2
    }

    /// `count` segments, each of which has room for read-ahead to `ahead` sectors after the end of a request. Read-ahead
    /// is on or off.
    #[must_use]
    pub fn new(count: usize, ahead: u64, reads_ahead: bool) -> Self {
        let segment_sectors = Self::sectors_each(ahead);
        let places = count + 1;
        Self {
            starts: vec![0; count],
            ends: vec![0; count],
            asked: vec![0; count],
            worked: 0,
            regions: Regions::new(segment_sectors),
            uses: (0..places).map(|n| Neighbours { before: (n + count) % places, after: (n + 1) % places }).collect(),
            segment_sectors,
            ahead: if reads_ahead { ahead } else { 0 },
            running: None,
            visit: None,
        }
    }

    /// The buffered part of a range. At this time the head is at rotation `rotation` (media time modulo a turn).
    pub fn lookup(&mut self, geometry: &DiskGeometry, now: u64, rotation: u64, lba: u64, len: u64) -> Lookup {
        let end = lba + len;
        if let Some(running) = self.running {
            // Sectors that read-ahead reaches only after a turn or more are sought, because the head then gets there
            // sooner.
            let is_near = lba <= running.asked || {
                let soon = running.media + now.saturating_sub(running.from) + u64::from(geometry.turn());
                geometry.place(lba).media <= soon
            };
            if lba >= self.starts[running.segment] && lba <= running.limit && is_near {
                return self.lookup_running(geometry, running, now, rotation, lba, end);
            }
        }
        let Some(index) = self.find(lba, lba + 1, |start, known| (start <= lba) & (lba < known)) else {
            return Lookup::Miss;
        };
        self.touch(index);
        let known = self.ends[index];
        self.got(geometry, index, end.min(known));
        if end <= known {
            Lookup::Hit { begins: now, ready: now }
        } else {
            Lookup::Part { from: known }
        }
    }

    fn lookup_running(
        &mut self,
        geometry: &DiskGeometry,
        mut running: ReadOn,
        now: u64,
        rotation: u64,
        lba: u64,
        end: u64,
    ) -> Lookup {
        let stopped = now >= running.until(geometry);
        if stopped && end > running.limit {
            self.got(geometry, running.segment, running.limit);
            return if lba < running.limit { Lookup::Part { from: running.limit } } else { Lookup::Miss };
        }
        self.touch(running.segment);
        self.got(geometry, running.segment, end);
        let there = |end| if end <= running.at { now } else { running.from + geometry.media_end(end) - running.media };
        let (begins, ready) = (there(lba + 1).max(now), there(end).max(now));
        let wanted = (end + self.ahead).min(geometry.sectors());
        if stopped {
            // Reading on resumes when half of its lead is used up, and waits until its position passes the head.
            if running.limit < geometry.sectors() && running.limit - end < self.ahead / 2 {
                let turn = u64::from(geometry.turn());
                let media = geometry.place(running.limit).media;
                let wait = (media % turn + turn - rotation % turn) % turn;
                running = ReadOn { from: now + wait, media, at: running.limit, limit: wanted, ..running };
            }
        } else {
            running.limit = running.limit.max(wanted);
        }
        running.asked = running.asked.max(end);
        running.stream = true;
        self.running = Some(running);
        Lookup::Hit { begins, ready }
    }

    /// The first segment for which `what` is true. `what` must be true only of segments with a part of `from..to`. Most
    /// often it is true of none.
    #[inline]
    fn find(&self, from: u64, to: u64, what: impl Fn(u64, u64) -> bool) -> Option<usize> {
        if self.regions.count(self.regions.around(from, to)) == 0 {
            return None;
        }
        self.starts.iter().zip(&self.ends).position(|(start, end)| what(*start, *end))
    }

    /// Set the range of a segment.
    #[inline]
    fn put(&mut self, index: usize, start: u64, end: u64) {
        self.regions.change((self.starts[index], self.ends[index]), (start, end));
        (self.starts[index], self.ends[index]) = (start, end);
    }

    /// The least recently used segment; of segments that were never used, the first.
    fn oldest(&self) -> usize {
        self.uses[self.starts.len()].after
    }

    /// Record that the segment was used now.
    fn touch(&mut self, index: usize) {
        let head = self.starts.len();
        let Neighbours { before, after } = self.uses[index];
        (self.uses[before].after, self.uses[after].before) = (after, before);
        let last = self.uses[head].before;
        self.uses[index] = Neighbours { before: last, after: head };
        (self.uses[last].after, self.uses[head].before) = (index, index);
    }

    /// The sectors from `start` to `end` were read. At `now` the head is just after them, at media time `media`, and
    /// read-ahead begins.
    pub fn filled(&mut self, geometry: &DiskGeometry, now: u64, media: u64, start: u64, end: u64) {
        let behind = |begin, known| (known == start) & (begin < start);
        let known = if start == 0 { None } else { self.find(start - 1, start, behind) };
        let index = known.unwrap_or_else(|| self.oldest());
        let begin = if known.is_some() { self.starts[index] } else { start };
        self.put(index, begin.max(end.saturating_sub(self.segment_sectors)), end);
        self.asked[index] = end;
        self.touch(index);
        let stays = self.visit.filter(|visit| visit.segment == index && known.is_some());
        self.visit = Some(stays.unwrap_or(Visit { segment: index, came: end }));
        let limit = (end + self.ahead).min(geometry.sectors());
        if limit > end {
            let stream = known.is_some();
            self.running = Some(ReadOn { segment: index, from: now, media, at: end, limit, asked: end, stream });
        }
    }

    /// The arm has left the stream.
    pub fn leave(&mut self) {
        self.visit = None;
    }

    /// The time at which the arm may leave a stream. Read-ahead continues until it is `least` sectors past the position
    /// at which the arm came. This distance counts once for each visit. If it counted from the host's last request, a
    /// reader with continuous requests would keep the arm for ever.
    #[must_use]
    pub fn hold(&self, geometry: &DiskGeometry, least: u64) -> Option<u64> {
        let running = self.running.filter(|running| running.stream)?;
        // Requests that were answered in advance from this read-ahead are read first.
        let end = (self.visit?.came + least).max(running.asked).min(running.limit);
        // The times of its beginning and of its length are rounded down.
        Some(running.from + geometry.media_end(end).saturating_sub(running.media) + 2)
    }

    /// Whether a sector is past the end of the visit.
    #[must_use]
    pub fn is_past_visit(&self, lba: u64, least: u64) -> bool {
        self.visit.is_some_and(|visit| lba >= visit.came + least)
    }

    /// Whether reading on has yet to reach the end of a range.
    #[must_use]
    pub fn is_ahead(&self, geometry: &DiskGeometry, now: u64, end: u64) -> bool {
        self.position(geometry, now).is_some_and(|reached| end > reached)
    }

    /// Whether a range begins at the end of the continued stream, or in it.
    #[must_use]
    pub fn continues(&self, lba: u64) -> bool {
        self.running.is_some_and(|running| lba >= self.starts[running.segment] && lba <= running.limit)
    }

    /// A waiting command gets the sectors up to `end` that reading on has read.
    pub fn reached_by(&mut self, geometry: &DiskGeometry, end: u64) {
        if let Some(segment) = self.running.map(|running| running.segment) {
            self.got(geometry, segment, end);
        }
    }

    /// The position of reading on, if it continues.
    #[must_use]
    pub fn position(&self, geometry: &DiskGeometry, now: u64) -> Option<u64> {
        let running = self.running.as_ref()?;
        if now <= running.from {
            // Reading on is most often stopped where it began: the head is just after the read sectors, and no farther.
            debug_assert!(geometry.reached(running.media) <= running.at, "nothing is read before its time");
            return Some(running.at);
        }
        Some(geometry.reached(running.media + now.saturating_sub(running.from)).clamp(running.at, running.limit))
    }

    /// The medium's time for read-ahead that the host requested later. A request counts at once, even if its sectors
    /// are still to be read. Read-ahead that was never requested does not count.
    #[must_use]
    pub const fn worked(&self) -> u64 {
        self.worked
    }

    /// The host gets a segment's sectors up to `end`.
    fn got(&mut self, geometry: &DiskGeometry, index: usize, end: u64) {
        let before = self.asked[index];
        if end > before {
            self.worked += geometry.media_end(end) - geometry.media_end(before);
            self.asked[index] = end;
        }
    }

    /// End read-ahead, because the mechanism is needed elsewhere. Returns its position.
    pub fn stop(&mut self, geometry: &DiskGeometry, now: u64) -> Option<u64> {
        let at = self.position(geometry, now)?;
        let index = self.running.take()?.segment;
        self.put(index, self.starts[index].max(at.saturating_sub(self.segment_sectors)), at);
        Some(at)
    }

    /// A range is written: remove its old content from the buffer.
    pub fn forget(&mut self, geometry: &DiskGeometry, now: u64, lba: u64, len: u64) {
        let end = lba + len;
        if self.running.is_some_and(|running| lba < running.limit && end > self.starts[running.segment]) {
            self.stop(geometry, now);
        }
        // The most recently used segment is examined first: it is most often the one, and the only one of its region.
        let around = self.regions.around(lba, end);
        let mut left = self.regions.count(around);
        let mut index = self.starts.len();
        while left > 0 {
            index = self.uses[index].before;
            let (start, known) = (self.starts[index], self.ends[index]);
            left -= u32::from(start < known && self.regions.is_around(start, around));
            if (lba < known) & (end > start) {
                let kept = if lba <= start { (0, 0) } else { (start, lba) };
                self.put(index, kept.0, kept.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use openraid_models::{DriveKind, Library};

    /// Compared with a plain search through all segments.
    #[test]
    fn written_sectors_leave_their_segment_and_all_others_stay() {
        let drive = Library::builtin().drive("exos_x18_18tb").unwrap().clone();
        let DriveKind::Disk(disk) = &drive.kind else { panic!("it is a disk") };
        let geometry = DiskGeometry::new(disk, drive.capacity.value);
        let (ahead, mut random) = (512, Random::new(6));
        let mut segments = Segments::new(32, ahead, true);
        let (region, mut now, mut cut, mut hit) = (2 * ahead, 0, 0, 0);
        for _ in 0..50_000 {
            now += random.below(1_000_000);
            // A few adjacent regions, and others at such a distance that they count as the same.
            let lba = random.below(3 * region) + random.below(3) * REGIONS as u64 * region;
            let len = if random.chance(1, 50) { random.between(1, 4 * region) } else { random.between(1, 64) };
            let whole = |(start, end): (u64, u64)| lba < end && lba + len > start && start < end;
            if random.chance(1, 2) {
                segments.stop(&geometry, now);
                segments.filled(&geometry, now, geometry.media_end(lba + len), lba, lba + len);
                hit += u32::from(segments.lookup(&geometry, now, 0, lba, 1) != Lookup::Miss);
            } else {
                segments.stop(&geometry, now);
                let before: Vec<_> = segments.starts.iter().copied().zip(segments.ends.iter().copied()).collect();
                segments.forget(&geometry, now, lba, len);
                for (place, old) in before.into_iter().enumerate() {
                    let new = (segments.starts[place], segments.ends[place]);
                    assert!(!whole(new), "{lba} and {len} more are in {new:?}");
                    assert!(whole(old) || new == old, "{old:?} had nothing of {lba} and {len} more");
                    cut += u32::from(new != old);
                }
            }
            let all: u32 = segments.regions.counts.iter().map(|count| u32::from(*count)).sum();
            let there = segments.starts.iter().zip(&segments.ends).filter(|(start, end)| start < end).count();
            assert_eq!(all as usize, there);
        }
        assert!(cut > 5000 && hit > 20_000, "{cut} {hit}");
    }
}
