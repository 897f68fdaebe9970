//! The cells of each method. Sizes, depths and shares are those of the methods; docs/lab/methods.md has a table of
//! them.

use super::Suite;
use crate::cell::{
    ArrayState, Axes, CacheMode, CellSpec, Cycle, Direction, FileSet, FileStep, FileSystem, Level, Pattern, Subject,
    TraceApp, ZoneChoice,
};

/// Queue depths of the Database method.
const DATABASE_DEPTHS: [u32; 5] = [1, 4, 16, 64, 256];
/// Queue depths of random requests by size: one request at a time, and four.
const RANDOM_DEPTHS: [u32; 2] = [1, 4];
/// Maximum queue depth of clients in the multi-threaded method.
const CLIENT_DEPTH_MAX: u32 = 8;
/// Number of repetitions, of which the best is used.
const BEST_OF: u32 = 7;
/// Cache sizes of the application traces, MiB.
const APPLICATION_CACHES_MIB: [u32; 2] = [128, 256];
/// Number of users of the office programs, in addition to the cell with one user.
const USERS: u16 = 4;
/// Number of repetitions from a cold start.
const COLD: u32 = 3;
/// Cache sizes of the cache method, MiB.
const CACHE_SIZES_MIB: [u32; 7] = [0, 32, 64, 128, 256, 512, 1024];
/// Within the warm-up time of an effort a full cache of this size shrinks to the level that the load keeps. A larger
/// cache gets proportionally more time.
const CACHE_WARM_MIB: u32 = 256;
/// Maximum number of drives in the JBOD method, unless the suite has more.
pub(super) const JBOD_MAX: u16 = 6;

const WAYS: [Direction; 2] = [Direction::Read, Direction::Write];

/// `count` sizes: `first`, twice that, and so on.
fn doubling(first: u32, count: u32) -> impl Iterator<Item = u32> + Clone {
    (0..count).map(move |number| first << number)
}

/// Shares of reads: 0, 10, ... 100 %.
fn shares() -> impl Iterator<Item = u8> + Clone {
    (0..=10).map(|tenth| tenth * 10)
}

/// The same cells for each subject.
fn each(suite: &Suite, pattern: &Pattern, axes: impl Iterator<Item = Axes> + Clone) -> Vec<CellSpec> {
    let cells = suite.subjects.iter().flat_map(|subject| {
        axes.clone().map(|axes| CellSpec {
            effort: suite.effort,
            seed: suite.seed,
            ..CellSpec::new(&suite.system, *subject, pattern.clone()).with(axes)
        })
    });
    cells.collect()
}

pub(super) fn database(suite: &Suite) -> Vec<CellSpec> {
    let axes = DATABASE_DEPTHS
        .into_iter()
        .flat_map(|qd| shares().map(move |rd| Axes { qd: Some(qd), rd: Some(rd), ..Axes::default() }));
    each(suite, &Pattern::Database, axes)
}

fn ways_and_sizes(sizes: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = Axes> + Clone {
    WAYS.into_iter()
        .flat_map(move |op| sizes.clone().map(move |bs| Axes { op: Some(op), bs: Some(bs), ..Axes::default() }))
}

pub(super) fn random_by_block(suite: &Suite) -> Vec<CellSpec> {
    let axes = RANDOM_DEPTHS
        .into_iter()
        .flat_map(|qd| ways_and_sizes(doubling(512, 13)).map(move |axes| Axes { qd: Some(qd), ..axes }));
    each(suite, &Pattern::Random, axes)
}

pub(super) fn sequential(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::Sequential, ways_and_sizes(doubling(512, 12)))
}

pub(super) fn response_time(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::ResponseTime, WAYS.into_iter().map(|op| Axes { op: Some(op), ..Axes::default() }))
}

