//! Hunts planted bugs, and prints the effort for each: `hunt [--cpu SECONDS] [--first SEED] [--last SEED] [--threads COUNT]
//! [--slice] [--unchanged] [--aimed | --random | --swarm | --changing] [--story SEED [--short]] [NAME...]`.
//!
//! Bugs in the engine are hunted by the runs of `openraid-lab torture`: aimed, random, swarm and changing runs in turn, or by
//! one of the four kinds. Bugs of the driver loop are hunted by the runs in which tests find them. If a bug is not found
//! within the given seconds of processor time, it is named, and the exit code is 1. `--slice` hunts the bugs with a
//! known run that finds them, from that run on. `--unchanged` hunts no bug: it makes runs of the engine without a bug,
//! and none of them may lose data. `--story` prints the story of one run, with `--short` of a shorter one that fails as
//! well.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use openraid_core::planted::Flaw;
use openraid_sim::fault::shrink::shrink;
use openraid_sim::fault::{report, Bug, BugRun, RunTally, Scenario, Verdict};

/// Limit of the processor time for a bug: ten minutes on two processors.
const CPU_MOST: u64 = 1200;
/// Number of simultaneous runs.
const THREADS: usize = 2;
/// The most that may be asked for.
const THREADS_MAX: u64 = 256;

/// Makes the run of a seed.
type Draw = fn(u64) -> Scenario;

struct Options {
    cpu: Duration,
    first: u64,
    last: u64,
    threads: usize,
    draw: Draw,
    slice: bool,
    unchanged: bool,
    story: Option<u64>,
    short: bool,
    names: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        cpu: Duration::from_secs(CPU_MOST),
        first: 1,
        last: u64::MAX,
        threads: THREADS,
        draw: Scenario::of,
        slice: false,
        unchanged: false,
        story: None,
        short: false,
        names: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|word| word.parse::<u64>().ok());
            number.ok_or_else(|| format!("{word} needs a number"))
        };
        match word.as_str() {
            "--cpu" => options.cpu = Duration::from_secs(number()?),
            "--first" => options.first = number()?,
            "--last" => options.last = number()?,
            "--story" => options.story = Some(number()?),
            "--threads" => options.threads = usize::try_from(number()?.clamp(1, THREADS_MAX)).expect("few threads"),
            "--aimed" => options.draw = Scenario::aimed,
            "--random" => options.draw = Scenario::draw,
            "--swarm" => options.draw = Scenario::swarm,
            "--changing" => options.draw = Scenario::changing,
            "--short" => options.short = true,
            "--slice" => options.slice = true,
            "--unchanged" => options.unchanged = true,
            _ if bugs().any(|bug| bug.name() == word) => options.names.push(word),
            _ => return Err(format!("{word} is no option and no bug; the options are at the top of hunt.rs")),
        }
    }
    Ok(options)
}

/// All bugs that can be planted: those of the engine come first.
fn bugs() -> impl Iterator<Item = Bug> {
    Flaw::ALL.iter().copied().map(Bug::Engine).chain(Bug::ALL.iter().copied())
}

/// The result of a hunt.
#[derive(Default)]
struct Hunt {
    tally: RunTally,
    cpu: Duration,
    /// The first seed that shows the bug, and the judge.
    found: Option<(u64, String)>,
    /// Other losses of runs, each with a seed.
    otherwise: BTreeMap<String, u64>,
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

fn scenario(bug: Option<Bug>, draw: Draw, seed: u64) -> Scenario {
    match bug {
        None | Some(Bug::Engine(_)) => draw(seed),
        Some(_) => Scenario::draw(seed),
    }
}

fn hunt(bug: Option<Bug>, options: &Options) -> Hunt {
    let hunt = Mutex::new(Hunt::default());
    let known = bug.filter(|_| options.slice).and_then(Bug::known_run);
    let (draw, first): (Draw, u64) = match known {
        Some(BugRun::Aimed(seed)) => (Scenario::aimed, seed),
        Some(BugRun::Swarm(seed)) => (Scenario::swarm, seed),
        Some(BugRun::Changing(seed)) => (Scenario::changing, seed),
        None => (options.draw, options.first),
    };
    let next = AtomicU64::new(first);
    let last = match (bug, options.slice) {
        (Some(bug), true) => first + bug.found_within() - 1,
        (None, _) => options.last,
        _ => u64::MAX,
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                let before = cpu_time();
                {
                    let hunt = hunt.lock().expect("no run panics here");
                    if seed > last || hunt.found.is_some() || hunt.cpu >= options.cpu {
                        break;
                    }
                }
                let scenario = scenario(bug, draw, seed);
                let report = report(&scenario, bug);
                let mut hunt = hunt.lock().expect("no run panics here");
                hunt.cpu += cpu_time().saturating_sub(before);
                hunt.tally.count(&scenario, &report);
                let Verdict::Lost(text) = &report.verdict else { continue };
                let head: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
                match bug {
                    Some(bug) if bug.is_shown_by(&report.verdict) => hunt.found = Some((seed, head)),
                    Some(_) => {
                        hunt.otherwise.entry(head).or_insert(seed);
                    }
                    None => println!("LOST, seed {seed}: {}", text.lines().next().unwrap_or_default()),
                }
            });
        }
    });
    hunt.into_inner().expect("no run panics here")
}

