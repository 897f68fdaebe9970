//! Opening the devices of a journal and reading what they hold. Nothing is written.

use openraid_core::admin::{FoundEntry, FoundJournal};
use openraid_core::journal::find_device::{
    find_journal, inspect_journal, superblock_of, FindError, JournalSearch, ReadDevice,
};
use openraid_format::{JournalArrayState, JournalError, JournalRecord, JournalSuperblock, Uuid};
use openraid_parity::Kernels;
use openraid_units::{DriveLba, Nanos, Sectors};

use super::device_lease::{numbered, Leased};
use super::hanging_devices::HangCheck;
use super::heartbeat::{ask, Heartbeat, PendingAnswer, Unanswered};
use super::{JournalStartError, LastUse};
use crate::limits::JOURNAL_SILENCE_MAX;
use crate::member::{open, MemberSpec, OpenError, OpenOptions, OpenedMember, Place};

/// The devices of a journal, and their content. Drives are numbered by their index in the list.
#[derive(Debug)]
pub struct FoundDevices {
    /// The devices, open.
    pub devices: Vec<OpenedMember>,
    /// The superblock of each.
    pub superblocks: Vec<JournalSuperblock>,
    /// The valid content.
    pub journal: FoundJournal,
    /// Notes for the administrator: a dead device that is not needed; a log that could not be followed and was void,
    /// because it has nothing of arrays that are not running.
    pub notes: Vec<String>,
    /// The log is damaged: only the part before the damage was found, and the journal must not be used. This is set
    /// only if the caller asked for [`LookFor::damaged`].
    pub damage: Option<JournalError>,
    /// The index of the one of two devices that has lost entries which the other one has, and its damage.
    pub damaged_half: Option<(usize, JournalError)>,
}

impl FoundDevices {
    /// Is only one of two devices present? A device that did not finish joining replaces the other one only if it was
    /// the last one to join. Otherwise the one that joined after it may have carried the journal alone.
    #[must_use]
    pub fn is_half(&self) -> bool {
        is_half(&self.superblocks)
    }

    /// The names of the devices.
    pub(super) fn names(&self) -> String {
        names(self.devices.iter().map(|device| &device.spec))
    }

    /// The error: the journal was used later without these devices.
    pub(super) fn left_behind(&self) -> JournalStartError {
        JournalStartError::LeftBehind(self.names())
    }

    /// The error: the other device is missing.
    #[must_use]
    pub fn other_missing(&self) -> JournalStartError {
        let whole = self.superblocks.iter().position(|superblock| !superblock.unfinished).unwrap_or(0);
        let device = self.devices[whole].spec.text.clone();
        match self.devices.get(1 - whole) {
            Some(other) => JournalStartError::NotTheOther { device, unfinished: other.spec.text.clone() },
            None => JournalStartError::OtherMissing { device, mirror: self.superblocks[whole].mirror },
        }
    }
}

fn is_half(superblocks: &[JournalSuperblock]) -> bool {
    match superblocks {
        [one] => one.mirrors == 2,
        [whole, other] | [other, whole] if other.unfinished && !whole.unfinished => {
            // The unfinished device has the epoch of the complete one if it is being resynced, and the epoch before it if
            // its join is announced.
            let belongs = whole.epoch == other.epoch || whole.epoch.checked_sub(1) == Some(other.epoch);
            whole.mirrors == 2 && !belongs
        }
        _ => false,
    }
}

/// The content of the log for an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayTally {
    /// The array: identity of its set.
    pub set_uuid: Uuid,
    /// The meaning of its entries.
    pub state: JournalArrayState,
    /// Number of valid entries for the array.
    pub entries: u64,
    /// Sectors of host data in these entries.
    pub data: Sectors,
    /// Number of member writes that were under way.
    pub redos: u64,
}

/// The entries of the log with their numbers: first the entries that were copied out of the ring, then the entries in
/// it.
pub(super) fn entries_of(journal: &FoundJournal) -> impl Iterator<Item = (u64, &FoundEntry)> {
    let kept = journal.kept.iter().map(|kept| (kept.sequence, &kept.entry));
    let first = journal.kept.last().map_or(0, |last| last.sequence + 1);
    kept.chain((journal.tail.sequence..).zip(&journal.entries).filter(move |(sequence, _)| *sequence >= first))
}

