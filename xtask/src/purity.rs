//! The allowed imports of each crate, and the words that the core must not use.
//!
//! The table below is the architecture. A crate that is not in it, or an import that is not in its line, is an error: a
//! new import needs a visible change of the table. Dev-dependencies are free.

use crate::rust::Code;
use crate::step::{cargo, cargo_output, root, run_all, Outcome};
use crate::tree::files;
use std::fs;
use std::process::Command;

/// A crate, the workspace's crates that it may import, and external ones.
struct Imports {
    package: &'static str,
    ours: &'static [&'static str],
    external: &'static [&'static str],
}

const TABLE: &[Imports] = &[
    Imports { package: "openraid-units", ours: &[], external: &[] },
    Imports { package: "openraid-format", ours: &["openraid-units"], external: &[] },
    Imports { package: "openraid-core", ours: &["openraid-units", "openraid-format"], external: &[] },
    Imports { package: "openraid-parity", ours: &["openraid-units"], external: &[] },
    Imports { package: "openraid-nbd", ours: &["openraid-units"], external: &[] },
    Imports { package: "openraid-nvme", ours: &["openraid-units", "openraid-parity"], external: &[] },
    Imports { package: "openraid-vhost", ours: &[], external: &[] },
    Imports { package: "openraid-sys", ours: &["openraid-units"], external: &["io-uring", "libc", "rustix"] },
    Imports { package: "openraid-models", ours: &["openraid-units"], external: &["strsim", "toml"] },
    Imports {
        package: "openraid-drives",
        ours: &["openraid-units", "openraid-core", "openraid-models"],
        external: &[],
    },
    Imports {
        package: "openraid-sim",
        ours: &[
            "openraid-units",
            "openraid-format",
            "openraid-core",
            "openraid-parity",
            "openraid-models",
            "openraid-drives",
        ],
        external: &[],
    },
    Imports {
        package: "openraid-methods",
        ours: &[
            "openraid-units",
            "openraid-core",
            "openraid-models",
            "openraid-drives",
            "openraid-nbd",
            "openraid-sim",
            "openraid-sys",
        ],
        external: &["serde", "serde_json", "utoipa"],
    },
    Imports {
        package: "openraid-runtime",
        // No models of drives: a program that has some gives them to members by a trait.
        ours: &[
            "openraid-units",
            "openraid-format",
            "openraid-core",
            "openraid-parity",
            "openraid-nbd",
            "openraid-nvme",
            "openraid-vhost",
            "openraid-sys",
        ],
        external: &[],
    },
    Imports {
        package: "openraid-status",
        ours: &["openraid-units", "openraid-core"],
        external: &["serde", "serde_json", "time", "utoipa"],
    },
    Imports {
        package: "openraid-config",
        ours: &["openraid-units", "openraid-format", "openraid-nbd", "openraid-status"],
        external: &["strsim", "toml"],
    },
    // The HTTP libraries stay in this crate.
    Imports {
        package: "openraid-management",
        ours: &["openraid-nbd", "openraid-status"],
        external: &[
            "argon2",
            "getrandom",
            "http-body-util",
            "hyper",
            "hyper-util",
            "percent-encoding",
            "rcgen",
            "ring",
            "serde",
            "serde_json",
            "tokio",
            "tokio-rustls",
            "utoipa",
        ],
    },
    Imports {
        package: "openraid-claims",
        ours: &["openraid-models", "openraid-methods"],
        external: &["serde_json", "strsim"],
    },
    Imports {
        package: "openraid",
        // Nothing of the laboratory: this program runs as root on raw drives.
        ours: &[
            "openraid-units",
            "openraid-format",
            "openraid-core",
            "openraid-parity",
            "openraid-nbd",
            "openraid-sys",
            "openraid-config",
            "openraid-status",
            "openraid-management",
            "openraid-runtime",
        ],
        external: &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "indicatif",
            "lettre",
            "rustls",
            "serde",
            "serde_json",
            "ureq",
            "utoipa",
        ],
    },
    // The laboratory's program has the whole of openraid, because rehearsals and reviews serve arrays.
    Imports {
        package: "openraid-lab",
        ours: &[
            "openraid",
            "openraid-claims",
            "openraid-core",
            "openraid-drives",
            "openraid-format",
            "openraid-management",
            "openraid-methods",
            "openraid-models",
            "openraid-runtime",
            "openraid-sim",
            "openraid-sys",
            "openraid-units",
        ],
        external: &["clap", "clap_complete", "serde", "serde_json", "utoipa"],
    },
    // For tests only: nothing may import it but as a dev-dependency.
    Imports { package: "openraid-oracle", ours: &[], external: &[] },
    Imports {
        package: "openraid-interop",
        ours: &["openraid-units", "openraid-format", "openraid-core", "openraid-sim", "openraid-oracle"],
        external: &[],
    },
    Imports { package: "xtask", ours: &[], external: &["serde_json"] },
];

