//! Surveys md: its placement of every chunk, for every level and layout, read off real members.
//!
//! The result is the text of `golden/layouts.txt`, whose header describes it; [`crate::golden`] reads it.

use crate::golden::digest;
use crate::layout::{pattern, read_columns, Cell, Column, BLOCK_BYTES};
use crate::{Guest, GuestOutput, OracleError};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Arrays per boot: it then takes below 40 s even on a machine that others use.
const ARRAYS_PER_BOOT: usize = 20;
const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const SECTORS_PER_BLOCK: u64 = 8;
/// How many rotations of a layout are written down from its start.
const ROTATIONS: usize = 3;
/// Members of arrays with equal members, in KiB: 1 MiB in front of the data, then about 2 MiB of data.
const MEMBER_KIB: u64 = 3072;

/// One array to make.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Unique among all, and the name in the golden file.
    pub name: String,
    level: &'static str,
    layout: String,
    chunk_kib: u64,
    member_kib: Vec<u64>,
}

impl Spec {
    fn new(level: &'static str, layout: &str, members: usize, chunk_kib: u64) -> Self {
        let name = format!("{level}-{}-{members}x{chunk_kib}k", if layout.is_empty() { "-" } else { layout });
        Self { name, level, layout: layout.into(), chunk_kib, member_kib: vec![MEMBER_KIB; members] }
    }

    fn unequal(level: &'static str, layout: &str, member_kib: &[u64], chunk_kib: u64) -> Self {
        let sizes: Vec<String> = member_kib.iter().map(u64::to_string).collect();
        let mut spec = Self::new(level, layout, member_kib.len(), chunk_kib);
        spec.name = format!("{}-unequal-{}", spec.name, sizes.join("+"));
        spec.member_kib = member_kib.to_vec();
        spec
    }
}

/// Every level and layout of md.
#[must_use]
pub fn specs() -> Vec<Spec> {
    let mut specs = Vec::new();
    for members in [2, 3, 4] {
        specs.push(Spec::new("raid0", "", members, 4));
    }
    specs.push(Spec::new("raid0", "", 3, 64));
    for layout in ["original", "alternate"] {
        // The two layouts differ only where a zone begins at a chunk whose number is no multiple of the
        // zone's members: 3 * 3 chunks before a zone of 2, 4 * 5 before one of 3, 29 before one of 2.
        specs.push(Spec::unequal("raid0", layout, &[1024 + 5 * 64, 1024 + 8 * 64, 1024 + 3 * 64], 64));
        specs.push(Spec::unequal("raid0", layout, &[1024 + 5 * 16, 1024 + 11 * 16, 1024 + 8 * 16, 1024 + 11 * 16], 16));
        specs.push(Spec::unequal("raid0", layout, &[1024 + 25 * 4, 1024 + 51 * 4, 1024 + 80 * 4, 1024 + 51 * 4], 4));
        // Members that are no multiple of the chunk.
        specs.push(Spec::unequal("raid0", layout, &[1024 + 5 * 64 + 12, 1024 + 8 * 64 + 60, 1024 + 3 * 64 + 4], 64));
    }
    specs.push(Spec::unequal("linear", "", &[1024 + 512, 1024 + 196, 1024 + 1000], 64));
    specs.push(Spec::unequal("linear", "", &[1024 + 100, 1024 + 300], 4));
    for members in [2, 3] {
        specs.push(Spec::new("raid1", "", members, 4));
    }
    for members in 2..=6 {
        for kind in ["n", "f", "o"] {
            for copies in (2..=3).filter(|copies| *copies <= members) {
                specs.push(Spec::new("raid10", &format!("{kind}{copies}"), members, 4));
            }
        }
    }
    specs.extend([
        Spec::new("raid10", "f2", 5, 64),
        Spec::new("raid10", "o2", 4, 64),
        Spec::new("raid10", "n2", 3, 64),
    ]);
    for members in [3, 4, 5] {
        specs.push(Spec::new("raid4", "", members, 4));
    }
    let five =
        ["left-asymmetric", "right-asymmetric", "left-symmetric", "right-symmetric", "parity-first", "parity-last"];
    for layout in five {
        for members in [3, 4, 5] {
            specs.push(Spec::new("raid5", layout, members, 4));
        }
    }
    specs.extend([Spec::new("raid5", "left-symmetric", 4, 64), Spec::new("raid5", "left-symmetric", 8, 16)]);
    let ddf = ["ddf-zero-restart", "ddf-N-restart", "ddf-N-continue"];
    let six = ["left-asymmetric-6", "right-asymmetric-6", "left-symmetric-6", "right-symmetric-6", "parity-first-6"];
    for layout in five.into_iter().chain(ddf).chain(six) {
        for members in [4, 5, 6] {
            specs.push(Spec::new("raid6", layout, members, 4));
        }
    }
    let odd_sizes = [3072 + 100, 3072 + 20, 3072 + 60];
    specs.push(Spec::unequal("raid5", "left-symmetric", &odd_sizes, 64));
    for layout in ["n2", "f2", "o2"] {
        specs.push(Spec::unequal("raid10", layout, &odd_sizes, 64));
    }
    specs.extend([Spec::new("raid6", "left-symmetric", 5, 64), Spec::new("raid6", "ddf-N-restart", 8, 16)]);
    specs
}

