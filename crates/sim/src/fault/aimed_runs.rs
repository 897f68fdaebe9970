//! Aimed runs: few members, little data, short times, and power cuts between a step and its consequence.
//!
//! This module has its own random numbers, so [`Scenario::draw`] of a seed does not change.

use openraid_core::admin::{Policy, WriteCache};
use openraid_core::geometry::Level;
use openraid_units::{Nanos, Sectors};

use super::phase::Phase;
use super::scenario::{
    draw_limits, draw_load, draw_policy, draw_shape, Action, ControllerEnd, JournalSpec, Mode, Scenario, ScenarioLoad,
    ScenarioStep,
};
use crate::drive::DriveSpec;
use crate::random::Random;
use crate::rig::Loss;

/// The source of the random draws of an aimed run.
const AIMED: u64 = 16;
/// Number of plays of a run.
const PLAYS: (u64, u64) = (3, 8);

/// The theme of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Theme {
    /// A mirror with a journal.
    MirrorJournal,
    /// A redundant array with a journal.
    Journal,
    /// An array with a bitmap.
    Bitmap,
    /// An array with partial parity logs.
    PartialLog,
    /// Members that are rebuilt, replaced or resynced.
    Filling,
    /// Members that fail and return.
    Members,
}

const THEMES: [Theme; 6] =
    [Theme::MirrorJournal, Theme::Journal, Theme::Bitmap, Theme::PartialLog, Theme::Filling, Theme::Members];

impl Scenario {
    /// The torture's run for a seed: random, changing, swarm and aimed runs in turn.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        match seed % 4 {
            0 => Self::aimed(seed),
            1 => Self::draw(seed),
            2 => Self::changing(seed),
            _ => Self::swarm(seed),
        }
    }

    /// The aimed run of a seed.
    #[must_use]
    pub fn aimed(seed: u64) -> Self {
        let mut random = Random::derived(seed, AIMED);
        let random = &mut random;
        let theme = *random.pick(&THEMES);
        let base = Self::draw(seed);
        let (shape, spans) = loop {
            let (shape, spans) = draw_shape(random);
            // Only mirrors may lose their power at any moment while a member is absent.
            let seldom = matches!(theme, Theme::Members | Theme::Filling) && !is_mirror(shape.level);
            if theme.takes(shape.level, shape.is_redundant()) && !(seldom && random.chance(2, 3)) {
                break (shape, spans);
            }
        };
        let write_cache = match theme {
            Theme::MirrorJournal | Theme::Journal => WriteCache::Journal,
            Theme::Bitmap | Theme::PartialLog | Theme::Members => WriteCache::Through,
            Theme::Filling => *random.pick(&[WriteCache::Through, WriteCache::Through, WriteCache::Volatile]),
        };
        let mut policy = Policy { write_cache, ..draw_policy(random) };
        if theme == Theme::Filling {
            // Slow enough for a few checkpoints.
            policy.rebuild_rate = *random.pick(&[1, 1, 20].map(Sectors::mib));
        }
        // A write into a cache is faster than the flush that makes it durable.
        let flush_times = *random.pick(&[1, 4, 20]);
        let journal = (write_cache == WriteCache::Journal).then(|| JournalSpec {
            mirrors: *random.pick(&[1, 2]),
            ring: Sectors::mib(4),
            spins: random.chance(1, 2),
            block: *random.pick(&[openraid_units::BlockSize::B512, openraid_units::BlockSize::B4096]),
            volatile: true,
        });
        let mut limits = draw_limits(random, write_cache != WriteCache::Through, journal.is_some());
        if random.chance(4, 5) {
            limits.clean_delay = Nanos::from_millis(5);
            limits.bitmap_clear_delay = Nanos::from_millis(10);
            limits.checkpoint_interval = Nanos::from_millis(*random.pick(&[1, 5, 20]));
            limits.destage_delay = Nanos::from_millis(*random.pick(&[1, 5, 20]));
        }
        if theme == Theme::Bitmap {
            // As short as a flush, so that writes arrive between two checks of the bitmap and the flush that follows.
            limits.bitmap_clear_delay = Nanos::from_micros(*random.pick(&[100, 500, 2_000, 10_000]));
        }
        let ppl = theme == Theme::PartialLog;
        let steps = plays(theme, random);
        Self {
            mode: if random.chance(5, 6) { Mode::Bounded } else { Mode::Unbounded },
            spans,
            bitmap: !ppl && shape.is_redundant() && (theme == Theme::Bitmap || random.chance(1, 4)),
            ppl,
            bitmap_chunk: Some(*random.pick(&[4096, 4096, 16 << 10])),
            junk: random.chance(if ppl { 2 } else { 1 }, 3),
            spares: u16::from(spans == 1 && random.chance(1, 6)),
            metadata: if shape.level == Level::Raid1 { openraid_format::MinorVersion::V1_2 } else { base.metadata },
            shape,
            limits,
            policy,
            journal,
            load: aimed_load(theme, random),
            drive: DriveSpec { flush_times, ..base.drive },
            aimed: true,
            steps,
            ..base
        }
    }
}

