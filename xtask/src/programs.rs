//! Test programs, several at once. `cargo test` runs one after the other, and most of them wait: for a guest kernel, for a
//! server, for a clock of the protocol.

use crate::step::{at_root, cargo_messages, judging, nice, Outcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{read, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// A program that is to run.
pub struct Program {
    pub package: String,
    /// Its name for a person.
    pub title: String,
    /// Its file.
    pub path: PathBuf,
    pub arguments: Vec<String>,
    /// The folder of its package, for a test program: the program runs there, and its environment names the folder, as under
    /// `cargo test`. Others run in the root.
    pub folder: Option<PathBuf>,
    /// The file for what it prints.
    pub log: PathBuf,
}

/// Programs that run at once on each processor: two that wait, and one that computes.
const EACH_PROCESSOR: usize = 3;
/// The packages whose tests run guests, servers and other programs: they wait for most of their time, and look at the clock.
const WAITING: [&str; 7] = ["interop", "nbd", "openraid", "openraid-lab", "oracle", "runtime", "sys"];
/// How far other packages' programs, and compilers, step back for them. They would take most of a processor otherwise, with more
/// threads, and a guest would take twice as long for the same work.
const STEP_BACK: &str = "10";
/// The end of the title of a program that several files share.
const SHARED: &str = ": tests/all.rs";
/// The programs that take a minute and more: none of them should be the last one that runs. The longest come first.
const LONG: [&str; 12] = [
    "openraid: tests/holders.rs",
    "openraid: tests/taken_by_md.rs",
    "interop: tests/both_ways.rs",
    "openraid: tests/pulled.rs",
    "openraid: tests/old_arrays.rs",
    "openraid-lab: tests/all/laboratory.rs",
    "openraid: tests/all/sinks.rs",
    "openraid: lib openraid",
    "openraid: tests/thin_pool.rs",
    "interop: tests/journal.rs",
    "interop: tests/forms.rs",
    "sim: tests/fault_swarm.rs",
];

/// Builds of test programs, and other programs that run with them.
pub struct TestRun<'a> {
    /// The arguments of cargo that build test programs.
    pub build: &'a [&'a str],
    /// Whether that build judges the sources as clippy does: the first package with a fault ends it, and no further test starts.
    pub judges: bool,
    /// Is a test program of this package run?
    pub runs: &'a dyn Fn(&str) -> bool,
    /// The other programs of that build that tests start: no test starts before all of them are there.
    pub started_by_tests: Vec<String>,
    /// Programs that wait for the end of that build.
    pub after_build: Vec<Program>,
}

/// Programs that wait for their turn. More come while cargo builds them.
#[derive(Default)]
struct Queue {
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Default)]
struct Line {
    programs: VecDeque<Program>,
    is_complete: bool,
}

/// The end of the queue that a program is taken from.
#[derive(Clone, Copy)]
enum End {
    Front,
    Back,
}

impl Queue {
    /// Packages that wait stand in front and packages that compute at the back, with the long programs of each at that end.
    fn add(&self, more: Vec<Program>) {
        let mut line = self.line();
        line.programs.extend(more);
        line.programs.make_contiguous().sort_by_cached_key(|program| {
            let nth = LONG.iter().position(|title| *title == program.title).unwrap_or(LONG.len());
            let rank = if program.waits() { (0, nth) } else { (1, LONG.len() - nth) };
            (rank, program.title.clone())
        });
        drop(line);
        self.changed.notify_all();
    }

    /// Nothing that waits will run.
    fn clear(&self) {
        self.line().programs.clear();
    }

    /// No more will come.
    fn complete(&self) {
        self.line().is_complete = true;
        self.changed.notify_all();
    }