/// The content of the log for each array of the table.
#[must_use]
pub fn tally(journal: &FoundJournal) -> Vec<ArrayTally> {
    let mut tallies = Vec::new();
    for (array, index) in journal.superblock.arrays.iter().zip(0_u8..) {
        let Some(array) = array else { continue };
        let mut of_array =
            ArrayTally { set_uuid: array.set_uuid, state: array.state, entries: 0, data: Sectors::ZERO, redos: 0 };
        for (sequence, entry) in entries_of(journal) {
            let counts = array.state != JournalArrayState::Discarded && sequence >= array.first_sequence;
            let mut records = entry.records.iter().filter(|record| counts && record.array() == index).peekable();
            of_array.entries += u64::from(records.peek().is_some());
            for record in records {
                match record {
                    JournalRecord::Data { sectors, .. } => of_array.data += *sectors,
                    JournalRecord::Redo { .. } | JournalRecord::RedoRef { .. } => of_array.redos += 1,
                    _ => {}
                }
            }
        }
        tallies.push(of_array);
    }
    tallies
}

/// The content of the log for several arrays together: an entry for several of them counts once. The identity and the
/// state are those of the first array.
#[must_use]
pub fn sum(journal: &FoundJournal, arrays: &[Uuid]) -> ArrayTally {
    let tallies: Vec<ArrayTally> =
        tally(journal).into_iter().filter(|tally| arrays.contains(&tally.set_uuid)).collect();
    let superblock = &journal.superblock;
    let indices: Vec<u8> = arrays.iter().filter_map(|uuid| superblock.index_of(*uuid)).collect();
    let speaks = |(sequence, entry): &(u64, &FoundEntry)| {
        entry
            .records
            .iter()
            .any(|record| indices.contains(&record.array()) && superblock.counts(record.array(), *sequence))
    };
    let entries = entries_of(journal).filter(speaks).count();
    ArrayTally {
        set_uuid: tallies.first().map_or(Uuid([0; 16]), |tally| tally.set_uuid),
        state: tallies.first().map_or(JournalArrayState::Discarded, |tally| tally.state),
        entries: entries as u64,
        data: tallies.iter().map(|tally| tally.data).sum(),
        redos: tallies.iter().map(|tally| tally.redos).sum(),
    }
}

/// The purpose of a look at the devices of a journal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LookFor {
    /// The controller that the journal must belong to, if that matters.
    pub controller: Option<Uuid>,
    /// Arrays whose entries are all void: if the log knows no others, damage does not matter.
    pub void: Vec<Uuid>,
    /// When journals were used last. If one of two devices has carried its journal alone since then, it does not need
    /// the other one, which may be dead.
    pub last_uses: Vec<LastUse>,
    /// Also find the readable part of a damaged log, to show or discard it.
    pub damaged: bool,
}

impl LookFor {
    /// Does the device with this superblock have everything, independent of the other one? It says that it is the
    /// complete journal, and the journal was not used later.
    fn is_whole(&self, superblock: &JournalSuperblock) -> bool {
        let is_last = |last: &LastUse| last.journal == superblock.journal && last.epoch <= superblock.epoch;
        superblock.mirrors == 1 && !superblock.unfinished && self.last_uses.iter().any(is_last)
    }
}

/// Reads the devices of a journal by its owner's method.
struct Reader<F> {
    read: F,
    kernels: Kernels,
    /// Shows the waiting caller that devices answer.
    heartbeat: Heartbeat,
    /// The lender, which may take them back.
    leased: Option<Leased>,
}

impl<F: FnMut(usize, DriveLba, &mut [u8]) -> bool> Reader<F> {
    /// `read` fills the bytes from a device, and returns whether it could.
    fn new(heartbeat: Heartbeat, read: F) -> Self {
        Self { read, kernels: Kernels::detect(), heartbeat, leased: None }
    }

    fn of(self, leased: &Leased) -> Self {
        Self { leased: Some(leased.clone()), ..self }
    }
}

impl<F: FnMut(usize, DriveLba, &mut [u8]) -> bool> ReadDevice for Reader<F> {
    fn read(&mut self, device: usize, at: DriveLba, bytes: &mut [u8]) -> bool {
        let read = (self.read)(device, at, bytes);
        self.heartbeat.beat();
        read
    }
    fn crc(&self, register: u32, bytes: &[u8]) -> u32 {
        !self.kernels.crc32c(!register, bytes)
    }
    fn is_over(&self) -> bool {
        self.leased.as_ref().is_some_and(Leased::is_over)
    }
}

/// Open the devices and read what they hold, for as long as they answer.
///
/// # Errors
/// Why it cannot be used.
pub fn look(specs: &[MemberSpec], options: OpenOptions, wanted: &LookFor) -> Result<FoundDevices, JournalStartError> {
    look_beside(specs, options, wanted, &HangCheck::default())
}