/// Let md make the arrays, and describe them: one paragraph for each, in order.
///
/// # Errors
/// Errors of the guest, and member images that cannot be explained.
pub fn survey(specs: &[Spec]) -> Result<Vec<String>, OracleError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("openraid-survey-{}-{n}", std::process::id()));
    file(&folder, fs::create_dir_all(&folder))?;
    let made = make_all(specs, &folder);
    file(&folder, fs::remove_dir_all(&folder))?;
    made
}

fn make_all(specs: &[Spec], folder: &Path) -> Result<Vec<String>, OracleError> {
    let bytes_max = specs.iter().map(|spec| spec.member_kib.iter().sum::<u64>() * 1024).max().unwrap_or(0);
    let pattern_file = folder.join("pattern");
    let blocks: Vec<u8> = (0..bytes_max / BLOCK_BYTES as u64).flat_map(pattern).collect();
    file(&pattern_file, fs::write(&pattern_file, blocks))?;
    let mut paragraphs = Vec::new();
    for part in specs.chunks(ARRAYS_PER_BOOT) {
        let (output, images) = make_part(part, folder, &pattern_file)?;
        eprintln!("surveyed {} arrays in {:.1} s", part.len(), output.took.as_secs_f64());
        for (n, spec) in part.iter().enumerate() {
            paragraphs.push(describe(spec, n, &output, &images[n])?);
        }
    }
    Ok(paragraphs)
}

fn make_part(specs: &[Spec], folder: &Path, pattern: &Path) -> Result<(GuestOutput, Vec<Vec<PathBuf>>), OracleError> {
    let mut guest = Guest::new();
    let mut all = Vec::new();
    // The one folder of the images is mounted in the guest; the pattern is read from the host's tree.
    for (n, spec) in specs.iter().enumerate() {
        let mut images = Vec::new();
        let mut devices = Vec::new();
        for (m, kib) in spec.member_kib.iter().enumerate() {
            let image = folder.join(format!("a{n}-m{m}"));
            let created = fs::remove_file(&image).or(Ok(())).and_then(|()| fs::File::create(&image));
            file(&image, created.and_then(|made| made.set_len(kib * 1024)))?;
            devices.push(guest.image(&image));
            images.push(image);
        }
        let mut options = format!("--level={} --raid-devices={} --metadata=1.2", spec.level, devices.len());
        if spec.level != "raid1" {
            let _ = write!(options, " --chunk={}", spec.chunk_kib);
        }
        if !spec.layout.is_empty() {
            let _ = write!(options, " --layout={}", spec.layout);
        }
        if !matches!(spec.level, "raid0" | "linear") {
            options.push_str(" --assume-clean --bitmap=none");
        }
        let devices = devices.join(" ");
        guest.script(&format!(
            "create a{n} {options} --data-offset=1M {devices}\nfill a{n} {}\nstop a{n}\nexamine a{n} {devices}",
            pattern.display()
        ));
        all.push(images);
    }
    Ok((guest.run(BOOT_TIMEOUT)?, all))
}

