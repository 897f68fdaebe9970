//! Imitates applications: the disk requests of programs whose recordings are not published.
//!
//! A session has a working set of places (the files and scratch space that the program has open) and does runs. For
//! each run it chooses a place and reads or writes some requests in sequence there. Recently used places are chosen
//! more often than others, which makes a controller's cache effective. From time to time the session closes a file and
//! opens another. A write records that, and NTFS reads the description of the next file from anywhere in its MFT. If the
//! profile of the host says how much of the MFT it keeps in memory, the description is that of the file at the session's
//! next place, and is read only if the host does not have its page.
//! FAT32's directories and table are small and stay in the host's memory. The numbers are guesses about the programs.
//! The numbers for locality are calibrated on one array (RAID 0, NTFS, docs/lab/calibration.md); everything else is
//! prediction.

use super::page_cache::PageCache;
use super::volume::{PAGE, PARTITION_BYTES, RECORD_BYTES};
use crate::cell::{FileSystem, TraceApp};
use crate::load::{LoadRequest, LoadSource, LoadStep};
use crate::target::IoKind;
use openraid_sim::Random;
use openraid_units::Bytes;

/// The disk requests of an application.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AppModel {
    /// Size of its working set in bytes.
    pub working_set: u64,
    /// Distance in bytes between the starts of places in the set.
    pub place_bytes: u64,
    /// Minimum and maximum size of its requests in bytes; the size doubles between both.
    pub request: (u32, u32),
    /// Mean number of requests in a run.
    pub run: u32,
    /// Percentage of runs that read.
    pub reads: u8,
    /// Percentage of runs in the quarter of places that is used most.
    pub hot: u8,
    /// Number of bytes between two openings of a file.
    pub file_bytes: u64,
}

impl AppModel {
    /// The model of an application.
    #[must_use]
    pub const fn of(app: TraceApp) -> Self {
        const K: u32 = 1 << 10;
        const M: u64 = 1 << 20;
        match app {
            TraceApp::Winmark99 => Self {
                working_set: 1300 * M,
                place_bytes: M / 4,
                request: (4 * K, 32 * K),
                run: 4,
                reads: 65,
                hot: 50,
                file_bytes: M,
            },
            TraceApp::Photoshop40 => Self {
                working_set: 450 * M,
                place_bytes: M,
                request: (32 * K, 64 * K),
                run: 12,
                reads: 50,
                hot: 40,
                file_bytes: 3 * M / 4,
            },
            TraceApp::Soundforge40 => Self {
                working_set: 600 * M,
                place_bytes: 4 * M,
                request: (64 * K, 64 * K),
                run: 96,
                reads: 55,
                hot: 60,
                file_bytes: 9 * M,
            },
            TraceApp::Visualcpp50 => Self {
                working_set: 170 * M,
                place_bytes: M / 2,
                request: (4 * K, 32 * K),
                run: 16,
                reads: 60,
                hot: 55,
                file_bytes: M,
            },
        }
    }
}

/// Size of the MFT and the indices of NTFS, which begin at a third of the partition. NTFS reserves an eighth of the
/// partition for them.
const DESCRIPTIONS_BYTES: u64 = PARTITION_BYTES / 8 / 4096 * 4096;
/// Start of the MFT; NTFS's log is before it.
const DESCRIPTIONS_START: u64 = PARTITION_BYTES / 3 / 4096 * 4096;
/// Size of NTFS's log in bytes.
const LOG_BYTES: u64 = 64 << 20;
/// Start of the first working set.
const BASE_BYTES: u64 = 256 << 20;
/// Gap between one working set and the next.
const GAP_BYTES: u64 = 64 << 20;
/// Minimum scale of a session, in thousandths. A smaller set would have too few places.
const SCALE_MIN: u64 = 4;
/// The scale of a complete session.
const WHOLE: u64 = 1000;

/// Positions of the parts of a session, on a target that may be too small for all of them in full size.
#[derive(Clone, Copy)]
struct Layout {
    base: u64,
    gap: u64,
    descriptions_start: u64,
    descriptions: u64,
    log: u64,
}

