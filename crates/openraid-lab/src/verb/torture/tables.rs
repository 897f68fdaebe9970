//! The results of many runs, as text tables and as a document.

use std::collections::BTreeSet;

use openraid_sim::fault::scenario::Action;
use openraid_sim::fault::verdict::{Ends, Kind, TallyLine};
use openraid_sim::fault::{Fault, Mode, Phase, RunTally};
use openraid_sim::number_words::count;
use serde::Serialize;

use super::{Ending, LostBody, Many};
use openraid::output::table::TextTable;

/// Maximum number of lost runs that are printed; the document has all of them.
const LOST_TOLD_MAX: usize = 20;
/// Policies by name, and the headings of their columns.
const POLICIES: [(&str, &str); 8] = [
    ("write-through", "THROUGH"),
    ("write-through, bitmap", "+BITMAP"),
    ("write-through, PPL", "+PPL"),
    ("volatile cache", "VOLATILE"),
    ("volatile cache, bitmap", "+BITMAP"),
    ("volatile cache, PPL", "+PPL"),
    ("journal", "JOURNAL"),
    ("journal, bitmap", "+BITMAP"),
];

/// The results of runs by mode, policy and level; in the larger table also by fault.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = TortureLine)]
struct LineBody {
    /// `bounded` (the faults stay within what the level survives) or `unbounded`.
    mode: String,
    /// The kind of fault; null in the smaller table.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// The place where writes were cached.
    policy: &'static str,
    /// Level of the runs' arrays.
    level: String,
    /// Number of runs that lost nothing.
    survived: u64,
    /// Number of runs that lost data which no engine could keep.
    not_promised: u64,
    /// Number of runs that lost data which the engine had to keep.
    lost: u64,
}

impl LineBody {
    fn new(mode: Mode, fault: Option<Fault>, policy: &'static str, level: &str, ends: &Ends) -> Self {
        Self {
            mode: mode.to_string(),
            fault: fault.map(|fault| fault.to_string()),
            policy,
            level: level.into(),
            survived: ends.survived,
            not_promised: ends.not_promised,
            lost: ends.lost,
        }
    }
}

/// Number of faults in a phase of the engine.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = FaultInPhase)]
struct PairBody {
    /// The kind of fault.
    fault: String,
    /// What the engine was doing when the fault came.
    phase: String,
    /// Number of times that the fault came in this phase.
    times: u64,
}

/// Number of faults during a background task.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = FaultInTask)]
struct TaskPairBody {
    /// The kind of fault.
    fault: String,
    /// The background task that ran when the fault came.
    task: &'static str,
    /// Number of times that the fault came during this task.
    times: u64,
}

/// Number of actions while a member was in a state.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = ActionInState)]
struct StatePairBody {
    /// The next action of the run.
    action: &'static str,
    /// The state of a member before it.
    state: &'static str,
    /// Number of times that this action came in this state.
    times: u64,
}

/// A reason why no engine could keep the data of some runs.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = NotPromised)]
struct ReasonBody {
    /// The reason in words.
    why: String,
    /// Number of runs with this reason.
    runs: u64,
}

/// The result of runs of the fault simulation.
#[derive(Serialize, utoipa::ToSchema)]
pub struct TortureBody {
    /// The first and the last seed.
    seeds: [u64; 2],
    /// Number of runs that have ended.
    runs: u64,
    /// Number of power cuts.
    power_cuts: u64,
    /// Number of kills of the server.
    kills: u64,
    /// Number of requests of hosts.
    host_requests: u64,
    /// Number of events that engines received.
    events: u64,
    /// Number of changes of settings.
    policy_switches: u64,
    /// Time that the runs took, in seconds of the wall clock.
    seconds: f64,
    /// Why the runs ended.
    ended_by: &'static str,
    /// Number of runs that were not judged.
    unjudged: usize,
    /// Number of runs that survived.
    survived: u64,
    /// Number of runs that lost data which no engine could keep.
    not_promised: u64,
    /// The bug that was planted.
    planted: Option<String>,
    /// The seed of the run that found the bug.
    found_by: Option<u64>,
    /// Reasons why no engine could keep the data.
    not_promised_because: Vec<ReasonBody>,
    /// Number of runs that lost data which the engine had to keep.
    lost: Vec<LostBody>,
    /// Runs by fault, policy and level.
    table: Vec<LineBody>,
    /// Runs by mode, policy and level.
    kinds: Vec<LineBody>,
    /// Faults by the phase of the engine.
    pairs: Vec<PairBody>,
    /// Faults by the background task that ran.
    task_pairs: Vec<TaskPairBody>,
    /// Actions by the states of members.
    state_pairs: Vec<StatePairBody>,
}

