//! `openraid-lab rehearse`: compares a prediction with a served array, on modelled drives.
//!
//! ```text
//!  cells --> simulated machine, virtual time            --> predicted \
//!        \-> served array of paced members, by NBD      --> served     > report: mean and 99th percentile, errors
//! ```
//!
//! Machine and array are new for each cell. All cells use the same addresses, so after the first cell a cache would
//! hold their data.
//!
//! Both have the same model of the drives and the same engine. The only difference is that the thread, the sockets and
//! the clock of the service are real. It must never judge a prediction if the members were too late for their model.

use openraid_core::admin::AdminCommand;
use openraid_core::limits::Limits;
use openraid_format::MinorVersion;
use openraid_methods::cell::{footprint, machine_spec, measure, run_cell, Axes, CacheMode, CellResult, CellSpec};
use openraid_methods::cell::{Level, Pattern, Subject};
use openraid_methods::report::data::{self, ChartAxis, Fact, Point, ReportSection, Review, Scale, Series, Unit};
use openraid_methods::report::{predicted_and_measured, render};
use openraid_methods::review::Performance;
use openraid_methods::run::{build, write_atomically};
use openraid_methods::target::{BedLine, BedName, Choice, Destruction, NbdTarget, RealOptions};
use openraid_models::Library;
use openraid_runtime::member::paced::Lateness;
use openraid_sim::machine::MachineSpec;
use openraid_sys::Use;
use openraid_units::Sectors;
use serde::{Deserialize, Serialize};
use std::path::Path;

use super::review::fact;
use crate::arguments::RehearseArguments;
use crate::shared_parts::{flagged, library, may_be_written};
use openraid::failure::{Exit, Failure, Outcome};
use openraid::in_process::InProcess;
use openraid::members::{open_every, options, spec};
use openraid::new_arrays::{CreateOptions, NewShape};
use openraid::output::progress::WorkProgress;
use openraid::output::schema_of;
use openraid::output::table::TextTable;
use openraid::quantity::figure;
use openraid::verb::Context;
use openraid::words;

/// Name of the array.
const NAME: &str = "rehearsal";
/// The profile of openraid as a controller.
const SYSTEM: &str = "openraid";
/// Maximum error of the predicted mean, in percent.
const MEAN_AIM: f64 = 10.0;
/// Maximum error of the predicted 99th percentile, in percent.
const P99_AIM: f64 = 25.0;
/// The limits apply to drives with at least this latency in milliseconds. The service adds about a tenth of a
/// millisecond.
const AIMED_FROM_MS: f64 = 1.0;
/// Maximum lateness of the members' answers, as a percentage of the predicted mean. Members that are later cannot be as
/// fast as their model: the lateness alone would use up half of [`MEAN_AIM`].
const LATE_MOST: f64 = 5.0;
/// The note under each verdict.
const SAME_MODEL: &str = "Both sides have the same model of the drive: this tests the service, not the model";
/// With fewer requests a 99th percentile has little meaning.
const REQUESTS_FOR_P99: u64 = 1000;

/// What a cell came to.
#[derive(Serialize, utoipa::ToSchema)]
struct Figures {
    /// Number of requests in the measurement.
    requests: u64,
    /// Requests that ended each second.
    iops: f64,
    /// Mean latency of the requests.
    mean_ms: f64,
    /// 99th percentile of the latency.
    p99_ms: f64,
}

/// A load: the prediction and the measurement.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = RehearsedLoad)]
struct Pair {
    /// Percentage of reads among the requests.
    reads: u8,
    /// Number of outstanding requests.
    depth: u32,
    /// The figures of the simulated machine.
    predicted: Figures,
    /// The figures of the server with paced members.
    served: Figures,
    /// How far the predicted mean is from the served one, percent of the served one.
    mean_error_percent: f64,
    /// How far the predicted 99th percentile is from the served one, percent of the served one.
    p99_error_percent: f64,
    /// Mean delay of the first member's answers, milliseconds; none if it does not report it.
    late_ms: Option<f64>,
}