/// The same for devices that may hang.
pub(super) fn look_beside(
    specs: &[MemberSpec],
    options: OpenOptions,
    wanted: &LookFor,
    held: &HangCheck,
) -> Result<FoundDevices, JournalStartError> {
    if specs.is_empty() || specs.len() > 2 {
        return Err(JournalStartError::Count(specs.len()));
    }
    if let Some(other) = specs.iter().find(|spec| !matches!(spec.place, Place::Path(_))) {
        return Err(JournalStartError::NotLocal(other.text.clone()));
    }
    let mut notes = Vec::new();
    let (devices, superblocks) = open_each(specs, options, wanted, held, &mut notes)?;
    let (leased, wanted) = (Leased::new(devices), wanted.clone());
    let lent = leased.clone();
    let asked = ask("journal-read", move |heartbeat| read(&lent, superblocks, &wanted, notes, heartbeat));
    let answer = asked.and_then(|asked| held.wait(asked, JOURNAL_SILENCE_MAX, leased.specs.iter()));
    answer.unwrap_or_else(|unanswered| {
        // The thread hangs on the device that it reads; the others are free.
        drop(leased.take_back());
        Err(unanswered_by(names(leased.specs.iter()), unanswered, JOURNAL_SILENCE_MAX))
    })
}

/// The error after this wait for a device.
pub(super) fn unanswered_by(device: String, unanswered: Unanswered, silence_max: Nanos) -> JournalStartError {
    match unanswered {
        Unanswered::Silent => JournalStartError::Silent(device, silence_max),
        Unanswered::NoThread(error) => {
            JournalStartError::Io { device, why: format!("cannot be read just now: {error}") }
        }
        Unanswered::Panicked => JournalStartError::Panicked(device),
    }
}

fn names<'a>(specs: impl Iterator<Item = &'a MemberSpec>) -> String {
    specs.map(|spec| spec.text.as_str()).collect::<Vec<_>>().join(" and ")
}

fn read(
    leased: &Leased,
    superblocks: Vec<JournalSuperblock>,
    wanted: &LookFor,
    mut notes: Vec<String>,
    heartbeat: Heartbeat,
) -> Result<FoundDevices, JournalStartError> {
    let mut reader = Reader::new(heartbeat, |device, at, bytes: &mut [u8]| {
        leased.with(device, |device| device.read_at(at, bytes).is_ok()).unwrap_or(false)
    })
    .of(leased);
    let mut found = if wanted.damaged {
        inspect_journal(&leased.numbered, &mut reader)
    } else {
        find_journal(&leased.numbered, false, &mut reader)
    };
    if found.is_err() && !may_know_of_others(&superblocks, &wanted.void) {
        found = find_journal(&leased.numbered, true, &mut reader);
        notes.push("the journal's log was damaged; no array had anything in it, and it starts empty".into());
    }
    let JournalSearch { journal, damage, damaged_half } = found.map_err(|error| match error {
        FindError::Count(count) => JournalStartError::Count(count),
        FindError::Journal(drive, error) => device_error(&leased.specs[drive.index()], error),
        FindError::Mirrors(error) => JournalStartError::Mirrors { devices: names(leased.specs.iter()), error },
        FindError::GivenUp => JournalStartError::Hangs(names(leased.specs.iter())),
    })?;
    let damaged_half = damaged_half.map(|(drive, error)| (drive.index(), error));
    Ok(FoundDevices { devices: leased.take_back(), superblocks, journal, notes, damage, damaged_half })
}

/// Can a log have entries of arrays other than those whose entries are void?
fn may_know_of_others(superblocks: &[JournalSuperblock], void: &[Uuid]) -> bool {
    let knows = |superblock: &JournalSuperblock| {
        let arrays = superblock.arrays.iter().flatten().filter(|array| array.state != JournalArrayState::Discarded);
        arrays.into_iter().any(|array| !void.contains(&array.set_uuid))
    };
    // A device with an older epoch does not know later discards. An unfinished device, of any epoch, does not know
    // writes that were acknowledged since it began to join.
    let finished = || superblocks.iter().filter(|superblock| !superblock.unfinished);
    let epoch = finished().map(|superblock| superblock.epoch).max();
    epoch.is_none() || finished().any(|superblock| Some(superblock.epoch) == epoch && knows(superblock))
}

