//! `openraid-lab review`: measures methods over arrays, and writes the results and a report to a folder.

mod blank_devices;
mod made_arrays;
mod ranking;
mod real_target;
mod served_array;
mod served_target;
mod several_targets;
mod side_by_side;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Mutex;

use openraid_methods::cell::{Axes, CellSpec, Pattern, Subject};
use openraid_methods::method::{find, methods, rules, Method, Suite, OWN};
use openraid_methods::metrics::fio;
use openraid_methods::reader::RequestTrace;
use openraid_methods::report;
use openraid_methods::report::assemble;
use openraid_methods::report::data::Fact;
use openraid_methods::review::{Ended, Performance, ReviewResults};
use openraid_methods::run::{build, fingerprint, write_atomically, CellStore};
use openraid_methods::target::{BedLine, BedName, Choice, SimTarget, Target, TargetFacts};
use openraid_models::Library;
use serde::Serialize;

use super::compare;
use crate::arguments::{EffortWord, ReviewArguments};
use crate::shared_parts::{
    drive_fits, effort, library, load, machine, may_be_written, refused, state_fits, ChosenLoad,
};
use openraid::failure::{Exit, Failure, Outcome};
use openraid::output::progress::WorkProgress;
use openraid::output::table::TextTable;
use openraid::verb::Context;

/// Arrays of a simulated target if `--arrays` is not given.
const ARRAYS: [&str; 4] = ["single", "raid0x4", "raid10x4", "raid5x4"];
/// Methods if `--methods` is not given.
const METHODS: [&str; 4] = ["response-time", "sequential", "database", "file-server"];

/// Maximum number of reported reasons for cells without a result. The results have all reasons.
const REASONS_MAX: usize = 5;

/// The task: methods and a load.
#[derive(Clone)]
struct ReviewTask {
    methods: Vec<&'static Method>,
    /// A load that the user specified.
    given: Option<(Pattern, Axes)>,
    /// The requests of this load, if it is a trace.
    trace: Option<RequestTrace>,
}

impl ReviewTask {
    /// The review of a target by these methods.
    fn performance<'a>(&'a self, suite: Suite, store: &'a CellStore, stamp: &'a str) -> Performance<'a> {
        let (methods, trace) = (self.methods.clone(), self.trace.as_ref());
        Performance { suite, methods, trace, store: Some(store), stamp, shard: None, beside: None, remade: false }
    }
}

/// The result of a review.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ReviewBody<'a> {
    /// The target, as it was named on the command line.
    target: &'a str,
    /// Path of the report.
    report: String,
    /// Path of the results.
    results: String,
    /// Number of cells that were measured.
    cells: usize,
    /// Number of cells in other parts of the review.
    left: usize,
    /// Number of cells that do not apply.
    not_applicable: usize,
    /// Number of cells whose measurement failed.
    failed: usize,
    /// Methods that do not apply, with the reason.
    refused: Vec<String>,
    /// Why cells have no result, the most frequent reason first.
    absent: Vec<Absent<'a>>,
    /// Arrays by the chosen rating, the best first in each method.
    ranking: Vec<ranking::Ranked>,
    /// A summary in sentences: the order of the arrays, the best one for each use, figures to distrust.
    brief: Vec<String>,
    /// The verdict on each use of arrays.
    verdicts: Vec<Verdict>,
}

impl ReviewBody<'_> {
    /// The brief and the verdicts as lines, after an empty line.
    fn judgement(&self) -> Vec<String> {
        let verdicts = self.verdicts.iter().map(|verdict| format!("{}: {}", verdict.scenario, verdict.text));
        let lines: Vec<String> = self.brief.iter().cloned().chain(verdicts).collect();
        if lines.is_empty() {
            return lines;
        }
        std::iter::once(String::new()).chain(lines).collect()
    }
}

/// The best array for a use, with the reason.
#[derive(Serialize, utoipa::ToSchema)]
struct Verdict {
    /// The use, such as `File server`.
    scenario: String,
    /// The order of the arrays for this use and the reason, in sentences.
    text: String,
}

/// Cells that were not measured for the same reason.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = AbsentCells)]
struct Absent<'a> {
    /// Does it make no sense here? Otherwise it failed.
    not_applicable: bool,
    /// Why these cells were not measured, in a sentence.
    reason: &'a str,
    /// Number of these cells.
    cells: usize,
}