impl Layout {
    /// The layout with every part scaled to `scale` thousandths.
    fn of(model: &AppModel, scale: u64) -> Self {
        let part = |bytes: u64| if scale == WHOLE { bytes } else { (bytes / WHOLE * scale / 4096).max(1) * 4096 };
        Self {
            base: part(BASE_BYTES),
            gap: model.working_set.next_multiple_of(1 << 20) + part(GAP_BYTES),
            descriptions_start: part(DESCRIPTIONS_START),
            descriptions: part(DESCRIPTIONS_BYTES),
            log: part(LOG_BYTES),
        }
    }

    fn room(self, users: u16) -> u64 {
        (self.descriptions_start + self.descriptions).max(self.base + u64::from(users) * self.gap)
    }
}

impl AppModel {
    /// The model with its working set scaled to this number of thousandths: whole places, and at least four.
    fn scaled(self, scale: u64) -> Self {
        if scale == WHOLE {
            return self;
        }
        let places = self.working_set / self.place_bytes * scale / WHOLE;
        Self { working_set: places.max(4) * self.place_bytes, ..self }
    }
}

struct User {
    random: Random,
    base: u64,
    at: u64,
    left: u32,
    kind: IoKind,
    len: u32,
    /// Number of bytes since a file was opened.
    since: u64,
    /// Must the description of the next file be read before its data?
    looks: bool,
}

/// The users of an application.
pub struct AppUsers {
    model: AppModel,
    layout: Layout,
    fs: FileSystem,
    users: Vec<User>,
    notes: u64,
    /// The pages of the MFT that the host has in memory, if it is known how many it keeps.
    kept: Option<PageCache>,
}

impl AppUsers {
    /// A session with this number of users, each with a working set of his own, scaled to this number of thousandths.
    #[must_use]
    pub fn new(app: TraceApp, fs: FileSystem, users: u16, seed: u64, scale: u64) -> Self {
        let model = AppModel::of(app).scaled(scale);
        let layout = Layout::of(&model, scale);
        let user = |number: u16| User {
            random: Random::derived(seed, u64::from(number)),
            base: layout.base + u64::from(number) * layout.gap,
            at: 0,
            left: 0,
            kind: IoKind::Read,
            len: 4096,
            since: 0,
            looks: false,
        };
        Self { model, layout, fs, users: (0..users).map(user).collect(), notes: 0, kept: None }
    }

    /// The session on a host that keeps this much of NTFS's file descriptions in its memory.
    #[must_use]
    pub fn with_kept(mut self, room: Option<Bytes>) -> Self {
        self.kept = room.map(|room| PageCache::new(room.get() / PAGE));
        self
    }

    /// Number of bytes that this number of users needs on the target.
    #[must_use]
    pub fn room(app: TraceApp, users: u16) -> u64 {
        Layout::of(&AppModel::of(app), WHOLE).room(users)
    }

    /// Number of bytes that this number of users needs at the smallest scale.
    #[must_use]
    pub fn room_least(app: TraceApp, users: u16) -> u64 {
        Layout::of(&AppModel::of(app).scaled(SCALE_MIN), SCALE_MIN).room(users)
    }

    /// The largest scale, in thousandths, at which this number of users fits on a target of this size. None if even the
    /// minimum scale does not fit.
    #[must_use]
    pub fn scale_for(app: TraceApp, users: u16, capacity: u64) -> Option<u64> {
        let fits = |scale: &u64| Layout::of(&AppModel::of(app).scaled(*scale), *scale).room(users) <= capacity;
        (SCALE_MIN..=WHOLE).rev().find(fits)
    }

    /// Number of bytes after which the content of caches is steady: every user has then used his whole set twice.
    #[must_use]
    pub fn start_bytes(&self) -> u64 {
        2 * self.model.working_set * self.users.len() as u64
    }

