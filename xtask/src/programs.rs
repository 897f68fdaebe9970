//! Test programs, several at once. `cargo test` runs one after the other, and most of them wait: for a guest kernel, for a
//! server, for a clock of the protocol.

use crate::step::{cargo_messages, Outcome};
use std::collections::VecDeque;
use std::fs::{read, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// A program that cargo has built, and the folder that it is to run in.
struct Program {
    title: String,
    path: PathBuf,
    folder: PathBuf,
}

/// Programs that run at once on each processor: half of their time they wait.
const EACH_PROCESSOR: usize = 2;

/// Build all test programs of the workspace and run several at once. What each prints comes as a whole when it has ended. One
/// that fails stops no other one.
pub fn run_tests(environment: &[(&str, &str)]) -> Outcome {
    // With all programs: tests run programs of other packages, which cargo does not build for them.
    let messages = cargo_messages(&["build", "--workspace", "--bins", "--tests"])?;
    let mut programs = messages.iter().filter_map(program).collect::<Vec<_>>();
    programs.sort_by(|a, b| a.title.cmp(&b.title));
    println!("{} test programs", programs.len());
    let queue = Mutex::new(VecDeque::from(programs));
    let failed = Mutex::new(Vec::new());
    let at_once = std::thread::available_parallelism().map_or(2, usize::from) * EACH_PROCESSOR;
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| loop {
                let next = queue.lock().expect("no thread panics with it").pop_front();
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
    Some(Program { title, path, folder })
}

/// Run one, its two outputs in one file, in the order in which they were written.
fn run(program: &Program, environment: &[(&str, &str)]) -> Outcome {
    let Program { title, path, folder } = program;
    println!("     Running {title}");
    let log = path.with_extension("log");
    let fault = |error| format!("{title}: {}: {error}", log.display());
    let file = File::create(&log).map_err(fault)?;
    let start = Instant::now();
    let mut command = Command::new(path);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder).envs(environment.iter().copied());
    command.stdout(file.try_clone().map_err(fault)?).stderr(file);
    let status = command.status().map_err(|error| format!("{title} does not start: {error}"))?;
    let text = read(&log).map_err(fault)?;
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
