//! `openraid simulate`, `review`, `compare` and `plan`: arrays before they are bought, and measured when they are there.

use crate::quantity;
use clap::{Args, ValueEnum};
use openraid_units::Bytes;
use std::path::PathBuf;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum EffortWord {
    /// A look: thousands of requests a cell
    Quick,
    /// Means within about one percent
    Normal,
    /// For tails: hundreds of thousands of requests a cell
    Full,
}

/// A write cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CacheWord {
    /// Writes are acknowledged from the controller's memory
    Wb,
    /// Writes are acknowledged from the drives
    Wt,
}

/// How full SSDs have been.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DriveStateWord {
    /// Never written full, as from the box: nothing has to be collected until they are
    Fresh,
    /// Written over at least once: collecting is at work
    Steady,
}

/// A direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum WayWord {
    /// From the array
    Read,
    /// To the array
    Write,
}

/// What a simulated machine is besides its controller, for all verbs that have one.
#[derive(Args, Debug, Clone)]
pub struct MachineArguments {
    /// The drives: a profile's name [default: those that the controller's profile names]
    #[arg(long, value_name = "PROFILE")]
    pub drive: Option<String>,
    /// How full SSDs have been before [default: steady]
    #[arg(long, value_name = "STATE")]
    pub drive_state: Option<DriveStateWord>,
    /// Write cache of the controller, for cards with one switch also of the drives [default: what the profile has;
    /// openraid writes through without a cache, as `serve` does without --cache]
    #[arg(long, value_name = "MODE")]
    pub cache: Option<CacheWord>,
    /// Size of the controller's cache, MiB; it writes back unless --cache wt is given [default: what the profile has;
    /// openraid with --cache wb: 256]
    #[arg(long, value_name = "MIB")]
    pub cache_mib: Option<u32>,
    /// Another host bus: a profile's name
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// Chunk
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub chunk: Option<Bytes>,
}

/// What the load is, for verbs that take one.
#[derive(Args, Debug, Clone)]
pub struct LoadArguments {
    /// The load: database, sequential, random, file-server, web-server, workstation, multi-threaded, response-time,
    /// latency, streaming, or a file: a fio job, an Iometer .icf, the output of iostat -x (text or JSON), a trace (blkparse,
    /// fio iolog, MSR CSV, SPC)
    #[arg(long, value_name = "LOAD|FILE", default_value = "database")]
    pub load: String,
    /// The job, the access specification or the device, of a file that holds several
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Percent of reads
    #[arg(long, value_name = "PERCENT", conflicts_with = "way", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: Option<u8>,
    /// Requests that each worker keeps outstanding
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Workers
    #[arg(long, value_name = "N")]
    pub workers: Option<u16>,
    /// Bytes of a request
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub block: Option<Bytes>,
    /// Only read, or only write
    #[arg(long, value_name = "WAY")]
    pub way: Option<WayWord>,
    /// Use the first 32 GB only
    #[arg(long)]
    pub first_32_gb: bool,
    /// The machine
    #[command(flatten)]
    pub machine: MachineArguments,
    /// How much is measured
    #[arg(long, value_name = "HOW", default_value = "normal")]
    pub effort: EffortWord,
    /// The same seed gives the same figures, byte by byte
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A folder with profiles of your own: drives/, buses/, controllers/, hosts/
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
}

/// What `simulate` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The engine that serves arrays runs unchanged, in virtual time, on models of drives, buses, controller and host. \
Nothing is read or written. `--list` shows the profiles there are; a file NAME.toml in a folder given by --models \
adds one.

Examples:
  openraid simulate --list
  openraid simulate raid5x8 --system openraid --drive exos_x18_18tb --load file-server --depth 16
  openraid simulate raid10x4 --system 3ware-9650se --reads 70 --depth 64 --degraded 1 --range
  openraid simulate raid5x4 --drive wd740gd --way write --depth 4 --effort quick --explain 3
  openraid simulate raid0x6 --system intel-rst --load random --way write --depth 32 --drive-state fresh
  openraid simulate raid6x8 --load trace.csv --json")]
