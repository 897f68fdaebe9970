//! Creates arrays from members for a review. Each array is created, synchronised, measured in this process, and
//! removed.
//!
//! ```text
//!  members --check--> blank, or used by this review before
//!  each array and write cache, unless all of its cells are kept already:
//!      make -> first sync -> cells over NBD, kept one by one -> stop -> wipe the metadata
//! ```
//!
//! With --journal each array is also measured with a journal on the given devices (`write.cache=journal`). The journal
//! is created with the array, and is removed with it.
//!
//! If a cell needs another cache, a missing member or a fresh start (M14, M16, M17, M29, M31), the array is created
//! again in that state. The content of the stripes does not matter for a measurement, so it is not changed.
//!
//! With a second write cache the same array is not synchronised again, because its stripes are already in sync.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use openraid_core::limits::Limits;
use openraid_format::{MinorVersion, Uuid};
use openraid_methods::cell::{footprint, ArrayState, Axes, CacheMode, CellSpec, Level, Subject};
use openraid_methods::method::Suite;
use openraid_methods::report::data::ReportCache;
use openraid_methods::review::{Ended, Performance, ReviewPart, ReviewResults};
use openraid_methods::run::{program_digest, CellStore};
use openraid_methods::target::{
    BedLine, Choice, Destruction, NbdTarget, RealOptions, Target, TargetError, TargetFacts,
};
use openraid_runtime::member::{MemberSpec, ProbedMember};
use openraid_runtime::service::journal::{make, JournalRequest};
use openraid_sys::Use;
use openraid_units::{Bytes, Sectors};

use super::blank_devices::{check, identity, may_have_caches, DeviceRecord, KNOWN};
use super::real_target::{fill, overhead, versions, FILLED, SECONDS};
use super::served_array::Counted;
use super::side_by_side::{self, open_one, Bank};
use super::ReviewTask;
use crate::arguments::{CacheWord, DriveCacheWord, ReviewArguments};
use openraid::control::{Answerer as _, Command};
use openraid::failure::Failure;
use openraid::in_process::trial::quiet_service;
use openraid::in_process::InProcess;
use openraid::members::{lasting_spec, open_every, options, written_spec};
use openraid::model::HealthWord;
use openraid::new_arrays::wiping;
use openraid::new_arrays::{forget_what_was_inside, CreateOptions, NewShape};
use openraid::output::progress::WorkProgress;
use openraid::program_settings;
use openraid::quantity::human;
use openraid::verb::serve::memory_need::{JOURNAL_BUFFERS, JOURNAL_CACHE};
use openraid::verb::Context;
use openraid::words;
use openraid_runtime::service::random_uuid;

/// Size of the write-back cache in MiB if no size is given: the same as in a simulated openraid.
const CACHE_MIB: u64 = 256;
/// The method whose cells begin with empty caches.
const COLD: &str = "M16";
/// Time between two checks of a first sync.
const LOOK: Duration = Duration::from_millis(100);

/// The words of `--levels` as arrays.
pub(super) fn subjects(words: &[String]) -> Result<Vec<Subject>, Failure> {
    let subject = |word: &String| {
        if word.trim_start_matches("raid").starts_with("00x") {
            let text =
                format!("--levels: {word}: RAID 00 is a RAID 0 over all of its drives; give 0x and their number");
            return Err(Failure::usage(text));
        }
        let plain = word.starts_with(|c: char| c.is_ascii_digit());
        let full = if plain { format!("raid{word}") } else { word.clone() };
        let found: Subject = full.parse().map_err(|error| Failure::usage(format!("--levels: {error}")))?;
        match found {
            Subject::Single => Ok(found),
            Subject::Array { level, .. } if level != Level::Jbod => Ok(found),
            _ => Err(Failure::usage(format!(
                "--levels: {word} cannot be made of members; give single, or LEVELxDRIVES as in 5x4 (0, 1, 1e, 10, 5, 6, 50, \
                 60, linear)"
            ))),
        }
    };
    words.iter().map(subject).collect()
}

