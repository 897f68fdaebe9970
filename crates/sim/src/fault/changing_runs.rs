//! Runs that change the shape of an array: it gets more members, another chunk or another layout, while hosts write and
//! every fault happens.
//!
//! Half of them aim at the phases of a change. The others are random, aimed and swarm runs of other arrays with changes
//! among their actions. This module has its own random numbers, so the runs of other kinds do not change.

use std::fmt;

use openraid_core::admin::WriteCache;
use openraid_core::geometry::Level;
use openraid_format::MinorVersion;
use openraid_units::{Bytes, Nanos, Sectors};

use super::enum_words::worded;
use super::phase::Phase;
use super::scenario::{draw_shape, Action, ControllerEnd, Extras, Mode, Scenario, ScenarioStep};
use crate::random::Random;
use crate::rig::Loss;
use crate::test_arrays::ArrayShape;

/// The source of the random draws of such a run.
const CHANGING: u64 = 241;
/// Room before the data of each member for the movement of its start, in KiB. If it is used up, changes go backwards into
/// the room after the data.
const HEADROOM: [u64; 5] = [128, 512, 512, 512, 1024];
/// Layouts of RAID 10 whose data can move.
const MIRRORS: [u32; 4] = [0x102, 0x1_0201, 0x103, 0x1_0301];
/// The source of the random draws of cancels.
const CANCELLING: u64 = 242;
/// In one run of this many, changes are cancelled.
const CANCELLING_OF: u64 = 5;
/// The first wishes keep the level.
const MOVES: usize = 6;
/// The source of the random draws of changes of level, and the runs of this many of which one has them.
const LEVELS: u64 = 243;
const LEVELS_OF: u64 = 7;
/// Number of plays of an aimed run.
const PLAYS: (u64, u64) = (3, 9);

worded! {
    /// What changes in the shape of an array.
    ShapeWish
    /// A member more.
    OneMore = "one member more";
    /// Two members more.
    TwoMore = "two members more";
    /// A chunk of another size.
    Chunk = "another chunk";
    /// The order of data and parity, or the places of copies.
    Layout = "another layout";
    /// Both at once.
    ChunkAndLayout = "another chunk and layout";
    /// Both at once.
    OneMoreAndChunk = "one member more and another chunk";
    /// The next step from RAID 4 to 5, from 5 to 6 or 4, or from 6 to 5.
    Level = "another level";
}

impl ShapeWish {
    /// Number of new members.
    #[must_use]
    pub const fn members(self) -> u16 {
        match self {
            Self::OneMore | Self::OneMoreAndChunk => 1,
            Self::TwoMore => 2,
            Self::Chunk | Self::Layout | Self::ChunkAndLayout | Self::Level => 0,
        }
    }

    /// Whether the chunk changes.
    #[must_use]
    pub const fn has_chunk(self) -> bool {
        matches!(self, Self::Chunk | Self::ChunkAndLayout | Self::OneMoreAndChunk)
    }

    /// Whether the layout changes.
    #[must_use]
    pub const fn has_layout(self) -> bool {
        matches!(self, Self::Layout | Self::ChunkAndLayout)
    }
}

impl Scenario {
    /// The run of a seed that changes the shape of its array.
    #[must_use]
    pub fn changing(seed: u64) -> Self {
        let mut random = Random::derived(seed, CHANGING);
        let random = &mut random;
        let is_aimed = random.chance(1, 2);
        let mut run = match random.below(3) {
            _ if is_aimed => Self::aimed(seed),
            0 => Self::aimed(seed),
            1 => Self::draw(seed),
            _ => Self::swarm(seed),
        };
        // A spare that had been given to another array has two superblocks, and the judge reads the first one.
        run.steps.retain(|step| step.action != Action::ShareSpare);
        run.shape = draw_changeable(random);
        (run.spans, run.ppl, run.spares) = (1, false, u16::try_from(random.below(3)).expect("few"));
        if run.metadata == MinorVersion::V1_0 {
            run.metadata = MinorVersion::V1_1;
        }
        if run.extras.far.is_zero() {
            run.extras.far = Sectors::kib(*random.pick(&HEADROOM));
        }
        run.policy.rebuild_rate = *random.pick(&[0, 0, 1, 20].map(Sectors::mib));
        // Larger chunks move through more work frames.
        let more = Bytes::mib(run.shape.chunk.bytes().get() / Bytes::kib(16).get());
        (run.limits.pool, run.limits.work) = (run.limits.pool + more, run.limits.work + more);
        if is_aimed {
            // With a cache or a journal, the begin waits.
            run.bitmap &= random.chance(1, 2);
            if random.chance(2, 3) {
                (run.policy.write_cache, run.journal) = (WriteCache::Through, None);
            }
            run.mode = if random.chance(5, 6) { Mode::Bounded } else { Mode::Unbounded };
            run.extras = Extras { beside: false, ..run.extras };
            run.steps = plays(random, run.policy.write_cache != WriteCache::Through);
        } else {
            let changes = random.between(1, 2);
            (0..changes).for_each(|_| add_change(&mut run.steps, random));
        }
        if seed % LEVELS_OF == 2 && run.shape.level != Level::Raid10 {
            change_levels(&mut run.steps, &mut Random::derived(seed, LEVELS));
        }
        if seed % CANCELLING_OF == 2 {
            add_cancels(&mut run.steps, &mut Random::derived(seed, CANCELLING));
        }
        run
    }
}

