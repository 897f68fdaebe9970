//! Golden images: bytes that the real md driver wrote, with mdadm's description of them. `tests/golden/README.md` has
//! the form of the files.
#![allow(dead_code)] // each test file uses a part of this

mod random;
#[allow(unused_imports)] // not every test file needs numbers
pub use random::Random;

use openraid_format::{superblock_lba, MinorVersion, Superblock, SuperblockError};
use openraid_units::Sectors;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A part of a drive that was kept.
pub struct Area {
    /// Offset of its first byte on the drive.
    pub start: u64,
    pub bytes: Vec<u8>,
}

/// One member of a golden array.
pub struct Member {
    pub case: String,
    pub index: usize,
    pub size: Sectors,
    pub areas: Vec<Area>,
    pub examine: Vec<String>,
    pub bitmap: Vec<String>,
    pub bad_blocks: Vec<String>,
}

impl Member {
    /// The kept bytes from this offset of the drive to the end of their area.
    pub fn at(&self, start: u64) -> Option<&[u8]> {
        self.areas.iter().find(|area| area.start == start).map(|area| &area.bytes[..])
    }

    /// The place where this member has its superblock.
    pub fn minor(&self) -> MinorVersion {
        let version = self.said("Version").expect("every member has a version");
        *MinorVersion::ALL.iter().find(|minor| minor.to_string() == version).expect("a known version")
    }

    pub fn superblock_bytes(&self) -> &[u8] {
        let lba = superblock_lba(self.minor(), self.size).expect("members are large enough");
        self.at(lba.offset().bytes().get()).expect("the superblock was kept")
    }

    pub fn superblock(&self) -> Result<Superblock, SuperblockError> {
        Superblock::decode(self.superblock_bytes(), self.minor(), self.size)
    }

    /// mdadm's text after `key : ` in its output.
    pub fn said(&self, key: &str) -> Option<&str> {
        value(&self.examine, key)
    }
}

/// The text after `key : ` in some lines.
pub fn value<'a>(lines: &'a [String], key: &str) -> Option<&'a str> {
    lines.iter().find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix(": ")).map(str::trim)
}

/// The number at the start of a text.
pub fn number(text: &str) -> i64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '-').unwrap_or(text.len());
    text[..end].parse().expect("a number")
}

/// Every member of every golden array, in the order of file names.
pub fn golden() -> Vec<Member> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    assert!(paths.len() >= 50, "golden images are missing");
    paths.iter().flat_map(|path| parse(path)).collect()
}

/// The members of one golden array.
pub fn case(name: &str) -> Vec<Member> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    parse(&path)
}

fn parse(path: &Path) -> Vec<Member> {
    let case = path.file_stem().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).unwrap();
    let mut members: Vec<Member> = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(said) = line.strip_prefix("| ") {
            let member = members.last_mut().unwrap();
            let lines = match section.as_str() {
                "examine" => &mut member.examine,
                "bitmap" => &mut member.bitmap,
                "badblocks" => &mut member.bad_blocks,
                other => panic!("unknown section {other}"),
            };
            lines.push(said.to_string());
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["member", index, size] => members.push(Member {
                case: case.clone(),
                index: index.parse().unwrap(),
                size: Sectors(size.parse().unwrap()),
                areas: Vec::new(),
                examine: Vec::new(),
                bitmap: Vec::new(),
                bad_blocks: Vec::new(),
            }),
            ["area", start, len] => {
                let area = Area { start: start.parse().unwrap(), bytes: vec![0; len.parse().unwrap()] };
                members.last_mut().unwrap().areas.push(area);
            }
            [kind] => section = kind.to_string(),
            [at, row, ..] => {
                let area = members.last_mut().unwrap().areas.last_mut().unwrap();
                let times = words.get(2).map_or(1, |times| times[1..].parse().unwrap());
                let row: Vec<u8> =
                    (0..row.len() / 2).map(|at| u8::from_str_radix(&row[2 * at..2 * at + 2], 16).unwrap()).collect();
                let mut at = usize::try_from(at.parse::<u64>().unwrap() - area.start).unwrap();
                for _ in 0..times {
                    area.bytes[at..at + row.len()].copy_from_slice(&row);
                    at += row.len();
                }
            }
            [] => {}
        }
    }
    members
}

/// A folder that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("openraid-format-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    /// A sparse file of `size` bytes.
    pub fn image(&self, name: &str, size: u64) -> PathBuf {
        let path = self.0.join(name);
        File::create(&path).unwrap().set_len(size).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sh(line: &str) -> Output {
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("sh").arg("-c").arg(line).env("PATH", format!("{path}:/sbin:/usr/sbin")).output().unwrap()
}

/// Is this tool installed? If not, a line says so.
pub fn has(tool: &str) -> bool {
    let found = sh(&format!("command -v {tool}")).status.success();
    if !found {
        assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "{tool} is not installed");
        // Written directly to standard error, because the test framework captures other output.
        let _ = writeln!(std::io::stderr(), "skipped: {tool} is not installed");
    }
    found
}

/// Runs a shell line that must succeed, and returns its output.
pub fn run(line: &str) -> String {
    let output = sh(line);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// The checksum of a superblock, written independently and computed from the other end.
pub fn fix_checksum(bytes: &mut [u8]) {
    const CHECKSUM_AT: usize = 216;
    const MAX_DEV_AT: usize = 220;
    let entries = u32::from_le_bytes(bytes[MAX_DEV_AT..MAX_DEV_AT + 4].try_into().unwrap());
    let len = usize::try_from(entries).unwrap().saturating_mul(2).saturating_add(256).min(bytes.len());
    bytes[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
    let weighted = |(index, &byte): (usize, &u8)| u128::from(byte) << (index % 4 * 8);
    let sum: u128 = bytes[..len].iter().enumerate().rev().map(weighted).sum();
    let sum = u64::try_from(sum).unwrap();
    let folded = u32::try_from(((sum & 0xffff_ffff) + (sum >> 32)) & 0xffff_ffff).unwrap();
    bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&folded.to_le_bytes());
}
