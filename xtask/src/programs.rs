//! Test programs, several at once. `cargo test` runs one after the other, and most of them wait: for a guest kernel, for a
//! server, for a clock of the protocol.

use crate::step::{cargo_messages, Outcome};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{read, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// A program that is to run.
pub struct Program {
    /// Its package.
    pub package: String,
    /// Its name for a person.
    pub title: String,
    /// Its file.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder that it is to run in.
    pub folder: PathBuf,
    /// The file for what it prints.
    pub log: PathBuf,
}

/// Programs that run at once on each processor: one that waits, and one that computes.
const EACH_PROCESSOR: usize = 2;
/// The packages whose tests wait for most of their time.
const WAITING: [&str; 5] = ["interop", "nbd", "openraid", "oracle", "runtime"];
/// The end of the title of a program that several files share.
const SHARED: &str = ": tests/all.rs";
/// The programs that take a minute and more: none of them should be the last one that runs.
const LONG: [&str; 11] = [
    "interop: tests/both_ways.rs",
    "interop: tests/forms.rs",
    "interop: tests/journal.rs",
    "openraid-lab: tests/all/laboratory.rs",
    "openraid: tests/all/sinks.rs",
    "openraid: tests/holders.rs",
    "openraid: tests/old_arrays.rs",
    "openraid: tests/pulled.rs",
    "openraid: tests/taken_by_md.rs",
    "openraid: tests/thin_pool.rs",
    "sim: tests/fault_swarm.rs",
];

/// Build test programs by these arguments of cargo. Packages that wait come first and packages that compute last, with the long
/// programs of each at that end of the list.
pub fn build_tests(build: &[&str]) -> Result<Vec<Program>, String> {
    let messages = cargo_messages(build)?;
    let mut programs = Vec::new();
    for program in messages.iter().filter_map(program) {
        programs.extend(parts(program)?);
    }
    programs.sort_by_cached_key(|program| {
        let is_short = !LONG.contains(&&*program.title);
        if WAITING.contains(&&*program.package) {
            (0, is_short, program.title.clone())
        } else {
            (1, !is_short, program.title.clone())
        }
    });
    println!("{} test programs", programs.len());
    Ok(programs)
}

/// Run these programs, several at once. What each prints comes as a whole when it has ended. One that fails stops no other one.
pub fn run_programs(programs: Vec<Program>, environment: &[(&str, &str)]) -> Outcome {
    let queue = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    let at_once = std::thread::available_parallelism().map_or(2, usize::from) * EACH_PROCESSOR;
    // Threads by hand: this program has none of the crates that it checks.
    std::thread::scope(|scope| {
        for number in 0..at_once {
            // From both ends, so that programs that compute fill the time in which others wait.
            let take = if number % 2 == 0 { VecDeque::pop_front } else { VecDeque::pop_back };
            let (queue, failed) = (&queue, &failed);
            scope.spawn(move || loop {
                let next = take(&mut queue.lock().expect("no thread panics with it"));
                let Some(program) = next else { return };
                if let Err(why) = run(&program, environment) {
                    failed.lock().expect("no thread panics with it").push(why);
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread panics with it");
    if failed.is_empty() {
        return Ok(());
    }
    Err(failed.join("; "))
}

/// The test program that a message of cargo names.
fn program(message: &serde_json::Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let package = folder.file_name()?.to_str()?.to_owned();
    let (kind, name) = (message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
    let title =
        if kind == "test" { format!("{package}: tests/{name}.rs") } else { format!("{package}: {kind} {name}") };
    let log = path.with_extension("log");
    Some(Program { package, title, path, arguments: Vec::new(), folder, log })
}

/// A program with a module for each file is run once for each of them: a process keeps its files apart, and the long ones can be begun
/// first.
fn parts(program: Program) -> Result<Vec<Program>, String> {
    let Program { package, title, path, folder, .. } = &program;
    if !title.ends_with(SHARED) {
        return Ok(vec![program]);
    }
    let output = Command::new(path).arg("--list").current_dir(folder).output();
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
    let mut command = Command::new(path);
    command.args(arguments).current_dir(folder).env("CARGO_MANIFEST_DIR", folder).envs(environment.iter().copied());
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
    use super::modules;

    #[test]
    fn each_module_of_a_shared_program_has_its_own_tests() {
        let found = modules("a::x: test\nab::y: test\na::deep::z: test\nc: test\n\n4 tests, 0 benchmarks\n");
        let found: Vec<_> = found.into_iter().collect();
        let tests = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(found, [("a", tests(&["a::x", "a::deep::z"])), ("ab", tests(&["ab::y"])), ("main", tests(&["c"]))]);
    }
}
