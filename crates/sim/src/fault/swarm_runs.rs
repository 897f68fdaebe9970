//! Swarm runs: each seed switches a random half of the actions off and raises the rest, so that rare pairs of actions
//! meet. Every drive has its own kind, constants of the engine are small, and the data may begin beyond 2^32 sectors.
//!
//! One run in three aims at a pair of a state and an action: all pairs have equal weight, so pairs that other runs meet
//! least are met as often as the others.
//!
//! This module has its own random numbers, so the runs of other seeds do not change.

use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_format::MinorVersion;
use openraid_units::{Bytes, Nanos, Sectors};

use super::phase::Phase;
use super::rare_actions::add_rare_actions;
use super::scenario::{Action, ControllerEnd, Extras, Mode, Scenario, ScenarioStep};
use crate::random::Random;
use crate::rig::{Loss, BEFORE_DATA};

/// The source of the random draws of a swarm run.
const SWARM: u64 = 211;
/// Number of plays of a run.
const PLAYS: (u64, u64) = (4, 20);
/// The first address that does not fit into 32 bits.
const BEYOND_32_BITS: Sectors = Sectors(1 << 32);
/// A mirror of this size has several regions, and an end that is in the middle of one.
const SEVERAL_REGIONS: Sectors = Sectors::kib(3 * 1024 + 64);

/// Members of this size have a bitmap of two pages, with the smallest region.
const TWO_PAGES: Sectors = Sectors::mib(150);
/// The smallest region of a bit, bytes.
const REGION_MIN: u32 = 4096;

/// Makes an action from random draws.
type Make = fn(&mut Random) -> Action;

fn again(random: &mut Random) -> Option<u64> {
    random.chance(1, 4).then(|| random.below(40))
}

fn loss(random: &mut Random) -> Loss {
    *random.pick(&Loss::ALL)
}

/// Actions of all runs.
const PLAIN: &[Make] = &[
    |random| Action::End(ControllerEnd::Cut, again(random)),
    |random| Action::End(ControllerEnd::CutInPart, again(random)),
    |random| Action::End(ControllerEnd::Kill, again(random)),
    |_| Action::End(ControllerEnd::Stop, None),
    |random| Action::CutAndLose(again(random)),
    |random| Action::CutAndBack(again(random)),
    |random| Action::Lose(loss(random)),
    |random| Action::Lose(loss(random)),
    |_| Action::Vanish,
    |_| Action::Return,
    |_| Action::Readd,
    |_| Action::Add,
    |_| Action::Replace,
    |_| Action::Scrub { repair: false },
    |_| Action::Scrub { repair: true },
    |random| Action::Latent(random.between(1, 6)),
    |_| Action::Late,
    |random| Action::Silence(Nanos::from_millis(random.between(1, 40_000))),
    |random| Action::Patrol(random.between(1, 4)),
    |_| Action::Flush,
    |_| Action::Rest,
    |random| Action::Wait(Nanos::from_millis(random.between(1, 4_000))),
    |_| Action::Policy,
    |_| Action::Look,
    |_| Action::Refuse,
    |_| Action::RefuseDiscards,
    |random| Action::Reconnect(Nanos::from_millis(random.between(1, 15_000))),
    |_| Action::Pause,
    |_| Action::Resume,
    |_| Action::StopScrub,
    |_| Action::Rename,
    |_| Action::Consistency,
    |random| Action::StartWithout(random.bits()),
    |random| Action::CheckDegraded(random.between(1, 3)),
    |random| Action::Until(*random.pick(Phase::steady()), random.chance(3, 4)),
];

/// Actions of runs with a journal.
const JOURNAL: &[Make] = &[
    |random| Action::JournalLose(*random.pick(&[Loss::Pulled, Loss::ReadOnly, Loss::Hanging, Loss::FlushFails])),
    |_| Action::JournalReturn,
    |_| Action::JournalJoin,
    |_| Action::JournalJoin,
    |_| Action::JournalAgain,
    |random| Action::JournalHurt { silent: random.chance(1, 2) },
];

/// Actions of unbounded runs.
const UNBOUNDED: &[Make] = &[
    |random| Action::Dead(random.between(1, 4)),
    |_| Action::Flip,
    |_| Action::LostWrite,
    |_| Action::Misdirect,
    |_| Action::FlipSuperblock,
];

