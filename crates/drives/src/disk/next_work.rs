//! The next action of the mechanism, and its duration.
//!
//! The way to a sector is the remaining time of the firmware, followed by the time of the arm and the time of the
//! rotation. The firmware keeps a margin: a sector that it would reach with less than the margin counts as one turn
//! away.

use super::read_buffer::Lookup;
use super::{Disk, DiskGeometry, DiskPlace, MediumCommand, SeekCurve, Spot, WorkKind, DESTAGE_SECTORS, NOTHING_DUE};

/// Pieces of the write cache around the head that are compared.
const NEAR_EXTENTS: usize = 32;
/// Written data older than its age limit times this number is written first.
const OVERDUE: u64 = 4;
/// One work in this many may be a command that was chosen by age alone. If all works were chosen by age, a busy disk
/// would no longer sort its commands, its work would become older, and it would never recover.
const BY_AGE: u64 = 4;
/// One work in this many may be a destage of written data that was chosen by age alone.
const OVERDUE_EVERY: u64 = 16;

/// Times that determine the beginning of a work.
#[derive(Clone, Copy)]
struct Times {
    now: u64,
    /// The time at which the firmware has processed the command.
    begin: u64,
    /// The time at which the drive has the data of the command.
    data: u64,
}

/// Divisor of a command's waiting time. In comparison with written data, the quotient is subtracted from its way.
const PATIENCE: u64 = 16;

/// Upper limit of the delay until a command is ready.
const DELAY_MAX: u64 = u32::MAX as u64 / 4;

/// The chosen work.
enum Choice {
    Command(usize),
    Extent(usize),
}

impl Disk {
    /// Start the next work, if the mechanism is idle and there is any work.
    #[inline]
    pub(super) fn start(&mut self, now: u64) {
        if matches!(self.work.kind, WorkKind::Nothing) {
            self.start_next(now);
        }
    }

    #[inline(never)]
    fn start_next(&mut self, now: u64) {
        self.due = NOTHING_DUE;
        if !self.window.is_empty() && self.reads_on(now) {
            return;
        }
        match self.choose(now) {
            Some(Choice::Command(index)) => self.start_command(now, index),
            Some(Choice::Extent(index)) => self.start_destage(now, index),
            None => {
                let cached = self.dirty.oldest().map_or(NOTHING_DUE, |(since, _)| self.destage_time(since));
                self.due = cached.min(self.rewrite_time(now));
                if self.due <= now && cached > now {
                    self.start_rewrite(now);
                }
            }
        }
    }

    /// The time at which the drive rewrites a band if no other work comes.
    fn rewrite_time(&self, now: u64) -> u64 {
        match &self.shingles {
            Some(shingles) if !shingles.is_empty() && self.window.is_empty() => {
                (self.last_read.max(self.last_write) + shingles.idle).max(now)
            }
            _ => NOTHING_DUE,
        }
    }

    fn start_rewrite(&mut self, now: u64) {
        let Some(band) = self.shingles.as_mut().and_then(super::Shingles::take) else { return };
        self.stop_reading_on(now);
        let time = self.rewriting(band);
        self.work.kind = WorkKind::Rewrite;
        self.busy += time;
        self.works += 1;
        self.due = now + time;
        (self.work.media, self.work.end) = (0, u64::MAX);
        (self.work.cylinder, self.work.head) = (self.cylinder, self.head);
    }

    /// Time for rewriting a band: a move of the arm, half a turn and a transfer for reading, and the same for writing.
    fn rewriting(&self, band: u64) -> u64 {
        let Some(shingles) = &self.shingles else { return 0 };
        let geometry = &self.tables.geometry;
        let sectors = shingles.band_sectors().min(geometry.sectors());
        let start = (band * shingles.band_sectors()).min(geometry.sectors() - sectors);
        let place = geometry.place(start);
        let travel = u64::from(self.view(0, true).travel(&Spot::of(&place)));
        2 * (travel + u64::from(geometry.turn()) / 2 + geometry.span(&place, start, sectors).time)
    }

    /// After a stream the disk reads on for a short time although other commands wait, and answers commands for the
    /// sectors that it reads.
    fn reads_on(&mut self, now: u64) -> bool {
        let least = self.tables.ahead_least;
        if least == 0 {
            return false;
        }
        let Some(hold) = self.segments.hold(&self.tables.geometry, least) else { return false };
        self.hand_to_stream(now);
        // A command that continues the stream does not wait for reading on, nor does one that skips a part of the
        // stream.
        if self.window.iter().any(|waiting| !waiting.write && self.goes_on(waiting.lba)) {
            return false;
        }
        if hold > now {
            self.due = hold;
            return true;
        }
        self.answer_reached(now);
        false
    }

