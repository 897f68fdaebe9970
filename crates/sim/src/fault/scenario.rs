//! One run, drawn from its seed: an array, its settings, the hosts' load, and the faults with their times.
//!
//! Each step has a seed of its own. So the removal of steps leaves the other steps unchanged, as far as they are still
//! possible. A step that is no longer possible is skipped.

use std::fmt;

use openraid_core::admin::{MirrorRule, PartialWritePolicy, Policy, ReadAhead, WriteCache};
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_format::MinorVersion;
use openraid_units::{BlockSize, Bytes, Nanos, Sectors};

use super::changing_runs::ShapeWish;
use super::phase::Phase;
use crate::drive::{DriveSpec, FreshContent, Latency};
use crate::random::Random;
use crate::rig::{Loss, BEFORE_DATA};
use crate::test_arrays::{ArrayShape, Blocks};

/// Least number of steps of a run.
const STEPS_LEAST: u64 = 4;
/// Greatest number of steps of a run.
const STEPS_MOST: u64 = 24;

/// The source of the random draws for wrong reads.
const WRONG_READS: u64 = 107;

/// The places of superblocks, each repeated by its weight in the draw.
const METADATA: [MinorVersion; 4] = [MinorVersion::V1_2, MinorVersion::V1_2, MinorVersion::V1_1, MinorVersion::V1_0];
/// The least data of a nested array on each of its spans.
const SPAN_DATA_LEAST: Sectors = Sectors::kib(192);

/// The allowed faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// Faults that the level promises to survive: no data may be lost, and no request may fail.
    Bounded,
    /// Any fault: data loss must be reported, and data returned as good must be right.
    Unbounded,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bounded => "bounded",
            Self::Unbounded => "unbounded",
        })
    }
}

/// The way in which a controller ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ControllerEnd {
    /// All drives and the host lose their power.
    Cut,
    /// The host and some drives lose their power.
    CutInPart,
    /// The process is killed.
    Kill,
    /// The server stops in good order.
    Stop,
}

/// An action of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Hosts make this number of requests; some stay without an answer for now.
    Ask(u64),
    /// This number of events happens.
    Happen(u64),
    /// This time passes.
    Wait(Nanos),
    /// Time passes until everything is at rest.
    Rest,
    /// A flush with its answer.
    Flush,
    /// All data is read.
    Look,
    /// The controller ends and the next one begins. With a number, the power fails again after that number of events,
    /// during the assembly of the next controller.
    End(ControllerEnd, Option<u64>),
    /// A member is lost.
    Lose(Loss),
    /// A member loses its power and is absent.
    Vanish,
    /// A lost drive returns as it is.
    Return,
    /// A lost drive is added to the array again.
    Readd,
    /// A new drive is added.
    Add,
    /// A working member is replaced by a new drive.
    Replace,
    /// All data is read and compared, and corrected if `repair`.
    Scrub {
        /// Whether mismatches are corrected.
        repair: bool,
    },
    /// This number of sectors of a member cannot be read until they are written.
    Latent(u64),
    /// This number of sectors of a member can neither be read nor written.
    Dead(u64),
    /// Answers of a drive come late for a while.
    Late,
    /// A drive does not answer for this time.
    Silence(Nanos),
    /// Bits flip in this number of places while the array is idle, and a repair reads them.
    Patrol(u64),
    /// Bits flip.
    Flip,
    /// The next write to some place is lost.
    LostWrite,
    /// The next write to some place is written to another place.
    Misdirect,
    /// The next read of some place returns the data of another place.
    Misread,
    /// The next read of some place returns flipped bits; the medium is good.
    FlipOnTheWay,
    /// Bits of a superblock flip.
    FlipSuperblock,
    /// Some members become full: writes that need new room are refused. In a bounded run this number of requests
    /// follows, and then there is room again.
    Fill(u64),
    /// All members have room again.
    MakeRoom,
    /// The devices of the journal and a member are copied.
    KeepImages,
    /// The power is cut, and a member is there as it was when it was copied.
    OlderMember,
    /// The power is cut, and the journal is there as it was when it was copied. The right one is there after it.
    OlderJournal,
    /// The power is cut, and the superblocks lack the fields that an older version did not write.
    OlderVersion,
    /// The power is cut, and a server reads everything from members that it does not write. Then the arrays start.
    StartReading,
    /// The power is cut, and a member is there whose data was copied in part.
    HalfCopied,
    /// A new drive is given to two arrays as a spare.
    ShareSpare,
    /// The settings change.
    Policy,
    /// The power is cut, and a member is lost for good, if the array promises to survive that. The number is for
    /// another power cut during the next assembly, as in [`Action::ControllerEnd`].
    CutAndLose(Option<u64>),
    /// The power is cut. All lost drives return with the power, as they are.
    CutAndBack(Option<u64>),
    /// Time passes until the engine reaches this phase. If true, hosts continue to make requests.
    Until(Phase, bool),
    /// The next write to a member is refused once; the medium is good.
    Refuse,
    /// A drive refuses discards from now on, or takes them again.
    RefuseDiscards,
    /// The connection to a drive is away for this time. Its commands under way are repeated afterwards.
    Reconnect(Nanos),
    /// The background work of a set is held.
    Pause,
    /// It goes on.
    Resume,
    /// The shape of an array begins to change. Missing spares are added.
    Reshape(ShapeWish),
    /// The change of shape that is under way turns around.
    CancelReshape,
    /// A check or a repair is stopped.
    StopScrub,
    /// A set gets another name.
    Rename,
    /// The server stops, and a set has another consistency policy at the next start.
    Consistency,
    /// The server stops, and starts without the drives and journal devices that this number chooses.
    StartWithout(u64),
    /// Bits flip in this number of places of a degraded set, and a check counts them.
    CheckDegraded(u64),
    /// A dropped device of the journal joins again while arrays run.
    JournalJoin,
    /// The journal is taken out of use and into use again.
    JournalAgain,
    /// A device of the journal fails.
    JournalLose(Loss),
    /// The devices of the journal work again.
    JournalReturn,
    /// A sector of the journal is damaged: silently, or with a read error.
    JournalHurt {
        /// Whether the damage is silent.
        silent: bool,
    },
}