/// A state that a run prepares before an action: a task that runs, or a member that is not in sync.
const PREPARED: &[&[Action]] = &[
    // A rebuild: a member that is being filled.
    &[Action::Rest, Action::Lose(Loss::Failed), Action::Rest, Action::Add, Action::Until(Phase::FillOut, true)],
    // The same for a member that returns.
    &[Action::Rest, Action::Lose(Loss::Pulled), Action::Ask(8), Action::Rest, Action::Readd, Action::Happen(6)],
    // A replacement.
    &[Action::Rest, Action::Replace, Action::Until(Phase::FillOut, true)],
    // A resync.
    &[Action::Ask(12), Action::End(ControllerEnd::Cut, None), Action::Until(Phase::TaskRuns, true)],
    // A check, and a repair.
    &[Action::Rest, Action::Scrub { repair: false }, Action::Happen(4)],
    &[Action::Rest, Action::Scrub { repair: true }, Action::Happen(4)],
    // A task that is held.
    &[Action::Rest, Action::Scrub { repair: false }, Action::Happen(2), Action::Pause, Action::Happen(8)],
    &[Action::Rest, Action::Lose(Loss::Failed), Action::Rest, Action::Pause, Action::Add, Action::Happen(40)],
    // A member that has failed, and one whose failure is being recorded.
    &[Action::Rest, Action::Lose(Loss::Failed), Action::Rest],
    &[Action::Rest, Action::Ask(4), Action::Lose(Loss::Pulled), Action::Until(Phase::Failing, true)],
    // A member that is missing.
    &[Action::Rest, Action::StartWithout(u64::MAX), Action::Rest],
];

/// The actions that a seed has not switched off, with their weights.
#[derive(Debug)]
struct Menu(Vec<(Make, u64)>);

impl Menu {
    fn draw(random: &mut Random, mode: Mode, has_journal: bool) -> Self {
        let all = PLAIN.iter().chain(JOURNAL.iter().filter(|_| has_journal));
        let all = all.chain(UNBOUNDED.iter().filter(|_| mode == Mode::Unbounded));
        let mut menu: Vec<(Make, u64)> = Vec::new();
        for make in all {
            let (stays, weight) = (random.chance(1, 2), *random.pick(&[1, 2, 4]));
            if stays {
                menu.push((*make, weight));
            }
        }
        // Every run has power cuts.
        menu.push((PLAIN[0], 4));
        Self(menu)
    }

