//! `openraid-lab torture`: many runs of the fault simulation, or the story of one run.
//!
//! It must never say that nothing was lost if a run was not judged to its end.

pub mod tables;

use std::time::{Duration, Instant};

use openraid_sim::fault::shrink::shrink;
use openraid_sim::fault::{Bug, Mode, Report, RunTally, Scenario, Verdict};
use openraid_sim::number_words::count;
use openraid_sys::Signals;
use serde::Serialize;

use crate::arguments::TortureArguments;
use crate::torture_threads::Swarm;
use openraid::failure::{Exit, Failure, Outcome};
use openraid::output::progress::WorkProgress;
use openraid::output::table::TextTable;
use openraid::output::{is_error_terminal, warn, Output};
use openraid::quantity::human_seconds;
use openraid::verb::Context;

/// After this number of lost runs no more are begun, because each may hold memory.
const LOST_MAX: usize = 200;
/// Time between two checks of signals and of the time, while no run ends.
const TICK: Duration = Duration::from_millis(200);
/// Time between two lines of progress, if there is no terminal for a bar.
const NEWS_EVERY: Duration = Duration::from_secs(60);

/// A run that lost data.
#[derive(Clone, Serialize, utoipa::ToSchema)]
#[schema(as = LostRun)]
struct LostBody {
    /// Seed of the run: `openraid-lab torture --replay SEED` repeats it.
    seed: u64,
    /// `bounded` (the faults stay within what the level survives) or `unbounded`.
    mode: String,
    /// Level of the run's array.
    level: String,
    /// The place where its writes were cached.
    policy: String,
    /// The kinds of faults that the run had.
    faults: Vec<String>,
    /// What was lost, in words.
    text: String,
}

impl LostBody {
    fn line(&self) -> String {
        let Self { seed, mode, level, policy, faults, text } = self;
        format!("LOST, seed {seed} ({mode}, {level}, {policy}; faults: {}): {text}", faults.join(", "))
    }
}

/// A repeated run of the fault simulation.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ReplayBody {
    /// Seed of the run.
    seed: u64,
    /// The array, its service and its load, in words.
    run: String,
    /// Number of steps that were run: fewer than the seed draws if the run was shortened.
    steps: usize,
    /// Number of steps that the seed draws.
    steps_drawn: usize,
    /// Verdict on the run: `survived`, `not promised` or `lost`.
    verdict: &'static str,
    /// What was lost, or why no engine could keep it; empty if the run survived.
    why: String,
    /// The events of the run, one line each.
    story: Vec<String>,
    /// All commands and answers, one line each; only with `--full`.
    details: Option<Vec<String>>,
}

/// The reason why no more runs were begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Seeds,
    Time,
    Found,
    Losses,
    Interrupted,
}

