//! `openraid-lab simulate`, `review`, `compare` and `plan`: predictions for arrays before they are bought, and measurements
//! of arrays.

use clap::{Args, ValueEnum};
use openraid::quantity;
use openraid_methods::metrics::Scheme;
use openraid_methods::run::RunShard;
use openraid_units::Bytes;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum EffortWord {
    /// Thousands of requests per cell
    Quick,
    /// Means within about 1 %
    Normal,
    /// For tail latencies: hundreds of thousands of requests per cell
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

/// A drive's own write cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DriveCacheWord {
    /// Writes are acknowledged from the drive's memory
    On,
    /// Writes are acknowledged from the medium
    Off,
}

/// A drive's own read-ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DriveReadAheadWord {
    /// After a read the drive reads on into its buffer
    On,
    /// The drive reads requested sectors only
    Off,
}

/// The earlier use of SSDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DriveStateWord {
    /// As from the factory: no garbage collection until the drive has been written full
    Fresh,
    /// Written full at least once: garbage collection is active
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

/// A part of a machine that has a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum StandInWord {
    /// The drives: there is no profile of them
    Drive,
    /// Controller, processor or file system
    Host,
}

/// The parts of a simulated machine other than its controller, for all verbs that have one.
#[derive(Args, Debug, Clone)]
pub struct MachineArguments {
    /// Drive profile [default: the drive that the controller's profile names]
    #[arg(long, value_name = "PROFILE")]
    pub drive: Option<String>,
    /// State of SSDs before the run [default: steady]
    #[arg(long, value_name = "STATE")]
    pub drive_state: Option<DriveStateWord>,
    /// Write caches of the drives themselves [default: as in the drive's profile]
    #[arg(long, value_name = "STATE")]
    pub drive_cache: Option<DriveCacheWord>,
    /// Read-ahead of the drives themselves [default: as in the drive's profile]
    #[arg(long, value_name = "STATE")]
    pub drive_read_ahead: Option<DriveReadAheadWord>,
    /// Write cache of the controller. On cards with one switch it applies to the drives too [default: as in the
    /// profile; for openraid wt without a cache, as `serve` without --cache]
    #[arg(long, value_name = "MODE")]
    pub cache: Option<CacheWord>,
    /// Size of the controller's cache in MiB; write-back unless --cache wt is given [default: as in the profile;
    /// openraid with --cache wb: 256]
    #[arg(long, value_name = "MIB")]
    pub cache_mib: Option<u32>,
    /// Host bus profile, in place of the controller's
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// Chunk size
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub chunk: Option<Bytes>,
}

/// The load, for verbs that take one.
#[derive(Args, Debug, Clone)]
pub struct LoadArguments {
    /// The load: database, sequential, random, file-server, web-server, workstation, multi-threaded, response-time,
    /// latency, streaming; by use: vm, video, backup, home; or a file: a fio job, an Iometer .icf, the output of iostat
    /// -x (text or JSON), a trace (blkparse, fio iolog, CSV of MSR, SPC, Alibaba, SYSTOR '17)
    #[arg(long, value_name = "LOAD|FILE", default_value = "database")]
    pub load: String,
    /// Job, access specification or device to use, if the file holds several
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
    /// Share of reads, in percent
    #[arg(long, value_name = "PERCENT", conflicts_with = "way", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: Option<u8>,
    /// Queue depth of each worker
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Number of workers
    #[arg(long, value_name = "N")]
    pub workers: Option<u16>,
    /// Request size
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub block: Option<Bytes>,
    /// Read only, or write only
    #[arg(long, value_name = "WAY")]
    pub way: Option<WayWord>,
    /// Use the first 32 GB only
    #[arg(long)]
    pub first_32_gb: bool,
    /// Drive profile of the journal's device; 2xPROFILE if it is mirrored, as `serve --journal` given twice. Writes are
    /// acknowledged from it; --cache-mib is the size of the cache that goes with it [default: no journal; with one, a
    /// cache of 64 MiB]
    #[arg(long, value_name = "[2x]PROFILE")]
    pub journal: Option<String>,
    /// The machine
    #[command(flatten)]
    pub machine: MachineArguments,
    /// Parts of which the given profile is only the nearest, separated by commas: ranges are wider [default: none; a
    /// profile of present hosts is one of the class in any case]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub nearest: Vec<StandInWord>,
    /// How much is measured
    #[arg(long, value_name = "HOW", default_value = "normal")]
    pub effort: EffortWord,
    /// Seed; the same seed gives exactly the same figures
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Directory with own profiles: drives/, buses/, controllers/, hosts/
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
}