/// When the writes of an array are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Cache(CacheMode),
    Journal,
}

impl Mode {
    /// For the label of a part of the report.
    const fn title(self) -> &'static str {
        match self {
            Self::Cache(CacheMode::WriteBack) => ReportCache::Back.words(),
            Self::Cache(CacheMode::WriteThrough) => ReportCache::Through.words(),
            Self::Journal => ReportCache::Journal.words(),
        }
    }

    /// A short name.
    const fn word(self) -> &'static str {
        match self {
            Self::Cache(cache) => cache.word(),
            Self::Journal => "journal",
        }
    }

    /// The value of `write.cache`.
    const fn setting(self) -> &'static str {
        match self {
            Self::Cache(CacheMode::WriteBack) => "volatile",
            Self::Cache(CacheMode::WriteThrough) => "through",
            Self::Journal => "journal",
        }
    }
}

/// The devices of the journal.
struct Journal {
    specs: Vec<MemberSpec>,
    /// Its devices with their sizes and identities, as the axis of a cell.
    words: String,
    /// The controller that it belongs to.
    controller: Uuid,
}

/// Values that all arrays of a review share.
struct Bench<'a> {
    arguments: &'a ReviewArguments,
    wanted: &'a ReviewTask,
    specs: Vec<MemberSpec>,
    sizes: Vec<Sectors>,
    journal: Option<Journal>,
    /// Name of the arrays.
    array: String,
    store: CellStore,
    stamp: String,
    /// The settings of arrays, by array and write cache.
    policies: RefCell<BTreeMap<String, String>>,
}

/// One array in one mode and state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bed {
    subject: Subject,
    mode: Mode,
    /// Size of the cache, if a cell gives it.
    cache_mib: Option<u32>,
    state: ArrayState,
    /// The cell for which alone the array is created: one that begins with empty caches, or one during a rebuild.
    alone: Option<u64>,
}

impl Bed {
    /// The key of the stored settings: the array and its write cache.
    fn key(self) -> String {
        format!("{}, {}", self.subject, self.mode.word())
    }

    /// The array in the state that most cells need.
    const fn plain(subject: Subject, mode: Mode) -> Self {
        Self { subject, mode, cache_mib: None, state: ArrayState::Healthy, alone: None }
    }

    /// The array in the state that a cell needs. With `cold` the cell begins with empty caches in this process.
    fn of(self, cell: &CellSpec, cold: bool) -> Self {
        let cache_mib = cell.axes.cache_mib;
        let mode = match (cache_mib, cell.axes.cache) {
            (Some(0), _) => Mode::Cache(CacheMode::WriteThrough),
            (_, Some(cache)) => Mode::Cache(cache),
            (_, None) => self.mode,
        };
        let alone = (cold || cell.state == ArrayState::Rebuilding).then(|| cell.digest());
        Self { mode, cache_mib, state: cell.state, alone, ..self }
    }
}

