//! Cells of other simulators, as `tools/judges.py` wrote them.

use std::fmt;

use openraid_models::ArrayLevel;

/// A cell: an array, a load, and the answer of the other simulator.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    pub drive: String,
    pub level: ArrayLevel,
    pub members: u16,
    /// Percent of the requests that read.
    pub reads: u64,
    pub sequential: bool,
    pub kib: u32,
    /// Requests outstanding, none if they come by themselves.
    pub depth: u64,
    /// Requests a second that come by themselves.
    pub rate: f64,
    /// Commands of a drive that it sorts.
    pub window: u32,
    /// Do the drives' write caches work?
    pub cache: bool,
    pub mirror: String,
    /// Channels of an SSD, none of a disk.
    pub channels: u32,
    pub requests: u64,
    /// Mean response of a request, in milliseconds.
    pub mean_ms: f64,
}

impl Cell {
    /// Is it about disks, not SSDs?
    pub fn is_disk(&self) -> bool {
        self.channels == 0
    }

    /// The name of its drive in files; `-fast` says that the drive's link is not that of its file, but 78 MB/s.
    pub fn drive(&self) -> &str {
        self.drive.trim_end_matches("-fast")
    }

    /// What it is about, in a few words: cells of one group differ for one reason.
    pub fn group(&self) -> String {
        if !self.is_disk() {
            let what = match self.reads {
                100 => "reads",
                0 => "writes",
                _ => "reads and writes",
            };
            let order = if self.sequential { "in order" } else { "at random" };
            let channels = if self.channels == 32 { ", a channel a die" } else { "" };
            return format!("SSD, {what} {order}{channels}");
        }
        match self {
            Self { drive, .. } if drive != "common" => drive.clone(),
            Self { cache: true, .. } => "write cache of the drive".into(),
            Self { depth: 0, .. } => "open arrivals".into(),
            Self { sequential: true, .. } => "streams".into(),
            Self { window: 2.., .. } => "sorted by the drive".into(),
            Self { mirror, .. } if mirror != "none" && mirror != "round-robin" => "choice of the copy".into(),
            Self { kib: 256, .. } => "whole stripes at random".into(),
            Self { kib: 64, .. } => "64 KiB at random".into(),
            Self { level, .. } => format!("4 KiB at random, {level}"),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drive, level, members, reads, kib, .. } = self;
        write!(f, "{drive} {level}x{members} {reads} % {kib}K")?;
        if self.sequential {
            write!(f, " seq")?;
        }
        match self.depth {
            0 => write!(f, " {}/s", self.rate)?,
            depth => write!(f, " q{depth}")?,
        }
        if self.window > 1 {
            write!(f, " sorted")?;
        }
        if self.channels == 32 {
            write!(f, " 32 channels")?;
        }
        if self.cache && self.is_disk() {
            write!(f, " cached")?;
        }
        if self.mirror != "none" && self.mirror != "round-robin" {
            write!(f, " {}", self.mirror)?;
        }
        Ok(())
    }
}

fn level(word: &str) -> ArrayLevel {
    match word {
        "single" => ArrayLevel::Single,
        "raid0" => ArrayLevel::Raid0,
        "raid1" => ArrayLevel::Raid1,
        "raid10" => ArrayLevel::Raid10,
        "raid5" => ArrayLevel::Raid5,
        other => panic!("no level is called {other}"),
    }
}

/// Rows of a table as maps from its heads; lines with `#` are remarks.
fn rows(text: &str) -> Vec<Vec<(&str, &str)>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let heads: Vec<&str> = lines.next().expect("a line of heads").split('\t').collect();
    lines.map(|line| heads.iter().copied().zip(line.split('\t')).collect()).collect()
}

fn get<'a>(row: &[(&str, &'a str)], head: &str) -> &'a str {
    row.iter().find(|(name, _)| *name == head).unwrap_or_else(|| panic!("no column {head}")).1
}

fn number<T: std::str::FromStr>(row: &[(&str, &str)], head: &str) -> T {
    let text = get(row, head);
    text.parse().unwrap_or_else(|_| panic!("{head} is {text}"))
}

/// The cells that MQSim ran.
pub fn mqsim() -> Vec<Cell> {
    let cell = |row: Vec<(&str, &str)>| Cell {
        drive: "common-ssd".into(),
        level: ArrayLevel::Single,
        members: 1,
        reads: number(&row, "reads"),
        sequential: get(&row, "pattern") == "sequential",
        kib: number(&row, "kib"),
        depth: number(&row, "depth"),
        rate: 0.0,
        window: 1,
        cache: true,
        mirror: "none".into(),
        channels: number(&row, "channels"),
        requests: 40_000,
        mean_ms: number::<f64>(&row, "mean_us") / 1e3,
    };
    rows(include_str!("mqsim.tsv")).into_iter().map(cell).collect()
}

/// The cells that DiskSim 4.0 ran.
pub fn disksim() -> Vec<Cell> {
    let cell = |row: Vec<(&str, &str)>| Cell {
        drive: get(&row, "drive").into(),
        level: level(get(&row, "level")),
        members: number(&row, "members"),
        reads: number(&row, "reads"),
        sequential: get(&row, "pattern") == "sequential",
        kib: number(&row, "kib"),
        depth: number(&row, "depth"),
        rate: number(&row, "rate"),
        window: number(&row, "window"),
        cache: get(&row, "cache") == "on",
        mirror: get(&row, "mirror").into(),
        channels: 0,
        requests: number(&row, "requests"),
        mean_ms: number(&row, "mean_ms"),
    };
    rows(include_str!("disksim.tsv")).into_iter().map(cell).collect()
}
