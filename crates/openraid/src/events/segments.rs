//! Segments: files of a fixed size that are filled with zeroes when they are made.
//!
//! ```text
//!  events-00000000000000000001.log   number of its first record
//!  | line | line | line | 0 0 0 ... 0 |
//!                       ^ the next line
//! ```
//!
//! A line overwrites zeroes whose blocks are allocated already, so events can be stored on a full disk. When all
//! segments are full, or no new one can be made, the oldest one is emptied and used again: the newest events stay.
//!
//! A torn write leaves a line with a wrong checksum; it is skipped. A line whose number is not greater than the numbers
//! before it is left from an earlier use of the file.
//!
//! A reader takes no lock, so it may see half of what a writer does at that moment: a line without its beginning, or a
//! segment under its next name. If lines are damaged or missing, it reads again under the writer's lock.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use openraid_sys::lock_file;

use super::log_records::{Draft, Event, LogRecord, Severity};

/// Size of a segment.
pub const SEGMENT_BYTES: u64 = 256 << 10;
/// Maximum number of segments of a log.
pub const SEGMENTS_MAX: usize = 16;
/// A segment that was modified this short a time ago is read again: a further write may leave its time as it is.
const SETTLES_AFTER: Duration = Duration::from_secs(1);
/// A reader waits this long for the writer's lock. A writer that keeps it longer has a disk that hangs.
const LOCK_TIME_MAX: Duration = Duration::from_secs(1);
const LOCK_LOOK_INTERVAL: Duration = Duration::from_micros(100);

#[derive(Clone, Debug)]
pub struct EventLog {
    folder: PathBuf,
    segments_max: usize,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogContent {
    /// Events, oldest first.
    pub events: Vec<Event>,
    /// Number of damaged lines, with the remains of torn ones.
    pub damaged: u64,
    /// Number of segments of which nothing can be read.
    pub unreadable: u64,
}

/// An entry to write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventEntry {
    Event(Draft),
    /// Events of these numbers are acknowledged.
    Acknowledge {
        from: u64,
        to: u64,
    },
}

/// The content of one segment.
#[derive(Debug, Default)]
struct SegmentContent {
    records: Vec<LogRecord>,
    damaged: u64,
    /// Has it a content, and no record of any use of the file?
    unreadable: bool,
    /// Offset of the next line.
    end: u64,
}

/// A segment as it was read.
#[derive(Debug)]
struct Part {
    /// `None`: it must be read again.
    modified: Option<SystemTime>,
    /// Its records have at least this number.
    from: u64,
    lock: Lock,
    scanned: SegmentContent,
}

/// How a reader and the writer exclude each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lock {
    /// Not at all.
    Free,
    /// The reader has the writer's lock.
    Held,
}

/// Segments that a reader has read before.
#[derive(Debug, Default)]
pub struct ReadSegments(BTreeMap<PathBuf, Part>);

impl EventLog {
    /// The log in this folder.
    pub const fn at(folder: PathBuf) -> Self {
        Self { folder, segments_max: SEGMENTS_MAX }
    }

    /// The whole content; nothing if there is no log. Programs use [`read_again`](Self::read_again).
    ///
    /// # Errors
    /// The folder cannot be read.
    #[cfg(test)]
    pub fn read(&self) -> io::Result<LogContent> {
        self.read_again(&mut ReadSegments::default())
    }