const fn is_mirror(level: Level) -> bool {
    matches!(level, Level::Raid1 | Level::Raid10)
}

impl Theme {
    fn takes(self, level: Level, is_redundant: bool) -> bool {
        match self {
            Self::MirrorJournal => is_redundant && is_mirror(level),
            Self::PartialLog => level == Level::Raid5,
            Self::Journal | Self::Bitmap | Self::Filling | Self::Members => is_redundant,
        }
    }

    /// The phases at which the theme aims.
    const fn moments(self) -> &'static [Phase] {
        match self {
            Self::MirrorJournal | Self::Journal => &[
                Phase::EntryBesideDestage,
                Phase::EntryBesideDestage,
                Phase::EntryOut,
                Phase::DestageOut,
                Phase::SessionMoves,
                Phase::JournalSuperblockOut,
                Phase::BetweenWaves,
                Phase::Answered,
            ],
            Self::Bitmap => &[Phase::BitCleared, Phase::BitCleared, Phase::BitmapOut, Phase::FlushOut, Phase::Answered],
            Self::PartialLog => {
                &[Phase::PartialLogOut, Phase::WriteOut, Phase::FlushOut, Phase::BetweenWaves, Phase::Answered]
            }
            Self::Filling => &[
                Phase::Checkpointed,
                Phase::Checkpointed,
                Phase::TaskEnded,
                Phase::TaskEnded,
                Phase::FillOut,
                Phase::BetweenWaves,
            ],
            Self::Members => &[
                Phase::BetweenWaves,
                Phase::BetweenWaves,
                Phase::SuperblockOut,
                Phase::FlushOut,
                Phase::WriteOut,
                Phase::Answered,
            ],
        }
    }
}

/// The load: mostly small writes that overlap.
fn aimed_load(theme: Theme, random: &mut Random) -> ScenarioLoad {
    let load = draw_load(random);
    let mix = *random.pick(&[[10, 80, 4, 0, 0], [20, 60, 10, 3, 3], [5, 90, 1, 0, 0]]);
    ScenarioLoad {
        // Flushed data must survive while a member fails.
        mix: if theme == Theme::Members { [5, 60, 35, 0, 0] } else { mix },
        len_max: *random.pick(&[512, 4 << 10, 16 << 10]),
        span: *random.pick(&[32 << 10, 96 << 10, u64::MAX]),
        ..load
    }
}

fn plays(theme: Theme, random: &mut Random) -> Vec<ScenarioStep> {
    let mut actions = Vec::new();
    if random.chance(2, 3) {
        // The first sync has ended.
        actions.push(Action::Rest);
    }
    for _ in 0..random.between(PLAYS.0, PLAYS.1) {
        match (theme, random.below(12)) {
            (Theme::Filling, 0..=4) => play_filling(theme, random, &mut actions),
            (Theme::Filling, 5..=7) => play_replacement(theme, random, &mut actions),
            (Theme::Members, 0..=1 | 4..=5) | (Theme::Bitmap | Theme::PartialLog, 4..=5) | (_, 6..=7) => {
                play_member(random, &mut actions)
            }
            (Theme::Bitmap | Theme::PartialLog | Theme::Members, 2..=3) => play_failing(random, &mut actions),
            (_, 8) => play_ahead(random, &mut actions),
            (_, 9) => play_filling(theme, random, &mut actions),
            (Theme::Journal | Theme::MirrorJournal, 10..=11) => play_device(random, &mut actions),
            _ => play_cut(theme, random, &mut actions),
        }
        match random.below(12) {
            0..=1 => actions.push(Action::Rest),
            2 => actions.push(Action::Look),
            3 => actions.push(Action::Flush),
            4 => actions.push(Action::Policy),
            5 => actions.push(Action::Late),
            6..=7 => actions.push(Action::Add),
            8 => actions.push(Action::Readd),
            _ => {}
        }
    }
    actions.into_iter().map(|action| ScenarioStep { seed: random.bits(), action }).collect()
}

fn again(random: &mut Random) -> Option<u64> {
    random.chance(1, 4).then(|| random.below(40))
}

