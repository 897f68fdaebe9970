//! `openraid serve` and `openraid demo`.

use crate::quantity;
use crate::words;
use crate::words::consistency::ConsistencyWord;
use clap::Args;
use openraid_config::AfterPowerCut;
use openraid_units::{ArrayLevel, Bytes, Sectors};
use std::path::PathBuf;
use std::str::FromStr;

/// What `serve` takes.
#[derive(Args, Debug)]
#[command(after_help = "\
Without --nbd, --nbd-unix, --nvme and --vhost, clients find the arrays at nbd://127.0.0.1:10809/NAME. A service of a configuration \
file listens only where the file says. Plain NBD and NVMe/TCP have neither \
passwords nor encryption: listen on a network address only if every host on that network may read and write the arrays. The \
configuration file can name addresses with TLS (server.nbd-tls).

Ctrl-C or SIGTERM stops the server cleanly: requests under way are finished, members are flushed and marked clean. SIGHUP or \
`openraid reload` reads the configuration file again.

With a configuration file and without a NAME or MEMBER the server is a service: it serves all arrays of the registry and the \
file, starts even if some of them cannot be started, and continues when the last one is stopped.

Scripts wait with `openraid show NAME --wait SECONDS`, or with --ready-fd, which also notices a server that cannot start:
  openraid serve data & openraid show data --wait 60
  mkfifo up; openraid serve data --ready-fd 3 3>up & grep -q ready up && mount-it

Examples:
  openraid serve data
  openraid serve data --nbd 0.0.0.0:10809 --nbd-unix /run/data.sock --status
  openraid serve data --nvme 0.0.0.0:4420
  openraid serve data --vhost data=/run/vm/data.sock
  openraid serve --scan /dev/disk/by-id
  openraid serve /dev/sdb /dev/sdc /dev/sdd
  openraid serve --level 5 --name scratch ram:1G ram:1G ram:1G
  openraid serve --level 5 --name slow model:wd740gd model:wd740gd model:wd740gd")]