    /// Whether a read continues the stream at the head, and may be read now. If other commands wait, it may not after
    /// the end of the visit.
    fn goes_on(&self, lba: u64) -> bool {
        let may_stay = || !self.segments.is_past_visit(lba, self.tables.ahead_least) || !self.do_others_wait();
        lba >= self.last && self.segments.continues(lba) && may_stay()
    }

    /// Whether commands wait that do not continue the stream at the head.
    pub(super) fn do_others_wait(&self) -> bool {
        self.window.iter().any(|waiting| waiting.write || !self.segments.continues(waiting.lba))
    }

    /// Reads that continue the stream, and that the firmware has not processed when the head reaches them, get their
    /// sectors from reading on. A new start of the medium would lose a turn for them.
    fn hand_to_stream(&mut self, now: u64) {
        loop {
            let stream = self.window.iter().enumerate().filter(|(_, w)| !w.write && self.goes_on(w.lba));
            let Some((index, waiting)) = stream.min_by_key(|(_, waiting)| waiting.lba) else { return };
            let MediumCommand { tag, lba, len, ready, .. } = *waiting;
            if ready <= now {
                return;
            }
            let rotation = self.rotation(now);
            let found = self.segments.lookup(&self.tables.geometry, now, rotation, lba, len);
            let Lookup::Hit { begins, ready } = found else { return };
            self.window.remove(index);
            self.answer_hit(now, tag, (begins, ready), len);
        }
    }

    /// Answer waiting commands whose sectors reading on has read.
    fn answer_reached(&mut self, now: u64) {
        let Some(reached) = self.segments.position(&self.tables.geometry, now) else { return };
        let mut index = 0;
        while index < self.window.len() {
            let waiting = self.window[index];
            let there = self.segments.continues(waiting.lba) && waiting.lba + waiting.len <= reached;
            if !waiting.write && there {
                self.window.remove(index);
                self.segments.reached_by(&self.tables.geometry, waiting.lba + waiting.len);
                let end = self.answer(now, self.tables.cached_command, now, waiting.len);
                self.outbox.push(openraid_units::Instant(end), waiting.tag);
            } else {
                index += 1;
            }
        }
    }

    fn choose(&mut self, now: u64) -> Option<Choice> {
        let oldest = self.dirty.oldest();
        let wanted = oldest.is_some_and(|(since, _)| self.destage_wanted(now, since));
        if self.window.is_empty() {
            let (since, start) = oldest?;
            let is_time = wanted || self.destage_time(since) <= now;
            return if is_time { self.nearest_extent(now, u32::MAX, since, start).map(Choice::Extent) } else { None };
        }
        if !wanted && self.window.len() == 1 {
            return Some(Choice::Command(0));
        }
        let (way, command) = self.nearest_command(now);
        if let (Some((since, start)), true) = (oldest, wanted) {
            if let Some(extent) = self.nearest_extent(now, self.worth(now, way, command), since, start) {
                return Some(Choice::Extent(extent));
            }
        }
        Some(Choice::Command(command))
    }

    /// Limit of the way to written data for which it is destaged before a command. A host waits for the command, so the
    /// command is preferred, and more so with the length of its wait. If a host also waits for room in the cache, both
    /// have equal preference except for their age.
    fn worth(&self, now: u64, way: u32, command: usize) -> u32 {
        let waited = now.saturating_sub(self.window[command].arrived);
        let (way, waited) = match self.blocked.front() {
            Some(blocked) => (way, waited.saturating_sub(now.saturating_sub(blocked.arrived))),
            None => (way / 2, waited),
        };
        way.saturating_sub(u32::try_from(waited / PATIENCE).unwrap_or(u32::MAX))
    }

    /// Whether written data must be destaged even though commands wait. `since` is the arrival of the oldest.
    fn destage_wanted(&self, now: u64, since: u64) -> bool {
        let is_old = now.saturating_sub(since) >= self.tables.destage_age;
        is_old || !self.blocked.is_empty() || !self.flushes.is_empty()
    }

    /// The time at which written data is destaged if no other work comes.
    fn destage_time(&self, since: u64) -> u64 {
        (self.last_read.max(since) + self.tables.destage_idle).min(since + self.tables.destage_age)
    }

    fn start_command(&mut self, now: u64, index: usize) {
        let MediumCommand { tag, write, lba, len, place, ready, data, .. } = self.window[index];
        if self.tables.sorting_window < self.tables.queue_depth {
            self.window.remove(index);
        } else {
            self.window.swap_remove(index);
        }
        self.window_writes -= u32::from(write);
        let first = self.move_to(Times { now, begin: ready.max(now), data }, &place, (lba, len), write);
        if write {
            self.work.kind = WorkKind::Write { tag };
            return;
        }
        let transfer = self.tables.transfer(len);
        let begins = first + self.tables.geometry.sector_time(&place);
        self.work.kind = WorkKind::Read { tag, lba, begins, transfer };
        if len > self.tables.buffer {
            self.wait_for_room(begins, len);
        }
    }

