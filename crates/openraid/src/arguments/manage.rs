//! Verbs for arrays that are served.

use super::member_help;
use crate::program_settings;
use crate::quantity;
use crate::words::consistency::ConsistencyWord;
use clap::{Args, Subcommand, ValueEnum};
use openraid_units::Bytes;

/// An array.
#[derive(Args, Debug)]
pub struct ArrayArgument {
    /// Name of the array
    pub array: String,
}

/// What `rename` takes.
#[derive(Args, Debug)]
pub struct RenameArguments {
    /// Name of the array
    pub array: String,
    /// Its new name
    #[arg(value_name = "NEW")]
    pub to: String,
}

/// What `path` takes.
#[derive(Args, Debug)]
pub struct PathArguments {
    /// Name of the array
    pub array: String,
    /// How hosts reach it by the addresses of this server
    #[arg(value_name = "STATE", value_parser = crate::words::host_path::WORDS)]
    pub state: String,
}

/// What `login` takes.
#[derive(Args, Debug)]
pub struct LoginArguments {
    /// Administrator, Operator or ReadOnly
    #[arg(long, value_name = "ROLE", default_value = "Administrator")]
    pub role: String,
    /// Print a token for scripts: they send it as `Authorization: Bearer TOKEN`. It ends as a session does, after 12 hours
    #[arg(long)]
    pub token: bool,
    /// Name of the token: it lasts until it is revoked, also over restarts of the server
    #[arg(long, value_name = "NAME", requires = "token")]
    pub name: Option<String>,
    /// Revoke the token of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["role", "token", "name"])]
    pub revoke: Option<String>,
}

/// What `show` takes.
#[derive(Args, Debug)]
pub struct ShowArguments {
    /// Name of the array
    pub array: String,
    /// Print in the format of /proc/mdstat
    #[arg(long, conflicts_with_all = ["follow"])]
    pub mdstat: bool,
    /// Keep printing until the rebuild, resync or check ends
    #[arg(short, long)]
    pub follow: bool,
    /// Wait until a server serves the array, at most this long; for scripts that have just started `serve` in the
    /// background
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wait: Option<u64>,
}

/// What `explain` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Without an option: what limits the array now, which setting changes that, and the number of decisions by reason since the \
start.

The story of a request is its path through the controller: its operations, its waits, the commands to each member with \
sectors and times, parity computations, journal entries, and the destage of its data. Stories are made from recorded \
steps. Steps are recorded while --follow runs, and from --record on until --record off; the last 32,768 are kept. Recording \
costs nothing while it is off.

Examples:
  openraid explain data
  openraid explain data --follow
  openraid explain data --record on
  openraid explain data --request last
  openraid explain data --slowest 3")]
pub struct ExplainArguments {
    /// Name of the array
    pub array: String,
    /// Story of one request: its number, as --follow shows it, or last
    #[arg(long, value_name = "N", value_parser = request, conflicts_with_all = ["follow", "record", "slowest"])]
    pub request: Option<RequestWord>,
    /// Stories of requests as they complete, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["record", "slowest"])]
    pub follow: bool,
    /// Stories of the COUNT slowest recorded requests
    #[arg(long, value_name = "COUNT", conflicts_with = "record", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub slowest: Option<u8>,
    /// Turn recording of steps on or off
    #[arg(long, value_name = "HOW")]
    pub record: Option<SwitchWord>,
}

impl ExplainArguments {
    /// Stories, not totals?
    pub const fn tells_stories(&self) -> bool {
        self.request.is_some() || self.follow || self.slowest.is_some()
    }
}

/// What `record` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The file has times, sizes and positions of all requests to the array, and none of their data. Its format is fio's iolog, version 3, \
with microseconds. `openraid-lab simulate` and `openraid-lab plan --from` read it, and fio plays it (--read_iolog).

Requests are recorded until Ctrl-C, for --seconds, or until the server ends; what was recorded so far is in the file at any time. \
Trims and zero writes are counted and left out. A request that covers no whole sectors is recorded with the sectors that \
it touches. At very high rates requests may be missed; the answer says so.

Examples:
  openraid record data --out monday.iolog --seconds 3600
  openraid-lab plan --drives 4,6 --from monday.iolog --effort quick")]
pub struct RecordArguments {
    /// Name of the array
    pub array: String,
    /// The new file
    #[arg(long, value_name = "FILE")]
    pub out: std::path::PathBuf,
    /// Stop after this many seconds [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub seconds: Option<u64>,
}