pub struct ServeArguments {
    /// Names of remembered arrays, or members [default: all remembered arrays]
    #[arg(value_name = "NAME|MEMBER")]
    pub names: Vec<String>,
    /// Listen on a TCP address: HOST:PORT, or PORT on the loopback; may be given several times
    #[arg(long, value_name = "HOST:PORT")]
    pub nbd: Vec<String>,
    /// Listen on a unix socket; may be given several times
    #[arg(long, value_name = "PATH")]
    pub nbd_unix: Vec<PathBuf>,
    /// Listen for NVMe/TCP hosts: HOST:PORT, or PORT on the loopback; may be given several times. Port 4420 is usual. Each array
    /// is a subsystem, and `nvme discover` lists them. Without --nbd there is then no NBD
    #[arg(long, value_name = "HOST:PORT")]
    pub nvme: Vec<String>,
    /// Give arrays to virtual machines of this machine as vhost-user-blk disks: each array by a socket NAME.sock in this folder, or
    /// one array by this socket; may be given several times
    #[arg(long, value_name = "FOLDER|NAME=PATH")]
    pub vhost: Vec<String>,
    /// Keep the listening sockets open in a parent process, which starts the server and starts it again when it dies. Hosts that
    /// connect meanwhile wait. With systemd, openraid.socket does this
    #[arg(long)]
    pub keep_listening: bool,
    /// Serve the console, the HTTP API, metrics and Redfish at this address: HOST:PORT, or PORT on the loopback. On other
    /// addresses the connection is encrypted
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Also export metrics under node_exporter's names for md
    #[arg(long)]
    pub metrics_md: bool,
    /// Look for members in this folder
    #[arg(long, value_name = "DIR")]
    pub scan: Vec<PathBuf>,
    /// Use stale members if an array cannot start without them, and start dirty, degraded arrays
    #[arg(short, long)]
    pub force: bool,
    /// Serve every array by itself: do not look for stripes over arrays (levels 50 and 60). For arrays whose content
    /// happens to be a member of a client's RAID 0
    #[arg(long)]
    pub flat: bool,
    /// Refuse writes of clients. Without --journal nothing is written to members either, so members may be write-protected;
    /// rebuilds and checks wait
    #[arg(long)]
    pub read_only: bool,
    /// The map of a RAID 0 over members of unequal size whose superblocks do not say it: original (arrays made before Linux
    /// 3.14) or alternate
    #[arg(long, value_name = "LAYOUT", value_parser = words::raid0_layout, requires = "read_only")]
    pub layout: Option<u32>,
    /// Start arrays without their write-protected members. Those members miss all later writes
    #[arg(long)]
    pub degraded: bool,
    /// Show the state of the arrays on the terminal, always up to date
    #[arg(long)]
    pub status: bool,
    /// The configuration file; /dev/null: none [default: /etc/openraid/openraid.toml (root), else
    /// $XDG_CONFIG_HOME/openraid/openraid.toml, if it exists]. Options of the command line override it
    #[arg(long, value_name = "FILE", env = "OPENRAID_CONFIG")]
    pub config: Option<PathBuf>,
    /// Memory for payload [default: 160M]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub memory: Option<Bytes>,
    /// Memory for the controller's cache, in addition to --memory. `set` says how an array uses it [default: none; with
    /// --journal 64M]
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub cache: Option<Bytes>,
    /// Maximum number of commands at one drive; further ones wait in the controller [default: 128]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub drive_depth: Option<u32>,
    /// Age in seconds from which on a waiting command goes first at every fourth turn of its drive [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=30))]
    pub queue_age: Option<u64>,
    /// The device of this controller's journal; given twice if it is mirrored
    #[arg(long, value_name = "DEVICE")]
    pub journal: Vec<String>,
    /// Use one of a journal's two devices without the other one. The missing device may hold acknowledged writes that this
    /// one lacks
    #[arg(long)]
    pub journal_alone: bool,
    /// Start arrays without the journal that holds acknowledged writes for them: those writes are lost
    #[arg(long)]
    pub journal_lost: bool,
    /// Serve hosts of the named arrays although acknowledged writes may be lost: a server or machine went down while they were in
    /// memory or in caches of drives. Restart these hosts, or check their file systems. If a server has the array, it is told
    #[arg(long, requires = "names")]
    pub after_loss: bool,
    /// Hosts after the machine went down while drives may have had answered writes in their caches: refuse (until --after-loss)
    /// or admit, with an alarm, because they went down too [default: refuse]
    #[arg(long, value_name = "refuse|admit", value_parser = AfterPowerCut::from_str)]
    pub after_power_cut: Option<AfterPowerCut>,
    /// controller-journal: the journal protects all arrays that are started now. Every other policy: no array uses the
    /// journal, and each keeps the policy of its creation
    #[arg(long, value_name = "POLICY", value_enum)]
    pub consistency_policy: Option<ConsistencyWord>,
    /// When clients can connect, write the line `ready` to this descriptor and close it. If the server cannot start, it
    /// closes the descriptor without the line
    #[arg(long, value_name = "FD", value_parser = clap::value_parser!(i32).range(1..))]
    pub ready_fd: Option<i32>,
    /// Accept remote members whose server has no flush. Each write that it answers must be durable
    #[arg(long)]
    pub without_flush: bool,
    /// Make a temporary array of this level from the members; it ends with the server. A member may be ram:SIZE, or
    /// model:PROFILE (memory with the timing of such a drive)
    #[arg(long, value_parser = words::level, requires = "name")]
    pub level: Option<ArrayLevel>,
    /// Name of the temporary array
    #[arg(long, value_parser = words::array_name, requires = "level")]
    pub name: Option<String>,
    /// Chunk of the temporary array [default: 512K]
    #[arg(long, value_name = "SIZE", value_parser = quantity::sectors, requires = "level")]
    pub chunk: Option<Sectors>,
}

/// What `demo` takes.
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// Seconds in which clients write, before and after the drive is pulled together
    #[arg(long, value_name = "COUNT", default_value = "15", value_parser = clap::value_parser!(u16).range(2..=3600))]
    pub seconds: u16,
    /// Leave the array running, with its files, until Ctrl-C
    #[arg(long)]
    pub keep: bool,
    /// Give the drives the timing of this profile, in real time; with `openraid-lab demo` only: see `openraid-lab simulate --list`
    #[arg(long, value_name = "PROFILE")]
    pub model: Option<String>,
    /// Folder for the drives [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}
