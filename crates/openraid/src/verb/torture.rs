//! `openraid torture`: the fault simulation, many runs of it, and the story of one.
//!
//! It must never say that nothing was lost where a run was not judged to its end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use openraid_sim::fault::shrink::shrink;
use openraid_sim::fault::verdict::{Ends, Line};
use openraid_sim::fault::{Bug, Mode, Report, Scenario, Tally, Verdict};
use serde::Serialize;

use super::Context;
use crate::arguments::TortureArguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::progress::Progress;
use crate::output::table::Table;
use crate::swarm::Swarm;

/// Lost runs that are told with their first words; all seeds are in the JSON.
const LOST_TOLD_MAX: usize = 20;
/// With so many lost runs no more are begun: each may hold memory.
const LOST_MAX: usize = 200;
/// Characters of a lost run's first line.
const WORDS_MAX: usize = 160;

#[derive(Serialize)]
struct LineBody {
    mode: String,
    fault: String,
    policy: String,
    level: String,
    survived: u64,
    not_promised: u64,
    lost: u64,
}

#[derive(Serialize)]
struct LostBody {
    seed: u64,
    text: String,
}

#[derive(Serialize)]
struct Body {
    seeds: [u64; 2],
    runs: u64,
    power_cuts: u64,
    host_requests: u64,
    events: u64,
    seconds: f64,
    survived: u64,
    not_promised: u64,
    planted: Option<String>,
    found_by: Option<u64>,
    not_promised_because: BTreeMap<String, u64>,
    lost: Vec<LostBody>,
    table: Vec<LineBody>,
}

#[derive(Serialize)]
struct ReplayBody {
    seed: u64,
    run: String,
    verdict: &'static str,
    why: String,
    story: Vec<String>,
}

/// Do it.
///
/// # Errors
/// A bug that nobody knows; no thread to be had.
pub fn run(arguments: &TortureArguments, context: &Context) -> Outcome {
    let bug = arguments.planted.as_deref().map(named).transpose()?;
    match arguments.replay {
        Some(seed) => replay(seed, bug, context),
        None => many(arguments, bug, context),
    }
}

fn named(name: &str) -> Result<Bug, Failure> {
    Bug::named(name).ok_or_else(|| {
        let mut table = Table::plain().indented(2);
        for bug in Bug::ALL {
            table.row([bug.name(), bug.text()]);
        }
        Failure::usage(format!("no planted bug is named '{name}'; there are:\n{}", table.text().trim_end()))
    })
}

/// What many runs came to.
struct Many {
    tally: Tally,
    lost: Vec<LostBody>,
    last: u64,
    time: Duration,
}

fn many(arguments: &TortureArguments, bug: Option<Bug>, context: &Context) -> Outcome {
    let begun = Instant::now();
    let many = carry_out(arguments, bug, begun)?;
    let found = bug.and_then(|_| many.lost.iter().map(|lost| lost.seed).min());
    let exit = match (bug, many.tally.ends.lost) {
        (None, 0) => Exit::Fine,
        (Some(_), _) if found.is_some() => Exit::Fine,
        _ => Exit::Failed,
    };
    let body = body_of(&many, arguments.seeds.first, bug, found);
    let text = text(&many, &body, arguments.full);
    Ok(context.output.answer(exit, &body, &text))
}

fn carry_out(arguments: &TortureArguments, bug: Option<Bug>, begun: Instant) -> Result<Many, Failure> {
    let threads = arguments.threads.map(usize::from);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let time = arguments.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let said = std::env::args().any(|word| word.starts_with("--seeds"));
    let (first, last) = (arguments.seeds.first, arguments.seeds.last);
    let last = if time.is_some() && !said { u64::MAX } else { last };
    let progress = match time {
        Some(time) => Progress::counting("torture, seconds", time.as_secs()),
        None => Progress::counting("torture, runs", last - first + 1),
    };
    let mut many = Many { tally: Tally::default(), lost: Vec::new(), last: first, time: Duration::ZERO };
    let mut swarm = Swarm::new(bug);
    let mut next = Some(first);
    loop {
        let over = time.is_some_and(|time| begun.elapsed() >= time) || stops(&many, bug);
        while let Some(seed) = next.filter(|_| !over && swarm.running() < threads) {
            next = seed.checked_add(1).filter(|seed| *seed <= last);
            many.last = seed;
            let scenario = Scenario::draw(seed);
            if !arguments.unbounded || scenario.mode == Mode::Unbounded {
                swarm.begin(scenario).map_err(Failure::failed)?;
            }
        }
        if swarm.running() == 0 {
            many.time = begun.elapsed();
            return Ok(many);
        }
        let (scenario, report) = swarm.ended();
        note(&mut many, &scenario, &report);
        let tally = &many.tally;
        progress.counted(if time.is_some() { begun.elapsed().as_secs() } else { many.last - first });
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = |count: u64| count.saturating_mul(1000) / millis;
        let (cuts, requests) = (rate(tally.cuts), rate(tally.requests));
        progress.say(&format!("{cuts} cuts/s, {requests} requests/s, {} lost", tally.ends.lost));
    }
}

/// Is there nothing more to be found out?
fn stops(many: &Many, bug: Option<Bug>) -> bool {
    many.lost.len() >= if bug.is_some() { 1 } else { LOST_MAX }
}

fn note(many: &mut Many, scenario: &Scenario, report: &Report) {
    many.tally.count(scenario, report);
    if let Verdict::Lost(text) = &report.verdict {
        let line = text.lines().next().unwrap_or_default();
        many.lost.push(LostBody { seed: report.seed, text: line.chars().take(WORDS_MAX).collect() });
    }
}