    /// The next one from this end. Waits until there is one, or until no more will come.
    fn next(&self, end: End) -> Option<Program> {
        let line = self.changed.wait_while(self.line(), |line| line.programs.is_empty() && !line.is_complete);
        let mut line = line.expect("no thread panics with it");
        match end {
            End::Front => line.programs.pop_front(),
            End::Back => line.programs.pop_back(),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("no thread panics with it")
    }
}

impl Program {
    fn waits(&self) -> bool {
        WAITING.contains(&&*self.package)
    }
}

/// Build test programs and run them, several at once, each as soon as it is there. What each prints comes as a whole when it has
/// ended. One that fails stops no other one.
pub fn run_programs(work: TestRun<'_>, environment: &[(&str, &str)]) -> Outcome {
    let queue = Queue::default();
    let failed = Mutex::new(Vec::new());
    let at_once = std::thread::available_parallelism().map_or(2, usize::from) * EACH_PROCESSOR;
    // Threads by hand: this program has none of the crates that it checks.
    std::thread::scope(|scope| {
        for number in 0..at_once {
            // From both ends, so that programs that compute fill the time in which others wait.
            let end = if number % EACH_PROCESSOR == 0 { End::Back } else { End::Front };
            let (queue, failed) = (&queue, &failed);
            scope.spawn(move || {
                while let Some(program) = queue.next(end) {
                    if let Err(why) = run(&program, environment) {
                        failed.lock().expect("no thread panics with it").push(why);
                    }
                }
            });
        }
        let built = build(work, &queue);
        if built.is_err() {
            queue.clear();
        }
        queue.complete();
        built
    })?;
    let failed = failed.into_inner().expect("no thread panics with it");
    if failed.is_empty() {
        return Ok(());
    }
    Err(failed.join("; "))
}

/// Build, and bring each program into the queue as soon as it may run.
fn build(work: TestRun<'_>, queue: &Queue) -> Outcome {
    let mut missing: BTreeSet<String> = work.started_by_tests.into_iter().collect();
    let mut held = Vec::new();
    let mut count = 0;
    let mut faults = 0;
    let environment = if work.judges { judging().to_vec() } else { Vec::new() };
    cargo_messages(STEP_BACK, work.build, &environment, |message| {
        faults += usize::from(is_fault(message));
        // A package's faults come before its file.
        if work.judges && faults > 0 && message["reason"] == "compiler-artifact" {
            return Err(format!("{faults} faults in the sources, see above"));
        }
        if let Some(program) = program(message) {
            let parts = if (work.runs)(&program.package) { parts(program)? } else { Vec::new() };
            count += parts.len();
            held.extend(parts);
        } else if !message["executable"].is_null() {
            missing.remove(message["target"]["name"].as_str().unwrap_or_default());
        }
        if missing.is_empty() {
            queue.add(std::mem::take(&mut held));
        }
        Ok(())
    })?;
    if !missing.is_empty() {
        return Err(format!("not built, and tests start it: {missing:?}"));
    }
    println!("{count} test programs");
    queue.add(work.after_build);
    Ok(())
}

/// Does a message of cargo's show a lint's warning? Dependencies have none: cargo has their warnings off.
fn is_fault(message: &serde_json::Value) -> bool {
    message["reason"] == "compiler-message" && message["message"]["code"]["code"].is_string()
}

/// The test program that a message of cargo names.
fn program(message: &serde_json::Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let (kind, name) = (message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
    // A benchmark is built as a test.
    if message["profile"]["test"] != true || kind == "bench" {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let package = folder.file_name()?.to_str()?.to_owned();
    let title =
        if kind == "test" { format!("{package}: tests/{name}.rs") } else { format!("{package}: {kind} {name}") };
    let log = path.with_extension("log");
    Some(Program { package, title, path, arguments: Vec::new(), folder: Some(folder), log })
}

/// A program with a module for each file is run once for each of them: a process keeps its files apart, and the long ones can be begun
/// first.
fn parts(program: Program) -> Result<Vec<Program>, String> {
    let Program { package, title, path, folder, .. } = &program;
    if !title.ends_with(SHARED) {
        return Ok(vec![program]);
    }
    let output = Command::new(path).arg("--list").output();
    let output = output.map_err(|error| format!("{title} does not start: {error}"))?;
    let list = String::from_utf8_lossy(&output.stdout);
    let parts = modules(&list).into_iter().map(|(module, tests)| Program {
        package: package.clone(),
        title: format!("{package}: tests/all/{module}.rs"),
        path: path.clone(),
        arguments: ["--exact".to_owned()].into_iter().chain(tests).collect(),
        folder: folder.clone(),
        log: path.with_extension(format!("{module}.log")),
    });
    Ok(parts.collect())
}

/// The modules of a test program's list, each with its tests.
fn modules(list: &str) -> BTreeMap<&str, Vec<String>> {
    let mut modules = BTreeMap::<_, Vec<_>>::new();
    for test in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        modules.entry(test.split_once("::").map_or("main", |(module, _)| module)).or_default().push(test.to_owned());
    }
    modules
}

/// Run one, its two outputs in one file, in the order in which they were written.
fn run(program: &Program, environment: &[(&str, &str)]) -> Outcome {
    let Program { title, path, arguments, folder, log, .. } = program;
    println!("     Running {title}");
    let fault = |error| format!("{title}: {}: {error}", log.display());
    let file = File::create(log).map_err(fault)?;
    let start = Instant::now();
    let mut command = if program.waits() { at_root(path) } else { nice(STEP_BACK, path) };
    if let Some(folder) = folder {
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    }
    command.args(arguments).envs(environment.iter().copied());
    command.stdout(file.try_clone().map_err(fault)?).stderr(file);
    let status = command.status().map_err(|error| format!("{title} does not start: {error}"))?;
    let text = read(log).map_err(fault)?;
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "\n---- {title}, {:.1} s ----", start.elapsed().as_secs_f64())
        .and_then(|()| out.write_all(&text))
        .and_then(|()| out.flush());
    written.map_err(fault)?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{title} ended with {status}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(end: End, titles: &[&str]) -> Vec<String> {
        let queue = Queue::default();
        for title in titles {
            let package = title.split(':').next().unwrap_or_default().to_owned();
            let (path, log) = (PathBuf::from(title), PathBuf::new());
            let arguments = Vec::new();
            queue.add(vec![Program { package, title: (*title).into(), path, arguments, folder: None, log }]);
        }
        queue.complete();
        std::iter::from_fn(|| queue.next(end)).map(|program| program.title).collect()
    }

    #[test]
    fn long_programs_come_first_at_their_end_whenever_they_are_built() {
        let (swarm, holders, taken) =
            ("sim: tests/fault_swarm.rs", "openraid: tests/holders.rs", "openraid: tests/taken_by_md.rs");
        let titles = ["openraid: tests/full.rs", swarm, taken, "core: lib openraid_core", holders];
        let front = [holders, taken, "openraid: tests/full.rs", "core: lib openraid_core", swarm];
        assert_eq!(order(End::Front, &titles), front);
        assert_eq!(order(End::Back, &titles), front.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn each_module_of_a_shared_program_has_its_own_tests() {
        let found = modules("a::x: test\nab::y: test\na::deep::z: test\nc: test\n\n4 tests, 0 benchmarks\n");
        let found: Vec<_> = found.into_iter().collect();
        let tests = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(found, [("a", tests(&["a::x", "a::deep::z"])), ("ab", tests(&["ab::y"])), ("main", tests(&["c"]))]);
    }
}