pub struct SimulateArguments {
    /// The array: single, raidLxN (L: 0, 1, 1e, 10, 5, 6, 50, 60; N drives), jbodxN, linearxN
    #[arg(value_name = "ARRAY", required_unless_present = "list")]
    pub array: Option<String>,
    /// The controller: a profile's name
    #[arg(long, value_name = "PROFILE", default_value = "openraid")]
    pub system: String,
    /// The load
    #[command(flatten)]
    pub load: LoadArguments,
    /// So many members are missing
    #[arg(long, value_name = "N", conflicts_with = "rebuilding")]
    pub degraded: Option<u16>,
    /// One member is being filled
    #[arg(long)]
    pub rebuilding: bool,
    /// Say how far uncertain values of the profiles, and chance, can move the answer: two runs more for each of them
    #[arg(long)]
    pub range: bool,
    /// Tell the stories of the last so many requests, as `explain` does of a served array
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub explain: Option<u8>,
    /// List the profiles of controllers, drives and buses instead
    #[arg(long)]
    pub list: bool,
}

/// What `review` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Results are kept cell by cell in DIR/cells: a review that was interrupted goes on where it was, and one that was \
extended measures only what is new. DIR/report.html is the report, DIR/results.json all figures, DIR/fio.json the same \
in fio's shape. A folder takes the review of one target only.

A real target (a file, a block device, an NBD address) is only read unless --destroy-data is given and its name is \
typed, on the terminal or with --name. Methods that make no sense on it say why.

Exit codes: 0 also where cells are not applicable; 2 where a cell has failed or the target has gone; 4 where the target \
cannot be opened or is too small (in use, no server); 64 for wrong usage: what is named is no target, or none of it can have the load of \
your own (a trace that reaches beyond it, one that writes to what is only read).

Examples:
  openraid review --methods list
  openraid review --target sim:3ware-9650se --arrays single,raid0x2,raid5x4 --methods database,sequential --out review
  openraid review --target sim:openraid --drive exos_x18_18tb --cache-mib 512 --arrays raid6x8 --out larger-cache
  openraid review --target /dev/sdx --methods web-server,transfer-graph --out sdx
  openraid review --target /dev/sdx --methods all --destroy-data --out sdx
  openraid review --target sim:openraid --arrays raid5x8,raid6x8 --load trace.csv --out trace
  openraid review --target sim:3ware-9650se --methods file-server --repeat 5 --out spread")]