pub(super) fn multi_threaded(suite: &Suite) -> Vec<CellSpec> {
    let axes = WAYS.into_iter().flat_map(|op| {
        (1..=4u16).flat_map(move |th| {
            (1..=CLIENT_DEPTH_MAX).map(move |qd| Axes { op: Some(op), th: Some(th), qd: Some(qd), ..Axes::default() })
        })
    });
    each(suite, &Pattern::MultiThreaded, axes)
}

fn depths(pattern: &Pattern) -> impl Iterator<Item = Axes> + Clone {
    pattern.depths().iter().map(|qd| Axes { qd: Some(*qd), ..Axes::default() })
}

pub(super) fn file_server(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::FileServer, depths(&Pattern::FileServer))
}

pub(super) fn web_server(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::WebServer, depths(&Pattern::WebServer))
}

pub(super) fn workstation(suite: &Suite) -> Vec<CellSpec> {
    let axes = ZoneChoice::ALL
        .iter()
        .flat_map(|zone| depths(&Pattern::Workstation).map(move |axes| Axes { zone: Some(*zone), ..axes }));
    each(suite, &Pattern::Workstation, axes)
}

pub(super) fn first_32_gb(suite: &Suite) -> Vec<CellSpec> {
    let axes = DATABASE_DEPTHS.into_iter().flat_map(|qd| {
        ZoneChoice::ALL.iter().map(move |zone| Axes {
            qd: Some(qd),
            rd: Some(67),
            zone: Some(*zone),
            ..Axes::default()
        })
    });
    each(suite, &Pattern::Database, axes)
}

fn files(systems: &'static [FileSystem], sets: &'static [FileSet]) -> impl Iterator<Item = Axes> + Clone {
    systems.iter().flat_map(move |fs| {
        sets.iter().flat_map(move |set| {
            FileStep::ALL.iter().map(move |step| Axes {
                fs: Some(*fs),
                set: Some(*set),
                step: Some(*step),
                ..Axes::default()
            })
        })
    })
}

pub(super) fn fc_test(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::FcTest, files(FileSystem::ALL, FileSet::ALL))
}

pub(super) fn fc_subset(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::FcTest, files(&[FileSystem::Ntfs], &[FileSet::Install, FileSet::Iso, FileSet::Programs]))
}

pub(super) fn transfer_graph(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::TransferGraph, std::iter::once(Axes::default()))
}

/// The office programs, and the programs of the second total.
pub(super) fn winmarks(suite: &Suite) -> Vec<CellSpec> {
    let axes = FileSystem::ALL
        .iter()
        .flat_map(|fs| TraceApp::ALL.iter().map(move |app| Axes { app: Some(*app), fs: Some(*fs), ..Axes::default() }));
    each(suite, &Pattern::Application, axes)
}

/// Access time and sequential rate. Every cell also has the load of the processor.
pub(super) fn low_level(suite: &Suite) -> Vec<CellSpec> {
    let mut cells = each(suite, &Pattern::ResponseTime, std::iter::once(Axes::default()));
    cells.extend(each(suite, &Pattern::Sequential, std::iter::once(Axes::default())));
    cells
}

/// Programs with two cache sizes, and the office programs with several users. The gain of the larger cache is said to
/// grow with the number of users.
pub(super) fn applications(suite: &Suite) -> Vec<CellSpec> {
    let users = |cache_mib| Axes {
        app: Some(TraceApp::Winmark99),
        fs: Some(FileSystem::Ntfs),
        users: Some(USERS),
        cache_mib: Some(cache_mib),
        ..Axes::default()
    };
    let axes = APPLICATION_CACHES_MIB.into_iter().flat_map(|cache_mib| {
        FileSystem::ALL.iter().flat_map(move |fs| {
            TraceApp::ALL.iter().map(move |app| Axes {
                app: Some(*app),
                fs: Some(*fs),
                cache_mib: Some(cache_mib),
                ..Axes::default()
            })
        })
    });
    let mut cells = each(suite, &Pattern::Application, axes);
    cells.extend(each(suite, &Pattern::Application, APPLICATION_CACHES_MIB.into_iter().map(users)));
    cells
}

