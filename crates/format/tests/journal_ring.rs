//! Compares logs with a list of entries. The logs run around rings of many sizes, are cut off at any point, and are
//! damaged.
//!
//! The oracle keeps the intended contents of each entry and compares bytes. It knows no checksums and no headers. Its
//! only rule for positions is "the next position, or the start if the entry does not fit".

#[path = "common/journal.rs"]
mod journal;

use journal::{commit, put, small, wrap, Random, CONTROLLER, JOURNAL};
use openraid_format::{
    choose_journal_mirror, scan_ring, EntryFault, JournalError, JournalSuperblock, LogPlace, RingSector, ScanOutcome,
    SuperblockCopy, Uuid,
};
use openraid_units::{BlockSize, Sectors};

/// The intended contents of one entry.
#[derive(Clone)]
struct ExpectedEntry {
    sequence: u64,
    position: u64,
    /// Header, payload, and padding up to the next header.
    bytes: Vec<u8>,
    len: u64,
    tail: LogPlace,
    promised: u64,
    filler: bool,
}

/// A writer that follows the rules, and a medium.
struct Model {
    random: Random,
    superblock: JournalSuperblock,
    /// An earlier superblock of this epoch.
    stale: JournalSuperblock,
    image: Vec<u8>,
    /// Entries from the superblock's tail to the head.
    log: Vec<ExpectedEntry>,
    head: LogPlace,
    promised: u64,
}

impl Model {
    fn new(sectors: u64, seed: u64) -> Self {
        let superblock = small(sectors);
        let mut random = Random(seed);
        // The earlier content of the device is random.
        let image = random.bytes(usize::try_from(sectors * 512).unwrap());
        let head = superblock.tail;
        Self { random, stale: superblock.clone(), superblock, image, log: Vec::new(), head, promised: 0 }
    }

    fn sectors(&self) -> u64 {
        self.superblock.ring_sectors.get()
    }

    fn tail(&self) -> LogPlace {
        self.log.last().map_or(self.superblock.tail, |last| last.tail)
    }

    /// A possible tail for a new entry: the place of any durable entry that is not before the last tail.
    fn new_tail(&mut self) -> LogPlace {
        let old = self.tail();
        let places: Vec<LogPlace> = self
            .log
            .iter()
            .filter(|meant| meant.sequence >= old.sequence && meant.sequence <= self.promised)
            .map(|meant| LogPlace { sequence: meant.sequence, position: RingSector(meant.position) })
            .chain((self.promised + 1 == self.head.sequence).then_some(self.head))
            .filter(|place| place.sequence >= old.sequence)
            .collect();
        match self.random.below(3) {
            0 if !places.is_empty() => places[usize::try_from(self.random.below(places.len() as u64)).unwrap()],
            _ => old,
        }
    }

    /// Sectors from the head to the superblock's tail.
    fn room(&self) -> u64 {
        self.sectors() - self.log.iter().map(|meant| meant.len).sum::<u64>()
    }

    /// Makes an entry; `None` if the ring has no room for it.
    fn make(&mut self) -> Option<ExpectedEntry> {
        let most = (self.sectors() / 3).min(40);
        let payload = self.random.below(most + 1);
        let ring = self.superblock.ring();
        let left = self.sectors() - self.head.position.0;
        let whole = 8 + payload.div_ceil(8) * 8;
        let filler = whole > left;
        let len = if filler { left } else { whole };
        if len > self.room() {
            return None;
        }
        let tail = self.new_tail();
        let epoch = self.superblock.epoch;
        let bytes = if filler {
            wrap(&ring, self.head, epoch, self.promised, tail).1
        } else {
            let payload = self.random.bytes(usize::try_from(payload * 512).unwrap());
            commit(&ring, self.head, epoch, self.promised, tail, &payload).1
        };
        let LogPlace { sequence, position } = self.head;
        self.head = LogPlace { sequence: sequence + 1, position: RingSector((position.0 + len) % self.sectors()) };
        Some(ExpectedEntry { sequence, position: position.0, bytes, len, tail, promised: self.promised, filler })
    }