/// All methods and rules.
#[derive(Serialize, utoipa::ToSchema)]
pub struct MethodsBody {
    /// The methods of reviews.
    methods: Vec<Listed>,
    /// Rules that hold for all methods.
    rules: Vec<Rule>,
}

/// A rule of measuring.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = MethodRule)]
struct Rule {
    /// Number of the rule, such as `M19`.
    id: &'static str,
    /// The rule in a sentence.
    text: &'static str,
}

/// A method.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Method)]
struct Listed {
    /// Number of the method, such as `M01`.
    id: &'static str,
    /// Name of the method on the command line.
    name: &'static str,
    /// Title of the method in reports.
    title: &'static str,
    /// The question that the method answers.
    question: &'static str,
}

/// Runs the verb.
///
/// # Errors
/// A method, array, load or profile does not exist; a target cannot be opened; the folder cannot be written, or has the
/// review of another target.
pub fn run(arguments: &ReviewArguments, context: &Context) -> Outcome {
    if arguments.methods.as_ref().is_some_and(|words| words.iter().any(|word| word == "list")) {
        return Ok(list(context));
    }
    shard_fits(arguments)?;
    let wanted = wanted(arguments)?;
    let library = library(arguments.models.as_deref())?;
    let mut results = if several_targets::is_wanted(arguments) {
        several_targets::review(arguments, &wanted, &library, context)?
    } else {
        one(arguments, &wanted, &library, context)?
    };
    results.rank = arguments.rank;
    Ok(answer_of(&results, &arguments.out, context))
}

/// Only a simulated target can have parts, because a real one is measured in one place.
fn shard_fits(arguments: &ReviewArguments) -> Result<(), Failure> {
    let Some(shard) = arguments.shard else { return Ok(()) };
    let simulated = matches!(Choice::parse(target(arguments)), Ok(Choice::Simulated(_)));
    if several_targets::is_wanted(arguments) || !simulated {
        return Err(Failure::usage(format!("--shard {shard}: give one simulated target, as in --target sim:openraid")));
    }
    Ok(())
}

/// The target of a review with a single target.
fn target(arguments: &ReviewArguments) -> &str {
    arguments.target.first().map_or("sim:openraid", String::as_str)
}

/// Reviews one target and writes the results to its folder.
fn one(
    arguments: &ReviewArguments,
    wanted: &ReviewTask,
    library: &Library,
    context: &Context,
) -> Result<ReviewResults, Failure> {
    let choice = Choice::parse(target(arguments)).map_err(Failure::usage)?;
    let mut results = match &choice {
        Choice::Simulated(system) => simulated(system, arguments, wanted, library)?,
        real => real_target::review(real, arguments, wanted, context)?,
    };
    results.rank = arguments.rank;
    let machine = simulated_machine(arguments)?;
    write(&arguments.out, &results, &page(&choice, library, &machine, &results)?)?;
    Ok(results)
}

/// The simulated machine. Its journal is on one device or on two that hold the same.
fn simulated_machine(arguments: &ReviewArguments) -> Result<Axes, Failure> {
    let journal = Some(arguments.journal.join("+")).filter(|words| !words.is_empty());
    Ok(Axes { journal, ..machine(&arguments.machine)? })
}

fn wanted(arguments: &ReviewArguments) -> Result<ReviewTask, Failure> {
    let asked = arguments.load.as_deref().map(|word| load(word, arguments.job.as_deref(), Axes::default()));
    let (given, trace) = match asked.transpose()? {
        Some(ChosenLoad { pattern, axes, trace, .. }) => (Some((pattern, axes)), trace),
        None => (None, None),
    };
    let mut methods = match &arguments.methods {
        Some(words) => chosen(words.iter().map(String::as_str))?,
        None if given.is_some() => Vec::new(),
        None => chosen(METHODS.into_iter())?,
    };
    methods.retain(|method| method.id != OWN.id);
    if given.is_some() {
        methods.insert(0, &OWN);
    }
    if methods.is_empty() {
        return Err(Failure::usage(format!("{} needs a load: name one with --load", OWN.name)));
    }
    Ok(ReviewTask { methods, given, trace })
}

