//! The chores that consist of other programs' runs.

use crate::deny::deny;
use crate::licences::licences;
use crate::oldest::oldest;
use crate::programs::{run_programs, TestRun};
use crate::purity::purity;
use crate::step::{cargo, cargo_output, judging, root, run_all, Outcome};
use crate::tidy::tidy;

/// Tells tests that the packages of foreign programs are installed, so that none may skip itself.
const REQUIRE_PEERS: (&str, &str) = ("OPENRAID_REQUIRE_PEERS", "1");
/// Room for the frames of code that is not optimised, on the stack of each test's thread.
const STACK: (&str, &str) = ("RUST_MIN_STACK", "4194304");
/// Tells tests that take a slice of their cases to take all.
const SOAK: (&str, &str) = ("OPENRAID_SOAK", "1");
/// How many mutated NBD sessions a soak has, of each side.
const SESSIONS: (&str, &str) = ("OPENRAID_NBD_SESSIONS", "100000");

/// Everything that must hold before a change lands. Cheap steps come first, so that a slip shows early.
pub fn ci() -> Outcome {
    run_all(&[
        ("lock file", &lock),
        ("format", &format),
        ("purity", &purity),
        ("sources", &sources),
        ("clippy, and tests", &tests),
    ])
}

/// The sources alone.
pub fn lint() -> Outcome {
    run_all(&[
        ("lock file", &lock),
        ("format", &format),
        ("tidy", &tidy),
        ("purity", &purity),
        ("console", &console),
        ("clippy", &clippy),
        ("deny", &deny),
    ])
}

/// A build with the minimum Rust version, the decisions of a build that optimises little, the planted bugs that known runs find, and all
/// tests with the optimiser on, the long ones included.
pub fn soak() -> Outcome {
    let arguments = ["test", "--workspace", "--release", "--no-fail-fast", "--", "--include-ignored"];
    run_all(&[
        ("oldest Rust", &oldest),
        ("determinism", &determinism),
        ("planted bugs", &planted_bugs),
        ("soak", &|| cargo(&arguments, &[SOAK, SESSIONS, REQUIRE_PEERS])),
    ])
}

/// Every benchmark of the workspace. `--benches` would also build libraries and programs, which have none.
pub fn bench() -> Outcome {
    run_all(&[("benchmarks", &|| cargo(&["bench", "--workspace", "--bench", "*"], &[]))])
}

/// Does Cargo.lock fit the manifests? Otherwise every machine would test other dependencies.
fn lock() -> Outcome {
    cargo_output(&["metadata", "--locked", "--format-version", "1"], &[]).map(drop)
}

/// Are all sources as the formatter writes them?
pub fn format() -> Outcome {
    cargo(&["fmt", "--all", "--check"], &[])
}

fn clippy() -> Outcome {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

/// Steps with one thread, next to each other.
fn sources() -> Outcome {
    std::thread::scope(|scope| {
        let others = scope.spawn(|| run_all(&[("console", &console), ("licences", &licences), ("python", &python)]));
        let tidy = run_all(&[("tidy", &tidy)]);
        others.join().map_err(|_| "a step panicked".to_owned())?.and(tidy)
    })
}

/// Clippy and the tests have one build, of all that clippy judges. The tests run programs of other packages, which cargo does not build
/// for them.
fn tests() -> Outcome {
    let work = TestRun {
        build: &["build", "--workspace", "--all-targets"],
        judges: true,
        runs: &|_| true,
        started_by_tests: programs_of_workspace()?,
        after_build: Vec::new(),
    };
    run_programs(work, &[REQUIRE_PEERS, STACK])
}

/// The names of all programs that are no tests.
fn programs_of_workspace() -> Result<Vec<String>, String> {
    let metadata = cargo_output(&["metadata", "--no-deps", "--format-version", "1"], &[])?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata).map_err(|error| format!("cargo's metadata: {error}"))?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let targets = list(&metadata["packages"]).into_iter().flat_map(|package| list(&package["targets"]));
    let programs = targets.filter(|target| target["kind"][0] == "bin");
    Ok(programs.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect())
}

/// The types of the console's modules, by TypeScript's compiler. Names that are not used, and code that is not reached, are
/// faults too.
fn console() -> Outcome {
    other("tsc", &["-p", "tools/tsconfig.json"], "the Debian package node-typescript")
}

/// The Python package, by the standard library's own test runner.
fn python() -> Outcome {
    other("python3", &["-m", "unittest", "discover", "-s", "python/tests"], "the Debian package python3")
}

/// Another program in the root of the repository.
fn other(program: &str, arguments: &[&str], package: &str) -> Outcome {
    let status = std::process::Command::new(program).args(arguments).current_dir(root()).status();
    match status.map_err(|error| format!("{program} does not start: {error}; install {package}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("`{program} {}` ended with {status}", arguments.join(" "))),
    }
}

/// The optimised simulation, with the bugs that can be planted. None is, unless a run asks for one.
const OPTIMISED: [&str; 9] =
    ["run", "--quiet", "-p", "openraid-sim", "--profile", "hunt", "--features", "planted", "--example"];

/// Each bug that can be planted in the engine is found by the run that found it before, or by one of the next.
fn planted_bugs() -> Outcome {
    cargo(&[&OPTIMISED[..], &["hunt", "--", "--slice"]].concat(), &[])
}

/// The same seeds give the same decisions in the build of the tests, and in an optimised one without its assertions.
pub fn determinism() -> Outcome {
    let plain = cargo_output(&["run", "--quiet", "-p", "openraid-sim", "--example", "trace_hash"], &judging())?;
    let optimised = cargo_output(&[&OPTIMISED[..], &["trace_hash"]].concat(), &[])?;
    if plain.is_empty() || plain != optimised {
        return Err("two builds decide differently for the same seed".into());
    }
    println!("{} runs, the same decisions in both builds", plain.split(|b| *b == b'\n').count() - 1);
    Ok(())
}