/// Reviews all arrays with all caches, each as a part of the report.
///
/// # Errors
/// A member is not blank, an array cannot be created from the members, or a member fails during the review.
pub(super) fn review(
    arguments: &ReviewArguments,
    label: &str,
    wanted: &ReviewTask,
    context: &Context,
) -> Result<Vec<ReviewPart>, Failure> {
    let subjects = subjects(&arguments.levels)?;
    if subjects.is_empty() && !side_by_side::methods(wanted, false).is_empty() {
        return Err(Failure::usage("--members: name the arrays to make of them, as in --levels 0x4,10x4,5x4"));
    }
    let modes = modes(arguments);
    check_options(arguments, &subjects)?;
    let specs = arguments.members.iter().map(|text| written_spec(text)).collect::<Result<Vec<_>, _>>()?;
    let devices = arguments.journal.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<MemberSpec> = specs.iter().chain(&devices).cloned().collect();
    let probed: Vec<ProbedMember> =
        open_every(&all, options(Use::Exclusive))?.into_iter().map(|(_, probed)| probed).collect();
    let (probed, of_journal) = probed.split_at(specs.len());
    if arguments.machine.drive_cache.is_some() {
        may_have_caches(probed)?;
    }
    let sizes = probed.iter().map(|probed| probed.info.capacity).collect();
    let mut known = check(arguments, probed, of_journal, context)?;
    let journal = (!devices.is_empty()).then(|| Journal::of(devices, of_journal, &known));
    let filled = if arguments.precondition { ", filled" } else { "" };
    let stamp = format!("{} {:016x} members: {:?}{filled}", env!("CARGO_PKG_VERSION"), program_digest(), known.members);
    let store = CellStore::open(&arguments.out.join("cells"), &stamp).map_err(Failure::failed)?;
    if arguments.precondition {
        precondition(arguments, probed, context)?;
    }
    let arrays = ReviewTask { methods: side_by_side::methods(wanted, false), ..wanted.clone() };
    let (array, policies) = (known.array.clone(), RefCell::new(known.policies.clone()));
    let bench = Bench { arguments, wanted: &arrays, specs, sizes, journal, array, store, stamp, policies };
    let mut parts = Vec::new();
    for subject in subjects.iter().filter(|_| !arrays.methods.is_empty()) {
        let mut synced = false;
        for mode in &modes {
            let bed = Bed::plain(*subject, *mode);
            let words = [label, if modes.len() > 1 { mode.title() } else { "" }];
            let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
            let (mut results, made) = bench.measure(bed, synced)?;
            synced |= made;
            if made {
                known.policies = bench.policies.borrow().clone();
                known.write(&arguments.out.join(KNOWN))?;
            }
            results.bed.extend(bench.policies.borrow().get(&bed.key()).cloned().map(BedLine::from));
            if parts.is_empty() {
                results.bed.splice(0..0, bench.common());
            }
            parts.push(ReviewPart { label: words.join(", "), results });
        }
    }
    // Drives are measured last, because the first sync of an array has then written most of them, and no hole of a file
    // is read.
    if !side_by_side::methods(wanted, true).is_empty() {
        let mut results = bench.drives(wanted)?;
        if parts.is_empty() {
            results.bed.splice(0..0, bench.common());
        }
        parts.push(ReviewPart { label: label.into(), results });
    }
    Ok(parts)
}

/// Writes all members full. A first sync writes only members of arrays with redundancy.
fn precondition(arguments: &ReviewArguments, members: &[ProbedMember], context: &Context) -> Result<(), Failure> {
    for (number, probed) in (1..).zip(members) {
        let text = &probed.spec.text;
        let choice = Choice::parse(text).map_err(Failure::usage)?;
        let destroy = Some(Destruction::confirmed(&choice, &choice.short_name()).map_err(Failure::refused)?);
        let open = |bytes_max, outstanding| {
            let options = RealOptions { outstanding, bytes_max, destroy: destroy.clone(), seed: arguments.seed };
            open_one(&choice, &options).map_err(Failure::failed)
        };
        let mark = arguments.out.join(format!("{FILLED}-{number}"));
        fill(open, &mark, &format!("{text} ({})", identity(probed)), context)?;
    }
    Ok(())
}

/// The requested write caches, and the journal as the last one.
fn modes(arguments: &ReviewArguments) -> Vec<Mode> {
    let mut found: Vec<Mode> = Vec::new();
    for word in &arguments.caches {
        let mode = Mode::Cache(match word {
            CacheWord::Wb => CacheMode::WriteBack,
            CacheWord::Wt => CacheMode::WriteThrough,
        });
        if !found.contains(&mode) {
            found.push(mode);
        }
    }
    if found.is_empty() {
        found.push(Mode::Cache(CacheMode::WriteThrough));
    }
    found.extend((!arguments.journal.is_empty()).then_some(Mode::Journal));
    found
}