/// The specification of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalSpec {
    /// Number of devices.
    pub mirrors: u8,
    /// Length of its ring.
    pub ring: Sectors,
    /// Whether the devices are disks.
    pub spins: bool,
    /// The block size of the devices.
    pub block: BlockSize,
    /// Whether the devices lose unflushed writes.
    pub volatile: bool,
}

/// What only swarm runs have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extras {
    /// Each drive has a kind of its own.
    pub mixed: bool,
    /// Distance between the metadata of members and their data, besides the usual one.
    pub far: Sectors,
    /// Whether a second array has the same journal, cache and pool.
    pub beside: bool,
}

/// An action and its seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScenarioStep {
    /// The seed of the action's random draws.
    pub seed: u64,
    pub action: Action,
}

/// The hosts' load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScenarioLoad {
    /// Outstanding requests.
    pub depth: usize,
    /// Longest request in bytes.
    pub len_max: u64,
    /// All offsets and lengths are multiples of this.
    pub align: u64,
    /// Shares of reads, writes, flushes, trims, zeroings.
    pub mix: [u64; 5],
    /// Limit of the part of the array that is used.
    pub span: u64,
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The seed of the run.
    pub seed: u64,
    /// The allowed faults.
    pub mode: Mode,
    /// The array, or each span.
    pub shape: ArrayShape,
    /// Spans of a nested array; one means that the array is not nested.
    pub spans: u16,
    /// Whether the array has a write-intent bitmap.
    pub bitmap: bool,
    /// Whether the array has partial parity logs.
    pub ppl: bool,
    /// Bytes for each bit of the bitmap.
    pub bitmap_chunk: Option<u32>,
    /// Whether the drives are used ones, with old content.
    pub junk: bool,
    /// Number of hot spares of each set.
    pub spares: u16,
    /// The place of superblocks.
    pub metadata: MinorVersion,
    /// The kind of drives; capacity and block come from the shape.
    pub drive: DriveSpec,
    /// The controller's tables.
    pub limits: Limits,
    /// The array's settings.
    pub policy: Policy,
    /// The controller's journal.
    pub journal: Option<JournalSpec>,
    /// No member is lost while copies may differ, so repeated reads return the same data.
    pub stable_reads: bool,
    /// The hosts' load.
    pub load: ScenarioLoad,
    /// Whether the cuts are aimed: see `aim`.
    pub aimed: bool,
    /// What only swarm runs have.
    pub extras: Extras,
    /// The actions, in order.
    pub steps: Vec<ScenarioStep>,
}

