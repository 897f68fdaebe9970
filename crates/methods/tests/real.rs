//! Cells on real targets: decisions by the clock (in virtual time), and the requests to a plain file.

mod noting;

use noting::{Notes, Noting, RequestPlace};
use openraid_methods::cell::{
    footprint, measure, Axes, CellNote, CellResult, CellSpec, Cycle, Direction, Effort, FileSet, FileStep, FileSystem,
    Flag, Pattern, Subject,
};
use openraid_methods::imitation::{file_sizes, GRAPH_REQUEST_BYTES, PLACE_BYTES};
use openraid_methods::load::{one_size, AccessManner};
use openraid_methods::method::{find, Suite};
use openraid_methods::review::{Ended, Performance, ReviewResults};
use openraid_methods::target::{
    BlockTarget, Choice, Destruction, HostIo, IoDone, IoKind, RealOptions, Target, TargetCounters, TargetError,
    TargetFacts,
};
use openraid_units::{Bytes, Instant, Nanos};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MS: Nanos = Nanos::from_millis(1);
const CAPACITY: Bytes = Bytes::gib(64);

fn cell(pattern: Pattern, axes: Axes, effort: Effort) -> CellSpec {
    CellSpec { effort, ..CellSpec::new("real", Subject::Single, pattern).with(axes) }
}

/// Runs a cell on servers with 1 ms each, as a simulated or as a real target: its result, and the requests.
fn on_servers(servers: usize, simulated: bool, cell: &CellSpec) -> (CellResult, Vec<RequestPlace>) {
    let notes = Notes::default();
    let mut target = Noting::new(servers, MS, CAPACITY, simulated, &notes);
    let result = measure(&mut target, cell).unwrap();
    drop(target);
    (result, notes.take())
}

#[test]
fn the_time_decides_how_long_a_stream_of_a_real_target_is_warmed_up_and_measured() {
    let axes = Axes { op: Some(Direction::Read), bs: Some(1 << 20), qd: Some(4), ..Axes::default() };
    for (seconds, warm) in [(5, 1), (30, 3)] {
        let effort = Performance::real_effort(seconds);
        let (result, asked) = on_servers(1, false, &cell(Pattern::Sequential, axes.clone(), effort));
        // 1000 requests per second: more than 2 GiB of them.
        let seconds = u64::from(seconds);
        assert_eq!((result.elapsed_ns, result.requests), (seconds * 1_000_000_000, seconds * 1000));
        assert_eq!(asked.len() as u64, (seconds + warm) * 1000 + 4, "and those outstanding at the end");
        let steady = format!("warm-up: steady after {} requests and {warm}.000 s", warm * 1000);
        assert_eq!(result.notes, [CellNote::Other(steady)]);
    }
    let (result, _) = on_servers(1, true, &cell(Pattern::Sequential, axes, Effort::NORMAL));
    assert_eq!(result.reads.bytes, 2 << 30, "a simulated one stays in its zone");
}

#[test]
fn a_real_target_whose_rate_still_changes_when_the_warm_up_ends_is_not_called_steady() {
    // Less than one request in a window of 200 ms, so windows with one request and with none alternate.
    let notes = Notes::default();
    let mut target = Noting::new(1, Nanos::from_millis(300), CAPACITY, false, &notes);
    let cell = cell(Pattern::ResponseTime, Axes::default(), Performance::real_effort(10));
    let result = measure(&mut target, &cell).unwrap();
    let note = &result.notes[0];
    assert!(matches!(note, CellNote::WarmUpUnsteady(length) if length.starts_with("after 3 requests")), "{note:?}");
    assert!(result.is_unsteady() && !result.steady);
}

fn performance(methods: &[&str], effort: Effort, facts: &TargetFacts) -> Performance<'static> {
    Performance {
        suite: Suite::new(&facts.name, vec![Subject::Single], effort, 1),
        methods: methods.iter().map(|name| find(name).unwrap()).collect(),
        trace: None,
        store: None,
        stamp: "test",
        shard: None,
        beside: None,
        remade: false,
    }
}

