//! Cells of other simulators, as recorded by `tools/judges.py`.

use std::fmt;

use openraid_models::ArrayLevel;

/// A cell: an array, a load, and the result of the other simulator.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    pub drive: String,
    pub level: ArrayLevel,
    pub members: u16,
    /// Percentage of reads.
    pub reads: u64,
    pub sequential: bool,
    pub kib: u32,
    /// Outstanding requests; zero if requests arrive at random.
    pub depth: u64,
    /// Requests per second that arrive at random.
    pub rate: f64,
    /// Commands that a drive sorts.
    pub window: u32,
    /// Whether the drives' write caches are on.
    pub cache: bool,
    pub mirror: String,
    /// Channels of an SSD; zero for a disk.
    pub channels: u32,
    pub requests: u64,
    /// Mean response of a request, in milliseconds.
    pub mean_ms: f64,
}

impl Cell {
    /// Whether the cell is for disks, not for SSDs.
    pub fn is_disk(&self) -> bool {
        self.channels == 0
    }

    /// The name of its drive in files; `-fast` means a link of 78 MB/s in place of the one in the drive's file.
    pub fn drive(&self) -> &str {
        self.drive.trim_end_matches("-fast")
    }

    /// The subject in a few words: the cells of one group differ for one reason.
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

/// Rows of a table as maps from its column heads; lines with `#` are comments.
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

/// The cells of MQSim.
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

/// The cells of DiskSim 4.0.
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