impl Scenario {
    /// The run of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::derived(seed, 11);
        let mode = if random.chance(3, 5) { Mode::Bounded } else { Mode::Unbounded };
        let (shape, spans) = draw_shape(&mut random);
        let policy = draw_policy(&mut random);
        let journal = draw_journal(&mut random, policy.write_cache);
        let cached = journal.is_some() || policy.write_cache == WriteCache::Volatile || random.chance(1, 4);
        let discard = random.chance(1, 2);
        let spindle = Latency { least: Nanos::ZERO, most: Nanos::from_millis(20), grain: Nanos::from_micros(50) };
        // A mirror with its superblock at the end shows its data in place, so drives would show the superblock of the
        // outer stripe.
        let nested_mirror = spans > 1 && shape.level == Level::Raid1;
        let metadata = if nested_mirror { MinorVersion::V1_2 } else { *random.pick(&METADATA) };
        let scenario = Self {
            seed,
            mode,
            shape,
            spans,
            bitmap: random.chance(1, 2) && shape.is_redundant(),
            ppl: false,
            bitmap_chunk: *random.pick(&[None, Some(4096), Some(16 << 10), Some(64 << 10)]),
            junk: random.chance(1, 5),
            spares: u16::from(random.chance(1, 5) && shape.is_redundant() && spans == 1),
            metadata,
            drive: DriveSpec {
                latency: if random.chance(1, 3) { spindle } else { Latency::FLASH },
                rotational: random.chance(1, 2),
                discard,
                discard_zeroes: discard,
                write_zeroes: random.chance(1, 2),
                volatile_cache: random.chance(7, 8),
                fresh: FreshContent::Zeroes,
                ..DriveSpec::new(Sectors::ZERO)
            },
            limits: draw_limits(&mut random, cached, journal.is_some()),
            policy,
            journal,
            stable_reads: random.chance(1, 2),
            load: draw_load(&mut random),
            aimed: false,
            extras: Extras::default(),
            steps: Vec::new(),
        };
        let count = random.between(STEPS_LEAST, STEPS_MOST);
        let steps = (0..count).flat_map(|_| {
            let ask = Action::Ask(random.between(1, 200));
            let action = match journal {
                Some(_) if random.chance(1, 12) => draw_journal_action(&mut random),
                _ => draw_action(&mut random, mode),
            };
            let happen = Action::Happen(random.between(1, 80));
            let actions = [Some(ask), random.chance(1, 2).then_some(happen), Some(action)];
            actions.into_iter().flatten().map(|action| ScenarioStep { seed: random.bits(), action }).collect::<Vec<_>>()
        });
        let mut steps = steps.collect();
        if mode == Mode::Unbounded {
            add_wrong_reads(seed, &mut steps);
        }
        // This draw has a generator of its own, so the draws of other seeds do not change.
        let alone = scenario.policy.write_cache != WriteCache::Journal && !scenario.bitmap;
        let ppl = shape.level == Level::Raid5 && alone && Random::derived(seed, 14).chance(2, 3);
        Self { steps, ppl, ..scenario }
    }

    /// The settings in a word, for the table.
    #[must_use]
    pub fn policy_name(&self) -> &'static str {
        match (self.policy.write_cache, self.bitmap) {
            (WriteCache::Through, _) if self.ppl => "write-through, PPL",
            (WriteCache::Volatile, _) if self.ppl => "volatile cache, PPL",
            (WriteCache::Through, false) => "write-through",
            (WriteCache::Through, true) => "write-through, bitmap",
            (WriteCache::Volatile, false) => "volatile cache",
            (WriteCache::Volatile, true) => "volatile cache, bitmap",
            (WriteCache::Journal, false) => "journal",
            (WriteCache::Journal, true) => "journal, bitmap",
        }
    }

    /// The level in a word, for the table.
    #[must_use]
    pub fn level_name(&self) -> String {
        match (self.spans, self.shape.level) {
            (1, level) => level.to_string(),
            (_, Level::Raid5) => "RAID 50".into(),
            (_, Level::Raid6) => "RAID 60".into(),
            (_, Level::Raid1) => "RAID 1+0".into(),
            (_, level) => format!("{level} + 0"),
        }
    }
}