/// The three tests of the suite: office programs, transfer graph, access time.
pub(super) fn best_of_seven(suite: &Suite) -> Vec<CellSpec> {
    let rep = |axes: Axes| (1..=BEST_OF).map(move |rep| Axes { rep: Some(rep), ..axes.clone() });
    let office = Axes { app: Some(TraceApp::Winmark99), ..Axes::default() };
    let mut cells = each(suite, &Pattern::Application, rep(office));
    cells.extend(each(suite, &Pattern::TransferGraph, rep(Axes::default())));
    cells.extend(each(suite, &Pattern::ResponseTime, rep(Axes { op: Some(Direction::Read), ..Axes::default() })));
    cells
}

pub(super) fn cold_repetitions(suite: &Suite) -> Vec<CellSpec> {
    let rep = |axes: Axes| (1..=COLD).map(move |rep| Axes { rep: Some(rep), ..axes.clone() });
    let mut cells = each(suite, &Pattern::FileServer, rep(Axes { qd: Some(16), ..Axes::default() }));
    cells.extend(each(suite, &Pattern::Sequential, rep(Axes::default())));
    cells.extend(each(suite, &Pattern::ResponseTime, rep(Axes::default())));
    cells
}

pub(super) fn wb_wt(suite: &Suite) -> Vec<CellSpec> {
    let axes = CacheMode::ALL.iter().flat_map(|cache| {
        DATABASE_DEPTHS.into_iter().flat_map(move |qd| {
            shares().map(move |rd| Axes { cache: Some(*cache), qd: Some(qd), rd: Some(rd), ..Axes::default() })
        })
    });
    each(suite, &Pattern::Database, axes)
}

/// One cell of each group of the script, in both cycles.
pub(super) fn two_cycles(suite: &Suite) -> Vec<CellSpec> {
    let mut cells = Vec::new();
    for cycle in Cycle::ALL {
        let with = |axes: Axes| Axes { cyc: Some(*cycle), ..axes };
        let both = |axes: Axes| WAYS.into_iter().map(move |op| with(Axes { op: Some(op), ..axes.clone() }));
        let sixteen = Axes { qd: Some(16), ..Axes::default() };
        cells.extend(each(suite, &Pattern::ResponseTime, both(Axes::default())));
        cells.extend(each(suite, &Pattern::Random, both(Axes { bs: Some(64 << 10), ..Axes::default() })));
        cells.extend(each(suite, &Pattern::Sequential, both(Axes::default())));
        cells.extend(each(suite, &Pattern::MultiThreaded, both(Axes { th: Some(2), ..Axes::default() })));
        for pattern in [Pattern::FileServer, Pattern::WebServer, Pattern::Workstation, Pattern::Database] {
            cells.extend(each(suite, &pattern, std::iter::once(with(sixteen.clone()))));
        }
        let steps = [FileStep::Create, FileStep::Read, FileStep::CopySame].into_iter();
        let iso = steps.map(|step| with(Axes { step: Some(step), set: Some(FileSet::Iso), ..Axes::default() }));
        cells.extend(each(suite, &Pattern::FcTest, iso));
    }
    cells
}

pub(super) fn repeatability(suite: &Suite) -> Vec<CellSpec> {
    let axes = Cycle::ALL
        .iter()
        .flat_map(|cycle| WAYS.into_iter().map(move |op| Axes { op: Some(op), cyc: Some(*cycle), ..Axes::default() }));
    each(suite, &Pattern::ResponseTime, axes)
}

