//! What should hold before a change is pushed, in minutes: format, style, and clippy and unit tests of the packages that
//! the change touches and of their dependents. One build judges and tests: that of all packages, of which cargo builds again what the
//! change reaches.

use crate::ci::format;
use crate::programs::{run_programs, Program, TestRun};
use crate::step::{cargo_output, root, run_all, Outcome};
use crate::tidy::tidy;
use std::collections::BTreeSet;
use std::process::Command;

/// Seconds of torture.
const TORTURE: &str = "30";
/// Files that decide how every package is built.
const EVERYWHERE: [&str; 3] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];
/// The package of the simulated machine: a change that reaches it is tortured.
const MACHINE: &str = "openraid-sim";

/// A package of the workspace: its name, its folder from the root, and the packages of the workspace that it depends on.
struct Package {
    name: String,
    folder: String,
    dependencies: Vec<String>,
}

impl Package {
    /// Has its folder this name?
    fn is_in(&self, folder: &str) -> bool {
        self.folder.trim_end_matches('/').rsplit('/').next() == Some(folder)
    }
}

/// Check what changed since the last push, and what builds on that.
pub fn quick() -> Outcome {
    let packages = packages(&cargo_output(&["metadata", "--no-deps", "--format-version", "1"], &[])?)?;
    let reached = reached(&packages, &changed()?);
    println!(
        "{} of {} packages: {}",
        reached.len(),
        packages.len(),
        reached.iter().cloned().collect::<Vec<_>>().join(", ")
    );
    let run = || {
        if reached.is_empty() {
            return Ok(());
        }
        let torture = if reached.contains(MACHINE) { vec![torture()?] } else { Vec::new() };
        let work = TestRun {
            build: &["test", "--no-run", "--workspace", "--lib", "--bins"],
            judges: true,
            runs: &|folder| packages.iter().any(|one| reached.contains(&one.name) && one.is_in(folder)),
            started_by_tests: Vec::new(),
            after_build: torture,
        };
        run_programs(work, &[])
    };
    run_all(&[("format", &format), ("tidy", &tidy), ("clippy, unit tests, and torture", &run)])
}

/// Power cuts in simulated machines, while the unit tests run. The day decides the runs: those of yesterday are known.
fn torture() -> Result<Program, String> {
    let day = lines("date", &["+%Y%m%d"])?.concat();
    // Told to end, the laboratory starts no further run, and prints what the runs met.
    let words = ["--preserve-status", TORTURE, "target/debug/openraid-lab", "torture", "--seeds"];
    let runs = format!("{day}00001..{day}99999");
    Ok(Program {
        package: "openraid-lab".into(),
        title: format!("{TORTURE} s of torture"),
        path: "timeout".into(),
        arguments: words.iter().map(|word| (*word).to_owned()).chain([runs]).collect(),
        folder: None,
        log: root().join("target/torture.log"),
    })
}

/// Paths from the root that differ from the last push, or from the last commit if the branch has no other side.
fn changed() -> Result<Vec<String>, String> {
    let base =
        lines("git", &["merge-base", "HEAD", "@{upstream}"]).map_or_else(|_| "HEAD".into(), |base| base.concat());
    let mut paths = lines("git", &["diff", "--name-only", &base])?;
    paths.extend(lines("git", &["ls-files", "--others", "--exclude-standard"])?);
    Ok(paths)
}

/// The lines that a program prints in the root of the repository.
fn lines(program: &str, arguments: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new(program).args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{program} {}` ended with {}", arguments.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The packages in cargo's metadata.
fn packages(metadata: &[u8]) -> Result<Vec<Package>, String> {
    let metadata: serde_json::Value =
        serde_json::from_slice(metadata).map_err(|error| format!("cargo's metadata: {error}"))?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let root = format!("{}/", root().display());
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let package = |value: &serde_json::Value| {
        let manifest = text(&value["manifest_path"]);
        let folder = manifest.strip_prefix(&root)?.strip_suffix("Cargo.toml")?.to_owned();
        let inside = list(&value["dependencies"]).into_iter().filter(|dependency| dependency["path"].is_string());
        let dependencies = inside.map(|dependency| text(&dependency["name"])).collect();
        Some(Package { name: text(&value["name"]), folder, dependencies })
    };
    Ok(list(&metadata["packages"]).iter().filter_map(package).collect())
}

/// The packages with a changed file, and all that depend on them.
fn reached(packages: &[Package], changed: &[String]) -> BTreeSet<String> {
    let everywhere = changed.iter().any(|path| EVERYWHERE.contains(&path.as_str()));
    let touched = |package: &&Package| everywhere || changed.iter().any(|path| path.starts_with(&package.folder));
    let mut reached: BTreeSet<String> = packages.iter().filter(touched).map(|package| package.name.clone()).collect();
    loop {
        let above = |package: &&Package| {
            !reached.contains(&package.name) && package.dependencies.iter().any(|name| reached.contains(name))
        };
        let more: Vec<String> = packages.iter().filter(above).map(|package| package.name.clone()).collect();
        if more.is_empty() {
            return reached;
        }
        reached.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
        Package { name: name.into(), folder: format!("crates/{name}/"), dependencies }
    }

    fn names(changed: &[&str]) -> Vec<String> {
        let packages =
            [package("units", &[]), package("core", &["units"]), package("sim", &["core"]), package("nbd", &["units"])];
        let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
        reached(&packages, &changed).into_iter().collect()
    }

    #[test]
    fn a_change_reaches_its_package_and_all_that_build_on_it() {
        assert_eq!(names(&["crates/core/src/lib.rs", "docs/cache.md"]), ["core", "sim"]);
        assert_eq!(names(&["crates/units/README.md"]), ["core", "nbd", "sim", "units"]);
        assert_eq!(names(&["Cargo.lock"]).len(), 4);
        assert!(names(&["crates/corelike/x", "README.md"]).is_empty());
    }
}