    fn action(&self, random: &mut Random) -> Action {
        let mut at = random.below(self.0.iter().map(|(_, weight)| weight).sum());
        for (make, weight) in &self.0 {
            match at.checked_sub(*weight) {
                Some(left) => at = left,
                None => return make(random),
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

impl Scenario {
    /// The swarm run of a seed.
    #[must_use]
    pub fn swarm(seed: u64) -> Self {
        let mut random = Random::derived(seed, SWARM);
        let random = &mut random;
        let mut run = if random.chance(1, 2) { Self::draw(seed) } else { Self::aimed(seed) };
        run.extras = draw_extras(&run, random);
        if random.chance(3, 4) {
            shrink_constants(&mut run.limits, random);
        }
        let mirror = matches!(run.shape.level, Level::Raid1 | Level::Raid10);
        if mirror && run.spans == 1 && !run.extras.beside && random.chance(1, 8) {
            run.shape.data = SEVERAL_REGIONS;
            run.load.span = u64::MAX;
        }
        let may_be_large = run.bitmap && run.spans == 1 && run.shape.members <= 4;
        if may_be_large && !run.extras.far.is_zero() && !run.extras.beside && random.chance(1, 3) {
            (run.shape.data, run.bitmap_chunk, run.load.span) = (TWO_PAGES, Some(REGION_MIN), u64::MAX);
            run.limits.background_unit_max = Limits::small().background_unit_max;
        }
        if random.chance(1, 3) {
            // Trims of whole stripes, which other loads rarely make.
            (run.load.mix, run.load.len_max, run.load.align) = ([10, 50, 2, 30, 8], 256 << 10, 4096);
        }
        let menu = Menu::draw(random, run.mode, run.journal.is_some());
        let mut actions = Vec::new();
        if random.chance(1, 2) {
            actions.push(Action::Rest);
        }
        let aims = random.chance(1, 3);
        for _ in 0..random.between(PLAYS.0, PLAYS.1) {
            if aims && random.chance(1, 3) {
                aim_at_a_pair(&run, random, &mut actions);
                continue;
            }
            if run.journal.is_some_and(|journal| journal.mirrors > 1) && random.chance(1, 8) {
                play_join(random, &mut actions);
                continue;
            }
            // Some actions follow each other without requests in between.
            if random.chance(3, 4) {
                actions.push(Action::Ask(random.between(1, 80)));
            }
            if random.chance(1, 2) {
                actions.push(Action::Happen(random.between(1, 60)));
            }
            actions.push(menu.action(random));
        }
        run.steps = actions.into_iter().map(|action| ScenarioStep { seed: random.bits(), action }).collect();
        add_rare_actions(&mut run);
        run
    }
}

/// A state, and an action in it: each pair is as likely as every other.
fn aim_at_a_pair(run: &Scenario, random: &mut Random, actions: &mut Vec<Action>) {
    actions.extend(*random.pick(PREPARED));
    let makes = PLAIN.iter().chain(JOURNAL.iter().filter(|_| run.journal.is_some()));
    let makes: Vec<&Make> = makes.chain(UNBOUNDED.iter().filter(|_| run.mode == Mode::Unbounded)).collect();
    let make = **random.pick(&makes);
    actions.push(make(random));
    actions.push(Action::Ask(random.between(1, 30)));
    if random.chance(1, 2) {
        actions.push(Action::End(
            *random.pick(&[ControllerEnd::Cut, ControllerEnd::CutInPart, ControllerEnd::Kill]),
            again(random),
        ));
    }
}

/// A device of the journal is lost and joins again. Soon after, the other one is lost, or the power.
fn play_join(random: &mut Random, actions: &mut Vec<Action>) {
    actions.push(Action::Ask(random.between(1, 30)));
    actions.push(Action::JournalLose(*random.pick(&[Loss::Pulled, Loss::ReadOnly])));
    actions.push(Action::Ask(random.between(4, 60)));
    actions.push(Action::JournalJoin);
    if random.chance(1, 2) {
        actions.push(Action::Ask(random.between(1, 20)));
    }
    actions.push(Action::Happen(random.between(1, 80)));
    if random.chance(2, 3) {
        actions.push(Action::JournalLose(*random.pick(&[Loss::Pulled, Loss::ReadOnly])));
        actions.push(Action::Happen(random.below(8)));
    }
    actions.push(Action::End(
        *random.pick(&[ControllerEnd::Cut, ControllerEnd::CutInPart, ControllerEnd::Kill]),
        again(random),
    ));
}

fn draw_extras(run: &Scenario, random: &mut Random) -> Extras {
    let is_raw = run.shape.is_passthrough();
    // With metadata at the end, the data begins with the drive.
    let far = random.chance(1, 4) && !is_raw && run.metadata != MinorVersion::V1_0;
    let before = BEFORE_DATA + Sectors(random.between(1, 24) * 8);
    Extras {
        mixed: random.chance(1, 2),
        far: if far { BEYOND_32_BITS - before } else { Sectors::ZERO },
        beside: random.chance(1, 4) && run.mode == Mode::Bounded && run.spans == 1 && !is_raw,
    }
}

/// Constants of the engine that are larger than a small array.
fn shrink_constants(limits: &mut Limits, random: &mut Random) {
    limits.background_unit_max = *random.pick(&[4, 4, 8, 16, 64].map(Sectors::kib));
    limits.background_window_max = *random.pick(&[1, 2, 4, 8, 64]);
    limits.background_skips_max = *random.pick(&[1, 3, 64]);
    limits.range_piece_bytes_max = *random.pick(&[4, 16, 64].map(Bytes::kib));
    limits.destage_beside_reads = *random.pick(&[1, 2, 8]);
    limits.queue_age_max = Nanos::from_millis(*random.pick(&[1, 100, 2000]));
    limits.media_errors_max = *random.pick(&[1, 3, 20]);
    (limits.dirty_low_percent, limits.dirty_high_percent, limits.dirty_max_percent) =
        *random.pick(&[(40, 60, 80), (5, 10, 90), (90, 95, 95), (0, 0, 50)]);
    limits.journal_entries_max = *random.pick(&[64, 1024, 65_536]);
    limits.command_timeout = Nanos::from_secs(*random.pick(&[25, 30]));
    if random.chance(1, 2) {
        limits.checkpoint_interval = Nanos::from_millis(*random.pick(&[1, 5, 20]));
    }
}