fn chosen<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Result<Vec<&'static Method>, Failure> {
    let all = words.clone().any(|word| word == "all");
    let method = |word: &str| {
        find(word).ok_or_else(|| match rules().iter().find(|(id, _)| id.eq_ignore_ascii_case(word)) {
            Some((id, text)) => Failure::usage(format!(
                "{id} is a rule that holds for every method, none by itself; leave it out: {text}"
            )),
            None => {
                Failure::usage(format!("there is no method {word:?}; `openraid-lab review --methods list` shows them"))
            }
        })
    };
    let named = words.filter(|word| *word != "all").map(method).collect::<Result<Vec<&Method>, Failure>>()?;
    Ok(if all { methods().iter().collect() } else { named })
}

/// May the results of a target be written to a folder? The folder must be empty, or have a review of the same target.
/// For a simulated target the test bed must also be the same.
fn guard(folder: &Path, target: &str, bed: Option<&[BedLine]>) -> Result<(), Failure> {
    let path = folder.join("results.json");
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let other = folder.join("fio.json");
            if other.exists() {
                let text = format!(
                    "{}: it does not belong to a review, and would be lost; name another folder",
                    other.display()
                );
                return Err(Failure::refused(text));
            }
        }
        _ => {
            let known = compare::read(&path)
                .map_err(|error| Failure::refused(format!("{error}; nothing is replaced: name another folder")))?;
            if known.target != target {
                return Err(Failure::refused(format!(
                    "{}: it holds a review of {}, not of {target}; name another folder",
                    folder.display(),
                    known.target
                )));
            }
            if bed.is_some_and(|bed| known.bed != bed) {
                return Err(Failure::refused(format!(
                    "{}: it holds a review of {target} with other drives, in another state, or with another bus, cache or chunk; name another folder",
                    folder.display()
                )));
            }
        }
    }
    may_be_written(&folder.join("report.html"))
}

fn list(context: &Context) -> Exit {
    let listed = |method: &Method| Listed {
        id: method.id,
        name: method.name.word(),
        title: method.title,
        question: method.question,
    };
    let body = MethodsBody {
        methods: methods().iter().chain([&OWN]).map(listed).collect(),
        rules: rules().iter().map(|(id, text)| Rule { id, text }).collect(),
    };
    let mut table = TextTable::new(&["NUMBER", "NAME", "QUESTION"]);
    for method in &body.methods {
        table.row([method.id, method.name, method.question]);
    }
    let rules = body.rules.iter().map(|rule| format!("{}  {}", rule.id, rule.text));
    let rules: Vec<String> = std::iter::once("\nRules that hold for every method:".to_owned()).chain(rules).collect();
    context.output.answer(Exit::Fine, &body, &format!("{}{}", table.text(), rules.join("\n")))
}

/// The single drive of a simulated machine, for its test bed.
fn of_machine(system: &str, machine: &Axes, seed: u64) -> CellSpec {
    CellSpec { seed, ..CellSpec::new(system, Subject::Single, Pattern::Database).with(machine.clone()) }
}

/// The test bed of a simulated system: that of its single drive.
fn simulated_facts(library: &Library, system: &str, machine: &Axes, seed: u64) -> Result<TargetFacts, Failure> {
    let cell = of_machine(system, machine, seed);
    let spec = openraid_methods::cell::machine_spec(library, &cell).map_err(refused)?;
    let mut array = spec.clone();
    // Every controller has at least one level.
    if let Some(rule) = array.controller.levels.first() {
        let chunk = array.array.chunk;
        array.array = openraid_sim::machine::ArraySpec::new(rule.level, rule.members_min);
        array.array.chunk = chunk;
    }
    let target = SimTarget::new(&format!("sim:{system}"), &array, library).map_err(Failure::failed)?;
    let mut facts = target.facts().clone();
    facts.bed.retain(|line| !matches!(line.name, Some(BedName::ArrayDrives(_))));
    facts.bed.insert(1, BedLine::new(BedName::Drives, &spec.drives[0].head.title));
    // The single drive of this test bed has none.
    facts.bed.extend(machine.journal.as_ref().map(|journal| format!("journal of the arrays: {journal}").into()));
    Ok(facts)
}

