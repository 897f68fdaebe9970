//! Arrays that go back and forth between the engine and the real Linux md driver.
//!
//! The engine runs in the simulated machine on memory drives; md runs in its own kernel, as an ordinary process.
//! They meet in image files. For tests only.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use openraid_core::admin::AdminCommand;
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_format::{LayoutWord, MdLevel};
use openraid_oracle::stamp::{self, StampReport, WriteLog};
use openraid_sim::drive::{DriveSpec, FreshContent};
use openraid_sim::test_arrays::Blocks;
use openraid_sim::world::{World, WorldSpec};
use openraid_sim::{ArrayShape, Random, Rig, RigOptions};
use openraid_units::{ArrayId, DriveId, DriveLba, Sectors};

/// Images are copied in pieces of this size.
const COPY_BYTES: usize = 64 << 10;
/// Requests with which whole arrays are read and written.
const REQUEST_BYTES: u64 = 96 << 10;

/// A folder that goes away with its owner.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder of this name among the temporary files.
    ///
    /// # Panics
    /// It cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("openraid-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    /// The image of a member.
    #[must_use]
    pub fn image(&self, array: &str, member: usize) -> PathBuf {
        self.0.join(format!("{array}-{member}"))
    }

    /// An empty image of this size.
    ///
    /// # Panics
    /// There is no room.
    #[must_use]
    pub fn empty(&self, array: &str, member: usize, bytes: u64) -> PathBuf {
        let path = self.image(array, member);
        File::create(&path).and_then(|file| file.set_len(bytes)).expect("there is room for images");
        path
    }

    /// Empty images of this size for the first `count` members.
    ///
    /// # Panics
    /// There is no room.
    #[must_use]
    pub fn empties(&self, array: &str, members: usize, bytes: u64) -> Vec<PathBuf> {
        (0..members).map(|member| self.empty(array, member, bytes)).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The shapes that are taken back and forth: every level and layout, on 512-byte blocks.
#[must_use]
pub fn shapes() -> Vec<ArrayShape> {
    let mut shapes: Vec<ArrayShape> = ArrayShape::all()
        .into_iter()
        .filter(|shape| !shape.is_passthrough())
        .map(|shape| ArrayShape { blocks: Blocks::Small, ..shape })
        // md wants two members for levels with copies or stripes.
        .filter(|shape| shape.members > 1)
        .collect();
    shapes.dedup();
    shapes
}

/// A part of the shapes in which every level and layout occurs once.
#[must_use]
pub fn slice() -> Vec<ArrayShape> {
    let mut seen = Vec::new();
    shapes()
        .into_iter()
        .filter(|shape| {
            let kind = (shape.level, shape.layout, shape.unequal);
            let new = !seen.contains(&kind);
            seen.push(kind);
            new
        })
        .collect()
}

/// A word for the array in jobs and file names.
#[must_use]
pub fn key(shape: &ArrayShape, number: usize) -> String {
    format!("a{number}_{:?}_{:x}_{}", shape.level, shape.layout, shape.members).to_lowercase()
}

/// The arguments of `mdadm --create` for this shape, devices aside.
///
/// # Panics
/// A pass-through.
#[must_use]
pub fn create_arguments(shape: &ArrayShape) -> String {
    let level = MdLevel::from_number(shape.level.md_number().expect("md has this level")).expect("md's number");
    let mut arguments = format!("--level={} --raid-devices={}", level.number(), shape.members);
    if shape.level == Level::Linear {
        arguments = format!("--level=linear --raid-devices={}", shape.members);
    }
    if !shape.chunk.is_zero() {
        arguments += &format!(" --chunk={}K", shape.chunk.bytes().get() >> 10);
    }
    let has_layout =
        matches!(level, MdLevel::Raid5 | MdLevel::Raid6 | MdLevel::Raid10) || level == MdLevel::Raid0 && shape.unequal;
    if has_layout {
        arguments += &format!(" --layout={}", LayoutWord { level, layout: shape.layout });
    }
    if shape.is_redundant() {
        arguments += " --assume-clean --bitmap=none";
    }
    arguments
}

/// Has md's tool a word for the shape's layout?
#[must_use]
pub fn has_word(shape: &ArrayShape) -> bool {
    let level = MdLevel::from_number(shape.level.md_number().unwrap_or(0));
    level.is_some_and(|level| !LayoutWord { level, layout: shape.layout }.to_string().starts_with("0x"))
        || !matches!(shape.level, Level::Raid10)
}

/// Fill an array of the engine with stamps.
///
/// # Panics
/// A write fails.
pub fn stamp_array(world: &mut World, array: ArrayId, seed: u64) {
    let capacity = world.controller().capacity(array).expect("the array runs").get();
    let mut at = 0;
    while at < capacity {
        let len = REQUEST_BYTES.min(capacity - at);
        let mut bytes = vec![0; usize::try_from(len).expect("a request is small")];
        stamp::stamp(&mut bytes, seed, at / 512, 0);
        world.write(array, at, &bytes).expect("the array takes writes");
        at += len;
    }
}

/// Read a whole array of the engine.
///
/// # Panics
/// A read fails.
#[must_use]
pub fn read_array(world: &mut World, array: ArrayId) -> Vec<u8> {
    let capacity = world.controller().capacity(array).expect("the array runs").get();
    let mut content = Vec::new();
    while (content.len() as u64) < capacity {
        let at = content.len() as u64;
        content.extend(world.read(array, at, REQUEST_BYTES.min(capacity - at)).expect("the array can be read"));
    }
    content
}

/// Does the array hold the stamps of generation 0, and nothing else?
///
/// # Panics
/// A read fails.
#[must_use]
pub fn is_stamped(world: &mut World, array: ArrayId, seed: u64) -> bool {
    let content = read_array(world, array);
    let mut wanted = vec![0; content.len()];
    stamp::stamp(&mut wanted, seed, 0, 0);
    content == wanted
}

/// Compare the content of the array with a log of stamped writes: acknowledged writes must be there, and nothing may be
/// torn or foreign.
///
/// # Panics
/// A read fails, or there is no room for a copy.
#[must_use]
pub fn verified(world: &mut World, array: ArrayId, seed: u64, log: &WriteLog, folder: &Folder) -> StampReport {
    let content = read_array(world, array);
    let path = folder.image("content", 0);
    fs::write(&path, &content).expect("there is room for a copy");
    let file = File::open(&path).expect("just written");
    stamp::verify(&file, content.len() as u64, seed, log).expect("a file can be read")
}

/// Write the content of a drive into a file.
///
/// # Panics
/// There is no room.
pub fn dump(world: &World, drive: DriveId, path: &Path) {
    let drive = world.drive(drive);
    let bytes = drive.spec().capacity.bytes().get();
    let mut file = File::create(path).expect("images can be written");
    file.set_len(bytes).expect("there is room for images");
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < bytes {
        let len = buffer.len().min(usize::try_from(bytes - at).expect("images are small"));
        drive.peek(DriveLba(at / 512), &mut buffer[..len]);
        if buffer[..len].iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(&buffer[..len])).expect("images can be written");
        }
        at += len as u64;
    }
}

