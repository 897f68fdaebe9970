//! The read buffer: segments of what was read, and the one that is being read on into.
//!
//! Behind a read the disk reads on while it has nothing else to do, up to a limit behind what the host has asked for.
//! Nothing is computed for that until somebody asks: how far it has come follows from the time.

use super::geometry::Geometry;

/// A stretch of sectors in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

/// Reading on: at time `from` the head was at media time `media`, which is sector `at`.
#[derive(Clone, Copy, Debug)]
struct Running {
    segment: usize,
    from: u64,
    media: u64,
    at: u64,
    limit: u64,
    /// When the limit is reached.
    until: u64,
}

/// What the buffer knows about a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// Nothing of its beginning.
    Miss,
    /// All of it is there at this time.
    Hit {
        /// Not before now.
        ready: u64,
    },
    /// Its beginning, up to this sector.
    Part {
        /// The first sector that is to be read.
        from: u64,
    },
}

/// The segments of one disk.
#[derive(Clone, Debug)]
pub struct Segments {
    segments: Vec<Segment>,
    segment_sectors: u64,
    ahead: u64,
    running: Option<Running>,
    clock: u64,
}

impl Segments {
    /// `count` segments; reading on stops `ahead` sectors behind what was asked for.
    #[must_use]
    pub fn new(count: usize, ahead: u64) -> Self {
        // A segment also keeps some of what is behind the reader.
        let segment_sectors = ahead * 2;
        Self { segments: vec![Segment::default(); count], segment_sectors, ahead, running: None, clock: 0 }
    }

    /// What is there of a range, at a time at which the head is at rotation `rotation` (media time modulo a turn).
    pub fn lookup(&mut self, geometry: &Geometry, now: u64, rotation: u64, lba: u64, len: u64) -> Lookup {
        let end = lba + len;
        for index in 0..self.segments.len() {
            let segment = self.segments[index];
            if lba < segment.start {
                continue;
            }
            match self.running {
                Some(running) if running.segment == index && lba <= running.limit && segment.end > segment.start => {
                    return self.lookup_running(geometry, running, now, rotation, lba, end);
                }
                _ if lba < segment.end => {
                    self.touch(index);
                    return if end <= segment.end {
                        Lookup::Hit { ready: now }
                    } else {
                        Lookup::Part { from: segment.end }
                    };
                }
                _ => {}
            }
        }
        Lookup::Miss
    }

    fn lookup_running(
        &mut self,
        geometry: &Geometry,
        mut running: Running,
        now: u64,
        rotation: u64,
        lba: u64,
        end: u64,
    ) -> Lookup {
        let stopped = now >= running.until;
        if stopped && end > running.limit {
            return if lba < running.limit { Lookup::Part { from: running.limit } } else { Lookup::Miss };
        }
        self.touch(running.segment);
        let ready = if end <= running.at { now } else { running.from + geometry.media_end(end) - running.media };
        let wanted = (end + self.ahead).min(geometry.sectors());
        if stopped {
            // It goes on when half of what it was ahead is used up, with a wait for its place to come round.
            if running.limit < geometry.sectors() && running.limit - end < self.ahead / 2 {
                let turn = u64::from(geometry.turn());
                let media = geometry.place(running.limit).media;
                let wait = (media % turn + turn - rotation % turn) % turn;
                running = Running { from: now + wait, media, at: running.limit, ..running };
                self.run_to(geometry, running, wanted);
            }
        } else if wanted > running.limit {
            self.run_to(geometry, running, wanted);
        }
        Lookup::Hit { ready: ready.max(now) }
    }

    fn run_to(&mut self, geometry: &Geometry, mut running: Running, limit: u64) {
        running.limit = limit;
        running.until = running.from + geometry.media_end(limit).saturating_sub(running.media);
        self.running = Some(running);
    }

    fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.segments[index].used = self.clock;
    }

    /// Sectors up to `end`, from `start` on, were read; at `now` the head is behind them, and reading on begins.
    /// True where they continue what was there.
    pub fn filled(&mut self, geometry: &Geometry, now: u64, start: u64, end: u64) -> bool {
        let follows = |segment: &Segment| segment.start < start && segment.end == start;
        let oldest = |segments: &[Segment]| {
            segments.iter().enumerate().min_by_key(|(_, segment)| segment.used).map_or(0, |(index, _)| index)
        };
        let known = self.segments.iter().position(follows);
        let index = known.unwrap_or_else(|| oldest(&self.segments));
        let begin = if known.is_some() { self.segments[index].start } else { start };
        self.segments[index].start = begin.max(end.saturating_sub(self.segment_sectors));
        self.segments[index].end = end;
        self.touch(index);
        let limit = (end + self.ahead).min(geometry.sectors());
        if limit > end {
            let media = geometry.media_end(end);
            self.run_to(geometry, Running { segment: index, from: now, media, at: end, limit, until: now }, limit);
        }
        known.is_some()
    }

    /// Does a range of a continued stream begin at its end, or in it?
    #[must_use]
    pub fn continues(&self, lba: u64) -> bool {
        self.running.is_some_and(|running| lba >= self.segments[running.segment].start && lba <= running.limit)
    }

    /// How far reading on has come, if it goes on.
    #[must_use]
    pub fn position(&self, geometry: &Geometry, now: u64) -> Option<u64> {
        let running = self.running?;
        if now >= running.until {
            return Some(running.limit);
        }
        Some(geometry.reached(running.media + now.saturating_sub(running.from)).clamp(running.at, running.limit))
    }

    /// The mechanism is needed elsewhere: reading on ends. Gives where it was.
    pub fn stop(&mut self, geometry: &Geometry, now: u64) -> Option<u64> {
        let at = self.position(geometry, now)?;
        let segment = &mut self.segments[self.running.take()?.segment];
        segment.end = at;
        segment.start = segment.start.max(at.saturating_sub(self.segment_sectors));
        Some(at)
    }

    /// A range is written: what the buffer has of it is out of date.
    pub fn forget(&mut self, geometry: &Geometry, now: u64, lba: u64, len: u64) {
        let end = lba + len;
        if self.running.is_some_and(|running| lba < running.limit && end > self.segments[running.segment].start) {
            self.stop(geometry, now);
        }
        for segment in &mut self.segments {
            if lba < segment.end && end > segment.start {
                if lba <= segment.start {
                    *segment = Segment::default();
                } else {
                    segment.end = lba;
                }
            }
        }
    }
}