/// End the controller now, and in some runs the next one soon after.
fn ends(random: &mut Random, actions: &mut Vec<Action>) {
    if random.chance(1, 2) {
        actions.push(Action::Happen(random.between(1, 3)));
    }
    let end = *random.pick(&[
        ControllerEnd::Cut,
        ControllerEnd::Cut,
        ControllerEnd::Cut,
        ControllerEnd::CutInPart,
        ControllerEnd::Kill,
    ]);
    actions.push(Action::End(end, again(random)));
    if random.chance(1, 3) {
        actions.push(Action::Happen(random.between(1, 60)));
        actions.push(Action::End(ControllerEnd::Cut, again(random)));
    }
}

/// Hosts write. The power is cut at the aimed moment.
fn play_cut(theme: Theme, random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Ask(random.between(1, 60)));
    actions.push(Action::Until(*random.pick(theme.moments()), random.chance(3, 4)));
    ends(random, actions);
}

/// A member fails. The power is cut soon after; the member returns with the power.
fn play_member(random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Ask(random.between(1, 40)));
    actions.push(Action::Lose(*random.pick(&Loss::ALL)));
    let moments = [Phase::Failing, Phase::Answered, Phase::Answered, Phase::SuperblockOut, Phase::BetweenWaves];
    actions.push(Action::Until(*random.pick(&moments), true));
    match random.below(3) {
        0 => actions.push(Action::Until(Phase::Answered, true)),
        1 => actions.push(Action::Happen(random.between(1, 6))),
        _ => {}
    }
    actions.push(Action::CutAndBack(again(random)));
}

/// Hosts write to new places while the failure of a member is being recorded on the others, in some runs late because a
/// drive is late. The power is cut; the member returns with the power.
fn play_failing(random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Rest);
    for _ in 0..random.below(3) {
        actions.push(Action::Late);
    }
    actions.push(Action::Ask(random.between(1, 4)));
    actions.push(Action::Lose(*random.pick(&[Loss::Pulled, Loss::ReadOnly])));
    actions.push(Action::Until(Phase::Failing, true));
    if random.chance(1, 2) {
        actions.push(Action::Ask(random.between(1, 16)));
    }
    actions.push(Action::Happen(random.between(1, 16)));
    actions.push(Action::CutAndBack(again(random)));
}

/// The power is cut between two waves of superblocks. A member that has the newer superblock is lost.
fn play_ahead(random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Ask(random.between(1, 30)));
    actions.push(Action::Until(Phase::BetweenWaves, true));
    actions.push(Action::CutAndLose(again(random)));
    actions.push(Action::Ask(random.between(1, 30)));
    match random.chance(1, 2) {
        true => actions.push(Action::Until(Phase::Answered, true)),
        false => actions.push(Action::Flush),
    }
    actions.push(Action::CutAndBack(again(random)));
}

/// A slot is filled. The power is cut at a checkpoint or at the end, or all data is read then.
fn play_filling(theme: Theme, random: &mut Random, actions: &mut Vec<Action>) {
    match random.below(4) {
        0 => actions.push(Action::End(ControllerEnd::Cut, None)),
        _ => {
            // A clean array can lose its power at any time of a rebuild.
            if random.chance(2, 3) {
                actions.push(Action::Rest);
            }
            actions.push(Action::Lose(Loss::Failed));
            actions.push(Action::Happen(random.between(20, 60)));
            actions.push(*random.pick(&[Action::Add, Action::Add, Action::Readd]));
        }
    }
    fills(theme, random, actions);
}

/// A member is replaced.
fn play_replacement(theme: Theme, random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Rest);
    actions.push(Action::Replace);
    fills(theme, random, actions);
}

fn fills(theme: Theme, random: &mut Random, actions: &mut Vec<Action>) {
    let moment = match theme {
        Theme::Filling => *random.pick(theme.moments()),
        _ => *random.pick(&[Phase::Checkpointed, Phase::TaskEnded, Phase::FillOut]),
    };
    actions.push(Action::Until(moment, random.chance(1, 3)));
    if random.chance(1, 3) {
        actions.push(Action::Look);
    } else {
        ends(random, actions);
    }
}

/// Devices of the journal fail. The power is cut soon after, and the devices return.
fn play_device(random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Ask(random.between(1, 60)));
    for _ in 0..random.between(1, 2) {
        actions.push(Action::JournalLose(*random.pick(&[Loss::Pulled, Loss::ReadOnly, Loss::FlushFails])));
    }
    if random.chance(1, 2) {
        actions.push(Action::Until(Phase::DestageWithoutJournal, true));
        actions.push(Action::Happen(random.below(6)));
        actions.push(Action::CutAndBack(again(random)));
        return;
    }
    let moments = [Phase::WriteOut, Phase::DestageOut, Phase::SessionMoves, Phase::BetweenWaves, Phase::Answered];
    actions.push(Action::Until(*random.pick(&moments), true));
    if random.chance(1, 2) {
        actions.push(Action::CutAndBack(again(random)));
    } else {
        ends(random, actions);
        actions.push(Action::JournalReturn);
    }
}