impl Journal {
    fn of(specs: Vec<MemberSpec>, probed: &[ProbedMember], known: &DeviceRecord) -> Self {
        let words = probed.iter().map(|probed| format!("{} ({})", probed.spec, identity(probed)));
        Self { specs, words: words.collect::<Vec<_>>().join(" and "), controller: known.controller() }
    }

    /// Creates an empty journal. Its last content is lost.
    fn create(&self) -> Result<JournalRequest, Failure> {
        wipe(&self.specs)?;
        let opened: Vec<_> =
            open_every(&self.specs, options(Use::Exclusive))?.into_iter().map(|(opened, _)| opened).collect();
        make(&opened, random_uuid(), self.controller)?;
        let (devices, open) = (self.specs.clone(), options(Use::Exclusive));
        Ok(JournalRequest {
            devices,
            controller: self.controller,
            alone: false,
            last_uses: Vec::new(),
            seen: Vec::new(),
            open,
        })
    }
}

fn check_options(arguments: &ReviewArguments, subjects: &[Subject]) -> Result<(), Failure> {
    let most = subjects.iter().copied().max_by_key(|subject| subject.members());
    let count = arguments.members.len();
    if let Some(most) = most.filter(|most| usize::from(most.members()) > count) {
        return Err(Failure::usage(format!(
            "--levels: {most} needs {} members; --members names {count}",
            most.members()
        )));
    }
    let machine = &arguments.machine;
    let simulated_only = [
        ("arrays", arguments.arrays.is_some(), "give the arrays to make with --levels"),
        ("effort", arguments.effort.is_some(), "give --seconds"),
        ("jobs", arguments.jobs.is_some(), "own drives are measured one array after the other"),
        ("models", arguments.models.is_some(), "own drives have no profiles"),
        ("drive", machine.drive.is_some(), "name the drives with --members"),
        ("drive-state", machine.drive_state.is_some(), "--precondition writes own drives full"),
        ("drive-read-ahead", machine.drive_read_ahead.is_some(), "it is as the drives have it"),
        ("bus", machine.bus.is_some(), "it is as this machine has it"),
        ("cache", machine.cache.is_some(), "give the arrays' own with --caches wb,wt"),
    ];
    if let Some((option, _, instead)) = simulated_only.into_iter().find(|(_, given, _)| *given) {
        return Err(Failure::usage(format!("--{option} is for simulated targets, and none is here: {instead}")));
    }
    if arguments.journal.len() > 2 {
        return Err(Failure::usage("a journal is on one device or mirrored over two: give --journal once or twice"));
    }
    if !arguments.journal.is_empty() && arguments.machine.cache_mib == Some(0) {
        return Err(Failure::usage("--cache-mib 0: a journal needs a cache; give its size, or leave --journal out"));
    }
    Ok(())
}

