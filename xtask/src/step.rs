//! One step of a chore: a header, the work, the time it took.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A chore went well, or the sentence that says what did not.
pub type Outcome = Result<(), String>;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask stands in the root of the repository").to_path_buf()
}

/// A step's name and work.
pub type Step<'a> = (&'a str, &'a dyn Fn() -> Outcome);

/// Run the steps in order, stop at the first that fails, and say how long each took.
pub fn run_all(steps: &[Step<'_>]) -> Outcome {
    let mut times = Vec::new();
    for (name, work) in steps {
        println!("\n==== {name} ====");
        let start = Instant::now();
        let outcome = work();
        times.push(format!("{name} {:.1} s", start.elapsed().as_secs_f64()));
        if let Err(why) = outcome {
            println!("\n==== {name} failed; so far: {} ====", times.join(", "));
            return Err(format!("step '{name}' failed: {why}"));
        }
    }
    println!("\n==== all well: {} ====", times.join(", "));
    Ok(())
}

/// The cargo that started us.
pub fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

/// A program in the root of the repository. Cargo has told us of this package; a build script that reads that would run once more under a
/// cargo that is told so too, and all that depends on its package would be built again.
pub fn at_root(program: &Path) -> Command {
    let mut command = Command::new(program);
    let names = std::env::vars_os().map(|(name, _)| name);
    let of_package = ["CARGO_MANIFEST_", "CARGO_PKG_"];
    for name in names.filter(|name| of_package.iter().any(|start| name.to_string_lossy().starts_with(start))) {
        command.env_remove(name);
    }
    command.current_dir(root());
    command
}

/// The cargo that started us, in the root of the repository, its output shown as it comes.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let mut command = at_root(&cargo_program());
    command.args(arguments).envs(environment.iter().copied());
    let status = command.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`cargo {}` ended with {status}", arguments.join(" ")))
}

/// A program in the root of the repository that steps back for others by this much (the word of `nice`).
pub fn nice(by: &str, program: &Path) -> Command {
    let mut command = at_root(Path::new("nice"));
    command.args(["-n", by]).arg(program);
    command
}

/// The environment in which cargo builds the packages of the workspace by clippy's driver, a compiler that judges what it compiles;
/// `tools/judge` starts it. Two builds share their files only if both have it, or neither.
pub fn judging() -> [(&'static str, PathBuf); 2] {
    let next_to_cargo = cargo_program().with_file_name("clippy-driver");
    let driver = if next_to_cargo.exists() { next_to_cargo } else { "clippy-driver".into() };
    [("RUSTC_WORKSPACE_WRAPPER", root().join("tools/judge")), ("CLIPPY_DRIVER", driver)]
}

/// Take each of cargo's messages about a build as it comes. Messages for a person are shown. A message that is not taken ends the
/// build.
pub fn cargo_messages(
    step_back: &str,
    arguments: &[&str],
    environment: &[(&str, PathBuf)],
    mut take: impl FnMut(&serde_json::Value) -> Outcome,
) -> Outcome {
    let mut command = nice(step_back, &cargo_program());
    command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
    command.arg("--message-format=json").stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cargo does not start: {error}"))?;
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let taken = lines.map_while(Result::ok).filter(|line| !line.is_empty()).try_for_each(|line| {
        let message: serde_json::Value =
            serde_json::from_str(&line).map_err(|error| format!("a message of cargo's: {error}"))?;
        let text = message["message"]["rendered"].as_str().unwrap_or_default();
        std::io::stderr()
            .write_all(text.as_bytes())
            .map_err(|error| format!("what cargo says cannot be shown: {error}"))?;
        take(&message)
    });
    if taken.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("cargo cannot be waited for: {error}"))?;
    taken?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`cargo {}` ended with {status}", arguments.join(" ")))
}

/// What cargo prints on its standard output.
pub fn cargo_output(arguments: &[&str], environment: &[(&str, PathBuf)]) -> Result<Vec<u8>, String> {
    let environment = environment.iter().map(|(name, value)| (name, value));
    let output = at_root(&cargo_program()).args(arguments).envs(environment).output();
    let output = output.map_err(|error| format!("cargo does not start: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`cargo {}` ended with {}: {}", arguments.join(" "), output.status, said.trim()))
}
