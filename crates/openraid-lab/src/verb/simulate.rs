//! `openraid-lab simulate`: simulates one load on one array.

use openraid_core::limits::STEPS_MAX;
use openraid_methods::cell::{
    machine_spec, measure, run_cell, ArrayState, Caches, CellError, CellResult, CellSpec, Pattern,
};
use openraid_methods::plan::{uncertain, weakest, Knowledge, Range, ReshapePlace, ReshapeTime};
use openraid_methods::reader::RequestTrace;
use openraid_methods::report::assemble::bus_words;
use openraid_methods::target::SimTarget;
use openraid_models::Library;
use openraid_units::Bytes;
use serde::Serialize;

use crate::arguments::{SimulateArguments, StandInWord};
use crate::shared_parts::{
    asked, below_and_above, drive_fits, effort, least_certain, library, refused, runs_at_once, stand_ins, state_fits,
    ChosenLoad,
};
use openraid::failure::{Exit, Failure, Outcome};
use openraid::output::table::TextTable;
use openraid::quantity::{figure, sold};
use openraid::story::{self, Story, StoryModel, StoryNames, StoryOwner};
use openraid::verb::Context;

/// The result of an array of modelled drives.
#[derive(Serialize, utoipa::ToSchema)]
pub struct SimulationBody<'a> {
    /// The array, such as `raid5x4`.
    array: String,
    /// When writes are acknowledged, and the caches that are on.
    caches: Caches,
    /// Bus between host and controller as it works in its slot, with its rates, and the card's own bus if that is faster.
    bus: String,
    /// Drive profile of the busiest member, if members differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    busiest_drive: Option<String>,
    /// Requests that ended each second.
    iops: f64,
    /// MB (10^6 bytes) that requests moved each second.
    mbps: f64,
    /// Mean latency of a request.
    mean_ms: f64,
    /// Longest latency among the fastest 1 % of the requests.
    p1_ms: f64,
    /// Median latency of a request.
    p50_ms: f64,
    /// 99th percentile of the latency.
    p99_ms: f64,
    /// Latency of the slowest request.
    max_ms: f64,
    /// Size of the array for hosts.
    capacity_bytes: u64,
    /// Number of values of the machine's profiles that have a range.
    uncertain_values: usize,
    /// The effect of these values and of chance on the requests per second, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    /// The time of the change of shape, if one was asked for. The other figures are those of its middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    reshape: Option<ReshapeTime>,
    /// The busiest part of the machine, in words.
    bottleneck: Option<&'a str>,
    /// All figures of the measurement.
    result: &'a CellResult,
    /// Stories of the last requests, if they were asked for (`--explain`).
    #[serde(skip_serializing_if = "<[StoryModel]>::is_empty")]
    stories: &'a [StoryModel],
}

/// Profiles that can be simulated.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ProfilesBody {
    /// Profiles of controllers, including the hosts that do the work themselves.
    controllers: Vec<Entry>,
    /// Profiles of drives.
    drives: Vec<Entry>,
    /// Names of the buses between host and controller, for `--bus`.
    buses: Vec<String>,
    /// Names of the links between controller and drives.
    links: Vec<String>,
}

/// A profile.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Profile)]
struct Entry {
    /// Name of the profile on the command line.
    name: String,
    /// What the profile describes: maker, model and main figures.
    title: String,
}