/// What `simulate` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The engine that serves arrays runs unchanged, in virtual time, on models of drives, buses, controller and host. \
No drive is read or written. `--list` shows the profiles; a file NAME.toml in the directory of --models adds one.

Examples:
  openraid-lab simulate --list
  openraid-lab simulate raid5x8 --system openraid --drive exos_x18_18tb --load file-server --depth 16
  openraid-lab simulate raid10x4 --system 3ware-9650se --reads 70 --depth 64 --degraded 1 --range
  openraid-lab simulate raid5x4 --drive wd740gd --way write --depth 4 --effort quick --explain 3
  openraid-lab simulate raid0x6 --system intel-rst --load random --way write --depth 32 --drive-state fresh
  openraid-lab simulate raid5x4 --way write --block 4K --depth 4 --journal 2xs3500_480
  openraid-lab simulate raid5x4 --drive exos_x18_18tb --load file-server --depth 8 --reshape raid5x5
  openraid-lab simulate raid6x8 --load trace.csv --json")]
pub struct SimulateArguments {
    /// The array: single, raidLxN (L: 0, 1, 1e, 10, 5, 6, 50, 60; N drives), jbodxN, linearxN
    #[arg(value_name = "ARRAY", required_unless_present = "list")]
    pub array: Option<String>,
    /// Controller profile
    #[arg(long, value_name = "PROFILE", default_value = "openraid")]
    pub system: String,
    /// The load
    #[command(flatten)]
    pub load: LoadArguments,
    /// Number of missing members
    #[arg(long, value_name = "N", conflicts_with = "rebuilding")]
    pub degraded: Option<u16>,
    /// One member is being rebuilt
    #[arg(long)]
    pub rebuilding: bool,
    /// The array changes its shape to this one meanwhile: raid4xN, raid5xN, raid6xN or raid10xN
    #[arg(long, value_name = "ARRAY", conflicts_with_all = ["degraded", "rebuilding", "range"])]
    pub reshape: Option<String>,
    /// Print the range of the result by estimated profile values and chance: two more runs for each estimated value
    #[arg(long)]
    pub range: bool,
    /// Print the stories of the last COUNT requests, as `explain` does for a served array
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub explain: Option<u8>,
    /// List the profiles of controllers, drives and buses
    #[arg(long)]
    pub list: bool,
}

/// What `review` takes.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Results are stored per cell in DIR/cells. An interrupted review continues where it stopped, and an extended one measures only \
the new cells. DIR/report.html is the report, DIR/results.json has all figures, DIR/fio.json has them in fio's format. A \
directory holds the review of one target; named targets have directories of their own, DIR/NAME.

Arrays made of --members are measured in this process; the members must be blank, or their names given with --destroy-data \
and --name. Files are read in whole to check this; of a block device above 1 GiB only 64 places of 1 MiB are read, and data between \
them is not seen. --chunk, --cache-mib and --drive-cache apply to these arrays too.

A real target (a file, a block device, an NBD address) is only read, unless --destroy-data is given and its name is \
typed on the terminal or given with --name. A method that does not apply to the target says why.

Exit codes: 0 also if some cells do not apply; 74 if a cell failed or the target disappeared; 4 if the target cannot be opened \
(in use, no server) or is too small; 65 if nothing was done: a member or folder holds other data, or no target can run the \
given load (a trace that ends past the target, a load that writes to a target that is only read); 64 for wrong usage.

Examples:
  openraid-lab review --methods list
  openraid-lab review --target sim:3ware-9650se --arrays single,raid0x2,raid5x4 --methods database,sequential --out review
  openraid-lab review --target sim:openraid --drive exos_x18_18tb --cache-mib 512 --arrays raid6x8 --out larger-cache
  openraid-lab review --target /dev/sdx --methods web-server,transfer-graph --out sdx
  openraid-lab review --target /dev/sdx --methods all --destroy-data --out sdx
  openraid-lab review --target sim:openraid --arrays raid5x8,raid6x8 --load trace.csv --out trace
  openraid-lab review --target sim:3ware-9650se --methods file-server --repeat 5 --out spread
  openraid-lab review --members d1,d2,d3,d4 --levels single,0x4,10x4,5x4 --caches wb,wt --rank R1 --out own-drives
  openraid-lab review --target md=/dev/md0 --target card=/dev/sdx --target model=sim:openraid --methods web-server --out three")]
