//! Lists the files under `models/`, which the library contains. A new profile only needs a new file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const FOLDERS: &[&str] = &["drives", "buses", "controllers", "hosts"];

/// Relative to the package's folder, in which cargo runs this program.
const ROOT: &str = "../../models";

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let mut list = String::from("/// Every profile that the library carries: folder, file, text.\n");
    list.push_str("pub(crate) static FILES: &[(&str, &str, &str)] = &[\n");
    for folder in FOLDERS {
        let path = Path::new(ROOT).join(folder);
        println!("cargo:rerun-if-changed={}", path.display());
        let mut files: Vec<PathBuf> = fs::read_dir(&path)
            .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
            .unwrap_or_default();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        for file in files {
            println!("cargo:rerun-if-changed={}", file.display());
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A copy is next to the list. So the list names no folder of the machine, and two checkouts build the same
            // bytes.
            let copy = format!("{folder}-{name}");
            fs::copy(&file, out.join(&copy)).expect("cargo's own folder can be written");
            writeln!(list, "    ({folder:?}, {name:?}, include_str!({copy:?})),").expect("writing into a string");
        }
    }
    list.push_str("];\n");
    fs::write(out.join("builtin.rs"), list).expect("cargo's own folder can be written");
}
