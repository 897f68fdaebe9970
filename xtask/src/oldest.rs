//! Does the workspace build with the minimum Rust version that its manifest names?

use crate::step::{root, Outcome};
use std::process::{Command, Stdio};

/// Programs and libraries by the oldest compiler, in a build tree of their own. rustup installs the compiler if it is missing.
pub fn oldest() -> Outcome {
    let manifest =
        std::fs::read_to_string(root().join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let version = named(&manifest).ok_or("Cargo.toml names no rust-version")?;
    let has_compiler =
        rustup(&["run", version, "rustc", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has_compiler.is_ok_and(|status| status.success()) {
        println!("Rust {version} is missing; installing it");
        succeed(rustup(&["toolchain", "install", version, "--profile", "minimal", "--no-self-update"]))?;
    }
    let build = ["run", version, "cargo", "build", "--workspace", "--locked", "--target-dir", "target/oldest"];
    succeed(rustup(&build))
}

/// The minimum version in a manifest.
fn named(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.split('"').next())
}

fn rustup(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    // The cargo that started this chore names its own compiler.
    command.args(arguments).current_dir(root()).env_remove("CARGO").env_remove("RUSTC");
    command
}

fn succeed(mut command: Command) -> Outcome {
    let status = command.status().map_err(|error| format!("rustup does not start: {error}; get it from rustup.rs"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?} ended with {status}"))
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_version_is_read_without_what_follows() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\nrust-version = \"1.89\" # stable from 1.89\n";
        assert_eq!(named(manifest), Some("1.89"));
        assert_eq!(named("rust-version.workspace = true\n"), None);
    }
}