/// Runs all cells of methods in the same way as a review.
fn review(
    methods: &[&str],
    effort: Effort,
    facts: &TargetFacts,
    mut open: impl FnMut(u32, u32) -> Box<dyn Target>,
) -> (ReviewResults, Vec<Ended>) {
    let performance = performance(methods, effort, facts);
    let mut reported = Vec::new();
    let results = performance.real(
        facts,
        |_, bytes, outstanding| Ok(open(bytes, outstanding)),
        || Ok(()),
        |ended| reported.push(ended),
    );
    assert_eq!(reported.len(), performance.cells(facts).len());
    (results.unwrap(), reported)
}

#[test]
fn cells_that_methods_share_or_that_make_no_sense_on_a_target_are_not_waited_for() {
    let facts = Noting::new(1, MS, CAPACITY, false, &Notes::default()).facts().clone();
    let count = |methods: &[&str]| performance(methods, FEW, &facts).cells(&facts).len();
    assert_eq!((count(&["fc-test"]), count(&["fc-subset"]), count(&["fc-test", "fc-subset"])), (40, 12, 40));
    assert_eq!(count(&["applications", "sequential"]), 24);
}

#[test]
fn each_stream_of_a_real_target_begins_at_a_place_of_its_own() {
    let notes = Notes::default();
    let new = || Noting::new(1, Nanos::from_millis(10), CAPACITY, false, &notes);
    let firsts = || -> Vec<u64> {
        let mut firsts = Vec::new();
        let open = |_, _| -> Box<dyn Target> {
            firsts.extend(notes.take().first().map(|io| io.offset));
            Box::new(new())
        };
        let facts = new().facts().clone();
        let (results, _) = review(&["sequential"], Performance::real_effort(1), &facts, open);
        assert_eq!(results.results().count(), 24);
        firsts.extend(notes.take().first().map(|io| io.offset));
        firsts
    };
    let first = firsts();
    // One place in 8192 each.
    assert_eq!((first.len(), first.iter().collect::<BTreeSet<_>>().len()), (24, 24), "{first:?}");
    assert!(first.iter().all(|at| at % (1 << 20) == 0 && *at <= CAPACITY.get() / 8), "{first:?}");
    assert_eq!(first, firsts(), "the same seed, the same places");
    // Within a cell the requests are sequential. A simulated cell begins at the start of its zone, and a load of the
    // user where its specification says.
    let effort = Effort { requests: 2_000, ..Effort::QUICK };
    let at = |simulated, pattern| {
        let (_, asked) =
            on_servers(1, simulated, &cell(pattern, Axes::default(), Effort { warm_seconds_max: 1, ..effort }));
        assert!(asked.windows(2).all(|pair| pair[1].offset == pair[0].end()));
        asked[0].offset
    };
    let spec =
        one_size("own", 4096, 100, 0).in_manner(AccessManner { start: Some(1 << 30), ..AccessManner::default() });
    assert_eq!((at(true, Pattern::Sequential), at(false, Pattern::Custom(spec))), (0, 1 << 30));
    assert_ne!(at(false, Pattern::Sequential), 0);
}

#[test]
fn files_wait_for_an_imitated_host_on_simulated_targets_only() {
    for step in [FileStep::Read, FileStep::Create, FileStep::CopySame] {
        let axes =
            Axes { step: Some(step), set: Some(FileSet::Install), fs: Some(FileSystem::Ntfs), ..Axes::default() };
        let files = cell(Pattern::FcTest, axes, Effort::QUICK);
        let (real, _) = on_servers(1, false, &files);
        assert_eq!(real.elapsed_ns, real.requests * MS.get(), "{step}: one request after the other and nothing else");
        assert!(
            real.notes.iter().any(|note| note.to_string().contains("no time of a host is added")),
            "{:?}",
            real.notes
        );
        let (simulated, _) = on_servers(1, true, &files);
        assert_eq!(
            (simulated.requests, &simulated.reads, &simulated.writes),
            (real.requests, &real.reads, &real.writes)
        );
        // 414 files, each with at least 3.5 ms.
        assert!(simulated.elapsed_ns > real.elapsed_ns + 414 * 3_500_000, "{step}");
        assert!(
            !simulated.notes.iter().any(|note| note.to_string().contains("time of a host")),
            "{:?}",
            simulated.notes
        );
    }
}

