//! Lists the files of the console, which are a part of the program, and compresses them.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Relative to the package's folder, in which cargo runs this program.
const FOLDER: &str = "console";

fn main() {
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("set by cargo"));
    println!("cargo:rerun-if-changed={FOLDER}");
    let entries = fs::read_dir(FOLDER).expect("the folder of the console");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let mut list =
        String::from("/// Every file of the console: its name, its text, and the text compressed by gzip.\n");
    list.push_str("const FILES: &[(&str, &str, &[u8])] = &[\n");
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A copy is next to the list, which so names no folder of the machine.
        fs::copy(&file, out.join(&name)).expect("cargo's own folder can be written");
        compress(&file, &out.join(format!("{name}.gz")));
        writeln!(list, "    ({name:?}, include_str!({name:?}), include_bytes!(\"{name}.gz\")),").expect("a string");
    }
    list.push_str("];\n");
    fs::write(out.join("console.rs"), list).expect("cargo's own folder can be written");
}

/// The same bytes in each build: the name and the time of the file are not in them.
fn compress(file: &Path, packed: &Path) {
    let text = File::open(file).expect("a file of the console");
    let output = File::create(packed).expect("cargo's own folder can be written");
    let gzip = Command::new("gzip").args(["-9", "-n"]).stdin(Stdio::from(text)).stdout(Stdio::from(output)).status();
    let status = gzip.expect("the program gzip, which every Debian has; it compresses the console");
    assert!(status.success(), "gzip: {}: {status}", file.display());
}
