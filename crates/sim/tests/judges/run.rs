//! One cell in the machine of this project.

use openraid_core::admin::{MirrorRule, Policy};
use openraid_drives::{AnyDrive, DriveKit, DriveOptions, VirtualDrive};
use openraid_models::{DriveKind, DriveProfile, Library, Rate};
use openraid_sim::machine::{ArraySpec, HostIo, IoKind, Machine, MachineParts};
use openraid_sim::Random;
use openraid_units::{Bytes, Instant};

use crate::cells::Cell;
use crate::support::exponential;

/// Requests before the measured ones.
const WARM: u64 = 500;
/// The chunk in the other simulator.
const CHUNK: Bytes = Bytes::kib(64);

/// The rates at which the other simulator moves data of two disks. They are below the rates of the tracks, which a profile may not say.
const SLOW_LINKS: [(&str, Rate); 2] = [("cheetah9lp.toml", Rate(4_876_000)), ("atlas10k.toml", Rate(5_172_000))];

/// The link of a drive with another link than in its file.
const LINK: Rate = Rate(78_000_000);

/// The drives of the cells: with the other simulator's parameters, and from this project's library.
pub struct Profiles {
    equal: Vec<DriveProfile>,
    library: Library,
}

impl Profiles {
    pub fn new() -> Self {
        let equal = [
            ("common.toml", include_str!("common.toml")),
            ("cheetah9lp.toml", include_str!("cheetah9lp.toml")),
            ("atlas10k.toml", include_str!("atlas10k.toml")),
            ("common-ssd.toml", include_str!("common-ssd.toml")),
        ];
        let parse = |(file, text)| {
            let mut profile = DriveProfile::parse(file, text).unwrap_or_else(|error| panic!("{error}"));
            if let (DriveKind::Disk(disk), Some((_, rate))) =
                (&mut profile.kind, SLOW_LINKS.iter().find(|link| link.0 == file))
            {
                disk.link_rate.value = *rate;
            }
            profile
        };
        Self { equal: equal.into_iter().map(parse).collect(), library: Library::builtin() }
    }

    /// The drive with the other simulator's parameters.
    pub fn made_equal(&self, cell: &Cell) -> DriveProfile {
        let found = self.equal.iter().find(|profile| profile.head.name.trim_end_matches("-told") == cell.drive());
        let mut profile = found.unwrap_or_else(|| panic!("no drive is called {}", cell.drive)).clone();
        match &mut profile.kind {
            DriveKind::Disk(disk) if cell.drive() != cell.drive => disk.link_rate.value = LINK,
            DriveKind::Ssd(ssd) => ssd.channels.value = cell.channels,
            _ => {}
        }
        profile
    }

    /// The drive of this project's library, if it has one.
    pub fn shipped(&self, cell: &Cell) -> Option<&DriveProfile> {
        self.library.drive(cell.drive()).ok()
    }
}

/// The difference of a mean response from the other simulator's, as a share of the other's.
pub fn error(cell: &Cell, mean_ms: f64) -> f64 {
    mean_ms / cell.mean_ms - 1.0
}

/// The array of a cell, with a controller without costs.
pub fn machine(cell: &Cell, profile: &DriveProfile, together: bool) -> Machine {
    let mut profile = profile.clone();
    if let DriveKind::Disk(disk) = &mut profile.kind {
        disk.sorting_window.value = cell.window;
        disk.queue_depth.value = 64;
    }
    let kit = DriveKit::new(&profile);
    // The other simulator's spindles turn together.
    let position = |index| if together { 0 } else { index };
    let options = |index| DriveOptions {
        write_cache: Some(cell.cache),
        seed: 11,
        index: position(index),
        ..DriveOptions::default()
    };
    let drives: Vec<AnyDrive> = (0..u64::from(cell.members)).map(|index| kit.build(&options(index))).collect();
    let mirror_read = match cell.mirror.as_str() {
        "nearest" => MirrorRule::NearestHead,
        "pending" => MirrorRule::LeastPending,
        "shortest" => MirrorRule::TwinStor,
        _ => MirrorRule::RoundRobin,
    };
    // A drive that does not sort gets one command at a time in that simulator, and the others wait in order before it.
    let alone = cell.is_disk() && cell.window == 1;
    let policy = Policy { mirror_read, sorting: !alone, ..Policy::default() };
    let parts = MachineParts { depth_max: if alone { 1 } else { 128 }, policy, ..MachineParts::default() };
    let array = ArraySpec { chunk: Some(CHUNK), ..ArraySpec::new(cell.level, cell.members) };
    Machine::with_drives(parts, &array, drives, cell.is_disk()).expect("it can run")
}