/// A prediction and a server with paced members, compared.
#[derive(Serialize, utoipa::ToSchema)]
pub struct RehearsalBody {
    /// The array, such as `raid5x4`.
    array: String,
    /// Name of the drives' profile.
    drive: String,
    /// Path of the report.
    report: String,
    /// Path of the file that has this document.
    results: String,
    /// By cell: the delay of the first member's answers. The same thread serves the other members.
    #[schema(value_type = Vec<String>)]
    lateness: Vec<BedLine>,
    /// The largest of the cells' errors of the mean.
    worst_mean_error_percent: f64,
    /// The largest of the cells' errors of the 99th percentile.
    worst_p99_error_percent: f64,
    /// Were the members of each cell as fast as their model? Otherwise the errors do not measure the prediction.
    valid: bool,
    /// One row for each load: the prediction and the measurement.
    cells: Vec<Pair>,
}

/// Runs the verb.
///
/// # Errors
/// The array or drive does not exist, or the array cannot be served in this way.
pub fn run(arguments: &RehearseArguments, context: &Context) -> Outcome {
    let library = library(arguments.models.as_deref())?;
    let subject: Subject = arguments.array.parse().map_err(Failure::usage)?;
    let cells = cells(arguments, subject)?;
    let machine = machine_spec(&library, &cells[0]).map_err(Failure::usage)?;
    level(subject)?;
    profile(&library, &arguments.drive)?;
    let (report, results) = (arguments.out.join("report.html"), arguments.out.join("results.json"));
    let mut body = RehearsalBody {
        array: arguments.array.clone(),
        drive: machine.drives[0].head.title.clone(),
        report: report.display().to_string(),
        results: results.display().to_string(),
        lateness: Vec::new(),
        worst_mean_error_percent: 0.0,
        worst_p99_error_percent: 0.0,
        valid: true,
        cells: Vec::new(),
    };
    may_be_written(&report)?;
    is_of_this_rehearsal(&report, &results, &body, context)?;
    std::fs::create_dir_all(&arguments.out)
        .map_err(|error| Failure::failed(format!("{}: the folder cannot be made: {error}", arguments.out.display())))?;
    let progress = WorkProgress::counting("cells", cells.len() as u64);
    for (number, cell) in (1..).zip(&cells) {
        let predicted = run_cell(&library, cell).map_err(Failure::failed)?;
        let served = Rehearsal::start(arguments, subject, &machine, &library)?;
        let measured = served.measure(cell)?;
        let (reads, depth) = (cell.axes.rd.unwrap_or(100), cell.axes.qd.unwrap_or(1));
        let late = served.lateness()?;
        let member = BedName::Other(format!("{reads} % reads, depth {depth}, member 0"));
        body.lateness.push(BedLine::new(member, late.map_or_else(String::new, |late| late.to_string())));
        served.host.stop();
        body.cells.push(pair(cell, &predicted, &measured, late.map(late_ms)));
        body.valid = !body.cells.iter().any(is_late);
        body.worst_mean_error_percent = worst(body.cells.iter(), |pair| pair.mean_error_percent);
        body.worst_p99_error_percent = worst(body.cells.iter(), |pair| pair.p99_error_percent);
        // Both are written after each cell, so that an interrupted run keeps its results. The results say whose page it is,
        // so they are there first.
        write_atomically(&results, context.output.kept(&body).as_bytes()).map_err(Failure::failed)?;
        write_atomically(&report, render(&page(&body, subject, arguments, &library)).as_bytes())
            .map_err(Failure::failed)?;
        progress.counted(number);
    }
    drop(progress);
    Ok(context.output.answer(Exit::Fine, &body, &text(&body)))
}

/// The figure with the largest distance from zero.
fn worst<'a>(pairs: impl Iterator<Item = &'a Pair>, of: fn(&Pair) -> f64) -> f64 {
    pairs.map(of).fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a })
}

/// The part of a kept document that says which rehearsal it is.
#[derive(Deserialize)]
struct EarlierResults {
    schema: String,
    array: String,
    drive: String,
}

