//! One step of a chore: a header, the work, the time it took.

use std::path::PathBuf;
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

/// The cargo that started us, in the root of the repository, its output shown as it comes.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).envs(environment.iter().copied()).current_dir(root());
    let status = command.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`cargo {}` ended with {status}", arguments.join(" ")))
}

/// cargo's messages about a build. The ones meant for a person are shown as they come.
pub fn cargo_messages(arguments: &[&str]) -> Result<Vec<serde_json::Value>, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).arg("--message-format=json-render-diagnostics").current_dir(root());
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`cargo {}` ended with {}", arguments.join(" "), output.status));
    }
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| format!("a message of cargo's: {error}"))).collect()
}

/// What cargo prints on its standard output.
pub fn cargo_output(arguments: &[&str]) -> Result<Vec<u8>, String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("`cargo {}` ended with {}: {}", arguments.join(" "), output.status, said.trim()))
}