fn draw_changeable(random: &mut Random) -> ArrayShape {
    let shape = loop {
        let (shape, spans) = draw_shape(random);
        let fits = match shape.level {
            Level::Raid4 | Level::Raid5 | Level::Raid6 => true,
            Level::Raid10 => MIRRORS.contains(&shape.layout),
            _ => false,
        };
        if spans == 1 && fits {
            break shape;
        }
    };
    // Small chunks: a small array has many positions.
    let chunk = *random.pick(&[4, 4, 8, 16, 64].map(Sectors::kib));
    ArrayShape { chunk, data: chunk * random.between(6, 60), unequal: false, ..shape }
}

fn wish(random: &mut Random) -> ShapeWish {
    *random.pick(&ShapeWish::ALL[..MOVES])
}

/// Most changes are changes of level.
fn change_levels(steps: &mut [ScenarioStep], random: &mut Random) {
    for step in steps.iter_mut().filter(|step| matches!(step.action, Action::Reshape(_))) {
        if random.chance(3, 4) {
            step.action = Action::Reshape(ShapeWish::Level);
        }
    }
}

fn again(random: &mut Random) -> Option<u64> {
    random.chance(1, 4).then(|| random.below(40))
}

fn end(random: &mut Random) -> ControllerEnd {
    *random.pick(&[
        ControllerEnd::Cut,
        ControllerEnd::Cut,
        ControllerEnd::Cut,
        ControllerEnd::CutInPart,
        ControllerEnd::Kill,
    ])
}

/// Phases in which a change is met. Short phases are drawn more often.
fn moment(random: &mut Random) -> Phase {
    let other = [Phase::BetweenWaves, Phase::Answered, Phase::WriteOut, Phase::SuperblockOut];
    match random.chance(1, 6) {
        true => *random.pick(&other),
        false => *random.pick(Phase::of_changes()),
    }
}

/// Insert a change and a moment in it at a random place.
fn add_change(steps: &mut Vec<ScenarioStep>, random: &mut Random) {
    let at = random.index(steps.len() + 1);
    let actions = [Action::Rest, Action::Reshape(wish(random)), Action::Until(moment(random), true)];
    let actions = actions.map(|action| ScenarioStep { seed: random.bits(), action });
    steps.splice(at..at, actions);
}

/// After the begin of most changes, a while later, the change turns around.
fn add_cancels(steps: &mut Vec<ScenarioStep>, random: &mut Random) {
    let begins: Vec<usize> =
        (0..steps.len()).filter(|at| matches!(steps[*at].action, Action::Reshape(_))).rev().collect();
    for begin in begins {
        if random.chance(1, 4) {
            continue;
        }
        let mut actions = vec![Action::Happen(random.between(1, 200)), Action::CancelReshape];
        match random.below(4) {
            0 => {}
            1 => actions.push(Action::Until(moment(random), true)),
            _ => actions.extend([Action::Happen(random.between(1, 60)), Action::End(end(random), again(random))]),
        }
        if random.chance(1, 3) {
            actions.push(Action::CancelReshape);
        }
        let actions = actions.into_iter().map(|action| ScenarioStep { seed: random.bits(), action });
        steps.splice(begin + 1..begin + 1, actions.collect::<Vec<_>>());
    }
}

/// `drains`: changes wait for dirty data.
fn plays(random: &mut Random, drains: bool) -> Vec<ScenarioStep> {
    let mut actions = vec![Action::Ask(random.between(1, 80)), Action::Rest];
    for _ in 0..random.between(PLAYS.0, PLAYS.1) {
        let waits = drains && random.chance(1, 3);
        if waits {
            actions.push(Action::Ask(random.between(10, 60)));
        }
        // It is passed over if a change is under way.
        actions.push(Action::Reshape(wish(random)));
        if !waits && random.chance(2, 3) {
            actions.push(Action::Ask(random.between(1, 20)));
        }
        let moment = if waits { Phase::ShapeDrains } else { moment(random) };
        actions.push(Action::Until(moment, random.chance(4, 5)));
        if random.chance(1, 2) {
            actions.push(Action::Happen(random.between(1, 3)));
        }
        play_fault(random, &mut actions);
        match random.below(8) {
            0 => actions.push(Action::Rest),
            1 => actions.push(Action::Look),
            2 => actions.push(Action::Add),
            3 => actions.push(Action::Happen(random.between(1, 60))),
            4 => actions.push(Action::Flush),
            _ => {}
        }
    }
    actions.into_iter().map(|action| ScenarioStep { seed: random.bits(), action }).collect()
}

/// Something happens in the middle of a change.
fn play_fault(random: &mut Random, actions: &mut Vec<Action>) {
    let action = match random.below(20) {
        0..=9 => Action::End(end(random), again(random)),
        10 => Action::CutAndBack(again(random)),
        11 => Action::Lose(*random.pick(&Loss::ALL)),
        12 => Action::End(ControllerEnd::Stop, again(random)),
        13 => Action::Latent(random.between(1, 4)),
        14 => Action::Silence(Nanos::from_millis(random.between(1, 35_000))),
        15 => Action::Reconnect(Nanos::from_millis(random.between(1, 15_000))),
        16 => Action::Refuse,
        17 => Action::Look,
        _ => Action::Pause,
    };
    actions.push(action);
    if action == Action::Pause {
        actions.extend([Action::Ask(random.between(1, 30)), Action::Resume]);
    }
    if matches!(action, Action::Lose(_)) {
        if random.chance(1, 3) {
            // Without that member, a block may be lost.
            actions.push(Action::Latent(random.between(1, 4)));
        }
        actions.extend([Action::Ask(random.between(1, 20)), Action::Until(moment(random), true)]);
        actions.push(Action::CutAndBack(again(random)));
    }
}
