//! Licences, bans and sources of dependencies, by cargo-deny and `deny.toml`. [`crate::licences`] is the short form.

use crate::step::{cargo, Outcome};
use std::process::{Command, Stdio};

/// Its minimal Rust is 1.88, below ours; a fixed version gives the same verdict everywhere.
const VERSION: &str = "0.20.2";

/// Run cargo-deny, after installing it where it is missing (two to five minutes, once per machine).
pub fn deny() -> Outcome {
    if !installed() {
        println!("cargo-deny is missing; installing version {VERSION}");
        let package = format!("cargo-deny@{VERSION}");
        cargo(&["install", "--locked", "--quiet", &package], &[])
            .map_err(|error| format!("{error}; get it with: cargo install --locked {package}"))?;
    }
    cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"], &[])
}

fn installed() -> bool {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