/// Crates that must build without the standard library.
const NO_STD: &[&str] = &["crates/units/", "crates/format/", "crates/core/"];
/// The code of these must not name: the world (std), time, threads, chance, floating point, iteration orders that
/// differ between runs, byte orders that differ between machines.
const IMPURE_WORDS: &[&str] = &[
    "std",
    "f32",
    "f64",
    "HashMap",
    "HashSet",
    "SystemTime",
    "thread_local",
    "rand",
    "asm",
    "to_ne_bytes",
    "from_ne_bytes",
];
/// The only crates with unsafe code.
const UNSAFE: &[&str] = &["crates/parity/", "crates/sys/"];
/// Benchmarks do not ship, and counting allocations takes an allocator, which is unsafe by its nature.
const UNSAFE_FOLDER: &str = "/benches/";

/// All checks of purity.
pub fn purity() -> Outcome {
    run_all(&[
        ("purity: imports", &imports),
        ("purity: words", &words),
        ("purity: no planted bugs", &no_planted_bugs),
        ("purity: no std", &no_std),
    ])
}

fn imports() -> Outcome {
    let arguments = [
        "tree",
        "--workspace",
        "--edges",
        "normal,build",
        "--target",
        "all",
        "--depth",
        "1",
        "--prefix",
        "depth",
        "--no-dedupe",
        "--all-features",
        "--format",
        "|{p}",
    ];
    let output = cargo_output(&arguments, &[])?;
    let complaints = foreign_imports(&String::from_utf8_lossy(&output));
    verdict(&complaints)
}

/// Imports outside of the table, in the output of `cargo tree`: `0|package version`, then `1|import version`.
fn foreign_imports(tree: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut package = "";
    for (depth, rest) in tree.lines().filter_map(|line| line.split_once('|')) {
        let name = rest.split(' ').next().unwrap_or_default();
        let entry = |name: &str| TABLE.iter().find(|entry| entry.package == name);
        if depth == "0" {
            package = name;
            if entry(name).is_none() {
                complaints.push(format!("{name} is not in the table of xtask/src/purity.rs; add what it may import"));
            }
        } else if let Some(entry) = entry(package) {
            if !entry.ours.contains(&name) && !entry.external.contains(&name) {
                complaints.push(format!("{package} must not import {name} (table in xtask/src/purity.rs)"));
            }
        }
    }
    complaints
}

fn words() -> Outcome {
    let mut complaints = Vec::new();
    for file in files()?.iter().filter(|file| file.is("rs")) {
        let Some(text) = file.text() else { continue };
        let within = |folders: &[&str]| folders.iter().any(|folder| file.path.starts_with(folder));
        let pure = within(NO_STD) && file.path.contains("/src/") && !file.path.ends_with("tests.rs");
        if pure {
            complaints.extend(impure_words(&file.path, text));
        }
        if file.path.ends_with("/src/lib.rs") && within(NO_STD) && !has_line(text, "#![no_std]") {
            complaints.push(format!("{}: #![no_std] is missing", file.path));
        }
        if within(UNSAFE) || file.path.contains(UNSAFE_FOLDER) {
            continue;
        }
        let found = Code::of(text).words().into_iter().filter(|(_, word)| word == "unsafe");
        complaints
            .extend(found.map(|(line, _)| format!("{}:{line}: unsafe code belongs into parity or sys", file.path)));
        let root = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
        if root && !has_line(text, "#![forbid(unsafe_code)]") {
            complaints.push(format!("{}: #![forbid(unsafe_code)] is missing", file.path));
        }
    }
    verdict(&complaints)
}

/// The feature that puts bugs into the engine.
const PLANTED: &str = "planted";

/// No build of the workspace has the feature that puts bugs into the engine, unless the feature is named: no crate turns
/// it on for another one, and it is no default.
fn no_planted_bugs() -> Outcome {
    let arguments =
        ["tree", "--workspace", "--edges", "all", "--target", "all", "--prefix", "none", "--format", "{p}|{f}"];
    let output = cargo_output(&arguments, &[])?;
    verdict(&planted_packages(&String::from_utf8_lossy(&output)))
}