/// The lines of one array.
fn describe(spec: &Spec, n: usize, output: &GuestOutput, images: &[PathBuf]) -> Result<String, OracleError> {
    let mut areas = Vec::new();
    for (m, image) in images.iter().enumerate() {
        let examined = output.file(&format!("examine.a{n}.{m}.txt"))?;
        let start = sectors(&examined, "Data Offset")?;
        // The used size is noted if all members use the same; otherwise it may be missing or zero.
        let used = sectors(&examined, "Used Dev Size").ok().filter(|used| *used > 0);
        let length = used.map_or_else(|| sectors(&examined, "Avail Dev Size"), Ok)?;
        areas.push((image.as_path(), start * 512, length / SECTORS_PER_BLOCK * BLOCK_BYTES as u64));
    }
    let columns = read_columns(&areas)?;
    let bytes: u64 =
        output.value(&format!("a{n}.size"))?.parse().map_err(|_| complain(spec, "size is not a number"))?;
    let chunks = chunk_map(spec, &columns, bytes)?;
    let lengths: Vec<String> = areas.iter().map(|(_, _, length)| (length / 512).to_string()).collect();
    let mut text = format!(
        "array {} level={} layout={} members={} chunk={} member_sectors={} array_sectors={}\n",
        spec.name,
        spec.level,
        if spec.layout.is_empty() { "-" } else { &spec.layout },
        columns.len(),
        spec.chunk_kib * 2,
        lengths.join(","),
        bytes / 512,
    );
    let _ = writeln!(text, "digest {:016x}", digest(chunks.iter().map(Vec::as_slice)));
    write_chunks(&mut text, spec, &chunks);
    if matches!(spec.level, "raid4" | "raid5" | "raid6") {
        write_rows(&mut text, spec, &columns)?;
    }
    Ok(text)
}

/// For each chunk of the array, in order, its places: member and sector of the member's data area.
type Chunks = Vec<Vec<(usize, u64)>>;

/// From blocks to chunks; every block of a chunk must follow its predecessor.
fn chunk_map(spec: &Spec, columns: &[Column], array_bytes: u64) -> Result<Chunks, OracleError> {
    let blocks = usize::try_from(array_bytes / BLOCK_BYTES as u64).expect("small array");
    let mut places: Vec<Vec<(usize, u64)>> = vec![Vec::new(); blocks];
    for (member, column) in columns.iter().enumerate() {
        for (row, cell) in column.iter().enumerate() {
            if let Cell::Data(number) = cell {
                let number = usize::try_from(*number).expect("small array");
                let slot =
                    places.get_mut(number).ok_or_else(|| complain(spec, "a block beyond the end of the array"))?;
                slot.push((member, row as u64 * SECTORS_PER_BLOCK));
            }
        }
    }
    let per_chunk = usize::try_from(spec.chunk_kib / 4).expect("small chunk");
    let mut chunks = Chunks::new();
    for blocks in places.chunks(per_chunk) {
        let first = blocks[0].clone();
        if first.is_empty() {
            return Err(complain(spec, "a block of the array is on no member"));
        }
        for (n, block) in blocks.iter().enumerate() {
            let wanted: Vec<_> = first.iter().map(|(m, at)| (*m, at + n as u64 * SECTORS_PER_BLOCK)).collect();
            // Linear has no chunks: a piece may end anywhere. Its blocks are written down one by one.
            if *block != wanted && spec.level != "linear" {
                return Err(complain(spec, "a chunk is not in one piece"));
            }
        }
        if spec.level == "linear" {
            chunks.extend(blocks.iter().cloned());
        } else {
            chunks.push(first);
        }
    }
    Ok(chunks)
}