impl Bench<'_> {
    /// The lines of the test bed that all arrays share.
    fn common(&self) -> Vec<BedLine> {
        let sized = |(spec, size): (&MemberSpec, &Sectors)| format!("{spec} ({})", human(size.bytes()));
        let members: Vec<String> = self.specs.iter().zip(&self.sizes).map(sized).collect();
        let mut lines = vec![format!("members: {}, in this order", members.join(", ")).into()];
        if self.arguments.precondition {
            lines.push("members: written full twice before the first array was made (--precondition)".into());
        }
        lines.extend(versions());
        lines.push(overhead());
        lines
    }

    /// Measures the members side by side, as raw drives.
    fn drives(&self, wanted: &ReviewTask) -> Result<ReviewResults, Failure> {
        let smallest = self.sizes.iter().min().map_or(Bytes::ZERO, |size| size.bytes());
        let facts = TargetFacts {
            name: "drives side by side".into(),
            capacity: smallest,
            block: Bytes(512),
            simulated: false,
            writable: true,
            page_cache: false,
            link_mbps: None,
            bed: vec![
                "drives side by side: each member is served as a raw drive over a Unix socket, without a cache; a \
                 connection, a worker and a thread each"
                    .into(),
            ],
        };
        let drives = u16::try_from(self.specs.len()).map_err(|_| Failure::usage("--members: too many"))?;
        let (store, stamp) = (&self.store, self.stamp.as_str());
        let bank = Bank { arguments: self.arguments, wanted, store, stamp, system: "openraid", facts, drives };
        let results = bank.of_members(&self.specs)?;
        wipe(&self.specs)?;
        Ok(results)
    }

    fn cache_of(&self, bed: Bed) -> Bytes {
        let default = match bed.mode {
            Mode::Cache(CacheMode::WriteBack) => Bytes::mib(CACHE_MIB),
            Mode::Cache(CacheMode::WriteThrough) => Bytes::ZERO,
            Mode::Journal => JOURNAL_CACHE,
        };
        let asked = bed.cache_mib.or(self.arguments.machine.cache_mib);
        asked.map_or(default, |mib| Bytes::mib(u64::from(mib)))
    }

    fn shape(&self, bed: Bed, names: &[String], assume_clean: bool) -> Result<NewShape, Failure> {
        let level = bed.subject.level().unwrap_or(openraid_models::ArrayLevel::Single);
        let striped = words::md_level(level).is_some_and(|md| md.is_striped()) || level.has_spans();
        NewShape::of(&CreateOptions {
            name: &self.array,
            level,
            layout: None,
            chunk: self.arguments.machine.chunk.filter(|_| striped).map(Bytes::sectors_floor),
            spans: None,
            members: names,
            spares: &[],
            size: None,
            assume_clean,
            bitmap: None,
            ppl: false,
            minor: MinorVersion::V1_2,
        })
    }

    fn facts(&self, bed: Bed, shape: &NewShape, size: Sectors) -> TargetFacts {
        let cache = self.cache_of(bed);
        let cache = if cache.is_zero() { "no cache".into() } else { format!("{} of cache", human(cache)) };
        let journal = self.journal.as_ref().filter(|_| bed.mode == Mode::Journal);
        let journal = journal.map_or_else(String::new, |journal| format!(" on {}", journal.words));
        let chunk =
            if shape.chunk.is_zero() { String::new() } else { format!("chunk {}, ", human(shape.chunk.bytes())) };
        let bed_line = format!(
            "{}: {}, {chunk}{cache}, write.cache={}{journal}, in sync before the first cell, served over a Unix socket",
            bed.subject,
            human(size.bytes()),
            bed.mode.setting()
        );
        TargetFacts {
            name: bed.subject.to_string(),
            capacity: size.bytes(),
            block: Bytes(512),
            simulated: false,
            writable: true,
            page_cache: false,
            link_mbps: None,
            bed: vec![bed_line.into()],
        }
    }

    /// Measures an array in a mode; true if the array was created for this. `synced` says that it was in sync when it
    /// was stopped.
    fn measure(&self, bed: Bed, synced: bool) -> Result<(ReviewResults, bool), Failure> {
        let count = usize::from(bed.subject.members());
        let names: Vec<String> = self.specs[..count].iter().map(|spec| spec.text.clone()).collect();
        let shape = self.shape(bed, &names, synced)?;
        let plans = shape.plan(&self.sizes[..count], &names)?;
        let facts = self.facts(bed, &shape, shape.size(&plans));
        let drive_cache = self.arguments.machine.drive_cache.map(|word| word == DriveCacheWord::On);
        let drives = Axes { drive_cache, ..Axes::default() };
        let machine = match bed.mode {
            Mode::Cache(cache) => Axes { cache: Some(cache), ..drives },
            Mode::Journal => Axes { journal: self.journal.as_ref().map(|journal| journal.words.clone()), ..drives },
        };
        let seconds = self.arguments.seconds.unwrap_or(SECONDS);
        let suite = Suite {
            repeat: self.arguments.repeat,
            given: self.wanted.given.clone(),
            machine,
            ..Suite::new("openraid", vec![bed.subject], Performance::real_effort(seconds), self.arguments.seed)
        };
        let performance = Performance { remade: true, ..self.wanted.performance(suite, &self.store, &self.stamp) };
        let cells = performance.cells(&facts);
        let missing =
            |cell: &&CellSpec| footprint(cell, facts.capacity.get()).is_ok() && self.store.get(cell).is_none();
        let progress = WorkProgress::counting(&format!("cells of {}", bed.key()), cells.len() as u64);
        let ended = |ended: Ended| progress.counted_of_which_idle(ended.cells as u64, ended.idle as u64);
        if !cells.iter().any(|cell| missing(&cell)) {
            let closed = |_: &CellSpec, _, _| {
                Err(TargetError::Gone { name: facts.name.clone(), reason: "it is not made".into() })
            };
            let results = performance.real(&facts, closed, || Ok(()), ended).map_err(Failure::failed)?;
            return Ok((results, false));
        }
        let cold: BTreeSet<u64> = performance
            .methods
            .iter()
            .filter(|method| method.id == COLD)
            .flat_map(|method| method.cells(&performance.suite))
            .map(|cell| cell.digest())
            .collect();
        let current =
            RefCell::new(Stand { bench: self, plain: bed, names: &names, array: None, synced, trouble: Vec::new() });
        let open = |cell: &CellSpec, bytes_max: u32, outstanding: u32| {
            let wanted = bed.of(cell, cold.contains(&cell.digest()));
            current.borrow_mut().open(wanted, bytes_max, outstanding)
        };
        let results = performance.real(&facts, open, || current.borrow_mut().sound(), ended).map_err(|error| {
            Failure::failed(format!(
                "{error}. Finished cells are kept in {}: the same command line continues there",
                self.arguments.out.join("cells").display()
            ))
        });
        drop(progress);
        let mut results = results?;
        let mut stand = current.into_inner();
        stand.take_apart()?;
        results.bed.extend(stand.trouble.drain(..).map(BedLine::from));
        Ok((results, true))
    }
}