pub struct ReviewArguments {
    /// sim:PROFILE, a file, a block device, or an NBD address. Several targets go into one report: give each a name, as
    /// in --target md=/dev/md0 --target card=/dev/sdx [default: sim:openraid; none with --members]
    #[arg(long, value_name = "[NAME=]TARGET")]
    pub target: Vec<String>,
    /// Blank files or drives, separated by commas: each array of --levels is made of the first of them, synchronised,
    /// measured and taken apart, one after the other
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub members: Vec<String>,
    /// Arrays made of --members, separated by commas, as LEVELxDRIVES: single, 0x4, 10x4, 5x8, 50x8
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "members")]
    pub levels: Vec<String>,
    /// Write caches of the arrays made of --members, separated by commas: each array is measured with each of them
    /// [default: wt]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "members")]
    pub caches: Vec<CacheWord>,
    /// Name of the arrays made of --members next to named targets [default: served]
    #[arg(long, value_name = "NAME", requires = "members")]
    pub label: Option<String>,
    /// Rank arrays by this rating, R1 to R5 or R5-light. It orders the bars of each method that varies the queue, and a
    /// list in the answer [default: the load's own rating, no list]
    #[arg(long, value_name = "RATING", value_parser = rating)]
    pub rank: Option<Scheme>,
    /// Arrays of a simulated target, separated by commas [default: those of --levels, else
    /// single,raid0x4,raid10x4,raid5x4]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub arrays: Option<Vec<String>>,
    /// Methods by name or number, separated by commas; all; or list [default:
    /// response-time,sequential,database,file-server; none with --load]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub methods: Option<Vec<String>>,
    /// An own load as a method: one of simulate's loads, a fio job, an Iometer .icf, a trace
    #[arg(long, value_name = "LOAD|FILE")]
    pub load: Option<String>,
    /// Job, access specification or device to use, if the file holds several
    #[arg(long, value_name = "NAME", requires = "load")]
    pub job: Option<String>,
    /// The simulated machine
    #[command(flatten)]
    pub machine: MachineArguments,
    /// A journal: each array of --members is also measured with a journal on this blank file or drive, given twice if it
    /// is mirrored; the arrays of a simulated target have one on a drive of this profile
    #[arg(long, value_name = "DEVICE|[2x]PROFILE")]
    pub journal: Vec<String>,
    /// Measure every cell N times; the report shows the median, the lowest and the highest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repeat: u32,
    /// Directory of the results; created if missing
    #[arg(long, value_name = "DIR", default_value = "review")]
    pub out: PathBuf,
    /// Requests per cell of a simulated target [default: normal]
    #[arg(long, value_name = "HOW")]
    pub effort: Option<EffortWord>,
    /// Seconds per cell of a real target [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: Option<u32>,
    /// Seed; on a simulated target the same seed gives exactly the same figures
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Only part I of N of the cells, for runs on several machines; `openraid-lab merge` joins all parts into one review
    #[arg(long, value_name = "I/N", conflicts_with = "members")]
    pub shard: Option<RunShard>,
    /// Threads for simulated targets [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Directory with own profiles
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Let methods write to a real target: ALL ITS DATA IS LOST
    #[arg(long)]
    pub destroy_data: bool,
    /// The target's or member's name, in place of typing it on the terminal: the last part of its path, or the export's
    /// name; repeatable
    #[arg(long, value_name = "NAME", requires = "destroy_data")]
    pub name: Vec<String>,
    /// Write a real target, or each of --members, full twice before the measurement, so that an SSD is in steady state
    #[arg(long, requires = "destroy_data")]
    pub precondition: bool,
}

/// A rating by its name.
fn rating(word: &str) -> Result<Scheme, String> {
    let known = Scheme::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(word));
    known.ok_or_else(|| "no such rating; give one of R1, R2, R3, R4, R5, R5-light".into())
}

/// What `merge` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Parts are made by `openraid-lab review --shard I/N` (directories) or `openraid-lab plan --shard I/N --json` (files). All parts must be there, \
and made by the same program with the same profiles. The joined review is the same as that of one run without --shard. The \
parts are not changed.

Examples:
  openraid-lab review --target sim:openraid --methods file-server --shard 1/2 --out part1
  openraid-lab review --target sim:openraid --methods file-server --shard 2/2 --out part2
  openraid-lab merge part1 part2 --out whole
  openraid-lab plan --drives 4,6,8,10 --load vm --effort quick --shard 1/2 --json > plan1.json
  openraid-lab plan --drives 4,6,8,10 --load vm --effort quick --shard 2/2 --json > plan2.json
  openraid-lab merge plan1.json plan2.json")]
pub struct MergeArguments {
    /// The parts: directories of reviews, or files of plans
    #[arg(value_name = "PART", required = true)]
    pub parts: Vec<PathBuf>,
    /// Directory of the joined review; created if missing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Directory with own profiles, as the parts had it
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
}

