//! Every map against the one read off real members that the Linux md driver wrote: `layouts.txt` of the oracle
//! crate and `md_mixed_layouts.txt` here, whose headers say how they came about and what their lines mean.

use openraid_core::geometry::{Geometry, Level, Parity, Rotation, SetSpec, StripeRole};
use openraid_units::{MemberLba, Sectors, SetLba, Slot, StripeIndex};
use std::collections::BTreeMap;

/// What mdadm makes, and what only the kernel takes.
const GOLDEN: [&str; 2] = [include_str!("../../oracle/golden/layouts.txt"), include_str!("md_mixed_layouts.txt")];
/// Unit of the map where the level has no chunks: 4 KiB.
const LINEAR_UNIT: u64 = 8;
/// Fewer arrays than this, and the files are not whole.
const ARRAYS_MIN: usize = 150;

/// Slot and sector of one copy.
type Place = (u16, u64);

/// One array of the file.
struct Golden {
    name: &'static str,
    fields: BTreeMap<&'static str, &'static str>,
    digest: u64,
    /// First sector of the set, and the places of the chunks from there.
    maps: Vec<(u64, Vec<Vec<Place>>)>,
    rotation: Option<u64>,
    rows: Vec<&'static str>,
}

impl Golden {
    fn number(&self, field: &str) -> u64 {
        self.fields[field].parse().unwrap()
    }
    fn level(&self) -> Level {
        match self.fields["level"] {
            "linear" => Level::Linear,
            "raid0" => Level::Raid0,
            "raid1" => Level::Raid1,
            "raid4" => Level::Raid4,
            "raid5" => Level::Raid5,
            "raid6" => Level::Raid6,
            "raid10" => Level::Raid10,
            other => panic!("{}: level {other}", self.name),
        }
    }
    /// md's number for mdadm's word.
    fn layout(&self) -> u32 {
        let word = self.fields["layout"];
        let copies = || word[1..].parse::<u32>().unwrap();
        match (self.level(), word) {
            (Level::Raid0, "original") => 1,
            (Level::Raid0, "alternate") => 2,
            (_, "-") => 0,
            (Level::Raid10, _) if word.starts_with("0x") => u32::from_str_radix(&word[2..], 16).unwrap(),
            (Level::Raid10, _) => match &word[..1] {
                "n" => 0x100 + copies(),
                "f" => 1 + (copies() << 8),
                "o" => 0x1_0001 + (copies() << 8),
                _ => panic!("{}: layout {word}", self.name),
            },
            _ => Rotation::ALL.into_iter().find(|rotation| rotation.name() == word).unwrap().md_number(),
        }
    }
    fn geometry(&self, grown: Sectors) -> Geometry {
        let sizes: Vec<Sectors> =
            self.fields["member_sectors"].split(',').map(|size| Sectors(size.parse::<u64>().unwrap())).collect();
        let spec = SetSpec {
            level: self.level(),
            members: u16::try_from(self.number("members")).unwrap(),
            chunk: Sectors(self.number("chunk")),
            layout: self.layout(),
            member_size: sizes[0] + grown,
            member_sizes: &sizes,
        };
        Geometry::new(&spec).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
    /// Sectors of one entry of the map.
    fn unit(&self) -> u64 {
        match self.level() {
            Level::Linear => LINEAR_UNIT,
            _ => self.number("chunk"),
        }
    }
}

fn parse() -> Vec<Golden> {
    let mut arrays: Vec<Golden> = Vec::new();
    for line in GOLDEN.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split(' ');
        let kind = words.next().unwrap();
        if kind == "array" {
            arrays.push(Golden {
                name: words.next().unwrap(),
                fields: words.map(|word| word.split_once('=').unwrap()).collect(),
                digest: 0,
                maps: Vec::new(),
                rotation: None,
                rows: Vec::new(),
            });
            continue;
        }
        let array = arrays.last_mut().unwrap();
        match kind {
            "digest" => array.digest = u64::from_str_radix(words.next().unwrap(), 16).unwrap(),
            "map" => array.maps.push((words.next().unwrap().parse().unwrap(), words.map(places).collect())),
            "rotation" => array.rotation = Some(words.next().unwrap().parse().unwrap()),
            "rows" => array.rows = words.collect(),
            other => panic!("{}: a line of unknown kind {other}", array.name),
        }
    }
    assert!(arrays.len() >= ARRAYS_MIN, "the files hold {} arrays only", arrays.len());
    arrays
}

/// `SLOT:SECTOR+SLOT:SECTOR`.
fn places(word: &str) -> Vec<Place> {
    let place = |place: &str| {
        let (slot, sector) = place.split_once(':').unwrap();
        (slot.parse().unwrap(), sector.parse().unwrap())
    };
    word.split('+').map(place).collect()
}

/// The places that the geometry gives to the data at `at`, by rising slot.
fn mapped(set: &Geometry, at: SetLba) -> Vec<Place> {
    let mut places: Vec<Place> = match set {
        Geometry::Passthrough(_) => panic!("md has no pass-through"),
        Geometry::Linear(set) => [set.map(at)].map(|f| (f.slot.0, f.lba.0)).into(),
        Geometry::Striped(set) => [set.map(at)].map(|f| (f.slot.0, f.lba.0)).into(),
        Geometry::Mirror(set) => set.copies(at).map(|f| (f.slot.0, f.lba.0)).collect(),
        Geometry::Parity(set) => {
            let (stripe, column, within) = set.locate(at);
            [(set.slot_of(stripe, column).0, set.member_lba(stripe, within).0)].into()
        }
    };
    places.sort_unstable();
    places
}

