//! The next event of every part of the machine.
//!
//! Every part is a station with a time of its next event. Each station yields its events in order, so only the first
//! event of each station is compared. The comparison is a tournament in a tree of fixed places; the winner at the root
//! is the next event. A new time is compared upwards while it changes the winner, mostly one or two games. Events at
//! the same time happen in the order of the stations, and within a station in the order of arrival.
//!
//! Most often the next event of all is the one that arrived last, because a request moves to its next part before
//! anything else happens. That event has a place of its own and takes no part in the tournament.

use std::collections::VecDeque;

use openraid_units::Instant;

/// Bits of an entry that give the station; the time is in the bits above. 2^54 ns are 208 days.
const STATION_BITS: u32 = 10;
const STATION_MASK: u64 = (1 << STATION_BITS) - 1;
/// Places for the games of the greatest number of stations.
const GAMES: usize = 2 << STATION_BITS;

/// A station and the time of its next event in one number. The time is in the upper bits, so the least number is the
/// next event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct CalendarEntry(u64);

impl CalendarEntry {
    /// No event.
    pub const NEVER: Self = Self(u64::MAX);

    /// An entry for this time; a time beyond the range of the calendar becomes never.
    #[inline]
    pub fn new(station: usize, at: Instant) -> Self {
        if at.0 >> (64 - STATION_BITS) == 0 {
            Self(at.0 << STATION_BITS | station as u64)
        } else {
            Self::NEVER
        }
    }

    /// The largest entry that is due at the same time as this one.
    #[inline]
    pub fn last(self) -> Self {
        Self(self.0 | STATION_MASK)
    }

    /// The largest entry that is due by now. The entry for never is larger.
    #[inline]
    pub fn last_of(now: Instant) -> Self {
        Self::new((1 << STATION_BITS) - 1, now).min(Self(u64::MAX - 1))
    }

    /// The time of an entry that is not never.
    #[inline]
    pub fn at(self) -> Instant {
        Instant(self.0 >> STATION_BITS)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // ten bits
    pub fn station(self) -> usize {
        (self.0 & STATION_MASK) as usize
    }
}

/// The next times of all stations.
#[derive(Debug)]
pub(super) struct Calendar {
    /// The games: place 1 is the root, the players of game `n` are at `2n` and `2n + 1`, and the stations are the last
    /// places.
    games: Box<[CalendarEntry; GAMES]>,
    /// Number of places for stations (a power of two), and number of stations.
    places: usize,
    stations: usize,
}

impl Calendar {
    pub fn new() -> Self {
        Self { games: Box::new([CalendarEntry::NEVER; GAMES]), places: 1, stations: 0 }
    }

    /// Add a station without events. Returns its number.
    ///
    /// # Panics
    /// More than 1024 stations.
    pub fn add(&mut self) -> usize {
        assert!(self.stations < 1 << STATION_BITS, "a machine has few parts");
        if self.stations == self.places {
            let old = self.places;
            self.places *= 2;
            self.games.copy_within(old..2 * old, 2 * old);
            self.games[3 * old..4 * old].fill(CalendarEntry::NEVER);
            for game in (1..self.places).rev() {
                self.games[game] = self.games[2 * game].min(self.games[2 * game + 1]);
            }
        }
        self.stations += 1;
        self.stations - 1
    }

    /// Set when a station has its next event.
    #[inline]
    pub fn set(&mut self, station: usize, at: Instant) {
        let mut winner = CalendarEntry::new(station, at);
        // Every place is below the number of games: the remainders change no value, but remove bounds checks of the
        // compiler.
        let mut place = (self.places + station) % GAMES;
        if self.games[place] == winner {
            return;
        }
        self.games[place] = winner;
        // All games are played: a processor can predict their number, but not the game after which nothing changes.
        while place > 1 {
            winner = winner.min(self.games[(place ^ 1) % GAMES]);
            place /= 2;
            self.games[place] = winner;
        }
    }

    /// The time of the next event, and its station.
    #[cfg(test)]
    pub fn earliest(&self) -> (Instant, usize) {
        let first = self.games[1];
        (if first == CalendarEntry::NEVER { Instant::NEVER } else { first.at() }, first.station())
    }
}

/// The events of one station, in order of time.
#[derive(Debug)]
struct Line<E> {
    station: usize,
    events: VecDeque<(Instant, E)>,
}

impl<E> Line<E> {
    fn new(calendar: &mut Calendar) -> Self {
        Self { station: calendar.add(), events: VecDeque::new() }
    }