pub(super) fn body(many: &Many, first: u64) -> TortureBody {
    let tally = &many.tally;
    let line =
        |(line, ends): (&TallyLine, &Ends)| LineBody::new(line.mode, Some(line.fault), line.policy, &line.level, ends);
    let kind = |(kind, ends): (&Kind, &Ends)| LineBody::new(kind.mode, None, kind.policy, &kind.level, ends);
    let pair = |((fault, phase), times): (&(Fault, Phase), &u64)| PairBody {
        fault: fault.to_string(),
        phase: phase.to_string(),
        times: *times,
    };
    let task = |((fault, task), times): (&(Fault, &'static str), &u64)| TaskPairBody {
        fault: fault.to_string(),
        task,
        times: *times,
    };
    let state = |((state, action), times): (&(&'static str, &'static str), &u64)| StatePairBody {
        action,
        state,
        times: *times,
    };
    let mut lost = many.lost.clone();
    lost.sort_by_key(|lost| lost.seed);
    TortureBody {
        seeds: [first, many.last],
        runs: tally.runs,
        power_cuts: tally.cuts,
        kills: tally.kills,
        host_requests: tally.requests,
        events: tally.events,
        policy_switches: tally.switches,
        seconds: many.time.as_secs_f64(),
        ended_by: many.ending.word(),
        unjudged: many.unjudged,
        survived: tally.ends.survived,
        not_promised: tally.ends.not_promised,
        planted: many.bug.map(|bug| bug.name().into()),
        found_by: many.found.iter().min().copied(),
        not_promised_because: tally
            .excuses
            .iter()
            .map(|(why, runs)| ReasonBody { why: why.to_string(), runs: *runs })
            .collect(),
        lost,
        table: tally.lines.iter().map(line).collect(),
        kinds: tally.kinds.iter().map(kind).collect(),
        pairs: tally.pairs.iter().map(pair).collect(),
        task_pairs: tally.tasks.iter().map(task).collect(),
        state_pairs: tally.states.iter().map(state).collect(),
    }
}

pub(super) fn text(many: &Many, body: &TortureBody, full: bool) -> String {
    let tally = &many.tally;
    let mut lines = head(body);
    lines.push(String::new());
    if full {
        lines.push(cross(tally).trim_end().into());
    } else if tally.runs > 0 {
        lines.push(
            "One number: runs that survived. Three numbers: survived/not promised/lost. A run is counted in the row of each \
             fault that it had."
                .into(),
        );
        lines.push(
            "Columns: the policy at the start of a run; + is the column before it, with a bitmap or partial parity logs.".into(),
        );
        lines.push(String::new());
        lines.push(by_fault(tally).trim_end().into());
        lines.push(String::new());
        lines.push(by_level(tally).trim_end().into());
        lines.push(String::new());
        lines.push("runs with a loss in each phase of the engine; several phases may hold at the same time.".into());
        lines.push(String::new());
        lines.push(by_phase(tally).trim_end().into());
        lines.push(String::new());
        lines.push("faults during each background task.".into());
        lines.push(String::new());
        lines.push(by_task(tally).trim_end().into());
        lines.push(String::new());
        lines.push("actions while a member was in each state.".into());
        lines.push(String::new());
        lines.push(by_state(tally).trim_end().into());
    }
    lines.push(String::new());
    lines.push(format!("survived: {}, not promised: {}, lost: {}", body.survived, body.not_promised, tally.ends.lost));
    if !tally.excuses.is_empty() {
        let excuses: Vec<String> = tally.excuses.iter().map(|(why, count)| format!("{why}: {count}")).collect();
        lines.push(format!("not promised because of: {}", excuses.join(", ")));
    }
    lines.extend(ending(many));
    lines.extend(body.lost.iter().take(LOST_TOLD_MAX).map(LostBody::line));
    if body.lost.len() > LOST_TOLD_MAX {
        lines.push(format!("and {} more, all with --json", body.lost.len() - LOST_TOLD_MAX));
    }
    match (&body.planted, body.found_by) {
        (Some(bug), Some(seed)) => lines.push(format!("the planted bug '{bug}' is found by seed {seed}")),
        (Some(bug), None) => lines.push(format!("the planted bug '{bug}' is NOT found")),
        (None, _) => {}
    }
    let planted = body.planted.as_ref().map_or_else(String::new, |bug| format!(" --planted {bug}"));
    if let Some(seed) = body.found_by.or(body.lost.first().map(|lost| lost.seed)) {
        lines.push(format!("what happened: openraid-lab torture --replay {seed}{planted}"));
    }
    lines.join("\n")
}

fn head(body: &TortureBody) -> Vec<String> {
    let seconds = body.seconds.max(0.001);
    #[allow(clippy::cast_precision_loss)] // for reading only
    let rate = |count: u64| count as f64 / seconds;
    let runs = count(body.runs, "run", "runs");
    vec![
        format!("seeds {} to {}: {runs} in {:.0} s", body.seeds[0], body.seeds[1], body.seconds),
        format!(
            "{} ({:.1} a second), {}, {} ({:.0} a second), {}",
            count(body.power_cuts, "power cut", "power cuts"),
            rate(body.power_cuts),
            count(body.kills, "kill", "kills"),
            count(body.host_requests, "host request", "host requests"),
            rate(body.host_requests),
            count(body.policy_switches, "change of settings", "changes of settings")
        ),
    ]
}

/// The reason why the runs ended, if the end was not the requested one.
fn ending(many: &Many) -> Vec<String> {
    let unjudged = u64::try_from(many.unjudged).unwrap_or(u64::MAX);
    let mut lines = Vec::new();
    match many.ending {
        Ending::Interrupted => lines.push("interrupted: these are the results of the runs that had ended".into()),
        Ending::Losses => {
            lines.push(format!("ended early: no more runs are begun after {} that lost something", many.lost.len()));
        }
        Ending::Seeds | Ending::Time | Ending::Found => {}
    }
    if unjudged > 0 {
        lines.push(format!("not judged: {} that did not end", count(unjudged, "run", "runs")));
    }
    lines
}

/// `12`, or `12/3/0` if not all runs survived.
fn cell(ends: Ends) -> String {
    let Ends { survived, not_promised, lost } = ends;
    match (ends.runs(), not_promised, lost) {
        (0, ..) => "-".into(),
        (_, 0, 0) => survived.to_string(),
        _ => format!("{survived}/{not_promised}/{lost}"),
    }
}

/// A table with policies as columns.
struct ByPolicy {
    table: TextTable,
    policies: Vec<&'static str>,
}

impl ByPolicy {
    fn new(what: &'static str, tally: &RunTally) -> Self {
        let used = |policy: &str| tally.kinds.keys().any(|kind| kind.policy == policy);
        let (mut policies, mut heads) = (Vec::new(), vec![what]);
        for (place, (policy, head)) in POLICIES.into_iter().enumerate() {
            // A heading after a plus belongs to the heading before it that has no plus.
            let group = POLICIES[place..].iter().skip(1).take_while(|(_, head)| head.starts_with('+'));
            let leads = !head.starts_with('+') && group.into_iter().any(|(policy, _)| used(policy));
            if used(policy) || leads {
                policies.push(policy);
                heads.push(head);
            }
        }
        heads.push("ALL");
        Self { table: TextTable::new(&heads), policies }
    }

    fn row(&mut self, what: String, ends: impl Fn(&str) -> Ends) {
        let mut all = Ends::default();
        let mut cells = vec![what];
        for policy in &self.policies {
            let ends = ends(policy);
            all.add(ends);
            cells.push(cell(ends));
        }
        cells.push(cell(all));
        self.table.row(cells);
    }
}

fn sum<'a>(ends: impl Iterator<Item = &'a Ends>) -> Ends {
    let mut all = Ends::default();
    ends.for_each(|ends| all.add(*ends));
    all
}