/// A folder with a page or results may only be used for a rehearsal of the same array and drive.
fn is_of_this_rehearsal(report: &Path, results: &Path, body: &RehearsalBody, context: &Context) -> Result<(), Failure> {
    let kept = std::fs::read(results).ok().and_then(|bytes| serde_json::from_slice::<EarlierResults>(&bytes).ok());
    let is_same = |kept: EarlierResults| {
        kept.schema == schema_of(context.output.verb) && kept.array == body.array && kept.drive == body.drive
    };
    if kept.is_some_and(is_same) {
        return Ok(());
    }
    let lost = |path: &Path, thing: &str| {
        let path = path.display();
        Failure::usage(format!("{path}: {thing} there, and would be lost; name another folder with --out"))
    };
    if report.exists() {
        return Err(lost(report, "the page of another rehearsal is"));
    }
    if results.exists() {
        return Err(lost(results, "results of something else are"));
    }
    Ok(())
}

fn cells(arguments: &RehearseArguments, subject: Subject) -> Result<Vec<CellSpec>, Failure> {
    let block = u32::try_from(arguments.block.get()).map_err(|_| Failure::usage("--block: give at most 4 GiB"))?;
    let mut cells = Vec::new();
    for reads in &arguments.reads {
        for depth in &arguments.depth {
            let axes = Axes {
                rd: Some(*reads),
                qd: Some(*depth),
                bs: Some(block),
                cache: Some(CacheMode::WriteThrough),
                drive: Some(arguments.drive.clone()),
                ..Axes::default()
            };
            axes.check().map_err(|error| flagged(&error))?;
            let effort = Performance::real_effort(arguments.seconds);
            let cell = CellSpec::new(SYSTEM, subject, Pattern::Database).with(axes);
            cells.push(CellSpec { effort, seed: arguments.seed, ..cell });
        }
    }
    Ok(cells)
}

/// The level of the array; for one drive, raw drives.
fn level(subject: Subject) -> Result<Level, Failure> {
    match subject {
        Subject::Single => Ok(Level::Jbod),
        Subject::Array { level: level @ (Level::Raid0 | Level::Raid1 | Level::Raid1e | Level::Raid10), .. }
        | Subject::Array { level: level @ (Level::Raid5 | Level::Raid6), .. } => Ok(level),
        other => Err(Failure::usage(format!("{other} cannot be rehearsed; name single, or raid 0, 1, 1e, 10, 5 or 6"))),
    }
}

/// The profile of a drive as members name it. A profile from a folder is named by its file, because the members of a
/// server know only the built-in profiles.
fn profile<'a>(library: &'a Library, drive: &'a str) -> Result<&'a str, Failure> {
    let Some(file) = library.drive_file(drive).map_err(Failure::usage)? else { return Ok(drive) };
    if file.contains(',') {
        return Err(Failure::usage(format!(
            "--models: {file}: a member's name has no comma; rename the file or folder"
        )));
    }
    Ok(file)
}

/// A served array of paced members.
struct Rehearsal {
    host: InProcess,
    choice: Choice,
    seed: u64,
}