/// Open the devices and read the superblock of each. If one of two is dead, the other one is enough if it has
/// everything. If it may lack writes, the error also says that it can be used.
fn open_each(
    specs: &[MemberSpec],
    options: OpenOptions,
    wanted: &LookFor,
    held: &HangCheck,
    notes: &mut Vec<String>,
) -> Result<(Vec<OpenedMember>, Vec<JournalSuperblock>), JournalStartError> {
    let (mut whole, mut failed) = (Vec::new(), None);
    // All devices are opened at once, so a silent one costs one time limit.
    let looks: Vec<DeviceLook<'_>> = specs.iter().map(|spec| DeviceLook::begin(spec, options, held)).collect();
    for look in looks {
        let spec = look.spec;
        let found = look.wait(JOURNAL_SILENCE_MAX).and_then(|(device, superblock)| {
            let superblock = superblock.and_then(|superblock| {
                wanted.controller.map_or(Ok(()), |id| superblock.check_controller(id)).map(|()| superblock)
            });
            Ok((device, superblock.map_err(|error| device_error(spec, error))?))
        });
        match found {
            Ok(opened) => whole.push(opened),
            Err(error) => failed = failed.or(Some((spec, error))),
        }
    }
    let Some((spec, error)) = failed else { return Ok(whole.into_iter().unzip()) };
    match whole.pop() {
        Some((other, superblock)) if wanted.is_whole(&superblock) && error.is_dead() => {
            let whole = &other.spec.text;
            notes
                .push(format!("{error}; the journal's other device, {whole}, has carried it alone and has everything"));
            Ok((vec![other], vec![superblock]))
        }
        Some((other, superblock)) if !superblock.unfinished => Err(error.beside(spec, &other, &superblock)),
        _ => Err(error),
    }
}

/// An open device, and the content of its superblock's place.
pub(super) type LookResult = (OpenedMember, Result<JournalSuperblock, JournalError>);

/// A device that a thread opens, to read its superblock.
pub(super) struct DeviceLook<'a> {
    spec: &'a MemberSpec,
    held: &'a HangCheck,
    asked: Result<LookRequest, JournalStartError>,
}

type LookRequest = Result<PendingAnswer<Result<LookResult, OpenError>>, Unanswered>;

impl<'a> DeviceLook<'a> {
    pub fn begin(spec: &'a MemberSpec, options: OpenOptions, held: &'a HangCheck) -> Self {
        Self { spec, held, asked: held.check(spec).map(|()| send(spec.clone(), options)) }
    }

    /// The result of the look, unless the device is silent for so long.
    pub fn wait(self, silence_max: Nanos) -> Result<LookResult, JournalStartError> {
        let Self { spec, held, asked } = self;
        match asked?.and_then(|asked| held.wait_for_opening(asked, silence_max, spec)) {
            Ok(looked) => looked.map_err(|error| held.told(error.into(), spec)),
            Err(unanswered) => Err(unanswered_by(spec.text.clone(), unanswered, silence_max)),
        }
    }
}

fn send(spec: MemberSpec, options: OpenOptions) -> LookRequest {
    ask("journal-look", move |heartbeat| {
        let mut opened = open(&spec, options)?;
        heartbeat.beat();
        let device = numbered(0, &opened);
        let mut reader = Reader::new(heartbeat, |_, at, bytes: &mut [u8]| opened.read_at(at, bytes).is_ok());
        let superblock = superblock_of(0, &device, &mut reader);
        Ok((opened, superblock))
    })
}

fn device_error(spec: &MemberSpec, error: JournalError) -> JournalStartError {
    JournalStartError::Device { device: spec.text.clone(), error }
}

#[cfg(test)]
mod tests {
    use openraid_format::JournalArray;
    use openraid_sys::{Direct, MemberError, MemberFile, Use};
    use openraid_units::BlockSize;

    use super::super::test_pair::Pair;
    use super::super::write_superblocks::write_superblock;
    use super::*;

    const ARRAY: Uuid = Uuid([7; 16]);

    fn superblock(epoch: u64, array: Option<JournalArrayState>, unfinished: bool) -> JournalSuperblock {
        let (journal, controller) = (Uuid([1; 16]), Uuid([2; 16]));
        let block = BlockSize::new(512).expect("a size");
        let made = JournalSuperblock::new(journal, controller, Sectors::mib(16), block, (0, 2));
        let mut superblock = JournalSuperblock { epoch, unfinished, ..made.expect("large enough") };
        superblock.arrays[0] = array.map(|state| JournalArray { set_uuid: ARRAY, state, first_sequence: 1 });
        superblock
    }