    fn start_destage(&mut self, now: u64, index: usize) {
        let most = DESTAGE_SECTORS.min(self.dirty.capacity().div_ceil(8)).max(self.tables.physical);
        let extent = self.dirty.take(&self.tables.geometry, index, most);
        let sectors = extent.end - extent.start;
        let place = self.tables.geometry.place(extent.start);
        self.work.kind = WorkKind::Destage { sectors, number: extent.number };
        self.move_to(Times { now, begin: now, data: now }, &place, (extent.start, sectors), true);
    }

    /// Wait for room if the buffer does not hold the whole read, whose first sector is read at `begins`. The medium
    /// waits for the link, and loses whole turns.
    #[cold]
    fn wait_for_room(&mut self, begins: u64, len: u64) {
        let room = begins.max(self.link_free) + self.tables.transfer(len - self.tables.buffer);
        let lost = room.saturating_sub(self.due).div_ceil(u64::from(self.tables.geometry.turn()));
        let time = lost * u64::from(self.tables.geometry.turn());
        self.busy += time;
        self.due += time;
    }

    /// Move the arm, wait for the rotation, transfer. Returns when the transfer begins.
    #[inline(never)]
    fn move_to(&mut self, times: Times, place: &DiskPlace, (lba, len): (u64, u64), write: bool) -> u64 {
        let Times { now, begin, data } = times;
        self.stop_reading_on(now);
        let geometry = &self.tables.geometry;
        let span = geometry.span(place, lba, len);
        let turn = u64::from(geometry.turn());
        let arrival = (begin + u64::from(self.view(0, write).travel(&Spot::of(place)))).max(data);
        let (at, angle) = (u64::from(geometry.angle(self.rotation(arrival))), u64::from(place.angle));
        let wait = if angle >= at { angle - at } else { angle + turn - at };
        let first = arrival + wait;
        let mut end = first + span.time;
        // A physical sector that is written in part must be read first, and then takes another turn.
        if write && (lba | (lba + len)) & (self.tables.physical - 1) != 0 {
            end += turn;
        }
        if write {
            self.last_write = end;
            let bands = self.shingles.as_mut().map(|shingles| shingles.write(lba, len)).unwrap_or_default();
            end += bands.into_iter().map(|band| self.rewriting(band)).sum::<u64>();
        }
        self.busy += end - now;
        self.works += 1;
        self.due = end;
        (self.work.media, self.work.end) = (place.media + span.time, lba + len);
        (self.work.cylinder, self.work.head) = (span.cylinder, span.head);
        first
    }

    fn stop_reading_on(&mut self, now: u64) {
        let geometry = &self.tables.geometry;
        let Some(at) = self.segments.stop(geometry, now) else { return };
        if at != self.last && at < geometry.sectors() {
            let place = geometry.place(at);
            (self.cylinder, self.head, self.last) = (place.cylinder, place.head, at);
        }
    }

    fn angle(&self, now: u64) -> u32 {
        self.tables.geometry.angle(self.rotation(now))
    }