impl Rehearsal {
    fn start(
        arguments: &RehearseArguments,
        subject: Subject,
        machine: &MachineSpec,
        library: &Library,
    ) -> Result<Self, Failure> {
        let level = level(subject)?;
        let parts = machine.parts(library).map_err(Failure::usage)?;
        let host = InProcess::start("rehearsal", limits(&parts.limits()))?;
        let server = &host.server;
        let cache = if machine.drive_caches() { "on" } else { "off" };
        let name = format!("model:{},cache={cache}", profile(library, &arguments.drive)?);
        let names = vec![name; usize::from(subject.members())];
        let specs = names.iter().map(|name| spec(name)).collect::<Result<Vec<_>, _>>()?;
        let opened: Vec<_> =
            open_every(&specs, options(Use::Exclusive))?.into_iter().map(|(opened, _)| opened).collect();
        if level == Level::Jbod {
            opened.into_iter().try_for_each(|member| server.take_raw(NAME, member, false))?;
        } else {
            let shape = NewShape::of(&CreateOptions {
                name: NAME,
                level,
                layout: None,
                chunk: words::md_level(level).filter(|md| md.is_striped()).map(|_| machine.chunk().sectors_floor()),
                spans: None,
                members: &names,
                spares: &[],
                size: None,
                assume_clean: true,
                bitmap: Some(false),
                ppl: false,
                minor: MinorVersion::V1_2,
            })?;
            let sizes: Vec<Sectors> = opened.iter().map(|member| member.info.capacity).collect();
            let plans = shape.plan(&sizes, &names)?;
            let started = shape.make(&server.handle(), &plans, opened)?;
            let array = started.array;
            server.serve_started(started)?;
            let policy = AdminCommand::SetPolicy { array, policy: parts.policy };
            server.handle().admin(policy).map_err(Failure::failed)?;
        }
        let choice = Choice::parse(&host.uri(NAME)).map_err(Failure::failed)?;
        Ok(Self { host, choice, seed: arguments.seed })
    }

    fn measure(&self, cell: &CellSpec) -> Result<CellResult, Failure> {
        let Choice::Nbd(uri) = &self.choice else { unreachable!("it was made so") };
        let destroy = Destruction::confirmed(&self.choice, NAME).map_err(Failure::failed)?;
        let (bytes_max, outstanding) = footprint(cell, u64::MAX >> 1).map_err(Failure::usage)?;
        let options = RealOptions { outstanding, bytes_max, destroy: Some(destroy), seed: self.seed };
        let mut target = NbdTarget::open(uri, &options).map_err(Failure::failed)?;
        measure(&mut target, cell).map_err(Failure::failed)
    }

    /// The lateness of the first member's answers.
    fn lateness(&self) -> Result<Option<Lateness>, Failure> {
        let status = self.host.service.handle().status().map_err(Failure::failed)?;
        Ok(status.drives.first().and_then(|view| view.lateness))
    }
}

/// The limits of a service that must equal the simulated machine: the engine's limits from `parts`, with memory for
/// payload as a service has it.
fn limits(parts: &Limits) -> Limits {
    let usual = Limits::default();
    Limits {
        pool: usual.pool + parts.cache,
        cache: parts.cache,
        dirty_max_percent: parts.dirty_max_percent,
        dirty_high_percent: parts.dirty_high_percent,
        dirty_low_percent: parts.dirty_low_percent,
        destage_delay: parts.destage_delay,
        destage_units_max: parts.destage_units_max,
        destage_units_calm: parts.destage_units_calm,
        destage_zones: parts.destage_zones,
        destage_beside_reads: parts.destage_beside_reads,
        queue_age_max: parts.queue_age_max,
        drive_depth_max: parts.drive_depth_max,
        ..usual
    }
}

fn figures(result: &CellResult) -> Figures {
    let p99_ms = result.histogram().percentile(99.0) as f64 / 1e6;
    Figures { requests: result.requests, iops: result.iops, mean_ms: result.mean_ms(), p99_ms }
}

/// The mean lateness in milliseconds, to the microsecond.
fn late_ms(late: Lateness) -> f64 {
    (late.mean().get() / 1000) as f64 / 1e3
}

/// Were the members too late for their model?
fn is_late(pair: &Pair) -> bool {
    pair.late_ms.is_some_and(|late| late * 100.0 > pair.predicted.mean_ms * LATE_MOST)
}

fn pair(cell: &CellSpec, predicted: &CellResult, measured: &CellResult, late_ms: Option<f64>) -> Pair {
    let (predicted, served) = (figures(predicted), figures(measured));
    let error = |predicted: f64, served: f64| if served > 0.0 { (predicted / served - 1.0) * 100.0 } else { 0.0 };
    Pair {
        reads: cell.axes.rd.unwrap_or(100),
        depth: cell.axes.qd.unwrap_or(1),
        mean_error_percent: error(predicted.mean_ms, served.mean_ms),
        p99_error_percent: error(predicted.p99_ms, served.p99_ms),
        late_ms,
        predicted,
        served,
    }
}