    /// Moves the superblock's tail forward, so that the ring before it can be used again.
    fn move_superblock_tail(&mut self) {
        let tail = self.tail();
        if tail.sequence > self.superblock.tail.sequence {
            self.superblock.tail = tail;
            self.superblock.generation += 1;
            self.log.retain(|meant| meant.sequence >= tail.sequence);
        }
    }

    /// Writes some entries in sequence; all are durable and acknowledged.
    fn write(&mut self, count: u64) {
        for _ in 0..count {
            let Some(meant) = self.make() else {
                self.release();
                continue;
            };
            put(&mut self.image, RingSector(meant.position), &meant.bytes);
            self.promised = meant.sequence;
            self.log.push(meant);
            if self.random.below(4) == 0 {
                self.move_superblock_tail();
            }
        }
    }

    /// The ring is full. After a destage of everything only the superblock says so. An older superblock would lead to
    /// entries that are about to be overwritten.
    fn release(&mut self) {
        self.superblock.tail = self.head;
        self.superblock.generation += 1;
        self.log.clear();
        self.stale = self.superblock.clone();
    }

    /// Writes some entries at the same time and cuts the power: each of their sectors is old or new.
    fn cut(&mut self) {
        let count = self.random.below(4);
        for _ in 0..count {
            let Some(meant) = self.make() else { break };
            let chance = self.random.below(4);
            for (sector, bytes) in meant.bytes.chunks(512).enumerate() {
                if chance == 0 || self.random.below(8) < chance * 2 {
                    put(&mut self.image, RingSector(meant.position + sector as u64), bytes);
                }
            }
            self.log.push(meant);
        }
    }

    fn on_medium(&self, meant: &ExpectedEntry, len: usize) -> bool {
        let at = usize::try_from(meant.position * 512).unwrap();
        self.image[at..at + len] == meant.bytes[..len]
    }

    /// Number of complete entries in the list that are on the medium before the first incomplete one.
    fn whole(&self) -> usize {
        self.log.iter().take_while(|meant| self.on_medium(meant, meant.bytes.len())).count()
    }

    fn scan(&self, superblock: &JournalSuperblock) -> (ScanOutcome, Vec<(u64, u64, Vec<u8>)>) {
        let mut found = Vec::new();
        let outcome = scan_ring(superblock, &self.image, |entry, payload| {
            let (sequence, position) = (entry.header.sequence, entry.header.position.0);
            found.push((sequence, position, payload.to_vec()));
        });
        found.retain(|&(sequence, ..)| sequence >= outcome.tail.sequence);
        (outcome, found)
    }

    fn expect(&self, from: u64, count: usize) -> Vec<(u64, u64, Vec<u8>)> {
        let needed = self.log[..count].iter().filter(|meant| meant.sequence >= from);
        needed.map(|meant| (meant.sequence, meant.position, meant.bytes[4096..].to_vec())).collect()
    }

    /// An older superblock of this epoch leads to the same head, even if the position in it was overwritten.
    fn check_from_stale(&self, head: LogPlace, whole: usize) {
        let (outcome, mut found) = self.scan(&self.stale);
        assert_eq!((outcome.head, outcome.verdict()), (head, Ok(())));
        // The scan may also find entries before the newer superblock's tail. The list no longer has them.
        found.retain(|&(sequence, ..)| sequence >= self.superblock.tail.sequence);
        assert!(found == self.expect(outcome.tail.sequence, whole), "other entries than were meant before {head:?}");
    }

    /// After a cut the log must equal the list up to the first incomplete entry. Then the journal is opened again.
    fn check_and_open(&mut self) {
        let whole = self.whole();
        let (outcome, found) = self.scan(&self.superblock);
        let tail = self.log[..whole].last().map_or(self.superblock.tail, |last| last.tail);
        let head = self
            .log
            .get(whole)
            .map_or(self.head, |torn| LogPlace { sequence: torn.sequence, position: RingSector(torn.position) });
        assert_eq!((outcome.head, outcome.tail, outcome.entries), (head, tail, whole as u64));
        assert!(!outcome.restarted);
        assert_eq!(outcome.verdict(), Ok(()));
        assert!(found == self.expect(tail.sequence, whole), "other entries than were meant before {head:?}");
        self.check_from_stale(head, whole);

        self.log.truncate(whole);
        self.head = head;
        self.promised = head.sequence - 1;
        self.superblock.epoch = outcome.epoch + 1;
        self.superblock.epoch_start = head.sequence;
        self.superblock.generation += 1;
        self.stale = self.superblock.clone();
    }
}