    /// The write that records that a file was closed and another opened. NTFS writes to its log before the MFT, FAT32
    /// to its table at the start of the partition.
    fn note(&mut self) -> LoadRequest {
        self.notes += 1;
        let Layout { base, descriptions_start, log, .. } = self.layout;
        let table = base.min(BASE_BYTES) / 4096;
        let offset = match self.fs {
            FileSystem::Ntfs => descriptions_start - log + self.notes * 4096 % log,
            FileSystem::Fat32 => (table / 256 + self.notes % (table / 4).clamp(1, 64)) * 4096,
        };
        LoadRequest { kind: IoKind::Write, offset, len: 4096 }
    }
}

impl User {
    fn begin(&mut self, model: &AppModel) {
        let places = model.working_set / model.place_bytes;
        let hot = self.random.chance(u64::from(model.hot), 100);
        let place = if hot { self.random.below(places.div_ceil(4)) } else { self.random.below(places) };
        let doublings = u64::from((model.request.1 / model.request.0).ilog2());
        self.len = model.request.0 << self.random.below(doublings + 1);
        // A run begins at a random request of its place.
        let steps = model.place_bytes / u64::from(self.len);
        self.at = place * model.place_bytes + self.random.below(steps.max(1)) * u64::from(self.len);
        self.left = 1 + u32::try_from(self.random.below(u64::from(2 * model.run - 1))).expect("a short run");
        let reads = self.random.chance(u64::from(model.reads), 100);
        self.kind = if reads { IoKind::Read } else { IoKind::Write };
    }

    /// The page of the MFT that NTFS reads before a file: a random one, or one of an index.
    fn any_page(&mut self, layout: Layout) -> u64 {
        self.random.below(layout.descriptions / PAGE)
    }

    /// The page of the MFT that describes the file at this user's place. The files of all users were made one after the
    /// other, so their records follow each other.
    fn page_of_file(&self, model: &AppModel, layout: Layout, number: u16) -> u64 {
        let files = model.working_set.div_ceil(model.file_bytes);
        let record = u64::from(number) * files + self.at / model.file_bytes;
        record * RECORD_BYTES / PAGE % (layout.descriptions / PAGE)
    }
}

