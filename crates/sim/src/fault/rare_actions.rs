//! Actions that only some swarm runs have. Their draws have a generator of their own, so all other runs stay as they are.

use openraid_core::admin::WriteCache;
use openraid_core::limits::Limits;
use openraid_units::Nanos;

use super::scenario::{Action, Mode, Scenario, ScenarioStep};
use crate::random::Random;
use crate::rig::Loss;

/// The source of these draws.
const RARE: u64 = 227;
/// Requests while members are full.
const ASKED_WHILE_FULL: (u64, u64) = (10, 60);
/// Seconds for which storage keeps writes: less than the time limit of a command, and more.
const ROOM_WAITS: [u64; 4] = [1, 20, 40, 60];
/// In bounded runs members become full among the first steps.
const EARLY: usize = 6;

/// Add rare actions to a swarm run, or to none.
pub(super) fn add_rare_actions(run: &mut Scenario) {
    let mut random = Random::derived(run.seed, RARE);
    let random = &mut random;
    if random.chance(1, 5) {
        if run.mode == Mode::Bounded && random.chance(2, 3) {
            // A bounded run fills members only if nothing is in a cache or in a journal.
            (run.journal, run.policy.write_cache) = (None, WriteCache::Through);
        }
        for _ in 0..random.between(1, 3) {
            add_lack_of_room(run, random);
        }
    }
    if random.chance(1, 5) {
        run.limits.position_interval =
            *random.pick(&[Nanos::from_millis(1), Nanos::from_millis(20), Limits::small().position_interval]);
        for _ in 0..random.between(1, 3) {
            let at = insert(&mut run.steps, 0, Action::KeepImages, random);
            let later = *random.pick(&[Action::OlderMember, Action::OlderJournal]);
            insert(&mut run.steps, at + 1, later, random);
        }
    }
    if run.journal.is_some() && random.chance(1, 8) {
        insert(&mut run.steps, 0, Action::OlderVersion, random);
    }
    if random.chance(1, 6) {
        add_waits_for_room(run, random);
    }
    if run.journal.is_none() && random.chance(1, 6) {
        insert(&mut run.steps, 0, Action::StartReading, random);
    }
    if run.mode == Mode::Unbounded && random.chance(1, 6) {
        insert(&mut run.steps, 0, Action::HalfCopied, random);
    }
    if run.extras.beside && random.chance(1, 2) {
        insert(&mut run.steps, 0, Action::ShareSpare, random);
    }
}

/// The storage of some drives keeps writes for a time when it is full. In unbounded runs another drive becomes silent
/// meanwhile.
fn add_waits_for_room(run: &mut Scenario, random: &mut Random) {
    run.drive.room_wait = Nanos::from_secs(*random.pick(&ROOM_WAITS));
    run.drive.flush_waits = random.chance(1, 2);
    if run.mode == Mode::Bounded {
        (run.journal, run.policy.write_cache) = (None, WriteCache::Through);
        return add_lack_of_room(run, random);
    }
    let actions = [
        Action::Fill(0),
        Action::Ask(random.between(4, 40)),
        Action::Wait(Nanos::from_secs(random.between(20, 35))),
        Action::Lose(Loss::Hanging),
        Action::Ask(random.between(1, 20)),
        Action::Wait(Nanos::from_secs(random.between(30, 60))),
        Action::MakeRoom,
    ];
    let at = random.index(run.steps.len() + 1);
    let steps: Vec<ScenarioStep> =
        actions.into_iter().map(|action| ScenarioStep { seed: random.bits(), action }).collect();
    run.steps.splice(at..at, steps);
}

/// Members become full. In most unbounded runs there is room again later.
fn add_lack_of_room(run: &mut Scenario, random: &mut Random) {
    let fill = Action::Fill(random.between(ASKED_WHILE_FULL.0, ASKED_WHILE_FULL.1));
    if run.mode == Mode::Bounded {
        // Later in a run, few sets are whole.
        let at = random.index(EARLY.min(run.steps.len() + 1));
        run.steps.insert(at, ScenarioStep { seed: random.bits(), action: fill });
        return;
    }
    let at = insert(&mut run.steps, 0, fill, random);
    if random.chance(3, 4) {
        insert(&mut run.steps, at + 1, Action::MakeRoom, random);
    }
}

/// Insert an action at a random place from `first` on. Returns the place.
fn insert(steps: &mut Vec<ScenarioStep>, first: usize, action: Action, random: &mut Random) -> usize {
    let at = first + random.index(steps.len() - first + 1);
    steps.insert(at, ScenarioStep { seed: random.bits(), action });
    at
}