    #[test]
    fn a_damaged_log_is_discarded_only_if_the_newest_complete_device_has_no_array() {
        let (knows, empty) = (superblock(5, Some(JournalArrayState::Live), false), superblock(6, None, false));
        assert!(may_know_of_others(std::slice::from_ref(&knows), &[]));
        assert!(!may_know_of_others(std::slice::from_ref(&knows), &[ARRAY]));
        assert!(!may_know_of_others(&[superblock(5, Some(JournalArrayState::Discarded), false)], &[]));
        assert!(!may_know_of_others(&[knows.clone(), empty.clone()], &[]), "the older one is stale");
        assert!(may_know_of_others(
            &[superblock(6, Some(JournalArrayState::Preserved), false), superblock(5, None, false)],
            &[]
        ));
        let unfinished = superblock(6, None, true);
        assert!(may_know_of_others(&[knows.clone(), unfinished.clone()], &[]), "it was joining, and never did");
        assert!(!may_know_of_others(&[knows, unfinished.clone()], &[ARRAY]));
        assert!(may_know_of_others(&[unfinished], &[]), "no device knows");
    }

    #[test]
    fn a_device_that_hangs_here_is_not_needed_and_one_that_is_in_use_here_is_refused() {
        let pair = Pair::new("hangs");
        let _open = MemberFile::open(&pair.path(0), Use::Exclusive, Direct::Never).expect("it opens");
        for held in [HangCheck::default(), HangCheck::of(vec![pair.path(1)])] {
            let refused = pair.look(&held).expect_err("it is in use");
            let in_use = matches!(refused, JournalStartError::Open(OpenError::Local(MemberError::AlreadyOpen { .. })));
            assert!(in_use, "{refused:?}");
        }
        let found = pair.look(&HangCheck::of(vec![pair.path(0)])).expect("the other one has everything");
        assert_eq!(found.devices[0].spec, pair.specs[1]);
        assert!(
            found.notes[0].contains("has not finished earlier commands") && found.notes[0].contains("alone"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn a_device_that_did_not_finish_stands_for_the_other_half_only_if_it_was_the_last_to_join() {
        let whole = |epoch, mirrors| JournalSuperblock { mirrors, ..superblock(epoch, None, false) };
        let joined = |epoch| superblock(epoch, None, true);
        assert!(is_half(&[whole(5, 2)]) && !is_half(&[whole(5, 1)]) && !is_half(&[whole(5, 2), whole(4, 2)]));
        for (other, half) in [(4, false), (5, false), (3, true), (6, true), (7, true)] {
            assert_eq!(is_half(&[whole(5, 2), joined(other)]), half, "{other}");
            assert_eq!(is_half(&[joined(other), whole(5, 2)]), half, "{other}");
        }
        assert!(!is_half(&[whole(5, 1), joined(3)]), "it goes on alone");
    }

    #[test]
    fn a_reader_whose_caller_has_given_up_ends_at_once() {
        let pair = Pair::new("over");
        let opened = pair.open();
        let used = JournalSuperblock { clean: false, ..pair.superblocks[0].clone() };
        write_superblock(&opened[0], &used).expect("written");
        let leased = Leased::new(opened);
        let mut reads = 0;
        let mut reader = Reader::new(Heartbeat::default(), |device, at, bytes: &mut [u8]| {
            reads += 1;
            if reads == 7 {
                drop(leased.take_back());
            }
            leased.with(device, |device| device.read_at(at, bytes).is_ok()).unwrap_or(false)
        })
        .of(&leased);
        let found = find_journal(&leased.numbered[..1], false, &mut reader).map(drop);
        assert_eq!(found, Err(FindError::GivenUp));
        assert_eq!(reads, 7);
    }

    #[test]
    fn a_device_whose_reader_panicked_is_not_dead() {
        let error = |unanswered| unanswered_by("j0".into(), unanswered, JOURNAL_SILENCE_MAX);
        assert!(error(Unanswered::Silent).is_dead());
        assert!(JournalStartError::Device { device: "j0".into(), error: JournalError::Unreadable }.is_dead());
        let panicked = error(Unanswered::Panicked);
        assert!(
            !panicked.is_dead() && panicked.to_string().contains("j0: openraid itself failed at this device"),
            "{panicked}"
        );
    }

    #[test]
    fn one_file_that_is_named_twice_is_refused() {
        let mut pair = Pair::new("twice");
        pair.specs[0] = pair.specs[1].clone();
        let refused = pair.look(&HangCheck::default()).expect_err("it is one");
        assert!(matches!(refused, JournalStartError::Open(OpenError::Local(MemberError::AlreadyOpen { .. }))));
    }
}