    /// Add an event. Its time must not be before that of an earlier added one.
    fn push(&mut self, calendar: &mut Calendar, at: Instant, event: E) {
        if let Some((last, _)) = self.events.back() {
            debug_assert!(*last <= at, "a station's events come in order");
        } else {
            calendar.set(self.station, at);
        }
        self.events.push_back((at, event));
    }

    /// The next due event, if any.
    fn pop(&mut self, calendar: &mut Calendar, due: CalendarEntry) -> Option<E> {
        let (at, _) = self.events.front()?;
        if CalendarEntry::new(self.station, *at) > due {
            return None;
        }
        let event = self.events.pop_front().map(|(_, event)| event);
        calendar.set(self.station, self.events.front().map_or(Instant::NEVER, |(at, _)| *at));
        event
    }
}

/// All lines, by number.
#[derive(Debug)]
pub(super) struct CalendarLines<E> {
    lines: Vec<Line<E>>,
    /// Fast slot: an event that was the earliest of all lines when it was added. It precedes all events of
    /// `soon_line`. `soon_entry` has its time and says whether it still is the earliest; `NEVER` if the slot is empty.
    soon: E,
    soon_line: usize,
    soon_entry: CalendarEntry,
}

/// The line number for no event.
const NO_LINE: usize = usize::MAX;

impl<E: Copy> CalendarLines<E> {
    /// No lines. `any` fills the place of an event and never happens.
    pub fn new(any: E) -> Self {
        Self { lines: Vec::new(), soon: any, soon_line: NO_LINE, soon_entry: CalendarEntry::NEVER }
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Add a line without events.
    pub fn add(&mut self, calendar: &mut Calendar) {
        self.lines.push(Line::new(calendar));
    }

    /// Add an event to a line. Its time must not be before that of an earlier event of that line.
    #[inline]
    pub fn push(&mut self, calendar: &mut Calendar, line: usize, at: Instant, event: E) {
        let row = &mut self.lines[line];
        let entry = CalendarEntry::new(row.station, at);
        // Equal entries belong to one line, and the earlier event precedes.
        if entry >= self.soon_entry.min(calendar.games[1]) || !row.events.is_empty() {
            return self.push_late(calendar, line, at, event);
        }
        if self.soon_line != NO_LINE {
            self.put_back(calendar);
        }
        (self.soon, self.soon_line, self.soon_entry) = (event, line, entry);
    }

    #[inline(never)]
    fn push_late(&mut self, calendar: &mut Calendar, line: usize, at: Instant, event: E) {
        self.lines[line].push(calendar, at, event);
    }

    /// The event is no longer the next of all: move it to its line.
    #[inline(never)]
    fn put_back(&mut self, calendar: &mut Calendar) {
        let other = &mut self.lines[self.soon_line];
        let at = self.soon_entry.at();
        calendar.set(other.station, at);
        other.events.push_front((at, self.soon));
    }

    /// The entry of the next event.
    #[inline]
    pub fn earliest(&self, calendar: &Calendar) -> CalendarEntry {
        self.soon_entry.min(calendar.games[1])
    }

    /// The next due event of a line, if any.
    #[inline]
    pub fn pop(&mut self, calendar: &mut Calendar, line: usize, due: CalendarEntry) -> Option<E> {
        if self.soon_line != line {
            return self.pop_late(calendar, line, due);
        }
        if self.soon_entry > due {
            return None;
        }
        (self.soon_line, self.soon_entry) = (NO_LINE, CalendarEntry::NEVER);
        Some(self.soon)
    }

    #[inline(never)]
    fn pop_late(&mut self, calendar: &mut Calendar, line: usize, due: CalendarEntry) -> Option<E> {
        self.lines[line].pop(calendar, due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with a sorted list: by time, then by line, then by order of arrival.
    #[test]
    fn events_come_in_the_order_of_a_sorted_list_whatever_is_handed_in_when() {
        const LINES: usize = 5;
        let mut random = crate::random::Random::new(8);
        let (mut calendar, mut lines) = (Calendar::new(), CalendarLines::new(u64::MAX));
        (0..LINES).for_each(|_| lines.add(&mut calendar));
        let (mut plain, mut now, mut came) = (Vec::<(u64, usize, u64)>::new(), 0, 0);
        for _ in 0..20_000 {
            for _ in 0..random.below(3) {
                let line = random.index(LINES);
                let last = plain.iter().filter(|event| event.1 == line).map(|event| event.0).max();
                let at = last.unwrap_or(now) + random.below(4);
                plain.push((at, line, came));
                lines.push(&mut calendar, line, Instant(at), came);
                came += 1;
            }
            let Some(first) = plain.iter().min().copied() else {
                assert_eq!(lines.earliest(&calendar), CalendarEntry::NEVER);
                continue;
            };
            let entry = lines.earliest(&calendar);
            assert_eq!((entry.at(), entry.station()), (Instant(first.0), first.1));
            assert!(entry <= CalendarEntry::last_of(Instant(first.0)));
            assert!(first.0 == 0 || entry > CalendarEntry::last_of(Instant(first.0 - 1)));
            now = first.0;
            let idle = (first.1 + 1) % LINES;
            let is_due = plain.iter().any(|event| event.1 == idle && event.0 <= now);
            let due = CalendarEntry::last_of(Instant(now));
            assert!(is_due || lines.pop(&mut calendar, idle, due).is_none());
            assert_eq!(lines.pop(&mut calendar, first.1, due), Some(first.2));
            plain.retain(|event| event != &first);
        }
        assert!(came > 10_000 && now > 1000);
    }

    #[test]
    fn the_earliest_station_is_found_and_its_events_come_in_order() {
        let mut calendar = Calendar::new();
        let mut first = Line::new(&mut calendar);
        let mut second = Line::new(&mut calendar);
        assert_eq!(calendar.earliest().0, Instant::NEVER);
        first.push(&mut calendar, Instant(7), 'a');
        first.push(&mut calendar, Instant(7), 'b');
        second.push(&mut calendar, Instant(5), 'c');
        assert_eq!(calendar.earliest(), (Instant(5), 1));
        assert_eq!(first.pop(&mut calendar, CalendarEntry::last_of(Instant(5))), None);
        assert_eq!(second.pop(&mut calendar, CalendarEntry::last_of(Instant(5))), Some('c'));
        assert_eq!(calendar.earliest(), (Instant(7), 0));
        assert_eq!(first.pop(&mut calendar, CalendarEntry::last_of(Instant(7))), Some('a'));
        assert_eq!(first.pop(&mut calendar, CalendarEntry::last_of(Instant(7))), Some('b'));
        assert_eq!(calendar.earliest().0, Instant::NEVER);
    }

    #[test]
    fn nothing_is_due_that_never_happens() {
        let far = Instant(1 << (64 - STATION_BITS));
        for now in [Instant::ZERO, Instant(far.0 - 1), far, Instant::NEVER] {
            assert!(
                CalendarEntry::new(3, far) > CalendarEntry::last_of(now)
                    && CalendarEntry::new(3, far) == CalendarEntry::NEVER
            );
        }
        assert!(CalendarEntry::new(1023, Instant(7)) <= CalendarEntry::last_of(Instant(7)));
        assert!(CalendarEntry::new(0, Instant(8)) > CalendarEntry::last_of(Instant(7)));
    }

    #[test]
    fn events_at_the_same_time_are_ordered_by_station() {
        let mut calendar = Calendar::new();
        for _ in 0..9 {
            calendar.add();
        }
        for station in [8, 3, 6] {
            calendar.set(station, Instant(11));
        }
        assert_eq!(calendar.earliest(), (Instant(11), 3));
        calendar.set(3, Instant::NEVER);
        assert_eq!(calendar.earliest(), (Instant(11), 6));
        calendar.set(6, Instant(1 << 60));
        assert_eq!(calendar.earliest(), (Instant(11), 8));
    }

    #[test]
    fn the_root_is_the_least_of_all_whatever_changes() {
        let mut random = crate::random::Random::new(5);
        let (mut calendar, mut plain) = (Calendar::new(), Vec::new());
        for _ in 0..20_000 {
            if plain.len() < 2 || (plain.len() < 37 && random.chance(1, 100)) {
                calendar.add();
                plain.push(Instant::NEVER);
            }
            let station = random.index(plain.len());
            let at = if random.chance(1, 5) { Instant::NEVER } else { Instant(random.below(50)) };
            calendar.set(station, at);
            plain[station] = at;
            let first = plain.iter().enumerate().min_by_key(|(station, at)| (**at, *station)).unwrap();
            let (at, station) = calendar.earliest();
            assert_eq!(at, *first.1);
            assert!(at == Instant::NEVER || station == first.0);
        }
    }
}
