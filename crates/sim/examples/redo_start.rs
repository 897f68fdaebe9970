//! Prints how long a start after a crash waits for the redo backlog: `redo_start DRIVE RING_MIB [cache=off] [lines=MIB]
//! [full=PERCENT] [data=MIB]`.
//!
//! The array is RAID 5 on four members of the modelled drive, with a journal on a fast SSD. The load is random 4 KiB
//! writes at queue depth 32. It ends when the ring is `full` percent full (95), or when twice its size was written.
//! Then the power is cut, and the array starts. `cache=off` switches off the write caches of the members. `lines` is
//! the size of the engine's own cache (64 MiB). `data` is the size of a member's data area (512 MiB). All times are
//! virtual. They do not include the search for the log, which reads the ring once in any case.

use openraid_core::admin::{AdminCommand, JournalState, Policy, WriteCache};
use openraid_core::events::RequestKind;
use openraid_core::limits::Limits;
use openraid_drives::{DriveKit, DriveOptions};
use openraid_models::Library;
use openraid_sim::drive::DriveSpec;
use openraid_sim::random::Random;
use openraid_sim::{ArrayShape, Rig, RigOptions, World};
use openraid_units::{Bytes, DriveId, Nanos, Sectors};

const BLOCK: u64 = 4096;
const DEPTH: usize = 32;
const JOURNAL_DRIVE: &str = "pm9a3_1920";

struct Machine {
    rig: Rig,
    journal: Vec<DriveId>,
    /// Drives and their models.
    kits: Vec<(DriveId, DriveKit)>,
    /// Whether the write cache of the members is switched off.
    uncached: bool,
}

fn kit(name: &str) -> DriveKit {
    let library = Library::builtin();
    let profile =
        library.drives().find(|drive| drive.head.answers_to(name)).unwrap_or_else(|| panic!("no drive {name}"));
    DriveKit::new(profile)
}

impl Machine {
    fn new(drive: &str, ring: Sectors, uncached: bool, cache: Bytes, data: Sectors) -> Self {
        let (base, journal) = (Limits::default(), Bytes::mib(4));
        let mut options = RigOptions::new(1);
        options.world.limits = Limits { pool: base.pool + cache + journal, cache, journal, ..base };
        let shape = ArrayShape { data, ..ArrayShape::raid5(4, Sectors::kib(64)) };
        let mut rig = Rig::new(shape, options);
        rig.rest();
        let journal = rig.world.make_journal_on(&DriveSpec::new(ring), 1, None);
        let (members, log) = (kit(drive), kit(JOURNAL_DRIVE));
        let members = rig.drives.iter().map(|drive| (*drive, members.clone()));
        let kits = members.chain([(journal[0], log)]).collect();
        let mut machine = Self { rig, journal, kits, uncached };
        machine.pace();
        machine.attach();
        let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
        let array = machine.rig.array;
        machine.rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("it has a journal");
        machine
    }

    fn pace(&mut self) {
        for (index, (drive, kit)) in (0..).zip(&self.kits) {
            let write_cache = (self.uncached && *drive != self.journal[0]).then_some(false);
            self.rig.world.pace(*drive, kit.build(&DriveOptions { index, write_cache, ..DriveOptions::default() }));
        }
    }

    fn attach(&mut self) {
        let world = &mut self.rig.world;
        world.attach_journal(&self.journal).unwrap_or_else(|fault| panic!("{fault}"));
        while world.journal().map(|journal| journal.state) != Some(JournalState::Live) {
            world.step();
        }
    }

    /// Write until the ring is full. Returns the number of writes.
    fn fill(&mut self, full: u64) -> u64 {
        let world = &mut self.rig.world;
        let (mut random, mut out, mut count) = (Random::new(7), 0, 0_u64);
        let blocks = self.rig.session.capacity() / BLOCK;
        let most = of_ring(world).1 * 512 / BLOCK * 2;
        while count < most {
            let (used, ring) = of_ring(world);
            if used * 100 >= ring * full {
                break;
            }
            while out < DEPTH {
                let at = random.below(blocks) * BLOCK;
                let payload = vec![count.to_le_bytes()[0]; usize::try_from(BLOCK).expect("a page")];
                world.submit(self.rig.array, RequestKind::Write { fua: false }, at, BLOCK, payload);
                (out, count) = (out + 1, count + 1);
            }
            world.step();
            out -= world.take_finished().count();
        }
        count
    }

    fn start(&mut self) {
        let used = of_ring(&self.rig.world);
        self.rig.world.cut_power();
        self.rig.world.boot();
        self.pace();
        let world = &mut self.rig.world;
        let begin = world.now();
        self.attach();
        let world = &mut self.rig.world;
        let array = world.assemble(false).unwrap_or_else(|error| panic!("{error}"));
        let answered = world.now().since(begin);
        world.read(array, 0, BLOCK).expect("it reads");
        let served = world.now().since(begin);
        let journal = world.journal().expect("attached");
        let (left, loaded) = (journal.pending_redos, journal.counters.replayed_sectors);
        while world.journal().expect("attached").pending_redos > 0 {
            world.step();
        }
        let done = world.now().since(begin);
        let writes = world.journal().expect("attached").counters.replayed_redos;
        let seconds = |time: Nanos| time.get() as f64 / 1e9;
        println!(
            "ring {} of {} MiB, {} MiB loaded; started after {:.2} s, first read after {:.2} s; {left} redos were left then, \
             none after {:.2} s ({writes} writes)",
            used.0 >> 11,
            used.1 >> 11,
            loaded >> 11,
            seconds(answered),
            seconds(served),
            seconds(done)
        );
    }
}

fn of_ring(world: &World) -> (u64, u64) {
    let journal = world.journal().expect("attached");
    (journal.used.get(), journal.ring.get())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, drive, ring, rest @ ..] = &arguments[..] else {
        panic!("redo_start DRIVE RING_MIB [cache=off] [lines=MIB] [full=PERCENT] [data=MIB]")
    };
    let uncached = rest.iter().any(|word| word == "cache=off");
    let number_of = |name: &str, usual: u64| {
        let word = rest.iter().find_map(|word| word.strip_prefix(name));
        word.map_or(usual, |number| number.parse().expect("a number"))
    };
    let (lines, full) = (Bytes::mib(number_of("lines=", 64)), number_of("full=", 95));
    let data = Sectors::mib(number_of("data=", 512));
    let mut machine = Machine::new(drive, Sectors::mib(ring.parse().expect("a number of MiB")), uncached, lines, data);
    let begin = machine.rig.world.now();
    let writes = machine.fill(full);
    let took = machine.rig.world.now().since(begin);
    print!("{drive}: {writes} writes in {} s; ", took.get() / 1_000_000_000);
    machine.start();
}