#[test]
fn after_any_cut_the_log_has_the_complete_entries() {
    let mut cuts = 0;
    let mut fillers = 0;
    for sectors in (24..=400).step_by(8) {
        let mut model = Model::new(sectors, sectors);
        for _ in 0..120 {
            let count = model.random.below(12);
            model.write(count);
            fillers += model.log.iter().filter(|meant| meant.filler).count();
            model.cut();
            model.check_and_open();
            cuts += 1;
        }
        let rounds = model.head.sequence * 8 / sectors;
        assert!(rounds >= 3, "the ring of {sectors} sectors was written {rounds} times at most");
    }
    assert!(cuts > 5_000 && fillers > 500, "{cuts} cuts, {fillers} fillers");
}

#[test]
fn a_promised_entry_that_is_missing_is_named_unless_no_later_header_needs_it() {
    let (mut named, mut passed, mut last) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut model = Model::new(24 + 8 * (seed % 60), seed);
        let count = 1 + model.random.below(30);
        model.write(count);
        if model.log.is_empty() {
            continue;
        }
        let victim = usize::try_from(model.random.below(model.log.len() as u64)).unwrap();
        let lost = model.log[victim].clone();
        let bit = model.random.below(lost.bytes.len() as u64 * 8);
        let at = usize::try_from(lost.position * 512 + bit / 8).unwrap();
        match model.random.below(3) {
            0 => model.image[at / 512 * 512..][..512].fill(0),
            _ => model.image[at] ^= 1 << (bit % 8),
        }
        if model.on_medium(&lost, lost.bytes.len()) {
            continue;
        }
        let (outcome, found) = model.scan(&model.superblock);
        let after = &model.log[victim + 1..];
        let needed = after.iter().all(|later| later.tail.sequence <= lost.sequence);
        let promised = after.iter().any(|later| later.promised >= lost.sequence);
        match (needed, promised) {
            (true, true) => {
                let Err(JournalError::Damaged { sequence, at, sectors, .. }) = outcome.verdict() else {
                    panic!("seed {seed}: entry {} is missing and {outcome:?}", lost.sequence)
                };
                assert_eq!((sequence, at.get()), (lost.sequence, lost.position + 8));
                assert!(sectors >= Sectors(8) && sectors.get() <= lost.len);
                named += 1;
            }
            (false, _) => {
                assert!(outcome.restarted, "seed {seed}");
                assert_eq!((outcome.head, outcome.verdict()), (model.head, Ok(())));
                assert!(found == model.expect(outcome.tail.sequence, model.log.len()), "seed {seed}");
                passed += 1;
            }
            (true, false) => {
                assert_eq!((outcome.head.sequence, outcome.verdict()), (lost.sequence, Ok(())));
                last += 1;
            }
        }
    }
    assert!(named > 500 && passed > 50 && last > 50, "{named} named, {passed} passed over, {last} at the end");
}