impl LoadSource for AppUsers {
    fn next(&mut self, worker: u16) -> LoadStep {
        let (model, fs, layout) = (self.model, self.fs, self.layout);
        let user = &mut self.users[usize::from(worker)];
        if user.looks {
            user.looks = false;
            let (page, found) = match &mut self.kept {
                None => (user.any_page(layout), false),
                Some(kept) => {
                    let page = user.page_of_file(&model, layout, worker);
                    (page, kept.uses(page))
                }
            };
            if !found {
                let offset = layout.descriptions_start + page * PAGE;
                return LoadStep::Ask(LoadRequest { kind: IoKind::Read, offset, len: 4096 });
            }
        }
        if user.left == 0 {
            user.begin(&model);
            if user.since >= model.file_bytes {
                user.since -= model.file_bytes;
                // The directories and the table of FAT32 are small, so the host keeps them in memory.
                user.looks = fs == FileSystem::Ntfs;
                return LoadStep::Ask(self.note());
            }
        }
        user.left -= 1;
        if user.at + u64::from(user.len) > model.working_set {
            user.at = 0;
        }
        let request = LoadRequest { kind: user.kind, offset: user.base + user.at, len: user.len };
        user.at += u64::from(user.len);
        user.since += u64::from(user.len);
        LoadStep::Ask(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_session_stays_in_its_room_and_has_its_shares() {
        for app in TraceApp::ALL {
            for fs in FileSystem::ALL {
                let mut session = AppUsers::new(*app, *fs, 2, 7, WHOLE);
                let room = AppUsers::room(*app, 2);
                let (mut reads, mut notes) = (0, 0);
                let count = 40_000;
                for number in 0..count {
                    let LoadStep::Ask(request) = session.next(number % 2) else { panic!("it never ends") };
                    assert!(request.offset + u64::from(request.len) <= room);
                    assert!(request.offset.is_multiple_of(4096));
                    let noted = request.offset < 256 << 20 || request.offset >= DESCRIPTIONS_START - LOG_BYTES;
                    notes += u32::from(noted);
                    reads += u32::from(!noted && request.kind == IoKind::Read);
                }
                let model = AppModel::of(*app);
                let share = f64::from(reads) / f64::from(u32::from(count) - notes);
                assert!((share - f64::from(model.reads) / 100.0).abs() < 0.05, "{app}: {share}");
            }
        }
    }

    /// The reads of the MFT in a session of two users with this much room on its host: by page, and the openings of
    /// files.
    fn reads_of_descriptions(app: TraceApp, room: Bytes) -> (BTreeMap<u64, u64>, u64) {
        let mut session = AppUsers::new(app, FileSystem::Ntfs, 2, 7, WHOLE).with_kept(Some(room));
        let (mut pages, mut openings) = (BTreeMap::new(), 0);
        for number in 0..400_000u32 {
            let LoadStep::Ask(request) = session.next(u16::try_from(number % 2).unwrap()) else {
                panic!("it never ends")
            };
            let log = DESCRIPTIONS_START - LOG_BYTES..DESCRIPTIONS_START;
            openings += u64::from(log.contains(&request.offset));
            if request.offset >= DESCRIPTIONS_START {
                *pages.entry((request.offset - DESCRIPTIONS_START) / PAGE).or_default() += 1;
            }
        }
        (pages, openings)
    }

    #[test]
    fn descriptions_are_those_of_the_sessions_files_and_are_read_once_if_the_host_keeps_them() {
        for app in TraceApp::ALL {
            let model = AppModel::of(*app);
            let files = 2 * model.working_set.div_ceil(model.file_bytes);
            let all = (files * RECORD_BYTES).div_ceil(PAGE);
            let (pages, openings) = reads_of_descriptions(*app, Bytes(all * PAGE));
            assert!(pages.len() as u64 <= all && pages.values().all(|reads| *reads == 1), "{app}: {pages:?}");
            // A host that keeps nothing reads a page for each opening but the last of a user, which is still to come.
            let (pages, without) = reads_of_descriptions(*app, Bytes::ZERO);
            assert!(openings > 4 * all && without - pages.values().sum::<u64>() <= 2, "{app}: {openings} {without}");
        }
    }

    #[test]
    fn hot_places_have_hot_descriptions() {
        // One file has four places and one page has four files, so the first quarter of each user's pages is hot.
        let app = TraceApp::Winmark99;
        let model = AppModel::of(app);
        let (pages, _) = reads_of_descriptions(app, Bytes::ZERO);
        let (files, all) = (model.working_set / model.file_bytes, pages.values().sum::<u64>() as f64);
        let hot = |page: u64| page * PAGE / RECORD_BYTES % files < files / 4;
        let share = pages.iter().filter(|(page, _)| hot(**page)).map(|(_, reads)| reads).sum::<u64>() as f64 / all;
        let expected = 0.5 + 0.5 / 4.0;
        let error = (expected * (1.0 - expected) / all).sqrt();
        // A page at an end of a quarter may belong to both sides of it.
        let edge = 4.0 * expected / pages.len() as f64;
        assert!((share - expected).abs() < 3.0 * error + edge, "{share}");
    }

    #[test]
    fn a_session_on_a_small_target_is_the_same_with_smaller_sets() {
        for app in TraceApp::ALL {
            for capacity in [64 << 20, 900 << 20, 40 << 30u64] {
                let Some(scale) = AppUsers::scale_for(*app, 1, capacity) else { continue };
                assert_eq!(scale == WHOLE, AppUsers::room(*app, 1) <= capacity, "{app} {capacity}");
                let mut session = AppUsers::new(*app, FileSystem::Ntfs, 1, 7, scale);
                for _ in 0..20_000 {
                    let LoadStep::Ask(request) = session.next(0) else { panic!("it never ends") };
                    assert!(request.offset + u64::from(request.len) <= capacity && request.offset.is_multiple_of(4096));
                }
            }
        }
        assert!(AppUsers::scale_for(TraceApp::Winmark99, 1, 64 << 20).is_some_and(|scale| scale < 100));
        assert_eq!(AppUsers::scale_for(TraceApp::Winmark99, 1, 1 << 20), None);
    }
}