fn of_kinds(tally: &RunTally, wanted: impl Fn(&Kind) -> bool) -> Ends {
    sum(tally.kinds.iter().filter(|(kind, _)| wanted(kind)).map(|(_, ends)| ends))
}

fn by_fault(tally: &RunTally) -> String {
    let mut table = ByPolicy::new("FAULT", tally);
    let faults: BTreeSet<Fault> = tally.lines.keys().map(|line| line.fault).collect();
    for fault in faults {
        let of = |policy: &str| {
            sum(tally
                .lines
                .iter()
                .filter(|(line, _)| line.fault == fault && line.policy == policy)
                .map(|(_, ends)| ends))
        };
        table.row(fault.to_string(), of);
    }
    for mode in [Mode::Bounded, Mode::Unbounded] {
        let name = format!("all {mode} runs, each once");
        table.row(name, |policy| of_kinds(tally, |kind| kind.policy == policy && kind.mode == mode));
    }
    table.row("all runs, each once".into(), |policy| of_kinds(tally, |kind| kind.policy == policy));
    table.table.text()
}

fn by_level(tally: &RunTally) -> String {
    let mut table = ByPolicy::new("LEVEL", tally);
    let levels: BTreeSet<&String> = tally.kinds.keys().map(|kind| &kind.level).collect();
    for level in levels {
        table.row(level.clone(), |policy| of_kinds(tally, |kind| kind.policy == policy && kind.level == *level));
    }
    table.row("all runs".into(), |policy| of_kinds(tally, |kind| kind.policy == policy));
    table.table.text()
}