fn write_chunks(text: &mut String, spec: &Spec, chunks: &Chunks) {
    let members = spec.member_kib.len();
    let unit = if spec.level == "linear" { SECTORS_PER_BLOCK } else { spec.chunk_kib * 2 };
    let whole = spec.name.contains("unequal");
    // A rotation is at most members rows of members chunks.
    let head = if whole { chunks.len() } else { (ROTATIONS * members * members).min(chunks.len()) };
    write_run(text, chunks, 0..head, unit);
    let tail = chunks.len().saturating_sub(members * members).max(head);
    if tail < chunks.len() {
        write_run(text, chunks, tail..chunks.len(), unit);
    }
}

/// `map FIRST UNIT: place place ...`, a place being member:sector, copies joined by '+'.
fn write_run(text: &mut String, chunks: &Chunks, range: std::ops::Range<usize>, unit: u64) {
    let _ = write!(text, "map {}", range.start as u64 * unit);
    for places in &chunks[range] {
        let places: Vec<String> = places.iter().map(|(member, sector)| format!("{member}:{sector}")).collect();
        let _ = write!(text, " {}", places.join("+"));
    }
    text.push('\n');
}

/// `parity P...` and, for RAID 6, `q` lines: rows of chunks from the start.
fn write_rows(text: &mut String, spec: &Spec, columns: &[Column]) -> Result<(), OracleError> {
    let per_chunk = usize::try_from(spec.chunk_kib / 4).expect("small chunk");
    let rows = columns[0].len() / per_chunk;
    let shown = (ROTATIONS * columns.len()).min(rows);
    let mut pieces = Vec::new();
    for row in 0..rows {
        let cells: Vec<&Cell> = columns.iter().map(|column| &column[row * per_chunk]).collect();
        for block in 1..per_chunk {
            let same = columns.iter().all(|column| {
                let (first, this) = (&column[row * per_chunk], &column[row * per_chunk + block]);
                first == this || matches!((first, this), (Cell::Data(_), Cell::Data(_)))
            });
            if !same {
                return Err(complain(spec, "redundancy moves within a chunk"));
            }
        }
        let p = cells.iter().position(|cell| **cell == Cell::P).ok_or_else(|| complain(spec, "a row without P"))?;
        let mut piece = p.to_string();
        if spec.level == "raid6" {
            let q = cells.iter().enumerate().find_map(|(member, cell)| match cell {
                Cell::Q(factors) => Some((member, factors)),
                _ => None,
            });
            let (q, factors) = q.ok_or_else(|| complain(spec, "a row without Q"))?;
            piece = format!("{piece}/{q}/{}", exponents(columns.len(), factors));
        }
        pieces.push(piece);
    }
    let rotation = (1..=rows).find(|n| pieces.iter().zip(&pieces[*n..]).all(|(a, b)| a == b)).unwrap_or(rows);
    let _ = writeln!(text, "rotation {rotation}");
    let _ = writeln!(text, "rows {}", pieces[..shown].join(" "));
    Ok(())
}

/// One character for each member: the exponent of its data block in Q, `-` if it holds P or Q.
fn exponents(members: usize, factors: &BTreeMap<usize, u8>) -> String {
    (0..members).map(|m| factors.get(&m).map_or("-".to_owned(), |e| format!("{e:x}"))).collect()
}

/// The number of sectors after a title of `mdadm --examine`.
fn sectors(examined: &str, title: &str) -> Result<u64, OracleError> {
    let line = examined.lines().find_map(|line| line.trim().strip_prefix(title)?.split_once(':'));
    let word = line.and_then(|(_, rest)| rest.split_whitespace().next());
    let number = word.and_then(|word| word.parse().ok());
    number.ok_or_else(|| OracleError::Layout(format!("mdadm --examine does not show '{title}'")))
}

fn complain(spec: &Spec, what: &str) -> OracleError {
    OracleError::Layout(format!("{}: {what}", spec.name))
}

fn file<T>(path: &Path, outcome: std::io::Result<T>) -> Result<T, OracleError> {
    outcome.map_err(|error| OracleError::File { path: path.to_path_buf(), error })
}