fn line(name: &str, hunt: &Hunt) -> String {
    let Hunt { tally, cpu, found, otherwise } = hunt;
    let judge = match found {
        Some((seed, judge)) => format!("seed {seed}: {judge}"),
        None => "-".into(),
    };
    let otherwise = match otherwise.first_key_value() {
        Some((kind, seed)) => format!("; {} in another way, as seed {seed}: {kind}", otherwise.len()),
        None => String::new(),
    };
    let seconds = cpu.as_secs_f64();
    let (runs, cuts, requests) = (tally.runs, tally.cuts, tally.requests);
    format!("{name:<24} {runs:>7} {cuts:>8} {requests:>10} {seconds:>8.1}  {judge}{otherwise}")
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("hunt: {error}");
            return ExitCode::FAILURE;
        }
    };
    if options.story.is_none() {
        // Panics are the expected findings: their messages are in the report.
        std::panic::set_hook(Box::new(|_| {}));
    }
    if let Some(seed) = options.story {
        let bug = bugs().find(|bug| options.names.iter().any(|name| name == bug.name()));
        let drawn = (options.draw)(seed);
        let kind = report(&drawn, bug).verdict.kind().filter(|_| options.short);
        let fails = |shorter: &Scenario| report(shorter, bug).verdict.kind() == kind;
        let scenario = if kind.is_some() { shrink(&drawn, fails) } else { drawn };
        let report = report(&scenario, bug);
        println!("{scenario}\n\n{}\n\n{:?}", report.story.join("\n"), report.verdict);
        println!("{}", report.details);
        return ExitCode::SUCCESS;
    }
    println!("{:<24} {:>7} {:>8} {:>10} {:>8}  FOUND BY", "BUG", "RUNS", "CUTS", "REQUESTS", "CPU S");
    if options.unchanged {
        let begun = Instant::now();
        let hunt = hunt(None, &options);
        println!("{}", line("none", &hunt));
        println!(
            "{} lost, {} not promised, {:.0} s",
            hunt.tally.ends.lost,
            hunt.tally.ends.not_promised,
            begun.elapsed().as_secs_f64()
        );
        for ((fault, phase), count) in &hunt.tally.pairs {
            println!("{count:>8}  {fault} / {phase}");
        }
        for ((fault, task), count) in &hunt.tally.tasks {
            println!("{count:>8}  {fault} / {task}");
        }
        for ((state, action), count) in &hunt.tally.states {
            println!("{count:>8}  {state} / {action}");
        }
        return if hunt.tally.lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut missed = Vec::new();
    let wanted = |bug: &Bug| {
        let named = options.names.is_empty() || options.names.iter().any(|name| name == bug.name());
        let is_of_slice = matches!(bug, Bug::Engine(_)) && bug.known_run().is_some();
        named && (!options.slice || is_of_slice)
    };
    for bug in bugs().filter(wanted) {
        let hunt = hunt(Some(bug), &options);
        println!("{}", line(bug.name(), &hunt));
        if hunt.found.is_none() {
            missed.push(bug.name());
        }
    }
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("NOT found: {}", missed.join(", "));
    ExitCode::FAILURE
}