/// Packages with that feature, in the output of `cargo tree`: `package version|feature,feature`.
fn planted_packages(tree: &str) -> Vec<String> {
    let lines = tree.lines().filter_map(|line| line.split_once('|'));
    let mut found: Vec<String> = lines
        .filter(|(_, features)| features.split([',', ' ']).any(|feature| feature == PLANTED))
        .map(|(package, _)| {
            let name = package.split(' ').next().unwrap_or_default();
            format!("{name} is built with the feature '{PLANTED}', which puts bugs into the engine; only the example 'hunt' may be")
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn has_line(text: &str, wanted: &str) -> bool {
    text.lines().any(|line| line.trim() == wanted)
}

fn impure_words(path: &str, text: &str) -> Vec<String> {
    let code = without_tests(&Code::of(text).lines());
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(code) {
        for word in line.split(|c: char| !(c == '_' || c.is_alphanumeric())) {
            if IMPURE_WORDS.contains(&word) {
                complaints
                    .push(format!("{path}:{number}: '{word}' has no place in a crate without std, clock and chance"));
            }
        }
    }
    complaints
}

/// The lines of code, with everything after `#[cfg(test)]` up to the end of that item made empty.
pub fn without_tests(lines: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        kept.push(String::new());
        if line.trim() != "#[cfg(test)]" {
            kept.pop();
            kept.push(line.clone());
            continue;
        }
        let mut depth = 0;
        for inner in lines.by_ref() {
            kept.push(String::new());
            let opened = inner.matches('{').count();
            depth += opened;
            depth -= inner.matches('}').count().min(depth);
            let over = opened > 0 || inner.contains('}') || inner.trim_end().ends_with(';');
            if depth == 0 && over {
                break;
            }
        }
    }
    kept
}

/// Build the pure crates where there is no standard library: for WebAssembly where that target is installed.
/// Otherwise the host's compiler proves it: a program that brings its own panic handler and imports the crates
/// is refused if one of them brings std's.
fn no_std() -> Outcome {
    let target = "wasm32-unknown-unknown";
    if has_target(target) {
        println!("building for {target}");
        return cargo(&["check", "-p", "openraid-core", "-p", "openraid-format", "--target", target], &[]);
    }
    println!("{target} is not installed; checking on the host, against a panic handler of our own");
    let folder = root().join("target/no-std-probe");
    let manifest = folder.join("Cargo.toml");
    let complain = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder.join("src")).map_err(complain)?;
    fs::write(&manifest, probe_manifest()).map_err(complain)?;
    fs::write(folder.join("src/lib.rs"), PROBE).map_err(complain)?;
    let target_folder = folder.join("target");
    let manifest = manifest.to_string_lossy();
    let target_folder = target_folder.to_string_lossy();
    cargo(&["check", "--quiet", "--offline", "--manifest-path", &manifest, "--target-dir", &target_folder], &[])
        .map_err(|error| format!("core or format imports the standard library ({error})"))
}

fn has_target(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    let folder = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    !folder.is_empty() && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn probe_manifest() -> String {
    let crates = root().join("crates");
    format!(
        "[workspace]\n[package]\nname = \"no-std-probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
         [profile.dev]\npanic = \"abort\"\n[dependencies]\n\
         openraid-core = {{ path = \"{0}/core\" }}\nopenraid-format = {{ path = \"{0}/format\" }}\n",
        crates.display()
    )
}

/// Two panic handlers in one program are a compile error; std has one.
const PROBE: &str = "\
#![no_std]
extern crate openraid_core;
extern crate openraid_format;
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
";

fn verdict(complaints: &[String]) -> Outcome {
    for complaint in complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        n => Err(format!("{n} complaints, see above")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_outside_of_the_table_is_found() {
        let tree = "0|openraid-core v0.1.0 (x)\n1|openraid-units v0.1.0 (x)\n1|serde v1.0.0\n\n0|stranger v0.1.0\n";
        let found = foreign_imports(tree);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("openraid-core must not import serde"));
        assert!(found[1].contains("stranger is not in the table"));
    }

    #[test]
    fn impure_words_are_found_outside_of_tests_and_comments_only() {
        let text =
            "// std\nuse core::fmt;\n#[cfg(test)]\nmod tests {\n    use std::vec;\n    fn f() {}\n}\nfn g(x: f64) {}\n";
        let found = impure_words("a.rs", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.rs:8: 'f64'"));
        assert_eq!(impure_words("a.rs", "#[cfg(test)]\nextern crate std;\nuse std::x;\n").len(), 1);
        assert_eq!(impure_words("a.rs", "#[cfg(test)]\nmod tests;\nuse std::x;\n").len(), 1);
    }

    #[test]
    fn a_package_that_is_built_with_planted_bugs_is_found() {
        let tree = "openraid v0.1.0 (x)|\nopenraid-core v0.1.0 (x)|planted\nserde v1.0.0|derive,planted-not (*)\n\n";
        let found = planted_packages(tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("openraid-core is built with"));
    }

    #[test]
    fn the_table_has_no_circle() {
        // Each crate may import only crates that stand above it.
        for (n, entry) in TABLE.iter().enumerate() {
            for name in entry.ours {
                assert!(TABLE[..n].iter().any(|above| above.package == *name), "{} -> {name}", entry.package);
            }
        }
    }
}