/// The array that now exists, and the way to create another state of it.
struct Stand<'a> {
    bench: &'a Bench<'a>,
    plain: Bed,
    names: &'a [String],
    array: Option<(Bed, Array)>,
    /// Was the array in sync at least once?
    synced: bool,
    /// Notes for the reader of the report.
    trouble: Vec<String>,
}

impl Stand<'_> {
    /// The array in the state that a cell needs, as a target.
    fn open(&mut self, wanted: Bed, bytes_max: u32, outstanding: u32) -> Result<Box<dyn Target>, TargetError> {
        let gone = |failure: Failure| TargetError::Gone { name: wanted.subject.to_string(), reason: failure.text() };
        if self.array.as_ref().is_none_or(|(bed, _)| *bed != wanted) {
            self.take_apart().map_err(gone)?;
            let array = self.make(wanted).map_err(gone)?;
            self.array = Some((wanted, array));
        }
        let Some((_, array)) = &self.array else { unreachable!("it was just made") };
        array.open(bytes_max, outstanding, self.bench.arguments.seed)
    }

    fn make(&mut self, wanted: Bed) -> Result<Array, Failure> {
        let shape = self.bench.shape(self.plain, self.names, self.synced)?;
        let array = Array::make(self.bench, wanted, &shape)?;
        self.synced = true;
        if wanted == self.plain {
            let settings = program_settings::line(&array.host.server.array(&array.name)?.settings);
            let line = format!("policies of {}: {settings}", wanted.key());
            self.bench.policies.borrow_mut().insert(wanted.key(), line);
        }
        Ok(array)
    }

    fn take_apart(&mut self) -> Result<(), Failure> {
        match self.array.take() {
            Some((bed, array)) => array.take_apart(self.bench, bed),
            None => Ok(()),
        }
    }

    /// Is the array still in the state that the cell needs?
    fn sound(&mut self) -> Result<(), TargetError> {
        let Some((bed, array)) = &self.array else { return Ok(()) };
        if array.sound(bed.state)? {
            return Ok(());
        }
        let words =
            format!("{}: a rebuild ended before its cell did; give larger members or fewer --seconds", bed.subject);
        if !self.trouble.contains(&words) {
            self.trouble.push(words);
        }
        Ok(())
    }
}

