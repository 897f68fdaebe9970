//! `openraid review`: methods over arrays, into a folder with a report.

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Mutex;

use openraid_lab::cell::{CellSpec, Pattern, Subject};
use openraid_lab::method::{find, methods, Method, Suite};
use openraid_lab::metrics::fio;
use openraid_lab::report;
use openraid_lab::report::assemble;
use openraid_lab::report::data::Fact;
use openraid_lab::review::{Performance, ReviewResults};
use openraid_lab::run::{fingerprint, write_atomically, Store};
use openraid_lab::target::{
    BlockTarget, Choice, Destruction, NbdTarget, NullTarget, RealOptions, SimTarget, Target, TargetError, TargetFacts,
};
use openraid_models::Library;
use serde::Serialize;

use super::Context;
use crate::arguments::ReviewArguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::laboratory::{effort, library};
use crate::output::progress::Progress;
use crate::output::table::Table;

#[derive(Serialize)]
struct Body<'a> {
    target: &'a str,
    report: String,
    results: String,
    cells: usize,
    not_applicable: usize,
    failed: usize,
    refused: Vec<String>,
}

#[derive(Serialize)]
struct ListBody {
    methods: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    id: &'static str,
    name: &'static str,
    title: &'static str,
    question: &'static str,
}

/// Do it.
///
/// # Errors
/// No such method, array or profile; a target that cannot be opened; a folder that cannot be written.
pub fn run(arguments: &ReviewArguments, context: &Context) -> Outcome {
    if arguments.methods == ["list"] {
        return Ok(list(context));
    }
    let methods = chosen(&arguments.methods)?;
    let library = library(arguments.models.as_deref())?;
    let choice = Choice::parse(&arguments.target).map_err(Failure::usage)?;
    let cells = arguments.out.join("cells");
    let stamp = fingerprint(&library);
    let results = match &choice {
        Choice::Simulated(system) => {
            let subjects = arguments.arrays.iter().map(|word| word.parse().map_err(Failure::usage));
            let suite = Suite {
                system: system.clone(),
                subjects: subjects.collect::<Result<Vec<Subject>, Failure>>()?,
                effort: effort(arguments.effort),
                seed: arguments.seed,
            };
            let facts = simulated_facts(&library, system, arguments.seed)?;
            let store = Store::open(&cells, &stamp).map_err(Failure::failed)?;
            let performance = Performance { suite, methods, store: Some(&store), stamp: &stamp };
            simulated(&performance, &library, &facts, arguments.jobs)?
        }
        real => on_real(real, arguments, methods, context)?,
    };
    write(&arguments.out, &results, &page(&choice, &library, &results)?)?;
    Ok(told(&results, &arguments.out, context))
}

fn chosen(words: &[String]) -> Result<Vec<&'static Method>, Failure> {
    if words == ["all"] {
        return Ok(methods().iter().collect());
    }
    let method = |word: &String| {
        find(word).ok_or_else(|| {
            Failure::usage(format!("there is no method {word:?}; `openraid review --methods list` shows them"))
        })
    };
    words.iter().map(method).collect()
}

fn list(context: &Context) -> Exit {
    let listed =
        |method: &Method| Listed { id: method.id, name: method.name, title: method.title, question: method.question };
    let body = ListBody { methods: methods().iter().map(listed).collect() };
    let mut table = Table::new(&["NUMBER", "NAME", "QUESTION"]);
    for method in &body.methods {
        table.row([method.id, method.name, method.question]);
    }
    context.output.answer(Exit::Fine, &body, &table.text())
}

/// The test bed of a simulated system: that of its single drive.
fn simulated_facts(library: &Library, system: &str, seed: u64) -> Result<TargetFacts, Failure> {
    let cell = CellSpec { seed, ..CellSpec::new(system, Subject::Single, Pattern::Database) };
    let spec = openraid_lab::cell::machine_spec(library, &cell).map_err(Failure::usage)?;
    let mut array = spec.clone();
    // Every controller has one level or another.
    if let Some(rule) = array.controller.levels.first() {
        array.array = openraid_sim::timing::machine::ArraySpec::new(rule.level, rule.members_min);
    }
    let target = SimTarget::new(&format!("sim:{system}"), &array, library).map_err(Failure::failed)?;
    let mut facts = target.facts().clone();
    facts.bed.retain(|line| !line.contains("drives:"));
    facts.bed.insert(1, format!("drives: {}", spec.drives[0].head.title));
    Ok(facts)
}

fn simulated(
    performance: &Performance<'_>,
    library: &Library,
    facts: &TargetFacts,
    jobs: Option<usize>,
) -> Result<ReviewResults, Failure> {
    let threads = jobs.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let progress = Mutex::new(Progress::counting("cells", performance.cells().len() as u64));
    let ended = |done: usize| {
        progress.lock().expect("nobody panics with the lock").counted(done as u64);
        true
    };
    let results = performance.simulated(library, facts, threads, ended).map_err(Failure::failed)?;
    results.ok_or_else(|| Failure::failed("interrupted; start it again to go on"))
}