impl Ending {
    const fn word(self) -> &'static str {
        match self {
            Self::Seeds => "seeds",
            Self::Time => "time",
            Self::Found => "found",
            Self::Losses => "losses",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// The planted bug is unknown, or no thread could be started.
pub fn run(arguments: &TortureArguments, context: &Context) -> Outcome {
    let bug = arguments.planted.as_deref().map(named).transpose()?;
    match arguments.replay {
        Some(seed) => replay(seed, bug, arguments.full, context),
        None => many(arguments, bug, context),
    }
}

fn named(name: &str) -> Result<Bug, Failure> {
    Bug::named(name).ok_or_else(|| {
        let mut table = TextTable::plain().indented(2);
        for bug in Bug::ALL {
            table.row([bug.name(), bug.text()]);
        }
        Failure::usage(format!("no planted bug is named '{name}'; there are:\n{}", table.text().trim_end()))
    })
}

/// The results of many runs.
struct Many {
    bug: Option<Bug>,
    tally: RunTally,
    lost: Vec<LostBody>,
    /// Seeds of runs that show the planted bug.
    found: Vec<u64>,
    last: u64,
    time: Duration,
    ending: Ending,
    /// Number of runs that had not ended at the end of the program.
    unjudged: usize,
}

fn many(arguments: &TortureArguments, bug: Option<Bug>, context: &Context) -> Outcome {
    let many = carry_out(arguments, bug)?;
    let exit = match (bug, many.tally.ends.lost) {
        (None, 0) => Exit::Fine,
        (Some(_), _) if !many.found.is_empty() => Exit::Fine,
        _ => Exit::Failed,
    };
    let body = tables::body(&many, arguments.seeds.first);
    let text = tables::text(&many, &body, arguments.full);
    Ok(context.output.answer(exit, &body, &text))
}

fn carry_out(arguments: &TortureArguments, bug: Option<Bug>) -> Result<Many, Failure> {
    // This comes before any thread is made, so that no thread receives a signal itself.
    let signals =
        Signals::take_over().map_err(|error| Failure::failed(format!("signals cannot be taken over: {error}")))?;
    let threads = arguments.threads.map(usize::from);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let time = arguments.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let said = std::env::args().any(|word| word.starts_with("--seeds"));
    let (first, last) = (arguments.seeds.first, arguments.seeds.last);
    let last = if time.is_some() && !said { u64::MAX } else { last };
    let mut watch = Watch::new(time, last.saturating_sub(first).saturating_add(1));
    let mut many = Many {
        bug,
        tally: RunTally::default(),
        lost: Vec::new(),
        found: Vec::new(),
        last: first,
        time: Duration::ZERO,
        ending: Ending::Seeds,
        unjudged: 0,
    };
    let mut swarm = Swarm::new(bug);
    let mut next = Some(first);
    let mut signalled = 0;
    loop {
        while signals.next_signal().is_some() {
            signalled += 1;
            watch.interrupted(signalled, swarm.running());
        }
        let over = ending(&many, &watch, signalled > 0);
        while let Some(seed) = next.filter(|_| over.is_none() && swarm.running() < threads) {
            next = seed.checked_add(1).filter(|seed| *seed <= last);
            many.last = seed;
            let scenario = Scenario::of(seed);
            if !arguments.unbounded || scenario.mode == Mode::Unbounded {
                swarm.begin(scenario).map_err(Failure::failed)?;
            }
        }
        // After a second Ctrl-C the program does not wait for the runs in progress.
        if swarm.running() == 0 || signalled > 1 {
            many.ending = over.filter(|_| next.is_some() || signalled > 0).unwrap_or(Ending::Seeds);
            many.unjudged = swarm.running();
            many.time = watch.begun.elapsed();
            return Ok(many);
        }
        if let Some((scenario, report)) = swarm.ended_within(TICK) {
            note(&mut many, &scenario, &report, &watch);
        }
        watch.look(&many, first);
    }
}

/// The reason why no more runs are begun, if there is one.
fn ending(many: &Many, watch: &Watch, interrupted: bool) -> Option<Ending> {
    let time_is_up = watch.time.is_some_and(|time| watch.begun.elapsed() >= time);
    [
        (interrupted, Ending::Interrupted),
        (!many.found.is_empty(), Ending::Found),
        (many.lost.len() >= LOST_MAX, Ending::Losses),
        (time_is_up, Ending::Time),
    ]
    .into_iter()
    .find_map(|(is_so, ending)| is_so.then_some(ending))
}

fn note(many: &mut Many, scenario: &Scenario, report: &Report, watch: &Watch) {
    many.tally.count(scenario, report);
    let Verdict::Lost(text) = &report.verdict else { return };
    let lost = LostBody {
        seed: report.seed,
        mode: scenario.mode.to_string(),
        level: scenario.level_name(),
        policy: scenario.policy_name().into(),
        faults: report.counts.faults().map(|fault| fault.to_string()).collect(),
        text: text.lines().next().unwrap_or_default().into(),
    };
    if many.bug.is_some_and(|bug| bug.is_shown_by(&report.verdict)) {
        many.found.push(report.seed);
    }
    // If the user stops the run early, its seeds are still printed.
    watch.above(&lost.line());
    many.lost.push(lost);
}

/// Prints the progress: a bar on a terminal, otherwise one line each minute.
struct Watch {
    begun: Instant,
    time: Option<Duration>,
    progress: WorkProgress,
    reported_at: Instant,
}

impl Watch {
    fn new(time: Option<Duration>, seeds: u64) -> Self {
        let progress = match time {
            Some(time) => WorkProgress::counting("torture, seconds", time.as_secs()),
            None => WorkProgress::counting("torture, runs", seeds),
        };
        let now = Instant::now();
        Self { begun: now, time, progress, reported_at: now }
    }

    fn above(&self, line: &str) {
        self.progress.above(|| warn(line));
    }

    fn interrupted(&self, signalled: u32, running: usize) {
        if signalled == 1 && running > 0 {
            let running = count(u64::try_from(running).unwrap_or(u64::MAX), "run", "runs");
            self.above(&format!("interrupted: waiting for {running} to end; interrupt again to stop at once"));
        }
    }

    fn look(&mut self, many: &Many, first: u64) {
        let tally = &many.tally;
        let elapsed = self.begun.elapsed();
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = |count: u64| count.saturating_mul(1000) / millis;
        let (cuts, requests) = (rate(tally.cuts), rate(tally.requests));
        let done = if self.time.is_some() { elapsed.as_secs() } else { many.last - first };
        self.progress.counted_saying(done, &format!("{cuts} cuts/s, {requests} requests/s, {} lost", tally.ends.lost));
        if self.reported_at.elapsed() >= NEWS_EVERY && !is_error_terminal() {
            self.reported_at = Instant::now();
            warn(&format!(
                "after {}: {}, {}, {}, {} lost",
                human_seconds(elapsed.as_secs()),
                count(tally.runs, "run", "runs"),
                count(tally.cuts, "power cut", "power cuts"),
                count(tally.requests, "host request", "host requests"),
                tally.ends.lost
            ));
        }
    }
}

/// One run. If it loses something, also the shortest run with the same loss.
fn replay(seed: u64, bug: Option<Bug>, full: bool, context: &Context) -> Outcome {
    let mut swarm = Swarm::new(bug);
    let drawn = Scenario::of(seed);
    let whole = swarm.one(drawn.clone()).map_err(Failure::failed)?;
    let (scenario, report) = match whole.verdict.kind() {
        None => (drawn.clone(), whole),
        kind => {
            let mut fails =
                |shorter: &Scenario| swarm.one(shorter.clone()).is_ok_and(|report| report.verdict.kind() == kind);
            let short = shrink(&drawn, &mut fails);
            let report = swarm.one(short.clone()).map_err(Failure::failed)?;
            (short, report)
        }
    };
    let (verdict, why, exit) = match &report.verdict {
        Verdict::Survived => ("survived", String::new(), Exit::Fine),
        Verdict::NotPromised(excuse) => ("not promised", excuse.to_string(), Exit::Fine),
        Verdict::Lost(text) => ("lost", text.clone(), Exit::Failed),
    };
    let lines = || report.details.lines().map(Into::into).collect();
    let body = ReplayBody {
        seed,
        run: scenario.to_string(),
        steps: scenario.steps.len(),
        steps_drawn: drawn.steps.len(),
        verdict,
        why,
        details: full.then(lines),
        story: report.story,
    };
    let output = Output { verb: "torture-replay", ..context.output };
    Ok(output.answer(exit, &body, &replay_text(&body)))
}

fn replay_text(body: &ReplayBody) -> String {
    let mut text = body.run.clone();
    if body.steps < body.steps_drawn {
        let steps = count(u64::try_from(body.steps).unwrap_or(u64::MAX), "step is", "steps are");
        text.push_str(&format!("\nof its {} steps, {steps} enough to lose the same:", body.steps_drawn));
    }
    text.push_str(&format!("\n\n{}\n\n", body.story.join("\n")));
    match body.verdict {
        "lost" => text.push_str(&format!("LOST: {}", body.why)),
        verdict if body.why.is_empty() => text.push_str(verdict),
        verdict => text.push_str(&format!("{verdict}: {}", body.why)),
    }
    match &body.details {
        Some(details) if !details.is_empty() => {
            text.push_str(&format!("\n\nthe engine's own lines at that moment:\n{}", details.join("\n")));
        }
        _ => {}
    }
    text
}
