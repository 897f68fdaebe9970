//! Verbs for arrays that are served.

use super::MEMBER_HELP;
use crate::consistency::ConsistencyWord;
use crate::quantity;
use clap::{Args, Subcommand, ValueEnum};
use openraid_units::Bytes;

/// An array.
#[derive(Args, Debug)]
pub struct ArrayArgument {
    /// Name of the array
    pub array: String,
}

/// What `show` takes.
#[derive(Args, Debug)]
pub struct ShowArguments {
    /// Name of the array
    pub array: String,
    /// In the form of /proc/mdstat
    #[arg(long, conflicts_with_all = ["follow"])]
    pub mdstat: bool,
    /// Go on until the rebuild, resync or check is over
    #[arg(short, long)]
    pub follow: bool,
    /// First wait until a server serves the array, at most this long; for scripts that have just started `serve` in the
    /// background
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wait: Option<u64>,
}

/// What `explain` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Without an option: what limits the array now and which knob moves it, and the totals by reason since it was started.

The story of a request says how it went through the controller: into which operations it was split, what it waited for,
which members were asked for which sectors and how long they took, what was computed, what went into the journal, and
what was written to the members later. Stories are told from steps, which are kept while --follow runs, or from
--record on until --record off; the last 32,768 of them, and nothing is spent on them otherwise.

Examples:
  openraid explain data
  openraid explain data --follow
  openraid explain data --record on
  openraid explain data --request last
  openraid explain data --slowest 3")]
pub struct ExplainArguments {
    /// Name of the array
    pub array: String,
    /// The story of one request: its number, as --follow shows it, or last
    #[arg(long, value_name = "N", value_parser = request, conflicts_with_all = ["follow", "record", "slowest"])]
    pub request: Option<RequestWord>,
    /// The stories of requests as they end, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["record", "slowest"])]
    pub follow: bool,
    /// The stories of so many requests, those that took longest of all that are kept
    #[arg(long, value_name = "COUNT", conflicts_with = "record", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub slowest: Option<u8>,
    /// Keep steps of requests from now on, or no more
    #[arg(long, value_name = "HOW")]
    pub record: Option<SwitchWord>,
}

impl ExplainArguments {
    /// Stories, not totals?
    pub const fn tells_stories(&self) -> bool {
        self.request.is_some() || self.follow || self.slowest.is_some()
    }
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
    /// From now on
    On,
    /// No more
    Off,
}

