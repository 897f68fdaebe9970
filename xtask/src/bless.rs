//! Makes golden files again, from their oracles. A person then judges the diff.

use crate::step::{cargo, cargo_output, root, run_all, Outcome};
use std::fs;

/// Golden files: the file, the package and program that print its new content.
const GOLDEN: &[(&str, &str, &str)] = &[("crates/oracle/golden/layouts.txt", "openraid-oracle", "golden-layouts")];

/// Make all golden files again.
pub fn bless() -> Outcome {
    for (path, package, program) in GOLDEN {
        let remake = || {
            cargo(&["build", "--quiet", "-p", package], &[])?;
            let content = cargo_output(&["run", "--quiet", "-p", package, "--bin", program], &[])?;
            fs::write(root().join(path), content).map_err(|error| format!("{path}: {error}"))
        };
        run_all(&[(*path, &remake)])?;
    }
    Ok(())
}