/// FNV-1a, 64 bits.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn capacities_are_those_of_md() {
    for array in parse() {
        assert_eq!(array.geometry(Sectors::ZERO).capacity(), Sectors(array.number("array_sectors")), "{}", array.name);
    }
}

#[test]
fn every_chunk_stands_where_md_puts_it() {
    for array in parse() {
        let set = array.geometry(Sectors::ZERO);
        for (first, chunks) in &array.maps {
            assert!(!chunks.is_empty());
            for (number, expected) in (0..).zip(chunks) {
                let at = SetLba(first + number * array.unit());
                assert_eq!(mapped(&set, at), *expected, "{} {at:?}", array.name);
            }
        }
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for number in 0..array.number("array_sectors") / array.unit() {
            for (slot, sector) in mapped(&set, SetLba(number * array.unit())) {
                hash = fnv(fnv(hash, &u32::from(slot).to_le_bytes()), &sector.to_le_bytes());
            }
        }
        assert_eq!(hash, array.digest, "{}: the whole map", array.name);
    }
}

#[test]
fn members_read_backwards_as_md_wrote_them() {
    for array in parse() {
        let set = array.geometry(Sectors::ZERO);
        for (first, chunks) in &array.maps {
            for (number, places) in (0..).zip(chunks) {
                let at = SetLba(first + number * array.unit());
                for (slot, sector) in places {
                    let (slot, sector) = (Slot(*slot), MemberLba(*sector));
                    let found = match &set {
                        Geometry::Passthrough(_) => panic!("md has no pass-through"),
                        Geometry::Linear(set) => set.inverse(slot, sector).unwrap().0,
                        Geometry::Striped(set) => set.inverse(slot, sector).unwrap().0,
                        Geometry::Mirror(set) => set.inverse(slot, sector).unwrap().0,
                        Geometry::Parity(set) => {
                            let (stripe, within) = set.stripe_at(sector).unwrap();
                            let StripeRole::Data(column) = set.role_of(stripe, slot) else { panic!("data") };
                            set.set_lba(stripe, column, within)
                        }
                    };
                    assert_eq!(found, at, "{} {slot:?} {sector:?}", array.name);
                }
            }
        }
    }
}

/// A row as the file writes it.
fn written(set: &Parity, stripe: StripeIndex) -> String {
    let p = set.p_slot(stripe);
    let Some(q) = set.q_slot(stripe) else { return p.to_string() };
    let factor = |slot| match set.role_of(stripe, Slot(slot)) {
        StripeRole::Data(column) => char::from_digit(set.coefficient(stripe, column).into(), 16).unwrap(),
        StripeRole::P | StripeRole::Q => '-',
    };
    format!("{p}/{q}/{}", (0..set.members()).map(factor).collect::<String>())
}

#[test]
fn parity_and_its_factors_are_those_of_md() {
    let (mut rows, mut levels) = (0, [0; 3]);
    for array in parse() {
        let Geometry::Parity(set) = array.geometry(Sectors::ZERO) else {
            assert!(array.rows.is_empty());
            continue;
        };
        let found: Vec<String> =
            (0..array.rows.len() as u64).map(|stripe| written(&set, StripeIndex(stripe))).collect();
        assert_eq!(found, array.rows, "{}", array.name);
        // The pattern repeats as md's does, up to the last stripe.
        let rotation = array.rotation.unwrap();
        assert!(rotation <= array.rows.len() as u64);
        for stripe in 0..set.stripes() {
            assert_eq!(written(&set, StripeIndex(stripe)), written(&set, StripeIndex(stripe % rotation)));
        }
        rows += array.rows.len();
        levels[usize::from(set.parities() == 2) + usize::from(set.level() == Level::Raid5) * 2] += 1;
    }
    assert!(rows > 500 && levels.iter().all(|arrays| *arrays > 0), "{rows} rows of {levels:?} arrays were compared");
}

#[test]
fn a_rest_of_the_member_that_holds_no_chunk_changes_nothing() {
    for array in parse() {
        if matches!(array.level(), Level::Raid0 | Level::Linear | Level::Raid1) {
            continue;
        }
        let (exact, grown) = (array.geometry(Sectors::ZERO), array.geometry(Sectors(array.number("chunk") - 1)));
        assert_eq!(exact, grown, "{}", array.name);
    }
}

#[test]
fn preferred_sizes_are_those_of_md() {
    let mut compared = 0;
    for array in parse() {
        let Some(sizes) = array.fields.get("io_bytes") else { continue };
        let set = array.geometry(Sectors::ZERO);
        let found = format!("{},{}", set.io_min().bytes().get(), set.full_stripe().bytes().get());
        assert_eq!(found, *sizes, "{}", array.name);
        compared += 1;
    }
    assert!(compared > 30, "only {compared} were compared");
}