fn request(text: &str) -> Result<RequestWord, String> {
    if text == "last" {
        return Ok(RequestWord::Last);
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(RequestWord::Number).ok_or_else(|| "give the number of a request, counted from 1, or last".into())
}

/// What `set` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Settings:
  rebuild.rate=50M       upper bound of rebuild and resync, of each member a second; none: no bound
  scrub.rate=20M         upper bound of check and repair
  write.partial=fewest   how part of a stripe is written: fewest (member I/Os) or rmw (always read-modify-write)
  write.cache=through    when writes are acknowledged: through (on the members), journal (in the journal; wants serve
                         --journal), or volatile (in the server's cache, which forgets what was not flushed when the
                         power goes; wants --yes, and serve --cache)
  read.cache=on          whether what was read is kept in the server's cache
  drive.cache=unchanged  the write caches inside the members' drives: on, off, or unchanged (as they were found); drives of
                         SCSI, SAS, SATA and virtio only
  background.depth=8     rows in work at once in the background
  read-ahead=adaptive    what is read before it is asked for: none, always, or what follows reads in order (adaptive);
                         wants serve --cache
  read-ahead-max=4M      the most that is read ahead of one stream
  mirror-read=least-pending
                         which copy of a mirror is read: primary, round-robin, least-pending, nearest-head, or twinstor
                         (nearest head; long streams in sections from all copies)
  split-above=1M         twinstor: streams and requests longer than this are read in sections,
  split-section=1M       of this size
  split-streams=on       whether streams in order count as long there, or long single requests only
  sorting=on             whether what waits for a drive that spins is ordered by place
  adaptive=off           whether read-ahead, mirror-read and the time that dirty data waits follow the load: on, off, or
                         reset (on, and forget what was learned)
  profile=balanced       all settings but drive.cache at once: protection, balanced (as at first), or performance; all
                         use the journal where there is one, performance without one the volatile cache (wants --yes
                         and serve --cache)

They last until the server ends; only whether write.cache is journal is remembered. Without a setting, all of them are shown.

Example:
  openraid set data rebuild.rate=50M write.partial=rmw")]
pub struct SetArguments {
    /// Name of the array
    pub array: String,
    /// Settings
    #[arg(value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Accept what a setting puts at risk
    #[arg(long)]
    pub yes: bool,
    /// controller-journal is write.cache=journal; the policy that the array was made with is write.cache=through
    #[arg(long, value_name = "POLICY", value_enum)]
    pub consistency_policy: Option<ConsistencyWord>,
}

/// An array and one of its members.
#[derive(Args, Debug)]
pub struct MemberArguments {
    /// Name of the array
    pub array: String,
    /// The member: its path or address, or drive:N, as `show` has them; or slot:N (of leg L of a nested array slot:L.N)
    #[arg(value_name = "MEMBER")]
    pub member: String,
}

/// What `fail` takes.
#[derive(Args, Debug)]
pub struct FailArguments {
    /// The array and the member
    #[command(flatten)]
    pub member: MemberArguments,
    /// Also while rows that are not in sync yet need the member
    #[arg(short, long, visible_alias = "force")]
    pub yes: bool,
}

/// What `add` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
A member that was in the array before comes back: with a bitmap only what it has missed is written to it.

Example:
  openraid add data /dev/sdf")]
pub struct AddArguments {
    /// Name of the array
    pub array: String,
    /// The new member
    #[arg(value_name = "MEMBER", long_help = MEMBER_HELP)]
    pub member: String,
    /// Of a nested array: for which leg, counted from 0 [default: the one that is degraded]
    #[arg(long, value_name = "N")]
    pub leg: Option<usize>,
    /// Make it as a sparse file of this size first; it must not exist
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub file_size: Option<Bytes>,
    /// Do not ask: also add the other half of a split array, which loses what was written to it alone
    #[arg(short, long)]
    pub yes: bool,
    /// Together with --yes: use it although it holds a file system, a partition table or another array
    #[arg(long)]
    pub overwrite: bool,
}

/// What `replace` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Redundancy stays complete meanwhile: the old member works until the copy is finished.

Example:
  openraid replace data /dev/sdb --with /dev/sdf")]
pub struct ReplaceArguments {
    /// Name of the array
    pub array: String,
    /// The member that leaves: its path or address, drive:N, or slot:N
    #[arg(value_name = "MEMBER")]
    pub member: String,
    /// The new one: a spare of the array, or a drive to be added [default: any spare]
    #[arg(long, value_name = "MEMBER")]
    pub with: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Together with --yes: use the new one although it holds a file system, a partition table or another array
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

/// What to do with spares.
#[derive(Subcommand, Debug)]
pub enum SpareVerb {
    /// Add a hot spare
    Add(AddArguments),
    /// Take a spare out
    Remove(MemberArguments),
    /// List the spares of an array
    List(ArrayArgument),
}

/// What `check` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
With --follow it ends with 0 if there are no mismatches, 3 if there are some, 5 if it was aborted, 6 if nothing could be compared \
(no redundancy, or all of it is needed for what is missing). `show` tells the result later, also after a restart.")]
pub struct CheckArguments {
    /// Name of the array
    pub array: String,
    /// End a running check or repair instead
    #[arg(long, conflicts_with = "follow")]
    pub stop: bool,
    /// Wait until it is over, and say what was found
    #[arg(short, long)]
    pub follow: bool,
}

/// What `repair` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Corrected is what can be attributed: on RAID 6 and on mirrors of three the one guilty member of a row. Mismatches that cannot \
be attributed (RAID 5, two copies) are reported and left unchanged, unless --trust-data rewrites parity or the other copies.

With --follow it ends with 0 if nothing is left, 3 if mismatches are left, 5 if it was aborted, 6 if nothing could be compared.")]
pub struct RepairArguments {
    /// Name of the array
    pub array: String,
    /// Make parity anew from the data, and other copies from the first one that can be read, wherever they do not match: what
    /// md's repair does
    #[arg(long)]
    pub trust_data: bool,
    /// Wait until it is over, and say what was found
    #[arg(short, long)]
    pub follow: bool,
}

/// What `stop` takes.
#[derive(Args, Debug)]
pub struct StopArguments {
    /// Name of the array
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub array: Option<String>,
    /// Stop all arrays, and the server
    #[arg(long)]
    pub all: bool,
}