/// A drive with the content of a file.
///
/// # Panics
/// The file cannot be read.
pub fn load(world: &mut World, path: &Path) -> DriveId {
    let file = File::open(path).expect("the image is there");
    let bytes = file.metadata().expect("the image is there").len();
    let drive = world.add_drive(DriveSpec { fresh: FreshContent::Zeroes, ..DriveSpec::new(Sectors(bytes / 512)) });
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < bytes {
        let len = buffer.len().min(usize::try_from(bytes - at).expect("images are small"));
        file.read_exact_at(&mut buffer[..len], at).expect("the image can be read");
        if buffer[..len].iter().any(|byte| *byte != 0) {
            world.drive_mut(drive).poke(DriveLba(at / 512), &buffer[..len]);
        }
        at += len as u64;
    }
    drive
}

/// A machine with the members in these files.
#[must_use]
pub fn machine(paths: &[PathBuf], seed: u64) -> World {
    let mut world = World::new(WorldSpec::new(seed));
    for path in paths {
        load(&mut world, path);
    }
    world
}

/// An array of the engine, filled with stamps and stopped in good order; its members are in the folder.
///
/// # Panics
/// The engine does not make it.
#[must_use]
pub fn made_by_engine(shape: ArrayShape, key: &str, folder: &Folder, options: RigOptions) -> Vec<PathBuf> {
    let seed = options.world.seed;
    let mut rig = Rig::new(shape, options);
    rig.rest();
    stamp_array(&mut rig.world, rig.array, seed);
    rig.world.admin(AdminCommand::Stop { array: rig.array }).expect("the array stops");
    dump_all(&rig.world, key, folder)
}

/// Generations of [`write_logged`].
pub const LOGGED_WRITES: u64 = 60;

/// Write [`LOGGED_WRITES`] generations of `stamps` at random places of the first `sectors` sectors. Waits for the first
/// `answered` writes; the rest stay under way. Returns a log of the issued (I) and acknowledged (A) writes.
///
/// # Panics
/// The array refuses them.
pub fn write_logged(
    (world, array): (&mut World, ArrayId),
    (places, stamps): (u64, u64),
    sectors: u64,
    answered: u64,
) -> String {
    use std::fmt::Write as _;
    let (mut random, mut log) = (Random::new(places), String::new());
    for generation in 1..=LOGGED_WRITES {
        let len = 1 + random.below(64);
        let lba = random.below(sectors - len);
        let mut bytes = vec![0; usize::try_from(len * 512).expect("a write is small")];
        stamp::stamp(&mut bytes, stamps, lba, generation);
        writeln!(log, "I {lba} {len} {generation}").expect("a string takes it");
        if generation <= answered {
            world.write(array, lba * 512, &bytes).expect("the array takes writes");
            writeln!(log, "A {lba} {len} {generation}").expect("a string takes it");
        } else {
            let kind = RequestKind::Write { fua: false };
            let _ = world.try_submit(array, kind, lba * 512, len * 512, bytes);
        }
    }
    log
}

/// Write what every drive of a machine holds into files.
///
/// # Panics
/// There is no room.
#[must_use]
pub fn dump_all(world: &World, key: &str, folder: &Folder) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = (0..world.drives_len()).map(|member| folder.image(key, member)).collect();
    for (number, path) in (0..).zip(&paths) {
        dump(world, DriveId(number), path);
    }
    paths
}
