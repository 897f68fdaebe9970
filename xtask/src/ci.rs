//! The chores that consist of other programs' runs.

use crate::step::{cargo, run_all, Outcome};

/// Everything that must hold before a change lands. Cheap steps come first, so that a slip shows early.
pub fn ci() -> Outcome {
    run_all(&[("format", &format), ("clippy", &clippy), ("tests", &tests)])
}

/// The sources alone.
pub fn lint() -> Outcome {
    run_all(&[("format", &format), ("clippy", &clippy)])
}

/// All tests with the optimiser on; `OPENRAID_SOAK` tells sliced tests to do the whole.
pub fn soak() -> Outcome {
    let arguments = ["test", "--workspace", "--release", "--no-fail-fast", "--", "--include-ignored"];
    run_all(&[("soak", &|| cargo(&arguments, &[("OPENRAID_SOAK", "1")]))])
}

/// Every benchmark of the workspace.
pub fn bench() -> Outcome {
    run_all(&[("benchmarks", &|| cargo(&["bench", "--workspace", "--benches"], &[]))])
}

fn format() -> Outcome {
    cargo(&["fmt", "--all", "--check"], &[])
}

fn clippy() -> Outcome {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

fn tests() -> Outcome {
    cargo(&["test", "--workspace", "--no-fail-fast"], &[])
}