    /// The same for a reader that reads repeatedly: only segments that have changed since then are read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn read_again(&self, seen: &mut ReadSegments) -> io::Result<LogContent> {
        let (content, is_sure) = self.read_parts(seen, Lock::Free)?;
        if is_sure {
            return Ok(content);
        }
        match self.lock_for_reading() {
            Some(_lock) => Ok(self.read_parts(seen, Lock::Held)?.0),
            None => Ok(content),
        }
    }

    /// The content, and whether a writer cannot have disturbed it: nothing is damaged or missing, or all was read under the lock.
    fn read_parts(&self, seen: &mut ReadSegments, lock: Lock) -> io::Result<(LogContent, bool)> {
        let mut content = LogContent::default();
        let mut acknowledged = Vec::new();
        let (mut last, mut is_without_holes, mut all_locked) = (0, true, true);
        let mut before = std::mem::take(&mut seen.0);
        for (first, path) in self.segments()? {
            let Some(part) = part(&path, first.max(last + 1), before.remove(&path), lock)? else { continue };
            content.damaged += part.scanned.damaged;
            content.unreadable += u64::from(part.scanned.unreadable);
            all_locked &= part.lock == Lock::Held;
            for record in &part.scanned.records {
                is_without_holes &= last == 0 || record.number() == last + 1;
                last = record.number();
                match record {
                    LogRecord::Event(event) => content.events.push(event.clone()),
                    LogRecord::Acknowledged { from, to, .. } => acknowledged.push(*from..=*to),
                }
            }
            seen.0.insert(path, part);
        }
        for event in &mut content.events {
            event.acknowledged = acknowledged.iter().any(|range| range.contains(&event.number));
        }
        let is_whole = is_without_holes && content.damaged == 0 && content.unreadable == 0;
        Ok((content, is_whole || all_locked))
    }

    /// The writer's lock, shared with other readers. `None` if there is none, this user may not read it, or the writer keeps it.
    fn lock_for_reading(&self) -> Option<File> {
        let lock = File::open(self.path("lock")).ok()?;
        let until = Instant::now() + LOCK_TIME_MAX;
        while lock.try_lock_shared().is_err() {
            if Instant::now() >= until {
                return None;
            }
            thread::sleep(LOCK_LOOK_INTERVAL);
        }
        Some(lock)
    }

    /// Append entries, and make them durable.
    ///
    /// # Errors
    /// Nothing can be written: the folder cannot be made, or there is no room for the first segment.
    pub fn append(&self, entries: &[EventEntry]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.path("lock"))?;
        lock_file(&lock, &self.path("lock"), false)?;
        let mut number = self.last_number()?;
        let (mut file, mut end) = match self.segments()?.pop() {
            Some((first, path)) => (open(&path)?, scan(first, &fs::read(&path)?).end),
            None => (self.next_segment(number + 1)?, 0),
        };
        for entry in entries {
            number += 1;
            let line = record(entry, number).line();
            if end + line.len() as u64 > SEGMENT_BYTES {
                file.sync_data()?;
                (file, end) = (self.next_segment(number)?, 0);
            }
            file.write_all_at(&line, end)?;
            end += line.len() as u64;
        }
        file.sync_data()
    }

    fn last_number(&self) -> io::Result<u64> {
        let mut last = 0;
        // A segment that has just been emptied has no records: the one before it has the last number.
        for (first, path) in self.segments()?.into_iter().rev().take(2) {
            let scanned = scan(first, &fs::read(path)?);
            last = last.max(scanned.records.last().map_or(first - 1, LogRecord::number));
        }
        Ok(last)
    }

    /// Segments with the numbers of their first records, oldest first.
    fn segments(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut segments = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let first = name.strip_prefix("events-").and_then(|rest| rest.strip_suffix(".log"));
            if let Some(first) = first.and_then(|first| first.parse::<u64>().ok()).filter(|first| *first > 0) {
                segments.push((first, path));
            }
        }
        segments.sort();
        Ok(segments)
    }

    /// An empty segment: a new one, or the oldest.
    fn next_segment(&self, first: u64) -> io::Result<File> {
        let segments = self.segments()?;
        let path = self.path(&format!("events-{first:020}.log"));
        if segments.len() < self.segments_max {
            match self.new_segment(&path) {
                Err(_) if !segments.is_empty() => {}
                made => return made,
            }
        }
        let Some((_, oldest)) = segments.first() else { return Err(io::ErrorKind::NotFound.into()) };
        fs::rename(oldest, &path)?;
        let file = open(&path)?;
        file.write_all_at(&zeroes(), 0)?;
        file.sync_data()?;
        File::open(&self.folder)?.sync_all()?;
        Ok(file)
    }

    /// Made under another name, so that a segment is never too short.
    fn new_segment(&self, path: &Path) -> io::Result<File> {
        let fresh = self.path("new");
        let made = || {
            let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&fresh)?;
            file.write_all(&zeroes())?;
            file.sync_all()?;
            fs::rename(&fresh, path)?;
            File::open(&self.folder)?.sync_all()?;
            Ok(file)
        };
        made().inspect_err(|_| {
            let _ = fs::remove_file(&fresh);
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// A segment whose records have at least this number; what was known of it, if that is as good. `None` if a server empties it for a
/// new use now.
fn part(path: &Path, from: u64, known: Option<Part>, lock: Lock) -> io::Result<Option<Part>> {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let is_known = |part: &Part| part.modified.is_some() && part.modified == modified && part.from == from;
    if let Some(part) = known.filter(|part| is_known(part) && (part.lock == Lock::Held || lock == Lock::Free)) {
        return Ok(Some(part));
    }
    let modified = modified.filter(|at| at.elapsed().is_ok_and(|age| age > SETTLES_AFTER));
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => Ok(Some(Part { modified, from, lock, scanned: scan(from, &bytes?) })),
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

fn zeroes() -> Vec<u8> {
    vec![0; usize::try_from(SEGMENT_BYTES).expect("a small number")]
}

fn record(entry: &EventEntry, number: u64) -> LogRecord {
    match entry {
        EventEntry::Event(draft) => {
            let level = draft.level.unwrap_or_else(|| Severity::of(&draft.event));
            // A record that is read again has the level in one place only.
            let what = Draft { level: None, ..draft.clone() };
            LogRecord::Event(Event { number, level, what, acknowledged: false })
        }
        EventEntry::Acknowledge { from, to } => {
            let at_seconds = openraid_sys::clock::wall_seconds();
            LogRecord::Acknowledged { number, at_seconds, from: *from, to: *to }
        }
    }
}

/// The records of a segment, the first of which has at least this number.
fn scan(first: u64, bytes: &[u8]) -> SegmentContent {
    let mut scanned = SegmentContent::default();
    let (mut at, mut passed, mut is_log) = (0, 0, false);
    while let Some(len) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[at..at + len];
        at += len + 1;
        let expected = scanned.records.last().map_or(first, |last: &LogRecord| last.number() + 1);
        let record = LogRecord::of(line);
        is_log |= record.is_some();
        match record.filter(|record| record.number() >= expected) {
            Some(record) => {
                scanned.records.push(record);
                scanned.damaged += passed;
                (scanned.end, passed) = (at as u64, 0);
            }
            None => passed += 1,
        }
    }
    if !is_log && bytes.iter().any(|byte| *byte != 0) {
        scanned.unreadable = true;
        scanned.damaged = passed.max(1);
    }
    scanned
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("openraid-events-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            Self(folder)
        }
        fn log(&self, segments_max: usize) -> EventLog {
            EventLog { folder: self.0.clone(), segments_max }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn event(text: &str) -> EventEntry {
        EventEntry::Event(Draft { event: "Fail".into(), text: text.into(), ..Draft::default() })
    }

    /// The given number of events, numbered from zero; each takes 10 kB.
    fn long_events(count: u64) -> Vec<EventEntry> {
        let long = "x".repeat(10_000);
        (0..count).map(|nth| event(&format!("{nth} {long}"))).collect()
    }

    fn texts(log: &EventLog) -> Vec<String> {
        log.read().unwrap().events.into_iter().map(|event| event.what.text).collect()
    }

    #[test]
    fn appended_events_are_read_in_order_and_acknowledged_once() {
        let folder = Folder::new("order");
        let log = folder.log(4);
        assert_eq!(log.read().unwrap(), LogContent::default());
        log.append(&[event("a"), event("b")]).unwrap();
        folder.log(4).append(&[event("c"), EventEntry::Acknowledge { from: 1, to: 2 }, event("d")]).unwrap();
        let content = log.read().unwrap();
        let found: Vec<_> =
            content.events.iter().map(|event| (event.number, event.what.text.as_str(), event.acknowledged)).collect();
        assert_eq!(found, [(1, "a", true), (2, "b", true), (3, "c", false), (5, "d", false)]);
        assert_eq!(content.damaged, 0);
    }

    #[test]
    fn a_reader_that_comes_again_sees_what_a_new_one_sees() {
        let folder = Folder::new("again");
        let log = folder.log(3);
        let long = "x".repeat(10_000);
        let mut seen = ReadSegments::default();
        for round in 0..100 {
            log.append(&[event(&format!("{round} {long}")), event("short")]).unwrap();
            if round % 7 == 0 {
                log.append(&[EventEntry::Acknowledge { from: round, to: round + 3 }]).unwrap();
            }
            assert_eq!(log.read_again(&mut seen).unwrap(), log.read().unwrap(), "{round}");
        }
        assert_eq!(seen.0.len(), 3, "segments that are gone are forgotten");
    }

    #[test]
    fn a_log_is_bounded_and_the_newest_stay() {
        let folder = Folder::new("bounded");
        let log = folder.log(3);
        log.append(&long_events(150)).unwrap();
        let files: Vec<u64> =
            fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(files.iter().filter(|len| **len == SEGMENT_BYTES).count(), 3);
        assert!(files.iter().sum::<u64>() == 3 * SEGMENT_BYTES, "{files:?}");
        let content = log.read().unwrap();
        let numbers: Vec<u64> = content.events.iter().map(|event| event.number).collect();
        assert_eq!(numbers.last(), Some(&150));
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1) && numbers.len() > 50, "{numbers:?}");
        assert_eq!(content.damaged, 0);
    }

    #[test]
    fn the_oldest_segment_is_used_again_where_no_new_one_can_be_made() {
        let folder = Folder::new("full");
        let log = folder.log(16);
        log.append(&[event("first")]).unwrap();
        // A folder has the name of a new segment's file: making the file fails, as on a full disk.
        fs::create_dir(folder.0.join("new")).unwrap();
        log.append(&long_events(60)).unwrap();
        log.append(&[event("last")]).unwrap();
        let content = log.read().unwrap();
        assert_eq!(content.events.last().map(|event| (event.number, event.what.text.as_str())), Some((62, "last")));
        assert_eq!(log.segments().unwrap().len(), 1);
    }

    #[test]
    fn what_a_writer_has_half_done_is_neither_damage_nor_a_hole() {
        let folder = Folder::new("half");
        let log = folder.log(4);
        log.append(&long_events(60)).unwrap();
        let whole = log.read().unwrap();
        let paths: Vec<PathBuf> = log.segments().unwrap().into_iter().map(|(_, path)| path).collect();
        assert_eq!((whole.events.len(), whole.damaged, paths.len()), (60, 0, 3));
        let bytes = fs::read(&paths[2]).unwrap();
        let begin_missing = [&[0; 4096], &bytes[4096..]].concat();
        let states: [&dyn Fn(); 2] = [&|| fs::write(&paths[2], &begin_missing).unwrap(), &|| {
            fs::rename(&paths[1], folder.0.join("moved")).unwrap()
        }];
        let mends: [&dyn Fn(); 2] =
            [&|| fs::write(&paths[2], &bytes).unwrap(), &|| fs::rename(folder.0.join("moved"), &paths[1]).unwrap()];
        for (half_done, finish) in states.into_iter().zip(mends) {
            let lock = File::open(folder.0.join("lock")).unwrap();
            lock.lock().unwrap();
            half_done();
            thread::scope(|scope| {
                let reader = scope.spawn(|| log.read().unwrap());
                thread::sleep(Duration::from_millis(100));
                finish();
                drop(lock);
                assert_eq!(reader.join().unwrap(), whole);
            });
        }
        // The same state without a writer is damage.
        fs::write(&paths[2], &begin_missing).unwrap();
        assert_eq!(log.read().unwrap().damaged, 1);
        fs::remove_file(folder.0.join("lock")).unwrap();
        assert_eq!(log.read().unwrap().damaged, 1);
    }

    #[test]
    fn torn_and_damaged_lines_cost_themselves_only() {
        let folder = Folder::new("torn");
        let log = folder.log(4);
        log.append(&[event("a"), event("b"), event("c")]).unwrap();
        let (_, path) = log.segments().unwrap().pop().unwrap();
        let bytes = fs::read(&path).unwrap();
        let len = bytes.iter().position(|byte| *byte == 0).unwrap();
        for cut in 0..len {
            // A power cut: the bytes after this one were never written.
            let mut torn = bytes.clone();
            torn[cut..].fill(0);
            fs::write(&path, &torn).unwrap();
            log.append(&[event("after the cut")]).unwrap();
            let found = texts(&log);
            assert_eq!(found.last().map(String::as_str), Some("after the cut"), "{cut}");
            assert!(found.len() <= 4 && found[..found.len() - 1].iter().zip(["a", "b", "c"]).all(|(a, b)| a == b));
        }
        // A damaged bit in the middle.
        let mut bad = bytes.clone();
        bad[len / 2] ^= 1;
        fs::write(&path, &bad).unwrap();
        let content = log.read().unwrap();
        assert_eq!((texts(&log), content.damaged), (vec!["a".to_owned(), "c".to_owned()], 1));
        log.append(&[event("d")]).unwrap();
        assert_eq!(texts(&log), ["a", "c", "d"]);
    }

    #[test]
    fn a_segment_that_was_not_emptied_to_its_end_shows_nothing_of_its_past() {
        let folder = Folder::new("reused");
        let log = folder.log(4);
        log.append(&[event("a"), event("b"), event("c")]).unwrap();
        let (_, path) = log.segments().unwrap().pop().unwrap();
        // Renamed for a new use, and then a power cut.
        fs::rename(&path, folder.0.join(format!("events-{:020}.log", 4))).unwrap();
        assert_eq!(texts(&log), [""; 0]);
        log.append(&[event("d")]).unwrap();
        let numbers: Vec<u64> = log.read().unwrap().events.iter().map(|event| event.number).collect();
        assert_eq!((texts(&log), numbers), (vec!["d".to_owned()], vec![4]));
    }
}