fn simulated(
    system: &str,
    arguments: &ReviewArguments,
    wanted: &ReviewTask,
    library: &Library,
) -> Result<ReviewResults, Failure> {
    let real_only = [
        ("seconds", arguments.seconds.is_some()),
        ("destroy-data", arguments.destroy_data),
        ("precondition", arguments.precondition),
    ];
    if let Some((option, _)) = real_only.into_iter().find(|(_, given)| *given) {
        let text = format!("--{option} is for real targets; {} is simulated: leave it out", target(arguments));
        return Err(Failure::usage(text));
    }
    let default = || ARRAYS.iter().map(|word| (*word).to_owned()).collect();
    let words: Vec<String> = arguments.arrays.clone().unwrap_or_else(default);
    let subjects = words.iter().map(|word| word.parse().map_err(Failure::usage));
    let subjects = subjects.collect::<Result<Vec<Subject>, Failure>>()?;
    let amount = effort(arguments.effort.unwrap_or(EffortWord::Normal));
    let machine = simulated_machine(arguments)?;
    drive_fits(library, system, &machine)?;
    let facts = simulated_facts(library, system, &machine, arguments.seed)?;
    let suite = Suite {
        repeat: arguments.repeat,
        given: wanted.given.clone(),
        machine,
        ..Suite::new(system, subjects, amount, arguments.seed)
    };
    let cells: Vec<CellSpec> = wanted.methods.iter().flat_map(|method| method.cells(&suite)).collect();
    for cell in &cells {
        cell.check().map_err(|error| refused(error.into()))?;
    }
    state_fits(library, cells.iter())?;
    guard(&arguments.out, &facts.name, Some(&facts.bed))?;
    let stamp = fingerprint(library);
    let store = CellStore::open(&arguments.out.join("cells"), &stamp).map_err(Failure::failed)?;
    let performance = Performance { shard: arguments.shard, ..wanted.performance(suite, &store, &stamp) };
    let threads = arguments.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, Into::into);
    let progress = Mutex::new(WorkProgress::counting("cells", performance.cells(&facts).len() as u64));
    let ended = |ended: Ended| {
        let progress = progress.lock().expect("no thread panics with the lock");
        progress.counted_of_which_idle(ended.cells as u64, ended.idle as u64);
    };
    performance.simulated(library, &facts, threads, ended).map_err(Failure::failed)
}

/// The report as a page.
fn page(choice: &Choice, library: &Library, machine: &Axes, results: &ReviewResults) -> Result<String, Failure> {
    let (mut bed, ceilings) = match choice {
        Choice::Simulated(system) => {
            let cell = of_machine(system, machine, results.seed);
            let bed = assemble::bed(library, &cell).map_err(refused)?;
            (bed, assemble::limits(library, &cell).map_err(refused)?)
        }
        _ => (bed_facts(library, results), Vec::new()),
    };
    bed.extend(results.rules.iter().map(|(id, text)| Fact::new(id.clone(), text.clone())));
    let title = format!("Review of {}", results.target);
    let mut review = assemble::review(&title, bed, &results.chapters(), &ceilings);
    review.files = vec![Fact::new("all results", "results.json"), Fact::new("in fio's shape", "fio.json")];
    Ok(report::render(&review))
}

/// Joins parts of a review into a folder, with the report of the whole review.
///
/// # Errors
/// The parts do not belong to one review, or the folder has other files.
pub(super) fn join_into(folder: &Path, parts: Vec<ReviewResults>, library: &Library, context: &Context) -> Outcome {
    let machine = parts.first().and_then(|part| part.part.clone()).map(|part| part.machine).unwrap_or_default();
    let results = openraid_methods::review::join(parts).map_err(Failure::usage)?;
    guard(folder, &results.target, Some(&results.bed))?;
    std::fs::create_dir_all(folder).map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
    let choice = Choice::parse(&results.target).map_err(Failure::usage)?;
    write(folder, &results, &page(&choice, library, &machine, &results)?)?;
    Ok(answer_of(&results, folder, context))
}

fn bed_facts(library: &Library, results: &ReviewResults) -> Vec<Fact> {
    let version = Fact::new("version", build(library));
    results.bed.iter().map(fact).chain([version]).collect()
}

/// A line of the test bed for a report.
pub(super) fn fact(line: &BedLine) -> Fact {
    match &line.name {
        Some(name) => Fact::new(name.to_string(), &line.value),
        None => Fact::new("note", &line.value),
    }
}