fn on_real(
    choice: &Choice,
    arguments: &ReviewArguments,
    methods: Vec<&'static Method>,
    context: &Context,
) -> Result<ReviewResults, Failure> {
    let destroy =
        if arguments.destroy_data && choice.holds_data() { Some(confirmed(choice, arguments, context)?) } else { None };
    let open = |bytes_max: u32, outstanding: u32| -> Result<Box<dyn Target>, TargetError> {
        let options = RealOptions { outstanding, bytes_max, destroy: destroy.clone(), seed: arguments.seed };
        Ok(match choice {
            Choice::Path(path) => Box::new(BlockTarget::open(path, &options)?),
            Choice::Nbd(uri) => Box::new(NbdTarget::open(uri, &options)?),
            Choice::Null(size) => Box::new(NullTarget::new(*size)),
            Choice::Simulated(_) => unreachable!("a simulated target is no real one"),
        })
    };
    let facts = open(4096, 1).map_err(Failure::cannot_tell)?.facts().clone();
    if arguments.precondition && facts.writable {
        precondition(&mut *open(PRECONDITION_BYTES, PRECONDITION_DEPTH).map_err(Failure::failed)?)?;
    }
    let suite = Suite {
        system: facts.name.clone(),
        subjects: vec![Subject::Single],
        effort: Performance::real_effort(arguments.seconds),
        seed: arguments.seed,
    };
    let stamp = format!("{} real", env!("CARGO_PKG_VERSION"));
    let store = Store::open(&arguments.out.join("cells"), &stamp).map_err(Failure::failed)?;
    let performance = Performance { suite, methods, store: Some(&store), stamp: &stamp };
    let fit = performance.methods.iter().filter(|method| method.refusal(&facts).is_none());
    let total: usize = fit.map(|method| method.cells(&performance.suite).len()).sum();
    let progress = Progress::counting("cells", total as u64);
    performance.real(&facts, open, |done| progress.counted(done as u64)).map_err(Failure::failed)
}

/// Requests of the writes that fill a target.
const PRECONDITION_BYTES: u32 = 128 << 10;
/// Outstanding ones.
const PRECONDITION_DEPTH: u32 = 32;
/// How often it is filled: what the SSD test specification of the storage networking industry asks for.
const PRECONDITION_ROUNDS: u64 = 2;

fn precondition(target: &mut dyn Target) -> Result<(), Failure> {
    let capacity = target.facts().capacity.get();
    let progress = Progress::new("filling", capacity * PRECONDITION_ROUNDS);
    openraid_lab::run::fill(target, PRECONDITION_BYTES, PRECONDITION_DEPTH, PRECONDITION_ROUNDS, |bytes| {
        progress.at(bytes);
    })
    .map_err(Failure::failed)
}

/// The target's name, typed.
fn confirmed(choice: &Choice, arguments: &ReviewArguments, context: &Context) -> Result<Destruction, Failure> {
    if let Some(name) = &arguments.name {
        return Destruction::confirmed(choice, name).map_err(Failure::usage);
    }
    let name = choice.short_name();
    context.output.warn(&format!(
        "ALL DATA on {} will be lost. Type its name ({name}) to go on, anything else to stop:",
        arguments.target
    ));
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed).map_err(Failure::failed)?;
    Destruction::confirmed(choice, &typed).map_err(Failure::usage)
}

/// The report as a page.
fn page(choice: &Choice, library: &Library, results: &ReviewResults) -> Result<String, Failure> {
    let (mut bed, ceilings) = match choice {
        Choice::Simulated(system) => {
            let cell = CellSpec { seed: results.seed, ..CellSpec::new(system, Subject::Single, Pattern::Database) };
            let bed = assemble::bed(library, &cell).map_err(Failure::usage)?;
            (bed, assemble::limits(library, system).map_err(Failure::usage)?)
        }
        _ => (results.bed.iter().map(|line| fact(line)).collect(), Vec::new()),
    };
    bed.extend(results.rules.iter().map(|(id, text)| Fact::new(id.clone(), text.clone())));
    let title = format!("Review of {}", results.target);
    let mut review = assemble::review(&title, bed, &results.chapters(), &ceilings);
    review.files = vec![Fact::new("all results", "results.json"), Fact::new("in fio's shape", "fio.json")];
    Ok(report::render(&review))
}

fn fact(line: &str) -> Fact {
    match line.split_once(": ") {
        Some((name, value)) => Fact::new(name, value),
        None => Fact::new("note", line),
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

fn told(results: &ReviewResults, folder: &Path, context: &Context) -> Exit {
    let cells = || results.methods.iter().flat_map(|method| &method.cells);
    let absent = |not_applicable: bool| {
        let found = cells().filter_map(|known| known.outcome.absence());
        found.filter(|absence| absence.not_applicable == not_applicable).count()
    };
    let refused = results.methods.iter().filter_map(|method| {
        let reason = method.refusal.as_ref()?;
        Some(format!("{} {}: not applicable: {reason}", method.id, method.title))
    });
    let path = |name: &str| folder.join(name).display().to_string();
    let body = Body {
        target: &results.target,
        report: path("report.html"),
        results: path("results.json"),
        cells: cells().count(),
        not_applicable: absent(true),
        failed: absent(false),
        refused: refused.collect(),
    };
    let mut text = format!(
        "{} cells of {}; {} not applicable, {} failed\n{}",
        body.cells, body.target, body.not_applicable, body.failed, body.report
    );
    for line in &body.refused {
        text.push('\n');
        text.push_str(line);
    }
    let exit = if body.failed > 0 { Exit::Failed } else { Exit::Fine };
    context.output.answer(exit, &body, &text)
}