/// A sparse file that is removed on drop.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str, bytes: u64) -> Self {
        let path = std::env::temp_dir().join(format!("openraid-methods-{}-{name}", std::process::id()));
        File::create(&path).unwrap().set_len(bytes).unwrap();
        Self(path)
    }

    fn open(&self, destroy: bool, bytes_max: u32, outstanding: u32) -> Box<dyn Target> {
        let choice = Choice::Path(self.0.clone());
        let destroy = destroy.then(|| Destruction::confirmed(&choice, &choice.short_name()).unwrap());
        Box::new(BlockTarget::open(&self.0, &RealOptions { outstanding, bytes_max, destroy, seed: 1 }).unwrap())
    }

    fn measured(&self, destroy: bool, cell: &CellSpec) -> CellResult {
        let (bytes, outstanding) = footprint(cell, fs::metadata(&self.0).unwrap().len()).unwrap();
        let result = measure(&mut *self.open(destroy, bytes, outstanding), cell).unwrap();
        assert_eq!(result.errors, 0, "{}", cell.identity());
        result
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn written_bytes(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Some requests of each cell, without a warm-up.
const FEW: Effort = Effort { requests: 20, seconds_max: 600, warm_seconds_max: 0 };

#[test]
fn the_cells_of_streams_random_places_and_the_graph_are_measured_on_a_file() {
    let disk = Disk::new("patterns", 256 << 20);
    for destroy in [false, true] {
        let facts = disk.open(destroy, 512, 1).facts().clone();
        let open = |bytes, outstanding| disk.open(destroy, bytes, outstanding);
        let (results, reported) = review(&["sequential", "random-by-block", "transfer-graph"], FEW, &facts, open);
        let mut absent = 0;
        for method in results.methods.iter().flat_map(|method| &method.cells) {
            let (cell, axes) = (&method.cell, &method.cell.axes);
            let Some(result) = method.outcome.result() else {
                let small = axes.bs.is_some_and(|bs| u64::from(bs) < facts.block.get());
                assert!(small || (axes.op == Some(Direction::Write) && !destroy), "{}", cell.identity());
                absent += 1;
                continue;
            };
            assert_eq!((result.errors, &result.spec), (0, cell));
            let (reads, writes) = (&result.reads, &result.writes);
            if cell.pattern == Pattern::TransferGraph {
                // Three quarters of 32 MiB count at each of ten positions, minus the requests that ended together with
                // the first quarter.
                let pieces = PLACE_BYTES / u64::from(GRAPH_REQUEST_BYTES) / 4 * 3;
                assert!((10 * (pieces - 3)..=10 * pieces).contains(&reads.requests), "{}", reads.requests);
                assert_eq!(reads.bytes, reads.requests * u64::from(GRAPH_REQUEST_BYTES));
                assert_eq!((result.curve.len(), writes.requests), (10, 0));
                continue;
            }
            let (asked, other) = if axes.op == Some(Direction::Write) { (writes, reads) } else { (reads, writes) };
            assert_eq!((other.requests, asked.bytes), (0, asked.requests * u64::from(axes.bs.unwrap())));
            // Several requests may end at once.
            assert!((20..20 + 4).contains(&asked.requests), "{}: {}", asked.requests, cell.identity());
        }
        assert_eq!(reported.last(), Some(&Ended { cells: 24 + 52 + 1, idle: absent }));
        assert_eq!(written_bytes(&disk.0) > 0, destroy);
    }
}

#[test]
fn files_and_both_cycles_are_measured_on_a_file() {
    let disk = Disk::new("files", 5 << 30);
    let (count, bytes) = (414, file_sizes(FileSet::Install).iter().sum::<u64>());
    let files = |step| {
        let axes =
            Axes { step: Some(step), set: Some(FileSet::Install), fs: Some(FileSystem::Ntfs), ..Axes::default() };
        cell(Pattern::FcTest, axes, FEW)
    };
    let result = disk.measured(false, &files(FileStep::Read));
    // Whole pages of each file, one page of metadata for four of them, and the indices.
    let most = bytes + count * (4096 + 4096);
    assert!(result.reads.bytes >= bytes && result.reads.bytes <= most, "{} of {bytes}", result.reads.bytes);
    let mbps = bytes as f64 * 1e3 / result.elapsed_ns as f64;
    assert!(result.writes.requests == 0 && (result.mbps / mbps - 1.0).abs() < 1e-9);
    assert_eq!(written_bytes(&disk.0), 0);
    let result = disk.measured(true, &files(FileStep::Create));
    let written = written_bytes(&disk.0);
    assert!(result.reads.requests == 0 && result.writes.bytes >= bytes && written >= bytes, "{written} of {bytes}");

    let streams = |cyc, op| Axes { cyc: Some(cyc), op: Some(op), ..Axes::default() };
    for (cyc, pattern, op, before) in [
        (Cycle::First, Pattern::Sequential, Direction::Write, Some("file-server")),
        (Cycle::First, Pattern::ResponseTime, Direction::Read, None),
        (Cycle::Second, Pattern::Sequential, Direction::Read, None),
        (Cycle::Second, Pattern::ResponseTime, Direction::Write, Some("sequential")),
    ] {
        // The load before the measurement takes all of the seconds.
        let short = cell(pattern, Axes { bs: Some(4096), ..streams(cyc, op) }, Effort { seconds_max: 2, ..FEW });
        let result = disk.measured(true, &short);
        let (asked, other) = match op {
            Direction::Read => (&result.reads, &result.writes),
            Direction::Write => (&result.writes, &result.reads),
        };
        assert!((1..24).contains(&asked.requests) && other.requests == 0, "{}: {}", asked.requests, short.identity());
        assert_eq!(asked.bytes, asked.requests * 4096);
        let load = result.notes.iter().find_map(|note| note.to_string().strip_prefix("before: ").map(str::to_owned));
        assert_eq!(load.is_some(), before.is_some(), "{:?}", result.notes);
        assert!(before.is_none_or(|name| load.as_deref().is_some_and(|load| load.contains(name))), "{load:?}");
    }
}

/// Servers of 1 ms with a cache before them. The first percentage of the read bytes comes from the cache, and the
/// second of the written bytes stays in it.
struct Caching {
    servers: Noting,
    percent: u64,
    read: u64,
    written: u64,
}

impl Target for Caching {
    fn facts(&self) -> &TargetFacts {
        self.servers.facts()
    }
    fn now(&self) -> Instant {
        self.servers.now()
    }
    fn submit(&mut self, io: HostIo) {
        match io.kind {
            IoKind::Read => self.read += u64::from(io.len),
            IoKind::Write => self.written += u64::from(io.len),
            _ => {}
        }
        self.servers.submit(io);
    }
    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        self.servers.wait(until, done)
    }
    fn counters(&self) -> Option<TargetCounters> {
        let share = |bytes: u64| Some(Bytes(bytes * self.percent / 100));
        Some(TargetCounters { read_hits: share(self.read), dirty: share(self.written), ..self.servers.counters()? })
    }
}

#[test]
fn a_rate_to_which_a_cache_contributed_carries_a_flag() {
    let flags = |op: Direction, percent: u64| {
        let axes = Axes { op: Some(op), bs: Some(4096), qd: Some(1), ..Axes::default() };
        let servers = Noting::new(1, MS, CAPACITY, false, &Notes::default());
        let mut target = Caching { servers, percent, read: 0, written: 0 };
        measure(&mut target, &cell(Pattern::Random, axes, Performance::real_effort(1))).unwrap().flags
    };
    // A sixteenth of the bytes causes no flag.
    assert_eq!((flags(Direction::Read, 6), flags(Direction::Write, 6)), (vec![], vec![]));
    let near = |percent: f64| (percent - 10.0).abs() < 0.5;
    assert!(matches!(flags(Direction::Read, 10)[..], [Flag::ReadFromCache { percent }] if near(percent)));
    assert!(matches!(flags(Direction::Write, 10)[..], [Flag::StillInCaches { percent }] if near(percent)));
}

#[test]
fn a_flush_that_took_much_of_the_time_of_the_writes_before_it_carries_a_flag() {
    let axes = |op| Axes { op: Some(op), bs: Some(4096), qd: Some(1), ..Axes::default() };
    let flags = |service: Nanos, op| {
        let cell = cell(Pattern::Random, axes(op), Performance::real_effort(1));
        measure(&mut Noting::new(1, service, CAPACITY, false, &Notes::default()), &cell).unwrap().flags
    };
    // The flush takes as long as a request: a tenth of the second in which ten requests ended.
    let found = flags(Nanos::from_millis(100), Direction::Write);
    assert!(matches!(found[..], [Flag::FlushOwed { percent }] if (percent - 10.0).abs() < 1.5), "{found:?}");
    assert_eq!(flags(MS, Direction::Write), []);
    assert_eq!(flags(Nanos::from_millis(100), Direction::Read), [], "nothing was written");
}