/// The load of a cell.
pub struct Load {
    random: Random,
    len: u64,
    blocks: u64,
    reads: u64,
    /// The next place of each stream, if the load has streams.
    streams: Option<Vec<u64>>,
}

impl Load {
    pub fn new(cell: &Cell, capacity: Bytes) -> Self {
        let mut random = Random::derived(23, 7);
        let len = u64::from(cell.kib) << 10;
        // Streams stay in the outer quarter of the disk.
        let blocks = capacity.get() / len / if cell.sequential && cell.is_disk() { 4 } else { 1 };
        let mut start = |_| random.below(blocks);
        // The disk simulator has a stream for each outstanding request; the SSD simulator has one stream.
        let count = if cell.is_disk() { cell.depth.max(1) } else { 1 };
        let streams = cell.sequential.then(|| (0..count).map(&mut start).collect());
        Self { random, len, blocks, reads: cell.reads, streams }
    }

    pub fn next(&mut self, id: u64) -> HostIo {
        let block = match &mut self.streams {
            Some(streams) => {
                let of = id as usize % streams.len();
                let place = &mut streams[of];
                *place = (*place + 1) % self.blocks;
                *place
            }
            None => self.random.below(self.blocks),
        };
        let kind = if self.random.chance(self.reads, 100) { IoKind::Read } else { IoKind::Write };
        HostIo { id, kind, offset: block * self.len, len: self.len as u32, worker: 0 }
    }
}

/// Mean response of a cell in milliseconds. `together` says whether the spindles turn together.
pub fn run(cell: &Cell, profile: &DriveProfile, together: bool) -> f64 {
    let mut machine = machine(cell, profile, together);
    let mut load = Load::new(cell, machine.capacity());
    if cell.depth == 0 {
        return open(&mut machine, cell, &mut load);
    }
    let times = responses(&mut machine, cell, &mut load);
    times.iter().sum::<f64>() / times.len() as f64
}

/// Responses in milliseconds, with the cell's depth of requests always outstanding.
pub fn responses(machine: &mut Machine, cell: &Cell, load: &mut Load) -> Vec<f64> {
    let mut begun: Vec<Instant> = vec![machine.now(); cell.depth as usize];
    (0..cell.depth).for_each(|id| machine.submit(load.next(id)));
    let (mut done, mut ended, mut times) = (Vec::new(), 0, Vec::new());
    while ended < WARM + cell.requests {
        done.clear();
        machine.advance(Instant::NEVER, &mut done);
        assert!(!done.is_empty(), "requests end");
        for end in &done {
            ended += 1;
            if ended > WARM {
                times.push(end.at.since(begun[end.id as usize]).0 as f64 / 1e6);
            }
            begun[end.id as usize] = machine.now();
            machine.submit(load.next(end.id));
        }
    }
    times
}

/// Mean response, in milliseconds, of requests that arrive at random, with exponential times between them.
pub fn open<D: VirtualDrive>(machine: &mut Machine<D>, cell: &Cell, load: &mut Load) -> f64 {
    let mut random = Random::derived(9, 9);
    let (mut at, mut begun, mut done) = (Instant::ZERO, Vec::new(), Vec::new());
    let (mut ended, mut sum) = (0u64, 0.0);
    for id in 0..WARM + cell.requests {
        at = at + exponential(&mut random, 1e9 / cell.rate);
        loop {
            done.clear();
            machine.advance(at, &mut done);
            for end in &done {
                let begun: Instant = begun[end.id as usize];
                (ended, sum) = (ended + 1, sum + end.at.since(begun).0 as f64);
            }
            if done.is_empty() && machine.now() == at {
                break;
            }
        }
        begun.push(at);
        machine.submit(load.next(id));
    }
    sum / ended as f64 / 1e6
}