    /// The state that determines the ways from the present position.
    #[inline]
    fn view(&self, angle: u32, write: bool) -> View<'_> {
        let tables = &*self.tables;
        View {
            curve: if write { &tables.seek_write } else { &tables.seek_read },
            head_switch: tables.head_switch,
            turn: tables.geometry.turn(),
            geometry: &tables.geometry,
            margin: tables.margin,
            cylinder: self.cylinder,
            head: self.head,
            angle,
        }
    }

    /// The command with the shortest way, and that way; no way is shorter than that of a command that has waited for
    /// too long.
    #[allow(clippy::cast_possible_truncation)] // bounded by what 32 bits hold
    fn nearest_command(&self, now: u64) -> (u32, usize) {
        let view = self.view(self.angle(now), false);
        let window = &self.window[..self.window.len().min(self.tables.sorting_window)];
        if self.works.is_multiple_of(BY_AGE) {
            if let Some(index) = self.overdue_command(window, now) {
                return (0, index);
            }
        }
        let mut best = (u32::MAX, 0);
        for (index, waiting) in window.iter().enumerate() {
            let ready = waiting.ready.max(waiting.data).saturating_sub(now);
            let delay = ready.min(DELAY_MAX) as u32;
            let follows = waiting.lba == self.last;
            let spot = Spot::of(&waiting.place);
            let curve = if waiting.write { &self.tables.seek_write } else { view.curve };
            let travel = if follows { 0 } else { view.travel_by(curve, &spot) };
            // No way is shorter than the time until the arm arrives.
            if delay + travel >= best.0 {
                continue;
            }
            let way = view.way(delay, travel, &spot, follows);
            if way < best.0 {
                best = (way, index);
            }
        }
        best
    }

    /// The command that has waited longest, if it has waited for too long.
    #[inline(never)]
    fn overdue_command(&self, window: &[MediumCommand], now: u64) -> Option<usize> {
        let (index, oldest) = window.iter().enumerate().min_by_key(|(_, waiting)| waiting.arrived)?;
        (now.saturating_sub(oldest.arrived) > self.tables.queue_age).then_some(index)
    }

    /// The piece with the shortest way below `bound`. The result is the piece that begins at `oldest` if its arrival
    /// `since` is too long ago. The search moves away from the head, alternately after it and before it, in each
    /// direction until the arm's time alone is too long. If ways are equal, the nearest piece after the head wins. A
    /// piece before the head wins only if no piece after it has an equal way.
    fn nearest_extent(&self, now: u64, bound: u32, since: u64, oldest: u64) -> Option<usize> {
        if now.saturating_sub(since) > OVERDUE * self.tables.destage_age && self.works.is_multiple_of(OVERDUE_EVERY) {
            return Some(self.dirty.index(oldest) - 1);
        }
        if bound == 0 {
            return None;
        }
        let view = self.view(self.angle(now), true);
        let near = self.dirty.near(self.last, NEAR_EXTENTS);
        let (mut before, mut behind) = (near.before, near.behind);
        let (all, mut best) = (before.len() + behind.len(), bound);
        // The bound for a piece after the head, which is preferred over an equal one before the head.
        let (mut most, mut found) = (bound, None);
        if near.follows {
            (best, most, found) = (0, 1, before.len().checked_sub(1));
        }
        let mut reach = view.curve.reach(best);
        while !(behind.is_empty() && before.is_empty()) {
            if let Some((slot, rest)) = behind.split_first() {
                let spot = near.spot(*slot);
                behind = rest;
                if view.distance(spot) >= reach {
                    behind = &[];
                } else if view.lead(spot) < most {
                    let way = view.way(0, view.travel(spot), spot, false);
                    if way < most {
                        (best, most, found) = (way, way, Some(all - rest.len() - 1));
                        reach = view.curve.reach(way);
                    }
                }
            }
            if let Some((slot, rest)) = before.split_last() {
                let spot = near.spot(*slot);
                before = rest;
                if view.distance(spot) >= reach {
                    before = &[];
                } else if view.lead(spot) < best {
                    let way = view.way(0, view.travel(spot), spot, false);
                    if way < best {
                        (best, most, found) = (way, way + 1, Some(rest.len()));
                        reach = view.curve.reach(way);
                    }
                }
            }
        }
        found.map(|index| near.first + index)
    }
}

/// The inputs of the time to a sector apart from the sector itself. They are computed once for all compared sectors.
#[derive(Clone, Copy)]
struct View<'a> {
    curve: &'a SeekCurve,
    geometry: &'a DiskGeometry,
    head_switch: u32,
    turn: u32,
    margin: u32,
    cylinder: u32,
    head: u32,
    /// The spindle's angle now.
    angle: u32,
}

impl View<'_> {
    /// Cylinders between the head and a sector.
    #[inline(always)]
    fn distance(&self, to: &Spot) -> u32 {
        self.cylinder.abs_diff(to.cylinder)
    }

    /// Time until a sector first passes, if the head were already on its track.
    #[inline(always)]
    fn lead(&self, to: &Spot) -> u32 {
        let lead = to.angle.wrapping_sub(self.angle);
        if to.angle >= self.angle {
            lead
        } else {
            lead.wrapping_add(self.turn)
        }
    }

    /// Time for moving the arm and switching heads.
    #[inline(always)]
    fn travel(&self, to: &Spot) -> u32 {
        self.travel_by(self.curve, to)
    }

    #[inline(always)]
    fn travel_by(&self, curve: &SeekCurve, to: &Spot) -> u32 {
        let distance = self.distance(to);
        if distance == 0 {
            return if self.head == to.head { 0 } else { self.head_switch };
        }
        curve.time(distance)
    }

    /// Time to a sector, as the firmware computes it. The arm begins to move after `delay` and moves for `travel`. The
    /// sector that follows the last one under the head is done at once (`follows`). Another way that seems shorter
    /// would interrupt a stream for a turn or two.
    #[inline(always)]
    fn way(&self, delay: u32, travel: u32, to: &Spot, follows: bool) -> u32 {
        if follows {
            return delay;
        }
        // After a move the firmware adds its margin. A processor cannot predict that branch, so both results are
        // computed.
        let there = delay + travel + if travel > 0 { self.margin } else { 0 };
        let at = self.geometry.angle_of(self.angle + there);
        let early = to.angle.wrapping_sub(at);
        there + if to.angle >= at { early } else { early.wrapping_add(self.turn) }
    }
}