/// Runs the verb.
///
/// # Errors
/// The array, profile or load does not exist, or the array is impossible.
pub fn run(arguments: &SimulateArguments, context: &Context) -> Outcome {
    let library = library(arguments.load.models.as_deref())?;
    if arguments.list {
        return Ok(list(&library, context));
    }
    let word = arguments.array.as_deref().unwrap_or_default();
    let subject = word.parse().map_err(Failure::usage)?;
    let ChosenLoad { pattern, axes, trace, .. } = asked(&arguments.load)?;
    if arguments.range && trace.is_some() {
        let text = "--range: a trace sends requests at its own times, whatever the machine can do; leave it out";
        return Err(Failure::usage(text));
    }
    let state = match (&arguments.reshape, arguments.degraded, arguments.rebuilding) {
        (Some(word), _, _) => ArrayState::Changing(word.parse().map_err(Failure::usage)?),
        (None, _, true) => ArrayState::Rebuilding,
        (None, Some(missing), false) if missing > 0 => ArrayState::Degraded(missing),
        _ => ArrayState::Healthy,
    };
    if arguments.reshape.is_some() && trace.is_some() {
        return Err(Failure::usage("--reshape: a trace has an end, and a change of shape takes days; leave one out"));
    }
    drive_fits(&library, &arguments.system, &axes)?;
    let cell = CellSpec::new(&arguments.system, subject, pattern).with(axes);
    let cell = CellSpec { state, effort: effort(arguments.load.effort), seed: arguments.load.seed, ..cell };
    state_fits(&library, std::iter::once(&cell))?;
    let result = match (trace, arguments.explain) {
        (Some(trace), count) => replay(&library, &cell, &trace, count),
        (None, None) => run_cell(&library, &cell).map(|result| (result, Vec::new())),
        (None, Some(count)) => target(&library, &cell, Some(count)).and_then(|mut target| {
            let result = measure(&mut target, &cell)?;
            Ok((result, stories(&target, count)))
        }),
    };
    let (result, stories) = result.map_err(refused)?;
    let range = if arguments.range { Some(range(&library, &result, &arguments.load.nearest)?) } else { None };
    let all = result.histogram();
    let ms = |percent| all.percentile(percent) as f64 / 1e6;
    let spec = machine_spec(&library, &cell).map_err(refused)?;
    let is_change = matches!(state, ArrayState::Changing(_));
    let reshape = is_change.then(|| ReshapeTime::run(&library, &cell)).transpose().map_err(refused)?;
    let body = SimulationBody {
        array: word.into(),
        caches: Caches::of(&spec),
        bus: bus_words(&library, &spec).map_err(refused)?,
        busiest_drive: weakest(&spec, &result).map(|(name, _)| name),
        iops: result.iops,
        mbps: result.mbps,
        mean_ms: result.mean_ms(),
        p1_ms: ms(1.0),
        p50_ms: ms(50.0),
        p99_ms: ms(99.0),
        max_ms: ms(100.0),
        capacity_bytes: result.capacity,
        uncertain_values: uncertain(&library, &cell).map_err(refused)?.len(),
        range,
        reshape,
        bottleneck: result.bottleneck().map(|part| part.name.word()),
        result: &result,
        stories: &stories,
    };
    Ok(context.output.answer(Exit::Fine, &body, &text(&body)))
}

/// The uncertainty of a result.
fn range(library: &Library, result: &CellResult, nearest: &[StandInWord]) -> Result<Range, Failure> {
    let (threads, ended) = runs_at_once("runs");
    let knowledge = Knowledge::of(library, &result.spec, stand_ins(nearest)).map_err(refused)?;
    Range::run(library, result, (knowledge, true), threads, ended).map_err(refused)
}

/// The machine of a cell. If stories are requested, it keeps the steps of requests.
fn target(library: &Library, cell: &CellSpec, explain: Option<u8>) -> Result<SimTarget, CellError> {
    cell.check()?;
    let spec = machine_spec(library, cell)?;
    let mut target = SimTarget::new(&format!("sim:{}", cell.system), &spec, library)
        .map_err(|error| CellError::Impossible(error.to_string()))?;
    if explain.is_some() {
        target.keep_steps(STEPS_MAX);
    }
    Ok(target)
}

fn replay(
    library: &Library,
    cell: &CellSpec,
    trace: &RequestTrace,
    explain: Option<u8>,
) -> Result<(CellResult, Vec<StoryModel>), CellError> {
    let mut target = target(library, cell, explain)?;
    let result = openraid_methods::cell::replay(&mut target, cell, trace)?;
    Ok((result, explain.map_or_else(Vec::new, |count| stories(&target, count))))
}

/// The stories of the last requests that ended.
fn stories(target: &SimTarget, count: u8) -> Vec<StoryModel> {
    let (engine, arrays) = (target.machine().engine(), target.machine().arrays());
    let steps: Vec<_> = engine.steps().copied().collect();
    let first = engine.steps_traced().unwrap_or(0) - steps.len() as u64;
    let all = story::assemble(&steps, first);
    let names: Vec<StoryNames> = arrays
        .iter()
        .map(|array| {
            let sets = engine.status(*array).map(|status| status.sets).unwrap_or_default();
            StoryNames { array: *array, sets, ..StoryNames::default() }
        })
        .collect();
    let is_request =
        |story: &&Story| matches!(story.owner, StoryOwner::Request(_)) && story.whole && story.ended.is_some();
    let mut ended: Vec<&Story> = all.iter().filter(is_request).collect();
    ended.sort_by_key(|story| story.ended);
    let last = ended.split_off(ended.len().saturating_sub(usize::from(count)));
    let model = |story: &Story| {
        let names = names.iter().find(|names| names.is_of(story))?;
        Some(StoryModel::of(story, &all, names))
    };
    last.into_iter().filter_map(model).collect()
}