/// Two logs that differ from an entry on. The older one is longer, and was in the ring before the newer one.
#[test]
fn headers_of_a_log_that_was_given_up_neither_convict_the_newer_one_nor_move_its_tail() {
    let at = |sequence: u64| LogPlace { sequence, position: RingSector((sequence - 1) * 8) };
    for (moved, damaged) in [(1, false), (7, false), (1, true)] {
        let mut superblock = small(8 * 40);
        let (ring, tail, old) = (superblock.ring(), superblock.tail, superblock.epoch);
        let mut image = vec![0; 40 * 4096];
        // Both have entries 1 to 5. The older log also has 6 to 20, and moves its tail to `moved`.
        for number in 1..=20 {
            let place = if number > 5 && moved > 1 { at(moved.min(number)) } else { tail };
            let (_, bytes) = commit(&ring, at(number), old, number - 1, place, &[]);
            put(&mut image, at(number).position, &bytes);
        }
        superblock.epoch = old + 1;
        superblock.epoch_start = 6;
        for number in 6..=8 {
            let (_, bytes) = commit(&ring, at(number), old + 1, number - 1, tail, &[]);
            put(&mut image, at(number).position, &bytes);
        }
        if damaged {
            // Only the headers after entry 5 show that it was acknowledged. Those of the older log show it, too,
            // because it was acknowledged before the logs differ.
            for number in 5..=8 {
                put(&mut image, at(number).position, &[0; 4096]);
            }
        }
        let mut found = Vec::new();
        let outcome = scan_ring(&superblock, &image, |entry, _| found.push(entry.header.sequence));
        if damaged {
            assert!(
                matches!(outcome.verdict(), Err(JournalError::Damaged { sequence: 5, promised: 5, .. })),
                "{outcome:?}"
            );
        } else {
            assert_eq!(found, [1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!((outcome.head, outcome.tail, outcome.restarted), (at(9), tail, false));
            assert_eq!((outcome.promised, outcome.verdict()), (7, Ok(())));
        }
    }
}

#[test]
fn a_device_that_ends_at_any_sector_loses_entries_from_the_end_and_this_is_reported() {
    let mut model = Model::new(400, 1);
    while let Some(meant) = model.make().filter(|meant| !meant.filler) {
        put(&mut model.image, RingSector(meant.position), &meant.bytes);
        model.promised = meant.sequence;
        model.log.push(meant);
    }
    let first = model.log[0].sequence;
    assert!(model.log.len() > 5);
    for sectors in 0..400usize {
        let mut count = 0;
        let outcome = scan_ring(&model.superblock, &model.image[..sectors * 512], |_, _| count += 1);
        let whole = model
            .log
            .iter()
            .take_while(|meant| usize::try_from(meant.position).unwrap() * 512 + meant.bytes.len() <= sectors * 512);
        let whole = whole.count();
        assert_eq!((count, outcome.head.sequence), (whole, first + whole as u64));
        if whole < model.log.len() {
            assert_eq!(outcome.stop, EntryFault::Unreadable);
        }
        // The content after the cut cannot be known here; the size of the device shows the cut (see the tests of the
        // superblock).
        assert_eq!(outcome.verdict(), Ok(()));
    }
}

/// A second device with the same journal.
fn mirror_of(superblock: &JournalSuperblock) -> (JournalSuperblock, JournalSuperblock) {
    let mut one = superblock.clone();
    one.mirrors = 2;
    let other = JournalSuperblock { mirror: 1, ..one.clone() };
    (one, other)
}

#[test]
fn the_mirror_whose_log_reaches_further_counts_and_damage_on_one_costs_nothing() {
    let mut helped = 0;
    for seed in 0..400 {
        let mut model = Model::new(200, seed);
        let count = 2 + model.random.below(20);
        model.write(count);
        let Some(last) = model.log.last().cloned() else { continue };
        let (one, other) = mirror_of(&model.superblock);
        let whole = model.scan(&one).0;
        let victim = usize::try_from(model.random.below(model.log.len() as u64)).unwrap();
        put(&mut model.image, RingSector(model.log[victim].position), &[0; 512]);
        let damaged = model.scan(&other).0;
        assert_eq!(choose_journal_mirror([(&one, &whole), (&other, &damaged)]), Ok(0));
        let expected = usize::from(whole.head.sequence > damaged.head.sequence);
        assert_eq!(choose_journal_mirror([(&other, &damaged), (&one, &whole)]), Ok(expected));
        helped += usize::from(damaged.verdict().is_err());
        // The last entry is missing on this device, and the first device is stale, so nothing shows that the entry was
        // acknowledged.
        let mut stale = one.clone();
        stale.epoch += 1;
        put(&mut model.image, RingSector(last.position), &[0; 512]);
        let short = model.scan(&stale).0;
        let verdict = choose_journal_mirror([(&stale, &short), (&other, &whole)]);
        if short.verdict().is_ok() && short.head.sequence == whole.head.sequence - 1 {
            assert_eq!(verdict, Ok(0), "a device that missed an epoch never counts");
        } else {
            assert!(matches!(verdict, Err(JournalError::Damaged { .. }) | Ok(0)));
        }
    }
    assert!(helped > 50, "{helped} damaged mirrors");
}

#[test]
fn a_mirror_that_knows_of_a_promise_convicts_one_that_does_not_have_it() {
    let mut model = Model::new(200, 5);
    let (one, other) = mirror_of(&model.superblock);
    while model.log.len() < 4 {
        model.write(1);
    }
    let third = model.log[2].clone();
    let after = model.log[3].clone();
    // One device has lost the third and the fourth entry, the other one only the third.
    put(&mut model.image, RingSector(third.position), &[0; 4096]);
    let knows = model.scan(&other).0;
    put(&mut model.image, RingSector(after.position), &[0; 4096]);
    let ignorant = model.scan(&one).0;
    assert_eq!(ignorant.verdict(), Ok(()));
    let verdict = choose_journal_mirror([(&one, &ignorant), (&other, &knows)]);
    assert!(matches!(verdict, Err(JournalError::Damaged { sequence, .. }) if sequence == third.sequence));
}

/// A start with both devices raised the epoch on only one of them, and wrote an entry there that was never
/// acknowledged. The next start had only the other device, and gave its epoch the same number.
#[test]
fn at_the_same_epoch_the_device_that_was_used_alone_counts() {
    let mut model = Model::new(200, 5);
    while model.log.len() < 4 {
        model.write(1);
    }
    let (one, other) = mirror_of(&model.superblock);
    let alone = JournalSuperblock { mirrors: 1, ..one };
    let last = model.log[model.log.len() - 1].clone();
    let further = model.scan(&other).0;
    put(&mut model.image, RingSector(last.position), &[0; 512]);
    let shorter = model.scan(&alone).0;
    assert_eq!(further.head.sequence, shorter.head.sequence + 1);
    let other = JournalSuperblock { generation: alone.generation + 1, ..other };
    assert_eq!(choose_journal_mirror([(&other, &shorter), (&alone, &shorter)]), Ok(1));
    assert_eq!(choose_journal_mirror([(&alone, &shorter), (&other, &shorter)]), Ok(0));
}

#[test]
fn devices_that_do_not_belong_together_are_refused() {
    let model = Model::new(200, 5);
    let (one, other) = mirror_of(&model.superblock);
    let found = model.scan(&one).0;
    assert_eq!(choose_journal_mirror([(&one, &found), (&one, &found)]), Err(JournalError::SameMirror(0)));
    let alone = |superblock: &JournalSuperblock, epoch| JournalSuperblock {
        mirror: 0,
        mirrors: 1,
        epoch,
        ..superblock.clone()
    };
    let both = [alone(&one, 5), alone(&other, 6)];
    assert_eq!(choose_journal_mirror([(&both[0], &found), (&both[1], &found)]), Err(JournalError::BothAlone));
    assert_eq!(choose_journal_mirror([(&both[0], &found), (&other, &found)]), Ok(0), "the other one is stale");
    let mut strange = other.clone();
    strange.journal = Uuid([9; 16]);
    let error = JournalError::NotMirrors { one: JOURNAL, other: Uuid([9; 16]) };
    assert_eq!(choose_journal_mirror([(&one, &found), (&strange, &found)]), Err(error));
    assert!(error.to_string().contains("different journals"));
    let controller = Uuid([1; 16]);
    assert_eq!(one.check_controller(controller), Err(JournalError::OtherController { owner: CONTROLLER, controller }));
}

#[test]
fn the_area_of_kept_entries_is_at_byte_120_and_has_an_eighth_of_large_devices() {
    for (mib, before_mib) in [(8, 1), (63, 1), (64, 9), (256, 33), (1024, 129)] {
        let device = Sectors::mib(mib);
        let made = JournalSuperblock::new(Uuid([1; 16]), Uuid([2; 16]), device, BlockSize::B512, (0, 1)).unwrap();
        assert_eq!(made.ring_start.get(), Sectors::mib(before_mib).get());
        let (start, room) = made.keep_area();
        assert_eq!((start.get(), room.get()), (8, Sectors::mib(before_mib).get() - 8));
        let superblock = JournalSuperblock { kept: Sectors(72), ..made };
        let mut bytes = [0; 4096];
        superblock.encode(SuperblockCopy::First, &mut bytes);
        assert_eq!(bytes[120..128], [72, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(JournalSuperblock::decode(&bytes, SuperblockCopy::First).unwrap(), superblock);
    }
}