/// Single drives: 1 to 6 side by side, and all of them. The subjects of the suite are ignored.
pub(super) fn rst_jbod(suite: &Suite) -> Vec<CellSpec> {
    let all = Some(suite.drives).filter(|drives| *drives > JBOD_MAX);
    let subjects = (1..=suite.drives.min(JBOD_MAX))
        .chain(all)
        .map(|members| Subject::Array { level: Level::Jbod, members })
        .collect();
    let suite = Suite { subjects, ..suite.clone() };
    let mut cells = Vec::new();
    for pattern in [Pattern::SsdSequential, Pattern::SsdRandom] {
        let axes = WAYS
            .into_iter()
            .flat_map(|op| doubling(1, 6).map(move |qd| Axes { op: Some(op), qd: Some(qd), ..Axes::default() }));
        cells.extend(each(&suite, &pattern, axes));
    }
    cells
}

pub(super) fn rst_raid(suite: &Suite) -> Vec<CellSpec> {
    let mut cells = Vec::new();
    for pattern in [Pattern::SsdSequential, Pattern::SsdRandom] {
        let axes = WAYS
            .into_iter()
            .flat_map(|op| doubling(2, 7).map(move |oio| Axes { op: Some(op), oio: Some(oio), ..Axes::default() }));
        cells.extend(each(suite, &pattern, axes));
    }
    cells
}

pub(super) fn latency(suite: &Suite) -> Vec<CellSpec> {
    each(suite, &Pattern::Latency, WAYS.into_iter().map(|op| Axes { op: Some(op), ..Axes::default() }))
}

pub(super) fn cache_sizes(suite: &Suite) -> Vec<CellSpec> {
    let sized = |axes: Axes| CACHE_SIZES_MIB.into_iter().map(move |mib| Axes { cache_mib: Some(mib), ..axes.clone() });
    let sixteen = Axes { qd: Some(16), ..Axes::default() };
    let mut cells = each(suite, &Pattern::Database, sized(Axes { rd: Some(50), ..sixteen.clone() }));
    cells.extend(each(suite, &Pattern::FileServer, sized(sixteen)));
    for cell in &mut cells {
        cell.effort.warm_seconds_max *= cell.axes.cache_mib.unwrap_or(0).div_ceil(CACHE_WARM_MIB).max(1);
    }
    cells
}

/// The load that the user specified, once for each subject.
pub(super) fn own_load(suite: &Suite) -> Vec<CellSpec> {
    let Some((pattern, axes)) = &suite.given else { return Vec::new() };
    each(suite, pattern, std::iter::once(axes.clone()))
}

/// The states: healthy, one missing member, two if the level survives that, rebuilding.
pub(super) fn degraded(suite: &Suite) -> Vec<CellSpec> {
    let mut cells = Vec::new();
    for subject in &suite.subjects {
        let alone = Suite { subjects: vec![*subject], ..suite.clone() };
        for state in states(*subject) {
            let sixteen = |rd| Axes { qd: Some(16), rd: Some(rd), ..Axes::default() };
            let mut of_state = each(&alone, &Pattern::Database, [0, 67, 100].into_iter().map(sixteen));
            let both = WAYS.into_iter().map(|op| Axes { op: Some(op), ..Axes::default() });
            of_state.extend(each(&alone, &Pattern::Sequential, both.clone()));
            of_state.extend(each(&alone, &Pattern::ResponseTime, both));
            cells.extend(of_state.into_iter().map(|cell| CellSpec { state, ..cell }));
        }
    }
    cells
}

/// States in which an array still works.
fn states(subject: Subject) -> Vec<ArrayState> {
    let mut states = vec![ArrayState::Healthy];
    let survives = match subject.level() {
        Some(Level::Raid6 | Level::Raid60) => 2,
        Some(Level::Raid1 | Level::Raid1e | Level::Raid10 | Level::Raid4 | Level::Raid5 | Level::Raid50) => 1,
        _ => 0,
    };
    states.extend((1..=survives).map(ArrayState::Degraded));
    if survives > 0 {
        states.push(ArrayState::Rebuilding);
    }
    states
}