/// A request by its number, or the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestWord {
    /// The last one that ended.
    Last,
    /// The one with this number.
    Number(u64),
}

/// Something that is on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SwitchWord {
    /// Record from now on
    On,
    /// Stop recording
    Off,
}

fn request(text: &str) -> Result<RequestWord, String> {
    if text == "last" {
        return Ok(RequestWord::Last);
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(RequestWord::Number).ok_or_else(|| "give the number of a request, from 1 on, or `last`".into())
}

fn set_help() -> String {
    format!(
        "\
Settings, with the values of a new array:
{}

A setting is kept: the next server of the array applies it, also if the array was renamed. A server that cannot apply one \
(a write cache without serve --cache) says so and keeps it. Without a setting, all of them are shown. docs/settings.md has \
the table.

Example:
  openraid set data rebuild.rate=50M write.partial=rmw",
        program_settings::help()
    )
}

/// What `set` takes.
#[derive(Args, Debug)]
#[command(after_help = set_help())]
pub struct SetArguments {
    /// Name of the array
    pub array: String,
    /// Settings
    #[arg(value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Confirm a setting that puts data at risk
    #[arg(long)]
    pub yes: bool,
    /// controller-journal means write.cache=journal; the policy of the array's creation means write.cache=through
    #[arg(long, value_name = "POLICY", value_enum)]
    pub consistency_policy: Option<ConsistencyWord>,
}

/// An array and one of its members.
#[derive(Args, Debug)]
pub struct MemberArguments {
    /// Name of the array
    pub array: String,
    /// The member: its path or address, drive:N, or slot:N, as `show` prints them; slot:SPAN.N in a nested array
    #[arg(value_name = "MEMBER")]
    pub member: String,
}

/// What `fail` takes.
#[derive(Args, Debug)]
pub struct FailArguments {
    /// The array and the member
    #[command(flatten)]
    pub member: MemberArguments,
    /// Confirm, also if rows that are not in sync yet need the member
    #[arg(short, long, visible_alias = "force")]
    pub yes: bool,
}

/// What `locate` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The server calls the program `led` of the table [care] of its configuration file.

Example:
  openraid locate data slot:2")]
pub struct LocateArguments {
    /// The array and the member
    #[command(flatten)]
    pub member: MemberArguments,
    /// Switch the light off again
    #[arg(long)]
    pub off: bool,
}

/// What `add` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A former member is re-added: with a bitmap, only the regions that it missed are written to it.

Examples:
  openraid add data /dev/sdf
  openraid spare add data /dev/sdf")]
pub struct AddArguments {
    /// Name of the array
    pub array: String,
    /// The new member
    #[arg(value_name = "MEMBER", long_help = member_help("The new member"))]
    pub member: String,
    /// Span of a nested array, counted from 0 [default: the degraded one]
    #[arg(long = "span", visible_alias = "leg", value_name = "N")]
    pub span: Option<usize>,
    /// Create the member as a sparse file of this size; it must not exist
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub file_size: Option<Bytes>,
    /// Do not ask. Also adds the other half of a split array, whose own writes are lost
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: use the drive even if it holds a file system, a partition table or another array
    #[arg(long)]
    pub overwrite: bool,
}

/// What `replace` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
The array keeps its redundancy: the old member works until the copy is complete.

Example:
  openraid replace data /dev/sdb --with /dev/sdf")]
pub struct ReplaceArguments {
    /// Name of the array
    pub array: String,
    /// The member to be replaced: its path or address, drive:N, or slot:N
    #[arg(value_name = "MEMBER")]
    pub member: String,
    /// The new drive, or a spare of the array [default: any spare]
    #[arg(long, value_name = "MEMBER")]
    pub with: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: use the new drive even if it holds a file system, a partition table or another array
    #[arg(long)]
    pub overwrite: bool,
}

/// What `reshape` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Data moves while hosts read and write. After a power cut, a kill or a stop, the next server goes on; nothing but the members is \
needed. `show` has the progress, `pause` and `resume` hold the change and let it go on, `set rebuild.rate=` limits it. New \
connections get the larger size at the end.

Examples:
  openraid reshape data --members /dev/sde --plan
  openraid reshape data --members /dev/sde
  openraid grow data --raid-devices 5 --add /dev/sde")]
pub struct ReshapeArguments {
    /// Name of the array
    pub array: String,
    /// Drives that join the array first, as spares; the array gets one member more for each, if --raid-devices is not given
    #[arg(long, visible_alias = "add", value_name = "MEMBER", num_args = 1.., long_help = member_help("Drives that join the array first, as spares; the array gets one member more for each, if --raid-devices is not given"))]
    pub members: Vec<String>,
    /// The new number of members [default: the present number and the named drives]
    #[arg(short = 'n', long, value_name = "N")]
    pub raid_devices: Option<u16>,
    /// The new level
    #[arg(short, long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// The new size of a chunk
    #[arg(short, long, value_name = "SIZE")]
    pub chunk: Option<String>,
    /// The new layout
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<String>,
    /// The size that is used of each member; `max`: all room, after smaller drives were replaced. A smaller size needs
    /// --array-size before
    #[arg(short = 'z', long, value_name = "SIZE", conflicts_with_all = ["members", "raid_devices", "level", "chunk", "layout", "file_size"])]
    pub size: Option<String>,
    /// Let hosts have the first part of the array only, before it becomes smaller; `max`: all of it again. Nothing is lost, and
    /// the next server forgets it
    #[arg(short = 'Z', long, value_name = "SIZE", conflicts_with_all = ["members", "raid_devices", "level", "chunk", "layout", "size", "plan", "cancel", "follow", "file_size"])]
    pub array_size: Option<String>,
    /// Only say what would happen: steps, room, time, risks
    #[arg(long, visible_alias = "dry-run", conflicts_with = "follow")]
    pub plan: bool,
    /// Turn the change that is under way around: what has moved moves back
    #[arg(long, conflicts_with_all = ["members", "raid_devices", "level", "chunk", "layout", "size", "plan", "file_size"])]
    pub cancel: bool,
    /// Create the named drives as sparse files of this size; they must not exist
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub file_size: Option<Bytes>,
    /// Wait for the end
    #[arg(short, long)]
    pub follow: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// With --yes: use the named drives even if they hold a file system, a partition table or another array
    #[arg(long)]
    pub overwrite: bool,
}

/// What `spare` takes.
#[derive(Args, Debug)]
pub struct SpareArguments {
    /// What to do with spares
    #[command(subcommand)]
    pub verb: SpareVerb,
}

/// The verbs for spares.
#[derive(Subcommand, Debug)]
pub enum SpareVerb {
    /// Add a hot spare
    Add(AddArguments),
    /// Remove a spare
    Remove(MemberArguments),
    /// List the spares of an array
    List(ArrayArgument),
}

/// What `check` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes with --follow: 0 no mismatches, 3 mismatches, 5 aborted, 6 nothing could be compared (the level has no redundancy, \
or missing members need all of it). `show` prints the last result, also after a restart.")]
pub struct CheckArguments {
    /// Name of the array
    pub array: String,
    /// Abort a running check or repair
    #[arg(long, conflicts_with = "follow")]
    pub stop: bool,
    /// Wait for the end, and print the result
    #[arg(short, long)]
    pub follow: bool,
    /// List past checks and repairs, with the mismatches of each member; no server is needed
    #[arg(long, conflicts_with_all = ["stop", "follow"])]
    pub history: bool,
}

/// What `repair` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A mismatch is corrected if it can be attributed to one member: on RAID 6, and on mirrors of three copies. Mismatches that \
cannot be attributed (RAID 5, two copies) are reported and left unchanged, unless --trust-data rewrites parity or the other copies.

Exit codes with --follow: 0 no mismatches left, 3 mismatches left, 5 aborted, 6 nothing could be compared.")]
pub struct RepairArguments {
    /// Name of the array
    pub array: String,
    /// Recompute mismatched parity from the data, and overwrite mismatched copies with the first readable one, as md's
    /// repair does
    #[arg(long)]
    pub trust_data: bool,
    /// Wait for the end, and print the result
    #[arg(short, long)]
    pub follow: bool,
}

/// What `stop` takes.
#[derive(Args, Debug)]
pub struct StopArguments {
    /// Name of the array
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub array: Option<String>,
    /// Stop all arrays and the server
    #[arg(long)]
    pub all: bool,
    /// Stop although files of members were deleted or replaced: their data is lost
    #[arg(short, long)]
    pub yes: bool,
}