/// What `compare` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The command compares cells with the same array, load, axes and state. System, drives, state of SSDs, bus, cache, chunk, seed \
and effort may differ. Repeated cells count by their median. A measured target has one array, which is compared with the \
single array of the other review; this is how a prediction is checked against a measurement.

Example:
  openraid-lab compare review-of-today review-of-last-week")]
pub struct CompareArguments {
    /// The first review: its directory, or its results.json
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The second review
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Number of cells to show, those with the largest changes first
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Write an HTML page with both reviews in one chart; only a page written by openraid is replaced
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What `rehearse` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The command serves an array of paced members (model:PROFILE, in memory) and measures it over NBD with the load generator for \
real targets. The same requests go to the same array in virtual time. Both arrays write through, and the drives' own caches \
are on. DIR/report.html shows both in one chart, with the errors of mean and 99th percentile; DIR/results.json has the figures.

Each combination of share of reads and depth is a cell, and takes 1.1 times --seconds. Each cell has a new array, as its \
prediction has, because a cache would keep data of the cell before. Both files are rewritten after each cell.

Examples:
  openraid-lab rehearse raid5x4 --drive wd740gd
  openraid-lab rehearse raid10x8 --drive exos_x18_18tb --reads 100 --depth 1,8 --seconds 60 --out rehearsal")]
pub struct RehearseArguments {
    /// The array: single, or raidLxN (L: 0, 1, 1e, 10, 5, 6; N drives)
    #[arg(value_name = "ARRAY")]
    pub array: String,
    /// Drive profile, as `openraid-lab simulate --list` shows them
    #[arg(long, value_name = "PROFILE", default_value = "wd740gd")]
    pub drive: String,
    /// Shares of reads in percent, separated by commas
    #[arg(long, value_name = "LIST", default_value = "100,67,0", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: Vec<u8>,
    /// Queue depths, separated by commas
    #[arg(long, value_name = "LIST", default_value = "1,4,16", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: Vec<u32>,
    /// Request size
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = quantity::size)]
    pub block: Bytes,
    /// Seconds per cell
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Seed of the random positions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Directory with own profiles: drives/, buses/, controllers/, hosts/
    #[arg(long, value_name = "DIR")]
    pub models: Option<PathBuf>,
    /// Directory of the results; created if missing
    #[arg(long, value_name = "DIR", default_value = "rehearsal")]
    pub out: PathBuf,
}

/// `plan` takes several drives and buses.
const PLAN_DRIVE: &str = "Drive profiles, separated by commas: each is a plan of its own. Mixed drives of one array: \
6xNAME+2xNAME [default: the drive that the controller's profile names]";
const PLAN_BUS: &str = "Host bus profiles in place of the controller's, separated by commas: each is a plan of its own";

/// What `plan` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The plan describes the array as `serve` would run it: write-through without a cache, unless --cache wb or --cache-mib is given. \
The first line of the answer says when writes are acknowledged and which caches are on.

For each level: capacity, failures survived (always - at most), requests/s and latency of the healthy, degraded and rebuilding \
array, and the limiting part; then the time of a rebuild, idle and under the load, and the chance of data loss during it. \
P99 and RANGE apply to the healthy array. RANGE has percent below and above. It contains chance, the estimated \
values of the profiles if they were varied, and the model's own error for this class of load. docs/lab/calibration.md says how \
many published figures lie inside it.

Levels are compared by runs with the same seeds, that is the same requests at the same positions. The answer gives the \
difference with a 95 % interval. If the interval contains zero, the answer says that the levels cannot be distinguished.

The answer recommends a level: the fastest, or one that is at most a tenth slower and has more room. If a level loses data within five years \
in more than 1 % of cases, its speed counts less in proportion: half at 2 %. For each other level the answer says why that is not recommended. \
A trace is played at its own times; levels are then compared by the mean latency.

Without --depth, a load has as many outstanding requests as its use has: 16 for database, file-server and web-server. Loads of large requests are \
given in MB/s, too. With a rate (--rate, or the output of iostat) at least 32 requests are outstanding, so that the array shows the most that it carries.

--journal adds a journal with a drive of its own. Each level is then also run without it, and the answer says what the journal brings, and which part is the limit: its device, or the drives that its data goes to.

--effort quick takes seconds. Unless --range is given, it leaves out the runs that take minutes: every estimated profile value at \
both ends of its range, the other write cache mode, and, for the fastest level that survives a failure, a quarter and four \
times the cache.

