//! The read buffer: segments of what was read, and the one that is being read on into.
//!
//! Behind a read the disk reads on while it has nothing else to do, up to a limit behind what the host has asked for.
//! Nothing is computed for that until somebody asks: how far it has come follows from the time.

use super::geometry::Geometry;

/// Reading on: at time `from` the head was at media time `media`, which is sector `at`.
#[derive(Clone, Copy, Debug)]
struct Running {
    segment: usize,
    from: u64,
    media: u64,
    at: u64,
    limit: u64,
    /// Where the host's last request ended.
    asked: u64,
    /// Requests followed each other.
    stream: bool,
}

impl Running {
    /// When the limit is reached.
    fn until(&self, geometry: &Geometry) -> u64 {
        self.from + geometry.media_end(self.limit).saturating_sub(self.media)
    }
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

/// The segments of one disk: beginnings, ends and last uses, one beside the other, as all of them are looked through
/// again and again.
#[derive(Clone, Debug)]
pub struct Segments {
    starts: Vec<u64>,
    ends: Vec<u64>,
    used: Vec<u64>,
    segment_sectors: u64,
    ahead: u64,
    running: Option<Running>,
    clock: u64,
}

impl Segments {
    /// `count` segments; reading on stops `ahead` sectors behind what was asked for.
    #[must_use]
    pub fn new(count: usize, ahead: u64) -> Self {
        let empty = vec![0; count];
        // A segment also keeps some of what is behind the reader.
        let segment_sectors = ahead * 2;
        let (ends, used) = (empty.clone(), empty.clone());
        Self { starts: empty, ends, used, segment_sectors, ahead, running: None, clock: 0 }
    }

    /// What is there of a range, at a time at which the head is at rotation `rotation` (media time modulo a turn).
    pub fn lookup(&mut self, geometry: &Geometry, now: u64, rotation: u64, lba: u64, len: u64) -> Lookup {
        let end = lba + len;
        if let Some(running) = self.running {
            if lba >= self.starts[running.segment] && lba <= running.limit {
                return self.lookup_running(geometry, running, now, rotation, lba, end);
            }
        }
        let Some(index) = self.find(|start, known| (start <= lba) & (lba < known)) else { return Lookup::Miss };
        self.touch(index);
        let known = self.ends[index];
        if end <= known {
            Lookup::Hit { ready: now }
        } else {
            Lookup::Part { from: known }
        }
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
        let stopped = now >= running.until(geometry);
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
                running = Running { from: now + wait, media, at: running.limit, limit: wanted, ..running };
            }
        } else {
            running.limit = running.limit.max(wanted);
        }
        running.asked = running.asked.max(end);
        running.stream = true;
        self.running = Some(running);
        Lookup::Hit { ready: ready.max(now) }
    }

    /// The first segment of which something is true. Most often it is true of none: whether it is of any is found
    /// out without a branch for each.
    #[inline]
    fn find(&self, what: impl Fn(u64, u64) -> bool) -> Option<usize> {
        let segments = || self.starts.iter().zip(&self.ends);
        let any = segments().fold(false, |any, (start, end)| any | what(*start, *end));
        if any {
            segments().position(|(start, end)| what(*start, *end))
        } else {
            None
        }
    }

    /// The segment that was used least recently; of those never used, the first.
    fn oldest(&self) -> usize {
        let mut oldest = (u64::MAX, 0);
        for (index, used) in self.used.iter().enumerate() {
            let this = (*used, index);
            oldest = if this.0 < oldest.0 { this } else { oldest };
        }
        oldest.1
    }

    fn touch(&mut self, index: usize) {
        self.clock += 1;
        self.used[index] = self.clock;
    }

    /// Sectors up to `end`, from `start` on, were read; at `now` the head is behind them, at media time `media`, and
    /// reading on begins.
    pub fn filled(&mut self, geometry: &Geometry, now: u64, media: u64, start: u64, end: u64) {
        let known = self.find(|begin, known| (known == start) & (begin < start));
        let index = known.unwrap_or_else(|| self.oldest());
        let begin = if known.is_some() { self.starts[index] } else { start };
        self.starts[index] = begin.max(end.saturating_sub(self.segment_sectors));
        self.ends[index] = end;
        self.touch(index);
        let limit = (end + self.ahead).min(geometry.sectors());
        if limit > end {
            let stream = known.is_some();
            self.running = Some(Running { segment: index, from: now, media, at: end, limit, asked: end, stream });
        }
    }

    /// Behind a stream, reading on is to go on until it is `least` sectors ahead: when that will be.
    #[must_use]
    pub fn hold(&self, geometry: &Geometry, least: u64) -> Option<u64> {
        let running = self.running.filter(|running| running.stream)?;
        let end = (running.asked + least).min(running.limit);
        Some(running.from + geometry.media_end(end).saturating_sub(running.media))
    }

    /// Does a range of a continued stream begin at its end, or in it?
    #[must_use]
    pub fn continues(&self, lba: u64) -> bool {
        self.running.is_some_and(|running| lba >= self.starts[running.segment] && lba <= running.limit)
    }

    /// How far reading on has come, if it goes on.
    #[must_use]
    pub fn position(&self, geometry: &Geometry, now: u64) -> Option<u64> {
        let running = self.running?;
        Some(geometry.reached(running.media + now.saturating_sub(running.from)).clamp(running.at, running.limit))
    }

    /// The mechanism is needed elsewhere: reading on ends. Gives where it was.
    pub fn stop(&mut self, geometry: &Geometry, now: u64) -> Option<u64> {
        let at = self.position(geometry, now)?;
        let index = self.running.take()?.segment;
        self.ends[index] = at;
        self.starts[index] = self.starts[index].max(at.saturating_sub(self.segment_sectors));
        Some(at)
    }

    /// A range is written: what the buffer has of it is out of date.
    pub fn forget(&mut self, geometry: &Geometry, now: u64, lba: u64, len: u64) {
        let end = lba + len;
        if self.running.is_some_and(|running| lba < running.limit && end > self.starts[running.segment]) {
            self.stop(geometry, now);
        }
        if self.find(|start, known| (lba < known) & (end > start)).is_none() {
            return;
        }
        for (start, known) in self.starts.iter_mut().zip(&mut self.ends) {
            if lba < *known && end > *start {
                if lba <= *start {
                    (*start, *known) = (0, 0);
                } else {
                    *known = lba;
                }
            }
        }
    }
}