pub(super) fn draw_shape(random: &mut Random) -> (ArrayShape, u16) {
    let chunk = *random.pick(&[4, 4, 8, 16, 32, 64].map(Sectors::kib));
    let mut between = |least, most| u16::try_from(random.between(least, most)).expect("few members");
    let (mut shape, spans) = match between(0, 99) {
        0..=2 => (ArrayShape::new(Level::Passthrough, 0, 1, Sectors(0)), 1),
        3..=5 => (ArrayShape::new(Level::Linear, 0, between(1, 3), Sectors(0)), 1),
        6..=10 => (ArrayShape::new(Level::Raid0, 2, between(1, 4), chunk), 1),
        11..=22 => (ArrayShape::raid1(between(1, 4)), 1),
        23..=36 => {
            let layouts = [0x102, 0x201, 0x1_0201, 0x103, 0x301, 0x1_0301, 0x202];
            let layout = layouts[usize::from(between(0, 6))];
            let copies = if layout == 0x202 { 4 } else { u64::from(layout & 3).max(u64::from(layout >> 8 & 3)) };
            (ArrayShape::raid10(layout, between(copies, copies + 2), chunk), 1)
        }
        37..=41 => (ArrayShape::new(Level::Raid4, 0, between(3, 5), chunk), 1),
        42..=65 => (ArrayShape::new(Level::Raid5, u32::from(between(0, 5)), between(2, 6), chunk), 1),
        66..=88 => {
            let layouts = [0, 1, 2, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20];
            (ArrayShape::new(Level::Raid6, layouts[usize::from(between(0, 14))], between(4, 7), chunk), 1)
        }
        89..=92 => (ArrayShape::raid5(between(3, 4), chunk), between(2, 3)),
        93..=96 => (ArrayShape::raid6(between(4, 5), chunk), between(2, 3)),
        _ => (ArrayShape::raid1(2), between(2, 3)),
    };
    shape.blocks = *random.pick(&[Blocks::Small, Blocks::Small, Blocks::Large, Blocks::Mixed]);
    shape.data = Sectors((chunk.get() * random.between(3, 12)).max(Sectors::kib(96).get()));
    if spans > 1 {
        // The outer superblock and the area before its data need room on each span.
        let columns = shape.geometry().capacity().get() / shape.data.get();
        let least = (BEFORE_DATA + SPAN_DATA_LEAST).get() / columns;
        shape.data = Sectors(shape.data.get().max(least)).round_down(Sectors::kib(64)) + Sectors::kib(64);
    }
    shape.unequal = spans == 1 && random.chance(1, 16);
    (shape, spans)
}

pub(super) fn draw_policy(random: &mut Random) -> Policy {
    let rate = |random: &mut Random| *random.pick(&[Sectors::ZERO, Sectors::mib(1), Sectors::mib(20)]);
    Policy {
        partial_write: *random.pick(&[PartialWritePolicy::Fewest, PartialWritePolicy::ReadModifyWrite]),
        rebuild_rate: rate(random),
        scrub_rate: rate(random),
        // From a copy of the generator: later draws do not change.
        rebuild_minimum: *random.clone().pick(&[0, 0, 20, 1000].map(Sectors::mib)),
        background_depth: u32::try_from(random.between(1, 12)).expect("few"),
        write_cache: *random.pick(&[
            WriteCache::Through,
            WriteCache::Volatile,
            WriteCache::Journal,
            WriteCache::Journal,
        ]),
        read_cache: random.chance(1, 2),
        sorting: random.chance(2, 3),
        read_ahead: *random.pick(&[ReadAhead::None, ReadAhead::Always, ReadAhead::Adaptive]),
        read_ahead_max: Sectors::kib(1 << random.between(3, 12)),
        mirror_read: *random.pick(&[
            MirrorRule::Primary,
            MirrorRule::RoundRobin,
            MirrorRule::LeastPending,
            MirrorRule::NearestHead,
            MirrorRule::TwinStor,
        ]),
        split_above: Sectors::kib(random.below(256)),
        // As above.
        split_streams: !random.clone().chance(1, 4),
        split_section: Sectors::kib(4 * random.between(1, 16)),
        adaptive: random.chance(1, 2),
    }
}

/// Small tables, and short times as often as long ones, so that marks change while hosts work.
pub(super) fn draw_limits(random: &mut Random, cached: bool, journalled: bool) -> Limits {
    let small = Limits::small();
    let cache = if cached { *random.pick(&[Bytes::kib(128), Bytes::kib(512), Bytes::mib(2)]) } else { Bytes(0) };
    let brief = random.chance(1, 2);
    let time = |brief_millis, usual| if brief { Nanos::from_millis(brief_millis) } else { usual };
    let journal = if journalled { Bytes::kib(*random.pick(&[256, 256, 1024])) } else { Bytes(0) };
    let mut limits = Limits {
        pool: small.pool + cache + journal,
        cache,
        journal,
        piece_bytes_max: Bytes::kib(*random.pick(&[16, 64, 128])),
        rows_max: Sectors::kib(*random.pick(&[4, 16])),
        drive_depth_max: u32::try_from(random.between(1, 8)).expect("few"),
        destage_delay: time(20, small.destage_delay),
        destage_units_max: *random.pick(&[1, 4, 32]),
        clean_delay: time(5, small.clean_delay),
        bitmap_clear_delay: time(10, small.bitmap_clear_delay),
        checkpoint_interval: time(20, small.checkpoint_interval),
        ..small
    };
    limits.destage_units_calm = limits.destage_units_max.div_ceil(4);
    limits.destage_zones = if brief { 4 } else { limits.destage_zones };
    limits
}