Examples:
  openraid-lab plan --drives 8 --drive exos_x18_18tb --load file-server --depth 16
  openraid-lab plan --drives 4 --system 3ware-9650se --load database --reads 70 --depth 64 --levels 10,5
  openraid-lab plan --drives 4,6,8 --drive exos_x18_18tb --load vm --effort quick --price 279.90 --kwh-price 0.30
  openraid-lab plan --drives 8 --drive 6xexos_x18_18tb+2xmg08_16tb --load backup --effort quick
  openraid-lab plan --drives 8 --load vm --journal pm9a3_1920 --effort quick
  openraid-lab plan --drives 4 --from recorded.iolog --effort quick
  openraid-lab plan --drives 4,6 --from iostat.txt --job sda --effort quick
  openraid-lab plan --drives 8 --load vm --caches wt,wb:256 --chunks 64K,512K --spares 0,1 --effort quick")]
#[command(mut_arg("drive", |drive| drive.help(PLAN_DRIVE)), mut_arg("bus", |bus| bus.help(PLAN_BUS)))]
pub struct PlanArguments {
    /// Numbers of drives, separated by commas: each is a plan of its own, and the answer says what more drives bring
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub drives: Vec<u16>,
    /// Controller profile
    #[arg(long, value_name = "PROFILE", default_value = "openraid")]
    pub system: String,
    /// With --effort quick: also run every estimated profile value at both ends of its range, the other write cache
    /// mode, and other cache sizes
    #[arg(long)]
    pub range: bool,
    /// Levels, separated by commas [default: all that this controller offers for this number of drives, but not RAID 4]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub levels: Vec<String>,
    /// Write caches, separated by commas, each is a plan of its own: wt, wb, or with a size in MiB as wb:256
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["cache", "cache_mib"])]
    pub caches: Vec<CacheChoice>,
    /// Chunk sizes, separated by commas: each is a plan of its own
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "chunk", value_parser = quantity::size)]
    pub chunks: Vec<Bytes>,
    /// Numbers of spares, separated by commas: each is a plan of its own, in which this number of drives waits for a failure
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(0..=32))]
    pub spares: Vec<u16>,
    /// Hours until a failed drive is replaced, if there is no spare [default: 0; with --spares 24]
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(0..=8760))]
    pub replace_after: Option<u32>,
    /// Requests each second that the array must carry: the answer says which level does, and with how much in reserve
    /// [default with the output of iostat: the recorded mean]
    #[arg(long, value_name = "N", value_parser = price)]
    pub rate: Option<f64>,
    /// Own load: a trace (openraid record, blkparse, fio iolog, CSV of MSR, SPC, Alibaba, SYSTOR '17), a fio job, an
    /// Iometer .icf, the output of iostat -x
    #[arg(long, value_name = "FILE", conflicts_with = "load")]
    pub from: Option<PathBuf>,
    /// Only part I of N of the machines, for runs on several computers; write the answer of each to a file with --json,
    /// and join all parts with `openraid-lab merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<RunShard>,
    /// Price of a drive, in any currency: the answer has the price of each usable TB. If --drive names several profiles,
    /// a price for each, separated by commas; for mixed drives of one array their mean price
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = price)]
    pub price: Vec<f64>,
    /// Price of a kilowatt hour: the answer has the electricity of the drives over five years
    #[arg(long, value_name = "N", value_parser = price)]
    pub kwh_price: Option<f64>,
    /// The load
    #[command(flatten)]
    pub load: LoadArguments,
}

/// A write cache with its size, as an option names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheChoice {
    /// Write-back, and not write-through?
    pub back: bool,
    /// Size in MiB, if it is given.
    pub mib: Option<u32>,
}

impl FromStr for CacheChoice {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (mode, size) = word.split_once(':').map_or((word, None), |(mode, size)| (mode, Some(size)));
        let mib = size.map(str::parse::<u32>).transpose().ok();
        match (mode, mib) {
            ("wb", Some(mib)) => Ok(Self { back: true, mib }),
            ("wt", Some(mib)) => Ok(Self { back: false, mib }),
            _ => Err("give wt or wb, or with a size in MiB, as in wb:256".into()),
        }
    }
}

impl fmt::Display for CacheChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.back { "write-back" } else { "write-through" })?;
        self.mib.map_or(Ok(()), |mib| write!(f, " {mib} MiB"))
    }
}

/// A price or a rate.
fn price(word: &str) -> Result<f64, String> {
    let price = word.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0 && *price < 1e9);
    price.ok_or_else(|| "give a number that is not negative, as in 279.90".into())
}
