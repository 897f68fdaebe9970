//! Reads `golden/layouts.txt`: where md puts every chunk of arrays of every level and layout.
//!
//! The file's own header describes its form; [`crate::survey`] made it from real members.

/// The file, as it stands in the repository.
pub const LAYOUTS: &str = include_str!("../golden/layouts.txt");

/// The place of a chunk (or of one of its copies): the member's slot, and sectors from the start of its data area.
pub type Place = (usize, u64);

/// One array as md made it. Amounts are sectors of 512 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoldenArray {
    /// Unique in the file.
    pub name: String,
    /// mdadm's word: `linear`, `raid0`, `raid1`, `raid4`, `raid5`, `raid6`, `raid10`.
    pub level: String,
    /// mdadm's word, empty if the level has no layouts or md's default was taken.
    pub layout: String,
    /// How many members.
    pub members: usize,
    /// The chunk; levels without chunks (raid1, linear) have one here all the same.
    pub chunk: u64,
    /// The chunk in which the map is counted: as `chunk`, but 8 for linear.
    pub unit: u64,
    /// What md uses of each member; for raid0 and linear before rounding down to the chunk.
    pub member_sectors: Vec<u64>,
    /// Size of the array.
    pub array_sectors: u64,
    /// FNV-1a over the whole map, see [`digest`].
    pub digest: u64,
    /// First array sector of a chunk, and the places of its copies in ascending order of slots.
    pub map: Vec<(u64, Vec<Place>)>,
    /// After how many rows of chunks the placement of parity repeats; none without parity.
    pub rotation: Option<usize>,
    /// The parity of rows of chunks from the start; empty without parity.
    pub rows: Vec<GoldenRow>,
}

/// The parity of one row of chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoldenRow {
    /// The slot of P.
    pub p: usize,
    /// The slot of Q.
    pub q: Option<usize>,
    /// For each slot the exponent e of the factor 2^e with which its data enters Q; none for P and Q
    /// themselves. Empty without Q.
    pub factors: Vec<Option<u8>>,
}

/// All arrays of the file.
///
/// # Panics
/// If the file does not have the form that its header describes.
#[must_use]
pub fn arrays() -> Vec<GoldenArray> {
    parse(LAYOUTS)
}

/// FNV-1a, 64 bits: for each chunk of the array in order, for each place in order: slot (u32), sector (u64),
/// little-endian.
pub fn digest<'a>(chunks: impl IntoIterator<Item = &'a [Place]>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (slot, sector) in chunks.into_iter().flatten() {
        let slot = u32::try_from(*slot).expect("few members").to_le_bytes();
        for byte in slot.into_iter().chain(sector.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// Read text of the file's form.
///
/// # Panics
/// If it does not have that form.
#[must_use]
pub fn parse(text: &str) -> Vec<GoldenArray> {
    let mut arrays: Vec<GoldenArray> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, rest) = line.split_once(' ').expect("every line begins with its kind");
        if kind == "array" {
            arrays.push(head(rest));
            continue;
        }
        let array = arrays.last_mut().expect("an array line comes first");
        match kind {
            "digest" => array.digest = u64::from_str_radix(rest, 16).expect("hexadecimal"),
            "map" => map(array, rest),
            "rotation" => array.rotation = Some(rest.parse().expect("a number")),
            "rows" => array.rows = rest.split(' ').map(row).collect(),
            other => panic!("a golden layout file has no lines of kind '{other}'"),
        }
    }
    arrays
}

fn head(line: &str) -> GoldenArray {
    let field = |name: &str| {
        let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no {name}= in: {line}"))
    };
    let number = |name: &str| field(name).parse::<u64>().expect("a number");
    let level = field("level").to_owned();
    let chunk = number("chunk");
    GoldenArray {
        name: line.split(' ').next().expect("split gives one piece at least").to_owned(),
        unit: if level == "linear" { 8 } else { chunk },
        level,
        layout: field("layout").trim_matches('-').to_owned(),
        members: usize::try_from(number("members")).expect("few members"),
        chunk,
        member_sectors: field("member_sectors").split(',').map(|size| size.parse().expect("a number")).collect(),
        array_sectors: number("array_sectors"),
        digest: 0,
        map: Vec::new(),
        rotation: None,
        rows: Vec::new(),
    }
}

fn map(array: &mut GoldenArray, line: &str) {
    let mut words = line.split(' ');
    let mut sector: u64 = words.next().and_then(|first| first.parse().ok()).expect("a map begins with a sector");
    for word in words {
        let place = |text: &str| {
            let (slot, sector) = text.split_once(':').expect("a place is SLOT:SECTOR");
            (slot.parse().expect("a number"), sector.parse().expect("a number"))
        };
        array.map.push((sector, word.split('+').map(place).collect()));
        sector += array.unit;
    }
}

fn row(word: &str) -> GoldenRow {
    let mut parts = word.split('/');
    let mut slot = || parts.next().map(|part| part.parse().expect("a slot"));
    let (p, q) = (slot().expect("a row has P"), slot());
    let factors = parts.next().unwrap_or("").chars();
    let exponent = |digit: char| digit.to_digit(16).map(|e| u8::try_from(e).expect("one digit"));
    GoldenRow { p, q, factors: factors.map(exponent).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_array_of_the_file_is_read_and_makes_sense() {
        let arrays = arrays();
        assert_eq!(arrays.len(), crate::survey::specs().len());
        for array in &arrays {
            assert!(!array.map.is_empty() && array.digest != 0, "{}", array.name);
            assert_eq!(array.member_sectors.len(), array.members, "{}", array.name);
            assert_eq!(array.rows.is_empty(), !["raid4", "raid5", "raid6"].contains(&array.level.as_str()));
            for row in &array.rows {
                assert_eq!(row.q.is_some(), array.level == "raid6", "{}", array.name);
                assert!(row.p < array.members && row.q != Some(row.p), "{}", array.name);
            }
        }
    }

    #[test]
    fn the_digest_of_a_complete_map_is_right() {
        let mut whole = 0;
        for array in arrays() {
            if array.map.len() as u64 == array.array_sectors.div_ceil(array.unit) {
                assert_eq!(
                    digest(array.map.iter().map(|(_, places)| places.as_slice())),
                    array.digest,
                    "{}",
                    array.name
                );
                whole += 1;
            }
        }
        assert!(whole >= 10, "only {whole} whole maps");
    }

    #[test]
    fn the_two_layouts_of_unequal_raid0_differ() {
        let digests = |layout: &str| -> Vec<u64> {
            arrays().iter().filter(|a| a.level == "raid0" && a.layout == layout).map(|a| a.digest).collect()
        };
        let (original, alternate) = (digests("original"), digests("alternate"));
        assert_eq!(original.len(), alternate.len());
        assert!(original.iter().zip(&alternate).all(|(a, b)| a != b));
    }
}