fn write(folder: &Path, results: &ReviewResults, page: &str) -> Result<(), Failure> {
    let json = serde_json::to_string(results).expect("results are words and numbers");
    let all: Vec<_> = results.results().collect();
    let fio = serde_json::to_string_pretty(&fio::document(&all)).expect("results are words and numbers");
    for (name, text) in [("results.json", json), ("fio.json", fio), ("report.html", page.to_owned())] {
        write_atomically(&folder.join(name), text.as_bytes()).map_err(Failure::failed)?;
    }
    Ok(())
}

fn answer_of(results: &ReviewResults, folder: &Path, context: &Context) -> Exit {
    let all = || results.methods.iter().flat_map(|method| &method.cells);
    let cells = || all().filter(|known| !known.is_left());
    let absent = |not_applicable: bool| {
        let found = cells().filter_map(|known| known.outcome.absence());
        found.filter(|absence| absence.not_applicable == not_applicable).count()
    };
    let refused = results.methods.iter().filter_map(|method| {
        let reason = method.refusal.as_ref()?;
        Some(format!("{} {}: not applicable: {reason}", method.id, method.title))
    });
    let path = |name: &str| folder.join(name).display().to_string();
    let mut page = report::data::Review::default();
    assemble::judge(&mut page, &results.chapters());
    let verdict = |fact: Fact| Verdict { scenario: fact.name, text: fact.value };
    let body = ReviewBody {
        target: &results.target,
        report: path("report.html"),
        results: path("results.json"),
        cells: cells().count(),
        left: all().count() - cells().count(),
        not_applicable: absent(true),
        failed: absent(false),
        refused: refused.collect(),
        absent: reasons(results),
        ranking: ranking::of(results),
        brief: page.brief,
        verdicts: page.verdicts.into_iter().map(verdict).collect(),
    };
    let mut lines = vec![
        format!(
            "{} of {}; {} not applicable, {} failed",
            counted(body.cells),
            body.target,
            body.not_applicable,
            body.failed
        ),
        body.report.clone(),
    ];
    if let Some(part) = &results.part {
        lines.push(format!(
            "part {}: {} left to others; `openraid-lab merge` joins all parts",
            part.shard,
            counted(body.left)
        ));
    }
    let cost = results.bed.iter().filter(|line| line.is(&BedName::GeneratorCost));
    lines.extend(cost.map(ToString::to_string));
    lines.extend(body.refused.iter().cloned());
    lines.extend(body.absent.iter().take(REASONS_MAX).map(|absent| {
        let what = if absent.not_applicable { "not applicable" } else { "failed" };
        format!("{} {what}: {}", counted(absent.cells), absent.reason)
    }));
    if body.absent.len() > REASONS_MAX {
        lines.push(format!("all {} reasons are in {}", body.absent.len(), body.results));
    }
    lines.extend(ranking::text(&body.ranking, results));
    lines.extend(body.judgement());
    let method = results.methods.iter().find(|method| method.id == OWN.id);
    let own_is_missing = body.left == 0
        && method.is_some_and(|method| method.cells.iter().all(|known| known.outcome.result().is_none()));
    let exit = match (body.failed, own_is_missing) {
        (0, false) => Exit::Fine,
        // No run failed: none of these targets can have the requested load. `simulate` and `plan` refuse it in the same
        // way.
        (0, true) => Exit::Refused,
        _ => Exit::Error,
    };
    context.output.answer(exit, &body, &lines.join("\n"))
}

fn counted(cells: usize) -> String {
    if cells == 1 {
        "1 cell".into()
    } else {
        format!("{cells} cells")
    }
}

/// The reasons why cells have no result. Equal reasons are counted together, the most frequent first.
fn reasons(results: &ReviewResults) -> Vec<Absent<'_>> {
    let cells = results.methods.iter().flat_map(|method| &method.cells).filter(|known| !known.is_left());
    let mut found: Vec<Absent<'_>> = Vec::new();
    for absence in cells.filter_map(|known| known.outcome.absence()) {
        let (not_applicable, reason) = (absence.not_applicable, absence.reason.as_str());
        match found.iter_mut().find(|known| known.not_applicable == not_applicable && known.reason == reason) {
            Some(known) => known.cells += 1,
            None => found.push(Absent { not_applicable, reason, cells: 1 }),
        }
    }
    // Failures come before cells that do not apply.
    found.sort_by_key(|absent| (absent.not_applicable, std::cmp::Reverse(absent.cells)));
    found
}