fn text(body: &RehearsalBody) -> String {
    let mut lines = vec![format!("{} of {}: prediction and service", body.array, body.drive)];
    let heads =
        ["READS", "DEPTH", "REQUESTS", "MEAN: PREDICTED", "SERVED", "ERROR", "99 %: PREDICTED", "SERVED", "ERROR"];
    let mut table = TextTable::new(&heads).indented(2);
    let ms = |value: f64| format!("{} ms", figure(value));
    for pair in &body.cells {
        table.row([
            format!("{} %", pair.reads),
            pair.depth.to_string(),
            pair.served.requests.to_string(),
            ms(pair.predicted.mean_ms),
            ms(pair.served.mean_ms),
            format!("{:+.1} %", pair.mean_error_percent),
            ms(pair.predicted.p99_ms),
            ms(pair.served.p99_ms),
            format!("{:+.1} %", pair.p99_error_percent),
        ]);
    }
    lines.push(table.text().trim_end().into());
    lines.push(verdict(body));
    lines.push(format!("  {SAME_MODEL}"));
    lines.extend(body.lateness.iter().map(|line| format!("  {line}")));
    lines.push(format!("{} and {}", body.report, body.results));
    lines.join("\n")
}

/// The verdict: is the prediction within the limits?
fn verdict(body: &RehearsalBody) -> String {
    let aimed = || body.cells.iter().filter(|pair| pair.predicted.mean_ms >= AIMED_FROM_MS);
    if !body.cells.is_empty() && aimed().next().is_none() {
        return format!(
            "  At worst the mean is off by {:+.1} %, the 99th percentile by {:+.1} %: the aim ({MEAN_AIM} % and \
             {P99_AIM} %) is for drives whose answers take {AIMED_FROM_MS} ms and more, and does not apply",
            body.worst_mean_error_percent, body.worst_p99_error_percent
        );
    }
    let late = body.cells.iter().filter(|pair| pair.predicted.mean_ms >= AIMED_FROM_MS && is_late(pair)).count();
    if late > 0 {
        let cells = if late == 1 { "one cell".to_owned() } else { format!("{late} cells") };
        return format!(
            "  NO VERDICT: in {cells} the members' own answers were late by more than {LATE_MOST} % of the predicted mean, \
             because this machine was busy; run it again on a quiet one"
        );
    }
    let (mean, p99) = (worst(aimed(), |pair| pair.mean_error_percent), worst(aimed(), |pair| pair.p99_error_percent));
    let within = |error: f64, aim: f64| if error.abs() <= aim { "within" } else { "NOT within" };
    let few = body.cells.iter().filter(|pair| pair.served.requests < REQUESTS_FOR_P99).count();
    let few = match few {
        0 => String::new(),
        1 => format!("; one cell has fewer than {REQUESTS_FOR_P99} requests, which is few for a 99th percentile"),
        _ => format!("; {few} cells have fewer than {REQUESTS_FOR_P99} requests, which is few for a 99th percentile"),
    };
    format!(
        "  At worst the mean is off by {mean:+.1} % ({} {MEAN_AIM} %), the 99th percentile by {p99:+.1} % ({} {P99_AIM} \
         %){few}",
        within(mean, MEAN_AIM),
        within(p99, P99_AIM)
    )
}