fn text(body: &SimulationBody<'_>) -> String {
    let result = body.result;
    let spec = &result.spec;
    let mut lines = vec![
        format!(
            "{} on {}, {}: {} requests/s, {} MB/s",
            body.array,
            spec.system,
            spec.pattern.name(),
            figure(body.iops),
            figure(body.mbps)
        ),
        format!(
            "  latency: mean {} ms, p1 {} ms, p50 {} ms, p99 {} ms, max {} ms",
            figure(body.mean_ms),
            figure(body.p1_ms),
            figure(body.p50_ms),
            figure(body.p99_ms),
            figure(body.max_ms)
        ),
        format!("  capacity: {}", sold(Bytes(body.capacity_bytes))),
        format!("  cache: {}", body.caches),
        format!("  bus: {}", body.bus),
    ];
    let mut table = TextTable::new(&["PART", "BUSY"]).indented(2);
    for part in &result.components {
        let of_members = result.member_part(part.name);
        let name = part.name.to_string() + &of_members.map(|members| format!(" ({members})")).unwrap_or_default();
        table.row([name, format!("{:.0} %", part.busy * 100.0)]);
    }
    lines.push(table.text().trim_end().into());
    lines.extend(body.busiest_drive.iter().map(|drive| format!("  the busiest of the drives is a {drive}")));
    let flushes = result.flushes as f64 * 1e9 / result.elapsed_ns.max(1) as f64;
    lines.extend((result.flushes > 0).then(|| {
        format!("  flushes: {} each second; their time is in the requests/s, and not in the latency", figure(flushes))
    }));
    lines.extend(result.rebuild_mbps.map(|mbps| format!("  rebuild: {} MB/s of the new member", figure(mbps))));
    lines.extend(body.reshape.iter().flat_map(reshape_lines));
    lines.extend(result.flags.iter().map(|flag| format!("  CAUTION: {flag}")));
    lines.extend(certainty(body));
    lines.extend(result.notes.iter().map(|note| format!("  {note}")));
    lines.extend(body.stories.iter().map(story::text));
    lines.join("\n")
}

/// The time of a change of shape, and its effect on the load.
fn reshape_lines(time: &ReshapeTime) -> [String; 2] {
    let rates = |rate: fn(&ReshapePlace) -> f64| {
        let words = |place: &ReshapePlace| format!("{} at {} %", figure(rate(place)), place.percent);
        time.places.iter().map(words).collect::<Vec<_>>().join(", ")
    };
    let hours = |hours: Option<f64>| hours.map_or("has no end".into(), |hours| format!("takes {} h", figure(hours)));
    let (bytes, idle, loaded) = (sold(Bytes(time.bytes)), hours(time.idle_hours), hours(time.loaded_hours));
    [
        format!("  the reshape of {bytes} {idle} without load (MB/s: {})", rates(|place| place.idle_mbps)),
        format!(
            "  it {loaded} under this load (MB/s: {}; p99 in ms: {})",
            rates(|place| place.loaded_mbps),
            rates(|place| place.loaded_p99_ms)
        ),
    ]
}

/// Number of the machine's values that no data sheet gives, and their effect on the figure. A trace has no range.
fn certainty(body: &SimulationBody<'_>) -> Vec<String> {
    let parameters = openraid::quantity::counted(body.uncertain_values as u64, "parameter", "parameters");
    let values = format!("  {parameters} estimated (not in the drive's data sheet)");
    let Some(range) = &body.range else {
        let trace = matches!(body.result.spec.pattern, Pattern::Trace(_));
        return vec![if trace { values } else { values + "; --range says how much they change this" }];
    };
    let (low, high, model) = (range.low_percent, range.high_percent, range.model_percent);
    let of = |percent: f64| figure(body.result.iops * (1.0 + percent / 100.0));
    let least = least_certain(&range.uncertain, range.chance_percent).map(|words| format!("; {words}"));
    let (moved, chance) = (range.uncertain_percent, range.chance_percent);
    let mut lines = vec![
        format!("{values}: parameters move requests/s by {moved:.0} %, chance by {chance:.1} %{}", least.unwrap_or_default()),
        format!(
            "  range: {} to {} requests/s (-{low:.0} to +{high:.0} %), with {model:.0} % for the model itself on loads of \
             this kind, and {} for unknown parts",
            of(-low),
            of(high),
            below_and_above(range.unknown_percent)
        ),
        format!("  {}", range.knowledge.words()),
    ];
    lines.extend(range.missing.iter().map(|missing| format!("  {}: {}", missing.what, missing.reason)));
    lines
}

fn list(library: &Library, context: &Context) -> Exit {
    let entry = |head: &openraid_models::Head| Entry { name: head.name.clone(), title: head.title.clone() };
    let buses = |of_hosts: bool| {
        let known = library.buses().filter(|bus| bus.is_of_hosts() == of_hosts);
        known.map(|bus| bus.name.clone()).collect::<Vec<_>>()
    };
    let body = ProfilesBody {
        controllers: library.controllers().map(|known| entry(&known.head)).collect(),
        drives: library.drives().map(|known| entry(&known.head)).collect(),
        buses: buses(true),
        links: buses(false),
    };
    let mut text = String::new();
    for (title, entries) in [("CONTROLLER", &body.controllers), ("DRIVE", &body.drives)] {
        let mut table = TextTable::new(&[title, "WHAT IT IS"]);
        for entry in entries {
            table.row([entry.name.clone(), entry.title.clone()]);
        }
        text.push_str(&table.text());
        text.push('\n');
    }
    text.push_str(&format!("buses: {}\nlinks of drives: {}", body.buses.join(", "), body.links.join(", ")));
    context.output.answer(Exit::Fine, &body, &text)
}