pub struct ReviewArguments {
    /// sim:PROFILE, a file, a block device, or an NBD address
    #[arg(long, value_name = "TARGET", default_value = "sim:openraid")]
    pub target: String,
    /// Arrays of a simulated target, separated by commas [default: single,raid0x4,raid10x4,raid5x4]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub arrays: Option<Vec<String>>,
    /// Methods by name or number, separated by commas; all; or list [default: response-time,sequential,database,
    /// file-server; none with --load]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub methods: Option<Vec<String>>,
    /// A load of your own, as a method: one of simulate's loads, a fio job, an Iometer .icf, a trace
    #[arg(long, value_name = "LOAD|FILE")]
    pub load: Option<String>,
    /// The job, the access specification or the device, of a file that holds several
    #[arg(long, value_name = "NAME", requires = "load")]
    pub job: Option<String>,
    /// The simulated machine
    #[command(flatten)]
    pub machine: MachineArguments,
    /// Measure every cell so often; the report shows the median and from the lowest to the highest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Folder of the results; it is made if it is not there
    #[arg(long, value_name = "DIR", default_value = "review")]
    pub out: PathBuf,
    /// How much is measured of each cell of a simulated target [default: normal]
    #[arg(long, value_name = "HOW")]
    pub effort: Option<EffortWord>,
    /// Seconds that each cell of a real target is measured [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: Option<u32>,
    /// The same seed gives the same figures, byte by byte, on a simulated target
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads for simulated targets [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// A folder with profiles of your own
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Let methods write to a real target: ALL ITS DATA ARE LOST
    #[arg(long)]
    pub destroy_data: bool,
    /// The target's name, instead of typing it on the terminal: the last part of a path, the name of an export
    #[arg(long, value_name = "NAME", requires = "destroy_data")]
    pub name: Option<String>,
    /// Write a real target full twice before it is measured, so that an SSD shows its steady state
    #[arg(long, requires = "destroy_data")]
    pub precondition: bool,
}

/// What `compare` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Compared are cells with the same array, load, axes and state; system, drives, state of SSDs, bus, cache, chunk, seed \
and effort may differ, and of repetitions the median counts. A measured target has \
one array, which is compared with whatever single array the other review has: so a prediction is held against service.

Example:
  openraid compare review-of-today review-of-last-week")]
pub struct CompareArguments {
    /// The first review: its folder, or its results.json
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The second review
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Show so many cells, those with the largest changes
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Write a page with both in one chart; only a page of this program is replaced
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What `rehearse` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
An array of paced members (model:PROFILE, in memory) is served here, and measured over NBD by the generator that \
measures real targets; the same requests go to the same array in virtual time. Both write through the controller's \
cache and have the drives' own caches on. DIR/report.html has both in one chart, and the errors of mean and 99th \
percentile; DIR/results.json has the figures.

It takes the seconds of each cell, and a tenth of them more, for each share of reads and each depth. Each of them has \
an array of its own, as its prediction has: a cache keeps what was read before. Both files are written again after each.

Examples:
  openraid rehearse raid5x4 --drive wd740gd
  openraid rehearse raid10x8 --drive exos_x18_18tb --reads 100 --depth 1,8 --seconds 60 --out rehearsal")]
pub struct RehearseArguments {
    /// The array: single, or raidLxN (L: 0, 1, 1e, 10, 5, 6; N drives)
    #[arg(value_name = "ARRAY")]
    pub array: String,
    /// The drives: a profile's name, as `openraid simulate --list` shows them
    #[arg(long, value_name = "PROFILE", default_value = "wd740gd")]
    pub drive: String,
    /// Shares of reads, in percent, separated by commas
    #[arg(long, value_name = "LIST", default_value = "100,67,0", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: Vec<u8>,
    /// Requests that are kept outstanding, separated by commas
    #[arg(long, value_name = "LIST", default_value = "1,4,16", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: Vec<u32>,
    /// Bytes of a request
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = quantity::size)]
    pub block: Bytes,
    /// Seconds that each cell is measured
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Another seed asks for other places
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A folder with profiles of your own: drives/, buses/, controllers/, hosts/
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Folder of the results; it is made if it is not there
    #[arg(long, value_name = "DIR", default_value = "rehearsal")]
    pub out: PathBuf,
}

/// Loads of `plan`: a trace has its own times, which an array that is too slow for it does not change.
const PLAN_LOAD: &str =
    "The load: database, sequential, random, file-server, web-server, workstation, multi-threaded, \
response-time, latency, streaming, or a file: a fio job, an Iometer .icf, the output of iostat -x (text or JSON)";

/// What `plan` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Planned is what is served: the first line of the answer says when writes are acknowledged, and which caches are on. \
openraid writes through without a cache unless --cache wb or --cache-mib is given.

For each level: what it holds, which failures it survives (always - at most), requests a second and latency healthy, \
with a drive missing and while its successor is filled, and what holds it back; then how long a rebuild takes, idle and \
under the load, and how likely data is lost in it. P99 and UNCERTAINTY are about the healthy array.

Levels are compared by runs with the same seeds: the same requests at the same places. The answer says by how much one is \
faster, with a 95 % interval, and calls two levels not told apart where that holds zero.

--effort quick takes seconds and leaves out, without --range, what takes minutes: every estimated value of the profiles at both ends of its \
range, the other mode of the write cache, and for the fastest level that survives a failure a quarter of the cache and \
four times as much.

Examples:
  openraid plan --drives 8 --drive exos_x18_18tb --load file-server --depth 16
  openraid plan --drives 4 --system 3ware-9650se --load database --reads 70 --depth 64 --levels 10,5")]
#[command(mut_arg("load", |load| load.help(PLAN_LOAD)))]
pub struct PlanArguments {
    /// How many drives
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub drives: u16,
    /// The controller: a profile's name
    #[arg(long, value_name = "PROFILE", default_value = "openraid")]
    pub system: String,
    /// With --effort quick, too: every estimated value of the profiles at both ends of its range, the other mode of the write
    /// cache, and other sizes of it
    #[arg(long)]
    pub range: bool,
    /// Levels, separated by commas [default: those that so many drives behind this controller can have]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub levels: Vec<String>,
    /// The load
    #[command(flatten)]
    pub load: LoadArguments,
}