fn page(body: &RehearsalBody, subject: Subject, arguments: &RehearseArguments, library: &Library) -> Review {
    let named = |variant: &str| data::ReportSubject::from(subject).variant(variant);
    let x = ChartAxis::new("outstanding", Unit::None, Scale::Log2);
    let mut review = Review {
        title: format!("{} of {}: prediction and service", body.array, body.drive),
        summary: vec![verdict(body).trim().to_owned(), format!("{SAME_MODEL}.")],
        bed: vec![
            Fact::new("predicted", "the engine on models of drives, host and bus, in virtual time"),
            Fact::new(
                "served",
                "the engine in a server of this machine, members paced by the same models, one NBD client",
            ),
            Fact::new("requests", format!("{}, random, written through", arguments.block)),
            Fact::new("measured", format!("{} s of each cell", arguments.seconds)),
            Fact::new("seed", arguments.seed.to_string()),
            Fact::new("version", build(library)),
        ],
        files: vec![Fact::new("all results", "results.json")],
        ..Review::default()
    };
    review.bed.extend(body.lateness.iter().map(fact));
    for reads in &arguments.reads {
        let mut section = ReportSection {
            method: format!("{reads} % reads"),
            question: format!("Is the prediction right with {reads} % reads?"),
            ..ReportSection::default()
        };
        for (what, of) in [
            ("mean response", (|figures| figures.mean_ms) as fn(&Figures) -> f64),
            ("99th percentile", |figures| figures.p99_ms),
        ] {
            let line = |side: fn(&Pair) -> &Figures, variant: &str| {
                let pairs = body.cells.iter().filter(|pair| pair.reads == *reads);
                let points = pairs.map(|pair| Point::exact(f64::from(pair.depth), of(side(pair)))).collect();
                Series::line(named(variant), points)
            };
            let pairs = [(line(|pair| &pair.predicted, "predicted"), line(|pair| &pair.served, "served"))];
            let y = ChartAxis::new(what, Unit::named("ms"), Scale::Linear).better(data::Better::Lower);
            let (panel, table, found) = predicted_and_measured::compare(
                &format!("{what}, {reads} % reads"),
                &x,
                &y,
                ("predicted", "served"),
                &pairs,
            );
            section.panels.push(panel);
            section.tables.push(table);
            section.findings.extend(found);
        }
        review.sections.push(section);
    }
    review
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Nanos;

    fn body(cells: &[(f64, f64, Option<f64>)]) -> RehearsalBody {
        let figures = |mean_ms| Figures { requests: 2000, iops: 1e3 / mean_ms, mean_ms, p99_ms: mean_ms };
        let pair = |(predicted, served, late_ms): &(f64, f64, Option<f64>)| Pair {
            reads: 100,
            depth: 1,
            predicted: figures(*predicted),
            served: figures(*served),
            mean_error_percent: (predicted / served - 1.0) * 100.0,
            p99_error_percent: 0.0,
            late_ms: *late_ms,
        };
        let cells: Vec<Pair> = cells.iter().map(pair).collect();
        RehearsalBody {
            array: "single".into(),
            drive: "a drive".into(),
            report: String::new(),
            results: String::new(),
            lateness: Vec::new(),
            worst_mean_error_percent: 0.0,
            worst_p99_error_percent: 0.0,
            valid: !cells.iter().any(is_late),
            cells,
        }
    }

    #[test]
    fn lateness_has_the_figure_that_its_text_has() {
        let late = Lateness { answers: 1243, sum: Nanos(1243 * 124_999), most: Nanos(2_100_000) };
        assert_eq!(late.to_string(), "1243 answers, late by 0.124 ms on average, 2.100 ms at most");
        assert_eq!(late_ms(late), 0.124);
        assert_eq!(late_ms(Lateness::default()), 0.0);
    }

    #[test]
    fn late_members_forbid_a_verdict_and_others_do_not() {
        // Predicted 10 ms, served 13 ms: the prediction is wrong, unless the members themselves were late by a
        // millisecond.
        let wrong = body(&[(10.0, 13.0, Some(0.2))]);
        assert!(wrong.valid && verdict(&wrong).contains("NOT within"), "{}", verdict(&wrong));
        let late = body(&[(10.0, 10.1, Some(0.2)), (10.0, 13.0, Some(1.0))]);
        assert!(!late.valid && verdict(&late).starts_with("  NO VERDICT: in one cell"), "{}", verdict(&late));
        assert!(text(&late).contains("tests the service, not the model"));
        // For drives with a latency of microseconds there is no limit, so their lateness does not matter.
        assert!(!verdict(&body(&[(0.1, 0.2, Some(0.1))])).contains("NO VERDICT"));
    }
}