/// Faults in the table of phases, and the headings of their columns. The last column has all other faults.
const ENDS: [(&str, &[Fault]); 5] = [
    ("CUT", &[Fault::Cut]),
    ("IN PART", &[Fault::CutInPart]),
    ("AND LOSS", &[Fault::CutAndLoss]),
    ("KILL", &[Fault::Kill]),
    ("MEMBER", &[Fault::Failed, Fault::Pulled, Fault::Vanished, Fault::ReadOnly, Fault::Hanging, Fault::FlushFailed]),
];

/// Phases by the fault that happened in them.
fn by_phase(tally: &RunTally) -> String {
    let mut heads = vec!["PHASE"];
    heads.extend(ENDS.iter().map(|(head, _)| *head));
    heads.push("OTHER");
    let mut table = TextTable::new(&heads);
    let named = |fault: Fault| ENDS.iter().any(|(_, faults)| faults.contains(&fault));
    for phase in Phase::ALL {
        let times = |wanted: &dyn Fn(Fault) -> bool| -> u64 {
            tally
                .pairs
                .iter()
                .filter(|((fault, other), _)| other == phase && wanted(*fault))
                .map(|(_, times)| times)
                .sum()
        };
        let mut cells = vec![phase.to_string()];
        cells.extend(ENDS.iter().map(|(_, faults)| times(&|fault| faults.contains(&fault)).to_string()));
        cells.push(times(&|fault| !named(fault)).to_string());
        table.row(cells);
    }
    table.text()
}

/// Faults by the background task that ran.
fn by_task(tally: &RunTally) -> String {
    let tasks: BTreeSet<&str> = tally.tasks.keys().map(|(_, task)| *task).collect();
    let mut table = TextTable::new(&["FAULT"].into_iter().chain(tasks.iter().copied()).collect::<Vec<_>>());
    for fault in Fault::ALL.iter().filter(|fault| **fault != Fault::None) {
        let times = |task: &&str| tally.tasks.get(&(*fault, *task)).copied().unwrap_or(0).to_string();
        table.row(std::iter::once(fault.to_string()).chain(tasks.iter().map(times)));
    }
    table.text()
}

/// Actions by the state of a member before them.
fn by_state(tally: &RunTally) -> String {
    let states: BTreeSet<&str> = tally.states.keys().map(|(state, _)| *state).collect();
    let mut table = TextTable::new(&["ACTION"].into_iter().chain(states.iter().copied()).collect::<Vec<_>>());
    let actions: BTreeSet<&str> = Action::all_words().collect();
    for action in actions {
        let times = |state: &&str| tally.states.get(&(*state, action)).copied().unwrap_or(0).to_string();
        table.row(std::iter::once(action.to_owned()).chain(states.iter().map(times)));
    }
    table.text()
}