fn body_of(many: &Many, first: u64, bug: Option<Bug>, found_by: Option<u64>) -> Body {
    let tally = &many.tally;
    let line = |(line, ends): (&Line, &Ends)| LineBody {
        mode: line.mode.to_string(),
        fault: line.fault.to_string(),
        policy: line.policy.into(),
        level: line.level.clone(),
        survived: ends.survived,
        not_promised: ends.not_promised,
        lost: ends.lost,
    };
    let mut lost: Vec<LostBody> =
        many.lost.iter().map(|lost| LostBody { seed: lost.seed, text: lost.text.clone() }).collect();
    lost.sort_by_key(|lost| lost.seed);
    Body {
        seeds: [first, many.last],
        runs: tally.runs,
        power_cuts: tally.cuts,
        host_requests: tally.requests,
        events: tally.events,
        seconds: many.time.as_secs_f64(),
        survived: tally.ends.survived,
        not_promised: tally.ends.not_promised,
        planted: bug.map(|bug| bug.name().into()),
        found_by,
        not_promised_because: tally.excuses.iter().map(|(why, count)| (why.to_string(), *count)).collect(),
        lost,
        table: tally.lines.iter().map(line).collect(),
    }
}

fn text(many: &Many, body: &Body, full: bool) -> String {
    let tally = &many.tally;
    let seconds = body.seconds.max(0.001);
    #[allow(clippy::cast_precision_loss)] // for reading only
    let rate = |count: u64| count as f64 / seconds;
    let mut lines = vec![
        format!("seeds {} to {}: {} runs in {:.0} s", body.seeds[0], body.seeds[1], tally.runs, body.seconds),
        format!(
            "{} power cuts ({:.1} a second), {} host requests ({:.0} a second)",
            tally.cuts,
            rate(tally.cuts),
            tally.requests,
            rate(tally.requests)
        ),
        String::new(),
        table(tally, full).trim_end().to_owned(),
        String::new(),
        format!("survived: {}, not promised: {}, lost: {}", body.survived, body.not_promised, tally.ends.lost),
    ];
    if !tally.excuses.is_empty() {
        let excuses: Vec<String> = tally.excuses.iter().map(|(why, count)| format!("{why}: {count}")).collect();
        lines.push(format!("not promised, and told: {}", excuses.join(", ")));
    }
    match (&body.planted, body.found_by) {
        (Some(bug), Some(seed)) => lines.push(format!("the planted bug '{bug}' is found by seed {seed}")),
        (Some(bug), None) => lines.push(format!("the planted bug '{bug}' is NOT found")),
        (None, _) => {}
    }
    for lost in body.lost.iter().take(LOST_TOLD_MAX) {
        lines.push(format!("LOST, seed {}: {}", lost.seed, lost.text));
    }
    if let (Some(lost), None) = (body.lost.first(), &body.planted) {
        lines.push(format!("what happened: openraid torture --replay {}", lost.seed));
    }
    lines.join("\n")
}

/// Fault by policy; with `full` by level too.
fn table(tally: &Tally, full: bool) -> String {
    let mut sums: BTreeMap<(Mode, String, String, String), [u64; 3]> = BTreeMap::new();
    for (line, ends) in &tally.lines {
        let level = if full { line.level.clone() } else { String::new() };
        let sum = sums.entry((line.mode, line.fault.to_string(), line.policy.into(), level)).or_default();
        for (sum, count) in sum.iter_mut().zip([ends.survived, ends.not_promised, ends.lost]) {
            *sum += count;
        }
    }
    let heads = ["FAULTS", "FAULT", "POLICY", "LEVEL", "SURVIVED", "NOT PROMISED", "LOST"];
    let heads: Vec<&str> = heads.into_iter().filter(|head| full || *head != "LEVEL").collect();
    let mut table = Table::new(&heads);
    for ((mode, fault, policy, level), counts) in sums {
        let words = [mode.to_string(), fault, policy].into_iter().chain(full.then_some(level));
        table.row(words.chain(counts.map(|count| count.to_string())));
    }
    table.text()
}

/// One run; if it loses something, the shortest one that loses the same.
fn replay(seed: u64, bug: Option<Bug>, context: &Context) -> Outcome {
    let mut swarm = Swarm::new(bug);
    let scenario = Scenario::draw(seed);
    let whole = swarm.one(scenario.clone()).map_err(Failure::failed)?;
    let (scenario, report) = match whole.verdict.kind() {
        None => (scenario, whole),
        kind => {
            let mut fails =
                |shorter: &Scenario| swarm.one(shorter.clone()).is_ok_and(|report| report.verdict.kind() == kind);
            let short = shrink(&scenario, &mut fails);
            let report = swarm.one(short.clone()).map_err(Failure::failed)?;
            (short, report)
        }
    };
    let (verdict, why, exit) = match &report.verdict {
        Verdict::Survived => ("survived", String::new(), Exit::Fine),
        Verdict::NotPromised(excuse) => ("not promised", excuse.to_string(), Exit::Fine),
        Verdict::Lost(text) => ("lost", text.clone(), Exit::Failed),
    };
    let body = ReplayBody { seed, run: scenario.to_string(), verdict, why, story: report.story };
    let text = format!("{}\n\n{}\n\n{}: {}", body.run, body.story.join("\n"), body.verdict, body.why);
    Ok(context.output.answer(exit, &body, text.trim_end_matches([':', ' '])))
}