/// An array that is served for its measurement.
struct Array {
    host: InProcess,
    name: String,
    choice: Choice,
}

impl Array {
    fn make(bench: &Bench<'_>, bed: Bed, shape: &NewShape) -> Result<Self, Failure> {
        let specs = &bench.specs[..usize::from(bed.subject.members())];
        wipe(specs)?;
        let usual = Limits::default();
        let cache = bench.cache_of(bed);
        let journal = bench.journal.as_ref().filter(|_| bed.mode == Mode::Journal).map(Journal::create).transpose()?;
        let buffers = if journal.is_some() { JOURNAL_BUFFERS } else { Bytes::ZERO };
        let limits = Limits { pool: usual.pool + cache + buffers, cache, journal: buffers, ..usual };
        let host = InProcess::start("review", limits)?;
        journal.map(|request| host.server.open_journal(request)).transpose()?;
        let opened: Vec<_> =
            open_every(specs, options(Use::Exclusive))?.into_iter().map(|(opened, _)| opened).collect();
        let names: Vec<String> = specs.iter().map(|spec| spec.text.clone()).collect();
        let plans = shape.plan(&bench.sizes[..specs.len()], &names)?;
        let handle = host.service.handle();
        let started = shape.make(&handle, &plans, opened)?;
        let status = handle.status()?;
        let view = status.arrays.iter().find(|view| view.status.array == started.array);
        let size = view.map_or(0, |view| view.status.capacity.bytes().get());
        forget_what_was_inside(&handle, &started, size, shape.assume_clean)?;
        let name = host.server.serve_started(started)?;
        let choice = Choice::parse(&host.uri(&name)).map_err(Failure::failed)?;
        let array = Self { host, name, choice };
        // Without clients a first sync may use the full rate of the drives.
        array.set("rebuild.rate", "0")?;
        array.wait_for_sync(bed.subject)?;
        // They are restored when the array is stopped.
        if let Some(word) = bench.arguments.machine.drive_cache {
            array.set("drive.cache", if word == DriveCacheWord::On { "on" } else { "off" })?;
        }
        if bed.mode != Mode::Cache(CacheMode::WriteThrough) {
            array.set("write.cache", bed.mode.setting())?;
        }
        array.bring_into(bed.state, bench, specs)?;
        Ok(array)
    }

    /// Removes members. For a rebuild, adds the first one again as a new drive.
    fn bring_into(&self, state: ArrayState, bench: &Bench<'_>, specs: &[MemberSpec]) -> Result<(), Failure> {
        let missing = match state {
            ArrayState::Healthy => return Ok(()),
            ArrayState::Degraded(missing) => usize::from(missing),
            ArrayState::Rebuilding => 1,
            ArrayState::Changing(_) => unreachable!("a review has no change of shape"),
        };
        let order = |command: Command| self.host.server.answer(command).map(drop);
        for spec in &specs[..missing.min(specs.len())] {
            let (array, member) = (self.name.clone(), spec.text.clone());
            order(Command::Fail { array, member, unsynced: true, device: None })?;
        }
        if state != ArrayState::Rebuilding {
            return Ok(());
        }
        // The rebuild must last as long as the cell. A new drive of usual size takes hours at the usual rate.
        let seconds = u64::from(bench.arguments.seconds.unwrap_or(SECONDS));
        let (time, smallest) =
            (2 * (seconds + seconds / 10 + 2), bench.sizes.iter().min().map_or(0, |size| size.bytes().get()));
        let rate = (smallest / time).min(Bytes::mib(200).get()).max(Bytes::kib(64).get());
        self.set("rebuild.rate", &format!("{}K", rate >> 10))?;
        let member = || specs[0].text.clone();
        order(Command::Remove { array: self.name.clone(), member: member(), spare: false, device: None })?;
        let span = self.host.server.array(&self.name)?.spans.first().map(|_| 0);
        order(Command::Add { array: self.name.clone(), member: member(), span, overwrite: true, split: true })
    }

    fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        let settings = vec![(key.to_owned(), value.to_owned())];
        self.host.server.answer(Command::Set { array: self.name.clone(), settings, yes: true }).map(drop)
    }

    fn wait_for_sync(&self, subject: Subject) -> Result<(), Failure> {
        let mut progress = None;
        loop {
            let array = self.host.server.array(&self.name)?;
            if array.health != HealthWord::Optimal {
                return Err(Failure::failed(format!("{subject}: a member failed during the first sync")));
            }
            if array.is_synced() {
                return Ok(());
            }
            let task = array.task.or_else(|| array.spans.into_iter().find_map(|span| span.task));
            if let Some(task) = task {
                let words = format!("first sync of {subject}");
                progress
                    .get_or_insert_with(|| WorkProgress::of_bytes_in_lines(&words, task.total_bytes))
                    .at(task.done_bytes);
            }
            thread::sleep(LOOK);
        }
    }

    fn open(&self, bytes_max: u32, outstanding: u32, seed: u64) -> Result<Box<dyn Target>, TargetError> {
        let Choice::Nbd(uri) = &self.choice else { unreachable!("it is served over NBD") };
        let destroy = Some(Destruction::confirmed(&self.choice, &self.name)?);
        let target = NbdTarget::open(uri, &RealOptions { outstanding, bytes_max, destroy, seed })?;
        Ok(Box::new(Counted::new(target, self.host.service.handle())))
    }

    /// Does the array still have the expected members? False means that a rebuild has already ended.
    fn sound(&self, state: ArrayState) -> Result<bool, TargetError> {
        let gone = |reason: String| TargetError::Gone { name: self.name.clone(), reason };
        let array = self.host.server.array(&self.name).map_err(|failure| gone(failure.text()))?;
        match (state, array.health) {
            (ArrayState::Rebuilding, HealthWord::Optimal) => return Ok(false),
            (ArrayState::Healthy, HealthWord::Optimal) => return Ok(true),
            (ArrayState::Degraded(_) | ArrayState::Rebuilding, HealthWord::Degraded) => return Ok(true),
            _ => {}
        }
        let failed = array.members.iter().chain(array.spans.iter().flat_map(|span| &span.members));
        let reasons: Vec<String> = failed
            .filter_map(|member| Some(format!("{}: {}", member.member.as_deref()?, member.reason.as_deref()?)))
            .collect();
        Err(gone(format!("a member failed ({}), and this cell does not count; mend or replace it", reasons.join("; "))))
    }

    fn take_apart(self, bench: &Bench<'_>, bed: Bed) -> Result<(), Failure> {
        self.host.server.stop(&self.name)?;
        self.host.stop();
        wipe(&bench.specs[..usize::from(bed.subject.members())])?;
        match bench.journal.as_ref().filter(|_| bed.mode == Mode::Journal) {
            Some(journal) => wipe(&journal.specs),
            None => Ok(()),
        }
    }
}

/// Removes the metadata of the last array, and all other data that the user allowed to lose.
fn wipe(specs: &[MemberSpec]) -> Result<(), Failure> {
    let service = quiet_service()?;
    for (opened, probed) in open_every(specs, options(Use::Exclusive))? {
        let areas = wiping::all_areas(&probed);
        if !areas.is_empty() {
            wiping::wipe(&service.handle(), opened, &areas)?;
        }
    }
    service.stop();
    Ok(())
}