/// Fault by policy by level, one line each.
fn cross(tally: &RunTally) -> String {
    let mut table = TextTable::new(&["RUNS", "FAULT", "POLICY", "LEVEL", "SURVIVED", "NOT PROMISED", "LOST"]);
    let counts = |ends: &Ends| [ends.survived, ends.not_promised, ends.lost].map(|count| count.to_string());
    for (line, ends) in &tally.lines {
        let words = [line.mode.to_string(), line.fault.to_string(), line.policy.into(), line.level.clone()];
        table.row(words.into_iter().chain(counts(ends)));
    }
    for (kind, ends) in &tally.kinds {
        let words = [kind.mode.to_string(), "any, each run once".into(), kind.policy.into(), kind.level.clone()];
        table.row(words.into_iter().chain(counts(ends)));
    }
    let words = ["all".into(), "any, each run once".into(), "any".into(), String::from("any")];
    table.row(words.into_iter().chain(counts(&tally.ends)));
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(survived: u64, not_promised: u64, lost: u64) -> Ends {
        Ends { survived, not_promised, lost }
    }

    fn tally() -> RunTally {
        let mut tally = RunTally::default();
        let mut run = |mode, fault, policy: &'static str, level: &str, ends: Ends| {
            let level = level.to_owned();
            tally.lines.insert(TallyLine { mode, fault, policy, level: level.clone() }, ends);
            tally.kinds.entry(Kind { mode, policy, level }).or_default().add(ends);
            tally.ends.add(ends);
            tally.runs += ends.runs();
        };
        run(Mode::Bounded, Fault::None, "write-through", "RAID 1", ends(2, 0, 0));
        run(Mode::Bounded, Fault::Cut, "journal, bitmap", "RAID 5", ends(7, 0, 1));
        run(Mode::Unbounded, Fault::Cut, "journal, bitmap", "RAID 5", ends(1, 2, 0));
        tally
    }

    #[test]
    fn every_run_is_in_the_last_row_and_those_without_a_fault_have_their_own() {
        let expected = "\
FAULT                         THROUGH  JOURNAL  +BITMAP  ALL
none                          2        -        -        2
power cut                     -        -        8/2/1    8/2/1
all bounded runs, each once   2        -        7/0/1    9/0/1
all unbounded runs, each once -        -        1/2/0    1/2/0
all runs, each once           2        -        8/2/1    10/2/1
";
        let squeeze = |text: &str| {
            let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            words.collect::<Vec<_>>()
        };
        assert_eq!(squeeze(&by_fault(&tally())), squeeze(expected));
        let expected = "\
LEVEL     THROUGH  JOURNAL  +BITMAP  ALL
RAID 1    2        -        -        2
RAID 5    -        -        8/2/1    8/2/1
all runs  2        -        8/2/1    10/2/1
";
        assert_eq!(by_level(&tally()), expected);
    }

    #[test]
    fn every_phase_has_a_row_and_what_went_wrong_in_it_is_counted_once() {
        let mut tally = tally();
        tally.pairs.insert((Fault::Cut, Phase::BetweenWaves), 3);
        tally.pairs.insert((Fault::Pulled, Phase::BetweenWaves), 2);
        tally.pairs.insert((Fault::ReadOnly, Phase::BetweenWaves), 1);
        tally.pairs.insert((Fault::Late, Phase::BetweenWaves), 5);
        let text = by_phase(&tally);
        assert_eq!(text.lines().count(), 1 + Phase::ALL.len(), "{text}");
        let row = text.lines().find(|line| line.starts_with("some members have a newer")).expect("its row");
        let figures: Vec<&str> = row.split_whitespace().rev().take(6).collect();
        assert_eq!(figures, ["5", "3", "0", "0", "0", "3"], "{text}");
    }

    #[test]
    fn every_fault_has_a_row_by_task_and_every_action_one_by_state() {
        let mut tally = tally();
        tally.tasks.insert((Fault::Cut, "rebuild"), 3);
        tally.tasks.insert((Fault::Pulled, "check"), 2);
        tally.states.insert(("spare", "patrol"), 5);
        let text = by_task(&tally);
        assert_eq!(text.lines().count(), Fault::ALL.len(), "{text}");
        let row: Vec<&str> =
            text.lines().find(|line| line.starts_with("drive pulled")).expect("its row").split_whitespace().collect();
        assert_eq!(row, ["drive", "pulled", "2", "0"], "{text}");
        let text = by_state(&tally);
        let row = text.lines().find(|line| line.starts_with("patrol")).expect("its row");
        assert_eq!(row.split_whitespace().last(), Some("5"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("start-without")), "{text}");
    }

    #[test]
    fn the_full_table_has_a_line_for_each_fault_policy_and_level() {
        let text = cross(&tally());
        assert_eq!(text.lines().count(), 1 + 3 + 3 + 1, "{text}");
        let last: Vec<&str> = text.lines().last().expect("a line").split_whitespace().collect();
        assert_eq!(last[last.len() - 3..], ["10", "2", "1"]);
    }
}