/// A journal if the settings need one; in some runs a journal that waits for a change of the settings.
fn draw_journal(random: &mut Random, write_cache: WriteCache) -> Option<JournalSpec> {
    let wanted = write_cache == WriteCache::Journal || random.chance(1, 8);
    let spec = JournalSpec {
        mirrors: *random.pick(&[1, 1, 2]),
        ring: Sectors::mib(*random.pick(&[4, 4, 6])),
        spins: random.chance(1, 6),
        block: if random.chance(1, 3) { BlockSize::B4096 } else { BlockSize::B512 },
        volatile: random.chance(7, 8),
    };
    wanted.then_some(spec)
}

fn draw_journal_action(random: &mut Random) -> Action {
    match random.below(8) {
        0..=2 => {
            // From a copy of the generator: later draws do not change.
            let flush_fails = random.clone().chance(1, 4);
            let other = *random.pick(&[Loss::Pulled, Loss::ReadOnly, Loss::Hanging]);
            Action::JournalLose(if flush_fails { Loss::FlushFails } else { other })
        }
        3..=5 => Action::JournalReturn,
        _ => Action::JournalHurt { silent: random.chance(1, 2) },
    }
}

pub(super) fn draw_load(random: &mut Random) -> ScenarioLoad {
    ScenarioLoad {
        depth: random.index(16) + 1,
        len_max: *random.pick(&[512, 4 << 10, 16 << 10, 64 << 10]),
        align: *random.pick(&[1, 512, 512, 4096]),
        mix: *random.pick(&[[40, 50, 4, 3, 3], [10, 80, 10, 0, 0], [20, 60, 1, 5, 14], [1, 4, 1, 0, 0]]),
        span: if random.chance(1, 3) { 96 << 10 } else { u64::MAX },
    }
}

/// Add wrong reads to some runs; other runs do not change.
fn add_wrong_reads(seed: u64, steps: &mut Vec<ScenarioStep>) {
    let mut random = Random::derived(seed, WRONG_READS);
    if !random.chance(1, 8) {
        return;
    }
    for _ in 0..random.between(1, 3) {
        let action = *random.pick(&[Action::Misread, Action::FlipOnTheWay]);
        let place = random.index(steps.len());
        steps.insert(place, ScenarioStep { seed: random.bits(), action });
    }
}

fn draw_end(random: &mut Random) -> Action {
    let end = *random.pick(&[
        ControllerEnd::Cut,
        ControllerEnd::Cut,
        ControllerEnd::Cut,
        ControllerEnd::CutInPart,
        ControllerEnd::Kill,
        ControllerEnd::Stop,
    ]);
    let again = random.chance(1, 4).then(|| random.below(40));
    match random.chance(1, 8) {
        true => Action::CutAndLose(again),
        false => Action::End(end, again),
    }
}

fn draw_action(random: &mut Random, mode: Mode) -> Action {
    let lose = *random.pick(&Loss::ALL);
    match random.below(if mode == Mode::Bounded { 80 } else { 100 }) {
        0..=27 => draw_end(random),
        28..=33 => Action::Lose(lose),
        34..=35 => Action::Vanish,
        36..=39 => Action::Return,
        40..=44 => Action::Readd,
        45..=50 => Action::Add,
        51..=52 => Action::Replace,
        53..=56 => Action::Scrub { repair: random.chance(1, 2) },
        57..=60 => Action::Latent(random.between(1, 6)),
        61 => Action::Late,
        62 => Action::Silence(Nanos::from_millis(random.between(1, 40_000))),
        63..=64 => Action::Patrol(random.between(1, 4)),
        65..=68 => Action::Flush,
        69..=71 => Action::Rest,
        72..=75 => Action::Wait(Nanos::from_millis(random.between(1, 8_000))),
        76..=77 => Action::Policy,
        78..=79 => Action::Look,
        80..=84 => Action::Lose(lose),
        85..=87 => Action::Latent(random.between(1, 30)),
        88..=89 => Action::Dead(random.between(1, 4)),
        90..=92 => Action::Flip,
        93..=95 => Action::LostWrite,
        96..=97 => Action::Misdirect,
        _ => Action::FlipSuperblock,
    }
}
